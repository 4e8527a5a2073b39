"""What the plugin of a rollout reads from the variables of all hosts, without a run of Ansible."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.records import answer_values
from plugins.plugin_utils.gpu_ready.rollout import record
from plugins.plugin_utils.gpu_ready.rollout.model import FleetError

PACKAGE = "ansible_collections.gpu_ready.nodes.plugins"
variables = importlib.import_module(f"{PACKAGE}.plugin_utils.variables.rollout")
plugin = importlib.import_module(f"{PACKAGE}.action.gpu_upgrade_fleet")
HOSTS = ["a", "b", "c", "d"]


class Templated(dict[str, Any]):
    """Variables of a host as `hostvars` gives them."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        if value == "{{ undefined }}":
            raise ValueError("'undefined' is undefined")
        return 5 if value == "{{ 2 + 3 }}" else value


def upgrade(state: str = "due", **more: Any) -> dict[str, Any]:
    found = {"state": state, "opened": False, "from": "580.1", "to": "595.1", "way": "live", "why": "", "back": None}
    return {"excluded": False, "upgrade": found | more, "failure": ""}


class Run:
    """The hosts of a run, and the calls of the plugin with what they register."""

    def __init__(self, directory: Path, hosts: Mapping[str, Mapping[str, Any]], **of_all: Any) -> None:
        self.hosts = {name: Templated(one) for name, one in hosts.items()}
        self.directory, self.lost, self.of_all = directory, set[str](), of_all
        self.shown = ""

    def register(self, name: str, hosts: list[str], value: Any) -> None:
        for host in hosts:
            self.hosts[host][name] = value

    def call(self, do: str, hosts: list[str] | None = None, check: bool = False) -> dict[str, Any]:
        names = hosts or list(self.hosts)
        left = [name for name in names if name not in self.lost]
        action = object.__new__(plugin.ActionModule)
        action._task = SimpleNamespace(check_mode=check)
        action._templar = SimpleNamespace(template=lambda value: value)
        action.variables = {
            **self.of_all, **self.hosts.get(left[0], {}), "inventory_hostname": left[0], "hostvars": self.hosts,
            "groups": {"all": list(self.hosts)}, "ansible_play_hosts_all": names, "ansible_play_hosts": left,
        }  # fmt: skip
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(plugin.terminal, "show", lambda text, _: setattr(self, "shown", text))
            answer: dict[str, Any] = answer_values(action.compute({"do": do}))
        return answer


@pytest.fixture
def state(tmp_path: Path) -> dict[str, Any]:
    return {"gpu_ready_state_dir": str(tmp_path / "state")}


def test_hosts_that_are_prepared_and_reachable_are_lined_up_and_the_record_says_which_turns_began(
    tmp_path: Path, state: dict[str, Any]
) -> None:
    run = Run(tmp_path, {name: {"gpu_upgrade_plan": upgrade(), **state} for name in [*HOSTS, "e", "f"]})
    run.hosts["f"]["gpu_upgrade_plan"] = {"unreachable": True, "msg": "no route"}
    for host in run.hosts.values():
        host["gpu_upgrade_leave_out"] = True
        host["gpu_upgrade_max_failures"] = "50%"
    run.hosts["a"]["gpu_upgrade_plan"]["plan_warnings"] = ["595 has ended"]
    fleet = run.call("plan")
    assert "warnings:\n  a: 595 has ended\n" in run.shown
    assert (fleet["due"], fleet["budget"], fleet["refused"]) == ([*HOSTS, "e"], 2, {"f": "the host is unreachable"})
    run.register("gpu_upgrade_fleet", [*HOSTS, "e"], fleet)
    run.register("gpu_upgrade_prepared", ["a", "b", "d"], {"result": {}})
    run.register("gpu_upgrade_prepared", ["c"], {"result": {"state": "left_out", "reason": "no space"}})
    run.register("gpu_upgrade_prepared", ["e"], {"unreachable": True})
    run.lost = {"d", "e", "f"}
    lineup = run.call("line_up", fleet["due"])
    assert (lineup["roll"], lineup["sizes"]) == (["a", "gpu_upgrade_batch_1", "b", "gpu_upgrade_batch_2"], [2, 2])
    run.register("gpu_upgrade_lineup", ["a", "b", "c"], lineup)
    file = record.RolloutFile(Path(fleet["record"]))
    assert file.begin_turn("a", 5) == "" and file.begin_turn("b", 5) == ""
    file.end_turn("a", "upgraded", 9)
    run.register("gpu_drain_turn", ["a"], {"result": {"state": "upgraded", "to": "595.1"}})
    run.register("gpu_drain_turn", ["b"], {"unreachable": True, "msg": "no route"})
    run.lost |= {"b"}
    report = run.call("report")
    assert {name: one["state"] for name, one in report["outcomes"].items()} == {
        "a": "upgraded", "b": "failed", "c": "left_out", "d": "left_out", "e": "left_out", "f": "left_out",
    }  # fmt: skip
    assert report["bad"] == ["b", "c", "d", "e", "f"]
    assert "unreachable during its upgrade" in report["outcomes"]["b"]["reason"]
    assert "unreachable during its preparation" in report["outcomes"]["d"]["reason"]
    file.path.write_text("damaged\n")
    run.call("report")
    assert "line 1: it is damaged" in run.shown
    run.register("gpu_upgrade_results", [*HOSTS], report)
    assert run.call("require_desired_state", ["a"]) == {"changed": False}
    with pytest.raises(GpuReadyError, match="no space"):
        run.call("require_desired_state", ["c"])


