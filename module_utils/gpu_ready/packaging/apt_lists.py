"""apt's package lists as files: those that were never read, and those that a power cut left without their content.

apt puts new lists in their place without waiting for the disk. After a power cut they can be there with their names and
times, but cut off or empty, and ``apt-get update`` takes them for current as long as the Release file stays the same:
packages that the source has are then "not found" for days.
"""

import os
import re
from typing import Callable, Dict, List, Optional, Tuple

FOLDER = "/var/lib/apt/lists"
RELEASE = ("InRelease", "Release")
INDEX = re.compile(r"_Packages(\.\w+)?$")
SIGNED_TO_ITS_END = "-----END PGP SIGNATURE-----"


def find_unread_lists(uris: str, lists: List[str]) -> List[str]:
    """Return the sources whose lists were never read, by ``apt-get update --print-uris`` and the files there."""
    names = re.findall(r"^'[^']*/InRelease' (\S+)", uris, re.MULTILINE)
    return [name for name in names if name not in lists and name[: -len("InRelease")] + "Release" not in lists]


def find_damaged_lists(
    lists: List[str],
    read: Callable[[str], Optional[str]],
    stamp: Callable[[str], Optional[Tuple[int, int]]],
) -> List[str]:
    """Return the files of sources that lost content: lists of another size than their Release file says, and it.

    Without it apt reads the source anew. Lists that are kept compressed have sizes of their own: those hold something.
    """
    found = []
    for release in [name for name in lists if name.endswith(RELEASE)]:
        text = read(os.path.join(FOLDER, release)) or ""
        prefix = re.sub("(In)?Release$", "", release)
        sizes = file_name_of_list(text)
        lost = []
        for name in [one for one in lists if one.startswith(prefix) and INDEX.search(one)]:
            size = (stamp(os.path.join(FOLDER, name)) or (0, 0))[0]
            if size != sizes.get(name[len(prefix) :], size or None):
                lost.append(name)
        cut = release.endswith("InRelease") and SIGNED_TO_ITS_END not in text
        if lost or cut or not text:
            found += [*lost, release]
    return found


def file_name_of_list(release: str) -> Dict[str, int]:
    """Return the sizes in bytes that a Release file gives to uncompressed lists, by the names of apt's files."""
    pairs = re.findall(r"(?m)^ [0-9a-f]{64}\s+(\d+)\s+(\S*Packages)$", release)
    return {path.replace("/", "_"): int(size) for size, path in pairs}
