r"""Texts that somebody pasted: their lines with numbers, joined to one line for patterns, and quotes from them.

Programs, terminals, mailers and logs break lines anywhere, colour them and write newlines as ``#012`` or ``\n``.
Patterns are therefore tried on one joined line, which still shows from which line of the pasted text a position is.
"""

import functools
import html
import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from ....module_utils.gpu_ready.base.log_texts import ESCAPES
from ....module_utils.gpu_ready.base.long_lines import cut_lines

UNSEEN = re.compile("[\x00\x07\x08\u200b\ufeff]")
LOGGED_NEWLINE = re.compile(r"#012|\r")
ESCAPED_NEWLINE = re.compile(r"\\{1,16}n")
QUOTED = re.compile(r'^\s*"([^\n]*)",?\s*$')
BEGINNING = re.compile(
    r"(?:: |; |\.go:\d+\] )(?=[^\W\d_]|[\"'`/<\[\\-])"
    r"|[=:(\[] ?\\{0,8}\"(?=[^\W_]|[/<\[-])"
    r"|[.!?]\)? (?=[^\W\d_a-z]|[\"'`/<\[-])|[。！？；：](?=\S)"
)
"""Where a message may begin in its line: behind a program's name, an opening quote, a full stop.

A number is no beginning: it is a part of a list ("Xid (PCI:...): 79, pid=1") or of a message.
"""
OPENED = {")": "(", "]": "[", "}": "{"}
END = re.compile(r"[.!?](?= |$)|</|\\?\",? ?(?:\w+[=:]|$)|[;,] stdout: ")
"""Where it ends: a full stop, the end of an XML element or of a quoted field."""
WORD = re.compile(r"(?<=\s)[^\W_]")
OPENS = re.compile(r"(?:The|This|These|An?|If|Your?|Please) ")
CONTINUES = re.compile(r"\(PCI ID|[a-z]+(?:\.ko)? ")
"""How a broken message begins, and how its next line does; messages that begin with a function's name are others."""
LONGEST = 200
LONGEST_BEGINNING = 100
CUT_BEGINNING = 40
"""How much of a message whose beginning is further away than the former is quoted before the match."""


class Line(NamedTuple):
    """A line without colours; ``number`` counts the lines of the pasted text, from 1."""

    number: int
    text: str


class Flat(NamedTuple):
    """A text on one line. ``starts``: the position of each line in it; ``numbers``: of each line.

    ``begins``: the positions of the lines that do not continue the message of the line before.
    """

    text: str
    starts: list[int]
    numbers: list[int]
    begins: list[int]

    def _index(self, position: int) -> int:
        return max(0, bisect_right(self.starts, position) - 1)

    def line(self, position: int) -> int | None:
        """Return the number of the line at a position, None for an empty text."""
        return self.numbers[self._index(position)] if self.numbers else None

    def message_start(self, position: int) -> int:
        """Return where the message at a position begins, which may be in an earlier line."""
        place = bisect_right(self.begins, position) - 1
        return self.begins[place] if place >= 0 else 0

    def line_end(self, position: int) -> int:
        """Return where the line at a position ends."""
        following = self._index(position) + 1
        return self.starts[following] if following < len(self.starts) else len(self.text)

    def quote(self, start: int, end: int) -> str:
        """Return the message around a match: from its beginning to its end, within the lines of the match, shortened.

        A quote that begins within a message, or ends in one, has three dots there.
        """
        line = self.message_start(start)
        first = max(line, start - LONGEST_BEGINNING)
        places = [match.end() for match in BEGINNING.finditer(self.text, max(line, first - 1), start + 1)]
        begun = [place for place in places if first <= place <= start and is_complete(self.text[place:start])]
        begin = (
            begun[-1]
            if begun
            else line
            if first == line
            else word_start(self.text, max(line, start - CUT_BEGINNING), start)
        )
        last = self.line_end(max(begin, end - 1))
        stop = END.search(self.text, end, last)
        found = self.text[begin : stop.start() if stop else last].strip(" .!?;:,")
        found = "..." + found if not begun and begin != line else found
        return found if len(found) <= LONGEST else found[: LONGEST - 3] + "..."


