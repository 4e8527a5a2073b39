"""Requirements of the lab's engine on its machine."""

import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from gpu_ready_lab import debian_archive, engine, kubernetes, paths
from gpu_ready_lab.say import LabError, wait_for


def test_only_one_of_two_fleets_installs_packages_that_both_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """apt-get does not wait for another one that reads the lists, and both would create and remove the same policy-rc.d."""
    program = tmp_path / "qemu"
    calls: list[list[str]] = []
    within: list[int] = []

    def install(packages: list[str]) -> None:
        calls.append(packages)
        within.append(1)
        assert len(within) == 1
        time.sleep(0.2)
        program.touch()
        within.pop()

    monkeypatch.setattr(paths, "STATE", tmp_path / "state")
    monkeypatch.setattr(engine, "_install", install)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    fleets = [
        threading.Thread(target=engine.need_packages, args=({str(program): "qemu-system-x86"}, "a guest"))
        for _ in range(2)
    ]
    for one in fleets:
        one.start()
    for one in fleets:
        one.join(timeout=120)
    assert calls == [["qemu-system-x86"]]


@pytest.mark.host_io
@pytest.mark.parametrize("survivor", ["containerd", "dockerd"])
def test_what_a_killed_engine_left_running_ends_before_a_new_one_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survivor: str
) -> None:
    """Of dockerd and containerd one may be killed alone; both lock their data, so a second one would wait in vain."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", str(tmp_path)])
    pids = {name: tmp_path / f"{name}.pid" for name in ("dockerd", "containerd")}
    pids[survivor].write_text(f"{process.pid}\n")
    command_line = Path(f"/proc/{process.pid}/cmdline")
    # Popen returns when exec closes its pipe, a moment before the kernel shows the new command line.
    wait_for(lambda: bool(command_line.read_bytes()), limit=30, what="the command line", pause=0.01)
    running: list[bool] = []

    def spawn(name: str, argv: Sequence[str]) -> None:
        try:
            running.append(bool(command_line.read_bytes()))  # empty where it has ended and nobody waited for it yet
        except OSError:
            running.append(False)

    monkeypatch.setattr(paths, "STATE", tmp_path)
    monkeypatch.setattr(paths, "cache", lambda: tmp_path)
    for name, value in {"PIDS": pids, "SOCKET": tmp_path / "a.sock", "CONTAINERD": tmp_path / "b.sock"}.items():
        monkeypatch.setattr(engine, name, value)
    monkeypatch.setattr(engine, "_spawn", spawn)
    monkeypatch.setattr(engine, "_wait", lambda name, process, ready: None)
    threading.Thread(target=process.wait, daemon=True).start()
    try:
        engine._start_processes()
    finally:
        process.kill()
    assert running == [False, False]


def test_kubernetes_is_built_on_a_machine_that_has_run_no_lab_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The campaign builds it first, and the start of a lab host is what installs mmdebstrap otherwise."""
    installed: list[str] = []
    programs = {str(tmp_path / "mmdebstrap"): "mmdebstrap"}

    def build(argv: Sequence[str], **_: object) -> None:
        assert installed == ["mmdebstrap"]
        raise LabError("this build ends here")

    monkeypatch.setattr(paths, "STATE", tmp_path / "state")
    monkeypatch.setattr(paths, "cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(debian_archive, "mirror", lambda: "http://archive.test")
    monkeypatch.setattr(kubernetes, "NEEDS", programs)
    monkeypatch.setattr(kubernetes, "run", build)
    monkeypatch.setattr(engine, "_install", installed.extend)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    with pytest.raises(LabError, match="this build ends here"):
        kubernetes.ensure()
