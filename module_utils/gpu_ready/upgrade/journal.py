"""A driver upgrade of one host: what is due, the journal on its disk, and the way back that it records.

The journal says what somebody needs who finds a host in the middle: the driver from before, the phase, and since when
the host serves nobody. It decides nothing alone: what is installed and loaded is observed.
"""

from typing import Any, Dict, List, Optional

from ..base import manifest
from ..base.host import Host
from ..base.json_file import read_json_object, write_json_file

PATH = manifest.DIRECTORY + "/upgrade.json"
SCHEMA = 1
STAGED, DRAINING, SWITCHING, VERIFIED, DONE = "staged", "draining", "switching", "verified", "done"
GOING_BACK, BACK, STUCK, UNTOUCHED = "going_back", "back", "stuck", "untouched"
PHASES = (STAGED, DRAINING, SWITCHING, VERIFIED, DONE, GOING_BACK, BACK, STUCK, UNTOUCHED)
CLOSED = (STAGED, DONE, UNTOUCHED)
"""Phases in which a host is in service: in all others somebody has to go on with it."""
ENDS = (DONE, BACK, UNTOUCHED)
"""Phases that end the time in which a host serves nobody, or in which its way back has ended well."""
FRESH = 24 * 3600
"""Seconds for which what was fetched beforehand is taken for what the sources have."""
DRIVER_ACTIONS = ("install", "runfile", "remove_packages", "activate")
"""Steps of the role nvidia_driver that exchange the driver; others tidy up and wait for site.yml."""


# ---- the journal ----------------------------------------------------------------------------------------------------


def read(host: Host, path: str = PATH) -> Optional[Dict[str, Any]]:
    """Return the journal, None where there is none that can be read."""
    return read_json_object(host, path, SCHEMA)


def is_open(host: Host, path: str = PATH) -> bool:
    """True while an upgrade is not done: packages that were downloaded for it and its rollback are still needed."""
    journal = read(host, path)
    return journal is not None and journal["phase"] != DONE


def write(journal: Dict[str, Any], path: str = PATH) -> None:
    """Write the journal."""
    write_json_file(path, journal)


def advance(
    journal: Optional[Dict[str, Any]],
    phase: str,
    now: int,
    driver: Optional[Dict[str, Any]],
    target: str,
    reason: str,
    rollout: int = 0,
) -> Dict[str, Any]:
    """Return the journal after a phase began. ``driver``: the one that is installed, ``now``: seconds since 1970.

    The driver to go back to is noted where a new upgrade begins, and kept by a run that goes on with an open one. The
    clock starts with the drain; a run that goes on does not start it again. ``touched`` says whether the driver may be
    half exchanged: a drain that a run goes on with keeps what the run before had come to. ``rollout``: the one that
    this belongs to (upgrade_fleet.number); 0 leaves what is noted.
    """
    found = dict(journal or {"schema": SCHEMA, "from": None, "since": None, "seconds": None})
    begins = found.get("phase") in (None,) + CLOSED + (BACK,)
    touched = phase not in CLOSED
    if phase == DRAINING:
        touched = found.get("phase") not in (None,) + CLOSED and found.get("touched", True)
    if phase in (STAGED, DRAINING) and begins and driver and driver != found["from"]:
        found["from"] = driver
    if phase == DRAINING and (begins or not found["since"]):
        found.update(since=now, seconds=None)
    if phase == GOING_BACK and found["seconds"] is not None:
        # It was in service again, and the second proof is red: the seconds of both times count.
        found.update(since=now - found["seconds"], seconds=None)
    if phase in ENDS and found["since"] and found["seconds"] is None:
        found["seconds"] = max(now - int(found["since"]), 0)
    found.update(phase=phase, time=now, reason=reason, touched=touched)
    if target:
        found["to"] = target
    if rollout:
        found["rollout"] = rollout
    return found


# ---- what is due ----------------------------------------------------------------------------------------------------


def status(observed: Dict[str, Any], decided: Any, wanted: Dict[str, Any], now: int = 0) -> Dict[str, Any]:
    """Return what an upgrade would do with a host: ``decided`` is its plan, ``wanted`` the public variables.

    ``now``: seconds since 1970 by the host's clock.
    """
    journal = observed.get("upgrade") or {}
    chosen = decided.choice.get("driver") or {}
    there = installed(observed)
    steps = [step for step in decided.steps if step.role == "nvidia_driver" and step.action in DRIVER_ACTIONS]
    opened = bool(journal) and journal["phase"] not in CLOSED
    way, why = activation(observed, decided)
    refusals = ["%s. Remedy: %s." % (one.message, one.remedy) for one in decided.refusals]
    if not decided.gpu_host and opened:
        state = "refused"
        refusals = [LOST % decided.summary]
    elif not decided.gpu_host and lost(observed):
        state = "refused"
        refusals = [GONE % (len(lost(observed)), ", ".join(lost(observed)), FIND_LOST)]
    elif not decided.gpu_host:
        state = "current"
    elif refusals:
        state = "refused"
    elif not steps and not opened:
        state = "current"
    elif there is None and not opened:
        state = "refused"
        refusals = ["There is no driver to upgrade on this host. Remedy: run site.yml for it, which installs one."]
    elif way == "reboot" and not wanted.get("gpu_ready_reboot_ok"):
        state = "refused"
        refusals = ["The driver comes into use with a reboot only: %s. Remedy: %s." % (why, ALLOW)]
    else:
        state = "due"
    target = chosen.get("version") or (str(chosen["branch"]) if chosen.get("branch") else None)
    recorded = journal.get("from") or {}
    old = recorded if opened and recorded.get("version") != chosen.get("version") else there
    return {
        "state": state,
        "opened": opened,
        "touched": opened and bool(journal.get("touched", True)),
        "staged": fetched(journal, target, now)
        or (opened and journal["phase"] != BACK and journal.get("to") == target),
        "from": (old or {}).get("version"),
        "to": target,
        "way": way if steps else "none",
        "why": why if way == "reboot" or why.startswith("unless") else decided.summary,
        "refusal": "\n".join(refusals),
        "installed": there,
        "journal": journal or None,
        "back": back(journal),
        "installer": None,
    }


