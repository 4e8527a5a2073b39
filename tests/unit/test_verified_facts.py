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
        single = {value for value in values if "-" not in value}
        assert single <= {str(one) for one in source[field]}, (field, values)
    for text in source["verified"].values():
        assert text is False or (isinstance(text, str) and len(text) > 5)


KNOWN_BRANCHES = {
    "branches": {number: {"newest": f"{number}.1.2"} for number in (580, 590, 595, 615)} | {620: {"newest": "620"}},
    "archives": {"ubuntu": [580, 595, 615]},
}


@pytest.mark.parametrize(
    ("listed", "expected", "without_end"),
    [
        ([{"from": 590}], [590, 595, 615], "590"),
        ([{"from": 580, "to": 595}], [580, 590, 595], None),
        ([{"from": 580, "except": [590, 595]}], [580, 615], "580"),
        ([470, {"from": 595}], [470, 595, 615], "595"),
        ([{"of": "ubuntu", "from": 590}], [595, 615], "590"),
        ([580, 595], [580, 595], None),
    ],
)
def test_a_rule_means_the_published_branches_within_it(
    listed: Any, expected: list[int], without_end: str | None
) -> None:
    source: dict[str, Any] = {"branches": listed, "precompiled": {"branches": listed}}
    expand.with_lists({"driver_sources": {"cuda_repo": source}}, KNOWN_BRANCHES, [])
    assert source["branches"] == source["precompiled"]["branches"] == expected
    assert source.get("branches_from") == source["precompiled"].get("branches_from") == without_end


@pytest.mark.parametrize("entry", [">=580", "580", {"form": 580}, None, 1.5])
def test_an_entry_that_is_neither_a_branch_nor_a_rule_is_an_error(entry: Any) -> None:
    with pytest.raises(ValueError, match="from: 615"):
        expand.with_lists({"driver_sources": {"cuda_repo": {"branches": [entry]}}}, KNOWN_BRANCHES, [])


def test_a_rule_of_toolkits_compares_versions() -> None:
    known = ["11.8", "12.9", "13.0", "13.10"]
    source = {"toolkits": ["11.8", {"from": "13.0"}], "precompiled": {"toolkits": [{"from": "11.0", "to": "13.9"}]}}
    expand.with_lists({"driver_sources": {"cuda_repo": source}}, KNOWN_BRANCHES, known)
    assert source["toolkits"] == ["11.8", "13.0", "13.10"] and source["toolkits_from"] == "13.0"
    assert source["precompiled"]["toolkits"] == ["11.8", "12.9", "13.0"]  # type: ignore[index]


def test_names_of_packages_may_be_those_of_the_branches_within_limits() -> None:
    names = {"compute": {"open": ["driver-{branch}"]}}
    entry = {
        "branches": [580, 590, 595],
        "packages": names,
        "packages_of": {">=590": {"compute": {"open": ["driver"]}}},
    }
    data: Any = {"driver_sources": {"cuda_repo": entry}}
    found = [driver_sources.packages(data, "cuda_repo", one, "compute", "open") for one in (580, 590, 640)]
    assert found == [["driver-580"], ["driver"], ["driver"]]


def test_values_take_precedence_over_their_field() -> None:
    source = {
        "branches": [580, 590],
        "toolkits": ["13.0", "13.1", "13.2", "13.4", "13.5", "13.10"],
        "verified": {
            "branches": "x",
            "branches 590": False,
            "toolkits": False,
            "toolkits 13.1 13.2": "y",
            "toolkits 13.4-13.5": "y",
            "imex": False,
        },
    }
    assert expand.unverified(source) == {"branches": [590], "toolkits": ["13.0", "13.10"], "imex": True}


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
