"""How docker's containers get the GPUs: NVIDIA's toolkit, docker's own CDI, or files that we make from the driver.

Mode ``native`` is a CDI specification of our own, and on engines without CDI a driver volume with a program that prints
docker's arguments.
"""

from .....module_utils.gpu_ready.base.disruptions import DOCKER_RESTART
from .....module_utils.gpu_ready.containers import cdi, driver_volume
from .....module_utils.gpu_ready.containers import docker as engines
from .....module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from .....module_utils.gpu_ready.facts import affected
from .....module_utils.gpu_ready.facts.model import Facts
from .....module_utils.gpu_ready.packaging.version_match import version_matches
from .....module_utils.gpu_ready.verify.expectation import RuntimeChoice
from ...catalog import model as catalog
from ...catalog.settings import Settings
from .. import repository, security
from ..model import (
    Choices,
    Decision,
    Notice,
    PackageTarget,
    Refusal,
    RepositoryParams,
    Step,
    VariableChange,
    notify,
    refuse,
)
from . import (
    cdi_spec,
    cdi_versions,
    daemon_json_keys,
    docker,
    docker_options,
    docker_packages,
    docker_revert,
    migration,
    runtime_cleanup,
)
from .cdi_spec import CDI, NATIVE
from .daemon_json_keys import TOOLKIT, VOLUME, ActivationReason
from .model import DriverVolumeParams, RuntimeInstallParams
from .runtime_cleanup import TOOLKIT_PACKAGES, CleanupDecision

REPOSITORY = "container-toolkit"
ARGUMENTS = {
    TOOLKIT: ["--gpus", "all"],
    CDI: ["--device", "nvidia.com/gpu=all"],
    VOLUME: [],
}
"""What makes ``docker run`` give a container all GPUs; with a volume it is what the helper prints."""
WITHOUT_HOOK = ["--runtime=nvidia", "--env", "NVIDIA_VISIBLE_DEVICES=all"]
"""The same where dockerd does not know the toolkit's hook yet, which it looks for when it starts (moby's
daemon/nvidia_linux.go). ``runtimes`` is a key that it reloads."""


def plan_runtime(facts: Facts, settings: Settings, choices: Choices) -> Decision[RuntimeChoice]:
    if docker.DOCKER not in docker.configured_engines(settings):
        return docker_revert.plan_docker_revert(facts, settings, cleanup(facts, settings))
    mode = settings.nvidia_container_runtime_mode
    default = settings.nvidia_container_runtime_default
    access = access_mode(mode, docker_packages.engine_version(facts, settings))
    helper = driver_volume.HELPER if access == VOLUME else None
    waits = access == TOOLKIT and restart_waits(facts, settings)
    choice = RuntimeChoice(mode, default, WITHOUT_HOOK if waits else ARGUMENTS[access], helper)
    migrated = migration.plan_migration(facts, settings)
    refusals = impossible(facts, settings, mode, default) + migrated.refusals
    if refusals:
        return Decision(choice, [], refusals)
    cleaned = cleanup(facts, settings)
    facts = cleaned.facts
    steps: list[Step] = []
    reasons: list[ActivationReason] = []
    if access == TOOLKIT:
        steps, reasons, refusals = toolkit_steps(facts, settings)
    elif access == VOLUME:
        steps, refusals = volume_steps(facts, choices)
    else:
        spec = cdi_spec.plan_cdi_spec(facts, settings, choices, mode, cdi_spec.native_files(facts, mode))
        refusals = spec.refusals
        if spec.params is not None:
            steps = [Step("nvidia_container_runtime.cdi_spec", spec.why, params=spec.params)]
    step, more = configure(facts, settings, access, reasons, bool(migrated.steps))
    refusals = refusals + cleaned.refusals + more
    steps = migrated.steps + cleaned.steps + steps + ([step] if step else [])
    warnings = migrated.warnings + ([restart_later(settings)] if waits else [])
    warnings += outdated_specs(facts, settings, choices) if access == TOOLKIT else []
    return Decision(choice, steps, refusals, [] if refusals else warnings)


