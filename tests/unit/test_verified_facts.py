"""Rows of the catalog without a public source: declared in the data, compiled as a flag, warned of by the plan."""

from pathlib import Path
from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.catalog import data as catalog_data
from plugins.plugin_utils.gpu_ready.catalog import driver_sources, expand
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.catalog.files import read
from tests.unit.goldens import decide
from tests.unit.hosts import P40, T4, bare, carried_out, having

ROOT = Path(__file__).resolve().parents[2]
FIELDS = ("branches", "packages", "imex", "toolkits")


def warnings(host: Any, **given: Any) -> dict[str, list[str]]:
    decided = decide(host, **given)
    found: dict[str, list[str]] = {}
    for one in decided.warnings:
        found.setdefault(one.code, []).append(one.message + " " + one.remedy)
    return found


@pytest.mark.parametrize(
    "distro", [key for key in catalog.distros() if "cuda_repo" in catalog.distro(key)["driver_sources"]]
)
def test_every_field_of_nvidias_repository_has_a_source_or_says_that_it_has_none(distro: str) -> None:
    data = catalog_data.read_rows()["distros"][distro]
    branches = read("branches.yml")
    toolkits = list(read("cuda.yml")["toolkits"])
    source = expand.with_lists(data, branches, toolkits)["driver_sources"]["cuda_repo"]
    present = {field for field in FIELDS if source.get(field)}
    named = [name.split() for name in source["verified"]]
    assert {field for field, *values in named if not values} == present
    for field, *values in named:
        assert set(values) <= {str(one) for one in source[field]}, (field, values)
    for text in source["verified"].values():
        assert text is False or (isinstance(text, str) and len(text) > 5)


def test_limits_are_the_published_branches_within_them() -> None:
    branches = {
        "branches": {number: {"newest": f"{number}.1.2"} for number in (580, 590, 595, 615)} | {620: {"newest": "620"}},
        "archives": {"ubuntu": [580, 595, 615]},
    }
    for listed, expected in [
        ([">=590"], [590, 595, 615]),
        (["580-595"], [580, 590, 595]),
        ([470, ">=595"], [470, 595, 615]),
        (["ubuntu >=590"], [595, 615]),
    ]:
        source: dict[str, Any] = {"branches": listed, "precompiled": {"branches": listed}}
        expand.with_lists({"driver_sources": {"cuda_repo": source}}, branches, [])
        assert source["branches"] == source["precompiled"]["branches"] == expected
    source = {"branches": {580: {"packages": {}}, ">=595": {}}}
    expand.with_lists({"driver_sources": {"cuda_repo": source}}, branches, [])
    assert source == {"branches": {580: {"packages": {}}, 595: {}, 615: {}}, "branches_from": "595"}


def test_limits_of_toolkits_are_those_from_one_on() -> None:
    known = ["11.8", "12.9", "13.0", "13.10"]
    source = {"toolkits": ["11.8", ">=13.0"]}
    expand.with_lists({"driver_sources": {"cuda_repo": source}}, {}, known)
    assert source["toolkits"] == ["11.8", "13.0", "13.10"]


def test_values_take_precedence_over_their_field() -> None:
    source = {
        "branches": [580, 590],
        "toolkits": ["13.0", "13.1", "13.2"],
        "verified": {
            "branches": "x",
            "branches 590": False,
            "toolkits": False,
            "toolkits 13.1 13.2": "y",
            "imex": False,
        },
    }
    assert expand.unverified(source) == {"branches": [590], "toolkits": ["13.0"], "imex": True}


def test_sources_do_not_travel_to_hosts() -> None:
    data = catalog.distro("amzn2023")["driver_sources"]["cuda_repo"]
    assert "verified" not in data and driver_sources.is_unverified(
        catalog.distro("amzn2023"), "cuda_repo", "branches", 575
    )
    assert not driver_sources.is_unverified(catalog.distro("amzn2023"), "cuda_repo", "branches", 580)
    assert not driver_sources.is_unverified(catalog.distro("amzn2023"), "runfile", "branches", 575)


def test_a_plan_warns_of_a_branch_that_no_source_confirms() -> None:
    given = {"nvidia_driver_branch": "575", "cuda_toolkit_source": "none"}
    found = warnings(bare(T4, distro="amzn2023"), **given)
    (text,) = found["catalog_unverified"]
    assert "branch 575 of cuda_repo for Amazon Linux 2023" in text and "dnf list nvidia-driver-cuda" in text
    assert "catalog_unverified" not in warnings(bare(T4, distro="amzn2023"), cuda_toolkit_source="none")


def test_a_plan_warns_of_a_toolkit_that_no_source_confirms() -> None:
    found = warnings(bare(P40, distro="debian12"), cuda_toolkit_versions=["12.4"])
    (text,) = found["catalog_unverified"]
    assert "CUDA 12.4 for Debian 12" in text and "apt-cache policy cuda-toolkit-12-4" in text


def test_a_plan_warns_of_imex_that_no_source_confirms() -> None:
    host = having(bare(T4, distro="fedora42"), driver={"imex": {"member": True}})
    assert any("IMEX of cuda_repo" in text for text in warnings(host)["catalog_unverified"])


def test_a_plan_warns_of_a_card_that_no_list_of_a_driver_has() -> None:
    (text,) = warnings(bare("2336", distro="el9"))["gpu_unverified"]
    assert "10de:2336" in text and "no list of a driver" in text
    assert "gpu_unverified" not in warnings(bare("13bd", distro="el9"))


def test_a_host_with_its_driver_is_not_warned() -> None:
    host, given = bare("2336", distro="amzn2023"), {"nvidia_driver_branch": "575", "cuda_toolkit_versions": ["12.8"]}
    decided = decide(host, **given)
    assert {"catalog_unverified", "gpu_unverified"} <= {one.code for one in decided.warnings}
    done = carried_out(host, decided)
    assert not {"catalog_unverified", "gpu_unverified"} & set(warnings(done, **given))
