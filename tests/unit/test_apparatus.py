"""What is not the product stays small, and each tool says who runs it, when, and which defect it found last."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPARATUS = ("lab", "bench", "tools", "tests/hostile", "docs/dev/campaign.md", "docs/dev/benchmarks.md")
"""Simulated hosts, measurements, tools, hostile answers, and the pages that runs write."""
LIMIT = 20_000
"""Lines of all of it. Lower it with every cut; 20,000 is the aim."""
ROW = re.compile(r"\| (`[^|]+`) \| ([^|]+) \| ([^|]+) \|")


def tools() -> dict[str, tuple[str, str]]:
    """Return who runs a tool and when, and what it found, by the paths in the table of checking.md."""
    text = (ROOT / "docs/dev/checking.md").read_text(encoding="utf-8")
    table = text.partition("## Tools")[2].partition("\n## ")[0]
    return {path: (row[2], row[3]) for row in ROW.finditer(table) for path in re.findall(r"`([^`]+)`", row[1])}


@pytest.mark.host_io
def test_the_apparatus_has_at_most_so_many_lines() -> None:
    names = subprocess.run(["git", "ls-files", *APPARATUS], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    files = [ROOT / name for name in names.splitlines() if (ROOT / name).is_file()]
    assert len(files) > 100
    assert sum(path.read_bytes().count(b"\n") for path in files) <= LIMIT


def test_every_tool_says_who_runs_it_and_what_it_found() -> None:
    found = tools()
    assert [path for path in found if not (ROOT / path).exists()] == []
    kept = [path for path in (ROOT / "tools").iterdir() if path.name not in ("__init__.py", "__pycache__")]
    assert {f"tools/{path.name}" for path in kept} == {path for path in found if path.startswith("tools/")}
    assert {"bench/run.py", "bench/simulation", "tests/hostile"} <= set(found)
    assert [path for path, (who, defect) in found.items() if not (who.strip() and defect.strip())] == []
