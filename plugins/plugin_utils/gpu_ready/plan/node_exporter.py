"""node_exporter of the distribution, which reads the metrics that gpu-ready's service writes."""

from collections.abc import Sequence
from typing import NamedTuple

from ....module_utils.gpu_ready.facts.model import Facts
from ....module_utils.gpu_ready.system import monitoring_files as files
from ..catalog import model as catalog
from ..catalog.model import Distribution
from ..catalog.settings import Settings
from ..completion.os_family import distribution_name
from . import repository
from .model import Decision, Refusal, RepositoryParams, Step, VariableChange, refuse


class NodeExporterParams(NamedTuple):
    """gpu_monitoring.node_exporter."""

    packages: list[str]
    service: str


class NodeExporterRemovalParams(NamedTuple):
    """gpu_monitoring.remove_node_exporter."""

    packages: list[str]


def is_requested(settings: Settings) -> bool:
    return settings.gpu_monitoring_node_exporter == "install" and "textfile" in settings.gpu_monitoring


def plan_node_exporter(facts: Facts, settings: Settings, planned: Sequence[Step]) -> Decision[None]:
    """Install it where none runs. ``planned``: the steps before."""
    data = catalog.distro_or_none(facts.base.distro)
    packages = [data["node_exporter"]["package"]] if "node_exporter" in data else []
    if not is_requested(settings) or facts.monitoring.exporter_runs:
        return Decision()
    missing = [name for name in packages if name not in facts.packages.installed]
    if (missing or not packages) and not is_offered(facts, settings, data, planned):
        return Decision(refusals=[unavailable(data, distribution_name(facts.base))])
    why = "no node_exporter is installed" if missing else "node_exporter does not run"
    step = Step(
        "gpu_monitoring.node_exporter",
        why,
        params=NodeExporterParams(packages, files.NODE_EXPORTER),
        verify_after=False,
    )
    return Decision(None, [step])


def decide_removal(facts: Facts, settings: Settings) -> Decision[None]:
    """Remove ours where nothing is written for it."""
    entry = catalog.distro_or_none(facts.base.distro).get("node_exporter")
    if "textfile" in settings.gpu_monitoring or not entry:
        return Decision()
    if entry["package"] not in facts.runtime.manifest.packages:
        return Decision()
    why = "gpu_monitoring does not name textfile any more"
    params = NodeExporterRemovalParams([entry["package"]])
    return Decision(None, [Step("gpu_monitoring.remove_node_exporter", why, params=params, verify_after=False)])


def is_offered(facts: Facts, settings: Settings, data: Distribution, planned: Sequence[Step]) -> bool:
    """Return whether the distribution has the package, or a repository that the host has or will have by then."""
    entry = data.get("node_exporter")
    if not entry:
        return False
    if not entry.get("repository"):
        return True
    request = repository.parameters(entry["repository"], settings)
    params = [step.params for step in planned if isinstance(step.params, RepositoryParams)]
    added = [one.id for of in params for one in of.repositories]
    return request.id in added or repository.find_entry(facts, request) is not None


def unavailable(data: Distribution, system: str) -> Refusal:
    entry = data.get("node_exporter")
    where = "it has no package"
    if entry:
        where = "its package is in %s, which this host does not have" % entry["repository"]
    first = ["add that repository (dnf install epel-release)"] if entry else []
    return refuse(
        "node_exporter_unavailable",
        "gpu_monitoring_node_exporter is install, but node_exporter is in no repository of %s: %s" % (system, where),
        VariableChange({"gpu_monitoring_node_exporter": ["keep"]}),
        *first,
        "install node_exporter yourself",
    )