def is_complete(text: str) -> bool:
    """Return False for a text that closes a bracket or quotation which it does not open: it began within one."""
    opened: list[str] = []
    before = " "
    for letter in text:
        if letter in OPENED:
            if OPENED[letter] not in opened:
                return False
            while opened.pop() != OPENED[letter]:
                pass
        elif letter in "([{":
            opened.append(letter)
        elif letter == '"' and '"' in opened:
            while opened.pop() != '"':
                pass
        elif letter == '"':
            if before.isalnum() or before in ".!?)]}":
                return False
            opened.append(letter)
        before = before if letter == "\\" else letter
    return True


def word_start(text: str, first: int, position: int) -> int:
    """Return the first word behind ``first`` from which a text is complete (:func:`is_complete`), else ``position``."""
    places = [match.start() for match in WORD.finditer(text, first, position + 1)]
    return next((place for place in places if is_complete(text[place:position])), position)


def lines_of(text: str) -> list[Line]:
    """Return the lines of a pasted text without colours and invisible characters; escaped newlines end a line too."""
    return list(split_lines(text))


@functools.lru_cache(maxsize=2)
def split_lines(text: str) -> tuple[Line, ...]:
    """Split a text for :func:`lines_of`. Cached: every reader of a kind asks for all lines."""
    if text.count("&lt;") > 1 and text.count("&gt;") > 1:  # copied from a page's source
        text = html.unescape(text)
    text = UNSEEN.sub("", ESCAPES.sub("", cut_lines(text))).replace("\u00a0", " ").replace("\r\n", "\n")
    # A string of JSON, as Ansible and journals print a program's output.
    escaped = text.count("\\n") > text.count("\n") + len(LOGGED_NEWLINE.findall(text))
    found: list[Line] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = LOGGED_NEWLINE.sub("\n", line)
        if escaped:
            line = line.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
        found += [Line(number, part) for part in line.split("\n")]
    bare = [QUOTED.match(line.text) for line in found]
    if 2 * sum(1 for match in bare if match) > sum(1 for line in found if line.text.strip()):  # JSON: stdout_lines
        return tuple(Line(line.number, match.group(1)) if match else line for line, match in zip(found, bare))  # noqa: B905
    return tuple(found)


def plain(text: str) -> str:
    """Return a text without colours and invisible characters, its line ends as newlines."""
    return "\n".join(line.text for line in lines_of(text))


def flatten(lines: Iterable[Line], separator: str = " ", wrapped: bool = False) -> Flat:
    """Return lines on one line, every gap one blank. ``separator`` "": words that a narrow terminal broke are joined.

    ``wrapped``: lines of a program that breaks its messages over several of them.
    """
    texts: list[str] = []
    starts: list[int] = []
    numbers: list[int] = []
    begins: list[int] = []
    place, is_open = 0, False
    for line in lines:
        parts = ESCAPED_NEWLINE.split(line.text) if separator else [line.text]
        for part in parts:
            words = " ".join(part.split())
            if words:
                continues = wrapped and is_open and CONTINUES.match(words) is not None
                begins += [] if continues else [place]
                is_open = (continues or OPENS.match(words) is not None) and words[-1] not in ".!?:;"
                starts.append(place)
                numbers.append(line.number)
                texts.append(words)
                place += len(words) + len(separator)
    return Flat(separator.join(texts), starts, numbers, begins)


def chain(first: Flat, separator: str, second: Flat) -> Flat:
    """Return one text behind another."""
    behind = len(first.text) + len(separator)
    starts, begins = ([behind + place for place in places] for places in (second.starts, second.begins))
    numbers = first.numbers + second.numbers
    return Flat(first.text + separator + second.text, first.starts + starts, numbers, first.begins + begins)


def flat(text: str) -> Flat:
    """Return a pasted text on one line."""
    return flatten(lines_of(text))


def glued(text: str) -> Flat:
    """Join the lines of a pasted text that a terminal broke in mid-word."""
    return flatten(lines_of(text), "")


def joined(text: str) -> str:
    """Return a pasted text on one line, without the numbers of its lines."""
    return flat(text).text
