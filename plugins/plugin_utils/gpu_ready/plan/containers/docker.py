"""Which docker engine a host gets, and which options its daemon.json gets."""

from .....module_utils.gpu_ready.base.disruptions import DOCKER_RELOAD, DOCKER_RESTART, NONE
from .....module_utils.gpu_ready.containers import docker
from .....module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from .....module_utils.gpu_ready.containers.names import DOCKER as DOCKER
from .....module_utils.gpu_ready.facts.model import DaemonJsonFacts, Facts
from ...catalog.settings import Settings
from ..model import Choices, Decision, FileDiff, Refusal, Step
from . import docker_options, docker_packages
from .model import DaemonJsonEdit, DaemonJsonParams, DaemonOptions

DISRUPTION = {"none": NONE, daemon_json.RELOAD: DOCKER_RELOAD, daemon_json.RESTART: DOCKER_RESTART}


def plan_docker(facts: Facts, settings: Settings, choices: Choices) -> Decision[None]:
    if DOCKER not in configured_engines(settings):
        return Decision()
    packages = docker_packages.plan_docker_packages(facts, settings)
    steps, refusals, warnings = list(packages.steps), list(packages.refusals), list(packages.warnings)
    options = decide_options(facts, settings)
    steps += options.steps
    refusals += options.refusals
    return Decision(None, [] if refusals else steps, refusals, [] if refusals else warnings)


def configured_engines(settings: Settings) -> list[str]:
    """Return the engines that get the GPUs; an empty list means docker."""
    return settings.nvidia_container_runtime_engines or [DOCKER]


def decide_options(facts: Facts, settings: Settings) -> Decision[None]:
    pending = facts.docker.restart_pending
    options = docker_options.requested_options(facts, settings)
    if not options and not pending:
        return Decision()
    try:
        change = daemon_json.merge(read_text(facts.docker.daemon_json), options)
    except daemon_json.DaemonJsonError as error:
        return Decision(None, [], [invalid_file(facts, error)])
    refusals = docker_options.refusals(settings, daemon_json.parse(change.after).value)
    need = daemon_json.RESTART if pending else change.activation
    if need == "none":
        # dockerd may have started before a conflicting flag was added: then its next start fails.
        return Decision(None, [], refusals + flag_conflicts(facts, options))
    why = "daemon.json gets %s" % ", ".join(change.keys)
    if not change.keys:
        why = "an interrupted run changed daemon.json and did not restart docker"
    refusals = refusals + flag_conflicts(facts, daemon_json.parse(change.after).value)
    step = configure("docker_engine.configure", why, facts, change, options, [], need)
    return Decision(None, [step], refusals)


def configure(
    identity: str,
    why: str,
    facts: Facts,
    change: daemon_json.DaemonJsonChange,
    options: DaemonOptions,
    unset: list[str],
    need: str,
) -> Step:
    """Return a step that writes daemon.json; ``need`` is what the engine needs to apply it: none, reload, restart."""
    path = facts.docker.daemon_json.path
    params = DaemonJsonParams(DaemonJsonEdit(path, options, unset), need)
    diff = [FileDiff(path, change.before, change.after)] if change.changed else []
    return Step(identity, why, DISRUPTION[need], params, diff)


def read_text(found: DaemonJsonFacts) -> str | None:
    """Return the text of daemon.json (None: no file); raises DaemonJsonError for one that is not strict JSON."""
    if found.error:
        raise daemon_json.DaemonJsonError(found.error.problem, found.error.line, found.error.column)
    return found.text


# --- refusals ---------------------------------------------------------------------------------------


def flag_conflicts(facts: Facts, options: DaemonOptions) -> list[Refusal]:
    return [
        Refusal(
            "daemon_json_flag_conflict",
            "%s is set in %s and by the flag %s in %s: docker does not start with both"
            % (clash.key, facts.docker.daemon_json.path, clash.flag, clash.file),
            "take %s out of %s (then 'systemctl daemon-reload'), or do not ask for %s"
            % (clash.flag, clash.file, clash.key),
        )
        for clash in docker.conflicts(facts.docker.flags, options)
    ]


def invalid_file(facts: Facts, error: daemon_json.DaemonJsonError) -> Refusal:
    path = facts.docker.daemon_json.path
    return Refusal(
        "daemon_json_invalid",
        "%s: %s" % (path, error),
        "correct the file (test it with 'python3 -m json.tool %s'); gpu-ready does not edit an invalid file" % path,
    )
