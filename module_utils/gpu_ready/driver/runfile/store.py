"""Installers of the driver that lie on the host beforehand, proved: that of an upgrade, and that of its way back.

Beside each file lies its checksum, written when the file was proved; the installation proves it by that once more and
needs no network.
"""

import os
import re
from typing import List, NamedTuple, Optional

from ...base import files, manifest
from . import fetch as runfile_fetch
from . import messages as runfile_text
from .fetch import Limits, Source

FOLDER = manifest.FOLDER + "/installers"
NAME = re.compile(r"^NVIDIA-driver-(\d{2,4}(?:\.\d+){1,2})\.run$")
PROOF = ".sha256"


class Wanted(NamedTuple):
    """An installer to have here: the driver's version, and where its file comes from.

    A file without a URL is one of the control node, which the role copies to :func:`path` before.
    """

    version: str
    source: str
    sha256: str = ""
    sha256_url: str = ""


def path(version: str, folder: str = FOLDER) -> str:
    """Return where the installer of a version lies."""
    return os.path.join(folder, "NVIDIA-driver-%s.run" % version)


def kept(version: str, sha256: str = "", folder: str = FOLDER) -> Optional[Source]:
    """Return the installer of a version that lies here, None where none does or another file is asked for."""
    file = path(version, folder)
    try:
        with open(file + PROOF, encoding="ascii") as handle:
            proof = handle.read().strip()
    except (OSError, UnicodeDecodeError):
        return None
    if not os.path.isfile(file) or sha256.lower() not in ("", proof):
        return None
    return Source(file, proof)


def keep(wanted: Wanted, machine: str, limits: Limits, folder: str = FOLDER) -> bool:
    """Have an installer here, proved (changes the host); return whether it was fetched. RunfileError.

    The file takes its name when all is proved, after its checksum did: a run that is killed leaves nothing that is
    taken for whole.
    """
    file, remote = path(wanted.version, folder), "://" in wanted.source
    if remote and kept(wanted.version, wanted.sha256, folder):
        return False
    os.makedirs(folder, mode=0o755, exist_ok=True)
    if os.path.exists(file + PROOF):
        os.unlink(file + PROOF)
    source = Source(wanted.source if remote else file, wanted.sha256, wanted.sha256_url)
    before = set(os.listdir(folder))
    try:
        found = runfile_fetch.fetch(source, folder, limits)
        runfile_fetch.judge(found, wanted.source, runfile_text.Wish(wanted.version, "", []), machine)
        files.write_atomic(file + PROOF, (files.checksum(found) + "\n").encode("ascii"), 0o600)
        os.chmod(found, 0o600)
        os.replace(found, file)
    finally:
        for name in set(os.listdir(folder)) - before - {os.path.basename(file), os.path.basename(file) + PROOF}:
            os.unlink(os.path.join(folder, name))
    return True


def tidy(versions: List[str], folder: str = FOLDER) -> List[str]:
    """Delete installers of other versions (they are large); return which."""
    gone = []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        match = NAME.match(name[: -len(PROOF)] if name.endswith(PROOF) else name)
        if match and match.group(1) not in versions:
            os.unlink(os.path.join(folder, name))
            gone.append(match.group(1))
    return sorted(set(gone))
