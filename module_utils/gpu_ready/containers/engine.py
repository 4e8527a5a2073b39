"""The command lines of docker, podman and containerd (its own ``ctr``) that a proof in a container needs.

docker and podman complete a short image name themselves, ``ctr`` takes full names only; podman would ask which registry
is meant, so both get the full one. ``ctr`` works in a namespace of ours: what it brings is not seen by Kubernetes.
"""

import json
import re
from typing import List, Optional

DOCKER = "docker"
PODMAN = "podman"
CONTAINERD = "containerd"
ENGINES = (DOCKER, PODMAN, CONTAINERD)
NAMESPACE = "gpu-ready"
RUNTIME = "/usr/bin/nvidia-container-runtime"
FIRST_CTR_CDI = (2, 0)
_LOADED = {
    DOCKER: re.compile(r"Loaded image(?: ID)?: (\S+)"),
    PODMAN: re.compile(r"Loaded image(?:\(s\)|s)?: ([^\s,]+)"),
    CONTAINERD: re.compile(r"^(?:unpacking )?(\S+) \(?sha256:", re.MULTILINE),
}
_NAMES = "{{.Repository}}:{{.Tag}}"


def ctr(*words: str) -> List[str]:
    """Return a call of ``ctr`` in our namespace."""
    return ["ctr", "--namespace", NAMESPACE] + list(words)


def full_name(image: str) -> str:
    """Return an image's name with registry, path and tag: ``ubuntu`` is ``docker.io/library/ubuntu:latest``."""
    first, slash, _ = image.partition("/")
    if not slash or not ("." in first or ":" in first or first == "localhost"):
        image = "docker.io/" + (image if slash else "library/" + image)
    return image if "@" in image or ":" in image.rpartition("/")[2] else image + ":latest"


def name(engine: str, image: str) -> str:
    """Return an image's name as an engine takes it."""
    return image if engine == DOCKER else full_name(image)


# ----------------------------------------------------------------------------------------------------------- images


def ask(engine: str, image: str) -> List[str]:
    """Return the question whether an image is there; :func:`is_there` reads the answer."""
    if engine == CONTAINERD:
        return ctr("images", "list", "--quiet", "name==" + full_name(image))
    if engine == PODMAN:
        return [engine, "image", "exists", full_name(image)]
    return [engine, "image", "inspect", "--format", "{{.Id}}", image]


def is_there(engine: str, rc: int, out: str) -> bool:
    """Return whether an image is there, by what :func:`ask` was answered: ``ctr`` ends with 0 in both cases."""
    return rc == 0 and (engine != CONTAINERD or bool(out.strip()))


def images(engine: str) -> List[str]:
    """Return the question for the names of all images, one a line."""
    return ctr("images", "list", "--quiet") if engine == CONTAINERD else [engine, "image", "ls", "--format", _NAMES]


def load(engine: str, archive: str) -> List[str]:
    """Return what loads an image tarball; :func:`loaded` reads which name it came under."""
    return ctr("images", "import", archive) if engine == CONTAINERD else [engine, "load", "--input", archive]


def loaded(engine: str, out: str) -> Optional[str]:
    """Return the name (docker: or id) of the image that was loaded, None where the engine names none."""
    match = _LOADED[engine].search(out)
    return match.group(1) if match else None


def tag(engine: str, old: str, new: str) -> List[str]:
    """Return what gives an image one more name."""
    if engine == CONTAINERD:
        return ctr("images", "tag", "--force", old, full_name(new))
    return [engine, "tag", old, name(engine, new)]


def forget(engine: str, image: str) -> List[str]:
    """Return what takes a name of an image away, and the image with its last one."""
    return ctr("images", "remove", image) if engine == CONTAINERD else [engine, "image", "rm", image]


def pull(engine: str, image: str) -> Optional[List[str]]:
    """Return what fetches an image, None where starting a container does that by itself."""
    return ctr("images", "pull", full_name(image)) if engine == CONTAINERD else None


# ------------------------------------------------------------------------------------------------------- containers


def gpu_args(engine: str, mode: str) -> List[str]:
    """Return what gives a container all GPUs in this engine: by NVIDIA's toolkit or by CDI. podman knows CDI only."""
    if engine == PODMAN or mode != "toolkit":
        return ["--device", "nvidia.com/gpu=all"]
    if engine == CONTAINERD:
        # The flag of ctr: the runtime of the configuration is for Kubernetes, which asks for it by its name.
        return ["--runc-binary", RUNTIME, "--env", "NVIDIA_VISIBLE_DEVICES=all"]
    return ["--gpus", "all"]


def run(engine: str, container: str, env: List[str], args: List[str], image: str, command: List[str]) -> List[str]:
    """Return what runs a command in a new container without network that goes away afterwards."""
    given = [word for one in env for word in ("--env", one)]
    if engine == CONTAINERD:
        return ctr("run", "--rm") + given + args + [full_name(image), container] + command
    argv = [engine, "run", "--rm", "--name", container, "--network", "none"] + given
    if engine == PODMAN:
        # A container of SELinux's kind container_t may not open the device nodes of GPUs.
        argv += ["--security-opt", "label=disable"]
    return argv + args + [name(engine, image)] + command


def remove(engine: str, container: str) -> List[List[str]]:
    """Return what ends and removes a container that did not come back in time, one call after another."""
    if engine == CONTAINERD:
        return [ctr("tasks", "delete", "--force", container), ctr("containers", "delete", container)]
    return [[engine, "rm", "--force", container]]


def applied(specification: str, devices: List[str]) -> Optional[List[str]]:
    """Return what a CDI specification in JSON says of devices as arguments of ``ctr run``: before 2.0 it knows no CDI.

    None where it cannot be said so: for text that is no such specification, unknown devices, and hooks.
    """
    try:
        value = json.loads(specification)
        by_name = {str(device["name"]): device["containerEdits"] for device in value["devices"]}
        edits = [value.get("containerEdits") or {}] + [by_name[name] for name in devices]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if [edit for edit in edits if edit.get("hooks")]:
        return None
    args: List[str] = []
    for edit in edits:
        for one in edit.get("env") or []:
            args += ["--env", one]
        for node in edit.get("deviceNodes") or []:
            args += ["--device", node["path"]]
        for mount in edit.get("mounts") or []:
            options = ":".join(mount.get("options") or ["bind"])
            args += [
                "--mount",
                "type=bind,src=%s,dst=%s,options=%s" % (mount["hostPath"], mount["containerPath"], options),
            ]
    return args
