"""kubectl of the operator in the hostile campaign: a cluster without objects, whose nodes are the hosts of the run.

usage: cluster.py DIRECTORY ARGUMENTS...      DIRECTORY: that of the run; what is applied to nodes is kept in its reports
"""

import json
import sys
from pathlib import Path
from typing import Any


def answer(directory: Path, words: list[str]) -> dict[str, Any] | None:
    """Return what the API server would answer, None for nothing."""
    files = [Path(word.partition("=")[2]) for word in words if word.startswith("--filename=")]
    objects = [one for file in files for one in json.loads(file.read_text())["items"]]
    if words[0] == "apply":
        nodes = [one for one in objects if one["kind"] == "Node"]
        if "--dry-run=server" not in words:
            (directory / "reports/nodes.yml").write_text(json.dumps({"items": nodes}))
        return {"kind": "List", "items": objects}
    if words[:2] == ["get", "nodes"]:
        hosts = json.loads((directory / "inventory.json").read_text())["all"]["hosts"]
        return {"kind": "List", "items": [{"kind": "Node", "metadata": {"name": name}} for name in hosts]}
    assert words[0] == "get", words
    return None


if __name__ == "__main__":
    found = answer(Path(sys.argv[1]), sys.argv[2:])
    print("" if found is None else json.dumps(found))
