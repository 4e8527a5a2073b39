# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Writes the files of a report, also of a run that ends early; what the command line says of the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ansible import constants as C
from ansible import context

from .fleet_report import as_json, metrics, page, store
from .fleet_report.model import Fleet

RENDER: dict[str, Callable[[Fleet], str]] = {
    "json": as_json.as_json,
    "html": page.page,
    "prometheus": metrics.metrics,
}


def inventories() -> list[str]:
    """Return the inventories that the command line named, as short as this directory allows."""
    named = [str(one) for one in context.CLIARGS.get("inventory") or ()]
    if named == [str(one) for one in C.DEFAULT_HOST_LIST]:
        return []
    here = f"{Path.cwd()}/"
    return [one.removeprefix(here) for one in named]


def write_report(fleet: Fleet, given: Mapping[str, Any]) -> list[str]:
    """Write a report in every format and remove old ones; return the paths. Raises OSError."""
    contents = {form: RENDER[form](fleet) for form in given["formats"]}
    directory = Path(given["directory"]).resolve()
    written = store.write(directory, fleet.kind, fleet.time, contents)
    store.prune(directory, fleet.kind, given["keep"])
    return [str(path) for path in written]
