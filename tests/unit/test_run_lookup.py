"""Which run of ansible-playbook this is, as the hosts' leases name it."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from ansible_collections.gpu_ready.nodes.plugins.lookup import gpu_ready_run

from plugins.module_utils.gpu_ready.base import lease

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def lookup() -> ModuleType:
    return gpu_ready_run  # type: ignore[no-any-return]


def ask(lookup: ModuleType, *terms: str, **variables: object) -> list[object]:
    found: list[object] = lookup.LookupModule().run(list(terms), variables)
    return found


def test_a_run_has_the_form_that_the_hosts_expect(lookup: ModuleType) -> None:
    (text,) = ask(lookup, "run")
    run = lease.read_run(str(text))
    assert run
    assert run.name.split(".")[1:] == [str(os.getpid()), lookup.start_of(os.getpid())]


@pytest.mark.host_io
def test_this_process_and_its_children_of_python_live(lookup: ModuleType) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        started = lookup.start_of(child.pid)
        (text,) = ask(lookup, "living")
        living = str(text).split(",")
        assert {f"{os.getpid()}.{lookup.start_of(os.getpid())}", f"{child.pid}.{started}"} <= set(living)
        child.communicate(b"\n")
    assert f"{child.pid}.{started}" not in str(ask(lookup, "living")[0]).split(",")


@pytest.mark.host_io
def test_another_run_is_found_while_it_lives_and_only_on_this_machine(lookup: ModuleType) -> None:
    own = lookup.run_id()
    assert own == str(*ask(lookup, "run")).split()[0] and lookup.find_process(own) == 0, "this run is not another one"
    place, _, _ = own.partition(".")
    other = subprocess.Popen(["sleep", "60"])
    try:
        start = lookup.start_of(other.pid)
        assert lookup.find_process(f"{place}.{other.pid}.{start}") == other.pid
        for wrong in (
            f"there.{other.pid}.{start}",
            f"{place}.{other.pid}.{start}0",
            f"{place}.{other.pid}.",
            place,
            "",
        ):
            assert lookup.find_process(wrong) == 0
    finally:
        other.kill()
        other.wait()
    assert lookup.find_process(f"{place}.{other.pid}.{start}") == 0


@pytest.mark.host_io
def test_the_age_of_a_run_counts_from_the_start_of_its_process(lookup: ModuleType) -> None:
    (before,) = ask(lookup, "age")
    time.sleep(1.1)
    (after,) = ask(lookup, "age")
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert 0 <= before < after < before + 600


def test_without_proc_nothing_is_claimed_about_processes(
    lookup: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A control node with macOS."""
    monkeypatch.setattr(lookup, "PROC", tmp_path / "absent")
    assert ask(lookup, "living", "age") == ["", ""]
    assert lease.read_run(str(ask(lookup, "run")[0]))


@pytest.mark.parametrize(("hosts", "forks", "seconds"), [(1, 50, 600), (51, 50, 1200), (2000, 50, 3600)])
def test_a_lease_lasts_longer_where_hosts_wait_for_each_other_but_never_more_than_an_hour(
    lookup: ModuleType, hosts: int, forks: int, seconds: int
) -> None:
    assert ask(lookup, "lasts", ansible_play_batch=["x"] * hosts, ansible_forks=forks) == [seconds]
