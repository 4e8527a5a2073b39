"""A wait whose end a host decides has a deadline on the clock of the control node: time limits are those of one attempt."""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load
from ansible_collections.gpu_ready.nodes.plugins.action import gpu_execute
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.gpu_ready.execute.model import StepFailed

from tests.hostile.limits import project_tree
from tests.unit.lying_host import ROOT, calls, make_liar, run_playbook
from tests.unit.step_limits import shorten
from tests.unit.test_time_limits import tasks_of

FILES = [
    path
    for pattern in ("roles/*/tasks/*.yml", "roles/*/handlers/*.yml", "playbooks/*.yml")
    for path in sorted(ROOT.glob(pattern))
]
NOW = "now().timestamp() | int"
ENDED = re.compile(r"or now\(\)\.timestamp\(\) \| int > (\w+) \| int$")
LONGEST_S = 900
INCLUDES = ("ansible.builtin.include_tasks", "ansible.builtin.import_tasks")
DEADLINE = "deadline.yml"
OWN_CLOCK = {"roles/gpu_kubernetes/tasks/verify.yml"}
"""Files that continue what a module on the control node awaits: its own clock ends that (drain/hook.py)."""


def tasks_of_file(text: str) -> Iterator[dict[str, Any]]:
    for entry in yaml_load(text) or []:
        parts = [entry.get(key) for key in ("pre_tasks", "tasks", "post_tasks", "handlers") if "hosts" in entry]
        for part in parts or [[entry]]:
            yield from tasks_of(part)


def endless_attempts(text: str) -> list[str]:
    """Return the tasks of a file that are repeated without a deadline that a task before them has set."""
    deadlines: dict[str, str] = {}
    found = []
    for task in tasks_of_file(text):
        deadlines.update(task.get("ansible.builtin.set_fact") or {})
        if "until" in task or "retries" in task:
            ended = ENDED.search(" ".join(str(task.get("until")).split()))
            begun = re.fullmatch(
                re.escape("{{ " + NOW) + r" \+ (\d+) }}", str(deadlines.get(ended.group(1) if ended else "")).strip()
            )
            if not begun or int(begun.group(1)) > LONGEST_S:
                found.append(task["name"])
    return found


def continues_itself(path: Path, text: str) -> bool:
    return any(task.get(key) == path.name for task in tasks_of_file(text) for key in INCLUDES)


LOOP = "- name: a\n  raw: x\n  register: r\n  until: r is succeeded{}\n"
SET = "- name: s\n  ansible.builtin.set_fact: {{d: '{{{{ now().timestamp() | int + {} }}}}'}}\n"
PAST = " or now().timestamp() | int > d | int"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SET.format(300) + LOOP.format(PAST), []),
        (SET.format(300) + LOOP.format(""), ["a"]),
        (LOOP.format(PAST), ["a"]),  # nothing has set it
        (LOOP.format(PAST) + SET.format(300), ["a"]),  # too late
        (SET.format(14400) + LOOP.format(PAST), ["a"]),
        (SET.format(300) + LOOP.format(PAST.replace(" or", " and")), ["a"]),
        ("- name: a\n  raw: x\n  retries: 3\n", ["a"]),
        ("- hosts: all\n  tasks:\n  - block:\n    - name: a\n      raw: x\n      retries: 3\n", ["a"]),
    ],
)
def test_the_search_finds_an_endless_loop(text: str, found: list[str]) -> None:
    assert endless_attempts(text) == found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_repeated_has_a_deadline(path: Path) -> None:
    text = path.read_text()
    assert endless_attempts(text) == []
    if continues_itself(path, text) and str(path.relative_to(ROOT)) not in OWN_CLOCK:
        names = [str(task.get(INCLUDES[0])) for task in tasks_of_file(text)]
        assert DEADLINE in names and names.index(DEADLINE) < names.index(path.name)


def test_files_that_continue_a_wait_are_found() -> None:
    found = {path.stem for path in FILES if continues_itself(path, path.read_text())}
    assert found == {"verify"}


