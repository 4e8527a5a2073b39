"""What the docker_engine_* variables want in daemon.json, as one mapping, and where they contradict each other."""

import copy
from typing import Any, Dict, List, Optional

from ...containers import docker
from ...containers.daemon_json import merge as daemon_json
from ..model import Refusal

CGROUP = "native.cgroupdriver="


def options(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Dict[str, Any]:
    """Return the keys that daemon.json must have: the free ones, and those of the log and cgroup variables."""
    found: Dict[str, Any] = copy.deepcopy(wanted.get("docker_engine_daemon_options") or {})
    if wanted.get("docker_engine_log_driver"):
        found["log-driver"] = wanted["docker_engine_log_driver"]
    free = found.get("log-opts")
    if wanted.get("docker_engine_log_options"):
        found["log-opts"] = dict(free if isinstance(free, dict) else {}, **log_options(wanted))
    driver = wanted.get("docker_engine_cgroup_driver")
    if driver:
        there = found["exec-opts"] if "exec-opts" in found else value(observed).get("exec-opts")
        found["exec-opts"] = exec_options(there if isinstance(there, list) else [], str(driver))
    return found


def log_options(wanted: Dict[str, Any]) -> Dict[str, str]:
    """Return the options of the log driver as docker takes them: every value is text."""
    given = wanted.get("docker_engine_log_options") or {}
    return {str(key): str(one).lower() if isinstance(one, bool) else str(one) for key, one in given.items()}


def exec_options(there: List[Any], driver: str) -> List[Any]:
    """Return exec-opts with this cgroup driver; the others stay where they are."""
    wanted = CGROUP + driver
    said = [one for one in there if str(one).startswith(CGROUP)]
    if said == [wanted]:
        return list(there)
    return [one for one in there if one not in said] + [wanted]


def value(observed: Dict[str, Any]) -> Dict[str, Any]:
    """Return what daemon.json says; nothing where it is absent or not readable (which is refused elsewhere)."""
    found = observed["docker"]["daemon_json"]
    return {} if found["error"] else daemon_json.parse(found["text"]).value


# --- what stands in the way --------------------------------------------------------------------------------------


def refusals(wanted: Dict[str, Any], after: Dict[str, Any]) -> List[Refusal]:
    """Return where two variables want different things, and log options that docker would not start with."""
    return contradictions(wanted) + unfit(wanted, after)


def contradictions(wanted: Dict[str, Any]) -> List[Refusal]:
    """Return a refusal for each key that docker_engine_daemon_options wants otherwise than a variable of its own."""
    free = wanted.get("docker_engine_daemon_options") or {}
    found = []
    driver = wanted.get("docker_engine_log_driver")
    if driver and free.get("log-driver", driver) != driver:
        found.append(contradiction("log-driver", "docker_engine_log_driver", driver))
    logs = free.get("log-opts", {})
    for key, text in log_options(wanted).items():
        if not isinstance(logs, dict) or logs.get(key, text) != text:
            found.append(contradiction("log-opts.%s" % key, "docker_engine_log_options", text))
    driver = wanted.get("docker_engine_cgroup_driver")
    listed = free.get("exec-opts", [])
    said = [one for one in listed if str(one).startswith(CGROUP)] if isinstance(listed, list) else [listed]
    if driver and [one for one in said if one != CGROUP + driver]:
        found.append(contradiction("exec-opts", "docker_engine_cgroup_driver", driver))
    return found


def contradiction(key: str, variable: str, text: str) -> Refusal:
    """Return the refusal where two variables want different values of one key."""
    return Refusal(
        "daemon_options_contradict",
        "docker_engine_daemon_options sets %s, and %s wants %s of it" % (key, variable, text),
        "say it in one of the two places",
    )


def unfit(wanted: Dict[str, Any], after: Dict[str, Any]) -> List[Refusal]:
    """Return the refusal of options that the log driver does not know: docker would not start with them."""
    driver: Optional[str] = after.get("log-driver") or docker.LOG_DRIVER
    known, logs = docker.LOG_OPTIONS.get(str(driver)), after.get("log-opts")
    free = wanted.get("docker_engine_daemon_options") or {}
    ours = wanted.get("docker_engine_log_driver") or wanted.get("docker_engine_log_options")
    if known is None or not isinstance(logs, dict) or not (ours or {"log-driver", "log-opts"} & set(free)):
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
