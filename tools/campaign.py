"""Run the long checks in parts, record each result, and write docs/dev/campaign.md.

usage: tools/campaign.py              run the parts that are not green or are stale, in order
       tools/campaign.py PART...      run these parts
       tools/campaign.py --status     list the parts with their last result; stale: an input has changed since
       tools/campaign.py --page       only write the page

A part is recorded as soon as it ends, so an interrupted campaign resumes where it stopped. The record is
docs/dev/campaign.json. Most parts need root and lab hosts (docs/dev/lab.md); logs are in build/campaign/PART.log.
"""

import argparse
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypedDict

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "docs/dev/campaign.json"
PAGE = ROOT / "docs/dev/campaign.md"
LOGS = ROOT / "build/campaign"
PRODUCT = ("ansible.cfg", "catalog", "library", "module_utils", "playbooks", "plugins", "roles", "site.yml")
LAB = (
    "lab",
    "requirements",
    *(
        f"tests/integration/{name}"
        for name in (
            "callback_plugins",
            "conftest.py",
            "cores.py",
            "fleet.py",
            "package_health.py",
            "package_health.sh",
        )
    ),
)
PASSED, FAILED = "passed", "FAILED"


class Part(NamedTuple):
    """A part of the campaign."""

    name: str
    what: str
    command: tuple[str, ...]
    inputs: tuple[str, ...]
    """Paths in the repository whose change makes the last result stale."""


class Result(TypedDict):
    """The last run of a part."""

    commit: str
    """Abbreviated; with + where inputs had changes that were not committed."""
    date: str
    result: str
    minutes: float
    stale: bool
    """Whether inputs had changed when the record was last written."""


def _tests(name: str, what: str, *more: str) -> Part:
    """Return the part of an integration test file: all its tests on all hosts of its fleets."""
    path = f"tests/integration/test_{name}.py"
    command = (sys.executable, "-m", "pytest", "-v", "--durations=25", path)
    return Part(name, what, command, (*PRODUCT, *LAB, path, *more))


