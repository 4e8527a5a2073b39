# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The variables of all hosts that a rollout needs, for the action plugin that runs once for all of them.

As templates in a task they would be columns of 2,000 hosts, each made by Jinja.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ..control_node import plain
from ..gpu_ready.rollout.model import FleetError
from ..gpu_ready.rollout.rollout import require_equal_settings
from ..gpu_ready.settings.variables import Rule, judge
from .settings import rules

SETTINGS = (
    "gpu_ready_state_dir",
    "gpu_upgrade_batches",
    "gpu_upgrade_canaries",
    "gpu_upgrade_exclude",
    "gpu_upgrade_first",
    "gpu_upgrade_leave_out",
    "gpu_upgrade_max_failures",
    "gpu_upgrade_pause_after",
    "gpu_upgrade_rollout",
)
"""Settings of the whole rollout: they are the same on all hosts."""
RULES = rules()


class RolloutSettings(NamedTuple):
    """The settings of the whole rollout, in the order of ``SETTINGS`` without the beginnings of their names."""

    state_dir: str
    batches: list[str]
    canaries: list[str]
    exclude: list[str]
    first: list[str]
    leave_out: bool
    max_failures: str
    pause_after: str
    rollout: int


def read_hosts(
    hostvars: Mapping[str, Mapping[str, Any]], hosts: Sequence[str], names: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return these variables of each host as JSON, without those that a host does not have. Raises FleetError."""
    found: dict[str, dict[str, Any]] = {}
    for host in hosts:
        variables = hostvars[host]
        found[host] = {}
        for name in names:
            if name in variables:
                try:
                    found[host][name] = plain(variables[name])
                except Exception as error:  # the classes differ between versions of Ansible
                    raise FleetError(f"{name}: it cannot be rendered for {host}: {error}. Correct it.") from error
    return found


def first_with(hostvars: Mapping[str, Mapping[str, Any]], hosts: Sequence[str], name: str) -> dict[str, Any]:
    """Return an answer that is the same on all hosts, {} where none has it.

    A host that was unreachable at that time, or that the run added, does not have it.
    """
    for host in hosts:
        if name in hostvars[host]:
            value = plain(hostvars[host][name])
            return value if isinstance(value, dict) else {}
    return {}


def read_settings_of_run(
    variables: Mapping[str, Any], template: Callable[[Any], Any], by_host: Mapping[str, Mapping[str, Any]]
) -> RolloutSettings:
    """Return the settings of the whole rollout. Raises FleetError where they differ or are wrong.

    :param variables: what Ansible knows of the host of the task, with templates
    :param template: `Templar.template`
    :param by_host: what `read_hosts` returned for all hosts of the run
    """
    host = str(variables["inventory_hostname"])
    given = {name: {one: by_host[one].get(name, RULES[name][0]) for one in by_host} for name in SETTINGS}
    values = {}
    for name in SETTINGS:
        own = plain(template(variables[name])) if name in variables else RULES[name][0]
        if host in by_host and own != given[name][host]:
            given[name] = dict.fromkeys(by_host, own)  # a variable of the play, which no host can override
        values[name] = own
    require_equal_settings(given)
    return RolloutSettings(*[parse_value(name, values[name]) for name in SETTINGS])


def parse_value(name: str, value: Any) -> Any:
    """Return a value of a setting as its type. Raises FleetError for a wrong one."""
    default, *fields = RULES[name]
    converted, refusal = judge(name, Rule(*fields), default, default if value is None else value)
    if refusal:
        raise FleetError(f"{refusal.message}. Remedy: {refusal.remedy}.")
    return converted
