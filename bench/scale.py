"""What 2,000 hosts would take, computed from measured costs of one: wall time, CPU and memory by forks and batches.

usage: bench/scale.py                    compute, and write the tables of docs/scale.md from bench/scale_costs.json
       bench/scale.py --measure HOST     first measure the control node's costs on a converged lab host of this name
       bench/scale.py --rollout HOST VERSION   first upgrade a lab host alone, count its remote calls and time its phases

The measurement gives one lab host many names, so that the control node has the work of a fleet and the hosts none.
"""

import argparse
import json
import math
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COSTS = Path(__file__).with_name("scale_costs.json")
PAGE = ROOT / "docs/scale.md"
NAMES = (10, 40)
"""Names that the host gets in the two runs whose difference is the cost of one."""


class Costs(NamedTuple):
    """Costs of one host on the control node, and of a lab host (measured) and a real one (assumed) on itself."""

    call_cpu: float
    main_mib: float
    host_mib: float
    fork_mib: float
    look_seconds: float
    stage_calls: int
    stage_seconds: float
    real_stage_seconds: float
    switch_calls: int
    live_seconds: float
    real_live_seconds: float
    reboot_seconds: float


class Phase(NamedTuple):
    """What a phase asks of each host: remote calls, and seconds on the host."""

    calls: int
    seconds: float


def wall(hosts: int, phase: Phase, costs: Costs, forks: int, cores: int) -> float:
    """Return the seconds of a phase: as long as the slower of control node (CPU) and hosts (waves of ``forks``)."""
    work = hosts * phase.calls * costs.call_cpu / cores
    return max(work, math.ceil(hosts / forks) * phase.seconds)


def batches(hosts: int, sizes: list[str]) -> list[int]:
    """Return the hosts of each batch as Ansible's `serial` makes them: the last size repeats."""
    found: list[int] = []
    left, position = hosts, 0
    while left:
        size = sizes[min(position, len(sizes) - 1)]
        number = max(int(hosts * int(size[:-1]) / 100), 1) if size.endswith("%") else int(size)
        found.append(min(number, left))
        left -= found[-1]
        position += 1
    return found


def roll(hosts: int, sizes: list[str], phase: Phase, costs: Costs, forks: int, cores: int, soak: float) -> float:
    """Return the seconds of a rollout: batch after batch, each with its soak time."""
    return sum(wall(number, phase, costs, forks, cores) + soak for number in batches(hosts, sizes))


def memory(hosts: int, costs: Costs, forks: int) -> float:
    """Return the MiB of a run at its peak: the main process with what it knows of every host, and the forks' own pages."""
    return costs.main_mib + hosts * costs.host_mib + min(forks, hosts) * costs.fork_mib


