"""The files of the catalog, which travel with the collection."""

from pathlib import Path
from typing import Any, TextIO

import yaml

COLLECTION = Path(__file__).parents[4]
CATALOG = COLLECTION / "catalog"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The safe loader with libyaml's parser, which not every build of PyYAML has: its own is five times slower."""


def read(name: str | Path) -> Any:
    """Return the data of a file below catalog/. Raises OSError, yaml.YAMLError."""
    with (CATALOG / name).open(encoding="utf-8") as file:
        return parse(file)


def parse(text: str | TextIO) -> Any:
    """Return the data of a text. Raises yaml.YAMLError."""
    loader = LOADER(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()
