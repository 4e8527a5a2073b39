"""Which branch is chosen on which day, by kind, end of support and age; the day is an input of the plan."""

from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.catalog.fleet import mixed_branches
from plugins.plugin_utils.gpu_ready.completion import complete
from plugins.plugin_utils.gpu_ready.plan import compose
from tests.unit import past_hosts
from tests.unit.goldens import decide
from tests.unit.hosts import B200, T4, V100, bare, installed

pytestmark = pytest.mark.usefixtures("catalog_of_2026")


def on(day: str, *devices: str, distro: str = "el9", **given: Any) -> compose.Plan:
    return decide(bare(*devices, distro=distro)._replace(today=day), **given)


def branch(decided: compose.Plan) -> int | None:
    assert not decided.refusals, decided.refusals
    assert decided.choices.driver
    return decided.choices.driver.branch


@pytest.mark.parametrize(
    ("day", "expected"),
    [
        pytest.param("2026-11-27", 580, id="620 is 23 days old"),
        pytest.param("2027-02-01", 580, id="620 is 89 days old"),
        pytest.param("2027-02-02", 620, id="620 is 90 days old"),
        pytest.param("2028-07-01", 620, id="580 has ended"),
    ],
)
def test_the_maintained_branch_with_the_longest_support_is_chosen_once_it_is_old_enough(
    day: str, expected: int
) -> None:
    assert branch(on(day, T4)) == expected
    assert branch(on(day, T4, gpu_ready_branch_min_age=0)) == 620
    assert branch(on(day, V100)) == 580


def test_a_branch_that_ends_is_warned_of_on_that_day() -> None:
    def warned(day: str) -> bool:
        return "branch_ended" in {one.code for one in on(day, T4, nvidia_driver_branch="595").warnings}

    assert not warned("2027-03-31") and warned("2027-04-01")


@pytest.mark.parametrize(
    ("policy", "expected"), [("lts", 620), ("production", 620), ("newest", 620), ("auto", 580), ("580", 580)]
)
def test_a_policy_names_a_kind_whatever_its_age(policy: str, expected: int) -> None:
    assert branch(on("2026-11-27", T4, nvidia_driver_branch=policy)) == expected


def test_the_newest_one_of_a_kind_is_taken_from_the_source_that_has_it() -> None:
    decided = on("2026-11-27", T4, distro="ubuntu2404", nvidia_driver_branch="newest")
    assert decided.choices.driver and decided.choices.driver.source == "cuda_repo" and branch(decided) == 620
    assert (
        branch(on("2026-11-27", T4, distro="ubuntu2404", nvidia_driver_branch="newest", nvidia_driver_source="distro"))
        == 615
    )
    assert (
        branch(
            on("2026-11-27", T4, distro="ubuntu2404", nvidia_driver_branch="production", nvidia_driver_source="distro")
        )
        == 595
    )


def test_an_installed_driver_of_the_kind_stays_and_another_does_not() -> None:
    for have, policy, stays in [
        ("580.178.04", "lts", True),
        ("595.91.07", "lts", False),
        ("595.91.07", "production", True),
    ]:
        decided = decide(installed("el9", T4, "cuda_repo", have, "open"), nvidia_driver_branch=policy)
        assert decided.choices.driver and decided.choices.driver.satisfied is stays, (have, policy)


def test_a_kind_that_no_branch_of_a_gpu_has_is_refused() -> None:
    (refusal,) = on("2026-11-27", "102d", nvidia_driver_branch="lts").refusals
    assert refusal.code == "branch_policy_impossible" and refusal.change


def test_a_branch_that_no_source_confirms_waits_for_one_that_is_confirmed() -> None:
    assert branch(on("2026-11-27", B200, distro="fedora44")) == 620  # neither is 90 days old
    assert branch(on("2026-12-10", B200, distro="fedora44")) == 615
    assert branch(on("2027-02-02", B200, distro="fedora44")) == 620
    assert branch(on("2026-11-27", V100, distro="fedora44")) == 580


def test_the_age_of_the_catalog_is_reported_from_three_months_on() -> None:
    def notice(day: str) -> list[str]:
        return [one.message for one in on(day, T4).warnings if one.code == "catalog_old"]

    assert notice("2027-02-24") == [] and notice("") == []
    assert notice("2027-02-25") == [
        f"the catalog is of {catalog.DATE}, 3 months ago: newer branches, toolkits and cards are not in it"
    ]


def test_the_day_is_that_of_the_control_node_whatever_a_host_says() -> None:
    host = past_hosts.recorded(past_hosts.PASTS["bare-ubuntu"])
    facts = complete.collect_facts(host, None, "2027-01-01")
    assert facts.today == "2027-01-01"
    assert complete.complete(facts._replace(today="1999-01-01"), None, "2027-01-02").today == "2027-01-02"


def test_a_fleet_with_more_than_one_branch_is_named() -> None:
    assert mixed_branches(["580", None, "580.178.04"]) == ""
    assert (
        mixed_branches(["580", "620", "580.178.04"]) == "fleet_mixed: 2 x 580, 1 x 620; nvidia_driver_branch settles it"
    )
