# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Asks a scheduler about the node of a host, or changes it, on the host that has its programs: the task is delegated.

A failure is an answer too: the turn of the host (gpu_turn) continues with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..module_utils.gpu_ready.base.plain_text import plain_text
from ..plugin_utils.control_node import plain
from ..plugin_utils.gpu_ready.execute.model import SHORT, StepFailed
from ..plugin_utils.gpu_ready.turn.drain import until_done
from ..plugin_utils.gpu_ready.turn.model import NOTE, Elsewhere
from ..plugin_utils.progress.lines import event_text
from .gpu_execute import LONGEST, HostCaller

OPTIONS = {"call": {"type": "dict", "required": True}}
SILENT = (
    "{}, where the programs of the scheduler run, does not answer ({}). Check that it is up and accepts ssh, or correct"
    " gpu_drain_slurm_controller or gpu_drain_kubernetes_host"
)


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible is untyped
    """The plugin; Ansible finds it by this name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Return the answer of the scheduler's module."""
        super().run(tmp, task_vars)
        _, given = self.validate_argument_spec(argument_spec=OPTIONS)
        call = Elsewhere(**plain(given["call"]))
        name = str((task_vars or {})["inventory_hostname"])
        modules = HostCaller(self, task_vars or {})
        return self.ask(call, name, modules)

    def ask(self, call: Elsewhere, name: str, modules: HostCaller) -> dict[str, Any]:
        """Call the module until nothing is awaited any more."""

        def once(deadline: float) -> dict[str, Any]:
            arguments: Mapping[str, Any] = {**call.arguments, "deadline": deadline}
            return modules.run(f"gpu_ready.nodes.{call.module}", arguments, SHORT, call.check)

        def show(text: str) -> None:
            Display.display(self._display, event_text(name, NOTE, "drain", plain_text(text)))

        try:
            answer = until_done(once, call.seconds, modules.now, show)
        except StepFailed as error:
            return {"changed": False, "failure": str(error)}
        except AnsibleConnectionFailure as error:
            return {"changed": False, "failure": SILENT.format(call.host, plain_text(str(error))[:LONGEST])}
        kept = {key: answer.get(key) for key in ("owned", "kept")}
        return {**kept, "changed": bool(answer.get("changed")) and not (call.check and not self._task.check_mode)}
