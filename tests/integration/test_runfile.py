"""The driver as NVIDIA's .run installer: installed, replaced, refused and removed by the module on lab hosts.

`make test` takes one host through installation, replacement, a failed build, site.yml and removal; `make campaign` also one from before Turing,
and flavours, kernels, interruptions, damaged files and drivers of somebody else.
"""

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gpu_ready_lab import paths

from tests.integration.fleet import ROOT, VENV, Fleet, environment, hosts_of

pytestmark = pytest.mark.lab

A, B = "run-a", "run-b"
OLD, NEW, LEGACY = "580.95.05", "580.178.04", "470.256.02"
HOLD = "nvidia-persistenced >/dev/null 2>&1 </dev/null"
RELEASE = (
    "pid=$(cat /run/nvidia-persistenced/nvidia-persistenced.pid); kill $pid;"
    " for n in $(seq 3000); do [ -e /proc/$pid ] || break; sleep 0.1; done; /usr/lib/gpu-ready-lab/kernel refresh; "
)
UNLOAD = "for m in nvidia_modeset nvidia_uvm nvidia; do [ ! -e /sys/module/$m ] || rmmod $m; done; "
PREPARE = """
sed -i -E 's/^((deb|Components:)( .*)?) main$/\\1 main contrib non-free non-free-firmware/' /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null
apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 --no-install-recommends install dkms gcc make linux-headers-$(uname -r)
"""  # fmt: skip
TRACES = """
ls -d /usr/bin/nvidia* /usr/lib/x86_64-linux-gnu/lib*nvidia* /usr/lib/x86_64-linux-gnu/libcuda* /usr/src/nvidia* /var/lib/nvidia \
  /var/lib/dkms/nvidia/* /lib/firmware/nvidia /usr/share/doc/NVIDIA* /var/log/nvidia* /var/tmp/gpu-ready* /root/gpu-ready* \
  /tmp/selfgz* /var/lib/gpu-ready/runfile-pending /lib/modules/*/kernel/drivers/video/nvidia* 2>/dev/null; cat /var/lib/nvidia/log
find /lib/modules -name 'nvidia*.ko*' | sort | xargs -r md5sum
"""  # fmt: skip


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("runfile")
    fleet.up()
    for host in hosts_of("runfile"):
        fleet.ssh(host, PREPARE)
        fleet.ssh(host, "nvidia-uninstall --silent; rm -rf /var/lib/gpu-ready", check=False)
    return fleet


@pytest.fixture
def broken_mirror(fleet: Fleet) -> Iterator[Any]:
    """Make the vendor mirror answer wrongly until the end of the test."""
    yield fleet.set_mirror_rules
    fleet.set_mirror_rules(None)


def url(version: str) -> str:
    return f"https://download.nvidia.com/XFree86/Linux-x86_64/{version}/NVIDIA-Linux-x86_64-{version}.run"


def request(version: str, flavour: str = "open", **more: Any) -> dict[str, Any]:
    return {"source": url(version), "sha256_url": f"{url(version)}.sha256sum", "version": version, "flavour": flavour} | more  # fmt: skip


def module(fleet: Fleet, host: str, arguments: dict[str, Any], *options: str) -> dict[str, Any]:
    """Run gpu_driver_runfile on a host; return what it returned."""
    argv = [
        str(VENV / "ansible"),
        "-i",
        str(fleet.inventory),
        host,
        "-m",
        "gpu_ready.nodes.gpu_driver_runfile",
        "-a",
        json.dumps(arguments),
    ]
    done = subprocess.run(
        [*argv, *options], capture_output=True, text=True, timeout=2700, cwd=ROOT, check=False, stdin=subprocess.DEVNULL,
        env=environment() | {"ANSIBLE_CALLBACK_RESULT_FORMAT": "json", "ANSIBLE_NOCOLOR": "1"},
    )  # fmt: skip
    print(done.stdout[-4000:], done.stderr[-2000:])
    found = re.search(rf"^{host} \| \w+!? => (\{{.*^\}})", done.stdout, re.MULTILINE | re.DOTALL)
    assert found, done.stdout + done.stderr
    return dict(json.loads(found[1]))


def traces(fleet: Fleet, host: str) -> str:
    """All files of a driver on a host."""
    return fleet.ssh(host, TRACES, check=False)


def driver(fleet: Fleet, host: str) -> str:
    """Reload the installed module; return version, flavour and GPUs as the host reports them."""
    fleet.ssh(host, UNLOAD + "modprobe nvidia && modprobe nvidia-uvm && nvidia-modprobe -u -c=0")
    return fleet.ssh(
        host, "cat /proc/driver/nvidia/version; nvidia-smi --query-gpu=driver_version --format=csv,noheader"
    )


