"""What nvidia-smi prints: its answer in any form, and its error messages.

Failures are on standard output too, at times with status 0; a value of a failing query is no failure of the call.
"""

import re
from typing import Any

from . import message_table, smi_forms, smi_topology, smi_values, text_lines
from .message_table import NVIDIA_SMI, SEVERITIES, Explanation, Found
from .smi_forms import BUS_ID, TEGRA, VERSION, Reading

NAMED = re.compile(r"(?:for|corrupted at) gpu\s*(?:\d{1,3}:?\s+)?(%s)" % BUS_ID, re.IGNORECASE)
LIBRARY = re.compile(r"NVML library version:\s*(%s)" % VERSION)
EXIT = re.compile(
    r"(?:exit(?:ed)?(?: with)?(?: \w+)? (?:status|code)(?: of)?|exited with|return(?:ed)? code|\brc\W{1,4}|exit=|\$\?)"
    r"[\s:=]*(\d{1,3})\b",
    re.IGNORECASE,
)
"""The status as shells, kubectl and Ansible print it; an empty line may be before it."""
MODULE_MISSING = re.compile(r"Module nvidia\S* not found|could not find module.{0,20}nvidia", re.IGNORECASE)
MODULE_THERE = re.compile(r"(?:^|\n)filename:[ \t]*/\S{0,200}nvidia\S{0,80}\.ko|(?:^|\n)nvidia +\d{5,}", re.IGNORECASE)


OF_ONE_GPU = (
    "gpu_lost", "gpu_reset_required", "gpu_power_cable", "gpu_not_initialized", "gpu_handle_failed", "gpu_in_use",
    "inforom_corrupted",
)  # fmt: skip
"""Messages about one GPU, with which the others still answer."""
SUPERSEDED = {
    "gpu_lost": "gpu_reset_required",  # "Unable to determine the device handle" is the frame of both
    "driver_library_mismatch": "driver_library_mismatch_in_container",
    "reset_refused": "gpu_in_use",
}
"""Codes that another one, where it was found, explains better."""
ROWS = re.compile(
    r"^\W{0,8}<[/?!\w]|^.{0,60}\|.*\||^\W{0,60}[A-Z][\w ./()-]{0,60}? +: +\S|^[ \t]{1,40}[A-Z][\w /()-]{0,40}$"
    r"|^.{1,200}(?:, \[?(?:N/A|Not Supported|[\d.]{1,12}(?: \w{1,5})?)\]?){2}"
)
"""Lines of a table, of -q, of XML or of CSV: their words are values and names of processes, not messages."""
LOST_IN_TABLE = re.compile(r"\|[^|]*(?:GPU is lost|GPU requires (?:a )?reset)[^|]*\|", re.IGNORECASE)


def answered(found: Reading | None) -> bool:
    return found is not None and bool(found.gpus or found.whole.get("driver_version"))


def message_lines(text: str) -> list[text_lines.Line]:
    """Return the lines of a text that may be messages: in an answer of nvidia-smi most are values."""
    lines = text_lines.lines_of(text)
    if answered(smi_forms.reading(text_lines.plain(text))) or smi_topology.read(text):
        return [line for line in lines if not ROWS.match(line.text) or LOST_IN_TABLE.search(line.text)]
    return lines


def messages_in(text: str) -> list[Found]:
    """Return the messages in a text, the root cause first; in an answer only those that can be beside one."""
    if answered(smi_forms.reading(text_lines.plain(text))):
        found = message_table.find(NVIDIA_SMI, text_lines.flatten(message_lines(text)))
        found = [row for row in found if row.entry.code in OF_ONE_GPU]
    else:
        found = message_table.find_broken(NVIDIA_SMI, text)
    codes = {row.entry.code for row in found}
    return [row for row in found if SUPERSEDED.get(row.entry.code) not in codes]


def problems(text: str) -> list[Explanation]:
    """Return problems in nvidia-smi's output: the serious ones first, causes before consequences."""
    address = NAMED.search(text_lines.joined(text))
    values = smi_values.problems(text_lines.lines_of(text)) + smi_topology.problems(text)
    of_values = {one.code for one in values}  # a field is a message too ("License Status : Unlicensed")
    rows = [row for row in messages_in(text) if row.entry.code not in of_values]
    found = [message_table.explanation(row, address.group(1) if address else None) for row in rows]
    found += [] if found or values else of_status(text)
    return sorted(found + values, key=lambda one: SEVERITIES.index(one.severity))


def of_status(text: str) -> list[Explanation]:
    """Return what the exit status alone says of a call of nvidia-smi whose words are not in the text."""
    status = EXIT.search(text_lines.joined(text))
    if status is None or "nvidia-smi" not in text or answered(smi_forms.reading(text_lines.plain(text))):
        return []
    rows = [entry for entry in message_table.table(NVIDIA_SMI) if int(status.group(1)) in entry.exits]
    return [message_table.explanation(Found(row, 0, status.group(0), None)) for row in rows[:1]]


def read(text: str) -> dict[str, Any]:
    """Read any output of nvidia-smi: versions, GPUs and problems, or the state that its failure means."""
    explained = problems(text)
    text = text_lines.plain(text)
    flat = text_lines.joined(text)
    found = smi_forms.reading(text)
    usable = answered(found)
    complaints = [] if usable else messages_in(text)
    if complaints or found is None:
        found = Reading({}, [])
    answer: dict[str, Any] = {"usable": usable, "driver_version": None, "cuda_version": None}
    answer.update(found.whole, gpus=found.gpus)
    if any(TEGRA.search(gpu.get("name") or "") for gpu in found.gpus):
        answer["tegra"] = True
    if not usable:
        answer["state"] = complaints[0].entry.names if complaints else None
    answer.update(beside(flat, text), problems=explained)
    return answer


def beside(flat: str, text: str) -> dict[str, Any]:
    """Beside the answer: the library's version, the status, a named GPU, the module."""
    library, status, address = LIBRARY.search(flat), EXIT.search(flat), NAMED.search(flat)
    found: dict[str, Any] = {}
    if library:
        found["nvml_library_version"] = library.group(1)
    if status:
        found["exit_code"] = int(status.group(1))
    if address:
        found["bus_id"] = address.group(1)
    if MODULE_MISSING.search(flat) or MODULE_THERE.search(text):
        found["module_found"] = not MODULE_MISSING.search(flat)
    return found


def state(code: int, text: str) -> str:
    """Return the code of a failed call, by its text first, else by its exit status."""
    found = messages_in(text)
    if found:
        return found[0].entry.code
    return next((entry.code for entry in message_table.table(NVIDIA_SMI) if code in entry.exits), "unknown")


def explain(code: int, text: str) -> tuple[str, str | None]:
    """Return the code of a failed call and the GPU that its text names."""
    address = NAMED.search(text_lines.joined(text))
    return state(code, text), address.group(1) if address else None