def span(seconds: float) -> str:
    """Return a time as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


# ---- measuring ------------------------------------------------------------------------------------------------------


class Measured(NamedTuple):
    """What one run cost the control node: CPU seconds, and peaks of memory in MiB."""

    cpu: float
    main: float
    forks: float
    most: int


def run_with(names: int, address: str, directory: Path, template: Path) -> Measured:
    """Audit one host under many names and return the cost."""
    text = template.read_text(encoding="utf-8")
    shared = text[text.index("[gpu_hosts:vars]") :]
    inventory = directory / f"names{names}"
    lines = "".join(f"name{number} ansible_host={address}\n" for number in range(names))
    # Each name gets a connection of its own, as different hosts would.
    control = "ansible_control_path=%(directory)s/{{ inventory_hostname }}"
    inventory.write_text(f"[gpu_hosts]\n{lines}\n{shared}{control}\n", encoding="utf-8")
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "playbooks/audit.yml", "-i", str(inventory)]
    command += ["-e", f"gpu_report_directory={directory}/reports"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(
        [*command, "--forks", "8"],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        seen: list[tuple[float, list[float]]] = []
        watcher = threading.Thread(target=watch, args=(process, seen))
        watcher.start()
        process.wait()
        watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    main = max(one[0] for one in seen)
    fork = [size for _, sizes in seen for size in sizes]
    return Measured(cpu, main, sum(fork) / max(len(fork), 1), max(len(sizes) for _, sizes in seen))


def watch(process: subprocess.Popen[bytes], seen: list[tuple[float, list[float]]]) -> None:
    """Note the memory of a run twice a second: the main process, and what each of its forks has for itself."""
    while process.poll() is None:
        own = [pid for pid in children(process.pid) if "ansible-playbook" in command_of(pid)]
        sizes = [mib(pid, "Private_Dirty") for pid in own]
        seen.append((mib(process.pid, "Rss"), [size for size in sizes if size]))
        time.sleep(0.5)


def children(pid: int) -> list[int]:
    """Return the children of a process."""
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def command_of(pid: int) -> str:
    """Return the command line of a process, "" where it ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def mib(pid: int, kind: str) -> float:
    """Return a figure of a process' memory in MiB, 0 where it ended."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    found = re.search(rf"^{kind}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0


def measure(host: str) -> dict[str, float | str]:
    """Return the measured costs of one host on the control node."""
    inventories = sorted(ROOT.glob(".lab/*/gpu_hosts"))
    template = next(path for path in inventories if re.search(rf"^{host} ", path.read_text(), re.MULTILINE))
    found = re.search(rf"^{host} .*?ansible_host=(\S+)", template.read_text(), re.MULTILINE)
    assert found, host
    busy = load if (load := os.getloadavg()[0]) > 1 else 0.0
    with tempfile.TemporaryDirectory() as directory:
        run_with(2, found[1], Path(directory), template)  # warms caches
        few, many = (run_with(names, found[1], Path(directory), template) for names in NAMES)
    found_costs: dict[str, float | str] = {
        "main_mib": round(few.main),
        "fork_mib": round(many.forks, 1),
        "memory": f"{datetime.now(UTC):%Y-%m-%d}, {NAMES[0]} and {NAMES[1]} names of one lab host",
    }
    if busy:
        # Ansible's main process polls its forks: on a busy machine it polls longer, and that would count as work.
        print(f"the machine is busy (load {busy:.1f}): the CPU figures stay as they were, only memory was measured")
        return found_costs
    call = (many.cpu - few.cpu) / (NAMES[1] - NAMES[0])
    found_costs["call_cpu"] = round(call, 3)
    found_costs["cpu"] = (
        f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, {NAMES[0]} and {NAMES[1]} names of one lab host"
    )
    return found_costs


LOCAL = ("set_fact", "debug", "meta", "fail", "add_host", "pause", "include_role", "include_tasks", "import_role",
         "gpu_upgrade_fleet", "validate_argument_spec")  # fmt: skip
"""Actions of a rollout that send nothing to its hosts."""
STARTS = {"prestage": "stage", "installers": "stage", "line_up": "line_up", "turn": "switch"}
"""Words before the bar in names of tasks with which a host's next phase begins; tasks of other roles belong to it."""


ENGINE = ["/usr/bin/docker", "-H", "unix:///run/gpu-ready-lab/docker.sock"]


class Spent(NamedTuple):
    """What a phase of a rollout took: remote calls, seconds of wall time, CPU seconds on the host."""

    calls: int = 0
    seconds: float = 0.0
    cpu: float = 0.0


def phases(events: list[dict[str, Any]], host: str, began: float, usage: list[tuple[float, float]]) -> dict[str, Spent]:
    """Return what the phases (plan, stage, switch) took of a host, from the results of a run.

    ``usage``: CPU seconds of the host so far, by time.
    """

    def used(moment: float) -> float:
        return max((cpu for at, cpu in usage if at <= moment), default=usage[0][1] if usage else 0.0)

    found: dict[str, Spent] = {}
    phase, last = "plan", began
    for event in (one for one in events if one["host"] == host):
        word = event["task"].rpartition(" : ")[2].partition(" | ")[0]
        phase = STARTS.get(word, phase)
        here = event["action"].rpartition(".")[2] in LOCAL or "control node" in event["task"]
        remote = not here and event["status"] != "skipped"
        old, now = found.get(phase, Spent()), event["time"]
        found[phase] = Spent(old.calls + remote, old.seconds + now - last, old.cpu + used(now) - used(last))
        last = now
    return found


def account(host: str) -> Path:
    """Return the file in which the kernel counts the nanoseconds of CPU of a lab host (control groups, version 1)."""
    shown = subprocess.run([*ENGINE, "ps", "--no-trunc", "--format", "{{.Names}} {{.ID}}"], capture_output=True, text=True, check=True)  # fmt: skip
    identity = next(line.split()[1] for line in shown.stdout.splitlines() if line.split()[0].endswith(f"-{host}"))
    return next(Path("/sys/fs/cgroup/cpuacct").glob(f"*/{identity}/cpuacct.usage"))


