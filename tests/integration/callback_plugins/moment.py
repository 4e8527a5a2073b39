"""Do something at moments of a run: before a task begins, or so many seconds later.

GPU_READY_MOMENT is a list of {"task": name, "after": seconds, "argv": [...], "die": false, "mark": path}: `argv` is run
to its end, `die` kills this run's process group; `mark` is written when it happened. Each happens once, in their order.
"""

import json
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: moment
type: aggregate
short_description: do something at one moment of a run, for the tests of faults
description: [Kills the run, or runs a program, before a task or in the middle of it.]
"""
LIMIT = 300


class CallbackModule(CallbackBase):
    """Waits for some tasks."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "moment"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self.left: list[dict[str, Any]] = json.loads(os.environ["GPU_READY_MOMENT"])

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        due = [moment for moment in self.left if moment["task"] == task.get_name().removeprefix("gpu_ready.nodes.")]
        self.left = [moment for moment in self.left if moment not in due]
        for moment in due:
            after = float(moment.get("after", 0))
            if after:
                timer = threading.Timer(after, happen, [moment])
                timer.daemon = True
                timer.start()
            else:
                happen(moment)


def happen(moment: dict[str, Any]) -> None:
    """Do it, and note that it was done."""
    Path(moment["mark"]).write_text(str(moment["task"]), encoding="utf-8")
    if moment.get("die"):
        os.killpg(os.getpgrp(), signal.SIGKILL)
    subprocess.run(moment["argv"], timeout=LIMIT, check=True, stdin=subprocess.DEVNULL)
