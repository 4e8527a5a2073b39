"""Packages that the owner of a host hides from its package manager: refused before the first change.

Only what is certain is refused: a pin of all versions with a negative priority, ``exclude`` of dnf itself, and a
version lock of the headers of another kernel. What else hides a package is reported by the package manager.
"""

import fnmatch
import re

from ....module_utils.gpu_ready.facts.model import Facts
from ....module_utils.gpu_ready.packaging.apt_policy import Pin, parse_pins, pins_package
from ....module_utils.gpu_ready.packaging.manager import list_names
from ....module_utils.gpu_ready.packaging.version_match import version_matches
from . import repository
from .model import Refusal, Step

PREFERENCES = repository.PREFERENCES[: -len(".d")]
"""The main file, which apt reads before those of the directory."""
ALL_VERSIONS = ("release *", "version *", "release a=*", "origin *")
"""The field Pin where it is of every version (apt_preferences(5))."""
WITH_VERSION = re.compile(r"^(.+?)-((?:\d+:)?\d[^-]*-[^-]+)$")
"""A package of dnf with its version, such as kernel-devel-5.14.0-570.el9.x86_64."""


def refusals(facts: Facts, steps: list[Step]) -> list[Refusal]:
    """Return the refusal of packages that steps install and a setting of the owner hides."""
    pins = read_pins(facts)
    hidden: dict[str, list[str]] = {}
    for name in [name for step in steps for name in packages_to_install(facts, step)]:
        place = find_pin(name, pins) if facts.apt.sources else find_line(name, facts)
        if place:
            hidden.setdefault(place, []).append(name)
    return [
        Refusal(
            "package_hidden",
            "%s hides %s, which this run installs" % (place, list_names(names)),
            "change that line, then run this again",
        )
        for place, names in hidden.items()
    ]


def read_pins(facts: Facts) -> list[Pin]:
    """Return the stanzas of all files that apt reads, in its order: names without an extension, and with .pref."""
    read = [name for name in facts.apt.pins if name == PREFERENCES or "." not in name or name.endswith(".pref")]
    found = []
    for name in sorted(read, key=lambda name: (name != PREFERENCES, name)):
        path = name if name == PREFERENCES else "%s/%s" % (repository.PREFERENCES, name)
        found += parse_pins(path, facts.apt.pins[name] or "")
    return found


def packages_to_install(facts: Facts, step: Step) -> list[str]:
    """Return the packages that a step cannot do without and that are not installed in the requested version."""
    if step.action != "install":
        return []
    found = []
    for one in [*(getattr(step.params, "pin_packages", None) or []), *(getattr(step.params, "packages", None) or [])]:
        name, version = (one, None) if isinstance(one, str) else (one.name, one.version)
        installed = facts.packages.installed.get(name)
        if installed is None or not version_matches(version, installed):
            found.append(name)
    return found


def find_pin(name: str, pins: list[Pin]) -> str:
    """Return the stanza that forbids a package.

    The first stanza that names it decides, before the first with a pattern for it (apt_preferences(5): records of the
    specific form come first).
    """
    fitting = [pin for pin in pins if any(pins_package(one, name) for one in pin.packages)]
    first = next(iter([pin for pin in fitting if name in pin.packages] or fitting), None)
    if first is None or first.priority >= 0 or first.versions not in ALL_VERSIONS:
        return ""
    return "%s line %d (priority %d)" % (first.path, first.line, first.priority)


def find_line(name: str, facts: Facts) -> str:
    """Return the line that hides a package from dnf."""
    match = WITH_VERSION.match(name)
    plain = match.group(1) if match else name
    for one in facts.yum.hiding:
        if not one.locks and any(fnmatch.fnmatch(word, pattern) for word in (name, plain) for pattern in one.patterns):
            return "%s line %d (%s)" % (one.path, one.line, one.text)
    # dnf5 writes name and version in separate lines of versionlock.toml.
    locks = [one for one in facts.yum.hiding if one.locks and plain in one.patterns and re.search(r"-\d", one.text)]
    version = match.group(2).rpartition(".")[0] if match else ""
    if version and locks and not any(version in one.text for one in locks):
        return "%s line %d (%s)" % (locks[0].path, locks[0].line, locks[0].text)
    return ""
