"""Draining docker: which containers hold GPUs, and how they are stopped and started again."""

import http.server
import re
import socketserver
import threading
from collections.abc import Iterator
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


class Failing(Docker):
    """An engine that gives one answer to each request whose address has a word, and to others as :class:`Docker`."""

    def __init__(self, running: dict[str, bool], word: str, status: int, value: Any = None) -> None:
        super().__init__(running)
        self.word = word
        self.answer = (status, value)

    def ask(self, method: str, url: str, timeout: float = 60.0) -> tuple[int, Any]:
        return self.answer if self.word in url else super().ask(method, url, timeout)


@pytest.mark.parametrize(
    ("word", "status", "value", "message"),
    [
        (
            "containers/json",
            500,
            {"message": "no database"},
            r"did not list its containers \(no database\)\. Run again",
        ),
        ("a/json", 500, {"message": "no database"}, r"did not describe the container a \(no database\)\. Run again"),
        ("a/json", 200, None, r"did not describe the container a \(no reason given\)\. Run again"),
        (
            "a/stop",
            500,
            {"message": "permission denied"},
            r"still run: a did not stop \(permission denied\)\. Stop them",
        ),
    ],
)
def test_a_refusal_of_docker_ends_the_drain(tmp_path: Path, word: str, status: int, value: Any, message: str) -> None:
    engine = Failing({"a": True, "b": True}, word, status, value)
    with pytest.raises(DrainError, match=message):
        drain_docker.stop_all(Host(), engine, False, -1, False, str(tmp_path / "drain.json"))


def test_an_engine_that_is_lost_while_it_stops_a_container_is_named(tmp_path: Path) -> None:
    class Lost(Docker):
        def ask(self, method: str, url: str, timeout: float = 60.0) -> tuple[int, Any]:
            if method == "POST":
                raise DrainError("docker: it does not answer at /run/docker.sock (refused).")
            return super().ask(method, url, timeout)

    with pytest.raises(DrainError, match=r"still run: docker: it does not answer at /run/docker\.sock"):
        drain_docker.stop_all(Host(), Lost({"a": True}), False, -1, False, str(tmp_path / "drain.json"))


@pytest.mark.parametrize("status", [204, 304, 404])
def test_a_container_that_ended_by_itself_is_stopped(tmp_path: Path, status: int) -> None:
    """Docker answers 304 for one that does not run, and 404 for one that it has deleted (Engine API, ContainerStop)."""
    engine = Failing({"a": True}, "a/stop", status, {"message": "No such container: a"})
    assert drain_docker.stop_all(Host(), engine, False, -1, False, str(tmp_path / "drain.json")) == ["a"]


def test_a_container_that_vanished_meanwhile_is_neither_stopped_nor_started(tmp_path: Path) -> None:
    path = str(tmp_path / "drain.json")
    absent = Failing({"a": True}, "a/json", 404, {"message": "No such container: a"})
    assert drain_docker.stop_all(Host(), absent, False, -1, False, path) == []
    drain_docker.record_containers(Host(), [container(id="a"), container(id="b")], path)
    engine = Failing({"a": False, "b": True}, "a/json", 404, {"message": "No such container: a"})
    assert drain_docker.start_all(Host(), engine, False, path)["changed"]
    assert engine.running == {"a": False, "b": True} and not Path(path).exists()


def test_a_paused_container_is_paused_again(tmp_path: Path) -> None:
    path, asked = str(tmp_path / "drain.json"), []

    class Noting(Docker):
        def ask(self, method: str, url: str, timeout: float = 60.0) -> tuple[int, Any]:
            asked.extend([url.rpartition("/")[2]] if method == "POST" else [])
            return super().ask(method, url, timeout)

    drain_docker.record_containers(Host(), [container(id="a", paused=True)], path)
    drain_docker.start_all(Host(), Noting({"a": False}), False, path)
    drain_docker.record_containers(Host(), [container(id="b")], path)
    drain_docker.start_all(Host(), Noting({"b": False}), False, path)
    assert asked == ["start", "pause", "start"]


def test_without_an_engine_nothing_holds_a_gpu_and_stopped_containers_stay_recorded(tmp_path: Path) -> None:
    path, engine = str(tmp_path / "drain.json"), drain_docker.DockerEngine(RecordedHost())
    assert drain_docker.stop_all(Host(), engine, False, -1, False, path) == [] and engine.pending_work(False) == ""
    assert drain_docker.start_all(Host(), engine, False, path) == {"changed": False, "containers": []}
    drain_docker.record_containers(Host(), [container()], path)
    with pytest.raises(DrainError, match=r"docker: it is not running\. Start it, then run again to start train"):
        drain_docker.start_all(Host(), engine, False, path)
    assert drain_docker.start_all(Host(), engine, True, path) == {"changed": True, "containers": ["train"]}
    assert Path(path).exists()


def test_a_check_stops_nothing(tmp_path: Path) -> None:
    path, engine = str(tmp_path / "drain.json"), Docker({"a": True})
    assert drain_docker.stop_all(Host(), engine, False, -1, True, path) == ["a"]
    assert engine.running == {"a": True} and not Path(path).exists()


class Socket(http.server.BaseHTTPRequestHandler):
    """Docker's engine as HTTP: JSON, nothing after 204, and what no JSON is."""

    answers = {
        "GET /list": (200, b'[{"Id": "a"}]'),
        "POST /stop": (204, b""),
        "GET /none": (404, b'{"message": "x"}'),
        "GET /html": (502, b"<p>"),
    }

    def answer(self) -> None:
        status, body = self.answers[f"{self.command} {self.path}"]
        body = body if self.command == "GET" or self.headers["Content-Length"] == "0" else b"411"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def address_string(self) -> str:
        return "socket"

    def log_request(self, *args: Any) -> None:
        pass


@pytest.fixture
def docker_socket(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "docker.sock")
    with socketserver.UnixStreamServer(path, Socket) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield path
        server.shutdown()
        thread.join()


def test_the_engine_is_asked_through_its_socket(docker_socket: str) -> None:
    engine = drain_docker.DockerEngine(RecordedHost(), docker_socket)
    assert engine.ask("GET", "/list") == (200, [{"Id": "a"}])
    assert engine.ask("POST", "/stop") == (204, None)
    assert engine.ask("GET", "/none") == (404, {"message": "x"})
    with pytest.raises(
        DrainError, match=r"docker: it does not answer at .*docker\.sock \(.*See `systemctl status docker`"
    ):
        engine.ask("GET", "/html")
    engine.socket = docker_socket + ".away"
    with pytest.raises(DrainError, match=r"docker: it does not answer at .*\.away \(.*No such file"):
        engine.ask("GET", "/list")


def test_an_engine_that_is_silent_is_waited_for_no_longer_than_asked(tmp_path: Path) -> None:
    path = str(tmp_path / "docker.sock")
    with socketserver.UnixStreamServer(path, Socket), pytest.raises(DrainError, match="timed out"):
        drain_docker.DockerEngine(RecordedHost(), path).ask("GET", "/list", timeout=0.05)
