"""Our own CDI specification, built from device nodes and driver files.

It needs no NVIDIA program when a container starts: without nvidia-cdi-hook nothing creates links or runs ldconfig,
so every driver library is mounted under each of its names, in the default library directories of the Debian and the RPM
family.
"""

import json
import posixpath
from typing import Any, Dict, Iterable, List

from ..driver.libraries import RPM_DIRECTORY
from .cdi import KIND, CdiGpu, DriverFiles

_OPTIONS = ["ro", "nosuid", "nodev", "bind"]


def build_spec(driver: DriverFiles, gpus: Iterable[CdiGpu], directory: str = "/usr/lib/x86_64-linux-gnu") -> str:
    """Return our own specification as text; ``directory``: the library directory of Debian images on this architecture.

    Devices are named by index and UUID, and ``all``.
    """
    gpus = list(gpus)
    devices: List[Dict[str, Any]] = []
    for gpu in gpus:
        for name in (str(gpu.number), gpu.uuid):
            if name:
                devices.append({"name": name, "containerEdits": {"deviceNodes": [{"path": gpu.node}]}})
    devices.append({"name": "all", "containerEdits": {"deviceNodes": [{"path": gpu.node} for gpu in gpus]}})
    mounts: List[Dict[str, Any]] = []
    for library in driver.libraries:
        for target in (directory, RPM_DIRECTORY):
            for name in library.names:
                mounts.append(_mount(library.path, posixpath.join(target, name)))
    for name in sorted(driver.programs):
        mounts.append(_mount(driver.programs[name], "/usr/bin/" + name))
    spec = {
        "cdiVersion": "0.5.0",
        "kind": KIND,
        "devices": devices,
        "containerEdits": {
            "env": ["NVIDIA_VISIBLE_DEVICES=void"],
            "deviceNodes": [{"path": path} for path in driver.nodes],
            "mounts": mounts,
        },
    }
    return json.dumps(spec, indent=1) + "\n"


def _mount(source: str, target: str) -> Dict[str, Any]:
    return {"hostPath": source, "containerPath": target, "options": _OPTIONS}
