"""Strict TOML 1.0 parser and editor that keeps comments, order, spaces and line ends (tomllib: Python 3.11, no editor).

``parse`` returns the values and the position of each key and table. ``set_value`` and ``remove_key`` return a new text.
"""

import datetime
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union, cast

Path = Tuple[str, ...]
MAX_DEPTH = 100
"""Nesting limit of arrays and inline tables."""

_SURROGATE = re.compile("[\ud800-\udfff]")
"""What ``decode("utf-8", "surrogateescape")`` makes of an invalid byte."""
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_COMMENT = re.compile(r"#[^\x00-\x08\x0a-\x1f\x7f]*")
_LINE_END = re.compile(r"\r?\n|\Z")
_BASIC = re.compile(r'[^"\\\x00-\x08\x0a-\x1f\x7f]*')
_LITERAL = re.compile(r"[^'\x00-\x08\x0a-\x1f\x7f]*")
_BASIC_LINES = re.compile(r'(?:[^"\\\x00-\x08\x0b-\x1f\x7f]|\r\n)*')
_LITERAL_LINES = re.compile(r"(?:[^'\x00-\x08\x0b-\x1f\x7f]|\r\n)*")
_ESCAPE = re.compile(r'\\(?:([btnfr"\\])|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))')
_FOLD = re.compile(r"\\[ \t]*\r?\n[ \t\r\n]*")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "\\": "\\"}
_CLOCK = r"([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,6})\d*)?"
_TIME = re.compile(_CLOCK)
_DATE = re.compile(
    r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?:[Tt ]%s(?:([Zz])|([+-])([01]\d|2[0-3]):([0-5]\d))?)?" % _CLOCK
)
_RADIX = re.compile(r"0x[0-9A-Fa-f](?:_?[0-9A-Fa-f])*|0o[0-7](?:_?[0-7])*|0b[01](?:_?[01])*")
_NUMBER = re.compile(r"([+-]?(?:0|[1-9](?:_?\d)*))((?:\.\d(?:_?\d)*)?(?:[eE][+-]?\d(?:_?\d)*)?)", re.ASCII)
_WORD = re.compile(r"true|false|[+-]?inf|[+-]?nan")
_TABLE, _DOTTED, _PARENT, _ARRAY = "table", "dotted", "parent", "array"


class TomlError(ValueError):
    """Invalid TOML, or a text that cannot be edited in this way. ``line`` and ``column`` count from 1."""

    def __init__(self, problem: str, line: int, column: int) -> None:
        super().__init__("line %d, column %d: %s" % (line, column, problem))
        self.problem = problem
        self.line = line
        self.column = column


class TomlKey(NamedTuple):
    """One ``key = value``: full path, path of its table, offsets of its line and of its value."""

    path: Path
    table: Path
    start: int
    end: int
    value: Tuple[int, int]


class TomlHeader(NamedTuple):
    """One ``[table]`` or ``[[table]]``: its path and the offsets of its line."""

    path: Path
    start: int
    end: int
    array: bool


class TomlDocument(NamedTuple):
    """Keys and headers are in the order of the text."""

    text: str
    value: Dict[str, Any]
    keys: List[TomlKey]
    headers: List[TomlHeader]


