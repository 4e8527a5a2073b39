"""What NVML's answers mean: GPUs, or a state with cause and remedy. Pure."""

import re
from typing import NamedTuple

from ....module_utils.gpu_ready.base.host import Result
from ....module_utils.gpu_ready.verify.container import reason_line
from ....module_utils.gpu_ready.verify.nvml import SMI, NvmlAnswer, NvmlGpu, first_line, parse_csv, parse_rows, smi_text
from ..diagnostics import messages


class NvmlResult(NamedTuple):
    """GPUs if ``usable``; else a state (a key of messages.SMI_STATES), the message printed, cause and remedy.

    ``how``: pynvml, nvidia-smi or container.
    """

    usable: bool
    how: str
    gpus: list[NvmlGpu]
    state: str | None = None
    message: str | None = None
    cause: str | None = None
    remedy: str | None = None


def failed_query(how: str, code: int, output: str) -> NvmlResult:
    found = messages.explain_smi(code, output)
    return NvmlResult(False, how, [], found.code, first_line(output), found.cause, found.remedy)


def usable_result(how: str, gpus: list[NvmlGpu] | None, output: str) -> NvmlResult:
    if gpus is None:
        cause, remedy = messages.SMI_STATES["unreadable"]
        return NvmlResult(False, how, [], "unreadable", first_line(output), cause, remedy)
    if not gpus:
        return failed_query(how, 6, output)
    return NvmlResult(True, how, gpus)


def from_smi(result: Result) -> NvmlResult:
    """Interpret nvidia-smi's answer to QUERY."""
    if result.rc not in (0, 14):
        return failed_query(SMI, result.rc, result.out + "\n" + result.err)
    text = smi_text(result)
    if messages.smi_state(0, text) != "unknown":  # `No devices were found` came with status 0 from some releases
        return failed_query(SMI, 0, text)
    return usable_result(SMI, parse_csv(text), text)


def from_pynvml(result: Result) -> NvmlResult:
    """Interpret the answer of PYNVML."""
    if result.rc == 0:
        return usable_result("pynvml", parse_rows(result.out), result.out)
    match = re.search(r"NVML error (\d+): (.*)", result.err)
    if match:
        return failed_query("pynvml", int(match.group(1)), match.group(2))
    return failed_query("pynvml", result.rc, result.err)


def from_host(answer: NvmlAnswer) -> NvmlResult:
    """Interpret what NVML answered on the host."""
    return from_smi(answer.result) if answer.how == SMI else from_pynvml(answer.result)


def from_container(result: Result) -> NvmlResult:
    """Interpret nvidia-smi's answer from a container; failures may be the engine's own."""
    if result.rc in (0, 14):
        return from_smi(result)._replace(how="container")
    text = "\n".join(part for part in (result.err, result.out) if part.strip())
    found = messages.explain_container(result.rc, text)
    return NvmlResult(False, "container", [], found.code, reason_line(text), found.cause, found.remedy)


def to_json(result: NvmlResult) -> dict[str, object]:
    return dict(result._asdict(), gpus=[dict(gpu._asdict()) for gpu in result.gpus])
