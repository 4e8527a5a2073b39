"""The simulated hardware, read by the product's own readers and by the real lspci."""

import importlib.util
import json
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from gpu_ready_lab import fleet, hardware, paths, pci_tree

from plugins.module_utils.gpu_ready.hardware import pci
from tests.unit.real_programs import PCI, need_programs
from tests.unit.recorded import RecordedHost

H100 = '{name: x, hosts: {a: {distribution: debian13, gpus: [{device: "2330", count: 8}], nvswitches: 4}}}'
GAMER = '{name: x, hosts: {a: {distribution: debian13, gpus: [{device: "2684", driver: vfio-pci}]}}}'


def host(text: str) -> fleet.Host:
    return fleet.parse(text).hosts[0]


def written(text: str, directory: Path) -> Path:
    files, links = pci_tree.tree(host(text))
    for path, data in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(data)
    for path, target in links.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).symlink_to(target)
    return directory


def recorded(text: str) -> RecordedHost:
    files, links = pci_tree.tree(host(text))
    texts = {
        f"/sys/bus/pci/{path}": data.decode("latin-1") for path, data in files.items() if not path.endswith("/config")
    }
    return RecordedHost(files=texts, links={f"/sys/bus/pci/{path}": target for path, target in links.items()})


def test_our_reader_counts_gpus_and_switches() -> None:
    functions = pci.read_sysfs(recorded(H100))
    assert len(pci.gpus(functions)) == 8
    assert len(pci.nvswitches(functions)) == 4


def test_audio_and_other_displays_are_not_gpus() -> None:
    functions = pci.read_sysfs(recorded(GAMER))
    assert len(pci.gpus(functions)) == 1


@pytest.mark.host_io
def test_the_real_lspci_reads_the_tree(tmp_path: Path) -> None:
    need_programs(PCI)
    tree = written(H100, tmp_path / "bus")
    out = subprocess.run(
        ["lspci", "-O", f"sysfs.path={tree}", "-nnD"], capture_output=True, text=True, check=True, timeout=300
    ).stdout  # fmt: skip
    assert out.count("[10de:2330]") == 8
    assert out.count("[10de:22a3]") == 4


def test_gpus_of_two_hosts_have_different_uuids_and_the_same_every_time() -> None:
    two = fleet.parse(
        '{name: x, hosts: {a: {distribution: debian12, gpus: [{device: "1b38"}]}, b: {distribution: debian12, gpus: [{device: "1b38"}]}}}'
    )
    uuids = [hardware.gpu_uuid("x", one, one.gpus[0]) for one in two.hosts]
    assert len(set(uuids)) == 2
    assert uuids == [hardware.gpu_uuid("x", one, one.gpus[0]) for one in two.hosts]


def test_kernel_and_nvml_number_the_gpus_alike() -> None:
    one = host(H100)
    kernel = json.loads(hardware.kernel_description("x", one))
    conf = hardware.nvml_conf("x", one)
    for gpu in kernel["gpus"]:
        section = conf.split(f"[gpu {gpu['minor']}]\n")[1].split("[gpu")[0]
        assert f"uuid = {gpu['uuid']}\n" in section
        assert f"bus_id = {gpu['address']}\n" in section


@pytest.fixture(scope="module")
def kernel() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lab_kernel", paths.DATA / "host/kernel.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("architecture", "version", "is_open", "complaint"),
    [
        ("pascal", "535.261.03", False, None),
        ("pascal", "580.178.04", False, None),
        ("pascal", "590.48.01", False, "580.xx Legacy"),
        ("pascal", "580.178.04", True, "GPU System Processor"),
        ("kepler", "535.261.03", False, "470.xx Legacy"),
        ("turing", "550.163.01", True, None),
        ("hopper", "470.256.02", False, "not supported by the NVIDIA 470.256.02"),
        ("hopper", "580.178.04", True, None),
        ("blackwell", "580.178.04", False, "open kernel modules"),
        ("blackwell", "580.178.04", True, None),
        ("blackwell", "550.163.01", True, "not supported by the NVIDIA 550.163.01"),
    ],
)
def test_the_simulated_kernel_decides_as_the_driver_does(
    kernel: ModuleType, architecture: str, version: str, is_open: bool, complaint: str | None
) -> None:
    gpu = {"address": "0000:1b:00.0", "device": "1b38", "architecture": architecture}
    found = kernel.cannot_drive(gpu, version, int(version.split(".")[0]), is_open)
    assert (found is None) if complaint is None else (complaint in found)


def test_the_simulated_kernel_supports_every_architecture_of_fleet_files(kernel: ModuleType) -> None:
    assert set(kernel.BRANCHES) == set(fleet.ARCHITECTURES)
