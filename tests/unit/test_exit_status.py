"""The exit status of site.yml is 0 only if each host ended in a good state by the report, whatever its answers were."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.limits import give_plans, project_tree
from tests.unit.lying_host import calls, make_liar, run_playbook

pytestmark = pytest.mark.host_io

PLAN = {"gpu_host": True, "steps": [], "refusals": [], "warnings": []}
ROW = {"distribution": "Debian 12", "why": "nothing to do"}
ANSWERS: dict[str, dict[str, Any]] = {
    "not_reached": {"plan": PLAN, "todo": {}, "row": {}},
    "unfinished": {"plan": PLAN | {"steps": [{"id": "nvidia_driver.install"}]}, "todo": {}, "row": ROW},
    "another_form": {"plan": PLAN, "todo": {}, "row": ["x"]},
}
READY = {"plan": PLAN, "todo": {}, "row": ROW}


def test_hosts_outside_the_good_states_fail_and_the_others_cost_one_call(tmp_path: Path) -> None:
    hosts = {
        name: make_liar(tmp_path, name, {"gpu_node_plan": answer})
        for name, answer in (ANSWERS | {"ready": READY}).items()
    }
    done = run_playbook(tmp_path, "site.yml", hosts, given_plans=True, ANSIBLE_STDOUT_CALLBACK="default")
    assert done.returncode == 2, done.stdout
    for name in ANSWERS:
        assert f"fatal: [{name}]: FAILED!" in done.stdout, done.stdout
    assert "fatal: [ready]" not in done.stdout
    assert calls(tmp_path, "ready") == ["gpu_node_plan"]


def test_hosts_in_good_states_end_with_status_0(tmp_path: Path) -> None:
    answers = {"ready": READY, "no_gpu": READY | {"plan": PLAN | {"gpu_host": False}}}
    hosts = {name: make_liar(tmp_path, name, {"gpu_node_plan": answer}) for name, answer in answers.items()}
    done = run_playbook(tmp_path, "site.yml", hosts, given_plans=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_run_for_which_a_file_with_tasks_is_missing_does_not_end_with_status_0(tmp_path: Path) -> None:
    """core 2.16 and 2.19 end the run of all hosts; 2.21 fails the host, and the rescue in provision.yml follows."""
    tree = give_plans(project_tree(tmp_path / "tree"))
    (tree / "roles/gpu_ready/tasks/execute_plan.yml").unlink()
    ready = READY | {"todo": {"docker_engine.install": {"packages": []}}}
    n1 = make_liar(tmp_path, "n1", {"gpu_node_plan": ready})
    done = run_playbook(tmp_path, tree / "site.yml", {"n1": n1}, ANSIBLE_CONFIG=str(tree / "ansible.cfg"))
    assert done.returncode == 4, done.stdout + done.stderr
    assert "Could not find specified file in role: tasks/execute_plan" in done.stderr
    assert set(calls(tmp_path, "n1")) == {"gpu_node_plan", "gpu_lease"}


def test_an_uninstallation_shows_what_there_is_to_show_and_nothing_empty(tmp_path: Path) -> None:
    answers: dict[str, dict[str, Any]] = {
        "full": {
            "actions": ["delete /etc/x"], "stops": ["train (7)"], "kept": ["/etc/y: changed"], "held_by": "Xorg",
            "reboot_required": True, "changed": True,
        },
        "empty": {"actions": [], "stops": [], "kept": [], "reboot_required": False, "changed": False},
    }  # fmt: skip
    hosts = {name: make_liar(tmp_path, name, {"gpu_uninstall": answer}) for name, answer in answers.items()}
    done = run_playbook(tmp_path, "playbooks/uninstall.yml", hosts, ANSIBLE_STDOUT_CALLBACK="default")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = re.findall(r"(?m)^ok: \[(\w+)\] => ?$", done.stdout)
    assert shown == ["full"] * 4, done.stdout
    for words in ("train (7)", "delete /etc/x", "/etc/y: changed", "in use by Xorg"):
        assert words in done.stdout
