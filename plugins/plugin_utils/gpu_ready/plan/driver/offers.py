"""Whether some package source of a host has what is to be added to its adopted driver, in the driver's version.

Nothing is added to a host's sources for an adopted driver, and owners remove or freeze its repository on purpose, so
that no update moves it. For a driver that is to be installed, its source is added.
"""

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.facts.model import Facts
from .....module_utils.gpu_ready.packaging import yum_repos
from ...catalog import driver_sources
from ...catalog.model import Distribution
from ...catalog.settings import Settings
from .. import repository
from ..model import DriverChoice


def is_offered(facts: Facts, settings: Settings, driver: DriverChoice, data: Distribution, name: str) -> bool:
    """Return False only where it is known that no source of the host has the package in the driver's version."""
    disk = facts.driver.on_disk
    installed = facts.packages.installed.get(name)
    if not driver.satisfied or disk is None or (installed and versions.upstream(installed) == disk.version):
        return True
    offered = facts.driver.companions.get(name)
    if offered or (offered is not None and facts.driver.repository):
        return any(versions.upstream(version) == disk.version for version in offered)
    if offered is None and not (facts.yum.sources and facts.driver.repository):
        return True
    # Lists that were never read offer nothing, and dnf was not asked: what counts is whether a source is configured.
    return has_source(facts, settings, driver, data)


def has_source(facts: Facts, settings: Settings, driver: DriverChoice, data: Distribution) -> bool:
    """Return whether the repository of an adopted driver is enabled, or the section that its packages came from."""
    identity = driver_sources.source_entry(data, driver.source, driver.kind or driver_sources.DKMS).get("repository")
    if not identity or repository.find_entry(facts, repository.parameters(identity, settings)):
        return True
    if not facts.yum.sources:
        return False
    release = facts.base.os.version_id or ""
    sections = [one for path, text in facts.yum.sources.items() for one in yum_repos.read_sections(path, text, release)]
    return any(one.enabled and facts.driver.repository in (one.name, *one.urls) for one in sections)
