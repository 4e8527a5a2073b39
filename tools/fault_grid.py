"""Break provisioning runs in every way that the lab knows, and write docs/dev/faults.md: fault x moment -> outcome.

usage: tools/fault_grid.py [--host NAME]... [--only PART]... [--fault NAME]... [--learned] [--missing] [--page]

PART is environment (faults of hosts, mirror and network), control (the control node dies), ssh (connections are cut) or
power (the host's power is cut). What was run is kept in tools/fault_grid.json, which the page is made of, each row with
its commit; a row that is run again takes the place of the old one. What the cells are, and what a row says, is in
tools/fault_cells.py. Needs root, and leaves the lab up.
"""
# ruff: noqa: E402  the lab and the tests' fleets are no installed packages

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
"""In the folder of the fleet: the files of a host after an undisturbed run."""
RUN_LIMIT = 1800  # seconds; a run that takes longer counts as hanging
PLAYBOOK = [str(Path(sys.executable).parent / "ansible-playbook"), "site.yml"]
ARCHIVE = re.compile(r"\b[a-z]+\.debian\.\w*")  # also where a sentence was cut off
"""Which mirror a machine asks is nobody's matter."""
RAW = re.compile(r"Traceback|MODULE FAILURE|Module failed|non-zero return code|Unexpected failure|\[Errno \d+\](?!.*:)")
LONGEST_SENTENCE = 1200
SECOND_RUN = "second-run"
AS_IT_WAS = "as it was"
REPAIRED = "repaired"
UP_TRIES = 3  # the other host of the fleet may be off just now


class Run(NamedTuple):
    """What a run did: exit status (None: it was killed, or did not end), seconds, what it said of the host."""

    rc: int | None
    seconds: float
    events: list[dict[str, Any]]
    screen: str
    came: list[bool]
    """Whether what was to come at each moment did come."""

    def killed(self) -> bool:
        """Tell whether it was ended by a signal."""
        return self.rc is None or self.rc < 0

    def sentence(self) -> str:
        """Return why the host is not ready, "" where it is."""
        failed = [event for event in self.events if event["status"] in ("failed", "unreachable")]
        said = [event["message"] for event in failed]
        if failed and failed[-1]["status"] == "unreachable":  # Ansible's own words; the screen has ours
            said = [line.strip() for line in self.screen.splitlines() if " does not answer at '" in line]
        if said:
            return ARCHIVE.sub("MIRROR", " ".join(said[-1].split()))
        return "" if self.rc == 0 else " ".join(self.screen.split())[-600:]


