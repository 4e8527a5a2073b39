"""The CUDA toolkits of a host, read from files alone: no program is started."""

from typing import Dict, List

from ..base import versions
from ..base.host import Host
from ..cuda import profile
from ..cuda import toolkit as cuda
from .model import CudaFacts, DefaultToolkitFacts, ToolkitFacts


def collect(host: Host, packages: Dict[str, str]) -> CudaFacts:
    default = cuda.read_default(host)
    return CudaFacts(
        toolkits=_collect_toolkits(host, packages),
        default=DefaultToolkitFacts(default.target, default.kind, default.mode),
        profile={path: host.read(path) for path in (profile.SH, profile.CSH)},
    )


def _collect_toolkits(host: Host, packages: Dict[str, str]) -> List[ToolkitFacts]:
    packaged = cuda.toolkits_of_packages(packages)
    directories = [version for version in map(cuda.version_of_directory, host.listdir(cuda.PREFIX)) if version]
    toolkits = []
    for version in sorted(set(packaged + directories), key=lambda text: [int(part) for part in text.split(".")]):
        path = cuda.toolkit_path(version)
        text = host.read(cuda.record_path(version))
        record = None if text is None else cuda.parse_record(text)
        cut_off = record is not None and not record.complete
        stated = cuda.installed_release(host, path)
        release = stated
        if version in packaged:
            origin = cuda.PACKAGE
            release = versions.upstream(packages[cuda.toolkit_package(version)]) or stated
        elif stated and record is None and cuda.series(stated) != version:
            origin = cuda.ALIAS
        elif not stated or cut_off or not host.exists(path + "/bin/nvcc"):
            # Created by single packages, left behind by a removed toolkit or by an installer that did not finish.
            origin = cuda.PARTIAL
        elif host.exists(path + "/" + cuda.UNINSTALLER):
            origin = cuda.RUNFILE
            release = record.release if record is not None and cuda.is_dated(stated) else stated
        else:
            origin = cuda.FOREIGN
        toolkits.append(ToolkitFacts(version, path, release, origin, cut_off and origin == cuda.PARTIAL))
    return toolkits
