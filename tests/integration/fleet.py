"""A lab fleet and the playbooks run on it, as the integration tests use them."""

import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_ready_lab import fleet as fleets
from gpu_ready_lab import mirror_faults, paths

from tests import packed_modules
from tests.grid import CAMPAIGN
from tests.integration import package_health, step_effects

ROOT = Path(__file__).resolve().parents[2]
VENV = Path(sys.executable).parent
PLAY_LIMIT = 4800
"""Seconds of a run: a first provisioning compiles NVIDIA's module on two cores, and other tests use them too."""
WAIT_LIMIT = 600
"""Seconds to wait for what an idle machine does in a few."""
SAMPLE = () if CAMPAIGN else ("--sample",)

DRIVER_ALONE = """
export DEBIAN_FRONTEND=noninteractive
apt-get -qq -y --allow-change-held-packages purge docker.io 'nvidia-container-toolkit*' >/dev/null
rm -rf /etc/docker /var/lib/gpu-ready/verified.json
"""
"""Leaves of a Debian host that starts from a state what the tests of another engine begin with: the driver."""


def hosts_of(name: str) -> list[str]:
    """Return the hosts of a fleet that this session starts."""
    return [host.name for host in fleets.read(ROOT / f"lab/fleets/{name}.yml").hosts if CAMPAIGN or not host.extra]


@dataclass
class Run:
    """Result of one ansible-playbook call: exit status, screen, events, and the remote calls by host."""

    rc: int
    screen: str
    events: list[dict[str, Any]]
    calls: dict[str, int]

    def changed(self, host: str) -> list[str]:
        """Return the names of the tasks that changed something on a host, and the steps of its plan, in order."""
        found = [e for e in self.events if e["host"] == host and e["changed"]]
        return [name for e in found for name in e["changed_steps"] or ([e["task"]] if e["status"] == "ok" else [])]

    def changed_steps(self, host: str) -> list[str]:
        """Return the step ids ("role.action") behind the changed tasks, each once, in order."""
        steps: list[str] = []
        for name in self.changed(host):
            match = re.match(r"(\w+) : (\w+) \| ", name)
            step = f"{match[1]}.{match[2]}" if match else name
            if name.startswith("reboot | "):  # the playbook's part of activating the driver
                step = "nvidia_driver.activate"
            if step not in steps:
                steps.append(step)
        return steps

    def plan(self, host: str) -> dict[str, Any]:
        """Return the plan that gpu_node_plan gave for a host."""
        plans = [e["plan"] for e in self.events if e["host"] == host and e["plan"]]
        assert plans, f"no plan for {host} in:\n{self.screen[-3000:]}"
        return dict(plans[0])

    def steps(self, host: str) -> list[str]:
        """Return the ids of the planned steps of a host, in order."""
        return [step["id"] for step in self.plan(host)["steps"]]

    def failures(self, host: str) -> str:
        """Every failure message of a host, one per line."""
        return "\n".join(e["message"] for e in self.events if e["host"] == host and e["status"] == "failed")

    def recap(self, host: str) -> dict[str, int]:
        """Return the PLAY RECAP counters of a host."""
        recap = self.screen.rpartition("PLAY RECAP")[2]  # the tables before it have lines that begin with a host too
        line = re.search(rf"^{re.escape(host)}\s*: (.*)$", recap, re.MULTILINE)
        assert line, f"no recap for {host} in:\n{self.screen[-3000:]}"
        return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", line[1])}

    def row(self, host: str) -> str:
        """Return the host's line of the last table on the screen."""
        lines = [line.strip() for line in self.screen.splitlines() if line.strip().startswith(host + "  ")]
        lines = [line for line in lines if ": ok=" not in line]  # of Ansible's recap
        assert lines, self.screen[-3000:]
        return lines[-1]


