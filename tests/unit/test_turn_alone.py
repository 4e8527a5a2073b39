"""Drains and undrains outside of a rollout, and what a journal of drains may say."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.turn import drain, table
from plugins.plugin_utils.gpu_ready.turn.model import Unreachable
from tests.unit.test_turn import RED, modules
from tests.unit.turn_host import OLD, Disk, MemoryHost, take_turn, unreachable

# ---- drain and undrain alone -----------------------------------------------------------------------------------------


def test_an_undrain_verifies_first_and_only_where_something_is_drained(hook: str) -> None:
    disk = Disk()
    idle = MemoryHost(disk, ("docker", hook))
    assert take_turn(idle, table.UNDRAIN_ONLY).phase == "undrained"
    assert modules(idle) == ["gpu_lease taken", "gpu_drain_journal", "gpu_lease released"]
    assert take_turn(MemoryHost(disk, ("docker", hook)), table.DRAIN_ONLY).phase == "drained"
    broken = MemoryHost(disk, ("docker", hook), fails={"gpu_verify": RED})
    turn = take_turn(broken, table.UNDRAIN_ONLY)
    assert (turn.phase, disk.drained) == ("refused", {"docker": "gpu-ready"}) and "Not verified" in turn.reason
    assert "gpu_drain_docker undrained" not in modules(broken)
    forced = MemoryHost(disk, ("docker", hook), fails={"gpu_verify": RED}, gpu_undrain_unverified=True)
    assert take_turn(forced, table.UNDRAIN_ONLY).phase == "undrained" and not disk.drained
    take_turn(MemoryHost(disk, ("docker",)), table.DRAIN_ONLY)
    good = MemoryHost(disk, ("docker",))
    assert take_turn(good, table.UNDRAIN_ONLY).phase == "undrained"
    assert modules(good).index("gpu_verify") < modules(good).index("gpu_drain_docker undrained")


def test_a_host_that_is_rolled_back_is_verified_with_the_driver_that_it_has() -> None:
    disk = Disk()
    assert take_turn(MemoryHost(disk, ("docker",), fails={"gpu_verify": [RED]})).phase == "rolled back"
    assert disk.loaded == OLD and disk.drained
    assert take_turn(MemoryHost(disk, ("docker",)), table.UNDRAIN_ONLY).phase == "undrained"
    assert disk.serving == [OLD] and not disk.drained


def test_an_unknown_hook_drains_nothing() -> None:
    host = MemoryHost(Disk(), ("docker", "/nowhere/else.yml"))
    turn = take_turn(host)
    assert turn.phase == "untouched" and "/nowhere/else.yml is neither one of none, docker" in turn.reason
    assert not host.disk.drained


def test_a_journal_that_names_another_node_is_refused() -> None:
    disk = Disk()
    assert take_turn(MemoryHost(disk, ("slurm",)), table.DRAIN_ONLY).phase == "drained"
    other = MemoryHost(disk, ("slurm",))
    node = other.node("slurm") | {"node": "n2"}
    other.node = lambda hook: node  # type: ignore[method-assign]
    for kind in (table.DRAIN_ONLY, table.UNDRAIN_ONLY):
        turn = take_turn(other, kind)
        assert turn.phase == "refused" and "was drained with node n1, reason" in turn.reason
    assert "gpu_drain_slurm undrained" not in modules(other)


@pytest.mark.parametrize(("seconds", "rounds"), [(1, drain.MOST_ROUNDS), (100, 25)])
def test_a_wait_that_never_ends_ends(seconds: int, rounds: int) -> None:
    clock, asked = [0.0], []
    shown: list[str] = []

    def call(deadline: float) -> dict[str, Any]:
        clock[0] += seconds
        asked.append(deadline)
        return {"done": False, "deadline": 5.0, "remaining_s": 10**9, "waiting": "time"}

    with pytest.raises(Exception, match="lasts longer than gpu_upgrade_drain_timeout allows"):
        drain.until_done(call, 1800, lambda: clock[0], shown.append)
    assert len(asked) == rounds and asked[:2] == [0.0, 5.0]
    assert shown == ["waiting at most 1000000000 s more for time"] * rounds


def test_an_unreachable_host_raises_nothing_and_keeps_its_journal() -> None:
    host = MemoryHost(Disk(), fails={"gpu_lease taken": unreachable()})
    assert take_turn(host).phase == "left out" and host.disk.upgrade is None
    silent = MemoryHost(Disk(), fails={"gpu_lease released": unreachable()})
    assert take_turn(silent).phase == "upgraded"
    assert any(kind == "warning" and "was not released" in text for kind, _, text in silent.events)
    assert isinstance(unreachable(), Unreachable)