def parse(text: Union[str, bytes, None]) -> TomlDocument:
    """Parse a file; None means a missing file, equal to an empty one. Raises TomlError."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", "surrogateescape")
    broken = _SURROGATE.search(text or "")
    if broken:
        raise _at(broken.string, broken.start(), "a byte that is not UTF-8")
    return _Reader(text or "").document()


def get_value(value: Any, path: Path) -> Any:
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value


class _Reader:
    """One pass over a text. ``kinds`` records by ``id()`` which tables may still be opened or extended, and how."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.root = {}  # type: Dict[str, Any]
        self.kinds = {id(self.root): _TABLE}
        self.keys = []  # type: List[TomlKey]
        self.headers = []  # type: List[TomlHeader]

    def fail(self, problem: str, at: Optional[int] = None) -> TomlError:
        return _at(self.text, self.at if at is None else at, problem)

    def take(self, pattern: "re.Pattern[str]") -> "Optional[re.Match[str]]":
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def eat(self, token: str) -> bool:
        found = self.text.startswith(token, self.at)
        self.at += len(token) if found else 0
        return found

    def need(self, token: str, where: str) -> None:
        if not self.eat(token):
            raise self.fail("%r is missing %s" % (token, where))

    def line_end(self) -> None:
        """Skip a comment and the end of the line."""
        self.take(_SPACE)
        self.take(_COMMENT)
        if not self.take(_LINE_END):
            raise self.fail("expected the end of the line")

    # ------------------------------------------------------------------------------------------------- statements

    def document(self) -> TomlDocument:
        table, path = self.root, ()  # type: Dict[str, Any], Path
        while self.at < len(self.text):
            start = self.at
            self.take(_SPACE)
            if self.text.startswith("[", self.at):
                table, path, array = self.header()
                self.line_end()
                self.headers.append(TomlHeader(path, start, self.at, array))
            elif _BARE.match(self.text, self.at) or self.text[self.at : self.at + 1] in ("'", '"'):
                names, value = self.pair(table)
                self.line_end()
                self.keys.append(TomlKey(path + names, path, start, self.at, value))
            else:
                self.line_end()
        return TomlDocument(self.text, self.root, self.keys, self.headers)

    def header(self) -> Tuple[Dict[str, Any], Path, bool]:
        start = self.at
        array = self.eat("[[")
        if not array:
            self.eat("[")
        self.take(_SPACE)
        names = self.names()
        self.need("]]" if array else "]", "after the name of a table")
        table = self.root
        for name in names[:-1]:
            table = self.parent(table, name, start)
        last = names[-1]
        existing = table.get(last)  # type: Any
        kind = self.kinds.get(id(existing)) if last in table else None
        if array:
            if last in table and kind != _ARRAY:
                raise self.fail("%s is not an array of tables" % dotted(names), start)
            rows = table.setdefault(last, [])
            self.kinds[id(rows)] = _ARRAY
            rows.append({})
            existing = rows[-1]
        elif last not in table:
            existing = table.setdefault(last, {})
        elif kind != _PARENT:
            raise self.fail("%s is defined twice" % dotted(names), start)
        self.kinds[id(existing)] = _TABLE
        return existing, names, array

    def parent(self, table: Dict[str, Any], name: str, start: int) -> Dict[str, Any]:
        """Return the parent table of a header, created if it is missing."""
        if name not in table:
            table[name] = {}
            self.kinds[id(table[name])] = _PARENT
        existing = table[name]
        kind = self.kinds.get(id(existing))
        if kind is None:
            raise self.fail("%s is a value, not a table that can be extended" % dotted((name,)), start)
        return cast(Dict[str, Any], existing[-1] if kind == _ARRAY else existing)

    def pair(self, table: Dict[str, Any], depth: int = 0) -> Tuple[Path, Tuple[int, int]]:
        start = self.at
        names = self.names()
        self.need("=", "after a key")
        self.take(_SPACE)
        for name in names[:-1]:
            if name not in table:
                table[name] = {}
            elif self.kinds.get(id(table[name])) not in (_DOTTED, _PARENT):
                raise self.fail("%s is defined already" % dotted((name,)), start)
            table = table[name]
            self.kinds[id(table)] = _DOTTED
        if names[-1] in table:
            raise self.fail("%s is defined twice" % dotted(names), start)
        begin = self.at
        table[names[-1]] = self.value(depth)
        return names, (begin, self.at)

    def names(self) -> Path:
        found = [self.name()]
        self.take(_SPACE)
        while self.eat("."):
            self.take(_SPACE)
            found.append(self.name())
            self.take(_SPACE)
        return tuple(found)

    def name(self) -> str:
        match = self.take(_BARE)
        if match:
            return match.group()
        if self.eat('"'):
            return self.basic()
        if self.eat("'"):
            return self.literal()
        raise self.fail("expected a key")

    # ----------------------------------------------------------------------------------------------------- values

    def value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise self.fail("arrays or tables are nested deeper than %d levels" % MAX_DEPTH)
        if self.eat('"""'):
            return self.lines(_BASIC_LINES, '"', True)
        if self.eat("'''"):
            return self.lines(_LITERAL_LINES, "'", False)
        if self.eat('"'):
            return self.basic()
        if self.eat("'"):
            return self.literal()
        if self.eat("["):
            return self.array(depth)
        if self.eat("{"):
            return self.inline(depth)
        return self.plain()

    def plain(self) -> Any:
        start = self.at
        match = self.take(_WORD)
        if match:
            word = match.group()
            return word == "true" if word in ("true", "false") else float(word)
        match = self.take(_DATE)
        if match:
            try:
                return _date(match)
            except ValueError as error:
                raise self.fail("a date that does not exist (%s)" % error, start) from None
        match = self.take(_TIME)
        if match:
            return datetime.time(*_clock(match.groups()))
        match = self.take(_RADIX)
        if match:
            return int(match.group().replace("_", ""), 0)
        match = self.take(_NUMBER)
        if match:
            text = match.group().replace("_", "")
            try:
                return float(text) if match.group(2) else int(text)
            except ValueError as error:
                raise self.fail("a number that is too long (%s)" % error, start) from None
        raise self.fail("expected a value")

    def basic(self) -> str:
        found = []
        while True:
            match = self.take(_BASIC)
            found.append(match.group() if match else "")
            if self.eat('"'):
                return "".join(found)
            found.append(self.escape())

    def escape(self) -> str:
        start = self.at
        match = self.take(_ESCAPE)
        if match is None:
            what = "an unknown escape" if self.text.startswith("\\", start) else "an end of line or a control character"
            raise self.fail("%s in a string" % what, start)
        if match.group(1):
            return _ESCAPES[match.group(1)]
        number = int(match.group(2) or match.group(3), 16)
        if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
            raise self.fail("an escape that is not a character", start)
        return chr(number)

    def literal(self) -> str:
        match = self.take(_LITERAL)
        self.need("'", "at the end of a string")
        return match.group() if match else ""

    def lines(self, pattern: "re.Pattern[str]", quote: str, escapes: bool) -> str:
        """Parse the rest of a multi-line string; its line ends become newlines."""
        start = self.at
        if not self.eat("\r\n"):
            self.eat("\n")
        found = []
        while True:
            match = self.take(pattern)
            found.append(match.group().replace("\r\n", "\n") if match else "")
            rest = self.text[self.at : self.at + 5]
            quotes = len(rest) - len(rest.lstrip(quote))
            self.at += quotes
            if quotes >= 3:
                return "".join(found) + quote * (quotes - 3)  # one or two more belong to the string
            found.append(quote * quotes)
            if self.at >= len(self.text):
                raise self.fail("a multi-line string has no end", start)
            if quotes or escapes and self.take(_FOLD):
                continue
            if not escapes:
                raise self.fail("a control character in a string")
            found.append(self.escape())

    def blank(self) -> None:
        while True:
            self.take(_SPACE)
            if self.text.startswith("#", self.at):
                self.take(_COMMENT)
                if not self.take(_LINE_END):
                    raise self.fail("a character that is not allowed in a comment")
            elif not (self.eat("\n") or self.eat("\r\n")):
                return

    def array(self, depth: int) -> List[Any]:
        found = []  # type: List[Any]
        self.blank()
        while not self.eat("]"):
            found.append(self.value(depth + 1))
            self.blank()
            if self.eat("]"):
                break
            self.need(",", "between the values of an array")
            self.blank()
        return found

    def inline(self, depth: int) -> Dict[str, Any]:
        found = {}  # type: Dict[str, Any]
        self.kinds[id(found)] = _TABLE
        self.take(_SPACE)
        if not self.eat("}"):
            while True:
                self.pair(found, depth + 1)
                self.take(_SPACE)
                if self.eat("}"):
                    break
                self.need(",", "between the keys of an inline table")
                self.take(_SPACE)
        self.freeze(found)
        return found

    def freeze(self, value: Any) -> None:
        """Forbid extensions of a complete inline table."""
        if isinstance(value, dict):
            self.kinds.pop(id(value), None)
            for child in value.values():
                self.freeze(child)


