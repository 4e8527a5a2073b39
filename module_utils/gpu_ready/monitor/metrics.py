"""The metrics of a sample: names, help texts, and the values from NVML, the kernel's log, cgroups and gpu-ready."""

from typing import Any, Callable, Dict, List, NamedTuple, Optional

from ..check import model
from ..check.node import Node
from .containers import CgroupPlace, Names
from .kernel_log import Xids
from .textfile import Family, Metrics, format_labels

GAUGE, COUNTER = "gauge", "counter"
MOST_CONTAINERS = 512
"""Containers with a GPU of one host in the file; `gpu_ready_containers_left_out` counts the others."""
FAMILIES = [
    Family("gpu_ready_sample_timestamp_seconds", GAUGE, "When the values were read."),
    Family("gpu_ready_sample_duration_seconds", GAUGE, "How long it took to read the values."),
    Family("gpu_ready_nvml_up", GAUGE, "Whether the driver's management library answered."),
    Family("gpu_ready_nvml_error", GAUGE, "Why the management library did not answer."),
    Family("gpu_ready_kernel_log_up", GAUGE, "Whether Xids can be counted from the kernel's log."),
    Family("gpu_ready_gpu_info", GAUGE, "A GPU that answers."),
    Family("gpu_ready_gpu_error", GAUGE, "A GPU that does not answer, with the code of NVML."),
    Family("gpu_ready_gpus_expected", GAUGE, "GPUs of the last verification."),
    Family("gpu_ready_gpu_memory_total_bytes", GAUGE, "Memory of the GPU."),
    Family("gpu_ready_gpu_memory_used_bytes", GAUGE, "Used memory of the GPU, without what the driver reserves."),
    Family("gpu_ready_gpu_utilization_ratio", GAUGE, "Part of the last sample period in which a kernel ran."),
    Family("gpu_ready_gpu_memory_utilization_ratio", GAUGE, "Part of the last sample period with memory transfers."),
    Family("gpu_ready_gpu_temperature_celsius", GAUGE, "Temperature of the chip."),
    Family("gpu_ready_gpu_power_watts", GAUGE, "Power of the board."),
    Family("gpu_ready_gpu_power_limit_watts", GAUGE, "Power limit that is in force."),
    Family("gpu_ready_gpu_clock_hertz", GAUGE, "Clock frequency."),
    Family("gpu_ready_gpu_clock_max_hertz", GAUGE, "Greatest clock frequency."),
    Family("gpu_ready_gpu_clock_event", GAUGE, "Whether this reason limits the clocks now."),
    Family("gpu_ready_gpu_ecc_errors_total", COUNTER, "ECC errors in the lifetime of the GPU."),
    Family("gpu_ready_gpu_remapped_rows", GAUGE, "Rows of memory that were replaced."),
    Family("gpu_ready_gpu_row_remap_pending", GAUGE, "Whether a replacement of rows waits for a reset."),
    Family("gpu_ready_gpu_row_remap_failure", GAUGE, "Whether a replacement of rows failed."),
    Family("gpu_ready_gpu_pcie_width", GAUGE, "Lanes of the PCI Express link."),
    Family("gpu_ready_gpu_pcie_generation", GAUGE, "Generation of the PCI Express link; an idle GPU lowers it."),
    Family("gpu_ready_gpu_pcie_replays_total", COUNTER, "Repeated transfers of the PCI Express link."),
    Family("gpu_ready_gpu_recovery_action", GAUGE, "0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset."),
    Family("gpu_ready_gpu_persistence_mode", GAUGE, "Whether the driver keeps the GPU initialized."),
    Family("gpu_ready_gpu_mig_mode", GAUGE, "Whether the GPU is divided by MIG."),
    Family("gpu_ready_gpu_nvlinks", GAUGE, "NVLinks of the GPU."),
    Family("gpu_ready_gpu_nvlink_errors_total", COUNTER, "Errors of the active NVLinks of the GPU."),
    Family("gpu_ready_gpu_fabric_state", GAUGE, "Registration in the NVLink fabric: 1 not started, 2 running, 3 done."),
    Family("gpu_ready_gpu_fabric_status", GAUGE, "Code of NVML with which the registration in the fabric ended."),
    Family("gpu_ready_gpu_fabric_problem", GAUGE, "Whether the NVLink fabric has this problem."),
    Family("gpu_ready_xid_total", COUNTER, "Xids of a GPU in the kernel's log."),
    Family("gpu_ready_xid_last_timestamp_seconds", GAUGE, "When the last of these Xids was logged."),
    Family("gpu_ready_sxid_total", COUNTER, "SXids of an NVSwitch in the kernel's log."),
    Family("gpu_ready_container_memory_used_bytes", GAUGE, "GPU memory of a container, or of the host."),
    Family("gpu_ready_container_duty_cycle_ratio", GAUGE, "Part of the GPU's time that a container used."),
    Family("gpu_ready_container_processes", GAUGE, "Processes of a container, or of the host, on the GPU."),
    Family("gpu_ready_containers_left_out", GAUGE, "Containers beyond the limit of this file."),
    Family("gpu_ready_verified", GAUGE, "Whether the last verification is good and holds for this boot and driver."),
    Family("gpu_ready_verified_timestamp_seconds", GAUGE, "When the node was verified."),
    Family("gpu_ready_health_problems", GAUGE, "What gpu-ready-check finds, by level, check and action."),
    Family("gpu_ready_drift", GAUGE, "Whether a part differs from what was verified."),
    Family("gpu_ready_reboot_required", GAUGE, "Whether a reboot is required, by reason."),
    Family("gpu_ready_driver_branch_ended", GAUGE, "Whether NVIDIA no longer maintains the loaded driver's branch."),
    Family("container_accelerator_memory_total_bytes", GAUGE, "Total accelerator memory."),
    Family("container_accelerator_memory_used_bytes", GAUGE, "Total accelerator memory allocated."),
    Family("container_accelerator_duty_cycle", GAUGE, "Percent of time that the accelerator was used."),
]
CLOCK_EVENTS = {
    "idle": 0x1,
    "application_clocks": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal": 0x20,
    "hw_thermal": 0x40,
    "hw_power_brake": 0x80,
    "display_clocks": 0x100,
}
"""Bits of nvmlDeviceGetCurrentClocksEventReasons (nvmlClocksEventReason* of nvml.h)."""
MEGA = 10**6


