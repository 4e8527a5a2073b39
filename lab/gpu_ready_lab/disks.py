"""What a boot loader does for guests: the newest kernel of a disk with its initial RAM disk, read without mounting."""

import re
import subprocess
from pathlib import Path

from .say import LabError, run

DEBUGFS = "/usr/sbin/debugfs"


def check(disk: Path) -> None:
    """Replay the journal of a disk whose machine lost its power, and repair what can be repaired automatically."""
    done = subprocess.run(
        ["/usr/sbin/e2fsck", "-p", str(disk)], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode not in (0, 1, 2):  # 1, 2: repaired
        raise LabError(
            f"could not repair the file system of {disk}: e2fsck ended with {done.returncode}: {done.stdout}"
        )


def kernels(disk: Path) -> list[str]:
    """Return the releases of kernels that have an initial RAM disk, oldest first."""
    listing = run([DEBUGFS, "-R", "ls -p /boot", str(disk)], limit=30, what=f"read /boot of {disk}")
    names = [line.split("/")[5] for line in listing.splitlines() if line.count("/") >= 6]
    found = [name.removeprefix("vmlinuz-") for name in names if name.startswith("vmlinuz-")]
    return sorted((release for release in found if f"initrd.img-{release}" in names), key=_version)


def _version(release: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", release))


def copy_out(disk: Path, name: str, target: Path) -> None:
    """Copy a file of a disk."""
    target.unlink(missing_ok=True)
    run([DEBUGFS, "-R", f"dump {name} {target}", str(disk)], limit=60, what=f"read {name} of {disk}")
    if not target.exists() or target.stat().st_size == 0:
        raise LabError(f"{disk} has no {name}, or an empty one")


def kernel(disk: Path, directory: Path) -> str:
    """Copy the newest kernel and its initial RAM disk into a directory and return its release."""
    check(disk)
    found = kernels(disk)
    if not found:
        raise LabError(f"{disk} has no kernel with an initial RAM disk in /boot")
    copy_out(disk, f"/boot/vmlinuz-{found[-1]}", directory / "vmlinuz")
    copy_out(disk, f"/boot/initrd.img-{found[-1]}", directory / "initrd")
    return found[-1]
