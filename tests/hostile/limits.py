"""Copies of the project that differ in one thing: time limits of seconds, or plans as the answers of hosts."""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = re.compile(r"^(\s*timeout: )(14400|7200|1800|900)\b", re.M)
"""The limits of plays, of the tasks that install or copy, and of those that collect facts."""


def project_tree(tree: Path) -> Path:
    """Make a copy of the playbooks and roles, with links to the rest; return it."""
    for name in ("roles", "playbooks"):
        shutil.copytree(ROOT / name, tree / name, symlinks=True)
    for name in ("library", "module_utils", "plugins"):
        (tree / name).symlink_to(ROOT / name)
    for name in ("site.yml", "ansible.cfg"):
        shutil.copy(ROOT / name, tree)
    return tree


def impatient_tree(tree: Path, seconds: int) -> Path:
    """Make a copy with this limit in place of 15 minutes to four hours; return it."""
    project_tree(tree)
    for path in (*tree.glob("playbooks/*.yml"), *tree.glob("roles/*/tasks/*.yml")):
        path.write_text(LIMIT.sub(rf"\g<1>{seconds}", path.read_text()))
    return tree


def give_plans(tree: Path) -> Path:
    """Let the hosts of a copy answer gpu_node_plan with the plan itself, which the plugin of all other modules accepts.

    For tests of what tasks do with a plan, whatever facts it could come from. Return the copy.
    """
    (tree / "plugins").unlink()
    (tree / "plugins/action").mkdir(parents=True)
    for path in (ROOT / "plugins").iterdir():
        if path.name != "action":
            (tree / "plugins" / path.name).symlink_to(path)
    for path in (ROOT / "plugins/action").glob("*.py"):
        plugin = ROOT / "plugins/answers.py" if path.stem == "gpu_node_plan" else path
        (tree / "plugins/action" / path.name).symlink_to(plugin)
    return tree
