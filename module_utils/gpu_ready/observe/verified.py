"""The record of the last verification, and whether it still proves the state of the host."""

import json
from typing import Any, Dict, Optional, Tuple

from .. import manifest
from ..host import Host

PATH = manifest.FOLDER + "/verified.json"
SCHEMA = 1


def look(host: Host) -> Dict[str, Any]:
    """Return the part "verified": the record, None where there is none that can be read (then it is made anew)."""
    try:
        record = json.loads(host.read(PATH) or "null")
    except ValueError:
        record = None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        record = None
    return {"verified": record}


def matches(record: Optional[Dict[str, Any]], observed: Dict[str, Any], digest: str) -> Tuple[bool, str]:
    """Return whether a record proves the present state, and why not."""
    if not record:
        return False, "this host was never verified"
    if not record.get("ok"):
        return False, "the last verification failed: %s" % ("; ".join(record.get("reasons") or []) or "no reason noted")
    if record.get("boot_id") != observed["base"]["boot_id"]:
        return False, "the host was rebooted since its last verification"
    if record.get("digest") != digest:
        return False, "the wanted state changed since the last verification"
    state = observed.get("driver") or {}
    loaded = (state.get("loaded") or {}).get("version")
    if record.get("driver") != loaded:
        return False, "driver %s is loaded, %s was verified" % (loaded or "none", record.get("driver"))
    userspace = list(state.get("userspace") or [])
    if userspace and record.get("userspace") != userspace:
        text = ", ".join(record.get("userspace") or [])
        return False, "the driver's libraries are of %s, %s was verified" % (", ".join(userspace), text)
    addresses = sorted(gpu["address"] for gpu in observed["base"]["gpus"])
    if sorted(record.get("addresses") or []) != addresses:
        return False, "the GPUs on the PCI bus changed since the last verification"
    return True, "verified at %s" % record.get("time")
