"""Runs playbooks over hostile hosts beside honest ones, without the lab, and says what each hostile answer did.

A hostile host is a directory: lab/hostile/interpreter.py is its Python and its sudo. Each attacks one module with one
kind of answer, and many such hosts share a run. What a run does to all hosts is attributed by running halves of it
again. A cell counts as reached only if its answer was given.
"""

import csv
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ansible.module_utils.common.yaml import yaml_load

from tests import packed_modules
from tests.hostile import attacks
from tests.hostile.limits import give_plans, impatient_tree, project_tree
from tests.hostile.processes import end_programs
from tests.hostile.scenes import Answers, Scene

ROOT = Path(__file__).resolve().parents[2]
INTERPRETER = ROOT / "lab/hostile/interpreter.py"
CLUSTER = ROOT / "tests/hostile/cluster.py"
HONEST = ("a-honest", "z-honest")
SECRET = "CANARY-7f3a"
BOUND = 2000.0
"""Seconds that a run may take."""
SILENT = 60
"""Seconds that a task may take where a host never answers; hours without such hosts."""
MEMORY = 1200
"""MiB that a process of the control node may use at most."""
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
FORMULA = re.compile(r"^[=+\-@\t\r]")
NOT_REACHED = "not reached"
HOSTS = 24
"""Hostile hosts of a run at most: the table of a fleet that is much larger has no line for each host."""
FLOODS = 6
"""Hosts of a run that answer without end: each takes memory of its own."""
UNLIKE = ("src", "living", "lasts", "age")
"""Arguments that differ between two runs: a temporary file, the processes of the control node, a lease that grows with
the number of hosts, and the seconds since the run began (plugins/lookup/gpu_ready_run.py)."""


class Cell(NamedTuple):
    """An attack on a module in a playbook."""

    scene: Scene
    module: str
    attack: str

    @property
    def name(self) -> str:
        """Name of the cell's host."""
        return "h-" + re.sub(r"\W|_", "-", f"{self.module}-{self.attack}")


class Ran(NamedTuple):
    """What a run printed and wrote. ``calls``: by host, what its Python was asked. ``seconds`` is None if it was killed."""

    status: int
    text: str
    reports: dict[str, str]
    calls: dict[str, list[str]]
    seconds: float | None
    memory: int


def cells(scenes: Iterable[Scene]) -> list[Cell]:
    """Return all attacks on the modules of scenes."""
    return [
        Cell(scene, module, attack)
        for scene in scenes
        for module in scene.modules
        for attack in attacks.of_module(module)
    ]


def groups(chosen: Sequence[Cell]) -> list[list[Cell]]:
    """Return cells in the groups that share a run: of one scene, and those that take long or much apart."""
    found: list[list[Cell]] = []
    for scene in dict.fromkeys(cell.scene.name for cell in chosen):
        of_scene = [cell for cell in chosen if cell.scene.name == scene]
        apart = [[cell for cell in of_scene if cell.attack == kind] for kind in ("silence", "flood")]
        together = [cell for cell in of_scene if cell.attack not in ("silence", "flood")]
        for some, most in ((together, HOSTS), (apart[0], HOSTS), (apart[1], FLOODS)):
            found += [some[begin : begin + most] for begin in range(0, len(some), most)]
    return found


