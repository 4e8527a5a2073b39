"""Which toolkits get cuDNN, and which release the catalog's table allows for a toolkit and the GPUs of the host."""

from typing import NamedTuple

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.cuda.cudnn import model as names
from .....module_utils.gpu_ready.facts.model import Facts
from ...catalog import model as catalog
from ...catalog.settings import Settings
from ..driver.refusals import not_in_catalog
from ..model import Choices, Notice, Refusal, VariableChange, notify, refuse
from . import choose as cuda

Finding = Refusal | Notice


class CudnnTarget(NamedTuple):
    """A toolkit that gets cuDNN; ``named`` is False where it is installed but no setting names it."""

    version: str
    path: str
    named: bool

    @property
    def major(self) -> str:
        return self.version.split(".")[0]


class Pick(NamedTuple):
    """The release for a toolkit (None: there is none). ``exact``: it must not be upgraded."""

    version: str | None
    findings: list[Finding]
    exact: bool = False


def requested_version(settings: Settings) -> str:
    version = settings.cudnn_version
    return "" if version == "auto" else version


def find_targets(facts: Facts, settings: Settings, choices: Choices) -> tuple[list[CudnnTarget], list[Refusal]]:
    """Return the planned and installed toolkits, limited to ``cudnn_toolkits`` if that is set."""
    chosen = {one.version: one.path for one in (choices.cuda.toolkits if choices.cuda else [])}
    removed = settings.cuda_toolkit_remove
    installed = {one.version: one.path for one in cuda.complete_toolkits(facts) if one.version not in removed}
    found = {
        version: CudnnTarget(version, dict(installed, **chosen)[version], version in chosen)
        for version in sorted(set(installed) | set(chosen), key=versions.key)
    }
    listed = settings.cudnn_toolkits
    missing = [version for version in listed if version not in found]
    if missing:
        message = "cudnn_toolkits names CUDA %s, which is neither installed nor requested (%s)"
        remedy = "name toolkits of cuda_toolkit_versions, or leave cudnn_toolkits empty for all of them"
        return [], [
            Refusal("cudnn_toolkit_missing", message % (" and ".join(missing), ", ".join(found) or "none"), remedy)
        ]
    if listed:
        return [found[version]._replace(named=True) for version in found if version in listed], []
    return list(found.values()), []


def notices_unless_named(target: CudnnTarget, findings: list[Finding]) -> list[Finding]:
    """Return refusals as notices for a toolkit that no setting names: it gets no cuDNN, the others do."""
    if target.named:
        return findings
    remedy = "it gets no cuDNN; list the toolkits that get cuDNN in cudnn_toolkits"
    return [Notice(one.code, one.message, remedy) if isinstance(one, Refusal) else one for one in findings]


def pick_release(facts: Facts, requested: str, target: CudnnTarget) -> Pick:
    """Return the release for a toolkit: the newest that fits, or the requested one where the table allows it."""
    newest = newest_for(facts, target.version)
    if not requested:
        if newest is not None:
            return Pick(newest, [], newest != _newest_of_major(target.major))
        message = "no cuDNN of the catalog supports CUDA %s with the GPUs of this host" % target.version
        remedy = VariableChange({"cudnn_source": ["none"]}, effect="if that is intended: none is installed for it")
        return Pick(None, [notify("cudnn_none_fits", message, remedy)] if target.named else [])
    if len(requested.split(".")) not in (3, 4):
        message = "cudnn_version %s is no version of cuDNN" % requested
        also = "write three or four numbers"
        change: VariableChange | str = VariableChange({"cudnn_version": [newest]}) if newest else also
        return Pick(None, [refuse("cudnn_version_wrong", message, change, *[also] if newest else [])])
    entry = find_release(requested)
    if entry is None:
        return Pick(requested, [unknown_release(requested)], True)
    refusals = support_refusals(facts, entry, requested, target.version)
    return Pick(None if refusals else entry.version, notices_unless_named(target, list(refusals)), True)


def find_release(version: str) -> catalog.Cudnn | None:
    """Return the newest release of the catalog that a version of two to four numbers means."""
    found = [entry for entry in catalog.cudnns() if names.is_version(entry.version, version)]
    return max(found, key=lambda entry: versions.key(entry.version)) if found else None


def unknown_release(version: str) -> Notice:
    return not_in_catalog("cuDNN %s" % version, "whether it supports these GPUs is not checked")


def support_refusals(facts: Facts, entry: catalog.Cudnn, requested: str, toolkit: str) -> list[Refusal]:
    newest = newest_for(facts, toolkit)
    remedy = VariableChange({"cudnn_version": [newest]} if newest else {"cudnn_source": ["none"]})
    if toolkit.split(".")[0] not in entry.cuda:
        message = "cuDNN %s is not made for CUDA %s (it is for %s)" % (requested, toolkit, " and ".join(entry.cuda))
        return [refuse("cudnn_without_cuda", message, remedy)]
    card = cuda.unsupported_gpu(cuda.gpus_by_compute(facts), entry.compute)
    if card is not None:
        return [refuse("cudnn_drops_gpu", "cuDNN %s does not support %s" % (requested, card), remedy)]
    return []


def newest_for(facts: Facts, toolkit: str) -> str | None:
    cards = cuda.gpus_by_compute(facts)
    major = toolkit.split(".")[0]
    fitting = [
        one for one in catalog.cudnns() if major in one.cuda and cuda.unsupported_gpu(cards, one.compute) is None
    ]
    return fitting[-1].version if fitting else None


def _newest_of_major(major: str) -> str:
    return [one.version for one in catalog.cudnns() if major in one.cuda][-1]
