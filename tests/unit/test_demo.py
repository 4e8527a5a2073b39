"""tools/demo: what it says where the person who started it interrupts it."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 120
PYTHON = '#!/bin/sh\necho "lab: $*"\n'
PLAYBOOK = """\
#!/bin/sh
# As ansible-playbook: it handles the signal, stops its workers, and ends with a status of its own.
trap 'sleep 1; echo "User interrupted execution"; exit 99' INT
touch "$BEGUN"
while :; do sleep 0.1; done
"""


@pytest.mark.host_io
def test_an_interrupted_demo_claims_nothing_about_the_hosts(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/demo", tmp_path / "tools/demo")
    programs = tmp_path / ".venv/bin"
    programs.mkdir(parents=True)
    for name, text in (("python", PYTHON), ("ansible-playbook", PLAYBOOK)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    begun = tmp_path / "begun"
    with subprocess.Popen(
        [str(tmp_path / "tools/demo")], env=os.environ | {"BEGUN": str(begun)}, start_new_session=True, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as demo:  # fmt: skip
        end = time.monotonic() + LIMIT
        while not begun.exists():
            assert time.monotonic() < end and demo.poll() is None
            time.sleep(0.05)
        os.killpg(demo.pid, signal.SIGINT)  # Ctrl-C reaches every process of the terminal
        try:
            shown, _ = demo.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(demo.pid, signal.SIGKILL)
            raise
    assert demo.returncode == 130, shown
    assert "every host is ready" not in shown and "lab: -m gpu_ready_lab check" not in shown
    last = shown.splitlines()[-1]
    assert "interrupted" in last and "'make demo'" in last and "'make lab-down'" in last, shown
