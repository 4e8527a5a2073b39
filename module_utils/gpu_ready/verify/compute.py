"""The compute check: every GPU runs a small kernel, on the host and in containers, and its numbers are compared.

:mod:`compute_program` does the work in a process of its own with a time limit; here it is started, read and judged.
Where libcuda is NVIDIA's stub library, which computes nothing, the check is left out and says so.
"""

import inspect
import json
import re
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..base.host import MISSING, TIMED_OUT, Host, Result
from . import compute_program
from .checks import NOT_RUN, Check, judge

TIMEOUT = 180.0
"""Seconds for all GPUs of a host: without persistence each needs some to wake up."""

STUB, DEVICES_UNAVAILABLE, INVALID_DEVICE, NO_DEVICE = 34, 46, 101, 100
EXCLUSIVE = (1, 3)
MODES = {1: "Exclusive_Thread", 2: "Prohibited", 3: "Exclusive_Process"}
DMESG = "read 'dmesg | grep NVRM'"

ERRORS: Dict[int, Tuple[str, str]] = {
    compute_program.NO_SUCH_LIBRARY: (
        "the driver's library for CUDA cannot be loaded",
        "install the driver's compute libraries (libcuda), of the version of the loaded module",
    ),
    compute_program.NO_SUCH_FUNCTION: ("this libcuda is not NVIDIA's, or ancient", "install the driver's libcuda"),
    1: ("libcuda refused an argument", "check that libcuda is the driver's own, and report this: it is our mistake"),
    2: ("the GPU's memory is used up", "end the programs that 'nvidia-smi' lists, or verify before they are started"),
    3: ("the driver could not start CUDA", "%s, then reload the modules or reboot" % DMESG),
    DEVICES_UNAVAILABLE: (
        "the GPU is taken by another process, in a bad state, or closed for computing",
        "see 'nvidia-smi -q -d COMPUTE,PIDS', end what holds it or set 'nvidia-smi -c 0', else reset it",
    ),
    NO_DEVICE: (
        "the driver shows CUDA no GPU: none drives, or its nodes (/dev/nvidia0, nvidiactl, nvidia-uvm) are missing",
        "run 'nvidia-modprobe -u -c 0' and 'nvidia-smi -L'; with MIG on, make instances first",
    ),
    INVALID_DEVICE: ("the GPU went away or is closed for computing", "see 'nvidia-smi -q -d COMPUTE' and the PCI bus"),
    200: ("the driver does not take the kernel's code", "check that libcuda and module are of one driver"),
    201: ("the GPU's context is gone", "%s and run again" % DMESG),
    209: ("the driver has no code generator for this GPU", "install a driver branch that knows this GPU"),
    214: ("the GPU reported a memory error that it cannot correct", "reset or replace the GPU; see its ECC counters"),
    218: ("the driver could not translate PTX", "install libnvidia-ptxjitcompiler of the driver's version"),
    220: ("an NVLink reported an error that cannot be corrected", "see 'nvidia-smi nvlink -e', reset or replace"),
    221: ("the driver's PTX compiler is missing", "install libnvidia-ptxjitcompiler of the driver's version"),
    222: ("the driver is older than this PTX", "install a driver branch that knows this GPU"),
    304: ("a call of the operating system failed", "check device nodes and their rights, cgroups, locked memory"),
    700: ("the kernel met memory that is not there", "%s: the GPU's memory or driver is at fault" % DMESG),
    702: ("the kernel did not come to an end", "%s: the GPU hangs; reset it or reboot" % DMESG),
    719: ("the kernel broke off", "%s; reset the GPU or reboot" % DMESG),
    800: ("the process may not do this", "run as root, and outside another confinement (SELinux, cgroups)"),
    801: ("the GPU or this virtual machine does not support it", "check the licence and profile of the virtual GPU"),
    802: (
        "the NVSwitch fabric is not set up: the fabric manager does not run, still starts, or is of another version",
        "run 'systemctl status nvidia-fabricmanager', which must have the driver's version",
    ),
    803: (
        "libcuda and the loaded kernel module are of different drivers",
        "reboot the host, or reload the modules; in a container: use an image without driver libraries of its own",
    ),
    804: (
        "the image brings libraries of a newer CUDA, which this GPU or driver does not take",
        "install a newer driver, or use an image of an older CUDA",
    ),
    805: ("the daemon of MPS does not answer", "start nvidia-cuda-mps-control, or unset CUDA_MPS_PIPE_DIRECTORY"),
    999: (
        "the driver failed without saying why: usually nvidia-uvm is not loaded or a GPU is in a bad state",
        "run 'modprobe nvidia-uvm', %s, then reload the modules or reboot" % DMESG,
    ),
}
"""CUDA's errors by number: cause and remedy. Two below zero are ours: no library, no such function."""
UNKNOWN = ("an error that is rare in this place", DMESG + " and look the name up in the CUDA driver API's reference")


