"""Draw statements of the project by the commit id, change each in one way, and see whether the fast tests notice.

docs/dev/checking.md says who runs it. A copy of the commit is changed in build/mutants. First the unit tests named like
the file or its directory run, then all that start no program, or with --programs those too. A mutant that no test fails
for survives, and so does one for which they do not end in time: its file and line are printed.
"""

from __future__ import annotations

import argparse
import ast
import copy
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build/mutants"
PLACES = (
    "module_utils/gpu_ready/packaging",
    "module_utils/gpu_ready/drain",
    "module_utils/gpu_ready/upgrade",
    "plugins/plugin_utils/gpu_ready/plan",
    "plugins/plugin_utils/gpu_ready/rollout",
    "plugins/plugin_utils/gpu_ready/execute",
    "plugins/plugin_utils/gpu_ready/turn",
)
SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
LIMIT = 1800
"""Seconds for the tests of one mutant; they take a minute without a failure, ten with programs."""


class Mutant(NamedTuple):
    """A file with one change."""

    path: Path
    line: int
    what: str
    text: str


def changes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every change of a file as the number of its node in the order of `ast.walk`, and what it does."""
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, (ast.If, ast.IfExp, ast.While)):
            yield number, "condition negated"
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPPED:
            yield number, "comparison turned round"
        elif isinstance(node, ast.BoolOp):
            yield number, "and/or swapped"
        elif isinstance(node, ast.Return) and node.value is not None:
            yield number, "returns None"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield number, "call left out"


def mutate(tree: ast.Module, number: int) -> tuple[int, str]:
    """Return the line and the text of a file with one change."""
    changed = copy.deepcopy(tree)
    node = list(ast.walk(changed))[number]
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPPED[type(node.ops[0])]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, (ast.Return, ast.Expr)):
        node.value = ast.Constant(None)
    return getattr(node, "lineno", 0), ast.unparse(ast.fix_missing_locations(changed))


def draw(count: int, seed: str, places: list[str]) -> list[Mutant]:
    """Return mutants, each of another node."""
    found = []
    for place in places:
        for path in sorted((ROOT / place).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += [(path, tree, number, what) for number, what in changes(tree)]
    chosen = random.Random(seed).sample(found, min(count, len(found)))
    return [
        Mutant(path, line, what, text) for path, tree, number, what in chosen for line, text in [mutate(tree, number)]
    ]


def is_noticed(mutant: Mutant, chosen: list[str]) -> bool:
    """Return whether a test fails for a mutant; ``chosen``: which tests, as options of pytest."""
    target = COPY / mutant.path.relative_to(ROOT)
    before = target.read_text(encoding="utf-8")
    target.write_text(mutant.text, encoding="utf-8")
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen]
    words = {mutant.path.stem, mutant.path.parent.name}
    near = sorted(str(path) for word in words for path in (COPY / "tests/unit").glob(f"test_*{word}*.py"))
    try:
        for tests in [["-n0", *near]] if near else []:
            if (
                subprocess.run([*pytest, *tests], cwd=COPY, capture_output=True, timeout=LIMIT, check=False).returncode
                == 1
            ):
                return True
        everything = [*pytest, "-n", "2", "tests/unit"]
        return subprocess.run(everything, cwd=COPY, capture_output=True, timeout=LIMIT, check=False).returncode == 1
    except subprocess.TimeoutExpired:
        return False
    finally:
        target.write_text(before, encoding="utf-8")


def main() -> int:
    """Draw mutants, try each, print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--programs", action="store_true", help="also the tests of `make programs`")
    parser.add_argument("places", nargs="*", default=list(PLACES), help="directories to draw from")
    options = parser.parse_args()
    git = ["git", "-C", str(ROOT)]
    seed = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout.strip()
    shutil.rmtree(COPY, ignore_errors=True)
    subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(COPY)], check=True)
    began, survivors = time.monotonic(), []
    mutants = draw(options.count, seed, options.places)
    for number, mutant in enumerate(mutants, 1):
        if not is_noticed(mutant, [] if options.programs else ["-m", "not host_io"]):
            survivors.append(mutant)
            print(f"{mutant.path.relative_to(ROOT)}:{mutant.line}: {mutant.what}: survives", flush=True)
        print(
            f"{number} of {len(mutants)}, {len(survivors)} survive, {time.monotonic() - began:.0f} s", file=sys.stderr
        )
    print(f"{seed[:8]}: {len(mutants) - len(survivors)} of {len(mutants)} noticed")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
