"""The journal of an upgrade, what is due on a host, and the order of a rollout."""

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.base.disruptions import DRIVER_RELOAD, REBOOT
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.facts.model import DkmsFacts, Facts, GpuProcess, ModuleFacts, VerifiedFacts
from plugins.module_utils.gpu_ready.upgrade import journal, phases, stage
from plugins.module_utils.gpu_ready.upgrade.model import RecordedDriver, UpgradeJournal
from plugins.plugin_utils.gpu_ready.plan import compose, upgrade
from plugins.plugin_utils.gpu_ready.plan.driver import choose as driver
from plugins.plugin_utils.gpu_ready.plan.driver.model import ActivateParams
from plugins.plugin_utils.gpu_ready.plan.model import Choices, DriverChoice, Refusal, Step
from plugins.plugin_utils.gpu_ready.rollout import answers, model, results, tables
from plugins.plugin_utils.gpu_ready.rollout import rollout as rollouts
from plugins.plugin_utils.gpu_ready.rollout.model import FleetError, HostUpgrade
from plugins.plugin_utils.gpu_ready.rollout.rollout import batch_sizes
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit.hosts import T4, bare, having

OLD = RecordedDriver(version="580.95.05", branch="580", flavour="open", source="cuda_repo", kernel_modules="dkms")
NEW = OLD._replace(version="595.91.07", branch="595")


def after_phases(*given: tuple[str, int], driver: RecordedDriver | None = OLD, to: str = "595") -> UpgradeJournal:
    found = None
    for phase, now in given:
        found = phases.advance(found, phase, now, driver, to, "")
    assert found
    return found


def host_facts(
    version: str | None = "580.95.05", recorded: UpgradeJournal | None = None, clients: tuple[str, ...] = ()
) -> Facts:
    driver = {
        "on_disk": ModuleFacts(version, "open") if version else None,
        "origin": "cuda_repo" if version else None,
        "dkms": [DkmsFacts("nvidia", version or "", [])],
    }
    work = {"processes": [GpuProcess(7, name) for name in clients]}
    return having(bare(T4), driver=driver, work=work)._replace(upgrade=recorded)


CHOSEN = DriverChoice(
    source="cuda_repo",
    kind="dkms",
    version="595.91.07",
    branch=595,
    flavour="open",
    profile="compute",
    packages=[],
    modules=["nvidia"],
)


def decided(*steps: Step, refusals: tuple[Refusal, ...] = ()) -> compose.Plan:
    return compose.Plan(True, "2x Tesla T4", Choices(driver=CHOSEN), list(steps), list(refusals))


NO_GPU = compose.Plan(False, "no NVIDIA GPU: left alone")


def activate(action: str, why: str = "the driver changes", fallback: str | None = "reboot") -> Step:
    params = ActivateParams(action, ["nvidia"], fallback, [], why)
    return Step("nvidia_driver.activate", why, REBOOT if action == "reboot" else DRIVER_RELOAD, params)


INSTALL = Step("nvidia_driver.install", "driver 580.95.05 is installed", DRIVER_RELOAD)


def status(seen: Facts, chosen: compose.Plan, now: int = 0, **given: Any) -> dict[str, Any]:
    settings = variables.parse_settings(given).settings
    return dict(records.to_json(upgrade.upgrade_status(seen, chosen, settings, now)))


def test_the_journal_counts_the_time_out_of_service_over_an_interrupted_run() -> None:
    found = after_phases(
        ("staged", 5), ("draining", 10), ("switching", 20), ("draining", 50), ("verified", 60), ("done", 70)
    )
    assert found.seconds == 60 and found.from_ == OLD and found.to == "595"


def test_the_time_of_a_second_drain_counts_too() -> None:
    found = after_phases(
        ("staged", 5), ("draining", 10), ("verified", 60), ("done", 70), ("going_back", 130), ("back", 150)
    )
    assert found.seconds == 80


@pytest.mark.parametrize(
    ("phases", "touched"),
    [
        (["staged", "draining"], False),
        (["staged", "draining", "draining"], False),  # jobs ran past the limit twice: the driver was never changed
        (["staged", "draining", "switching"], True),
        (["staged", "draining", "switching", "draining"], True),
        (["staged", "draining", "switching", "verified", "draining"], True),
        (["staged", "draining", "switching", "going_back", "back"], True),
        (["staged", "draining", "switching", "going_back", "back", "draining"], True),
        (["staged", "draining", "switching", "verified", "done", "staged", "draining"], False),
        (["staged", "draining", "untouched"], False),
    ],
)
def test_a_driver_that_may_be_partly_replaced_is_known_over_runs(phases: list[str], touched: bool) -> None:
    found = after_phases(*[(phase, number) for number, phase in enumerate(phases, 1)])
    assert status(host_facts(recorded=found), decided(INSTALL))["touched"] == touched


