"""The tree is the collection: its links, the names under which its files are imported, and how often Ansible loads them."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.lying_host import READY, make_liar, run_playbook

ROOT = Path(__file__).resolve().parents[2]
LINKS = {
    "plugins/modules": "../library",
    "plugins/module_utils": "../module_utils",
    "collections/ansible_collections/gpu_ready/nodes": "../../..",
    "playbooks/collections": "../collections",
}
"""Ansible finds `collections` beside ansible.cfg, and beside the playbook that the command line names."""
PACKAGE = "ansible_collections.gpu_ready.nodes.plugins"
KINDS = ("action", "callback", "lookup", "modules", "plugin_utils")


def test_the_tree_has_four_links() -> None:
    listed = subprocess.check_output(["git", "ls-files", "-s", "-z"], cwd=ROOT, text=True).split("\0")
    tracked = {line.partition("\t")[2] for line in listed if line.startswith("120000 ")}
    assert {name: str((ROOT / name).readlink()) for name in tracked} == LINKS


def test_no_file_is_loaded_under_two_names() -> None:
    for kind in KINDS:
        for path in sorted((ROOT / "plugins" / kind).rglob("*.py")):
            parts = path.relative_to(ROOT / "plugins").with_suffix("").parts
            importlib.import_module(".".join([PACKAGE, *parts]).removesuffix(".__init__"))
    names: dict[Path, set[int]] = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file and Path(file).resolve().is_relative_to(ROOT) and ".venv" not in Path(file).parts:
            names.setdefault(Path(file).resolve(), set()).add(id(module))
    assert ROOT / "module_utils/gpu_ready/facts/model.py" in names
    assert ROOT / "plugins/action/gpu_node_plan.py" in names
    assert [path for path, found in names.items() if len(found) > 1] == []


COUNT = """
import os, sys

def count(event, args):
    if event == "exec" and getattr(args[0], "co_name", "") == "<module>":
        name = args[0].co_filename
        if "/ansible_collections/gpu_ready/nodes/plugins/" in name and os.path.exists(name):
            with open({log!r}, "a") as log:
                log.write(name.partition("/nodes/")[2] + "\\n")

sys.addaudithook(count)
"""
PLAY = """\
- hosts: "{{ lookup('gpu_ready.nodes.gpu_ready_hosts', 'all') }}"
  gather_facts: false
  tasks:
    - name: Audit
      gpu_ready.nodes.gpu_audit:
    - name: Take the lease
      gpu_ready.nodes.gpu_lease: {state: taken}
    - name: Plan
      gpu_ready.nodes.gpu_node_plan:
"""
"""The first two tasks have the plugin of another name, which the strategy does not load for its own purposes."""


@pytest.mark.host_io
def test_a_run_loads_the_action_plugins_and_the_planner_once(tmp_path: Path) -> None:
    """In the process of ansible-playbook, whose workers inherit them."""
    log = tmp_path / "loads"
    (tmp_path / "python").mkdir()
    (tmp_path / "python/sitecustomize.py").write_text(COUNT.format(log=str(log)))
    (tmp_path / "play.yml").write_text(PLAY)
    answers = {"gpu_node_plan": READY, "gpu_audit": READY, "gpu_lease": {"changed": True}}
    hosts = {name: make_liar(tmp_path, name, answers) for name in ("one", "two")}
    done = run_playbook(tmp_path, tmp_path / "play.yml", hosts, PYTHONPATH=str(tmp_path / "python"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"{name} " in done.stdout and "ok=3" in done.stdout for name in hosts), done.stdout
    loads = Counter(log.read_text().splitlines())
    expected = [
        "action/gpu_host_module.py",
        "action/gpu_node_plan.py",
        "plugin_utils/gpu_ready/plan/compose.py",
    ]
    assert {name: loads[f"plugins/{name}"] for name in expected} == dict.fromkeys(expected, 1), loads
    assert set(loads.values()) == {1}, loads
