#!/usr/bin/python
"""Assign on the control node which host builds a driver's modules for which others."""

DOCUMENTATION = r"""
module: gpu_upgrade_share
short_description: Assign which host builds a driver's modules for which others
description:
  - Only hosts that C(gpu_upgrade_builders) names build. A host takes modules from the first builder that its own value
    names and that has the same distribution, kernel and driver package. Runs on the control node.
options:
  hosts:
    description: Hosts that are prepared, in the order of the rollout.
    type: list
    elements: str
    required: true
  alike:
    description: RV(gpu_upgrade_stage#module:alike) by host.
    type: dict
    required: true
  named:
    description: C(gpu_upgrade_builders) by host.
    type: dict
    required: true
  groups:
    description: The inventory's groups.
    type: dict
    default: {}
  failures:
    description: Why a host could not build or accept modules, by host; for RV(origins).
    type: dict
    default: {}
attributes:
  check_mode: {support: full, description: It never changes anything.}
  diff_mode: {support: none, description: It never changes anything.}
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Assign builders
  gpu_upgrade_share:
    hosts: [gpu1, gpu2]
    alike: {gpu1: {kernel: 6.1.0-40-amd64}, gpu2: {kernel: 6.1.0-40-amd64}}
    named: {gpu1: [gpu1], gpu2: [gpu1]}
  delegate_to: localhost
  run_once: true

- name: Let a group of hosts build
  gpu_upgrade_share:
    hosts: [gpu1, gpu2]
    alike: "{{ alike }}"
    named: {gpu1: [builders], gpu2: [builders]}
    groups: {builders: [gpu1], all: [gpu1, gpu2]}
  delegate_to: localhost
  run_once: true

- name: Report where the modules come from, after one host could not build
  gpu_upgrade_share:
    hosts: [gpu1, gpu2]
    alike: "{{ alike }}"
    named: {gpu1: [gpu1], gpu2: [gpu1]}
    failures: {gpu1: the disk is full}
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
builders:
  description: Which host builds for each host that takes modules.
  returned: always
  type: dict
  sample: {"gpu1": "gpu1", "gpu2": "gpu1"}
limit:
  description: Bytes that an archive of modules may have.
  returned: always
  type: int
origins:
  description: Where the modules of each host come from.
  returned: always
  type: dict
  sample: {"gpu1": "built beforehand", "gpu2": "built on gpu1"}
table:
  description: The same, with equal hosts on one line.
  returned: always
  type: str
"""

from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.upgrade import share
from ..module_utils.gpu_ready.upgrade.model import ARCHIVE_LIMIT

ARGUMENT_SPEC = {
    "hosts": {"type": "list", "elements": "str", "required": True},
    "alike": {"type": "dict", "required": True},
    "named": {"type": "dict", "required": True},
    "groups": {"type": "dict", "default": {}},
    "failures": {"type": "dict", "default": {}},
}


def run(host, params, check):
    trusted = share.resolve_builders(params["hosts"], params["named"], params["groups"])
    shares = share.assign_builders(params["hosts"], params["alike"], trusted)
    origins = share.module_origins(params["hosts"], shares, params["failures"])
    table = share.origins_table(params["hosts"], origins)
    return {"changed": False, "builders": shares.builders, "origins": origins, "table": table, "limit": ARCHIVE_LIMIT}


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
