"""The control node's record of a rollout: its lines, what they say together, and who may append to them."""

import json
import multiprocessing
import os
import re
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.upgrade.model import PHASES
from plugins.plugin_utils.gpu_ready.rollout import fold, record
from plugins.plugin_utils.gpu_ready.rollout.fold import RecordedRun
from plugins.plugin_utils.gpu_ready.rollout.record import RolloutFile

HOSTS = ["a", "b", "c", "d"]
PATH = "/state/rollout-7.jsonl"
RUN = "here.4711.5"


def no_process(run: str) -> int:
    """Every earlier run has ended."""
    return 0


def run_of(hosts: list[str] = HOSTS, budget: int = 0, to: str = "595.1", now: int = 7) -> RecordedRun:
    return RecordedRun(now, "ann@control", dict.fromkeys(hosts, to), hosts, hosts[:1], budget, RUN)


def begun(tmp_path: Path, budget: int = 0, direction: str = "upgrade") -> RolloutFile:
    file = RolloutFile(record.record_path(tmp_path / "state", 7))
    undoes = 5 if direction == "rollback" else 0
    file.begin_run(fold.header_line(7, direction, undoes, "0.1.0"), run_of(budget=budget), False, no_process)
    return file


def turn(file: RolloutFile, host: str, state: str = "", phases: tuple[str, ...] = ("draining",)) -> None:
    assert file.begin_turn(host, 10) == ""
    for phase in phases:
        file.record_phase(host, phase, 11)
    if state:
        file.end_turn(host, state, 12, "as asked")


# ---- the fold


def lines(*more: dict[str, Any]) -> list[bytes]:
    given = [fold.header_line(7, "upgrade", 0, "0.1.0"), fold.run_line(run_of()), *more]
    return [json.dumps(one).encode() for one in given]


def test_the_lines_of_a_rollout_say_what_was_done() -> None:
    found = fold.fold(
        lines(
            {"line": "begin", "host": "a", "time": 8},
            {"line": "phase", "host": "a", "time": 9, "phase": "draining"},
            {"line": "phase", "host": "a", "time": 10, "phase": "switching"},
            {"line": "end", "host": "a", "time": 11, "state": "upgraded", "reason": ""},
            {"line": "begin", "host": "b", "time": 8},
            {"line": "end", "host": "b", "time": 9, "state": "left_out", "reason": "another run"},
            {"line": "begin", "host": "c", "time": 8},
        ),
        7,
        PATH,
    )
    assert (found.id, found.direction, found.undoes, found.version) == (7, "upgrade", 0, "0.1.0")
    assert found.hosts["a"] == ("595.1", "upgraded", "", 8, 11, (("draining", 9), ("switching", 10)), 1, True, ())
    assert (found.done, found.begun, found.canaries) == (["a"], ["a", "b", "c"], ["a"])
    assert {name: (host.changed, host.may_be_changed) for name, host in found.hosts.items()} == {
        "a": (True, True), "b": (False, False), "c": (False, True), "d": (False, False),
    }  # fmt: skip
    assert found.failures() == [] and found.failures(["a", "c", "d"]) == ["c"]


@pytest.mark.parametrize("phase", ["", *PHASES])
def test_a_host_is_changed_from_its_drain_on_although_a_later_turn_ends_without_a_change(phase: str) -> None:
    """A rollback returns only hosts that the rollout changed."""
    begin = {"line": "begin", "host": "a", "time": 8}
    phases = [{"line": "phase", "host": "a", "time": 9, "phase": phase}] if phase else []
    end = {"line": "end", "host": "a", "time": 30, "state": "left_out", "reason": "another run"}
    found = fold.fold(lines(begin, *phases, fold.run_line(run_of(now=20)), begin, end), 7, PATH)
    assert found.hosts["a"].changed is (phase not in ("", "staged", "untouched"))


def test_a_later_run_counts_its_own_failures_and_has_its_own_targets() -> None:
    failed = [
        {"line": "begin", "host": "a", "time": 8},
        {"line": "end", "host": "a", "time": 9, "state": "rolled_back", "reason": "red"},
        fold.run_line(run_of(["a", "e"], to="595.2", now=20)),
    ]
    found = fold.fold(lines(*failed), 7, PATH)
    assert found.failures() == [] and found.begun == [] and list(found.hosts) == [*HOSTS, "e"]
    assert [found.hosts[name].target for name in "abe"] == ["595.2", "595.1", "595.2"]
    assert found.hosts["a"].state == "rolled_back" and found.canaries == ["a"]
    again = fold.fold(lines(*failed, {"line": "begin", "host": "a", "time": 21}), 7, PATH)
    assert again.hosts["a"][1:8] == ("", "", 21, None, (), 2, True) and again.failures(["a"]) == ["a"]
    assert again.hosts["a"].turns == (
        fold.RecordedTurn(1, "rolled_back", 8, 9, ()),
        fold.RecordedTurn(2, "", 21, None, ()),
    ), "every turn of every run, for the timeline"
    assert again.hosts["e"].turns == ()


