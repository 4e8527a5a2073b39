"""dpkg's database as text: dpkg-query costs more than all facts together, and prints nothing of a damaged one."""

import re
from typing import Dict, List, NamedTuple

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


def native_architecture(text: str) -> str:
    """Return the architecture of dpkg itself in its status, "" where that has no dpkg."""
    start = ("\n" + text).find("\nPackage: dpkg\n")
    stanza = text[start : text.find("\n\n", start) + 1 or None] if start >= 0 else ""
    match = re.search(r"(?m)^Architecture: (\S+)", stanza)
    return match.group(1) if match else ""


def qualified_name(name: str, architecture: str, native: str) -> str:
    """Return a name as apt and dpkg read it: packages of a foreign architecture have that behind a colon."""
    return name if not native or architecture in (native, "all", "") else "%s:%s" % (name, architecture)


def package_name(stanza: str, native: str) -> str:
    """Return the qualified name of the package of a stanza (deb-control(5)), "" without one."""
    fields = dict(re.findall(r"(?m)^(Package|Architecture): (\S+)", stanza))
    return qualified_name(fields.get("Package", ""), fields.get("Architecture", ""), native)


def parse_dpkg_status(text: str) -> List[PackageStatus]:
    """Parse /var/lib/dpkg/status (deb-control(5) stanzas), and files of dpkg's journal after it.

    Of two stanzas of one package the later counts, as dpkg reads its journal after the status file. A package of
    several architectures has one entry for each; one of a foreign architecture has it in its name (libcuda1:i386).
    """
    native = native_architecture(text)
    found: Dict[str, PackageStatus] = {}
    for stanza in text.split("\n\n"):
        name = version = status = architecture = ""
        for line in stanza.split("\n"):
            if line.startswith("Package: "):
                name = line[9:].strip()
            elif line.startswith("Status: "):
                status = line[8:].strip()
            elif line.startswith("Architecture: "):
                architecture = line[14:].strip()
            elif line.startswith("Version: "):
                version = line[9:].strip()
                break  # the other fields come before it
        words = status.split()
        if name and len(words) == 3:
            name = qualified_name(name, architecture, native)
            found[name] = PackageStatus(name, version, *words)
    return list(found.values())
