"""What the action plugin of the modules accepts of a host's answer (plugins/action/gpu_host_module.py), and what a wrong one does."""

from __future__ import annotations

import importlib
import json
import os
import re
import resource
import socket
import sys
import threading
import time
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load
from ansible_collections.gpu_ready.nodes.plugins.action import gpu_host_module
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils import answer_bounds, answers
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.answer_bounds import WrongAnswer

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.facts.model import ContainerFacts, Facts, GpuProcess, PackageFacts, WorkFacts
from plugins.plugin_utils import registered as registered_parts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan import answer as decide
from plugins.plugin_utils.gpu_ready.plan import audit, compose
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.grid import sampled
from tests.hostile.scenes import plan, scenes
from tests.unit import goldens
from tests.unit.hosts import A100, bare, carried_out, having
from tests.unit.lying_host import READY, TRUTHFUL, calls, make_liar, ready_facts, run_playbook
from tests.unit.test_answers import FILES, TASKS, short
from tests.unit.verify_answers import collected_evidence, collected_verification

ROOT = Path(__file__).resolve().parents[2]
OWN_PLUGINS = {"gpu_audit", "gpu_capture", "gpu_node_facts", "gpu_node_plan", "gpu_verify"}
"""Modules to which an action plugin of their own adds something."""
ON_THE_CONTROL_NODE = {"gpu_python", "gpu_report", "gpu_upgrade_fleet"}
MODULES = sorted({path.stem for path in (ROOT / "library").glob("*.py")} - ON_THE_CONTROL_NODE)
PLAN: dict[str, Any] = next(one.answers["gpu_node_plan"] for one in scenes(Path("/srv")) if one.name == "upgrade")
OF_ANSIBLE = {"changed", "failed", "msg", "warnings", "diff", "unreachable", "skipped", "results", "attempts"}
EXECUTED = {"step", "reboot_required", "leased"}
"""What gpu_execute and gpu_begin add to their results; the rest is the answer of a verification, or a plan."""
METHODS = {"items", "values", "keys", "get"}


def accept(module: str, answer: dict[str, Any]) -> dict[str, Any]:
    """What the plugin keeps of the answer of a module."""
    accepted: dict[str, Any] = answers.accept(answers.record_of(module), answer)
    return accepted


def own_fields(module: str) -> list[str]:
    """The fields of the answer of a module without those that any module may have."""
    return [name for name in answer_bounds.fields_of(answers.record_of(module)) if name not in answers.Shown._fields]


def test_every_module_that_runs_on_hosts_has_the_plugin() -> None:
    routed = yaml_load((ROOT / "meta/runtime.yml").read_text())["plugin_routing"]["modules"]
    assert routed == dict.fromkeys(set(MODULES) - OWN_PLUGINS, {"action_plugin": "gpu_ready.nodes.gpu_host_module"})
    assert {path.stem for path in (ROOT / "plugins/action").glob("*.py")} == OWN_PLUGINS | ON_THE_CONTROL_NODE | {
        "gpu_host_module",
        "gpu_begin",
        "gpu_execute",
        "gpu_scheduler",
        "gpu_turn",
    }


@pytest.mark.parametrize("module", sorted(set(MODULES) - OWN_PLUGINS))
def test_the_plugin_reads_the_record_that_the_module_names(module: str) -> None:
    named = importlib.import_module(f"ansible_collections.gpu_ready.nodes.plugins.modules.{module}").ANSWER
    assert answers.record_of(module) is named


def has_field(hint: Any, fields: tuple[str, ...]) -> bool:
    """Whether values with this annotation may have a field in a field."""
    if not fields:
        return True
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    for one in options:
        if hasattr(one, "_fields"):
            known = answer_bounds.fields_of(one)
            if fields[0] in known:
                return has_field(known[fields[0]].hint, fields[1:])
        elif typing.get_origin(one) is dict:
            return has_field(typing.get_args(one)[1], fields[1:])
        elif one is object:
            return True
    return False


def used_fields() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """File, registered variable and field of an answer, wherever a task uses one."""
    registered = registered_modules()
    names = "|".join(sorted(registered))
    for path in FILES:
        text = path.read_text()
        for name, fields in re.findall(rf"\b({names})((?:\.\w+)+)", text):
            yield path.name, name, tuple(fields[1:].split("."))
        for field in re.findall(r"ansible_failed_result\.(\w+)", text):
            assert field in OF_ANSIBLE | EXECUTED or field in answers.Shown._fields, f"{path.name}: {field}"
        columns = set(re.findall(rf"map\('extract', hostvars, '({names})'\)", text))
        for fields in re.findall(r"map\(attribute='([a-z][\w.]*)'", text) if columns else ():
            yield path.name, "|".join(sorted(columns)), tuple(fields.split("."))
    for place in {place for places in registered_parts.PARTS.values() for place in places.values()}:
        name, *fields = place.split(".")
        if name in registered and fields:
            yield "registered.py", name, tuple(fields)


