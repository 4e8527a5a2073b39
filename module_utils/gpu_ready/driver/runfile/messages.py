"""Why a .run installer failed, from its log and its output."""

import re
from typing import List, Optional, Tuple

from ...diagnostics.failure import format_failure
from ...diagnostics.message_table import Explanation
from ...diagnostics.text_lines import joined

LOG = "/var/log/nvidia-installer.log"
MAX_LINE = 220
_ERROR_LINE = re.compile(
    r"^ERROR: |^\[ERROR\]|Kernel module load error|\berror:|Error \d+|\*\*\* |No space left|Error! "
)
_CONSEQUENCE = re.compile(r"Installation has failed|Please see the log entries|recipe for target|Leaving directory")


def error_lines(text: str, limit: int = 4) -> List[str]:
    """Return the first lines of a log that report an error, shortened; not the installer's closing line."""
    found = []
    for line in text.splitlines():
        if _ERROR_LINE.search(line) and not _CONSEQUENCE.search(line):
            short = re.sub(r"^(?:\[?ERROR\]?: |-> )+", "", joined(line)).strip()
            short = short if len(short) <= MAX_LINE else short[: MAX_LINE - 3] + "..."
            if short and short not in found:
                found.append(short)
    return found[:limit]


def explain_failure(log: str, output: str, causes: Optional[List[Tuple[str, str, str, str]]] = None) -> Explanation:
    """Explain a failed run; ``detail`` quotes the lines that report the cause.

    The log comes first: the output repeats it, or replaces it if there is none. ``causes`` are patterns for another
    installer: (code, pattern, cause, remedy), causes before consequences.
    """
    from ...diagnostics import messages

    lines = error_lines(log) or error_lines(output)
    quoted = " / ".join(lines)
    for text in (quoted, joined(log + "\n" + output)):
        for code, pattern, cause, remedy in causes or []:
            if re.search(pattern, text):
                return Explanation(code, cause, remedy, quoted or None)
    for text in (log, output) if causes is None else ():
        found = messages.explain("installer-log", text)
        if found:
            return found[0]._replace(detail=found[0].message)
    last = [line.strip() for line in (log + "\n" + output).splitlines() if line.strip()][-3:]
    detail = quoted or " / ".join(last)[-600:] or "no output"
    return Explanation("unknown", "unknown cause", "read the log", detail)


def format_explanation(found: Explanation, log: str = "") -> str:
    """Return the cause, the lines that report it, where the whole log is, remedy."""
    return format_failure(found.cause, found.detail, log, found.remedy)
