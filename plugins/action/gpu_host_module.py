# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The one place where answers of hosts enter the control node: the action plugin of every module that runs on hosts.

meta/runtime.yml (plugin_routing) sends every such module here, except those that collect facts: their own action
plugins compute the answer from the facts that are accepted here. A host with an answer that the module cannot give is
refused, and nothing of the answer is used. Of the others only the values below reach variables, tasks, reports and the
screen.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.module_utils.json_utils import _filter_non_json_lines
from ansible.plugins.action.normal import ActionModule as Normal

from ..module_utils.gpu_ready.base.evidence import MARK
from ..module_utils.gpu_ready.base.plain_text import plain_text
from ..plugin_utils.answer_bounds import LINE, LINES, WrongAnswer
from ..plugin_utils.answers import accept, record_of
from ..plugin_utils.connection_failures import explain_connection
from ..plugin_utils.explanations import explain_answer
from ..plugin_utils.gpu_ready.catalog import driver_packages
from ..plugin_utils.gpu_ready.settings.variables import parse_settings, wrong_values
from ..plugin_utils.process_limits import LimitExceeded, process_limits
from ..plugin_utils.shipped_keys import read_keys
from ..plugin_utils.variables import settings as settings_of_hosts
from ..plugin_utils.variables.names import NAMES, unread_variables

OUTPUT = 16 * 2**20
"""Maximum number of characters that a module prints which collects facts: they may be megabytes."""
SMALL = 8 * 2**20
"""Of any other module: an uninstallation of 10,000 files prints 0.6 million, a failed build its log (evidence.py)."""
UNREAD = re.compile(r"\\u001e.*?(?:\\u001e|$)", re.DOTALL)
"""Evidence in an answer that is no JSON, which Ansible shows as it is."""
EXPLAINING = 60.0
"""Seconds of processor time for the explanations of an answer. One megabyte of a compiler's log takes two."""
COLLECTING = ("gpu_node_plan", "gpu_node_facts", "gpu_audit", "gpu_capture", "gpu_verify")
LOOKING = ("gpu_node_plan", "gpu_audit", "gpu_capture")
"""Modules with which a run begins on a host."""
JUDGED = {
    "gpu_node_plan": frozenset(["gpu_drain", "gpu_ready", "gpu_report", "gpu_upgrade", "gpu_verify"]),
    "gpu_audit": frozenset(["gpu_audit", "gpu_report"]),
    "gpu_capture": frozenset(["gpu_capture"]),
    "gpu_uninstall": frozenset(["gpu_ready", "gpu_report"]),
    "gpu_lease": frozenset(["gpu_drain"]),
    "gpu_kubernetes_labels": frozenset(["gpu_kubernetes"]),
    "gpu_kubernetes_objects": frozenset(["gpu_kubernetes"]),
}
"""The modules with which a playbook begins on a host, and the roles whose variables it will use: these are judged
first. Those that the planner reads (settings) are judged with the plan."""
WRONG = "the answer of this host to %s is not one that the module gives (%s), and nothing of it was used"
REMEDY = (
    "find out what changes the host's Python or its output (the login shell, /etc/profile, sitecustomize.py), repair or"
    " reinstall the host, then run this again"
)


def refuse_host(module: str, message: str, remedy: str) -> dict[str, Any]:
    """Return the result of a task without a usable answer; a host whose plan has refusals is refused in the report."""
    result: dict[str, Any] = {"failed": True, "changed": False, "msg": f"{message}. Remedy: {remedy}."}
    if module == "gpu_node_plan":
        result["plan"] = {"refusals": [{"code": "wrong_answer", "message": message, "remedy": remedy}]}
    return result


def first_line(text: str) -> str:
    """Return the beginning of the first line with text, "" where there is none."""
    return next((line.strip()[:60] for line in text.splitlines() if line.strip()), "")


def describe_login_output(host: str, printed: str) -> str:
    """Return a warning for a host whose login shell prints something for every command.

    Ansible answers each failed transfer of a file with "sftp transfer mechanism failed on [address]" and transfers it
    in another way (ssh connection plugin, option ssh_transfer_method), but says neither which host it is nor why.
    """
    return (
        f"{host}: the login shell prints {printed!r} for commands too, which makes transfers of files by sftp and scp "
        "fail. Let ~/.bashrc, ~/.profile or /etc/profile.d print it for interactive shells only"
    )


