"""Run the long checks: all of them at one commit, and write what passed to docs/dev/campaign.md.

usage: tools/campaign.py [--seed SEED]     a whole run; continues one at this commit that was interrupted
       tools/campaign.py PART... [--seed SEED]      these parts, without a record
       tools/campaign.py --list            the parts: what they check, their minutes, the last defect that they found

A maintainer runs it before a release: as root on a machine of its own with two cores, where it takes ten hours at most.
Parts that draw samples print the seed, which is the date; --seed repeats one. Logs are in build/campaign.
"""

import argparse
import ast
import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TypedDict

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/dev/campaign.md"
BUILD = ROOT / "build/campaign"
PASSED, FAILED = "passed", "FAILED"
PYTEST = (sys.executable, "-m", "pytest", "-v", "--durations=25")
SEED = "SEED"
"""In the command of a part: the seed of the run."""


class Part(NamedTuple):
    """A part of the campaign."""

    name: str
    minutes: float
    """On two cores: as the last run took them; an estimate where it never ran."""
    found: str
    """The last defect that it found, with the commit that corrected it."""
    does: str = ""
    """What it checks; default: what the integration test file of this name says in its first line."""
    command: tuple[str, ...] = ()
    """Default: all tests of that file, on all hosts of its fleets."""

    @property
    def file(self) -> str:
        """Path of its integration test file."""
        return f"tests/integration/test_{self.name}.py"

    @property
    def what(self) -> str:
        """What it checks."""
        text = self.does or ast.get_docstring(ast.parse((ROOT / self.file).read_text(encoding="utf-8"))) or ""
        return text.partition("\n\n")[0].replace("\n", " ")

    def argv(self, seed: str) -> list[str]:
        """Return the command of the part."""
        command = self.command or (*PYTEST, self.file)
        return [word.replace(SEED, seed) for word in command]


