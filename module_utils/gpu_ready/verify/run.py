"""Run a verification on a host: collect evidence, judge it, record the outcome."""

import re
import time
from typing import Dict, List, Mapping, NamedTuple, Optional

from ..base.files import write_json_file
from ..base.host import Host
from ..containers import engine as engines
from ..diagnostics import kernel_log, xid
from ..facts import collect, driver_origin, verified
from ..facts.model import VerifiedFacts
from ..facts.probes import Probes
from ..system import kernel_messages
from . import compute, frameworks, nvml, requirement
from . import container as containers
from .checks import Check, failure_message
from .devices import ALL, unknown_devices
from .evidence import Evidence, FabricManager
from .expectation import VerifyExpectation
from .verdict import FABRIC_MANAGER, Verdict, judge_evidence

VERSION = re.compile(r"(\d{3}\.\d+(?:\.\d+)?)")


class VerifyOptions(NamedTuple):
    """The variables of the role gpu_verify; ``timeout`` in seconds per container."""

    image: str
    devices: str = ALL
    timeout: float = containers.TIMEOUT
    compute: bool = True
    framework: str = frameworks.NONE
    framework_image: str = ""


class Verification(NamedTuple):
    """A finished verification; ``record`` is stored on the host."""

    evidence: Evidence
    verdict: Verdict
    record: VerifiedFacts

    @property
    def container(self) -> Optional[nvml.NvmlResult]:
        """Docker's answer, else another engine's."""
        found = self.evidence.containers
        return found.get(engines.DOCKER) or next(iter(found.values()), None)


def query_fabric_manager(host: Host, installed: Mapping[str, str]) -> FabricManager:
    result = host.run(["systemctl", "is-active", FABRIC_MANAGER], timeout=20.0)
    state = result.out.strip() or None
    version = None
    path = host.which("nv-fabricmanager")
    if path:
        answer = host.run([path, "--version"], timeout=20.0)
        match = VERSION.search(answer.out) if answer.rc == 0 else None
        version = match.group(1) if match else None
    if version is None:
        for name in installed:
            match = VERSION.search(installed[name]) if re.match(r"nvidia-fabric-?manager(-\d+)?$", name) else None
            version = match.group(1) if match else version
    return FabricManager(state if version or state == "active" else None, version)


def logged_before(record: Optional[VerifiedFacts], boot_id: Optional[str]) -> float:
    """Up to where an earlier successful verification of this boot has read the kernel's log."""
    return record.logged if record and record.boot_id == boot_id else 0.0


def verify(host: Host, expect: VerifyExpectation, digest: str, options: VerifyOptions, probes: Probes) -> Verification:
    """Verify a host. ``digest``: of the desired state that a success confirms."""
    facts = collect.collect(host, probes)
    answer = nvml.query(host)
    log = kernel_messages.read(host, 30.0)
    before = logged_before(facts.verified, facts.base.boot_id)
    evidence = Evidence(
        facts,
        expect,
        answer,
        smi=host.which("nvidia-smi"),
        devices=options.devices,
        xids=None if log is None else xid.serious_xids(xid.parse_xids(log, before)),
        kernel=kernel_log.explain_start(log or ""),
        cuda=probes.cuda.get(facts.driver.loaded.version.partition(".")[0]) if facts.driver.loaded else None,
    )
    if expect.persistence:
        evidence = evidence._replace(persistence=nvml.query_persistence(host))
    if facts.base.nvswitches:
        evidence = evidence._replace(fabric_manager=query_fabric_manager(host, facts.packages.installed))
    if options.compute and answer.usable:
        computed = compute.run_on_host(host)
        evidence = evidence._replace(compute=computed, mig=compute.query_mig(host, computed, answer.gpus))
    evidence = run_containers(host, evidence, options)
    verdict = judge_evidence(evidence)
    logged = max(before, kernel_messages.newest(log or "")) if verdict.ok else before
    return Verification(evidence, verdict, build_record(evidence, digest, verdict, logged, probes))


def run_containers(host: Host, evidence: Evidence, options: VerifyOptions) -> Evidence:
    """Add what containers saw and computed; none is started for GPUs that do not exist."""
    gpus, expect = evidence.nvml.gpus, evidence.expect
    if evidence.nvml.usable and unknown_devices(gpus, options.devices):
        return evidence
    answers: Dict[str, nvml.NvmlResult] = {}
    computed: Dict[str, compute.ComputeResult] = {}
    requirements: Dict[str, Dict[str, str]] = {}
    framework: Optional[frameworks.FrameworkResult] = None
    for engine in containers.available_engines(host, evidence.facts.docker.active, expect):
        args = containers.engine_args(host, engine, expect, options.devices, gpus)
        if args is None:
            continue
        answers[engine] = containers.query_in_container(host, engine, options.image, args, options.timeout)
        requirements[engine] = requirement.query_environment(host, engine, options.image)
        if options.compute and answers[engine].usable:
            command = ["python3"] + compute.program()
            result = containers.run_in(host, engine, options.image, args, command, compute.TIMEOUT)
            computed[engine] = compute.parse_result(result)
        if options.framework != frameworks.NONE and framework is None:
            image = options.framework_image or frameworks.IMAGES[options.framework]
            command = ["python3", "-c", frameworks.PROGRAMS[options.framework]]
            result = containers.run_in(host, engine, image, args, command, options.timeout)
            framework = frameworks.parse_result(options.framework, image, result)
    return evidence._replace(
        containers=answers, container_compute=computed, requirements=requirements, framework=framework
    )


def build_record(evidence: Evidence, digest: str, verdict: Verdict, logged: float, probes: Probes) -> VerifiedFacts:
    """Return the outcome with the state of the host to which it applies."""
    facts = evidence.facts
    return VerifiedFacts(
        ok=verdict.ok,
        result="verified" if verdict.ok else "failed",
        reasons=[failure_message(verdict.checks)] if not verdict.ok else [],
        time=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        boot_id=facts.base.boot_id,
        driver=facts.driver.loaded.version if facts.driver.loaded else None,
        userspace=facts.driver.userspace,
        gpus=[gpu.uuid for gpu in evidence.nvml.gpus],
        addresses=sorted(gpu.address for gpu in facts.base.gpus),
        digest=digest,
        runtime=evidence.expect.mode,
        logged=logged,
        persistent=facts.driver.persistence.held,
        checks=check_results(verdict.checks),
        evidence=facts.raw.driver,
        origin_of=driver_origin.deciding_versions(probes, facts.driver.packages),
        companions=facts.driver.companions,
        sources=driver_origin.sources_digest(facts.apt.sources or facts.yum.sources),
    )


def check_results(checks: List[Check]) -> Dict[str, str]:
    """By name: ok, failed, or why the check was not run; a failed one hides others of its name."""
    found: Dict[str, str] = {}
    for check in sorted(checks, key=lambda one: one.ok is False):
        found[check.name] = check.found if check.ok is None else "ok" if check.ok else "failed"
    return found


def write_record(record: VerifiedFacts, path: str = verified.PATH) -> None:
    write_json_file(path, verified.to_json(record), 0o644)


def report_entry(done: Verification) -> Dict[str, object]:
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


def report_row(done: Verification) -> Dict[str, Optional[str]]:
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
