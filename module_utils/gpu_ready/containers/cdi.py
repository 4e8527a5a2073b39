"""Parse CDI specifications that other programs wrote; find the driver files for our own (cdi_build.py)."""

import posixpath
import re
from typing import Dict, Iterable, List, NamedTuple, Optional, Tuple

from ..base.json_file import parse_json

KIND = "nvidia.com/gpu"
DIRECTORIES = ("/etc/cdi", "/var/run/cdi")
NATIVE = "/etc/cdi/gpu-ready.json"
GENERATED = "/etc/cdi/nvidia.yaml"
REFRESHED = "/var/run/cdi/nvidia.yaml"
BOOT_NODES = "/etc/systemd/system/docker.service.d/gpu-ready-nodes.conf"
"""Creates the device nodes of our specification before docker starts; systemd reads it at the next boot."""
NODES = ("/etc/systemd/system/gpu-ready-nodes.service", "/etc/systemd/system/multi-user.target.d/gpu-ready-nodes.conf")
"""The same for engines without a service (podman) and containerd: a unit, and a drop-in that starts it at boot.

A drop-in of the target, not a link in its directory: it needs no reload of systemd, after which containers of the
legacy hook lose their GPUs.
"""
REFRESH_OLD = "/etc/systemd/system/nvidia-cdi-refresh.service.d/gpu-ready.conf"
"""Makes the toolkit's own service write a format for engines before CDI 0.7.0; systemd reads it at the next boot."""
FEATURES = "NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS"
OLD_FEATURES = ("no-additional-gids-for-device-nodes",)
"""nvidia-ctk 1.19.1 and newer adds groups of device nodes, a feature of CDI 0.7.0, unless this flag is set; older
versions ignore the variable or the flag.
https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/release-notes.html
"""
REFRESH_OLD_TEXT = "# Written by gpu-ready; playbooks/uninstall.yml removes it.\n[Service]\nEnvironment=%s=%s\n" % (
    FEATURES,
    ",".join(OLD_FEATURES),
)