def _clock(groups: Any) -> Tuple[int, int, int, int]:
    hour, minute, second, part = groups[:4]
    return int(hour), int(minute), int(second), int((part or "").ljust(6, "0"))


def _date(match: "re.Match[str]") -> Any:
    groups = match.groups()
    day = datetime.date(int(groups[0]), int(groups[1]), int(groups[2]))
    if groups[3] is None:
        return day
    zone = None  # type: Optional[datetime.tzinfo]
    if groups[7]:
        zone = datetime.timezone.utc
    elif groups[8]:
        offset = datetime.timedelta(hours=int(groups[9]), minutes=int(groups[10]))
        zone = datetime.timezone(offset if groups[8] == "+" else -offset)
    return datetime.datetime.combine(day, datetime.time(*_clock(groups[3:7]), tzinfo=zone))


# --------------------------------------------------------------------------------------------------------- writing


def dotted(path: Path) -> str:
    """Return a path in TOML's notation: ``plugins."io.containerd.grpc.v1.cri".containerd``."""
    return ".".join(name if _BARE.match(name) and _BARE.sub("", name, 1) == "" else quote(name) for name in path)


def quote(text: str) -> str:
    found = []
    for character in text:
        if character in '"\\':
            character = "\\" + character
        elif ord(character) < 0x20 or ord(character) == 0x7F:
            character = "\\u%04X" % ord(character)
        found.append(character)
    return '"%s"' % "".join(found)


