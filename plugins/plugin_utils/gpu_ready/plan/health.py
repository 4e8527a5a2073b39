"""Whether the GPUs are healthy now: findings from facts. Pure; the plan, the audit and the gate of site.yml use it.

A verification is a memory of its time. A finding is something that it did not see: it makes the record invalid.
"""

from typing import NamedTuple

from ....module_utils.gpu_ready.facts.model import FOREIGN_DRIVERS, Facts, HealthFacts, VerifiedFacts, XidFacts
from ....module_utils.gpu_ready.upgrade.model import GOING_BACK, STUCK, SWITCHING
from ..catalog import messages as data
from ..diagnostics import message_table, xid
from .model import Refusal

LOST = "gpu_lost"
"""Code of the refusal of a host with a GPU that does not return without a reboot."""
REBOOT = "drain and reboot the host; if it returns, check power, slot and the GPU"
VERIFY = "run site.yml, which verifies the host again and says what is wrong"
REPORTED = (48, 63, 64, 74, 79, 92, 94, 95, 154)
"""Xids after which a GPU is verified again, beside those that fail a verification (critical ones of the catalog)."""
MOST = 32
"""Xids that are reported, the newest ones."""
NOT_BACK = ("lost", "lost_link")
"""Classes of the catalog whose Xids only a reboot ends."""


class Finding(NamedTuple):
    """``lost``: the GPU does not return without a reboot. Else a verification decides what is wrong."""

    address: str
    message: str
    remedy: str
    lost: bool = False


def findings(facts: Facts) -> list[Finding]:
    """Return what is wrong with GPUs that the host drives itself; the lost ones first."""
    record = valid_record(facts)
    found = silent_gpus(facts) + missing_gpus(facts, record)
    if facts.health is not None:
        found += forgotten_gpus(facts, facts.health, record)
        found += missing_nodes(facts.health, record)
        found += reported_xids(facts, facts.health, [one.address for one in found if one.lost])
    return sorted(found, key=lambda one: not one.lost)


def refusals(facts: Facts) -> list[Refusal]:
    """Return why nothing is changed on a host with a lost GPU: its steps would hang or fail, and restart other work.

    An upgrade in its middle continues: the new driver may be the cause, and its turn ends with a rollback.
    """
    if facts.upgrade is not None and facts.upgrade.phase in (SWITCHING, GOING_BACK, STUCK):
        return []
    return [Refusal(LOST, one.message, one.remedy) for one in findings(facts) if one.lost]


def valid_record(facts: Facts) -> VerifiedFacts | None:
    """Return the record of a verification that succeeded in this boot."""
    record = facts.verified
    known = record is not None and record.ok and record.boot_id is not None
    return record if record and known and record.boot_id == facts.base.boot_id else None


def name(facts: Facts, address: str) -> str:
    """Return a GPU as `nvidia-smi` counts it: in the order of the PCI bus."""
    record = facts.verified
    known = {gpu.address for gpu in facts.base.served_gpus} | set(record.addresses if record else [])
    order = sorted(known - {gpu.address for gpu in facts.base.gpus if gpu.driver in FOREIGN_DRIVERS})
    return "GPU %d (%s)" % (order.index(address), address) if address in order else "the GPU at %s" % address


def silent_gpus(facts: Facts) -> list[Finding]:
    return [
        Finding(
            gpu.address,
            '%s does not answer: its PCI configuration reads as ones ("GPU is lost", "fallen off the bus")'
            % name(facts, gpu.address),
            REBOOT,
            lost=True,
        )
        for gpu in facts.base.served_gpus
        if gpu.silent
    ]


def missing_gpus(facts: Facts, record: VerifiedFacts | None) -> list[Finding]:
    """Return those that left the PCI bus since they were verified in this boot.

    Nobody takes a card out of a running host.
    """
    present = {gpu.address for gpu in facts.base.gpus}
    left = [address for address in record.addresses if address not in present] if record else []
    message = "%s is no longer on the PCI bus, where it was verified since the host started"
    return [Finding(address, message % name(facts, address), REBOOT, lost=True) for address in left]