def restart_waits(facts: Facts, settings: Settings) -> bool:
    """Return whether the restart by which docker finds the toolkit's hook waits, because it would stop containers.

    The runtime that daemon.json names is used after a reload; the hook is what ``--gpus`` needs.
    """
    running = affected.containers_of_engines(facts.work, docker.DOCKER)
    survive = facts.docker.info is not None and facts.docker.info.live_restore
    permitted = running.is_empty or survive or DOCKER_RESTART in settings.gpu_ready_disrupt
    return bool(unknown_hook(facts)) and not permitted


GENERATE = "nvidia-ctk cdi generate --output=%s"


def restart_later(settings: Settings) -> Notice:
    permitted: list[object] = [[*settings.gpu_ready_disrupt, DOCKER_RESTART]]
    return notify(
        "docker_restart_later",
        "docker is not restarted, because that would stop its containers: `docker run --gpus` works after its next "
        "restart, `docker run --runtime=nvidia -e NVIDIA_VISIBLE_DEVICES=all` works now",
        VariableChange({"gpu_ready_disrupt": permitted}, effect="to permit it"),
        "restart docker when that suits",
    )


def outdated_specs(facts: Facts, settings: Settings, choices: Choices) -> list[Notice]:
    """Warn of CDI specifications that ``--gpus`` prefers to the hook although they do not fit the plan's driver."""
    version = docker_packages.engine_version(facts, settings)
    if not engines.capabilities(version).gpus_by_cdi:
        return []
    changing = cdi_spec.driver_changes(choices)
    kept = cdi.REFRESHED if facts.runtime.refresh else None
    return [
        notify(
            "cdi_spec_outdated",
            "%s is out of date%s, and docker %s uses it for `docker run --gpus`"
            % (spec.path, ": " + spec.stale if spec.stale else " with the driver of this plan", version or ""),
            "when the driver is loaded, run '%s'" % (GENERATE % spec.path),
            "remove the file",
            run=GENERATE % spec.path,
        )
        for spec in facts.runtime.specs
        if spec.path != kept and (changing or spec.stale)
    ]


def access_mode(mode: str, version: str | None) -> str:
    """Return how an engine of this version accesses the GPUs in a mode: TOOLKIT, CDI or VOLUME."""
    if mode == NATIVE:
        return VOLUME if engines.capabilities(version).cdi == "none" else CDI
    return mode


def cleanup(facts: Facts, settings: Settings) -> CleanupDecision:
    """Return what no engine of this host uses any more, and the facts of the host without it."""
    mode = settings.nvidia_container_runtime_mode
    access = access_mode(mode, docker_packages.engine_version(facts, settings))
    used = files_of_docker(mode, access) if docker.DOCKER in docker.configured_engines(settings) else []
    used += [cdi.REFRESH_OLD] if cdi_versions.too_old(facts, settings) else []
    return runtime_cleanup.plan_cleanup(facts, settings, used + files_of_others(settings, mode, access))


def files_of_docker(mode: str, access: str) -> list[str]:
    if access == TOOLKIT:
        return []
    files = [driver_volume.ROOT] if access == VOLUME else [cdi.NATIVE, cdi.GENERATED, cdi.REFRESHED]
    return files + [cdi.BOOT_NODES] + ([driver_volume.HELPER] if mode == NATIVE else [])


def files_of_others(settings: Settings, mode: str, access: str) -> list[str]:
    names = docker.configured_engines(settings)
    if "podman" not in names and ("containerd" not in names or mode == TOOLKIT):
        return []
    specifications = [cdi.NATIVE, cdi.GENERATED, cdi.REFRESHED]
    # docker's drop-in creates the device nodes where docker has the same specification, nvidia-ctk in mode toolkit.
    by_others = mode == TOOLKIT or (docker.DOCKER in names and access == CDI)
    return specifications + ([] if by_others else list(cdi.NODES))


