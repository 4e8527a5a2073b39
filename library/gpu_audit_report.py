#!/usr/bin/python
# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Report the audits of all hosts: the documentation. plugins/action/gpu_audit_report.py does it."""

DOCUMENTATION = r"""
module: gpu_audit_report
short_description: Report the audits of all hosts
description:
  - Runs on the control node. Prints a table, differences, JSON or CSV of the results of M(gpu_audit).
  - A report is not a managed state, so writing it is not a change.
options:
  parts:
    description: What is known of the hosts, first the part (V(audit), V(failure), V(unreachable)), then the host.
    type: dict
    required: true
  format:
    description: V(table) for people, V(diff) for what differs, V(json) and V(csv) for programs.
    type: str
    choices: [table, diff, json, csv]
    default: table
  path:
    description: File on the control node that the text is written to; empty writes none.
    type: path
    default: ""
  width:
    description: Maximum width of a line of the table; 0 is that of the terminal.
    type: int
    default: 0
attributes:
  check_mode:
    description: Makes the text and writes no file.
    support: full
  diff_mode:
    description: Shows the differences of each host below the table.
    support: full
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Show a table
  gpu_ready.nodes.gpu_audit_report:
    parts: {audit: {node1: "{{ gpu_audit_result.audit }}"}}

- name: Write JSON
  gpu_ready.nodes.gpu_audit_report:
    parts: {audit: {node1: "{{ gpu_audit_result.audit }}"}}
    format: json
    path: audit.json

- name: Report that a host did not answer
  gpu_ready.nodes.gpu_audit_report:
    parts: {unreachable: {node1: no route to host}}
"""

RETURN = r"""
counts:
  description: Number of hosts by state.
  returned: always
  type: dict
  sample: {"ok": 5, "drift": 1}
bad:
  description: A message per host that is not in the desired state.
  returned: always
  type: dict
  sample: {"node1": "drift: loaded: no NVIDIA module is loaded"}
path:
  description: The file, null if none was written.
  returned: always
  type: str
  sample: audit.json
"""

from ..module_utils.gpu_ready.answers.controller import AuditReportAnswer
from ..module_utils.gpu_ready.base.action_plugins import run_without_plugin

ANSWER = AuditReportAnswer
ARGUMENT_SPEC = {
    "parts": {"type": "dict", "required": True},
    "format": {"type": "str", "choices": ["table", "diff", "json", "csv"], "default": "table"},
    "path": {"type": "path", "default": ""},
    "width": {"type": "int", "default": 0},
}


def main():
    run_without_plugin("gpu_audit_report", ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
