"""daemon.json for gpu-explain: a strict parser whose messages name the mistake that was made, and docker's own message.

Each error is worded twice, in plain English and as Go's JSON scanner (docker) words it. The product itself uses the
standard library's parser (containers/daemon_json/document.py).
"""

import re
from typing import Any, Dict, List, Optional, Tuple

from ..containers.daemon_json.document import type_name

BLANK = " \t\r\n"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
SPACES = BLANK + "\v\f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEEPEST = 200
_REFUSE = "refuse to edit, leave the file as it is, tell the user"  # third-party text: the index of the samples
_ENCODE = "save the file as UTF-8 without a byte order mark"
_TYPOGRAPHIC = "\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u00ab\u00bb\uff02"
_STRAIGHT = ("typographic quotes", 'replace them with straight ones (") in the whole file')
_EMPTY = "treat as an empty object: Docker itself starts with such a file"


class SyntaxProblem(Exception):
    """``line`` and ``column`` count from 1; ``docker_error`` is docker's message, None where docker reads the file.

    ``remedy``: what a person changes in the file.
    """

    def __init__(
        self, problem: str, remedy: str, line: int = 1, column: int = 1, docker_error: Optional[str] = None
    ) -> None:
        super().__init__("line %d, column %d: %s" % (line, column, problem))
        self.problem = problem
        self.remedy = remedy
        self.line = line
        self.column = column
        self.docker_error = docker_error


def parse(data: bytes) -> Dict[str, Any]:
    """Parse daemon.json, an empty file as ``{}``; of a repeated key the last one counts. Raises SyntaxProblem."""
    return _parse_text(_decode(data))


def _parse_text(text: str) -> Dict[str, Any]:
    if not text.strip(BLANK):
        return {}
    if text.startswith("\ufeff"):
        raise _wrong_encoding("UTF-8 byte order mark before the object", text[1:])
    scanner = _Scanner(text)
    value = scanner.document()
    if not isinstance(value, dict):
        raise SyntaxProblem(
            "top level is %s, not an object" % type_name(value),
            "write one object, { ... }, with docker's settings",
            *_position(text, len(text) - len(text.lstrip(BLANK))),
            docker_error="json: cannot unmarshal %s into Go value of type map[string]interface {}" % _go_type(value)
            if value is not None
            else None,
        )
    return value


