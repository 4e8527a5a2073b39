"""Messages of programs about a failing GPU, driver or container: cause and remedy.

The one entry point for a text that a program printed is :func:`explain`::

    for found in messages.explain("container-error", stderr):
        print("%s: %s" % (found.cause, found.remedy))

Where the exit status is known too, :func:`explain_smi` and :func:`explain_container` give the one explanation that
fits best.
Explanations and patterns are data (catalog/messages.yml).
"""

from collections.abc import Callable

from . import container_errors, installer_log, kernel_log, layers, message_table, smi
from .message_table import CONTAINER, NVIDIA_SMI, Explanation
from .text_lines import joined

__all__ = [
    "KINDS", "SMI_STATES", "Explanation", "explain", "explain_container", "explain_smi", "joined", "smi_state",
]  # fmt: skip

SMI_STATES: dict[str, tuple[str, str]] = {
    entry.code: (message_table.fill(entry.cause, {}), message_table.fill(entry.remedy, {}))
    for entry in message_table.table(NVIDIA_SMI)
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
    """Return every problem in a text, the root cause first. ``kind`` is one of :data:`KINDS`."""
    return complete(kind, text, KINDS[kind](text))


def complete(kind: str, text: str, known: list[Explanation]) -> list[Explanation]:
    """Return problems that the reader of a kind found, with what other programs in the text report."""
    return layers.complete(kind, text, known, KINDS) if kind in layers.SEARCHED else known


def smi_state(code: int, text: str) -> str:
    """Return the state word for a failed nvidia-smi or NVML call, by its text first, else by its exit status."""
    return smi.state(code, text)


def explain_smi(code: int, text: str) -> Explanation:
    """Return the cause and remedy of a failed nvidia-smi or NVML call; ``detail`` is the GPU that the text names."""
    state, address = smi.explain(code, text)
    entry = next(entry for entry in message_table.table(NVIDIA_SMI) if entry.code == state)
    return message_table.explanation(message_table.Found(entry, 0, "", None), address)._replace(message=None)


def explain_container(code: int, text: str) -> Explanation:
    """Return the cause and remedy of a failed ``docker run``; nvidia-smi's own failures inside the container included.

    ``detail`` is the CUDA version that an image asks for, where it names one.
    """
    found = explain("container-error", text)
    if found:
        return found[0]
    if code in (126, 127):
        row = next(entry for entry in message_table.table(CONTAINER) if entry.code == "gpus_flag_ignored")
        return message_table.explanation(message_table.Found(row, 0, "", None))._replace(message=None)
    return explain_smi(code, text)
