"""Which CUDA toolkits a host gets: what its driver and its oldest GPU support; one of them is the default."""

from typing import Any, NamedTuple

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.cuda import toolkit as toolkit_names
from .....module_utils.gpu_ready.facts.model import Facts, ToolkitFacts
from ...catalog import driver_sources
from ...catalog import model as catalog
from ...catalog.settings import Settings
from .. import repository
from ..driver import alternatives
from ..driver.refusals import not_in_catalog
from ..model import (
    Choices,
    CudaChoice,
    Decision,
    Notice,
    Refusal,
    RepositoryParams,
    Step,
    ToolkitChoice,
    VariableChange,
    notify,
    refuse,
)
from . import requests, steps
from .requests import NONE, RUNFILE, ToolkitRequest

REPOSITORY_SOURCE = "cuda_repo"
NONE_FITS = VariableChange({"cuda_toolkit_source": [NONE]})
ALIAS = toolkit_names.ALIAS


class ToolkitInput(NamedTuple):
    """What the choice of toolkits depends on. ``driver``: its version when the plan is done, None where it is unknown.

    ``removed``: versions to remove. ``complete``: the complete toolkits that stay, by version.
    """

    facts: Facts
    settings: Settings
    driver: str | None
    source: str
    removed: list[str]
    complete: dict[str, ToolkitFacts]


def plan_cuda(facts: Facts, settings: Settings, choices: Choices) -> Decision[CudaChoice]:
    """Return the toolkits and the steps to them; toolkits that are installed already are kept as they are."""
    removed = requests.versions_to_remove(settings)
    complete = {one.version: one for one in complete_toolkits(facts) if one.version not in removed}
    driver = driver_version(facts, choices)
    given = ToolkitInput(facts, settings, driver, settings.cuda_toolkit_source, removed, complete)
    refusals = requests.contradictions(settings) + _removal_refusals(given)
    if refusals:
        return Decision(None, [], refusals)
    if given.source == NONE:
        return _without_source(given)
    requested = requests.requested_toolkits(settings)
    warnings: list[Notice] = []
    if requested:
        refusals = _support_refusals(given, requested)
        warnings = [notice for request in requested for notice in _unknown_notices(given, request)]
    else:
        requested = [ToolkitRequest(version) for version in _available_versions(given)[-1:]]
    todo = [request for request in requested if steps.difference(request, complete.get(request.version))]
    refusals = refusals or [refusal for request in todo for refusal in _origin_refusals(given, request)]
    refusals = refusals or _source_refusals(given, todo)
    if refusals:
        return Decision(None, [], refusals)
    if not requested:
        return Decision(CudaChoice(given.source), steps.removal(facts, removed), [], [_none_fits(given)])
    return _install_and_arrange(given, choices, requested, todo, warnings)


def _install_and_arrange(
    given: ToolkitInput,
    choices: Choices,
    requested: list[ToolkitRequest],
    todo: list[ToolkitRequest],
    warnings: list[Notice],
) -> Decision[CudaChoice]:
    facts, settings = given.facts, given.settings
    chosen = [request.version for request in requested]
    default = requests.requested_default(settings) or max(chosen, key=versions.key)
    choice = CudaChoice(given.source, _toolkit_choices(chosen, given.complete), default)
    refusals = _default_refusals(given, default, chosen)
    if refusals:
        return Decision(choice, [], refusals)
    found: list[Step] = []
    reasons = [steps.difference(request, given.complete.get(request.version)) for request in todo]
    if todo and given.source == RUNFILE:
        found = [steps.run_installers(facts, settings, todo, reasons)]
    elif todo:
        entry = _repository_entry(facts)
        missing = steps.missing_repositories(facts, settings, choices, entry["repository"]) if entry else []
        refusals = repository.source_refusals(facts, missing)
        if refusals:
            return Decision(choice, [], refusals)
        if missing:
            reason = "CUDA %s comes from %s" % (" and ".join(request.text for request in todo), missing[0].url)
            found = [Step("cuda_toolkit.repository", reason, params=RepositoryParams(repositories=missing))]
        found.append(steps.install_packages(todo, reasons))
        warnings = warnings + _unverified(facts, todo)
    profile = requests.requested_profile(settings)
    prefix = {NONE: None, requests.DEFAULT: toolkit_names.LINK}.get(profile, toolkit_names.toolkit_path(profile))
    packages = bool(todo) and given.source != RUNFILE
    found += steps.set_default(facts, default, packages) + steps.write_profile(facts, prefix)
    return Decision(choice, found + steps.removal(facts, given.removed), [], warnings)


