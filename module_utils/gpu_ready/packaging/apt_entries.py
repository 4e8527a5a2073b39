"""What apt reads from the host's sources files: the enabled entries, and those that contradict each other."""

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from .locations import split_list, url_location

ARCHITECTURE = "amd64"
"""apt's name of the architecture whose repositories the catalog has."""
FALSE = ("no", "false", "without", "off", "disable")
"""What apt takes for false (apt-pkg/contrib/strutl.cc, StringToBool), besides numbers."""
INLINE_KEY = "-----BEGIN"
LINE = re.compile(r"\s*(deb|deb-src)\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)([^#]*)")


class AptEntry(NamedTuple):
    """One repository of a line or stanza: a URL and a suite. ``kind``: deb or deb-src.

    ``url`` is as written, with ``$(ARCH)`` expanded. ``signed_by``: paths or fingerprints, or the key itself.
    ``options``: those that apt wants to be equal in all entries of a repository, beside ``signed_by``.
    """

    path: str
    kind: str
    url: str
    suite: str
    components: List[str]
    signed_by: str = ""
    architectures: List[str] = []
    options: Tuple[Tuple[str, str], ...] = ()

    @property
    def location(self) -> str:
        return url_location(self.url)

    @property
    def serves_packages(self) -> bool:
        """True if apt reads packages for this host there."""
        return self.kind == "deb" and (not self.architectures or ARCHITECTURE in self.architectures)

    @property
    def trusted(self) -> bool:
        return any(name == "trusted" and value not in FALSE for name, value in self.options)

    @property
    def keyrings(self) -> List[str]:
        return [] if INLINE_KEY in self.signed_by else [one for one in split_list(self.signed_by) if one[:1] == "/"]


EQUAL_OPTIONS = ("trusted", "check-valid-until", "check-date", "allow-insecure", "allow-weak")
"""Options of which apt wants one value for all entries of a repository (apt-pkg/deb/debmetaindex.cc)."""


def is_true(text: str) -> bool:
    return text.lower() not in FALSE and text != "0"


def parse_entries(path: str, text: str) -> List[AptEntry]:
    """Return the enabled entries of a file; [] for a file that apt does not read."""
    if path.endswith(".sources"):
        return [entry for stanza in re.split(r"\n[ \t]*\n", text) for entry in parse_stanza(path, parse_fields(stanza))]
    found = []
    for line in text.splitlines() if path.endswith(".list") else []:
        match = LINE.match(line)
        if match:
            pairs = [one.partition("=") for one in (match.group(2) or "").split()]
            options = {name.rstrip("+-").lower(): value for name, _, value in pairs}
            kind, url, suite, components = match.group(1), match.group(3), match.group(4), match.group(5).split()
            found.append(make_entry(path, kind, url, suite, components, options))
    return found


def parse_fields(stanza: str) -> Dict[str, str]:
    """Return fields of a deb822 stanza by their lower-case names, continuation lines joined."""
    found = {}  # type: Dict[str, str]
    name = ""
    for line in stanza.split("\n"):
        if line.startswith("#"):
            continue
        if line[:1] in (" ", "\t"):
            if name:
                found[name] += "\n" + line.strip()
        elif ":" in line:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            found[name] = value.strip()
    return found


def parse_stanza(path: str, fields: Dict[str, str]) -> List[AptEntry]:
    if not is_true(fields.get("enabled", "yes")):
        return []
    options = dict(fields, arch=fields.get("architectures", ""))
    return [
        make_entry(path, kind, url, suite, fields.get("components", "").split(), options)
        for kind in fields.get("types", "").split()
        for url in fields.get("uris", "").split()
        for suite in fields.get("suites", "").split()
    ]


def make_entry(path: str, kind: str, url: str, suite: str, components: List[str], options: Dict[str, str]) -> AptEntry:
    return AptEntry(
        path=path,
        kind=kind,
        url=url.replace("$(ARCH)", ARCHITECTURE),
        suite=suite.replace("$(ARCH)", ARCHITECTURE),
        components=components,
        signed_by=options.get("signed-by", ""),
        architectures=split_list(options.get("arch", "")),
        options=tuple((name, options[name].lower()) for name in EQUAL_OPTIONS if options.get(name)),
    )


def parse_sources(sources: Dict[str, str]) -> List[AptEntry]:
    """Return the enabled entries of all files, in the order in which apt reads them."""
    paths = sorted(sources, key=lambda path: (not path.endswith("/sources.list"), path))
    return [entry for path in paths for entry in parse_entries(path, sources[path])]


def find_contradiction(entries: Sequence[AptEntry]) -> Optional[Tuple[AptEntry, AptEntry]]:
    """Return two entries of one repository that make apt refuse to read any source, None if there are none.

    apt compares scheme-less URL and suite of all entries, of deb-src too. A later Signed-By is accepted where the first
    has none, and not the other way round; other options must be equal. Found by trying apt 2.6.1; the code is
    debReleaseIndex::SetSignedBy and SetTrusted (apt-pkg/deb/debmetaindex.cc).
    """
    first = {}  # type: Dict[Tuple[str, str], AptEntry]
    for entry in entries:
        url = re.sub(r"^[^/]*//(?:[^/@]*@)?", "", entry.url).rstrip("/")
        known = first.setdefault((url, entry.suite), entry)
        signer, other = " ".join(known.signed_by.split()), " ".join(entry.signed_by.split())
        if (signer and signer != other) or known.options != entry.options:
            return known, entry
        if not signer:
            first[url, entry.suite] = entry
    return None


def describe_contradiction(pair: Tuple[AptEntry, AptEntry]) -> str:
    """Return the message that names both files; the remedy is added by the caller."""
    one, other = pair
    what = "signed-by" if one.options == other.options else "options"
    where = "%s and %s name" % (one.path, other.path) if one.path != other.path else "%s names twice" % one.path
    return "%s the same repository (%s %s) with different %s, so apt reads no package source at all" % (
        where,
        url_location(one.url),
        one.suite,
        what,
    )
