"""The journal of an upgrade, what is due on a host, and what is downloaded beforehand."""

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.base.disruptions import DRIVER_RELOAD, REBOOT
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.facts.model import DkmsFacts, Facts, GpuProcess, ModuleFacts, VerifiedFacts
from plugins.module_utils.gpu_ready.upgrade import journal, phases
from plugins.module_utils.gpu_ready.upgrade.model import RecordedDriver, UpgradeJournal
from plugins.plugin_utils.gpu_ready.plan import compose, upgrade
from plugins.plugin_utils.gpu_ready.plan.driver import choose as driver
from plugins.plugin_utils.gpu_ready.plan.driver.model import ActivateParams
from plugins.plugin_utils.gpu_ready.plan.model import Choices, DriverChoice, Refusal, Step
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit.hosts import T4, bare, having

OLD = RecordedDriver(version="580.95.05", branch="580", flavour="open", source="cuda_repo", kernel_modules="dkms")
NEW = OLD._replace(version="595.91.07", branch="595")


def after_phases(*given: tuple[str, int], driver: RecordedDriver | None = OLD, to: str = "595") -> UpgradeJournal:
    found = None
    for phase, now in given:
        found = phases.advance(found, phase, now, driver, to, "")
    assert found
    return found


def host_facts(
    version: str | None = "580.95.05", recorded: UpgradeJournal | None = None, clients: tuple[str, ...] = ()
) -> Facts:
    driver = {
        "on_disk": ModuleFacts(version, "open") if version else None,
        "origin": "cuda_repo" if version else None,
        "dkms": [DkmsFacts("nvidia", version or "", [])],
    }
    work = {"processes": [GpuProcess(7, name) for name in clients]}
    return having(bare(T4), driver=driver, work=work)._replace(upgrade=recorded)


CHOSEN = DriverChoice(
    source="cuda_repo",
    kind="dkms",
    version="595.91.07",
    branch=595,
    flavour="open",
    profile="compute",
    packages=[],
    modules=["nvidia"],
)


def decided(*steps: Step, refusals: tuple[Refusal, ...] = ()) -> compose.Plan:
    return compose.Plan(True, "2x Tesla T4", Choices(driver=CHOSEN), list(steps), list(refusals))


NO_GPU = compose.Plan(False, "no NVIDIA GPU: left alone")


def activate(action: str, why: str = "the driver changes", fallback: str | None = "reboot") -> Step:
    params = ActivateParams(action, ["nvidia"], fallback, [], why)
    return Step("nvidia_driver.activate", why, REBOOT if action == "reboot" else DRIVER_RELOAD, params)


INSTALL = Step("nvidia_driver.install", "driver 580.95.05 is installed", DRIVER_RELOAD)


def status(seen: Facts, chosen: compose.Plan, now: int = 0, **given: Any) -> dict[str, Any]:
    settings = variables.parse_settings(given).settings
    return dict(records.to_json(upgrade.upgrade_status(seen, chosen, settings, now)))


def test_the_journal_counts_the_time_out_of_service_over_an_interrupted_run() -> None:
    found = after_phases(
        ("staged", 5), ("draining", 10), ("switching", 20), ("draining", 50), ("verified", 60), ("done", 70)
    )
    assert found.seconds == 60 and found.from_ == OLD and found.to == "595"


def test_the_time_of_a_second_drain_counts_too() -> None:
    found = after_phases(
        ("staged", 5), ("draining", 10), ("verified", 60), ("done", 70), ("going_back", 130), ("back", 150)
    )
    assert found.seconds == 80


@pytest.mark.parametrize(
    ("phases", "touched"),
    [
        (["staged", "draining"], False),
        (["staged", "draining", "draining"], False),  # jobs ran past the limit twice: the driver was never changed
        (["staged", "draining", "switching"], True),
        (["staged", "draining", "switching", "draining"], True),
        (["staged", "draining", "switching", "verified", "draining"], True),
        (["staged", "draining", "switching", "going_back", "back"], True),
        (["staged", "draining", "switching", "going_back", "back", "draining"], True),
        (["staged", "draining", "switching", "verified", "done", "staged", "draining"], False),
        (["staged", "draining", "untouched"], False),
    ],
)
def test_a_driver_that_may_be_partly_replaced_is_known_over_runs(phases: list[str], touched: bool) -> None:
    found = after_phases(*[(phase, number) for number, phase in enumerate(phases, 1)])
    assert status(host_facts(recorded=found), decided(INSTALL))["touched"] == touched


