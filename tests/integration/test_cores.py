"""The playbooks and roles with the oldest and the newest ansible-core, in each way in which Ansible may find them.

Without lab hosts: one host answers with the facts of a bare host, of which the planner makes a plan on the control node,
and another one really runs a module. Others carry out a different plan each.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.hostile.limits import impatient_tree
from tests.integration import cores
from tests.unit.hosts import T4, bare
from tests.unit.lying_host import READY, ROOT, TRUTHFUL, calls, collected, make_liar, run_playbook
from tools import build_collection

PLAYBOOKS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml"))
OWN = """\
- hosts: all
  gather_facts: false
  roles: [gpu_ready.nodes.docker_engine]
- hosts: truthful
  gather_facts: false
  tasks:
    - name: Collect facts
      gpu_ready.nodes.gpu_node_facts:
      register: found
    - name: Show
      ansible.builtin.debug:
        msg: "distribution {{ found.ansible_facts.gpu_node.base.os.id }}"
"""
IMPORTING = "- import_playbook: gpu_ready.nodes.audit\n"
CONFIGS = {
    "checkout": (ROOT / "ansible.cfg").read_text(),
    "without_ansible_cfg": "",
    "another_directory": "",
    "installed": "[defaults]\ncollections_path = collections\n",
}
"""Places from which gpu-ready is run, and the ansible.cfg there."""

SECONDS = 25
"""Until the control node gives a module up, here."""
STEPS: dict[str, tuple[str, dict[str, Any]]] = {
    "repository": ("gpu_repository", {"components": None, "repositories": []}),
    "parameters": ("gpu_files", {"path": "/x", "content": "x", "rebuild": None}),
    "hold": ("gpu_packages", {"tools": [], "packages": ["p"]}),
    "next_kernel": ("gpu_dkms", {"kernel": "6.1"}),
}
"""Steps of the driver with the module that each calls."""
PLANS = [
    ["repository", "parameters", "hold"],
    ["next_kernel", "hold"],
    ["hold", "repository"],
    ["parameters", "next_kernel", "hold", "repository"],
]
"""Orders that no role has: nothing but the plan can give them."""
MEETING = """
import time
here = os.path.dirname(home) + "/meeting"
open(here + "/" + os.path.basename(home), "w").close()
end = time.time() + 20
while len(os.listdir(here)) < {count} and time.time() < end:
    time.sleep(0.1)
met = len(os.listdir(here)) >= {count}
print(json.dumps({{"changed": True}} if met else {{"failed": True, "msg": "the others did not come"}}))
"""
"""A module that returns when all hosts are in it: it fails where Ansible runs one host after the other."""
HANGS = "import time; time.sleep(300)"
LEAVES = "open(home + '/left', 'w').close(); print(json.dumps({'changed': True}))"
CONNECTION = '''
"""A host of this machine that is unreachable after one of its modules ended with that."""

import os

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection.local import Connection as Local

DOCUMENTATION = """
name: leaving
short_description: a host that leaves
description: As local, until a file exists.
extends_documentation_fragment: [connection_pipelining]
options:
  home: {description: the directory of the host, vars: [{name: leaving_home}]}
