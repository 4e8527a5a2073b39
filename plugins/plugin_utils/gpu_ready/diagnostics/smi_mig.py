"""`nvidia-smi mig -lgip` and -lgi: the profiles and instances of GPUs that MIG divides."""

import re
from typing import Any

from .text_lines import lines_of

HEADING = re.compile(
    r"\|\s*(?:GPU instance profiles|GPU instances|Compute instance profiles|Compute instances)\s*:", re.IGNORECASE
)
ROW = re.compile(
    r"\|\s+(?P<gpu>\d{1,3})\s+(?:\d{1,3}\s+)?MIG (?P<name>\S{1,30})\s+(?P<id>\d{1,3})\*?\s+"
    r"(?:(?P<free>\d{1,2})/(?P<total>\d{1,2}))?"
)


def read(text: str) -> list[dict[str, Any]]:
    """Return the rows of a list of profiles or instances; ``free`` and ``total`` of profiles only."""
    if not HEADING.search(text):
        return []
    rows = [match.groupdict() for match in (ROW.search(line.text) for line in lines_of(text)) if match]
    return [{name: int(word) if word and name != "name" else word for name, word in row.items()} for row in rows]


def describe(rows: list[dict[str, Any]]) -> list[str]:
    """Return what a list shows, GPU by GPU; it is no failure."""
    lines = []
    for gpu in dict.fromkeys(row["gpu"] for row in rows):
        own = [row for row in rows if row["gpu"] == gpu]
        if own[0]["total"] is None:
            lines.append("GPU %d has the MIG instances %s." % (gpu, ", ".join(row["name"] for row in own)))
            continue
        free = ["%s (%d of %d free)" % (row["name"], row["free"], row["total"]) for row in own]
        lines.append("GPU %d can be divided by MIG as %s." % (gpu, ", ".join(free)))
    return lines
