"""Fleet files are read strictly: errors name the place and a remedy."""

from pathlib import Path

import pytest
from gpu_ready_lab import fleet, paths, pci_tree
from gpu_ready_lab.say import LabError

ROOT_FLEETS = sorted((paths.REPO / "lab/fleets").glob("*.yml"))


@pytest.mark.parametrize("path", ROOT_FLEETS, ids=lambda path: path.stem)
def test_fleets_that_come_with_the_lab_can_be_read(path: Path) -> None:
    read = fleet.read(path)
    assert read.name == path.stem
    assert read.hosts


def test_gpus_are_counted_and_get_their_own_addresses() -> None:
    read = fleet.parse(
        '{name: x, hosts: {a: {distribution: debian12, gpus: [{device: "1b38", count: 2}, {device: "1db1"}]}}}'
    )
    (host,) = read.hosts
    assert [gpu.name for gpu in host.gpus] == ["Tesla P40", "Tesla P40", "Tesla V100-SXM2-16GB"]
    assert len({gpu.address for gpu in host.gpus}) == 3


def test_nvswitches_are_of_the_generation_of_the_gpus() -> None:
    read = fleet.parse('{name: x, hosts: {a: {distribution: debian13, gpus: [{device: "2330"}], nvswitches: 4}}}')
    assert [device for _, device in read.hosts[0].nvswitches] == ["22a3"] * 4


def test_the_switches_of_nvlink_5_are_bridges_with_their_vital_product_data() -> None:
    read = fleet.parse('{name: x, hosts: {a: {distribution: debian13, gpus: [{device: "2901"}], nvswitches: 1}}}')
    files, links = pci_tree.tree(read.hosts[0])
    ((address, _),) = read.hosts[0].nvswitches
    assert files[f"devices/{address}/vendor"] == b"0x15b3\n" and files[f"devices/{address}/class"] == b"0x020700\n"
    assert links[f"devices/{address}/driver"].endswith("/mlx5_core")
    data = files[f"devices/{address}/vpd"]
    assert b"SW_MNG" in data and sum(data[: data.index(b"RV\x01") + 4]) & 0xFF == 0  # the checksum's rule
    assert [path for path in files if path.endswith("/vpd")] == [f"devices/{address}/vpd"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{name: x}", ["hosts", "no host"]),
        ("{name: X Y, hosts: {a: {distribution: debian12}}}", ["name", "small letters"]),
        ("{name: x, hosts: {a: {distribution: rocky7}}}", ["hosts.a.distribution", "rocky7", "debian12"]),
        ("{name: x, hosts: {A_b: {distribution: debian12}}}", ["hosts.A_b"]),
        ("{name: x, hosts: {a: {distribution: debian12, gpu: []}}}", ["hosts.a", "'gpu'", "gpus"]),
        (
            "{name: x, hosts: {a: {distribution: debian12, gpus: [{device: 2330}]}}}",
            ["gpus.0.device", "in quotes", "2330"],
        ),
        (
            '{name: x, hosts: {a: {distribution: debian12, gpus: [{device: "ffff"}]}}}',
            ["ffff", "name and architecture"],
        ),
        ('{name: x, hosts: {a: {distribution: debian12, gpus: [{device: "1b38", count: 99}]}}}', ["count", "1 to 16"]),
        ('{name: x, hosts: {a: {distribution: debian12, gpus: [{device: "1b38"}], nvswitches: 2}}}', ["nvswitches"]),
        ("{name: x, hosts: {a: {distribution: debian12, nouveau: yes please}}}", ["nouveau", "true or false"]),
        ("{name: x, hosts: {a: {distribution: debian12, expect: {result: good}}}}", ["expect.result", "ready"]),
        ("{name: x, hosts: {a: {distribution: rocky8, python: 3.6}}}", ["hosts.a.python", "in quotes"]),
        ('{name: x, hosts: {a: {distribution: rocky8, python: "3"}}}', ["hosts.a.python", "such as"]),
        ("{name: x, hosts: {a: {distribution: rocky8, secure_boot: maybe}}}", ["hosts.a.secure_boot", "true or"]),
        ("{name: [", ["not YAML"]),
    ],
)
def test_errors_name_their_place(text: str, words: list[str]) -> None:
    with pytest.raises(LabError) as error:
        fleet.parse(text, "some.yml")
    for word in ["some.yml", *words]:
        assert word in str(error.value)


def test_a_missing_file_is_an_error_message(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="No such file"):
        fleet.read(tmp_path / "none.yml")


def test_a_host_may_have_the_python_of_its_distribution() -> None:
    read = fleet.parse('{name: x, hosts: {a: {distribution: rocky8, python: "3.6", vars: {b: 1}}}}')
    (host,) = read.hosts
    assert host.python == "3.6"
    assert host.vars == {"ansible_python_interpreter": "/usr/libexec/platform-python", "b": 1}
    (host,) = fleet.parse("{name: x, hosts: {a: {distribution: centos7, python: none}}}").hosts
    assert (host.python, host.vars) == ("none", {})


def test_some_hosts_of_a_fleet_can_be_chosen() -> None:
    text = "{name: x, hosts: {a: {distribution: debian12}, b: {distribution: debian12, extra: true}, c: {distribution: debian13}}}"
    whole = fleet.parse(text)
    assert fleet.choose(whole, None, sample=False) == whole
    assert [host.name for host in fleet.choose(whole, None, sample=True).hosts] == ["a", "c"]
    assert [host.name for host in fleet.choose(whole, ["b"], sample=False).hosts] == ["b"]
    with pytest.raises(LabError, match="x has no host d; it has a, b, c"):
        fleet.choose(whole, ["a", "d"], sample=False)


def test_a_range_of_hosts() -> None:
    read = fleet.parse('{name: x, hosts: {"n[1:3:2]": {distribution: debian12}, "n[02:02]": {distribution: debian13}}}')
    assert [(host.name, host.distribution) for host in read.hosts] == [
        ("n02", "debian13"),
        ("n1", "debian12"),
        ("n3", "debian12"),
    ]