def test_a_host_that_lost_its_gpus_meanwhile_differs_from_a_host_without_gpu() -> None:
    assert status(host_facts(), NO_GPU)["state"] == "current"
    assert status(host_facts(recorded=after_phases(("staged", 1), ("done", 2))), NO_GPU)["state"] == "current"
    found = status(host_facts(recorded=after_phases(("staged", 1), ("draining", 2))), NO_GPU)
    assert found["state"] == "refused" and "no NVIDIA GPU" in found["refusal"] and "Remedy" in found["refusal"]


def test_a_host_that_lost_all_its_gpus_is_not_in_the_desired_state() -> None:
    addresses = ["0000:01:00.0", "0000:02:00.0"]
    seen = having(host_facts(), base={"gpus": []}, verified=VerifiedFacts(True, addresses=addresses))
    found = status(seen, NO_GPU)
    assert found["state"] == "refused" and found["refusal"] == (
        "The GPUs of the last verification (2: 0000:01:00.0, 0000:02:00.0) are missing: none is on the PCI bus. "
        "Remedy: see `lspci -d 10de:` and the kernel's log; where they were taken out, run playbooks/uninstall.yml, "
        "or leave the host out with gpu_upgrade_exclude or gpu_upgrade_leave_out."
    )
    given = seen._replace(base=bare(T4).base)  # passed to virtual machines
    assert status(given, NO_GPU)["state"] == "current"
    assert status(seen._replace(verified=None), NO_GPU)["state"] == "current"


def test_a_resumed_run_keeps_the_recorded_driver() -> None:
    second = phases.advance(
        after_phases(("staged", 1), ("draining", 2), ("switching", 3)), "draining", 9, NEW, "595", ""
    )
    assert second.from_ == OLD
    assert phases.advance(second._replace(phase="stuck"), "staged", 9, NEW, "595", "").from_ == OLD


@pytest.mark.parametrize("phase", ["done", "back", "untouched"])
def test_the_next_upgrade_records_the_driver_of_that_time(phase: str) -> None:
    found = after_phases(("staged", 1), ("draining", 2), (phase, 3))
    for begun in ("staged", "draining"):
        found = phases.advance(found, begun, 9, NEW, "610", "")
    assert found.from_ == NEW


def test_a_prepared_host_that_is_not_reached_keeps_the_driver_of_its_last_upgrade() -> None:
    done = after_phases(("staged", 1), ("draining", 2), ("switching", 3), ("done", 4))
    prepared = phases.advance(done, "staged", 9, NEW, "610", "")
    assert (prepared.from_, prepared.to) == (OLD, "610")
    assert after_phases(("staged", 1)).from_ == OLD  # the first upgrade: its downloads for a rollback are kept


def test_journal_round_trip_and_damage(tmp_path: Path) -> None:
    path = tmp_path / "upgrade.json"
    phases.write(after_phases(("staged", 1)), str(path))
    assert journal.read(Host(), str(path)) == after_phases(("staged", 1))
    for text in ("", "null", "{", "[]", '{"schema": 1}', '{"schema": 1, "phase": 7}'):
        path.write_text(text)
        with pytest.raises(GpuReadyError, match=r"upgrade\.json.*(damaged|must be)"):
            journal.read(Host(), str(path))


def test_a_journal_of_another_schema_is_refused(tmp_path: Path) -> None:
    """What another release recorded must not be taken for a host that was never upgraded."""
    path = tmp_path / "upgrade.json"
    path.write_text(json.dumps({"schema": 99, "phase": "switching"}))
    with pytest.raises(records.RecordError, match="upgrade.json: schema 99 is of another release"):
        journal.read(Host(), str(path))


def test_a_host_with_the_desired_driver_has_nothing_to_do() -> None:
    assert status(host_facts("595.91.07"), decided())["state"] == "current"
    tidy = decided(Step("nvidia_driver.hold", "an unattended upgrade"))
    assert status(host_facts("595.91.07"), tidy)["state"] == "current"


