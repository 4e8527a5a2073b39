"""The lines of the record of a rollout, and what they say together. Pure: lines in, a record out."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.base.errors import GpuReadyError
from ....module_utils.gpu_ready.upgrade.model import PHASES, STAGED, UNTOUCHED

SCHEMA = 1
UPGRADE, ROLLBACK = "upgrade", "rollback"
UPGRADED, ROLLED_BACK, CURRENT, FAILED = "upgraded", "rolled_back", "current", "failed"
LEFT_OUT, EXCLUDED, NOT_REACHED, PAUSED = "left_out", "excluded", "not_reached", "paused"
STATES = (UPGRADED, ROLLED_BACK, CURRENT, FAILED, LEFT_OUT, EXCLUDED, NOT_REACHED, PAUSED)
"""How a rollout ends for a host."""
DONE_STATES = {UPGRADE: (UPGRADED, CURRENT), ROLLBACK: (ROLLED_BACK, CURRENT)}
"""By direction: the states of hosts for which nothing is left to do."""
BAD_STATES = {UPGRADE: (FAILED, ROLLED_BACK), ROLLBACK: (FAILED,)}
"""By direction: the states that count towards the failure budget."""
UNCHANGED = (CURRENT, LEFT_OUT, EXCLUDED, NOT_REACHED, PAUSED)
"""Ends of a turn that changed nothing on the host."""
AT_WORK = tuple(phase for phase in PHASES if phase not in (STAGED, UNTOUCHED))
"""Phases of a host's journal from the drain on, at which the driver to roll back to is recorded."""
DAMAGED = (
    "%s, line %d: %s. Remedy: restore the file from a backup; or move it away and run again, after which this rollout "
    "is resumed or undone only with -e gpu_upgrade_rollout=%d."
)


class DamagedRecordError(GpuReadyError):
    """A line of a record has another form; the message names the file and the line."""


class RecordedRun(NamedTuple):
    """One run of the playbook. ``targets``: the driver by host. ``budget``: hosts that may fail.

    ``process``: its id (plugins/lookup/gpu_ready_run.py).
    """

    time: int
    operator: str
    targets: dict[str, str]
    hosts: list[str]
    canaries: list[str]
    budget: int
    process: str


class RecordedTurn(NamedTuple):
    """A turn of a host. ``run``: the number of the run that it belongs to, from 1. ``state``: "" if it did not end."""

    run: int
    state: str
    began: int
    ended: int | None
    phases: tuple[tuple[str, int], ...]


class RecordedHost(NamedTuple):
    """A member of a rollout: the driver that it gets, its last turn, and those before it.

    ``state``: how that turn ended, "" if it did not. ``run``: the number of the run that it belongs to, from 1; 0
    before the first turn. ``changed``: a turn of this rollout worked on the host, from its drain on.
    """

    target: str
    state: str = ""
    reason: str = ""
    began: int | None = None
    ended: int | None = None
    phases: tuple[tuple[str, int], ...] = ()
    run: int = 0
    changed: bool = False
    earlier: tuple[RecordedTurn, ...] = ()

    @property
    def turns(self) -> tuple[RecordedTurn, ...]:
        """All its turns, the last one as the last."""
        if self.began is None:
            return self.earlier
        return (*self.earlier, RecordedTurn(self.run, self.state, self.began, self.ended, self.phases))

    @property
    def may_be_changed(self) -> bool:
        """True also for a turn of which nothing but its begin is known, such as after a power failure."""
        return self.changed or (self.run > 0 and not self.state)


class RolloutRecord(NamedTuple):
    """What the control node knows of a rollout. ``undoes``: the id of the rollout that a rollback undoes, else 0.

    ``version``: of the gpu-ready that began it.
    """

    id: int
    direction: str
    undoes: int
    version: str
    hosts: Mapping[str, RecordedHost]
    runs: Sequence[RecordedRun]

    @property
    def done(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.state in DONE_STATES[self.direction]]

    @property
    def canaries(self) -> list[str]:
        return list(dict.fromkeys(name for run in self.runs for name in run.canaries))

    @property
    def begun(self) -> list[str]:
        """Hosts whose turn began in the last run."""
        return [name for name, host in self.hosts.items() if host.run and host.run == len(self.runs)]

    def failures(self, lost: Sequence[str] = ()) -> list[str]:
        """Return hosts that failed in the last run; ``lost``: hosts that became unreachable."""
        bad = BAD_STATES[self.direction]
        return [
            name
            for name in self.begun
            if self.hosts[name].state in bad or (not self.hosts[name].state and name in lost)
        ]


