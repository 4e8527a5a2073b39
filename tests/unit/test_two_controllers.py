"""Two processes of ansible-playbook on one host: the second is refused, a dead one is followed at once.

The host is this machine, with a /var/lib and a /run of its own for Ansible's Python (a mount namespace).
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import lease
from plugins.module_utils.gpu_ready.base.host import Host
from tests import packed_modules

ROOT = Path(__file__).resolve().parents[2]
LONG = 600
"""Seconds; a run of Ansible takes more than a minute while other tests use the machine."""
PROGRAM = str(Path(sys.executable).parent / "ansible-playbook")
PYTHON = """\
#!/bin/sh
exec unshare --user --map-root-user --mount sh -c 'mount --bind "$0" /var/lib && mount --bind "$0/run" /run && exec "$@"' {state} {python} "$@"
"""
PLAY = """
- hosts: all
  gather_facts: false
  environment: {GPU_READY_RUN: "{{ lookup('gpu_ready.nodes.gpu_ready_run', 'run') }}"}
  tasks:
    - block:
        - gpu_ready.nodes.gpu_begin:
          register: gpu_plan_result
          vars: {gpu_plan_result: {plan: {summary: changes}, todo: {docker_engine.repository: {}}, lines: [], lease: ""}}
        - wait_for: {path: "{{ playbook_dir }}/{{ gate | default('go') }}", timeout: 600, sleep: 1}
          when: not ansible_check_mode
        - gpu_ready.nodes.gpu_drain_journal: {record: {docker: {containers: {}}}}
        - gpu_ready.nodes.gpu_drain_journal: {remove: [docker]}
      always:
        - gpu_ready.nodes.gpu_lease: {state: released}
"""
pytestmark = pytest.mark.host_io


class Site:
    """A host with a state of its own, and playbooks for it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.state = directory / "state"
        (self.state / "run").mkdir(parents=True)
        self.lease = self.state / "gpu-ready/lease.json"
        (directory / "change.yml").write_text(PLAY)
        (directory / "python").write_text(PYTHON.format(state=self.state, python=sys.executable))
        (directory / "python").chmod(0o755)
        (directory / "hosts").write_text(
            f"gpu1 ansible_connection=local ansible_become=false ansible_python_interpreter={directory}/python\n"
        )

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a run of its own session, as of another terminal."""
        environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_STDOUT_CALLBACK": "default"}
        environment |= {"PYTHONUNBUFFERED": "1"}  # its lines are read while it runs
        environment |= packed_modules.environment()
        return subprocess.Popen(
            [PROGRAM, "-i", str(self.directory / "hosts"), *arguments, str(self.directory / "change.yml")],
            cwd=self.directory, env=environment, text=True, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def run(self, *arguments: str) -> tuple[int, str]:
        process = self.start(*arguments)
        out, _ = process.communicate(timeout=LONG)
        return process.returncode, " ".join(out.split())

    def release_gate(self, gate: str = "go") -> None:
        """Let the run that waits there change the host."""
        (self.directory / gate).touch()

    def held(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.lease.read_text())
        return found


def wait_until(condition: Callable[[], bool], run: "subprocess.Popen[str]") -> None:
    """Wait for what ``run`` does; fail with its output where it ends without."""
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        assert run.poll() is None, run.communicate()[0]
        time.sleep(0.1)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_a_second_run_is_refused_before_any_change_and_one_that_takes_over_stops_the_first(site: Site) -> None:
    first = site.start()
    wait_until(site.lease.exists, first)
    held = site.held()
    status, out = site.run()
    assert status == 2
    assert "another run works on it: change.yml of " in out
    assert f"{held['controller']}, since 2" in out
    assert re.search(r"\d+ min for its lease to expire", out)
    assert "gpu_ready_take_over=true" in out
    assert site.held() == held
    status, out = site.run("--check")
    assert status == 0
    assert "another run works on it" in out
    assert site.held() == held

    second = site.start("-e", "gpu_ready_take_over=true", "-e", "gate=other")
    wait_until(lambda: site.held()["run"] != held["run"], second)
    taken = site.held()
    site.release_gate()
    out, _ = first.communicate(timeout=LONG)
    assert first.returncode == 2, out
    assert "another run works on it" in " ".join(out.split())
    assert site.held() == taken
    site.release_gate("other")
    out, _ = second.communicate(timeout=LONG)
    assert second.returncode == 0, out
    assert not site.lease.exists()
    status, out = site.run()
    assert status == 0, out


@pytest.mark.long
def test_the_same_command_follows_a_run_that_was_killed(site: Site) -> None:
    first = site.start()
    wait_until(site.lease.exists, first)
    before = site.held()["run"]
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate(timeout=LONG)
    site.release_gate()
    assert site.held()["run"] == before
    status, out = site.run()
    assert status == 0, out
    assert not site.lease.exists()


def test_the_same_command_waits_for_the_last_step_of_a_run_that_was_killed(site: Site) -> None:
    first = site.start()
    wait_until(site.lease.exists, first)
    before = site.held()["run"]
    os.killpg(first.pid, signal.SIGKILL)
    first.communicate(timeout=LONG)
    site.release_gate()
    assert site.held()["run"] == before
    # As apt, whose module the host's sshd does not end. It ends once the second run has found it.
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as step:
        started = lease.process_start(Host(), step.pid)
        site.lease.write_text(json.dumps(site.held() | {"step": {"pid": step.pid, "started": started}}))
        second = site.start()
        assert second.stdout and step.stdin
        waited = next(
            (line for line in second.stdout if "waiting for the last step of a run that was killed" in line), ""
        )
        step.stdin.close()
    out, _ = second.communicate(timeout=LONG)
    assert second.returncode == 0, out
    assert waited, out
    assert not site.lease.exists()
