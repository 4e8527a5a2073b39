#!/usr/bin/python
"""Report the result of a run: the documentation. plugins/action/gpu_report.py does it, in the process of Ansible."""

DOCUMENTATION = r"""
---
module: gpu_report
short_description: Report the result of a run
description:
  - Runs on the control node. Prints the table of V(site) or V(audit), the path of the page and the command that comes
    next, and writes the report as a page, as JSON and as metrics.
  - A report is not a managed state, so writing it is not a change.
options:
  kind:
    description: The playbook. Of each kind one report is the latest.
    type: str
    choices: [site, audit, upgrade, rollback, undrain, uninstall]
    default: site
  parts:
    description:
      - What is known of the hosts, first the part, then the host. Each may be absent.
      - C(row), C(gpu_host), C(steps), C(refusals) and C(warnings) of its plan for V(site), with C(verify), the answer
        of M(gpu_verify), C(seconds) by step, and C(failure), which holds C(step), C(message) and C(seconds).
      - C(audit), C(failure) and C(unreachable) for V(audit).
      - C(outcome) for V(upgrade) and V(rollback).
      - C(turn), the answer of the action plugin gpu_turn, for V(undrain).
      - C(removal), the answer of M(gpu_uninstall), and C(failure) for V(uninstall).
    type: dict
    default: {}
  directory:
    description: Directory for the files, created if missing. Empty writes none.
    type: path
    default: ""
  formats:
    description:
      - V(json) for programs, V(html) for people, V(prometheus) for the textfile collector of node_exporter.
    type: list
    elements: str
    choices: [json, html, prometheus]
    default: [json, html]
  keep:
    description: Number of runs of this kind whose files are kept; 0 keeps all.
    type: int
    default: 0
  width:
    description: Maximum width of a line of the table; 0 is the width of the terminal.
    type: int
    default: 0
  record:
    description: File with the record of the rollout, for V(upgrade) and V(rollback).
    type: path
    default: ""
  format:
    description: Of the text of an audit. V(table) and V(diff) are for people, V(json) and V(csv) for programs.
    type: str
    choices: [table, diff, json, csv]
    default: table
  path:
    description: File that the text of an audit is written to; empty writes none.
    type: path
    default: ""
attributes:
  check_mode:
    description: Makes the text and writes no file.
    support: full
  diff_mode:
    description: Of an audit shows the differences of each host below the table.
    support: full
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Report two hosts
  gpu_ready.nodes.gpu_report:
    directory: reports
    formats: [html, prometheus]
    keep: 20
    parts:
      row: {node1: "{{ hostvars['node1'].gpu_plan_result.row }}"}
      failure: {node2: {step: Install, message: disk full}}

- name: Only the table
  gpu_ready.nodes.gpu_report:
    parts: {row: {node1: {}}}

- name: Write an audit as JSON
  gpu_ready.nodes.gpu_report:
    kind: audit
    parts: {audit: {node1: "{{ gpu_audit_result.audit }}"}}
    format: json
    path: audit.json
"""

RETURN = r"""
counts:
  description: Number of hosts by result.
  returned: always
  type: dict
  sample: {"ready": 5, "refused": 1}
bad:
  description: A message per host that is not in a good state.
  returned: always
  type: dict
  sample: {"node1": "Install: disk full"}
paths:
  description: The files of this run.
  returned: always
  type: list
  elements: str
  sample: [reports/2026-11-21T02-12-00Z.json, reports/2026-11-21T02-12-00Z.html]
"""

from ..module_utils.gpu_ready.answers.controller import ReportAnswer
from ..module_utils.gpu_ready.base.action_plugins import run_without_plugin

ANSWER = ReportAnswer
ARGUMENT_SPEC = {
    "kind": {
        "type": "str",
        "choices": ["site", "audit", "upgrade", "rollback", "undrain", "uninstall"],
        "default": "site",
    },
    "parts": {"type": "dict", "default": {}},
    "directory": {"type": "path", "default": ""},
    "formats": {
        "type": "list",
        "elements": "str",
        "choices": ["json", "html", "prometheus"],
        "default": ["json", "html"],
    },
    "keep": {"type": "int", "default": 0},
    "width": {"type": "int", "default": 0},
    "record": {"type": "path", "default": ""},
    "format": {"type": "str", "choices": ["table", "diff", "json", "csv"], "default": "table"},
    "path": {"type": "path", "default": ""},
}


def main():
    run_without_plugin("gpu_report", ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
