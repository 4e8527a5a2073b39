"""What the operator names and the catalog does not know is planned with a notice; what always applies refuses it."""

from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan import compose
from tests.unit.goldens import decide
from tests.unit.hosts import H100, K80, T4, V100, bare, carried_out

NEW = catalog.branches()[-1].number + 20
"""A branch after all of the catalog."""
VERSION = f"{NEW}.12.01"
FILE = f"/srv/NVIDIA-Linux-x86_64-{VERSION}.run"
MAJOR = int(catalog.toolkits()[-1].version.split(".")[0])
MINOR = int(catalog.toolkits()[-1].version.split(".")[1])
CUDNN = int(catalog.cudnns()[-1].version.split(".")[0]) + 1
OPEN_ENDED = [
    (distro, source)
    for distro in catalog.distros()
    for source in driver_sources.source_names(catalog.distro(distro))
    if source in ("cuda_repo", "distro") and driver_sources.carries(catalog.distro(distro), source, "dkms", NEW)
]


def notices(decided: compose.Plan) -> list[str]:
    return [one.message for one in decided.warnings if one.code == "not_in_catalog"]


def codes(decided: compose.Plan) -> list[str]:
    return [one.code for one in decided.refusals]


def parameters(decided: compose.Plan, step: str) -> Any:
    return next(one.params for one in decided.steps if one.id == step)


def test_repositories_that_follow_nvidia_may_have_a_branch_that_the_catalog_does_not_know() -> None:
    assert {("el9", "cuda_repo"), ("debian13", "cuda_repo"), ("ubuntu2404", "cuda_repo")} <= set(OPEN_ENDED)
    # Their lists are closed: frozen, or another vendor's choice.
    assert not {("centos7", "cuda_repo"), ("fedora42", "cuda_repo"), ("debian12", "distro")} & set(OPEN_ENDED)


@pytest.mark.parametrize(("distro", "source"), OPEN_ENDED)
@pytest.mark.parametrize("named", [{"nvidia_driver_branch": str(NEW)}, {"nvidia_driver_version": VERSION}])
def test_a_named_branch_or_version_is_planned_with_a_notice(distro: str, source: str, named: dict[str, str]) -> None:
    host = bare(H100, distro=distro)
    decided = decide(host, nvidia_driver_source=source, **named)
    assert decided.refusals == []
    driver = decided.choices.driver
    assert driver and (driver.branch, driver.flavour) == (NEW, "open")
    assert any(str(NEW) in text for text in notices(decided))
    # Nothing but the version, a pin or the name keeps the packages on a branch that no list of the catalog has.
    install = parameters(decided, "nvidia_driver.install")
    names = [one.name for one in install.packages] + install.pin_packages + list(install.streams.values())
    versions = [one.version or "" for one in install.packages]
    assert any(str(NEW) in text for text in [*names, *versions])
    after = decide(carried_out(host, decided), nvidia_driver_source=source, **named)
    assert not after.steps and not after.refusals and not notices(after)


@pytest.mark.parametrize("distro", catalog.distros())
def test_an_own_installer_is_planned_on_every_system(distro: str) -> None:
    decided = decide(bare(H100, distro=distro), nvidia_driver_runfile=FILE, cuda_toolkit_source="none")
    if distro == "centos7":
        assert codes(decided) == ["kernel_below_branch"]
        (refusal,) = decided.refusals
        assert "from 4.15 on" in refusal.message and "boot a newer kernel" in refusal.remedy
        return
    assert decided.refusals == []
    assert parameters(decided, "nvidia_driver.runfile").source == FILE
    assert len(notices(decided)) == 1


def test_an_installer_without_a_version_has_no_address() -> None:
    (refusal,) = decide(
        bare(H100, distro="el9"), nvidia_driver_source="runfile", nvidia_driver_branch=str(NEW)
    ).refusals
    assert refusal.code == "source_impossible"
    decided = decide(bare(H100, distro="el9"), nvidia_driver_source="runfile", nvidia_driver_version=VERSION)
    assert decided.refusals == [] and VERSION in parameters(decided, "nvidia_driver.runfile").source


@pytest.mark.parametrize(
    ("device", "named", "code"),
    [
        (V100, {"nvidia_driver_branch": str(NEW)}, "branch_above_ceiling"),
        (V100, {"nvidia_driver_runfile": FILE}, "branch_above_ceiling"),
        (K80, {"nvidia_driver_version": VERSION}, "branch_above_ceiling"),
        (H100, {"nvidia_driver_branch": str(NEW), "nvidia_driver_flavour": "proprietary"}, "flavour_impossible"),
    ],
)
def test_ceilings_and_flavours_hold_for_what_the_catalog_does_not_know(
    device: str, named: dict[str, str], code: str
) -> None:
    decided = decide(bare(device, distro="el9"), **named)
    assert codes(decided) == [code] and not decided.steps


