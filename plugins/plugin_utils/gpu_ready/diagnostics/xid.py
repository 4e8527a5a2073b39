"""Xids and SXids: what GPUs and NVSwitches report in the kernel's log, and how serious each report is.

Forms: krcReportXid of the open kernel modules 515 to 595 (``PCI:%04x:%02x:%02x``, then the MIG instance ``GPU-I:%02u``
and ``GPU-CI:%02u``), the old one without ``PCI:``, and NVSWITCH_PRINT_SXID (words Fatal, Non-fatal, Correctable).
"""

import re
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.check import xids
from ....module_utils.gpu_ready.check.kmsg import ACTION, LOADED
from ..catalog import messages as data
from .message_table import CRITICAL, ERROR, INFO, NOTHING, REBOOT, SEVERITIES, WATCH, fill, gpu_argument

PLACE = r"\((?:PCI:)?\s?(?P<address>[^\s)]*?)(?P<instance>(?: GPU-C?I:\d{1,6})*)\s?\):\s*(?P<number>\d{1,6})(?!\d)"
XID = re.compile(r"(?<![A-Za-z])Xid " + PLACE)
SXID = re.compile(r"(?:(?:nvidia-)?(?P<switch>nvswitch\d+):?\s+)?SXid " + PLACE)
ADDRESS = re.compile(r"(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2,4}:[0-9A-Fa-f]{2}(?:\.[0-7])?)$")
PROCESS = re.compile(r"pid='?(?P<pid>[^,']{1,40})'?,\s*name=(?P<name>[^,]{1,80})(?:,|$)")
PREVIOUS = re.compile(r"caused by previous Xid (\d{1,6})")
NVLINK = re.compile(r"\b(Non-?fatal|Fatal)\s+XC\d", re.IGNORECASE)
"""The severity that Xids 144 to 150 (NVLink 5) carry."""
SUBCODE = re.compile(
    r"\b(?P<unit>[A-Z][A-Z0-9_/]{1,40})\s+(?:Non-?fatal|Fatal)\s+XC\d\s+i\d+\s+Link\s+(?P<link>-?\d{1,4})\s+"
    r"\((?P<info>0x[0-9a-f]{1,8}),?\s+(?P<status>0x[0-9a-f]{1,8})\b",
    re.IGNORECASE,
)
"""The rest of such a line. The event's reason is in bits 20 to 25 of ``info``."""
FATAL_SXID = re.compile(r"^,\s*(?:Fatal\b|Severity 1\b)", re.IGNORECASE)
MILD_SXID = re.compile(r"^,\s*(?:Non-?fatal\b|Correctable\b|Severity 0\b)", re.IGNORECASE)
CLEANUP, RECOVERY = 45, 154
LAST_NAMED = 5
"""The last recovery action whose name the driver's sources show (595)."""
CLASSES: dict[str, dict[str, str]] = data.XID_CLASSES


class Xid(NamedTuple):
    """One message. ``address``: as ``0000:3b:00``, None where the text has none; ``text``: what follows the number.

    ``instance``: MIG instance, as ``GPU-I:05 GPU-CI:02``. ``switch``: the NVSwitch of an SXid, "" if it is not named.
    """

    number: int
    address: str | None
    text: str
    instance: str | None = None
    switch: str | None = None

    @property
    def label(self) -> str:
        """``Xid 94 of 0000:01:00 GPU-I:05``."""
        kind = "Xid" if self.switch is None else "SXid"
        place = [part for part in (self.switch, self.address, self.instance) if part]
        return "%s %d of %s" % (kind, self.number, " ".join(place) or "an unnamed device")


class Meaning(NamedTuple):
    """What a message means. ``follows``: the number of the Xid that it is a consequence of.

    ``action``: what the GPU needs (message_table.ACTIONS).
    """

    severity: str
    name: str
    remedy: str
    follows: int | None = None
    action: str = WATCH


FATAL_SWITCH = Meaning(
    CRITICAL,
    "fatal error of an NVSwitch",
    "reset all GPUs and NVSwitches of the board (in a virtual machine, restart it), or reboot; read "
    "/var/log/fabricmanager.log",
    action=REBOOT,
)


