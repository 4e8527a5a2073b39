"""Values of `nvidia-smi -q` and of its XML that need attention: recovery, reset, memory, fabric, licence, slowdown.

The fields are values, not messages: "Reset Required : No" is healthy. Which values are not is data
(catalog/messages.yml, ``nvidia_smi_value``), by the names of both forms; the indentation is not used, as pasted texts
lose it.
"""

import re

from . import message_table, smi_forms
from .message_table import Explanation
from .smi_forms import BUS_ID
from .text_lines import Line, flatten

FIELD = re.compile(r"^[^\w<]{0,60}(?P<name>[A-Z][\w ./()-]{0,60}?) +: +(?P<value>\S.*?)\s*$")
HEADING = re.compile(r"^[^\w<]{0,60}(?P<name>[A-Z][\w ./()-]{1,50}?)\s*$")
GPU = re.compile(r"^[^\w<]{0,40}GPU (%s)\s*$" % BUS_ID)
ELEMENT = re.compile(
    r"<(?P<open>[A-Za-z_]\w*)(?: id=[\"'](?P<id>[^\"'>]*)[\"'])?[^<>/]*>(?:(?P<value>[^<>]*)</(?P=open)>)?"
)
HALVES = ("single_bit", "double_bit")
"""Sections in sections of GPUs before Ampere: volatile and aggregate errors have the same names in them."""
KIND = "nvidia_smi_value"


def spelled(name: str) -> str:
    """Return a name as its XML element is spelled: "GPU Recovery Action" is gpu_recovery_action."""
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def entered(section: str, name: str) -> str:
    """Return the section of a heading in another one: "volatile_double_bit" for "Double Bit" below "Volatile"."""
    return "%s_%s" % (section.split("_")[0], name) if name in HALVES else name


def parts(lines: list[Line]) -> list[tuple[str | None, list[Line]]]:
    """Return the fields of each GPU as ``section/name=value;``, by its address.

    Those before the first GPU have none.
    """
    found: list[tuple[str | None, list[Line]]] = [(None, [])]
    section = ""
    for number, text in lines:
        gpu, field, heading = GPU.match(text), FIELD.match(text), HEADING.match(text)
        if gpu:
            found.append((gpu.group(1), []))
        elif field:
            value = "%s/%s=%s;" % (section, spelled(field.group("name")), field.group("value"))
            found[-1][1].append(Line(number, value))
        elif heading:
            section = entered(section, spelled(heading.group("name")))
        for match in ELEMENT.finditer(text):
            if match.group("open") == "gpu" and match.group("id"):
                found.append((match.group("id"), []))
            elif match.group("value") is None:
                section = entered(section, match.group("open"))
            elif match.group("value").strip():
                value = "%s/%s=%s;" % (section, match.group("open"), match.group("value").strip())
                found[-1][1].append(Line(number, value))
    return found


def csv_parts(lines: list[Line]) -> list[tuple[str | None, list[Line]]]:
    """Like :func:`row_parts`, for `--format=csv` with a header: "remapped_rows.pending" is remapped_rows/pending."""
    names: list[str] = []
    found: list[tuple[str | None, list[Line]]] = []
    for number, text in lines:
        row = smi_forms.cells(text)
        if smi_forms.is_header(row):
            names = [name.split(" [")[0].replace(".", "/") for name in row]
        elif names and len(row) == len(names):
            values = dict(zip(names, row))  # noqa: B905 - Python 3.6
            gpu = values.get("pci/bus_id") or values.get("gpu_bus_id") or values.get("uuid") or values.get("index")
            sections = [name.rpartition("/") for name in names]
            fields = [
                "%s/%s=%s;" % (section.replace("/", "_"), name, value.strip("[]"))
                for (section, _, name), value in zip(sections, row)  # noqa: B905 - Python 3.6
            ]
            found.append((gpu or "GPU of line %d" % number, [Line(number, field) for field in fields]))
    return found


def table_parts(lines: list[Line]) -> list[tuple[str | None, list[Line]]]:
    """Like :func:`parts`, for the table, which shows one of these values: uncorrectable errors since the load."""
    rows = [(number, smi_forms.ROW.search(text)) for number, text in lines]
    return [
        (row.group("bus"), [Line(number, "errors_uncorrected_volatile/ecc=%s;" % row.group("ecc"))])
        for number, row in rows
        if row and row.group("ecc").isdigit()  # a table of virtual GPUs has their utilization there
    ]


def problems(lines: list[Line]) -> list[Explanation]:
    """Return the values that need attention, GPU by GPU; the message is the field as section/name=value."""
    found: list[Explanation] = []
    for address, fields in parts(lines) + csv_parts(lines) + table_parts(lines):
        for row in message_table.find(KIND, flatten(fields)) if address else []:
            one = message_table.explanation(row, address)
            found.append(one._replace(cause="%s: %s" % (one.cause, address)))
    return found
