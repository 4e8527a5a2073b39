"""Tables and messages about many hosts as lines of text. Pure: values in, lines out."""

import ipaddress
import re
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from ....module_utils.gpu_ready.base.plain_text import plain_text

WIDTH = 150
GAP = "  "
NOTHING = "-"
LONGEST_CELL = 80
"""Characters of a cell that are shown: more than any honest host answers. The JSON file has all of them."""
EACH = 40
"""Hosts up to which each has a row of its own: a table that fits one screen."""
MOST_ROWS = 25
MOST_MESSAGES = 25
"""Rows and messages that are shown: a fleet whose hosts all differ would fill thousands of lines."""
MOST_NAMES = 60
"""Names that a message lists: what a person copies into ``--limit``."""

Columns = tuple[tuple[str, str, int], ...]
"""Key, heading and least width of each column."""


class Message(NamedTuple):
    """What there is to read about a host. ``state``: in words. ``texts``: one paragraph each."""

    host: str
    state: str
    texts: tuple[str, ...]


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """Return a key for sorting: gpu2 comes before gpu10."""
    parts = re.findall(r"([0-9]{1,18})|([^0-9]+|[0-9])", name)
    return [(0, int(number), "") if number else (1, 0, text) for number, text in parts] + [(-1, 0, name)]


def table_rows(rows: Sequence[tuple[bool, list[str]]], rest: str) -> list[list[str]]:
    """Return the rows of a table from (whether the host is in a good state, its cells) per host.

    One row per host; of more than :data:`EACH` hosts one row for all with the same cells, good ones last, the largest
    groups where there are too many. The first cell of a row is the name. ``rest``: where the other rows are; without it
    all are shown.
    """
    if len(rows) <= EACH:
        return [row for _, row in rows]
    equal: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    for good, (name, *cells) in rows:
        equal.setdefault((good, tuple(cells)), []).append(name)
    largest = sorted(equal.items(), key=lambda group: -len(group[1]))
    most = MOST_ROWS if rest else len(largest)
    shown = [
        [names_text(names, 1), *cells] for (_, cells), names in sorted(largest[:most], key=lambda group: group[0][0])
    ]
    others = sum(len(names) for _, names in largest[most:])
    if others:
        shown.append(["and %d more" % others, *[NOTHING] * (len(shown[0]) - 2), rest])
    return shown


def message_lines(messages: Sequence[Message], width: int, rest: str) -> list[str]:
    """Return the messages of hosts: equal ones once, with all their hosts, in the words of the first.

    Where there are too many, those that concern the most hosts. ``rest``: where to read all; without it all are shown.
    """
    equal: dict[tuple[str, ...], list[Message]] = {}
    for one in messages:
        equal.setdefault((one.state, *[without_host(text, one.host) for text in one.texts]), []).append(one)
    groups = list(equal.values())
    most = MOST_MESSAGES if rest else len(groups)
    if len(groups) > most:
        groups.sort(key=lambda group: -len(group))
    lines: list[str] = []
    for group in groups[:most]:
        first = group[0]
        example = " (the text of %s)" % first.host if any(one.texts != first.texts for one in group) else ""
        names = names_text([one.host for one in group], MOST_NAMES)
        lines += ["", *wrapped("%s: %s%s" % (names, first.state, example), width)]
        for text in first.texts:
            lines += paragraph(text, width)
    others = [one.host for group in groups[most:] for one in group]
    if others:
        lines += ["", *wrapped("%s: other messages; %s" % (names_text(others, MOST_NAMES), rest), width)]
    return lines


def without_host(text: str, host: str) -> str:
    """Return the text without the host's name and without addresses: equal for hosts that fail alike."""
    text = re.sub(r"(?<![\w.-])%s(?![\w-])" % re.escape(host), "HOST", text)
    return re.sub(r"[0-9A-Fa-f:.]*[:.][0-9A-Fa-f:.]*", lambda found: _address(found.group()), text)


def _address(text: str) -> str:
    try:
        ipaddress.ip_address(text.rstrip(".:"))
    except ValueError:
        return text
    return "ADDRESS"


def one_line(value: object) -> str:
    """Return a value as plain text without line breaks; "" for None."""
    return "" if value is None else plain_text(" ".join(str(value).split()))


def rows_text(rows: Sequence[list[str]], columns: Columns, width: int = WIDTH, same: Sequence[str] = ()) -> list[str]:
    """Return the table's lines: headings, a rule and the rows, whose first cell is a name of the inventory.

    Where the table is too wide, columns are left out that say nothing, then cells are wrapped. What still has no place
    follows each row on lines of its own: "heading cell, heading cell". ``same``: keys of columns of which the first is
    enough where they are equal in every row.
    """
    shown = [row[:1] + [shortened(cell) for cell in row[1:]] for row in rows]
    indexes = list(range(len(columns)))
    if not fits(indexes, columns, width):
        indexes = informative_columns(shown, columns, same)
    first = first_line_columns(indexes, columns, width)
    rest = [index for index in indexes if index not in first]
    chosen = [columns[index] for index in first]
    lines = [[heading for _, heading, _ in chosen], *([row[index] for index in first] for row in shown)]
    sizes = widths(lines, width, chosen)
    text = [*wrap_row(lines[0], sizes), GAP.join("-" * size for size in sizes)]
    for row, line in zip(shown, lines[1:], strict=True):
        text += wrap_row(line, sizes)
        more = ["%s %s" % (columns[index][1], row[index]) for index in rest if row[index] != NOTHING]
        text += wrapped(", ".join(more), width, "  ") if more else []
    return text


