"""Outputs of nvidia-smi from 304 to 615, of Windows, WSL and Jetson boards, in any wrapping; and its failures."""

import json
import re
from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.diagnostics import messages, smi
from plugins.plugin_utils.gpu_ready.explain import messages as explain_messages

OLD = """\
Thu Jan  1 00:00:00 2015
+------------------------------------------------------+
| NVIDIA-SMI 331.113    Driver Version: 331.113        |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|===============================+======================+======================|
|   0  Tesla K20m          Off  | 0000:03:00.0     Off |                    0 |
| N/A   30C    P8    17W / 225W |     11MiB /  4799MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
|   1  GeForce GTX 690     Off  | 0000:04:00.0     N/A |                  N/A |
| ERR!   30C    P8    N/A /  N/A |     11MiB /  4799MiB |     N/A      Default |
+-------------------------------+----------------------+----------------------+
+-----------------------------------------------------------------------------+
| Compute processes:                                               GPU Memory |
|  GPU       PID  Process name                                     Usage      |
|=============================================================================|
|    1            Not Supported                                               |
+-----------------------------------------------------------------------------+
"""
WINDOWS = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 460.15       Driver Version: 460.15       CUDA Version: 11.1     |
|-------------------------------+----------------------+----------------------+
| GPU  Name            TCC/WDDM | Bus-Id        Disp.A | Volatile Uncorr. ECC |
|===============================+======================+======================|
|   0  GeForce RTX 207... WDDM  | 00000000:01:00.0 Off |                  N/A |
| N/A   45C    P5    12W /  N/A |    176MiB /  8192MiB |      0%      Default |
+-------------------------------+----------------------+----------------------+
| Processes:                                                                  |
|    0   N/A  N/A      1752    C+G   Insufficient Permissions        N/A      |
"""
WSL = """\
| NVIDIA-SMI 555.52.01              Driver Version: 555.99         CUDA Version: 12.5     |
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA GeForce RTX 4070 ...    On  |   00000000:01:00.0  On |                  N/A |
|  0%   43C    P8              3W /  220W |     576MiB /  12282MiB |      0%      Default |
|                                         |                        |                  N/A |
"""
JETSON = """\
| NVIDIA-SMI 540.3.0                Driver Version: N/A          CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
|   0  Orin (nvgpu)                  N/A  | N/A              N/A |                  N/A |
| N/A   N/A  N/A               N/A /  N/A | Not Supported        |     N/A          N/A |
|                                         |                      |                  N/A |
"""
VIRTUAL_HOST = """\
| NVIDIA-SMI 550.90.05              Driver Version: 550.90.05      CUDA Version: N/A      |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA A16                     On  |   00000000:3B:00.0 Off |                    0 |
|  0%   40C    P8             15W /   62W |       0MiB /  15356MiB |      0%      Default |
|                                         |                        |                  N/A |
"""
ERRORS = """\
| NVIDIA-SMI 535.54.03              Driver Version: 535.54.03    CUDA Version: 12.2     |
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
|   0  NVIDIA GeForce RTX 3090        Off | 00000000:01:00.0 Off |                  N/A |
| 30%   42C    P8              36W / 350W |      0MiB / 24576MiB |      0%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
|   1  NVIDIA GeForce RTX 3090        Off | 00000000:02:00.0 Off |                 ERR! |
|ERR!  ERR! ERR!             N/A /  ERR! |  GPU is lost         |    ERR!         ERR! |
|                                         |                      |                 ERR! |
+-----------------------------------------+----------------------+----------------------+
|   2  ERR!                           ERR!| 00000000:03:00.0 ERR!|                 ERR! |
|ERR!  ERR! ERR!             N/A /  ERR! |  GPU is lost         |    ERR!         ERR! |
|                                         |                      |                 ERR! |
"""

CASES: list[tuple[str, dict[str, Any]]] = [
    (
        OLD,
        {
            "usable": True,
            "driver_version": "331.113",
            "cuda_version": None,
            "gpus": [
                {"index": 0, "bus_id": "0000:03:00.0", "name": "Tesla K20m"},
                {"index": 1, "bus_id": "0000:04:00.0", "name": "GeForce GTX 690", "error": True},
            ],
        },
    ),
    (
        WINDOWS,
        {
            "usable": True,
            "driver_version": "460.15",
            "gpus": [{"index": 0, "bus_id": "00000000:01:00.0", "name": "GeForce RTX 207...", "name_truncated": True}],
        },
    ),
    (
        WSL,
        {
            "driver_version": "555.99",
            "smi_version": "555.52.01",
            "wsl": True,
            "cuda_version": "12.5",
            "gpus": [
                {
                    "index": 0,
                    "bus_id": "00000000:01:00.0",
                    "name": "NVIDIA GeForce RTX 4070 ...",
                    "name_truncated": True,
                    "mig": "N/A",
                }
            ],
        },
    ),
    (VIRTUAL_HOST, {"vgpu_host": True, "cuda_version": None, "driver_version": "550.90.05"}),
    (
        'NVIDIA-SMI version  : 610.57.04\nNVML version        : 610.57\nDRIVER version      : Deprecated, see "KMD version" instead\nCUDA version        : Deprecated, see "CUDA UMD version" instead\nKMD version         : 610.57.04\nCUDA UMD version    : 13.3\n',
        {"usable": True, "driver_version": "610.57.04", "cuda_version": "13.3", "gpus": []},
    ),
    (
        "Failed to initialize NVML: Driver/library version mismatch\n",
        {"usable": False, "gpus": [], "driver_version": None, "state": "driver_library_mismatch"},
    ),
    (
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\nexit status 18",
        {
            "usable": False,
            "gpus": [],
            "driver_version": None,
            "state": "driver_library_mismatch",
            "nvml_library_version": "550.54",
            "exit_code": 18,
        },
    ),
    (
        "Unable to determine the device handle for GPU 0000:02:00.0: Unknown Error\n",
        {"usable": False, "gpus": [], "driver_version": None, "state": "gpu_lost", "bus_id": "0000:02:00.0"},
    ),
    (
        "Unable to determine the device handle for GPU0: 0000:01:00.0: GPU is lost.  Reboot the system to recover this GPU",
        {"usable": False, "gpus": [], "driver_version": None, "state": "gpu_lost", "bus_id": "0000:01:00.0"},
    ),
    (
        "Unable to determine the device handle for GPU 0000:0B:00.0: Unable to communicate with GPU because it is insufficiently powered.\nThis may be because not all required external power cables are\nattached",
        {"usable": False, "gpus": [], "driver_version": None, "state": "gpu_power_cable", "bus_id": "0000:0B:00.0"},
    ),
    (
        "Unable to determine the device handle for GPU0000:3B:00.0: GPU requires reset\n",
        {"usable": False, "gpus": [], "driver_version": None, "state": "gpu_reset_required", "bus_id": "0000:3B:00.0"},
    ),
    (
        "bash: nvidia-smi: command not found",
        {"usable": False, "gpus": [], "driver_version": None, "state": "smi_missing"},
    ),
    ("sh: 1: nvidia-smi: not found", {"usable": False, "gpus": [], "driver_version": None, "state": "smi_missing"}),
    (
        "Command 'nvidia-smi' not found, but can be installed with:\nsudo apt install nvidia-utils-510",
        {"usable": False, "gpus": [], "driver_version": None, "state": "smi_missing"},
    ),
    (
        "zsh: command not found: nvidia-smi",
        {"usable": False, "gpus": [], "driver_version": None, "state": "smi_missing"},
    ),
    (
        "-bash: /usr/bin/nvidia-smi: No such file or directory",
        {"usable": False, "gpus": [], "driver_version": None, "state": "smi_missing"},
    ),
    ("No devices found.", {"usable": False, "gpus": [], "driver_version": None, "state": "no_devices"}),
    (
        "Failed to initialize NVML: GPU access blocked by the operating system\nFailed to properly shut down NVML: GPU access blocked by the operating system",
        {"usable": False, "gpus": [], "driver_version": None, "state": "gpu_access_blocked"},
    ),
    (
        'Field "compute_cap" is not a valid field to query.\n',
        {"usable": False, "gpus": [], "driver_version": None, "state": "bad_query"},
    ),
    (
        "NVIDIA-SMI has failed because it couldn't\ncommunicate with the NVIDIA driver.\n\nFailed to properly shut down NVML: Driver Not Loaded",
        {"usable": False, "gpus": [], "driver_version": None, "state": "driver_not_loaded"},
    ),
    (
        "Failed to initialize NVML: Insufficient Permissions",
        {"usable": False, "gpus": [], "driver_version": None, "state": "insufficient_permissions"},
    ),
    (
        "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.1.0\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
        {"usable": False, "gpus": [], "driver_version": None, "state": "driver_not_loaded", "module_found": False},
    ),
    (
        '{"rc": 9, "stdout": "NVIDIA-SMI has failed because it couldn\'t communicate with the NVIDIA driver."}',
        {"usable": False, "gpus": [], "driver_version": None, "state": "driver_not_loaded", "exit_code": 9},
    ),
    (
        "GPU 0000:3B:00.0: A GPU reset must occur before",
        {"usable": False, "gpus": [], "driver_version": None, "state": "gpu_reset_required"},
    ),
    (
        "Unable to determine the device handle for gpu 0000:05:00.0: GPU is lost.  Reboot\nGPU 1: NVIDIA A100 (UUID: GPU-07d3b36c-505b-dd8f-4ed3-d99ebbb3a32a)",
        {"usable": True, "bus_id": "0000:05:00.0"},
    ),
    ("name\nNVIDIA L4\nNVIDIA L4\n", {"gpus": [{"name": "NVIDIA L4"}, {"name": "NVIDIA L4"}], "usable": True}),
    ("NVIDIA L4\nNVIDIA L4\n", {"gpus": [{"name": "NVIDIA L4"}, {"name": "NVIDIA L4"}], "usable": True}),
    ("550.54.14\n550.54.14\n", {"driver_version": "550.54.14", "usable": True}),
    ("driver_version\n550.54.14\n", {"driver_version": "550.54.14", "usable": True}),
    (
        "index, uuid, name, pci.bus_id, memory.total [MiB], power.default_limit [W]\r\n0, GPU-1, NVIDIA A2, 00000000:17:00.0, 15356 MiB, [N/A]\r\n",
        {
            "usable": True,
            "gpus": [
                {
                    "index": 0,
                    "uuid": "GPU-1",
                    "name": "NVIDIA A2",
                    "bus_id": "00000000:17:00.0",
                    "memory_total": "15356 MiB",
                    "power_default_limit": None,
                }
            ],
        },
    ),
    (
        "0, NVIDIA H100 80GB HBM3, GPU-07d3b36c-505b-dd8f-4ed3-d99ebbb3a32a, 535.104.12, 81559, 8.0, Disabled",
        {
            "usable": True,
            "driver_version": "535.104.12",
            "gpus": [
                {
                    "index": 0,
                    "name": "NVIDIA H100 80GB HBM3",
                    "uuid": "GPU-07d3b36c-505b-dd8f-4ed3-d99ebbb3a32a",
                    "compute_cap": "8.0",
                    "memory_total": "81559",
                }
            ],
        },
    ),
    (
        "uuid, name, mig.mode.current\nGPU-1, NVIDIA A100, Enabled\n",
        {"gpus": [{"uuid": "GPU-1", "name": "NVIDIA A100", "mig_mode_current": "Enabled"}]},
    ),
    (
        "driver_version, name\n[Requested functionality has been deprecated], X\n",
        {"driver_version": None, "gpus": [{"name": "X"}], "usable": True},
    ),
    (
        "GPU 0: Tesla C2050 (S/N: 0320210012345)\n",
        {"gpus": [{"index": 0, "name": "Tesla C2050", "uuid": "0320210012345"}]},
    ),
    (
        "GPU 0: Orin (nvgpu) (UUID: 54ebd2a4-0000)",
        {"tegra": True, "gpus": [{"index": 0, "name": "Orin (nvgpu)", "uuid": "54ebd2a4-0000"}]},
    ),
    (
        "gpu01: GPU 0: NVIDIA L4 (UUID: GPU-fdf0a45f-57e4-85b6-7619-78dd1e2ed6cb)\ngpu01: GPU 1: NVIDIA L4 (UUID: GPU-fdf0a45f-57e4-85b6-7619-78dd1e2ed6cc)",
        {"mig_devices": 0},
    ),
    (
        "\n==============NVSMI LOG==============\nTimestamp                       : Tue Feb  5 2013\nDriver Version                  : 304.54\n\nAttached GPUs                   : 1\nGPU 0000:06:00.0\n    Product Name                : Tesla M2090\n    GPU UUID                    : GPU-aaaaaaaa-1\n",
        {
            "driver_version": "304.54",
            "cuda_version": None,
            "attached_gpus": 1,
            "gpus": [{"bus_id": "0000:06:00.0", "name": "Tesla M2090", "uuid": "GPU-aaaaaaaa-1"}],
        },
    ),
    (
        '<?xml version="1.0" ?>\n<nvidia_smi_log>\n<timestamp>x</timestamp><driver_version>N/A</driver_version></nvidia_smi_log>',
        {"driver_version": None},
    ),
    (
        "<nvidia_smi_log><driver_version>Deprecated, see KMD</driver_version><kmd_version>610.57.04</kmd_version><cuda_version>Deprecated</cuda_version><cuda_umd_version>13.3</cuda_umd_version><attached_gpus>0</attached_gpus></nvidia_smi_log>",
        {"driver_version": "610.57.04", "cuda_version": "13.3", "usable": True, "attached_gpus": 0},
    ),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_reading(text: str, expected: dict[str, Any]) -> None:
    answer = smi.read(text)
    assert {key: answer.get(key) for key in expected} == expected


VIRTUAL = {
    "driver_version": "550.90.05",
    "cuda_version": None,
    "vgpu_host": True,
    "gpus": [{"index": 0, "bus_id": "00000000:3B:00.0", "name": "NVIDIA A16", "mig": "N/A"}],
}


@pytest.mark.parametrize(
    "text",
    [
        VIRTUAL_HOST,
        VIRTUAL_HOST.replace("CUDA Version: N/A      |", "CUDA Version: Not Found |"),
        VIRTUAL_HOST.replace("\n", "\r\n"),
        VIRTUAL_HOST * 3,
        VIRTUAL_HOST + "WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n",
        *["\n".join(mark + line for line in VIRTUAL_HOST.splitlines()) for mark in ("node1: ", "> ", "\x1b[1m")],
        json.dumps(VIRTUAL_HOST),
        json.dumps({"changed": True, "rc": 0, "stdout_lines": VIRTUAL_HOST.splitlines()}, indent=4),
    ],
    ids=range(10),
)
def test_a_table_in_any_wrapping(text: str) -> None:
    answer = smi.read(text)
    assert {key: answer.get(key) for key in VIRTUAL} == VIRTUAL


def test_a_jetson_board_is_recognised() -> None:
    answer = smi.read(JETSON)
    assert answer["tegra"] and answer["gpus"][0]["bus_id"] is None
    assert "vgpu_host" not in smi.read(JETSON.replace("CUDA Version: 12.2", "CUDA Version: N/A "))


def test_a_gpu_that_does_not_answer_is_marked() -> None:
    answer = smi.read(ERRORS)
    assert answer["usable"]
    assert [gpu.get("error", False) for gpu in answer["gpus"]] == [False, True, True]


def test_state_by_exit_status_without_text() -> None:
    assert smi.state(9, "") == "driver_not_loaded"
    assert smi.state(99, "") == "unknown"
    assert messages.explain("nvidia-smi", "GPU 0: NVIDIA L4 (UUID: GPU-1)") == []


def test_a_very_old_table_has_another_number_for_the_program_and_is_not_wsl() -> None:
    text = "| NVIDIA-SMI 4.304.54   Driver Version: 304.54         |\n|   0  Tesla M2090              | 0000:06:00.0     Off |                    0 |\n"
    found = smi.read(text)
    assert (found["driver_version"], found["smi_version"]) == ("304.54", "4.304.54")
    assert "wsl" not in found and found["gpus"][0]["name"] == "Tesla M2090"


def test_a_row_without_any_value_is_a_gpu_with_an_error() -> None:
    text = "| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2 |\n|   1  Unknown Error        Off |Unknown Error     Off |        Unknown Error |\n"
    (gpu,) = smi.read(text)["gpus"]
    assert gpu["index"] == 1 and gpu["error"] and gpu["bus_id"] is None


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("fish: Unknown command: nvidia-smi", "smi_missing"),
        ("bash: /usr/bin/nvidia-smi: Permission denied", "insufficient_permissions"),
    ],
)
def test_messages_of_shells(text: str, state: str) -> None:
    assert smi.read(text)["state"] == state


def test_a_list_names_the_missing_gpu() -> None:
    text = "Unable to determine the device handle for gpu 0000:04:00.0: GPU is lost.\nGPU 1: NVIDIA A40 (UUID: GPU-1)\n"
    answer = explain_messages.read_smi(text)
    assert answer["usable"] and [problem["code"] for problem in answer["problems"]] == ["gpu_lost"]
    assert "0000:04:00.0, which the list does not show" in " ".join(explain_messages.describe_smi(answer))


QUERY = """\
==============NVSMI LOG==============

