"""What a run of the module that plans costs a host with 8 GPUs in the desired state."""

import json
import os
from typing import NamedTuple

from tests.integration.fleet import Fleet, lab

RUNS = 15
TEXT = (
    "The module collects facts, the control node plans. `ansible-core`'s own modules are 150 kB of the wrapper, whose archive is",
    "in base64; the catalog is 17 kB of our files. Most of the import time is the compilation of the source: hosts get no byte",
    "code. CPU time depends less than wall time on what else the machine does; of each measurement the smallest is given.",
)
TIME = f"""
import glob, json, resource, subprocess, sys, time
(wrapper,) = glob.glob("/root/.ansible/tmp/*/AnsiballZ_gpu_node_plan.py")
used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
found = []
for _ in range({RUNS}):
    cpu, wall = used(), time.monotonic()
    subprocess.run([sys.executable, wrapper], check=True, stdout=subprocess.DEVNULL)
    found.append((1000 * (used() - cpu), 1000 * (time.monotonic() - wall)))
print(json.dumps(min(found)))
"""


class PlanRun(NamedTuple):
    """Milliseconds of one run, from the start of Python to its end."""

    cpu_ms: float
    wall_ms: float


def measure_run(host: str, keep: bool) -> PlanRun:
    """Run gpu_node_plan on a lab host as the playbook sent it there."""
    fleet = Fleet("bench_plan")
    lab("up", "lab/fleets/bench_plan.yml")
    try:
        fleet.play()
        fleet.ssh(host, "rm -rf /root/.ansible/tmp/*")
        os.environ["ANSIBLE_KEEP_REMOTE_FILES"] = "1"
        try:
            assert fleet.play().changed_steps(host) == []
        finally:
            del os.environ["ANSIBLE_KEEP_REMOTE_FILES"]
        return PlanRun(*json.loads(fleet.ssh(host, f"python3 - <<'END'\n{TIME}END")))
    finally:
        if not keep:
            lab("down", "bench_plan")
