#!/usr/bin/python
"""Fetch packages and installers of a driver upgrade and of the way back, without installing any."""

DOCUMENTATION = r"""
module: gpu_upgrade_stage
short_description: Fetch packages and installers of a driver upgrade and of the way back
description:
  - Reads the package lists again and fills the package manager's cache, so that neither the upgrade nor the way back
    needs the network. Installs, removes and configures nothing.
  - NVIDIA's installers are brought and proved by their checksums. Those of the control node have to lie at RV(files)
    before, which check mode tells.
options:
  todo:
    description: RV(gpu_node_plan#module:todo) of the host.
    type: dict
    required: true
  installer:
    description: The installer of the driver from before, as RV(gpu_node_plan#module:upgrade) says it, or empty.
    type: dict
    default: {}
  target:
    description: The version that is wanted, for the journal.
    type: str
    default: ""
  fetch:
    description: Off where a run that goes on has all here; then only RV(alike) is told.
    type: bool
    default: true
attributes:
  check_mode: {support: full, description: Fetches nothing.}
  diff_mode: {support: none, description: Nothing is changed.}
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Fetch what the upgrade and the way back need
  gpu_upgrade_stage:
    todo: "{{ gpu_plan_result.todo }}"

- name: Ask only what would be fetched
  gpu_upgrade_stage:
    todo: "{{ gpu_plan_result.todo }}"
  check_mode: true

- name: Fetch for a plan that was saved
  gpu_upgrade_stage:
    todo: "{{ lookup('file', 'plan.json') | from_json }}"
"""

RETURN = r"""
coming:
  description: Packages that will come, which lie in the cache now.
  returned: always
  type: list
  elements: str
  sample: ["libcuda1=595.91.07-1"]
kept:
  description: Packages of now, which lie in the cache for the way back.
  returned: always
  type: list
  elements: str
  sample: ["libcuda1=580.95.05-1"]
installers:
  description: Versions whose installers were fetched; in check mode, those that are not here.
  returned: always
  type: list
  elements: str
  sample: ["595.91.07"]
alike:
  description: >-
    What two hosts have to share for one to take the modules that the other built, or why this one takes none.
  returned: always
  type: dict
  sample: {"package": "nvidia-kernel-open-dkms=595.91.07-1", "system": "debian 12", "kernel": "6.1.0-40-amd64"}
files:
  description: Where the role puts installers of the control node, by their path there.
  returned: always
  type: dict
  sample: {"/srv/NVIDIA-Linux-x86_64-595.91.07.run": "/var/lib/gpu-ready/installers/NVIDIA-driver-595.91.07.run"}
"""

import time

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.driver.runfile import fetch as runfile_fetch
from ansible.module_utils.gpu_ready.driver.runfile import store as runfile_store
from ansible.module_utils.gpu_ready.facts import base
from ansible.module_utils.gpu_ready.packaging import select
from ansible.module_utils.gpu_ready.upgrade import journal as upgrade_journal
from ansible.module_utils.gpu_ready.upgrade import modules as upgrade_modules
from ansible.module_utils.gpu_ready.upgrade import stage as upgrade_stage

ARGUMENT_SPEC = {
    "todo": {"type": "dict", "required": True},
    "installer": {"type": "dict", "default": {}},
    "target": {"type": "str", "default": ""},
    "fetch": {"type": "bool", "default": True},
}


def run(host, params, check):
    wanted = upgrade_stage.downloads(params["todo"])
    files = [one for one in (wanted["runfile"], params["installer"]) if one]
    result = {"changed": False, "coming": [], "kept": [], "installers": [], "alike": {}}
    result["files"] = {
        one["source"]: runfile_store.installer_path(one["version"]) for one in files if "://" not in one["source"]
    }
    if check:
        missing = [one["version"] for one in files if not runfile_store.find_installer(one["version"], one["sha256"])]
        return dict(result, coming=[str(one) for one in wanted["pins"] + wanted["names"]], installers=missing)
    journal = upgrade_journal.read(host)
    if not params["fetch"]:
        return dict(result, alike=journal.fetched.alike if journal and journal.fetched else {})
    staged = upgrade_stage.stage(select.choose_manager(host, upgrade_journal.is_open(host)), wanted)
    fetched = upgrade_stage.installers(files, host.uname()[1], runfile_fetch.RunfileLimits())
    secure_boot = base.secure_boot(host)
    alike = upgrade_modules.alike(host, staged.coming, secure_boot.on and not secure_boot.enrolled)
    if journal:
        upgrade_journal.write(upgrade_journal.record_fetched(journal, params["target"], int(time.time()), alike))
    changed = bool(staged.coming or fetched)
    return dict(result, changed=changed, coming=staged.coming, kept=staged.kept, installers=fetched, alike=alike)


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
