"""PCI functions in the output of lshw, hwinfo, udevadm, ubuntu-drivers, and in lines without a slot."""

from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.explain import cli as explain

LSHW = """\
  *-display:0 UNCLAIMED
       description: 3D controller
       product: GP102GL [Tesla P40]
       vendor: NVIDIA Corporation
       physical id: 0
       bus info: pci@0000:3b:00.0
       version: a1
       configuration: latency=0
       resources: iomemory:383f0-383ef memory:9a000000-9affffff
  *-display:1
       description: VGA compatible controller
       product: AD102GL [L40S] [10DE:26B9]
       vendor: NVIDIA Corporation [10DE]
       bus info: pci@0000:86:00.0
       configuration: driver=nvidia latency=0
  *-network
       description: Ethernet controller
       vendor: Intel Corporation
       bus info: pci@0000:01:00.0
       configuration: driver=ice
"""
HWINFO = """\
23: PCI 3b00.0: 0302 3D controller
  [Created at pci.386]
  Unique ID: VCu0.x
  SysFS ID: /devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0
  SysFS BusID: 0000:3b:00.0
  Hardware Class: graphics card
  Model: "nVidia GP102GL [Tesla P40]"
  Vendor: pci 0x10de "nVidia Corporation"
  Device: pci 0x1b38 "GP102GL [Tesla P40]"
  SubVendor: pci 0x10de "nVidia Corporation"
  SubDevice: pci 0x11d9
  Driver: "nvidia"
  Driver Modules: "nvidia"

Primary display adapter: #23
"""
UDEVADM = """\
P: /devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0
E: DEVPATH=/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0
E: SUBSYSTEM=pci
E: DRIVER=nvidia
E: PCI_CLASS=30200
E: PCI_ID=10DE:1B38
E: PCI_SUBSYS_ID=10DE:11D9
E: PCI_SLOT_NAME=0000:3b:00.0
E: MODALIAS=pci:v000010DEd00001B38sv000010DEsd000011D9bc03sc02i00
E: ID_VENDOR_FROM_DATABASE=NVIDIA Corporation
E: ID_MODEL_FROM_DATABASE=GP102GL [Tesla P40]
"""
UBUNTU = """\
== /sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0 ==
modalias : pci:v000010DEd00001B38sv000010DEsd000011D9bc03sc02i00
vendor   : NVIDIA Corporation
model    : GP102GL [Tesla P40]
driver   : nvidia-driver-580 - distro non-free recommended
driver   : xserver-xorg-video-nouveau - distro free builtin
"""
P40 = {"slot": "0000:3b:00.0", "class_name": "3D controller", "name": "GP102GL [Tesla P40]"}


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        (
            LSHW,
            [
                dict(P40, device_id=None, driver_in_use=""),
                {"slot": "0000:86:00.0", "device_id": "26b9", "name": "AD102GL [L40S]", "driver_in_use": "nvidia"},
            ],
        ),
        (HWINFO, [dict(P40, device_id="1b38", class_id="0302", driver_in_use="nvidia")]),
        (UDEVADM, [dict(P40, device_id="1b38", class_id="0302", driver_in_use="nvidia")]),
        (UBUNTU, [dict(P40, device_id="1b38", class_id="0302")]),
        ("pci:v000010DEd00001B38sv000010DEsd000011D9bc03sc02i00\n", [{"slot": None, "device_id": "1b38"}]),
        (
            "IOMMU Group 12 3b:00.0 3D controller [0302]: NVIDIA Corporation GP102GL [Tesla P40] [10de:1b38] (rev a1) Driver: vfio-pci\n",
            [{"slot": "3b:00.0", "device_id": "1b38", "driver_in_use": "vfio-pci"}],
        ),
    ],
    ids=["lshw", "hwinfo", "udevadm", "ubuntu-drivers", "modalias", "grouped"],
)  # fmt: skip
def test_gpus_in_the_output_of_other_tools(text: str, gpus: list[dict[str, Any]]) -> None:
    answer = explain.KINDS["lspci"].read(text.encode())
    rows = [{key: row.get(key) for key in expected} for row, expected in zip(answer["nvidia_gpus"], gpus, strict=True)]
    assert rows == gpus and answer["other_display"] == []
    assert all(row["line"] for row in answer["nvidia_gpus"])
    assert "form" not in answer


def test_a_number_without_a_line_of_lspci_is_not_called_absence() -> None:
    text = "NVIDIA Corporation GB203M / GN22 [GeForce RTX 5090 Max-Q / Mobile] [10de:2c18] (rev a1)\n"
    kind = explain.KINDS["lspci"]
    answer = kind.read(text.encode())
    assert [row["device_id"] for row in answer["named_ids"]] == ["2c18"]
    shown = " ".join(kind.describe(answer))
    assert "10de:2c18" in shown and "no NVIDIA GPU" not in shown


def test_a_text_without_functions_says_nothing_about_gpus() -> None:
    kind = explain.KINDS["lspci"]
    shown = " ".join(kind.describe(kind.read(b"a mail about something else\n")))
    assert "no line of lspci" in shown and "no NVIDIA GPU" not in shown
    shown = " ".join(kind.describe(kind.read(b"00:1f.0 ISA bridge: Intel Corporation C621 (rev 09)\n")))
    assert "no NVIDIA GPU" in shown
