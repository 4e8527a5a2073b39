"""Newer versions that wait in the package sources of a host, by component: for an audit that asks for them."""

from collections.abc import Iterator

from ....module_utils.gpu_ready.base import versions
from ....module_utils.gpu_ready.facts.model import Facts
from ....module_utils.gpu_ready.packaging.index_record import FRESH
from ..catalog.settings import Settings
from ..report.host_audit import AuditCheck
from . import security
from .containers.docker_packages import find_installed_source, offered_sources
from .containers.runtime_cleanup import TOOLKIT_PACKAGES
from .driver.point_release import can_move, moved_packages, newest_release
from .index_versions import common_versions
from .model import Choices, RepositoryParams
from .offered import IndexRequest, needed_sources

NEWER = "newer_"
"""Beginning of the names of these checks, before that of the component."""


def update_request(facts: Facts, settings: Settings, choices: Choices) -> IndexRequest | None:
    """Return what the sources are asked about the components that a host has, None for none of them."""
    if settings.gpu_ready_index == "none" or facts.base.distro is None:
        return None
    names = [name for _, names in components(facts, choices) for name in names]
    return IndexRequest(names, RepositoryParams(), needed_sources(facts, settings)) if names else None


def components(facts: Facts, choices: Choices) -> Iterator[tuple[str, list[str]]]:
    """Yield the installed components with the packages whose versions are theirs."""
    driver = choices.driver
    if driver and can_move(facts, driver) and moved_packages(facts, driver):
        yield security.DRIVER, moved_packages(facts, driver)
    if security.installed_toolkit(facts):
        yield security.TOOLKIT, [name for name in TOOLKIT_PACKAGES if name in facts.packages.installed]
    source = find_installed_source(facts)
    if source:
        yield "docker", offered_sources(facts)[source].engine[:1]


def update_checks(facts: Facts, choices: Choices) -> list[AuditCheck]:
    """Report what is installed and the newest that is offered. A newer one that waits is no drift."""
    offered = facts.offered
    if offered is None:
        return []
    found = []
    for component, names in components(facts, choices):
        version = versions.upstream(facts.packages.installed[names[0]])
        if offered.state != FRESH:
            why = "what its source offers is not known: %s" % offered.cause
            found.append(AuditCheck(NEWER + component, None, version, None, why))
            continue
        driver = choices.driver
        newest = (
            newest_release(facts, driver)
            if component == security.DRIVER and driver
            else next(iter(common_versions(facts, names)), "")
        )
        waits = bool(newest) and versions.key(newest) > versions.key(version)
        why = "%s is offered, %s is installed" % (newest, version) if waits else ""
        found.append(AuditCheck(NEWER + component, newest or version, version, None if waits else True, why))
    return found
