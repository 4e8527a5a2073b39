# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What a host is doing, in words for people who do not know the steps of gpu-ready."""

from __future__ import annotations

from collections.abc import Sequence

OWN = "gpu_ready.nodes."
"""How the names of actions of this collection begin."""
ACTIONS = {
    "gpu_node_plan": "collecting facts",
    "gpu_audit": "collecting facts",
    "gpu_begin": "starting",
    "gpu_python": "looking for Python",
    "gpu_verify": "verifying",
}
"""What hosts do in the tasks with these plugins. Of other tasks nothing is shown: Ansible reports that they begin
before their conditions are known. Steps and turns send events."""
PHASES = {
    "lease": "starting",
    "drain": "draining",
    "drain alone": "draining",
    "plan": "planning",
    "prestage": "downloading",
    "switch": "replacing the driver",
    "verify": "verifying",
    "return": "returning to service",
    "leave": "returning to service",
    "undrain alone": "returning to service",
    "soak": "in service, waiting for the second verification",
}
"""By the phase of a turn (plugin_utils/gpu_ready/turn/table.py)."""
BACK = "rollback "
"""How the phases begin in which the recorded driver is restored."""
HARMLESS = ("lease", "plan", "prestage")
"""Phases after which a host is as it was: it has the same driver, and is in service."""
STEPS = {
    "kernel_headers": "installing kernel headers",
    "nvidia_driver": "configuring the driver",
    "nvidia_driver.repository": "adding the repository of the driver",
    "nvidia_driver.remove_packages": "removing the old driver",
    "nvidia_driver.runfile": "installing the driver",
    "nvidia_driver.install": "installing the driver",
    "nvidia_driver.next_kernel": "building the module for the next kernel",
    "nvidia_driver.activate": "loading the driver",
    "cuda_toolkit": "installing the CUDA toolkit",
    "cuda_toolkit.remove": "removing the CUDA toolkit",
    "cudnn": "installing cuDNN",
    "cudnn.remove": "removing cuDNN",
    "cudnn.remove_packages": "removing cuDNN",
    "docker_engine": "installing docker",
    "docker_engine.configure": "configuring docker",
    "nvidia_container_runtime": "setting up the container runtime",
    "gpu_verify": "verifying",
    "gpu_monitoring": "setting up monitoring",
    "gpu_plan.repair_packages": "repairing interrupted package operations",
    "downloads": "downloading",
    "reboot": "rebooting",
}
"""By step, or by its role."""


WAITING = "waiting for the package manager"


def own_action(action: str) -> str:
    """Return the name of an action plugin of gpu-ready, without the collection; "" for any other action."""
    collection, _, name = action.rpartition(".")
    return name if f"{collection}." == OWN or not collection else ""


def doing_text(phase: str, step: str = "") -> str:
    """Return what a host is doing in a phase of its turn, and in a step of it; ``phase`` is "" outside of turns."""
    back = "rolling back" if phase.startswith(BACK) else ""
    word = STEPS.get(step) or STEPS.get(step.partition(".")[0]) or PHASES.get(phase.removeprefix(BACK), "")
    return ": ".join(part for part in (back, word) if part)


def changes_host(phase: str, step: str = "") -> bool:
    """Return whether a host is no longer as it was once this phase or step has begun."""
    return phase not in HARMLESS or step == "gpu_plan.repair_packages"


def doings_text(doings: Sequence[str]) -> str:
    """Return how many hosts are doing what, in the order in which each was first seen."""
    return ", ".join(f"{doings.count(one)} {one}" for one in dict.fromkeys(doings))
