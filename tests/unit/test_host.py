"""Access to the host: a program that does not end in time is ended with all its children."""

import time
from pathlib import Path

import pytest
from gpu_ready.base import host
from gpu_ready.base.host import MISSING, TIMED_OUT, Host


def test_a_program_that_takes_too_long_is_ended_with_its_children() -> None:
    started = time.monotonic()
    answer = Host().run(["sh", "-c", "echo begun; sleep 60; echo done"], timeout=0.5)
    assert answer.rc == TIMED_OUT and answer.out == "begun\n" and "no answer in 0.5 s" in answer.err
    assert time.monotonic() - started < 20


def test_a_program_that_cannot_be_ended_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that waits in a broken driver takes no signal; a process with a session of its own gets none.

    Both keep the pipe open while they live. The second is tested in place of the first, which only a kernel can cause.
    """
    monkeypatch.setattr(host, "GRACE", 0.2)
    started = time.monotonic()
    answer = Host().run(["sh", "-c", "echo begun; setsid sleep 30 & exec sleep 30"], timeout=0.5)
    assert answer.rc == TIMED_OUT and "no answer in 0.5 s" in answer.err
    assert time.monotonic() - started < 10


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
