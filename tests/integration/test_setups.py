"""Set-ups of other people, each with the commands that they type: docs/dev/setups.md has what the screen showed.

A run has no setting of this project but what its set-up says: no ansible.cfg, no variable ANSIBLE_*.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest
import yaml

from tests.integration.cores import NEW, OLD, Version, controller, installed
from tests.integration.fleet import ROOT, VENV, Fleet
from tools import build_collection

pytestmark = [pytest.mark.lab, pytest.mark.long]

NODE, JUMP, BARE = "setup-node", "setup-jump", "setup-bare"
SITE = str(ROOT / "site.yml")
IMPORT = "- import_playbook: gpu_ready.nodes.site\n"
CONFIG = f"[defaults]\ncollections_path = {ROOT}/collections\ncallback_result_format = yaml\n"
"""Of a site whose own playbooks import those of a checkout."""
IN_DESIRED_STATE = rf"{NODE} +Debian 12 .*nothing to do"
ROLES = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/collection.md").read_text(), re.S)[-1]
INVENTORIES = (ROOT / "docs/inventories.md").read_text()
ARA, RUNNER = "ara[server]==1.8.0", "ansible-runner==2.4.3"


class Site(NamedTuple):
    """A directory of a site that manages the lab's hosts."""

    directory: Path
    fleet: Fleet

    def write(self, name: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the site."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def run(self, *command: str, programs: Path = VENV, fails: bool = False, **more: str) -> str:
        """Run a command in the directory as on a control node without any settings, and return the screen."""
        env = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(self.directory), "PWD": str(self.directory), **more}
        env |= {name: value for name, value in os.environ.items() if "PROXY" in name.upper() or name.startswith("PIP_")}
        done = subprocess.run(
            command, cwd=self.directory, env=env | {"LC_ALL": "C.UTF-8", "NO_COLOR": "1"}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=3600, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        print(f"$ {' '.join(command)}\n{done.stdout[-12000:]}")
        assert bool(done.returncode) == fails, done.stdout[-6000:]
        return done.stdout


def make_site(directory: Path, fleet: Fleet) -> Site:
    """A site whose inventory has names alone; ssh knows the rest. The lab's keys and test image are its group_vars."""
    site = Site(directory, fleet)
    site.write("hosts", f"{NODE}\n{JUMP}\n")
    site.write("group_vars/all/ssh.yml", f"ansible_ssh_common_args: -F {fleet.directory}/ssh_config\n")
    site.write("group_vars/all/lab.yml", (fleet.directory / "group_vars/gpu_hosts.yml").read_text())
    return site


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("setups")
    fleet.up()
    return fleet


@pytest.fixture(scope="module")
def first(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The screen of a playbook of the site's own, which provisions the bare hosts."""
    site = make_site(tmp_path_factory.mktemp("own"), fleet)
    site.write("ansible.cfg", f"{CONFIG}inventory = hosts\n")
    site.write("own.yml", f"- hosts: all\n  gather_facts: true\n  tasks: []\n\n{IMPORT}")
    return site.run("ansible-playbook", "own.yml")


@pytest.fixture
def site(fleet: Fleet, first: str, tmp_path: Path) -> Site:
    """A site of which the hosts are in the desired state."""
    return make_site(tmp_path, fleet)


def test_a_playbook_of_the_site_provisions_its_hosts(first: str) -> None:
    assert "2 hosts: 1 no gpu, 1 ready" in first
    assert re.search(rf"{JUMP} +Debian 12 .*left alone", first)


def test_another_directory_without_any_ansible_cfg(site: Site) -> None:
    screen = site.run("ansible-playbook", SITE, "-i", "hosts")
    assert re.search(IN_DESIRED_STATE, screen)
    assert (site.directory / "reports/latest.json").exists()


def test_a_jump_host_in_the_ansible_cfg_of_the_site(site: Site) -> None:
    (site.directory / "group_vars/all/ssh.yml").unlink()
    arguments = f"-F {site.fleet.directory}/ssh_config -o ProxyJump={JUMP}"
    site.write("ansible.cfg", f"[defaults]\ncallback_result_format = yaml\n[ssh_connection]\nssh_args = {arguments}\n")
    assert re.search(IN_DESIRED_STATE, site.run("ansible-playbook", SITE, "-i", "hosts", "--limit", NODE))
    [jump] = [address for address, host in site.fleet.addresses().items() if host == JUMP]
    accepted = site.fleet.ssh(
        NODE, "journalctl --sync; journalctl -u ssh -o cat | grep 'Accepted publickey'"
    ).splitlines()
    assert [line for line in accepted if f"from {jump} " in line], accepted[-5:]


def test_become_in_group_vars(site: Site) -> None:
    """Through sudo on the hosts, and not on the control node, whose sudo would fail here."""
    site.write("group_vars/all/become.yml", "ansible_become: true\nansible_become_method: sudo\n")
    site.write("bin/sudo", "#!/bin/sh\necho 'sudo on the control node' >&2\nexit 1\n", 0o755)
    screen = site.run("ansible-playbook", SITE, "-i", "hosts", PATH=f"{site.directory}/bin:{VENV}:/usr/bin:/bin")
    assert re.search(IN_DESIRED_STATE, screen)
    assert (site.directory / "reports/latest.json").exists()


def test_tags(site: Site) -> None:
    refused = site.run("ansible-playbook", SITE, "-i", "hosts", "--tags", "driver", fails=True)
    assert "cuda_toolkit_source" in refused and "PLAY RECAP" not in refused
    site.write("ansible.cfg", CONFIG)
    site.write("own.yml", f"{IMPORT}  tags: [gpu]\n")
    assert re.search(IN_DESIRED_STATE, site.run("ansible-playbook", "own.yml", "-i", "hosts", "--tags", "gpu"))
    assert NODE not in site.run("ansible-playbook", "own.yml", "-i", "hosts", "--skip-tags", "gpu")


def test_the_commands_of_the_page_about_inventories(site: Site) -> None:
    """A script, the plugin constructed, and a vault: the two runs with --check."""
    blocks = dict(zip(("ini", "script", "constructed", "run", "vault"), re.findall(r"```\w*\n(.*?)```", INVENTORIES, re.S), strict=True))  # fmt: skip
    script = blocks["script"].replace("gpu1", NODE).replace("gpu2", JUMP)
    site.write("cmdb.py", re.sub(r'"ansible_host": "[\d.]+", ', "", script), 0o755)
    site.write("constructed.yml", blocks["constructed"])
    site.write(".vault-pass", "secret\n", 0o600)
    site.write("group_vars/gpu_nodes/vault.yml", "ansible_become_password: example\n")
    for command in [line for line in blocks["run"].splitlines() if line.startswith("ansible-playbook")]:
        screen = site.run("bash", "-c", command.replace("site.yml", SITE))
        assert NODE in screen and JUMP not in screen
    encrypt, *_, play = (line for line in blocks["vault"].splitlines())
    site.run("bash", "-c", encrypt)
    assert "$ANSIBLE_VAULT" in (site.directory / "group_vars/gpu_nodes/vault.yml").read_text()
    assert re.search(IN_DESIRED_STATE, site.run("bash", "-c", play.replace("site.yml", SITE)))


CALLBACK = """
import os
from ansible.plugins.callback import CallbackBase

class CallbackModule(CallbackBase):
    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME = 2.0, "notification", "own"

    def v2_playbook_on_stats(self, stats):
        with open(os.environ["OWN_CALLBACK"], "w") as file:
            print(*sorted(stats.processed), file=file)
"""


def test_a_callback_of_the_site_and_ara_and_junit(site: Site) -> None:
    programs = installed("ara", sys.executable, ("-r", "requirements/runtime.in", ARA))
    site.write("callbacks/own.py", CALLBACK)
    more: dict[str, Any] = {
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_CALLBACK_PLUGINS": f"{site.directory}/callbacks:"
        + subprocess.check_output([programs / "python", "-m", "ara.setup.callback_plugins"], text=True).strip(),
        "ANSIBLE_CALLBACKS_ENABLED": "own,ansible.builtin.junit",
        "JUNIT_OUTPUT_DIR": str(site.directory / "junit"),
        "OWN_CALLBACK": str(site.directory / "own.txt"),
    }
    screen = site.run("ansible-playbook", SITE, "-i", "hosts", programs=programs, **more)
    assert re.search(IN_DESIRED_STATE, screen)
    assert (site.directory / "own.txt").read_text().split() == [JUMP, NODE]
    [results] = (site.directory / "junit").glob("*.xml")
    assert ElementTree.parse(results).getroot().get("failures") == "0"
    listed = site.run("ara", "playbook", "list", "-f", "csv", programs=programs)
    assert "completed" in listed and "site.yml" in listed


def test_the_collection_from_git(site: Site) -> None:
    """As requirements.yml of a site names it; from its archive: test_versions.py."""
    clone = site.directory / "gpu-ready.git"
    build_collection.export_tracked_files(clone)
    git = ["git", "-c", "user.name=site", "-c", "user.email=site@example.com", "-C", str(clone)]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "Import"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    requested = {"collections": [{"name": f"file://{clone}", "type": "git", "version": "main"}]}
    site.write("requirements.yml", yaml.safe_dump(requested))
    site.run("ansible-galaxy", "collection", "install", "-r", "requirements.yml", "-p", "collections")
    shutil.rmtree(clone)
    site.write("ansible.cfg", "[defaults]\ncollections_path = collections\ncallback_result_format = yaml\n")
    assert re.search(IN_DESIRED_STATE, site.run("ansible-playbook", "gpu_ready.nodes.site", "-i", "hosts"))


def test_roles_of_the_collection_in_a_playbook_of_the_site(fleet: Fleet, tmp_path: Path) -> None:
    """On bare hosts, one after the other: the driver alone, then the play of the page about the collection."""
    site = make_site(tmp_path, fleet)
    site.write("hosts", f"[gpu_nodes]\n{JUMP}\n{BARE}\n")
    site.write("ansible.cfg", "[defaults]\ncollections_path = collections\ncallback_result_format = yaml\n")
    archive = build_collection.build(tmp_path)
    site.run("ansible-galaxy", "collection", "install", str(archive), "-p", "collections")
    head = "- hosts: gpu_nodes\n  serial: 1\n  become: true\n"
    site.write("driver.yml", f"{head}  roles: [gpu_ready.nodes.nvidia_driver]\n")
    screen = site.run("ansible-playbook", "driver.yml", "-i", "hosts")
    assert "no NVIDIA GPU" in screen and "nvidia_driver.install: " in screen
    assert fleet.ssh(BARE, "cat /sys/module/nvidia/version").startswith("580.")
    assert not fleet.ssh(BARE, "ls /usr/bin/docker /usr/bin/nvidia-ctk 2>/dev/null", check=False)
    screen = site.run("ansible-playbook", "driver.yml", "-i", "hosts")
    assert re.search(rf"{BARE} .* changed=0 ", screen)
    site.write("nodes.yml", ROLES.replace("serial: 10%", "serial: 1"))
    screen = site.run("ansible-playbook", "nodes.yml", "-i", "hosts")
    assert screen.count("PLAY [GPU nodes]") == 2 and "gpu_verify.verify: " in screen
    assert re.search(rf"{BARE} .* changed=0 ", site.run("ansible-playbook", "nodes.yml", "-i", "hosts"))


@pytest.mark.parametrize("version", [OLD, NEW], ids=lambda version: version.core)
def test_a_project_as_awx_runs_it(site: Site, version: Version) -> None:
    """ansible-runner, with which AWX starts a job, over a directory as it makes it: project, inventory, env."""
    programs = installed(f"runner-{version.core}", controller(version), version.requirement, RUNNER)
    build_collection.export_tracked_files(site.directory / "project")
    (site.directory / "inventory").mkdir()
    for name in ("hosts", "group_vars"):
        (site.directory / name).rename(site.directory / "inventory" / name)
    site.write("env/extravars", "gpu_report_directory: ''\n")
    core = site.run("ansible", "--version", programs=programs).splitlines()[0]
    assert "core 2.16." in core if version == OLD else "core 2.21." in core
    screen = site.run("ansible-runner", "run", ".", "-p", "site.yml", programs=programs)
    assert re.search(IN_DESIRED_STATE, screen)