def shortened(tree: Path, seconds: int) -> Path:
    """Make a copy of the project whose waits end after this time."""
    project_tree(tree)
    for path in tree.glob("roles/*/tasks/*.yml"):
        text = re.sub(re.escape(NOW) + r" \+ \d+ }}", f"{NOW} + {seconds} }}}}", path.read_text())
        path.write_text(text.replace("delay: 10", "delay: 1"))
    shorten(tree, seconds)
    return tree


@pytest.mark.host_io
def test_a_host_that_always_asks_to_wait_is_refused_at_the_deadline(tmp_path: Path) -> None:
    tree = shortened(tmp_path / "tree", 8)
    taken = {"gpu_lease": {"changed": True, "held_by": ""}, "gpu_drain_journal": {"journal": {}, "description": []}}
    waiting = {"failed": True, "msg": "this host: another run works on it.", "another_run": True}
    endless = taken | {"gpu_lease": waiting | {"last_step_running": True}}
    hosts = {"liar": make_liar(tmp_path, "liar", endless), "sound": make_liar(tmp_path, "sound", taken)}
    done = run_playbook(tmp_path, tree / "playbooks/undrain.yml", hosts)
    assert done.returncode == 2
    assert 2 <= calls(tmp_path, "liar").count("gpu_lease") < 4, done.stdout
    assert "another run works on it" in done.stdout
    assert calls(tmp_path, "sound") == ["gpu_lease", "gpu_drain_journal", "gpu_lease"]


class Waiting(gpu_execute.HostCaller):  # type: ignore[misc]  # Ansible is untyped
    """Calls a host whose package manager is busy; each call takes 30 seconds."""

    def __init__(self, answers: list[str]) -> None:
        task = types.SimpleNamespace(check_mode=False)
        super().__init__(types.SimpleNamespace(_task=task), {"inventory_hostname": "n1"})
        self.answers, self.given, self.shown = answers, list[Any](), list[tuple[str, str]]()

    def now(self) -> float:
        return 30.5 * len(self.given)

    def show(self, kind: str, phase: str, text: str) -> None:
        self.shown.append((kind, text))

    def ask(self, action: Any, module: str, arguments: Any, variables: Any, check: bool) -> dict[str, Any]:
        """Answer in place of the module."""
        self.given.append(arguments.get("waited"))
        return {"changed": True, "waits_for": self.answers[min(len(self.given), len(self.answers)) - 1]}


@pytest.mark.parametrize(
    ("module", "answers", "given", "shown"),
    [
        ("gpu_packages", [""], [0], []),
        ("gpu_packages", ["process 7", "process 7", ""], [0, 30, 61], ["process 7", ""]),
        ("gpu_repository", ["process 7", "process 8", ""], [0, 30, 61], ["process 7", "process 8", ""]),
        ("gpu_service", ["process 7"], [None], []),
    ],
)
def test_a_module_that_waits_is_called_again_with_the_seconds_so_far(
    monkeypatch: pytest.MonkeyPatch, module: str, answers: list[str], given: list[Any], shown: list[str]
) -> None:
    caller = Waiting(answers)
    monkeypatch.setattr(gpu_execute, "call_module", caller.ask)
    assert caller.run(f"gpu_ready.nodes.{module}", {}, 60, False)["changed"]
    assert (caller.given, [text for _, text in caller.shown]) == (given, shown)
    assert [kind for kind, _ in caller.shown] == ["wait" if text else "step" for text in shown]


def test_a_host_that_waits_for_ever_fails_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    caller = Waiting(["process 7"])
    monkeypatch.setattr(gpu_execute, "call_module", caller.ask)
    with pytest.raises(StepFailed, match="gpu_packages still waits after 900 seconds for process 7. Remedy: "):
        caller.run("gpu_ready.nodes.gpu_packages", {}, 60, False)
    assert len(caller.given) == 30