def impossible(facts: Facts, settings: Settings, mode: str, default: bool) -> list[Refusal]:
    found = cdi_spec.mig_refusals(facts, mode)
    version = docker_packages.engine_version(facts, settings)
    if mode == CDI and version and engines.capabilities(version).cdi == "none":
        found.append(
            refuse(
                "engine_without_cdi",
                "docker %s has no CDI, which nvidia_container_runtime_mode: %s needs (25.0 is the first that has it)"
                % (version, mode),
                VariableChange({"nvidia_container_runtime_mode": ["toolkit", "native"]}),
                "install docker 25 or newer",
            )
        )
    if mode != TOOLKIT and default:
        found.append(
            refuse(
                "default_runtime_impossible",
                "nvidia_container_runtime_default is true, but mode %s has no runtime called nvidia" % mode,
                VariableChange({"nvidia_container_runtime_mode": ["toolkit"]}),
                "nvidia_container_runtime_default to false",
            )
        )
    return found


# --- the toolkit -------------------------------------------------------------------------------------------------


def toolkit_steps(facts: Facts, settings: Settings) -> tuple[list[Step], list[ActivationReason], list[Refusal]]:
    """Return the steps that install the toolkit, the reasons they give for a restart of docker, and refusals.

    A version is requested of all packages of a release: apt takes the newest of those that are not named. One with
    published vulnerabilities is replaced by a fixed one that is offered, which stops nothing.
    """
    requested, found = settings.nvidia_container_toolkit_version, facts.packages.installed.get(TOOLKIT_PACKAGES[0])
    why = "nvidia_container_toolkit_version is %s" % requested
    if security.may_fix_toolkit(facts, settings):
        requested = security.fixed_toolkit(facts) or ""
        why = "which has published vulnerabilities; %s is offered" % requested
    version = requested + "*" if requested else None
    hook = unknown_hook(facts)
    reasons = [ActivationReason(hook, daemon_json.RESTART, True)] if hook else []
    if facts.runtime.toolkit and (version is None or version_matches(version, found or "")):
        return [], reasons, []
    steps = []
    needed = [repository.parameters(toolkit_repository(facts), settings)]
    missing = repository.missing_repositories(facts, needed)
    if missing:
        steps.append(
            Step(
                "nvidia_container_runtime.repository",
                "the NVIDIA container toolkit comes from NVIDIA's repository",
                params=RepositoryParams(missing),
            )
        )
    steps.append(
        Step(
            "nvidia_container_runtime.install",
            "the NVIDIA container toolkit is %s, %s" % (found or "no package", why)
            if facts.runtime.toolkit
            else "the NVIDIA container toolkit is not installed",
            params=RuntimeInstallParams(
                [PackageTarget(name, version) for name in (TOOLKIT_PACKAGES if version else TOOLKIT_PACKAGES[:1])]
            ),
        )
    )
    return steps, reasons, repository.source_refusals(facts, missing)


def unknown_hook(facts: Facts) -> str:
    """Return why docker has to be restarted for the toolkit's hook, "" where it knows one.

    dockerd looks for the hook when it starts, and for its path again with each container (moby, daemon/nvidia_linux.go:
    init and setNvidiaGPUs). So it knows a hook that is newer than itself if another one was in its place before, as
    after each upgrade of the toolkit: that is certain where this dockerd has given a container its GPUs by ``--gpus``.
    """
    if not facts.runtime.toolkit:
        return "docker looks for nvidia-container-runtime-hook only when it starts"
    worked = facts.verified.gpus_option_with if facts.verified else None
    if facts.runtime.hook_known is False and (worked is None or worked != facts.docker.started):
        return "docker started before nvidia-container-runtime-hook was installed, and looks for it only then"
    return ""


def toolkit_repository(facts: Facts) -> str:
    key = facts.base.distro
    return str((catalog.distro(key).get("container_toolkit") if key else None) or REPOSITORY)


# --- the driver volume -------------------------------------------------------------------------------------------