PARTS = (
    Part("unit", 30, "a change of the runtime mode left imports in containerd's configuration (bc03a79f)",
         "unit tests with all cases of their grids and new examples for the property tests",
         (*PYTEST, "-q", "--hypothesis-profile=search", f"--hypothesis-seed={SEED}", "tests/unit", "tests/corpus")),
    Part("demo", 2.8, "provisioning failed where no tool makes initial RAM disks (e3af2ede)"),
    Part("distributions", 12, "the removal left the directories of module sources (31da57c3)"),
    Part("pasts", 26,
         "a third-party DKMS module that does not build broke the installation of kernel headers (8b06b224)"),
    Part("ubuntu", 2.1, "IMEX did not follow the driver's version (4da32a81)"),
    Part("ubuntu_kernel", 5, "no GPU was left after a kernel update (0d2b88e0)"),
    Part("elrepo", 1.1, "uninstall.yml left kernel headers on Enterprise Linux (298e083d)"),
    Part("runfile", 4.6, "after the removal a driver that the host itself had loaded stayed loaded (bc8f2779)"),
    Part("versions", 6.7, "an upgrade failed with ansible-core 2.16 (8938c922)"),
    Part("cores", 4,
         "the remedy for a missing action plugin named a directory that does not exist any more (91b27fbf)"),
    Part("cuda", 1.7, "removed toolkits left the configuration of their packages (d30e7a78)"),
    Part("cudnn", 3.4, "the removal of one cuDNN took the linker's file of another (6de0d8aa)"),
    Part("engine", 2.2, "docker did not start on Enterprise Linux 10, which packs kernel modules apart (eba75052)"),
    Part("engines", 3.1, "the toolkit was taken from running containers of containerd (1cc96df0)"),
    Part("kubernetes_node", 2.5, "nodes of k3s and RKE2 did not get the image of the verification (fd7a7a66)"),
    Part("runtime", 9.9, "a container of the driver volume did not start after a power cut (73624752)"),
    Part("verify", 1.5, "a GPU that was lost after its verification stayed verified (8487198e)"),
    Part("real_gpu", 2, "the run left processes behind (05858f43)"),
    Part("upgrade", 8.9, "a lost host that a task file had drained was not undrained (d15b39f8)"),
    Part("upgrade_fleet", 60, "a host that lost its GPUs in the middle of an upgrade counted as upgraded (8ada5175)"),
    Part("upgrade_sources", 2.5, "dnf dropped what an upgrade had fetched before it ended (574cd3b7)"),
    Part("later", 6, "the plan of a rollout did not show what it warns of (2fb96c3b)"),
    Part("upgrade_ubuntu", 2, "Ubuntu's own packages could not be upgraded from 580 to 595 (9428c02a)"),
    Part("package_index", 3, "a firmware package that is named after its release kept point releases away (9f67d6b5)"),
    Part("upgrade_play", 8.2, "a run with a missing task file ended with status 0 (46ea2e52)"),
    Part("sudo", 0.2, "sudo without a terminal had no remedy (c629cea2)"),
    Part("drain", 3, "a pod that was already Terminating ended the drain (c69f3bfe)"),
    Part("health_check", 15, "nothing yet: it has not been run (a lab host with slurmctld and slurmd)"),
    Part("kubernetes_build", 3.3, "the build failed on a machine that had run no lab host (4aa60fb5)",
         "Kubernetes from Debian's source package, for the lab's cache",
         (sys.executable, "-m", "gpu_ready_lab", "kubernetes")),
    Part("kubernetes", 13, "an API server that was away while a node was cordoned failed the drain (6dda525f)"),
    Part("kubernetes_upgrade", 9.6, "pods that a DaemonSet started after the plan blocked the live reload (ece80c11)"),
    Part("in_use", 4.4, "a process could pass as a service of the driver by its name (6eda045b)"),
    Part("nvlink5", 1.8, "mlx5_ib was not loaded, nor infiniband-diags installed (138db84d)"),
    Part("pull", 1, "the reason of a failed service was not found in its journal (3f94f672)"),
    Part("faults", 7.5, "a package that dpkg was killed in was not unpacked again (f437d769)"),
    Part("settings", 8.8, "the pages promised persistence mode for Debian's own driver (bf960165)"),
    Part("monitoring", 4.4, "node_exporter was removed before the service that writes to its directory (571ae6bd)"),
    Part("monitoring_rpm", 1.5, "DCGM could not be held: the program that locks versions was missing (b143bd0a)"),
    Part("vendors", 1.2, "a certificate that is not valid yet did not point to the clock (d10a8799)"),
    Part("faults_environment", 0.9, "the first missing package hid that no package list could be read (fb323539)"),
    Part("failure", 0.3, "apt did not work after a transaction that had failed (6b423a6a)"),
    Part("security", 0.6, "root's programs ran with the umask of the login (a293d093)"),
    Part("hostile", 45, "a silent host held all others for hours (6fe0d035)"),
    Part("hostile_host", 0.4, "a hostile host received the path of the control node's Python (6a2f8130)"),
    Part("simulation", 1.9, "a host was changed by a plan that another run had made out of date (187f3ea2)"),
    Part("setups", 3.1, "a site's own playbook with a role did not find the settings of the whole run (4c102b76)"),
    Part("molecule", 1.3, "a copy of the collection stayed in the home directory (55d6d76f)"),
    Part("galaxy_import", 0.3, "Galaxy imports no collection with a role that has no page (ec326249)"),
    Part("vm_sample", 10, "a module that a loss of power left unreadable was not built again (91e6af96)"),
    Part("vm_chooser", 15, "messages proposed branches that the planner refuses (67e2e295)"),
    Part("vm_driver", 15, "a live reload left services stopped where it failed (65ac4c2e)"),
    Part("vm_kernel", 20, "a default of GRUB was taken for the newest kernel (a45310df)"),
    Part("vm_upgrade", 20, "NVIDIA's older installers leave files that the pages did not name (6fa07036)"),
    Part("vm", 20, "nouveau can only be unbound by a reboot, which the pages did not say (3e3d2f7f)"),
    Part("vm_power", 40, "lists that a power cut left empty were not read again (12be47e1)"),
    Part("fault_grid", 60, "after a power cut a driver of NVIDIA's repository was taken for Debian's (70d6eae7)"),
    Part("bench", 8, "half of the CPU time of a host in the desired state was templates (11259151)",
         "a small run of `make bench`",
         (sys.executable, "bench/run.py", "--small")),
)  # fmt: skip


class Result(TypedDict):
    """The end of a part."""

    result: str
    minutes: float


class Run(TypedDict):
    """A whole run, finished or not."""

    commit: str
    seed: str
    date: str
    results: dict[str, Result]


