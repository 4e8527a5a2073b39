# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The turn of a host in a rollout, and what comes before it; also the drain and the undrain of a host alone.

What follows what is in plugin_utils/gpu_ready/turn: table.py decides, phases.py and drain.py act. Between two tasks
with this plugin Ansible does what is not done on the host: schedulers are asked on their own hosts, and task files of
the operator are tasks.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

from ..lookup import gpu_ready_run
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..module_utils.gpu_ready.base.plain_text import plain_text
from ..plugin_utils.control_node import plain
from ..plugin_utils.gpu_ready.catalog import settings as declared
from ..plugin_utils.gpu_ready.execute.model import SHORT, StepFailed
from ..plugin_utils.gpu_ready.rollout.record import RolloutFile
from ..plugin_utils.gpu_ready.settings.variables import wrong_values
from ..plugin_utils.gpu_ready.turn import prepare, run, table
from ..plugin_utils.gpu_ready.turn.model import STEP, Elsewhere, Turn, TurnSettings, Unreachable
from ..plugin_utils.gpu_ready.turn.phases import LASTS, warnings
from ..plugin_utils.progress.lines import event_text
from ..plugin_utils.variables.settings import read_others, rules
from .gpu_execute import LONGEST, HostCaller
from .gpu_host_module import JUDGED

PLAN = "plan"
PREPARE = "prepare"
OPTIONS = {
    "turn": {"type": "str", "required": True, "choices": [PLAN, PREPARE, "upgrade", "drain", "undrain"]},
    "task_file": {"type": "str", "choices": ["succeeded", "failed"]},
}
"""``task_file``: how the task file of the operator ended, in which a turn continues."""
DEFAULTS: dict[str, Any] = {**declared.DEFAULTS, **{name: row[0] for name, row in rules().items()}}
RELATIVE = re.compile(r"[^/].*([.]ya?ml|/.*)")
"""A task file whose path is relative to the directory of the inventory."""
NODES = {
    "slurm": {
        "node": "gpu_drain_slurm_node",
        "controller": "gpu_drain_slurm_controller",
        "reason": "gpu_drain_reason",
    },
    "kubernetes": {
        "node": "gpu_drain_kubernetes_node",
        "host": "gpu_drain_kubernetes_host",
        "kubeconfig": "gpu_drain_kubernetes_kubeconfig",
        "context": "gpu_drain_kubernetes_context",
        "reason": "gpu_drain_reason",
    },
}
"""What the variables say of a scheduler's node, by the names of the journal (module_utils/gpu_ready/drain)."""


class LeasedCaller(HostCaller):
    """A host that one run at a time changes, for plugin_utils/gpu_ready/turn."""

    def __init__(self, action: Any, variables: dict[str, Any]) -> None:
        super().__init__(action, variables)
        self.leased = False
        run = {"GPU_READY_RUN": gpu_ready_run.describe_run()}
        action._task.environment = [*(action._task.environment or []), run]

    @functools.cached_property
    def lease(self) -> Mapping[str, Any]:
        """How this run takes the lease. Found out where it is needed: most hosts of a plan need none."""
        living = list(gpu_ready_run.living_processes())
        take_over = boolean(self.setting("gpu_ready_take_over"), strict=False)
        found: dict[str, Any] = {"lasts": gpu_ready_run.seconds_between_steps(self.variables), "take_over": take_over}
        return found | ({"living": living} if living else {})

    @property
    def name(self) -> str:
        """The host in the inventory."""
        return str(self.variables["inventory_hostname"])

    def run(
        self, module: str, arguments: Mapping[str, Any], seconds: int = SHORT, check: bool = False
    ) -> dict[str, Any]:
        """Return the answer of a module. Raises StepFailed, Unreachable."""
        try:
            answer = super().run(module, arguments, seconds, check or self.check)
        except AnsibleConnectionFailure as error:
            raise Unreachable(plain_text(str(error))[:LONGEST]) from None
        if module.endswith(".gpu_lease"):
            self.leased = arguments["state"] != "released" and not self.check
        return answer

    def setting(self, name: str) -> Any:
        """Return a public variable of the host, its default if it is not set."""
        found = super().setting(name)
        return DEFAULTS[name] if found is None else found

    def show(self, kind: str, phase: str, text: str) -> None:
        """Show an event."""
        if kind == STEP:
            self.phase = phase
            self.step = text or self.step
        # The method of the class: what the callback plugin makes of it is for Ansible's own process.
        Display.display(self.action._display, event_text(self.name, kind, phase, plain_text(text)[:LONGEST]))


