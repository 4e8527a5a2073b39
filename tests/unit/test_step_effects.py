"""What steps declare is held against what they do on lab hosts (tests/integration/step_effects.py)."""

import ast
from pathlib import Path
from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.execute.steps import EFFECTS
from tests.unit import goldens, hosts

INTEGRATION = Path(__file__).resolve().parents[1] / "integration"
NOT_HELD = {
    "gpu_plan.repair_packages": "no step of a role: it is done between two plans (turn/begin.py)",
    "nvidia_container_runtime.crio": "no lab host has CRI-O",
    "nvidia_driver.next_kernel": "only a guest has a second kernel: test_vm_kernel.py, in the campaign",
}
"""Steps that no run on lab hosts holds, and why."""


def held() -> set[str]:
    """Return the steps in the ``holds`` of plays on lab hosts."""
    nodes = [node for file in INTEGRATION.glob("*.py") for node in ast.walk(ast.parse(file.read_text()))]
    given = [one.value for one in nodes if isinstance(one, ast.keyword) and one.arg == "holds"]
    return {step for value in given if isinstance(value, ast.List) for step in ast.literal_eval(value)}


def test_every_step_is_held_against_a_real_run_or_says_why_not() -> None:
    assert {*EFFECTS} - held() == {*NOT_HELD}
    assert held() <= {*EFFECTS}


CRIO = {"engines": {"crio": {"installed": True}}}
K3S = {"kind": "k3s", "engine": "k3s", "unit": "k3s", "active": True}
K3S |= {"files": [{"path": "/var/lib/rancher/k3s/agent/etc/containerd/config.toml", "text": "version = 2\n"}]}
EVERYTHING = {"gpu_monitoring": ["textfile", "dcgm"], "gpu_monitoring_node_exporter": "install"}


@pytest.mark.parametrize(
    ("facts", "requests", "steps"),
    [
        ({}, [EVERYTHING, {}], {"gpu_monitoring.dcgm", "gpu_monitoring.remove_node_exporter"}),
        (
            CRIO,
            [{"nvidia_container_runtime_engines": [one]} for one in ("crio", "docker")],
            {"nvidia_container_runtime.crio"},
        ),
        (
            {"engines": {"kubernetes": K3S}},
            [{"gpu_ready_disrupt": ["kubernetes_restart"]}],
            {"nvidia_container_runtime.kubernetes"},
        ),
        ({"base": {"umad": {}}}, [{}], {"nvidia_driver.umad"}),
        ({"driver": {"imex": {"member": True}}}, [{}], {"nvidia_driver.imex"}),
    ],
)
def test_what_steps_of_rare_plans_declare_leaves_nothing_to_do(
    facts: Any, requests: list[Any], steps: set[str]
) -> None:
    host = hosts.having(hosts.bare(hosts.B200, distro="ubuntu2404"), **facts)
    done: set[str] = set()
    for request in requests:
        decided = goldens.decide(host, nvidia_driver_source="cuda_repo", **request)
        assert decided.refusals == []
        host = hosts.carried_out(host, decided)
        assert goldens.decide(host, nvidia_driver_source="cuda_repo", **request).converged
        done |= {step.id for step in decided.steps}
    assert steps <= done
