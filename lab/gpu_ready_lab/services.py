"""The vendor mirror and the archive proxy beside the hosts: their only ways out."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Offered:
    """What hosts are told: the proxy's address, and variables for the inventory."""

    proxy: str | None = None
    variables: dict[str, Any] = field(default_factory=dict)


def start() -> Offered:
    """Start proxy and mirror."""
    return Offered()


def status() -> list[str]:
    """Return lines that say what runs."""
    return []


def stop() -> None:
    """Stop both."""
