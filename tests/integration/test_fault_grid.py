"""Provisioning runs that are disturbed at any moment: a sample of faults and of cuts, which the seed of the run draws.

A run with a fault or a cut finishes, or stops with a message for the operator. After it the same command finishes with
the files of an undisturbed run, and the next one changes nothing. The control node dies, SSH is cut or power is cut at
boundaries of tasks that change something, and in the middle of those that take long. A container that loses its power
keeps what it wrote; test_vm_power.py cuts the power of guests.
"""

import fnmatch
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from gpu_ready_lab import faults, footprint, hosts

from tests.grid import drawn
from tests.integration.fleet import Fleet, Run

pytestmark = [pytest.mark.lab, pytest.mark.long]

FLEET = "grid"
DEB, RPM = "c-deb", "c-rpm"
FAULTS_OF_A_HOST, CUTS_OF_A_SERIES = 6, 5
LONG = 4.0
"""Seconds; a task that takes longer is also cut in its middle."""
RAW = re.compile(r"Traceback|MODULE FAILURE|Module failed|non-zero return code|Unexpected failure|\[Errno \d+\](?!.*:)")
LONGEST_MESSAGE = 1200
TIMES = ("/var/lib/gpu-ready/lease.json*", "/var/lib/gpu-ready/verified.json#logged")
"""Records with times: the run that changed the host last, and how far the kernel's log was read."""
LAB = [sys.executable, "-m", "gpu_ready_lab"]


class Fault(NamedTuple):
    """A fault of the environment and when it occurs: at the start, or before the first task whose name matches."""

    name: str
    arguments: tuple[str, ...] = ()
    before: str | None = None
    only: tuple[str, ...] = (DEB, RPM)
    variables: dict[str, str] = {}
    """Of the run with the fault."""
    prepare: dict[str, str] = {}
    """Variables of a complete run before the fault, which leaves a host in use."""
    passes: bool = False
    """A run finishes despite it."""
    keeps: tuple[str, ...] = ()
    """Globs of paths that the fault changes for good, among them directories that no RPM of the lab owns."""


DISTRO, VENDOR, CONTAINERS = "*.debian.org/*", "*/cuda/repos/*", "*/libnvidia-container/*"
INSTALL = "nvidia_driver.install"
OLDER = "580.95.05"
OWN_KEY = ("/etc/docker/daemon.json", "/var/lib/gpu-ready/backup*", "/var/lib/gpu-ready/manifest.json#daemon_json")
"""What differs where a daemon.json existed before: the file, gpu-ready's copy of it, and its record in the manifest."""
# test_faults_environment.py has what the first line of the report says of faults from the start.
FAULTS = (
    Fault("mirror-down"),
    Fault("clock", ("-4000",)),
    Fault("clock", ("9000",)),
    Fault("dns"),
    Fault("read-only", ("/usr",)),
    Fault("read-only", ("/etc",)),
    Fault("half-configured", ("1",), only=(DEB,)),
    Fault("headers-missing"),
    Fault("sudo-password", variables={"ansible_user": "visitor"}),
    Fault("python-missing"),
    Fault("python-old"),
    Fault("package-lock", ("1000",)),
    Fault("mirror-404", ("*.deb",), only=(DEB,)),
    Fault("mirror-404", ("*.rpm",), only=(RPM,)),
    Fault("mirror-truncated", ("*.deb",), only=(DEB,)),
    Fault("mirror-truncated", ("*.rpm",), only=(RPM,)),
    Fault("mirror-corrupt", ("*.deb",), only=(DEB,)),
    Fault("mirror-corrupt", ("*.rpm",), only=(RPM,)),
    Fault("mirror-corrupt", (DISTRO,), only=(DEB,)),
    Fault("disk-full", only=(DEB,)),
    Fault("disk-full", ("/usr/src", "4k"), only=(RPM,)),
    Fault("disk-full", ("/var/lib/gpu-ready", "4k")),
    Fault("mirror-404", (VENDOR,)),
    Fault("mirror-500", (VENDOR,)),
    Fault("mirror-signature", only=(DEB,)),
    Fault("mirror-expired-key", only=(DEB,)),
    Fault("mirror-hang", (VENDOR,)),
    Fault("mirror-down", before=INSTALL),
    Fault("docker-refuses", before="docker_engine.install"),
    Fault("mirror-signature", (CONTAINERS,), only=(RPM,)),
    Fault("gpu-off-bus", before="gpu_verify.verify"),
    Fault("package-lock", ("40",), before="kernel_headers.install", passes=True),
    Fault("half-configured", ("0",), before=INSTALL, passes=True, only=(DEB,)),
    Fault("tmp-noexec", before=INSTALL, passes=True),
    Fault("mirror-slow", (CONTAINERS,), before="nvidia_container_runtime.repository", passes=True),
    Fault("daemon-json", before="nvidia_container_runtime.configure", passes=True, keeps=OWN_KEY),
    Fault(
        "libraries-moved",
        prepare={"nvidia_driver_version": OLDER, "nvidia_driver_hold": "false"},
        passes=True,
        # The package that pins the branch was not installed by this run, so the manifest does not list it.
        keeps=(f"/usr/lib/firmware/nvidia/{OLDER}", f"/usr/src/nvidia*-{OLDER}", "/var/lib/gpu-ready/manifest.json#packages"),
    ),
)  # fmt: skip


