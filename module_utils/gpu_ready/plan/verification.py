"""Whether the last verification still proves the present state of a host."""

from typing import Any, Dict, Optional


def lacking(observed: Dict[str, Any], digest: str) -> Optional[str]:
    """Return why a new verification is due, None where the record proves this boot, these versions and this wish."""
    record = observed.get("verified")
    if not record:
        return "this host was never verified"
    if not record.get("ok"):
        return "the last verification failed: %s" % ("; ".join(record.get("reasons") or []) or "no reason noted")
    if record.get("boot_id") != observed["base"]["boot_id"]:
        return "the host was rebooted since its last verification"
    if record.get("digest") != digest:
        return "the wanted state changed since the last verification"
    state = observed["driver"]
    loaded = (state["loaded"] or {}).get("version")
    if record.get("driver") != loaded:
        return "driver %s is loaded, %s was verified" % (loaded or "none", record.get("driver"))
    userspace = list(state["userspace"])
    if userspace and record.get("userspace") != userspace:
        verified = ", ".join(record.get("userspace") or [])
        return "the driver's libraries are of %s, %s was verified" % (", ".join(userspace), verified)
    addresses = sorted(gpu["address"] for gpu in observed["base"]["gpus"])
    if sorted(record.get("addresses") or []) != addresses:
        return "the GPUs on the PCI bus changed since the last verification"
    return None
