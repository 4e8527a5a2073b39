"""The plan of a host on the control node (plugins/action/gpu_node_plan.py): which facts it accepts, and what wrong ones do."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.action import gpu_node_plan as plan_action
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.answer_bounds import WrongAnswer
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.process_limits import LimitExceeded, process_limits

from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.plugin_utils.gpu_ready.plan import answer as decide
from plugins.plugin_utils.gpu_ready.settings.variables import parse_settings
from tests.grid import sampled
from tests.hostile.limits import impatient_tree
from tests.unit.hosts import T4, bare
from tests.unit.lying_host import NOTHING_TO_DO, READY, TRUTHFUL, calls, collected, make_liar, run_playbook

HONEST: dict[str, Any] = json.loads(json.dumps(collected(bare(T4))))
PLAY = """\
- hosts: all
  gather_facts: false
  tasks:
    - name: Plan
      gpu_ready.nodes.gpu_node_plan:
        {options}
      register: planned
    - name: Show
      ansible.builtin.debug:
        msg: "planned {{{{ inventory_hostname }}}} {{{{ planned.plan.summary }}}}"
"""


RECORDED = {
    "version": "570.172.08",
    "branch": "570",
    "flavour": "open",
    "source": "cuda_repo",
    "kernel_modules": "dkms",
}
FULL = {
    "engines": {
        "containerd": {
            "installed": True, "active": True, "version": [2, 0], "before": "version = 3\n", "after": "version = 3\n",
            "files": [{"path": "/etc/containerd/config.toml", "text": "version = 3\n"}],
            "record": [[["plugins", "x"], None]],
        },
    },
    "upgrade": {"phase": "staged", "rollout": 1700000000, "from": RECORDED, "to": "580.95.05"},
    "verified": None,
}  # fmt: skip
"""What an honest host may add: containerd's configuration with our keys, an upgrade that is under way."""


DOT = " > "
"""Between the names of a path some of which contain dots."""


