"""NVIDIA's driver in the kernel's log: Xids, SXids, modules that do not load, GPUs that do not start.

The driver breaks its messages over several "NVRM:" lines. These are joined to one text, without other drivers' lines
in between. Known wordings: the open kernel modules 515 to 595, the proprietary ones from 304 on.
"""

import re
from re import Pattern
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.system import nvrm_version
from . import kernel_events, message_table, status_words
from .kernel_events import Event
from .kernel_lines import END, LogMessage, messages_of, streams
from .message_table import KERNEL, SEVERITIES, Explanation, Found
from .text_lines import Flat, chain

ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
NAMED = re.compile(r"(?:nvidia|nouveau|nova\S{0,10}|vfio-pci) (%s)" % ADDRESS)
FAULTING = re.compile(r"(?:Request device \[|IO_PAGE_FAULT device=)([0-9a-f:.]{5,12})")
UUID = re.compile(r"GPU at (?:PCI:)?([0-9A-Fa-f:.]+?):? (GPU-[0-9a-fA-F-]{8,40})")
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
FIRMWARE = re.compile(r"(?:firmware load for |/firmware/\S{0,80}?|failed to load )nvidia/(\d+\.[\d.]*\d)/")
MAGIC = re.compile(r"\bnvidia[\w-]*: version magic '[^']{1,200}' should be '(\S{1,100}) ")
RELEASE = re.compile(r"Linux version (\d\S{1,100}) \(")
LOADED = re.compile(
    r"loading NVIDIA (?:UNIX|Linux)|nvidia-modeset: Loading NVIDIA|Initialized nvidia-drm"
    r"|nvidia-uvm: Loaded the UVM driver",
    re.IGNORECASE,
)
"""What a loaded module prints. Its "Nvlink Core is being initialized" comes before it has searched for GPUs."""
SERVICE_STARTED = re.compile(
    r"Started .?(?:nvidia|Nvidia|NVIDIA)[^;]{0,60}|Successfully configured all the available NVSwitches"
    r"|nvidia-imex.{0,40}(?:READY|started)|Started \(\d+\)"
)
STARTED = re.compile(r"loading NVIDIA (?:UNIX|Linux)", re.IGNORECASE)
"""What the module says when its search for GPUs has found one that it drives."""
NOT_STARTED = re.compile(
    r"probe routine failed|probe of \S{1,40} failed|may have misconfigured your GPU|RmInitAdapter failed"
)
NEEDED = {
    "open_module_unsupported_gpu": nvrm_version.PROPRIETARY,
    "proprietary_module_unsupported_gpu": nvrm_version.OPEN,
}
AT_WORK = ("xid", "sxid", "api_mismatch")
NAMES_STATUS = ("rm_init_failed", "probe_failed", "nvlink_start_failed")
"""General rows, which the status in the text makes more special."""
BREAK = " ;; "
"""Separates NVIDIA's lines from the others."""
TURING = 0x1E00
"""PCI device ids from here on have a GPU System Processor (TU102 begins at 1e02, the last Volta is 1df6)."""
BROKEN = re.compile("NVRM|nvidia|Lockdown|Xid")
"""A log without any of these words has none that is broken."""
WITHOUT_GSP, GSP_UNAVAILABLE = "open_module_unsupported_gpu", "gsp_not_available"


class Log(NamedTuple):
    """A parsed kernel log: its messages, NVIDIA's messages and all others as text, and the events found in them."""

    messages: list[LogMessage]
    nvidia: Flat
    others: Flat
    whole: Flat
    events: list[Event]
    rows: list[Found]


def parse(text: str) -> Log:
    """Take a log apart; where an Xid is not found, its words may have been broken at the edge of a terminal."""
    found = messages_of(text)
    log = parsed(found, " ")
    if log.events or not BROKEN.search(text) or ("Xid" not in text and log.rows):
        return log
    glued = parsed(found, "")
    return glued if glued.events or not log.rows else log


def parsed(found: list[LogMessage], separator: str) -> Log:
    nvidia, others = streams(found, separator)
    events = kernel_events.events_of(found, separator)
    whole = chain(nvidia, BREAK, others)
    return Log(found, nvidia, others, whole, events, message_table.find(KERNEL, whole))


def problems(text: str) -> list[Explanation]:
    """Return problems in a kernel log.

    The serious ones first, causes before consequences; each Xid and SXid separately.
    """
    return explanations(parse(text))


def explanations(log: Log) -> list[Explanation]:
    """List the problems of a log by severity, and within one severity in the order of the log."""
    rows = [with_status(message_table.explanation(row, address_of(row, log)), log) for row in complaints(log)]
    found = rows + kernel_events.explanations(log.events)
    place = {entry.code: number for number, entry in enumerate(message_table.table(KERNEL))}
    found = [one._replace(message=(one.message or "").split(END)[0]) for one in found]
    return sorted(found, key=lambda one: (SEVERITIES.index(one.severity), place[one.code]))


def with_status(problem: Explanation, log: Log) -> Explanation:
    """Return a GPU's failed start with the driver's status, where the log has one that says more."""
    if problem.code not in NAMES_STATUS:
        return problem
    words = status_words.find(log.nvidia.text, "kernel")
    word = next((word for word in words if word.vocabulary == "nv_status"), None)
    return problem._replace(cause="%s: %s (%s)" % (problem.cause, word.means, word.shown)) if word else problem


