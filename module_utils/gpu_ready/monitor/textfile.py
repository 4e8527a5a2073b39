"""The text format of Prometheus, written as node_exporter's textfile collector wants it.

Labels are escaped as prometheus.io/docs/instrumenting/exposition_formats says; what else may not be in a text of UTF-8,
and control characters, become "?". No timestamps: the collector refuses a file with one (collector/textfile.go).
"""

import os
import tempfile
from typing import Dict, List, Mapping, NamedTuple, Union

LONGEST = 256
"""Characters of a label's value; names of containers and images are chosen by users."""
Number = Union[int, float, bool]


class Family(NamedTuple):
    """``kind``: gauge or counter."""

    name: str
    kind: str
    help: str


class Metrics:
    """Values by family, in the order in which the families were declared."""

    def __init__(self, families: "List[Family]") -> None:
        self.families = families
        self.lines: Dict[str, List[str]] = {family.name: [] for family in families}

    def add(self, name: str, value: "Number | None", labels: Mapping[str, object]) -> None:
        """Add a value; None is left out. An empty label is the same as none."""
        if value is None:
            return
        self.lines[name].append("%s%s %s" % (name, format_labels(labels), format_number(value)))

    def text(self) -> str:
        parts = []
        for family in self.families:
            if self.lines[family.name]:
                parts.append("# HELP %s %s" % (family.name, family.help))
                parts.append("# TYPE %s %s" % (family.name, family.kind))
                parts += self.lines[family.name]
        return "\n".join(parts) + "\n"


def format_labels(labels: Mapping[str, object]) -> str:
    """Return labels as they follow a name; the same text is the same series, which may be in the file only once."""
    pairs = ['%s="%s"' % (key, escape(str(text))) for key, text in labels.items() if text not in (None, "")]
    return "{%s}" % ",".join(pairs) if pairs else ""


def escape(text: str) -> str:
    """Return a label's value between its quotation marks; what is longer than LONGEST is cut before it is escaped."""
    shown = text[:LONGEST].encode("utf-8", "replace").decode("utf-8")
    shown = "".join(one if one == "\n" or one.isprintable() else "?" for one in shown)
    return shown.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def format_number(value: Number) -> str:
    if isinstance(value, float):
        return repr(value)
    return str(int(value))


def write(path: str, text: str) -> None:
    """Replace a file in one step. The collector reads names that end in .prom only.

    The directory may belong to the user of the exporter, so the temporary file has a name that nobody can prepare.
    """
    directory = os.path.dirname(path)
    handle, temporary = tempfile.mkstemp(prefix=".gpu_ready.", suffix=".tmp", dir=directory)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            os.fchmod(stream.fileno(), 0o644)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
