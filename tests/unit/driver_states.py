"""Hosts with an installed driver, made with the real apt of this machine and the lab's own declarations of packages.

A state is made as gpu-ready makes it: a plan, and each of its transactions simulated by apt, whose answer is written to
dpkg's status. So dependencies, conflicts and transitional names decide, and nothing is unpacked.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gpu_ready_lab import declarations, packages

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.facts import apt as apt_facts
from plugins.module_utils.gpu_ready.facts.model import DkmsFacts, Facts, ModuleFacts
from plugins.module_utils.gpu_ready.packaging import apt_state
from plugins.module_utils.gpu_ready.packaging.apt import Apt
from plugins.module_utils.gpu_ready.packaging.install import (
    PlannedChange,
    Transaction,
    parse_transaction,
    plan_transaction,
)
from plugins.module_utils.gpu_ready.packaging.manager import Simulation
from plugins.plugin_utils.gpu_ready.completion.probes import make_probes
from plugins.plugin_utils.gpu_ready.execute import steps
from plugins.plugin_utils.gpu_ready.plan import compose
from tests.unit.apt_root import AptRoot
from tests.unit.goldens import decide
from tests.unit.hosts import H100, T4, bare, having
from tests.unit.plans import all_todo

RELEASES = {"ubuntu2204": "5.15.0-160-generic", "ubuntu2404": "6.8.0-100-generic"}
"""The kernels of the lab's hosts (lab/mirror/tables.yml)."""
BASE = ("linux-image-generic",)


class State(NamedTuple):
    """What is installed, and who holds it: gpu-ready as it does by default, or the owner every package of NVIDIA's."""

    distro: str = "ubuntu2404"
    source: str = "distro"
    kind: str = "dkms"
    flavour: str = "open"
    profile: str = "compute"
    switches: bool = False
    persistence: bool = True
    owner_holds: bool = False
    foreign: bool = False  # libraries of i386

    def variables(self, branch: int) -> dict[str, Any]:
        """Return the operator's variables for a branch."""
        return {
            "nvidia_driver_source": self.source, "nvidia_driver_branch": str(branch),
            "nvidia_driver_flavour": self.flavour, "nvidia_driver_kernel_modules": self.kind,
            "nvidia_driver_profile": self.profile, "nvidia_driver_persistence": self.persistence,
            "cuda_toolkit_source": "none", "cudnn_source": "none",
        }  # fmt: skip


@cache
def declared(repository: str) -> tuple[packages.Package, ...]:
    """Return the packages that the lab declares for a repository."""
    return tuple(
        packages.from_declared(one)
        for one in declarations.read_all()
        if one.kind == declarations.DEB and repository in one.repositories
    )


def write_repository(directory: Path, repository: str) -> None:
    """Write a repository whose files have the sizes and checksums of its index.

    Only packages with files that apt itself reads are real: pins.
    """
    directory.mkdir(parents=True)
    index = []
    for package in declared(repository):
        path = directory / package.file_name
        if any(file.path.startswith("/etc/apt/preferences.d/") for file in package.files):
            packages.build(package, path, fetch=lambda *_: b"")
        else:
            path.write_text(f"{package.name} {package.version}".ljust(apt_state.MOST_OF_PINS + 1))
        content = path.read_bytes()
        index.append(
            packages._control(package, 1)
            + f"Filename: ./{path.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"
        )
    (directory / "Packages").write_text("\n".join(index))


class StateRoot(AptRoot):
    """A host whose packages are a text; dpkg reads the same one."""

    @property
    def status(self) -> Path:
        """The file of dpkg's database."""
        return self.root / "var/lib/dpkg/status"

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        return super().run(argv, timeout, {**(env or {}), "DPKG_ADMINDIR": str(self.root / "var/lib/dpkg")})


def names_in(field: str) -> set[str]:
    """Return the names in a Depends field."""
    return {re.split(r"[ (:]", one.strip())[0] for one in re.split(r"[,|]", field) if one.strip()}


def make_root(directory: Path, repositories: Sequence[str]) -> StateRoot:
    """Return a host that reads these repositories, with stand-ins for what Ubuntu's own base has."""
    root = StateRoot(directory / "root")
    lines = [f"deb [trusted=yes] file:{directory}/{name} ./\n" for name in repositories]
    (root.root / "etc/apt/sources.list").write_text("".join(lines))
    offered = {
        name
        for repository in repositories
        for package in declared(repository)
        for field, text in (*package.fields, ("Provides", package.name))
        if field == "Provides"
        for name in names_in(text)
    }
    needed = {
        name
        for repository in repositories
        for package in declared(repository)
        for field, text in package.fields
        if field == "Depends"
        for name in names_in(text)
    }
    root.status.write_text("".join(stanza(name, "9:9", "") for name in sorted(needed - offered)))
    for repository in repositories:
        write_repository(directory / repository, repository)
    manager(root).update()
    install(root, BASE)
    return root