def explain_start(text: str) -> Explanation | None:
    """Return why the module or a GPU did not start when the module was loaded last; None if the log has no reason.

    Reports of working GPUs and programs (Xids, programs with other libraries) are no reason.
    """
    place = text.rfind("nvidia-nvlink: Nvlink Core is being initialized")
    return next((found for found in problems(text[max(0, place) :]) if found.code not in AT_WORK), None)


def complaints(log: Log) -> list[Found]:
    """Return the rows of the table that a log matches.

    Not a problem: a signature of unknown origin if the module was loaded, as it is without Secure Boot; unassigned
    regions if all GPUs started; a lost GPU or hung GSP that an Xid reports.
    """
    flat = log.whole.text
    numbers = {event.first.number for event in log.events if event.is_xid}
    none = {
        "module_signature_unknown": LOADED.search(flat) is not None,
        "bar_invalid": STARTED.search(flat) is not None and NOT_STARTED.search(flat) is None,
        "fallen_off_bus": 79 in numbers,
        "gsp_hung": bool(numbers & {119, 120}),
        "iommu_fault": not faults_of_gpus(log),
    }
    found = [row for row in log.rows if not none.get(row.entry.code)]
    if log.events:
        found = [row for row in found if not row.entry.consequence]
    if len(found) > 1:
        found = [row for row in found if row.entry.code != "module_left_again"]
    return [with_gsp(row, log) for row in found]


def faults_of_gpus(log: Log) -> bool:
    """Return True if the IOMMU names NVIDIA's driver, or a device that the log shows as one of NVIDIA."""
    named = FAULTING.findall(log.others.text)
    return not named or any(address.endswith(place) for place in named for address in addresses(log))


def addresses(log: Log) -> set[str]:
    """Return the addresses of NVIDIA's devices in a log."""
    return set(re.findall(ADDRESS, log.nvidia.text)) | set(NAMED.findall(log.others.text))


def with_gsp(row: Found, log: Log) -> Found:
    """Return the message that a GPU has no GSP, of a GPU that has one.

    It is out of reach, whatever the module's flavour.
    """
    identity = identity_of(row, log) if row.entry.code == WITHOUT_GSP else None
    if identity is None or int(identity.split(":")[1], 16) < TURING:
        return row
    return row._replace(entry=next(one for one in message_table.table(KERNEL) if one.code == GSP_UNAVAILABLE))


def address_of(row: Found, log: Log) -> str | None:
    """Return the address of the GPU that a message is about.

    The only one of the log, or the one nearest to the message.
    """
    known = addresses(log)
    return known.pop() if len(known) == 1 else near(ADDRESS, log.whole.text, row.position)


def identity_of(row: Found, log: Log) -> str | None:
    """Return the PCI id of the GPU that a message is about."""
    known = set(IDENTITY.findall(log.whole.text))
    return known.pop() if len(known) == 1 else near(IDENTITY.pattern, log.whole.text, row.position)


def near(pattern: str, text: str, position: int) -> str | None:
    """Return the match nearest to a position: the last one before it, else the first one after it."""
    before = re.findall(pattern, text[max(0, position - 100) : position])
    behind = re.findall(pattern, text[position : position + 80])
    return str(before[-1]) if before else str(behind[0]) if behind else None


def read(text: str) -> dict[str, Any]:
    """Parse a kernel log: its condition (the root cause), events, versions, addresses and problems."""
    log = parse(text)
    flat = log.whole.text
    found = explanations(log)
    rows = {row.entry.code: row for row in complaints(log)}
    root = rows.get(found[0].code) if found else None
    names = {entry.code: entry.names for entry in message_table.table(KERNEL)}
    uuids = dict(UUID.findall(flat))
    answer: dict[str, Any] = {
        "condition": names[found[0].code] if found else "loaded" if LOADED.search(flat) else "none",
        "xids": kernel_events.xid_rows(log.events),
        "sxids": kernel_events.sxid_rows(log.events),
        "pci": address_of(root, log) if root else None,
        "device_id": identity_of(root, log) if root else None,
        "gpu_uuid": next(iter(uuids.values())) if len(uuids) == 1 else None,
        "gpu_uuids": uuids,
        "process_names": kernel_events.process_names(log.messages),
        "pcis": list(dict.fromkeys(BAR.findall(flat))),
        "devices": None,
        "needs_flavour": NEEDED.get(root.entry.code) if root else None,
        "kernel": first(MAGIC, flat) or first(RELEASE, flat),
    }
    devices = first(DEVICES, flat)
    answer["devices"] = int(devices[:6]) if devices else None
    started = SERVICE_STARTED.search(flat)
    answer["service_started"] = log.whole.line(started.start()) if started else None
    answer.update(versions(log.nvidia.text, log.others.text), problems=found)
    return answer


def first(pattern: Pattern[str], text: str) -> str | None:
    """Return the first group of the first match."""
    match = pattern.search(text)
    return match.group(1) if match else None


def versions(nvidia: str, others: str) -> dict[str, Any]:
    """Return the versions that a log names, and of what."""
    start = nvidia.rfind("loading NVIDIA")
    found = nvrm_version.read_proc_version(nvidia[start:]) if start >= 0 else None
    answer: dict[str, Any] = {
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
