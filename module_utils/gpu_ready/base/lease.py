"""The lease of the run that changes a host, ``/var/lib/gpu-ready/lease.json``: one run of ansible-playbook at a time.

A run takes it before its first change, every module that changes the host renews it, and the run releases it at its
end. The lease of a run that died expires ``lasts`` seconds after its last step. Times are seconds since boot
(/proc/uptime), which setting the clock does not change. A lease from before a reboot expires ``lasts`` seconds after
the boot at the latest. While a step of the run still has a process on the host, the lease does not expire.

Releasing a lease sets its duration to 0 and keeps the file, so that it still names the last run. An upgrade plans and
prepares all hosts before it changes the first one, and must not execute a plan that is older than another run's change.
"""

import contextlib
import math
import os
import re
import time
from typing import Iterator, NamedTuple, Optional, Sequence

from . import files, json_file, manifest_notes, records
from .errors import GpuReadyError
from .host import Host
from .lease_mark import PATH, mark

SCHEMA = 1
VARIABLE = "GPU_READY_RUN"
"""Environment variable in which the playbooks give every task its run; plugins/lookup/gpu_ready_run.py writes it."""
USUAL = 600
"""Seconds between two steps of a run after which it counts as dead, where the playbook sets no others."""
LONG_STEP = 10.0
"""Seconds after which a step renews the lease at its end too."""


class LeaseError(GpuReadyError):
    """Another run works on this host; ``result`` has ``another_run`` and ``last_step_running``."""


class RunId(NamedTuple):
    """A run of ansible-playbook. ``name``: ORIGIN.PID.START, where ORIGIN is a hash of control node and user.

    ``controller``: user@host. START is the start of the process as in /proc/PID/stat.
    """

    name: str
    controller: str
    playbook: str


class StepProcess(NamedTuple):
    """A process of this host; ``started``: as in /proc/PID/stat, so that no later process is mistaken for it."""

    pid: int
    started: str


class Lease(NamedTuple):
    """``since``: seconds since 1970, for messages only. ``renewed``: seconds since the boot ``boot``.

    ``usual``: what ``lasts`` is again after the next step.
    """

    run: str
    controller: str
    playbook: str
    since: int
    boot: str
    renewed: int
    lasts: int
    usual: int
    step: Optional[StepProcess] = None


class Claim(NamedTuple):
    """What a run that wants a host knows.

    ``living``: processes (PID.START) on its control node; None: unknown. ``age``: seconds since the run began; given
    where it planned this host at its begin. ``resumes``: it had the lease before, and no other run has had it since.
    """

    run: RunId
    living: Optional[Sequence[str]] = None
    take_over: bool = False
    age: Optional[int] = None
    resumes: bool = False


def read_run(text: str) -> Optional[RunId]:
    """Return the run in a value of VARIABLE, None for an empty one. GpuReadyError for another form."""
    if not text:
        return None
    match = re.match(r"([0-9a-f]+\.\d+\.\d+) (\S+@\S+) (\S+)$", text)
    if not match:
        raise GpuReadyError(
            "%s: %r is no run of gpu-ready. Unset it: the playbooks set it themselves." % (VARIABLE, text)
        )
    return RunId(*match.groups())


def current_run() -> Optional[RunId]:
    """Return the run that this module belongs to, None outside of the playbooks."""
    return read_run(os.environ.get(VARIABLE, ""))


def read(host: Host, path: str = PATH) -> Optional[Lease]:
    """Return the lease, None if there is none. LeaseError if it is damaged or of another schema."""
    try:
        value = json_file.read_json_file(host, path)
        return None if value is None else records.from_json(Lease, records.without_schema(value, SCHEMA, path))
    except (json_file.DamagedFileError, records.RecordError) as error:
        raise LeaseError(
            "%s: which run works on this host is unknown (%s). Make sure that none does, then run again with "
            "gpu_ready_take_over=true." % (path, error),
            another_run=True,
            last_step_running=False,
        ) from None


def boot_id(host: Host) -> str:
    return (host.read("/proc/sys/kernel/random/boot_id") or "").strip()


def uptime(host: Host) -> int:
    """Return seconds since the boot of this host, with those in suspension."""
    return int(float((host.read("/proc/uptime") or "0").split()[0]))


def process_start(host: Host, pid: int) -> str:
    """Return the field starttime of proc(5), "" for a process that does not exist or is a zombie."""
    text = host.read("/proc/%d/stat" % pid) or ""
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else ""


def is_step_running(host: Host, lease: Lease) -> bool:
    if lease.step is None or lease.boot != boot_id(host):
        return False
    return process_start(host, lease.step.pid) == lease.step.started


def seconds_left(host: Host, lease: Lease) -> int:
    """Return seconds until a lease ends without a further step of its run; 0 if it has ended."""
    now = uptime(host)
    age = now - lease.renewed
    if lease.boot != boot_id(host) or age < 0:
        age = now
    return max(lease.lasts - age, 0)


def has_died(lease: Lease, claim: Claim) -> bool:
    """Return True if the lease's run was one of the same user on the same control node, and its process has ended."""
    origin, _, process = lease.run.partition(".")
    return claim.living is not None and origin == claim.run.name.partition(".")[0] and process not in claim.living


