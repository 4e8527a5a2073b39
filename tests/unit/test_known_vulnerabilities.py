"""Published vulnerabilities of an installed driver and container toolkit, in the plan and in the audit."""

from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan import audit, compose, security
from plugins.plugin_utils.gpu_ready.plan.containers import runtime_cleanup
from plugins.plugin_utils.gpu_ready.plan.model import PackageTarget
from plugins.plugin_utils.gpu_ready.settings.variables import parse_settings
from tests.unit.hosts import T4, V100, having, installed, with_packages


@pytest.mark.parametrize(
    ("component", "version", "bulletins", "fixed"),
    [
        ("driver", "580.178.04", (), ""),
        ("driver", "580.159.03", (), ""),
        ("driver", "580.126.20", ("5821",), "580.159.03"),
        ("driver", "580.95.05", ("5747", "5821"), "580.159.03"),
        ("driver", "580.65.06", ("5703", "5747", "5821"), "580.159.03"),
        # 570 ended in February 2026: the first of its bulletins have a fix in the branch, the last one has none.
        ("driver", "570.86.15", ("5630", "5703", "5747", "5821"), ""),
        ("driver", "570.211.01", ("5821",), ""),
        # Between the branches with a fix, and older than all.
        ("driver", "590.48.01", ("5821",), ""),
        ("driver", "470.256.02", ("5586", "5630", "5703", "5747", "5821"), ""),
        # Newer than every branch of a bulletin: it never had the fault.
        ("driver", "620.70.06", (), ""),
        ("driver", "595.45.04", ("5821",), "595.71.05"),
        ("container_toolkit", "1.13.5", ("5582", "5616", "5659", "5850"), "1.19.1"),
        ("container_toolkit", "1.17.8", ("5850",), "1.19.1"),
        ("container_toolkit", "1.19.1", (), ""),
        ("container_toolkit", "1.20.0", (), ""),
        ("driver", None, (), ""),
        ("driver", "unknown", (), ""),
        ("docker", "20.10.24", (), ""),
    ],
)
def test_a_version_is_compared_with_the_fix_of_its_branch(
    component: str, version: str | None, bulletins: tuple[str, ...], fixed: str
) -> None:
    found = security.find_vulnerable(component, version)
    assert (found.bulletins if found else (), found.fixed if found else "") == (bulletins, fixed)


def test_every_bulletin_names_a_component_and_what_fixes_it() -> None:
    for one in catalog.bulletins():
        assert one.component in security.NAMES and one.cves and one.fixed, one
        branches = [version.partition(".")[0] for version in one.fixed]
        assert len(set(branches)) == len(branches), one


def host(version: str = "580.178.04", toolkit: str = "1.20.0-1", device: str = T4) -> Any:
    flavour = "proprietary" if device == V100 else "open"
    facts = having(installed("ubuntu2404", device, "cuda_repo", version, flavour), runtime={"toolkit": True})
    return with_packages(facts, **{runtime_cleanup.TOOLKIT_PACKAGES[0]: toolkit})


def notices(facts: Any, **given: Any) -> list[tuple[str, str]]:
    plan = compose.plan(facts, parse_settings(given).settings)
    return [(one.message, one.remedy) for one in plan.warnings if one.code == "known_vulnerabilities"]


OLD_TOOLKIT = (
    "the NVIDIA container toolkit 1.13.5 has published vulnerabilities, fixed in 1.19.1 (CVE-2026-24260 and 5 more;"
    " bulletins 5582, 5616, 5659, 5850 of NVIDIA)"
)


def test_the_plan_warns_of_what_stays_vulnerable() -> None:
    assert notices(host()) == []
    assert notices(host(toolkit="1.13.5-1")) == [
        (OLD_TOOLKIT, "set nvidia_container_toolkit_version to 1.19.1 or a newer one, and run site.yml")
    ]
    ((message, remedy),) = notices(host("580.95.05"))
    assert message.startswith("the driver 580.95.05 has published vulnerabilities, fixed in 580.159.03 (CVE-")
    newest = catalog.branch_rules(580).newest
    assert remedy == f"run playbooks/upgrade_drivers.yml with nvidia_driver_version={newest}, or a newer one"


def test_a_driver_without_a_fix_in_its_branch_needs_another_branch() -> None:
    ((message, remedy),) = notices(host("570.211.01"))
    assert "not fixed in branch 570" in message
    assert remedy.endswith("nvidia_driver_branch set to one that has the fixes: 535, 580, 595")


