"""DCGM and its exporter: when which steps are planned, what is left alone, and that the role writes what the plan knows."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.driver import gpu_services
from plugins.module_utils.gpu_ready.facts import monitoring as facts_monitoring
from plugins.module_utils.gpu_ready.facts.model import Facts, MonitoringFacts
from plugins.module_utils.gpu_ready.system import monitoring_files as files
from plugins.plugin_utils.gpu_ready.catalog import data as catalog_data
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.execute.monitoring import DCGM_FILES, FILES
from plugins.plugin_utils.gpu_ready.plan import audit, compose
from plugins.plugin_utils.gpu_ready.plan.dcgm import DcgmParams
from plugins.plugin_utils.gpu_ready.plan.model import PackageTarget
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import hosts
from tests.unit.recorded import RecordedHost

ROOT = Path(__file__).resolve().parents[2]
CORE, EXPORTER = "datacenter-gpu-manager-4-core", "datacenter-gpu-manager-exporter"
PAIR = {CORE: "1:4.5.3-1", EXPORTER: "4.8.2-1"}
DIGESTS: dict[str, str] = catalog_data.DCGM["files"]


def settings(*modes: str) -> Any:
    found, errors = variables.parse_settings({"gpu_monitoring": list(modes)})
    assert errors == []
    return found


def host(packages: dict[str, str], held: bool = True, distro: str = "debian12", **known: Any) -> Facts:
    """A host with the driver of NVIDIA's repository, and these packages and facts of DCGM."""
    facts = hosts.with_driver(hosts.bare(hosts.T4, distro=distro), "580.95.05", "open", "cuda_repo", [])
    installed = facts.packages._replace(
        installed=dict(facts.packages.installed, **packages),
        held=[*facts.packages.held, *(packages if held else [])],
    )
    return facts._replace(packages=installed, monitoring=MonitoringFacts(python="/usr/bin/python3", **known))


def steps(facts: Facts, *modes: str) -> dict[str, Any]:
    found = compose.plan(facts, settings(*modes))
    assert found.refusals == []
    return {step.id: step for step in found.steps if step.id.startswith("gpu_monitoring.")}


def test_packages_of_one_pair_are_installed_and_held_without_a_verification() -> None:
    before, after = compose.plan(host({}), settings()), compose.plan(host({}), settings("dcgm"))
    added = [step for step in after.steps if step.id not in {one.id for one in before.steps}]
    step = added[-1]
    assert step.id == "gpu_monitoring.dcgm" and step.disruption == "none"
    assert {one.id for one in added} <= {"gpu_monitoring.repository", "gpu_monitoring.dcgm"}
    assert isinstance(step.params, DcgmParams)
    assert step.params.packages == [PackageTarget(CORE, "4.5.3-*"), PackageTarget(EXPORTER, "4.8.2-*")]
    assert step.params.hold == [CORE, EXPORTER]
    assert after.digest == before.digest


@pytest.mark.parametrize(
    ("distro", "tools"),
    [("el8", ["python3-dnf-plugin-versionlock"]), ("el9", ["python3-dnf-plugin-versionlock"]), ("fedora44", [])],
)
def test_rpm_packages_are_held_by_version_locks_whose_program_is_installed_with_them(
    distro: str, tools: list[str]
) -> None:
    found = steps(host({}, distro=distro), "dcgm")
    repository = found["gpu_monitoring.repository"].params.repositories
    assert [one.id for one in repository] == [catalog.distro(distro)["driver_sources"]["cuda_repo"]["repository"]]
    params = found["gpu_monitoring.dcgm"].params
    pair = [PackageTarget(CORE, "4.5.3-*"), PackageTarget(EXPORTER, "4.8.2-*")]
    assert params.packages == pair + [PackageTarget(name) for name in tools]
    assert params.hold == [CORE, EXPORTER]
    unheld = host({**PAIR, **dict.fromkeys(tools, "4.0-1")}, held=False, distro=distro, dcgm=DIGESTS, dcgm_running=True)
    assert steps(unheld, "dcgm")["gpu_monitoring.dcgm"].params.packages == pair
    assert steps(host(PAIR, distro=distro, dcgm=DIGESTS, dcgm_running=True), "dcgm") == {}


def test_a_host_in_the_desired_state_has_no_step() -> None:
    assert steps(host(PAIR, dcgm=DIGESTS, dcgm_running=True), "dcgm") == {}


