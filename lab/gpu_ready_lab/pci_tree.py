"""The PCI tree of a simulated host: the files of /sys/bus/pci as a kernel shows them."""

import struct
from dataclasses import dataclass

from .fleet import NVSWITCHES, Host

NVIDIA = 0x10DE
MELLANOX = 0x15B3
INFINIBAND = 0x020700
DISPLAY = 3
BRIDGE = 0x0604


@dataclass(frozen=True)
class Function:
    """A PCI function."""

    address: str
    vendor: int
    device: int
    subvendor: int
    subdevice: int
    pci_class: int
    """Class, subclass and programming interface: 24 bits."""
    revision: int
    driver: str | None = None
    irq: int = 16


# What every server has besides GPUs: a port, a management controller's display, a network card.
BASE = (
    Function("0000:00:1c.0", 0x8086, 0x2030, 0x8086, 0x0000, 0x060400, 0x07, "pcieport"),
    Function("0000:02:00.0", 0x1A03, 0x2000, 0x1A03, 0x2000, 0x030000, 0x41, "ast"),
    Function("0000:1a:00.0", 0x8086, 0x1572, 0x8086, 0x0008, 0x020000, 0x02, "i40e"),
)
AUDIO = {
    "fermi": 0x0BE5,
    "maxwell": 0x0FBC,
    "pascal": 0x10EF,
    "turing": 0x10F7,
    "ampere": 0x1AEF,
    "ada": 0x22BA,
    "blackwell": 0x22E8,
}


def functions(host: Host) -> list[Function]:
    """Return every PCI function of a host, by address."""
    found = list(BASE)
    for index, gpu in enumerate(host.gpus):
        sub = int(gpu.subsystem, 16)
        device, pci_class = int(gpu.device, 16), int(gpu.pci_class, 16) << 8
        found.append(Function(gpu.address, NVIDIA, device, NVIDIA, sub, pci_class, 0xA1, gpu.driver, 32 + index))
        if gpu.pci_class == "0300":
            audio = AUDIO.get(gpu.architecture, 0x10EF)
            found.append(Function(gpu.address[:-1] + "1", NVIDIA, audio, NVIDIA, sub, 0x040300, 0xA1, "snd_hda_intel"))
    found += [_nvswitch(address, device) for address, device in host.nvswitches]
    return sorted(found, key=lambda f: f.address)


def _nvswitch(address: str, device: str) -> Function:
    """Return an NVSwitch, or the bridge to those of NVLink 5, which the network adapter's driver has from boot."""
    if device == NVSWITCHES["blackwell"]:
        return Function(address, MELLANOX, int(device, 16), MELLANOX, 0x0041, INFINIBAND, 0x00, "mlx5_core")
    return Function(address, NVIDIA, int(device, 16), NVIDIA, 0x1796, 0x068000, 0xA1)


def _vital_product_data(name: str, keyword: str, value: str) -> bytes:
    """Return vital product data: the name and one read-only keyword, with its checksum (PCI 3.0, appendix I)."""
    text = name.encode()
    field = keyword.encode() + bytes([len(value)]) + value.encode()
    head = (
        b"\x82" + struct.pack("<H", len(text)) + text + b"\x90" + struct.pack("<H", len(field) + 4) + field + b"RV\x01"
    )
    return head + bytes([-sum(head) & 0xFF]) + b"\x78"


