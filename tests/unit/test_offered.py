"""A plan with the answer of the host's package sources: what is asked, refused, moved, and warned of."""

from typing import Any

import pytest
from gpu_ready_lab import mirror

from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.module_utils.gpu_ready.packaging.index_record import FRESH, STALE, UNAVAILABLE, PackageIndex
from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan import answer, audit, compose, updates, upgrade
from plugins.plugin_utils.gpu_ready.plan.containers.runtime_cleanup import TOOLKIT_PACKAGES
from plugins.plugin_utils.gpu_ready.plan.driver.point_release import NEWEST
from plugins.plugin_utils.gpu_ready.plan.offered import IndexRequest, index_request, unlisted_branch
from plugins.plugin_utils.gpu_ready.settings.variables import parse_settings
from tests.unit.hosts import T4, bare, carried_out, having, installed, with_packages
from tests.unit.hosts import rpm as rpm_family
from tests.unit.plans import all_todo, chosen_driver

OLD, NEW = "580.95.05", "580.178.04"


def decide(facts: Facts, offered: PackageIndex | None = None, release: str = "", **given: Any) -> compose.Plan:
    facts = facts._replace(offered=offered)
    return compose.plan(facts, parse_settings(given).settings, release=release)


def asked(facts: Facts, release: str = "", part: str = "", **given: Any) -> IndexRequest | None:
    settings = parse_settings(given).settings
    decided = compose.plan(facts, settings, part=part, release=release)
    return index_request(facts, settings, decided.choices, decided.steps, release, part)


def everything(facts: Facts, **given: Any) -> dict[str, list[str]]:
    """An index that has each package of a plan."""
    request = asked(facts, **given)
    assert request
    versions = {"nvidia": f"{NEW}-0ubuntu1", "linux-": "6.8.0-88.89"}
    return {
        name: [next((one for start, one in versions.items() if name.startswith(start)), "1.0")]
        for name in request.names
    }


UBUNTU = bare(T4, distro="ubuntu2404")
FRESH_OF_ALL = PackageIndex(FRESH, everything(UBUNTU))


def test_a_plan_that_installs_packages_asks_for_all_of_them_from_the_sources_that_it_adds() -> None:
    request = asked(UBUNTU)
    assert request
    installs = {"nvidia-headless-no-dkms-580-server-open", "docker.io", "nvidia-container-toolkit", "gcc"}
    assert installs <= set(request.names) and request.names == sorted(set(request.names))
    assert {one.id for one in request.sources.repositories} >= {"container-toolkit"}


def test_nobody_is_asked_about_a_host_in_the_desired_state_or_where_the_operator_says_so() -> None:
    ready = carried_out(UBUNTU, decide(UBUNTU))
    assert asked(ready) is None and asked(UBUNTU, gpu_ready_index="none") is None
    assert decide(UBUNTU, FRESH_OF_ALL)._replace(warnings=[]) == decide(UBUNTU)._replace(warnings=[])


def test_a_refused_plan_asks_nobody() -> None:
    calls: list[IndexRequest] = []

    def ask(request: IndexRequest) -> PackageIndex:
        calls.append(request)
        return FRESH_OF_ALL

    for given, count in (({}, 1), ({"nvidia_driver_branch": "390"}, 0)):
        calls.clear()
        answer.plan_json(UBUNTU, parse_settings(given).settings, ask=ask)
        assert len(calls) == count


@pytest.mark.parametrize(
    ("name", "versions", "message"),
    [
        (
            "nvidia-headless-no-dkms-580-server-open",
            [],
            "nvidia-headless-no-dkms-580-server-open 580.* is in no package source of this host (offered: none)",
        ),
        (
            "nvidia-headless-no-dkms-580-server-open",
            ["580.95.05-0ubuntu1"],
            f"nvidia-headless-no-dkms-580-server-open {NEW}-* is in no package source of this host (offered: 580.95.05-0ubuntu1)",
        ),
        (
            "nvidia-container-toolkit",
            [],
            "nvidia-container-toolkit is in no package source of this host (offered: none)",
        ),
    ],
)
def test_what_no_source_offers_is_refused_before_any_change(name: str, versions: list[str], message: str) -> None:
    given = {"nvidia_driver_version": NEW} if versions else {}
    index = PackageIndex(FRESH, {**everything(UBUNTU, **given), name: versions})
    plan = decide(UBUNTU, index, **given)
    assert [one.message for one in plan.refusals if one.code == "not_offered"] == [message] and not plan.steps
    for state in (STALE, UNAVAILABLE):
        lenient = decide(UBUNTU, index._replace(state=state), **given)
        assert not lenient.refusals and lenient.steps


