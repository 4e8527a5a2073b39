"""What the campaign found, cell by cell: written by a run, kept in the repository, read by tools/hostile_table.py."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.hostile.campaign import Cell

RECORD = Path(__file__).with_name("record.json")


def read() -> dict[str, Any]:
    """Return the record: its date, and the error of each cell by playbook, module and kind; empty where it held."""
    found: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {"date": "", "cells": {}}
    return found


def held() -> set[str]:
    """Return the names of the cells that held."""
    return {name for name, error in read()["cells"].items() if error == ""}


def key(scene: str, cell: Cell) -> str:
    """Return the name of a cell in the record."""
    return f"{scene} {cell.module} {cell.attack.__name__}"


def record_cells(scene: str, group: Sequence[Cell], found: Mapping[str, str]) -> None:
    """Record a run of cells, without directories of the machine."""
    data = read()
    for cell in group:
        error = re.sub(r"/[^\s'\"\\]*/(?=\w)", "", found[cell.name]).replace("\n", " ")[:200]
        data["cells"][key(scene, cell)] = error
    data["date"] = datetime.now(UTC).date().isoformat()
    data["cells"] = dict(sorted(data["cells"].items()))
    RECORD.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
