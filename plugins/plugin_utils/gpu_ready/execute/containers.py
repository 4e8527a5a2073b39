# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The steps of docker and of the container runtime."""

from __future__ import annotations

from collections.abc import Iterable

from .model import INSTALL, Answer, Execution, Parameters, Step, fail
from .repository import add_repositories

UNIT = "ansible.builtin.systemd_service"
"""Never with daemon_reload: with the systemd cgroup driver, running containers would lose their GPUs."""
KUBERNETES_ATTEMPTS, KUBERNETES_WITHIN = 91, 600


def await_docker(part: Execution, runtimes: Iterable[str] | None = None) -> None:
    """Wait until docker answers and lists the runtimes: a reload happens later, and a refused one is only logged."""
    content = {} if runtimes is None else {"return_content": True}

    def ask() -> Answer:
        """Return what docker says of itself."""
        address = {"url": "http://localhost/info", "unix_socket": "/run/docker.sock"}
        answer = part.run("ansible.builtin.uri", {**address, **content})
        listed = (answer.get("json") or {}).get("Runtimes") or {}
        missing = set(runtimes or ()) - set(listed)
        if missing:
            raise fail(f"docker does not list the runtime {', '.join(sorted(missing))}")
        return answer

    part.wait(ask)


def docker_install(step: Parameters, part: Execution) -> None:
    """Install docker and start it, now and at boot."""
    if step["packages"] or step["optional"] or step["unhold"]:
        arguments = {name: step[name] for name in ("optional", "remove", "hold", "unhold")}
        arguments |= {"names": step["packages"], "allow_remove": step["remove"], "update_cache": True}
        part.run("gpu_packages", {**arguments, "purpose": "the docker engine"}, INSTALL)
    with part.explains_service(step["service"]):
        # Scripts of the packages restart it too, but not under every policy (policy-rc.d, presets).
        part.run("gpu_service", {"name": step["service"], "state": step["state"]})
        await_docker(part)


def merge_options(step: Parameters, part: Execution) -> None:
    """Merge options into daemon.json."""
    part.run("gpu_daemon_json", {name: step["daemon_json"][name] for name in ("path", "set", "unset")})


def docker_configure(step: Parameters, part: Execution) -> None:
    """Configure docker, and reload or restart it."""
    merge_options(step, part)
    with part.explains_service("docker"):
        part.run(UNIT, {"name": "docker", "state": f"{step['activation']}ed"})
        await_docker(part)


def migrate(step: Parameters, part: Execution) -> None:
    """Replace nvidia-docker2 and nvidia-docker 1.0."""
    if step["containers"]:  # which gpu_ready_disrupt permits
        part.command("docker", "stop", *step["containers"])
    if step["volumes"]:  # while the plugin still runs: docker calls it
        part.command("docker", "volume", "rm", *step["volumes"])
    for service in step["services"]:
        part.run(UNIT, {"name": service, "state": "stopped", "enabled": False})
    if step["keep"]:  # dependencies until now
        part.command("apt-mark", "manual", *step["keep"])
    part.run("gpu_packages", {"remove": step["packages"], "purpose": "what replaces nvidia-docker"}, INSTALL)
    part.delete(step["left"])
    # rpm removes the configuration of a package; if it was edited, rpm keeps a copy.
    saved = f"{step['daemon_json']}.rpmsave"
    if part.run("ansible.builtin.stat", {"path": saved})["stat"]["exists"]:
        copy = {"src": saved, "dest": step["daemon_json"], "remote_src": True, "mode": "preserve", "force": False}
        part.run("ansible.builtin.copy", copy)


def cleanup(step: Parameters, part: Execution) -> None:
    """Remove packages and files of the earlier mode."""
    if step["containers"]:  # which gpu_ready_disrupt permits
        part.command("docker", "stop", *step["containers"])
    removed = {"packages": step["packages"], "paths": step["paths"], "leftovers": step["remains"]}
    part.run("gpu_revert", removed, INSTALL)


def install(step: Parameters, part: Execution) -> None:
    """Install the container toolkit."""
    arguments = {"names": step["packages"], "update_cache": True, "purpose": "the NVIDIA container toolkit"}
    part.run("gpu_packages", arguments, INSTALL)


def cdi_spec(step: Parameters, part: Execution) -> None:
    """Write the CDI specification, and the services that create device nodes or the specification at boot."""
    part.run("gpu_files", {"files": step["files"]})
    arguments = {name: step[name] for name in ("path", "generator", "feature_flags", "remove")}
    part.run("gpu_cdi_spec", {**arguments, "unrefreshed": step.get("unrefreshed", "")})


def volume(step: Parameters, part: Execution) -> None:
    """Create the driver volume, with its helper and the service that creates device nodes at boot."""
    part.run("gpu_files", {"files": step["files"]})
    part.run("gpu_driver_volume", {})


def configure(step: Parameters, part: Execution) -> None:
    """Make docker know the runtime."""
    merge_options(step, part)
    if step["activation"] != "none":
        with part.explains_service("docker"):
            part.run(UNIT, {"name": "docker", "state": f"{step['activation']}ed"})
            await_docker(part, step["daemon_json"]["set"].get("runtimes", {}))


def containerd(step: Parameters, part: Execution) -> None:
    """Configure containerd or revert that, and restart it: its shims keep containers running meanwhile."""
    part.run("gpu_containerd_config", {"mode": step["mode"], "default": step["default"]})
    if step["state"]:
        with part.explains_service("containerd"):
            part.run(UNIT, {"name": "containerd", "state": step["state"]})
            part.wait(lambda: part.command("ctr", "version"))


def crio(step: Parameters, part: Execution) -> None:
    """Write or remove the drop-in file of CRI-O, and restart it: containers belong to their conmon and keep running."""
    part.run("gpu_files", {"files": step["files"]})
    if step["state"]:
        with part.explains_service("crio"):
            # Its unit has no limit for its start.
            part.run(UNIT, {"name": "crio", "state": step["state"], "no_block": True})
            # With a wrong configuration CRI-O ends soon after its start.
            part.run("ansible.builtin.wait_for", {"path": "/run/crio/crio.sock", "timeout": 60})
            part.wait(lambda: part.command("systemctl", "is-active", "--quiet", "crio"))


def kubernetes(step: Parameters, part: Execution) -> None:
    """Restart k3s or RKE2, which look for the toolkit when they start; its pods keep running (KillMode=process)."""
    unit = step["unit"]
    with part.explains_service(unit):
        part.run(UNIT, {"name": unit, "state": step["state"], "no_block": True})
        # It writes the file at each start, before its containerd starts.
        written = {"path": step["file"], "search_regex": "nvidia-container-runtime", "timeout": 180}
        part.run("ansible.builtin.wait_for", written)
        part.wait(
            lambda: part.command("systemctl", "is-active", "--quiet", unit), KUBERNETES_ATTEMPTS, KUBERNETES_WITHIN
        )


STEPS: dict[str, Step] = {
    "docker_engine.repository": add_repositories,
    "docker_engine.install": docker_install,
    "docker_engine.configure": docker_configure,
    "nvidia_container_runtime.migrate": migrate,
    "nvidia_container_runtime.cleanup": cleanup,
    "nvidia_container_runtime.repository": add_repositories,
    "nvidia_container_runtime.install": install,
    "nvidia_container_runtime.cdi_spec": cdi_spec,
    "nvidia_container_runtime.volume": volume,
    "nvidia_container_runtime.configure": configure,
    "nvidia_container_runtime.containerd": containerd,
    "nvidia_container_runtime.crio": crio,
    "nvidia_container_runtime.kubernetes": kubernetes,
}
