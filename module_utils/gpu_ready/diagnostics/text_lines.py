r"""Texts that somebody pasted: their lines with numbers, joined to one line for patterns, and quotes from them.

Programs, terminals, mailers and logs break lines anywhere, colour them and write newlines as ``#012`` or ``\n``.
Patterns are therefore tried on one joined line, which still shows from which line of the pasted text a position is.
"""

import re
from bisect import bisect_right
from typing import Iterable, List, NamedTuple, Optional

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?|[@-Z\\^_])")
UNSEEN = re.compile("[\x00\x07\x08\u200b\ufeff]")
LOGGED_NEWLINE = re.compile(r"#012|\r")
ESCAPED_NEWLINE = re.compile(r"\\{1,16}n")
QUOTED = re.compile(r'^\s*"([^\n]*)",?\s*$')
BEGINNING = re.compile(r"(?:: |[.!?;] |[=:(\[] ?\\?\")(?=\S)")
"""Where a message begins within its line: behind the names of the programs that passed it on."""
END = re.compile(r"[.!?](?= |$)|</|\\?\",? ?(?:\w+[=:]|$)|[;,] stdout: ")
"""Where it ends: a full stop, the end of an XML element or of a quoted field."""
LONGEST = 200
LONGEST_BEGINNING = 100


class Line(NamedTuple):
    """A line without colours; ``number`` is that of the pasted text, from 1."""

    number: int
    text: str


class Flat(NamedTuple):
    """A text on one line. ``starts``: the position of each line in it; ``numbers``: of each line."""

    text: str
    starts: List[int]
    numbers: List[int]

    def _index(self, position: int) -> int:
        return max(0, bisect_right(self.starts, position) - 1)

    def line(self, position: int) -> Optional[int]:
        """The number of the line at a position, None for an empty text."""
        return self.numbers[self._index(position)] if self.numbers else None

    def line_start(self, position: int) -> int:
        """Where the line at a position begins."""
        return self.starts[self._index(position)] if self.starts else 0

    def line_end(self, position: int) -> int:
        """Where the line at a position ends."""
        following = self._index(position) + 1
        return self.starts[following] if following < len(self.starts) else len(self.text)

    def quote(self, start: int, end: int) -> str:
        """The message around a match: from its beginning to its end, within the lines of the match, shortened."""
        first = max(self.line_start(start), start - LONGEST_BEGINNING)
        begun = [match.end() for match in BEGINNING.finditer(self.text, first, start + 1)]
        word = max(self.text.rfind(" ", 0, start) + 1, self.line_start(start))
        start = begun[-1] if begun else self.line_start(start) if first == self.line_start(start) else word
        last = self.line_end(max(start, end - 1))
        stop = END.search(self.text, end, last)
        found = self.text[start : stop.start() if stop else last].strip(" .!?;:,")
        return found if len(found) <= LONGEST else found[: LONGEST - 3] + "..."


def lines_of(text: str) -> List[Line]:
    """The lines of a pasted text without colours and invisible characters; escaped newlines end a line too."""
    text = UNSEEN.sub("", ESCAPES.sub("", text)).replace("\u00a0", " ").replace("\r\n", "\n")
    # A string of JSON, as Ansible and journals print a program's output.
    escaped = text.count("\\n") > text.count("\n") + len(LOGGED_NEWLINE.findall(text))
    found: List[Line] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = LOGGED_NEWLINE.sub("\n", line)
        if escaped:
            line = line.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
        found += [Line(number, part) for part in line.split("\n")]
    bare = [QUOTED.match(line.text) for line in found]
    if 2 * sum(1 for match in bare if match) > sum(1 for line in found if line.text.strip()):  # JSON: stdout_lines
        return [Line(line.number, match.group(1)) if match else line for line, match in zip(found, bare)]  # noqa: B905
    return found


def plain(text: str) -> str:
    """A text without colours and invisible characters, its line ends as newlines."""
    return "\n".join(line.text for line in lines_of(text))


def flatten(lines: Iterable[Line], separator: str = " ") -> Flat:
    """Lines on one line, every gap one blank. ``separator`` "": words that a narrow terminal broke are joined."""
    texts: List[str] = []
    starts: List[int] = []
    numbers: List[int] = []
    place = 0
    for line in lines:
        parts = ESCAPED_NEWLINE.split(line.text) if separator else [line.text]
        for part in parts:
            words = " ".join(part.split())
            if words:
                starts.append(place)
                numbers.append(line.number)
                texts.append(words)
                place += len(words) + len(separator)
    return Flat(separator.join(texts), starts, numbers)


def chain(first: Flat, separator: str, second: Flat) -> Flat:
    """One text behind another."""
    behind = len(first.text) + len(separator)
    starts = first.starts + [behind + start for start in second.starts]
    return Flat(first.text + separator + second.text, starts, first.numbers + second.numbers)


def flat(text: str) -> Flat:
    """A pasted text on one line."""
    return flatten(lines_of(text))


def glued(text: str) -> Flat:
    """A pasted text whose lines were broken within words, on one line."""
    return flatten(lines_of(text), "")


def joined(text: str) -> str:
    """A pasted text on one line, without the numbers of its lines."""
    return flat(text).text