class FaultGrid:
    """One host of the fleet and what is done to it."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.good: dict[str, str] = {}
        self.tasks: list[tuple[str, float]] = []
        """The tasks of an undisturbed run that changed something, with their seconds."""

    # ---- the host

    def running(self) -> hosts.Running:
        """Return the host."""
        return hosts.find(f"{FLEET}/{self.host}")

    def fresh(self) -> None:
        """Have the host as its image is."""
        with _locked("fault-grid.lock"):
            hosts.remove([each for each in hosts.existing() if (each.fleet, each.host) == (FLEET, self.host)])
            for left in reversed(range(UP_TRIES)):
                if lab("up", f"lab/fleets/{FLEET}.yml", check=not left) == 0:
                    break

    def differences(self, before: dict[str, str]) -> list[str]:
        """Return what differs on the host, one sentence a path."""
        return footprint.differences(before, footprint.take(self.running()))

    # ---- runs

    def run(self, *moments: dict[str, Any], variables: Iterable[tuple[str, str]] = ()) -> Run:
        """Run site.yml on the host; what comes at moments may kill it."""
        with tempfile.TemporaryDirectory() as folder:
            events = Path(folder, "events")
            planned = [{**moment, "mark": f"{folder}/mark-{number}"} for number, moment in enumerate(moments)]
            environment = dict(
                os.environ,
                PYTHONPATH=str(ROOT / "lab"),
                ANSIBLE_NOCOLOR="1",
                ANSIBLE_CALLBACK_PLUGINS=str(ROOT / "tests/integration/callback_plugins"),
                ANSIBLE_CALLBACKS_ENABLED="record,moment" if moments else "record",
                ANSIBLE_SSH_CONTROL_PATH_DIR=f"{folder}/cp",
                GPU_READY_TEST_EVENTS=str(events),
                GPU_READY_MOMENT=json.dumps(planned),
            )
            extra = {"gpu_report_directory": f"{folder}/reports", **dict(variables)}
            argv = [*PLAYBOOK, "-i", str(paths.fleet_folder(FLEET) / "gpu_hosts"), "--limit", self.host]
            started = time.monotonic()
            process = subprocess.Popen(
                [*argv, "-e", json.dumps(extra)], cwd=ROOT, env=environment, text=True, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            screen, rc = _wait(process)
            lines = events.read_text().splitlines() if events.exists() else []
            came = [Path(moment["mark"]).exists() for moment in planned]
            return Run(rc, time.monotonic() - started, [json.loads(line) for line in lines], screen, came)

    def learn(self, again: bool) -> None:
        """Provision the bare host undisturbed: its tasks, and the files that every other way has to end in."""
        kept = paths.fleet_folder(FLEET) / LEARNED.format(self.host)
        if again or not kept.exists():
            self.fresh()
            run = self.run()
            if run.rc != 0:
                raise SystemExit(f"{self.host}: the undisturbed run failed: {run.sentence()}")
            kept.write_text(json.dumps(footprint.take(self.running())))
            tasks, last = [], None
            for event in run.events:
                if last is not None and event["status"] == "ok" and event["changed"]:
                    tasks.append((event["task"], round(event["time"] - last, 1)))
                last = event["time"]
            with recorded() as record:
                # The cells stay what they were as long as the tasks do: a second more or less makes no other grid.
                before = record["undisturbed"].get(self.host, {}).get("tasks", [])
                if [name for name, _ in before] == [name for name, _ in tasks]:
                    tasks = [(name, seconds) for name, seconds in before]
                record["undisturbed"][self.host] = {"commit": commit(), "seconds": round(run.seconds), "tasks": tasks}
            say(f"{self.host}: undisturbed in {run.seconds:.0f} s, {len(tasks)} tasks that change something")
        self.good = json.loads(kept.read_text())
        with recorded() as record:
            self.tasks = [(name, seconds) for name, seconds in record["undisturbed"][self.host]["tasks"]]

    def repaired(self, keeps: Sequence[str] = ()) -> str:
        """Run the same command again, to the end: "" when it finished with the same files, else what is wrong."""
        run = self.run()
        if run.rc != 0:
            return f"the next run failed: {run.sentence()}"
        lines = self.differences(self.good)
        lines = [
            line for line in lines if not any(fnmatch.fnmatchcase(line.partition(": ")[0], glob) for glob in keeps)
        ]
        if lines:
            return f"other files than after an undisturbed run ({len(lines)}): {'; '.join(lines)[:800]}"
        changed = any(event["changed"] for event in run.events)
        again = self.run() if changed else run
        return "" if not any(event["changed"] for event in again.events) else "a third run changed something"

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
                faults.put(self.running(), fault.name, list(fault.arguments))
                run = self.run(variables=fault.variables)
            else:
                run = self.run({"task": task, "argv": self.to_put(fault)}, variables=fault.variables)
        finally:
            faults.heal(self.running(), fault.name)
        if fault.before and not all(run.came):
            return self.row(fault, "red", f"the moment never came: {run.sentence()}", run)
        return self.row(fault, *judged(run), run)

    def to_put(self, fault: Fault) -> list[str]:
        """Return the command that lets the host have a fault."""
        return [*LAB, "fault", f"{FLEET}/{self.host}", fault.name, *fault.arguments]

    def pass_through(self, wanted: Sequence[Fault]) -> None:
        """Let one run meet several faults, each at its task and until the next one's."""
        self.fresh()
        moments: list[dict[str, Any]] = []
        before: list[str] = []
        for fault in wanted:
            task = fault_cells.task_of(fault, self.tasks)
            moments += [{"task": task, "argv": before}] if before else []
            moments.append({"task": task, "argv": self.to_put(fault)})
            before = [*LAB, "heal", f"{FLEET}/{self.host}", fault.name]
        try:
            run = self.run(*moments)
        finally:
            for fault in wanted:
                faults.heal(self.running(), fault.name)
        colour, outcome = judged(run)
        if not all(run.came):
            colour, outcome = "red", f"{outcome}; a moment never came"
        rows = [self.row(fault, colour, outcome, run) for fault in wanted]
        for found in rows:
            show(found)
        self.settle(rows, [glob for fault in wanted for glob in fault.keeps])

    def twice(self, fault: Fault) -> dict[str, str]:
        """Start a second run while the first one is in the middle of a task."""
        task = fault_cells.task_of(fault, self.tasks)
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
            flag = Path(folder, "flag")
            first = pool.submit(self.run, {"task": task, "after": 2, "argv": ["/usr/bin/touch", str(flag)]})
            while not flag.exists() and not first.done():
                time.sleep(0.2)
            second = self.run()
            both = {"first": first.result(), "second": second}
        judgements = {name: judged(run) for name, run in both.items()}
        colour = "red" if "red" in [colour for colour, _ in judgements.values()] else "green"
        outcome = ", ".join(f"the {name} {what}" for name, (_, what) in judgements.items())
        worst = max(both.values(), key=lambda run: len(run.sentence()))
        if not any(run.rc == 0 for run in both.values()):
            colour = "red"
        return self.row(fault, colour, outcome, worst)

    def row(self, fault: Fault, colour: str, outcome: str, run: Run | None = None) -> dict[str, str]:
        """Return a row of the table."""
        return {
            "part": "environment", "host": self.host, "fault": fault.title(), "moment": fault.moment(),
            "colour": colour, "outcome": outcome, "sentence": run.sentence() if run else "",
            "seconds": f"{run.seconds:.0f}" if run else "0", "commit": commit(),
        }  # fmt: skip

    def environment(self, wanted: Sequence[Fault]) -> None:
        """Run faults of the environment, with a new host where the last one did not leave it bare."""
        bare: dict[str, str] | None = None
        series: list[dict[str, str]] = []
        passing = [fault for fault in wanted if fault.passes]
        if passing:
            self.pass_through(passing)
        for fault in (each for each in wanted if not each.passes):
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
                keep(found)
                continue
            bare = None
            series.append(found)
            if not stopped:
                self.settle(series, fault.keeps)
                series = []
        if series:
            self.settle(series)

    def prepare(self, fault: Fault) -> None:
        """Have a host in use."""
        run = self.run(variables=fault.prepare)
        if run.rc != 0:
            raise SystemExit(f"{self.host}: the run before {fault.title()} failed: {run.sentence()}")

    def settle(self, rows: list[dict[str, str]], keeps: Sequence[str] = ()) -> None:
        """Let the next run repair what faults left, and keep the rows."""
        wrong = self.repaired(keeps)
        for found in rows:
            found["afterwards"] = wrong or REPAIRED
            if wrong:
                found["colour"] = "red"
            keep(found)
        say(f"{self.host}: after {', '.join(found['fault'] for found in rows)}: {rows[-1]['afterwards']}")

    # ---- cuts at the boundaries and in the middle of tasks

    def cut(self, kind: str) -> None:
        """Cut runs at every moment: each cut comes in the first run that gets there.

        A dead control node ends its run, so the next one has the next moment. A run that goes on after a cut meets the
        next one, too; where it stops, another goes on.
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
                hosts.power_on(self.running())  # the next run does not begin while it still boots
                if run.rc == 0 or not found:
                    break
        for when, _, _ in left:
            say(f"{self.host}: not cut {when}: a run was through with this task")
        self.settle(rows)

    def moment(self, kind: str, task: str, after: float) -> dict[str, Any]:
        """Return what is to come in a run."""
        how = {"die": True} if kind == "control" else {"argv": self.cutter(kind)}
        return {"task": task, "after": after, **how}

    def cut_row(self, kind: str, when: str, run: Run) -> dict[str, str]:
        """Return the row of a cut that came."""
        outcome = "killed" if run.killed() else "finished" if run.rc == 0 else "stopped"
        sentence = "" if run.killed() else run.sentence()
        wrong = run.rc is None or (outcome == "stopped" and not sound(sentence))
        return {
            "part": kind, "host": self.host, "fault": CUTS[kind], "moment": when, "colour": "red" if wrong else "green",
            "commit": commit(), "seconds": f"{run.seconds:.0f}", "outcome": outcome, "sentence": sentence,
        }  # fmt: skip

    def cutter(self, kind: str) -> list[str]:
        """Return the command that cuts."""
        name = f"{FLEET}/{self.host}"
        return [*LAB, "fault", name, "ssh-dropped"] if kind == "ssh" else [*LAB, "power-cycle", name]


LAB = [sys.executable, "-m", "gpu_ready_lab"]


def _wait(process: subprocess.Popen[str]) -> tuple[str, int | None]:
    """Return what a run printed and its exit status; None when it had to be ended."""
    try:
        screen, _ = process.communicate(timeout=RUN_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        screen, _ = process.communicate()
        return screen, None
    return screen, process.returncode


def judged(run: Run) -> tuple[str, str]:
    """Return colour and outcome of a run with a fault."""
    if run.rc is None:
        return "red", f"no end within {RUN_LIMIT} s"
    if run.rc == 0:
        return "green", "finished"
    return ("green" if sound(run.sentence()) else "red"), "stopped"


def sound(sentence: str) -> bool:
    """Tell whether this is a sentence for an operator: no trace, no bare exit status, not a screen full."""
    return bool(sentence) and len(sentence) <= LONGEST_SENTENCE and RAW.search(sentence) is None


def commit() -> str:
    """Return the commit of the checkout, with + where files differ from it."""
    ask = ["git", "-C", str(ROOT)]
    short = subprocess.run([*ask, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    product = ["library", "module_utils", "roles", "playbooks", "site.yml"]
    changed = subprocess.run([*ask, "diff", "--quiet", "HEAD", "--", *product], check=False).returncode
    return short.stdout.strip() + ("+" if changed else "")


def lab(*arguments: str, check: bool = True) -> int:
    """Call the lab's command line."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "lab"))
    return subprocess.run(
        [*LAB, *arguments], cwd=ROOT, env=environment, check=check, timeout=1800, stdout=subprocess.DEVNULL
    ).returncode


