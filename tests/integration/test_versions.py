"""One code base for old and new: ansible-core 2.16 with Python 3.6 on the hosts, and the newest ansible-core.

Hosts are provisioned by the collection, installed from its archive into an empty directory, and then found to be in the
desired state by the playbook of the checkout too. In `make test` the old ansible-core provisions a bare host and calls each module
without arguments, and the newest one verifies a provisioned host after its reboot. In the campaign both do everything, on bare hosts.

Each ansible-core gets a virtual environment of its own in the lab cache, made once. Versions without a suitable
Python on this machine are skipped, visibly. That everything sent to hosts runs on Python 3.6 is also checked by `make lint` (vermin).
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from gpu_ready_lab import python
from gpu_ready_lab.say import LabError

from tests.integration.cores import NEW, OLD, Version, programs
from tests.integration.fleet import ROOT, Fleet, Run, environment, hosts_of, lab
from tools import build_collection

pytestmark = pytest.mark.lab

MODULES = sorted(path.stem for path in (ROOT / "library").glob("*.py"))
UPGRADE, AUDIT = "playbooks/upgrade_drivers.yml", "playbooks/audit.yml"
CRASHES = ("MODULE FAILURE", "Traceback", "deserialization", "SyntaxError")


class Runs(NamedTuple):
    """The runs of an ansible-core on its fleet. ``first``, ``second``: by the collection; the others: by the checkout."""

    fleet: Fleet
    version: Version
    hosts: list[str]
    version_text: str
    check: Run
    first: Run
    second: Run
    second_check: Run


def core(version: Version) -> str:
    """Return what a test with this ansible-core is called."""
    return version.core


@pytest.fixture(scope="module", params=[OLD, NEW], ids=core)
def runs(lab_machine: None, request: pytest.FixtureRequest) -> Any:
    version: Version = request.param
    if version.host_python:
        try:
            python.find(version.host_python)
        except LabError as error:
            pytest.skip(str(error))
    fleet = Fleet(version.fleet, programs(version))
    lab("down", version.fleet)
    fleet.up()
    hosts = hosts_of(version.fleet)
    text = subprocess.run(
        [str(fleet.ansible / "ansible-playbook"), "--version"],
        capture_output=True, text=True, check=True, timeout=300, env=environment(), cwd=ROOT,
    ).stdout  # fmt: skip
    check = fleet.play("--check")
    collection = Fleet(version.fleet, fleet.ansible, collections=installed_collection(fleet))
    yield Runs(fleet, version, hosts, text, check, collection.play(), collection.play(), fleet.play("--check"))
    if not request.config.getoption("--keep-lab"):
        lab("down", version.fleet)


def installed_collection(fleet: Fleet) -> Path:
    """Build the collection and install it by the fleet's own ansible-galaxy, beside the ansible.cfg of its page."""
    directory = fleet.directory / "collections"
    directory.mkdir(exist_ok=True)
    [lines] = re.findall(r"```ini\n(.*?)```", (ROOT / "docs/collection.md").read_text(), re.DOTALL)
    (directory / "ansible.cfg").write_text(lines)
    archive = build_collection.build(fleet.directory)
    galaxy = [str(fleet.ansible / "ansible-galaxy"), "collection", "install", "--offline", "--force"]
    subprocess.run(
        [*galaxy, str(archive), "-p", str(directory)],
        check=True, timeout=900, cwd=fleet.directory, env=environment() | {"ANSIBLE_CONFIG": f"{directory}/ansible.cfg"},
    )  # fmt: skip
    return directory


def test_the_ansible_core_is_of_that_version(runs: Runs) -> None:
    expected = "core 2.16." if runs.version == OLD else "core 2.21."
    assert expected in runs.version_text


def test_modules_run_with_the_expected_python(runs: Runs) -> None:
    if runs.version.host_python is None:
        pytest.skip("any Python of the host will do")
    tasks: list[dict[str, Any]] = [{"ansible.builtin.setup": {"gather_subset": ["!all", "!min", "python"]}}]
    tasks.append({"ansible.builtin.debug": {"msg": "python={{ ansible_facts['python']['version']['minor'] }}"}})
    run = played(runs, tasks)
    for host in runs.hosts:
        messages = [event["message"] for event in run.events if event["host"] == host and "python=" in event["message"]]
        assert messages == ["python=6"]


def test_check_then_converge(runs: Runs) -> None:
    for host in runs.hosts:
        for run in (runs.check, runs.first):
            assert run.recap(host)["failed"] == 0, run.failures(host)
        assert runs.check.changed_steps(host) == [
            "gpu_plan.collect_facts"
        ]  # it reports that there is work, and does none
        assert runs.check.steps(host) == [
            step for step in runs.first.changed_steps(host) if step != "gpu_plan.collect_facts"
        ]
    assert (runs.check.rc, runs.first.rc) == (0, 0)