def measure_rollout(host: str, version: str) -> dict[str, float | str]:
    """Upgrade one lab host, by itself; return its remote calls, seconds and CPU seconds by phase."""
    inventories = sorted(ROOT.glob(".lab/*/gpu_hosts"))
    inventory = next(path for path in inventories if re.search(rf"^{host} ", path.read_text(), re.MULTILINE))
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "events")
        env = os.environ | {
            "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests/integration/callback_plugins"),
            "ANSIBLE_CALLBACKS_ENABLED": "record",
            "GPU_READY_TEST_EVENTS": str(file),
        }
        reports = str(Path(directory, "reports"))
        settings = json.dumps(
            {"nvidia_driver_version": version, "gpu_upgrade_soak": 0, "gpu_report_directory": reports}
        )
        command = [str(Path(sys.executable).parent / "ansible-playbook"), "playbooks/upgrade_drivers.yml"]
        counter, began = account(host), time.time()
        usage: list[tuple[float, float]] = []
        argv = [*command, "-i", str(inventory), "--limit", host, "-e", settings]
        with subprocess.Popen(argv, cwd=ROOT, env=env) as process:
            while process.poll() is None:
                usage.append((time.time(), int(counter.read_text()) / 1e9))
                time.sleep(0.5)
        assert process.returncode == 0
        found = phases([json.loads(line) for line in file.read_text().splitlines()], host, began, usage)
    stage, switch = (found.get(name, Spent()) for name in ("stage", "switch"))
    costs: dict[str, float | str] = {
        "stage_calls": stage.calls,
        "stage_seconds": round(stage.seconds),
        "stage_note": f"one alone, {stage.cpu:.1f} s of CPU",
        "switch_calls": switch.calls,
        "live_seconds": round(switch.seconds),
        "live_note": f"one alone, {switch.cpu:.1f} s of CPU",
        "rollout": f"{datetime.now(UTC):%Y-%m-%d}, one lab host, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}",
    }
    return costs


# ---- the page -------------------------------------------------------------------------------------------------------

HOSTS = 2000
CORES = 8
FORKS = (20, 50, 100, 200, 400)
ROLL_FORKS = (50, 200)
ROLLS = (["1", "10%", "25%"], ["1", "5%", "10%"], ["1", "2%", "5%"], ["1", "50", "100"])
SOAK = 120.0


def tables(costs: Costs) -> str:
    """Return the tables of the page."""
    look = Phase(1, costs.look_seconds)
    stages = [Phase(costs.stage_calls, one) for one in (costs.stage_seconds, costs.real_stage_seconds)]
    turns = [
        Phase(costs.switch_calls, one) for one in (costs.live_seconds, costs.real_live_seconds, costs.reboot_seconds)
    ]
    lines = [
        f"{HOSTS} hosts, one control node with {CORES} cores:", "",
        "| forks | audit, plan, converged run | prestage, lab hosts | prestage, assumed | control node's CPU is the limit | memory |",
        "|---|---|---|---|---|---|",
    ]  # fmt: skip
    for forks in FORKS:
        limits = [name for name, phase in (("plan", look), ("prestage", stages[0])) if limited(phase, costs, forks)]
        spans = [span(wall(HOSTS, phase, costs, forks, CORES)) for phase in (look, *stages)]
        lines.append(
            f"| {forks} | {' | '.join(spans)} | {', '.join(limits) or '-'} | {memory(HOSTS, costs, forks) / 1024:.1f} GiB |"
        )
    names = ["live, lab hosts", "live, assumed", "reboot, assumed"]
    lines += [
        "", f"The rollout itself, {span(SOAK)} of soak per batch, by `gpu_upgrade_batches` and forks:", "",
        "| batches | number | largest | " + " | ".join(f"{name}, {forks} forks" for name in names for forks in ROLL_FORKS) + " |",
        "|---" * (3 + len(names) * len(ROLL_FORKS)) + "|",
    ]  # fmt: skip
    for sizes in ROLLS:
        found = batches(HOSTS, sizes)
        cells = [span(roll(HOSTS, sizes, phase, costs, forks, CORES, SOAK)) for phase in turns for forks in ROLL_FORKS]
        lines.append(f"| `[{', '.join(sizes)}]` | {len(found)} | {max(found)} | {' | '.join(cells)} |")
    lines += [
        "", "The same audit on more control nodes, or in slices of a job (100 forks each):", "",
        "| control nodes or slices | hosts each | audit | rollout `[1, 10%, 25%]`, live, assumed, in each slice |", "|---|---|---|---|",
    ]  # fmt: skip
    for slices in (1, 2, 4, 8):
        each = math.ceil(HOSTS / slices)
        rolled = roll(each, ROLLS[0], turns[1], costs, 100, CORES, SOAK)
        lines.append(f"| {slices} | {each} | {span(wall(each, look, costs, 100, CORES))} | {span(rolled)} |")
    return "\n".join(lines) + "\n"