def test_check_mode_shows_what_would_change_and_changes_nothing(fleet: Fleet) -> None:
    before = traces(fleet, A)
    answer = module(fleet, A, request(OLD), "--check")
    assert answer["changed"] and answer["missing"] == [f"the .run driver {OLD}"] and answer["version"] is None
    assert traces(fleet, A) == before


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sha256": "0" * 64}, f"{url(OLD)} has sha256"),
        ({"kernels": ["9.9.9"]}, "headers of the kernel 9.9.9 are missing"),
        *(
            pytest.param(*case, marks=pytest.mark.long)
            for case in (
                ({"sha256_url": url(OLD)}, "is longer than|has no sha256"),
                ({"source": url(OLD).replace("https:", "http:"), "sha256_url": ""}, "cannot be verified"),
                ({"source": url("580.1.1"), "sha256": "0" * 64}, "the server answered 404"),
                (
                    {"source": url(NEW), "sha256_url": f"{url(NEW)}.sha256sum"},
                    f"contains the driver {NEW} .*expected {OLD}",
                ),
            )
        ),
    ],
)
def test_a_wrong_file_or_checksum_leaves_everything_as_it_was(fleet: Fleet, change: dict[str, Any], words: str) -> None:
    before = traces(fleet, A)
    answer = module(fleet, A, request(OLD) | change)
    assert re.search(words, answer["msg"])
    assert traces(fleet, A) == before


@pytest.mark.long
def test_a_cut_off_download_and_a_damaged_one_leave_everything_as_it_was(fleet: Fleet, broken_mirror: Any) -> None:
    before = traces(fleet, A)
    broken_mirror({f"*{OLD}.run": {"truncate": 20000}})
    assert "could not be fetched: " in module(fleet, A, request(OLD))["msg"]
    broken_mirror({f"*{OLD}.run": {"corrupt": True}})
    assert "has sha256" in module(fleet, A, request(OLD))["msg"]
    assert traces(fleet, A) == before


def test_install_and_a_second_run_changes_nothing(fleet: Fleet) -> None:
    answer = module(fleet, A, request(OLD))
    assert answer["changed"] and answer["version"] == OLD
    second = module(fleet, A, request(OLD))
    assert not second["changed"] and second["missing"] == []
    found = driver(fleet, A)
    assert f"Open Kernel Module for x86_64  {OLD}" in found and found.count(f"\n{OLD}") == 2
    assert "installed" in fleet.ssh(A, f"dkms status nvidia/{OLD}")
    left = traces(fleet, A)
    assert "gpu-ready-runfile" not in left and "selfgz" not in left and "pending" not in left


def test_another_version_replaces_the_one_in_use(fleet: Fleet) -> None:
    fleet.ssh(A, HOLD)  # a user of the GPUs
    answer = module(fleet, A, request(NEW))
    assert answer["changed"] and answer["version"] == NEW
    left = traces(fleet, A)
    assert OLD not in left and f"nvidia-{NEW}" in left
    assert OLD in fleet.ssh(A, "cat /sys/module/nvidia/version")
    fleet.ssh(A, RELEASE)
    assert NEW in driver(fleet, A)
    assert not module(fleet, A, request(NEW))["changed"]


@pytest.mark.long
def test_another_flavour_of_the_same_version(fleet: Fleet) -> None:
    answer = module(fleet, A, request(NEW, "proprietary"))
    assert answer["changed"] and "the proprietary module in place of the open one" in answer["missing"][0]
    assert f"x86_64 Kernel Module  {NEW}" in driver(fleet, A)
    assert module(fleet, A, request(NEW))["changed"]


@pytest.mark.long
def test_a_further_kernel_gets_one_build_and_no_download(fleet: Fleet) -> None:
    running = fleet.ssh(A, "uname -r").strip()
    other = running.replace("6.1.0-", "6.1.0-9")
    fleet.ssh(A, f"mkdir -p /lib/modules/{other}/kernel; cp -P /lib/modules/{running}/build /lib/modules/{running}/modules.[ob]* /lib/modules/{other}/")  # fmt: skip
    try:
        answer = module(fleet, A, request(NEW, kernels=[running, other], source="/absent"))
        assert answer["changed"] and answer["missing"] == [f"the module for {other}"] and not answer["needs_file"]
        assert not module(fleet, A, request(NEW, kernels=[running, other]))["changed"]
    finally:
        fleet.ssh(A, f"dkms uninstall nvidia/{NEW} -k {other}; rm -rf /lib/modules/{other}", check=False)


