"""A finished verification: the verdict on the evidence of a host, the record that the host keeps, the report."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from ....module_utils.gpu_ready.base.host import Host
from ....module_utils.gpu_ready.check import xids
from ....module_utils.gpu_ready.check.model import GpuIdentity, NvmlReading
from ....module_utils.gpu_ready.containers import engine as engines
from ....module_utils.gpu_ready.facts import collect as facts_collect
from ....module_utils.gpu_ready.facts import driver_origin
from ....module_utils.gpu_ready.facts.model import Facts, VerifiedFacts
from ....module_utils.gpu_ready.verify import collect
from ....module_utils.gpu_ready.verify.collect import CollectedEvidence, VerifyOptions
from ....module_utils.gpu_ready.verify.expectation import VerifyExpectation
from ..completion.probes import make_probes
from . import nvml
from .checks import Check, failure_message
from .evidence import Evidence, interpret, logged_before
from .judge import Verdict, judge_evidence


class Verification(NamedTuple):
    """A finished verification; ``record`` is stored on the host."""

    evidence: Evidence
    verdict: Verdict
    record: VerifiedFacts

    @property
    def container(self) -> nvml.NvmlResult | None:
        """Docker's answer, else another engine's."""
        found = self.evidence.containers
        return found.get(engines.DOCKER) or next(iter(found.values()), None)


def verify(host: Host, expect: VerifyExpectation, digest: str, options: VerifyOptions) -> Verification:
    """Verify a host that this process can read; nothing is recorded. ``digest``: as in :func:`judge`."""
    facts = facts_collect.collect(host, make_probes())
    return judge(facts, collect.collect(host, facts, expect, options), expect, digest, options)


def judge(
    facts: Facts, collected: CollectedEvidence, expect: VerifyExpectation, digest: str, options: VerifyOptions
) -> Verification:
    """Judge what was collected on a host. ``digest``: of the desired state that a success confirms."""
    evidence = interpret(facts, collected, expect, options, make_probes())
    verdict = judge_evidence(evidence)
    before = logged_before(facts.verified, facts.base.boot_id)
    logged = max(before, xids.newest(collected.log or "")) if verdict.ok else before
    return Verification(evidence, verdict, build_record(evidence, digest, verdict, logged, collected.time))


def build_record(evidence: Evidence, digest: str, verdict: Verdict, logged: float, when: int) -> VerifiedFacts:
    """Return the outcome with the state of the host to which it applies; ``when``: by the host's clock."""
    facts = evidence.facts
    return VerifiedFacts(
        ok=verdict.ok,
        result="verified" if verdict.ok else "failed",
        reasons=[failure_message(verdict.checks)] if not verdict.ok else [],
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)),
        boot_id=facts.base.boot_id,
        driver=facts.driver.loaded.version if facts.driver.loaded else None,
        userspace=facts.driver.userspace,
        gpus=[gpu.uuid for gpu in evidence.nvml.gpus],
        addresses=sorted(gpu.address for gpu in facts.base.gpus),
        digest=digest,
        runtime=evidence.expect.mode,
        logged=logged,
        persistent=facts.driver.persistence.held,
        hardware=best_of(evidence.health, facts.verified),
        gpus_option_with=facts.docker.started if verdict.ok and evidence.expect.uses_gpus_option else None,
        checks=check_results(verdict.checks),
        evidence=facts.raw.driver,
        origin_of=driver_origin.deciding_versions(make_probes(), facts.driver.packages),
        companions=facts.driver.companions,
        sources=driver_origin.sources_digest(facts.apt.sources or facts.yum.sources),
    )


def best_of(now: NvmlReading | None, record: VerifiedFacts | None) -> list[GpuIdentity]:
    """Return the GPUs for later checks: of the same GPU in the same slot the best link that was ever verified.

    Else a verification of a link that became narrow would make that the expectation. In another slot a card begins
    again.
    """
    before = {(one.address, one.uuid): one for one in (record.hardware if record else [])}
    if now is None or not now.gpus:
        return list(before.values())
    found = []
    for one in (gpu.identity for gpu in now.gpus):
        old = before.get((one.address, one.uuid), one)
        widths = [value for value in (old.pcie_width, one.pcie_width) if value is not None]
        speeds = [value for value in (old.pcie_generation, one.pcie_generation) if value is not None]
        width, speed = max(widths, default=None), max(speeds, default=None)
        nvlinks, fabric = max(old.nvlinks, one.nvlinks), old.fabric or one.fabric
        found.append(one._replace(pcie_width=width, pcie_generation=speed, nvlinks=nvlinks, fabric=fabric))
    return found


def check_results(checks: Sequence[Check]) -> dict[str, str]:
    """By name: ok, failed, or why the check was not run; a failed one hides others of its name."""
    found: dict[str, str] = {}
    for check in sorted(checks, key=lambda one: one.ok is False):
        found[check.name] = check.found if check.ok is None else "ok" if check.ok else "failed"
    return found


def report_entry(done: Verification) -> dict[str, object]:
    """Return the part ``verify`` of a host in the report, as JSON."""
    container = done.container
    return {
        "ok": done.verdict.ok,
        "time": done.record.time,
        "checks": [dict(check._asdict()) for check in done.verdict.checks],
        "not_run": [check.name for check in done.verdict.checks if check.ok is None],
        "nvml": nvml.to_json(done.evidence.nvml),
        "container": None if container is None else nvml.to_json(container),
    }


def report_row(done: Verification) -> dict[str, str | None]:
    """Return columns of the report that are known better now than when the plan was made."""
    facts = done.evidence.facts
    disk, loaded = facts.driver.on_disk, facts.driver.loaded
    return {
        "driver_installed": disk.version if disk else None,
        "driver_loaded": loaded.version if loaded else None,
        "driver_userspace": ", ".join(facts.driver.userspace) or None,
        "cuda": ", ".join(toolkit.version for toolkit in facts.cuda.toolkits) or None,
        "cudnn": facts.cudnn_versions,
        "docker_runtime": done.evidence.expect.mode,
        "verified": done.record.time if done.verdict.ok else None,
        "why": "verified" if done.verdict.ok else "; ".join(done.record.reasons),
    }
