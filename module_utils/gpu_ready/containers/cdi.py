"""CDI specifications: read what others wrote, and build one of our own from device nodes and driver files.

Our own specification needs no NVIDIA program in the container's way: without nvidia-cdi-hook nothing makes links or
runs ldconfig there, so every driver library is mounted under each name a program asks for, in the folders that the
C libraries of the Debian and of the RPM family search by themselves.
"""

import json
import posixpath
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

from ..driver.libraries import RPM_DIRECTORY

KIND = "nvidia.com/gpu"
FOLDERS = ("/etc/cdi", "/var/run/cdi")
NATIVE = "/etc/cdi/gpu-ready.json"
GENERATED = "/etc/cdi/nvidia.yaml"
REFRESHED = "/var/run/cdi/nvidia.yaml"
BOOT_NODES = "/etc/systemd/system/docker.service.d/gpu-ready-nodes.conf"
"""Makes the device nodes of our specification before docker starts; systemd reads it at the next boot."""
NODES = ("/etc/systemd/system/gpu-ready-nodes.service", "/etc/systemd/system/multi-user.target.d/gpu-ready-nodes.conf")
"""The same for engines that are no service of their own (podman) or not docker: a unit, and what starts it at boot.

A drop-in of the target, not a link in its folder: it needs no reload of systemd, which would take the GPUs from
containers of the legacy hook.
"""
REFRESH_OLD = "/etc/systemd/system/nvidia-cdi-refresh.service.d/gpu-ready.conf"
"""Has the toolkit's own service write what engines before CDI 0.7.0 read; systemd looks at it at the next boot."""
FEATURES = "NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS"
OLD_FEATURES = ("no-additional-gids-for-device-nodes",)
"""From 1.19.1 on nvidia-ctk names groups of device nodes, which makes its specification one of CDI 0.7.0, unless told
not to; earlier ones do not read the variable or ignore what it says.
https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/release-notes.html
"""
REFRESH_OLD_TEXT = "# Written by gpu-ready; playbooks/uninstall.yml takes it away.\n[Service]\nEnvironment=%s=%s\n" % (
    FEATURES,
    ",".join(OLD_FEATURES),
)
_OPTIONS = ["ro", "nosuid", "nodev", "bind"]

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
"""Libraries of the driver that compute, video and NVML programs load; those of graphics stay out."""
PROGRAMS = ("nvidia-smi", "nvidia-debugdump", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server")
SHARED_DEVICES = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset")

_LIBRARY = re.compile(r"^(%s)\.so(\.[0-9.]+)?$" % "|".join(re.escape(name) for name in LIBRARIES))
_VERSION = re.compile(r"\.so\.(\d+\.\d+(?:\.\d+)*)$")
_HOST_PATH = re.compile(r"""hostPath["']?\s*:\s*["']?(/[^\s"',}]+)""")
_NODE_PATH = re.compile(r"""(?<![A-Za-z])["']?path["']?\s*:\s*["']?(/dev/[^\s"',}]+)""")


class Spec(NamedTuple):
    """One specification file: vendor kind, device names, device nodes, host files and the driver versions in them.

    ``format``: the version of CDI that it asks of an engine.
    """

    kind: str
    devices: Tuple[str, ...]
    nodes: Tuple[str, ...]
    files: Tuple[str, ...]
    versions: Tuple[str, ...]
    format: Optional[str] = None


class Library(NamedTuple):
    """One driver library: the real file, and every file name under which programs ask for it."""

    path: str
    names: Tuple[str, ...]


class Gpu(NamedTuple):
    """One GPU as a container names it: NVML's number, device node, and UUID where known."""

    number: int
    node: str
    uuid: Optional[str]


class DriverFiles(NamedTuple):
    """What a container needs of the driver: its version, libraries, programs {name: path} and shared device nodes."""

    version: Optional[str]
    libraries: Tuple[Library, ...]
    programs: Dict[str, str]
    nodes: Tuple[str, ...]


# ---------------------------------------------------------------------------------------------------------- reading


def read(text: str) -> Optional[Spec]:
    """Return a specification written as JSON or as the plain YAML of ``nvidia-ctk``, None where it is neither."""
    spec = _read_json(text) if text.lstrip().startswith("{") else None
    return spec or _read_yaml(text)


def _spec(
    kind: str, devices: Iterable[str], nodes: Iterable[str], files: Iterable[str], version: Optional[str]
) -> Spec:
    hosts = _once(files)
    versions = _once(match.group(1) for match in map(_VERSION.search, hosts) if match)
    return Spec(kind, _once(devices), _once(nodes), hosts, versions, version)


def _once(items: Iterable[str]) -> Tuple[str, ...]:
    return tuple(dict.fromkeys(items))


def _read_json(text: str) -> Optional[Spec]:
    try:
        value = json.loads(text)
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


def _read_yaml(text: str) -> Optional[Spec]:
    """Read the few things we ask from block or flow style YAML: the standard library has no YAML."""
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
        # A device's own keys stand two columns right of its dash; what is deeper belongs to its edits.
        name = re.match(r"""[ -]*\{?["']?name["']?\s*:\s*["']?([^\s"',}]+)""", line)
        if inside and name and len(line) - len(line.lstrip(" -{")) in (column + 2, column + 3):
            names.append(name.group(1))
    version = re.search(r"""^["']?cdiVersion["']?\s*:\s*["']?([0-9.]+)""", text, re.MULTILINE)
    nodes, files = _NODE_PATH.findall(text), _HOST_PATH.findall(text)
    return _spec(kind.group(1), names, nodes, files, version.group(1) if version else None)


# --------------------------------------------------------------------------------------------------------- building


def libraries(names: Iterable[Tuple[str, str]]) -> Tuple[Optional[str], Tuple[Library, ...]]:
    """Return driver version and libraries out of (path as listed, path with links resolved) of the folders searched.

    The version is that of NVML's library (the file that says which driver a container gets), else CUDA's; files of
    another version, left by another driver, stay out.
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
        Library(target, tuple(sorted(real[target])))
        for target in sorted(real)
        if version is not None and target.endswith(".so." + version)
    ]
    return version, tuple(kept)


def is_library(name: str) -> bool:
    """Return whether a file name is one of a driver library that belongs into a container."""
    return bool(_LIBRARY.match(name))


def boot_nodes(gpus: int) -> str:
    """Return the text of :data:`BOOT_NODES` for a number of GPUs.

    The kernel makes these nodes for nobody: at boot they come with the first NVIDIA program, which may be one in a
    container that docker starts, and that needs them. 255 is nvidiactl; with -u the numbers count from nvidia-uvm.
    """
    return "# Written by gpu-ready; playbooks/uninstall.yml takes it away.\n[Service]\n" + _commands(
        "ExecStartPre", gpus
    )


def nodes_unit(gpus: int) -> Dict[str, str]:
    """Return path and text of the files that make the nodes at boot where docker is not the engine."""
    head = "# Written by gpu-ready; playbooks/uninstall.yml takes it away.\n"
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


def build(driver: DriverFiles, gpus: Iterable[Gpu], folder: str = "/usr/lib/x86_64-linux-gnu") -> str:
    """Return our own specification as text; ``folder`` is where the images' own C library looks on this architecture.

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
        for place in (folder, RPM_DIRECTORY):
            for name in library.names:
                mounts.append(_mount(library.path, posixpath.join(place, name)))
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


def stale(spec: Spec, driver: DriverFiles, gpu_nodes: Iterable[str], exists: Iterable[str]) -> Optional[str]:
    """Return why a specification no longer fits this host, None where it does.

    ``exists`` are those of its files and nodes that are there. UUIDs are not compared: the driver tells them only
    once a program has opened the GPU.
    """
    there = set(exists)
    gone = [path for path in spec.files + spec.nodes if path not in there]
    if driver.version and spec.versions and driver.version not in spec.versions:
        return "it serves driver %s, the host has %s" % (spec.versions[0], driver.version)
    if gone:
        return "%s, which it names, is gone" % gone[0]
    missing = [path for path in tuple(gpu_nodes) + driver.nodes if path not in spec.nodes]
    missing = [path for path in missing if not path.endswith("nvidia-modeset")]
    return "%s is not in it" % missing[0] if missing else None
