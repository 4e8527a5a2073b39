"""Which engines of a host read CDI specifications, and which of them cannot read the newer ones of nvidia-ctk."""

import re

from .....module_utils.gpu_ready.containers import docker as docker_engine
from .....module_utils.gpu_ready.facts.model import CdiSpecFacts, Facts
from ...catalog.settings import Settings
from . import docker, docker_packages

NEW = (0, 7)
"""The version of CDI that added groups of device nodes: an engine that does not know it ignores the whole file."""
FIRST = {"docker": (26, 1), "podman": (5, 1), "containerd": (1, 7, 16)}
"""The first release of each engine that reads it, by the release notes of NVIDIA's toolkit 1.19.1."""


def spec_readers(facts: Facts, settings: Settings) -> list[tuple[str, tuple[int, ...] | None]]:
    names = docker.configured_engines(settings)
    toolkit = settings.nvidia_container_runtime_mode == "toolkit"
    found: list[tuple[str, tuple[int, ...] | None]] = []
    text = docker_packages.engine_version(facts, settings)
    if "docker" in names and not toolkit and docker_engine.capabilities(text).cdi != "none":
        found.append(("docker", version_numbers(text or "") or None))
    for name, version in (("podman", facts.engines.podman.version), ("containerd", facts.engines.containerd.version)):
        if name in names and (name == "podman" or not toolkit):
            found.append((name, tuple(version or ()) or None))
    return found


def too_old(facts: Facts, settings: Settings) -> str | None:
    """Return an engine that cannot read CDI 0.7.0 ("podman 4.9.3"), None where all can or their version is unknown."""
    for name, version in spec_readers(facts, settings):
        if version and version < FIRST[name]:
            return "%s %s" % (name, ".".join(str(part) for part in version))
    return None


def is_new(spec: CdiSpecFacts) -> bool:
    return version_numbers(spec.format or "") >= NEW


def version_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a version without what a distribution adds, () where it has none."""
    return tuple(int(part) for part in re.findall(r"\d+", text.split("+")[0])[:3])