def test_a_plan_says_how_much_it_downloads() -> None:
    request = asked(UBUNTU)
    assert request and "nvidia-headless-no-dkms-580-server-open" in [one.name for one in request.install]
    assert decide(UBUNTU, FRESH_OF_ALL._replace(download=1_234_000_000)).summary.endswith(
        " steps to do, 1.2 GB of packages to download"
    )
    assert decide(UBUNTU, FRESH_OF_ALL).summary.endswith(" steps to do")


def test_a_refusal_names_the_sources_that_were_not_read() -> None:
    dead = "/etc/apt/sources.list.d/x.list: no answer"
    index = FRESH_OF_ALL._replace(versions={**FRESH_OF_ALL.versions, "docker.io": []}, failed=[dead])
    (refusal,) = decide(UBUNTU, index).refusals
    assert refusal.message.endswith(f"(offered: none). Not read were: {dead}")


def test_a_transitional_name_of_another_branch_is_not_the_driver() -> None:
    name = "nvidia-headless-no-dkms-580-server-open"
    index = PackageIndex(FRESH, {**FRESH_OF_ALL.versions, name: ["595.91.07-0ubuntu1"]})
    (refusal,) = decide(UBUNTU, index).refusals
    assert refusal.message == f"{name} 580.* is in no package source of this host (offered: 595.91.07-0ubuntu1)"


@pytest.mark.parametrize(
    "distro", ["debian12", "debian13", "ubuntu2204", "ubuntu2404", "ubuntu2604", "el8", "el9", "el10", "amzn2023"]
)
def test_the_plans_of_each_source_and_branch_are_offered_by_the_lab_mirror(distro: str) -> None:
    """The versions and names of the mirror are those of the vendors' indexes: no rule here may refuse them."""
    versions: dict[str, list[str]] = {}
    debs, rpms = mirror.declared()[:2]
    declared = [(one.name, f"{one.version}-{one.release}") for one in rpms] if rpm_family(distro) else []
    for name, version in declared or [(one.name, one.version) for one in debs]:
        versions.setdefault(name, []).append(version)
    data, planned = catalog.distro(distro), 0
    for source in (
        ("distro", "cuda_repo") if distro.startswith("ubuntu") else ("cuda_repo",)
    ):  # Debian's is not the lab's
        for kind in driver_sources.module_kinds(data, source) if source in data["driver_sources"] else []:
            for branch in driver_sources.branches(data, source, kind):
                given = {"nvidia_driver_source": source, "nvidia_driver_branch": str(branch)}
                given |= {"nvidia_driver_kernel_modules": kind, "cuda_toolkit_source": "none", "cudnn_source": "none"}
                facts = bare(T4, distro=distro)
                plan = decide(facts, PackageIndex(FRESH, versions), **given)
                planned += bool(plan.steps)
                assert "not_offered" not in [one.code for one in plan.refusals], (given, plan.refusals)
    assert planned


def test_a_package_that_is_not_asked_for_or_installed_already_is_not_refused() -> None:
    versions = {name: found for name, found in FRESH_OF_ALL.versions.items() if name != "docker.io"}
    assert not decide(UBUNTU, PackageIndex(FRESH, versions)).refusals
    compiler = with_packages(UBUNTU, gcc="13")
    assert not decide(compiler, PackageIndex(FRESH, {**FRESH_OF_ALL.versions, "gcc": []})).refusals


def test_a_pin_of_others_is_a_refusal_with_its_file_where_any_version_would_do() -> None:
    why = "a pin forbids the package x: its version 1 has the priority -1, by /etc/apt/preferences.d/x line 1. Change the pin, then run again"
    (refusal,) = decide(UBUNTU, FRESH_OF_ALL._replace(hidden={"nvidia-headless-no-dkms-580-server-open": why})).refusals
    assert (
        refusal.message.endswith("/etc/apt/preferences.d/x line 1")
        and refusal.remedy == "change the pin, then run again"
    )


def test_headers_that_the_archive_no_longer_has_are_refused_with_their_remedy() -> None:
    name = next(name for name in FRESH_OF_ALL.versions if name.startswith("linux-headers-6"))
    (refusal,) = decide(UBUNTU, PackageIndex(FRESH, {**FRESH_OF_ALL.versions, name: []})).refusals
    assert refusal.message.startswith(f"{name} is in no package source") and "upgrade the kernel" in refusal.remedy