def normalized(address: str) -> str | None:
    """Return an address with a domain of four digits, None for what is none (``...``)."""
    match = ADDRESS.match(address)
    if match is None:
        return None
    rest = match.group(2).lower()
    return "%04x:%s" % (int(match.group(1), 16), rest) if match.group(1) else rest


def find(message: str) -> list[Xid]:
    """Return the Xids and SXids of one message of the log, in its order."""
    matches = sorted(list(XID.finditer(message)) + list(SXID.finditer(message)), key=lambda match: match.start())
    ends = [match.start() for match in matches[1:]] + [len(message)]
    found = []
    for match, end in zip(matches, ends):  # noqa: B905 - Python 3.6
        parts = match.groupdict()
        switch = None if match.re is XID else "nvidia-" + parts["switch"] if parts["switch"] else ""
        text = message[match.end() : end].rstrip()
        address, instance = normalized(parts["address"]), parts["instance"].strip() or None
        found.append(Xid(int(parts["number"]), address, text, instance, switch))
    return found


def parse_xids(text: str, after: float = -1.0) -> list[Xid]:
    """Parse the messages since the driver was last loaded, for each GPU only those after its last reset.

    ``after``: seconds since boot. Loading the driver initializes every GPU. The only trace of a reset is the message
    that the GPU requires no action any more.
    """
    found: list[Xid] = []
    for line in text.splitlines():
        if LOADED in line:
            found = []
        for one in find(line) if "Xid" in line else []:
            action = ACTION.search(one.text) if one.number == RECOVERY else None
            if action and int(action.group(1), 16) == 0:
                found = [other for other in found if other.address != one.address]
            elif xids.seconds(line) > after:
                found.append(one)
    return found


def meaning(number: int, address: str | None = None) -> Meaning:
    """Return what an Xid means by its number alone; the remedy names the GPU."""
    group, name = data.XIDS.get(number, ("unknown", "an Xid that the catalog does not know"))
    return of_row(CLASSES[group], name, address)


def of_row(row: dict[str, str], name: str, address: str | None) -> Meaning:
    """Return a row of the catalog as the meaning of a message of a GPU."""
    remedy = fill(row["remedy"], {"gpu": gpu_argument(address)})
    return Meaning(row["severity"], name, remedy, None, row["action"])


def judge(found: list[Xid]) -> list[tuple[Xid, Meaning]]:
    """Return what each message of a log means, its own text and the messages around it included."""
    last_action = {one.address: place for place, one in enumerate(found) if one.number == RECOVERY}
    judged: list[tuple[Xid, Meaning]] = []
    for place, one in enumerate(found):
        if one.switch is not None:
            means = judge_sxid(one, found)
        elif one.number == CLEANUP:
            means = judge_cleanup(one, found[:place])
        elif one.number == RECOVERY:
            means = judge_recovery(one, place == last_action[one.address])
        else:
            means = judge_nvlink(one)
        judged.append((one, means))
    return judged


def judge_nvlink(one: Xid) -> Meaning:
    """By the number, and by the subcode and the word that Xids of NVLink 5 carry."""
    means, word = meaning(one.number, one.address), NVLINK.search(one.text)
    if word is None:
        return means
    fatal, known = word.group(1).lower() == "fatal", subcode(one)
    if known:
        # A link that went down for good is an error even where NVIDIA asks for nothing at once.
        severity = ERROR if fatal and known.severity == INFO else known.severity
        name = "%s (%s)" % (means.name, known.name) if known.name else means.name
        return known._replace(severity=severity, name=name)
    if fatal:
        return means
    remedy = "nothing to do at once; look for an Xid 154 or 45 beside it, and check the link if it returns"
    return means._replace(severity=INFO, remedy=remedy, action=WATCH)


