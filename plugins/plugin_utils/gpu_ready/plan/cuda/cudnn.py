"""Which cuDNN each CUDA toolkit gets, and from where: NVIDIA's archives, an archive of the operator, or packages."""

from typing import NamedTuple

from .....module_utils.gpu_ready.cuda.cudnn import model as names
from .....module_utils.gpu_ready.facts.model import CudnnFacts, Facts
from ...catalog import model as catalog
from ...catalog.settings import Settings
from ..driver.model import RemovePackagesParams
from ..model import Choices, CudnnChoice, Decision, Notice, Refusal, Step, VariableChange, notify, refuse
from ..repository import mirrored
from . import cudnn_fit, cudnn_packages
from .cudnn_fit import CudnnTarget, Finding
from .model import CudnnArchiveParams, CudnnOfToolkit, CudnnRemovalParams, NvidiaArchive, OwnArchive

NO_CUDNN = CudnnFacts()


class CudnnArchive(NamedTuple):
    """The archive that one toolkit gets; ``version`` is "" where only the archive itself says it."""

    target: CudnnTarget
    version: str
    origin: str
    install: NvidiaArchive | OwnArchive


def plan_cudnn(facts: Facts, settings: Settings, choices: Choices) -> Decision[CudnnChoice]:
    """Return the cuDNN of each toolkit and the steps to it; what gpu-ready added from another source is removed."""
    source = settings.cudnn_source
    if source == "none":
        return Decision(CudnnChoice("none"))
    targets, refusals = cudnn_fit.find_targets(facts, settings, choices)
    refusals += contradictions(settings)
    if refusals:
        return Decision(None, [], refusals)
    if source == "package":
        return cudnn_packages.plan_cudnn_packages(facts, settings, choices, targets)
    return _decide_archives(facts, settings, targets)


def contradictions(settings: Settings) -> list[Refusal]:
    given, requested = settings.cudnn_archive, cudnn_fit.requested_version(settings)
    if not given:
        return []
    if settings.cudnn_source == "package":
        message = "cudnn_archive is %s, but cudnn_source is package" % given
        return [
            refuse(
                "cudnn_contradiction",
                message,
                VariableChange({"cudnn_source": ["archive"]}),
                "leave cudnn_archive empty",
            )
        ]
    named = _parse_archive_name(given)
    refusals = []
    if "://" in given and not settings.cudnn_archive_sha256:
        message = "%s cannot be verified: an archive from a server needs its checksum" % given
        remedy = "set cudnn_archive_sha256 (its manifest has it), or give the path of a file on the control node"
        refusals.append(Refusal("cudnn_archive_unverified", message, remedy))
    if named and named.architecture != catalog.MACHINE:
        message = "cudnn_archive %s is made for %s, and this is %s" % (given, named.architecture, catalog.MACHINE)
        refusals.append(Refusal("cudnn_archive_machine", message, "give the archive for %s" % catalog.MACHINE))
    if named and requested and not _agree(named.version, requested):
        message = "cudnn_version is %s, but cudnn_archive %s holds %s" % (requested, given, named.version)
        refusals.append(Refusal("cudnn_contradiction", message, "give one of them, or two that agree"))
    return refusals


def _agree(one: str, other: str) -> bool:
    return names.is_version(one, other) or names.is_version(other, one)


# --- archives ----------------------------------------------------------------------------------------------------


def _decide_archives(facts: Facts, settings: Settings, targets: list[CudnnTarget]) -> Decision[CudnnChoice]:
    own = settings.cudnn_archive
    archives: list[CudnnArchive] = []
    refusals: list[Refusal] = []
    warnings: list[Notice] = []
    for target in targets:
        found = facts.cudnn.get(target.version, NO_CUDNN)
        if own:
            archive, findings = _own_archive(facts, settings, targets, target)
        else:
            archive, findings = _nvidia_archive(facts, settings, target)
        refusals += [finding for finding in findings if isinstance(finding, Refusal)]
        warnings += [finding for finding in findings if isinstance(finding, Notice)]
        if archive is None:
            continue
        if not _is_foreign(found) or _is_installed(found, archive):
            archives.append(archive)
            continue
        message = _foreign_message(target, found, archive)
        if target.named and (own or cudnn_fit.requested_version(settings)):
            refusals.append(Refusal("cudnn_foreign", message, "%s, or %s" % (OWN_CUDNN, NO_CUDNN_SOURCE.text)))
        else:
            warnings.append(notify("cudnn_foreign", message, NO_CUDNN_SOURCE, OWN_CUDNN))
    if refusals:
        return Decision(None, [], refusals, warnings)
    todo = [one for one in archives if not _is_installed(facts.cudnn.get(one.target.version, NO_CUDNN), one)]
    steps = []
    if todo:
        params = CudnnArchiveParams([one.install for one in todo], "" if "://" in own else own)
        steps.append(Step("cudnn.install", _install_reason(facts, todo), params=params))
    steps += removal(facts, settings, [target.version for target in targets])
    steps += package_removal(facts)
    versions = {one.target.version: one.version or one.origin for one in archives}
    return Decision(CudnnChoice("archive", versions), steps, [], warnings)


def _nvidia_archive(facts: Facts, settings: Settings, target: CudnnTarget) -> tuple[CudnnArchive | None, list[Finding]]:
    pick = cudnn_fit.pick_release(facts, cudnn_fit.requested_version(settings), target)
    if pick.version is None:
        return None, pick.findings
    return CudnnArchive(target, pick.version, "", _nvidia_install(settings, target, pick.version)), pick.findings


