"""Changes of the driver's branch: the transactions that are prepared are those that are carried out, and apt resolves them.

With the arguments that these tests replaced, 30 of the first 40 states failed in the preparation, and 7 in the
installation.
"""

import re
import shutil
from collections.abc import Iterator
from itertools import permutations, product
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes, work_directories
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.module_utils.gpu_ready.packaging import install
from plugins.module_utils.gpu_ready.packaging.apt import Apt
from plugins.module_utils.gpu_ready.upgrade import stage
from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan import compose, upgrade
from tests.grid import CAMPAIGN, drawn
from tests.unit import driver_states
from tests.unit.apt_root import apt_is_here
from tests.unit.driver_states import State, StateRoot
from tests.unit.goldens import decide
from tests.unit.private_root import PrivateRoot

KINDS = [{"kind": kind, "flavour": flavour, "profile": profile}
         for kind in ("dkms", "precompiled") for flavour in ("open", "proprietary") for profile in ("compute", "full")]  # fmt: skip
ARCHIVE = [
    State("ubuntu2404", **one, **more)  # type: ignore[arg-type]
    for more in ({"owner_holds": True}, {"switches": True}, {}, {"persistence": False})
    for one in KINDS
]
CUDA = [
    State("ubuntu2204", "cuda_repo", flavour=flavour, profile=profile, owner_holds=owner)
    for owner, flavour, profile in product((True, False), ("proprietary", "open"), ("full", "compute"))
]
BEYOND = [
    State("ubuntu2204", "cuda_repo", switches=True, owner_holds=owner) for owner in (True, False)
] + [State("ubuntu2404", foreign=True, owner_holds=owner) for owner in (True, False)]  # fmt: skip
"""The fabric manager of NVIDIA's repository keeps its name, so its hold is released; libraries of i386."""


def all_states() -> Iterator[State]:
    """Yield the states of every pair of branches that the catalog and the lab's repositories have."""
    for distro, source in product(("ubuntu2204", "ubuntu2404"), ("distro", "cuda_repo")):
        data = catalog.distro(distro)
        version = r"(?:lib)?nvidia-(?:driver|compute)-?(\d{3})?.*"
        offered = {int(one.version.split(".")[0]) for one in driver_states.declared(REPOSITORY[source, distro])
                   if re.match(version, one.name) and re.match(r"\d{3}\.", one.version)}  # fmt: skip
        for kind, profile, flavour in product(
            driver_sources.module_kinds(data, source), driver_sources.PROFILES, driver_sources.FLAVOURS
        ):
            pairs = driver_sources.branch_flavours(data, source, kind, profile)
            branches = sorted(branch for branch, one in pairs if one == flavour and branch in offered - {470})
            branches = [branch for branch in branches if flavour in catalog.branch_rules(branch).flavours]
            for before, after in permutations(branches, 2):
                for switches, persistence, owner in product((False, True), repeat=3):
                    foreign = source == "distro" and not owner and persistence
                    given = (distro, source, kind, flavour, profile, switches, persistence, owner, foreign)
                    yield State(*given, before, after)


REPOSITORY = {
    (source, distro): (f"cuda-{distro}" if source == "cuda_repo" else distro)
    for source, distro in product(("distro", "cuda_repo"), ("ubuntu2204", "ubuntu2404"))
}
DAEMON = "nvidia-persistenced"
ALL = list(all_states())
STATES = [*CUDA, *ARCHIVE, *BEYOND, *drawn(ALL, 60)] if CAMPAIGN else [
    *drawn(CUDA, 2), *drawn(ARCHIVE, 3), *drawn(BEYOND, 2), *drawn(ALL, 2)
]  # fmt: skip


class Recording(Apt):
    """apt, with the arguments of its calls that install or download."""

    def __init__(self, root: StateRoot) -> None:
        super().__init__(root, locks=(), store=str(root.root / "packages"))
        self.arguments: list[list[str]] = []

    def run_change(self, what: str, argv: list[str]) -> Result:
        if "--reinstall" not in argv:
            self.arguments.append(argv)
        return super().run_change(what, argv)


@pytest.fixture(scope="module")
def templates() -> dict[tuple[object, ...], StateRoot]:
    """Hosts without a driver that were made already."""
    return {}


