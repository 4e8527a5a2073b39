"""The compute check: every GPU runs a small kernel, on the host and in containers, and the results are compared.

:mod:`compute_program` does this in a process of its own; here it is started and its output judged. With NVIDIA's stub
library for libcuda, which computes nothing, the check is skipped.
"""

import inspect
import re
import sys
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ..base.host import MISSING, TIMED_OUT, Host, Result
from ..base.json_file import parse_json
from . import compute_program
from .nvml import NvmlGpu

TIMEOUT = 180.0
"""Seconds for all GPUs of a host; without persistence mode each needs some to initialise."""

STUB = 34
"""CUDA_ERROR_STUB_LIBRARY."""


class CudaError(NamedTuple):
    """A failed call. ``code`` is CUDA's error number; None: the program itself failed."""

    call: str
    code: Optional[int]
    name: str
    text: str


class CudaDevice(NamedTuple):
    """A device as CUDA enumerates it; ``instance`` is the UUID of a MIG instance, ``mode`` the compute mode."""

    number: int
    uuid: str = ""
    address: str = ""
    instance: str = ""
    mode: int = 0

    @property
    def label(self) -> str:
        """UUID and PCI address."""
        name = self.instance or self.uuid or "GPU %d" % self.number
        return "%s (%s)" % (name, self.address) if self.address else name


class DeviceResult(NamedTuple):
    """``wrong``: how many results were wrong. None of both: the run ended before this device did."""

    device: CudaDevice
    wrong: Optional[int] = None
    failed: Optional[CudaError] = None


class ComputeResult(NamedTuple):
    """``skipped``: why nothing was computed. ``failed``: an error of the whole run. ``cuda``: version of libcuda."""

    skipped: Optional[str] = None
    failed: Optional[CudaError] = None
    devices: Tuple[DeviceResult, ...] = ()
    cuda: Optional[str] = None


def program() -> List[str]:
    """Return arguments with which a Python interpreter runs the program."""
    return ["-c", inspect.getsource(compute_program)]


def run_on_host(host: Host, timeout: float = TIMEOUT) -> ComputeResult:
    return parse_result(host.run([sys.executable or "python3"] + program(), timeout=timeout))


NO_PYTHON = re.compile(r"python3\W+.{0,40}(?:not found|no such file)|(?:exec|stat)\W.{0,40}python3", re.IGNORECASE)


def parse_result(result: Result) -> ComputeResult:
    """Interpret the program's output, also where the program was ended early."""
    if result.rc == MISSING or (result.rc and NO_PYTHON.search(result.err)):
        return ComputeResult(skipped="python3 is missing; use an image that has it")
    minimal = re.search(r"No module named '?\w+", result.err) if result.rc else None
    if minimal:
        return ComputeResult(skipped="python3 is incomplete (%s); use an image with a complete one" % minimal.group())
    rows = parse_rows(result.out)
    failed = next((parse_error(row["failed"]) for row in rows if "failed" in row and "gpu" not in row), None)
    if failed and failed.code == STUB:
        return ComputeResult(skipped="libcuda is a stub library (CUDA_ERROR_STUB_LIBRARY), which computes nothing")
    if failed and failed.code == compute_program.NO_SUCH_FUNCTION:
        return ComputeResult(skipped="libcuda is a stub library (%s), which computes nothing" % failed.text)
    devices: Dict[int, DeviceResult] = {}
    for row in rows:
        if "gpu" in row:
            found = parse_device(row)
            devices[found.device.number] = found
    if failed is None and result.rc:
        last = "no answer in time" if result.rc == TIMED_OUT else "the program ended with status %d" % result.rc
        lines = [line for line in result.err.splitlines() if line.strip()]
        failed = CudaError("the program", None, "", ": ".join([last] + lines[-1:]))
    count = next((int(str(row["cuda"])) for row in rows if row.get("cuda")), 0)
    version = "%d.%d" % (count // 1000, count % 1000 // 10) if count else None
    return ComputeResult(None, failed, tuple(devices[number] for number in sorted(devices)), version)


def parse_rows(text: str) -> List[Mapping[str, object]]:
    """Return JSON objects of the program. An image may print lines of its own before them."""
    rows: List[Mapping[str, object]] = []
    for line in text.splitlines():
        try:
            row = parse_json(line) if line.startswith("{") else None
        except ValueError:
            continue
        if isinstance(row, dict) and is_row(row):
            rows.append(row)
    return rows


def is_row(row: Mapping[str, object]) -> bool:
    """Return True if an object has the form of the program's: an image can print others."""
    gpu, failed = row.get("gpu", {}), row.get("failed", {})
    if not isinstance(gpu, dict) or not isinstance(failed, dict):
        return False
    numbers = [gpu.get("index", 0), gpu.get("mode", 0), failed.get("code"), row.get("wrong"), row.get("cuda")]
    return all(number is None or isinstance(number, int) for number in numbers)


def parse_error(value: object) -> CudaError:
    found = value if isinstance(value, dict) else {}
    code = found.get("code")
    call, name, text = (str(found.get(key, "")) for key in ("call", "name", "text"))
    return CudaError(call, None if code is None else int(code), name, text)


def parse_device(row: Mapping[str, object]) -> DeviceResult:
    gpu, wrong = row["gpu"], row.get("wrong")
    found = gpu if isinstance(gpu, dict) else {}
    texts = [str(found.get(key) or "") for key in ("uuid", "address", "instance")]
    device = CudaDevice(int(found.get("index", 0)), texts[0], texts[1], texts[2], int(found.get("mode", 0)))
    failed = parse_error(row["failed"]) if "failed" in row else None
    return DeviceResult(device, None if wrong is None else int(str(wrong)), failed)


MIG_QUERY = ["nvidia-smi", "--query-gpu=uuid,mig.mode.current", "--format=csv,noheader"]


def query_mig(host: Host, result: Optional[ComputeResult], gpus: Sequence[NvmlGpu]) -> List[str]:
    """Return UUIDs of GPUs with MIG enabled; asked only if CUDA shows fewer GPUs than NVML. Old drivers report none."""
    if result is None or result.skipped or len(result.devices) >= len(gpus):
        return []
    answer = host.run(MIG_QUERY, timeout=60.0)
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.out.splitlines()] if answer.rc == 0 else []
    return [row[0] for row in rows if len(row) == 2 and row[1] == "Enabled"]
