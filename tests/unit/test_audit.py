"""The audit: what counts as drift, who holds a GPU, and how it is reported."""

import csv
import io
import json
import re
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts.model import Facts, GpuProcess
from plugins.module_utils.gpu_ready.upgrade.model import RecordedDriver, UpgradeJournal
from plugins.plugin_utils.fleet_report import audit_table as audit_report
from plugins.plugin_utils.fleet_report import model
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan import answer as decide
from plugins.plugin_utils.gpu_ready.plan import audit, compose
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import goldens
from tests.unit.fleet_reports import hosts_of, report_of
from tests.unit.hosts import H100, P40, T4, V100, bare, carried_out, having

pytestmark = pytest.mark.usefixtures("catalog_of_2026")

SETTINGS = variables.parse_settings({}).settings


def ready(*devices: str, **base: Any) -> Facts:
    """Return a host after its plan was executed and verified."""
    host = bare(*devices, **base)
    host = having(host, driver={"dkms": [{"name": "nvidia-current", "version": "535.309.01", "kernels": []}]})
    return carried_out(host, compose.plan(host, SETTINGS))


def audited(host: Facts) -> dict[str, Any]:
    """Return the audit of a host."""
    return audit.answer_json(host, decide.plan_audited(host, SETTINGS, []))


def check(answer: dict[str, Any], name: str) -> dict[str, Any]:
    return next(one for one in answer["checks"] if one["name"] == name)


def drifting(answer: dict[str, Any]) -> list[str]:
    return [one["name"] for one in answer["checks"] if one["ok"] is False]


@pytest.mark.parametrize("distro", catalog.distros())
def test_a_bare_host_drifts_until_its_plan_is_executed(distro: str) -> None:
    host = bare(T4, distro=distro)
    decided = goldens.decide(host)
    assert audit.answer_json(host, decided)["state"] == audit.DRIFT
    after = carried_out(host, decided)
    answer = audit.answer_json(after, goldens.decide(after))
    assert (answer["state"], answer["why"]) == (audit.SOUND, [])


def test_site_yml_and_audit_agree_on_hosts_in_the_desired_state() -> None:
    host = ready(T4)
    answer = audited(host)
    assert compose.plan(host, SETTINGS).converged
    assert (answer["state"], answer["why"]) == ("ok", [])


def test_a_newer_module_on_disk_than_loaded_is_drift() -> None:
    host = ready(T4)
    host = having(host, driver={"loaded": {"version": "580.1.1"}})
    answer = audited(host)
    assert answer["state"] == "drift"
    assert drifting(answer) == ["loaded", "verified"]
    assert "580.1.1" in check(answer, "loaded")["why"]


def test_libraries_of_two_drivers_are_drift() -> None:
    host = ready(T4)
    host = having(host, driver={"userspace": [*host.driver.userspace, "470.1.1"]})
    assert "userspace" in drifting(audited(host))


def test_a_stopped_fabric_manager_is_drift_on_nvswitch_hosts_only() -> None:
    host = ready(H100, distro="debian13", nvswitches=4)
    assert check(audited(host), "fabric_manager")["ok"] is True
    host = having(host, driver={"fabricmanager": False})
    assert drifting(audited(host)) == ["fabric_manager"]
    assert "fabric_manager" not in [one["name"] for one in audited(ready(T4))["checks"]]


def test_a_lost_hold_is_drift() -> None:
    host = ready(T4)
    host = having(host, packages={"held": []}, driver={"held": []})
    assert "holds" in drifting(audited(host))


def test_services_that_a_live_reload_left_stopped_are_drift() -> None:
    host = ready(T4)
    host = having(host, driver={"stopped": ["nvidia-dcgm.service"]})
    assert not compose.plan(host, SETTINGS).converged
    assert drifting(audited(host)) == ["services"]
    assert check(audited(host), "services")["why"] == "an interrupted live reload stopped nvidia-dcgm.service"


