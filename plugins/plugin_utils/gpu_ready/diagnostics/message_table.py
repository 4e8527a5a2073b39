"""The table of known messages (catalog/messages.yml) and how a text is searched for them."""

import re
from collections.abc import Mapping
from re import Match, Pattern
from typing import NamedTuple

from ..catalog import messages as data
from .text_lines import Flat, flat, glued

CRITICAL, ERROR, WARNING, INFO = "critical", "error", "warning", "info"
SEVERITIES = (CRITICAL, ERROR, WARNING, INFO)
"""A GPU must not be used; something does not work; it works, but needs attention; a report that asks for nothing."""
CERTAIN, LIKELY = "certain", "likely"
"""The message names the cause; it has other causes too, and this is the usual one."""
NOTHING, WATCH, PROGRAM, FIX, DRAIN_RESET, RESET, REBOOT, POWER_CYCLE, REPLACE = ACTIONS = (
    "nothing", "watch", "program", "fix", "drain_reset", "reset", "reboot", "power_cycle", "replace",
)  # fmt: skip
"""What a GPU or host needs, the weaker before the stronger. ``fix``: what the remedy says, without a reset."""


class Explanation(NamedTuple):
    """One explained failure: its code, what it means and what helps.

    ``detail``: an address or version in the text. ``message``: the part of the text that matched, on ``line``.
    """

    code: str
    cause: str
    remedy: str
    detail: str | None = None
    message: str | None = None
    line: int | None = None
    severity: str = ERROR
    confidence: str = CERTAIN
    action: str = FIX


Patterns = tuple[tuple[str, Pattern[str]], ...]
"""Patterns, each with a literal that all its matches contain."""


class Entry(NamedTuple):
    """One row of the table. ``names``: its name in results. ``consequence``: reported only if nothing else matches."""

    code: str
    cause: str
    remedy: str
    patterns: "Patterns"
    names: str
    consequence: bool
    exits: tuple[int, ...]
    severity: str
    confidence: str
    action: str
    remedies: dict[str, str]
    """By the program that called (:func:`programs.caller`), where it differs from ``remedy``."""
    program: str | None
    """The only program whose lines are read by the row; a key of catalog/programs.yml."""


class Found(NamedTuple):
    """A row that matches a text, the position in the joined text, the matching part, and its line."""

    entry: Entry
    position: int
    message: str
    line: int | None
    values: dict[str, str] = {}
    """What the named groups of the pattern matched, which the row's cause and remedy may name."""


NVIDIA_SMI, CONTAINER, INSTALLER, KERNEL = "nvidia_smi", "container_error", "installer_log", "dmesg"
CUDA_INSTALLER = "cuda_installer"
SERVICE = "service"
"""Programs beside the driver that no kind of `gpu-explain read` is named after, such as the fabric manager."""
_tables: dict[str, list[Entry]] = {}


def literal(pattern: str) -> str:
    """Return the longest literal that every match of a pattern contains, in lower case; "" if there is none.

    Searching for it first makes long logs quick to read: most patterns match nothing in them.
    """
    runs, depth, place = [""], 0, 0
    while place < len(pattern):
        letter = pattern[place]
        if letter == "|" and depth == 0:
            return ""
        if letter == "\\":
            place += 1
            escaped = pattern[place]
            if depth == 0 and not escaped.isalnum():
                runs[-1] += escaped
            else:
                runs.append("")
        elif letter == "[":
            place = pattern.index("]", place + 2)
            runs.append("")
        elif letter in "()":
            depth += 1 if letter == "(" else -1
            runs.append("")
        elif letter in "?*{":
            runs[-1] = runs[-1][:-1]
            runs.append("")
            place = pattern.index("}", place) if letter == "{" else place
        elif letter in ".+^$":
            runs.append("")
        elif depth == 0:
            runs[-1] += letter
        place += 1
    return max(runs, key=len).lower()


def prepared(patterns: list[str], flags: int = 0) -> Patterns:
    """Compile patterns for :func:`matches`, ignoring case."""
    return tuple((literal(pattern), re.compile(pattern, re.IGNORECASE | flags)) for pattern in patterns)


