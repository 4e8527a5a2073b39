"""The audit of one host, as gpu_audit answers it and audit_table.py reads it."""

from typing import NamedTuple

from ....module_utils.gpu_ready.base.records import Word

GOOD = ("ok", "no_gpu")
"""States with exit status 0."""


class AuditCheck(NamedTuple):
    """One part of a host. ``ok``: True, False for drift, None for information that is no drift."""

    name: Word
    desired: str | None
    found: str | None
    ok: bool | None
    why: str = ""


class GpuHolder(NamedTuple):
    """A process that uses a GPU. ``service``: one of the driver's own services."""

    pid: int
    name: Word = ""
    command: str = ""
    container: str | None = None
    service: bool = False
    job: str | None = None


class HostAudit(NamedTuple):
    """The answer of gpu_audit for one host, or why there is none. ``row``: columns of the table."""

    state: Word
    why: list[str] = []
    checks: list[AuditCheck] = []
    holders: list[GpuHolder] = []
    steps: list[str] = []
    warnings: list[str] = []
    summary: str = ""
    row: dict[str, str | None] = {}

    @property
    def is_good(self) -> bool:
        return self.state in GOOD

    @property
    def work(self) -> list[GpuHolder]:
        """Processes that use the GPUs, without the driver's own services."""
        return [holder for holder in self.holders if not holder.service]
