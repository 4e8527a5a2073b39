"""Engines besides docker: podman uses a CDI specification, Kubernetes engines the toolkit's runtime or CDI."""

from .....module_utils.gpu_ready.containers import cdi
from .....module_utils.gpu_ready.containers import names as engines
from .....module_utils.gpu_ready.containers.containerd import config
from .....module_utils.gpu_ready.facts.model import Facts
from .....module_utils.gpu_ready.verify.expectation import EnginesChoice
from ...catalog.settings import Settings
from ..model import Choices, Decision, Notice, Refusal, Step, VariableChange, notify
from . import cdi_spec, containerd, crio, docker, docker_packages, kubernetes, podman, runtime
from .daemon_json_keys import TOOLKIT
from .model import SupportFile


def plan_engines(facts: Facts, settings: Settings, choices: Choices) -> Decision[EnginesChoice]:
    decided = decide_engines(facts, settings, choices)
    decided.warnings += default_warnings(settings) + kubernetes.unread_files(facts)
    return decided


def default_warnings(settings: Settings) -> list[Notice]:
    """Warn where every pod of a Kubernetes node could take all GPUs.

    With the runtime as the default, the variable NVIDIA_VISIBLE_DEVICES of an image or a pod is enough, past the device
    plugin (NVIDIA/k8s-device-plugin, README.md, "Setting the device list strategy").
    """
    default = settings.nvidia_container_runtime_default and settings.nvidia_container_runtime_mode == TOOLKIT
    found = [name for name in docker.configured_engines(settings) if name in engines.OF_KUBERNETES]
    if not default or not found:
        return []
    return [
        notify(
            "default_runtime_exposes_gpus",
            "nvidia is the default runtime of %s, with which any pod sees all GPUs by NVIDIA_VISIBLE_DEVICES=all"
            % found[0],
            VariableChange(
                {"nvidia_container_runtime_default": [False]}, effect="and give pods the RuntimeClass nvidia"
            ),
            "set nvidia_container_runtime_mode to cdi (docs/runtime.md)",
        )
    ]


def decide_engines(facts: Facts, settings: Settings, choices: Choices) -> Decision[EnginesChoice]:
    names = docker.configured_engines(settings)
    mode = settings.nvidia_container_runtime_mode
    containerd_mode = mode if engines.CONTAINERD in names else config.NONE
    of_containerd = containerd.plan_containerd(facts.engines.containerd, settings, containerd_mode)
    of_crio = crio.plan_crio(facts, settings, engines.CRIO in names)
    last = [step for step in (of_containerd.step, of_crio.step) if step]
    last_refusals = of_containerd.refusals + of_crio.refusals
    for name in engines.RANCHER:
        if name in names:
            of_kubernetes = kubernetes.plan_kubernetes(facts, settings, name)
            last += of_kubernetes.steps
            last_refusals += of_kubernetes.refusals
    if not [name for name in names if name != engines.DOCKER]:
        return Decision(None, [] if last_refusals else last, last_refusals)
    choice = EnginesChoice(mode, [name for name in engines.ENGINES if name in names])
    refusals = podman.refusals(facts.engines.podman) if engines.PODMAN in names else []
    refusals += cdi_spec.mig_refusals(facts, mode) if engines.DOCKER not in names else []
    facts = runtime.cleanup(facts, settings).facts  # the planner of docker's runtime adds its step
    steps: list[Step] = []
    if mode == TOOLKIT and engines.DOCKER not in names:
        toolkit, _, found = runtime.toolkit_steps(facts, settings)
        steps += toolkit
        refusals += found
    if engines.PODMAN in names or mode != TOOLKIT:
        specification, found = specification_steps(facts, settings, choices)
        steps += specification
        refusals += found
    refusals += last_refusals
    return Decision(choice, [] if refusals else steps + last, refusals)


def specification_steps(facts: Facts, settings: Settings, choices: Choices) -> tuple[list[Step], list[Refusal]]:
    mode = settings.nvidia_container_runtime_mode
    access = runtime.access_mode(mode, docker_packages.engine_version(facts, settings))
    if engines.DOCKER in docker.configured_engines(settings) and access == cdi_spec.CDI:
        return [], []
    if mode == TOOLKIT and not facts.runtime.toolkit:
        # This plan installs it, and with it nvidia-ctk and, from 1.18 on, the service that refreshes the specification.
        programs = dict(facts.runtime.programs, **{"nvidia-ctk": "/usr/bin/nvidia-ctk"})
        facts = facts._replace(runtime=facts.runtime._replace(programs=programs, refresh=True))
    units = cdi.format_nodes_unit(len(facts.base.served_gpus))
    files = [SupportFile(path, content, "0644") for path, content in sorted(units.items())]
    spec = cdi_spec.plan_cdi_spec(
        facts, settings, choices, cdi_spec.NATIVE if mode == cdi_spec.NATIVE else cdi_spec.CDI, files
    )
    if spec.params is None:
        return [], spec.refusals
    params = spec.params
    if params.path == cdi.REFRESHED:
        params = params._replace(unrefreshed=cdi.GENERATED)
    return [Step("nvidia_container_runtime.cdi_spec", spec.why, params=params)], spec.refusals
