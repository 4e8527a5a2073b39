"""Which docker engine a host gets: its source and version, and what it replaces."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .....module_utils.gpu_ready.base.disruptions import CONTAINERD_RESTART, DOCKER_RESTART, NONE
from .....module_utils.gpu_ready.containers.names import CONTAINERD
from .....module_utils.gpu_ready.facts.model import DockerFacts, Facts
from .....module_utils.gpu_ready.packaging.version_match import version_matches
from ...catalog import model as catalog
from ...catalog.settings import Settings
from .. import repository
from ..model import Notice, PackageTarget, Refusal, RepositoryParams, Step, VariableChange, notify, refuse
from .model import DockerInstallParams

SERVICE = "docker"
CONTAINERD_PACKAGES = ("containerd.io", "containerd")
"""Packages of containerd: of Docker's repository, and of distributions."""


class DockerSource(NamedTuple):
    """A source of docker in the catalog. ``engine``: the packages that have the engine's version, its daemon first.

    ``kernel_packages``: patterns of packages with kernel modules. ``conflicts``: packages that these exclude.
    """

    name: str
    packages: list[PackageTarget]
    engine: list[str]
    version: str | None = None
    repository: str | None = None
    conflicts: list[str] = []
    kernel_packages: list[str] = []

    @property
    def package_names(self) -> list[str]:
        return [package.name for package in self.packages]


class DockerTarget(NamedTuple):
    """The engine to install or to keep; ``version`` as package managers match it."""

    source: DockerSource
    version: str | None

    @property
    def engine(self) -> list[str]:
        return self.source.engine

    @property
    def title(self) -> str:
        return "%s%s" % (self.engine[0], " " + self.version[:-1] if self.version else "")


class PackageDecision(NamedTuple):
    """The steps for the packages and the service."""

    steps: list[Step] = []
    refusals: list[Refusal] = []
    warnings: list[Notice] = []


def plan_docker_packages(facts: Facts, settings: Settings) -> PackageDecision:
    engine = facts.docker
    if engine.snap and not (engine.installed and engine.active):
        return PackageDecision([], [snap_refusal(engine)])
    target = choose_target(facts, settings)
    installed_source = find_installed_source(facts)
    if target is None:
        if not engine.installed and settings.docker_engine_source == "none":
            return PackageDecision([], [missing_docker()])
        if not engine.installed or (installed_source and settings.docker_engine_source != "none"):
            return PackageDecision([], [unknown_source(facts, settings)])
        if not has_requested_version(facts, settings):
            return PackageDecision([], [cannot_change_version(facts, settings)])
        return PackageDecision([start_service(why, []) for why in silent_engine_reasons(facts)])
    missing = missing_packages(facts, target)
    if engine.installed and not missing:
        return decide_installed(facts, settings, target)
    remove = [] if installed_source == target.source.name else conflicting_packages(facts, target)
    if remove and not settings.docker_engine_replace_conflicting:
        return PackageDecision([], [conflict_refusal(facts, target, remove)])
    names = [target.source.repository] if target.source.repository else []
    needed = [repository.parameters(name, settings) for name in names]
    refusals = repository.source_refusals(facts, needed)
    if refusals:
        return PackageDecision([], refusals)
    needed = repository.missing_repositories(facts, needed)
    steps = []
    if needed:
        reason = "docker comes from %s" % needed[0].url
        steps.append(Step("docker_engine.repository", reason, params=RepositoryParams(needed)))
    why = install_reason(facts, target, missing)
    replaces = CONTAINERD_RESTART if containerd_users(facts, remove) else NONE
    steps.append(install(facts, target, why, DOCKER_RESTART if engine.active else replaces, remove))
    warnings = [replaced_notice(facts, remove)] if remove else []
    return PackageDecision(steps, [], warnings)


# --- which engine ------------------------------------------------------------------------------------------------


