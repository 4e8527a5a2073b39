# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Whether a host is rebooted for its new driver, and the reboot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .model import Execution, StepFailed, fail

WAITS = 600
"""Seconds beyond twice gpu_ready_reboot_timeout: Ansible waits for the boot, and then for a command."""
IN_USE = "the loaded driver module cannot be replaced while it is in use"


class Permissions(NamedTuple):
    """What permits a reboot: gpu_ready_reboot_ok, gpu_ready_disrupt with "reboot", and that the host is drained."""

    reboot: bool
    work: bool
    drained: bool


def refuse_reboot(why: str, held_by: str, permitted: Permissions) -> str:
    """Return why a host that needs a reboot is not rebooted, "" for one that is.

    ``held_by``: what uses a GPU. The plan saw an idle one: who took it since then has no reason to expect a reboot. An
    upgrade has drained its host.
    """
    if not permitted.reboot:
        holder = f"; held by {held_by}" if held_by else ""
        return (
            f"A reboot is required: {why or IN_USE}{holder}. Set gpu_ready_reboot_ok=true to let this playbook reboot"
            " the host, or reboot it yourself and run the same command again."
        )
    if held_by.startswith("process ") and not (permitted.work or permitted.drained):
        return (
            f"The new driver is installed, and the host would reboot, which stops {held_by}: it took a GPU after the"
            " plan. Let it end or stop it, then run the same command again, or permit the reboot with"
            " gpu_ready_disrupt: [reboot]."
        )
    return ""


def waits_for_reboot(answer: Mapping[str, Any], driver: Execution | None = None) -> bool:
    """Return whether the driver of a host waits for a reboot: as planned, or after the steps of the driver.

    ``answer``: of the plan. gpu_ready_activation may leave the reboot to the operator, and then the plan has no step.
    """
    choice = (answer.get("plan") or {}).get("choice") or {}
    action = (choice.get("activation") or {}).get("action")
    return action == "none" or (driver.reboot_required if driver else action == "reboot")


def restart(driver: Execution, begins: Callable[[str], None]) -> None:
    """Restart the host where the steps of the driver need that, and wait for it. Raises StepFailed."""
    if driver.reboot_refused:
        raise fail(driver.reboot_refused, "reboot")
    if driver.reboot_required:
        begins("reboot")
        seconds = int(driver.modules.setting("gpu_ready_reboot_timeout"))
        try:
            driver.run("ansible.builtin.reboot", {"reboot_timeout": seconds}, 2 * seconds + WAITS)
        except StepFailed as error:
            raise StepFailed({**error.result, "step": "reboot"}) from error
        driver.reboot_required = False
