"""Slurm's node of this host: what its health means for it, and the programs that slurmd starts.

The prolog decides by its exit status alone and asks no slurmctld: prologs of a thousand nodes that start together would
(slurm.schedmd.com/prolog_epilog.html). slurmd drains the node after one that failed, and requeues the job.
HealthCheckProgram drains and resumes, and always ends with 0: slurmd does not register at its start before it did
(slurm.conf(5), HealthCheckProgram).
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from typing import FrozenSet, List, NamedTuple, Optional

from . import node as files
from .judge import is_valid
from .model import CRITICAL, UNKNOWN, Expected, HealthVerdict, Readings

REASON = "gpu-ready-check: "
"""How our reasons begin; a node with another reason is left as it is."""
SLURM_REASONS = ("Prolog error", "Not responding", "Node unexpectedly rebooted")
"""Reasons that slurmctld writes: of a node whose prolog failed, and over ours when the drained node reboots."""
MARK = "/var/lib/gpu-ready/slurm.json"
"""This program took the node out of service, so such a reason is ours."""
STALE = 300.0
"""Seconds after which a node in service with a mark was returned by somebody else."""
LIMIT = 20.0
"""Seconds for scontrol, which gives up after MessageTimeout, 10 by default."""
LONGEST = 200
OUT = frozenset(("DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "DOWN"))
NODE_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,254}\Z")


class SlurmNode(NamedTuple):
    """``states``: state and flags (IDLE, DRAIN, ...) without suffixes. ``reason``: without user@time.

    ``answers``: slurmd answers slurmctld; at first after a reboot it does not.
    """

    name: str
    states: FrozenSet[str]
    reason: str
    answers: bool = True


def parse_node(text: str) -> Optional[SlurmNode]:
    """Parse `scontrol show node NAME`, also with ``-o``; None if it printed no node."""
    name = re.search(r"(?:^|\s)NodeName=(\S+)", text)
    state = re.search(r"\sState=(\S+)", text)
    if not name or not state:
        return None
    # Suffixes such as * (does not answer) or @ (reboot pending) follow a state; flags are joined with +.
    answers = "*" not in state.group(1) and "NOT_RESPONDING" not in state.group(1)
    states = frozenset(re.sub(r"[^A-Z_]", "", word.upper()) for word in state.group(1).split("+"))
    # [user@time] follows the reason since slurm 2.2; with -o other fields may follow.
    reason = re.search(r"\sReason=(.*?)(?: \[[^\s\[\]]*@[^\s\[\]]*\]|\n|$)", text)
    return SlurmNode(name.group(1), states - {""}, reason.group(1).strip() if reason else "", answers)


def decide(slurm: SlurmNode, verdict: HealthVerdict, verified: bool, marked: bool) -> Optional[List[str]]:
    """Return what is set with `scontrol update`, None for nothing. ``marked``: this program took the node out.

    ``verified``: the last verification is of this boot and holds; nothing returns to service without it.
    """
    ours = slurm.reason.startswith(REASON) or (marked and slurm.reason.startswith(SLURM_REASONS))
    out = bool(slurm.states & OUT)
    if verdict.level == CRITICAL:
        if out and (not ours or slurm.reason.startswith(REASON)):
            return None
        return ["State=DRAIN", "Reason=" + reason(verdict)]
    if out and ours and verified and verdict.level != UNKNOWN:
        return ["State=RESUME"]
    return None


def reason(verdict: HealthVerdict) -> str:
    """Return the reason of a drain: the worst finding and the action."""
    found = verdict.rows[0].message if verdict.rows else verdict.level
    text = "%s%s; %s" % (REASON, found, verdict.action) if verdict.action else REASON + found
    return re.sub(r"[^\x20-\x7e]", "?", re.sub(r"[\"'\\]", "", text))[:LONGEST]


def prolog(verdict: HealthVerdict, mark: str = MARK) -> int:
    """Return the exit status of a prolog: 1 takes the node out of service, and the job is queued again."""
    if verdict.level != CRITICAL:
        return 0
    write_mark(verdict, mark)
    return 1


def write_mark(verdict: HealthVerdict, mark: str) -> None:
    """Without it the node stays drained where slurmctld replaces our reason."""
    with contextlib.suppress(OSError), open(mark, "w", encoding="utf-8") as stream:
        json.dump({"message": verdict.line()}, stream)


def drop_mark(mark: str, younger: float) -> None:
    """Delete a mark, unless it is younger than so many seconds: slurmctld drains a moment after a prolog failed."""
    with contextlib.suppress(OSError):
        if time.time() - os.stat(mark).st_mtime >= younger:
            os.unlink(mark)


def health_program(now: Readings, expected: Optional[Expected], verdict: HealthVerdict, mark: str = MARK) -> int:
    """Drain or resume the node of this host."""
    name = os.environ.get("SLURMD_NODENAME") or socket.gethostname().partition(".")[0]
    if not NODE_NAME.match(name) or name.upper() == "ALL":
        sys.stderr.write("gpu-ready-check: %r is no name of a node of slurm\n" % name)
        return 0
    slurm = parse_node(run(["scontrol", "show", "node", name]) or "")
    if slurm is None:
        sys.stderr.write("gpu-ready-check: slurmctld says nothing of node %s\n" % name)
        return 0
    renewed = [one for one in verdict.rows if one.renews]
    update = decide(slurm, verdict, is_valid(now, expected) and not renewed, bool(files.read_text(mark)))
    if update and run(["scontrol", "update", "NodeName=" + name] + update) is not None:
        sys.stdout.write("gpu-ready-check: node %s: %s\n" % (name, ", ".join(update)))
        if verdict.level == CRITICAL:
            write_mark(verdict, mark)
        else:
            drop_mark(mark, 0.0)
    if not slurm.states & OUT:
        drop_mark(mark, STALE)
    return 0


def run(argv: List[str]) -> Optional[str]:
    """Return what a program of slurm prints, None where it fails or gives no answer in time."""
    try:
        process = subprocess.Popen(
            argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, universal_newlines=True, preexec_fn=os.setsid
        )
    except OSError:
        return None
    try:
        out, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=1.0)
        return None
    return out if process.returncode == 0 else None
