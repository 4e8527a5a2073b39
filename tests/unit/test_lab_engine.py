"""Requirements of the lab's engine on its machine."""

import threading
import time
from pathlib import Path

import pytest
from gpu_ready_lab import engine, paths


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
        one.join(timeout=30)
    assert calls == [["qemu-system-x86"]]