def registered_modules() -> dict[str, set[str]]:
    """The modules of hosts by the variables that tasks register."""
    found: dict[str, set[str]] = {}
    for _, task in TASKS:
        module = next((name for name in map(short, task) if name in MODULES), None)
        if module and "register" in task:
            found.setdefault(task["register"], set()).add(module)
    return found


def test_every_field_that_a_task_uses_is_in_the_record_of_its_module() -> None:
    registered, used = registered_modules(), set(used_fields())
    assert {("provision.yml", "gpu_plan_result", ("todo",)), ("registered.py", "gpu_plan_result", ("row",))} <= {
        (file, name, fields) for file, names, fields in used for name in names.split("|")
    }
    for file, names, fields in sorted(used):
        parts = tuple(part for part in fields if part not in METHODS)
        if parts[0] not in {*OF_ANSIBLE, *EXECUTED, *answers.Shown._fields}:
            modules = set.union(*(registered[name] for name in names.split("|")))
            modules = {"gpu_verify" if one == "gpu_execute" else one for one in modules}
            assert any(has_field(answers.record_of(module), parts) for module in modules), (file, modules, parts)


def test_honest_answers_lose_nothing() -> None:
    for scene in scenes(Path("/srv")):
        for module in set(scene.answers) & set(MODULES) - (OWN_PLUGINS if scene.facts else {"gpu_verify"}):
            answer = scene.answers[module]
            assert accept(module, answer) == {"failed": False, **answer}, (scene.name, module)


def largest_host() -> Facts:
    """Return a node with more of everything than hosts have."""
    empty = bare(*[A100] * 16, distro="ubuntu2204")
    facts = carried_out(empty, plan(empty, {})[0])
    holders = [GpuProcess(n, f"python3-{n}", f"{n:064x}", "python3 train.py " + "--x " * 250) for n in range(2000)]
    containers = [ContainerFacts("docker", f"{n:064x}", f"container-{n}" * 8, "runtime") for n in range(500)]
    more = {f"package-with-a-long-name-{n}": "1:2.36-9+deb12u13" for n in range(4000)}
    repository = "deb [signed-by=/usr/share/keyrings/x.gpg] https://mirror.example/debian bookworm main contrib\n"
    return having(
        facts,
        packages=PackageFacts({**facts.packages.installed, **more}),
        apt={"sources": {f"/etc/apt/sources.list.d/{n}.list": repository * 20 for n in range(300)}},
        driver={"mig_instances": [f"gpu{gpu}/gi{part}" for gpu in range(16) for part in range(7)]},
        work={"processes": holders, "containers": containers, "jobs": [str(n) for n in range(500)]},
    )


def test_the_largest_hosts_are_far_from_the_bounds() -> None:
    facts = largest_host()
    given = {"nvidia_driver_branch": 595}
    decided, planned = plan(having(facts, work=WorkFacts()), given)
    refused = compose.plan(facts, variables.parse_settings(given).settings)
    audited = audit.answer_json(facts, refused)
    found = {
        "gpu_node_plan": {**planned, **decide.answer_json(facts, refused)},
        "gpu_audit": {"audit": audited},
        "gpu_node_facts": {"ansible_facts": {"gpu_node": records.to_json(facts)}},
        "gpu_packages": {"installed": facts.packages.installed, "versions": facts.packages.installed},
        "gpu_driver_volume": {"files": [f"lib64/libnvidia-{n}.so.580.95.05" for n in range(2000)]},
        "gpu_uninstall": {"actions": [f"delete /etc/a/file/with/a/path/of/ours/{n}" for n in range(10_000)]},
    }
    assert refused.refusals and decided.steps
    for module, answer in found.items():
        assert accept(module, answer) == {"changed": False, "failed": False, **answer}
        assert 4 * len(json.dumps(answer)) < gpu_host_module.OUTPUT, module
        assert 4 * len(json.dumps(answer)) < answer_bounds.TEXT or 4 * longest(answer) < answer_bounds.TEXT, module
        assert 4 * sum(1 for _ in every_value(answer)) < answer_bounds.VALUES, module


def unbounded(hint: Any, where: str, above: tuple[Any, ...] = ()) -> Iterator[str]:
    """The texts of a record that have no limit of their own, and annotations of which nothing is known."""
    if hasattr(hint, "_fields"):
        for name, field in answer_bounds.fields_of(hint).items():
            yield from unbounded(field.hint, f"{where}.{name}")
    elif typing.get_args(hint):
        for one in typing.get_args(hint):
            yield from unbounded(one, where)
    elif hint is records.Content or (
        hint not in answer_bounds.LIMITS and hint not in (bool, int, float, object, type(None))
    ):
        yield where


