# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What the results of tasks mean for the screen: how a host ends, and why a task failed. Pure: values in, texts out."""

from __future__ import annotations

import re
from typing import Any

from .lines import BAD, GOOD
from .words import doing_text, own_action

LOG_LINES = 20
"""Number of last lines of a program's output that are shown with a failure."""
LONGEST = 10_000
"""Maximum number of characters of a message, and of the output with it: a host may answer with megabytes."""
FAILURES = ("gpu_ready_failure", "gpu_audit_failure")
"""What the playbooks set for a host that failed, after its rescue."""


def ending(playbook: str, action: str, value: dict[str, Any], check: bool = False) -> tuple[str, str] | None:
    """Return how a host ends with this result, and a note; None if it continues, which it does not in a check.

    Only what gpu-ready's own plugins answer counts: another module's answer is what the host wants it to be.
    """
    if action in ("set_fact", "ansible.builtin.set_fact"):
        return (BAD, "") if set(FAILURES) & set(value.get("ansible_facts") or {}) else None
    own = own_action(action)
    if own == "gpu_turn" and value.get("result"):
        # After a rollout has stopped these may be hundreds, and the table has them.
        return None if value["result"].get("state") == "not_reached" else turn_ending(playbook, value["result"])
    if own == "gpu_audit":
        state = (value.get("audit") or {}).get("state", "")
        return GOOD, "" if state in ("ok", "no_gpu") else str(state)
    if playbook == "provision.yml":
        if own == "gpu_execute" and "verify" in value:
            return GOOD, "ready"
        plan = value.get("plan") or {}
        if own == "gpu_node_plan" and plan and not plan.get("refusals") and (check or not value.get("todo")):
            return GOOD, ""
    return None


def turn_ending(playbook: str, upgraded: dict[str, Any]) -> tuple[str, str]:
    """Return how a host ends in a rollout, and a note."""
    good = ("current", "paused", "rolled_back" if playbook == "rollback_drivers.yml" else "upgraded")
    bad = upgraded.get("state") not in good
    if upgraded.get("state") in ("current", "excluded"):
        return GOOD, ""  # possibly most of 2,000 hosts, and the table has them
    words = [str(upgraded.get("state") or "").replace("_", " ")]
    if bad and upgraded.get("state") == "rolled_back":
        words = [f"rolled back to {upgraded.get('from')}"]
    elif upgraded.get("to"):
        words += [f"{upgraded.get('from')} -> {upgraded.get('to')}"]
    words += [f"{upgraded['seconds_unavailable']} s out of service"] if upgraded.get("seconds_unavailable") else []
    why = str(upgraded.get("reason") or "")
    words += [why.partition(" -- ")[2] or why] if why else []  # the failure itself was printed when it happened
    return BAD if bad else GOOD, ", ".join(words)


def debug_text(value: dict[str, Any], for_all: bool) -> str:
    """Return the message of a debug task: for all hosts the full text, for one host the first line of a list."""
    message = value.get("msg", "")
    if isinstance(message, list):
        return "\n".join(str(part) for part in message) if for_all else str(message[0]) if message else ""
    return str(message)


def failure_text(action: str, value: dict[str, Any], name: str) -> str:
    """Return what failed, in few words; ``name``: of the task, for those that are none of gpu-ready's steps."""
    own = own_action(action)
    step = str(value.get("step") or "") if own in ("gpu_execute", "gpu_begin") else ""
    if own == "gpu_begin" and step in ("plan", "lease"):
        return "refused"
    return step_failure_text(step) if step else f"failed at '{name}'"


def step_failure_text(step: str) -> str:
    """Return what failed, by a step or by a phase of a turn: in words, where there are some."""
    doing = doing_text("", step) or doing_text(step)
    return f"failed while {doing}" if doing else f"failed at '{step}'"


def reason(value: dict[str, Any]) -> str:
    """Return why a task failed: its message and, if a program failed, the end of its output."""
    given = value.get("msg") or value.get("reason") or value.get("censored")  # an include has a "reason"
    message = str(given or "no reason was given; -v shows the full result").strip()
    message = re.sub(r"^(?:(?:Task|Module|Action) failed: )+", "", message)
    if "rc" in value and value.get("cmd"):
        words = value["cmd"] if isinstance(value["cmd"], list) else [value["cmd"]]
        message += f" ({value['rc']} of {' '.join(str(word) for word in words)})"
    if len(message) > LONGEST:
        message = f"{message[:LONGEST]} ({len(message)} characters; -v shows all)"
    lines = message.splitlines()
    for key in ("module_stderr", "stderr"):
        log = str(value.get(key) or "")[-LONGEST:].strip()
        lines += log.splitlines()[-LOG_LINES:] if log and log not in str(value.get("msg")) else []
    return "\n".join(lines)


def warnings_of(value: dict[str, Any]) -> list[str]:
    """Take the warnings out of a result, and return them."""
    found = value.pop("warnings", None) or []
    return [str(one).strip() for one in found] if isinstance(found, list | tuple) else [str(found)]
