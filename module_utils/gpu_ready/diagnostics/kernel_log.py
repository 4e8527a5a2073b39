"""NVIDIA's driver in the kernel's log: Xids, SXids, modules that do not load, GPUs that do not start.

The driver breaks its messages over several "NVRM:" lines. These are joined to one text, without other drivers' lines
in between. Accepted heads of lines: none, dmesg's time (with thread or CPU), `dmesg -T`, `-x`, journald, syslog, a host
name, a quote mark.
"""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Pattern, Tuple

from ..system import nvrm_version
from . import message_table, xid
from .message_table import KERNEL, Explanation, Found

ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
NVRM = re.compile(r"\bNVRM:[ \t]*")
HEAD = re.compile(
    r"^[\s>|*+-]*(?:<\d+>)?(?:\w+\s*:\w+\s*:\s*)?"
    r"(?:.{0,120}?\bkernel:\s*)?(?:\[[^\]]{1,60}\]\s*)*"
)
STARTS = re.compile(
    r"\[\s*\d+\.\d+\]|\bkernel:|^\S*\s*\[\w{3} \w{3} [ \d]\d \d|^\s*<\d+>|^[> ]*[\w-]+(?: [0-9a-f:.]+)?: "
)
REPEATED = re.compile(r"message repeated (\d+) times: \[")
XID = re.compile(r"(?<![A-Za-z])Xid \((?:PCI:)?([0-9A-Fa-f:.]+)\):\s*(\d+)")
SXID = re.compile(r"(?:(nvidia-nvswitch\d+):?\s+)?SXid \((?:PCI:)?([0-9A-Fa-f:.]+)\):\s*(\d+)")
PROCESS = re.compile(r"Xid \([^)]{1,40}\):\s*\d+,\s*pid='?[^,']{1,40}'?,\s*name=([^,]{1,80}),")
UUID = re.compile(r"GPU at (?:PCI:)?[0-9A-Fa-f:.]+:? (GPU-[0-9a-fA-F-]{8,40})")
LEGACY = re.compile(
    r"The NVIDIA (.{1,80}?) GPU installed in this system is supported through the NVIDIA (?:legacy )?(\S+?)\.? Legacy "
    r"drivers"
    r"(?:.{0,160}?The (\d+\.[\d.]*\d) NVIDIA driver will ignore)?",
    re.IGNORECASE,
)
UNSUPPORTED = re.compile(r"not supported by the (?:NVIDIA )?(\d+\.[\d.]*\d)\b", re.IGNORECASE)
MISMATCH = re.compile(
    r"API mismatch: the client (?:'(.{1,64}?)' \(pid \d+\) )?has the version (\d+\.[\d.]*\d),? but "
    r"this (?:NVIDIA )?kernel module has the version (\d+\.[\d.]*\d)",
    re.IGNORECASE,
)
BAR = re.compile(r"BAR\d is .{1,40}?\((?:PCI:)?(%s)\)" % ADDRESS)
DEVICES = re.compile(r"probe routine was not called for (\d+) device")
IDENTITY = re.compile(r"\(PCI ID: ?([0-9A-Fa-f]{4}:[0-9A-Fa-f]{4})\)")
MODESET = re.compile(r"Loading NVIDIA (?:UNIX )?(Open )?Kernel Mode Setting Driver.{0,40}?\s(\d{2,3}\.[\d.]*\d)\b")
FIRMWARE = re.compile(r"firmware load for nvidia/(\d+\.[\d.]*\d)/")
LOADED = re.compile(
    r"loading NVIDIA (?:UNIX|Linux)|nvidia-modeset: Loading NVIDIA|Initialized nvidia-drm"
    r"|nvidia-nvlink: Nvlink Core is being|nvidia-uvm: Loaded the UVM driver",
    re.IGNORECASE,
)
STARTED = re.compile(r"loading NVIDIA (?:UNIX|Linux)", re.IGNORECASE)
"""What the module says when its search for GPUs has found one that it drives."""
NOT_STARTED = re.compile(r"probe routine failed|probe of \S{1,40} failed|may have misconfigured your GPU")
NEEDED = {
    "open_module_unsupported_gpu": nvrm_version.PROPRIETARY,
    "proprietary_module_unsupported_gpu": nvrm_version.OPEN,
}
AT_WORK = ("xid", "sxid", "api_mismatch")
BREAK = " ;; "
"""Separates NVIDIA's lines from the others."""