class Host:
    """A host of the fleet, with what an undisturbed run does on it: the tasks that change something, and its files."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self.fleet, self.name = fleet, name
        self.recreate()
        run = self.play()
        assert run.rc == 0, message(run)
        self.files = footprint.take(self.running())
        self.tasks: list[tuple[str, float]] = []
        for before, event in zip(run.events, run.events[1:], strict=False):
            if event["status"] == "ok" and event["changed"] and not event["changed_steps"]:
                self.tasks.append((event["task"], event["time"] - before["time"]))
            elif before["status"] == "began" and before["task"] in run.changed(name):
                self.tasks.append((before["task"], event["time"] - before["time"]))

    def running(self) -> hosts.Running:
        return hosts.find(f"{FLEET}/{self.name}")

    def recreate(self) -> None:
        """Make the host again from its image."""
        hosts.remove([one for one in hosts.existing() if (one.fleet, one.host) == (FLEET, self.name)])
        self.fleet.up()

    def play(self, *moments: dict[str, Any], extra: dict[str, str] | None = None) -> Run:
        """Run site.yml on the host; what happens at the moments may break its package manager until the next run."""
        what = "the fault, until it is healed"
        with tempfile.TemporaryDirectory() as directory, pytest.MonkeyPatch.context() as patch:
            # A master connection that survives a cut would belong to the next run.
            patch.setenv("ANSIBLE_SSH_CONTROL_PATH_DIR", f"{directory}/cp")
            planned = [{**one, "mark": f"{directory}/{number}"} for number, one in enumerate(moments)]
            run = self.fleet.play("--limit", self.name, moments=planned, extra=extra, packages_broken_by=what)
            self.came = [Path(one["mark"]).exists() for one in planned]
        return run

    def repair(self, keeps: tuple[str, ...] = ()) -> None:
        """Check that the same command finishes with the files of an undisturbed run, and that the next changes nothing."""
        run = self.play()
        assert run.rc == 0, message(run)
        found = footprint.differences(self.files, footprint.take(self.running()))
        passed_over = (*keeps, *TIMES)
        found = [
            line for line in found if not any(fnmatch.fnmatchcase(line.partition(": ")[0], one) for one in passed_over)
        ]
        assert not found, "\n".join(found)
        second = self.play()
        assert (second.rc, second.changed(self.name)) == (0, [])


def message(run: Run) -> str:
    """Return why the host is not ready."""
    failed = [event["message"] for event in run.events if event["status"] in ("failed", "unreachable")]
    return " ".join((failed or [run.screen[-2000:]])[-1].split())


def check_message(run: Run) -> None:
    """Check that a run that stopped says why: no traceback, no bare exit status, not a screenful."""
    text = message(run)
    print(text)
    assert 0 < len(text) <= LONGEST_MESSAGE and not RAW.search(text), text


@pytest.fixture(scope="module", params=[DEB, RPM])
def host(lab_machine: None, request: pytest.FixtureRequest) -> Host:
    fleet = Fleet(FLEET)
    fleet.up()
    return Host(fleet, request.param)


def cuts(tasks: list[tuple[str, float]]) -> Iterator[tuple[str, float]]:
    """Yield where a run can be cut: a task, and the seconds into it."""
    for name, seconds in tasks:
        yield name, 0.0
        if seconds > LONG:
            yield name, seconds / 2


@pytest.mark.parametrize("kind", ["the control node dies", "ssh-dropped", "power-cycle"])
def test_a_run_that_is_cut_is_completed_by_the_next(host: Host, kind: str) -> None:
    """A run that continues after a cut meets the next cut; where it ended, the same command continues."""
    host.recreate()
    name = f"{FLEET}/{host.name}"
    how: dict[str, Any] = {"die": True} if kind == "the control node dies" else {"argv": [*LAB, kind, name]}
    if kind == "ssh-dropped":
        how = {"argv": [*LAB, "fault", name, kind]}
    left = [{"task": task, "after": after, **how} for task, after in drawn(list(cuts(host.tasks)), CUTS_OF_A_SERIES)]
    while left:
        print([(one["task"], one["after"]) for one in left])
        run = host.play(*(left[:1] if "die" in how else left))
        if run.rc > 0:
            check_message(run)
        if kind == "power-cycle":
            hosts.power_on(host.running())  # waits until it has booted
        if not any(host.came):  # an earlier run had completed these tasks
            break
        left = left[1:] if "die" in how else [one for one, came in zip(left, host.came, strict=True) if not came]
    host.repair()


@pytest.mark.parametrize("number", range(FAULTS_OF_A_HOST))
def test_a_run_with_a_fault_is_completed_by_the_next(host: Host, number: int) -> None:
    fault = drawn([one for one in FAULTS if host.name in one.only], FAULTS_OF_A_HOST)[number]
    print(fault)
    host.recreate()
    if fault.prepare:
        assert host.play(extra=fault.prepare).rc == 0
    try:
        if fault.before is None:
            faults.inject(host.running(), fault.name, list(fault.arguments))
            run = host.play(extra=fault.variables)
        else:
            task = next(name for name, _ in host.tasks if fnmatch.fnmatchcase(name, fault.before))
            argv = [*LAB, "fault", f"{FLEET}/{host.name}", fault.name, *fault.arguments]
            run = host.play({"task": task, "argv": argv}, extra=fault.variables)
            assert all(host.came), "the run did not come to the task"
    finally:
        faults.heal(host.running(), fault.name)
    if run.rc != 0:
        assert not fault.passes, message(run)
        check_message(run)
    host.repair(fault.keeps)
