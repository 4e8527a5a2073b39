"""PCI functions: sysfs of a host, and every form of lspci that people paste."""

import textwrap
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.hardware import pci
from plugins.plugin_utils.gpu_ready.explain import lspci
from tests.unit.recorded import RecordedHost

S = "/sys/bus/pci/devices/"


def function(address: str, vendor: str, device: str, kind: str) -> dict[str, str]:
    return {
        f"{S}{address}/vendor": f"0x{vendor}\n",
        f"{S}{address}/device": f"0x{device}\n",
        f"{S}{address}/class": f"0x{kind}\n",
    }


def test_sysfs_counts_cards_and_nothing_else() -> None:
    files = (
        function("0000:02:00.0", "1a03", "2000", "030000")
        | function("0000:3b:00.0", "10de", "1e84", "030000")
        | function("0000:3b:00.1", "10de", "10f8", "040300")
        | function("0000:3b:00.2", "10de", "1ad8", "0c0330")
        | function("0000:3b:00.3", "10de", "1ad9", "0c8000")
        | function("0000:41:00.0", "10de", "20b5", "030200")
        | function("0000:41:00.4", "10de", "20b5", "030200")
        | function("0000:51:00.0", "10de", "22a3", "068000")
        | function("0000:61:00.0", "15b3", "a2d6", "020000")
        | {f"{S}0000:71:00.0/vendor": "garbage"}
    )
    links = {
        f"{S}0000:41:00.4/physfn": "../0000:41:00.0",
        f"{S}0000:41:00.0/driver": "../../../bus/pci/drivers/vfio-pci",
    }
    found = pci.read_sysfs(RecordedHost(files=files, links=links))
    assert [(f.address, f.driver) for f in pci.gpus(found)] == [("0000:3b:00.0", None), ("0000:41:00.0", "vfio-pci")]
    assert [f.address for f in pci.nvswitches(found)] == ["0000:51:00.0"]
    words = {f.address[-4:]: pci.what(f) for f in found if f.vendor == "10de" and f.address.startswith("0000:3b")}
    assert words == {"00.0": "gpu", "00.1": "audio", "00.2": "usb", "00.3": "ucsi"}


def configuration(place: int, capability: bytes) -> bytes:
    """Return a function's configuration space with one capability behind that of MSI."""
    space = bytearray(256)
    space[0x06], space[0x34], space[0x60:0x62] = 0x10, 0x60, bytes([0x05, place])
    space[place : place + len(capability)] = capability
    return bytes(space)


GUEST = b"\x09\x00\x1bVF" + b"\x00\x16" + b"550.163.01" + b"r550_00\0\0\0"
OTHER_RECORD_FIRST = b"\x09\x00\x1fVF" + b"\x01\x04ab" + GUEST[5:]


@pytest.mark.parametrize(
    ("space", "expected"),
    [
        (configuration(0xC0, GUEST), "550.163.01"),
        (configuration(0xC0, OTHER_RECORD_FIRST), "550.163.01"),
        (configuration(0xC0, GUEST[:5] + b"\x01\x00"), ""),  # a record without length
        (configuration(0xFC, b"\x09\x00\x14V"), None),  # cut off at the end
        (configuration(0xC0, b"\x09\x00\x14\x01\x00"), None),  # of a complete card passed to a guest
        (configuration(0x60, b"\x05\x60"), None),  # a ring
        (b"\xff" * 256, None),  # fallen off the bus
        (b"\x00" * 64, None),  # all that an unprivileged user may read
        (None, None),
    ],
)
def test_virtual_gpu_by_its_configuration_space(space: bytes | None, expected: str | None) -> None:
    """A guest of NVIDIA vGPU sees the card's own device id: only a capability of NVIDIA's distinguishes the two."""
    files = {} if space is None else {f"{S}0000:02:00.0/config": space}
    assert pci.vgpu(pci.read_config(RecordedHost(files=files), "0000:02:00.0")) == expected


