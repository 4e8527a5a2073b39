"""The grid: 89 systems with their kernels, and 12 sets of cards. Each plan is judged by what vendors publish.

The expectations come from data/grid.yml, which repeats indexes and support tables of vendors; the rules of the choice are
those of docs/drivers.md. Neither the catalog nor the planner has a part in them.
"""

import datetime
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ansible.module_utils.common.yaml import yaml_load

from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.completion import complete
from plugins.plugin_utils.gpu_ready.explain.host import DescribedHost
from plugins.plugin_utils.gpu_ready.plan import compose
from tests.unit import catalogs
from tests.unit.hosts import NVSWITCH, card, having
from tests.unit.plans import settings, todo

GRID: dict[str, Any] = yaml_load((Path(__file__).parent / "data/grid.yml").read_text())
BRANCHES, CHIPS, BUILDS_TO = GRID["branches"], GRID["chips"], GRID["builds_to"]
RIGHT, WRONG, UNPROVED = "right", "wrong", "unproved"
LEAST_RIGHT = 1450
MANAGERS = {"zypper": "zypper", "tdnf": "tdnf", "dnf": "dnf"}
SOURCES = ("distro", "cuda_repo")
"""The sources that `auto` uses, in the order in which it tries them (docs/drivers.md)."""
KERNEL = "nothing is published of a maintained branch on this kernel"
Cards = tuple[str, ...]
Driver = tuple[str, int, str]
"""Source, branch and flavour."""


class Expected(NamedTuple):
    """``driver``: None for a refusal with one of these ``codes``, which names ``words``. ``unproved``: what is not known."""

    driver: Driver | None = None
    codes: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    unproved: str = ""


class System(NamedTuple):
    """A system with one of its kernels."""

    row: dict[str, Any]
    kernel: str

    @property
    def name(self) -> str:
        return f"{self.row['os']}, {self.kernel}"


class GridHost(DescribedHost):
    """A fresh host of which os-release, kernel and package manager are known."""

    def __init__(self, system: System) -> None:
        super().__init__(release_text(system.row["os"]), [])
        self.kernel, self.manager = system.kernel, MANAGERS.get(system.row.get("why", ""))
        self.files["/proc/sys/kernel/osrelease"] = system.kernel + "\n"

    def uname(self) -> tuple[str, str]:
        return self.kernel, "x86_64"

    def which(self, program: str) -> str | None:
        return "/usr/bin/" + program if program == self.manager else super().which(program)


def release_text(words: str) -> str:
    """Return os-release: "debian 12 bookworm KEY=VALUE" are ID, VERSION_ID, VERSION_CODENAME and further keys."""
    plain = [word for word in words.split() if "=" not in word]
    lines = [word for word in words.split() if "=" in word]
    lines += [f"{key}={value}" for key, value in zip(["ID", "VERSION_ID", "VERSION_CODENAME"], plain, strict=False)]
    return "".join(f"{line}\n" for line in lines if not line.endswith("=-"))


def series(kernel: str) -> tuple[int, ...]:
    return tuple(int(part) for part in kernel.split(".")[:2] if part.isdigit())


# --- what is expected ------------------------------------------------------------------------------------------------


def expected(system: System, cards: Cards) -> Expected:
    """Return what vendors' publications and the documented rules of the choice give a host."""
    row, devices = system.row, [card for card in cards if "Switch" not in card]
    if "why" in row:
        reason = GRID["reasons"][row["why"]]
        return Expected(codes=tuple(reason["codes"]), words=tuple(reason["words"]))
    pairs = frozenset.intersection(*(chip_pairs(CHIPS[device]) for device in devices))
    if not pairs:
        return Expected(codes=("no_driver_for_mixed_gpus",), words=tuple(CHIPS[device]["name"] for device in devices))
    sources = GRID["sources"][row["of"]]
    offered = {
        (source, branch, flavour)
        for source in SOURCES
        for data in [sources.get(source, {})]
        for branch in data.get("branches", [])
        for flavour in source_flavours(data, branch)
        if len(devices) == len(cards) or branch in data.get("switches", data["branches"])
    }
    fitting = {one for one in offered if one[1:] in pairs}
    seen = {one for one in fitting if not is_unseen(sources, one[1], system.kernel)}
    best = preferred(seen or fitting, devices)
    if not best:
        return Expected(codes=("branch_not_carried", "kernel_above_branch"))
    if sources.get("no_key"):
        return Expected(codes=("repository_key_unknown",), words=("gpu_ready_mirror_keys",))
    if re.search(r"[-+.](rt\d*|realtime)\b", system.kernel):
        # preempt_rt_sanity_check in conftest.sh of every release.
        return Expected(codes=("kernel_realtime",), words=(system.kernel, "PREEMPT_RT"))
    return Expected(best, unproved=doubt(system, sources, best))


