#!/usr/bin/python
"""Install or remove a driver with NVIDIA's .run installer."""

DOCUMENTATION = r"""
---
module: gpu_driver_runfile
short_description: Install or remove a driver with NVIDIA's .run installer
description:
  - Fetches the installer and verifies its checksum and the archive's own before anything is changed.
  - Reports in advance what would make the installer refuse. Refuses to overwrite a driver that packages installed.
  - Runs the installer silently with the options of its release. It builds its modules first, then runs the uninstaller
    of an earlier .run driver. DKMS builds the modules of each further kernel.
  - An installer that M(gpu_upgrade_stage) fetched and verified in advance is used instead of O(source).
  - A killed run is repaired by the next one. M(gpu_kernel_module) loads the module.
options:
  state:
    description: V(absent) runs the driver's own uninstaller and removes what that leaves.
    type: str
    choices: [present, absent]
    default: present
  source:
    description: URL of the installer, or its path on the host.
    type: str
    default: ""
  sha256:
    description: Checksum of the file.
    type: str
    default: ""
  sha256_url:
    description: URL of a .sha256sum file that lists it. Not used if O(sha256) is given.
    type: str
    default: ""
  version:
    description: Version of the driver, for example V(580.178.04).
    type: str
    default: ""
  flavour:
    description: Flavour of the kernel modules.
    type: str
    choices: [open, proprietary]
    default: open
  kernels:
    description: Kernels to build modules for, as C(uname -r) prints them, the running one first. Empty means that one.
    type: list
    elements: str
    default: []
  uninstall:
    description: Path of the uninstaller of a .run driver that was installed outside of gpu-ready and may be replaced.
    type: str
    default: ""
  install_timeout:
    description: Seconds after which the installer is stopped.
    type: int
    default: 3600
attributes:
  check_mode:
    description: Reports what would change, without any download.
    support: full
  diff_mode:
    description: Shows version and kernels.
    support: full
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Install a driver from NVIDIA's server
  gpu_ready.nodes.gpu_driver_runfile:
    source: https://download.nvidia.com/XFree86/Linux-x86_64/580.178.04/NVIDIA-Linux-x86_64-580.178.04.run
    sha256_url: https://download.nvidia.com/XFree86/Linux-x86_64/580.178.04/NVIDIA-Linux-x86_64-580.178.04.run.sha256sum
    version: 580.178.04
    flavour: open

- name: Install from a file on the host, for two kernels
  gpu_ready.nodes.gpu_driver_runfile:
    source: /root/NVIDIA-Linux-x86_64-580.178.04.run
    version: 580.178.04
    flavour: proprietary
    kernels: [6.1.0-40-amd64, 6.1.0-41-amd64]

- name: Remove the driver
  gpu_ready.nodes.gpu_driver_runfile:
    state: absent
"""

RETURN = r"""
version:
  description: Version of the .run driver after the run; null if there is none.
  returned: always
  type: str
  sample: 580.178.04
missing:
  description: What was missing before the run, for messages.
  returned: always
  type: list
  elements: str
  sample: ["the module for 6.1.0-41-amd64"]
needs_file:
  description: >-
    Whether the file of O(source) is needed. It is not for further kernels of an installed driver, or if an installer
    was fetched in advance.
  returned: always
  type: bool
  sample: false
removed:
  description: What O(state=absent) removed, for messages.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ..module_utils.gpu_ready.answers.driver import DriverRunfileAnswer
from ..module_utils.gpu_ready.base import manifest
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.driver.runfile import install as runfile
from ..module_utils.gpu_ready.driver.runfile import installed_files
from ..module_utils.gpu_ready.driver.runfile import state as runfile_state
from ..module_utils.gpu_ready.driver.runfile.fetch import InstallerSource, RunfileLimits
from ..module_utils.gpu_ready.driver.runfile.spec import DriverSpec
from ..module_utils.gpu_ready.driver.runfile.store import find_installer

ANSWER = DriverRunfileAnswer
ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "source": {"type": "str", "default": ""},
    "sha256": {"type": "str", "default": ""},
    "sha256_url": {"type": "str", "default": ""},
    "version": {"type": "str", "default": ""},
    "flavour": {"type": "str", "choices": ["open", "proprietary"], "default": "open"},
    "kernels": {"type": "list", "elements": "str", "default": []},
    "uninstall": {"type": "str", "default": ""},
    "install_timeout": {"type": "int", "default": 3600},
}


def describe_state(host):
    version = installed_files.installed_version(host)
    return "NVIDIA driver %s (.run)\n" % version if version else ""


def install(host, params, check):
    kernels = params["kernels"] or [host.uname()[0]]
    spec = DriverSpec(params["version"], params["flavour"], kernels)
    missing = runfile_state.missing_parts(host, spec)
    stored = find_installer(spec.version, params["sha256"])
    needs_file = bool(missing) and not stored and not runfile_state.kernels_to_build(host, spec)
    if missing:
        runfile_state.refuse_packages(host, spec)
        ours = "driver" in manifest.read().get("runfile", {})
        runfile_state.refuse_foreign(host, ours, bool(params["uninstall"]))
        runfile_state.refuse_flavour(spec)
    if missing and not check:
        source = stored or InstallerSource(params["source"], params["sha256"], params["sha256_url"])
        limits = RunfileLimits(install=params["install_timeout"])
        runfile.install(host, spec, source, limits)
    after = "".join("%s module for %s\n" % (spec.flavour, kernel) for kernel in kernels)
    after = "NVIDIA driver %s (.run)\n%s" % (spec.version, after)
    before = "missing: %s\n" % ", ".join(missing) if missing else after
    return DriverRunfileAnswer(
        changed=bool(missing),
        version=installed_files.installed_version(host) if check else spec.version,
        missing=missing,
        needs_file=needs_file,
        removed=[],
        diff={"before": describe_state(host) + before if check and missing else before, "after": after},
    )


def remove(host, check):
    before = describe_state(host)
    installed = bool(before or installed_files.find_uninstaller(host))
    removed = runfile.remove(host) if installed and not check else []
    return DriverRunfileAnswer(
        changed=installed,
        version=installed_files.installed_version(host),
        missing=[],
        needs_file=False,
        removed=removed,
        diff={"before": before, "after": ""},
    )


def run(host, params, check):
    return install(host, params, check) if params["state"] == "present" else remove(host, check)


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER, required_if=[("state", "present", ["source", "version"])])


if __name__ == "__main__":
    main()
