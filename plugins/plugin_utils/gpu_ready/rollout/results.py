"""How a rollout ended for each host."""

import re
from collections.abc import Mapping, Sequence

from ..report import layout
from .model import HostResult, HostUpgrade

DROPPED = ", or stopped by an error of Ansible that is shown above. Remove the cause, then run the same command again"
"""Ansible leaves out of all further plays a host that is unreachable, or for which a file with tasks is missing."""


def read_result(host: str, value: Mapping[str, object]) -> HostResult:
    """Return the result that the playbook set for a host; absent parts have their defaults."""
    seconds = re.match(r"[0-9]{1,9}$", str(value.get("seconds_unavailable")))
    from_, to = value.get("from"), value.get("to")
    return HostResult(
        host,
        str(value.get("state") or "failed"),
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
) -> dict[str, HostResult]:
    """Return the result of each host.

    ``ended``: results that the playbook set. ``began``: hosts whose upgrade began. ``lost``: hosts left out by Ansible.
    """
    found = {}
    for name in hosts:
        upgrade = upgrades.get(name) or HostUpgrade()
        result = HostResult(
            name, "not_reached", upgrade.from_, upgrade.to, reason="the rollout did not reach this host"
        )
        if ended.get(name):
            given = read_result(name, ended[name])
            result = given._replace(from_=given.from_ or result.from_, to=given.to or result.to)
        elif name in began:
            reason = "unreachable during its upgrade" + DROPPED
            result = result._replace(state="failed", way=upgrade.way or "none", reason=reason)
        elif name in lost:
            result = result._replace(state="left_out", reason="unreachable during its preparation" + DROPPED)
        found[name] = result
    return found


def failed_hosts(results: Mapping[str, HostResult], good: Sequence[str], excluded: Sequence[str]) -> list[str]:
    """Return hosts that are not in the desired state, except those that the operator excluded."""
    return [name for name, result in results.items() if result.state not in good and name not in excluded]
