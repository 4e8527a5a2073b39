"""The plays of an upgrade as they are, run by Ansible over hosts that are a file each: who is selected, drained, undrained.

`make test` has hosts that fail in each way, a rollback, and a run that loses its host. Budgets, killed runs and two runs at once
are tested there by test_simulation.py, whose hosts cost less; here they are for the campaign.
"""

import itertools
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import lease, records
from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.upgrade import journal as upgrade
from plugins.module_utils.gpu_ready.upgrade import phases
from plugins.module_utils.gpu_ready.upgrade.model import RecordedDriver
from tests import packed_modules
from tests.hostile.limits import give_plans, project_tree
from tests.integration import cores
from tests.unit.turn_paths import wrong_write

ROOT = Path(__file__).resolve().parents[2]
NEWEST = "newest"
OLD, NEW = "580.95.05", "595.91.07"
DRIVER = RecordedDriver(version=OLD, branch="580", flavour="open", source="cuda_repo", kernel_modules="dkms")
BEFORE = DRIVER._replace(version="570.10.01", branch="570")
"""What a host had before the driver of the others."""
HEAD = """\
import json, os
from ansible.module_utils.basic import AnsibleModule

module = AnsibleModule(argument_spec={name: {"type": "raw"} for name in NAMES}, supports_check_mode=True)
given = module.params
directory = module._remote_tmp
state = json.load(open(directory + "/state.json"))
with open(directory + "/calls", "a") as calls:
    calls.write(json.dumps([MODULE, given.get("phase") or given.get("state") or ""]) + "\\n")
with open(os.path.dirname(directory) + "/order", "a") as order:
    order.write(json.dumps([os.path.basename(directory), given.get("phase") or MODULE]) + "\\n")


def save():
    with open(directory + "/state.json", "w") as handle:
        json.dump(state, handle)
"""
MODULES = {
    "gpu_node_plan": f"""
import sys
sys.path.insert(0, {str(ROOT)!r})  # the planner, which Ansible never sends to a host
from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.facts.model import BaseFacts, DkmsFacts, DriverFacts, Facts, GpuFacts, KernelFacts, ModuleFacts
from plugins.module_utils.gpu_ready.system.model import OsRelease
from plugins.module_utils.gpu_ready.upgrade import journal as upgrade
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.module_utils.gpu_ready.base.disruptions import DRIVER_RELOAD
from plugins.plugin_utils.gpu_ready.plan.model import Choices, DriverChoice, Step
from plugins.plugin_utils.gpu_ready.plan.upgrade import upgrade_status
from plugins.plugin_utils.gpu_ready.settings import variables
"""
    + """
requested = given["nvidia_driver_version"] or state["installed"]
journal = upgrade.read(Host(), directory + "/upgrade.json")
driver = DriverFacts(
    on_disk=ModuleFacts(state["installed"], "open"), origin="cuda_repo", dkms=[DkmsFacts("nvidia", state["installed"])]
)
system = OsRelease(*[None] * 3, [], "debian", *[None] * 5)
gpus = [GpuFacts("0000:3b:00.0", "1eb8", "nvidia", "Tesla T4")]
base = BaseFacts(system, "debian12", KernelFacts("6.1.0", [], "6.1.0", {}), gpus=gpus)
facts = Facts(base, driver=driver, upgrade=journal)
due = state["gpu"] and (state["installed"] != requested or not state["verified"])
steps = [Step("nvidia_driver.install", "x", DRIVER_RELOAD)] if due and state["installed"] != requested else []
choice = DriverChoice("cuda_repo", "dkms", int(requested.split(".")[0]), "open", requested, None, [], [])
summary = "a GPU" if state["gpu"] else "no NVIDIA GPU: left alone"
decided = compose.Plan(state["gpu"], summary, Choices(driver=choice if state["gpu"] else None), steps)
todo = {"gpu_verify.verify": {"expect": {}, "digest": requested}} if due else {}
found = records.to_json(upgrade_status(facts, decided, variables.parse_settings({})[0]))
shown = {"gpu_host": state["gpu"], "converged": not due, "summary": decided.summary, "choice": {}, "digest": requested}
shown.update(refusals=[], warnings=[], steps=[])
verification = {"expect": {}, "digest": requested}
module.exit_json(plan=shown, todo=todo, verification=verification, lines=["x"], refusal="", row={}, upgrade=found, lease="")
""",
    "gpu_verify": """
state["installed"] = given["digest"]
state["verified"] = given["digest"] not in state["red"]
state["gpu"] = not (state["loses_gpu"] and not state["verified"])
save()
if not state["verified"]:
    module.fail_json(msg="Not verified")
checks = [{"name": "driver_module", "ok": True, "expected": "loaded", "found": given["digest"]}]
verify = {"ok": True, "checks": checks, "not_run": []}
module.exit_json(changed=True, row={"driver_loaded": given["digest"]}, verify=verify)
""",
    "gpu_lease": """
from ..module_utils.gpu_ready.base import lease
from ..module_utils.gpu_ready.base.host import Host
path, run = directory + "/lease.json", lease.current_run()
try:
    if given["state"] == "taken":
        age = None if given["age"] is None else int(given["age"])
        claim = lease.Claim(run, given["living"], bool(given["take_over"]), age, bool(given["resumes"]))
        lease.take(Host(), claim, int(given["lasts"]), path)
    elif given["state"] == "extended":
        lease.extend(Host(), run, int(given["lasts"]), path)
    else:
        lease.release(Host(), run, path)
except lease.LeaseError as error:
    module.fail_json(msg=str(error), **error.result)
module.exit_json(changed=False, held_by="")
""",
    "gpu_upgrade_journal": """
from ..module_utils.gpu_ready.base import records
from ..module_utils.gpu_ready.base.host import Host
from ..module_utils.gpu_ready.upgrade import journal as upgrade
from ..module_utils.gpu_ready.upgrade import phases
from ..module_utils.gpu_ready.upgrade.model import RecordedDriver
recorded = records.from_json(RecordedDriver, given["driver"]) if given["driver"] else None
journal = phases.advance(upgrade.read(Host(), directory + "/upgrade.json"), given["phase"], 100, recorded,
                          given["target"] or "", given["reason"] or "", int(given["rollout"] or 0))
phases.write(journal, directory + "/upgrade.json")
module.exit_json(changed=True, journal=upgrade.to_json(journal))
""",
    "gpu_upgrade_stage": """
module.exit_json(changed=False, coming=[], kept=[], installers=[], files={})
""",
    "gpu_drain_journal": """
from ..module_utils.gpu_ready.base.host import Host
from ..module_utils.gpu_ready.drain import journal as drain
path = directory + "/drain.json"
drain.remove_entries(Host(), given["remove"] or [], path)
drain.record_entries(Host(), drain.from_json(given["record"] or {}), path)
module.exit_json(changed=False, journal=drain.to_json(drain.read(Host(), path)), description=[])
""",
}
NAMES = {
    "gpu_verify": "expect digest image archive remove_archive devices compute framework framework_image timeout probes",
    "gpu_lease": "state lasts living take_over age resumes",
    "gpu_upgrade_journal": "phase driver target reason rollout",
    "gpu_upgrade_stage": "transactions runfile installer target",
    "gpu_drain_journal": "record remove",
}


