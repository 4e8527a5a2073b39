#!/usr/bin/python
"""Build a driver's modules beside the running driver, and use those that another host built."""

DOCUMENTATION = r"""
module: gpu_upgrade_modules
short_description: Build a driver's modules beforehand, and use those of another host
description:
  - V(built) builds the modules of a package in the package manager's cache, in a directory of its own, and packs them
    into C(/var/lib/gpu-ready/modules/modules.tar.gz).
  - V(accepted) accepts such an archive of a builder that the operator named, which the role copied there, by its
    checksum, its content and the host's own package.
  - V(offered) makes DKMS copy these modules in place of compiling, by a file in C(/etc/dkms) for this version and
    kernel. V(withdrawn) removes that file. DKMS signs and installs the modules as usual.
options:
  state:
    description: The desired state.
    type: str
    choices: [built, accepted, offered, withdrawn]
    required: true
  alike:
    description: RV(gpu_upgrade_stage#module:alike) of this host; except for V(withdrawn).
    type: dict
    default: {}
  record:
    description: RV(record) of the host that built the modules; only for V(accepted).
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

- name: Accept the modules of another host
  gpu_upgrade_modules:
    state: accepted
    alike: "{{ gpu_upgrade_staged.alike }}"
    record: "{{ hostvars.gpu1.gpu_upgrade_built.record }}"

- name: Let DKMS compile again
  gpu_upgrade_modules:
    state: withdrawn
"""

RETURN = r"""
record:
  description: The archive - for which hosts it is, name and version of the module, checksum.
  returned: for built and accepted
  type: dict
  sample: {"name": "nvidia", "version": "595.91.07", "sha256": "6f1e...", "size": 41943040}
offered:
  description: True if DKMS will copy the modules; else it compiles.
  returned: for offered
  type: bool
why:
  description: Why it compiles.
  returned: for offered
  type: str
"""

from ..module_utils.gpu_ready.base.zip_import import compile_once

compile_once()

from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.upgrade import modules

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["built", "accepted", "offered", "withdrawn"], "required": True},
    "alike": {"type": "dict", "default": {}},
    "record": {"type": "dict", "default": {}},
}


def offer(host, alike, check):
    try:
        offered = bool(modules.find_archive(host, alike)) if check else modules.offer(host, alike)
    except modules.ModulesError as error:
        modules.withdraw(host)  # DKMS compiles then, which is no reason for the upgrade to fail
        return {"changed": False, "offered": False, "why": str(error)}
    return {"changed": offered, "offered": offered, "why": "" if offered else "none for the running kernel"}


def run(host, params, check):
    state, alike = params["state"], params["alike"]
    if state == "withdrawn":
        return {"changed": bool(not check and modules.withdraw(host))}
    if state == "offered":
        return offer(host, alike, check)
    given = modules.from_json(params["record"]) if state == "accepted" else None
    known = modules.find_archive(host, alike)
    # What another host built is never handed on.
    if known and not (known.built_here if given is None else known == given._replace(built_here=False)):
        known = None
    if check or known:
        return {"changed": check and known is None, "record": modules.to_json(known) if known else {}}
    archive = modules.accept(host, given, alike) if given else modules.build(host, alike)
    return {"changed": True, "record": modules.to_json(archive)}


def main():
    run_changing_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
