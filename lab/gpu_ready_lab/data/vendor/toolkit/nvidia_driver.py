"""What an NVIDIA driver has on this host, and what of it a container gets."""

import ctypes
import json
import os
import re
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

VERSION = "@version@"
HOOK = "/usr/bin/nvidia-cdi-hook"

# Libraries of a driver, all named NAME.so.DRIVER_VERSION, and the programs beside them.
LIBRARIES = (
    "libcuda",
    "libnvidia-ml",
    "libnvidia-ptxjitcompiler",
    "libnvidia-nvvm",
    "libnvidia-opencl",
    "libnvidia-cfg",
)
PROGRAMS = (
    "nvidia-smi",
    "nvidia-debugdump",
    "nvidia-persistenced",
    "nvidia-cuda-mps-control",
    "nvidia-cuda-mps-server",
)
CONTROL_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
NVML_ERRORS = {
    9: "driver not loaded",
    12: "NVML shared library not found",
    15: "gpu is lost",
    18: "driver/library version mismatch",
}


class DriverError(Exception):
    """The driver cannot be asked; the message is the text that the real programs give."""


class Gpu:
    """One GPU."""

    def __init__(self, index: int, minor: int, uuid: str) -> None:
        self.index = index
        self.minor = minor
        self.uuid = uuid
        self.path = f"/dev/nvidia{minor}"


def find_library(name: str) -> str | None:
    """Return the real path of a library by its SONAME, through the linker's cache; None when there is none."""
    done = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, timeout=20, check=True)
    for line in done.stdout.splitlines():
        found = re.match(r"\s*(\S+) \((.*)\) => (\S+)", line)
        if found and found[1] == name and "x86-64" in found[2]:
            return os.path.realpath(found[3])
    return None


def driver_version() -> str:
    """Return the version of the driver's libraries on this host, "580.95.05"."""
    library = find_library("libnvidia-ml.so.1") or find_library("libcuda.so.1")
    found = re.search(r"\.so\.(\d+\.\d+(?:\.\d+)?)$", library or "")
    if not found:
        raise DriverError(
            "load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory"
        )
    return found[1]


def check_nvml() -> None:
    """Initialise NVML as the real programs do, so that a missing or mixed up driver is found here."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        raise DriverError(
            "load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory"
        ) from None
    code = nvml.nvmlInit_v2()
    if code:
        raise DriverError(f"nvml error: {NVML_ERRORS.get(code, f'unknown error ({code})')}")
    nvml.nvmlShutdown()


def gpus() -> list[Gpu]:
    """Return the GPUs that the driver drives, as nvidia-smi numbers them."""
    check_nvml()
    done = subprocess.run(
        ["nvidia-smi", "--query-gpu=index,uuid,pci.bus_id", "--format=csv,noheader"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode == 6:
        return []
    if done.returncode:
        raise DriverError(f"nvml error: {(done.stdout + done.stderr).strip().splitlines()[0]}")
    found: list[Gpu] = []
    for line in done.stdout.splitlines():
        index, uuid, bus = (part.strip() for part in line.split(","))
        found.append(Gpu(int(index), _minor(bus, int(index)), uuid))
    return found


def _minor(bus: str, index: int) -> int:
    """Return the number of a GPU's device node; /proc says it, by a bus address with a domain of four digits."""
    address = bus[-12:].lower()
    try:
        text = Path(f"/proc/driver/nvidia/gpus/{address}/information").read_text()
    except OSError:
        return index
    found = re.search(r"Device Minor:\s*(\d+)", text)
    return int(found[1]) if found else index


def select(found: list[Gpu], requested: str) -> list[Gpu]:
    """Return the GPUs that NVIDIA_VISIBLE_DEVICES names."""
    if requested in ("all", "nvidia.com/gpu=all"):
        return found
    chosen: list[Gpu] = []
    for name in requested.split(","):
        name = name.strip().removeprefix("nvidia.com/gpu=")
        if name == "all":
            return found
        matching = [gpu for gpu in found if name in (str(gpu.index), gpu.uuid)]
        if not matching:
            raise DriverError(f"device error: {name}: unknown device")
        chosen += [gpu for gpu in matching if gpu not in chosen]
    return chosen


def libraries() -> list[str]:
    """Return the real paths of the driver's libraries that are here."""
    version = driver_version()
    directories = []
    for soname in ("libnvidia-ml.so.1", "libcuda.so.1"):
        library = find_library(soname)
        if library and directory_of(library) not in directories:
            directories.append(directory_of(library))
    # Debian's own packages keep them in a directory per library kind: look beside and one above
    directories += [
        f for f in ("/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/x86_64-linux-gnu") if f not in directories
    ]
    found = []
    for name in LIBRARIES:
        for directory in directories:
            path = f"{directory}/{name}.so.{version}"
            if Path(path).exists():
                found.append(os.path.realpath(path))
                break
    return found


def programs() -> list[tuple[str, str]]:
    """Return (path on the host, path in the container) of the driver's programs that are here."""
    found = []
    for name in PROGRAMS:
        path = f"/usr/bin/{name}"
        if Path(path).exists():
            found.append((os.path.realpath(path), path))
    return found


def nodes(chosen: list[Gpu]) -> list[str]:
    """Return the paths of the device nodes for GPUs, with those that all of them share."""
    shared = [f"/dev/{name}" for name in CONTROL_NODES]
    return [gpu.path for gpu in chosen] + [path for path in shared if is_device(path)]


def is_device(path: str) -> bool:
    """Check whether a path is a character device."""
    try:
        return stat.S_ISCHR(Path(path).stat().st_mode)
    except OSError:
        return False