def offered_sources(facts: Facts) -> dict[str, DockerSource]:
    entries = (catalog.distro(facts.base.distro).get("docker") or {}) if facts.base.distro else {}
    found = {}
    for name, entry in entries.items():
        rows = [one if isinstance(one, dict) else {"name": one} for one in entry["packages"]]
        found[name] = DockerSource(
            name,
            [PackageTarget(**row) for row in rows],
            list(entry["engine"]),
            str(entry["version"]) if entry.get("version") else None,
            entry.get("repository"),
            list(entry.get("conflicts") or []),
            list(entry.get("kernel_packages") or []),
        )
    return found


def find_installed_source(facts: Facts) -> str | None:
    if not facts.docker.installed:
        return None
    sources = offered_sources(facts).values()
    return next((one.name for one in sources if one.engine[0] in facts.packages.installed), None)


def choose_target(facts: Facts, settings: Settings) -> DockerTarget | None:
    """Return the engine to have as packages, the installed one unless another is requested; None for no packages."""
    known = offered_sources(facts)
    name = settings.docker_engine_source
    installed = find_installed_source(facts)
    if name == "none" or (facts.docker.installed and installed is None):
        return None
    version = requested_version(settings)
    if installed and (version is None or name == "auto"):
        stays = DockerTarget(known[installed], version)
        if version is None and not (settings.docker_engine_replace_conflicting and name in known):
            return stays
        if version is not None and not missing_packages(facts, stays):
            return stays
    if name == "auto":
        name = likely_source(known, version, installed)
    return DockerTarget(known[name], version) if name in known else None


def likely_source(known: dict[str, DockerSource], version: str | None, installed: str | None) -> str:
    """Return the source that has a version: a distribution has one version, Docker's repository all of them."""
    if version is None or len(known) < 2:
        return next(iter(known), "")
    if installed == "docker_ce":
        return installed
    if "distro" in known and version_matches(engine_number(version) + "*", known["distro"].version or ""):
        return "distro"
    return "docker_ce"


def engine_number(version: str) -> str:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return found.group(0) if found else version


def requested_version(settings: Settings) -> str | None:
    """Return docker_engine_version as package managers match it, without epoch: the client's is another one."""
    version = settings.docker_engine_version
    return re.sub(r"^\d+:", "", version) + "*" if version else None


def missing_packages(facts: Facts, target: DockerTarget) -> list[str]:
    installed = facts.packages.installed
    if target.version is None:
        return [] if target.engine[0] in installed else target.engine
    return [
        name for name in target.engine if name not in installed or not version_matches(target.version, installed[name])
    ]


def has_requested_version(facts: Facts, settings: Settings) -> bool:
    version = requested_version(settings)
    return version is None or version_matches(version, facts.docker.version or "")


def conflicting_packages(facts: Facts, target: DockerTarget) -> list[str]:
    own = target.source.package_names
    others = [name for source in offered_sources(facts).values() for name in source.package_names]
    listed = target.source.conflicts + others
    return sorted({name for name in listed if name in facts.packages.installed and name not in own})


def containerd_users(facts: Facts, remove: Sequence[str]) -> str:
    """Return what uses the containerd that is removed, beside docker; "" where nothing does or it stays."""
    engines = facts.engines
    if not set(remove) & set(CONTAINERD_PACKAGES):
        return ""
    if engines.kubernetes.kind and engines.kubernetes.engine in ("", CONTAINERD):
        return "the pods of this Kubernetes node"
    return "" if facts.docker.installed or not engines.containerd.active else "containers without docker"


def find_fitting_source(facts: Facts, version: str | None) -> str | None:
    """Return the source of docker that excludes nothing of what is installed, and has the requested version."""
    for name, source in offered_sources(facts).items():
        has = (
            version is None
            or name == "docker_ce"
            or version_matches(engine_number(version) + "*", source.version or "")
        )
        if has and not conflicting_packages(facts, DockerTarget(source, version)):
            return name
    return None


def requested_packages(target: DockerTarget) -> list[PackageTarget]:
    return [
        one._replace(version=target.version) if target.version is not None and one.name in target.engine else one
        for one in target.source.packages
    ]


