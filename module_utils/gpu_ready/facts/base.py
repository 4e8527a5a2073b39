"""Facts about the system, kernels, Secure Boot, PCI functions and free disk."""

import binascii
import platform as python_platform
import re
from typing import Dict, List, Optional, Set

from ..base import pending, versions
from ..base.host import Host
from ..check.pci import is_silent
from ..hardware import pci
from ..system import grub, modprobe_files
from ..system.model import OsRelease
from .model import (
    FABRIC_MODULES,
    KERNEL_OUTSIDE,
    BaseFacts,
    FunctionFacts,
    GpuFacts,
    KernelFacts,
    NouveauFacts,
    SecureBootFacts,
    UmadFacts,
)
from .probes import ManagedHost

EFI = "/sys/firmware/efi"
EFIVARS = EFI + "/efivars"
SECURE_BOOT = EFIVARS + "/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
SHIM_STATE = EFIVARS + "/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"
SHIM_KEYS = EFIVARS + "/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23"
SHIM_TABLE = "/sys/firmware/efi/mok-variables/MokListRT"
"""The complete list, where it is too long for a variable (drivers/firmware/efi/mokvar-table.c)."""
FIRMWARE_KEYS = EFIVARS + "/db-d719b2cb-3d3a-4596-a3bc-dad00e67656f"
LOCKDOWN = "/sys/kernel/security/lockdown"
SIGNATURES_ENFORCED = "/sys/module/module/parameters/sig_enforce"
DKMS_CONFIGURATION = "/etc/dkms/framework.conf"
DKMS_KEY = "/var/lib/dkms/mok.pub"
UBUNTU_KEY = "/var/lib/shim-signed/mok/MOK.der"
"""Certificates (DER) that DKMS signs with by default."""
NOVA = "/lib/modules/%s/kernel/drivers/gpu/nova-core"
INITRAMFS_TOOLS = ("update-initramfs", "dracut")
FIRST_OF_BLACKWELL = 0x2900
UNNAMED = "NVIDIA device 10de:%s"
MELLANOX = "15b3"
"""The PCI vendor of the bridges to NVLink 5 switches."""
LOADED = "/proc/driver/nvidia/version"
MODULES_AT_BOOT = ("/etc/modules-load.d", "/run/modules-load.d", "/usr/lib/modules-load.d", "/etc/rdma/modules")
"""Lists of modules: of systemd-modules-load, and of rdma-core, whose udev rules load them with the adapters."""
REBOOT_MARKS = ("/run/reboot-required", "/var/run/reboot-required")
"""Written by packages of Debian and Ubuntu that need a reboot."""
IMAGE = "/run/ostree-booted"
"""Exists where the system is an image (ostree, bootc), whose packages are not changed one by one."""


def collect(host: Host, release: OsRelease, managed: List[ManagedHost]) -> BaseFacts:
    running, architecture = host.uname()
    functions = pci.read_sysfs(host)
    kernels = kernel_facts(host, running)
    nvlink5 = nvlink5_switches(host, functions) if may_have_nvlink5(functions) else []
    return BaseFacts(
        os=release,
        distro=None,
        package_manager=package_manager(host),
        kernel=kernels,
        image=host.exists(IMAGE),
        managed_by=managed_by(host, running, managed),
        arch=architecture,
        python=python_platform.python_version(),
        boot_id=(host.read("/proc/sys/kernel/random/boot_id") or "").strip() or None,
        compiler=host.which("gcc") or host.which("cc"),
        secure_boot=secure_boot(host, release),
        gpus=[gpu(host, function) for function in pci.gpus(functions)],
        nvswitches=[function_facts(function) for function in pci.nvswitches(functions)] + nvlink5,
        umad=umad(host, running) if nvlink5 else None,
        other_functions=other_functions(functions),
        nouveau=nouveau(host, functions, [running, kernels.next_boot]),
        disk={path: host.free(path) for path in ("/", "/usr", "/var", "/boot")},
        reboot_mark=next((path for path in REBOOT_MARKS if host.exists(path)), None),
    )


def managed_by(host: Host, kernel: str, managed: List[ManagedHost]) -> Optional[str]:
    """Return who has the driver of this host instead of gpu-ready, a key of catalog/managed_hosts.yml."""
    for one in managed:
        if any(host.exists(path) for path in one.paths):
            return one.key
        if any(re.search(pattern, host.read(path) or "") for path, pattern in one.texts.items()):
            return one.key
    return KERNEL_OUTSIDE if host.exists(LOADED) and not host.isdir("/lib/modules/" + kernel) else None