def _decode(data: bytes) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise _wrong_encoding("UTF-16 text with a byte order mark, not UTF-8", data.decode("utf-16", "replace"))
    if data.startswith(b"\xef\xbb\xbf"):
        raise _wrong_encoding("UTF-8 byte order mark before the object", data[3:].decode("utf-8", "replace"))
    if b"\0" in data[:4]:
        raise SyntaxProblem(
            "UTF-16 or binary data, not UTF-8 text",
            _ENCODE,
            docker_error="invalid character '\\x00' looking for beginning of %s"
            % ("value" if data[:1] == b"\0" else "object key string"),
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line, column = _position(data[: error.start].decode("utf-8", "replace"), None)
        problem = "byte 0x%02x is not UTF-8 text" % data[error.start]
        raise _wrong_encoding(problem, data.decode("utf-8", "replace"), line, column) from error


def _wrong_encoding(problem: str, text: str, line: int = 1, column: int = 1) -> SyntaxProblem:
    """Return an encoding error in a file that docker reads nevertheless: it starts if the rest is valid."""
    try:
        _parse_text(text)
    except SyntaxProblem as error:
        return SyntaxProblem(problem, _ENCODE, line, column, error.docker_error)
    return SyntaxProblem(problem, _ENCODE, line, column)


def _position(text: str, position: Optional[int]) -> Tuple[int, int]:
    before = text if position is None else text[:position]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def _go_type(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    names: Dict[type, str] = {list: "array", str: "string"}
    return names.get(type(value), "number")


def _join_surrogates(pair: "re.Match[str]") -> str:
    """Return one character outside the BMP, which JSON escapes as two surrogates."""
    high, low = map(ord, pair.group(0))
    return chr(0x10000 + (high - 0xD800) * 0x400 + low - 0xDC00)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.open: List[str] = []
        self.repeated: List[Tuple[str, int]] = []

    def document(self) -> Any:
        self._blank()
        value = self._value()
        self._blank()
        if self.at < len(self.text):
            self._fail("after top-level value")
        return value

    def _blank(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in BLANK:
            self.at += 1

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _fail(self, where: str, *explained: str) -> None:
        """Raise the problem at the position; ``explained``: the problem and its remedy, if they are known already."""
        char = self._next()
        if not char:
            go = "unexpected end of JSON input"
        else:
            byte = char.encode("utf-8", "surrogatepass")[0]
            shown = {39: "\\'", 34: '"', 92: "\\\\", 9: "\\t", 10: "\\n", 13: "\\r"}.get(byte)
            if shown is None:
                shown = chr(byte) if 32 <= byte < 127 or byte > 160 else "\\x%02x" % byte
            go = "invalid character '%s' %s" % (shown, where)
        line, column = _position(self.text, self.at)
        problem, remedy = explained or self._problem(where)
        raise SyntaxProblem(problem, remedy, line, column, go)

    def _problem(self, where: str) -> Tuple[str, str]:
        """Return the mistake, and what to change, in plain English."""
        rest = self.text[self.at :]
        char = rest[:1]
        passed = self.text[: self.at].rstrip(BLANK)
        before, line = passed[-1:], _position(self.text, len(passed))[0]
        shown = rest.split("\n")[0][:40].strip()
        if not char:
            missing = " ".join(reversed(self.open or ["a value is"]))
            closing = "add %s at the end of the file" % missing if self.open else "add the value"
            return "the text ends too early: %s missing at the end" % missing, closing
        if rest.startswith(("{{", "{%", "{#")) or (char in "{%#" and before == "{" and self.at and "%}" in self.text):
            return "a Jinja2 template, not JSON", "render the template and use the result"
        if char in SPACES:
            return "white space that JSON does not allow (U+%04X)" % ord(char), "replace it with ordinary blanks"
        if char == "#":
            return "comment (# ...)", "remove the comment: JSON has none"
        if rest.startswith(("//", "/*")):
            return "comment (%s ...)" % rest[:2], "remove the comment: JSON has none"
        if char in _TYPOGRAPHIC:
            return _STRAIGHT
        if char == "'":
            return "single quotes instead of double quotes", "write double quotes"
        word = (re.match(r"-?[A-Za-z_]+", rest) or re.match("", rest)).group(0)  # type: ignore[union-attr]
        if word.lstrip("-") in ("NaN", "Infinity", "I", "N"):
            return "%s is not a JSON value" % word, "write a number or null"
        if word in ("True", "False", "None"):
            right = {"True": "true", "False": "false", "None": "null"}[word]
            return "%s is Python, JSON uses %s" % (word, right), "write %s" % right
        if char in "]}" and before == ",":
            return "trailing comma before %s" % char, "remove the comma at the end of line %d" % line
        if where == "after top-level value":
            if char == "{":
                return "two top-level objects", "put the keys of both into one object"
            if char == "}":
                return "one closing brace too many at the end", "remove it"
            return "text after the end of the object: %s" % shown, "remove what follows the object"
        if where in ("after object key:value pair", "after array element"):
            opening = "{" if where.startswith("after object") else "["
            if char in "]}":
                closing = "write %s before it, or instead of it" % self.open[-1]
                return "%s closes what %s opened" % (char, opening), closing
            return "a comma is missing before %s" % shown, "put a comma at the end of line %d" % line
        if where == "after object key":
            return "a colon is missing after the key", "put a colon after the key in line %d" % line
        if char == ",":
            return "one comma too many, or a value is missing before it", "remove the comma, or add the value"
        if where.endswith("object key string"):
            return "a key in double quotes is expected, found %s" % shown, "write the key in double quotes"
        return "a value is expected, found %s" % shown, "write a value (text in double quotes, a number, true, false)"

    def _value(self) -> Any:
        char = self._next()
        if char == "{":
            return self._object()
        if char == "[":
            return self._array()
        if char == '"':
            return self._string()
        for word, value in (("true", True), ("false", False), ("null", None)):
            if char and char == word[0]:
                for letter in word:
                    if self._next() != letter:
                        self._fail(
                            "in literal %s (expecting '%s')" % (word, letter),
                            "%s is misspelt" % word,
                            "write %s" % word,
                        )
                    self.at += 1
                return value
        if char and char in "-0123456789":
            match = _NUMBER.match(self.text, self.at)
            if match is None:
                self.at += 1
                self._fail("in numeric literal", "no number follows the minus sign", "write a number")
                raise AssertionError
            literal = match.group(0)
            self.at = match.end()
            self._after_number(literal)
            # Python 3.11 and newer parse no integer of more than 4300 digits.
            return float(literal) if len(literal) > 300 or re.search("[.eE]", literal) else int(literal)
        self._fail("looking for beginning of value")
        raise AssertionError

    def _after_number(self, literal: str) -> None:
        """Refuse 1. and 1e: Go reports the position after the valid part."""
        char = self._next()
        if char == "." and "." not in literal and "e" not in literal.lower():
            self.at += 1
            self._fail(
                "after decimal point in numeric literal", "digits are missing after the decimal point", "add them"
            )
        if char in ("e", "E") and "e" not in literal.lower():
            self.at += 2 if self.text[self.at + 1 : self.at + 2] in ("+", "-") else 1
            self._fail("in exponent of numeric literal", "digits are missing in the exponent", "add them")

    def _string(self) -> str:
        self.at += 1
        start = self.at
        parts: List[str] = []
        while True:
            char = self._next()
            if char == '"':
                self.at += 1
                return _PAIR.sub(_join_surrogates, "".join(parts))
            if char < " ":
                typographic = any(letter in _TYPOGRAPHIC for letter in self.text[start : self.at])
                closing = 'put the closing quote (") in line %d' % _position(self.text, start)[0]
                problem = "a line end or control character inside a string" if char else "a closing quote is missing"
                self._fail("in string literal", *(_STRAIGHT if typographic else (problem, closing)))
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
                    self._fail("in \\u hexadecimal character escape", "\\u needs four hexadecimal digits", "write them")
                parts.append(chr(int(self.text[self.at : self.at + 4], 16)))
                self.at += 4
            elif escape in _ESCAPES:
                parts.append(_ESCAPES[escape])
                self.at += 1
            else:
                self._fail("in string escape code", "backslash before %r" % escape, "write two backslashes")

    def _enter(self, closing: str) -> None:
        if len(self.open) >= _DEEPEST:
            self._fail("exceeded max depth", "nested deeper than %d levels" % _DEEPEST, "docker's settings are flat")
        self.open.append(closing)
        self.at += 1
        self._blank()

    def _object(self) -> Dict[str, Any]:
        self._enter("}")
        value: Dict[str, Any] = {}
        while self._next() != "}" or value:
            if self._next() != '"':
                self._fail("looking for beginning of object key string")
            key = self._string()
            self._blank()
            if self._next() != ":":
                self._fail("after object key")
            self.at += 1
            self._blank()
            if key in value:
                self.repeated.append((key, _position(self.text, self.at)[0]))
            value[key] = self._value()
            self._blank()
            if self._next() == "}":
                break
            if self._next() != ",":
                self._fail("after object key:value pair")
            self.at += 1
            self._blank()
        self.at += 1
        self.open.pop()
        return value

    def _array(self) -> List[Any]:
        self._enter("]")
        items: List[Any] = []
        while self._next() != "]" or items:
            items.append(self._value())
            self._blank()
            if self._next() == "]":
                break
            if self._next() != ",":
                self._fail("after array element")
            self.at += 1
            self._blank()
        self.at += 1
        self.open.pop()
        return items


def _is_valid_trimmed(data: bytes) -> bool:
    """Return True if only white space around the text that JSON does not allow makes it invalid: docker strips it."""
    text = data.decode("utf-8", "replace")
    try:
        _parse_text(text.strip(SPACES))
    except SyntaxProblem:
        return False
    return text.strip(SPACES) != text.strip(BLANK)


def repeated_keys(data: bytes) -> List[Tuple[str, int]]:
    """Return keys of a valid file that an object has twice, each with the line of the later one, which counts."""
    scanner = _Scanner(_decode(data))
    scanner.document()
    return scanner.repeated


def explain(data: bytes) -> Dict[str, Any]:
    """Return keys and runtimes of a daemon.json, or what is wrong with it and what to do."""
    if not data.strip(BLANK.encode("ascii")):
        problem = "only white space" if data else "empty file"
        return {"valid_json": False, "problem": problem, "action": _EMPTY, "docker_starts": True}
    try:
        value = parse(data)
    except SyntaxProblem as error:
        docker_error = None if _is_valid_trimmed(data) else error.docker_error
        answer: Dict[str, Any] = {
            "valid_json": False,
            "problem": error.problem,
            "action": _REFUSE,
            "remedy": error.remedy,
            "line": error.line,
            "column": error.column,
            "docker_starts": docker_error is None,
        }
        if docker_error is not None:
            answer["docker_error"] = docker_error
        return answer
    runtimes = value.get("runtimes")
    runtimes = runtimes if isinstance(runtimes, dict) else {}
    nvidia = runtimes.get("nvidia")
    nvidia = nvidia if isinstance(nvidia, dict) else {}
    path = nvidia.get("path")
    default = value.get("default-runtime")
    features = value.get("features")
    cdi = features.get("cdi") if isinstance(features, dict) else None
    return {
        "valid_json": True,
        "keys": list(value),
        "default_runtime": default if isinstance(default, str) else None,
        "nvidia_runtime": "nvidia" in runtimes,
        "nvidia_runtime_path": path if isinstance(path, str) else None,
        "nvidia_args_key": next((key for key in ("runtimeArgs", "args") if key in nvidia), None),
        "other_runtimes": [name for name in runtimes if name != "nvidia"],
        "cdi_feature": cdi if isinstance(cdi, bool) else None,
        "repeated_keys": [{"key": key, "line": line} for key, line in repeated_keys(data)],
    }
