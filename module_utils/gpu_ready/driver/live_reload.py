"""Load or reload NVIDIA's modules in the running kernel, with the services that use the GPUs."""

import os
import stat
import time
from typing import Any, Dict, List, NamedTuple

from ..base import files, manifest_notes
from ..base.errors import GpuReadyError
from ..base.evidence import without_evidence
from ..base.host import MISSING, Host
from ..base.log_texts import new_lines
from . import dkms, gpu_services, kernel_module, pod_processes, stopped_services

LIMIT = 180.0
RELEASE_WAIT = 10.0
"""Seconds for stopped services to close the device nodes."""


class ModuleRequest(NamedTuple):
    """``state``: loaded or reloaded. ``later``: units that a later task starts.

    ``force``: reload also a module that is the installed one.
    ``kubelet``: its unit, to restart the pods that hold the GPUs; "" to leave them.
    """

    state: str
    modules: List[str]
    later: List[str]
    force: bool = False
    kubelet: str = ""


class ModuleError(GpuReadyError):
    """A module does not load, or a service does not stop or start."""


def systemctl(host: Host, verb: str, unit: str) -> str:
    """Stop or start a unit; returns a message if that fails, else ""."""
    answer = host.run(["systemctl", verb, unit], LIMIT)
    if answer.rc == 0:
        return ""
    return "systemctl %s %s ended with %d (%s). See `journalctl -u %s` on the host" % (
        verb, unit, answer.rc, answer.err.strip()[-300:], unit,
    )  # fmt: skip


def start_units(host: Host, units: List[str]) -> List[str]:
    """Start units in reverse order; returns a message for each that does not start, and starts the others."""
    messages = [systemctl(host, "start", unit) for unit in reversed(units)]
    return [message for message in messages if message]


def stop_units(host: Host, units: List[str]) -> None:
    """Stop units; if one does not stop, starts those that were stopped and raises ModuleError."""
    for number, unit in enumerate(units):
        message = systemctl(host, "stop", unit)
        if message:
            raise ModuleError("; ".join([message] + start_units(host, units[:number])))


def active_units(host: Host, units: List[str]) -> List[str]:
    answer = host.run(["systemctl", "is-active"] + units)
    if answer.rc == MISSING:
        return []
    states = dict(zip(units, answer.out.split()))  # noqa: B905 - strict= needs Python 3.10
    return [unit for unit in units if states.get(unit) in ("active", "activating")]


def unload(host: Host, names: List[str]) -> str:
    """Unload modules, users first, within RELEASE_WAIT; returns what uses one of them, "" if all are unloaded.

    The kernel refuses a plain rmmod of a module in use. Stopped services take a moment to close the device nodes, and a
    monitor that queries the GPU every few seconds may open one between the check and the rmmod.
    """
    end = time.monotonic() + RELEASE_WAIT
    while True:
        loaded = [name for name in names if host.isdir("/sys/module/" + name)]
        held = kernel_module.module_users(host, loaded)
        for name in [] if held else loaded:
            answer = host.run(["rmmod", name], LIMIT)
            if answer.rc != 0:
                held = "rmmod %s: %s" % (name, answer.err.strip()[-300:])
                break
        if not held or time.monotonic() >= end:
            return held
        time.sleep(0.5)


def load_again(host: Host, names: List[str]) -> List[str]:
    """Load modules that were loaded before, dependencies first; returns a message for each that does not load."""
    messages = []
    for name in reversed(names):
        try:
            load(host, [name])
        except ModuleError as error:
            # A warning, which older cores write to the host's log: nothing explains it there.
            messages.append("%s; it was loaded before" % without_evidence(str(error)))
    return messages


def restore_dkms_modules(host: Host) -> None:
    """Install modules with DKMS that should be installed and that another package removed."""
    answer = host.run(["dkms", "status"])
    if answer.rc != 0:  # no DKMS: the modules are precompiled
        return
    kernel = os.uname()[2]
    installed = [name for tree in dkms.TREES for name in host.listdir("/lib/modules/%s/%s" % (kernel, tree))]
    for module in dkms.missing_modules(answer.out, kernel, installed, dkms.module_sources(host)):
        if module not in dkms.registered_modules(answer.out):
            dkms.run(host, ["dkms", "add", module])
        dkms.run(host, ["dkms", "install", "--force", module, "-k", kernel])