Driver Version                                         : 580.82.07
CUDA Version                                           : 13.0
Attached GPUs                                          : 1
GPU 00000000:41:00.0
    Product Name                                       : NVIDIA H100 80GB HBM3
    Display Mode                                       : Requested functionality has been deprecated
    MIG Mode
        Current                                        : Disabled
        Pending                                        : Disabled
    GPU UUID                                           : GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee
    GPU Reset Status
        Reset Required                                 : No
        Drain and Reset Recommended                    : No
    GPU Recovery Action                                : None
    vGPU Software Licensed Product
        Product Name                                   : NVIDIA Virtual Applications
        License Status                                 : Licensed (Expiry: N/A)
    Clocks Event Reasons
        HW Slowdown                                    : Not Active
            HW Thermal Slowdown                        : Not Active
    ECC Mode
        Current                                        : Enabled
        Pending                                        : Enabled
    ECC Errors
        Volatile
            SRAM Correctable                           : 0
            SRAM Uncorrectable Parity                  : 0
            DRAM Uncorrectable                         : 0
        Aggregate
            DRAM Uncorrectable                         : 3
            SRAM Threshold Exceeded                    : No
    Retired Pages
        Pending Page Blacklist                         : N/A
    Remapped Rows
        Correctable Error                              : 0
        Uncorrectable Error                            : 1
        Pending                                        : No
        Remapping Failure Occurred                     : No
    Fabric
        State                                          : Completed
        Status                                         : Success
        Health
            Summary                                    : Healthy
            Bandwidth                                  : Full
            Route Unhealthy                            : False
            Incorrect Configuration                    : None
    Processes                                          : None
