"""The turn of a host: the table of its phases, what each does, and a run that is killed anywhere."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from plugins.module_utils.gpu_ready.upgrade import model as journal
from plugins.plugin_utils.gpu_ready.execute.steps import package_transactions
from plugins.plugin_utils.gpu_ready.turn import prepare, run, table
from plugins.plugin_utils.gpu_ready.turn.model import Elsewhere, Turn
from plugins.plugin_utils.gpu_ready.turn.phases import ONLY, REPAIR, drains_of, pieces_of
from tests.unit.turn_host import BACK, DRIVER, NEW, OLD, Disk, Killed, MemoryHost, take_turn, unreachable
from tests.unit.turn_paths import wrong_write

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs/dev/turns.md"
HOOKS = ("docker", "slurm", "kubernetes")
RED = {"msg": "Not verified"}


def pairs() -> str:
    """Return what follows each pair of phase and result; several ends depend on the kind of turn and the driver."""
    lines = []
    for phase in table.PHASES:
        for result in table.RESULTS:
            ends = [
                table.next_action(table.Journal(kind, phase, touched, soak), result)
                for kind in table.KINDS
                for touched in (False, True)
                for soak in (60, 0)
            ]
            lines.append(f"{phase:16}  {result:11}  {', or '.join(dict.fromkeys(ends))}")
    return "\n".join(lines) + "\n"


def test_every_pair_of_phase_and_result_has_its_row() -> None:
    assert f"```\n{pairs()}```" in TABLE.read_text(), f"docs/dev/turns.md has not this table:\n{pairs()}"
    for phase in table.PHASES:
        assert pieces_of(phase, MemoryHost(Disk())), phase
        for result in table.RESULTS:
            for kind in table.KINDS:
                for touched in (False, True):
                    end = table.next_action(table.Journal(kind, phase, touched, 60), result)
                    assert end in (*table.PHASES, *table.ENDS), (phase, result)


def test_every_phase_can_end_the_turn_and_none_is_left_without_a_way_to_it() -> None:
    for kind in table.KINDS:
        reached, new = set(), {table.LEASE}
        while new:
            reached |= new
            states = [
                table.Journal(kind, one, touched, 60)
                for one in reached
                for touched in (False, True)
                if one in table.ROWS
            ]
            new = {table.next_action(state, result) for state in states for result in table.RESULTS} - reached
        assert reached & set(table.ENDS)
        if kind == table.UPGRADE:
            assert set(table.PHASES) - reached == {table.DRAIN_ALONE, table.RETURN_ALONE}


def test_no_task_of_a_rollout_decides_anything() -> None:
    """No fact is set, no result of another task is a condition, and a template is a name."""
    tasks = []
    for path in sorted(
        path for role in ("gpu_upgrade", "gpu_drain") for path in ROOT.glob(f"roles/{role}/tasks/*.yml")
    ):
        tasks += [(path.name, task) for task in yaml_load(path.read_text())]
    for _, task in list(tasks):
        tasks += [("block", inner) for key in ("block", "rescue", "always") for inner in task.get(key, [])]
    assert len(tasks) > 22
    for name, task in tasks:
        assert "ansible.builtin.set_fact" not in task, name
        assert task.get("when", "not ansible_check_mode") == "not ansible_check_mode", (name, task)
        text = json.dumps({key: value for key, value in task.items() if key not in ("block", "rescue", "always")})
        assert set(re.findall(r"{{.*?}}", text)) == set(re.findall(r"{{ [a-z_.]+ }}", text)), (name, text)


def modules(host: MemoryHost) -> list[str]:
    """Return the calls of a host: module, and what it was asked for."""
    found = []
    for module, given, _ in host.calls:
        what = given.get("phase") or given.get("state") or given.get("action") or ""
        found.append(f"{Path(module).name if '/' in module else module.rpartition('.')[2]} {what}".strip())
    return found


def test_a_turn_drains_replaces_verifies_undrains_and_verifies_again(hook: str) -> None:
    host = MemoryHost(Disk(), (*HOOKS, hook))
    turn = take_turn(host)
    assert run.describe_end(turn, True) == ("upgraded", "active and verified")
    assert host.phases == ["draining", "switching", "verify", "verified", "done", "soak"], (
        "recorded on the control node, too"
    )
    assert modules(host) == [
        "gpu_lease taken",
        "gpu_upgrade_journal draining",
        "gpu_drain_journal",
        "gpu_lease extended",
        "gpu_drain_docker drained",
        # A scheduler is asked who drained its node, before the host records that gpu-ready does.
        *["gpu_drain_slurm drained", "gpu_drain_journal", "gpu_drain_slurm drained", "gpu_drain_slurm waited"],
        *["gpu_drain_kubernetes cordoned", "gpu_drain_journal", "gpu_drain_kubernetes cordoned"],
        "gpu_drain_kubernetes evicted",
        *["gpu_drain_journal", "balancer.yml drain"],
        "gpu_node_plan",
        "gpu_upgrade_journal switching",
        "gpu_packages",
        "gpu_kernel_module reloaded",
        "gpu_verify",
        "gpu_upgrade_journal verified",
        "gpu_drain_journal",
        "gpu_lease extended",
        *["balancer.yml undrain", "gpu_drain_journal"],
        *["gpu_drain_kubernetes uncordoned", "gpu_drain_journal"],
        *["gpu_drain_slurm undrained", "gpu_drain_journal"],
        "gpu_drain_docker undrained",
        "gpu_upgrade_journal done",
        "gpu_lease extended",
        "gpu_verify",
        "gpu_lease released",
    ]
    assert host.disk.serving == [NEW] * 4 and not host.disk.leased
    [begun] = [given for module, given, _ in host.calls if given.get("phase") == "draining"]
    assert (begun["rollout"], begun["driver"]["version"]) == (7, OLD)


@pytest.mark.parametrize(
    ("fails", "end", "phase", "driver", "served"),
    [
        # Before the driver is touched: the host is verified as it is, and returns to service.
        ({"gpu_node_plan": [{"msg": "refused"}]}, "untouched", "untouched", OLD, True),
        ({"gpu_upgrade_journal switching": [{}]}, "untouched", "untouched", OLD, True),
        # A drain that fails leaves the host drained.
        ({"gpu_drain_docker drained": {}}, "untouched", "draining", OLD, False),
        ({"gpu_drain_slurm waited": {}}, "untouched", "draining", OLD, False),
        ({"gpu_node_plan": [{}], "gpu_verify": RED}, "untouched", "draining", OLD, False),
        # After it: back to the recorded driver, which stays drained.
        ({"gpu_packages NVIDIA driver": [{}]}, "rolled back", "back", OLD, False),
        ({"gpu_packages NVIDIA driver": [{"timed_out": True}]}, "rolled back", "back", OLD, False),
        ({"gpu_kernel_module reloaded": [{}]}, "rolled back", "back", OLD, False),
        ({"gpu_verify": [RED]}, "rolled back", "back", OLD, False),
        ({"gpu_verify": [None, RED]}, "rolled back", "back", OLD, True),
        ({"gpu_verify": RED}, "out of service", "stuck", OLD, False),
        ({"gpu_verify": [RED], "gpu_packages NVIDIA driver": [None, {}]}, "out of service", "stuck", NEW, False),
        # The new driver is verified by then: there is nothing to undo.
        ({"gpu_drain_slurm undrained": {}}, "still drained", "verified", NEW, False),
        ({"gpu_upgrade_journal done": {}}, "still drained", "verified", NEW, True),
        # Another run has the host, or nobody knows.
        ({"gpu_packages NVIDIA driver": {"another_run": True}}, "taken over", "switching", OLD, False),
        ({"gpu_drain_docker undrained": {"another_run": True}}, "taken over", "verified", NEW, True),
        ({"gpu_packages NVIDIA driver": unreachable()}, "lost", "switching", OLD, False),
        ({"gpu_verify": [None, unreachable()]}, "lost", "done", NEW, True),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else None,
)
def test_a_failure_is_followed_by_what_the_table_says(
    fails: dict[str, Any], end: str, phase: str, driver: str, served: bool
) -> None:
    host = MemoryHost(Disk(), ("slurm", "docker"), fails=fails)
    turn = take_turn(host)
    assert (turn.phase, host.disk.upgrade and host.disk.upgrade.phase) == (end, phase), host.events
    assert host.disk.driver == driver
    assert bool(host.disk.serving) == served
    assert "unverified" not in host.disk.serving
    assert host.disk.leased == (end in ("lost", "taken over"))
    state, why = run.describe_end(turn, True)
    assert state == ("rolled_back" if end == "rolled back" else "failed")
    assert [text for kind, _, text in host.events if kind == "problem"][0] in why


def test_a_host_that_does_not_answer_after_its_reboot_is_lost_and_resumed() -> None:
    disk = Disk()
    lost = MemoryHost(disk, ("docker",), action="reboot", gpu_ready_reboot_ok=True)
    lost.fails = {"reboot": {"msg": "Timed out waiting for last boot time check (timeout=1200)"}}
    lost.fails["gpu_upgrade_journal going_back"] = unreachable()
    turn = take_turn(lost)
    state, why = run.describe_end(turn, True)
    assert (turn.phase, state, disk.upgrade and disk.upgrade.phase) == ("lost", "failed", "switching")
    assert "Timed out waiting for last boot time check" in why and "No route to host" in why and "to resume" in why
    again = MemoryHost(disk, ("docker",), action="reboot", gpu_ready_reboot_ok=True)
    assert take_turn(again, touched=True).phase == "upgraded"
    assert disk.loaded == NEW and disk.upgrade and disk.upgrade.phase == "done"


@pytest.mark.parametrize("allowed", [False, True])
def test_no_host_is_rebooted_without_permission(allowed: bool) -> None:
    host = MemoryHost(Disk(), ("docker",), action="reboot", gpu_ready_reboot_ok=allowed)
    turn = take_turn(host)
    assert ("reboot" in modules(host)) == allowed
    assert turn.phase == ("upgraded" if allowed else "untouched") and (allowed or "gpu_ready_reboot_ok" in turn.reason)
    assert turn.way == ("reboot" if allowed else "none")
    assert host.disk.serving == [NEW if allowed else OLD]


def test_a_rollback_that_fails_leaves_the_host_out_of_service() -> None:
    disk = Disk()
    disk.driver = disk.loaded = disk.verified = NEW
    host = MemoryHost(disk, ("docker",), fails={"gpu_verify": RED})
    turn = take_turn(host, table.ROLLBACK)
    assert (turn.phase, disk.upgrade and disk.upgrade.phase) == ("out of service", "stuck")
    assert "THIS WAS THE ROLLBACK" in run.describe_end(turn, True)[1]
    again = take_turn(MemoryHost(disk, ("docker",)), table.ROLLBACK, touched=True)
    assert run.describe_end(again, True)[0] == "rolled_back" and disk.loaded == OLD and disk.serving == [OLD]


def test_a_node_that_somebody_else_drained_is_left_drained() -> None:
    disk = Disk()
    disk.drained = {"slurm": "RMA: broken"}
    host = MemoryHost(disk, ("slurm",))
    assert take_turn(host).phase == "upgraded"
    assert disk.drained == {"slurm": "RMA: broken"}
    assert "gpu_drain_slurm undrained" not in modules(host)
    assert ("note", "drain", "drained by somebody else") in host.events


def test_the_lease_waits_for_the_last_step_of_a_killed_run() -> None:
    running = {"msg": "its last step still runs", "another_run": True, "last_step_running": True}
    host = MemoryHost(Disk(), fails={"gpu_lease taken": [running, running]})
    assert take_turn(host).phase == "upgraded" and modules(host)[:3] == ["gpu_lease taken"] * 3
    assert host.events.count(("note", "lease", "waiting for the last step of a run that was killed")) == 2
    endless = MemoryHost(Disk(), fails={"gpu_lease taken": running})
    turn = take_turn(endless)
    assert turn.phase == "left out" and 80 <= modules(endless).count("gpu_lease taken") <= 92
    refused = MemoryHost(Disk(), fails={"gpu_lease taken": {"msg": "bob works on it", "another_run": True}})
    assert take_turn(refused).phase == "left out" and modules(refused) == ["gpu_lease taken"]
    assert run.describe_end(take_turn(refused), False) == ("left_out", "Nothing was changed. lease: bob works on it")


# ---- killed anywhere -------------------------------------------------------------------------------------------------

SCENES: dict[str, dict[str, Any]] = {
    "upgraded": {},
    "rolled back": {"gpu_verify": [RED]},
    "rolled back after its soak": {"gpu_verify": [None, RED]},
    "out of service": {"gpu_verify": [RED], "gpu_packages NVIDIA driver": [None, {}]},
    "untouched": {"gpu_node_plan": [{}]},
}


def writes_of(fails: dict[str, Any], hook: str) -> list[str]:
    """Return what a turn writes to the journals of its host."""
    host = MemoryHost(Disk(), (*HOOKS, hook), fails={key: list(value) for key, value in fails.items()})
    take_turn(host)
    return host.disk.writes


@pytest.mark.parametrize("scene", SCENES)
def test_killed_after_any_write_of_a_journal_the_same_command_resumes(scene: str, hook: str) -> None:
    count = len(writes_of(SCENES[scene], hook))
    assert count >= 8
    for number in range(1, count + 1):
        disk = Disk()
        fails = {key: list(value) for key, value in SCENES[scene].items()}
        host = MemoryHost(disk, (*HOOKS, hook), fails=fails)
        host.kill_after = number
        with pytest.raises(Killed):
            take_turn(host)
        at = disk.writes[-1]
        # The same command, which plans first: a host that is done has no turn, any other one begins again.
        for _ in range(2):
            if disk.upgrade and disk.upgrade.phase == journal.DONE and not disk.drained:
                break
            touched = bool(disk.upgrade and disk.upgrade.phase not in journal.CLOSED and disk.upgrade.touched)
            turn = take_turn(MemoryHost(disk, (*HOOKS, hook)), touched=touched)
            assert turn.phase == "upgraded", (number, at, turn)
        assert disk.loaded == NEW and not disk.drained and disk.drains == type(disk.drains)(), (number, at)
        assert disk.upgrade and disk.upgrade.phase == journal.DONE
        assert "unverified" not in disk.serving, (number, at)


def test_every_turn_in_memory_writes_what_the_table_says(hook: str) -> None:
    written = []
    for fails in SCENES.values():
        writes = [one for one in writes_of(fails, hook) if one != "drains"]
        assert wrong_write(writes) == ""
        written.append(tuple(writes))
    assert len(set(written)) == len(SCENES)
    for wrong in (["switching"], ["draining", "done"], ["draining", "switching", "back"], ["draining", "verified"]):
        assert wrong_write(wrong), wrong
    assert wrong_write(["draining", "switching", "going_back"], backwards=True)


# ---- before the turn -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("excluded", "left"),
    [
        ([], {"gpu1", "gpu10", "gpu11"}),
        ("gpu10", {"gpu1", "gpu11"}),  # the text also contains gpu1
        ("rack2", {"gpu1"}),
        ("gpu1, gpu11", {"gpu10"}),
        (["rack1", "gpu11"], {"gpu10"}),
    ],
)
def test_excluded_hosts(excluded: str | list[str], left: set[str]) -> None:
    groups = {"gpu1": ["rack1"], "gpu10": ["rack2"], "gpu11": ["rack2"]}
    assert {name for name, own in groups.items() if not prepare.is_excluded(name, own, excluded)} == left


def leases(host: MemoryHost) -> list[str]:
    """Return what a host was asked before its turn."""
    return [one for one in modules(host) if "lease" in one or one == "gpu_node_plan"]


def test_a_host_whose_upgrade_was_interrupted_is_planned_again_after_its_last_step() -> None:
    running = {"msg": "its last step still runs", "another_run": True, "last_step_running": True}
    for fails, asked in (({}, 1), ({"gpu_lease taken": [running]}, 2)):
        host = MemoryHost(Disk(), fails=fails)
        host.answer_gpu_upgrade_journal({"phase": "draining", "reason": ""})
        prepare.plan_host(host, False)
        assert leases(host).count("gpu_node_plan") == asked
    fresh = MemoryHost(Disk())
    prepare.plan_host(fresh, False)
    assert leases(fresh) == ["gpu_node_plan"]


def test_a_plan_takes_no_lease_of_a_host_that_another_run_has_prepared_or_works_on() -> None:
    """Its lease would be seen as a change of the host, and that run would leave the host out."""
    prepared = MemoryHost(Disk())
    prepared.answer_gpu_upgrade_journal({"phase": "staged", "reason": ""})
    prepare.plan_host(prepared, False)
    assert leases(prepared) == ["gpu_node_plan"]
    busy = MemoryHost(Disk(), fails={"gpu_lease taken": {"msg": "bob works on it", "another_run": True}})
    busy.answer_gpu_upgrade_journal({"phase": "switching", "reason": ""})
    assert prepare.plan_host(busy, False)["plan"]["gpu_host"]
    broken = MemoryHost(Disk(), fails={"gpu_lease taken": {"msg": "no space left"}})
    broken.answer_gpu_upgrade_journal({"phase": "switching", "reason": ""})
    with pytest.raises(Exception, match="no space left"):
        prepare.plan_host(broken, False)


def test_a_rollback_is_planned_for_the_recorded_driver_and_without_one_for_none() -> None:
    recorded = MemoryHost(Disk())
    recorded.answer_gpu_upgrade_journal({"phase": "draining", "reason": "", "driver": DRIVER})
    for host, requested in ((recorded, BACK), (MemoryHost(Disk()), {"nvidia_driver_source": "none"})):
        prepare.plan_host(host, True)
        assert {**host.calls[-1][1]["overrides"]} == {**ONLY, **requested}
        assert "release" not in host.calls[-1][1]


def test_only_the_first_plan_of_a_rollout_asks_for_the_newest_release_and_its_turn_takes_that_one() -> None:
    host = MemoryHost(Disk())
    prepare.plan_host(host, False)
    (first,) = calls_of(host, "gpu_node_plan")
    assert first["release"] == "newest" and "gpu_ready_index" not in first["overrides"]
    host.settings = host.settings._replace(planned={**host.settings.planned, "release": "580.178.04"})
    take_turn(host, table.UPGRADE)
    later = calls_of(host, "gpu_node_plan")[1:]
    assert later[0]["release"] == "580.178.04" and {one["overrides"]["gpu_ready_index"] for one in later} == {"none"}


def test_a_preparation_downloads_and_releases_the_host() -> None:
    host = MemoryHost(Disk())
    plan = host.answer_gpu_node_plan({"overrides": {}})
    host.settings = host.settings._replace(planned={**host.settings.planned, "opened": False, "staged": False})
    prepare.prepare_host(host, plan, False)
    assert modules(host) == ["gpu_lease taken", "gpu_upgrade_journal staged", "gpu_upgrade_stage", "gpu_lease released"]
    [staged] = calls_of(host, "gpu_upgrade_journal")
    assert (staged["target"], staged["rollout"], staged["driver"]["version"]) == (NEW, 7, OLD)
    assert ("step", "prestage", "downloads") in host.events
    full = MemoryHost(Disk(), fails={"gpu_upgrade_stage": {"msg": "no space left"}})
    full.settings = host.settings
    with pytest.raises(Exception, match="no space left"):
        prepare.prepare_host(full, plan, False)
    assert modules(full)[-1] == "gpu_lease released"
    resumed = MemoryHost(Disk())
    resumed.settings = host.settings._replace(planned={**host.settings.planned, "opened": True, "staged": True})
    prepare.prepare_host(resumed, plan, False)
    assert modules(resumed) == ["gpu_lease taken", "gpu_lease released"]


@pytest.mark.parametrize(
    ("runfile", "earlier", "path"),
    [
        ("/srv/NVIDIA-Linux-x86_64-595.71.05.run", "580.95.05", "/srv/NVIDIA-Linux-x86_64-580.95.05.run"),
        ("/srv/NVIDIA-Linux-x86_64-595.71.05.run", "580.95.05/../../id", ""),
        ("/srv/driver.run", "580.95.05", ""),
        ("", "580.95.05", ""),
    ],
)
def test_the_installer_of_an_earlier_driver_is_beside_that_of_the_new_one(
    runfile: str, earlier: str, path: str
) -> None:
    assert prepare.earlier_installer(runfile, earlier) == path


# ---- the begin of a plan that is carried out without a turn ----------------------------------------------------------

TODO: dict[str, Any] = {"docker_engine.repository": {"repositories": []}}
REFUSED = {"plan": {"refusals": [{"code": "x"}]}, "todo": {}, "refusal": "docker is not offered"}


def planned(todo: Any = None, lease: str = "") -> dict[str, Any]:
    """Return a plan with these steps."""
    return {"plan": {"refusals": []}, "todo": TODO if todo is None else todo, "lease": lease, "lines": []}


# ---- the arguments of calls ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "phase", "drained", "selector", "drains"),
    [
        ((), "plan", False, "", []),
        (("slurm", "docker"), "plan", False, "", ["slurm", "docker"]),
        (("slurm", "docker"), "plan", True, "", []),
        (("none",), "plan", True, "", ["none"]),
        # After its drain, pods of DaemonSets are all that is left on a Kubernetes node, and may be restarted.
        (("kubernetes", "docker"), "plan", False, "", ["kubernetes", "docker"]),
        (("kubernetes", "docker"), "plan", True, "", ["kubernetes", "daemon_sets"]),
        (("kubernetes",), "plan", True, "app!=logs", ["kubernetes"]),
        (("slurm",), "rollback plan", True, "", ["none"]),
        (("kubernetes",), "rollback plan", False, "", ["none", "daemon_sets"]),
    ],
)
def test_what_the_plan_need_not_refuse_the_host_for(
    given: tuple[str, ...], phase: str, drained: bool, selector: str, drains: list[str]
) -> None:
    host = MemoryHost(Disk(), given, gpu_drain_kubernetes_pod_selector=selector)
    assert drains_of(Turn(phase=phase, drained=drained), host) == drains


def test_each_scheduler_is_asked_on_its_host_as_the_variables_say(hook: str) -> None:
    settings: dict[str, Any] = {
        "gpu_drain_slurm_bin": "/opt/slurm/bin",
        "gpu_drain_kubernetes_kubectl": "k",
        "gpu_drain_slurm_become": "no",
    }
    host = MemoryHost(Disk(), ("slurm", "kubernetes"), **settings, gpu_drain_kubernetes_become=True)
    calls: list[Elsewhere] = []
    elsewhere = host.elsewhere

    def keep(call: Elsewhere) -> dict[str, Any]:
        calls.append(call)
        return elsewhere(call)

    host.elsewhere = keep  # type: ignore[method-assign]
    assert take_turn(host).phase == "upgraded"
    reason, wait = {"reason": "gpu-ready: driver upgrade"}, {"timeout": 1800}
    slurm: dict[str, Any] = {"node": "n1", "directory": "/opt/slurm/bin"}
    cluster: dict[str, Any] = {"node": "n1", "kubectl": "k", "kubeconfig": "", "context": ""}
    eviction = {"grace_period": -1, "delete_emptydir_data": True, "force": False, "disable_eviction": False}
    assert [(call.tasks, call.host, call.check, call.throttle, dict(call.arguments)) for call in calls] == [
        ("scheduler.yml", "ctl", True, 8, {"state": "drained", **slurm, **reason, **wait, "recorded": False}),
        ("scheduler.yml", "ctl", False, 8, {"state": "drained", **slurm, **reason, **wait, "recorded": True}),
        ("scheduler.yml", "ctl", False, 0, {"state": "waited", **slurm, **wait}),
        (
            "scheduler_as_root.yml",
            "localhost",
            True,
            8,
            {"state": "cordoned", **cluster, **reason, **wait, "recorded": False},
        ),
        (
            "scheduler_as_root.yml",
            "localhost",
            False,
            8,
            {"state": "cordoned", **cluster, **reason, **wait, "recorded": True},
        ),
        (
            "scheduler_as_root.yml",
            "localhost",
            False,
            0,
            {"state": "evicted", **cluster, **wait, **eviction, "pod_selector": ""},
        ),
        ("scheduler_as_root.yml", "localhost", False, 8, {"state": "uncordoned", **cluster, **reason, **wait}),
        ("scheduler.yml", "ctl", False, 8, {"state": "undrained", **slurm, **reason}),
    ]
    assert {call.seconds for call in calls} == {1800}


def test_why_a_node_is_kept_is_shown_at_its_drain_and_at_its_undrain() -> None:
    disk = Disk()
    assert take_turn(MemoryHost(disk, ("slurm",)), table.DRAIN_ONLY).phase == "drained"
    disk.drained["slurm"] = "RMA: broken"
    host = MemoryHost(disk, ("slurm",), gpu_undrain_unverified=True)
    host.elsewhere = lambda call: {"kept": "it has another reason now"}  # type: ignore[method-assign]
    take_turn(host, table.UNDRAIN_ONLY)
    assert ("note", "undrain alone", "it has another reason now") in host.events and disk.drains.slurm is None


def calls_of(host: MemoryHost, name: str) -> list[dict[str, Any]]:
    """Return the arguments of the calls of a module."""
    return [dict(given) for module, given, _ in host.calls if module.endswith(f".{name}")]


def test_the_lease_lasts_as_long_as_what_does_not_renew_it() -> None:
    host = MemoryHost(Disk(), ("slurm",), soak=300)
    take_turn(host)
    states = [(one["state"], one.get("lasts")) for one in calls_of(host, "gpu_lease")]
    assert states == [("taken", 600), ("extended", 2400), ("extended", 2400), ("extended", 900), ("released", None)]
    docker = MemoryHost(Disk(), ("docker",), soak=0)
    take_turn(docker)
    assert [one["state"] for one in calls_of(docker, "gpu_lease")] == ["taken", "released"]
    assert docker.disk.time < host.disk.time - 300


def test_a_rollback_keeps_the_rollout_and_the_driver_in_the_journal() -> None:
    disk = Disk()
    disk.driver = disk.loaded = disk.verified = NEW
    host = MemoryHost(disk)
    take_turn(host, table.ROLLBACK)
    assert {frozenset(one) for one in calls_of(host, "gpu_upgrade_journal")} == {
        frozenset(("phase", "reason")),
        frozenset(("phase", "reason", "target")),
    }
    assert [one["target"] for one in calls_of(host, "gpu_upgrade_journal") if "target" in one] == [OLD]


def test_a_preparation_repairs_installs_headers_and_copies_installers(tmp_path: Path) -> None:
    new = tmp_path / "NVIDIA-Linux-x86_64-595.91.07.run"
    old = tmp_path / "NVIDIA-Linux-x86_64-580.95.05.run"
    for path in (new, old):
        path.touch()
    headers = {"packages": ["linux-headers"], "optional": [], "kernel": "6.1"}
    todo: dict[str, Any] = {
        REPAIR: {},
        "kernel_headers.install": headers,
        "nvidia_driver.repository": {"repositories": []},
    }
    removal = {"packages": ["old"], "unhold": ["old"]}
    todo |= {"nvidia_driver.remove_packages": removal, "nvidia_driver.runfile": {"source": str(new)}}

    class Host(MemoryHost):
        def answer_gpu_packages(self, given: Any) -> dict[str, Any]:
            return {"repaired": []}

        def answer_gpu_node_plan(self, given: Any) -> dict[str, Any]:
            return {**super().answer_gpu_node_plan(given), "todo": todo}

        def answer_gpu_upgrade_stage(self, given: Any) -> dict[str, Any]:
            return {"files": {str(one): f"/var/lib/{one.name}" for one in (new, old)}}

        def answer_copy(self, given: Any) -> dict[str, Any]:
            return {}

        answer_file = answer_gpu_repository = answer_copy

    for backwards in (False, True):
        host = Host(Disk(), nvidia_driver_runfile=str(new))
        planned = {**host.settings.planned, "opened": False, "staged": False, "installer": {"source": str(old)}}
        host.settings = host.settings._replace(planned=planned)
        prepare.prepare_host(host, {"todo": todo}, backwards)
        staged = [] if backwards else ["gpu_upgrade_journal staged"]
        assert modules(host) == [
            *["gpu_lease taken", *staged, "gpu_node_plan", "gpu_packages", "gpu_packages", "gpu_repository"],
            "gpu_upgrade_stage",
            *["file directory", "copy", "copy", "gpu_upgrade_stage", "gpu_lease released"],
        ]
        [plan] = calls_of(host, "gpu_node_plan")
        assert plan["overrides"] == {**ONLY, **(BACK if backwards else {})}
        asked, request = calls_of(host, "gpu_upgrade_stage")
        runfiles = {"runfile": {"source": str(new)}, "installer": {"source": str(old)}}
        assert request == {**runfiles, "transactions": package_transactions("nvidia_driver", todo), "target": NEW}
        assert [one["remove"] for one in request["transactions"]] == [["old"]]
        assert request.items() >= asked.items()
        assert [one["src"] for one in calls_of(host, "copy")] == [str(new), str(old)]
    url = Host(Disk())
    url.settings = url.settings._replace(planned={**planned, "installer": None})
    prepare.prepare_host(url, {"todo": {"nvidia_driver.runfile": {"source": "https://x/driver.run"}}}, False)
    assert (
        modules(url)[-2:] == ["gpu_upgrade_stage", "gpu_lease released"]
        and len(calls_of(url, "gpu_upgrade_stage")) == 1
    )


def test_the_result_of_a_turn() -> None:
    planned = {"from": OLD, "to": "595"}
    for fails, expected in (
        ({}, ("upgraded", NEW, "live")),
        ({"gpu_verify": [RED]}, ("rolled_back", "595", "live")),
        ({"gpu_lease taken": {}}, ("left_out", "595", "none")),
        ({"gpu_drain_docker drained": {}}, ("failed", "595", "none")),
        ({"gpu_node_plan": [{}]}, ("failed", "595", "none")),
    ):
        host = MemoryHost(Disk(), ("docker",), fails=fails)
        turn = take_turn(host)
        result = run.end_result(turn, "n1", planned, True)
        assert (result["state"], result["to"], result["way"]) == expected
        assert (result["host"], result["from"]) == ("n1", OLD)
        seconds = result["seconds_unavailable"]
        assert (
            seconds == 0
            if expected[0] == "left_out"
            else (seconds is None) == (host.disk.upgrade is None or not turn.closed)
        )
        drained = "which may still be drained" in result["reason"]
        assert drained == (turn.phase == "untouched" and not turn.closed)
    assert (
        f"The driver {OLD} was restored and verified. The host stays on it"
        in run.describe_end(take_turn(MemoryHost(Disk(), fails={"gpu_verify": [RED]})), False)[1]
    )
    assert (
        "stays drained"
        in run.describe_end(take_turn(MemoryHost(Disk(), ("docker",), fails={"gpu_verify": [RED]})), True)[1]
    )


def test_headers_are_installed_before_the_driver() -> None:
    class Host(MemoryHost):
        def answer_gpu_node_plan(self, given: Any) -> dict[str, Any]:
            plan = super().answer_gpu_node_plan(given)
            headers = {"packages": [self.disk.driver], "optional": [], "kernel": "6.1"}
            return {**plan, "todo": {**plan["todo"], "kernel_headers.install": headers}}

    host = Host(Disk())
    take_turn(host)
    assert [one["purpose"].partition(" of")[0] for one in calls_of(host, "gpu_packages")] == [
        "headers",
        "NVIDIA driver",
    ]


def test_an_answer_that_is_a_failure_fails_the_phase_whatever_part_comes_next(hook: str) -> None:
    host = MemoryHost(Disk(), ("docker", hook))
    turn, call = run.carry_out(Turn(), host)
    assert call and call.path == hook
    late = turn._replace(piece=len(pieces_of(turn.phase, host)))
    assert run.carry_out(late, host, {"failure": "it fails"}).turn.reason == "drain: it fails"


class PlannedOtherwise(MemoryHost):
    """A host whose plans have other values, from one of them on (the first: 1)."""

    def __init__(self, disk: Disk, values: dict[str, Any], first: int = 1, **options: Any) -> None:
        super().__init__(disk, ("docker",), **options)
        self.values, self.left = values, first

    def answer_gpu_node_plan(self, given: Any) -> dict[str, Any]:
        plan, self.left = super().answer_gpu_node_plan(given), self.left - 1
        return plan if self.left > 0 else {**plan, **self.values}

    def answer_gpu_packages(self, given: Any) -> dict[str, Any]:
        return {"repaired": ["x"]} if "names" not in given else super().answer_gpu_packages(given)


NO_GPU = {"plan": {"refusals": [], "gpu_host": False, "summary": "no GPU on the bus"}}
UNKNOWN = {"upgrade": {"installed": None}, "refusal": "apt is locked"}


@pytest.mark.parametrize(
    ("values", "first", "fails", "end", "why"),
    [
        (REFUSED, 1, {}, "untouched", "plan: docker is not offered"),
        # What gpu_verify says of a host without a GPU is no memory of this one: it would find its driver.
        (
            NO_GPU,
            1,
            {"gpu_verify": RED},
            "untouched",
            "has no GPU to verify any more (no GPU on the bus). Check `lspci -d 10de:`",
        ),
        ({"upgrade": {"back": None}}, 2, {"gpu_verify": [RED]}, "out of service", "it names no driver to roll back to"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_ends_the_turn(
    values: dict[str, Any], first: int, fails: dict[str, Any], end: str, why: str
) -> None:
    host = PlannedOtherwise(Disk(), values, first, fails=fails)
    turn = take_turn(host)
    assert turn.phase == end and why in run.describe_end(turn, True)[1]
    assert host.disk.serving == [] and host.disk.drained, "it cannot be verified"


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({**UNKNOWN, "plan": {"refusals": [], "summary": "two drivers"}}, "(two drivers)"),
        ({**UNKNOWN, "plan": {"refusals": []}}, "(apt is locked)"),
        ({**UNKNOWN, "upgrade": None, "plan": {"refusals": []}}, "(apt is locked)"),
    ],
)
def test_a_host_whose_driver_is_unclear_is_not_returned_to_service(values: dict[str, Any], why: str) -> None:
    disk = Disk()
    take_turn(MemoryHost(disk, ("docker",)), table.DRAIN_ONLY)
    turn = take_turn(PlannedOtherwise(disk, values), table.UNDRAIN_ONLY)
    assert turn.phase == "refused" and disk.drained
    assert f"it is unclear which one is installed {why}" in turn.reason and "gpu_undrain_unverified=true" in turn.reason


def test_a_turn_that_repaired_packages_plans_again() -> None:
    plan = MemoryHost(Disk()).answer_gpu_node_plan({"overrides": {}})
    host = PlannedOtherwise(Disk(), {"todo": {**plan["todo"], REPAIR: {}}})
    assert take_turn(host).phase == "upgraded"
    calls = modules(host)
    assert calls[calls.index("gpu_node_plan") :][:4] == [
        "gpu_node_plan",
        "gpu_packages",
        "gpu_node_plan",
        "gpu_upgrade_journal switching",
    ]


@pytest.mark.parametrize("allowed", [False, True])
def test_a_module_that_turns_out_to_be_in_use_needs_the_permission_to_reboot(allowed: bool) -> None:
    """The plan expected to reload it. The recorded driver is restored where the host may not be rebooted."""

    class Host(MemoryHost):
        def answer_gpu_kernel_module(self, given: Any) -> dict[str, Any]:
            in_use = self.disk.driver != self.disk.loaded
            return {"reboot_required": in_use, "held_by": "process 7 (train)" if in_use else ""}

    host = Host(Disk(), ("docker",), gpu_ready_reboot_ok=allowed)
    turn = take_turn(host)
    assert ("reboot" in modules(host)) == allowed
    assert (turn.phase, turn.way) == (("upgraded", "reboot") if allowed else ("rolled back", "live"))
    assert (
        allowed
        or "A reboot is required: the module is in use; held by process 7 (train)" in run.describe_end(turn, True)[1]
    )