def tree(host: Host) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return files (path below /sys/bus/pci -> content) and symbolic links (path -> target)."""
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    for function in functions(host):
        directory = f"devices/{function.address}"
        for name, content in _files(function).items():
            files[f"{directory}/{name}"] = content if isinstance(content, bytes) else content.encode()
        if function.driver:
            links[f"{directory}/driver"] = f"../../drivers/{function.driver}"
            links[f"drivers/{function.driver}/{function.address}"] = f"../../devices/{function.address}"
    return files, links


def _files(f: Function) -> dict[str, str | bytes]:
    major, minor, interface = f.pci_class >> 16, f.pci_class >> 8 & 0xFF, f.pci_class & 0xFF
    driver = f"DRIVER={f.driver}\n" if f.driver else ""
    ids = f"v{f.vendor:08X}d{f.device:08X}sv{f.subvendor:08X}sd{f.subdevice:08X}"
    modalias = f"pci:{ids}bc{major:02X}sc{minor:02X}i{interface:02x}"
    files: dict[str, str | bytes] = {
        "vendor": f"0x{f.vendor:04x}\n",
        "device": f"0x{f.device:04x}\n",
        "subsystem_vendor": f"0x{f.subvendor:04x}\n",
        "subsystem_device": f"0x{f.subdevice:04x}\n",
        "class": f"0x{f.pci_class:06x}\n",
        "revision": f"0x{f.revision:02x}\n",
        "irq": f"{f.irq}\n",
        "numa_node": f"{int(int(f.address[5:7], 16) >= 0x80)}\n",
        "local_cpulist": "0-1\n",
        "enable": "1\n",
        "driver_override": "(null)\n",
        "current_link_speed": "8.0 GT/s PCIe\n",
        "current_link_width": "16\n",
        "max_link_speed": "8.0 GT/s PCIe\n",
        "max_link_width": "16\n",
        "modalias": f"{modalias}\n",
        "uevent": (
            f"{driver}PCI_CLASS={f.pci_class:X}\nPCI_ID={f.vendor:04X}:{f.device:04X}\n"
            f"PCI_SUBSYS_ID={f.subvendor:04X}:{f.subdevice:04X}\nPCI_SLOT_NAME={f.address}\nMODALIAS={modalias}\n"
        ),
        "resource": _resource(f),
        "config": _config(f),
    }
    if f.pci_class == INFINIBAND:
        files["vpd"] = _vital_product_data("ConnectX-7", "V3", "SW_MNG")
    return files


def _is_gpu(f: Function) -> bool:
    return f.vendor == NVIDIA and f.pci_class >> 16 == DISPLAY


def _resource(f: Function) -> str:
    rows = [(0, 0, 0)] * 13
    if f.pci_class >> 8 != BRIDGE:
        rows[0] = (0xDE000000, 0xDEFFFFFF, 0x40200)
        if _is_gpu(f):
            rows[1] = (0x3800E0000000, 0x3800EFFFFFFF, 0x14220C)
            rows[3] = (0x3800F0000000, 0x3800F1FFFFFF, 0x14220C)
    return "".join(f"0x{start:016x} 0x{end:016x} 0x{flags:016x}\n" for start, end, flags in rows)


def _config(f: Function) -> bytes:
    """Return 256 bytes of configuration space: header, power management, PCI Express capability (gen3 x16)."""
    space = bytearray(256)
    bridge = f.pci_class >> 8 == BRIDGE
    struct.pack_into("<HHHHB", space, 0, f.vendor, f.device, 0x0407 if bridge else 0x0406, 0x0010, f.revision)
    space[9], space[10], space[11] = f.pci_class & 0xFF, f.pci_class >> 8 & 0xFF, f.pci_class >> 16
    space[12], space[14] = 16, (1 if bridge else 0)
    if bridge:
        space[0x18:0x1B] = bytes((0, 1, 1))
    else:
        struct.pack_into("<I", space, 0x10, 0xDE000000)
        if _is_gpu(f):
            struct.pack_into("<IIII", space, 0x14, 0xE000000C, 0x3800, 0xF000000C, 0x3800)
        struct.pack_into("<HH", space, 0x2C, f.subvendor, f.subdevice)
    space[0x34] = 0x60
    space[0x3C], space[0x3D] = f.irq, 1
    space[0x60:0x65] = bytes((0x01, 0x78, 0x03, 0x00, 0x08))
    port = (4 if bridge else 0) << 4
    struct.pack_into("<BBHIHHIHH", space, 0x78, 0x10, 0x00, 2 | port, 0x8001, 0x2910, 0, 0x00000103, 0x0000, 0x1103)
    return bytes(space)
