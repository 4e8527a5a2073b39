"""A guest that loses its power during its provisioning, again and again, beside a twin that does not."""

import sys
from pathlib import Path

import pytest
from gpu_ready_lab import footprint

from tests.integration import guests
from tests.integration.fleet import Fleet

pytestmark = [pytest.mark.lab, pytest.mark.long]

WHOLE, CUT = "vm13", "vm13cut"
CUTS = {
    "kernel_headers.install": 8,
    "nvidia_driver.blacklist_nouveau": 4,
    "nvidia_driver.install": 25,
    "nvidia_driver.activate": 3,
    "nvidia_container_runtime.install": 6,
    "nvidia_container_runtime.configure": 0,
    "gpu_verify.verify": 5,
}
"""Steps, and the seconds after which the power is cut; 0: just before the step. The first boot after the blacklist follows a cut."""


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = guests.up("vm13")
    run = fleet.play("--limit", WHOLE)
    assert run.rc == 0, run.failures(WHOLE)
    return fleet


def files(fleet: Fleet, host: str) -> footprint.Footprint:
    """The state of each file and package of a guest."""
    return footprint.read(fleet.ssh(host, f"python3 - <<'END'\n{footprint.ASK}\nEND", limit=1200))


def test_after_seven_cuts_all_files_are_the_same(fleet: Fleet, tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "gpu_ready_lab", "power-cycle", f"{fleet.name}/{CUT}"]
    marks = {task: tmp_path / str(number) for number, task in enumerate(CUTS)}
    for number in range(len(CUTS) + 1):
        left = [task for task in CUTS if not marks[task].exists()]
        moments = [{"task": task, "after": CUTS[task], "argv": argv, "mark": str(marks[task])} for task in left]
        run = fleet.play("--limit", CUT, moments=moments)
        came = [task for task in left if marks[task].exists()]
        print(f"run {number} ended with {run.rc}, the power went at {came}: {run.failures(CUT)}")
        if run.rc == 0 and not came:
            break
        fleet.up()  # which waits for the guest, where the last cut was a moment ago
    assert all(mark.exists() for mark in marks.values())
    assert run.rc == 0, run.failures(CUT)
    assert footprint.differences(files(fleet, WHOLE), files(fleet, CUT)) == []
    second = fleet.play("--limit", CUT)
    assert second.steps(CUT) == [] and second.calls[CUT] == 1
