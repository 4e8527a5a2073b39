"""A Kubernetes cluster of lab hosts: real control plane and kubelets, and images for its pods.

The hosts have containerd and their GPUs' driver already. Nothing of the cluster outlives them.
"""

import hashlib
import json
import secrets
import tarfile
from collections.abc import Sequence
from pathlib import Path

from . import debian_archive, engine, images, kubernetes, paths, verify_image
from .hosts import Running
from .say import LabError, run, say, wait_for

PACKAGES = ("containerd", "runc", "containernetworking-plugins", "iptables", "openssl")
SERVER_PACKAGES = ("etcd-server",)
SHARE = "usr/local/share/gpu-ready-lab"
PLUGIN_IMAGE = "gpu-ready-lab/device-plugin:1"
READY_LIMIT = 600


def kubeconfig(fleet: str) -> Path:
    """Return the file with the rights of an administrator of a fleet's cluster."""
    return paths.fleet_directory(fleet) / "kubeconfig"


def kubectl() -> Path:
    """Return kubectl of Debian's package, kept in the cache."""
    target = paths.cache() / "kubernetes" / "kubectl"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        with debian_archive.Members(paths.cache() / "debian") as members:
            new = target.with_suffix(".new")
            new.write_bytes(members(kubernetes.SUITE, "kubernetes-client", "usr/bin/kubectl"))
        new.chmod(0o755)
        new.replace(target)
    return target


def start(hosts: Sequence[Running]) -> Path:
    """Make a cluster of the hosts of one fleet, the first of which has the control plane; return its kubeconfig."""
    programs, token = kubernetes.directory(), secrets.token_hex(16)
    if not kubernetes.is_built():
        raise LabError(f"Kubernetes was not built yet: `{kubernetes.COMMAND}` builds it, in a quarter of an hour")
    server = hosts[0]
    names = [host.host for host in hosts]
    files = {f"{SHARE}/{name}.tar": (data, 0o644) for name, data in _images(programs).items()}
    for number, host in enumerate(hosts):
        _copy(host, programs, files, _tokens(names, token) if host is server else "")
        arguments = (host.address, server.address, str(number), token)
        engine.docker(
            "exec", host.container, f"/{SHARE}/host", *arguments, limit=900, what=f"start Kubernetes on {host.host}"
        )
    path = kubeconfig(server.fleet)
    text = engine.docker("exec", server.container, "cat", "/etc/kubernetes/admin.conf")
    path.touch(mode=0o600)
    path.write_text(text)
    wait_for(lambda: _are_ready(path, names), limit=READY_LIMIT, what=f"the nodes {', '.join(names)}", pause=1)
    say(f"Kubernetes on {', '.join(names)}: {path}")
    return path


def _are_ready(config: Path, names: Sequence[str]) -> bool:
    """True if all nodes are Ready and the control plane has removed their first taint."""
    argv = [str(kubectl()), f"--kubeconfig={config}", "--request-timeout=10s", "get", "nodes", "--output=json"]
    try:
        items = json.loads(run(argv, limit=30, what="list the nodes"))["items"]
    except LabError:  # the API server still starts
        return False
    ready = [
        node["metadata"]["name"]
        for node in items
        if not node["spec"].get("taints")
        and any(one["type"] == "Ready" and one["status"] == "True" for one in node["status"].get("conditions", ()))
    ]
    return sorted(ready) == sorted(names)


def _tokens(nodes: Sequence[str], token: str) -> str:
    """The API server's file of users: token, user, id, groups."""
    rows = [f"admin-{token},admin,admin,system:masters"]
    rows += [
        f"scheduler-{token},system:kube-scheduler,scheduler",
        f"controller-{token},system:kube-controller-manager,controller",
    ]
    rows += [f"node-{node}-{token},system:node:{node},{node},system:nodes" for node in nodes]
    return "".join(f"{row}\n" for row in rows)


def _copy(host: Running, programs: Path, files: dict[str, tuple[bytes, int]], tokens: str) -> None:
    """Install packages on a host and copy programs and images to it; with tokens it is the server."""
    packages = (*PACKAGES, *(SERVER_PACKAGES if tokens else ()))
    names = " ".join(packages)
    install = f"apt-get -qq update && apt-get -qq -y --no-install-recommends install {names}"
    install = f"dpkg -s {names} >/dev/null 2>&1 || ({install})"
    command = ("exec", "--env", "DEBIAN_FRONTEND=noninteractive", host.container, "sh", "-c", install)
    engine.docker(*command, limit=1800, what=f"install {names} on {host.host}")
    for name in kubernetes.PROGRAMS:
        if name.startswith("kube") and (tokens or name == "kubelet"):
            engine.docker("cp", str(programs / name), f"{host.container}:/usr/local/bin/{name}", limit=360)
    own: dict[str, tuple[bytes | str, int]] = {
        **files,
        f"{SHARE}/host": ((kubernetes.SOURCES / "host").read_bytes(), 0o755),
    }
    if tokens:
        own["etc/kubernetes/tokens.csv"] = (tokens, 0o600)
    engine.docker("cp", "-", f"{host.container}:/", stdin=images.pack(own), limit=360)


def _images(programs: Path) -> dict[str, bytes]:
    """Return the images that pods use, as `docker save` writes them."""
    verify = verify_image.ensure(paths.cache())
    with tarfile.open(verify) as tar:
        manifest = json.loads(_member(tar, "manifest.json"))[0]
        base = _member(tar, manifest["Layers"][0])
    plugin = images.pack({"usr/bin/device-plugin": ((programs / "device-plugin").read_bytes(), 0o755)})
    pause = images.pack({"pause": ((programs / "pause").read_bytes(), 0o755)})
    return {
        "verify": verify.read_bytes(),
        "device-plugin": _image(PLUGIN_IMAGE, [base, plugin], "/usr/bin/device-plugin"),
        "pause": _image("gpu-ready-lab/pause:1", [pause], "/pause"),
    }


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()


def _image(name: str, layers: Sequence[bytes], command: str) -> bytes:
    digests = [hashlib.sha256(layer).hexdigest() for layer in layers]
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "Entrypoint": [command]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
    }
    config_bytes = json.dumps(config).encode()
    config_name = f"{hashlib.sha256(config_bytes).hexdigest()}.json"
    places = [f"{digest}/layer.tar" for digest in digests]
    manifest = [{"Config": config_name, "RepoTags": [name], "Layers": places}]
    files: dict[str, tuple[bytes | str, int]] = {config_name: (config_bytes, 0o644)}
    files |= {place: (layer, 0o644) for place, layer in zip(places, layers, strict=True)}
    files["manifest.json"] = (json.dumps(manifest), 0o644)
    return images.pack(files)
