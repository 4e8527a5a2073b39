"""The table of known messages (catalog/messages.yml) and how a text is searched for them.

Programs, terminals, mailers and logs break lines anywhere, colour them and write newlines as ``#012``: a text is joined
to one line before the patterns are tried.
"""

import re
from typing import Dict, List, Match, NamedTuple, Optional, Pattern, Tuple


class Explanation(NamedTuple):
    """One explained failure: its code, what it means and what helps.

    ``detail``: an address or version in the text. ``message``: the part of the text that matched.
    """

    code: str
    cause: str
    remedy: str
    detail: Optional[str] = None
    message: Optional[str] = None


Patterns = Tuple[Tuple[str, Pattern[str]], ...]
"""Patterns, each with a literal that all its matches contain."""


class Entry(NamedTuple):
    """One row of the table. ``names``: its name in results. ``consequence``: reported only if nothing else matches."""

    code: str
    cause: str
    remedy: str
    patterns: "Patterns"
    names: str
    consequence: bool
    exits: Tuple[int, ...]


class Found(NamedTuple):
    """A row that matches a text, the position in the joined text, and the matching part."""

    entry: Entry
    position: int
    message: str


NVIDIA_SMI, CONTAINER, INSTALLER, KERNEL = "nvidia_smi", "container_error", "installer_log", "dmesg"
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[@-Z\\^_])")
UNSEEN = re.compile("[\x00\x07\x08\u200b\ufeff]")
QUOTED = re.compile(r'^\s*"([^\n]*)",?\s*$')
LONGEST = 200
_tables: Dict[str, List[Entry]] = {}


def literal(pattern: str) -> str:
    """The longest literal that every match of a pattern contains, in lower case; "" if there is none.

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


def prepared(patterns: List[str], flags: int = 0) -> Patterns:
    """Compile patterns for :func:`matches`, ignoring case."""
    return tuple((literal(pattern), re.compile(pattern, re.IGNORECASE | flags)) for pattern in patterns)


def matches(patterns: Patterns, text: str, small: str) -> List[Match[str]]:
    """The first match of each pattern in a text; ``small`` is the text in lower case."""
    found = [pattern.search(text) for plain_text, pattern in patterns if plain_text in small]
    return [match for match in found if match]


def table(kind: str) -> List[Entry]:
    """The rows of a kind, causes before consequences."""
    from . import messages_data

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
            )
            for row in messages_data.MESSAGES[kind]
        ]
    return _tables[kind]


def plain(text: str) -> str:
    """A text without colours and invisible characters, its line ends as newlines."""
    text = UNSEEN.sub("", ESCAPES.sub("", text)).replace("\u00a0", " ")
    text = text.replace("#012", "\n").replace("\r\n", "\n").replace("\r", "\n")
    if text.count("\\n") > text.count("\n"):  # a string of JSON, as Ansible and journals print a program's output
        text = text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    lines = text.split("\n")
    bare = [QUOTED.match(line) for line in lines]
    if 2 * sum(1 for match in bare if match) > sum(1 for line in lines if line.strip()):  # a list of JSON: stdout_lines
        lines = [match.group(1) if match else line for match, line in zip(bare, lines)]  # noqa: B905 - Python 3.6
    return "\n".join(lines)


def joined(text: str) -> str:
    """A text on one line: newlines, ``#012`` of syslog and broken lines become single blanks."""
    return " ".join(re.sub(r"\\{1,16}n", " ", plain(text)).split())


def glued(text: str) -> str:
    """A text whose lines were broken within words (a narrow terminal), on one line."""
    return " ".join("".join(line.strip() for line in plain(text).split("\n")).split())


def quote(text: str, start: int, end: int) -> str:
    """The part of a joined text from ``start`` to the next full stop, shortened."""
    stop = re.compile(r"[.!?] |$").search(text, end)
    last = stop.start() + 1 if stop else len(text)
    found = text[start:last].strip(" .!?;:")
    return found if len(found) <= LONGEST else found[: LONGEST - 3] + "..."


def find(kind: str, flat: str) -> List[Found]:
    """The rows that match a joined text, in the order of the table; consequences only if nothing else matches."""
    found: List[Found] = []
    seen = set()
    small = flat.lower()
    for entry in table(kind):
        hits = matches(entry.patterns, flat, small) if entry.code not in seen else []
        if hits:
            seen.add(entry.code)
            match = min(hits, key=lambda hit: hit.start())
            found.append(Found(entry, match.start(), quote(flat, match.start(), match.end())))
    causes = [row for row in found if not row.entry.consequence]
    return causes or found


def explanation(row: Found, detail: Optional[str] = None) -> Explanation:
    """A match as an explanation."""
    return Explanation(row.entry.code, row.entry.cause, row.entry.remedy, detail, row.message)
