"""How the driver on disk becomes the driver that runs: load, live swap, or reboot."""

from typing import Any, Dict, List, Optional, Tuple

from ...driver import gpu_services
from ..model import DRIVER_RELOAD, NONE, REBOOT, Decision, Notice, Step
from . import services
from .steps import fits

DISRUPTION = {"load": NONE, "reload": DRIVER_RELOAD, "reboot": REBOOT}


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the one step that makes the chosen driver run, or none where it runs already."""
    chosen = choice.get("driver") or {}
    if not chosen or chosen.get("source") == "none":
        return Decision()
    action, reason = needed(observed, chosen)
    if action is None:
        return Decision({"action": None})
    mode = wanted.get("gpu_ready_activation") or "auto"
    if mode == "none":
        return Decision({"action": "none"}, warnings=[left_to_operator(reason)])
    if mode == "reboot" and action == "reload":
        action, reason = "reboot", "%s, and gpu_ready_activation is reboot" % reason
    if mode == "auto" and action == "reload":
        held = holders(observed)
        if held:
            action, reason = "reboot", "%s, and the loaded one is held by PID %s" % (reason, ", ".join(held))
    params = {"action": action, "modules": chosen["modules"], "fallback": "reboot" if mode == "auto" else None}
    params["later"] = later(observed, wanted, choice)
    step = Step("nvidia_driver.activate", reason, DISRUPTION[action], dict(params, why=reason))
    return Decision({"action": action}, [step])


def needed(observed: Dict[str, Any], chosen: Dict[str, Any]) -> Tuple[Optional[str], str]:
    """Return the gentlest action that would do ("load", "reload", "reboot" or None) and why."""
    state = observed["driver"]
    loaded = state["loaded"]
    if loaded is None:
        own = observed["base"]["nouveau"]
        if own["bound"]:
            return "reboot", "%s drives the GPU at %s and cannot be taken off a running system" % (
                own.get("name") or "nouveau", ", ".join(own["bound"]),
            )  # fmt: skip
        return "load", "no NVIDIA module is loaded"
    if not chosen["satisfied"]:
        if same(loaded, chosen) and state["on_disk"] and same(state["on_disk"], chosen) and chosen["version"]:
            return None, ""
        return "reload", "the loaded module is %s and the driver changes" % loaded["version"]
    disk = state["on_disk"]
    if loaded["version"] != disk["version"]:
        return "reload", "the loaded module is %s, the installed one %s" % (loaded["version"], disk["version"])
    if loaded["flavour"] not in (None, disk["flavour"]):
        return "reload", "the loaded module is %s, the installed one %s" % (loaded["flavour"], disk["flavour"])
    stopped = state.get("stopped")
    if stopped:
        return "load", "an exchange that was cut off stopped %s" % ", ".join(stopped)
    return None, ""


def later(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> List[str]:
    """Return the services whose own steps come after the activation and start them, in the new driver's version.

    Until then there may be only the old fabric manager or IMEX, which do not start beside a driver of another version.
    """
    steps = services.decide(observed, wanted, choice).steps
    return [step.params["service"] + ".service" for step in steps if step.params.get("start", True)]


def same(module: Dict[str, Any], chosen: Dict[str, Any]) -> bool:
    """Return whether a module is of the chosen version and flavour."""
    return fits(module["version"], chosen) and module["flavour"] in (None, chosen["flavour"])


def holders(observed: Dict[str, Any]) -> List[str]:
    """Return the processes that hold the module and that no known service explains, each as "42 (python3)".

    The same program in a container is no service of systemd's, so nothing stops it: a DCGM exporter of Kubernetes.
    """
    return [
        "%d (%s)" % (client["pid"], client["name"])
        for client in observed["driver"]["clients"]
        if client.get("container") or not gpu_services.is_gpu_service(client["name"])
    ]


def left_to_operator(reason: str) -> Notice:
    """Say that the driver on disk does not run because the operator wants to do that himself."""
    return Notice(
        "not_activated",
        "%s, and gpu_ready_activation is none" % reason,
        "reboot the host, or set gpu_ready_activation to auto, then run this again to verify it",
    )
