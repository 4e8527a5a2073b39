"""The command that comes next after a run in which hosts are not in a good state."""

import posixpath
import shlex
from collections.abc import Mapping, Sequence

from .model import REMEDY, Host

MOST = 10
"""Hosts that a command names; with more it is for the whole inventory, and hosts in the desired state cost one call."""


def site_playbook(playbook: str) -> str:
    """Return site.yml beside a playbook of this project, as it was named: by path or by the collection's name."""
    directory, name = posixpath.split(playbook)
    if playbook.startswith("gpu_ready.nodes."):
        return "gpu_ready.nodes.site"
    if name == "audit.yml" and posixpath.basename(directory) == "playbooks":
        return posixpath.normpath(posixpath.join(directory, "..", "site.yml"))
    return "site.yml"


def sibling_command(playbook: str, name: str, inventories: Sequence[str], hosts: Sequence[str], variables: bool) -> str:
    """Return the command of another playbook of this project: ``name`` has no suffix.

    ``playbook``: the one that was called, as it was named; "" for one of a site, which imports those of the collection.
    ``hosts``: limit it to these, if they are few. ``variables``: the command line had -e options.
    """
    directory, file = posixpath.split(playbook)
    if not file or playbook.startswith("gpu_ready.nodes."):
        called = f"gpu_ready.nodes.{name}"
    else:
        inside = directory if posixpath.basename(directory) == "playbooks" else posixpath.join(directory, "playbooks")
        called = posixpath.join(inside, f"{name}.yml")
    words = ["ansible-playbook", called, *(word for one in inventories for word in ("-i", one))]
    words += ["--limit", ",".join(hosts)] if 0 < len(hosts) <= MOST else []
    return " ".join(map(shlex.quote, words)) + (" with the same -e options" if variables else "")


def state_of(host: Host) -> str:
    """Return the state of a host, "remedy" for drift that site.yml does not repair, such as a lost GPU."""
    texts = [host.why.message, *(check.why for check in host.checks if check.ok is False)]
    own = host.why.remedy or any(REMEDY in text for text in texts)
    return "remedy" if host.state == "drift" and own else host.state


def next_command(
    kind: str, states: Mapping[str, str], total: int, playbook: str, inventories: Sequence[str], variables: bool
) -> str:
    """Return one line for the hosts that are not in a good state (``states``), of ``total`` hosts; "" for none.

    ``variables``: the command line has -e options, which are not repeated, since they may be secrets.
    """
    if not states or kind not in ("site", "audit"):
        return ""
    repaired = [name for name, state in states.items() if state == "drift"]
    named = repaired if kind == "audit" and repaired else list(states)
    words = ["ansible-playbook", site_playbook(playbook) if kind == "audit" else playbook]
    words += [word for one in inventories for word in ("-i", one)]
    if len(named) <= MOST and len(named) < total:
        words += ["--limit", ",".join(named)]
    command = " ".join(shlex.quote(word) for word in words)
    given = " with the same -e options" if variables else ""
    if kind == "audit" and len(repaired) == len(states):
        return f"Repair{given}: {command}"
    return f"Next: follow the remedies above, then run{given}: {command}"
