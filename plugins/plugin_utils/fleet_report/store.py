# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The files of reports in a directory of the control node: written at once, and no more runs than configured."""

from __future__ import annotations

import re
from pathlib import Path

from ...module_utils.gpu_ready.base import files

SUFFIXES = {"json": ".json", "html": ".html", "prometheus": ".prom"}
RUN = re.compile(r"(?:(audit|upgrade|rollback|uninstall)-)?(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ)(?:-(\d+))?\.(json|html)")
"""Names that :func:`write` gives. Files with other names are never removed."""
ONE_FILE = ("prometheus",)
"""Formats of which only the latest is written: a collector reads every file that it finds."""


def base(kind: str, name: str) -> str:
    """Return a name without suffix; those of site.yml have no kind in front."""
    return name if kind == "site" else f"{kind}-{name}"


def free_name(directory: Path, name: str) -> str:
    """Return the name, or one with a number if another run ended in the same second."""
    taken = {path.stem for path in directory.glob(f"{name}*")}
    return next(one for one in (name, *(f"{name}-{count}" for count in range(2, 10000))) if one not in taken)


def write(directory: Path, kind: str, time: str, contents: dict[str, str]) -> list[Path]:
    """Write each format's content under the run's name and as the latest of its kind; return the first ones."""
    directory.mkdir(parents=True, exist_ok=True)
    name = free_name(directory, base(kind, time.replace(":", "-")))
    latest = "latest" if kind == "site" else f"latest-{kind}"
    written = []
    for form, content in contents.items():
        data = content.encode("utf-8")
        targets = [directory / f"{latest}{SUFFIXES[form]}"]
        if form not in ONE_FILE:
            targets.insert(0, directory / f"{name}{SUFFIXES[form]}")
        for path in targets:
            files.write_atomic(str(path), data, 0o644)
        written.append(targets[0])
    return written


def prune(directory: Path, kind: str, keep: int) -> list[Path]:
    """Remove the files of all runs of this kind but the ``keep`` newest; 0 keeps all. Return what was removed."""
    if keep < 1:
        return []
    runs: dict[tuple[str, int], list[Path]] = {}
    for path in directory.iterdir():
        match = RUN.fullmatch(path.name)
        if match and (match[1] or "site") == kind and path.is_file() and not path.is_symlink():
            runs.setdefault((match[2], int(match[3] or 1)), []).append(path)
    old = [path for run in sorted(runs, reverse=True)[keep:] for path in runs[run]]
    for path in old:
        path.unlink()
    return old