@pytest.mark.long
def test_a_run_that_was_cut_off_is_repaired_by_the_next(fleet: Fleet) -> None:
    answer = module(fleet, A, request(OLD, install_timeout=2))
    assert "ended with 124" in answer["msg"]
    repaired = module(fleet, A, request(OLD))
    assert repaired["changed"] and repaired["version"] == OLD
    assert not module(fleet, A, request(OLD))["changed"]
    assert OLD in driver(fleet, A)


@pytest.mark.long
def test_tmp_mounted_noexec(fleet: Fleet) -> None:
    fleet.ssh(A, "for f in /tmp /var/tmp; do mount -t tmpfs -o noexec,size=50m none $f; done")
    try:
        assert module(fleet, A, request(NEW))["version"] == NEW
    finally:
        fleet.ssh(A, "umount /tmp /var/tmp")


@pytest.mark.long
def test_message_of_a_missing_compiler(fleet: Fleet) -> None:
    before = traces(fleet, A)
    fleet.ssh(A, "mv /usr/bin/make /usr/bin/make.away")
    try:
        assert "needs make to build its kernel modules" in module(fleet, A, request(OLD))["msg"]
    finally:
        fleet.ssh(A, "mv /usr/bin/make.away /usr/bin/make")
    assert traces(fleet, A) == before


def test_a_module_that_does_not_compile_is_reported_with_its_cause_and_the_old_driver_stays(fleet: Fleet) -> None:
    before = traces(fleet, A)
    fleet.ssh(A, "printf '#!/bin/sh\\necho \"nv.c:1:1: error: implicit declaration of function foo\"\\nexit 2\\n' >/usr/local/bin/make; chmod 755 /usr/local/bin/make")  # fmt: skip
    try:
        words = module(fleet, A, request(OLD))["msg"]
    finally:
        fleet.ssh(A, "rm /usr/local/bin/make")
    assert "implicit declaration" in words and "newer driver branch" in words
    assert f"the previous driver {NEW} is still installed" in words
    drop = re.compile(r"^/var/log/.*\n", re.MULTILINE)
    assert drop.sub("", traces(fleet, A)) == drop.sub("", before)


@pytest.mark.long
def test_removal_leaves_nothing(fleet: Fleet) -> None:
    fleet.ssh(A, UNLOAD)
    assert module(fleet, A, {"state": "absent"}, "--check")["changed"]
    answer = module(fleet, A, {"state": "absent"})
    assert answer["changed"] and answer["version"] is None and answer["removed"]
    assert traces(fleet, A).strip() == ""
    assert "runfile" not in fleet.ssh(A, "cat /var/lib/gpu-ready/manifest.json")
    assert not module(fleet, A, {"state": "absent"})["changed"]


@pytest.mark.long
def test_nouveau_on_the_gpu_stops_an_old_installer_and_not_a_new_one(fleet: Fleet) -> None:
    assert "nouveau" in fleet.ssh(B, "lspci -nnk")
    words = module(fleet, B, request(LEGACY, "proprietary"))["msg"]
    assert "nouveau drives the GPU" in words and "Reboot" in words
    assert module(fleet, B, request(OLD, "proprietary"))["version"] == OLD
    fleet.ssh(B, "rmmod nouveau")
    assert f"x86_64 Kernel Module  {OLD}" in driver(fleet, B)


@pytest.mark.long
def test_an_old_installer_does_not_replace_a_driver_in_use(fleet: Fleet) -> None:
    fleet.ssh(B, HOLD)
    words = module(fleet, B, request(LEGACY, "proprietary"))["msg"]
    assert "nvidia-persistenced" in words and "uses the loaded NVIDIA driver" in words
    fleet.ssh(B, RELEASE + UNLOAD)
    assert "no open kernel modules" in module(fleet, B, request(LEGACY))["msg"]
    assert module(fleet, B, request(LEGACY, "proprietary"))["version"] == LEGACY
    assert LEGACY in driver(fleet, B)


@pytest.mark.long
def test_the_driver_of_somebody_elses_installer_is_replaced_only_when_allowed(fleet: Fleet) -> None:
    fleet.ssh(B, "rm -rf /var/lib/gpu-ready")  # now it does not belong to gpu-ready
    words = module(fleet, B, request(OLD, "proprietary"))["msg"]
    assert "outside of gpu-ready" in words and LEGACY in words and "nvidia_driver_replace_foreign" in words
    answer = module(fleet, B, request(OLD, "proprietary", uninstall="/usr/bin/nvidia-uninstall"))
    assert answer["version"] == OLD and LEGACY not in traces(fleet, B)