class TurnCaller(LeasedCaller):
    """A host in its turn."""

    driver: Any = None

    def __init__(self, action: Any, variables: dict[str, Any], turn: str) -> None:
        super().__init__(action, variables)
        self.turn = turn
        self.todo: Mapping[str, Any] = {}
        fleet = variables.get("gpu_upgrade_fleet") or {}
        self.rollout = RolloutFile(Path(fleet["record"])) if fleet.get("record") else None
        given = self.setting("gpu_upgrade_drain")
        drains = [str(one) for one in (given if isinstance(given, list) else [given]) if one]
        self.settings = TurnSettings(
            tuple(self.absolute(one) for one in drains if one != "none"),
            tuple(drains),
            int(self.setting("gpu_upgrade_drain_timeout")),
            int(self.setting("gpu_upgrade_soak")),
            plain((variables.get("gpu_upgrade_plan") or {}).get("upgrade") or {}),
            int(fleet.get("rollout") or 0),
            boolean(self.setting("gpu_undrain_unverified"), strict=False),
        )

    @functools.cached_property
    def lease(self) -> Mapping[str, Any]:
        """How this run takes the lease: a turn resumes what the preparation had, which begins with the plan's age."""
        found = super().lease
        if self.turn == "upgrade":
            return {**found, "lasts": LASTS, "resumes": True}
        age = gpu_ready_run.seconds_since_start()
        return {**found, **({"age": age} if self.turn == PREPARE and age != "" else {})}

    def absolute(self, hook: str) -> str:
        """Return a drain hook, a task file with its absolute path."""
        if not RELATIVE.fullmatch(hook):
            return hook
        directory = str(self.variables.get("inventory_dir") or "")  # None without an inventory file
        return f"{directory if Path(directory).is_dir() and directory else self.variables['playbook_dir']}/{hook}"

    def node(self, hook: str) -> dict[str, Any]:
        """Return what the variables of this run say of a scheduler's node."""
        return {key: str(self.setting(name)) for key, name in NODES[hook].items()}

    def record(self, phase: str) -> None:
        """Record in the rollout what the journal of the host is about to record."""
        if self.rollout:
            with self.warns_of_record():
                self.rollout.record_phase(self.name, phase, int(time.time()))

    def end(self, result: Mapping[str, Any], now: int) -> None:
        """Record in the rollout how the turn ended."""
        if self.rollout:
            with self.warns_of_record():
                self.rollout.end_turn(self.name, result["state"], now, result["reason"])

    @contextmanager
    def warns_of_record(self) -> Iterator[None]:
        """Continue a turn whose record cannot be written: its begin is recorded, and half a turn helps nobody."""
        try:
            yield
        except GpuReadyError as error:
            self.warn(str(error))

    def begin(self) -> str:
        """Return why no turn begins, "" where it does."""
        if not self.rollout:
            return ""
        known = self.variables
        present, watch = set(known["ansible_play_hosts"]), (known["groups"].get("gpu_upgrade_watch") or [])
        lost = [name for name in known["ansible_play_hosts_all"] if name not in present and name not in watch]
        try:
            return self.rollout.begin_turn(self.name, int(time.time()), lost)
        except GpuReadyError as error:
            return str(error)


