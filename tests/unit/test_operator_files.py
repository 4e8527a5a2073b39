"""Which files of the control node reach a host: those that the operator's variables name for it, whatever it answers."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.grid import CAMPAIGN
from tests.unit.lying_host import calls, loot, make_liar, run_playbook

SECRET = "the private key of the operator"
GIVEN = "the installer of the operator"


def plan(**todo: Any) -> dict[str, Any]:
    """The answer of gpu_node_plan with these steps; two underscores in a name are a dot."""
    steps = {name.replace("__", "."): parameters for name, parameters in todo.items()}
    shown = {"refusals": [], "warnings": [], "steps": [], "gpu_host": True, "converged": False, "summary": ""}
    return {
        "plan": shown,
        "todo": steps,
        "lines": [],
        "row": {},
        "refusal": "",
        "upgrade": {},
        "verification": None,
        "lease": "",
    }


def ask_driver(path: str) -> dict[str, Any]:
    step: dict[str, Any] = {"source": path, "version": "580.95.05", "flavour": "open", "kernels": [], "uninstall": None}
    return {"gpu_node_plan": plan(nvidia_driver__runfile=step | {"sha256": "", "sha256_url": ""}),
            "gpu_driver_runfile": {"needs_file": True, "changed": True}}  # fmt: skip


def ask_toolkit(path: str) -> dict[str, Any]:
    installer = {"source": path, "file": "/var/lib/gpu-ready/cuda_12.9.run", "version": "12.9"}
    step = {"installers": [installer], "packages": []}
    return {"gpu_node_plan": plan(cuda_toolkit__runfile=step), "gpu_cuda_runfile": {"needs": ["12.9"], "changed": True}}


def ask_cudnn(path: str) -> dict[str, Any]:
    return {"gpu_node_plan": plan(cudnn__install={"file": path, "installs": []})}


ASKING: dict[str, tuple[str, Callable[[str], dict[str, Any]], Callable[[str], object]]] = {
    "driver": ("nvidia_driver_runfile", ask_driver, str),
    "toolkit": ("cuda_toolkit_runfiles", ask_toolkit, lambda path: {"12.9": path}),
    "sums": ("cuda_toolkit_runfiles", ask_toolkit, lambda path: {"12.9": {"file": path, "sha256": "0" * 64}}),
    "cudnn": ("cudnn_archive", ask_cudnn, str),
}


@pytest.mark.host_io
def test_a_host_gets_the_file_that_the_operator_named_and_no_other(tmp_path: Path) -> None:
    secret, given, typo = tmp_path / "id_ed25519", tmp_path / "given.run", tmp_path / "typo.run"
    secret.write_text(SECRET)
    given.write_text(GIVEN)
    hosts: dict[str, Any] = {}
    for name, (variable, ask, setting) in ASKING.items():
        hosts |= {
            f"{name}-plain": make_liar(tmp_path, f"{name}-plain", ask(str(secret))),
            f"{name}-beside": make_liar(tmp_path, f"{name}-beside", ask(str(secret))) | {variable: setting(str(given))},
            f"{name}-absent": make_liar(tmp_path, f"{name}-absent", ask(str(tmp_path / "absent"))),
        }
    # Without a file of the operator, whether it had a sum to verify makes no difference.
    hosts = {name: host for name, host in hosts.items() if CAMPAIGN or name not in ("sums-plain", "sums-absent")}
    asking = set(hosts)
    named = {
        name: make_liar(tmp_path, name, ask(str(given))) | {variable: setting(str(given))}
        for name, (variable, ask, setting) in ASKING.items()
    }
    wrong = make_liar(tmp_path, "wrong", ask_driver(str(typo))) | {"nvidia_driver_runfile": str(typo)}
    done = run_playbook(tmp_path, "site.yml", hosts | named | {"wrong": wrong}, given_plans=True)
    for host in asking:
        assert SECRET not in loot(tmp_path, host) and GIVEN not in loot(tmp_path, host)
        if host.endswith("-plain"):
            absent = calls(tmp_path, host.replace("-plain", "-absent"))
            assert absent == calls(tmp_path, host), "a host does not learn whether a file exists"
    refused = {
        name
        for host, message in re.findall(r"(?m)^(\S.*): failed\n  (.*)$", done.stdout)
        for name in host.split(", ")
        if "The host requested" in message
    }
    assert refused == asking, done.stdout
    assert done.returncode == 2
    for name in named:
        assert loot(tmp_path, name) == GIVEN, done.stdout
        assert not re.search(rf"(?m)^(.*, )?{name}(, .*)?: failed\n.*no variable", done.stdout), done.stdout
    assert f"{typo}: there is no such file on the control node" in " ".join(done.stdout.split()), done.stdout


ROLLBACK = """\
- hosts: all
  gather_facts: false
  tasks:
    - ansible.builtin.include_role: {name: gpu_ready.nodes.gpu_upgrade, tasks_from: prestage}
    - ansible.builtin.fail: {msg: "{{ gpu_upgrade_prepared.result.reason }}"}
      when: gpu_upgrade_prepared.result | length > 0
"""


@pytest.mark.host_io
def test_the_installer_for_a_rollback_is_beside_the_new_one(tmp_path: Path) -> None:
    """Its version is the host's answer: it selects nothing but a version of the operator's file."""
    for version in ("595.71.05", "580.95.05"):
        (tmp_path / f"NVIDIA-Linux-x86_64-{version}.run").write_text(f"installer {version}\n")
    (tmp_path / "id_ed25519").write_text(SECRET)
    (tmp_path / "stage.yml").write_text(ROLLBACK)
    new, old = (str(tmp_path / f"NVIDIA-Linux-x86_64-{version}.run") for version in ("595.71.05", "580.95.05"))
    beside = "580.95.05/../../id_ed25519"
    todo = {"nvidia_driver.runfile": {"source": new}}
    planned = {"installer": None, "opened": True, "staged": False}
    asked = {
        "honest": ("580.95.05", [new, old]),
        "lying": ("580.95.05", [new, str(tmp_path / "id_ed25519")]),
        "climbing": (beside, [new.replace("595.71.05", beside)]),
    }
    hosts = {
        name: make_liar(tmp_path, name, {"gpu_upgrade_stage": {"files": {file: f"/x/{file[-12:]}" for file in files}}})
        | {"nvidia_driver_runfile": new}
        | {"gpu_upgrade_plan": {"todo": todo, "upgrade": {**planned, "from": version}}}
        for name, (version, files) in asked.items()
    }
    done = run_playbook(tmp_path, tmp_path / "stage.yml", hosts)
    assert "installer 595.71.05" in loot(tmp_path, "honest") and "installer 580.95.05" in loot(tmp_path, "honest"), (
        done.stdout
    )
    for name in ("lying", "climbing"):
        assert loot(tmp_path, name) == "", done.stdout
        assert f"{name} failed" in done.stdout or f"[{name}]: FAILED!" in done.stdout, done.stdout
