"""What the grid of faults consists of, and docs/dev/faults.md made of its record. Pure: values in, text out."""

import fnmatch
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

HOSTS = ("c-deb", "c-rpm")
LONG = 4.0  # seconds; a task that takes longer is also broken in its middle
START = "from the start"


class Fault(NamedTuple):
    """A fault of the environment and when it occurs: at the start, or before the first task whose name matches."""

    name: str
    arguments: tuple[str, ...] = ()
    before: str | None = None
    only: tuple[str, ...] = HOSTS
    variables: tuple[tuple[str, str], ...] = ()
    """Of the run with the fault."""
    prepare: tuple[tuple[str, str], ...] = ()
    """Of a complete run before the fault, which leaves a host in use."""
    passes: bool = False
    """A run completes despite it. One run may meet several of these, each from its task until the task of the next."""
    keeps: tuple[str, ...] = ()
    """Globs of paths that the fault changes for good, among them directories that no RPM of the lab owns."""

    def title(self) -> str:
        """The fault as arguments of the lab's command line."""
        return " ".join([self.name, *self.arguments])

    def moment(self) -> str:
        """When it occurs, as the page shows it."""
        return f"before {self.before}" if self.before else "on a host in use" if self.prepare else START


class Cell(NamedTuple):
    """The key of a row of the page."""

    part: str
    host: str
    fault: str
    moment: str


DISTRO = "*.debian.org/*"
VENDOR = "*/cuda/repos/*"
CONTAINERS = "*/libnvidia-container/*"
INSTALL = "nvidia_driver : install | Driver packages*"
DEB, RPM = ("c-deb",), ("c-rpm",)
OLDER = "580.95.05"
OWN_KEY = (
    "/etc/docker/daemon.json",
    "/var/lib/gpu-ready/backup*",
    "/var/lib/gpu-ready/manifest.json#daemon_json",
)
"""What differs where a daemon.json existed before: the file, gpu-ready's copy of it, and its record in the manifest."""
# Faults that stop a run before it has changed anything come first: the next run meets the same bare host. Faults that
# stop it later follow in the order of the tasks.
ENVIRONMENT = (
    Fault("mirror-down"),
    Fault("clock", ("-4000",)),
    Fault("clock", ("9000",)),
    Fault("dns"),
    Fault("read-only", ("/usr",)),
    Fault("read-only", ("/etc",)),
    Fault("half-configured", ("1",), only=DEB),
    Fault("headers-missing"),
    Fault("sudo-password", variables=(("ansible_user", "visitor"),)),
    Fault("python-missing"),
    Fault("python-old"),
    Fault("package-lock", ("1000",)),
    Fault("mirror-404", ("*.deb",), only=DEB),
    Fault("mirror-404", ("*.rpm",), only=RPM),
    Fault("mirror-truncated", ("*.deb",), only=DEB),
    Fault("mirror-truncated", ("*.rpm",), only=RPM),
    Fault("mirror-corrupt", ("*.deb",), only=DEB),
    Fault("mirror-corrupt", ("*.rpm",), only=RPM),
    Fault("mirror-corrupt", (DISTRO,), only=DEB),
    Fault("disk-full", only=DEB),
    Fault("disk-full", ("/usr/src", "4k"), only=RPM),
    Fault("disk-full", ("/var/lib/gpu-ready", "4k")),
    Fault("mirror-404", (VENDOR,)),
    Fault("mirror-500", (VENDOR,)),
    Fault("mirror-signature", only=DEB),
    Fault("mirror-expired-key", only=DEB),
    Fault("mirror-hang", (VENDOR,)),
    Fault("mirror-down", before=INSTALL),
    Fault("docker-refuses", before="docker_engine : install | *"),
    Fault("mirror-signature", (CONTAINERS,), only=RPM),
    Fault("gpu-off-bus", before="gpu_verify : *"),
    # A run completes despite these.
    Fault("package-lock", ("40",), before="kernel_headers : install | *", passes=True),
    Fault("half-configured", ("0",), before="nvidia_driver : install | Package*", passes=True, only=DEB),
    Fault("tmp-noexec", before=INSTALL, passes=True),
    Fault("mirror-slow", (CONTAINERS,), before="nvidia_container_runtime : repository | *", passes=True),
    Fault("daemon-json", before="nvidia_container_runtime : configure | *", passes=True, keeps=OWN_KEY),
    Fault("second-run", before=INSTALL),
    Fault(
        "libraries-moved",
        prepare=(("nvidia_driver_version", OLDER), ("nvidia_driver_hold", "false")),
        # The package that pins the branch was not installed by this run, so the manifest does not list it.
        keeps=(
            f"/usr/lib/firmware/nvidia/{OLDER}",
            f"/usr/src/nvidia*-{OLDER}",
            "/var/lib/gpu-ready/manifest.json#packages",
        ),
    ),
)
CUTS = {"control": "control node dies", "ssh": "SSH connections cut", "power": "power cut"}
PARTS = ("environment", *CUTS)


