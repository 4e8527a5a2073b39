"""kubectl of the operator in the hostile campaign: a cluster whose nodes are the hosts of the run.

usage: cluster.py DIRECTORY ARGUMENTS...      DIRECTORY: that of the run; what is applied to nodes is kept in its reports

Every call is kept.
"""

import json
import sys
from pathlib import Path
from typing import Any


def listed(kind: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a list as kubectl prints it."""
    return {"kind": "List", "items": [{"kind": kind, **one} for one in found]}


def node(name: str) -> dict[str, Any]:
    """Return a node with one GPU."""
    ready = [{"type": "Ready", "status": "True"}]
    return {"metadata": {"name": name}, "status": {"conditions": ready, "allocatable": {"nvidia.com/gpu": "1"}}}


def answer(directory: Path, words: list[str]) -> dict[str, Any]:
    """Return what the API server answers."""
    named = [word for word in words if not word.startswith("-")]
    if named[0] == "apply":
        files = [Path(word.partition("=")[2]) for word in words if word.startswith("--filename=")]
        objects = [one for file in files for one in json.loads(file.read_text())["items"]]
        nodes = [one for one in objects if one["kind"] == "Node"]
        if nodes and "--dry-run=server" not in words:
            (directory / "reports/nodes.yml").write_text(json.dumps({"items": nodes}))
        return {"kind": "List", "items": objects}
    if named[0] == "version":
        return {"serverVersion": {"gitVersion": "v1.35.0"}}
    assert named[0] == "get", words
    hosts = list(json.loads((directory / "inventory.json").read_text())["all"]["hosts"])
    return listed("Node", [node(name) for name in hosts]) if named[1:2] == ["nodes"] else listed("Pod", [])


def main(directory: Path, words: list[str]) -> None:
    """Keep a call and print its answer."""
    with (directory / "kubectl-calls").open("a") as calls:
        calls.write(json.dumps(words) + "\n")
    print(json.dumps(answer(directory, words)), end="")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
