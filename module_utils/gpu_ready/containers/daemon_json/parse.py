"""Strict JSON that knows where each value stands: the text floor of daemon.json.

Complaints are worded twice, for people and as Go's scanner (docker) words them. An empty or blank text counts as
``{}``, because docker itself starts with it. Of a key that stands twice the last one counts.
"""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

BLANK = " \t\r\n"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
SPACES = BLANK + "\v\f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEEPEST = 200


class DaemonJsonError(Exception):
    """The file is not what docker's configuration may be.

    ``problem`` in plain words, ``line`` and ``column`` counted from 1, ``docker_error`` what docker says of it
    (None where docker reads the file all the same).
    """

    def __init__(self, problem: str, line: int = 1, column: int = 1, docker_error: Optional[str] = None) -> None:
        super().__init__("line %d, column %d: %s" % (line, column, problem))
        self.problem = problem
        self.line = line
        self.column = column
        self.docker_error = docker_error


class Node(NamedTuple):
    """One JSON value: its meaning and the place of its text; ``members`` of an object in the order of the file."""

    value: Any
    start: int
    end: int
    members: Tuple[Any, ...]


class Member(NamedTuple):
    """One ``"key": value`` of an object; ``start`` is the place of the key, ``key_end`` the one behind it."""

    key: str
    start: int
    key_end: int
    node: Node


class Document(NamedTuple):
    """A daemon.json that was read: its text, its meaning, and where each value stands (None in a blank file)."""

    text: str
    value: Dict[str, Any]
    root: Optional[Node]


def read(data: Union[bytes, str, None]) -> Document:
    """Return the document in ``data``; raises DaemonJsonError with line and column where it is not strict JSON."""
    text = _decode(data) if isinstance(data, bytes) else (data or "")
    if not text.strip(BLANK):
        return Document(text, {}, None)
    if text.startswith("\ufeff"):
        raise _encoded("UTF-8 byte order mark before the object", text[1:])
    root = _Scanner(text).document()
    if not isinstance(root.value, dict):
        name, go = type_names(root.value)
        raise DaemonJsonError(
            "top level is %s, not an object" % name,
            *_place(text, root.start),
            docker_error="json: cannot unmarshal %s into Go value of type map[string]interface {}" % go
            if root.value is not None
            else None,
        )
    return Document(text, root.value, root)