class Answer(NamedTuple):
    """What a run of the program gave: ``skipped`` says why nothing was computed; ``failed`` an error of the whole run.

    ``gpus`` has an entry a device: what it is (``gpu``), with ``wrong`` (how many numbers) or ``failed`` once it ended.
    """

    skipped: Optional[str] = None
    failed: Optional[Dict[str, Any]] = None
    gpus: Tuple[Dict[str, Any], ...] = ()
    cuda: Optional[str] = None


def program() -> List[str]:
    """Return the arguments that let a Python interpreter run the program."""
    return ["-c", inspect.getsource(compute_program)]


def look(host: Host, timeout: float = TIMEOUT) -> Answer:
    """Let every GPU of this host compute."""
    return read(host.run([sys.executable or "python3"] + program(), timeout=timeout))


NO_PYTHON = re.compile(r"python3\W+.{0,40}(?:not found|no such file)|(?:exec|stat)\W.{0,40}python3", re.IGNORECASE)


def read(result: Result) -> Answer:
    """Read what the program printed, also where it was broken off."""
    if result.rc == MISSING or (result.rc and NO_PYTHON.search(result.err)):
        return Answer(skipped="there is no python3 to run it; an image that has one makes this check")
    lacking = re.search(r"No module named '?\w+", result.err) if result.rc else None
    if lacking:
        return Answer(skipped="its python3 is a minimal one (%s); a whole one makes this check" % lacking.group())
    rows = [json.loads(line) for line in result.out.splitlines() if line.startswith("{") and line.endswith("}")]
    whole = next((row["failed"] for row in rows if "failed" in row and "gpu" not in row), None)
    if whole and whole["code"] == STUB:
        return Answer(skipped="libcuda is a stub library (CUDA_ERROR_STUB_LIBRARY), which computes nothing")
    if whole and whole["code"] == compute_program.NO_SUCH_FUNCTION:
        return Answer(skipped="libcuda is a stub library (%s), which computes nothing" % whole["text"])
    gpus: Dict[int, Dict[str, Any]] = {}
    for row in rows:
        if "gpu" in row:
            gpus[row["gpu"]["index"]] = row
    if whole is None and result.rc:
        last = "no answer in time" if result.rc == TIMED_OUT else "the program ended with status %d" % result.rc
        said = [line for line in result.err.splitlines() if line.strip()]
        whole = {"call": "the program", "code": None, "name": "", "text": ": ".join([last] + said[-1:])}
    count = next((row["cuda"] for row in rows if "cuda" in row), None)
    version = "%d.%d" % (count // 1000, count % 1000 // 10) if count else None
    return Answer(None, whole, tuple(gpus[index] for index in sorted(gpus)), version)


def told(failed: Dict[str, Any]) -> str:
    """Return an error in words: the call, what it said."""
    words = " ".join(part for part in (failed["name"], "(%s)" % failed["code"] if failed["name"] else "") if part)
    return "%s: %s" % (failed["call"], ", ".join(part for part in (words, failed["text"]) if part) or failed["code"])


def explained(failed: Dict[str, Any]) -> Tuple[str, str]:
    """Return cause and remedy of an error."""
    if failed["code"] is None:
        return ("the driver or a GPU does not answer, or the program was killed", "%s, then reboot" % DMESG)
    return ERRORS.get(failed["code"], UNKNOWN)


def called(gpu: Dict[str, Any]) -> str:
    """Return how a GPU is called: by its UUID and PCI address."""
    name = gpu.get("instance") or gpu.get("uuid") or "GPU %s" % gpu.get("index")
    return "%s (%s)" % (name, gpu["address"]) if gpu.get("address") else name


def check(answer: Optional[Answer], wanted: List[Dict[str, Any]], mig: List[str], place: str = "") -> List[Check]:
    """Judge a run: each of the ``wanted`` GPUs (of NVML) has to compute right; ``mig`` are UUIDs of divided ones."""
    name = "compute" + place
    expected = "every GPU computes"
    if answer is None:
        return [Check(name, None, expected, NOT_RUN)]
    if answer.skipped:
        return [Check(name, None, expected, "skipped: " + answer.skipped)]
    if answer.failed and answer.failed["code"] == NO_DEVICE and wanted and all(gpu["uuid"] in mig for gpu in wanted):
        return [Check(name, None, expected, "skipped: MIG is on and no GPU has an instance that may compute")]
    checks, right = [], []
    for row in answer.gpus:
        found = check_gpu(row, name, answer.failed)
        if found is None:
            right.append(called(row["gpu"]))
        else:
            checks.append(found)
    if answer.failed and not any(one.ok is False for one in checks):
        checks.append(judge(name, False, expected, told(answer.failed), *explained(answer.failed)))
    seen = {row["gpu"].get("uuid") for row in answer.gpus} | {row["gpu"].get("address") for row in answer.gpus}
    for gpu in wanted if not answer.failed else []:
        if gpu["uuid"] in seen or gpu["bus_id"] in seen:
            continue
        if gpu["uuid"] in mig:
            found_text = "skipped: MIG is on, and CUDA shows a process one instance only, which is of another GPU"
            checks.append(Check(name, None, "%s computes" % called_nvml(gpu), found_text))
        else:
            cause = "NVML shows this GPU and CUDA does not"
            remedy = "run 'nvidia-smi -q -d COMPUTE', look for MIG, %s" % DMESG
            checks.append(judge(name, False, "%s computes" % called_nvml(gpu), "not there", cause, remedy))
    if right and not any(one.ok is False for one in checks):
        checks.insert(0, judge(name, True, expected, "right numbers from " + ", ".join(right)))
    return checks or [judge(name, False, expected, "CUDA shows no GPU", *ERRORS[NO_DEVICE])]


def called_nvml(gpu: Dict[str, Any]) -> str:
    """Return how a GPU of NVML is called."""
    return "%s (%s)" % (gpu["uuid"], gpu["bus_id"])


def check_gpu(row: Dict[str, Any], name: str, whole: Optional[Dict[str, Any]]) -> Optional[Check]:
    """Judge one GPU; None where it computed right. One that came to no end tells how the ``whole`` run was ended."""
    gpu, failed = row["gpu"], row.get("failed")
    expected = "%s computes" % called(gpu)
    mode = gpu.get("mode", 0)
    if mode == compute_program.PROHIBITED:
        return Check(name, None, expected, "skipped: its compute mode is Prohibited; 'nvidia-smi -c 0' opens it")
    if failed:
        if mode in EXCLUSIVE and failed["code"] in (DEVICES_UNAVAILABLE, INVALID_DEVICE):
            text = "skipped: its compute mode is %s and another process has it" % MODES[mode]
            return Check(name, None, expected, text)
        return judge(name, False, expected, told(failed), *explained(failed))
    if "wrong" not in row:
        return judge(name, False, expected, told(whole) if whole else "no end", *ERRORS[702])
    if row["wrong"]:
        cause = "the GPU computes wrongly: memory, power or the GPU itself is damaged"
        found = "%d of %d numbers are wrong" % (row["wrong"], compute_program.COUNT)
        return judge(name, False, expected, found, cause, "see its ECC counters and Xids, reset it, else replace it")
    return None


MIG_QUERY = ["nvidia-smi", "--query-gpu=uuid,mig.mode.current", "--format=csv,noheader"]


def look_mig(host: Host, answer: Optional[Answer], wanted: List[Dict[str, Any]]) -> List[str]:
    """Return the UUIDs of GPUs divided by MIG; asked only where CUDA shows fewer than NVML. Older drivers: none."""
    if answer is None or answer.skipped or len(answer.gpus) >= len(wanted):
        return []
    result = host.run(MIG_QUERY, timeout=60.0)
    rows = [[cell.strip() for cell in line.split(",")] for line in result.out.splitlines()] if result.rc == 0 else []
    return [row[0] for row in rows if len(row) == 2 and row[1] == "Enabled"]
