"""Kernel logs in the forms that tools give them, of old and new drivers."""

import json
from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.diagnostics import kernel_log, messages

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


def asked(found: Any, expected: Any) -> Any:
    """What is asked for of a reading: rows may have more columns."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return {key: asked(found[key], expected[key]) for key in expected if key in found}
    if isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        return [asked(one, other) for one, other in zip(found, expected, strict=True)]
    return found


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_reading(text: str, expected: dict[str, Any]) -> None:
    answer = kernel_log.read(text)
    assert asked({key: answer.get(key) for key in expected}, expected) == expected


def test_a_signature_of_unknown_origin_matters_only_where_nothing_is_loaded() -> None:
    line = "[ 1157.0] nvidia: loading out-of-tree module taints kernel.\n[ 1157.1] PKCS#7 signature not signed with a trusted key\n"
    assert kernel_log.read(line)["condition"] == "secure_boot_key_rejected"
    loaded = line + "[ 1157.2] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n"
    assert kernel_log.read(loaded)["condition"] == "loaded"


def test_each_xid_is_explained_by_its_number() -> None:
    log = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\nNVRM: Xid (PCI:0000:3b:00): 999, new\n"
    first, second = messages.explain("dmesg", log)
    assert "fallen off the bus" in first.cause and first.detail == "0000:3b:00"
    assert "does not know" in second.cause and "NVIDIA's list" in second.remedy


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
        ("rm_init_failed", "gsp_boot_failed", "[1.0] NVRM: gpuWaitX: failed to wait for GFW_BOOT: (progress 0x3)\n"),
        ("rm_init_failed", "gsp_boot_failed", "[1.0] NVRM: _bootX: unexpected WPR2 already up, cannot proceed with GSP\n"),
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


MIG = "NVRM: Xid (PCI:0000:01:00 GPU-I:05): 94, pid=7194, Contained: CE User Channel (0x9)\n"


def codes(log: str) -> list[str]:
    return [found.code for found in messages.explain("dmesg", log)]


@pytest.mark.parametrize(
    ("line", "instance", "words"),
    [
        (MIG, "GPU-I:05", "MIG GPU instance 05"),
        (
            MIG.replace("GPU-I:05", "GPU-I:01 GPU-CI:02"),
            "GPU-I:01 GPU-CI:02",
            "MIG GPU instance 01, compute instance 02",
        ),
        ("[1.0] " + MIG.replace("pid=7194, ", "pid=7194, name=train, "), "GPU-I:05", "Xid 94 of GPU 0000:01:00"),
    ],
)
def test_an_xid_of_a_mig_instance(line: str, instance: str, words: str) -> None:
    (row,) = kernel_log.read(line)["xids"]
    assert (row["xid"], row["pci"], row["count"], row["instance"]) == (94, "0000:01:00", 1, instance)
    (found,) = messages.explain("dmesg", line)
    assert words in found.cause and found.severity == "critical" and found.detail == "0000:01:00"


def test_an_xid_45_is_a_consequence_of_the_one_that_it_names() -> None:
    line = "NVRM: Xid (PCI:0008:01:00): 45, pid=7, name=train, Ch 0000000a, errorString CTX SWITCH TIMEOUT, Info 0x1c caused by previous Xid 149\n"
    (found,) = messages.explain("dmesg", line)
    assert (
        "consequence of Xid 149" in found.cause and "NVLink" in found.remedy and "compute-sanitizer" not in found.remedy
    )
    assert found.severity == "critical"  # the Xid 149 itself is not in the text
    with_cause = "NVRM: Xid (PCI:0008:01:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x0)\n" + line
    first, second = messages.explain("dmesg", with_cause)
    assert "Xid 149 of GPU" in first.cause and first.severity == "critical"
    assert "Xid 45 of GPU" in second.cause and second.severity == "info"


def test_an_xid_45_behind_another_one_of_its_gpu_belongs_to_it() -> None:
    log = (
        "NVRM: Xid (PCI:0000:3b:00): 31, pid=7, name=a, Ch 00000002, MMU Fault\n"
        "NVRM: Xid (PCI:0000:5e:00): 45, pid=8, name=b, Ch 00000003\n"
        "NVRM: Xid (PCI:0000:3b:00): 45, pid=7, name=a, Ch 00000002\n"
    )
    rows = {row["pci"]: row.get("follows") for row in kernel_log.read(log)["xids"] if row["xid"] == 45}
    assert rows == {"0000:5e:00": None, "0000:3b:00": 31}


@pytest.mark.parametrize(
    ("line", "severity", "word"),
    [
        ("22013, Non-fatal, Link 44 Minion Link DLREQ interrupt", "info", "can be ignored"),
        ("20034, Fatal, Link 48 LTSSM Fault Up", "critical", "reset all GPUs"),
        ("10010, Correctable, Link 02 LL correctable", "info", "can be ignored"),
        ("19084, Non-fatal, Link 07 AN1 Heartbeat Timeout", "info", "reset all GPUs"),
        ("12028, Severity 1 Engine instance 32 Sub-engine instance 00", "critical", "reset all GPUs"),
        ("12028, Data {0x50610002, 0x10100030}", "error", "Fatal or Non-fatal"),
    ],
)
def test_an_sxid_is_as_serious_as_it_says(line: str, severity: str, word: str) -> None:
    text = "[604.1] nvidia-nvswitch2: SXid (PCI:0000:04:00.0): " + line
    (found,) = messages.explain("dmesg", text)
    assert (found.code, found.severity) == ("sxid", severity) and word in found.remedy
    assert kernel_log.read(text)["sxids"][0]["severity"] == severity


@pytest.mark.parametrize(
    ("action", "severity", "word"),
    [
        ("GPU Reset Required", "critical", "reset it"),
        ("Node Reboot Required", "critical", "reboot the host"),
        ("Drain P2P", "critical", "peer-to-peer"),
        ("Drain and Reset", "critical", "start no new one"),
        ("Recover IMEX Domain", "critical", "IMEX"),
        ("None", "info", "nothing to do"),
        ("Unknown", "error", "what the text names"),
    ],
)
def test_an_xid_154_names_the_action(action: str, severity: str, word: str) -> None:
    line = f"NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x7 (Drain X) to 0x1 ({action})"
    (found,) = messages.explain("dmesg", line)
    assert found.severity == severity and word in found.remedy and action in found.cause


@pytest.mark.parametrize(("number", "word"), [(6, "bus"), (7, "reboot it")])
def test_an_xid_154_with_an_action_that_the_driver_cannot_name_counts_by_its_number(number: int, word: str) -> None:
    line = f"NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x0 (None) to 0x{number:x} (Unknown)"
    (found,) = messages.explain("dmesg", line)
    assert found.severity == "critical" and word in found.remedy


SUBCODES: list[tuple[str, str, list[str], list[str]]] = [
    # Reason 4: bad signal; reason 33: the other end; reason 40: the host; no reason.
    ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x0 0x0)", "critical", ["a link went down", "link 8"], ["reset", "cables"]),
    ("149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x0)", "critical", ["link 1"], ["reset", "other end"]),
    ("149, NETIR_LINK_DOWN Fatal XC0 i0 Link 00 (0x025001c6 0x0)", "critical", ["link 0"], ["reset", "other end"]),
    ("149, NETIR_LINK_EVT Fatal XC0 i0 Link 02 (0x028001c6 0x0)", "error", ["link 2"], ["nothing to do at once", "host"]),
    ("149, NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x0)", "critical", ["NVLink error (NETIR)"], ["reset", "follows an error elsewhere"]),
    ("149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00086226 0x1)", "info", ["bit errors", "link 3"], ["nothing", "cables"]),
    ("149, NETIR_MFDE_EVENT Nonfatal XC0 i0 Link 03 (0x00000246 0x3)", "info", ["link 3"], ["nothing to do at once"]),
    ("144, SAW_MVB Fatal XC0 i0 Link 00 (0x00000001 0x00000002 0x0)", "critical", ["SAW"], ["reset", "support"]),
    ("145, RLW_REMAP Nonfatal XC0 i0 Link 05 (0x00000004 0x00000020)", "warning", ["link 5"], ["Xid 154", "NVLink failure"]),
    ("145, RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x1 0x0)", "info", ["link 13"], ["nothing", "support"]),
    ("146, TLW_RX_PIPE1 Fatal XC0 i0 Link 00 (0x0000000b 0x00000004)", "critical", ["TLW"], ["reset"]),
    # Two bits at once: the more serious one counts.
    ("145, RLW_SRC_TRACK Fatal XC1 i0 Link 16 (0x040a08e2 0x00000012)", "critical", ["link 16"], ["reset"]),
    # A unit, a status or a reason that the table does not have: the word decides.
    ("149, NETIR_NEW_EVENT Fatal XC0 i0 Link 03 (0x00086226 0x1)", "critical", ["NVLink error (NETIR)"], ["reset the GPU"]),
    ("145, RLW_RSPCOL Nonfatal XC0 i0 Link 03 (0x000000a2 0x40)", "info", ["NVLink error (RLW)"], ["Xid 154 or 45"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "severity", "names", "remedies"), SUBCODES)
def test_a_subcode_of_nvlink_5_names_what_to_do(
    text: str, severity: str, names: list[str], remedies: list[str]
) -> None:
    (found,) = messages.explain("dmesg", "NVRM: Xid (PCI:0018:01:00): " + text)
    assert found.severity == severity
    assert all(word in found.cause for word in names) and all(word in found.remedy for word in remedies), found


def test_a_configuration_that_the_fabric_manager_does_not_accept() -> None:
    line = "nv-fabricmanager[1120]: fabric manager config file item: FABRIC_NODE_CONFIG_FILE has an invalid value"
    (found,) = messages.explain("dmesg", line)
    assert found.code == "fabric_manager_config" and "driver's version" in found.remedy


def test_only_the_last_recovery_action_of_a_gpu_counts() -> None:
    line = "NVRM: Xid (PCI:0009:01:00): 154, GPU recovery action changed from 0x%d (%s) to 0x%d (%s)\n"
    log = line % (0, "None", 1, "GPU Reset Required") + line % (1, "GPU Reset Required", 0, "None")
    (found,) = messages.explain("dmesg", log)
    assert found.severity == "info" and '"None"' in found.cause and found.line == 2


def test_serious_xids_come_before_frequent_ones() -> None:
    line = "NVRM: Xid (PCI:0000:3b:00): %d, pid=7, name=a, x\n"
    log = line % 43 * 9 + line % 31 * 3 + line % 94 + line % 109
    causes = [found.cause.split(": ")[1].split(" of")[0] for found in messages.explain("dmesg", log)]
    assert causes == ["Xid 94", "Xid 109", "Xid 31", "Xid 43"]
    assert [row["count"] for row in kernel_log.read(log)["xids"]] == [9, 3, 1, 1]


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x0)", "critical"),
        ("149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03 (0x00086226 0x1)", "info"),
        ("145, pid=1, name=ray::Worker, RLW_SRC_TRACK Nonfatal XC1 i0 Link 16 (0x040a08e2 0x8)", "warning"),
        ("150, MSE_WATCHDOG Fatal XC0 i0 Link 00 (0x0 0x0)", "critical"),
        ("147, text of another release", "critical"),
    ],
)
def test_an_xid_of_nvlink_5_is_as_serious_as_it_says(text: str, severity: str) -> None:
    (found,) = messages.explain("dmesg", "NVRM: Xid (PCI:0018:01:00): " + text)
    assert found.severity == severity


@pytest.mark.parametrize(
    "line",
    [
        "[ 12.3] {} ",
        "[Thu Nov 12 04:17:09 2026] {}",
        "[Nov12 04:17] {}",
        "[  +0.000010] {}",
        "Nov 12 04:17:09 gpu01 kernel: {}",
        "Nov 12 04:17:09 gpu01 kernel: [   12.345678] {}",
        "2026-11-12T04:17:09+0000 gpu01 kernel: {}",
        "2026-11-12T04:17:09.123456+00:00 gpu01 kernel: [  12.3] {}",
        "2026-11-12T04:17:09,123456+00:00 {}",
        "2026-11-12T04:17:09.123456789Z [   12.345678] {}",
        "<4>1 2026-11-12T04:17:09.123456+00:00 gpu01 kernel - - - [  12.3] {}",
        "kern  :err   : [   12.345678] {}",
        "> {}\r",
        "\x1b[32m[   12.3] \x1b[0m\x1b[33m{}\x1b[0m",
        '{{"MESSAGE":"{}","_HOSTNAME":"gpu01","PRIORITY":"4","__CURSOR":"s=1"}}',
        '{{"log":"{}\\n","stream":"stdout","time":"2026-11-12T04:17:09Z"}}',
        '{{\n\t"__CURSOR" : "s=1",\n\t"MESSAGE" : "{}",\n\t"PRIORITY" : "4"\n}}',
        "_HOSTNAME=gpu01\nMESSAGE={}\nPRIORITY=4\n",
    ],
)
def test_heads_of_lines(line: str) -> None:
    messages_of_a_log = (
        "NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up",
        "nouveau 0000:01:00.0: NVIDIA GP107 (137000a1)",
    )
    log = "\n".join(line.format(one) for one in messages_of_a_log)
    answer = kernel_log.read(log)
    assert [(row["xid"], row["pci"]) for row in answer["xids"]] == [(79, "0000:3b:00")]
    assert [(row["sxid"], row["device"]) for row in answer["sxids"]] == [(20034, "nvidia-nvswitch1")]
    assert set(codes(log)) == {"xid", "sxid", "other_driver_owns_device"}


def test_a_message_of_a_journal_in_bytes() -> None:
    text = "NVRM: Xid (PCI:0000:3b:00): 48, DBE"
    assert [row["xid"] for row in kernel_log.read(json.dumps({"MESSAGE": list(text.encode())}))["xids"]] == [48]


def test_a_terminal_that_breaks_words() -> None:
    line = "[ 1.0] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."
    broken = "\n".join(line[place : place + 19] for place in range(0, len(line), 19))
    assert [row["xid"] for row in kernel_log.read(broken)["xids"]] == [79]


def test_three_dots_are_no_address() -> None:
    (row,) = kernel_log.read("NVRM: Xid (PCI:...): 79, GPU has fallen off the bus")["xids"]
    assert row["xid"] == 79 and row["pci"] is None


def test_the_uuids_of_several_gpus() -> None:
    log = "".join(
        f"NVRM: GPU at PCI:0000:{bus}:00: GPU-aaaaaaaa-bbbb-cccc-dddd-00000000{bus}\n" for bus in ("3b00", "5e00")
    )
    answer = kernel_log.read(log.replace("3b00:", "3b:").replace("5e00:", "5e:"))
    assert answer["gpu_uuid"] is None and list(answer["gpu_uuids"]) == ["0000:3b:00", "0000:5e:00"]


def test_the_address_of_a_gpu_wherever_it_stands() -> None:
    log = (
        "[1.0] NVRM: RmFetchGspRmImages: No firmware image found\n"
        + "[1.1] NVRM: nvAssertFailedNoLog: Assertion failed: NULL != pGpu @ gpu.c:1234 and a long text behind it\n" * 2
        + "[1.2] NVRM: GPU 0000:c1:00.0: RmInitAdapter failed! (0x61:0x56:1697)\n"
    )
    assert kernel_log.read(log)["pci"] == "0000:c1:00.0"


@pytest.mark.parametrize(
    ("log", "code"),
    [
        ("nvidia 0000:41:00.0: loading /lib/firmware/nvidia/570.86.15/gsp_ga10x.bin failed with error -4", "gsp_firmware_unreadable"),
        ("nvidia 0000:41:00.0: firmware: failed to load nvidia/525.105.17/gsp_tu10x.bin (-2)", "gsp_firmware_missing"),
        ("NVRM: kgspBootstrap_GH100: GSP-FMC reported an error while attempting to boot GSP: 0x5", "gsp_boot_failed"),
        ("NVRM: knvlinkDiscoverPostRxDetLinks_GH100: Getting peer1's postRxDetLinkMask failed!", "nvlink_start_failed"),
        ("nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing", "peermem_context"),
        ("nvidia-modeset: ERROR: GPU:0: Failed to query display engine channel state: 0x0000c67d:0:0:0x00000062", "display_engine_error"),
        ("[drm:nv_drm_atomic_commit [nvidia_drm]] *ERROR* [nvidia-drm] [GPU ID 0x00000100] Flip event timeout on head 0", "display_engine_error"),
        ("NVRM: kgspExtractVbiosFromRom_TU102: did not find valid ROM signature", "vbios_unreadable"),
        ("nvidia 0000:01:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x000f address=0xfd000000 flags=0x0020]", "iommu_fault"),
        ("NovaCore 0000:01:00.0: Probe Nova Core GPU driver.", "other_driver_owns_device"),
        ("nova-core 0000:01:00.0: NVIDIA (Chipset: GA104)", "other_driver_owns_device"),
        ("nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err -2)", "peermem_needs_rdma"),
        ("NVRM: Can't find an IRQ for your NVIDIA card!", "interrupt_missing"),
        ("nvidia 0000:01:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer", "pci_error"),
        ("NVRM: confComputeConstructEngine_IMPL: CPU does not support confidential compute.", "confidential_computing_unsupported"),
    ],
)  # fmt: skip
def test_messages_of_the_modules(log: str, code: str) -> None:
    assert codes("[ 12.3] " + log) == [code]


def test_a_gpu_with_a_system_processor_is_not_called_older() -> None:
    log = (
        "NVRM: The NVIDIA GPU 0000:06:00.0 (PCI ID: 10de:%s)\nNVRM: installed in this system is not supported by open\n"
        "NVRM: nvidia.ko because it does not include the required GPU\nNVRM: System Processor (GSP).\n"
    )
    (found,) = messages.explain("dmesg", log % "2330")
    assert found.code == "gsp_not_available" and "not at fault" in found.remedy
    assert kernel_log.read(log % "2330")["needs_flavour"] is None
    assert codes(log % "1df6") == ["open_module_unsupported_gpu"]


def test_a_lost_gpu_that_an_xid_reports_is_one_problem() -> None:
    log = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\nNVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
    assert codes(log) == ["xid"]


def test_the_running_kernel() -> None:
    log = "[1.0] nvidia: version magic '6.8.0-31-generic SMP preempt mod_unload ' should be '6.8.0-45-generic SMP preempt mod_unload '"
    assert kernel_log.read(log)["kernel"] == "6.8.0-45-generic"


HARMLESS = (
    "NVRM: Persistence mode is deprecated and will be removed in a future release. Please use nvidia-persistenced instead.",
    "NVRM: Chipset not recognized (vendor ID 0x1d0f, device ID 0x8650)",
    "nvidia: module verification failed: signature and/or required key missing - tainting kernel",
    "nvidia-nvlink: Nvlink Core is being initialized, major device number 511",
    "nvidia 0000:01:00.0: vgaarb: VGA decodes changed: olddecodes=io+mem,decodes=none:owns=none",
    "[drm] Initialized nvidia-drm 0.0.0 for 0000:01:00.0 on minor 1",
    "nvidia-modeset: Loading NVIDIA Kernel Mode Setting Driver for UNIX platforms  595.45.04  Release Build",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.45.04  Release Build  (dvs@x)  Thu",
    "nvidia_uvm: module uses symbols nvUvmInterfaceDisableAccessCntr from proprietary module nvidia, inheriting taint.",
)


def test_a_sound_start_has_no_problem() -> None:
    log = "".join(f"[   {number}.0] {line}\n" for number, line in enumerate(HARMLESS))
    assert codes(log) == [] and kernel_log.read(log)["condition"] == "loaded"


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("nvidia 0000:01:00.0: Direct firmware load for nvidia/610.57.04/gsp_log_ga10x.bin failed with error -2\n"
         "NVRM: RmFetchGspRmImages: Failed to load gsp_log_*.bin, no GSP-RM logs will be printed (non-fatal)", []),
        ("NVRM kgspInitRm_IMPL: missing NVDEC0 engine, cannot initialize GSP-RM\nNVRM RmInitAdapter: Cannot initialize GSP"
         " firmware RM\nNVRM: GPU 0000:01:00.0: RmInitAdapter failed! (0x63:0x56:1689)", ["gsp_boot_failed", "rm_init_failed"]),
        ("NVRM: nvCheckOkFailedNoLog: Check failed: GPU lost from the bus [NV_ERR_GPU_IS_LOST] (0x0000000F) returned from"
         " rpcRecvPoll", ["fallen_off_bus"]),
        ("NVRM: Attempting to remove minor device 0 with non-zero usage count!", ["removed_in_use"]),
        ("nvidia_fs: Unknown symbol nvidia_p2p_dma_unmap_pages (err -2)", ["module_beside_driver"]),
        ("Command line: quiet nvidia.NVreg_OpenRmEnableUnsupportedGpus=1 vfio-pci.ids=10de:2330", []),
        ("DMAR: [DMA Read NO_PASID] Request device [41:00.0] fault addr 0xfd000000 [fault reason 0x06]\n"
         "nvidia 0000:41:00.0: enabling device (0140 -> 0142)", ["iommu_fault"]),
        ("DMAR: [DMA Read NO_PASID] Request device [02:00.0] fault addr 0xfd000000 [fault reason 0x06]\n"
         "nvidia 0000:41:00.0: enabling device (0140 -> 0142)", []),
        ("NVRM: Xid (PCI:0000:01:00): 119, pid=1, name=Xorg, Timeout after 6s of waiting for RPC response from GPU0 GSP!\n"
         "NVRM: Rate limiting GSP RPC error prints for GPU at PCI:0000:01:00 (printing 1 of every 30).", ["xid"]),
    ],
)  # fmt: skip
def test_messages_of_the_field(log: str, expected: list[str]) -> None:
    assert codes("".join(f"[ 12.3] {line}\n" for line in log.splitlines())) == expected
