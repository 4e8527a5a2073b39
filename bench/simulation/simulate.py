"""The real playbooks over simulated hosts: costs of the control node, and what must hold for every rollout.

usage: bench/simulation/simulate.py [--hosts N] [--upgrade N] [--record]

`--record` writes the tables of docs/scale.md. Exits with 1 if something does not hold.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

import ansible.release
from simulated_hosts import FAILING, NEW, OLD, ROOT, VARIABLES, Fleet, serving

from tests.hostile.processes import end_programs
from tests.unit.turn_paths import wrong_write

HERE = Path(__file__).resolve().parent
FORKS = 50


class Ran(NamedTuple):
    """One run of a program: seconds of wall time and CPU (children included), peak of the main process, output."""

    rc: int
    wall: float
    cpu: float
    main_mib: float
    lines: int
    size: int
    output: str


class Bench:
    """A fleet that answers, an inventory of it, and a way to run programs of Ansible."""

    def __init__(self, fleet: Fleet, directory: Path, forks: int = FORKS) -> None:
        self.fleet, self.directory, self.forks = fleet, directory, forks
        lines = ["[gpu_hosts]", *fleet.hosts, "", "[gpu_hosts:vars]", "ansible_connection=simulated"]
        lines += [f"{name}={value}" for name, value in VARIABLES.items()]
        # Of all: the report of a rollout may be written for a name that the playbook adds.
        lines += ["", "[all:vars]", f"gpu_report_directory={directory / 'reports'}"]
        (directory / "inventory").write_text("\n".join(lines) + "\n", encoding="utf-8")
        (directory / "hook.yml").write_text((HERE / "hook.yml").read_text(encoding="utf-8"), encoding="utf-8")

    def command(self, program: str, *arguments: str) -> list[str]:
        """Return the command line of a program of Ansible over all hosts."""
        start = str(Path(sys.executable).parent / program)
        return [start, "-i", str(self.directory / "inventory"), "--forks", str(self.forks), *arguments]

    def upgrade(self, **variables: object) -> list[str]:
        """Return the command line of an upgrade."""
        given = {
            "nvidia_driver_version": NEW, "gpu_upgrade_drain": "hook.yml", "gpu_upgrade_soak": 0, "gpu_ready_reboot_ok": True,
            **variables,
        }  # fmt: skip
        return self.command("ansible-playbook", "playbooks/upgrade_drivers.yml", "-e", json.dumps(given))

    @contextmanager
    def started(self, command: list[str], controller: str = "a") -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """Start a program; its output is in a file."""
        output = self.directory / f"output-{controller}"
        env = os.environ | {
            "ANSIBLE_CONNECTION_PLUGINS": str(HERE / "connection_plugins"), "ANSIBLE_PIPELINING": "true",
            "GPU_READY_SIMULATION": str(self.directory / "socket"), "GPU_READY_CONTROLLER": controller,
            "ANSIBLE_HOME": str(self.directory / f"home-{controller}"), "TERM": "dumb",
        }  # fmt: skip
        with (
            output.open("wb") as stream,
            subprocess.Popen(
                command,
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ) as process,
        ):
            yield process, output

    def run(
        self, command: list[str], controller: str = "a", during: Callable[[subprocess.Popen[bytes]], None] | None = None
    ) -> Ran:
        """Run a program to its end; ``during`` is called every half second until then."""
        began = time.monotonic()
        with self.started(command, controller) as (process, output):
            return finish(process, output, began, during)


def finish(
    process: subprocess.Popen[bytes],
    output: Path,
    began: float,
    during: Callable[[subprocess.Popen[bytes]], None] | None = None,
) -> Ran:
    """Wait for a program and return what it took."""
    peak = 0.0
    while True:
        peak = max(peak, highest_mib(process.pid))
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if during:
            during(process)
        time.sleep(0.2)
    process.returncode = os.waitstatus_to_exitcode(status)
    text = output.read_text(encoding="utf-8", errors="replace")
    cpu = usage.ru_utime + usage.ru_stime
    return Ran(process.returncode, time.monotonic() - began, cpu, peak, len(text.splitlines()), len(text), text)


def highest_mib(pid: int) -> float:
    """Return the most memory that a process had so far, 0 where it ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


