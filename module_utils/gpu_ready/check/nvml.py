"""Reads the GPUs through NVML by ctypes: libnvidia-ml.so.1 of the driver, whatever its release.

Sizes and offsets are as in nvml.h (github.com/NVIDIA/go-nvml, gen/nvml/nvml.h). A function that is missing in a
release, or that a GPU does not support, leaves its value out. Runs in a process of its own
(worker.py), because a driver may hang.
"""

import ctypes
import struct
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import nvlink

LIBRARY = "libnvidia-ml.so.1"
OK, INVALID, UNSUPPORTED, NO_PERMISSION, NOT_FOUND, TOO_SMALL, NO_FUNCTION = 0, 2, 3, 4, 6, 7, 13
NO_VALUE = (INVALID, UNSUPPORTED, NO_PERMISSION, NOT_FOUND, NO_FUNCTION)
"""Codes of one call that say nothing about the health of the GPU."""
TEXT = 96
"""Bytes of the buffer for a text, the longest of which is a UUID (NVML_DEVICE_UUID_V2_BUFFER_SIZE)."""
NOT_AVAILABLE = 0xFFFFFFFFFFFFFFFF
MOST_RECORDS = 4096
"""Processes of one GPU; more are not asked for."""
PROCESSES = ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses",
             "nvmlDeviceGetGraphicsRunningProcesses")  # fmt: skip
NUMBERS: Dict[str, Tuple[str, Tuple[int, ...]]] = {
    "temperature_celsius": ("nvmlDeviceGetTemperature", (0,)),
    "pcie_width": ("nvmlDeviceGetCurrPcieLinkWidth", ()),
    "pcie_generation_max": ("nvmlDeviceGetMaxPcieLinkGeneration", ()),
    "persistence": ("nvmlDeviceGetPersistenceMode", ()),
}
"""Values of 32 bits by name: the function and its arguments between the device and the result."""
MORE_NUMBERS: Dict[str, Tuple[str, Tuple[int, ...]]] = {
    "power_milliwatts": ("nvmlDeviceGetPowerUsage", ()),
    "power_limit_milliwatts": ("nvmlDeviceGetEnforcedPowerLimit", ()),
    "sm_megahertz": ("nvmlDeviceGetClockInfo", (1,)),
    "sm_max_megahertz": ("nvmlDeviceGetMaxClockInfo", (1,)),
    "memory_megahertz": ("nvmlDeviceGetClockInfo", (2,)),
    "memory_max_megahertz": ("nvmlDeviceGetMaxClockInfo", (2,)),
    "pcie_width_max": ("nvmlDeviceGetMaxPcieLinkWidth", ()),
    "pcie_generation": ("nvmlDeviceGetCurrPcieLinkGeneration", ()),
    "pcie_replays": ("nvmlDeviceGetPcieReplayCounter", ()),
}
"""Those that only the metrics have."""
VOLATILE, LIFETIME = 0, 1
"""nvmlEccCounterType_t: since the driver was loaded or the GPU reset, and ever."""
RECOVERY_ACTION = 230
"""The field NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: 0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset."""