"""
XML = """\
<?xml version="1.0" ?>
<nvidia_smi_log>
<driver_version>580.82.07</driver_version>
<cuda_version>13.0</cuda_version>
<attached_gpus>2</attached_gpus>
<gpu id="00000000:41:00.0">
<product_name>NVIDIA H100 80GB HBM3</product_name>
<uuid>GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee</uuid>
<gpu_reset_status><reset_required>No</reset_required>
<drain_and_reset_recommended>No</drain_and_reset_recommended></gpu_reset_status>
<gpu_recovery_action>None</gpu_recovery_action>
<remapped_rows><remapped_row_pending>No</remapped_row_pending>
<remapped_row_failure>No</remapped_row_failure></remapped_rows>
<fabric><state>Completed</state><status>Success</status><health><summary>Healthy</summary></health></fabric>
</gpu>
<gpu id="00000000:61:00.0"><product_name>NVIDIA H100 80GB HBM3</product_name></gpu>
</nvidia_smi_log>
"""


def changed(text: str, name: str, value: str) -> str:
    """A text of -q or XML in which the first field of a name has another value."""
    found = re.sub(rf"(?m)^( *{re.escape(name)} +: ).*$|(<{name}>)[^<]*", rf"\g<1>\g<2>{value}", text, count=1)
    assert found != text
    return found


@pytest.mark.parametrize("text", [QUERY, XML, QUERY.replace("\n", "\r\n"), re.sub(r"(?m)^ +", "", QUERY)])
def test_the_full_answer_of_healthy_gpus_has_no_problem(text: str) -> None:
    assert smi.read(text)["usable"] and messages.explain("nvidia-smi", text) == []


@pytest.mark.parametrize(
    ("text", "name", "value", "code"),
    [
        (QUERY, "Reset Required", "Yes", "gpu_reset_required"),
        (QUERY, "GPU Recovery Action", "Reset", "gpu_reset_required"),
        (QUERY, "GPU Recovery Action", "Reboot", "gpu_reboot_required"),
        (QUERY, "GPU Recovery Action", "Drain P2P", "gpu_drain_p2p"),
        (QUERY, "GPU Recovery Action", "Drain and Reset", "gpu_drain_and_reset"),
        (QUERY, "GPU Recovery Action", "Recover IMEX Domain", "gpu_recover_imex"),
        (QUERY, "GPU Recovery Action", "Bus Reset", "gpu_bus_reset"),
        (QUERY, "GPU Recovery Action", "System Reboot", "gpu_reboot_required"),
        (QUERY, "GPU Recovery Action", "Move It", "gpu_recovery_action"),
        (QUERY, "Drain and Reset Recommended", "Yes", "gpu_drain_and_reset"),
        (QUERY, "Remapping Failure Occurred", "Yes", "memory_unrepairable"),
        (QUERY, "SRAM Threshold Exceeded", "Yes", "memory_unrepairable"),
        (QUERY, "SRAM Uncorrectable Parity", "2", "memory_errors"),
        (QUERY, "State", "In Progress", "fabric_not_ready"),
        (QUERY, "Status", "Insufficient Resources", "fabric_failed"),
        (QUERY, "Summary", "Unhealthy", "fabric_unhealthy"),
        (QUERY, "Summary", "Limited Capacity", "fabric_unhealthy"),
        (QUERY, "Bandwidth", "Degraded", "fabric_unhealthy"),
        (QUERY, "License Status", "Unlicensed (Restricted)", "vgpu_unlicensed"),
        (QUERY, "HW Thermal Slowdown", "Active", "hardware_slowdown"),
        (QUERY, "Product Name", "GPU is lost", "gpu_lost"),
        (QUERY, "Product Name", "Unknown Error", "gpu_lost"),
        (QUERY, "Pending", "Enabled", "mode_change_pending"),
        (QUERY, "Pending Page Blacklist", "Yes", "repair_pending"),
        (XML, "reset_required", "Yes", "gpu_reset_required"),
        (XML, "gpu_recovery_action", "Reboot", "gpu_reboot_required"),
        (XML, "remapped_row_pending", "Yes", "repair_pending"),
        (XML, "summary", "Unhealthy", "fabric_unhealthy"),
        (XML, "state", "Not Started", "fabric_not_ready"),
        (XML, "product_name", "GPU is lost", "gpu_lost"),
    ],
)
def test_a_value_that_needs_attention(text: str, name: str, value: str, code: str) -> None:
    (found,) = messages.explain("nvidia-smi", changed(text, name, value))
    assert found.code == code and found.detail == "00000000:41:00.0" and "00000000:41:00.0" in found.cause
    shown = changed(text, name, value).splitlines()
    assert found.line and any(value in line for line in shown[found.line - 1 : found.line + 1])


def test_row_remapping_that_waits_for_a_reset() -> None:
    text = QUERY.replace("Uncorrectable Error                            : 1\n        Pending                                        : No",
                         "Uncorrectable Error                            : 1\n        Pending                                        : Yes")  # fmt: skip
    (found,) = messages.explain("nvidia-smi", text)
    assert found.code == "repair_pending" and "idle" in found.remedy


def test_a_lost_gpu_of_the_xml_is_marked() -> None:
    text = changed(XML, "product_name", "GPU is lost")
    first, second = smi.read(text)["gpus"]
    assert first["error"] and first["name"] is None and "error" not in second


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (
            "Unable to determine the device handle for GPU 0000:41:00.0: Unknown Error\nNo devices were found\n",
            ["gpu_lost"],
        ),
        ("Unable to determine the device handle for GPU0000:41:00.0: Not Found\n", ["gpu_not_initialized"]),
        ("Unable to determine the device handle for GPU0: 0000:41:00.0: Timeout\n", ["gpu_handle_failed"]),
        ("WARNING: infoROM is corrupted at gpu 0000:41:00.0\n", ["inforom_corrupted"]),
        (
            "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service\nNVIDIA-SMI has failed because it"
            " couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed",
            ["secure_boot_key_rejected", "driver_not_loaded"],
        ),
        (
            "$ docker exec -it train nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\n",
            ["driver_library_mismatch_in_container"],
        ),
        (
            "root@0123456789ab:/workspace# nvidia-smi\nFailed to initialize NVML: Driver/library version mismatch\n",
            ["driver_library_mismatch_in_container"],
        ),
        ("Failed to initialize NVML: Driver/library version mismatch\n", ["driver_library_mismatch"]),
        (VIRTUAL_HOST + "WARNING: infoROM is corrupted at gpu 0000:3B:00.0\n", ["inforom_corrupted"]),
        ("GPU 00000000:02:00.0 is currently being used by one or more other processes", ["gpu_in_use"]),
    ],
)
def test_messages_in_their_order(text: str, codes: list[str]) -> None:
    assert [found.code for found in messages.explain("nvidia-smi", text)] == codes


def test_a_damaged_info_rom_leaves_the_answer_good() -> None:
    answer = explain_messages.read_smi("WARNING: infoROM is corrupted at gpu 0000:41:00.0\n")
    assert answer["bus_id"] == "0000:41:00.0" and answer["state"] == "inforom_corrupted"
    assert "answer of nvidia-smi is good" in " ".join(explain_messages.describe_smi(answer))


def test_the_state_of_a_host_with_secure_boot() -> None:
    answer = smi.read(
        "could not insert 'nvidia': Key was rejected by service\nNVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    )
    assert answer["state"] == "driver_not_loaded"


def test_the_mig_part_of_the_table_alone() -> None:
    text = """\
