# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The steps of kernel headers and driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from ansible.module_utils.parsing.convert_bool import boolean

from ....module_utils.gpu_ready.driver.module_parameters import to_number
from ....module_utils.gpu_ready.facts.driver_origin import RUNFILE
from ....module_utils.gpu_ready.facts.model import DkmsFacts, ModuleFacts, UmadFacts
from ..plan.changes import FactChange, add, apply_changes, drop, set_to
from ..plan.driver.parameters import assignments
from .copies import copy_files
from .effects import Before, Declared, package_changes, removal_effects, standard_effects
from .model import COPY, DIRECTORY, INSTALL, Answer, Execution, Parameters, given
from .reboot import Permissions, refuse_reboot
from .repository import add_repositories, repository_effects

INSTALLER = f"{DIRECTORY}/installer.run"
UNINSTALLER = "/usr/bin/nvidia-uninstall"
"""Of NVIDIA's installer."""
NO_DRIVER: dict[str, object] = {"driver.on_disk": None, "driver.origin": None, "runtime.driver_files": None}
NO_DRIVER |= {"driver.userspace": [], "driver.dkms": [], "driver.module_files": [], "driver.persistence.running": False}
PACKAGED_OPTIONS = "/usr/lib/modprobe.d/"
SERVICES = {
    "nvidia-fabricmanager": "NVSwitch fabric manager",
    "nvidia-imex": "NVIDIA IMEX",
    "nvidia-persistenced": "NVIDIA persistence daemon",
}
REMOVAL = ("remove", "allow_remove")
PERSISTENCE = {"driver.persistence.running": True, "driver.persistence.off": False}


def headers(step: Parameters, part: Execution) -> None:
    """Install the headers of the running kernel."""
    arguments = {"names": step["packages"], "optional": step["optional"], "update_cache": True}
    part.run("gpu_packages", {**arguments, "purpose": f"headers of the running kernel {step['kernel']}"}, INSTALL)


def headers_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the headers, and the compiler that they need."""
    yield from standard_effects(step, before)
    yield set_to("base.kernel.headers", dict.fromkeys(before.facts.base.kernel.installed, True))
    yield set_to("base.compiler", "/usr/bin/gcc")


def blacklist_nouveau(step: Parameters, part: Execution) -> None:
    """Disable nouveau from the next boot on."""
    part.run("gpu_files", {"files": [{"path": step["path"], "content": step["content"]}], **given(step, "rebuild")})


def parameters(step: Parameters, part: Execution) -> None:
    """Write the parameters that the kernel module has when it is loaded next."""
    state = "present" if step["content"] else "absent"
    file = {"path": step["path"], "content": step["content"], "state": state}
    part.run("gpu_files", {"files": [file], **given(step, "rebuild")})


def parameters_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the file; the loaded module keeps its parameters."""
    yield from standard_effects(step, before)
    path, text = step["path"], step["content"]
    yield add("driver.options", {path: text}) if text else drop("driver.options", [path])


def change_packages(transactions: Iterable[Answer], part: Execution) -> None:
    """Carry out package transactions."""
    for one in transactions:
        part.run("gpu_packages", one, INSTALL)


def detect_transactions(step: Parameters) -> Iterator[Answer]:
    """Yield the installation of nvidia-detect."""
    yield {"names": step["packages"], "update_cache": True, "purpose": "nvidia-detect"}


def detect(step: Parameters, part: Execution) -> None:
    """Compare the plan with nvidia-detect."""
    change_packages(detect_transactions(step), part)
    part.run("gpu_nvidia_detect", {"expect": step["expect"], "gpus": step.get("gpus", [])})


def removal_transactions(step: Parameters) -> Iterator[Answer]:
    """Yield the removal of another driver's packages."""
    removed = {"unhold": step["unhold"], "remove": step["packages"], "allow_remove": step["packages"]}
    yield {**removed, "purpose": "the NVIDIA installer"}


def remove_packages(step: Parameters, part: Execution) -> None:
    """Remove the packages of another driver."""
    change_packages(removal_transactions(step), part)


def remove_packages_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield that the packages are removed, with their options of the module and their daemon."""
    yield from removal_effects(step, before)
    yield drop("driver.options", [path for path in before.facts.driver.options if path.startswith(PACKAGED_OPTIONS)])


def runfile(step: Parameters, part: Execution) -> None:
    """Run NVIDIA's installer; a file of the control node is copied to hosts that have to run it, and then deleted."""
    copied = "" if "://" in step["source"] else INSTALLER
    arguments = {name: step[name] for name in ("version", "flavour", "kernels")}
    arguments["uninstall"] = step["uninstall"] or ""
    with part.deletes([copied] if copied else []):
        if copied:
            answer = part.run("gpu_driver_runfile", {"source": copied, **arguments}, COPY, check=True)
            if answer.get("needs_file"):
                copy_files([part.modules.setting("nvidia_driver_runfile")], {step["source"]: copied}, part)
        sums = {"sha256": step["sha256"], "sha256_url": step["sha256_url"]}
        part.run("gpu_driver_runfile", {"source": copied or step["source"], **sums, **arguments}, COPY)


