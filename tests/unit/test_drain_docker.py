"""Draining docker: which containers hold GPUs, and how they are stopped and started again."""

import re
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.drain import docker as drain_docker
from plugins.module_utils.gpu_ready.drain import journal as drain
from plugins.module_utils.gpu_ready.drain.journal import DrainError
from tests.unit.recorded import RecordedHost


def container(**changes: Any) -> drain_docker.GpuContainer:
    return drain_docker.GpuContainer("a" * 64, "train", True, False, False, "", 10)._replace(**changes)


def test_parse_container() -> None:
    answer = {
        "Id": "a" * 64,
        "Name": "/train",
        "State": {"Running": True, "Paused": True},
        "Config": {"Labels": {"com.docker.swarm.service.id": "x"}, "StopTimeout": 3},
        "HostConfig": {"AutoRemove": True},
    }
    assert drain_docker.parse_container(answer) == container(paused=True, temporary=True, manager="swarm", grace=3)
    assert (
        drain_docker.parse_container({"Id": "a" * 64, "Name": "/train", "State": {"Restarting": True}}) == container()
    )


def test_containers_that_docker_would_delete_are_awaited_unless_allowed() -> None:
    brief = container(id="b" * 64, name="brief", temporary=True)
    assert drain_docker.split_work([container(), brief], False) == ([container()], [brief])
    assert drain_docker.split_work([container(), brief], True) == ([container(), brief], [])
    assert (
        "brief, which docker deletes" in drain_docker.describe_temporary([brief])
        and drain_docker.describe_temporary([]) == ""
    )


@pytest.mark.parametrize(
    ("manager", "remedy"), [("swarm", "docker node update"), ("kubernetes", "gpu_upgrade_drain: kubernetes")]
)
def test_containers_that_a_manager_would_restart_are_refused(manager: str, remedy: str) -> None:
    with pytest.raises(DrainError, match=remedy):
        drain_docker.split_work([container(manager=manager)], True)


class Docker(drain_docker.DockerEngine):
    """A simulated engine; ``reborn``: containers that somebody starts again, ``needs``: what has to run before."""

    def __init__(
        self,
        running: dict[str, bool],
        reborn: tuple[str, ...] = (),
        needs: dict[str, str] | None = None,
        temporary: bool = False,
    ):
        super().__init__(RecordedHost(), "/run/docker.sock")
        self.temporary = temporary
        self.running = running
        self.reborn = reborn
        self.needs = needs or {}

    def ask(self, method: str, url: str, timeout: float = 60.0) -> tuple[int, Any]:
        _, _, name, verb = [*url.partition("?")[0].split("/"), ""][:4]
        if name == "json":
            return 200, [{"Id": one} for one, present in self.running.items() if present]
        if verb == "json":
            state = {"Running": self.running[name]}
            settings = {"DeviceRequests": [{"Capabilities": [["gpu"]]}], "AutoRemove": self.temporary}
            return 200, {"Id": name, "Name": "/" + name, "State": state, "Config": {}, "HostConfig": settings}
        if verb == "start" and not self.running.get(self.needs.get(name, name), True) and name in self.needs:
            return 409, {"message": "cannot join network of a non running container"}
        self.running[name] = verb == "start" or name in self.reborn
        return 204, None


class OneContainer(Docker):
    """An engine with one container, which requested no GPU and whose first process is 100; process 4711 holds a GPU."""

    def __init__(self, main: str, holder: str, pid: int = 100):
        super().__init__({"a" * 64: True})
        files = {"/proc/100/cgroup": main, "/proc/4711/cgroup": holder}
        self.host = RecordedHost(files, links={"/proc/4711/fd/3": "/dev/nvidia0"})
        self.pid = pid

    def ask(self, method: str, url: str, timeout: float = 60.0) -> tuple[int, Any]:
        status, value = super().ask(method, url, timeout)
        if isinstance(value, dict):
            value = value | {"HostConfig": {}, "State": {"Running": True, "Pid": self.pid}}
        return status, value


SCOPE = f"0::/system.slice/docker-{'a' * 64}.scope"


