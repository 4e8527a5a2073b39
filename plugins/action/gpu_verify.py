# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Judges a host on the control node, by the evidence that the module of the same name collects."""

from __future__ import annotations

from typing import Any

from ..module_utils.gpu_ready.answers.verify import CollectedVerification
from ..module_utils.gpu_ready.base import records
from ..module_utils.gpu_ready.base.plain_text import plain_text
from ..module_utils.gpu_ready.base.records import RecordError
from ..module_utils.gpu_ready.diagnostics import messages  # noqa: F401 - compiled once, before Ansible starts processes
from ..module_utils.gpu_ready.verify.collect import CollectedEvidence, VerifyOptions
from ..module_utils.gpu_ready.verify.container import IMAGE
from ..module_utils.gpu_ready.verify.expectation import VerifyExpectation
from ..plugin_utils import answers
from ..plugin_utils.answer_bounds import WrongAnswer
from ..plugin_utils.control_node import plain
from ..plugin_utils.gpu_ready.answers.verify import VerifyAnswer
from ..plugin_utils.gpu_ready.completion.probes import probes_json
from ..plugin_utils.gpu_ready.verdict import outcome
from ..plugin_utils.process_limits import process_limits
from . import gpu_host_module, gpu_node_plan


class ActionModule(gpu_node_plan.CollectingAction):
    """The plugin; Ansible finds it by this name."""

    record = CollectedVerification

    def module_arguments(self) -> dict[str, Any]:
        """Return the arguments of the task, and what the host has to look for."""
        return {**self._task.args, "probes": probes_json()}

    def ask_host(self, tmp: Any, task_vars: Any) -> dict[str, Any]:
        """Return the verdict on a host. Raises WrongAnswer, AnsibleActionFail."""
        self.refuse_wrong_values(task_vars)
        given = plain(self._task.args)
        if self._task.check_mode:
            image = given.get("image") or given.get("archive") or IMAGE
            message = f"would compare the GPUs in a container of {image} with those of the host"
            return {**answered({"ok": None, "checks": [], "not_run": ["all"]}), "msg": message}
        answer = self.ask_module(tmp, task_vars)
        if self.collected is None:  # the module failed
            return answer
        with process_limits(seconds=gpu_host_module.EXPLAINING):
            done = self.judge(given)
        row = outcome.report_row(done)
        result = answer | answered(outcome.report_entry(done), row)
        kept = self.keep(records.to_json(done.record), task_vars)
        if kept.get("failed"):
            return result | {"failed": True, "msg": kept.get("msg", "")}
        if done.verdict.ok:
            return result | {"msg": "verified"}
        return result | {"failed": True, "msg": f"Not verified. {' '.join(done.record.reasons)}"}

    def judge(self, given: dict[str, Any]) -> outcome.Verification:
        """Return the verdict on what was collected. Raises WrongAnswer."""
        assert self.collected
        try:
            facts = gpu_node_plan.read_collected(self.collected["facts"])
            evidence = answers.clean(self.collected["evidence"], gpu_node_plan.plain_lines)
            collected = records.from_json(CollectedEvidence, evidence)
        except RecordError as error:
            raise WrongAnswer(plain_text(str(error))[: gpu_node_plan.QUOTED]) from None
        expect = records.from_json(VerifyExpectation, given.get("expect") or {})
        options = VerifyOptions("", str(given.get("devices", "all")), framework=str(given.get("framework", "none")))
        return outcome.judge(facts, collected, expect, str(given.get("digest", "")), options)

    def keep(self, record: dict[str, Any], task_vars: Any) -> dict[str, Any]:
        """Have the host keep the outcome; return the answer of that module."""
        task = self._task.copy()
        task.action, task.args = "gpu_ready.nodes.gpu_verified", {"record": record}
        action = gpu_host_module.ActionModule(
            task=task,
            connection=self._connection,
            play_context=self._play_context,
            loader=self._loader,
            templar=self._templar,
            shared_loader_obj=self._shared_loader_obj,
        )
        kept: dict[str, Any] = action.run(None, task_vars)
        return kept


def answered(report: dict[str, Any], row: dict[str, str | None] | None = None) -> dict[str, Any]:
    """Return what the task answers of a verdict."""
    return answers.accept(VerifyAnswer, {"changed": True, "verify": report, "row": row})
