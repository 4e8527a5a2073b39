"""Roles in a playbook of a site: each plans its own part, alone or after others, and collects facts in every play."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

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
    text = {"code": "not_offered", "message": message, "remedy": "do it"}
    return {"plan": {"refusals": [text], "summary": message}, "refusal": f"{message}. Remedy: do it."}


REMOVE = {"nvidia_driver.remove_packages": {"unhold": [], "packages": ["old"]}}
HEADERS = {"kernel_headers.install": {"packages": ["headers"], "optional": [], "kernel": "6.1"}}
REPOSITORY: dict[str, Any] = {"docker_engine.repository": {"repositories": []}}


VERSION = {"docker_engine_version": "28.5"}
ASKED = "open(home + '/asked', 'a').write(open(sys.argv[-1]).read()); print({!r})"
"""A program that keeps what it was sent: the module with its options."""
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
EXPORT = {
    "roles": ["gpu_ready.nodes.nvidia_driver"],
    "post_tasks": [{"debug": {"msg": "exported {{ gpu_ready_reboot_required }}"}}],
}
REBOOTS: dict[str, tuple[list[dict[str, Any]], list[bool]]] = {
    "reboot": ([planned(REBOOT, "reboot")], [True]),
    "reload": ([planned(RELOAD, "reload")], [False]),
    "left to the operator": ([planned({}, "none")], [True]),
    "current": ([planned({}, None)], [False]),
    "rebooted by the site": ([planned(REBOOT, "reboot"), planned({}, None)], [True, False]),
}
"""The plans of one play after the other, and whether each says that a reboot is required."""
Plays = dict[str, tuple[list[dict[str, Any]], Any]]
"""The plays of a site and what their host answers, by the name of the case."""
PLAYS: Plays = {
    "parts": (
        [{"roles": ["gpu_ready.nodes.nvidia_driver", "gpu_ready.nodes.docker_engine"]}],
        [planned(REMOVE | HEADERS), planned(REPOSITORY)],
    ),
    "nothing to do": ([{"roles": ["gpu_ready.nodes.docker_engine", "gpu_ready.nodes.gpu_verify"]}], planned({})),
    "twice": ([{"roles": ["gpu_ready.nodes.docker_engine"]}] * 2, [planned(REPOSITORY), planned({})]),
    "variables": (
        [
            {"roles": [{"role": "gpu_ready.nodes.docker_engine", "vars": VERSION}]},
            {"tasks": [{"include_role": {"name": "gpu_ready.nodes.docker_engine"}, "vars": VERSION}]},
            {"tasks": [{"import_role": {"name": "gpu_ready.nodes.docker_engine"}, "vars": VERSION}]},
            {"roles": ["gpu_ready.nodes.gpu_verify"]},
        ],
        ASKED.format(json.dumps(NOTHING_TO_DO["gpu_node_plan"])),
    ),
    **{name: ([EXPORT] * len(plans), plans) for name, (plans, _) in REBOOTS.items()},
    # The last one: Ansible ends a run in which all hosts of a play have failed.
    "refused": ([{"roles": ["gpu_ready.nodes.docker_engine"]}], refused("docker is not offered")),
}


class Ran(NamedTuple):
    """What a host was asked, what a run printed in its plays, and how many of its tasks failed."""

    calls: list[str]
    text: str
    failed: int


def own(directory: Path, cases: Plays, *arguments: str) -> dict[str, Ran]:
    """Run the plays of these cases in one playbook of a site, each case on a host of its own; return what came of each."""
    book, hosts = [], {}
    for number, (name, (plays, plans)) in enumerate(cases.items()):
        book += [{"name": name, "hosts": f"h{number}", "gather_facts": False, "become": True, **play} for play in plays]
        hosts[f"h{number}"] = make_liar(
            directory, f"h{number}", {"gpu_node_plan": plans, "gpu_lease": [{"before": ""}, {}] * 2}
        )
    (directory / "own.yml").write_text(json.dumps(book))
    done = run_playbook(
        directory, directory / "own.yml", hosts, *arguments, given_plans=True, ANSIBLE_STDOUT_CALLBACK="default"
    )
    printed, _, recap = done.stdout.partition("PLAY RECAP")
    texts = dict.fromkeys(cases, "")
    for play in printed.split("PLAY [")[1:]:
        texts[play.partition("]")[0]] += play
    failed = dict(re.findall(r"(?m)^(h\d+) .* failed=(\d+)", recap))
    assert set(failed) == set(hosts), done.stdout + done.stderr
    return {
        name: Ran(calls(directory, host), texts[name], int(failed[host]))
        for name, host in zip(cases, hosts, strict=True)
    }


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("own")


@pytest.fixture(scope="module")
def ran(directory: Path) -> dict[str, Ran]:
    """One run of all plays, each with a host of its own."""
    return own(directory, PLAYS)


def test_each_role_plans_its_own_part(ran: dict[str, Ran]) -> None:
    assert ran["parts"].failed == 0, ran["parts"].text
    assert ran["parts"].calls == [
        *("gpu_node_plan", "gpu_lease", "gpu_packages", "gpu_packages", "gpu_lease"),
        *("gpu_node_plan", "gpu_lease", "gpu_repository", "gpu_lease"),
    ]
    assert "gpu-ready | h0 | plan | plan | nvidia_driver.remove_packages: because" in ran["parts"].text


def test_roles_in_the_desired_state_cost_one_call_each_and_say_so(ran: dict[str, Ran]) -> None:
    found = ran["nothing to do"]
    assert (found.failed, found.calls) == (0, ["gpu_node_plan", "gpu_node_plan"]), found.text
    assert found.text.count("as planned") == 2


def test_a_refusal_of_a_role_stops_the_host_before_any_change(ran: dict[str, Ran]) -> None:
    found = ran["refused"]
    assert found.failed and "docker is not offered. Remedy: do it." in found.text
    assert found.calls == ["gpu_node_plan"]


def test_a_second_play_collects_facts_again(ran: dict[str, Ran]) -> None:
    assert ran["twice"].failed == 0, ran["twice"].text
    assert ran["twice"].calls == ["gpu_node_plan", "gpu_lease", "gpu_repository", "gpu_lease", "gpu_node_plan"]


def test_variables_of_a_role_count_however_it_is_used(ran: dict[str, Ran], directory: Path) -> None:
    assert ran["variables"].failed == 0, ran["variables"].text
    asked = (directory / f"h{list(PLAYS).index('variables')}/asked").read_text()
    assert re.findall(r'"docker_engine_version": "([^"]*)"', asked) == ["28.5"] * 3  # the last role reads none
    assert re.findall(r'"part": "(\w+)"', asked) == ["docker_engine"] * 3 + ["gpu_verify"]


def test_check_mode_shows_the_plan_and_executes_nothing(tmp_path: Path) -> None:
    case: Plays = {"check": ([{"roles": ["gpu_ready.nodes.nvidia_driver"]}], planned(REMOVE, "reboot"))}
    found = own(tmp_path, case, "--check")["check"]
    assert found.failed == 0 and "nvidia_driver.remove_packages: because" in found.text, found.text
    assert "gpu_packages" not in found.calls


@pytest.mark.parametrize("name", REBOOTS)
def test_a_required_reboot_is_exported(ran: dict[str, Ran], name: str) -> None:
    found = ran[name]
    assert found.failed == 0, found.text
    assert [word == "True" for word in re.findall(r"exported (\w+)", found.text)] == REBOOTS[name][1]
    assert "reboot" not in found.calls
