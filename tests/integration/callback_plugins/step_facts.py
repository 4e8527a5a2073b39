"""Keep the facts of each host before and after each step of its plan in GPU_READY_STEP_FACTS, for step_effects.py."""

import functools
import json
import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.gpu_ready.execute import steps
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.module_calls import call_module

DOCUMENTATION = """
name: step_facts
type: aggregate
short_description: keep facts before and after each step
description: [Captures each host around each step, in the process of the task.]
"""
KEPT: dict[str, str] = {}
"""The last capture of a host in this process, which is that of one task: nothing happens between its steps."""


class CallbackModule(CallbackBase):
    """Wraps the functions of the steps before the processes of tasks are started."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "step_facts"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        for name, step in steps.STEPS.items():
            steps.STEPS[name] = step._replace(run=functools.partial(run, name, step.run))


def run(name: str, carry_out: Any, params: Any, part: Any) -> None:
    """Carry out a step, and keep its parameters with the captures; there is none while the host waits for a reboot."""
    host = part.modules.variables["inventory_hostname"]
    before = KEPT.get(host) or capture(part)
    carry_out(params, part)
    KEPT[host] = "" if part.reboot_required else capture(part)
    record = {"host": host, "step": name, "params": params, "before": before, "after": KEPT[host]}
    with Path(os.environ["GPU_READY_STEP_FACTS"], "steps").open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def capture(part: Any) -> str:
    """Return the path of a new capture of the host."""
    directory = f"{os.environ['GPU_READY_STEP_FACTS']}/{time.monotonic_ns()}"
    modules = part.modules
    arguments = {"directory": directory, "settings": {}}
    return str(call_module(modules.action, "gpu_ready.nodes.gpu_capture", arguments, modules.variables, False)["path"])
