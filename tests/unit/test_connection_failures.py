"""Three hosts that cannot be reached for three reasons get three remedies."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils import connection_failures as failures

ROOT = Path(__file__).resolve().parents[2]
VIA = "Failed to connect to the host via ssh: "
SENT = 'Data could not be sent to remote host "10.9.0.7". Make sure this host can be reached over ssh: '


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (SENT + "ssh: connect to host 10.9.0.7 port 22: No route to host", ["10.9.0.7 does not answer", "is up"]),
        (VIA + "ssh: connect to host gpu1 port 22: Connection timed out", ["does not answer", "firewalls"]),
        (VIA + "Connection timed out during banner exchange", ["does not answer"]),  # third-party text
        (VIA + "ssh: connect to host gpu1 port 22: Connection refused", ["no SSH server listens", "ansible_port"]),
        (
            VIA + "ssh: Could not resolve hostname gpu1: Name or service not known",
            ["cannot resolve its name", "ansible_host"],
        ),
        (VIA + "ops@gpu1: Permission denied (publickey,password).", ["login of ops was refused", "'ssh ops@10.9.0.7 true'"]),
        (VIA + "Received disconnect from 10.9.0.7 port 22:2: Too many authentication failures", ["was refused"]),
        (VIA + "Host key verification failed.", ["host key is not known", "compare the fingerprint"]),
        (
            VIA + "@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@\nHost key verification failed.",
            ["not the known one", "ssh-keygen -R 10.9.0.7"],
        ),
        (VIA + "Connection closed by remote host", ["closed the connection", "MaxStartups"]),
        ("Task failed: " + VIA + "something new", ["reached: something new. Remedy: make 'ssh ops@10.9.0.7 true' work"]),
        ("", ["reached: no answer. Remedy: "]),
    ],
)  # fmt: skip
def test_cause_and_remedy(message: str, words: list[str]) -> None:
    shown = failures.explain_connection(message, "gpu1", "ops", "10.9.0.7")
    assert all(word in shown for word in words), shown
    assert shown.startswith("The host cannot be reached: ") and shown.count(" Remedy: ") == 1
    assert "\n" not in shown and "Make sure this host" not in shown and "via ssh" not in shown and "@@@" not in shown


def test_every_cause_has_a_case() -> None:
    marks = test_cause_and_remedy.pytestmark[0].args[1]  # type: ignore[attr-defined]
    shown = [failures.explain_connection(message, "h", None, None) for message, _ in marks]
    for one in failures.CAUSES:
        cause = one.cause.format(user="the user that ssh chooses", address="h")
        assert [text for text in shown if cause in text], one.cause


@pytest.mark.host_io
@pytest.mark.parametrize("playbook", ["site.yml", "playbooks/audit.yml"])
def test_a_run_shows_them(tmp_path: Path, playbook: str) -> None:
    hosts = {
        "closed": {"ansible_host": "127.0.0.1", "ansible_port": 1},
        "unnamed": {"ansible_host": "gpu1.invalid"},
    }
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    argv = [sys.executable, "-m", "ansible", "playbook", playbook, "-i", str(tmp_path / "hosts.json")]
    argv += ["-e", f"gpu_report_directory={tmp_path}"]
    run = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    shown = " ".join(run.stdout.split())
    assert run.returncode != 0
    assert (
        "no SSH server listens on that port" in shown
        and "the control node cannot resolve its name gpu1.invalid" in shown
    )
    assert "Make sure this host can be reached" not in shown and "check its address, its SSH key" not in shown
