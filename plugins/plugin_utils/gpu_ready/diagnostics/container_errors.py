"""Errors of docker, containerd, podman and NVIDIA's container programs about containers without GPUs."""

import re
from typing import Any

from . import message_table, programs, smi, text_lines
from .message_table import CONTAINER, Explanation, Found

NEEDS_CUDA = re.compile(
    r"(?:unsatisfied condition:\s*cuda\s*>=\s*|unsupported CUDA version: driver [\d.]+ < image )(\d+\.\d+)",
    re.IGNORECASE,
)
RESOURCE = re.compile(r"nvidia\.com/(?:gpu|mig)", re.IGNORECASE)
UNRELATED = "not_gpu"
TOOLKIT = re.compile(r"nvidia-container|nvidia-ctk|nvidia-cdi|nvml|\bCDI\b|libnvidia|libcuda", re.IGNORECASE)
PASSED_ON = re.compile(r"nvidia-(?:container|ctk|cdi|device-plugin)|device plugin|\bkubelet\b", re.IGNORECASE)
"""Programs that quote messages of nvidia-smi among their own."""
GPU = re.compile(
    r"nvidia|nvml|cuda|\bgpus?\b|\bcdi\b|\bmig\b|\bhooks?\b|device.?plugin|fabric|imex|\bmps\b|\bgres\b|nvlsm|spank|dcgm|slurm|\bxid\b"
    r"|clique|compute.?domain|resource.?claim|dynamic.?resource|\blxc\b|incus",
    re.IGNORECASE,
)
"""With one of these a general message does not show that a failure is not about GPUs.

Engines do not name a hook's program.
"""
GENERAL = "container_other"
"""The row of messages that any program writes: they say nothing of GPUs only where nothing else in the text does."""
DISPLAY = re.compile(r"(?:VGA compatible|3D|Display) controller(?: \[03\d\d\])?: (.{1,60})")


def problems(text: str) -> list[Explanation]:
    """Return what a container's failure means, the root cause first; nvidia-smi's own failures in it included."""
    flat = text_lines.joined(text)
    found = message_table.find_broken(CONTAINER, text)
    # "permission denied" in a message of the toolkit does not make it unrelated to GPUs.
    if TOOLKIT.search(without_images(flat)) or any(row.entry.names != UNRELATED for row in found):
        found = [row for row in found if row.entry.names != UNRELATED]
    if GPU.search(without_images(flat)):
        found = [row for row in found if row.entry.code != GENERAL]
    if not found:
        return [] if PASSED_ON.search(flat) else smi.problems(text)
    needs = needed_cuda(flat)
    found = [without_card(row, flat) for row in found]
    caller = programs.caller(flat)
    return [
        message_table.explanation(row, needs if row.entry.code == "driver_too_old" else None, caller) for row in found
    ]


def without_card(row: Found, flat: str) -> Found:
    """Return Docker's word for a missing toolkit as that for a missing GPU where the text shows other cards only."""
    shown = DISPLAY.findall(flat)
    if row.entry.code != "toolkit_missing" or not shown or any("nvidia" in card.lower() for card in shown):
        return row
    other = "toolkit_missing_or_no_nvidia_gpu"
    return row._replace(entry=next(entry for entry in message_table.table(CONTAINER) if entry.code == other))


def without_images(flat: str) -> str:
    """Return a text without names of images such as nvidia/cuda:12.4, which say nothing about the failure."""
    return " ".join(
        word
        for word in flat.split()
        if "/" not in word.lstrip("/['\"`(") or word.strip("['\"`(")[:1] == "/" or RESOURCE.search(word)
    )


def needed_cuda(flat: str) -> str | None:
    """Return the CUDA version that an image asks for, None where the text names none."""
    match = NEEDS_CUDA.search(flat)
    return match.group(1) if match else None


def cause(found: list[Explanation]) -> str | None:
    """Return the word for the root cause, the first of the explanations; None for an unknown failure."""
    names = {entry.code: entry.names for entry in message_table.table(CONTAINER)}
    return names.get(found[0].code, found[0].code) if found else None


def read(text: str) -> dict[str, Any]:
    """Read a container's failure: the root cause, the CUDA version that an image asks for, and the problems."""
    found = problems(text)
    return {"cause": cause(found), "needs_cuda": needed_cuda(text_lines.joined(text)), "problems": found}
