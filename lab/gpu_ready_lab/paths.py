"""Paths of the lab: a cache that outlives it, a state that does not, and a directory in the checkout."""

import os
from pathlib import Path

STATE = Path("/run/gpu-ready-lab")
DATA = Path(__file__).resolve().parent / "data"
REPO = Path(__file__).resolve().parents[2]

BRIDGE = "grl0"
NETWORK = "gpu-ready-lab"
ADDRESS = "10.199.0.1"
SUBNET = "10.199.0.0/24"
PREFIX = ADDRESS.rsplit(".", 1)[0]

MIRROR_URL = f"http://{ADDRESS}:8080"
PROXY_URL = f"http://{ADDRESS}:3142"


def cache() -> Path:
    """The directory of what is kept between labs (images, packages, compiler cache)."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "gpu-ready-lab"


def sources(directory: Path) -> list[Path]:
    """Return the files below a directory of the checkout, without the bytecode that Python keeps beside them."""
    return sorted(path for path in directory.rglob("*") if path.is_file() and path.parent.name != "__pycache__")


def fleet_directory(name: str) -> Path:
    """Return the directory with inventory, keys and ssh configuration of a fleet."""
    return REPO / ".lab" / name
