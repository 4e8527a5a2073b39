"""Broken hosts, mirrors and networks: the first line names the planted cause, then what to do.

Faults that occur before anything is installed; test_fault_grid.py also has those at other moments, and the repair.
"""

import json
import re
import time
from typing import Any

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


def row(host: str, fault: str, *arguments: str, cause: str, remedy: str, sample: bool = False) -> Any:
    """A fault, and what the first line of the report has: the planted cause, then what to do. Patterns."""
    marks = () if sample else (pytest.mark.long,)
    return pytest.param(host, fault, arguments, cause, remedy, id="-".join([host, fault, *arguments]), marks=marks)


NETWORK = "does not answer: check network and proxy|Check the network and proxy"
FREE = "Free space"
CLOCK = "[Cc]ompare the clock|`date -u`|timedatectl"


@pytest.mark.parametrize(
    ("host", "fault", "arguments", "cause", "remedy"),
    [
        row(DEBIAN, "headers-missing", cause="no longer carries the headers", remedy="Upgrade the kernel"),
        row(DEBIAN, "mirror-down", cause=r"debian\.org/\S+ could not be fetched", remedy=NETWORK, sample=True),
        row(DEBIAN, "mirror-404", "*", cause="404", remedy="does not have it"),
        row(DEBIAN, "mirror-500", "*", cause="500", remedy="see its log"),
        row(DEBIAN, "mirror-truncated", "*", cause="could not be fetched.*(?:closed|ended)", remedy="network|log|again"),
        row(DEBIAN, "clock", "-4000", cause="from the future|not yet valid", remedy=CLOCK),
        row(DEBIAN, "clock", "9000", cause="too old|has expired", remedy=CLOCK),
        row(DEBIAN, "dns", cause="resolv", remedy="check its DNS"),
        row(DEBIAN, "read-only", "/usr", cause="/usr is read-only", remedy="remount,rw"),
        row(DEBIAN, "read-only", "/etc", cause="/etc is read-only", remedy="remount,rw"),
        row(DEBIAN, "half-configured", "1", cause="gpu-ready-half could not be configured", remedy="See what it printed"),
        row(DEBIAN, "sudo-password", cause="Missing sudo password", remedy="--ask-become-pass"),
        row(DEBIAN, "python-missing", cause="Python 3 of Debian.* does not start", remedy="apt-get install --reinstall"),
        row(DEBIAN, "python-old", cause=r"Python 3\.4 of Debian.* is too old", remedy="ansible_python_interpreter"),
        row(DEBIAN, "mirror-signature", cause="signature is not valid|not be verified", remedy="key"),
        row(DEBIAN, "mirror-expired-key", cause="[Ee]xpired", remedy="key"),
        row(DEBIAN, "mirror-certificate", cause="certificate verify failed", remedy="ca-certificates"),
        row(DEBIAN, "disk-full", "/var/cache/apt/archives", "256k", cause="only 0 MB are free", remedy=FREE),
        # This one lets the driver be installed before the manifest is full.
        row(DEBIAN, "disk-full", "/var/lib/gpu-ready", "4k", cause="/var/lib/gpu-ready/.*No space left", remedy=FREE),
        row(ROCKY, "mirror-down", cause="could not be fetched", remedy=NETWORK),
        row(ROCKY, "mirror-404", "*", cause="404", remedy="does not have it"),
        row(ROCKY, "mirror-500", "*", cause="500", remedy="see its log"),
        row(ROCKY, "clock", "-4000", cause="not yet valid", remedy="clock of this host is behind"),
        row(ROCKY, "clock", "9000", cause="has expired", remedy="clock of this host is ahead"),
        row(ROCKY, "dns", cause=r"dl\.fedoraproject\.org.*(?:resolve|name resolution)", remedy="check its DNS", sample=True),
        row(ROCKY, "read-only", "/usr", cause="/usr is read-only", remedy="remount,rw"),
        row(ROCKY, "headers-missing", cause="no longer carries the headers", remedy="Upgrade the kernel"),
        row(ROCKY, "python-old", cause=r"Python 3\.4 of Rocky.* is too old", remedy="ansible_python_interpreter"),
    ],
)  # fmt: skip
def test_the_first_line_names_the_planted_cause_and_then_what_to_do(
    grid: Fleet, host: str, fault: str, arguments: tuple[str, ...], cause: str, remedy: str
) -> None:
    running, begun = hosts.find(f"grid/{host}"), time.time()
    faults.inject(running, fault, list(arguments))
    extra = {"ansible_user": "visitor"} if fault == "sudo-password" else None
    try:
        run = grid.play("--limit", host, extra=extra, packages_broken_by=f"the fault {fault}, until it is healed")
    finally:
        faults.heal(running, fault)
    grid.check_packages([host], begun)
    newest = sorted(grid.reports.glob("20*.json"))[-1]
    why = json.loads(newest.read_text())["hosts"][host]["why"]
    message = " ".join(f"{why['message']} Remedy: {why['remedy']}".split())
    print(f"| {host} | {' '.join([fault, *arguments])} | {message} |")
    assert run.rc != 0
    assert not RAW.search(message)
    found = re.search(cause, message)
    assert found and re.search(remedy, message[found.start() :]), message
    assert f"--limit {host}" in run.screen or "Next: " in run.screen
