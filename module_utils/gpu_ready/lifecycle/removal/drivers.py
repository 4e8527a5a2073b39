"""Unloads the driver that is removed, and removes a driver of NVIDIA's .run installer."""

import functools
import re
from typing import List

from ...base import manifest, manifest_notes
from ...base.disruptions import DRIVER_RELOAD
from ...driver import gpu_services, kernel_module
from ...driver.runfile import install as runfile
from ...driver.runfile import installed_files
from ...driver.runfile.spec import RunfileError
from ...facts import affected
from .context import Action, Removal
from .errors import UninstallError


def find_modules(removal: Removal) -> List[Action]:
    """Unload the modules of a driver that gpu-ready installed or loaded, if nothing holds them.

    After a reboot the host has loaded them itself.
    """
    names = kernel_module.loaded_modules(removal.host)
    ours = [name for name in manifest.owned_packages(removal.recorded) if name not in removal.packages.kept]
    driver = [name for name in ours if re.fullmatch(removal.driver_packages, name)]
    if not names or not (removal.recorded.get("modules") or driver or is_own_installer_driver(removal)):
        return []
    text = "the driver would be removed while it is used by %s"
    removal.refuse_work(DRIVER_RELOAD, text, affected.users_of_gpus(removal.work))
    return [Action("unload " + " ".join(names), lambda: unload_modules(removal, names))]


def unload_modules(removal: Removal, names: List[str]) -> None:
    """Stop the services that hold the GPUs for the system, then unload; what is held stays until a reboot."""
    for unit in gpu_services.UNITS:
        if removal.host.run(["systemctl", "is-active", unit]).rc == 0:
            removal.run(["systemctl", "stop", unit])
    removal.held_by = kernel_module.module_users(removal.host, names)
    if not removal.held_by:
        for name in names:
            removal.run(["rmmod", name])
    manifest_notes.drop("modules", list(removal.recorded.get("modules", {})), removal.path)


def is_own_installer_driver(removal: Removal) -> bool:
    """Return True if the driver of NVIDIA's installer is one that gpu-ready installed, or is incomplete."""
    entry = removal.recorded.get("runfile", {}).get("driver")
    version = installed_files.installed_version(removal.host)
    return entry is not None and (version is None or version in entry["versions"])


def find_installer_driver(removal: Removal) -> List[Action]:
    """Run the uninstaller of a driver that gpu-ready installed by a .run installer."""
    if "driver" not in removal.recorded.get("runfile", {}):
        return []
    version = installed_files.installed_version(removal.host)
    if not is_own_installer_driver(removal):
        removal.kept.append(
            "the driver %s of NVIDIA's installer: it is not recorded that gpu-ready installed this version" % version
        )
        return []
    return [
        Action(
            "remove the driver %s of NVIDIA's installer" % (version or ""),
            functools.partial(remove_installer_driver, removal),
        )
    ]


def remove_installer_driver(removal: Removal) -> None:
    """Run the driver's own uninstaller."""
    try:
        runfile.remove(removal.host, removal.directory)
    except RunfileError as error:
        raise UninstallError(str(error)) from None
