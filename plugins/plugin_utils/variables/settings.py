# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The settings of a host: the public variables that it has, for the modules that plan.

An action plugin reads them itself. As arguments of a task each would be a template, which Ansible compiles in the
process of every host: half of what a host in the desired state took of the control node.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .names import NAMES


class VariableError(Exception):
    """A variable has no value; the text names it and the reason."""


def read_settings(
    variables: Mapping[str, Any], template: Callable[[list[Any]], list[Any]], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of a host by name, without those that are `omit`.

    :param variables: what Ansible knows of the host, with templates
    :param template: `Templar.template`
    :param overrides: values of an upgrade; names that an upgrade may not override are left out
    :raises VariableError: a template cannot be rendered
    """
    found = {}
    for name in NAMES.settings:
        if name in overrides and name in NAMES.overridable:
            found[name] = overrides[name]
        elif name in variables:
            try:
                rendered = template([variables[name]])
            except Exception as error:  # the classes differ between versions of Ansible
                raise VariableError(f"the variable {name} cannot be rendered: {error}") from error
            for value in without_omitted(rendered, variables.get("omit")):  # one, or none
                found[name] = value
    return found


def read_others(
    variables: Mapping[str, Any], template: Callable[[list[Any]], list[Any]], roles: frozenset[str] | None = None
) -> dict[str, Any]:
    """Return the public variables that the planner does not read, as JSON; ``roles``: whose, None for all.

    Without those whose template cannot be rendered: it may need what only the task has that uses it.
    """
    found = {}
    for name, (role, *_) in NAMES.rules.items():
        if name in variables and (roles is None or role in roles):
            try:
                for value in without_omitted(template([variables[name]]), variables.get("omit")):
                    found[name] = json.loads(json.dumps(value, default=str))
            except Exception:  # noqa: S112  the classes differ between versions of Ansible
                continue
    return found


def rules() -> dict[str, list[Any]]:
    """Return the default and the fields of the rule of each variable that the planner does not read."""
    return {name: row[1:] for name, row in NAMES.rules.items()}


def without_omitted(value: Any, placeholder: Any) -> Any:
    """Return a value without the entries that are `omit`; ansible-core before 2.19 leaves a placeholder for them."""
    if placeholder is None:
        return value
    if isinstance(value, Mapping):
        return {key: without_omitted(one, placeholder) for key, one in value.items() if one != placeholder}
    if isinstance(value, list):
        return [without_omitted(one, placeholder) for one in value if one != placeholder]
    return value
