"""The GPUs as the driver's management library (NVML) sees them: through pynvml where importable, else nvidia-smi.

Both ways give the same values. Both run in a process of their own with a time limit: a driver that hangs must not take
the module with it. What a program printed counts as data only when it exited with 0.
"""

import json
import re
import sys
from typing import Any, Dict, List, NamedTuple, Optional

from ..base.host import MISSING, Host, Result
from ..diagnostics import messages

FIELDS = ("index", "uuid", "name", "pci.bus_id", "driver_version")
QUERY = ["nvidia-smi", "--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader"]
TIMEOUT = 60.0
"""Seconds; the first call after boot initialises every GPU (8 of them: half a minute without persistence)."""

NOT_IMPORTABLE = 77
PYNVML = r"""
import json, sys
try:
    import pynvml as n
except ImportError:
    sys.exit(77)
if not hasattr(n, "nvmlInit"):
    sys.exit(77)
def text(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
try:
    n.nvmlInit()
    rows = []
    for index in range(n.nvmlDeviceGetCount()):
        handle = n.nvmlDeviceGetHandleByIndex(index)
        rows.append([index, text(n.nvmlDeviceGetUUID(handle)), text(n.nvmlDeviceGetName(handle)),
                     text(n.nvmlDeviceGetPciInfo(handle).busId), text(n.nvmlSystemGetDriverVersion())])
    print(json.dumps(rows))
except n.NVMLError as error:
    sys.stderr.write("NVML error %d: %s" % (error.value, error))
    sys.exit(1)
"""


class Gpu(NamedTuple):
    """One GPU; ``bus_id`` as sysfs writes it (``0000:3b:00.0``)."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    uuid: str
    name: str
    bus_id: str
    driver_version: str


class Answer(NamedTuple):
    """What NVML said: GPUs when ``usable``, else the state word with cause and remedy."""

    usable: bool
    how: str
    gpus: List[Gpu]
    state: Optional[str] = None
    said: Optional[str] = None
    cause: Optional[str] = None
    remedy: Optional[str] = None


def bus_id(text: str) -> str:
    """Return a PCI address as sysfs writes it: NVML's domain has eight digits, sysfs' four where they are enough."""
    match = re.match(r"^\s*([0-9A-Fa-f]+):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-9A-Fa-f])\s*$", text)
    if match is None:
        return text.strip().lower()
    return "%04x:%s:%s.%s" % (int(match.group(1), 16), match.group(2).lower(), match.group(3).lower(), match.group(4))


def read_csv(text: str) -> Optional[List[Gpu]]:
    """Read the rows of :data:`QUERY`; None where a line has another form. A name may hold a comma."""
    gpus = []
    for line in text.splitlines():
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < len(FIELDS) or not cells[0].isdigit() or not cells[1].startswith("GPU-"):
            return None
        gpus.append(Gpu(int(cells[0]), cells[1], ", ".join(cells[2:-2]), bus_id(cells[-2]), cells[-1]))
    return gpus


def read_rows(text: str) -> Optional[List[Gpu]]:
    """Read what the pynvml program prints; None where it is anything else."""
    try:
        rows = json.loads(text)
        return [Gpu(int(row[0]), str(row[1]), str(row[2]), bus_id(str(row[3])), str(row[4])) for row in rows]
    except (ValueError, TypeError, IndexError, KeyError):
        return None


def failed(how: str, code: int, said: str) -> Answer:
    """Return the answer of a call that did not work."""
    found = messages.explain_smi(code, said)
    return Answer(False, how, [], found.code, first_line(said), found.cause, found.remedy)


def first_line(text: str) -> Optional[str]:
    """Return the first line that says something, None where none does."""
    for line in text.splitlines():
        if line.strip():
            return line.strip()
    return None


def _answer(how: str, gpus: Optional[List[Gpu]], said: str) -> Answer:
    if gpus is None:
        cause, remedy = messages.SMI_STATES["unreadable"]
        return Answer(False, how, [], "unreadable", first_line(said), cause, remedy)
    if not gpus:
        return failed(how, 6, said)
    return Answer(True, how, gpus)


def from_smi(result: Result) -> Answer:
    """Return the answer for what nvidia-smi gave to :data:`QUERY` (14: a damaged infoROM, the answer is good)."""
    if result.rc not in (0, 14):
        return failed("nvidia-smi", result.rc, result.out + "\n" + result.err)
    text = result.out
    if result.rc == 14:
        text = "\n".join(line for line in text.splitlines() if not line.startswith("WARNING:"))
    if messages.smi_state(0, text) != "unknown":  # `No devices were found` came with status 0 from some releases
        return failed("nvidia-smi", 0, text)
    return _answer("nvidia-smi", read_csv(text), text)


def from_pynvml(result: Result) -> Optional[Answer]:
    """Return the answer for what :data:`PYNVML` gave, None where pynvml is not to be had."""
    if result.rc in (NOT_IMPORTABLE, MISSING):
        return None
    if result.rc == 0:
        return _answer("pynvml", read_rows(result.out), result.out)
    match = re.search(r"NVML error (\d+): (.*)", result.err)
    if match:
        return failed("pynvml", int(match.group(1)), match.group(2))
    return failed("pynvml", result.rc, result.err)


def look(host: Host, timeout: float = TIMEOUT, python: Optional[str] = None) -> Answer:
    """Ask NVML of this host."""
    answer = from_pynvml(host.run([python or sys.executable or "python3", "-c", PYNVML], timeout=timeout))
    if answer is not None:
        return answer
    return from_smi(host.run(QUERY, timeout=timeout))


def as_dict(answer: Answer) -> Dict[str, Any]:
    """Return an answer as plain values."""
    return dict(answer._asdict(), gpus=[dict(gpu._asdict()) for gpu in answer.gpus])
