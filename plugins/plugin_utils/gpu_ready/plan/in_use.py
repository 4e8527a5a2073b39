"""The guard of running work: a plan that would stop work is refused before any change, unless that is permitted."""

from collections.abc import Sequence

from ....module_utils.gpu_ready.base.disruptions import (
    CONTAINERD_RESTART,
    DOCKER_RESTART,
    DRIVER_RELOAD,
    KUBERNETES_RESTART,
    REBOOT,
)
from ....module_utils.gpu_ready.containers import names as engines
from ....module_utils.gpu_ready.facts import affected
from ....module_utils.gpu_ready.facts.affected import AffectedWork
from ....module_utils.gpu_ready.facts.model import Facts, WorkFacts
from ..catalog.settings import Settings
from .containers.docker_packages import CONTAINERD_PACKAGES
from .containers.model import CleanupParams, DockerInstallParams, MigrationParams
from .driver.model import ActivateParams
from .model import Decision, Notice, Refusal, Step


def check_running_work(
    facts: Facts, settings: Settings, steps: list[Step], drains: Sequence[str] = ()
) -> Decision[None]:
    """Refuse each disruption that stops work without permission; what a permitted one stops is a warning.

    ``drains``: how the host is drained before the steps run (values of gpu_upgrade_drain).
    """
    left = work_after_drain(facts.work, drains)
    live = bool(affected.holders(facts.work)) and not affected.holders(left)
    facts = facts._replace(work=left)
    refusals, warnings = [], []
    for disruption, why in planned_disruptions(settings, steps, live).items():
        work = affected_work(facts, disruption, steps)
        if work.is_empty:
            continue
        text = affected.CONSEQUENCES[disruption] % (why, work.text())
        held = affected.holders(facts.work) if disruption == DRIVER_RELOAD else []
        if disruption in settings.gpu_ready_disrupt and not held:
            warnings.append(Notice("work_stopped", text, "gpu_ready_disrupt permits it"))
        else:
            refusals.append(Refusal("host_in_use", text, remedy(settings, disruption, held)))
    return Decision(None, [], refusals, warnings)


def planned_disruptions(settings: Settings, steps: list[Step], live: bool) -> dict[str, str]:
    """Return the disruptions that the steps really cause, with the reason of the first step of each.

    A reboot stops everything that the others stop, so it counts alone. Without gpu_ready_reboot_ok nothing reboots.
    ``live``: what holds the GPUs now does not after the drain, so that a reboot for its sake becomes a live reload.
    """
    found: dict[str, str] = {}
    for step in steps:
        reloads = live and isinstance(step.params, ActivateParams) and step.params.fallback == "reboot"
        disruption = DRIVER_RELOAD if reloads else step.disruption
        if disruption in affected.CONSEQUENCES:
            found.setdefault(disruption, step.why)
    reboot = found.pop(REBOOT, None)
    return {REBOOT: reboot} if reboot is not None and settings.gpu_ready_reboot_ok else found


def remedy(settings: Settings, disruption: str, held: list[str]) -> str:
    """Return what the operator can do. A module that a process holds cannot be reloaded, only a reboot ends that."""
    words = "let it end or stop it"
    if disruption in (DRIVER_RELOAD, REBOOT):
        words += " (in an upgrade: set gpu_upgrade_drain)"
    if not held:
        return "%s, or permit it with gpu_ready_disrupt: [%s]" % (words, disruption)
    if settings.gpu_ready_activation in ("reload", "none"):
        return "%s, then run this again" % words
    return "%s, or permit a reboot over it with gpu_ready_reboot_ok: true and gpu_ready_disrupt: [reboot]" % words


def work_after_drain(work: WorkFacts, drains: Sequence[str]) -> WorkFacts:
    """Return the work that a drained host still has; none where the operator named ``none``, to drain nothing.

    A drain stops what uses a GPU. A container that is only privileged, or mounts /dev, and holds no GPU keeps running
    while the driver is replaced.
    """
    if not drains:
        return work
    if "none" in drains:
        return WorkFacts()
    tasks = any("/" in name or name.endswith((".yml", ".yaml")) for name in drains)  # they may move all work
    slurm = tasks or "slurm" in drains
    moved = [
        one
        for one in work.containers
        if (one.pod and "kubernetes" in drains)
        or (one.gpu == "GPU" and (tasks or (one.engine == engines.DOCKER and "docker" in drains)))
    ]
    names = {one.name for one in moved}
    holding = {process.container for process in work.processes}
    return WorkFacts(
        [one for one in work.processes if not (one.container in names if one.container else slurm)],
        [
            one if one.name in holding or one.gpu == "GPU" else one._replace(gpu="")
            for one in work.containers
            if one not in moved
        ],
        work.unlisted,
        [] if slurm else work.jobs,
    )


# ---- what is affected ----------------------------------------------------------------------------------------------


def affected_work(facts: Facts, disruption: str, steps: list[Step]) -> AffectedWork:
    work = facts.work
    if disruption == DOCKER_RESTART:
        return containers_of_docker(facts, [step for step in steps if step.disruption == DOCKER_RESTART])
    if disruption == CONTAINERD_RESTART:
        return containers_of_containerd(facts, [step for step in steps if step.disruption == CONTAINERD_RESTART])
    if disruption == KUBERNETES_RESTART:
        return affected_by_kubernetes(facts)
    return affected.users_of_gpus(work) if disruption == DRIVER_RELOAD else affected.everything(work)


def containers_of_docker(facts: Facts, steps: list[Step]) -> AffectedWork:
    """Return the containers of docker that these steps stop; live-restore keeps them running through a restart.

    It does not where containerd is replaced too, nor for the GPU containers that a step stops itself.
    """
    listed = [one for one in facts.work.containers if one.engine == engines.DOCKER]
    info = facts.docker.info
    survive = info is not None and info.live_restore
    named: set[str] = set()
    for step in steps:
        if isinstance(step.params, (CleanupParams, MigrationParams)):
            named |= set(step.params.containers)
        elif not survive or (isinstance(step.params, DockerInstallParams) and step.params.remove):
            others = [engines.CONTAINERD] if replaces_containerd([step]) else []
            return affected.containers_of_engines(facts.work, engines.DOCKER, *others)
    return AffectedWork(affected.unique(affected.container_names([one for one in listed if one.name in named])))


def replaces_containerd(steps: Sequence[Step]) -> bool:
    """Return True if a step removes the package of containerd, so that another one takes its place."""
    removed = [name for step in steps if isinstance(step.params, DockerInstallParams) for name in step.params.remove]
    return bool(set(removed) & set(CONTAINERD_PACKAGES))


def containers_of_containerd(facts: Facts, steps: Sequence[Step]) -> AffectedWork:
    """Return the containers that containerd's restart stops: none, unless its unit kills all processes with it.

    Where the package is replaced, the new one need not take them over.
    """
    if facts.engines.containerd.keeps_containers and not replaces_containerd(steps):
        return AffectedWork([])
    return affected.containers_of_engines(facts.work, engines.CONTAINERD, engines.DOCKER)


def affected_by_kubernetes(facts: Facts) -> AffectedWork:
    """Return what the restart of k3s or RKE2 stops: the API server that runs in k3s's own process.

    Pods keep running, as both units stop their main process only (KillMode=process); RKE2's API server is a pod.
    """
    kubelet = facts.engines.kubernetes
    servers = ["the API server of this k3s server for about a minute"] if kubelet.unit == engines.K3S else []
    pods = AffectedWork([]) if kubelet.keeps_containers else affected.containers_of_engines(facts.work, engines.K3S)
    return AffectedWork(servers + pods.names, pods.unlisted)
