"""The compute check: its program uses a libcuda that really computes, in memory, and reports every result."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import MISSING, TIMED_OUT, Host, Result
from plugins.module_utils.gpu_ready.verify import compute, compute_program, nvml
from plugins.plugin_utils.gpu_ready.verdict import compute as judged
from tests.unit.recorded import RecordedHost

SOURCE = Path(__file__).with_name("fake_libcuda.c")
GPUS = [
    nvml.NvmlGpu(0, "GPU-10101010-1010-1010-1010-101010101010", "L40S", "0000:3b:00.0", "580.1"),
    nvml.NvmlGpu(1, "GPU-11111111-1111-1111-1111-111111111111", "L40S", "0000:af:00.0", "580.1"),
]
FOUND = [
    {"index": i, "uuid": gpu.uuid, "address": gpu.bus_id, "instance": "", "mode": 0, "capability": 89}
    for i, gpu in enumerate(GPUS)
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("gcc is missing: the fake libcuda cannot be compiled")
    target = tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-Werror", "-o", str(target), str(SOURCE)], check=True, timeout=60)
    return target


def ran(
    library: Path, tmp_path: Path, faults: str = "", timeout: float = 30.0
) -> tuple[compute.ComputeResult, list[str]]:
    """Run the program as on a host, with the fake instead of the driver's library; return answer and recorded calls."""
    log = tmp_path / "calls"
    log.touch()
    environment = {"FAKE_CUDA": faults, "FAKE_CUDA_LOG": str(log), "CUDA_VISIBLE_DEVICES": "0"}
    argv = [sys.executable, *compute.program(), str(library)]
    return compute.parse_result(Host().run(argv, timeout=timeout, env=environment)), log.read_text().splitlines()


def reds(answer: compute.ComputeResult, mig: list[str] | None = None) -> list[str]:
    found = judged.check(answer, GPUS, mig or [])
    for check in found:
        assert check.ok is not False or (check.expected and check.found and check.cause and check.remedy)
    return [f"{check.expected}: {check.found}" for check in found if check.ok is False]


def test_every_gpu_computes_right(library: Path, tmp_path: Path) -> None:
    answer, _ = ran(library, tmp_path)
    assert answer.skipped is None and answer.failed is None and answer.cuda == "13.2"
    assert [row.wrong for row in answer.devices] == [0, 0]
    assert [row.device.uuid for row in answer.devices] == [gpu.uuid for gpu in GPUS]
    [check] = judged.check(answer, GPUS, [])
    assert check.ok and all(gpu.uuid in check.found and gpu.bus_id in check.found for gpu in GPUS)


