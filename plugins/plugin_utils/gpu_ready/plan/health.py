"""Whether the GPUs are healthy now: findings from facts. Pure; the plan, the audit and the gate of site.yml use it.

A host that has gpu-ready-check answers with what that found. Elsewhere the same function judges what files and the
kernel's log say (check/judge.py); only NVML is not asked.
"""

from ....module_utils.gpu_ready.check import judge, rules
from ....module_utils.gpu_ready.check.model import Expected, Finding, Readings
from ....module_utils.gpu_ready.facts.model import Facts, HealthFacts, VerifiedFacts
from ....module_utils.gpu_ready.upgrade.model import GOING_BACK, STUCK, SWITCHING
from .model import Refusal

LOST = "gpu_lost"
"""Code of the refusal of a host with a GPU that does not return without a reboot."""


def findings(facts: Facts) -> list[Finding]:
    """Return what is wrong with GPUs that the host drives itself; the lost ones first."""
    if facts.health is not None and facts.health.check is not None:
        rows = facts.health.check
    else:
        rows = judge.judge(readings(facts), expected(facts.verified), rules.make_rules()).rows
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
