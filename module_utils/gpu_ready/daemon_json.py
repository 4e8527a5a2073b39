"""docker's daemon.json: read it strictly, change only our keys, and leave every other byte as it is.

The text itself is edited: each value knows where it stands, so order, indentation, line ends, escapes and the final
newline of a file survive. A file that is not strict JSON is never edited; an empty or blank one counts as ``{}``,
because docker itself starts with it. Of a key that stands twice the last one counts, and is the one we edit.
"""

import json
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union

Path = Tuple[str, ...]

RELOADABLE = frozenset(
    (
        "authorization-plugins",
        "debug",
        "default-runtime",
        "insecure-registries",
        "labels",
        "live-restore",
        "max-concurrent-downloads",
        "max-concurrent-uploads",
        "max-download-attempts",
        "registry-mirrors",
        "runtimes",
        "shutdown-timeout",
    )
)
"""Keys that dockerd takes over on SIGHUP; every other one needs a restart."""

_ABSENT = object()
_BLANK = " \t\r\n"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SPACES = _BLANK + "\v\f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEEPEST = 200
_REFUSE = "refuse to edit, leave the file as it is, tell the user"
_EMPTY = "treat as an empty object: Docker itself starts with such a file"


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


class Change(NamedTuple):
    """What an edit does: texts (``before`` None where there is no file), keys that change, and how to undo them."""

    before: Optional[str]
    after: str
    changed: bool
    keys: List[str]
    record: Dict[str, Dict[str, Any]]

    @property
    def activation(self) -> str:
        """What dockerd needs to take the change over: ``none``, ``reload`` (SIGHUP) or ``restart``."""
        return activation(self.keys)


def activation(keys: Iterable[str]) -> str:
    """Return what dockerd needs after these keys (dotted, as in :attr:`Change.keys`) have changed."""
    tops = {key.split(".", 1)[0] for key in keys}
    if not tops:
        return "none"
    return "reload" if tops <= RELOADABLE else "restart"


# ---------------------------------------------------------------------------------------------------------- reading


def read(data: Union[bytes, str, None]) -> Document:
    """Return the document in ``data``; raises DaemonJsonError with line and column where it is not strict JSON."""
    text = _decode(data) if isinstance(data, bytes) else (data or "")
    if not text.strip(_BLANK):
        return Document(text, {}, None)
    if text.startswith("\ufeff"):
        raise _encoded("UTF-8 byte order mark before the object", text[1:])
    root = _Scanner(text).document()
    if not isinstance(root.value, dict):
        name, go = _type_names(root.value)
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


def _type_names(value: Any) -> Tuple[str, str]:
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
        while self.at < len(self.text) and self.text[self.at] in _BLANK:
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
        before = self.text[: self.at].rstrip(_BLANK)[-1:]
        if not char:
            return "the text ends too early: %s missing at the end" % " ".join(reversed(self.open or ["a value is"]))
        if rest.startswith(("{{", "{%", "{#")) or (char in "{%#" and before == "{" and self.at and "%}" in self.text):
            return "a Jinja2 template, not JSON"
        if char in _SPACES:
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
            number = float(literal) if re.search("[.eE]", literal) else int(literal)
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


# ---------------------------------------------------------------------------------------------------------- meaning


def same(path: Path, have: Any, want: Any) -> bool:
    """Return whether two values mean the same to docker at this path (an absolute program path equals a bare one)."""
    if isinstance(have, bool) != isinstance(want, bool):
        return False
    if len(path) == 3 and path[0] == "runtimes" and path[2] == "path" and isinstance(have, str):
        return have == want or (
            isinstance(want, str)
            and ("/" not in have or "/" not in want)
            and have.rsplit("/", 1)[-1] == want.rsplit("/", 1)[-1]
        )
    if isinstance(have, dict) and isinstance(want, dict):
        if len(path) == 2 and path[0] == "runtimes":
            have, want = _one_args_key(have), _one_args_key(want)
        return have.keys() == want.keys() and all(same(path + (key,), have[key], want[key]) for key in have)
    if isinstance(have, list) and isinstance(want, list):
        return len(have) == len(want) and all(
            same(path + ("[]",), item, want[index]) for index, item in enumerate(have)
        )
    return type(have) in (type(want), int, float) and bool(have == want)