def test_every_text_and_list_has_a_limit_except_contents_of_files() -> None:
    found = [name for module in MODULES for name in unbounded(answers.record_of(module), module)]
    assert [name for name in found if ".diff" not in name] == []
    assert {name for name in unbounded(answers.Shown, "") if not name.startswith(".diff.")} == set()


@pytest.mark.parametrize("distro", catalog.distros())
def test_plans_of_all_distributions_lose_nothing(distro: str) -> None:
    for names in ("T4", "H100 + 4 NVSwitches", "V100 + H100", "none"):
        facts = goldens.host(names, distro)
        answer = decide.answer_json(facts, compose.plan(facts, variables.parse_settings({}).settings))
        answer |= {"lease": "", "upgrade": PLAN["upgrade"]}
        accepted = accept("gpu_node_plan", answer)
        assert {name: accepted[name] for name in own_fields("gpu_node_plan")} == {
            name: answer[name] for name in own_fields("gpu_node_plan")
        }


FORGED = "drift\n  z-honest: no_gpu\r\nPLAY RECAP ***\u2028x"
ONE_LINE = "drift z-honest: no_gpu PLAY RECAP *** x"


def with_field(answer: dict[str, Any], fields: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The answer with this value in a field; an empty name is the only entry of a list."""
    name, rest = fields[0], fields[1:]
    if rest[:1] == ("",):
        inner: Any = [with_field({}, rest[1:], value)] if rest[1:] else [value]
    else:
        inner = with_field(dict(answer.get(name) or {}), rest, value) if rest else value
    return {**answer, name: inner}


def at(answer: Any, fields: tuple[str, ...]) -> Any:
    for name in fields:
        answer = answer[0] if name == "" else answer[name]
    return answer


AUDITED: dict[str, Any] = {
    "audit": {
        "state": "ok",
        "why": [],
        "checks": [],
        "holders": [],
        "steps": [],
        "warnings": [],
        "summary": "",
        "row": {},
    }
}
LINES: list[tuple[str, dict[str, Any], tuple[str, ...], int]] = [
    ("gpu_audit", AUDITED, ("audit", "state"), 200),
    ("gpu_audit", AUDITED, ("audit", "why", ""), 4096),
    ("gpu_audit", AUDITED, ("audit", "warnings", ""), 4096),
    ("gpu_audit", AUDITED, ("audit", "row", "gpus"), 4096),
    ("gpu_node_plan", PLAN, ("plan", "summary"), 4096),
    ("gpu_node_plan", PLAN, ("upgrade", "why"), 4096),
    ("gpu_node_plan", PLAN, ("row", "gpus"), 4096),
    ("gpu_node_plan", PLAN, ("lines", ""), 4096),
    ("gpu_lease", {}, ("held_by",), 4096),
    ("gpu_drain_slurm", {}, ("kept",), 4096),
    ("gpu_kernel_module", {}, ("held_by",), 4096),
    ("gpu_upgrade_journal", {"journal": {"phase": "done"}}, ("journal", "to"), 4096),
    ("gpu_files", {}, ("warnings", ""), 4096),
    ("gpu_packages", {}, ("removed", ""), 4096),
]


@pytest.mark.parametrize(("module", "answer", "fields", "most"), LINES, ids=lambda value: str(value)[:40])
def test_a_line_is_one_line_of_limited_length(
    module: str, answer: dict[str, Any], fields: tuple[str, ...], most: int
) -> None:
    found = at(accept(module, with_field(answer, fields, FORGED)), fields)
    assert len(found.splitlines()) == 1 and re.sub(r"[? ]+", " ", found) == ONE_LINE
    assert at(accept(module, with_field(answer, fields, "x" * most)), fields) == "x" * most
    cut = at(accept(module, with_field(answer, fields, "x" * 900_000)), fields)
    assert (len(cut), cut[-5:]) == (most, "x ...")


def test_a_message_keeps_its_lines_and_is_cut() -> None:
    shown = {name: "a\nb" + "x" * 900_000 for name in ("msg", "exception", "stdout", "stderr", "module_stdout")}
    accepted = accept("gpu_files", {"failed": True, **shown})
    for name in shown:
        assert accepted[name].startswith("a\nbx") and len(accepted[name]) == 20_000


def test_a_flood_of_warnings_is_cut_and_what_nothing_uses_is_dropped() -> None:
    flood = {
        "warnings": [f"w{n}" for n in range(300_000)],
        "deprecations": [{"msg": f"d{n}"} for n in range(100_000)],
        "invocation": {"x": [[]] * 900_000},
        "stdout_lines": ["x"] * 900_000,
    }
    accepted = accept("gpu_files", flood)
    assert accepted["warnings"] == [*(f"w{n}" for n in range(10)), "299990 more warnings of one host are not shown"]
    assert [one["msg"] for one in accepted["deprecations"]] == [f"d{n}" for n in range(10)]
    assert set(accepted) == {"changed", "failed", "warnings", "deprecations"}


def longest(answer: Any) -> int:
    return max(len(one) for one in every_value(answer) if isinstance(one, str))


def every_value(value: Any) -> Iterator[Any]:
    """Every value and key in a JSON value."""
    yield value
    for one in [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list) else []:
        yield from every_value(one)


OWN_FORM = {"__ansible_type": "_AnsibleTaggedStr", "value": "x", "tags": [{"__ansible_type": "TrustedAsTemplate"}]}
"""A text in the form of Ansible's own serialization (ansible/module_utils/_internal/_json/_profiles, core 2.19)."""


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"upgrade": 7}, "field upgrade: int in place of dict"),
        ({"upgrade": {**PLAN["upgrade"], "to": {}}}, "field upgrade.to: dict in place of str"),
        ({"upgrade": {**PLAN["upgrade"], "journal": {"phase": "done", "rollout": "x"}}}, "upgrade.journal.rollout"),
        ({"upgrade": {**PLAN["upgrade"], "journal": {"phase": "done", "time": True}}}, "upgrade.journal.time: bool"),
        ({"upgrade": {**PLAN["upgrade"], "journal": {"phase": "done", "rollout": 10**30}}}, "a number that is too"),
        ({"plan": {**PLAN["plan"], "steps": [{"id": 1}]}}, "field plan.steps[].id"),
        ({"row": {"gpus": ["x"]}}, "field row.*: list in place of str"),
        ({"lines": "text"}, "field lines: str in place of list"),
        ({"todo": {"x": float("inf")}}, "too large"),
        ({"todo": {"x": {"y": "z" * (2**20 + 1)}}}, "a text of 1048577 characters"),
        ({"todo": {"x": {"y": [0] * 1_000_001}}}, "more than 1000000 values"),
        ({"todo": {"x": {"y": json.loads("[" * 200 + "]" * 200)}}}, "more than 32 lists in each other"),
        ({"changed": "yes"}, "field changed: str in place of bool"),
        ({"failed": 1}, "field failed: int in place of bool"),
        ({"warnings": "x"}, "field warnings: str in place of list"),
        ({"msg": ["x"]}, "field msg: list in place of str"),
        ({"rc": "0"}, "field rc: str in place of int"),
        ({"rc": 10**30}, "a number that is too large"),
        ({"msg": OWN_FORM}, "a value in Ansible's own serialization"),
        ({"todo": {"x": [{"__ansible_vault": "x"}]}}, "a value in Ansible's own serialization"),
        ({"warnings": [{"msg": "x"}]}, "field warnings[]: dict in place of str"),
        ({"warnings": [{"event": {"msg": 1}}]}, "field warnings.event.msg: int in place of str"),
        ({"exception": {"event": 1}}, "field exception.event: int in place of dict"),
        ({"deprecations": ["x"]}, "field deprecations[]: str in place of dict"),
        ({"deprecations": [{"msg": {}}]}, "field deprecations[].msg: dict in place of str"),
        ({"diff": {"before": 7}}, "field diff.before: int in place of str"),
        ({"diff": [{"prepared": []}]}, "field diff[].prepared: list in place of str"),
        ({"failed": True, "lines": 7}, "field lines: int in place of list"),
        ({"lines": ["x"] * 10_001}, "field lines: 10001 entries, at most 10000"),
        ({"row": {str(n): "x" for n in range(10_001)}}, "field row: 10001 entries, at most 10000"),
        ({"plan": {**PLAN["plan"], "warnings": [{}] * 2001}}, "field plan.warnings: 2001 entries, at most 2000"),
        ({"diff": [{}] * 2001}, "field diff: 2001 entries, at most 2000"),
    ],
)
def test_a_wrong_answer_is_refused(change: dict[str, Any], what: str) -> None:
    with pytest.raises(WrongAnswer) as error:
        accept("gpu_node_plan", {**PLAN, **change})
    assert what in str(error.value)


