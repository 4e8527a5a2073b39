"""The operator's own rows of the catalog: what they change in plans, and the messages of wrong ones."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.catalog import overlay
from plugins.plugin_utils.gpu_ready.explain import host as explain_host
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit.hosts import H100, bare

BRANCH = {
    "newest": "640.10.01",
    "kind": "lts",
    "eol": "2031-09",
    "cuda": "14.0",
    "flavours": ["open"],
    "since": "2026-01-01",
}
GPU = {
    "name": "RTX 9000", "architecture": "rubin", "first_branch": 620, "last_branch": None, "flavours": ["open"],
    "compute": None,
}  # fmt: skip
LATER: dict[str, Any] = {
    "branches": {640: BRANCH},
    "toolkits": {"14.0": {"min_driver": "640.10.01", "compute": ["7.5", "13.0"]}},
    "installers": {"14.0.0": {}},
    "cudnn": {"10.0.0.1": {"cuda": ["14"], "compute": ["7.5", "13.0"]}},
    "gpus": {"3abc": GPU},
    "repositories": {
        "cuda-fedora45": {
            "kind": "rpm", "url": "https://mirror.example/fedora45", "key_url": "https://mirror.example/key",
            "fingerprint": "A" * 40, "gpgcheck": True, "repo_gpgcheck": False,
        },
    },
    "distros": {
        "fedora45": {
            "like": "fedora44", "versions": ["45"], "pretty": "Fedora 45",
            "driver_sources": {"cuda_repo": {"repository": "cuda-fedora45", "branches": [640]}},
        },
    },
}  # fmt: skip


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Any]:
    def write(rows: Any) -> str:
        path = tmp_path / "own.yml"
        path.write_text(rows if isinstance(rows, str) else yaml.safe_dump(rows))
        return str(path)

    yield write
    overlay.use("")


def decide(facts: Facts, **given: Any) -> compose.Plan:
    return compose.plan(facts, variables.settings_for_plan(given).settings)


def notices(decided: Any) -> list[str]:
    return [one.code for one in decided.warnings if one.code == "not_in_catalog"]


def test_rows_of_the_operator_are_as_good_as_those_of_the_catalog(own: Any) -> None:
    given = {"nvidia_driver_branch": "640", "cuda_toolkit_versions": ["14.0"], "cudnn_version": "10.0.0.1"}
    assert notices(decide(bare(H100, distro="el9"), **given)) == ["not_in_catalog"] * 3
    decided = decide(bare(H100, distro="el9"), **given, gpu_ready_catalog_overlay=own(LATER))
    assert decided.refusals == [] and notices(decided) == []
    # Old enough, and supported longest: the default of every source that follows NVIDIA.
    chosen = decide(bare(H100, distro="el9"), gpu_ready_catalog_overlay=own(LATER)).choices.driver
    assert chosen and (chosen.branch, chosen.version) == (640, None)


def test_a_card_of_the_operator_is_known(own: Any) -> None:
    assert [one.code for one in decide(bare("3abc", distro="el9")).warnings if one.code == "gpu_unknown"]
    decided = decide(bare("3abc", distro="el9"), gpu_ready_catalog_overlay=own(LATER))
    assert not [one for one in decided.warnings if one.code.startswith("gpu_un")] and catalog.gpu("3abc")


def test_a_distribution_of_the_operator_is_planned_by_gpu_explain(own: Any) -> None:
    release = "ID=fedora\nVERSION_ID=45\n"
    found = explain_host.explain(None, ["10de:2330"], release, {})
    assert [one["code"] for one in found["plan"]["refusals"]] == ["unknown_distribution"]
    found = explain_host.explain(None, ["10de:2330"], release, {"gpu_ready_catalog_overlay": own(LATER)})
    assert found["plan"]["refusals"] == [] and found["distribution"] == "Fedora 45"
    assert "https://mirror.example/fedora45" in json.dumps(found["todo"])


def test_the_catalog_is_itself_again_without_the_file(own: Any) -> None:
    variables.settings_for_plan({"gpu_ready_catalog_overlay": own(LATER)})
    assert catalog.branch(640)
    variables.settings_for_plan({})
    assert catalog.branch(640) is None and "fedora45" not in catalog.distros() and catalog.gpu("3abc") is None


def test_a_row_of_the_catalog_is_changed_key_by_key(own: Any) -> None:
    before = catalog.branch(595)
    variables.settings_for_plan({"gpu_ready_catalog_overlay": own({"branches": {595: {"newest": "595.99.01"}}})})
    assert before and catalog.branch(595) == before._replace(newest="595.99.01")


@pytest.mark.parametrize(
    ("rows", "cause", "remedy"),
    [
        ("branches: [", "is no YAML", "correct that line"),
        ("", "has no section", "branches"),
        ({"drivers": {}}, "drivers is no section", "use branches"),
        ({"branches": [640]}, "branches has no rows", "NAME: {KEY: VALUE}"),
        ({"branches": {"640": BRANCH}}, "branches 640: that is no name of a row", "without quotes"),
        ({"toolkits": {14.0: {}}}, "toolkits 14.0: that is no name of a row", "in quotes"),
        ({"branches": {640: "640.1"}}, "branches 640 is '640.1'", "catalog/branches.yml"),
        ({"branches": {640: {"newest": "640.1.1"}}}, "branches 640: cuda is missing", "catalog/branches.yml"),
        ({"branches": {640: {**BRANCH, "eoll": "2030-01"}}}, "eoll is no key", "eol"),
        ({"branches": {640: {**BRANCH, "eol": "soon"}}}, "eol is 'soon'", "write it as '20"),
        ({"branches": {640: {**BRANCH, "newest": 640.1}}}, "newest is 640.1", "in quotes"),
        ({"branches": {640: {**BRANCH, "flavours": "open"}}}, "flavours is 'open'", "write it as ["),
        ({"gpus": {"3abc": {**GPU, "first_branch": True}}}, "first_branch is True", "write it as"),
        ({"gpus": {"3ABC": GPU}}, "gpus 3ABC: that is no name of a row", "in quotes"),
        ({"distros": {"fedora45": {"like": "fedora99"}}}, "like: fedora99 is no distribution", "fedora44"),
        (
            {"distros": {"fedora45": {"like": "fedora44", "container_toolkit": "mine"}}},
            "names the repository mine, which is not described", "section repositories",
        ),
        ({"repositories": {"mine": {"url": "ftp://x"}}}, "fingerprint is missing", "catalog/repositories.yml"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_a_refusal_with_file_row_cause_and_remedy(own: Any, rows: Any, cause: str, remedy: str) -> None:
    path = own(rows)
    (refusal,) = variables.settings_for_plan({"gpu_ready_catalog_overlay": path}).refusals
    assert refusal.code == "catalog_overlay_wrong"
    assert path in refusal.message and cause in refusal.message and remedy in refusal.remedy, refusal
    assert catalog.branch(640) is None


def test_a_file_that_is_not_there_is_named(own: Any) -> None:
    (refusal,) = variables.settings_for_plan({"gpu_ready_catalog_overlay": "/nowhere/own.yml"}).refusals
    assert "/nowhere/own.yml cannot be read on the control node: No such file" in refusal.message


def test_a_changed_file_is_read_again(own: Any) -> None:
    path = own({"branches": {640: BRANCH}})
    variables.settings_for_plan({"gpu_ready_catalog_overlay": path})
    own({"branches": {640: {**BRANCH, "newest": "640.200.01"}}})
    variables.settings_for_plan({"gpu_ready_catalog_overlay": path})
    known = catalog.branch(640)
    assert known and known.newest == "640.200.01"


def test_the_example_of_the_page_is_accepted(own: Any) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/catalog.md").read_text(encoding="utf-8")
    path = own(page.partition("```yaml\n")[2].partition("```")[0])
    assert variables.settings_for_plan({"gpu_ready_catalog_overlay": path}).refusals == []
    assert 625 in catalog.distro("fedora45")["driver_sources"]["cuda_repo"]["branches"]
