# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The only way by which a file of the control node reaches a host.

What is copied comes from the operator's variables of this host: its answer selects among them, and names their paths on
the host itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .model import COPY, Execution, fail

NAMED = 200
"""Characters of the names that a host requested in a message."""


def copy_files(files: Sequence[Any], destinations: Mapping[str, str], part: Execution) -> None:
    """Copy the operator's ``files`` that have a destination on the host. Raises StepFailed."""
    others = [path for path in destinations if path not in files]
    if others:
        names = ", ".join(others)
        raise fail(
            f"The host requested {names if len(names) <= NAMED else names[: NAMED - 3] + '...'} from the control node,"
            " but no variable set for this host names that file. Nothing is copied. If it is a file for this host, set"
            " nvidia_driver_runfile, cuda_toolkit_runfiles or cudnn_archive to it; else somebody has changed what this"
            " host answers."
        )
    chosen = [path for path in dict.fromkeys(files) if path in destinations]
    missing = [path for path in chosen if not Path(path).is_file()]
    if missing:
        raise fail(f"{', '.join(missing)}: there is no such file on the control node. Correct the path, or give a URL.")
    if chosen:
        directory = str(Path(destinations[chosen[0]]).parent)
        part.run("ansible.builtin.file", {"path": directory, "state": "directory", "mode": "0755"})
    for path in chosen:
        copy = {"src": str(Path(path).resolve()), "dest": destinations[path]}
        part.run("ansible.builtin.copy", {**copy, "owner": "root", "group": "root", "mode": "0600"}, COPY)
