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
from .checks import NOT_RUN, Check, judge
from .nvml import NvmlGpu

TIMEOUT = 180.0
"""Seconds for all GPUs of a host; without persistence mode each needs some to initialise."""

STUB, DEVICES_UNAVAILABLE, INVALID_DEVICE, NO_DEVICE = 34, 46, 101, 100
EXCLUSIVE = (1, 3)
MODES = {1: "Exclusive_Thread", 2: "Prohibited", 3: "Exclusive_Process"}
DMESG = "read 'dmesg | grep NVRM'"

ERRORS: Dict[int, Tuple[str, str]] = {
    compute_program.NO_SUCH_LIBRARY: (
        "the driver's library for CUDA cannot be loaded",
        "install the driver's compute libraries (libcuda), of the version of the loaded module",
    ),
    compute_program.NO_SUCH_FUNCTION: ("libcuda is not NVIDIA's, or too old", "install the driver's libcuda"),
    1: (
        "libcuda refused an argument",
        "check that libcuda is the driver's own; if it is, report this as a defect of gpu-ready",
    ),
    2: ("the GPU's memory is full", "end the programs that 'nvidia-smi' lists, then verify again"),
    3: ("the driver could not start CUDA", "%s, then reload the modules or reboot" % DMESG),
    DEVICES_UNAVAILABLE: (
        "the GPU is used by another process, in a bad state, or its compute mode forbids use",
        "see 'nvidia-smi -q -d COMPUTE,PIDS', end the process or set 'nvidia-smi -c 0', else reset the GPU",
    ),
    NO_DEVICE: (
        "CUDA finds no GPU: the driver started none, or device nodes (/dev/nvidia0, nvidiactl, nvidia-uvm) are missing",
        "run 'nvidia-modprobe -u -c 0' and 'nvidia-smi -L'; with MIG enabled, create instances first",
    ),
    INVALID_DEVICE: (
        "the GPU is lost, or its compute mode forbids use",
        "see 'nvidia-smi -q -d COMPUTE' and the PCI bus",
    ),
    200: ("the driver does not accept the kernel's code", "check that libcuda and the module are of one driver"),
    201: ("the GPU's context was lost", "%s and run again" % DMESG),
    209: ("the driver has no code generator for this GPU", "install a driver branch that supports this GPU"),
    214: ("the GPU reported an uncorrectable memory error", "reset or replace the GPU; see its ECC counters"),
    218: ("the driver could not translate PTX", "install libnvidia-ptxjitcompiler of the driver's version"),
    220: ("an NVLink reported an uncorrectable error", "see 'nvidia-smi nvlink -e', reset or replace the GPU"),
    221: ("the driver's PTX compiler is missing", "install libnvidia-ptxjitcompiler of the driver's version"),
    222: ("the driver is older than this PTX", "install a driver branch that supports this GPU"),
    304: ("a call of the operating system failed", "check device nodes and their permissions, cgroups, locked memory"),
    700: ("the kernel accessed invalid memory", "%s; suspect the GPU's memory or the driver" % DMESG),
    702: ("the kernel did not end", "%s; the GPU hangs: reset it or reboot" % DMESG),
    719: ("the kernel was aborted", "%s; reset the GPU or reboot" % DMESG),
    800: ("the process has no permission", "run as root, and check SELinux and cgroups"),
    801: ("the GPU or this virtual machine does not support it", "check the licence and profile of the virtual GPU"),
    802: (
        "the NVSwitch fabric is not set up: the fabric manager is not running, is starting, or is of another version",
        "see 'systemctl status nvidia-fabricmanager'; its version must be the driver's",
    ),
    803: (
        "libcuda and the loaded kernel module are of different drivers",
        "reboot the host, or reload the modules; in a container: use an image without driver libraries of its own",
    ),
    804: (
        "the image contains libraries of a newer CUDA, which this GPU or driver does not support",
        "install a newer driver, or use an image of an older CUDA",
    ),
    805: ("the MPS daemon does not answer", "start nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY"),
    999: (
        "the driver gave no reason; usually nvidia-uvm is not loaded or a GPU is in a bad state",
        "run 'modprobe nvidia-uvm', %s, then reload the modules or reboot" % DMESG,
    ),
}
"""Cause and remedy by CUDA's error number. The two below zero are of compute_program."""
NO_INSTANCE = (
    "the container has the GPU, but none of its MIG instances, whose device nodes are in /dev/nvidia-caps",
    "set nvidia_container_runtime_mode to toolkit or cdi, with NVIDIA's container toolkit on the host",
)
UNKNOWN = ("an unusual error", DMESG + " and look the name up in the reference of the CUDA driver API")


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


def describe_error(error: CudaError) -> str:
    name = " ".join(part for part in (error.name, "(%s)" % error.code if error.name else "") if part)
    return "%s: %s" % (error.call, ", ".join(part for part in (name, error.text) if part) or error.code)


def explain_error(error: CudaError) -> Tuple[str, str]:
    """Return the cause and remedy."""
    if error.code is None:
        return ("the driver or a GPU does not answer, or the program was killed", "%s, then reboot" % DMESG)
    return ERRORS.get(error.code, UNKNOWN)


