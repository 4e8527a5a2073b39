"""apt's package lists as files: those that were never read, and those that a power cut damaged.

apt renames new lists without waiting for the disk. After a power cut they can have their names and times, but be cut
off or empty, and ``apt-get update`` takes them for current as long as the Release file stays the same: packages of the
source are then "not found" for days.
"""

import os
import re
from typing import Callable, Dict, List, Optional, Tuple

DIRECTORY = "/var/lib/apt/lists"
RELEASE = ("InRelease", "Release")
INDEX = re.compile(r"_Packages(\.\w+)?$")
SIGNED_TO_ITS_END = "-----END PGP SIGNATURE-----"


def find_unread_lists(uris: str, lists: List[str]) -> List[str]:
    """Return sources that were never read, by ``apt-get update --print-uris`` and the names of existing lists."""
    names = re.findall(r"^'[^']*/InRelease' (\S+)", uris, re.MULTILINE)
    return [name for name in names if name not in lists and name[: -len("InRelease")] + "Release" not in lists]


def find_damaged_lists(
    lists: List[str],
    read: Callable[[str], Optional[str]],
    stamp: Callable[[str], Optional[Tuple[int, int]]],
) -> List[str]:
    """Return lists whose size differs from their Release file, and that file, without which apt reads the source again.

    Lists that are kept compressed have other sizes: those must not be empty.
    """
    found = []
    for release in [name for name in lists if name.endswith(RELEASE)]:
        text = read(os.path.join(DIRECTORY, release)) or ""
        prefix = re.sub("(In)?Release$", "", release)
        sizes = parse_list_sizes(text)
        lost = []
        for name in [one for one in lists if one.startswith(prefix) and INDEX.search(one)]:
            size = (stamp(os.path.join(DIRECTORY, name)) or (0, 0))[0]
            if size != sizes.get(name[len(prefix) :], size or None):
                lost.append(name)
        cut = release.endswith("InRelease") and SIGNED_TO_ITS_END not in text
        if lost or cut or not text:
            found += [*lost, release]
    return found


def parse_list_sizes(release: str) -> Dict[str, int]:
    """Return sizes in bytes of uncompressed lists in a Release file, by the names of apt's files."""
    pairs = re.findall(r"(?m)^ [0-9a-f]{64}\s+(\d+)\s+(\S*Packages)$", release)
    return {path.replace("/", "_"): int(size) for size, path in pairs}