def limited(phase: Phase, costs: Costs, forks: int) -> bool:
    """Return whether the control node's CPU sets the pace of a phase."""
    return HOSTS * phase.calls * costs.call_cpu / CORES > math.ceil(HOSTS / forks) * phase.seconds


def costs_table(known: dict[str, float | str], costs: Costs) -> str:
    """Return the table of costs."""
    descriptions = {
        "call_cpu": f"CPU seconds of the control node for a remote call: fork, ssh, templates, result, and a share of the run's start | measured: {known['cpu']}",
        "main_mib": f"MiB of the main process | measured: {known['memory']}",
        "host_mib": f"MiB per host in the main process | measured: {known['host_memory']}",
        "fork_mib": "MiB per fork | measured, the same runs",
        "look_seconds": f"seconds to collect facts and plan on a host, with the SSH connection | measured, lab hosts: {known['rollout']}; the budget for a real node is 0.4 s and a connection",
        "stage_calls": "remote calls per host in the prestage | measured, the same lab hosts",
        "stage_seconds": f"seconds of the prestage on the host | measured, the same lab hosts: {known['stage_note']}. Less than a real host: their packages and module sources are small, and a compiler cache is used",
        "real_stage_seconds": "seconds of the prestage on a real host | assumed: 400 MB from a mirror in the same site, apt's own work",
        "switch_calls": "remote calls per host during its upgrade, without a drain, with the second verification | measured, the same lab hosts",
        "live_seconds": f"seconds of an upgrade with a live reload | measured, the same lab hosts: {known['live_note']}. Less than a real host, for the same reasons",
        "real_live_seconds": "seconds of the same upgrade on a real host | assumed: unpacking 400 MB, a DKMS build, reload, verification",
        "reboot_seconds": "seconds of an upgrade with a reboot | assumed: the same, and five minutes for the firmware of a GPU server",
    }  # fmt: skip
    rows = [f"| {value:g} | {descriptions[name]} |" for name, value in costs._asdict().items()]
    return "\n".join(["| cost | of what | source |", "|---|---|---|", *rows]) + "\n"


def write(known: dict[str, float | str]) -> None:
    """Write the tables between their marks."""
    costs = Costs(**{name: known[name] for name in Costs._fields})  # type: ignore[arg-type]
    text = PAGE.read_text(encoding="utf-8")
    for name, content in (("costs", costs_table(known, costs)), ("tables", tables(costs))):
        start, end = f"<!-- {name}: bench/scale.py writes this -->\n", f"<!-- end of {name} -->"
        head, _, rest = text.partition(start)
        assert rest, f"no mark of {name} in {PAGE}"
        text = head + start + "\n" + content + "\n" + rest[rest.index(end) :]
    PAGE.write_text(text, encoding="utf-8")


def main() -> int:
    """Measure where asked to, compute, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", metavar="HOST", help="a converged lab host that is up")
    parser.add_argument("--rollout", metavar=("HOST", "VERSION"), nargs=2, help="a lab host that may be upgraded")
    options = parser.parse_args()
    known = json.loads(COSTS.read_text(encoding="utf-8"))
    if options.measure:
        known |= measure(options.measure)
    if options.rollout:
        known |= measure_rollout(*options.rollout)
    if options.measure or options.rollout:
        COSTS.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    write(known)
    print(tables(Costs(**{name: known[name] for name in Costs._fields})))
    return 0


if __name__ == "__main__":
    sys.exit(main())
