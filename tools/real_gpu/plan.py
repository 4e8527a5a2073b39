"""Part `plan`: `ansible-playbook site.yml --check` over this machine, and what it says about the driver that it has."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.facts import public
from plugins.plugin_utils.gpu_ready.completion import complete
from tools.real_gpu import part

HOST = "this-machine"
LIMIT = 40
"""Seconds of one run."""
RUNS: dict[str, dict[str, str]] = {
    "default": {},
    "kept": {"nvidia_driver_source": "none"},
}
"""Variables by run: those of nobody, and those of somebody who wants the driver left alone."""
DRIVER = "nvidia_driver"
OWN = ("install", "remove", "activate", "runfile")
"""Words of the steps that replace a driver; others add a setting or a service to it."""


def judge(plans: Mapping[str, Mapping[str, Any]], loaded: str | None) -> list[str]:
    """What is wrong with the plans by run; ``loaded``: the driver's version."""
    wrong = []
    for name, plan in plans.items():
        for refusal in plan.get("refusals", []):
            if not refusal.get("message") or not refusal.get("remedy"):
                wrong.append(f"{name}: the refusal {refusal.get('code')} has no message or no remedy")
        steps = [step["id"] for step in plan.get("steps", [])]
        replacing = [step for step in steps if step.startswith(DRIVER) and any(word in step for word in OWN)]
        if loaded and replacing:
            wrong.append(f"{name}: the loaded driver {loaded} is not adopted ({', '.join(replacing)})")
    return wrong


def environment(directory: Path, events: Path) -> dict[str, str]:
    """The results of tasks are written to ``events``, and nothing outside of the directory, as in a home directory."""
    return dict(
        os.environ,
        ANSIBLE_CALLBACK_PLUGINS=str(part.ROOT / "tests/integration/callback_plugins"),
        ANSIBLE_CALLBACKS_ENABLED="record",
        ANSIBLE_CONFIG=str(part.ROOT / "ansible.cfg"),
        ANSIBLE_HOME=str(directory / "ansible"),
        ANSIBLE_NOCOLOR="1",
        ANSIBLE_STDOUT_CALLBACK="default",
        GPU_READY_TEST_EVENTS=str(events),
        HOME=str(directory / "home"),
        LC_ALL="C.UTF-8",
    )


def run_site(name: str, directory: Path, variables: Mapping[str, str]) -> dict[str, Any]:
    """The plan of one run; FailedError if there is none."""
    inventory, events = directory / "inventory", part.own_directory("plan") / f"{name}.jsonl"
    inventory.write_text(f"{HOST} ansible_connection=local ansible_python_interpreter={sys.executable}\n")
    command = ["-m", "ansible", "playbook", "site.yml", "--check", "--diff", "-i", str(inventory)]
    done = subprocess.run(
        [sys.executable, *command, "-e", json.dumps(variables)], capture_output=True, text=True, check=False,
        cwd=part.ROOT, env=environment(directory, events), timeout=LIMIT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    print(f"--- {name}: status {done.returncode}\n{done.stdout}{done.stderr}")
    rows = [json.loads(line) for line in events.read_text().splitlines()] if events.exists() else []
    plans: list[dict[str, Any]] = [row["plan"] for row in rows if row["host"] == HOST and row["plan"]]
    if not plans:
        failed = [row["message"] for row in rows if row["status"] in ("failed", "unreachable")]
        raise part.FailedError(f"{name}: no plan: {[*failed, done.stderr.strip(), f'status {done.returncode}'][0]}")
    return plans[0]


def describe(name: str, plan: Mapping[str, Any], loaded: str | None) -> str:
    """One plan in a few words; nothing is wrong with it."""
    refused = [refusal["code"] for refusal in plan["refusals"]]
    if refused:
        return f"{name}: refused ({', '.join(refused)})"
    if not plan["gpu_host"]:
        return f"{name}: {plan['summary']}"
    return f"{name}: {f'driver {loaded} is kept' if loaded else 'no driver is loaded'}, {len(plan['steps'])} steps"


def main() -> str:
    if importlib.util.find_spec("ansible") is None:
        raise part.NotRunError("build/real_gpu/wheels has no Ansible; 'tools/real_gpu/prepare' gets it")
    host = Host()
    facts = complete.collect_facts(host)
    (part.own_directory("plan") / "facts.json").write_text(json.dumps(public.public_json(facts), indent=1))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "home").mkdir()
        plans = {run: run_site(run, directory, variables) for run, variables in RUNS.items()}
    loaded = facts.driver.loaded.version if facts.driver.loaded else None
    wrong = judge(plans, loaded)
    if wrong:
        raise part.FailedError("; ".join(wrong))
    return "; ".join(describe(run, plan, loaded) for run, plan in plans.items())


if __name__ == "__main__":
    part.run(main)
