#!/usr/bin/python
# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT

DOCUMENTATION = r"""
---
module: gpu_capture
short_description: Keep the facts of a host in a file on the control node
description:
  - Collects the facts of M(gpu_node_plan) in one call, and the texts that they were read from, without secrets. Writes
    them to a file on the control node, from which C(gpu-explain fleet) computes plans. Changes nothing on the host.
options:
  directory:
    description:
      - Directory on the control node. It is created if it is missing, for its owner only.
      - The file has the name of the host in the inventory. An earlier one is replaced.
    type: path
    default: captures
  settings:
    description:
      - Public variables by name. They are kept with the facts, and plans are computed with them.
      - The action plugin sets the host's variables. What a task sets here has precedence.
    type: dict
    default: {}
attributes:
  check_mode:
    description: Collects the facts, and writes no file.
    support: full
  diff_mode:
    description: Nothing is changed.
    support: none
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Capture the host
  gpu_ready.nodes.gpu_capture:
    directory: captures
  register: captured
"""

RETURN = r"""
path:
  description: The file on the control node, empty in check mode.
  returned: always
  type: str
  sample: captures/gpu1.jsonl
"""

import gc

gc.disable()  # the process ends before there is much to collect
from ..module_utils.gpu_ready.base import records, secret_values
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.base.recording import RecordingHost
from ..module_utils.gpu_ready.facts.collected import CollectedCapture, collect_answer

ANSWER = CollectedCapture
ARGUMENT_SPEC = {"probes": {"type": "dict", "required": True}}


def run(host, params, check):
    recording = RecordingHost()
    facts = collect_answer(recording, params["probes"]).facts
    return CollectedCapture(secret_values.mask_texts(facts), records.to_json(recording.raw))


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
