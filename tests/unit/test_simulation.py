"""The simulated hosts of bench/simulation: what their checks find, how calls are read, and the tables of a run."""

import importlib.util
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/simulation"))

import simulate as simulation
from simulated_hosts import Fleet, Turn


def loaded(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


simulated: Any = loaded("simulated", ROOT / "bench/simulation/connection_plugins/simulated.py")


def turns(*given: tuple[str, str, float, float, str]) -> Any:
    """A fleet in which these turns took place: host, controller, begin, end, how."""
    fleet = Fleet(6, 1, 0.0, {})
    for host, controller, began, ended, end in given:
        one = Turn(host, controller, began)
        one.finish(ended, end)
        fleet.turns.append(one)
    return fleet


def test_a_turn_that_begins_after_the_budget_is_spent_is_found() -> None:
    fleet = turns(("gpu0001", "a", 0, 1, "back"), ("gpu0002", "a", 2, 3, "back"), ("gpu0003", "a", 4, 5, "done"))
    assert simulation.begun_too_late(fleet, budget=1, batch=0) == ["1 turns began after failure 2: gpu0003"]
    assert simulation.begun_too_late(fleet, budget=2, batch=0) == []


def test_more_failures_than_budget_and_open_turns_are_found() -> None:
    fleet = turns(*((f"gpu000{number}", "a", number * 2, number * 2 + 1, "stuck") for number in range(1, 5)))
    assert simulation.over_budget(fleet, 1) == ["4 turns failed, at most 2 may"]
    assert simulation.over_budget(fleet, 3) == []


def test_two_controllers_on_one_host_are_found() -> None:
    fleet = turns(("gpu0001", "a", 0, 5, "done"), ("gpu0001", "b", 3, 6, "done"), ("gpu0002", "a", 0, 1, "done"))
    assert simulation.two_at_work(fleet) == ["gpu0001: a and b"]
    assert "gpu0001: 2 turns to their end" in simulation.wrong_turns(fleet)
    assert simulation.most_at_once(fleet) == 2


def test_a_second_turn_is_allowed_only_after_an_interruption() -> None:
    fleet = turns(("gpu0001", "a", 0, 1, "interrupted"), ("gpu0001", "a", 2, 3, "done"))
    assert simulation.wrong_turns(fleet, 1) == []
    assert simulation.wrong_turns(fleet, 0) == ["gpu0001: 1 interrupted turns"]


def test_a_journal_that_no_turn_writes_is_found() -> None:
    fleet = Fleet(1, 1, 0.0, {})
    fleet.hosts["gpu0001"].phases += ["staged", "draining", "switching", "draining", "switching", "verified", "done"]
    assert simulation.wrong_turns(fleet) == []
    fleet.hosts["gpu0001"].phases.insert(2, "verified")
    assert simulation.wrong_turns(fleet) == ["gpu0001: its journal recorded 2: verified after ['staged', 'draining']"]


def test_a_batch_that_begins_too_early_is_found() -> None:
    fleet = turns(("gpu0005", "a", 0, 3, "done"), ("gpu0001", "a", 2, 4, "done"))
    assert len(simulation.wrong_order(fleet, ["gpu0005"], [1, 1])) == 1
    assert len(simulation.wrong_order(fleet, ["gpu0002"], [])) == 1


def test_hosts_that_are_not_upgraded_or_still_drained_are_found() -> None:
    fleet = Fleet(2, 1, 0.0, {"install": 0.5})
    assert len(simulation.wrong_ends(fleet)) == 2
    fleet.hosts["gpu0001"].drained = True
    assert simulation.touched_without_turn(fleet) == ["gpu0001: no turn, and 580.95.05 is loaded, drained"]


def test_the_same_seed_gives_the_same_faults() -> None:
    faults = [[host.fault for host in Fleet(500, seed, 1.0).hosts.values()] for seed in (1, 1, 2)]
    assert faults[0] == faults[1] != faults[2]
    assert faults[0].count("reboot") == 10 and faults[0].count("install") == 2


OLD_WRAPPER = """def _ansiballz_main():
    ANSIBALLZ_PARAMS = '{"ANSIBLE_MODULE_ARGS": {"data": "it\\'s"}}'
        temp_path = tempfile.mkdtemp(prefix='ansible_' + 'ping' + '_payload_')
"""
NEW_WRAPPER = """    _ansiballz_main(
ansible_module='ansible.legacy.ping',
params='{"ANSIBLE_MODULE_ARGS": {"data": "it\\'s"}}',
)
"""


@pytest.mark.parametrize("text", [OLD_WRAPPER, NEW_WRAPPER])
def test_the_module_of_a_program_is_read(text: str) -> None:
    assert simulated.read_payload(text.encode()) == ("ping", {"data": "it's"})


def test_a_program_without_a_module_is_an_error() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        simulated.read_payload(b"#!/bin/sh\n")


def test_the_table_shows_costs_relative_to_ping_and_what_did_not_hold() -> None:
    def ran(cpu: float) -> simulation.Ran:
        return simulation.Ran(0, 10.0, cpu, 80.0, 13, 1200, "")

    rows = [simulation.Measured("`ansible -m ping`", 20, 20, ran(2)), simulation.Measured("`site.yml`", 20, 20, ran(3))]
    held = [simulation.Held("killed", 4, "killed twice", []), simulation.Held("two", 4, "both", ["gpu0001: a and b"])]
    text = simulation.tables(rows, held)
    assert "| `site.yml` | 20 | 1.0 | 10 s | 0.15 s | 1.5 | 80 MiB | 13 lines, 1 kB |" in text
    assert (
        "| killed | 4 | killed twice | yes |" in text
        and "| two | 4 | both | **no**: 1, such as gpu0001: a and b |" in text
    )


def test_the_page_has_a_place_for_the_tables() -> None:
    head, _, rest = simulation.PAGE.read_text().partition(simulation.MARK)
    assert head and simulation.END in rest


@pytest.mark.host_io
def test_workers_whose_main_process_was_killed_are_ended_with_their_fleet() -> None:
    with simulation.bench(1, 1, 0.0, {}) as one:
        left = subprocess.Popen(["tail", "-f", one.directory / "inventory"], stdout=subprocess.PIPE)
        assert left.stdout and left.stdout.read(1)  # it has been started
        other = subprocess.Popen(["sleep", "600"])
    try:
        assert left.wait(60) == -signal.SIGKILL and other.poll() is None
    finally:
        left.kill()
        other.kill()
        other.wait()
