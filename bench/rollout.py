"""How long a host is out of service during an upgrade, alone and in batches, on lab hosts and on simulated hosts.

Lab hosts share the processors of this machine, so each of nine has a ninth of them: that is no property of the product.
Simulated hosts answer after fixed times, as hosts with processors of their own do. For both, the seconds in which no
task of the host ran say how long it waited for others.
"""

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "bench/simulation")]

import simulate

from tests.integration.fleet import Fleet, environment, lab

BATCHES = (1, 3, 9)
"""Sizes of the batches of one rollout: every size is measured in the same run, in the same direction."""
SMALL = (1, 2)
UPGRADE = "playbooks/upgrade_drivers.yml"
OLD, NEW = "580.178.04", "595.91.07"
SCALE = 1.0
"""Of the seconds that calls take on real hosts (simulated_hosts.SECONDS): a turn takes two minutes."""
SEED = 5
JOURNAL = "cat /var/lib/gpu-ready/upgrade.json"


class Turn(NamedTuple):
    """A host out of service, seconds since 1970."""

    host: str
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began


class Batch(NamedTuple):
    """Batches of one size: for each host its seconds out of service, and how many of them no task of it ran.

    ``busy``: processors of this machine that were at work meanwhile, on average.
    """

    size: int
    seconds: list[float]
    waiting: list[float]
    busy: float


def expected_order(hosts: Sequence[str], sizes: Iterable[int]) -> list[tuple[int, list[str]]]:
    """Return the batches: size and hosts."""
    names = iter(hosts)
    return [(size, list(itertools.islice(names, size))) for size in sizes]


def time_without_tasks(turn: Turn, intervals: Iterable[tuple[float, float]]) -> float:
    """Return the seconds of a turn in which none of the intervals is."""
    covered, reached = 0.0, turn.began
    for begin, end in sorted(intervals):
        begin, end = max(begin, reached), min(end, turn.ended)
        if end > begin:
            covered += end - begin
            reached = end
    return turn.seconds - covered


def summarise(
    turns: Sequence[Turn],
    sizes: Sequence[int],
    tasks: dict[str, list[tuple[float, float]]],
    processors: Sequence[tuple[float, float]] = (),
) -> list[Batch]:
    """Return the figures by size of batch; raises where the turns do not follow each other in these batches."""
    by_size: dict[int, list[Turn]] = {}
    order = sorted(turns, key=lambda turn: turn.began)
    end = 0.0
    for size, hosts in expected_order([turn.host for turn in order], sizes):
        these = [turn for turn in order if turn.host in hosts]
        if len(these) != size or these[0].began < end:
            raise RuntimeError(f"the turns are not in batches of {list(sizes)}: {order}")
        end = max(turn.ended for turn in these)
        by_size.setdefault(size, []).extend(these)
    return [
        Batch(
            size,
            [turn.seconds for turn in these],
            [time_without_tasks(turn, tasks[turn.host]) for turn in these],
            busy_processors(processors, these),
        )
        for size, these in by_size.items()
    ]


def busy_processors(samples: Sequence[tuple[float, float]], turns: Sequence[Turn]) -> float:
    """Return how many processors were at work during these turns on average; samples: time, seconds of all so far."""
    inside = [
        (after[0] - before[0], after[1] - before[1])
        for before, after in itertools.pairwise(samples)
        if any(turn.began <= before[0] and after[0] <= turn.ended for turn in turns)
    ]
    wall = sum(each[0] for each in inside)
    return sum(each[1] for each in inside) / wall if wall else 0.0


# ---- lab hosts ----------------------------------------------------------------------------------------


def processor_seconds() -> float:
    """Seconds for which the processors of this machine were at work since its start, /proc/stat of proc(5)."""
    user, nice, system, _idle, _iowait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


@contextmanager
def sampled_processors() -> Iterator[list[tuple[float, float]]]:
    """Sample the use of the processors every second."""
    samples: list[tuple[float, float]] = []
    over = threading.Event()

    def sample() -> None:
        while not over.wait(1):
            samples.append((time.time(), processor_seconds()))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        over.set()
        thread.join()


def read_tasks(path: Path) -> dict[str, list[tuple[float, float]]]:
    """Return the intervals in which each host had a task, from the record of callback_plugins/times.py."""
    begun: dict[str, float] = {}
    found: dict[str, list[tuple[float, float]]] = {}
    for line in path.read_text().splitlines():
        event = json.loads(line)
        if event["begin"]:
            begun[event["host"]] = event["time"]
        else:
            # Ansible gives a result of a run_once task to every host, and a begin to one.
            began = begun.pop(event["host"], event["time"])
            found.setdefault(event["host"], []).append((began, event["time"]))
    return found


