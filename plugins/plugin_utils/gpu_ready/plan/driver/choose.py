"""Which NVIDIA driver a host gets: first its last possible branch, then the flavour, then a source that carries it."""

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.facts.model import Facts
from ...catalog import driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import RUNFILE, DriverSource
from ...catalog.model import Distribution
from ...catalog.settings import Settings
from .. import repository
from ..model import Choices, Decision, DriverChoice, InstallerFile, Notice, Refusal
from . import candidates, parameters, point_release
from . import refusals as driver_refusals
from . import steps as driver_steps
from .adopt import MODULES, adopt_driver, exact_packages
from .boot_module import blocked_refusals
from .candidates import Candidate, DriverRequest
from .install_refusals import install_refusals
from .no_candidate import explain_no_candidate


def plan_driver(facts: Facts, settings: Settings, choices: Choices, release: str = "") -> Decision[DriverChoice]:
    """``release``: the point release to which an installed driver of the branch is moved (point_release.py)."""
    request = candidates.parse_request(settings)._replace(offered=point_release.offered_pair(release))
    decision = plan_request(facts, settings, request)
    version = point_release.release_to_request(facts, request, decision.choice, release)
    if not version:
        decision.warnings += point_release.unmoved_warnings(facts, decision.choice, release)
        return decision
    moved = plan_request(facts, settings, request._replace(version=version))
    choice = moved.choice._replace(moved=True) if moved.choice else None
    return Decision(choice, moved.steps, moved.refusals, moved.warnings)


def plan_request(facts: Facts, settings: Settings, request: DriverRequest) -> Decision[DriverChoice]:
    gpus = facts.base.served_gpus
    warnings = driver_refusals.unknown_warnings(gpus)
    if facts.base.arch != catalog.MACHINE:
        return Decision(None, [], [driver_refusals.machine_unsupported(facts)], warnings)
    if request.source == "none":
        missing = driver_refusals.driver_missing(facts)
        return Decision(driver_as_found(facts), [], missing + blocked_refusals(facts), warnings)
    if facts.base.distro is None:
        return Decision(None, [], [driver_refusals.unknown_distribution(facts, settings.gpu_ready_treat_as)], warnings)
    data = catalog.distro(facts.base.distro)
    adopted = adopt_driver(facts, request, gpus, data)
    if adopted:
        return complete(facts, settings, request, adopted, None, data, warnings)
    found = candidates.find_candidates(facts, request, gpus, data)
    if not found:
        possible = candidates.pairs_of_host(gpus, request)
        return Decision(None, [], explain_no_candidate(facts, settings, request, gpus, data, possible), warnings)
    driver = choose(facts, settings, request, data, found[0])
    return complete(facts, settings, request, driver, found[0], data, warnings)


def complete(
    facts: Facts,
    settings: Settings,
    request: DriverRequest,
    driver: DriverChoice,
    picked: Candidate | None,
    data: Distribution,
    warnings: list[Notice],
) -> Decision[DriverChoice]:
    refusals: list[Refusal] = []
    if not driver.satisfied:
        refusals = install_refusals(facts, settings, driver, picked, data)
    managed = driver_refusals.managed_host(facts.base.managed_by)
    if managed and not refusals and parameters.parameter_steps(facts, settings, data):
        refusals.append(managed)
    refusals += parameters.parameter_refusals(facts, settings, driver) + blocked_refusals(facts)
    if refusals:
        return Decision(driver, [], refusals, warnings)
    steps = driver_steps.driver_steps(facts, settings, driver, data)
    if any(step.id == "kernel_headers.install" for step in steps):
        kernels = driver_steps.kernels_without_headers(facts)
        refusals, notices = driver_refusals.find_other_builds(facts, kernels, data)
        warnings += notices
        if refusals:
            return Decision(driver, [], refusals, warnings)
    warnings += driver_refusals.adoption_warnings(facts, driver, settings.nvidia_driver_hold)
    warnings += driver_refusals.branch_warnings(facts, driver, request, data)
    if driver.satisfied and not driver_steps.next_kernel_steps(facts):
        names = driver_steps.packages_for_next_boot(facts, driver, data)
        warnings += driver_refusals.next_boot_warnings(facts, names)
    warnings += driver_refusals.kernel_update_warnings(facts, driver, driver_steps.kernel_series(facts))
    if any(step.action == "install" for step in steps):
        warnings += driver_refusals.unverified_warnings(driver, facts, data)
    if not driver.satisfied:
        warnings += driver_refusals.not_in_catalog_warnings(driver, data)
    return Decision(driver, steps, [], warnings)