class Sample(NamedTuple):
    """One pass. ``nvml``: of worker.py. ``xids``: None without a kernel log."""

    time: float
    seconds: float
    nvml: Dict[str, Any]
    xids: Optional[Xids]
    places: Dict[int, CgroupPlace]
    names: Dict[CgroupPlace, Names]
    node: Node
    health: List[model.Finding] = []


class Share(NamedTuple):
    """What the processes of one place use of a GPU; None: not known."""

    memory: Optional[int]
    percent: Optional[int]
    processes: int


Labels = Dict[str, object]


class Row(NamedTuple):
    """What one place uses of a GPU (of worker.py)."""

    gpu: Dict[str, Any]
    place: CgroupPlace
    share: Share


class LabelledShare(NamedTuple):
    """The value of a series."""

    labels: Labels
    gpu: Dict[str, Any]
    share: Share


Series = Dict[str, LabelledShare]


def build(sample: Sample, old_names: bool = False) -> str:
    """Return the text of the file; ``old_names``: also the kubelet's metrics that ended with Kubernetes 1.25."""
    metrics = Metrics(FAMILIES)
    error = sample.nvml.get("error")
    metrics.add("gpu_ready_sample_timestamp_seconds", round(sample.time, 3), {})
    metrics.add("gpu_ready_sample_duration_seconds", round(sample.seconds, 3), {})
    metrics.add("gpu_ready_nvml_up", not error, {})
    if error:
        metrics.add("gpu_ready_nvml_error", 1, {"code": sample.nvml.get("code"), "text": error})
    for gpu in sample.nvml.get("gpus", []):
        add_gpu(metrics, gpu, str(sample.nvml.get("driver", "")))
    add_containers(metrics, sample, old_names)
    add_xids(metrics, sample.xids)
    add_node(metrics, sample.node)
    add_health(metrics, sample.health)
    return metrics.text()


