# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Takes the lease of a host whose plan is to be carried out, and refuses it or shows and answers the plan to carry out.

What follows what is in plugin_utils/gpu_ready/turn/begin.py.
"""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ..plugin_utils.control_node import plain
from ..plugin_utils.gpu_ready.execute.model import StepFailed
from ..plugin_utils.gpu_ready.turn.begin import begin
from ..plugin_utils.gpu_ready.turn.model import PLAN, Unreachable
from ..plugin_utils.gpu_ready.turn.phases import PLANNING
from .gpu_turn import LeasedCaller

OPTIONS = {"part": {"type": "str", "default": ""}}


def without_screen(answer: dict[str, Any]) -> dict[str, Any]:
    """Return a plan without what was shown of it when it was made."""
    return {name: value for name, value in answer.items() if name not in ("changed", "diff", "warnings")}


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible is untyped
    """The plugin; Ansible finds it by this name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Return the plan to carry out; ``leased``: this run has the lease. A failure has the plan too."""
        super().run(tmp, task_vars)
        known = task_vars or {}
        _, given = self.validate_argument_spec(argument_spec=OPTIONS)
        host = LeasedCaller(self, known)
        result = without_screen(plain(known.get("gpu_plan_result") or {}))

        def ask() -> dict[str, Any]:
            answer = host.run("gpu_ready.nodes.gpu_node_plan", {"part": given["part"]}, PLANNING)
            return without_screen(answer)

        try:
            begin(host, result, ask, result.update)
            # A task of its own would cost a process for each host.
            result["lines"] = list(result.get("lines") or [result["plan"]["summary"]])
            for line in result["lines"]:
                host.show(PLAN, "plan", str(line))
        except StepFailed as error:
            result |= error.result
        except Unreachable as error:
            raise AnsibleConnectionFailure(str(error)) from None
        result |= {"leased": host.leased, "changed": bool(host.changed_steps), "changed_steps": host.changed_steps}
        return result | ({"warnings": host.warnings} if host.warnings else {})
