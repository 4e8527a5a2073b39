"""Which engines of a host read CDI specifications, and which of them cannot read the newer ones of nvidia-ctk."""

import re
from typing import Any, Dict, List, Optional, Tuple

from ...containers import docker as dockers
from . import docker

NEW = (0, 7)
"""The version of CDI that brought groups of device nodes: an engine that does not know it leaves the whole file out."""
FIRST = {"docker": (26, 1), "podman": (5, 1), "containerd": (1, 7, 16)}
"""The first release of each engine that reads it, by the release notes of NVIDIA's toolkit 1.19.1."""


def readers(observed: Dict[str, Any], wanted: Dict[str, Any]) -> List[Tuple[str, Optional[Tuple[int, ...]]]]:
    """Return the engines that give containers GPUs by a specification in this mode, with their versions."""
    names = wanted.get("nvidia_container_runtime_engines") or ["docker"]
    toolkit = (wanted.get("nvidia_container_runtime_mode") or "toolkit") == "toolkit"
    found = []  # type: List[Tuple[str, Optional[Tuple[int, ...]]]]
    text = docker.version(observed, wanted)
    if "docker" in names and not toolkit and dockers.capabilities(text).cdi != "none":
        found.append(("docker", numbers(text or "") or None))
    for name in ("podman", "containerd"):
        if name in names and (name == "podman" or not toolkit):
            found.append((name, tuple(observed["engines"][name]["version"] or ()) or None))
    return found


def too_old(observed: Dict[str, Any], wanted: Dict[str, Any]) -> Optional[str]:
    """Return an engine that does not read CDI 0.7.0 (``podman 4.9.3``), None where all do or do not tell."""
    for name, version in readers(observed, wanted):
        if version and version < FIRST[name]:
            return "%s %s" % (name, ".".join(str(part) for part in version))
    return None


def is_new(spec: Dict[str, Any]) -> bool:
    """Return whether a specification that was observed asks for CDI 0.7.0 or newer."""
    return numbers(spec.get("format") or "") >= NEW


def numbers(text: str) -> Tuple[int, ...]:
    """Return the numbers of a version without what a distribution adds, () where it has none."""
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+")[0])[:3])
