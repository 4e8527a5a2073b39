"""The parts of the driver that is left: what a plan holds, or an owner, is named by the next plan of another branch."""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.module_utils.gpu_ready.packaging.install import Transaction, parse_transaction
from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion.probes import make_probes
from plugins.plugin_utils.gpu_ready.execute.steps import package_transactions
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.driver.parts import named_branch
from tests.unit.goldens import decide
from tests.unit.hosts import H100, T4, bare, carried_out, having, installed, rpm
from tests.unit.plans import all_todo

UBUNTU = [
    "libnvidia-cfg1-{b}{s}",
    "libnvidia-gl-{b}{s}",
    "libnvidia-compute-{b}{s}:i386",
    "nvidia-kernel-common-{b}{s}",
]
UBUNTU += ["nvidia-kernel-source-{b}{s}{f}", "nvidia-firmware-{b}{s}-{b}.90.01", "xserver-xorg-video-nvidia-{b}{s}"]
PARTS = {
    "distro": UBUNTU,
    "cuda_repo": ["libnvidia-cfg1", "nvidia-kernel-common", "nvidia-firmware", "nvidia-persistenced", "libnvidia-ml1"],
    "rpm": ["nvidia-driver-libs", "libnvidia-ml", "nvidia-kmod-common", "nvidia-persistenced", "libnvidia-cfg"],
    "debian": ["libcuda1", "libnvidia-ml1", "nvidia-alternative", "libnvidia-ptxjitcompiler1", "firmware-nvidia-gsp"],
}
"""Parts that a driver's packages depend on, some of them of a foreign architecture."""


class Case(NamedTuple):
    """A driver and the one that replaces it."""

    distro: str
    source: str
    kind: str
    flavour: str
    profile: str
    before: int
    after: int
    switches: bool
    persistence: bool
    owner: bool

    def variables(self, branch: int) -> dict[str, Any]:
        """Return the operator's variables."""
        return {
            "nvidia_driver_source": self.source, "nvidia_driver_branch": str(branch), "nvidia_driver_flavour": self.flavour,
            "nvidia_driver_kernel_modules": self.kind, "nvidia_driver_profile": self.profile,
            "nvidia_driver_persistence": self.persistence, "cuda_toolkit_source": "none", "cudnn_source": "none",
            "gpu_ready_vault": True,
        }  # fmt: skip


def sources() -> list[tuple[str, str, str, str, str, list[int]]]:
    """Return what has two branches at least: distribution, source, kind, flavour, profile, branches."""
    found = []
    for distro in catalog.distros():
        data = catalog.distro(distro)
        for source in driver_sources.source_names(data):
            for kind in driver_sources.module_kinds(data, source):
                for profile in driver_sources.PROFILES:
                    pairs = driver_sources.branch_flavours(data, source, kind, profile)
                    for flavour in driver_sources.FLAVOURS:
                        branches = sorted({branch for branch, one in pairs if one == flavour})
                        if len(branches) > 1 and source != driver_sources.RUNFILE:
                            found.append((distro, source, kind, flavour, profile, branches))
    return found


@st.composite
def cases(draw: st.DrawFn) -> Case:
    distro, source, kind, flavour, profile, branches = draw(st.sampled_from(sources()))
    before, after = draw(st.permutations(branches))[:2]
    return Case(distro, source, kind, flavour, profile, before, after, *(draw(st.booleans()) for _ in range(3)))


def parts_of(case: Case, branch: int) -> list[str]:
    """Return names of parts that come with a branch of a source."""
    if rpm(case.distro):
        return PARTS["rpm"]
    if not case.distro.startswith("ubuntu"):
        return PARTS["debian"]
    named = case.source == "distro" or branch < 590
    series = "-server" if case.source == "distro" else ""
    flavour = "-open" if case.flavour == "open" else ""
    forms = UBUNTU if named else PARTS["cuda_repo"]
    return [form.format(b=branch, s=series, f=flavour) for form in forms]


def with_parts(facts: Facts, case: Case) -> Facts:
    """Return the host with the parts that the packages of its driver depend on, held as by an owner who holds all."""
    version = facts.driver.on_disk.version if facts.driver.on_disk else ""
    more = {name: f"{'3:' if rpm(case.distro) else ''}{version}-1" for name in parts_of(case, case.before)}
    installed = {**more, **facts.packages.installed}
    parts = make_probes().driver_packages(installed)
    held = {*facts.packages.held}
    if case.owner:
        held |= {name for name in installed if name in parts or re.search("nvidia-(fabric|imex|driver-pinning)", name)}
    return having(
        facts,
        packages={"installed": installed, "held": sorted(held)},
        driver={"packages": parts, "held": sorted(held & {*parts})},
    )


def transactions(plan: compose.Plan) -> list[Transaction]:
    """Return the package transactions of the driver's role."""
    return [parse_transaction(one) for one in package_transactions("nvidia_driver", all_todo(plan))]


def names(specs: Iterable[Any]) -> set[str]:
    return {spec.name for spec in specs}


def before_and_after(case: Case) -> tuple[Facts, compose.Plan] | None:
    """Return a host with the first driver, and the plan for the second one; None where a plan refuses."""
    host = bare(H100 if case.switches else T4, distro=case.distro, nvswitches=4 if case.switches else 0)
    first = decide(host, **case.variables(case.before))
    if first.refusals:
        return None
    host = with_parts(carried_out(host, first), case)
    plan = decide(host, **case.variables(case.after))
    return None if plan.refusals else (host, plan)