def chip_pairs(chip: dict[str, Any]) -> frozenset[tuple[int, str]]:
    return frozenset(
        (branch, flavour)
        for branch, data in BRANCHES.items()
        for flavour in chip["flavours"]
        if chip.get("first", 0) <= branch <= chip.get("last", 9999)
        and flavour in data.get("flavours", ("open", "proprietary"))
    )


def source_flavours(data: dict[str, Any], branch: int) -> tuple[str, ...]:
    if data.get("proprietary_only"):
        return ("proprietary",)
    return ("open",) if branch in data.get("open_only", ()) else ("open", "proprietary")


def preferred(offered: set[Driver], devices: list[str]) -> Driver | None:
    """Return the best: of the first source with a maintained branch, else of all sources; None for none at all.

    Its branch is not younger than 90 days if there is another, with the longest support; its module the open one where
    possible. That drives GeForce and workstation cards from branch 560 on without an option (guide, kernel modules).
    """
    maintained = [one for one in offered if not has_ended(one[1])]
    first = next((name for name in SOURCES if any(one[0] == name for one in maintained)), None)
    fitting = [one for one in maintained if one[0] == first] or sorted(offered, key=lambda one: SOURCES.index(one[0]))
    if not fitting:
        return None
    branch = max(
        (one[1] for one in fitting), key=lambda one: (not BRANCHES[one].get("young"), BRANCHES[one]["end"], one)
    )
    source = next(one[0] for one in fitting if one[1] == branch)
    flavours = {one[2] for one in fitting if one[:2] == (source, branch)}
    open_from = max(CHIPS[device].get("open_from", 0) for device in devices)
    is_open = "open" in flavours and (branch >= open_from or flavours == {"open"})
    return source, branch, "open" if is_open else "proprietary"


def has_ended(branch: int) -> bool:
    end = BRANCHES[branch]["end"]
    return bool(end) and end < GRID["day"][:7]


def doubt(system: System, sources: dict[str, Any], best: Driver) -> str:
    """Return what no vendor publishes of a driver on a system; "" for nothing."""
    source, branch, _ = best
    if "unseen" in system.row and re.search(system.row["unseen"], system.kernel):
        return "nothing is published of this kernel"
    if is_unseen(sources, branch, system.kernel):
        return f"no index with {branch} was read"
    patched = sources[source].get("own_kernels")
    known = tuple(int(part) for part in BUILDS_TO.get(branch, "0.0").split("."))
    if not patched and series(system.kernel) > known:
        return KERNEL if not has_ended(branch) else f"nothing is published of {branch} on {system.kernel}"
    return ""


def is_unseen(sources: dict[str, Any], branch: int, kernel: str) -> bool:
    pattern = sources.get("unseen", {}).get(branch)
    return pattern is not None and re.search(pattern, kernel) is not None


# --- what is planned -------------------------------------------------------------------------------------------------


def systems() -> list[System]:
    return [System(row, kernel) for row in GRID["systems"] for kernel in row["kernels"]]


def plans(system: System) -> Iterator[tuple[Cards, compose.Plan]]:
    """Yield the plan for each set of cards. The facts are collected once."""
    facts: Facts = complete.collect_facts(GridHost(system), None, GRID["day"])
    for cards in map(tuple, GRID["cards"]):
        gpus = [card(device, position) for position, device in enumerate(cards) if "Switch" not in device]
        switches = [{"address": f"0000:0{n}:00.0", "device": NVSWITCH, "driver": None} for n in range(4)]
        base = {"gpus": gpus, "nvswitches": switches if len(gpus) < len(cards) else []}
        yield cards, compose.plan(having(facts, base=base), settings())


