"""A rollout: its order, batches and budget, what it resumes or undoes, its tables."""

from collections.abc import Sequence
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.upgrade import phases
from plugins.plugin_utils.gpu_ready.rollout import answers, estimate, fold, model, results, tables
from plugins.plugin_utils.gpu_ready.rollout import rollout as rollouts
from plugins.plugin_utils.gpu_ready.rollout.model import FleetError, HostUpgrade
from plugins.plugin_utils.gpu_ready.rollout.rollout import batch_sizes
from tests.unit.test_upgrade import OLD

# ---- the rollout


@pytest.mark.parametrize(
    ("count", "canaries", "sizes", "expected"),
    [
        (24, 0, [1, "10%", "25%", "50%", "100%"], [1, 2, 6, 12, 3]),
        (24, 1, [1, "10%", "25%", "50%", "100%"], [1, 1, 2, 6, 12, 2]),
        (4, 2, [1], [2, 1, 1]),
        (3, 0, ["100%"], [3]),
        (3, 3, ["100%"], [3]),
        (3, 0, [10], [3]),
        (0, 0, [1, "50%"], []),
        (5, 0, ["1%"], [1, 1, 1, 1, 1]),
    ],
)
def test_batches(count: int, canaries: int, sizes: list[Any], expected: list[int]) -> None:
    assert batch_sizes(count, canaries, sizes) == expected


@pytest.mark.parametrize("sizes", [[], [0], ["many"], ["0%"], [-1], [1.5]])
def test_a_wrong_size_is_refused_with_the_variable(sizes: list[Any]) -> None:
    with pytest.raises(FleetError, match="gpu_upgrade_batches"):
        batch_sizes(3, 0, sizes)


def entry(state: str, **more: Any) -> HostUpgrade:
    found = {"state": state, "from": "580.95.05", "to": "595", "way": "live", "why": "2x Tesla T4", "refusal": "", "opened": False, "installed": OLD._asdict(), "journal": None}  # fmt: skip
    return answers.read_host(found | more)


SILENT = answers.read_host(None, "no answer")
NOW = 1_767_225_600  # 2026-01-01

HOSTS = ["a", "b", "c", "d", "e"]


def rollout(entries: dict[str, HostUpgrade], records: Sequence[fold.RolloutRecord] = (), **given: Any) -> model.Rollout:
    fields = {"groups": {"test": ["d"], "rack": ["b", "c"]}, "batches": [1, "100%"]} | given
    return rollouts.plan_rollout(list(entries), entries, model.RolloutRequest(**fields), records, NOW)


def recorded(number: int = 7, target: str = "595.91.07", undoes: int = 0, **states: str) -> fold.RolloutRecord:
    """The record of an earlier run; ``states``: how the turn of each host ended, "" for one that did not begin.

    "began" is a turn without an end.
    """
    hosts = {
        name: fold.RecordedHost(
            target,
            state.replace("began", ""),
            run=1 if state else 0,
            changed=state not in ("", "began", *fold.UNCHANGED),
        )
        for name, state in states.items()
    }
    runs = [fold.RecordedRun(number, "ann@control", dict.fromkeys(states, target), list(states), [], 0, "")]
    return fold.RolloutRecord(number, "rollback" if undoes else "upgrade", undoes, "0.1.0", hosts, runs)


def every(state: str, hosts: Sequence[str] = HOSTS) -> Any:
    """The same end of the turn for many hosts."""
    return dict.fromkeys(hosts, state)


def changed(number: int, phase: str = "done", state: str = "due", **more: Any) -> HostUpgrade:
    """A host whose journal names a rollout, in the plan of a rollback."""
    found = {"back": {"nvidia_driver_branch": "580"}, "journal": {"phase": phase, "to": "595.91.07", "rollout": number}}
    return entry(state, **found | more)


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
    assert rollouts.build_lineup(["d", "c", "b"], [1, 2], limited=True)[:3] == (["d", "c", "b"], [1, 2], [])
    paused = rollouts.build_lineup(["d", "c", "b"], [1, 2], limited=False, pauses=True)
    assert paused == model.Lineup(["d", "gpu_upgrade_batch_1"], [2], ["gpu_upgrade_batch_1"], ["c", "b"])
    alone = rollouts.build_lineup(["d", "c", "b"], [1, 2], limited=True, pauses=True)
    assert alone == model.Lineup(["d"], [1], [], ["c", "b"])


