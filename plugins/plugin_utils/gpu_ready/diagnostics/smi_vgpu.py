"""`nvidia-smi vgpu` and `nvidia-smi vgpu -q` of a host of virtual GPUs: which it has, and their licences.

The table of 384 to 595 has a row for each GPU and one for each of its virtual GPUs, without licences.
"""

import re
from typing import Any

from .smi_forms import BUS_ID
from .text_lines import plain

TABLE = re.compile(r"\|\s*vGPU ID\s+Name\s*\|\s*VM ID\s+VM Name\s*\|\s*vGPU-Util\s*\|")
GPU = re.compile(r"^\W{0,8}(\d{1,3})\s+(\S[^|]*?)\s*\|\s*(%s)\s*\|" % BUS_ID)
VIRTUAL = re.compile(r"^\W{0,12}(\d{3,20})\s+(\S[^|]*?)\s*\|\s*(\S+)\s+([^|]*?)\s*\|\s*(?:\d{1,3}\s*%|N/A)\s*\|")
QUERY = re.compile(r"(?m)^[ \t]*Active vGPUs[ \t]*: (\d{1,4})")
FIELD = r"(?m)^[ \t]*%s[ \t]*: *(\S.*?)[ \t]*$"


def read(text: str) -> dict[str, Any] | None:
    """Return the GPUs and virtual GPUs of either form; ``licence`` is None where the form has none."""
    text = plain(text)
    if TABLE.search(text):
        return read_table(text)
    return read_query(text) if QUERY.search(text) else None


def read_table(text: str) -> dict[str, Any]:
    """Return the rows of the table, none where the text has no table."""
    gpus: list[dict[str, Any]] = []
    virtual: list[dict[str, Any]] = []
    head = TABLE.search(text)
    for line in text[head.end() :].splitlines() if head else []:
        gpu, row = GPU.match(line), VIRTUAL.match(line)
        if gpu:
            gpus.append({"index": int(gpu.group(1)), "name": gpu.group(2), "bus_id": gpu.group(3)})
        elif row:
            bus_id = gpus[-1]["bus_id"] if gpus else None
            virtual.append({"id": row.group(1), "name": row.group(2), "vm": row.group(4), "bus_id": bus_id})
    return {"gpus": gpus, "virtual": [dict(row, licence=None) for row in virtual]}


def read_query(text: str) -> dict[str, Any]:
    gpus: list[dict[str, Any]] = []
    virtual: list[dict[str, Any]] = []
    parts = re.split(r"(?m)^GPU (%s)[ \t]*$" % BUS_ID, text)
    for bus_id, part in zip(parts[1::2], parts[2::2]):  # noqa: B905 - Python 3.6
        gpus.append({"bus_id": bus_id})
        for block in re.split(r"(?m)^[ \t]*vGPU ID[ \t]*: ", part)[1:]:
            fields = {name: re.search(FIELD % name, block) for name in ("vGPU Name", "VM Name", "License Status")}
            name, machine, licence = (match.group(1) if match else None for match in fields.values())
            number = block.split("\n")[0].strip()
            virtual.append({"id": number, "name": name, "vm": machine, "bus_id": bus_id, "licence": licence})
    return {"gpus": gpus, "virtual": virtual}


def describe(found: dict[str, Any]) -> list[str]:
    """Return what the output shows."""
    virtual, gpus = found["virtual"], found["gpus"]
    lines = ["nvidia-smi vgpu shows %d virtual GPUs on %d GPUs of this host." % (len(virtual), len(gpus))]
    for row in virtual:
        licence = "licence: %s" % row["licence"] if row["licence"] else "its licence is not in this text"
        lines.append("%s %s on %s, machine %s: %s." % (row["id"], row["name"], row["bus_id"], row["vm"], licence))
    if virtual and not any(row["licence"] for row in virtual):
        lines.append("No judgement. Remedy: for the licences give the output of 'nvidia-smi vgpu -q'.")
    return lines
