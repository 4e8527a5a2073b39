"""daemon.json for gpu-explain: what it sets, or the mistake that makes it invalid and how to correct it."""

import re
from typing import Any

from ....module_utils.gpu_ready.containers.daemon_json import document
from ....module_utils.gpu_ready.containers.daemon_json.document import BLANK, DaemonJsonError

_QUOTES = "[\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u00ab\u00bb\uff02]"
_CHECK = "correct it there; 'dockerd --validate --config-file FILE' checks the whole file"
# The parser's message, a better one if there is one, and the remedy.
_MESSAGES = (
    ("byte order mark|not UTF-8", "", "save the file as UTF-8 without a byte order mark"),
    ("top level is|nested too deeply", "", "write one object, { ... }, with docker's settings"),
    ("control character", "a line end or control character inside a string", 'put the closing quote (") before it'),
    ("unterminated string", "a closing quote is missing", "add it"),
    ("extra data", "text after the end of the object", "write one object, { ... }, and nothing after it"),
)
# What stands where the parser stopped.
_PLACES = (
    (r"#|//|/\*", "a comment", "remove the comment: JSON has none"),
    ("'", "single quotes instead of double quotes", "write double quotes"),
    ("True|False|None", "a word of Python", "write true, false or null"),
)


def find_mistake(text: str, error: DaemonJsonError) -> tuple[str, str]:
    """Return the problem and its remedy: the usual mistakes, for which the parser only says what it expected."""
    lines = text.split("\n")
    at = sum(len(row) + 1 for row in lines[: max(error.line - 1, 0)]) + max(error.column - 1, 0)
    before, rest = text[:at].rstrip(BLANK), text[at:].rstrip(BLANK)
    end_before = before.count("\n") + 1
    if error.line and re.search(_QUOTES, re.sub('"[^"]*"', "", lines[error.line - 1])):
        return "typographic quotes", 'replace them with straight ones (") in the whole file'
    if re.search(r"\{[{%]", text[max(at - 1, 0) : at + 2]):
        return "a Jinja2 template, not JSON", "render the template and use the result"
    for pattern, problem, remedy in _PLACES:
        if re.match(pattern, rest):
            return problem, remedy
    if (before.endswith(",") and rest[:1] in ("]", "}")) or re.match(r",\s*[]}]", rest):
        comma = end_before if before.endswith(",") else error.line  # Python 3.13 stops at the comma
        return "a trailing comma", "remove the comma at the end of line %d" % comma
    for pattern, problem, remedy in _MESSAGES:
        if re.search(pattern, error.problem):
            return problem or error.problem, remedy
    if error.line and not rest:
        return "the text ends too early", "add what is missing at the end of the file"
    if "',' delimiter" in error.problem and rest[0] not in "]}":
        return "a comma is missing", "put a comma at the end of line %d" % end_before
    return error.problem, _CHECK


def starts_docker(data: bytes) -> bool:
    """Return whether docker reads the file nevertheless: it decodes byte order marks and strips white space."""
    marked = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    text = data.decode("utf-16" if marked else "utf-8-sig", "replace")
    try:
        document.parse(text.strip())
    except DaemonJsonError:
        return False
    return True


def explain(data: bytes) -> dict[str, Any]:
    """Return the keys and runtimes of a daemon.json, or what is wrong with it and what to do."""
    if not data.strip(BLANK.encode("ascii")):
        return {
            "valid_json": False,
            "problem": "only white space" if data else "empty file",
            "remedy": "none is needed: docker starts with such a file, and gpu-ready treats it as an empty object",
            "docker_starts": True,
        }
    try:
        parsed = document.parse(data)
    except DaemonJsonError as error:
        problem, remedy = find_mistake(data.decode("utf-8", "replace"), error)
        return {
            "valid_json": False,
            "problem": problem,
            "remedy": remedy,
            "line": error.line or 1,
            "column": error.column or 1,
            "docker_starts": starts_docker(data),
        }
    value = parsed.value
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
        "repeated_keys": parsed.repeated,
    }