def check(
    result: Optional[ComputeResult],
    gpus: Sequence[NvmlGpu],
    mig: Sequence[str],
    place: str = "",
    host: Optional[ComputeResult] = None,
) -> List[Check]:
    """Judge a run: each of ``gpus`` has to compute correctly. ``mig``: UUIDs of GPUs with MIG enabled.

    ``host``: the result on the host, if this is the run in a container.
    """
    name = "compute" + place
    expected = "every GPU computes"
    if result is None:
        return [Check(name, None, expected, NOT_RUN)]
    if result.skipped:
        return [Check(name, None, expected, "skipped: " + result.skipped)]
    if host is not None and lost_instance(result, gpus, mig, host):
        shown = describe_error(result.failed) if result.failed else "CUDA shows no MIG instance"
        return [judge(name, False, "a MIG instance computes, as on the host", shown, *NO_INSTANCE)]
    if result.failed and result.failed.code == NO_DEVICE and gpus and all(gpu.uuid in mig for gpu in gpus):
        return [Check(name, None, expected, "skipped: MIG is enabled and no GPU has a compute instance")]
    checks, correct = [], []
    for row in result.devices:
        found = check_device(row, name, result.failed)
        if found is None:
            correct.append(row.device.label)
        else:
            checks.append(found)
    if result.failed and not any(one.ok is False for one in checks):
        checks.append(judge(name, False, expected, describe_error(result.failed), *explain_error(result.failed)))
    known = {row.device.uuid for row in result.devices} | {row.device.address for row in result.devices}
    for gpu in gpus if not result.failed else ():
        if gpu.uuid in known or gpu.bus_id in known:
            continue
        label = "%s (%s) computes" % (gpu.uuid, gpu.bus_id)
        if gpu.uuid in mig:
            checks.append(Check(name, None, label, "skipped: MIG is enabled, and CUDA shows one instance per process"))
        else:
            cause = "NVML shows this GPU and CUDA does not"
            remedy = "run 'nvidia-smi -q -d COMPUTE', check MIG, %s" % DMESG
            checks.append(judge(name, False, label, "missing", cause, remedy))
    if correct and not any(one.ok is False for one in checks):
        checks.insert(0, judge(name, True, expected, "correct results from " + ", ".join(correct)))
    return checks or [judge(name, False, expected, "CUDA shows no GPU", *ERRORS[NO_DEVICE])]


def lost_instance(result: ComputeResult, gpus: Sequence[NvmlGpu], mig: Sequence[str], host: ComputeResult) -> bool:
    """Return True if CUDA shows no MIG instance of ``gpus`` in a container, although one computed on the host."""
    parts = [row.device for row in host.devices if row.device.instance and row.wrong == 0]
    partitioned = {device.uuid for device in parts} | set(mig)
    return (
        bool(parts)
        and any(gpu.uuid in partitioned for gpu in gpus)
        and (result.failed is None or result.failed.code == NO_DEVICE)
        and not any(row.device.instance for row in result.devices)
    )


def check_device(row: DeviceResult, name: str, run_error: Optional[CudaError]) -> Optional[Check]:
    """Judge one device; None if it computed correctly. ``run_error`` explains a device without a result."""
    expected = "%s computes" % row.device.label
    mode = row.device.mode
    if mode == compute_program.PROHIBITED:
        return Check(name, None, expected, "skipped: its compute mode is Prohibited; 'nvidia-smi -c 0' allows it")
    if row.failed:
        if mode in EXCLUSIVE and row.failed.code in (DEVICES_UNAVAILABLE, INVALID_DEVICE):
            found = "skipped: its compute mode is %s and another process uses it" % MODES[mode]
            return Check(name, None, expected, found)
        return judge(name, False, expected, describe_error(row.failed), *explain_error(row.failed))
    if row.wrong is None:
        return judge(name, False, expected, describe_error(run_error) if run_error else "no end", *ERRORS[702])
    if row.wrong:
        cause = "the GPU computes incorrectly: its memory, power supply or the GPU itself is damaged"
        found = "%d of %d results are wrong" % (row.wrong, compute_program.COUNT)
        remedy = "see its ECC counters and Xids, reset it, else replace it"
        return judge(name, False, expected, found, cause, remedy)
    return None


MIG_QUERY = ["nvidia-smi", "--query-gpu=uuid,mig.mode.current", "--format=csv,noheader"]


def query_mig(host: Host, result: Optional[ComputeResult], gpus: Sequence[NvmlGpu]) -> List[str]:
    """Return UUIDs of GPUs with MIG enabled; asked only if CUDA shows fewer GPUs than NVML. Old drivers report none."""
    if result is None or result.skipped or len(result.devices) >= len(gpus):
        return []
    answer = host.run(MIG_QUERY, timeout=60.0)
    rows = [[cell.strip() for cell in line.split(",")] for line in answer.out.splitlines()] if answer.rc == 0 else []
    return [row[0] for row in rows if len(row) == 2 and row[1] == "Enabled"]
