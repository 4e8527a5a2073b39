"""Access to the host: a program that does not end in time, or prints too much, is ended with all its children."""

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base import host
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import MISSING, OUTPUT_LIMIT, TIMED_OUT, Host


def test_a_program_that_takes_too_long_is_ended_with_its_children() -> None:
    started = time.monotonic()
    answer = Host().run(["sh", "-c", "echo begun; sleep 60; echo done"], timeout=2)
    assert answer.rc == TIMED_OUT and answer.out == "begun\n" and "no answer in 2 s" in answer.err
    assert time.monotonic() - started < 50


def test_a_program_that_cannot_be_ended_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that waits in a broken driver takes no signal; a process with a session of its own gets none.

    Both keep the pipe open while they live. The second is tested in place of the first, which only a kernel can cause.
    """
    monkeypatch.setattr(host, "GRACE", 0.2)
    started = time.monotonic()
    answer = Host().run(["sh", "-c", "echo begun; setsid sleep 30 & exec sleep 30"], timeout=0.5)
    assert answer.rc == TIMED_OUT and "no answer in 0.5 s" in answer.err
    assert time.monotonic() - started < 25


FLOOD = """
import sys
sys.path.insert(0, sys.argv[1])
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Host
try:
    Host().run(["sh", "-c", sys.argv[2]], timeout=60)
except GpuReadyError as error:
    print(error)
"""


def is_running(pid: str) -> bool:
    """False for a process that has ended, also where its parent has not asked for its status."""
    try:
        return Path("/proc", pid, "stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.host_io
@pytest.mark.parametrize("redirection", ["", ">&2"])
def test_a_program_that_prints_without_end_is_ended_with_its_children(tmp_path: Path, redirection: str) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 1000 & echo $! > {pids}; echo $$ >> {pids}; yes {redirection}"
    limited = [sys.executable, "-c", FLOOD, str(Path(host.__file__).parents[2]), script]
    most = OUTPUT_LIMIT + (100 << 20)
    done = subprocess.run(
        limited, capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (most, most)),
    )  # fmt: skip
    assert done.stdout.startswith(f"sh: it printed more than {OUTPUT_LIMIT >> 20} MiB and was ended. Run it by hand"), (
        done
    )
    assert [pid for pid in pids.read_text().split() if is_running(pid)] == []


def test_the_output_up_to_the_bound_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "OUTPUT_LIMIT", 100_000)
    argv = ["sh", "-c", "head -c 60000 /dev/zero; head -c 40000 /dev/zero >&2; exit 3"]
    answer = Host().run(argv)
    assert (answer.rc, len(answer.out), len(answer.err)) == (3, 60_000, 40_000)
    with pytest.raises(GpuReadyError, match="sh: it printed more than"):
        Host().run([*argv[:2], argv[2].replace("60000", "60001")])


def test_no_file_stays_open_after_a_program() -> None:
    opened = list(Path("/proc/self/fd").iterdir())
    for _ in range(3):
        Host().run(["true"])
        Host().run(["sleep", "60"], timeout=0.05)
    assert len(list(Path("/proc/self/fd").iterdir())) <= len(opened)


def test_a_program_that_closes_its_output_is_waited_for() -> None:
    assert Host().run(["sh", "-c", "exec >&- 2>&-; sleep 0.3; exit 4"]).rc == 4
    assert Host().run(["sh", "-c", "exec >&- 2>&-; sleep 60"], timeout=0.3).rc == TIMED_OUT


def test_a_missing_program_has_an_exit_status() -> None:
    assert Host().run(["/nowhere/program"]).rc == MISSING


@pytest.mark.host_io
def test_path_of_the_login_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    false = tmp_path / "uname"
    false.write_text("#!/bin/sh\necho not me\n")
    false.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin")
    assert "not me" not in Host().run(["uname"]).out
    assert Host().run(["sh", "-c", "echo $PATH"]).out.strip() == ":".join(host.PATH_DIRECTORIES)
    assert Host().run(["sh", "-c", "echo $PATH"], env={"PATH": "/bin"}).out.strip() == "/bin"