@pytest.mark.parametrize("phase", ["draining", "switching", "verified", "going_back", "stuck", "back"])
def test_an_unfinished_upgrade_is_resumed(phase: str) -> None:
    found = status(host_facts("595.91.07", after_phases(("staged", 1), (phase, 2))), decided())
    assert (found["state"], found["way"], found["opened"]) == ("due", "none", True)
    assert (found["from"], found["to"]) == ("580.95.05", "595.91.07")
    assert not found["staged"]
    second = after_phases(("staged", 1), (phase, 2), to="595.91.07")
    assert status(host_facts("595.91.07", second), decided())["staged"] == (phase != "back")


def test_recent_downloads_are_not_repeated() -> None:
    fetched = phases.record_fetched(after_phases(("staged", 1)), "595.91.07", 1000)
    assert upgrade.is_fetched(fetched, "595.91.07", 1000 + upgrade.FRESH - 1)
    assert not upgrade.is_fetched(fetched, "595.91.07", 1000 + upgrade.FRESH)
    assert not upgrade.is_fetched(fetched, "595.91.07", 999)  # the clock was set back
    assert not upgrade.is_fetched(fetched, "610", 1001)
    assert not upgrade.is_fetched(fetched._replace(phase="back"), "595.91.07", 1001)
    second = phases.advance(fetched, "staged", 1002, OLD, "595.91.07", "")
    seen = host_facts(recorded=second)
    chosen = decided(INSTALL, activate("reload"))
    assert status(seen, chosen, 1003)["staged"]
    assert not status(seen, chosen, 1003 + upgrade.FRESH)["staged"]


def test_a_driver_that_can_be_reloaded_is_due() -> None:
    found = status(host_facts(), decided(INSTALL, activate("reload")))
    assert (found["state"], found["way"], found["from"], found["to"]) == ("due", "live", "580.95.05", "595.91.07")
    assert found["installed"] == OLD._asdict() and found["back"] is None


def test_programs_on_the_gpus_are_left_to_the_drain() -> None:
    step = activate("reboot", "train (7) hold the loaded module")
    found = status(host_facts(clients=("train",)), decided(INSTALL, step))
    assert (found["state"], found["way"]) == ("due", "live") and "train" in found["why"]


def test_a_reboot_needs_permission() -> None:
    chosen = decided(INSTALL, activate("reboot", "gpu_ready_activation is reboot", None))
    assert "gpu_ready_reboot_ok" in status(host_facts(), chosen)["refusal"]
    found = status(host_facts(), chosen, gpu_ready_reboot_ok=True)
    assert (found["state"], found["way"]) == ("due", "reboot")


def test_refusals_and_bare_hosts_take_no_part() -> None:
    refusal = Refusal("disk_full", "The disk is full", "free some space")
    assert status(host_facts(), decided(refusals=(refusal,)))["refusal"] == "The disk is full. Remedy: free some space."
    assert "site.yml" in status(host_facts(None), decided(INSTALL, activate("load")))["refusal"]


def test_the_rollback_requests_exactly_the_previous_driver() -> None:
    old = OLD._replace(packages=["libcuda1=580.95.05-1"])
    assert records.to_json(upgrade.rollback_settings(old)) == {
        "nvidia_driver_source": "cuda_repo",
        "nvidia_driver_version": "580.95.05",
        "nvidia_driver_packages": ["libcuda1=580.95.05-1"],
        "nvidia_driver_branch": "580",
        "nvidia_driver_flavour": "open",
        "nvidia_driver_kernel_modules": "dkms",
        "nvidia_driver_runfile": "",
        "nvidia_driver_runfile_sha256": "",
    }
    assert upgrade.rollback_settings(None) is None


# ---- the rollout


@pytest.mark.parametrize(
    ("count", "canaries", "done", "sizes", "expected"),
    [
        (24, 0, 0, [1, "10%", "25%", "50%", "100%"], [1, 2, 6, 12, 3]),
        (4, 2, 0, [1], [2, 1, 1]),
        (22, 1, 2, [1, "10%", "25%", "50%", "100%"], [1, 1, 6, 12, 2]),  # the canary failed, within the budget
        (23, 0, 1, [1, "10%", "25%", "50%", "100%"], [2, 6, 12, 3]),
        (20, 0, 4, [1, "10%", "100%"], [20]),
        (3, 0, 0, ["100%"], [3]),
        (3, 0, 0, [10], [3]),
        (0, 0, 5, [1, "50%"], []),
        (5, 0, 0, ["1%"], [1, 1, 1, 1, 1]),
    ],
)
def test_batches(count: int, canaries: int, done: int, sizes: list[Any], expected: list[int]) -> None:
    assert batch_sizes(count, canaries, done, sizes) == expected


