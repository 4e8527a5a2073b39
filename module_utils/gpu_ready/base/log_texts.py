"""Parts of logs: the line with the error, what is new, the last start of a service. Pure."""

import re
from typing import List, Optional

from .long_lines import cut_lines

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[@-Z\\^_])")
"""Colours and the like (ECMA-48)."""
MAKE_LOG = re.compile(
    r"(?:Consult|see|in) '?(/\S*make\.log)\b|^# Consult (/\S*make\.log)", re.IGNORECASE | re.MULTILINE
)
ERROR = re.compile(
    r": (?:fatal )?error: |\*\*\* |^(?:ERROR|Error!|E|FATAL|modprobe: \w+|failed[^:]{0,40}): ?|\berror\b", re.IGNORECASE
)
SYSTEMD = re.compile(r"\S+\.(?:service|socket): |(?:Start|Stopp)(?:ing|ed) |Failed to start ")
"""What systemd says of a unit: that it failed, not why."""
STARTS = re.compile(r"(?m)^.*?\bStart(?:ing|ed) [^\n]*")
LONGEST = 300


def make_log(text: str) -> Optional[str]:
    """Return the path of the compiler's log that DKMS or an installer names."""
    match = MAKE_LOG.search(text)
    return (match.group(1) or match.group(2)) if match else None


def key_line(texts: List[str]) -> str:
    """Return the first line with an error, else the last line, if possible one of the program itself."""
    lines = [line.strip() for text in texts for line in lines_of(text) if line.strip()]
    errors = [line for line in lines if ERROR.search(line)]
    of_program = [line for line in lines if not SYSTEMD.match(line)]
    line = (errors or of_program[-1:] or lines[-1:] or ["no output"])[0]
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def lines_of(text: str) -> List[str]:
    """Return the lines of what a program printed, without colours; a progress bar begins a line each time."""
    return re.split(r"\r\n|\n|\r", ESCAPES.sub("", cut_lines(text)))


def new_lines(before: str, after: str) -> str:
    """Return lines of the kernel's log after ``before``; all if it does not contain the last line of ``before``."""
    marks = [line for line in before.splitlines() if line.strip()]
    place = after.rfind(marks[-1]) if marks else -1
    return after[place + len(marks[-1]) :] if place >= 0 else after


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
