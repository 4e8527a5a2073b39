"""Revert the changes recorded in the manifest, in reverse order. Foreign changes are left alone."""

import os
import shutil
from typing import List

from ..drain import journal as drain
from ..upgrade import journal as upgrade
from ..upgrade.model import BACK, CLOSED
from .removal import drivers, engines, packages, services, toolkits, written_files
from .removal.context import Action, Removal
from .removal.errors import UninstallError

SUBJECTS = (
    engines.find_images,
    engines.find_docker_edits,
    engines.find_containerd_edits,
    engines.find_crio_restart,
    drivers.find_modules,
    drivers.find_installer_driver,
    toolkits.find_cudnn,
    toolkits.find_toolkits,
    services.find_services,
    packages.find_holds,
    packages.find_packages,
    packages.find_streams,
    packages.find_rpm_keys,
    packages.find_accounts,
    packages.find_leftovers,
    toolkits.find_alternatives,
    written_files.find_directories,
    written_files.find_files,
    written_files.find_parents,
)
"""What finds the actions of each subject, in the order in which the actions are run."""


def find_actions(removal: Removal) -> List[Action]:
    """Return everything that is still to be reverted, in order. Raises UninstallError where nothing may be removed."""
    refuse_drained(removal)
    refuse_open_upgrade(removal)
    found = [action for find in SUBJECTS for action in find(removal)]
    if removal.host.isdir(removal.directory):
        found.append(Action("remove " + removal.directory, lambda: shutil.rmtree(removal.directory)))
    return found


def describe_unconfirmed(actions: List[Action], removal: Removal) -> str:
    """Return the error for an uninstallation that nobody confirmed: what it would do, stop and keep."""
    lines = [action.words for action in actions] + removal.stops + ["keep " + one for one in removal.kept]
    text = "nothing was removed: set gpu_ready_uninstall=true to remove what gpu-ready added to this host. That would:"
    return "\n- ".join([text] + lines)


def refuse_drained(removal: Removal) -> None:
    """Raise UninstallError while the host is drained for an upgrade: its journal would be removed too."""
    try:
        drained = drain.describe(drain.read(removal.host, removal.directory + "/" + os.path.basename(drain.PATH)))
    except drain.DrainError as error:
        raise UninstallError(str(error)) from None
    if drained:
        raise UninstallError(
            "this host: an upgrade left it drained (%s). Undrain it with playbooks/undrain.yml, then run again; "
            "nothing was removed" % "; ".join(drained)
        )


def refuse_open_upgrade(removal: Removal) -> None:
    """Raise UninstallError while an upgrade is unfinished: its journal and its rollback would be removed too."""
    found = upgrade.read(removal.host, removal.directory + "/" + os.path.basename(upgrade.PATH))
    if found is None or found.phase in CLOSED or found.phase == BACK:
        return
    raise UninstallError(
        "this host: an upgrade to the driver %s did not come to its end (phase %s in %s). Run upgrade_drivers.yml or "
        "rollback_drivers.yml; if the driver is as you want it, delete that file. Then run again; nothing was removed"
        % (found.to or "of an unknown version", found.phase, upgrade.PATH)
    )
