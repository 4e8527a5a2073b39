"""A repair of packages is followed by a new plan: it may remove packages that the first plan took for installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from tests.unit.lying_host import ROOT, calls, make_liar, run_playbook

ROW = {"distribution": "Debian 12", "why": "nothing to do"}
HEADERS = {"packages": [], "optional": [], "kernel": "6.1.0-50-amd64"}


def answer(*refusals: str, **todo: Any) -> dict[str, Any]:
    plan = {
        "gpu_host": True,
        "steps": [],
        "refusals": [{"code": one, "message": one, "remedy": ""} for one in refusals],
    }
    return {"plan": plan, "todo": todo, "row": ROW, "refusal": "; ".join(refusals)}


FIRST = answer(**{"gpu_plan.repair_packages": {}})
CHANGED: dict[str, Any] = {
    "changed": True,
    "installed": {},
    "removed": [],
    "repaired": ["linux-headers"],
    "versions": {},
}
CASES: dict[str, tuple[list[dict[str, Any]], bool, int, list[str]]] = {
    "the new plan is executed": (
        [FIRST, answer(**{"kernel_headers.install": HEADERS})], True, 0,
        ["gpu_node_plan", "gpu_packages", "gpu_node_plan", "gpu_packages"],
    ),
    "the new plan refuses": (
        [FIRST, answer("module_of_others_fails")], True, 2, ["gpu_node_plan", "gpu_packages", "gpu_node_plan"],
    ),
    "a second repair is not tried": ([FIRST, FIRST], True, 0, ["gpu_node_plan", "gpu_packages", "gpu_node_plan"]),
    "nothing was to be repaired": ([FIRST], False, 0, ["gpu_node_plan", "gpu_packages"]),
}  # fmt: skip


@pytest.mark.host_io
@pytest.mark.parametrize("case", CASES)
def test_a_repair_that_changed_something_is_followed_by_a_new_plan(tmp_path: Path, case: str) -> None:
    plans, changed, rc, called = CASES[case]
    repair = CHANGED if changed else CHANGED | {"changed": False, "repaired": []}
    answers = {"gpu_node_plan": plans, "gpu_packages": repair, "gpu_lease": {"changed": True}}
    host = make_liar(tmp_path, "n1", answers)
    done = run_playbook(tmp_path, "site.yml", {"n1": host}, given_plans=True)
    assert [name for name in calls(tmp_path, "n1") if name != "gpu_lease"] == called, done.stdout
    assert done.returncode == rc, done.stdout
    assert rc == 0 or "module_of_others_fails" in done.stdout


VARIABLES = {
    "roles/gpu_ready/tasks/main.yml": {"gpu_plan_part"},
    "playbooks/provision.yml": set(),
}
"""Whoever may repair packages, with what the new plan must be given as the first was."""


def tasks(value: Any) -> list[dict[str, Any]]:
    """All tasks of a file, also those in blocks."""
    if isinstance(value, list):
        return [task for one in value for task in tasks(one)]
    inner = [task for name in ("tasks", "block", "rescue", "always") for task in tasks(value.get(name, []))]
    return [value, *inner] if isinstance(value, dict) else []


def test_the_new_plan_is_for_the_same_as_the_first() -> None:
    found = {}
    for file in sorted([*(ROOT / "roles").glob("*/tasks/*.yml"), *(ROOT / "playbooks").glob("*.yml")]):
        for task in tasks(yaml_load(file.read_text()) or []):
            role = task.get("ansible.builtin.include_role") or task.get("ansible.builtin.import_role") or {}
            planning = role.get("name") == "gpu_ready.nodes.gpu_plan"
            if planning and role.get("tasks_from") in ("show_plan", "repair_packages"):
                found[str(file.relative_to(ROOT))] = set(task.get("vars", {}))
    assert found == VARIABLES
