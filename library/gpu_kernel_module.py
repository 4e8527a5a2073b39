#!/usr/bin/python
"""Load, exchange or unload the NVIDIA modules of the running kernel, without force."""

DOCUMENTATION = r"""
module: gpu_kernel_module
short_description: Load, exchange or unload NVIDIA's kernel modules
description:
  - Loads the modules and makes the device nodes, or unloads them in the right order. Services that hold GPUs for the
    system are stopped before and started after.
  - Never ends a process and never forces a module out. When something holds a module, the answer says what, and that a
    reboot is required.
  - Other modules that were loaded before an exchange are loaded again after it; a warning names one that does not.
options:
  state:
    description: V(loaded), V(reloaded) (unload what runs, load what is installed) or V(unloaded).
    type: str
    choices: [loaded, reloaded, unloaded]
    default: loaded
  modules:
    description: Modules to load, in this order, by the names that modprobe knows.
    type: list
    elements: str
    default: [nvidia, nvidia-uvm]
  services:
    description: Services to stop and start, beside those that are known.
    type: list
    elements: str
    default: []
  later:
    description: Services that somebody else starts after this, once they have the new driver's version.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Says whether something would change; changes nothing.}
  diff_mode: {support: full, description: Shows the loaded modules.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Load the driver
  gpu_kernel_module:
    modules: [nvidia, nvidia-uvm, nvidia-modeset]

- name: Bring an upgraded driver into use
  gpu_kernel_module:
    state: reloaded
  register: driver

- name: Take the driver out of the kernel
  gpu_kernel_module:
    state: unloaded
"""

RETURN = r"""
loaded_version:
  description: Version of the loaded driver; empty when none is.
  returned: always
  type: str
  sample: 580.178.04
modules:
  description: Modules of NVIDIA that are loaded.
  returned: always
  type: list
held_by:
  description: What keeps the modules from being exchanged; empty when nothing does.
  returned: always
  type: str
reboot_required:
  description: Whether only a reboot brings the installed driver into use.
  returned: always
  type: bool
services:
  description: Services that were stopped and started again.
  returned: always
  type: list
"""

import os
import stat
import time

from ansible.module_utils.gpu_ready.base import manifest
from ansible.module_utils.gpu_ready.base.errors import GpuReadyError
from ansible.module_utils.gpu_ready.base.host import MISSING
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.diagnostics import failure
from ansible.module_utils.gpu_ready.driver import dkms, gpu_services, kernel_module, stopped_services

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["loaded", "reloaded", "unloaded"], "default": "loaded"},
    "modules": {"type": "list", "elements": "str", "default": ["nvidia", "nvidia-uvm"]},
    "services": {"type": "list", "elements": "str", "default": []},
    "later": {"type": "list", "elements": "str", "default": []},
}
LIMIT = 180.0
RELEASE_WAIT = 10.0
"""Seconds for stopped services to let go of the device."""


class ModuleError(GpuReadyError):
    """A module or service does not do what it was told; one sentence."""


def systemctl(host, verb, unit):
    """Stop or start a unit; returns a sentence where systemd cannot, "" where it did."""
    answer = host.run(["systemctl", verb, unit], LIMIT)
    if answer.rc == 0:
        return ""
    return "systemctl %s %s ended with %d (%s): see `journalctl -u %s` on the host" % (
        verb, unit, answer.rc, answer.err.strip()[-300:], unit,
    )  # fmt: skip


def start(host, units):
    """Start units, the last stopped first; returns a sentence for each that does not start, which stops no other."""
    told = [systemctl(host, "start", unit) for unit in reversed(units)]
    return [sentence for sentence in told if sentence]


def stop(host, units):
    """Stop units; ModuleError where one goes on, and those that were stopped run again."""
    for number, unit in enumerate(units):
        fault = systemctl(host, "stop", unit)
        if fault:
            raise ModuleError("; ".join([fault] + start(host, units[:number])))


def active(host, units):
    """Return the units that run."""
    answer = host.run(["systemctl", "is-active"] + units)
    if answer.rc == MISSING:
        return []
    states = dict(zip(units, answer.out.split()))  # noqa: B905 - strict= is younger than the hosts' Python
    return [unit for unit in units if states.get(unit) in ("active", "activating")]


def unload(host, names):
    """Take modules out of the kernel, users first, for RELEASE_WAIT at most; returns what keeps one, "" for nothing.

    Plain rmmod, which the kernel refuses while one is in use: a stopped service needs a moment to let go, and a monitor
    that asks the GPU every few seconds may come between the look and the rmmod.
    """
    end = time.monotonic() + RELEASE_WAIT
    while True:
        there = [name for name in names if host.isdir("/sys/module/" + name)]
        held = kernel_module.held(host, there)
        for name in [] if held else there:
            answer = host.run(["rmmod", name], LIMIT)
            if answer.rc != 0:
                held = "rmmod %s: %s" % (name, answer.err.strip()[-300:])
                break
        if not held or time.monotonic() >= end:
            return held
        time.sleep(0.5)


