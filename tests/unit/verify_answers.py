"""What honest hosts answer to gpu_verify."""

from typing import Any

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.facts import model
from plugins.module_utils.gpu_ready.verify.collect import CollectedEvidence
from plugins.module_utils.gpu_ready.verify.nvml import SMI, NvmlAnswer
from tests.unit.hosts import as_collected


def smi_answer(facts: model.Facts) -> Result:
    """What nvidia-smi prints on a host on which all GPUs answer."""
    version = facts.driver.loaded.version if facts.driver.loaded else ""
    rows = [
        f"{index}, GPU-{index:08d}-0000-0000-0000-000000000000, {gpu.name}, 0000{gpu.address}, {version}\n"
        for index, gpu in enumerate(facts.base.gpus)
    ]
    return Result(0, "".join(rows), "")


def collected_evidence(facts: model.Facts) -> CollectedEvidence:
    """What the programs of a host answer where nothing is wrong; CUDA was not asked."""
    answer = smi_answer(facts)
    return CollectedEvidence(
        NvmlAnswer(SMI, answer),
        1_800_000_000,
        "/usr/bin/nvidia-smi",
        log="",
        persistence={},
        containers={"docker": answer},
    )


def collected_verification(facts: model.Facts, evidence: CollectedEvidence | None = None) -> dict[str, Any]:
    """What gpu_verify really answers on a host with these facts."""
    found = records.to_json(evidence or collected_evidence(facts))
    return {"changed": True, "facts": model.to_json(as_collected(facts)), "evidence": found}
