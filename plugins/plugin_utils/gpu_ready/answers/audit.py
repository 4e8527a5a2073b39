"""What gpu_audit answers."""

from typing import NamedTuple

from ..report.host_audit import HostAudit


class AuditAnswer(NamedTuple):
    audit: HostAudit
    changed: bool = False