+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
| GPU  GI  CI  MIG |                   Memory-Usage |        Vol|      Shared           |
|      ID  ID  Dev |                     BAR1-Usage | SM     Unc| CE ENC DEC OFA JPG    |
|  0    1   0   0  |              37MiB / 40192MiB  | 60      0 |  3   0    3    0    3 |
|                  |               0MiB /     0MiB  |           |                       |
|  0    5   0   1  |              25MiB / 19968MiB  | 30      0 |  2   0    2    0    2 |
+------------------+--------------------------------+-----------+-----------------------+
"""
    answer = smi.read(text)
    assert answer["usable"] and answer["mig_devices"] == 2 and answer["gpus"] == [{"index": 0, "mig": "Enabled"}]


def test_csv_of_a_jetson_board_without_a_header() -> None:
    answer = smi.read("Orin (nvgpu), [N/A], 540.4.0, [N/A]\n")
    assert answer["tegra"] and answer["gpus"][0]["name"] == "Orin (nvgpu)"


MATRIX = """\
\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV18\tPIX\t0-51\t0\t\tN/A
GPU1\tNV18\t X \tSYS\t52-103\t1\t\tN/A

Legend:
  X    = Self
"""


def test_a_topology_is_not_read_as_an_answer() -> None:
    answer = smi.read(MATRIX)
    assert not answer["usable"] and answer["gpus"] == [] and messages.explain("nvidia-smi", MATRIX) == []


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("index, gpu_recovery_action\n0, None\n1, Reset\n2, None", ["gpu_reset_required"]),
        (
            "index, uuid, remapped_rows.pending, remapped_rows.failure\n0, GPU-1, Yes, No\n1, GPU-2, No, Yes",
            ["memory_unrepairable", "repair_pending"],
        ),
        ("pci.bus_id, fabric.state, fabric.status\n00000000:43:00.0, In Progress, N/A", ["fabric_not_ready"]),
        ("pci.bus_id, name, fabric.state\n00000000:43:00.0, NVIDIA L4, [N/A]", []),
        ("Unable to detect the device handle for GPU0000:B1:00.0: Unknown Error", ["gpu_lost"]),
        ("GPU Reset couldn't run because GPU 00000000:01:00.0 is the primary GPU.", ["reset_refused"]),
        ("Unable to enable MIG Mode for GPU 00000000:01:00.0: Not Supported", ["setting_refused"]),
        ("Failed to initialize NVML: Not Found", ["nvml_failed"]),
        ("No MIG-enabled devices found.", ["no_mig_devices"]),
    ],
)
def test_answers_to_queries_and_settings(text: str, codes: list[str]) -> None:
    assert [found.code for found in messages.explain("nvidia-smi", text)] == codes
