"""Locks between runs on a host: one function takes them, and no other user of the host can open what it locks."""

import ast
import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base import lease, locks, manifest, manifest_notes
from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.cuda.cudnn import install as cudnn_install
from plugins.module_utils.gpu_ready.driver.runfile import fetch as runfile_fetch
from tests.unit.recorded import RecordedHost

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = [path for place in ("library", "module_utils", "plugins") for path in (ROOT / place).rglob("*.py")]
TEXTS = [path for place in ("roles", "playbooks", "deploy", "bin") for path in (ROOT / place).rglob("*")]
CALLS = ("flock", "lockf", "F_SETLK", "F_SETLKW", "F_OFD_SETLK", "F_OFD_SETLKW")
NOBODY = 65534


def locking_calls(text: str) -> list[str]:
    """Return the functions of a file that take a lock, by whatever name fcntl was imported."""
    found = []
    for function in ast.walk(ast.parse(text)):
        if isinstance(function, (ast.FunctionDef, ast.Module)):
            own = [
                node for child in function.body if not isinstance(child, ast.FunctionDef) for node in ast.walk(child)
            ]
            names = {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in own}
            words = {node.value for node in own if isinstance(node, ast.Constant)}
            names |= {name.name for node in own if isinstance(node, ast.ImportFrom) for name in node.names}
            if (names | words) & set(CALLS):
                found.append(getattr(function, "name", "module"))
    return found


@pytest.mark.parametrize(
    "text",
    [
        "fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "def f():\n    import fcntl as x\n    x.lockf(handle, 2)",
        "from fcntl import flock as take",
        "os.lockf(handle, os.F_LOCK, 0)",
        "fcntl.fcntl(handle, fcntl.F_SETLK, lock)",
        "host.run(['flock', path, 'true'])",
    ],
)
def test_the_search_finds_a_lock(text: str) -> None:
    assert len(locking_calls(text)) == 1


def test_one_function_takes_all_locks_of_hosts() -> None:
    found = {str(path.relative_to(ROOT)): locking_calls(path.read_text()) for path in PROGRAMS}
    assert {path: names for path, names in found.items() if names} == {
        "module_utils/gpu_ready/base/locks.py": ["_take_lock"],
        # On the control node, where the operator's own file is locked, which nobody else can open.
        "plugins/plugin_utils/gpu_ready/rollout/record.py": ["_wait_for_lock"],
    }
    for path in TEXTS:
        if path.is_file():
            assert not re.search(r"\bflock\b", path.read_text(errors="replace")), path


# ---- who can take them ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def process_of(uid: int, code: str, *words: str) -> Iterator[str]:
    """Run Python as a user until the end of the block; what it printed first."""
    argv = [sys.executable, "-c", f"import fcntl, os, sys\nos.setgroups([])\nos.setuid({uid})\n{code}", *words]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.communicate("\n", timeout=60)


OPEN_EVERYTHING = """
opened = []
for path in sys.argv[1:]:
    for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR | os.O_CREAT, os.O_PATH):
        try:
            os.open(path, flags)
            opened.append(path)
        except OSError:
            pass
print(opened)
"""
LOCK_ALL = """
handles = [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]
for handle in handles:
    fcntl.flock(handle, fcntl.LOCK_SH)
print("locked", flush=True)
sys.stdin.read()
"""


