"""Break provisioning runs in every way that the lab knows, and write docs/faults.md: fault x moment -> outcome.

usage: tools/campaign.py [--host NAME]... [--only PART]... [--fault NAME]... [--together]

PART is environment (faults of hosts, mirror and network), control (the control node dies), ssh (connections are cut) or
power (the host's power is cut). What was run is kept in tools/campaign.json, which the page is made of, each row with
its commit; a row that is run again takes the place of the old one. Every cell is: a bare host, the fault, a run, the
fault healed, a run; the second one has to finish, and to leave the same files as a run that nothing disturbed.
--together makes that comparison once for a series of faults instead of after each. Needs root, and leaves the lab up.
"""
# ruff: noqa: E402  the lab and the tests' fleets are no installed packages

import argparse
import fnmatch
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "lab"), str(ROOT)]

from gpu_ready_lab import engine, faults, footprint, hosts, paths

FLEET = "campaign"
RECORD = ROOT / "tools/campaign.json"
PAGE = ROOT / "docs/faults.md"
RUN_LIMIT = 1800  # seconds; a run that takes longer counts as hanging
LONG = 8.0  # seconds; a task that takes longer is also broken in its middle
PLAYBOOK = [str(Path(sys.executable).parent / "ansible-playbook"), "site.yml"]
HOSTS = ("c-deb", "c-rpm")
RAW = re.compile(r"Traceback|MODULE FAILURE|non-zero return code|Unexpected failure|\[Errno \d+\](?!.*:)")
LONGEST_SENTENCE = 1200


class Fault(NamedTuple):
    """A fault of the environment and when it comes: at the start, or before the first task whose name matches."""

    name: str
    arguments: tuple[str, ...] = ()
    before: str | None = None
    only: tuple[str, ...] = HOSTS
    variables: tuple[tuple[str, str], ...] = ()
    keeps: str = ""
    """A glob of paths that the fault changes for good."""


DISTRO = "deb.debian.org/*"
VENDOR = "*/cuda/repos/*"
INSTALL = "nvidia_driver : install | *"
ENVIRONMENT = (
    Fault("mirror-down"),
    Fault("mirror-404", (VENDOR,)),
    Fault("mirror-500", (VENDOR,)),
    Fault("mirror-404", ("*.deb",), only=("c-deb",)),
    Fault("mirror-404", ("*.rpm",), only=("c-rpm",)),
    Fault("mirror-truncated", ("*.deb",), only=("c-deb",)),
    Fault("mirror-truncated", ("*.rpm",), only=("c-rpm",)),
    Fault("mirror-corrupt", ("*.deb",), only=("c-deb",)),
    Fault("mirror-corrupt", ("*.rpm",), only=("c-rpm",)),
    Fault("mirror-corrupt", (DISTRO,), only=("c-deb",)),
    Fault("mirror-signature"),
    Fault("mirror-expired-key", only=("c-deb",)),
    Fault("mirror-hang", (VENDOR,)),
    Fault("clock", ("-4000",)),
    Fault("clock", ("9000",)),
    Fault("dns"),
    Fault("disk-full"),
    Fault("disk-full", ("/var/lib/gpu-ready", "4k")),
    Fault("read-only", ("/usr",)),
    Fault("read-only", ("/etc",)),
    Fault("half-configured", ("1",), only=("c-deb",)),
    Fault("headers-gone"),
    Fault("sudo-password", variables=(("ansible_user", "visitor"),)),
    Fault("python-gone", only=("c-deb",)),
    Fault("python-old", only=("c-deb",)),
    Fault("docker-refuses", before="docker_engine : configure | *"),
    Fault("gpu-off-bus", before="gpu_verify : *"),
    Fault("mirror-down", before=INSTALL),
    Fault("package-lock", ("40",)),
    Fault("half-configured", ("0",), only=("c-deb",)),
    Fault("tmp-noexec"),
    Fault("mirror-slow"),
    Fault("daemon-json", before="nvidia_container_runtime : configure | *", keeps="/etc/docker/daemon.json"),
)


