"""Messages of the playbooks for a host whose sudo refuses: run by Ansible with a stub of sudo."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = str(Path(sys.executable).parent / "ansible-playbook")
# sudo's own messages: 1.8 to 1.9 with `Defaults requiretty`; with -n where a password is required; for a user without any rule.
NO_TTY = "sudo: sorry, you must have a tty to run sudo"
NO_PASSWORD = "sudo: a password is required"
NO_RULE = "sudo: gpu is not in the sudoers file"
SSH = '#!/bin/sh\nfor last; do :; done\nexec /bin/sh -c "$last"\n'


def refused(directory: Path, playbook: str, output: str) -> str:
    """The output of a playbook, as one line, for a host behind ssh whose sudo fails with this output."""
    for name, text in (("ssh", SSH), ("sudo", f"#!/bin/sh\necho '{output}' >&2\nexit 1\n")):
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    variables = f"ansible_connection=ssh ansible_ssh_executable={directory}/ssh ansible_become_exe={directory}/sudo"
    (directory / "hosts").write_text(f"gpu1 ansible_user=gpu ansible_python_interpreter={sys.executable} {variables}\n")
    reports = f"gpu_report_directory={directory}/reports"
    done = subprocess.run(
        [PROGRAM, "-i", str(directory / "hosts"), str(ROOT / "playbooks" / playbook), "-e", reports],
        cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("playbook", ["provision.yml", pytest.param("audit.yml", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("output", "words"),
    [
        (NO_TTY, [NO_TTY, "requiretty", "ansible_pipelining: false", "!requiretty"]),
        (NO_PASSWORD, ["Missing sudo password", "--ask-become-pass", "without a password"]),
        (NO_RULE, [NO_RULE]),
    ],
    ids=["tty", "password", "rule"],
)
def test_a_host_whose_sudo_refuses_is_reported_with_a_remedy(
    playbook: str, output: str, words: list[str], tmp_path: Path
) -> None:
    text = refused(tmp_path, playbook, output)
    assert [word for word in words if word not in text] == []
    assert "bootstrap_python" not in text