def test_batches_grow_also_without_an_eligible_canary() -> None:
    entries = {name: entry("due") for name in HOSTS} | {"d": SILENT}
    roll = rollout(entries, canaries=["d"], batches=["100%"])
    assert (roll.due, roll.serial) == (["a", "b", "c", "e"], [1, 3])
    nobody = {name: entry("current") for name in HOSTS} | {"d": SILENT}
    assert rollout(nobody, canaries=["d"], batches=["100%"]).serial == []


def test_the_first_batch_of_every_run_is_its_canary() -> None:
    entries = {name: entry("due") for name in HOSTS}
    tried: list[list[fold.RolloutRecord]] = [
        [],
        [recorded(a="upgraded", b="upgraded", c="rolled_back", d="rolled_back", e="")],
    ]
    for known in tried:
        assert rollout(entries, known, canaries=["d"])[:2] == (["d", "a", "b", "c", "e"], [1, 1, 3])
    over = entries | {"a": entry("current"), "b": entry("current")}
    # It failed within the budget: the later batches continued and have ended.
    failed = [recorded(a="upgraded", b="upgraded", c="", d="rolled_back", e="")]
    assert rollout(over, failed, canaries=["d"])[:2] == (["d", "c", "e"], [1, 1, 1])
    assert rollout(over, failed, canaries=["d", "a"]).serial == [1, 1, 1]
    assert rollout(over, failed, canaries=["d", "c"]).serial == [2, 1]
    # All canaries that take part have passed: the sizes say what is first.
    assert rollout(over, failed, canaries=["a"], batches=["100%"]).serial == [3]
    assert rollout(over, failed, canaries=["a"]).serial == [1, 2]
    # Another rollout's canary says nothing about this one, and neither does what hosts say.
    assert rollout(over, [], canaries=["a"], batches=["100%"]).serial == [1, 2]
    done = entry("current", journal={"phase": "done", "to": "595.91.07", "rollout": 7})
    assert rollout(over | {"a": done}, [], canaries=["a"], batches=["100%"]).serial == [1, 2]


def test_only_hosts_that_the_rollout_changed_are_rolled_back() -> None:
    entries = {
        "a": changed(7),
        "b": changed(7, "back", opened=True),
        "c": changed(5),  # not reached by this rollout
        "d": entry("refused", refusal="There is no driver"),  # no member
        "e": SILENT,  # no member either
    }
    known = [recorded(a="upgraded", b="failed", c="")]
    roll = rollout(entries, known, backwards=True)
    assert (roll.due, roll.current, roll.refused) == (["a", "b"], ["c", "d", "e"], {})
    assert roll.kept == dict.fromkeys("cde", "no rollback: this rollout did not change this host")
    assert (roll.undoes, roll.rollout, roll.resumed, roll.done) == (7, NOW, False, [])
    table = tables.plan_table(roll, entries, {})
    assert table.count("no rollback:") == 3 and "2 to do, 0 current, 3 without rollback, 0 refused" in table
    undoes = "undoes rollout 7 (1970-01-01 00:00 UTC, to 595.91.07)"
    assert table.startswith(f"Rolls back 2 hosts to 595: {undoes}.\n\nhost")
    assert list(rollout(entries, known).refused) == ["b", "d", "e"][1:]


def test_a_rollback_undoes_the_newest_rollout_that_changed_a_host_of_the_run() -> None:
    entries = {name: changed(7) for name in HOSTS} | {"e": changed(9)}
    older, newer = recorded(7, **every("upgraded")), recorded(9, a="", e="upgraded")
    prepared = recorded(11, **every(""))
    known = [recorded(12, undoes=11), prepared, newer, older]
    assert rollout(entries, known, backwards=True).due == ["e"]
    assert rollout({name: entries[name] for name in "abcd"}, known, backwards=True).due == ["a", "b", "c", "d"]
    earlier = rollout(entries, known, backwards=True, rollout=7)
    assert (earlier.due, earlier.kept, earlier.undoes) == (["a", "b", "c", "d"], {}, 7)
    assert "journal names rollout 9 of 1970" in earlier.refused["e"]
    assert rollout(entries, known, backwards=True, rollout=11).due == []
    with pytest.raises(FleetError, match="rollout 12 is itself the rollback of rollout 11. Give the id of an upgrade"):
        rollout(entries, known, backwards=True, rollout=12)


