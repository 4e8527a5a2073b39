"""The lease of a host: one run at a time changes it, and a dead run does not keep it."""

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base import lease
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.base.lease_mark import mark
from tests.unit.recorded import RecordedHost

BOOT = "0b9e9b8e-2f7c-4a53-9c85-6ed1a7e1a0f3"
ALICE = lease.RunId("aa11.100.5000", "alice@admin1", "upgrade_drivers.yml")
AGAIN = lease.RunId("aa11.200.9000", "alice@admin1", "upgrade_drivers.yml")
BOB = lease.RunId("bb22.100.5000", "bob@awx-7", "site.yml")
HELD = lease.Lease(*ALICE, since=1_700_000_000, boot=BOOT, renewed=1000, lasts=600, usual=600)


def host(uptime: float, boot: str = BOOT, stat: str | None = None) -> RecordedHost:
    files = {"/proc/uptime": f"{uptime:.2f} 0.00\n", "/proc/sys/kernel/random/boot_id": boot + "\n"}
    return RecordedHost(files={**files, **({"/proc/77/stat": stat} if stat else {})})


def stat(started: int, state: str = "S") -> str:
    return f"77 (python3 (x) y) {state} 1 " + " ".join(str(number) for number in range(5, 22)) + f" {started} 0 0\n"


@pytest.mark.parametrize(
    ("uptime", "boot", "left"),
    [
        (1000, BOOT, 600),
        (1599, BOOT, 1),
        (1600, BOOT, 0),
        (9e9, BOOT, 0),
        (5, "another boot", 595),
        (600, "another boot", 0),
        (3, BOOT, 597),  # a container that shows its own uptime was started again on the same kernel
    ],
)
def test_a_lease_ends_by_the_time_since_the_boot(uptime: float, boot: str, left: int) -> None:
    assert lease.seconds_left(host(uptime, boot), HELD) == left
    assert bool(lease.describe_holder(host(uptime, boot), HELD, lease.Claim(BOB))) == (left > 0)


def test_the_clock_of_the_host_does_not_matter() -> None:
    for since in (0, 4_000_000_000, -5):
        assert lease.seconds_left(host(1100), HELD._replace(since=since)) == 500


def test_the_message_names_who_since_when_until_when_and_the_remedy() -> None:
    message = lease.describe_holder(host(1100), HELD, lease.Claim(BOB))
    assert "upgrade_drivers.yml of alice@admin1, since 2023-11-14 22:13:20 UTC" in message
    assert "9 min for its lease to expire" in message
    assert "gpu_ready_take_over=true" in message


@pytest.mark.parametrize(("uptime", "minutes"), [(1000, 10), (1001, 10), (1060, 9), (1599, 1)])
def test_the_message_rounds_the_minutes_up(uptime: int, minutes: int) -> None:
    assert f"{minutes} min for its lease" in lease.describe_holder(host(uptime), HELD, lease.Claim(BOB))


def test_the_same_run_and_a_run_that_takes_over_are_not_refused() -> None:
    assert lease.describe_holder(host(1001), HELD, lease.Claim(ALICE)) == ""
    assert lease.describe_holder(host(1001), HELD, lease.Claim(BOB, take_over=True)) == ""


@pytest.mark.parametrize(
    ("run", "living", "refused"),
    [
        (AGAIN, ["200.9000"], False),  # Ctrl-C, and the same command again
        (AGAIN, ["200.9000", "100.5000"], True),
        (AGAIN, ["200.9000", "100.9999"], False),  # a later process has its number
        (AGAIN, None, True),
        (BOB, [], True),  # nothing is known about processes of another control node
    ],
)
def test_a_run_of_the_same_user_and_control_node_that_died_is_followed_at_once(
    run: lease.RunId, living: list[str] | None, refused: bool
) -> None:
    assert bool(lease.describe_holder(host(1001), HELD, lease.Claim(run, living))) == refused


def test_a_lease_does_not_end_while_a_step_of_its_run_is_a_process_of_the_host() -> None:
    held = HELD._replace(step=lease.StepProcess(77, "4242"))
    message = lease.describe_holder(host(9000, stat=stat(4242)), held, lease.Claim(AGAIN, []))
    assert "process 77" in message
    # In a container without an init nobody waits for an orphan.
    assert lease.describe_holder(host(9000, stat=stat(4242, "Z")), held, lease.Claim(AGAIN, [])) == ""
    assert lease.describe_holder(host(9000, stat=stat(4243)), held, lease.Claim(AGAIN, [])) == ""
    assert lease.describe_holder(host(9000), held, lease.Claim(AGAIN, [])) == ""
    assert lease.describe_holder(host(9000, "another boot", stat(4242)), held, lease.Claim(AGAIN, [])) == ""


