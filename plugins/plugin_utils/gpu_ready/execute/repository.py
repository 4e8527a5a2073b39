# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The step of each part that has packages to make available."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from ....module_utils.gpu_ready.packaging import apt_components, yum_sections
from ....module_utils.gpu_ready.packaging.repository import (
    format_deb822,
    format_preferences,
    format_repo_file,
    parse_repository,
)
from ..catalog import model as catalog
from ..plan.changes import FactChange, add
from .effects import Before
from .model import INSTALL, Execution, Parameters, given

SIGNERS = {"apt": "apt.signers", "yum": "yum.keys"}
ARCHITECTURE = "amd64"
"""The only one that the catalog has for apt."""


def add_repositories(step: Parameters, part: Execution) -> None:
    """Add repositories, or turn on what the host has of them (``enable``, ``components``)."""
    part.run("gpu_repository", given(step, "enable", "components", "repositories"), INSTALL)


def repository_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the new and the changed files of apt or dnf; a key is named by its file."""
    apt, yum, system = before.facts.apt, before.facts.yum, before.facts.base
    texts: dict[str, str] = {}
    for path, text in apt.sources.items() if step.get("components") else ():
        codename = catalog.distro(str(system.distro))["codename"]
        texts[path] = apt_components.enable_components(path, text, step["components"], codename).after
    for path, text in yum.sources.items() if step.get("enable") else ():
        texts[path] = yum_sections.enable_sections(text, step["enable"])
    written = [path for path, text in texts.items() if {**apt.sources, **yum.sources}[path] != text]
    kind = "yum" if yum.sources else "apt"
    for one in step.get("repositories") or []:
        repository, pin = parse_repository(one), one.get("pin")
        if not repository.adopted:
            rpm = repository.kind == "rpm"
            texts[one["list"]] = format_repo_file(repository) if rpm else format_deb822(repository, ARCHITECTURE)
            written.append(one["list"])
            yield add(SIGNERS[kind], {one["keyring"]: [repository.fingerprint]} if repository.fingerprint else {})
        yield add(f"{kind}.keyrings", [PurePosixPath(one["keyring"]).name])
        written.append(one["keyring"])
        if pin:
            name = PurePosixPath(pin["path"]).name
            yield add("apt.preferences", [name])
            yield add("apt.pins", {name: format_preferences(pin)})
            written.append(pin["path"])
    yield add(f"{kind}.sources", texts)
    yield add("runtime.manifest.files", written)
