# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Computes the plan on the control node: the module of the same name collects the facts on the host.

The facts are a host's word, so they are read as the records of facts/model.py or the host is refused. The plan depends
on nothing else of the host, and is judged by the same schema as the answers of other modules.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..module_utils.gpu_ready.base.plain_text import plain_text
from ..module_utils.gpu_ready.base.records import RecordError, from_json, to_json
from ..module_utils.gpu_ready.facts import model as facts_model
from ..module_utils.gpu_ready.facts.collected import CollectedFacts
from ..module_utils.gpu_ready.packaging.index_record import PackageIndex
from ..plugin_utils import answers
from ..plugin_utils.answer_bounds import WrongAnswer, fields_of
from ..plugin_utils.control_node import plain

# The lookup of each play's hosts imports this file, once, before Ansible starts a process for each host.
from ..plugin_utils.gpu_ready.answers.plan import NodePlanAnswer
from ..plugin_utils.gpu_ready.catalog import model as catalog
from ..plugin_utils.gpu_ready.completion import form
from ..plugin_utils.gpu_ready.completion.complete import complete, today
from ..plugin_utils.gpu_ready.completion.probes import probes_json
from ..plugin_utils.gpu_ready.plan import answer as decide
from ..plugin_utils.gpu_ready.plan import parts
from ..plugin_utils.gpu_ready.plan.offered import IndexRequest
from ..plugin_utils.gpu_ready.settings import options
from ..plugin_utils.gpu_ready.settings.variables import settings_for_plan
from ..plugin_utils.module_calls import call_module
from ..plugin_utils.process_limits import PLANNING
from ..plugin_utils.variables.names import NAMES
from . import gpu_host_module

OPTIONS: dict[str, dict[str, Any]] = options.ARGUMENT_SPEC
OPTIONS_VALIDATOR = ArgumentSpecValidator({**OPTIONS, "part": {**OPTIONS["part"], "choices": ["", *parts.PARTS]}})
catalog.gpus()  # parsed here, not in the process of each host

SECONDS = PLANNING
"""Processor time that a plan may take with what Ansible does for the task, which is a second or two.

`timeout` of the task bounds the time too: it interrupts an action plugin by SIGALRM (ansible/executor/task_executor.py,
core 2.16 to 2.21)."""
QUOTED = 300
"""Characters of an answer that a message may have."""
UNREADABLE = "nothing can be computed from what this host answered (%s)"
CHECK_HOST = (
    "if nothing is wrong with this host, report it as a defect of gpu-ready with the output of `-vvv`; otherwise repair"
    " or reinstall the host, then run this again"
)


def plain_lines(text: str) -> str:
    """Return a text without control characters; a file of the host may end its lines with CR and LF."""
    return "\r\n".join(map(plain_text, text.split("\r\n")))


def read_records(value: dict[str, Any]) -> Any:
    """Return the facts of a host as records. Raises RecordError."""
    facts = facts_model.from_json(answers.clean(value, plain_lines))
    form.check_form(facts)
    return facts


def read_facts(value: dict[str, Any], treat_as: str | None = None, day: str = "") -> Any:
    """Return the facts of a host as records, with what the catalog says of them. Raises WrongAnswer."""
    try:
        return complete(read_records(value), treat_as, day)
    except RecordError as error:
        raise WrongAnswer(plain_text(str(error))[:QUOTED]) from None


