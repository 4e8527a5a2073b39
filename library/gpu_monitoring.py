#!/usr/bin/python
"""Run the service that writes metrics of the GPUs for node_exporter."""

DOCUMENTATION = r"""
module: gpu_monitoring
short_description: Run the service that writes metrics of the GPUs for node_exporter
description:
  - Writes the program, its settings and its unit of systemd, and starts it. Everything is recorded in the manifest on
    the node first, so that C(uninstall.yml) removes it.
  - A service that does not run is a failure with the cause from its journal.
options:
  state:
    description: Whether the service exists. V(check) only writes the program of gpu-ready-check, beside the service.
    type: str
    choices: [present, absent, check]
    default: present
  python:
    description: Python interpreter of the host, version 3.6 or newer.
    type: str
    default: /usr/bin/python3
  directory:
    description: Directory that node_exporter reads (C(--collector.textfile.directory)).
    type: path
    default: /var/lib/prometheus/node-exporter
  interval:
    description: Seconds between two samples.
    type: int
    default: 30
  old_names:
    description: Also write C(container_accelerator_*), the names of the kubelet before Kubernetes 1.25.
    type: bool
    default: false
  branch_ends:
    description: Month in which the support of a driver branch ends, by branch.
    type: dict
    default: {}
  reload:
    description: Let systemd read its units before the service starts.
    type: bool
    default: false
attributes:
  check_mode: {support: full, description: Reports what would change; changes nothing.}
  diff_mode: {support: full, description: Shows unit and settings before and after.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Write metrics for node_exporter
  gpu_ready.nodes.gpu_monitoring:
    directory: /var/lib/node_exporter

- name: Also under the names that old dashboards use
  gpu_ready.nodes.gpu_monitoring:
    old_names: true

- name: Remove the service
  gpu_ready.nodes.gpu_monitoring:
    state: absent
"""

RETURN = r"""
paths:
  description: Files that changed, without the program.
  returned: always
  type: list
  elements: str
"""

from ..module_utils.gpu_ready.answers.system import MonitoringAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.lifecycle import monitoring
from ..module_utils.gpu_ready.system.monitoring_files import MonitoringParams

ANSWER = MonitoringAnswer
ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["present", "absent", "check"], "default": "present"},
    "python": {"type": "str", "default": "/usr/bin/python3"},
    "directory": {"type": "path", "default": "/var/lib/prometheus/node-exporter"},
    "interval": {"type": "int", "default": 30},
    "old_names": {"type": "bool", "default": False},
    "branch_ends": {"type": "dict", "default": {}},
    "reload": {"type": "bool", "default": False},
}


def run(host, params, check):
    if params["state"] == "absent":
        return MonitoringAnswer(**monitoring.remove(host, check))
    if params["state"] == "check":
        return MonitoringAnswer(**monitoring.install_check(host, check))
    given = MonitoringParams(*(params[name] for name in MonitoringParams._fields))
    return MonitoringAnswer(**monitoring.install(host, given, check))


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
