"""Other versions of ansible-core than the checkout's own, each in a virtual environment of the lab cache, made once."""

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from gpu_ready_lab import paths, python
from gpu_ready_lab.say import LabError

from tests.integration.fleet import ROOT

NEW_CONTROLLERS = ("3.14", "3.13", "3.12")
REQUIREMENTS = ROOT / "requirements"


class Version(NamedTuple):
    """An ansible-core with the fleet that it is tried on."""

    core: str
    fleet: str
    host_python: str | None
    requirement: tuple[str, ...]


OLD = Version("2.16", "versions_old", "3.6", ("-r", "requirements/runtime-2.16.txt"))
NEW = Version("newest", "versions_new", None, ("-r", "requirements/runtime.txt"))


def controller(version: Version) -> str:
    """Return the control node's Python for an ansible-core; fails the test where there is none."""
    if version == OLD:
        return str(Path(sys.executable).resolve())
    for one in NEW_CONTROLLERS:
        try:
            return str(python.find(one) / f"bin/python{one}")
        except LabError:
            continue
    pytest.fail(f"the newest ansible-core needs one of Python {', '.join(NEW_CONTROLLERS)} on this machine")


def programs(version: Version) -> Path:
    """The directory with ansible-playbook of a version, installed if it is missing."""
    return installed(version.core, controller(version), version.requirement)


def installed(name: str, program: str, requirement: tuple[str, ...], *more: str) -> Path:
    """The directory of programs of a virtual environment with these requirements, made if it is missing.

    ``more``: packages without hashes, which pip does not take together with a file that has some.
    """
    content = b"".join(path.read_bytes() for path in sorted(REQUIREMENTS.iterdir()))
    recipe = hashlib.sha256(f"{program} {requirement} {more}".encode() + content).hexdigest()[:12]
    directory = paths.cache() / f"ansible/{name}-{recipe}"
    directory.parent.mkdir(parents=True, exist_ok=True)
    with directory.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = directory / "installed"
        if not done.exists():
            subprocess.run([program, "-m", "venv", "--clear", str(directory)], check=True, timeout=600)
            for packages in filter(None, (requirement, more)):
                pip = [str(directory / "bin/pip"), "install", "-q", "--disable-pip-version-check", *packages]
                subprocess.run(pip, check=True, timeout=1800, cwd=ROOT)
            done.touch()
    return directory / "bin"
