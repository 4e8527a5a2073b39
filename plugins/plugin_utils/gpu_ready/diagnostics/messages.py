"""Messages of programs about a failing GPU, driver or container: cause and remedy.

The one entry point for a text that a program printed is :func:`explain`::

    for found in messages.explain("container-error", stderr):
        print("%s: %s" % (found.cause, found.remedy))

Where the exit status is known too, :func:`explain_smi` and :func:`explain_container` give the one explanation that
fits best.
Explanations and patterns are data (catalog/messages.yml).
"""

from collections.abc import Callable

from . import container_errors, installer_log, kernel_log, message_table, smi
from .message_table import CONTAINER, NVIDIA_SMI, Explanation
from .text_lines import joined

__all__ = [
    "KINDS", "SMI_STATES", "Explanation", "explain", "explain_container", "explain_smi", "joined", "smi_state",
]  # fmt: skip

SMI_STATES: dict[str, tuple[str, str]] = {
    entry.code: (entry.cause, entry.remedy) for entry in message_table.table(NVIDIA_SMI)
}
"""Every state of an unusable answer of nvidia-smi or NVML, with cause and remedy."""


def cuda_installer_problems(text: str) -> list[Explanation]:
    """Return every known problem in the log of the CUDA toolkit's installer, causes first."""
    return [message_table.explanation(row) for row in message_table.find_broken(message_table.CUDA_INSTALLER, text)]


KINDS: dict[str, Callable[[str], list[Explanation]]] = {
    "nvidia-smi": smi.problems,
    "container-error": container_errors.problems,
    "installer-log": installer_log.problems,
    "dmesg": kernel_log.problems,
    "cuda-installer": cuda_installer_problems,
}
"""What :func:`explain` explains, by the words of `gpu-explain read`, which has no word for the last one."""


def explain(kind: str, text: str) -> list[Explanation]:
    """Return every known problem in a text, the root cause first. ``kind`` is one of :data:`KINDS`."""
    return KINDS[kind](text)


def smi_state(code: int, text: str) -> str:
    """Return the state word for a failed nvidia-smi or NVML call, by its text first, else by its exit status."""
    return smi.state(code, text)


def explain_smi(code: int, text: str) -> Explanation:
    """Return the cause and remedy of a failed nvidia-smi or NVML call; ``detail`` is the GPU that the text names."""
    state, address = smi.explain(code, text)
    cause, remedy = SMI_STATES[state]
    return Explanation(state, cause, remedy, address)


def explain_container(code: int, text: str) -> Explanation:
    """Return the cause and remedy of a failed ``docker run``; nvidia-smi's own failures inside the container included.

    ``detail`` is the CUDA version that an image asks for, where it names one.
    """
    found = container_errors.problems(text)
    if found:
        return found[0]
    if code in (126, 127):
        row = next(entry for entry in message_table.table(CONTAINER) if entry.code == "gpus_flag_ignored")
        return Explanation(row.code, row.cause, row.remedy)
    return explain_smi(code, text)
