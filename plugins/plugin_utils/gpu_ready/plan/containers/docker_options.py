"""The keys of daemon.json that the docker_engine_* variables ask for, and contradictions between these variables."""

import copy

from .....module_utils.gpu_ready.containers import docker
from .....module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from .....module_utils.gpu_ready.facts.model import DaemonJsonFacts, Facts
from ...catalog.settings import Settings
from ..model import Refusal
from .model import DaemonOptions

CGROUP = "native.cgroupdriver="
KEYS = {"docker_engine_log_driver": "log-driver"}
"""Variables that set one key each, if they are not empty. The other variables are merged into what a key has."""


def requested_options(facts: Facts, settings: Settings) -> DaemonOptions:
    found: DaemonOptions = copy.deepcopy(settings.docker_engine_daemon_options)
    for variable, key in KEYS.items():
        if getattr(settings, variable):
            found[key] = getattr(settings, variable)
    free = found.get("log-opts")
    if settings.docker_engine_log_options:
        found["log-opts"] = dict(free if isinstance(free, dict) else {}, **log_options(settings))
    driver = settings.docker_engine_cgroup_driver
    if driver:
        base = found if "exec-opts" in found else read_options(facts.docker.daemon_json)
        existing = base.get("exec-opts")
        found["exec-opts"] = exec_options(existing if isinstance(existing, list) else [], driver)
    return found


def log_options(settings: Settings) -> dict[str, str]:
    """Return the options of the log driver as docker takes them: every value is text."""
    given = settings.docker_engine_log_options
    return {str(key): str(one).lower() if isinstance(one, bool) else str(one) for key, one in given.items()}


def exec_options(existing: list[object], driver: str) -> list[object]:
    option = CGROUP + driver
    drivers = [one for one in existing if str(one).startswith(CGROUP)]
    if drivers == [option]:
        return list(existing)
    return [one for one in existing if one not in drivers] + [option]


def read_options(found: DaemonJsonFacts) -> DaemonOptions:
    return {} if found.error else daemon_json.parse(found.text).value


# --- refusals ----------------------------------------------------------------------------------------------------


def refusals(settings: Settings, after: DaemonOptions) -> list[Refusal]:
    return contradictions(settings) + unfit_log_options(settings, after)


def contradictions(settings: Settings) -> list[Refusal]:
    free = settings.docker_engine_daemon_options
    found = []
    for variable, key in KEYS.items():
        value = getattr(settings, variable)
        if value and free.get(key, value) != value:
            found.append(contradiction(key, variable, value))
    logs = free.get("log-opts", {})
    for key, text in log_options(settings).items():
        if not isinstance(logs, dict) or logs.get(key, text) != text:
            found.append(contradiction("log-opts.%s" % key, "docker_engine_log_options", text))
    driver = settings.docker_engine_cgroup_driver
    listed = free.get("exec-opts", [])
    drivers = [one for one in listed if str(one).startswith(CGROUP)] if isinstance(listed, list) else [listed]
    if driver and [one for one in drivers if one != CGROUP + driver]:
        found.append(contradiction("exec-opts", "docker_engine_cgroup_driver", driver))
    return found


def contradiction(key: str, variable: str, text: str) -> Refusal:
    return Refusal(
        "daemon_options_contradict",
        "docker_engine_daemon_options sets %s, and %s sets it to %s" % (key, variable, text),
        "set it in one of the two variables",
    )


def unfit_log_options(settings: Settings, after: DaemonOptions) -> list[Refusal]:
    driver = after.get("log-driver") or docker.LOG_DRIVER
    known, logs = docker.LOG_OPTIONS.get(str(driver)), after.get("log-opts")
    ours = settings.docker_engine_log_driver or settings.docker_engine_log_options
    configured = ours or {"log-driver", "log-opts"} & set(settings.docker_engine_daemon_options)
    if known is None or not isinstance(logs, dict) or not configured:
        return []
    wrong = sorted(key for key in logs if key not in known and key not in docker.ALL_LOG_OPTIONS)
    if not wrong:
        return []
    return [
        Refusal(
            "log_options_unfit",
            "daemon.json would have log-opts %s, which the log driver %s does not know: docker does not start with them"
            % (", ".join(wrong), driver),
            "take %s out of daemon.json or docker_engine_log_options, or choose a log driver that knows %s"
            % (", ".join(wrong), "it" if len(wrong) == 1 else "them"),
        )
    ]
