"""What gpu-ready added for an earlier mode or engine and no engine uses any more."""

from collections.abc import Iterator
from typing import NamedTuple

from .....module_utils.gpu_ready.base.disruptions import DOCKER_RESTART, NONE
from .....module_utils.gpu_ready.containers import cdi, driver_volume
from .....module_utils.gpu_ready.containers import names as engines
from .....module_utils.gpu_ready.facts.model import DriverVolumeFacts, Facts
from ...catalog.settings import Settings
from ..changes import FactChange, apply_changes, drop, set_to
from ..model import Refusal, Step
from .model import CleanupParams

TOOLKIT_PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)


class CleanupDecision(NamedTuple):
    """The step that removes the remains of earlier modes; ``packages``: those that it removes.

    ``facts``: the host as it is after that step.
    """

    steps: list[Step]
    refusals: list[Refusal]
    facts: Facts
    packages: list[str] = []


def plan_cleanup(facts: Facts, settings: Settings, used: list[str]) -> CleanupDecision:
    """Return what to remove; ``used``: the files that an engine needs.

    What the manifest does not list belongs to others and stays.
    """
    mode = settings.nvidia_container_runtime_mode
    packages = [] if mode == "toolkit" else our_toolkit_packages(facts)
    unused = unused_files(facts, used, bool(packages), mode)
    if not unused and not packages:
        return CleanupDecision([], [], facts)
    refreshed = packages and facts.runtime.refresh and cdi.REFRESHED in existing_files(facts)
    remains = [cdi.REFRESHED] if refreshed and cdi.REFRESHED not in unused else []
    containers = facts.work.gpu_containers(engines.DOCKER) if packages else []
    of_containerd = facts.work.gpu_containers(engines.CONTAINERD) if packages else []
    refusals = [containerd_still_running(of_containerd)] if of_containerd else []
    removed = ["the NVIDIA container toolkit"] * bool(packages) + sorted(unused)
    why = "no engine needs %s any more, which gpu-ready added for another mode or engine" % ", ".join(removed)
    params = CleanupParams(packages, containers, sorted(unused), remains)
    step = Step("nvidia_container_runtime.cleanup", why, DOCKER_RESTART if containers else NONE, params)
    return CleanupDecision([step], refusals, apply_changes(facts, cleanup_changes(facts, params)), packages)


def existing_files(facts: Facts) -> set[str]:
    runtime = facts.runtime
    found = {spec.path for spec in runtime.specs}
    found |= {cdi.BOOT_NODES} if runtime.boot_nodes is not None else set()
    found |= {driver_volume.HELPER} if runtime.helper is not None else set()
    found |= {cdi.REFRESH_OLD} if runtime.refresh_old is not None else set()
    found |= set(facts.engines.nodes)
    return found | ({driver_volume.ROOT} if runtime.volume.exists else set())


def unused_files(facts: Facts, used: list[str], toolkit_removed: bool, mode: str) -> set[str]:
    manifest = facts.runtime.manifest
    ours = existing_files(facts) & set(manifest.files + manifest.directories)
    found = ours - set(used)
    if toolkit_removed:
        # nvidia-ctk writes and refreshes these.
        found |= ours & {cdi.GENERATED, cdi.REFRESHED, cdi.REFRESH_OLD}
    elif mode == "native":
        found |= ours & {cdi.GENERATED}  # native has a specification of its own
    if facts.runtime.refresh and not toolkit_removed:
        found.discard(cdi.REFRESHED)  # the toolkit's service would write it again
    return found


def our_toolkit_packages(facts: Facts) -> list[str]:
    ours, installed = facts.runtime.manifest.packages, facts.packages.installed
    if TOOLKIT_PACKAGES[0] not in ours:
        return []
    return [name for name in TOOLKIT_PACKAGES if name in ours and name in installed]


def cleanup_changes(facts: Facts, params: CleanupParams) -> Iterator[FactChange]:
    """Yield what the step changes: the planners of later steps read the facts with these changes."""
    removed = {*params.paths, *params.remains}
    texts = {"boot_nodes": cdi.BOOT_NODES, "refresh_old": cdi.REFRESH_OLD, "helper": driver_volume.HELPER}
    yield set_to("runtime.specs", [spec for spec in facts.runtime.specs if spec.path not in removed])
    yield from (set_to("runtime." + name, None) for name, path in texts.items() if path in removed)
    yield drop("engines.nodes", removed)
    yield drop("runtime.manifest.files", removed)
    if driver_volume.ROOT in removed:
        yield set_to("runtime.volume", DriverVolumeFacts())
        yield drop("runtime.manifest.directories", removed)
    if params.packages:
        yield set_to("runtime.toolkit", False)
        yield set_to("runtime.refresh", False)
        yield set_to("runtime.hook_known", None)
        yield set_to("runtime.programs", dict.fromkeys(facts.runtime.programs))


def containerd_still_running(containers: list[str]) -> Refusal:
    """Refuse to remove the runtime that also stops containers of containerd.

    No setting permits that: the containers would keep running, and nothing could stop them.
    """
    return Refusal(
        "host_in_use",
        "the GPU container%s %s of containerd use%s the NVIDIA container toolkit, which would be removed, and nothing "
        "could stop them without it"
        % ("" if len(containers) == 1 else "s", ", ".join(containers), "s" if len(containers) == 1 else ""),
        "stop them first ('kubectl drain' for those of Kubernetes), or keep nvidia_container_runtime_mode: toolkit",
    )
