"""Why a program failed: cause, the message that shows it, remedy, and the path of the log.

Explanations are data (catalog/messages.yml). Pure functions over texts.
"""

import re
from typing import List, Optional, Tuple

from . import text_lines
from .message_table import Explanation

MAKE_LOG = re.compile(
    r"(?:Consult|see|in) '?(/\S*make\.log)\b|^# Consult (/\S*make\.log)", re.IGNORECASE | re.MULTILINE
)
ERROR = re.compile(
    r": (?:fatal )?error: |\*\*\* |^(?:ERROR|Error!|E|FATAL|modprobe: \w+|failed[^:]{0,40}): ?|\berror\b", re.IGNORECASE
)
SYSTEMD = re.compile(r"\S+\.(?:service|socket): |(?:Start|Stopp)(?:ing|ed) |Failed to start ")
"""What systemd says of a unit: that it failed, not why."""
LONGEST = 300
EVENTS = ("xid", "sxid")
"""Reports of a working GPU; never the reason why a module does not load."""


def make_log(text: str) -> Optional[str]:
    """Return the path of the compiler's log that DKMS or an installer names."""
    match = MAKE_LOG.search(text)
    return (match.group(1) or match.group(2)) if match else None


def add_outcome(message: str, text: str) -> str:
    """Add to a message what a failure left behind, before its remedy."""
    failed, mark, remedy = message.partition(". Remedy: ")
    return failed + text + mark + remedy


def named_log(message: str) -> Optional[str]:
    """Return the path of the log that a message of :func:`explain_failure` names."""
    match = re.search(r"the whole log is (/\S+) on the host", message)
    return match.group(1) if match else None


def find(texts: List[Tuple[str, str]], without: Tuple[str, ...] = ()) -> Optional[Explanation]:
    """Return the first known explanation of some texts, each (kind, text)."""
    from . import messages  # compiles hundreds of patterns, which a module needs only when something failed

    for kind, text in texts:
        for found in messages.explain(kind, text):
            if found.code not in without:
                return found
    return None


def format_failure(cause: str, quoted: Optional[str], log: str, remedy: str) -> str:
    """Return a cause, the words that show it, where the whole log is, and the remedy, which the report shows apart."""
    shown = "%s (%s)" % (cause, quoted) if quoted else cause
    return "%s%s. Remedy: %s" % (shown, "; the whole log is %s on the host" % log if log else "", remedy)


def explain_failure(texts: List[Tuple[str, str]], log: str, known: Tuple[str, ...] = ()) -> str:
    """Return the explanation of a failure, else the first line with an error.

    ``log``: path of the full log. ``known``: codes that the caller reports already.
    """
    found = find(texts, known)
    if found:
        return format_failure(found.cause, found.message, log, found.remedy)
    quoted = key_line([text for _, text in texts])
    return format_failure("its reason is not known to gpu-ready", quoted, log, "read that log, then run again")


def key_line(texts: List[str]) -> str:
    """Return the first line with an error, else the last line, if possible one of the program itself."""
    lines = [line.strip() for text in texts for line in text_lines.plain(text).split("\n") if line.strip()]
    errors = [line for line in lines if ERROR.search(line)]
    of_program = [line for line in lines if not SYSTEMD.match(line)]
    line = (errors or of_program[-1:] or lines[-1:] or ["no output"])[0]
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def new_lines(before: str, after: str) -> str:
    """Return lines of the kernel's log after ``before``; all if it does not contain the last line of ``before``."""
    marks = [line for line in before.splitlines() if line.strip()]
    place = after.rfind(marks[-1]) if marks else -1
    return after[place + len(marks[-1]) :] if place >= 0 else after


STARTS = re.compile(r"(?m)^.*?\bStart(?:ing|ed) [^\n]*")


def since_last_start(journal: str) -> str:
    """Return the journal of a unit from its last start, "" where none is in it."""
    starts = [match.start() for match in STARTS.finditer(journal)]
    return journal[starts[-1] :] if starts else ""


def since_start(journal: str, unit: str) -> str:
    """Return the journal of a unit from the last start after which the program itself printed something.

    Output of programs and messages of systemd reach the journal in different ways. On a busy host output may precede
    the message about the start.
    """
    starts = [match.start() for match in STARTS.finditer(journal)]
    of_systemd = re.compile(
        r"(?:Start(?:ing|ed)|Stopp(?:ing|ed)|Failed to start|Dependency failed for|%s(?:\.service)?:) "
        % re.escape(unit)
    )
    for start in reversed(starts):
        lines = [line.strip() for line in journal[start:].splitlines()]
        if any(line and not of_systemd.match(line) for line in lines):
            return journal[start:]
    return journal
