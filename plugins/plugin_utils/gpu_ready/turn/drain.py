# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""How a host is drained and undrained: by hook, in parts, because schedulers and task files are elsewhere.

The host's journal lists what gpu-ready drained, before it is drained. It only says that: what is changed elsewhere for
this host is named by the variables of this run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ..execute.model import Answer, fail
from .model import NOTE, Elsewhere, Piece, PieceResult, Turn, TurnHost

DOCKER, SLURM, KUBERNETES, TASKS = "docker", "slurm", "kubernetes", "tasks"
SCHEDULERS = (SLURM, KUBERNETES)
MODULES = {SLURM: "gpu_drain_slurm", KUBERNETES: "gpu_drain_kubernetes"}
STATES = {SLURM: ("drained", "waited", "undrained"), KUBERNETES: ("cordoned", "evicted", "uncordoned")}
"""States of the module: to drain the node, to wait for its work, to undrain it."""
EVICTION = {
    "grace_period": "gpu_drain_kubernetes_grace_period",
    "delete_emptydir_data": "gpu_drain_kubernetes_delete_emptydir_data",
    "force": "gpu_drain_kubernetes_force",
    "disable_eviction": "gpu_drain_kubernetes_disable_eviction",
    "pod_selector": "gpu_drain_kubernetes_pod_selector",
}
"""Options of an eviction, and their variables."""
AT_A_TIME = 8
"""Hosts for which one scheduler is asked at a time: its sshd takes ten sessions of a connection (MaxSessions)."""
MOST_ROUNDS = 70
"""An honest host ends a wait by itself after 60 rounds (MOST_CALLS of module_utils/gpu_ready/drain/hook.py)."""
SPARE = 600
"""Seconds that a wait may take beyond gpu_upgrade_drain_timeout by the clock of the control node."""
ENDLESS = (
    "drain: the wait has had {} rounds and lasts longer than gpu_upgrade_drain_timeout allows. Check the clock of the "
    "host, and whether somebody has changed what this host answers. It stays drained."
)
UNKNOWN = (
    "gpu_upgrade_drain: {} is neither one of none, docker, slurm and kubernetes nor a task file on the control node. "
    "Correct it; a path is relative to the directory of the inventory."
)
OTHER = (
    "/var/lib/gpu-ready/drain.json: this host was drained with {other}, but the variables of this run say {given}. Set "
    "gpu_drain_{hook}_* and gpu_drain_reason as they were, or undrain it by hand ({by_hand}), delete that file on the "
    "host and run again."
)
BY_HAND = {SLURM: "scontrol update nodename=NODE state=resume", KUBERNETES: "kubectl uncordon NODE"}
UNNAMED = (
    "/var/lib/gpu-ready/drain.json lists {} task files that gpu_upgrade_drain does not name in this run. Set it as in "
    "the run that drained the host, or undrain it by hand, delete that file on the host and run again."
)
SHOWN = 400
"""Characters of what the journal of a host lists, in a message."""


def is_file(hook: str) -> bool:
    """Return whether a hook is a task file of the operator."""
    return "/" in hook


def files_of(host: TurnHost) -> list[str]:
    """Return the task files of the operator, in the order of the drain."""
    return [hook for hook in host.settings.hooks if is_file(hook)]


def mark_of(path: str) -> str:
    """Return how the journal of a host names a task file: it must not select a file of the control node."""
    return hashlib.sha256(path.encode()).hexdigest()


def until_done(
    call: Callable[[float], Answer], seconds: int, now: Callable[[], float], show: Callable[[str], None]
) -> Answer:
    """Call a module that waits until it says that nothing is awaited any more. Raises StepFailed.

    ``call`` gets the end of the wait that the first answer named, 0 before.
    """
    ends, deadline, rounds = now() + seconds + SPARE, 0.0, 0
    while True:
        answer = call(deadline)
        rounds += 1
        if answer.get("done") is not False:
            return answer
        show(f"waiting at most {answer.get('remaining_s')} s more for {answer.get('waiting')}")
        if rounds >= MOST_ROUNDS or now() > ends:
            raise fail(ENDLESS.format(rounds))
        deadline = float(answer.get("deadline") or 0)