def load(host: Host, names: List[str]) -> List[str]:
    """Load modules; returns those that were not loaded before."""
    fresh = []
    for name in names:
        kernel_name = name.replace("-", "_")
        if host.isdir("/sys/module/" + kernel_name):
            continue
        before = host.run(["dmesg"]).out
        answer = host.run(["modprobe", name], LIMIT)
        if answer.rc != 0:
            log = new_lines(before, host.run(["dmesg"]).out)
            raise ModuleError(kernel_module.describe_modprobe(name, answer.err + answer.out, host.uname()[0], log))
        fresh.append(name)
    return fresh


def create_device_nodes(host: Host) -> List[str]:
    """Create the device nodes as nvidia-modprobe does, or by mknod if that is not installed; returns the new ones."""
    before = set(host.listdir("/dev"))
    if host.which("nvidia-modprobe"):
        host.run(["nvidia-modprobe", "-u", "-c=0"])
    access = kernel_module.node_access(host)
    for path, (major, minor) in sorted(kernel_module.device_nodes(host).items()):
        if access is not None and not host.exists(path):
            os.mknod(path, stat.S_IFCHR, os.makedev(major, minor))  # accessible to root only until it has its owner
            os.chown(path, access.uid, access.gid)
            os.chmod(path, access.mode)
    return sorted(set(host.listdir("/dev")) - before)


def change_modules(host: Host, request: ModuleRequest, check: bool) -> Dict[str, Any]:
    """Return values of gpu_kernel_module. Raises ModuleError and DkmsError."""
    before = kernel_module.loaded_modules(host)
    old = kernel_module.loaded_version(host)
    missing = [n for n in request.modules if not host.isdir("/sys/module/" + n.replace("-", "_"))]
    reload = request.state == "reloaded" and (request.force or not kernel_module.is_current(host))
    must_unload = bool(before) and reload
    stopped = stopped_services.read_stopped(host)
    result: Dict[str, Any] = {
        "changed": bool(must_unload or missing or stopped),
        "held_by": "",
        "services": [],
        "warnings": [],
        "reboot_required": False,
        "modules": before,
        "loaded_version": old,
    }
    owner = kernel_module.bound_kernel_driver(host) if request.state == "loaded" and missing else None
    if owner:
        result.update({"changed": False, "reboot_required": True, "held_by": "%s drives the GPUs" % owner})
        return result
    if check:
        return result

    if must_unload or missing:
        restore_dkms_modules(host)
    if must_unload:
        # The kubelet first: it would start the containers of ended processes again. It is started last. Where no pod
        # holds a GPU it is left alone: k3s is also the node's API server.
        kubelet = [request.kubelet + ".service"] if request.kubelet and pod_processes.holders(host) else []
        units = active_units(host, kubelet + list(gpu_services.UNITS))
        stopped = record_stopped(host, units)
        stop_units(host, units)
        if kubelet:
            pod_processes.end(host)
        held = unload(host, before)
        if held:
            # With the old module the new driver's services may not start; the required reboot starts them.
            loaded = kernel_module.loaded_modules(host)
            unloaded = [name for name in before if name not in loaded]
            result["warnings"] = load_again(host, unloaded) + start_units(host, stopped)
            clear_stopped()
            loaded = kernel_module.loaded_modules(host)
            result.update({"changed": loaded != before, "modules": loaded, "reboot_required": True, "held_by": held})
            return result
    created = load(host, request.modules)
    # A recorded module has the driver unloaded by uninstall.yml; ib_umad is of the kernel and stays.
    fresh = [name for name in created if name.startswith("nvidia") and not must_unload]
    manifest_notes.note("modules", {name: {} for name in fresh})
    # Further modules, for graphics, RDMA or storage, were loaded by other software.
    result["warnings"] = load_again(host, before if must_unload else [])
    created += create_device_nodes(host)
    stopped = [unit for unit in stopped if unit not in request.later]
    failures = start_units(host, stopped)
    clear_stopped()
    if failures:
        raise ModuleError("; ".join(failures))
    result.update(
        {
            "changed": bool(must_unload or created or stopped),
            "services": stopped,
            "modules": kernel_module.loaded_modules(host),
            "loaded_version": kernel_module.loaded_version(host),
        }
    )
    result["diff"] = {
        "before": "".join("%s %s\n" % (name, old) for name in sorted(before)),
        "after": "".join("%s %s\n" % (name, result["loaded_version"]) for name in sorted(result["modules"])),
    }
    return result


def record_stopped(host: Host, units: List[str], path: str = stopped_services.STOPPED) -> List[str]:
    """Record services before they are stopped; return them with what an earlier run recorded."""
    before = stopped_services.read_stopped(host, path)
    after = before + [unit for unit in units if unit not in before]
    if after != before:
        files.write_json_file(path, after)
    return after


def clear_stopped(path: str = stopped_services.STOPPED) -> None:
    files.delete_file(path)
