"""The driver's services: fabric manager of hosts with NVSwitches, IMEX of nodes in a domain, persistence daemon.

They run only beside a loaded driver, so their steps come after its activation. CUDA does not start on an NVSwitch host
without a fabric manager of exactly the driver's version; without the persistence daemon the driver initializes each
GPU anew for every program. IMEX shares memory between nodes whose NVLinks go to common switches: which nodes these are
only the site can say, so its service starts where their file is.
"""

import re
from typing import Any, Dict, List, Optional

from ...base import versions
from ...catalog import driver_sources
from ...catalog import model as catalog
from ..model import Decision, Notice, Step

FABRICMANAGER = "nvidia-fabricmanager"
SUBNET_MANAGER = "nvlsm"
"""What NVLink 5 switches need besides; its version is not tied to the driver's."""
IMEX = "nvidia-imex"
IMEX_PACKAGE = re.compile(IMEX + r"(-\d+)?$")
PERSISTENCED = "nvidia-persistenced"


def decide(observed: Dict[str, Any], wanted: Dict[str, Any], choice: Dict[str, Any]) -> Decision:
    """Return the steps that bring and start the services that this host's driver needs."""
    driver = choice["driver"]
    if driver.get("source") in (None, "none"):
        return Decision()
    data = catalog.distro(observed["base"]["distro"])
    hold = bool(wanted.get("nvidia_driver_hold"))
    steps = fabricmanager(observed, driver, data, hold)
    steps += imex(observed, driver, data, hold)
    steps += persistenced(observed, driver, data, hold)
    choice = {step.id.partition(".")[2]: step.params["packages"][0]["name"] for step in steps}
    return Decision(choice, steps, warnings=without_imex(observed, driver, data))


def fabricmanager(observed: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any], hold: bool) -> List[Step]:
    """Return the step that brings the fabric manager to a host with NVSwitches."""
    switches = observed["base"]["nvswitches"]
    name = driver_sources.fabricmanager(data, driver["source"], driver["branch"]) if switches else None
    if name is None:
        return []
    if fits_driver(observed, driver, name):
        if observed["driver"].get("fabricmanager"):
            if not lost(observed, name, hold):
                return []
            reason = "an unattended upgrade would part the fabric manager from its driver"
        else:
            reason = "%d NVSwitches need the fabric manager, and it does not run" % len(switches)
    else:
        reason = "%d NVSwitches need a fabric manager of exactly the driver's version" % len(switches)
    needs = params(observed, driver, name, FABRICMANAGER, hold)
    if any(switch.get("kind") == "nvlink5" for switch in switches):
        needs["packages"].append({"name": SUBNET_MANAGER, "version": None})
    return [Step("nvidia_driver.fabricmanager", reason, params=needs)]


def imex(observed: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any], hold: bool) -> List[Step]:
    """Return the step that keeps IMEX at the driver's version where it is, and brings it to a node of a domain."""
    state = observed["driver"].get("imex") or {}
    there = [name for name in observed["packages"]["installed"] if IMEX_PACKAGE.match(name)]
    name = driver_sources.companion(data, driver["source"], "imex", driver["branch"])
    if name is None or not (there or state.get("member")):
        return []
    if not fits_driver(observed, driver, name):
        reason = "IMEX works with a driver of exactly its own version only"
        reason += "" if there else ", and this node belongs to a domain"
    elif state.get("member") and not state.get("running"):
        reason = "this node belongs to an IMEX domain, and IMEX does not run"
    elif lost(observed, name, hold):
        reason = "an unattended upgrade would part IMEX from its driver"
    else:
        return []
    needs = params(observed, driver, name, IMEX, hold)
    return [Step("nvidia_driver.imex", reason, params=dict(needs, start=bool(state.get("member"))))]


def without_imex(observed: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]) -> List[Notice]:
    """Say that a node of an IMEX domain has a driver whose source has no IMEX."""
    member = (observed["driver"].get("imex") or {}).get("member")
    if not member or driver_sources.companion(data, driver["source"], "imex", driver["branch"]):
        return []
    return [
        Notice(
            "no_imex",
            "this node belongs to an IMEX domain, and %s has no IMEX for branch %d"
            % (driver["source"], driver["branch"]),
            "choose cuda_repo as nvidia_driver_source, or install nvidia-imex of the driver's version yourself",
        )
    ]


def persistenced(observed: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any], hold: bool) -> List[Step]:
    """Return the step that runs the persistence daemon where the driver's source has it."""
    name = driver_sources.table(data, driver["source"], driver["kind"]).get("persistenced")
    if not name:
        return []
    name = name.format(branch=driver["branch"])
    reason = "the persistence daemon keeps the GPUs initialized, and it does not run"
    if fits_driver(observed, driver, name) and observed["driver"].get("persistenced"):
        if not lost(observed, name, hold):
            return []
        reason = "an unattended upgrade would part the persistence daemon from its driver"
    return [Step("nvidia_driver.persistenced", reason, params=params(observed, driver, name, PERSISTENCED, hold))]


def lost(observed: Dict[str, Any], name: str, hold: bool) -> bool:
    """Return whether a package lacks the hold that it should have."""
    return hold and name not in observed["packages"]["held"]


def fits_driver(observed: Dict[str, Any], driver: Dict[str, Any], name: str) -> bool:
    """Return whether a package of the driver's version is there beside the chosen driver."""
    version = observed["packages"]["installed"].get(name)
    disk = observed["driver"]["on_disk"]
    return bool(driver["satisfied"] and version and disk and versions.upstream(version) == disk["version"])


def params(observed: Dict[str, Any], driver: Dict[str, Any], name: str, service: str, hold: bool) -> Dict[str, Any]:
    """Return package, hold and service of a step."""
    version = wanted_version(driver, observed["driver"]["on_disk"])
    return {"packages": [{"name": name, "version": version}], "hold": [name] if hold else [], "service": service}


def wanted_version(driver: Dict[str, Any], disk: Optional[Dict[str, Any]]) -> Optional[str]:
    """Return the version to install: the driver's own where it is known before, else one of its branch."""
    if driver["satisfied"] and disk:
        return str(disk["version"]) + "-*"
    if driver["version"]:
        return str(driver["version"]) + "-*"
    return "%d.*" % driver["branch"]