class Run(NamedTuple):
    """What a run did: exit status (None: it was killed, or did not end), seconds, what it said of the host."""

    rc: int | None
    seconds: float
    events: list[dict[str, Any]]
    screen: str

    def sentence(self) -> str:
        """Return why the host is not ready, "" where it is."""
        said = [event["message"] for event in self.events if event["status"] in ("failed", "unreachable")]
        if said:
            return " ".join(said[-1].split())
        return "" if self.rc == 0 else " ".join(self.screen.split())[-600:]


class Campaign:
    """One host of the fleet and what is done to it."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.good: dict[str, str] = {}
        self.tasks: list[tuple[str, float]] = []
        """The tasks of an undisturbed run that did something, with their seconds."""

    # ---- the host

    def running(self) -> hosts.Running:
        """Return the host."""
        return hosts.find(f"{FLEET}/{self.host}")

    def fresh(self) -> None:
        """Have the host as its image is."""
        there = [each for each in hosts.existing() if (each.fleet, each.host) == (FLEET, self.host)]
        hosts.remove(there)
        lab("up", f"lab/fleets/{FLEET}.yml")

    # ---- runs

    def run(self, moment: dict[str, Any] | None = None, variables: Iterable[tuple[str, str]] = ()) -> Run:
        """Run site.yml on the host; what comes at a moment may kill it."""
        with tempfile.TemporaryDirectory() as folder:
            events, mark = Path(folder, "events"), Path(folder, "mark")
            environment = dict(
                os.environ,
                PYTHONPATH=str(ROOT / "lab"),
                ANSIBLE_NOCOLOR="1",
                ANSIBLE_CALLBACK_PLUGINS=str(ROOT / "tests/integration/callback_plugins"),
                ANSIBLE_CALLBACKS_ENABLED="record,moment" if moment else "record",
                ANSIBLE_SSH_CONTROL_PATH_DIR=f"{folder}/cp",
                GPU_READY_TEST_EVENTS=str(events),
                GPU_READY_MOMENT=json.dumps({**(moment or {}), "mark": str(mark)}),
            )
            extra = {"gpu_report_folder": f"{folder}/reports", **dict(variables)}
            argv = [*PLAYBOOK, "-i", str(paths.fleet_folder(FLEET) / "gpu_hosts"), "--limit", self.host]
            started = time.monotonic()
            process = subprocess.Popen(
                [*argv, "-e", json.dumps(extra)], cwd=ROOT, env=environment, text=True, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            screen, rc = _wait(process)
            lines = events.read_text().splitlines() if events.exists() else []
            found = Run(rc, time.monotonic() - started, [json.loads(line) for line in lines], screen)
            self.happened = mark.exists()
        return found

    def learn(self) -> None:
        """Provision the bare host undisturbed: its tasks, and the files that every other way has to end in."""
        self.fresh()
        run = self.run()
        if run.rc != 0:
            raise SystemExit(f"{self.host}: the undisturbed run failed: {run.sentence()}")
        self.good = footprint.take(self.running())
        last = None
        for event in run.events:
            if last is not None and event["status"] == "ok" and event["changed"]:
                self.tasks.append((event["task"], event["time"] - last))
            last = event["time"]
        say(f"{self.host}: undisturbed in {run.seconds:.0f} s, {len(self.tasks)} tasks that change something")

    def repaired(self, keeps: str = "") -> str:
        """Run the same command again, to the end: "" when it finished with the same files, else what is wrong."""
        run = self.run()
        if run.rc != 0:
            return f"the next run failed: {run.sentence()}"
        lines = footprint.differences(self.good, footprint.take(self.running()))
        lines = [line for line in lines if not (keeps and fnmatch.fnmatchcase(line.partition(": ")[0], keeps))]
        if lines:
            return f"other files than after an undisturbed run ({len(lines)}): {'; '.join(lines)[:800]}"
        again = self.run()
        return "" if not any(event["changed"] for event in again.events) else "a third run changed something"

    # ---- faults of the environment

    def suffer(self, fault: Fault) -> dict[str, str]:
        """Run with a fault, heal it, and return the row."""
        moment = None
        if fault.before is None:
            faults.put(self.running(), fault.name, list(fault.arguments))
        else:
            task = next((name for name, _ in self.tasks if fnmatch.fnmatchcase(name, fault.before)), None)
            if task is None:
                return row(self.host, fault, "red", f"no task {fault.before} in an undisturbed run")
            argv = [sys.executable, "-m", "gpu_ready_lab", "fault", self.host, fault.name, *fault.arguments]
            moment = {"task": task, "argv": argv}
        try:
            run = self.run(moment, fault.variables)
        finally:
            faults.heal(self.running(), fault.name)
        if moment and not self.happened:
            return row(self.host, fault, "red", f"the moment never came: {run.sentence()}", run)
        return row(self.host, fault, *judged(run), run)

    def environment(self, wanted: Sequence[Fault], together: bool) -> None:
        """Run all faults of the environment."""
        waiting: list[dict[str, str]] = []
        for number, fault in enumerate(each for each in wanted if self.host in each.only):
            if not waiting and number:
                self.fresh()
            found = self.suffer(fault)
            waiting.append(found)
            show(found)
            if not together or found["outcome"] == "finished" or fault.keeps:
                self.settle(waiting, fault.keeps)
                waiting = []
        if waiting:
            self.settle(waiting, "")

    def settle(self, rows: list[dict[str, str]], keeps: str) -> None:
        """Let the next run repair what faults left, and keep the rows."""
        wrong = self.repaired(keeps)
        for found in rows:
            found["next run"] = wrong or "finished, same files"
            if wrong:
                found["colour"] = "red"
            keep(found)
        say(f"{self.host}: after {', '.join(found['fault'] for found in rows)}: {rows[-1]['next run']}")

    # ---- cuts at the boundaries and in the middle of tasks

    def cut(self, kind: str, every: int) -> None:
        """Cut one run after the other: each at the next boundary, or in the middle of the next long task."""
        self.fresh()
        rows = []
        for number, (name, seconds) in enumerate(self.tasks):
            moments = [("before", 0.0)] + ([("in the middle of", seconds / 2)] if seconds > LONG else [])
            for when, after in moments:
                if number % every and not after:
                    continue
                moment: dict[str, Any] = {"task": name, "after": after}
                moment |= {"die": True} if kind == "control" else {"argv": self.cutter(kind)}
                run = self.run(moment)
                found = {
                    "part": kind, "host": self.host, "fault": CUTS[kind], "moment": f"{when} {name}", "colour": "green",
                    "commit": commit(), "seconds": f"{run.seconds:.0f}",
                    "outcome": "killed" if run.rc is None or run.rc < 0 else ("finished" if run.rc == 0 else "stopped"),
                    "sentence": "" if kind == "control" else run.sentence(),
                }  # fmt: skip
                if not self.happened:
                    found["outcome"] = "the run before had done it"
                elif found["outcome"] == "stopped" and not sound(found["sentence"]):
                    found["colour"] = "red"
                rows.append(found)
                show(found)
        self.settle(rows, "")

    def cutter(self, kind: str) -> list[str]:
        """Return the command that cuts."""
        words = ["fault", self.host, "ssh-dropped"] if kind == "ssh" else ["power-cycle", self.host]
        return [sys.executable, "-m", "gpu_ready_lab", *words]


CUTS = {"control": "control node dies", "ssh": "SSH connections cut", "power": "power cut"}
EVERY = {"control": 1, "ssh": 5, "power": 5}
PARTS = ("environment", *CUTS)


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


def row(host: str, fault: Fault, colour: str, outcome: str, run: Run | None = None) -> dict[str, str]:
    """Return a row of the table."""
    return {
        "part": "environment", "host": host, "fault": " ".join([fault.name, *fault.arguments]),
        "moment": f"before {fault.before}" if fault.before else "from the start", "colour": colour, "outcome": outcome,
        "sentence": run.sentence() if run else "", "seconds": f"{run.seconds:.0f}" if run else "0", "commit": commit(),
    }  # fmt: skip


def commit() -> str:
    """Return the commit of the checkout, with + where files differ from it."""
    ask = ["git", "-C", str(ROOT)]
    short = subprocess.run([*ask, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    product = ["library", "module_utils", "roles", "playbooks", "site.yml"]
    changed = subprocess.run([*ask, "diff", "--quiet", "HEAD", "--", *product], check=False).returncode
    return short.stdout.strip() + ("+" if changed else "")


def lab(*arguments: str) -> None:
    """Call the lab's command line."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "lab"))
    subprocess.run(
        [sys.executable, "-m", "gpu_ready_lab", *arguments], cwd=ROOT, env=environment, check=True, timeout=1800,
        stdout=subprocess.DEVNULL,
    )  # fmt: skip


