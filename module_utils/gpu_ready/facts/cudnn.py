"""cuDNN on a host: headers and our records in the toolkits' directories, and packages; no program is started."""

from typing import Dict, List, Optional, Tuple

from ..base import manifest
from ..base.host import Host
from ..cuda.cudnn import model as cudnn
from .model import CudnnFacts, CudnnPackageFacts, ToolkitFacts

_HEADERS = ("include/cudnn_version.h", "include/cudnn.h")


def collect(
    host: Host, packages: Dict[str, str], toolkits: List[ToolkitFacts]
) -> Tuple[Dict[str, CudnnFacts], CudnnPackageFacts]:
    packaged = cudnn.find_packages(packages)
    by_toolkit = {one.version: _collect_toolkit(host, one.version, one.path, packaged) for one in toolkits}
    return by_toolkit, _collect_packages(host, packages, packaged)


def _collect_packages(host: Host, packages: Dict[str, str], packaged: List[cudnn.CudnnPackage]) -> CudnnPackageFacts:
    names = [one.name for one in packaged]
    known = manifest.collect(host) if names else {}
    return CudnnPackageFacts(
        installed={name: packages[name] for name in names},
        ours=[name for name in names if name in manifest.owned_packages(known)],
        held_by_us=[name for name in names if name in known.get("holds", {})],
    )


def _collect_toolkit(host: Host, version: str, path: str, packaged: List[cudnn.CudnnPackage]) -> CudnnFacts:
    header: Optional[str] = None
    for name in _HEADERS:
        text = host.read(path + "/" + name)
        header = header or (None if text is None else cudnn.parse_header(text))
    package = cudnn.packaged_version(packaged, version)
    text = host.read(cudnn.record_path(version))
    record = None if text is None else cudnn.parse_record(text)
    if record is None:
        # An installation that was not completed leaves a damaged record.
        return CudnnFacts(version=header, package=package, recorded=None if text is None else header)
    missing = [name for name in sorted(record.files) if host.readlink(name) is None and not host.exists(name)]
    return CudnnFacts(header, package, record.version, record.origin, record.complete and not missing, missing[:3])