@given(cases())
def test_what_is_held_is_released_and_named_by_the_plan_of_another_branch(case: Case) -> None:
    """A package manager changes and removes no held package that nobody named."""
    found = before_and_after(case)
    if found is None:
        return
    host, plan = found
    held = {name for name in host.packages.held if "container" not in name}
    unnamed, released = {*held}, set[str]()
    for one in transactions(plan):
        named = {*one.remove} | names(one.names) | names(one.optional)
        unnamed -= named
        released |= {*one.unhold}
        assert named & held <= released | {*one.hold}
    assert not unnamed and held <= released


@given(cases())
def test_nothing_with_another_branch_in_its_name_stays(case: Case) -> None:
    found = before_and_after(case)
    if found is None:
        return
    host, plan = found
    removed = {name for one in transactions(plan) for name in one.remove}
    requested = {name for one in transactions(plan) for name in names(one.names)}
    left = {name for name in host.driver.packages if named_branch(name) not in (None, case.after)}
    assert left <= removed and not removed & requested
    assert not [name for name in requested if named_branch(name) not in (None, case.after)]


@pytest.mark.parametrize(
    ("name", "branch"),
    [
        ("libnvidia-cfg1-580-server", 580),
        ("libnvidia-compute-580-server:i386", 580),
        ("nvidia-firmware-580-server-580.95.05", 580),
        ("cuda-drivers-595", 595),
        ("linux-modules-nvidia-580-server-open-6.8.0-100-generic", 580),
        ("linux-signatures-nvidia-6.8.0-100-generic", None),
        ("nvidia-driver-branch-580-cuda", 580),
        ("kmod-nvidia-580.95.05-5.14.0-570.el9", 580),
        ("nvidia-tesla-470-driver", 470),
        ("xserver-xorg-video-nvidia-470", 470),
        ("akmod-nvidia-470xx", 470),
        ("kmod-nvidia-open-dkms", None),
        ("nvidia-kernel-open-dkms", None),
        ("libnvidia-nvvm70", None),
    ],
)
def test_the_branch_in_a_name(name: str, branch: int | None) -> None:
    assert named_branch(name) == branch


NAMED: list[tuple[Case, dict[str, str], set[str], set[tuple[str, str | None]]]] = [
    (  # the names of the new branch carry it, those of the old one do not; the daemon's name stays
        Case("ubuntu2204", "cuda_repo", "dkms", "open", "full", 595, 580, False, True, False),
        {"nvidia-driver-open": "595.91.07-1ubuntu1", "nvidia-firmware": "595.91.07-1ubuntu1", "nvidia-persistenced": "595.91.07-1ubuntu1"},
        {"nvidia-driver-open", "nvidia-firmware", "nvidia-open"},
        {("nvidia-persistenced", "580.*")},
    ),
    (  # a module of another flavour; of the same branch, the rest stays
        Case("ubuntu2404", "distro", "dkms", "proprietary", "compute", 580, 580, False, True, False),
        {"nvidia-kernel-source-580-server-open": "580.95.05-0ubuntu1", "libnvidia-cfg1-580-server": "580.95.05-0ubuntu1"},
        {"nvidia-kernel-source-580-server-open", "nvidia-dkms-580-server-open", "nvidia-headless-no-dkms-580-server-open"},
        set(),
    ),
    (  # packages for one kernel; signatures have its version; 32 bits follow
        Case("ubuntu2404", "distro", "precompiled", "open", "compute", 580, 595, False, True, False),
        {"linux-objects-nvidia-580-server-open-6.8.0-90-generic": "6.8.0-90.91+1", "linux-signatures-nvidia-6.8.0-90-generic": "6.8.0-90.91+1",
         "libnvidia-compute-580-server:i386": "580.95.05-0ubuntu1"},
        {"linux-objects-nvidia-580-server-open-6.8.0-90-generic", "libnvidia-compute-580-server:i386",
         "linux-modules-nvidia-580-server-open-6.8.0-88-generic", "nvidia-headless-no-dkms-580-server-open", "nvidia-utils-580-server"},
        {("libnvidia-compute-595-server:i386", None)},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("case", "more", "removed", "follow"), NAMED)
def test_what_a_change_of_the_driver_names(
    case: Case, more: dict[str, str], removed: set[str], follow: set[tuple[str, str | None]]
) -> None:
    flavour = "open" if case.before == case.after else case.flavour
    host = installed(case.distro, T4, case.source, f"{case.before}.95.05", flavour, case.kind)
    if case.profile == "full":
        more = {**more, "nvidia-open": f"{case.before}.91.07-1ubuntu1"}
    present = {**host.packages.installed, **more}
    host = having(host, packages={"installed": present}, driver={"packages": make_probes().driver_packages(present)})
    driver = transactions(decide(host, **case.variables(case.after)))[1 if case.source == "cuda_repo" else 0]
    carried = {name for name in host.driver.packages if named_branch(name) not in (None, case.after)}
    assert {*driver.remove} >= removed | carried and {*driver.optional} == follow
    assert {*driver.remove} <= removed | carried | {"libnvidia-compute", "nvidia-dkms-open"}
