# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Output that a person can follow at 200 hosts: one live line per batch, every failure with its reason, full tables.

This file translates Ansible's events; plugins/plugin_utils/progress has what makes lines of them and shows them.
"""

from __future__ import annotations

import functools
import re
import time
from pathlib import Path
from typing import Any

from ansible import constants as C
from ansible import context
from ansible.plugins.callback.default import CallbackModule as Default

from ..plugin_utils.progress.lines import (
    BAD,
    EVENT,
    GOOD,
    STEP,
    Alike,
    Event,
    Failures,
    Line,
    Progress,
    count,
    listed,
    parse_event,
    span,
)
from ..plugin_utils.progress.screen import Screen, Ticker, live_possible, strip_controls

DOCUMENTATION = """
name: gpu_ready_progress
type: stdout
short_description: one live line per batch, every failure with its reason
description:
  - On a terminal one line shows the phase, the hosts done, running, failed and left, and the time left. It is below the
    lines that stay on the screen - failures, tables, the end of each batch.
  - A failure is shown with its host, its task and its full reason; of hosts that fail alike the first one, then the
    names of the others. Tasks that only fail hosts of the table above print nothing. The rest of a result, for instance
    its arguments, is shown with C(-v).
  - Plain lines if the output is not a terminal, or TERM is V(dumb); after a minute without any, one with what runs. No
    own colours; Ansible handles NO_COLOR.
  - With C(--check) equal plans are shown once, with the names of their hosts; with C(--diff) so are changes of files.
  - Ansible's normal output with ANSIBLE_STDOUT_CALLBACK=default, with C(-v), with C(--diff) but not C(--check), and for
    playbooks that are not of this project.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
"""

ROLLOUTS = ("upgrade_drivers.yml", "rollback_drivers.yml")
PLAYBOOKS = ("site.yml", "provision.yml", "audit.yml", *ROLLOUTS)
NO_WORK = ("meta", "include_role", "include_tasks")
"""Actions that do nothing on a host."""
NOT_DESIRED = "This host is not in the desired state"
RAISING = ("This host is not ready", NOT_DESIRED)
"""Tasks of the last plays that set the exit status; the table has their messages. After a rollout that stopped, the
second one also fails untouched hosts."""
UNREACHABLE = "Check that it is up and accepts ssh, then run the same command again to resume."
LOG_LINES = 20
"""Number of last lines of a program's output that are shown with a failure."""
LONGEST = 10_000
"""Maximum number of characters of a message, and of the output with it: a host may answer with megabytes."""


def ending(playbook: str, action: str, value: dict[str, Any], check: bool = False) -> tuple[str, str] | None:
    """How a host ends with this result, and a note; None if it continues, which it does not in a check."""
    facts = value.get("ansible_facts") or {}
    if action == "gpu_turn" and value.get("result"):
        # After a rollout has stopped these may be hundreds, and the table has them.
        return None if value["result"].get("state") == "not_reached" else turn_ending(playbook, value["result"])
    for name in ("gpu_ready_failure", "gpu_audit_failure"):
        if name in facts:
            return BAD, ""
    if action == "gpu_audit":
        state = (value.get("audit") or {}).get("state", "")
        return GOOD, "" if state in ("ok", "no_gpu") else state
    if playbook in ("site.yml", "provision.yml"):
        if "verify" in value:
            return GOOD, "ready"
        plan = value.get("plan") or {}
        if action == "gpu_node_plan" and plan and not plan.get("refusals") and (check or not value.get("todo")):
            return GOOD, ""
    return None


def turn_ending(playbook: str, upgraded: dict[str, Any]) -> tuple[str, str]:
    """How a host ends in a rollout, and a note."""
    good = ("current", "paused", "rolled_back" if playbook == "rollback_drivers.yml" else "upgraded")
    bad = upgraded.get("state") not in good
    if upgraded.get("state") in ("current", "excluded"):
        return GOOD, ""  # possibly most of 2,000 hosts, and the table has them
    words = [str(upgraded.get("state") or "").replace("_", " ")]
    if bad and upgraded.get("state") == "rolled_back":
        words = [f"rolled back to {upgraded.get('from')}"]
    elif upgraded.get("to"):
        words += [f"{upgraded.get('from')} -> {upgraded.get('to')}"]
    words += [f"{upgraded['seconds_unavailable']} s out of service"] if upgraded.get("seconds_unavailable") else []
    why = str(upgraded.get("reason") or "")
    words += [why.partition(" -- ")[2] or why] if why else []  # the failure itself was printed when it happened
    return BAD if bad else GOOD, ", ".join(words)


