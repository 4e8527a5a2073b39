"""cuDNN: version header, names of archives and packages, NVIDIA's redist manifests, our own record."""

import json
import re
from typing import Dict, Iterable, List, NamedTuple, Optional

from ...base import versions
from ...base.errors import GpuReadyError
from ...base.json_file import parse_json

REDIST = "https://developer.download.nvidia.com/compute/cudnn/redist/"
RECORDS = "/var/lib/gpu-ready/cudnn"

_ARCHIVE = r"^cudnn-linux-(\w+)-(\d+(?:\.\d+){2,3})_cuda(\d+(?:\.\d+)?)-archive\.tar\.(?:xz|gz)$"
_OLD_ARCHIVE = r"^cudnn-(\d+\.\d+)-linux-(\w+)-v(\d+(?:\.\d+)*)\.(?:tgz|tar\.gz)$"
_ARCHITECTURES = {"x64": "x86_64"}
_PACKAGE = re.compile(r"^(?:lib)?cudnn(\d+)(?:-(?:dev|devel|headers|static))?(?:-cuda-(\d+)(?:-\d+)?)?$")
_PACKAGE_CUDA = re.compile(r"[+.]cuda(\d+)")
_DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+CUDNN_(MAJOR|MINOR|PATCHLEVEL)[ \t]+(\d+)[ \t\r]*$", re.MULTILINE)


class CudnnError(GpuReadyError):
    """cuDNN cannot be installed or removed."""


class ArchiveName(NamedTuple):
    """Parts of a file name: version (one to four numbers), CUDA as written ("12", "11.5"), architecture."""

    version: str
    cuda: str
    architecture: str


class CudnnPackage(NamedTuple):
    """An installed package: cuDNN's major version (``line``), CUDA's major version ("" if it has none), version."""

    name: str
    line: str
    cuda: str
    version: str


class CudnnRecord(NamedTuple):
    """Our record of one toolkit's cuDNN. ``files`` maps a path to its sha256, or to "link:<target>" for a link.

    ``complete`` is False until the last file is installed. ``origin`` identifies an archive of the operator
    (:func:`archive_origin`); "" for one of NVIDIA's server.
    """

    cuda: str
    version: str
    complete: bool
    files: Dict[str, str]
    origin: str = ""


def parse_header(text: str) -> Optional[str]:
    """Return the version ("9.10.2") in cudnn_version.h (cudnn.h before 8), None if a number is missing."""
    found = dict(_DEFINE.findall(text))
    if len(found) != 3:
        return None
    return "%s.%s.%s" % (found["MAJOR"], found["MINOR"], found["PATCHLEVEL"])


def release(version: str) -> str:
    """Return the three numbers of the header, from a full version ("9.10.2.21" -> "9.10.2")."""
    return ".".join(version.split(".")[:3])


def parse_archive_name(name: str) -> Optional[ArchiveName]:
    """Return None for a name that is not NVIDIA's.

    Up to 8.2 ``cudnn-8.0-linux-x64-v6.0.tgz``, then ``cudnn-linux-x86_64-8.9.7.29_cuda12-archive.tar.xz``.
    """
    found = re.match(_ARCHIVE, name)
    if found:
        return ArchiveName(found.group(2), found.group(3), _ARCHITECTURES.get(found.group(1), found.group(1)))
    found = re.match(_OLD_ARCHIVE, name)
    if found:
        return ArchiveName(found.group(3), found.group(1), _ARCHITECTURES.get(found.group(2), found.group(2)))
    return None


def supports_toolkit(cuda: str, toolkit: str) -> bool:
    """Return True if an archive for ``cuda`` works with a toolkit.

    Of its major version since 11, else of its version.
    """
    major = cuda.split(".")[0]
    return major == toolkit.split(".")[0] and (int(major) >= 11 or cuda in (major, toolkit))


def archive_origin(archive: str, sha256: str) -> str:
    """Identifies an archive of the operator: by its checksum, or by its name if none is given."""
    return "sha256:" + sha256.lower() if sha256 else "file:" + archive.rpartition("/")[2]


def find_packages(installed: Dict[str, str]) -> List[CudnnPackage]:
    """Return CuDNN's packages among the installed ones (name: version as the package manager writes it)."""
    found = []
    for name, version in sorted(installed.items()):
        parts = _PACKAGE.match(name)
        if parts:
            built = _PACKAGE_CUDA.search(version)
            cuda = parts.group(2) or (built.group(1) if built else "")
            found.append(CudnnPackage(name, parts.group(1), cuda, version.rpartition(":")[2].partition("-")[0]))
    return found


def packaged_version(installed: Iterable[CudnnPackage], toolkit: str) -> Optional[str]:
    major = toolkit.split(".")[0]
    found = [one.version for one in installed if one.cuda == major and re.match(r"libcudnn\d+(-cuda-\d+)?$", one.name)]
    return max(found, key=versions.key) if found else None


def manifest_path(version: str) -> str:
    """Return the file name of the redist manifest: four numbers up to 8.x, three since 9."""
    name = version if int(version.split(".")[0]) < 9 else release(version)
    return "redistrib_%s.json" % name


def manifest_variant(cuda: str) -> str:
    """Return the variant in the manifest for a CUDA toolkit ("12.9" -> "cuda12")."""
    return "cuda" + cuda.split(".")[0]


def is_version(found: Optional[str], requested: str) -> bool:
    """Return True if ``found`` matches the requested version; any 9.10.2.x matches "9.10.2"."""
    return found is not None and (found == requested or found.startswith(requested + "."))


def record_path(cuda: str, directory: str = RECORDS) -> str:
    return "%s/%s.json" % (directory, cuda)


def parse_record(text: str) -> Optional[CudnnRecord]:
    """Return None for a damaged record; the manifest has the files too."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("files"), dict):
        return None
    cuda, version = value.get("cuda"), value.get("version")
    if not isinstance(cuda, str) or not isinstance(version, str):
        return None
    listed = {str(path): str(content) for path, content in value["files"].items()}
    return CudnnRecord(cuda, version, value.get("complete") is True, listed, str(value.get("origin") or ""))


def format_record(record: CudnnRecord) -> str:
    return json.dumps(record._asdict(), indent=1, sort_keys=True) + "\n"
