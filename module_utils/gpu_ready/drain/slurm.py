"""Slurm's nodes: what ``scontrol show node`` and ``squeue`` say, whose drain it is, and the commands that change it."""

import re
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional

from ..base.host import MISSING, TIMED_OUT, Host, Result
from .journal import DrainError, told, wait

LIMIT = 60.0
"""Seconds for one answer of slurmctld; the programs themselves give up after MessageTimeout, 10 by default."""
ANSWER_LIMIT = 300
"""Seconds that slurmd has to answer slurmctld after a reboot, before its node is resumed."""
SLURMS_OWN = ("Not responding", "Node unexpectedly rebooted")
"""Reasons that slurmctld writes itself over ours when the node that we drained reboots."""
DRAINED = frozenset(("DRAIN", "DRAINED", "DRAINING"))
FAILED = frozenset(("FAIL", "FAILING"))
BUSY = frozenset(("ALLOCATED", "MIXED", "COMPLETING"))
JOBS = "%i|%u|%T"
"""squeue's format: number, user, state."""
MOST_NAMED = 5


class Node(NamedTuple):
    """A node of slurm: its states (IDLE, DRAIN, ...) without their marks, and the reason without who gave it."""

    name: str
    states: FrozenSet[str]
    reason: str
    answers: bool = True
    """Whether its slurmd answers slurmctld; after a reboot it does not at first."""


class Drain(NamedTuple):
    """Whether to drain the node now, whether its drain is ours, and, where it is not, why it is left as it is."""

    drain: bool
    mine: bool
    left: str


class Resume(NamedTuple):
    """Whether the node is to be resumed, and why it is left as it is where it is not simply in service."""

    resume: bool
    left: str


class Job(NamedTuple):
    """A job that has the node: its number, its user, its state."""

    number: str
    user: str
    state: str


def read_node(text: str) -> Optional[Node]:
    """Return the node that ``scontrol show node NAME`` (also with ``-o``) printed, None where it printed none."""
    name = re.search(r"(?:^|\s)NodeName=(\S+)", text)
    state = re.search(r"\sState=(\S+)", text)
    if not name or not state:
        return None
    # Marks such as * (does not answer) or @ (waits for a reboot) follow a state; flags are joined with +.
    answers = "*" not in state.group(1) and "NOT_RESPONDING" not in state.group(1)
    states = frozenset(re.sub(r"[^A-Z_]", "", word.upper()) for word in state.group(1).split("+"))
    # Who gave it follows in brackets since slurm 2.2; in -o other fields may follow those.
    reason = re.search(r"\sReason=(.*?)(?: \[[^\s\[\]]*@[^\s\[\]]*\]|\n|$)", text)
    return Node(name.group(1), states - {""}, reason.group(1).strip() if reason else "", answers)


def read_jobs(text: str) -> List[Job]:
    """Return the jobs that ``squeue --noheader --format=%i|%u|%T`` printed."""
    rows = [line.strip().split("|") for line in text.splitlines()]
    return [Job(*row) for row in rows if len(row) == 3]


def ours(node: Node, reason: str, noted: bool) -> bool:
    """Return whether a drain or a downing is ours: it is in the journal, and nobody gave another reason since."""
    return noted and (node.reason == reason or node.reason in SLURMS_OWN)


def to_drain(node: Node, reason: str, noted: bool) -> Drain:
    """Return what a drain does with a node. ``noted``: the journal says that its drain is ours."""
    words = "slurm's node %s is %s already (%s)"
    why = node.reason or "without a reason"
    if node.states & (DRAINED | FAILED):
        mine = ours(node, reason, noted)
        return Drain(False, mine, "" if mine else words % (node.name, "drained", why) + ": it stays so")
    if "DOWN" in node.states and not ours(node, reason, noted):
        return Drain(False, False, words % (node.name, "down", why) + ": it stays so")
    return Drain(True, True, "")


def to_resume(node: Node, reason: str) -> Resume:
    """Return what an undrain does with a node whose drain the journal lists."""
    out = node.states & (DRAINED | FAILED | {"DOWN"})
    if not out:
        return Resume(False, "")
    if ours(node, reason, True):
        return Resume(True, "")
    left = "slurm's node %s carries another reason by now (%s): it stays %s"
    return Resume(False, left % (node.name, node.reason or "none", "+".join(sorted(node.states))))


def awaited(node: Node, jobs: List[Job]) -> str:
    """Return what keeps a drained node busy, "" for nothing."""
    if jobs:
        named = ", ".join("%s of %s (%s)" % (job.number, job.user, job.state.lower()) for job in jobs[:MOST_NAMED])
        more = " and %d more" % (len(jobs) - MOST_NAMED) if len(jobs) > MOST_NAMED else ""
        return "%d job%s on slurm's node %s: %s%s" % (len(jobs), "" if len(jobs) == 1 else "s", node.name, named, more)
    busy = sorted(node.states & BUSY)
    return "slurm's node %s, which is %s" % (node.name, "+".join(busy)) if busy else ""