def lost(observed: Dict[str, Any]) -> List[str]:
    """Return the addresses of the GPUs that the last verification saw, where none is on the PCI bus any longer."""
    there = list((observed.get("verified") or {}).get("addresses") or [])
    return there if there and not observed["base"]["gpus"] else []


FIND_LOST = "see `lspci -d 10de:` and the kernel's log; where they were taken out, run playbooks/uninstall.yml"
GONE = (
    "The GPUs that the last verification saw (%d: %s) are gone, none is on the PCI bus now. Remedy: %s, or leave the "
    "host out with gpu_upgrade_exclude or gpu_upgrade_leave_out."
)
LOST = (
    "An upgrade of this host did not come to its end, and there is nothing left to serve (%s). Remedy: see with "
    "`lspci -d 10de:` and a reboot that its GPUs are back on the PCI bus, then run the same command again."
)
ALLOW = "set gpu_ready_reboot_ok to true, or leave the host out with gpu_upgrade_exclude or gpu_upgrade_leave_out"


def fetched(journal: Dict[str, Any], target: Optional[str], now: int) -> bool:
    """Return whether a run fetched all for this driver so lately that nobody has to ask the sources again.

    A host that came back to its old driver is asked for anew: what was fetched may be its trouble.
    """
    noted = journal.get("fetched") or {}
    young = 0 <= now - int(noted.get("time") or 0) < FRESH
    return bool(noted) and journal["phase"] != BACK and noted.get("to") == target and young


def note_fetched(journal: Dict[str, Any], target: str, now: int, alike: Dict[str, str]) -> Dict[str, Any]:
    """Return the journal after all was fetched; ``alike``: what its modules are built from (upgrade_modules.alike)."""
    return dict(journal, fetched={"to": target, "time": now, "alike": alike})


def installed(observed: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the driver that is installed, as somebody would have to ask for it again; None where none is whole."""
    state = observed.get("driver") or {}
    disk = state.get("on_disk")
    if not disk or not disk.get("version") or state.get("origin") in (None, "unknown", "mixed"):
        return None
    built = [row for row in state.get("dkms") or [] if row["version"] == disk["version"]]
    return {
        "version": disk["version"],
        "branch": disk["version"].split(".")[0],
        "flavour": disk["flavour"],
        "source": state["origin"],
        "kernel_modules": "dkms" if built else "precompiled",
    }


def back(journal: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """Return the public variables that lead back to the recorded driver, None where none is recorded."""
    old = (journal or {}).get("from")
    if not old:
        return None
    return {
        "nvidia_driver_source": old["source"],
        "nvidia_driver_version": old["version"],
        "nvidia_driver_branch": old["branch"],
        "nvidia_driver_flavour": old["flavour"],
        "nvidia_driver_kernel_modules": old["kernel_modules"] if old["source"] != "runfile" else "auto",
        "nvidia_driver_runfile": "",  # the operator's is that of the other driver
        "nvidia_driver_runfile_sha256": "",
    }


def activation(observed: Dict[str, Any], decided: Any) -> "tuple[str, str]":
    """Return how the new driver comes into use ("live", "reboot" or "none") and why.

    Programs that hold the GPUs now are no reason for a reboot yet: the drain comes first, and the host is asked again
    after it.
    """
    step = next((step for step in decided.steps if step.id == "nvidia_driver.activate"), None)
    if step is None:
        return "none", ""
    clients = observed["driver"].get("clients") or []
    if step.params["action"] == "reboot" and step.params["fallback"] == "reboot" and clients:
        names = sorted({client["name"] for client in clients})
        return "live", "unless %s still hold the GPUs after the drain" % ", ".join(names)
    return ("reboot" if step.params["action"] == "reboot" else "live"), step.why


# ---- packages to have beforehand ------------------------------------------------------------------------------------


def downloads(todo: Dict[str, Any]) -> Dict[str, Any]:
    """Return what the steps of a plan will ask for: packages, pins, streams, what may go, and NVIDIA's installer."""
    install = todo.get("nvidia_driver.install") or {}
    names: List[Any] = list(install.get("packages") or [])
    for step, key in (
        ("nvidia_driver.detect", "packages"),
        ("nvidia_driver.fabricmanager", "packages"),
        ("nvidia_driver.imex", "packages"),
        ("nvidia_driver.persistenced", "packages"),
        ("nvidia_driver.hold", "tools"),
    ):
        names += (todo.get(step) or {}).get(key) or []
    return {
        "names": names,
        "pins": list(install.get("pin_packages") or []),
        "pins_gone": list(install.get("pin_remove") or []),
        "streams": dict(install.get("streams") or {}),
        "remove": list(install.get("remove") or []),
        "allowed": list(install.get("allow_remove") or []),
        "gone": list((todo.get("nvidia_driver.remove_packages") or {}).get("packages") or []),
        "runfile": todo.get("nvidia_driver.runfile"),
    }
