"""The fabric manager of hosts with NVSwitches: CUDA does not start there without one of the driver's own version."""

from typing import Any, Dict, Optional

from .. import catalog, versions
from . import sources
from .steps import Decision, Step

SERVICE = "nvidia-fabricmanager"


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the step that brings the fabric manager to an NVSwitch host; it runs after the driver is loaded."""
    driver = choice["driver"]
    switches = observed["base"]["nvswitches"]
    if not switches or driver.get("source") in (None, "none"):
        return Decision()
    name = sources.fabricmanager(catalog.distro(observed["base"]["distro"]), driver["source"], driver["branch"])
    if name is None:
        return Decision()
    version = observed["packages"]["installed"].get(name)
    disk = observed["driver"]["on_disk"]
    fits_driver = driver["satisfied"] and version and disk and versions.upstream(version) == disk["version"]
    if fits_driver and observed["driver"].get("fabricmanager"):
        return Decision({"package": name})
    if fits_driver:
        reason = "%d NVSwitches need the fabric manager, and it does not run" % len(switches)
    else:
        reason = "%d NVSwitches need a fabric manager of exactly the driver's version" % len(switches)
    params = {"packages": [{"name": name, "version": wanted_version(driver, disk)}], "service": SERVICE}
    return Decision({"package": name}, [Step("nvidia_driver.fabricmanager", reason, params=params)])


def wanted_version(driver: Dict[str, Any], disk: Optional[Dict[str, Any]]) -> Optional[str]:
    """Return the version to install: the driver's own where it is known before, else one of its branch."""
    if driver["satisfied"] and disk:
        return str(disk["version"]) + "-*"
    if driver["version"]:
        return str(driver["version"]) + "-*"
    return "%d.*" % driver["branch"]
