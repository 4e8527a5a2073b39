"""The grid: 89 systems with their kernels, and 12 sets of cards. Each plan is judged by what vendors publish.

The expectations come from data/grid.yml, which repeats indexes and support tables of vendors; the rules of the choice are
those of docs/drivers.md. Neither the catalog nor the planner has a part in them.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ansible.module_utils.common.yaml import yaml_load

from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.completion import complete
from plugins.plugin_utils.gpu_ready.explain.host import DescribedHost
from plugins.plugin_utils.gpu_ready.plan import compose
from tests.unit.hosts import NVSWITCH, card, having
from tests.unit.plans import settings, todo

GRID: dict[str, Any] = yaml_load((Path(__file__).parent / "data/grid.yml").read_text())
BRANCHES, CHIPS, BUILDS_TO = GRID["branches"], GRID["chips"], GRID["builds_to"]
RIGHT, WRONG, UNPROVED = "right", "wrong", "unproved"
LEAST_RIGHT = 1450
MANAGERS = {"zypper": "zypper", "tdnf": "tdnf", "dnf": "dnf"}
Cards = tuple[str, ...]


class Expected(NamedTuple):
    """``drivers``: any of these (source, branch, flavour) is right. ``codes``: of a refusal, and what it must name."""

    drivers: frozenset[tuple[str, int, str]] = frozenset()
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
        for source, data in sources.items()
        if source in ("distro", "cuda_repo")
        for branch in data["branches"]
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
    branch = next(iter(best))[1]
    return Expected(best, unproved=doubt(system, sources, best, branch))


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


def preferred(offered: set[tuple[str, int, str]], devices: list[str]) -> frozenset[tuple[str, int, str]]:
    """Return the best: maintained, not younger than 90 days, with the longest support; the open module where possible.

    The open module drives GeForce and workstation cards from branch 560 on without an option (guide, kernel modules).
    """
    if not offered:
        return frozenset()

    def order(branch: int) -> tuple[bool, bool, str, int]:
        data = BRANCHES[branch]
        ended = bool(data["end"]) and data["end"] < GRID["day"][:7]
        return (not ended, not data.get("young"), data["end"], branch)

    branch = max({one[1] for one in offered}, key=order)
    open_from = max(CHIPS[device].get("open_from", 0) for device in devices)
    flavours = {one[2] for one in offered if one[1] == branch}
    flavour = "open" if "open" in flavours and (branch >= open_from or flavours == {"open"}) else "proprietary"
    return frozenset(one for one in offered if one[1:] == (branch, flavour))


def doubt(system: System, sources: dict[str, Any], best: frozenset[tuple[str, int, str]], branch: int) -> str:
    """Return what no vendor publishes of a driver on a system; "" for nothing."""
    if "unseen" in system.row and re.search(system.row["unseen"], system.kernel):
        return "nothing is published of this kernel"
    if is_unseen(sources, branch, system.kernel):
        return f"no index with {branch} was read"
    patched = any(sources[source].get("own_kernels") for source, _, _ in best)
    known = tuple(int(part) for part in BUILDS_TO.get(branch, "0.0").split("."))
    if not patched and series(system.kernel) > known:
        return f"nothing is published of {branch} on {system.kernel}"
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
        return WRONG, f"expected {sorted(right_answer.drivers)}, got {shown(decided)}"
    if (driver.source, driver.branch, driver.flavour) not in right_answer.drivers:
        return WRONG, f"expected {sorted(right_answer.drivers)}, got {shown(decided)}"
    headers = planned_headers(decided)
    if not any(re.fullmatch(header_pattern(system.kernel), name) for name in headers):
        return WRONG, f"expected headers {header_pattern(system.kernel)}, got {headers}"
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


def grid() -> Iterator[tuple[System, Cards, str, str]]:
    for system in systems():
        for cards, decided in plans(system):
            yield (system, cards, *judge(system, cards, decided))


def test_the_grid_is_right_nowhere_wrong_and_seldom_unproved(capsys: pytest.CaptureFixture[str]) -> None:
    judged = list(grid())
    counts = Counter(judgement for _, _, judgement, _ in judged)
    with capsys.disabled():
        print(
            f"\ngrid of {len(judged)} cells: " + ", ".join(f"{counts[one]} {one}" for one in (RIGHT, WRONG, UNPROVED))
        )
    assert len(GRID["systems"]) == 89 and len(judged) == 135 * 12
    assert [f"{s.name}, {' + '.join(c)}: {why}" for s, c, judgement, why in judged if judgement == WRONG] == []
    assert counts[RIGHT] >= LEAST_RIGHT
