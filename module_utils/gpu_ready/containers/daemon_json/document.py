"""docker's daemon.json as text and as a value, through the standard library's parser.

An empty or blank file counts as ``{}``, because docker itself starts with it. What Go's parser refuses and Python's
accepts is refused here as well: NaN, Infinity, numbers outside the range of a double, UTF-16, a byte order mark.
"""

import json
import re
from typing import Any, Dict, List, NamedTuple, Tuple, Union

BLANK = " \t\r\n"
_FIRST_KEY = r'[ \t\r\n]*\{[ \t\r\n]*\n([ \t]*)"'
_SURROGATE = "[\ud800-\udfff]"


class DaemonJsonError(Exception):
    """The file is not a valid daemon.json. ``line`` and ``column`` count from 1; 0 means that there is no position."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__("line %d, column %d: %s" % (line, column, problem) if line else problem)
        self.problem = problem
        self.line = line
        self.column = column


class Document(NamedTuple):
    """``repeated`` lists keys that occur twice in one object; the last one counts, as in docker."""

    text: str
    value: Dict[str, Any]
    repeated: List[str]


def parse(data: Union[bytes, str, None]) -> Document:
    """Parse daemon.json; None means a missing file. Raises DaemonJsonError."""
    text = _decode(data) if isinstance(data, bytes) else (data or "")
    if not text.strip(BLANK):
        return Document(text, {}, [])
    if text.startswith("\ufeff"):
        raise DaemonJsonError("the file starts with a byte order mark")
    repeated: List[str] = []

    def build_object(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
        value = dict(pairs)
        names = [name for name, _ in pairs]
        repeated.extend(name for name in value if names.count(name) > 1)
        return value

    try:
        value = json.loads(
            text,
            object_pairs_hook=build_object,
            parse_int=_parse_int,
            parse_float=_parse_float,
            parse_constant=_refuse_number,
        )
    except json.JSONDecodeError as error:
        raise DaemonJsonError(error.msg[:1].lower() + error.msg[1:], error.lineno, error.colno) from None
    except _NumberError as error:
        literal = str(error)
        raise DaemonJsonError("%s is not a JSON number" % literal[:20], *_find_number(text, literal)) from None
    except RecursionError:
        raise DaemonJsonError("objects are nested too deeply") from None
    if not isinstance(value, dict):
        raise DaemonJsonError("the top level is %s, not an object" % type_name(value))
    return Document(text, value, repeated)


def format_like(value: Dict[str, Any], document: Document) -> str:
    """Format ``value`` with the indentation, separators, line ends and final newline of an existing file."""
    text = document.text
    body = text.strip(BLANK)
    first = re.match(_FIRST_KEY, text)
    one_line = bool(document.value) and "\n" not in body
    separators = (",", ":") if one_line and '": ' not in body else (", " if one_line else ",", ": ")
    formatted = json.dumps(
        value,
        indent=None if one_line else first.group(1) if first else 4,
        separators=separators,
        ensure_ascii="\\u" in text and all(ord(char) < 128 for char in text),
    )
    formatted = re.sub(_SURROGATE, lambda match: "\\u%04x" % ord(match.group(0)), formatted)
    if "\r\n" in text:
        formatted = formatted.replace("\n", "\r\n")
    return formatted + (text[len(text.rstrip(BLANK)) :] if body else "\n")


def type_name(value: Any) -> str:
    """Return the name the JSON type of a value with its article, for messages."""
    if isinstance(value, bool):
        return "a boolean"
    names = {type(None): "null", dict: "an object", list: "a list", str: "a string"}
    return names.get(type(value), "a number")


class _NumberError(Exception):
    """A number that Python's parser accepts and Go's does not."""


def _refuse_number(literal: str) -> Any:
    raise _NumberError(literal)


def _parse_float(literal: str) -> float:
    number = float(literal)
    return number if abs(number) != float("inf") else _refuse_number(literal)


def _parse_int(literal: str) -> int:
    _parse_float(literal)
    return int(literal)


def _find_number(text: str, literal: str) -> Tuple[int, int]:
    """Return the line and column of a number, not counting the same characters inside a string."""
    start = 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|' + re.escape(literal), text):
        if not match.group(0).startswith('"'):
            start = match.start()
            break
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def _decode(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in data[:4]:
        raise DaemonJsonError("the file is UTF-16 or binary data, not UTF-8 text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        raise DaemonJsonError(
            "byte 0x%02x is not UTF-8 text" % data[error.start],
            before.count("\n") + 1,
            len(before) - before.rfind("\n"),
        ) from None
