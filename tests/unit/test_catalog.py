"""The catalog: compiled and small, and complete against what NVIDIA and others publish."""

import json
import re
from pathlib import Path

import pytest
from ansible.module_utils.common.yaml import yaml_load

from plugins.module_utils.gpu_ready.base import versions
from plugins.module_utils.gpu_ready.cuda import toolkit as cuda
from plugins.module_utils.gpu_ready.facts.base import FIRST_OF_BLACKWELL
from plugins.plugin_utils.gpu_ready.catalog import data as catalog_data
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from tests.shared import SHARED

ROOT = Path(__file__).resolve().parents[2]
DATA = SHARED / "nvidia-data"
PUBLISHED = yaml_load((Path(__file__).parent / "data/gpu_ids.yml").read_text())


def rows(name: str) -> list[list[str]]:
    lines = (DATA / name).read_text().splitlines()
    return [line.split("\t") for line in lines if line.strip() and not line.startswith("#")]


def eks(name: str) -> set[str]:
    return {m.group(1).lower() for m in re.finditer(r"(?m)^0x([0-9A-Fa-f]{4})\b", (DATA / name).read_text())}


def number(branch: str | None) -> int | None:
    return None if branch in (None, "current") else int(branch.split(".")[0])


def chips() -> list[dict[str, str]]:
    found: list[dict[str, str]] = json.loads((DATA / "supported-gpus-550.163.01.json").read_text())["chips"]
    return found


def test_a_gpu_is_of_blackwell_or_newer_by_its_number() -> None:
    """Hosts, which have no catalog, look for NVLink 5 switches by this number."""
    newer = {one.architecture for one in catalog.gpus().values() if int(one.device_id, 16) >= FIRST_OF_BLACKWELL}
    older = {one.architecture for one in catalog.gpus().values() if int(one.device_id, 16) < FIRST_OF_BLACKWELL}
    assert newer and not newer & older and "blackwell" not in older


@pytest.mark.shared
def test_every_id_of_elrepos_table_has_its_branch() -> None:
    for device, branch, *_ in rows("elrepo-pciid-branch-595.91.07.tsv"):
        gpu = catalog.gpu(device)
        assert gpu is not None, device
        assert gpu.last_branch == number(branch), device


def test_every_id_of_nvidias_legacy_list_has_its_branch() -> None:
    listed = [(device, branch) for branch, devices in PUBLISHED["last_branch"].items() for device in devices.split()]
    for device, branch in listed:
        gpu = catalog.gpu(device)
        assert gpu is not None, device
        assert (gpu.last_branch, gpu.flavours) == (branch, ("proprietary",)), device


@pytest.mark.parametrize("flavours", PUBLISHED["current"])
def test_every_id_of_nvidias_current_list_has_its_modules(flavours: str) -> None:
    for device in PUBLISHED["current"][flavours].split():
        gpu = catalog.gpu(device)
        assert gpu is not None, device
        assert (gpu.last_branch, " or ".join(gpu.flavours)) == (None, flavours), device


@pytest.mark.shared
def test_every_id_of_supported_gpus_has_its_ceiling() -> None:
    for chip in chips():
        gpu = catalog.gpu(chip["devid"][2:])
        assert gpu is not None, chip
        if "legacybranch" in chip:
            assert gpu.last_branch == number(chip["legacybranch"]), chip
        else:
            assert gpu.last_branch in (None, 580), chip


@pytest.mark.shared
def test_open_module_supports_nvidias_list_and_no_card_with_a_ceiling() -> None:
    listed = {row[0].lower() for row in rows("open-module-gpus-595.45.04.tsv")}
    listed |= eks("eks-nvidia-open-supported-devices-580.txt") | eks("eks-nvidia-open-supported-devices-595.txt")
    for device in listed:
        gpu = catalog.gpu(device)
        assert gpu is not None, device
        assert ("open" in gpu.flavours) == (gpu.last_branch is None), device