def header_line(number: int, direction: str, undoes: int, version: str) -> dict[str, object]:
    """Return the first line of a record."""
    return {"schema": SCHEMA, "gpu_ready": version, "id": number, "direction": direction, "undoes": undoes}


def run_line(run: RecordedRun) -> dict[str, object]:
    return {"line": "run", **run._asdict()}


def complete_lines(content: bytes) -> list[bytes]:
    """Return the lines of a file. What follows the last line break was not written to its end, and does not count."""
    return content.split(b"\n")[:-1]


def fold(lines: Sequence[bytes], number: int, path: str) -> RolloutRecord:
    """Return what the lines of the record of rollout ``number`` say. Raises DamagedRecordError.

    Without any line it is a rollout that never began.
    """
    direction, undoes, version = UPGRADE, 0, ""
    hosts: dict[str, RecordedHost] = {}
    runs: list[RecordedRun] = []
    for index, text in enumerate(lines, 1):
        try:
            value = _parse_line(text)
            if index == 1:
                direction, undoes, version = _read_header(value, number)
            elif value.get("line") == "run":
                runs.append(_read_run(value))
                for name, target in runs[-1].targets.items():
                    hosts[name] = hosts.get(name, RecordedHost(target))._replace(target=target)
            else:
                name = _field(value, "host", str)
                hosts[name] = _after_turn_line(hosts.get(name, RecordedHost("")), value, len(runs))
        except ValueError as error:
            raise DamagedRecordError(DAMAGED % (path, index, error, number)) from None
    return RolloutRecord(number, direction, undoes, version, hosts, runs)


def _parse_line(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("it is damaged (no JSON)") from None
    if not isinstance(value, dict):
        raise ValueError("it is damaged (no mapping)")
    return value


def _read_header(value: Mapping[str, Any], number: int) -> tuple[str, int, str]:
    if value.get("schema") != SCHEMA:
        raise ValueError(
            "schema %s is of another release of gpu-ready (%s)"
            % (json.dumps(value.get("schema"))[:20], str(value.get("gpu_ready"))[:20])
        )
    if value.get("id") != number:
        raise ValueError("it is of another rollout than the name of the file says")
    if value.get("direction") not in DONE_STATES:
        raise ValueError("it is damaged (direction)")
    return value["direction"], _field(value, "undoes", int), _field(value, "gpu_ready", str)


def _read_run(value: Mapping[str, Any]) -> RecordedRun:
    targets = _field(value, "targets", dict)
    names = {name: _field(value, name, list) for name in ("hosts", "canaries")}
    if not all(isinstance(one, str) for texts in (targets.values(), *names.values()) for one in texts):
        raise ValueError("it is damaged (names of hosts)")
    return RecordedRun(
        _field(value, "time", int),
        _field(value, "operator", str),
        targets,
        names["hosts"],
        names["canaries"],
        _field(value, "budget", int),
        _field(value, "process", str),
    )


def _after_turn_line(host: RecordedHost, value: Mapping[str, Any], run: int) -> RecordedHost:
    """Return the member after a line of its turn: begin, phase or end."""
    kind, now = value.get("line"), _field(value, "time", int)
    if kind not in ("begin", "phase", "end"):
        raise ValueError("it is damaged (kind of line)")
    if not run:
        raise ValueError("it is damaged (a turn before the first run)")
    if kind == "begin":
        return host._replace(state="", reason="", began=now, ended=None, phases=(), run=run, earlier=host.turns)
    if kind == "phase":
        phase = _field(value, "phase", str)
        return host._replace(phases=(*host.phases, (phase, now)), changed=host.changed or phase in AT_WORK)
    state = _field(value, "state", str)
    if state not in STATES:
        raise ValueError("it is damaged (state)")
    changed = host.changed or state not in UNCHANGED
    return host._replace(state=state, reason=_field(value, "reason", str), ended=now, changed=changed)


def _field(value: Mapping[str, Any], name: str, kind: type) -> Any:
    found = value.get(name)
    if not isinstance(found, kind) or isinstance(found, bool):
        raise ValueError("it is damaged (%s)" % name)
    return found
