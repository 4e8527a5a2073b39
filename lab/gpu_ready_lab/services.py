"""The vendor mirror, under its own and the vendors' names, and the archive proxy: all servers that hosts can reach."""

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import fleet, paths


@dataclass(frozen=True)
class Offered:
    """What hosts need to know: the proxy's address, and variables for the inventory."""

    proxy: str | None = None
    variables: dict[str, Any] = field(default_factory=dict)


def start(distributions: Collection[str] | None = None, vendors: str = fleet.NAMES) -> Offered:
    """Start proxy and mirror, with what these distributions need (None: all); return what hosts need to know.

    `vendors` is that of the fleet.
    """
    from . import mirror  # only `up` and `down` need the builders' imports

    info = mirror.ensure_running(paths.cache(), paths.STATE, distributions)
    variables: dict[str, Any] = {
        "gpu_ready_mirror_keys": info.keys,
        "gpu_verify_image": str(info.verify_image),
    }
    if vendors == fleet.MIRROR:
        variables["gpu_ready_mirror"] = info.url
    return Offered(info.proxy, variables)


def status() -> list[str]:
    """Lines with the state of mirror and proxy."""
    try:
        record = json.loads((paths.STATE / "mirror.json").read_text())
    except FileNotFoundError:
        return ["vendor mirror and archive proxy: not running"]
    alive = Path(f"/proc/{record['pid']}").exists()
    words = f"{paths.MIRROR_URL}, {paths.PROXY_URL}" if alive else "ended by itself; see /run/gpu-ready-lab/mirror.log"
    return [f"vendor mirror and archive proxy: {words}"]


def stop() -> None:
    """Stop both."""
    from . import mirror

    mirror.stop(paths.STATE)
