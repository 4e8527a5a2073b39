"""What a run prints that ends before its report: the states of its hosts, and the commands to resume and to undo it."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.progress import interrupted, lines

from plugins.plugin_utils.fleet_report.commands import sibling_command
from plugins.plugin_utils.gpu_ready.rollout import fold, record

runs: Any = importlib.import_module("ansible_collections.gpu_ready.nodes.plugins.plugin_utils.interrupted_run")
HOSTS = ["n1", "n2", "n3", "n4", "n10"]


@pytest.fixture
def progress() -> Any:
    made = lines.Progress(iter([0.0, *[130.0] * 200]).__next__)
    made.batch_starts("Roll", HOSTS, HOSTS, pinned=True)
    return made


def printed_lines(progress: Any, steps: Any = None, earlier: Any = None, **more: Any) -> list[str]:
    found = interrupted.interruption(progress, earlier or {}, {"n2": "580.1 -> 595.2"})
    given = {"by_user": True, "changes": True} | more
    shown: list[str] = interrupted.interruption_lines(found, steps or interrupted.NextSteps(), **given)
    return shown


def test_each_host_is_in_one_state_and_the_commands_follow(progress: Any) -> None:
    progress.step_starts("n2", "switch", "nvidia_driver.install")
    progress.step_starts("n3", "lease", "")  # changes nothing
    progress.host_ends("n1", lines.GOOD)
    progress.step_starts("n4", "verify", "")
    progress.host_ends("n4", lines.BAD)
    steps = interrupted.NextSteps("ansible-playbook playbooks/rollback_drivers.yml", "reports/x.html")
    assert printed_lines(progress, steps) == [
        "Interrupted after 2 min. Nothing more is begun. What runs there at this moment may still come to its end, such as "
        "a package manager.",
        "  in the middle:",
        "    n2: installing the driver, 580.1 -> 595.2",
        "  done: n1",
        "  failed: n4",
        "  not begun, unchanged: n3, n10",
        "Resume: the same command.",
        "Undo: ansible-playbook playbooks/rollback_drivers.yml",
        "Report: reports/x.html",
    ]
    resumed = printed_lines(progress, steps, {"n10": "draining, begun by an earlier run", "n1": "x"})
    assert resumed[3:6] == ["    n10: draining, begun by an earlier run", "  done: n1", "  failed: n4"]


def test_where_nothing_was_changed_nothing_is_undone(progress: Any) -> None:
    progress.step_starts("n2", "prestage", "nvidia_driver.repository")
    progress.host_ends("n1", lines.GOOD)  # it was in the desired state
    assert printed_lines(progress) == [
        "Interrupted after 2 min. Nothing more is begun.",
        "  done: n1",
        "  not begun, unchanged: n2, n3, n4, n10",
        "Resume: the same command.",
        "Undo: not needed, no host was changed.",
    ]
    assert printed_lines(progress, changes=False)[1:] == [
        "  done: n1",
        "  not asked yet: n2, n3, n4, n10",
        "No host was changed. Repeat: the same command.",
    ]
    assert (
        printed_lines(progress, by_user=False)[0]
        == "Ended early by the error above, after 2 min. Nothing more is begun."
    )


@pytest.mark.parametrize(
    ("called", "command"),
    [
        ("site.yml", "ansible-playbook playbooks/uninstall.yml -i gpu_hosts --limit n1,n2"),
        ("../x/playbooks/site.yml", "ansible-playbook ../x/playbooks/uninstall.yml -i gpu_hosts --limit n1,n2"),
        ("gpu_ready.nodes.site", "ansible-playbook gpu_ready.nodes.uninstall -i gpu_hosts --limit n1,n2"),
        ("", "ansible-playbook gpu_ready.nodes.uninstall -i gpu_hosts --limit n1,n2"),
    ],
)
def test_the_command_of_another_playbook_is_named_as_the_one_that_was_called(called: str, command: str) -> None:
    assert sibling_command(called, "uninstall", ["gpu_hosts"], ["n1", "n2"], False) == command
    assert sibling_command(called, "uninstall", ["gpu_hosts"], HOSTS * 3, True).endswith(
        " gpu_hosts with the same -e options"
    )


def test_hosts_in_the_middle_of_an_earlier_run_are_known_by_the_record_and_by_their_journals(tmp_path: Path) -> None:
    path = record.record_path(tmp_path, 7)
    file = record.RolloutFile(path)
    run = fold.RecordedRun(7, "me@here", dict.fromkeys(HOSTS, "595.2"), HOSTS, [], 0, "")
    file.begin_run(fold.header_line(7, fold.UPGRADE, 0, "1"), run, False, lambda _: 0)
    for host in ("n1", "n2"):
        assert file.begin_turn(host, 8) == ""
        file.record_phase(host, "switching", 9)
    file.end_turn("n1", fold.UPGRADED, 10)
    plan = {"state": "due", "opened": True, "from": "580.1", "to": "595.2", "way": "live", "why": "", "back": None}
    plans: dict[str, Any] = {name: {"gpu_upgrade_fleet": {"record": str(path)}} for name in HOSTS}
    plans["n3"]["gpu_upgrade_plan"] = {
        "upgrade": {**plan, "journal": {"phase": "going_back", "to": "595.2", "rollout": 6}}
    }
    found = runs.InterruptedRun("upgrade", plans, HOSTS, False)
    assert found.earlier() == {
        "n2": "replacing the driver, begun by an earlier run",
        "n3": "rolling back: draining, begun by an earlier run",
    }
    assert found.targets() == {"n3": "580.1 -> 595.2"}
    assert "rollback_drivers" in found.undo([]), "an earlier run of the rollout changed hosts"
    assert runs.InterruptedRun("upgrade", dict.fromkeys(HOSTS, {}), HOSTS, False).undo([]) == ""
    parts = found.parts()
    assert parts["n2"]["outcome"]["state"] == "failed" and "same command resumes" in parts["n2"]["outcome"]["reason"]
    assert parts["n10"]["outcome"]["state"] == "not_reached"


def test_the_report_of_a_provisioning_has_what_its_hosts_registered(tmp_path: Path) -> None:
    plan = {
        "row": {"gpus": "1x T4"},
        "plan": {"gpu_host": True, "steps": [{"id": "a.b"}], "refusals": [], "warnings": []},
    }
    known: dict[str, Any] = {
        "n1": {
            "gpu_plan_result": plan,
            "gpu_verify_result": {"verify": {"ok": True}},
            "gpu_report_directory": str(tmp_path),
        },
        "n2": {"gpu_ready_failure": {"step": "a.b", "message": "red"}},
        "n3": {},
    }
    found = runs.InterruptedRun("site", known, ["n1", "n2", "n3"], False)
    parts = found.parts()
    assert parts["n1"]["steps"] == [{"id": "a.b"}] and parts["n1"]["gpu_host"] is True
    assert (parts["n2"], parts["n3"]) == ({"failure": {"step": "a.b", "message": "red"}}, {})
    page = found.write()
    assert Path(page).parent == tmp_path and "red" in Path(page).read_text()
    written = json.loads((tmp_path / "latest.json").read_text())
    assert written["interrupted"] and {name: one["state"] for name, one in written["hosts"].items()} == {
        "n1": "ready", "n2": "failed", "n3": "not_reached",
    }  # fmt: skip
    assert "Interrupted" in Path(page).read_text() and "interrupted" in (tmp_path / "index.html").read_text()
    assert runs.InterruptedRun("site", known, ["n1"], True).write() == ""
    known["n1"]["gpu_report_directory"] = str(tmp_path / "latest.html/no")
    assert found.undo([]) == ""
    steps = found.next_steps(["n1"])
    assert "cannot be written" in steps.report and "uninstall" in steps.undo
