# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The progress of a run: events in, lines out. No Ansible and no clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..gpu_ready.report.layout import without_host

PHASES = ("plan", "prestage", "drain", "switch", "verify", "undrain", "soak", "rollback")
"""Words for the phases of a rollout, before the bar in task names and in the live line."""
UNDRAINS = ("return", "leave", "undrain alone")
"""Phases of a turn (plugin_utils/gpu_ready/turn/table.py) in which a host returns to service."""
GOOD = "done"
BAD = "failed"
NAMES = 8
"""Maximum number of host names in a summary; of more, only their number."""
PLANNED = 40
"""Maximum number of host names before a text that they show alike: each has a plan that somebody has to approve."""
STEP = "gpu-ready begins "
"""How the messages begin in which a worker names a host and the step that it begins (plugins/action/gpu_execute.py)."""
EVENT = "gpu-ready"
"""How the messages begin in which a worker shows an event of a host's turn (plugins/action/gpu_turn.py)."""
LASTS = 10
"""Seconds after which the live line shows the duration of the present task."""
SETTLED = 3
"""Hosts that must have finished before the time left is estimated."""


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
        self.word = "done"  # what a host is that has finished; of a check "planned"
        self.rollout = False
        self.began = self.batch_began = self.task_began = now()
        self.play = ""
        self.phase = ""
        self.task = ""
        self.pinned = False
        self.turns: dict[str, Turn] = {}
        self.steps: dict[str, str] = {}
        """The steps that hosts have begun in the present task."""
        self.batches = 0
        self.batch: set[str] = set()
        self.waiting: set[str] = set()
        self.ended: dict[str, str] = {}
        self.busy: set[str] = set()
        # Counted as they happen: a live line is made at every event, and 2,000 hosts have 100,000 of them.
        self.good: set[str] = set()
        self.bad: set[str] = set()
        self.failing: set[str] = set()
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
        self.batch, self.busy, self.failing, self.news = set(hosts), set(), set(), False
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
        """Begin a task; its name without the role. A rollout's phase lasts through tasks of other roles."""
        self.busy, self.steps = set(), {}
        head, bar, _ = name.partition(" | ")
        self.task, self.task_began = name, self.now()
        if bar and head in PHASES:
            self.phase = head
        elif not self.rollout:
            self.phase = ""
        return self.live()

    def host_starts(self, host: str) -> list[Line]:
        """Begin the present task on a host."""
        self.busy.add(host)
        self.failing.discard(host)
        if self.pinned and host not in self.ended:
            head, bar, _ = self.task.partition(" | ")
            last = self.turns[host].phase if host in self.turns else ""
            self.turns[host] = Turn(head if bar and head in PHASES else last, self.task, self.now())
        return self.live()

    def step_starts(self, host: str, step: str) -> list[Line]:
        """Begin a step of the plan on a host, within the present task."""
        if self.pinned and host in self.turns:
            self.turns[host] = self.turns[host]._replace(task=step, began=self.now())
        elif host in self.busy:
            self.steps[host] = step
        return self.live()

    def phase_continues(self, host: str, phase: str, step: str) -> list[Line]:
        """Begin a phase of a host's turn, or a step in it."""
        if self.pinned and host not in self.ended:
            self.turns[host] = Turn(phase_word(phase), step, self.now())
            return self.live()
        return self.step_starts(host, step)

    def host_answers(self, host: str) -> list[Line]:
        """End the present task on a host."""
        self.busy.discard(host)
        self.steps.pop(host, None)
        return self.live()

    def host_fails(self, host: str) -> list[Line]:
        """Count a host as failed until it begins another task: that of a rescue, which may wait for the other hosts."""
        if not self.pinned and host in self.batch and host not in self.ended:
            self.failing.add(host)
        return self.host_answers(host)

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
        self.failing.discard(host)
        self.turns.pop(host, None)
        return [*([Line(f"  {host}: {note}")] if note else []), *self.live()]

    def batch_ends(self) -> list[Line]:
        """End the present batch; its summary if a host finished in it."""
        if not self.news:
            return []
        text = f"  {len(self.good)} of {count(len(self.batch))} {self.word}"
        text += f", failed: {listed(sorted(self.bad))}" if self.bad else ""
        return [Line(f"{text}, in {span(self.now() - self.batch_began)}")]

    # ---- lines

    def live(self) -> list[Line]:
        """Return the live line."""
        if not self.batch:
            return []
        failed = len(self.bad) + len(self.failing)
        running = len(self.batch) - len(self.good) - failed
        later = len(self.waiting)
        if self.pinned:
            running, later = len(self.turns), running - len(self.turns) + later
        where = f"{self.play} {self.batches}" if self.waiting or self.batches > 1 else self.play
        parts = [f"{len(self.good)} {self.word}", f"{running} running", f"{failed} failed"]
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
        steps = list(self.steps.values())  # at once: the clock's thread asks while others begin and end
        if steps:
            listed = ", ".join(f"{step} on {steps.count(step)}" for step in dict.fromkeys(steps))
            return listed + (f" ({span(lasts)})" if since else "")
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


class Alike:
    """Texts that hosts show, each once with the names of its hosts."""

    def __init__(self) -> None:
        self.hosts: dict[str, list[str]] = {}

    def add(self, host: str, text: str) -> None:
        """Record what a host shows."""
        self.hosts.setdefault(text, []).append(host)

    def flush(self) -> list[Line]:
        """Return what was shown since the last time, in the order in which each text came first."""
        lines = [Line(f"  {listed(hosts, PLANNED)}: {text}") for text, hosts in self.hosts.items()]
        self.hosts = {}
        return lines


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


def event_text(host: str, kind: str, phase: str, text: str) -> str:
    """Return an event of a host as one message, which a log can have as it is."""
    return f"{EVENT} | {host} | {kind} | {phase} | {text or 'begins'}"


def phase_word(phase: str) -> str:
    """Return the word for a phase of a turn, "" before the drain."""
    word = "undrain" if phase in UNDRAINS else phase.partition(" ")[0]
    return word if word in PHASES else ""


class Event(NamedTuple):
    """An event of a host: ``kind`` is one of plugin_utils/gpu_ready/turn/model.py."""

    host: str
    kind: str
    phase: str
    text: str


def parse_event(message: str) -> Event | None:
    """Return the event in a message, None for any other message."""
    words = message.split(" | ", 4)
    return Event(*words[1:]) if len(words) == 5 and words[0] == EVENT else None


def count(number: int) -> str:
    """Number of hosts in words."""
    return f"{number} host" if number == 1 else f"{number} hosts"


def listed(hosts: list[str], most: int = NAMES) -> str:
    """The names of a few hosts, or the number of many."""
    return ", ".join(sorted(hosts)) if len(hosts) <= most else count(len(hosts))


def span(seconds: float) -> str:
    """A duration in words."""
    full = int(seconds)
    if full < 60:
        return f"{full} s"
    return f"{full // 60} min" if full < 3600 else f"{full // 3600} h {full % 3600 // 60} min"