class Place:
    """A directory with a control node's files and hosts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.home, self.ran, self.programs = directory / "home", directory / "ran", directory / "programs"
        for path in (self.home / ".ssh", self.ran, self.programs, directory / "reports", directory / "evil"):
            path.mkdir(parents=True)
        self.key = self.home / ".ssh/id_ed25519"
        self.key.write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}\n")
        for name in ("kubectl", "scontrol", "squeue", "sudo-of-the-attacker", "docker", "nvidia-smi"):
            program = self.programs / name
            program.write_text(f'#!/bin/sh\necho "$0 $*" >> {shlex.quote(str(self.ran))}/{name}\nexit 1\n')
            program.chmod(0o755)
        (directory / "evil/kubeconfig").write_text("{}")
        self.kubectl = directory / "kubectl-of-the-operator"
        self.kubectl.write_text(f'#!/bin/sh\nexec {sys.executable} {CLUSTER} {shlex.quote(str(directory))} "$@"\n')
        self.kubectl.chmod(0o755)

    def targets(self, cell: Cell) -> attacks.Targets:
        """Return what the attack of a host aims at."""
        mark = "MARK" + cell.name.replace("-", "").upper()
        ran = self.ran / cell.name
        tasks = self.directory / f"evil/{cell.name}.yml"
        tasks.write_text(
            f"- ansible.builtin.command: touch {ran}\n  delegate_to: localhost\n  become: false\n  changed_when: false\n"
        )
        program = self.directory / f"evil/{cell.name}"
        program.write_text(f"#!/bin/sh\ntouch {ran}\n")
        program.chmod(0o755)
        return attacks.Targets(self.key, tasks, self.directory / "evil/kubeconfig", program, ran, HONEST[0], mark)

    def add_host(self, name: str, answers: Answers, asked: Sequence[dict[str, Any]]) -> None:
        """Make a host with honest answers and attacks."""
        host = self.directory / "hosts" / name
        host.mkdir(parents=True)
        for role in ("python", "sudo"):
            start = f"exec {sys.executable} -I -S {INTERPRETER} {shlex.quote(str(host))} {role}"
            (host / role).write_text(f'#!/bin/sh\n{start} "$@"\n')
            (host / role).chmod(0o755)
        (host / "answers.json").write_text(json.dumps(answers))
        (host / "attack.json").write_text(json.dumps(list(asked)))
        (host / "calls").touch()


def inventory(place: Place, scene: Scene, names: Sequence[str]) -> dict[str, Any]:
    """Return the inventory of a run; the operator's variables include a secret that no host needs."""
    hosts = {}
    for name in names:
        host = place.directory / "hosts" / name
        hosts[name] = {
            "ansible_python_interpreter": str(host / "python"),
            "ansible_become_exe": str(host / "sudo"),
            "ansible_remote_tmp": str(host / "tmp"),
        }
    common = {
        "ansible_connection": "local",
        "site_password": SECRET,
        "gpu_report_directory": str(place.directory / "reports"),
        "gpu_audit_path": str(place.directory / "reports/audit"),
        "gpu_kubernetes_kubectl": str(place.kubectl),
        "gpu_kubernetes_directory": str(place.directory / "reports/kubernetes"),
        **scene.variables,
    }
    return {"all": {"hosts": hosts, "vars": common}}


def named(answers: Answers, name: str) -> Answers:
    """Return the answers of a host of this name."""
    found: Answers = json.loads(json.dumps(answers).replace('"NODE"', json.dumps(name)))
    return found


