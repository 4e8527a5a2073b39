"""cuDNN: the header that states its version, names of archives and packages, NVIDIA's manifests, our own record."""

import json
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from ...base import versions
from ...base.errors import GpuReadyError

REDIST = "https://developer.download.nvidia.com/compute/cudnn/redist/"
RECORDS = "/var/lib/gpu-ready/cudnn"

_ARCHIVE = re.compile(r"^cudnn-linux-(\w+)-(\d+(?:\.\d+){2,3})_cuda(\d+(?:\.\d+)?)-archive\.tar\.(?:xz|gz)$")
_OLD_ARCHIVE = re.compile(r"^cudnn-(\d+\.\d+)-linux-(\w+)-v(\d+(?:\.\d+)*)\.(?:tgz|tar\.gz)$")
_MACHINES = {"x64": "x86_64"}
_PACKAGE = re.compile(r"^(?:lib)?cudnn(\d+)(?:-(?:dev|devel|headers|static))?(?:-cuda-(\d+)(?:-\d+)?)?$")
_PACKAGE_CUDA = re.compile(r"[+.]cuda(\d+)")
_DEFINE = re.compile(r"^\s*#\s*define\s+CUDNN_(MAJOR|MINOR|PATCHLEVEL)\s+(\d+)\s*$", re.MULTILINE)


class CudnnError(GpuReadyError):
    """Something about cuDNN cannot be used; the text is one sentence with thing, cause and remedy."""


class Archive(NamedTuple):
    """One archive of a redist manifest, ``path`` relative to it; ``size`` 0 and ``version`` "" where not said."""

    path: str
    sha256: str
    size: int
    version: str


class Named(NamedTuple):
    """What an archive's file name says: version (one to four numbers), CUDA as written ("12", "11.5"), machine."""

    version: str
    cuda: str
    machine: str


class Packaged(NamedTuple):
    """An installed package of cuDNN: its major version (``line``), CUDA major ("" where it is of none), version."""

    name: str
    line: str
    cuda: str
    version: str


class Record(NamedTuple):
    """Our note about one toolkit's cuDNN. ``files`` maps a path to its sha256, or to "link:<target>" for a link.

    ``complete`` is False from before the first file is placed until the last one is. ``origin`` is "" for an archive of
    NVIDIA's server, else what tells an archive of the operator's from another one (:func:`origin`).
    """

    cuda: str
    version: str
    complete: bool
    files: Dict[str, str]
    origin: str = ""


def read_header(text: str) -> Optional[str]:
    """Return "9.10.2" from cudnn_version.h (cudnn.h before 8), None where the three numbers are not all there."""
    found = dict(_DEFINE.findall(text))
    if len(found) != 3:
        return None
    return "%s.%s.%s" % (found["MAJOR"], found["MINOR"], found["PATCHLEVEL"])


def release(version: str) -> str:
    """Return the three numbers that the header states of a full version ("9.10.2.21" -> "9.10.2")."""
    return ".".join(version.split(".")[:3])


def read_archive_name(name: str) -> Optional[Named]:
    """Return what the file name of an archive says, None for a name that NVIDIA does not give.

    Up to 8.2 ``cudnn-8.0-linux-x64-v6.0.tgz``, then ``cudnn-linux-x86_64-8.9.7.29_cuda12-archive.tar.xz``.
    """
    found = _ARCHIVE.match(name)
    if found:
        return Named(found.group(2), found.group(3), _MACHINES.get(found.group(1), found.group(1)))
    found = _OLD_ARCHIVE.match(name)
    if found:
        return Named(found.group(3), found.group(1), _MACHINES.get(found.group(2), found.group(2)))
    return None


def serves(cuda: str, toolkit: str) -> bool:
    """Return whether an archive made for ``cuda`` works with a toolkit: within one major from 11 on, else exactly."""
    major = cuda.split(".")[0]
    return major == toolkit.split(".")[0] and (int(major) >= 11 or cuda in (major, toolkit))


def origin(archive: str, sha256: str) -> str:
    """Return what tells the operator's archive from another one: its checksum, or its name where none is given."""
    return "sha256:" + sha256.lower() if sha256 else "file:" + archive.rpartition("/")[2]