GUESTS = "tests/integration/guests.py"
HOOK = "tests/integration/upgrade_hook.yml"
CLUSTER = ("tests/integration/control_plane.py", "tests/integration/kubernetes_objects.py")
PARTS = (
    Part(
        "unit",
        "unit tests with new examples for the property tests",
        (sys.executable, "-m", "pytest", "-q", "--hypothesis-profile=search", "tests/unit", "tests/corpus"),
        (*PRODUCT, *LAB, "tests/conftest.py", "tests/corpus", "tests/grid.py", "tests/unit"),
    ),
    _tests("demo", "the fleet of `make demo` from bare hosts to the report, with NVIDIA's real kernel module"),
    _tests(
        "distributions",
        "the life of a driver on all distributions and sources",
        "tests/integration/matrix.py",
    ),
    _tests(
        "pasts",
        "hosts that somebody else set up, from the plan to the removal",
        "tests/integration/pasts.py",
    ),
    _tests("ubuntu", "Ubuntu: signed modules, Secure Boot, NVIDIA's package names before and after 590, IMEX"),
    _tests(
        "ubuntu_kernel",
        "Ubuntu with defaults: an update installs a newer kernel, a reboot into it",
        "tests/integration/kernel_update.sh",
    ),
    _tests("elrepo", "Enterprise Linux with ELRepo's driver and its nvidia-detect"),
    _tests("runfile", "the driver as .run installer: install, replace, refuse, remove, change to packages and back"),
    _tests("versions", "ansible-core 2.16 with Python 3.6 on hosts, the newest one, a host without Python"),
    _tests("cuda", "CUDA toolkits as packages and installers, side by side"),
    _tests("cudnn", "cuDNN as archives and packages", "tests/integration/cudnn_role.yml"),
    _tests("engine", "Docker's own engine: conflicts, pins, upgrade, downgrade, options, removal"),
    _tests("engines", "podman and containerd, also containerd 2"),
    _tests(
        "kubernetes_node",
        "nodes of k3s, RKE2 and CRI-O (stand-ins): the kubelet's engine is found, restarted once, reverted",
        "lab/kubernetes/rancher.sh",
        "lab/kubernetes/crio.sh",
    ),
    _tests("runtime", "all container runtime modes, nvidia-docker's migration, driver changes"),
    _tests("verify", "every outcome of the verification"),
    _tests("real_gpu", "what is prepared for a machine with a real GPU, on a lab host", "tools/real_gpu"),
    _tests(
        "upgrade",
        "upgrade of hosts in service: red canary, killed control node, rollback",
        HOOK,
        "tests/integration/upgrade_lost.yml",
    ),
    _tests("upgrade_fleet", "upgrade of 24 mixed hosts, with the control node killed ten times"),
    _tests("upgrade_budget", "upgrade of 24 hosts with failures beyond the budget, then within it"),
    _tests("upgrade_sources", "upgrades without a network of .run and RPM drivers", HOOK),
    _tests(
        "upgrade_ubuntu",
        "upgrades and rollbacks without a network of Ubuntu's packages, compiled on the host and precompiled",
        HOOK,
    ),
    _tests("upgrade_play", "the plays of an upgrade over simulated modules, also with ansible-core 2.16"),
    _tests("upgrade_exclude", "which hosts an upgrade leaves out"),
    _tests("sudo", "messages of a run where sudo refuses"),
    _tests(
        "drain",
        "drain by docker, Slurm, Kubernetes and own tasks",
        "tests/integration/drain.yml",
        "tests/integration/drain_hook.yml",
    ),
    Part(
        "kubernetes_build",
        "Kubernetes from Debian's source package, for the lab's cache",
        (sys.executable, "-m", "gpu_ready_lab", "kubernetes"),
        ("lab/gpu_ready_lab/data/kubernetes", "lab/gpu_ready_lab/kubernetes.py"),
    ),
    _tests(
        "kubernetes",
        "a real control plane and kubelets: device plugin, sharing, CDI, test pods, drains, removal",
        *CLUSTER,
        "tests/integration/drain.yml",
    ),
    _tests(
        "kubernetes_upgrade",
        "upgrades and a rollback of nodes of a real cluster: failed canary, pods of DaemonSets that hold GPUs",
        *CLUSTER,
    ),
    _tests("in_use", "hosts with running work: each kind, each disruption, with and without permission"),
    _tests("nvlink5", "a host with NVLink 5 switches: what its fabric manager needs, installed and removed"),
    _tests("pull", "a host that provisions itself by ansible-pull; the audit", "deploy/pull"),
    _tests("faults", "wrong settings, broken mirrors, killed runs, uninstall"),
    _tests("settings", "parameters of the kernel module, and persistence mode on Ubuntu's and Debian's archive"),
    _tests(
        "monitoring",
        "faults of lab hosts and their alerts in a real Prometheus and Alertmanager; containers; DCGM",
        "deploy/monitoring",
    ),
    _tests("monitoring_rpm", "monitoring on Enterprise Linux: DCGM, EPEL's node_exporter, version locks, removal"),
    _tests("vendors", "defaults: the vendors' own names with TLS, and faults of their servers"),
    _tests("faults_environment", "broken hosts and networks before anything is installed"),
    _tests("failure", "builds, modules and services that fail"),
    _tests("security", "hostile settings, ownership and modes"),
    _tests("hostile", "a sample of every wrong answer of a host for every module", "tests/hostile"),
    _tests("hostile_host", "a hostile host behind ssh", "tests/hostile"),
    _tests("simulation", "a small simulated fleet: killed and repeated, and beyond its budget", "bench"),
    _tests("setups", "set-ups of other people: setups.md", "docs/inventories.md", "tools/build_collection.py"),
    _tests("molecule", "the molecule scenarios", "molecule"),
    _tests(
        "galaxy_import", "what Galaxy checks when a collection is uploaded", "galaxy.yml", "tools/build_collection.py"
    ),
    _tests("mirror_dnf", "the lab's RPM repositories, read by a real dnf"),
    _tests("vm_sample", "guest: power cut during the driver's installation", GUESTS),
    _tests("vm_chooser", "guest: NVIDIA's real modules against the catalog's choice", GUESTS),
    _tests("vm_driver", "guest: version mismatch, driver in use", GUESTS),
    _tests("vm_kernel", "guest: nouveau, an operator's reboots, a kernel upgrade", GUESTS),
    _tests("vm_upgrade", "guests: 535 to 550, live and by reboot", GUESTS),
    _tests("vm", "guests of Debian 12 and 13 from nouveau to a verified container", GUESTS),
    _tests("vm_power", "guest: power cuts at every stage", GUESTS),
    _tests("fault_grid", "a sample of every fault and cut at every task, on a Debian and a Rocky host"),
    Part(
        "bench",
        "a small run of `make bench`, so that it stays runnable",
        (sys.executable, "bench/run.py", "--small"),
        (*PRODUCT, *LAB, "bench", "tools/payload.py"),
    ),
)


# ---- running --------------------------------------------------------------------------------------


def run(part: Part) -> Result:
    """Run a part; its output is written to a log in LOGS, which exists."""
    log = LOGS / f"{part.name}.log"
    environment = dict(os.environ, GPU_READY_CAMPAIGN="1", PYTHONPATH=str(ROOT / "lab"))
    started, commit = time.monotonic(), _commit(part)
    with log.open("wb") as output:
        status = subprocess.run(
            part.command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
        ).returncode
    return Result(
        commit=commit,
        date=datetime.now(UTC).date().isoformat(),
        result=outcome(status, log.read_text(encoding="utf-8", errors="replace")),
        minutes=round((time.monotonic() - started) / 60, 1),
        stale=False,
    )