def edits(capabilities: set[str] | None = None) -> dict[str, Any]:
    """Return the container edits that all GPUs share, in CDI's words."""
    capabilities = capabilities or {"compute", "utility"}
    everything = "all" in capabilities
    version = driver_version()
    mounts = []
    for path in libraries():
        name = Path(path).name
        utility = name.startswith(("libnvidia-ml", "libnvidia-cfg"))
        if everything or (utility and "utility" in capabilities) or (not utility and "compute" in capabilities):
            mounts.append((path, path))
    if everything or "utility" in capabilities:
        mounts += programs()
    directories = library_directories(mounts)
    libcuda = _directory("libcuda", mounts)
    links = ["--link", f"libcuda.so.1::{libcuda}/libcuda.so"] if libcuda else []
    hooks = []
    if links:
        hooks.append(
            {"hookName": "createContainer", "path": HOOK, "args": ["nvidia-cdi-hook", "create-symlinks", *links]}
        )
    hooks.append(
        {
            "hookName": "createContainer",
            "path": HOOK,
            "args": ["nvidia-cdi-hook", "enable-cuda-compat", f"--host-driver-version={version}"],
        }
    )
    update = ["nvidia-cdi-hook", "update-ldcache"]
    for directory in directories:
        update += ["--directory", directory]
    hooks.append({"hookName": "createContainer", "path": HOOK, "args": update})
    return {
        "env": [f"NVIDIA_CTK_LIBCUDA_DIR={_directory('libcuda', mounts) or ''}", "NVIDIA_VISIBLE_DEVICES=void"],
        "deviceNodes": [{"path": path} for path in nodes([])],
        "hooks": hooks,
        "mounts": [
            {"hostPath": source, "containerPath": target, "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"]}
            for source, target in mounts
        ],
    }


def directory_of(path: str) -> str:
    """Return the directory of a file."""
    return str(Path(path).parent)


def library_directories(mounts: list[tuple[str, str]]) -> list[str]:
    """Return the directories that mounted libraries are in."""
    return sorted({directory_of(target) for _, target in mounts if ".so." in target})


def _directory(library: str, mounts: list[tuple[str, str]]) -> str | None:
    for path, _ in mounts:
        if Path(path).name.startswith(f"{library}.so."):
            return directory_of(path)
    return None


def cdi_specification(strategies: Sequence[str] = ("index", "uuid")) -> dict[str, Any]:
    """Return the CDI specification of this host."""
    found = gpus()
    devices = []
    for gpu in found:
        names = {"index": str(gpu.index), "uuid": gpu.uuid}
        devices += [
            {"name": names[strategy], "containerEdits": {"deviceNodes": [{"path": gpu.path}]}}
            for strategy in strategies
            if strategy in names
        ]
    if found:
        devices.append({"name": "all", "containerEdits": {"deviceNodes": [{"path": gpu.path} for gpu in found]}})
    return {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices, "containerEdits": edits()}


def environment(spec: dict[str, Any]) -> dict[str, str]:
    """Return the environment of a container's process."""
    return dict(entry.split("=", 1) for entry in spec["process"].get("env") or [] if "=" in entry)


def capabilities(env: dict[str, str]) -> set[str]:
    """Return what NVIDIA_DRIVER_CAPABILITIES asks for."""
    capabilities = env.get("NVIDIA_DRIVER_CAPABILITIES") or "utility,compute"
    return {word.strip() for word in capabilities.split(",")}


def check_requirements(env: dict[str, str], version: str) -> None:
    """Refuse a container whose NVIDIA_REQUIRE_CUDA this driver does not meet: words are alternatives."""
    if env.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "true") or not env.get("NVIDIA_REQUIRE_CUDA"):
        return
    known = {"cuda": cuda_version() or (), "driver": tuple(int(part) for part in version.split("."))}
    failed = [_unmet(alternative, known) for alternative in env["NVIDIA_REQUIRE_CUDA"].split()]
    if all(failed):
        raise DriverError(
            f"requirement error: unsatisfied condition: {failed[0]}, please update your driver to a newer version,"
            " or use an earlier cuda container"
        )


def _unmet(alternative: str, known: dict[str, tuple[int, ...]]) -> str | None:
    """Return the first condition of an alternative that does not hold."""
    for condition in alternative.split(","):
        parts = re.fullmatch(r"(cuda|driver)(>=|<=|=|<|>)(\d+(?:\.\d+)*)", condition)
        if not parts:
            return condition  # brand and arch: the stand-in knows neither
        need = tuple(int(part) for part in parts[3].split("."))
        have = known[parts[1]][: len(need)]
        holds = {">=": have >= need, "<=": have <= need, "=": have == need, "<": have < need, ">": have > need}
        if not holds[parts[2]]:
            return condition
    return None


def cuda_version() -> tuple[int, int] | None:
    """Return the CUDA version that the driver supports, (13, 0); None when it does not say."""
    try:
        number = ctypes.c_int()
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() or nvml.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(number)):
            return None
    except (OSError, AttributeError):
        return None
    return number.value // 1000, number.value % 1000 // 10


def device_number(path: str) -> tuple[int, int]:
    """Return (major, minor) of a device node."""
    number = Path(path).stat().st_rdev
    return os.major(number), os.minor(number)


def read_specification(bundle: str) -> dict[str, Any]:
    """Return config.json of a bundle."""
    spec: dict[str, Any] = json.loads(Path(bundle, "config.json").read_text())
    return spec


def root_of(bundle: str, spec: dict[str, Any]) -> str:
    """Return the root file system of a bundle."""
    return str(Path(bundle, spec["root"]["path"]))


def update_linker_cache(root: str, directories: Sequence[str]) -> None:
    """Run the host's ldconfig over a container's root, so that mounted libraries get their SONAME links."""
    subprocess.run(["/sbin/ldconfig", "-r", root, *directories], capture_output=True, timeout=60, check=True)
