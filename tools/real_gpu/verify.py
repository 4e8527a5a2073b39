"""Part `verify`: the checks of gpu_verify that need no container engine. Writes no record on the host."""

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.check import worker
from plugins.module_utils.gpu_ready.verify import nvml
from plugins.module_utils.gpu_ready.verify.collect import VerifyOptions
from plugins.module_utils.gpu_ready.verify.expectation import EnginesChoice, VerifyExpectation
from plugins.plugin_utils.gpu_ready.verdict import nvml as nvml_results
from plugins.plugin_utils.gpu_ready.verdict import outcome
from plugins.plugin_utils.gpu_ready.verdict.checks import describe_check
from tools.real_gpu import part

NO_ENGINE = VerifyExpectation(engines=EnginesChoice("", []))


class Gpu(NamedTuple):
    """One GPU, as one source reports it."""

    uuid: str
    name: str
    address: str
    driver: str


def differences(sources: Mapping[str, Sequence[Gpu]], module: str | None) -> list[str]:
    """Where the sources disagree with the first of them, or one of them with the loaded module."""
    found = []
    names = list(sources)
    for name in names[1:]:
        if list(sources[name]) != list(sources[names[0]]):
            found.append(f"{name} reports {shown(sources[name])}, {names[0]} {shown(sources[names[0]])}")
    for name, gpus in sources.items():
        found += [f"{name} reports driver {gpu.driver}, the module is {module}" for gpu in gpus if gpu.driver != module]
    return found


def shown(gpus: Sequence[Gpu]) -> str:
    return ", ".join(" ".join(gpu) for gpu in gpus) or "no GPU"


def of_smi(rows: Sequence[nvml.NvmlGpu]) -> list[Gpu]:
    return [Gpu(row.uuid, row.name, row.bus_id, row.driver_version) for row in rows]


def main() -> str:
    host = Host()
    part.need_gpu(host)
    done = outcome.verify(host, NO_ENGINE, "", VerifyOptions(image=""))
    sample = worker.Worker().sample()
    sources = {
        done.evidence.nvml.how: of_smi(done.evidence.nvml.gpus),
        "nvidia-smi": of_smi(nvml_results.from_smi(host.run(nvml.QUERY, timeout=nvml.TIMEOUT)).gpus),
        "the metrics program": [
            Gpu(gpu["uuid"], gpu["name"], gpu["pci"], sample["driver"])
            for gpu in sample.get("gpus", [])
            if not gpu["error"]
        ],
    }
    loaded = done.evidence.facts.driver.loaded
    different = differences(sources, loaded.version if loaded else None)
    entry = dict(outcome.report_entry(done), sources=sources, differences=different, nvml_sample=sample)
    (part.own_directory("verify") / "verify.json").write_text(json.dumps(entry, indent=1, default=str))
    checks = done.verdict.checks
    for check in checks:
        print(f"{'not run' if check.ok is None else 'ok' if check.ok else 'FAILED':8}{describe_check(check)}")
    failed = [check.name for check in checks if check.ok is False]
    print("\n".join(different))
    if failed or different:
        raise part.FailedError("; ".join([f"{', '.join(failed)} failed"] * bool(failed) + different))
    skipped = [check.name for check in checks if check.ok is None]
    passed = f"{sum(check.ok is True for check in checks)} checks passed, {len(sources)} sources agree"
    return passed + (f"; not run: {', '.join(skipped)}" if skipped else "")


if __name__ == "__main__":
    part.run(main)
