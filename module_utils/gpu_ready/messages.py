"""What nvidia-smi, docker and the NVIDIA container programs say when they fail: the cause and what helps.

A program may break its lines anywhere and a log writes newlines as ``#012``, so white space is joined before matching.
Order matters: the first pattern that is found explains the text; consequences stand behind causes.
"""

import re
from typing import Dict, List, NamedTuple, Optional, Pattern, Tuple


class Explanation(NamedTuple):
    """One explained failure: its code, what it means and what helps. ``detail`` is what the text names, if anything."""

    code: str
    cause: str
    remedy: str
    detail: Optional[str] = None


SMI_STATES: Dict[str, Tuple[str, str]] = {
    "driver_not_loaded": (
        "the kernel module nvidia is not loaded",
        "run 'modprobe nvidia' and read 'dmesg | grep -iE \"nvrm|lockdown\"'; Secure Boot is a usual cause",
    ),
    "driver_library_mismatch": (
        "the driver's libraries and the loaded kernel module have different versions",
        "reboot the host, or stop everything that uses the GPUs and load the new module",
    ),
    "no_devices": (
        "the kernel module is loaded but could not start any GPU",
        "read 'dmesg | grep NVRM': a GPU that this driver does not drive, missing firmware, or BAR settings",
    ),
    "gpu_lost": (
        "a GPU does not answer any more",
        "reboot the host; if it comes back, check power, slot and the GPU itself",
    ),
    "gpu_reset_required": ("a GPU waits for a reset", "stop its users and run 'nvidia-smi -r', or reboot the host"),
    "gpu_power_cable": ("a GPU has no external power", "plug in its power cables"),
    "container_lost_gpu_access": (
        "NVML cannot reach the GPUs; in a container, its access to the devices was taken away",
        "start the container again; use mode cdi, which survives 'systemctl daemon-reload'",
    ),
    "library_missing": (
        "nvidia-smi is there but libnvidia-ml is not",
        "install the driver's user-space libraries of the same version",
    ),
    "insufficient_permissions": (
        "the device files or SELinux forbid access to the GPUs",
        "check the rights of /dev/nvidia* and the SELinux label",
    ),
    "gpu_access_blocked": ("the operating system blocks access to the GPU", "update the Windows driver and WSL"),
    "smi_missing": (
        "nvidia-smi is not installed",
        "install the driver's utilities (package nvidia-smi, nvidia-utils or nvidia-driver-cuda)",
    ),
    "bad_query": (
        "this release of nvidia-smi does not know a field that was asked for",
        "ask for fields of the old release",
    ),
    "timeout": (
        "the driver does not answer in time",
        "read 'dmesg | grep NVRM' for a hung GPU; reset it or reboot the host",
    ),
    "unreadable": ("the answer has an unknown form", "run the command by hand and report its output"),
    "unknown": ("the failure is not known to gpu-ready", "run the command by hand and read 'dmesg | grep NVRM'"),
}
"""Every state of an unusable answer, with cause and remedy."""

SMI_TEXTS: List[Tuple[str, str]] = [
    ("couldn't communicate with the NVIDIA driver", "driver_not_loaded"),
    ("Driver/library version mismatch", "driver_library_mismatch"),
    ("No devices were found", "no_devices"),
    ("No devices found", "no_devices"),
    ("couldn't find libnvidia-ml.so", "library_missing"),
    ("GPU is lost", "gpu_lost"),
    ("GPU requires reset", "gpu_reset_required"),
    ("A GPU reset must occur", "gpu_reset_required"),
    ("insufficiently powered", "gpu_power_cable"),
    ("Insufficient External Power", "gpu_power_cable"),
    ("Unable to determine the device handle", "gpu_lost"),
    ("Failed to initialize NVML: Unknown Error", "container_lost_gpu_access"),
    ("Insufficient Permissions", "insufficient_permissions"),
    ("GPU access blocked by the operating system", "gpu_access_blocked"),
    ("is not a valid field to query", "bad_query"),
    ("Driver Not Loaded", "driver_not_loaded"),
    ("command not found", "smi_missing"),
]

