"""What is otherwise than in the last run. Pure: two reports in, one out."""

from collections.abc import Iterable

from ..gpu_ready.report.layout import natural_order
from .model import NO_ANSWER, Change, Host, Report

VERSIONS = (("driver_installed", "driver"), ("driver_loaded", "loaded module"), ("cuda", "CUDA"), ("gpus", "GPUs"))
"""Cells whose values are compared, and what they are for people."""
MOST = 100
"""Changes that are kept, of the most hosts."""


def comparable(before: Report, now: Report) -> bool:
    """True for two runs of one kind over one inventory; a check says what would be, and is compared with checks."""
    return (before.kind, before.check_mode, before.run.inventories) == (
        now.kind,
        now.check_mode,
        now.run.inventories,
    )


def compare(before: Report | None, now: Report) -> Report:
    """Return the report with what changed since the run before, and since when each host is in its state."""
    if before is None or not comparable(before, now):
        return now._replace(hosts=[host._replace(since=now.time) for host in now.hosts])
    old = {host.name: host for host in before.hosts}
    hosts = [host._replace(since=since(old.get(host.name), host, now.time)) for host in now.hosts]
    found: dict[tuple[str, str], list[str]] = {}
    whole = not now.run.limit and not before.run.limit
    for host in now.hosts:
        for text, tone in host_changes(old[host.name], host) if host.name in old else []:
            found.setdefault((text, tone), []).append(host.name)
        if whole and host.name not in old:
            found.setdefault(("new: " + words(host.state), host.tone), []).append(host.name)
    removed = sorted(set(old).difference(host.name for host in now.hosts), key=natural_order)
    if whole and removed:
        found["no longer in the inventory", "none"] = removed
    order = sorted(found, key=lambda key: -len(found[key]))[:MOST]
    changes = [Change(text, tone, found[text, tone]) for text, tone in order]
    return now._replace(hosts=hosts, previous=before.time, changes=changes)


def since(old: Host | None, host: Host, time: str) -> str:
    """Return the end of the first run that found the host in this state without a break."""
    return old.since or time if old and old.state == host.state else time


def host_changes(old: Host, host: Host) -> Iterable[tuple[str, str]]:
    """Yield what changed on a host, with the tone of the new state."""
    if old.state != host.state:
        yield f"{words(old.state)} -> {words(host.state)}", host.tone
    if host.state in NO_ANSWER or old.state in NO_ANSWER:
        return
    for key, what in VERSIONS:
        first, second = (one.cells.get(key, "").lstrip("!") for one in (old, host))
        if first != second:
            yield "{} {} -> {}".format(what, first or "none", second or "none"), "none"
    failing = {check.name for check in old.checks if check.ok is False}
    for check in host.checks:
        if check.ok is False and check.name not in failing:
            yield "{}: now {}".format(words(check.name), "drift" if host.drift else "failed"), "bad"
    ended = failing.difference(check.name for check in host.checks if check.ok is False)
    for name in sorted(ended):
        yield f"{words(name)}: ok again", "good"


def words(name: str) -> str:
    return name.replace("_", " ")
