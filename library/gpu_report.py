#!/usr/bin/python
"""Tell how a run came out, as a table and as JSON."""

DOCUMENTATION = r"""
---
module: gpu_report
short_description: Tell how a run came out
description:
  - Runs on the control node. Makes a table of all hosts and writes the same as JSON.
  - A report is no managed state, so writing it is no change.
options:
  hosts:
    description:
      - What is known of each host. Each key of an entry may be absent.
      - C(row), C(steps), C(refusals), C(warnings) and C(gpu_host) come from its plan.
      - C(verify) is the answer of M(gpu_verify), C(failure) holds C(step) and C(message).
    type: dict
    default: {}
  parts:
    description: The same turned around, first the part, then the host. Cheaper to gather for thousands of hosts.
    type: dict
    default: {}
  folder:
    description: Folder for the JSON files, one a run and C(latest.json), made when missing. Empty writes none.
    type: path
    default: ""
  width:
    description: Most columns of a line.
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
    folder: reports
    hosts:
      node1: "{{ {'row': hostvars['node1'].gpu_plan_result.row} }}"
      node2: {failure: {step: Install, message: no room on the disk}}

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
  description: The table and the sentences below it.
  returned: always
  type: str
  sample: "host   distribution  GPUs"
counts:
  description: How many hosts came out how.
  returned: always
  type: dict
  sample: {"ready": 5, "refused": 1}
path:
  description: The JSON file, null where none was written.
  returned: always
  type: str
  sample: reports/2026-11-21T02-12-00Z.json
"""

import json
import os
import time

from ansible.module_utils.gpu_ready.base import files
from ansible.module_utils.gpu_ready.base.errors import GpuReadyError
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.report import run as report

ARGUMENT_SPEC = {
    "hosts": {"type": "dict", "default": {}},
    "parts": {"type": "dict", "default": {}},
    "folder": {"type": "path", "default": ""},
    "width": {"type": "int", "default": 150},
}


def write(folder, name, value):
    """Write the report under its own name and as latest.json; return the first path."""
    os.makedirs(folder, exist_ok=True)
    data = (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("utf-8")
    path = os.path.join(folder, name)
    files.write_atomic(path, data, 0o644)
    files.write_atomic(os.path.join(folder, "latest.json"), data, 0o644)
    return path


def run(host, params, check):
    moment = time.gmtime()
    hosts = params["hosts"] or report.entries(params["parts"])
    made = report.build(hosts, time.strftime("%Y-%m-%dT%H:%M:%SZ", moment), check)
    table = report.table(made, params["width"])
    path = None
    if params["folder"] and not check:
        folder = os.path.abspath(params["folder"])
        try:
            path = write(folder, time.strftime("%Y-%m-%dT%H-%M-%SZ.json", moment), made)
        except OSError as error:
            raise GpuReadyError(
                "The report cannot be written to %s (%s): set gpu_report_directory to a writable directory. "
                "What it says:\n\n%s" % (folder, error.strerror, table)
            ) from None
    return {"changed": False, "table": table, "counts": made["counts"], "path": path}


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
