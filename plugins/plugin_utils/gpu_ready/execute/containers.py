# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The steps of docker and of the container runtime."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ....module_utils.gpu_ready.base import versions
from ....module_utils.gpu_ready.base.manifest_notes import keys_restored_by
from ....module_utils.gpu_ready.containers import cdi, driver_volume
from ....module_utils.gpu_ready.containers.containerd import config as containerd_config
from ....module_utils.gpu_ready.containers.containerd import edits
from ....module_utils.gpu_ready.containers.containerd.config import ConfigFile
from ....module_utils.gpu_ready.containers.containerd.files import reverted_keys
from ....module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from ....module_utils.gpu_ready.containers.docker import EngineInfo, capabilities
from ....module_utils.gpu_ready.facts.model import (
    CdiSpecFacts,
    DockerFacts,
    DriverVolumeFacts,
    LegacyFacts,
    RuntimeFacts,
)
from ..plan.changes import FactChange, add, drop, set_to
from ..plan.containers.model import CleanupParams
from ..plan.containers.runtime_cleanup import cleanup_changes
from .effects import Before, Declared, removal_effects, revert_effects, standard_effects
from .model import INSTALL, Answer, Execution, Parameters, fail
from .repository import add_repositories, repository_effects

UNIT = "ansible.builtin.systemd_service"
"""Never with daemon_reload: with the systemd cgroup driver, running containers would lose their GPUs."""
KUBERNETES_ATTEMPTS, KUBERNETES_WITHIN = 91, 600
DOCKER_RUNS = dict.fromkeys(("docker.installed", "docker.active", "docker.enabled"), True)
ENGINE_PACKAGES = ("docker-ce", "docker.io", "moby-engine", "docker")
PROGRAMS = ("nvidia-container-runtime", "nvidia-container-runtime-hook", "nvidia-ctk", "nvidia-container-cli")
GENERATED = """[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
BinaryName = "/usr/bin/nvidia-container-runtime"
"""
"""What k3s and RKE2 write of a runtime that they find."""


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


def docker_reads(engine: DockerFacts, runtime: RuntimeFacts) -> Iterator[FactChange]:
    """Yield what an engine knows that has just started with this daemon.json."""
    given = daemon_json.parse(engine.daemon_json.text).value
    cdi_on = capabilities(engine.version).cdi == "default" or (given.get("features") or {}).get("cdi")
    known = EngineInfo(
        version=engine.version or "",
        runtimes=["runc", *(given.get("runtimes") or {})],
        default_runtime=given.get("default-runtime", "runc"),
        live_restore=bool(given.get("live-restore", False)),
        cdi_dirs=cdi.DIRECTORIES if cdi_on else (),
        running=engine.info.running if engine.info else 0,
    )
    yield set_to("docker.info", known)
    yield set_to("docker.started", (engine.started or 0) + 1)
    yield set_to("docker.restart_pending", False)
    yield set_to("docker.outdated", False)
    yield set_to("runtime.hook_known", True if runtime.toolkit else None)


def docker_install_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the packages and an engine that runs, now and at boot."""
    facts, packages = before.facts, step["packages"]
    yield from standard_effects(step, before)
    engine = next((one for one in packages if one["name"] in ENGINE_PACKAGES), None)
    version = facts.docker.version
    if engine:
        version = versions.upstream(before.version(engine["name"], engine["version"]))
    yield set_to("docker.version", version)
    yield from docker_reads(facts.docker._replace(version=version), facts.runtime)


def merge_options(step: Parameters, part: Execution) -> None:
    """Merge options into daemon.json."""
    part.run("gpu_daemon_json", {name: step["daemon_json"][name] for name in ("path", "set", "unset")})


def options_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the file, and what the manifest says of its keys."""
    found, given = before.facts.docker.daemon_json, step["daemon_json"]
    change = daemon_json.merge(found.text, given["set"], given["unset"])
    known = {name: dict(state) for name, state in before.facts.runtime.manifest.keys.items()}
    for name, state in change.record.items():
        back = keys_restored_by(known, name, state)
        for one in back:
            del known[one]
        if not back:
            known.setdefault(name, dict(state)).update({key: state[key] for key in ("after",) if key in state})
    file = found._replace(exists=True, text=change.after)
    yield set_to("docker.daemon_json", file)
    yield set_to("runtime.manifest.keys", known)
    if step["activation"] != "none":
        yield from docker_reads(before.facts.docker._replace(daemon_json=file), before.facts.runtime)


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


def cleanup_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield what is removed."""
    yield from revert_effects(step, before)
    yield from cleanup_changes(before.facts, CleanupParams(**step))


def install(step: Parameters, part: Execution) -> None:
    """Install the container toolkit."""
    arguments = {"names": step["packages"], "update_cache": True, "purpose": "the NVIDIA container toolkit"}
    part.run("gpu_packages", arguments, INSTALL)


def install_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the toolkit, whose service writes a specification (1.18 and newer) where the driver is loaded."""
    yield from standard_effects(step, before)
    runtime = before.facts.runtime
    yield set_to("runtime.toolkit", True)
    yield set_to("runtime.programs", {name: f"/usr/bin/{name}" for name in {*PROGRAMS, *runtime.programs}})
    yield set_to("runtime.hook_known", False if before.facts.docker.active else None)
    yield set_to("runtime.refresh", True)
    if cdi.REFRESHED not in [spec.path for spec in runtime.specs]:
        new = written_spec(before, cdi.REFRESHED, old=runtime.refresh_old is not None)
        yield set_to("runtime.specs", [*runtime.specs, new])


