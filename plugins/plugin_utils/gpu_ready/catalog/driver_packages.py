"""Which packages are a driver, and who publishes them (data: catalog/driver_packages.yml)."""

import re
from collections.abc import Iterable
from typing import Any

from . import data as catalog_data

UNKNOWN = "unknown"
OTHER_NAMES = {UNKNOWN: "an unknown source", "runfile": "NVIDIA's .run installer"}
LIBRARIES, MODULES, PARTS = "libraries", "modules", "parts"


def pattern_text(*kinds: str) -> str:
    """Return the pattern of whole names of packages with these parts of a driver."""
    sets = catalog_data.DRIVER_PACKAGES["packages"].values()
    return "|".join("(?:%s)" % one for names in sets for kind in kinds for one in names[kind])


def driver_pattern() -> str:
    """Return the regular expression that the names of packages of a driver match."""
    return pattern_text(LIBRARIES, MODULES, PARTS)


def module_packages(names: Iterable[str]) -> list[str]:
    pattern = re.compile(pattern_text(MODULES))
    return [name for name in names if pattern.fullmatch(name)]


def publishers() -> dict[str, dict[str, Any]]:
    """Return publishers of drivers by key, in the order in which they are tried."""
    data: dict[str, dict[str, Any]] = catalog_data.DRIVER_PACKAGES["publishers"]
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
