"""The operator's file as gpu-catalog writes it: one line for each row, so that a diff of two months is readable."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..catalog import overlay
from ..catalog.expand import merged
from ..catalog.files import parse
from .news import CatalogRow

HEAD = """\
# Rows that the catalog of gpu-ready does not have. Written by `gpu-catalog update` on {today}, which keeps the rows and
# the notes behind them, and no other comment. `review:` names values that no vendor publishes for machines: they are
# estimated. Delete the note of a row once you have checked it.
"""
NOTE = re.compile(r"  (\S+): \{.*\}  (# review: .*)")


def merge_rows(own: Mapping[str, Any], rows: list[CatalogRow]) -> dict[str, dict[Any, Any]]:
    """Return the sections of a file with further rows, in the order in which overlay.py has them."""
    found = {name: dict(own.get(name) or {}) for name in overlay.SECTIONS}
    for row in rows:
        found[row.section][row.key] = merged(found[row.section].get(row.key) or {}, row.values)
    return {name: section for name, section in found.items() if section}


def format_file(own: Mapping[str, Any], rows: list[CatalogRow], before: str, today: str) -> str:
    """Return the text of the file; ``before``: its text so far, "" for a new one."""
    notes = read_notes(before)
    for row in rows:
        if row.review:
            notes[row.section, format_key(row.key)] = "# review: " + ", ".join(row.review)
    lines = [HEAD.format(today=today).rstrip()]
    for name, section in merge_rows(own, rows).items():
        lines.append(f"{name}:")
        for key, values in section.items():
            note = notes.get((name, format_key(key)))
            lines.append(f"  {format_key(key)}: {format_value(values)}" + (f"  {note}" if note else ""))
    return "\n".join(lines) + "\n"


def read_notes(text: str) -> dict[tuple[str, str], str]:
    """Return the notes of a file that this wrote, by section and key."""
    found, section = {}, ""
    for line in text.splitlines():
        if re.fullmatch(r"\w+:", line):
            section = line[:-1]
        match = NOTE.fullmatch(line)
        if match:
            found[section, match[1]] = match[2]
    return found


def format_key(key: int | str) -> str:
    """Return a key as it is in YAML: numbers without quotes."""
    return str(key) if isinstance(key, int) else json.dumps(key)


def format_value(value: Any) -> str:
    """Return a value in YAML's flow style: JSON, with plain keys and numbers as keys."""
    if isinstance(value, Mapping):
        plain = {key: isinstance(key, str) and key.isidentifier() and parse(key) == key for key in value}
        pairs = (f"{key if plain[key] else format_key(key)}: {format_value(one)}" for key, one in value.items())
        return "{%s}" % ", ".join(pairs)
    if isinstance(value, list):
        return "[%s]" % ", ".join(map(format_value, value))
    return json.dumps(value)


def write(path: Path, text: str) -> None:
    """Write the file at once; a reader sees the old one or the new one."""
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
