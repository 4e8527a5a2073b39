"""Which cuDNN each CUDA toolkit gets, and from where: NVIDIA's archives, an archive of the operator's, or packages."""

from typing import Any, Dict, List, NamedTuple

from ...catalog import model as catalog
from ...cuda.cudnn import model as names
from ..model import Decision, Notice, Refusal, Step
from ..repository import mirrored
from . import cudnn_fit, cudnn_packages
from .cudnn_fit import Target


class Wish(NamedTuple):
    """An archive that one toolkit gets; ``install`` is what the role acts on, ``version`` "" where only it tells."""

    target: Target
    version: str
    origin: str
    install: Dict[str, Any]


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the cuDNN of each toolkit and the steps to it; the one of another source of ours makes way."""
    source = wanted.get("cudnn_source")
    if source == "none":
        return Decision({"source": "none", "versions": {}})
    targets, refusals = cudnn_fit.targets(observed, wanted, choice)
    refusals += contradictions(wanted)
    if refusals:
        return Decision({}, [], refusals)
    if source == "package":
        return cudnn_packages.decide(observed, wanted, choice, targets)
    return _archives(observed, wanted, targets)


def contradictions(wanted: Dict[str, Any]) -> List[Refusal]:
    """Refuse what two variables together cannot mean, and an archive from a server that nothing proves."""
    given, asked = str(wanted.get("cudnn_archive") or ""), asked_version(wanted)
    if not given:
        return []
    if wanted.get("cudnn_source") == "package":
        message = "cudnn_archive is %s, but cudnn_source is package" % given
        return [Refusal("cudnn_contradiction", message, "set cudnn_source to archive, or leave cudnn_archive empty")]
    named = _named(given)
    refusals = []
    if "://" in given and not wanted.get("cudnn_archive_sha256"):
        message = "nothing proves that %s is what is meant: an archive from a server needs its checksum" % given
        remedy = "set cudnn_archive_sha256 (its manifest names it), or give the file on the control machine"
        refusals.append(Refusal("cudnn_archive_unproved", message, remedy))
    if named and named.machine != catalog.MACHINE:
        message = "cudnn_archive %s is made for %s, and this is %s" % (given, named.machine, catalog.MACHINE)
        refusals.append(Refusal("cudnn_archive_machine", message, "give the archive for %s" % catalog.MACHINE))
    if named and asked and not names.is_version(named.version, asked) and not names.is_version(asked, named.version):
        message = "cudnn_version is %s, but cudnn_archive %s holds %s" % (asked, given, named.version)
        refusals.append(Refusal("cudnn_contradiction", message, "give one of them, or two that agree"))
    return refusals


def asked_version(wanted: Dict[str, Any]) -> str:
    """Return the version that is asked for, "" where the choice is ours."""
    asked = str(wanted.get("cudnn_version") or "")
    return "" if asked == "auto" else asked


# --- archives ----------------------------------------------------------------------------------------------------


def _archives(observed: Dict[str, Any], wanted: Dict[str, Any], targets: List[Target]) -> Decision:
    given = str(wanted.get("cudnn_archive") or "")
    wishes: List[Wish] = []
    refusals: List[Refusal] = []
    warnings: List[Notice] = []
    for target in targets:
        found = _found(observed, target)
        chosen, said = (_given if given else _listed)(observed, wanted, targets, target)
        refusals += [notice for notice in said if isinstance(notice, Refusal)]
        warnings += [notice for notice in said if isinstance(notice, Notice)]
        if chosen is None:
            continue
        if not _foreign(found) or _is_there(found, chosen):
            wishes.append(chosen)
            continue
        told = _foreign_words(target, found, chosen)
        if target.named and (given or asked_version(wanted)):
            refusals.append(Refusal("cudnn_foreign", *told))
        else:
            warnings.append(Notice("cudnn_foreign", *told))
    if refusals:
        return Decision({}, [], refusals, warnings)
    installs = [wish for wish in wishes if not _is_there(_found(observed, wish.target), wish)]
    steps = []
    if installs:
        params = {"installs": [wish.install for wish in installs], "file": "" if "://" in given else given}
        steps.append(Step("cudnn.install", _reason(observed, installs), params=params))
    steps += removal(observed, wanted, [target.version for target in targets])
    steps += cudnn_packages.removal(observed)
    versions = {wish.target.version: wish.version or wish.origin for wish in wishes}
    return Decision({"source": "archive", "versions": versions}, steps, [], warnings)


def _listed(
    observed: Dict[str, Any], wanted: Dict[str, Any], targets: List[Target], target: Target
) -> "tuple[Any, List[Any]]":
    """Return the archive of NVIDIA's server for a toolkit."""
    pick = cudnn_fit.pick(observed, asked_version(wanted), target)
    if pick.version is None:
        return None, pick.said
    return Wish(target, pick.version, "", _install(wanted, target, pick.version)), pick.said


