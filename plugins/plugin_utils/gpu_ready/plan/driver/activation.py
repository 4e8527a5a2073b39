"""How the driver on disk becomes the driver that runs: load, live reload, or reboot."""

from collections.abc import Sequence

from .....module_utils.gpu_ready.base.disruptions import DRIVER_RELOAD, NONE, REBOOT
from .....module_utils.gpu_ready.facts.model import Facts, ModuleFacts
from ...catalog.settings import Settings
from ..model import ActivationChoice, Choices, Decision, DriverChoice, Notice, Step, VariableChange, notify
from . import parameters, services
from .model import ActivateParams, ServiceParams
from .steps import matches_choice

DAEMON_SETS = "daemon_sets"
"""In ``drains``: Kubernetes has evicted the pods of this host, so those that are left are of DaemonSets, or static.

The kubelet starts their containers again: the device plugin, a DCGM exporter."""
DISRUPTION = {"load": NONE, "reload": DRIVER_RELOAD, "reboot": REBOOT}


def plan_activation(
    facts: Facts, settings: Settings, choices: Choices, drains: Sequence[str] = ()
) -> Decision[ActivationChoice]:
    """Return the one step that makes the chosen driver run, or none where it runs already.

    ``drains``: how the host is drained; with DAEMON_SETS it is, and the pods that are left may be restarted.
    """
    driver = choices.driver
    if driver is None or driver.source == "none":
        return Decision()
    action, reason = needed_action(facts, driver)
    outdated = parameters.outdated(facts, choices.parameters) if action is None else []
    if outdated:
        action, reason = "reload", "of the loaded module, %s" % "; ".join(outdated)
    if action is None:
        return Decision(ActivationChoice(None))
    mode = settings.gpu_ready_activation
    if mode == "none":
        return Decision(ActivationChoice("none"), warnings=[left_to_operator(reason)])
    if mode == "reboot" and action == "reload":
        action, reason = "reboot", "%s, and gpu_ready_activation is reboot" % reason
    kubelet = facts.engines.kubernetes.unit if DAEMON_SETS in drains and action == "reload" else ""
    pods = blocking_processes(facts, in_pods=True) if kubelet else []
    if mode == "auto" and action == "reload":
        holders = [one for one in blocking_processes(facts) if one not in pods]
        if holders:
            action, reason = "reboot", "%s, and the loaded one is held by PID %s" % (reason, ", ".join(holders))
    if pods and action == "reload":
        reason += "; pods that hold the loaded one are restarted: PID %s" % ", ".join(pods)
    params = ActivateParams(
        action=action,
        modules=driver.modules,
        fallback="reboot" if mode == "auto" else None,
        later=services_started_later(facts, settings, choices),
        why=reason,
        force=bool(outdated),
        # Also where no pod holds a GPU now: the kubelet may start a container of a DaemonSet before the reload.
        kubelet=kubelet if action == "reload" else "",
    )
    return Decision(ActivationChoice(action), [Step("nvidia_driver.activate", reason, DISRUPTION[action], params)])


def needed_action(facts: Facts, driver: DriverChoice) -> tuple[str | None, str]:
    """Return the least disruptive action ("load", "reload", "reboot" or None) and why it is needed."""
    loaded, disk = facts.driver.loaded, facts.driver.on_disk
    if loaded is None:
        nouveau = facts.base.nouveau
        if nouveau.bound:
            return "reboot", "%s is bound to the GPU at %s and can only be unbound by a reboot" % (
                nouveau.name or "nouveau", ", ".join(nouveau.bound),
            )  # fmt: skip
        return "load", "no NVIDIA module is loaded"
    if disk is None or not (driver.satisfied or driver.extends):
        if is_chosen(loaded, driver) and disk and is_chosen(disk, driver) and driver.version:
            return None, ""
        return "reload", "the loaded module is %s and the driver changes" % loaded.version
    if loaded.version != disk.version:
        return "reload", "the loaded module is %s, the installed one %s" % (loaded.version, disk.version)
    if loaded.flavour not in (None, disk.flavour):
        return "reload", "the loaded module is %s, the installed one %s" % (loaded.flavour, disk.flavour)
    if facts.driver.stopped:
        return "load", "an interrupted live reload stopped %s" % ", ".join(facts.driver.stopped)
    return None, ""


def services_started_later(facts: Facts, settings: Settings, choices: Choices) -> list[str]:
    """Return the units whose own steps come after the activation and start them, in the new driver's version.

    Before, only the old fabric manager or IMEX may be installed, which do not start with another driver version.
    """
    steps = services.plan_services(facts, settings, choices).steps
    params = [step.params for step in steps if isinstance(step.params, ServiceParams)]
    return [one.service + ".service" for one in params if one.start]


def is_chosen(module: ModuleFacts, driver: DriverChoice) -> bool:
    return matches_choice(module.version, driver) and module.flavour in (None, driver.flavour)


def blocking_processes(facts: Facts, in_pods: bool = False) -> list[str]:
    """Return the processes that hold the module and that a live reload does not stop, each as "42 (python3)".

    A live reload stops systemd units. The same program in a container, such as a DCGM exporter of Kubernetes, is none.
    ``in_pods``: only processes in pods.
    """
    pods = {one.name for one in facts.work.containers if one.pod}
    return [
        "%d (%s)" % (client.pid, client.name)
        for client in facts.work.processes
        if (client.container in pods if in_pods else client.container or not client.service)
    ]


def left_to_operator(reason: str) -> Notice:
    return notify(
        "not_activated",
        "%s, and gpu_ready_activation is none" % reason,
        VariableChange({"gpu_ready_activation": ["auto"]}),
        "reboot the host and run this again to verify it",
    )
