"""Hosts with an installed driver, made with the real apt of this machine and the lab's own declarations of packages.

A state is made as gpu-ready makes it: a plan, and each of its transactions simulated by apt, whose answer is written to
dpkg's status. So dependencies, conflicts and transitional names decide, and nothing is unpacked.
"""

import hashlib
import re
import shutil
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gpu_ready_lab import declarations, packages

from plugins.module_utils.gpu_ready.base.host import Host, Result
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
from plugins.plugin_utils.gpu_ready.plan.driver.parts import named_branch
from tests.unit.apt_root import AptRoot
from tests.unit.goldens import decide
from tests.unit.hosts import H100, T4, bare, having
from tests.unit.plans import all_todo

RELEASES = {"ubuntu2204": "5.15.0-160-generic", "ubuntu2404": "6.8.0-100-generic"}
"""The kernels of the lab's hosts (lab/mirror/tables.yml)."""
SERVER = re.compile(r".*nvidia.*-server(-open|-[\d.]+)?$|nvidia-fabricmanager-|linux-(image|headers)-")
"""Packages of Ubuntu's drivers for servers with a module that is built on the host."""
PREFERENCES = "/etc/apt/preferences.d/"
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
    before: int = 580
    after: int = 595

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


def write_repository(directory: Path, repository: str, foreign: bool) -> None:
    """Write a repository whose files have the sizes and checksums of its index; ``foreign``: libraries also for i386.

    Only packages with files that apt itself reads are real: pins.
    """
    directory.mkdir(parents=True)
    index = []
    for package in declared(repository):
        path = directory / package.file_name
        if any(file.path.startswith(PREFERENCES) for file in package.files):
            packages.build(package, path, fetch=lambda *_: b"")
        else:
            path.write_text(f"{package.name} {package.version}".ljust(apt_state.MOST_OF_PINS + 1))
        library = foreign and package.name.startswith("lib")
        index.append(stanza_of(package, path, library))
        if library:
            path = path.with_name(path.name.replace("_amd64", "_i386"))
            path.write_text(f"{package.name} {package.version} i386".ljust(apt_state.MOST_OF_PINS + 1))
            depends = [(name, text) for name, text in package.fields if name != "Depends"] + [("Depends", "libc6")]
            index.append(stanza_of(package._replace(architecture="i386", fields=tuple(depends)), path, library))
    (directory / "Packages").write_text("\n".join(index))


def stanza_of(package: packages.Package, path: Path, library: bool) -> str:
    """Return the stanza of a package in an index; ``library``: of several architectures at once."""
    content = path.read_bytes()
    fields = (*package.fields, *([("Multi-Arch", "same")] if library else []))
    place = f"Filename: ./{path.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"
    return packages._control(package._replace(fields=fields), 1) + place


def write_real_repository(directory: Path, repository: str, branches: Sequence[int]) -> None:
    """Write a repository with packages that dpkg unpacks, without files and scripts, and with what they depend on."""
    directory.mkdir(parents=True)
    of_branches = [one for one in declared(repository) if (named_branch(one.name) or branches[0]) in branches]
    chosen = [one._replace(files=(), scripts=()) for one in of_branches if SERVER.match(one.name)]
    offered = {name for one in chosen for name in (one.name, *names_of(one, "Provides"))}
    needed = {"dpkg", *(name for one in chosen for name in names_of(one, "Depends"))} - offered
    fields = (("Maintainer", packages.MAINTAINER), ("Description", "stand-in"))
    chosen += [packages.Package(name, "9", "amd64", fields, (), (), ()) for name in sorted(needed)]
    for one in chosen:
        packages.build(one, directory / one.file_name, fetch=lambda *_: b"")
    (directory / "Packages").write_text("\n".join(stanza_of(one, directory / one.file_name, False) for one in chosen))


def names_of(package: packages.Package, field: str) -> set[str]:
    """Return the names in a field of a package."""
    return names_in(dict(package.fields).get(field, ""))


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