def drain_pieces(host: TurnHost) -> list[Piece]:
    """Return the parts of a drain, by the hooks of the operator."""
    found: list[Piece] = [begin_drain]
    for hook in host.settings.hooks:
        if hook == DOCKER:
            found.append(drain_docker)
        elif hook in SCHEDULERS:
            found += [partial(part, hook) for part in (see_owner, change_owned, await_work)]
        else:
            found.append(partial(run_file, hook, "drain"))
    return [*found, end_drain]


def undrain_pieces(host: TurnHost) -> list[Piece]:
    """Return the parts of an undrain: what the journal lists, in the reverse order of how it matters."""
    files: list[Piece] = [partial(run_file, path, "undrain") for path in reversed(files_of(host))]
    found: list[Piece] = [begin_undrain, *files, partial(forget, TASKS)]
    for hook in (KUBERNETES, SLURM):
        found += [partial(undrain_node, hook), partial(forget, hook)]
    return [*found, undrain_docker]


def change_journal(turn: Turn, host: TurnHost, **arguments: Any) -> Turn:
    """Change the host's journal of drains, or read it."""
    return turn._replace(recorded=host.run("gpu_ready.nodes.gpu_drain_journal", arguments)["journal"])


def keep_lease(host: TurnHost, hooks: set[str]) -> None:
    """Keep the host as long as a scheduler or a task file may take: neither renews the lease."""
    if hooks - {DOCKER}:
        lasts = {"state": "extended", "lasts": host.settings.drain_timeout + SPARE}
        host.run("gpu_ready.nodes.gpu_lease", lasts)


