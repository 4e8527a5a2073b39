# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Carries out the steps of a host's plan that belong to one role, in the order of the plan.

Each module runs as in a task of its own: through its action plugin, which accepts the answer. The first failure ends
the plan of this host; one of the connection ends the task, as in every other task.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ansible.errors import AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..module_utils.gpu_ready.base.plain_text import plain_text
from ..plugin_utils.control_node import plain
from ..plugin_utils.gpu_ready.execute import steps
from ..plugin_utils.gpu_ready.execute.model import StepFailed, fail
from ..plugin_utils.gpu_ready.execute.reboot import restart, waits_for_reboot
from ..plugin_utils.gpu_ready.turn.model import STEP, WAIT
from ..plugin_utils.module_calls import call_module
from ..plugin_utils.progress.lines import EXECUTE, event_text

OPTIONS = {
    "part": {"type": "str", "required": True},
    "reboot": {"type": "bool", "default": False},
}
"""``reboot``: restart the host where the driver needs it."""
WAITING = ("gpu_ready.nodes.gpu_packages", "gpu_ready.nodes.gpu_repository")
"""Modules that say in place of an answer for which process they wait."""
LONGEST_WAIT = 900
"""Seconds after which no such answer counts any more: an honest module fails after 600 (packaging/manager.py)."""
ENDLESS = (
    "{} still waits after {} seconds for {}. Remedy: log in, let it end or stop it, then run the same command again"
)
LONGEST = 10_000
"""Characters of a message of a module of Ansible's own, which nothing else bounds."""
SILENT = (
    "{} did not answer within {} seconds. Remedy: log in and look for processes in state D (ps -eo stat,pid,args), "
    "mounts that hang (df) and `dmesg`; when the host answers again, run the same command again"
)
SHOWN = ("rc", "cmd", "stderr", "module_stderr")
"""What a failed module of Ansible's own keeps beside its message, for the screen and for the step. Of the modules of
gpu-ready everything was accepted."""
NOT_SHOWN = ("changed", "diff", "exception", "invocation", "warnings")


class TimeIsOver(BaseException):
    """Raised by a signal, wherever the process waits; no Exception, because connections try again after one."""


@contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """Raise TimeIsOver in this process after these seconds, as Ansible's `timeout` of a task does."""

    def end(*_: object) -> None:
        raise TimeIsOver

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class HostCaller:
    """Runs modules on the host of a task, and keeps what its result will say of them."""

    def __init__(self, action: Any, variables: dict[str, Any]) -> None:
        self.action = action
        self.variables = variables
        self.check = bool(action._task.check_mode)
        self.step, self.phase = "", EXECUTE
        self.began: list[tuple[str, float]] = []
        """The steps of a plan, each with the time at which it began."""
        self.changed_steps: list[str] = []
        self.warnings: list[str] = []
        self.diffs: list[Any] = []

    def run(self, module: str, arguments: Mapping[str, Any], seconds: int, check: bool) -> dict[str, Any]:
        """Return the answer of a module. Raises StepFailed, AnsibleConnectionFailure."""
        try:
            with deadline(seconds):
                answer = self.call(module, arguments, check)
        except TimeIsOver:
            message = SILENT.format(module.rpartition(".")[2], seconds)
            raise StepFailed({"failed": True, "timed_out": True, "msg": message}) from None
        except AnsibleConnectionFailure:
            raise
        except AnsibleError as error:
            raise fail(plain_text(str(error))[:LONGEST]) from error
        if answer.get("changed") and (self.check or not check) and self.step not in self.changed_steps:
            self.changed_steps.append(self.step)
        self.warnings += answer.get("warnings") or []
        diff = answer.get("diff") or []
        self.diffs += [diff] if isinstance(diff, dict) else diff
        if answer.get("failed") or answer.get("rc") not in (None, 0):
            own = module.startswith("gpu_ready.nodes.")
            kept = {name: answer[name] for name in answer if (name not in NOT_SHOWN if own else name in SHOWN)}
            message = plain_text(str(answer.get("msg") or f"{module} failed"))
            raise StepFailed({**kept, "failed": True, "msg": message[:LONGEST]})
        return answer

    def call(self, module: str, arguments: Mapping[str, Any], check: bool) -> dict[str, Any]:
        """Return the answer of a module, and show for which process it waits where it says that in place of one."""
        if module not in WAITING:
            return call_module(self.action, module, arguments, self.variables, check)
        began, shown = self.now(), ""
        while True:
            given = {**arguments, "waited": int(self.now() - began)}
            answer = call_module(self.action, module, given, self.variables, check)
            waits_for = str(answer.get("waits_for") or "")
            if waits_for != shown:
                self.show(*((WAIT, self.phase, waits_for) if waits_for else (STEP, self.phase, self.step)))
            if not waits_for:
                return answer
            if self.now() - began > LONGEST_WAIT:
                raise fail(ENDLESS.format(module.rpartition(".")[2], LONGEST_WAIT, waits_for))
            shown = waits_for

    def show(self, kind: str, phase: str, text: str) -> None:
        """Let Ansible's own process know what happens: the screen shows it, and a log has it."""
        # The method of the class: what the callback plugin makes of it is for Ansible's own process.
        message = event_text(str(self.variables["inventory_hostname"]), kind, phase, plain_text(text)[:LONGEST])
        Display.display(self.action._display, message, log_only=True)

    def setting(self, name: str) -> Any:
        """Return a public variable of the host, None if it is not set."""
        return plain(self.action._templar.template(self.variables[name])) if name in self.variables else None

    def now(self) -> float:
        """Return seconds of a clock that is never set back."""
        return time.monotonic()

    def seconds(self) -> dict[str, int]:
        """Return how long each step took, for the report."""
        ends = [*(began for _, began in self.began[1:]), self.now()]
        return {step: round(end - began) for (step, began), end in zip(self.began, ends, strict=True)}

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    def warn(self, text: str) -> None:
        """Show a warning with the result."""
        self.warnings.append(text)


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible is untyped
    """The plugin; Ansible finds it by this name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Return what came of the steps of the part; a failure has the id of its step. Under --check: none."""
        super().run(tmp, task_vars)
        variables = task_vars or {}
        _, given = self.validate_argument_spec(argument_spec=OPTIONS)
        name, planned = given["part"], plain(variables.get("gpu_plan_result") or {})
        todo = planned.get("todo") or {}
        modules = HostCaller(self, variables)

        def begin(step: str) -> None:
            """Show which step begins."""
            modules.step = step
            modules.began.append((step, modules.now()))
            modules.show(STEP, EXECUTE, step)

        if modules.check:
            return {"steps": [], "reboot_required": waits_for_reboot(planned)}
        result: dict[str, Any]
        try:
            part = steps.execute(name, todo, modules, begin)
            if given["reboot"]:
                restart(part, begin)
            result = {**part.verified, "steps": steps.steps_of(name, todo)}
            result |= {"reboot_required": waits_for_reboot(planned, part)}
        except StepFailed as error:
            result = error.result
        result |= {"seconds": modules.seconds()} if modules.began else {}
        result |= {"changed": bool(modules.changed_steps), "changed_steps": modules.changed_steps}
        result |= {"warnings": modules.warnings} if modules.warnings else {}
        return result | ({"diff": modules.diffs} if modules.diffs else {})
