"""PCI functions of a host, from sysfs: which are GPUs, and what the others are."""

import re
from typing import List, NamedTuple, Optional, Set

from ..base.host import Host

SYSFS = "/sys/bus/pci/devices"
NVIDIA = "10de"
KERNEL_DRIVERS = {"nouveau": "nouveau", "novacore": "nova_core"}
"""The kernel's own drivers of NVIDIA GPUs: the module by the letters of the name under which it drives (NovaCore)."""


class Function(NamedTuple):
    """A PCI function: ids as four small letters, ``driver`` None where none is bound, ``vf`` an SR-IOV virtual one."""

    address: str
    vendor: str
    device: str
    class_id: str
    subvendor: Optional[str]
    subdevice: Optional[str]
    driver: Optional[str]
    vf: bool


def read_sysfs(host: Host) -> List[Function]:
    """Return every PCI function of a host, by address; needs no lspci."""
    found = []
    for address in host.listdir(SYSFS):
        directory = SYSFS + "/" + address
        vendor, device = parse_hex(host, directory + "/vendor", 4), parse_hex(host, directory + "/device", 4)
        kind = parse_hex(host, directory + "/class", 6)
        if vendor is None or device is None or kind is None:
            continue
        if vendor != NVIDIA:
            found.append(Function(address, vendor, device, kind[:4], None, None, bound_driver(host, directory), False))
            continue
        found.append(
            Function(
                address,
                vendor,
                device,
                kind[:4],
                parse_hex(host, directory + "/subsystem_vendor", 4),
                parse_hex(host, directory + "/subsystem_device", 4),
                bound_driver(host, directory),
                host.readlink(directory + "/physfn") is not None,
            )
        )
    return found


def parse_hex(host: Host, path: str, digits: int) -> Optional[str]:
    """Return a number of sysfs ("0x10de") as small letters of a fixed length, None where there is none."""
    text = (host.read(path) or "").strip()
    try:
        return "%0*x" % (digits, int(text, 16))
    except ValueError:
        return None


def bound_driver(host: Host, directory: str) -> Optional[str]:
    target = host.readlink(directory + "/driver")
    return target.rstrip("/").rpartition("/")[2] if target else None


def read_config(host: Host, address: str) -> bytes:
    """Return the configuration space, b"" where it cannot be read."""
    return host.read_bytes("%s/%s/config" % (SYSFS, address)) or b""


def vgpu(space: bytes) -> Optional[str]:
    """Return the driver version of the host of a virtual GPU ("" where it is not shown), None for a physical GPU.

    A guest of NVIDIA vGPU sees the GPU's own device id. It has a vendor capability that begins with "VF", whose record
    0 is the version (NVIDIA's k8s-device-plugin, internal/vgpu, reads it the same way).
    """
    if len(space) < 256 or not space[0x06] & 0x10:
        return None
    place = space[0x34]
    seen: Set[int] = set()
    while place and place not in seen and place + 2 < 256:
        seen.add(place)
        identity, following, length = space[place : place + 3]
        if identity == 0x09 and space[place + 3 : place + 5] == b"VF":
            return vgpu_version(space[place + 5 : min(place + length, 256)])
        place = following
    return None


def vgpu_version(records: bytes) -> str:
    while len(records) > 2 and records[1] > 2:
        if records[0] == 0:
            return records[2:12].rstrip(b"\0").decode("ascii", "replace")
        records = records[records[1] :]
    return ""


def kernel_driver(name: Optional[str]) -> Optional[str]:
    """Return the module name of the kernel's own driver (nouveau, nova_core), None for any other driver."""
    return KERNEL_DRIVERS.get(re.sub(r"[^a-z]", "", (name or "").lower()))


def gpus(functions: List[Function]) -> List[Function]:
    """Return GPUs: vendor NVIDIA, class display, no virtual function. Those bound to vfio-pci are among them."""
    return [f for f in functions if f.vendor == NVIDIA and f.class_id[:2] == "03" and not f.vf]


def nvswitches(functions: List[Function]) -> List[Function]:
    return [f for f in functions if f.vendor == NVIDIA and what(f) == "nvswitch"]


def what(function: Function) -> str:
    if function.vf:
        return "virtual_function"
    return classify_function(function.class_id, "", "", function.device)


def classify_function(class_id: Optional[str], class_name: str, name: str, device: Optional[str]) -> str:
    """Return the kind of a function, by its numbers where they are known, else by its names.

    A bridge of no other kind (class 0680) is an NVSwitch, also one that is newer than any list.
    """
    kind, words = class_id or "", (class_name + " " + name).lower()
    if kind[:2] == "03":
        return "gpu"
    if "nvswitch" in words:
        return "nvswitch"
    if "nvlink" in words:
        return "nvlink_bridge"
    if is_chipset(name, device):
        return "chipset"
    if kind == "0c80" or "ucsi" in words:
        return "ucsi"
    if kind == "0c03" or class_name.lower().startswith("usb") or " usb " in words:
        return "usb"
    if kind in ("0403", "0401") or "audio" in words:
        return "audio"
    if "tegra" in words or kind == "0604" or class_name == "PCI bridge":
        return "tegra_root_port"
    unnamed = not name or re.match(r"^(unknown )?device(\s[0-9a-f]{4})?$", name.lower())
    return "nvswitch" if unnamed and (kind == "0680" or class_name == "Bridge") else "chipset"


def is_chipset(name: str, device: Optional[str]) -> bool:
    """Return True for functions of nForce boards (audio, USB, ...), by name or by number."""
    if name.upper().startswith(
        ("MCP", "CK8", "C51", "C55", "C19", "C17", "C73", "NFORCE", "CROSSK8", "CRUSH", "NF200")
    ):
        return True
    number = int(device, 16) if device and re.match(r"^[0-9a-f]{4}$", device) else None
    return number is not None and (number < 0x0BE0 or 0x0D60 <= number <= 0x0DAF)