def faults_of(host: str, names: Iterable[str] | None = None) -> list[Fault]:
    """The faults of the environment for a host: all, or only those with these names."""
    chosen = None if names is None else set(names)
    return [each for each in ENVIRONMENT if host in each.only and (chosen is None or each.name in chosen)]


def cuts_of(tasks: Iterable[tuple[str, float]]) -> Iterator[tuple[str, str, float]]:
    """Where a run is cut: the row's moment, the task, and the seconds into the task."""
    for name, seconds in tasks:
        yield f"before {name}", name, 0.0
        if seconds > LONG:
            yield f"in the middle of {name}", name, seconds / 2


def task_of(fault: Fault, tasks: Iterable[tuple[str, float]]) -> str | None:
    """The task of an undisturbed run before which a fault occurs."""
    return next((name for name, _ in tasks if fnmatch.fnmatchcase(name, fault.before or "")), None)


def cells(undisturbed: dict[str, Any]) -> list[Cell]:
    """All cells of the grid, whether they were run or not."""
    found = []
    for part in PARTS:
        for host in HOSTS:
            tasks = undisturbed.get(host, {}).get("tasks", [])
            if part == "environment":
                found += [Cell(part, host, each.title(), each.moment()) for each in faults_of(host)]
            elif tasks:
                found += [Cell(part, host, CUTS[part], moment) for moment, _, _ in cuts_of(tasks)]
            else:
                found.append(Cell(part, host, CUTS[part], "all"))
    return found


def cell_of(row: dict[str, str]) -> Cell:
    return Cell(row["part"], row["host"], row["fault"], row["moment"])


HEAD = """# Faults: what happens to a disturbed run

Generated by `tools/fault_grid.py`; do not edit. Hosts are containers of the lab: c-deb is a Debian 13, c-rpm a host
dressed as Rocky Linux 9. Each row is a run of `site.yml` on a bare host with a fault of `lab/`, the fault healed, and
then one of two things:

- *as it was*: every file and package of the host is as before the run (the next fault then meets the same host);
- *repaired*: a second run of the same command finished with the files of an undisturbed run; a third changed nothing.

Compared are paths, modes, owners, contents and packages, without what `lab/gpu_ready_lab/footprint.py` names and
explains. A row is green if the run finished, or stopped with a message for the operator, and the host is one of these.
Cuts form a series, and so do faults that stop a run halfway: each run continues where the one before stopped, and the
last is repaired. Faults and cuts that a run survives may share one run; such a fault lasts until the task of the next.
The control node dies, SSH and power are cut at each boundary of tasks that change something, and in the middle of each
such task of more than 4 seconds. At a boundary the host is up again before the task begins. A cell that was not run is
listed as such. A commit with + had uncommitted changes. MIRROR replaces the name of the Debian archive server that a
host uses. A container that loses its power keeps what it wrote, since its kernel keeps running: the loss of unwritten
data is tested on guests, by `tests/integration/test_vm_sample.py` and `test_vm_power.py` (lab.md).

"""


def page(record: dict[str, Any]) -> str:
    """The text of docs/dev/faults.md."""
    rows = {cell_of(row): row for row in record["rows"]}
    known = cells(record["undisturbed"])
    text = HEAD + "| faults | host | cells | green | red | not run |\n|---|---|---|---|---|---|\n"
    for part in PARTS:
        for host in HOSTS:
            colours = [rows.get(cell, {}).get("colour") for cell in known if (cell.part, cell.host) == (part, host)]
            counts = [len(colours), *(colours.count(colour) for colour in ("green", "red", None))]
            text += f"| {_heading(part)} | {host} | {' | '.join(str(number) for number in counts)} |\n"
    for part in PARTS:
        text += f"\n## {_heading(part)}\n\n"
        text += "| host | fault | moment | outcome | what the operator reads | afterwards | commit |\n"
        text += "|---|---|---|---|---|---|---|\n"
        for cell in known:
            if cell.part == part:
                text += _line(cell, rows.get(cell))
    return text


def _heading(part: str) -> str:
    return CUTS.get(part, "faults of the environment").capitalize().replace("Ssh", "SSH")


def _line(cell: Cell, row: dict[str, str] | None) -> str:
    """A row of the page."""
    columns = ["not run", "", "", ""]
    if row is not None:
        outcome = f"{row['outcome']}, {row['seconds']} s"
        columns = [outcome if row["colour"] == "green" else f"**{row['colour']}**: {outcome}"]
        columns += [row["message"], row["afterwards"], row["commit"]]
    fields = [cell.host, f"`{cell.fault}`", cell.moment.replace("*", "…"), *columns]
    return "| " + " | ".join(field.replace("|", "\\|").replace("<", "&lt;") for field in fields) + " |\n"