@dataclass
class Fleet:
    """A lab fleet that is up."""

    name: str
    ansible: Path = VENV
    """Directory of the ansible-playbook that is run on it."""
    limit: int = PLAY_LIMIT
    """Seconds that one run may take."""
    collections: Path | None = None
    """Directory with gpu_ready.nodes as installed and an ansible.cfg: playbooks are run by its names, outside the checkout."""
    directory: Path = field(init=False)

    def __post_init__(self) -> None:
        self.directory = ROOT / ".lab" / self.name

    @property
    def inventory(self) -> Path:
        """The inventory that the lab wrote."""
        return self.directory / "gpu_hosts"

    @property
    def reports(self) -> Path:
        """Where the runs of this fleet write their reports: those of the checkout are of its user's runs."""
        return self.directory / "reports"

    def up(self) -> None:
        """Start the fleet; does nothing if it is up."""
        lab("up", *SAMPLE, f"lab/fleets/{self.name}.yml")

    def ssh(self, host: str, command: str, check: bool = True, limit: int = 1800) -> str:
        """Run a shell command on a lab host and return what it printed."""
        done = subprocess.run(
            ["/usr/bin/ssh", "-F", str(self.directory / "ssh_config"), host, command],
            capture_output=True, text=True, timeout=limit, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{host}: {command}: {done.stdout}{done.stderr}"
        return done.stdout

    def wait(self, host: str, condition: str, limit: int = WAIT_LIMIT) -> None:
        """Wait until a shell command succeeds on a host."""
        script = f"timeout {limit} sh -c {shlex.quote(f'until {condition}; do sleep 0.2; done')} && echo came"
        came = self.ssh(host, script, check=False, limit=limit + WAIT_LIMIT).strip().endswith("came")
        assert came, f"{host}: waited {limit} s in vain for: {condition}"

    def wait_booted(self, host: str) -> None:
        """Wait until every unit of a host's boot has started or failed: sshd answers long before."""
        self.wait(host, "case $(systemctl is-system-running) in running|degraded) :;; *) false;; esac")

    def command(self, *arguments: str, playbook: str = "site.yml") -> list[str]:
        """Return the argv of a playbook run on this fleet."""
        if self.collections:
            playbook = f"gpu_ready.nodes.{Path(playbook).stem}"
        reports = f"gpu_report_directory={self.reports}"
        return [
            str(self.ansible / "ansible-playbook"), playbook, "-i", str(self.inventory), "-e", reports, *arguments,
        ]  # fmt: skip

    def play(
        self,
        *arguments: str,
        playbook: str = "site.yml",
        extra: dict[str, Any] | None = None,
        moments: Sequence[dict[str, Any]] = (),
        packages_broken_by: str = "",
        holds: Collection[str] = (),
    ) -> Run:
        """Run a playbook on the fleet, record results and remote calls; moments: callback_plugins/moment.py.

        An uninstallation is confirmed, unless `extra` says otherwise. On hosts where a run failed or was refused, the
        package manager must work as before. `packages_broken_by` names what of the test, not of the run, breaks it.
        `holds`: steps that the run carries out on some host; all that it carries out must do what they declare.
        """
        begun = time.time()
        confirmed = {"gpu_ready_uninstall": True} if playbook.endswith("/uninstall.yml") else {}
        extra = confirmed | (extra or {})
        if extra:
            arguments = (*arguments, "-e", json.dumps(extra))
        with tempfile.TemporaryDirectory() as directory:
            events, calls = Path(directory, "events"), Path(directory, "calls")
            wrapper = Path(directory, "ssh")
            # Counts what Ansible sends to hosts; `-O` calls only talk to the local multiplexer.
            wrapper.write_text(f'#!/bin/sh\ncase " $* " in *" -O "*) ;; *) echo "$*" >>{calls};; esac\nexec ssh "$@"\n')
            wrapper.chmod(0o755)
            callbacks = ROOT / "tests/integration/callback_plugins"
            env = environment() | packed_modules.environment(callbacks, "record", *(["moment"] if moments else []))
            env |= {
                "GPU_READY_MOMENT": json.dumps(list(moments)),
                "GPU_READY_TEST_EVENTS": str(events),
                "GPU_READY_STEP_FACTS": directory if holds else "",
                "ANSIBLE_SSH_EXECUTABLE": str(wrapper),
                "ANSIBLE_NOCOLOR": "1",
            }
            if self.collections:
                env |= {
                    "ANSIBLE_CONFIG": str(self.collections / "ansible.cfg"),
                    "ANSIBLE_COLLECTIONS_PATH": str(self.collections),
                }
            done = subprocess.run(
                self.command(*arguments, playbook=playbook), capture_output=True, text=True, timeout=self.limit,
                cwd=self.directory if self.collections else ROOT, env=env, check=False, stdin=subprocess.DEVNULL,
                start_new_session=bool(moments),  # a moment can kill the run's process group
            )  # fmt: skip
            recorded = [json.loads(line) for line in events.read_text().splitlines()] if events.exists() else []
            counted = count_calls(calls.read_text() if calls.exists() else "", self.addresses())
            print(done.stdout[-20000:], done.stderr[-4000:])
            held = step_effects.check(directory) if holds else set()
            assert held >= {*holds}, f"not carried out: {sorted({*holds} - held)}"
        run = Run(done.returncode, done.stdout + done.stderr, recorded, counted)
        failed = {e["host"] for e in recorded if e["status"] == "failed"}
        if failed and not packages_broken_by:
            self.check_packages(failed, begun)
        return run

    def check_packages(self, hosts: Collection[str], since: float = 0) -> None:
        """Fail with what the package managers of hosts print that do not work, if their files were written since then."""
        addresses = {name: address for address, name in self.addresses().items() if name in hosts}
        asked = time.time()
        with package_health.faults_suspended(addresses.values()):
            found = package_health.problems(self.directory / "ssh_config", addresses, since)
        print(f"package managers of {', '.join(sorted(addresses))}: checked in {time.time() - asked:.1f} s")
        shown = "\n".join(f"{host}: {text}" for host, text in found.items())
        assert not found, (
            f"the run left package managers broken; a test that does so itself sets packages_broken_by:\n{shown}"
        )

    def set_mirror_rules(self, rules: dict[str, dict[str, Any]] | None) -> None:
        """Let the vendor mirror answer this fleet's hosts by these rules only; None: answer as usual.

        Rules are per host: tests of other fleets run at the same time.
        """
        for address in self.addresses():
            mirror_faults.set_rules(paths.STATE, address, "test", rules)

    def addresses(self) -> dict[str, str]:
        """Return host name by address, from the inventory."""
        found = {}
        for line in self.inventory.read_text().splitlines():
            match = re.match(r"(\S+)\s.*?ansible_host=(\S+)", line)
            if match:
                found[match[2]] = match[1]
        return found


def count_calls(log: str, names: dict[str, str]) -> dict[str, int]:
    """Return how many ssh calls went to each host."""
    counts = dict.fromkeys(names.values(), 0)
    for line in log.splitlines():
        for address, name in names.items():
            if f" {address} " in f" {line} ":
                counts[name] += 1
    return counts


def environment() -> dict[str, str]:
    """Return the environment for lab and playbook calls; tests read Ansible's normal output."""
    return dict(os.environ, PYTHONPATH=str(ROOT / "lab"), PYTHONUNBUFFERED="1", ANSIBLE_STDOUT_CALLBACK="default")


def lab(*arguments: str, limit: int = 5400) -> str:
    """Call the lab's command line and return what it printed; raises with its output when it fails."""
    done = subprocess.run(
        [str(VENV / "python"), "-m", "gpu_ready_lab", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=limit, cwd=ROOT, env=environment(),
        check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    print(done.stdout[-8000:])
    if done.returncode != 0:
        raise RuntimeError(f"gpu_ready_lab {' '.join(arguments)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def requests(fleet: Fleet) -> str:
    """The requests of a fleet's hosts to mirror and proxy so far, the only servers outside that a lab host can reach."""
    directory = Path("/run/gpu-ready-lab")
    logs = sorted(directory.glob("*access*.log"))
    assert logs, f"no access log in {directory}"
    lines = [line for log in logs for line in log.read_text().splitlines(keepends=True)]
    addresses = fleet.addresses()
    return "".join(line for line in lines if line.split()[1] in addresses)
