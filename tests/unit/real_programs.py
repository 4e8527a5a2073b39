"""Programs of the distribution that tests run for real."""

import os
import shutil
from pathlib import Path

import pytest
from gpu_ready_lab import engine

RPM = {"/usr/bin/rpm": "rpm", "/usr/bin/rpmbuild": "rpm", "/usr/bin/gpg": "gpg", "/usr/bin/dpkg-deb": "dpkg"}
PCI = {"/usr/bin/lspci": "pciutils"}
SHELLS = {"/usr/bin/zsh": "zsh", "/usr/bin/ksh": "ksh93u+m", "/usr/bin/tcsh": "tcsh", "/usr/bin/csh": "csh"}


def need_programs(needs: dict[str, str]) -> None:
    """Install the packages of missing programs, as the lab does; skip where that takes more rights than this user has."""
    missing = [program for program in needs if not Path(program).exists()]
    if missing and (os.geteuid() != 0 or not Path("/usr/bin/apt-get").exists()):
        pytest.skip(f"{', '.join(missing)}: not installed, and only root of a Debian or Ubuntu can install it")
    engine.need_packages(needs, "the unit tests")


def need_on_path(program: str, package: str) -> None:
    """As need_programs, for a program that may be anywhere on PATH; the package is Debian's."""
    if not shutil.which(program):
        need_programs({f"/usr/bin/{program}": package})
