"""Reverts what gpu-ready changed in docker, containerd and podman: images, daemon.json, containerd's files."""

import functools
import os
from typing import List, Optional

from ...base import files, manifest_notes
from ...base.disruptions import CONTAINERD_RESTART, DOCKER_RESTART
from ...containers import crio
from ...containers import engine as engines
from ...containers.containerd import config as containerd_config
from ...containers.containerd import files as containerd_files
from ...containers.containerd import toml
from ...containers.daemon_json import merge as daemon_json
from ...facts import affected
from ...facts import engines as engine_facts
from .context import Action, Removal
from .errors import UninstallError
from .recorded_files import describe_edit, restored


def find_images(removal: Removal) -> List[Action]:
    """Remove the images of our verification from engines that stay."""
    found = find_docker_images(removal) if removal.recorded and removal.docker_stays() else []
    if removal.recorded and removal.host.which("podman"):
        argv = ["podman", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}"]
        names = [name for name in removal.host.run(argv).out.split() if "/gpu-ready/verify:" in name]
        act = functools.partial(removal.run, ["podman", "image", "rm"] + names)
        found += [Action("remove podman's images " + ", ".join(names), act)] if names else []
    for engine in engines.OF_CONTAINERD if removal.recorded else ():
        names = removal.host.run(engines.list_command(engine)).out.split()
        act = functools.partial(remove_namespace, removal, engine, names)
        found += [Action("remove %s's images " % engine + ", ".join(names), act)] if names else []
    return found


def find_docker_images(removal: Removal) -> List[Action]:
    """Remove the images of our verification from docker."""
    argv = ["docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "gpu-ready/verify"]
    names = removal.host.run(argv).out.split()
    argv = ["docker", "image", "rm"] + names
    return [Action("remove the images " + ", ".join(names), lambda: removal.run(argv))] if names else []


def remove_namespace(removal: Removal, engine: str, names: List[str]) -> None:
    """Empty and remove gpu-ready's namespace of a containerd."""
    removal.run(engines.ctr(engine, "images", "remove", "--sync") + names)
    removal.run(engines.CTR[engine] + ["namespaces", "remove", engines.NAMESPACE])


def find_crio_restart(removal: Removal) -> List[Action]:
    """Remove our drop-in file of CRI-O and restart it; it would not start without the toolkit's program otherwise."""
    recorded = removal.recorded.get("files", {}).get(crio.DROP_IN)
    if not recorded or describe_edit(removal.host, crio.DROP_IN, recorded) or not removal.host.exists(crio.DROP_IN):
        return []  # one that somebody edited is reported with the other files
    restart = removal.host.exists(crio.SOCKET)
    words = "remove %s" % crio.DROP_IN
    words += " and restart CRI-O; containers keep running" if restart else ""
    return [Action(words, functools.partial(revert_crio, removal, restart))]


def revert_crio(removal: Removal, restart: bool) -> None:
    removal.delete(crio.DROP_IN)
    if restart:
        removal.run(["systemctl", "restart", "crio"])


def find_containerd_edits(removal: Removal) -> List[Action]:
    """Remove gpu-ready's keys from containerd's files, and restart containerd if it runs."""
    try:
        edits = containerd_files.revert_edits(removal.host, removal.recorded)
    except toml.TomlError as error:
        raise UninstallError(
            "containerd's main file is no valid TOML (%s): repair it, then run again" % error
        ) from None
    drop_in = removal.recorded.get("files", {}).get(containerd_config.DROP_IN)
    if drop_in and describe_edit(removal.host, containerd_config.DROP_IN, drop_in):
        edits = [edit for edit in edits if edit.path != containerd_config.DROP_IN]  # reported with the other files
    if not edits:
        return []
    engine = engine_facts.collect_containerd(removal.host, {})
    why = "gpu-ready's keys are removed from its files"
    if engine.active and not engine.keeps_containers:
        work = affected.containers_of_engines(removal.work, engines.CONTAINERD, engines.DOCKER)
        removal.refuse_work(CONTAINERD_RESTART, affected.CONSEQUENCES[CONTAINERD_RESTART] % (why, "%s"), work)
    words = "remove gpu-ready's keys from " + ", ".join(edit.path for edit in edits)
    words += " and restart containerd; containers keep running" if engine.active else ""
    return [Action(words, functools.partial(revert_containerd, removal, edits, engine.active))]


def revert_containerd(removal: Removal, edits: List[containerd_config.FileEdit], restart: bool) -> None:
    """Write containerd's files without gpu-ready's keys, and restart it."""
    files.write_mark(removal.directory + "/" + containerd_config.RESTART_MARK)
    for edit in edits:
        if edit.after is None:
            removal.delete(edit.path)
        else:
            containerd_files.write_or_delete(edit.path, edit.after)
    if restart:
        removal.run(["systemctl", "restart", "containerd"])
    manifest_notes.drop("containerd", list(removal.recorded.get("containerd", {})), removal.path)


def find_docker_edits(removal: Removal) -> List[Action]:
    """Remove gpu-ready's keys from docker's configuration; refuse if the restart would stop containers."""
    recorded = removal.recorded.get("daemon_json", {})
    if not recorded:
        return []
    engine = removal.engine
    found = []
    for path, entry in sorted(recorded.items()):
        before = restored(entry)
        record = {"before": None if before is None else before.decode("utf-8", "replace"), "keys": entry["keys"]}
        text = removal.host.read(path)
        try:
            after = daemon_json.revert(text, record)
            keys = daemon_json.changed_keys(text, after)
        except daemon_json.DaemonJsonError as error:
            raise UninstallError("%s is not valid (%s): repair it, then run again" % (path, error)) from None
        need = daemon_json.RESTART if engine.restart_pending else daemon_json.activation(keys)
        need = need if engine.active and removal.docker_stays() else "none"
        why = "%s is removed from %s" % (", ".join(keys), path) if keys else "an interrupted run changed " + path
        words = " and restart docker" if need == daemon_json.RESTART else ""
        if words and not (engine.info and engine.info.live_restore):
            work = affected.containers_of_engines(removal.work, engines.DOCKER)
            removal.refuse_work(DOCKER_RESTART, affected.CONSEQUENCES[DOCKER_RESTART] % (why, "%s"), work)
        if after != text:
            act = functools.partial(write_docker_configuration, removal, path, after, need)
            found.append(Action("remove gpu-ready's keys from " + path + words, act))
        elif need == daemon_json.RESTART:
            act = functools.partial(removal.run, ["systemctl", "restart", "docker"])
            found.append(Action("restart docker", act))
    return found


def write_docker_configuration(removal: Removal, path: str, after: Optional[str], need: str) -> None:
    """Write docker's configuration, and reload or restart docker if it runs and stays."""
    if need == daemon_json.RESTART:
        files.write_mark(removal.directory + "/" + daemon_json.RESTART_MARK)
    if after is None:
        os.unlink(path)
    else:
        files.write_atomic(path, after.encode("utf-8"))
    if need != "none":
        removal.run(["systemctl", need, "docker"])
    manifest_notes.drop("daemon_json", [path], removal.path)