def say(words: str) -> None:
    """Print a line at once."""
    print(words, flush=True)


def show(found: dict[str, str]) -> None:
    """Print a row."""
    say(
        f"{found['colour']:5} {found['host']:6} {found['fault']} {found['moment']} -> {found['outcome']}"
        f" ({found['seconds']} s) {found['sentence']}"
    )


# ---- the record


@contextlib.contextmanager
def _locked(name: str) -> Iterator[None]:
    """Let one host at a time, of all fault grids of this machine, go on."""
    with (paths.STATE / name).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def recorded() -> Iterator[dict[str, Any]]:
    """Give the record, and keep what is changed in it."""
    with _locked("fault-grid-record.lock"):
        text = RECORD.read_text() if RECORD.exists() else '{"undisturbed": {}, "rows": []}'
        record: dict[str, Any] = json.loads(text)
        yield record
        new = json.dumps(record, indent=1, sort_keys=True) + "\n"
        if new != text:
            RECORD.write_text(new)


def keep(found: dict[str, str]) -> None:
    """Put a row into the record, in place of the one that its cell had."""
    cell = fault_cells.cell_of(found)
    with recorded() as record:
        rows = [each for each in record["rows"] if fault_cells.cell_of(each) != cell]
        record["rows"] = sorted([*rows, found], key=fault_cells.cell_of)


