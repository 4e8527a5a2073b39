"""gpu-ready-check: the health of this host's GPUs in one line or as JSON.

Its exit status is that of monitoring plugins: 0 healthy, 1 warning, 2 critical, 3 not known. It runs by itself on the
host, with Python 3.6 and the standard library. It starts no program of the driver, needs no network, and asks NVML in a
process of its own, for five seconds at most.
"""

import argparse
import json
import os
import re
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import node, reading, slurm, worker, xids
from .judge import CHECKS, judge
from .model import CRITICAL, INFO, PASS, UNKNOWN, Expected, Finding, HealthVerdict, Readings
from .rules import make_rules

STATE = "/var/lib/gpu-ready/health.json"
STUCK = "/run/gpu-ready/check-waits"
"""Process that still waits for the driver, with its start time: no second one is started meanwhile."""
SCHEMA = 1
LIMIT, BOOT_LIMIT = 5.0, 120.0
"""Seconds for NVML. The first question after a boot initialises every GPU."""
PROLOG, HEALTH, DETECTOR = "slurm-prolog", "slurm-health", "npd"
MODES = {
    PROLOG: "as a prolog of slurm: exit status 1 where the node must not take the job",
    HEALTH: "as HealthCheckProgram of slurm: drain the node, or resume it if this program drained it",
    DETECTOR: "as a plugin of node-problem-detector: exit status 1 for a critical verdict, 2 for an unknown one",
}
RENEWED = "at boot, by gpu-ready-check: NVML, kernel's log, device nodes"


class Options(NamedTuple):
    """``root``: of the files of the host. ``settings``: file with checks that are off, and limits."""

    mode: str
    json: bool
    write: bool
    renew: bool
    limit: float
    settings: str
    root: str = ""


