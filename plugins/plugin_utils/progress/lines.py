# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The progress of a run: events in, lines out. No Ansible and no clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..gpu_ready.report.layout import natural_order, without_host
from .words import WAITING, changes_host, doing_text, doings_text

GOOD = "done"
BAD = "failed"
NAMES = 8
"""Maximum number of host names in a summary; of more, only their number."""
PLANNED = 40
"""Maximum number of host names before a text that they show alike: each has a plan that somebody has to approve."""
LABEL = 24
"""Characters of names that are repeated on each further line of a text."""
EACH = 10
"""Running hosts up to which each has a line of its own below the live line."""
EVENT = "gpu-ready"
"""How the messages begin in which a worker shows what a host begins (plugins/action/gpu_turn.py, gpu_execute.py)."""
EXECUTE = "execute"
"""The phase that the events of gpu_execute name: they are of no turn."""
LONGEST = 40
"""Characters of the process for which a host waits, as the host describes it."""
LASTS = 10
"""Seconds after which the duration is shown of what hosts are doing."""
SETTLED = 3
"""Hosts that must have finished before the time left is estimated."""


class Line(NamedTuple):
    """One line of output, or several.

    ``stays`` is False for the live line, which the next one replaces; ``block``: the lines in place of it on a terminal
    that is high enough. ``host``: whose text it is, ``again``: the name before further lines of a text.
    """

    text: str
    stays: bool = True
    host: str = ""
    again: str = ""
    block: tuple[str, ...] = ()

    def rendered(self) -> str:
        """Return the text for the screen: every line of a host begins with its name, whatever its text contains."""
        if not self.host:
            return self.text
        first, *more = self.text.split("\n")
        again = self.again or self.host
        return "\n".join([f"  {self.host}: {first}", *(f"  {again}:   {part}".rstrip() for part in more)])


def lines_of(hosts: Sequence[str], text: str, most: int = NAMES) -> Line:
    """Return what hosts have to say, under their names."""
    label = listed(hosts, most)
    short = label if len(label) <= LABEL else f"{sorted(hosts)[0]} and {len(hosts) - 1} more"
    return Line(text, host=label, again=short if len(hosts) > 1 else "")


class Work(NamedTuple):
    """What a host is doing, in words, and since when. ``detail``: shown while few hosts run."""

    doing: str
    began: float
    detail: str = ""

    @property
    def text(self) -> str:
        """What the host is doing, with the detail."""
        return f"{self.doing}: {self.detail}" if self.detail else self.doing