def forgotten_gpus(facts: Facts, health: HealthFacts, record: VerifiedFacts | None) -> list[Finding]:
    """Return those that the driver had when they were verified, and does not have now."""
    if record is None or facts.driver.loaded is None or facts.driver.loaded.version != record.driver:
        return []
    message = "%s is no longer among the GPUs of the driver (/proc/driver/nvidia/gpus)"
    return [
        Finding(gpu.address, message % name(facts, gpu.address), VERIFY)
        for gpu in facts.base.served_gpus
        if gpu.address in record.addresses and gpu.address not in health.driven and not gpu.silent
    ]


def missing_nodes(health: HealthFacts, record: VerifiedFacts | None) -> list[Finding]:
    """Return device nodes that a verification of this boot opened, on a host where no program creates them again."""
    if record is None or health.nodes is None:
        return []
    numbered = [node for node in health.nodes if node != "nvidiactl"]
    expected = min(len(health.driven), len(record.gpus))
    if "nvidiactl" in health.nodes and len(numbered) >= expected:
        return []
    found = ", ".join("/dev/" + node for node in health.nodes) or "none"
    message = "device nodes of the driver are missing: %d GPUs and nvidiactl need one each, found %s"
    return [Finding("", message % (expected, found), VERIFY)]


def reported_xids(facts: Facts, health: HealthFacts, known: list[str]) -> list[Finding]:
    """Return Xids that are newer than the last successful verification of this boot, also where a later one has failed.

    That a GPU in ``known`` is lost is not reported again.
    """
    record = facts.verified if facts.verified and facts.verified.boot_id == facts.base.boot_id else None
    since = record.logged if record else 0.0
    ours = {gpu.address for gpu in facts.base.served_gpus} | set(record.addresses if record else [])
    ours -= {gpu.address for gpu in facts.base.gpus if gpu.driver in FOREIGN_DRIVERS}
    new = [one for one in health.xids or [] if one.time > since and (one.switch or one.address in ours)]
    if not new:
        return []
    new = new[-MOST:]
    found: list[Finding] = []
    for one in new:
        means = xid.meaning(one.number, one.address)
        remedy, lost = means.remedy, data.XIDS.get(one.number, ("",))[0] in NOT_BACK
        what = "Xid %d of %s: %s" % (one.number, name(facts, one.address), means.name)
        if one.switch:
            means = xid.FATAL_SWITCH
            what, remedy, lost = "SXid %d of %s: %s" % (one.number, one.address, means.name), means.remedy, False
        elif one.action is not None:
            remedy = recovery_action(one, data.RECOVERY_ACTIONS) or remedy
        elif means.severity != message_table.CRITICAL:
            if one.number not in REPORTED:
                continue
            remedy = "%s; %s" % (remedy, VERIFY)
        if lost and one.address in known:
            continue
        found.append(Finding(one.address, what, REBOOT if lost else remedy, lost))
    return found


def recovery_action(one: XidFacts, actions: dict[int, dict[str, str]]) -> str:
    """Return the remedy of what an Xid 154 requires, "" where its number is not known."""
    return xid.of_row(actions[one.action], "", one.address).remedy if one.action in actions else ""


def persistence_released(facts: Facts) -> str:
    """Return how the persistence daemon has closed GPUs since the verification of this boot, "" where it has not.

    A GPU that went to a virtual machine since then is closed with reason.
    """
    record, held = valid_record(facts), facts.driver.persistence.held
    if record is None or record.persistent is None or held is None or facts.health is None:
        return ""
    expected = min(record.persistent, len(facts.health.driven))
    if held >= expected:
        return ""
    return "somebody turned persistence mode off: the daemon keeps %d of %d GPUs initialized" % (held, expected)