@pytest.mark.parametrize("sizes", [[], [0], ["many"], ["0%"], [-1], [1.5]])
def test_a_wrong_size_is_refused_with_the_variable(sizes: list[Any]) -> None:
    with pytest.raises(FleetError, match="gpu_upgrade_batches"):
        batch_sizes(3, 0, 0, sizes)


def entry(state: str, **more: Any) -> HostUpgrade:
    found = {"state": state, "from": "580.95.05", "to": "595", "way": "live", "why": "2x Tesla T4", "refusal": "", "opened": False, "installed": OLD._asdict(), "journal": None}  # fmt: skip
    return answers.read_host(found | more)


SILENT = answers.read_host(None, "no answer")
NOW = 1_767_225_600  # 2026-01-01

HOSTS = ["a", "b", "c", "d", "e"]


def rollout(entries: dict[str, HostUpgrade], **given: Any) -> model.Rollout:
    fields = {"groups": {"test": ["d"], "rack": ["b", "c"]}, "batches": [1, "100%"]} | given
    return rollouts.plan_rollout(list(entries), entries, model.RolloutRequest(**fields), NOW)


def staged(**more: Any) -> HostUpgrade:
    """A host that an earlier run of the rollout 7 prepared, and did not reach."""
    return entry("due", journal={"phase": "staged", "to": "595", "rollout": 7}, **more)


def test_the_operator_selects_canaries_and_exclusions() -> None:
    roll = rollout({name: entry("due") for name in HOSTS}, canaries=["test"], first=["c"], exclude=["a"])
    assert roll.due == ["d", "c", "b", "e"] and roll.serial == [1, 1, 2] and roll.excluded == ["a"]


def test_a_current_host_that_is_still_drained_is_named() -> None:
    entries = {"a": entry("current", drained=True), "b": entry("current")}
    roll = rollout(entries)
    assert tables.current_text(roll, "b", entries["b"]) == "nothing to do"
    text = tables.current_text(roll, "a", entries["a"])
    assert "drained: run playbooks/undrain.yml" in text
    assert text in tables.plan_table(roll, entries, {})


def test_no_batch_can_fail_completely() -> None:
    line = rollouts.build_lineup(["d", "c", "b"], [1, 2], limited=False)
    assert line.roll == ["d", "gpu_upgrade_batch_1", "c", "b", "gpu_upgrade_batch_2"]
    assert line.sizes == [2, 3] and line.watch == ["gpu_upgrade_batch_1", "gpu_upgrade_batch_2"]
    assert rollouts.build_lineup([], [], limited=False).roll == []
    assert rollouts.build_lineup(["d", "c", "b"], [1, 2], limited=True) == (["d", "c", "b"], [1, 2], [])


def test_batches_grow_also_without_an_eligible_canary() -> None:
    entries = {name: entry("due") for name in HOSTS} | {"d": SILENT}
    roll = rollout(entries, canaries=["d"], batches=["100%"])
    assert (roll.due, roll.serial) == (["a", "b", "c", "e"], [1, 3])
    nobody = {name: entry("current") for name in HOSTS} | {"d": SILENT}
    assert rollout(nobody, canaries=["d"], batches=["100%"]).serial == []


def test_a_repeated_canary_precedes_all_others() -> None:
    tried = {"opened": True, "journal": {"phase": "back", "to": "595.91.07", "rollout": 7}}
    over = entry("current", journal={"phase": "done", "to": "595.91.07", "rollout": 7})
    # It failed within the budget: the later batches continued and have ended.
    failed = {"a": over, "b": over, "c": staged(), "d": entry("due", **tried), "e": staged()}
    roll = rollout(failed, canaries=["d"])
    assert (roll.due, roll.serial) == (["d", "c", "e"], [1, 2])
    assert rollout(failed, canaries=["d", "a"]).serial == [1, 2]  # the other canary has passed
    assert rollout(failed, canaries=["d", "c"]).serial == [2, 1]
    assert rollout(failed | {"b": staged()}, canaries=["d"], batches=[2, "100%"]).serial == [1, 1, 2]
    passed = failed | {"d": over}
    assert rollout(passed, canaries=["d"], batches=[1, "100%"]).serial == [2]