@pytest.mark.parametrize(
    ("device", "architecture", "last", "flavours"),
    [
        ("1b38", "pascal", 580, "proprietary"),
        ("102D", "kepler", 470, "proprietary"),
        ("1db4", "volta", 580, "proprietary"),
        ("13f2", "maxwell", 580, "proprietary"),
        ("1eb8", "turing", None, "open proprietary"),
        ("2330", "hopper", None, "open proprietary"),
        ("2342", "grace_hopper", None, "open"),
        ("2901", "blackwell", None, "open"),
        ("2e12", "blackwell", None, "open"),
        ("06c0", "fermi", 390, "proprietary"),
        ("0191", "tesla", 340, "proprietary"),
        ("0020", "older", 71, "proprietary"),
    ],
)
def test_cards_of_every_generation(device: str, architecture: str, last: int | None, flavours: str) -> None:
    gpu = catalog.gpu(device)
    assert gpu is not None
    assert (gpu.architecture, gpu.last_branch, " ".join(gpu.flavours)) == (architecture, last, flavours)


def test_unknown_cards_and_switches_are_not_cards() -> None:
    assert catalog.gpu("3fff") is None
    assert all(catalog.nvswitch(device) and catalog.gpu(device) is None for device in ("1ac1", "1ac2", "1af1", "22a3"))


def test_ids_are_unique_in_the_source() -> None:
    keys = re.findall(r'(?m)^\s+"([0-9a-f]{4})":', (ROOT / "catalog/gpus.yml").read_text())
    assert len(keys) == len(set(keys))
    assert len(catalog.gpus()) + len(catalog_data.NVSWITCHES) == len(keys)


def test_a_maintained_branch_drives_maxwell_to_blackwell() -> None:
    maintained = [one.number for one in catalog.branches() if not catalog.has_ended(one.number, catalog.DATE)]
    for device in ("13f2", "1b38", "1db4", "1eb8", "20b5", "2330", "2901", "2e12"):
        gpu = catalog.gpu(device)
        assert gpu is not None
        assert any((gpu.first_branch or 0) <= branch <= (gpu.last_branch or 999) for branch in maintained), device


def test_ranges_of_cuda_and_cudnn_begin_and_end_with_cards() -> None:
    known = [gpu.compute for gpu in catalog.gpus().values() if gpu.compute]
    for first, last in [t.compute for t in catalog.toolkits()] + [c.compute for c in catalog.cudnns()]:
        assert first in known and any(versions.compare(first, one) < 0 < versions.compare(one, "0") for one in known)
        assert versions.compare(first, last) < 0


def test_versions_in_the_sources_are_texts() -> None:
    for path in ("branches.yml", "cuda.yml", "cudnn.yml"):
        data = yaml_load((ROOT / "catalog" / path).read_text())
        assert not re.search(r"\d+\.\d+", " ".join(repr(v) for v in walk(data) if isinstance(v, float))), path


def walk(value: object) -> list[object]:
    if isinstance(value, dict):
        return [one for entry in [*value.keys(), *value.values()] for one in walk(entry)]
    return [one for entry in value for one in walk(entry)] if isinstance(value, list) else [value]


def test_every_toolkit_has_installers_whose_names_contain_their_release() -> None:
    installers = catalog.cuda_installers()
    assert {cuda.series(one.release) for one in installers} == {toolkit.version for toolkit in catalog.toolkits()}
    for one in installers:
        assert cuda.release_of_file(one.url) == one.release
        assert re.fullmatch(r"[0-9a-f]{64}|", one.sha256)
        assert one.md5_url.endswith(f"/{one.release}/docs/sidebar/md5sum.txt")
        # From 13.4 on no driver is inside, and none is in the name.
        assert one.url.endswith(f"/cuda_{one.release}_linux.run") is (versions.compare(one.release, "13.4") >= 0)
    assert len({one.sha256 for one in installers if one.sha256}) == len([one for one in installers if one.sha256])