def named(task: Any) -> str:
    """The name of a task with that of its role, which is one of this collection."""
    return str(task.get_name()).removeprefix("gpu_ready.nodes.")


def debug_text(value: dict[str, Any], for_all: bool) -> str:
    """The message of a debug task: for all hosts the full text, for one host the first line of a list."""
    message = value.get("msg", "")
    if isinstance(message, list):
        return "\n".join(str(part) for part in message) if for_all else str(message[0]) if message else ""
    return str(message)


def reason(value: dict[str, Any]) -> str:
    """Why a task failed: its message and, if a program failed, the end of its output. An include has a "reason"."""
    given = value.get("msg") or value.get("reason") or value.get("censored")
    message = str(given or "no reason was given; -v shows the full result").strip()
    message = re.sub(r"^(?:(?:Task|Module|Action) failed: )+", "", message)
    if "rc" in value and value.get("cmd"):
        words = value["cmd"] if isinstance(value["cmd"], list) else [value["cmd"]]
        message += f" ({value['rc']} of {' '.join(str(word) for word in words)})"
    if len(message) > LONGEST:
        message = f"{message[:LONGEST]} ({len(message)} characters; -v shows all)"
    lines = message.splitlines()
    for key in ("module_stderr", "stderr"):
        log = str(value.get(key) or "")[-LONGEST:].strip()
        lines += log.splitlines()[-LOG_LINES:] if log and log not in str(value.get("msg")) else []
    return "\n    ".join(lines)


