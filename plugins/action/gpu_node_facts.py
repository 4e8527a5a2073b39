# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Returns the facts of a host without what is private, and with what the catalog says of them."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail

from ..module_utils.gpu_ready.answers.node import NodeFactsAnswer
from ..module_utils.gpu_ready.base import secret_values
from ..module_utils.gpu_ready.facts import public
from ..plugin_utils import answers
from . import gpu_node_plan


class ActionModule(gpu_node_plan.CollectingAction):
    """The plugin; Ansible finds it by this name."""

    seconds = gpu_node_plan.SECONDS

    def ask_host(self, tmp: Any, task_vars: Any) -> dict[str, Any]:
        """Return the facts of a host. Raises WrongAnswer, AnsibleActionFail."""
        unknown = sorted(set(self._task.args) - {"treat_as"})
        if unknown:
            raise AnsibleActionFail(f"gpu_node_facts has no option {unknown[0]}; it has treat_as")
        self.treat_as = self._task.args.get("treat_as")
        return self.ask_facts(tmp, task_vars)

    def compute(self, facts: Any) -> dict[str, Any]:
        """Return the facts without the texts of files."""
        shown = secret_values.mask_values(public.public_json(facts))
        answer = {"changed": False, "ansible_facts": {"gpu_node": shown}}
        return answers.accept(NodeFactsAnswer, answer)
