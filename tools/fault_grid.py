"""Run provisioning under every fault that the lab knows, and write docs/dev/faults.md: fault x moment -> outcome.

usage: tools/fault_grid.py [--host NAME]... [--only PART]... [--fault NAME]... [--learned] [--missing] [--page]

PART is environment (faults of hosts, mirror and network), control (the control node dies), ssh (connections are cut) or
power (the host's power is cut). Results are recorded in tools/fault_grid.json, from which the page is made,
each row with its commit; a new result of a cell replaces the old one. Cells and rows are defined in
tools/fault_cells.py. Needs root, and leaves the lab up.
"""
# ruff: noqa: E402  the lab and the tests' fleets are not installed packages

import argparse
import contextlib
import fcntl
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "lab"), str(ROOT)]

from gpu_ready_lab import engine, faults, footprint, hosts, paths

from tools import fault_cells
from tools.fault_cells import CUTS, HOSTS, PARTS, Cell, Fault

FLEET = "grid"
RECORD = ROOT / "tools/fault_grid.json"
PAGE = ROOT / "docs/dev/faults.md"
LEARNED = "learned-{}.json"
"""In the directory of the fleet: the files of a host after an undisturbed run."""
RUN_LIMIT = 1800  # seconds; a longer run counts as hanging
PLAYBOOK = [str(Path(sys.executable).parent / "ansible-playbook"), "site.yml"]
ARCHIVE = re.compile(r"\b[a-z]+\.debian\.\w*")  # also where a message is cut off
"""The record does not name the mirror that a machine uses."""
RAW = re.compile(r"Traceback|MODULE FAILURE|Module failed|non-zero return code|Unexpected failure|\[Errno \d+\](?!.*:)")
LONGEST_MESSAGE = 1200
SECOND_RUN = "second-run"
AS_IT_WAS = "as it was"
REPAIRED = "repaired"
UP_TRIES = 3  # the other host of the fleet may be off just now


class Run(NamedTuple):
    """Result of a run: exit status (None: killed, or did not end), seconds, events and screen."""

    rc: int | None
    seconds: float
    events: list[dict[str, Any]]
    screen: str
    came: list[bool]
    """For each planned moment, whether the run reached it."""

    def killed(self) -> bool:
        """True if it was ended by a signal."""
        return self.rc is None or self.rc < 0

    def message(self) -> str:
        """Why the host is not ready; "" if it is."""
        failed = [event for event in self.events if event["status"] in ("failed", "unreachable")]
        messages = [event["message"] for event in failed]
        if failed and failed[-1]["status"] == "unreachable":  # the message is Ansible's; ours is on the screen
            messages = [line.strip() for line in self.screen.splitlines() if " does not answer at '" in line]
        if messages:
            return ARCHIVE.sub("MIRROR", " ".join(messages[-1].split()))
        return "" if self.rc == 0 else " ".join(self.screen.split())[-600:]


