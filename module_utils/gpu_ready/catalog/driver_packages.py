"""Which packages are a driver, and who published an installed one (data: catalog/driver_packages.yml)."""

import re
from typing import Any, Dict, FrozenSet, Iterable, List, NamedTuple, Optional

from . import data as catalog_data
from .model import Distribution

UNKNOWN = "unknown"
OTHER_NAMES = {UNKNOWN: "an unknown source", "runfile": "NVIDIA's .run installer"}
LIBRARIES, MODULES, PARTS = "libraries", "modules", "parts"


class Place(NamedTuple):
    """A repository that has an installed package: of apt its URL, suite and component; of RPMs also its section."""

    url: str
    suite: str = ""
    component: str = ""
    section: str = ""


class PackageEvidence(NamedTuple):
    """What the package manager says of an installed package. ``vendor``: vendor and packager of an RPM."""

    name: str
    version: str
    places: List[Place] = []
    vendor: str = ""


class DriverOrigin(NamedTuple):
    """``publisher``: a key of the catalog or "unknown". ``place``: the repository, "" where none is known.

    ``companions``: the offered versions of packages of services beside the driver, {} where nobody was asked.
    """

    publisher: str
    place: str = ""
    companions: Dict[str, List[str]] = {}


_packages: Dict[FrozenSet[str], "re.Pattern[str]"] = {}


def _pattern(*kinds: str) -> "re.Pattern[str]":
    key = frozenset(kinds)
    if key not in _packages:
        sets = catalog_data.DRIVER_PACKAGES["packages"].values()
        _packages[key] = re.compile("|".join("(?:%s)" % one for names in sets for kind in kinds for one in names[kind]))
    return _packages[key]


def driver_packages(installed: Dict[str, str]) -> Dict[str, str]:
    pattern = _pattern(LIBRARIES, MODULES, PARTS)
    return {name: version for name, version in installed.items() if pattern.fullmatch(name)}


def deciding_packages(names: Iterable[str]) -> List[str]:
    """Return those driver packages that contain libcuda or libnvidia-ml, else those with the kernel module."""
    listed = list(names)
    for kind in (LIBRARIES, MODULES):
        found = [name for name in listed if _pattern(kind).fullmatch(name)]
        if found:
            return sorted(found)
    return []


def module_packages(names: Iterable[str]) -> List[str]:
    return [name for name in names if _pattern(MODULES).fullmatch(name)]


def publishers() -> Dict[str, Dict[str, Any]]:
    """Return publishers of drivers by key, in the order in which they are tried."""
    data: Dict[str, Dict[str, Any]] = catalog_data.DRIVER_PACKAGES["publishers"]
    return data


def publisher_name(key: str) -> str:
    entry = publishers().get(key) or {"name": OTHER_NAMES.get(key, key)}
    return str(entry["name"])


def is_archive_publisher(key: str) -> bool:
    """Return True for the distribution's own archive, whichever of its series."""
    return bool(publishers().get(key, {}).get("archive"))


def source_of_publisher(key: str) -> str:
    """Return the driver source that a publisher is; the publisher itself where gpu-ready installs nothing from it."""
    return str(publishers().get(key, {}).get("source", key))


def find_origin(found: List[PackageEvidence], packages: Iterable[str], data: Optional[Distribution]) -> DriverOrigin:
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


def _of(entry: Dict[str, Any], what: str, kind: str) -> Optional[str]:
    value = (entry.get(what) or {}).get(kind)
    return None if value is None else str(value)


def _by_place(entry: Dict[str, Any], one: PackageEvidence, kind: str, data: Optional[Distribution]) -> Optional[str]:
    for place in one.places:
        archive = entry.get("archive") and data is not None and is_archive(place, data)
        section = place.section and entry.get("sections") and re.search(entry["sections"], place.section)
        if archive or section or any(re.search(url, place.url) for url in entry.get("urls") or []):
            return " ".join(part for part in (place.url or place.section, place.suite) if part)
    return None


def _by_vendor(entry: Dict[str, Any], one: PackageEvidence, kind: str, data: Optional[Distribution]) -> Optional[str]:
    vendors = entry.get("vendors")
    return "" if vendors and one.vendor and re.search(vendors, one.vendor, re.IGNORECASE) else None


def _by_revision(entry: Dict[str, Any], one: PackageEvidence, kind: str, data: Optional[Distribution]) -> Optional[str]:
    revision = _of(entry, "revisions", kind)
    return "" if revision and not one.places and re.search(revision, one.version) else None


def is_archive(place: Place, data: Distribution) -> bool:
    """Return True for the distribution's own archive, on any mirror.

    Its suites, and the components of its driver source.
    """
    components = (data["driver_sources"].get("distro") or {}).get("components") or []
    codename = data.get("codename")
    return bool(codename and place.suite.split("-")[0] == codename and place.component in components)