def volume_steps(facts: Facts, choices: Choices) -> tuple[list[Step], list[Refusal]]:
    volume = facts.runtime.volume
    files = cdi_spec.native_files(facts, NATIVE)
    if volume.exists and driver_volume.ROOT not in facts.runtime.manifest.directories:
        return [], [foreign_volume()]
    why = "containers of an engine without CDI need the driver's files under a stable path"
    if volume.stale:
        why = "%s is out of date: %s" % (driver_volume.ROOT, volume.stale)
    elif volume.exists and cdi_spec.driver_changes(choices):
        why = "%s contains the files of the driver that is replaced" % driver_volume.ROOT
    elif volume.exists and cdi_spec.missing_files(facts, files):
        why = cdi_spec.missing_files_reason(facts, files, driver_volume.HELPER)
    elif volume.exists:
        return [], []
    return [Step("nvidia_container_runtime.volume", why, params=DriverVolumeParams(files))], []


def foreign_volume() -> Refusal:
    return refuse(
        "driver_volume_conflict",
        "%s exists, but gpu-ready did not create it" % driver_volume.ROOT,
        VariableChange({"nvidia_container_runtime_mode": ["toolkit"]}),
        "move it away",
    )


# --- daemon.json -------------------------------------------------------------------------------------------------


def configure(
    facts: Facts, settings: Settings, access: str, reasons: list[ActivationReason], migrating: bool
) -> tuple[Step | None, list[Refusal]]:
    """Return the step for daemon.json. It runs after docker_engine's step, whose options count as already written."""
    engine = facts.docker
    default = settings.nvidia_container_runtime_default
    options = docker_options.requested_options(facts, settings)
    version = docker_packages.engine_version(facts, settings)
    try:
        text = docker.read_text(engine.daemon_json)
        before = daemon_json.merge(text, options).after if options else text
        needed = daemon_json_keys.needed_keys(before, version, access, default)
        changed_keys = daemon_json.merge(before, needed).keys
        recorded = facts.runtime.manifest.keys
        reverted = daemon_json_keys.keys_to_revert(before, recorded, needed, options, migrating and access != TOOLKIT)
        written = daemon_json_keys.merged(reverted.set_, needed)
        change = daemon_json.merge(before, written, reverted.unset)
    except daemon_json.DaemonJsonError as error:
        if options or engine.restart_pending or not daemon_json_keys.needed_keys(None, version, access, default):
            return None, []  # the planner of docker_engine refuses it, or no key is needed
        return None, [docker.invalid_file(facts, error)]
    contradicted = [key for key in changed_keys if daemon_json_keys.is_set(options, key.split("."))]
    if contradicted:
        return None, [contradiction(contradicted[0])]
    if access != TOOLKIT and not facts.runtime.toolkit and daemon_json_keys.has_nvidia_default(change.after):
        return None, [daemon_json_keys.missing_runtime(engine.daemon_json.path)]
    if [key for key in reverted.unset if key.partition(".")[0] in ("runtimes", "default-runtime")]:
        # On SIGHUP dockerd keeps runtimes and the default runtime that the file no longer names.
        reasons = reasons + [ActivationReason("docker forgets a runtime only when it starts", daemon_json.RESTART)]
    elif not change.changed:
        reasons = reasons + daemon_json_keys.not_applied(engine, access, default, before)
    if restart_waits(facts, settings):
        reasons = [reason for reason in reasons if not reason.can_wait]
    needs = [change.activation] + [reason.need for reason in reasons]
    need = max(needs, key=("none", daemon_json.RELOAD, daemon_json.RESTART).index)
    if need == "none":
        return None, []
    lost = [key for key in change.keys if key in reverted.unset]
    gained = [key for key in change.keys if key not in lost]
    texts = ["daemon.json gets %s" % ", ".join(gained)] if gained else []
    texts += ["daemon.json loses %s, which gpu-ready added" % ", ".join(lost)] if lost else []
    why = "; ".join(texts + [reason.text for reason in reasons])
    refusals = docker.flag_conflicts(facts, daemon_json.parse(change.after).value)
    identity = "nvidia_container_runtime.configure"
    step = docker.configure(identity, why, facts, change, written, reverted.unset, need)
    return step, refusals


def contradiction(key: str) -> Refusal:
    return Refusal(
        "daemon_options_contradict",
        "docker_engine_daemon_options sets %s, and nvidia_container_runtime_* needs another value of it" % key,
        "take %s out of docker_engine_daemon_options" % key,
    )