def _decode(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise _encoded("UTF-16 text with a byte order mark, not UTF-8", data.decode("utf-16", "replace"))
    if data.startswith(b"\xef\xbb\xbf"):
        raise _encoded("UTF-8 byte order mark before the object", data[3:].decode("utf-8", "replace"))
    if b"\0" in data[:4]:
        raise DaemonJsonError(
            "UTF-16 or binary data, not UTF-8 text",
            docker_error="invalid character '\\x00' looking for beginning of %s"
            % ("value" if data[:1] == b"\0" else "object key string"),
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _place(data[: error.start].decode("utf-8", "replace"), None)
        problem = "byte 0x%02x is not UTF-8 text" % data[error.start]
        raise _encoded(problem, data.decode("utf-8", "replace"), line, column) from error


def _encoded(problem: str, text: str, line: int = 1, column: int = 1) -> DaemonJsonError:
    """Return the complaint about an encoding that docker reads all the same: it starts when the rest is right."""
    try:
        read(text)
    except DaemonJsonError as error:
        return DaemonJsonError(problem, line, column, error.docker_error)
    return DaemonJsonError(problem, line, column)


def _place(text: str, position: Optional[int]) -> Tuple[int, int]:
    before = text if position is None else text[:position]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def type_names(value: Any) -> Tuple[str, str]:
    """Return what a value is, for people and as Go calls its type."""
    if value is None:
        return "null", "null"
    if isinstance(value, bool):
        return "true or false", "bool"
    if isinstance(value, list):
        return "a list", "array"
    if isinstance(value, str):
        return "a string", "string"
    return ("an object", "object") if isinstance(value, dict) else ("a number", "number")


def _letter(pair: "re.Match[str]") -> str:
    """Return the letter that JSON writes as two escapes."""
    high, low = map(ord, pair.group(0))
    return chr(0x10000 + (high - 0xD800) * 0x400 + low - 0xDC00)


class _Scanner:
    """A strict JSON reader that keeps places; it words its complaints twice, for people and as Go's scanner does."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.open: List[str] = []

    def document(self) -> Node:
        self._blank()
        node = self._value()
        self._blank()
        if self.at < len(self.text):
            self._fail("after top-level value")
        return node

    def _blank(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in BLANK:
            self.at += 1

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _fail(self, where: str, problem: Optional[str] = None) -> None:
        char = self._next()
        if not char:
            go = "unexpected end of JSON input"
        else:
            byte = char.encode("utf-8", "surrogatepass")[0]
            shown = {39: "\\'", 34: '"', 92: "\\\\", 9: "\\t", 10: "\\n", 13: "\\r"}.get(byte)
            if shown is None:
                shown = chr(byte) if 32 <= byte < 127 or byte > 160 else "\\x%02x" % byte
            go = "invalid character '%s' %s" % (shown, where)
        line, column = _place(self.text, self.at)
        raise DaemonJsonError(problem or self._problem(where), line, column, go)

    def _problem(self, where: str) -> str:
        """Say in plain words what a person did to get here."""
        rest = self.text[self.at :]
        char = rest[:1]
        before = self.text[: self.at].rstrip(BLANK)[-1:]
        if not char:
            return "the text ends too early: %s missing at the end" % " ".join(reversed(self.open or ["a value is"]))
        if rest.startswith(("{{", "{%", "{#")) or (char in "{%#" and before == "{" and self.at and "%}" in self.text):
            return "a Jinja2 template, not JSON"
        if char in SPACES:
            return "white space that JSON does not know (U+%04X)" % ord(char)
        if char == "#":
            return "comment (# ...)"
        if rest.startswith(("//", "/*")):
            return "comment (%s ...)" % rest[:2]
        if char in "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb":
            return "typographic quotes"
        if char == "'":
            return "single quotes where JSON wants double ones"
        word = (re.match(r"-?[A-Za-z_]+", rest) or re.match("", rest)).group(0)  # type: ignore[union-attr]
        if word.lstrip("-") in ("NaN", "Infinity", "I", "N"):
            return "%s is no JSON value" % word
        if word in ("True", "False", "None"):
            return "%s is Python, JSON says %s" % (word, {"True": "true", "False": "false", "None": "null"}[word])
        if char in "]}" and before == ",":
            return "trailing comma before %s" % char
        if where == "after top-level value":
            if char == "{":
                return "two top-level objects"
            if char == "}":
                return "a closing brace too many at the end"
            return "text behind the end of the object: %s" % rest.split("\n")[0][:40].strip()
        if where in ("after object key:value pair", "after array element"):
            if char in "]}":
                return "%s closes what %s opened" % (char, "{" if where.startswith("after object") else "[")
            return "a comma is missing before %s" % rest.split("\n")[0][:40].strip()
        if where == "after object key":
            return "a colon is missing behind the key"
        if char == ",":
            return "a comma too many, or a value is missing before it"
        if where.endswith("object key string"):
            return "a key in double quotes is expected, found %s" % rest.split("\n")[0][:40].strip()
        return "a value is expected, found %s" % rest.split("\n")[0][:40].strip()

    def _value(self) -> Node:
        char = self._next()
        if char == "{":
            return self._object()
        if char == "[":
            return self._array()
        start = self.at
        if char == '"':
            return Node(self._string(), start, self.at, ())
        for word, value in (("true", True), ("false", False), ("null", None)):
            if char and char == word[0]:
                for index, letter in enumerate(word):
                    if self._next() != letter:
                        self._fail("in literal %s (expecting '%s')" % (word, letter), "%s is misspelt" % word)
                    self.at = start + index + 1
                return Node(value, start, self.at, ())
        if char and char in "-0123456789":
            match = _NUMBER.match(self.text, self.at)
            if match is None:
                self.at += 1
                self._fail("in numeric literal", "no number follows the minus sign")
                raise AssertionError
            literal = match.group(0)
            self.at = match.end()
            self._after_number(literal)
            # Python 3.11 reads no integer of more than 4300 digits; its value is of no use to docker or to us.
            number = float(literal) if len(literal) > 300 or re.search("[.eE]", literal) else int(literal)
            return Node(number, start, self.at, ())
        self._fail("looking for beginning of value")
        raise AssertionError

    def _after_number(self, literal: str) -> None:
        """Refuse a number that goes on in a forbidden way (1. or 1e): Go names the place behind the good part."""
        char = self._next()
        if char == "." and "." not in literal and "e" not in literal.lower():
            self.at += 1
            self._fail("after decimal point in numeric literal", "digits are missing behind the decimal point")
        if char in ("e", "E") and "e" not in literal.lower():
            self.at += 2 if self.text[self.at + 1 : self.at + 2] in ("+", "-") else 1
            self._fail("in exponent of numeric literal", "digits are missing in the exponent")

    def _string(self) -> str:
        self.at += 1
        parts: List[str] = []
        while True:
            char = self._next()
            if not char:
                self._fail("in string literal", "a closing quote is missing")
            if char == '"':
                self.at += 1
                return _PAIR.sub(_letter, "".join(parts))
            if char < " ":
                self._fail("in string literal", "a line end or control character stands inside a string")
            if char != "\\":
                stop = self.at
                while stop < len(self.text) and self.text[stop] not in '"\\' and self.text[stop] >= " ":
                    stop += 1
                parts.append(self.text[self.at : stop])
                self.at = stop
                continue
            self.at += 1
            escape = self._next()
            if escape == "u":
                self.at += 1
                if not _HEX.match(self.text, self.at):
                    while self._next() and self._next() in "0123456789abcdefABCDEF":
                        self.at += 1
                    self._fail("in \\u hexadecimal character escape", "\\u wants four hexadecimal digits")
                parts.append(chr(int(self.text[self.at : self.at + 4], 16)))
                self.at += 4
            elif escape in _ESCAPES:
                parts.append(_ESCAPES[escape])
                self.at += 1
            else:
                self._fail("in string escape code", "backslash before %r: write two backslashes" % escape)

    def _enter(self, closing: str) -> None:
        if len(self.open) >= _DEEPEST:
            self._fail("exceeded max depth", "nested deeper than %d levels" % _DEEPEST)
        self.open.append(closing)
        self.at += 1
        self._blank()

    def _object(self) -> Node:
        start = self.at
        self._enter("}")
        members: List[Member] = []
        value: Dict[str, Any] = {}
        while self._next() != "}" or members:
            key_start = self.at
            if self._next() != '"':
                self._fail("looking for beginning of object key string")
            key = self._string()
            key_end = self.at
            self._blank()
            if self._next() != ":":
                self._fail("after object key")
            self.at += 1
            self._blank()
            node = self._value()
            members.append(Member(key, key_start, key_end, node))
            value[key] = node.value
            self._blank()
            if self._next() == "}":
                break
            if self._next() != ",":
                self._fail("after object key:value pair")
            self.at += 1
            self._blank()
        self.at += 1
        self.open.pop()
        return Node(value, start, self.at, tuple(members))

    def _array(self) -> Node:
        start = self.at
        self._enter("]")
        items: List[Any] = []
        while self._next() != "]" or items:
            items.append(self._value().value)
            self._blank()
            if self._next() == "]":
                break
            if self._next() != ",":
                self._fail("after array element")
            self.at += 1
            self._blank()
        self.at += 1
        self.open.pop()
        return Node(items, start, self.at, ())
