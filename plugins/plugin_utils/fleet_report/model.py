"""The record of a report: one form for provisioning, audits, rollouts and all others. Its JSON is what programs read.

Every text of it is plain text; escaping markup is left to each format.
"""

import json
from typing import Any, NamedTuple

from ...module_utils.gpu_ready.base import records
from ..gpu_ready.catalog.model import age_in_days, age_text
from ..gpu_ready.turn.table import UNREACHABLE

SCHEMA = 1
TITLES = {
    "site": "Provisioning",
    "audit": "Audit",
    "upgrade": "Driver upgrade",
    "rollback": "Driver rollback",
    "undrain": "Undrain",
    "uninstall": "Uninstall",
}
"""Each kind of run and its name for people."""
NOT_REACHED = "not_reached"
NO_ANSWER = (UNREACHABLE, NOT_REACHED, "")
DRIFTING = ("drift", "upgrading")
"""States of a host that differs from what was requested."""
WAITING = (*DRIFTING, "planned", "left_out", "unfinished", "listed", "paused")
"""States of hosts that did not fail, but are not in the desired state."""
GREY = ("no_gpu", "excluded", *NO_ANSWER)
"""States that are neither good nor bad news."""


class Advice(NamedTuple):
    """A message and what to do about it, which may be empty. ``code``: of a refusal."""

    message: str
    remedy: str = ""
    code: str = ""


class Step(NamedTuple):
    """A step of the plan. ``progress``: done, failed, planned, not_done, or empty if that is unknown."""

    name: str
    why: str = ""
    disruption: str = ""
    progress: str = ""
    seconds: int | None = None


class Check(NamedTuple):
    """A check of a verification or an audit; ``ok`` is None where it was not run, or is only information."""

    name: str
    ok: bool | None
    expected: str = ""
    found: str = ""
    why: str = ""
    remedy: str = ""


class Holder(NamedTuple):
    """A process that uses a GPU. ``service``: one of the driver's own services."""

    pid: int
    command: str
    container: str = ""
    service: bool = False


class Turn(NamedTuple):
    """A turn of a host in one run of a rollout, in seconds since 1970, by the record of the control node.

    ``run``: its number from 1. ``ended`` is None if the run was killed, or lost the host. ``phases``: each with its
    beginning.
    """

    run: int
    began: int
    ended: int | None
    state: str
    phases: list[tuple[str, int]]


class Host(NamedTuple):
    """One host. ``cells``: short facts by name. ``lists``: other texts by heading. The flags are None if unknown.

    ``seen``: the answers of NVML and of a container to a verification, GPU by GPU.
    ``since``: the end of the first run that found it in this state without a break.
    """

    name: str
    state: str
    good: bool
    why: Advice
    cells: dict[str, str] = {}
    steps: list[Step] = []
    refusals: list[Advice] = []
    warnings: list[Advice] = []
    checks: list[Check] = []
    failed_step: str = ""
    lists: dict[str, list[str]] = {}
    holders: list[Holder] = []
    turns: list[Turn] = []
    seen: dict[str, Any] = {}
    verified: bool | None = None
    drift: bool | None = None
    reboot_required: bool | None = None
    since: str = ""

    @property
    def work(self) -> list[Holder]:
        """Processes that use the GPUs, without the driver's own services."""
        return [holder for holder in self.holders if not holder.service]

    @property
    def tone(self) -> str:
        """The colour of its state: good, warn, bad, or none."""
        if self.state in GREY:
            return "none"
        return "good" if self.good else "warn" if self.state in WAITING else "bad"


class Run(NamedTuple):
    """Who ran what. ``began`` in ISO 8601, in UTC, "" if unknown. ``catalog``: its date. ``limit``: of the hosts."""

    command: str = ""
    operator: str = ""
    inventories: list[str] = []
    limit: str = ""
    began: str = ""
    seconds: int | None = None
    gpu_ready: str = ""
    ansible: str = ""
    catalog: str = ""


class RolloutRun(NamedTuple):
    """One run of a rollout. ``hosts``: those that were due."""

    time: int
    operator: str
    hosts: int


class Rollout(NamedTuple):
    """The rollout that a run began or resumed. ``undoes``: the one that a rollback undoes, else 0."""

    id: int
    undoes: int
    targets: list[str]
    runs: list[RolloutRun]


class Change(NamedTuple):
    """What is otherwise than in the last run, and for which hosts. ``tone``: of the new state."""

    text: str
    tone: str
    hosts: list[str]


class Report(NamedTuple):
    """A run. ``time``: its end in ISO 8601, in UTC. ``interrupted``: by the operator, so that some hosts have no end.

    ``previous``: the end of the run that ``changes`` compares with, "" if there is none.
    """

    kind: str
    time: str
    check_mode: bool
    hosts: list[Host]
    run: Run = Run()
    interrupted: bool = False
    rollout: Rollout | None = None
    previous: str = ""
    changes: list[Change] = []

    @property
    def catalog_age_days(self) -> int | None:
        """Days from the catalog to the end of the run, None where one of them is unknown."""
        try:
            return max(0, age_in_days(self.run.catalog, self.time[:10]))
        except ValueError:
            return None

    @property
    def catalog_text(self) -> str:
        """The catalog and its age, as the last line of a table; "" where they are unknown."""
        return "" if self.catalog_age_days is None else age_text(self.time[:10], self.run.catalog)

    @property
    def counts(self) -> dict[str, int]:
        """Number of hosts by state, the most frequent first."""
        found: dict[str, int] = {}
        for host in self.hosts:
            found[host.state] = found.get(host.state, 0) + 1
        return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def to_json(report: Report) -> dict[str, Any]:
    """Return the content of the JSON file: ``hosts`` and ``counts`` are mappings."""
    value: dict[str, Any] = records.to_json(report)
    return value | {
        "schema": SCHEMA,
        "counts": report.counts,
        "catalog_age_days": report.catalog_age_days,
        "hosts": {host.pop("name"): host for host in value["hosts"]},
    }


def as_json(report: Report) -> str:
    """Return the text of the JSON file, in ASCII: other characters are escaped."""
    return json.dumps(to_json(report), indent=1, sort_keys=True) + "\n"


def from_json(text: str) -> Report:
    """Return the report of a JSON file. Raises RecordError."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise records.RecordError("the report is no JSON") from None
    value = records.without_schema(value, SCHEMA, "the report")
    hosts = value.get("hosts")
    if not isinstance(hosts, dict) or not all(isinstance(one, dict) for one in hosts.values()):
        raise records.RecordError("the report has no hosts")
    value = {name: one for name, one in value.items() if name not in ("counts", "catalog_age_days")}
    return records.from_json(Report, value | {"hosts": [{"name": name, **one} for name, one in hosts.items()]})
