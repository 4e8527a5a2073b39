"""Copies of the project that differ in one thing: time limits of seconds, or plans as the answers of hosts."""

import re
import shutil
from pathlib import Path

from tests.unit.step_limits import shorten

ROOT = Path(__file__).resolve().parents[2]
LIMIT = re.compile(r"^(\s*timeout: )(14400|7200|1800|900)\b", re.M)
"""The limits of plays, of the tasks that copy, and of those that collect facts."""


def project_tree(tree: Path) -> Path:
    """Make a copy of the playbooks and roles, with links to the rest; return it."""
    for name in ("roles", "playbooks", "meta", "collections"):
        shutil.copytree(ROOT / name, tree / name, symlinks=True)
    for name in ("library", "module_utils", "catalog"):
        (tree / name).symlink_to(ROOT / name)
    (tree / "plugins").mkdir()
    for path in (ROOT / "plugins").iterdir():
        (tree / "plugins" / path.name).symlink_to(path.readlink() if path.is_symlink() else path)
    for name in ("site.yml", "ansible.cfg", "galaxy.yml"):
        shutil.copy(ROOT / name, tree)
    return tree


def impatient_tree(tree: Path, seconds: int) -> Path:
    """Make a copy with this limit in place of 15 minutes to four hours; return it."""
    for path in (*project_tree(tree).glob("playbooks/*.yml"), *tree.glob("roles/*/tasks/*.yml")):
        path.write_text(LIMIT.sub(rf"\g<1>{seconds}", path.read_text()))
    return shorten(tree, seconds)


def give_plans(tree: Path) -> Path:
    """Let the hosts of a copy answer with plan, audit and verdict themselves, which the plugin of other modules accepts.

    For tests of what tasks do with a plan, whatever facts it could come from. Return the copy.
    """
    with (tree / "meta/runtime.yml").open("a") as routing:
        for module in ("gpu_node_plan", "gpu_audit", "gpu_verify"):
            routing.write(f"    {module}: {{action_plugin: gpu_ready.nodes.gpu_host_module}}\n")
    return tree
