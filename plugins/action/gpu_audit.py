# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Audits a host on the control node: the module of the same name collects the facts on the host, as gpu_node_plan."""

from __future__ import annotations

from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ..plugin_utils import answers
from ..plugin_utils.control_node import plain
from ..plugin_utils.gpu_ready.answers.audit import AuditAnswer
from ..plugin_utils.gpu_ready.plan import answer as decide
from ..plugin_utils.gpu_ready.plan import audit, updates
from ..plugin_utils.gpu_ready.settings.variables import settings_for_plan
from . import gpu_node_plan


class ActionModule(gpu_node_plan.CollectingAction):
    """The plugin; Ansible finds it by this name."""

    seconds = gpu_node_plan.SECONDS
    refusals: Any = None
    variables: Any = None

    def ask_host(self, tmp: Any, task_vars: Any) -> dict[str, Any]:
        """Return the audit of a host. Raises WrongAnswer, AnsibleActionFail."""
        self.refuse_wrong_values(task_vars)
        self.settings, self.refusals = settings_for_plan(plain(self._task.args.get("settings") or {}))
        self.treat_as, self.variables = self.settings.gpu_ready_treat_as or None, task_vars
        return self.ask_facts(tmp, task_vars)

    def compute(self, facts: Any) -> dict[str, Any]:
        """Return the audit against the plan for these settings."""
        planned = decide.plan_audited(facts, self.settings, self.refusals)
        if boolean(self._task.args.get("updates", False), strict=False):
            request = updates.update_request(facts, self.settings, planned.choices)
            facts = facts._replace(offered=gpu_node_plan.ask_index(self, request, self.variables) if request else None)
        return answers.accept(AuditAnswer, {"changed": False, "audit": audit.answer_json(facts, planned)})
