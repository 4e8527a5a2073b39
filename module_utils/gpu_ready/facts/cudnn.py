"""What is there of cuDNN: headers and our records in the toolkits' folders, and packages; no program is started."""

from typing import Any, Dict, List, Optional

from ..base import manifest
from ..base.host import Host
from ..cuda.cudnn import model as cudnn

_HEADERS = ("include/cudnn_version.h", "include/cudnn.h")


def look(host: Host, packages: Dict[str, str], toolkits: List[Dict[str, Any]]) -> Dict[str, Any]:
    """Return the parts "cudnn" (by toolkit) and "cudnn_packages"; ``packages`` are the installed ones by name.

    Of a toolkit: ``version`` as the header in its folder states it, ``package`` as packages bring it for its CUDA
    major, and of our record ``recorded`` (the full version), ``origin``, ``complete`` (no file is missing) and
    ``missing``.
    """
    packaged = cudnn.find_packages(packages)
    return {
        "cudnn": {one["version"]: _toolkit(host, one["version"], one["path"], packaged) for one in toolkits},
        "cudnn_packages": _packages(host, packages, packaged),
    }


def _packages(host: Host, packages: Dict[str, str], packaged: List[cudnn.CudnnPackage]) -> Dict[str, Any]:
    """Return the packages of cuDNN with their versions; which of them, and which holds, gpu-ready brought.

    A damaged manifest lists nothing here: whatever is changed then notes first, and says that it cannot.
    """
    try:
        noted = manifest.parse(host.read(manifest.PATH) or "{}") if packaged else {}
    except manifest.ManifestError:
        noted = {}
    names = [one.name for one in packaged]
    return {
        "installed": {name: packages[name] for name in names},
        "ours": [name for name in names if name in noted.get("packages", {})],
        "held_by_us": [name for name in names if name in noted.get("holds", {})],
    }


def _toolkit(host: Host, version: str, path: str, packaged: List[cudnn.CudnnPackage]) -> Dict[str, Any]:
    header: Optional[str] = None
    for name in _HEADERS:
        text = host.read(path + "/" + name)
        header = header or (None if text is None else cudnn.parse_header(text))
    text = host.read(cudnn.record_path(version))
    record = None if text is None else cudnn.parse_record(text)
    missing = (
        []
        if record is None
        else [name for name in sorted(record.files) if host.readlink(name) is None and not host.exists(name)]
    )
    return {
        "version": header,
        "package": cudnn.packaged_version(packaged, version),
        "recorded": None if record is None else record.version,
        "origin": "" if record is None else record.origin,
        "complete": record is not None and record.complete and not missing,
        "missing": missing[:3],
    }
