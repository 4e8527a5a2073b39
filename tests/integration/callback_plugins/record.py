"""Write every task result as one JSON line into the file that GPU_READY_TEST_EVENTS names."""

import json
import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.utils.display import Display
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.progress.lines import EXECUTE, parse_event

DOCUMENTATION = """
name: record
type: aggregate
short_description: record task results for the integration tests
description: [One JSON object a line, host, task, status, changed and message.]
"""


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
