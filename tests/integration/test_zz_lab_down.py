"""The last test: `make lab-down` leaves nothing but the cache."""

import contextlib
import subprocess
import time
from pathlib import Path

import pytest

from tests.integration.fleet import ROOT, WAIT_LIMIT, lab

pytestmark = [pytest.mark.lab, pytest.mark.alone]


def test_lab_down_leaves_nothing(lab_machine: None, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--keep-lab"):
        pytest.skip("--keep-lab was given")
    lab("up", "lab/fleets/molecule_no_gpu.yml")
    assert "10.199.0.1" in subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True, check=True).stdout
    lab("down")
    addresses = subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True, check=True).stdout
    assert "10.199.0." not in addresses and "grl0" not in addresses
    assert not Path("/run/gpu-ready-lab").exists()
    assert "gpu-ready-lab" not in Path("/proc/self/mountinfo").read_text()
    assert not (ROOT / ".lab/molecule_no_gpu").exists()
    end = time.monotonic() + WAIT_LIMIT  # the last processes of the engine end by themselves
    while processes() and time.monotonic() < end:
        time.sleep(0.5)
    assert processes() == []


def processes() -> list[bytes]:
    """Return the command lines of the lab's processes."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found.append(path.read_bytes())
    return [line for line in found if b"/run/gpu-ready-lab" in line]