class Fleet:
    """Hosts in a directory each, and the playbook over them."""

    def __init__(self, directory: Path, programs: Path, *names: str) -> None:
        self.directory, self.programs, self.names = directory, programs, names
        self.tree = give_plans(project_tree(directory / "tree"))
        library = self.tree / "library"
        library.unlink()
        library.mkdir()
        for path in (ROOT / "library").glob("*.py"):
            if path.stem not in MODULES:
                (library / path.name).symlink_to(path)
        settings = json.loads((ROOT / "plugins/plugin_utils/variables/names.json").read_text())["settings"]
        for name, text in MODULES.items():
            listed = [*settings, "drains", "part", "release"] if name == "gpu_node_plan" else NAMES[name].split()
            head = HEAD.replace("NAMES", repr(listed)).replace("MODULE", repr(name))
            # The control node imports some modules for their arguments: only a host runs one.
            main = "#!/usr/bin/python\nif __name__ == '__main__':\n" + textwrap.indent(head + text, "    ")
            (library / f"{name}.py").write_text(main)
        lines = []
        for name in names:
            (directory / name).mkdir()
            self.set(name)
            lines.append(f"{name} ansible_connection=local ansible_remote_tmp={directory / name}")
        self.hosts = lines

    def set(self, name: str, **change: Any) -> None:
        """Set the state of a host."""
        text = {"installed": OLD, "gpu": True, "verified": True, "red": [], "loses_gpu": False} | change
        (self.directory / name / "state.json").write_text(json.dumps(text))

    def journal(self, name: str) -> dict[str, Any]:
        """The content of a host's journal."""
        found: dict[str, Any] = json.loads((self.directory / name / "upgrade.json").read_text())
        return found

    def installed(self, name: str) -> str:
        """Return the driver of a host."""
        return str(json.loads((self.directory / name / "state.json").read_text())["installed"])

    def calls(self, name: str, module: str) -> list[str]:
        """The calls of a module on a host."""
        rows = [json.loads(line) for line in (self.directory / name / "calls").read_text().splitlines()]
        return [what for called, what in rows if called == module]

    def order(self) -> list[tuple[str, str]]:
        """The calls of modules on all hosts, without those for the lease: host, and phase of the journal or module."""
        rows = map(json.loads, (self.directory / "order").read_text().splitlines())
        return [(host, what) for host, what in rows if what != "gpu_lease"]

    def run(
        self, playbook: str = "upgrade_drivers.yml", limit: str = "", forks: int = 3, **output: Any
    ) -> "subprocess.CompletedProcess[str]":
        """Run the playbook."""
        common = f"ansible_become=false ansible_python_interpreter={sys.executable} nvidia_driver_version={NEW}"
        variables = "\n".join(["", "[all:vars]", *common.split(), "gpu_upgrade_soak=0"])
        if "gpu_report_directory=" not in " ".join(self.hosts):
            variables += f"\ngpu_report_directory={self.directory}/reports"
        (self.directory / "hosts").write_text("\n".join(self.hosts) + variables + "\n")
        environment = os.environ | {
            "ANSIBLE_CONFIG": str(self.tree / "ansible.cfg"),
            "ANSIBLE_STDOUT_CALLBACK": "default",
            "ANSIBLE_FORKS": str(forks),
        }
        environment |= packed_modules.environment()
        argv = [str(self.programs / "ansible-playbook"), "-i", str(self.directory / "hosts")]
        argv += [
            str(self.tree / "playbooks" / playbook),
            "-e",
            json.dumps(output),
            *(["--limit", limit] if limit else []),
        ]
        written = {name: len(self.writes(name)) for name in self.names}
        done = subprocess.run(
            argv, cwd=self.directory, env=environment, capture_output=True, text=True, check=False, timeout=900
        )
        for name in self.names:
            # The table of the phases names what was done.
            wrong = wrong_write(self.writes(name)[written[name] :], playbook == "rollback_drivers.yml")
            assert not wrong, f"{name}: {wrong}"
        return done

    def writes(self, name: str) -> list[str]:
        """Return the phases that a host's journal recorded."""
        return self.calls(name, "gpu_upgrade_journal") if (self.directory / name / "calls").exists() else []


