# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Writes the facts of a host to a file of the control node, from which gpu-explain computes plans without the host.

The facts are read as gpu_node_plan reads them. Path and name of the file come from the operator and the inventory.
"""

from __future__ import annotations

import os
import time
from typing import Any

from ansible.release import __version__ as core

from ..module_utils.gpu_ready.base import secret_values
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..module_utils.gpu_ready.facts.collected import CollectedCapture
from ..plugin_utils import answers
from ..plugin_utils.control_node import plain, version
from ..plugin_utils.gpu_ready.explain import captures
from ..plugin_utils.gpu_ready.settings.variables import settings_for_plan
from . import gpu_node_plan

OPTIONS: dict[str, dict[str, Any]] = {
    "directory": {"type": "path", "default": "captures"},
    "settings": {"type": "dict", "default": {}},
}


class ActionModule(gpu_node_plan.CollectingAction):
    """The plugin; Ansible finds it by this name."""

    seconds = gpu_node_plan.SECONDS
    record = CollectedCapture
    host = ""
    directory = ""

    def ask_host(self, tmp: Any, task_vars: Any) -> dict[str, Any]:
        """Return where the capture of a host is. Raises WrongAnswer, AnsibleActionFail."""
        self.refuse_wrong_values(task_vars)
        _, given = self.validate_argument_spec(argument_spec=OPTIONS)
        self.host, self.directory = str((task_vars or {})["inventory_hostname"]), given["directory"]
        self.settings = plain(given["settings"])
        self.treat_as = settings_for_plan(self.settings).settings.gpu_ready_treat_as or None
        return self.ask_facts(tmp, task_vars)

    def compute(self, facts: Any) -> dict[str, Any]:
        """Write the capture; return its path, "" under --check, where no file is written."""
        assert self.collected
        header = captures.Header(
            host=self.host,
            captured=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            gpu_ready=version(),
            ansible_core=core,
            settings=secret_values.mask_values(self.settings),
        )
        if self._task.check_mode:
            return {"changed": False, "path": ""}
        try:
            raw = answers.clean(self.collected["raw"], gpu_node_plan.plain_lines)
            return {"changed": False, "path": captures.write(self.directory, header, facts, raw)}
        except OSError as error:
            raise GpuReadyError(
                f"{self.directory}: the capture cannot be written ({os.strerror(error.errno or 0)})."
                " Set gpu_capture_directory to a writable directory."
            ) from None
