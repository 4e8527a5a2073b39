#!/usr/bin/python
"""Build a driver's modules beside the one that runs, and take those that another host built."""

DOCUMENTATION = r"""
module: gpu_upgrade_modules
short_description: Build a driver's modules beforehand, and take those of another host
description:
  - V(built) builds the modules of a package in the package manager's cache, in folders of our own, and packs them into
    C(/var/lib/gpu-ready/modules/modules.tar.gz).
  - V(taken) accepts such an archive of another host, which lies there by then, by its checksum and what is in it.
  - V(offered) has DKMS copy these modules in place of compiling, by a file in C(/etc/dkms) for this version and kernel;
    V(withdrawn) takes that back. DKMS signs and installs as it always does.
options:
  state:
    description: What is to be done.
    type: str
    choices: [built, taken, offered, withdrawn]
    required: true
  alike:
    description: RV(gpu_upgrade_stage#module:alike) of this host; for V(built) and V(taken).
    type: dict
    default: {}
  record:
    description: RV(record) of the host that built; only for V(taken).
    type: dict
    default: {}
attributes:
  check_mode: {support: full, description: Changes nothing.}
  diff_mode: {support: none, description: The archive is no configuration.}
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Build what the upgrade will install
  gpu_upgrade_modules:
    state: built
    alike: "{{ gpu_upgrade_staged.alike }}"
  register: gpu_upgrade_built

- name: Take what another host built
  gpu_upgrade_modules:
    state: taken
    alike: "{{ gpu_upgrade_staged.alike }}"
    record: "{{ hostvars.gpu1.gpu_upgrade_built.record }}"

- name: Have DKMS compile again
  gpu_upgrade_modules:
    state: withdrawn
"""

RETURN = r"""
record:
  description: What the archive is - for which hosts, which module and version, its checksum.
  returned: for built and taken
  type: dict
  sample: {"name": "nvidia", "version": "595.91.07", "sha256": "6f1e..."}
offered:
  description: Whether DKMS will take the modules; else it compiles.
  returned: for offered
  type: bool
why:
  description: Why it will not.
  returned: for offered
  type: str
"""

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.upgrade import modules as upgrade_modules

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["built", "taken", "offered", "withdrawn"], "required": True},
    "alike": {"type": "dict", "default": {}},
    "record": {"type": "dict", "default": {}},
}


def offer(host, check):
    try:
        offered = bool(upgrade_modules.record(host, None)) if check else upgrade_modules.offer(host)
    except upgrade_modules.ModulesError as error:
        # DKMS compiles, as it would without us: no reason for a turn to fail.
        upgrade_modules.withdraw(host)
        return {"changed": False, "offered": False, "why": str(error)}
    return {"changed": offered, "offered": offered, "why": "" if offered else "none lie here for the running kernel"}


def run(host, params, check):
    state, alike, given = params["state"], params["alike"], params["record"]
    if state == "withdrawn":
        return {"changed": bool(not check and upgrade_modules.withdraw(host))}
    if state == "offered":
        return offer(host, check)
    known = upgrade_modules.record(host, alike)
    if check or (state == "built" and known) or (state == "taken" and known == given):
        return {"changed": check and known is None, "record": known or {}}
    if state == "built":
        return {"changed": True, "record": upgrade_modules.build(host, alike)}
    return {"changed": True, "record": upgrade_modules.take(host, given, alike)}


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
