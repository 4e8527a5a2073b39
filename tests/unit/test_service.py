"""Services that gpu-ready enables and starts, and what an uninstallation does with them."""

from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base import manifest
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.driver import service
from plugins.module_utils.gpu_ready.lifecycle.removal.context import Removal
from plugins.module_utils.gpu_ready.lifecycle.removal.services import find_services
from tests.unit.recorded import RecordedHost

FAILS = Result(1, "", "no")


class Systemd(RecordedHost):
    """A host with one unit, whose state systemctl changes."""

    def __init__(self, enabled: bool, active: bool, sockets: str = "", starts: bool = True) -> None:
        super().__init__()
        self.enabled, self.active, self.listens = enabled, active, False
        self.sockets_of_unit, self.starts = sockets, starts
        self.changes: list[str] = []

    def run(self, argv: list[str], timeout: float = 60.0, env: dict[str, str] | None = None) -> Result:
        if argv[0] != "systemctl":
            return Result(0, "", "")
        verb, unit = argv[1], argv[-1]
        if verb == "show":
            return Result(0, f"TriggeredBy={self.sockets_of_unit}\n", "")
        if verb in ("is-enabled", "is-active"):
            state = (self.enabled if verb == "is-enabled" else self.active) if ".socket" not in unit else self.listens
            return Result(0 if state else 3, "", "")
        self.changes.append(f"{verb} {unit}")
        if verb in ("start", "restart") and not self.starts:
            return FAILS
        self.enabled = verb == "enable" or (self.enabled and verb != "disable")
        self.active = verb in ("start", "restart") or (self.active and verb != "stop")
        return Result(0, "", "")


def removal(host: Systemd, path: Path) -> Removal:
    return Removal(host, str(path.parent))


def test_a_service_that_runs_and_is_enabled_is_left_alone(tmp_path: Path) -> None:
    host, path = Systemd(enabled=True, active=True), tmp_path / "manifest.json"
    assert service.run_service(host, "nvidia-persistenced", "started", path=str(path)) == {"changed": False}
    assert (host.changes, path.exists()) == ([], False)


def test_what_check_mode_shows_changes_nothing(tmp_path: Path) -> None:
    host, path = Systemd(enabled=False, active=False), tmp_path / "manifest.json"
    assert service.run_service(host, "nvidia-persistenced", "started", check=True, path=str(path)) == {"changed": True}
    assert (host.changes, path.exists()) == ([], False)


def test_a_restart_of_a_service_that_was_on_records_nothing(tmp_path: Path) -> None:
    host, path = Systemd(enabled=True, active=True), tmp_path / "manifest.json"
    assert service.run_service(host, "docker", "restarted", path=str(path)) == {"changed": True}
    assert (host.changes, path.exists()) == (["restart docker"], False)


@pytest.mark.parametrize("state", ["started", "restarted", "unchanged"])
def test_uninstalling_gives_a_service_its_state_of_before(tmp_path: Path, state: str) -> None:
    host, path = Systemd(enabled=False, active=False), tmp_path / "manifest.json"
    service.run_service(host, "nvidia-persistenced", state, path=str(path))
    assert (host.enabled, host.active) == (True, state != "unchanged")
    service.run_service(
        host, "nvidia-persistenced", "started", path=str(path)
    )  # of a later run: the first record stays
    for action in find_services(removal(host, path)):
        action.act()
    assert (host.enabled, host.active) == (False, False)


def test_a_socket_that_the_service_made_listen_is_stopped_with_it(tmp_path: Path) -> None:
    host, path = Systemd(enabled=False, active=False, sockets="docker.socket"), tmp_path / "manifest.json"
    service.run_service(host, "docker", "started", path=str(path))
    host.changes = []
    for action in find_services(removal(host, path)):
        action.act()
    assert {"stop docker", "stop docker.socket"} <= set(host.changes)


def test_a_service_that_does_not_start_fails_with_its_reason_and_keeps_its_record(tmp_path: Path) -> None:
    host, path = Systemd(enabled=True, active=False, starts=False), tmp_path / "manifest.json"
    with pytest.raises(GpuReadyError, match="the service nvidia-fabricmanager does not run"):
        service.run_service(host, "nvidia-fabricmanager", "started", path=str(path))
    assert manifest.read(str(path))["services"] == {"nvidia-fabricmanager": {"enabled": True, "active": False}}