def _own_archive(
    facts: Facts, settings: Settings, targets: list[CudnnTarget], target: CudnnTarget
) -> tuple[CudnnArchive | None, list[Finding]]:
    """Return the operator's archive for a toolkit; a name of NVIDIA's says its version and CUDA major."""
    own, sha256 = settings.cudnn_archive, settings.cudnn_archive_sha256.lower()
    named = _parse_archive_name(own)
    findings: list[Finding] = []
    version = cudnn_fit.requested_version(settings)
    if named is not None:
        version = max(named.version, version, key=len)
        if not names.supports_toolkit(named.cuda, target.version):
            fitting = [one.version for one in targets if names.supports_toolkit(named.cuda, one.version)]
            message = "cudnn_archive %s is made for CUDA %s, and CUDA %s would get it"
            own_cuda = "give the archive for CUDA %s" % target.major
            remedy = VariableChange({"cudnn_toolkits": [fitting]}) if fitting else own_cuda
            refusal = refuse("cudnn_archive_cuda", message % (own, named.cuda, target.version), remedy)
            return None, cudnn_fit.notices_unless_named(target, [refusal])
    entry = cudnn_fit.find_release(version) if version else None
    if entry is not None:
        refusals = cudnn_fit.support_refusals(facts, entry, version, target.version)
        if refusals:
            return None, cudnn_fit.notices_unless_named(target, list(refusals))
    origin = names.archive_origin(own, sha256)
    install = OwnArchive(target.version, version, target.path, own if "://" in own else "", sha256, origin)
    archive = CudnnArchive(target, version, origin, install)
    if entry is None and not _is_installed(facts.cudnn.get(target.version, NO_CUDNN), archive):
        findings.append(cudnn_fit.unknown_release(version or "in %s" % own))
    return archive, findings


def _parse_archive_name(location: str) -> names.ArchiveName | None:
    return names.parse_archive_name(location.partition("?")[0].rpartition("/")[2])


def _is_installed(found: CudnnFacts, archive: CudnnArchive) -> bool:
    if found.recorded:
        same_version = not archive.version or names.is_version(found.recorded, archive.version)
        return found.origin == archive.origin and found.complete and same_version
    # Copied by hand: its header names three numbers only.
    return bool(archive.version) and names.is_version(found.version, names.release(archive.version))


def _is_foreign(found: CudnnFacts) -> bool:
    return bool(found.version) and not found.recorded


NO_CUDNN_SOURCE = VariableChange({"cudnn_source": ["none"]})
OWN_CUDNN = "remove its files (include/cudnn*.h, lib64/libcudnn*) and run again"


def _foreign_message(target: CudnnTarget, found: CudnnFacts, archive: CudnnArchive) -> str:
    requested = archive.version or "that of the archive"
    return "%s contains cuDNN %s, which gpu-ready did not install; requested is %s" % (
        target.path,
        found.version,
        requested,
    )


def _nvidia_install(settings: Settings, target: CudnnTarget, version: str) -> NvidiaArchive:
    mirror = settings.gpu_ready_mirror
    known = next((entry for entry in catalog.cudnns() if entry.version == version), None)
    archive = (known.archives.get((catalog.MACHINE, target.major)) if known is not None else None) or {}
    path = archive.get("path")
    return NvidiaArchive(
        cuda=target.version,
        version=version,
        cuda_path=target.path,
        manifest_url=mirrored(names.REDIST + names.manifest_path(version), mirror),
        archive_url=mirrored(names.REDIST + path, mirror) if path else "",
        sha256=archive.get("sha256") or "",
        key=names.manifest_variant(target.version),
    )


def removal(facts: Facts, settings: Settings, stay: list[str]) -> list[Step]:
    """Return the step that removes our files from the other toolkits; the removal of a toolkit removes its own."""
    stay = stay + settings.cuda_toolkit_remove
    removed = sorted(version for version, found in facts.cudnn.items() if found.recorded and version not in stay)
    if not removed:
        return []
    reasons = ["CUDA %s has the archive of cuDNN %s" % (version, facts.cudnn[version].recorded) for version in removed]
    params = CudnnRemovalParams([CudnnOfToolkit(version) for version in removed])
    return [Step("cudnn.remove", "; ".join(reasons) + "; none is requested for it", params=params)]


def _install_reason(facts: Facts, todo: list[CudnnArchive]) -> str:
    reasons = []
    for archive in todo:
        found = facts.cudnn.get(archive.target.version, NO_CUDNN)
        if found.recorded and (not archive.version or names.is_version(found.recorded, archive.version)):
            other = found.origin != archive.origin
            present = "has cuDNN %s of another archive" % found.recorded if other else "has an incomplete cuDNN"
        elif found.recorded:
            present = "has cuDNN %s" % found.recorded
        else:
            present = "has no cuDNN"
        what = archive.version or archive.origin.partition(":")[2]
        reasons.append("CUDA %s %s; requested is %s" % (archive.target.version, present, what))
    return "; ".join(reasons)


def package_removal(facts: Facts) -> list[Step]:
    """Return the step that removes our packages where archives are configured; packages of others stay."""
    ours = facts.cudnn_packages.ours
    if not ours:
        return []
    reason = "cuDNN is installed as packages (%s), and cudnn_source is archive" % ", ".join(ours)
    held = [name for name in ours if name in facts.packages.held]
    return [Step("cudnn.remove_packages", reason, params=RemovePackagesParams(list(ours), held))]
