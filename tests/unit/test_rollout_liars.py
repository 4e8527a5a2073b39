"""What a host answers about its upgrade decides about that host alone, whatever it answers and wherever it stands."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.upgrade.model import PHASES
from plugins.plugin_utils.gpu_ready.rollout import answers, fold, model, rollout, tables
from plugins.plugin_utils.gpu_ready.rollout.model import HostUpgrade

NOW = 1_767_225_600
R1, R2 = NOW - 5000, NOW - 1000
HONEST, LIAR = ["a", "b", "c", "d"], "liar"
OLD, NEW = "580.95.05", "595.91.07"


def answer(state: str = "due", phase: str = "", number: int = 0, backwards: bool = False) -> dict[str, Any]:
    """What an honest host answers: in an upgrade, or in the rollback of one."""
    journal = {"phase": phase, "to": NEW, "rollout": number} if phase else None
    return {
        "state": state, "opened": phase not in ("", "staged", "done", "untouched"), "touched": False, "staged": False, "drained": False,
        "from": NEW if backwards else OLD, "to": OLD if backwards else NEW, "way": "live", "why": "2x Tesla T4", "refusal": "",
        "installed": {"version": NEW if backwards else OLD}, "journal": journal, "back": {"nvidia_driver_version": OLD} if phase else None,
    }  # fmt: skip


def recorded(number: int, undoes: int = 0, **states: str) -> fold.RolloutRecord:
    hosts = {
        name: fold.RecordedHost(NEW, state, run=1 if state else 0, changed=state not in ("", *fold.UNCHANGED))
        for name, state in states.items()
    }
    runs = [fold.RecordedRun(number, "ann@control", dict.fromkeys(states, NEW), list(states), [], 0, "")]
    return fold.RolloutRecord(number, "rollback" if undoes else "upgrade", undoes, "0.1.0", hosts, runs)


class Fleet(NamedTuple):
    """What honest hosts answer, the records, and what the liar would answer if it were honest and had work to do."""

    honest: dict[str, dict[str, Any]]
    records: list[fold.RolloutRecord]
    in_its_place: dict[str, Any]
    request: dict[str, Any] = {}


DUE, DONE = answer(), answer("current", "done", R1)
BACK = answer("due", "done", R1, backwards=True)
STRANGE = answer("due", "done", 5, backwards=True)
ALL_DUE = dict.fromkeys(HONEST, DUE)
HALF_DONE = {"a": DONE, "b": DONE, "c": DUE, "d": DUE}
UPGRADED: Any = dict.fromkeys([*HONEST, LIAR], "upgraded")
FLEETS = {
    "the first rollout": Fleet(ALL_DUE, [], DUE),
    "a canary that is the liar": Fleet(ALL_DUE, [], DUE, {"canaries": [LIAR], "batches": ["100%"]}),
    "new hosts after a finished rollout": Fleet(HALF_DONE, [recorded(R1, a="upgraded", b="upgraded")], DUE),
    "the liar finished it too": Fleet(HALF_DONE, [recorded(R1, a="upgraded", b="upgraded", liar="upgraded")], DUE),
    "a rollout to resume": Fleet(
        HALF_DONE, [recorded(R1, a="upgraded", b="upgraded", c="", d="rolled_back", liar="")], DUE
    ),
    "a rollout to resume, with a new host": Fleet(
        HALF_DONE, [recorded(R1, a="upgraded", b="upgraded", c="", d="")], DUE, {"pause_after": "canary"}
    ),
    "two rollouts to resume": Fleet(
        HALF_DONE, [recorded(R2, c="rolled_back", liar=""), recorded(R1, a="upgraded", b="upgraded", c="", d="")], DUE
    ),
    "an unfinished host": Fleet(ALL_DUE | {"d": answer("due", "switching", R1)}, [recorded(R1, d="")], DUE),
    "no record, resumed by its id": Fleet(
        ALL_DUE | {"d": answer("due", "switching", R1)}, [], DUE, {"rollout": R1}
    ),
    "the rollback of all": Fleet(
        dict.fromkeys(HONEST, BACK), [recorded(R1, **UPGRADED)], BACK, {"backwards": True}
    ),
    "the rollback of some": Fleet(
        {"a": BACK, "b": BACK, "c": STRANGE, "d": STRANGE},
        [recorded(R1, a="upgraded", b="failed", c="", liar="upgraded"), recorded(5, c="upgraded", d="upgraded")],
        BACK,
        {"backwards": True},
    ),
    "the rollback of others": Fleet(
        {"a": BACK, "b": BACK, "c": STRANGE, "d": STRANGE},
        [recorded(R1, a="upgraded", b="failed"), recorded(5, c="upgraded", d="upgraded", liar="upgraded")],
        answer("due", "done", 5, backwards=True),
        {"backwards": True},
    ),
    "a rollback to resume": Fleet(
        {"a": answer("current", "done", R1, backwards=True), "b": BACK, "c": BACK, "d": BACK},
        [recorded(R2, R1, a="rolled_back", b="failed", c="", d="", liar="")._replace(hosts={
            name: fold.RecordedHost(OLD, state) for name, state in (("a", "rolled_back"), ("b", "failed"), ("liar", ""))
        }), recorded(R1, **UPGRADED)],
        BACK,
        {"backwards": True},
    ),
    "an older rollback by its id": Fleet(
        dict.fromkeys(HONEST, BACK), [recorded(R2, liar="upgraded"), recorded(R1, **UPGRADED)], BACK, {"backwards": True, "rollout": R1}
    ),
    "no record, rolled back by its id": Fleet(
        dict.fromkeys("abc", BACK) | {"d": STRANGE}, [], BACK, {"backwards": True, "rollout": R1}
    ),
}  # fmt: skip
WRONG: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    7,
    1.5,
    "",
    "x",
    "\n\x1b[2J",
    "9" * 5000,
    [],
    ["due"],
    {},
    {"a": {}},
    10**400,
)
IDS = (
    0,
    5,
    R1 - 1,
    R1,
    R1 + 1,
    R2,
    NOW - 60,
    NOW,
    NOW + 1,
    NOW + 3600,
    NOW + 86400,
    NOW + 2 * 86400,
    10**15,
    -R1,
    str(R1),
    float(R1),
    [R1],
)
"""The ids of the records, those beside them, past and future ones, and other types."""


def wrong_answers(honest: dict[str, Any]) -> Iterator[Any]:
    """Every field with every wrong value, then those fields together on which a rollout could depend."""
    yield from (*WRONG, {})
    fields = {
        "phase": "done",
        "to": NEW,
        "rollout": R1,
        "from": {"version": OLD},
        "time": NOW,
        "since": NOW,
        "seconds": 5,
    }
    full = honest | {"journal": fields | {"touched": True, "reason": "", "fetched": None}}
    for name, value in itertools.product(
        [*full, "rollout", "phase"], [*WRONG, *IDS, NEW, OLD, *PHASES, "current", "refused", "unasked"]
    ):
        yield full | {name: value}
    for name in full:
        yield {key: value for key, value in full.items() if key != name}
    for name, value in itertools.product(full["journal"], [*WRONG, *IDS, NEW, OLD, *PHASES]):
        yield full | {"journal": full["journal"] | {name: value}}
    states = ("current", "due", "refused", "unasked")
    for state, opened, phase, number in itertools.product(states, (False, True), ("", *PHASES), IDS[:-5]):
        journal = full["journal"] | {"phase": phase, "rollout": number}
        yield full | {"state": state, "opened": opened, "journal": journal, "back": {"a": "b"} if opened else None}


def decide(fleet: Fleet, entries: dict[str, HostUpgrade]) -> model.Rollout:
    fields = {"batches": [1, "40%", "100%"], "max_failures": "40%"} | fleet.request
    request = model.RolloutRequest(groups={"all": [*HONEST, LIAR]}, **fields)
    return rollout.plan_rollout(list(entries), entries, request, fleet.records, NOW)


def judged(roll: model.Rollout, name: str) -> tuple[str, str]:
    """What is decided about a host, with the reason."""
    if name in roll.due:
        return "due", ""
    if name in roll.refused:
        return "refused", roll.refused[name]
    return ("kept", roll.kept[name]) if name in roll.kept else ("current", "")


def placed(others: list[str], index: int) -> list[str]:
    """The hosts in another order, with the liar at this place."""
    order = others[index:] + others[:index]
    return [*order[:index], LIAR, *order[index:]]


@pytest.mark.parametrize("name", FLEETS)
def test_a_liar_decides_about_itself_only(name: str) -> None:
    """A liar cannot exempt others from a rollback (N2), revive a finished rollout (N3), take the canary and the small
    batches from new hosts (S5), have a rollback undo more than one rollout (S6), or stop the run by a wrong form (S16).
    """
    fleet = FLEETS[name]
    honest = {host: answers.read_host(value, now=NOW) for host, value in fleet.honest.items()}
    place = answers.read_host(fleet.in_its_place, now=NOW)
    orders = [placed(HONEST, index) for index in range(len(HONEST) + 1)]
    alone = {tuple(order): decide(fleet, {host: honest[host] for host in order if host != LIAR}) for order in orders}
    truthful = {tuple(order): decide(fleet, {**dict.fromkeys(order, place), **honest}) for order in orders}
    seen = {answers.read_host(given, "no answer", NOW) for given in wrong_answers(fleet.in_its_place)}
    assert len(seen) > 300
    for order, given in itertools.product(orders, seen):
        expected, most = alone[tuple(order)], truthful[tuple(order)]
        entries = {host: honest.get(host, given) for host in order}
        roll = decide(fleet, entries)
        assert [judged(roll, host) for host in HONEST] == [judged(expected, host) for host in HONEST], given
        assert [one for one in roll.due if one != LIAR] == expected.due, given
        assert (roll.rollout, roll.resumed, roll.undoes) == (expected.rollout, expected.resumed, expected.undoes), given
        assert [one for one in roll.done if one != LIAR] == expected.done and roll.pauses == expected.pauses, given
        assert roll.budget <= most.budget, given
        assert all(one <= two for one, two in itertools.zip_longest(roll.serial, most.serial, fillvalue=0)), given
        assert not roll.serial or roll.serial[0] == 1, given
    assert "Remedy" not in tables.plan_table(roll, entries, {}) or roll.refused


@pytest.mark.parametrize("request_", [{}, {"backwards": True}], ids=["upgrade", "rollback"])
def test_a_liar_cannot_choose_the_rollout_where_no_record_knows_one(request_: dict[str, Any]) -> None:
    """A liar cannot become the rollout of others by naming an id (N2): without a record the operator names it."""
    fleet = Fleet(dict.fromkeys(HONEST, BACK if request_ else DUE), [], BACK, request_)
    honest = {host: answers.read_host(value, now=NOW) for host, value in fleet.honest.items()}
    for given in {answers.read_host(value, "no answer", NOW) for value in wrong_answers(fleet.in_its_place)}:
        entries = {LIAR: given, **honest}
        if request_:
            with pytest.raises(
                GpuReadyError, match=f"name: {R1} of [^,]* on [45](?:, [0-9]+ of [^,]* on 1)?. Remedy: "
            ):
                decide(fleet, entries)
        else:
            assert decide(fleet, entries).rollout == NOW


def test_a_liar_that_alone_left_a_rollout_unfinished_chooses_between_two_that_the_operator_began() -> None:
    """A liar cannot change more than that: it says whether it is due, as every host does (N3)."""
    fleet = Fleet(ALL_DUE, [recorded(R1, a="upgraded", liar="rolled_back")], DUE, {"pause_after": "canary"})
    honest = {host: answers.read_host(value, now=NOW) for host, value in fleet.honest.items()}
    for given in {answers.read_host(value, "no answer", NOW) for value in wrong_answers(fleet.in_its_place)}:
        roll = decide(fleet, {LIAR: given, **honest})
        assert (roll.rollout, roll.resumed) in {(NOW, False), (R1, True)} and roll.pauses
        assert [one for one in roll.due if one != LIAR] == HONEST and roll.budget <= 2 and roll.serial[0] == 1
