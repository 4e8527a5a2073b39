"""Why apt has no candidate of a package that its lists name: a pin, a virtual package, or no version at all.

"Package 'x' has no installation candidate" has all three causes (apt-pkg/cacheset.cc: a package that is named
somewhere, but has no version that may be installed); only a name that is nowhere is "Unable to locate package x".
"""

import fnmatch
import re
from typing import Dict, List, NamedTuple, Optional, Tuple


class Policy(NamedTuple):
    """What `apt-cache policy` prints about a package: its candidate, and the priority of each version, newest first."""

    candidate: Optional[str]
    versions: List[Tuple[str, int]]


class Pin(NamedTuple):
    """A stanza of a preferences file: names or patterns of packages, and its priority; ``versions``: its field Pin."""

    path: str
    line: int
    packages: List[str]
    priority: int
    versions: str = ""


def find_names(text: str) -> List[str]:
    """Return the packages of which apt-get has no candidate, as it names them (apt-private/private-output.cc)."""
    found = re.findall(r"Package '?([^\s']{1,200})'? has no installation candidate", text)
    found += re.findall(r"(?:Depends|Recommends): (\S{1,200}) (?:\([^)\n]{0,80}\) )?but it is not installable", text)
    names = [name.partition(":")[0] for name in found]
    return sorted(set(names), key=names.index)


def parse_policies(text: str) -> Dict[str, Policy]:
    """Parse `apt-cache policy NAME...`. Since apt 1.1 the priority of a version is in its own line."""
    found: Dict[str, Policy] = {}
    name = ""
    for line in text.splitlines():
        version = re.match(r" (?:\*\*\*|   ) (\S+) (-?\d+)", line)
        if re.match(r"\S+:$", line):
            name = line[:-1].partition(":")[0]
            found[name] = Policy(None, [])
        elif name and line.startswith("  Candidate: "):
            value = line.partition(": ")[2].strip()
            found[name] = found[name]._replace(candidate=None if value.startswith("(") else value)
        elif name and version:
            found[name].versions.append((version.group(1), int(version.group(2))))
    return found


def parse_pins(path: str, text: str) -> List[Pin]:
    """Return the stanzas of a preferences file with names of packages and a priority (apt_preferences(5))."""
    found: List[Pin] = []
    line = 0
    packages: List[str] = []
    versions = ""
    for number, one in enumerate(text.splitlines(), 1):
        name, _, value = one.partition(":")
        if not one.strip():
            packages, versions = [], ""
        elif name == "Package":
            line, packages = number, value.split()
        elif name == "Pin":
            versions = " ".join(value.split())
        elif name == "Pin-Priority" and packages and re.match(r"-?\d+$", value.strip()):
            found.append(Pin(path, line, packages, int(value), versions))
    return found


def pins_package(pattern: str, name: str) -> bool:
    """Return True if a word of a stanza's Package field fits a name: a name, a pattern of glob(7), or a /regex/."""
    if len(pattern) > 1 and pattern[:1] == pattern[-1:] == "/":
        try:
            return bool(re.search(pattern[1:-1], name))
        except re.error:
            return False
    return fnmatch.fnmatchcase(name, pattern.partition(":")[0])


def describe_missing_candidate(name: str, policy: Optional[Policy], pins: List[Pin], providers: List[str]) -> str:
    """Return the cause and remedy; ``policy`` is None where it is not known."""
    if policy is None:
        return (
            "no version of the package %s may be installed: no package source of this host has it, or a pin forbids it "
            "(`apt-cache policy %s` shows which). Enable the source that has it, or change the pin" % (name, name)
        )
    forbidden = [(version, priority) for version, priority in policy.versions if priority < 0]
    if forbidden:
        named = [
            "%s line %d (priority %d)" % (pin.path, pin.line, pin.priority)
            for pin in pins
            if pin.priority < 0 and any(pins_package(one, name) for one in pin.packages)
        ]
        return (
            "a pin forbids the package %s: its version %s has the priority %d, by %s. Change the pin, then run again"
            % (name, forbidden[0][0], forbidden[0][1], " or ".join(named[:3]) or "/etc/apt/preferences or apt.conf")
        )
    if providers:
        return "%s is a virtual package, provided by %s. Choose one of them" % (name, ", ".join(providers[:4]))
    return (
        "other packages name the package %s, but no package source of this host has a version of it for this "
        "architecture. Enable the source that has it" % name
    )


def find_providers(text: str, name: str) -> List[str]:
    """Return the packages that apt-get lists below "Package NAME is a virtual package provided by:"."""
    match = re.search(r"Package %s is a virtual package provided by:\n((?:  \S+.*\n)+)" % re.escape(name), text)
    return [line.split()[0] for line in match.group(1).splitlines()] if match else []
