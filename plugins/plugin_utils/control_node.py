# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Action plugins that do all of the work of their module in the process of its task: nothing is sent, no host is asked.

The file of the module in library/ has the documentation, the options and the record of the answer.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..module_utils.gpu_ready.base.plain_text import plain_text
from ..module_utils.gpu_ready.base.records import answer_values

ROOT = Path(__file__).resolve().parents[2]
PLACE = Path(__file__).parents[2].resolve()
"""Where this checkout or collection is; its directories may be links."""


def version() -> str:
    """Return the version of this checkout or collection."""
    manifest = ROOT / "MANIFEST.json"
    if manifest.exists():
        return str(json.loads(manifest.read_text(encoding="utf-8"))["collection_info"]["version"])
    found = re.search(r"(?m)^version: *(\S+)", (ROOT / "galaxy.yml").read_text(encoding="utf-8"))
    return found[1] if found else ""


def operator() -> str:
    """Return who runs ansible-playbook, as user@host; the number of a user without a name."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def is_own(playbook: str) -> bool:
    """Return whether this is a playbook of this checkout or collection, by its name or path."""
    return playbook.startswith("gpu_ready.nodes.") or Path(playbook).resolve().is_relative_to(PLACE)


def plain(value: Any) -> Any:
    """Return a value of Ansible's templates as a module would get it, which is JSON."""

    def contents(one: Any) -> Any:
        if isinstance(one, Mapping):
            return {str(key): contents(inner) for key, inner in one.items()}
        return [contents(inner) for inner in one] if isinstance(one, list | tuple) else one

    return json.loads(json.dumps(contents(value), default=str))


class ControlNodeAction(ActionBase):  # type: ignore[misc]  # Ansible is untyped
    """Answers with the record that ``compute`` returns, or fails with the message of its error."""

    TRANSFERS_FILES = False
    module: Any
    """The file of library/."""

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        _, given = self.validate_argument_spec(argument_spec=self.module.ARGUMENT_SPEC)
        try:
            answer = self.compute(plain(given))
        except GpuReadyError as error:
            raise AnsibleActionFail(plain_text(str(error))) from None
        if not isinstance(answer, self.module.ANSWER):
            raise TypeError(f"not a {self.module.ANSWER.__name__}: {answer!r}")
        return result | answer_values(answer)

    def compute(self, given: dict[str, Any]) -> Any:
        """Return the record of the answer to valid options. Raises GpuReadyError."""
        raise NotImplementedError
