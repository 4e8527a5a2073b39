"""Compile messages and Xids into a small Python module for the hosts (`make catalog`).

A host gets no YAML parser and no file besides Python modules. Everything else of catalog/ is read on the control node.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parent.parent
CATALOG = ROOT / "catalog"
TARGET = ROOT / "module_utils/gpu_ready/diagnostics/messages_data.py"
HEAD = '''"""Data of catalog/*.yml, compiled by `make catalog`; do not edit."""

from typing import Any, Dict

# fmt: off
# ruff: noqa: E501
'''


def load(path: Path) -> Any:
    """Return a YAML file's data."""
    return yaml_load(path.read_text(encoding="utf-8"))


def literal(name: str, value: Any) -> str:
    """Return one assignment, a line for each entry of a mapping."""
    if not isinstance(value, dict):
        return f"{name} = {value!r}\n"
    lines = "".join(f"    {key!r}: {entry!r},\n" for key, entry in value.items())
    return f"{name}: Dict[Any, Any] = {{\n{lines}}}\n"


def nvlink(data: dict[str, Any]) -> dict[str, Any]:
    """Return the subcodes without sources: by Xid and unit rows of statuses, reasons (None: any), action, inquiry."""
    rows: dict[int, dict[str, list[Any]]] = {}
    for xid, units, statuses, reasons, action, inquiry, _source in data["rows"]:
        row = [None if statuses == "any" else statuses, None if reasons == "any" else reasons, action, inquiry]
        for unit in units.split("/"):
            rows.setdefault(xid, {}).setdefault(unit, []).append(row)
    return dict(data, rows=rows)


def compiled_messages() -> str:
    """Return the text of the module with messages and Xids, which only travels with what explains failures."""
    xids = load(CATALOG / "xids.yml")
    parts = {
        "MESSAGES": load(CATALOG / "messages.yml"),
        "XID_CLASSES": xids["classes"],
        "XIDS": xids["xids"],
        "SXIDS": xids["sxids"],
        "RECOVERY_ACTIONS": {
            row["number"]: [row["name"], row["severity"], row["remedy"]] for row in xids["recovery_actions"]
        },
        "NVLINK": nvlink(xids["nvlink"]),
    }
    head = HEAD.replace("catalog/*.yml", "catalog/messages.yml and xids.yml")
    return head + "".join(literal(name, value) for name, value in parts.items())


def main() -> int:
    """Write the module, or with --check say whether it is current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the module is not current")
    check = parser.parse_args().check
    text = compiled_messages()
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    shown = TARGET.relative_to(ROOT)
    if check:
        print(f"{shown} is not current: run `make catalog`", file=sys.stderr)
        return 1
    TARGET.write_text(text, encoding="utf-8")
    print(f"wrote {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