def test_a_host_that_lost_its_gpus_meanwhile_differs_from_a_host_without_gpu() -> None:
    assert status(host_facts(), NO_GPU)["state"] == "current"
    assert status(host_facts(recorded=after_phases(("staged", 1), ("done", 2))), NO_GPU)["state"] == "current"
    found = status(host_facts(recorded=after_phases(("staged", 1), ("draining", 2))), NO_GPU)
    assert found["state"] == "refused" and "no NVIDIA GPU" in found["refusal"] and "Remedy" in found["refusal"]


def test_a_host_that_lost_all_its_gpus_is_not_in_the_desired_state() -> None:
    addresses = ["0000:01:00.0", "0000:02:00.0"]
    seen = having(host_facts(), base={"gpus": []}, verified=VerifiedFacts(True, addresses=addresses))
    found = status(seen, NO_GPU)
    assert found["state"] == "refused" and found["refusal"] == (
        "The GPUs of the last verification (2: 0000:01:00.0, 0000:02:00.0) are missing: none is on the PCI bus. "
        "Remedy: see `lspci -d 10de:` and the kernel's log; where they were taken out, run playbooks/uninstall.yml, "
        "or leave the host out with gpu_upgrade_exclude or gpu_upgrade_leave_out."
    )
    given = seen._replace(base=bare(T4).base)  # passed to virtual machines
    assert status(given, NO_GPU)["state"] == "current"
    assert status(seen._replace(verified=None), NO_GPU)["state"] == "current"


def test_a_resumed_run_keeps_the_recorded_driver() -> None:
    second = phases.advance(
        after_phases(("staged", 1), ("draining", 2), ("switching", 3)), "draining", 9, NEW, "595", ""
    )
    assert second.from_ == OLD
    assert phases.advance(second._replace(phase="stuck"), "staged", 9, NEW, "595", "").from_ == OLD


@pytest.mark.parametrize("phase", ["done", "back", "untouched"])
def test_the_next_upgrade_records_the_driver_of_that_time(phase: str) -> None:
    found = after_phases(("staged", 1), ("draining", 2), (phase, 3))
    for begun in ("staged", "draining"):
        found = phases.advance(found, begun, 9, NEW, "610", "")
    assert found.from_ == NEW


def test_a_prepared_host_that_is_not_reached_keeps_the_driver_of_its_last_upgrade() -> None:
    done = after_phases(("staged", 1), ("draining", 2), ("switching", 3), ("done", 4))
    prepared = phases.advance(done, "staged", 9, NEW, "610", "")
    assert (prepared.from_, prepared.to) == (OLD, "610")
    assert after_phases(("staged", 1)).from_ == OLD  # the first upgrade: its downloads for a rollback are kept


def test_journal_round_trip_and_damage(tmp_path: Path) -> None:
    path = tmp_path / "upgrade.json"
    phases.write(after_phases(("staged", 1)), str(path))
    assert journal.read(Host(), str(path)) == after_phases(("staged", 1))
    for text in ("", "null", "{", "[]", '{"schema": 1}', '{"schema": 1, "phase": 7}'):
        path.write_text(text)
        with pytest.raises(GpuReadyError, match=r"upgrade\.json.*(damaged|must be)"):
            journal.read(Host(), str(path))


def test_a_journal_of_another_schema_is_refused(tmp_path: Path) -> None:
    """What another release recorded must not be taken for a host that was never upgraded."""
    path = tmp_path / "upgrade.json"
    path.write_text(json.dumps({"schema": 99, "phase": "switching"}))
    with pytest.raises(records.RecordError, match="upgrade.json: schema 99 is of another release"):
        journal.read(Host(), str(path))


def test_a_host_with_the_desired_driver_has_nothing_to_do() -> None:
    assert status(host_facts("595.91.07"), decided())["state"] == "current"
    tidy = decided(Step("nvidia_driver.hold", "an unattended upgrade"))
    assert status(host_facts("595.91.07"), tidy)["state"] == "current"


@pytest.mark.parametrize("phase", ["draining", "switching", "verified", "going_back", "stuck", "back"])
def test_an_unfinished_upgrade_is_resumed(phase: str) -> None:
    found = status(host_facts("595.91.07", after_phases(("staged", 1), (phase, 2))), decided())
    assert (found["state"], found["way"], found["opened"]) == ("due", "none", True)
    assert (found["from"], found["to"]) == ("580.95.05", "595.91.07")
    assert not found["staged"]
    second = after_phases(("staged", 1), (phase, 2), to="595.91.07")
    assert status(host_facts("595.91.07", second), decided())["staged"] == (phase != "back")