@contextmanager
def bench(
    count: int, seed: int, scale: float, shares: dict[str, float] | None = None, forks: int = FORKS
) -> Iterator[Bench]:
    """Start simulated hosts."""
    with tempfile.TemporaryDirectory(prefix="gpu-ready-simulation-") as name:
        fleet = Fleet(count, seed, scale, shares)
        with serving(fleet, Path(name, "socket")):
            try:
                yield Bench(fleet, Path(name), forks)
            finally:
                end_programs(Path(name))  # workers of Ansible whose main process was killed would wait for it forever


# ---- what must hold --------------------------------------------------------------------------------------------------


def wrong_ends(fleet: Fleet) -> list[str]:
    """Return the hosts that are neither upgraded nor failed for a reason of the simulation, and drained ones among the others."""
    found = list(fleet.errors)
    for host in fleet.hosts.values():
        upgraded = (host.loaded, host.phase, host.drained) == (NEW, "done", False)
        if host.fault in FAILING:
            if upgraded:
                found.append(f"{host.name}: upgraded in spite of its fault {host.fault}")
            if host.fault in ("install", "verify") and (host.loaded, host.phase) != (OLD, "back"):
                found.append(f"{host.name}: not rolled back: {host.loaded} {host.phase}")
        elif host.fault != "unreachable" and not upgraded:
            found.append(
                f"{host.name}: {host.loaded} is loaded, {host.phase or 'no'} phase{', drained' if host.drained else ''}"
            )
    return found


def wrong_turns(fleet: Fleet, interruptions: int = 0) -> list[str]:
    """Return hosts with more than one turn, except those whose turn an interruption ended, and drivers installed twice.

    Also those whose journal has phases that the table of a turn does not have in this order.
    """
    found = []
    for name, host in fleet.hosts.items():
        turns = [turn for turn in fleet.turns if turn.host == name]
        over = [turn for turn in turns if turn.end not in ("interrupted", "unreachable")]
        if len(over) > 1 and host.fault not in FAILING:
            found.append(f"{name}: {len(over)} turns to their end")
        if len(turns) - len(over) > interruptions and host.fault not in FAILING:
            found.append(f"{name}: {len(turns) - len(over)} interrupted turns")
        if host.installs.count(NEW) > 1 and host.fault not in FAILING:
            found.append(f"{name}: the driver was installed {host.installs.count(NEW)} times")
        if wrong := wrong_write(host.phases, soak=0):
            found.append(f"{name}: its journal recorded {wrong}")
    return found


def two_at_work(fleet: Fleet) -> list[str]:
    """Return hosts on which two controllers had a turn at the same time."""
    found = []
    for name in fleet.hosts:
        turns = sorted((turn for turn in fleet.turns if turn.host == name), key=lambda turn: turn.began)
        for one, other in zip(turns, turns[1:], strict=False):
            if one.controller != other.controller and (one.ended is None or other.began < one.ended):
                found.append(f"{name}: {one.controller} and {other.controller}")
    return found


def most_at_once(fleet: Fleet) -> int:
    """Return the most turns that were open at one time."""
    changes = [(turn.began, 1) for turn in fleet.turns] + [
        (turn.ended, -1) for turn in fleet.turns if turn.ended is not None
    ]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


BAD_ENDS = ("back", "stuck", "unreachable", "untouched", "still drained")


def begun_too_late(fleet: Fleet, budget: int, batch: int) -> list[str]:
    """Return hosts whose turn began after more than ``budget`` others had failed; ``batch`` may have been on their way."""
    failures = sorted(turn.ended for turn in fleet.turns if turn.end in BAD_ENDS and turn.ended is not None)
    if len(failures) <= budget:
        return []
    late = [turn.host for turn in fleet.turns if turn.began > failures[budget]]
    return [f"{len(late)} turns began after failure {budget + 1}: {', '.join(late[:5])}"] if len(late) > batch else []