def changed(path: str, value: Any, more: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The facts of an honest host, and ``more``, with another value at a path."""
    facts: dict[str, Any] = copy.deepcopy({**HONEST["facts"], **more})
    *parents, last = path.split(DOT if DOT in path else ".")
    inner: Any = facts
    for name in parents:
        inner = inner[int(name)] if isinstance(inner, list) else inner[name]
    inner[int(last) if isinstance(inner, list) else last] = value
    return facts


def test_honest_facts_are_read_as_they_were_collected() -> None:
    read, honest = plan_action.read_facts(HONEST["facts"]), bare(T4)
    assert (read.base.os.family, read.base.distro) == ("debian", "debian12")
    assert read._replace(base=read.base._replace(os=honest.base.os)) == honest


@pytest.mark.parametrize(
    ("path", "value", "what"),
    [
        ("schema", 2, "schema 2 is of another release"),
        ("drained", 1, "Facts.drained must be"),
        ("other", "x", "Facts has unknown field other"),
        ("base", {}, "Facts.base has no field os"),
        ("base.gpus.0.device", 7, "Facts.base.gpus[0].device must be"),
        ("base.gpus.0.more", 7, "Facts.base.gpus[0] has unknown field more"),
        ("packages.installed", {"docker-ce": ["1"]}, "Facts.packages.installed.docker-ce must be"),
        ("work", {"processes": [{"pid": True, "name": "x"}]}, "Facts.work.processes[0].pid must be"),
        ("upgrade", {"phase": "done", "rollout": "x"}, "Facts.upgrade.rollout must be"),
        ("engines", None, "Facts.engines must be"),
        ("base.gpus.0.device", "1eb", "Facts.base.gpus[0].device must be four hexadecimal digits, not '1eb'"),
        ("base.gpus.0.device", "tesla", "Facts.base.gpus[0].device must be four hexadecimal digits"),
        ("base.distro", "debian99", "Facts.base.distro must be a distribution of the catalog, not 'debian99'"),
        ("engines.containerd", {"record": [[["a"], None]]}, "Facts.engines.containerd.files must be the files that"),
        (
            "upgrade",
            {"phase": "done", "from": {**RECORDED, "branch": "x"}},
            "Facts.upgrade.from.branch must be a number",
        ),
    ],
)
def test_facts_of_another_form_are_refused(path: str, value: Any, what: str) -> None:
    with pytest.raises(WrongAnswer, match=re.escape(what)):
        plan_action.read_facts(changed(path, value))


def wrong_values(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each field with values of its type that mean nothing."""
    if isinstance(value, dict):
        for key, inner in list(value.items())[:40]:
            yield from wrong_values(inner, f"{path}{DOT}{key}" if path else key)
    elif isinstance(value, list):
        yield path, []
        for number, inner in enumerate(value[:2]):
            yield from wrong_values(inner, f"{path}{DOT}{number}")
    else:
        texts: list[Any] = ["", "x", "9" * 30, "a:b=c>=d", "../x"] if isinstance(value, str) or value is None else []
        yield from ((path, one) for one in [*texts, *([-1, 2**62] if type(value) is int else [])])


CASES = [
    (name, path, one)
    for name, more in (("bare", {}), ("with more", FULL))
    for path, one in wrong_values({**HONEST["facts"], **more})
]


@pytest.mark.parametrize(("name", "path", "value"), sampled(CASES, 12))
def test_typed_but_wrong_facts_are_planned_or_refused_by_their_field(name: str, path: str, value: Any) -> None:
    facts = changed(path, value, FULL if name == "with more" else {})
    settings, _ = parse_settings({})
    try:
        decide.plan_json(plan_action.read_facts(facts), settings)
    except (WrongAnswer, GpuReadyError) as error:
        assert "\n" not in str(error)


def test_a_message_quotes_little_of_wrong_facts_and_no_control_characters() -> None:
    with pytest.raises(WrongAnswer) as error:
        plan_action.read_facts(changed("drained", "\x1b]0;x\x07" + "x" * 100_000))
    assert len(str(error.value)) <= plan_action.QUOTED and "\x1b" not in str(error.value)


def test_texts_of_facts_have_no_control_characters() -> None:
    process = {"pid": 1, "name": "train\x1b[2J\u202e", "command": "a\tb\nc\x9b"}
    facts = plan_action.read_facts(changed("work", {"processes": [process]}))
    assert (facts.work.processes[0].name, facts.work.processes[0].command) == ("train?[2J?", "a\tb\nc?")


def test_a_file_of_the_host_keeps_the_ends_of_its_lines() -> None:
    text = '{\r\n  "live-restore": true\r\n}\r\n'
    facts = plan_action.read_facts(changed("docker.daemon_json", {"exists": True, "text": text}))
    assert facts.docker.daemon_json.text == text


def test_options_are_given_to_the_planner_as_to_a_module() -> None:
    given = {"cuda_toolkit_runfiles": {12.9: "/x"}, "cuda_toolkit_versions": (12.9, "12.8"), "gpu_ready_vault": True}
    assert plan_action.plain(given) == {
        "cuda_toolkit_runfiles": {"12.9": "/x"},
        "cuda_toolkit_versions": [12.9, "12.8"],
        "gpu_ready_vault": True,
    }


def play(directory: Path, answers: dict[str, Any], *arguments: str, options: str = "part: ''") -> str:
    """Plan hosts with these answers; return what Ansible printed."""
    index = answers.pop("gpu_package_index", {})
    hosts = {
        name: make_liar(directory, name, {"gpu_node_plan": answer, "gpu_package_index": index.get(name, {})})
        for name, answer in answers.items()
    }
    (directory / "play.yml").write_text(PLAY.format(options=options))
    done = run_playbook(
        directory, directory / "play.yml", hosts, *arguments,
        ANSIBLE_STDOUT_CALLBACK="default", ANSIBLE_CALLBACK_RESULT_FORMAT="json",
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.host_io
def test_a_wrong_answer_refuses_one_host_and_the_others_are_planned(tmp_path: Path) -> None:
    wrong = {
        "type": {**HONEST, "facts": 7},
        "field": {**HONEST, "facts": changed("drained", 1)},
        "plan": {**NOTHING_TO_DO["gpu_node_plan"], "changed": False},
        "deep": {**HONEST, "facts": changed("docker", {"info": json.loads("[" * 200 + "]" * 200)})},
        "number": {**HONEST, "time": 10**30},
        "nothing": {},
    }
    beside = {**HONEST, **NOTHING_TO_DO["gpu_node_plan"], "ansible_facts": {"planned": 7}}
    text = play(tmp_path, {**wrong, "honest": HONEST, "beside": beside, "truthful": TRUTHFUL})
    refused = re.findall(r"fatal: \[(\w+)\].*?the answer of this host to gpu_node_plan is not one that", text, re.S)
    assert sorted(refused) == sorted(wrong), text
    assert "Traceback" not in text
    for name in ("honest", "beside"):
        assert f"planned {name} 1x Tesla T4 with driver" in text, text
    assert "planned truthful " in text


@pytest.mark.host_io
def test_a_host_whose_plan_installs_packages_is_asked_for_them_once_and_planned_by_its_answer(tmp_path: Path) -> None:
    empty = {"state": "fresh", "versions": {"docker.io": []}}
    answers = {
        "silent": {"failed": True, "msg": "no space left"},
        "empty": {"offered": empty},
        "wrong": {"offered": {"state": "fresh", "versions": 7}},
    }
    given = dict.fromkeys(answers, HONEST)
    text = play(tmp_path, {**given, "ready": READY, "gpu_package_index": answers})
    for name in answers:
        assert calls(tmp_path, name) == ["gpu_node_plan", "gpu_package_index"]
    assert calls(tmp_path, "ready") == ["gpu_node_plan"]
    assert "planned silent 1x Tesla T4 with driver" in text, text
    assert "planned empty docker.io is in no package source of this host (offered: none)" in text
    assert re.search(r"fatal: \[wrong\].*?not one that the module gives .of gpu_package_index: ", text, re.S)
    (tmp_path / "unasked").mkdir()
    play(tmp_path / "unasked", {"one": HONEST}, options="gpu_ready_index: none")
    assert calls(tmp_path / "unasked", "one") == ["gpu_node_plan"]


@pytest.mark.host_io
def test_an_audit_asks_for_newer_versions_only_on_request(tmp_path: Path) -> None:
    newest = {"offered": {"state": "fresh", "versions": {"docker.io": ["99.0-1"]}}}
    for given, asked in (({}, []), ({"gpu_audit_updates": True}, ["gpu_package_index"])):
        directory = tmp_path / str(len(given))
        directory.mkdir()
        hosts = {"one": make_liar(directory, "one", {"gpu_audit": READY, "gpu_package_index": newest})}
        more = json.dumps({**given, "gpu_audit_format": "csv"})
        done = run_playbook(directory, "playbooks/audit.yml", hosts, "-e", more)
        assert done.returncode == 0, done.stdout + done.stderr
        assert calls(directory, "one") == ["gpu_audit", *asked]
        assert ("newer_docker,99.0," in done.stdout) is bool(asked), done.stdout


@pytest.mark.host_io
def test_facts_are_no_templates_and_no_variable_reaches_a_host(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    bad = "{{ lookup('ansible.builtin.pipe', 'touch FILE') }}".replace("FILE", str(ran))
    gpu = {**HONEST["facts"]["base"]["gpus"][0], "device": "2fff", "name": bad}  # the catalog has no name for it
    facts = changed("base.gpus.0", gpu)
    text = play(tmp_path, {"bad": {**HONEST, "facts": facts}}, options="nvidia_driver_branch: 580")
    assert "planned bad 1x {{ lookup(" in text and not ran.exists(), text
    program = f"open(home + '/asked', 'a').write(open(sys.argv[-1]).read()); print({json.dumps(HONEST)!r})"
    directory = tmp_path / "second"
    directory.mkdir()
    play(directory, {"one": program}, options="{gpu_ready_treat_as: debian12, nvidia_driver_branch: '580'}")
    asked = (directory / "one/asked").read_text()
    assert '"probes": {' in asked and "debian12" not in asked and "nvidia_driver_branch" not in asked


@pytest.mark.host_io
def test_wrong_settings_are_refused_before_a_host_is_asked(tmp_path: Path) -> None:
    text = play(tmp_path, {"one": HONEST}, options="{nvidia_driver_branch: fresh, nvidia_driver_hold: perhaps}")
    assert "planned one nvidia_driver_branch is 'fresh'" in text and "nvidia_driver_hold is 'perhaps'" in text, text
    assert calls(tmp_path, "one") == []


@pytest.mark.host_io
@pytest.mark.parametrize("option", ["part: cluster", "nvidia_driver_colour: red"])
def test_options_that_do_not_exist_fail_before_a_host_is_asked(tmp_path: Path, option: str) -> None:
    text = play(tmp_path, {"one": HONEST}, options=option)
    assert "fatal: [one]: FAILED!" in text and option.split(": ")[0] in text, text
    assert calls(tmp_path, "one") == []


@pytest.mark.host_io
def test_facts_that_the_planner_cannot_process_refuse_the_host_and_name_the_error(tmp_path: Path) -> None:
    digits = "9" * 10_000  # more than int() converts
    facts = changed("driver", {"on_disk": {"version": digits}, "loaded": {"version": digits}, "origin": "cuda_repo"})
    hosts = {"endless": {**HONEST, "facts": facts}, "honest": HONEST}
    text = play(tmp_path, hosts)
    message = "nothing can be computed from what this host answered (ValueError: Exceeds the limit"
    assert message in text and "report it as a defect of gpu-ready with the output of `-vvv`" in text, text
    assert "planned honest " in text and "Traceback" not in text
    (tmp_path / "verbose").mkdir()
    verbose = play(tmp_path / "verbose", {"endless": hosts["endless"]}, "-vvv")
    assert "Traceback" in verbose and "ValueError" in verbose


@pytest.mark.host_io
def test_the_time_limit_of_the_task_holds_for_the_planner_too(tmp_path: Path) -> None:
    """It interrupts the process that plans, wherever it is."""
    tree = impatient_tree(tmp_path / "tree", 20)
    compose = tree / "plugins/plugin_utils/gpu_ready/plan/compose.py"
    text = compose.read_text()
    begin = "    settings = parts.part_settings(settings, facts, part)\n"
    assert begin in text
    endless = '    while facts.base.gpus[0].name == "endless":\n        pass\n'
    compose.write_text(text.replace(begin, endless + begin))
    gpu = {**HONEST["facts"]["base"]["gpus"][0], "device": "2fff", "name": "endless"}
    answers = {"endless": {**HONEST, "facts": changed("base.gpus.0", gpu)}, "sound": READY}
    hosts = {name: make_liar(tmp_path, name, {"gpu_node_plan": answer}) for name, answer in answers.items()}
    done = run_playbook(tmp_path, tree / "site.yml", hosts, limit_s=250, ANSIBLE_CONFIG=str(tree / "ansible.cfg"))
    assert done.returncode == 2 and "1 ready" in done.stdout, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_a_process_that_takes_more_processor_time_than_allowed_is_stopped() -> None:
    exceeded = pytest.raises(LimitExceeded, match="more than 1 seconds of processor time")
    with exceeded, process_limits(seconds=1.0):
        while True:
            pass
    assert plan_action.ActionModule.seconds == plan_action.SECONDS


def test_limits_within_others_end_and_the_others_stay() -> None:
    """A module has no limit of its own, and what explains its answer has one."""
    with process_limits(), pytest.raises(LimitExceeded, match="more than 0 seconds"), process_limits(seconds=0.2):
        while True:
            pass
    with pytest.raises(LimitExceeded, match="more than 1 seconds"), process_limits(seconds=1.0):
        with process_limits(seconds=600):
            sum(range(1000))
        while True:
            pass
