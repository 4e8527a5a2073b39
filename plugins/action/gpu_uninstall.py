# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Gives gpu_uninstall what it needs of the catalog, which hosts do not get."""

from __future__ import annotations

from typing import Any

from ..plugin_utils.gpu_ready.catalog import driver_packages
from . import gpu_host_module


class ActionModule(gpu_host_module.ActionModule):
    """The plugin; Ansible finds it by this name."""

    def module_arguments(self) -> dict[str, Any]:
        """Return the arguments of the task, and which packages are a driver."""
        return {**self._task.args, "driver_packages": driver_packages.driver_pattern()}
