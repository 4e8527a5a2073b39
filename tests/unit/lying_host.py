"""A host whose root is an attacker: its Python answers for Ansible's modules what the attacker wants.

The connection is local, and the attacker is `ansible_python_interpreter`: everything that Ansible sends to a host reaches
this program, and everything that comes back is its. Nothing of the machine is read or changed on its behalf.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from plugins.module_utils.gpu_ready.facts import model
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.settings import variables
from tests import packed_modules
from tests.hostile.limits import give_plans, project_tree
from tests.hostile.processes import end_programs
from tests.unit.hosts import T4, as_collected, bare, carried_out

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(sys.executable).parent
TRUTHFUL = "True"
"""An answer for modules that really run."""

NOTHING_TO_DO: dict[str, dict[str, Any]] = {
    "gpu_node_plan": {
        "plan": {
            "gpu_host": True, "converged": True, "summary": "", "choice": {}, "refusals": [], "warnings": [], "steps": [],
            "digest": "",
        },
        "todo": {}, "verification": None, "row": {}, "lines": [], "refusal": "", "lease": "",
        "upgrade": {
            "state": "current", "opened": False, "touched": False, "staged": False, "from": None, "to": None, "way": "none",
            "why": "", "refusal": "", "installed": None, "journal": None, "back": None, "installer": None,
            "drained": False,
        },
    },
    "gpu_audit": {
        "audit": {
            "state": "ok", "why": [], "checks": [], "holders": [], "steps": [], "warnings": [], "summary": "", "row": {},
        }
    },
    "gpu_upgrade_stage": {"coming": [], "kept": [], "installers": [], "files": {}},
}  # fmt: skip
"""What an honest host answers, for fields that a test does not give: without them an answer is refused. That of
gpu_node_plan is the plan: for runs with ``given_plans``."""


def collected(facts: model.Facts) -> dict[str, Any]:
    """What gpu_node_plan really answers on a host with these facts."""
    return {"facts": model.to_json(as_collected(facts)), "lease": "", "time": 1_800_000_000}


def ready_facts() -> model.Facts:
    """The facts of a host in the desired state."""
    return carried_out(bare(T4), compose.plan(bare(T4), variables.parse_settings({}).settings))


READY: dict[str, Any] = collected(ready_facts())

INTERPRETER = """\
#!{python}
import json, os, re, shutil, sys
home = {home!r}
for parent, _, names in os.walk(home + "/tmp"):
    for name in names:
        if "AnsiballZ_" not in name:
            shutil.copy(parent + "/" + name, home + "/loot/" + os.path.basename(parent) + name)
found = re.search(r"AnsiballZ_(\\w+)[.]py", " ".join(sys.argv))
name = found.group(1) if found else ""
with open(home + "/calls", "a") as log:
    log.write(name + "\\n")
answers = json.load(open(home + "/answers.json"))
answer = answers.get(name, {{"changed": True}})
if isinstance(answer, list):
    answer = answer[min(open(home + "/calls").read().split().count(name), len(answer)) - 1]
if answer == "{truthful}":
    os.execv(sys.executable, [sys.executable] + sys.argv[1:])
if isinstance(answer, str):
    exec(answer)
else:
    print(json.dumps(answer))
"""
"""A list gives one answer after the other; a text is a program that prints the answer."""


def complete(module: str, answer: Any) -> Any:
    """An answer, or each of a list, with the fields that are missing in it."""
    if isinstance(answer, list):
        return [complete(module, one) for one in answer]
    if not isinstance(answer, dict) or "facts" in answer:
        return answer
    return merge(NOTHING_TO_DO.get(module, {}), answer)


def merge(honest: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Both, down to the deepest mappings; what is given has precedence."""
    both = {
        name: merge(honest[name], given[name])
        for name in given
        if isinstance(honest.get(name), dict) and isinstance(given[name], dict)
    }
    return {**honest, **given, **both}


def make_liar(directory: Path, name: str, answers: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of a host with these answers by module name; what it gets is in ``directory/name/loot``."""
    home = directory / name
    for part in ("tmp", "loot"):
        (home / part).mkdir(parents=True)
    (home / "calls").write_text("")
    completed = {module: complete(module, answer) for module, answer in answers.items()}
    (home / "answers.json").write_text(json.dumps({"stat": {"stat": {"exists": False}}} | completed))
    program = home / "python"
    program.write_text(INTERPRETER.format(python=sys.executable, home=str(home), truthful=TRUTHFUL))
    program.chmod(0o755)
    return {
        "ansible_connection": "local",
        "ansible_become": False,
        "ansible_pipelining": False,
        "ansible_python_interpreter": str(program),
        "ansible_remote_tmp": str(home / "tmp"),
    }


def loot(directory: Path, name: str) -> str:
    """Everything that Ansible sent to the host in files of their own."""
    return "\n".join(file.read_text(errors="replace") for file in sorted((directory / name / "loot").iterdir()))


def calls(directory: Path, name: str) -> list[str]:
    """The modules that Ansible ran on the host."""
    return (directory / name / "calls").read_text().split()


@functools.cache
def tree_with_given_plans(tree: Path) -> Path:
    """Make a copy of the project for hosts that answer gpu_node_plan with plans, beside the directories of the tests.

    One for all of them: making it and compiling its plugins takes longer than most of what is run with it.
    """
    return give_plans(project_tree(tree))


def run_playbook(
    directory: Path,
    playbook: str | Path,
    hosts: dict[str, dict[str, Any]],
    *arguments: str,
    limit_s: int = 400,
    limit_kib: int = 0,
    given_plans: bool = False,
    groups: dict[str, Any] | None = None,
    programs: Path = PROGRAMS,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Run a playbook of the project, or of the test by its absolute path, over these hosts and their variables.

    ``limit_kib``: what the operator's shell allows each process, 0 for everything. ``given_plans``: the hosts answer
    gpu_node_plan with plans, not with facts. ``programs``: the directory of another ansible-core. ``groups``: of the inventory, whose variables say where the reports go.
    """
    root = tree_with_given_plans(directory.parent / "given_plans") if given_plans else ROOT
    limited = ["sh", "-c", f'ulimit -v {limit_kib}; exec "$@"', "sh"] if limit_kib else []
    inventory = directory / "hosts.json"
    variables = {} if groups else {"gpu_report_directory": str(directory / "reports")}
    inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": variables, "children": groups or {}}}))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_CONFIG": str(root / "ansible.cfg"), "ANSIBLE_LOCALHOST_WARNING": "false"}
    environment |= packed_modules.environment()
    try:
        return subprocess.run(
            [*limited, str(programs / "ansible-playbook"), "-i", str(inventory), str(root / playbook), *arguments],
            cwd=directory, env=environment | more, capture_output=True, text=True, check=False, timeout=limit_s,
        )  # fmt: skip
    finally:
        end_programs(directory)