def test_a_host_without_a_record_keeps_its_driver_in_any_case() -> None:
    bare = entry("refused", refusal="There is no driver", back=None)
    entries = {"a": entry("due", back={}), "b": bare, "c": SILENT} | {
        name: entry("due", back={"nvidia_driver_branch": "580"}) for name in "de"
    }
    assert rollout(entries, exclude=["a"], backwards=True)[:1] == (["d", "e"],)
    roll = rollout(entries, exclude=["a"], backwards=True)
    assert roll.current == ["b"] and list(roll.refused) == ["c"]
    assert list(rollout(entries, exclude=["a"]).refused) == ["b", "c"]


def test_only_hosts_of_the_last_rollout_are_rolled_back() -> None:
    def changed(rollout: int, **more: Any) -> HostUpgrade:
        return entry(
            "due",
            back={"nvidia_driver_branch": "580"},
            journal={"phase": "done", "to": "595", "rollout": rollout},
            **more,
        )

    outside = changed(0)  # its last upgrade belonged to no rollout
    entries = {
        "a": changed(7),
        "b": changed(5),
        "c": changed(7, opened=True),
        "d": outside,
        "e": entry("refused", back=None),
    }
    roll = rollout(entries, backwards=True)
    assert roll.due == ["a", "c"] and roll.current == ["b", "d", "e"] and roll.refused == {}
    assert set(roll.kept) == {"b", "d", "e"} and roll.done == []
    assert "no rollback" in roll.kept["b"] and "another rollout" in roll.kept["b"]
    assert "no rollback" in roll.kept["e"] and "no upgrade" in roll.kept["e"]
    table = tables.plan_table(roll, entries, {})
    assert table.count("no rollback:") == 3
    assert "2 to do, 0 current, 3 without rollback, 0 refused" in table
    assert rollout(entries).due == ["a", "b", "c", "d"] and rollout(entries).kept == {}
    alone = {name: SILENT for name in HOSTS} | {"b": changed(5)}
    assert rollout(alone, backwards=True).due == ["b"]  # such as by --limit
    before = {name: outside for name in HOSTS}
    assert rollout(before, backwards=True).due == HOSTS


def test_a_rollback_says_which_rollout_it_undoes_and_refuses_unfinished_hosts_of_others() -> None:
    def changed(rollout: int, **more: Any) -> HostUpgrade:
        journal = {"phase": "done", "to": "595.91.07", "rollout": rollout}
        return entry("due", back={"nvidia_driver_branch": "580"}, journal=journal, **more)

    before = NOW - 90 * 24 * 3600
    over = entry("current", back={"a": "b"}, to="580", journal={"phase": "done", "to": "580.95.05", "rollout": NOW})
    entries = {"a": changed(NOW), "b": changed(NOW), "c": over, "d": changed(before), "e": changed(before, opened=True)}
    roll = rollout(entries, backwards=True)
    assert (roll.due, roll.done, roll.rollout) == (["a", "b"], ["c"], NOW)
    earlier = rollout(entries, backwards=True, rollout=before)
    assert (earlier.due, list(earlier.kept), earlier.refused) == (["d", "e"], ["a", "b", "c"], {})
    with pytest.raises(
        FleetError, match="gpu_upgrade_rollout: no host .* 5. Known are: 1767225600 of 2026-01-01 00:00 UTC, 17594"
    ):
        rollout(entries, backwards=True, rollout=5)
    assert list(roll.refused) == ["e"] and "the rollout of 2025-10-03 00:00 UTC" in roll.refused["e"]
    table = tables.plan_table(roll, entries, {}, backwards=True)
    assert (
        "Rolls back rollout 1767225600 of 2026-01-01 00:00 UTC to 595.91.07: 2 hosts, 1 rolled back already." in table
    )
    assert "Hosts of other rollouts keep their driver: 1 of rollout 1759449600 of 2025-10-03 00:00 UTC." in table


def test_a_resumed_run_belongs_to_the_same_rollout() -> None:
    def reported(state: str, phase: str, to: str, rollout: int) -> HostUpgrade:
        return entry(state, to="595", journal={"phase": phase, "to": to, "rollout": rollout})

    def number(**entries: HostUpgrade) -> int:
        return rollout(entries).rollout

    assert number(a=entry("due"), b=SILENT) == NOW
    over = reported("current", "done", "595.91.07", 7)
    for phase in ("staged", "draining", "switching", "back", "stuck", "untouched"):
        assert number(a=over, b=reported("due", phase, "595", 7)) == 7
    assert number(a=over, b=entry("due")) == NOW  # all hosts of that rollout are finished
    assert number(a=over, b=reported("due", "done", "580.95.05", 7)) == NOW
    assert number(a=over, b=reported("due", "back", "590", 7)) == NOW  # another driver is another rollout
    # Runs with --limit: an older rollout can be unfinished.
    assert number(a=reported("current", "done", "595.91.07", 8), b=reported("due", "staged", "595", 7)) == 7
    assert number(a=reported("due", "done", "580.95.05", NOW + 3600)) == NOW + 3601  # the clock was set back