def make_root(directory: Path, repositories: Sequence[str], foreign: bool = False) -> StateRoot:
    """Return a host that reads these repositories, with stand-ins for what Ubuntu's own base has."""
    root = StateRoot(directory / "root")
    with (root.root / "apt.conf").open("a") as configuration:
        # The status changes several times within a second, which apt's cache would not see.
        configuration.write('Dir::Cache::pkgcache ""; Dir::Cache::srcpkgcache "";\n')
        if foreign:
            configuration.write('APT::Architectures { "amd64"; "i386"; };\n')
    lines = [f"deb [trusted=yes] file:{directory}/{name} ./\n" for name in repositories]
    (root.root / "etc/apt/sources.list").write_text("".join(lines))
    every = [package for repository in repositories for package in declared(repository)]
    offered = {name for package in every for name in (package.name, *names_of(package, "Provides"))}
    needed = {name for package in every for name in names_of(package, "Depends")}
    base = [stanza(name) for name in sorted({"dpkg", *needed} - offered - {"libc6"})]
    base += [stanza("libc6", one, "Multi-Arch: same\n") for one in ("amd64", *(["i386"] if foreign else []))]
    root.status.write_text("".join(base))
    for repository in repositories:
        write_repository(directory / repository, repository, foreign)
    manager(root).update()
    install(root, BASE)
    return root


def copy_root(root: StateRoot, directory: Path) -> StateRoot:
    """Return a host like another one, which reads the same repositories."""
    copy = StateRoot(directory / "root")
    shutil.copytree(root.root, copy.root, dirs_exist_ok=True)
    (copy.root / "apt.conf").write_text((root.root / "apt.conf").read_text().replace(f"{root.root}/", f"{copy.root}/"))
    return copy


def stanza(name: str, architecture: str = "amd64", more: str = "") -> str:
    """Return a stanza of dpkg's status."""
    return f"Package: {name}\nStatus: install ok installed\nArchitecture: {architecture}\n{more}Version: 9:9\n\n"


def manager(root: StateRoot) -> Apt:
    """Return the product's own apt for a host."""
    return Apt(root, locks=(), store=str(root.root / "packages"))


def install(root: StateRoot, names: Iterable[str]) -> None:
    """Install packages as the distribution's own installer does."""
    apply(root, manager(root).simulate("installing", ["install", *names]))


def apply(root: StateRoot, simulation: Simulation) -> None:
    """Write what apt says that a transaction does to dpkg's status, and the pins of its packages."""
    new = [f"{name}={version}" for name, (_, version) in simulation.install.items()]
    shown = root.run(["apt-cache", "show", *new]).out if new else ""
    root.status.write_text(apt_state.replace_packages(root.status.read_text(), simulation, shown))
    for name, (_, version) in simulation.install.items():
        for package in declared("cuda-ubuntu2204"):
            if (package.name, package.version) == (name, version):
                for file in package.files:
                    if file.path.startswith(PREFERENCES):
                        root.write(file.path, file.text or "")
    assert {name: version for name, (_, version) in simulation.install.items()}.items() <= collect_packages(
        root
    ).items()
    assert not {*simulation.remove} & {*collect_packages(root)} and root.run(["apt-get", "check"]).rc == 0


def set_holds(root: StateRoot, names: Iterable[str], want: str) -> None:
    """Hold or release packages."""
    root.status.write_text(apt_state.set_selection(root.status.read_text(), names, want))


def collect_packages(root: StateRoot) -> dict[str, str]:
    """Return the version of each installed package."""
    return apt_facts.dpkg_packages(root).installed


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


def collect(root: Host, state: State) -> Facts:
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


def make_state(root: StateRoot, state: State) -> None:
    """Install the first branch on a bare host."""
    for one in transactions(decide(collect(root, state), **state.variables(state.before))):
        carry_out(root, one)
    if state.foreign:
        series = "-server" if state.source == "distro" else ""
        install(root, [f"libnvidia-{name}-{state.before}{series}:i386" for name in ("compute", "gl")])
    if state.owner_holds:
        set_holds(root, [name for name in collect_packages(root) if "nvidia" in name], "hold")


def label(state: State) -> str:
    """Return a short name of a state."""
    more = {"switches": state.switches, "owner": state.owner_holds, "off": not state.persistence, "i386": state.foreign}
    branches = f"{state.before}to{state.after}"
    words = [state.distro, state.source, state.kind, state.flavour, state.profile, branches]
    return "-".join(words + [word for word, holds in more.items() if holds])
