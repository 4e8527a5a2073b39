"""What is there of CUDA: read from files alone, so a converged host starts no program for it."""

from typing import Any, Dict, List

from ..base import versions
from ..base.host import Host
from ..cuda import profile
from ..cuda import toolkit as cuda


def look(host: Host, packages: Dict[str, str]) -> Dict[str, Any]:
    """Return the part "cuda"; ``packages`` are the installed ones by name."""
    toolkits = _toolkits(host, packages)
    return {
        "cuda": {
            "toolkits": toolkits,
            "default": dict(cuda.read_default(host)._asdict()),
            "profile": {path: host.read(path) for path in (profile.SH, profile.CSH)},
        },
    }


def _toolkits(host: Host, packages: Dict[str, str]) -> List[Dict[str, Any]]:
    packaged = cuda.toolkits_of_packages(packages)
    folders = [version for version in map(cuda.version_of_directory, host.listdir(cuda.PREFIX)) if version]
    toolkits = []
    for version in sorted(set(packaged + folders), key=lambda text: [int(part) for part in text.split(".")]):
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
            # A folder that single packages made, what a removed toolkit left behind, or an installer that was cut off.
            origin = cuda.PARTIAL
        elif host.exists(path + "/" + cuda.UNINSTALLER):
            origin = cuda.RUNFILE
            release = record.release if record is not None and cuda.is_dated(stated) else stated
        else:
            origin = cuda.FOREIGN
        row = {"version": version, "path": path, "release": release, "origin": origin}
        toolkits.append(dict(row, cut_off=cut_off and origin == cuda.PARTIAL))
    return toolkits
