"""Writing daemon.json: link, mode and owner are kept, the change is recorded first, refused files are never written."""

import itertools
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from plugins.module_utils.gpu_ready.containers.daemon_json import write as daemon_json_file
from plugins.module_utils.gpu_ready.lifecycle.removal import recorded_files
from tests.grid import sampled
from tests.unit.recorded import RecordedHost

NVIDIA = {"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}


def write_keys(path: Path, expected: dict[str, Any], directory: Path) -> "str | None":
    before = path.read_bytes() if path.exists() else None
    return daemon_json_file.write(str(path), before, daemon_json.merge(before, expected), str(directory))


def test_link_and_mode_are_kept_and_the_old_file_is_in_the_backup(tmp_path: Path) -> None:
    real, link, directory = tmp_path / "real.json", tmp_path / "daemon.json", tmp_path / "gpu-ready"
    real.write_bytes(b'{"mtu": 1400}\r\n')
    real.chmod(0o600)
    link.symlink_to("real.json")
    backup = write_keys(link, NVIDIA, directory)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert json.loads(real.read_text()) == {"mtu": 1400, **NVIDIA}
    assert Path(str(backup)).read_bytes() == b'{"mtu": 1400}\r\n'
    assert sorted(item.name for item in tmp_path.iterdir()) == ["daemon.json", "gpu-ready", "real.json"]


@pytest.mark.parametrize(
    ("expected", "marked"), [(NVIDIA, False), ({"features": {"cdi": True}}, True)], ids=["reload", "restart"]
)
def test_a_required_restart_is_marked_before_the_file_changes(tmp_path: Path, expected: Any, marked: bool) -> None:
    write_keys(tmp_path / "etc" / "daemon.json", expected, tmp_path)
    assert (tmp_path / daemon_json.RESTART_MARK).exists() is marked


def test_a_run_that_is_killed_while_it_writes_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "daemon.json"
    path.write_text('{"mtu": 1400}')

    rename = os.rename

    def killed(source: str, target: str) -> None:
        if target == str(path):
            raise KeyboardInterrupt
        rename(source, target)

    change = daemon_json.merge('{"mtu": 1400}', NVIDIA)
    monkeypatch.setattr(os, "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        daemon_json_file.write(str(path), b'{"mtu": 1400}', change, str(tmp_path / "state"))
    assert path.read_text() == '{"mtu": 1400}'
    assert [item.name for item in tmp_path.iterdir() if "daemon" in item.name] == ["daemon.json"]


CALLS = (
    "open",
    "fdopen",
    "rename",
    "unlink",
    "mkdir",
    "fsync",
    "fchmod",
    "fchown",
    "stat",
    "utime",
    "chmod",
    "replace",
    "close",
)
"""Everything by which the writer touches the disk; data is written through the files that open and fdopen return."""


class Torn:
    """A file that splits each write in two: the machine may stop between them."""

    def __init__(self, stream: Any, tick: Any) -> None:
        self.stream, self.tick = stream, tick

    def __enter__(self) -> "Torn":
        return self

    def __exit__(self, *error: object) -> None:
        self.stream.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, data: bytes) -> None:
        for part in (data[: len(data) // 2], data[len(data) // 2 :]):
            self.tick()
            self.stream.write(part)
            self.stream.flush()


def killed_at(number: int, act: Any) -> int:
    """Run ``act`` in a process that is killed before its system call ``number``; return the wait status."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        count = 0

        def tick() -> None:
            nonlocal count
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)

        def counted(name: str) -> None:
            real = getattr(os, name)

            def call(*args: Any, **more: Any) -> Any:
                tick()
                found = real(*args, **more)
                return Torn(found, tick) if name == "fdopen" else found

            setattr(os, name, call)

        for name in CALLS:
            counted(name)
        act()
        os._exit(0)
    finally:
        os._exit(1)  # only an error of the test itself ends here


FILES = {"none": None, "empty": b"", "long": b'{\n\t"mtu": 1400,\n\t"labels": ["' + b"x" * 5000 + b'"]\n}\n'}
SETTINGS: dict[str, dict[str, Any]] = {"reload": NVIDIA, "restart": {"log-driver": "local"}}


# The sample: no file and a reload, a long file and a restart.
@pytest.mark.parametrize(("file", "activation"), sampled(itertools.product(FILES, SETTINGS), 5))
def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(tmp_path: Path, file: str, activation: str) -> None:
    before, expected = FILES[file], SETTINGS[activation]
    change = daemon_json.merge(before, expected)
    after = change.after.encode()
    seen = set()
    for number in range(1, 400):
        path, directory = tmp_path / str(number) / "daemon.json", tmp_path / str(number) / "gpu-ready"
        path.parent.mkdir()
        if before is not None:
            path.write_bytes(before)
            path.chmod(0o640)

        def act(path: Path = path, directory: Path = directory) -> None:
            daemon_json_file.write(str(path), before, change, str(directory))

        status = killed_at(number, act)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
        now = path.read_bytes() if path.exists() else None
        seen.add(now)
        assert now in (before, after)
        if now is not None and before is not None:
            assert path.stat().st_mode & 0o777 == 0o640
        if now == after and change.activation == "restart":
            assert (directory / daemon_json.RESTART_MARK).exists()
        # The next run, and then uninstall.
        if now != after:
            act()
        assert path.read_bytes() == after
        assert {item.name for item in path.parent.iterdir()} == {"daemon.json", "gpu-ready"}
        recorded = json.loads((directory / "manifest.json").read_text())["daemon_json"][str(path)]
        assert recorded_files.restored(recorded) == before
        text = None if before is None else before.decode()
        back = daemon_json.revert(change.after, {"before": text, "keys": recorded["keys"]})
        assert (None if back is None else back.encode()) == before
        if not os.WIFSIGNALED(status):
            break
    else:
        pytest.fail("the writer never came to its end")
    assert number > 20  # the calls were counted, and each was the last one once
    assert seen == {before, after}


@pytest.mark.parametrize("before", [None, b"", b'{\n\t"mtu": 1400,\r\n\t"features": {"x": true}}  \n'])
def test_uninstall_restores_the_exact_file_after_several_runs(tmp_path: Path, before: "bytes | None") -> None:
    path, directory = tmp_path / "daemon.json", tmp_path / "gpu-ready"
    if before is not None:
        path.write_bytes(before)
    for expected in ({"features": {"cdi": True}}, {**NVIDIA, "default-runtime": "nvidia"}, {"default-runtime": "runc"}):
        write_keys(path, expected, directory)
    recorded = json.loads((directory / "manifest.json").read_text())["daemon_json"][str(path)]
    restored = recorded_files.restored(recorded)
    text = None if restored is None else restored.decode()
    back = daemon_json.revert(path.read_bytes().decode(), {"before": text, "keys": recorded["keys"]})
    assert (None if back is None else back.encode()) == before


ASKED = "/usr/bin/dockerd"


class Engine(RecordedHost):
    """A host whose dockerd answers every call the same way."""

    answer = Result(0, "configuration OK\n", "")

    def run(self, argv: list[str], timeout: float = 30.0, env: "dict[str, str] | None" = None) -> Result:
        self.text = Path(argv[-1]).read_text()
        return Result(self.answer.rc, self.answer.out, self.answer.err.replace("FILE", argv[-1]))


@pytest.mark.parametrize(
    ("rc", "err", "answer"),
    [
        (0, "", True),
        (125, "unknown flag: --validate\nSee 'dockerd --help'.\n", False),
        (1, "unable to configure the Docker daemon with file FILE: the following directives don't match", None),
    ],
)
def test_dockerd_validates_the_new_text_if_it_can(rc: int, err: str, answer: "bool | None") -> None:
    host = Engine(files={ASKED: ""})
    host.answer = Result(rc, "", err)
    if answer is None:
        with pytest.raises(daemon_json_file.DaemonJsonRejected, match="with file the new file: the following"):
            daemon_json_file.validate(host, "{}")
    else:
        assert daemon_json_file.validate(host, "{}") is answer
    assert host.text == "{}"


def test_no_engine_no_check() -> None:
    assert daemon_json_file.validate(RecordedHost(), "{}") is False


def test_a_file_with_a_new_secret_is_readable_by_root_alone(tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    write_keys(path, {"log-driver": "splunk"}, tmp_path / "state")
    assert path.stat().st_mode & 0o777 == 0o644
    write_keys(path, {"log-opts": {"splunk-token": "hunter2"}}, tmp_path / "state")
    assert path.stat().st_mode & 0o777 == 0o600
    write_keys(path, {"debug": True}, tmp_path / "state")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_secret_of_others_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "daemon.json"
    path.write_text('{"proxies": {"http-proxy": "http://me:hunter2@proxy:3128"}}')
    path.chmod(0o640)
    write_keys(path, NVIDIA, tmp_path / "state")
    assert path.stat().st_mode & 0o777 == 0o640