def _one_args_key(runtime: Dict[str, Any]) -> Dict[str, Any]:
    """Return a runtime with its arguments under docker's own key, and without empty ones."""
    plain = {key: value for key, value in runtime.items() if key not in ("args", "runtimeArgs")}
    arguments = runtime.get("runtimeArgs", runtime.get("args"))
    if arguments:
        plain["runtimeArgs"] = arguments
    return plain


def _pointer(path: Path) -> str:
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)


def _path(pointer: str) -> Path:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def _get(value: Any, path: Path) -> Any:
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return _ABSENT
        value = value[key]
    return value


# ---------------------------------------------------------------------------------------------------------- editing


def merge(
    text: Union[str, bytes, None], wanted: Dict[str, Any], unset: Iterable[Union[str, Iterable[str]]] = ()
) -> Change:
    """Return ``text`` with the values of ``wanted`` in it and the keys of ``unset`` gone, everything else untouched.

    Objects are merged key by key, lists and single values replaced; what already means the same is not touched.
    ``unset`` names keys from the top, joined with dots (``features.cdi``) or as a list. Raises DaemonJsonError.
    """
    document = read(text)
    before = None if text is None else document.text
    edited = document.text
    record: Dict[str, Dict[str, Any]] = {}
    keys: List[str] = []
    for path, value in _differences((), document.value, wanted):
        entry: Dict[str, Any] = {"after": value}
        old = _get(document.value, path)
        if old is not _ABSENT:
            entry["before"] = old
        entry["made"] = [
            _pointer(path[:size]) for size in range(1, len(path)) if _get(document.value, path[:size]) is _ABSENT
        ]
        edited = _set(edited, path, value)
        record[_pointer(path)] = entry
        keys.append(".".join(path))
    for name in unset:
        path = tuple(name.split(".")) if isinstance(name, str) else tuple(name)
        old = _get(document.value, path)
        if old is not _ABSENT:
            edited = _remove(edited, path)
            record[_pointer(path)] = {"before": old}
            keys.append(".".join(path))
    return Change(before, edited, bool(keys), keys, record)


def _differences(path: Path, have: Any, wanted: Dict[str, Any]) -> List[Tuple[Path, Any]]:
    """Return (path, value) of everything in ``wanted`` that ``have`` does not say yet, in the order of ``wanted``."""
    found: List[Tuple[Path, Any]] = []
    for key, want in wanted.items():
        here = path + (key,)
        old = have.get(key, _ABSENT) if isinstance(have, dict) else _ABSENT
        if key in ("args", "runtimeArgs") and len(path) == 2 and path[0] == "runtimes" and isinstance(have, dict):
            spelt = "runtimeArgs" if "runtimeArgs" in have else "args" if "args" in have else key
            here, old = path + (spelt,), have.get(spelt, _ABSENT)
            if old is _ABSENT and not want:
                continue
        if isinstance(want, dict) and want and not (here[0] == "runtimes" and len(here) == 2 and old is _ABSENT):
            if old is not _ABSENT and old is not None and not isinstance(old, dict):
                raise DaemonJsonError(
                    "%s is %s where docker wants an object" % (".".join(here), _type_names(old)[0]), 1, 1
                )
            found += _differences(here, old if isinstance(old, dict) else {}, want)
        elif old is _ABSENT or not same(here, old, want):
            found.append((here, want))
    return found


class _Style(NamedTuple):
    """How a file is written: line end, one step of indentation, text between key and value, and after a comma."""

    newline: str
    unit: str
    colon: str
    multiline: bool
    comma: str


