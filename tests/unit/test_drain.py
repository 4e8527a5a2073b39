"""Draining: the journal, the waits, and what an uninstallation refuses."""

import json
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.drain import docker as drain_docker
from plugins.module_utils.gpu_ready.drain import hook
from plugins.module_utils.gpu_ready.drain import journal as drain
from plugins.module_utils.gpu_ready.drain.journal import DrainError
from plugins.module_utils.gpu_ready.lifecycle import uninstall
from plugins.module_utils.gpu_ready.lifecycle.removal.context import Removal
from plugins.module_utils.gpu_ready.lifecycle.removal.errors import UninstallError
from plugins.module_utils.gpu_ready.upgrade.model import PHASES
from tests.unit.clock import Clock
from tests.unit.recorded import RecordedHost

REASON = "gpu-ready: driver upgrade"
TRAIN = drain_docker.GpuContainer("a" * 64, "train", True, False, False, "", 10)


def test_the_journal_keeps_entries_and_is_removed_with_the_last(tmp_path: Path) -> None:
    path = str(tmp_path / "state/drain.json")
    host = Host()
    entries = drain.DrainJournal(slurm=drain.SlurmDrain("n1", "ctl", REASON))
    assert drain.read(host, path) == drain.DrainJournal() and not drain.remove_entries(host, ["slurm"], path)
    assert drain.record_entries(host, entries, path) and not drain.record_entries(host, entries, path)
    drain_docker.record_containers(host, [TRAIN._replace(paused=True)], path)
    drain_docker.record_containers(host, [TRAIN, TRAIN._replace(id="b" * 64, name="other")], path)
    recorded = drain.read(host, path)
    assert recorded.docker and recorded.docker.containers["a" * 64] == ("train", True)  # the first record stays
    assert drain.describe(recorded) == ["docker's containers other, train are stopped", "slurm's node n1 is drained"]
    others = drain.DrainJournal(kubernetes=drain.KubernetesDrain("n2", "ctl"), tasks=drain.TasksDrain(["x", "y"]))
    assert drain.describe(others) == [
        "the Kubernetes node n2 is cordoned",
        "task files of gpu_upgrade_drain drained it: 2",
    ]
    assert json.loads(Path(path).read_text())["schema"] == 1
    assert drain.remove_entries(host, ["slurm"], path) and drain.remove_entries(host, ["docker"], path)
    assert not Path(path).exists()


@pytest.mark.parametrize(
    "text", ["", "null", "{", "[]", '{"slurm": 1}', '{"slurm": {}}', '{"schema": 2}', '{"schema": 1, "x": {}}']
)
def test_a_damaged_or_newer_journal_is_refused(text: str) -> None:
    with pytest.raises(DrainError, match=r"drain\.json: it cannot be read.* by hand"):
        drain.read(RecordedHost(files={drain.PATH: text}))


@pytest.mark.parametrize("phase", [*PHASES, "of a newer release"])
def test_uninstall_refuses_while_an_upgrade_is_unfinished(tmp_path: Path, phase: str) -> None:
    text = json.dumps({"schema": 1, "phase": phase, "to": "595.91.07"})
    removal = Removal(RecordedHost(files={str(tmp_path / "upgrade.json"): text}), str(tmp_path))
    if phase in ("staged", "done", "untouched", "back"):
        uninstall.find_actions(removal)
        return
    with pytest.raises(
        UninstallError, match=r"upgrade to the driver 595\.91\.07.*rollback_drivers\.yml.*delete that file"
    ):
        uninstall.find_actions(removal)


def test_uninstall_refuses_while_a_host_is_drained(tmp_path: Path) -> None:
    note = '{"schema": 1, "slurm": {"node": "n1", "controller": "n1", "reason": "r"}}'
    host = RecordedHost(files={str(tmp_path / "drain.json"): note})
    with pytest.raises(UninstallError, match=r"slurm's node n1 is drained.*playbooks/undrain\.yml"):
        uninstall.find_actions(Removal(host, str(tmp_path)))


def test_a_wait_reports_progress_and_ends() -> None:
    clock = Clock()
    first = hook.wait(lambda: "a job", 40, 0, clock.now, clock.sleep)
    assert (first.done, first.waiting, first.deadline, first.remaining) == (False, "a job", 1040.0, 25)
    second = hook.wait(lambda: "a job", 40, first.deadline, clock.now, clock.sleep)
    assert second.remaining == 10
    with pytest.raises(DrainError, match="after 40 s it still waits for a job. The host stays drained"):
        hook.wait(lambda: "a job", 40, first.deadline, clock.now, clock.sleep)
    assert clock.time == 1040.0
    assert hook.wait(lambda: "", 40, 0, clock.now, clock.sleep).done


def test_a_long_wait_needs_few_calls() -> None:
    assert hook.call_duration(86400, 0, 1000.0) * hook.MOST_CALLS >= 86400
    assert hook.call_duration(1800, 0, 1000.0) == 30 and hook.call_duration(10, 0, 1000.0) == 10
