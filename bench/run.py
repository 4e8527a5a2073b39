"""Measure the budgets of the project on lab hosts and print ratios of two measurements of one run.

usage: bench/run.py [--hosts N] [--keep]      Writes docs/dev/benchmarks.md with the commit that was measured.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/integration"), str(ROOT / "lab")]

from fleet import VENV, Fleet, environment, lab


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
    for step in ("nvidia_driver.repository", "cuda_toolkit.repository", "nvidia_container_runtime.repository"):
        repository = (todo.get(step) or {}).get("repository")
        if repository:
            name = repository["id"]
            lines += [
                f"python3 -c \"import urllib.request as u; open('/etc/apt/keyrings/bench-{name}.asc','wb').write("
                f"u.urlopen('{repository['key_url']}').read())\"",
                f"echo 'deb [signed-by=/etc/apt/keyrings/bench-{name}.asc] {repository['url']} /' "
                f">/etc/apt/sources.list.d/bench-{name}.list",
                # As the product does: the vendor's packages of the same names stay behind Debian's.
                f"printf 'Package: *\\nPin: release l=NVIDIA CUDA\\nPin-Priority: 100\\n' >/etc/apt/preferences.d/bench-{name}",
            ]
    lines.append("apt-get update -q")
    for step, params in todo.items():
        names = [p if isinstance(p, str) else p["name"] for p in params.get("packages") or []]
        if names and step != "nvidia_driver.hold":
            lines.append(f"apt-get install -y -q --no-install-recommends {' '.join(names)}")
    return "\n".join(lines) + "\n"


def report(rows: list[tuple[str, str, str, str]], hosts: int) -> str:
    """Return docs/dev/benchmarks.md."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    text = [
        "# Benchmarks",
        "",
        f"Measured by `make bench` on commit {commit.stdout.strip()}, {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, "
        f"{hosts} lab hosts. Both sides of each ratio come from the same run on the same machine; no test depends on them.",
        "",
        "| what | budget | measured | how |",
        "|---|---|---|---|",
    ]
    text += [f"| {' | '.join(row)} |" for row in rows]
    text += [
        "",
        "The last row sets everything that site.yml does on a host (packages, cuDNN, daemon.json, loading the module, the container",
        "that proves it) against the packages alone, and the lab's compiler cache makes the packages cheap.",
    ]
    return "\n".join(text) + "\n"


def main() -> int:
    """Run all measurements; the exit status is 1 when a budget is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="repetitions of each short measurement (default 5)")
    parser.add_argument("--keep", action="store_true", help="leave the lab running")
    options = parser.parse_args()

    fleet = Fleet("bench")
    fleet.up()
    try:
        plan = fleet.play("--check", "--limit", "first")
        first_host = "first"
        todo = next(e["todo"] for e in plan.events if e.get("todo") and e["host"] == first_host)
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
        for _ in range(options.repeat):
            pings.append(measure([str(part) for part in ping]))
            plays.append(measure(fleet.command("--limit", "!shell")))
        pinged, played = middle(pings), middle(plays)
    finally:
        if not options.keep:
            lab("down", "bench")

    rows = [
        ("converged fleet, remote calls a host", "1", str(calls), "ssh calls counted on the control node"),
        (
            "converged fleet, wall time / `ansible -m ping`",
            "<= 2.0",
            f"{played.wall / pinged.wall:.2f} ({played.wall:.1f} s / {pinged.wall:.1f} s)",
            f"median of {options.repeat}",
        ),
        (
            "controller CPU a converged host / the same ping",
            "<= 2.0",
            f"{played.cpu / pinged.cpu:.2f} ({played.cpu / hosts:.2f} s / {pinged.cpu / hosts:.2f} s)",
            f"median of {options.repeat}",
        ),
        (
            "first provisioning, wall time / the same package operations as a shell script",
            "<= 1.15",
            f"{ours.wall / shell.wall:.2f} ({ours.wall:.0f} s / {shell.wall:.0f} s)",
            "two equal hosts, one after the other, packages cached",
        ),
    ]
    text = report(rows, hosts)
    print(text)
    (ROOT / "docs/dev/benchmarks.md").write_text(text, encoding="utf-8")
    over = calls > 1 or played.wall > 2 * pinged.wall or played.cpu > 2 * pinged.cpu or ours.wall > 1.15 * shell.wall
    return 1 if over else 0


def lab_ssh(host: str, script: str) -> list[str]:
    """Return the argv that runs a script on a lab host."""
    return [str(VENV / "python"), "-m", "gpu_ready_lab", "ssh", host, script]


if __name__ == "__main__":
    sys.exit(main())