def _without_source(given: ToolkitInput) -> Decision[CudaChoice]:
    facts, stay = given.facts, sorted(given.complete, key=versions.key)
    choice = CudaChoice(NONE, _toolkit_choices(stay, given.complete), None)
    removal = steps.removal(facts, given.removed)
    directories = [toolkit_names.toolkit_path(one) for one in given.removed]
    is_default = facts.cuda.default.target in directories
    in_profile = steps.profile_names_toolkit(facts, given.removed)
    found: list[Step] = []
    # The link must point to an existing toolkit, or be removed together with the profile that follows it.
    if removal and is_default and stay:
        found += steps.set_default(facts, stay[-1])
    if removal and (in_profile or (is_default and not stay)):
        found += steps.write_profile(facts, toolkit_names.LINK if stay else None)
    return Decision(choice, found + removal)


# --- also used by later planners ---------------------------------------------------------------------------------


def complete_toolkits(facts: Facts) -> list[ToolkitFacts]:
    others = (toolkit_names.PARTIAL, toolkit_names.ALIAS)
    return [toolkit for toolkit in facts.cuda.toolkits if toolkit.origin not in others]


def gpus_by_compute(facts: Facts) -> dict[str, str]:
    """Return the compute capabilities of the GPUs that the host drives ("0" before CUDA), each with a card's name.

    Cards that the catalog does not know limit nothing, nor do those whose number is not published yet, nor those that
    are passed to virtual machines.
    """
    found: dict[str, str] = {}
    for card in facts.base.served_gpus:
        known = catalog.gpu(card.device)
        if known is not None and (known.compute or known.last_branch is not None):
            found.setdefault(known.compute or "0", card.name)
    return found


def driver_version(facts: Facts, choices: Choices) -> str | None:
    """Return the version of the driver when the plan is done, None where it is unknown."""
    driver = choices.driver
    if driver is None:
        return None
    if driver.version:
        return driver.version
    disk = facts.driver.on_disk
    if driver.satisfied and disk is not None and disk.version:
        return disk.version
    if not driver.branch:
        return None
    known = catalog.branch(driver.branch)
    return known.newest if known is not None else "%s" % driver.branch


def unsupported_gpu(cards: dict[str, str], compute: tuple[str, ...]) -> str | None:
    """Return name and compute capability of a card outside a range (first, last), None where all are inside."""
    first, last = map(versions.key, compute)
    return next(
        (
            "%s (compute capability %s)" % (name, number) if number != "0" else name
            for number, name in sorted(cards.items())
            if not first <= versions.key(number) <= last
        ),
        None,
    )


def supported_toolkits(facts: Facts, driver: str | None) -> list[str]:
    cards = gpus_by_compute(facts)
    return [
        toolkit.version
        for toolkit in catalog.toolkits()
        if not _needs_newer_driver(toolkit, driver) and unsupported_gpu(cards, toolkit.compute) is None
    ]


# --- refusals ----------------------------------------------------------------------------------------------------


def _toolkit_choices(chosen: list[str], complete: dict[str, ToolkitFacts]) -> list[ToolkitChoice]:
    paths = {version: toolkit.path for version, toolkit in complete.items()}
    return [ToolkitChoice(version, paths.get(version, toolkit_names.toolkit_path(version))) for version in chosen]


def _needs_newer_driver(toolkit: catalog.Toolkit, driver: str | None) -> bool:
    # Minor-version compatibility: every x.y of a CUDA major runs on the driver that its first release needed.
    return driver is not None and versions.compare(driver, toolkit.min_driver) < 0


