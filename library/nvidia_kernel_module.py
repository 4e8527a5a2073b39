#!/usr/bin/python
"""Load, exchange or unload the NVIDIA modules of the running kernel, without force."""

DOCUMENTATION = r"""
module: nvidia_kernel_module
short_description: Load, exchange or unload NVIDIA's kernel modules
description:
  - Loads the modules and makes the device nodes, or unloads them in the right order. Services that hold GPUs for the
    system are stopped before and started after.
  - Never ends a process and never forces a module out. When something holds a module, the answer says what, and that a
    reboot is required.
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
attributes:
  check_mode: {support: full, description: Says whether something would change; changes nothing.}
  diff_mode: {support: full, description: Shows the loaded modules.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Load the driver
  nvidia_kernel_module:
    modules: [nvidia, nvidia-uvm, nvidia-modeset]

- name: Bring an upgraded driver into use
  nvidia_kernel_module:
    state: reloaded
  register: driver

- name: Take the driver out of the kernel
  nvidia_kernel_module:
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
  description: Services that were stopped (and started again).
  returned: always
  type: list
"""

import os
import stat
import time

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.gpu_ready import failure, kernel_module, manifest
from ansible.module_utils.gpu_ready.host import MISSING, Host

ARGUMENT_SPEC = {
    "state": {"type": "str", "choices": ["loaded", "reloaded", "unloaded"], "default": "loaded"},
    "modules": {"type": "list", "elements": "str", "default": ["nvidia", "nvidia-uvm"]},
    "services": {"type": "list", "elements": "str", "default": []},
}
LIMIT = 180.0
RELEASE_WAIT = 10.0
"""Seconds for stopped services to let go of the device."""


class ModuleError(Exception):
    """A module or service does not do what it was told; one sentence."""


def systemctl(host, verb, units):
    """Stop or start units, ModuleError when systemd cannot."""
    for unit in units:
        answer = host.run(["systemctl", verb, unit], LIMIT)
        if answer.rc != 0:
            raise ModuleError(
                "systemctl %s %s ended with %d (%s): see `journalctl -u %s` on the host"
                % (verb, unit, answer.rc, answer.err.strip()[-300:], unit)
            )


def active(host, units):
    """Return the units that run."""
    answer = host.run(["systemctl", "is-active"] + units)
    if answer.rc == MISSING:
        return []
    states = dict(zip(units, answer.out.split()))  # noqa: B905 - strict= is younger than the hosts' Python
    return [unit for unit in units if states.get(unit) in ("active", "activating")]


def unload(host, names):
    """Take modules out of the kernel, users first; plain rmmod, which the kernel refuses while one is in use."""
    for name in names:
        answer = host.run(["rmmod", name], LIMIT)
        if answer.rc != 0:
            raise ModuleError("rmmod %s: %s" % (name, answer.err.strip()[-300:]))


def restore(host):
    """Have DKMS install modules again that it installed and that another package took along."""
    answer = host.run(["dkms", "status"])
    if answer.rc != 0:  # no DKMS: the modules came ready made
        return
    kernel = os.uname()[2]
    there = [name for tree in kernel_module.DKMS_TREES for name in host.listdir("/lib/modules/%s/%s" % (kernel, tree))]
    for module in kernel_module.lost(answer.out, kernel, there):
        again = host.run(["dkms", "install", "--force", module, "-k", kernel], LIMIT)
        if again.rc != 0:
            raise ModuleError(
                "dkms install --force %s -k %s ended with %d (%s): see `dkms status` on the host"
                % (module, kernel, again.rc, (again.err or again.out).strip()[-300:])
            )


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
    for path, (major, minor) in sorted(kernel_module.nodes(host).items()):
        if not host.exists(path):
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(major, minor))
            os.chmod(path, 0o666)
    return sorted(set(host.listdir("/dev")) - before)


def run(host, params, check):
    """Bring the modules to the wanted state; returns the module's answer."""
    before = kernel_module.loaded(host)
    old = kernel_module.version(host)
    lacking = [n for n in params["modules"] if not host.isdir("/sys/module/" + n.replace("-", "_"))]
    out = params["state"] != "loaded" and bool(before)
    result = {"changed": bool(out or (lacking and params["state"] != "unloaded")), "held_by": "", "services": []}
    result.update({"reboot_required": False, "modules": before, "loaded_version": old})
    if params["state"] == "loaded" and lacking and host.isdir("/sys/module/nouveau"):
        bound = host.listdir("/sys/module/nouveau/drivers/pci:nouveau")
        if [name for name in bound if name[:1].isdigit()]:
            result.update({"changed": False, "reboot_required": True, "held_by": "nouveau drives the GPUs"})
            return result
    if check:
        return result

    if params["state"] != "unloaded" and (out or lacking):
        restore(host)
    stopped = []
    if out:
        stopped = active(host, list(kernel_module.SERVICES) + params["services"])
        systemctl(host, "stop", stopped)
        end = time.monotonic() + RELEASE_WAIT
        held = kernel_module.held(host, before)
        while held and stopped and time.monotonic() < end:
            time.sleep(0.5)
            held = kernel_module.held(host, before)
        if held:
            systemctl(host, "start", stopped[::-1])
            result.update({"changed": False, "reboot_required": True, "held_by": held})
            return result
        unload(host, before)
    fresh = []
    if params["state"] != "unloaded":
        fresh = load(host, params["modules"])
        manifest.note("modules", {name: {} for name in fresh if not out})
        fresh += make_nodes(host)
        systemctl(host, "start", stopped[::-1])
    result.update(
        {
            "changed": bool(out or fresh),
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
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = run(Host(), module.params, module.check_mode)
    except (ModuleError, manifest.ManifestError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg="%s: %s" % (error.filename or "device nodes", error.strerror))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
