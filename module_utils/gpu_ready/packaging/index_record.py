"""What is known of the packages that the sources of a host offer, and how far that can be relied on."""

from typing import Dict, List, NamedTuple

from ..base.records import Message, Word

FRESH, STALE, UNAVAILABLE = "fresh", "stale", "unavailable"


class PackageIndex(NamedTuple):
    """What the sources of a host offer: versions by package, newest first (packaging/package_index.py).

    ``state``: "fresh", "stale" (lists of ``age`` seconds ago were read) or "unavailable"; ``cause``: why it is not
    fresh. Only a fresh one can say that something is not offered. ``hidden``: why a package that is offered or asked
    for cannot be installed, such as a pin. ``failed``: sources of others that could not be read, each with its file.
    ``download``: bytes of the packages that the plan installs and of what they depend on, 0 where that is not known.
    """

    state: Word = UNAVAILABLE
    versions: Dict[str, List[str]] = {}
    age: int = 0
    cause: Message = ""
    hidden: Dict[str, Message] = {}
    failed: List[Message] = []
    download: int = 0
