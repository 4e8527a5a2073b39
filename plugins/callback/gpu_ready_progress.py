# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Output that a person can follow at 200 hosts: one live line per batch, every failure with its reason, full tables.

`Progress` is the pure part: events in, lines out, no Ansible, no clock. `CallbackModule` translates Ansible's events.
"""

from __future__ import annotations

import functools
import ipaddress
import os
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ansible import constants as C
from ansible import context
from ansible.plugins.callback.default import CallbackModule as Default

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
  - Ansible's normal output with ANSIBLE_STDOUT_CALLBACK=default, with C(-v), C(--check) or C(--diff), and for playbooks
    that are not of this project.
extends_documentation_fragment:
  - default_callback
  - result_format_callback
"""

PLAYBOOKS = ("site.yml", "provision.yml", "upgrade_drivers.yml", "rollback_drivers.yml", "audit.yml")
PHASES = ("plan", "prestage", "drain", "switch", "verify", "rollback")
"""Words before the bar in task names that name the phase of an upgrade."""
NO_WORK = ("meta", "include_role", "include_tasks")
"""Actions that do nothing on a host."""
GOOD = "done"
BAD = "failed"
NAMES = 8
"""Maximum number of host names in a summary; of more, only their number."""
NOT_DESIRED = "This host is not in the desired state"
RAISING = ("This host is not ready", NOT_DESIRED)
"""Tasks of the last plays that set the exit status; the table has their messages. After a rollout that stopped, the
second one also fails untouched hosts."""
UNREACHABLE = "Check that it is up and accepts ssh, then run the same command again to resume."
LOG_LINES = 20
"""Number of last lines of a program's output that are shown with a failure."""
LASTS = 10
"""Seconds after which the live line shows the duration of the present task."""
TICK = 1.0
"""Seconds between updates of the live line while no event arrives."""
SILENCE = 60
"""Seconds without output after which a line says what runs, where there is no live line: a log, a CI job."""
SETTLED = 3
"""Hosts that must have finished before the time left is estimated."""


CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
    "\ud800-\udfff]"
)
"""As in module_utils/gpu_ready/base/plain_text.py, which a callback plugin cannot import."""
COLOURS = re.compile(rf"(\x1b\[(?:{'|'.join(re.escape(code) for code in ['0', *C.COLOR_CODES.values()])})m)")
"""What Ansible writes around its coloured texts (ansible.utils.color.stringc)."""


class Line(NamedTuple):
    """One line of output; ``stays`` is False for the live line, which the next one replaces."""

    text: str
    stays: bool = True


class Turn(NamedTuple):
    """The phase and task of a host in a play whose hosts are at different tasks, and when the task began."""

    phase: str
    task: str
    began: float