def test_only_lines_that_were_written_to_their_end_count() -> None:
    whole = b"".join(line + b"\n" for line in lines({"line": "begin", "host": "a", "time": 8}))
    for end in range(len(whole)):
        found = fold.fold(fold.complete_lines(whole[:end]), 7, PATH)
        assert found.id == 7 and len(found.runs) <= 1 and found.begun == []
    assert fold.fold(fold.complete_lines(whole), 7, PATH).begun == ["a"]


BEGIN = {"line": "begin", "host": "a", "time": 8}
DAMAGED: list[tuple[bytes, str]] = [
    (b"", "no JSON"),
    (b"{", "no JSON"),
    (b"[" * 100_000, "no JSON"),
    (b"\0\0\0", "no JSON"),
    (b"[]", "no mapping"),
    (b"7", "no mapping"),
    *(
        (json.dumps(BEGIN | change).encode(), what)
        for change, what in (
            ({"line": "x"}, "kind of line"),
            ({"line": None}, "kind of line"),
            ({"host": 7}, "host"),
            ({"time": "8"}, "time"),
            ({"time": True}, "time"),
            ({"line": "phase"}, "phase"),
            ({"line": "end", "state": "ended", "reason": ""}, "state"),
            ({"line": "end", "state": "failed"}, "reason"),
            ({"line": "run"}, "targets"),
            (fold.run_line(run_of())| {"hosts": [1]}, "names of hosts"),
            (fold.run_line(run_of())| {"budget": None}, "budget"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(("line", "what"), DAMAGED, ids=lambda one: str(one)[:40])
def test_any_other_damaged_line_is_named(line: bytes, what: str) -> None:
    for given in ([*lines(), line], [*lines(), line, *lines()[1:]]):
        with pytest.raises(fold.DamagedRecordError) as caught:
            fold.fold(given, 7, PATH)
        text = str(caught.value)
        assert text.startswith(f"{PATH}, line 3: it is damaged ({what})."), text
        assert "Remedy: " in text and text.endswith("-e gpu_upgrade_rollout=7.") and len(text) < 300


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"schema": 2, "gpu_ready": "0.9"}, "schema 2 is of another release of gpu-ready (0.9)"),
        ({"id": 8}, "it is of another rollout than the name of the file says"),
        ({"direction": "sideways"}, "it is damaged (direction)"),
        ({"direction": "rollback", "undoes": None}, "it is damaged (undoes)"),
    ],
)
def test_a_wrong_header_is_named(change: dict[str, Any], what: str) -> None:
    with pytest.raises(fold.DamagedRecordError, match=re.escape(f"{PATH}, line 1: {what}. Remedy: ")):
        fold.fold([json.dumps(fold.header_line(7, "upgrade", 0, "0.1.0") | change).encode(), *lines()[1:]], 7, PATH)


def test_a_turn_before_the_first_run_is_damage() -> None:
    with pytest.raises(fold.DamagedRecordError, match="line 2: it is damaged .a turn before the first run."):
        fold.fold([lines()[0], json.dumps(BEGIN).encode()], 7, PATH)


# ---- the file


def test_a_record_is_the_operators_alone(tmp_path: Path) -> None:
    file = begun(tmp_path)
    assert file.path.stat().st_mode & 0o777 == 0o600 and file.path.parent.stat().st_mode & 0o777 == 0o700
    assert file.read().runs == [run_of()]
    with pytest.raises(GpuReadyError, match="another run began a rollout at the same second"):
        begun(tmp_path)
    file.begin_run({}, run_of(["b"]), True, no_process)
    assert [one.hosts for one in file.read().runs] == [HOSTS, ["b"]]


def test_a_rollout_on_which_another_run_works_is_left_alone(tmp_path: Path) -> None:
    file = begun(tmp_path)
    turn(file, "a", "failed")
    with pytest.raises(
        GpuReadyError, match=r"a run of ann@control, process 4711, still works on .* Remedy: wait .*/stop,"
    ):
        file.begin_run({}, run_of(), True, {RUN: 4711}.__getitem__)
    assert file.begin_turn("b", 12).startswith("The rollout stopped: 1 host (a) failed"), "its failures count"
    file.begin_run({}, run_of(), True, no_process)
    assert file.begin_turn("b", 12) == ""


