"""A repair of packages is followed by a new plan: it may remove packages that the first plan took for installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.lying_host import calls, make_liar, run_playbook

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