def package_manager(host: Host) -> Optional[str]:
    """Return the package manager of a system; None for one that the catalog does not name."""
    # With dnf, yum is another name of it; Azure Linux has tdnf, and dnf where somebody installed it.
    programs = {"apt": "apt-get", "dnf": "dnf", "yum": "yum", "tdnf": "tdnf", "zypper": "zypper"}
    return next((name for name, program in programs.items() if host.which(program)), None)


def initramfs_tools(host: Host) -> List[str]:
    """Return the installed tools for initial RAM disks. A host without its distribution's tool boots without one."""
    return [name for name in INITRAMFS_TOOLS if host.which(name)]


def function_facts(function: pci.Function, what: str = "") -> FunctionFacts:
    return FunctionFacts(function.address, function.device, function.driver, what)


def may_have_nvlink5(functions: List[pci.Function]) -> bool:
    """Return True if a GPU is of Blackwell or newer, by its number. Reading the data of every adapter takes seconds."""
    return any(int(function.device, 16) >= FIRST_OF_BLACKWELL for function in pci.gpus(functions))


def nvlink5_switches(host: Host, functions: List[pci.Function]) -> List[FunctionFacts]:
    """Return the NVLink 5 switches (HGX B200 and newer), which are behind Mellanox bridges and have no NVIDIA function.

    Such a bridge has ``SW_MNG`` in its vital product data (NVIDIA's fabric manager guide). It is read from the PCI
    function, since a kernel without its InfiniBand modules shows no adapter.
    """
    return [
        function_facts(function, "nvlink5")
        for function in functions
        if function.vendor == MELLANOX
        and b"SW_MNG" in (host.read_bytes("%s/%s/vpd" % (pci.SYSFS, function.address)) or b"")
    ]


def umad(host: Host, kernel: str) -> UmadFacts:
    """Return the state of the kernel's modules for NVLink 5 (modules-load.d(5): one name a line, # and ; comment)."""
    paths = ["%s/%s" % (directory, name) for directory in MODULES_AT_BOOT for name in host.listdir(directory)]
    texts = [host.read(path) or "" for path in ["/etc/modules"] + [path for path in paths if path.endswith(".conf")]]
    known = [host.read("/lib/modules/%s/modules.%s" % (kernel, name)) or "" for name in ("dep", "builtin")]
    return UmadFacts(
        present=all(any("/%s.ko" % name in text for text in known) for name in FABRIC_MODULES),
        loaded=all(host.isdir("/sys/module/" + name) for name in FABRIC_MODULES),
        at_boot=any(re.search(r"(?m)^\s*ib[_-]umad\s*$", text) for text in texts),
    )


def gpu(host: Host, function: pci.Function) -> GpuFacts:
    """Return a GPU with its PCI id as its name."""
    name = UNNAMED % function.device
    space = pci.read_config(host, function.address)
    silent = is_silent(space)
    return GpuFacts(function.address, function.device, function.driver, name, pci.vgpu(space), silent)


def other_functions(functions: List[pci.Function]) -> List[FunctionFacts]:
    counted = {function.address for function in pci.gpus(functions) + pci.nvswitches(functions)}
    return [
        function_facts(function, pci.what(function))
        for function in functions
        if function.vendor == "10de" and function.address not in counted
    ]


def kernel_facts(host: Host, running: str) -> KernelFacts:
    with_modules = [name for name in host.listdir("/lib/modules") if host.isdir("/lib/modules/%s/kernel" % name)]
    images = [
        name[len("vmlinuz-") :]
        for name in host.listdir("/boot")
        if name.startswith("vmlinuz-") and "-rescue-" not in name
    ]
    installed = sorted(set(with_modules) | set(images) | {running}, key=versions.key)
    headers = {name: host.exists("/lib/modules/%s/build" % name) for name in installed}
    return KernelFacts(running, installed, next_boot(host, images) or running, headers)


def next_boot(host: Host, images: List[str]) -> Optional[str]:
    """Return the kernel that GRUB boots by default, else the target of /vmlinuz (kept by Debian), else the newest.

    Other boot loaders (systemd-boot, Petitboot) are not supported.
    """
    for directory in ("/boot/grub2", "/boot/grub"):
        texts = [host.read("%s/%s" % (directory, name)) or "" for name in ("grubenv", "grub.cfg")]
        found = grub.find_default_kernel(texts[0], texts[1], images)
        if found:
            return found
    for link in ("/vmlinuz", "/boot/vmlinuz"):
        target = host.readlink(link)
        if target and "vmlinuz-" in target:
            return target.rsplit("vmlinuz-", 1)[1]
    return max(images, key=versions.key) if images else None


