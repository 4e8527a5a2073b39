"""The files of the catalog, which travel with the collection."""

from pathlib import Path
from typing import Any

import yaml

COLLECTION = Path(__file__).parents[4]
CATALOG = COLLECTION / "catalog"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's own parser is five times slower than libyaml's, which not every build of it has."""


def read(name: str | Path) -> Any:
    """Return the data of a file below catalog/. Raises OSError, yaml.YAMLError."""
    with (CATALOG / name).open(encoding="utf-8") as file:
        return yaml.load(file, Loader=LOADER)
