# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Modules of this project for plugins, which Ansible loads as single files that import nothing beside them.

A plugin loads this file by its path, which is all that Ansible leaves: `runpy` fails there, since Ansible's own finder
claims every path below a collection.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "gpu_ready": ROOT / "module_utils/gpu_ready",
    "gpu_ready_fleet_report": ROOT / "plugins/fleet_report",
    "gpu_ready_progress_lines": ROOT / "plugins/progress",
    "gpu_ready_variables": ROOT / "plugins/variables",
}
"""Directories by the names under which they are imported. None is the name of a plugin."""


def load(name: str) -> Any:
    """Return a module of this project by its dotted name."""
    for package, directory in PACKAGES.items():
        load_package(package, directory)
    return importlib.import_module(name)


def load_plugin(name: str) -> Any:
    """Return a file of this directory, for a plugin that is built on another one."""
    spec = importlib.util.spec_from_file_location(f"gpu_ready_{name}", Path(__file__).resolve().with_name(f"{name}.py"))
    assert spec is not None and spec.loader is not None
    plugin = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plugin)
    return plugin


def load_package(name: str, directory: Path) -> None:
    """Make a package importable from its directory."""
    known = sys.modules.get(name)
    if known is not None and [str(directory)] == list(known.__path__):
        return
    for other in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
        del sys.modules[other]  # of another checkout
    spec = importlib.util.spec_from_file_location(
        name, directory / "__init__.py", submodule_search_locations=[str(directory)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