def run_part(part: Part, seed: str) -> Result:
    """Run a part; its output is its log."""
    log = BUILD / f"{part.name}.log"
    environment = os.environ | {"GPU_READY_CAMPAIGN": "1", "GPU_READY_SEED": seed, "PYTHONPATH": str(ROOT / "lab")}
    started = time.monotonic()
    print(f"{part.name}: {part.what}", flush=True)
    with log.open("wb") as output:
        status = subprocess.run(
            part.argv(seed), cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            check=False,
        ).returncode  # fmt: skip
    result = outcome(status, log.read_text(encoding="utf-8", errors="replace"))
    minutes = round((time.monotonic() - started) / 60, 1)
    print(f"{part.name}: {result} in {minutes:g} minutes" + ("" if result == PASSED else f", see {log}"), flush=True)
    return Result(result=result, minutes=minutes)


def outcome(status: int, log: str) -> str:
    """Result of a part, by its exit status and log; pytest succeeds also where it skipped every test."""
    if status != 0:
        return f"{FAILED} (status {status})"
    summary = log.rstrip().rpartition("\n")[2]
    return f"{FAILED} (all tests were skipped)" if " skipped" in summary and " passed" not in summary else PASSED


def git(*arguments: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def whole_run(seed: str | None) -> Run:
    """Run all parts that the whole run at this commit does not have yet; return it. The commit is all that is run."""
    if git("status", "--porcelain"):
        raise SystemExit("campaign: there are uncommitted changes. Remedy: commit them, or name the parts to run")
    state, commit, today = BUILD / "run.json", git("rev-parse", "--short=10", "HEAD"), f"{datetime.now(UTC):%Y-%m-%d}"
    run = Run(commit=commit, seed=seed or today, date=today, results={})
    if state.exists():
        begun: Run = json.loads(state.read_text(encoding="utf-8"))
        if begun["commit"] == commit and seed in (None, begun["seed"]) and len(begun["results"]) < len(PARTS):
            run = begun
    print(f"campaign: commit {commit}, seed {run['seed']}, {len(PARTS) - len(run['results'])} parts", flush=True)
    for part in PARTS:
        if part.name not in run["results"]:
            run["results"][part.name] = run_part(part, run["seed"])
            state.write_text(json.dumps(run, indent=1), encoding="utf-8")
    return run


HEAD = """# Campaign: the last whole run of the long checks

Generated by `make campaign`; do not edit. `make test` runs a few cases of each kind of check, `make campaign` all, and
of the largest grids a sample. `tools/campaign.py --list` says what each part checks.

"""
NO_RUN = "There has been no whole run yet.\n"


def page(run: Run | None) -> str:
    """Return docs/dev/campaign.md."""
    if run is None:
        return HEAD + NO_RUN
    results = run["results"]
    passed = sum(one["result"] == PASSED for one in results.values())
    total = sum(one["minutes"] for one in results.values())
    text = f"Commit {run['commit']}, {run['date']}, seed {run['seed']}: "
    text += f"{passed} of {len(results)} parts passed, {total:.0f} minutes.\n"
    rows = [f"| `{name}` | {one['result']} | {one['minutes']:g} |\n" for name, one in results.items()]
    return HEAD + text + "\n| part | result | minutes |\n|---|---|---|\n" + "".join(rows)


def listed() -> str:
    """Return what --list prints."""
    lines = [f"{part.name} ({part.minutes:g} minutes): {part.what}\n    found: {part.found}\n" for part in PARTS]
    return "".join(lines) + f"{sum(part.minutes for part in PARTS):.0f} minutes\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; the exit status is 1 if a part failed."""
    known: Mapping[str, Part] = {part.name: part for part in PARTS}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[[], *known])
    parser.add_argument("--seed")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(arguments)
    if options.list:
        print(listed(), end="")
        return 0
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "running.lock").open("w") as lock:
        # The tests of a part take all fleets of the checkout down when they end, also those of another campaign.
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("campaign: another campaign runs in this checkout. Remedy: wait until it ends", file=sys.stderr)
            return 1
        if options.parts:
            seed = options.seed or f"{datetime.now(UTC):%Y-%m-%d}"
            print(f"campaign: seed {seed}", flush=True)
            results = {name: run_part(known[name], seed) for name in options.parts}
        else:
            run = whole_run(options.seed)
            results = run["results"]
            PAGE.write_text(page(run), encoding="utf-8")
    failed = [name for name, one in results.items() if one["result"] != PASSED]
    print(f"failed: {', '.join(failed)}" if failed else "all passed")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