class NvmlError(Exception):
    """NVML has no answer. ``code``: its own, 0 where the library itself is missing."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Nvml:
    """The library, initialised. Raises NvmlError where that fails."""

    def __init__(self, path: str = LIBRARY) -> None:
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise NvmlError(0, "no NVML: %s" % error) from None
        self.calls = 0
        code = self.call("nvmlInit_v2")
        if code != OK:
            raise NvmlError(code, self.error_text(code))
        self.driver = self.text("nvmlSystemGetDriverVersion") or ""

    def call(self, name: str, *arguments: Any) -> int:
        self.calls += 1
        function: Optional[Callable[..., int]] = getattr(self.library, name, None)
        return NO_FUNCTION if function is None else int(function(*arguments))

    def error_text(self, code: int) -> str:
        function = getattr(self.library, "nvmlErrorString", None)
        if function is None:
            return "NVML error %d" % code
        function.restype = ctypes.c_char_p
        return str((function(code) or b"").decode("utf-8", "replace"))

    def close(self) -> None:
        self.call("nvmlShutdown")

    def text(self, name: str, *arguments: Any) -> Optional[str]:
        buffer = ctypes.create_string_buffer(TEXT)
        code = self.call(name, *(arguments + (buffer, ctypes.c_uint(TEXT))))
        return buffer.value.decode("utf-8", "replace") if self.has_value(code) else None

    def has_value(self, code: int) -> bool:
        """Return True for a result, False where there is none; raises NvmlError for a GPU that is lost and the like."""
        if code == OK or code in NO_VALUE:
            return code == OK
        raise NvmlError(code, self.error_text(code))

    def number(self, name: str, *arguments: Any) -> Optional[int]:
        value = ctypes.c_uint()
        return value.value if self.has_value(self.call(name, *(arguments + (ctypes.byref(value),)))) else None

    def long_number(self, name: str, *arguments: Any) -> Optional[int]:
        value = ctypes.c_ulonglong()
        return value.value if self.has_value(self.call(name, *(arguments + (ctypes.byref(value),)))) else None

    def numbers(self, count: int, name: str, *arguments: Any) -> Optional[List[int]]:
        """Return results of a function that stores several numbers of 32 bits, each through a pointer of its own."""
        values = [ctypes.c_uint() for _ in range(count)]
        code = self.call(name, *(arguments + tuple(ctypes.byref(value) for value in values)))
        return [value.value for value in values] if self.has_value(code) else None

    def structure(self, size: int, name: str, *arguments: Any, start: bytes = b"") -> Optional[bytes]:
        """Return the bytes of a structure that a function fills; ``start``: what it has to contain before."""
        buffer = ctypes.create_string_buffer(start, size)
        return buffer.raw if self.has_value(self.call(name, *(arguments + (buffer,)))) else None


def read_gpus(nvml: Nvml, seen: Optional[Dict[str, int]]) -> List[Dict[str, Any]]:
    """Return every GPU as values by name; a lost one has only its index and ``error``.

    ``seen``: by UUID the time of the newest sample of utilisation that was read before, in microseconds; None for what
    a health check needs only.
    """
    found = []
    for index in range(nvml.number("nvmlDeviceGetCount_v2") or 0):
        try:
            handle = ctypes.c_void_p()
            code = nvml.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
            if code != OK:
                raise NvmlError(code, nvml.error_text(code))
            gpu = read_health(nvml, handle, index)
            found.append(gpu if seen is None else dict(gpu, **read_use(nvml, handle, gpu, seen)))
        except NvmlError as error:
            found.append({"index": index, "error": error.code, "error_text": str(error)})
    return found


def read_health(nvml: Nvml, handle: ctypes.c_void_p, index: int) -> Dict[str, Any]:
    """Return identity and condition of a GPU."""
    gpu: Dict[str, Any] = {"index": index, "error": 0, "uuid": nvml.text("nvmlDeviceGetUUID", handle) or ""}
    gpu["pci"] = read_address(nvml, handle)
    gpu["serial"] = nvml.text("nvmlDeviceGetSerial", handle)
    gpu["vbios"] = nvml.text("nvmlDeviceGetVbiosVersion", handle)
    for name, (function, arguments) in NUMBERS.items():
        gpu[name] = nvml.number(function, handle, *arguments)
    gpu["memory_total"], gpu["memory_used"] = read_memory(nvml, handle)
    reasons = nvml.long_number("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if reasons is None:  # the name of drivers before 535
        reasons = nvml.long_number("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    gpu["clock_reasons"] = reasons
    ecc = nvml.numbers(2, "nvmlDeviceGetEccMode", handle)
    gpu["ecc"] = ecc[0] if ecc else None
    gpu["ecc_volatile"] = nvml.long_number("nvmlDeviceGetTotalEccErrors", handle, 1, VOLATILE) if gpu["ecc"] else None
    gpu["remapped"] = nvml.numbers(4, "nvmlDeviceGetRemappedRows", handle)
    mig = nvml.numbers(2, "nvmlDeviceGetMigMode", handle)
    gpu["mig"] = mig[0] if mig else None
    gpu["recovery_action"] = read_field(nvml, handle, RECOVERY_ACTION)
    gpu["links"] = nvlink.read_links(nvml.call, handle)
    gpu["fabric"] = nvlink.read_fabric(nvml.call, handle)
    return gpu


def read_use(nvml: Nvml, handle: ctypes.c_void_p, gpu: Dict[str, Any], seen: Dict[str, int]) -> Dict[str, Any]:
    """Return what only the metrics show of a GPU: use, power, counters."""
    more: Dict[str, Any] = {"name": nvml.text("nvmlDeviceGetName", handle)}
    for name, (function, arguments) in MORE_NUMBERS.items():
        more[name] = nvml.number(function, handle, *arguments)
    rates = nvml.structure(8, "nvmlDeviceGetUtilizationRates", handle)
    more["gpu_percent"], more["memory_percent"] = struct.unpack("II", rates) if rates else (None, None)
    for name, kind in (("ecc_corrected", 0), ("ecc_uncorrected", 1)):
        more[name] = nvml.long_number("nvmlDeviceGetTotalEccErrors", handle, kind, LIFETIME)
    active = [number for number, one in enumerate(gpu["links"]) if one]
    more["link_errors"] = nvlink.read_link_errors(nvml.call, handle, active)
    more["processes"] = read_processes(nvml, handle, nvml.driver)
    more["utilization"], more["seen"] = read_utilization(nvml, handle, seen.get(gpu["uuid"], 0))
    return more


def read_address(nvml: Nvml, handle: ctypes.c_void_p) -> Optional[str]:
    """Return the PCI address as sysfs writes it; nvmlPciInfo has it at byte 36."""
    data = nvml.structure(68, "nvmlDeviceGetPciInfo_v3", handle)
    if data is None:
        return None
    domain, _, rest = data[36:].split(b"\0")[0].decode("ascii", "replace").lower().partition(":")
    return "%s:%s" % (domain[-4:] if domain.startswith("0000") else domain, rest)


def read_memory(nvml: Nvml, handle: ctypes.c_void_p) -> Tuple[Optional[int], Optional[int]]:
    """Return total and used bytes.

    Version 2 does not count as used what the driver reserves, as nvidia-smi shows it.
    """
    data = nvml.structure(40, "nvmlDeviceGetMemoryInfo_v2", handle, start=struct.pack("I", 40 | 2 << 24))
    if data is not None:
        _, total, _, _, used = struct.unpack("I4xQQQQ", data)
        return total, used
    data = nvml.structure(24, "nvmlDeviceGetMemoryInfo", handle)
    return (struct.unpack("QQQ", data)[0], struct.unpack("QQQ", data)[2]) if data else (None, None)


def read_field(nvml: Nvml, handle: ctypes.c_void_p, number: int) -> Optional[int]:
    """Return a field of 32 bits (nvmlFieldValue: its own result at byte 28, the value at 32)."""
    data = nvml.structure(40, "nvmlDeviceGetFieldValues", handle, ctypes.c_int(1), start=struct.pack("I", number))
    if data is None or struct.unpack_from("i", data, 28)[0] != OK:
        return None
    return int(struct.unpack_from("I", data, 32)[0])


def record_size(driver: str, version: str) -> int:
    """Return bytes of the record of a process: 16 in the first version of the functions, 24 since.

    The first drivers of branch 535 had 32 (github.com/XuehaiPan/nvitop/issues/79, gpuopenanalytics/pynvml/issues/48).
    """
    if not version:
        return 16
    numbers = tuple(int(part) for part in driver.split(".") if part.isdigit())
    return 32 if (535, 43) <= numbers < (535, 98) and version == "_v3" else 24


def read_records(nvml: Nvml, name: str, size: int, handle: ctypes.c_void_p, *more: Any) -> Tuple[int, List[bytes]]:
    """Return the records of a function that takes a count and a buffer, and gives the count if the buffer is small."""
    count = ctypes.c_uint(0)
    code = nvml.call(name, *((handle, ctypes.byref(count), None) if not more else (handle, None, ctypes.byref(count))
                             + more))  # fmt: skip
    if code != TOO_SMALL and (code != OK or not count.value):
        return code, []
    space = min(count.value + 16, MOST_RECORDS)  # processes may start meanwhile
    count = ctypes.c_uint(space)
    buffer = ctypes.create_string_buffer(space * size)
    pointer = ctypes.byref(count)
    code = nvml.call(name, *((handle, pointer, buffer) if not more else (handle, buffer, pointer) + more))
    if code != OK:
        return code, []
    return code, [buffer.raw[start * size : (start + 1) * size] for start in range(min(count.value, space))]


def read_processes(nvml: Nvml, handle: ctypes.c_void_p, driver: str) -> List[Tuple[int, Optional[int]]]:
    """Return PID and used bytes (None.

    Not known) of each process on a GPU; one with compute and graphics counts once.
    """
    found: Dict[int, Optional[int]] = {}
    for base in PROCESSES:
        for version in ("_v3", "_v2", ""):
            code, records = read_records(nvml, base + version, record_size(driver, version), handle)
            if code == NO_FUNCTION:
                continue
            for record in records:
                pid, used = struct.unpack_from("I4xQ", record)
                known = found.get(pid)
                found[pid] = max(known or 0, used) if used != NOT_AVAILABLE else known
            break
    return sorted(found.items())


def read_utilization(nvml: Nvml, handle: ctypes.c_void_p, since: int) -> Tuple[List[Tuple[int, int]], int]:
    """Return percent of the multiprocessors' time by PID since ``since``, and the time of the newest sample.

    A process without a sample was idle. The functions fail on GPUs in MIG mode and before Maxwell: then [].
    """
    code, records = read_records(
        nvml, "nvmlDeviceGetProcessUtilization", 32, handle, ctypes.c_ulonglong(since)
    )  # fmt: skip
    newest, samples = since, {}  # type: int, Dict[int, List[int]]
    for record in records if code == OK else []:
        pid, time, percent = struct.unpack_from("I4xQI", record)
        if percent <= 100 and time > since:
            samples.setdefault(pid, []).append(percent)
            newest = max(newest, time)
    return sorted((pid, mean(values)) for pid, values in samples.items()), newest


def mean(values: Sequence[int]) -> int:
    return int(round(sum(values) / float(len(values))))