@pytest.fixture(params=[NEWEST, pytest.param("oldest", marks=pytest.mark.long)])
def programs(request: pytest.FixtureRequest) -> Path:
    """Return the directory of an ansible-core's programs."""
    return Path(sys.executable).parent if request.param == NEWEST else cores.programs(cores.OLD)


def test_a_rollout_with_hosts_that_are_lost_stay_busy_and_lose_their_gpus(tmp_path: Path, programs: Path) -> None:
    fleet = Fleet(tmp_path, programs, "lost", "busy", "first", "dead")
    silent = "{{ 'ssh' if gpu_upgrade_plan is defined else 'local' }}"
    fleet.hosts[0] = fleet.hosts[0].replace("ansible_connection=local", f'ansible_connection="{silent}"')
    fleet.hosts[0] += " ansible_host=127.0.0.1 ansible_port=1"
    # An earlier run drained this host, and its jobs ran past the limit.
    fleet.hosts[1] += " gpu_upgrade_drain=./busy.yml"
    (tmp_path / "busy.yml").write_text("- ansible.builtin.fail: {msg: still awaited after 1800 s}\n")
    journal = phases.advance(None, "staged", 1, DRIVER, NEW, "")
    phases.write(phases.advance(journal, "draining", 2, DRIVER, NEW, ""), str(tmp_path / "busy/upgrade.json"))
    # Its GPUs fall off the bus while the new driver is verified.
    fleet.hosts[3] += " gpu_upgrade_drain=./dead.yml"
    (tmp_path / "dead.yml").write_text("- gpu_ready.nodes.gpu_drain_journal:\n")
    fleet.set("dead", red=[NEW], loses_gpu=True)
    done = fleet.run(
        gpu_upgrade_canaries="first",
        gpu_upgrade_batches=["100%"],
        gpu_upgrade_max_failures=9,
    )
    text = " ".join(done.stdout.split())

    assert re.search(r"first .* none +none +a GPU", done.stdout)
    assert re.search(r"busy .* none +\./busy\.yml +resume", done.stdout)
    turns = re.findall(r"(?m)^gpu-ready [|] (\w+) [|] step [|] lease [|]", done.stdout)
    assert turns[0] == "first" and sorted(turns[1:]) == ["busy", "dead"]

    assert re.search(r"^ *lost: left out$", done.stdout, re.MULTILINE)
    assert "The preparation failed: unreachable: The host cannot be reached" in text
    assert fleet.journal("first")["phase"] == "done"

    assert "Nothing was changed on the host" in text
    assert fleet.journal("busy")["phase"] == "draining" and fleet.calls("busy", "gpu_verify") == []

    assert "THE ROLLBACK FAILED TOO" in text and "no NVIDIA GPU" in text and "was restored and verified" not in text
    asked = [json.loads(line) for line in (tmp_path / "dead/calls").read_text().splitlines()]
    back = asked.index(["gpu_upgrade_journal", "going_back"])
    assert ["gpu_drain_journal", ""] in asked[back:] and asked[back - 1] != ["gpu_drain_journal", ""]
    assert fleet.journal("dead")["phase"] == "stuck"
    assert done.returncode == 2