@pytest.mark.parametrize(
    ("index", "code", "text"),
    [
        (PackageIndex(STALE, age=3 * 86400, cause="x: no answer"), "index_stale", "as of 3 days ago"),
        (PackageIndex(STALE, age=7200, cause="x: no answer"), "index_stale", "as of 2 hours ago"),
        (PackageIndex(UNAVAILABLE, cause="x: no answer"), "index_unavailable", "is not known"),
        (PackageIndex(FRESH, failed=["/etc/x: no answer"]), "source_unread", "/etc/x: no answer"),
    ],
)
def test_how_far_the_answer_can_be_relied_on_is_a_notice(index: PackageIndex, code: str, text: str) -> None:
    (notice,) = [one for one in decide(UBUNTU, index).warnings if one.code in (code, "index_stale")]
    assert notice.code == code and text in notice.message and ("no answer" in notice.message)


# ---- a branch that no list of the catalog has ------------------------------------------------------------------------


def test_a_requested_branch_that_no_list_has_is_asked_for_and_planned_where_it_is_offered() -> None:
    facts = bare(T4, distro="fedora43")
    given = {"nvidia_driver_branch": "620", "gpu_ready_mirror_keys": {"cuda-fedora43": "A" * 40}}
    asks: list[IndexRequest] = []

    def plan(versions: list[str], **more: str) -> Any:
        def ask(request: IndexRequest) -> PackageIndex:
            asks.append(request)
            return PackageIndex(FRESH, dict.fromkeys(request.names, versions))

        return answer.plan_json(facts, parse_settings({**given, **more}).settings, ask=ask)["plan"]

    refused, planned = plan(["595.91.07-1.fc43"]), plan(["620.70.06-1.fc43", "595.91.07-1.fc43"])
    assert {"nvidia-driver-cuda", "kmod-nvidia-open-dkms"} <= set(asks[0].names)
    assert [one.id for one in asks[0].sources.repositories] == ["cuda-fedora43"]
    assert [one["code"] for one in refused["refusals"]] == ["branch_not_carried"]
    assert not planned["refusals"] and planned["choice"]["driver"]["branch"] == 620
    assert "not_in_catalog" in [one["code"] for one in planned["warnings"]]
    asks.clear()
    plan([], gpu_ready_index="none")
    plan([], nvidia_driver_flavour="proprietary")  # 620 has none: nobody can offer it
    assert not asks


# ---- point releases --------------------------------------------------------------------------------------------------


def host(distro: str = "ubuntu2404", source: str = "distro", version: str = OLD) -> Facts:
    """A host in the desired state; tests install the newest release of a package that a step names by a pattern."""
    facts = installed(distro, T4, source, version, "open")
    facts = carried_out(facts, decide(facts))
    own = {name: found.replace(NEW, version) for name, found in facts.driver.packages.items()}
    facts = with_packages(having(facts, driver={"packages": own}), **own)
    facts = carried_out(facts, decide(facts))
    assert not decide(facts).steps, decide(facts).steps
    return facts


def offers(facts: Facts, *versions: str) -> PackageIndex:
    request = asked(facts, NEWEST)
    assert request
    form = "%s-0ubuntu1" if facts.apt.sources else "%s-1.el9"
    found = {name: [form % one for one in versions] for name in request.names if "*" not in name}
    pins = {name.replace("*", one): [one] for name in request.names for one in versions if "*" in name}
    return PackageIndex(FRESH, found | pins)


@pytest.mark.parametrize(
    ("distro", "source"), [("ubuntu2404", "distro"), ("debian12", "cuda_repo"), ("el9", "cuda_repo")]
)
def test_an_upgrade_moves_a_driver_to_the_newest_release_of_its_branch_and_site_keeps_it(
    distro: str, source: str
) -> None:
    facts = host(distro, source)
    index = offers(facts, "595.91.07", NEW, OLD)
    assert asked(facts) is None and chosen_driver(decide(facts, index)).satisfied
    plan = decide(facts, index, NEWEST)
    assert not plan.refusals, plan.refusals
    chosen = chosen_driver(plan)
    assert (chosen.version, chosen.branch, chosen.moved) == (NEW, 580, True)
    packages = all_todo(plan)["nvidia_driver.install"]["packages"]
    assert packages and {one["version"] for one in packages} == {f"{NEW}-*"}
    # The same request, so the record of the verification stays valid for site.yml.
    assert plan.digest == decide(facts).digest
    assert decide(facts, None, NEW).steps == plan.steps


