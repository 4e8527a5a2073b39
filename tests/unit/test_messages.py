"""Failure texts of nvidia-smi and of containers, each with its cause."""

import pytest

from plugins.plugin_utils.gpu_ready.diagnostics import message_table, messages, xid
from tests.corpus.samples import Sample, of_kind


@pytest.mark.parametrize(
    ("code", "text", "state"),
    [
        (
            9,
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure",
            "driver_not_loaded",
        ),
        (9, "NVIDIA-SMI has failed because it couldn't\ncommunicate with the NVIDIA\n  driver.", "driver_not_loaded"),
        (
            18,
            "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 580.178",
            "driver_library_mismatch",
        ),
        (6, "No devices were found", "no_devices"),
        (15, "Unable to determine the device handle for GPU0000:86:00.0: GPU is lost.  Reboot", "gpu_lost"),
        (255, "Unable to determine the device handle for GPU 0000:86:00.0: Unknown Error", "gpu_lost"),
        (12, "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system.", "library_missing"),
        (4, "Failed to initialize NVML: Insufficient Permissions", "insufficient_permissions"),
        (255, "Failed to initialize NVML: Unknown Error", "container_lost_gpu_access"),
        (124, "", "timeout"),
        (127, "", "smi_missing"),
        (99, "something new", "unknown"),
    ],
)
def test_state_of_nvidia_smi(code: int, text: str, state: str) -> None:
    found = messages.explain_smi(code, text)
    assert found.code == state
    assert found.cause and found.remedy


def test_lost_gpu_is_named() -> None:
    text = "Unable to determine the device handle for GPU0000:86:00.0: GPU is lost."
    assert messages.explain_smi(15, text).detail == "0000:86:00.0"


@pytest.mark.parametrize(
    ("code", "text", "cause"),
    [
        (
            125,
            'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
            "toolkit_missing",
        ),
        (125, 'could not select device driver "cdi" with capabilities: []', "cdi_not_enabled_in_docker"),
        (125, "failed to inject devices: unresolvable CDI devices nvidia.com/gpu=all", "no_cdi_spec_or_no_gpu"),
        (125, "unresolvable CDI devices nvidia.com/gpu=7", "cdi_spec_wrong"),
        (125, "docker: Error response from daemon: unknown or invalid runtime name: nvidia.", "runtime_not_configured"),
        (125, "Unable to find image 'u:1' locally\nError response from daemon: pull access denied", "image_missing"),
        (127, "exec: nvidia-smi: not found", "gpus_flag_ignored"),
        (18, "Failed to initialize NVML: Driver/library version mismatch", "driver_library_mismatch"),
        (124, "", "timeout"),
    ],
)
def test_cause_of_a_container_failure(code: int, text: str, cause: str) -> None:
    found = messages.explain_container(code, text)
    assert found.code == cause
    assert found.cause and found.remedy


KNOWN = [sample for sample in of_kind("container_errors") if sample.expected.get("problems") != []]


@pytest.mark.parametrize("sample", KNOWN, ids=lambda sample: sample.name)
def test_the_cause_of_a_container_error_in_the_samples(sample: Sample) -> None:
    found = messages.explain_container(sample.exit or 125, sample.path.read_text())
    names = {entry.code: entry.names for entry in message_table.table(message_table.CONTAINER)}
    assert (names[found.code], found.detail) == (sample.expected["cause"], sample.expected.get("needs_cuda"))


FAILURES = [sample for sample in of_kind("nvidia_smi") if sample.expected.get("state")]


@pytest.mark.parametrize("sample", FAILURES, ids=lambda sample: sample.name)
def test_the_state_of_a_failed_nvidia_smi_in_the_samples(sample: Sample) -> None:
    status = sample.exit or sample.expected.get("exit_code") or 255
    assert messages.smi_state(status, sample.path.read_text()) == sample.expected["state"]


LOG = """\
[   10.1] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.82.07
[   11.0] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[   99.0] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.178.04
[  100.0] NVRM: Xid (PCI:0000:3b:00): 13, pid=7, name=python, Graphics Exception
[  101.0] NVRM: Xid (0000:3b:00): 48, DBE
[  102.0] NVRM: Xid (PCI:0000:5e:00): 48, pid=1, DBE
[  103.0] nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal
"""


def test_xids_count_from_the_last_load_of_the_driver() -> None:
    found = xid.serious_xids(xid.parse_xids(LOG))
    assert [item.label for item in found] == [
        "Xid 48 of 0000:3b:00", "Xid 48 of 0000:5e:00", "SXid 20034 of nvidia-nvswitch0 0000:a9:00.0",
    ]  # fmt: skip