def fits(indexes: Sequence[int], columns: Columns, width: int) -> bool:
    """Return whether these columns fit at the least width of each."""
    return sum(columns[index][2] for index in indexes) + len(GAP) * (len(indexes) - 1) <= width


def informative_columns(rows: Sequence[list[str]], columns: Columns, same: Sequence[str]) -> list[int]:
    """Return the columns without those that are empty in every row, and those that repeat the first of ``same``."""
    equal = [index for index, (key, _, _) in enumerate(columns) if key in same]
    repeated = {index for index in equal[1:] if all(row[index] == row[equal[0]] for row in rows)}
    return [
        index
        for index in range(len(columns))
        if index in (0, len(columns) - 1) or (index not in repeated and any(row[index] != NOTHING for row in rows))
    ]


def first_line_columns(indexes: Sequence[int], columns: Columns, width: int) -> list[int]:
    """Return the columns of a row's first line: the first one, the last one, and from the left what fits between."""
    chosen = [indexes[0], indexes[-1]] if len(indexes) > 1 else list(indexes)
    for index in indexes[1:-1]:
        if not fits([*chosen, index], columns, width):
            break
        chosen.append(index)
    return sorted(chosen)


def shortened(text: str, most: int = LONGEST_CELL) -> str:
    """Return a text of at most ``most`` characters, with dots in place of its end."""
    return text if len(text) <= most else text[: most - 3] + "..."


def widths(lines: list[list[str]], width: int, columns: Sequence[tuple[str, str, int]]) -> list[int]:
    """Return the width of each column: the width of its text, reduced from the widest column on until the table fits.

    The first one is reduced last: whatever hosts answer, their names can be read and searched for.
    """
    found = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    available = width - len(GAP) * (len(columns) - 1)
    while sum(found) > available:
        spare = [
            (index > 0, found[index] - least, index)
            for index, (_, _, least) in enumerate(columns)
            if found[index] > least
        ]
        if not spare:
            break
        found[max(spare)[2]] -= 1
    return found


def note_lines(heading: str, notes: Sequence[tuple[str, str]], width: int, rest: str) -> list[str]:
    """Return notes (host, text) below a heading, each text once with its hosts: one paragraph for 200 equal hosts."""
    about: dict[str, list[str]] = {}
    for name, text in notes:
        about.setdefault(text, []).append(name)
    lines = ["", heading] if about else []
    most = MOST_MESSAGES if rest else len(about)
    for text in list(about)[:most]:
        lines += paragraph("%s: %s" % (names_text(about[text]), text), width)
    if len(about) > most:
        lines.append("  and %d more; %s" % (len(about) - most, rest))
    return lines


def names_text(names: list[str], most: int = 5) -> str:
    """Return names separated by commas; only the first ones of many."""
    return ", ".join(names[:most]) + (" and %d more" % (len(names) - most) if len(names) > most else "")


def wrap_row(line: list[str], sizes: list[int]) -> list[str]:
    """Return one row of the table, over as many lines of text as its longest cell needs."""
    columns = [textwrap.wrap(cell, sizes[index], break_on_hyphens=False) or [""] for index, cell in enumerate(line)]
    height = max(len(column) for column in columns)
    return [
        GAP.join(
            (column[level] if level < len(column) else "").ljust(sizes[index]) for index, column in enumerate(columns)
        ).rstrip()
        for level in range(height)
    ]


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """Return a text over as many lines as it needs; long paths and URLs are not broken."""
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def paragraph(text: str, width: int) -> list[str]:
    """Return a message in full, indented and wrapped."""
    return wrapped(text, width, "  ")


def counts_text(counts: dict[str, int], total: int) -> str:
    """Return the last line: the number of hosts by result."""
    parts = [
        "%d %s" % (counts[key], key.replace("_", " ")) for key in sorted(counts, key=lambda key: (-counts[key], key))
    ]
    return "%s: %s" % (counted(total, "host"), ", ".join(parts) or "none")


def size_text(size: int) -> str:
    """Return a number of bytes as people say it: "850 kB", "40 MB", "1.2 GB"."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6)):
        if size >= factor:
            return ("%.1f %s" if size < 10 * factor else "%.0f %s") % (size / factor, unit)
    return "%d kB" % max(1, size // 1000)


def counted(count: int, name: str, ending: str = "s") -> str:
    """Return a number of things in words: "1 step", "3 steps"; ``ending``: of several."""
    return "%d %s%s" % (count, name, "" if count == 1 else ending)
