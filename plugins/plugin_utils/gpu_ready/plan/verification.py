"""Whether the last verification still holds for the present state of a host, and which GPUs the next one names."""

from ....module_utils.gpu_ready.facts.blocked_module import blocked_text
from ....module_utils.gpu_ready.facts.model import Facts
from ..catalog.settings import Settings
from . import health, parts
from .model import Refusal, VariableChange, refuse


def device_refusals(facts: Facts, settings: Settings, part: str = "") -> list[Refusal]:
    """Refuse indices of gpu_verify_devices that this host does not have; UUIDs are known only with a driver."""
    given = settings.gpu_verify_devices
    words = [word for item in ([given] if isinstance(given, str) else given) for word in item.split()]
    count = len(facts.base.served_gpus)
    absent = [word for word in words if word.isdigit() and int(word) >= count]
    if not absent or part not in ("", parts.VERIFY):
        return []
    return [
        refuse(
            "verify_devices_absent",
            "gpu_verify_devices names GPU %s, and this host has %s"
            % (" and ".join(absent), "GPU 0 only" if count == 1 else "GPUs 0 to %d" % (count - 1)),
            VariableChange({"gpu_verify_devices": ["all"]}),
            "name indices from 0 to %d" % (count - 1),
        )
    ]


def reason_to_verify(facts: Facts, digest: str) -> str | None:
    """Return why a new verification is due; None if the record is of this state and nothing contradicts it now."""
    found = health.findings(facts)
    return outdated(facts, digest) or "; ".join(one.message for one in found) or None


def outdated(facts: Facts, digest: str) -> str | None:
    """Return how the state differs from the recorded one; None if it is of this boot, these versions, this digest."""
    record = facts.verified
    if not record:
        return "this host was never verified"
    if not record.ok:
        return "the last verification failed: %s" % ("; ".join(record.reasons) or "no reason recorded")
    if facts.driver.blocked:
        return blocked_text(facts.driver.blocked)
    if record.boot_id != facts.base.boot_id:
        return "the host was rebooted since its last verification"
    if record.digest != digest:
        return "the desired state changed since the last verification"
    loaded = facts.driver.loaded.version if facts.driver.loaded else None
    if record.driver != loaded:
        return "driver %s is loaded, %s was verified" % (loaded or "none", record.driver)
    if facts.driver.userspace and record.userspace != facts.driver.userspace:
        versions = (", ".join(facts.driver.userspace), ", ".join(record.userspace))
        return "the driver's libraries are of %s, %s was verified" % versions
    if sorted(record.addresses) != sorted(gpu.address for gpu in facts.base.gpus):
        return "the GPUs on the PCI bus changed since the last verification"
    return None