class CollectingAction(gpu_host_module.ActionModule):
    """Asks a host for its facts with the module of the task, and answers with what is computed from them."""

    record: Any = CollectedFacts
    settings: Any = None
    treat_as: str | None = None
    collected: dict[str, Any] | None = None
    """What the module answered; None until then."""

    def read(self, facts: dict[str, Any]) -> Any:
        """Return the facts of a host as records, with what the catalog says of them. Raises WrongAnswer."""
        return read_facts(facts, self.treat_as, today())

    def compute(self, facts: Any) -> dict[str, Any]:
        """Return the answer of the task by the facts of the host. Raises GpuReadyError."""
        raise NotImplementedError

    def ask_facts(self, tmp: Any, task_vars: Any) -> dict[str, Any]:
        """Return the module's answer with what is computed from the facts. Raises WrongAnswer."""
        answer: dict[str, Any] = self.ask_module(tmp, task_vars)
        if self.collected is None:  # the module failed
            return answer
        try:
            return {**answer, **self.compute(self.read(self.collected["facts"]))}
        except RecordError as error:
            raise WrongAnswer(plain_text(str(error))[:QUOTED]) from None
        except GpuReadyError as error:
            raise AnsibleActionFail(str(error)) from None
        except WrongAnswer:
            raise
        except Exception as error:
            self._display.vvv(traceback.format_exc(), host=task_vars.get("inventory_hostname"))
            what = plain_text(f"{type(error).__name__}: {error}")[:QUOTED]
            module = self._task.action.rpartition(".")[2]
            return gpu_host_module.refuse_host(module, UNREADABLE % what, CHECK_HOST)

    def module_arguments(self) -> dict[str, Any] | None:
        """Return what the host gets: what it has to look for. No variable of the operator is sent."""
        return {"probes": probes_json()}

    def accept(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Keep the facts, of which nothing but what is computed from them is a result of the task."""
        accepted: dict[str, Any] = answers.accept(self.record, answer)
        names = {*accepted} & {*fields_of(self.record)} - {"changed"}
        collected = {name: accepted.pop(name) for name in names}
        if not accepted["failed"]:
            self.collected = collected
        return accepted


def ask_index(action: Any, request: IndexRequest, variables: Any) -> PackageIndex:
    """Return what the package sources of the host of a task offer; why that is not known, where the call fails.

    Raises WrongAnswer.
    """
    sources = {name: value for name, value in to_json(request.sources).items() if value}
    options = {**to_json(request), "sources": sources}
    answer = call_module(action, "gpu_ready.nodes.gpu_package_index", options, variables, bool(action._task.check_mode))
    if answer.get("wrong_answer"):
        raise WrongAnswer(f"of gpu_package_index: {answer['wrong_answer']}")
    if answer.get("failed"):
        return PackageIndex(cause=plain_text(str(answer.get("msg") or ""))[:QUOTED])
    return from_json(PackageIndex, answer.get("offered") or {})


class ActionModule(CollectingAction):
    """The plugin; Ansible finds it by this name."""

    seconds = SECONDS
    given: Mapping[str, Any] = {}
    variables: Any = None

    def ask_host(self, tmp: Any, task_vars: Any) -> dict[str, Any]:
        """Return the plan of a host. Raises WrongAnswer."""
        validated = OPTIONS_VALIDATOR.validate(self._task.args)
        if validated.error_messages:
            raise AnsibleActionFail(validated.error_messages[0])
        self.given = plain(validated.validated_parameters)
        variables = {name: value for name, value in self.given.items() if name in NAMES.settings}
        self.settings, refusals = settings_for_plan(parts.own_variables(variables, self.given["part"]))
        refusals += self.wrong_values(task_vars or {})
        if refusals:
            return {"changed": False, "lease": "", **decide.refusal_json(refusals)}
        self.treat_as = self.settings.gpu_ready_treat_as or None
        self.variables = task_vars
        return self.ask_facts(tmp, task_vars)

    def ask_index(self, request: IndexRequest) -> PackageIndex:
        """Ask the package sources of the host. Raises WrongAnswer."""
        return ask_index(self, request, self.variables)

    def compute(self, facts: Any) -> dict[str, Any]:
        """Return the plan and what belongs to it."""
        assert self.collected
        check, drains, part = bool(self._task.check_mode), self.given["drains"], self.given["part"]
        now, release = self.collected["time"], self.given["release"]
        plan = decide.plan_json(facts, self.settings, drains, part, check, now, release, self.ask_index)
        plan |= {"lease": self.collected["lease"], "changed": check and bool(plan["todo"])}
        return answers.accept(NodePlanAnswer, plan)
