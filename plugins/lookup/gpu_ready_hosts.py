# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The hosts of a play of gpu-ready, if the command line lets all of its tasks run."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ansible import constants as C
from ansible import context
from ansible.errors import AnsibleLookupError
from ansible.inventory.manager import InventoryManager, split_host_pattern
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.lookup import LookupBase

# Once, here: otherwise the process of every task loads them.
from ..action import (  # noqa: F401
    gpu_audit,
    gpu_begin,
    gpu_capture,
    gpu_execute,
    gpu_node_plan,
    gpu_python,
    gpu_scheduler,
    gpu_turn,
    gpu_verify,
)
from ..module_utils.gpu_ready.base.plain_text import plain_text
from ..plugin_utils import terminal
from ..plugin_utils.control_node import is_own
from ..plugin_utils.gpu_ready.settings.variables import wrong_values
from ..plugin_utils.variables.settings import read_others, rules

DOCUMENTATION = """
name: gpu_ready_hosts
short_description: the hosts of a play, unless tasks would be left out
description:
  - Returns the hosts, groups or patterns of a play.
  - Fails if a playbook of gpu-ready was started with C(--tags), C(--skip-tags) or C(--start-at-task). The steps of a
    host are one plan; of a part of the tasks Ansible would say that all went well.
  - Fails if no host is selected, by an inventory without hosts, by the patterns or by C(--limit). Ansible would end
    with status 0.
  - Fails if a variable of the run has a wrong value that no plan of a host would show.
  - Fails if the name of one of the hosts has a blank or a character that shows nothing, so that it could be mistaken
    for another one in a plan or report.
  - It is evaluated once per play, before anything runs.
options:
  _terms:
    description: Host names, groups or patterns, as texts or lists.
    required: true
"""

MOLECULE = {"molecule-notest", "notest", "molecule-idempotence-notest"}
"""What molecule skips in its runs (its option --skip-tags of ansible-playbook); no task here has these tags."""
WITHOUT_HOSTS = ("syntax", "listtasks", "listtags")
"""Options with which ansible-playbook only reads playbooks, as ansible-lint and CI jobs do without an inventory."""
INSTEAD = (
    "Leave it out: hosts in the desired state are left alone anyway, and a second run resumes where the first ended."
    " To leave out parts, set variables: nvidia_driver_source=none, cuda_toolkit_source=none, cudnn_source=none,"
    " docker_engine_source=none; to choose hosts, use --limit."
)


def starts_own(arguments: Mapping[str, Any]) -> bool:
    """Whether the command line starts a playbook of gpu-ready, and not one of a site that imports it."""
    return any(is_own(str(playbook)) for playbook in arguments.get("args") or ())


def refuse_parts(arguments: Mapping[str, Any]) -> None:
    """Raise AnsibleLookupError if options of the command line select a part of the tasks.

    Not where the playbook of a site imports one of gpu-ready: its tags, and tags at the import, concern whole plays.
    """
    tags, skipped = ([str(tag) for tag in arguments.get(name) or ()] for name in ("tags", "skip_tags"))
    start = arguments.get("start_at_task")
    if not starts_own(arguments):
        return
    if tags and "all" not in tags:
        raise AnsibleLookupError(f"--tags {','.join(tags)}: gpu-ready has no tags, so nothing would run. {INSTEAD}")
    if set(skipped) - MOLECULE:
        raise AnsibleLookupError(f"--skip-tags {','.join(skipped)}: gpu-ready has no tags. {INSTEAD}")
    if start:
        raise AnsibleLookupError(f"--start-at-task {start}: each step needs what the ones before it found. {INSTEAD}")


def host_patterns(terms: Iterable[Any], groups: Mapping[str, Any]) -> list[str]:
    """Return the patterns; raise AnsibleLookupError for an empty list, and for one without a host or group."""
    patterns = [str(one) for one in split_host_pattern(list(terms))]
    if not patterns:
        raise AnsibleLookupError("gpu_ready_hosts is empty. Name hosts, groups or patterns, or leave it out for all.")
    known = {*groups, *(host for hosts in groups.values() for host in hosts), *C.LOCALHOST}
    for pattern in patterns:
        name = pattern.lstrip("!&")
        if groups and not set(name) & set("[~") and not fnmatch.filter(known, name):  # [~: parts of groups, expressions
            raise AnsibleLookupError(f"gpu_ready_hosts: the inventory has no host or group {name}. Correct the name.")
    return patterns