def driver_as_found(facts: Facts) -> DriverChoice:
    module = facts.driver.on_disk or facts.driver.loaded
    return DriverChoice(
        source="none",
        kind=None,
        version=None,
        branch=versions.branch(module.version) if module and module.version else None,
        flavour=module.flavour if module else None,
        profile=None,
        packages=[],
        modules=MODULES,
        satisfied=True,
        why="nvidia_driver_source is none: the driver is left as it is",
    )


def choose(
    facts: Facts, settings: Settings, request: DriverRequest, data: Distribution, picked: Candidate
) -> DriverChoice:
    source, kind, branch, flavour = picked
    kernel = facts.base.kernel.running
    entry = driver_sources.source_entry(data, source, kind)
    exact = exact_packages(facts, request) or None
    driver = DriverChoice(
        source=source,
        kind=kind,
        branch=branch,
        flavour=flavour,
        version=request.version,
        profile=request.profile,
        packages=exact_names(exact, picked, data, facts)
        or driver_sources.packages(data, source, branch, request.profile, flavour, kind, kernel),
        stream=driver_sources.module_stream(data, source, branch, flavour, kind),
        modules=MODULES,
        cuda=getattr(catalog.branch(branch), "cuda", None),
        runfile=installer(settings, request.version, branch, entry) if source == RUNFILE else None,
        detected=detectable_packages(facts, data, source, kind, request) if entry.get("detect") else None,
        exact=exact,
    )
    return driver._replace(why=explain_choice(facts, request, driver))


def exact_names(exact: dict[str, str] | None, picked: Candidate, data: Distribution, facts: Facts) -> list[str] | None:
    """Return the packages that stand for an exactly requested driver; the others are their dependencies.

    These are the packages that the catalog names for the branch, and a module package for a kernel that is newer than
    the record.
    """
    if not exact:
        return None
    kernel = facts.base.kernel.running
    sets = [
        driver_sources.packages(data, picked.source, picked.branch, profile, picked.flavour, picked.kind, kernel)
        for profile in driver_sources.PROFILES
    ]
    of_kernel = {name for names in sets for name in names if name.endswith("-" + kernel)}
    return sorted(of_kernel | {name for names in sets for name in names if name in exact}) or sorted(exact)


def installer(settings: Settings, version: str | None, branch: int | None, entry: DriverSource) -> InstallerFile:
    """Return the operator's installer, else NVIDIA's newest of the branch.

    Without nvidia_driver_version, the version only names the file: an installed driver of the branch stays.
    """
    given = settings.nvidia_driver_runfile
    checksum = settings.nvidia_driver_runfile_sha256.lower()
    if given:
        return InstallerFile(version, given, checksum)
    known = catalog.branch(branch) if branch is not None else None
    version = version or (known.newest if known else None)
    url = repository.mirrored(entry["url"].format(version=version), settings.gpu_ready_mirror)
    return InstallerFile(version, url, checksum, "" if checksum else url + ".sha256sum")


def earlier_installer(facts: Facts, settings: Settings, version: str) -> InstallerFile | None:
    """Return the installer of another version, such as the installed one; None if there is none.

    If the operator gave a file, the other one is expected beside it, with its own version in its name. Else it is
    NVIDIA's.
    """
    given = settings.nvidia_driver_runfile
    other = candidates.version_of_file(given)
    if other:
        return InstallerFile(version, given.replace(other, version))
    distro = facts.base.distro
    entry = catalog.distro(distro)["driver_sources"].get(RUNFILE) if distro else None
    without_file = settings._replace(nvidia_driver_runfile="", nvidia_driver_runfile_sha256="")
    return installer(without_file, version, None, entry) if entry else None


def detectable_packages(facts: Facts, data: Distribution, source: str, kind: str, request: DriverRequest) -> list[str]:
    """Return the packages that the source's own detector may name for the GPUs of this host, by our catalog.

    A detector checks one GPU at a time and names what serves it best, whatever branch is requested.
    """
    found = set()
    for gpu in facts.base.served_gpus:
        pairs = candidates.pairs_of_gpu(gpu.device) & driver_sources.branch_flavours(
            data, source, kind, request.profile
        )
        newest = max([branch for branch, _ in pairs] or [0])
        for branch, flavour in pairs:
            if branch == newest:
                names = driver_sources.packages(data, source, branch, request.profile, flavour, kind)
                found |= {name for name in names if name.startswith("kmod-")}
    return sorted(found)


def explain_choice(facts: Facts, request: DriverRequest, driver: DriverChoice) -> str:
    names: list[str] = []
    for gpu in facts.base.served_gpus:
        if gpu.name not in names:
            names.append(gpu.name)
    requested = request.branch is not None or request.flavour is not None or request.source is not None
    return "branch %s with the %s kernel module from %s drives %s%s" % (
        driver.branch,
        driver.flavour,
        driver.source,
        " and ".join(names),
        ", as asked" if requested else "",
    )
