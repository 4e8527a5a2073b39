"""Collects the evidence of a verification on a host. The control node judges it."""

import re
import time
from typing import Dict, List, Mapping, NamedTuple, Optional

from ..base.evidence import LONGEST, shorten
from ..base.host import Host, Result
from ..check.model import NvmlReading
from ..facts.model import Facts
from ..system import kernel_messages
from . import compute, frameworks, nvml, requirement
from . import container as containers
from .compute import ComputeResult
from .devices import ALL, unknown_devices
from .expectation import VerifyExpectation
from .nvml import NvmlAnswer

FABRIC_MANAGER = "nvidia-fabricmanager"
ABOUT_DRIVERS = re.compile(r"NVRM|nvidia|Xid|nouveau|nova|lockdown|module|vfio|Linux version", re.IGNORECASE)
NEWEST = 100
"""Lines at the end of the log: one of them has the time up to which it was read."""
VERSION = re.compile(r"(\d{3}\.\d+(?:\.\d+)?)")


class VerifyOptions(NamedTuple):
    """The variables of the role gpu_verify; ``timeout`` in seconds per container."""

    image: str
    devices: str = ALL
    timeout: float = containers.TIMEOUT
    compute: bool = True
    framework: str = frameworks.NONE
    framework_image: str = ""


class FabricManager(NamedTuple):
    """``state``: as systemctl reports it, None if it is not installed."""

    state: Optional[str] = None
    version: Optional[str] = None


class FrameworkAnswer(NamedTuple):
    """What the program of a framework printed in a container of an image."""

    image: str
    result: Result


class CollectedEvidence(NamedTuple):
    """What programs answered. Dictionaries are by engine (docker, podman, containerd), without silent ones.

    ``time``: of the host's clock, in seconds since 1970. ``smi``: path of nvidia-smi. ``log``: the kernel's, None if it
    cannot be read. ``compute`` and ``mig`` (UUIDs with MIG enabled): of the host. ``requirements``: variables of the
    image. ``persistence``: mode by UUID of the GPU; None where nobody says. ``health``: identity and condition of the
    GPUs; None where they were not asked.
    """

    nvml: NvmlAnswer
    time: int = 0
    smi: Optional[str] = None
    log: Optional[str] = None
    fabric_manager: FabricManager = FabricManager()
    persistence: Optional[Dict[str, str]] = None
    compute: Optional[ComputeResult] = None
    mig: List[str] = []
    containers: Dict[str, Result] = {}
    container_compute: Dict[str, ComputeResult] = {}
    requirements: Dict[str, Dict[str, str]] = {}
    framework: Optional[FrameworkAnswer] = None
    health: Optional[NvmlReading] = None


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


def collect(host: Host, facts: Facts, expect: VerifyExpectation, options: VerifyOptions) -> CollectedEvidence:
    """Ask NVML, the kernel, the engines and CUDA; containers are started for it."""
    answer = nvml.query(host)
    log = kernel_messages.read(host, 30.0)
    evidence = CollectedEvidence(
        answer._replace(result=shortened(answer.result)),
        time=int(time.time()),
        smi=host.which("nvidia-smi"),
        log=None if log is None else shorten_log(log),
    )
    if expect.persistence:
        evidence = evidence._replace(persistence=nvml.query_persistence(host))
    if facts.base.nvswitches:
        evidence = evidence._replace(fabric_manager=query_fabric_manager(host, facts.packages.installed))
    if options.compute and answer.gpus:
        computed = compute.run_on_host(host)
        evidence = evidence._replace(compute=computed, mig=compute.query_mig(host, computed, answer.gpus))
    if answer.gpus and unknown_devices(answer.gpus, options.devices):
        return evidence  # no container for GPUs that do not exist
    return run_containers(host, facts, evidence, expect, options)


def run_containers(
    host: Host, facts: Facts, evidence: CollectedEvidence, expect: VerifyExpectation, options: VerifyOptions
) -> CollectedEvidence:
    """Add what containers saw and computed."""
    answers: Dict[str, Result] = {}
    computed: Dict[str, ComputeResult] = {}
    requirements: Dict[str, Dict[str, str]] = {}
    framework: Optional[FrameworkAnswer] = None
    for engine in containers.available_engines(host, facts.docker.active, expect):
        args = containers.engine_args(host, engine, expect, options.devices, evidence.nvml.gpus)
        if args is None:
            continue
        answer = containers.run_in(host, engine, options.image, args, nvml.QUERY, options.timeout)
        answers[engine] = shortened(answer)
        requirements[engine] = requirement.query_environment(host, engine, options.image)
        if options.compute and nvml.smi_gpus(answer):
            command = ["python3"] + compute.program()
            result = containers.run_in(host, engine, options.image, args, command, compute.TIMEOUT)
            computed[engine] = compute.parse_result(result)
        if options.framework != frameworks.NONE and framework is None:
            image = options.framework_image or frameworks.IMAGES[options.framework]
            command = ["python3", "-c", frameworks.PROGRAMS[options.framework]]
            printed = containers.run_in(host, engine, image, args, command, options.timeout)
            framework = FrameworkAnswer(image, shortened(printed))
    return evidence._replace(
        containers=answers, container_compute=computed, requirements=requirements, framework=framework
    )


def shorten_log(log: str) -> str:
    """Return the kernel's log, of a longer one the lines about drivers and the newest ones.

    Large hosts have megabytes of it (log_buf_len grows with the CPUs), and an Xid may be anywhere.
    """
    if len(log) <= LONGEST:
        return log
    lines = log.splitlines()
    kept = [line for line in lines[:-NEWEST] if ABOUT_DRIVERS.search(line)] + lines[-NEWEST:]
    return "\n".join(kept)[-LONGEST:]


def shortened(result: Result) -> Result:
    """Return an answer without the middle of texts that are too long."""
    return Result(result.rc, shorten(result.out), shorten(result.err))
