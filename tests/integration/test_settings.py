"""Parameters of the kernel module, persistence mode and metrics: set, in use, read back, drift, a second run, removed.

`make test` has a provisioned host whose unit is changed to turn persistence mode off. The campaign adds bare hosts: Ubuntu's own
unit, which does so, and Debian's own driver, whose module has another name.
"""

import re

import pytest

from tests.grid import CAMPAIGN
from tests.integration.fleet import Fleet, hosts_of

pytestmark = pytest.mark.lab

READY, NOBLE, TRIXIE = "set-ready", "set-noble", "set-trixie"
HOSTS = hosts_of("settings")
MODULES = {READY: "nvidia", TRIXIE: "nvidia-current"}
OURS = "/etc/modprobe.d/zz-gpu-ready-nvidia.conf"
ADMIN = "/etc/modprobe.d/local.conf"
DROP_IN = "/etc/systemd/system/nvidia-persistenced.service.d"
UNIT = "/usr/lib/systemd/system/nvidia-persistenced.service"
TURN_OFF = {READY: f"sed -i 's/--verbose/--no-persistence-mode &/' {UNIT}", NOBLE: f"rm {DROP_IN}/gpu-ready.conf"}
"""What turns persistence mode off at the next start of the daemon: its package's unit, or one without the drop-in."""
GIVEN = {
    "nvidia_driver_module_parameters": {"NVreg_RestrictProfilingToAdminUsers": 0, "RegistryDwords": "A=0x1;B=2"},
}
"""The shell of Debian's install command for the module must not see the semicolon."""
NO_METRICS: dict[str, list[str]] = {"gpu_monitoring": []}
"""The fleet file requests them for the first host."""
MODES = {TRIXIE: "Disabled"}
"""Debian's archive builds the daemon apart from the driver: it is not installed, and the mode is left alone (docs/drivers.md)."""
MODE = "nvidia-smi --query-gpu=persistence_mode --format=csv,noheader"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    """Hosts with a driver, and parameters as the driver has them without any request."""
    fleet = Fleet("settings")
    fleet.up()
    install = "apt-get -qq update && apt-get -qq -y --no-install-recommends install prometheus-node-exporter curl"
    fleet.ssh(READY, f"export DEBIAN_FRONTEND=noninteractive; {install} >/dev/null 2>&1")
    if CAMPAIGN:
        run = fleet.play(extra=NO_METRICS)
        assert run.rc == 0, run.screen[-4000:]
    return fleet


def shown(fleet: Fleet, host: str) -> dict[str, str]:
    """Return what the driver shows of its parameters."""
    return dict(re.findall(r"(?m)^(\w+): (.*)$", fleet.ssh(host, "cat /proc/driver/nvidia/params")))


def persistence_mode(fleet: Fleet, host: str) -> set[str]:
    """Return the persistence mode of a host's GPUs."""
    return set(fleet.ssh(host, MODE).split())


@pytest.mark.long
def test_persistence_mode_is_on_with_the_unit_of_ubuntus_archive(fleet: Fleet) -> None:
    assert "--no-persistence-mode" in fleet.ssh(NOBLE, f"cat {UNIT}")
    assert fleet.ssh(NOBLE, MODE).split() == ["Enabled", "Enabled"]
    properties = fleet.ssh(NOBLE, "systemctl show -p StopWhenUnneeded -p ActiveState nvidia-persistenced")
    assert set(properties.split()) == {"StopWhenUnneeded=no", "ActiveState=active"}


def test_a_request_is_shown_first_and_changes_nothing_under_check(fleet: Fleet) -> None:
    before = {host: shown(fleet, host) for host in HOSTS}
    run = fleet.play("--check", "--diff", extra=GIVEN)
    for host in HOSTS:
        metrics = ["gpu_monitoring.textfile"] if host == READY else []
        expected = ["nvidia_driver.parameters", "nvidia_driver.activate", "gpu_verify.verify"]
        assert sorted(run.steps(host)) == sorted(expected + metrics)
        assert fleet.ssh(host, f"test ! -e {OURS} && echo absent") == "absent\n"
    assert "NVreg_RestrictProfilingToAdminUsers is 1, requested is 0" in run.screen
    for module in {MODULES[host] for host in HOSTS if host in MODULES}:
        assert f"+options {module} NVreg_RegistryDwords" in run.screen
    assert {host: shown(fleet, host) for host in HOSTS} == before