def test_a_second_run_and_a_check_after_it_have_nothing_to_do(runs: Runs) -> None:
    for host in runs.hosts:
        for run in (runs.second, runs.second_check):
            assert run.recap(host)["changed"] == 0
            assert run.steps(host) == []
        assert runs.second.calls[host] == 1


@pytest.mark.parametrize("runs", [OLD, pytest.param(NEW, marks=pytest.mark.long)], indirect=True, ids=core)
def test_no_module_crashes_without_arguments(runs: Runs) -> None:
    """Each either works or names what is missing."""
    run = played(runs, [{f"gpu_ready.nodes.{name}": {}, "ignore_errors": True} for name in MODULES], "--check")
    for host in runs.hosts:
        answers = [event for event in run.events if event["host"] == host]
        assert len(answers) == len(MODULES)
        for event in answers:
            assert not [word for word in CRASHES if word in event["message"]], event
            assert event["status"] == "ok" or event["message"], event


@pytest.mark.long
def test_an_upgrade_of_the_driver_and_an_audit_after_it(runs: Runs) -> None:
    host, settings = runs.hosts[0], {"nvidia_driver_version": "595.91.07"}
    before = runs.fleet.play("--limit", host, playbook=AUDIT, extra=settings)
    assert before.rc != 0 and "595.91.07" in before.row(host)
    run = runs.fleet.play("--limit", host, playbook=UPGRADE, extra=settings)
    assert run.rc == 0, run.screen[-4000:]
    assert "upgraded" in run.row(host)
    assert runs.fleet.ssh(host, "cat /sys/module/nvidia/version").strip() == settings["nvidia_driver_version"]
    after = runs.fleet.play("--limit", host, playbook=AUDIT, extra=settings)
    assert (after.rc, after.calls[host]) == (0, 1)


def played(runs: Runs, tasks: list[dict[str, Any]], *arguments: str) -> Run:
    """Run tasks on the hosts. The playbook is outside of the product: other workers read that to make states of it."""
    path = runs.fleet.directory / "tasks.yml"
    path.write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "become": True, "tasks": tasks}]))
    return runs.fleet.play(*arguments, playbook=str(path))


BARE = "v-bare7"


@pytest.fixture(scope="module")
def bare(lab_machine: None, request: pytest.FixtureRequest) -> Any:
    """CentOS 7 without a Python 3, and the ansible-core that still supports it."""
    fleet = Fleet("versions_bare", programs(OLD))
    lab("down", "versions_bare")
    fleet.up()
    yield fleet
    if not request.config.getoption("--keep-lab"):
        lab("down", "versions_bare")


def pythons(fleet: Fleet) -> list[str]:
    """What exists of Python 3: programs on PATH, and the package."""
    return fleet.ssh(BARE, "ls /usr/bin/python3* /usr/libexec/platform-python 2>/dev/null; rpm -q python3 || :").split(
        "\n"
    )


@pytest.fixture
def ended_mirrors(bare: Fleet) -> Iterator[None]:
    """The mirrors of CentOS 7 as they are since 2024: unreachable, until the end of the test."""
    bare.set_mirror_rules({"*mirror.centos.org/*": {"status": 404}})
    yield
    bare.set_mirror_rules(None)


@pytest.mark.usefixtures("ended_mirrors")
def test_a_host_without_python_is_refused_if_none_can_be_installed(bare: Fleet) -> None:
    """Each run names the obstacle: a check installs nothing, the mirrors have ended, ansible-core is too new."""
    before = pythons(bare)
    assert before[0] == "package python3 is not installed"
    for core, arguments, message in (
        (bare.ansible, ["--check"], "a check installs none. Run without --check"),
        (bare.ansible, [], "Its mirrors have ended: set gpu_ready_vault to true for the archive"),
        (Fleet("versions_bare").ansible, [], "or use ansible-core 2.16"),
    ):
        run = Fleet("versions_bare", core).play(*arguments)
        assert run.rc != 0
        assert message in run.failures(BARE), run.screen[-3000:]
        assert pythons(bare) == before


@pytest.mark.long
def test_a_host_without_python_gets_it_from_the_archive_and_is_made_ready(bare: Fleet) -> None:
    vault = {"gpu_ready_vault": True}
    run = bare.play(extra=vault)
    assert run.rc == 0, run.screen[-4000:]
    assert any("Install python3" in name for name in run.changed(BARE))
    assert [line for line in pythons(bare) if line.startswith("python3-3.6")]
    assert bare.ssh(BARE, "cat /sys/module/nvidia/version").strip()
    second = bare.play(extra=vault)
    assert (second.recap(BARE)["changed"], second.steps(BARE), second.calls[BARE]) == (0, [], 1)
