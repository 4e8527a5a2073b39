"""A host after transactions of apt that were only simulated: dpkg's status and the preferences, as copies.

apt reads them in place of the host's own (apt.conf(5), FILES and DIRECTORIES: Dir::State::status,
Dir::Etc::preferencesparts), so that the next transaction is resolved as it will be. Nothing of the host changes.
"""

import contextlib
import os
import re
import shutil
import tempfile
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from ..base import work_directories
from ..base.host import Host
from . import archives, signatures
from .dpkg_status import STATUS, native_architecture, package_name
from .manager import Simulation

PREFERENCES = "/etc/apt/preferences.d"
MOST_OF_PINS = 65536
"""Bytes. A package of preferences has nothing else, so larger ones are not unpacked to look for any."""


class SimulatedState:
    """What apt reads in place of the files of ``host``; ``directory`` is empty and removed by the caller."""

    def __init__(self, host: Host, directory: str, store: str) -> None:
        self.host = host
        self.directory = directory
        self.store = store
        self.preferences = os.path.join(directory, "preferences.d")
        self.text = host.read(STATUS) or ""
        self.write()
        os.mkdir(self.preferences)
        for name in host.listdir(PREFERENCES):
            write_file(os.path.join(self.preferences, name), host.read(PREFERENCES + "/" + name) or "")

    def write(self) -> None:
        write_file(os.path.join(self.directory, "status"), self.text)

    @property
    def options(self) -> List[str]:
        """Options of apt; the host's cache of lists and status stays as it is."""
        status = "Dir::State::status=" + os.path.join(self.directory, "status")
        pins = "Dir::Etc::PreferencesParts=" + self.preferences
        return ["-o", status, "-o", pins, "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="]

    def select(self, names: Iterable[str], selection: str) -> None:
        """Hold or release packages: ``selection`` is hold or install (dpkg(1), PACKAGE SELECTION STATES)."""
        self.text = set_selection(self.text, names, selection)
        self.write()

    def apply(self, simulation: Simulation) -> None:
        """Let the packages be as after a transaction, whose new packages are on the disk."""
        replaced = simulation.remove + [name for name, (before, _) in simulation.install.items() if before]
        if replaced:
            listed = self.host.run(["dpkg-query", "-L"] + replaced).out.splitlines()
            for path in listed:
                if os.path.dirname(path) == PREFERENCES:
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(os.path.join(self.preferences, os.path.basename(path)))
        self.text = replace_packages(self.text, simulation, self.describe(simulation))
        for name, (_, version) in sorted(simulation.install.items()):
            self.copy_pins(name, version)
        self.write()

    def describe(self, simulation: Simulation) -> str:
        """Return the stanzas of new packages, of the package lists or of files that were kept for a rollback."""
        new = [(name, version) for name, (_, version) in sorted(simulation.install.items())]
        kept = [archives.find_kept(self.host, name, version, self.store) for name, version in new]
        text = self.host.run(["apt-cache", "show"] + ["%s=%s" % one for one in new], timeout=300.0).out if new else ""
        return "\n\n".join([text] + [self.host.run(["dpkg-deb", "-f", path]).out for path in kept if path])

    def copy_pins(self, name: str, version: str) -> None:
        """Copy the preferences in a package."""
        path = archives.find_deb(self.host, name, version)
        if path is None or os.path.getsize(path) > MOST_OF_PINS:
            return
        if "." + PREFERENCES + "/" not in self.host.run(["dpkg-deb", "-c", path]).out:
            return
        unpacked = os.path.join(self.directory, "unpacked")
        signatures.unpack_deb(self.host, "%s=%s" % (name, version), path, unpacked)
        for one in os.listdir(unpacked + PREFERENCES):
            shutil.copy(os.path.join(unpacked + PREFERENCES, one), self.preferences)
        shutil.rmtree(unpacked)


def write_file(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


@contextlib.contextmanager
def simulated_state(host: Host, store: str) -> Iterator[SimulatedState]:
    directory = tempfile.mkdtemp(prefix="gpu-ready-apt-", dir=work_directories.SMALL_FILES)
    try:
        os.chmod(directory, 0o755)  # apt reads it as an unprivileged user
        yield SimulatedState(host, directory, store)
    finally:
        shutil.rmtree(directory)


def set_selection(text: str, names: Iterable[str], selection: str) -> str:
    """Return dpkg's status with other selections."""
    chosen, native = set(names), native_architecture(text)
    found = []
    for stanza in text.split("\n\n"):
        if chosen and package_name(stanza, native) in chosen:
            stanza = re.sub(r"(?m)^(Status: )\S+", r"\g<1>" + selection, stanza, count=1)
        found.append(stanza)
    return "\n\n".join(found)


def replace_packages(text: str, simulation: Simulation, shown: str) -> str:
    """Return dpkg's status after a transaction; ``shown``: stanzas of its new packages, as apt-cache show has them."""
    native = native_architecture(text)
    stanzas: Dict[Tuple[str, str], str] = {}
    for stanza in shown.split("\n\n"):
        match = re.search(r"(?m)^Version: (\S+)", stanza)
        if match:
            stanzas.setdefault((package_name(stanza, native), match.group(1)), stanza.strip("\n"))
    changed = set(simulation.remove) | set(simulation.install)
    found = [one.strip("\n") for one in text.split("\n\n") if one.strip() and package_name(one, native) not in changed]
    for name, (_, version) in sorted(simulation.install.items()):
        found.append(as_installed(stanzas.get((name, version))))
    return "\n\n".join(one for one in found if one) + "\n"


def as_installed(stanza: Optional[str]) -> str:
    """Return a stanza of an index as dpkg writes it: with a status, the version behind the architecture, no file."""
    text = re.sub(r"(?m)^(?:Filename|Size|MD5sum): .*\n?", "", stanza or "").strip("\n")
    text = re.sub(r"(?ms)^(Version: [^\n]*\n)(.*?^Architecture: [^\n]*\n)", r"\2\1", text, count=1)
    return re.sub(r"(?m)^(Package: .*)$", r"\1\nStatus: install ok installed", text, count=1)
