"""The catalog as its files have it (catalog/*.yml), with what they abbreviate written out.

It is read once, by the process that imports this first, and again with the rows of an operator's own file (overlay.py).
model.py has the records that planners use.
"""

from pathlib import Path
from typing import Any

from ....module_utils.gpu_ready.system import monitoring_files
from . import expand
from .files import CATALOG, COLLECTION, read


def monitor_digest() -> str:
    """Return the digest by which a plan knows whether a host has the present program of the monitoring service."""
    return str(monitoring_files.program_digest(program_sources(*monitoring_files.SUBJECTS)))


def program_sources(*subjects: str) -> dict[str, bytes]:
    """Return the files of packages that run on hosts by themselves, by their names below the one that has them."""
    root = COLLECTION / "module_utils/gpu_ready"
    paths = sorted(path for subject in subjects for path in (root / subject).glob("*.py"))
    return {"__init__.py": b""} | {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def dcgm_files() -> dict[str, str]:
    """Return the beginning of the digest by path of what the role writes for DCGM's exporter."""
    own = {path: COLLECTION / "roles/gpu_monitoring/files" / Path(path).name for path in monitoring_files.DCGM_FILES}
    return {path: monitoring_files.short_digest(source.read_bytes()) for path, source in own.items()}


def read_rows() -> dict[str, Any]:
    """Return the files that an operator's own can add to (overlay.py), by name, with what rows inherit."""
    names = ("branches", "cuda", "cudnn", "gpus", "repositories", "security")
    bases = read("bases.yml")
    paths = sorted((CATALOG / "distros").glob("*.yml"))
    distros = {path.stem: expand.complete_distribution(path.stem, read(path), bases) for path in paths}
    rows = {name: read(name + ".yml") for name in names}
    repositories = expand.complete_repositories(rows["repositories"])
    return rows | {"distros": distros, "repositories": {"repositories": repositories}}


DATE: str
BRANCHES: dict[int, dict[str, Any]]
KERNEL_MIN: dict[str, str]
"""The oldest series of the kernel by limits of the branch."""
PUBLISHED: list[int]
"""The branches with a known point release, ascending."""
TOOLKITS: dict[str, dict[str, Any]]
CUDA_INSTALLERS: dict[str, dict[str, str]]
CUDA_INSTALLER: dict[str, Any]
CUDNN_PATH: str
CUDNNS: dict[str, dict[str, Any]]
CUDNN_PACKAGES: dict[int, dict[str, Any]]
DISTROS: dict[str, dict[str, Any]]
FAMILIES: dict[str, Any]
REPOSITORIES: dict[str, dict[str, Any]]
GPU_GROUPS: list[dict[str, Any]]
NVSWITCHES: dict[str, str]
FIRST_OF_TURING: str
BULLETINS: dict[str, dict[str, Any]]
EVERY_RELEASE: list[str]
GENERATION = 0
"""Counts the times that the rows above were written."""


def use(rows: dict[str, Any]) -> None:
    """Make these rows, of :func:`read_rows`, the catalog of this process."""
    branches, cuda, cudnn, gpus = (rows[name] for name in ("branches", "cuda", "cudnn", "gpus"))
    distros = {
        key: expand.expand_distribution(data, branches, list(cuda["toolkits"])) for key, data in rows["distros"].items()
    }
    globals().update(
        DATE=branches["date"],
        BRANCHES=branches["branches"],
        KERNEL_MIN=branches["kernel_min"],
        PUBLISHED=expand.published_branches(branches),
        TOOLKITS=cuda["toolkits"],
        CUDA_INSTALLERS=cuda["installers"]["releases"],
        CUDA_INSTALLER=cuda["installers"],
        CUDNN_PATH=cudnn["path"],
        CUDNNS=cudnn["releases"],
        CUDNN_PACKAGES=cudnn["packages"],
        DISTROS=distros,
        FAMILIES=expand.expand_families(read("families.yml"), distros.values()),
        REPOSITORIES=rows["repositories"]["repositories"],
        GPU_GROUPS=gpus["gpus"],
        NVSWITCHES=gpus["nvswitches"],
        FIRST_OF_TURING=gpus["first_of_turing"],
        BULLETINS=rows["security"]["bulletins"],
        EVERY_RELEASE=rows["security"]["every_release"],
        GENERATION=GENERATION + 1,
    )


use(read_rows())
DRIVER_PACKAGES: dict[str, Any] = read("driver_packages.yml")
MANAGED_HOSTS: dict[str, dict[str, Any]] = read("managed_hosts.yml")
MONITOR: str = monitor_digest()
CHECK: dict[str, bytes] = program_sources("check")
"""Files of gpu-ready-check by their names in its program."""
DCGM: dict[str, Any] = read("monitoring.yml")["dcgm"] | {"files": dcgm_files()}
