"""The journal of what we drained on a host, noted before each act, and what all drain hooks share.

``/var/lib/gpu-ready/drain.json`` has one entry for each hook that acted: whatever stands there is ours to give back,
and nothing else is. A run that was killed after the note and before the act finds its note and acts then.

==========  =============================================================================================
entry       value
==========  =============================================================================================
docker      {"containers": {id: {"name": text, "paused": bool}}} that ran and were stopped
slurm       {"node", "controller", "reason"}
kubernetes  {"node", "host", "kubeconfig", "context", "reason"}
tasks       {"files": [path of a task file]}
==========  =============================================================================================
"""

import json
import os
import time
from typing import Any, Callable, Dict, List, NamedTuple

from ..base import files, manifest
from ..base.errors import GpuReadyError
from ..base.host import Host

PATH = manifest.FOLDER + "/drain.json"
HOOKS = ("docker", "slurm", "kubernetes", "tasks")
SHORTEST = 15.0
"""Seconds after which one call of a waiting module says what it waits for."""
MOST_CALLS = 60
POLL = 5.0


class DrainError(GpuReadyError):
    """A host cannot be drained or given back; one sentence with thing, cause and remedy."""


class Wait(NamedTuple):
    """Where a wait stands: whether it is over, what it waits for, and the end of its bound in seconds since 1970."""

    done: bool
    waiting: str
    deadline: float
    left: int


def read(host: Host, path: str = PATH) -> Dict[str, Any]:
    """Return the journal, {} where nothing is drained by us. Raises DrainError on a damaged one."""
    text = host.read(path)
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not all(isinstance(entry, dict) for entry in value.values()):
        raise DrainError(
            "%s is damaged, so what we drained here is not known: give this host back by hand "
            "(docker start, scontrol, kubectl uncordon), then delete that file." % path
        )
    return value


def note(host: Host, entries: Dict[str, Any], path: str = PATH) -> bool:
    """Add entries, to be called before what they say is done; returns whether the journal changed."""
    before = read(host, path)
    after = dict(before, **entries)
    if after != before:
        _write(after, path)
    return after != before


def forget(host: Host, hooks: List[str], path: str = PATH) -> bool:
    """Drop entries once they were given back, the file with the last; returns whether the journal changed."""
    before = read(host, path)
    after = {hook: entry for hook, entry in before.items() if hook not in hooks}
    if after == before:
        return False
    if after:
        _write(after, path)
    else:
        os.unlink(path)
    return True


def _write(value: Dict[str, Any], path: str) -> None:
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    files.write_atomic(path, (json.dumps(value, indent=1, sort_keys=True) + "\n").encode("utf-8"), 0o600)


def words(journal: Dict[str, Any]) -> List[str]:
    """Return what the journal says is drained by us, a phrase an entry, for people."""
    found = []
    if "docker" in journal:
        names = sorted(str(entry["name"]) for entry in journal["docker"]["containers"].values())
        found.append("docker's containers %s are stopped" % ", ".join(names))
    if "slurm" in journal:
        found.append("slurm's node %s is drained" % journal["slurm"]["node"])
    if "kubernetes" in journal:
        found.append("the Kubernetes node %s is cordoned" % journal["kubernetes"]["node"])
    if "tasks" in journal:
        found.append("task files drained it: %s" % ", ".join(journal["tasks"]["files"]))
    return found


def share(timeout: int, deadline: float, now: float = 0.0) -> int:
    """Return the seconds of a wait that one call may take; ``timeout`` and ``deadline`` as :func:`wait` has them."""
    moment = now or time.time()
    left = (deadline or moment + timeout) - moment
    return max(int(min(left, max(SHORTEST, timeout / float(MOST_CALLS)))), 1)


def wait(
    ask: Callable[[], str],
    timeout: int,
    deadline: float,
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
    remedy: str = "end it or raise gpu_upgrade_drain_timeout",
) -> Wait:
    """Ask until nothing is awaited any longer or one call's share of the bound is over.

    ``ask`` returns what is awaited, "" for nothing; ``timeout``: seconds of the whole wait; ``deadline``: its end,
    0 for a wait that begins here. Raises DrainError, with the ``remedy``, where something is awaited past the end.
    """
    begin = now()
    end = deadline or begin + timeout
    until = begin + share(timeout, end, begin)
    while True:
        waiting = ask()
        moment = now()
        if waiting and moment >= end:
            raise DrainError(
                "still awaited after %d s: %s. The host stays drained: %s, then run again." % (timeout, waiting, remedy)
            )
        if not waiting or moment >= until:
            return Wait(not waiting, waiting, end, max(int(end - moment), 0))
        sleep(max(min(POLL, until - moment), 0.1))


def waited(ask: Callable[[], str], timeout: int, deadline: float, check: bool) -> Dict[str, Any]:
    """Return the answer of a module that waits; ``check``: it only says what it would wait for."""
    if check:
        return {"changed": False, "done": True, "waiting": "", "deadline": 0.0, "left_s": timeout}
    return dict(told(wait(ask, timeout, deadline)), changed=False)


def told(found: Wait) -> Dict[str, Any]:
    """Return where a wait stands as modules answer it."""
    return {"done": found.done, "waiting": found.waiting, "deadline": found.deadline, "left_s": found.left}