def _catalog_toolkit(version: str) -> catalog.Toolkit | None:
    return next((known for known in catalog.toolkits() if known.version == version), None)


def _support_refusals(given: ToolkitInput, requested: list[ToolkitRequest]) -> list[Refusal]:
    """Refuse toolkits that driver or GPUs do not support, with the newest one that they do."""
    cards = gpus_by_compute(given.facts)
    limited = [(request, rules) for request in requested if (rules := catalog.toolkit_rules(request.version))]
    dropped = [
        (request, card) for request, rules in limited if (card := unsupported_gpu(cards, rules.compute)) is not None
    ]
    above = [(request, rules) for request, rules in limited if _needs_newer_driver(rules, given.driver)]
    most = newest_toolkit(given, [request for request, _ in [*dropped, *above]])
    refusals = []
    if dropped:
        message = "; ".join("CUDA %s does not support %s" % (request.version, card) for request, card in dropped)
        refusals.append(refuse("cuda_drops_gpu", message, most))
    if above:
        message = "; ".join(
            "CUDA %s needs driver %s or newer, and this host gets %s"
            % (request.version, rules.min_driver, given.driver)
            for request, rules in above
        )
        newer = None if dropped else _newer_driver(given, max((one.min_driver for _, one in above), key=versions.key))
        refusals.append(refuse("cuda_above_driver", message, most, *[newer.text] if newer else []))
    return refusals


def newest_toolkit(given: ToolkitInput, requested: list[ToolkitRequest]) -> VariableChange:
    """Return the change of requests to the newest toolkit that works here, or to none."""
    fitting = [one for one in _available_versions(given) if given.source != RUNFILE or _has_installer(given, one)]
    if not fitting:
        return NONE_FITS
    left = {request.version for request in requested}
    listed = [one for one in given.settings.cuda_toolkit_versions if toolkit_names.series(one) not in left]
    default = ["cuda_toolkit_default"] if requests.requested_default(given.settings) in left else []
    return VariableChange(
        {"cuda_toolkit_versions": [[*(one for one in listed if one != fitting[-1]), fitting[-1]]]}, default
    )


def _has_installer(given: ToolkitInput, version: str) -> bool:
    return requests.find_installer(ToolkitRequest(version), given.settings) is not None


def _newer_driver(given: ToolkitInput, least: str) -> VariableChange | None:
    """Return how this host gets a driver that a toolkit needs, None if it cannot have one."""
    facts, settings = given.facts, given.settings
    if facts.base.distro is None or settings.nvidia_driver_source == NONE:
        return None
    situation = alternatives.Situation(facts, settings, catalog.distro(facts.base.distro))
    low = max(versions.branch(least), versions.branch(given.driver or "0") + 1)
    found = [one for one in alternatives.fitting_values(situation, alternatives.BRANCH) if int(one) >= low]
    if not found:
        return None
    return VariableChange({alternatives.BRANCH: [*found]}, alternatives.dropped(settings, [alternatives.BRANCH]))


def _unknown_notices(given: ToolkitInput, request: ToolkitRequest) -> list[Notice]:
    if _catalog_toolkit(request.version) is not None:
        return []
    rules = catalog.toolkit_rules(request.version)
    limits = "driver and GPUs are checked as for CUDA %s" % request.version.split(".")[0]
    unchecked = "whether driver and GPUs support it is not checked"
    return [not_in_catalog("CUDA %s" % request.version, limits if rules else unchecked)]


def _unverified(facts: Facts, todo: list[ToolkitRequest]) -> list[Notice]:
    data = catalog.distro(facts.base.distro or "")
    return [
        repository.unverified_notice(data, "CUDA " + one.version, steps.package_request(one).name)
        for one in todo
        if driver_sources.is_unverified(data, REPOSITORY_SOURCE, "toolkits", one.version)
    ]


def _repository_entry(facts: Facts) -> dict[str, Any] | None:
    """Return the catalog's entry of NVIDIA's repository for this distribution, None where there is none."""
    key = facts.base.distro
    return None if key is None else catalog.distro(key)["driver_sources"].get(REPOSITORY_SOURCE)