@pytest.mark.parametrize("distro", ["fedora42", "ubuntu2004"])
def test_a_source_with_a_closed_list_is_no_source_of_a_new_branch(distro: str) -> None:
    assert codes(decide(bare(H100, distro=distro), nvidia_driver_branch=str(NEW))) == ["branch_not_carried"]


def test_an_unknown_branch_before_a_list_is_not_in_it() -> None:
    assert codes(decide(bare(H100, distro="el10"), nvidia_driver_branch="545")) == ["branch_not_carried"]
    assert codes(decide(bare(H100, distro="el9"), nvidia_driver_branch="545")) == []


def test_an_unknown_branch_between_two_has_the_flavours_of_the_one_before() -> None:
    assert catalog.branch_rules(545).flavours == ("open", "proprietary")
    assert catalog.branch_rules(NEW).flavours == ("open",)


def test_a_version_after_the_newest_of_its_branch_is_named() -> None:
    newest = catalog.branch(580)
    assert newest is not None
    later = decide(bare(T4, distro="el9"), nvidia_driver_version="580.999.01")
    assert later.refusals == [] and "580.999.01" in notices(later)[0]
    assert notices(decide(bare(T4, distro="el9"), nvidia_driver_version=newest.newest)) == []


@pytest.mark.parametrize("version", [f"{MAJOR}.{MINOR + 1}", f"{MAJOR + 1}.0", f"{MAJOR}.{MINOR + 1}.2"])
def test_an_unknown_toolkit_comes_from_the_repository_with_a_notice(version: str) -> None:
    decided = decide(bare(H100, distro="el9"), cuda_toolkit_versions=[version], cudnn_source="none")
    assert decided.refusals == []
    series = ".".join(version.split(".")[:2])
    names = [one.name for one in parameters(decided, "cuda_toolkit.install").packages]
    assert names == ["cuda-toolkit-" + series.replace(".", "-")]
    assert any("CUDA " + series in text for text in notices(decided))


def test_an_unknown_toolkit_of_a_known_major_has_its_limits() -> None:
    given: dict[str, Any] = {"cuda_toolkit_versions": [f"{MAJOR}.{MINOR + 1}"], "cudnn_source": "none"}
    assert codes(decide(bare(V100, distro="debian12"), **given)) == ["cuda_drops_gpu"]
    decided = decide(bare(T4, distro="el9"), nvidia_driver_branch="570", **given)
    assert codes(decided) == ["cuda_above_driver"]


def test_what_an_unknown_toolkit_compiles_for_has_no_end() -> None:
    rules = catalog.toolkit_rules(f"{MAJOR}.{MINOR + 1}")
    assert rules is not None and rules.compute == (catalog.toolkits()[-1].compute[0], catalog.NO_LIMIT)
    assert catalog.toolkit_rules(f"{MAJOR + 1}.0") is None


def test_an_unknown_release_is_installed_by_nvidias_installer() -> None:
    version = f"{MAJOR}.{MINOR + 1}.0"
    decided = decide(bare(H100, distro="el9"), cuda_toolkit_versions=[version], cuda_toolkit_source="runfile")
    assert decided.refusals == []
    (installer,) = parameters(decided, "cuda_toolkit.runfile").installers
    assert installer.source.endswith(f"/cuda_{version}_linux.run") and installer.md5_url


@pytest.mark.parametrize("distro", ["el9", "debian12"])
def test_packages_of_an_unknown_cudnn_have_the_names_of_the_last_known_one(distro: str) -> None:
    decided = decide(bare(H100, distro=distro), cudnn_source="package", cudnn_version=f"{CUDNN}.0.0.1")
    assert decided.refusals == []
    packages = parameters(decided, "cudnn.packages").packages
    assert packages[0].name.startswith(f"libcudnn{CUDNN}-cuda-") and packages[0].version == f"{CUDNN}.0.0.1-*"
    assert any(f"cuDNN {CUDNN}" in text for text in notices(decided))


def test_everything_unknown_at_once_is_a_plan_with_one_notice_each() -> None:
    decided = decide(
        bare(H100, distro="ubuntu2404"),
        nvidia_driver_branch=str(NEW), nvidia_driver_source="cuda_repo",
        cuda_toolkit_versions=[f"{MAJOR + 1}.0"], cudnn_version=f"{CUDNN}.0.0.1",
    )  # fmt: skip
    assert decided.refusals == [] and decided.steps
    assert len(notices(decided)) == len(set(notices(decided))) == 3