@pytest.mark.long
def test_an_installer_is_refused_over_packages(fleet: Fleet) -> None:
    fleet.ssh(A, "DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install nvidia-smi")
    before = traces(fleet, A)
    for options in ([], ["--check"]):
        words = module(fleet, A, request(OLD, "proprietary"), *options)["msg"]
        assert "belongs to packages" in words and "nvidia-smi" in words
    assert traces(fleet, A) == before
    fleet.ssh(A, "DEBIAN_FRONTEND=noninteractive apt-get -qq -y purge nvidia-smi && apt-get -qq -y autoremove --purge")


# ---- through site.yml -----------------------------------------------------------------------------------------------

SMALL = {"cuda_toolkit_source": "none", "cudnn_source": "none"}


def test_a_node_with_an_installer_from_the_server(fleet: Fleet) -> None:
    fleet.ssh(A, UNLOAD + "rm -rf /var/lib/gpu-ready; [ ! -e /usr/bin/nvidia-uninstall ] || nvidia-uninstall --silent")
    first = fleet.play(
        "--limit",
        A,
        extra=SMALL | {"nvidia_driver_version": OLD},
        holds=["nvidia_driver.blacklist_nouveau", "nvidia_driver.runfile", "nvidia_driver.activate"],
    )
    assert first.rc == 0, first.failures(A)
    assert "nvidia_driver.runfile" in first.steps(A) and first.changed_steps(A) == first.steps(A)
    assert OLD in fleet.ssh(A, "nvidia-smi --query-gpu=driver_version --format=csv,noheader")


@pytest.mark.long
def test_a_second_run_with_an_installer_changes_nothing(fleet: Fleet) -> None:
    second = fleet.play("--limit", A, extra=SMALL | {"nvidia_driver_version": OLD})
    assert second.rc == 0 and second.changed(A) == [] and second.steps(A) == []


@pytest.mark.long
def test_an_upgrade_with_an_installer_from_the_control_node(fleet: Fleet, tmp_path: Path) -> None:
    file = tmp_path / f"NVIDIA-Linux-x86_64-{NEW}.run"
    served = url(NEW).replace("https:/", paths.MIRROR_URL)  # this machine does not have the lab's names
    file.write_bytes(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(served, timeout=60).read())
    settings = SMALL | {"nvidia_driver_runfile": str(file)}
    upgrade = fleet.play("--limit", A, extra=settings)
    assert upgrade.rc == 0, upgrade.failures(A)
    assert upgrade.changed_steps(A) == upgrade.steps(A)
    assert NEW in fleet.ssh(A, "cat /sys/module/nvidia/version")
    assert "installer.run" not in fleet.ssh(A, "ls /var/lib/gpu-ready")
    assert fleet.play("--limit", A, extra=settings).changed(A) == []


def test_uninstall_of_an_installers_driver_leaves_nothing(fleet: Fleet) -> None:
    back = fleet.play("--limit", A, playbook="playbooks/uninstall.yml")
    assert back.rc == 0, back.failures(A)
    assert traces(fleet, A).strip() == ""


@pytest.mark.long
def test_from_an_installer_to_packages_and_back_only_when_allowed(fleet: Fleet) -> None:
    fleet.ssh(B, UNLOAD)
    module(fleet, B, {"state": "absent"})
    fleet.ssh(B, UNLOAD + "rm -rf /var/lib/gpu-ready; [ ! -e /usr/bin/nvidia-uninstall ] || nvidia-uninstall --silent")
    settings = SMALL | {"gpu_ready_reboot_ok": True}
    assert fleet.play("--limit", B, extra=settings).rc == 0
    packages = settings | {"nvidia_driver_source": "cuda_repo"}
    refused = fleet.play("--limit", B, extra=packages)
    assert refused.rc != 0 and "nvidia_driver_replace_foreign" in refused.failures(B) and refused.changed(B) == []
    moved = fleet.play("--limit", B, extra=packages | {"nvidia_driver_replace_foreign": True})
    assert moved.rc == 0, moved.failures(B)
    assert "nvidia-uninstall" not in traces(fleet, B) and "runfile" not in fleet.ssh(
        B, "cat /var/lib/gpu-ready/manifest.json"
    )
    back = fleet.play(
        "--limit",
        B,
        extra=settings | {"nvidia_driver_replace_foreign": True},
        holds=["nvidia_driver.remove_packages"],
    )
    assert back.rc == 0, back.failures(B)
    assert "nvidia-driver-cuda" not in fleet.ssh(
        B, "dpkg-query -W -f '${db:Status-Status} ${Package}\\n' | grep ^installed"
    )
    assert fleet.play("--limit", B, extra=settings).changed(B) == []
