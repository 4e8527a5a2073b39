# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The steps of CUDA toolkits and cuDNN."""

from __future__ import annotations

from .copies import copy_files
from .model import COPY, DIRECTORY, INSTALL, Execution, Parameters, Step
from .repository import add_repositories

ARCHIVE = f"{DIRECTORY}/cudnn-archive"


def install(step: Parameters, part: Execution) -> None:
    """Install toolkit packages; they are gigabytes."""
    purpose = f"CUDA {' and '.join(step['versions'])}"
    part.run("gpu_packages", {"names": step["packages"], "update_cache": True, "purpose": purpose}, INSTALL)


def runfile(step: Parameters, part: Execution) -> None:
    """Run NVIDIA's installers; a host that has to run one gets a copy if it is a file of the control node."""
    installers = step["installers"]
    with part.deletes([one["file"] for one in installers if one["file"]]):
        if step["packages"]:  # what the installer's own program needs
            libraries = {"optional": step["packages"], "purpose": "NVIDIA's installer of CUDA toolkits"}
            part.run("gpu_packages", {**libraries, "update_cache": True}, INSTALL)
        needs = part.run("gpu_cuda_runfile", {"installers": installers}, COPY, check=True)["needs"]
        needed = {one["source"]: one["file"] for one in installers if one["file"] and one["version"] in needs}
        entries = (part.modules.setting("cuda_toolkit_runfiles") or {}).values()
        files = [one for one in entries if isinstance(one, str)]
        files += [one["file"] for one in entries if isinstance(one, dict)]
        copy_files(files, needed, part)
        part.run("gpu_cuda_runfile", {"installers": installers}, COPY)


def default(step: Parameters, part: Execution) -> None:
    """Point /usr/local/cuda to the default toolkit."""
    part.run("gpu_cuda_toolkit_default", {"version": step["version"], "path": step["path"]})


def profile(step: Parameters, part: Execution) -> None:
    """Add the default toolkit to PATH of login shells."""
    part.run("gpu_files", {"files": step["files"]})


def remove(step: Parameters, part: Execution) -> None:
    """Remove packages of toolkits, and toolkits of installers with cuDNN in them."""
    if step["packages"]:
        packages = {"remove": step["packages"], "purge": True, "purpose": "other CUDA toolkits"}
        part.run("gpu_packages", packages, INSTALL)
    part.run("gpu_cuda_toolkit_absent", {"toolkits": step["toolkits"]}, INSTALL)


def cudnn_packages(step: Parameters, part: Execution) -> None:
    """Have the packages of cuDNN at their version."""
    arguments = {name: step[name] for name in ("remove", "hold", "unhold")}
    arguments |= {"names": [*step["packages"], *step["tools"]], "allow_remove": step["remove"]}
    part.run("gpu_packages", {**arguments, "update_cache": True, "purpose": f"cuDNN {step['release']}"}, INSTALL)


def cudnn_install(step: Parameters, part: Execution) -> None:
    """Install cuDNN in the toolkits; an archive of the control node is copied, and deleted afterwards."""
    file = ARCHIVE if step["file"] else ""
    with part.deletes([file] if file else []):
        if file:
            copy_files([part.modules.setting("cudnn_archive")], {step["file"]: file}, part)
        part.run("gpu_cudnn_archive", {"file": file, "installs": step["installs"]}, COPY)


def cudnn_remove(step: Parameters, part: Execution) -> None:
    """Remove our files from toolkits without cuDNN."""
    part.run("gpu_cudnn_archive", {"installs": step["installs"], "state": "absent"}, COPY)


def cudnn_remove_packages(step: Parameters, part: Execution) -> None:
    """Remove the packages of cuDNN that gpu-ready installed."""
    removed = {"remove": step["packages"], "allow_remove": step["packages"], "unhold": step["unhold"]}
    part.run("gpu_packages", {**removed, "purpose": "cuDNN as packages"}, INSTALL)


STEPS: dict[str, Step] = {
    "cuda_toolkit.repository": add_repositories,
    "cuda_toolkit.install": install,
    "cuda_toolkit.runfile": runfile,
    "cuda_toolkit.default": default,
    "cuda_toolkit.profile": profile,
    "cuda_toolkit.remove": remove,
    "cudnn.repository": add_repositories,
    "cudnn.packages": cudnn_packages,
    "cudnn.install": cudnn_install,
    "cudnn.remove": cudnn_remove,
    "cudnn.remove_packages": cudnn_remove_packages,
}