def measure_lab(sizes: Sequence[int], keep: bool, small: bool = False) -> list[Batch]:
    """Upgrade lab hosts in these batches."""
    fleet = Fleet("rollout", limit=3600)
    lab("up", *(["--sample"] if small else []), "lab/fleets/rollout.yml")
    try:
        hosts = list(fleet.addresses().values())[: sum(sizes)]
        times = fleet.directory / "times"
        times.unlink(missing_ok=True)
        settings = {
            "nvidia_driver_version": NEW,
            "gpu_upgrade_batches": list(sizes),
            "gpu_upgrade_drain": "docker",
        }
        command = fleet.command("--limit", ",".join(hosts), "-e", json.dumps(settings), playbook=UPGRADE)
        recorded = {
            "GPU_READY_TIMES": str(times),
            "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "bench/callback_plugins"),
            "ANSIBLE_CALLBACKS_ENABLED": "times",
        }
        with sampled_processors() as samples:
            run = subprocess.run(
                command, cwd=ROOT, env=environment() | recorded, capture_output=True, text=True, check=False
            )
        if run.returncode != 0:
            raise RuntimeError(run.stdout[-4000:] + run.stderr[-4000:])
        journals = {host: json.loads(fleet.ssh(host, JOURNAL)) for host in hosts}
    finally:
        if not keep:
            lab("down", "rollout")
    turns = [Turn(host, one["since"], one["since"] + one["seconds"]) for host, one in journals.items()]
    return summarise(turns, sizes, read_tasks(times), samples)


# ---- simulated hosts ----------------------------------------------------------------------------------


def measure_simulated(sizes: Sequence[int], scale: float = SCALE) -> list[Batch]:
    """Upgrade simulated hosts in these batches."""
    with simulate.bench(sum(sizes), SEED, scale, {}) as one, sampled_processors() as samples:
        ran = one.run(one.upgrade(gpu_upgrade_batches=list(sizes)))
        if ran.rc != 0 or one.fleet.errors:
            raise RuntimeError(f"{one.fleet.errors} {ran.output[-4000:]}")
        start = time.time() - one.fleet.now()
        turns = [Turn(turn.host, start + turn.began, start + (turn.ended or 0)) for turn in one.fleet.turns]
        calls: dict[str, list[tuple[float, float]]] = {}
        for call in one.fleet.calls:
            calls.setdefault(call.host, []).append((start + call.began, start + call.ended))
    return summarise(turns, sizes, calls, samples)


def own_seconds(batch: Batch) -> list[float]:
    """Return each host's seconds out of service per second of work on it: simulated hosts differ in their work."""
    return [whole / (whole - waiting) for whole, waiting in zip(batch.seconds, batch.waiting, strict=True)]


def ratio(batches: Sequence[Batch], size: int) -> float:
    """Return the time out of service in a batch of a size / alone, both relative to the work on the host itself."""
    by_size = {batch.size: median(own_seconds(batch)) for batch in batches}
    return by_size[size] / by_size[1]


HEAD = ["hosts", "batch", "seconds out of service", "/ alone", "of them without a task of the host", "processors busy"]
TEXT = (
    "One rollout each, with batches of 1, 3 and 9. Lab hosts are containers: they and the control",
    "node share the processors of this machine, so nine hosts at once are slower than one, each in its own tasks. Real hosts",
    "have their own processors. Simulated hosts answer after fixed times, as if they had: what is added to these is the control",
    "node's part. Seconds without a task of the host are those in which it waited for something else, the control node or",
    "other hosts; of simulated hosts, those without a call, with all work of the control node. Simulated hosts differ in their",
    "work, so the ratios of the first table are relative to that.",
)


def rows(simulated: Sequence[Batch], on_hosts: Sequence[Batch]) -> Iterator[list[str]]:
    """Yield the rows of the table of seconds."""
    for name, batches in (("simulated", simulated), ("lab", on_hosts)):
        alone = median(batches[0].seconds)
        for batch in batches:
            seconds = f"{median(batch.seconds):.0f} ({min(batch.seconds):.0f} to {max(batch.seconds):.0f})"
            waiting = f"{median(batch.waiting):.0f} ({min(batch.waiting):.0f} to {max(batch.waiting):.0f})"
            relative = f"{median(batch.seconds) / alone:.2f}"
            yield [
                name,
                str(batch.size),
                seconds,
                relative,
                waiting,
                f"{batch.busy:.1f} of {os.cpu_count()}" if batch.busy else "-",
            ]
