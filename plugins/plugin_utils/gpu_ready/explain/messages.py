"""`gpu-explain read` for messages of programs and the kernel: parsed results, and their descriptions."""

from typing import Any

from ..diagnostics import (
    container_errors,
    installer_log,
    kernel_log,
    message_table,
    smi,
    smi_topology,
    smi_vgpu,
)
from . import forms
from .located import Locator, at, describe_problems

SEARCHED = {
    "nvidia-smi": (
        message_table.NVIDIA_SMI,
        "the table, -L, csv, -q, -q -x, --version, topo -m and vgpu of nvidia-smi",
        "give the whole output of nvidia-smi, error stream included",
    ),
    "container-error": (
        message_table.CONTAINER,
        "the errors of docker, containerd, podman, the NVIDIA container programs and nvidia-smi",
        "give the whole error from 'docker: Error' on; try 'docker run --rm --gpus all IMAGE nvidia-smi'",
    ),
    "installer-log": (
        message_table.INSTALLER,
        "the errors of nvidia-installer, DKMS, modprobe and dpkg",
        "give the whole /var/log/nvidia-installer.log or make.log; package managers are read in English (LC_ALL=C)",
    ),
    "dmesg": (
        message_table.KERNEL,
        "the kernel's lines about NVRM, Xid, SXid, nouveau and module signatures",
        "give the whole output of 'dmesg' from the boot on, unfiltered",
    ),
}
"""What each kind of text is searched for, and what to do when nothing is found."""