@pytest.mark.parametrize(
    ("new", "old", "serial"),
    [
        (100, 1900, [1, 10, 25, 50, 14]),
        (100, 100, [1, 10, 25, 50, 14]),
        (1, 1900, [1]),
    ],
)
def test_hosts_of_a_finished_rollout_are_no_batches_of_the_next(new: int, old: int, serial: list[int]) -> None:
    over = entry("current", journal={"phase": "done", "to": "595.91.07", "rollout": 7})
    entries = {f"old{number}": over for number in range(old)} | {f"new{number}": entry("due") for number in range(new)}
    roll = rollout(entries, batches=[1, "10%", "25%", "50%", "100%"], max_failures="10%")
    assert (roll.serial, roll.done, roll.budget, roll.resumed) == (serial, [], new // 10, False)
    assert rollout(entries, batches=["100%"], canaries=["old0"]).serial == [1, new - 1][: len(roll.due)]
    # Their rollback concerns them alone, since they have a number of their own.
    changed = {"phase": "done", "to": "595.91.07", "rollout": roll.rollout}
    after = {
        name: entry("due", back={"a": "b"}, journal=changed if name in roll.due else changed | {"rollout": 7})
        for name in entries
    }
    back = rollout(after, backwards=True)
    assert back.due == roll.due and len(back.kept) == old


def test_a_new_host_of_a_resumed_rollout_is_a_canary() -> None:
    over = entry("current", journal={"phase": "done", "to": "595.91.07", "rollout": 7})
    entries = (
        {name: over for name in "abcdefgh"}
        | {name: staged() for name in "ijkl"}
        | {"m": entry("due"), "n": entry("due")}
    )
    roll = rollout(entries, batches=[1, "10%", "100%"], groups={})
    assert roll.due == ["m", "i", "j", "k", "l", "n"] and roll.serial == [1, 5] and roll.rollout == 7
    assert rollout(entries, batches=["100%"], groups={}).serial == [6]  # the operator asked for no canary
    assert rollout(entries, batches=[1, "100%"], groups={}, canaries=["n", "i"]).serial == [2, 4]
    known = {name: one for name, one in entries.items() if name not in ("m", "n")}
    assert rollout(known, batches=[1, "10%", "100%"], groups={}).serial == [4]


@pytest.mark.parametrize(
    ("value", "budget"), [(0, 0), ("3", 3), (7, 7), ("10%", 2), ("9%", 2), ("0%", 0), ("100%", 24), (" 25% ", 6)]
)
def test_the_budget_is_a_number_or_a_share_of_the_rollout(value: object, budget: int) -> None:
    assert rollouts.failure_budget(value, 24) == budget


@pytest.mark.parametrize("value", [-1, "unlimited", "", None, 1.5, "101%", "10 %%", True, [1], {}, "1" * 5000])
def test_a_wrong_budget_is_refused_before_anything_starts(value: object) -> None:
    with pytest.raises(FleetError, match="gpu_upgrade_max_failures: .* is no number of hosts. Give"):
        rollout({name: entry("due") for name in HOSTS}, max_failures=value)


def test_a_setting_of_the_rollout_is_the_same_on_all_hosts() -> None:
    equal: dict[str, dict[str, object]] = {
        "gpu_upgrade_max_failures": dict.fromkeys(HOSTS, 5),
        "gpu_upgrade_first": dict.fromkeys(HOSTS, ""),
    }
    rollouts.require_equal_settings(equal)
    values = dict.fromkeys(HOSTS, "0") | {"a": 0, "b": 50, "c": 50}
    with pytest.raises(FleetError) as caught:
        rollouts.require_equal_settings(equal | {"gpu_upgrade_max_failures": values})
    assert str(caught.value) == (
        "gpu_upgrade_max_failures: it is a setting of the whole rollout, and hosts have different values: 50 on b and 1 "
        "more; 0 on a and 2 more. Set it for all hosts, in group_vars of all or with -e."
    )


def test_the_journal_knows_the_rollout_that_changed_the_host_last() -> None:
    found = phases.advance(None, "staged", 1, OLD, "595", "", 7)
    assert phases.advance(found, "draining", 2, OLD, "595", "").rollout == 7
    assert phases.advance(found, "draining", 2, OLD, "595", "", 9).rollout == 9


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(FleetError, match="gpu_upgrade_canaries: x is neither"):
        rollout({name: entry("due") for name in HOSTS}, canaries=["x"])


def test_a_host_beyond_the_limit_is_known() -> None:
    groups = {"all": [*HOSTS, "x"]}
    assert rollout({name: entry("due") for name in HOSTS}, canaries=["x"], groups=groups).serial == [1, 4]


def test_hosts_of_an_earlier_run_are_not_repeated() -> None:
    done = {"phase": "done", "to": "595.91.07", "rollout": 7}
    entries = {name: staged() for name in HOSTS} | {"a": entry("current", journal=done)}
    roll = rollout(entries | {"b": entry("refused", refusal="The disk is full."), "c": SILENT})
    assert (roll.due, roll.serial, roll.done) == (["d", "e"], [2], ["a"])
    assert roll.refused == {"b": "The disk is full.", "c": "no answer"}
    table = tables.plan_table(roll, entries | {"c": SILENT}, {"d": "docker", "e": ["slurm", "./x.yml"]})
    assert "2 to do, 1 current, 2 refused, 0 excluded; batches of 2" in table and "live  docker" in table
    assert "live  slurm ./x.yml" in table
    assert "Resumes rollout 7 of 1970-01-01 00:00 UTC: 1 done, 2 to do." in table


def test_the_report_has_the_reason_why_the_rollout_stopped() -> None:
    back = {"host": "a", "state": "rolled_back", "from": "580.95.05", "to": "595", "way": "live", "seconds_unavailable": 61, "reason": "the verification failed"}  # fmt: skip
    found = results.host_results(
        HOSTS, {"a": back, "b": back | {"host": "b", "state": "upgraded"}}, ["a", "c"], {}, ["c"]
    )
    assert [one.state for one in found.values()] == [
        "rolled_back",
        "upgraded",
        "failed",
        "not_reached",
        "not_reached",
    ]
    good = ["current", "upgraded"]
    table = tables.result_table(found, good, 0)
    assert "gpu_upgrade_max_failures is 0; 2 are unchanged" in table and "  the verification failed" in table
    assert "gpu_upgrade_exclude), then run the same command again" in " ".join(table.split())
    assert results.failed_hosts(found, good, ["e"]) == ["a", "c", "d"]


def test_cells_of_one_host_do_not_cut_those_of_others() -> None:
    long = "x" * 100_000
    wide = {"state": long, "from": long, "to": long, "way": long, "reason": long}
    plain = {"state": "upgraded", "from": "580.95.05", "to": "595.91.07", "way": "live", "reason": "as requested"}
    found = results.host_results(["a", "b"], {"a": wide, "b": plain}, [], {}, [])
    lines = tables.result_table(found, ["upgraded", long], 0).splitlines()
    assert [line.split() for line in lines if line.startswith("b ")] == [
        ["b", "upgraded", "580.95.05", "595.91.07", "live", "-", "as", "requested"]
    ]
    entries = {"a": entry("due", **{"from": long, "to": long, "way": long}), "b": entry("current")}
    table = tables.plan_table(rollout(entries, groups={"all": ["a", "b"]}), entries, {})
    (shown,) = [line for line in table.splitlines() if line.startswith("b ")]
    assert shown.endswith("nothing to do")


def test_reasons_in_the_report_are_not_truncated() -> None:
    left = {"state": "left_out", "reason": "The preparation failed: " + "the disk is full, " * 12 + "and that is all"}
    found = results.host_results(HOSTS, {"a": left, "b": {"state": "excluded", "reason": "as asked"}}, [], {}, ["c"])
    table = tables.result_table(found, ["upgraded"], 0)
    assert "a: left out\n  The preparation" in table and "and that is all" in table and "b: excluded" not in table
    assert found["c"].state == "left_out" and "unreachable during its preparation" in found["c"].reason


DUE_ANSWER: dict[str, Any] = {"state": "due", "opened": False, "to": "595", "back": None}
WRONG_VALUES: list[dict[str, Any]] = [
    {"opened": 1}, {"opened": None}, {"journal": []}, {"journal": "x"}, {"installed": [1]}, {"back": "x"}, {"to": 595}, {"why": {}},
]  # fmt: skip
WRONG_JOURNALS: list[dict[str, Any]] = [
    {"rollout": "abc"}, {"rollout": [1]}, {"rollout": {}}, {"rollout": None}, {"rollout": True}, {"rollout": 1.5}, {"rollout": -1},
    {"rollout": 10**15}, {"rollout": 10**400}, {"rollout": NOW + 2 * 24 * 3600}, {"phase": "other"}, {"phase": 3}, {"to": {}},
]  # fmt: skip
WRONG_ANSWERS: list[Any] = [
    [],
    "x",
    7,
    {"state": "else"},
    {"state": ["due"]},
    {"state": "due"},  # opened is missing
    *(DUE_ANSWER | change for change in WRONG_VALUES),
    *(DUE_ANSWER | {"journal": {"phase": "done", "to": "595"} | change} for change in WRONG_JOURNALS),
]  # fmt: skip


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("answer", WRONG_ANSWERS, ids=lambda answer: repr(answer)[:60])
def test_an_invalid_answer_refuses_that_host_only(answer: Any, backwards: bool) -> None:
    changed = {"phase": "done", "to": "595.91.07", "rollout": NOW}
    entries = {name: entry("due", back={"a": "b"}, journal=changed) for name in HOSTS}
    entries["c"] = answers.read_host(answer, now=NOW)
    roll = rollout(entries, backwards=backwards)
    assert roll.due == ["a", "b", "d", "e"] and list(roll.refused) == ["c"]
    assert "Remedy: " in roll.refused["c"] and len(roll.refused["c"]) < 400
    assert "c: refused\n" in tables.plan_table(roll, entries, {}, backwards=backwards)


def test_a_clock_that_is_ahead_by_less_than_a_day_is_accepted() -> None:
    journal = {"phase": "done", "to": "595", "rollout": NOW + 3600}
    assert answers.read_host(DUE_ANSWER | {"journal": journal}, now=NOW).rollout == NOW + 3600


def test_a_host_that_was_rolled_back_is_tried_again() -> None:
    tried = entry("due", opened=True, journal={"phase": "back"})
    entries = {name: tried for name in HOSTS} | {"b": entry("due", opened=True, journal={"phase": "switching"})}
    table = tables.plan_table(rollout(entries, exclude=["e"]), entries, {})
    assert table.count("retry after a rollback") == 3
    assert (
        "resume an interrupted upgrade" in table
        and "excluded by gpu_upgrade_exclude" in table
        and "1 excluded" in table
    )


# ---- what is downloaded beforehand


def test_downloads_are_those_that_the_steps_need() -> None:
    todo: dict[str, dict[str, object]] = {
        "nvidia_driver.install": {
            "packages": [{"name": "cuda-drivers", "version": "595.91.07-*"}],
            "pin_packages": ["pin-595"],
            "pin_remove": ["pin-580"],
            "streams": {},
            "remove": ["old"],
            "allow_remove": ["older"],
        },
        "nvidia_driver.hold": {"tools": ["versionlock"], "packages": []},
        "gpu_verify.verify": {"expect": {}},
    }
    request = stage.build_request(todo)
    assert request.names == [{"name": "cuda-drivers", "version": "595.91.07-*"}, "versionlock"]
    assert (request.pins, request.pins_removed, request.remove, request.allowed) == (["pin-595"], ["pin-580"], ["old"], ["older"])  # fmt: skip
    assert stage.build_request({}) == stage.StageRequest()


def test_the_installers_of_upgrade_and_rollback_are_known_beforehand() -> None:
    seen = bare(T4, distro="debian12")
    given = variables.parse_settings({"gpu_ready_mirror": "http://m"}).settings
    found = driver.earlier_installer(seen, given, "580.95.05")
    assert found and "580.95.05" in found.source and found.source.startswith("http://m/")
    assert found.sha256_url == found.source + ".sha256sum"
    file = "/srv/595.91.07/NVIDIA-Linux-x86_64-595.91.07.run"
    beside = driver.earlier_installer(seen, given._replace(nvidia_driver_runfile=file), "580.95.05")
    assert beside and beside.source == "/srv/580.95.05/NVIDIA-Linux-x86_64-580.95.05.run"
    todo: dict[str, dict[str, object]] = {
        "nvidia_driver.runfile": {"version": "595.91.07"},
        "nvidia_driver.remove_packages": {"packages": ["old"]},
    }
    assert stage.build_request(todo).runfile == ("595.91.07", "", "", "") and stage.build_request(todo).replaced == [
        "old"
    ]