class Progress:
    """The state of a run. ``now`` returns seconds; every event returns the lines to print."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.began = self.batch_began = self.task_began = now()
        self.play = ""
        self.phase = ""
        self.task = ""
        self.pinned = False
        self.turns: dict[str, Turn] = {}
        self.batches = 0
        self.batch: set[str] = set()
        self.waiting: set[str] = set()
        self.ended: dict[str, str] = {}
        self.busy: set[str] = set()
        # Counted as they happen: a live line is made at every event, and 2,000 hosts have 100,000 of them.
        self.good: set[str] = set()
        self.bad: set[str] = set()
        self.through = 0
        self.news = False

    # ---- events

    def batch_starts(self, play: str, hosts: list[str], everyone: list[str], pinned: bool = False) -> list[Line]:
        """Begin a play, or the next batch of one: ``hosts`` are those of the batch, ``everyone`` all of the play.

        ``pinned``: the hosts are at different tasks, and as many run at once as there are forks.
        """
        self.pinned, self.turns = pinned, {}
        lines = self.batch_ends()
        is_next_batch = play == self.play and len(everyone) > len(hosts)
        self.batches = self.batches + 1 if is_next_batch else 1
        self.play, self.phase, self.task = play, "", ""
        self.batch, self.busy, self.news = set(hosts), set(), False
        if not is_next_batch:
            self.waiting = set(everyone) - {host for host, how in self.ended.items() if how == BAD}
            self.ended = {host: how for host, how in self.ended.items() if how == BAD}
            self.began = self.now()
            self.through = 0
        self.waiting -= self.batch
        self.batch_began = self.now()
        self.good = {host for host in hosts if self.ended.get(host) == GOOD}
        self.bad = {host for host in hosts if self.ended.get(host) == BAD}
        if not hosts:
            return lines
        name = f"{play}, batch {self.batches}" if len(everyone) > len(hosts) else play
        left = f", {count(len(self.waiting))} after them" if self.waiting else ""
        return [*lines, Line(f"{name}: {listed(hosts)}{left}")]

    def task_starts(self, name: str) -> list[Line]:
        """Begin a task; its name without the role. A phase lasts through tasks of other roles until the next."""
        self.busy = set()
        head, bar, _ = name.partition(" | ")
        self.task, self.task_began = name, self.now()
        if bar and head in PHASES and head != self.phase:
            self.phase = head
        return self.live()

    def host_starts(self, host: str) -> list[Line]:
        """Begin the present task on a host."""
        self.busy.add(host)
        if self.pinned and host not in self.ended:
            head, bar, _ = self.task.partition(" | ")
            last = self.turns[host].phase if host in self.turns else ""
            self.turns[host] = Turn(head if bar and head in PHASES else last, self.task, self.now())
        return self.live()

    def host_answers(self, host: str) -> list[Line]:
        """End the present task on a host."""
        self.busy.discard(host)
        return self.live()

    def host_ends(self, host: str, how: str, note: str = "") -> list[Line]:
        """Record that a host has finished its batch: ``how`` is GOOD or BAD, ``note`` a short text to print."""
        if self.ended.get(host) == BAD or (host in self.ended and how == GOOD):
            return []
        self.news = True
        self.through += host not in self.ended
        self.ended[host] = how
        if host in self.batch:
            self.good.discard(host)
            (self.bad if how == BAD else self.good).add(host)
        self.busy.discard(host)
        self.turns.pop(host, None)
        return [*([Line(f"  {host}: {note}")] if note else []), *self.live()]

    def batch_ends(self) -> list[Line]:
        """End the present batch; its summary if a host finished in it."""
        if not self.news:
            return []
        text = f"  {len(self.good)} of {count(len(self.batch))} done"
        text += f", failed: {listed(sorted(self.bad))}" if self.bad else ""
        return [Line(f"{text}, in {span(self.now() - self.batch_began)}")]

    # ---- lines

    def live(self) -> list[Line]:
        """Return the live line."""
        if not self.batch:
            return []
        running = len(self.batch) - len(self.good) - len(self.bad)
        later = len(self.waiting)
        if self.pinned:
            running, later = len(self.turns), running - len(self.turns) + later
        where = f"{self.play} {self.batches}" if self.waiting or self.batches > 1 else self.play
        parts = [f"{len(self.good)} done", f"{running} running", f"{len(self.bad)} failed"]
        parts += [f"{later} left"] if later else []
        left = self.time_left()
        parts += [f"about {span(left)} left" if left is not None else span(self.now() - self.batch_began)]
        doing = self.phases_of_hosts() if self.pinned else self.present_task()
        return [Line(f"{where}: {', '.join(parts)}{f' | {doing}' if doing else ''}", False)]

    def present_task(self) -> str:
        """The task that all hosts are at, and how many are still on it."""
        task = self.task.partition(" | ")[2] or self.task
        task = f"{self.phase}: {task}" if self.phase else task
        lasts = self.now() - self.task_began
        since = f", {span(lasts)}" if lasts >= LASTS else ""
        return f"{task} ({len(self.busy)} on it{since})" if self.busy else task

    def phases_of_hosts(self) -> str:
        """How many hosts are in which phase; of a single host its task."""
        turns = list(self.turns.values())  # at once: the clock's thread asks while others begin and end
        if len(turns) == 1:
            phase, task, began = turns[0]
            lasts = self.now() - began
            task = task.partition(" | ")[2] or task
            return (f"{phase}: " if phase else "") + task + (f" ({span(lasts)})" if lasts >= LASTS else "")
        phases = [turn.phase for turn in turns]
        return ", ".join(f"{phases.count(phase)} {phase or 'begin'}" for phase in ("", *PHASES) if phase in phases)

    def time_left(self) -> float | None:
        """Estimated seconds until all hosts have finished, None if unknown."""
        left = len(self.batch) - len(self.good) - len(self.bad) + len(self.waiting)
        if self.through < SETTLED or not left or self.batches < 2:
            return None
        return (self.now() - self.began) / self.through * left


class Failures:
    """Equal failures, each shown once: that of the first host at once, then the names of the others."""

    def __init__(self) -> None:
        self.others: dict[tuple[str, str], list[str]] = {}

    def add(self, host: str, what: str, why: str) -> list[Line]:
        """Record a failure. ``what``: what failed, in few words. ``why``: the full reason."""
        key = (what, without_host(why, host))
        if key in self.others:
            self.others[key].append(host)
            return []
        self.others[key] = []
        return [Line(f"  {host} {what}: {why}")]

    def flush(self) -> list[Line]:
        """Return the hosts that failed like another one since the last time."""
        lines = [
            Line(f"  {listed(hosts)} {what}, for the same reason") for (what, _), hosts in self.others.items() if hosts
        ]
        self.others = {key: [] for key in self.others}
        return lines


def without_host(text: str, host: str) -> str:
    """The text without the host's name and without addresses: equal for hosts that fail alike.

    As in module_utils/gpu_ready/report/layout.py, which a callback plugin cannot import.
    """
    text = re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "HOST", text)
    return re.sub(r"[0-9A-Fa-f:.]*[:.][0-9A-Fa-f:.]*", lambda found: without_address(found.group()), text)


def without_address(text: str) -> str:
    """The text, or one word for all addresses."""
    try:
        ipaddress.ip_address(text.rstrip(".:"))
    except ValueError:
        return text
    return "ADDRESS"


def count(number: int) -> str:
    """Number of hosts in words."""
    return f"{number} host" if number == 1 else f"{number} hosts"


def listed(hosts: list[str]) -> str:
    """The names of a few hosts, or the number of many."""
    return ", ".join(sorted(hosts)) if len(hosts) <= NAMES else count(len(hosts))


def span(seconds: float) -> str:
    """A duration in words."""
    full = int(seconds)
    if full < 60:
        return f"{full} s"
    return f"{full // 60} min" if full < 3600 else f"{full // 3600} h {full % 3600 // 60} min"


class Screen:
    """The output: a terminal with a live line at the bottom, or plain lines."""

    def __init__(self, show: Callable[..., None], terminal: bool, now: Callable[[], float]) -> None:
        self.show = show
        self.terminal = terminal
        self.now = now
        self.shown = now()
        self.drawn = ""
        self.lock = threading.RLock()

    def show_lines(self, lines: list[Line], color: str | None = None) -> None:
        """Show lines; a live line only on a terminal."""
        with self.lock:
            for line in lines:
                if line.stays:
                    self.clear()
                    self.show(line.text, color=color)
                    self.shown = self.now()
                elif self.terminal:
                    self.draw(line.text)

    def tick(self, lines: list[Line]) -> None:
        """Draw the live line again; without a terminal, print it after a minute without output."""
        if self.terminal:
            self.redraw(lines)
        elif lines and self.now() - self.shown >= SILENCE:
            self.shown = self.now()
            self.write(f"  {plain_text(lines[-1].text)}\n")

    def redraw(self, lines: list[Line]) -> None:
        """Draw the live line again if one is on the screen and no other thread is writing."""
        if self.lock.acquire(blocking=False):
            try:
                if self.drawn and lines:
                    self.draw(lines[-1].text)
            finally:
                self.lock.release()

    def draw(self, text: str) -> None:
        """Draw the live line and move the cursor to its start, so that other output overwrites it."""
        text = plain_text(text)[: shutil.get_terminal_size().columns - 1]
        if text != self.drawn:
            self.write(f"\r\x1b[2K{text}\r")
            self.drawn = text

    def clear(self) -> None:
        """Erase the live line."""
        with self.lock:
            if self.drawn:
                self.write("\r\x1b[2K")
                self.drawn = ""

    @staticmethod
    def write(text: str) -> None:
        """Write at once, past Python's buffer: its lock must not be held by the clock's thread when Ansible forks.

        Nothing waits in the buffer, since Ansible empties it after every line.
        """
        os.write(sys.stdout.fileno(), text.encode(sys.stdout.encoding or "utf-8", "replace"))


def plain_text(text: str) -> str:
    """The text with a question mark in place of each control character; tabs and newlines stay."""
    return CONTROLS.sub("?", text)


def plain_but_colours(text: str) -> str:
    """Like :func:`plain_text`, without a change to the colours that Ansible put into the text."""
    if not CONTROLS.search(text):
        return text
    return "".join(part if COLOURS.fullmatch(part) else plain_text(part) for part in COLOURS.split(text))


def strip_controls(display: Any) -> None:
    """Let Ansible's one way to the terminal and the log show no control characters of hosts: warnings, differences too.

    Ansible itself escapes them in the results that it dumps, and nowhere else (2.16 to 2.21).
    """
    show = display.display
    if getattr(show, "strips_controls", False):
        return

    @functools.wraps(show)
    def show_plain(msg: str, *arguments: Any, **options: Any) -> Any:
        return show(plain_but_colours(msg), *arguments, **options)

    show_plain.strips_controls = True  # type: ignore[attr-defined]
    display.display = show_plain


class Ticker(threading.Thread):
    """Updates the time in the live line while no event arrives."""

    def __init__(self, tick: Callable[[], None]) -> None:
        super().__init__(name="gpu-ready-progress", daemon=True)
        self.tick = tick
        self.over = threading.Event()

    def run(self) -> None:
        """Tick until the run is over."""
        while not self.over.wait(TICK):
            self.tick()


def live_possible() -> bool:
    """True if the output is a terminal that can erase a line."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def ending(playbook: str, action: str, value: dict[str, Any]) -> tuple[str, str] | None:
    """How a host ends with this result, and a note; None if it continues."""
    facts = value.get("ansible_facts") or {}
    upgraded = facts.get("gpu_upgrade_result")
    if isinstance(upgraded, dict):
        good = ("current", "rolled_back" if playbook == "rollback_drivers.yml" else "upgraded")
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
    for name in ("gpu_ready_failure", "gpu_audit_failure"):
        if name in facts:
            return BAD, ""
    if action == "gpu_audit":
        state = (value.get("audit") or {}).get("state", "")
        return GOOD, "" if state in ("ok", "no_gpu") else state
    if playbook in ("site.yml", "provision.yml"):
        if action == "gpu_verify":
            return GOOD, "ready"
        plan = value.get("plan") or {}
        if action == "gpu_node_plan" and plan and not value.get("todo") and not plan.get("refusals"):
            return GOOD, ""
    return None