def test_what_a_killed_process_left_is_replaced_by_the_next_line(tmp_path: Path) -> None:
    file = begun(tmp_path)
    with file.path.open("ab") as out:
        out.write(b'{"line": "begin", "host": "a"')
    assert file.read().begun == []
    turn(file, "b", "upgraded")
    assert file.read().done == ["b"]


def test_a_record_of_which_only_a_part_of_the_first_line_was_written_begins_again(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    record.record_path(state, 7).write_bytes(b'{"schema"')
    assert [(one.id, one.runs) for one in record.read_records(state)] == [(7, [])]
    assert begun(tmp_path).read().runs == [run_of()]


def test_records_are_read_newest_first_and_other_files_are_not(tmp_path: Path) -> None:
    assert record.read_records(tmp_path / "none") == []
    for number in (5, 70, 8):
        RolloutFile(record.record_path(tmp_path, number)).begin_run(
            fold.header_line(number, "upgrade", 0, ""), run_of(), False, no_process
        )
    for name in ("rollout-x.jsonl", "rollout-5.jsonl.old", "rollout-5.json", "notes"):
        (tmp_path / name).write_text("?")
    assert [one.id for one in record.read_records(tmp_path)] == [70, 8, 5]


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    path = record.record_path(tmp_path, 7)
    (tmp_path / "target").write_text("kept")
    if kind == "link":
        path.symlink_to(tmp_path / "target")
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    for call in (
        RolloutFile(path).read,
        lambda: RolloutFile(path).begin_turn("a", 8),
        lambda: record.read_records(tmp_path),
    ):
        with pytest.raises(GpuReadyError, match=re.escape(str(path)) + ": .* Remedy: "):
            call()
    assert (tmp_path / "target").read_text() == "kept"


def test_a_turn_of_a_record_without_a_run_does_not_begin(tmp_path: Path) -> None:
    """Only the header was written before the power failed: nobody knows how many hosts may fail."""
    path = record.record_path(tmp_path, 7)
    path.write_text(json.dumps(fold.header_line(7, "upgrade", 0, "0.1.0")) + "\n")
    with pytest.raises(GpuReadyError, match=r"rollout-7\.jsonl: it has no run, .*Remedy: run the same command again"):
        RolloutFile(path).begin_turn("a", 8)
    assert path.read_text().count("\n") == 1


def test_a_state_directory_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(GpuReadyError, match=r"/state: Not a directory\. Remedy: set gpu_ready_state_dir"):
        record.read_records(tmp_path / "state")
    assert record.read_records(tmp_path / "absent") == []


def test_a_record_that_cannot_be_opened_is_named_with_the_variable(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 300 + "-7.jsonl")
    for call in (RolloutFile(path).read, lambda: RolloutFile(path).record_phase("a", "draining", 8)):
        with pytest.raises(GpuReadyError, match=r"File name too long\. Remedy: set gpu_ready_state_dir"):
            call()


def test_each_line_is_on_the_disk_before_the_turn_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so is the name of a new file: after a power failure, the next run must know which hosts were begun."""
    synced, sync = [], os.fsync

    def note(handle: int) -> None:
        synced.append(Path(f"/proc/self/fd/{handle}").readlink().name)
        sync(handle)

    monkeypatch.setattr(os, "fsync", note)
    file = begun(tmp_path)
    assert synced == ["rollout-7.jsonl", "state"]
    turn(file, "a", "upgraded")
    assert synced[2:] == ["rollout-7.jsonl"] * 3


def test_a_directory_that_cannot_be_written_is_named_with_the_variable(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file in the place of the directory")
    with pytest.raises(GpuReadyError) as caught:
        begun(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/state: File exists. Remedy: set gpu_ready_state_dir to a directory that this user can write."
    )


def test_the_directory_is_beside_the_inventory(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/hosts").touch()
    here = Path("/here")
    assert (
        record.state_directory("", ["a,b", str(tmp_path / "site/hosts"), str(tmp_path)], here)
        == tmp_path / "site/.gpu-ready"
    )
    assert record.state_directory("", [str(tmp_path / "site")], here) == tmp_path / "site/.gpu-ready"
    assert record.state_directory("", ["a,b", str(tmp_path / "none")], here) == here / ".gpu-ready"
    assert record.state_directory("x", [str(tmp_path)], here) == here / "x"
    assert record.state_directory("/x", [str(tmp_path)], here) == Path("/x")


# ---- whether a turn begins


@pytest.mark.parametrize(
    ("direction", "state", "counts"),
    [
        ("upgrade", "failed", True), ("upgrade", "rolled_back", True), ("upgrade", "upgraded", False),
        ("upgrade", "left_out", False), ("upgrade", "current", False), ("upgrade", "not_reached", False),
        ("rollback", "failed", True), ("rollback", "rolled_back", False),
    ],
)  # fmt: skip
def test_the_budget_counts_bad_ends_of_this_run(tmp_path: Path, direction: str, state: str, counts: bool) -> None:
    file = begun(tmp_path, direction=direction)
    turn(file, "a", state)
    found = file.begin_turn("b", 13)
    assert ("gpu_upgrade_max_failures is 0" in found and "1 host (a) failed" in found and "Remedy: " in found) == counts
    assert file.read().begun == (["a"] if counts else ["a", "b"])
    file.begin_run({}, run_of(budget=0), True, no_process)
    assert file.begin_turn("b", 14) == "" and file.read().begun == ["b"]


def test_a_lost_host_counts_if_its_turn_began_and_did_not_end(tmp_path: Path) -> None:
    file = begun(tmp_path, budget=1)
    for host in "ab":
        turn(file, host)
    assert "2 hosts (a, b) failed" in file.begin_turn("c", 13, lost=["a", "b", "d"])
    assert file.begin_turn("c", 13, lost=["a", "d"]) == ""  # d was lost in its preparation, b still runs
    file.end_turn("b", "upgraded", 14)
    assert file.begin_turn("d", 15, lost=["a", "b"]) == ""


def test_a_stop_file_keeps_turns_from_beginning_and_lets_those_that_run_end(tmp_path: Path) -> None:
    file = begun(tmp_path)
    turn(file, "a")
    stop = file.path.parent / "stop"
    stop.touch()
    assert (
        file.begin_turn("b", 13)
        == f"The rollout was stopped by the file {stop}. Remedy: delete it, then run the same command again."
    )
    file.record_phase("a", "verified", 13)
    file.end_turn("a", "upgraded", 14)
    with pytest.raises(GpuReadyError, match=re.escape(str(stop))):
        record.refuse_stopped(stop.parent)
    stop.unlink()
    stop.symlink_to("nowhere")
    assert file.begin_turn("b", 15) != ""
    stop.unlink()
    record.refuse_stopped(stop.parent)
    assert file.begin_turn("b", 15) == ""


def fail_turns(path: str, names: list[str], barrier: Any, begun: Any) -> None:
    file = RolloutFile(Path(path))
    barrier.wait(60)
    for name in names:
        if file.begin_turn(name, 8, lost=["x"]) == "":
            begun.put(name, timeout=60)
            file.record_phase(name, "draining", 8)
            file.end_turn(name, "failed", 9, "x" * 100)


@pytest.mark.parametrize("budget", [0, 3])
def test_two_processes_never_begin_more_turns_than_the_budget_allows(tmp_path: Path, budget: int) -> None:
    """Each checks and begins under the lock: of two hosts at work, both of which fail, at most one is over the budget."""
    hosts = [f"h{number}" for number in range(40)]
    file = RolloutFile(record.record_path(tmp_path, 7))
    file.begin_run(fold.header_line(7, "upgrade", 0, ""), run_of(hosts, budget), False, no_process)
    forked = multiprocessing.get_context("fork")
    barrier, begun_turns = forked.Barrier(2), forked.Queue()
    workers = [
        forked.Process(target=fail_turns, args=(str(file.path), hosts[index::2], barrier, begun_turns))
        for index in (0, 1)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    names = sorted(begun_turns.get(timeout=10) for _ in file.read().begun)
    assert names == sorted(file.read().begun) and budget + 1 <= len(names) <= budget + 2
    assert file.read().failures() == file.read().begun


def record_turns(path: str, names: list[str], barrier: Any) -> None:
    file = RolloutFile(Path(path))
    barrier.wait(60)
    for name in names:
        turn(file, name, "upgraded", ("draining", "switching", "verified", "done"))


def test_no_line_of_two_processes_is_lost(tmp_path: Path) -> None:
    hosts = [f"h{number}" for number in range(40)]
    file = RolloutFile(record.record_path(tmp_path, 7))
    file.begin_run(fold.header_line(7, "upgrade", 0, ""), run_of(hosts), False, no_process)
    forked = multiprocessing.get_context("fork")
    barrier = forked.Barrier(2)
    workers = [forked.Process(target=record_turns, args=(str(file.path), hosts[index::2], barrier)) for index in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    found = file.read()
    assert sorted(found.done) == sorted(hosts) and all(len(host.phases) == 4 for host in found.hosts.values())


def test_a_state_that_does_not_exist_is_a_defect(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'ended' is no state"):
        begun(tmp_path).end_turn("a", "ended", 9)


def test_who_waits_too_long_for_the_lock_says_for_which(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = begun(tmp_path)
    monkeypatch.setattr(record, "LOCK_SECONDS", 0.05)
    with file._locked(), pytest.raises(GpuReadyError, match=re.escape(f"fuser -v {file.path}")):
        file.begin_turn("a", 8)
