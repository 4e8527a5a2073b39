#!/usr/bin/python
"""Record the outcome of a verification on its host."""

DOCUMENTATION = r"""
module: gpu_verified
short_description: Record the outcome of a verification on its host
description:
  - Writes C(/var/lib/gpu-ready/verified.json), by which later plans know that the host is verified.
  - M(gpu_verify) calls it with the verdict of the control node.
options:
  record:
    description: The outcome, with the state of the host to which it applies.
    type: dict
    required: true
attributes:
  check_mode:
    description: Writes nothing.
    support: full
  diff_mode:
    description: The record is for programs.
    support: none
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Forget that the host was verified
  gpu_ready.nodes.gpu_verified:
    record: {ok: false, result: failed, reasons: [the site replaced a GPU]}

- name: See what it would do
  gpu_ready.nodes.gpu_verified:
    record: {ok: false, result: failed}
  check_mode: true

- name: Verify, which records the outcome itself
  gpu_ready.nodes.gpu_verify:
"""

RETURN = r"""
changed:
  description: Whether the record was written.
  returned: always
  type: bool
"""

from ..module_utils.gpu_ready.answers.verify import VerifiedAnswer
from ..module_utils.gpu_ready.base import records
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.base.files import write_json_file
from ..module_utils.gpu_ready.facts import verified
from ..module_utils.gpu_ready.facts.model import VerifiedFacts

ANSWER = VerifiedAnswer
ARGUMENT_SPEC = {"record": {"type": "dict", "required": True}}


def run(host, params, check):
    record = records.from_json(VerifiedFacts, params["record"])
    if not check:
        write_json_file(verified.PATH, verified.to_json(record), 0o644)
    return VerifiedAnswer(changed=True)


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
