"""Files by which a driver of NVIDIA's .run installer is recognised."""

import os
import re
from typing import List, Optional

from ...base import manifest
from ...base.host import Host
from ..libraries import library_directories

BACKUP_LOG = "/var/lib/nvidia/log"
UNINSTALLERS = ("/usr/bin/nvidia-uninstall", "/usr/bin/nvidia-installer")
PENDING = "runfile-pending"
"""Exists from before the installer starts until all is done."""
LIBRARY = re.compile(r"^lib(?:nvidia-ml|cuda)\.so\.\d+\.\d+(?:\.\d+)?$")


def parse_backup_log(text: str) -> Optional[str]:
    """Parse the first line of the backup log: "1.0-5809505 (580.95.05)", or the version alone."""
    first = text.splitlines()[0].strip() if text.strip() else ""
    match = re.match(r"^(?:1\.0-\d+ \()?(\d{2,4}\.\d+(?:\.\d+)?)\)?$", first)
    return match.group(1) if match else None


def installed_version(host: Host) -> Optional[str]:
    return parse_backup_log(host.read(BACKUP_LOG) or "")


def find_uninstaller(host: Host) -> Optional[str]:
    """Return the uninstaller of a .run driver; packages ship neither file."""
    return next((path for path in UNINSTALLERS if host.exists(path)), None)


def library_paths(host: Host) -> List[str]:
    """Return paths of the driver's management and CUDA libraries, whoever installed them."""
    return [
        "%s/%s" % (directory, name)
        for directory in library_directories(host.uname()[1])
        for name in host.listdir(directory)
        if LIBRARY.match(name)
    ]


def is_interrupted(host: Host, state_dir: str = manifest.DIRECTORY) -> bool:
    """Return True if a run of the installer was interrupted, so that its files may be incomplete."""
    return host.exists(os.path.join(state_dir, PENDING))
