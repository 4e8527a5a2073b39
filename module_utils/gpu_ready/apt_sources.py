"""Debian's own package sources, one-line and deb822: add components, keep every other byte. Also writes our sources."""

import re
from typing import Any, Dict, List, NamedTuple

DEBIAN_KEYRING = "debian-archive"


class Change(NamedTuple):
    """A sources file before and after; ``entries`` is the number of Debian's entries in it."""

    before: str
    after: str
    entries: int


def of_debian(uri: str, suites: List[str], components: List[str], signed_by: str, codename: str) -> bool:
    """Return whether an entry is Debian's own archive, whichever mirror serves it.

    Third parties also offer `bookworm main`; what tells them apart is the path of the archive and the key.
    """
    if "main" not in components:
        return False
    if not any(re.split("[-/]", suite)[0] in (codename, "stable", "oldstable") for suite in suites):
        return False
    if signed_by and not signed_by.startswith("-----"):
        return DEBIAN_KEYRING in signed_by
    return uri.rstrip("/").rsplit("/", 1)[-1].startswith("debian")


def missing(present: List[str], names: List[str]) -> List[str]:
    """Return the names that are not present, in their order."""
    return [name for name in names if name not in present]


ONE_LINE = re.compile(
    r"^(\s*deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+)"
    r"(?P<rest>[^#\n]*?)(?P<tail>\s*(?:#.*)?)$"
)


def enable_one_line(text: str, names: List[str], codename: str) -> Change:
    """Add components to Debian's entries of a one-line file."""
    count = 0
    lines = []
    for line in text.split("\n"):
        match = ONE_LINE.match(line)
        if match:
            components = match.group("rest").split()
            signed = re.search(r"signed-by=(\S+)", match.group("options") or "", re.IGNORECASE)
            signer = signed.group(1) if signed else ""
            if of_debian(match.group("uri"), [match.group("suite")], components, signer, codename):
                count += 1
                more = missing(components, names)
                if more:
                    line = match.group(1) + " ".join([match.group("rest")] + more) + match.group("tail")
        lines.append(line)
    return Change(text, "\n".join(lines), count)


def fields(stanza: str) -> Dict[str, str]:
    """Return the fields of a deb822 stanza by their lower-case names, continuation lines joined."""
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


def enable_deb822(text: str, names: List[str], codename: str) -> Change:
    """Add components to Debian's stanzas of a deb822 file."""
    count = 0
    parts = re.split(r"(\n[ \t]*\n+)", text)
    for index in range(0, len(parts), 2):
        known = fields(parts[index])
        components = known.get("components", "").split()
        if "deb" not in known.get("types", "").split() or known.get("enabled", "yes").lower() in ("no", "false", "0"):
            continue
        signer = known.get("signed-by", "")
        if not any(
            of_debian(uri, known.get("suites", "").split(), components, signer, codename)
            for uri in known.get("uris", "").split()
        ):
            continue
        count += 1
        more = missing(components, names)
        if more:
            parts[index] = re.sub(
                r"(?im)^(components:[^\n]*?)[ \t]*$",
                lambda match, more=more: match.group(1) + " " + " ".join(more),
                parts[index],
                count=1,
            )
    return Change(text, "".join(parts), count)


def enable(path: str, text: str, names: List[str], codename: str) -> Change:
    """Add components to Debian's entries of a sources file; its name says the format."""
    change = enable_deb822 if path.endswith(".sources") else enable_one_line
    return change(text, names, codename)


def words(value: Any) -> str:
    """Return a list, or a text, as words on one line."""
    return " ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value or "")


def source(repository: Dict[str, Any], keyring: str, architecture: str) -> str:
    """Return the deb822 text of a repository of ours."""
    lines = [
        "# Written by gpu-ready; playbooks/uninstall.yml takes it away.",
        "Types: deb",
        "URIs: " + str(repository["url"]),
        "Suites: " + words(repository.get("suites") or "/"),
    ]
    if words(repository.get("components")):
        lines.append("Components: " + words(repository["components"]))
    lines += ["Architectures: " + architecture, "Signed-By: " + keyring]
    return "\n".join(lines) + "\n"


def pins(values: Any) -> str:
    """Return the text of a preferences file from {package, pin, priority}, one or a list."""
    stanzas = [
        "Package: %s\nPin: %s\nPin-Priority: %s\n" % (words(value["package"]), value["pin"], value["priority"])
        for value in (values if isinstance(values, list) else [values])
    ]
    return "# Written by gpu-ready; playbooks/uninstall.yml takes it away.\n\n" + "\n".join(stanzas)