class Event(NamedTuple):
    """An Xid or SXid that was reported ``count`` times; ``device`` is the switch that reported it."""

    number: int
    pci: str
    times: int
    device: Optional[str] = None


def flow(text: str) -> Tuple[str, str]:
    """The text of NVIDIA's lines and that of all others, each joined to one line."""
    streams: Tuple[List[str], List[str]] = ([], [])
    current = streams[1]
    for line in message_table.plain(text).splitlines():
        parts = NVRM.split(line)
        if len(parts) > 1:
            current = streams[0]
            content = " ".join(parts[1:])
        else:
            # A line without a head continues the one before it: a terminal or a mailer broke it.
            if STARTS.search(line) or "SXid (" in line or not line.strip(" \t>"):
                current = streams[1]
            content = line[HEAD.match(line).end() :] if STARTS.search(line) else line.lstrip("> ")  # type: ignore[union-attr]
        repeated = REPEATED.search(line)
        content = content.rstrip("] ") if repeated else content
        current.extend([content] * (min(int(repeated.group(1)), 1000) if repeated else 1))
    return " ".join(" ".join(streams[0]).split()), " ".join(" ".join(streams[1]).split())


def xids(text: str) -> List[Event]:
    """The Xids of a joined text, one for each number and GPU, the most frequent first."""
    counts: Dict[Tuple[int, str], int] = {}
    for match in XID.finditer(text):
        key = (int(match.group(2)[:6]), match.group(1))
        counts[key] = counts.get(key, 0) + 1
    found = [Event(number, pci, count) for (number, pci), count in counts.items()]
    return sorted(found, key=lambda event: -event.times)


def sxids(text: str) -> List[Event]:
    """The SXids of a joined text, one for each number and switch, by switch."""
    counts: Dict[Tuple[int, str, Optional[str]], int] = {}
    for match in SXID.finditer(text):
        key = (int(match.group(3)[:6]), match.group(2), match.group(1))
        counts[key] = counts.get(key, 0) + 1
    found = [Event(number, pci, count, device) for (number, pci, device), count in counts.items()]
    return sorted(found, key=lambda event: (len(event.device or ""), event.device or "", event.pci))


def near(pattern: str, text: str, start: int, end: int) -> Optional[str]:
    """The match nearest to a position: the last one before it, else the first one after it."""
    before = re.findall(pattern, text[max(0, start - 100) : start])
    behind = re.findall(pattern, text[start : end + 80])
    return str(before[-1]) if before else str(behind[0]) if behind else None


def problems(text: str) -> List[Explanation]:
    """Problems in a kernel log, the root cause first; each Xid and SXid number separately."""
    nvidia, others = flow(text)
    found: List[Explanation] = []
    for row in complaints(nvidia + BREAK + others):
        if row.entry.code == "xid":
            found += [explain_xid(event) for event in xids(nvidia) + xids(others)]
        elif row.entry.code == "sxid":
            found += [explain_sxid(row, event) for event in sxids(nvidia + BREAK + others)]
        else:
            found.append(
                message_table.explanation(row, near(ADDRESS, nvidia + BREAK + others, row.position, row.position))
            )
    return found


def explain_start(text: str) -> Optional[Explanation]:
    """Why the module or a GPU did not start when the module was loaded last; None if the log has no reason.

    Reports of working GPUs and programs (Xids, programs with other libraries) are no reason.
    """
    place = text.rfind("nvidia-nvlink: Nvlink Core is being initialized")
    return next((found for found in problems(text[max(0, place) :]) if found.code not in AT_WORK), None)


