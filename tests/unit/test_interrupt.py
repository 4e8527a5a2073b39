"""Ctrl-C ends a run: at once, or with a second Ctrl-C where ansible-core waits for ever.

ansible-core stops its workers with the signal and then puts a last entry into the queue of their results
(StrategyBase.cleanup). A worker that is stopped while it writes a result of more than the 64 KiB of a pipe keeps the
lock of that queue (multiprocessing.SimpleQueue), and the run waits for it. Nothing of gpu-ready takes part: the second
test has no plugin of it. The handler of the first signal has restored the default action, so a second one ends the run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.grid import sampled
from tests.unit.lying_host import PROGRAMS, ROOT, calls, make_liar

pytestmark = pytest.mark.host_io
ENDS_S = 60
HELD = """- hosts: all
  gather_facts: false
  tasks:
    - debug: {msg: "{{ 'x' * 3000000 }}"}
      loop: [1, 2, 3, 4]
"""


def start(directory: Path, playbook: Path, hosts: dict[str, dict[str, Any]], **more: str) -> subprocess.Popen[bytes]:
    """Start a run with a process group of its own; its output is written to a file."""
    inventory = directory / "hosts.json"
    variables = {"gpu_report_directory": str(directory / "reports")}
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": variables}}))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_HOME": str(directory / "ansible")}
    with (directory / "output").open("wb") as output:
        return subprocess.Popen(
            [str(PROGRAMS / "ansible-playbook"), "-i", str(inventory), str(playbook)],
            cwd=ROOT,
            env=environment | more,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def interrupt(run: subprocess.Popen[bytes]) -> int:
    """Send SIGINT, a second one where that does not end the run, and return how many it took."""
    try:
        for number in (1, 2):
            run.send_signal(signal.SIGINT)
            try:
                run.wait(ENDS_S)
            except subprocess.TimeoutExpired:
                continue
            return number
        pytest.fail("two signals did not end the run")
    finally:
        run.kill()
        run.wait()


@pytest.mark.parametrize("seconds", sampled([1, 0, 3], 3))
def test_an_interrupted_run_ends(tmp_path: Path, seconds: int) -> None:
    silent = {"gpu_node_plan": "import time; time.sleep(300)"}
    hosts = {name: make_liar(tmp_path, name, silent) for name in ("n1", "n2", "n3")}
    run = start(tmp_path, ROOT / "site.yml", hosts)
    end = time.monotonic() + 280
    while not any(calls(tmp_path, name) for name in hosts) and run.poll() is None and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(seconds)
    assert run.poll() is None, (tmp_path / "output").read_text()
    interrupt(run)
    output = (tmp_path / "output").read_text()
    assert "Traceback" not in output
    states = output[output.index("Interrupted after ") :]
    assert "\n  not begun, unchanged: n1, n2, n3\nResume: the same command.\nUndo: not needed" in states, output
    assert (tmp_path / "reports/latest.html").exists() and f"\nReport: {tmp_path}/reports/" in states, output


def test_a_second_signal_ends_a_run_whose_worker_held_the_lock_of_the_results(tmp_path: Path) -> None:
    (tmp_path / "play.yml").write_text(HELD)
    hosts = {f"n{number}": {"ansible_connection": "local"} for number in range(8)}
    run = start(tmp_path, tmp_path / "play.yml", hosts, ANSIBLE_STDOUT_CALLBACK="default", ANSIBLE_FORKS="8")
    end = time.monotonic() + 280
    while b"TASK" not in (tmp_path / "output").read_bytes() and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(1)
    assert run.poll() is None, (tmp_path / "output").read_bytes()[-300:]
    assert interrupt(run) <= 2