@pytest.mark.long
def test_a_host_for_which_a_file_with_tasks_is_missing_has_failed(tmp_path: Path) -> None:
    """As after `git checkout` during a rollout. Ansible ends with 0 where it rescues such a host."""
    fleet = Fleet(tmp_path, Path(sys.executable).parent, "one")
    (fleet.tree / "roles/gpu_drain/tasks/task_file.yml").unlink()
    fleet.hosts[0] += " gpu_upgrade_drain=./drain.yml"
    (tmp_path / "drain.yml").write_text("- ansible.builtin.meta: noop\n")
    done = fleet.run()
    assert done.returncode == 2, done.stdout
    assert fleet.journal("one")["phase"] == "draining"
    assert re.search(r"^ *one +failed", done.stdout, re.MULTILINE)
    assert "or stopped by an error of Ansible that is shown above" in " ".join(done.stdout.split())


@pytest.mark.long
def test_a_report_is_written_where_the_group_of_the_hosts_says(tmp_path: Path, programs: Path) -> None:
    """Ansible lists hosts of groups in groups after those that a rollout adds to groups of its own."""
    fleet = Fleet(tmp_path, programs, "one", "two")
    hosts = fleet.hosts
    fleet.hosts = ["[gpu_hosts:children]", "rack1", "[gpu_hosts:vars]", "gpu_report_directory={{ inventory_dir }}/mine"]
    fleet.hosts += ["gpu_upgrade_exclude=two", "[rack1]", *hosts]
    for playbook, kind in (("upgrade_drivers.yml", "upgrade"), ("rollback_drivers.yml", "rollback")):
        done = fleet.run(playbook)
        assert done.returncode == 0, done.stdout[-3000:]
        states = json.loads((tmp_path / f"mine/latest-{kind}.json").read_text())["hosts"]
        assert states["two"]["state"] == "excluded", done.stdout[-3000:]


