"""docs/distributions.md: each row says what the planner plans, and "tested" only of what an integration test installs."""

from pathlib import Path

import pytest

from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.catalog.settings import Settings
from plugins.plugin_utils.gpu_ready.plan.compose import plan
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.integration import matrix
from tests.unit import hosts

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/distributions.md").read_text(encoding="utf-8")
SOURCES = ("cuda_repo", "distro", "elrepo", "runfile")
TESTED_ELSEWHERE = {
    ("debian12", "distro"): "test_demo",
    ("debian13", "distro"): "test_demo",
    ("el9", "elrepo"): "test_elrepo",
    ("ubuntu2404", "distro"): "test_ubuntu",
}
"""Installations by other integration tests than test_distributions.py."""
TESTED = matrix.installed() | {*TESTED_ELSEWHERE}


def driver_settings(distribution: str, source: str) -> tuple[Settings, bool]:
    """Return settings of the driver alone, and whether they need fingerprints of keys that the catalog does not have."""
    keys: dict[str, str] = {}
    given = {"cuda_toolkit_source": "none", "cudnn_source": "none", "nvidia_driver_source": source}
    while True:
        settings = variables.parse_settings({**given, "gpu_ready_mirror_keys": keys}).settings
        refusals = plan(hosts.bare(hosts.T4, distro=distribution), settings).refusals
        unknown = [refusal for refusal in refusals if refusal.code == "repository_key_unknown"]
        if not unknown:
            return settings, bool(keys)
        keys[unknown[0].remedy.partition("{")[2].partition(":")[0]] = "0" * 40


def cell(distribution: str, source: str) -> str:
    """Return what the page must say of a source."""
    host, (settings, _) = hosts.bare(hosts.T4, distro=distribution), driver_settings(distribution, source)
    found = plan(host, settings)
    if found.refusals:
        assert (distribution, source) not in TESTED, found.summary
        return "-"
    assert not plan(hosts.carried_out(host, found), settings).steps
    return "tested" if (distribution, source) in TESTED else "planned"


@pytest.mark.parametrize("distribution", catalog.distros())
def test_the_row_of_a_distribution(distribution: str) -> None:
    settings, is_keyless = driver_settings(distribution, "auto")
    chosen = plan(hosts.bare(hosts.T4, distro=distribution), settings).choices.driver
    assert chosen
    default = f"`{chosen.source}`" + (" (1)" if is_keyless else "")
    columns = [catalog.distro(distribution)["pretty"], f"`{distribution}`", default]
    assert f"| {' | '.join([*columns, *(cell(distribution, source) for source in SOURCES)])} |\n" in PAGE


@pytest.mark.parametrize("case", matrix.cases(), ids=lambda case: case.host)
def test_what_the_tests_install_is_planned_and_the_default_source_is_tested_with_its_default_branch(
    case: matrix.Case,
) -> None:
    """Otherwise "tested" would be about another branch than hosts get."""
    for version in (case.older, case.newer):
        settings, _ = driver_settings(case.distribution, case.source)
        found = plan(hosts.bare(hosts.T4, distro=case.distribution), settings._replace(nvidia_driver_version=version))
        assert not found.refusals, (version, found.summary)
    chosen = plan(
        hosts.bare(hosts.T4, distro=case.distribution), driver_settings(case.distribution, "auto")[0]
    ).choices.driver
    assert chosen and (chosen.source != case.source or case.older.startswith(f"{chosen.branch}."))


def test_tests_and_page_have_the_distributions_of_the_catalog() -> None:
    assert {distribution for distribution, _ in TESTED} <= set(catalog.distros())
    assert PAGE.count("\n| ") == len(catalog.distros()) + 1
    assert all((ROOT / f"tests/integration/{name}.py").is_file() for name in TESTED_ELSEWHERE.values())
