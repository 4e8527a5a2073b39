"""The three task files of a rollout that run once for all hosts, with answers of the plays between them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.rollout import record
from tests.unit.lying_host import run_playbook

pytestmark = pytest.mark.host_io

PLAY = """\
- name: Plan
  hosts: all
  gather_facts: false
  tasks:
    - name: Plan one host
      ansible.builtin.set_fact: {gpu_upgrade_plan: "{{ planned }}"}
      when: planned is defined
- name: Decide the order
  hosts: all
  gather_facts: false
  tasks:
    - name: Decide
      ansible.builtin.import_role: {name: gpu_ready.nodes.gpu_upgrade, tasks_from: plan_rollout}
- name: Prepare
  hosts: "{{ 'gpu_upgrade_due' if 'gpu_upgrade_due' in (groups | default({})) else [] }}"
  gather_facts: false
  tasks:
    - name: Prepare one host
      ansible.builtin.set_fact: {gpu_upgrade_prepared: {result: "{{ prepared | default({}) }}"}}
- name: Line up prepared hosts
  hosts: "{{ 'gpu_upgrade_due' if 'gpu_upgrade_due' in (groups | default({})) else [] }}"
  gather_facts: false
  tasks:
    - name: Line up
      ansible.builtin.import_role: {name: gpu_ready.nodes.gpu_upgrade, tasks_from: plan_batches}
- name: Roll
  hosts: "{{ 'gpu_upgrade_roll' if 'gpu_upgrade_roll' in (groups | default({})) else [] }}"
  gather_facts: false
  serial: "{{ (hostvars | default({}))[(groups | default({})).gpu_upgrade_roll | default(['none']) | first].gpu_upgrade_lineup.sizes | default([1]) }}"
  tasks:
    - name: Show the batch
      ansible.builtin.debug: {msg: "batch {{ ansible_play_batch | join(' ') }}"}
      run_once: true
    - name: Begin
      ansible.builtin.command:
        argv: ["{{ python }}", -c, "{{ begin }}", "{{ gpu_upgrade_fleet.record }}", "{{ inventory_hostname }}", "{{ turn | default('') }}"]
      when: inventory_hostname not in groups.gpu_upgrade_watch | default([])
    - name: Turn
      ansible.builtin.set_fact:
        gpu_drain_turn: {result: {state: "{{ turn }}", from: 580.1, to: 595.1, way: live, seconds_unavailable: 7, reason: as asked}, began: 5, ended: 12}
      when: turn is defined
- name: Report
  hosts: all
  gather_facts: false
  tasks:
    - name: Report
      ansible.builtin.import_role: {name: gpu_ready.nodes.gpu_upgrade, tasks_from: report}
"""
BEGIN = """\
import sys
from pathlib import Path
from plugins.plugin_utils.gpu_ready.rollout.record import RolloutFile
path, host, state = sys.argv[1:]
assert RolloutFile(Path(path)).begin_turn(host, 5) == ""
if state:
    RolloutFile(Path(path)).end_turn(host, state, 12, "as asked")
