# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Judges a host on the control node, by the evidence that the module of the same name collects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleConnectionFailure

from ..module_utils.gpu_ready.answers.verify import CollectedVerification
from ..module_utils.gpu_ready.base import records
from ..module_utils.gpu_ready.base.plain_text import plain_text
from ..module_utils.gpu_ready.verify.collect import CollectedEvidence, VerifyOptions
from ..module_utils.gpu_ready.verify.container import IMAGE
from ..module_utils.gpu_ready.verify.expectation import VerifyExpectation
from ..modules import gpu_verify as module
from ..plugin_utils import answers
from ..plugin_utils.control_node import plain
from ..plugin_utils.gpu_ready.answers.verify import VerifyAnswer
from ..plugin_utils.gpu_ready.completion.probes import probes_json
from ..plugin_utils.gpu_ready.verdict import outcome
from ..plugin_utils.module_calls import call_module
from ..plugin_utils.process_limits import process_limits
from . import gpu_host_module, gpu_node_plan


class ActionModule(gpu_node_plan.CollectingAction):
    """The plugin; Ansible finds it by this name."""

    record = CollectedVerification
    given: Mapping[str, Any] = {}
    done: outcome.Verification | None = None

    def module_arguments(self) -> dict[str, Any]:
        """Return the arguments of the task, and what the host has to look for."""
        return {**self._task.args, "probes": probes_json()}

    def ask_host(self, tmp: Any, task_vars: Any) -> dict[str, Any]:
        """Return the verdict on a host, which the host keeps. Raises WrongAnswer, AnsibleActionFail."""
        self.refuse_wrong_values(task_vars)
        _, self.given = self.validate_argument_spec(argument_spec=module.ARGUMENT_SPEC)
        if self._task.check_mode:
            image = self.given["image"] or self.given["archive"] or IMAGE
            message = f"would compare the GPUs in a container of {image} with those of the host"
            return {**answered({"ok": None, "checks": [], "not_run": ["all"]}), "msg": message}
        answer = self.ask_facts(tmp, task_vars)
        return answer if self.done is None else self.keep(answer, self.done, task_vars)

    def keep(self, answer: dict[str, Any], done: outcome.Verification, task_vars: Any) -> dict[str, Any]:
        """Have the host keep its verdict: without its record it is not verified, and a failed one has two reasons."""
        record = {"record": records.to_json(done.record)}
        try:
            kept = call_module(self, "gpu_ready.nodes.gpu_verified", record, task_vars, check=False)
        except AnsibleConnectionFailure as error:
            if done.verdict.ok:
                raise
            kept = {"failed": True, "msg": plain_text(str(error))}
        if not kept.get("failed"):
            return answer
        if done.verdict.ok:
            return {"failed": True, "changed": False, "msg": f"Verified, but not recorded: {kept.get('msg')}"}
        return answer | {"msg": f"{answer['msg']} The host does not know that: {kept.get('msg')}"}

    def read(self, facts: dict[str, Any]) -> Any:
        """Return the facts as the host answered them: its record confirms these. Raises RecordError."""
        return gpu_node_plan.read_records(facts)

    def compute(self, facts: Any) -> dict[str, Any]:
        """Return the verdict on what was collected. Raises RecordError."""
        assert self.collected
        evidence = answers.clean(self.collected["evidence"], gpu_node_plan.plain_lines)
        collected = records.from_json(CollectedEvidence, evidence)
        expect = records.from_json(VerifyExpectation, plain(self.given["expect"]))
        options = VerifyOptions("", self.given["devices"], framework=self.given["framework"])
        with process_limits(seconds=gpu_host_module.EXPLAINING):
            self.done = outcome.judge(facts, collected, expect, self.given["digest"], options)
        result = answered(outcome.report_entry(self.done), outcome.report_row(self.done))
        if self.done.verdict.ok:
            return {**result, "msg": "verified"}
        return {**result, "failed": True, "msg": f"Not verified. {' '.join(self.done.record.reasons)}"}


def answered(report: dict[str, Any], row: dict[str, str | None] | None = None) -> dict[str, Any]:
    """Return what the task answers of a verdict."""
    return answers.accept(VerifyAnswer, {"changed": True, "verify": report, "row": row})
