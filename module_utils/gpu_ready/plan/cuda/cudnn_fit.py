"""Which toolkits get cuDNN, and which release the catalog's table allows for a toolkit and the GPUs of the host."""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

from ...base import versions
from ...catalog import model as catalog
from ...cuda.cudnn import model as names
from ..model import Notice, Refusal
from . import choose as cuda


class Target(NamedTuple):
    """A toolkit that gets cuDNN; ``named`` is False for one that is on the host without being asked for anywhere."""

    version: str
    path: str
    named: bool

    @property
    def major(self) -> str:
        """Return the CUDA major."""
        return self.version.split(".")[0]


class Pick(NamedTuple):
    """The release for a toolkit (None: there is none), what there is to say about it, and why it must not move on."""

    version: Optional[str]
    said: List[Union[Refusal, Notice]]
    exact: bool = False


def targets(
    observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]
) -> Tuple[List[Target], List[Refusal]]:
    """Return the toolkits of the plan and those that are on the host, or those of ``cudnn_toolkits`` out of them."""
    going = wanted.get("cuda_toolkit_remove") or []
    chosen = {row["version"]: row["path"] for row in (choice.get("cuda") or {}).get("toolkits") or []}
    there = {row["version"]: row["path"] for row in cuda.present(observed) if row["version"] not in going}
    found = {
        version: Target(version, dict(there, **chosen)[version], version in chosen)
        for version in sorted(set(there) | set(chosen), key=versions.key)
    }
    asked = wanted.get("cudnn_toolkits") or []
    missing = [version for version in asked if version not in found]
    if missing:
        message = "cudnn_toolkits names CUDA %s, which is neither on this host nor among the wanted toolkits (%s)"
        remedy = "name toolkits of cuda_toolkit_versions, or leave cudnn_toolkits empty for all of them"
        return [], [
            Refusal("cudnn_toolkit_missing", message % (" and ".join(missing), ", ".join(found) or "none"), remedy)
        ]
    if asked:
        return [found[version]._replace(named=True) for version in found if version in asked], []
    return list(found.values()), []


def narrowed(target: Target, said: List[Union[Refusal, Notice]]) -> List[Union[Refusal, Notice]]:
    """Return refusals as notices for a toolkit that nobody named: it is passed over."""
    if target.named:
        return said
    remedy = "it gets none; list the toolkits that get cuDNN in cudnn_toolkits"
    return [Notice(one.code, one.message, remedy) if isinstance(one, Refusal) else one for one in said]


def pick(observed: Dict[str, Any], asked: str, target: Target) -> Pick:
    """Return the release for a toolkit: the newest that fits, or the one asked for where the table allows it."""
    newest = newest_for(observed, target.version)
    if not asked:
        if newest is not None:
            return Pick(newest, [], newest != _newest(target.major))
        message = "no cuDNN of the catalog serves CUDA %s with the GPUs of this host" % target.version
        remedy = "none is placed there; set cudnn_source to none to say so"
        return Pick(None, [Notice("cudnn_none_fits", message, remedy)] if target.named else [])
    if len(asked.split(".")) not in (3, 4):
        message = "cudnn_version %s is no version of cuDNN" % asked
        remedy = "write three or four numbers, such as %s" % (newest or "9.10.2")
        return Pick(None, [Refusal("cudnn_unknown", message, remedy)])
    entry = known(asked)
    if entry is None:
        return Pick(asked, [unknown(asked)], True)
    refusals = faults(observed, entry, asked, target.version)
    return Pick(None if refusals else entry.version, narrowed(target, list(refusals)), True)


def known(asked: str) -> Optional[catalog.Cudnn]:
    """Return the newest release of the catalog that a version (of two to four numbers) stands for."""
    found = [entry for entry in catalog.cudnns() if names.is_version(entry.version, asked)]
    return max(found, key=lambda entry: versions.key(entry.version)) if found else None


def unknown(asked: str) -> Notice:
    """Return what there is to say about a release that the catalog does not know."""
    message = "the catalog of %s does not know cuDNN %s: whether it serves these GPUs is not checked"
    remedy = "the source of that release decides whether it can be had"
    return Notice("cudnn_unknown", message % (catalog.DATE, asked), remedy)


def faults(observed: Dict[str, Any], entry: catalog.Cudnn, asked: str, toolkit: str) -> List[Refusal]:
    """Return why a release cannot be: its CUDA is another one, or it serves a GPU of the host no more."""
    newest = newest_for(observed, toolkit)
    remedy = (
        "set cudnn_version to %s, the newest that works for CUDA %s here" % (newest, toolkit)
        if newest
        else "set cudnn_source to none"
    )
    if toolkit.split(".")[0] not in entry.cuda:
        message = "cuDNN %s is not made for CUDA %s (it is for %s)" % (asked, toolkit, " and ".join(entry.cuda))
        return [Refusal("cudnn_without_cuda", message, remedy)]
    card = cuda.drops(cuda.gpu_architectures(observed), entry.architectures)
    if card is not None:
        return [Refusal("cudnn_drops_gpu", "cuDNN %s does not serve %s" % (asked, card), remedy)]
    return []


def newest_for(observed: Dict[str, Any], toolkit: str) -> Optional[str]:
    """Return the newest release of the catalog for a toolkit that serves every GPU of the host."""
    cards = cuda.gpu_architectures(observed)
    major = toolkit.split(".")[0]
    fitting = [one for one in catalog.cudnns() if major in one.cuda and cuda.drops(cards, one.architectures) is None]
    return fitting[-1].version if fitting else None


def _newest(major: str) -> str:
    return [one.version for one in catalog.cudnns() if major in one.cuda][-1]