JSON_VALUES: dict[str, Any] = {
    "str": "x", "bool": True, "int": 7, "float": 1.5, "list": [], "dict": {}, "NoneType": None
}  # fmt: skip


def json_types(hint: Any) -> set[str]:
    """The types of JSON that an annotation allows."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return set().union(*(json_types(one) for one in typing.get_args(hint)))
    named: str = answer_bounds.type_of(hint).__name__
    return {named, "int"} if named == "float" else {named}


@pytest.mark.parametrize("module", MODULES)
def test_a_value_of_another_type_is_refused_in_every_field_of_every_module(module: str) -> None:
    fields = answer_bounds.fields_of(answers.record_of(module))
    for name in own_fields(module):
        allowed = json_types(fields[name].hint)
        for wrong in set(JSON_VALUES) - allowed:
            with pytest.raises(WrongAnswer, match=f"field {name}: {wrong} in place of"):
                answers.accept(answers.record_of(module), {"failed": True, name: JSON_VALUES[wrong]})


@pytest.mark.parametrize("name", own_fields("gpu_node_plan"))
def test_an_answer_without_a_field_is_refused_unless_it_failed(name: str) -> None:
    answer = {key: value for key, value in PLAN.items() if key != name}
    with pytest.raises(WrongAnswer, match=f"no field {name}"):
        accept("gpu_node_plan", answer)
    assert accept("gpu_node_plan", {"failed": True, "msg": "no"})["msg"] == "no"


def test_texts_are_taken_of_the_records_of_newer_ansible() -> None:
    event: dict[str, Any] = {
        "__ansible_type": "Event",
        "msg": "old\x1b thing",
        "formatted_traceback": None,
        "chain": {"event": {}},
    }
    plugin = {"__ansible_type": "PluginInfo", "resolved_name": "a.b", "type": None}
    answer = {
        "failed": True,
        "warnings": [{"__ansible_type": "WarningSummary", "event": event}, "careful"],
        "deprecations": [
            {"__ansible_type": "DeprecationSummary", "event": event, "deprecator": plugin, "version": "9.9"},
            {"msg": "older", "date": "x", "collection_name": ["x"], "other": {}},
        ],
        "exception": {
            "__ansible_type": "ErrorSummary",
            "event": {**event, "formatted_traceback": "Traceback:\n  E: boom\n"},
        },
    }
    assert accept("gpu_files", answer) == {
        "changed": False,
        "failed": True,
        "msg": "E: boom",
        "warnings": ["old? thing", "careful"],
        "deprecations": [{"msg": "old? thing", "version": "9.9"}, {"msg": "older", "version": None}],
        "exception": "Traceback:\n  E: boom\n",
    }


def test_orders_for_ansible_and_unknown_values_go_nowhere() -> None:
    orders = {
        "ansible_facts": {"ansible_python_interpreter": "/x"},
        "add_host": {"host_name": "x"},
        "add_group": "x",
        "ansible_stats": {"data": {}},
        "_ansible_delegated_vars": {},
        "unreachable": True,
        "skipped": True,
        "results": [1],
        "other": 1,
    }
    assert accept("gpu_node_plan", {**PLAN, **orders}) == {"failed": False, **PLAN}
    facts = {"ansible_facts": {"gpu_node": {}, "ansible_connection": "local"}, "changed": False}
    assert accept("gpu_node_facts", facts)["ansible_facts"] == {"gpu_node": {}}


def test_what_ansible_prints_has_no_control_characters() -> None:
    bad = "\x1b]0;x\x07\x9b31m\u202e"
    shown = {
        "msg": bad,
        "warnings": [bad],
        "deprecations": [{"msg": bad, bad: 1}],
        "exception": bad,
        "diff": [{"before": bad}],
    }
    accepted = accept("gpu_files", {"failed": True, **shown})
    assert "\x1b" not in str(accepted.values()) and "?]0;x??31m?" in accepted["msg"]
    assert not any(character in json.dumps(accepted, ensure_ascii=False) for character in "\x1b\x07\x9b\u202e")


PLAY = """\
- hosts: all
  gather_facts: false
  tasks:
    - name: Plan
      gpu_ready.nodes.gpu_node_plan:
      register: planned
    - name: Ask Ansible's own module
      ansible.builtin.ping:
    - name: Show
      ansible.builtin.debug:
        msg: "asked {{ inventory_hostname }} {{ planned.plan.gpu_host }} {{ ansible_python_interpreter }}"