def run(place: Place, scene: Scene, hostile: Sequence[Cell], bound: float = BOUND) -> Ran:
    """Run a playbook over the honest hosts and these hostile ones."""
    for name in HONEST:
        place.add_host(name, named(scene.answers_for(), name), ())
    for cell in hostile:
        answers = named(scene.answers_for(cell.module), cell.name)
        honest = answers.get(cell.module, {"changed": False})
        asked = {"module": cell.module, **attacks.ATTACKS[cell.attack](honest, place.targets(cell))}
        place.add_host(cell.name, answers, (*scene.before, asked))
    names = [HONEST[0], *(cell.name for cell in hostile), HONEST[1]]
    path = place.directory / "inventory.json"
    path.write_text(json.dumps(inventory(place, scene, names)))
    programs = Path(sys.executable).parent
    silent = any(cell.attack == "silence" for cell in hostile)
    tree = place.directory / "tree"
    tree = impatient_tree(tree, SILENT) if silent else project_tree(tree)
    if not scene.facts:
        give_plans(tree)
    environment = {
        "HOME": str(place.home),
        "PATH": f"{place.programs}:{programs}:/usr/bin:/bin:/usr/sbin:/sbin",
        "ANSIBLE_CONFIG": str(tree / "ansible.cfg"),
        "ANSIBLE_BECOME_ALLOW_SAME_USER": "true",  # the host's sudo is used by root too
        "ANSIBLE_FORKS": "10",
        "ANSIBLE_HOME": str(place.home / ".ansible"),
        "LC_ALL": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        **packed_modules.environment(),
    }
    output, began = place.directory / "output", time.monotonic()
    with output.open("wb") as file:
        process = subprocess.Popen(
            [str(programs / "ansible-playbook"), "-i", str(path), scene.playbook],
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        ended, status, memory = wait(process, bound, place.directory)
    seconds = time.monotonic() - began if ended else None
    reports = {
        one.name: one.read_text(encoding="utf-8", errors="surrogateescape")
        for one in (place.directory / "reports").rglob("*")
        if one.is_file()
    }
    calls = {name: (place.directory / "hosts" / name / "calls").read_text().splitlines() for name in names}
    return Ran(status, output.read_text(encoding="utf-8", errors="surrogateescape"), reports, calls, seconds, memory)


def wait(process: "subprocess.Popen[bytes]", bound: float, directory: Path) -> tuple[bool, int, int]:
    """Wait for the end of a run, at most ``bound`` seconds, and end what it left: whether it ended, its exit status, the memory in MiB."""
    end = time.monotonic() + bound
    while time.monotonic() < end:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            end_programs(directory)
            return True, process.returncode, used.ru_maxrss // 1024
        time.sleep(0.1)
    end_programs(directory)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = -signal.SIGKILL
    return False, process.returncode, used.ru_maxrss // 1024


# ---- judgement --------------------------------------------------------------------------------------------------------


def leaks(place: Place) -> dict[str, str]:
    """Return by host what it got of the control node's secrets."""
    found = {}
    for host in sorted((place.directory / "hosts").iterdir()):
        kept = [host / "calls", *(host / "loot").glob("*")]
        for path in kept:
            if SECRET.encode() in path.read_bytes():
                found[host.name] = f"it got the operator's private key or password ({path.name})"
    return found


def executions(place: Place) -> dict[str, str]:
    """Return by name what was started on the control node."""
    return {path.name: path.read_text() for path in place.ran.iterdir()}


def raw_texts(ran: Ran) -> list[str]:
    """Return what a terminal, a spreadsheet or a browser would act on, in the output and in the reports."""
    found = []
    for name, text in {"the screen": ran.text, **ran.reports}.items():
        for line in text.split("\n"):
            if CONTROL.search(line):
                found.append(f"{name} has control characters: {line[:3000]!a}")
        if "<script>MARK" in text and text.lstrip().startswith("<"):
            found.append(f"{name} has markup: {text[text.index('<script>MARK') :][:200]!a}")
    found += [f"nodes.yml has a label of no GPU: {one!a}" for node in labels(ran).values() for one in foreign(node)]
    text = ran.reports.get("audit", "")
    if text.startswith("time,"):
        for row in csv.reader(text.splitlines(keepends=True)):
            found += [
                f"the CSV has a formula: {cell[:2000]!a}" for cell in row if FORMULA.search(cell) and "MARK" in cell
            ]
    return found


KUBECTL = re.compile(
    r"--(?:ignore-not-found|output=json|request-timeout=30s|all-namespaces|server-side|field-manager=gpu-ready"
    r"|dry-run=server|tail=200|limit-bytes=65536|wait=false|timeout=180s|namespace=kube-system"
    r"|(?:field-)?selector=[\w./,=-]+|filename=/tmp/[\w./-]+)|(?!-)[a-z0-9.,-]{1,253}"
)
"""Words that gpu-ready gives to kubectl: its own options, kinds and names."""


def strange_calls(place: Place) -> list[str]:
    """Return what kubectl was called with that a host chose."""
    path = place.directory / "kubectl-calls"
    lines = path.read_text().splitlines() if path.exists() else []
    return [f"kubectl {word!a}"[:300] for line in lines for word in json.loads(line) if not KUBECTL.fullmatch(word)]


def labels(ran: Ran) -> dict[str, dict[str, str]]:
    """Return the labels in nodes.yml, by node."""
    nodes = (yaml_load(ran.reports.get("nodes.yml", "")) or {}).get("items", [])
    return {str(node["metadata"]["name"]): node["metadata"]["labels"] or {} for node in nodes}


LABEL = re.compile(r"nvidia\.com/(?=.{1,63}: )[a-z]+\.[a-z.-]*[a-z]: (?=.{0,63}\Z)([A-Za-z0-9]([\w.-]*[A-Za-z0-9])?)?")
"""A label of a GPU that the API server accepts."""


def foreign(labels: Mapping[str, str]) -> list[str]:
    """Return the labels that no GPU has, or that Kubernetes does not accept."""
    return [text for text in (f"{name}: {value}" for name, value in labels.items()) if not LABEL.fullmatch(text)]


def honest_view(ran: Ran, place: Place) -> dict[str, list[str]]:
    """Return by honest host what it was asked and what the run says of it, without times and directories."""
    view = {}
    for name in HONEST:
        asked = []
        for line in ran.calls[name]:
            module, arguments = json.loads(line)
            kept = {key: value for key, value in arguments.items() if not key.startswith("_") and key not in UNLIKE}
            if abs(int(kept.get("rollout") or 0) - time.time()) < 24 * 3600:
                kept["rollout"] = "now"
            asked.append(json.dumps([module, kept], sort_keys=True).replace(str(place.directory), ""))
        # A row of a table or a line about the host; a message about another host may have its name too.
        about = [line for line in ran.text.splitlines() if re.match(rf"\s*{name}(?:\s*:|\s\s)", line)]
        printed = [" ".join(re.sub(r"\d+ s\b", "N s", line).split()) for line in about]
        view[name] = [*sorted(asked), *sorted(printed), *reported(ran, name)]
    return view


def reported(ran: Ran, name: str) -> list[str]:
    """Return what the reports say of a host."""
    latest = json.loads(ran.reports.get("latest.json", "{}"))
    audit = ran.reports.get("audit", "")
    found = [latest, json.loads(audit) if audit.startswith("{") else {}]
    # Without the time and the inventory, in which each run has a directory of its own.
    lines = [line.split(",", 2)[2] for line in audit.splitlines() if re.match(rf"[^,]*,[^,]*,{name},", line)]
    shown = [json.dumps(one["hosts"][name], sort_keys=True) for one in found if one.get("hosts")]
    shown = [re.sub(r'"(since|seconds)": ("[^"]*"|\w+)', "", one) for one in shown]
    return shown + lines + [f"{name}: {label}" for label in labels(ran).get(name, {}).items()]


def difference(expected: dict[str, list[str]], found: dict[str, list[str]]) -> str:
    """Return how the honest hosts fared otherwise than alone; empty if they did not."""
    for name in HONEST:
        missing = [line for line in expected[name] if line not in found[name]]
        more = [line for line in found[name] if line not in expected[name]]
        if missing or more or len(expected[name]) != len(found[name]):
            return f"{name}: without {[one[:150] for one in missing[:2]]}, with {[one[:150] for one in more[:2]]}"
    return ""


def judge(
    place: Place, ran: Ran, hostile: Sequence[Cell], expected: dict[str, list[str]]
) -> tuple[dict[str, str], str]:
    """Return what each host did that it must not do, and what the run did that no host can be named for."""
    errors: dict[str, str] = {}
    shared = []
    secrets, started, texts = leaks(place), executions(place), raw_texts(ran)
    for cell in hostile:
        mark = place.targets(cell).mark
        own = [text for text in texts if mark + "\\" in text or mark + "'" in text or mark in re.split(r"\W+", text)]
        if cell.name in secrets:
            errors[cell.name] = secrets[cell.name]
        elif cell.name in started:
            errors[cell.name] = "its program ran on the control node"
        elif own:
            errors[cell.name] = own[0][:300]
    shared += [f"{name}: {text}" for name, text in secrets.items() if name not in errors]
    shared += [f"the control node ran {text}" for text in strange_calls(place)]
    shared += [f"the control node ran {text.strip()[:200]}" for name, text in started.items() if name not in errors]
    if ran.seconds is None:
        shared.append("the run did not end in time")
    elif ran.memory > MEMORY:
        shared.append(f"a process of the control node used {ran.memory} MiB")
    else:
        other = difference(expected, honest_view(ran, place))
        shared += [other] if other else []
    if "Traceback (most recent call last)" in ran.text or "Unexpected Exception" in ran.text:
        shared.append("a traceback on the screen: " + ran.text[ran.text.rfind("Traceback") :][:200])
    return errors, "; ".join(shared)


class Campaign:
    """Runs cells, in a directory for each run."""

    def __init__(self, directory: Path, bound: float = BOUND) -> None:
        self.directory, self.bound = directory, bound
        self.number = 0
        self.expected: dict[str, dict[str, list[str]]] = {}

    def place(self, name: str) -> Place:
        """Return the place of the next run."""
        self.number += 1
        return Place(self.directory / f"{self.number:03}-{name}")

    def alone(self, scene: Scene) -> dict[str, list[str]]:
        """Return how the honest hosts of a scene fare without hostile ones."""
        if scene.name not in self.expected:
            place = self.place(f"{scene.name}-alone")
            ran = run(place, scene, (), self.bound)
            assert ran.seconds is not None, ran.text
            view = honest_view(ran, place)
            for name in HONEST:
                assert any(scene.good in line for line in view[name]), (scene.good, view[name], ran.text)
            self.expected[scene.name] = view
        return self.expected[scene.name]

    def test(self, scene: Scene, chosen: Sequence[Cell]) -> dict[str, str]:
        """Return by its name what each cell did that it must not do; empty where it held."""
        found: dict[str, str] = {}
        for group in groups(chosen):
            found |= self.attack(scene, group)
        return found

    def attack(self, scene: Scene, hostile: Sequence[Cell]) -> dict[str, str]:
        """Return by its name what each cell of one run did that it must not do."""
        expected = self.alone(scene)
        place = self.place(scene.name)
        ran = run(place, scene, hostile, self.bound)
        errors, shared = judge(place, ran, hostile, expected)
        if shared and len(hostile) > 1:
            half = len(hostile) // 2
            return self.attack(scene, hostile[:half]) | self.attack(scene, hostile[half:])
        found = {}
        for cell in hostile:
            fired = place.directory / "hosts" / cell.name / "fired"
            is_reached = fired.exists() and cell.module in fired.read_text().splitlines()
            error = "; ".join(filter(None, [errors.get(cell.name, ""), shared]))
            found[cell.name] = error or ("" if is_reached else NOT_REACHED)
        return found