def kernel_packages(facts: Facts, target: DockerTarget) -> list[str]:
    """Return the packages with what the engine needs of the running kernel and of the next one.

    They are installed where a source has them: a site's own kernel may have it all, and the engine reports what is
    missing.
    """
    kernels = dict.fromkeys((facts.base.kernel.running, facts.base.kernel.next_boot))
    return [pattern.format(kernel=one) for pattern in target.source.kernel_packages for one in kernels]


def engine_version(facts: Facts, settings: Settings) -> str | None:
    target = choose_target(facts, settings)
    if target is None or (facts.docker.installed and not missing_packages(facts, target)):
        return facts.docker.version or None
    return engine_number(target.version) if target.version else target.source.version


# --- the steps ---------------------------------------------------------------------------------------------------


def install(facts: Facts, target: DockerTarget, why: str, disruption: str, remove: list[str]) -> Step:
    hold = target.engine if target.version is not None else []
    tools = catalog.distro(facts.base.distro).get("hold_tools") or [] if hold and facts.base.distro else []
    missing_tools = [PackageTarget(name) for name in tools if name not in facts.packages.installed]
    params = DockerInstallParams(
        packages=requested_packages(target) + missing_tools,
        optional=kernel_packages(facts, target),
        remove=remove,
        hold=hold,
        unhold=sorted(set(facts.packages.held) & {*target.engine, *remove}),
        service=SERVICE,
        state="restarted" if disruption == DOCKER_RESTART else "started",
    )
    return Step("docker_engine.install", why, disruption, params)


def start_service(why: str, unhold: list[str], optional: list[str] | None = None) -> Step:
    params = DockerInstallParams([], optional or [], [], [], unhold, SERVICE, "started")
    return Step("docker_engine.install", why, NONE, params)


def silent_engine_reasons(facts: Facts) -> list[str]:
    return [] if facts.docker.active else ["docker is installed, but does not answer on its socket"]


def decide_installed(facts: Facts, settings: Settings, target: DockerTarget) -> PackageDecision:
    engine, held = facts.docker, set(facts.packages.held)
    other = settings.docker_engine_source not in ("auto", "none", target.source.name)
    warnings = [other_source_notice(facts, settings, target)] if other else []
    reasons = silent_engine_reasons(facts)
    if target.version is None:
        ours = sorted(held & set(target.engine) & set(engine.held_by_us))
        optional = kernel_packages(facts, target) if reasons else []
        if ours:
            reasons.append(
                "%s %s held, but no version is requested any more"
                % (", ".join(ours), "is" if len(ours) == 1 else "are")
            )
        return PackageDecision([start_service("; ".join(reasons), ours, optional)] if reasons else [], [], warnings)
    if not set(target.engine) <= held:
        reasons.append("an unattended upgrade would replace the requested version of docker")
    restart = engine.active and engine.outdated
    if restart:
        reasons.append("docker still runs the program from before its packages changed")
    why = "; ".join(reasons)
    steps = [install(facts, target, why, DOCKER_RESTART if restart else NONE, [])] if reasons else []
    return PackageDecision(steps, [], warnings)


def install_reason(facts: Facts, target: DockerTarget, missing: list[str]) -> str:
    installed = facts.packages.installed
    if not facts.docker.installed:
        return "docker is not installed"
    source = find_installed_source(facts)
    if source and source != target.source.name:
        name = offered_sources(facts)[source].engine[0]
        return "%s %s is installed; requested is %s" % (name, installed[name], target.title)
    name = missing[0]
    present = "%s is %s" % (name, installed[name]) if name in installed else "%s is not installed" % name
    return "%s; requested is %s" % (present, target.title)


# --- refusals and warnings ---------------------------------------------------------------------------------------


def other_source_notice(facts: Facts, settings: Settings, target: DockerTarget) -> Notice:
    users = containerd_users(facts, [name for name in target.source.package_names if name in facts.packages.installed])
    effect = "to replace it; images and volumes stay%s" % (
        ", and the containerd that runs %s is removed" % users if users else ""
    )
    return notify(
        "docker_from_elsewhere",
        "%s is installed and is kept, although docker_engine_source is %s"
        % (target.engine[0], settings.docker_engine_source),
        VariableChange({"docker_engine_replace_conflicting": [True]}, effect=effect),
    )