def _style(text: str, root: Optional[Node]) -> _Style:
    newline = "\r\n" if "\r\n" in text else "\n"
    if root is None or not root.members:
        return _Style(newline, "    ", ": ", True, " ")
    first = root.members[0]
    colon = text[first.key_end : first.node.start]
    if "\n" in colon:
        colon = ": "
    multiline = "\n" in text[root.start : first.start]
    unit = "    "
    if multiline:
        lead, outer = _lead(text, first.start), _indent(text, root.start)
        unit = lead[len(outer) :] if lead.startswith(outer) else lead
    comma = " " if colon.endswith(" ") else ""
    if len(root.members) > 1:
        between = text[first.node.end : root.members[1].start]
        if "\n" not in between:
            comma = between.split(",", 1)[1]
    return _Style(newline, unit, colon, multiline, comma)


def _indent(text: str, position: int) -> str:
    """Return the white space at the beginning of the line in which ``position`` lies."""
    start = text.rfind("\n", 0, position) + 1
    stop = start
    while stop < position and text[stop] in " \t":
        stop += 1
    return text[start:stop]


def _lead(text: str, position: int) -> str:
    """Return the text of the line before ``position`` (only white space where the line begins there)."""
    return text[text.rfind("\n", 0, position) + 1 : position]


def _render(value: Any, style: _Style, indent: str) -> str:
    """Return JSON text of a value whose line is indented by ``indent``."""
    nested = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(i, (dict, list)) for i in value))
    if not nested or not value:
        if isinstance(value, list):
            return "[" + ("," + style.comma).join(_render(item, style, indent) for item in value) + "]"
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = indent + style.unit
    if isinstance(value, dict):
        parts = [
            json.dumps(key, ensure_ascii=False) + style.colon + _render(item, style, inner)
            for key, item in value.items()
        ]
        brackets = "{}"
    else:
        parts = [_render(item, style, inner) for item in value]
        brackets = "[]"
    if not style.multiline:
        return brackets[0] + ("," + style.comma).join(parts) + brackets[1]
    gap = style.newline + inner
    return brackets[0] + gap + ("," + gap).join(parts) + style.newline + indent + brackets[1]


def _last(node: Node, key: str) -> Optional[Member]:
    for member in reversed(node.members):
        if member.key == key:
            return member  # type: ignore[no-any-return]
    return None


def _set(text: str, path: Path, value: Any) -> str:
    """Return the text with ``value`` at ``path``, missing objects on the way made."""
    document = read(text)
    root = document.root
    style = _style(text, root)
    if root is None:
        for key in reversed(path):
            value = {key: value}
        return _render(value, style, "") + style.newline
    node = root
    for depth, key in enumerate(path):
        member = _last(node, key)
        rest = value
        for inner in reversed(path[depth + 1 :]):
            rest = {inner: rest}
        if member is None:
            return _insert(text, node, key, rest, style)
        if depth == len(path) - 1 or not isinstance(member.node.value, dict):
            rendered = _render(rest, style, _indent(text, member.start))
            return text[: member.node.start] + rendered + text[member.node.end :]
        node = member.node
    raise AssertionError("empty path")


def _insert(text: str, node: Node, key: str, value: Any, style: _Style) -> str:
    name = json.dumps(key, ensure_ascii=False) + style.colon
    if not node.members:
        outer = _indent(text, node.start)
        inner = outer + style.unit
        if style.multiline:
            body = style.newline + inner + name + _render(value, style, inner) + style.newline + outer
        else:
            body = name + _render(value, style, outer)
        return text[: node.start + 1] + body + text[node.end - 1 :]
    last = node.members[-1]
    lead = _lead(text, last.start)
    at = last.node.end
    if not lead.strip(_BLANK) and "\n" in text[: last.start]:
        return text[:at] + "," + style.newline + lead + name + _render(value, style, lead) + text[at:]
    flat = style._replace(multiline=False)
    return text[:at] + "," + style.comma + name + _render(value, flat, lead) + text[at:]