def driver_changes(module: ModuleFacts, origin: str) -> Iterator[FactChange]:
    """Yield a complete driver with this module."""
    yield set_to("driver.on_disk", module)
    yield set_to("driver.module_files", [module.path] if module.path else [])
    yield set_to("runtime.driver_files", module.version)
    yield set_to("driver.userspace", [module.version])
    yield set_to("driver.missing_parts", [])
    yield set_to("driver.origin", origin)


def runfile_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield a driver without packages: the plan has others removed before."""
    module = before.module(step)
    yield from driver_changes(module, RUNFILE)
    yield set_to("driver.runfile", UNINSTALLER)
    yield set_to("driver.dkms", [DkmsFacts("nvidia", module.version, step["kernels"])])
    if not before.facts.work.processes:  # the installer unloads a module that nobody uses
        yield set_to("driver.loaded", None)
        yield set_to("driver.parameters", {})
        gpus = before.facts.base.gpus
        yield set_to("base.gpus", [gpu._replace(driver=None) if gpu.driver == "nvidia" else gpu for gpu in gpus])


def install_transactions(step: Parameters) -> Iterator[Answer]:
    """Yield the pin, which apt applies only in the transaction after it, and the driver."""
    if step["pin_packages"]:
        unhold = [name for name in step["unhold"] if name in step["pin_remove"]]
        pin = {"names": step["pin_packages"], "unhold": unhold, **dict.fromkeys(REMOVAL, step["pin_remove"])}
        yield {**pin, "update_cache": True, "purpose": "the pin of the NVIDIA driver"}
    arguments = {name: step[name] for name in ("streams", "unhold", "allow_remove", "remove")}
    arguments |= {"names": step["packages"], **given(step, "optional")}
    yield {**arguments, "update_cache": True, "purpose": "NVIDIA driver"}


def install(step: Parameters, part: Execution) -> None:
    """Install the driver's packages; compiling the module takes minutes."""
    if step["runfile"] is not None:  # one that gpu-ready installed, or nvidia_driver_replace_foreign
        part.run("gpu_driver_runfile", {"state": "absent"}, COPY)
    change_packages(install_transactions(step), part)
    # Packages without their module: a killed build, a loss of power, or a kernel that was installed later.
    if step["rebuild"] is not None:
        part.run("gpu_dkms", {"kernel": step["rebuild"]["kernel"]}, INSTALL)


def install_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the packages and the driver in them."""
    names = [*step["packages"], *step.get("optional", [])]
    changes = [*standard_effects({**step, "packages": names}, before)]
    yield from changes
    origin = before.origin(apply_changes(before.facts, changes).driver.packages)
    yield from driver_changes(before.module(step["expect"]), origin)
    yield add("yum.streams", step["streams"])
    yield set_to("driver.runfile", None)


def next_kernel(step: Parameters, part: Execution) -> None:
    """Build the module for the kernel of the next boot, unless new headers have made DKMS build it already."""
    part.run("gpu_dkms", {"kernel": step["kernel"]}, INSTALL)


def hold_transactions(step: Parameters) -> Iterator[Answer]:
    """Yield the holds, with the tools that set them."""
    held = {"names": step["tools"], "hold": step["packages"]}
    yield {**held, "purpose": "the hold of the NVIDIA driver"}


def hold(step: Parameters, part: Execution) -> None:
    """Hold the driver's packages."""
    change_packages(hold_transactions(step), part)


def hold_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the holds, and the tools that set them."""
    return package_changes(before, step["tools"], hold=step["packages"])


def activate(step: Parameters, part: Execution) -> None:
    """Load the module, or find that only a reboot can."""
    action = step["action"]
    part.reboot_required = action == "reboot"
    if action in ("load", "reload"):
        arguments = {name: step[name] for name in ("modules", "later", "force", "kubelet")}
        arguments["state"] = "reloaded" if action == "reload" else "loaded"
        answer = part.run("gpu_kernel_module", arguments)
        part.reboot_required = bool(answer.get("reboot_required"))
        part.held_by = answer.get("held_by") or ""
    if part.reboot_required:
        setting = part.modules.setting
        permitted = Permissions(
            boolean(setting("gpu_ready_reboot_ok") or False, strict=False),
            "reboot" in (setting("gpu_ready_disrupt") or []),
            part.drained,
        )
        part.reboot_refused = refuse_reboot(step.get("why") or "", part.held_by, permitted)


def activate_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the loaded module; a reboot also changes what only a boot can, and stops everything."""
    driver, base = before.facts.driver, before.facts.base
    if driver.on_disk is None:
        return
    yield set_to("driver.loaded", ModuleFacts(driver.on_disk.version, driver.on_disk.flavour))
    texts = sorted(driver.options.items(), key=lambda item: PurePosixPath(item[0]).name)
    values = {one.name: one.value for _, text in texts for one in assignments(text)}
    numbers = {name: to_number(value) for name, value in values.items()}
    shown = {name: f'"{values[name]}"' if number is None else str(number) for name, number in numbers.items()}
    yield add("driver.parameters", shown)
    yield set_to("base.gpus", [gpu._replace(driver="nvidia") if gpu in base.served_gpus else gpu for gpu in base.gpus])
    yield set_to("work.processes", [])
    if step["action"] == "reboot":
        yield set_to("base.boot_id", f"after {base.boot_id}")
        yield set_to("base.nouveau", base.nouveau._replace(name=None, loaded=False, bound=[]))