"""
WRONG: dict[str, Any] = {
    "types": {**PLAN, "upgrade": "x"},
    "deep": {**PLAN, "todo": {"x": {"y": json.loads("[" * 200 + "]" * 200)}}},
    "deeper": "print('{\"plan\": ' + '[' * 100000 + ']' * 100000 + '}')",
    "long": "print('{\"plan\": \"' + 'x' * 50 * 2**20 + '\"}')",
    "nothing": "print('{}')",
}


NOTES = [{"msg": "x", "version": "9.9", "date": "x", "collection_name": ["x"], "other": 1}]
UNFIT: dict[str, Any] = {
    "form": {**PLAN, "msg": OWN_FORM},
    "seven": {**PLAN, "ansible_facts": 7, "changed": 7},
    "output": {**PLAN, "stdout": 7},
    "text": {**PLAN, "deprecations": ["x"]},
}
"""Answers that Ansible itself cannot process."""


@pytest.mark.host_io
@pytest.mark.parametrize("inject", sampled(["true", "false"], 2))
def test_a_wrong_answer_fails_one_host_and_facts_choose_nothing(tmp_path: Path, inject: str) -> None:
    facts = {"ansible_python_interpreter": "/bin/false", "ansible_connection": "ssh", "planned": {}}
    fit = {
        "facts": {**PLAN, "ansible_facts": facts, "add_group": "other"},
        "record": {**PLAN, "deprecations": [{"__ansible_type": "Event", "msg": "x"}]},
        "notes": {**PLAN, "deprecations": NOTES},
        "honest": PLAN,
    }
    found = {**WRONG, **UNFIT, **fit}
    hosts = {
        name: make_liar(tmp_path, name, {"gpu_node_plan": answer, "ping": TRUTHFUL}) for name, answer in found.items()
    }
    play = tmp_path / "play.yml"
    play.write_text(PLAY)
    done = run_playbook(
        tmp_path,
        play,
        hosts,
        given_plans=True,
        ANSIBLE_INJECT_FACT_VARS=inject,
        ANSIBLE_STDOUT_CALLBACK="default",
        ANSIBLE_CALLBACK_RESULT_FORMAT="json",
    )
    text = done.stdout + done.stderr
    for name in (*WRONG, *UNFIT):
        assert f"asked {name} " not in text, text[-5000:]
        assert f"fatal: [{name}]: FAILED" in text and "ping" not in calls(tmp_path, name), text[-5000:]
    for name in fit:
        assert f"asked {name} True {tmp_path}/{name}/python" in text, text[-5000:]
    refused = re.findall(r"^fatal: \[(\w+)\].*and nothing of it was used. Remedy: find out", done.stdout, re.M)
    assert set(refused) == {*WRONG, *UNFIT}, text[-5000:]
    assert "Traceback" not in text


@pytest.mark.host_io
def test_a_terminal_gets_no_control_characters_of_a_module_from_ansibles_own_callback(tmp_path: Path) -> None:
    bad = "\x1b]0;x\x07\x9b31m"
    shown = {"warnings": [bad], "deprecations": [{"msg": bad, "version": "9.9"}], "diff": {"before": bad, "after": ""}}
    junk = f"import json, sys; sys.stdout.buffer.write(({bad!r} + json.dumps({PLAN!r}) + {bad!r}).encode())"
    found = {
        "warns": {**PLAN, **shown, "changed": True},
        "fails": {"failed": True, "msg": bad, "exception": f"Traceback {bad}", **shown},
        "junk": junk,
    }
    hosts = {name: make_liar(tmp_path, name, {"gpu_node_plan": answer}) for name, answer in found.items()}
    play = tmp_path / "play.yml"
    play.write_text(PLAY.split("    - name: Ask")[0])
    done = run_playbook(
        tmp_path,
        play,
        hosts,
        "--diff",
        "-vvv",
        given_plans=True,
        ANSIBLE_STDOUT_CALLBACK="default",
        ANSIBLE_NOCOLOR="1",
    )
    text = done.stdout + done.stderr
    assert "?]0;x??31m" in text and os.linesep in text
    assert not [line for line in text.splitlines() if "\x1b" in line or "\x07" in line or "\x9b" in line]


@pytest.mark.host_io
def test_a_flood_below_the_limits_leaves_the_screen_readable(tmp_path: Path) -> None:
    """What one host prints: warnings, text after its answer, text in place of it, messages."""
    answer = json.dumps(PLAN)
    found = {
        "warns": {**PLAN, "warnings": [f"warning {n}" for n in range(300_000)], "deprecations": NOTES * 100_000},
        "junk": f"print({answer!r} + chr(10) + 'junk ' * 10**6)",
        "text": "print('text ' * 700_000)",
        "fails": {"failed": True, "msg": "no " * 300_000},
        "large": {**PLAN, "todo": {"x": {"y": ["z" * 1000] * 10_000}}},
        "honest": PLAN,
    }
    answers_of = {name: {"gpu_files" if name == "large" else "gpu_node_plan": one} for name, one in found.items()}
    hosts = {name: make_liar(tmp_path, name, one) for name, one in answers_of.items()}
    play = tmp_path / "play.yml"
    play.write_text(
        "- hosts: 'all:!large'\n  gather_facts: false\n  tasks: [{gpu_ready.nodes.gpu_node_plan: {}}]\n"
        "- hosts: large\n  gather_facts: false\n  tasks: [{gpu_ready.nodes.gpu_files: {files: []}}]\n"
    )
    done = run_playbook(tmp_path, play, hosts, given_plans=True, ANSIBLE_STDOUT_CALLBACK="default")
    text = done.stdout + done.stderr
    assert len(text) < 200_000, len(text)
    assert re.search(r"it has 1\d{7} characters", " ".join(text.split())), text[-3000:]
    for name in ("honest", "warns", "junk"):
        assert re.search(rf"{name} +: ok=1", text), text[-3000:]


@pytest.mark.host_io
def test_a_host_whose_login_shell_prints_is_named_with_the_line(tmp_path: Path) -> None:
    """Ansible's own warning, "sftp transfer mechanism failed on [address]", names neither host nor cause."""
    found = {
        "chatty": f"import json; print('\\n  Welcome to n1 ' + 'x' * 99); print(json.dumps({PLAN!r}))",
        "silent": PLAN,
    }
    hosts = {name: make_liar(tmp_path, name, {"gpu_node_plan": answer}) for name, answer in found.items()}
    play = tmp_path / "play.yml"
    play.write_text(PLAY.split("    - name: Ask")[0] * 2)
    done = run_playbook(tmp_path, play, hosts, given_plans=True)
    text = " ".join((done.stdout + done.stderr).split())
    warning = f"chatty: the login shell prints 'Welcome to n1 {'x' * 46}' for commands too"
    assert text.count(warning) == 1 and "interactive shells only" in text, text[-5000:]
    assert "silent: the login shell" not in text


