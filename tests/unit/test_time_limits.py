"""A host that never answers fails by itself, in every play, and the others finish."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.hostile.limits import impatient_tree
from tests.unit.lying_host import ROOT, make_liar, run_playbook

LONGEST_S = 4 * 3600
IMPORTING = ("rollback_drivers.yml", "site.yml")
PLAYBOOKS = [path for path in sorted((ROOT / "playbooks").glob("*.yml")) if path.name not in IMPORTING]
READING = {"gpu_node_plan": "gpu_plan", "gpu_audit": "gpu_audit"}
IDLE: dict[str, Any] = {
    "plan": {"refusals": [], "warnings": [], "steps": [], "gpu_host": True, "converged": True, "summary": "ready"},
    "todo": {}, "lines": [], "row": {"distribution": "Debian 12", "why": "nothing to do"}, "refusal": "", "upgrade": {}, "verification": None, "lease": "",
}  # fmt: skip


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_every_play_that_changes_hosts_has_a_time_limit(path: Path) -> None:
    plays = [play for play in yaml.safe_load(path.read_text()) if play.get("become")]
    assert plays
    for play in plays:
        assert 0 < play["timeout"] <= LONGEST_S, play["name"]


@pytest.mark.parametrize(("module", "role"), READING.items())
def test_collecting_facts_has_a_shorter_one(module: str, role: str) -> None:
    [task] = yaml.safe_load((ROOT / "roles" / role / "tasks/look.yml").read_text())
    assert module in task and task["timeout"] == 900


@pytest.fixture
def impatient(tmp_path: Path) -> Path:
    """The playbooks with a limit of seconds."""
    return impatient_tree(tmp_path / "tree", 30)


@pytest.mark.host_io
@pytest.mark.parametrize(("playbook", "module"), [("site.yml", "gpu_node_plan"), ("playbooks/audit.yml", "gpu_audit")])
def test_the_others_finish_when_a_host_never_answers(
    tmp_path: Path, impatient: Path, playbook: str, module: str
) -> None:
    answers = {"gpu_node_plan": IDLE, "gpu_audit": {"audit": {"state": "ok"}}}
    hosts = {
        "hung": make_liar(tmp_path, "hung", {module: "import time; time.sleep(900)"}),
        "sound": make_liar(tmp_path, "sound", {module: answers[module]}),
    }
    began = time.monotonic()
    done = run_playbook(tmp_path, impatient / playbook, hosts, limit_s=850)
    text = " ".join(done.stdout.split())
    assert done.returncode == 2 and time.monotonic() - began < 840
    assert "log in and look for processes in state D" in text, done.stdout + done.stderr
    assert "sound" not in [word for line in done.stdout.splitlines() if "failed" in line for word in line.split()], text
