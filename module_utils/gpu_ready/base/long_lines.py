r"""Limits for the lines of texts that programs print, and the line of a match, each in time proportional to the text.

Who writes a line decides how long it is: a mirror, a script of a package, a user who pastes it. A pattern that begins
with a repetition (``[^\n]*error``) is tried at every place of a line, which takes the square of its length.
"""

import re
from typing import List, Match, Optional, Pattern

LONGEST = 8192
KEPT = 4096
"""Characters of each end of a longer line that are kept: messages name what failed at the beginning or at the end."""
_BREAKS = r"(\r|\\n|#012)"
"""Ends of lines within a line: progress bars, and texts that JSON or syslog wrote on one line."""


def cut_lines(text: str) -> str:
    """Return the text, with three dots in place of the middle of each line that is too long.

    The number of lines stays.
    """
    if len(text) <= LONGEST:
        return text
    lines = text.split("\n")
    if all(len(line) <= LONGEST for line in lines):
        return text
    return "\n".join(
        "".join(_cut(part) for part in re.split(_BREAKS, line)) if len(line) > LONGEST else line for line in lines
    )


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST else line[:KEPT] + "..." + line[-KEPT:]


def find_line(text: str, *patterns: str) -> Optional[str]:
    """Return the first line in which all patterns match, each behind the one before; None for none."""
    tried = [re.compile(pattern) for pattern in patterns]
    if not tried[0].search(text):
        return None
    return next((line for line in text.split("\n") if _has_all(line, tried)), None)


def _has_all(line: str, patterns: List[Pattern[str]]) -> bool:
    place = 0
    for pattern in patterns:
        match = pattern.search(line, place)
        if not match:
            return False
        place = match.end()
    return True


def line_of(match: Match[str]) -> str:
    """Return the whole line that a match begins in."""
    text = match.string
    end = text.find("\n", match.end())
    return text[text.rfind("\n", 0, match.start()) + 1 : end if end >= 0 else len(text)]