@pytest.fixture
def host(
    state: State,
    templates: dict[tuple[object, ...], StateRoot],
    tmp_path_factory: pytest.TempPathFactory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> StateRoot:
    monkeypatch.setattr(work_directories, "SMALL_FILES", str(tmp_path))
    repositories = list(dict.fromkeys([state.distro, REPOSITORY[state.source, state.distro]]))
    key = (*repositories, state.foreign)
    if key not in templates:
        templates[key] = driver_states.make_root(tmp_path_factory.mktemp("state"), repositories, state.foreign)
    return driver_states.copy_root(templates[key], tmp_path)


def drivers(root: StateRoot) -> dict[str, str]:
    """Return the installed packages of NVIDIA's drivers by name, without those that only pin versions."""
    found = driver_states.collect_packages(root)
    return {name: version for name, version in found.items() if "nvidia" in name and "pinning" not in name}


def back_to(facts: Facts) -> dict[str, object]:
    """Return the variables of a rollback to the driver in these facts."""
    installed = upgrade.installed_driver(facts)
    assert installed
    back = upgrade.rollback_settings(installed)
    return {name: value for name, value in back._asdict().items() if value}


def replace(root: StateRoot, plan: compose.Plan) -> None:
    """Check and prepare the transactions of a plan and carry them out: all three with the same calls of apt."""
    assert not plan.refusals
    transactions = driver_states.transactions(plan)
    checked = install.converge(driver_states.manager(root), transactions[0], check=True)
    prepared, before = Recording(root), root.status.read_text()
    staged = stage.stage_packages(prepared, transactions)
    assert root.status.read_text() == before
    planned = [driver_states.carry_out(root, one) for one in transactions]
    carried = [argv for one in planned for argv in one.calls]
    assert checked["removed"] == planned[0].simulation.remove
    assert checked["installed"] == {name: new for name, (_, new) in planned[0].simulation.install.items()}
    assert prepared.arguments == [["--download-only", *argv] for argv in carried]
    assert {one.partition("=")[0] for one in staged.coming} <= {*driver_states.collect_packages(root)}


@pytest.mark.host_io
@pytest.mark.skipif(not apt_is_here(), reason="there is no apt here")
@pytest.mark.parametrize("state", STATES, ids=driver_states.label)
def test_a_branch_is_replaced_by_another_and_back(host: StateRoot, state: State) -> None:
    """Nothing of the old branch is left, and what a rollback installs are exactly the packages of before."""
    driver_states.make_state(host, state)
    facts, before = driver_states.collect(host, state), drivers(host)
    replace(host, decide(facts, **state.variables(state.after)))
    after = drivers(host)
    assert not [name for name in after if re.search(rf"-{state.before}\b", name)]
    versions = {version for name, version in after.items() if not name.startswith("linux-")}
    assert {version.split(".")[0] for version in versions} == {str(state.after)}
    foreign = [name.replace(f"-{state.before}-", f"-{state.after}-") for name in before if name.endswith(":i386")]
    assert {*foreign} <= {*after} and bool(foreign) == state.foreign
    replace(host, decide(driver_states.collect(host, state), **{**state.variables(state.before), **back_to(facts)}))
    # 595 of NVIDIA's repository needs the daemon's package; it stays, in the version of the driver.
    restored = drivers(host)
    stays = {} if state.persistence or DAEMON not in restored else {DAEMON: restored[DAEMON]}
    assert restored == {**stays, **before}
    assert all(version.startswith(f"{state.before}.") for version in stays.values())


@pytest.fixture(scope="module")
def real_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two branches of Ubuntu's own driver with open modules."""
    repository = tmp_path_factory.mktemp("real") / "repository"
    driver_states.write_real_repository(repository, "ubuntu2404", [580, 595])
    return repository


@pytest.fixture
def manifest_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "manifest.json")
    for function in (manifest.read, manifest_notes.note, manifest_notes.drop, manifest_notes.note_packages):
        monkeypatch.setattr(function, "__defaults__", (path,))
    monkeypatch.setattr(manifest_notes.forget_packages, "__defaults__", ((), path))


@pytest.mark.host_io
@pytest.mark.skipif(not apt_is_here(), reason="there is no apt here")
@pytest.mark.parametrize("state", [State(), State(owner_holds=True, switches=True)], ids=driver_states.label)
def test_what_was_prepared_is_installed_without_a_network(
    state: State, tmp_path: Path, real_repository: Path, manifest_path: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With apt and dpkg that really install: the repository is away from the end of the preparation on."""
    monkeypatch.setattr(work_directories, "SMALL_FILES", str(tmp_path))
    host, repository = PrivateRoot(tmp_path / "root"), tmp_path / "repository"
    (host.root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] copy:{repository} ./\n")
    shutil.copytree(real_repository, repository)

    def manager() -> Apt:
        return Apt(host, locks=(), store=str(host.root / "packages"))

    def carry_out(plan: compose.Plan) -> None:
        assert not plan.refusals
        for one in driver_states.transactions(plan):
            install.converge(manager(), one, check=False)

    manager().update()
    manager().run_change("installing the base", ["install", "dpkg", *driver_states.BASE])
    carry_out(decide(driver_states.collect(host, state), **state.variables(state.before)))
    before = manager().installed()
    if state.owner_holds:
        manager().hold([name for name in before if "nvidia" in name])
    facts = driver_states.collect(host, state)
    plan = decide(facts, **state.variables(state.after))
    staged = stage.stage_packages(manager(), driver_states.transactions(plan))
    stage.keep_for_rollback(manager(), staged, [])
    shutil.move(repository, f"{repository}.away")
    carry_out(plan)
    after = {name: one for name, one in manager().installed().items() if one.state == "installed" and "nvidia" in name}
    assert not [name for name in after if "-580" in name] and [name for name in after if "-595" in name]
    held = {name for name, one in after.items() if one.hold}
    assert {"nvidia-dkms-595-server-open", "nvidia-compute-utils-595-server"} <= held
    assert ("nvidia-fabricmanager-595" in held) == state.switches
    carry_out(decide(driver_states.collect(host, state), **{**state.variables(state.before), **back_to(facts)}))
    restored = {name: one.version for name, one in manager().installed().items() if one.state == "installed"}
    assert restored == {name: one.version for name, one in before.items()}
    assert host.run(["dpkg", "--audit"]).out == ""