@pytest.mark.parametrize("versions", [[OLD], ["580.65.06"], ["595.91.07"], []])
def test_a_driver_stays_where_its_source_has_nothing_newer_of_its_branch(versions: list[str]) -> None:
    facts = host()
    assert chosen_driver(decide(facts, offers(facts, *versions), NEWEST)).satisfied


def test_only_a_release_that_all_packages_have_counts() -> None:
    facts = host()
    index = offers(facts, NEW, OLD)
    first = min(name for name in index.versions if name.startswith("nvidia-headless"))
    index.versions[first] = [f"{OLD}-0ubuntu1"]
    assert chosen_driver(decide(facts, index, NEWEST)).satisfied


def test_a_package_that_is_named_after_the_release_stays_behind() -> None:
    facts = host()
    index, firmware = offers(facts, NEW, OLD), f"nvidia-firmware-580-server-{OLD}"
    facts = with_packages(
        having(facts, driver={"packages": {**facts.driver.packages, firmware: OLD}}), **{firmware: OLD}
    )
    index.versions[firmware] = [OLD]
    assert chosen_driver(decide(facts, index, NEWEST)).version == NEW


def test_a_release_whose_pin_the_source_has_not_does_not_count() -> None:
    facts = host("debian12", "cuda_repo")
    index = offers(facts, NEW, "580.126.20", OLD)
    del index.versions[f"nvidia-driver-pinning-{NEW}"]
    assert chosen_driver(decide(facts, index, NEWEST)).version == "580.126.20"


def test_a_requested_version_is_the_target_and_asks_for_no_newest() -> None:
    facts = host()
    assert asked(facts, NEWEST, nvidia_driver_version=OLD) is None
    plan = decide(facts, offers(facts, NEW), NEWEST, nvidia_driver_version=OLD)
    assert chosen_driver(plan).satisfied and not chosen_driver(plan).moved


def test_a_turn_takes_the_branch_that_only_the_sources_have_and_asks_them_no_more() -> None:
    facts, settings = host(), parse_settings({"nvidia_driver_branch": "620", "nvidia_driver_source": "distro"}).settings
    asking = compose.plan(facts, settings, release=NEWEST)
    request = unlisted_branch(facts, settings, asking.refusals)
    assert request
    proprietary = {name.removesuffix("-open") for name in request.names if name.endswith("-open")}
    index = PackageIndex(FRESH, {name: ["620.95.02-0ubuntu1"] for name in {*request.names} - proprietary})
    found = facts._replace(offered=index)
    first = compose.plan(found, settings, release=NEWEST)
    status = upgrade.upgrade_status(found, first, settings)
    assert not first.refusals and status.release == "620-open"
    later = compose.plan(facts, settings, release=status.release)
    assert chosen_driver(later) == chosen_driver(first) and later.steps == first.steps
    assert compose.plan(facts, settings).refusals  # without the index nobody knows
    assert upgrade.upgrade_status(host(), decide(host()), parse_settings({}).settings).release == ""


def test_a_resumed_upgrade_keeps_its_target_and_asks_nobody() -> None:
    facts = host()
    journal = {"phase": "switching", "to": "580.126.20"}
    facts = having(facts, upgrade=journal)
    assert asked(facts, NEWEST) is None
    assert chosen_driver(decide(facts, None, NEWEST)).version == "580.126.20"


def test_a_host_that_an_upgrade_has_just_left_is_asked_nothing() -> None:
    """A rollout that is repeated costs one call for each host that is done."""
    calls: list[IndexRequest] = []

    def ask(request: IndexRequest) -> PackageIndex:
        calls.append(request)
        return PackageIndex()

    settings = parse_settings({}).settings
    for phase, to, age, count in (
        ("done", NEW, 3600, 0), ("done", "580", 3600, 0), ("done", NEW, 90000, 1), ("done", OLD, 60, 1),
    ):  # fmt: skip
        facts = having(
            host(version=NEW), upgrade={"phase": phase, "to": to, "fetched": {"to": to, "time": 100000 - age}}
        )
        calls.clear()
        answer.plan_json(facts, settings, now=100000, release=NEWEST, ask=ask)
        assert len(calls) == count, (phase, to, age)


# ---- the container toolkit -------------------------------------------------------------------------------------------


