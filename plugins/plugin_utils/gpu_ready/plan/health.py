"""Whether the GPUs are healthy now: findings from facts. Pure; the plan, the audit and the gate of site.yml use it.

A host that has gpu-ready-check answers with what that found. Elsewhere the same function judges what files and the
kernel's log say (check/judge.py); only NVML is not asked.
"""

from ....module_utils.gpu_ready.check import judge
from ....module_utils.gpu_ready.check.model import (
    CRITICAL,
    DRAIN,
    INFO,
    WARNING,
    Expected,
    Readings,
    Row,
    Rules,
    XidRule,
)
from ....module_utils.gpu_ready.facts.model import Facts, HealthFacts, VerifiedFacts
from ....module_utils.gpu_ready.upgrade.model import GOING_BACK, STUCK, SWITCHING
from ..catalog import messages as data
from ..diagnostics import message_table, xid
from .model import Refusal

LOST = "gpu_lost"
"""Code of the refusal of a host with a GPU that does not return without a reboot."""
REPORTED = (48, 63, 64, 74, 79, 92, 94, 95, 154)
"""Xids after which a GPU is verified again, beside those that fail a verification (critical ones of the catalog)."""
NOT_BACK = ("lost", "lost_link")
"""Classes of the catalog whose Xids only a reboot ends."""


def findings(facts: Facts) -> list[Row]:
    """Return what is wrong with GPUs that the host drives itself; the lost ones first."""
    if facts.health is not None and facts.health.check is not None:
        rows = facts.health.check
    else:
        rows = judge.judge(readings(facts), expected(facts.verified), rules()).rows
    return sorted((one for one in rows if one.renews), key=lambda one: not one.lost)


def readings(facts: Facts) -> Readings:
    """Return what the facts say of the GPUs now."""
    known = facts.health or HealthFacts(xids=[])
    loaded = facts.driver.loaded
    return Readings(
        boot_id=facts.base.boot_id,
        served=[gpu.address for gpu in facts.base.served_gpus],
        present=[gpu.address for gpu in facts.base.gpus],
        silent=[gpu.address for gpu in facts.base.served_gpus if gpu.silent],
        loaded=loaded.version if loaded else None,
        libraries=facts.driver.userspace,
        driven=known.driven if facts.health else None,
        nodes=known.nodes,
        xids=known.xids,
    )


def expected(record: VerifiedFacts | None) -> Expected | None:
    """Return of the record what health is compared with."""
    return None if record is None else Expected(*(getattr(record, field) for field in Expected._fields))


def rules(off: list[str] | None = None, limits: dict[str, int] | None = None) -> Rules:
    """Return what Xids mean by the catalog; program faults are information only."""
    xids = {str(number): xid_rule(number) for number in data.XIDS}
    recovery = {
        str(number): XidRule(CRITICAL, action or DRAIN, name, remedy)
        for number, (name, _, remedy, action) in data.RECOVERY_ACTIONS.items()
        if number
    }
    switch = xid.FATAL_SWITCH
    return Rules(
        xids, recovery, Rules().switch._replace(name=switch.name, remedy=switch.remedy), off or [], limits or {}
    )


def xid_rule(number: int) -> XidRule:
    means = xid.meaning(number)
    kind = data.XIDS[number][0]
    action = data.XID_CLASSES[kind].get("action", "")
    level = CRITICAL if means.severity == message_table.CRITICAL else WARNING if number in REPORTED else INFO
    return XidRule(level, action if level != INFO else "", means.name, means.remedy, kind in NOT_BACK)


def refusals(facts: Facts) -> list[Refusal]:
    """Return why nothing is changed on a host with a lost GPU: its steps would hang or fail, and restart other work.

    An upgrade in its middle continues: the new driver may be the cause, and its turn ends with a rollback.
    """
    if facts.upgrade is not None and facts.upgrade.phase in (SWITCHING, GOING_BACK, STUCK):
        return []
    return [Refusal(LOST, one.message, one.remedy) for one in findings(facts) if one.lost]


def persistence_released(facts: Facts) -> str:
    """Return how the persistence daemon has closed GPUs since the verification of this boot, "" where it has not.

    A GPU that went to a virtual machine since then is closed with reason.
    """
    record, held = facts.verified, facts.driver.persistence.held
    if not judge.is_valid(readings(facts), expected(record)) or record is None:
        return ""
    if record.persistent is None or held is None or facts.health is None:
        return ""
    least = min(record.persistent, len(facts.health.driven))
    if held >= least:
        return ""
    return "somebody turned persistence mode off: the daemon keeps %d of %d GPUs initialized" % (held, least)
