# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The steps of CUDA toolkits and cuDNN."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....module_utils.gpu_ready.base import versions
from ....module_utils.gpu_ready.cuda.cudnn import model
from ....module_utils.gpu_ready.cuda.toolkit import PACKAGE, RUNFILE, toolkit_path
from ....module_utils.gpu_ready.facts.model import CudnnFacts, DefaultToolkitFacts, ToolkitFacts
from ..plan.changes import FactChange, add, drop, set_to
from .copies import copy_files
from .effects import Before, Declared, package_changes, removal_effects, standard_effects
from .model import COPY, DIRECTORY, INSTALL, Execution, Parameters
from .repository import add_repositories, repository_effects

ARCHIVE = f"{DIRECTORY}/cudnn-archive"


def install(step: Parameters, part: Execution) -> None:
    """Install toolkit packages; they are gigabytes."""
    purpose = f"CUDA {' and '.join(step['versions'])}"
    part.run("gpu_packages", {"names": step["packages"], "update_cache": True, "purpose": purpose}, INSTALL)


def toolkit_changes(before: Before, toolkits: Iterable[tuple[str, str]], origin: str) -> Iterator[FactChange]:
    """Yield toolkits by version and release, which have no cuDNN at first."""
    new = [ToolkitFacts(version, toolkit_path(version), release, origin) for version, release in toolkits]
    versions = [one.version for one in new]
    kept = [one for one in before.facts.cuda.toolkits if one.version not in versions]
    yield set_to("cuda.toolkits", kept + new)
    yield add("cudnn", {one: CudnnFacts() for one in versions if one not in before.facts.cudnn})


def install_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the toolkits; the packages' scripts point the link to the newest one unless somebody chose another."""
    yield from standard_effects(step, before)
    packages = [before.version(one["name"], one["version"]) for one in step["packages"]]
    releases = zip(step["versions"], map(versions.upstream, packages), strict=True)
    yield from toolkit_changes(before, releases, PACKAGE)
    if before.facts.cuda.default.mode != "manual":
        newest = toolkit_path(max(step["versions"], key=versions.key))
        yield set_to("cuda.default", DefaultToolkitFacts(newest, "alternatives", "auto"))


def runfile_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the toolkits."""
    yield from standard_effects(step, before)
    version = before.version
    releases = [(one["version"], one["release"] or version(one["version"], None)) for one in step["installers"]]
    yield from toolkit_changes(before, releases, RUNFILE)


def default_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    yield set_to("cuda.default", DefaultToolkitFacts(step["path"], "alternatives", "manual"))


def profile_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    yield add("cuda.profile", {file["path"]: file.get("content") for file in step["files"]})
    yield from standard_effects(step, before)


def cudnn_remove_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    yield add("cudnn", {one["cuda"]: CudnnFacts() for one in step["installs"]})


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


def remove_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield that the toolkits are removed, with their cuDNN and a link to one of them."""
    yield from package_changes(before, remove=step["packages"])
    removed = [one["version"] for one in step["toolkits"]]
    yield set_to("cuda.toolkits", [one for one in before.facts.cuda.toolkits if one.version not in removed])
    yield drop("cudnn", removed)
    if before.facts.cuda.default.target in [one["path"] for one in step["toolkits"]]:
        yield set_to("cuda.default", DefaultToolkitFacts())


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


def cudnn_install_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield cuDNN in the toolkits."""
    for one in step["installs"]:
        version = one["version"] or before.version("cudnn", None)
        known = CudnnFacts(model.release(version), None, version, one.get("origin") or "", complete=True)
        yield add("cudnn", {one["cuda"]: known})


def cudnn_remove(step: Parameters, part: Execution) -> None:
    """Remove our files from toolkits without cuDNN."""
    part.run("gpu_cudnn_archive", {"installs": step["installs"], "state": "absent"}, COPY)


def cudnn_remove_packages(step: Parameters, part: Execution) -> None:
    """Remove the packages of cuDNN that gpu-ready installed."""
    removed = {"remove": step["packages"], "allow_remove": step["packages"], "unhold": step["unhold"]}
    part.run("gpu_packages", {**removed, "purpose": "cuDNN as packages"}, INSTALL)


STEPS: dict[str, Declared] = {
    "cuda_toolkit.repository": Declared(add_repositories, repository_effects),
    "cuda_toolkit.install": Declared(install, install_effects),
    "cuda_toolkit.runfile": Declared(runfile, runfile_effects),
    "cuda_toolkit.default": Declared(default, default_effects),
    "cuda_toolkit.profile": Declared(profile, profile_effects),
    "cuda_toolkit.remove": Declared(remove, remove_effects),
    "cudnn.repository": Declared(add_repositories, repository_effects),
    "cudnn.packages": Declared(cudnn_packages, standard_effects),
    "cudnn.install": Declared(cudnn_install, cudnn_install_effects),
    "cudnn.remove": Declared(cudnn_remove, cudnn_remove_effects),
    "cudnn.remove_packages": Declared(cudnn_remove_packages, removal_effects),
}
