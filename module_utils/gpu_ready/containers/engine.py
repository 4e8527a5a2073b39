"""Command lines of docker, podman and containerd (``ctr``) for the verification in a container.

k3s and RKE2 contain a ``ctr`` for their own containerd. CRI-O has no program that starts a container without a kubelet.

docker completes a short image name, ``ctr`` needs full names, and podman would ask for the registry: the latter two get
full names. ``ctr`` works in our own namespace, so that Kubernetes does not see its images.
"""

import re
from typing import Any, Dict, List, Optional

from ..base.json_file import parse_json
from .names import CONTAINERD as CONTAINERD
from .names import CRIO as CRIO
from .names import DOCKER as DOCKER
from .names import K3S as K3S
from .names import OF_CONTAINERD as OF_CONTAINERD
from .names import PODMAN as PODMAN
from .names import RKE2 as RKE2

NAMESPACE = "gpu-ready"
RUNTIME = "/usr/bin/nvidia-container-runtime"
FIRST_CTR_CDI = (2, 0)
CTR = {
    CONTAINERD: ["ctr"],
    K3S: ["k3s", "ctr"],
    RKE2: ["/var/lib/rancher/rke2/bin/ctr", "--address", "/run/k3s/containerd/containerd.sock"],
}
"""docs.k3s.io/cli, docs.rke2.io/reference/cli_tools."""
_LOADED = {
    DOCKER: re.compile(r"Loaded image(?: ID)?: (\S+)"),
    PODMAN: re.compile(r"Loaded image(?:\(s\)|s)?: ([^\s,]+)"),
    CONTAINERD: re.compile(r"^(?:unpacking )?(\S+) \(?sha256:", re.MULTILINE),
}
_NAMES = "{{.Repository}}:{{.Tag}}"


def ctr(engine: str, *words: str) -> List[str]:
    """Return a call of ``ctr`` in our namespace."""
    return CTR[engine] + ["--namespace", NAMESPACE] + list(words)


def program(engine: str) -> str:
    """Return the name or path of the program that starts containers of an engine; "" where there is none."""
    return "" if engine == CRIO else CTR[engine][0] if engine in CTR else engine


def full_name(image: str) -> str:
    """Return the name with registry, path and tag: ``ubuntu`` is ``docker.io/library/ubuntu:latest``."""
    first, slash, _ = image.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        image = "docker.io/" + (image if slash else "library/" + image)
    return image if "@" in image or ":" in image.rpartition("/")[2] else image + ":latest"


def image_name(engine: str, image: str) -> str:
    """Return the name that an engine needs."""
    return image if engine == DOCKER else full_name(image)


# ----------------------------------------------------------------------------------------------------------- images


def inspect_command(engine: str, image: str) -> List[str]:
    """Its result is for :func:`has_image`."""
    if engine in OF_CONTAINERD:
        return ctr(engine, "images", "list", "--quiet", "name==" + full_name(image))
    if engine == PODMAN:
        return [engine, "image", "exists", full_name(image)]
    return [engine, "image", "inspect", "--format", "{{.Id}}", image]


def has_image(engine: str, rc: int, out: str) -> bool:
    """Return True if :func:`inspect_command` found the image; ``ctr`` ends with 0 in both cases."""
    return rc == 0 and (engine not in OF_CONTAINERD or bool(out.strip()))


def list_command(engine: str) -> List[str]:
    """Prints the names of all images, one per line."""
    return (
        ctr(engine, "images", "list", "--quiet")
        if engine in OF_CONTAINERD
        else [engine, "image", "ls", "--format", _NAMES]
    )


def load_command(engine: str, archive: str) -> List[str]:
    """Loads an image archive; its output is for :func:`loaded_name`."""
    return ctr(engine, "images", "import", archive) if engine in OF_CONTAINERD else [engine, "load", "--input", archive]


def loaded_name(engine: str, out: str) -> Optional[str]:
    """Return the name (docker: or id) of the loaded image, None if the engine prints none."""
    match = _LOADED[CONTAINERD if engine in OF_CONTAINERD else engine].search(out)
    return match.group(1) if match else None


def tag_command(engine: str, old: str, new: str) -> List[str]:
    if engine in OF_CONTAINERD:
        return ctr(engine, "images", "tag", "--force", old, full_name(new))
    return [engine, "tag", old, image_name(engine, new)]


def untag_command(engine: str, image: str) -> List[str]:
    """Removes a name of an image, and the image with its last name."""
    return ctr(engine, "images", "remove", image) if engine in OF_CONTAINERD else [engine, "image", "rm", image]


def pull_command(engine: str, image: str) -> Optional[List[str]]:
    """Return None for an engine that pulls the image when it starts a container."""
    return ctr(engine, "images", "pull", full_name(image)) if engine in OF_CONTAINERD else None


# ------------------------------------------------------------------------------------------------------- containers


def gpu_args(engine: str, mode: str) -> List[str]:
    """Return arguments that give a container all GPUs, by NVIDIA's toolkit or by CDI. podman supports CDI only."""
    if engine == PODMAN or mode != "toolkit":
        return ["--device", "nvidia.com/gpu=all"]
    if engine in OF_CONTAINERD:
        # ctr needs the program: the configured runtime is for Kubernetes, which requests it by name.
        return ["--runc-binary", RUNTIME, "--env", "NVIDIA_VISIBLE_DEVICES=all"]
    return ["--gpus", "all"]


def run_command(
    engine: str, container: str, env: List[str], args: List[str], image: str, command: List[str]
) -> List[str]:
    """Runs a command in a new container without network, which is removed afterwards."""
    environment = [word for one in env for word in ("--env", one)]
    if engine in OF_CONTAINERD:
        return ctr(engine, "run", "--rm") + environment + args + [full_name(image), container] + command
    argv = [engine, "run", "--rm", "--name", container, "--network", "none"] + environment
    if engine == PODMAN:
        # SELinux denies the type container_t access to the device nodes of GPUs.
        argv += ["--security-opt", "label=disable"]
    return argv + args + [image_name(engine, image)] + command


def remove_commands(engine: str, container: str) -> List[List[str]]:
    """Stop and remove a container that did not end in time."""
    if engine in OF_CONTAINERD:
        return [ctr(engine, "tasks", "delete", "--force", container), ctr(engine, "containers", "delete", container)]
    return [[engine, "rm", "--force", container]]


def ctr_arguments(specification: str, devices: List[str]) -> Optional[List[str]]:
    """Return devices of a CDI specification in JSON as arguments of ``ctr run``, which has no CDI before 2.0.

    None for an invalid specification, unknown devices, and hooks.
    """
    try:
        value = parse_json(specification)
        by_name = {str(device["name"]): device["containerEdits"] for device in value["devices"]}
        edits = [value.get("containerEdits") or {}] + [by_name[name] for name in devices]
        return (
            None if [edit for edit in edits if edit.get("hooks")] else [arg for one in edits for arg in _ctr_edit(one)]
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _ctr_edit(edit: Dict[str, Any]) -> List[str]:
    args: List[str] = []
    for one in edit.get("env") or []:
        args += ["--env", str(one)]
    for node in edit.get("deviceNodes") or []:
        args += ["--device", str(node["path"])]
    for mount in edit.get("mounts") or []:
        options = ":".join(mount.get("options") or ["bind"])
        args += ["--mount", "type=bind,src=%s,dst=%s,options=%s" % (mount["hostPath"], mount["containerPath"], options)]
    return args
