"""Options that select a part of the tasks are refused before anything runs, and hosts can be selected by a variable."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible import constants, context
from ansible.errors import AnsibleLookupError
from ansible.module_utils.common.yaml import yaml_load
from ansible.utils.context_objects import GlobalCLIArgs
from ansible_collections.gpu_ready.nodes.plugins.lookup import gpu_ready_hosts

from tests.unit.lying_host import READY, ROOT, calls, make_liar, run_playbook

GROUPS = {"all": ["a1", "a2", "b1"], "ungrouped": [], "a": ["a1", "a2"]}
PLAYS = [
    pytest.param(play, id=f"{path.stem}: {play['name']}")
    for path in sorted((ROOT / "playbooks").glob("*.yml"))
    for play in yaml_load(path.read_text())
    if "hosts" in play
]
PARTS: dict[str, dict[str, object]] = {
    "--tags": {"tags": ["driver"]},
    "--skip-tags": {"skip_tags": ["docker"]},
    "--start-at-task": {"start_at_task": "Driver"},
}
WHOLE: dict[str, object] = {"tags": ["all"], "skip_tags": [], "start_at_task": None}


@pytest.mark.parametrize("play", PLAYS)
def test_the_hosts_of_every_play_come_from_the_lookup_or_from_a_play_before(play: dict[str, Any]) -> None:
    hosts = play["hosts"]
    assert (
        hosts == "{{ lookup('gpu_ready.nodes.gpu_ready_hosts', gpu_ready_hosts | default('all')) }}"
        or "else []" in hosts
    )


@pytest.mark.parametrize("option", PARTS)
@pytest.mark.parametrize(
    "playbook", [str(ROOT / "site.yml"), str(ROOT / "playbooks/audit.yml"), "gpu_ready.nodes.upgrade_drivers"]
)
def test_a_part_of_the_tasks_is_refused_with_what_to_set_instead(playbook: str, option: str) -> None:
    with pytest.raises(AnsibleLookupError, match=f"^{option} .*cuda_toolkit_source=none.*docker_engine_source=none"):
        gpu_ready_hosts.refuse_parts({"args": [playbook], **WHOLE, **PARTS[option]})


@pytest.mark.parametrize("option", PARTS)
def test_a_playbook_of_the_site_may_select_its_own_tasks(option: str, tmp_path: Path) -> None:
    gpu_ready_hosts.refuse_parts({"args": [str(tmp_path / "site.yml")], **WHOLE, **PARTS[option]})


def test_a_whole_run_and_other_programs_are_not_refused() -> None:
    gpu_ready_hosts.refuse_parts({"args": [str(ROOT / "site.yml")], **WHOLE})
    gpu_ready_hosts.refuse_parts({"args": [str(ROOT / "site.yml")], **WHOLE, "tags": ["all", "driver"]})
    gpu_ready_hosts.refuse_parts({"args": "all"})


@pytest.mark.parametrize(
    ("terms", "patterns"),
    [
        (["all"], "all"),
        (["a1,b1"], "a1,b1"),
        (["a:!a2"], "a,!a2"),
        ([["a", "!a2"]], "a,!a2"),
        (["a*"], "a*"),
        (["a[0]"], "a[0]"),
        (["~b[0-9]"], "~b[0-9]"),
        (["localhost"], "localhost"),
    ],
)
def test_patterns_of_ansible_are_passed_on(terms: list[Any], patterns: str) -> None:
    assert ",".join(gpu_ready_hosts.host_patterns(terms, GROUPS)) == patterns


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ([""], "gpu_ready_hosts is empty"),
        ([[]], "gpu_ready_hosts is empty"),
        (["c1"], "no host or group c1[.]"),
        (["a,!c"], "no host or group c[.]"),
        (["c*"], r"no host or group c\*[.]"),
    ],
)
def test_hosts_that_the_inventory_does_not_have_are_refused(terms: list[Any], message: str) -> None:
    with pytest.raises(AnsibleLookupError, match=message):
        gpu_ready_hosts.host_patterns(terms, GROUPS)


def run_site(directory: Path, *arguments: str, playbook: str = "site.yml") -> subprocess.CompletedProcess[str]:
    hosts = {name: make_liar(directory, name, {"gpu_node_plan": READY}) for name in ("one", "two")}
    return run_playbook(directory, playbook, hosts, *arguments, ANSIBLE_STDOUT_CALLBACK="default")


@pytest.mark.host_io
@pytest.mark.parametrize("option", ["--tags=driver", "--skip-tags=docker", "--start-at-task=Driver"])
def test_nothing_runs_and_the_status_is_not_0(tmp_path: Path, option: str) -> None:
    done = run_site(tmp_path, option)
    assert done.returncode not in (0, 2, 3), done.stdout  # 2 and 3 are hosts that failed or were not reached
    assert option.partition("=")[0] in done.stderr and "cuda_toolkit_source=none" in done.stderr
    assert calls(tmp_path, "one") == []


@pytest.mark.host_io
def test_a_limit_that_leaves_no_host_is_refused(tmp_path: Path) -> None:
    done = run_site(tmp_path, "-e", "gpu_ready_hosts=one", "--limit=two")
    assert done.returncode not in (0, 2, 3), done.stdout
    assert "No host is both in gpu_ready_hosts (one) and in --limit two. Correct one." in done.stderr
    assert calls(tmp_path, "one") == calls(tmp_path, "two") == []


@pytest.mark.host_io
def test_a_limit_needs_no_other_inventory(tmp_path: Path) -> None:
    """One without a source would be a warning, or an error where ansible.cfg asks for it."""
    hosts = {name: make_liar(tmp_path, name, {"gpu_node_plan": READY}) for name in ("one", "two")}
    done = run_playbook(tmp_path, "site.yml", hosts, "--limit=one", ANSIBLE_INVENTORY_UNPARSED_FAILED="true")
    assert done.returncode == 0 and "No inventory was parsed" not in done.stdout + done.stderr
    assert calls(tmp_path, "two") == []


@pytest.mark.parametrize(("patterns", "limit"), [("all", "b*"), ("a", "all:!a1"), ("b1", "~b[0-9]"), ("a,b1", "b1,c")])
def test_a_limit_that_leaves_a_host_is_accepted(patterns: str, limit: str) -> None:
    arguments = {"args": [str(ROOT / "site.yml")], "subset": limit}
    gpu_ready_hosts.refuse_no_hosts(arguments, patterns.split(","), GROUPS)


def test_the_playbook_of_a_site_may_have_a_limit_without_gpu_hosts(tmp_path: Path) -> None:
    arguments = {"args": [str(tmp_path / "own.yml")], "subset": "b1"}
    gpu_ready_hosts.refuse_no_hosts(arguments, ["a"], GROUPS)
    with pytest.raises(AnsibleLookupError):
        gpu_ready_hosts.refuse_no_hosts({**arguments, "args": [str(ROOT / "site.yml")]}, ["a"], GROUPS)


EMPTY: dict[str, list[str]] = {"all": [], "ungrouped": [], "a": []}
SITE = {"args": [str(ROOT / "site.yml")], "inventory": ["/srv/hosts"]}


@pytest.mark.parametrize("playbook", sorted((ROOT / "playbooks").glob("*.yml")), ids=lambda path: path.stem)
@pytest.mark.parametrize(("patterns", "limit"), [("all", None), ("all", "x"), ("a", None), ("all:!a", None)])
def test_an_inventory_without_hosts_is_refused(playbook: Path, patterns: str, limit: str | None) -> None:
    arguments = {**SITE, "args": [str(playbook)], "subset": limit}
    with pytest.raises(AnsibleLookupError, match='^No hosts: the inventory "/srv/hosts" does not exist. Check -i.$'):
        gpu_ready_hosts.refuse_no_hosts(arguments, patterns.split(":"), EMPTY)


@pytest.mark.parametrize(
    ("sources", "configured", "message"),
    [
        (["{}/none"], None, '"{}/none" does not exist. Check -i.'),
        (["{}/empty"], None, '"{}/empty" has none. Check -i.'),
        (["{}/empty", "{}/none"], None, '"{}/empty" has none and the inventory "{}/none" does not exist. Check -i.'),
        ([","], None, '"," has none. Check -i.'),
        (["{}/empty"], "env: ANSIBLE_INVENTORY", "has none. Check ANSIBLE_INVENTORY, or give an inventory with -i."),
        (["{}/empty"], "/srv/ansible.cfg", "has none. Check `inventory` in /srv/ansible.cfg, or give one with -i."),
        (["{}/empty"], "default", "has none. Give one with -i."),
    ],
)
def test_a_refusal_says_where_the_inventory_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sources: list[str], configured: str | None, message: str
) -> None:
    (tmp_path / "empty").touch()
    paths = [source.format(tmp_path) for source in sources]
    origin = (paths, configured) if configured else (["/etc/ansible/hosts"], "default")
    monkeypatch.setattr(constants.config, "get_config_value_and_origin", lambda name: origin)
    assert message.replace("{}", str(tmp_path)) in gpu_ready_hosts.inventory_fault(paths)


def test_a_path_is_shown_as_it_was_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert gpu_ready_hosts.shown_source(str(tmp_path / "hosts")) == "hosts"


def test_patterns_that_select_no_host_are_refused() -> None:
    with pytest.raises(AnsibleLookupError, match=r"^No hosts: gpu_ready_hosts \(ungrouped\) selects none"):
        gpu_ready_hosts.refuse_no_hosts(SITE, ["ungrouped"], GROUPS)


@pytest.mark.parametrize("option", ["syntax", "listtasks", "listtags"])
def test_reading_a_playbook_needs_no_hosts(option: str) -> None:
    gpu_ready_hosts.refuse_no_hosts({**SITE, option: True}, ["all"], EMPTY)


def test_the_control_node_itself_needs_no_inventory() -> None:
    gpu_ready_hosts.refuse_no_hosts(SITE, ["localhost"], EMPTY)


@pytest.mark.host_io
@pytest.mark.parametrize("playbook", ["site.yml", "playbooks/audit.yml", "playbooks/rollback_drivers.yml"])
def test_a_run_without_hosts_does_not_end_well(tmp_path: Path, playbook: str) -> None:
    done = run_playbook(tmp_path, playbook, {})
    assert done.returncode in (1, 4), done.stdout  # by the version of ansible-core
    assert done.stderr.count('No hosts: the inventory "hosts.json" has none. Check -i.') == 1, done.stderr
    assert "none failed" not in done.stdout


@pytest.mark.parametrize("name", ["n\u200b1", "n1\n  n2", "n\xad1", "n 1", "n\xa01", "n1\t", "n\u202e1", "\u3164"])
def test_a_name_that_could_be_taken_for_another_one_is_refused(name: str) -> None:
    hosts = [name, "n?1", "n1", "küche-1", "東京"]
    groups = {**GROUPS, "all": [*GROUPS["all"], *hosts], "strange": hosts}
    with pytest.raises(AnsibleLookupError, match=re.escape(f"the name {ascii(name)} has a blank or")) as error:
        gpu_ready_hosts.refuse_hidden({}, ["all"], groups)
    assert str(error.value).isascii() and "\n" not in str(error.value)
    # Not where the run leaves it out.
    gpu_ready_hosts.refuse_hidden({}, ["a"], groups)
    gpu_ready_hosts.refuse_hidden({"subset": "a,n1"}, ["all"], groups)


@pytest.mark.host_io
def test_a_run_with_such_a_name_does_not_start(tmp_path: Path) -> None:
    inventory = tmp_path / "strange.yml"
    inventory.write_text(json.dumps({"all": {"hosts": {"n\u200b1": {}}}}))
    done = run_site(tmp_path, "-i", str(inventory))
    assert done.returncode not in (0, 2, 3), done.stdout
    assert "the name 'n\\u200b1' has a blank or" in done.stderr and calls(tmp_path, "one") == []


@pytest.mark.host_io
@pytest.mark.parametrize("imported", [False, True])
def test_every_play_is_narrowed_by_the_variable(tmp_path: Path, imported: bool) -> None:
    own = tmp_path / "own.yml"
    own.write_text(
        json.dumps([{"import_playbook": str(ROOT / "site.yml"), "tags": ["gpu"], "vars": {"gpu_ready_hosts": "one"}}])
    )
    if imported:
        done = run_site(tmp_path, "--tags", "gpu", playbook=str(own))
    else:
        done = run_site(tmp_path, "-e", "gpu_ready_hosts=one")
    assert done.returncode == 0 and "1 host: 1 ready" in done.stdout, done.stdout + done.stderr
    assert (calls(tmp_path, "one"), calls(tmp_path, "two")) == (["gpu_node_plan"], [])


def test_the_lookup_reads_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "CLIARGS", GlobalCLIArgs({"args": (str(ROOT / "site.yml"),), **WHOLE}))
    assert gpu_ready_hosts.LookupModule().run(["a", "b1"], {"groups": GROUPS}) == ["a,b1"]
