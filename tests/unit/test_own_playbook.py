"""Roles in a playbook of a site: each plans its own part, alone or after others, and collects facts in every play."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lying_host import NOTHING_TO_DO, calls, make_liar, run_playbook

pytestmark = pytest.mark.host_io


def planned(todo: dict[str, Any], action: str | None = None, **more: Any) -> dict[str, Any]:
    """An answer of gpu_node_plan with these steps."""
    plan = {
        "summary": "as planned",
        "choice": {"activation": {"action": action}},
        "steps": [
            {
                "id": name,
                "role": name.partition(".")[0],
                "action": name.partition(".")[2],
                "why": "",
                "disruption": "none",
                "verify_after": True,
            }
            for name in todo
        ],
    }
    return {"plan": plan, "todo": todo, "lines": [f"{name}: because" for name in todo], **more}


def refused(message: str) -> dict[str, Any]:
    text = {"message": message, "remedy": "do it"}
    return {"plan": {"refusals": [text], "summary": message}, "refusal": f"{message}. Remedy: do it."}


REMOVE = {"nvidia_driver.remove_packages": {"unhold": [], "packages": ["old"]}}
HEADERS = {"kernel_headers.install": {"packages": ["headers"], "optional": [], "kernel": "6.1"}}
REPOSITORY: dict[str, Any] = {"docker_engine.repository": {"repositories": []}}


def own(
    directory: Path, plays: list[dict[str, Any]], plans: Any, *arguments: str, **variables: Any
) -> subprocess.CompletedProcess[str]:
    """Run plays of a site on one host that answers with these plans."""
    book = directory / "own.yml"
    book.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "become": True, **play} for play in plays]))
    answers = {"gpu_node_plan": plans, "gpu_lease": [{"before": ""}, {}] * 2}
    hosts = {"one": make_liar(directory, "one", answers) | variables}
    return run_playbook(directory, book, hosts, *arguments, given_plans=True, ANSIBLE_STDOUT_CALLBACK="default")


def test_each_role_plans_its_own_part(tmp_path: Path) -> None:
    done = own(
        tmp_path, [{"roles": ["nvidia_driver", "docker_engine"]}], [planned(REMOVE | HEADERS), planned(REPOSITORY)]
    )
    assert done.returncode == 0, done.stdout
    assert calls(tmp_path, "one") == [
        *("gpu_node_plan", "gpu_lease", "gpu_packages", "gpu_packages", "gpu_lease"),
        *("gpu_node_plan", "gpu_lease", "gpu_repository", "gpu_lease"),
    ]


def test_roles_in_the_desired_state_cost_one_call_each_and_say_so(tmp_path: Path) -> None:
    done = own(tmp_path, [{"roles": ["docker_engine", "gpu_verify"]}], planned({}))
    assert (done.returncode, calls(tmp_path, "one")) == (0, ["gpu_node_plan", "gpu_node_plan"]), done.stdout
    assert done.stdout.count("as planned") == 2


def test_a_refusal_of_a_role_stops_the_host_before_any_change(tmp_path: Path) -> None:
    done = own(tmp_path, [{"roles": ["docker_engine"]}], refused("docker is not offered"))
    assert done.returncode == 2 and "docker is not offered. Remedy: do it." in done.stdout
    assert calls(tmp_path, "one") == ["gpu_node_plan"]


def test_a_second_play_collects_facts_again(tmp_path: Path) -> None:
    play = {"roles": ["docker_engine"]}
    done = own(tmp_path, [play, play], [planned(REPOSITORY), planned({})])
    assert done.returncode == 0, done.stdout
    assert calls(tmp_path, "one") == ["gpu_node_plan", "gpu_lease", "gpu_repository", "gpu_lease", "gpu_node_plan"]


ASKED = "open(home + '/asked', 'a').write(open(sys.argv[-1]).read()); print({!r})"
"""A program that keeps what it was sent: the module with its options."""


def test_variables_of_a_role_count_however_it_is_used(tmp_path: Path) -> None:
    version = {"docker_engine_version": "28.5"}
    plays: list[dict[str, Any]] = [
        {"roles": [{"role": "docker_engine", "vars": version}]},
        {"tasks": [{"include_role": {"name": "docker_engine"}, "vars": version}]},
        {"tasks": [{"import_role": {"name": "docker_engine"}, "vars": version}]},
        {"roles": ["gpu_verify"]},
    ]
    done = own(tmp_path, plays, ASKED.format(json.dumps(NOTHING_TO_DO["gpu_node_plan"])))
    assert done.returncode == 0, done.stdout
    asked = (tmp_path / "one/asked").read_text()
    assert re.findall(r'"docker_engine_version": "([^"]*)"', asked) == ["28.5"] * 3  # the last role reads none
    assert re.findall(r'"part": "(\w+)"', asked) == ["docker_engine"] * 3 + ["gpu_verify"]


def test_check_mode_shows_the_plan_and_executes_nothing(tmp_path: Path) -> None:
    done = own(tmp_path, [{"roles": ["nvidia_driver"]}], planned(REMOVE, "reboot"), "--check")
    assert done.returncode == 0 and "nvidia_driver.remove_packages: because" in done.stdout, done.stdout
    assert "gpu_packages" not in calls(tmp_path, "one")


REBOOT = {
    "nvidia_driver.activate": {
        "action": "reboot",
        "modules": [],
        "later": [],
        "force": False,
        "fallback": None,
        "why": "",
        "kubelet": "",
    }
}
RELOAD = {"nvidia_driver.activate": {**REBOOT["nvidia_driver.activate"], "action": "reload"}}


@pytest.mark.parametrize(
    ("plans", "required"),
    [
        pytest.param([planned(REBOOT, "reboot")], [True], id="reboot", marks=pytest.mark.long),
        pytest.param([planned(RELOAD, "reload")], [False], id="reload"),
        pytest.param([planned({}, "none")], [True], id="left to the operator"),
        pytest.param([planned({}, None)], [False], id="current", marks=pytest.mark.long),
        pytest.param([planned(REBOOT, "reboot"), planned({}, None)], [True, False], id="rebooted by the site"),
    ],
)
def test_a_required_reboot_is_exported(tmp_path: Path, plans: list[dict[str, Any]], required: list[bool]) -> None:
    show = {"debug": {"msg": "exported {{ gpu_ready_reboot_required }}"}}
    done = own(tmp_path, [{"roles": ["nvidia_driver"], "post_tasks": [show]}] * len(plans), plans)
    assert done.returncode == 0, done.stdout
    assert [word == "True" for word in re.findall(r"exported (\w+)", done.stdout)] == required
    assert "reboot" not in calls(tmp_path, "one")
