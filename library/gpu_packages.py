#!/usr/bin/python
"""Install, remove and hold packages in one call and record what is new."""

DOCUMENTATION = r"""
module: gpu_packages
short_description: Install, remove and hold packages, and record what is new
description:
  - Works with apt, dnf and yum. Waits for other package managers, finishes what a killed run left incomplete, simulates
    first, and refuses a new kernel or a removal that was not requested.
  - Records in the manifest on the node, before acting, exactly the packages that are new, so that uninstall.yml removes
    these and no others.
options:
  names:
    description:
      - Packages to install, as names or as mappings of V(name) and V(version); a version may end in V(*).
      - A metapackage may have V(parts), a regular expression for names of its dependencies. These are installed in the
        versions that this version of it names, not in newer ones.
    type: list
    elements: raw
    default: []
  optional:
    description: Packages like O(names) that are skipped where no source of the host offers them.
    type: list
    elements: raw
    default: []
  streams:
    description: Module streams to enable, by module. Another enabled stream of the module is reset.
    type: dict
  remove:
    description: Packages to remove (their configuration stays).
    type: list
    elements: str
    default: []
  purge:
    description: Removes the configuration of O(remove) too, where the package manager would leave it.
    type: bool
    default: false
  hold:
    description: Packages to protect from upgrades.
    type: list
    elements: str
    default: []
  unhold:
    description: Packages to release before anything else.
    type: list
    elements: str
    default: []
  allow_remove:
    description: Packages that may be removed because others conflict with them.
    type: list
    elements: str
    default: []
  update_cache:
    description: Read the package lists again when they are older than a day or offer no matching version.
    type: bool
    default: false
  purpose:
    description: What the packages are for, as errors name it.
    type: str
    default: the packages
  waited:
    description:
      - Seconds for which the caller has waited for other package managers. The module then waits a few more itself, and
        returns RV(waits_for) and nothing else where one still works; the caller shows that and calls again.
      - Without it the module waits as long as it may.
    type: int
attributes:
  check_mode: {support: full, description: Predicts the change; changes nothing.}
  diff_mode: {support: full, description: Lists the packages.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Install docker
  gpu_ready.nodes.gpu_packages:
    names: [docker.io]
    update_cache: true
    purpose: the docker engine

- name: Install a driver of one branch and keep it
  gpu_ready.nodes.gpu_packages:
    names: [{name: nvidia-kernel-open-dkms, version: 580.95.05*}]
    hold: [nvidia-kernel-open-dkms]

- name: Install a driver of one module stream
  gpu_ready.nodes.gpu_packages:
    names: [nvidia-driver, kmod-nvidia-open-dkms]
    streams: {nvidia-driver: 580-open}

- name: Finish what a killed run left incomplete
  gpu_ready.nodes.gpu_packages:
"""

RETURN = r"""
installed:
  description: Version by name of what is new or upgraded.
  returned: always
  type: dict
  sample: {docker.io: 20.10.24+dfsg1-1+deb12u1}
removed:
  description: Removed packages.
  returned: always
  type: list
repaired:
  description: Packages that a killed run had left incomplete.
  returned: always
  type: list
held:
  description: Packages whose hold was set.
  returned: always
  type: list
unheld:
  description: Packages whose hold was released.
  returned: always
  type: list
streams:
  description: Module streams that were enabled.
  returned: always
  type: dict
versions:
  description: Version on the host of each package in O(names), after the call.
  returned: outside check mode
  type: dict
waits_for:
  description: The process for which this call has waited in vain, with O(waited); empty for none.
  returned: always
  type: str
  sample: process 7127 (apt-get)
"""

from ..module_utils.gpu_ready.answers.packages import PackagesAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.packaging import install, select
from ..module_utils.gpu_ready.upgrade import journal

ANSWER = PackagesAnswer
ARGUMENT_SPEC = {
    "names": {"type": "list", "elements": "raw", "default": []},
    "optional": {"type": "list", "elements": "raw", "default": []},
    "streams": {"type": "dict"},
    "remove": {"type": "list", "elements": "str", "default": []},
    "purge": {"type": "bool", "default": False},
    "hold": {"type": "list", "elements": "str", "default": []},
    "unhold": {"type": "list", "elements": "str", "default": []},
    "allow_remove": {"type": "list", "elements": "str", "default": []},
    "update_cache": {"type": "bool", "default": False},
    "purpose": {"type": "str", "default": "the packages"},
    "waited": {"type": "int"},
}


def run(host, params, check):
    manager = select.choose_manager(host, journal.is_open(host))
    waits_for = "" if check else manager.report_wait(params["waited"])
    if waits_for:
        return PackagesAnswer(waits_for=waits_for)
    return PackagesAnswer(**install.converge(manager, install.parse_transaction(params), check))


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
