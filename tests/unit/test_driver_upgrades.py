"""Changes of the driver's branch: the transactions that are prepared are those that are carried out, and apt resolves them.

The states are those of ../shared/findings/hosts.md, section 2: with the arguments of that time 30 of 40 failed in the
preparation, and 7 in the installation.
"""

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import work_directories
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.packaging import install
from plugins.module_utils.gpu_ready.packaging.apt import Apt
from plugins.module_utils.gpu_ready.upgrade import stage
from plugins.plugin_utils.gpu_ready.plan import upgrade
from tests.unit import driver_states
from tests.unit.apt_root import apt_is_here
from tests.unit.driver_states import State, StateRoot
from tests.unit.goldens import decide

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
    State("ubuntu2204", "cuda_repo", switches=True),
    State("ubuntu2204", "cuda_repo", switches=True, owner_holds=True),
    State("ubuntu2404", foreign=True),
    State("ubuntu2404", foreign=True, owner_holds=True),
]
"""The fabric manager of NVIDIA's repository keeps its name, so its hold is released; libraries of i386."""
EXTRA = ("nvidia-firmware", "libnvidia-cfg1")
STATES = [*CUDA, *ARCHIVE, *BEYOND]


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
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], StateRoot]:
    """Hosts without a driver, by their repositories."""
    sources = {
        (one.distro, *([f"cuda-{one.distro}"] if one.source == "cuda_repo" else []), one.foreign) for one in STATES
    }
    return {
        key: driver_states.make_root(tmp_path_factory.mktemp("state"), key[:-1], bool(key[-1]))  # type: ignore[arg-type]
        for key in sources
    }


@pytest.fixture
def host(request: pytest.FixtureRequest, templates: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateRoot:
    state: State = request.getfixturevalue("state")
    monkeypatch.setattr(work_directories, "SMALL_FILES", str(tmp_path))
    key = (state.distro, *([f"cuda-{state.distro}"] if state.source == "cuda_repo" else []), state.foreign)
    return driver_states.copy_root(templates[key], tmp_path)


def drivers(root: StateRoot) -> dict[str, str]:
    """Return the installed packages of NVIDIA's drivers by name, without those that only pin versions."""
    found = driver_states.collect_packages(root)
    return {name: version for name, version in found.items() if "nvidia" in name and "pinning" not in name}


def stays(root: StateRoot, state: State, transactions: list[install.Transaction]) -> None:
    """Prepare the transactions, carry them out, and hold that both call apt with the same arguments."""
    prepared = Recording(root)
    before = root.status.read_text()
    staged = stage.stage_packages(prepared, transactions)
    assert root.status.read_text() == before
    carried: list[list[str]] = []
    for one in transactions:
        carried += driver_states.carry_out(root, one).calls
    assert prepared.arguments == [["--download-only", *argv] for argv in carried]
    installed = driver_states.collect_packages(root)
    assert {one.partition("=")[0] for one in staged.coming} <= {*installed}


@pytest.mark.host_io
@pytest.mark.skipif(not apt_is_here(), reason="there is no apt here")
@pytest.mark.parametrize("state", STATES, ids=driver_states.label)
def test_a_branch_is_replaced_by_another_and_back(host: StateRoot, state: State) -> None:
    """Nothing of the old branch is left, and what a rollback installs are exactly the packages of before."""
    driver_states.make_state(host, state, 580)
    facts, before = driver_states.collect(host, state), drivers(host)
    plan = decide(facts, **state.variables(595))
    assert not plan.refusals
    stays(host, state, driver_states.transactions(plan))
    after = drivers(host)
    assert not [name for name in after if re.search(r"-580\b", name)]
    assert {version.split(".")[0] for name, version in after.items() if not name.startswith("linux-")} == {"595"}
    foreign = [name.replace("-580-", "-595-") for name in before if name.endswith(":i386")]
    assert {*foreign} <= {*after} and bool(foreign) == state.foreign
    recorded = upgrade.installed_driver(facts)
    back = upgrade.rollback_settings(recorded)
    assert back
    given = {name: value for name, value in back._asdict().items() if value}
    plan = decide(driver_states.collect(host, state), **{**state.variables(580), **given})
    assert not plan.refusals
    stays(host, state, driver_states.transactions(plan))
    # What 595 of NVIDIA's repository alone has stays: nothing needs it, and its files have its version in their names.
    assert {name: version for name, version in drivers(host).items() if name not in EXTRA} == before