class CallbackModule(Default):  # type: ignore[misc]  # Ansible is untyped
    """Passes Ansible's events to Progress, or to the default output if that is selected."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "gpu_ready_progress"

    def __init__(self) -> None:
        super().__init__()
        strip_controls(self._display)
        self.follow_steps(self._display)
        self.normal = True
        self.check = bool(context.CLIARGS.get("check"))
        self.playbook = ""
        self.began = time.monotonic()
        self.tabled = False
        self.heading: list[Any] = []
        self.watch: set[str] = set()
        self.raised: set[str] = set()
        self.bad: set[str] = set()  # the result is bad, also where a rescue kept Ansible from counting a failure
        self.progress = Progress(time.monotonic)
        self.failures = Failures()
        self.alike = Alike()
        self.files = Alike()
        self.screen = Screen(self._display.display, live_possible(), time.monotonic)
        self.ticker = Ticker(lambda: self.screen.tick(self.progress.live()))

    def follow_steps(self, display: Any) -> None:
        """Have the live line name the steps that workers begin, and show the events of turns: both come as messages."""
        show = display.display

        @functools.wraps(show)
        def show_or_follow(msg: str, *arguments: Any, **options: Any) -> Any:
            if msg.startswith(STEP) and not self.normal:
                host, _, step = msg.removeprefix(STEP).partition(": ")
                self.screen.show_lines(self.progress.step_starts(host, step))
            event = parse_event(msg) if msg.startswith(EVENT) and not self.normal else None
            if event:
                self.follow_turn(event)
                return None
            return show(msg, *arguments, **options)

        display.display = show_or_follow

    def follow_turn(self, event: Event) -> None:
        """Show an event of a host's turn; the first one of a batch begins it."""
        self.screen.show_lines(self.heading)
        self.heading = []
        if event.kind == "step":
            self.screen.show_lines(self.progress.phase_continues(event.host, event.phase, event.text))
        elif event.kind == "plan":
            return  # the result of the task has it
        elif event.kind == "problem":
            what, _, why = event.text.partition(": ")
            self.fails(event.host, f"failed at '{what}'", why)
        else:
            self.screen.show_lines([Line(f"  {event.host}: {event.text}")])

    # ---- the run

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Decide which output this run gets."""
        self.playbook = Path(playbook._file_name).name
        asked = self._display.verbosity or (context.CLIARGS.get("diff") and not self.check)
        self.normal = bool(asked) or self.playbook not in PLAYBOOKS
        if self.normal:
            super().v2_playbook_on_start(playbook)
            return
        if self.check and self.playbook != "audit.yml":  # which changes nothing anyway
            self.progress.word = "planned"
        self.progress.rollout = self.playbook in ROLLOUTS
        self.ticker.start()

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Begin a play or its next batch."""
        if self.normal:
            super().v2_playbook_on_play_start(play)
            return
        known = play.get_variable_manager().get_vars(play=play)
        # A batch of a rollout contains a name that is not a host, see roles/gpu_upgrade/tasks/plan_batches.yml.
        self.watch = set(known["groups"].get("gpu_upgrade_watch", []))
        batch, everyone = (
            [name for name in known[key] if name not in self.watch]
            for key in ("ansible_play_batch", "ansible_play_hosts_all")
        )
        pinned = play.strategy == "host_pinned"
        self.show_the_same()
        self.screen.show_lines(self.files.flush())
        lines = self.progress.batch_starts(play.get_name().strip(), batch, everyone, pinned)
        # Shown with the first task of the batch: if too many hosts failed, it has none but the skipped upgrade.
        self.heading = lines[-1:] if batch else []
        self.screen.show_lines(lines[: len(lines) - len(self.heading)])

    def v2_playbook_on_no_hosts_matched(self) -> None:
        """Print nothing about a later play without hosts: the tables show it."""
        if self.normal or not self.progress.play:
            super().v2_playbook_on_no_hosts_matched()

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """Begin a task."""
        if self.normal:
            super().v2_playbook_on_task_start(task, is_conditional)
            return
        if task.action.rpartition(".")[2] in NO_WORK:
            return
        self.show_the_same()
        if self.raises(task):  # a heading would name all hosts of the play, also those that have left it
            self.heading = []
        # Of a batch whose turns do not begin, because too many hosts failed, nothing is shown.
        waits = self.progress.pinned and task.action.endswith("gpu_turn")
        heading = [] if waits else self.heading
        self.heading = self.heading if waits else []
        self.screen.show_lines([*heading, *self.progress.task_starts(task.name or task.action)])

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        """Begin a handler."""
        if self.normal:
            super().v2_playbook_on_handler_task_start(task)
            return
        self.screen.show_lines(self.progress.task_starts(task.name or task.action))

    def v2_playbook_on_include(self, included_file: Any) -> None:
        """Print nothing about included files."""
        if self.normal:
            super().v2_playbook_on_include(included_file)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Print the number of hosts by result, and the names of those that failed."""
        if self.normal:
            super().v2_playbook_on_stats(stats)
            return
        self.ticker.over.set()
        self.show_the_same()
        self.screen.show_lines([*self.files.flush(), *self.progress.batch_ends()])
        self.screen.clear()
        hosts = {host: stats.summarize(host) for host in sorted(stats.processed) if host not in self.watch}
        raised = [host for host in hosts if host in self.raised]
        silent = [host for host, counts in hosts.items() if counts["unreachable"]]
        others = [host for host in hosts if host not in {*raised, *silent}]
        failed = [host for host in others if hosts[host]["failures"] or host in self.bad]
        text = f"{count(len(hosts))} in {span(time.monotonic() - self.began)}"
        text += f"; failed: {listed(failed)}" if failed else ""
        text += f"; not in the desired state: {listed(raised)}" if raised else ""
        text += f"; unreachable: {listed(silent)}" if silent else ""
        self._display.display(f"\n{text}{'' if failed or raised or silent else ', none failed'}")

    # ---- the hosts

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        """Begin a task on a host."""
        if self.normal:
            super().v2_runner_on_start(host, task)
            return
        if task.action.rpartition(".")[2] in NO_WORK:
            return
        self.screen.show_lines(self.progress.host_starts(host.get_name()))

    def v2_runner_on_ok(self, result: Any) -> None:
        """End a task on a host; print the message of a debug task."""
        if self.normal:
            super().v2_runner_on_ok(result)
            return
        host, task, value = parts(result)
        action = task.action.rpartition(".")[2]
        self.screen.show_lines(self.progress.host_answers(host))
        if value.get("warnings") or value.get("deprecations"):
            self.screen.clear()
            self._handle_warnings(value)
        if action == "debug":
            self.tabled = self.tabled or bool(task.run_once)
            text = debug_text(value, bool(task.run_once))
            self.screen.show_lines([Line(f"\n{text}\n" if task.run_once else f"  {host}: {text}")])
        if action == "gpu_begin" and value.get("lines"):
            if self.check:
                self.alike.add(host, "\n    ".join(value["lines"]))
            else:
                self.screen.show_lines([Line(f"  {host}: {value['lines'][0]}")])
        for name, upgraded in (value.get("results") or {}).items() if action == "gpu_upgrade_fleet" else ():
            how, note = turn_ending(self.playbook, upgraded)
            if how == BAD:
                self.bad.add(name)
            self.screen.show_lines(self.progress.host_ends(name, how, note))
        if action == "gpu_upgrade_fleet" and self.check:
            for name in self.progress.batch - set(value.get("results") or {}):
                self.screen.show_lines(self.progress.host_ends(name, GOOD))
        end = ending(self.playbook, action, value, self.check)
        if end:
            if end[0] == BAD:
                self.bad.add(host)
            self.screen.show_lines(self.progress.host_ends(host, *end))

    def v2_on_file_diff(self, result: Any) -> None:
        """Show the files that a check would change; the plan, which comes too, is a message of a later task."""
        if self.normal:
            super().v2_on_file_diff(result)
            return
        host, _, value = parts(result)
        diffs = value.get("diff") or []
        files = [one for one in ([diffs] if isinstance(diffs, dict) else diffs) if one.get("before_header") != "steps"]
        if files:
            self.files.add(host, f"files that would change\n{self._get_diff(files).rstrip()}")

    def v2_runner_on_skipped(self, result: Any) -> None:
        """End a task on a host that did not need it."""
        if self.normal:
            super().v2_runner_on_skipped(result)
            return
        self.screen.show_lines(self.progress.host_answers(parts(result)[0]))

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Show why a task failed; of a loop, its items did."""
        if self.normal:
            super().v2_runner_on_failed(result, ignore_errors)
            return
        host, task, value = parts(result)
        if last_part(task) == NOT_DESIRED:
            self.raised.add(host)
        if not (value.get("results") or self.raises(task)):
            step = value.get("step") if task.action.endswith(("gpu_execute", "gpu_begin")) else None
            self.fails(host, f"failed at '{step or named(task)}'", reason(value))
        self.screen.show_lines(self.progress.host_fails(host))

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Show that a host does not answer; if the playbook handles that, its message says why."""
        if self.normal:
            super().v2_runner_on_unreachable(result)
            return
        host, task, value = parts(result)
        if task.ignore_unreachable:
            self.screen.show_lines(self.progress.host_ends(host, BAD))  # a later task, or the table, has the reason
        else:
            why = reason(value).rstrip(" :.")
            self.fails(host, f"does not answer at '{named(task)}'", f"{why}. {UNREACHABLE}")
            self.screen.show_lines(self.progress.host_ends(host, BAD))

    def raises(self, task: Any) -> bool:
        """Return whether a task only fails hosts of the table above."""
        return self.tabled and last_part(task) in RAISING

    def fails(self, host: str, what: str, why: str) -> None:
        """Show what went wrong on a host, unless the same was shown of another one."""
        self.show_failures(self.failures.add(host, what, why))

    def show_the_same(self) -> None:
        """Show what several hosts had alike since the last task."""
        self.screen.show_lines(self.alike.flush())
        self.show_failures(self.failures.flush())

    def show_failures(self, lines: list[Any]) -> None:
        """Show failures in their colour."""
        self.screen.show_lines(lines, C.COLOR_ERROR)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        """Print nothing about single items."""
        if self.normal:
            super().v2_runner_item_on_ok(result)

    def v2_runner_item_on_skipped(self, result: Any) -> None:
        """Print nothing about single items."""
        if self.normal:
            super().v2_runner_item_on_skipped(result)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        """Show why an item failed."""
        if self.normal:
            super().v2_runner_item_on_failed(result)
            return
        host, task, value = parts(result)
        self.fails(host, f"failed at '{named(task)}' ({self._get_item_label(value)})", reason(value))

    def v2_runner_retry(self, result: Any) -> None:
        """Print nothing about retries: the live line shows the task."""
        if self.normal:
            super().v2_runner_retry(result)


def last_part(task: Any) -> str:
    """Return the name of a task without that of its file."""
    return str(task.name).rpartition(" | ")[2]


def parts(result: Any) -> tuple[str, Any, dict[str, Any]]:
    """Return host name, task and values of a result (public attributes since 2.19, private ones before)."""
    host = getattr(result, "host", None) or result._host
    task = getattr(result, "task", None) or result._task
    value = getattr(result, "result", None) or result._result
    return host.get_name(), task, value
