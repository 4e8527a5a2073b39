"""The audit of one host, as gpu_audit answers it and audit_table.py reads it."""

from typing import Dict, List, NamedTuple, Optional

from ....module_utils.gpu_ready.base.records import Word

GOOD = ("ok", "no_gpu")
"""States with exit status 0."""


class AuditCheck(NamedTuple):
    """One part of a host. ``ok``: True, False for drift, None for information that is no drift."""

    name: Word
    desired: Optional[str]
    found: Optional[str]
    ok: Optional[bool]
    why: str = ""


class GpuHolder(NamedTuple):
    """A process that uses a GPU. ``service``: one of the driver's own services."""

    pid: int
    name: Word = ""
    command: str = ""
    container: Optional[str] = None
    service: bool = False
    job: Optional[str] = None


class HostAudit(NamedTuple):
    """The answer of gpu_audit for one host, or why there is none. ``row``: columns of the table."""

    state: Word
    why: List[str] = []
    checks: List[AuditCheck] = []
    holders: List[GpuHolder] = []
    steps: List[str] = []
    warnings: List[str] = []
    summary: str = ""
    row: Dict[str, Optional[str]] = {}

    @property
    def is_good(self) -> bool:
        return self.state in GOOD

    @property
    def work(self) -> List[GpuHolder]:
        """Processes that use the GPUs, without the driver's own services."""
        return [holder for holder in self.holders if not holder.service]