@pytest.mark.parametrize(("text", "line"), [("", ""), ("\n \n", ""), ("\n a \nb\n", "a"), ("x" * 99, "x" * 60)])
def test_the_first_line_that_a_login_shell_prints(text: str, line: str) -> None:
    assert gpu_host_module.first_line(text) == line


@pytest.mark.host_io
@pytest.mark.parametrize(
    "configuration",
    [
        pytest.param("[defaults]\n", id="none"),
        pytest.param((ROOT / "ansible.cfg").read_text(), id="ours", marks=pytest.mark.long),  # other tests have ours
    ],
)
def test_site_refuses_the_host_with_a_wrong_answer_and_reports_the_other(tmp_path: Path, configuration: str) -> None:
    file = tmp_path / "ansible.cfg"
    file.write_text(configuration.replace("= plugins", f"= {ROOT}/plugins"))
    honest = READY
    wrong = {**honest, "facts": {**honest["facts"], "drained": 7}}
    hosts = {
        name: make_liar(tmp_path, name, {"gpu_node_plan": answer})
        for name, answer in {"good": honest, "wrong": wrong}.items()
    }
    done = run_playbook(tmp_path, "site.yml", hosts, "-e", f"gpu_report_directory={tmp_path}", ANSIBLE_CONFIG=str(file))
    assert done.returncode == 2, done.stdout[-4000:] + done.stderr[-2000:]
    report = json.loads((tmp_path / "latest.json").read_text())
    assert report["counts"] == {"ready": 1, "refused": 1}, done.stdout[-3000:]
    why = report["hosts"]["wrong"]["why"]["message"]
    assert why.startswith(
        "the answer of this host to gpu_node_plan is not one that the module gives (Facts.drained must be"
    )
    assert "Remedy: find out what changes the host's Python" in why