def matches(patterns: Patterns, text: str, small: str) -> list[Match[str]]:
    """Return the first match of each pattern in a text; ``small`` is the text in lower case."""
    found = [pattern.search(text) for plain_text, pattern in patterns if plain_text in small]
    return [match for match in found if match]


def table(kind: str) -> list[Entry]:
    """Return the rows of a kind, causes before consequences."""
    if kind not in _tables:
        _tables[kind] = [
            Entry(
                row["code"],
                row["cause"],
                row["remedy"],
                prepared(row["patterns"]),
                row.get("names", row["code"]),
                row.get("consequence", False),
                tuple(row.get("exit", ())),
                row.get("severity", ERROR),
                row.get("confidence", LIKELY if row.get("consequence") else CERTAIN),
                row.get("action", FIX),
                row.get("remedies", {}),
                row.get("program"),
            )
            for row in data.MESSAGES[kind]
        ]
    return _tables[kind]


def possible(kind: str, small: str) -> list[Entry]:
    """Return the rows of a kind with the patterns that can match anywhere in a text in lower case."""
    rows = [entry._replace(patterns=tuple(one for one in entry.patterns if one[0] in small)) for entry in table(kind)]
    return [entry for entry in rows if entry.patterns]


def find(kind: str, text: Flat, rows: list[Entry] | None = None) -> list[Found]:
    """Return the rows that match a joined text, in the order of the table; consequences only if nothing else matches.

    Words that one row explains are not explained by a later one. ``rows``: of :func:`possible`, for parts of a text.
    """
    found: list[Found] = []
    taken: list[tuple[int, int]] = []
    seen = set()
    small = text.text.lower()
    for entry in table(kind) if rows is None else rows:
        hits = free_matches(entry.patterns, text.text, small, taken) if entry.code not in seen else []
        if hits:
            seen.add(entry.code)
            start, end = min(hit.span() for hit in hits)
            values = {name: word for hit in reversed(hits) for name, word in hit.groupdict().items() if word}
            found.append(Found(entry, start, text.quote(start, end), text.line(start), values))
            taken += [] if entry.consequence else [hit.span() for hit in hits]
    causes = [row for row in found if not row.entry.consequence]
    return causes or found


def free_matches(patterns: Patterns, text: str, small: str, taken: list[tuple[int, int]]) -> list[Match[str]]:
    """Return the first match of each pattern that shares no letter with the places in ``taken``."""
    found = []
    for words, pattern in patterns:
        match = pattern.search(text) if words in small else None
        while match and any(match.start() < end and start < match.end() for start, end in taken):
            match = pattern.search(text, max(match.end(), match.start() + 1))
        found += [match] if match else []
    return found


def find_broken(kind: str, text: str) -> list[Found]:
    """Return the rows that match a pasted text, also where a narrow terminal broke its words."""
    return find(kind, flat(text)) or find(kind, glued(text))


PLACE = re.compile(r"\{(\w+)\|([^{}]*)\}")
"""A place in a cause or remedy, with what stands there if the text does not have the value: ``{gpu|ADDRESS}``."""


def fill(template: str, values: Mapping[str, str | None]) -> str:
    """Return a cause or remedy with values of the text in its places."""
    return PLACE.sub(lambda place: values.get(place.group(1)) or place.group(2), template)


def gpu_argument(address: str | None) -> str | None:
    """Return an address as ``nvidia-smi -i`` takes it: a kernel log leaves the function out."""
    return None if address is None else address if "." in address else address + ".0"


def explanation(row: Found, detail: str | None = None, caller: str | None = None) -> Explanation:
    """Return a match as an explanation. ``caller``: of :func:`programs.caller`."""
    entry = row.entry
    remedy = entry.remedies.get(caller or "", entry.remedy)
    values = {"gpu": gpu_argument(detail), **row.values}
    return Explanation(
        entry.code, fill(entry.cause, values), fill(remedy, values), detail, row.message, row.line, entry.severity,
        entry.confidence, entry.action,
    )  # fmt: skip