def _given(
    observed: Dict[str, Any], wanted: Dict[str, Any], targets: List[Target], target: Target
) -> "tuple[Any, List[Any]]":
    """Return the operator's archive for a toolkit; its name says what it holds, where it is one of NVIDIA's."""
    given, sha256 = str(wanted["cudnn_archive"]), str(wanted.get("cudnn_archive_sha256") or "").lower()
    named = _named(given)
    said: List[Any] = []
    version = asked_version(wanted)
    if named is not None:
        version = max(named.version, version, key=len)
        if not names.supports_toolkit(named.cuda, target.version):
            fitting = [one.version for one in targets if names.supports_toolkit(named.cuda, one.version)]
            message = "cudnn_archive %s is made for CUDA %s, and CUDA %s would get it"
            remedy = (
                'set cudnn_toolkits to ["%s"]' % '", "'.join(fitting)
                if fitting
                else "give the archive for CUDA %s" % target.major
            )
            refusal = Refusal("cudnn_archive_cuda", message % (given, named.cuda, target.version), remedy)
            return None, cudnn_fit.narrowed(target, [refusal])
    entry = cudnn_fit.known(version) if version else None
    if entry is not None:
        said += cudnn_fit.narrowed(target, list(cudnn_fit.faults(observed, entry, version, target.version)))
        if said:
            return None, said
    chosen = Wish(
        target,
        version,
        names.archive_origin(given, sha256),
        {
            "cuda": target.version,
            "version": version,
            "cuda_path": target.path,
            "archive_url": given if "://" in given else "",
            "sha256": sha256,
            "origin": names.archive_origin(given, sha256),
        },
    )
    if entry is None and not _is_there(_found(observed, target), chosen):
        said.append(cudnn_fit.unknown(version or "in %s" % given))
    return chosen, said


def _named(given: str) -> Any:
    return names.parse_archive_name(given.partition("?")[0].rpartition("/")[2])


def _found(observed: Dict[str, Any], target: Target) -> Dict[str, Any]:
    return (observed.get("cudnn") or {}).get(target.version) or {}


def _is_there(found: Dict[str, Any], wish: Wish) -> bool:
    if found.get("recorded"):
        same = (found.get("origin") or "") == wish.origin
        version = not wish.version or names.is_version(found["recorded"], wish.version)
        return same and bool(found.get("complete")) and version
    # Placed by somebody else: its header names three numbers only.
    return bool(wish.version) and names.is_version(found.get("version"), names.release(wish.version))


def _foreign(found: Dict[str, Any]) -> bool:
    return bool(found.get("version")) and not found.get("recorded")


def _foreign_words(target: Target, found: Dict[str, Any], wish: Wish) -> "tuple[str, str]":
    return (
        "%s holds cuDNN %s, which gpu-ready did not place; wanted is %s"
        % (target.path, found["version"], wish.version or "that of the archive"),
        "take its files away (include/cudnn*.h, lib64/libcudnn*) and run again, or set cudnn_source to none",
    )


def _install(wanted: Dict[str, Any], target: Target, version: str) -> Dict[str, Any]:
    mirror = wanted.get("gpu_ready_mirror") or ""
    known = next((entry for entry in catalog.cudnns() if entry.version == version), None)
    archive = known.archives.get((catalog.MACHINE, target.major)) if known is not None else None
    path = (archive or {}).get("path")
    return {
        "cuda": target.version,
        "version": version,
        "cuda_path": target.path,
        "manifest_url": mirrored(names.REDIST + names.manifest_path(version), mirror),
        "archive_url": mirrored(names.REDIST + path, mirror) if path else "",
        "sha256": (archive or {}).get("sha256") or "",
        "key": names.manifest_variant(target.version),
    }


def removal(observed: Dict[str, Any], wanted: Dict[str, Any], stay: List[str]) -> List[Step]:
    """Return the step that takes our files out of toolkits that are to have none; one that goes takes its own along."""
    stay = stay + list(wanted.get("cuda_toolkit_remove") or [])
    recorded = {cuda: found for cuda, found in (observed.get("cudnn") or {}).items() if found.get("recorded")}
    gone = sorted(set(recorded) - set(stay))
    if not gone:
        return []
    told = ["CUDA %s has the archive of cuDNN %s" % (cuda, recorded[cuda]["recorded"]) for cuda in gone]
    return [
        Step(
            "cudnn.remove",
            "; ".join(told) + "; none is wanted there",
            params={"installs": [{"cuda": cuda} for cuda in gone]},
        )
    ]


def _reason(observed: Dict[str, Any], installs: List[Wish]) -> str:
    told = []
    for wish in installs:
        found = _found(observed, wish.target)
        what = wish.version or wish.install["origin"].partition(":")[2]
        if found.get("recorded") and (not wish.version or names.is_version(found["recorded"], wish.version)):
            other = (found.get("origin") or "") != wish.origin
            lack = "has cuDNN %s of another archive" % found["recorded"] if other else "is not whole"
        elif found.get("recorded"):
            lack = "has cuDNN %s" % found["recorded"]
        else:
            lack = "has no cuDNN"
        told.append("CUDA %s %s; wanted is %s" % (wish.target.version, lack, what))
    return "; ".join(told)
