"""Hosts that another checkout's run left behind: those that do not run are replaced, those that run are not touched."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from gpu_ready_lab import engine, hosts, paths
from gpu_ready_lab.hosts import Running
from gpu_ready_lab.say import LabError

OWN, OTHER = "ssh-ed25519 AAAAown gpu-ready lab one", "ssh-ed25519 AAAAother gpu-ready lab one"


@pytest.fixture
def removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of removed hosts; this checkout has the key of the fleet `one`."""
    names: list[str] = []

    def remove(which: Iterable[Running]) -> None:
        names.extend(r.host for r in which)

    monkeypatch.setattr(paths, "REPO", tmp_path)
    monkeypatch.setattr(hosts, "remove", remove)
    key = paths.fleet_directory("one") / f"{hosts.KEY}.pub"
    key.parent.mkdir(parents=True)
    key.write_text(f"{OWN}\n")
    return names


def exist(monkeypatch: pytest.MonkeyPatch, *found: Running) -> None:
    monkeypatch.setattr(hosts, "existing", lambda: list(found))


def host(fleet: str, name: str, state: str, key: str) -> Running:
    return Running(fleet, name, "10.199.0.10", state, key=key)


@pytest.mark.parametrize("state", ["exited", "created", "dead"])
@pytest.mark.parametrize(("fleet", "key"), [("one", OTHER), ("one", ""), ("two", OTHER)])
def test_leftovers_that_do_not_run_are_removed_with_a_line(
    removed: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    state: str,
    fleet: str,
    key: str,
) -> None:
    exist(monkeypatch, host(fleet, "a", state, key), host("three", "b", state, OTHER))
    hosts.remove_leftovers(fleet)
    assert removed == ["a"]
    assert f"an interrupted run of another checkout left {fleet}/a" in capsys.readouterr().out


@pytest.mark.parametrize("state", ["running", "restarting", "paused"])
def test_hosts_that_run_in_another_checkout_are_an_error(
    removed: list[str], monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    exist(monkeypatch, host("one", "a", state, OTHER), host("one", "off", "exited", OTHER))
    with pytest.raises(LabError, match=r"a of one were started from another checkout.*gpu_ready_lab down one"):
        hosts.remove_leftovers("one")
    assert removed == []


@pytest.mark.parametrize("state", ["running", "exited"])
def test_the_checkouts_own_hosts_stay(removed: list[str], monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    exist(monkeypatch, host("one", "a", state, OWN))
    hosts.remove_leftovers("one")
    hosts.remove_interrupted()
    assert removed == []


def test_a_new_engine_does_not_run_hosts_of_a_killed_one_that_nobody_can_reach(
    removed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Docker starts them with itself."""
    guest = Running("two", "guest", "10.199.0.11", "running", "vm", OTHER)
    exist(monkeypatch, host("one", "own", "running", OWN), host("two", "left", "running", OTHER), guest)
    hosts.remove_interrupted()
    assert removed == ["left"]


@pytest.mark.parametrize("new", [True, False])
def test_only_a_new_engine_has_hosts_of_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, new: bool
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(paths, "STATE", tmp_path)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(engine, "_start", lambda: new)
    engine.start(lambda: calls.append("begun"))
    assert calls == ["begun"] * new