HEAD = "NVIDIA Corporation GP102GL [Tesla P40] [10de:1b38] (rev a1)"
P40 = {
    "slot": "3b:00.0",
    "class_name": "3D controller",
    "class_id": "0302",
    "device_id": "1b38",
    "name": "GP102GL [Tesla P40]",
}
FORMS = {
    "node03: 3b:00.0 3D controller [0302]: " + HEAD: P40,
    "  - 3b:00.0 3D controller [0302]: " + HEAD: P40,
    "| 3b:00.0 | 3D controller [0302]: " + HEAD + " |": P40,
    "* `3b:00.0 3D controller [0302]: " + HEAD + "`": P40,
    '"3b:00.0 3D controller [0302]: ' + HEAD + '",': P40,
    "\ufeff3b:00.0 3D controller [0302]: " + HEAD + "\r\n": P40,
    "\tGroup 12:  [10de:1b38] 3b:00.0 3D controller [0302]: " + HEAD: P40,
    "3b:00.0 3D controller [0302]: NVIDIA Corporation\nGP102GL [Tesla P40] [10de:1b38] (rev a1)": P40,
    "3b:00.0 3D controller [0302]: NVIDIA Corporation GP102GL [Tesla\n  P40] [10de:1b38] (rev a1)": P40,
    "3b:00.0 3D controller [0302]: NVIDIA Corporation GP102GL [Tesla P40]\n[10de:1b38] (rev a1)": P40,
    "3b:00.0 3D controller [0302]: nVidia Corporation GP102GL [Tesla P40] [10de:1b38] (rev a1) (prog-if 00 [VGA])": P40,
    '3b:00.0 "3D controller [0302]" "NVIDIA Corporation [10de]" "GP102GL [Tesla P40] [1b38]" -ra1 "" ""': P40,
    '3b:00.0 "0302" "10de" "1b38" -ra1 "10de" "11d9"': P40 | {"name": None},
    "3b:00.0 0302: 10de:1b38 (rev a1)": P40 | {"name": None},
    "3b:00.0 Class 0302: 10de:1b38 (rev a1)": P40 | {"name": None},
    "0000:3b:00.0 0302: 10DE:1B38": P40 | {"name": None, "slot": "0000:3b:00.0"},
    "Slot: 3b:00.0\nClass: 0302\nVendor: 10de\nDevice: 1b38": P40 | {"name": None},
    "Device:\t3b:00.0\nClass:\t3D controller [0302]\nVendor:\tNVIDIA Corporation [10de]\nDevice:\tGP102GL [Tesla P40] [1b38]": P40,
    "3D controller [0302]: " + HEAD: P40 | {"slot": None},
    "3b:00.0 3D controller: NVIDIA Corporation Device 1b38 (rev a1)": P40 | {"class_id": None, "name": "Device 1b38"},
    "[    0.61] pci 0000:3b:00.0: [10de:1b38] type 00 class 0x030200": P40
    | {"slot": "0000:3b:00.0", "name": None, "class_raw": "0x030200"},
    "> [    0.61] pci 0000:3b:00.0: [10de:1b38] type 00 class\n> 0x030200 PCIe Endpoint": P40
    | {"slot": "0000:3b:00.0", "name": None, "class_raw": "0x030200"},
    "0000:3b:00.0 0x10de 0x1b38 0x030200": P40 | {"slot": "0000:3b:00.0", "name": None, "class_raw": "0x030200"},
    "0000:3b:00.0: vendor=0x10de device=0x1b38 class=0x030200": P40
    | {"slot": "0000:3b:00.0", "name": None, "class_raw": "0x030200"},
    "0000:3b:00.0 10de:1b38 class=0x030200": P40 | {"slot": "0000:3b:00.0", "name": None, "class_raw": "0x030200"},
    "[    0.61] pci 0000:3b:00.0: found [10de:1b38] class 000302 header type 00": P40
    | {"slot": "0000:3b:00.0", "name": None, "class_raw": "0x000302"},
    "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:1B38\nPCI_SLOT_NAME=0000:3b:00.0\n": P40
    | {"slot": "0000:3b:00.0", "name": None, "class_raw": "0x030200", "driver_in_use": "nvidia"},
    "12:3b:00.0 3D controller [0302]: " + HEAD: P40,
    "lspci.txt:3b:00.0 3D controller [0302]: " + HEAD: P40,
    "2) 3D controller [0302]: " + HEAD: P40 | {"slot": None},
    'line: "3b:00.0 3D controller [0302]: NVIDIA Corporation GP102GL [Tesla P40] [10de:1b38]",\nok: false,': P40,
    'it says "3D controller [0302]: ' + HEAD + '".': P40 | {"slot": None},
    '"3b:00.0" "3D controller [0302]" "NVIDIA Corporation [10de]" "GP102GL [Tesla P40] [1b38]"': P40,
    "3b:00.0 3D controller [0302]: NVIDIA Corporation GP102GL [Tesla P40] [10de:1\nb38] (rev a1)": P40,
    "03:17:14.2 node: 3b:00.0 3D controller [0302]: " + HEAD: P40,
    "| 3b:00.0 | 3D controller [0302] | NVIDIA Corporation | GP102GL [Tesla P40] | 10de:1b38 |": P40,
    "3b:00.0, 3D controller [0302], " + HEAD: P40,
    "3b:00.0 3D controller [0302]: NVIDIA Corporation GP102GL [Tesla P40] [10de:1b38](rev a1) Subsystem: X [10de:11d9]": P40
    | {"driver_in_use": ""},
    "3b:00.0 3D controller [0302]: \x1b[01;31m\x1b[KNVIDIA\x1b[m\x1b[K Corporation GP102GL [Tesla P40] [10de:1b38]": P40,
    "3b:00.0 3D controller [0302]: NVIDIA Corporation GP102GL &#91;Tesla P40&#93; [10de:1b38]": P40,
    '["3b:00.0 \\"3D controller [0302]\\" \\"NVIDIA Corporation [10de]\\" \\"GP102GL [Tesla P40] [1b38]\\" -ra1 \\"\\" \\"\\""]': P40,
    '3b:00.0 "3D controller [0302]"\n"NVIDIA Corporation [10de]" "GP102GL [Tesla P40] [1b38]" -ra1 "" ""': P40,
    "3b:00.0 Class [0302]: Device [10de:1b38] (rev a1)": P40 | {"name": "Device"},
    "3b:00.0 Class 0302: 10de:1b38 nvidia": P40 | {"name": None, "driver_in_use": "nvidia"},
    '3b:00.0 "Class 0302" "10de" "1b38" "10de" "11d9"': P40 | {"name": None},
    "Slot:\t3b:00.0\nClass:\tClass 0302\nVendor:\tVendor 10de\nDevice:\tDevice 1b38": P40 | {"name": "Device 1b38"},
    "Class:\t3D controller [0302]\nVendor:\tNVIDIA Corporation [10de]\nDevice:\tGP102GL [Tesla P40] [1b38]": P40
    | {"slot": None},
    "3b:00.0 3D controller: nVidia Corporation Unknown device 1b38 (rev a1)": P40
    | {"class_id": None, "name": "Unknown device 1b38"},
    "/sys/bus/pci/devices/0000:3b:00.0/vendor:0x10de\n/sys/bus/pci/devices/0000:3b:00.0/device:0x1b38\n"
    "/sys/bus/pci/devices/0000:3b:00.0/class:0x030200": P40
    | {"slot": "0000:3b:00.0", "name": None, "class_raw": "0x030200"},
}  # fmt: skip


