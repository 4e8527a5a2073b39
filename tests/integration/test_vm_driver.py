"""A driver that was upgraded under a loaded module: named as a mismatch, then reloaded live or by the operator's reboot."""

from collections.abc import Iterator

import pytest

from tests.integration import guests
from tests.integration.fleet import Fleet

pytestmark = [pytest.mark.lab, pytest.mark.long]

HOST = "vm12"
OLD = "535.261.03"
"""What Debian 12 was released with; its security updates have the newer one that is installed."""
KEEP_OPEN = "setsid {program} 3600 </dev/nvidiactl >/dev/null 2>&1 & echo $!"
UNIT = "[Service]\\nType=exec\\nExecStart=/usr/local/bin/{program} infinity\\nStandardInput=file:/dev/nvidiactl\\n"
SERVICES = {"nvidia-dcgm": "nv-hostengine", "nvidia-persistenced": "nvidia-persistenced"}
"""In the order in which they are stopped. The tests run programs with these names that keep the device open."""


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = guests.up("vm")
    run = fleet.play()  # nothing to do after test_vm.py
    assert run.rc == 0, run.failures(HOST)
    return fleet


@pytest.fixture(scope="module")
def installed(fleet: Fleet) -> str:
    return fleet.ssh(HOST, "modinfo -F version nvidia-current").strip()


def load_old(fleet: Fleet) -> None:
    """Load the module of the release beside the files of the update, as after an upgrade without a reboot."""
    release = fleet.ssh(HOST, "uname -r").strip()
    directory = guests.built(release, "nvidia-kernel-dkms@release")
    fleet.ssh(HOST, "for name in nvidia_drm nvidia_modeset nvidia_uvm nvidia; do rmmod $name 2>/dev/null; done; true")
    guests.insert(fleet, HOST, directory, "nvidia", "nvidia-uvm")
    assert OLD in guests.loaded(fleet, HOST)


def test_the_mismatch_of_the_real_library_is_named(fleet: Fleet, installed: str) -> None:
    load_old(fleet)
    smi = guests.real_smi(fleet, HOST)
    assert "Driver/library version mismatch" in smi and smi.endswith("ended with 18\n"), smi
    output = guests.driver_messages(fleet, HOST)
    assert "API mismatch" in output
    text = guests.explain("dmesg", output)
    assert installed in text and OLD in text, text
    audit = fleet.play(playbook="playbooks/audit.yml")
    assert audit.rc != 0
    assert f"the loaded module is {OLD} proprietary, on disk is {installed} proprietary" in audit.screen


def test_a_module_in_use_waits_for_a_reboot_and_its_user_is_named(fleet: Fleet, installed: str) -> None:
    fleet.ssh(HOST, "cp /usr/bin/sleep /usr/local/bin/trainer")
    pid = fleet.ssh(HOST, KEEP_OPEN.format(program="trainer")).strip()
    before = guests.boot_id(fleet, HOST)
    run = fleet.play(extra={"gpu_ready_reboot_ok": False})
    assert run.rc != 0
    assert "A reboot is required" in run.failures(HOST) and f"held by PID {pid} (trainer)" in run.failures(HOST)
    assert fleet.ssh(HOST, f"cat /proc/{pid}/comm").strip() == "trainer"
    assert OLD in guests.loaded(fleet, HOST) and guests.boot_id(fleet, HOST) == before


def test_after_the_operators_reboot_the_same_command_finishes(fleet: Fleet, installed: str) -> None:
    guests.reboot(fleet, HOST)
    assert installed in guests.loaded(fleet, HOST)
    run = fleet.play(extra={"gpu_ready_reboot_ok": False})
    assert run.rc == 0, run.failures(HOST)
    assert run.steps(HOST) == ["gpu_verify.verify"]


@pytest.fixture
def services(fleet: Fleet) -> Iterator[None]:
    for unit, program in SERVICES.items():
        text = UNIT.format(program=program)
        fleet.ssh(
            HOST, f"cp /usr/bin/sleep /usr/local/bin/{program}; printf '{text}' >/run/systemd/system/{unit}.service"
        )
    yield
    for unit, program in SERVICES.items():
        fleet.ssh(HOST, f"systemctl stop {unit}; rm -f /run/systemd/system/{unit}.service /usr/local/bin/{program}")


def test_a_module_used_only_by_services_is_reloaded_live(fleet: Fleet, installed: str, services: None) -> None:
    load_old(fleet)
    fleet.ssh(HOST, "systemctl daemon-reload; systemctl start " + " ".join(reversed(SERVICES)))
    assert fleet.ssh(HOST, "rmmod nvidia_uvm; rmmod nvidia 2>&1; modprobe -n nvidia; true").count("in use") == 1
    before = guests.boot_id(fleet, HOST)
    run = fleet.play(extra={"gpu_ready_reboot_ok": False})
    assert run.rc == 0, run.failures(HOST)
    assert run.steps(HOST)[0] == "nvidia_driver.activate"
    assert guests.boot_id(fleet, HOST) == before
    assert installed in guests.loaded(fleet, HOST)
    assert fleet.ssh(HOST, "systemctl is-active " + " ".join(SERVICES)).split() == ["active", "active"]
    log = fleet.ssh(
        HOST,
        "journalctl --sync; journalctl -b -o cat -t systemd -g '(Stopped|Started) nvidia-(dcgm|persistenced)' | tail -4",
    )
    words = [tuple(line.rstrip(".").split()[:2]) for line in log.splitlines()]
    first, second = (f"{unit}.service" for unit in SERVICES)
    assert words == [("Stopped", first), ("Stopped", second), ("Started", second), ("Started", first)], log
