"""`gpu-explain read` for messages of programs and the kernel: parsed results, and their descriptions."""

from typing import Any, Dict, List

from ..diagnostics import container_errors, installer_log, kernel_log, message_table, messages, smi, xid

SEARCHED = {
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
    """Add the problems in the text, the root cause first."""
    found = [
        {"code": problem.code, "message": problem.message, "cause": problem.cause, "remedy": problem.remedy}
        for problem in messages.explain(kind, text)
    ]
    return dict(answer, problems=found)


def describe_problems(answer: Dict[str, Any]) -> List[str]:
    """One line for each cause, with the matching message in brackets, and one for each remedy."""
    lines = []
    for problem in answer["problems"]:
        cause = problem["cause"]
        if "-" not in cause.split()[0]:  # names of programs (nvidia-smi) are not capitalized
            cause = cause[:1].upper() + cause[1:]
        lines.append("%s (%s)." % (cause, problem["message"]) if problem["message"] else cause + ".")
        lines.append("Remedy: %s." % problem["remedy"])
    return lines


def describe_nothing(kind: str) -> List[str]:
    name, what, remedy = SEARCHED[kind]
    count = len([entry for entry in message_table.table(name) if entry.patterns])
    return [
        "Nothing known is in this text; it was searched for %d messages: %s." % (count, what),
        "Remedy: %s." % remedy,
    ]


# --- nvidia-smi --------------------------------------------------------------------------------------------------


OF_ONE_GPU = ("gpu_lost", "gpu_reset_required", "gpu_power_cable")
"""Problems of one GPU, with which the others still answer."""


def read_smi(text: str) -> Dict[str, Any]:
    """Read any output of nvidia-smi; a successful call has only problems of single GPUs."""
    answer = with_problems("nvidia-smi", smi.read(text), text)
    if answer["usable"]:
        answer["problems"] = [problem for problem in answer["problems"] if problem["code"] in OF_ONE_GPU]
    return answer


def describe_smi(answer: Dict[str, Any]) -> List[str]:
    if not answer["usable"]:
        lines = describe_problems(answer) or describe_nothing("nvidia-smi")
        if answer.get("bus_id"):
            lines.append("The text names the GPU %s." % answer["bus_id"])
        return lines
    versions = "driver %s, CUDA %s" % (answer["driver_version"] or "unknown", answer["cuda_version"] or "unknown")
    count = len(answer["gpus"])
    lines = ["nvidia-smi answered: %s, %d GPU%s." % (versions, count, "" if count == 1 else "s")]
    for gpu in answer["gpus"]:
        lines.append("%s %s" % (gpu.get("bus_id") or gpu.get("uuid") or "GPU", gpu.get("name") or "without a name"))
        if gpu.get("error"):
            lines[-1] += ": does not answer (ERR!). Remedy: read 'dmesg | grep Xid', reset the GPU or reboot."
    lines += describe_problems(answer)
    if answer["problems"] and answer.get("bus_id"):
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


def read_container(text: str) -> Dict[str, Any]:
    """Read why a container did not start or sees no GPU."""
    return with_problems("container-error", container_errors.read(text), text)


def describe_container(answer: Dict[str, Any]) -> List[str]:
    if not answer["problems"] and answer["cause"] == container_errors.UNRELATED:
        return ["This failure is not about a GPU.", "Remedy: correct what the message names, then start it again."]
    lines = describe_problems(answer) or describe_nothing("container-error")
    if answer["needs_cuda"]:
        lines.append("The image requires a driver with CUDA %s or newer." % answer["needs_cuda"])
    return lines


# --- installers --------------------------------------------------------------------------------------------------


def read_installer(text: str) -> Dict[str, Any]:
    """Read a log of nvidia-installer, DKMS or a package manager that called it."""
    return with_problems("installer-log", installer_log.read(text), text)


def describe_installer(answer: Dict[str, Any]) -> List[str]:
    what = [
        "%s %s" % (name, answer[key])
        for name, key in (("driver", "driver_version"), ("kernel", "kernel"), ("package", "package"))
        if answer[key]
    ]
    names = " (%s)" % ", ".join(what) if what else ""
    if answer["installer_failed"]:
        lines = ["The installation failed%s." % names]
        return lines + (describe_problems(answer) or describe_nothing("installer-log"))
    if not what and not answer["problems"]:
        return describe_nothing("installer-log")
    return ["The log shows no failure%s." % names] + describe_problems(answer)


# --- the kernel's log --------------------------------------------------------------------------------------------


def read_dmesg(text: str) -> Dict[str, Any]:
    """Read a kernel log."""
    return with_problems("dmesg", kernel_log.read(text), text)


def describe_dmesg(answer: Dict[str, Any]) -> List[str]:
    if answer["condition"] == "none":
        return describe_nothing("dmesg")
    lines = []
    if answer["driver_version"]:
        lines.append(
            "The log names driver %s (%s)." % (answer["driver_version"], answer["flavour"] or "unknown flavour")
        )
    if not answer["problems"]:
        return lines + ["The module was loaded and reports no problem."]
    lines += describe_problems(answer)
    if answer.get("legacy_branch"):
        lines.append("The branch that serves %s is %s." % (answer["gpu_name"], answer["legacy_branch"]))
    if answer.get("client_version"):
        versions = (answer["client_version"], answer["module_version"])
        lines.append("The program's libraries are of version %s, the loaded module is of version %s." % versions)
    serious = sorted({event["xid"] for event in answer["xids"]} & set(xid.SERIOUS))
    if serious:
        numbers = ", ".join(str(number) for number in serious)
        lines.append("A GPU with Xid %s must not be used: gpu_verify refuses the host." % numbers)
    return lines