@pytest.mark.parametrize("text", FORMS)
def test_a_card_is_read_in_every_form(text: str) -> None:
    answer = lspci.parse_lspci(text).as_dict()
    assert answer["nvidia_gpus"] == [FORMS[text]]
    assert answer["nvidia_other"] == answer["other_display"] == []


@pytest.mark.parametrize(
    ("text", "driver"),
    [
        ("\tKernel driver in use: nvidia\n", "nvidia"),
        ("Kernel driver in use: nova_core\n", "nova_core"),
        ("\tKernel driver in\nuse: nouveau\n", "nouveau"),
        ("\tSubsystem: Dell Device [1028:1234]\n\tKernel modules: nvidiafb, nouveau\n", ""),
        ("\tSubsystem: NVIDIA Corporation Device [10de:1d80]\n", None),
        ("\tSubsystem: Dell Device [1028:1234]\n\tFlags: fast devsel, IRQ 10\n", ""),
        ("\tFlags: fast devsel\n--\n00:02.0 VGA compatible controller [0300]: Intel Corporation X [8086:1912]\n", None),
        ("\tSubsystem: Dell Device [1028:1234]\n", ""),
        ("\tKernel driver in use:\n\tKernel modules: nouveau\n", ""),
    ],
)
def test_driver_in_use_is_not_a_candidate_module(text: str, driver: Any) -> None:
    (row,) = lspci.parse_lspci("3b:00.0 3D controller [0302]: " + HEAD + "\n" + text).as_dict()["nvidia_gpus"]
    assert row.get("driver_in_use") == driver
    assert row["device_id"] == "1b38"