def format_value(value: Any) -> str:
    """Return TOML text of a string, boolean, integer, or a list of those."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[%s]" % ", ".join(format_value(one) for one in value)
    return str(value) if isinstance(value, int) else quote(str(value))


def set_value(text: Optional[str], path: Path, value: Any) -> str:
    """Return the text with ``value`` at ``path``. Raises TomlError where a parent is not an ordinary table."""
    document = parse(text)
    text = document.text
    if get_value(document.value, path) == value and type(get_value(document.value, path)) is type(value):
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    existing = [key for key in document.keys if key.path == path]
    if existing:
        begin, end = existing[0].value
        return text[:begin] + format_value(value) + text[end:]
    for key in document.keys:
        if key.path == path[: len(key.path)]:
            raise _at(text, key.start, "%s is written in one line; write it as a [table]" % dotted(key.path))
    for header in document.headers:
        if header.array and header.path == path[: len(header.path)]:
            raise _at(text, header.start, "%s is an array of tables" % dotted(header.path))
    if get_value(document.value, path) is not None:
        raise TomlError("%s is a table" % dotted(path), 1, 1)
    neighbours = [key for key in document.keys if key.path[: len(path) - 1] == path[:-1] and len(key.table) < len(path)]
    opened = [header for header in document.headers if header.path == path[:-1]]
    if neighbours:
        last = neighbours[-1]
        line = _indentation(text, last.start) + dotted(path[len(last.table) :]) + " = " + format_value(value) + newline
        return _insert(text, last.end, line, newline)
    if opened:
        margin = _indentation(text, opened[0].start)
        line = (margin and margin + "  ") + dotted(path[-1:]) + " = " + format_value(value) + newline
        return _insert(text, opened[0].end, line, newline)
    line = dotted(path[-1:]) + " = " + format_value(value) + newline
    if len(path) == 1:
        return line + text
    gap = newline if text and not text.endswith(newline * 2) else ""
    return _insert(text, len(text), gap + "[%s]" % dotted(path[:-1]) + newline + line, newline)


def remove_key(text: str, path: Path) -> str:
    """Return the text without a key and without the headers of parent tables that become empty."""
    existing = [key for key in parse(text).keys if key.path == path]
    if not existing:
        return text
    text = text[: existing[0].start] + text[existing[0].end :]
    for length in range(len(path) - 1, 0, -1):
        document = parse(text)
        alone = [header for header in document.headers if header.path == path[:length] and not header.array]
        if get_value(document.value, path[:length]):
            break
        if alone:
            before, rest = text[: alone[0].start], text[alone[0].end :]
            text = (before if rest else re.sub(r"(\A|\n)\r?\n\Z", r"\1", before)) + rest
    return text


def _indentation(text: str, at: int) -> str:
    match = _SPACE.match(text, at)
    return match.group() if match else ""


def _insert(text: str, at: int, line: str, newline: str) -> str:
    """Insert complete lines; a last line without a line end gets one."""
    before = text[:at]
    return before + (newline if before and not before.endswith("\n") else "") + line + text[at:]


def _at(text: str, at: int, problem: str) -> TomlError:
    before = text[:at]
    return TomlError(problem, before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