def parse(arguments: List[str], settings: str) -> Options:
    parser = argparse.ArgumentParser(prog="gpu-ready-check", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--json", action="store_true", help="print the whole verdict as JSON")
    parser.add_argument("--no-write", action="store_true", help="write nothing, not even %s" % STATE)
    parser.add_argument(
        "--renew", action="store_true", help="after a boot: extend the last verification to it, if nothing differs"
    )
    for mode, about in MODES.items():
        parser.add_argument("--" + mode, dest="mode", action="store_const", const=mode, default="", help=about)
    parser.add_argument("--list", action="store_true", help="print the checks and end")
    parser.add_argument("--limit", type=float, help="seconds that NVML gets")
    given = parser.parse_args(arguments)
    if given.list:
        for name, info in sorted(CHECKS.items()):
            shown = "" if info.limit is None else "; limit %d" % info.limit
            sys.stdout.write("%-16s %s%s (%s)\n" % (name, info.about, shown, info.evidence))
        sys.exit(0)
    limit = given.limit or (BOOT_LIMIT if given.renew else LIMIT)
    return Options(given.mode, given.json, not given.no_write, given.renew, limit, settings)


def ask(limit: float, stuck: str, write: bool) -> Dict[str, Any]:
    """Return the answer of NVML; of a driver in which an earlier question still waits, without another one."""
    if waits(stuck):
        return {"error": worker.WAITING, "code": 0, "silent": True, "stuck": True}
    asked = worker.Worker(limit=limit, metrics=False)
    answer = asked.sample()
    if asked.stuck is not None and write:
        try:
            os.makedirs(os.path.dirname(stuck), mode=0o700, exist_ok=True)
            replace(stuck, "%d %s" % (asked.stuck, start_time(asked.stuck)))
        except OSError:
            pass
    return answer


def waits(path: str) -> bool:
    pid, _, since = node.read_text(path).partition(" ")
    return pid.isdigit() and bool(since) and start_time(int(pid)) == since


def start_time(pid: int) -> str:
    """Return when a process was started, as /proc/PID/stat has it (field 22, proc(5)); "" for one that has ended."""
    text = node.read_text("/proc/%d/stat" % pid)
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""


def check(options: Options) -> Tuple[Readings, Optional[Expected], HealthVerdict, Dict[str, Any]]:
    """Read the host and judge it."""
    settings = reading.read_settings(options.settings)
    record = node.read_object(options.root + node.RECORD)
    answer = ask(options.limit, options.root + STUCK, options.write)
    log = reading.read_log()
    now, expected = reading.read(answer, log, options.root), reading.read_expected(record)
    verdict = judge(now, expected, make_rules(settings))
    if options.renew and options.write and may_renew(now, expected, verdict):
        record = renewed(record, now, xids.newest(log or ""))
        replace(options.root + node.RECORD, json.dumps(record, indent=1, sort_keys=True) + "\n", 0o644)
        expected = reading.read_expected(record)
        verdict = judge(now, expected, make_rules(settings))
    return now, expected, verdict, answer


def may_renew(now: Readings, expected: Optional[Expected], verdict: HealthVerdict) -> bool:
    """Return True where the last verification succeeded in another boot and everything that it had is here now."""
    if expected is None or not expected.ok or not expected.hardware or now.boot_id is None or now.xids is None:
        return False
    other_boot = expected.boot_id != now.boot_id
    return other_boot and sorted(expected.addresses) == sorted(now.present) and verdict.level in (PASS, INFO)


def renewed(record: Dict[str, Any], now: Readings, logged: float) -> Dict[str, Any]:
    """Return the record for this boot. What it says of containers is older, and it says so."""
    checks = dict(record.get("checks", {}), renewed=RENEWED)
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return dict(record, boot_id=now.boot_id, logged=logged, time=when, checks=checks)


def to_json(now: Readings, verdict: HealthVerdict, answer: Dict[str, Any]) -> Dict[str, Any]:
    return {
        "schema": SCHEMA,
        "level": verdict.level,
        "action": verdict.action,
        "message": verdict.line(),
        "healthy": verdict.level in (PASS, INFO),
        "read_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "boot_id": now.boot_id,
        "checks": sorted(CHECKS),
        "rows": [dict(row._asdict()) for row in verdict.rows],
        "nvml_calls": answer.get("calls"),
        "gpus": [dict(gpu.identity._asdict()) for gpu in (now.nvml.gpus if now.nvml else [])],
    }


def replace(path: str, text: str, mode: int = 0o644) -> None:
    """Write a file in one step. Raises OSError."""
    temporary = "%s.%d" % (path, os.getpid())
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
        os.fchmod(stream.fileno(), mode)
    os.rename(temporary, path)


def one_line(text: str) -> str:
    """Return text without what a terminal or a log would take for a command."""
    return re.sub(r"[^\x20-\x7e]", "?", text)


def main(arguments: List[str], settings: str) -> int:
    options = parse(arguments, settings)
    try:
        now, expected, verdict, answer = check(options)
        result = to_json(now, verdict, answer)
    except Exception as error:  # a defect of the check says nothing of the GPUs
        message = "the check itself failed (%s: %s). Report it to the maintainers of gpu-ready" % (
            type(error).__name__, error)  # fmt: skip
        verdict = HealthVerdict(UNKNOWN, "", [Finding("check", UNKNOWN, message)])
        now, expected = Readings(), None
        result = to_json(now, verdict, {})
    if options.write:
        try:
            os.makedirs(os.path.dirname(options.root + STATE), mode=0o755, exist_ok=True)
            replace(options.root + STATE, json.dumps(result, indent=1, sort_keys=True) + "\n")
        except OSError as error:
            sys.stderr.write("gpu-ready-check: %s is not written: %s\n" % (STATE, error.strerror))
    if options.mode == HEALTH:
        return slurm.health_program(now, expected, verdict)
    text = json.dumps(result, sort_keys=True) if options.json else one_line(verdict.line())
    sys.stdout.write(text + "\n")
    if options.mode == PROLOG:
        return slurm.prolog(verdict)
    if options.mode == DETECTOR:
        return {CRITICAL: 1, UNKNOWN: 2}.get(verdict.level, 0)
    return verdict.status
