"""What gpu_verify answers."""

from typing import Dict, List, NamedTuple, Optional

from ..verify.checks import Check


class VerifyReport(NamedTuple):
    """``nvml``: what NVML answered on the host, ``container``: in the container."""

    ok: Optional[bool]
    checks: List[Check]
    not_run: List[str]
    time: str = ""
    nvml: Dict[str, object] = {}
    container: Optional[Dict[str, object]] = None


class VerifyAnswer(NamedTuple):
    """``row``: columns of the report, None in check mode."""

    verify: VerifyReport
    row: Optional[Dict[str, Optional[str]]] = None
    changed: bool = False
    msg: Optional[str] = None