def unanswered(node: Node) -> str:
    """Return what a node that is to be resumed lacks, "" for nothing.

    A node that is resumed before its slurmd came back from a reboot is put down when it does: "Node unexpectedly
    rebooted", and by then nobody would know that it was ours.
    """
    return "" if node.answers else "slurmd on slurm's node %s, which does not answer slurmctld yet" % node.name


class Slurm:
    """Slurm's programs on this host."""

    def __init__(self, host: Host, name: str, folder: str = "") -> None:
        self.host = host
        self.name = name
        self.folder = folder

    def call(self, program: str, *words: str) -> Result:
        """Run one of slurm's programs; DrainError where it is absent or gets no answer."""
        path = self.folder.rstrip("/") + "/" + program if self.folder else self.host.which(program)
        answer = self.host.run([path] + list(words), LIMIT) if path else Result(MISSING, "", "")
        if answer.rc == MISSING:
            raise DrainError(
                "%s is not on this host%s: set gpu_drain_slurm_controller to a host that has slurm's programs, or "
                "gpu_drain_slurm_bin to their folder." % (program, " in " + self.folder if self.folder else "")
            )
        if answer.rc == TIMED_OUT:
            raise DrainError("slurmctld did not answer %s in %d s: see to it, then run again." % (program, LIMIT))
        return answer

    def look(self) -> Node:
        """Return the node as slurmctld knows it."""
        answer = self.call("scontrol", "show", "node", self.name)
        node = read_node(answer.out) if answer.rc == 0 else None
        if node is None:
            said = " ".join((answer.err or answer.out).split())
            if re.search(r"not found|Invalid node name", said):
                raise DrainError(
                    "slurm has no node %s: set gpu_drain_slurm_node to the name that sinfo shows." % self.name
                )
            raise DrainError(
                "slurm did not tell of the node %s (%s): see to slurmctld, munge and slurm.conf on this host, "
                "then run again." % (self.name, said or "no output")
            )
        return node

    def awaited(self) -> str:
        """Return what still runs on the node, "" for nothing."""
        answer = self.call("squeue", "--noheader", "--nodelist=" + self.name, "--format=" + JOBS)
        if answer.rc != 0:
            said = " ".join((answer.err or answer.out).split())
            raise DrainError(
                "squeue did not tell of the jobs on %s (%s): see to slurmctld, then run again." % (self.name, said)
            )
        return awaited(self.look(), read_jobs(answer.out))

    def update(self, *words: str) -> None:
        """Change the node, and look whether slurm took it over."""
        answer = self.call("scontrol", "update", "nodename=" + self.name, *words)
        if answer.rc != 0:
            said = " ".join((answer.err or answer.out).split())
            raise DrainError(
                "slurm refused `scontrol update nodename=%s %s` (%s): run it as root, SlurmUser or an operator of "
                "slurm (gpu_drain_slurm_become, gpu_drain_slurm_controller)." % (self.name, " ".join(words), said)
            )

    def drain(self, reason: str, noted: bool, act: bool) -> Dict[str, Any]:
        """Drain the node where nobody has; ``act``: do it, else only say what would be done."""
        decided = to_drain(self.look(), reason, noted)
        if decided.drain and act:
            self.update("state=drain", "reason=" + reason)
        return {"changed": decided.drain, "mine": decided.mine, "left": decided.left}

    def resume(self, reason: str, check: bool, deadline: float = 0.0) -> Dict[str, Any]:
        """Resume the node where the drain is ours; ``check``: only say what would be done.

        ``deadline``: end of the wait for its slurmd that began in an earlier call.
        """
        decided = to_resume(self.look(), reason)
        answer = {"changed": decided.resume, "left": decided.left, "done": True}
        if decided.resume and not check:
            found = wait(
                lambda: unanswered(self.look()), ANSWER_LIMIT, deadline,
                remedy="see `systemctl status slurmd` and `scontrol show node %s`" % self.name,
            )  # fmt: skip
            answer.update(told(found), changed=found.done)
            if found.done:
                self.update("state=resume")
        return answer


def reason_of(text: str) -> str:
    """Return a reason as slurm keeps it. Raises DrainError where it could not be known again."""
    reason = text.strip()
    if not reason or re.search(r"[\n\r\"\[\]]", reason):
        raise DrainError("gpu_drain_reason is empty or has line breaks, quotes or brackets: give one plain line.")
    return reason