class FaultGrid:
    """The cells of one host of the fleet."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.good: dict[str, str] = {}
        self.tasks: list[tuple[str, float]] = []
        """The tasks of an undisturbed run that changed something, with their seconds."""

    # ---- the host

    def running(self) -> hosts.Running:
        """The host, which must be running."""
        return hosts.find(f"{FLEET}/{self.host}")

    def fresh(self) -> None:
        """Recreate the host from its image."""
        with _locked("fault-grid.lock"):
            hosts.remove([each for each in hosts.existing() if (each.fleet, each.host) == (FLEET, self.host)])
            for left in reversed(range(UP_TRIES)):
                if lab("up", f"lab/fleets/{FLEET}.yml", check=not left) == 0:
                    break

    def differences(self, before: dict[str, str]) -> list[str]:
        """What differs on the host, one line per path."""
        return footprint.differences(before, footprint.take(self.running()))

    # ---- runs

    def run(self, *moments: dict[str, Any], variables: Iterable[tuple[str, str]] = ()) -> Run:
        """Run site.yml on the host; what happens at the moments may kill it."""
        with tempfile.TemporaryDirectory() as directory:
            events = Path(directory, "events")
            planned = [{**moment, "mark": f"{directory}/mark-{number}"} for number, moment in enumerate(moments)]
            environment = dict(
                os.environ,
                PYTHONPATH=str(ROOT / "lab"),
                ANSIBLE_NOCOLOR="1",
                ANSIBLE_CALLBACK_PLUGINS=str(ROOT / "tests/integration/callback_plugins"),
                ANSIBLE_CALLBACKS_ENABLED="record,moment" if moments else "record",
                ANSIBLE_SSH_CONTROL_PATH_DIR=f"{directory}/cp",
                GPU_READY_TEST_EVENTS=str(events),
                GPU_READY_MOMENT=json.dumps(planned),
            )
            extra = {"gpu_report_directory": f"{directory}/reports", **dict(variables)}
            argv = [*PLAYBOOK, "-i", str(paths.fleet_directory(FLEET) / "gpu_hosts"), "--limit", self.host]
            started = time.monotonic()
            process = subprocess.Popen(
                [*argv, "-e", json.dumps(extra)], cwd=ROOT, env=environment, text=True, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            screen, rc = _wait(process)
            lines = events.read_text().splitlines() if events.exists() else []
            came = [Path(moment["mark"]).exists() for moment in planned]
            return Run(rc, time.monotonic() - started, [json.loads(line) for line in lines], screen, came)

    def learn(self, refresh: bool) -> None:
        """Provision the bare host undisturbed: record its tasks, and the files that every other run must end with."""
        kept = paths.fleet_directory(FLEET) / LEARNED.format(self.host)
        if refresh or not kept.exists():
            self.fresh()
            run = self.run()
            if run.rc != 0:
                raise SystemExit(f"{self.host}: the undisturbed run failed: {run.message()}")
            kept.write_text(json.dumps(footprint.take(self.running())))
            tasks, last = [], None
            for event in run.events:
                if last is not None and event["status"] == "ok" and event["changed"]:
                    tasks.append((event["task"], round(event["time"] - last, 1)))
                last = event["time"]
            with recorded() as record:
                # The cells stay the same as long as the tasks do; small differences in time do not change the grid.
                before = record["undisturbed"].get(self.host, {}).get("tasks", [])
                if [name for name, _ in before] == [name for name, _ in tasks]:
                    tasks = [(name, seconds) for name, seconds in before]
                record["undisturbed"][self.host] = {"commit": commit(), "seconds": round(run.seconds), "tasks": tasks}
            say(f"{self.host}: undisturbed in {run.seconds:.0f} s, {len(tasks)} tasks that change something")
        self.good = json.loads(kept.read_text())
        with recorded() as record:
            self.tasks = [(name, seconds) for name, seconds in record["undisturbed"][self.host]["tasks"]]

    def repaired(self, keeps: Sequence[str] = ()) -> str:
        """Run the same command to its end; return what differs from an undisturbed run, "" if nothing does."""
        run = self.run()
        if run.rc != 0:
            return f"the next run failed: {run.message()}"
        lines = self.differences(self.good)
        lines = [
            line for line in lines if not any(fnmatch.fnmatchcase(line.partition(": ")[0], glob) for glob in keeps)
        ]
        if lines:
            return f"other files than after an undisturbed run ({len(lines)}): {'; '.join(lines)[:800]}"
        changed = any(event["changed"] for event in run.events)
        next_run = self.run() if changed else run
        return "" if not any(event["changed"] for event in next_run.events) else "a third run changed something"

    # ---- faults of the environment

    def suffer(self, fault: Fault) -> dict[str, str]:
        """Run with a fault, heal it, and return the row."""
        if fault.name == SECOND_RUN:
            return self.twice(fault)
        task = fault_cells.task_of(fault, self.tasks)
        if fault.before and task is None:
            return self.row(fault, "red", f"no task {fault.before} in an undisturbed run")
        try:
            if fault.before is None:
                faults.inject(self.running(), fault.name, list(fault.arguments))
                run = self.run(variables=fault.variables)
            else:
                run = self.run({"task": task, "argv": self.fault_command(fault)}, variables=fault.variables)
        finally:
            faults.heal(self.running(), fault.name)
        if fault.before and not all(run.came):
            return self.row(fault, "red", f"the moment was never reached: {run.message()}", run)
        return self.row(fault, *judged(run), run)

    def fault_command(self, fault: Fault) -> list[str]:
        """The command that causes a fault on the host."""
        return [*LAB, "fault", f"{FLEET}/{self.host}", fault.name, *fault.arguments]

    def pass_through(self, requested: Sequence[Fault]) -> None:
        """Expose one run to several faults, each from its task until the task of the next."""
        self.fresh()
        moments: list[dict[str, Any]] = []
        before: list[str] = []
        for fault in requested:
            task = fault_cells.task_of(fault, self.tasks)
            moments += [{"task": task, "argv": before}] if before else []
            moments.append({"task": task, "argv": self.fault_command(fault)})
            before = [*LAB, "heal", f"{FLEET}/{self.host}", fault.name]
        try:
            run = self.run(*moments)
        finally:
            for fault in requested:
                faults.heal(self.running(), fault.name)
        colour, outcome = judged(run)
        if not all(run.came):
            colour, outcome = "red", f"{outcome}; a moment was never reached"
        rows = [self.row(fault, colour, outcome, run) for fault in requested]
        for found in rows:
            show(found)
        self.settle(rows, [glob for fault in requested for glob in fault.keeps])

    def twice(self, fault: Fault) -> dict[str, str]:
        """Start a second run while the first is in the middle of a task."""
        task = fault_cells.task_of(fault, self.tasks)
        with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor() as pool:
            flag = Path(directory, "flag")
            first = pool.submit(self.run, {"task": task, "after": 2, "argv": ["/usr/bin/touch", str(flag)]})
            while not flag.exists() and not first.done():
                time.sleep(0.2)
            second = self.run()
            both = {"first": first.result(), "second": second}
        judgements = {name: judged(run) for name, run in both.items()}
        colour = "red" if "red" in [colour for colour, _ in judgements.values()] else "green"
        outcome = ", ".join(f"the {name} {what}" for name, (_, what) in judgements.items())
        worst = max(both.values(), key=lambda run: len(run.message()))
        if not any(run.rc == 0 for run in both.values()):
            colour = "red"
        return self.row(fault, colour, outcome, worst)

    def row(self, fault: Fault, colour: str, outcome: str, run: Run | None = None) -> dict[str, str]:
        """A row of the table."""
        return {
            "part": "environment", "host": self.host, "fault": fault.title(), "moment": fault.moment(),
            "colour": colour, "outcome": outcome, "message": run.message() if run else "",
            "seconds": f"{run.seconds:.0f}" if run else "0", "commit": commit(),
        }  # fmt: skip

    def environment(self, requested: Sequence[Fault]) -> None:
        """Run faults of the environment, with a new host where the previous fault did not leave it bare."""
        bare: dict[str, str] | None = None
        series: list[dict[str, str]] = []
        passing = [fault for fault in requested if fault.passes]
        if passing:
            self.pass_through(passing)
        for fault in (each for each in requested if not each.passes):
            if series and fault.prepare:
                self.settle(series)
                series = []
            if bare is None and not series:
                self.fresh()
                if fault.prepare:
                    self.prepare(fault)
                else:
                    bare = footprint.take(self.running())
            found = self.suffer(fault)
            show(found)
            stopped = found["outcome"] == "stopped"
            if stopped and bare is not None and not self.differences(bare):
                found["afterwards"] = AS_IT_WAS
                record_row(found)
                continue
            bare = None
            series.append(found)
            if not stopped:
                self.settle(series, fault.keeps)
                series = []
        if series:
            self.settle(series)

    def prepare(self, fault: Fault) -> None:
        """Provision the host, so that the fault occurs on a host in use."""
        run = self.run(variables=fault.prepare)
        if run.rc != 0:
            raise SystemExit(f"{self.host}: the run before {fault.title()} failed: {run.message()}")

    def settle(self, rows: list[dict[str, str]], keeps: Sequence[str] = ()) -> None:
        """Repair the host with the next run, and record the rows."""
        wrong = self.repaired(keeps)
        for found in rows:
            found["afterwards"] = wrong or REPAIRED
            if wrong:
                found["colour"] = "red"
            record_row(found)
        say(f"{self.host}: after {', '.join(found['fault'] for found in rows)}: {rows[-1]['afterwards']}")

    # ---- cuts at the boundaries and in the middle of tasks

    def cut(self, kind: str) -> None:
        """Cut runs at every moment: each cut happens in the first run that reaches its moment.

        A dead control node ends its run, so the next run has the next moment. A run that continues after a cut meets
        the next cut, too; where it stops, another run continues.
        """
        self.fresh()
        rows = []
        left = list(fault_cells.cuts_of(self.tasks))
        while left:
            now = left[:1] if kind == "control" else left
            run = self.run(*[self.moment(kind, task, after) for _, task, after in now])
            found = [self.cut_row(kind, when, run) for (when, _, _), came in zip(now, run.came, strict=True) if came]
            for each in found:
                show(each)
            rows += found
            if kind == "control":
                left = left[1:]
            else:
                left = [cut for cut, came in zip(now, run.came, strict=True) if not came]
                hosts.power_on(self.running())  # waits until it has booted
                if run.rc == 0 or not found:
                    break
        for when, _, _ in left:
            say(f"{self.host}: not cut {when}: a run had completed this task")
        self.settle(rows)

    def moment(self, kind: str, task: str, after: float) -> dict[str, Any]:
        """The cut as the callback plugin `moment` reads it."""
        how = {"die": True} if kind == "control" else {"argv": self.cutter(kind)}
        return {"task": task, "after": after, **how}

    def cut_row(self, kind: str, when: str, run: Run) -> dict[str, str]:
        """The row of a cut that happened."""
        outcome = "killed" if run.killed() else "finished" if run.rc == 0 else "stopped"
        message = "" if run.killed() else run.message()
        wrong = run.rc is None or (outcome == "stopped" and not is_sound(message))
        return {
            "part": kind, "host": self.host, "fault": CUTS[kind], "moment": when, "colour": "red" if wrong else "green",
            "commit": commit(), "seconds": f"{run.seconds:.0f}", "outcome": outcome, "message": message,
        }  # fmt: skip

    def cutter(self, kind: str) -> list[str]:
        """The command that makes the cut."""
        name = f"{FLEET}/{self.host}"
        return [*LAB, "fault", name, "ssh-dropped"] if kind == "ssh" else [*LAB, "power-cycle", name]


LAB = [sys.executable, "-m", "gpu_ready_lab"]


def _wait(process: subprocess.Popen[str]) -> tuple[str, int | None]:
    """What a run printed, and its exit status; None if it had to be killed."""
    try:
        screen, _ = process.communicate(timeout=RUN_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        screen, _ = process.communicate()
        return screen, None
    return screen, process.returncode


def judged(run: Run) -> tuple[str, str]:
    """Colour and outcome of a run with a fault."""
    if run.rc is None:
        return "red", f"no end within {RUN_LIMIT} s"
    if run.rc == 0:
        return "green", "finished"
    return ("green" if is_sound(run.message()) else "red"), "stopped"


def is_sound(message: str) -> bool:
    """True if this is a message for an operator: no trace, no bare exit status, not a screenful."""
    return bool(message) and len(message) <= LONGEST_MESSAGE and RAW.search(message) is None


def commit() -> str:
    """The commit of the checkout, with + if files of the product differ from it."""
    ask = ["git", "-C", str(ROOT)]
    short = subprocess.run([*ask, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    product = ["library", "module_utils", "plugins", "roles", "playbooks", "site.yml"]
    changed = subprocess.run([*ask, "diff", "--quiet", "HEAD", "--", *product], check=False).returncode
    return short.stdout.strip() + ("+" if changed else "")


def lab(*arguments: str, check: bool = True) -> int:
    """Call the lab's command line."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "lab"))
    return subprocess.run(
        [*LAB, *arguments], cwd=ROOT, env=environment, check=check, timeout=1800, stdout=subprocess.DEVNULL
    ).returncode


