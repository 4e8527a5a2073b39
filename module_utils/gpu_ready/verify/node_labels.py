"""Labels of a Kubernetes node, with the names and values of NVIDIA's GPU feature discovery, from verified GPUs.

Rules: internal/lm of github.com/NVIDIA/k8s-device-plugin v0.20.0. Of several models the last one counts there.
"""

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from ..base.errors import GpuReadyError
from ..base.host import Host
from ..facts import verified
from . import nvml

PREFIX = "nvidia.com/"
FIELDS = ["uuid", "pci.bus_id", "driver_version", "memory.total", "mig.mode.current", "name"]
COMPUTE = "compute_cap"
"""A field that older drivers do not have; there the labels of the compute capability are left out."""
LIMIT = 60.0
NOT_ALLOWED = re.compile(r"[^A-Za-z0-9._ -]")
FAMILIES = (
    ((3, 0), (4, 0), "kepler"), ((5, 0), (6, 0), "maxwell"), ((6, 0), (7, 0), "pascal"), ((7, 0), (7, 5), "volta"),
    ((7, 5), (8, 0), "turing"), ((8, 0), (8, 9), "ampere"), ((8, 9), (9, 0), "ada-lovelace"),
    ((9, 0), (10, 0), "hopper"), ((10, 0), (11, 0), "blackwell"), ((12, 0), (13, 0), "blackwell"),
    ((13, 0), (14, 0), "rubin"),
)  # fmt: skip
"""Architecture by compute capability, from the first to below the second."""
MODES = {"0x0300": "graphics", "0x0302": "compute"}
"""By the first four digits of the PCI class."""


class LabelledGpu(NamedTuple):
    """One row of nvidia-smi. ``memory`` in MiB; ``compute`` is None where the driver has no such field."""

    uuid: str
    address: str
    driver: str
    memory: Optional[int]
    mig: str
    name: str
    compute: Optional[Tuple[int, int]]


class Sharing(NamedTuple):
    """``strategy``: none, time-slicing or mps; ``replicas``: pods for each GPU."""

    strategy: str
    replicas: int


def parse(text: str, with_compute: bool) -> List[LabelledGpu]:
    """Parse the answer to :func:`query`; lines of another form are left out. A name may contain a comma."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) < len(FIELDS) + with_compute or not cells[0].startswith("GPU-"):
            continue
        compute = re.match(r"(\d+)\.(\d+)$", cells[5]) if with_compute else None
        memory = re.match(r"(\d+)(?: MiB)?$", cells[3])
        capability = (int(compute.group(1)), int(compute.group(2))) if compute else None
        name = ", ".join(cells[5 + with_compute :])
        size = int(memory.group(1)) if memory else None
        found.append(LabelledGpu(cells[0], nvml.bus_id(cells[1]), cells[2], size, cells[4], name, capability))
    return found


def query(with_compute: bool) -> List[str]:
    fields = FIELDS[:-1] + ([COMPUTE] if with_compute else []) + FIELDS[-1:]
    return ["nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader"]


def clean(text: str) -> str:
    """Return a text as a label's value: at most 63 characters, and a letter or digit at both ends."""
    return re.sub(r" +", "-", NOT_ALLOWED.sub("", text).strip())[:63].strip("-_.")


def family(compute: Tuple[int, int]) -> str:
    return next((name for first, end, name in FAMILIES if first <= compute < end), "undefined")


def build(gpus: List[LabelledGpu], cuda: str, machine: str, mode: str, sharing: Sharing) -> Dict[str, str]:
    """Return the labels. ``cuda``: version of the driver's CUDA, "" where it is unknown."""
    last = gpus[-1]
    driver = last.driver.split(".") + [""]
    shared = sharing.strategy != "none"
    labels = {
        "gpu.present": "true",
        "gpu.product": clean(last.name)[: 63 - 7 * shared] + ("-SHARED" if shared else ""),
        "gpu.count": str(len([gpu for gpu in gpus if gpu.name == last.name])),
        "gpu.replicas": "0" if last.mig == "Enabled" else str(sharing.replicas if shared else 1),
        "gpu.sharing-strategy": sharing.strategy,
        "gpu.machine": clean(machine) or "unknown",
        "gpu.mode": mode,
        "mig.capable": "true" if last.mig in ("Enabled", "Disabled") else "false",
        "mig.strategy": "none",
        "mps.capable": "true" if sharing.strategy == "mps" else "false",
        "vgpu.present": "false",
        "cuda.driver-version.full": last.driver,
        "cuda.driver-version.major": driver[0],
        "cuda.driver-version.minor": driver[1],
        "cuda.driver-version.revision": driver[2],
    }
    if last.memory is not None:
        labels["gpu.memory"] = str(last.memory)
    if last.compute is not None:
        labels["gpu.compute.major"], labels["gpu.compute.minor"] = (str(part) for part in last.compute)
        labels["gpu.family"] = family(last.compute)
    if cuda:
        major, _, minor = cuda.partition(".")
        labels.update({"cuda.runtime-version.full": cuda, "cuda.runtime-version.major": major})
        labels["cuda.runtime-version.minor"] = minor
    return {PREFIX + name: value for name, value in sorted(labels.items())}


class LabelledNode(NamedTuple):
    """``gpus``: UUIDs of the verified GPUs."""

    labels: Dict[str, str]
    gpus: List[str]


def collect(host: Host, sharing: Sharing) -> LabelledNode:
    """Return labels and GPUs of this host. GpuReadyError unless this boot was verified with exactly these GPUs."""
    record = verified.collect(host)
    boot = (host.read("/proc/sys/kernel/random/boot_id") or "").strip()
    gpus = read_gpus(host)
    if record is None or not record.ok or record.boot_id != boot:
        raise GpuReadyError("this host is not verified since its boot: run site.yml first, then this playbook again")
    if not gpus or {gpu.uuid for gpu in gpus} != {uuid for uuid in record.gpus if uuid}:
        raise GpuReadyError(
            "the GPUs that nvidia-smi lists are not those that were verified: run playbooks/audit.yml for the reason"
        )
    shown = host.run(["nvidia-smi"], LIMIT).out
    cuda = re.search(r"CUDA (?:UMD )?Version\s*:\s*(\d+\.\d+)", shown)
    classes = {(host.read("/sys/bus/pci/devices/%s/class" % gpu.address) or "").strip()[:6] for gpu in gpus}
    mode = MODES.get(classes.pop(), "unknown") if len(classes) == 1 else "unknown"
    machine = (host.read("/sys/class/dmi/id/product_name") or "").strip()
    labels = build(gpus, cuda.group(1) if cuda else "", machine, mode, sharing)
    return LabelledNode(labels, [gpu.uuid for gpu in gpus])


def read_gpus(host: Host) -> List[LabelledGpu]:
    for with_compute in (True, False):
        answer = host.run(query(with_compute), LIMIT)
        if answer.rc in (0, 14):  # 14: a damaged infoROM; its data are valid
            return parse(answer.out, with_compute)
    raise GpuReadyError(
        "nvidia-smi does not list the GPUs (%s): run playbooks/audit.yml for the reason"
        % (nvml.first_line(answer.err or answer.out) or "no output")
    )
