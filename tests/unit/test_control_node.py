"""What runs on the control node runs as the operator, whatever a site's inventory says about becoming root."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic
from ansible.module_utils.common.yaml import yaml_load

from tests.grid import sampled
from tests.unit.lying_host import READY, ROOT, make_liar, run_playbook

FILES = [*(ROOT / "roles").rglob("tasks/*.yml"), *(ROOT / "playbooks").glob("*.yml")]  # fmt: skip
NESTED = ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers")


def tasks(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        one for entry in entries for one in [entry, *(task for key in NESTED for task in tasks(entry.get(key, [])))]
    ]


DELEGATED = [
    pytest.param(task, id=f"{path.relative_to(ROOT)}: {task['name']}")
    for path in sorted(FILES)
    for task in tasks(yaml_load(path.read_text()))
    if "delegate_to" in task
]


@pytest.mark.parametrize("task", DELEGATED)
def test_a_delegated_task_says_by_a_variable_whether_it_becomes_root(task: dict[str, Any]) -> None:
    # "become: false" would lose against ansible_become in group_vars/all: variables have precedence over keywords.
    assert "become" not in task
    become = task.get("vars", {}).get("ansible_become")
    if task["delegate_to"] == "localhost":
        assert become is False
    else:
        assert become in (True, False)  # gpu_turn names the file of tasks by the operator's variable


def test_delegation_is_the_one_way_to_the_control_node() -> None:
    assert len(DELEGATED) > 12
    for path in FILES:
        text = path.read_text()
        assert "local_action" not in text and "connection: local" not in text, path


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("playbook", "answers"),
    sampled(
        [
            ("site.yml", {"gpu_node_plan": READY}),
            ("playbooks/audit.yml", {"gpu_audit": READY}),
            ("playbooks/upgrade_drivers.yml", {"gpu_node_plan": READY}),
            ("playbooks/bootstrap_python.yml", {}),
        ],
        2,
    ),
)
def test_ansible_become_in_group_vars_does_not_reach_the_control_node(
    tmp_path: Path, playbook: str, answers: dict[str, Any]
) -> None:
    (tmp_path / "group_vars").mkdir()
    (tmp_path / "group_vars/all.json").write_text(
        # Another user than the test's own, to whom Ansible would change without sudo.
        json.dumps({"ansible_become": True, "ansible_become_user": "daemon", "ansible_become_exe": "/no/such/sudo"})
    )
    hosts = {"gpu1": make_liar(tmp_path, "gpu1", answers)}
    done = run_playbook(tmp_path, playbook, hosts, ANSIBLE_STDOUT_CALLBACK="default")
    assert "/no/such/sudo" not in done.stdout, done.stdout
    assert done.returncode == 0, done.stdout + done.stderr


PLAY = """\
- hosts: all
  gather_facts: false
  tasks:
    - gpu_ready.nodes.gpu_python: {printed: "python 3.11 /usr/bin/python3\\nsystem\\nID=debian"}
      register: python
    - ansible.builtin.set_fact: {gpu_upgrade_plan: {failure: no route}}
    - gpu_ready.nodes.gpu_upgrade_fleet: {do: plan}
      register: rollout
    - gpu_ready.nodes.gpu_report: {kind: audit}
      register: audited
    - debug: {msg: "{{ python.interpreter }} {{ rollout.refused.gpu1 }} {{ audited.counts | length }}"}
    - block:
        - gpu_ready.nodes.gpu_python: {printed: "system\\nPRETTY_NAME=\\e[2J"}
      rescue:
        - debug: {msg: "{{ ansible_failed_result.msg }}"}
    - gpu_ready.nodes.gpu_report: {kind: audit, format: pdf}
"""


@pytest.mark.host_io
def test_what_is_computed_on_the_control_node_asks_no_host(tmp_path: Path) -> None:
    (tmp_path / "play.yml").write_text(PLAY)
    nowhere = {"gpu1": {"ansible_connection": "ssh", "ansible_host": "192.0.2.1", "ansible_become": True}}
    done = run_playbook(tmp_path, tmp_path / "play.yml", nowhere, ANSIBLE_STDOUT_CALLBACK="default")
    assert "/usr/bin/python3 no route 1" in done.stdout, done.stdout + done.stderr
    assert "?[2J has no Python 3" in done.stdout and "\x1b[2J" not in done.stdout, done.stdout
    assert "value of format must be one of: table, diff, json, csv, got: pdf" in done.stdout, done.stdout
    assert done.returncode == 2


@pytest.mark.parametrize("name", ["gpu_python", "gpu_report", "gpu_upgrade_fleet"])
def test_a_module_without_its_action_plugin_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Module:
        params: dict[str, Any] = {}
        check_mode = False

        def __init__(self, **_: Any) -> None:
            pass

        def fail_json(self, msg: str) -> None:
            raise SystemExit(msg)

    monkeypatch.setattr(basic, "AnsibleModule", Module)
    with pytest.raises(SystemExit, match=f"Name the module gpu_ready.nodes.{name} in the task"):
        importlib.import_module(f"ansible_collections.gpu_ready.nodes.plugins.modules.{name}").main()