def say(line: str) -> None:
    """Print a line, unbuffered."""
    print(line, flush=True)


def show(found: dict[str, str]) -> None:
    """Print a row."""
    say(
        f"{found['colour']:5} {found['host']:6} {found['fault']} {found['moment']} -> {found['outcome']}"
        f" ({found['seconds']} s) {found['message']}"
    )


# ---- the record


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    """Let one host at a time, of all fault grids of this machine, continue."""
    with (paths.STATE / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def recorded() -> Iterator[dict[str, Any]]:
    """The record; changes to it are written at the end."""
    with _locked("fault-grid-record.lock"):
        text = RECORD.read_text() if RECORD.exists() else '{"undisturbed": {}, "rows": []}'
        record: dict[str, Any] = json.loads(text)
        yield record
        new = json.dumps(record, indent=1, sort_keys=True) + "\n"
        if new != text:
            RECORD.write_text(new)


def record_row(found: dict[str, str]) -> None:
    """Write a row into the record, in place of the earlier row of its cell."""
    cell = fault_cells.cell_of(found)
    with recorded() as record:
        rows = [each for each in record["rows"] if fault_cells.cell_of(each) != cell]
        record["rows"] = sorted([*rows, found], key=fault_cells.cell_of)


def green() -> set[Cell]:
    """The cells that need not be run again."""
    with recorded() as record:
        return {fault_cells.cell_of(row) for row in record["rows"] if row["colour"] == "green"}


def run_host(host: str, options: argparse.Namespace) -> None:
    """Run the requested parts on one host."""
    grid = FaultGrid(host)
    grid.learn(refresh=not options.learned)
    done = green() if options.missing else set()
    parts = options.only or PARTS
    if "environment" in parts:
        requested = fault_cells.faults_of(host, options.fault)
        grid.environment(
            [each for each in requested if Cell("environment", host, each.title(), each.moment()) not in done]
        )
    for kind in CUTS:
        cells = {Cell(kind, host, CUTS[kind], when) for when, _, _ in fault_cells.cuts_of(grid.tasks)}
        if kind in parts and not (options.missing and cells <= done):
            grid.cut(kind)


def main() -> int:
    """Run the requested parts, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--host", action="append", choices=HOSTS)
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--fault", action="append", help="only faults of the environment of this name")
    parser.add_argument("--learned", action="store_true", help="use the recorded undisturbed run")
    parser.add_argument("--missing", action="store_true", help="skip what is green in the record")
    parser.add_argument("--page", action="store_true", help="run nothing, only write the page")
    options = parser.parse_args()
    paths.STATE.mkdir(parents=True, exist_ok=True)
    if not options.page:
        engine.start(hosts.remove_interrupted)
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda host: run_host(host, options), options.host or HOSTS))
    with recorded() as record:
        PAGE.write_text(fault_cells.page(record))
        return int(any(row["colour"] == "red" for row in record["rows"]))


if __name__ == "__main__":
    sys.exit(main())
