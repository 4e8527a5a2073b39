"""What the package sources of a host offer, as a part of its plan: what they are asked, and what follows.

They are asked once, after a first plan, where a step installs packages. A host in the desired state is asked nothing.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ....module_utils.gpu_ready.base import versions
from ....module_utils.gpu_ready.facts.model import Facts
from ....module_utils.gpu_ready.packaging.index_record import FRESH, STALE
from ....module_utils.gpu_ready.packaging.manager import HEADERS, describe_missing_headers
from ....module_utils.gpu_ready.packaging.version_match import version_matches
from ..catalog import driver_packages, driver_sources
from ..catalog import model as catalog
from ..catalog.settings import Settings
from . import parts, repository, security
from .containers.runtime_cleanup import TOOLKIT_PACKAGES
from .driver import candidates, point_release
from .model import Choices, Notice, PackageTarget, Refusal, RepositoryParams, RepositoryRequest, Step, refuse

INSTALLING = (
    "kernel_headers.install",
    "nvidia_driver.detect",
    "nvidia_driver.install",
    "nvidia_driver.fabricmanager",
    "nvidia_driver.imex",
    "nvidia_driver.persistenced",
    "cuda_toolkit.install",
    "cudnn.packages",
    "docker_engine.install",
    "nvidia_container_runtime.install",
)
"""Steps whose packages must be offered."""
MOST_SHOWN = 6
DAY = 86400


class IndexRequest(NamedTuple):
    """What gpu_package_index gets: names or patterns, the sources that the plan adds.

    ``needed``: URLs (apt) and sections (dnf) of sources of the host on which the answer depends. ``install`` and
    ``remove``: the packages of the plan, for the size of its downloads.
    """

    names: list[str]
    sources: RepositoryParams
    needed: list[str]
    install: list[PackageTarget] = []
    remove: list[str] = []


def index_request(
    facts: Facts, settings: Settings, choices: Choices, steps: Sequence[Step], release: str, part: str = ""
) -> IndexRequest | None:
    """Return what the sources of a host are asked, None where nothing depends on them.

    ``release``: the point release to which an installed driver is moved (driver/point_release.py).
    """
    resumed = release == point_release.NEWEST and point_release.release_in_progress(facts)
    if settings.gpu_ready_index == "none" or facts.base.distro is None or resumed:
        return None  # a resumed upgrade has all downloads, and needs no network
    targets = [target for _, target in missing_targets(facts, choices, steps)]
    names = [target.name for target in targets]
    names += point_release.names_to_ask(facts, choices.driver, release)
    if (
        part in ("", parts.RUNTIME)
        and (choices.runtime or choices.engines)
        and security.may_fix_toolkit(facts, settings)
    ):
        names += TOOLKIT_PACKAGES
    if not names:
        return None
    own = [step.params for step in steps if isinstance(step.params, RepositoryParams)]
    sources = RepositoryParams(
        list({one.id: one for params in own for one in params.repositories}.values()),
        components=sorted({name for params in own for name in params.components or ()}) or None,
        enable=sorted({name for params in own for name in params.enable or ()}) or None,
    )
    removed = {name for step in steps for name in getattr(step.params, "remove", []) if step.id in INSTALLING}
    return IndexRequest(sorted(set(names)), sources, needed_sources(facts, settings), targets, sorted(removed))


def unlisted_branch(facts: Facts, settings: Settings, refused: Sequence[Refusal]) -> IndexRequest | None:
    """Return what is asked about a requested branch that no list of the catalog has: only the sources know.

    None where something else refuses the host too.
    """
    request = candidates.parse_request(settings)
    alone = {one.code for one in refused} <= {"branch_not_carried", "source_impossible"}
    if request.branch is None or not alone or settings.gpu_ready_index == "none" or facts.base.distro is None:
        return None
    data, kernel = catalog.distro(facts.base.distro), facts.base.kernel.running
    names: set[str] = set()
    added: dict[str, RepositoryRequest] = {}
    for source in candidates.source_order(facts, request, data):
        for kind in driver_sources.module_kinds(data, source):
            for flavour in driver_sources.FLAVOURS:
                names |= {
                    *driver_sources.packages(data, source, request.branch, request.profile, flavour, kind, kernel)
                }
        entry = driver_sources.source_entry(data, source)
        named = [entry["repository"]] if entry.get("repository") else []
        third = [repository.parameters(name, settings, source == "distro") for name in named]
        added.update({one.id: one for one in repository.missing_repositories(facts, third)})
    sources = [*added.values()]
    if not names or repository.source_refusals(facts, sources):
        return None
    return IndexRequest(sorted(names), RepositoryParams(sources), needed_sources(facts, settings))


def needed_sources(facts: Facts, settings: Settings) -> list[str]:
    """Return those sources of the host which serve a repository of the catalog for its system."""
    data = catalog.distro(facts.base.distro or "")
    names = {str(data.get("container_toolkit") or "container-toolkit")}
    for source in data["driver_sources"].values():
        names |= {source["repository"]} if source.get("repository") else set()
        names |= {*(source.get("with_repositories") or [])}
    found = []
    for name in sorted(names):
        requested = repository.parameters(name, settings)
        entry = repository.find_entry(facts, requested)
        if entry:
            found.append(entry.name if requested.kind == "rpm" else requested.url)
    return found


def missing_targets(facts: Facts, choices: Choices, steps: Sequence[Step]) -> Iterator[tuple[Step, PackageTarget]]:
    """Yield the packages that steps install, with their steps.

    Not those of a driver that is restored: its files are kept, whether or not a source still has them.
    """
    installed = facts.packages.installed
    restored = bool(choices.driver and choices.driver.exact)
    for step in steps:
        if step.id not in INSTALLING or (restored and step.role == "nvidia_driver"):
            continue
        for given in [*getattr(step.params, "packages", []), *getattr(step.params, "pin_packages", [])]:
            target = PackageTarget(given) if isinstance(given, str) else PackageTarget(given.name, given.version)
            present = installed.get(target.name)
            if present is None or not version_matches(target.version, present):
                yield step, target


def refusals(facts: Facts, choices: Choices, steps: Sequence[Step]) -> list[Refusal]:
    """Refuse what the sources of a host are known not to offer, before anything is changed; one refusal for a step."""
    index = facts.offered
    if index is None or index.state != FRESH:
        return []
    found: dict[str, Refusal] = {}
    for step, target in missing_targets(facts, choices, steps):
        offers = index.versions.get(target.name)
        if offers is None or step.id in found:  # not asked
            continue
        hidden, any_version = index.hidden.get(target.name, ""), target.version is None
        target = with_branch(choices, step, target)
        if any(version_matches(target.version, one) for one in offers) and not (any_version and hidden):
            continue
        found[step.id] = not_offered(facts, target, offers, hidden)
    return list(found.values())


def with_branch(choices: Choices, step: Step, target: PackageTarget) -> PackageTarget:
    """Return a package of the driver in its branch where the step requests any version, by the name that it has.

    A name of an ended branch becomes one for the packages of another branch (nvidia-driver-590 of Ubuntu's archive).
    Modules for one kernel have versions of the kernel.
    """
    branch = choices.driver.branch if choices.driver and step.id == "nvidia_driver.install" else None
    tied = re.fullmatch(driver_packages.driver_pattern(), target.name) and not target.name.startswith("linux-")
    return target._replace(version="%d.*" % branch) if branch and tied and target.version is None else target


def not_offered(facts: Facts, target: PackageTarget, offers: list[str], hidden: str) -> Refusal:
    index = facts.offered
    assert index
    unread = ". Not read were: %s" % "; ".join(index.failed[:3]) if index.failed else ""
    if hidden:
        cause, _, remedy = hidden.partition(". ")
        return refuse("not_offered", cause, (remedy[:1].lower() + remedy[1:]).rstrip(".") or "change that")
    if HEADERS.match(target.name):
        cause, _, remedy = describe_missing_headers(target.name, unread).partition(". ")
        return refuse("not_offered", cause, remedy[:1].lower() + remedy[1:])
    requested = versions.branch(target.version or "0")
    offers = sorted(
        offers, key=lambda one: versions.branch(versions.upstream(one)) != requested
    )  # the branch first, each newest first
    more = len(offers) - MOST_SHOWN
    shown = ", ".join(offers[:MOST_SHOWN]) + (" and %d more" % more if more > 0 else "")
    what = " ".join(filter(None, [target.name, target.version]))
    message = "%s is in no package source of this host (offered: %s)%s" % (what, shown or "none", unread)
    remedy = (
        "choose a version that is offered, or enable the source that has this one"
        if offers
        else "choose another branch, version or source of it, or enable the source that has it"
    )
    return refuse("not_offered", message, remedy)


def warnings(facts: Facts) -> list[Notice]:
    """Say how far the answer of the host's sources can be relied on."""
    index = facts.offered
    if index is None:
        return []
    found = [
        Notice(
            "source_unread",
            "a package source of this host could not be read: %s" % one,
            "repair that source or remove it; nothing of this plan needs it",
        )
        for one in index.failed
    ]
    if index.state == FRESH:
        return found
    age = "%d days" % (index.age // DAY) if index.age >= 2 * DAY else "%d hours" % (index.age // 3600)
    old = "what the package sources of this host offer is known as of %s ago" % age
    unknown = "what the package sources of this host offer is not known"
    return [
        Notice(
            "index_stale" if index.state == STALE else "index_unavailable",
            "%s, so the catalog of %s decides (%s)"
            % (old if index.state == STALE else unknown, catalog.DATE, index.cause),
            "repair the source, or set gpu_ready_index to none for hosts that cannot reach theirs",
        ),
        *found,
    ]