def vulnerable(**more: str) -> Facts:
    facts = having(host(version=NEW), runtime={"toolkit": True})
    facts = with_packages(facts, **dict.fromkeys(TOOLKIT_PACKAGES, "1.17.3-1"), **more)
    return facts._replace(verified=None)


def toolkits(*versions: str) -> PackageIndex:
    return PackageIndex(FRESH, {name: [f"{one}-1" for one in versions] for name in TOOLKIT_PACKAGES})


def test_a_vulnerable_toolkit_is_replaced_by_the_newest_fixed_one_that_is_offered() -> None:
    facts = vulnerable()
    request = asked(facts)
    assert request and set(TOOLKIT_PACKAGES) <= set(request.names)
    plan = decide(facts, toolkits("1.20.1", "1.19.1", "1.17.8"))
    packages = all_todo(plan)["nvidia_container_runtime.install"]["packages"]
    assert packages == [{"name": name, "version": "1.20.1*"} for name in TOOLKIT_PACKAGES]
    assert "known_vulnerabilities" not in [one.code for one in plan.warnings]
    (step,) = [one for one in plan.steps if one.id == "nvidia_container_runtime.install"]
    assert step.disruption == "none" and step.why == (
        "the NVIDIA container toolkit is 1.17.3-1, which has published vulnerabilities; 1.20.1 is offered"
    )


@pytest.mark.parametrize("index", [None, toolkits("1.17.8", "1.17.3"), toolkits("1.20.1")._replace(state=STALE)])
def test_a_vulnerable_toolkit_stays_with_its_warning_where_no_fixed_one_is_offered(index: PackageIndex | None) -> None:
    plan = decide(vulnerable(), index)
    assert "nvidia_container_runtime.install" not in all_todo(plan)
    assert "known_vulnerabilities" in [one.code for one in plan.warnings]


def test_a_toolkit_that_is_held_requested_or_of_another_part_is_not_asked_for() -> None:
    facts = vulnerable()
    held = having(facts, packages={"held": [TOOLKIT_PACKAGES[0]]})
    assert asked(held) is None
    assert asked(facts, nvidia_container_toolkit_version="1.17.3") is None
    assert asked(facts, part="nvidia_driver") is None and asked(facts, part="nvidia_container_runtime")


# ---- newer versions that wait, for an audit ---------------------------------------------------------------------------


def newer(facts: Facts, index: PackageIndex | None) -> dict[str, tuple[Any, ...]]:
    """Return the checks of newer versions: desired, found, verdict, reason."""
    checks: Any = audit.answer_json(facts._replace(offered=index), decide(facts))["checks"]
    return {
        one["name"]: (one["desired"], one["found"], one["ok"], one["why"])
        for one in checks
        if one["name"].startswith(updates.NEWER)
    }


def test_an_audit_names_the_newer_version_of_each_component_that_waits_without_drift() -> None:
    facts = with_packages(host(), **dict.fromkeys(TOOLKIT_PACKAGES, "1.19.1-1"), **{"docker.io": "28.2.2-0ubuntu1"})
    facts = having(facts, runtime={"toolkit": True}, docker={"installed": True})
    settings, decided = parse_settings({}).settings, decide(facts)
    request = updates.update_request(facts, settings, decided.choices)
    assert request and {"docker.io", "nvidia-container-toolkit", "nvidia-utils-580-server"} <= set(request.names)
    found = {name: [f"{NEW}-0ubuntu1", f"{OLD}-0ubuntu1"] for name in request.names if name.startswith("nvidia-")}
    found |= {name: ["1.20.1-1", "1.19.1-1"] for name in TOOLKIT_PACKAGES} | {"docker.io": ["28.2.2-0ubuntu1"]}
    assert newer(facts, PackageIndex(FRESH, found)) == {
        "newer_driver": (NEW, OLD, None, f"{NEW} is offered, {OLD} is installed"),
        "newer_container_toolkit": ("1.20.1", "1.19.1", None, "1.20.1 is offered, 1.19.1 is installed"),
        "newer_docker": ("28.2.2", "28.2.2", True, ""),
    }
    assert newer(facts, None) == {}
    unknown = newer(facts, PackageIndex(UNAVAILABLE, cause="no answer"))
    assert unknown["newer_driver"] == (None, OLD, None, "what its source offers is not known: no answer")
    assert updates.update_request(facts, parse_settings({"gpu_ready_index": "none"}).settings, decided.choices) is None
    assert updates.update_request(bare(T4), settings, decide(bare(T4)).choices) is None
