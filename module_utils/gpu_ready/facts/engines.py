"""podman and containerd as they are on a host: part "engines". Files only, where their packages tell the versions."""

import json
import posixpath
from typing import Any, Dict, List, Optional, Tuple

from ..base import manifest
from ..base.host import Host
from ..containers import cdi, docker
from ..containers.containerd import config as containerd_config

PENDING = manifest.DIRECTORY + "/" + containerd_config.RESTART_MARK
RANCHER = ("/var/lib/rancher/k3s/agent", "/var/lib/rancher/rke2/agent")
"""Where k3s and rke2 keep a containerd of their own, whose configuration they write at each start."""
TASKS = "/run/containerd/io.containerd.runtime.v2.task"
MOST_CONTAINERS = 256
MOST_FILES = 64
PACKAGES = {"podman": ("podman",), "containerd": ("containerd", "containerd.io")}


def look(host: Host, packages: Dict[str, str]) -> Dict[str, Any]:
    """Return the engines beside docker, and the units of ours that make device nodes for them."""
    nodes = {path: text for path, text in ((path, host.read(path)) for path in cdi.NODES) if text is not None}
    found = {"podman": program(host, "podman", packages), "containerd": look_containerd(host, packages)}
    return {"engines": dict(found, nodes=nodes)}


def program(host: Host, name: str, packages: Dict[str, str]) -> Dict[str, Any]:
    """Return whether an engine is there and its version: of its package, else as it says itself."""
    path = host.which(name)
    if path is None:
        return {"installed": False, "version": None}
    known = [packages[package] for package in PACKAGES[name] if package in packages]
    version = containerd_config.parse_version(known[0] if known else host.run([path, "--version"], timeout=10.0).out)
    return {"installed": True, "version": list(version) if version else None}


def look_containerd(host: Host, packages: Dict[str, str]) -> Dict[str, Any]:
    """Return containerd: version, whether it runs, its files, what of them is ours, and what a restart would end."""
    found = program(host, "containerd", packages)
    rancher = [path for path in RANCHER if host.isdir(path)]
    found.update(rancher=rancher[0] if rancher else None, files=[], record=[], before=None, after=None, pending=False)
    found.update(active=False, keeps_containers=True, gpu_containers=[])
    if not found["installed"]:
        return found
    texts = unit_texts(host)
    files = configuration(host, containerd_config.config_path(texts))
    known = noted(host, files[0].path)
    found.update(
        active=host.exists(containerd_config.SOCKET),
        files=[list(file) for file in files],
        record=[list(one) for one in known["record"]],
        before=containerd_config.decode_text(known["before"]),
        after=containerd_config.decode_text(known["after"]),
        pending=pending(host),
        keeps_containers=containerd_config.keeps_containers(texts),
        gpu_containers=gpu_containers(host),
    )
    return found


def unit_texts(host: Host) -> List[str]:
    """Return the texts of containerd's unit (the first that exists) and its drop-ins, in systemd's order."""
    texts: List[str] = []
    for path in docker.unit_files(host.listdir, containerd_config.UNIT):
        text = host.read(path) if not texts or not path.endswith("/" + containerd_config.UNIT) else None
        texts += [text] if text is not None else []
    return texts


def configuration(host: Host, main: str) -> List[containerd_config.ConfigFile]:
    """Return the files of the configuration in the order of reading: the main one and all that it imports.

    A byte that is no text stays in it as a surrogate, where the reader of TOML complains of it.
    """
    found = [containerd_config.ConfigFile(main, text(host, main))]
    queue = list(found)
    while queue and len(found) < MOST_FILES:
        file = queue.pop(0)
        for pattern in containerd_config.import_patterns(file):
            folder, name = posixpath.split(pattern)
            names = host.listdir(folder) if set(name) & set("*?[") else [name]
            for path in [posixpath.join(folder, one) for one in names]:
                if containerd_config.matches_import(path, pattern) and path not in [one.path for one in found]:
                    content = text(host, path)
                    if content is not None:
                        found.append(containerd_config.ConfigFile(path, content))
                        queue.append(found[-1])
    return found


def text(host: Host, path: str) -> Optional[str]:
    """Return a file with every byte of it, None where it is absent."""
    data = host.read_bytes(path)
    return None if data is None else data.decode("utf-8", "surrogateescape")


def noted(host: Host, main: str) -> Dict[str, Any]:
    """Return what the manifest knows of config.toml: its text before us and after us, and our keys."""
    try:
        known = json.loads(host.read(manifest.PATH) or "{}").get("containerd", {}).get(main) or {}
    except ValueError:
        known = {}  # whoever changes something notes first, and says that the manifest is damaged
    record: List[Tuple[Tuple[str, ...], Any]] = [(tuple(path), value) for path, value in known.get("record", [])]
    return {"record": record, "before": known.get("before"), "after": known.get("after")}


def pending(host: Host) -> bool:
    """Return whether containerd runs since before a change of ours (it makes its socket anew when it starts)."""
    mark, socket = host.changed_at(PENDING), host.changed_at(containerd_config.SOCKET)
    return mark is not None and socket is not None and mark > socket


def gpu_containers(host: Host) -> List[str]:
    """Return the running containers that hold a GPU, by the bundles of their shims (of the first 256); not docker's."""
    found = []
    bundles = [
        (space, name)
        for space in host.listdir(TASKS) if space != "moby"
        for name in host.listdir(posixpath.join(TASKS, space))
    ]  # fmt: skip
    for space, name in bundles[:MOST_CONTAINERS]:
        content = host.read(posixpath.join(TASKS, space, name, "config.json")) or ""
        if "/dev/nvidia" in content or "NVIDIA_VISIBLE_DEVICES=" in content.replace("DEVICES=void", ""):
            found.append("%s/%s" % (space, name))
    return found


def public(found: Dict[str, Any]) -> Dict[str, Any]:
    """Return the look without the texts of files: those of containerd may hold passwords of registries."""
    names = [path for path, _ in found["containerd"]["files"]]
    keys = containerd_config.dotted_keys(found["containerd"]["record"])
    shown = dict(found["containerd"], files=names, record=keys)
    del shown["before"], shown["after"]
    return dict(found, containerd=shown, nodes=sorted(found["nodes"]))