@pytest.mark.parametrize(("run", "waits"), [(AGAIN, True), (BOB, False)])
def test_only_the_last_step_of_a_dead_run_of_the_same_user_is_worth_a_wait(run: lease.RunId, waits: bool) -> None:
    held = HELD._replace(step=lease.StepProcess(77, "4242"))
    assert lease.is_last_step_running(host(1001, stat=stat(4242)), held, lease.Claim(run, [])) == waits
    assert not lease.is_last_step_running(host(1001, stat=stat(4242)), held, lease.Claim(run, ["100.5000"]))
    assert not lease.is_last_step_running(host(1001), held, lease.Claim(run, []))


@pytest.mark.parametrize("text", ["", "null", "{}", "[]", '{"schema": 2}', '{"schema": 1}', "[" * 100_000])
def test_a_damaged_lease_is_refused_until_somebody_takes_over(text: str, tmp_path: Path) -> None:
    path = tmp_path / "lease.json"
    path.write_text(text)
    with pytest.raises(GpuReadyError, match=r"lease\.json: .*gpu_ready_take_over=true") as caught:
        lease.take(Host(), lease.Claim(BOB), path=str(path))
    assert "\n" not in str(caught.value)
    assert not lease.release(Host(), BOB, str(path))
    assert path.read_text() == text
    lease.take(Host(), lease.Claim(BOB, take_over=True), path=str(path))
    assert json.loads(path.read_text())["run"] == BOB.name


def test_a_run_takes_extends_and_releases(tmp_path: Path) -> None:
    path = tmp_path / "state/lease.json"

    def written() -> dict[str, object]:
        found: dict[str, object] = json.loads(path.read_text())
        return found

    lease.take(Host(), lease.Claim(ALICE), 900, str(path))
    assert (written()["lasts"], written()["usual"]) == (900, 900)
    lease.extend(Host(), ALICE, 5000, str(path))
    assert (written()["lasts"], written()["usual"]) == (5000, 900)
    with lease.hold(Host(), ALICE, str(path)):
        assert written()["lasts"] == 900
        assert written()["step"] == {"pid": os.getpid(), "started": lease.process_start(Host(), os.getpid())}
    with pytest.raises(lease.LeaseError):
        lease.take(Host(), lease.Claim(BOB), 600, str(path))
    with pytest.raises(lease.LeaseError):
        lease.extend(Host(), BOB, 600, str(path))
    with pytest.raises(lease.LeaseError), lease.hold(Host(), BOB, str(path)):
        raise AssertionError("another run's step ran")
    assert not lease.release(Host(), BOB, str(path))
    assert written()["run"] == ALICE.name
    assert lease.release(Host(), ALICE, str(path))
    assert not path.parent.exists()


def test_a_run_that_lost_its_host_stops_at_its_next_step(tmp_path: Path) -> None:
    path = str(tmp_path / "lease.json")
    lease.take(Host(), lease.Claim(ALICE), path=path)
    lease.take(Host(), lease.Claim(BOB, take_over=True), path=path)
    with pytest.raises(lease.LeaseError, match="bob@awx-7"), lease.hold(Host(), ALICE, path):
        raise AssertionError("the step ran")
    assert not lease.release(Host(), ALICE, path)


def test_a_released_lease_says_which_run_changed_the_host_last_and_keeps_nobody_out(tmp_path: Path) -> None:
    path = tmp_path / "lease.json"
    (tmp_path / "manifest.json").touch()
    lease.take(Host(), lease.Claim(ALICE), path=str(path))
    assert lease.release(Host(), ALICE, str(path))
    before = lease.read(Host(), str(path))
    assert before
    assert (before.run, before.lasts) == (ALICE.name, 0)
    lease.take(Host(), lease.Claim(BOB), path=str(path))


def test_a_run_learns_whether_another_one_had_the_host_since_its_plan(tmp_path: Path) -> None:
    path = tmp_path / "lease.json"
    (tmp_path / "manifest.json").touch()
    planned = mark(Host(), str(path))
    assert planned == lease.take(Host(), lease.Claim(ALICE), path=str(path)) == ""
    lease.release(Host(), ALICE, str(path))
    planned = mark(Host(), str(path))
    assert lease.take(Host(), lease.Claim(BOB), path=str(path)) == planned
    lease.release(Host(), BOB, str(path))
    assert lease.take(Host(), lease.Claim(ALICE), path=str(path)) != planned


