"""What the compute check shows: its errors with cause and remedy, and the verdict on each GPU. Pure."""

from collections.abc import Sequence

from ....module_utils.gpu_ready.verify import compute_program
from ....module_utils.gpu_ready.verify.compute import ComputeResult, CudaError, DeviceResult
from ....module_utils.gpu_ready.verify.nvml import NvmlGpu
from .checks import NOT_RUN, Check, judge

DEVICES_UNAVAILABLE, INVALID_DEVICE, NO_DEVICE = 46, 101, 100
EXCLUSIVE = (1, 3)
MODES = {1: "Exclusive_Thread", 2: "Prohibited", 3: "Exclusive_Process"}
DMESG = "read 'dmesg | grep NVRM'"

ERRORS: dict[int, tuple[str, str]] = {
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


def describe_error(error: CudaError) -> str:
    name = " ".join(part for part in (error.name, "(%s)" % error.code if error.name else "") if part)
    return "%s: %s" % (error.call, ", ".join(part for part in (name, error.text) if part) or error.code)


def explain_error(error: CudaError) -> tuple[str, str]:
    """Return the cause and remedy."""
    if error.code is None:
        return ("the driver or a GPU does not answer, or the program was killed", "%s, then reboot" % DMESG)
    return ERRORS.get(error.code, UNKNOWN)


def check(
    result: ComputeResult | None,
    gpus: Sequence[NvmlGpu],
    mig: Sequence[str],
    place: str = "",
    host: ComputeResult | None = None,
) -> list[Check]:
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


def check_device(row: DeviceResult, name: str, run_error: CudaError | None) -> Check | None:
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