def umad_transactions(step: Parameters) -> Iterator[Answer]:
    """Yield the installation of the kernel's modules for InfiniBand."""
    if step["packages"]:
        yield {"optional": step["packages"], "purpose": "the kernel modules mlx5_ib and ib_umad"}


def umad(step: Parameters, part: Execution) -> None:
    """Load the modules that the fabric manager of NVLink 5 needs, now and at each boot."""
    change_packages(umad_transactions(step), part)
    part.run("gpu_files", {"files": [{"path": step["path"], "content": step["content"]}]})
    part.run("gpu_kernel_module", {"modules": step["modules"]})


def start(step: Parameters, part: Execution, **more: bool) -> None:
    """Start a service, unless the new module needs a reboot: it cannot start before, and the boot starts it."""
    state = "unchanged" if part.reboot_required else "started"
    part.run("gpu_service", {"name": step["service"], "state": state, **more})


def service_transactions(step: Parameters) -> Iterator[Answer]:
    """Yield packages of the driver's version: another branch may have them under other names, and two do not fit."""
    unhold = [*step["remove"], *(one["name"] for one in step["packages"] if one["version"])]
    packages = {"names": step["packages"], "hold": step["hold"], "unhold": unhold, "purpose": SERVICES[step["service"]]}
    yield {**packages, **dict.fromkeys(REMOVAL, step["remove"])}


def fabricmanager(step: Parameters, part: Execution) -> None:
    """Run the fabric manager of the driver's version."""
    change_packages(service_transactions(step), part)
    start(step, part)


def imex(step: Parameters, part: Execution) -> None:
    """Have IMEX of the driver's version. Only the site knows which nodes share memory, and configures and starts it."""
    change_packages(service_transactions(step), part)
    if step["start"]:
        start(step, part)


def persistenced(step: Parameters, part: Execution) -> None:
    """Run the persistence daemon of the driver's version."""
    change_packages(service_transactions(step), part)
    start(step, part, persistence=True)


def service_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    """Yield the packages of a service; of another branch they have other names."""
    return package_changes(before, step["packages"], step["remove"], step["hold"], step["remove"])


def imex_effects(step: Parameters, before: Before) -> Iterator[FactChange]:
    yield from service_effects(step, before)
    yield set_to("driver.imex.running", step["start"])


STEPS: dict[str, Declared] = {
    "kernel_headers.repository": Declared(add_repositories, repository_effects),
    "kernel_headers.install": Declared(headers, headers_effects),
    "nvidia_driver.repository": Declared(add_repositories, repository_effects),
    "nvidia_driver.blacklist_nouveau": Declared(
        blacklist_nouveau, standard_effects, {"base.nouveau.blacklisted": True}
    ),
    "nvidia_driver.parameters": Declared(parameters, parameters_effects),
    "nvidia_driver.detect": Declared(detect, standard_effects, transactions=detect_transactions),
    "nvidia_driver.remove_packages": Declared(
        remove_packages, remove_packages_effects, NO_DRIVER, removal_transactions
    ),
    "nvidia_driver.runfile": Declared(runfile, runfile_effects),
    "nvidia_driver.install": Declared(install, install_effects, transactions=install_transactions),
    "nvidia_driver.next_kernel": Declared(next_kernel, standard_effects, {"driver.kernel_without_module": None}),
    "nvidia_driver.hold": Declared(hold, hold_effects, transactions=hold_transactions),
    "nvidia_driver.activate": Declared(activate, activate_effects),
    "nvidia_driver.umad": Declared(
        umad, standard_effects, {"base.umad": UmadFacts(present=True, loaded=True, at_boot=True)}, umad_transactions
    ),
    "nvidia_driver.fabricmanager": Declared(
        fabricmanager, service_effects, {"driver.fabricmanager": True}, service_transactions
    ),
    "nvidia_driver.imex": Declared(imex, imex_effects, transactions=service_transactions),
    "nvidia_driver.persistenced": Declared(persistenced, service_effects, PERSISTENCE, service_transactions),
}
