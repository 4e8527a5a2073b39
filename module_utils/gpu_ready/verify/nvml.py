"""The GPUs that the driver's management library (NVML) reports, through pynvml or nvidia-smi with equal results.

Both run in a process of their own with a time limit, because a driver may hang. Output counts as data only if the
program succeeded.
"""

import re
import sys
from typing import Dict, List, NamedTuple, Optional

from ..base.host import MISSING, Host, Result
from ..base.json_file import parse_json
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


class NvmlGpu(NamedTuple):
    """One GPU; ``bus_id`` as sysfs writes it (``0000:3b:00.0``)."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    uuid: str
    name: str
    bus_id: str
    driver_version: str


class NvmlResult(NamedTuple):
    """GPUs if ``usable``; else a state (a key of messages.SMI_STATES), the message printed, cause and remedy.

    ``how``: pynvml, nvidia-smi or container.
    """

    usable: bool
    how: str
    gpus: List[NvmlGpu]
    state: Optional[str] = None
    message: Optional[str] = None
    cause: Optional[str] = None
    remedy: Optional[str] = None


def bus_id(text: str) -> str:
    """Normalise a PCI address to the form of sysfs: NVML's domain has eight digits, sysfs' usually four."""
    match = re.match(r"^\s*([0-9A-Fa-f]+):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-9A-Fa-f])\s*$", text)
    if match is None:
        return text.strip().lower()
    return "%04x:%s:%s.%s" % (int(match.group(1), 16), match.group(2).lower(), match.group(3).lower(), match.group(4))


def parse_csv(text: str) -> Optional[List[NvmlGpu]]:
    """Parse the output of :data:`QUERY`; None if any line has another form. A GPU's name may contain a comma."""
    gpus = []
    for line in text.splitlines():
        if not line.strip():
            continue
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < len(FIELDS) or not cells[0].isdigit() or not cells[1].startswith("GPU-"):
            return None
        gpus.append(NvmlGpu(int(cells[0]), cells[1], ", ".join(cells[2:-2]), bus_id(cells[-2]), cells[-1]))
    return gpus


def parse_rows(text: str) -> Optional[List[NvmlGpu]]:
    """Parse the output of :data:`PYNVML`; None if it has another form."""
    try:
        rows = parse_json(text)
        return [NvmlGpu(int(row[0]), str(row[1]), str(row[2]), bus_id(str(row[3])), str(row[4])) for row in rows]
    except (ValueError, OverflowError, TypeError, IndexError, KeyError):
        return None


def failed_query(how: str, code: int, output: str) -> NvmlResult:
    found = messages.explain_smi(code, output)
    return NvmlResult(False, how, [], found.code, first_line(output), found.cause, found.remedy)


def first_line(text: str) -> Optional[str]:
    for line in text.splitlines():
        if line.strip():
            return line.strip()
    return None


def _result(how: str, gpus: Optional[List[NvmlGpu]], output: str) -> NvmlResult:
    if gpus is None:
        cause, remedy = messages.SMI_STATES["unreadable"]
        return NvmlResult(False, how, [], "unreadable", first_line(output), cause, remedy)
    if not gpus:
        return failed_query(how, 6, output)
    return NvmlResult(True, how, gpus)


def from_smi(result: Result) -> NvmlResult:
    """Interpret nvidia-smi's answer to :data:`QUERY`. Exit status 14 is a damaged infoROM; its data are valid."""
    if result.rc not in (0, 14):
        return failed_query("nvidia-smi", result.rc, result.out + "\n" + result.err)
    text = result.out
    if result.rc == 14:
        text = "\n".join(line for line in text.splitlines() if not line.startswith("WARNING:"))
    if messages.smi_state(0, text) != "unknown":  # `No devices were found` came with status 0 from some releases
        return failed_query("nvidia-smi", 0, text)
    return _result("nvidia-smi", parse_csv(text), text)


def from_pynvml(result: Result) -> Optional[NvmlResult]:
    """Interpret the answer of :data:`PYNVML`; None if pynvml is not installed."""
    if result.rc in (NOT_IMPORTABLE, MISSING):
        return None
    if result.rc == 0:
        return _result("pynvml", parse_rows(result.out), result.out)
    match = re.search(r"NVML error (\d+): (.*)", result.err)
    if match:
        return failed_query("pynvml", int(match.group(1)), match.group(2))
    return failed_query("pynvml", result.rc, result.err)


def query(host: Host, timeout: float = TIMEOUT, python: Optional[str] = None) -> NvmlResult:
    """Ask NVML of this host: pynvml where it can be imported, else nvidia-smi."""
    answer = from_pynvml(host.run([python or sys.executable or "python3", "-c", PYNVML], timeout=timeout))
    if answer is not None:
        return answer
    return from_smi(host.run(QUERY, timeout=timeout))


def query_persistence(host: Host) -> Optional[Dict[str, str]]:
    """Return the persistence mode ("Enabled", "Disabled", "[N/A]") by UUID, of this host.

    None where nvidia-smi has no answer.
    """
    answer = host.run(["nvidia-smi", "--query-gpu=uuid,persistence_mode", "--format=csv,noheader"], timeout=TIMEOUT)
    found = dict(re.findall(r"(?m)^(GPU-[\w-]+), (\S+)\s*$", answer.out))
    return found if found and answer.rc in (0, 14) else None


def to_json(result: NvmlResult) -> Dict[str, object]:
    return dict(result._asdict(), gpus=[dict(gpu._asdict()) for gpu in result.gpus])