FLOOD = "import sys\nwhile True: sys.stdout.buffer.write(b'x' * 2**20)"
LONG = "import sys; sys.stdout.buffer.write(b'x' * 700 * 2**20)"


@pytest.mark.host_io
def test_an_endless_answer_is_bounded_in_memory_and_the_others_finish(tmp_path: Path) -> None:
    found = {"flood": FLOOD, "long": LONG, "honest": PLAN}
    hosts = {
        name: make_liar(tmp_path, name, {"gpu_node_plan": answer, "ping": TRUTHFUL}) for name, answer in found.items()
    }
    program = tmp_path / "ssh"
    program.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.buffer.read()\n{FLOOD}\n")
    program.chmod(0o755)
    # What Ansible reads from ssh, another program than that of the connection `local`.
    hosts["ssh"] = {"ansible_connection": "ssh", "ansible_ssh_executable": str(program), "ansible_pipelining": True}
    (tmp_path / "play.yml").write_text(PLAY)
    done = run_playbook(
        tmp_path,
        tmp_path / "play.yml",
        hosts,
        given_plans=True,
        ANSIBLE_STDOUT_CALLBACK="default",
        ANSIBLE_CALLBACK_RESULT_FORMAT="json",
    )
    text = done.stdout + done.stderr
    assert "asked honest" in text, text[-3000:]
    for name in ("flood", "long", "ssh"):
        assert f"asked {name} " not in text and f"fatal: [{name}]: FAILED" in text, text[-3000:]
    assert text.count("takes more than 256 MiB of memory") >= 3 and "Traceback" not in text, text[-3000:]
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert most < 900 * 1024, f"a process of the control node had {most} KiB"