"""


class Connection(Local):
    transport = "leaving"

    def exec_command(self, *arguments, **more):
        if os.path.exists(self.get_option("home") + "/left"):
            raise AnsibleConnectionFailure("no route to it")
        return super().exec_command(*arguments, **more)
'''


class Place(NamedTuple):
    """A directory in which commands are typed, and how they name a playbook."""

    programs: Path
    directory: Path
    config: Path
    hosts: Path
    name: Callable[[str], str]

    def run(self, program: str, *arguments: str, **more: str) -> str:
        """Run a program of Ansible with no setting but those of the place; return what it printed."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHON"))}
        kept |= {"ANSIBLE_CONFIG": str(self.config), "HOME": str(self.hosts.parent), "COLUMNS": "200"}
        done = subprocess.run(
            [str(self.programs / program), *arguments],
            cwd=self.directory, env=kept | more, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def play(self, playbook: str, *arguments: str) -> str:
        """Run a playbook on the hosts."""
        return self.run("ansible-playbook", playbook, "-i", str(self.hosts), *arguments)


def path_of(playbook: str) -> str:
    return "site.yml" if playbook == "site" else str(Path("playbooks", f"{playbook}.yml"))


def make_hosts(directory: Path) -> Path:
    """Write an inventory of the two hosts; return it."""
    bare_host = {
        "gpu_node_plan": collected(bare(T4)),
        "gpu_audit": READY,
        "gpu_lease": {"changed": False, "held_by": "", "before": ""},
    }
    truthful = {"gpu_node_plan": collected(bare()), "gpu_audit": READY, "gpu_node_facts": TRUTHFUL}
    hosts: dict[str, Any] = {
        "bare": make_liar(directory, "bare", bare_host),
        "truthful": make_liar(directory, "truthful", truthful),
    }
    variables = {"gpu_report_directory": str(directory / "reports")}
    (directory / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": variables}}))
    return directory / "hosts.json"


@pytest.fixture(scope="module", params=[cores.OLD, cores.NEW], ids=lambda version: version.core)
def programs(request: pytest.FixtureRequest) -> Path:
    """The programs of an ansible-core."""
    return cores.programs(request.param)


@pytest.fixture(scope="module", params=CONFIGS)
def place(request: pytest.FixtureRequest, programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place for one core: the tests of it use the same hosts."""
    directory = tmp_path_factory.mktemp(request.param)
    config = directory / "ansible.cfg"
    config.write_text(CONFIGS[request.param])
    hosts = make_hosts(directory)
    (directory / "own.yml").write_text(OWN)
    (directory / "importing.yml").write_text(IMPORTING)
    if request.param in ("checkout", "without_ansible_cfg"):
        config = ROOT / "ansible.cfg" if request.param == "checkout" else config
        return Place(programs, ROOT, config, hosts, path_of)
    if request.param == "another_directory":
        return Place(programs, directory, config, hosts, lambda name: str(ROOT / path_of(name)))
    found = Place(programs, directory, config, hosts, lambda name: f"gpu_ready.nodes.{name}")
    archive = build_collection.build(directory)
    found.run("ansible-galaxy", "collection", "install", str(archive), "-p", "collections")
    return found


def test_every_playbook_is_read(place: Place) -> None:
    text = place.run("ansible-playbook", "--syntax-check", "-i", str(place.hosts), *map(place.name, PLAYBOOKS))
    assert len(re.findall(r"(?m)^playbook: ", text)) == len(PLAYBOOKS), text


def test_a_check_of_site_shows_the_plan_of_a_bare_host(place: Place) -> None:
    text = place.play(place.name("site"), "--check", "--diff")
    assert "nvidia_driver.install: there is no NVIDIA driver" in text, text
    assert set(calls(place.hosts.parent, "bare")) >= {"gpu_node_plan", "gpu_lease"}


def test_the_audit_shows_every_host(place: Place) -> None:
    text = place.play(place.name("audit"))
    assert "2 hosts: 2 ok" in text, text
    assert list((place.hosts.parent / "reports").glob("audit-*.json")), text


def test_playbooks_of_a_site_find_roles_modules_and_playbooks(place: Place) -> None:
    directory = place.hosts.parent
    known = "collections_path" in place.config.read_text()
    more = {} if known else {"ANSIBLE_COLLECTIONS_PATH": f"{ROOT}/collections"}
    inventory = ("-i", str(place.hosts))
    text = place.run("ansible-playbook", str(directory / "own.yml"), *inventory, "--check", **more)
    assert "docker_engine.install" in text and "distribution " in text, text
    text = place.run("ansible-playbook", str(directory / "importing.yml"), *inventory, **more)
    assert "2 hosts: 2 ok" in text, text


def todo(plan: list[str]) -> dict[str, Any]:
    """Return the steps of a plan with their parameters."""
    return {f"nvidia_driver.{name}": STEPS[name][1] for name in plan}


def modules(plan: list[str]) -> list[str]:
    """Return the modules of a plan."""
    return [STEPS[name][0] for name in plan]


@pytest.fixture(params=["linear", "host_pinned"])
def strategy(request: pytest.FixtureRequest) -> str:
    """Return how Ansible runs tasks and hosts."""
    return str(request.param)


def test_each_host_has_its_own_order_time_and_failure(tmp_path: Path, programs: Path, strategy: str) -> None:
    plans = {f"h{number}": PLANS[number % len(PLANS)] for number in range(12)}
    bad = {"fails": PLANS[1], "hangs": PLANS[3], "leaves": PLANS[0]}
    answers: dict[str, dict[str, Any]] = {
        "fails": {"gpu_dkms": {"failed": True, "msg": "it does not compile"}},
        "hangs": {"gpu_files": HANGS},
        "leaves": {"gpu_repository": LEAVES},
    }
    (tmp_path / "meeting").mkdir()
    hosts = {}
    for name, plan in (plans | bad).items():
        meets = {"gpu_packages": MEETING.format(count=len(plans))}
        hosts[name] = make_liar(tmp_path, name, answers.get(name, meets)) | {"gpu_plan_result": {"todo": todo(plan)}}
    hosts["leaves"] |= {"ansible_connection": "leaving", "leaving_home": str(tmp_path / "leaves")}
    (tmp_path / "connection_plugins").mkdir()
    (tmp_path / "connection_plugins/leaving.py").write_text(CONNECTION)
    tree = impatient_tree(tmp_path / "tree", SECONDS)
    task = {"name": "Carry out", "gpu_ready.nodes.gpu_execute": {"part": "nvidia_driver"}, "timeout": 0}
    rescue = {"name": "Say", "debug": {"msg": "{{ ansible_failed_result.step }}: {{ ansible_failed_result.msg }}"}}
    play = {"hosts": "all", "gather_facts": False, "strategy": strategy}
    play |= {"tasks": [{"block": [task], "rescue": [rescue]}]}
    (tree / "run.yml").write_text(json.dumps([play]))
    done = run_playbook(
        tmp_path,
        tree / "run.yml",
        hosts,
        "--forks=15",
        programs=programs,
        ANSIBLE_CONFIG=str(tree / "ansible.cfg"),
        ANSIBLE_CONNECTION_PLUGINS=str(tmp_path / "connection_plugins"),
        ANSIBLE_STDOUT_CALLBACK="default",
    )

    printed = " ".join(done.stdout.split())
    assert {name: calls(tmp_path, name) for name in plans} == {name: modules(plan) for name, plan in plans.items()}, (
        done.stdout + done.stderr
    )
    recap = {
        line.split()[0]: line.split() for line in done.stdout.partition("PLAY RECAP")[2].splitlines() if ":" in line
    }
    assert all("changed=1" in recap[name] and "rescued=0" in recap[name] for name in plans), done.stdout
    # Each of the others ends at its step, and does nothing of what comes after it.
    assert calls(tmp_path, "fails") == ["gpu_dkms"]
    assert "nvidia_driver.next_kernel: it does not compile" in printed
    assert calls(tmp_path, "hangs") == ["gpu_files"]
    assert f"nvidia_driver.parameters: gpu_files did not answer within {SECONDS} seconds" in printed
    assert calls(tmp_path, "leaves") == ["gpu_repository"] and "unreachable=1" in recap["leaves"], done.stdout
    assert "no route to it" in printed