def new_kernel(headers: bool, compiler: str | None, has_module: bool) -> Facts:
    host = ready(T4)
    kernel = {"next_boot": "6.1.0-99-amd64", "headers": {**host.base.kernel.headers, "6.1.0-99-amd64": headers}}
    module = host.driver.on_disk if has_module else None
    return having(host, base={"kernel": kernel, "compiler": compiler}, driver={"next_module": module})


@pytest.mark.parametrize(
    ("headers", "compiler", "words"),
    [
        (True, "/usr/bin/gcc", " -k 6.1.0-99-amd64' would build it"),
        (False, "/usr/bin/gcc", "without its headers"),
        (False, None, "without its headers and a compiler"),
    ],
)
def test_a_next_kernel_without_module_is_drift_with_a_remedy(headers: bool, compiler: str | None, words: str) -> None:
    answer = audited(new_kernel(headers, compiler, has_module=False))
    assert drifting(answer) == ["next_boot"]
    assert words in check(answer, "next_boot")["why"]


def test_a_next_kernel_with_its_module_waits_for_a_reboot_and_is_no_drift() -> None:
    answer = audited(new_kernel(True, "/usr/bin/gcc", has_module=True))
    assert answer["state"] == "ok"
    assert check(answer, "reboot")["ok"] is None
    assert "6.1.0-99-amd64 boots next" in check(answer, "reboot")["why"]


def test_a_driver_that_needs_a_reboot_is_drift() -> None:
    host = bare(P40, nouveau={"loaded": True, "bound": ["0000:3b:00.0"], "blacklisted": False})
    assert {"driver", "loaded", "reboot"} <= set(drifting(audited(host)))


def test_a_refused_host_has_a_reason() -> None:
    answer = audited(bare(V100, "2901"))
    assert answer["state"] == "refused"
    assert "Remedy" in answer["why"][0]


def test_a_host_without_gpu_has_no_checks() -> None:
    answer = audited(bare())
    assert (answer["state"], answer["checks"], answer["why"]) == ("no_gpu", [], [])


def test_a_host_that_lost_all_its_gpus_differs_from_a_host_without_gpu() -> None:
    host = ready(T4, T4)
    lost = having(host, base={"gpus": []})
    answer = audited(lost)
    assert (answer["state"], drifting(answer)) == ("drift", ["gpus"])
    assert answer["why"] == ["gpus: " + check(answer, "gpus")["why"]] and "saw 2" in answer["why"][0]
    made = report_of("audit", {"a": {"audit": answer}})
    assert "!none" in audit_report.table(made, 150) and "drift in gpus" in audit_report.bad(made)["a"]
    given = [gpu._replace(driver="vfio-pci") for gpu in host.base.gpus]
    assert audited(having(host, base={"gpus": given}))["state"] == "no_gpu"


def test_running_work_is_no_drift() -> None:
    """The same host refuses site.yml: a driver change would end that work."""
    host = having(ready(T4), work={"processes": [GpuProcess(4711, "python3")]})
    facts = having(host, driver={"userspace": ["550.1.1"]})
    answer = audited(facts)
    assert answer["state"] == "drift" and [one["pid"] for one in answer["holders"]] == [4711]
    assert compose.plan(facts, SETTINGS).refusals


# ----------------------------------------------------------------------------------------------------------- report


def made() -> Any:
    drifted = ready(T4)
    drifted = having(drifted, driver={"loaded": {"version": "580.1.1"}})
    holder = GpuProcess(4711, "python3", "trainer", "python3 train.py")
    daemon = GpuProcess(12, "nvidia-persiste", None, "nvidia-persistenced", service=True)
    parts: dict[str, dict[str, Any]] = {
        "good": {"audit": audited(having(ready(T4), work={"processes": [holder, daemon]}))},
        "drifted": {"audit": audited(drifted)},
        "cpu": {"audit": audited(bare())},
        "mixed": {"audit": audited(bare(V100, "2901"))},
        "asleep": {"unreachable": True, "message": "Failed to connect to the host via ssh:\n no route"},
        "old": {"failure": "/bin/sh: 1: /usr/bin/python3: not found"},
        "late": {},
    }
    return report_of("audit", parts)


