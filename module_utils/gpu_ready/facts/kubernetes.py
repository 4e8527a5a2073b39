"""The kubelet of a host, the engine that it uses, and what k3s and RKE2 have of their own. Read from files."""

import posixpath
import re
from typing import Callable, List

from ..base.host import Host
from ..containers import crio as crio_paths
from ..containers import docker, names
from ..containers.containerd import config as containerd_config
from ..containers.containerd.config import ConfigFile
from .model import ContainerdFacts, CrioFacts, KubernetesFacts

ReadFiles = Callable[[Host, str], List[ConfigFile]]

RANCHER = {names.K3S: "/var/lib/rancher/k3s/agent", names.RKE2: "/var/lib/rancher/rke2/agent"}
"""Of the agent, which a server has too; the generated files are below etc/containerd (docs.k3s.io/advanced)."""
UNITS = {names.K3S: ("k3s", "k3s-agent"), names.RKE2: ("rke2-server", "rke2-agent")}
RANCHER_SOCKET = "/run/k3s/containerd/containerd.sock"
"""Also of RKE2, which runs k3s's agent (docs.rke2.io/reference/cli_tools)."""
ENABLED = "/etc/systemd/system/multi-user.target.wants"
TEMPLATES = ("config-v3.toml.tmpl", "config.toml.tmpl")
"""The first that exists is used, by k3s v1.31.6, v1.32.2 and newer (docs.k3s.io/advanced)."""
OTHERS = {"microk8s": "/var/snap/microk8s/current", "k0s": "/var/lib/k0s"}
KUBELET_FILES = (
    "/var/lib/kubelet/config.yaml",
    "/var/lib/kubelet/kubeadm-flags.env",
    "/etc/kubernetes/kubelet.env",
)
"""The kubelet's configuration by kubeadm and its flags; kubespray's flags."""
ENDPOINT = r"(?:container-runtime-endpoint[= ]|containerRuntimeEndpoint:)\s*[\"']?([^\s\"']+)"
ENGINE_OF_SOCKET = {"containerd.sock": names.CONTAINERD, "crio.sock": names.CRIO, "cri-dockerd.sock": names.DOCKER}
CONTAINERD_UNREAD = (containerd_config.DROP_IN_DIRECTORY, "/etc/containerd/config.d")
"""Where nvidia-ctk wrote; 1.18.0 the latter (its issue 1404). containerd reads them where `imports` of its main file
name them: `containerd config default` of 2.2 and newer prints conf.d, but a daemon without a main file reads no file
(main.go in its cmd/containerd/command)."""


def collect(host: Host, containerd: ContainerdFacts, crio: CrioFacts, read_files: ReadFiles) -> KubernetesFacts:
    """Return the kubelet; ``read_files``: of a containerd by the path of its main file, with all imports."""
    for kind, directory in sorted(RANCHER.items()):
        if host.isdir(directory):
            return collect_rancher(host, kind, directory + "/etc/containerd", containerd, read_files)
    unread = unread_files(host, containerd, crio)
    for kind, directory in sorted(OTHERS.items()):
        if host.isdir(directory):
            return KubernetesFacts(kind, unread=unread)
    texts = [text for text in map(host.read, KUBELET_FILES) if text is not None]
    if not texts:
        return KubernetesFacts(unread=unread)
    return KubernetesFacts("kubeadm", kubelet_engine(texts, containerd, crio), unread, unit="kubelet")


def collect_rancher(
    host: Host, kind: str, directory: str, containerd: ContainerdFacts, read_files: ReadFiles
) -> KubernetesFacts:
    """Return k3s or RKE2. RKE2's archive installs the units of server and agent on every host; one is enabled."""
    units = {}
    for name in UNITS[kind]:
        paths = docker.unit_paths(host.listdir, name + ".service")
        units[name] = [text for text in map(host.read, paths) if text is not None]
    present = [name for name in UNITS[kind] if units[name]]
    enabled = [name for name in present if name + ".service" in host.listdir(ENABLED)]
    unit = (enabled or present or [""])[0]
    templates = [(path, host.read(path)) for path in [posixpath.join(directory, name) for name in TEMPLATES]]
    unread = []  # type: List[str]
    if not containerd.installed:  # what nvidia-ctk writes for an engine that is not here
        for other in ("/etc/containerd",) + CONTAINERD_UNREAD:
            unread += files_with_runtime(host, other)
    return KubernetesFacts(
        kind=kind,
        engine=kind,
        unread=unread,
        unit=unit,
        active=host.exists(RANCHER_SOCKET),
        keeps_containers=not unit or containerd_config.keeps_containers(units[unit]),
        files=read_files(host, directory + "/config.toml"),
        templates=[ConfigFile(path, text) for path, text in templates if text is not None],
    )


def kubelet_engine(texts: List[str], containerd: ContainerdFacts, crio: CrioFacts) -> str:
    """Return the engine that the kubelet's settings name, else the only installed one, "" if that is unclear."""
    for text in texts:
        for endpoint in re.findall(ENDPOINT, text):
            engine = ENGINE_OF_SOCKET.get(posixpath.basename(endpoint))
            if engine:
                return engine
    installed = [names.CONTAINERD] * containerd.installed + [names.CRIO] * crio.installed
    return installed[0] if len(installed) == 1 else ""


def collect_crio(host: Host) -> CrioFacts:
    """Return CRI-O. Every file of its directory counts, whatever its name (crio.conf.d(5))."""
    if host.which("crio") is None:
        return CrioFacts()
    paths = [crio_paths.MAIN] + [posixpath.join(crio_paths.DIRECTORY, n) for n in host.listdir(crio_paths.DIRECTORY)]
    read = [(path, host.read_bytes(path)) for path in paths]
    files = [ConfigFile(path, data.decode("utf-8", "surrogateescape")) for path, data in read if data is not None]
    changed, started = host.changed_at(crio_paths.DROP_IN), host.changed_at(crio_paths.SOCKET)
    pending = changed is not None and started is not None and changed > started
    return CrioFacts(True, host.exists(crio_paths.SOCKET), files, pending)


def unread_files(host: Host, containerd: ContainerdFacts, crio: CrioFacts) -> List[str]:
    found = files_with_runtime(host, crio_paths.UNREAD) if crio.installed else []
    if containerd.installed:
        read = [file.path for file in containerd.files]
        for directory in CONTAINERD_UNREAD:
            found += [path for path in files_with_runtime(host, directory) if path not in read]
    return found


def files_with_runtime(host: Host, directory: str) -> List[str]:
    paths = [posixpath.join(directory, name) for name in host.listdir(directory) if name.endswith((".toml", ".conf"))]
    return [path for path in paths if "nvidia-container-runtime" in (host.read(path) or "")]
