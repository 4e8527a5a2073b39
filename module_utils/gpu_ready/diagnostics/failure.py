"""Why a program failed, as half a sentence: cause, the words that say so, remedy, and where the whole log lies.

A log is pages long and names its reason somewhere in the middle; what a person gets is the catalogue's explanation
(catalog/messages.yml) and the place of the log. Pure functions over texts.
"""

import re
from typing import List, Optional, Tuple

from . import message_table, messages

MAKE_LOG = re.compile(
    r"(?:Consult|see|in) '?(/\S*make\.log)\b|^# Consult (/\S*make\.log)", re.IGNORECASE | re.MULTILINE
)
ERROR = re.compile(
    r": (?:fatal )?error: |\*\*\* |^(?:ERROR|Error!|E|FATAL|modprobe: \w+|failed[^:]{0,40}): ?|\berror\b", re.IGNORECASE
)
LONGEST = 300
BEGINNING = 15
"""Letters by which a message is found again in its text."""
EVENTS = ("xid", "sxid")
"""What a GPU reports while it works: no reason for a module not to load."""


def make_log(text: str) -> Optional[str]:
    """Return the path of the compiler's log that DKMS or an installer names."""
    match = MAKE_LOG.search(text)
    return (match.group(1) or match.group(2)) if match else None


def find(texts: List[Tuple[str, str]], without: Tuple[str, ...] = ()) -> Optional[messages.Explanation]:
    """Return the first explanation that the texts give, None where none is known. ``texts``: (kind, text)."""
    for kind, text in texts:
        for found in messages.explain(kind, text):
            if found.code not in without:
                return found._replace(message=found.message and within_line(found.message, text))
    return None


def within_line(message: str, text: str) -> str:
    """Return a message up to the end of the line in which it begins: logs hold other matters on the next one."""
    for line in message_table.plain(text).split("\n"):
        flat = " ".join(line.split())
        place = flat.find(message[:BEGINNING])
        if place >= 0 and message.startswith(flat[place:]):
            return flat[place:].strip(" .!?;:")
    return message


def clause(found: messages.Explanation) -> str:
    """Return an explanation as "cause (the words that say so): remedy"."""
    return "%s%s: %s" % (found.cause, " (%s)" % found.message if found.message else "", found.remedy)


def because(texts: List[Tuple[str, str]], log: str, known: Tuple[str, ...] = ()) -> str:
    """Return the explanation of a failure, else the first line that tells of an error.

    ``log``: where the rest lies. ``known``: codes of what is said already.
    """
    found = find(texts, known)
    said = clause(found) if found else "its reason is not known to gpu-ready (%s)" % quoted([text for _, text in texts])
    return "%s; the whole log is %s on the host" % (said, log)


def quoted(texts: List[str]) -> str:
    """Return the one line of some texts that says most: the first error, else the last line."""
    lines = [line.strip() for text in texts for line in message_table.plain(text).split("\n") if line.strip()]
    errors = [line for line in lines if ERROR.search(line)]
    line = (errors or lines[-1:] or ["it said nothing"])[0]
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def fresh(before: str, after: str) -> str:
    """Return what a log of the kernel got since an earlier look at it; all of it where the two do not join."""
    marks = [line for line in before.splitlines() if line.strip()]
    place = after.rfind(marks[-1]) if marks else -1
    return after[place + len(marks[-1]) :] if place >= 0 else after


def since_start(journal: str, unit: str) -> str:
    """Return the journal of a unit from its last start on that the program itself wrote something of.

    What a program prints and what systemd says of it come to the journal by different ways, and on a busy host the
    program's last words may stand before the line that tells of its start.
    """
    starts = [match.start() for match in re.finditer(r"(?m)^.*?\bStart(?:ing|ed) [^\n]*", journal)]
    of_systemd = re.compile(
        r"(?:Start(?:ing|ed)|Stopp(?:ing|ed)|Failed to start|Dependency failed for|%s(?:\.service)?:) "
        % re.escape(unit)
    )
    for start in reversed(starts):
        lines = [line.strip() for line in journal[start:].splitlines()]
        if any(line and not of_systemd.match(line) for line in lines):
            return journal[start:]
    return journal
