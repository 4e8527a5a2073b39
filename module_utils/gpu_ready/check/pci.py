"""The GPUs on the PCI bus, as files of the kernel show them."""

import os
from typing import Dict, List, NamedTuple

SYSFS = "/sys/bus/pci/devices"
FOREIGN_DRIVERS = ("vfio-pci", "pci-stub", "xen-pciback")
"""Of GPUs that virtual machines have, or may get."""


class Gpus(NamedTuple):
    """Addresses: of all GPUs, of those that the host drives itself, and of those that read as ones."""

    present: List[str]
    served: List[str]
    silent: List[str]


def read_gpus(root: str = "") -> Gpus:
    """Return NVIDIA's display functions without virtual ones, as hardware/pci.py finds them for facts."""
    present: List[str] = []
    drivers: Dict[str, str] = {}
    silent: List[str] = []
    for address in sorted(list_directory(root + SYSFS)):
        directory = "%s%s/%s" % (root, SYSFS, address)
        vendor, kind = read_bytes(directory + "/vendor")[:6], read_bytes(directory + "/class")[:4]
        if (vendor, kind) != (b"0x10de", b"0x03") or os.path.exists(directory + "/physfn"):
            continue
        present.append(address)
        drivers[address] = os.path.basename(os.path.realpath(directory + "/driver"))
        if is_silent(read_bytes(directory + "/config")):
            silent.append(address)
    served = [address for address in present if drivers[address] not in FOREIGN_DRIVERS]
    return Gpus(present, served, silent)


def is_silent(space: bytes) -> bool:
    """Return True if a function does not answer: its registers read as ones (PCI Express, Unsupported Request).

    All of ids, revision and header type: the ids alone read as ones in an SR-IOV virtual function too. The kernel wakes
    a sleeping device before it reads (pci_config_pm_runtime_get), and what it cannot read is empty.
    """
    return len(space) >= 64 and space[:4] == b"\xff" * 4 and space[8:15] == b"\xff" * 7


def list_directory(path: str) -> List[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def read_bytes(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read(256)
    except OSError:
        return b""
