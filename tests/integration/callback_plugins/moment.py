"""Do something at moments of a run: before a task, a step of a plan or a phase of a turn begins, or seconds later.

GPU_READY_MOMENT is a list of {"task": name, "after": seconds, "argv": [...], "die": false, "mark": path}: `argv` is run
to its end, `die` kills this run's process group; `mark` is written when it happened. Each happens once, in their order.
"""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible.utils.display import Display
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.progress.lines import parse_event

DOCUMENTATION = """
name: moment
type: aggregate
short_description: do something at one moment of a run, for the tests of faults
description: [Kills the run, or runs a program, before a task or in the middle of it.]
"""
LIMIT = 300
GROUP = os.getpgrp()
"""The process group of the run: the one in which Ansible's own process loads this."""


class CallbackModule(CallbackBase):
    """Waits for some tasks."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "moment"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self.left: list[dict[str, Any]] = json.loads(os.environ["GPU_READY_MOMENT"])
        show, main = Display.display, os.getpid()

        def follow(display: Any, msg: str, *arguments: Any, **options: Any) -> Any:
            """Notice that a worker begins a step. What happens before it happens there, so that the step waits."""
            event = parse_event(msg)
            if event:  # a note by its first words
                name = f"turn: {event.phase}" if event.text == "begins" else " ".join(event.text.split()[:3])
                self.begins(name, lambda moment: bool(moment.get("after")) == (os.getpid() == main))
            return show(display, msg, *arguments, **options)

        Display.display = follow

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self.begins(task.get_name().removeprefix("gpu_ready.nodes."), lambda moment: True)

    def begins(self, name: str, here: Callable[[dict[str, Any]], bool]) -> None:
        """Do what is due when this task or step begins, if it is for this process."""
        due = [moment for moment in self.left if moment["task"] == name and here(moment)]
        due = [moment for moment in due if not Path(moment["mark"]).exists()]
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
        os.killpg(GROUP, signal.SIGKILL)
        os._exit(1)  # a worker of ansible-core 2.19 and later, which has a group of its own
    subprocess.run(moment["argv"], timeout=LIMIT, check=True, stdin=subprocess.DEVNULL)