def complaints(flat: str) -> List[Found]:
    """The rows of the table that a log matches.

    Not a problem: "Xid (" without a number; a signature of unknown origin if the module was loaded, as it is without
    Secure Boot; unassigned regions if all GPUs started.
    """
    started = STARTED.search(flat) is not None and NOT_STARTED.search(flat) is None
    none = {
        "xid": XID.search(flat) is None,
        "module_signature_unknown": LOADED.search(flat) is not None,
        "bar_invalid": started,
    }
    return [row for row in message_table.find(KERNEL, flat) if not none.get(row.entry.code)]


def explain_xid(event: Event) -> Explanation:
    meaning = xid.meaning(event.number)
    times = "" if event.times == 1 else ", %d times" % event.times
    cause = "%s: Xid %d of GPU %s%s" % (meaning.name, event.number, event.pci, times)
    return Explanation("xid", cause, meaning.remedy, event.pci, "Xid (%s): %d" % (event.pci, event.number))


def explain_sxid(row: Found, event: Event) -> Explanation:
    """The numbers are the switch's own, explained in its documents."""
    cause = "%s: SXid %d of %s" % (row.entry.cause, event.number, event.device or "a switch")
    return Explanation("sxid", cause, row.entry.remedy, event.pci, "SXid (%s): %d" % (event.pci, event.number))


def read(text: str) -> Dict[str, Any]:
    """Parse a kernel log: its condition (the root cause), events, versions and addresses."""
    nvidia, others = flow(text)
    flat = nvidia + BREAK + others
    found = complaints(flat)
    root = found[0] if found else None
    loaded = LOADED.search(flat)
    condition = root.entry.names if root else "loaded" if loaded else "none"
    answer: Dict[str, Any] = {
        "condition": condition,
        "xids": [{"xid": event.number, "pci": event.pci, "count": event.times} for event in xids(flat)],
        "sxids": [{"sxid": event.number, "device": event.device, "pci": event.pci} for event in sxids(flat)],
        "pci": near(ADDRESS, flat, root.position, root.position) if root else None,
        "device_id": near(IDENTITY.pattern, flat, root.position, root.position) if root else None,
        "gpu_uuid": first(UUID, flat),
        "process_names": names(flat),
        "pcis": list(dict.fromkeys(BAR.findall(flat))),
        "devices": None,
        "needs_flavour": NEEDED.get(root.entry.code) if root else None,
    }
    devices = first(DEVICES, flat)
    answer["devices"] = int(devices[:6]) if devices else None
    answer.update(versions(nvidia, others))
    return answer


def first(pattern: Pattern[str], text: str) -> Optional[str]:
    """The first group of the first match."""
    match = pattern.search(text)
    return match.group(1) if match else None


def names(text: str) -> List[str]:
    """The programs that Xids name."""
    found = [name.strip().strip("'\"") for name in PROCESS.findall(text)]
    return list(dict.fromkeys(name for name in found if name and name != "<unknown>"))


def versions(nvidia: str, others: str) -> Dict[str, Any]:
    """The versions that a log names, and of what."""
    start = nvidia.rfind("loading NVIDIA")
    found = nvrm_version.read_proc_version(nvidia[start:]) if start >= 0 else None
    answer: Dict[str, Any] = {
        "driver_version": found.version if found else None,
        "flavour": found.flavour if found else None,
        "arch": found.arch if found else None,
    }
    modeset = MODESET.search(others)
    if found is None and modeset:
        answer.update(driver_version=modeset.group(2), flavour=nvrm_version.OPEN if modeset.group(1) else None)
    legacy = LEGACY.search(nvidia)
    if legacy:
        answer.update(gpu_name=legacy.group(1), legacy_branch=legacy.group(2))
    mismatch = MISMATCH.search(nvidia)
    if mismatch:
        answer.update(client_version=mismatch.group(2), module_version=mismatch.group(3))
        answer["client_process"] = mismatch.group(1)
    reported = (
        (legacy.group(3) if legacy else None) or first(UNSUPPORTED, nvidia) or first(FIRMWARE, nvidia + BREAK + others)
    )
    answer["driver_version"] = reported or answer["driver_version"]
    return answer
