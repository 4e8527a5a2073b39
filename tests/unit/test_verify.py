"""The verdict: a sound host passes, each defect fails with cause and remedy."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.base.evidence import LONGEST
from plugins.module_utils.gpu_ready.base.host import TIMED_OUT, OutputTooLong, Result
from plugins.module_utils.gpu_ready.check import xids
from plugins.module_utils.gpu_ready.facts import verified
from plugins.module_utils.gpu_ready.facts.model import (
    CdiSpecFacts,
    Facts,
    FunctionFacts,
    GpuFacts,
    ModuleFacts,
    ToolkitFacts,
    VerifiedFacts,
)
from plugins.module_utils.gpu_ready.verify import collect, compute, nvml
from plugins.module_utils.gpu_ready.verify import container as verify_container
from plugins.module_utils.gpu_ready.verify import devices as verify_devices
from plugins.module_utils.gpu_ready.verify.collect import FabricManager, VerifyOptions, query_fabric_manager
from plugins.module_utils.gpu_ready.verify.expectation import (
    DriverTarget,
    EnginesChoice,
    RuntimeChoice,
    VerifyExpectation,
)
from plugins.plugin_utils.gpu_ready.diagnostics import kernel_log, xid
from plugins.plugin_utils.gpu_ready.diagnostics.xid import Xid
from plugins.plugin_utils.gpu_ready.plan import verification
from plugins.plugin_utils.gpu_ready.plan.containers.cdi_spec import CDI
from plugins.plugin_utils.gpu_ready.plan.containers.daemon_json_keys import TOOLKIT
from plugins.plugin_utils.gpu_ready.plan.containers.runtime import ARGUMENTS
from plugins.plugin_utils.gpu_ready.verdict import checks, judge
from plugins.plugin_utils.gpu_ready.verdict import nvml as nvml_results
from plugins.plugin_utils.gpu_ready.verdict import outcome as verify
from plugins.plugin_utils.gpu_ready.verdict.evidence import Evidence
from plugins.plugin_utils.gpu_ready.verdict.frameworks import FrameworkResult
from tests.unit.hosts import bare, having
from tests.unit.recorded import RecordedHost

DRIVER = "580.178.04"
ADDRESSES = ["0000:3b:00.0", "0000:af:00.0"]
GPUS = [
    nvml.NvmlGpu(i, f"GPU-0000000{i}-1111-2222-3333-444444444444", "Tesla P40", a, DRIVER)
    for i, a in enumerate(ADDRESSES)
]
Change = Callable[[Evidence], Evidence]


def answer(gpus: list[nvml.NvmlGpu]) -> nvml_results.NvmlResult:
    return nvml_results.NvmlResult(True, "nvidia-smi", gpus)


def broken(code: int, output: str) -> nvml_results.NvmlResult:
    return nvml_results.failed_query("nvidia-smi", code, output)


def facts() -> Facts:
    base = {
        "boot_id": "b",
        "gpus": [GpuFacts(address, "1b38", "nvidia", "Tesla P40") for address in ADDRESSES],
    }
    driver = {
        "loaded": ModuleFacts(DRIVER, "proprietary"),
        "on_disk": ModuleFacts(DRIVER, "proprietary"),
        "userspace": [DRIVER],
    }
    runtime = {"toolkit": True, "specs": [CdiSpecFacts("/etc/cdi/gpu-ready.json")]}
    docker = {"installed": True, "active": True, "version": "26.1.5"}
    return having(bare(), base=base, driver=driver, docker=docker, runtime=runtime)


def expect(mode: str = "toolkit", version: str | None = None, branch: int = 580) -> VerifyExpectation:
    runtime = RuntimeChoice(mode, False, ARGUMENTS[CDI if mode == "native" else mode])
    return VerifyExpectation(DriverTarget(branch, version, "proprietary"), ADDRESSES, runtime)


def sound() -> Evidence:
    return Evidence(
        facts(), expect(), answer(GPUS), smi="/usr/bin/nvidia-smi", xids=[], containers={"docker": answer(GPUS)},
        cuda="13.0",
    )  # fmt: skip


def fact(path: str, value: Any) -> Change:
    """Return the change of one fact; ``path``: its names, such as driver/userspace."""
    part, *names = path.split("/")
    for name in reversed(names[1:]):
        value = {name: value}
    return lambda evidence: evidence._replace(facts=having(evidence.facts, **{part: {names[0]: value}}))


def field(**fields: Any) -> Change:
    return lambda evidence: evidence._replace(**fields)


def changed_gpu(index: int, **fields: Any) -> list[nvml.NvmlGpu]:
    return [gpu._replace(**fields) if gpu.index == index else gpu for gpu in GPUS]


def in_container(gpus: list[nvml.NvmlGpu]) -> Change:
    return field(containers={"docker": answer(gpus)})


def nvswitch(state: str | None, version: str | None) -> Change:
    add = fact("base/nvswitches", [FunctionFacts("0000:c1:00.0", "22a3", None)] * 4)
    return lambda evidence: add(evidence)._replace(fabric_manager=FabricManager(state, version))


def failing(code: int) -> compute.ComputeResult:
    return compute.ComputeResult(failed=compute.CudaError("cuInit", code, "CUDA_ERROR_X", "text"))


RED: list[tuple[str, Change, str]] = [
    ("module not loaded", fact("driver/loaded", None), "driver_module"),
    ("another branch loaded", field(expect=expect(branch=570)), "driver_version"),
    ("another version loaded", field(expect=expect(version="580.82.07")), "driver_version"),
    ("other flavour", fact("driver/loaded/flavour", "open"), "driver_flavour"),
    ("new module only on disk", fact("driver/on_disk/version", "580.200.01"), "driver_on_disk"),
    ("libraries newer than the module", fact("driver/userspace", ["595.1.1"]), "driver_userspace"),
    ("libraries of two drivers", fact("driver/userspace", ["595.1.1", DRIVER]), "driver_userspace"),
    ("no libraries", fact("driver/userspace", []), "driver_userspace"),
    ("a GPU left the PCI bus", fact("base/gpus", facts().base.gpus[:1]), "gpus_on_pci"),
    ("NVML misses a GPU", field(nvml=answer(GPUS[:1])), "gpus_on_host"),
    ("NVML does not answer", field(nvml=broken(9, "couldn't communicate with the NVIDIA driver")), "gpus_on_host"),
    ("NVML mismatch", field(nvml=broken(18, "Driver/library version mismatch")), "gpus_on_host"),
    ("NVML of another version", field(nvml=answer(changed_gpu(0, driver_version="595.1.1"))), "nvml_version"),
    ("nvidia-smi missing", field(smi=None), "nvidia_smi"),
    ("docker missing", fact("docker/installed", False), "docker"),
    ("docker down", fact("docker/active", False), "docker"),
    ("toolkit missing", fact("runtime/toolkit", False), "container_runtime"),
    ("container misses a GPU", in_container(GPUS[:1]), "gpus_in_container"),
    ("container sees no GPU", field(containers={"docker": broken(6, "No devices were found")}), "gpus_in_container"),
    ("other UUID in the container", in_container(changed_gpu(1, uuid="GPU-x")), "uuids_in_container"),
    ("other name in the container", in_container(changed_gpu(1, name="Tesla T4")), "gpu_in_container"),
    ("other driver in the container", in_container(changed_gpu(1, driver_version="595.1.1")), "gpu_in_container"),
    ("narrowed container sees all", field(devices="0"), "gpus_in_container"),
    ("fabric manager down", nvswitch("failed", DRIVER), "fabric_manager"),
    ("fabric manager missing", nvswitch(None, None), "fabric_manager"),
    ("fabric manager of another version", nvswitch("active", "580.82.07"), "fabric_manager_version"),
    ("unknown number", field(devices="0,7"), "chosen_devices"),
    ("unknown UUID", field(devices="GPU-no-such"), "chosen_devices"),
    ("CUDA does not start", field(compute=failing(803)), "compute"),
    ("fabric not set up", field(compute=failing(802)), "compute"),
    ("CUDA does not start in the container", field(container_compute={"docker": failing(999)}), "compute_in_container"),
    (
        "the framework misses a GPU",
        field(framework=FrameworkResult("pytorch", "i", 1, "2.9")),
        "framework",
    ),
    ("the framework sees none", field(framework=FrameworkResult("pytorch", "i", 0, "2.9")), "framework"),
    (
        "image for a newer driver",
        field(requirements={"docker": {"NVIDIA_REQUIRE_CUDA": "cuda>=99.0"}}),
        "image_requirement",
    ),
    ("a GPU fell off the bus", field(xids=[Xid(79, "0000:3b:00", "")]), "xid"),
]


def test_a_sound_host_is_green() -> None:
    judged = judge.judge_evidence(sound())
    assert judged.ok and checks.failure_message(judged.checks) == ""


@pytest.mark.parametrize(("change", "name"), [case[1:] for case in RED], ids=[case[0] for case in RED])
def test_each_defect_alone_fails_with_cause_and_remedy(change: Change, name: str) -> None:
    judged = judge.judge_evidence(change(sound()))
    assert not judged.ok
    red = [check for check in judged.checks if check.ok is False]
    assert name in [check.name for check in red]
    causes = checks.failure_message(judged.checks).partition(" Consequences: ")[0]
    assert name.replace("_", " ") + ": " in causes
    for check in red:
        assert check.expected and check.found and check.cause and check.remedy
        assert "\n" not in checks.describe_check(check)


@pytest.mark.parametrize("mode", ["cdi", "native"])
def test_a_stale_specification_fails(mode: str) -> None:
    evidence = sound()._replace(expect=expect(mode))
    assert judge.judge_evidence(evidence).ok
    stale = fact("runtime/specs", [CdiSpecFacts("/etc/cdi/gpu-ready.json", stale="names files of driver 570")])(
        evidence
    )
    assert "container_runtime" in [one.name for one in judge.judge_evidence(stale).checks if one.ok is False]


def test_fabric_manager_matters_with_nvswitches_only() -> None:
    assert judge.judge_evidence(sound()._replace(fabric_manager=FabricManager("failed", "1.2"))).ok
    assert judge.judge_evidence(nvswitch("active", DRIVER)(sound())).ok


@pytest.mark.parametrize("managed", ["lxc", "kernel_outside"])
def test_a_module_that_is_no_file_of_this_system_is_not_looked_for_in_it(managed: str) -> None:
    there = fact("base/managed_by", managed)(sound())
    missing = {one.name for one in judge.judge_evidence(sound()).checks}
    missing -= {one.name for one in judge.judge_evidence(there).checks}
    assert missing == {"driver_on_disk", "driver_at_boot"}


def test_gpus_of_virtual_machines_do_not_count() -> None:
    passed_through = GpuFacts("0000:d8:00.0", "1b38", "vfio-pci", "")
    evidence = fact("base/gpus", [*facts().base.gpus, passed_through])(sound())
    assert judge.judge_evidence(evidence).ok


def test_a_check_that_was_not_run_is_not_ok() -> None:
    found = {check.name: check for check in judge.judge_evidence(sound()._replace(xids=None)).checks}
    assert found["xid"].ok is None
    assert found["compute"].ok is None and found["compute"].found == "not run"


def test_the_record_has_the_reason_for_a_skipped_check() -> None:
    evidence = sound()._replace(compute=compute.ComputeResult(skipped="libcuda is a stub library"))
    judged = judge.judge_evidence(evidence)
    kept = verify.build_record(evidence, "digest", judged, 0.0, 1_800_000_000)
    assert judged.ok
    assert kept.checks["compute"] == "skipped: libcuda is a stub library"
    assert kept.checks["gpus_in_container"] == "ok"


def test_a_failed_check_is_not_hidden_by_another_of_its_name() -> None:
    rows = [checks.Check("compute", False, "a", "b"), checks.Check("compute", None, "a", "skipped: MIG")]
    assert verify.check_results(rows) == {"compute": "failed"}


@pytest.mark.parametrize(
    ("chosen", "picked"), [("all", [0, 1]), ("", [0, 1]), ("1", [1]), (" 0, 1", [0, 1]), (GPUS[1].uuid, [1])]
)
def test_chosen_devices(chosen: str, picked: list[int]) -> None:
    assert [gpu.index for gpu in verify_devices.select_gpus(GPUS, chosen)] == picked
    evidence = in_container([gpu for gpu in GPUS if gpu.index in picked])(sound())
    assert judge.judge_evidence(evidence._replace(devices=chosen)).ok


@pytest.mark.parametrize(
    ("planned", "chosen", "args"),
    [
        (None, "all", ["--gpus", "all"]),
        (ARGUMENTS[TOOLKIT], "all", ["--gpus", "all"]),
        (ARGUMENTS[TOOLKIT], "0,1", ["--gpus", '"device=0,1"']),
        (ARGUMENTS[CDI], "all", ["--device", "nvidia.com/gpu=all"]),
        (ARGUMENTS[CDI], "0,1", ["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1"]),
        (["--device", "/dev/nvidia0"], "all", ["--device", "/dev/nvidia0"]),
        (
            ["--runtime=nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=all"],
            "1",
            ["--runtime=nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=1"],
        ),
    ],
)
def test_arguments_of_the_container(planned: list[str] | None, chosen: str, args: list[str]) -> None:
    runtime = RuntimeChoice("toolkit", False, planned) if planned else None
    assert verify_devices.docker_args(VerifyExpectation(runtime=runtime), chosen) == args


def test_the_expectation_of_a_plan_is_read_as_it_was_written() -> None:
    """The role passes it through a template, which keeps the types within a mapping."""
    for written in (expect("cdi"), VerifyExpectation(), VerifyExpectation(engines=EnginesChoice("cdi", ["podman"]))):
        assert records.from_json(VerifyExpectation, json.loads(json.dumps(records.to_json(written)))) == written
    with pytest.raises(records.RecordError, match=r"VerifyExpectation\.driver has unknown field colour"):
        records.from_json(VerifyExpectation, {"driver": {"colour": "red"}})


def test_cdi_devices_are_named_by_number_where_the_host_is_known() -> None:
    """NVIDIA's generator names no UUIDs by default; the toolkit's own arguments accept both."""
    uuid = GPUS[1].uuid
    assert verify_devices.docker_args(expect("cdi"), uuid, GPUS) == ["--device", "nvidia.com/gpu=1"]
    assert verify_devices.docker_args(expect("toolkit"), uuid, GPUS) == ["--gpus", f'"device={uuid}"']
    engines = VerifyExpectation(engines=EnginesChoice("cdi", ["podman"]))
    podman = verify_container.engine_args(RecordedHost(), "podman", engines, uuid, GPUS)
    assert podman == ["--device", "nvidia.com/gpu=1"]


class OneAnswer(RecordedHost):
    """Every docker run gets one answer."""

    def __init__(self, result: Result) -> None:
        super().__init__()
        self.result = result

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        self.asked.append(tuple(argv))
        return self.result


def test_a_container_that_hangs_is_removed_by_its_name() -> None:
    host = OneAnswer(Result(TIMED_OUT, "", "docker: no answer in 5 s"))
    found = verify_container.run_in(host, "docker", "image", ["--gpus", "all"], nvml.QUERY, 5)
    assert nvml_results.from_container(found).state == "timeout"
    assert host.asked[0][:4] == ("docker", "run", "--rm", "--name")
    assert host.asked[-1] == ("docker", "rm", "--force", host.asked[0][4])


class Endless(OneAnswer):
    """A container that prints without end."""

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        super().run(argv, timeout, env)
        if argv[1] == "run":
            raise OutputTooLong("docker: it printed more than 128 MiB")
        return self.result


def test_a_container_that_prints_without_end_is_removed_by_its_name() -> None:
    host = Endless(Result(0, "", ""))
    with pytest.raises(OutputTooLong):
        verify_container.run_in(host, "docker", "image", ["--gpus", "all"], nvml.QUERY, 5)
    assert host.asked[-1] == ("docker", "rm", "--force", host.asked[0][4])


def test_docker_errors_are_explained() -> None:
    output = "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].\n\nRun 'docker run --help' for more information\n"
    found = nvml_results.from_container(Result(125, "", output))
    assert found.state == "toolkit_missing"
    assert found.message and found.message.startswith("docker: Error response")


LOADED_IMAGE = Result(0, "Loaded image: lab/verify:1\n", "")


def test_a_tarball_is_loaded_only_when_its_image_is_missing() -> None:
    present = RecordedHost(
        programs={("docker", "image", "inspect", "--format", "{{.Id}}", "n:1"): Result(0, "sha256:1\n", "")}
    )
    verify_container.load_image(present, "/x.tar", "n:1")
    assert len(present.asked) == 1
    missing = RecordedHost(
        files={"/x.tar": "x"},
        programs={
            ("docker", "image", "inspect", "--format", "{{.Id}}", "n:1"): Result(1, "", "No such image"),
            ("docker", "load", "--input", "/x.tar"): LOADED_IMAGE,
            ("docker", "tag", "lab/verify:1", "n:1"): Result(0, "", ""),
        },
    )
    verify_container.load_image(missing, "/x.tar", "n:1")
    assert missing.asked[-1] == ("docker", "tag", "lab/verify:1", "n:1")


@pytest.mark.parametrize(("before", "removed"), [("debian:13\n", True), ("debian:13\nlab/verify:1\n", False)])
def test_the_name_of_a_loaded_tarball_is_removed_unless_it_existed(before: str, removed: bool) -> None:
    remove = ("docker", "image", "rm", "lab/verify:1")
    host = RecordedHost(
        files={"/x.tar": "x"},
        programs={
            ("docker", "image", "inspect", "--format", "{{.Id}}", "n:1"): Result(1, "", "No such image"),
            ("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}"): Result(0, before, ""),
            ("docker", "load", "--input", "/x.tar"): LOADED_IMAGE,
            ("docker", "tag", "lab/verify:1", "n:1"): Result(0, "", ""),
            remove: Result(0, "", ""),
        },
    )
    verify_container.load_image(host, "/x.tar", "n:1")
    assert (remove in host.asked) == removed


def test_a_tarball_that_docker_refuses_is_an_error_with_a_remedy() -> None:
    host = RecordedHost(
        files={"/x.tar": "x"},
        programs={
            ("docker", "image", "inspect", "--format", "{{.Id}}", "n:1"): Result(1, "", "No such image"),
            ("docker", "load", "--input", "/x.tar"): Result(1, "", "invalid tar header\n"),
        },
    )
    with pytest.raises(verify_container.VerifyError, match=r"x\.tar.*invalid tar header.*docker save"):
        verify_container.load_image(host, "/x.tar", "n:1")


def test_the_verdict_without_an_engine_ignores_the_tarball() -> None:
    verify_container.load_image(RecordedHost(), "/x.tar", "n:1")


def record(ok: bool = True) -> VerifiedFacts:
    evidence = sound() if ok else sound()._replace(smi=None)
    return verify.build_record(evidence, "digest", judge.judge_evidence(evidence), 7.5, 1_800_000_000)


def test_the_record_confirms_the_verified_state(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "verified.json"
    path.parent.mkdir()
    path.write_text(json.dumps(verified.to_json(record())))
    kept = verified.collect(RecordedHost(files={verified.PATH: path.read_text()}))
    assert kept and kept == record()._replace(time=kept.time)
    assert kept.gpus == [gpu.uuid for gpu in GPUS]
    assert verification.reason_to_verify(facts()._replace(verified=kept), "digest") is None


@pytest.mark.parametrize(
    "change",
    [
        fact("base/boot_id", "another"),
        fact("driver/loaded/version", "595.1.1"),
        fact("driver/loaded", None),
        fact("driver/userspace", ["595.1.1"]),
        fact("base/gpus", facts().base.gpus[:1]),
    ],
)
def test_the_record_confirms_no_other_state(change: Change) -> None:
    assert verification.reason_to_verify(change(sound()).facts._replace(verified=record()), "digest")


def test_a_failed_record_and_another_digest_confirm_nothing() -> None:
    host_facts = facts()
    assert verification.reason_to_verify(host_facts._replace(verified=record()), "other")
    failed = record(ok=False)
    assert failed.result == "failed" and failed.reasons
    assert "nvidia-smi" in str(verification.reason_to_verify(host_facts._replace(verified=failed), "digest"))
    assert verification.reason_to_verify(host_facts._replace(verified=None), "digest")


@pytest.mark.parametrize("text", ["", "garbage", "[]", "{}", '{"schema": 99}', json.dumps("x")])
def test_a_damaged_record_is_no_record(text: str) -> None:
    assert verified.collect(RecordedHost(files={verified.PATH: text})) is None


# ---- the kernel's log explains ----------------------------------------------------------------------------------------

STARTED = "[9.0] nvidia-nvlink: Nvlink Core is being initialized, major device number 509\n"


@pytest.mark.parametrize(
    ("message", "ok"),
    [
        ("NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9)", False),
        ("NVRM: Xid (PCI:0000:3b:00 GPU-I:01 GPU-CI:02): 48, pid=7, DBE", False),
        ("NVRM: Xid (PCI:0000:3b:00 GPU-I:05): 13, pid=7194, name=a, Graphics Exception", True),
        ("nvidia-nvswitch0: SXid (PCI:0000:04:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", False),
        ("nvidia-nvswitch0: SXid (PCI:0000:04:00.0): 22013, Non-fatal, Link 44 Minion Link DLREQ interrupt", True),
        ("NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)", False),
        ("NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", True),
        ("NVRM: Xid (PCI:0000:3b:00): 62, pid='<unknown>', name=<unknown>, 0000(0000) 00000000 00000000", False),
        ("NVRM: Xid (PCI:0000:3b:00): 63, Row Remapper: New row marked for remapping, reset gpu to activate.", True),
        ("NVRM: Xid (PCI:0000:3b:00): 149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00086226 0x1)", True),
        ("NVRM: Xid (PCI:0000:3b:00): 45, pid=1, name=a, Ch 1 caused by previous Xid 149", False),
    ],
)  # fmt: skip
def test_a_serious_message_of_the_kernel_is_red(message: str, ok: bool) -> None:
    serious = xid.serious_xids(xid.parse_xids(STARTED + "[9.1] " + message))
    (check,) = [one for one in judge.judge_evidence(sound()._replace(xids=serious)).checks if one.name == "xid"]
    assert check.ok is ok
    assert ok or ("SXid" in message or "0000:3b:00" in check.found) and check.remedy


@pytest.mark.parametrize(
    ("change", "log", "words"),
    [
        (
            fact("driver/loaded", None),
            "[9.1] Loading of module with unavailable key is rejected\n",
            ["is not loaded", "Secure Boot", "mokutil --import"],
        ),
        (
            field(nvml=broken(6, "No devices were found")),
            STARTED + "[9.1] NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:1b38)\n[9.1] NVRM: installed in this system is"
            " not supported by open\n[9.1] NVRM: nvidia.ko because it does not include the required GPU\n",
            ["could not start any GPU", "open kernel module does not support", "0000:3b:00.0", "proprietary"],
        ),
        (
            field(nvml=answer(GPUS[:1])),
            STARTED + "[9.1] NVRM: GPU 0000:af:00.0: RmInitAdapter failed! (0x26:0x56:1482)\n",
            ["could not start 0000:af:00.0", "RmInitAdapter failed"],
        ),
        (
            field(nvml=broken(6, "No devices were found")),
            "[1.0] NVRM: GPU 0000:af:00.0: RmInitAdapter failed! (0x1)\n" + STARTED + "[9.1] NVRM: loading NVIDIA UNIX x\n",
            ["could not start any GPU", "dmesg | grep NVRM"],
        ),
        (
            field(nvml=broken(9, "couldn't communicate with the NVIDIA driver")),
            STARTED + "[9.2] NVRM: Xid (PCI:0000:3b:00): 31, pid=9, name=train\n",
            ["module is loaded, but", "device nodes", "nvidia-modprobe -u"],
        ),
    ],
)  # fmt: skip
def test_the_kernels_log_explains_a_failed_verification(change: Change, log: str, words: list[str]) -> None:
    evidence = change(sound())._replace(kernel=kernel_log.explain_start(log))
    red = [check for check in judge.judge_evidence(evidence).checks if check.ok is False]
    text = checks.failure_message(red)
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    ("left", "words"),
    [([], "0000:3b:00.0 and 0000:af:00.0, of which"), (facts().base.gpus[:1], "0000:af:00.0, of which")],
)
def test_gpus_that_only_nvml_shows_are_named(left: list[GpuFacts], words: str) -> None:
    """Sandboxes and containers hide the PCI bus: the driver has started these GPUs."""
    evidence = fact("base/gpus", left)(sound())
    judged = judge.judge_evidence(evidence._replace(expect=expect()._replace(gpus=[])))
    (check,) = [one for one in judged.checks if one.name == "gpus_on_host" and one.ok is False]
    assert words in check.cause and "container" in check.remedy and "could not start" not in check.cause


def test_a_host_without_any_gpu_is_not_verified() -> None:
    evidence = fact("base/gpus", [])(sound())._replace(nvml=answer([]), expect=expect()._replace(gpus=[]))
    judged = judge.judge_evidence(in_container([])(evidence))
    assert not judged.ok
    assert "no NVIDIA GPU" in checks.failure_message(judged.checks)


def test_an_xid_anywhere_in_a_long_log_is_collected() -> None:
    """A host with hundreds of CPUs has megabytes of log."""
    noise = [
        f"[{number}.000000] docker0: port {number}(veth{number:040d}) entered blocking state" for number in range(24000)
    ]
    noise[12000] = "[12000.000000] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
    log = "\n".join(noise) + "\n"
    kept = collect.shorten_log(log)
    assert len(log) > LONGEST >= len(kept)
    assert [one.number for one in xid.parse_xids(kept, 0.0)] == [79]
    assert xids.newest(kept) == xids.newest(log) == 23999.0
    assert collect.shorten_log("short\n") == "short\n"


# ---- the whole verification -----------------------------------------------------------------------------------------

SMI = "0, GPU-1, Tesla T4, 00000000:3B:00.0, 580.95.05\n"


@pytest.mark.parametrize(("asked", "usable", "computes"), [(True, True, 1), (False, True, 0), (True, False, 0)])
def test_a_computation_is_made_only_where_it_is_asked_for_and_the_gpus_answer(
    asked: bool, usable: bool, computes: int
) -> None:
    """gpu_verify_compute: false is for GPUs that a long job uses exclusively."""
    smi = Result(0, SMI, "") if usable else Result(9, "", "NVIDIA-SMI has failed")
    host = RecordedHost(programs={tuple(nvml.QUERY): smi})
    done = verify.verify(host, expect(), "digest", VerifyOptions("image", compute=asked))
    made = [argv for argv in host.asked if [*argv[1:]] == compute.program()]
    assert len(made) == computes
    assert (done.evidence.compute is None) is not bool(computes)
    assert done.record.digest == "digest" and not done.verdict.ok


@pytest.mark.parametrize(
    ("mode", "failing", "start"), [("toolkit", False, 7.5), ("toolkit", True, None), ("cdi", False, None)]
)
def test_the_record_names_the_dockerd_whose_gpus_option_worked(mode: str, failing: bool, start: float | None) -> None:
    evidence = fact("docker/started", 7.5)(sound())._replace(expect=expect(mode))
    evidence = in_container(GPUS[:1])(evidence) if failing else evidence
    kept = verify.build_record(evidence, "digest", judge.judge_evidence(evidence), 7.5, 1_800_000_000)
    assert kept.gpus_option_with == start


@pytest.mark.parametrize(
    ("printed", "words"), [("", r"\(no output\)"), ("volume is missing\n", r"\(volume is missing\)")]
)
def test_a_helper_that_fails_is_named_with_what_it_printed(printed: str, words: str) -> None:
    helper = "/usr/local/bin/gpu-docker-args"
    desired = expect("native")
    assert desired.runtime is not None
    desired = desired._replace(runtime=desired.runtime._replace(helper=helper))
    host = RecordedHost(programs={(helper, "all"): Result(1, "", printed)})
    with pytest.raises(verify_container.VerifyError, match=rf"{helper}: it printed no arguments for docker {words}"):
        verify_container.docker_args(host, desired, "all", GPUS)


def test_what_a_verification_adds_to_the_report() -> None:
    host = RecordedHost(programs={tuple(nvml.QUERY): Result(0, SMI, "")})
    done = verify.verify(host, expect(), "digest", VerifyOptions("image", compute=False))
    toolkits = [ToolkitFacts(version, f"/usr/local/cuda-{version}", None, "package") for version in ("12.4", "12.9")]
    known = having(facts(), driver={"userspace": ["580.95.05", "580.82.07"]}, cuda={"toolkits": toolkits})
    done = done._replace(evidence=done.evidence._replace(facts=known))
    row = verify.report_row(done)
    assert (row["cuda"], row["driver_userspace"], row["docker_runtime"]) == (
        "12.4, 12.9",
        "580.95.05, 580.82.07",
        "toolkit",
    )
    assert (row["verified"], row["why"]) == (None, "; ".join(done.record.reasons)) and row["why"]
    passed = done._replace(verdict=done.verdict._replace(ok=True))
    assert (verify.report_row(passed)["verified"], verify.report_row(passed)["why"]) == (done.record.time, "verified")
    empty = having(known, driver={"userspace": [], "on_disk": None, "loaded": None}, cuda={"toolkits": []})
    row = verify.report_row(done._replace(evidence=done.evidence._replace(facts=empty)))
    names = ("cuda", "cudnn", "driver_installed", "driver_loaded", "driver_userspace")
    assert [row[name] for name in names] == [None] * 5
    entry = verify.report_entry(done)
    assert entry["ok"] is False and entry["container"] is None and len(entry["checks"]) == len(done.verdict.checks)  # type: ignore[arg-type]
    assert entry["not_run"] == [check.name for check in done.verdict.checks if check.ok is None]


@pytest.mark.parametrize(
    ("state", "program", "installed", "expected"),
    [
        ("active", "Fabric Manager version is : 580.95.05\n", {}, ("active", "580.95.05")),
        ("active", None, {"nvidia-fabricmanager-580": "580.95.05-0ubuntu1"}, ("active", "580.95.05")),
        ("active", None, {"nvidia-fabricmanager": "580.95.05-1", "nvidia-utils": "1.1.1"}, ("active", "580.95.05")),
        ("active", None, {}, ("active", None)),
        ("inactive", "Fabric Manager version is : 580.95.05\n", {}, ("inactive", "580.95.05")),
        ("inactive", None, {"libnvidia-fabricmanager": "1.2.3"}, (None, None)),
    ],
)
def test_the_fabric_manager_is_asked_for_its_state_and_version(
    state: str, program: str | None, installed: dict[str, str], expected: tuple[str | None, str | None]
) -> None:
    path = "/usr/bin/nv-fabricmanager"
    programs: dict[tuple[str, ...], Result] = {
        ("systemctl", "is-active", "nvidia-fabricmanager"): Result(0, state + "\n", "")
    }
    if program is not None:
        programs[path, "--version"] = Result(0, program, "")
    host = RecordedHost(files={path: ""} if program is not None else {}, programs=programs)
    assert query_fabric_manager(host, installed) == FabricManager(*expected)
