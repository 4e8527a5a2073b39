"""Xids and SXids: what GPUs and NVSwitches report in the kernel's log, and how serious each report is.

Forms: krcReportXid of the open kernel modules 515 to 595 (``PCI:%04x:%02x:%02x``, then the MIG instance ``GPU-I:%02u``
and ``GPU-CI:%02u``), the old one without ``PCI:``, and NVSWITCH_PRINT_SXID (words Fatal, Non-fatal, Correctable).
"""

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from . import messages_data
from .message_table import CRITICAL, ERROR, INFO

PLACE = r"\((?:PCI:)?\s?(?P<address>[^\s)]*?)(?P<instance>(?: GPU-C?I:\d{1,6})*)\s?\):\s*(?P<number>\d{1,6})(?!\d)"
XID = re.compile(r"(?<![A-Za-z])Xid " + PLACE)
SXID = re.compile(r"(?:(?:nvidia-)?(?P<switch>nvswitch\d+):?\s+)?SXid " + PLACE)
ADDRESS = re.compile(r"(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2,4}:[0-9A-Fa-f]{2}(?:\.[0-7])?)$")
PROCESS = re.compile(r"pid='?(?P<pid>[^,']{1,40})'?,\s*name=(?P<name>[^,]{1,80})(?:,|$)")
PREVIOUS = re.compile(r"caused by previous Xid (\d{1,6})")
ACTION = re.compile(r"recovery action changed from 0x\w+ \((.{1,40}?)\) to 0x\w+ \((.{1,40}?)\)", re.IGNORECASE)
NVLINK = re.compile(r"\b(Non-?fatal|Fatal)\s+XC\d", re.IGNORECASE)
"""The severity that Xids 144 to 150 (NVLink 5) carry; NVIDIA's catalog lets only the fatal ones reset the GPU."""
FATAL_SXID = re.compile(r"^,\s*(?:Fatal\b|Severity 1\b)", re.IGNORECASE)
MILD_SXID = re.compile(r"^,\s*(?:Non-?fatal\b|Correctable\b|Severity 0\b)", re.IGNORECASE)
LOADED = re.compile(r"NVRM: loading NVIDIA UNIX")
CLEANUP, RECOVERY = 45, 154
CLASSES: Dict[str, Dict[str, str]] = messages_data.XID_CLASSES
ACTIONS = {
    "none": (INFO, "nothing to do: no recovery is required any more"),
    "gpu reset required": (CRITICAL, "stop what uses the GPU and reset it ('nvidia-smi -r'), or reboot"),
    "node reboot required": (CRITICAL, "reboot the host; a reset of the GPU is not enough"),
    "drain p2p": (CRITICAL, "stop the programs that use several GPUs together (peer-to-peer); the action then ends"),
    "drain and reset": (CRITICAL, "let the work on the GPU end, start no new one, then reset it ('nvidia-smi -r')"),
    "recover imex domain": (
        CRITICAL,
        "stop the programs that share memory between nodes, then recover the IMEX domain",
    ),
}
"""Severity and remedy of each recovery action (_gpuRecoveryActionName, 595)."""


class Xid(NamedTuple):
    """One message. ``address``: as ``0000:3b:00``, None where the text has none; ``text``: what follows the number.

    ``instance``: that of MIG, as ``GPU-I:05 GPU-CI:02``. ``switch``: the NVSwitch of an SXid, "" if it is not named.
    """

    number: int
    address: Optional[str]
    text: str
    instance: Optional[str] = None
    switch: Optional[str] = None

    @property
    def label(self) -> str:
        """``Xid 94 of 0000:01:00 GPU-I:05``."""
        kind = "Xid" if self.switch is None else "SXid"
        place = [part for part in (self.switch, self.address, self.instance) if part]
        return "%s %d of %s" % (kind, self.number, " ".join(place) or "an unnamed device")


class Meaning(NamedTuple):
    """What a message means. ``follows``: the number of the Xid that it is a consequence of."""

    severity: str
    name: str
    remedy: str
    follows: Optional[int] = None


def normalized(address: str) -> Optional[str]:
    """An address with a domain of four digits, None for what is none (``...``)."""
    match = ADDRESS.match(address)
    if match is None:
        return None
    rest = match.group(2).lower()
    return "%04x:%s" % (int(match.group(1), 16), rest) if match.group(1) else rest


def find(message: str) -> List[Xid]:
    """The Xids and SXids of one message of the log, in its order."""
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


def parse_xids(text: str) -> List[Xid]:
    """The messages of a kernel log since the driver was loaded last: loading it initialises every GPU."""
    found: List[Xid] = []
    for line in text.splitlines():
        if LOADED.search(line):
            found = []
        found += find(line)
    return found