def test_every_state_is_counted_and_only_good_ones_are_no_reason_to_fail() -> None:
    report = made()
    states = {host.name: host.state for host in report.hosts}
    assert states == {
        "good": "ok", "cpu": "no_gpu", "drifted": "drift", "mixed": "refused", "asleep": "unreachable",
        "old": "failed", "late": "not_reached",
    }  # fmt: skip
    bad = audit_report.bad(report)
    assert sorted(bad) == ["asleep", "drifted", "late", "mixed", "old"]
    assert bad["asleep"] == "unreachable: Failed to connect to the host via ssh: no route"
    assert bad["drifted"].startswith("drift in loaded, verified")


def test_the_table_marks_drift_and_unreachable_hosts() -> None:
    shown = audit_report.text(made(), "table", 150)
    lines = {line.split()[0]: line for line in shown.splitlines() if line}
    assert "!580.1.1" in lines["drifted"]
    assert "!" not in lines["good"]
    assert "\nasleep: unreachable\n" in shown and "\ndrifted: drift\n" in shown
    assert "good: python3 train.py (pid 4711) in container trainer" in shown
    assert "persistenced" not in shown, "the driver's own services are nobody's work"
    assert shown.endswith("7 hosts: 1 drift, 1 failed, 1 no gpu, 1 not reached, 1 ok, 1 refused, 1 unreachable")
    assert max(len(line) for line in shown.splitlines()) <= 150


def test_the_differences_are_found_and_desired() -> None:
    shown = audit_report.text(made(), "diff", 150)
    part = shown[shown.index("--- drifted") :].splitlines()
    assert part[:2] == ["--- drifted: found", "+++ drifted: desired"]
    assert part[3].startswith("-580.1.1") and part[4].startswith("+580.")
    assert "--- good" not in shown
    assert shown.splitlines()[0] == "--- asleep: found"


@pytest.mark.parametrize("length", [20, 60, 100_000])
def test_cells_of_one_host_do_not_cut_those_of_others(length: int) -> None:
    wide = dict.fromkeys((key for key, _, _ in audit_report.COLUMNS), "x" * length)
    hosts: dict[str, Any] = {"n1": {"audit": audited(ready(T4))}, "n2": {"audit": {"state": "ok", "row": wide}}}
    text = audit_report.text(report_of("audit", hosts), "table", 150)
    alone = audit_report.text(report_of("audit", {"n1": hosts["n1"]}), "table", 150)
    assert max(len(line) for line in text.splitlines()) <= 150
    versions = [word for word in alone.split() if word.count(".") == 2]
    (shown,) = [line.split() for line in text.splitlines() if line.startswith("n1 ")]
    assert versions and [word for word in shown if word.count(".") == 2] == versions


def test_a_table_with_differences_has_both() -> None:
    shown = audit_report.text(made(), "table", 150, differences=True)
    assert shown.startswith("host ") and "+++ drifted: desired" in shown


def test_json_and_csv_hold_every_host() -> None:
    report = made()
    assert json.loads(audit_report.text(report, "json", 150)) == json.loads(model.as_json(report))
    rows = list(csv.DictReader(io.StringIO(audit_report.text(report, "csv", 150))))
    assert {row["host"] for row in rows} == set(hosts_of(report))
    (loaded,) = [row for row in rows if row["host"] == "drifted" and row["check"] == "loaded"]
    assert (loaded["ok"], loaded["found"].split()[0]) == ("no", "580.1.1")
    held, _ = [row for row in rows if row["check"] == "holder"]
    assert held["found"] == "4711 python3 train.py" and held["why"] == "container trainer"


@pytest.mark.parametrize(
    "answer",
    [
        ["x"],
        {"state": 7},
        {"state": "ok", "checks": [7]},
        {"state": "ok", "holders": [{"pid": "1; x"}]},
        {"state": "ok", "more": 1},
    ],
)
def test_an_answer_of_another_form_fails_that_host_only(answer: Any) -> None:
    built = report_of("audit", {"a": {"audit": {"state": "ok"}}, "odd": {"audit": answer}})
    assert [host.state for host in built.hosts] == ["ok", "failed"]
    assert "another form" in audit_report.text(built, "table", 150)


