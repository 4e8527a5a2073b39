"""Files with the facts of hosts: playbooks/capture.yml writes them, and gpu-explain reads them.

A capture has three lines of JSON: what it is of, the facts, and the texts that these were read from. So a reader of
thousands of files need not parse what it does not use.
"""

import hashlib
import json
import urllib.parse
from pathlib import Path
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.base import files, records
from ....module_utils.gpu_ready.base.json_file import parse_json
from ....module_utils.gpu_ready.facts import model as facts_model
from ....module_utils.gpu_ready.facts.model import Facts
from ..completion import form

SCHEMA = 1
SUFFIX = ".jsonl"
LARGEST = 64 << 20
"""Bytes of a file that are read: an answer of a host has at most 16 million characters."""
LONGEST_NAME = 200
"""Characters of a file name that every file system takes (NAME_MAX is 255), with what writing adds."""


class CaptureError(ValueError):
    """A file that is no capture of this release; the text names it."""


class Header(NamedTuple):
    """The first line. ``host``: name in the inventory. ``captured``: time of the control node.

    ``gpu_ready`` and ``ansible_core`` are versions. ``settings``: what inventory and command line set for the host.
    """

    host: str
    captured: str
    gpu_ready: str
    ansible_core: str
    settings: dict[str, object] = {}


class Capture(NamedTuple):
    """A file that was read; ``facts`` is the second line, not yet parsed."""

    path: str
    header: Header
    facts: str

    @property
    def digest(self) -> str:
        """Equal for hosts with the same facts and settings."""
        settings = json.dumps(self.header.settings, sort_keys=True)
        return hashlib.sha256((self.facts + settings).encode("utf-8")).hexdigest()


def file_name(host: str) -> str:
    """Return the name of a host's file, which is in one directory whatever the host is called."""
    name = urllib.parse.quote(host, safe="")
    name = "%2E" + name[1:] if name.startswith(".") else name
    if len(name) > LONGEST_NAME:
        name = "%s-%s" % (name[: LONGEST_NAME - 17], hashlib.sha256(name.encode("ascii")).hexdigest()[:16])
    return name + SUFFIX


def write(directory: str, header: Header, facts: Facts, raw: dict[str, object]) -> str:
    """Write a capture for its owner only; return its path. Raises OSError."""
    Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
    path = str(Path(directory, file_name(header.host)))
    parts = [dict(records.to_json(header), schema=SCHEMA), facts_model.to_json(facts), raw]
    lines = [json.dumps(part, sort_keys=True) + "\n" for part in parts]
    files.write_atomic(path, "".join(lines).encode("ascii"), files.PRIVATE)
    return path


def paths_in(directory: str) -> list[str]:
    """Return the captures of a directory by name. Raises OSError."""
    return [str(path) for path in sorted(Path(directory).iterdir()) if path.name.endswith(SUFFIX)]


def read(path: str) -> Capture:
    """Return the capture in a file. Raises CaptureError, OSError."""
    with Path(path).open("rb") as handle:
        head = handle.readline(LARGEST)
        facts = handle.readline(LARGEST + 1)
    try:
        if len(facts) > LARGEST or not facts:
            raise ValueError("it has no facts" if not facts else "it is larger than %d MiB" % (LARGEST >> 20))
        header = records.from_json(Header, records.without_schema(parse_json(head), SCHEMA, "this capture"))
        return Capture(path, header, facts.decode("utf-8"))
    except (ValueError, records.RecordError) as error:
        raise fault(path, error) from None


def facts_of(capture: Capture) -> Facts:
    """Return the facts of a capture. Raises CaptureError."""
    try:
        value: Any = parse_json(capture.facts)
        facts = facts_model.from_json(value)
        form.check_form(facts)
        return facts
    except (ValueError, RecursionError, records.RecordError) as error:
        raise fault(capture.path, error) from None


def fault(path: str, error: Exception) -> CaptureError:
    text = str(error)[:300]
    return CaptureError("%s: no capture that this release can read: %s. Capture the host again" % (path, text))