@pytest.mark.parametrize(
    ("packages", "held", "known", "reason"),
    [
        (PAIR, True, {"dcgm_running": False}, "does not run"),
        (PAIR, False, {}, "unattended upgrade"),
        (PAIR, True, {"dcgm": dict(DIGESTS, **{files.COUNTERS: "0"})}, files.COUNTERS),
        ({CORE: PAIR[CORE]}, True, {}, EXPORTER + " is not installed"),
        ({CORE: PAIR[CORE], EXPORTER: "4.8.4-1"}, True, {}, EXPORTER + " is not installed in the version"),
    ],
)
def test_what_differs_is_planned_and_drift(
    packages: dict[str, str], held: bool, known: dict[str, Any], reason: str
) -> None:
    facts = host(packages, held, **{"dcgm": DIGESTS, "dcgm_running": True, **known})
    assert reason in steps(facts, "dcgm")["gpu_monitoring.dcgm"].why
    answer = audit.answer_json(facts, compose.plan(facts, settings("dcgm")))
    (check,) = [one for one in answer["checks"] if one["name"] == "monitoring"]  # type: ignore[attr-defined]
    assert check["ok"] is False and reason in check["why"]


def test_another_version_of_others_is_left_as_it_is_with_a_warning() -> None:
    plan = compose.plan(host({CORE: "1:4.6.1-1", EXPORTER: "4.8.4-1"}), settings("dcgm"))
    assert not [step for step in plan.steps if step.id.startswith("gpu_monitoring.")]
    (warning,) = [one for one in plan.warnings if one.code == "dcgm_other_version"]
    assert "4.8.4-1" in warning.message


def test_without_the_setting_it_is_removed_where_it_is_ours() -> None:
    removal = steps(host(PAIR, dcgm=DIGESTS, dcgm_running=True))["gpu_monitoring.remove_dcgm"]
    assert removal.params == ([CORE, EXPORTER], sorted(files.DCGM_FILES))
    assert steps(host(PAIR)) == {}


def test_where_nvidia_has_no_repository_dcgm_is_refused() -> None:
    facts = host({}, distro="ubuntu2610")
    (refusal,) = compose.plan(facts, settings("dcgm")).refusals
    assert refusal.code == "dcgm_without_source" and "Ubuntu 26.10" in refusal.message


def test_both_units_are_stopped_for_a_live_reload_the_exporter_first() -> None:
    order = [f"{name}.service" for name in reversed(files.DCGM_SERVICES)]
    assert [unit for unit in gpu_services.UNITS if unit in order] == order


@pytest.mark.parametrize(("answer", "running"), [("active\nactive\n", True), ("active\nfailed\n", False), ("", False)])
def test_facts_ask_for_the_services_only_where_we_wrote_the_files(answer: str, running: bool) -> None:
    command = ["systemctl", "is-active", *files.DCGM_SERVICES]
    assert not facts_monitoring.collect(RecordedHost()).dcgm_running
    ours = RecordedHost({files.COUNTERS: "x\n"}, programs={tuple(command): Result(0, answer, "")})
    known = facts_monitoring.collect(ours)
    assert known.dcgm == {files.COUNTERS: hashlib.sha256(b"x\n").hexdigest()[:16]} and known.dcgm_running is running


def test_the_step_writes_the_paths_and_files_of_the_catalog() -> None:
    assert sorted(DCGM_FILES.values()) == sorted(DIGESTS)
    for name, path in DCGM_FILES.items():
        data = (FILES / name).read_bytes()
        assert hashlib.sha256(data).hexdigest()[:16] == DIGESTS[path]
    unit = (ROOT / "roles/gpu_monitoring/files/gpu-ready.conf").read_text()
    assert files.COUNTERS in unit


def test_the_counters_are_fields_types_and_help_texts() -> None:
    text = (ROOT / "roles/gpu_monitoring/files/gpu-ready-counters.csv").read_text()
    rows = [line.split(", ", 2) for line in text.splitlines() if line and not line.startswith("#")]
    assert all(len(row) == 3 and row[1] in ("gauge", "counter", "label") and "," not in row[2] for row in rows)
    assert len({row[0] for row in rows}) == len(rows) and all(row[0].startswith("DCGM_FI_") for row in rows)