def test_lines_removed_by_grep_give_no_conclusion() -> None:
    text = "3b:00.0 3D controller: NVIDIA Corporation GP102GL [Tesla P40]\n\tKernel driver in use: nvidia\n"
    second = "5e:00.0 3D controller: NVIDIA Corporation GP102GL [Tesla P40]\n\tKernel modules: nvidiafb, nouveau\n"
    rows = lspci.parse_lspci(text + second).as_dict()["nvidia_gpus"]
    assert [row.get("driver_in_use") for row in rows] == ["nvidia", None]


def test_lines_in_the_text_of_a_result() -> None:
    text = '"stdout": "3b:00.0 0302: 10de:1b38 (rev a1)\\n5e:00.0 0302: 10de:1b38 (rev a1)"'
    assert [row["slot"] for row in lspci.parse_lspci(text).as_dict()["nvidia_gpus"]] == ["3b:00.0", "5e:00.0"]


def test_a_second_listing_of_a_host_adds_to_the_first() -> None:
    plain = "3b:00.0 3D controller: NVIDIA Corporation GP102GL [Tesla P40] (rev a1)\n"
    text = "$ lspci\n" + plain + "$ lspci -n\n3b:00.0 0302: 10de:1b38 (rev a1)\n$ lspci -k\n" + plain
    answer = lspci.parse_lspci(text + "\tSubsystem: X\n\tKernel driver in use: nouveau\n").as_dict()
    assert answer["nvidia_gpus"] == [P40 | {"driver_in_use": "nouveau"}]
    for hosts in (f"n1: {plain}n2: {plain}", f"n1 | CHANGED | rc=0 >>\n{plain}n2 | CHANGED | rc=0 >>\n{plain}"):
        assert len(lspci.parse_lspci(hosts).as_dict()["nvidia_gpus"]) == 2


@pytest.mark.parametrize("width", [60, 72, 80])
def test_a_name_broken_by_a_mailer_is_joined(width: int) -> None:
    lines = [
        "00:02.0 VGA compatible controller: ASPEED Technology, Inc. ASPEED Graphics Family (rev 30)",
        "00:1f.0 ISA bridge: Intel Corporation Q370 Chipset LPC/eSPI Controller (rev 10)",
        "3b:00.1 Audio device: NVIDIA Corporation GP104 High Definition Audio Controller",
        "3b:00.0 VGA compatible controller: NVIDIA Corporation GP104 [GeForce GTX 1080] (rev a1)",
    ]
    broken = "\n".join(textwrap.fill(line, width) for line in lines)
    assert lspci.parse_lspci(broken).as_dict() == lspci.parse_lspci("\n".join(lines)).as_dict()


