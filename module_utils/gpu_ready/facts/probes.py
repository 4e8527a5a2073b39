"""What a host looks for, as the control node asks it to: that one knows the catalog, and hosts do not."""

import re
from typing import Dict, Iterable, List, NamedTuple


class ManagedHost(NamedTuple):
    """A kind of host whose driver is somebody else's: one of the paths exists, or one of the texts has its pattern."""

    key: str
    paths: List[str] = []
    texts: Dict[str, str] = {}


class Probes(NamedTuple):
    """Patterns of whole names of packages of a driver, by what is in them; names of companions have ``{branch}``.

    ``cuda``: version of libcuda by branch of the driver.
    """

    libraries: str = ""
    modules: str = ""
    parts: str = ""
    companions: List[str] = []
    managed: List[ManagedHost] = []
    cuda: Dict[str, str] = {}

    def driver_packages(self, installed: Dict[str, str]) -> Dict[str, str]:
        """Return the packages that are part of a driver, also of a foreign architecture (libcuda1:i386)."""
        pattern = re.compile("(?:%s)(?::[a-z0-9]+)?" % ("|".join(one for one in self[:3] if one) or r"(?!)"))
        return {name: version for name, version in installed.items() if pattern.fullmatch(name)}

    def deciding_packages(self, names: Iterable[str]) -> List[str]:
        """Return those driver packages that contain libcuda or libnvidia-ml, else those with the kernel module."""
        listed = list(names)
        for pattern in (self.libraries, self.modules):
            found = [name for name in listed if pattern and re.fullmatch(pattern, name)]
            if found:
                return sorted(found)
        return []
