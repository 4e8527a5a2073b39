"""The removal of NVIDIA's abandoned products, nvidia-docker 1.0 and nvidia-docker2."""

from .....module_utils.gpu_ready.base.disruptions import DOCKER_RESTART, NONE
from .....module_utils.gpu_ready.containers import names as engines
from .....module_utils.gpu_ready.facts.model import Facts, LegacyFacts
from ...catalog.settings import Settings
from ..model import Decision, Notice, Refusal, Step, VariableChange, notify
from .model import MigrationParams
from .runtime_cleanup import TOOLKIT_PACKAGES

DOCKER2 = "nvidia-docker2"
DOCKER1 = "nvidia-docker"
LEGACY = {DOCKER1: "nvidia-docker 1.0", DOCKER2: "nvidia-docker2"}
SERVICE = "nvidia-docker"
LEFT = ("/var/lib/nvidia-docker", "/etc/docker/plugins/nvidia-docker.spec")
"""What the service of nvidia-docker 1.0 created and its package does not remove."""


def plan_migration(facts: Facts, settings: Settings) -> Decision[None]:
    installed = facts.packages.installed
    packages = [name for name in (DOCKER1, DOCKER2) if name in installed]
    legacy = facts.runtime.legacy
    if not packages and not legacy.plugin:
        return Decision()
    names = " and ".join("%s (%s)" % (LEGACY[name], installed[name]) for name in packages)
    if legacy.plugin and DOCKER1 not in packages:
        return Decision(None, [], [unpackaged(legacy.plugin)])
    if not settings.nvidia_container_runtime_migrate:
        # nvidia-docker2 is a configuration file and a script beside the current toolkit, which it depends on.
        return Decision(warnings=[kept(names)]) if packages == [DOCKER2] else Decision(None, [], [abandoned(names)])
    refusals = [volume_used(legacy)] if legacy.containers else []
    containers = facts.work.gpu_containers(engines.DOCKER)
    step = Step(
        "nvidia_container_runtime.migrate",
        "%s is replaced: NVIDIA has abandoned it" % names,
        DOCKER_RESTART if containers else NONE,
        MigrationParams(
            packages=packages,
            containers=containers,
            volumes=legacy.volumes,
            services=[SERVICE] if DOCKER1 in packages else [],
            left=list(LEFT) if DOCKER1 in packages else [],
            # apt calls it no longer needed, and would remove it at the next occasion.
            keep=[name for name in TOOLKIT_PACKAGES[:1] if name in installed and facts.apt.sources],
            daemon_json=facts.docker.daemon_json.path,
        ),
    )
    return Decision(None, [step], refusals, [conffile(facts.docker.daemon_json.path)] if DOCKER2 in packages else [])


def abandoned(names: str) -> Refusal:
    return Refusal(
        "legacy_nvidia_docker",
        "%s is installed, which NVIDIA has abandoned and which owns parts of docker's configuration" % names,
        "allow its replacement with nvidia_container_runtime_migrate: true, or remove it yourself",
    )


def kept(names: str) -> Notice:
    return notify(
        "legacy_nvidia_docker",
        "%s is installed, which NVIDIA has abandoned. It stays" % names,
        VariableChange({"nvidia_container_runtime_migrate": [True]}, effect="to have it replaced"),
    )


def unpackaged(plugin: str) -> Refusal:
    return Refusal(
        "legacy_nvidia_docker",
        "%s of nvidia-docker 1.0 exists, but belongs to no package" % plugin,
        "remove its volumes ('docker volume ls --filter driver=nvidia-docker'), its service, and the programs "
        "nvidia-docker and nvidia-docker-plugin yourself",
    )


def volume_used(legacy: LegacyFacts) -> Refusal:
    """Refuse to remove volumes that containers use: they could never be started again."""
    containers = legacy.containers
    return Refusal(
        "legacy_volume_in_use",
        "the volume%s %s of nvidia-docker 1.0 %s named by the container%s %s, which cannot start without"
        % (
            "" if len(legacy.volumes) == 1 else "s",
            ", ".join(legacy.volumes),
            "is" if len(legacy.volumes) == 1 else "are",
            "" if len(containers) == 1 else "s",
            ", ".join(containers),
        ),
        "save what you need of them and remove them ('docker rm %s'), then create them again after the migration"
        % " ".join(containers),
    )


def conffile(path: str) -> Notice:
    return Notice(
        "legacy_conffile",
        "%s stays, but dpkg counts it as configuration of nvidia-docker2: purging that package later deletes it" % path,
        "do not purge nvidia-docker2; where you must, keep a copy of the file and restore it",
    )
