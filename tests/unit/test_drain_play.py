"""What a host's drain journal can make the control node do: nothing but to undrain this host as the variables say."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.turn.drain import MOST_ROUNDS
from tests.unit.lying_host import ROOT, calls, make_liar, run_playbook

REASON = "gpu-ready: driver upgrade"
HOOK = """\
- name: Say that the hook ran
  ansible.builtin.copy: {{content: "{{{{ gpu_drain_action }}}}", dest: {mark}, mode: "0600"}}
  delegate_to: localhost
"""


def journal(**entries: Any) -> dict[str, Any]:
    return {"gpu_drain_journal": {"journal": entries, "description": []}}


def make_hook(path: Path) -> Path:
    """A task file that leaves ``path``.ran."""
    path.write_text(HOOK.format(mark=f"{path}.ran"))
    return path


def make_program(path: Path, text: str) -> None:
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


@pytest.mark.host_io
def test_undrain_acts_on_what_the_variables_name(tmp_path: Path) -> None:
    """Task files, kubectl and its options, delegation and reason come from the operator's variables of this host."""
    own, other = make_hook(tmp_path / "own.yml"), make_hook(tmp_path / "other.yml")
    marker = hashlib.sha256(str(own).encode()).hexdigest()
    make_program(tmp_path / "kubectl", f'printf "%s\\n" "$*" >> {tmp_path}/kubectl.log; exit 1\n')
    operator: dict[str, Any] = {
        "gpu_upgrade_drain": [str(own)],
        "gpu_drain_kubernetes_kubectl": str(tmp_path / "kubectl"),
        "gpu_drain_kubernetes_kubeconfig": "/operator/kubeconfig",
    }
    plain = {"host": "localhost", "kubeconfig": "/operator/kubeconfig", "context": "", "reason": REASON}
    peer = {"node": "peer", "controller": "peer", "reason": "RMA: broken"}
    operator["gpu_undrain_unverified"] = True  # no verification: these hosts have no GPU
    answers = {
        "paths": journal(tasks={"files": [str(other)], "hooks": [str(other)]}),
        "marker": journal(tasks={"hooks": [hashlib.sha256(str(other).encode()).hexdigest()]}),
        "honest": journal(tasks={"hooks": [marker]}),
        "server": journal(kubernetes=plain | {"node": "--server=https://evil.example:6443"}),
        "config": journal(kubernetes=plain | {"node": "config", "kubeconfig": "/home/evil/kubeconfig"}),
        "elsewhere": journal(kubernetes=plain | {"node": "elsewhere", "host": "peer"}),
        "slurm": journal(slurm=peer),
        "good": journal(kubernetes=plain | {"node": "good"}),
    }
    hosts = {name: make_liar(tmp_path, name, answer) | operator for name, answer in answers.items()}
    hosts["peer"] = make_liar(tmp_path, "peer", journal()) | operator
    done = run_playbook(tmp_path, "playbooks/undrain.yml", hosts)
    assert not Path(f"{other}.ran").exists() and Path(f"{own}.ran").read_text() == "undrain", done.stdout
    assert (tmp_path / "kubectl.log").read_text().splitlines() == [
        "--kubeconfig=/operator/kubeconfig get node good --output=json --request-timeout=30s"
    ]
    assert calls(tmp_path, "peer") == ["gpu_lease", "gpu_drain_journal", "gpu_lease"], "nothing runs on another host"
    text = " ".join(done.stdout.split())
    for phrase in (
        "was drained with node peer, controller peer, reason RMA: broken",
        "lists 1 task files that gpu_upgrade_drain does not name in this run",
    ):
        assert phrase in text, done.stdout


@pytest.mark.host_io
@pytest.mark.parametrize("entry", ["drain", "undrain"])
def test_a_wait_that_a_host_never_ends_ends(tmp_path: Path, entry: str) -> None:
    """After MOST_ROUNDS: the clock is tested in test_turn_alone.py."""
    waited = {
        "done": False,
        "waiting": "time",
        "deadline": 0,
        "remaining_s": 10**9,
        "changed": False,
        "owned": True,
        "kept": "",
    }
    (tmp_path / "drain.yml").write_text((ROOT / "tests/integration/drain.yml").read_text())
    hosts: dict[str, dict[str, Any]] = {}
    for hook in ("docker", "slurm") if entry == "drain" else ("slurm",):
        name = f"of-{hook}"
        recorded = {hook: {"node": name, "controller": name, "reason": REASON}}
        answers = journal(**(recorded if entry == "undrain" else {})) | {f"gpu_drain_{hook}": waited}
        hosts[name] = make_liar(tmp_path, name, answers) | {"gpu_upgrade_drain": hook, "gpu_undrain_unverified": True}
    done = run_playbook(
        tmp_path, tmp_path / "drain.yml", hosts, "-e", f"entry={entry}", ANSIBLE_STDOUT_CALLBACK="default"
    )
    assert done.returncode == 2, done.stdout
    for name in hosts:
        assert calls(tmp_path, name).count("gpu_drain_" + name.partition("-")[2]) == MOST_ROUNDS, done.stdout
        failures = re.findall(rf"(?m)^(?:fatal: )?\[{name}\]:.*(?:\n .*)*|^.*{name} [|] problem.*$", done.stdout)
        assert "lasts longer than gpu_upgrade_drain_timeout allows" in " ".join(" ".join(failures).split()), done.stdout
