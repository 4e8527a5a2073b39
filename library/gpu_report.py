#!/usr/bin/python
"""Report the result of a run as a table and as JSON."""

DOCUMENTATION = r"""
---
module: gpu_report
short_description: Report the result of a run
description:
  - Runs on the control node. Makes a table of all hosts and writes the same as JSON.
  - A report is not a managed state, so writing it is not a change.
options:
  hosts:
    description:
      - What is known of each host. Each key of an entry may be absent.
      - C(row), C(steps), C(refusals), C(warnings) and C(gpu_host) come from its plan.
      - C(verify) is the answer of M(gpu_verify), C(failure) holds C(step) and C(message).
    type: dict
    default: {}
  parts:
    description: The same by part, then by host. Cheaper to gather for thousands of hosts.
    type: dict
    default: {}
  directory:
    description: Directory for the JSON files, one per run and C(latest.json), created if missing. Empty writes none.
    type: path
    default: ""
  width:
    description: Maximum width of a line.
    type: int
    default: 150
attributes:
  check_mode:
    description: Makes the table and writes no file.
    support: full
  diff_mode:
    description: Nothing to show.
    support: none
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Report two hosts
  gpu_report:
    directory: reports
    hosts:
      node1: "{{ {'row': hostvars['node1'].gpu_plan_result.row} }}"
      node2: {failure: {step: Install, message: disk full}}

- name: Only the table
  gpu_report:
    hosts: {node1: {}}

- name: A narrow terminal
  gpu_report:
    width: 120
    parts: {row: {node1: {gpus: 2x Tesla P40}}}
"""

RETURN = r"""
table:
  description: The table and the messages below it.
  returned: always
  type: str
  sample: "host   distribution  GPUs"
counts:
  description: Number of hosts by result.
  returned: always
  type: dict
  sample: {"ready": 5, "refused": 1}
bad:
  description: A message per host that is not ready.
  returned: always
  type: dict
  sample: {"node1": "Install: disk full"}
path:
  description: The JSON file, null if none was written.
  returned: always
  type: str
  sample: reports/2026-11-21T02-12-00Z.json
"""

import json
import os
import time

from ..module_utils.gpu_ready.base import files
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.report import run as report

ARGUMENT_SPEC = {
    "hosts": {"type": "dict", "default": {}},
    "parts": {"type": "dict", "default": {}},
    "directory": {"type": "path", "default": ""},
    "width": {"type": "int", "default": 150},
}


def write(directory, name, value):
    """Write the report under its own name and as latest.json; return the first path."""
    os.makedirs(directory, exist_ok=True)
    data = (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("utf-8")
    path = os.path.join(directory, name)
    files.write_atomic(path, data, 0o644)
    files.write_atomic(os.path.join(directory, "latest.json"), data, 0o644)
    return path


def run(host, params, check):
    moment = time.gmtime()
    hosts = params["hosts"] or report.entries(params["parts"])
    made = report.build(hosts, time.strftime("%Y-%m-%dT%H:%M:%SZ", moment), check)
    table = report.table(made, params["width"])
    path = None
    if params["directory"] and not check:
        directory = os.path.abspath(params["directory"])
        try:
            path = write(directory, time.strftime("%Y-%m-%dT%H-%M-%SZ.json", moment), report.to_json(made))
        except OSError as error:
            raise GpuReadyError(
                "The report cannot be written to %s (%s): set gpu_report_directory to a writable directory. "
                "The report:\n\n%s" % (directory, error.strerror, table)
            ) from None
    return {"changed": False, "table": table, "counts": made.counts, "bad": report.bad(made), "path": path}


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