def wrong_order(fleet: Fleet, canaries: list[str], sizes: list[int]) -> list[str]:
    """Return what began before a batch ahead of it had ended."""
    found: list[str] = []
    order = sorted({turn.host: turn for turn in reversed(fleet.turns)}.values(), key=lambda turn: turn.began)
    if canaries and sorted(turn.host for turn in order[: len(canaries)]) != sorted(canaries):
        found.append(
            f"the first turns were not those of the canaries: {', '.join(turn.host for turn in order[: len(canaries)])}"
        )
    position = 0
    for size in sizes[:-1]:
        ended = [turn.ended for turn in order[position : position + size]]
        position += size
        if position < len(order) and any(one is None or one > order[position].began for one in ended):
            found.append(f"turn {position + 1} began before all of the batch before it had ended")
    return found


def over_budget(fleet: Fleet, budget: int) -> list[str]:
    """Return how many turns failed, if more than the budget and the turns that were open when it was spent."""
    failed = sorted(turn.ended for turn in fleet.turns if turn.end in BAD_ENDS and turn.ended is not None)
    if len(failed) <= budget:
        return []
    spent = failed[budget]
    on_their_way = [turn for turn in fleet.turns if turn.began <= spent and (turn.ended is None or turn.ended >= spent)]
    most = budget + len(on_their_way)
    return [f"{len(failed)} turns failed, at most {most} may"] if len(failed) > most else []


def touched_without_turn(fleet: Fleet) -> list[str]:
    """Return hosts that had no turn and yet are changed or drained."""
    began = {turn.host for turn in fleet.turns}
    return [
        f"{host.name}: no turn, and {host.loaded} is loaded{', drained' if host.drained else ''}"
        for host in fleet.hosts.values()
        if host.name not in began and (host.installs or host.drained or host.loaded != OLD)
    ]


# ---- scenarios -------------------------------------------------------------------------------------------------------


class Held(NamedTuple):
    """What a scenario found: its numbers in words, and what did not hold."""

    scenario: str
    hosts: int
    found: str
    problems: list[str]


def rollout_with_failures(count: int, seed: int, scale: float) -> tuple[Held, Ran, int]:
    """Upgrade a fleet in which some hosts fail, within the budget."""
    with bench(count, seed, scale) as one:
        failing = [host.name for host in one.fleet.hosts.values() if host.fault in FAILING]
        canaries = [name for name, host in one.fleet.hosts.items() if host.fault == ""][-2:]
        ran = one.run(one.upgrade(gpu_upgrade_max_failures=len(failing), gpu_upgrade_canaries=canaries))
        fleet = one.fleet
        problems = wrong_ends(fleet) + wrong_turns(fleet) + wrong_order(fleet, canaries, [len(canaries)])
        if ran.rc != (2 if failing else 0) and not (failing and ran.rc == 4):
            problems.append(f"exit status {ran.rc}: {ran.output[-2000:]}")
        upgraded = sum(host.loaded == NEW and host.phase == "done" for host in fleet.hosts.values())
        words = f"{upgraded} upgraded, {len(failing)} failed, at most {most_at_once(fleet)} turns at once"
    return Held("failures within the budget", count, words, problems), ran, len(fleet.calls)


def rollout_beyond_budget(count: int, seed: int, scale: float, budget: int = 2, forks: int = 5) -> Held:
    """Upgrade a fleet in which a fifth fails, with a budget that this exceeds, or two more than it in a small one."""
    with bench(count, seed, scale, {"install": max(0.2, (budget + 2) / count)}, forks) as one:
        ran = one.run(one.upgrade(gpu_upgrade_max_failures=budget, gpu_upgrade_batches=[1, "20%", "30%"]))
        fleet = one.fleet
        problems = [
            *fleet.errors,
            *wrong_turns(fleet),
            *over_budget(fleet, budget),
            *begun_too_late(fleet, budget, forks - 1),
            *touched_without_turn(fleet),
        ]
        if ": not reached," in ran.output:
            problems.append(f"hosts that were not reached are lines of the screen: {ran.output[-2000:]}")
        if "The rollout stopped" not in ran.output or ran.rc != 2:
            problems.append(f"exit status {ran.rc}, the run does not say that it stopped: {ran.output[-2000:]}")
        failed = sum(turn.end in BAD_ENDS for turn in fleet.turns)
        if failed <= budget:
            problems.append(f"only {failed} hosts failed")
        words = f"budget {budget}: {failed} failed, {len(fleet.turns) - failed} upgraded, {count - len(fleet.turns)} not touched"
    return Held("failures beyond the budget", count, words, problems)