def begin_drain(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Refuse hooks that do not exist, and read what is drained already."""
    wrong = [hook for hook in host.settings.hooks if hook not in (DOCKER, *SCHEDULERS) and not Path(hook).is_file()]
    if wrong:
        raise fail(UNKNOWN.format(", ".join(wrong)))
    if host.settings.hooks:
        turn = change_journal(turn, host)
        keep_lease(host, set(host.settings.hooks))
    return PieceResult(turn)


def end_drain(turn: Turn, _: TurnHost, __: Answer) -> PieceResult:
    """Note that all hooks have succeeded."""
    return PieceResult(turn._replace(drained=True))


def drain_docker(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Stop docker's GPU containers."""
    arguments = {
        "state": "drained",
        "grace": host.setting("gpu_drain_docker_grace"),
        "stop_temporary": host.setting("gpu_drain_docker_stop_temporary"),
        "timeout": host.settings.drain_timeout,
    }

    def call(deadline: float) -> Answer:
        return host.run("gpu_ready.nodes.gpu_drain_docker", {**arguments, "deadline": deadline})

    until_done(call, host.settings.drain_timeout, host.now, lambda text: host.show(NOTE, turn.phase, text))
    return PieceResult(turn)


def undrain_docker(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Start docker's GPU containers again."""
    if DOCKER in turn.recorded:
        host.run("gpu_ready.nodes.gpu_drain_docker", {"state": "undrained"})
    return PieceResult(turn)


# ---- schedulers ------------------------------------------------------------------------------------------------------


def compare(hook: str, turn: Turn, host: TurnHost) -> Mapping[str, Any]:
    """Return what the variables say of the node; fail where the journal of the host lists another one."""
    given = host.node(hook)
    other = {name: value for name, value in turn.recorded.get(hook, given).items() if name in given}
    if other != given:
        words = [", ".join(f"{name} {one[name]}" for name in given if name in one) for one in (other, given)]
        texts = {"other": words[0][:SHOWN], "given": words[1], "hook": hook, "by_hand": BY_HAND[hook]}
        raise fail(OTHER.format(**texts))
    return given


def ask_scheduler(
    hook: str, state: str, turn: Turn, host: TurnHost, check: bool = False, throttle: int = AT_A_TIME
) -> Elsewhere:
    """Return a call of the module of a scheduler, on the host that has its programs."""
    node, setting = host.node(hook), host.setting
    arguments = {"state": state, "node": node["node"]}
    if hook == SLURM:
        place, become = node["controller"], setting("gpu_drain_slurm_become")
        arguments |= {"directory": setting("gpu_drain_slurm_bin")}
    else:
        place, become = node["host"], setting("gpu_drain_kubernetes_become")
        arguments |= {"kubectl": setting("gpu_drain_kubernetes_kubectl")}
        arguments |= {name: node[name] for name in ("kubeconfig", "context")}
    if state in ("drained", "cordoned", "undrained", "uncordoned"):
        arguments |= {"reason": node["reason"]}
    if state in ("drained", "cordoned"):
        arguments |= {"recorded": hook in turn.recorded}
    if state == "evicted":
        arguments |= {name: setting(variable) for name, variable in EVICTION.items()}
    if state != "undrained":
        arguments |= {"timeout": host.settings.drain_timeout}
    tasks = "scheduler_as_root.yml" if boolean(become, strict=False) else "scheduler.yml"
    return Elsewhere(tasks, place, MODULES[hook], arguments, check, throttle, host.settings.drain_timeout)


def see_owner(hook: str, turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """See who drained the node, or whether gpu-ready will."""
    compare(hook, turn, host)
    return PieceResult(turn, ask_scheduler(hook, STATES[hook][0], turn, host, check=True))


def change_owned(hook: str, turn: Turn, host: TurnHost, answer: Answer) -> PieceResult:
    """Record that gpu-ready drains the node and drain it, unless somebody else has."""
    if answer.get("kept"):
        host.show(NOTE, turn.phase, str(answer["kept"]))
    if not answer.get("owned"):
        return PieceResult(change_journal(turn, host, remove=[hook]))
    turn = change_journal(turn, host, record={hook: host.node(hook)})
    return PieceResult(turn, ask_scheduler(hook, STATES[hook][0], turn, host, host.check))


def await_work(hook: str, turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Wait for the work on the node."""
    return PieceResult(turn, ask_scheduler(hook, STATES[hook][1], turn, host, host.check, throttle=0))


def undrain_node(hook: str, turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Undrain a node that the journal lists."""
    if hook not in turn.recorded:
        return PieceResult(turn)
    compare(hook, turn, host)
    return PieceResult(turn, ask_scheduler(hook, STATES[hook][2], turn, host, host.check))


# ---- task files of the operator, and the end of an entry -------------------------------------------------------------


def run_file(path: str, action: str, turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Run a task file of the operator; it is recorded before it drains."""
    known = list(turn.recorded.get(TASKS, {}).get("hooks", []))
    file = Elsewhere("task_file.yml", path=path, action=action)
    if action == "undrain":
        return PieceResult(turn, file if mark_of(path) in known else None)
    if mark_of(path) not in known:
        turn = change_journal(turn, host, record={TASKS: {"hooks": [*known, mark_of(path)]}})
    return PieceResult(turn, file)


def begin_undrain(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Read what is drained; refuse task files that this run does not name."""
    turn = change_journal(turn, host)
    keep_lease(host, set(turn.recorded))
    unnamed = set(turn.recorded.get(TASKS, {}).get("hooks", [])) - {mark_of(path) for path in files_of(host)}
    if unnamed:
        raise fail(UNNAMED.format(len(unnamed)))
    return PieceResult(turn)


def forget(hook: str, turn: Turn, host: TurnHost, answer: Answer) -> PieceResult:
    """Remove an entry from the journal of the host after it was undrained."""
    if hook not in turn.recorded:
        return PieceResult(turn)
    if answer.get("kept"):
        host.show(NOTE, turn.phase, str(answer["kept"]))
    return PieceResult(change_journal(turn, host, remove=[hook]))
