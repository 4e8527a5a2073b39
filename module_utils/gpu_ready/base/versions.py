"""Comparing versions: dotted numbers of drivers and toolkits, package versions, kernel releases."""

import re
from typing import Any, List, Tuple

DOTTED = re.compile(r"\d+(?:\.\d+)*")


def parse(text: str) -> Tuple[int, ...]:
    """Return numbers of the first dotted version, () where there is none: "580.178.04" -> (580, 178, 4)."""
    match = DOTTED.search(upstream(text))
    return tuple(int(part) for part in match.group().split(".")) if match else ()


def key(text: str) -> "Tuple[Tuple[int, Any], ...]":
    """Return a sort key: numbers by value, words by letter; serves versions and kernel releases alike."""
    parts: List[Tuple[int, Any]] = []
    for part in re.findall(r"\d+|[a-zA-Z]+|~", str(text)):
        # A tilde sorts before the end of the text, as in deb-version(7).
        parts.append((-1, 0) if part == "~" else (2, int(part)) if part.isdigit() else (1, part))
    return tuple(parts) + ((0, 0),)


def compare(left: str, right: str) -> int:
    """Return -1, 0 or 1; missing parts count as zero: "580.95" equals "580.95.0"."""
    first, second = list(parse(left)), list(parse(right))
    length = max(len(first), len(second))
    first += [0] * (length - len(first))
    second += [0] * (length - len(second))
    return (first > second) - (first < second)


def upstream(text: str) -> str:
    """Return the upstream part of a package version: "1:580.178.04-1" -> "580.178.04"."""
    without_epoch = re.sub(r"^\s*\d+:", "", str(text)).strip()
    return without_epoch.rpartition("-")[0] or without_epoch


def branch(text: str) -> int:
    """Return the driver branch of a version: "580.178.04" -> 580; 0 where the text holds no number."""
    numbers = parse(text)
    return numbers[0] if numbers else 0


def is_branch_within(branch: int, limits: str) -> bool:
    """Return True if a branch is inside limits such as ``<=575``, ``>=580`` or ``550-575``."""
    match = re.match(r"^(?:<=(?P<to>\d+)|>=(?P<at>\d+)|(?P<first>\d+)-(?P<last>\d+))$", str(limits))
    if not match:
        raise ValueError("limits of a branch are <=N, >=N or N-M, not %r" % limits)
    first, last = match.group("at") or match.group("first"), match.group("to") or match.group("last")
    return (first is None or int(first) <= branch) and (last is None or branch <= int(last))
