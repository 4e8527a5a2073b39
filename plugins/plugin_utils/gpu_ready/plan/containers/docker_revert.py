"""What is reverted in docker where it is no longer among the engines that get the GPUs: our keys of daemon.json."""

from .....module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from .....module_utils.gpu_ready.facts.model import Facts
from .....module_utils.gpu_ready.verify.expectation import RuntimeChoice
from ...catalog.settings import Settings
from ..model import Decision
from . import daemon_json_keys, docker, docker_options
from .daemon_json_keys import ActivationReason
from .runtime_cleanup import CleanupDecision


def plan_docker_revert(facts: Facts, settings: Settings, cleanup: CleanupDecision) -> Decision[RuntimeChoice]:
    engine = facts.docker
    recorded = facts.runtime.manifest.keys
    try:
        before = docker.read_text(engine.daemon_json)
        options = docker_options.requested_options(facts, settings)
        reverted = daemon_json_keys.keys_to_revert(before, recorded, {}, options, False)
        change = daemon_json.merge(before, reverted.set_, reverted.unset)
    except daemon_json.DaemonJsonError as error:
        if set(recorded) & set(daemon_json_keys.POINTERS):
            return Decision(None, [], [docker.invalid_file(facts, error)])
        return cleanup_alone(cleanup)
    if cleanup.packages and daemon_json_keys.has_nvidia_default(change.after):
        return Decision(None, [], [daemon_json_keys.missing_runtime(engine.daemon_json.path)])
    reasons: list[ActivationReason] = []
    if not cleanup.facts.runtime.toolkit:
        reasons = daemon_json_keys.remembered_runtimes(engine, change.after, True)
    need = "none"  # an engine that does not run reads the file when it starts
    if engine.active:
        need = daemon_json.RESTART if reverted.unset or reasons else change.activation
    if not change.changed and need == "none":
        return cleanup_alone(cleanup)
    why = "docker is no longer among nvidia_container_runtime_engines: "
    lost = ["daemon.json loses %s" % ", ".join(change.keys)] if change.changed else []
    why += "; ".join(lost + [reason.text for reason in reasons])
    identity = "nvidia_container_runtime.configure"
    step = docker.configure(identity, why, facts, change, reverted.set_, reverted.unset, need)
    refusals = cleanup.refusals + docker.flag_conflicts(facts, daemon_json.parse(change.after).value)
    return Decision(None, cleanup.steps + [step], refusals)


def cleanup_alone(cleanup: CleanupDecision) -> Decision[RuntimeChoice]:
    return Decision(None, cleanup.steps, cleanup.refusals)