class ActionModule(ActionBase):  # type: ignore[misc]  # Ansible is untyped
    """The plugin; Ansible finds it by this name."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Return the state of a turn, and what happens elsewhere before it continues."""
        super().run(tmp, task_vars)
        known = task_vars or {}
        _, given = self.validate_argument_spec(argument_spec=OPTIONS)
        if known["inventory_hostname"] in (known["groups"].get("gpu_upgrade_watch") or []):
            return {"changed": False, "tasks": "end.yml"}
        wrong = wrong_values(rules(), read_others(known, self._templar.template, JUDGED["gpu_node_plan"]))
        if wrong:
            raise AnsibleActionFail("\n".join(f"{one.message}. Remedy: {one.remedy}." for one in wrong))
        backwards = boolean(self._templar.template(known.get("gpu_upgrade_backwards", False)), strict=False)
        host = TurnCaller(self, known, given["turn"])
        result = {PLAN: self.plan, PREPARE: self.prepare}.get(given["turn"], self.turn)(host, given, backwards)
        result["changed"] = bool(host.changed_steps) or bool(result.get("changed"))
        result |= {"warnings": host.warnings} if host.warnings else {}
        return result | ({"diff": host.diffs} if host.diffs else {})

    def plan(self, host: TurnCaller, _: Mapping[str, Any], backwards: bool) -> dict[str, Any]:
        """Return the plan of a host, or why it has none: the operator decides about such a host."""
        groups = host.variables.get("group_names") or []
        if prepare.is_excluded(host.name, groups, host.setting("gpu_upgrade_exclude")):
            return {"excluded": True, "upgrade": {}, "failure": ""}
        try:
            answer = prepare.plan_host(host, backwards)
        except StepFailed as error:
            return {"excluded": False, "upgrade": {}, "failure": str(error)}
        except Unreachable as error:
            return {"excluded": False, "upgrade": {}, "failure": f"the host is unreachable ({error})"}
        kept = {name: answer.get(name) for name in ("todo", "upgrade", "changed")}
        return {
            **kept,
            "excluded": False,
            "upgrade": kept["upgrade"] or {},
            "plan_warnings": warnings(answer),
            "failure": "" if kept["upgrade"] else str(answer.get("refusal") or answer.get("msg") or ""),
        }

    def prepare(self, host: TurnCaller, _: Mapping[str, Any], backwards: bool) -> dict[str, Any]:
        """Return the result of a host that could not be prepared, else none."""
        plan = plain(host.variables["gpu_upgrade_plan"])
        try:
            prepare.prepare_host(host, plan, backwards)
        except (StepFailed, Unreachable) as error:
            step = error.result.get("step", "") if isinstance(error, StepFailed) else "unreachable"
            text = f"{step}: {error}" if step else str(error)
            host.show("problem", prepare.PREPARE, text if step else f"{prepare.PREPARE}: {text}")
            turn = Turn(phase=table.LEFT_OUT, reason=f"The preparation failed: {text}")
            return {"result": run.end_result(turn, host.name, host.settings.planned, False)}
        return {"result": {}}

    def turn(self, host: TurnCaller, given: Mapping[str, Any], backwards: bool) -> dict[str, Any]:
        """Carry out a turn, or continue it with the answer of what happened elsewhere."""
        kind = given["turn"] if given["turn"] != "upgrade" or not backwards else table.ROLLBACK
        before = plain(host.variables.get("gpu_drain_turn") or {})
        state, answer = before.get("state"), None
        if state and state["kind"] == kind and state["phase"] not in table.ENDS:
            turn = Turn(**state)
            answer = self.answer_of(before["call"], given, host.variables)
        else:
            turn = Turn(kind=kind, touched=bool(host.settings.planned.get("touched")), began=int(time.time()))
            why = host.begin()
            if why:
                planned = host.settings.planned
                result = {
                    "host": host.name,
                    "state": "not_reached",
                    "from": planned.get("from"),
                    "to": planned.get("to"),
                }
                return {"tasks": "end.yml", "result": result | {"way": "none", "seconds_unavailable": 0, "reason": why}}
        turn, elsewhere = run.carry_out(turn, host, answer)
        result = {"state": turn._asdict(), "tasks": "end.yml", "call": {}, "result": {}, "began": turn.began}
        if elsewhere:
            return result | {"tasks": elsewhere.tasks, "call": elsewhere._asdict()}
        return result | self.end(turn, host)

    def answer_of(self, call: Mapping[str, Any], given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of what happened elsewhere; ``failure`` says why it failed."""
        if call["tasks"] == Elsewhere("task_file.yml").tasks:
            if given["task_file"] != "failed":
                return {}
            failed = plain(known.get("ansible_failed_result") or {})
            task = plain_text(str((known.get("ansible_failed_task") or {}).get("name") or ""))
            message = plain_text(str(failed.get("msg") or "no message"))[:LONGEST]
            text = f"{Path(call['path']).name}: {task}: {message}" if task else f"{Path(call['path']).name}: {message}"
            return {"failure": text, **({"another_run": True} if failed.get("another_run") else {})}
        found: dict[str, Any] = plain(known.get("gpu_drain_answer") or {})
        return found

    def end(self, turn: Turn, host: TurnCaller) -> dict[str, Any]:
        """Return the end of a turn. Raises AnsibleActionFail, AnsibleConnectionFailure."""
        if turn.kind in (table.DRAIN_ONLY, table.UNDRAIN_ONLY):
            if turn.phase == table.LOST:
                raise AnsibleConnectionFailure(turn.reason)
            if turn.phase not in (table.DRAINED, table.UNDRAINED):
                raise AnsibleActionFail(turn.reason)
            return {}
        result = run.end_result(turn, host.name, host.settings.planned, bool(host.settings.hooks))
        ended = int(time.time())
        host.end(result, ended)
        return {"result": result, "ended": ended}