def test_order_and_arguments_of_the_calls(library: Path, tmp_path: Path) -> None:
    """Each GPU: one context, retained and released; the kernel for its target; at least as many threads as numbers."""
    _, calls = ran(library, tmp_path)
    size = 4 * compute_program.COUNT
    blocks = -(-compute_program.COUNT // compute_program.BLOCK)
    each = [
        "cuDevicePrimaryCtxRetain {0}",
        "cuCtxSetCurrent {0}",
        "cuModuleLoadData 1",
        "cuModuleGetFunction ",
        *[f"cuMemAlloc_v2 {size}"] * 2,
        *[f"cuMemcpyHtoD_v2 {size}"] * 2,
        f"cuLaunchKernel {blocks} {compute_program.BLOCK}",
        "cuCtxSynchronize ",
        f"cuMemcpyDtoH_v2 {size}",
        *["cuMemFree_v2 "] * 2,
        "cuModuleUnload ",
        "cuDevicePrimaryCtxRelease {0} left 0",
    ]
    assert calls == ["cuInit 0", "cuDeviceGetCount "] + [call.format(gpu) for gpu in (0, 1) for call in each]


@pytest.mark.parametrize("code", [2, 46, 100, 214, 802, 803, 999, 12345])
def test_every_error_of_cuinit_is_red_with_cause_and_remedy(library: Path, tmp_path: Path, code: int) -> None:
    answer, calls = ran(library, tmp_path, f"cuInit={code}")
    assert calls == ["cuInit 0"]
    [red] = reds(answer)
    assert f"({code})" in red and "cuInit" in red
    if code == 802:
        assert "CUDA_ERROR_SYSTEM_NOT_READY (802), system not yet initialized" in red
        assert "fabric manager" in judged.check(answer, GPUS, [])[0].cause


def test_a_stub_library_is_skipped_with_a_reason(library: Path, tmp_path: Path) -> None:
    answer, _ = ran(library, tmp_path, "cuInit=34")
    [check] = judged.check(answer, GPUS, [])
    assert check.ok is None and check.found.startswith("skipped: libcuda is a stub")


@pytest.mark.parametrize(
    "call",
    ["cuDevicePrimaryCtxRetain", "cuModuleLoadData", "cuMemAlloc_v2", "cuLaunchKernel", "cuCtxSynchronize", "cuMemcpyDtoH_v2"],
)  # fmt: skip
def test_one_bad_gpu_is_named_and_the_other_still_verified(library: Path, tmp_path: Path, call: str) -> None:
    answer, calls = ran(library, tmp_path, f"{call}@0=719")
    [red] = reds(answer)
    assert GPUS[0].uuid in red and GPUS[0].bus_id in red and call in red
    assert answer.devices[1].wrong == 0
    released = [line for line in calls if line.startswith("cuDevicePrimaryCtxRelease")]
    assert len(released) == (1 if call == "cuDevicePrimaryCtxRetain" else 2)


def test_a_gpu_that_computes_wrongly_is_red(library: Path, tmp_path: Path) -> None:
    answer, _ = ran(library, tmp_path, "wrong=1")
    [red] = reds(answer)
    assert GPUS[1].uuid in red and "1 of 65000 results are wrong" in red


def test_a_gpu_that_hangs_is_named(library: Path, tmp_path: Path) -> None:
    answer, _ = ran(library, tmp_path, "hang=1", timeout=6.0)
    [red] = reds(answer)
    assert GPUS[1].uuid in red and "no answer in time" in red
    assert answer.devices[0].wrong == 0


def test_gpus_in_prohibited_mode_are_skipped_with_a_message(library: Path, tmp_path: Path) -> None:
    answer, calls = ran(library, tmp_path, "mode=0:2 mode=1:3 cuDevicePrimaryCtxRetain@1=46")
    found = judged.check(answer, GPUS, [])
    assert [check.ok for check in found] == [None, None]
    assert "Prohibited" in found[0].found and "Exclusive_Process" in found[1].found
    assert "cuDevicePrimaryCtxRetain 0" not in calls


def test_an_instance_of_a_divided_gpu_is_named_as_such(library: Path, tmp_path: Path) -> None:
    answer, _ = ran(library, tmp_path, "mig=0")
    [check] = judged.check(answer, GPUS, [GPUS[0].uuid])
    assert check.ok and "MIG-80808080-8080-8080-8080-808080808080 (0000:3b:00.0)" in check.found


def test_the_program_is_self_contained(tmp_path: Path) -> None:
    """It runs in containers: it imports nothing of gpu-ready, and reports a missing library without a traceback."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-I", *compute.program(), str(tmp_path / "none.so")],
        capture_output=True, text=True, timeout=300, check=True, env=environment, cwd=tmp_path,
    )  # fmt: skip
    answer = compute.parse_result(Result(0, done.stdout, done.stderr))
    [red] = reds(answer)
    assert "dlopen" in red and "none.so" in red


def gpu_rows(*rows: dict[str, Any]) -> Result:
    return Result(0, "".join(json.dumps(row) + "\n" for row in rows), "")


def test_a_gpu_that_cuda_does_not_show_is_red_unless_it_is_divided() -> None:
    answer = compute.parse_result(gpu_rows({"count": 1, "cuda": 12040}, {"gpu": FOUND[0], "wrong": 0}))
    [red] = reds(answer)
    assert GPUS[1].uuid in red
    host = RecordedHost(
        programs={tuple(compute.MIG_QUERY): Result(0, f"{GPUS[0].uuid}, Disabled\n{GPUS[1].uuid}, Enabled\n", "")}
    )
    mig = compute.query_mig(host, answer, GPUS)
    assert mig == [GPUS[1].uuid]
    assert not reds(answer, mig)
    assert any(check.ok is None and "MIG is enabled" in check.found for check in judged.check(answer, GPUS, mig))


def test_divided_gpus_without_instances_are_skipped() -> None:
    answer = compute.parse_result(gpu_rows({"failed": {"call": "cuInit", "code": 100, "name": "", "text": ""}}))
    assert reds(answer)
    assert not reds(answer, [gpu.uuid for gpu in GPUS])


NO_DEVICE = gpu_rows({"failed": {"call": "cuInit", "code": 100, "name": "CUDA_ERROR_NO_DEVICE", "text": "none"}})
PART = {**FOUND[0], "instance": "MIG-8080"}


@pytest.mark.parametrize("mig", [[gpu.uuid for gpu in GPUS], []], ids=["all divided", "not asked: one GPU"])
@pytest.mark.parametrize("inside", [NO_DEVICE, gpu_rows({"count": 1, "cuda": 12040}, {"gpu": FOUND[1], "wrong": 0})])
def test_a_container_without_the_instance_that_computes_on_the_host_is_red(mig: list[str], inside: Result) -> None:
    """Mode native gives containers whole GPUs; without their instances nothing in them can compute."""
    host = compute.parse_result(gpu_rows({"count": 1, "cuda": 12040}, {"gpu": PART, "wrong": 0}))
    [red] = judged.check(compute.parse_result(inside), GPUS, mig, "_in_container", host)
    assert red.ok is False and "MIG instances" in red.cause and "toolkit or cdi" in red.remedy
    same = judged.check(host, GPUS, [gpu.uuid for gpu in GPUS], "_in_container", host)
    assert same and not [check for check in same if check.ok is False]


def test_divided_gpus_without_instances_on_the_host_are_skipped_in_the_container_too() -> None:
    answer = compute.parse_result(NO_DEVICE)
    [check] = judged.check(answer, GPUS, [gpu.uuid for gpu in GPUS], "_in_container", answer)
    assert check.ok is None


def test_a_container_with_the_whole_gpus_of_a_divided_host_may_do_without_instances() -> None:
    host = compute.parse_result(gpu_rows({"count": 1, "cuda": 12040}, {"gpu": PART, "wrong": 0}))
    answer = compute.parse_result(gpu_rows({"count": 1, "cuda": 12040}, {"gpu": FOUND[1], "wrong": 0}))
    [check] = judged.check(answer, GPUS[1:], [GPUS[0].uuid], "_in_container", host)
    assert check.ok


def test_mig_is_queried_only_if_gpus_are_missing() -> None:
    answer = compute.parse_result(gpu_rows({"count": 2, "cuda": 12040}, *({"gpu": gpu, "wrong": 0} for gpu in FOUND)))
    host = RecordedHost()
    assert compute.query_mig(host, answer, GPUS) == [] and host.asked == []
    assert compute.query_mig(host, None, GPUS) == [] and host.asked == []


@pytest.mark.parametrize(
    "output",
    [
        'exec: "python3": executable file not found in $PATH: unknown.',
        "Error: crun: executable file `python3` not found in $PATH: No such file or directory: OCI runtime error",
        'ctr: failed to create shim task: exec: "python3": executable file not found in $PATH: unknown',
    ],
)
def test_an_image_without_python_is_skipped_with_a_reason(output: str) -> None:
    answer = compute.parse_result(Result(1, "", output))
    assert answer.skipped and "python3" in answer.skipped
    assert compute.parse_result(Result(MISSING, "", "")).skipped


def test_a_minimal_python_is_skipped_with_a_reason() -> None:
    answer = compute.parse_result(Result(1, "", "Traceback\nModuleNotFoundError: No module named 'ctypes'\n"))
    assert answer.skipped and "No module named 'ctypes" in answer.skipped


@pytest.mark.parametrize("result", [Result(-11, "", ""), Result(TIMED_OUT, "", ""), Result(125, "", "docker: Error")])
def test_a_program_that_broke_off_is_red(result: Result) -> None:
    assert reds(compute.parse_result(result))


def test_lines_of_the_image_itself_are_ignored() -> None:
    noise = '{not json}\n{"gpu": 7}\n[]\nnull\n{"level": "info"}\n'
    result = gpu_rows({"count": 1, "cuda": 12040}, {"gpu": FOUND[0], "wrong": 0})
    answer = compute.parse_result(result._replace(out=noise + result.out))
    assert [row.wrong for row in answer.devices] == [0]


def test_the_check_is_not_run_unless_requested() -> None:
    assert judged.check(None, GPUS, [])[0].ok is None


def test_targets_rise_and_fit_every_gpu() -> None:
    assert list(compute_program.TARGETS) == sorted(compute_program.TARGETS)
    for capability, target in (
        (30, 30),
        (37, 35),
        (61, 60),
        (75, 75),
        (86, 80),
        (89, 80),
        (90, 90),
        (103, 100),
        (121, 120),
        (150, 120),
    ):
        assert f".target sm_{target}\n" in compute_program.ptx(capability)


@pytest.mark.parametrize("target", [target for target, _ in compute_program.TARGETS])
def test_nvidias_own_assembler_accepts_the_kernel(target: int, tmp_path: Path) -> None:
    assembler = shutil.which("ptxas")
    if assembler is None:
        pytest.skip("ptxas of a CUDA toolkit is not here")
    source = tmp_path / "kernel.ptx"
    source.write_text(compute_program.ptx(target))
    for gpu in (90, 120):
        if gpu >= target:
            argv = [assembler, f"-arch=sm_{gpu}", str(source), "-o", str(tmp_path / "kernel.cubin")]
            subprocess.run(argv, check=True, timeout=60)
