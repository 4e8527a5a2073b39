#!/usr/bin/python
"""Install or remove a driver of NVIDIA's .run installer."""

DOCUMENTATION = r"""
---
module: gpu_driver_runfile
short_description: Install or remove a driver of NVIDIA's .run installer
description:
  - Fetches the installer beside everything else, proves its checksum and the archive's own, then changes something.
  - Says beforehand, in one sentence, what would make the installer refuse. Refuses over a driver that packages brought.
  - Runs the installer silently with the options of its release. It builds its modules first; then the uninstaller of an
    earlier .run driver takes that one away. DKMS builds for each further kernel.
  - An installer that M(gpu_upgrade_stage) brought and proved beforehand is taken in place of O(source).
  - A run that was killed is repaired by the next one. Loading the module is the work of M(gpu_kernel_module).
options:
  state:
    description: V(absent) runs the driver's own uninstaller and takes away what that one leaves.
    type: str
    choices: [present, absent]
    default: present
  source:
    description: URL of the installer, or its path on the host.
    type: str
    default: ""
  sha256:
    description: The file's checksum.
    type: str
    default: ""
  sha256_url:
    description: URL of a .sha256sum file that names it. Not asked where O(sha256) is given.
    type: str
    default: ""
  version:
    description: Version of the driver, for example V(580.178.04).
    type: str
    default: ""
  flavour:
    description: Kind of the kernel modules.
    type: str
    choices: [open, proprietary]
    default: open
  kernels:
    description: The kernels that get modules, as C(uname -r) says them, the running one first. Empty means that one.
    type: list
    elements: str
    default: []
  dkms:
    description: Register the modules with DKMS, so that later kernels get theirs too.
    type: bool
    default: true
  opengl:
    description: Install the parts for displays too.
    type: bool
    default: false
  uninstall:
    description: Path of the uninstaller of a .run driver that somebody else installed and that may be replaced.
    type: str
    default: ""
  timeout:
    description: Seconds without a byte after which the download is given up.
    type: int
    default: 60
  download_timeout:
    description: Seconds after which the whole download is given up.
    type: int
    default: 3600
  install_timeout:
    description: Seconds after which the installer is stopped.
    type: int
    default: 3600
attributes:
  check_mode:
    description: Can run in check mode and says what would change, without any download.
    support: full
  diff_mode:
    description: Shows version and kernels.
    support: full
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Install a driver from NVIDIA's server
  gpu_driver_runfile:
    source: https://download.nvidia.com/XFree86/Linux-x86_64/580.178.04/NVIDIA-Linux-x86_64-580.178.04.run
    sha256_url: https://download.nvidia.com/XFree86/Linux-x86_64/580.178.04/NVIDIA-Linux-x86_64-580.178.04.run.sha256sum
    version: 580.178.04
    flavour: open

- name: Install from a file on the host, for two kernels
  gpu_driver_runfile:
    source: /root/NVIDIA-Linux-x86_64-580.178.04.run
    version: 580.178.04
    flavour: proprietary
    kernels: [6.1.0-40-amd64, 6.1.0-41-amd64]

- name: Take the driver away
  gpu_driver_runfile:
    state: absent
"""

RETURN = r"""
version:
  description: Version of the .run driver after the run; null where there is none.
  returned: always
  type: str
  sample: 580.178.04
lacking:
  description: What was not as wished before the run, in words.
  returned: always
  type: list
  elements: str
  sample: ["the module for 6.1.0-41-amd64"]
needs_file:
  description: >-
    Whether the file of O(source) is needed. Further kernels of a driver that is there are built without it, and one
    that was brought beforehand takes its place.
  returned: always
  type: bool
  sample: false
removed:
  description: What O(state=absent) took away, in words.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.gpu_ready.base import manifest
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.driver.runfile import fetch as runfile_fetch
from ansible.module_utils.gpu_ready.driver.runfile import install as runfile
from ansible.module_utils.gpu_ready.driver.runfile import installed_files
from ansible.module_utils.gpu_ready.driver.runfile import messages as runfile_text
from ansible.module_utils.gpu_ready.driver.runfile import state as runfile_state
from ansible.module_utils.gpu_ready.driver.runfile import store as runfile_store

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "source": {"type": "str", "default": ""},
    "sha256": {"type": "str", "default": ""},
    "sha256_url": {"type": "str", "default": ""},
    "version": {"type": "str", "default": ""},
    "flavour": {"type": "str", "choices": ["open", "proprietary"], "default": "open"},
    "kernels": {"type": "list", "elements": "str", "default": []},
    "dkms": {"type": "bool", "default": True},
    "opengl": {"type": "bool", "default": False},
    "uninstall": {"type": "str", "default": ""},
    "timeout": {"type": "int", "default": 60},
    "download_timeout": {"type": "int", "default": 3600},
    "install_timeout": {"type": "int", "default": 3600},
}


def state(host):
    version = installed_files.installed(host)
    return "NVIDIA driver %s (.run)\n" % version if version else ""


def present(host, params, check):
    kernels = params["kernels"] or [host.uname()[0]]
    wish = runfile_text.Wish(params["version"], params["flavour"], kernels, params["dkms"], params["opengl"])
    lacking = runfile_state.lacking(host, wish)
    kept = runfile_store.kept(wish.version, params["sha256"])
    needs_file = bool(lacking) and not kept and not runfile_state.only_builds(host, wish)
    if lacking:
        runfile_state.refuse_packages(host, wish)
        ours = "driver" in manifest.read().get("runfile", {})
        runfile_state.refuse_foreign(host, ours, bool(params["uninstall"]))
        runfile_state.refuse_flavour(wish)
    if lacking and not check:
        source = kept or runfile_fetch.Source(params["source"], params["sha256"], params["sha256_url"])
        limits = runfile_fetch.Limits(params["timeout"], params["download_timeout"], params["install_timeout"])
        runfile.install(host, wish, source, limits)
    after = "".join("%s module for %s\n" % (wish.flavour, kernel) for kernel in kernels)
    after = "NVIDIA driver %s (.run)\n%s" % (wish.version, after)
    before = "lacking: %s\n" % ", ".join(lacking) if lacking else after
    return {
        "changed": bool(lacking),
        "version": installed_files.installed(host) if check else wish.version,
        "lacking": lacking,
        "needs_file": needs_file,
        "removed": [],
        "diff": {"before": state(host) + before if check and lacking else before, "after": after},
    }


def absent(host, check):
    before = state(host)
    there = bool(before or installed_files.uninstaller(host))
    removed = runfile.remove(host) if there and not check else []
    diff = {"before": before, "after": ""}
    version = installed_files.installed(host)
    return {"changed": there, "version": version, "lacking": [], "needs_file": False, "removed": removed, "diff": diff}


def run(host, params, check):
    return present(host, params, check) if params["state"] == "present" else absent(host, check)


def main():
    run_module(run, ARGUMENT_SPEC, required_if=[("state", "present", ["source", "version"])])


if __name__ == "__main__":
    main()
