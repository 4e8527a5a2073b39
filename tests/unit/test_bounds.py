"""Nothing on a host waits without a bound: calls that could are found in the code, and the readers of /proc are tried."""

import ast
import fcntl
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base.host import MOST_STUCK, Host, read_in_child
from plugins.module_utils.gpu_ready.driver.kernel_module import module_users
from plugins.module_utils.gpu_ready.facts import work
from plugins.module_utils.gpu_ready.packaging.locks import held_pid_files
from tests.unit.recorded import RecordedHost
from tests.unit.test_security import CODE, ROOT, name_of
from tests.unit.test_work_facts import collect

# ---- calls ----------------------------------------------------------------------------------------------------------

STARTERS = ("subprocess.run", "subprocess.call", "subprocess.check_call", "subprocess.check_output")
CONNECTIONS = ("http.client.HTTPConnection", "http.client.HTTPSConnection", "socket.create_connection", "urls.open_url")
NEVER = ("os.sync", "os.wait", "os.wait3", "os.wait4", "signal.pause", "signal.sigwait", "input", "module.run_command")
"""Calls without a limit: of os.sync, a dead NFS server; run_command of Ansible has no time limit."""
MEMORY = re.compile(r"/proc/[^\"'\s]*/(?:cmdline|environ|(?:s|num)?_?maps|stack|mem)\b")
"""What the kernel reads from the memory of a process: see Host.command_lines."""


def unbounded(tree: ast.AST) -> Iterator[str]:
    """The calls of a file that could wait for ever."""
    for function in [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.Module))]:
        for node in ast.walk(function):
            if isinstance(node, ast.Call):
                yield from unbounded_call(node, function)
            loops = isinstance(node, ast.While) and isinstance(node.test, ast.Constant)
            # A loop that sleeps has a clock: time.monotonic, or a function that the caller gives.
            if loops and "sleep(" in ast.unparse(node) and not re.search(r"monotonic\(\)|now\(\)", ast.unparse(node)):
                yield ast.unparse(node)[:60]


def unbounded_call(call: ast.Call, function: ast.AST) -> Iterator[str]:
    name = ast.unparse(call.func)
    words = {word.arg: ast.unparse(word.value) for word in call.keywords}
    limited = words.get("timeout", "None") != "None"
    bad = (
        name in NEVER
        or (name in (*STARTERS, *CONNECTIONS) and not limited)
        or (name.endswith(".communicate") and not limited)
        or (
            name.endswith((".wait", ".join", "queue.get", ".result", ".acquire"))
            and not call.args
            and not call.keywords
        )
        or (
            name in ("fcntl.flock", "fcntl.lockf")
            and "LOCK_NB" not in ast.unparse(call)
            and "LOCK_UN" not in ast.unparse(call)
        )
        or (name == "fcntl.fcntl" and "F_SETLKW" in ast.unparse(call))
        or (name == "os.waitpid" and "WNOHANG" not in ast.unparse(call))
        or (name == "select.select" and len(call.args) < 4)
        or (name == "socket.socket" and ".settimeout(" not in ast.unparse(function))
        or (name.endswith(".run") and words.get("timeout") == "None")
    )
    if bad:
        yield ast.unparse(call)


@pytest.mark.parametrize(
    "text",
    [
        "os.sync()",
        "subprocess.run(['x'])",
        "subprocess.run(['x'], timeout=None)",
        "process.communicate()",
        "process.wait()",
        "thread.join()",
        "queue.get()",
        "fcntl.flock(handle, fcntl.LOCK_EX)",
        "fcntl.fcntl(handle, fcntl.F_SETLKW, lock)",
        "os.waitpid(child, 0)",
        "select.select([reader], [], [])",
        "def ask():\n    sock = socket.socket(socket.AF_UNIX)\n    sock.connect(path)",
        "http.client.HTTPConnection('localhost')",
        "host.run(['x'], timeout=None)",
        "while True:\n    time.sleep(1)",
        "module.run_command(['x'])",
    ],
)
def test_the_search_finds_a_call_without_a_bound(text: str) -> None:
    assert list(unbounded(ast.parse(text)))


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_every_wait_has_a_bound(path: Path) -> None:
    assert list(unbounded(ast.parse(path.read_text()))) == []
    if path.name not in ("host.py", "data.py"):  # data: no code
        assert not MEMORY.search(path.read_text())


