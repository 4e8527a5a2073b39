"""Everything that a verification collected on a host, interpreted for judge.py."""

from typing import NamedTuple

from ....module_utils.gpu_ready.check.model import NvmlReading
from ....module_utils.gpu_ready.facts.model import Facts, VerifiedFacts
from ....module_utils.gpu_ready.facts.probes import Probes
from ....module_utils.gpu_ready.verify.collect import CollectedEvidence, FabricManager, VerifyOptions
from ....module_utils.gpu_ready.verify.compute import ComputeResult
from ....module_utils.gpu_ready.verify.devices import ALL
from ....module_utils.gpu_ready.verify.expectation import VerifyExpectation
from ..diagnostics import kernel_log, xid
from ..diagnostics.message_table import Explanation
from ..diagnostics.xid import Xid
from . import nvml
from .frameworks import FrameworkResult, parse_result
from .nvml import NvmlResult


class Evidence(NamedTuple):
    """Dictionaries are by engine (docker, podman, containerd); an engine without a container has no entry.

    ``devices``: gpu_verify_devices. ``compute`` and ``mig``: of the host. ``requirements``: variables of the image.
    ``xids``: serious ones that are new; None if the kernel's log cannot be read. ``kernel``: that log's message
    about the driver's last start. ``persistence``: mode by UUID of the GPU; None where nobody says.
    ``cuda``: version of the libcuda of the loaded driver's branch. ``health``: identity and condition by NVML.
    """

    facts: Facts
    expect: VerifyExpectation
    nvml: NvmlResult
    smi: str | None = None
    devices: str = ALL
    fabric_manager: FabricManager = FabricManager()
    xids: list[Xid] | None = None
    kernel: Explanation | None = None
    compute: ComputeResult | None = None
    mig: list[str] = []
    containers: dict[str, NvmlResult] = {}
    container_compute: dict[str, ComputeResult] = {}
    requirements: dict[str, dict[str, str]] = {}
    framework: FrameworkResult | None = None
    persistence: dict[str, str] | None = None
    cuda: str | None = None
    health: NvmlReading | None = None


def interpret(
    facts: Facts, collected: CollectedEvidence, expect: VerifyExpectation, options: VerifyOptions, probes: Probes
) -> Evidence:
    """Return what the answers of a host's programs mean."""
    log, framework, loaded = collected.log, collected.framework, facts.driver.loaded
    before = logged_before(facts.verified, facts.base.boot_id)
    return Evidence(
        facts,
        expect,
        nvml.from_host(collected.nvml),
        smi=collected.smi,
        devices=options.devices,
        fabric_manager=collected.fabric_manager,
        xids=None if log is None else xid.serious_xids(xid.parse_xids(log, before)),
        kernel=kernel_log.explain_start(log or ""),
        compute=collected.compute,
        mig=collected.mig,
        containers={engine: nvml.from_container(result) for engine, result in collected.containers.items()},
        container_compute=collected.container_compute,
        requirements=collected.requirements,
        framework=parse_result(options.framework, framework.image, framework.result) if framework else None,
        persistence=collected.persistence,
        cuda=probes.cuda.get(loaded.version.partition(".")[0]) if loaded else None,
        health=collected.health,
    )


def logged_before(record: VerifiedFacts | None, boot_id: str | None) -> float:
    """Up to where an earlier successful verification of this boot has read the kernel's log."""
    return record.logged if record and record.boot_id == boot_id else 0.0