@pytest.mark.long
def test_a_host_that_a_killed_run_left_verified_is_verified_before_it_returns_and_after_its_soak(
    tmp_path: Path, programs: Path
) -> None:
    fleet = Fleet(tmp_path, programs, "good", "red")
    for name in fleet.names:
        journal = phases.advance(None, "staged", 1, DRIVER, NEW, "")
        for phase in ("draining", "switching", "verified"):
            journal = phases.advance(journal, phase, 2, DRIVER, NEW, "")
        phases.write(journal, str(tmp_path / name / "upgrade.json"))
    fleet.set("good", installed=NEW)
    fleet.set("red", installed=NEW, red=[NEW])
    done = fleet.run(gpu_upgrade_soak=1, gpu_upgrade_batches=["100%"])

    assert fleet.journal("good")["phase"] == "done" and len(fleet.calls("good", "gpu_verify")) == 2
    assert fleet.journal("red")["phase"] == "back" and len(fleet.calls("red", "gpu_verify")) == 2
    assert re.search(r"red +rolled back", done.stdout) and done.returncode == 2


def write_finished(directory: Path, driver: RecordedDriver, target: str, rollout: int) -> dict[str, Any]:
    """Write and return the journal of a host that a rollout upgraded from a driver to another."""
    journal = None
    for phase in ("staged", "draining", "done"):
        journal = phases.advance(journal, phase, 1, driver, target, "", rollout)
    assert journal
    phases.write(journal, str(directory / "upgrade.json"))
    return upgrade.to_json(journal)


def test_a_host_that_the_last_rollout_excluded_is_not_rolled_back(tmp_path: Path, programs: Path) -> None:
    fleet = Fleet(tmp_path, programs, "changed", "left")
    write_finished(tmp_path / "changed", DRIVER, NEW, 2)
    fleet.set("changed", installed=NEW)
    earlier = write_finished(tmp_path / "left", BEFORE, OLD, 1)
    unknown = fleet.run("rollback_drivers.yml")
    assert unknown.returncode == 2 and "name: 2 of 1970" in " ".join(unknown.stdout.split())
    back = fleet.run("rollback_drivers.yml", gpu_upgrade_rollout=2)

    assert (fleet.installed("changed"), fleet.installed("left")) == (OLD, OLD)
    assert fleet.journal("left") == earlier
    assert re.search(r"changed +rolled back +595.91.07 +580.95.05", back.stdout)
    assert re.search(r"left +current .*no rollback: this rollout", back.stdout)
    assert back.returncode == 0


@pytest.mark.long
def test_an_excluded_host_alone_is_rolled_back_from_its_own_rollout(tmp_path: Path, programs: Path) -> None:
    fleet = Fleet(tmp_path, programs, "changed", "left")
    earlier = write_finished(tmp_path / "left", BEFORE, OLD, 1)
    present = fleet.run(gpu_upgrade_exclude="left")
    assert present.returncode == 0 and fleet.installed("changed") == NEW
    assert fleet.journal("left") == earlier
    alone = fleet.run("rollback_drivers.yml", limit="left", gpu_upgrade_rollout=1)
    assert alone.returncode == 0 and fleet.installed("left") == "570.10.01"


