"""A sample of the campaign over hostile hosts (tests/hostile), and that the campaign finds what it must find."""

from pathlib import Path

import pytest

from tests.hostile.campaign import HONEST, INTERPRETER, ROOT, Campaign, Cell, Place, cells, groups, run
from tests.hostile.scenes import OPERATOR_FILES, Scene, plain_answers, scenes

pytestmark = pytest.mark.host_io
SAMPLE: dict[str, dict[str, tuple[str, ...]]] = {
    "audit_csv": {"gpu_audit": ("templates", "no_json", "lists", "numbers", "unreachable")},
    "capture": {"gpu_capture": ("escapes", "templates", "climbing_paths", "flood", "no_keys")},
    "kubernetes": {"gpu_kubernetes_labels": ("no_keys", "foreign_labels", "other_formulas")},
    "kubernetes_apply": {"gpu_kubernetes_labels": ("foreign_labels", "other_hosts", "commands")},
    "undrain": {"gpu_drain_journal": ("drained_elsewhere", "no_keys", "templates")},
    "site_facts": {
        "gpu_node_plan": (
            "nulls",
            "templates",
            "nothing_to_do",
            "a_plan",
            "steal_by_facts",
            "endless_versions",
        )
    },
}
NOT_ATTACKED = {
    "gpu_drain_kubernetes": "runs on the control node or on the host with kubectl, which the operator names",
    "gpu_kubernetes_objects": "runs on the control node",
    "gpu_kubernetes_operator": "runs on the control node",
    "gpu_kubernetes_verify": "runs on the control node",
    "gpu_node_facts": "no playbook uses it",
    "gpu_package_index": "gpu_node_plan asks it: test_plan_action.py has its wrong answers",
    "gpu_python": "runs on the control node; what it reads of a host is the output of `raw`",
    "gpu_report": "runs on the control node",
    "gpu_upgrade_fleet": "runs on the control node",
}
"""Modules of library/ that no cell attacks, and why."""
LONG = ("kubernetes",)
"""Scenes that attack the same plays as kubernetes_apply."""


def operator_files(directory: Path) -> Path:
    """Make the installers of the operator."""
    directory.mkdir()
    for name in OPERATOR_FILES:
        (directory / name).write_text("installer")
    return directory


def trusting(directory: Path) -> Scene:
    """Return a playbook that trusts its hosts."""
    (site,) = [one for one in scenes(directory) if one.name == "site"]
    answers = {**plain_answers(), "gpu_node_plan": site.answers["gpu_node_plan"]}
    return Scene("trusting", str(ROOT / "tests/hostile/trusting.yml"), {}, answers, ("gpu_node_plan",))


def test_the_campaign_finds_what_a_trusting_playbook_gives_away(tmp_path: Path) -> None:
    scene = trusting(tmp_path)
    kinds = ("absolute_paths", "task_files", "failed_with_escapes", "no_keys")
    chosen = [Cell(scene, "gpu_node_plan", kind) for kind in kinds]
    campaign = Campaign(tmp_path, 120)
    found = campaign.test(scene, chosen)
    assert "private key" in found["h-gpu-node-plan-absolute-paths"]
    assert "ran on the control node" in found["h-gpu-node-plan-task-files"]
    assert found["h-gpu-node-plan-no-keys"] == ""
    other = campaign.test(scene, [Cell(scene, "gpu_node_plan", "other_hosts")])
    assert f"{HONEST[0]}: without" in other["h-gpu-node-plan-other-hosts"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] if name in LONG else []) for name in SAMPLE]
)
def test_a_hostile_host_gets_nothing_and_stops_nobody(tmp_path: Path, name: str) -> None:
    (scene,) = [one for one in scenes(operator_files(tmp_path / "files")) if one.name == name]
    chosen = [cell for cell in cells([scene]) if cell.attack in SAMPLE[name].get(cell.module, ())]
    assert len(chosen) == sum(map(len, SAMPLE[name].values()))
    found = Campaign(tmp_path / "runs", 120).test(scene, chosen)
    assert found == dict.fromkeys(found, "")


def test_a_shell_that_prints_no_text_gets_the_message_of_a_host_without_python(tmp_path: Path) -> None:
    (scene,) = [one for one in scenes(operator_files(tmp_path / "files")) if one.name == "site_python"]
    hostile = [Cell(scene, "raw", kind) for kind in ("no_text", "nothing")]
    ran = run(Place(tmp_path / "run"), scene, hostile, 120)
    assert "h-raw-no-text, h-raw-nothing: failed\n  bootstrap_python | Decide: this system has no Python 3" in ran.text


def test_every_module_that_runs_on_hosts_is_attacked(tmp_path: Path) -> None:
    attacked = {cell.module for cell in cells(scenes(tmp_path))}
    modules = {path.stem for path in (ROOT / "library").glob("*.py")}
    assert modules - attacked == set(NOT_ATTACKED)


def test_every_cell_is_in_one_group(tmp_path: Path) -> None:
    chosen = cells(scenes(tmp_path))
    grouped = [cell for group in groups(chosen) for cell in group]
    assert len(grouped) == len(chosen) == len({(cell.scene.name, cell.name) for cell in grouped})


def test_the_attackers_python_runs_on_the_oldest_hosts() -> None:
    assert 'f"' not in INTERPRETER.read_text() and "import annotations" not in INTERPRETER.read_text()