def test_a_check_and_a_refused_run_write_nothing(tmp_path: Path, state: dict[str, Any]) -> None:
    run = Run(tmp_path, {name: {"gpu_upgrade_plan": upgrade(), **state} for name in HOSTS})
    checked = run.call("plan", check=True)
    assert (checked["due"], checked["record"], checked["serial"]) == ([], "", [1, 1, 1, 1])
    run.hosts["b"]["gpu_upgrade_plan"] = {"upgrade": {}, "failure": "no such host"}
    fleet = run.call("plan")
    assert "b: refused\n  no such host" in run.shown and fleet["due"] == ["a", "c", "d"]
    run.register("gpu_upgrade_fleet", HOSTS, fleet)
    with pytest.raises(GpuReadyError, match=r"^1 of 4 hosts cannot be upgraded, see the table \(b\)\. Nothing was"):
        run.call("stop_if_refused")
    assert not (tmp_path / "state").exists()
    for one in run.hosts.values():
        one["gpu_upgrade_plan"] = upgrade("current")
    idle = run.call("plan")
    assert (idle["record"], idle["stop"]) == ("", "") and not (tmp_path / "state").exists()


def test_a_paused_host_has_its_result_from_the_line_up(tmp_path: Path, state: dict[str, Any]) -> None:
    run = Run(
        tmp_path,
        {name: {"gpu_upgrade_plan": upgrade(), "gpu_upgrade_pause_after": "canary", **state} for name in HOSTS},
    )
    fleet = run.call("plan")
    run.register("gpu_upgrade_fleet", HOSTS, fleet)
    run.register("gpu_upgrade_prepared", HOSTS, {"result": {}})
    lineup = run.call("line_up")
    assert lineup["roll"] == ["a", "gpu_upgrade_batch_1"] and list(lineup["results"]) == ["b", "c", "d"]
    run.register("gpu_upgrade_lineup", HOSTS, lineup)
    run.register("gpu_drain_turn", ["a"], {"result": {"state": "upgraded"}})
    report = run.call("report")
    assert report["bad"] == [] and report["outcomes"]["b"]["state"] == "paused"
    assert report["outcomes"]["b"]["from"] == "580.1"


def test_a_setting_that_differs_cannot_be_rendered_or_is_wrong_is_refused(tmp_path: Path) -> None:
    def settings(hosts: dict[str, dict[str, Any]], **of_play: Any) -> Any:
        by_host = variables.read_hosts(
            {name: Templated(one) for name, one in hosts.items()}, list(hosts), variables.SETTINGS
        )
        first = next(iter(hosts))
        known = {**by_host[first], "inventory_hostname": first, **of_play}
        return variables.read_settings_of_run(known, lambda value: value, by_host)

    assert settings({"a": {}, "b": {}}).batches == ["1", "10%", "25%", "50%", "100%"]
    assert (
        settings({"a": {"gpu_upgrade_max_failures": "{{ 2 + 3 }}"}, "b": {"gpu_upgrade_max_failures": 5}}).max_failures
        == "5"
    )
    assert settings({"a": {"gpu_upgrade_exclude": "x, y"}}).exclude == ["x", "y"]
    assert settings({"a": {"gpu_upgrade_leave_out": "yes"}}).leave_out is True
    with pytest.raises(FleetError, match=r'gpu_upgrade_canaries: .* different values: \["b"\] on b; \[\] on a'):
        settings({"a": {}, "b": {"gpu_upgrade_canaries": ["b"]}})
    # A variable of the play has precedence over those of hosts.
    assert settings({"a": {}, "b": {"gpu_upgrade_rollout": 5}}, gpu_upgrade_rollout=7).rollout == 7
    with pytest.raises(FleetError, match="gpu_upgrade_first: it cannot be rendered for b: 'undefined' is undefined"):
        settings({"a": {}, "b": {"gpu_upgrade_first": "{{ undefined }}"}})
    with pytest.raises(
        FleetError, match="gpu_upgrade_pause_after is 'cannary', but must be .*did you mean canary.*Remedy: "
    ):
        settings({"a": {"gpu_upgrade_pause_after": "cannary"}})
    with pytest.raises(FleetError, match="gpu_upgrade_rollout is -1, but must be the id of a rollout .* Remedy: "):
        settings({"a": {"gpu_upgrade_rollout": -1}})
