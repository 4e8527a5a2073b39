# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Settings of a whole run, for tasks that run once: whichever host is left runs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display

from ..plugin_utils.gpu_ready.settings.variables import wrong_values
from ..plugin_utils.variables.settings import rules

DOCUMENTATION = """
name: gpu_ready_setting
short_description: a variable that is one for all hosts of a play
description:
  - A task with C(run_once) has the variables of the first host that is left, which may be one without those of the
    operator's group, or a name that the run itself added to the inventory.
  - Returns the value of this host if the operator set one for it; else that of the first host of a group, in the order
    of the groups; else the default of the role.
  - Returns the default in place of a wrong value, with a warning. The hosts that have it were refused for it before,
    and that is to be reported.
options:
  _terms:
    description: Names of variables.
    required: true
"""

display = Display()
RULES = rules()


def candidates(variables: Mapping[str, Any]) -> Iterator[str]:
    """Yield the host of the task, then one host of each group: the variables of 2,000 hosts would take seconds."""
    yield str(variables["inventory_hostname"])
    play = set(variables.get("ansible_play_hosts_all") or ())
    for hosts in (variables.get("groups") or {}).values():
        yield from [str(host) for host in hosts if host in play][:1]


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible is untyped
    def run(self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return one value for each name."""
        known: Mapping[str, Any] = variables or {}
        return [self.value(str(name), known) for name in terms]

    def value(self, name: str, variables: Mapping[str, Any]) -> Any:
        found = self.given(name, variables)
        wrong = wrong_values(RULES, {name: found}) if name in RULES else []
        if not wrong or "{{" in str(RULES[name][0]):
            return found
        display.warning(f"{wrong[0].message}. The default is used. Remedy: {wrong[0].remedy}.")
        return RULES[name][0]

    def given(self, name: str, variables: Mapping[str, Any]) -> Any:
        hosts = list(dict.fromkeys(candidates(variables)))
        chosen = next((host for host in hosts if name in variables["hostvars"][host]), hosts[0])
        if chosen != hosts[0]:
            return variables["hostvars"][chosen][name]
        return self._templar.template(variables[name])  # variables of a play have precedence, and are not in hostvars