class Progress:
    """The state of a run. ``now`` returns seconds; every event returns the lines to print."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.now = now
        self.word = "done"  # what a host is that has finished; of a check "planned"
        self.start = self.began = self.batch_began = now()
        self.play = ""
        self.doing = ""
        self.pinned = False
        self.work: dict[str, Work] = {}
        """What each running host is doing."""
        self.changing: dict[str, str] = {}
        """The hosts on which a change has begun, with what they did last."""
        self.results: dict[str, str] = {}
        """How the hosts have ended in this run, over all plays."""
        self.everyone: set[str] = set()
        self.batches = 0
        self.batches_planned = 0
        self.batch: set[str] = set()
        self.waiting: set[str] = set()
        self.ended: dict[str, str] = {}
        # Counted as they happen: a live line is made at every event, and 2,000 hosts have 100,000 of them.
        self.good: set[str] = set()
        self.bad: set[str] = set()
        self.failing: set[str] = set()
        self.through = 0
        self.news = False

    # ---- events

    def batch_starts(self, play: str, hosts: list[str], everyone: list[str], pinned: bool = False) -> list[Line]:
        """Begin a play, or the next batch of one: ``hosts`` are in the batch, ``everyone`` is in the play.

        ``pinned``: the hosts are at different tasks, and as many run at once as there are forks.
        """
        lines = self.batch_ends()
        self.pinned, self.work = pinned, {}
        is_next_batch = play == self.play and len(everyone) > len(hosts)
        self.batches = self.batches + 1 if is_next_batch else 1
        self.play, self.doing = play, ""
        self.everyone |= set(everyone)
        self.batch, self.failing, self.news = set(hosts), set(), False
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
        name = f"{play}, {self.batch_name()}" if len(everyone) > len(hosts) else play
        left = f", {count(len(self.waiting))} after them" if self.waiting else ""
        return [*lines, Line(f"{name}: {listed(hosts)}{left}")]

    def task_starts(self, doing: str) -> list[Line]:
        """Begin a task; ``doing``: what its hosts do, "" where that is not known or not worth a word."""
        self.doing = doing
        return self.live()

    def host_starts(self, host: str) -> list[Line]:
        """Begin the present task on a host."""
        self.failing.discard(host)
        if self.doing and host not in self.ended:
            self.works(host, self.doing)
        return self.live()

    def step_starts(self, host: str, phase: str, step: str) -> list[Line]:
        """Begin a phase of a host's turn, or a step of its plan."""
        doing = doing_text(phase, step)
        if doing and host not in self.ended and host in self.batch:
            self.works(host, doing)
            if changes_host(phase, step):
                self.changing[host] = doing
        return self.live()

    def host_waits(self, host: str, process: str) -> list[Line]:
        """Let a host wait for the process of another package manager."""
        if host not in self.ended and host in self.batch:
            self.works(host, WAITING, process[:LONGEST])
        return self.live()

    def works(self, host: str, doing: str, detail: str = "") -> None:
        """Note what a host is doing; the time counts from when it began that."""
        before = self.work.get(host)
        self.work[host] = Work(doing, before.began if before and before.doing == doing else self.now(), detail)

    def host_answers(self, host: str) -> list[Line]:
        """End the present task on a host, which begins the next one at once in a play with turns."""
        if not self.pinned:
            self.work.pop(host, None)
        return self.live()

    def host_fails(self, host: str) -> list[Line]:
        """Count a host as failed until it begins another task, which in a rescue may wait for the other hosts."""
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
        self.results[host] = how
        if host in self.batch:
            self.good.discard(host)
            (self.bad if how == BAD else self.good).add(host)
        self.failing.discard(host)
        self.work.pop(host, None)
        return [*([Line(note, host=host)] if note else []), *self.live()]

    def batch_ends(self) -> list[Line]:
        """End the present batch; its summary if a host finished in it."""
        if not self.news:
            return []
        text = f"  {len(self.good)} of {count(len(self.batch))} {self.word}"
        text += f", failed: {listed(sorted(self.bad))}" if self.bad else ""
        return [Line(f"{text}, in {span(self.now() - self.batch_began)}")]

    # ---- lines

    def batch_name(self) -> str:
        """Return which batch this is, and of how many if that is known."""
        return f"batch {self.batches}" + (f" of {self.batches_planned}" if self.batches_planned else "")

    def live(self) -> list[Line]:
        """Return the live line, while hosts of the batch are at work."""
        work = dict(self.work)  # at once: the clock's thread asks while others begin and end
        if not (work or self.news) or not self.batch:
            return []
        failed = len(self.bad) + len(self.failing)
        running = len(self.batch) - len(self.good) - failed
        later = len(self.waiting)
        if self.pinned:
            running, later = len(work), running - len(work) + later
        where = f"{self.play}, {self.batch_name()}" if self.waiting or self.batches > 1 else self.play
        parts = [f"{len(self.good)} {self.word}", f"{running} running", f"{failed} failed"]
        parts += [f"{later} to go"] if later else []
        left = self.time_left()
        parts += [f"about {span(left)} left" if left is not None else span(self.now() - self.batch_began)]
        head = f"{where}: {', '.join(parts)}"
        doings = self.all_doings(work)
        block = (head, *self.host_lines(work)) if len(work) <= EACH else ()
        return [Line(f"{head} | {doings}" if doings else head, False, block=block)]

    def all_doings(self, work: dict[str, Work]) -> str:
        """Return how many hosts are doing what, and for how long if that is the same."""
        doings = [one.text if len(work) <= EACH else one.doing for one in work.values()]
        lasts = self.now() - min((one.began for one in work.values()), default=self.now())
        since = f" ({span(lasts)})" if len(set(doings)) == 1 and lasts >= LASTS else ""
        return doings_text(doings) + since

    def host_lines(self, work: dict[str, Work]) -> list[str]:
        """Return a line for each running host."""
        names = sorted(work, key=natural_order)
        width = max(map(len, names), default=0)
        size = max((len(work[name].text) for name in names), default=0)
        return [
            f"  {name:<{width}}  {work[name].text:<{size}}  {span(self.now() - work[name].began):>6}" for name in names
        ]

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
        lines = [lines_of(hosts, text, PLANNED) for text, hosts in self.hosts.items()]
        self.hosts = {}
        return lines


class Failures:
    """Equal failures, each shown once: with the first host at once, then the names of the others."""

    def __init__(self) -> None:
        self.others: dict[tuple[str, str], list[str]] = {}
        self.shown: set[tuple[str, str]] = set()
        """The hosts with the reasons that were shown of them: a rescue often fails for the reason that it rescues."""

    def add(self, host: str, what: str, why: str) -> list[Line]:
        """Record a failure. ``what``: what failed, in few words. ``why``: the full reason."""
        alike = without_host(why, host)
        if (host, alike) in self.shown:
            return []
        self.shown.add((host, alike))
        key = (what, alike)
        if key in self.others:
            self.others[key].append(host)
            return []
        self.others[key] = []
        return [Line(f"{what}: {why}", host=host)]

    def flush(self) -> list[Line]:
        """Return the hosts that failed like another one since the last time."""
        lines = [lines_of(hosts, f"{what}, for the same reason") for (what, _), hosts in self.others.items() if hosts]
        self.others = {key: [] for key in self.others}
        return lines


def event_text(host: str, kind: str, phase: str, text: str) -> str:
    """Return an event of a host as one message, which a log can have as it is: further lines are indented."""
    return f"{EVENT} | {host} | {kind} | {phase} | {text or 'begins'}".replace("\n", "\n    ")


class Event(NamedTuple):
    """An event of a host: ``kind`` is one of plugin_utils/gpu_ready/turn/model.py."""

    host: str
    kind: str
    phase: str
    text: str


def parse_event(message: str) -> Event | None:
    """Return the event in a message, None for any other message."""
    words = message.replace("\n    ", "\n").split(" | ", 4)
    return Event(*words[1:]) if len(words) == 5 and words[0] == EVENT else None


def count(number: int) -> str:
    """Number of hosts in words."""
    return f"{number} host" if number == 1 else f"{number} hosts"


def listed(hosts: Sequence[str], most: int = NAMES) -> str:
    """The names of a few hosts, or the number of many."""
    return ", ".join(sorted(hosts)) if len(hosts) <= most else count(len(hosts))


def span(seconds: float) -> str:
    """A duration in words."""
    full = int(seconds)
    if full < 60:
        return f"{full} s"
    return f"{full // 60} min" if full < 3600 else f"{full // 3600} h {full % 3600 // 60} min"
