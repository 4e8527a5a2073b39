# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Reports the result of a run, in the process of Ansible itself: there is the Jinja that the page is made with.

plugins/action/gpu_report.py is a link to this file. It reads answers of hosts as texts only, and writes to the
operator's directory.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

ROOT = Path(__file__).resolve().parents[1]
ARGUMENT_SPEC: dict[str, dict[str, Any]] = {
    "kind": {"type": "str", "choices": ["site", "audit", "upgrade", "rollback", "uninstall"], "default": "site"},
    "parts": {"type": "dict", "default": {}},
    "directory": {"type": "path", "default": ""},
    "formats": {
        "type": "list",
        "elements": "str",
        "choices": ["json", "html", "prometheus", "junit"],
        "default": ["json", "html"],
    },
    "keep": {"type": "int", "default": 0},
    "width": {"type": "int", "default": 150},
}


def load_package(name: str, directory: Path) -> Any:
    """Return a package of this project from its directory: plugins are in no package on the control node."""
    known = sys.modules.get(name)
    if known is not None and [str(directory)] == list(known.__path__):
        return known
    for other in [key for key in sys.modules if key == name or key.startswith(f"{name}.")]:
        del sys.modules[other]  # of another checkout
    spec = importlib.util.spec_from_file_location(
        name, directory / "__init__.py", submodule_search_locations=[str(directory)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    return package


def load(name: str) -> Any:
    """Return a module of plugins/fleet_report."""
    load_package("gpu_ready", ROOT / "module_utils/gpu_ready")
    load_package("gpu_ready_fleet_report", ROOT / "plugins/fleet_report")
    return importlib.import_module(f"gpu_ready_fleet_report.{name}")


def plain(value: Any) -> Any:
    """Return a value of Ansible's templates as Python's own: lists and mappings of it are filled on access."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return str(value) if isinstance(value, str) else value


def write_report(fleet: Any, given: Mapping[str, Any]) -> list[str]:
    """Write a report in every format and remove old ones; return the paths. Raises OSError."""
    store = load("store")
    render = {
        "json": ("as_json", "as_json"),
        "html": ("page", "page"),
        "prometheus": ("metrics", "metrics"),
        "junit": ("junit", "junit"),
    }
    contents = {form: getattr(load(render[form][0]), render[form][1])(fleet) for form in given["formats"]}
    directory = Path(given["directory"]).resolve()
    written = store.write(directory, fleet.kind, fleet.time, contents)
    store.prune(directory, fleet.kind, given["keep"])
    return [str(path) for path in written]


class ActionModule(ActionBase):  # type: ignore[misc]
    """The plugin; Ansible finds it by this name."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, given = self.validate_argument_spec(argument_spec=ARGUMENT_SPEC)
        check_mode = bool(self._task.check_mode)
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        fleet = load("model").read(given["kind"], plain(given["parts"]), moment, check_mode)
        result |= {"changed": False, "counts": fleet.counts, "bad": fleet.bad, "paths": []}
        if fleet.table is not None:
            result["table"] = fleet.table(given["width"])
        # A report is no state of a host: under --check the table says what would be done, and no file is written.
        if not check_mode and given["directory"]:
            try:
                result["paths"] = write_report(fleet, given)
            except OSError as error:
                raise AnsibleActionFail(
                    f"The report cannot be written to {given['directory']} ({error.strerror}): set gpu_report_directory"
                    " to a writable directory, or to an empty text for none."
                    + (f" The report:\n\n{result['table']}" if "table" in result else "")
                ) from None
        return result