def subcode(one: Xid) -> Meaning | None:
    """Return what NVIDIA's table says of the unit, error status and reason in a line; None for one that is not in it.

    ``name``: the unit's meaning and the link, if known. A status is a set of bits: the most serious one counts.
    """
    found = SUBCODE.search(one.text)
    units: dict[str, list[Any]] = data.NVLINK["rows"].get(one.number, {})
    if found is None:
        return None
    names = found.group("unit").upper().split("/")
    rows = next((units[name] for name in names if name in units), [])
    status, reason = int(found.group("status"), 16), int(found.group("info"), 16) >> 20 & 0x3F
    fitting = [row for row in rows if row[1] is None or reason in row[1]]
    exact = [row for row in fitting if row[0] is None or status in row[0]]
    judged = []
    for _, _, action, inquiry in exact or [row for row in fitting if any(status & bit for bit in row[0])]:
        means = data.NVLINK["actions"][action]
        known = of_row(means, "", one.address)
        remedy = "; ".join(part for part in (known.remedy, data.NVLINK["inquiries"][inquiry]) if part)
        judged.append(known._replace(remedy=remedy))
    if not judged:
        return None
    meant = next((data.NVLINK["units"][name] for name in names if name in data.NVLINK["units"]), "")
    link = int(found.group("link"))
    name = ", ".join(part for part in (meant, "link %d" % link if link >= 0 else "") if part)
    return min(judged, key=lambda means: SEVERITIES.index(means.severity))._replace(name=name)


def judge_cleanup(one: Xid, before: list[Xid]) -> Meaning:
    """Xid 45 is the consequence of the Xid that it names, or of the one before it on the same GPU."""
    named = PREVIOUS.search(one.text)
    known = [other for other in before if other.address == one.address and other.switch is None]
    others = [other.number for other in known if other.number not in (CLEANUP, RECOVERY)]
    previous = int(named.group(1)) if named else others[-1] if others else None
    if previous is None:
        return meaning(one.number, one.address)
    cause = meaning(previous, one.address)
    severity = INFO if previous in others else cause.severity  # the log may have lost the first message
    name = "channel removed, a consequence of Xid %d (%s)" % (previous, cause.name)
    return Meaning(severity, name, "for Xid %d: %s" % (previous, cause.remedy), previous, cause.action)


def judge_recovery(one: Xid, last: bool) -> Meaning:
    """Xid 154 names the action that is required from now on; only the last one of a GPU counts."""
    means, action = meaning(one.number, one.address), ACTION.search(one.text)
    if action is None:
        return means
    name = 'the required recovery action has changed to "%s"' % action.group(2)
    for number, row in data.RECOVERY_ACTIONS.items():
        # By its name; by its number where the driver's name for it is not known (it writes "Unknown" for new ones).
        if row["name"].lower() == action.group(2).lower() or (
            number == int(action.group(1), 16) and number > LAST_NAMED
        ):
            means = of_row(row, name, one.address)
    if not last:
        remedy = "see the GPU's last Xid 154, which names the action that is required now"
        return Meaning(INFO, name, remedy)
    return means._replace(name=name)


def judge_sxid(one: Xid, found: list[Xid]) -> Meaning:
    """By the severity in the text: the numbers are the switch's own, explained in its documents.

    One error is reported in several lines, of which some have data only: all lines of a number and switch count.
    """
    texts = [
        other.text
        for other in found
        if (other.number, other.switch, other.address) == (one.number, one.switch, one.address)
    ]
    if any(FATAL_SXID.search(text) for text in texts):
        return FATAL_SWITCH
    if any(MILD_SXID.search(text) for text in texts):
        remedy = "nothing to do: NVIDIA's fabric manager guide says that it can be ignored"
        return Meaning(INFO, "non-fatal error of an NVSwitch", data.SXIDS.get(one.number, remedy), action=NOTHING)
    remedy = "look for the line of the same number that says Fatal or Non-fatal, and in /var/log/fabricmanager.log"
    return Meaning(ERROR, "error of an NVSwitch, whose severity this line does not say", remedy)


def serious_xids(found: list[Xid]) -> list[Xid]:
    """Return those that report a damaged or lost GPU, or a switch that it cannot do without."""
    return [one for one, means in judge(found) if means.severity == CRITICAL]