@pytest.mark.parametrize(
    ("main", "holder"),
    [
        (SCOPE, SCOPE),
        (SCOPE + "/init.scope", SCOPE + "/system.slice/train.service"),
        (SCOPE, f"{SCOPE}/docker/{'b' * 64}"),
        (f"0::/own.parent/{'a' * 64}", f"0::/own.parent/{'a' * 64}"),
        (f"2:cpu:/docker/{'a' * 64}\n1:name=systemd:/docker/{'a' * 64}", f"2:cpu:/docker/{'a' * 64}\n"),
    ],
)
def test_a_container_in_whose_cgroup_a_gpu_is_held_is_drained(main: str, holder: str) -> None:
    assert [one.id for one in OneContainer(main + "\n", holder + "\n").gpu_containers()] == ["a" * 64]


@pytest.mark.parametrize(
    "holder",
    [
        f"0::/user.slice/user-1000.slice/user@1000.service/docker-{'a' * 64}.scope",
        f"0::/user.slice/user-1000.slice/user@1000.service{SCOPE[3:]}",
        f"0::/system.slice/notebook-alice.service/docker-{'a' * 64}.scope",
        f"0::/system.slice/docker-{'b' * 64}.scope/docker-{'a' * 64}.scope",
        "0::/",
    ],
)
def test_a_user_who_names_a_cgroup_like_a_container_does_not_stop_it(holder: str) -> None:
    """Below a unit with Delegate= its user makes cgroups of any name (systemd.resource-control(5))."""
    assert OneContainer(SCOPE + "\n", holder + "\n").gpu_containers() == []


def test_a_container_without_a_process_holds_no_gpu() -> None:
    assert OneContainer(SCOPE + "\n", SCOPE + "\n", pid=0).gpu_containers() == []


def test_records_of_containers_that_docker_deletes_are_removed(tmp_path: Path) -> None:
    path, engine = str(tmp_path / "drain.json"), Docker({"a": True}, temporary=True)
    assert drain_docker.stop_all(Host(), engine, True, -1, False, path) == ["a"]
    assert not drain_docker.start_all(Host(), engine, False, path)["changed"] and not Path(path).exists()


def test_a_container_that_needs_another_one_is_started_after_it(tmp_path: Path) -> None:
    path, engine = str(tmp_path / "drain.json"), Docker({"a": True, "b": True}, needs={"a": "b"})
    assert drain_docker.stop_all(Host(), engine, False, -1, False, path) == ["a", "b"]
    assert drain_docker.start_all(Host(), engine, False, path)["containers"] == ["a", "b"]
    assert engine.running == {"a": True, "b": True} and not Path(path).exists()


def test_a_container_that_never_starts_is_named_and_stays_recorded(tmp_path: Path) -> None:
    path, engine = str(tmp_path / "drain.json"), Docker({"a": True, "b": True}, needs={"a": "stopped"})
    drain_docker.stop_all(Host(), engine, False, -1, False, path)
    engine.running["stopped"] = False
    with pytest.raises(DrainError, match="a does not start .*non running container"):
        drain_docker.start_all(Host(), engine, False, path)
    kept = drain.read(Host(), path).docker
    assert kept and list(kept.containers) == ["a"] and engine.running["b"]


@pytest.mark.parametrize(("names", "killed"), [(-1, "never"), (90000, "only after 90000 s")])
def test_a_container_with_a_longer_stop_timeout_than_the_drain_is_named_in_time(
    tmp_path: Path, names: int, killed: str
) -> None:
    waits: list[float] = []

    class Stubborn(Docker):
        def ask(self, method: str, url: str, timeout: float = 60.0) -> tuple[int, Any]:
            if "/stop" in url:
                waits.append(timeout)
                raise DrainError("docker does not answer at /run/docker.sock (timed out): see ...")
            status, value = super().ask(method, url, timeout)
            if url.endswith("/json") and isinstance(value, dict):
                value["Config"] = {"StopTimeout": names}
            return status, value

    engine = Stubborn({"a": True})
    engine.limit = 300.0
    with pytest.raises(
        DrainError, match=f"a did not end within 360 s, and docker kills it {killed}.*gpu_drain_docker_grace"
    ):
        drain_docker.stop_all(Host(), engine, False, -1, False, str(tmp_path / "drain.json"))
    assert waits == [360.0]


def test_a_container_that_somebody_restarts_is_awaited_and_named(tmp_path: Path) -> None:
    path, engine = str(tmp_path / "drain.json"), Docker({"a": True, "b": True}, reborn=("a",))
    assert drain_docker.stop_all(Host(), engine, False, -1, False, path) == ["a", "b"]
    assert re.search("a, which .* started", engine.pending_work(False))
    engine.reborn = ()
    drain_docker.stop_all(Host(), engine, False, -1, False, path)
    assert engine.pending_work(False) == ""