PATIENCE = 60
"""Seconds after Ctrl-C until an operator kills the run."""
KILLS = ("kill -9 of all its processes", "kill -9 of the main process", "Ctrl-C")


def kill_and_resume(count: int, seed: int, scale: float, kills: int) -> Held:
    """Kill an upgrade at random moments and repeat the same command until it ends by itself."""
    dice = random.Random(seed)
    with bench(count, seed, scale, {"install": 1 / count, "reboot": 1 / count}) as one:
        fleet, problems, done = one.fleet, [], []
        command = one.upgrade(gpu_upgrade_max_failures=count)
        for number in range(kills):
            # An upgrade takes about 26 calls of a host.
            after = dice.randint(2, 26) * count // (kills + 1)
            end = interrupt(one, command, len(fleet.calls) + after, KILLS[number % len(KILLS)])
            fleet.end_turns("a")
            done.append(f"after {after} calls" if end else "not")
        ran = one.run(command)
        problems += wrong_ends(fleet) + wrong_turns(fleet, kills)
        if ran.rc != 2:
            problems.append(f"exit status {ran.rc}: {ran.output[-2000:]}")
        interrupted = sum(turn.end == "interrupted" for turn in fleet.turns)
        words = f"killed {', '.join(done)}; {interrupted} turns interrupted"
    return Held("killed and repeated", count, words, problems)


def interrupt(one: Bench, command: list[str], calls: int, how: str) -> bool:
    """Run a command and end it once the hosts answered so many calls; False if it ended by itself before."""
    with one.started(command) as (process, _):
        with one.fleet.answered:
            while len(one.fleet.calls) < calls and process.poll() is None:
                one.fleet.answered.wait(0.2)
        if process.poll() is not None:
            return False
        if how == KILLS[1]:
            os.kill(process.pid, signal.SIGKILL)
        else:
            os.killpg(process.pid, signal.SIGINT if how == KILLS[2] else signal.SIGKILL)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            # Ctrl-C can end a worker that has the lock of the queue of results, and then Ansible's main process waits for
            # it without end (StrategyBase.cleanup). An operator kills it.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return True


def two_controllers(count: int, seed: int, scale: float, forks: int = FORKS) -> Held:
    """Start the same upgrade from a second control node while the first one works."""
    with bench(count, seed, scale, {}, forks) as one:
        # Each has a record of rollouts of its own; with one record the second run is refused (rollout/record.py).
        commands = {
            name: one.upgrade(gpu_upgrade_max_failures=count, gpu_ready_state_dir=str(one.directory / f"state-{name}"))
            for name in "ab"
        }
        with one.started(commands["a"], "a") as (first, output):
            with one.fleet.answered:
                while not any(turn.controller == "a" for turn in one.fleet.turns) and first.poll() is None:
                    one.fleet.answered.wait(0.2)
            second = one.run(commands["b"], "b")
            ran = finish(first, output, time.monotonic())
        fleet = one.fleet
        problems = wrong_ends(fleet) + wrong_turns(fleet) + two_at_work(fleet)
        turns = [sum(turn.controller == name for turn in fleet.turns) for name in "ab"]
        words = (
            f"turns of the first {turns[0]} (exit status {ran.rc}), of the second {turns[1]} (exit status {second.rc})"
        )
    return Held("two control nodes", count, words, problems)


# ---- costs and the page ----------------------------------------------------------------------------------------------

PAGE = ROOT / "docs/scale.md"
MARK, END = "<!-- simulation: bench/simulation/simulate.py writes this -->\n", "<!-- end of simulation -->"
SCALE = 0.02
"""Of the seconds that calls take on real hosts."""
SEED, FEW = 1, 40
"""FEW: hosts of the scenarios after the large upgrade."""


