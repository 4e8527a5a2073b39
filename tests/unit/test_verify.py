"""The verdict: green for a sound host, red for each thing that can be wrong, with a sentence that says what helps."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gpu_ready.base.host import TIMED_OUT, Result
from gpu_ready.diagnostics import kernel_log
from gpu_ready.facts import verified
from gpu_ready.plan import verification
from gpu_ready.verify import checks, compute, frameworks, nvml, verdict
from gpu_ready.verify import container as verify_container
from gpu_ready.verify import devices as verify_devices
from gpu_ready.verify import run as verify

from tests.unit.recorded import RecordedHost

DRIVER = "580.178.04"
ADDRESSES = ["0000:3b:00.0", "0000:af:00.0"]
GPUS = [
    {
        "index": i,
        "uuid": f"GPU-0000000{i}-1111-2222-3333-444444444444",
        "name": "Tesla P40",
        "bus_id": a,
        "driver_version": DRIVER,
    }
    for i, a in enumerate(ADDRESSES)
]
World = dict[str, Any]


def answer(gpus: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "usable": True,
        "how": "nvidia-smi",
        "gpus": copy.deepcopy(gpus),
        "state": None,
        "said": None,
        "cause": None,
        "remedy": None,
    }


def broken(code: int, said: str) -> dict[str, Any]:
    return nvml.as_dict(nvml.failed("nvidia-smi", code, said))


def sound() -> World:
    return copy.deepcopy(
        {
            "observed": {
                "base": {
                    "boot_id": "b",
                    "gpus": [
                        {"address": a, "device": "1b38", "driver": "nvidia", "name": "Tesla P40"} for a in ADDRESSES
                    ],
                    "nvswitches": [],
                },
                "driver": {
                    "loaded": {"version": DRIVER, "flavour": "proprietary"},
                    "on_disk": {"version": DRIVER, "flavour": "proprietary"},
                    "userspace": [DRIVER],
                },
                "docker": {"installed": True, "active": True, "version": "26.1.5"},
                "runtime": {"toolkit": True, "specs": [{"path": "/etc/cdi/gpu-ready.json", "stale": None}]},
            },
            "expect": {
                "driver": {"branch": 580, "version": None, "flavour": "proprietary"},
                "gpus": ADDRESSES,
                "runtime": {"mode": "toolkit"},
            },
            "smi": "/usr/bin/nvidia-smi",
            "nvml": answer(GPUS),
            "container": answer(GPUS),
            "chosen": "all",
            "fabricmanager": None,
            "xids": [],
        }
    )


def nvswitch(world: World, active: str | None, version: str | None) -> None:
    world["observed"]["base"]["nvswitches"] = [{"address": "0000:c1:00.0"}] * 4
    world["fabricmanager"] = {"active": active, "version": version}


def put(path: str, value: Any) -> Callable[[World], None]:
    def change(world: World) -> None:
        *way, last = path.split("/")
        place: Any = world
        for key in way:
            place = place[int(key)] if isinstance(place, list) else place[key]
        if isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value

    return change


def failing(code: int) -> compute.Answer:
    return compute.Answer(failed={"call": "cuInit", "code": code, "name": "CUDA_ERROR_X", "text": "text"})


RED: list[tuple[str, Callable[[World], None], str]] = [
    ("module not loaded", put("observed/driver/loaded", None), "driver_module"),
    ("another branch loaded", put("expect/driver/branch", 570), "driver_version"),
    ("another version loaded", put("expect/driver/version", "580.82.07"), "driver_version"),
    ("other flavour", put("observed/driver/loaded/flavour", "open"), "driver_flavour"),
    ("new module only on disk", put("observed/driver/on_disk/version", "580.200.01"), "driver_on_disk"),
    ("libraries newer than the module", put("observed/driver/userspace", ["595.1.1"]), "driver_userspace"),
    ("libraries of two drivers", put("observed/driver/userspace", ["595.1.1", DRIVER]), "driver_userspace"),
    ("no libraries", put("observed/driver/userspace", []), "driver_userspace"),
    ("a GPU left the PCI bus", lambda w: w["observed"]["base"]["gpus"].pop(), "gpus_on_pci"),
    ("NVML misses a GPU", lambda w: w["nvml"]["gpus"].pop(), "gpus_on_host"),
    ("NVML does not answer", put("nvml", broken(9, "couldn't communicate with the NVIDIA driver")), "gpus_on_host"),
    ("NVML mismatch", put("nvml", broken(18, "Driver/library version mismatch")), "gpus_on_host"),
    ("NVML of another version", put("nvml/gpus/0/driver_version", "595.1.1"), "nvml_version"),
    ("nvidia-smi missing", put("smi", None), "nvidia_smi"),
    ("docker missing", put("observed/docker/installed", False), "docker"),
    ("docker down", put("observed/docker/active", False), "docker"),
    ("toolkit missing", put("observed/runtime/toolkit", False), "container_runtime"),
    ("container misses a GPU", lambda w: w["container"]["gpus"].pop(), "gpus_in_container"),
    ("container sees no GPU", put("container", broken(6, "No devices were found")), "gpus_in_container"),
    ("other UUID in the container", put("container/gpus/1/uuid", "GPU-x"), "uuids_in_container"),
    ("other name in the container", put("container/gpus/1/name", "Tesla T4"), "gpu_in_container"),
    ("other driver in the container", put("container/gpus/1/driver_version", "595.1.1"), "gpu_in_container"),
    ("narrowed container sees all", put("chosen", "0"), "gpus_in_container"),
    ("fabric manager down", lambda w: nvswitch(w, "failed", DRIVER), "fabric_manager"),
    ("fabric manager missing", lambda w: nvswitch(w, None, None), "fabric_manager"),
    ("fabric manager of another version", lambda w: nvswitch(w, "active", "580.82.07"), "fabric_manager_version"),
    ("unknown number", put("chosen", "0,7"), "chosen_devices"),
    ("unknown UUID", put("chosen", "GPU-no-such"), "chosen_devices"),
    ("CUDA does not start", put("compute", failing(803)), "compute"),
    ("fabric not set up", put("compute", failing(802)), "compute"),
    ("CUDA does not start in the container", put("computed", {"docker": failing(999)}), "compute_in_container"),
    ("the framework misses a GPU", put("framework", frameworks.Answer("pytorch", "i", 1, "2.9")), "framework"),
    ("the framework sees none", put("framework", frameworks.Answer("pytorch", "i", 0, "2.9")), "framework"),
    (
        "image for a newer driver",
        put("requirements", {"docker": {"NVIDIA_REQUIRE_CUDA": "cuda>=99.0"}}),
        "image_requirement",
    ),
    ("a GPU fell off the bus", put("xids", [{"number": 79, "address": "0000:3b:00", "text": ""}]), "xid"),
]


def test_a_sound_host_is_green() -> None:
    judged = verdict.verdict(sound())
    assert judged.ok, checks.reasons(judged.checks)
    assert checks.reasons(judged.checks) == []


@pytest.mark.parametrize(("change", "name"), [case[1:] for case in RED], ids=[case[0] for case in RED])
def test_each_defect_alone_makes_it_red_and_says_what_helps(change: Callable[[World], None], name: str) -> None:
    world = sound()
    change(world)
    judged = verdict.verdict(world)
    assert not judged.ok
    red = [check for check in judged.checks if check.ok is False]
    assert name in [check.name for check in red]
    for check in red:
        assert check.expected and check.found and check.cause and check.remedy
        assert "\n" not in checks.sentence(check)


@pytest.mark.parametrize("mode", ["cdi", "native"])
def test_a_stale_specification_is_red(mode: str) -> None:
    world = sound()
    world["expect"]["runtime"]["mode"] = mode
    assert verdict.verdict(world).ok
    world["observed"]["runtime"]["specs"][0]["stale"] = "names files of driver 570"
    assert "container_runtime" in [check.name for check in verdict.verdict(world).checks if check.ok is False]


def test_fabric_manager_is_green_with_the_drivers_version_and_of_no_interest_elsewhere() -> None:
    world = sound()
    world["fabricmanager"] = {"active": "failed", "version": "1.2"}
    assert verdict.verdict(world).ok
    nvswitch(world, "active", DRIVER)
    assert verdict.verdict(world).ok


def test_gpus_of_virtual_machines_do_not_count() -> None:
    world = sound()
    world["observed"]["base"]["gpus"].append(
        {"address": "0000:d8:00.0", "device": "1b38", "driver": "vfio-pci", "name": ""}
    )
    assert verdict.verdict(world).ok


def test_what_was_not_looked_at_is_said_and_not_called_good() -> None:
    world = sound()
    world["xids"] = None
    found = {check.name: check for check in verdict.verdict(world).checks}
    assert found["xid"].ok is None
    assert found["compute"].ok is None and found["compute"].found == "not run"


def test_the_record_says_why_a_check_was_left_out() -> None:
    world = sound()
    world["compute"] = compute.Answer(skipped="libcuda is a stub library")
    judged = verdict.verdict(world)
    kept = verify.record(world["observed"], world["nvml"], world["expect"], "digest", judged, {})
    assert judged.ok
    assert kept["checks"]["compute"] == "skipped: libcuda is a stub library"
    assert kept["checks"]["gpus_in_container"] == "ok"


def test_a_red_check_is_not_hidden_by_another_of_its_name() -> None:
    rows = [checks.Check("compute", False, "a", "b"), checks.Check("compute", None, "a", "skipped: MIG")]
    assert verify.words(rows) == {"compute": "red"}


@pytest.mark.parametrize(
    ("chosen", "picked"), [("all", [0, 1]), ("", [0, 1]), ("1", [1]), (" 0, 1", [0, 1]), (GPUS[1]["uuid"], [1])]
)
def test_chosen_devices(chosen: str, picked: list[int]) -> None:
    assert [gpu["index"] for gpu in verify_devices.pick(GPUS, chosen)] == picked
    world = sound()
    world["chosen"] = chosen
    world["container"]["gpus"] = [gpu for gpu in GPUS if gpu["index"] in picked]
    assert verdict.verdict(world).ok


@pytest.mark.parametrize(
    ("runtime", "chosen", "args"),
    [
        ({"mode": "toolkit"}, "all", ["--gpus", "all"]),
        ({"mode": "toolkit"}, "0,1", ["--gpus", '"device=0,1"']),
        ({"mode": "cdi"}, "all", ["--device", "nvidia.com/gpu=all"]),
        ({"mode": "native"}, "0,1", ["--device", "nvidia.com/gpu=0", "--device", "nvidia.com/gpu=1"]),
        ({"args": ["--device", "/dev/nvidia0"]}, "all", ["--device", "/dev/nvidia0"]),
        (
            {"args": ["--runtime=nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=all"]},
            "1",
            ["--runtime=nvidia", "-e", "NVIDIA_VISIBLE_DEVICES=1"],
        ),
    ],
)
def test_arguments_of_the_container(runtime: dict[str, Any], chosen: str, args: list[str]) -> None:
    assert verify_devices.run_args({"runtime": runtime}, chosen) == args


def test_cdi_devices_are_named_by_number_where_the_host_is_known() -> None:
    """NVIDIA's generator names no UUIDs unless told to; the toolkit's own arguments take both."""
    uuid = GPUS[1]["uuid"]
    assert verify_devices.run_args({"runtime": {"mode": "cdi"}}, uuid, GPUS) == ["--device", "nvidia.com/gpu=1"]
    assert verify_devices.run_args({"runtime": {"mode": "toolkit"}}, uuid, GPUS) == ["--gpus", f'"device={uuid}"']
    podman = verify_container.args_for(
        RecordedHost(), "podman", {"engines": {"mode": "cdi", "names": ["podman"]}}, uuid, GPUS
    )
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
    found = verify_container.look(host, "docker", "image", ["--gpus", "all"], 5)
    assert found["state"] == "timeout"
    assert host.asked[0][:4] == ("docker", "run", "--rm", "--name")
    assert host.asked[-1] == ("docker", "rm", "--force", host.asked[0][4])


def test_docker_errors_are_explained() -> None:
    said = "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].\n\nRun 'docker run --help' for more information\n"
    found = verify_container.read_container(Result(125, "", said))
    assert found.state == "toolkit_missing"
    assert found.said and found.said.startswith("docker: Error response")


LOADED_IMAGE = Result(0, "Loaded image: lab/verify:1\n", "")


def test_a_tarball_is_loaded_only_when_its_image_is_missing() -> None:
    there = RecordedHost(
        programs={("docker", "image", "inspect", "--format", "{{.Id}}", "n:1"): Result(0, "sha256:1\n", "")}
    )
    verify_container.load_image(there, "/x.tar", "n:1")
    assert len(there.asked) == 1
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


@pytest.mark.parametrize(("before", "goes"), [("debian:13\n", True), ("debian:13\nlab/verify:1\n", False)])
def test_the_name_that_a_tarball_brings_goes_unless_it_was_there(before: str, goes: bool) -> None:
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
    assert (remove in host.asked) == goes


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


def test_without_an_engine_the_verdict_speaks_not_the_tarball() -> None:
    verify_container.load_image(RecordedHost(), "/x.tar", "n:1")


def record(ok: bool = True) -> dict[str, Any]:
    world = sound()
    if not ok:
        world["smi"] = None
    judged = verdict.verdict(world)
    return verify.record(world["observed"], world["nvml"], world["expect"], "digest", judged, {})


def test_the_record_proves_the_state_it_saw(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "verified.json"
    verify.keep(record(), str(path))
    kept = verified.look(RecordedHost(files={verified.PATH: path.read_text()}))["verified"]
    assert kept == record() | {"time": kept["time"]}
    assert kept["gpus"] == [gpu["uuid"] for gpu in GPUS]
    assert verification.lacking(sound()["observed"] | {"verified": kept}, "digest") is None


@pytest.mark.parametrize(
    "change",
    [
        put("base/boot_id", "another"),
        put("driver/loaded/version", "595.1.1"),
        put("driver/loaded", None),
        put("driver/userspace", ["595.1.1"]),
        lambda observed: observed["base"]["gpus"].pop(),
    ],
)
def test_the_record_proves_nothing_else(change: Callable[[World], None]) -> None:
    observed = sound()["observed"]
    change(observed)
    assert verification.lacking(observed | {"verified": record()}, "digest")


def test_a_failed_record_and_another_digest_prove_nothing() -> None:
    observed = sound()["observed"]
    assert verification.lacking(observed | {"verified": record()}, "other")
    failed = record(ok=False)
    assert failed["result"] == "failed" and failed["reasons"]
    assert "nvidia-smi" in str(verification.lacking(observed | {"verified": failed}, "digest"))
    assert verification.lacking(observed | {"verified": None}, "digest")


@pytest.mark.parametrize("text", ["", "garbage", "[]", "{}", '{"schema": 99}', json.dumps("x")])
def test_a_damaged_record_is_no_record(text: str) -> None:
    assert verified.look(RecordedHost(files={verified.PATH: text})) == {"verified": None}


# ---- the kernel's log explains ----------------------------------------------------------------------------------------

STARTED = "[9.0] nvidia-nvlink: Nvlink Core is being initialized, major device number 509\n"


@pytest.mark.parametrize(
    ("change", "log", "words"),
    [
        (
            put("observed/driver/loaded", None),
            "[9.1] Loading of module with unavailable key is rejected\n",
            ["is not loaded", "Secure Boot", "mokutil --import"],
        ),
        (
            put("nvml", broken(6, "No devices were found")),
            STARTED + "[9.1] NVRM: The NVIDIA GPU 0000:3b:00.0 (PCI ID: 10de:1b38)\n[9.1] NVRM: installed in this system is"
            " not supported by open\n[9.1] NVRM: nvidia.ko because it does not include the required GPU\n",
            ["could not start any GPU", "open kernel module does not support", "0000:3b:00.0", "proprietary"],
        ),
        (
            lambda world: world["nvml"]["gpus"].pop(),
            STARTED + "[9.1] NVRM: GPU 0000:af:00.0: RmInitAdapter failed! (0x26:0x56:1482)\n",
            ["could not start 0000:af:00.0", "RmInitAdapter failed"],
        ),
        (
            put("nvml", broken(6, "No devices were found")),
            "[1.0] NVRM: GPU 0000:af:00.0: RmInitAdapter failed! (0x1)\n" + STARTED + "[9.1] NVRM: loading NVIDIA UNIX x\n",
            ["could not start any GPU", "dmesg | grep NVRM"],
        ),
        (
            put("nvml", broken(9, "couldn't communicate with the NVIDIA driver")),
            STARTED + "[9.2] NVRM: Xid (PCI:0000:3b:00): 31, pid=9, name=train\n",
            ["module is loaded, but", "device nodes", "nvidia-modprobe -u"],
        ),
    ],
)  # fmt: skip
def test_the_kernel_says_why_a_verification_fails(change: Callable[[World], None], log: str, words: list[str]) -> None:
    world = sound()
    change(world)
    world["kernel"] = kernel_log.why(log)
    red = [check for check in verdict.verdict(world).checks if check.ok is False]
    said = " ".join(checks.reasons(red))
    for word in words:
        assert word in said


def test_a_host_without_any_gpu_is_not_proved() -> None:
    world = sound()
    for place in ("nvml/gpus", "container/gpus", "observed/base/gpus", "expect/gpus"):
        put(place, [])(world)
    judged = verdict.verdict(world)
    assert not judged.ok
    assert any("no NVIDIA GPU" in reason for reason in checks.reasons(judged.checks))
