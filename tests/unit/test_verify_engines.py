"""The verification of podman and containerd: what is started for each mode, and what makes it red."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.containers import cdi, cdi_build
from plugins.module_utils.gpu_ready.facts.model import CdiSpecFacts
from plugins.module_utils.gpu_ready.verify import container as verify_container
from plugins.module_utils.gpu_ready.verify import nvml
from plugins.module_utils.gpu_ready.verify.expectation import EnginesChoice, VerifyExpectation
from plugins.plugin_utils.gpu_ready.verdict import judge
from plugins.plugin_utils.gpu_ready.verdict import nvml as nvml_results
from plugins.plugin_utils.gpu_ready.verdict.evidence import Evidence
from tests.unit.hosts import bare, having
from tests.unit.recorded import RecordedHost

DRIVER = cdi.DriverFiles(
    "580.1", (cdi.DriverLibrary("/lib/libcuda.so.580.1", ("libcuda.so.1",)),), {}, ("/dev/nvidiactl",)
)
OURS = cdi_build.build_spec(DRIVER, [cdi.CdiGpu(0, "/dev/nvidia0", None)])
GPUS = [
    nvml.NvmlGpu(0, "GPU-a", "L40S", "0000:3b:00.0", "580.1"),
    nvml.NvmlGpu(1, "GPU-b", "L40S", "0000:af:00.0", "580.1"),
]
THERE = {"/usr/bin/ctr": "", "/usr/bin/podman": "", "/usr/bin/containerd": ""}


def expect(mode: str, *names: str) -> VerifyExpectation:
    return VerifyExpectation(engines=EnginesChoice(mode, list(names)))


def started(mode: str, version: str, files: Any = None, devices: str = "all") -> list[str]:
    """The containers that are started on a host with podman and containerd, as command lines."""
    answers: dict[tuple[str, ...], Result] = {
        ("/usr/bin/containerd", "--version"): Result(0, f"containerd x v{version} y\n", "")
    }
    host = RecordedHost({**THERE, **(files or {})}, programs=answers)
    expected = expect(mode, "podman", "containerd")
    for engine in verify_container.available_engines(host, False, expected):
        args = verify_container.engine_args(host, engine, expected, devices, GPUS)
        if args is not None:
            verify_container.run_in(host, engine, "x/y:1", args, ["nvidia-smi"], 5.0)
    return [" ".join(argv) for argv in host.asked if "run" in argv]


@pytest.mark.parametrize("version", ["1.6.20", "2.1.9"])
def test_by_the_toolkit(version: str) -> None:
    podman, ctr = started("toolkit", version, devices="1")
    assert "--device nvidia.com/gpu=1 docker.io/x/y:1" in podman
    assert "--runc-binary /usr/bin/nvidia-container-runtime --env NVIDIA_VISIBLE_DEVICES=1 docker.io/x/y:1" in ctr


def test_by_cdi() -> None:
    podman, ctr = started("cdi", "2.1.9")
    assert "--device nvidia.com/gpu=all docker.io/x/y:1" in podman and "--device nvidia.com/gpu=all docker.io" in ctr


def test_an_old_ctr_is_passed_the_own_specification_only() -> None:
    _, ctr = started("native", "1.7.24", {cdi.NATIVE: OURS})
    assert "--device /dev/nvidiactl" in ctr and "nvidia.com/gpu" not in ctr
    (podman,) = started("cdi", "1.7.24")
    assert podman.startswith("podman run")


def evidence(mode: str, name: str, **more: Any) -> Evidence:
    engine = {"installed": True, **({"active": True} if name == "containerd" else {}), **more.pop("engine", {})}
    runtime = {"programs": {"nvidia-container-runtime": "/usr/bin/x"}, "specs": [CdiSpecFacts(cdi.NATIVE)], **more}
    facts = having(bare(), engines={name: engine}, runtime=runtime)
    return Evidence(facts, expect(mode, name), nvml_results.NvmlResult(True, "pynvml", GPUS))


@pytest.mark.parametrize(
    ("mode", "name", "more", "red"),
    [
        ("toolkit", "podman", {}, []),
        ("toolkit", "podman", {"specs": []}, ["cdi_for_podman"]),
        ("cdi", "podman", {"specs": [{"path": "/x", "stale": "old"}]}, ["cdi_for_podman"]),
        ("cdi", "podman", {"engine": {"installed": False}}, ["podman"]),
        ("toolkit", "containerd", {"specs": []}, []),
        ("toolkit", "containerd", {"programs": {}}, ["runtime_for_containerd"]),
        ("native", "containerd", {"specs": []}, ["cdi_for_containerd"]),
        ("native", "containerd", {"engine": {"active": False}}, ["containerd"]),
    ],
)
def test_what_the_engine_needs(mode: str, name: str, more: Any, red: list[str]) -> None:
    checks = judge.check_engine(evidence(mode, name, **more), name)
    assert [check.name for check in checks if check.ok is False] == red
    assert all(check.cause and check.remedy for check in checks if check.ok is False)


class Importing(RecordedHost):
    """A host whose ctr lists one more image after an import, and prints its name as ctr 2 does."""

    def run(self, argv: list[str], timeout: float = 30.0, env: Any = None) -> Result:
        before = [words for words in self.asked if "import" in words]
        self.asked.append(tuple(argv))
        if "import" in argv:
            return Result(
                0, "docker.io/lab image/verify:1  saved\napplication/vnd.oci sha256:0f\nImporting elapsed: 1 s\n", ""
            )
        names = ["docker.io/other:1"] + ["docker.io/lab-image/verify:1"] * bool(before)
        return Result(0, "" if "name==docker.io/x/y:1" in argv else "\n".join(names), "")


def test_an_image_that_ctr_2_imports_is_found_and_its_own_name_removed() -> None:
    host = Importing({"/x.tar": ""})
    verify_container.load_image(host, "/x.tar", "x/y:1", engine="containerd")
    output = [" ".join(words[4:]) for words in host.asked]
    assert "tag --force docker.io/lab-image/verify:1 docker.io/x/y:1" in output
    assert output[-1] == "remove docker.io/lab-image/verify:1"


def test_crio_is_asked_for_no_image() -> None:
    """Its program starts the daemon; it has no commands for images."""
    host = RecordedHost({"/x.tar": ""})
    verify_container.load_image(host, "/x.tar", "x/y:1", engine="crio")
    assert host.asked == []