def written_spec(before: Before, path: str, old: bool) -> CdiSpecFacts:
    """Return a specification of all GPUs in the old or the new format."""
    devices = [*map(str, range(len(before.facts.base.served_gpus))), "all"]
    return CdiSpecFacts(path, path == cdi.NATIVE, devices, "0.5.0" if old else "0.7.0")


def support_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the small files beside a specification or a volume."""
    names = {cdi.REFRESH_OLD: "refresh_old", cdi.BOOT_NODES: "boot_nodes", driver_volume.HELPER: "helper"}
    for file in step["files"]:
        path, text = file["path"], file["content"]
        yield add("engines.nodes", {path: text}) if path in cdi.NODES else set_to(f"runtime.{names[path]}", text)
    yield from standard_effects(step, before)


def cdi_spec(step: Parameters, part: Execution) -> None:
    """Write the CDI specification, and the services that create device nodes or the specification at boot."""
    part.run("gpu_files", {"files": step["files"]})
    arguments = {name: step[name] for name in ("path", "generator", "feature_flags", "remove")}
    part.run("gpu_cdi_spec", {**arguments, "unrefreshed": step.get("unrefreshed", "")})


def cdi_spec_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the specification."""
    yield from support_effects(step, before)
    runtime, path = before.facts.runtime, step["path"]
    if step.get("unrefreshed") and not runtime.refresh:
        path = step["unrefreshed"]
    new = written_spec(before, path, old=step["generator"] == "native" or bool(step["feature_flags"]))
    kept = [one for one in runtime.specs if one.path not in (path, *step["remove"])]
    yield set_to("runtime.specs", [*kept, new])
    yield add("runtime.manifest.files", [path])


def volume(step: Parameters, part: Execution) -> None:
    """Create the driver volume, with its helper and the service that creates device nodes at boot."""
    part.run("gpu_files", {"files": step["files"]})
    part.run("gpu_driver_volume", {})


def volume_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the volume of the driver."""
    yield from support_effects(step, before)
    disk = before.facts.driver.on_disk
    yield set_to("runtime.volume", DriverVolumeFacts(True, disk.version if disk else None))
    yield add("runtime.manifest.directories", [driver_volume.ROOT])


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


def containerd_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the files, as the host computes them too, and what the manifest says of them."""
    engine = before.facts.engines.containerd
    ours, main = list(engine.record), engine.files[0].path
    if step["mode"] == containerd_config.NONE:
        change = edits.plan_removal(engine.files, engine.before, engine.after, ours)
    else:
        change = edits.plan_edits(engine.version, engine.files, step["mode"], step["default"], ours)
    texts: dict[str, str | None] = {file.path: file.text for file in engine.files}
    for edit in change.edits:
        texts[edit.path] = edit.after
        if edit.path == main:
            record = ours + [one for one in change.record if one[0] not in [key for key, _ in ours]]
            back = reverted_keys(edit.after, record)
            kept = [one for one in record if list(one[0]) not in back]
            first = engine.before if ours else edit.before
            yield set_to("engines.containerd.record", kept)
            yield set_to("engines.containerd.before", first if kept else None)
            yield set_to("engines.containerd.after", edit.after if kept else None)
        else:
            yield (add if edit.after else drop)("runtime.manifest.files", [edit.path])
    files = [ConfigFile(path, text) for path, text in texts.items() if text is not None or path == main]
    yield set_to("engines.containerd.files", files)
    if step["state"]:
        yield set_to("engines.containerd.active", True)
        yield set_to("engines.containerd.pending", False)


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


def crio_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the drop-in file, and that CRI-O has read it."""
    written = {file["path"]: file for file in step["files"]}
    kept = [file for file in before.facts.engines.crio.files if file.path not in written]
    new = [ConfigFile(path, one["content"]) for path, one in written.items() if one["state"] == "present"]
    yield set_to("engines.crio.files", kept + new)
    yield from standard_effects(step, before)
    if step["state"]:
        yield set_to("engines.crio.active", True)
        yield set_to("engines.crio.pending", False)


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


def kubernetes_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the file that it writes itself."""
    kept = [file for file in before.facts.engines.kubernetes.files if file.path != step["file"]]
    yield set_to("engines.kubernetes.files", [ConfigFile(step["file"], GENERATED), *kept])


STEPS: dict[str, Declared] = {
    "docker_engine.repository": Declared(add_repositories, repository_effects),
    "docker_engine.install": Declared(docker_install, docker_install_effects, DOCKER_RUNS),
    "docker_engine.configure": Declared(docker_configure, options_effects),
    "nvidia_container_runtime.migrate": Declared(migrate, removal_effects, {"runtime.legacy": LegacyFacts()}),
    "nvidia_container_runtime.cleanup": Declared(cleanup, cleanup_effects),
    "nvidia_container_runtime.repository": Declared(add_repositories, repository_effects),
    "nvidia_container_runtime.install": Declared(install, install_effects),
    "nvidia_container_runtime.cdi_spec": Declared(cdi_spec, cdi_spec_effects),
    "nvidia_container_runtime.volume": Declared(volume, volume_effects),
    "nvidia_container_runtime.configure": Declared(configure, options_effects),
    "nvidia_container_runtime.containerd": Declared(containerd, containerd_effects),
    "nvidia_container_runtime.crio": Declared(crio, crio_effects),
    "nvidia_container_runtime.kubernetes": Declared(
        kubernetes, kubernetes_effects, {"engines.kubernetes.active": True}
    ),
}
