"""Broken hosts, mirrors and networks: a message with cause and remedy.

A sample of the cells of tools/fault_grid.py (docs/dev/faults.md): faults that occur before anything is installed.
"""

import re
import time

import pytest
from gpu_ready_lab import faults, hosts

from tests.integration.fleet import Fleet

pytestmark = pytest.mark.lab

DEBIAN, ROCKY = "c-deb", "c-rpm"
RAW = re.compile(r"Traceback|MODULE FAILURE|non-zero return code")


@pytest.fixture(scope="module")
def grid(lab_machine: None) -> Fleet:
    """Bare hosts of both package managers."""
    fleet = Fleet("grid")
    fleet.up()
    return fleet


@pytest.mark.parametrize(
    ("host", "fault", "arguments", "words"),
    [
        (DEBIAN, "mirror-down", [], [".debian.org", "does not answer"]),
        pytest.param(DEBIAN, "clock", ["-4000"], ["clock"], marks=pytest.mark.long),
        pytest.param(DEBIAN, "dns", [], ["could not be fetched", "cannot resolve"], marks=pytest.mark.long),
        pytest.param(DEBIAN, "read-only", ["/etc"], ["/etc", "read-only"], marks=pytest.mark.long),
        pytest.param(DEBIAN, "half-configured", ["1"], ["gpu-ready-half"], marks=pytest.mark.long),
        pytest.param(ROCKY, "mirror-500", [], ["500"], marks=pytest.mark.long),
        (ROCKY, "dns", [], ["dl.fedoraproject.org", "cannot resolve"]),
    ],
)
def test_a_broken_host_or_network_is_reported_with_cause_and_remedy(
    grid: Fleet, host: str, fault: str, arguments: list[str], words: list[str]
) -> None:
    running, begun = hosts.find(f"grid/{host}"), time.time()
    faults.inject(running, fault, arguments)
    try:
        run = grid.play("--limit", host, packages_broken_by=f"the fault {fault}, until it is healed")
    finally:
        faults.heal(running, fault)
    grid.check_packages([host], begun)
    message = run.failures(host)
    assert run.rc != 0
    assert not RAW.search(message)
    for word in words:
        assert word.lower() in message.lower()