def test_recent_downloads_are_not_repeated() -> None:
    fetched = phases.record_fetched(after_phases(("staged", 1)), "595.91.07", 1000)
    assert upgrade.is_fetched(fetched, "595.91.07", 1000 + upgrade.FRESH - 1)
    assert not upgrade.is_fetched(fetched, "595.91.07", 1000 + upgrade.FRESH)
    assert not upgrade.is_fetched(fetched, "595.91.07", 999)  # the clock was set back
    assert not upgrade.is_fetched(fetched, "610", 1001)
    assert not upgrade.is_fetched(fetched._replace(phase="back"), "595.91.07", 1001)
    second = phases.advance(fetched, "staged", 1002, OLD, "595.91.07", "")
    seen = host_facts(recorded=second)
    chosen = decided(INSTALL, activate("reload"))
    assert status(seen, chosen, 1003)["staged"]
    assert not status(seen, chosen, 1003 + upgrade.FRESH)["staged"]


def test_a_driver_that_can_be_reloaded_is_due() -> None:
    found = status(host_facts(), decided(INSTALL, activate("reload")))
    assert (found["state"], found["way"], found["from"], found["to"]) == ("due", "live", "580.95.05", "595.91.07")
    assert found["installed"] == OLD._asdict() and found["back"] is None
    assert found["why"] == "2x Tesla T4"


def test_programs_on_the_gpus_are_left_to_the_drain() -> None:
    step = activate("reboot", "train (7) hold the loaded module")
    found = status(host_facts(clients=("train",)), decided(INSTALL, step))
    assert (found["state"], found["way"]) == ("due", "live") and "train" in found["why"]


def test_a_reboot_needs_permission() -> None:
    chosen = decided(INSTALL, activate("reboot", "gpu_ready_activation is reboot", None))
    assert "gpu_ready_reboot_ok" in status(host_facts(), chosen)["refusal"]
    found = status(host_facts(), chosen, gpu_ready_reboot_ok=True)
    assert (found["state"], found["way"]) == ("due", "reboot")
    assert found["why"] == "gpu_ready_activation is reboot"


def test_refusals_and_bare_hosts_take_no_part() -> None:
    refusal = Refusal("disk_full", "The disk is full", "free some space")
    assert status(host_facts(), decided(refusals=(refusal,)))["refusal"] == "The disk is full. Remedy: free some space."
    assert "site.yml" in status(host_facts(None), decided(INSTALL, activate("load")))["refusal"]


@pytest.mark.parametrize(("version", "expected"), [("595.91.07", "595.91.07"), (None, "595.0")])
def test_the_host_after_the_upgrade_has_the_chosen_driver(version: str | None, expected: str) -> None:
    seen = having(host_facts(), driver={"packages": {"old": "1"}}, packages={"installed": {"old": "1", "bash": "5"}})
    after = upgrade.with_chosen_driver(seen, CHOSEN._replace(version=version, packages=["new"]))
    assert (after.driver.on_disk, after.driver.origin) == (ModuleFacts(expected, "open"), "cuda_repo")
    assert after.packages.installed == {"bash": "5", "new": expected} and after.driver.packages == {"new": expected}


def test_the_rollback_requests_exactly_the_previous_driver() -> None:
    old = OLD._replace(packages=["libcuda1=580.95.05-1"])
    assert records.to_json(upgrade.rollback_settings(old)) == {
        "nvidia_driver_source": "cuda_repo",
        "nvidia_driver_version": "580.95.05",
        "nvidia_driver_packages": ["libcuda1=580.95.05-1"],
        "nvidia_driver_branch": "580",
        "nvidia_driver_flavour": "open",
        "nvidia_driver_kernel_modules": "dkms",
        "nvidia_driver_runfile": "",
        "nvidia_driver_runfile_sha256": "",
    }


# ---- what is downloaded beforehand


def test_the_installers_of_upgrade_and_rollback_are_known_beforehand() -> None:
    seen = bare(T4, distro="debian12")
    given = variables.parse_settings({"gpu_ready_mirror": "http://m"}).settings
    found = driver.earlier_installer(seen, given, "580.95.05")
    assert found and "580.95.05" in found.source and found.source.startswith("http://m/")
    assert found.sha256_url == found.source + ".sha256sum"
    file = "/srv/595.91.07/NVIDIA-Linux-x86_64-595.91.07.run"
    beside = driver.earlier_installer(seen, given._replace(nvidia_driver_runfile=file), "580.95.05")
    assert beside and beside.source == "/srv/580.95.05/NVIDIA-Linux-x86_64-580.95.05.run"