def add_gpu(metrics: Metrics, gpu: Dict[str, Any], driver: str) -> None:
    if gpu["error"]:
        labels = {"gpu": gpu["index"], "code": gpu["error"], "text": gpu.get("error_text")}
        metrics.add("gpu_ready_gpu_error", 1, labels)
        return
    one = {"gpu": gpu["index"], "uuid": gpu["uuid"]}
    info = dict(one, pci=gpu["pci"], name=gpu["name"], driver=driver)
    metrics.add("gpu_ready_gpu_info", 1, info)
    plain = {
        "memory_total_bytes": gpu["memory_total"],
        "memory_used_bytes": gpu["memory_used"],
        "utilization_ratio": scaled(gpu["gpu_percent"], 0.01),
        "memory_utilization_ratio": scaled(gpu["memory_percent"], 0.01),
        "temperature_celsius": gpu["temperature_celsius"],
        "power_watts": scaled(gpu["power_milliwatts"], 0.001),
        "power_limit_watts": scaled(gpu["power_limit_milliwatts"], 0.001),
        "pcie_replays_total": gpu["pcie_replays"],
        "recovery_action": gpu["recovery_action"],
        "persistence_mode": gpu["persistence"],
        "mig_mode": gpu["mig"],
    }
    for name, value in plain.items():
        metrics.add("gpu_ready_gpu_" + name, value, one)
    for clock in ("sm", "memory"):
        labels = dict(one, clock=clock)
        metrics.add("gpu_ready_gpu_clock_hertz", scaled(gpu[clock + "_megahertz"], MEGA), labels)
        metrics.add("gpu_ready_gpu_clock_max_hertz", scaled(gpu[clock + "_max_megahertz"], MEGA), labels)
    for reason, bit in CLOCK_EVENTS.items() if gpu["clock_reasons"] is not None else ():
        metrics.add("gpu_ready_gpu_clock_event", bool(gpu["clock_reasons"] & bit), dict(one, reason=reason))
    for kind in ("corrected", "uncorrected"):
        metrics.add("gpu_ready_gpu_ecc_errors_total", gpu["ecc_" + kind], dict(one, type=kind))
    if gpu["remapped"]:
        corrected, uncorrected, pending, failure = gpu["remapped"]
        metrics.add("gpu_ready_gpu_remapped_rows", corrected, dict(one, cause="corrected"))
        metrics.add("gpu_ready_gpu_remapped_rows", uncorrected, dict(one, cause="uncorrected"))
        metrics.add("gpu_ready_gpu_row_remap_pending", bool(pending), one)
        metrics.add("gpu_ready_gpu_row_remap_failure", bool(failure), one)
    for name in ("pcie_width", "pcie_generation"):
        metrics.add("gpu_ready_gpu_" + name, gpu[name], dict(one, state="current"))
        metrics.add("gpu_ready_gpu_" + name, gpu[name + "_max"], dict(one, state="max"))
    add_nvlink(metrics, gpu, one)


def add_nvlink(metrics: Metrics, gpu: Dict[str, Any], one: Dict[str, Any]) -> None:
    if gpu["links"]:
        active = sum(gpu["links"])
        metrics.add("gpu_ready_gpu_nvlinks", active, dict(one, state="active"))
        metrics.add("gpu_ready_gpu_nvlinks", len(gpu["links"]) - active, dict(one, state="inactive"))
    for kind, count in sorted(gpu["link_errors"].items()):
        metrics.add("gpu_ready_gpu_nvlink_errors_total", count, dict(one, type=kind))
    if gpu["fabric"]:
        metrics.add("gpu_ready_gpu_fabric_state", gpu["fabric"]["state"], one)
        metrics.add("gpu_ready_gpu_fabric_status", gpu["fabric"]["status"], one)
        for problem, present in sorted(gpu["fabric"]["problems"].items()):
            metrics.add("gpu_ready_gpu_fabric_problem", present, dict(one, problem=problem))


def scaled(value: Optional[int], factor: "float | int") -> "float | int | None":
    return None if value is None else round(value * factor, 6) if isinstance(factor, float) else value * factor


def shares_of(gpu: Dict[str, Any], places: Dict[int, CgroupPlace]) -> Dict[CgroupPlace, Share]:
    """Return what each container uses of a GPU; a process that ended meanwhile is left out.

    Use by several processes is added up to 100. A GPU in MIG mode has no samples of utilisation.
    """
    percents = {int(pid): int(percent) for pid, percent in gpu["utilization"]}
    found: Dict[CgroupPlace, Share] = {}
    for pid, memory in gpu["processes"]:
        place = places.get(int(pid))
        if place is None:
            continue
        known = found.get(place, Share(None, None, 0))
        percent = None if gpu["mig"] else percents.get(int(pid), 0)
        found[place] = add_shares(known, Share(None if memory is None else int(memory), percent, 1))
    return found


def add_shares(one: Share, other: Share) -> Share:
    memory = [share.memory for share in (one, other) if share.memory is not None]
    percent = [share.percent for share in (one, other) if share.percent is not None]
    return Share(
        sum(memory) if memory else None,
        min(100, sum(percent)) if percent else None,
        one.processes + other.processes,
    )


