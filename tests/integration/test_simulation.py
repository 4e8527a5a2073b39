"""A small version of bench/simulation: the real upgrade over simulated hosts, killed and repeated, by two control nodes.

No lab host takes part: the bench's connection plugin and a program of this process answer. The campaign has more hosts and kills,
and failures beyond a budget, of which test_upgrade.py has the smallest: none.
"""

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests import packed_modules
from tests.grid import CAMPAIGN

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench/simulation"))

import simulate as simulation

SCALE = 0.005


@pytest.fixture(autouse=True)
def _packed_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in packed_modules.environment().items():
        monkeypatch.setenv(name, value)


def test_a_killed_upgrade_ends_with_every_host_upgraded_or_failed_after_one_turn() -> None:
    count, kills = (8, 3) if CAMPAIGN else (4, 1)
    held = simulation.kill_and_resume(count=count, seed=3, scale=SCALE, kills=kills)
    assert held.problems == [], held


@pytest.mark.long
def test_no_turn_begins_after_the_budget_is_spent() -> None:
    held = simulation.rollout_beyond_budget(count=10, seed=3, scale=SCALE, budget=1, forks=3)
    assert held.problems == [], held


def test_site_asks_hosts_in_the_desired_state_once_and_fails_those_that_do_not_answer() -> None:
    with simulation.bench(4, 3, SCALE, {}) as bench:
        site = bench.command("ansible-playbook", "site.yml")
        assert bench.run(site).rc == 0
        assert [call.module for call in bench.fleet.calls] == ["gpu_node_plan"] * 4
        bench.fleet.hosts["gpu0002"].fault = "unreachable"
        first = bench.fleet.hosts["gpu0001"]
        first.facts = first.facts._replace(verified=None)
        ran = bench.run(site)
        assert ran.rc == 2 and "4 hosts: 3 ready, 1 unreachable" in ran.output, ran.output
        assert ran.output.splitlines()[-1].endswith("failed: gpu0002"), ran.output
        assert bench.fleet.errors == []
        assert sorted(call.host for call in bench.fleet.calls[4:] if call.module == "gpu_verify") == ["gpu0001"]


def test_of_two_control_nodes_one_upgrades_each_host() -> None:
    held = simulation.two_controllers(count=6 if CAMPAIGN else 3, seed=3, scale=SCALE, forks=2)
    assert held.problems == [], held


def test_site_plans_a_host_again_that_another_run_changed_between_its_plan_and_its_lease() -> None:
    with simulation.bench(2, 3, SCALE, {}) as bench:
        fleet = bench.fleet
        first, slow = fleet.hosts.values()
        first.facts = first.facts._replace(verified=None)
        # What else is recorded about a host: with it, a released lease stays.
        first.files["/var/lib/gpu-ready/manifest.json"] = "{}"
        over, answer = threading.Event(), fleet.answer

        async def answer_late(host: Any, call: dict[str, Any], left: Any) -> Any:
            # Controller a has planned the first host, and waits for the plan of this one.
            while host is slow and not over.is_set():
                await asyncio.sleep(0.1)
            return await answer(host, call, left)

        fleet.answer = answer_late  # type: ignore[method-assign]
        site = bench.command("ansible-playbook", "site.yml")
        with bench.started(site, "a") as (process, output):
            with fleet.answered:
                assert fleet.answered.wait_for(lambda: fleet.calls, 600)
            other = bench.run([*site, "--limit", first.name], "b")
            over.set()
            ran = simulation.finish(process, output, 0)
        assert (other.rc, ran.rc) == (0, 0), other.output + ran.output
        assert fleet.errors == []
        calls: dict[str, list[str]] = {"a": [], "b": []}
        for call in fleet.calls:
            if call.host == first.name:
                calls[call.controller].append(call.module)
        assert calls["b"] == ["gpu_node_plan", "gpu_lease", "gpu_verify", "gpu_verified", "gpu_lease"]
        # Its own plan was to verify the host. It took the lease, planned again, and had nothing left to do.
        assert calls["a"] == ["gpu_node_plan", "gpu_lease", "gpu_node_plan", "gpu_lease"]
