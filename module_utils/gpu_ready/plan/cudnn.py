"""Which cuDNN goes into each CUDA toolkit: what its CUDA major and the oldest GPU allow."""

from typing import Any, Dict, List, Optional, Tuple

from .. import catalog, versions
from .. import cudnn as names
from . import cuda
from .repository import mirrored
from .steps import Decision, Notice, Refusal, Step

PLATFORM = "x86_64"


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return one cuDNN for each toolkit of the plan, and the step that places what is not there."""
    if wanted.get("cudnn_source") == "none":
        return Decision({"source": "none", "versions": {}})
    asked = str(wanted.get("cudnn_version") or "")
    asked = "" if asked == "auto" else asked
    picked: Dict[str, str] = {}
    installs: List[Dict[str, Any]] = []
    refusals: List[Refusal] = []
    warnings: List[Notice] = []
    for toolkit in (choice.get("cuda") or {}).get("toolkits") or []:
        version, said = _pick(observed, asked, toolkit["version"])
        refusals += [notice for notice in said if isinstance(notice, Refusal)]
        warnings += [notice for notice in said if isinstance(notice, Notice)]
        if version is None:
            continue
        picked[toolkit["version"]] = version
        found = (observed.get("cudnn") or {}).get(toolkit["version"]) or {}
        if _is_there(found, version):
            continue
        if _foreign(found):
            told = _foreign_words(toolkit, found, version)
            if asked:
                refusals.append(Refusal("cudnn_foreign", *told))
            else:
                warnings.append(Notice("cudnn_foreign", *told))
            continue
        installs.append(_install(wanted, toolkit, version))
    if refusals:
        return Decision({}, [], refusals, warnings)
    steps = [Step("cudnn.install", _reason(observed, installs), params={"installs": installs})] if installs else []
    return Decision({"source": "archive", "versions": picked}, steps, [], warnings)


def _pick(observed: Dict[str, Any], asked: str, cuda_version: str) -> "Tuple[Optional[str], List[Any]]":
    """Return the version for a toolkit, and what there is to say about it."""
    major = cuda_version.split(".")[0]
    cards = cuda.gpu_architectures(observed)
    fitting = [
        known.version
        for known in catalog.cudnns()
        if major in known.cuda and cuda.drops(cards, known.architectures) is None
    ]
    newest = fitting[-1] if fitting else None
    if not asked:
        if newest is not None:
            return newest, []
        message = "no cuDNN of the catalog serves CUDA %s with the GPUs of this host" % cuda_version
        return None, [Notice("cudnn_none_fits", message, "none is placed there; set cudnn_source to none to say so")]
    if not all(part.isdigit() for part in asked.split(".")) or len(asked.split(".")) not in (3, 4):
        message = "cudnn_version %s is no version of cuDNN" % asked
        return None, [
            Refusal("cudnn_unknown", message, "write three or four numbers, such as %s" % (newest or "9.10.2"))
        ]
    known = [entry for entry in catalog.cudnns() if names.is_version(entry.version, asked)]
    if not known:
        message = "the catalog of %s does not know cuDNN %s: whether it serves these GPUs is not checked" % (
            catalog.DATE,
            asked,
        )
        return asked, [
            Notice("cudnn_unknown", message, "the manifest of that release decides whether it can be fetched")
        ]
    entry = max(known, key=lambda one: versions.key(one.version))
    remedy = (
        "set cudnn_version to %s, the newest that works for CUDA %s here" % (newest, cuda_version)
        if newest
        else "set cudnn_source to none"
    )
    card = cuda.drops(cards, entry.architectures)
    if major not in entry.cuda:
        message = "cuDNN %s is not made for CUDA %s (it is for %s)" % (asked, cuda_version, " and ".join(entry.cuda))
        return None, [Refusal("cudnn_without_cuda", message, remedy)]
    if card is not None:
        return None, [Refusal("cudnn_drops_gpu", "cuDNN %s does not serve %s" % (asked, card), remedy)]
    return entry.version, []


def _is_there(found: Dict[str, Any], version: str) -> bool:
    if found.get("recorded"):
        return bool(found.get("complete")) and names.is_version(found["recorded"], version)
    # Placed by somebody else: its header names three numbers only.
    return found.get("version") == names.release(version)


def _foreign(found: Dict[str, Any]) -> bool:
    return bool(found.get("version")) and not found.get("recorded")


def _foreign_words(toolkit: Dict[str, Any], found: Dict[str, Any], version: str) -> Tuple[str, str]:
    return (
        "%s holds cuDNN %s, which gpu-ready did not place; wanted is %s" % (toolkit["path"], found["version"], version),
        "take its files away (include/cudnn*.h, lib64/libcudnn*) and run again, or set cudnn_source to none",
    )


def _install(wanted: Dict[str, Any], toolkit: Dict[str, Any], version: str) -> Dict[str, Any]:
    mirror = wanted.get("gpu_ready_mirror") or ""
    known = next((entry for entry in catalog.cudnns() if entry.version == version), None)
    archive = known.archives.get((PLATFORM, toolkit["version"].split(".")[0])) if known is not None else None
    path = (archive or {}).get("path")
    return {
        "cuda": toolkit["version"],
        "version": version,
        "cuda_path": toolkit["path"],
        "manifest_url": mirrored(names.REDIST + names.manifest_path(version), mirror),
        "archive_url": mirrored(names.REDIST + path, mirror) if path else "",
        "sha256": (archive or {}).get("sha256") or "",
        "key": names.key(toolkit["version"]),
    }


def _reason(observed: Dict[str, Any], installs: List[Dict[str, Any]]) -> str:
    told = []
    for install in installs:
        found = (observed.get("cudnn") or {}).get(install["cuda"]) or {}
        if found.get("recorded") and names.is_version(found["recorded"], install["version"]):
            lack = "is not whole"
        elif found.get("recorded"):
            lack = "has cuDNN %s" % found["recorded"]
        else:
            lack = "has no cuDNN"
        told.append("CUDA %s %s; wanted is %s" % (install["cuda"], lack, install["version"]))
    return "; ".join(told)