"""
ROOT = Path(__file__).resolve().parents[2]


def planned(state: str = "due", **more: Any) -> dict[str, Any]:
    upgrade = {
        "state": state,
        "opened": False,
        "from": "580.1",
        "to": "595.1",
        "way": "live",
        "why": "2x T4",
        "back": None,
    }
    return {
        "planned": {"excluded": False, "upgrade": upgrade | {"journal": None, "installed": None} | more, "failure": ""}
    }


def run(tmp_path: Path, hosts: dict[str, dict[str, Any]], *arguments: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "play.yml").write_text(PLAY)
    local = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "python": sys.executable,
        "begin": BEGIN,
    }
    given = {name: local | one for name, one in hosts.items()}
    return run_playbook(
        tmp_path, tmp_path / "play.yml", given, *arguments, PYTHONPATH=str(ROOT), ANSIBLE_STDOUT_CALLBACK="default"
    )


def test_a_rollout_is_planned_lined_up_reported_and_recorded(tmp_path: Path) -> None:
    hosts = {
        "a": planned() | {"turn": "upgraded"},
        "b": planned("current"),
        "c": planned() | {"prepared": {"state": "left_out", "reason": "the disk is full"}},
        "d": planned() | {"turn": "rolled_back"},
        "e": planned(),  # its turn begins, and nothing more is heard of it
        "f": planned(),
    }
    done = run(tmp_path, hosts, "-e", '{"gpu_upgrade_exclude": ["f"], "gpu_upgrade_max_failures": 2}')
    text = done.stdout
    assert done.returncode == 2, text + done.stderr
    assert "4 to do, 1 current, 0 refused, 1 excluded; batches of 1, 1, 1, 1" in text, text
    assert [
        f"batch {one}" in text for one in ("a gpu_upgrade_batch_1", "d gpu_upgrade_batch_2", "e gpu_upgrade_batch_3")
    ] == [True] * 3
    (file,) = (tmp_path / ".gpu-ready").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
    (found,) = record.read_records(file.parent)
    assert (found.direction, found.version, found.runs[0].hosts) == ("upgrade", "0.1.0", ["a", "c", "d", "e"])
    assert found.runs[0].targets == dict.fromkeys("acde", "595.1") and found.done == ["a"]
    report = json.loads((tmp_path / "reports/latest-upgrade.json").read_text())["hosts"]
    states = {"a": "upgraded", "b": "current", "c": "left_out", "d": "rolled_back", "e": "failed", "f": "excluded"}
    assert {name: one["state"] for name, one in report.items()} == states
    assert [[one["run"] for one in report[name]["turns"]] for name in "ace"] == [[1], [], [1]]
    failed = text.partition("This host is not in the desired state")[2]
    assert [f"fatal: [{name}" in failed for name in "abcdef"] == [False, False, True, True, True, False]


def test_a_check_writes_nothing_and_a_refusal_stops_before_the_record(tmp_path: Path) -> None:
    hosts = {"a": planned(), "b": planned("refused", refusal="The disk is full."), "c": {}}
    for arguments in ([], ["--check"], ["--check", "-e", "gpu_upgrade_leave_out=true"]):
        done = run(tmp_path, hosts, *arguments)
        assert "1 to do, 0 current, 2 refused" in done.stdout and "c: refused" in done.stdout, done.stdout
        assert ("2 of 3 hosts cannot be upgraded, see the table (b, c). Nothing was" in done.stdout) == (
            "leave" not in str(arguments)
        )
        assert not (tmp_path / ".gpu-ready").exists()
        assert "not reached" not in done.stdout, "nothing is reported of what only was planned"
        assert done.returncode == (0 if "leave" in str(arguments) else 2), done.stdout


def test_a_rollout_pauses_after_its_canary_and_the_same_command_continues(tmp_path: Path) -> None:
    hosts = {name: planned() | {"turn": "upgraded"} for name in "abc"}
    pause = (
        "-e",
        "gpu_upgrade_pause_after=canary",
        "-e",
        '{"gpu_upgrade_canaries": ["b"]}',
        "-e",
        f"gpu_ready_state_dir={tmp_path}/state",
    )
    done = run(tmp_path, hosts, *pause)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 hosts: 2 paused, 1 upgraded" in done.stdout and "2 hosts wait. The same command continues." in done.stdout
    hosts["b"] = planned("current")
    second = run(tmp_path, hosts, *pause)
    assert second.returncode == 0 and "3 hosts: 2 upgraded, 1 current" in second.stdout, second.stdout
    assert "Upgrades 2 hosts to 595.1: resumes rollout" in second.stdout and "UTC), 1 done." in second.stdout
    (found,) = record.read_records(tmp_path / "state")
    assert found.done == ["b", "a", "c"] and len(found.runs) == 2
    (tmp_path / "state/stop").touch()
    stopped = run(tmp_path, hosts, *pause)
    assert stopped.returncode == 2 and f"{tmp_path}/state/stop. Remedy: delete it" in stopped.stdout


def test_settings_of_the_rollout_that_differ_are_refused_and_those_of_a_play_are_read(tmp_path: Path) -> None:
    hosts = {"a": planned(), "b": planned() | {"gpu_upgrade_max_failures": "{{ 2 + 3 }}"}}
    done = run(tmp_path, hosts, "--check")
    text = " ".join(done.stdout.split())
    assert "gpu_upgrade_max_failures: it is a setting of the whole rollout" in text and "0 on a; 5 on b" in text, text
    wrong = run(tmp_path, hosts, "--check", "-e", "gpu_upgrade_max_failures=few")
    assert "gpu_upgrade_max_failures is 'few', but must be" in wrong.stdout, wrong.stdout
    (tmp_path / "outer.yml").write_text(
        "- import_playbook: play.yml\n  vars: {gpu_upgrade_backwards: true, gpu_upgrade_rollout: 7}\n"
    )
    changed: dict[str, Any] = {"journal": {"phase": "done", "to": "595.1", "rollout": 7}, "back": {"a": "b"}}
    local = {"ansible_connection": "local"}
    given = {name: planned(**changed) | local for name in "ab"}
    back = run_playbook(tmp_path, tmp_path / "outer.yml", given, "--check", ANSIBLE_STDOUT_CALLBACK="default")
    undoes = "Rolls back 2 hosts to 595.1: undoes rollout 7 (1970-01-01 00:00 UTC, to 595.1)."
    assert undoes in back.stdout, back.stdout