def debug_text(value: dict[str, Any], for_all: bool) -> str:
    """The message of a debug task: for all hosts the full text, for one host the first line of a list."""
    message = value.get("msg", "")
    if isinstance(message, list):
        return "\n".join(str(part) for part in message) if for_all else str(message[0]) if message else ""
    return str(message)


def reason(value: dict[str, Any]) -> str:
    """Why a task failed: its message and, if a program failed, the end of its output."""
    message = str(value.get("msg") or value.get("censored") or "no reason was given; -v shows the full result").strip()
    message = re.sub(r"^(?:(?:Task|Module|Action) failed: )+", "", message)
    if "rc" in value and value.get("cmd"):
        words = value["cmd"] if isinstance(value["cmd"], list) else [value["cmd"]]
        message += f" ({value['rc']} of {' '.join(str(word) for word in words)})"
    lines = message.splitlines()
    for key in ("module_stderr", "stderr"):
        log = str(value.get(key) or "").strip()
        lines += log.splitlines()[-LOG_LINES:] if log and log not in str(value.get("msg")) else []
    return "\n    ".join(lines)


class CallbackModule(Default):  # type: ignore[misc]
    """Passes Ansible's events to Progress, or to the default output if that is selected."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "gpu_ready_progress"

    def __init__(self) -> None:
        super().__init__()
        strip_controls(self._display)
        self.normal = True
        self.playbook = ""
        self.began = time.monotonic()
        self.tabled = False
        self.heading: list[Line] = []
        self.watch: set[str] = set()
        self.raised: set[str] = set()
        self.progress = Progress(time.monotonic)
        self.failures = Failures()
        self.screen = Screen(self._display.display, live_possible(), time.monotonic)
        self.ticker = Ticker(lambda: self.screen.tick(self.progress.live()))

    # ---- the run

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Decide which output this run gets."""
        self.playbook = Path(playbook._file_name).name
        asked = context.CLIARGS.get("check") or context.CLIARGS.get("diff") or self._display.verbosity
        self.normal = bool(asked) or self.playbook not in PLAYBOOKS
        if self.normal:
            super().v2_playbook_on_start(playbook)
        else:
            self.ticker.start()

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Begin a play or its next batch."""
        if self.normal:
            super().v2_playbook_on_play_start(play)
            return
        known = play.get_variable_manager().get_vars(play=play)
        # A batch of a rollout contains a name that is not a host, see roles/gpu_upgrade/tasks/line_up.yml.
        self.watch = set(known["groups"].get("gpu_upgrade_watch", []))
        batch, everyone = (
            [name for name in known[key] if name not in self.watch]
            for key in ("ansible_play_batch", "ansible_play_hosts_all")
        )
        pinned = play.strategy == "host_pinned"
        self.show_failures(self.failures.flush())
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
        self.show_failures(self.failures.flush())
        self.screen.show_lines([*self.heading, *self.progress.task_starts(task.name or task.action)])
        self.heading = []

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
        self.show_failures(self.failures.flush())
        self.screen.show_lines(self.progress.batch_ends())
        self.screen.clear()
        hosts = {host: stats.summarize(host) for host in sorted(stats.processed) if host not in self.watch}
        failed = [host for host, counts in hosts.items() if counts["failures"] and host not in self.raised]
        raised = [host for host in hosts if host in self.raised]
        silent = [host for host, counts in hosts.items() if counts["unreachable"]]
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
        end = ending(self.playbook, action, value)
        if end:
            self.screen.show_lines(self.progress.host_ends(host, *end))

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
        name = str(task.name).rpartition(" | ")[2]
        if name == NOT_DESIRED:
            self.raised.add(host)
        if not (value.get("results") or (self.tabled and name in RAISING)):
            self.fails(host, f"failed at '{task.get_name()}'", reason(value))
        self.screen.show_lines(self.progress.host_answers(host))

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
            self.fails(host, f"does not answer at '{task.get_name()}'", f"{why}. {UNREACHABLE}")
            self.screen.show_lines(self.progress.host_ends(host, BAD))

    def fails(self, host: str, what: str, why: str) -> None:
        """Show what went wrong on a host, unless the same was shown of another one."""
        self.show_failures(self.failures.add(host, what, why))

    def show_failures(self, lines: list[Line]) -> None:
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
        self.fails(host, f"failed at '{task.get_name()}' ({self._get_item_label(value)})", reason(value))

    def v2_runner_retry(self, result: Any) -> None:
        """Print nothing about retries: the live line shows the task."""
        if self.normal:
            super().v2_runner_retry(result)


def parts(result: Any) -> tuple[str, Any, dict[str, Any]]:
    """Return host name, task and values of a result (public attributes since 2.19, private ones before)."""
    host = getattr(result, "host", None) or result._host
    task = getattr(result, "task", None) or result._task
    value = getattr(result, "result", None) or result._result
    return host.get_name(), task, value