class Place:
    """A /run and a /var/lib as on a host: other users can read both, and not write there."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.run, self.state = directory / "run", directory / "lib/gpu-ready"
        for made in (self.run, self.state / "cudnn"):
            made.mkdir(parents=True, mode=0o755)
        for above in [directory, *directory.parents]:
            if above.stat().st_mode & 0o005 != 0o005:
                above.chmod(0o755)  # of pytest: others must reach what the test gives them
        monkeypatch.setattr(locks, "DIRECTORY", str(self.run / "gpu-ready"))
        monkeypatch.setattr(manifest_notes, "LOCK_WAIT", 1.0)
        monkeypatch.setattr(runfile_fetch, "WORK_DIRECTORIES", (str(self.state),))
        self.manifest = str(self.state / "manifest.json")
        self.cudnn = cudnn_install.CudnnPaths(records=str(self.state / "cudnn"), manifest=self.manifest)

    def work(self) -> None:
        """Do what takes each lock."""
        run = lease.RunId("abc.1.2", "alice@admin1", "site.yml")
        lease.take(Host(), lease.Claim(run), path=str(self.state / "lease.json"))
        manifest_notes.note("packages", {"tree": {}}, self.manifest)
        with runfile_fetch.work_directory(), cudnn_install.archive_directory(self.cudnn):
            pass

    def targets(self) -> list[str]:
        """Return all that is locked."""
        new = sorted(str(path) for path in (self.run / "gpu-ready").iterdir())
        assert [Path(path).name for path in new] == ["cudnn.lock", "manifest.lock", "runfile.lock"]
        return [str(self.run / "gpu-ready"), *new]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    if os.geteuid() != 0:
        pytest.skip("needs root, to be another user")
    return Place(tmp_path, monkeypatch)


@pytest.mark.host_io
def test_another_user_can_open_nothing_that_is_locked(place: Place) -> None:
    place.work()
    with process_of(NOBODY, OPEN_EVERYTHING, *place.targets()[1:]) as opened:
        assert opened == "[]"
    modes = [os.lstat(path).st_mode & 0o7777 for path in place.targets()]
    assert modes == [0o700, 0o600, 0o600, 0o600]


@pytest.mark.host_io
def test_the_holder_of_a_lock_is_named(place: Place) -> None:
    place.work()
    with process_of(0, LOCK_ALL, place.targets()[2]) as answer:
        assert answer == "locked"
        with pytest.raises(locks.LockError) as raised:
            manifest_notes.note("packages", {"curl": {}}, place.manifest)
    pid = re.search(
        r"run/gpu-ready/manifest\.lock: another run on this host has locked it for more than 1 s: process (\d+) "
        r"\(.*python.* -c import fcntl.*\)\. Wait until it ends, or stop it, then run again\.$",
        str(raised.value),
    )
    assert pid and manifest.read(place.manifest)["packages"] == {"tree": {}}


@pytest.mark.parametrize("name", ["manifest", "runfile"])
def test_a_lock_is_held_once_and_free_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(locks, "DIRECTORY", str(tmp_path / "run"))
    with (
        locks.hold_lock(name),
        locks.hold_lock("other"),
        pytest.raises(locks.LockError, match=rf"{name}\.lock: another run .* process {os.getpid()} \("),
        locks.hold_lock(name),
    ):
        raise AssertionError("two have it")
    with contextlib.suppress(ZeroDivisionError), locks.hold_lock(name):
        raise ZeroDivisionError
    with locks.hold_lock(name):
        pass


# ---- what is in the place of a lock --------------------------------------------------------------------------------


def spoil(directory: Path, what: str) -> None:
    lock, elsewhere = directory / "manifest.lock", directory.parent / "elsewhere"
    elsewhere.mkdir()
    if what == "directory: link":
        directory.symlink_to(elsewhere)
        return
    if what == "directory: file":
        directory.touch()
        return
    directory.mkdir(mode=0o700)
    if what == "directory: writable":
        directory.chmod(0o770)
    elif what == "lock: link":
        (elsewhere / "file").touch(mode=0o600)
        lock.symlink_to(elsewhere / "file")
    elif what == "lock: directory":
        lock.mkdir()
    elif what == "lock: pipe":
        os.mkfifo(lock)
    elif what == "lock: readable":
        lock.touch(mode=0o644)
    elif what == "directory: of another user":
        os.chown(directory, NOBODY, NOBODY)
    elif what == "lock: of another user":
        lock.touch(mode=0o600)
        os.chown(lock, NOBODY, NOBODY)


SPOILED = ["directory: link", "directory: file", "directory: writable", "lock: link", "lock: directory", "lock: pipe",
           "lock: readable", "directory: of another user", "lock: of another user"]  # fmt: skip


@pytest.mark.parametrize("what", SPOILED)
def test_a_lock_that_others_could_have_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    if "user" in what and os.geteuid() != 0:
        pytest.skip("needs root, to give files away")
    directory = tmp_path / "run"
    monkeypatch.setattr(locks, "DIRECTORY", str(directory))
    spoil(directory, what)
    with pytest.raises(locks.LockError) as raised, locks.hold_lock("manifest"):
        raise AssertionError("locked")
    bad = str(directory if what.startswith("directory") else directory / "manifest.lock")
    assert str(raised.value).startswith(bad + ": it is ") and f"`rm -r {bad}`" in str(raised.value)
    subprocess.run(["rm", "-r", bad], check=True)  # the remedy
    with locks.hold_lock("manifest"):
        pass


def test_the_lines_of_proc_locks() -> None:
    file = Path("/").stat()
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    text = (
        "1: POSIX  ADVISORY  WRITE 11 {0} 0 EOF\n"
        "2: FLOCK  ADVISORY  WRITE 12 {0}9 0 EOF\n"
        "3: FLOCK  ADVISORY  WRITE {1} {0} 0 EOF\n"
        "3: -> FLOCK  ADVISORY  WRITE 14 {0} 0 EOF\n"
    )
    assert locks.find_holder(text.format(place, 13), file) == 13
    for absent in ("0", "-1"):  # a process of another namespace; an open file description without a process
        assert locks.find_holder(text.format(place, absent), file) is None
    assert locks.find_holder("", file) is None


def test_a_process_is_described_by_command_and_user_without_secrets() -> None:
    line = "dnf\0--password=x\0update\n\0"
    host = RecordedHost({"/proc/7/cmdline": line, "/proc/8/cmdline": line})
    host.files["/proc/7/status"] = "Name:\tdnf\nUid:\t0\t0\t0\t0\n"
    host.files["/proc/8/status"] = "Name:\tdnf\nUid:\t1000\t0\t0\t0\n"
    assert locks.describe_process(host, 7) == "process 7 (dnf --password=*** update)"
    assert locks.describe_process(host, 8) == "process 8 of user 1000 (dnf --password=*** update)"
    assert locks.describe_process(host, 9) == "process 9 (command unknown)"