def test_the_kinds_of_a_line_without_line_ends() -> None:
    text = "3b:00.0 3D controller: NVIDIA Corporation Device 1b38 Kernel driver in use: nvidia "
    rows = lspci.parse_lspci(text + text.replace("3b", "5e").replace("nvidia ", "vfio-pci")).as_dict()["nvidia_gpus"]
    assert [(row["slot"], row["device_id"], row["driver_in_use"]) for row in rows] == [
        ("3b:00.0", "1b38", "nvidia"),
        ("5e:00.0", "1b38", "vfio-pci"),
    ]


def test_virtual_functions_are_no_cards_of_their_own() -> None:
    line = "{} 3D controller [0302]: NVIDIA Corporation GA102GL [A40] [10de:2235] (rev a1)\n"
    slots = ["41:00.0", "41:00.4", "41:00.5", "41:01.0", "81:00.0"]
    answer = lspci.parse_lspci("".join(line.format(slot) for slot in slots)).as_dict()
    assert [row["slot"] for row in answer["nvidia_gpus"] if row.get("sriov_vf")] == ["41:00.4", "41:00.5", "41:01.0"]
    assert answer["physical_gpus"] == 2


def test_two_passed_through_cards_of_a_guest_count_as_two() -> None:
    line = "{} 3D controller [0302]: NVIDIA Corporation TU104GL [Tesla T4] [10de:1eb8] (rev a1)\n"
    answer = lspci.parse_lspci(line.format("00:06.0") + line.format("00:07.0")).as_dict()
    assert not any(row.get("sriov_vf") for row in answer["nvidia_gpus"])
    assert "physical_gpus" not in answer


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("05:00.0 Bridge [0680]: NVIDIA Corporation Device [10de:1af1] (rev a1)", "nvswitch"),
        ("05:00.0 0680: 10de:1ac2 (rev a1)", "nvswitch"),
        ("10:00.0 0680: 10de:1ac1 (rev a1)", "nvswitch"),
        ("01:00.1 Audio device: NVIDIA Corporation GA102 High Definition Audio Controller (rev a1)", "audio"),
        ("01:00.1 0403: 10de:1aef (rev a1)", "audio"),
        ("01:00.2 USB controller: NVIDIA Corporation Device 1ad6 (rev a1)", "usb"),
        ("01:00.3 Serial bus controller [0c80]: NVIDIA Corporation Device [10de:1ad7] (rev a1)", "ucsi"),
        ("00:05.0 Audio device: NVIDIA Corporation MCP61 High Definition Audio (rev a2)", "chipset"),
        ("00:02.0 USB controller: NVIDIA Corporation CK804 USB Controller (rev a2)", "chipset"),
        ("00:05.0 0403: 10de:03f0 (rev a2)", "chipset"),
        ("00:0b.0 0604: 10de:0377 (rev a3)", "chipset"),
        ("05:00.0 Bridge: NVIDIA Corporation Device 2fff (rev a1)", "nvswitch"),
        ("0001:00:00.0 PCI bridge [0604]: NVIDIA Corporation Device [10de:1ad0] (rev a1)", "tegra_root_port"),
        ("00:01.0 PCI bridge: NVIDIA Corporation Tegra PCIe x4 Controller (rev a1)", "tegra_root_port"),
    ],
)
def test_other_functions_are_named_by_their_kind(line: str, what: str) -> None:
    answer = lspci.parse_lspci(line).as_dict()
    assert [row["what"] for row in answer["nvidia_other"]] == [what]
    assert answer["nvidia_gpus"] == []
    assert answer.get("tegra", False) == (what == "tegra_root_port")


