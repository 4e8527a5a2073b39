"""Edit the text of a JSON object in place: one value put or taken out, every other byte as it was."""

import json
from typing import Any, NamedTuple, Optional, Tuple

from .parse import BLANK, Member, Node, read

Path = Tuple[str, ...]


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


def put(text: str, path: Path, value: Any) -> str:
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
    if not lead.strip(BLANK) and "\n" in text[: last.start]:
        return text[:at] + "," + style.newline + lead + name + _render(value, style, lead) + text[at:]
    flat = style._replace(multiline=False)
    return text[:at] + "," + style.comma + name + _render(value, flat, lead) + text[at:]


def remove(text: str, path: Path) -> str:
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
