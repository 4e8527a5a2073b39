"""No task lets a host's answer select what runs or is read on the control node, or on another host.

An answer is the result of a task on a host, and every variable that is computed from one, through `set_fact`, `vars` and
loops. The names are compared over all roles and playbooks at once, so a name that is an answer anywhere is one everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from tests.hostile.campaign import cells
from tests.hostile.scenes import scenes
from tests.unit import step_calls

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted([*(ROOT / "roles").glob("*/tasks/*.yml"), *(ROOT / "playbooks").rglob("*.yml"), ROOT / "site.yml"])
BLOCKS = ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks", "handlers")
SELECTING = (
    "include_tasks",
    "import_tasks",
    "include_role",
    "import_role",
    "include_vars",
    "import_playbook",
    "script",
)
COPYING = ("copy", "template", "unarchive", "assemble")
READING = re.compile(r"\b(?:lookup|query|q)\(|\bfileglob\b|\brealpath\b|\bis (?:not )?(?:file|directory|exists|link)\b")
AS_DATA = {
    "gpu_report": "the table and the files of the report: text, with every control character removed and all markup escaped; the paths are the operator's",
    "gpu_upgrade_fleet": "versions and states by host, from which it decides who takes part; the hosts are the inventory's",
    "gpu_python": "what a shell printed; it becomes the path of a Python on that same host",
}
"""Modules on the control node that read answers as data, and why nothing else can come of it."""
USED_OF_ANSIBLE = {
    "gpu_ready_found": "raw: a text for gpu_python, which runs on the control node as a pure function (AS_DATA)",
    "gpu_ready_tried": "raw: the same",
}
"""Answers of Ansible's own modules, which plugins/action/gpu_host_module.py does not check: the module, what is used, why it is harmless.
Each of these modules is attacked in the campaign over hostile hosts."""
USED_BY_STEPS = {
    "uri": "whether it succeeded, and names of runtimes that are compared with the plan's",
    "stat": "whether a file exists on the host that another module copies on that host",
    "command": "whether it succeeded, its status and a text that are compared: the operator's own image is copied or not",
}
"""The same for plugins/plugin_utils/gpu_ready/execute, by module."""
CHECKED = {
    "gpu_drain_turn": "which file and which scheduler come next: from the variables of the run alone (test_turn_answers.py)",
}
"""Variables that are computed from an answer and are none any more, and why."""
KUBECTL_MODULES = ("gpu_drain_kubernetes", "gpu_kubernetes_objects", "gpu_kubernetes_operator", "gpu_kubernetes_verify")
WORDS = re.compile(r"\b[A-Za-z_]\w*")


def tasks_of(value: Any) -> Iterator[dict[str, Any]]:
    """Every task, block and play of a file."""
    for entry in value or []:
        if isinstance(entry, dict):
            yield entry
            for key in BLOCKS:
                yield from tasks_of(entry.get(key))


TASKS = [(path, task) for path in FILES for task in tasks_of(yaml_load(path.read_text()))]
ROLE_VARIABLES = [yaml_load(path.read_text()) or {} for path in sorted((ROOT / "roles").glob("*/vars/*.yml"))]


def short(name: str) -> str:
    return name.rpartition(".")[2]


def action(task: dict[str, Any], names: tuple[str, ...] | dict[str, str]) -> Any:
    """The arguments of the task's module if it is one of these, else None."""
    return next((value for key, value in task.items() if short(key) in names), None)


def delegated(task: dict[str, Any]) -> str:
    return str(task.get("delegate_to", ""))


def names_in(value: Any) -> set[str]:
    """The names in a value without its quoted texts."""
    if isinstance(value, dict):
        return set().union(set(), *(names_in(one) for pair in value.items() for one in pair))
    if isinstance(value, list):
        return set().union(set(), *(names_in(one) for one in value))
    return set(WORDS.findall(re.sub(r"'[^']*'", "", value))) if isinstance(value, str) else set()


