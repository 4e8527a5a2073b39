#!/usr/bin/python
"""Report the result of a run: the documentation. plugins/action/gpu_report.py does it, in the process of Ansible."""

DOCUMENTATION = r"""
---
module: gpu_report
short_description: Report the result of a run
description:
  - Runs on the control node. Reads what all hosts of the play have registered, and what V(report) of
    M(gpu_upgrade_fleet) returned. Prints the table of V(site) or V(audit), the path of the page and the command that
    comes next, and writes the report as a page, as JSON and as metrics.
  - A report is not a managed state, so writing it is not a change.
options:
  kind:
    description: The playbook, V(upgrade) for a rollback too. Of each kind one report is the latest.
    type: str
    choices: [site, audit, upgrade, undrain, uninstall]
    default: site
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
- name: Report the hosts of this play
  gpu_ready.nodes.gpu_report:
    directory: reports
    formats: [html, prometheus]
    keep: 20

- name: Only the table
  gpu_ready.nodes.gpu_report:

- name: Write an audit as JSON
  gpu_ready.nodes.gpu_report:
    kind: audit
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
        "choices": ["site", "audit", "upgrade", "undrain", "uninstall"],
        "default": "site",
    },
    "directory": {"type": "path", "default": ""},
    "formats": {
        "type": "list",
        "elements": "str",
        "choices": ["json", "html", "prometheus"],
        "default": ["json", "html"],
    },
    "keep": {"type": "int", "default": 0},
    "width": {"type": "int", "default": 0},
    "format": {"type": "str", "choices": ["table", "diff", "json", "csv"], "default": "table"},
    "path": {"type": "path", "default": ""},
}


def main():
    run_without_plugin("gpu_report", ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