def green() -> set[Cell]:
    """Return the cells that need not be run again."""
    with recorded() as record:
        return {fault_cells.cell_of(row) for row in record["rows"] if row["colour"] == "green"}


def one_host(host: str, said: argparse.Namespace) -> None:
    """Run what is asked for on one host."""
    grid = FaultGrid(host)
    grid.learn(again=not said.learned)
    done = green() if said.missing else set()
    parts = said.only or PARTS
    if "environment" in parts:
        wanted = fault_cells.faults_of(host, said.fault)
        grid.environment(
            [each for each in wanted if Cell("environment", host, each.title(), each.moment()) not in done]
        )
    for kind in CUTS:
        cells = {Cell(kind, host, CUTS[kind], when) for when, _, _ in fault_cells.cuts_of(grid.tasks)}
        if kind in parts and not (said.missing and cells <= done):
            grid.cut(kind)


def main() -> int:
    """Run what is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--host", action="append", choices=HOSTS)
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--fault", action="append", help="only faults of the environment of this name")
    parser.add_argument("--learned", action="store_true", help="take the last undisturbed run for today's")
    parser.add_argument("--missing", action="store_true", help="leave out what is green in the record")
    parser.add_argument("--page", action="store_true", help="run nothing, only write the page")
    said = parser.parse_args()
    paths.STATE.mkdir(parents=True, exist_ok=True)
    if not said.page:
        engine.start()
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda host: one_host(host, said), said.host or HOSTS))
    with recorded() as record:
        PAGE.write_text(fault_cells.page(record))
        return int(any(row["colour"] == "red" for row in record["rows"]))


if __name__ == "__main__":
    sys.exit(main())