LIBRARIES = (
    "libcuda",
    "libcudadebugger",
    "libnvcuvid",
    "libnvidia-allocator",
    "libnvidia-cfg",
    "libnvidia-compiler",
    "libnvidia-encode",
    "libnvidia-fatbinaryloader",
    "libnvidia-gpucomp",
    "libnvidia-ml",
    "libnvidia-nvvm",
    "libnvidia-nvvm70",
    "libnvidia-opencl",
    "libnvidia-opticalflow",
    "libnvidia-pkcs11",
    "libnvidia-pkcs11-openssl3",
    "libnvidia-ptxjitcompiler",
    "libnvidia-sandboxutils",
    "libnvidia-tileiras",
)
"""Libraries of the driver for compute, video and NVML programs, without graphics."""
PROGRAMS = ("nvidia-smi", "nvidia-debugdump", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server")
SHARED_DEVICES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")

_LIBRARY = re.compile(r"^(%s)\.so(\.[0-9.]+)?$" % "|".join(re.escape(name) for name in LIBRARIES))
_VERSION = re.compile(r"\.so\.(\d+\.\d+(?:\.\d+)*)$")
_HOST_PATH = r"""hostPath["']?\s*:\s*["']?(/[^\s"',}]+)"""
_NODE_PATH = r"""(?<![A-Za-z])["']?path["']?\s*:\s*["']?(/dev/[^\s"',}]+)"""


class CdiSpec(NamedTuple):
    """``nodes`` and ``files`` are paths on the host, ``versions`` the driver versions in them.

    ``format``: the version of CDI that the engine must support.
    """

    kind: str
    devices: Tuple[str, ...]
    nodes: Tuple[str, ...]
    files: Tuple[str, ...]
    versions: Tuple[str, ...]
    format: Optional[str] = None


class DriverLibrary(NamedTuple):
    """One driver library: the file, and all names under which programs load it."""

    path: str
    names: Tuple[str, ...]


class CdiGpu(NamedTuple):
    """``number`` is NVML's index."""

    number: int
    node: str
    uuid: Optional[str]


class DriverFiles(NamedTuple):
    """Files of the driver for containers; ``programs`` are paths by name, ``nodes`` the shared device nodes."""

    version: Optional[str]
    libraries: Tuple[DriverLibrary, ...]
    programs: Dict[str, str]
    nodes: Tuple[str, ...]


# ---------------------------------------------------------------------------------------------------------- reading


def parse_spec(text: str) -> Optional[CdiSpec]:
    """Parse a specification in JSON or in the simple YAML of ``nvidia-ctk``; None for another text."""
    spec = _parse_json(text) if text.lstrip().startswith("{") else None
    return spec or _parse_yaml(text)


def _spec(
    kind: str, devices: Iterable[str], nodes: Iterable[str], files: Iterable[str], version: Optional[str]
) -> CdiSpec:
    hosts = _once(files)
    versions = _once(match.group(1) for match in map(_VERSION.search, hosts) if match)
    return CdiSpec(kind, _once(devices), _once(nodes), hosts, versions, version)


def _once(items: Iterable[str]) -> Tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def _parse_json(text: str) -> Optional[CdiSpec]:
    try:
        value = parse_json(text)
        edits = [value.get("containerEdits") or {}] + [item.get("containerEdits") or {} for item in value["devices"]]
        return _spec(
            value["kind"],
            [str(item["name"]) for item in value["devices"]],
            [node["path"] for edit in edits for node in edit.get("deviceNodes") or []],
            [mount["hostPath"] for edit in edits for mount in edit.get("mounts") or []],
            str(value["cdiVersion"]) if "cdiVersion" in value else None,
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _parse_yaml(text: str) -> Optional[CdiSpec]:
    """Only the needed keys, from block or flow style: the standard library has no YAML parser."""
    kind = re.search(r"""^["']?kind["']?\s*:\s*["']?([^\s"'#]+)""", text, re.MULTILINE)
    if kind is None:
        return None
    names: List[str] = []
    inside, column = False, -1
    for line in text.splitlines():
        if re.match(r"[A-Za-z\"']", line):
            inside, column = bool(re.match(r"""["']?devices["']?\s*:""", line)), -1
        item = re.match(r"( *)- ", line)
        if inside and item and column < 0:
            column = len(item.group(1))
        # A device's own keys are two columns right of its dash; deeper keys belong to its edits.
        name = re.match(r"""[ -]*\{?["']?name["']?\s*:\s*["']?([^\s"',}]+)""", line)
        if inside and name and len(line) - len(line.lstrip(" -{")) in (column + 2, column + 3):
            names.append(name.group(1))
    version = re.search(r"""^["']?cdiVersion["']?\s*:\s*["']?([0-9.]+)""", text, re.MULTILINE)
    nodes, files = re.findall(_NODE_PATH, text), re.findall(_HOST_PATH, text)
    return _spec(kind.group(1), names, nodes, files, version.group(1) if version else None)


# --------------------------------------------------------------------------------------------------------- building


def select_libraries(names: Iterable[Tuple[str, str]]) -> Tuple[Optional[str], Tuple[DriverLibrary, ...]]:
    """Return the driver version and its libraries, from pairs (path as listed, path with links resolved).

    The version is taken from NVML's library, else from CUDA's. Files of another version, left by another driver, are
    ignored.
    """
    real: Dict[str, List[str]] = {}
    for path, target in names:
        if _LIBRARY.match(posixpath.basename(path)) and _VERSION.search(target):
            found = real.setdefault(target, [])
            for name in (posixpath.basename(path), posixpath.basename(target)):
                if name not in found:
                    found.append(name)
    version = None
    for stem in ("libnvidia-ml.so", "libcuda.so"):
        for target in sorted(real):
            if version is None and stem + ".1" in real[target]:
                match = _VERSION.search(target)
                version = match.group(1) if match else None
    kept = [
        DriverLibrary(target, tuple(sorted(real[target])))
        for target in sorted(real)
        if version is not None and target.endswith(".so." + version)
    ]
    return version, tuple(kept)


def is_library(name: str) -> bool:
    return bool(_LIBRARY.match(name))


def format_boot_nodes(gpus: int) -> str:
    """Return the text of :data:`BOOT_NODES` for a number of GPUs.

    The kernel does not create these nodes, the first NVIDIA program does; after a boot that may be one in a container,
    which needs them already. 255 is nvidiactl; with -u the numbers count from nvidia-uvm.
    """
    return "# Written by gpu-ready; playbooks/uninstall.yml removes it.\n[Service]\n" + _commands("ExecStartPre", gpus)


def format_nodes_unit(gpus: int) -> Dict[str, str]:
    """Return the path and text of the files that create the nodes at boot for engines other than docker."""
    head = "# Written by gpu-ready; playbooks/uninstall.yml removes it.\n"
    unit = (
        "[Unit]\nDescription=Device nodes of NVIDIA GPUs\n"
        "Before=containerd.service kubelet.service podman.service podman-restart.service\n"
        "[Service]\nType=oneshot\nRemainAfterExit=yes\n"
    )
    return {
        NODES[0]: head + unit + _commands("ExecStart", gpus),
        NODES[1]: head + "[Unit]\nWants=%s\n" % posixpath.basename(NODES[0]),
    }


def _commands(key: str, gpus: int) -> str:
    minors = " ".join("-c=%d" % minor for minor in [255] + list(range(gpus)))
    return "%s=-/usr/bin/nvidia-modprobe %s\n%s=-/usr/bin/nvidia-modprobe -u -c=0\n" % (key, minors, key)


def find_difference(
    spec: CdiSpec, driver: DriverFiles, gpu_nodes: Iterable[str], exists: Iterable[str]
) -> Optional[str]:
    """Return why a specification no longer matches this host, None if it does.

    ``exists``: its existing files and nodes. UUIDs are not compared: the driver reports them only after a program has
    opened the GPU.
    """
    existing = set(exists)
    missing = [path for path in spec.files + spec.nodes if path not in existing]
    if driver.version and spec.versions and driver.version not in spec.versions:
        return "it is for driver %s, the host has %s" % (spec.versions[0], driver.version)
    if missing:
        return "it contains %s, which is missing" % missing[0]
    absent = [path for path in tuple(gpu_nodes) + driver.nodes if path not in spec.nodes]
    absent = [path for path in absent if not path.endswith("nvidia-modeset")]
    return "%s is not in it" % absent[0] if absent else None