def _remove(text: str, path: Path) -> str:
    """Return the text without the key at ``path`` (every one, where it stands twice)."""
    while True:
        node = read(text).root
        for key in path[:-1]:
            member = _last(node, key) if node is not None else None
            node = member.node if member is not None else None
        position = [i for i, member in enumerate(node.members) if member.key == path[-1]] if node is not None else []
        if node is None or not position:
            return text
        index = position[-1]
        if len(node.members) == 1:
            text = text[: node.start + 1] + text[node.end - 1 :]
        elif index == len(node.members) - 1:
            text = text[: node.members[index - 1].node.end] + text[node.members[index].node.end :]
        else:
            text = text[: node.members[index].start] + text[node.members[index + 1].start :]


def take_back(text: Optional[str], record: Dict[str, Any]) -> Optional[str]:
    """Return the text without what gpu-ready wrote: ``record`` has ``before`` (text or None) and ``keys``.

    A key that somebody changed since is theirs and stays. None means that the file was ours alone and goes.
    """
    if text is None:
        return None
    before = record.get("before")
    keys = record.get("keys") or {}
    replayed = before
    for pointer, entry in keys.items():
        replayed = _set(replayed or "", _path(pointer), entry["after"]) if "after" in entry else replayed
    if replayed == text and all("after" in entry for entry in keys.values()):
        return str(before) if before is not None else None
    for pointer, entry in keys.items():
        path = _path(pointer)
        have = _get(read(text).value, path)
        if "after" not in entry:
            if have is _ABSENT:
                text = _set(text, path, entry["before"])
            continue
        if have is _ABSENT or not _ours(path, have, entry["after"]):
            continue
        text = _set(text, path, entry["before"]) if "before" in entry else _remove(text, path)
    parents = {parent for entry in keys.values() for parent in entry.get("made", ())}
    for pointer in sorted(parents, key=lambda name: -name.count("/")):
        if _get(read(text).value, _path(pointer)) == {}:
            text = _remove(text, _path(pointer))
    if not read(text).value and (before is None or not before.strip(_BLANK)):
        return None if before is None else str(before)
    return text


def difference(text: Optional[str], after: Optional[str]) -> List[str]:
    """Return the keys at the top whose values differ between two texts (None: no file), for :func:`activation`."""
    old, new = read(text).value, read(after).value
    return sorted(key for key in set(old) | set(new) if old.get(key, _ABSENT) != new.get(key, _ABSENT))


def _ours(path: Path, have: Any, after: Any) -> bool:
    if len(path) == 2 and path[0] == "runtimes" and isinstance(have, dict) and isinstance(after, dict):
        # A runtime without its program is no valid one: arguments that were added to ours go with it.
        return same(path + ("path",), have.get("path"), after.get("path"))
    return same(path, have, after)


# ------------------------------------------------------------------------------------------------------- explaining


def _reads_trimmed(data: bytes) -> bool:
    """Return whether a text is right but for white space around it that JSON does not know; docker takes it away."""
    text = data.decode("utf-8", "replace")
    try:
        read(text.strip(_SPACES))
    except DaemonJsonError:
        return False
    return text.strip(_SPACES) != text.strip(_BLANK)


def explain(data: bytes) -> Dict[str, Any]:
    """Return the reading of a daemon.json: its keys and runtimes, or what is wrong with it and what to do."""
    if not data.strip(_BLANK.encode("ascii")):
        problem = "only white space" if data else "empty file"
        return {"valid_json": False, "problem": problem, "action": _EMPTY, "docker_starts": True}
    try:
        value = read(data).value
    except DaemonJsonError as error:
        if _reads_trimmed(data):
            error.docker_error = None
        answer: Dict[str, Any] = {
            "valid_json": False,
            "problem": error.problem,
            "action": _REFUSE,
            "line": error.line,
            "column": error.column,
            "docker_starts": error.docker_error is None,
        }
        if error.docker_error is not None:
            answer["docker_error"] = error.docker_error
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
    }