def with_rows(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer with its problems as rows for JSON, the root cause first."""
    found = [
        {
            "code": problem.code,
            "severity": problem.severity,
            "confidence": problem.confidence,
            "line": problem.line,
            "message": problem.message,
            "cause": problem.cause,
            "remedy": problem.remedy,
        }
        for problem in answer["problems"]
    ]
    return dict(answer, problems=found)


def describe_nothing(kind: str) -> list[str]:
    name, what, remedy = SEARCHED[kind]
    count = len([entry for entry in message_table.table(name) if entry.patterns])
    return [
        "Nothing known is in this text; it was searched for %d messages: %s." % (count, what),
        "Remedy: %s." % remedy,
    ]


# --- nvidia-smi --------------------------------------------------------------------------------------------------


INCOMPLETE = (
    "This is the output of nvidia-smi topo, but not a complete matrix of connections, so nothing is read from it. "
    "Remedy: give the whole output of 'nvidia-smi topo -m'."
)


def read_smi(text: str) -> dict[str, Any]:
    """Read any output of nvidia-smi; a successful call has only problems of single GPUs."""
    answer = with_rows(smi.read(text))
    locator = Locator(text)
    answer["lines"] = locator.values(answer, ["driver_version", "cuda_version", "bus_id", "nvml_library_version"])
    answer["gpus"] = locator.rows(answer["gpus"], ["bus_id", "uuid", "name"])
    topology, virtual = smi_topology.read(text), smi_vgpu.read(text)
    if any(form.name == "nvidia-smi topo" for form in forms.forms_of(text)):
        answer["topology"] = {"text": [INCOMPLETE]}
    if topology:
        answer["topology"] = dict(smi_topology.as_dict(topology), text=smi_topology.describe(topology))
    if virtual:  # it begins like the table of GPUs, but its rows differ
        answer.update(vgpus=virtual, gpus=[], vgpu_host=True)
    return answer


def describe_smi(answer: dict[str, Any]) -> list[str]:
    topology = answer["topology"]["text"] if answer.get("topology") else []
    if answer.get("vgpus"):
        return smi_vgpu.describe(answer["vgpus"]) + topology + describe_problems(answer)
    if topology and not answer["usable"]:
        return topology + describe_problems(answer)
    if not answer["usable"]:
        lines = describe_problems(answer) or describe_nothing("nvidia-smi")
        if answer.get("bus_id"):
            lines.append(at(answer["lines"].get("bus_id"), "The text names the GPU %s." % answer["bus_id"]))
        return lines
    versions = "driver %s, CUDA %s" % (answer["driver_version"] or "unknown", answer["cuda_version"] or "unknown")
    count = len(answer["gpus"])
    answered = "nvidia-smi answered: %s, %d GPU%s." % (versions, count, "" if count == 1 else "s")
    lines = [at(answer["lines"].get("driver_version"), answered)]
    for gpu in answer["gpus"]:
        shown = "%s %s" % (gpu.get("bus_id") or gpu.get("uuid") or "GPU", gpu.get("name") or "without a name")
        if gpu.get("error"):
            shown += ": does not answer. Remedy: read 'dmesg | grep Xid', reset the GPU or reboot."
        lines.append(at(gpu["line"], shown))
    lines += topology + describe_problems(answer)
    listed = [gpu["bus_id"][-12:].lower() for gpu in answer["gpus"] if gpu.get("bus_id")]
    if answer["problems"] and answer.get("bus_id") and answer["bus_id"][-12:].lower() not in listed:
        lines.append("That is the GPU %s, which the list does not show." % answer["bus_id"])
    if answer.get("mig_devices"):
        lines.append("%d MIG devices are parts of these GPUs, not GPUs." % answer["mig_devices"])
    if answer.get("well_formed") is False:
        lines.append("The XML is cut off. Remedy: give the whole file, if more GPUs are expected.")
    if answer.get("gpu_elements") is not None:
        lines.append("%s GPUs are attached, the text shows %d." % (answer["attached_gpus"], answer["gpu_elements"]))
    for flag, line in (
        ("tegra", "This is a Jetson board, which gpu-ready does not serve."),
        ("wsl", "The driver is that of a Windows host (WSL); install nothing in Linux."),
        ("vgpu_host", "The driver has no CUDA: it is that of a host of virtual GPUs."),
    ):
        lines += [line] if answer.get(flag) else []
    return lines


# --- containers --------------------------------------------------------------------------------------------------


def read_container(text: str) -> dict[str, Any]:
    """Read why a container did not start or sees no GPU."""
    answer = with_rows(container_errors.read(text))
    return dict(answer, lines=Locator(text).values(answer, ["needs_cuda"]))


def describe_container(answer: dict[str, Any]) -> list[str]:
    if not answer["problems"] and answer["cause"] == container_errors.UNRELATED:
        return ["This failure is not about a GPU.", "Remedy: correct what the message names, then start it again."]
    lines = describe_problems(answer) or describe_nothing("container-error")
    if answer["needs_cuda"]:
        needed = "The image requires a driver with CUDA %s or newer." % answer["needs_cuda"]
        lines.append(at(answer["lines"].get("needs_cuda"), needed))
    return lines


# --- installers --------------------------------------------------------------------------------------------------


def read_installer(text: str) -> dict[str, Any]:
    """Read a log of nvidia-installer, DKMS or a package manager that called it."""
    answer = with_rows(installer_log.read(text))
    return dict(answer, lines=Locator(text).values(answer, ["driver_version", "kernel", "package"]))


def describe_installer(answer: dict[str, Any]) -> list[str]:
    named = [("driver", "driver_version"), ("kernel", "kernel"), ("package", "package")]
    places = {key: " (line %d)" % line for key, line in answer["lines"].items()}
    what = ["%s %s%s" % (name, answer[key], places.get(key, "")) for name, key in named if answer[key]]
    names = ": %s" % ", ".join(what) if what else ""
    if answer["installer_failed"]:
        lines = ["The installation failed%s." % names]
        return lines + (describe_problems(answer) or describe_nothing("installer-log"))
    if answer["complete"]:
        return ["The installation was completed%s." % names] + describe_problems(answer)
    if not what and not answer["problems"]:
        return describe_nothing("installer-log")
    open_end = "The log shows neither a failure nor the end of a successful installation%s." % names
    return [open_end] + (describe_problems(answer) or ["Remedy: give the whole log, to its end."])


# --- the kernel's log --------------------------------------------------------------------------------------------


def read_dmesg(text: str) -> dict[str, Any]:
    """Read a kernel log."""
    answer = with_rows(kernel_log.read(text))
    keys = ["driver_version", "legacy_branch", "client_version", "pci"]
    return dict(answer, lines=Locator(text).values(answer, keys))


def describe_dmesg(answer: dict[str, Any]) -> list[str]:
    if answer["condition"] == "none":
        return describe_nothing("dmesg")
    lines, places = [], answer["lines"]
    if answer["driver_version"]:
        named = "The log names driver %s (%s)." % (answer["driver_version"], answer["flavour"] or "unknown flavour")
        lines.append(at(places.get("driver_version"), named))
    if not answer["problems"]:
        return lines + ["The module was loaded and reports no problem."]
    lines += describe_problems(answer)
    if answer["pci"]:
        lines.append(at(places.get("pci"), "The text names the GPU %s." % answer["pci"]))
    if answer.get("legacy_branch"):
        served = "The branch that serves %s is %s." % (answer["gpu_name"], answer["legacy_branch"])
        lines.append(at(places.get("legacy_branch"), served))
    if answer.get("client_version"):
        versions = (answer["client_version"], answer["module_version"])
        differ = "The program's libraries are of version %s, the loaded module is of version %s." % versions
        lines.append(at(places.get("client_version"), differ))
    serious = sorted({event["xid"] for event in answer["xids"] if event["severity"] == message_table.CRITICAL})
    if serious:
        numbers = ", ".join(str(number) for number in serious)
        lines.append("A GPU with Xid %s must not be used: gpu_verify refuses the host." % numbers)
    return lines
