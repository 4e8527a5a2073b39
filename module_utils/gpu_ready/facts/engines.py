"""podman, containerd, CRI-O and the kubelet: part "engines".

Read from files; a program runs only where no package says its version.
"""

import posixpath
from typing import Dict, List, NamedTuple, Optional, Tuple

from ..base import manifest
from ..base.host import Host
from ..containers import cdi, docker
from ..containers.containerd import config as containerd_config
from ..containers.containerd.config import ConfigFile
from . import kubernetes
from .model import ContainerdFacts, EngineFacts, PodmanFacts

PENDING = manifest.DIRECTORY + "/" + containerd_config.RESTART_MARK
MOST_FILES = 64
PACKAGES = {"podman": ("podman",), "containerd": ("containerd", "containerd.io")}


def collect(host: Host, packages: Dict[str, str]) -> EngineFacts:
    nodes = {path: text for path, text in ((path, host.read(path)) for path in cdi.NODES) if text is not None}
    podman = PodmanFacts(host.which("podman") is not None, read_version(host, "podman", packages))
    containerd, crio = collect_containerd(host, packages), kubernetes.collect_crio(host)
    kubelet = kubernetes.collect(host, containerd, crio, read_configuration)
    return EngineFacts(podman, containerd, crio, kubelet, nodes)


def read_version(host: Host, name: str, packages: Dict[str, str]) -> Optional[List[int]]:
    path = host.which(name)
    if path is None:
        return None
    known = [packages[package] for package in PACKAGES[name] if package in packages]
    version = containerd_config.parse_version(known[0] if known else host.run([path, "--version"], timeout=10.0).out)
    return list(version) if version else None


def collect_containerd(host: Host, packages: Dict[str, str]) -> ContainerdFacts:
    rancher = next((path for path in sorted(kubernetes.RANCHER.values()) if host.isdir(path)), None)
    if host.which("containerd") is None:
        return ContainerdFacts(rancher=rancher)
    texts = read_unit_texts(host)
    files = read_configuration(host, containerd_config.config_path(texts))
    recorded = read_recorded_change(host, files[0].path)
    return ContainerdFacts(
        installed=True,
        version=read_version(host, "containerd", packages),
        rancher=rancher,
        active=host.exists(containerd_config.SOCKET),
        files=files,
        record=recorded.keys,
        before=recorded.before,
        after=recorded.after,
        pending=is_restart_pending(host),
        keeps_containers=containerd_config.keeps_containers(texts),
    )


def read_unit_texts(host: Host) -> List[str]:
    """Return the texts of containerd's unit (the first that exists) and its drop-ins, in systemd's order."""
    texts: List[str] = []
    for path in docker.unit_paths(host.listdir, containerd_config.UNIT):
        text = host.read(path) if not texts or not path.endswith("/" + containerd_config.UNIT) else None
        texts += [text] if text is not None else []
    return texts


def read_configuration(host: Host, main: str) -> List[ConfigFile]:
    """Return the files of the configuration in reading order: the main one and all that it imports.

    A byte that is not UTF-8 becomes a surrogate, which the TOML reader refuses.
    """
    found = [ConfigFile(main, read_text(host, main))]
    queue = list(found)
    while queue and len(found) < MOST_FILES:
        file = queue.pop(0)
        for pattern in containerd_config.import_patterns(file):
            directory, name = posixpath.split(pattern)
            names = host.listdir(directory) if set(name) & set("*?[") else [name]
            for path in [posixpath.join(directory, one) for one in names]:
                if containerd_config.matches_import(path, pattern) and path not in [one.path for one in found]:
                    content = read_text(host, path)
                    if content is not None:
                        found.append(ConfigFile(path, content))
                        queue.append(found[-1])
    return found


def read_text(host: Host, path: str) -> Optional[str]:
    """Return a file, None where it is absent; bytes that are not UTF-8 become surrogates."""
    data = host.read_bytes(path)
    return None if data is None else data.decode("utf-8", "surrogateescape")


class RecordedChange(NamedTuple):
    """What the manifest says of config.toml: its text before and after our change, our keys and their values before."""

    keys: List[Tuple[Tuple[str, ...], object]]
    before: Optional[str]
    after: Optional[str]


def read_recorded_change(host: Host, main: str) -> RecordedChange:
    known = manifest.collect(host).get("containerd", {}).get(main) or {}
    keys = [(tuple(path), value) for path, value in known.get("record", [])]
    before, after = (
        containerd_config.decode_text(known.get("before")),
        containerd_config.decode_text(known.get("after")),
    )
    return RecordedChange(keys, before, after)


def is_restart_pending(host: Host) -> bool:
    """Return whether containerd runs since before our change; it creates its socket at each start."""
    mark, socket = host.changed_at(PENDING), host.changed_at(containerd_config.SOCKET)
    return mark is not None and socket is not None and mark > socket
