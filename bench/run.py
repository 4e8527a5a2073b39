"""Measure the budgets of the project on lab hosts and print ratios of two measurements of one run.

usage: bench/run.py [PART...] [--repeat N] [--keep] [--small]

Parts: site, plan, rollout; default: all. Each is recorded in bench/record.json with the commit that was measured, and
docs/dev/benchmarks.md is written from that.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypedDict

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "lab"), str(ROOT)]

import plan
import rollout

from tests.integration.fleet import VENV, Fleet, environment, lab
from tools import payload

PAGE = ROOT / "docs/dev/benchmarks.md"
RECORD = ROOT / "bench/record.json"
SITE_TEXT = (
    "The fourth row compares everything that site.yml does on a host (packages, cuDNN, daemon.json, loading the module, the",
    "container of the verification) with the packages alone, and the lab's compiler cache makes the packages cheap.",
)


@dataclass
class Cost:
    """What a command cost the control node: wall and CPU seconds (children included)."""

    wall: float
    cpu: float


def measure(argv: list[str]) -> Cost:
    """Run a command and return its cost; raises when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(argv, check=True, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def middle(costs: list[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(median(c.wall for c in costs), median(c.cpu for c in costs))


def shell_script(todo: dict[str, Any]) -> str:
    """Return the package operations of a plan as the bare shell script that an engineer would type on the node."""
    lines = ["set -eu", "export DEBIAN_FRONTEND=noninteractive"]
    components = (todo.get("nvidia_driver.repository") or {}).get("components")
    if components:
        names = " ".join(["main", *components])
        lines.append(
            f"for f in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do [ ! -e $f ] || "
            f"sed -i -E '/^deb /s/ main.*/ {names}/; s/^Components:.*/Components: {names}/' $f; done"
        )
    for step in todo.values():
        for repository in step.get("repositories") or []:
            lines += add_repository(repository)
    lines.append("apt-get update -q")
    for step, params in todo.items():
        packages = [p if isinstance(p, str) else p["name"] for p in params.get("packages") or []]
        if packages and step != "nvidia_driver.hold":
            lines.append(f"apt-get install -y -q --no-install-recommends {' '.join(packages)}")
    return "\n".join(lines) + "\n"


def add_repository(repository: dict[str, Any]) -> list[str]:
    """Return the shell lines that add a repository of a plan, with its key and priority."""
    name = repository["id"]
    place = " ".join(filter(None, [repository["url"], repository["suites"], repository["components"]]))
    lines = [
        "mkdir -p /etc/apt/keyrings",
        f"python3 -c \"import urllib.request as u; open('/etc/apt/keyrings/bench-{name}.asc','wb').write("
        f"u.urlopen('{repository['key_url']}').read())\"",
        f"echo 'deb [signed-by=/etc/apt/keyrings/bench-{name}.asc] {place}' >/etc/apt/sources.list.d/bench-{name}.list",
    ]
    pin = repository.get("pin")
    if pin:
        text = f"Package: {pin['package']}\\nPin: {pin['pin']}\\nPin-Priority: {pin['priority']}\\n"
        lines.append(f"printf '{text}' >/etc/apt/preferences.d/bench-{name}")
    return lines


class Row(NamedTuple):
    """One row of the page: what was measured, its budget (the highest value allowed) and the value; None: not measured."""

    what: str
    budget: float
    unit: str
    value: float | None
    details: str
    how: str

    @property
    def met(self) -> bool:
        """True if the value is within its budget."""
        return self.value is not None and self.value <= self.budget

    def cells(self) -> list[str]:
        """Cells of the table; a missed budget is printed in bold."""
        digits = 0 if self.unit or self.value == self.budget else 2
        value = "not measured" if self.value is None else f"{self.value:.{digits}f}{self.unit}"
        return [
            self.what, f"<= {self.budget:g}{self.unit}", f"{value} {self.details}".strip(),
            "yes" if self.met else "**no**", self.how,
        ]  # fmt: skip


class Part(TypedDict):
    """A part as it was last measured. ``text``: lines below its tables."""

    commit: str
    date: str
    cores: int
    hosts: int
    tables: list[list[list[str]]]
    text: list[str]


HEADS = {"site": "Provisioning and audits", "plan": "The module that plans", "rollout": "Time out of service"}


def record(hosts: int, tables: list[list[list[str]]], text: list[str]) -> Part:
    """Return the record of a part that was measured now."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.strip()
    cores = os.cpu_count() or 0
    return Part(commit=commit, date=f"{datetime.now(UTC):%Y-%m-%d}", cores=cores, hosts=hosts, tables=tables, text=text)


def page(parts: dict[str, Part]) -> str:
    """Return docs/dev/benchmarks.md."""
    text = [
        "# Benchmarks",
        "",
        "Generated by `make bench`; do not edit. Both sides of each ratio come from the same run on the same machine; no test",
        "depends on them.",
    ]
    for name, part in parts.items():
        measured = f"commit {part['commit']}, {part['date']}, {part['cores']} cores, {part['hosts']} lab hosts"
        text += ["", f"## {HEADS[name]}", "", f"Measured on {measured}."]
        for head, *rows in part["tables"]:
            text += ["", f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
            text += [f"| {' | '.join(row)} |" for row in rows]
        text += ["", *part["text"]] if part["text"] else []
    return "\n".join(text) + "\n"


HEAD = ["what", "budget", "measured", "met", "how"]


def main() -> int:
    """Run the parts; the exit status is 1 when a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="site, plan, rollout; default: all")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of each short measurement (default 5)")
    parser.add_argument("--keep", action="store_true", help="leave the lab running")
    parser.add_argument(
        "--small", action="store_true", help="few hosts and repetitions; write no page, judge no budget"
    )
    options = parser.parse_args()
    measures: dict[str, Callable[[argparse.Namespace], tuple[Part, bool]]] = {
        "site": measure_site,
        "plan": measure_plan,
        "rollout": measure_rollout,
    }
    if unknown := set(options.parts) - set(measures):
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(measures)}")
    met = True
    for name in options.parts or measures:
        part, within = measures[name](options)
        print(page({name: part}))
        met = met and within
        if not options.small:
            parts = {**json.loads(RECORD.read_text(encoding="utf-8")), name: part}
            RECORD.write_text(json.dumps(parts, indent=1) + "\n", encoding="utf-8")
            PAGE.write_text(page(parts), encoding="utf-8")
    return int(not met and not options.small)


def measure_rollout(options: argparse.Namespace) -> tuple[Part, bool]:
    """Measure the time out of service by size of batch."""
    sizes, scale = (rollout.SMALL, 0.01) if options.small else (rollout.BATCHES, rollout.SCALE)
    print("bench: a rollout over simulated hosts", flush=True)
    simulated = rollout.measure_simulated(sizes, scale)
    print("bench: a rollout over lab hosts", flush=True)
    on_hosts = rollout.measure_lab(sizes, options.keep, options.small)
    rows = [
        Row(
            f"simulated hosts: time out of service in a batch of {size} / alone", 1.1, "",
            rollout.ratio(simulated, size), "",
            "median, relative to the seconds in which the host worked itself",
        )
        for size in sizes[1:]
    ]  # fmt: skip
    tables = [[HEAD, *(row.cells() for row in rows)], [rollout.HEAD, *rollout.rows(simulated, on_hosts)]]
    return record(sum(sizes), tables, list(rollout.TEXT)), all(row.met for row in rows)


def measure_site(options: argparse.Namespace) -> tuple[Part, bool]:
    """Measure provisioning, and runs over hosts in the desired state."""
    repeat = 2 if options.small else options.repeat
    fleet = Fleet("bench")
    lab("up", *(["--sample"] if options.small else []), "lab/fleets/bench.yml")
    try:
        checked = fleet.play("--check", "--limit", "first")
        first_host = "first"
        todo = next(e["todo"] for e in checked.events if e.get("todo") and e["host"] == first_host)
        # Ours first: whatever caches it warms then helps the script, not us.
        print("bench: first provisioning, site.yml", flush=True)
        ours = measure([*fleet.command("--limit", first_host)])
        print("bench: first provisioning, bare shell script", flush=True)
        shell = measure(lab_ssh("shell", shell_script(todo)))
        print("bench: the other nodes, then converged runs", flush=True)
        fleet.play("--limit", "!shell")

        hosts = len(fleet.addresses()) - 1
        converged = fleet.play("--limit", "!shell")
        calls = max(count for name, count in converged.calls.items() if name != "shell")
        ping = [VENV / "ansible", "all", "-i", fleet.inventory, "-m", "ping", "--limit", "!shell"]
        pings, plays = [], []
        for _ in range(repeat):
            pings.append(measure([str(part) for part in ping]))
            plays.append(measure(fleet.command("--limit", "!shell")))
        pinged, played = middle(pings), middle(plays)
    finally:
        if not options.keep:
            lab("down", "bench")

    rows = [
        Row("converged fleet, remote calls per host", 1, "", calls, "", "ssh calls counted on the control node"),
        Row(
            "converged fleet, wall time / `ansible -m ping`", 1.6, "", played.wall / pinged.wall,
            f"({played.wall:.1f} s / {pinged.wall:.1f} s)", f"median of {repeat}",
        ),
        Row(
            "control node's CPU per converged host / the same ping", 1.5, "", played.cpu / pinged.cpu,
            f"({played.cpu / hosts:.2f} s / {pinged.cpu / hosts:.2f} s)", f"median of {repeat}",
        ),
        Row(
            "first provisioning, wall time / the same package operations as a shell script", 1.15, "",
            ours.wall / shell.wall, f"({ours.wall:.0f} s / {shell.wall:.0f} s)",
            "two equal hosts, one after the other, packages cached",
        ),
    ]  # fmt: skip
    return record(hosts, [[HEAD, *(row.cells() for row in rows)]], list(SITE_TEXT)), all(row.met for row in rows)


def measure_plan(options: argparse.Namespace) -> tuple[Part, bool]:
    """Measure payload, import and a run of gpu_node_plan."""
    sent = payload.measure("gpu_node_plan", payload.find_python("3.9"))
    run = plan.measure_run("plan-node", options.keep)
    rows = [
        Row(
            "payload of `gpu_node_plan`", 200, " kB", sent["packed"] / 1000, f"(wrapper {sent['wrapper'] / 1000:.0f} kB)",
            "gpu-ready's own files, deflated; the wrapper is what travels",
        ),
        Row(
            "import of `gpu_node_plan` on Python 3.9, CPU", 120, " ms", sent.get("import_ms"), "",
            "from the wrapper's archive, without ansible-core's own modules, best of 15",
        ),
        Row(
            "`gpu_node_plan` on a node with 8 GPUs in the desired state, CPU", 400, " ms", run.cpu_ms,
            f"(wall time {run.wall_ms:.0f} ms)", f"the wrapper run on the lab host itself, best of {plan.RUNS}",
        ),
    ]  # fmt: skip
    return record(1, [[HEAD, *(row.cells() for row in rows)]], list(plan.TEXT)), all(row.met for row in rows)


def lab_ssh(host: str, script: str) -> list[str]:
    """Return the argv that runs a script on a lab host."""
    return [str(VENV / "python"), "-m", "gpu_ready_lab", "ssh", host, script]


if __name__ == "__main__":
    sys.exit(main())