def metrics_of(fleet: Fleet, host: str) -> list[str]:
    """What the real node_exporter of a host serves of gpu-ready's metrics; waits for the first sample."""
    ask = "curl -sf http://127.0.0.1:9100/metrics"
    fleet.wait(host, f"{ask} | grep -q gpu_ready_gpu_info")
    return [line for line in fleet.ssh(host, ask).splitlines() if not line.startswith("#")]


def test_a_request_is_in_use_after_one_run_and_costs_one_call_afterwards(fleet: Fleet) -> None:
    run = fleet.play(extra=GIVEN, holds=["nvidia_driver.parameters"])
    assert run.rc == 0, run.screen[-4000:]
    for host in HOSTS:
        values = shown(fleet, host)
        assert (values["RmProfilingAdminOnly"], values["RegistryDwords"]) == ("0", '"A=0x1;B=2"'), host
        assert persistence_mode(fleet, host) == {MODES.get(host, "Enabled")}, host
    lines = metrics_of(fleet, READY)
    assert any(line.startswith("gpu_ready_gpu_info{") and "Tesla T4" in line for line in lines), lines
    assert "gpu_ready_nvml_up 1" in lines and "node_textfile_scrape_error 0" in lines
    second = fleet.play(extra=GIVEN)
    for host in HOSTS:
        assert (second.calls[host], second.recap(host)["changed"]) == (1, 0)


@pytest.mark.parametrize("host", [READY, pytest.param(NOBLE, marks=pytest.mark.long)])
def test_what_somebody_changes_is_drift_and_is_set_again(fleet: Fleet, host: str) -> None:
    unload = "systemctl stop nvidia-persistenced && rmmod nvidia_uvm nvidia_modeset nvidia"
    fleet.ssh(host, f"rm -f {OURS} && {unload} && modprobe nvidia-uvm")
    fleet.ssh(host, f"{TURN_OFF[host]} && systemctl daemon-reload && systemctl restart nvidia-persistenced")
    audit = fleet.play("--limit", host, playbook="playbooks/audit.yml", extra=GIVEN)
    assert "NVreg_RestrictProfilingToAdminUsers is 1, requested is 0" in audit.screen
    assert "persistence mode off" in audit.screen
    assert fleet.play("--limit", host, extra=GIVEN | NO_METRICS).rc == 0
    assert shown(fleet, host)["RmProfilingAdminOnly"] == "0"
    assert persistence_mode(fleet, host) == {"Enabled"}
    # Metrics were no longer requested.
    names = "/etc/systemd/system/gpu-ready-monitoring* /usr/local/lib/gpu-ready /var/lib/prometheus/node-exporter/gpu_ready*"
    assert fleet.ssh(host, f"ls -d {names} 2>/dev/null || :") == ""
    assert fleet.ssh(host, "systemctl is-active gpu-ready-monitoring || :").strip() == "inactive"


@pytest.mark.parametrize("host", [READY, pytest.param(TRIXIE, marks=pytest.mark.long)])
def test_the_line_of_an_administrator_refuses_the_host_with_its_place(fleet: Fleet, host: str) -> None:
    fleet.ssh(host, f"printf '# ours\\noptions {MODULES[host]} NVreg_DeviceFileMode=0640\\n' >{ADMIN}")
    try:
        extra = {"nvidia_driver_module_parameters": {"DeviceFileMode": "0660"}}
        run = fleet.play("--limit", host, extra=extra)
        assert run.rc != 0
        assert f"{ADMIN}:2 sets NVreg_DeviceFileMode to 0640" in run.failures(host)
    finally:
        fleet.ssh(host, f"rm {ADMIN}")


def test_uninstalling_leaves_no_file_of_both(fleet: Fleet) -> None:
    run = fleet.play(playbook="playbooks/uninstall.yml")
    assert run.rc == 0, run.screen[-4000:]
    parameters = "cat /etc/modprobe.d/*.conf /run/modprobe.d/*.conf 2>/dev/null | grep -v '^#' || :"
    for host in HOSTS:
        assert fleet.ssh(host, f"ls -d {OURS} {DROP_IN} /var/lib/gpu-ready 2>/dev/null || :") == "", host
        if host != NOBLE:
            assert "NVreg" not in fleet.ssh(host, parameters), host
