# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Reports the audits of all hosts: makes the text, and writes it to the operator's file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ..module_utils.gpu_ready.answers.controller import AuditReportAnswer
from ..module_utils.gpu_ready.base import files
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..modules import gpu_audit_report as module
from ..plugin_utils import terminal
from ..plugin_utils.control_node import ControlNodeAction
from ..plugin_utils.gpu_ready.report import audit_table, run


class ActionModule(ControlNodeAction):
    """The plugin; Ansible finds it by this name."""

    module = module

    def compute(self, given: dict[str, Any]) -> AuditReportAnswer:
        """Return the audit in the requested format. Raises GpuReadyError."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        made = audit_table.build(run.entries(given["parts"]), moment)
        text = audit_table.text(made, given["format"], terminal.columns(given["width"]), bool(self._task.diff))
        path = str(Path(given["path"]).absolute()) if given["path"] and not self._task.check_mode else None
        if path:
            try:
                files.write_atomic(path, (text.rstrip("\n") + "\n").encode("utf-8"), 0o644)
            except OSError as error:
                raise GpuReadyError(
                    f"The audit cannot be written to {path} ({error.strerror}): set gpu_audit_path to a writable file."
                ) from None
        states = {name: one.state.replace("_", " ") for name, one in made.hosts.items()}
        terminal.show(f"The audit is in {path}" if path else text, states)
        return AuditReportAnswer(made.counts, audit_table.bad(made), path)