# ---- files of /proc -------------------------------------------------------------------------------------------------


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A file whose read does not return, as that of a stuck process's command line."""
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.mark.host_io
def test_a_read_that_does_not_return_is_left_to_a_child(tmp_path: Path, pipe: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\0b" * 9999)
    (tmp_path / "empty").touch()
    before, began = set(Path("/proc/self/fd").iterdir()), time.monotonic()
    with pytest.raises(TimeoutError, match="pipe"):
        read_in_child(str(pipe), 0.3)
    assert time.monotonic() - began < 60
    assert [read_in_child(str(tmp_path / name), 9.0) for name in ("file", "empty", "absent")] == [
        (b"a\0b" * 9999)[: 1 << 14],
        b"",
        None,
    ]
    assert set(Path("/proc/self/fd").iterdir()) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # no child is left


@pytest.mark.host_io
def test_the_child_that_is_left_holds_no_file_of_its_parent(pipe: Path) -> None:
    """A pipe to Ansible that stays open would keep ssh waiting; a lock would stop every later run."""
    code = (
        "import fcntl, os, signal, sys; from plugins.module_utils.gpu_ready.base import host\n"
        "os.kill = lambda *_: None\n"  # as for a child that waits in the kernel
        "lock = open(sys.argv[2], 'w'); fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "try: host.read_in_child(sys.argv[1], 0.2)\n"
        "except TimeoutError: print('late')\n"
    )
    lock = pipe.parent / "lock"
    done = subprocess.run(
        [sys.executable, "-c", code, str(pipe), str(lock)], env=dict(os.environ, PYTHONPATH=str(ROOT)),
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "late\n"
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    pipe.write_text("")  # lets the child end


@pytest.mark.host_io
def test_the_command_line_of_a_process() -> None:
    words = Host().command_lines([os.getpid(), 2**22 + 1])
    assert words == {os.getpid(): Path("/proc/self/cmdline").read_text().split("\0")}


@pytest.mark.host_io
def test_many_processes_that_are_stuck_cost_the_time_of_a_few(monkeypatch: pytest.MonkeyPatch, pipe: Path) -> None:
    tried: list[str] = []

    def read(path: str, limit: float) -> bytes | None:
        tried.append(path)
        return read_in_child(str(pipe), limit)

    monkeypatch.setattr("plugins.module_utils.gpu_ready.base.host.read_in_child", read)
    assert Host().command_lines(list(range(100)), 0.1) == {}
    assert len(tried) == MOST_STUCK


class Stuck(RecordedHost):
    """A host on which no command line can be read."""

    def command_lines(self, pids: list[int], limit: float = 1.0) -> dict[int, list[str]]:
        return {}


def test_a_process_that_is_stuck_is_known_by_its_name() -> None:
    files = {"/sys/module/nvidia/refcnt": "1\n", "/proc/42/comm": "python3\n"}
    host = Stuck(files, links={"/proc/42/fd/7": "/dev/nvidia0"})
    assert module_users(host, ["nvidia"]) == "process 42 (python3)"
    assert [(one.name, one.command) for one in collect(host).processes] == [("python3", "python3")]


def test_work_of_a_stuck_process_counts_as_work() -> None:
    root = {f"/proc/{pid}/status": "Uid:\t0\t0\t0\t0\n" for pid in (9, 10, 11)}
    host = Stuck({"/proc/9/comm": "conmon\n", "/proc/10/comm": "slurmstepd\n", "/proc/11/comm": "slurmstepd\n", **root,
                  "/proc/11/cgroup": "0::/system.slice/slurmstepd.scope/job_4711/step_0/slurm\n"})  # fmt: skip
    found = collect(host)
    assert [(one.engine, one.name, one.gpu) for one in found.containers] == [("podman", "of process 9", "not readable")]
    assert found.jobs == ["4711", "of process 10"]
    assert work.slurm_jobs(host, [99]) == []  # it has ended


def test_a_pid_file_with_any_number_is_read() -> None:
    for text in ("77\n", "9" * 40, "²", ""):
        host = RecordedHost({"/var/run/yum.pid": text, "/proc/77/cmdline": "/usr/bin/python\0/usr/bin/yum\0"})
        assert held_pid_files(host, ["/var/run/yum.pid"]) == ([("/var/run/yum.pid", 77)] if text == "77\n" else [])