def conflict_refusal(facts: Facts, target: DockerTarget, remove: list[str]) -> Refusal:
    """Refuse what would be removed unasked, with the ways that remove nothing first."""
    one = len(remove) == 1
    text = "%s %s installed and exclude%s %s, which is requested"
    users, kept = containerd_users(facts, remove), find_fitting_source(facts, target.version)
    keep = VariableChange({"docker_engine_source": [kept]}, effect="to keep %s" % ("it" if one else "them"))
    ways: list[VariableChange | str] = [keep] if kept else []
    if find_installed_source(facts):
        ways.append("leave docker_engine_version empty, which keeps docker %s" % (facts.docker.version or "as it is"))
    if users:
        ways.append("set nvidia_container_runtime_engines: [containerd], if docker is not needed here")
    stays = (
        "this removes the containerd that runs %s" % users if users else "images and volumes in /var/lib/docker stay"
    )
    allow = "allow %s removal with docker_engine_replace_conflicting: true (%s)" % ("its" if one else "their", stays)
    return refuse(
        "docker_conflicting_packages",
        text % (", ".join(remove), "is" if one else "are", "s" if one else "", target.title),
        [*ways, allow][0],
        *(str(one) for one in [*ways, allow][1:]),
    )


def replaced_notice(facts: Facts, removed: list[str]) -> Notice:
    users = containerd_users(facts, removed)
    return Notice(
        "docker_replaced",
        "%s will be removed%s; images, volumes and containers in /var/lib/docker stay"
        % (", ".join(removed), ", with the containerd that runs %s" % users if users else ""),
        "uninstall.yml does not install them again",
    )


def cannot_change_version(facts: Facts, settings: Settings) -> Refusal:
    engine = facts.docker
    requested, installed = settings.docker_engine_version, engine.version or "of an unknown version"
    if settings.docker_engine_source == "none":
        return Refusal(
            "docker_version_impossible",
            "docker %s is installed, docker_engine_version is %s, and docker_engine_source is none"
            % (installed, requested),
            "install that version, or name the source that has it, or leave docker_engine_version empty",
        )
    return Refusal(
        "docker_version_impossible",
        "docker %s (%s) is from no package that the catalog knows, so gpu-ready cannot change it to version %s"
        % (installed, engine.program or "dockerd", requested),
        "remove it and let gpu-ready install docker, or leave docker_engine_version empty",
    )


def snap_refusal(engine: DockerFacts) -> Refusal:
    """Refuse a host whose docker is a snap: it has files and a toolkit of its own, and uses the same socket."""
    beside = ". The docker of the package %s does not run" % engine.package if engine.package else ""
    return Refusal(
        "docker_is_a_snap",
        "docker on this host is a snap (%s), with configuration, containers and a toolkit of its own that gpu-ready "
        "does not manage, and a second docker would take its socket%s" % (engine.snap, beside),
        "move its containers and images away and run `snap remove docker`, then run this again",
    )


def missing_docker() -> Refusal:
    return refuse(
        "docker_missing",
        "docker is not installed, and docker_engine_source is none",
        VariableChange({"docker_engine_source": ["auto"]}),
        "install docker",
    )


def unknown_source(facts: Facts, settings: Settings) -> Refusal:
    known = offered_sources(facts)
    name = facts.base.distro or facts.base.os.id
    if known:
        state = "docker is not installed" if not facts.docker.installed else "another docker is requested"
        return refuse(
            "docker_source_impossible",
            "%s, and docker_engine_source %s does not exist for %s" % (state, settings.docker_engine_source, name),
            VariableChange({"docker_engine_source": ["auto", *known]}),
            "install docker yourself and set docker_engine_source to none",
        )
    return Refusal(
        "unknown_distribution",
        "docker is not installed, and the catalog has no docker packages for this distribution (%s)" % name,
        "install docker yourself and set docker_engine_source: none",
    )