def again(host, names):
    """Load modules that were loaded before, used ones first; returns a sentence for each that does not come back."""
    told = []
    for name in reversed(names):
        try:
            load(host, [name])
        except ModuleError as error:
            told.append("%s; it was loaded before" % error)
    return told


def restore(host):
    """Have DKMS install the modules that it should have installed and that another package took along."""
    answer = host.run(["dkms", "status"])
    if answer.rc != 0:  # no DKMS: the modules came ready made
        return
    kernel = os.uname()[2]
    there = [name for tree in dkms.TREES for name in host.listdir("/lib/modules/%s/%s" % (kernel, tree))]
    for module in dkms.lost(answer.out, kernel, there, dkms.sources(host)):
        if module not in dkms.registered(answer.out):
            dkms.run(host, ["dkms", "add", module])
        dkms.run(host, ["dkms", "install", "--force", module, "-k", kernel])


def load(host, names):
    """Load modules; returns those that were not there."""
    fresh = []
    for name in names:
        kernel_name = name.replace("-", "_")
        if host.isdir("/sys/module/" + kernel_name):
            continue
        before = host.run(["dmesg"]).out
        answer = host.run(["modprobe", name], LIMIT)
        if answer.rc != 0:
            log = failure.fresh(before, host.run(["dmesg"]).out)
            raise ModuleError(kernel_module.explain(name, answer.err + answer.out, host.uname()[0], log))
        fresh.append(name)
    return fresh


def make_nodes(host):
    """Make the device nodes as NVIDIA's own tool does, or by hand where it is not installed; returns the new ones."""
    before = set(host.listdir("/dev"))
    if host.which("nvidia-modprobe"):
        host.run(["nvidia-modprobe", "-u", "-c=0"])
    access = kernel_module.node_access(host)
    for path, (major, minor) in sorted(kernel_module.nodes(host).items()) if access else ():
        if not host.exists(path):
            os.mknod(path, stat.S_IFCHR, os.makedev(major, minor))  # nobody's but root's until it has its owner
            os.chown(path, access.uid, access.gid)
            os.chmod(path, access.mode)
    return sorted(set(host.listdir("/dev")) - before)


def run(host, params, check):
    """Bring the modules to the wanted state; returns the module's answer."""
    before = kernel_module.loaded(host)
    old = kernel_module.version(host)
    lacking = [n for n in params["modules"] if not host.isdir("/sys/module/" + n.replace("-", "_"))]
    out = params["state"] != "loaded" and bool(before)
    wanted = params["state"] != "unloaded"
    stopped = stopped_services.read_stopped(host) if wanted else []
    result = {"changed": bool(out or (wanted and (lacking or stopped))), "held_by": "", "services": []}
    result.update({"warnings": [], "reboot_required": False, "modules": before, "loaded_version": old})
    owner = kernel_module.kernels_own(host) if params["state"] == "loaded" and lacking else None
    if owner:
        result.update({"changed": False, "reboot_required": True, "held_by": "%s drives the GPUs" % owner})
        return result
    if check:
        return result

    if wanted and (out or lacking):
        restore(host)
    if out:
        fresh = active(host, list(gpu_services.UNITS) + params["services"])
        stopped = stopped_services.record_stopped(host, fresh)
        stop(host, fresh)
        held = unload(host, before)
        if held:
            # Beside the old module the new driver's services may not start; the reboot that is required starts them.
            there = kernel_module.loaded(host)
            result["warnings"] = again(host, [name for name in before if name not in there]) + start(host, stopped)
            stopped_services.clear_stopped()
            there = kernel_module.loaded(host)
            result.update({"changed": there != before, "modules": there, "reboot_required": True, "held_by": held})
            return result
    fresh = []
    if wanted:
        fresh = load(host, params["modules"])
        manifest.note("modules", {name: {} for name in fresh if not out})
        # Others loaded more of them, for graphics, RDMA or storage: these work as before.
        result["warnings"] = again(host, before if out else [])
        fresh += make_nodes(host)
        stopped = [unit for unit in stopped if unit not in params["later"]]
        faults = start(host, stopped)
        stopped_services.clear_stopped()
        if faults:
            raise ModuleError("; ".join(faults))
    result.update(
        {
            "changed": bool(out or fresh or stopped),
            "services": stopped,
            "modules": kernel_module.loaded(host),
            "loaded_version": kernel_module.version(host),
        }
    )
    result["diff"] = {
        "before": "".join("%s %s\n" % (name, old) for name in sorted(before)),
        "after": "".join("%s %s\n" % (name, result["loaded_version"]) for name in sorted(result["modules"])),
    }
    return result


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
