"""Slurm nodes: the output of scontrol and squeue, who owns a drain, and the commands that change a node."""

import re
from typing import List, NamedTuple

from ..base.host import MISSING, TIMED_OUT, Host, Result
from ..check.slurm import NODE_NAME, SlurmNode, parse_node
from .hook import DrainDecision, NodeHook, Values, one_line, state_values, wait
from .journal import DrainError

LIMIT = 60.0
"""Seconds for one answer of slurmctld; the programs themselves give up after MessageTimeout, 10 by default."""
ANSWER_LIMIT = 300
"""Seconds in which slurmd has to answer slurmctld after a reboot, before its node is resumed."""
SLURM_REASONS = ("Not responding", "Node unexpectedly rebooted")
"""Reasons that slurmctld writes over ours when the drained node reboots."""
DRAINED = frozenset(("DRAIN", "DRAINED", "DRAINING"))
FAILED = frozenset(("FAIL", "FAILING"))
BUSY = frozenset(("ALLOCATED", "MIXED", "COMPLETING"))
JOB_FORMAT = "%i|%u|%T"
"""squeue's format: number, user, state."""
NAMED_JOBS = 5
LONGEST_NAME = 255


class SlurmJob(NamedTuple):
    number: str
    user: str
    state: str


def parse_jobs(text: str) -> List[SlurmJob]:
    """Parse squeue's output in JOB_FORMAT, without header."""
    rows = [line.strip().split("|") for line in text.splitlines()]
    return [SlurmJob(*row) for row in rows if len(row) == 3]


def is_owned(node: SlurmNode, reason: str, recorded: bool) -> bool:
    """Return True if the journal lists the drain and nobody set another reason since."""
    return recorded and (node.reason == reason or node.reason in SLURM_REASONS)


def decide_drain(node: SlurmNode, reason: str, recorded: bool) -> DrainDecision:
    state = "drained" if node.states & (DRAINED | FAILED) else "down" if "DOWN" in node.states else ""
    owned = is_owned(node, reason, recorded)
    if not state or (state == "down" and owned):
        return DrainDecision(True, True)
    kept = "slurm's node %s is already %s (%s) and stays so" % (node.name, state, node.reason or "no reason given")
    return DrainDecision(False, owned, "" if owned else kept)


def decide_resume(node: SlurmNode, reason: str) -> DrainDecision:
    """``act``: resume a node whose drain the journal lists."""
    if not node.states & (DRAINED | FAILED | {"DOWN"}):
        return DrainDecision(False, False)
    if is_owned(node, reason, True):
        return DrainDecision(True, True)
    states = "+".join(sorted(node.states))
    kept = "slurm's node %s has another reason now (%s) and stays %s" % (node.name, node.reason or "none", states)
    return DrainDecision(False, False, kept)


def describe_work(node: SlurmNode, jobs: List[SlurmJob]) -> str:
    """Return what keeps a drained node busy, "" for nothing."""
    if jobs:
        named = ", ".join("%s of %s (%s)" % (job.number, job.user, job.state.lower()) for job in jobs[:NAMED_JOBS])
        more = " and %d more" % (len(jobs) - NAMED_JOBS) if len(jobs) > NAMED_JOBS else ""
        return "%d job%s on slurm's node %s: %s%s" % (len(jobs), "" if len(jobs) == 1 else "s", node.name, named, more)
    busy = sorted(node.states & BUSY)
    return "slurm's node %s, which is %s" % (node.name, "+".join(busy)) if busy else ""


def describe_silence(node: SlurmNode) -> str:
    """Return what a resume waits for, "" for nothing.

    A node that is resumed before its slurmd answers is set down when it does: "Node unexpectedly rebooted". By then
    the journal would no longer list the drain.
    """
    return "" if node.answers else "slurmd on slurm's node %s, which does not answer slurmctld yet" % node.name


