"""`gpu-explain read` for what programs and the kernel say: readings as plain values, and the sentences for people."""

from typing import Any, Dict, List

from ..diagnostics import container_errors, installer_log, kernel_log, message_table, messages, smi, xid

LOOKED_FOR = {
    "nvidia-smi": (
        message_table.NVIDIA_SMI,
        "the table, -L, csv, -q, -q -x, --version of nvidia-smi",
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
        "give the whole /var/log/nvidia-installer.log or make.log",
    ),
    "dmesg": (
        message_table.KERNEL,
        "the kernel's lines about NVRM, Xid, SXid, nouveau and module signatures",
        "give the whole output of 'dmesg' from the boot on, unfiltered",
    ),
}
"""What each kind of text is searched for, and what to do when nothing is found."""


def with_problems(kind: str, answer: Dict[str, Any], text: str) -> Dict[str, Any]:
    """Return a reading with the problems that the text tells of, the root cause first."""
    found = [
        {"code": problem.code, "message": problem.message, "cause": problem.cause, "remedy": problem.remedy}
        for problem in messages.explain(kind, text)
    ]
    return dict(answer, problems=found)


def tell_problems(answer: Dict[str, Any]) -> List[str]:
    """Return a sentence for each cause and each remedy; the words of the text that say so stand in brackets."""
    told = []
    for problem in answer["problems"]:
        cause = problem["cause"][:1].upper() + problem["cause"][1:]
        told.append("%s (%s)." % (cause, problem["message"]) if problem["message"] else cause + ".")
        told.append("Remedy: %s." % problem["remedy"])
    return told


def nothing(kind: str) -> List[str]:
    """Return the honest sentence for a text that holds nothing known."""
    name, what, remedy = LOOKED_FOR[kind]
    count = len([entry for entry in message_table.table(name) if entry.patterns])
    return [
        "Nothing known is in this text; it was searched for %d messages: %s." % (count, what),
        "Remedy: %s." % remedy,
    ]


# --- nvidia-smi --------------------------------------------------------------------------------------------------


OF_ONE_GPU = ("gpu_lost", "gpu_reset_required", "gpu_power_cable")
"""Problems of one GPU, with which the others still answer."""


def read_smi(text: str) -> Dict[str, Any]:
    """Read any output of nvidia-smi; a call that gave an answer has no problems but those of single GPUs beside it."""
    answer = with_problems("nvidia-smi", smi.read(text), text)
    if answer["usable"]:
        answer["problems"] = [problem for problem in answer["problems"] if problem["code"] in OF_ONE_GPU]
    return answer


def tell_smi(answer: Dict[str, Any]) -> List[str]:
    """Return what nvidia-smi's output means."""
    if not answer["usable"]:
        told = tell_problems(answer) or nothing("nvidia-smi")
        if answer.get("bus_id"):
            told.append("The text names the GPU %s." % answer["bus_id"])
        return told
    versions = "driver %s, CUDA %s" % (answer["driver_version"] or "not told", answer["cuda_version"] or "not told")
    told = ["nvidia-smi gave an answer: %s, %d GPUs." % (versions, len(answer["gpus"]))]
    for gpu in answer["gpus"]:
        told.append("%s %s" % (gpu.get("bus_id") or gpu.get("uuid") or "GPU", gpu.get("name") or "without a name"))
        if gpu.get("error"):
            told[-1] += ": does not answer (ERR!). Remedy: read 'dmesg | grep Xid', reset the GPU or reboot."
    told += tell_problems(answer)
    if answer["problems"] and answer.get("bus_id"):
        told.append("That is the GPU %s, which the list does not show." % answer["bus_id"])
    if answer.get("mig_devices"):
        told.append("%d MIG devices are parts of these GPUs, not GPUs." % answer["mig_devices"])
    if answer.get("well_formed") is False:
        told.append("The XML is cut off. Remedy: give the whole file, if more GPUs are expected.")
    if answer.get("gpu_elements") is not None:
        told.append("%s GPUs are attached, the text shows %d." % (answer["attached_gpus"], answer["gpu_elements"]))
    for flag, words in (
        ("tegra", "This is a Jetson board, which gpu-ready does not serve."),
        ("wsl", "The driver is that of a Windows host (WSL); install nothing in Linux."),
        ("vgpu_host", "The driver has no CUDA: it is that of a host of virtual GPUs."),
    ):
        told += [words] if answer.get(flag) else []
    return told


# --- containers --------------------------------------------------------------------------------------------------


def read_container(text: str) -> Dict[str, Any]:
    """Read why a container did not start or sees no GPU."""
    return with_problems("container-error", container_errors.read(text), text)


def tell_container(answer: Dict[str, Any]) -> List[str]:
    """Return what a container's failure means."""
    if not answer["problems"] and answer["cause"] == container_errors.UNRELATED:
        return ["This failure does not speak of a GPU.", "Remedy: correct what the message names, then start it again."]
    told = tell_problems(answer) or nothing("container-error")
    if answer["needs_cuda"]:
        told.append("The image asks for a driver that brings CUDA %s or newer." % answer["needs_cuda"])
    return told


# --- installers --------------------------------------------------------------------------------------------------


def read_installer(text: str) -> Dict[str, Any]:
    """Read a log of nvidia-installer, DKMS or a package manager that called it."""
    return with_problems("installer-log", installer_log.read(text), text)


def tell_installer(answer: Dict[str, Any]) -> List[str]:
    """Return what an installer's log means."""
    what = [
        "%s %s" % (name, answer[key])
        for name, key in (("driver", "driver_version"), ("kernel", "kernel"), ("package", "package"))
        if answer[key]
    ]
    names = " (%s)" % ", ".join(what) if what else ""
    if answer["installer_failed"]:
        told = ["The installation failed%s." % names]
        return told + (tell_problems(answer) or nothing("installer-log"))
    if not what and not answer["problems"]:
        return nothing("installer-log")
    return ["The log shows no failure%s." % names] + tell_problems(answer)


# --- the kernel's log --------------------------------------------------------------------------------------------


def read_dmesg(text: str) -> Dict[str, Any]:
    """Read a kernel log."""
    return with_problems("dmesg", kernel_log.read(text), text)


def tell_dmesg(answer: Dict[str, Any]) -> List[str]:
    """Return what a kernel log means."""
    if answer["condition"] == "none":
        return nothing("dmesg")
    told = []
    if answer["driver_version"]:
        told.append(
            "The log names driver %s (%s)." % (answer["driver_version"], answer["flavour"] or "flavour not told")
        )
    if not answer["problems"]:
        return told + ["The module was loaded and complains of nothing."]
    told += tell_problems(answer)
    if answer.get("legacy_branch"):
        told.append("The branch that serves %s is %s." % (answer["gpu_name"], answer["legacy_branch"]))
    if answer.get("client_version"):
        versions = (answer["client_version"], answer["module_version"])
        told.append("The program's libraries are of version %s, the loaded module is of version %s." % versions)
    serious = sorted({event["xid"] for event in answer["xids"]} & set(xid.SERIOUS))
    if serious:
        numbers = ", ".join(str(number) for number in serious)
        told.append("A GPU with Xid %s is not one to work on: gpu_verify refuses the host." % numbers)
    return told