def sum_by_labels(
    rows: List[Row], labels_of: Callable[[Row, Names], Labels], names: Dict[CgroupPlace, Names]
) -> Series:
    """Return the shares of each series in the order of its first row.

    Places that differ in what no label shows (containers around them, which a user can name) are one series. The format
    forbids it twice (prometheus.io/docs/instrumenting/exposition_formats).
    """
    found: Series = {}
    for row in rows:
        labels = labels_of(row, names.get(row.place, Names()))
        key = format_labels(labels)
        before = found[key].share if key in found else Share(None, None, 0)
        found[key] = LabelledShare(labels, row.gpu, add_shares(before, row.share))
    return found


def add_containers(metrics: Metrics, sample: Sample, old_names: bool) -> None:
    rows: List[Row] = []
    for gpu in sample.nvml.get("gpus", []):
        if not gpu["error"]:
            rows += [Row(gpu, place, share) for place, share in sorted(shares_of(gpu, sample.places).items())]
    series = list(sum_by_labels(rows, container_labels, sample.names).values())
    for one in series[:MOST_CONTAINERS]:
        metrics.add("gpu_ready_container_memory_used_bytes", one.share.memory, one.labels)
        metrics.add("gpu_ready_container_duty_cycle_ratio", scaled(one.share.percent, 0.01), one.labels)
        metrics.add("gpu_ready_container_processes", one.share.processes, one.labels)
    metrics.add("gpu_ready_containers_left_out", max(0, len(series) - MOST_CONTAINERS), {})
    if old_names:
        inside = [row for row in rows if row.place.id]
        for one in list(sum_by_labels(inside, old_labels, sample.names).values())[:MOST_CONTAINERS]:
            metrics.add("container_accelerator_memory_total_bytes", one.gpu["memory_total"], one.labels)
            metrics.add("container_accelerator_memory_used_bytes", one.share.memory, one.labels)
            metrics.add("container_accelerator_duty_cycle", one.share.percent, one.labels)


def container_labels(row: Row, names: Names) -> Labels:
    return {
        "gpu": row.gpu["index"],
        "uuid": row.gpu["uuid"],
        "engine": row.place.engine or names.engine or "unknown",
        "id": row.place.id,
        "container": names.container,
        "image": names.image,
        "pod": names.pod,
        "namespace": names.namespace,
        "pod_uid": row.place.pod_uid,
    }


def old_labels(row: Row, names: Names) -> Labels:
    """Return labels of cAdvisor's metrics (google/cadvisor, metrics/prometheus.go of Kubernetes 1.20).

    There ``id`` was the path of the cgroup, and the values were of the whole GPU; here they are the container's.
    """
    return {
        "make": "nvidia",
        "model": row.gpu["name"],
        "acc_id": row.gpu["uuid"],
        "container": names.container,
        "id": row.place.id,
        "image": names.image,
        "name": names.container,
        "namespace": names.namespace,
        "pod": names.pod,
    }


def add_xids(metrics: Metrics, xids: Optional[Xids]) -> None:
    metrics.add("gpu_ready_kernel_log_up", xids is not None, {})
    if xids is None:
        return
    for key, count in sorted(xids.counts.items()):
        kind, number, address = key.split(" ", 2)
        labels = {"pci": address, kind.lower(): number}
        metrics.add("gpu_ready_%s_total" % kind.lower(), count, labels)
        if kind == "Xid":
            metrics.add("gpu_ready_xid_last_timestamp_seconds", xids.times[key], labels)


def add_node(metrics: Metrics, node: Node) -> None:
    metrics.add("gpu_ready_gpus_expected", node.expected, {})
    metrics.add("gpu_ready_verified", node.verified, {})
    metrics.add("gpu_ready_verified_timestamp_seconds", node.verified_at, {})
    for check, differs in node.drift.items():
        metrics.add("gpu_ready_drift", differs, {"check": check})
    for reason, required in node.reboot.items():
        metrics.add("gpu_ready_reboot_required", required, {"reason": reason})
    if node.ended is not None:
        metrics.add("gpu_ready_driver_branch_ended", node.ended, {"branch": node.branch})


def add_health(metrics: Metrics, rows: List[model.Finding]) -> None:
    """Count what somebody has to look at. Each level has a series without a check, so that its end is seen too."""
    for level in (model.WARNING, model.CRITICAL):
        found = [(one.name, one.action) for one in rows if one.level == level]
        metrics.add("gpu_ready_health_problems", len(found), {"level": level.lower()})
        for check, action in sorted(set(found)):
            labels = {"level": level.lower(), "check": check, "action": action}
            metrics.add("gpu_ready_health_problems", found.count((check, action)), labels)
