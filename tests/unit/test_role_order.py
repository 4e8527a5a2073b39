"""The roles execute the steps in the order of the plan, although their files have an order of their own."""

import re
from pathlib import Path

import pytest
from ansible.module_utils.common.yaml import yaml_load

from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan import compose
from tests.unit import goldens
from tests.unit.hosts import B200, H100, bare, having

ROOT = Path(__file__).resolve().parents[2]
STEP = re.compile(r"'(\w+\.\w+)' in gpu_plan_result\.todo")


def roles() -> list[str]:
    """Return the roles of the playbook in its order."""
    tasks = yaml_load((ROOT / "roles/gpu_ready/tasks/execute_plan.yml").read_text(encoding="utf-8"))
    imported = [task["ansible.builtin.import_role"] for task in tasks if "ansible.builtin.import_role" in task]
    return [role["name"].removeprefix("gpu_ready.nodes.") for role in imported if role["tasks_from"] == "steps"]


def order() -> list[str]:
    """Return the steps in the order in which the playbook does them."""
    found = ["gpu_plan.repair_packages"]
    for role in roles():
        for step in STEP.findall((ROOT / "roles" / role / "tasks/steps.yml").read_text(encoding="utf-8")):
            found += [step] if step not in found else []  # a role may execute the same step twice
    return found


def decided(distro: str) -> list[tuple[str, compose.Plan]]:
    """Return plans of a distribution with their titles: the golden ones, and one that needs every service."""
    found = [(title, one) for title, one, _ in goldens.plans(distro, catalog.distro(distro))]
    host = bare(H100, distro=distro, nvswitches=4)
    host = having(host, driver={"imex": {"member": True}})
    host = having(host, packages={"broken": ["half-done"]})
    found.append(("every service", goldens.decide(host, nvidia_driver_module_parameters={"EnableStreamMemOPs": 1})))
    host = having(bare(B200, distro=distro, nvswitches=1), base={"umad": {"present": True}})
    found.append(("NVLink 5", goldens.decide(host)))
    return found


@pytest.mark.parametrize("distro", catalog.distros())
def test_the_roles_execute_the_steps_in_the_order_of_the_plan(distro: str) -> None:
    known = order()
    for title, one in decided(distro):
        steps = [step.id for step in one.steps]
        assert steps == sorted(steps, key=known.index), title


def test_the_order_is_that_of_steps_that_are_really_planned() -> None:
    """Of the driver's steps every one is in some plan above, so that none has its position by chance."""
    planned = {step.id for distro in catalog.distros() for _, one in decided(distro) for step in one.steps}
    driver_steps = {step for step in order() if step.startswith(("kernel_headers.", "nvidia_driver."))}
    assert driver_steps <= planned, sorted(driver_steps - planned)