@pytest.mark.parametrize(
    ("journal", "words"),
    [
        ({"phase": "done", "to": "595", "rollout": 9}, "Rollout 7 changed this host, but the host's journal names rollout 9 of 1970"),
        ({"phase": "switching", "to": "595", "rollout": 9}, "names rollout 9"),
        ({"phase": "done", "to": "595", "rollout": 0}, "names no rollout"),
        (None, "names no rollout"),
    ],
)  # fmt: skip
def test_a_member_whose_journal_does_not_confirm_the_record_is_refused_itself(journal: Any, words: str) -> None:
    entries = {name: changed(7) for name in HOSTS} | {"b": changed(7, journal=journal)}
    roll = rollout(entries, [recorded(**every("upgraded"))], backwards=True)
    assert roll.due == ["a", "c", "d", "e"] and words in roll.refused["b"] and "Remedy: " in roll.refused["b"]
    assert roll.kept == {} and roll.current == []


def test_a_member_without_an_earlier_driver_is_refused_itself() -> None:
    entries = {name: changed(7) for name in HOSTS} | {"b": changed(7, state="current", back=None)}
    roll = rollout(entries, [recorded(**every("upgraded"))], backwards=True)
    assert roll.due == ["a", "c", "d", "e"] and "names no driver to go back to. Remedy: " in roll.refused["b"]


def test_a_host_that_was_prepared_for_a_later_rollout_returns_to_the_driver_before_its_last_upgrade() -> None:
    entries = {name: changed(9, "staged") for name in HOSTS}
    known = [recorded(9, **every("")), recorded(7, **every("upgraded"))]
    assert rollout(entries, known, backwards=True).due == HOSTS
    # Nothing but the begin of its turn is known, and its journal says that it was only prepared.
    interrupted = [recorded(9, **every("began"))]
    assert list(rollout(entries, interrupted, backwards=True).kept) == HOSTS
    at_work = {name: changed(9, "draining", opened=True) for name in HOSTS}
    assert rollout(at_work, interrupted, backwards=True).due == HOSTS


def test_a_rollback_is_a_rollout_of_its_own_and_resumes() -> None:
    over = changed(7, state="current", to="580.95.05")
    entries = dict.fromkeys("ad", over) | dict.fromkeys("bc", changed(7, to="580.95.05"))
    undone = recorded(7, **every("upgraded"))
    begun = recorded(NOW - 5, "580.95.05", 7, a="rolled_back", b="failed", c="", d="")
    roll = rollout(entries, [begun, undone], backwards=True, max_failures="50%")
    assert (sorted(roll.due), roll.done, roll.current) == (["b", "c"], ["a"], ["a", "d"])
    assert (roll.rollout, roll.undoes, roll.resumed, roll.budget) == (NOW - 5, 7, True, 1)
    assert ", to 595.91.07), 1 rolled back already." in tables.plan_table(roll, entries, {})
    other = begun._replace(undoes=6)
    assert rollout(entries, [other, undone], backwards=True).rollout == NOW
    assert rollout(entries, [undone], backwards=True).rollout == NOW


