"""`nvidia-smi topo -m` and `nvidia-smi vgpu`."""

import pytest

from plugins.plugin_utils.gpu_ready.diagnostics import messages, smi_topology
from plugins.plugin_utils.gpu_ready.explain import cli as explain


def matrix(*rows: str, nics: int = 0) -> str:
    """A matrix as nvidia-smi prints it, with tabs, from the cells of the GPUs' rows."""
    names = [f"GPU{number}" for number in range(len(rows))]
    others = [f"NIC{number}" for number in range(nics)]
    head = "\t" + "\t".join([*names, *others, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    lines = [
        "\t".join([name, *row.split(), *["SYS"] * nics, "0-31", "0", "N/A"])
        for name, row in zip(names, rows, strict=True)
    ]
    lines += ["\t".join([other, *["SYS"] * len(names), *["X"] * nics]) for other in others]
    return "\n".join(
        [head, *lines, "", "Legend:", "", "  X    = Self", "  NV#  = Connection traversing a bonded set of # NVLinks"]
    )


CUBE = (
    "X NV1 NV2 NV1 NV2 SYS SYS SYS", "NV1 X NV1 NV2 SYS NV2 SYS SYS", "NV2 NV1 X NV2 SYS SYS NV1 SYS",
    "NV1 NV2 NV2 X SYS SYS SYS NV1", "NV2 SYS SYS SYS X NV1 NV2 NV1", "SYS NV2 SYS SYS NV1 X NV1 NV2",
    "SYS SYS NV1 SYS NV2 NV1 X NV2", "SYS SYS SYS NV1 NV1 NV2 NV2 X",
)  # fmt: skip
"""Eight V100 as in a DGX-1: six links for each of them, not every pair."""


@pytest.mark.parametrize(
    ("rows", "fewer", "word"),
    [
        (("X NV18 NV18", "NV18 X NV18", "NV18 NV18 X"), [], "every pair"),
        (("X NV6 NV6 SYS", "NV6 X NV6 SYS", "NV6 NV6 X SYS", "SYS SYS SYS X"), ["GPU3"], "3 pairs"),
        (("X NV18 NV16", "NV18 X NV16", "NV16 NV16 X"), ["GPU2"], "every pair"),
        # Bridges between two cards each.
        (("X NV12 SYS SYS", "NV12 X SYS SYS", "SYS SYS X NV12", "SYS SYS NV12 X"), [], "2 pairs"),
        (("X NV12 SYS SYS", "NV12 X SYS SYS", "SYS SYS X PHB", "SYS SYS PHB X"), ["GPU2", "GPU3"], "1 pairs"),
        (CUBE, [], "pairs"),
        (("X PHB", "PHB X"), [], "without NVLink"),
        (("X",), [], "without NVLink"),
    ],
)
def test_a_topology(rows: tuple[str, ...], fewer: list[str], word: str) -> None:
    text = matrix(*rows, nics=2)
    answer = explain.KINDS["nvidia-smi"].read(text.encode())
    assert answer["topology"]["gpus"] == [f"GPU{number}" for number in range(len(rows))]
    assert answer["topology"]["others"] == ["NIC0", "NIC1"]
    found = messages.explain("nvidia-smi", text)
    assert [one.detail for one in found] == fewer and {one.code for one in found} <= {"nvlink_missing"}
    assert [one.line for one in found] == [2 + int(gpu[3:]) for gpu in fewer]
    shown = explain.KINDS["nvidia-smi"].describe(answer)
    assert word in " ".join(shown) and answer["usable"] and answer["gpus"] == []


def test_one_missing_link_of_a_mesh() -> None:
    rows = list(CUBE)
    rows[0] = rows[0].replace("X NV1 NV2 NV1", "X NV1 NV1 NV1")
    rows[2] = rows[2].replace("NV2 NV1 X", "NV1 NV1 X")
    found = messages.explain("nvidia-smi", matrix(*rows))
    assert [one.detail for one in found] == ["GPU0", "GPU2"]
    assert "5 to all others together" in found[0].cause and found[0].confidence == "likely"


@pytest.mark.parametrize(
    "text",
    [
        "        GPU0    GPU1    CPU Affinity    NUMA Affinity\nGPU0     X      NV12    0-31\n",
        matrix("X NV4", "NV2 X"),
        "\tGPU0\tGPU1\nGPU0\tX\tOK\nGPU1\tOK\tX\n\nLegend:\n\n  X    = Self\n  OK   = Status Ok\n",
    ],
)
def test_what_is_no_complete_matrix_is_not_judged(text: str) -> None:
    assert smi_topology.read(text) is None and messages.explain("nvidia-smi", text) == []
    answer = explain.KINDS["nvidia-smi"].read(text.encode())
    assert explain.KINDS["nvidia-smi"].describe(answer)[0].startswith("This is the output of nvidia-smi topo, but not")


VGPU = """\
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.14              Driver Version: 550.54.14                 |
|---------------------------------+------------------------------+------------+
| GPU  Name                       | Bus-Id                       | GPU-Util   |
|      vGPU ID     Name           | VM ID     VM Name            | vGPU-Util  |
|=================================+==============================+============|
|   0  NVIDIA A40                 | 00000000:21:00.0             |   1%       |
|      3251634216  NVIDIA A40-16Q | c269...  windows10,debug-... |      0%    |
|      3251634217  NVIDIA A40-16Q | d269...  vm-b                |      0%    |
+---------------------------------+------------------------------+------------+
|   1  NVIDIA A40                 | 00000000:22:00.0             |   0%       |
+---------------------------------+------------------------------+------------+
"""
QUERY = """\
GPU 00000000:06:00.0
    Active vGPUs                      : 2
    vGPU ID                           : 11924
        VM Name                       : vm-a
        vGPU Name                     : GRID M60-2Q
        License Status                : Licensed (Expiry: 2026-12-1 0:0:0 GMT)
    vGPU ID                           : 11925
        VM Name                       : vm-b
        vGPU Name                     : GRID M60-2Q
        License Status                : %s
"""


def test_virtual_gpus_of_the_table() -> None:
    answer = explain.KINDS["nvidia-smi"].read(VGPU.encode())
    assert [gpu["bus_id"] for gpu in answer["vgpus"]["gpus"]] == ["00000000:21:00.0", "00000000:22:00.0"]
    assert [(row["id"], row["vm"]) for row in answer["vgpus"]["virtual"]] == [
        ("3251634216", "windows10,debug-..."),
        ("3251634217", "vm-b"),
    ]
    shown = explain.KINDS["nvidia-smi"].describe(answer)
    assert "2 virtual GPUs on 2 GPUs" in shown[0] and shown[-1].startswith("No judgement.") and answer["problems"] == []


@pytest.mark.parametrize(
    ("state", "codes"),
    [("Licensed (Expiry: N/A)", []), ("Unlicensed (Restricted)", ["vgpu_unlicensed"]), ("Unlicensed (Unrestricted)", ["vgpu_unlicensed"])],
)  # fmt: skip
def test_licences_of_virtual_gpus(state: str, codes: list[str]) -> None:
    answer = explain.KINDS["nvidia-smi"].read((QUERY % state).encode())
    assert [row["licence"] for row in answer["vgpus"]["virtual"]] == ["Licensed (Expiry: 2026-12-1 0:0:0 GMT)", state]
    assert [problem["code"] for problem in answer["problems"]] == codes