@pytest.mark.parametrize(
    ("age", "uptime", "boot", "refused"),
    [
        (None, 1100, BOOT, False),  # a plan of its own just now
        (200, 1100, BOOT, True),
        (50, 1100, BOOT, False),
        (200, 1100, "another boot", False),
    ],
)
def test_a_run_does_not_carry_out_what_it_planned_before_another_run(
    age: int | None, uptime: int, boot: str, refused: bool
) -> None:
    ended = HELD._replace(lasts=0)
    claim = lease.Claim(BOB, age=age)
    message = lease.describe_change(host(uptime, boot), ended, claim)
    assert bool(message) == refused
    if refused:
        assert "another run (upgrade_drivers.yml of alice@admin1) worked on it after this one planned it" in message
        assert "Run the same command again" in message
    assert not lease.describe_change(host(uptime, boot), ended, claim._replace(take_over=True))
    assert not lease.describe_change(host(uptime, boot), ended, lease.Claim(ALICE, age=age))
    assert not lease.describe_change(host(uptime, boot), None, claim)


def test_a_prepared_host_that_another_run_had_since_is_not_taken_again(tmp_path: Path) -> None:
    path = str(tmp_path / "lease.json")
    (tmp_path / "manifest.json").touch()
    claim = lease.Claim(ALICE, resumes=True, take_over=True)
    lease.take(Host(), lease.Claim(ALICE), path=path)
    lease.release(Host(), ALICE, path)
    lease.take(Host(), claim, path=path)
    lease.release(Host(), ALICE, path)
    lease.take(Host(), lease.Claim(BOB), path=path)
    lease.release(Host(), BOB, path)
    with pytest.raises(
        lease.LeaseError, match=r"another run \(site.yml of bob@awx-7\) worked on it after this one took it"
    ):
        lease.take(Host(), claim, path=path)
    Path(path).unlink()  # by uninstall.yml
    with pytest.raises(lease.LeaseError, match="another run worked on it after this one took it"):
        lease.take(Host(), claim, path=path)


def test_a_run_stops_at_its_next_step_also_where_the_other_run_has_ended(tmp_path: Path) -> None:
    path = str(tmp_path / "lease.json")
    (tmp_path / "manifest.json").touch()
    lease.take(Host(), lease.Claim(BOB), path=path)
    lease.release(Host(), BOB, path)
    with pytest.raises(lease.LeaseError, match="bob@awx-7"), lease.hold(Host(), ALICE, path):
        raise AssertionError("the step ran")
    with pytest.raises(lease.LeaseError, match="bob@awx-7"):
        lease.extend(Host(), ALICE, 900, path)


def test_a_step_that_deletes_the_state_leaves_none_behind(tmp_path: Path) -> None:
    path = tmp_path / "state/lease.json"
    with lease.hold_alone(Host(), lease.Claim(ALICE), str(path)):
        path.unlink()
        path.parent.rmdir()
    assert not path.parent.exists()


def compete(name: int, path: str, barrier: "multiprocessing.synchronize.Barrier", won: "multiprocessing.Queue[int]") -> None:  # fmt: skip
    barrier.wait()
    try:
        lease.take(Host(), lease.Claim(lease.RunId(f"cc.{name}.1", "x@y", "site.yml")), path=path)
    except lease.LeaseError:
        return
    won.put(name)


@pytest.mark.host_io
def test_of_runs_at_the_same_moment_one_gets_the_host(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    for number in range(20):
        path = str(tmp_path / str(number) / "lease.json")
        barrier, won = context.Barrier(4), context.Queue()
        racers = [context.Process(target=compete, args=(name, path, barrier, won)) for name in range(4)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join(300)
            assert racer.exitcode == 0
        assert json.loads(Path(path).read_text())["run"] == f"cc.{won.get(timeout=60)}.1"
        assert won.empty()


@pytest.mark.parametrize("text", ["x", "aa.1.2 alice site.yml", "aa.1.2 a@b c d", "../x.1.2 a@b c\n", "\x1b.1.2 a@b c"])
def test_an_odd_run_is_refused(text: str) -> None:
    with pytest.raises(GpuReadyError, match=lease.VARIABLE):
        lease.read_run(text)
    assert lease.read_run("") is None
    assert lease.read_run("aa.1.2 a@b site.yml") == lease.RunId("aa.1.2", "a@b", "site.yml")