def test_without_a_record_a_rollback_asks_for_the_id_that_most_hosts_name() -> None:
    entries = {"a": changed(NOW), "b": changed(7), "c": changed(7), "d": entry("current"), "e": changed(7, "staged")}
    without: list[list[fold.RolloutRecord]] = [
        [],
        [recorded(8, **every(""))],
        [recorded(9, undoes=8, a="rolled_back")],
    ]
    for known in without:
        with pytest.raises(FleetError) as caught:
            rollout(entries, known, backwards=True)
        assert (
            "journals name: 7 of 1970-01-01 00:00 UTC on 3, 1767225600 of 2026-01-01 00:00 UTC on 1. Remedy: set "
            "gpu_ready_state_dir to"
        ) in str(caught.value)
        assert str(caught.value).endswith("-e gpu_upgrade_rollout=ID.")
    many = {f"h{number}": changed(1 + number // 2) for number in range(100)}
    with pytest.raises(FleetError, match="name: (?:[0-9]+ of 1970-01-01 00:00 UTC on 2, ){4}46 of [^,]* on 2. Remedy"):
        rollout(many, backwards=True)
    with pytest.raises(FleetError, match="is no record of rollout 5, and no host of this run names it. .* on 3, 17"):
        rollout(entries, backwards=True, rollout=5)
    roll = rollout(entries | {"d": SILENT}, backwards=True, rollout=7)
    assert (roll.due, list(roll.kept), list(roll.refused)) == (["b", "c"], ["a", "e"], ["d"])
    assert (roll.undoes, roll.rollout) == (7, NOW)


def test_a_resumed_run_belongs_to_the_same_rollout() -> None:
    entries = {"a": entry("current", to="595.91.07"), "b": entry("due", to="595.91.07")}

    def number(*known: fold.RolloutRecord, **more: HostUpgrade) -> tuple[int, bool]:
        roll = rollout(entries | more, known)
        return roll.rollout, roll.resumed

    assert number() == (NOW, False)
    for state in ("", "began", "failed", "rolled_back", "left_out", "paused", "not_reached"):
        assert number(recorded(7, a="upgraded", b=state)) == (7, True)
    assert number(recorded(7, a="upgraded", b="upgraded")) == (NOW, False)  # all hosts of that rollout are done
    assert number(recorded(7, a="upgraded")) == (NOW, False)  # b is new
    assert number(recorded(7, "595", b="")) == number(recorded(7, b=""), b=entry("due", to="595")) == (7, True)
    for other in ("590.1", "595.91.08", "595.91.0", "59", ""):
        assert number(recorded(7, other, b="")) == (NOW, False)  # another driver is another rollout
    assert number(recorded(7, undoes=5, b="")) == (NOW, False)
    # Runs with --limit: an older rollout can be unfinished.
    assert number(recorded(8, a="upgraded"), recorded(7, b="")) == (7, True)
    assert number(recorded(8, b=""), recorded(7, b="")) == (8, True)
    assert number(recorded(NOW + 3600, c="")) == (NOW + 3601, False)  # the clock was set back
    for phase in ("staged", "done", "untouched"):  # what hosts say does not count
        journal = {"phase": phase, "to": "595.91.07", "rollout": NOW + 3600}
        assert number(b=entry("due", journal=journal)) == (NOW, False)


def test_an_unfinished_host_of_an_unknown_rollout_is_refused_itself() -> None:
    for phase in ("draining", "switching", "verified", "going_back", "back", "stuck"):
        other = entry("due", opened=True, journal={"phase": phase, "to": "595", "rollout": 7})
        entries = {"a": entry("due"), "b": other, "c": entry("due")}
        roll = rollout(entries)
        assert (roll.due, roll.rollout, roll.resumed) == (["a", "c"], NOW, False)
        assert "rollout 7 of 1970" in roll.refused["b"]
        assert "-e gpu_upgrade_rollout=7; or set gpu_ready_state_dir" in roll.refused["b"]
        chosen = rollout(entries, rollout=7)
        assert (chosen.due, chosen.rollout, chosen.resumed, chosen.refused) == (["a", "b", "c"], 7, False, {})
        for known in (recorded(7, b="failed"), recorded(7, c="upgraded")):
            assert rollout(entries, [known]).due == ["a", "b", "c"]
        again = rollout(entries, [recorded(7, b="failed")], rollout=7)
        assert (again.rollout, again.resumed) == (7, True)
    outside = {"a": entry("due", opened=True, journal={"phase": "switching", "to": "595", "rollout": 0})}
    assert rollout(outside).due == ["a"]
    with pytest.raises(
        FleetError, match="gpu_upgrade_rollout: rollout 99999999999 would begin at 5138-.* in the future"
    ):
        rollout(outside, rollout=99999999999)


@pytest.mark.parametrize(
    ("new", "old", "serial"),
    [
        (100, 1900, [1, 10, 25, 50, 14]),
        (100, 100, [1, 10, 25, 50, 14]),
        (1, 1900, [1]),
    ],
)
def test_shares_and_budget_count_the_hosts_that_this_run_upgrades(new: int, old: int, serial: list[int]) -> None:
    over = entry("current", journal={"phase": "done", "to": "595.91.07", "rollout": 7})
    entries = {f"old{number}": over for number in range(old)} | {f"new{number}": entry("due") for number in range(new)}
    finished = recorded(**every("upgraded", [name for name in entries if name.startswith("old")]))
    unfinished = finished._replace(hosts={**finished.hosts, "new0": fold.RecordedHost("595.91.07")})
    for known, done in ((finished, 0), (unfinished, old)):
        roll = rollout(entries, [known], batches=[1, "10%", "25%", "50%", "100%"], max_failures="10%")
        assert (roll.serial, len(roll.done), roll.budget, roll.resumed) == (serial, done, new // 10, bool(done))
    assert rollout(entries, [finished], batches=["100%"], canaries=["old0"]).serial == [1, new - 1][: len(roll.due)]
    # Their rollback concerns them alone, since they have a record of their own.
    roll = rollout(entries, [finished])
    after = {name: changed(roll.rollout if name in roll.due else 7) for name in entries}
    newest = recorded(roll.rollout, **every("upgraded", roll.due))
    back = rollout(after, [newest, finished], backwards=True)
    assert back.due == roll.due and len(back.kept) == old


def test_a_rollout_pauses_while_no_host_of_it_is_done() -> None:
    entries = {name: entry("due") for name in HOSTS}
    roll = rollout(entries, pause_after="canary")
    assert roll.pauses and (
        "; batches of 1, 4\nPauses after the first batch (gpu_upgrade_pause_after); the same command then upgrades 4 hosts."
    ) in tables.plan_table(roll, entries, {})
    assert not rollout(entries).pauses
    assert rollout(entries, [recorded(a="rolled_back", b="")], pause_after="canary").pauses
    over = entries | {"a": entry("current")}
    assert not rollout(over, [recorded(a="upgraded", b="")], pause_after="canary").pauses
    assert rollout(over, [recorded(a="upgraded")], pause_after="canary").pauses  # another rollout
    # It was rolled back since: it is due again, and no canary of this run.
    assert rollout(entries, [recorded(a="upgraded", b="")], pause_after="canary").pauses
    undone = [recorded(**every("upgraded"))]
    assert not rollout({name: changed(7) for name in HOSTS}, undone, pause_after="canary", backwards=True).pauses
    assert "Pauses" not in tables.plan_table(rollout(entries, batches=[9], pause_after="canary"), entries, {})


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
    known = [recorded(a="upgraded", b="", c="", d="", e="")]
    entries = {name: entry("due") for name in HOSTS} | {"a": entry("current")}
    entries |= {"b": entry("refused", refusal="The disk is full."), "c": SILENT}
    roll = rollout(entries, known)
    assert (roll.due, roll.serial, roll.done) == (["d", "e"], [1, 1], ["a"])
    assert roll.refused == {"b": "The disk is full.", "c": "no answer"}
    table = tables.plan_table(roll, entries, {"d": "docker", "e": ["slurm", "./x.yml"]})
    assert "2 to do, 1 current, 2 refused, 0 excluded; batches of 1, 1" in table and "live  docker" in table
    assert "live  slurm ./x.yml" in table
    assert table.startswith("Upgrades 2 hosts to 595: resumes rollout 7 (1970-01-01 00:00 UTC), 1 done.\n\nhost")


def test_what_the_plans_warn_of_is_shown_once_below_the_table() -> None:
    unknown = "630 is not in the catalog; check that it drives these GPUs"
    entries = {name: entry("due")._replace(warnings=[unknown]) for name in HOSTS} | {"e": entry("current")}
    table = tables.plan_table(rollout(entries), entries, {})
    assert table.count(unknown) == 1 and f"a, b, c, d: {unknown}" in " ".join(table.split())


GOOD = results.good_states("upgrade")


def test_the_report_has_the_reason_why_the_rollout_stopped() -> None:
    back = {"host": "a", "state": "rolled_back", "from": "580.95.05", "to": "595", "way": "live", "seconds_unavailable": 61, "reason": "the verification failed"}  # fmt: skip
    found = results.host_results(
        HOSTS, {"a": back, "b": back | {"host": "b", "state": "upgraded"}}, ["a", "c"], {}, ["c"]
    )
    assert [one.state for one in found.values()] == ["rolled_back", "upgraded", "failed", "not_reached", "not_reached"]
    table = tables.result_table(found, GOOD, 0)
    assert "gpu_upgrade_max_failures is 0; 2 are unchanged" in table and "  the verification failed" in table
    assert "gpu_upgrade_exclude), then run the same command again" in " ".join(table.split())
    assert results.failed_hosts(found, GOOD, ["e"]) == ["a", "c", "d"]


def test_a_long_table_has_the_time_out_of_service_of_all_hosts_in_one_line() -> None:
    hosts = [f"n{number:02}" for number in range(41)]
    ends: dict[str, Any] = {
        name: {"state": "upgraded", "seconds_unavailable": 60 + at} for at, name in enumerate(hosts)
    }
    line = "Seconds out of service: 60 to 100, median 80"
    table = tables.result_table(results.host_results(hosts, ends, [], {}, []), GOOD, 0)
    assert line in table.splitlines() and "n17" not in table
    few = tables.result_table(results.host_results(hosts[:40], ends, [], {}, []), GOOD, 0)
    assert "Seconds out" not in few and "n17" in few
    silent = {name: {"state": "upgraded"} for name in hosts}
    assert "Seconds out" not in tables.result_table(results.host_results(hosts, silent, [], {}, []), GOOD, 0)


def test_a_paused_host_is_in_a_good_state() -> None:
    found = {name: results.paused_result(name, entry("due")) for name in "bc"}
    found |= results.host_results(["a"], {"a": {"state": "upgraded"}}, [], {}, [])
    table = tables.result_table(found, GOOD, 0)
    assert "Paused after the first batch (gpu_upgrade_pause_after): 2 hosts wait. The same command continues." in table
    assert results.failed_hosts(found, GOOD, []) == [] and "3 hosts: 2 paused, 1 upgraded" in table
    alone = tables.result_table({"b": found["b"]}, GOOD, 0)
    assert "1 host waits. The same" in alone and "waits for the next run of the same command" in alone


def test_hosts_that_take_no_part_have_their_result() -> None:
    entries = {
        "a": entry("current"), "b": entry("refused", refusal="The disk is full."), "c": entry("due"), "d": changed(7),
    }  # fmt: skip
    found = results.untouched_results(rollout(entries, exclude=["c"]), entries)
    assert {name: (one.state, one.to, one.seconds_unavailable, one.reason) for name, one in found.items()} == {
        "a": ("current", "595", 0, "nothing to do"),
        "b": ("left_out", "595", 0, "The disk is full."),
        "c": ("excluded", "595", 0, "excluded by gpu_upgrade_exclude"),
    }
    failed = [recorded(9, c="", d="upgraded"), recorded(8, c="rolled_back", d="rolled_back")]
    assert results.hosts_rolled_back(failed, ["a", "c", "d"]) == ["c"]
    undone = recorded(9, undoes=7, c="rolled_back")._replace(direction=fold.ROLLBACK)
    assert results.hosts_rolled_back([undone, *failed], ["c"]) == []
    again = results.untouched_results(rollout(entries, exclude=["c"]), entries, ["c"])
    assert again["c"].reason == "excluded by gpu_upgrade_exclude, after its upgrade failed and was rolled back"
    kept = results.untouched_results(rollout(entries, [recorded(d="upgraded")], backwards=True), entries)
    assert kept["a"][1:4] == ("current", "580.95.05", None) and "did not change this host" in kept["a"].reason


def test_cells_of_one_host_do_not_cut_those_of_others() -> None:
    long = "x" * 100_000
    wide = {"state": "left_out", "from": long, "to": long, "way": long, "reason": long}
    plain = {"state": "upgraded", "from": "580.95.05", "to": "595.91.07", "way": "live", "reason": "as requested"}
    found = results.host_results(["a", "b"], {"a": wide, "b": plain}, [], {}, [])
    assert results.read_result("a", wide | {"state": long}).state == "failed"
    lines = tables.result_table(found, ["upgraded"], 0).splitlines()
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
    entries = {name: changed(NOW) for name in HOSTS}
    entries["c"] = answers.read_host(answer, now=NOW)
    roll = rollout(entries, [recorded(NOW, **every("upgraded"))], backwards=backwards)
    assert roll.due == ["a", "b", "d", "e"] and list(roll.refused) == ["c"]
    assert "Remedy: " in roll.refused["c"] and len(roll.refused["c"]) < 400
    assert "c: refused\n" in tables.plan_table(roll, entries, {})


def test_a_clock_that_is_ahead_by_less_than_a_day_is_accepted() -> None:
    journal = {"phase": "done", "to": "595", "rollout": NOW + 3600}
    assert answers.read_host(DUE_ANSWER | {"journal": journal}, now=NOW).rollout == NOW + 3600


@pytest.mark.parametrize(
    ("loaded", "shown"),
    [(None, ", no driver is loaded"), ("580.95.05", ""), ("595.91.07", ", 595.91.07 is loaded")],
)
def test_a_resumed_host_shows_the_loaded_driver_where_it_is_not_the_installed_one(
    loaded: str | None, shown: str
) -> None:
    found = entry("due", opened=True, loaded=loaded, drained=True, journal={"phase": "switching"})
    text = "resume: interrupted while replacing the driver, 580.95.05 is installed%s, drained"
    assert tables.resume_text(found) == text % shown


def test_a_host_that_was_rolled_back_is_tried_again() -> None:
    tried = entry("due", opened=True, journal={"phase": "back"})
    entries = {name: tried for name in HOSTS} | {"b": entry("due", opened=True, journal={"phase": "switching"})}
    table = tables.plan_table(rollout(entries, exclude=["e"]), entries, {})
    assert table.count("retry after a rollback") == 3
    assert (
        "resume: interrupted while replacing the driver, 580.95.05 is installed" in table
        and "excluded by gpu_upgrade_exclude" in table
        and "1 excluded" in table
    )


def test_the_duration_of_a_plan_is_that_of_earlier_turns() -> None:
    """The median of the turns that succeeded in this direction, once for each group of hosts that have theirs at once."""

    def ended(record: fold.RolloutRecord, **seconds: int) -> fold.RolloutRecord:
        hosts = {name: host._replace(began=100, ended=100 + seconds[name]) for name, host in record.hosts.items()}
        return record._replace(hosts=hosts)

    known = [
        ended(recorded(a="upgraded", b="upgraded", c="rolled_back", d="upgraded"), a=60, b=90, c=9000, d=200),
        ended(recorded(8, undoes=7, a="rolled_back"), a=7),
        recorded(9, a="upgraded"),  # by a release that recorded no times
    ]
    assert sorted(estimate.turn_seconds(known, fold.UPGRADE)) == [60, 90, 200]
    assert estimate.turn_seconds(known, fold.ROLLBACK) == [7]
    assert estimate.rollout_seconds([1, 5, 2], 4, [60, 90, 200]) == (1 + 2 + 1) * 90
    assert estimate.estimate_text(known, fold.UPGRADE, [1, 5, 2], 4).startswith("About 6 min, by 3 turns recorded here")
    assert estimate.estimate_text(known[1:2], fold.UPGRADE, [1], 4).startswith("Duration unknown: no finished turn")
    assert estimate.estimate_text(known, fold.UPGRADE, [], 4) == ""
    assert [estimate.duration_text(one) for one in (59, 60, 89, 3570, 3600, 9000)] == [
        "59 s", "1 min", "1 min", "1 h 0 min", "1 h 0 min", "2 h 30 min",
    ]  # fmt: skip


def test_a_plan_has_the_size_of_the_downloads_of_all_its_hosts() -> None:
    sizes = {(): "their size is not known beforehand", (0, 0): "their size is not known beforehand"}
    sizes |= {(850_000_000, 750_000_000): "1.6 GB in all", (0, 40_000): "40 kB in all, without 1 host of unknown size"}
    for given, text in sizes.items():
        assert estimate.estimate_text([], fold.UPGRADE, [1], 4, given).endswith(f"The downloads: {text}.")
    assert answers.read_host({"state": "due", "opened": False, "download": 7}).download == 7
    assert 'download is "7"' in answers.read_host({"state": "due", "opened": False, "download": "7"}).failure


def test_a_plan_with_several_targets_begins_with_that_of_the_most_hosts() -> None:
    entries = {name: entry("due", to="580.95.05" if name == "a" else "595.91.07") for name in HOSTS}
    assert tables.plan_table(rollout(entries), entries, {}, time="About 6 min.").startswith(
        "Upgrades 5 hosts to 595.91.07 (4), 580.95.05 (1).\n"
    )
    assert tables.plan_table(rollout(entries), entries, {}, time="About 6 min.").endswith("\nAbout 6 min.")
    idle = {name: entry("current") for name in HOSTS}
    assert tables.plan_table(rollout(idle), idle, {}).startswith("Nothing to upgrade.\n\nhost")
