"""Verified installers that were fetched in advance, for an upgrade and for its rollback.

The checksum is written beside each file when it is verified; the installation verifies the file again and needs no
network.
"""

import os
import re
from typing import List, NamedTuple, Optional

from ...base import files, manifest
from .fetch import InstallerSource, RunfileLimits, check_installer, fetch_file

STORE = manifest.DIRECTORY + "/installers"
NAME = re.compile(r"^NVIDIA-driver-(\d{2,4}(?:\.\d+){1,2})\.run$")
CHECKSUM_SUFFIX = ".sha256"


class StoredInstaller(NamedTuple):
    """A ``source`` that is not a URL is a file of the control node; the role copied it to :func:`installer_path`."""

    version: str
    source: str
    sha256: str = ""
    sha256_url: str = ""


def installer_path(version: str, store: str = STORE) -> str:
    return os.path.join(store, "NVIDIA-driver-%s.run" % version)


def find_installer(version: str, sha256: str = "", store: str = STORE) -> Optional[InstallerSource]:
    """Return the stored installer of a version; None if there is none or it has another checksum."""
    file = installer_path(version, store)
    try:
        with open(file + CHECKSUM_SUFFIX, encoding="ascii") as handle:
            checksum = handle.read().strip()
    except (OSError, UnicodeDecodeError):
        return None
    if not os.path.isfile(file) or sha256.lower() not in ("", checksum):
        return None
    return InstallerSource(file, checksum)


def store_installer(installer: StoredInstaller, architecture: str, limits: RunfileLimits, store: str = STORE) -> bool:
    """Fetch and verify an installer (changes the host); True if it was fetched. Raises RunfileError.

    The file is renamed last, after its checksum was written, so a killed run leaves no file that looks complete.
    """
    file, remote = installer_path(installer.version, store), "://" in installer.source
    if remote and find_installer(installer.version, installer.sha256, store):
        return False
    os.makedirs(store, mode=0o755, exist_ok=True)
    if os.path.exists(file + CHECKSUM_SUFFIX):
        os.unlink(file + CHECKSUM_SUFFIX)
    source = InstallerSource(installer.source if remote else file, installer.sha256, installer.sha256_url)
    before = set(os.listdir(store))
    kept = {os.path.basename(file), os.path.basename(file) + CHECKSUM_SUFFIX}
    try:
        found = fetch_file(source, store, limits)
        check_installer(found, installer.source, installer.version, architecture)
        files.write_atomic(file + CHECKSUM_SUFFIX, (files.checksum(found) + "\n").encode("ascii"), 0o600)
        os.chmod(found, 0o600)
        os.replace(found, file)
    finally:
        for name in set(os.listdir(store)) - before - kept:
            os.unlink(os.path.join(store, name))
    return True


def delete_other_versions(versions: List[str], store: str = STORE) -> List[str]:
    """Delete installers of other versions, which are large; return these versions."""
    deleted = []
    for name in sorted(os.listdir(store)) if os.path.isdir(store) else []:
        match = NAME.match(name[: -len(CHECKSUM_SUFFIX)] if name.endswith(CHECKSUM_SUFFIX) else name)
        if match and match.group(1) not in versions:
            os.unlink(os.path.join(store, name))
            deleted.append(match.group(1))
    return sorted(set(deleted))