def is_last_step_running(host: Host, lease: Optional[Lease], claim: Claim) -> bool:
    """Return True if the lease's run has died and its last step has not ended yet.

    The host is free as soon as it has.
    """
    return lease is not None and has_died(lease, claim) and is_step_running(host, lease)


def describe_holder(host: Host, lease: Optional[Lease], claim: Claim) -> str:
    """Return why this run must not change the host, with the remedy; "" if it may."""
    if lease is None or lease.run == claim.run.name or claim.take_over:
        return ""
    running = is_step_running(host, lease)
    left = seconds_left(host, lease)
    if not running and (left == 0 or has_died(lease, claim)):
        return ""
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(lease.since))
    if running and lease.step:
        remedy = "Its step still runs on this host (process %d). Wait for it to finish" % lease.step.pid
    else:
        remedy = "Wait for it to finish, or, if it has died, %d min for its lease to expire" % math.ceil(left / 60)
    text = (
        "this host: another run works on it: %s of %s, since %s by this host's clock. %s. If you know that it was "
        "ended, rerun with -e gpu_ready_take_over=true."
    )
    return text % (lease.playbook, lease.controller, since, remedy)


def describe_change(host: Host, lease: Optional[Lease], claim: Claim) -> str:
    """Return which other run had the host since this one planned or prepared it, with the remedy; "" if none had."""
    if lease is not None and lease.run == claim.run.name:
        return ""
    recent = (
        lease is not None
        and claim.age is not None
        and lease.boot == boot_id(host)
        and uptime(host) - lease.renewed < claim.age
    )
    if not claim.resumes and (claim.take_over or not recent):
        return ""
    who = " (%s of %s)" % (lease.playbook, lease.controller) if lease is not None else ""
    text = "this host: another run%s worked on it after this one %s it. Run the same command again."
    return text % (who, "took" if claim.resumes else "planned")


def take(host: Host, claim: Claim, lasts: int = USUAL, path: str = PATH) -> str:
    """Take or renew the lease for a run before its first change; the mark of the lease before.

    LeaseError if another run has it, or has changed what this run planned.
    """
    with manifest_notes.lock_manifest():
        marked = mark(host, path)
        try:
            before = read(host, path)
        except LeaseError:
            if not claim.take_over:
                raise
            before = None
        _refuse(host, before, claim)
        _write(host, before, claim.run, lasts, lasts, None, path)
        return marked


def extend(host: Host, run: RunId, lasts: int, path: str = PATH) -> None:
    """Let the lease last ``lasts`` seconds until the next step, which takes long.

    LeaseError if another run has it, or has had it since this one took it.
    """
    with manifest_notes.lock_manifest():
        before = read(host, path)
        _refuse(host, before, Claim(run, resumes=True))
        _write(host, before, run, lasts, before.usual if before else USUAL, None, path)


def release(host: Host, run: RunId, path: str = PATH) -> bool:
    """End the lease of a run; False where it has none, or a damaged one.

    It is deleted with its directory where nothing else is recorded about the host.
    """
    if not host.exists(path):
        return False
    with manifest_notes.lock_manifest():
        try:
            before = read(host, path)
        except LeaseError:  # refused when this run tried to take it; it stays for whoever repairs it
            return False
        if before is None or before.run != run.name:
            return False
        directory = os.path.dirname(path)
        if host.listdir(directory) == [os.path.basename(path)]:
            files.delete_file(path)
            with contextlib.suppress(OSError):  # others may have written into it, or deleted it, since it was listed
                os.rmdir(directory)
        else:
            _write(host, before, run, 0, before.usual, None, path)
    return True


@contextlib.contextmanager
def hold_alone(host: Host, claim: Claim, path: str = PATH) -> Iterator[None]:
    """Take the lease, hold it and release it: for a run that changes the host by one module."""
    take(host, claim, path=path)
    try:
        with hold(host, claim.run, path):
            yield
    finally:
        release(host, claim.run, path)


@contextlib.contextmanager
def hold(host: Host, run: RunId, path: str = PATH) -> Iterator[None]:
    """Hold the lease while this process changes the host.

    LeaseError if another run has it, or has had it since this one took it.
    """
    with manifest_notes.lock_manifest():
        before = read(host, path)
        _refuse(host, before, Claim(run, resumes=True))
        usual = before.usual if before else USUAL
        step = StepProcess(os.getpid(), process_start(host, os.getpid()))
        _write(host, before, run, usual, usual, step, path)
    began = time.monotonic()
    try:
        yield
    finally:
        # An uninstallation has deleted it by now.
        if time.monotonic() - began > LONG_STEP and host.exists(path):
            with manifest_notes.lock_manifest():
                now = read(host, path)
                if now is not None and now.run == run.name:
                    _write(host, now, run, usual, usual, None, path)


def _refuse(host: Host, lease: Optional[Lease], claim: Claim) -> None:
    message = describe_holder(host, lease, claim) or describe_change(host, lease, claim)
    if message:
        waits = is_last_step_running(host, lease, claim)
        raise LeaseError(message, another_run=True, last_step_running=waits)


def _write(
    host: Host, before: Optional[Lease], run: RunId, lasts: int, usual: int, step: Optional[StepProcess], path: str
) -> None:
    same = before is not None and before.run == run.name
    since = before.since if before is not None and same else int(time.time())
    lease = Lease(*run, since, boot_id(host), uptime(host), lasts, usual, step)
    files.write_json_file(path, dict(records.to_json(lease), schema=SCHEMA))
