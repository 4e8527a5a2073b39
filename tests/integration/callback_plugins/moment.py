"""Do something at one moment of a run: before a task begins, or so many seconds later.

GPU_READY_MOMENT is {"task": name, "nth": 1, "after": seconds, "argv": [...], "die": false, "mark": path}: `argv` is run
to its end, `die` kills this run's process group; `mark` is written when it happened.
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
    """Waits for one task."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "moment"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self.wanted: dict[str, Any] = json.loads(os.environ["GPU_READY_MOMENT"])
        self.left = int(self.wanted.get("nth", 1))

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        if task.get_name() != self.wanted["task"]:
            return
        self.left -= 1
        if self.left:
            return
        after = float(self.wanted.get("after", 0))
        if after:
            timer = threading.Timer(after, self.happen)
            timer.daemon = True
            timer.start()
        else:
            self.happen()

    def happen(self) -> None:
        """Do it, and note that it was done."""
        Path(self.wanted["mark"]).write_text(str(self.wanted["task"]), encoding="utf-8")
        if self.wanted.get("die"):
            os.killpg(os.getpgrp(), signal.SIGKILL)
        subprocess.run(self.wanted["argv"], timeout=LIMIT, check=True, stdin=subprocess.DEVNULL)