SMI_CODES = {
    2: "bad_query",
    4: "insufficient_permissions",
    6: "no_devices",
    8: "gpu_power_cable",
    9: "driver_not_loaded",
    12: "library_missing",
    15: "gpu_lost",
    16: "gpu_reset_required",
    17: "gpu_access_blocked",
    18: "driver_library_mismatch",
    124: "timeout",
    127: "smi_missing",
}
"""Exit statuses of nvidia-smi; NVML's own error numbers are the same where both exist."""

_HANDLE = re.compile(r"device handle for GPU\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])")


def joined(text: str) -> str:
    """Return a text on one line: newlines, ``#012`` of syslog and broken lines become single blanks."""
    return " ".join(text.replace("#012", " ").replace("\\n", " ").split())


def smi_state(code: int, text: str) -> str:
    """Return the state word for a failed nvidia-smi or NVML call, by its text first, else by its exit status."""
    flat = joined(text).lower()
    for pattern, state in SMI_TEXTS:
        if pattern.lower() in flat:
            return state
    return SMI_CODES.get(code, "unknown")


def explain_smi(code: int, text: str) -> Explanation:
    """Return cause and remedy of a failed nvidia-smi or NVML call."""
    state = smi_state(code, text)
    cause, remedy = SMI_STATES[state]
    match = _HANDLE.search(joined(text))
    return Explanation(state, cause, remedy, match.group(1) if match else None)


_TOOLKIT = "install nvidia-container-toolkit and restart docker"
_GENERATE = "write the CDI specification again ('nvidia-ctk cdi generate', or run the playbook)"

