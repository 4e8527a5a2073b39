"""What is there of CUDA and cuDNN: read from files alone, so a converged host starts no program for it."""

from typing import Any, Dict, List, Optional

from .. import cuda, cudnn, profile_d
from ..host import Host

_HEADERS = ("include/cudnn_version.h", "include/cudnn.h")


def look(host: Host, packages: Dict[str, str]) -> Dict[str, Any]:
    """Return the parts "cuda" and "cudnn"; ``packages`` are the installed ones by name."""
    toolkits = _toolkits(host, packages)
    return {
        "cuda": {
            "toolkits": toolkits,
            "default": dict(cuda.read_default(host)._asdict()),
            "profile": {path: host.read(path) for path in (profile_d.SH, profile_d.CSH)},
        },
        "cudnn": {toolkit["version"]: _cudnn(host, toolkit["version"], toolkit["path"]) for toolkit in toolkits},
    }


def _toolkits(host: Host, packages: Dict[str, str]) -> List[Dict[str, Any]]:
    packaged = cuda.toolkits_of_packages(packages)
    folders = [version for version in map(cuda.version_of_folder, host.listdir(cuda.PREFIX)) if version]
    toolkits = []
    for version in sorted(set(packaged + folders), key=lambda text: [int(part) for part in text.split(".")]):
        path = cuda.folder(version)
        release = _release(host, path)
        if version in packaged:
            origin = "package"
        elif release and host.exists(path + "/bin/nvcc"):
            origin = "runfile"
        else:
            # A folder that single packages made, or what a removed toolkit left behind.
            origin = "partial"
        toolkits.append({"version": version, "path": path, "release": release, "origin": origin})
    return toolkits


def _release(host: Host, path: str) -> Optional[str]:
    text = host.read(path + "/version.json")
    if text is not None:
        return cuda.read_version_json(text)
    text = host.read(path + "/version.txt")
    return None if text is None else cuda.read_version_txt(text)


def _cudnn(host: Host, version: str, path: str) -> Dict[str, Any]:
    header = None
    for name in _HEADERS:
        text = host.read(path + "/" + name)
        header = header or (None if text is None else cudnn.read_header(text))
    text = host.read(cudnn.record_path(version))
    record = None if text is None else cudnn.read_record(text)
    missing = (
        []
        if record is None
        else [name for name in sorted(record.files) if host.readlink(name) is None and not host.exists(name)]
    )
    return {
        "version": header,
        "recorded": None if record is None else record.version,
        "complete": record is not None and record.complete and not missing,
        "missing": missing[:3],
    }
