"""The catalog as its files have it (catalog/*.yml), with what they abbreviate written out.

It is read once, by the process that imports this first. model.py has the records that planners use.
"""

import hashlib
from pathlib import Path
from typing import Any

from ....module_utils.gpu_ready.system import monitoring_files
from . import expand
from .files import CATALOG, COLLECTION, read


def monitor_digest() -> str:
    """Return the digest by which a plan knows whether a host has the present program of the monitoring service."""
    paths = sorted((COLLECTION / "module_utils/gpu_ready/monitor").glob("*.py"))
    return str(monitoring_files.program_digest({path.name: path.read_bytes() for path in paths}))


def dcgm_files() -> dict[str, str]:
    """Return the beginning of the digest by path of what the role writes for DCGM's exporter."""
    own = {path: COLLECTION / "roles/gpu_monitoring/files" / Path(path).name for path in monitoring_files.DCGM_FILES}
    return {path: hashlib.sha256(source.read_bytes()).hexdigest()[:16] for path, source in own.items()}


_branches, _cuda, _cudnn, _gpus = (read(name) for name in ("branches.yml", "cuda.yml", "cudnn.yml", "gpus.yml"))

DATE: str = _branches["date"]
NEWEST_BRANCH: int = expand.published_branches(_branches)[-1]
BRANCHES: dict[int, dict[str, Any]] = _branches["branches"]
TOOLKITS: dict[str, dict[str, Any]] = _cuda["toolkits"]
CUDA_INSTALLERS: dict[str, dict[str, str]] = _cuda["installers"].pop("releases")
CUDA_INSTALLER: dict[str, Any] = _cuda["installers"]
CUDNN_PATH: str = _cudnn["path"]
CUDNNS: dict[str, dict[str, Any]] = _cudnn["releases"]
CUDNN_PACKAGES: dict[int, dict[str, Any]] = _cudnn["packages"]
DISTROS: dict[str, dict[str, Any]] = {
    path.stem: expand.expand_distribution(read(path), _branches, list(TOOLKITS))
    for path in sorted((CATALOG / "distros").glob("*.yml"))
}
FAMILIES: dict[str, Any] = expand.expand_families(read("families.yml"), DISTROS.values())
DRIVER_PACKAGES: dict[str, Any] = read("driver_packages.yml")
MANAGED_HOSTS: dict[str, dict[str, Any]] = read("managed_hosts.yml")
MONITOR: str = monitor_digest()
DCGM: dict[str, Any] = read("monitoring.yml")["dcgm"] | {"files": dcgm_files()}
REPOSITORIES: dict[str, dict[str, Any]] = read("repositories.yml")["repositories"]
GPU_GROUPS: list[dict[str, Any]] = _gpus["gpus"]
NVSWITCHES: dict[str, str] = _gpus["nvswitches"]
FIRST_OF_TURING: str = _gpus["first_of_turing"]
