"""Kernel logs in the forms that tools give them, of old and new drivers."""

from typing import Any

import pytest
from gpu_ready.diagnostics import kernel_log, messages

CASES: list[tuple[str, dict[str, Any]]] = [
    (
        "Oct  3 12:00:01 gpu01 kernel: [   12.345678] NVRM: The NVIDIA GPU 0000:06:00.0 (PCI ID: 10de:15f9)\nOct  3 12:00:01 gpu01 kernel: [   12.345678] NVRM: installed in this system is not supported by open\nOct  3 12:00:01 gpu01 kernel: usb 1-1: new device\nOct  3 12:00:01 gpu01 kernel: [   12.345678] NVRM: nvidia.ko because it does not include the required GPU\nOct  3 12:00:01 gpu01 kernel: [   12.345678] NVRM: System Processor (GSP).",
        {
            "condition": "open_module_unsupported_gpu",
            "pci": "0000:06:00.0",
            "device_id": "10de:15f9",
            "needs_flavour": "proprietary",
        },
    ),
    (
        "[   12.3][  T1234] NVRM: Open nvidia.ko is only ready for use on Data Center GPUs.\r\n[   12.3][  T1234] NVRM: To force use of Open nvidia.ko on other GPUs, see the\r\n[  12.3] NVRM: 'OpenRmEnableUnsupportedGpus' kernel module parameter described\r\n[ 12.3] NVRM: in the README.\r\n[   13.0] NVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x62:0x56:1234)\r\n",
        {"condition": "open_module_not_ready_for_gpu"},
    ),
    (
        "NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:1b80)\nNVRM: installed in this system is not supported by the 361.42\nNVRM: NVIDIA Linux driver release.  Please see 'Appendix\nNVRM: A - Supported NVIDIA GPU Products' in this release's\nNVRM: README",
        {
            "condition": "gpu_not_supported_by_release",
            "driver_version": "361.42",
            "device_id": "10de:1b80",
            "pci": "0000:02:00.0",
        },
    ),
    (
        "kern  :err   : [Thu Nov 12 04:17:09 2026] NVRM: Xid (PCI:0000:4d:00): 119, pid=1240590, name=gpud, Timeout after 6s of waiting for RPC response from GPU4 GSP! Expected function 76 (GSP_RM_CONTROL) (0x20802068 0x4).\nkern  :err : [Thu Nov 12] NVRM: GPU 0000:4d:00.0: RmInitAdapter failed! (0x62:0x65:1860)",
        {"condition": "xid", "xids": [{"xid": 119, "pci": "0000:4d:00", "count": 1}], "process_names": ["gpud"]},
    ),
    (
        "2026-10-05T10:44:51.123456+00:00 node kernel: nvidia: loading out-of-tree module taints kernel.\n2026-10-05T10:44:51+00:00 node kernel: NVRM: loading NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024",
        {"condition": "loaded", "driver_version": "470.256.02", "flavour": "proprietary", "arch": "x86_64"},
    ),
    (
        "<4>[  5.1] nvidia 0000:c1:00.0: Direct firmware load for nvidia/570.211.01/gsp_log_ga10x.bin failed with error -2\n[ 6] NVRM: loading NVIDIA UNIX Open Kernel Module for aarch64  570.211.01  Release Build",
        {"condition": "loaded", "driver_version": "570.211.01", "flavour": "open", "arch": "aarch64"},
    ),
    (
        "Nov 02 19:40:06 ws kernel: message repeated 3 times: [ NVRM: Xid (PCI:0000:01:00): 13, pid=7, name=a b, Graphics Exception]\nNov 02 19:40:06 ws kernel: NVRM: Xid (PCI:0000:01:00): 13, pid=7, name=a b, Graphics",
        {"xids": [{"xid": 13, "pci": "0000:01:00", "count": 4}], "process_names": ["a b"]},
    ),
    (
        "\x1b[32m[  512.733018] \x1b[0m\x1b[33mNVRM: API mismatch: the client has the version 304.88, but\x1b[0m\n\x1b[32m[ 512]\x1b[0m NVRM: this kernel module has the version 304.116.  Please",
        {"condition": "api_mismatch", "client_version": "304.88", "module_version": "304.116"},
    ),
    (
        "NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\nNVRM: BAR1 is 0M @ 0x0 (PCI:0000:09:00.0)\nNVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\nNVRM: BAR1 is 0M @ 0x0 (PCI:0000:0a:00.0)\nNVRM: The system BIOS may have misconfigured your GPU.\nnvidia: probe of 0000:09:00.0 failed with error -1",
        {"condition": "bar_invalid", "pcis": ["0000:09:00.0", "0000:0a:00.0"]},
    ),
    (
        "NVRM: The NVIDIA probe routine was not called for 2 device(s).\nNVRM: This can occur when another driver was loaded and \nNVRM: obtained ownership of the NVIDIA device(s).\nNVRM: No NVIDIA devices probed.",
        {"condition": "other_driver_owns_device", "devices": 2},
    ),
    (
        "[   31.0] nvidia: module verification failed: signature and/or required key missing - tainting kernel\n[32] Lockdown: systemd-udevd: unsigned module loading is restricted; see man kernel_lockdown.7",
        {"condition": "secure_boot_key_rejected"},
    ),
    (
        "[  9.8] NVRM: The NVIDIA GeForce GTX 680 GPU installed in this system is\n NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please\n NVRM:  visit http://www.nvidia.com/object/unix.html for more\n NVRM:  information.  The 550.54.14 NVIDIA driver will ignore\n NVRM:  this GPU.  Continuing probe...\n[ 10] NVRM: ignoring the legacy GPU 0000:01:00.0",
        {
            "condition": "gpu_needs_legacy_branch",
            "gpu_name": "GeForce GTX 680",
            "legacy_branch": "470.xx",
            "driver_version": "550.54.14",
        },
    ),
    (
        "[1] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.",
        {"condition": "fallen_off_bus", "pci": "0000:3b:00.0", "xids": []},
    ),
    (
        "[1] NVRM: Xid\n(PCI:0000:3b:00): 79,\npid=1, name=x, GPU has fallen",
        {"condition": "xid", "xids": [{"xid": 79, "pci": "0000:3b:00", "count": 1}]},
    ),
    (
        "[1.0] nouveau 0000:01:00.0: NVIDIA GP107 (137000a1)\n[2.0] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01",
        {"condition": "other_driver_owns_device"},
    ),
    ("snd_hda_intel 0000:01:00.1: Disabling MSI\ninput: HDA NVidia HDMI/DP,pcm=3 as /devices", {"condition": "none"}),
    (
        "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30\n NVRM: Xid (PCI:0000:91:00): 74, pid=1, name=a, NVLink",
        {"condition": "xid", "sxids": [{"sxid": 20034, "device": "nvidia-nvswitch0", "pci": "0000:a9:00.0"}]},
    ),
    (
        "NVRM: GPU 0000:01:00.0: rm_init_adapter failed, device minor number 0",
        {"condition": "rm_init_failed", "pci": "0000:01:00.0"},
    ),
    (
        "#012NVRM: GPU at PCI:0000:3b:00: GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee#012NVRM: Xid (PCI:0000:3b:00): 45, pid=1, Ch 1",
        {"gpu_uuid": "GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"},
    ),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_reading(text: str, expected: dict[str, Any]) -> None:
    answer = kernel_log.read(text)
    assert {key: answer.get(key) for key in expected} == expected


def test_a_signature_of_unknown_origin_matters_only_where_nothing_is_loaded() -> None:
    line = "[ 1157.0] nvidia: loading out-of-tree module taints kernel.\n[ 1157.1] PKCS#7 signature not signed with a trusted key\n"
    assert kernel_log.read(line)["condition"] == "secure_boot_key_rejected"
    loaded = line + "[ 1157.2] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n"
    assert kernel_log.read(loaded)["condition"] == "loaded"


def test_each_xid_is_explained_by_its_number() -> None:
    log = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\nNVRM: Xid (PCI:0000:3b:00): 999, new\n"
    first, second, third = messages.explain("dmesg", log)
    assert "fallen off the bus" in first.cause and first.detail == "0000:3b:00"
    assert "does not know" in second.cause and "NVIDIA's list" in second.remedy
    assert third.code == "fallen_off_bus"


def test_the_cause_comes_before_its_consequences() -> None:
    log = (
        "NVRM: GPU 0000:c1:00.0: RmInitAdapter failed! (0x61:0x56:1697)\n"
        "nvidia 0000:c1:00.0: Direct firmware load for nvidia/570.211.01/gsp_ga10x.bin failed with error -2\n"
    )
    assert [found.code for found in messages.explain("dmesg", log)] == ["gsp_firmware_missing", "rm_init_failed"]
    assert kernel_log.read(log)["driver_version"] == "570.211.01"


def test_a_region_that_the_gpu_does_not_need_is_no_cause() -> None:
    log = (
        "[175.9] NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:\n"
        "               NVRM: BAR3 is 0M @ 0x0 (PCI:0001:00:00.0)\n"
        "[176.2] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.309.01  Wed Mar 25 15:26:15 UTC 2026\n"
    )
    assert kernel_log.read(log)["condition"] == "loaded" and messages.explain("dmesg", log) == []
    failed = log + "[176.3] nvidia: probe of 0001:00:01.0 failed with error -1\n"
    assert messages.explain("dmesg", failed)[0].code == "bar_invalid"


@pytest.mark.parametrize(
    ("condition", "code", "log"),
    [
        ("rm_init_failed", "rm_init_failed", "[1.0] NVRM: gpuWaitX: failed to wait for GFW_BOOT: (progress 0x3)\n"),
        ("rm_init_failed", "rm_init_failed", "[1.0] NVRM: _bootX: unexpected WPR2 already up, cannot proceed with GSP\n"),
        ("secure_boot_key_rejected", "secure_boot_key_rejected", "[1.0] Lockdown: modprobe: Loading of unsigned module is restricted\n"),
        ("bar_invalid", "bar_invalid", "[1.0] NVRM: This is a 64-bit BAR mapped above 16 TB by the system\n"),
        ("other_driver_owns_device", "other_driver_owns_device", "[1.0] vfio_pci: add [10de:2330[ffffffff:ffffffff]] class 0x0\n"),
        ("other_driver_owns_device", "other_driver_owns_device", "[1.0] nouveau 0000:01:00.0: enabling device (0006 -> 0007)\n"),
        (
            "gpu_not_supported_by_release", "proprietary_module_unsupported_gpu",
            "[1.0] NVRM: The NVIDIA GPU 0000:41:00.0 (PCI ID: 10de:2901)\nNVRM: installed in this system requires use of the"
            " NVIDIA open kernel modules.\n",
        ),
    ],
)  # fmt: skip
def test_other_causes_of_a_gpu_that_does_not_start(condition: str, code: str, log: str) -> None:
    found = kernel_log.read(log)
    assert found["condition"] == condition
    assert messages.explain("dmesg", log)[0].code == code
    assert found["needs_flavour"] == ("open" if code == "proprietary_module_unsupported_gpu" else None)
