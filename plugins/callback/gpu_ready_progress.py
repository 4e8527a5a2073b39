# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Output that a person can follow at 200 hosts: one live line per batch, every failure with its reason, full tables.

This file translates Ansible's events; plugins/plugin_utils/progress has what makes lines of them and shows them.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible import constants as C
from ansible import context
from ansible.plugins.callback.default import CallbackModule as Default

from ..plugin_utils.control_node import is_own
from ..plugin_utils.gpu_ready.report.layout import natural_order
from ..plugin_utils.progress.interrupted import NextSteps, interruption, interruption_lines
from ..plugin_utils.progress.lines import (
    BAD,
    EVENT,
    GOOD,
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
from ..plugin_utils.progress.results import (
    debug_text,
    ending,
    failure_text,
    reason,
    step_failure_text,
    turn_ending,
    warnings_of,
)
from ..plugin_utils.progress.screen import Screen, Ticker, live_possible, strip_controls
from ..plugin_utils.progress.words import ACTIONS, own_action

DOCUMENTATION = """
name: gpu_ready_progress
type: stdout
short_description: one live line per batch, every failure with its reason
description:
  - On a terminal one line shows the hosts done, running, failed and left, what they are doing, and the time left; while
    at most ten run, each of them has a line of its own. They are below the lines that stay on the screen - failures,
    tables, the end of each batch.
  - A failure is shown with its host, its step and its full reason, each reason of a host once; of hosts that fail
    alike the first one, then the names of the others. Tasks that only fail hosts of the table above print nothing. The
    rest of a result, for instance its arguments, is shown with C(-v).
  - A run that ends before its report, by Ctrl-C or an error, prints which host is in which state, and how to resume or
    undo it.
  - Plain lines if the output is not a terminal, or TERM is V(dumb); after a minute without any, one with what runs. No
    own colours; Ansible handles NO_COLOR.
  - With C(--check) equal plans are shown once, with the names of their hosts; with C(--diff) so are changes of files.
  - Ansible's normal output with ANSIBLE_STDOUT_CALLBACK=default, with C(-v), with C(--diff) but not C(--check), and for
    plays that are not of this project.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
"""

UPGRADE, ROLLBACK = "upgrade_drivers.yml", "rollback_drivers.yml"
PLAYBOOKS = ("provision.yml", "audit.yml", UPGRADE)
"""The files of plays with this output. site.yml and rollback_drivers.yml import one of them."""
KINDS = {"provision.yml": "site", "audit.yml": "audit", UPGRADE: "upgrade", ROLLBACK: "rollback"}
"""The kind of the report of each."""
NO_WORK = ("meta", "include_role", "include_tasks")
"""Actions that do nothing on a host."""
TABLES = ("gpu_report", "gpu_audit_report", "gpu_upgrade_fleet")
"""Actions that print a table."""
DATA = ("json", "csv")
"""Formats of an audit that programs read."""
NOT_DESIRED = "This host is not in the desired state"
RAISING = ("This host is not ready", NOT_DESIRED)
"""Tasks of the last plays that set the exit status; the table has their messages. After a rollout that stopped, the
second one also fails untouched hosts."""
UNREACHABLE = "Check that it is up and accepts ssh, then run the same command again to resume."
IGNORED = 10
"""Seconds after Ctrl-C in which a run ends by itself."""
INTERRUPTED = "User interrupted execution"
"""What Ansible prints after Ctrl-C (ansible/cli/__init__.py, core 2.16 to 2.21)."""


def named(task: Any) -> str:
    """The name of a task and of its role, which is one of this collection."""
    return str(task.get_name()).removeprefix("gpu_ready.nodes.")


def shown_by_us(method: Callable[..., None]) -> Callable[..., None]:
    """Let a method follow events of gpu-ready's plays only; other plays have Ansible's default output."""

    @functools.wraps(method)
    def follow(self: Any, *arguments: Any, **options: Any) -> None:
        use = getattr(Default, method.__name__) if self.normal else method
        use(self, *arguments, **options)

    return follow


class CallbackModule(Default):  # type: ignore[misc]  # Ansible is untyped
    """Passes Ansible's events to Progress, or to the default output if that is selected."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "gpu_ready_progress"

    def __init__(self) -> None:
        super().__init__()
        strip_controls(self._display)
        self.pid = os.getpid()
        self.follow_events(self._display)
        self.normal = True  # of the present play
        self.recap = False  # a play had Ansible's normal output
        self.check = bool(context.CLIARGS.get("check"))
        self.playbook = ""
        self.hostvars: Any = {}
        self.began = time.monotonic()
        self.over = False
        self.interrupted = False
        self.ignored = 0  # seconds since Ctrl-C
        self.tabled = False
        self.heading: list[Any] = []
        self.watch: set[str] = set()
        self.raised: set[str] = set()
        self.bad: set[str] = set()  # the result is bad, also where a rescue kept Ansible from counting a failure
        self.progress = Progress(time.monotonic)
        self.failures = Failures()
        self.alike = Alike()
        self.warned = Alike()
        self.files = Alike()
        self.screen = Screen(self._display.display, live_possible(), time.monotonic)
        self.ticker = Ticker(self.tick)
        atexit.register(self.ends_early)

    def follow_events(self, display: Any) -> None:
        """Show the events of workers, which come as messages, and erase the live line before any other message."""
        show = display.display

        @functools.wraps(show)
        def show_or_follow(msg: str, *arguments: Any, **options: Any) -> Any:
            if self.normal or os.getpid() != self.pid:
                return show(msg, *arguments, **options)
            event = parse_event(msg) if msg.startswith(EVENT) else None
            if event:
                self.follow(event)
                options["log_only"] = True
            elif not options.get("log_only"):
                self.interrupted = self.interrupted or INTERRUPTED in msg
                self.screen.clear()
            return show(msg, *arguments, **options)

        display.display = show_or_follow

    def follow(self, event: Event) -> None:
        """Show an event of a host."""
        self.show_heading()
        if event.kind == "step":
            step = "" if event.text == "begins" else event.text
            self.screen.show_lines(self.progress.step_starts(event.host, event.phase, step))
        elif event.kind == "wait":
            self.screen.show_lines(self.progress.host_waits(event.host, event.text))
        elif event.kind == "plan":
            return  # the result of the task has it
        elif event.kind == "problem":
            what, _, why = event.text.partition(": ")
            self.fails(event.host, step_failure_text(what), why)
        else:
            self.screen.show_lines([Line(event.text, host=event.host)])

    # ---- the run

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Print nothing: each play decides which output it gets."""

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Begin a play or its next batch."""
        path = Path(re.sub(r"(:[0-9]+)+$", "", str(play.get_path())))  # with line, and column where Ansible knows it
        asked = self._display.verbosity or (context.CLIARGS.get("diff") and not self.check)
        self.normal = bool(asked) or path.name not in PLAYBOOKS or not is_own(str(path))
        if self.normal:
            self.recap = True
            self.screen.clear()
            super().v2_playbook_on_play_start(play)
            return
        known = play.get_variable_manager().get_vars(play=play)
        self.hostvars = known["hostvars"]
        self.screen.apart = path.name == "audit.yml" and known.get("gpu_audit_format") in DATA
        self.playbook = ROLLBACK if path.name == UPGRADE and known.get("gpu_upgrade_backwards") else path.name
        if self.check and self.playbook != "audit.yml":  # which changes nothing anyway
            self.progress.word = "planned"
        if not self.ticker.is_alive():
            self.ticker.start()
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
        self.heading = lines[-1:] if batch else []
        self.screen.show_lines(lines[: len(lines) - len(self.heading)])

    def v2_playbook_on_no_hosts_matched(self) -> None:
        """Print nothing about a later play without hosts: the tables show it."""
        if self.normal or not self.progress.play:
            super().v2_playbook_on_no_hosts_matched()

    @shown_by_us
    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """Begin a task."""
        if task.action.rpartition(".")[2] in NO_WORK:
            return
        self.show_the_same()
        self.screen.show_lines(self.progress.task_starts(ACTIONS.get(own_action(task.action), "")))

    @shown_by_us
    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        """Print nothing about handlers: gpu-ready has none."""

    @shown_by_us
    def v2_playbook_on_include(self, included_file: Any) -> None:
        """Print nothing about included files."""

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Print the number of hosts by result, and the names of those that failed."""
        if self.recap:
            super().v2_playbook_on_stats(stats)
        if not self.playbook:
            return
        self.over = True
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
        none = "" if failed or raised or silent else ", none failed"
        self._display.display(f"\n{text}{none}", stderr=self.screen.apart)

    def tick(self) -> None:
        """Update the live line; say where a run stands that does not end at Ctrl-C."""
        if signal.getsignal(signal.SIGINT) != signal.SIG_DFL:
            self.screen.tick(self.progress.live())
            return
        # ansible-core has seen the signal (task_queue_manager.py: _signal_handler, since 2.19): it waits for a worker,
        # or Python lost the exception. A second signal ends the process without a word.
        self.ignored += 1
        if self.ignored == IGNORED and not self.over:
            self._display.display("Ctrl-C has not ended this run so far. A second one ends it at once.")
            self.interrupted = True
            self.ends_early()

    def ends_early(self) -> None:
        """Print which host is in which state where a run ends before its report: by Ctrl-C, or by an error."""
        if self.over or not self.playbook or os.getpid() != self.pid or not self.progress.everyone:
            return
        self.over = True
        self.ticker.over.set()
        self.show_the_same()
        self.screen.clear()
        changes = not self.check and self.playbook != "audit.yml"
        earlier, targets, steps = dict[str, str](), dict[str, str](), NextSteps()
        try:
            if changes:
                from ..plugin_utils.interrupted_run import InterruptedRun  # noqa: PLC0415  see there

                hosts = sorted(self.progress.everyone, key=natural_order)
                age = int(time.monotonic() - self.began)
                run = InterruptedRun(KINDS[self.playbook], self.hostvars, hosts, self.check, age)
                earlier, targets = run.earlier(), run.targets()
                steps = run.next_steps(sorted(self.progress.changing))
        except Exception as error:  # nothing may hide the states of the hosts
            self._display.display(f"  {type(error).__name__}: {error}", color=C.COLOR_ERROR)
        found = interruption(self.progress, earlier, targets)
        for line in interruption_lines(found, steps, self.interrupted, changes):
            self._display.display(line)

    # ---- the hosts

    @shown_by_us
    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        """Begin a task on a host."""
        if task.action.rpartition(".")[2] in NO_WORK:
            return
        if self.progress.doing:
            self.show_heading()
        self.screen.show_lines(self.progress.host_starts(host.get_name()))

    @shown_by_us
    def v2_runner_on_ok(self, result: Any) -> None:
        """End a task on a host; print the message of a debug task."""
        host, task, value = parts(result)
        own = own_action(task.action)
        self.screen.show_lines(self.progress.host_answers(host))
        self.show_warnings(host, value)
        if task.action.rpartition(".")[2] == "debug":
            self.tabled = self.tabled or bool(task.run_once)
            text = debug_text(value, bool(task.run_once))
            self.screen.show_lines([Line(f"\n{text}\n") if task.run_once else Line(text, host=host)])
        if own in TABLES:
            self.tabled = True
        if own == "gpu_begin" and value.get("lines"):
            if self.check:
                self.alike.add(host, "\n".join(value["lines"]))
            else:
                self.screen.show_lines([Line(value["lines"][0], host=host)])
        if own == "gpu_upgrade_fleet":
            self.follow_rollout(value)
        end = ending(self.playbook, task.action, value, self.check)
        if end:
            if end[0] == BAD:
                self.bad.add(host)
            if end[1]:
                self.show_heading()
            self.screen.show_lines(self.progress.host_ends(host, *end))

    def follow_rollout(self, value: dict[str, Any]) -> None:
        """Note what a rollout decided: how hosts end that take no part, and in how many batches the others are."""
        self.progress.batches_planned = len(value.get("sizes") or [])
        for name, upgraded in (value.get("results") or {}).items():
            how, note = turn_ending(self.playbook, upgraded)
            if how == BAD:
                self.bad.add(name)
            self.screen.show_lines(self.progress.host_ends(name, how, note))
        if self.check and value.get("due") is not None:  # the plan, which is the end of a check
            for name in self.progress.batch - set(value.get("results") or {}):
                self.screen.show_lines(self.progress.host_ends(name, GOOD))

    def show_warnings(self, host: str, value: dict[str, Any]) -> None:
        """Show what a result warns of, with the name of its host; Ansible would show it without."""
        for text in warnings_of(value):
            self.warned.add(host, f"warning: {text}")
        if value.get("deprecations"):
            self._handle_warnings(value)

    @shown_by_us
    def v2_on_file_diff(self, result: Any) -> None:
        """Show the files that a check would change; the plan, which comes too, is a message of a later task."""
        host, _, value = parts(result)
        diffs = value.get("diff") or []
        files = [one for one in ([diffs] if isinstance(diffs, dict) else diffs) if one.get("before_header") != "steps"]
        if files:
            self.files.add(host, f"files that would change\n{self._get_diff(files).rstrip()}")

    @shown_by_us
    def v2_runner_on_skipped(self, result: Any) -> None:
        """End a task on a host that did not need it."""
        self.screen.show_lines(self.progress.host_answers(parts(result)[0]))

    @shown_by_us
    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Show why a task failed; of a loop, its items did."""
        host, task, value = parts(result)
        if last_part(task) == NOT_DESIRED:
            self.raised.add(host)
        if not (value.get("results") or self.raises(task)):
            self.fails(host, failure_text(task.action, value, named(task)), reason(value))
        self.screen.show_lines(self.progress.host_fails(host))

    @shown_by_us
    def v2_runner_on_unreachable(self, result: Any) -> None:
        """Show that a host does not answer; if the playbook handles that, its message says why."""
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
        self.show_heading()
        self.show_failures(self.failures.add(host, what, why))

    def show_heading(self) -> None:
        """Show which batch begins, with the first that its hosts do: none does if too many have failed before it."""
        self.screen.show_lines(self.heading)
        self.heading = []

    def show_the_same(self) -> None:
        """Show what several hosts had alike since the last task."""
        self.screen.show_lines(self.alike.flush())
        self.screen.show_lines(self.warned.flush(), C.COLOR_WARN)
        self.show_failures(self.failures.flush())

    def show_failures(self, lines: list[Any]) -> None:
        """Show failures in their colour."""
        self.screen.show_lines(lines, C.COLOR_ERROR)

    @shown_by_us
    def v2_runner_item_on_ok(self, result: Any) -> None:
        """Print nothing about single items."""

    @shown_by_us
    def v2_runner_item_on_skipped(self, result: Any) -> None:
        """Print nothing about single items."""

    @shown_by_us
    def v2_runner_item_on_failed(self, result: Any) -> None:
        """Show why an item failed."""
        host, task, value = parts(result)
        self.fails(host, f"failed at '{named(task)}' ({self._get_item_label(value)})", reason(value))

    @shown_by_us
    def v2_runner_retry(self, result: Any) -> None:
        """Print nothing about retries: the live line shows the task."""


def last_part(task: Any) -> str:
    """Return the name of a task without its file."""
    return str(task.name).rpartition(" | ")[2]


def parts(result: Any) -> tuple[str, Any, dict[str, Any]]:
    """Return host name, task and values of a result (public attributes since 2.19, private ones before)."""
    host = getattr(result, "host", None) or result._host
    task = getattr(result, "task", None) or result._task
    value = getattr(result, "result", None) or result._result
    return host.get_name(), task, value
