"""JSON files in which gpu-ready keeps its own state: manifest, journals, marks, the last verification."""

import json
from typing import Any, Dict, List, Optional, Union

from .errors import GpuReadyError
from .host import Host


class DamagedFileError(GpuReadyError):
    """A file of gpu-ready's own does not hold what gpu-ready wrote."""


def parse_json(text: Union[str, bytes]) -> Any:
    """Return the value of a JSON text. Raises ValueError, also for text that nests too deeply for the parser."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def read_json_file(host: Host, path: str) -> Any:
    """Return the value of a file, None only where it is absent; DamagedFileError where it is no JSON, or null."""
    data = host.read_bytes(path)
    if data is None:
        return None
    try:
        value = parse_json(data)
    except ValueError as error:
        raise DamagedFileError("%s is damaged (%s). Move it away, then run again." % (path, error)) from None
    if value is None:
        raise DamagedFileError("%s is damaged (it holds null). Move it away, then run again." % path)
    return value


def read_json_object(host: Host, path: str, schema: Optional[int] = None) -> Optional[Dict[str, Any]]:
    """Return the object of a file, None if it is absent, damaged or of another ``schema``.

    For state that can be redone.
    """
    try:
        value = read_json_file(host, path)
    except DamagedFileError:
        return None
    if not isinstance(value, dict) or (schema is not None and value.get("schema") != schema):
        return None
    return value


def read_text_mark(host: Host, path: str, remedy: str) -> List[str]:
    """Return the texts of a mark of unfinished work, [] where it is absent; DamagedFileError where it has another form.

    A damaged mark, or one of a newer release, does not mean that nothing is to be done.
    """
    data = host.read_bytes(path)
    try:
        value = [] if data is None else parse_json(data)
    except ValueError:
        value = None
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise DamagedFileError("%s is damaged, or of another release. %s, delete it, then run again." % (path, remedy))
    return value