def packaged(installed: Dict[str, str]) -> List[Packaged]:
    """Return the packages of cuDNN among those installed (name: version as the package manager writes it)."""
    found = []
    for name, version in sorted(installed.items()):
        parts = _PACKAGE.match(name)
        if parts:
            built = _PACKAGE_CUDA.search(version)
            cuda = parts.group(2) or (built.group(1) if built else "")
            found.append(Packaged(name, parts.group(1), cuda, version.rpartition(":")[2].partition("-")[0]))
    return found


def of_packages(installed: Iterable[Packaged], toolkit: str) -> Optional[str]:
    """Return the newest version that packages bring for a toolkit's CUDA major, None where none does."""
    major = toolkit.split(".")[0]
    found = [one.version for one in installed if one.cuda == major and re.match(r"libcudnn\d+(-cuda-\d+)?$", one.name)]
    return max(found, key=versions.key) if found else None


def shown(toolkits: Dict[str, Dict[str, Any]]) -> Optional[str]:
    """Return the versions of a look as a person reads them: in the toolkit's folder, or else of packages."""
    found = {entry.get("version") or entry.get("package") for entry in toolkits.values()}
    return ", ".join(sorted(version for version in found if version)) or None


def manifest_path(version: str) -> str:
    """Return the file name of the redist manifest: four numbers up to 8.x, three from 9 on."""
    name = version if int(version.split(".")[0]) < 9 else release(version)
    return "redistrib_%s.json" % name


def key(cuda: str) -> str:
    """Return the variant of the manifest for a CUDA toolkit ("12.9" -> "cuda12")."""
    return "cuda" + cuda.split(".")[0]


def read_redist(text: str, variant: str, where: str, platform: str = "linux-x86_64") -> Archive:
    """Return the archive of a redist manifest for a variant; ``where`` names the manifest in the error."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CudnnError(
            "%s is not a cuDNN manifest: not JSON (%s); is a proxy or a sign-in page answering in its place?"
            % (where, error)
        ) from error
    entry: Any = value
    for step in ("cudnn", platform, variant):
        entry = entry.get(step) if isinstance(entry, dict) else None
    if not isinstance(entry, dict):
        offered = value.get("cudnn") if isinstance(value, dict) else None
        offered = offered.get(platform) if isinstance(offered, dict) else None
        names = sorted(offered) if isinstance(offered, dict) else []
        raise CudnnError(
            "%s offers no cuDNN for %s on %s (it has: %s); choose another cudnn_version, or set cudnn_source to none"
            % (where, variant, platform, ", ".join(names) or "nothing")
        )
    path, sha256, size = entry.get("relative_path"), entry.get("sha256"), entry.get("size")
    if not isinstance(path, str) or not isinstance(sha256, str) or not re.match(r"^[0-9a-fA-F]{64}$", sha256):
        raise CudnnError(
            "%s lists no path and sha256 for %s: the archive could not be checked; set cudnn_version to another one"
            % (where, variant)
        )
    if "://" in path or path.startswith("/") or ".." in path.split("/"):
        raise CudnnError(
            "%s names the archive %r, which is not below it: nothing was fetched; ask who changed the "
            "manifest (a mirror?) before you trust it" % (where, path)
        )
    version = value["cudnn"].get("version")
    return Archive(
        path,
        sha256.lower(),
        int(str(size)) if re.fullmatch(r"[0-9]{1,20}", str(size)) else 0,
        version if isinstance(version, str) else "",
    )


def is_version(found: Optional[str], wanted: str) -> bool:
    """Return whether ``found`` is the wanted version; "9.10.2" wants any 9.10.2.x."""
    return found is not None and (found == wanted or found.startswith(wanted + "."))


def record_path(cuda: str, folder: str = RECORDS) -> str:
    """Return where our record of a toolkit's cuDNN lies."""
    return "%s/%s.json" % (folder, cuda)


def read_record(text: str) -> Optional[Record]:
    """Read our record, None for a damaged one (then the archive is simply placed again)."""
    try:
        value = json.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("files"), dict):
        return None
    cuda, version = value.get("cuda"), value.get("version")
    if not isinstance(cuda, str) or not isinstance(version, str):
        return None
    listed = {str(path): str(content) for path, content in value["files"].items()}
    return Record(cuda, version, value.get("complete") is True, listed, str(value.get("origin") or ""))


def write_record(record: Record) -> str:
    """Return the text of a record."""
    return json.dumps(record._asdict(), indent=1, sort_keys=True) + "\n"
