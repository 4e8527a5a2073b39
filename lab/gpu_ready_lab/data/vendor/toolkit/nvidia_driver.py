"""What an NVIDIA driver has on this host, and what of it a container gets."""

import ctypes
import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

VERSION = "@version@"
HOOK = "/usr/bin/nvidia-cdi-hook"

# Libraries of a driver, all named NAME.so.DRIVER_VERSION, and the programs beside them.
LIBRARIES = ("libcuda", *(f"libnvidia-{name}" for name in ("ml", "ptxjitcompiler", "nvvm", "opencl", "cfg")))
UTILITIES = ("libnvidia-ml", "libnvidia-cfg")
PROGRAMS = ("smi", "debugdump", "persistenced", "cuda-mps-control", "cuda-mps-server")
CONTROL_NODES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")
NO_NVML = "load library failed: libnvidia-ml.so.1: cannot open shared object file: no such file or directory"
NVML_ERRORS = {
    9: "driver not loaded",
    12: "NVML shared library not found",
    15: "gpu is lost",
    18: "driver/library version mismatch",
}


class DriverError(Exception):
    """The driver cannot be asked; the message is the text that the real programs give."""


class Gpu(NamedTuple):
    """One GPU."""

    number: int
    uuid: str
    path: str
    """Its device node."""


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
        raise DriverError(NO_NVML)
    return found[1]


def check_nvml() -> None:
    """Initialise NVML as the real programs do, so that a missing or mixed up driver is found here."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        raise DriverError(NO_NVML) from None
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
    rows = [line.split(", ") for line in done.stdout.splitlines()]
    return [Gpu(int(index), uuid, f"/dev/nvidia{_minor(bus, index)}") for index, uuid, bus in rows]


def _minor(bus: str, index: str) -> str:
    """Return the number of a GPU's device node; /proc says it, by a bus address with a domain of four digits."""
    try:
        text = Path(f"/proc/driver/nvidia/gpus/{bus[-12:].lower()}/information").read_text()
    except OSError:
        return index
    found = re.search(r"Device Minor:\s*(\d+)", text)
    return found[1] if found else index


def select(found: list[Gpu], requested: str) -> list[Gpu]:
    """Return the GPUs that NVIDIA_VISIBLE_DEVICES names."""
    chosen: list[Gpu] = []
    for name in requested.split(","):
        name = name.strip().removeprefix("nvidia.com/gpu=")
        matching = [gpu for gpu in found if name in ("all", str(gpu.number), gpu.uuid)]
        if not matching and name != "all":
            raise DriverError(f"device error: {name}: unknown device")
        chosen += [gpu for gpu in matching if gpu not in chosen]
    return chosen


def libraries() -> list[str]:
    """Return the real paths of the driver's libraries that are here."""
    known = [find_library(soname) for soname in ("libnvidia-ml.so.1", "libcuda.so.1")]
    # Debian's own packages keep them in a directory per library kind: look beside and one above.
    more = ["/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib/x86_64-linux-gnu"]
    directories = dict.fromkeys([*(directory_of(path) for path in known if path), *more])
    version = driver_version()
    places = [[Path(directory, f"{name}.so.{version}") for directory in directories] for name in LIBRARIES]
    found = [next((path for path in paths if path.exists()), None) for paths in places]
    return [os.path.realpath(path) for path in found if path]


def programs() -> list[tuple[str, str]]:
    """Return (path on the host, path in the container) of the driver's programs that are here."""
    paths = [f"/usr/bin/nvidia-{name}" for name in PROGRAMS]
    return [(os.path.realpath(path), path) for path in paths if Path(path).exists()]


def nodes(chosen: list[Gpu]) -> list[str]:
    """Return the paths of the device nodes for GPUs, with those that all of them share."""
    shared = [f"/dev/{name}" for name in CONTROL_NODES]
    return [gpu.path for gpu in chosen] + [path for path in shared if Path(path).is_char_device()]


def edits(capabilities: set[str] | None = None) -> dict[str, Any]:
    """Return the container edits that all GPUs share, in CDI's words."""
    capabilities = capabilities or {"compute", "utility"}
    everything = "all" in capabilities
    mounts = []
    for path in libraries():
        utility = Path(path).name.startswith(UTILITIES)
        if everything or ("utility" if utility else "compute") in capabilities:
            mounts.append((path, path))
    if everything or "utility" in capabilities:
        mounts += programs()
    libcuda = next((directory_of(path) for path, _ in mounts if Path(path).name.startswith("libcuda.so.")), None)
    calls = [["create-symlinks", "--link", f"libcuda.so.1::{libcuda}/libcuda.so"]] if libcuda else []
    calls.append(["enable-cuda-compat", f"--host-driver-version={driver_version()}"])
    calls.append(["update-ldcache"])
    for directory in library_directories(mounts):
        calls[-1] += ["--directory", directory]
    return {
        "env": [f"NVIDIA_CTK_LIBCUDA_DIR={libcuda or ''}", "NVIDIA_VISIBLE_DEVICES=void"],
        "deviceNodes": [{"path": path} for path in nodes([])],
        "hooks": [{"hookName": "createContainer", "path": HOOK, "args": ["nvidia-cdi-hook", *call]} for call in calls],
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


def cdi_specification() -> dict[str, Any]:
    """Return the CDI specification of this host: each GPU by its index and its UUID, and all of them."""
    found = gpus()
    groups = [(name, [gpu]) for gpu in found for name in (str(gpu.number), gpu.uuid)]
    if found:
        groups.append(("all", found))
    paths = {name: [{"path": gpu.path} for gpu in group] for name, group in groups}
    devices = [{"name": name, "containerEdits": {"deviceNodes": each}} for name, each in paths.items()]
    return {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices, "containerEdits": edits()}


def environment(spec: dict[str, Any]) -> dict[str, str]:
    """Return the environment of a container's process."""
    return dict(entry.split("=", 1) for entry in spec["process"].get("env") or [] if "=" in entry)


def capabilities(env: dict[str, str]) -> set[str]:
    """Return what NVIDIA_DRIVER_CAPABILITIES asks for."""
    words = env.get("NVIDIA_DRIVER_CAPABILITIES") or "utility,compute"
    return {word.strip() for word in words.split(",")}


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
