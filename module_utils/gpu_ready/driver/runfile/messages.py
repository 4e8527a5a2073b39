"""Why a .run installer failed, from its log and its output."""

import re
from typing import List

from ...base.evidence import FailureEvidence, Search, explained_later, format_failure

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
            short = re.sub(r"^(?:\[?ERROR\]?: |-> )+", "", " ".join(line.split()))
            short = short if len(short) <= MAX_LINE else short[: MAX_LINE - 3] + "..."
            if short and short not in found:
                found.append(short)
    return found[:limit]


def describe_failure(log: str, output: str, path: str = "", kind: str = "installer-log") -> str:
    """Return why a run of an installer failed, for the control node to explain; ``path``: of the whole log.

    The log comes first: the output repeats it, or replaces it if there is none.
    """
    texts = [(kind, log), (kind, output)]
    return explained_later(FailureEvidence([Search(texts)], path, unknown=describe_unknown(log, output, path)))


def describe_unknown(log: str, output: str, path: str) -> str:
    """Return the message for a run whose cause is not known: the lines that report errors, else the last ones."""
    last = [line.strip() for line in (log + "\n" + output).splitlines() if line.strip()][-3:]
    detail = " / ".join(error_lines(log) or error_lines(output)) or " / ".join(last)[-600:] or "no output"
    return format_failure("unknown cause", detail, path, "read the log")
