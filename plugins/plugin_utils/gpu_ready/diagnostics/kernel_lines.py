"""The kernel's log as messages: without the heads that programs put before them, wrapped lines joined.

Accepted: dmesg (plain, -T, -e, -d, -x, --time-format iso), journalctl (short, short-iso, short-monotonic, with-unit,
json, json-pretty, export, verbose), syslog of RFC 3164 and 5424, `kubectl logs --timestamps`, JSON records of
container engines, quote marks of mailers.
"""

import json
import re
from typing import NamedTuple

from .text_lines import Flat, Line, flatten, lines_of

NVRM = re.compile(r"\bNVRM(?::|(?= \w+: ))[ \t]*")
"""The mark of NVIDIA's core; the open modules before 535 wrote "NVRM function: text" without the first colon."""
CLOCK = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
HEAD = re.compile(
    r"^[\s>|*+-]*(?:%s[ \t]+)?(?:<\d+>\d?[ \t]*)?(?:%s[ \t]+)?(?:(?:kern|user|daemon|syslog)\s*:\w+\s*:\s*)?"
    r"(?:.{0,120}?\bkernel(?:\[\d+\])?:[ \t]*|\S{1,80} kernel - - -[ \t]+)?(?:\[[^\]\n]{1,60}\][ \t]*)*"
    % (CLOCK, CLOCK)
)
BEGINS = re.compile(
    r"^(?:NVRM|SXid|Xid|[\w-]+(?: [0-9a-fA-F]{4}:[0-9a-fA-F:.]+)?): |^(?:nvidia|nouveau|NVIDIA)\b|.{0,80}\bSXid \("
)
"""How a message without a head begins: with the name of its program."""
RECORD = re.compile(r'^\s*"?MESSAGE"?\s*[:=]\s*"?(.*?)"?,?\s*$')
FIELD = re.compile(r'^\s*"?_{0,2}[A-Z][A-Z0-9_]{2,60}"?\s*[:=]|^\s*[{}],?\s*$')
"""Fields of a journal's record, in its forms json-pretty, export and verbose."""
TEXTS = ("MESSAGE", "message", "line", "log", "msg")
"""Names that the text has in JSON records of journald, container engines and shippers of logs."""
OPTIONS = re.compile(r"\bcommand line: ", re.IGNORECASE)
"""The kernel's options: names of modules in them are no messages."""
REPEATED = re.compile(r"message repeated (\d+) times: \[")


class LogMessage(NamedTuple):
    """One message without its head. ``nvidia``: of the driver's core (NVRM). ``times``: as syslog counted it."""

    lines: list[Line]
    nvidia: bool
    times: int

    def has(self, word: str) -> bool:
        """Return True if the message may contain a word; one of several lines may, broken as it is."""
        return len(self.lines) > 1 or word in self.lines[0].text

    def flat(self, separator: str = " ") -> Flat:
        """Return the message on one line."""
        return flatten(self.lines, separator)


def record_text(line: str) -> str | None:
    """Return the text of a JSON record, None for a line that is none."""
    if not line.lstrip().startswith("{"):
        return None
    try:
        record: dict[str, object] = json.loads(line)
    except ValueError:
        return None
    text = next((record[name] for name in TEXTS if name in record), None) if isinstance(record, dict) else None
    if isinstance(text, list):  # journald writes a text with colours as a list of bytes
        text = bytes(byte for byte in text if isinstance(byte, int) and 0 <= byte < 256).decode("utf-8", "replace")
    return text.rstrip("\n").replace("\n", "#012") if isinstance(text, str) else None


def unpacked(text: str) -> str:
    """Return a log without the records around its messages; each line keeps its number."""
    lines = text.split("\n")
    found = [record_text(line) for line in lines]
    if any(one is not None for one in found):
        lines = [line if one is None else one for line, one in zip(lines, found)]  # noqa: B905 - Python 3.6
    fields = [RECORD.match(line) for line in lines]
    if any(fields):
        lines = [
            match.group(1) if match else "" if FIELD.match(line) else line
            for line, match in zip(lines, fields)  # noqa: B905 - Python 3.6
        ]
    return "\n".join(lines)


def messages_of(text: str) -> list[LogMessage]:
    """Return the messages of a log; a line without a head continues the one before it.

    A terminal or a mailer broke it.
    """
    found: list[LogMessage] = []
    for number, line in lines_of(unpacked(text)):
        if OPTIONS.search(line):
            continue
        repeated = REPEATED.search(line)
        times = min(int(repeated.group(1)[:4]), 1000) if repeated else 1
        line = line.rstrip("] ") if repeated else line
        parts = NVRM.split(line)
        if len(parts) > 1:
            found += [LogMessage([Line(number, part)], True, times) for part in parts[1:]]
            continue
        head = HEAD.match(line)
        content = line[head.end() :] if head else line
        stripped = line.lstrip(" \t>|*+-")
        if not stripped:
            found.append(LogMessage([], False, 1))  # what follows an empty line continues nothing
        elif content != stripped or BEGINS.match(content) or not found:
            found.append(LogMessage([Line(number, content)], False, times))
        else:
            found[-1].lines.append(Line(number, content))
    return [message for message in found if message.lines]


END = " ;"
"""Ends each message of the other streams, so that patterns can stay within one."""


def streams(found: list[LogMessage], separator: str = " ") -> tuple[Flat, Flat]:
    """Return NVIDIA's messages and all others, each joined to one line.

    The driver breaks its texts over several messages.
    """
    nvidia = [line for message in found if message.nvidia for line in message.lines]
    others: list[Line] = []
    for message in found:
        if not message.nvidia:
            last = message.lines[-1]
            others += message.lines[:-1] + [last._replace(text=last.text + END)]
    return flatten(nvidia, separator, wrapped=True), flatten(others, separator)