CONTAINER: List[Tuple[str, str, str, str]] = [
    (
        "daemon_config_invalid",
        r"unable to configure the Docker daemon with file",
        "docker's daemon.json is not valid",
        "repair the place that the message names",
    ),
    (
        "cdi_not_enabled_in_docker",
        r'could not select device driver \\*"cdi\\*"',
        "this docker engine does not know CDI or has it switched off",
        'set "features": {"cdi": true} in daemon.json (docker 25 to 27), or use a newer docker, or mode toolkit',
    ),
    (
        "toolkit_missing",
        r'could not select device driver \\*"(nvidia)?\\*" with capabilities',
        "docker found no nvidia-container-runtime-hook when it was started",
        _TOOLKIT,
    ),
    (
        "cdi_spec_generation_failed",
        r"unresolvable CDI devices runtime\.nvidia\.com/",
        "the toolkit could not describe the GPUs on the fly",
        "run nvidia-smi on the host: the driver or NVML is at fault",
    ),
    (
        "no_cdi_spec_or_no_gpu",
        r"no known GPU vendor found|unresolvable CDI devices nvidia\.com/gpu=all",
        "no CDI specification describes NVIDIA GPUs",
        _GENERATE,
    ),
    (
        "cdi_spec_wrong",
        r"unresolvable CDI devices (management\.)?nvidia\.com/|conflicting device \\*\"nvidia\.com/",
        "the CDI specification does not describe the wanted GPU, or two files describe it",
        _GENERATE + " and keep one file",
    ),
    (
        "cdi_not_nvidia",
        r"unresolvable CDI devices \S+/",
        "a device of another vendor was asked for",
        "ask its vendor's CDI specification",
    ),
    (
        "runtime_not_configured",
        r"unknown or invalid runtime name: \\*\"?nvidia|Unknown runtime specified nvidia"
        r"|no runtime for \\*\"nvidia\\*\" is configured",
        "docker knows no runtime called nvidia",
        "add it to daemon.json ('nvidia-ctk runtime configure', or run the playbook) and reload docker",
    ),
    (
        "runtime_binary_missing",
        r"nvidia-container-runtime\S*: (executable file not found|no such file)"
        r"|fork/exec \S*nvidia-container-runtime\S* no such file",
        "the program nvidia-container-runtime is not at the place that daemon.json names",
        "install nvidia-container-toolkit, or correct the path in daemon.json",
    ),
    (
        "driver_too_old",
        r"unsatisfied condition:",
        "the driver is older than the image requires",
        "install a newer driver branch, or use an image of an older CUDA",
    ),
    (
        "cgroup_v2_old_toolkit",
        r"cgroup subsystem devices not found",
        "libnvidia-container is older than 1.8 and does not know cgroup v2",
        "update nvidia-container-toolkit",
    ),
    (
        "driver_userspace_missing",
        r"load library failed: libnvidia-ml\.so",
        "the driver's libraries are not on the host",
        "install the driver's user-space libraries",
    ),
    (
        "driver_not_loaded",
        r"nvml error: driver not loaded",
        "the kernel module nvidia is not loaded",
        "run 'modprobe nvidia' and read dmesg; Secure Boot is a usual cause",
    ),
    (
        "driver_library_mismatch",
        r"driver/library version mismatch",
        "the driver's libraries and the loaded kernel module have different versions",
        "reboot the host, or stop everything that uses the GPUs and load the new module",
    ),
    (
        "driver_or_gpu_hung",
        r"driver rpc error: timed out",
        "the driver or a GPU hangs",
        "read 'dmesg | grep NVRM', reset the GPU or reboot; run nvidia-persistenced",
    ),
    (
        "ldconfig_failed",
        r"ldcache error:",
        "the toolkit could not run ldconfig for the container",
        'set ldconfig = "@/sbin/ldconfig" ("@/sbin/ldconfig.real" on Ubuntu) in the toolkit\'s config.toml',
    ),
    (
        "wsl_driver_missing",
        r"mount error: stat failed: /usr/lib/wsl/",
        "libcuda of WSL was not found",
        "install the Windows driver and run 'wsl --update'",
    ),
    (
        "driver_libs_inside_image",
        r"mount error: file creation failed: .*file exists",
        "the image carries driver libraries of its own",
        "use an image without them",
    ),
    (
        "rootless_cgroups",
        r"bpf_prog_query\(BPF_CGROUP_DEVICE\) failed: operation not permitted",
        "a rootless docker may not set device rules",
        "set no-cgroups = true in /etc/nvidia-container-runtime/config.toml",
    ),
    (
        "unknown_device",
        r"device error: .*unknown device",
        "a GPU of that number or UUID does not exist",
        "correct gpu_verify_devices",
    ),
    (
        "gpu_access_lost",
        r"Failed to initialize NVML: Unknown Error",
        "the container has no access to the GPU devices",
        "start it again; use mode cdi, which survives 'systemctl daemon-reload'",
    ),
    (
        "selinux_denied",
        r"Failed to initialize NVML: Insufficient Permissions",
        "SELinux or the device files forbid access in the container",
        "use --security-opt label=disable or the right policy",
    ),
    (
        "gpus_flag_ignored",
        r"executable file [`'\"\\]*\S*nvidia-smi[`'\"\\]* not found",
        "nothing of the driver was brought into the container",
        "check the container runtime; podman wants --device nvidia.com/gpu=all",
    ),
    (
        "image_missing",
        r"manifest unknown|pull access denied|Unable to find image|No such image",
        "the image is neither on the host nor to be had from a registry",
        "set gpu_verify_image to an image that the host can pull, or to a tarball (.tar) on the control node",
    ),
    (
        "docker_not_running",
        r"Cannot connect to the Docker daemon|Is the docker daemon running",
        "the docker engine does not run",
        "read 'journalctl -u docker' and start it",
    ),
]
"""(code, regular expression, cause, remedy) of container failures, causes before consequences."""

_COMPILED: List[Tuple[Pattern[str], Explanation]] = [
    (re.compile(pattern, re.IGNORECASE), Explanation(code, cause, remedy)) for code, pattern, cause, remedy in CONTAINER
]
_NEEDS_CUDA = re.compile(r"unsatisfied condition:\s*cuda\s*>=\s*(\d+\.\d+)", re.IGNORECASE)


def explain_container(code: int, text: str) -> Explanation:
    """Return cause and remedy of a failed ``docker run``; nvidia-smi's own failures inside the container included.

    ``detail`` is the CUDA version that an image asks for, where it names one.
    """
    flat = joined(text)
    for pattern, explanation in _COMPILED:
        if pattern.search(flat):
            needs = _NEEDS_CUDA.search(flat)
            return explanation._replace(detail=needs.group(1) if needs else None)
    if code in (126, 127):
        return Explanation(
            "gpus_flag_ignored",
            "nvidia-smi was not brought into the container",
            "check the container runtime and its mode; the capability 'utility' brings nvidia-smi",
        )
    return explain_smi(code, text)
