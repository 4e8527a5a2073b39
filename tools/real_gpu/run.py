"""Run gpu-ready on a machine with a real GPU, and put everything that it says into one archive.

usage: python3 -m tools.real_gpu.run RESULTS [PART...]        in the checkout; as root; Python 3.11 or newer

Nothing is installed or changed: no setting of a GPU, no file outside of RESULTS and a temporary directory. Each part
has a time limit, and one that fails does not stop the others. docs/dev/real-gpu.md has more.
"""

import ctypes
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RESULTS = "GPU_READY_RESULTS"
NOT_RUN = 77
"""Both as in part.py, which needs the product's code: this file must work where that does not."""
ARCHIVE, SUMMARY = "real-gpu.tar.gz", "summary.json"
TOTAL_LIMIT = 360
"""Seconds of a whole run."""
PR_SET_CHILD_SUBREAPER = 36
"""Of prctl(2): processes whose parent ends become children of this process."""
GRACE = 5.0
"""Seconds in which a killed process has to end. One that waits in the driver does not."""


class Part(NamedTuple):
    """One row of the run: a program that ends with 0 (ok), 77 (not run) or another status (failed).

    ``limit``: seconds. Its output is kept in logs/NAME.txt, and the last line is the message of the summary. It may
    write files to the directory in the environment variable GPU_READY_RESULTS.
    """

    name: str
    limit: int
    command: tuple[str, ...]


def module(name: str, limit: int) -> Part:
    return Part(name, limit, (sys.executable, "-m", f"tools.real_gpu.{name}"))


PARTS = (
    module("outputs", 40),
    module("explain", 20),
    module("plan", 85),
    module("verify", 40),
    module("metrics", 125),
)
"""In this order. A further one is a row here: a module beside this file, or any command."""


class Outcome(NamedTuple):
    """How a part ended. ``cpu``: seconds of it and the programs that it waited for."""

    name: str
    status: str
    seconds: float
    cpu: float
    message: str


def main(arguments: Sequence[str]) -> int:
    known = {part.name: part for part in PARTS}
    if not arguments or arguments[0].startswith("-") or not set(arguments[1:]) <= set(known):
        print(f"{__doc__}\nparts: {', '.join(known)}", file=sys.stderr)
        return 2
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    results = Path(arguments[0]).resolve()
    results.mkdir(parents=True, exist_ok=True)
    chosen = [known[name] for name in arguments[1:]] or list(PARTS)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="gpu-ready-") as name, tempfile.TemporaryDirectory() as site:
        directory = Path(name)
        unpack(ROOT / "build/real_gpu/wheels", site)
        for part in chosen:
            outcomes.append(run_part(part, directory, site))
            print(line_of(outcomes[-1]), flush=True)
            write_results(results, directory, outcomes)
    print("\n".join(table(outcomes)))
    print(f"archive: {results / ARCHIVE}")
    return int(any(outcome.status not in ("ok", "not run") for outcome in outcomes))


def unpack(wheels: Path, target: str) -> None:
    """A wheel is an archive of what it installs; these have no scripts that are needed here."""
    for path in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(target)


def run_part(part: Part, directory: Path, site: str) -> Outcome:
    """Run a part; ``site``: Ansible and PyYAML, where this machine got them."""
    log = directory / "logs" / f"{part.name}.txt"
    log.parent.mkdir(exist_ok=True)
    environment = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join([str(ROOT), site, os.environ.get("PYTHONPATH", "")]),
        PYTHONPYCACHEPREFIX=str(directory / "bytecode"),
        PYTHONUNBUFFERED="1",
        TMPDIR=str(temporary(directory)),
    )
    environment[RESULTS] = str(directory)
    start = time.monotonic()
    with log.open("wb") as stream:
        try:
            process = subprocess.Popen(
                part.command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
            )
        except OSError as error:
            return Outcome(part.name, "failed", 0.0, 0.0, f"{part.command[0]}: {error.strerror}")
    code, cpu = wait(process.pid, part.limit)
    left = kill_all()
    message = last_line(log)
    if left:
        message = f"{message}; {left} processes could not be ended"
    if code is None:
        message = f"no end within {part.limit} s; {message}"
    return Outcome(part.name, status_of(code), time.monotonic() - start, cpu, message)


def temporary(directory: Path) -> Path:
    """Where the parts have their temporary files: it is no part of the results."""
    path = directory / "tmp"
    path.mkdir(exist_ok=True)
    return path


def wait(pid: int, limit: float) -> tuple[int | None, float]:
    """Exit status (None after ``limit`` seconds) and the CPU time of a child and its ended children."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        found, status, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime
        time.sleep(0.05)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + GRACE
    while time.monotonic() < end:
        found, _, usage = os.wait4(pid, os.WNOHANG)
        if found:
            return None, usage.ru_utime + usage.ru_stime
        time.sleep(0.05)
    return None, 0.0


def parents() -> dict[int, int]:
    """The parent by process, from /proc/PID/stat: unlike the environment it is readable while a process hangs."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            found[int(path.parent.name)] = int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
    return found


def descendants(pid: int, parent_of: Mapping[int, int]) -> set[int]:
    found, due = set[int](), {pid}
    while due:
        due = {child for child, parent in parent_of.items() if parent in due} - found
        found |= due
    return found


def kill_all() -> int:
    """End what a part left running; the number of processes that did not end.

    Their parent is this process by then (PR_SET_CHILD_SUBREAPER): a process group is left by Ansible's workers.
    """
    end = time.monotonic() + GRACE
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        left = descendants(os.getpid(), parents())
        if not left or time.monotonic() >= end:
            return len(left)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)


def status_of(code: int | None) -> str:
    return {None: "timed out", 0: "ok", NOT_RUN: "not run"}.get(code, "failed")


def last_line(log: Path) -> str:
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def line_of(outcome: Outcome) -> str:
    name, status, seconds, cpu, message = outcome
    return f"{name:10}{status:10}{seconds:7.1f} s{cpu:7.1f} s CPU  {message.removeprefix('not run: ')[:300]}"


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """The summary: one line per part, and the sum."""
    total = Outcome("all", "", sum(one.seconds for one in outcomes), sum(one.cpu for one in outcomes), "")
    return ["", *map(line_of, outcomes), line_of(total).rstrip()]


def commit() -> str | None:
    """Return what tools/real_gpu/prepare wrote (a copy may have no history), else the commit of the checkout."""
    with suppress(OSError):
        return (ROOT / "build/real_gpu/commit").read_text().strip()
    words = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    with suppress(OSError):
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=20)
        if done.returncode == 0:
            return done.stdout.strip()
    return None


def write_results(results: Path, directory: Path, outcomes: Sequence[Outcome]) -> None:
    """The archive, written after each part: a run that is ended early leaves what it has."""
    system = os.uname()
    record = {
        "commit": commit(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "kernel": system.release,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "parts": [outcome._asdict() for outcome in outcomes],
    }
    (directory / SUMMARY).write_text(json.dumps(record, indent=1) + "\n")
    shutil.copy(directory / SUMMARY, results / SUMMARY)
    shutil.rmtree(temporary(directory), ignore_errors=True)
    with tarfile.open(results / (ARCHIVE + ".new"), "w:gz") as archive:
        for path in sorted(directory.iterdir()):
            if path.name != "bytecode":
                archive.add(path, arcname=f"real-gpu/{path.name}")
    (results / (ARCHIVE + ".new")).rename(results / ARCHIVE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
