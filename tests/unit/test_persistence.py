"""Persistence mode that is really on: the unit of Ubuntu's archive, drop-ins of others, busy hosts, the verification."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.driver import persistence, persistence_state, service
from plugins.module_utils.gpu_ready.driver.persistence_state import DROP_IN, DROP_INS, PID, Persistence
from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.module_utils.gpu_ready.verify import nvml
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.verdict import judge
from tests.unit import goldens
from tests.unit.hosts import T4, bare, carried_out, having
from tests.unit.recorded import RecordedHost
from tests.unit.test_verify import sound

UBUNTU = """\
# /usr/lib/systemd/system/nvidia-persistenced.service
[Unit]
Description=NVIDIA Persistence Daemon
Wants=syslog.target
StopWhenUnneeded=true
Before=systemd-backlight@backlight:nvidia_0.service

[Service]
Type=forking
ExecStart=/usr/bin/nvidia-persistenced --user nvidia-persistenced --no-persistence-mode --verbose
ExecStopPost=/bin/rm -rf /var/run/nvidia-persistenced
"""
DEBIAN = """\
# /usr/lib/systemd/system/nvidia-persistenced.service
[Service]
ExecStart=/usr/bin/nvidia-persistenced --user nvpd
"""
ADMIN = DROP_INS + "/override.conf"
COMMAND = "/usr/bin/nvidia-persistenced --user nvidia-persistenced %s --verbose"


def daemon(option: str, files: dict[str, str] | None = None) -> RecordedHost:
    """Return a host on which the daemon runs with this option."""
    command = (COMMAND % option).replace(" ", "\0")
    return RecordedHost(files={PID: "7\n", "/proc/7/cmdline": command, **(files or {})})


# ---- units that others wrote ----------------------------------------------------------------------------------------


def test_the_drop_in_has_the_units_own_command() -> None:
    text = persistence.drop_in(UBUNTU)
    assert text is not None
    assert text.splitlines()[1:] == [
        "[Unit]", "StopWhenUnneeded=no", "", "[Service]", "ExecStart=", "ExecStart=" + COMMAND % "--persistence-mode",
    ]  # fmt: skip


def test_the_drop_in_is_the_same_where_it_is_in_place_already() -> None:
    text = persistence.drop_in(UBUNTU)
    assert persistence.drop_in(f"{UBUNTU}\n# {DROP_IN}\n{text}") == text


@pytest.mark.parametrize(
    "own",
    [
        "[Service]\nExecStart=\nExecStart=/usr/bin/nvidia-persistenced --no-persistence-mode --uvm-persistence-mode\n",
        "[Service]\nExecStart=\nExecStart=/usr/bin/nvidia-persistenced --persistence-mode\n",
    ],
)
def test_the_drop_in_of_an_administrator_is_respected(own: str) -> None:
    assert persistence.drop_in(f"{UBUNTU}\n# {ADMIN}\n{own}") is None
    assert persistence_state.has_own_command(RecordedHost(files={ADMIN: own}))


def test_a_drop_in_of_an_administrator_about_something_else_does_not_count() -> None:
    own = "[Unit]\nAfter=local-fs.target\n"
    assert persistence.drop_in(f"{UBUNTU}\n# {ADMIN}\n{own}") is not None
    assert not persistence_state.has_own_command(RecordedHost(files={ADMIN: own}))


@pytest.mark.parametrize("text", [DEBIAN, "", UBUNTU.replace("/usr/lib/", "/etc/"), UBUNTU + "ExecStart=/bin/true\n"])
def test_units_that_need_none_or_are_not_understood_are_left_alone(text: str) -> None:
    assert persistence.drop_in(text) is None


# ---- facts and plan --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "state"),
    [
        (RecordedHost(), Persistence()),
        (RecordedHost(files={PID: "7\n"}), Persistence()),
        (daemon("--persistence-mode"), Persistence(True)),
        (daemon("--no-persistence-mode"), Persistence(True, True)),
        (daemon("--no-persistence-mode", {ADMIN: "ExecStart=\nExecStart=x"}), Persistence(True, True, True)),
        (RecordedHost(files={"/etc/systemd/system/" + persistence_state.UNIT: ""}), Persistence(own=True)),
        (
            RecordedHost(
                files={"/etc/systemd/system/" + persistence_state.UNIT: "", persistence_state.MASKED_BY_DPKG: ""}
            ),
            Persistence(),
        ),
    ],
)
def test_the_state_of_the_daemon(host: RecordedHost, state: Persistence) -> None:
    assert persistence_state.read_persistence(host) == state


def ready(**given: Any) -> Facts:
    host = bare(T4, distro="ubuntu2404")
    return carried_out(host, goldens.decide(host, nvidia_driver_source="distro", **given))


def decide(host: Facts, **given: Any) -> compose.Plan:
    return goldens.decide(host, nvidia_driver_source="distro", **given)


def required(decided: compose.Plan) -> bool:
    return bool(decided.choices.services and decided.choices.services.persistence)


def test_ubuntus_archive_has_the_daemon() -> None:
    decided = decide(bare(T4, distro="ubuntu2404"))
    (step,) = [one for one in decided.steps if one.id == "nvidia_driver.persistenced"]
    assert [one.name for one in step.params.packages] == ["nvidia-compute-utils-580-server"]  # type: ignore[attr-defined]
    assert required(decided)
    assert decide(carried_out(bare(T4, distro="ubuntu2404"), decided)).converged


def test_a_daemon_with_the_mode_off_is_a_step_once() -> None:
    host = having(ready(), driver={"persistence": {"off": True}})
    decided = decide(host)
    assert [step.id for step in decided.steps] == ["nvidia_driver.persistenced", "gpu_verify.verify"]
    assert "persistence mode off" in decided.steps[0].why
    assert decide(carried_out(host, decided)).converged


@pytest.mark.parametrize("state", [{"off": True}, {"running": False}])
def test_containers_with_gpus_do_not_lose_them_for_it(state: dict[str, bool]) -> None:
    host = having(ready(), driver={"persistence": state})
    host = having(host, work={"containers": [{"engine": "docker", "id": "a", "name": "train", "gpu": "GPU"}]})
    decided = decide(host)
    assert (decided.steps, required(decided)) == ([], False)
    assert [one.code for one in decided.warnings if one.code == "persistence_off"] == ["persistence_off"]


@pytest.mark.parametrize(("given", "own"), [({"nvidia_driver_persistence": False}, False), ({}, True)])
def test_it_is_left_alone_on_request_and_where_the_administrator_decided(given: Any, own: bool) -> None:
    host = having(ready(), driver={"persistence": {"off": True, "own": own}})
    decided = decide(host, **given)
    assert (decided.steps, required(decided), decided.warnings) == ([], False, [])


@pytest.mark.parametrize(
    ("own", "why"), [(True, "not held, so an unattended upgrade"), (False, "persistence mode off")]
)
def test_the_reason_is_the_mode_unless_an_administrator_decided_about_it(own: bool, why: str) -> None:
    host = having(ready(), driver={"persistence": {"off": True, "own": own}}, packages={"held": []})
    reasons = [step.why for step in decide(host).steps if step.id == "nvidia_driver.persistenced"]
    assert len(reasons) == 1 and why in reasons[0], reasons


# ---- what the module does --------------------------------------------------------------------------------------------


class Systemd(RecordedHost):
    """A host with this unit, enabled and active; records its commands."""

    def __init__(self, unit: str, option: str) -> None:
        super().__init__(files=dict(daemon(option).files))
        self.unit = unit
        self.changes: list[str] = []

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        if argv[1] == "cat":
            return Result(0, self.unit, "")
        if argv[1] not in ("is-enabled", "is-active"):
            self.changes.append(argv[1])
        return Result(0, "", "")


def test_check_mode_shows_the_drop_in_and_changes_nothing() -> None:
    host = Systemd(UBUNTU, "--no-persistence-mode")
    answer = persistence.run_daemon(host, "nvidia-persistenced", service.STARTED, check=True)
    assert (answer["changed"], host.changes) == (True, [])
    assert answer["diff"][0]["after_header"] == DROP_IN
    assert "--persistence-mode" in answer["diff"][0]["after"]


def test_a_daemon_that_runs_with_the_mode_on_is_left_alone() -> None:
    host = Systemd(DEBIAN, "--persistence-mode")
    answer = persistence.run_daemon(host, "nvidia-persistenced", service.STARTED)
    assert (answer, host.changes) == ({"changed": False, "diff": []}, [])


def test_a_daemon_that_still_runs_with_the_former_command_is_restarted() -> None:
    """A run was killed after it wrote the drop-in."""
    host = Systemd(UBUNTU, "--no-persistence-mode")
    host.files[DROP_IN] = persistence.drop_in(UBUNTU) or ""
    assert persistence.run_daemon(host, "nvidia-persistenced", service.STARTED)["changed"]
    assert host.changes == ["restart"]


@pytest.mark.parametrize(("open_nodes", "held"), [(["nvidia0", "nvidia1"], 2), (["nvidia1 (deleted)"], 1), ([], 0)])
def test_the_daemon_holds_the_gpus_whose_mode_is_on(open_nodes: list[str], held: int) -> None:
    host = daemon("--persistence-mode")
    host.links = {
        f"/proc/7/fd/{number}": "/dev/" + name for number, name in enumerate(["nvidiactl", "null", *open_nodes])
    }
    host.links["/proc/7/fd/99"] = host.links["/proc/7/fd/0"]
    assert persistence_state.read_persistence(host) == Persistence(running=True, held=held)


def test_what_a_daemon_has_open_is_unknown_where_it_is_not_shown() -> None:
    assert persistence_state.read_persistence(daemon("--persistence-mode")).held is None
    assert persistence_state.read_persistence(RecordedHost()).held is None


@pytest.mark.parametrize(("option", "gpus", "restarted"), [("", 2, True), ("", 1, False), ("own", 2, False)])
def test_a_daemon_that_was_asked_to_close_a_gpu_is_restarted(option: str, gpus: int, restarted: bool) -> None:
    host = Systemd(DEBIAN, "--persistence-mode")
    host.links = {"/proc/7/fd/3": "/dev/nvidia0"}
    host.directories |= {f"/proc/driver/nvidia/gpus/{number}" for number in range(gpus)}
    host.files |= {ADMIN: "[Service]\nExecStart=\nExecStart=x\n"} if option else {}
    assert persistence.run_daemon(host, "nvidia-persistenced", service.STARTED)["changed"] is restarted
    assert host.changes == (["restart"] if restarted else [])


# ---- the verification ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("modes", "ok"),
    [
        ({"GPU-1": "Enabled", "GPU-2": "Enabled"}, True),
        ({"GPU-1": "Enabled", "GPU-2": "Disabled"}, False),
        ({"GPU-1": "[N/A]"}, True),
        (None, None),
    ],
)
def test_the_verification_reads_the_mode_of_each_gpu(modes: dict[str, str] | None, ok: bool | None) -> None:
    evidence = sound()
    evidence = evidence._replace(persistence=modes, expect=evidence.expect._replace(persistence=True))
    (check,) = judge.check_persistence(evidence)
    assert (check.ok, "GPU-2" in check.found) == (ok, ok is False)
    assert judge.check_persistence(evidence._replace(expect=evidence.expect._replace(persistence=False))) == []


def test_nvidia_smi_answers_by_gpu() -> None:
    query: tuple[str, ...] = ("nvidia-smi", "--query-gpu=uuid,persistence_mode", "--format=csv,noheader")
    answers = {query: Result(0, "GPU-1-2, Enabled\nGPU-3-4, Disabled\n", "")}
    assert nvml.query_persistence(RecordedHost(programs=answers)) == {"GPU-1-2": "Enabled", "GPU-3-4": "Disabled"}
    assert nvml.query_persistence(RecordedHost(programs={query: Result(9, "", "no driver")})) is None