@pytest.mark.host_io
def test_the_shells_limit_bounds_an_endless_answer_of_ansibles_own_module(tmp_path: Path) -> None:
    """docs/security.md has the limit."""
    found = {"flood": {"ping": FLOOD}, "long": {"ping": LONG}, "honest": {"ping": TRUTHFUL}}
    answer = {"gpu_node_plan": PLAN}
    hosts = {name: make_liar(tmp_path, name, {**answer, **asked}) for name, asked in found.items()}
    (tmp_path / "play.yml").write_text(PLAY)
    done = run_playbook(
        tmp_path, tmp_path / "play.yml", hosts, limit_kib=614400, given_plans=True, ANSIBLE_STDOUT_CALLBACK="default"
    )
    text = done.stdout + done.stderr
    assert "asked honest" in text and done.returncode == 2, text[-3000:]
    for name in ("flood", "long"):
        assert f"asked {name} " not in text and f"fatal: [{name}]: FAILED" in text, text[-3000:]


@pytest.mark.parametrize(
    "greeting",
    [
        pytest.param(b"", id="silent", marks=pytest.mark.long),
        pytest.param(b"SSH-2.0-OpenSSH_9.2\r\n", id="only a greeting"),
    ],
)
@pytest.mark.host_io
def test_a_server_that_accepts_and_never_answers_is_reported_and_the_others_finish(
    tmp_path: Path, greeting: bytes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        accepted: list[socket.socket] = []
        threading.Thread(target=accept_for_ever, args=(server, greeting, accepted), daemon=True).start()
        honest = READY
        address = {"ansible_host": "127.0.0.1", "ansible_port": server.getsockname()[1]}
        hosts = {"good": make_liar(tmp_path, "good", {"gpu_node_plan": honest}), "silent": address}
        began = time.monotonic()
        done = run_playbook(tmp_path, "site.yml", hosts, "-e", f"gpu_report_directory={tmp_path}")
        seconds = time.monotonic() - began
    report = json.loads((tmp_path / "latest.json").read_text())
    assert accepted and report["hosts"]["good"]["state"] == "ready" and done.returncode == 2, done.stdout[-3000:]
    # The limit of ansible.cfg is 20 seconds. core 2.16 calls it a failure of sudo if the server greets.
    why = " ".join(report["hosts"]["silent"]["why"].values())
    assert seconds < 350 and ("cannot be reached" in why or "log in and run `sudo true`" in why), why


def accept_for_ever(server: socket.socket, greeting: bytes, accepted: list[socket.socket]) -> None:
    """Accept connections, greet, and keep them open."""
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        connection.sendall(greeting)
        accepted.append(connection)


def with_evidence(**changes: Any) -> dict[str, Any]:
    """What gpu_verify answers on a host that is ready but for these changes of its evidence."""
    facts = ready_facts()
    return collected_verification(facts, collected_evidence(facts)._replace(**changes))


@pytest.mark.host_io
def test_a_host_is_verified_by_its_evidence_and_not_by_its_word(tmp_path: Path) -> None:
    word = {"verify": {"ok": True, "checks": [], "not_run": []}, "row": {"driver_loaded": "580"}, "msg": "verified"}
    found = {
        "honest": with_evidence(),
        "failed": word | with_evidence(smi=None),
        "word": word,
        "form": with_evidence() | {"evidence": {"nvml": 1}},
        "refuses": with_evidence(),
    }
    hosts = {
        name: make_liar(tmp_path, name, {"gpu_verify": answer, "gpu_verified": KEPT}) for name, answer in found.items()
    }
    found["both"] = with_evidence(smi=None)
    hosts["both"] = make_liar(tmp_path, "both", {"gpu_verify": found["both"], "gpu_verified": FULL})
    hosts["refuses"] = make_liar(tmp_path / "more", "refuses", {"gpu_verify": with_evidence(), "gpu_verified": FULL})
    play = tmp_path / "play.yml"
    play.write_text("- hosts: all\n  gather_facts: false\n  tasks: [{gpu_ready.nodes.gpu_verify: {}}]\n")
    done = run_playbook(tmp_path, play, hosts, ANSIBLE_STDOUT_CALLBACK="default")
    shown = " ".join(done.stdout.split())
    failures = {name: shown.partition(f"fatal: [{name}]: FAILED!")[2].partition("fatal: ")[0] for name in hosts}
    assert not failures.pop("honest") and all(failures.values()), shown
    assert "Not verified. nvidia smi: " in failures["failed"]
    assert "facts" in failures["word"] and "nothing of it was used" in failures["word"]
    assert "nvml must be a mapping" in failures["form"] and "nothing of it was used" in failures["form"]
    assert "Verified, but not recorded: " in failures["refuses"] and "no space left" in failures["refuses"]
    assert "row" not in failures["refuses"] and "no space left" in failures["both"]
    assert "Not verified. nvidia smi: " in failures["both"]
    asked = {name: calls(tmp_path, name) for name in ("honest", "failed", "word", "form")}
    assert asked["honest"] == asked["failed"] == ["gpu_verify", "gpu_verified"]
    assert asked["word"] == asked["form"] == ["gpu_verify"]


KEPT = {"changed": True}
FULL = {"failed": True, "msg": "/var/lib/gpu-ready: no space left"}
