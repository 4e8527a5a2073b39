"""`gpu-explain read` for messages of programs and the kernel: parsed results, and their descriptions."""

from typing import Any

from ..diagnostics import container_errors, installer_log, kernel_log, smi, smi_mig, smi_topology, smi_vgpu
from . import forms, verdict
from .located import Locator, at

# --- nvidia-smi --------------------------------------------------------------------------------------------------


INCOMPLETE = (
    "This is the output of nvidia-smi topo, but not a complete matrix of connections, so nothing is read from it. "
    "Remedy: give the whole output of 'nvidia-smi topo -m'."
)


def read_smi(text: str) -> dict[str, Any]:
    """Read any output of nvidia-smi; a successful call has only problems of single GPUs."""
    answer = verdict.complete("nvidia-smi", text, smi.read(text), smi.message_lines(text))
    locator = Locator(text)
    answer["lines"] = locator.values(answer, ["driver_version", "cuda_version", "bus_id", "nvml_library_version"])
    answer["gpus"] = locator.rows(answer["gpus"], ["bus_id", "uuid", "name"])
    topology, virtual, profiles = smi_topology.read(text), smi_vgpu.read(text), smi_mig.read(text)
    if any(form.name == "nvidia-smi topo" for form in forms.forms_of(text)):
        answer["topology"] = {"text": [INCOMPLETE]}
    if topology:
        answer["topology"] = dict(smi_topology.as_dict(topology), text=smi_topology.describe(topology))
        answer["usable"] = True
        answer.pop("state", None)
    if virtual:  # it begins like the table of GPUs, but its rows differ
        answer.update(vgpus=virtual, gpus=[], vgpu_host=True)
    if profiles:
        answer.update(mig_profiles=profiles, gpus=[], usable=True)
    return answer


def describe_smi(answer: dict[str, Any]) -> list[str]:
    """Return what an output of nvidia-smi means."""
    if answer["usable"] or answer.get("topology"):
        shown, clear = describe_gpus(answer), clear_smi(answer)
        return verdict.describe(answer, "nvidia-smi", [*clear, *shown] if answer["problems"] else shown, clear)
    named = "The text names the GPU %s." % answer.get("bus_id")
    facts = [at(answer["lines"].get("bus_id"), named)] if answer.get("bus_id") else []
    return verdict.describe(answer, "nvidia-smi", facts)


def clear_smi(answer: dict[str, Any]) -> list[str]:
    """Return what the output shows to be in order: that nvidia-smi gave this answer."""
    if answer.get("vgpus"):
        return smi_vgpu.describe(answer["vgpus"])
    if answer.get("mig_profiles"):
        return smi_mig.describe(answer["mig_profiles"])
    if answer.get("topology"):
        return list(answer["topology"]["text"])
    versions = "driver %s, CUDA %s" % (answer["driver_version"] or "unknown", answer["cuda_version"] or "unknown")
    count = len(answer["gpus"])
    answered = "nvidia-smi answered: %s, %d GPU%s." % (versions, count, "" if count == 1 else "s")
    return [at(answer["lines"].get("driver_version"), answered)]


LISTED = 4
"""GPUs that are named one by one; more of them have their names together."""


def describe_gpus(answer: dict[str, Any]) -> list[str]:
    """Return what the output shows of the GPUs, besides problems."""
    lines = []
    failed = [gpu for gpu in answer["gpus"] if gpu.get("error")]
    for gpu in answer["gpus"] if len(answer["gpus"]) <= LISTED else failed[:LISTED]:
        shown = "%s %s" % (gpu.get("bus_id") or gpu.get("uuid") or "GPU", gpu.get("name") or "without a name")
        if gpu.get("error"):
            shown += ": does not answer. Remedy: read 'dmesg | grep Xid', reset the GPU or reboot."
        lines.append(at(gpu["line"], shown))
    if len(answer["gpus"]) > LISTED:
        names = [gpu.get("name") or "without a name" for gpu in answer["gpus"]]
        lines.append("GPUs: %s." % ", ".join("%d x %s" % (names.count(name), name) for name in dict.fromkeys(names)))
    if answer.get("topology") and answer["gpus"]:
        lines += answer["topology"]["text"]
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
        lines += [line] if answer.get(flag) and not answer.get("vgpus") else []
    return lines