def test_an_archive_has_one_version_at_a_time() -> None:
    facts = having(installed("debian12", T4, "distro", "535.261.03", "proprietary"), runtime={"toolkit": True})
    ((message, remedy),) = notices(facts, nvidia_driver_source="distro")
    assert message.startswith("the driver 535.261.03 has published vulnerabilities, fixed in 535.309.01")
    assert remedy == (
        "run playbooks/upgrade_drivers.yml when the archive has 535.309.01, or set nvidia_driver_source to cuda_repo or"
        " runfile"
    )


def test_what_the_plan_replaces_is_judged_by_what_comes() -> None:
    assert notices(host("580.95.05"), nvidia_driver_version="580.178.04") == []
    ((message, _),) = notices(host("570.211.01"), nvidia_driver_version="580.95.05")
    assert message.startswith("the driver 580.95.05")


@pytest.mark.parametrize(
    ("facts", "ok", "desired"),
    [
        (host(), True, None),
        (host(toolkit="1.13.5-1"), False, "NVIDIA container toolkit 1.19.1"),
        (host("580.95.05"), False, "driver 580.159.03"),
        (host("570.211.01"), None, None),
        (having(host("535.261.03"), driver={"origin": "distro"}), None, None),
        (host("570.211.01", "1.13.5-1"), False, "NVIDIA container toolkit 1.19.1"),
    ],
)
def test_the_audit_is_drift_where_a_fix_can_be_had(facts: Any, ok: bool | None, desired: str | None) -> None:
    plan = compose.plan(facts, parse_settings({}).settings)
    (found,) = audit.check_security(facts, plan)
    assert (found.ok, found.desired) == (ok, desired)
    assert bool(found.why) is (ok is not True)
    assert "security" in [one.name for one in audit.all_checks(facts, plan)]


@pytest.mark.parametrize(
    ("found", "requested", "packages"),
    [
        ("1.13.5-1", "", None),
        ("1.19.1-1", "1.19.1", None),
        ("1.19.1-1", "1.19", None),
        ("1.13.5-1", "1.19.1", "1.19.1*"),
        ("1.20.0-1", "1.19", "1.19*"),  # down too
        ("1.19.10-1", "1.19.1", "1.19.1*"),
    ],
)
def test_the_toolkit_gets_the_requested_version_with_all_packages_of_its_release(
    found: str, requested: str, packages: str | None
) -> None:
    given = {"nvidia_container_toolkit_version": requested}
    plan = compose.plan(host(toolkit=found), parse_settings(given).settings)
    steps = {step.id: step for step in plan.steps}
    assert ("nvidia_container_runtime.install" in steps) is bool(packages)
    if packages:
        targets = steps["nvidia_container_runtime.install"].params.packages  # type: ignore[attr-defined]
        assert {one.name for one in targets} == {*runtime_cleanup.TOOLKIT_PACKAGES} and {
            one.version for one in targets
        } == {packages}
        assert found in steps["nvidia_container_runtime.install"].why
        assert [one.code for one in plan.warnings if one.code == "known_vulnerabilities"] == []


@pytest.mark.parametrize("mode", ["cdi", "native"])
def test_a_toolkit_that_containers_do_not_need_is_left_to_the_operator(mode: str) -> None:
    facts, given = host(toolkit="1.13.5-1"), {"nvidia_container_runtime_mode": mode}
    ((message, remedy),) = notices(facts, **given)
    assert message == OLD_TOOLKIT
    assert remedy == "upgrade nvidia-container-toolkit to 1.19.1 or a newer version with the host's package manager"
    (found,) = audit.check_security(facts, compose.plan(facts, parse_settings(given).settings))
    assert found.ok is None and remedy in found.why


def test_a_missing_toolkit_comes_in_the_requested_version() -> None:
    bare = installed("ubuntu2404", T4, "cuda_repo", "580.178.04", "open")
    given = {"nvidia_container_toolkit_version": "1.19.1"}
    (step,) = [
        one for one in compose.plan(bare, parse_settings(given).settings).steps if one.id.endswith("runtime.install")
    ]
    assert step.params.packages[0] == PackageTarget("nvidia-container-toolkit", "1.19.1*")  # type: ignore[attr-defined]
