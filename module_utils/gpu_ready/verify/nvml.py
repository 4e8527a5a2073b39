"""The GPUs that the driver's management library (NVML) reports, through pynvml or nvidia-smi with equal results.

Both run in a process of their own with a time limit, because a driver may hang. Output counts as data only if the
program succeeded.
"""

import re
import sys
from typing import Dict, List, NamedTuple, Optional

from ..base.host import MISSING, Host, Result
from ..base.json_file import parse_json

FIELDS = ("index", "uuid", "name", "pci.bus_id", "driver_version")
QUERY = ["nvidia-smi", "--query-gpu=" + ",".join(FIELDS), "--format=csv,noheader"]
TIMEOUT = 60.0
"""Seconds; the first call after boot initialises every GPU (8 of them: half a minute without persistence)."""

SMI = "nvidia-smi"
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


class NvmlAnswer(NamedTuple):
    """What NVML answered. ``how``: pynvml (the program above) or nvidia-smi (to QUERY)."""

    how: str
    result: Result

    @property
    def gpus(self) -> List[NvmlGpu]:
        """The GPUs of a usable answer."""
        return smi_gpus(self.result) if self.how == SMI else pynvml_gpus(self.result)


def first_line(text: str) -> Optional[str]:
    """Return the first line with text."""
    for line in text.splitlines():
        if line.strip():
            return line.strip()
    return None


def smi_text(result: Result) -> str:
    """Return nvidia-smi's answer. Exit status 14 is a damaged infoROM, with a warning; its data are valid."""
    if result.rc != 14:
        return result.out
    return "\n".join(line for line in result.out.splitlines() if not line.startswith("WARNING:"))


def smi_gpus(result: Result) -> List[NvmlGpu]:
    """Return the GPUs in nvidia-smi's answer to QUERY."""
    return (parse_csv(smi_text(result)) or []) if result.rc in (0, 14) else []


def pynvml_gpus(result: Result) -> List[NvmlGpu]:
    """Return the GPUs in the answer of PYNVML."""
    return (parse_rows(result.out) or []) if result.rc == 0 else []


def query(host: Host, timeout: float = TIMEOUT, python: Optional[str] = None) -> NvmlAnswer:
    """Ask NVML of this host: pynvml where it can be imported, else nvidia-smi."""
    answer = host.run([python or sys.executable or "python3", "-c", PYNVML], timeout=timeout)
    if answer.rc not in (NOT_IMPORTABLE, MISSING):
        return NvmlAnswer("pynvml", answer)
    return NvmlAnswer(SMI, host.run(QUERY, timeout=timeout))


def query_persistence(host: Host) -> Optional[Dict[str, str]]:
    """Return the persistence mode ("Enabled", "Disabled", "[N/A]") by UUID, of this host.

    None where nvidia-smi has no answer.
    """
    answer = host.run(["nvidia-smi", "--query-gpu=uuid,persistence_mode", "--format=csv,noheader"], timeout=TIMEOUT)
    found = dict(re.findall(r"(?m)^(GPU-[\w-]+), (\S+)\s*$", answer.out))
    return found if found and answer.rc in (0, 14) else None