def find_answers(tasks: list[tuple[Path, dict[str, Any]]], variables: list[dict[str, Any]]) -> set[str]:
    """Names of variables that hold an answer, or something that is computed from one."""
    found = {"ansible_failed_result", "ansible_facts"}
    found |= {task["register"] for _, task in tasks if "register" in task and delegated(task) != "localhost"}
    while True:
        new = set(found)
        scopes = variables + [task["vars"] for _, task in tasks if isinstance(task.get("vars"), dict)]
        scopes += [task[key] for _, task in tasks for key in task if short(key) == "set_fact"]
        new |= {name for scope in scopes for name, value in scope.items() if names_in(value) & found}
        new |= {
            task.get("loop_control", {}).get("loop_var", "") for _, task in tasks if names_in(task.get("loop")) & found
        } - {""}
        new -= set(CHECKED)
        if new == found:
            return found
        found = new


def violations(task: dict[str, Any], answers: set[str]) -> Iterator[str]:
    """What a task selects by an answer."""
    known = answers | ({"item"} if names_in(task.get("loop")) & answers else set())
    if names_in(task.get("delegate_to")) & known:
        yield "delegate_to"
    selected = action(task, SELECTING)
    if names_in(selected) & known:
        yield "the file or role that is included"
    copied = action(task, COPYING)
    if isinstance(copied, dict) and not copied.get("remote_src") and names_in(copied.get("src")) & known:
        yield "src of the control node"
    fetched = action(task, ("fetch",))
    if isinstance(fetched, dict) and names_in(fetched.get("dest")) & known:
        yield "dest on the control node"
    for text in texts([value for key, value in task.items() if key not in BLOCKS]):
        if READING.search(text) and names_in(text) & known:
            yield f"a path that the control node reads: {text}"
    if "delegate_to" in task and action(task, AS_DATA) is None:
        for key, value in task.items():
            if isinstance(value, dict) and key not in ("vars", "loop_control", "args") and names_in(value) & known:
                yield f"an argument of a module on {delegated(task)}: {sorted(names_in(value) & known)}"


def test_no_host_selects_kubectl_or_its_credentials() -> None:
    """A kubeconfig may start any program (client-go credential plugins): its path is the operator's."""
    options = ("kubectl", "kubeconfig", "context")
    answers = find_answers(TASKS, ROLE_VARIABLES)
    given = [one for one in (action(task, KUBECTL_MODULES) for _, task in TASKS) if one]
    assert len(given) > 4
    for values in given:
        for option in set(options) & set(values):
            names = (f"gpu_kubernetes_{option}", f"gpu_drain_kubernetes_{option}")
            value = values[option]
            if value == f"{{{{ __gpu_kubernetes_{option} }}}}":
                # Of the whole run: the operator's variable, read from a host that has it.
                (value,) = [one[value[3:-3]] for one in ROLE_VARIABLES if value[3:-3] in one]
                assert value == f"{{{{ lookup('gpu_ready.nodes.gpu_ready_setting', 'gpu_kubernetes_{option}') }}}}"
            else:
                assert value in [f"{{{{ {name} }}}}" for name in names], values
    assert not {f"gpu_{role}_{option}" for role in ("kubernetes", "drain_kubernetes") for option in options} & answers


def test_no_kubeconfig_is_fetched_from_a_host() -> None:
    """The kubeconfig of k3s, RKE2 and kubeadm is a file of root on each node of the control plane."""
    fetched = [task[key]["src"] for _, task in TASKS for key in task if short(key) in ("fetch", "slurp")]
    assert fetched == []
    sources = [path for name in ("module_utils", "library", "plugins", "roles") for path in (ROOT / name).rglob("*.*")]
    texts_of = {path: path.read_text(errors="replace") for path in sources if path.suffix in (".py", ".yml", ".j2")}
    named = re.compile(r"k3s\.yaml|rke2\.yaml|admin\.conf|super-admin|\.kube/config")
    assert [path.name for path, text in texts_of.items() if named.search(text)] == []


ON_CONTROL_NODE = (
    "add_host", "debug", "fail", "group_by", "import_playbook", "import_role", "import_tasks", "include_role",
    "include_tasks", "meta", "set_fact",
)  # fmt: skip
"""Actions of Ansible that ask no host."""


