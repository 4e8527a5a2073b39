"""dpkg's database as text: dpkg-query costs more than all facts together, and prints nothing of a damaged one."""

from typing import Dict, List, NamedTuple, Tuple

STATUS = "/var/lib/dpkg/status"
COMPLETE_STATES = ("installed", "not-installed", "config-files")
REINSTALL = "reinstreq"


class PackageStatus(NamedTuple):
    """A stanza; ``selection``, ``flag`` and ``state`` are the three words of its Status."""

    name: str
    version: str
    selection: str
    flag: str
    state: str

    @property
    def is_incomplete(self) -> bool:
        """True where dpkg was interrupted, or a script of the package failed."""
        return self.state not in COMPLETE_STATES or self.flag == REINSTALL


def parse_dpkg_status(text: str) -> List[PackageStatus]:
    """Parse /var/lib/dpkg/status (deb-control(5) stanzas), and files of dpkg's journal after it.

    Of two stanzas of one package the later counts, as dpkg reads its journal after the status file. A package of
    several architectures has one entry for each.
    """
    found: Dict[Tuple[str, str], PackageStatus] = {}
    for stanza in text.split("\n\n"):
        name = version = status = architecture = kind = ""
        for line in stanza.split("\n"):
            if line.startswith("Package: "):
                name = line[9:].strip()
            elif line.startswith("Status: "):
                status = line[8:].strip()
            elif line.startswith("Architecture: "):
                kind = line[14:].strip()
            elif line == "Multi-Arch: same":
                architecture = kind  # only of these can there be two at once
            elif line.startswith("Version: "):
                version = line[9:].strip()
                break  # the other fields come before it
        words = status.split()
        if name and len(words) == 3:
            found[name, architecture] = PackageStatus(name, version, *words)
    return list(found.values())
