"""Faults of the vendor mirror and the archive proxy: rules by path, for the host with one address.

A rule is looked up for each request: {GLOB: {"status": 404}} over HOST/PATH of the request. Its keys are
`status`, `delay` (seconds), `rate` (bytes per second), `truncate` (after so many bytes), `corrupt`, `serve` (another
file), `drop` (the connection is closed without an answer) and `hang` (seconds without an answer). `certificate` (a
file) is looked up when a connection begins, for HOST/.
"""

import fnmatch
import io
import json
import socket
import time
from pathlib import Path
from typing import Any

LONGEST = 900.0  # seconds that a rule may delay a host

Rule = dict[str, Any]


class Dropped(Exception):
    """A rule closed the connection."""


def own_file(state: Path, address: str) -> Path:
    """Return the file with the faults of one host: {name of the fault: {glob: rule}}."""
    return state / "faults" / f"{address}.json"


def find(state: Path, address: str, path: str) -> Rule:
    """The first rule for a host's request, {} if there is none."""
    faults = _read(own_file(state, address)).values()
    found: Rule = next(
        (rule for rules in faults for glob, rule in rules.items() if fnmatch.fnmatchcase(path, glob)),
        {},
    )
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return {}
    return found


def set_rules(state: Path, address: str, name: str, rules: dict[str, Rule] | None) -> None:
    """Set the rules of a fault of one host, or remove them (None); a request sees either the old or the new rules."""
    file = own_file(state, address)
    faults = {key: value for key, value in _read(file).items() if key != name}
    if rules is not None:
        faults[name] = rules
    if not faults:
        file.unlink(missing_ok=True)
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(faults, indent=1))
    new.replace(file)


def forget(state: Path, address: str) -> None:
    """Drop every fault of an address, which another host may get."""
    own_file(state, address).unlink(missing_ok=True)


def before_answer(rule: Rule, connection: socket.socket) -> None:
    """Delay the answer, or close the connection, as a rule defines."""
    time.sleep(min(float(rule.get("delay", 0)), LONGEST))
    if "hang" in rule:
        _wait_for_end(connection, min(float(rule["hang"]), LONGEST))
    if "hang" in rule or rule.get("drop"):
        raise Dropped("a fault closed the connection")


def _wait_for_end(connection: socket.socket, limit: float) -> None:
    """Send nothing until the host gives up, or for a time."""
    connection.settimeout(limit)
    try:
        connection.recv(1)
    except TimeoutError:
        return


class Writer:
    """Sends the body of an answer, damaged as a rule defines."""

    def __init__(self, file: io.BufferedIOBase, rule: Rule) -> None:
        self.file = file
        self.rule = rule
        self.sent = 0

    def write(self, chunk: bytes) -> None:
        """Send a part; Dropped ends the answer where the rule cuts it off."""
        left = int(self.rule["truncate"]) - self.sent if "truncate" in self.rule else len(chunk)
        cut = left < len(chunk)
        chunk = chunk[: max(left, 0)]
        if self.rule.get("corrupt") and self.sent == 0 and chunk:
            chunk = bytes([chunk[0] ^ 0xFF]) + chunk[1:]
        self._slowly(chunk)
        self.sent += len(chunk)
        if cut:
            raise Dropped(f"a fault ended the answer after {self.sent} bytes")

    def _slowly(self, chunk: bytes) -> None:
        rate = int(self.rule.get("rate", 0))
        if not rate:
            self.file.write(chunk)
            return
        for start in range(0, len(chunk), rate):
            self.file.write(chunk[start : start + rate])
            self.file.flush()
            time.sleep(1.0)