def test_the_documentation_lists_ansibles_own_modules_on_hosts() -> None:
    """Their answers have no bound on the control node, so that one more is a decision."""
    used = {
        short(key)
        for _, task in TASKS
        if delegated(task) != "localhost"
        for key in task
        if key.startswith("ansible.builtin.")
    } - set(ON_CONTROL_NODE)
    used |= {short(name) for name, *_ in step_calls.every() if name.startswith("ansible.builtin.")}
    for path in (ROOT / "plugins/plugin_utils/gpu_ready").rglob("*.py"):  # a reboot is no step of a plan
        used |= set(re.findall(r'"ansible\.builtin\.(\w+)"', path.read_text()))
    _, _, section = (ROOT / "docs/security.md").read_text().partition("### Ansible's own modules on hosts")
    listed = re.findall(r"^\| (`.*?`) \|", section.partition("## What runs where")[0], re.M)
    assert used - {"tempfile", "template"} == {name.strip("` ") for row in listed for name in row.split(",")}


def test_the_message_of_a_failed_task_is_bounded_before_it_is_kept() -> None:
    """Answers of Ansible's own modules have no bound; `to_json` of one would be rendered even where `default` needs none."""
    kept = [
        (path.name, text)
        for path, task in TASKS
        for text in texts([value for key, value in task.items() if key not in (*BLOCKS, "when")])
        if "ansible_failed_result" in text
    ]
    assert len(kept) >= 4
    bounded = re.compile(r"ansible_failed_result\.\w+ \|[^{}]*\| string \| truncate\(10000, true\)")
    assert [one for one in kept if not bounded.search(one[1]) or "to_json" in one[1]] == []


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for one in value.values():
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, str):
        yield value


ANSWERS = find_answers(TASKS, ROLE_VARIABLES)


def test_answers_are_found_through_variables() -> None:
    assert {"gpu_plan_result", "gpu_drain_answer", "gpu_upgrade_plan", "gpu_ready_failure"} <= ANSWERS
    assert not {"nvidia_driver_runfile", "gpu_drain_turn", "inventory_hostname"} & ANSWERS


def test_no_task_selects_by_an_answer() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {task.get('name')}: {what}"
        for path, task in TASKS
        for what in violations(task, ANSWERS)
    ]
    assert found == []


def test_every_used_answer_of_ansibles_own_modules_is_described_and_attacked(tmp_path: Path) -> None:
    registered = {
        task["register"]: short(key)
        for _, task in TASKS
        for key in task
        if "register" in task and delegated(task) != "localhost" and key.startswith("ansible.builtin.")
    }
    described = {name: text.partition(":")[0] for name, text in USED_OF_ANSIBLE.items()}
    assert registered == described
    attacked = {cell.module for cell in cells(scenes(tmp_path))}
    assert {*described.values(), *USED_BY_STEPS} <= attacked


@pytest.mark.parametrize(
    "text",
    [
        "- copy: {src: '{{ gpu_plan_result.todo.x | realpath }}', dest: /x}",
        "- copy: {src: '{{ item.source }}', dest: /x}\n  loop: '{{ gpu_plan_result.files }}'",
        "- include_tasks: '{{ name_of_file }}'\n  vars: {name_of_file: '{{ gpu_plan_result.path }}'}",
        "- set_fact: {taken: '{{ gpu_plan_result.host }}'}\n- command: {argv: [id]}\n  delegate_to: '{{ taken }}'",
        "- debug: {msg: \"{{ lookup('file', gpu_plan_result.path) }}\"}",
        "- fail: {msg: x}\n  when: gpu_plan_result.path is not file",
        "- command: {argv: [kubectl, '{{ gpu_plan_result.node }}']}\n  delegate_to: localhost",
        "- fetch: {src: /x, dest: '/tmp/{{ gpu_plan_result.name }}'}",
    ],
)
def test_a_task_that_selects_by_an_answer_is_found(text: str) -> None:
    tasks = [(ROOT, task) for task in tasks_of(yaml_load(text))]
    answers = find_answers([*TASKS, *tasks], ROLE_VARIABLES)
    assert [what for _, task in tasks for what in violations(task, answers)]