def stanza(name: str, version: str, fields: str, want: str = "install") -> str:
    """Return a stanza of dpkg's status."""
    return f"Package: {name}\nStatus: {want} ok installed\nArchitecture: amd64\nVersion: {version}\n{fields}\n"


def manager(root: StateRoot) -> Apt:
    """Return the product's own apt for a host."""
    return Apt(root, locks=(), store=str(root.root / "packages"))


def install(root: StateRoot, names: Iterable[str]) -> None:
    """Install packages as the distribution's own installer does."""
    apply(root, manager(root).simulate("installing", ["install", *names]))


def apply(root: StateRoot, simulation: Simulation) -> None:
    """Write what apt says that a transaction does to dpkg's status, and the pins of its packages."""
    kept: list[str] = []
    files: dict[str, str | None] = {}
    for one in root.status.read_text().split("\n\n"):
        name = one.partition("\n")[0].removeprefix("Package: ")
        if name and name not in simulation.remove and name not in simulation.install:
            kept.append(one.strip("\n") + "\n\n")
    for name, (_, version) in simulation.install.items():
        package = next(
            one
            for line in (root.root / "etc/apt/sources.list").read_text().splitlines()
            for one in declared(line.split("/")[-2].split(" ")[0])
            if (one.name, one.version) == (name, version)
        )
        files |= {file.path: file.text for file in package.files if file.path.startswith("/etc/apt/preferences.d/")}
        fields = "".join(f"{key}: {value}\n" for key, value in package.fields if key not in ("Description",))
        kept.append(stanza(name, version, fields))
    root.status.write_text("".join(kept))
    for path, text in files.items():
        root.write(path, text or "")


def set_holds(root: StateRoot, names: Iterable[str], want: str) -> None:
    """Hold or release packages."""
    text = root.status.read_text()
    for name in names:
        text = re.sub(rf"(Package: {re.escape(name)}\nStatus: )\w+", rf"\g<1>{want}", text)
    root.status.write_text(text)


def transactions(plan: compose.Plan) -> list[Transaction]:
    """Return the package transactions of the driver's role."""
    return [parse_transaction(one) for one in steps.package_transactions("nvidia_driver", all_todo(plan))]


def carry_out(root: StateRoot, one: Transaction) -> PlannedChange:
    """Do what gpu_packages does with a transaction, as far as apt and dpkg's status are concerned; returns the calls."""
    set_holds(root, one.unhold, "install")
    apt = manager(root)
    planned = plan_transaction(apt, one, apt.installed(), check=True)
    apply(root, planned.simulation)
    set_holds(root, one.hold, "hold")
    return planned


def collect(root: StateRoot, state: State) -> Facts:
    """Return the facts of a host in its present state."""
    kernel = RELEASES[state.distro]
    device = H100 if state.switches else T4
    facts = bare(device, distro=state.distro, nvswitches=4 if state.switches else 0)
    facts = having(
        facts,
        base={
            "kernel": {"running": kernel, "installed": [kernel], "next_boot": kernel, "headers": {kernel: True}},
            "compiler": "/usr/bin/gcc",
        },
        packages=apt_facts.dpkg_packages(root),
    )
    facts = having(facts, base={"nouveau": {"blacklisted": True}})
    parts = make_probes().driver_packages(facts.packages.installed)
    libraries = [name for name in parts if name.startswith("libnvidia-compute")]
    if not libraries:
        return facts
    version = parts[libraries[0]].split("-")[0]
    modules = ModuleFacts(version, state.flavour, f"/lib/modules/{kernel}/nvidia.ko")
    manager_runs = any(name.startswith("nvidia-fabricmanager") for name in facts.packages.installed)
    return having(
        facts,
        driver={
            "on_disk": modules,
            "loaded": ModuleFacts(version, state.flavour),
            "userspace": [version],
            "packages": parts,
            "held": [name for name in facts.packages.held if name in parts],
            "origin": state.source,
            "dkms": [DkmsFacts("nvidia", version, [kernel])] if state.kind == "dkms" else [],
            "persistence": {"running": state.persistence},
            "fabricmanager": manager_runs if state.switches else None,
        },
    )


def nvidia_packages(root: StateRoot) -> list[str]:
    """Return the installed packages whose names say that they are NVIDIA's."""
    return [name for name in apt_facts.dpkg_packages(root).installed if "nvidia" in name]


def make_state(root: StateRoot, state: State, branch: int) -> None:
    """Install a branch on a bare host."""
    for request in transactions(decide(collect(root, state), **state.variables(branch))):
        carry_out(root, request)
    if state.owner_holds:
        set_holds(root, nvidia_packages(root), "hold")
