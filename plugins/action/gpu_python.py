# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Decides how Ansible's modules can run on a host without a usable Python, from what a shell on that host printed."""

from __future__ import annotations

from typing import Any

from ansible import __version__

from ..module_utils.gpu_ready.answers.controller import PythonAnswer
from ..modules import gpu_python as module
from ..plugin_utils.control_node import ControlNodeAction
from ..plugin_utils.gpu_ready.bootstrap import choose as bootstrap
from ..plugin_utils.gpu_ready.bootstrap import python_scripts


class ActionModule(ControlNodeAction):
    """The plugin; Ansible finds it by this name."""

    module = module

    def compute(self, given: dict[str, Any]) -> PythonAnswer:
        """Return the interpreter or the script that installs one. Raises BootstrapError."""
        if given["printed"] is None:
            return PythonAnswer(python_scripts.FIND, None, None)
        found = bootstrap.parse_found(given["printed"])
        check = bool(self._task.check_mode)
        choice = bootstrap.choose_python(found, __version__, given, given["tried"], check)
        return PythonAnswer(python_scripts.FIND, choice.interpreter, choice.install)
