"""Write the PCI bus of each host of a fleet: DIRECTORY/HOST/devices and drivers, as below /sys/bus/pci.

usage: hardware.py FLEET.yml DIRECTORY
"""

import sys
from pathlib import Path

from gpu_ready_lab import fleet, pci_tree


def write_bus(host: fleet.Host, directory: Path) -> None:
    """Write the files and links of a host's bus, that are missing."""
    files, links = pci_tree.tree(host)
    for name in [*files, *links]:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    for name, target in links.items():
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(target)


if __name__ == "__main__":
    for one in fleet.read(Path(sys.argv[1])).hosts:
        write_bus(one, Path(sys.argv[2], one.name))