def test_a_root_port_of_a_grace_server_makes_no_jetson() -> None:
    assert "tegra" not in lspci.parse_lspci("0009:00:00.0 PCI bridge: NVIDIA Corporation Device 22b1").as_dict()


@pytest.mark.parametrize(
    ("line", "vendor", "name"),
    [
        ("00:02.0 VGA compatible controller: Device 1234:1111 (rev 02)", "", "Device"),
        ("00:02.0 VGA compatible controller [0300]: Device [1234:1111] (rev 02)", "", "Device"),
        ("00:02.0 VGA compatible controller: InnoTek Systemberatung GmbH VirtualBox Graphics Adapter",
         "InnoTek Systemberatung GmbH", "VirtualBox Graphics Adapter"),
        ("00:02.0 VGA compatible controller: Some Company Co., Ltd. Fine Card X1 (rev 02)",
         "Some Company Co., Ltd.", "Fine Card X1"),
        ("00:02.0 0300: 8086:3e92 (rev 02)", None, None),
        ("00:02.0 VGA compatible controller: Intel Corporation Device 7d55 (rev 08)", "Intel Corporation", "Device"),
        ("00:02.0 VGA compatible controller: Intel Corporation", "Intel Corporation", ""),
        ('00:02.0 "VGA compatible controller" "Vendor fffd" "Device 1111" "" ""', "", "Device"),
        ("00:02.0 VGA compatible controller: VMware, Inc. SVGA II", "VMware, Inc.", "SVGA II"),
        ("00:02.0 VGA compatible controller: Trident Microsystems CyberBlade/i1", "Trident Microsystems", "CyberBlade/i1"),
        ("00:02.0 VGA compatible controller: Fine Labs Ltd. FL-1", "Fine Labs Ltd.", "FL-1"),
        ("00:02.0 VGA compatible controller: NVidia / SGS Thomson (Joint Venture) Riva128 (rev 10)",
         "NVidia / SGS Thomson (Joint Venture)", "Riva128"),
    ],
)  # fmt: skip
def test_displays_of_other_vendors(line: str, vendor: Any, name: Any) -> None:
    answer = lspci.parse_lspci(line).as_dict()
    assert answer["other_display"] == [{"slot": "00:02.0", "vendor": vendor, "name": name}]
    assert answer["nvidia_gpus"] == []


def test_a_card_without_number_is_found_by_its_name() -> None:
    (function,) = lspci.parse_lspci("5e:00.0 3D controller: NVIDIA Corporation GP104GL [Tesla P4] (rev a1)").functions
    assert (function.device, function.address) == ("1bb3", "0000:5e:00.0")
    reading = lspci.parse_lspci("5e:00.0 3D controller: NVIDIA Corporation GX999 [Future Card] (rev a1)")
    assert reading.functions == []
    assert [entry.name for entry in reading.unnamed] == ["GX999 [Future Card]"]


def test_a_fallen_card_is_marked() -> None:
    text = "21:00.0 VGA compatible controller: NVIDIA Corporation GA102 [GeForce RTX 3090] (rev ff) (prog-if ff)\n"
    (row,) = lspci.parse_lspci(text + "\t!!! Unknown header type 7f\n\tKernel driver in use: nvidia\n").as_dict()[
        "nvidia_gpus"
    ]
    assert row["powered_off"] is True
    assert row["name"] == "GA102 [GeForce RTX 3090]"


def test_a_name_in_a_broken_quoted_line_is_joined() -> None:
    text = "> 01:00.0 VGA compatible controller [0300]: NVIDIA Corporation GP107\n> [GeForce GTX 1050 Ti] [10de:1c82] (rev a1)\n"
    (row,) = lspci.parse_lspci(text).as_dict()["nvidia_gpus"]
    assert (row["name"], row["device_id"]) == ("GP107 [GeForce GTX 1050 Ti]", "1c82")
