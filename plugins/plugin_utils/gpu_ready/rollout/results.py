"""How a rollout ended for each host."""

import re
from collections.abc import Mapping, Sequence

from ..report import layout
from .fold import (
    CURRENT,
    DONE_STATES,
    EXCLUDED,
    FAILED,
    LEFT_OUT,
    NOT_REACHED,
    PAUSED,
    ROLLED_BACK,
    STATES,
    UPGRADE,
    RolloutRecord,
)
from .model import HostResult, HostUpgrade, Rollout
from .tables import current_text

WAITS = "waits for the next run of the same command (gpu_upgrade_pause_after)"

BY_OPERATOR = "excluded by gpu_upgrade_exclude"
BACK_AND_EXCLUDED = BY_OPERATOR + ", after its upgrade failed and was rolled back"
INTERRUPTED = "this run was interrupted in the middle of the upgrade of this host. The same command resumes it"
DROPPED = ", or stopped by an error of Ansible that is shown above. Remove the cause, then run the same command again"
"""Ansible leaves out of all further plays a host that is unreachable, or for which a file with tasks is missing."""


def good_states(direction: str) -> tuple[str, ...]:
    """Return the states of results that are no failure."""
    return (*DONE_STATES[direction], PAUSED)


def hosts_rolled_back(records: Sequence[RolloutRecord], hosts: Sequence[str]) -> list[str]:
    """Return hosts whose last turn was an upgrade that was rolled back; ``records``: the newest first."""
    found = []
    for name in hosts:
        last = next((one for one in records if name in one.hosts and one.hosts[name].run), None)
        if last and last.direction == UPGRADE and last.hosts[name].state == ROLLED_BACK:
            found.append(name)
    return found


def untouched_results(
    roll: Rollout, upgrades: Mapping[str, HostUpgrade], rolled_back: Sequence[str] = ()
) -> dict[str, HostResult]:
    """Return the results of the hosts that take no part; ``rolled_back``: excluded after their upgrade failed."""
    excluded = {name: BACK_AND_EXCLUDED if name in rolled_back else BY_OPERATOR for name in roll.excluded}
    reasons = [(CURRENT, {name: current_text(roll, name, upgrades[name]) for name in roll.current})]
    reasons += [(LEFT_OUT, roll.refused), (EXCLUDED, excluded)]
    return {
        name: HostResult(
            name,
            state,
            upgrades[name].from_,
            None if name in roll.kept else upgrades[name].to,
            seconds_unavailable=0,
            reason=reason,
        )
        for state, hosts in reasons
        for name, reason in hosts.items()
    }


def paused_result(host: str, upgrade: HostUpgrade) -> HostResult:
    """Return the result of a host that waits for the next run."""
    return HostResult(host, PAUSED, upgrade.from_, upgrade.to, seconds_unavailable=0, reason=WAITS)


def read_result(host: str, value: Mapping[str, object]) -> HostResult:
    """Return the result that an action plugin answered for a host; absent parts have their defaults."""
    seconds = re.match(r"[0-9]{1,9}$", str(value.get("seconds_unavailable")))
    from_, to = value.get("from"), value.get("to")
    return HostResult(
        host,
        str(value.get("state")) if value.get("state") in STATES else FAILED,
        layout.one_line(from_) if from_ else None,
        layout.one_line(to) if to else None,
        str(value.get("way") or "none"),
        int(seconds.group()) if seconds else None,
        str(value.get("reason") or ""),
    )


def result_to_json(result: HostResult) -> dict[str, object]:
    return {name.rstrip("_"): value for name, value in result._asdict().items()}


def host_results(
    hosts: list[str],
    ended: Mapping[str, Mapping[str, object]],
    began: Sequence[str],
    upgrades: Mapping[str, HostUpgrade],
    lost: Sequence[str],
    interrupted: bool = False,
) -> dict[str, HostResult]:
    """Return the result of each host.

    ``ended``: results that a play answered. ``began``: hosts whose turn began, by the record. ``lost``: hosts left out
    by Ansible. ``interrupted``: the run ends before the turns of all hosts.
    """
    found = {}
    for name in hosts:
        upgrade = upgrades.get(name) or HostUpgrade()
        result = HostResult(name, NOT_REACHED, upgrade.from_, upgrade.to, reason="the rollout did not reach this host")
        if ended.get(name):
            given = read_result(name, ended[name])
            result = given._replace(from_=given.from_ or result.from_, to=given.to or result.to)
        elif name in began:
            reason = INTERRUPTED if interrupted else "unreachable during its upgrade" + DROPPED
            result = result._replace(state=FAILED, way=upgrade.way or "none", reason=reason)
        elif name in lost:
            result = result._replace(state=LEFT_OUT, reason="unreachable during its preparation" + DROPPED)
        found[name] = result
    return found


def failed_hosts(results: Mapping[str, HostResult], good: Sequence[str], excluded: Sequence[str]) -> list[str]:
    """Return hosts that are not in the desired state, except those that the operator excluded."""
    return [name for name, result in results.items() if result.state not in good and name not in excluded]