def outcome(status: int, log: str) -> str:
    """Result of a part, by its exit status and log; pytest succeeds also where it skipped every test."""
    if status != 0:
        return f"{FAILED} (status {status})"
    summary = log.rstrip().rpartition("\n")[2]
    return f"{FAILED} (all tests were skipped)" if " skipped" in summary and " passed" not in summary else PASSED


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def _commit(part: Part) -> str:
    dirty = _git("status", "--porcelain", "--", *part.inputs)
    return _git("rev-parse", "--short=10", "HEAD") + ("+" if dirty else "")


def is_stale(part: Part, result: Result) -> bool:
    """True if an input of a part has changed since its last run.

    An unknown commit counts as a change, and so do changes that were not committed: nobody knows what was run.
    """
    commit = result["commit"]
    if commit.endswith("+") or _git("ls-files", "--others", "--exclude-standard", "--", *part.inputs):
        return True
    arguments = ["git", "diff", "--quiet", commit, "--", *part.inputs]
    return subprocess.run(arguments, cwd=ROOT, capture_output=True, check=False).returncode != 0


# ---- record and page ------------------------------------------------------------------------------


def read_record() -> dict[str, Result]:
    """Return the last result of each part that was run."""
    record: dict[str, Result] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return record


def write_record(record: Mapping[str, Result]) -> None:
    """Write record and page, with what is stale now."""
    known = {part.name: part for part in PARTS}
    current = {
        name: Result(**{**result, "stale": is_stale(known[name], result)})
        for name, result in record.items()
        if name in known
    }
    RECORD.write_text(json.dumps(current, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    PAGE.write_text(page(current), encoding="utf-8")


HEAD = """# Campaign: the long checks and their last results

Generated by `tools/campaign.py`; do not edit. `make test` runs a sample of each kind of check. `make campaign` runs
everything on all hosts, in parts: those that are not green or are stale. `make campaign PART="vm cuda"` runs the named
ones. A part is stale where the product, the lab or its tests had changed since its commit when this page was written;
`tools/campaign.py --status` says what is stale now. A commit with + had changes that were not committed, so it is
always stale.

| part | what | commit | date | result | minutes |
|---|---|---|---|---|---|
"""


def page(record: Mapping[str, Result]) -> str:
    """Return docs/dev/campaign.md."""
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows(record))


def rows(record: Mapping[str, Result]) -> Iterable[tuple[str, ...]]:
    """Yield the table's rows, one per part."""
    for part in PARTS:
        result = record.get(part.name)
        if result is None:
            yield f"`{part.name}`", part.what, "", "", "not recorded", ""
        else:
            state = result["result"] + (", stale" if result["stale"] else "")
            yield f"`{part.name}`", part.what, result["commit"], result["date"], state, f"{result['minutes']:g}"


def due(record: Mapping[str, Result]) -> list[Part]:
    """Return the parts that are not green or are stale."""
    return [
        part
        for part in PARTS
        if part.name not in record or record[part.name]["result"] != PASSED or is_stale(part, record[part.name])
    ]


def show_status(record: Mapping[str, Result]) -> None:
    """Print a line for each part."""
    for part in PARTS:
        result = record.get(part.name)
        state = "not recorded"
        if result is not None:
            stale = ", stale" if is_stale(part, result) else ""
            state = f"{result['result']}{stale} at {result['commit']}, {result['date']}, {result['minutes']:g} minutes"
        print(f"{part.name:20} {state}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; the exit status is 1 when a part failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(part.name for part in PARTS))
    parser.add_argument("--status", action="store_true")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args(arguments)
    known = {part.name: part for part in PARTS}
    unknown = [name for name in options.parts if name not in known]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(known)}")
    if options.status:
        show_status(read_record())
        return 0
    if options.page:
        write_record(read_record())
        return 0
    LOGS.mkdir(parents=True, exist_ok=True)
    with (LOGS / "running.lock").open("w") as lock:
        # The tests of a part take all fleets of the checkout down when they end, also those of another campaign.
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("campaign: another campaign runs in this checkout. Remedy: wait until it ends", file=sys.stderr)
            return 1
        failed = run_parts([known[name] for name in options.parts] or due(read_record()))
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


def run_parts(parts: Iterable[Part]) -> list[str]:
    """Run and record parts in order; return the names of those that did not pass."""
    failed = []
    for part in parts:
        print(f"{part.name}: {part.what}", flush=True)
        result = run(part)
        print(f"{part.name}: {result['result']} in {result['minutes']:g} minutes", flush=True)
        write_record({**read_record(), part.name: result})
        if result["result"] != PASSED:
            failed.append(part.name)
            print(f"{part.name}: see {LOGS / part.name}.log", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
