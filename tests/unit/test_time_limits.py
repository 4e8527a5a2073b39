"""A host that never answers fails by itself, in every play, and the others finish."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from plugins.module_utils.gpu_ready.base import managed_files
from plugins.module_utils.gpu_ready.driver import dkms, live_reload, service
from plugins.module_utils.gpu_ready.packaging import manager
from tests.grid import sampled
from tests.hostile.limits import impatient_tree
from tests.unit import step_calls
from tests.unit.lying_host import READY, ROOT, make_liar, run_playbook

LONGEST_S = 4 * 3600
SHORT_S, INSTALL_S, COPY_S = 1800, 7200, LONGEST_S
"""Seconds: what neither installs nor copies much, package managers and builds, gigabytes over a slow line."""
LINEAR = ("provision.yml", "audit.yml", "undrain.yml")
"""Playbooks in which all hosts wait for the slowest one in each task."""
LONG = {
    **dict.fromkeys(("gpu_packages", "gpu_repository", "gpu_dkms", "gpu_revert", "gpu_monitoring"), INSTALL_S),
    "gpu_cuda_toolkit_absent": INSTALL_S,
    "copy": COPY_S,
    **dict.fromkeys(("gpu_driver_runfile", "gpu_cuda_runfile", "gpu_cudnn_archive", "gpu_verify", "reboot"), COPY_S),
}
"""Modules that take long by design; the limit of a verification and of a reboot is the operator's variable."""
IMPORTING = ("rollback_drivers.yml", "site.yml")
PLAYBOOKS = [path for path in sorted((ROOT / "playbooks").glob("*.yml")) if path.name not in IMPORTING]
READING = {"gpu_node_plan": "gpu_plan", "gpu_audit": "gpu_audit"}


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_every_play_that_changes_hosts_has_a_time_limit(path: Path) -> None:
    plays = [play for play in yaml_load(path.read_text()) if play.get("become")]
    assert plays
    for play in plays:
        assert 0 < play["timeout"] <= LONGEST_S, play["name"]


def tasks_of(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the tasks of a file, also those in blocks."""
    for entry in value or []:
        yield entry
        for key in ("block", "rescue", "always"):
            yield from tasks_of(entry.get(key))


def test_a_silent_host_holds_the_others_only_as_long_as_its_step_may_take() -> None:
    for name in LINEAR:
        plays = [play for play in yaml_load((ROOT / "playbooks" / name).read_text()) if play.get("become")]
        assert {play["timeout"] for play in plays} == {SHORT_S}, name
    found: dict[str, tuple[str, Any]] = {}
    for path in (ROOT / "roles").glob("*/tasks/*.yml"):
        for task in tasks_of(yaml_load(path.read_text())):
            module = next((key.rpartition(".")[2] for key in task if key.rpartition(".")[2] in LONG), None)
            if module and path.parents[1].name != "gpu_upgrade":
                found[f"{path.parents[1].name}: {task['name']}"] = (module, task.get("timeout"))
    found |= {
        f"{name} {seconds}": (name.rpartition(".")[2], seconds)
        for name, given, seconds, _ in step_calls.every()
        if not given.get("remote_src")
    }
    assert {name: pair for name, pair in found.items() if pair[1] != LONG.get(pair[0], SHORT_S)} == {}


def test_the_limits_of_tasks_are_longer_than_those_of_the_programs_that_they_wait_for() -> None:
    assert max(service.START_LIMIT, live_reload.LIMIT, managed_files.REBUILD_LIMIT) < SHORT_S
    assert max(manager.RUN_LIMIT, dkms.LIMIT) < INSTALL_S


@pytest.mark.parametrize(("module", "role"), READING.items())
def test_collecting_facts_has_a_shorter_one(module: str, role: str) -> None:
    [task] = yaml_load((ROOT / "roles" / role / "tasks/collect_facts.yml").read_text())
    assert f"gpu_ready.nodes.{module}" in task and task["timeout"] == 900


@pytest.fixture
def impatient(tmp_path: Path) -> Path:
    """The playbooks with a limit of seconds."""
    return impatient_tree(tmp_path / "tree", 30)


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("playbook", "module"), sampled([("site.yml", "gpu_node_plan"), ("playbooks/audit.yml", "gpu_audit")], 2)
)
def test_the_others_finish_when_a_host_never_answers(
    tmp_path: Path, impatient: Path, playbook: str, module: str
) -> None:
    answers = {"gpu_node_plan": READY, "gpu_audit": READY}
    hosts = {
        "hung": make_liar(tmp_path, "hung", {module: "import time; time.sleep(900)"}),
        "sound": make_liar(tmp_path, "sound", {module: answers[module]}),
    }
    began = time.monotonic()
    done = run_playbook(tmp_path, impatient / playbook, hosts, limit_s=850)
    text = " ".join(done.stdout.split())
    assert done.returncode == 2 and time.monotonic() - began < 840
    assert "log in and look for processes in state D" in text, done.stdout + done.stderr
    assert "sound" not in [word for line in done.stdout.splitlines() if "failed" in line for word in line.split()], text
