"""The changes that containerd's configuration needs."""

from typing import NamedTuple

from .....module_utils.gpu_ready.base.disruptions import CONTAINERD_RESTART
from .....module_utils.gpu_ready.containers.containerd import config, edits
from .....module_utils.gpu_ready.facts.model import ContainerdFacts
from ...catalog.settings import Settings
from ..model import FileDiff, Refusal, Step, VariableChange, refuse
from .model import ContainerdParams


class ContainerdDecision(NamedTuple):
    """The step for containerd's files, or why it cannot be done."""

    step: Step | None
    refusals: list[Refusal]


def plan_containerd(engine: ContainerdFacts, settings: Settings, mode: str) -> ContainerdDecision:
    if mode == config.NONE:
        return revert(engine)
    default = settings.nvidia_container_runtime_default
    refusals = impossible(engine, mode, default)
    if refusals:
        return ContainerdDecision(None, refusals)
    try:
        change = edits.plan_edits(engine.version, engine.files, mode, default, engine.record)
    except config.ConfigError as error:
        return ContainerdDecision(None, [Refusal(error.code, error.problem, error.remedy)])
    if change.edits:
        why = "containerd's configuration gets %s" % ", ".join(change.keys)
    elif engine.pending:
        why = "an interrupted run changed containerd's configuration and did not restart it"
    elif not engine.active:
        why = "containerd is installed, but does not run"
    else:
        return ContainerdDecision(None, [])
    return apply_change(engine, ContainerdMode(mode, default), change, why)


def revert(engine: ContainerdFacts) -> ContainerdDecision:
    if not engine.installed or engine.rancher:
        return ContainerdDecision(None, [])
    ours = bool(engine.record) or config.DROP_IN in [file.path for file in engine.files]
    if not ours and not engine.pending:
        return ContainerdDecision(None, [])
    try:
        change = edits.plan_removal(engine.files, engine.before, engine.after, engine.record)
    except config.ConfigError as error:
        return ContainerdDecision(None, [Refusal(error.code, error.problem, error.remedy)])
    if not change.edits and not (engine.active and engine.pending):
        return ContainerdDecision(None, [])
    why = "containerd is no longer among nvidia_container_runtime_engines: "
    why += "its configuration loses %s" % ", ".join(change.keys) if change.edits else "it was not restarted since"
    return apply_change(engine, ContainerdMode(config.NONE, False), change, why)


class ContainerdMode(NamedTuple):
    """How containerd uses the GPUs; ``default``: every container gets NVIDIA's runtime."""

    mode: str
    default: bool


def apply_change(
    engine: ContainerdFacts, mode: ContainerdMode, change: config.ContainerdChange, why: str
) -> ContainerdDecision:
    restart = engine.active and bool(change.edits or engine.pending)
    state = "restarted" if restart else "started" if mode.mode != config.NONE else ""
    step = Step(
        "nvidia_container_runtime.containerd",
        why + ("; its restart leaves running containers alone" if restart and engine.keeps_containers else ""),
        CONTAINERD_RESTART if restart else "none",
        ContainerdParams(mode.mode, mode.default, state),
        [FileDiff(edit.path, edit.before, edit.after) for edit in change.edits],
    )
    return ContainerdDecision(step, [])


def impossible(engine: ContainerdFacts, mode: str, default: bool) -> list[Refusal]:
    if engine.rancher:
        name = engine.rancher.split("/")[-2]
        return [
            Refusal(
                "containerd_of_rancher",
                "%s has a containerd of its own here (%s) and writes its configuration again at each start"
                % (name, engine.rancher),
                "replace containerd by %s in nvidia_container_runtime_engines, or leave the variable empty" % name,
            )
        ]
    if not engine.installed:
        return [
            Refusal(
                "containerd_missing",
                "containerd is not installed, and nvidia_container_runtime_engines names it",
                "install the package containerd (or containerd.io), or take containerd out of "
                "nvidia_container_runtime_engines",
            )
        ]
    if default and mode != "toolkit":
        return [
            refuse(
                "default_runtime_impossible",
                "nvidia_container_runtime_default is true, but mode %s has no runtime called nvidia" % mode,
                VariableChange({"nvidia_container_runtime_mode": ["toolkit"]}),
                "nvidia_container_runtime_default to false",
            )
        ]
    return []