def say(words: str) -> None:
    """Print a line at once."""
    print(words, flush=True)


def show(found: dict[str, str]) -> None:
    """Print a row."""
    say(
        f"{found['colour']:5} {found['host']:6} {found['fault']} {found['moment']} -> {found['outcome']}"
        f" ({found['seconds']} s) {found['sentence']}"
    )


# ---- the record and the page


def keep(found: dict[str, str]) -> None:
    """Put a row into the record."""
    rows = json.loads(RECORD.read_text()) if RECORD.exists() else []
    rows = [each for each in rows if _key(each) != _key(found)] + [found]
    rows.sort(key=_key)
    RECORD.write_text(json.dumps(rows, indent=1) + "\n")


def _key(found: dict[str, str]) -> tuple[str, ...]:
    return tuple(found[name] for name in ("part", "host", "fault", "moment"))


HEAD = """# Faults: what happens to a run that is disturbed

Generated by `tools/campaign.py`; do not edit. Hosts are containers of the lab: c-deb is a Debian 13, c-rpm a host
dressed as Rocky Linux 9. Each row is a bare host, a run of `site.yml` with the fault, the fault healed, and the same
command again. It is green when the first run finished, or stopped with a sentence within its time, and the next one
finished with the files of an undisturbed run: paths, modes, owners, contents and packages, without what
`lab/gpu_ready_lab/footprint.py` names and explains. Rows of one series (cuts at boundaries; faults run with
`--together`) share that comparison: each run goes on where the one before stopped. A commit with + had changes.

"""


