"""Engines beside docker: podman lives by a CDI specification, containerd by the toolkit's runtime or CDI."""

from typing import Any, Dict, List, Tuple

from ...containers import cdi
from ...containers import engine as engines
from ...containers.containerd import config
from ..driver import candidates
from ..model import Decision, Refusal, Step
from . import containerd, docker, podman, runtime


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the steps for the engines beside docker, without those that docker's room has taken already."""
    names = runtime.names(wanted)
    mode = wanted.get("nvidia_container_runtime_mode") or runtime.TOOLKIT
    told = containerd.decide(observed, wanted, mode if engines.CONTAINERD in names else config.NONE)
    last = [told.step] if told.step else []
    if not [name for name in names if name != engines.DOCKER]:
        return Decision({}, [] if told.refusals else last, told.refusals)
    chosen = {"mode": mode, "names": [name for name in engines.ENGINES if name in names]}
    refusals = podman.refusals(observed) if engines.PODMAN in names else []
    observed = runtime.leave(observed, wanted).observed  # docker's room has the step
    steps: List[Step] = []
    if mode == runtime.TOOLKIT and engines.DOCKER not in names:
        more, _ = runtime.toolkit_steps(observed, wanted)
        steps += more
    if engines.PODMAN in names or mode != runtime.TOOLKIT:
        files, found = specification(observed, wanted, mode, choice)
        steps += files
        refusals += found
    refusals += told.refusals
    return Decision(chosen, [] if refusals else steps + last, refusals)


def specification(
    observed: Dict[str, Any], wanted: Dict[str, Any], mode: str, choice: Dict[str, Any]
) -> Tuple[List[Step], List[Refusal]]:
    """Return the step for the specification, none where docker uses the same one and its room has seen to it."""
    names = runtime.names(wanted)
    if engines.DOCKER in names and runtime.way_of(mode, docker.version(observed, wanted)) == runtime.CDI:
        return [], []
    if mode == runtime.TOOLKIT and not observed["runtime"]["toolkit"]:
        # It comes with this plan, and with it nvidia-ctk and, from 1.18 on, what keeps the specification fresh.
        programs = dict(observed["runtime"]["programs"], **{"nvidia-ctk": "/usr/bin/nvidia-ctk"})
        observed = dict(observed, runtime=dict(observed["runtime"], programs=programs, refresh=True))
    files = [
        {"path": path, "content": content, "mode": "0644"}
        for path, content in sorted(cdi.nodes_unit(len(candidates.served(observed))).items())
    ]
    way = runtime.NATIVE if mode == runtime.NATIVE else runtime.CDI
    steps, refusals = runtime.specification_steps(observed, wanted, way, choice, files)
    for step in steps:
        if step.params["path"] == cdi.REFRESHED:
            step.params["unrefreshed"] = cdi.GENERATED
    return steps, refusals