def _offered_versions(given: ToolkitInput) -> list[str] | None:
    """Return the toolkits that the source offers; None where the catalog names no limit."""
    if given.source == RUNFILE:
        found = list(requests.own_installers(given.settings)[0]) + [one.release for one in catalog.cuda_installers()]
        return sorted({toolkit_names.series(release) for release in found}, key=versions.key)
    entry = _repository_entry(given.facts)
    if entry is None:
        return []
    listed = entry.get("toolkits")
    return None if listed is None else [str(version) for version in listed]


def _available_versions(given: ToolkitInput) -> list[str]:
    """Return the supported toolkits that are installed or can be installed, ascending; none of those to remove."""
    offered = _offered_versions(given)
    return [
        version
        for version in supported_toolkits(given.facts, given.driver)
        if (offered is None or version in offered or version in given.complete) and version not in given.removed
    ]


def _origin_refusals(given: ToolkitInput, request: ToolkitRequest) -> list[Refusal]:
    facts, version = given.facts, request.version
    installed = given.complete.get(version)
    remove_first = 'remove it first (cuda_toolkit_remove: ["%s"])' % version
    if installed is not None:
        kinds = {toolkit_names.PACKAGE: "packages", toolkit_names.RUNFILE: "NVIDIA's installer"}
        own = toolkit_names.RUNFILE if given.source == RUNFILE else toolkit_names.PACKAGE
        if installed.origin == own:
            return []
        kind = kinds.get(installed.origin)
        if kind is None:
            by_hand = (installed.path, request.text)
            message = "%s was installed by hand, so gpu-ready cannot change it to CUDA %s" % by_hand
            remedy = "move it away, or ask for %s without its third number to keep it as it is" % version
            return [Refusal("cuda_foreign", message, remedy)]
        message = "%s; it was installed from %s, not from %s" % (steps.difference(request, installed), kind, kinds[own])
        other = RUNFILE if installed.origin == toolkit_names.RUNFILE else requests.REPO
        return [refuse("cuda_other_source", message, source_change(other), remove_first)]
    aliases = [one for one in facts.cuda.toolkits if (one.version, one.origin) == (version, ALIAS)]
    if aliases:
        return [_alias_refusal(aliases[0], "move it away, or take %s out of cuda_toolkit_versions" % request.text)]
    parts = toolkit_names.packages_of_toolkit(version, facts.packages.installed)
    if parts and given.source == RUNFILE:
        message = "packages of CUDA %s are installed (%s), and the installer would overwrite their files" % (
            version,
            ", ".join(parts[:3]),
        )
        return [refuse("cuda_other_source", message, source_change(requests.REPO), remove_first)]
    incomplete = [one.path for one in facts.cuda.toolkits if one.version == version and one.cut_off]
    if incomplete and given.source != RUNFILE:
        message = "NVIDIA's installer was interrupted in %s, and packages would overwrite its files" % incomplete[0]
        return [refuse("cuda_other_source", message, source_change(RUNFILE), remove_first)]
    return []


def _source_refusals(given: ToolkitInput, todo: list[ToolkitRequest]) -> list[Refusal]:
    if given.source == RUNFILE:
        missing = [request for request in todo if requests.find_installer(request, given.settings) is None]
        return [_no_installer(given, missing)] if missing else []
    offered = _offered_versions(given)
    absent = [request.version for request in todo if offered is not None and not _is_offered(given, request, offered)]
    if not absent:
        return []
    installers = [requests.find_installer(request, given.settings) for request in todo]
    fitting = _available_versions(given)
    of_here = [newest_toolkit(given, [one for one in todo if one.version in absent])] if fitting else []
    changes = of_here + ([source_change(RUNFILE)] if None not in installers else []) or [NONE_FITS]
    return [
        refuse(
            "cuda_not_offered",
            "NVIDIA's repository for %s has no CUDA %s%s"
            % (
                given.facts.base.distro,
                ", ".join(absent),
                "; it has %s" % ", ".join(fitting) if fitting else "",
            ),
            changes[0],
            *[one.text for one in changes[1:]],
            "install it yourself and set cuda_toolkit_source to none",
        )
    ]