def keys_of(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the shipped keys of the repositories that a task names."""
    sources = arguments.get("sources") or arguments
    named = {repository.get("fingerprint") for repository in sources.get("repositories") or []}
    return {"keys": {name: key for name, key in read_keys().items() if name in named}}


ADDED: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "gpu_package_index": keys_of,
    "gpu_repository": keys_of,
    "gpu_uninstall": lambda _: {"driver_packages": driver_packages.driver_pattern()},
}
"""What hosts get of the catalog beside the arguments of a task."""


class ActionModule(Normal):  # type: ignore[misc]  # Ansible is untyped
    """Runs a module on a host as Ansible does, and accepts its answer or fails the host."""

    seconds = math.inf
    """Processor time that the process of a task may take; a module that waits for hours takes some too."""
    printed = ""
    """What the host printed before its answer."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Return what answers.accept leaves of the answer, and what Ansible adds."""
        module = self._task.action.rpartition(".")[2]
        accepted: dict[str, Any]
        if module in LOOKING:
            self.add_settings(module, task_vars or {})
        try:
            with process_limits(seconds=self.seconds):
                accepted = self.ask_host(tmp, task_vars)
        except AnsibleConnectionFailure as error:
            play = self._play_context
            host = (task_vars or {}).get("inventory_hostname", "")
            message = plain_text(explain_connection(error.message, host, play.remote_user, play.remote_addr))
            raise AnsibleConnectionFailure(message) from None
        except WrongAnswer as error:
            accepted = {**refuse_host(module, WRONG % (module, error), REMEDY), "wrong_answer": str(error)}
        except LimitExceeded as error:
            accepted = refuse_host(module, WRONG % (module, f"it takes {error}"), REMEDY)
        if module in LOOKING:
            # Ansible prints a warning that many hosts have once.
            found = unread_variables(task_vars or {})
            if self.printed:
                found = [*found, describe_login_output(str((task_vars or {}).get("inventory_hostname")), self.printed)]
            accepted["warnings"] = [*(accepted.get("warnings") or []), *found]
        # Set by Ansible itself; without the interpreter each task would look for it again.
        if getattr(self, "_discovered_interpreter_key", None):
            facts = accepted.setdefault("ansible_facts", {})
            facts[self._discovered_interpreter_key] = self._discovered_interpreter
        return accepted

    def add_settings(self, module: str, variables: dict[str, Any]) -> None:
        """Give the module the public variables of the host; what the task itself sets has precedence.

        Raises AnsibleActionFail.
        """
        given = dict(self._task.args)
        overrides = given.pop("overrides", None) or {}
        if not isinstance(overrides, dict):
            raise AnsibleActionFail(f"overrides is no mapping: {overrides!r}")
        try:
            settings = settings_of_hosts.read_settings(variables, self._templar.template, overrides)
        except settings_of_hosts.VariableError as error:
            raise AnsibleActionFail(f"{error}. Remedy: define what it uses, or remove the variable.") from None
        if module in ("gpu_audit", "gpu_capture"):
            given["settings"] = {**settings, **(given.get("settings") or {})}
        else:
            given = {**settings, **given}
        self._task.args = given

    def wrong_values(self, variables: dict[str, Any]) -> list[Any]:
        """Return a refusal for each wrong value of a variable that is used later, before anything is changed."""
        module = self._task.action.rpartition(".")[2]
        roles = JUDGED.get(module)
        if not roles:
            return []
        given = settings_of_hosts.read_others(variables, self._templar.template, roles)
        found = list(wrong_values(settings_of_hosts.rules(), given)) if given else []
        if module == "gpu_node_plan":  # judges the settings with its plan
            return found
        arguments = self._task.args.get("settings") or {} if module == "gpu_audit" else self._task.args
        settings = {name: value for name, value in arguments.items() if name in NAMES.settings}
        return found + list(parse_settings(settings).refusals)

    def ask_host(self, tmp: Any, task_vars: Any) -> dict[str, Any]:
        """Run the module, unless a variable of the host has a wrong value. Raises WrongAnswer, AnsibleActionFail."""
        self.refuse_wrong_values(task_vars)
        return self.ask_module(tmp, task_vars)

    def refuse_wrong_values(self, variables: dict[str, Any] | None) -> None:
        """Raise AnsibleActionFail if a variable of the host has a wrong value."""
        refusals = self.wrong_values(variables or {})
        if refusals:
            raise AnsibleActionFail("\n".join(f"{one.message}. Remedy: {one.remedy}." for one in refusals))

    def ask_module(self, tmp: Any, task_vars: Any) -> dict[str, Any]:
        """Run the module. Raises WrongAnswer."""
        answer: dict[str, Any] = super().run(tmp, task_vars)
        return answer

    def accept(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return what may be used of what the module printed. Raises WrongAnswer."""
        module = self._task.action.rpartition(".")[2]
        accepted: dict[str, Any] = accept(record_of(module), answer)
        return accepted

    def module_arguments(self) -> dict[str, Any] | None:
        """Return the arguments that the host gets, None to send the task's own."""
        add = ADDED.get(self._task.action.rpartition(".")[2])
        return None if add is None else {**self._task.args, **add(self._task.args)}

    def _execute_module(self, *args: Any, **kwargs: Any) -> Any:
        """Let Ansible run the module, with other arguments than the task's if an action plugin has some."""
        arguments = self.module_arguments()
        return super()._execute_module(*args, **kwargs | ({} if arguments is None else {"module_args": arguments}))

    def _parse_returned_data(self, res: dict[str, Any], *more: Any) -> Any:
        """Let Ansible read what is accepted of the answer, if it is short enough.

        JSON needs no control characters. Of what is no JSON, Ansible makes a failure.
        """
        size = len(res.get("stdout", "")) + len(res.get("stderr", ""))
        if size > (OUTPUT if self._task.action.rpartition(".")[2] in COLLECTING else SMALL):
            raise WrongAnswer(f"it has {size} characters")
        res |= {name: plain_text(res[name].replace("\r\n", "\n")) for name in ("stdout", "stderr") if name in res}
        try:
            text, notes = _filter_non_json_lines(res.get("stdout", ""), objects_only=True)
            answer = json.loads(text)
            before, json_text, _ = res["stdout"].partition(text)
            self.printed = first_line(before) if json_text else ""
        except ValueError:
            res |= {name: LINES.fit(UNREAD.sub("...", res[name])) for name in ("stdout", "stderr") if name in res}
            return super()._parse_returned_data(res, *more)
        except RecursionError:
            raise WrongAnswer("too many lists in each other") from None
        for note in notes:
            self._display.warning(LINE.fit(note))
        if json.dumps(MARK)[1:-1] in text:
            with process_limits(seconds=EXPLAINING):
                answer = explain_answer(answer)
        accepted = self.accept(answer)
        return super()._parse_returned_data({**res, "stdout": json.dumps(accepted)}, *more)