class SlurmHook(NodeHook):
    """A node through slurm's programs on this host, in ``directory`` or in PATH."""

    def __init__(self, host: Host, name: str, directory: str = "") -> None:
        """Raise DrainError if ``name`` cannot be one node: Slurm takes lists, ranges and ALL for several."""
        if not NODE_NAME.match(name) or name.upper() == "ALL":
            raise DrainError(
                "gpu_drain_slurm_node: %r is not the name of one node. Set it to the name that sinfo shows: letters, "
                "digits, dots, dashes and underscores." % name[:LONGEST_NAME]
            )
        self.host = host
        self.name = name
        self.directory = directory

    def call(self, program: str, *words: str) -> Result:
        """Run one of slurm's programs; DrainError if it is missing or gets no answer."""
        path = self.directory.rstrip("/") + "/" + program if self.directory else self.host.which(program)
        answer = self.host.run([path] + list(words), LIMIT) if path else Result(MISSING, "", "")
        if answer.rc == MISSING:
            raise DrainError(
                "%s: it is not on this host%s. Set gpu_drain_slurm_controller to a host that has slurm's programs, or "
                "gpu_drain_slurm_bin to their directory." % (program, " in " + self.directory if self.directory else "")
            )
        if answer.rc == TIMED_OUT:
            raise DrainError(
                "slurmctld: it did not answer %s within %d s. Check it, then run again." % (program, LIMIT)
            )
        return answer

    def show(self) -> SlurmNode:
        """Return the node as slurmctld reports it."""
        answer = self.call("scontrol", "show", "node", self.name)
        node = parse_node(answer.out) if answer.rc == 0 else None
        if node is None:
            reason = one_line(answer.err, answer.out)
            if re.search(r"not found|Invalid node name", reason):
                raise DrainError(
                    "slurm: it has no node %s. Set gpu_drain_slurm_node to the name that sinfo shows." % self.name
                )
            raise DrainError(
                "slurm: `scontrol show node %s` failed (%s). Check slurmctld, munge and slurm.conf on this host, "
                "then run again." % (self.name, reason)
            )
        return node

    def pending_work(self) -> str:
        answer = self.call("squeue", "--noheader", "--nodelist=" + self.name, "--format=" + JOB_FORMAT)
        if answer.rc != 0:
            raise DrainError(
                "slurm: squeue failed for the node %s (%s). Check slurmctld, then run again."
                % (self.name, one_line(answer.err, answer.out))
            )
        return describe_work(self.show(), parse_jobs(answer.out))

    def update(self, *words: str) -> None:
        answer = self.call("scontrol", "update", "nodename=" + self.name, *words)
        if answer.rc != 0:
            raise DrainError(
                "slurm: it refused `scontrol update nodename=%s %s` (%s). Run it as root, SlurmUser or an operator of "
                "slurm (gpu_drain_slurm_become, gpu_drain_slurm_controller)."
                % (self.name, " ".join(words), one_line(answer.err, answer.out))
            )

    def drain(self, reason: str, recorded: bool, check: bool) -> DrainDecision:
        reason = check_reason(reason)
        decision = decide_drain(self.show(), reason, recorded)
        if decision.act and not check:
            self.update("state=drain", "reason=" + reason)
        return decision

    def undrain(self, reason: str, check: bool, deadline: float = 0.0) -> Values:
        """Resume the node if gpu-ready drained it, after its slurmd answers; ``deadline``: of that wait."""
        decision = decide_resume(self.show(), check_reason(reason))
        values: Values = {"changed": decision.act, "kept": decision.kept, "done": True}
        if decision.act and not check:
            remedy = "see `systemctl status slurmd` and `scontrol show node %s`" % self.name
            state = wait(lambda: describe_silence(self.show()), ANSWER_LIMIT, deadline, remedy=remedy)
            values.update(state_values(state), changed=state.done)
            if state.done:
                self.update("state=resume")
        return values


def check_reason(text: str) -> str:
    """DrainError for a reason that slurm would not return unchanged."""
    reason = text.strip()
    if not reason or re.search(r"[\n\r\"\[\]]", reason):
        raise DrainError("gpu_drain_reason: it is empty or has line breaks, quotes or brackets. Give one plain line.")
    return reason
