# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Runs another module on the host of a task through its action plugin, as in a task of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def call_module(action: Any, module: str, arguments: Mapping[str, Any], variables: Any, check: bool) -> dict[str, Any]:
    """Return the accepted answer of a module; ``action``: the plugin of the task."""
    task = action._task.copy()
    task.action, task.args, task.check_mode = module, dict(arguments), check
    loader = action._shared_loader_obj
    found = loader.module_loader.find_plugin_with_context(module)
    name = found.action_plugin or (module if loader.action_loader.has_plugin(module) else "ansible.legacy.normal")
    plugin = loader.action_loader.get(
        name,
        task=task,
        connection=action._connection,
        play_context=action._play_context,
        loader=action._loader,
        templar=action._templar,
        shared_loader_obj=loader,
    )
    answer: dict[str, Any] = plugin.run(tmp=None, task_vars=variables)
    return answer