def secure_boot(host: Host, release: OsRelease) -> SecureBootFacts:
    """Collect whether the kernel loads signed modules only, and the state of the key that DKMS signs with."""
    by = signature_enforcement(host)
    if not by:
        return SecureBootFacts()
    path = signing_certificate(host, release)
    key = certificate(host.read_bytes(path) or b"")
    return SecureBootFacts(
        on=True,
        key=path if key else None,
        certificate=path,
        enrolled=bool(key) and any(key in (host.read_bytes(name) or b"") for name in (SHIM_KEYS, SHIM_TABLE)),
        by=by,
    )


def has_firmware_key(host: Host, system: BaseFacts) -> bool:
    """Return True if the firmware has the key that DKMS signs with, which counts for the kernels of some families."""
    key = certificate(host.read_bytes(system.secure_boot.key or "") or b"") if system.secure_boot.key else b""
    return bool(key) and key in (host.read_bytes(FIRMWARE_KEYS) or b"")


def signature_enforcement(host: Host) -> str:
    """Return what makes the kernel load signed modules only: "firmware", "kernel" or "unknown"; "" where nothing does.

    A kernel without EFI runtime services cannot read the firmware's variables: efi=noruntime, the default of real-time
    kernels (EFI_DISABLE_RUNTIME in drivers/firmware/efi/Kconfig). It says itself what it rejects: by module.sig_enforce
    and by lockdown, which Secure Boot turns on (module_sig_check in kernel/module/signing.c).
    An EFI variable file holds 4 bytes of attributes, then the value (Documentation/filesystems/efivarfs.rst).
    """
    variables = [host.read_bytes(path) or b"" for path in (SECURE_BOOT, SHIM_STATE)]
    if variables[0][4:5] == b"\x01" and variables[1][4:5] != b"\x01":
        return "firmware"
    lockdown = host.read(LOCKDOWN)
    if (host.read(SIGNATURES_ENFORCED) or "").strip() == "Y" or (lockdown and "[none]" not in lockdown):
        return "kernel"
    return "unknown" if lockdown is None and host.isdir(EFI) and not host.listdir(EFIVARS) else ""


def signing_certificate(host: Host, release: OsRelease) -> str:
    """Return the path of the certificate that DKMS signs with. DKMS creates it if it is missing.

    As in DKMS 3 (prepare_mok): on Ubuntu and its derivatives, settings count only with a signing key.
    """
    settings = dkms_settings(host)
    if "ubuntu" in [release.id] + release.id_like[:1] and not settings.get("mok_signing_key"):
        return UBUNTU_KEY
    return settings.get("mok_certificate") or DKMS_KEY


def dkms_settings(host: Host) -> Dict[str, str]:
    """Return the settings of DKMS for its key (dkms(8)). A shell reads them, so the last line counts."""
    names = [DKMS_CONFIGURATION + ".d/" + name for name in host.listdir(DKMS_CONFIGURATION + ".d")]
    line = re.compile(r"(?m)^\s*(?:export\s+)?(mok_certificate|mok_signing_key)=(\S*)")
    found = {}
    for path in [DKMS_CONFIGURATION] + [name for name in names if name.endswith(".conf")]:
        found.update({name: value.strip("\"'") for name, value in line.findall(host.read(path) or "")})
    return found


def certificate(data: bytes) -> bytes:
    """Return a certificate as DER, the form of shim and the firmware. The file may be PEM."""
    text = re.search(rb"-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----", data)
    try:
        return binascii.a2b_base64(text.group(1)) if text else data
    except binascii.Error:
        return data  # a damaged file is enrolled nowhere


def nouveau(host: Host, functions: List[pci.Function], kernels: List[str]) -> NouveauFacts:
    """Collect the state of the kernel's own drivers: nouveau, and nova_core of newer kernels for Turing and newer.

    A blacklist does not count while the initial RAM disk is without it, because a run was interrupted.
    """
    bound = [function for function in functions if pci.kernel_driver(function.driver)]
    names = sorted({str(pci.kernel_driver(function.driver)) for function in bound})
    loaded = [name for name in pci.KERNEL_DRIVERS.values() if host.isdir("/sys/module/" + name)]
    nova = {"nova_core"} & {*names, *loaded} or [name for name in kernels if host.listdir(NOVA % name)]
    drivers = ["nouveau"] + (["nova_core"] if nova else [])
    return NouveauFacts(
        name=" and ".join(names) or None,
        loaded=bool(loaded),
        bound=[function.address for function in bound],
        blacklisted=not pending.read_pending_rebuild(host) and {*drivers} <= blacklisted_modules(host),
    )


def blacklisted_modules(host: Host) -> Set[str]:
    """Return the modules that are not loaded by their aliases."""
    return {name for name, _ in modprobe_files.read_config(host).blacklist}
