"""Ubuntu hosts: signed modules of the archive, Secure Boot, NVIDIA's names before and after 590, replacement and removal.

`make test` provisions one host with signed modules, which needs a reboot, and runs site.yml again; the rest is of the campaign.
"""

import pytest

from tests.integration.fleet import Fleet, hosts_of

pytestmark = pytest.mark.lab

HOSTS = hosts_of("ubuntu")
SIGNED = [host for host in HOSTS if host in ("noble", "sealed")]
CHANGING = [host for host in HOSTS if host in ("noble", "resolute")]
OTHER = {"nvidia_driver_branch": "595", "nvidia_driver_flavour": "proprietary"}
SIGNER = "Canonical Ltd. Kernel Module Signing"


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("ubuntu")
    fleet.up()
    run = fleet.play()
    assert run.rc == 0, run.screen[-4000:]
    return fleet


def installed(fleet: Fleet, host: str) -> set[str]:
    """Return the names of the driver's packages on a host."""
    names = fleet.ssh(host, "dpkg-query -W -f '${db:Status-Status} ${Package}\\n'").splitlines()
    return {name[10:] for name in names if name.startswith("installed ") and ("nvidia" in name or "cuda" in name)}


def held(fleet: Fleet, host: str) -> set[str]:
    return set(fleet.ssh(host, "apt-mark showhold").split())


def module(fleet: Fleet, host: str, field: str) -> str:
    return fleet.ssh(host, f"modinfo -F '{field}' nvidia").strip()


def test_a_second_run_changes_nothing(fleet: Fleet) -> None:
    run = fleet.play()
    assert run.rc == 0
    for host in HOSTS:
        assert run.recap(host)["changed"] == 0
        assert run.steps(host) == []


@pytest.mark.parametrize("host", SIGNED)
def test_the_archive_has_modules_signed_by_the_distribution(fleet: Fleet, host: str) -> None:
    assert module(fleet, host, "signer") == SIGNER
    assert "restricted" in fleet.ssh(host, "cat /etc/apt/sources.list.d/ubuntu.sources")
    # The modules of one kernel never get another version of the driver: only userspace is held.
    assert "nvidia-headless-no-dkms-580-server-open" in held(fleet, host)
    assert "linux-modules-nvidia-580-server-open-6.8.0-100-generic" in installed(fleet, host)
    assert not fleet.ssh(host, "ls /var/lib/dkms 2>/dev/null || :").split()
    assert "/kernel/nvidia-580srv-open/" in module(fleet, host, "filename")


@pytest.mark.long
def test_nvidias_names_contain_the_branch_before_590(fleet: Fleet) -> None:
    assert {"nvidia-driver-pinning-580", "libnvidia-compute-580", "nvidia-dkms-580"} <= installed(fleet, "jammy")
    assert module(fleet, "jammy", "license") == "NVIDIA"


@pytest.mark.long
def test_nvidias_names_do_not_contain_the_branch_from_590_on(fleet: Fleet) -> None:
    assert {"nvidia-driver-pinning-595", "libnvidia-compute", "nvidia-dkms-open"} <= installed(fleet, "resolute")
    assert module(fleet, "resolute", "license") == "Dual MIT/GPL"


@pytest.mark.long
def test_another_branch_and_the_other_kind_of_module(fleet: Fleet) -> None:
    expected = OTHER | {"gpu_ready_reboot_ok": True}
    run = fleet.play("--limit", ",".join(CHANGING), extra=expected)
    assert run.rc == 0, run.screen[-4000:]
    for host in CHANGING:
        assert fleet.ssh(host, "cat /sys/module/nvidia/version").startswith("595.")
        assert module(fleet, host, "license") == "NVIDIA"
    assert module(fleet, "noble", "signer") == SIGNER
    assert not {name for name in installed(fleet, "noble") if "580" in name and name.startswith("linux-modules")}
    second = fleet.play("--limit", ",".join(CHANGING), extra=expected)
    assert second.rc == 0
    assert not any(second.changed(host) for host in CHANGING)


@pytest.mark.long
def test_others_than_the_driver_may_need_nvidias_repository_first(fleet: Fleet) -> None:
    """The driver of both hosts is from Ubuntu's archive; the toolkit is as NVIDIA's installer leaves it."""
    root = "/usr/local/cuda-12.9"
    fleet.ssh("noble", f"mkdir -p {root}/bin {root}/include {root}/lib64 && touch {root}/bin/nvcc")
    fleet.ssh("noble", f"echo 'CUDA Version 12.9.1' >{root}/version.txt")
    packages = OTHER | {"cudnn_source": "package", "cudnn_toolkits": ["12.9"]}
    run = fleet.play("--limit", "noble", extra=packages, holds=["cudnn.repository"])
    assert run.rc == 0, run.screen[-4000:]
    run = fleet.play("--limit", "sealed", extra={"gpu_monitoring": ["dcgm"]}, holds=["gpu_monitoring.repository"])
    assert run.rc == 0, run.screen[-4000:]


@pytest.mark.long
def test_a_node_of_an_imex_domain_gets_imex_of_its_drivers_version(fleet: Fleet) -> None:
    assert "nvidia-imex" not in installed(fleet, "resolute")
    fleet.ssh("resolute", "mkdir -p /etc/nvidia-imex && echo 10.199.0.99 >/etc/nvidia-imex/nodes_config.cfg")
    run = fleet.play("--limit", "resolute", extra=OTHER, holds=["nvidia_driver.imex"])
    assert run.rc == 0, run.screen[-4000:]
    assert run.steps("resolute") == ["nvidia_driver.imex", "gpu_verify.verify"]
    driver = fleet.ssh("resolute", "cat /sys/module/nvidia/version").strip()
    assert fleet.ssh("resolute", "dpkg-query -W -f '${Version}' nvidia-imex") == f"{driver}-1"
    assert fleet.ssh("resolute", "systemctl is-active nvidia-imex; systemctl is-enabled nvidia-imex").split() == ["active", "enabled"]  # fmt: skip
    assert "nvidia-imex" in held(fleet, "resolute")
    assert fleet.play("--limit", "resolute", extra=OTHER).steps("resolute") == []


@pytest.mark.long
def test_uninstall_reverts_everything(fleet: Fleet) -> None:
    run = fleet.play(playbook="playbooks/uninstall.yml", extra={"gpu_ready_reboot_ok": True})
    assert run.rc == 0, run.screen[-4000:]
    for host in HOSTS:
        assert not {name for name in installed(fleet, host) if not name.startswith("nvidia-container")}
        assert not held(fleet, host)
        assert fleet.ssh(host, "ls /etc/systemd/system/*.wants | grep nvidia || :").split() == []
        assert fleet.ssh(host, "ls /etc/apt/sources.list.d /etc/apt/preferences.d").count("gpu-ready-") == 0
    for host in SIGNED:
        assert "restricted" not in fleet.ssh(host, "cat /etc/apt/sources.list.d/ubuntu.sources")
