"""Write every task result as one JSON line into the file that GPU_READY_TEST_EVENTS names.

GPU_READY_STEP_FACTS, if set, is the directory for the facts of each host before and after each step (step_effects.py).
"""

import functools
import json
import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.utils.display import Display
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.gpu_ready.execute import steps
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.module_calls import call_module
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.progress.lines import EXECUTE, parse_event

DOCUMENTATION = """
name: record
type: aggregate
short_description: record task results for the integration tests
description: [One JSON object a line, host, task, status, changed and message.]
"""
CAPTURED: dict[str, str] = {}
"""The last capture of a host in this process, which is that of one task: nothing happens between its steps."""


class CallbackModule(CallbackBase):
    """Records results; prints nothing."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "record"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        show, main = Display.display, os.getpid()

        def follow(display: Any, msg: str, *arguments: Any, **options: Any) -> Any:
            """Record which step of a plan begins, in Ansible's own process alone: workers send it the message."""
            event = parse_event(msg) if os.getpid() == main else None
            if event and event.phase == EXECUTE:
                self._write({"host": event.host, "task": event.text, "status": "began", "changed": False})
            return show(display, msg, *arguments, **options)

        Display.display = follow
        for name, step in steps.STEPS.items() if os.environ.get("GPU_READY_STEP_FACTS") else ():
            steps.STEPS[name] = step._replace(run=functools.partial(run_captured, name, step.run))

    def _record(self, status: str, result: Any) -> None:
        # The public attributes came with 2.19, the private ones go with a later release.
        host = getattr(result, "host", None) or result._host
        task = getattr(result, "task", None) or result._task
        value = getattr(result, "result", None) or result._result
        event = {
            "host": host.get_name(),
            "task": task.get_name().replace("gpu_ready.nodes.", ""),
            "action": task.action,
            "status": status,
            "changed": bool(value.get("changed")),
            "message": str(value.get("msg", "")),
            "plan": value.get("plan"),
            "todo": value.get("todo"),
            "diff": value.get("diff"),
            "changed_steps": value.get("changed_steps"),
        }
        self._write(event)

    def _write(self, event: dict[str, Any]) -> None:
        event = {"action": "", "message": "", "plan": None, "todo": None, "diff": None, "changed_steps": None} | event
        event["time"] = time.time()
        with Path(os.environ["GPU_READY_TEST_EVENTS"]).open("a", encoding="utf-8") as handle:
            handle.write(json.dumps(event, default=str) + "\n")

    def v2_runner_on_ok(self, result: Any) -> None:
        self._record("ok", result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._record("failed", result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._record("skipped", result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._record("unreachable", result)


def run_captured(name: str, carry_out: Any, params: Any, part: Any) -> None:
    """Carry out a step, and keep its parameters with the captures; there is none while the host waits for a reboot."""
    host = part.modules.variables["inventory_hostname"]
    before = CAPTURED.get(host) or capture(part)
    carry_out(params, part)
    CAPTURED[host] = "" if part.reboot_required else capture(part)
    record = {"host": host, "step": name, "params": params, "before": before, "after": CAPTURED[host]}
    with Path(os.environ["GPU_READY_STEP_FACTS"], "steps").open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def capture(part: Any) -> str:
    """Return the path of a new capture of the host."""
    directory = f"{os.environ['GPU_READY_STEP_FACTS']}/{time.monotonic_ns()}"
    modules = part.modules
    arguments = {"directory": directory, "settings": {}}
    return str(call_module(modules.action, "gpu_ready.nodes.gpu_capture", arguments, modules.variables, False)["path"])