def judge(system: System, cards: Cards, decided: compose.Plan) -> tuple[str, str]:
    """Return the judgement on a plan, and why it is wrong or unproved."""
    right_answer = expected(system, cards)
    text = " ".join(f"{one.message} {one.remedy}" for one in decided.refusals)
    if right_answer.codes:
        codes = {one.code for one in decided.refusals}
        missing = [word for word in right_answer.words if word not in text]
        right = bool(codes & set(right_answer.codes)) and not missing
        return (
            (RIGHT, "")
            if right
            else (WRONG, f"expected {right_answer.codes} {right_answer.words}, got {shown(decided)}")
        )
    driver = decided.choices.driver
    if decided.refusals or driver is None or driver.branch is None:
        return WRONG, f"expected {right_answer.driver}, got {shown(decided)}"
    if (driver.source, driver.branch, driver.flavour) != right_answer.driver:
        return WRONG, f"expected {right_answer.driver}, got {shown(decided)}"
    headers = planned_headers(decided)
    if not any(re.fullmatch(header_pattern(system.kernel), name) for name in headers):
        return WRONG, f"expected headers {header_pattern(system.kernel)}, got {headers}"
    if right_answer.unproved == KERNEL and "kernel_unverified" not in {one.code for one in decided.warnings}:
        return WRONG, f"nothing is published of {driver.branch} on this kernel, and no warning says so"
    return (UNPROVED, right_answer.unproved) if right_answer.unproved else (RIGHT, "")


def shown(decided: compose.Plan) -> str:
    driver = decided.choices.driver
    return str([(one.code, one.message, one.remedy) for one in decided.refusals] or (driver and driver[:6]))


def planned_headers(decided: compose.Plan) -> list[str]:
    steps = [step for step in decided.steps if step.id == "kernel_headers.install"]
    return [one if isinstance(one, str) else one["name"] for step in steps for one in todo(step)["packages"]]


def header_pattern(kernel: str) -> str:
    name = next(name for pattern, name in GRID["headers"] if re.search(pattern, kernel))
    return str(name).format(kernel=re.escape(kernel), series=".".join(map(str, series(kernel))))


class Cell(NamedTuple):
    """A host of the grid. ``why`` its plan is wrong or unproved."""

    system: System
    cards: Cards
    judgement: str
    why: str


def grid() -> Iterator[Cell]:
    for system in systems():
        for cards, decided in plans(system):
            yield Cell(system, cards, *judge(system, cards, decided))


def wrong_cells(judged: Iterable[Cell]) -> list[str]:
    return [f"{one.system.name}, {' + '.join(one.cards)}: {one.why}" for one in judged if one.judgement == WRONG]


# --- what a walk adds (test_walk_throughs.py) --------------------------------------------------------------------


def add_branch(number: int, end: str | None, since: str) -> None:
    """Let the vendors of the grid have a branch: in NVIDIA's repositories that have the newest one."""
    newest = max(BRANCHES)
    young = (datetime.date.fromisoformat(GRID["day"]) - datetime.date.fromisoformat(since)).days < 90
    BRANCHES[number] = {"end": end or "", "young": young, "flavours": ["open"]}
    BUILDS_TO[number] = BUILDS_TO[newest]
    for sources in GRID["sources"].values():
        listed = sources.get("cuda_repo", {}).get("branches", [])
        if newest in listed and number not in listed:
            listed.append(number)
    CHIPS["3500"]["first"] = number


def add_system(words: str, like: str) -> None:
    """Let there be a release with the repositories and kernels of another one."""
    kernels = next(row["kernels"] for row in GRID["systems"] if row.get("of") == like)
    GRID["systems"].append({"os": words, "of": like, "kernels": kernels})


def test_the_grid_is_right_nowhere_wrong_and_seldom_unproved(capsys: pytest.CaptureFixture[str]) -> None:
    # Of branches that are newer than the grid it has no expectation.
    with catalogs.until(max(BRANCHES)):
        judged = list(grid())
    counts = Counter(one.judgement for one in judged)
    with capsys.disabled():
        print(
            f"\ngrid of {len(judged)} cells: " + ", ".join(f"{counts[one]} {one}" for one in (RIGHT, WRONG, UNPROVED))
        )
    assert len(GRID["systems"]) == 89 and len(judged) == 135 * 12
    assert wrong_cells(judged) == []
    assert counts[RIGHT] >= LEAST_RIGHT