def _is_offered(given: ToolkitInput, request: ToolkitRequest, offered: list[str]) -> bool:
    """Return True if the repository has a toolkit, or may have one that the catalog does not know."""
    first = (_repository_entry(given.facts) or {}).get("toolkits_from")
    later = first and _catalog_toolkit(request.version) is None and versions.compare(request.version, first) >= 0
    return request.version in offered or bool(later)


def source_change(source: str) -> VariableChange:
    return VariableChange({"cuda_toolkit_source": [source]})


def _no_installer(given: ToolkitInput, missing: list[ToolkitRequest]) -> Refusal:
    series = {request.version for request in missing}
    releases = [one.release for one in catalog.cuda_installers() if toolkit_names.series(one.release) in series]
    asked = [request.text for request in missing]
    return refuse(
        "cuda_not_offered",
        "the catalog of %s knows no installer of CUDA %s%s"
        % (catalog.DATE, ", ".join(asked), " (it has %s)" % ", ".join(releases) if releases else ""),
        newest_toolkit(given, missing),
        'set cuda_toolkit_runfiles: {"%s": URL or path}' % asked[0],
    )


def _removal_refusals(given: ToolkitInput) -> list[Refusal]:
    """Refuse to remove toolkits of neither a package nor an installer: their directories may hold other files."""
    removed = [toolkit for toolkit in given.facts.cuda.toolkits if toolkit.version in given.removed]
    remedy = "delete the link yourself, or take %s out of cuda_toolkit_remove"
    aliases = [_alias_refusal(one, remedy % one.version) for one in removed if one.origin == ALIAS]
    return aliases + [
        Refusal(
            "cuda_foreign",
            "%s belongs to no package and has no uninstaller, so it was installed by hand" % toolkit.path,
            "delete or move that directory yourself, or take %s out of cuda_toolkit_remove" % toolkit.version,
        )
        for toolkit in removed
        if toolkit.origin == toolkit_names.FOREIGN
    ]


def _alias_refusal(toolkit: ToolkitFacts, remedy: str) -> Refusal:
    message = "%s contains CUDA %s: it is a link that gpu-ready did not create, or a toolkit under a wrong name"
    return Refusal("cuda_foreign", message % (toolkit.path, toolkit.release), remedy)


def _none_fits(given: ToolkitInput) -> Notice:
    cards = " and ".join(sorted(gpus_by_compute(given.facts).values())) or "this host"
    return notify(
        "cuda_none_fits",
        "no CUDA toolkit of the catalog fits %s%s on %s"
        % (cards, " with driver %s" % given.driver if given.driver else "", given.facts.base.distro),
        NONE_FITS._replace(effect="if that is intended: none is installed"),
    )


def _default_refusals(given: ToolkitInput, default: str, chosen: list[str]) -> list[Refusal]:
    refusals = []
    existing = chosen + sorted(given.complete)
    profile = requests.requested_profile(given.settings)
    asked = [("cuda_toolkit_default", default)]
    if profile not in (NONE, requests.DEFAULT):
        asked.append(("cuda_toolkit_profile", profile))
    for variable, version in asked:
        if version not in existing:
            message = "%s is %s, which is neither installed nor in cuda_toolkit_versions (%s)"
            remedy = "add it to cuda_toolkit_versions, or choose one of them"
            text = message % (variable, version, ", ".join(chosen))
            refusals.append(Refusal("cuda_default_missing", text, remedy))
    if given.facts.cuda.default.kind == "directory":
        message = "%s is a directory, not a link, so it cannot point to CUDA %s" % (toolkit_names.LINK, default)
        paths = (toolkit_names.LINK, toolkit_names.LINK)
        command = "mv %s %s-old" % paths
        remedy = "move it away (%s), or set cuda_toolkit_source to none" % command
        refusals.append(refuse("cuda_link_is_directory", message, remedy, run=command))
    return refusals
