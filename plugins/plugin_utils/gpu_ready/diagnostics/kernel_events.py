"""The Xids and SXids of a kernel log, counted by number and device, each with its meaning."""

from typing import Any, NamedTuple

from . import xid
from .kernel_lines import LogMessage
from .message_table import SEVERITIES, WATCH, Explanation
from .text_lines import LONGEST
from .xid import Meaning, Xid


class Event(NamedTuple):
    """A message that was reported ``times`` times: the most serious of them, its meaning, its text and line."""

    first: Xid
    means: Meaning
    times: int
    message: str
    line: int

    @property
    def is_xid(self) -> bool:
        """False for an SXid, which a switch reports."""
        return self.first.switch is None

    @property
    def decides(self) -> bool:
        """True for the Xid that says what its GPU needs from now on."""
        return self.is_xid and self.first.number == xid.RECOVERY and self.means.action != WATCH


def events_of(found: list[LogMessage], separator: str = " ") -> list[Event]:
    """Return the events of a log, in the order in which they appeared first."""
    texts = [(message, message.flat(separator).text) for message in found if message.has("Xid (")]
    places = [(one, message.times, text, message.lines[0].number) for message, text in texts for one in xid.find(text)]
    groups: dict[tuple[object, ...], Event] = {}
    for (one, means), (_, times, text, line) in zip(xid.judge([place[0] for place in places]), places):  # noqa: B905
        key = (one.switch, one.number, one.address, one.instance)
        known = groups.get(key)
        if known is None or is_worse(means, known.means, one.number):
            groups[key] = Event(one, means, times + (known.times if known else 0), text, line)
        else:
            groups[key] = known._replace(times=known.times + times)
    return list(groups.values())


def is_worse(means: Meaning, known: Meaning, number: int) -> bool:
    """Return True if a message shows more than the ones before it: it is more serious, or the last recovery action."""
    rank, before = SEVERITIES.index(means.severity), SEVERITIES.index(known.severity)
    return rank < before or (rank == before and number == xid.RECOVERY)


def explanations(found: list[Event]) -> list[Explanation]:
    """Serious ones first, causes before their consequences, in the order of the log; how often decides nothing."""
    ordered = sorted(found, key=lambda event: (SEVERITIES.index(event.means.severity), event.means.follows is not None))
    decided = {event.first.address for event in found if event.decides}
    return [explanation(event, event.first.address in decided and not event.decides) for event in ordered]


def explanation(event: Event, decided: bool = False) -> Explanation:
    """Return an event as a problem. ``decided``: an Xid 154 of the GPU says what it needs, whatever this one would."""
    one, means = event.first, event.means
    times = "" if event.times == 1 else ", %d times" % event.times
    if event.is_xid:
        gpu = one.address or "that the text does not name"
        cause = "%s: Xid %d of GPU %s%s%s" % (means.name, one.number, gpu, instance_words(one.instance), times)
    else:
        cause = "%s: SXid %d of %s" % (means.name, one.number, one.switch or "a switch")
    code = "xid" if event.is_xid else "sxid"
    quote = event.message[:LONGEST].rstrip(" .")
    action = WATCH if decided else means.action
    return Explanation(code, cause, means.remedy, one.address, quote, event.line, means.severity, action=action)


def instance_words(instance: str | None) -> str:
    """Return a MIG instance in words."""
    if not instance:
        return ""
    words = instance.replace("GPU-I:", "GPU instance ").replace(" GPU-CI:", ", compute instance ")
    return ", MIG " + words


def xid_rows(found: list[Event]) -> list[dict[str, Any]]:
    """Return the Xids, one for each number and GPU (or MIG instance), the most frequent first."""
    rows = []
    for event in sorted((event for event in found if event.is_xid), key=lambda event: -event.times):
        row: dict[str, Any] = {"xid": event.first.number, "pci": event.first.address, "count": event.times}
        row.update(severity=event.means.severity, line=event.line)
        row.update({"instance": event.first.instance} if event.first.instance else {})
        row.update({"follows": event.means.follows} if event.means.follows else {})
        rows.append(row)
    return rows


def sxid_rows(found: list[Event]) -> list[dict[str, Any]]:
    """Return the SXids, one for each number and switch, by switch."""
    rows = [
        {
            "sxid": event.first.number,
            "device": event.first.switch or None,
            "pci": event.first.address,
            "severity": event.means.severity,
            "line": event.line,
        }
        for event in found
        if not event.is_xid
    ]
    return sorted(rows, key=lambda row: (len(str(row["device"] or "")), str(row["device"] or ""), str(row["pci"])))


def process_names(found: list[LogMessage]) -> list[str]:
    """Return the programs that Xids name."""
    texts = [one.text for message in found if message.has("Xid") for one in xid.find(message.flat().text)]
    names = [match.group("name").strip().strip("'\"") for match in map(xid.PROCESS.search, texts) if match]
    return list(dict.fromkeys(name for name in names if name and name != "<unknown>"))