def meaning(number: int) -> Meaning:
    """What an Xid means by its number alone."""
    group, name = messages_data.XIDS.get(number, ("unknown", "an Xid that the catalog does not know"))
    if group == "unknown":
        return Meaning(ERROR, name, "look the number up in NVIDIA's list of Xids")
    return Meaning(CLASSES[group]["severity"], name, CLASSES[group]["remedy"])


def judge(found: List[Xid]) -> List[Tuple[Xid, Meaning]]:
    """What each message of a log means, its own text and the messages around it included."""
    last_action = {one.address: place for place, one in enumerate(found) if one.number == RECOVERY}
    judged: List[Tuple[Xid, Meaning]] = []
    for place, one in enumerate(found):
        if one.switch is not None:
            means = judge_sxid(one)
        elif one.number == CLEANUP:
            means = judge_cleanup(one, found[:place])
        elif one.number == RECOVERY:
            means = judge_recovery(one, place == last_action[one.address])
        else:
            means = judge_nvlink(one)
        judged.append((one, means))
    return judged


def judge_nvlink(one: Xid) -> Meaning:
    """By the number, and by the word that Xids of NVLink 5 carry."""
    means, word = meaning(one.number), NVLINK.search(one.text)
    if word is None or word.group(1).lower() == "fatal":
        return means
    remedy = "nothing to do at once; look for an Xid 154 or 45 beside it, and check the link if it returns"
    return means._replace(severity=INFO, remedy=remedy)


def judge_cleanup(one: Xid, before: List[Xid]) -> Meaning:
    """Xid 45 is the consequence of the Xid that it names, or of the one before it on the same GPU."""
    named = PREVIOUS.search(one.text)
    known = [other for other in before if other.address == one.address and other.switch is None]
    others = [other.number for other in known if other.number not in (CLEANUP, RECOVERY)]
    previous = int(named.group(1)) if named else others[-1] if others else None
    if previous is None:
        return meaning(one.number)
    cause = meaning(previous)
    severity = INFO if previous in others else cause.severity  # the log may have lost the first message
    name = "channel removed, a consequence of Xid %d (%s)" % (previous, cause.name)
    return Meaning(severity, name, "for Xid %d: %s" % (previous, cause.remedy), previous)


def judge_recovery(one: Xid, last: bool) -> Meaning:
    """Xid 154 names the action that is required from now on; only the last one of a GPU counts."""
    means, action = meaning(one.number), ACTION.search(one.text)
    if action is None:
        return means
    name = 'the required recovery action has changed to "%s"' % action.group(2)
    severity, remedy = ACTIONS.get(action.group(2).lower(), (means.severity, means.remedy))
    if not last:
        return Meaning(INFO, name, "see the GPU's last Xid 154, which names the action that is required now")
    return Meaning(severity, name, remedy)


def judge_sxid(one: Xid) -> Meaning:
    """By the severity in the text: the numbers are the switch's own, explained in its documents."""
    if FATAL_SXID.search(one.text):
        remedy = "reset all GPUs and NVSwitches of the board (in a virtual machine, restart it), or reboot"
        return Meaning(CRITICAL, "fatal error of an NVSwitch", remedy + "; read /var/log/fabricmanager.log")
    if MILD_SXID.search(one.text):
        remedy = "nothing to do: NVIDIA's fabric manager guide says that it can be ignored"
        return Meaning(INFO, "non-fatal error of an NVSwitch", messages_data.SXIDS.get(one.number, remedy))
    remedy = "look for the line of the same number that says Fatal or Non-fatal, and in /var/log/fabricmanager.log"
    return Meaning(ERROR, "error of an NVSwitch, whose severity this line does not say", remedy)


def serious_xids(found: List[Xid]) -> List[Xid]:
    """Those that report a damaged or lost GPU, or a switch that it cannot do without."""
    return [one for one, means in judge(found) if means.severity == CRITICAL]


def count_key(one: Xid) -> str:
    """The key of a message in :func:`count_xids`."""
    return "%s%d %s" % ("" if one.switch is None else "S", one.number, one.address)


def count_xids(found: List[Xid]) -> Dict[str, int]:
    """How often each number came from each GPU, by ``number address``; that of an SXid begins with S."""
    result: Dict[str, int] = {}
    for one in found:
        result[count_key(one)] = result.get(count_key(one), 0) + 1
    return result


def new_xids(found: List[Xid], known: Optional[Dict[str, int]] = None) -> List[Xid]:
    """Messages beyond the counts in ``known``."""
    left = dict(known or {})
    new = []
    for one in found:
        if left.get(count_key(one), 0) > 0:
            left[count_key(one)] -= 1
        else:
            new.append(one)
    return new
