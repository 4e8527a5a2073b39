"""What a task with gpu_verify answers: the control node judges the evidence of the host."""

from typing import NamedTuple

from ..verdict.checks import Check


class VerifyReport(NamedTuple):
    """``nvml``: what NVML answered on the host, ``container``: in the container."""

    ok: bool | None
    checks: list[Check]
    not_run: list[str]
    time: str = ""
    nvml: dict[str, object] = {}
    container: dict[str, object] | None = None


class VerifyAnswer(NamedTuple):
    """``row``: columns of the report, None in check mode."""

    verify: VerifyReport
    row: dict[str, str | None] | None = None
    changed: bool = False
    msg: str | None = None
