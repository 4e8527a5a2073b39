"""A hostile host behind ssh: its Python runs each module and alters the answer (lab/hostile/interpreter.py)."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile import attacks
from tests.hostile.campaign import INTERPRETER
from tests.integration.fleet import Fleet

pytestmark = pytest.mark.lab
PLACE = "/opt/hostile"
INSTALL = f"""
set -eu
mkdir -p {PLACE}
echo CONTENT | base64 -d > {PLACE}/interpreter.py
echo /usr/bin/python3 > {PLACE}/real
cat > {PLACE}/python <<'END'
#!/bin/sh
exec /usr/bin/python3 {PLACE}/interpreter.py {PLACE} python "$@"
END
chmod 755 {PLACE}/python
"""


def encoded(text: bytes) -> str:
    """Return bytes as a word that any shell passes on."""
    return base64.b64encode(text).decode()


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Iterator[Fleet]:
    fleet = Fleet("hostile")
    fleet.up()
    script = INSTALL.replace("CONTENT", encoded(INTERPRETER.read_bytes()))
    fleet.ssh("evil", f"echo {encoded(script.encode())} | base64 -d | sudo sh")
    yield fleet


def attack(fleet: Fleet, module: str, asked: dict[str, Any]) -> None:
    """Let the hostile host answer a module with an attack."""
    text = encoded(json.dumps([{"module": module, **asked}]).encode())
    fleet.ssh("evil", f"echo {text} | base64 -d | sudo tee {PLACE}/attack.json; sudo rm -f {PLACE}/fired {PLACE}/calls")


def targets(directory: Path) -> attacks.Targets:
    """Return what the attacker aims at on the control node."""
    tasks, ran = directory / "tasks.yml", directory / "ran"
    tasks.write_text(f"- ansible.builtin.command: touch {ran}\n  delegate_to: localhost\n  become: false\n")
    key = directory / "key"
    key.write_text("CANARY-7f3a")
    return attacks.Targets(key, tasks, directory / "kubeconfig", directory / "program", ran, "honest", "MARK")


@pytest.mark.parametrize(
    ("playbook", "module", "kind"),
    [
        ("playbooks/undrain.yml", "gpu_drain_journal", "drained_elsewhere"),
        pytest.param("playbooks/audit.yml", "gpu_audit", "only_templates", marks=pytest.mark.long),
        pytest.param("playbooks/audit.yml", "gpu_audit", "no_text", marks=pytest.mark.long),
    ],
)
def test_a_hostile_host_behind_ssh_gets_nothing_and_stops_nobody(
    fleet: Fleet, tmp_path: Path, playbook: str, module: str, kind: str
) -> None:
    at = targets(tmp_path)
    attack(fleet, module, attacks.ATTACKS[kind]({"changed": False, "audit": {"state": "ok", "why": ["x"]}}, at))
    run = fleet.play(playbook=playbook)
    assert fleet.ssh("evil", f"cat {PLACE}/fired").split()[0] == module
    assert not at.ran.exists()
    assert "CANARY-7f3a" not in fleet.ssh("evil", f"sudo grep -r CANARY {PLACE} || true")
    answered = [event for event in run.events if event["host"] == "honest" and event["status"] == "ok"]
    assert answered and run.rc not in (1, 250)