@pytest.mark.long
def test_the_budget_is_checked_before_each_host_of_a_batch(tmp_path: Path, programs: Path) -> None:
    names = [f"h{number}" for number in range(1, 6)]
    fleet = Fleet(tmp_path, programs, *names)
    fleet.set("h2", red=[NEW])
    fleet.set("h4", red=[NEW])
    # One other value on one host would change how many may fail.
    hosts, fleet.hosts = fleet.hosts, [*fleet.hosts[:-1], fleet.hosts[-1] + " gpu_upgrade_max_failures=50"]
    differs = fleet.run()
    assert differs.returncode == 2 and "hosts have different values: 50 on h5; 0 on h1 and 3 more" in " ".join(
        differs.stdout.split()
    )
    fleet.hosts = hosts
    wrong = fleet.run(gpu_upgrade_max_failures="unlimited")
    assert wrong.returncode != 0 and "must be a number of hosts" in " ".join((wrong.stdout + wrong.stderr).split())
    assert not list(tmp_path.glob("*/upgrade.json"))

    # 35% of five hosts is one, rounded down: h2 fails inside the budget, h4 beyond it.
    done = fleet.run(forks=1, gpu_upgrade_batches=[1, "100%"], gpu_upgrade_max_failures="35%", gpu_upgrade_soak=1)
    phases = [fleet.journal(name)["phase"] for name in names]
    assert phases == ["done", "back", "done", "back", "staged"], done.stdout[-3000:]
    assert [fleet.installed(name) == NEW for name in names] == [True, False, True, False, False]
    text = " ".join(done.stdout.split())
    assert "2 hosts failed and gpu_upgrade_max_failures is 1; 1 is unchanged" in text, done.stdout[-3000:]
    assert all(re.search(f"{name} +not reached", done.stdout) for name in names[4:])
    # Each host went through its whole upgrade, its second verification included, before the next one began.
    order = fleet.order()
    upgrades = order[[what for _, what in order].index("draining") :]
    assert [name for name, _ in itertools.groupby(name for name, _ in upgrades)] == names[:4]
    assert [what for name, what in upgrades if name == "h1"][-2:] == ["done", "gpu_verify"]
    assert done.returncode == 2

    fleet.set("h2")
    fleet.set("h4")
    resumed = fleet.run(gpu_upgrade_batches=[1, "100%"])
    assert "Upgrades 3 hosts to" in resumed.stdout and "UTC), 2 done." in resumed.stdout and resumed.returncode == 0
    assert {fleet.journal(name)["rollout"] for name in names} == {fleet.journal("h1")["rollout"]}
    assert {fleet.installed(name) for name in names} == {NEW}


@pytest.mark.long
def test_one_damaged_journal_refuses_that_host_only(tmp_path: Path, programs: Path) -> None:
    fleet = Fleet(tmp_path, programs, "good", "bad")
    journal = upgrade.to_json(phases.advance(None, "staged", 1, DRIVER, NEW, "", 7))
    (tmp_path / "bad/upgrade.json").write_text(json.dumps(journal | {"rollout": 10**15}))
    stopped = fleet.run()
    text = " ".join(stopped.stdout.split())
    assert stopped.returncode == 2 and "its rollout 1000000000000000 begins in the future" in text
    assert not (tmp_path / "good/upgrade.json").exists()
    done = fleet.run(gpu_upgrade_leave_out=True)
    assert done.returncode == 2 and re.search(r"good +upgraded", done.stdout)
    assert fleet.installed("bad") == OLD


@pytest.mark.long
def test_a_host_on_which_another_run_works_or_worked_is_left_out(tmp_path: Path, programs: Path) -> None:
    fleet = Fleet(tmp_path, programs, "first", "busy", "changed")
    bob = lease.RunId("bb22.100.5000", "bob@awx-7", "site.yml")
    lease.take(Host(), lease.Claim(bob), path=str(tmp_path / "busy/lease.json"))
    # While the first host is upgraded, a run on the last one begins and ends.
    fleet.hosts[0] += " gpu_upgrade_drain=./drain.yml"
    ended = lease.Lease(*bob, since=0, boot=lease.boot_id(Host()), renewed=lease.uptime(Host()), lasts=0, usual=600)
    text = json.dumps({**records.to_json(ended), "schema": lease.SCHEMA})
    copy = {"content": text, "dest": str(tmp_path / "changed/lease.json"), "mode": "0600"}
    (tmp_path / "drain.yml").write_text(json.dumps([{"ansible.builtin.copy": copy, "delegate_to": "localhost"}]))
    done = fleet.run(gpu_upgrade_canaries=["first"], gpu_upgrade_batches=["100%"])

    assert re.search(r"first +upgraded", done.stdout), done.stdout[-4000:]
    text = " ".join(done.stdout.split())
    assert "another run works on it: site.yml of bob@awx-7, since " in text
    assert "another run (site.yml of bob@awx-7) worked on it after this one took it. Run the same command" in text
    assert "3 hosts: 2 left out, 1 upgraded" in text and done.returncode == 2
    assert fleet.calls("busy", "gpu_upgrade_journal") == [] and fleet.calls("changed", "gpu_verify") == []
    assert {fleet.installed(name) for name in ("busy", "changed")} == {OLD}
    assert fleet.journal("changed")["phase"] == "staged"
    assert json.loads((tmp_path / "first/lease.json").read_text())["lasts"] == 0
    states = fleet.calls("first", "gpu_lease")
    assert states == ["taken", "released", "taken", "extended", "extended", "released"], states

    (tmp_path / "drain.yml").write_text("- gpu_ready.nodes.gpu_drain_journal:\n")
    repeated = fleet.run(gpu_upgrade_batches=["100%"], gpu_ready_take_over=True, gpu_upgrade_soak=1)
    assert repeated.returncode == 0 and {fleet.installed(name) for name in fleet.names} == {NEW}, repeated.stdout[
        -4000:
    ]
    assert fleet.calls("busy", "gpu_lease")[-4:] == ["released", "taken", "extended", "released"]