class Measured(NamedTuple):
    """What a run over so many hosts took."""

    what: str
    hosts: int
    calls: int
    ran: Ran

    def line(self, ping: float) -> str:
        """Return the line of the table; ``ping``: CPU seconds of a ping per host."""
        each = self.ran.cpu / self.hosts
        columns = (
            self.what, self.hosts, f"{self.calls / self.hosts:.1f}", f"{self.ran.wall:.0f} s", f"{each:.2f} s",
            f"{each / ping:.1f}", f"{self.ran.main_mib:.0f} MiB", f"{self.ran.lines} lines, {self.ran.size / 1000:.0f} kB",
        )  # fmt: skip
        return f"| {' | '.join(map(str, columns))} |"


def costs_of_looks(count: int, seed: int, scale: float) -> tuple[list[Measured], list[str]]:
    """Run what changes nothing: ping, site.yml in the desired state, the plan of an upgrade."""
    rows, problems = [], []
    with bench(count, seed, scale, {}) as one:
        for what, command in (
            ("`ansible -m ping`", one.command("ansible", "all", "-m", "ping")),
            ("`site.yml`, desired state", one.command("ansible-playbook", "site.yml")),
            ("`upgrade_drivers.yml --check`", [*one.upgrade(), "--check"]),
        ):
            before = len(one.fleet.calls)
            ran = one.run(command)
            calls = len(one.fleet.calls) - before
            rows.append(Measured(what, count, calls, ran))
            if ran.rc or calls != count:
                problems.append(f"{what}: exit status {ran.rc}, {calls} calls for {count} hosts: {ran.output[-2000:]}")
        problems += one.fleet.errors
    return rows, problems


def tables(rows: list[Measured], scenarios: list[Held]) -> str:
    """Return the tables of a run."""
    date, load = time.strftime("%Y-%m-%d", time.gmtime()), os.getloadavg()[0]
    python, core = platform.python_version(), ansible.release.__version__
    pings = {row.hosts: row.ran.cpu / row.hosts for row in rows if "ping" in row.what}
    lines = [
        f"{os.cpu_count()} cores, load {load:.0f} at the end, {date}, ansible-core {core}, Python {python}, {FORKS} forks:",
        "",
        "| run | hosts | calls per host | wall | CPU per host | ratio to `ping` | main process | screen |",
        "|---|---|---|---|---|---|---|---|",
        *(row.line(pings.get(row.hosts, pings[max(pings)])) for row in rows),
        "",
        "| scenario | hosts | what happened | everything held |",
        "|---|---|---|---|",
    ]
    for one in scenarios:
        held = f"**no**: {len(one.problems)}, such as {one.problems[0].splitlines()[0]}" if one.problems else "yes"
        lines.append(f"| {one.scenario} | {one.hosts} | {one.found} | {held} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run everything, print it, write the page where asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2000, help="hosts of the runs that change nothing")
    parser.add_argument("--upgrade", type=int, default=250, help="hosts of the large upgrade")
    parser.add_argument("--record", action="store_true", help="write the tables of docs/scale.md")
    options = parser.parse_args()
    few, wrong = costs_of_looks(max(options.hosts // 10, 1), SEED, SCALE)
    many, also_wrong = costs_of_looks(options.hosts, SEED, SCALE)
    held, ran, calls = rollout_with_failures(options.upgrade, SEED, SCALE)
    rows = [*few, *many, Measured("`upgrade_drivers.yml`", options.upgrade, calls, ran)]
    scenarios = [
        held,
        rollout_beyond_budget(FEW, SEED, SCALE),
        kill_and_resume(FEW, SEED, SCALE, 6),
        two_controllers(FEW, SEED, SCALE),
    ]
    text = tables(rows, scenarios)
    problems = wrong + also_wrong + [f"{one.scenario}: {problem}" for one in scenarios for problem in one.problems]
    print(text, *problems, sep="\n")
    if options.record:
        head, _, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
        PAGE.write_text(f"{head}{MARK}\n{text}\n{rest[rest.index(END) :]}", encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
