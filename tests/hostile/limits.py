"""The playbooks with time limits of seconds, for hosts that never answer."""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = re.compile(r"^(\s*timeout: )(14400|7200|1800|900)\b", re.M)
"""The limits of plays, of the tasks that install or copy, and of those that collect facts."""


def impatient_tree(tree: Path, seconds: int) -> Path:
    """Make a copy of the playbooks and roles with this limit in place of 15 minutes to four hours; return it."""
    for name in ("roles", "playbooks"):
        shutil.copytree(ROOT / name, tree / name, symlinks=True)
    for name in ("library", "module_utils", "plugins"):
        (tree / name).symlink_to(ROOT / name)
    for name in ("site.yml", "ansible.cfg"):
        shutil.copy(ROOT / name, tree)
    for path in (*tree.glob("playbooks/*.yml"), *tree.glob("roles/*/tasks/*.yml")):
        path.write_text(LIMIT.sub(rf"\g<1>{seconds}", path.read_text()))
    return tree