@pytest.mark.long
def test_a_killed_run_is_followed_when_its_last_step_has_ended(tmp_path: Path, programs: Path) -> None:
    """The run died on this control node; a step of it still runs for a while, and installs the new driver."""
    fleet = Fleet(tmp_path, programs, "cut")
    journal = phases.advance(None, "staged", 1, DRIVER, NEW, "")
    phases.write(phases.advance(journal, "draining", 2, DRIVER, NEW, ""), str(tmp_path / "cut/upgrade.json"))
    state = tmp_path / "cut/state.json"
    ended = state.read_text().replace(OLD, NEW)
    # It lasts until the run asks for the lease again: by then it was refused once because of this step.
    asked = f"until [ $(cat {tmp_path}/cut/calls 2>/dev/null | grep -c gpu_lease) -ge 2 ]; do sleep 0.1; done"
    step = subprocess.Popen(["timeout", "800", "sh", "-c", f"{asked}; printf %s '{ended}' > {state}"])
    name = subprocess.run(
        [sys.executable, "-c", "import gpu_ready_run as run; print(run.origin())"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "plugins/lookup")}, capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    died = lease.RunId(f"{name}.{step.pid}.1", "root@here", "upgrade_drivers.yml")
    held = lease.StepProcess(step.pid, lease.process_start(Host(), step.pid))
    now = lease.uptime(Host())
    written = lease.Lease(*died, since=0, boot=lease.boot_id(Host()), renewed=now, lasts=600, usual=600, step=held)
    (tmp_path / "cut/lease.json").write_text(json.dumps({**records.to_json(written), "schema": lease.SCHEMA}))
    done = fleet.run()
    assert step.wait() == 0
    assert done.returncode == 0, done.stdout[-4000:]
    assert "waiting for the last step of a run that was killed" in done.stdout
    assert fleet.calls("cut", "gpu_node_plan")[:2] == ["", ""]
    assert fleet.journal("cut")["phase"] == "done" and fleet.installed("cut") == NEW


def test_a_run_whose_host_was_taken_over_changes_nothing_more(tmp_path: Path, programs: Path) -> None:
    fleet = Fleet(tmp_path, programs, "taken")
    taker = lease.RunId("bb22.100.5000", "bob@awx-7", "site.yml")
    held = lease.Lease(*taker, since=0, boot=lease.boot_id(Host()), renewed=lease.uptime(Host()), lasts=9000, usual=600)
    text = json.dumps({**records.to_json(held), "schema": lease.SCHEMA})
    copy = {"content": text, "dest": str(tmp_path / "taken/lease.json"), "mode": "0600"}
    task = {"ansible.builtin.copy": copy, "delegate_to": "localhost", "when": "gpu_drain_action == 'undrain'"}
    (tmp_path / "drain.yml").write_text(json.dumps([task]))
    fleet.hosts[0] += " gpu_upgrade_drain=./drain.yml"
    done = fleet.run(gpu_upgrade_soak=1)
    text = " ".join(done.stdout.split())
    assert re.search(r"taken +failed", done.stdout) and done.returncode == 2, done.stdout[-4000:]
    assert "another run works on it: site.yml of bob@awx-7" in text
    assert "This run changed nothing more on the host" in text and "ROLLBACK FAILED" not in text
    assert fleet.journal("taken")["phase"] == "done", "no rollback began"
    assert json.loads((tmp_path / "taken/lease.json").read_text())["run"] == taker.name
