"""NVIDIA's DCGM and its exporter for Prometheus."""

from typing import NamedTuple

from ....module_utils.gpu_ready.facts.model import Facts
from ....module_utils.gpu_ready.packaging.version_match import version_matches
from ..catalog import model as catalog
from ..catalog.settings import Settings
from ..completion.os_family import distribution_name
from . import repository
from .model import Choices, Decision, Notice, PackageTarget, Refusal, RepositoryParams, Step, not_held_reason


class DcgmParams(NamedTuple):
    """gpu_monitoring.dcgm."""

    packages: list[PackageTarget]
    hold: list[str]


class DcgmRemovalParams(NamedTuple):
    """gpu_monitoring.remove_dcgm."""

    packages: list[str]
    paths: list[str]


def plan_dcgm(facts: Facts, settings: Settings, choices: Choices) -> Decision[None]:
    """Return the steps that install, update, start or remove DCGM; another version of others is left as it is."""
    data, known, installed = catalog.dcgm(), facts.monitoring, facts.packages.installed
    names = sorted(data["packages"])
    if "dcgm" not in settings.gpu_monitoring:
        removal = DcgmRemovalParams(names, sorted(known.dcgm))
        why = "gpu_monitoring does not name dcgm any more"
        found = [Step("gpu_monitoring.remove_dcgm", why, params=removal, verify_after=False)] if known.dcgm else []
        return Decision(None, found)
    missing = [name for name in names if not version_matches(data["packages"][name], installed.get(name, ""))]
    others = ["%s %s" % (name, installed[name]) for name in missing if name in installed]
    if others and not known.dcgm:
        return Decision(warnings=[other_version(others)])
    stale = [path for path, digest in sorted(data["files"].items()) if known.dcgm.get(path) != digest]
    if missing:
        why = "%s is not installed in the version of the catalog" % " and ".join(missing)
    elif stale:
        why = "%s is not as configured" % " and ".join(stale)
    elif set(names) - set(facts.packages.held):
        why = not_held_reason(sorted(set(names) - set(facts.packages.held)), "DCGM and its exporter")
    elif not known.dcgm_running:
        why = "DCGM or its exporter does not run"
    else:
        return Decision()
    added = source_of(facts, settings, choices) if missing else Decision()
    tools = catalog.distro_or_none(facts.base.distro).get("hold_tools") or []
    packages = [PackageTarget(name, data["packages"][name]) for name in names]
    packages += [PackageTarget(name) for name in tools if name not in installed]
    params = DcgmParams(packages, names)
    added.steps.append(Step("gpu_monitoring.dcgm", why, params=params, verify_after=False))
    return added


def source_of(facts: Facts, settings: Settings, choices: Choices) -> Decision[None]:
    data, driver = catalog.distro_or_none(facts.base.distro), choices.driver
    identity = data.get("driver_sources", {}).get("cuda_repo", {}).get("repository")
    if identity is None:
        system = distribution_name(facts.base)
        message = (
            "gpu-ready knows no repository of NVIDIA's for %s, which the packages of DCGM would come from" % system
        )
        return Decision(None, [], [Refusal("dcgm_without_source", message, "take dcgm out of gpu_monitoring")])
    needed = [repository.parameters(identity, settings, driver is not None and driver.source == "distro")]
    added = driver is not None and driver.source == "cuda_repo" and not driver.satisfied
    absent = [] if added else repository.missing_repositories(facts, needed)
    params = RepositoryParams(absent)
    why = "the packages of DCGM are in NVIDIA's repository"
    steps = [Step("gpu_monitoring.repository", why, params=params, verify_after=False)] if absent else []
    doubt = repository.unverified_notice(data, "DCGM", "datacenter-gpu-manager-4-core")
    warnings = [] if identity in catalog.dcgm()["confirmed"] else [doubt]
    return Decision(None, steps, repository.source_refusals(facts, needed), warnings)


def other_version(found: list[str]) -> Notice:
    return Notice(
        "dcgm_other_version",
        "another version of DCGM is installed, which is left as it is: %s" % ", ".join(found),
        "nothing is to be done if it is scraped; remove its packages to get gpu-ready's",
    )
