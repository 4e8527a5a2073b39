"""Who published an installed driver, by what the package manager of its host says (catalog/driver_packages.yml)."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.facts.model import PackageEvidence, Place
from ..catalog.driver_packages import UNKNOWN, publishers
from ..catalog.model import Distribution

COMPANIONS = ("persistenced", "fabricmanager", "imex")
"""Fields of a driver source with the packages of services beside the driver."""


class DriverOrigin(NamedTuple):
    """``publisher``: a key of the catalog or "unknown". ``place``: the repository, "" where none is known."""

    publisher: str
    place: str = ""


def companion_patterns(data: Distribution | None) -> list[str]:
    """Return the names, with ``{branch}``, that any source of a distribution has for the services beside a driver."""
    found = set()
    for entry in (data["driver_sources"] if data else {}).values():
        for name in [entry.get(field) for field in COMPANIONS]:
            found |= set(name.values() if isinstance(name, dict) else [name] if name else [])
    return sorted(found)


def find_origin(found: list[PackageEvidence], packages: Iterable[str], data: Distribution | None) -> DriverOrigin:
    """Return who published a driver by the evidence of its deciding packages; ``packages``: all of the driver.

    A repository that has the installed version is the strongest evidence, then the vendor, then the version's revision,
    then a package that only one publisher has.
    """
    kind = data["ids"][0] if data else ""
    for attribute in (_by_place, _by_vendor, _by_revision):
        for one in found:
            for key, entry in publishers().items():
                only = entry.get("only")
                fits = only is None or (kind in only and re.fullmatch(only[kind], one.name))
                place = attribute(entry, one, kind, data) if fits else None
                if place is not None:
                    return DriverOrigin(key, place)
    for key, entry in publishers().items():
        alone = entry.get("names") if data is None or data["package_manager"] != "apt" else _of(entry, "beside", kind)
        if alone and any(re.fullmatch(alone, name) for name in packages):
            return DriverOrigin(key)
    return DriverOrigin(UNKNOWN)


def _of(entry: dict[str, Any], what: str, kind: str) -> str | None:
    value = (entry.get(what) or {}).get(kind)
    return None if value is None else str(value)


def _by_place(entry: dict[str, Any], one: PackageEvidence, kind: str, data: Distribution | None) -> str | None:
    for place in one.places:
        archive = entry.get("archive") and data is not None and is_archive(place, data)
        section = place.section and entry.get("sections") and re.search(entry["sections"], place.section)
        if archive or section or any(re.search(url, place.url) for url in entry.get("urls") or []):
            return " ".join(part for part in (place.url or place.section, place.suite) if part)
    return None


def _by_vendor(entry: dict[str, Any], one: PackageEvidence, kind: str, data: Distribution | None) -> str | None:
    vendors = entry.get("vendors")
    return "" if vendors and one.vendor and re.search(vendors, one.vendor, re.IGNORECASE) else None


def _by_revision(entry: dict[str, Any], one: PackageEvidence, kind: str, data: Distribution | None) -> str | None:
    revision = _of(entry, "revisions", kind)
    return "" if revision and not one.places and re.search(revision, one.version) else None


def is_archive(place: Place, data: Distribution) -> bool:
    """Return True for the distribution's own archive, on any mirror.

    Its suites, and the components of its driver source.
    """
    components = (data["driver_sources"].get("distro") or {}).get("components") or []
    codename = data.get("codename")
    return bool(codename and place.suite.split("-")[0] == codename and place.component in components)