# --- containers --------------------------------------------------------------------------------------------------


def read_container(text: str) -> dict[str, Any]:
    """Read why a container did not start or sees no GPU."""
    answer = verdict.complete("container-error", text, container_errors.read(text))
    return dict(answer, lines=Locator(text).values(answer, ["needs_cuda"]))


def describe_container(answer: dict[str, Any]) -> list[str]:
    """Return why a container did not start or sees no GPU."""
    needed = "The image requires a driver with CUDA %s or newer." % answer["needs_cuda"]
    facts = [at(answer["lines"].get("needs_cuda"), needed)] if answer["needs_cuda"] else []
    return verdict.describe(answer, "container-error", facts)


# --- installers --------------------------------------------------------------------------------------------------


def read_installer(text: str) -> dict[str, Any]:
    """Read a log of nvidia-installer, DKMS or a package manager that called it."""
    answer = verdict.complete("installer-log", text, installer_log.read(text))
    return dict(answer, lines=Locator(text).values(answer, ["driver_version", "kernel", "package"]))


def describe_installer(answer: dict[str, Any]) -> list[str]:
    """Return whether an installation failed and why."""
    named = [("driver", "driver_version"), ("kernel", "kernel"), ("package", "package")]
    places = {key: " (line %d)" % line for key, line in answer["lines"].items()}
    what = ["%s %s%s" % (name, answer[key], places.get(key, "")) for name, key in named if answer[key]]
    names = ": %s" % ", ".join(what) if what else ""
    if answer["complete"]:
        return verdict.describe(answer, "installer-log", (), ["The installation was completed%s." % names])
    if answer["installer_failed"]:
        return verdict.describe(answer, "installer-log", ["The installation failed%s." % names])
    facts = ["The text is about %s." % ", ".join(what)] if what else []
    if answer["problems"] or answer["unread"] or not what:
        return verdict.describe(answer, "installer-log", facts)
    open_end = "The log shows neither a failure nor the end of a successful installation%s." % names
    return [open_end, "Remedy: give the whole log, to its end."]


# --- the kernel's log --------------------------------------------------------------------------------------------


def read_dmesg(text: str) -> dict[str, Any]:
    """Read a kernel log."""
    answer = verdict.complete("dmesg", text, kernel_log.read(text))
    keys = ["driver_version", "legacy_branch", "client_version", "pci"]
    return dict(answer, lines=Locator(text).values(answer, keys))


def describe_dmesg(answer: dict[str, Any]) -> list[str]:
    """Return what a kernel log, or the journal of one of NVIDIA's services, means."""
    places, facts = answer["lines"], []
    if answer["driver_version"]:
        named = "The log names driver %s (%s)." % (answer["driver_version"], answer["flavour"] or "unknown flavour")
        facts.append(at(places.get("driver_version"), named))
    if answer["pci"]:
        facts.append(at(places.get("pci"), "The text names the GPU %s." % answer["pci"]))
    if answer.get("legacy_branch"):
        served = "The branch that serves %s is %s." % (answer["gpu_name"], answer["legacy_branch"])
        facts.append(at(places.get("legacy_branch"), served))
    if answer.get("client_version"):
        versions = (answer["client_version"], answer["module_version"])
        differ = "The program's libraries are of version %s, the loaded module is of version %s." % versions
        facts.append(at(places.get("client_version"), differ))
    clear = []
    if answer["condition"] == "loaded":
        clear.append("The module was loaded and reports no problem.")
    if answer["service_started"]:
        clear.append(at(answer["service_started"], "The service started, and the text shows no failure of it."))
    return verdict.describe(answer, "dmesg", facts, clear)
