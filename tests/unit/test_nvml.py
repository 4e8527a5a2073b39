"""NVML's answer, through pynvml and through nvidia-smi: the same values both ways."""

import sys

import pytest

from plugins.module_utils.gpu_ready.base.host import TIMED_OUT, Result
from plugins.module_utils.gpu_ready.verify import nvml
from plugins.plugin_utils.gpu_ready.verdict import nvml as nvml_results
from tests.unit.recorded import RecordedHost

CSV = """\
0, GPU-11111111-2222-3333-4444-555555555555, Tesla P40, 00000000:3B:00.0, 580.178.04
1, GPU-66666666-7777-8888-9999-000000000000, Tesla P40, 00000000:AF:00.0, 580.178.04
"""
ROWS = (
    '[[0, "GPU-11111111-2222-3333-4444-555555555555", "Tesla P40", "00000000:3B:00.0", "580.178.04"],'
    ' [1, "GPU-66666666-7777-8888-9999-000000000000", "Tesla P40", "00000000:AF:00.0", "580.178.04"]]\n'
)
ABSENT = Result(nvml.NOT_IMPORTABLE, "", "")


def host(pynvml: Result = ABSENT, smi: Result | None = None) -> RecordedHost:
    programs: dict[tuple[str, ...], Result] = {(sys.executable, "-c", nvml.PYNVML): pynvml}
    if smi is not None:
        programs[tuple(nvml.QUERY)] = smi
    return RecordedHost(programs=programs)


def test_both_ways_give_the_same_gpus() -> None:
    one = nvml_results.from_host(nvml.query(host(pynvml=Result(0, ROWS, ""))))
    other = nvml_results.from_host(nvml.query(host(smi=Result(0, CSV, ""))))
    assert (one.how, other.how) == ("pynvml", "nvidia-smi")
    assert one.gpus == other.gpus
    assert one.gpus[0] == nvml.NvmlGpu(
        0, "GPU-11111111-2222-3333-4444-555555555555", "Tesla P40", "0000:3b:00.0", "580.178.04"
    )


def test_nvidia_smi_is_not_called_if_pynvml_answers() -> None:
    recorded = host(pynvml=Result(0, ROWS, ""), smi=Result(0, CSV, ""))
    nvml.query(recorded)
    assert tuple(nvml.QUERY) not in recorded.asked


@pytest.mark.parametrize("rows", [0, 14])
def test_a_damaged_inforom_is_not_a_failure(rows: int) -> None:
    text = "WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n" + CSV if rows else CSV
    assert len(nvml_results.from_smi(Result(rows, text, "")).gpus) == 2


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (
            Result(9, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", ""),
            "driver_not_loaded",
        ),
        (Result(18, "Failed to initialize NVML: Driver/library version mismatch\n", ""), "driver_library_mismatch"),
        (Result(6, "No devices were found\n", ""), "no_devices"),
        (Result(0, "No devices were found\n", ""), "no_devices"),
        (Result(0, "", ""), "no_devices"),
        (Result(15, CSV, "Unable to determine the device handle for GPU0000:AF:00.0: GPU is lost."), "gpu_lost"),
        (Result(TIMED_OUT, CSV, "nvidia-smi: no answer in 60 s"), "timeout"),
        (Result(127, "", "nvidia-smi: No such file or directory"), "smi_missing"),
        (Result(0, "Segmentation fault\n", ""), "unreadable"),
        (Result(0, "0, [Unknown Error], [Unknown Error], 00000000:3B:00.0, 580.178.04\n", ""), "unreadable"),
    ],
)
def test_output_is_not_used_if_nvidia_smi_failed(result: Result, state: str) -> None:
    answer = nvml_results.from_smi(result)
    assert not answer.usable and answer.gpus == []
    assert answer.state == state
    assert answer.cause and answer.remedy


@pytest.mark.parametrize(
    ("result", "state"),
    [
        (Result(1, "", "NVML error 9: Driver Not Loaded"), "driver_not_loaded"),
        (Result(1, "", "NVML error 18: RM has detected an NVML/RM version mismatch."), "driver_library_mismatch"),
        (Result(1, "", "NVML error 12: NVML Shared Library Not Found"), "library_missing"),
        (Result(1, "", "NVML error 15: GPU is lost"), "gpu_lost"),
        (Result(0, "[]", ""), "no_devices"),
        (Result(TIMED_OUT, "", "no answer"), "timeout"),
    ],
)
def test_failures_of_pynvml_have_the_same_words(result: Result, state: str) -> None:
    answer = nvml_results.from_pynvml(result)
    assert answer is not None and not answer.usable
    assert answer.state == state


@pytest.mark.parametrize(
    ("text", "address"),
    [("00000000:3B:00.0", "0000:3b:00.0"), ("0000:3b:00.0", "0000:3b:00.0"), ("00010000:01:00.0", "10000:01:00.0")],
)
def test_bus_ids_are_those_of_sysfs(text: str, address: str) -> None:
    assert nvml.bus_id(text) == address


@pytest.mark.parametrize("text", ["", "garbage", "a,b,c", "0,,,,", "\x00\xff", "[1, 2", "{}", "null", "[[1]]"])
def test_readers_survive_anything(text: str) -> None:
    nvml.parse_csv(text)
    nvml.parse_rows(text)
