# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Computes the plan on the control node: the module of the same name collects the facts on the host.

plugins/action/gpu_node_plan.py is a link to this file. The facts are a host's word, so they are read as the records of
facts/model.py or the host is refused. The plan depends on nothing else of the host, and is judged by the same schema as
the answers of other modules.
"""

from __future__ import annotations

import importlib.util
import json
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

SPEC = importlib.util.spec_from_file_location("gpu_ready_project", Path(__file__).resolve().with_name("project.py"))
assert SPEC is not None and SPEC.loader is not None
PROJECT = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(PROJECT)
ANSWERS = PROJECT.load_plugin("answers")
Accepting: Any = ANSWERS.ActionModule
# Ansible loads this file once, before it starts a process for each host.
RECORDS, ERRORS = PROJECT.load("gpu_ready.base.records"), PROJECT.load("gpu_ready.base.errors")
FORM = PROJECT.load("gpu_ready.facts.form")
FACTS, DECIDE = PROJECT.load("gpu_ready.facts.model"), PROJECT.load("gpu_ready.lifecycle.decide")
PARTS, VARIABLES = PROJECT.load("gpu_ready.plan.parts"), ANSWERS.VARIABLES
OPTIONS: dict[str, dict[str, Any]] = PROJECT.load("gpu_ready.lifecycle.options").ARGUMENT_SPEC
OPTIONS_VALIDATOR = ArgumentSpecValidator({**OPTIONS, "part": {**OPTIONS["part"], "choices": ["", *PARTS.PARTS]}})
for package_manager in ("apt_repository", "dnf_repository"):
    PROJECT.load(f"gpu_ready.plan.{package_manager}")  # the planner imports it for hosts that have it
PROJECT.load("gpu_ready.catalog.model").gpus()  # parsed here, not in the process of each host

COLLECTED = {"facts": dict, "lease": str, "time": int}
"""What the module answers."""
SECONDS = 60.0
"""Processor time that a plan may take with what Ansible does for the task, which is a second or two.

The largest hosts are planned in 0.3 seconds, 2 MB of facts that are made for it in 30. `timeout` of the task bounds the
time too: it interrupts an action plugin by SIGALRM (ansible/executor/task_executor.py, core 2.16 to 2.21)."""
QUOTED = 300
"""Characters of an answer that a message may have."""
UNPLANNED = "no plan can be computed from the facts of this host (%s)"
CHECK_HOST = (
    "if nothing is wrong with this host, report it as a defect of gpu-ready with the output of `-vvv`; otherwise repair"
    " or reinstall the host, then run this again"
)


def plain(value: Any) -> Any:
    """Return a value of Ansible's templates as the module of a host would get it, which is JSON."""

    def contents(one: Any) -> Any:
        if isinstance(one, Mapping):
            return {str(key): contents(inner) for key, inner in one.items()}
        return [contents(inner) for inner in one] if isinstance(one, list | tuple) else one

    return json.loads(json.dumps(contents(value), default=str))


def plain_lines(text: str) -> str:
    """Return a text without control characters; a file of the host may end its lines with CR and LF."""
    return "\r\n".join(map(ANSWERS.plain_text, text.split("\r\n")))


def read_facts(value: dict[str, Any]) -> Any:
    """Return the facts of a host as records. Raises WrongAnswer."""
    try:
        facts = FACTS.from_json(ANSWERS.clean(value, plain_lines))
        FORM.check_form(facts)
        return facts
    except RECORDS.RecordError as error:
        raise ANSWERS.WrongAnswer(ANSWERS.plain_text(str(error))[:QUOTED]) from None


class ActionModule(Accepting):  # type: ignore[misc]
    """The plugin; Ansible finds it by this name."""

    seconds = SECONDS
    settings: Any = None
    collected: dict[str, Any] | None = None
    """What the module answered; None until then."""

    def ask_host(self, tmp: Any, task_vars: Any) -> dict[str, Any]:
        """Return the plan of a host. Raises WrongAnswer."""
        validated = OPTIONS_VALIDATOR.validate(self._task.args)
        if validated.error_messages:
            raise AnsibleActionFail(validated.error_messages[0])
        given = plain(validated.validated_parameters)
        variables = {name: value for name, value in given.items() if name not in ("overrides", "drains", "part")}
        settings, refusals = VARIABLES.parse_settings(PARTS.own_variables(variables, given["part"]))
        refusals += self.wrong_values(task_vars or {})
        if refusals:
            return {"changed": False, "lease": "", **DECIDE.refusal_json(refusals)}
        self.settings = settings
        answer: dict[str, Any] = self.ask_module(tmp, task_vars)
        if self.collected is None:  # the module failed
            return answer
        check = bool(self._task.check_mode)
        facts = read_facts(self.collected["facts"])
        try:
            plan = DECIDE.plan_json(facts, settings, given["drains"], given["part"], check, self.collected["time"])
        except ERRORS.GpuReadyError as error:
            raise AnsibleActionFail(str(error)) from None
        except Exception as error:
            self._display.vvv(traceback.format_exc(), host=task_vars.get("inventory_hostname"))
            what = ANSWERS.plain_text(f"{type(error).__name__}: {error}")[:QUOTED]
            return ANSWERS.refuse_host("gpu_node_plan", UNPLANNED % what, CHECK_HOST)  # type: ignore[no-any-return]
        plan |= {"lease": self.collected["lease"], "changed": check and bool(plan["todo"])}
        return {**answer, **ANSWERS.accept("gpu_node_plan", plan)}

    def _execute_module(self, *args: Any, **kwargs: Any) -> Any:
        """Give the module what it needs of the settings: how to collect facts."""
        treat_as = {"gpu_ready_treat_as": self.settings.gpu_ready_treat_as}
        return super()._execute_module(*args, **{**kwargs, "module_args": treat_as})

    def accept(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Keep the facts, of which nothing but the plan is a result of the task."""
        accepted: dict[str, Any] = ANSWERS.accept_shape(COLLECTED, answer)
        collected = {name: accepted.pop(name) for name in COLLECTED if name in accepted}
        if not accepted["failed"]:
            self.collected = collected
        return accepted