def page(rows: Iterable[dict[str, str]]) -> str:
    """Return docs/faults.md."""
    text = HEAD
    listed = list(rows)
    red = sum(found["colour"] == "red" for found in listed)
    text += f"{len(listed)} rows, {red} red.\n"
    for part in PARTS:
        mine = [found for found in listed if found["part"] == part]
        if not mine:
            continue
        text += f"\n## {CUTS.get(part, 'faults of the environment').capitalize()}\n\n"
        text += "| host | fault | moment | outcome | what the operator reads | next run | commit |\n"
        text += "|---|---|---|---|---|---|---|\n"
        for found in mine:
            outcome = f"{found['outcome']}, {found['seconds']} s" + (" **red**" if found["colour"] == "red" else "")
            cells = [
                found["host"], f"`{found['fault']}`", found["moment"], outcome, found["sentence"], found["next run"],
                found["commit"],
            ]  # fmt: skip
            text += "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"
    return text


def main() -> int:
    """Run what is asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--host", action="append", choices=HOSTS)
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--fault", action="append", help="only faults of the environment of this name")
    parser.add_argument("--together", action="store_true", help="compare files once after a series of faults")
    parser.add_argument("--page", action="store_true", help="run nothing, only write the page")
    said = parser.parse_args()
    if not said.page:
        engine.start()
        for host in said.host or HOSTS:
            campaign = Campaign(host)
            campaign.learn()
            campaign.fresh()
            if "environment" in (said.only or PARTS):
                wanted = [each for each in ENVIRONMENT if not said.fault or each.name in said.fault]
                campaign.environment(wanted, said.together)
            for kind in CUTS:
                if kind in (said.only or PARTS):
                    campaign.cut(kind, EVERY[kind])
    rows = json.loads(RECORD.read_text()) if RECORD.exists() else []
    PAGE.write_text(page(rows))
    return int(any(found["colour"] == "red" for found in rows))


if __name__ == "__main__":
    sys.exit(main())