def test_a_host_without_an_answer_has_all_keys_and_its_reason_once() -> None:
    parts: dict[str, dict[str, Any]] = {
        "n0": {"audit": {"state": "ok"}},
        "n1": {"unreachable": True, "message": "Task failed: Data could not be sent"},
        "n2": {"failure": "no look"},
        "n3": {"audit": {}},
    }
    built = report_of("audit", parts)
    assert built.hosts[1].why.message == "Data could not be sent"
    hosts: Any = model.to_json(built)["hosts"]
    assert {frozenset(one) for one in hosts.values()} == {frozenset(hosts["n0"])}


def in_an_upgrade(phase: str) -> Facts:
    """A host whose upgrade was interrupted after the new driver was installed: the old module is loaded still."""
    host = ready(T4)
    recorded = RecordedDriver(
        version="580.95.05", branch="580", flavour="open", source="cuda_repo", kernel_modules="dkms"
    )
    journal = UpgradeJournal(phase, 1_795_704_480, from_=recorded, to="595.91.07", rollout=1_795_704_350)
    return having(host._replace(upgrade=journal), packages={"held": []})


@pytest.mark.parametrize(
    ("phase", "state", "text"),
    [
        ("staged", audit.DRIFT, ""),
        ("done", audit.DRIFT, ""),
        (
            "draining",
            audit.UPGRADING,
            "is not finished: draining the host since 2026-11-26 14:48 UTC (rollout 1795704350)",
        ),
        ("switching", audit.UPGRADING, "is not finished: replacing the driver since 2026-11-26 14:48 UTC"),
        ("going_back", audit.UPGRADING, "is not finished: rolling back since"),
        ("back", audit.DRIFT, "failed and the driver before was restored (rollout 1795704350)"),
        ("stuck", audit.DRIFT, "failed, and so did its rollback"),
    ],
)
def test_an_upgrade_that_is_not_finished_is_called_that(phase: str, state: str, text: str) -> None:
    host = in_an_upgrade(phase)
    answer = audited(host)
    assert answer["state"] == state
    plan = compose.plan(host, SETTINGS)
    if not text:
        assert "upgrade" not in drifting(answer) and not plan.warnings
        return
    first = answer["why"][0]
    assert first.startswith(f"upgrade: the upgrade 580.95.05 -> 595.91.07 {text}") and "upgrade_drivers.yml" in first
    assert text in plan.warnings[0].message and answer["warnings"] == []
    # What the upgrade has caused is no fault of its own.
    assert (len(answer["why"]) == 1) == (state == audit.UPGRADING) and "holds" in drifting(answer)
    host = having(host, packages={"in_progress": "process 1975 (apt-get)"})
    (busy,) = [one.message for one in compose.plan(host, SETTINGS).warnings if one.code == "packages_in_progress"]
    assert ("unattended upgrades" in busy) == (state != audit.UPGRADING)


def test_packages_that_are_not_held_are_counted() -> None:
    (holds,) = [one for one in audited(in_an_upgrade("done"))["checks"] if one["name"] == "holds"]
    assert re.match(r"\d+ packages are not held, so an unattended upgrade could leave", holds["why"]), holds


def test_a_module_of_another_version_for_the_next_kernel_is_drift() -> None:
    host = new_kernel(True, "/usr/bin/gcc", has_module=True)
    assert host.driver.on_disk
    host = having(host, driver={"next_module": host.driver.on_disk._replace(version="470.1.1")})
    answer = audited(host)
    assert "next_boot" in drifting(answer)
    assert "the module for kernel 6.1.0-99-amd64 is 470.1.1" in check(answer, "next_boot")["why"]
    absent = check(audited(having(host, driver={"on_disk": None})), "next_boot")
    assert absent["why"].endswith("the driver on disk is none") and not absent["ok"]