def select(patterns: Iterable[str], groups: Mapping[str, Any], limit: str | None) -> list[str]:
    """Return the names of the hosts that patterns and --limit select."""
    inventory = InventoryManager(DataLoader(), parse=False)
    for group, hosts in groups.items():
        inventory.add_group(group)
        for host in hosts:
            inventory.add_host(host, group)
    inventory.subset(limit)
    return [str(host) for host in inventory.get_hosts(",".join(patterns))]


def refuse_hidden(arguments: Mapping[str, Any], patterns: Iterable[str], groups: Mapping[str, Any]) -> None:
    """Raise AnsibleLookupError for hosts whose names could be mistaken for others in what is shown."""
    names = {str(host) for hosts in groups.values() for host in hosts}
    strange = {one for one in names if any(map(str.isspace, one)) or plain_text(one) != one}
    if strange:
        strange &= set(select(patterns, groups, arguments.get("subset")))
    for name in sorted(strange):
        raise AnsibleLookupError(
            f"inventory: the name {ascii(name)} has a blank or a character that is not shown. Rename this host."
        )


def refuse_no_hosts(arguments: Mapping[str, Any], patterns: Iterable[str], groups: Mapping[str, Any]) -> None:
    """Raise AnsibleLookupError if inventory, patterns and --limit leave no host: Ansible would end with status 0.

    Not where the playbook of a site imports one of gpu-ready, whose other plays may have hosts, and not where no host
    is needed, as for --syntax-check.
    """
    if not groups or not starts_own(arguments) or any(arguments.get(name) for name in WITHOUT_HOSTS):
        return
    requested, limit = list(patterns), arguments.get("subset")
    text = ",".join(requested)
    if text == "all" and groups.get("all") and not limit:
        return
    if not select(requested, groups, None):
        if not groups.get("all"):
            raise AnsibleLookupError(f"No hosts: {inventory_fault(list(arguments.get('inventory') or ()))}")
        raise AnsibleLookupError(f"No hosts: gpu_ready_hosts ({text}) selects none of the inventory. Correct it.")
    if not select(requested, groups, limit):
        raise AnsibleLookupError(f"No host is both in gpu_ready_hosts ({text}) and in --limit {limit}. Correct one.")


def inventory_fault(sources: Sequence[str]) -> str:
    """Return what is wrong with an inventory without hosts, and where it is given: -i, a variable or ansible.cfg."""
    configured, origin = C.config.get_config_value_and_origin("DEFAULT_HOST_LIST")
    remedy = "Check -i."
    if list(sources) == list(configured):  # what ansible-playbook takes without -i
        remedy = {
            "default": "Give one with -i.",
            "env: ANSIBLE_INVENTORY": "Check ANSIBLE_INVENTORY, or give an inventory with -i.",
        }.get(origin, f"Check `inventory` in {origin}, or give one with -i.")
    faults = [f'the inventory "{shown_source(source)}" {source_fault(source)}' for source in sources]
    return f"{' and '.join(faults) or 'there is no inventory'}. {remedy}"


def source_fault(source: str) -> str:
    """Return why a source has no hosts. One with a comma is a list of hosts and not a path."""
    return "has none" if "," in source or Path(source).exists() else "does not exist"


def shown_source(source: str) -> str:
    """Return a source as it was probably typed: ansible-playbook makes paths absolute."""
    path = Path(source)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) and "," not in source else source


def refuse_values(variables: Mapping[str, Any], template: Callable[[list[Any]], list[Any]]) -> None:
    """Raise AnsibleLookupError if a variable of the whole run (-e, vars of a play) that no host plans with is wrong."""
    given = read_others(variables, template)
    refusals = wrong_values(rules(), given) if given else []
    if refusals:
        raise AnsibleLookupError("; ".join(f"{one.message}. Remedy: {one.remedy}." for one in refusals))


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible is untyped
    def run(self, terms: list[Any], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[str]:
        """Return the patterns in one text."""
        terminal.measure()
        refuse_parts(context.CLIARGS)
        refuse_values(variables or {}, lambda values: self._templar.template(values))
        groups = (variables or {}).get("groups") or {}
        patterns = host_patterns(terms, groups)
        refuse_no_hosts(context.CLIARGS, patterns, groups)
        refuse_hidden(context.CLIARGS, patterns, groups)
        return [",".join(patterns)]
