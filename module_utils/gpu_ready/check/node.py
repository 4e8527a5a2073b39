"""What gpu-ready knows of the node: the last verification, and how the node differs from it now."""

import hashlib
import json
import os
import re
import time
from typing import Any, Dict, List, NamedTuple, Optional, Set

RECORD = "/var/lib/gpu-ready/verified.json"
MANIFEST = "/var/lib/gpu-ready/manifest.json"
LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib64/nvidia")
LIBRARY = re.compile(r"libnvidia-ml\.so\.(\d+\.\d+(?:\.\d+)?)$")
REBOOT_MARKS = ("/run/reboot-required", "/var/run/reboot-required")
"""Written by packages of Debian and Ubuntu that need a reboot."""


class Node(NamedTuple):
    """``verified``: the record is good, of this boot and driver, and nothing contradicts it. ``expected``: its GPUs.

    ``drift``: by part, whether it differs from the record, or from what the last run wrote. ``reboot``: by reason.
    ``ended``: the branch of the loaded driver is no longer maintained, None where no driver is loaded.
    """

    verified: bool
    verified_at: Optional[int]
    expected: Optional[int]
    loaded: str
    drift: Dict[str, bool]
    reboot: Dict[str, bool]
    branch: Optional[int]
    ended: Optional[bool]


def read_node(
    ends: Dict[str, str],
    uuids: Optional[List[str]],
    contradicted: bool,
    root: str = "",
    now: Optional[float] = None,
) -> Node:
    """Return the node now.

    ``contradicted``: health now (judge.py) contradicts the record. ``ends``: month in which the support of a branch
    ends, by branch. ``uuids``: of the GPUs, None without NVML.
    """
    record = read_object(root + RECORD)
    loaded = read_text(root + "/sys/module/nvidia/version")
    installed = library_versions(root)
    boot = read_text(root + "/proc/sys/kernel/random/boot_id")
    branch = int(loaded.split(".")[0]) if re.match(r"\d+\.", loaded) else None
    drift: Dict[str, bool] = {}
    if record:
        drift["driver"] = record.get("driver") != loaded
        known_versions = set(record.get("userspace") or [record.get("driver")])
        drift["userspace"] = bool(installed) and installed != known_versions
        known = {str(one) for one in record.get("gpus") or [] if one}
        if uuids is not None and known:
            drift["gpus"] = known != set(uuids)
    other = drift.get("driver", True) or drift.get("userspace", True)
    verified = bool(record.get("ok")) and record.get("boot_id") == boot and not (other or contradicted)
    written = read_object(root + MANIFEST).get("files")
    if isinstance(written, dict):
        drift["files"] = any(is_edited(root + path, entry) for path, entry in written.items())
    return Node(
        verified=verified,
        verified_at=parse_time(record.get("time")),
        expected=len(record.get("addresses") or record.get("gpus") or []) if record else None,
        loaded=loaded,
        drift=drift,
        reboot={
            "distribution": any(os.path.exists(root + path) for path in REBOOT_MARKS),
            "driver": bool(loaded and installed) and loaded not in installed,
        },
        branch=branch,
        ended=None if branch is None else has_ended(ends.get(str(branch)), now),
    )


def is_edited(path: str, entry: Any) -> bool:
    """Return True if a file is not as gpu-ready wrote it (the section "files" of base/manifest.py).

    Files of the distribution, of which gpu-ready changed a part, may be edited.
    """
    if not isinstance(entry, dict) or not entry.get("written") or "components" in entry or "sections" in entry:
        return False
    digests = [state[0] if isinstance(state, list) else None for state in entry["written"]]
    try:
        with open(path, "rb") as stream:
            found: Optional[str] = hashlib.sha256(stream.read()).hexdigest()
    except OSError:
        found = None
    return found not in digests


def read_object(path: str) -> Dict[str, Any]:
    """Return the object of a JSON file, {} where there is none."""
    try:
        with open(path, "rb") as stream:
            value = json.loads(stream.read(4 << 20).decode("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read(256).strip()
    except OSError:
        return ""


def library_versions(root: str = "") -> Set[str]:
    """Return versions of libnvidia-ml on disk."""
    found = set()
    for directory in LIBRARIES:
        try:
            names = os.listdir(root + directory)
        except OSError:
            continue
        found |= {match.group(1) for match in map(LIBRARY.match, names) if match}
    return found


def parse_time(text: Any) -> Optional[int]:
    """Return seconds since 1970 of a time as the record has it, in UTC."""
    match = re.match(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)", str(text))
    if match is None:
        return None
    import calendar

    return calendar.timegm(tuple(int(part) for part in match.groups()) + (0, 0, 0))


def has_ended(month: Optional[str], now: Optional[float] = None) -> bool:
    """Return True after the month in which the support of a branch ends ("2026-08").

    A branch without one is maintained.
    """
    return bool(month) and str(month)[:7] < time.strftime("%Y-%m", time.gmtime(now))
