"""Facts that are collected from a host: packages, kernels, Secure Boot, and the driver in its three places."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import pending, records
from plugins.module_utils.gpu_ready.base.host import Host, Result
from plugins.module_utils.gpu_ready.facts import apt, base, driver, model, public, work
from plugins.module_utils.gpu_ready.facts import rpm as rpm_facts
from plugins.module_utils.gpu_ready.facts.model import (
    GpuProcess,
    ModuleFacts,
    NouveauFacts,
    OtherModule,
    PackageFacts,
    SecureBootFacts,
)
from plugins.module_utils.gpu_ready.hardware import pci
from plugins.module_utils.gpu_ready.packaging import rpm
from plugins.plugin_utils.gpu_ready.completion import complete
from tests.unit.recorded import RecordedHost

KERNEL = "6.1.0-50-amd64"
DEBIAN = 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'
PROPRIETARY = "filename: x\nversion:        535.261.03\nlicense:        NVIDIA\nsigner:         DKMS key\n"
STATUS = """\
Package: nvidia-kernel-dkms
Status: hold ok installed
Architecture: amd64
Version: 535.261.03-1

Package: libcuda1
Status: install ok unpacked
Version: 535.261.03-1

Package: removed
Status: deinstall ok config-files
Version: 1

Package: docker.io
Status: install ok installed
Version: 20.10.24+dfsg1-1
"""


def function(address: str, device: str, kind: str, **links: str) -> tuple[dict[str, str], dict[str, str]]:
    directory = f"/sys/bus/pci/devices/{address}/"
    files = {"vendor": "0x10de", "device": "0x" + device, "class": "0x" + kind, "revision": "0xa1"}
    files |= {"subsystem_vendor": "0x10de", "subsystem_device": "0x11d9"}
    return {directory + name: text + "\n" for name, text in files.items()}, {directory + k: v for k, v in links.items()}


def p40(**more: Any) -> RecordedHost:
    files = {
        "/etc/os-release": DEBIAN,
        "/proc/sys/kernel/osrelease": KERNEL + "\n",
        "/proc/sys/kernel/random/boot_id": "b0\n",
        "/etc/apt/sources.list": "deb http://deb.example/debian bookworm main\n",
        f"/lib/modules/{KERNEL}/kernel/fs/x.ko": "",
        f"/boot/vmlinuz-{KERNEL}": "",
    }
    for address in ("0000:3b:00.0", "0000:af:00.0"):
        files |= function(address, "1b38", "030200")[0]
    files |= more.pop("files", {})
    return RecordedHost(files=files, **more)


def test_a_bare_debian_12_host_with_two_p40() -> None:
    facts = complete.collect_facts(p40())
    seen = facts.base
    assert (seen.distro, seen.boot_id, seen.kernel.running) == ("debian12", "b0", KERNEL)
    assert seen.kernel.headers == {KERNEL: False}
    assert [gpu.device for gpu in seen.gpus] == ["1b38", "1b38"]
    assert facts.driver.origin is None


def test_a_host_that_boots_an_image_is_recognised() -> None:
    assert complete.collect_facts(p40()).base.image is False
    assert complete.collect_facts(p40(files={"/run/ostree-booted": ""})).base.image is True


def test_mig_instances_are_read_from_the_drivers_capabilities() -> None:
    """A GPU that can be divided and is not has an empty directory; mig/ holds the capabilities of all GPUs."""
    loaded = {"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  x\n"}
    root = "/proc/driver/nvidia/capabilities/"
    whole = [root + "gpu0/mig", root + "mig"]
    assert complete.collect_facts(p40(files=loaded, directories=whole)).driver.mig_instances == []
    parts = {root + "gpu1/mig/gi1/access": "", root + "gpu1/mig/gi1/ci0/access": "", root + "gpu1/mig/gi2/access": ""}
    seen = complete.collect_facts(p40(files=loaded | parts | {root + "mig/config": ""}, directories=whole))
    assert seen.driver.mig_instances == ["gpu1/gi1", "gpu1/gi2"]


def test_other_functions_than_gpus_do_not_count() -> None:
    files = function("0000:3b:00.1", "10ef", "040300")[0] | function("0000:05:00.0", "22a3", "068000")[0]
    seen = complete.collect_facts(p40(files=files)).base
    assert len(seen.gpus) == 2
    assert [switch.address for switch in seen.nvswitches] == ["0000:05:00.0"]
    assert [other.address for other in seen.other_functions] == ["0000:3b:00.1"]


def test_dpkg_is_read_from_its_file() -> None:
    assert apt.dpkg_packages(RecordedHost(files={"/var/lib/dpkg/status": STATUS})) == PackageFacts(
        installed={"nvidia-kernel-dkms": "535.261.03-1", "docker.io": "20.10.24+dfsg1-1"},
        held=["nvidia-kernel-dkms"],
        broken=["libcuda1"],
    )
    assert apt.dpkg_packages(RecordedHost()) == PackageFacts()


def test_the_journal_of_a_killed_dpkg_counts() -> None:
    """dpkg writes its status file late: only the journal shows a run that was killed while it unpacked."""
    journal = "Package: docker.io\nStatus: install ok unpacked\nArchitecture: amd64\nVersion: 26.1.5\n"
    before = "Package: runc\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.1\n"
    files = {
        "/var/lib/dpkg/status": before,
        "/var/lib/dpkg/updates/0001": journal,
        "/var/lib/dpkg/updates/tmp.i": "Pack",
    }
    found = apt.dpkg_packages(RecordedHost(files=files))
    assert found == PackageFacts(installed={"runc": "1.1"}, broken=["docker.io"])
    files["/var/lib/dpkg/updates/0001"] = journal.replace("unpacked", "installed")
    assert apt.dpkg_packages(RecordedHost(files=files)).broken == ["dpkg"]


@pytest.mark.parametrize("lock", ["/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock"])
def test_a_package_run_in_progress_is_no_interrupted_one(lock: str) -> None:
    """The first boot of a cloud image: unattended-upgrades is in the middle of its packages."""
    files = {
        "/var/lib/dpkg/status": STATUS,
        "/var/lib/dpkg/updates/0001": STATUS,
        "/proc/812/comm": "unattended-upgr\n",
    }
    found = apt.dpkg_packages(RecordedHost(files=files, locks={lock: 812}))
    assert (found.broken, found.in_progress) == ([], "process 812 (unattended-upgr)")
    hidden = apt.dpkg_packages(RecordedHost(files=files, locks={lock: 0}))
    assert (hidden.broken, hidden.in_progress) == ([], "a process outside of this container")


@pytest.mark.parametrize(
    ("files", "locks", "holder"),
    [
        ({"/var/lib/dnf/rpmdb_lock.pid": "77\n", "/proc/77/cmdline": "/usr/bin/dnf\0upgrade"}, {}, "process 77 (dnf)"),
        ({}, {"/var/lib/rpm/.rpm.lock": 77}, "process 77 (dnf)"),
        ({"/var/cache/dnf/metadata_lock.pid": "77\n", "/proc/77/cmdline": "/usr/bin/dnf\0makecache"}, {}, ""),
        ({"/var/lib/dnf/rpmdb_lock.pid": "77\n"}, {}, ""),
    ],
    ids=["dnf", "rpm", "metadata only", "left by a killed dnf"],
)
def test_a_transaction_of_rpm_in_progress_is_no_interrupted_one(
    files: dict[str, str], locks: dict[str, int], holder: str
) -> None:
    """A running upgrade has a package in two versions, as an interrupted one."""
    rows = "".join(f"glibc\t(none)\t2.34\t{release}.el9\tx86_64\n" for release in (1, 2))
    host = RecordedHost(
        {"/proc/77/comm": "dnf\n", **files}, programs={tuple(rpm.QUERY): Result(0, rows, "")}, locks=locks
    )
    found = rpm_facts.rpm_packages(host)
    assert (found.broken, found.in_progress) == ([] if holder else ["glibc"], holder)


def test_who_holds_a_lock_is_asked_without_taking_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    taken = f"import fcntl, time; f = open({str(path)!r}, 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-uc", taken], stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline()
        assert Host().lock_holder(str(path)) == process.pid
        process.kill()
    assert Host().lock_holder(str(path)) is None
    assert Host().lock_holder(str(tmp_path / "absent")) is None


DKMS = "/var/lib/dkms/"
FAILED = "DKMS make.log for evdi-1.9.1 for kernel 6.1.0-50-amd64 (x86_64)\nThu Nov 26\nx.c:1: error: y\n"
NEWER_FAILED = FAILED.replace("DKMS make.log for evdi-", "DKMS (dkms-3.2.2) make.log for evdi/")
AUTO, MANUAL = 'PACKAGE_NAME="evdi"\nAUTOINSTALL="yes"\n', 'PACKAGE_NAME="evdi"\n#AUTOINSTALL="yes"\n'


@pytest.mark.parametrize(
    ("files", "links", "expected"),
    [
        ({"evdi/1.9.1/source/dkms.conf": AUTO}, {}, [OtherModule("evdi", "1.9.1")]),
        ({"evdi/1.9.1/source/dkms.conf": MANUAL}, {}, []),
        ({"evdi/1.9.1/6.1.0-50-amd64/x86_64/log/make.log": FAILED}, {}, []),
        (
            {"evdi/1.9.1/source/dkms.conf": AUTO, "evdi/1.10.0/source/dkms.conf": AUTO},
            {"evdi/kernel-6.1.0-49-amd64-x86_64": "1.9.1/6.1.0-49-amd64/x86_64"},
            [OtherModule("evdi", "1.10.0")],
        ),
        (
            {"zfs/2.1.11/source/dkms.conf": "AUTOINSTALL=yes\n"},
            {"zfs/kernel-6.1.0-49-amd64-x86_64": DKMS + "zfs/2.1.11/6.1.0-49-amd64/x86_64"},
            [OtherModule("zfs", "2.1.11", ["6.1.0-49-amd64"])],
        ),
        *[
            (
                {"evdi/1.9.1/source/dkms.conf": AUTO, "evdi/1.9.1/build/make.log": log},
                {},
                [OtherModule("evdi", "1.9.1", [], "6.1.0-50-amd64")],
            )
            for log in (FAILED, NEWER_FAILED)
        ],
        ({"nvidia-current/535.261.03/source/dkms.conf": AUTO, "mok.key": "", "dkms_dbversion": "2.0\n"}, {}, []),
        ({"nvidia-fs/2.20/source/dkms.conf": AUTO}, {}, [OtherModule("nvidia-fs", "2.20")]),
    ],
    ids=[
        "added", "by hand", "no source", "the newest version", "installed", "failed", "failed with dkms 3.2", "the driver",
        "NVIDIA's other modules",
    ],
)  # fmt: skip
def test_modules_of_others_that_dkms_builds_by_itself(
    files: dict[str, str], links: dict[str, str], expected: list[OtherModule]
) -> None:
    host = p40(files={DKMS + path: text for path, text in files.items()})
    host.links.update({DKMS + path: target for path, target in links.items()})
    assert complete.collect_facts(host).driver.other_modules == expected


@pytest.mark.parametrize(
    "place",
    [
        "updates/dkms/nvidia.ko",
        "updates/dkms/nvidia-current.ko.xz",
        "updates/dkms/nvidia-current-open.ko",
        "extra/nvidia.ko.zst",
        "weak-updates/nvidia/nvidia.ko.gz",
        "kernel/drivers/video/nvidia.ko",
        "updates/dkms/nvidia-tesla-470.ko",
    ],
)
def test_the_module_is_found_in_every_directory(place: str) -> None:
    path = f"/lib/modules/{KERNEL}/{place}"
    host = p40(files={path: "ELF"}, programs={("modinfo", path): Result(0, PROPRIETARY, "")})
    disk = complete.collect_facts(host).driver.on_disk
    assert disk and (disk.path, disk.version, disk.flavour) == (path, "535.261.03", "proprietary")


@pytest.mark.parametrize(
    ("main", "companion", "output"),
    [("", "ELF", ""), ("ELF", "", PROPRIETARY), ("EL", "ELF", "filename: x\n")],
    ids=["empty", "one beside it", "cut off"],
)
def test_an_empty_module_after_a_power_cut_is_none(main: str, companion: str, output: str) -> None:
    directory = f"/lib/modules/{KERNEL}/updates/dkms/"
    files = {directory + "nvidia.ko": main, directory + "nvidia-uvm.ko": companion}
    host = p40(files=files, programs={("modinfo", directory + "nvidia.ko"): Result(0, output, "")})
    assert complete.collect_facts(host).driver.on_disk is None


def test_other_modules_are_not_the_driver() -> None:
    directory = f"/lib/modules/{KERNEL}/updates/dkms/"
    files = {
        directory + name: "" for name in ("nvidia-uvm.ko", "nvidia-current-modeset.ko", "nvidia-drm.ko", "nvidiafb.ko")
    }
    assert driver.find_modules(p40(files=files), KERNEL) == []


def test_loaded_module_and_user_space_are_separate_facts() -> None:
    banner = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n"
    library = "/usr/lib/x86_64-linux-gnu/nvidia/current/"
    host = p40(
        files={
            "/proc/driver/nvidia/version": banner,
            "/sys/module/nvidia/version": "535.104.05\n",
            library + "libcuda.so.535.261.03": "",
            library + "libnvidia-ml.so.535.261.03": "",
        }
    )
    seen = complete.collect_facts(host).driver
    assert seen.loaded == ModuleFacts("535.104.05", "proprietary")
    assert seen.userspace == ["535.261.03"]


@pytest.mark.parametrize(
    "directory",
    ["/usr/lib/x86_64-linux-gnu/", "/usr/lib/x86_64-linux-gnu/nvidia/", "/usr/lib64/", "/usr/lib64/nvidia/"],
)
def test_user_space_is_found_in_every_directory(directory: str) -> None:
    host = p40(files={directory + "libnvidia-ml.so.390.157": ""})
    assert complete.collect_facts(host).driver.userspace == ["390.157"]


@pytest.mark.parametrize(
    ("own_kernel", "managed", "on_disk", "userspace"),
    [(False, "kernel_outside", "580.159.04", ["580.159.04"]), (True, None, None, [])],
)
def test_a_driver_from_outside_counts_only_without_a_kernel_of_the_host(
    own_kernel: bool, managed: str | None, on_disk: str | None, userspace: list[str]
) -> None:
    host = p40(
        files={
            "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release\n",
            "/usr/local/nvidia/lib64/libcuda.so.580.159.04": "",
        }
    )
    if not own_kernel:
        del host.files[f"/lib/modules/{KERNEL}/kernel/fs/x.ko"]
    facts = complete.collect_facts(host)
    assert (facts.base.managed_by, facts.driver.userspace) == (managed, userspace)
    assert (facts.driver.on_disk.version if facts.driver.on_disk else None) == on_disk


def test_without_a_loaded_driver_a_system_without_kernel_modules_is_nobody_elses() -> None:
    host = p40()
    del host.files[f"/lib/modules/{KERNEL}/kernel/fs/x.ko"]
    assert complete.collect_facts(host).base.managed_by is None


def test_secure_boot_and_the_enrolled_key() -> None:
    key = b"DER of the key"
    files = {base.SECURE_BOOT: b"\x06\0\0\0\x01", base.DKMS_KEY: key}
    row = SecureBootFacts(on=True, key=base.DKMS_KEY, certificate=base.DKMS_KEY)
    assert complete.collect_facts(p40(files=files)).base.secure_boot == row
    files[base.SHIM_KEYS] = b"\x06\0\0\0list" + key
    assert complete.collect_facts(p40(files=files)).base.secure_boot.enrolled is True
    assert complete.collect_facts(p40()).base.secure_boot.on is False


EFI_WITHOUT_VARIABLES = {"/sys/firmware/efi/fw_platform_size": "64\n"}
"""A real-time kernel, or efi=noruntime: booted by EFI, and efivarfs cannot be mounted."""
UNLOCKED, LOCKED = "[none] integrity confidentiality\n", "none [integrity] confidentiality\n"


@pytest.mark.parametrize(
    ("files", "by"),
    [
        ({}, ""),
        ({base.LOCKDOWN: UNLOCKED, base.SIGNATURES_ENFORCED: "N\n"}, ""),
        (EFI_WITHOUT_VARIABLES | {base.LOCKDOWN: LOCKED}, "kernel"),
        (EFI_WITHOUT_VARIABLES | {base.LOCKDOWN: "none integrity [confidentiality]\n"}, "kernel"),
        (EFI_WITHOUT_VARIABLES | {base.LOCKDOWN: UNLOCKED}, ""),
        (EFI_WITHOUT_VARIABLES | {base.SIGNATURES_ENFORCED: "Y\n"}, "kernel"),
        (EFI_WITHOUT_VARIABLES, "unknown"),
        # Firmware without Secure Boot has other variables, but not this one.
        ({base.EFIVARS + "/BootCurrent-8be4df61-93ca-11d2-aa0d-00e098032b8c": b"\x06\0\0\0\1\0"}, ""),
        ({base.SECURE_BOOT: b"\x06\0\0\0\0"}, ""),
        ({base.SECURE_BOOT: b"\x06\0\0\0\0", base.LOCKDOWN: LOCKED}, "kernel"),
        ({base.SECURE_BOOT: b"\x06\0\0\0\1", base.LOCKDOWN: LOCKED}, "firmware"),
        # Switched off in shim (mokutil --disable-validation).
        ({base.SECURE_BOOT: b"\x06\0\0\0\1", base.SHIM_STATE: b"\x06\0\0\0\1", base.LOCKDOWN: UNLOCKED}, ""),
    ],
)
def test_what_makes_the_kernel_load_signed_modules_only(files: dict[str, str | bytes], by: str) -> None:
    found = complete.collect_facts(p40(files=dict(files))).base.secure_boot
    assert (found.on, found.by) == (bool(by), by or "firmware")


@pytest.mark.parametrize(
    ("system", "enrolled"),
    [("ID=debian", True), ("ID=ubuntu", True), ('ID="rocky"', True), ("ID=fedora", True), ("ID=amzn", False)],
)
def test_a_key_in_the_firmwares_own_database_counts_where_the_kernel_asks_it(system: str, enrolled: bool) -> None:
    files = {base.SECURE_BOOT: b"\x06\0\0\0\x01", base.DKMS_KEY: "DER", base.UBUNTU_KEY: "DER"}
    files |= {base.FIRMWARE_KEYS: b"\x27\0\0\0list DER", "/etc/os-release": system + "\n"}
    assert complete.collect_facts(p40(files=files)).base.secure_boot.enrolled is enrolled


@pytest.mark.parametrize(
    ("system", "text", "certificate"),
    [
        ("ID=ubuntu", "", base.UBUNTU_KEY),
        ('ID=pop\nID_LIKE="ubuntu debian"', "", base.UBUNTU_KEY),
        ("ID=debian", "", base.DKMS_KEY),
        # Only a signing key makes Ubuntu's DKMS read the settings; without a configured certificate it uses its own.
        ("ID=ubuntu", "mok_certificate=/site.der", base.UBUNTU_KEY),
        ("ID=ubuntu", "mok_signing_key=/site.key\nmok_certificate=/site.der", "/site.der"),
        ("ID=ubuntu", "mok_signing_key=/site.key", base.DKMS_KEY),
        ("ID=debian", "mok_signing_key=pkcs11:token=x", base.DKMS_KEY),
    ],
)
def test_certificate_that_dkms_signs_with(system: str, text: str, certificate: str) -> None:
    """Both exist: what Debian's DKMS made, and what Ubuntu's installer enrolled."""
    files: dict[str, str | bytes] = {base.SECURE_BOOT: b"\x06\0\0\0\x01", "/etc/os-release": system + "\n"}
    files |= {path: path for path in (base.DKMS_KEY, base.UBUNTU_KEY, "/site.der")}
    files |= {"/etc/dkms/framework.conf": text + "\n", base.SHIM_KEYS: b"\x06\0\0\0 " + certificate.encode()}
    row = SecureBootFacts(on=True, key=certificate, certificate=certificate, enrolled=True)
    assert complete.collect_facts(p40(files=files)).base.secure_boot == row


PEM = "text before\n-----BEGIN CERTIFICATE-----\nREVSIG9mIHRo\nZSBzaXRl\n-----END CERTIFICATE-----\n"


@pytest.mark.parametrize("text", ["DER of the site", PEM])
def test_a_configured_key_of_the_site_is_the_one_that_counts(text: str) -> None:
    """A site that enrolled a key of its own names it to DKMS in framework.conf; the key that DKMS made is not used."""
    files = {
        base.SECURE_BOOT: b"\x06\0\0\0\x01",
        base.SHIM_KEYS: b"\x06\0\0\0list" + b"DER of the site",
        "/var/lib/dkms/mok.pub": "DER of DKMS",
        "/etc/dkms/framework.conf": "# mok_certificate=/no/such\nmok_certificate=/var/lib/dkms/mok.pub\n",
        "/etc/dkms/framework.conf.d/site.conf": 'mok_certificate="/etc/pki/site-mok.pem" # ours\n',
        "/etc/dkms/framework.conf.d/x.bak": "mok_certificate=/no/such\n",
        "/etc/pki/site-mok.pem": text,
    }
    path = "/etc/pki/site-mok.pem"
    assert complete.collect_facts(p40(files=files)).base.secure_boot == SecureBootFacts(True, path, path, enrolled=True)
    del files[path]
    # DKMS creates a configured key that does not exist.
    assert complete.collect_facts(p40(files=files)).base.secure_boot == SecureBootFacts(True, None, path)


def test_keys_beyond_the_size_of_a_firmware_variable_are_found() -> None:
    """shim passes a long list of keys to the kernel in a separate table; the variable has only its start."""
    files = {base.SECURE_BOOT: b"\x06\0\0\0\x01", "/var/lib/dkms/mok.pub": "DER of DKMS"}
    files[base.SHIM_KEYS] = b"\x06\0\0\0list"
    files["/sys/firmware/efi/mok-variables/MokListRT"] = b"list DER of DKMS"
    assert complete.collect_facts(p40(files=files)).base.secure_boot.enrolled is True


def test_nouveau_loaded_bound_and_blacklisted() -> None:
    files, links = function("0000:3b:00.0", "1b38", "030200", driver="../../../../bus/pci/drivers/nouveau")
    files |= {"/sys/module/nouveau/refcnt": "1", "/etc/modprobe.d/x.conf": "# no\nblacklist nouveau\n"}
    seen = complete.collect_facts(p40(files=files, links=links)).base.nouveau
    assert seen == NouveauFacts("nouveau", loaded=True, bound=["0000:3b:00.0"], blacklisted=True)


@pytest.mark.parametrize(
    ("line", "kept"), [("", False), ("blacklist nova_core\n", True), ("blacklist nova-core # Turing\n", True)]
)
def test_the_kernels_other_driver_counts_like_nouveau(line: str, kept: bool) -> None:
    """nova_core drives Turing and newer where a kernel has it (Fedora 44); the directory of its driver is "NovaCore"."""
    files, links = function("0000:3b:00.0", "2330", "030200", driver="../../../../bus/pci/drivers/NovaCore")
    files |= {"/sys/module/nova_core/refcnt": "1", "/etc/modprobe.d/x.conf": "blacklist nouveau\n" + line}
    seen = complete.collect_facts(p40(files=files, links=links)).base.nouveau
    assert seen == NouveauFacts("nova_core", loaded=True, bound=["0000:3b:00.0"], blacklisted=kept)


def test_a_kernel_with_the_other_driver_needs_its_blacklist_beforehand() -> None:
    files = {"/etc/modprobe.d/x.conf": "blacklist nouveau\n"}
    module = f"/lib/modules/{KERNEL}/kernel/drivers/gpu/nova-core/nova_core.ko.xz"
    assert complete.collect_facts(p40(files=files)).base.nouveau.blacklisted is True
    assert complete.collect_facts(p40(files=files | {module: ""})).base.nouveau.blacklisted is False


def test_a_blacklist_missing_in_the_initial_ram_disk_does_not_count() -> None:
    files = {"/etc/modprobe.d/x.conf": "blacklist nouveau\n", pending.PATH: '["update-initramfs", "-u"]\n'}
    assert complete.collect_facts(p40(files=files)).base.nouveau.blacklisted is False


@pytest.mark.parametrize(
    ("text", "member"),
    [(None, False), ("", False), ("# one address a line\n\n", False), ("# the rack\n10.0.0.1\n", True)],
)
def test_a_node_is_in_an_imex_domain_if_its_file_has_addresses(text: str | None, member: bool) -> None:
    host = RecordedHost(files={} if text is None else {driver.IMEX_NODES: text})
    assert driver.imex_facts(host).member == member


def test_the_processes_on_the_device_are_named() -> None:
    host = p40(
        files={"/proc/42/comm": "python3\n", "/proc/43/comm": "cat\n"},
        links={"/proc/42/fd/3": "/dev/nvidia0", "/proc/43/fd/3": "/dev/null"},
    )
    assert work.gpu_processes(host) == [GpuProcess(42, "python3")]


def test_collecting_starts_no_program_on_a_bare_host_and_is_quick() -> None:
    host = p40()
    start = time.process_time()
    complete.collect_facts(host)
    assert host.asked == []
    assert time.process_time() - start < 1


def test_public_facts_have_nothing_private() -> None:
    shown = public.public_json(
        complete.collect_facts(p40(files={"/etc/docker/daemon.json": '{"proxies": {"http-proxy": "u:p@h"}}'}))
    )
    assert "u:p@h" not in repr(shown)
    assert "apt" not in shown


def test_a_virtual_function_is_no_gpu() -> None:
    files, links = function("0000:3b:00.4", "20b2", "030200", physfn="../0000:3b:00.0")
    seen = complete.collect_facts(p40(files=files, links=links)).base
    assert [gpu.address for gpu in seen.gpus] == ["0000:3b:00.0", "0000:af:00.0"]
    assert [other.what for other in seen.other_functions] == ["virtual_function"]


def test_the_next_boot_of_enterprise_linux_is_grubs_saved_entry() -> None:
    images = ["5.14.0-570.el9.x86_64", "5.14.0-687.el9.x86_64"]
    files = {"/boot/vmlinuz-" + name: "" for name in [*images, "0-rescue-0123456789abcdef"]}
    host = RecordedHost(files={**files, "/boot/grub2/grubenv": "# GRUB\nsaved_entry=0123abcd-5.14.0-570.el9.x86_64\n"})
    assert base.kernel_facts(host, images[0]).next_boot == images[0]
    assert base.kernel_facts(RecordedHost(files=files), images[0]).next_boot == images[1]


def test_nvlink_5_switches_are_found_behind_their_bridges() -> None:
    bridge, network = "0000:05:00.0", "0000:1a:00.0"
    files: dict[str, str | bytes] = {
        f"/sys/bus/pci/devices/{bridge}/vpd": b"\x82\x10\x00name SW_MNG x",
        f"/sys/bus/pci/devices/{network}/vpd": b"\x82\x10\x00ConnectX",
    }
    functions = [
        pci.Function(address, "15b3", "1021", "0207", None, None, None, False) for address in (bridge, network)
    ]
    found = base.nvlink5_switches(RecordedHost(files=files), functions)
    assert [(row.address, row.what) for row in found] == [(bridge, "nvlink5")]


UMAD_DEP = "kernel/drivers/infiniband/core/ib_umad.ko.zst: kernel/drivers/infiniband/core/ib_core.ko.zst\n"
DEP = UMAD_DEP + "kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko.zst: kernel/drivers/infiniband/core/ib_core.ko.zst\n"
BUILT_IN = "kernel/drivers/infiniband/core/ib_umad.ko\nkernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, (False, False, False)),
        ({"/lib/modules/6.8.0-1/modules.dep": DEP}, (True, False, False)),
        ({"/lib/modules/6.8.0-1/modules.dep": UMAD_DEP}, (False, False, False)),
        ({"/lib/modules/6.8.0-1/modules.builtin": BUILT_IN}, (True, False, False)),
        ({"/lib/modules/6.8.0-2/modules.dep": DEP}, (False, False, False)),
        ({"/sys/module/ib_umad/refcnt": "0"}, (False, False, False)),
        ({"/sys/module/ib_umad/refcnt": "0", "/sys/module/mlx5_ib/refcnt": "0"}, (False, True, False)),
        ({"/etc/modules-load.d/ib-umad.conf": "ib_umad\n"}, (False, False, True)),
        ({"/usr/lib/modules-load.d/x.conf": "# ib_umad\nib-umad \n"}, (False, False, True)),
        ({"/etc/modules-load.d/x.conf": "# ib_umad\n; ib_umad\nib_umad_x\n"}, (False, False, False)),
        ({"/etc/modules-load.d/x.conf.bak": "ib_umad\n"}, (False, False, False)),
        ({"/etc/rdma/modules/infiniband.conf": "ib_ipoib\nib_umad\n"}, (False, False, True)),
        ({"/etc/modules": "loop\nib_umad\n"}, (False, False, True)),
    ],
)
def test_the_modules_for_nvlink_5_are_found_loaded_and_listed(files: Any, expected: tuple[bool, ...]) -> None:
    assert base.umad(RecordedHost(files=files), "6.8.0-1") == expected


@pytest.mark.parametrize(("device", "read"), [("1b38", False), ("2330", False), ("2901", True), ("3fff", True)])
def test_the_data_of_adapters_is_read_only_where_a_gpu_may_have_nvlink_5(device: str, read: bool) -> None:
    """An HGX node has 8 to 12 adapters, and the kernel reads their data byte by byte."""
    bridge = "/sys/bus/pci/devices/0000:05:00.0/"
    vpd = bridge + "vpd"
    files = {"/etc/os-release": DEBIAN, vpd: "SW_MNG", **function("0000:3b:00.0", device, "030200")[0]}
    files |= {bridge + "vendor": "0x15b3\n", bridge + "device": "0x1021\n", bridge + "class": "0x020700\n"}
    host = RecordedHost(files=files)
    switches = complete.collect_facts(host).base.nvswitches
    assert ([one.address for one in switches], vpd in host.opened) == (["0000:05:00.0"] if read else [], read)


# ---- JSON ----------------------------------------------------------------------------------------------------------


def test_facts_survive_json() -> None:
    facts = complete.collect_facts(p40())
    recorded = json.loads(json.dumps(model.to_json(facts)))
    assert recorded["schema"] == model.SCHEMA
    assert model.from_json(recorded) == facts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 99}, "schema 99 is of another release"),
        ({"schema": None}, "schema None is of another release"),
        ({"driver": {"interrupted": "no"}}, "Facts.driver.interrupted must be"),
        ({"driver": {"colour": "red"}}, "Facts.driver has unknown field colour"),
        ({"base": {}}, "Facts.base has no field"),
    ],
)
def test_recorded_facts_of_another_form_are_refused(change: dict[str, Any], message: str) -> None:
    recorded = json.loads(json.dumps(model.to_json(complete.collect_facts(p40()))))
    with pytest.raises(records.RecordError, match=message):
        model.from_json(recorded | change)
