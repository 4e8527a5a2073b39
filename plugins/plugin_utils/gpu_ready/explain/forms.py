"""Recognize the program that printed a text, by words that it always prints, so that no other reader gets the text."""

import re
from re import Pattern
from typing import NamedTuple

from ....module_utils.gpu_ready.base.json_file import parse_json


class Form(NamedTuple):
    """``name``: the program or file; ``kind``: of `gpu-explain read`, None where no kind reads it."""

    name: str
    kind: str | None
    pattern: Pattern[str]


def form(name: str, kind: str | None, *patterns: str) -> Form:
    """Return a form by the patterns of its lines; one of them is enough."""
    return Form(name, kind, re.compile("|".join("(?:%s)" % pattern for pattern in patterns), re.MULTILINE))


SLOT = r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"

FORMS = (
    form("nvidia-smi", "nvidia-smi", r"\bNVIDIA-SMI (?:has failed|couldn|\d)", r"=NVSMI LOG=", r"<nvidia_smi_log>",
         r"^GPU \d+: .* \(UUID: ", r"Failed to initialize NVML", r"^index, ", r"^(?:gpu_)?(?:name|uuid|bus_id), "),
    form("a container engine or NVIDIA's container programs", "container-error", r"Error response from daemon",
         r"nvidia-container-(?:cli|runtime)", r"\bnvidia-ctk\b", r"OCI runtime", r"\bCDI devices?\b",
         r"^Error: crun: ", r"could not select device driver", r"Failed to create pod sandbox", r"nvidia-device-plugin",
         r"Allocate failed due to ", r"\b\d{1,6}/\d{1,6} nodes are available", r"^[ \t]+Warning +\w+ "),
    form("nvidia-installer", "installer-log", r"nvidia-installer log file", r"^ERROR: Installation has failed"),
    form("DKMS", "installer-log", r"make\.log for nvidia", r"^Error! ", r"^Building (?:initial )?module"),
    form("a package manager", "installer-log", r"^(?:E|dpkg|W): ", r"^(?:Reading package lists|Get:\d+ |Setting up )",
         r"^(?:Last metadata expiration|Dependencies resolved|Transaction Summary|Running transaction)"),
    form("the kernel's log", "dmesg", r"\bNVRM: ", r"^\[ *\d+\.\d{6}\] ", r"^\w{3} [ \d]\d [\d:]{8} \S+ kernel: "),
    form("lspci", "lspci", r"^(?:\S{1,40}[ \t]+)?%s (?:\"|[0-9a-f]{4}: |[A-Z].{2,50}: )" % SLOT, r"^Slot:\s+%s" % SLOT),
    form("lshw", "lspci", r"^[ \t]*\*-display", r"^[ \t]*description: (?:VGA compatible|3D|Display) controller"),
    form("hwinfo", "lspci", r"^[ \t]*Hardware Class: graphics card"),
    form("udevadm info", "lspci", r"^[EP]: (?:DEVPATH=|/devices/)"),
    form("ubuntu-drivers", "lspci", r"^== /sys/devices/", r"^modalias\s*: pci:"),
    form("/proc/driver/nvidia/version", "proc-driver-version", r"^[^\w\n]*NVRM version: "),
    form("modinfo", "proc-driver-version", r"^filename:\s+\S*/lib/modules/"),
    form("nvidia-detect", "nvidia-detect", r"^Checking card: ", r"^This device requires ", r"^Detected NVIDIA GPUs:"),
    form("os-release", "os-release", r"^(?:PRETTY_NAME|VERSION_ID|ID_LIKE)="),
    form("daemon.json", "daemon-json", r"^[ \t]*\"(?:runtimes|default-runtime|log-driver|exec-opts|data-root)\"\s*:"),
    form("nvidia-smi topo", "nvidia-smi", r"^[ \t]*GPU\d+[ \t].*\bCPU Affinity", r"^[ \t]*X\s+=\s+Self$"),
    form("nvidia-smi nvlink", None, r"^[ \t]*Link \d+: (?:[\d.]+ GB/s|<inactive>)"),
    form("nvidia-smi vgpu", "nvidia-smi", r"^\|.*vGPU.Util"),
    form("nvcc --version", None, r"^nvcc: NVIDIA \(R\) Cuda compiler"),
    form("dkms status", None, r"^nvidia[\w-]*(?:/|, )[\d.]+, \d\S+, \w+: (?:installed|built|added)"),
    form("lsmod", None, r"^Module\s+Size\s+Used by"),
    form("docker info", None, r"^[ \t]*Server Version: ", r"^[ \t]*Storage Driver: "),
    form("nvidia-container-cli info", None, r"^NVRM version:\s+\d+\.\d+(?:\.\d+)?$"),
    form("a list of packages (dpkg -l)", None, r"^Desired=Unknown/", r"^(?:ii|rc|iU|iF|hi)  \S+\s+\S+\s"),
    form("rocm-smi", None, r"ROCm System Management Interface", r"^=+ROCm "),
    form("mokutil", None, r"^SecureBoot (?:enabled|disabled)$"),
    form("lscpu", None, r"^Architecture:\s+\S+\nCPU op-mode"),
    form("lsb_release", None, r"^Distributor ID:[ \t]"),
    form("uname", None, r"^Linux \S+ \d+\.\d+\S* #\d"),
    form("config.toml", None, r"^\[(?:plugins|proxy_plugins|timeouts|grpc|nvidia-container-[\w-]+|crio)[\].]"),
    form("kubectl get", None, r"^NAME\s+(?:STATUS|READY)\s+\w"),
)  # fmt: skip


def forms_of(text: str) -> list[Form]:
    """Return the forms whose words a text contains."""
    return [one for one in FORMS if one.pattern.search(text)]


def begins_object(text: str) -> bool:
    """Return True for the beginning of a JSON object over several lines.

    A file, not a log with an object in each line.
    """
    first = text.lstrip("\ufeff \t\r\n").partition("\n")[0]
    if not first.startswith("{"):
        return False
    try:
        parse_json(first)
    except ValueError:
        return True
    return False


def foreign_form(kind: str, text: str) -> Form | None:
    """Return whose output a text is that is not of the kind; None where it may be, or where no form is known."""
    if kind == "daemon-json" and begins_object(text):
        return None  # its values name the programs of docker and NVIDIA, also in a file that is cut off
    found = forms_of(text)
    return None if not found or any(one.kind == kind for one in found) else found[0]
