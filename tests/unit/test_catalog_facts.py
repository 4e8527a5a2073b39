"""Facts of the catalog that public sources corrected, and PCI ids of every class: each with what a host gets by them."""

from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan.cuda import choose as cuda
from tests.unit.hosts import T4, bare, having
from tests.unit.test_plan_driver import decide

pytestmark = pytest.mark.usefixtures("catalog_of_2026")

NEWEST_TOOLKIT = catalog.toolkits()[-1].version


def carried(distro: str, source: str, kind: str = driver_sources.DKMS) -> set[tuple[int, str]]:
    return driver_sources.branch_flavours(catalog.distro(distro), source, kind, "compute")


@pytest.mark.parametrize("kind", [driver_sources.DKMS, driver_sources.PRECOMPILED])
@pytest.mark.parametrize(
    ("distro", "transitional"),
    [("ubuntu2204", [590]), ("ubuntu2404", [590]), ("ubuntu2604", [570, 590])],
)
def test_transitional_names_of_ubuntus_archive_are_no_branches(distro: str, transitional: list[int], kind: str) -> None:
    branches = {branch for branch, _ in carried(distro, "distro", kind)}
    assert not branches & set(transitional)
    assert (615, "open") in carried(distro, "distro", kind) and (615, "proprietary") not in carried(
        distro, "distro", kind
    )
    assert (595, "proprietary") in carried(distro, "distro", kind)


def test_a_transitional_branch_is_refused_with_what_there_is() -> None:
    (refusal,) = decide(
        bare(T4, distro="ubuntu2404"), nvidia_driver_source="distro", nvidia_driver_branch="590"
    ).refusals
    assert refusal.code == "source_impossible" and "distro carries 470, 535, 570, 580, 595, 615" in refusal.message


def test_the_fabric_manager_of_470_is_a_transitional_name_on_ubuntu_2404() -> None:
    assert driver_sources.fabricmanager_package(catalog.distro("ubuntu2404"), "distro", 470) is None
    assert (
        driver_sources.fabricmanager_package(catalog.distro("ubuntu2404"), "distro", 535) == "nvidia-fabricmanager-535"
    )


@pytest.mark.parametrize(
    ("distro", "branch", "name"),
    [
        ("el8", 550, "nvidia-imex-550"),
        ("el8", 575, "nvidia-imex-575"),
        ("el9", 570, "nvidia-imex-570"),
        ("el9", 580, "nvidia-imex"),
        ("el9", 535, None),
        ("el8", 470, None),
        ("amzn2023", 570, "nvidia-imex-570"),
        ("el10", 580, "nvidia-imex"),
        ("debian12", 595, "nvidia-imex"),
    ],
)
def test_the_name_of_imex(distro: str, branch: int, name: str | None) -> None:
    assert driver_sources.companion_package(catalog.distro(distro), "cuda_repo", "imex", branch) == name


@pytest.mark.parametrize("distro", ["ubuntu2204", "ubuntu2404", "ubuntu2604"])
def test_nvidias_repository_for_ubuntu_has_the_persistence_daemon(distro: str) -> None:
    assert driver_sources.source_entry(catalog.distro(distro), "cuda_repo")["persistenced"] == "nvidia-persistenced"


def test_docker_for_enterprise_linux_8_comes_from_the_repository_that_is_kept() -> None:
    assert "/linux/rhel/8/" in catalog.repository("docker-ce-el8")["url"]


def test_fermi_has_a_driver_on_enterprise_linux_8() -> None:
    tesla_c2050 = "06d1"
    decision = decide(bare(tesla_c2050, distro="el8"), nvidia_driver_source="elrepo")
    assert decision.choice.packages[0] == "kmod-nvidia-390xx" and not decision.refusals
    (refusal,) = decide(bare(tesla_c2050, distro="el9"), nvidia_driver_source="elrepo").refusals
    assert refusal.code == "source_impossible"


def test_the_kind_of_615() -> None:
    branch = catalog.branch(615)
    assert branch is not None and branch.kind == "new_feature"


@pytest.mark.parametrize(
    ("device", "first", "last"),
    [
        pytest.param("118f", None, None, id="Tesla K10, 3.0"),
        pytest.param("118a", None, None, id="GRID K520, 3.0"),
        pytest.param("1023", "11.0", "11.8", id="Tesla K40m, 3.5"),
        pytest.param("102d", "11.0", "11.8", id="Tesla K80, 3.7"),
        pytest.param("17fd", "11.0", "12.9", id="Tesla M40, 5.2"),
        pytest.param("1b38", "11.0", "12.9", id="Tesla P40"),
        pytest.param("1db4", "11.0", "12.9", id="V100"),
        pytest.param("1eb8", "11.0", NEWEST_TOOLKIT, id="T4"),
        pytest.param("2236", "11.0", NEWEST_TOOLKIT, id="A10, 8.6"),
        pytest.param("27b8", "11.8", NEWEST_TOOLKIT, id="L4"),
        pytest.param("2330", "11.8", NEWEST_TOOLKIT, id="H100"),
        pytest.param("2901", "12.8", NEWEST_TOOLKIT, id="B200"),
        pytest.param("06d1", None, None, id="Tesla C2050, Fermi"),
    ],
)
def test_toolkits_by_compute_capability(device: str, first: str | None, last: str | None) -> None:
    fitting = cuda.supported_toolkits(bare(device), None)
    assert (fitting[:1], fitting[-1:]) == ([first] if first else [], [last] if last else [])


def test_a_toolkit_that_dropped_a_card_names_its_compute_capability() -> None:
    card = cuda.unsupported_gpu(cuda.gpus_by_compute(bare("118f")), ("3.5", "9.0"))
    assert card == "Tesla K10 (compute capability 3.0)"


# --- PCI ids -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "branch", "flavour"),
    [
        pytest.param("13bd", 580, "proprietary", id="Tesla M10"),
        pytest.param("1db2", 580, "proprietary", id="V100 of DGX Station"),
        pytest.param("15fc", 580, "proprietary", id="P100 of DGX Station"),
        pytest.param("1b39", 580, "proprietary", id="Tesla P10"),
        pytest.param("1df4", 580, "proprietary", id="CMP 100-210"),
        pytest.param("1613", 580, "proprietary", id="GRID M60"),
        pytest.param("102e", 470, "proprietary", id="Tesla K40d"),
        pytest.param("1020", 470, "proprietary", id="Tesla K20X"),
        pytest.param("20b8", 580, "open", id="A100X"),
        pytest.param("20c2", 580, "open", id="CMP 170HX"),
        pytest.param("2336", 580, "open", id="H100 that no list has"),
        pytest.param("29bc", 580, "open", id="B100"),
        pytest.param("3fff", None, "open", id="newer than the catalog"),
        pytest.param("1e3d", None, "open", id="a chip of Turing without a product"),
    ],
)
def test_the_driver_of_ids_that_no_list_of_a_driver_has(device: str, branch: int | None, flavour: str) -> None:
    source = "runfile" if branch in (470, None) else "auto"
    choice = decide(bare(device, distro="el9"), nvidia_driver_source=source).choice
    assert (choice.branch, choice.flavour) == (branch or catalog.newest_branch(), flavour)


OLD = "1d00"
"""An id that neither the catalog nor pci.ids has, below those of Turing."""


def test_an_unknown_chip_before_turing_is_refused_not_taken_for_new() -> None:
    decision = decide(bare(OLD, distro="el9"))
    (refusal,) = decision.refusals
    assert refusal.code == "gpu_unknown" and "before Turing" in refusal.message and "580" in refusal.remedy
    assert not decision.warnings and decision.choice is None


def test_an_unknown_chip_beside_a_known_one_is_named() -> None:
    (refusal,) = decide(bare(T4, OLD, distro="el9")).refusals
    assert refusal.code == "gpu_unknown" and OLD in refusal.message


def test_an_explicit_branch_drives_an_unknown_old_chip_with_the_proprietary_module() -> None:
    choice = decide(bare(OLD, distro="el9"), nvidia_driver_branch="580").choice
    assert (choice.branch, choice.flavour) == (580, "proprietary")
    (refusal,) = decide(bare(OLD, distro="el9"), nvidia_driver_branch="580", nvidia_driver_flavour="open").refusals
    assert refusal.code == "gpu_unknown"


def test_every_id_of_pci_ids_gets_a_driver_of_its_chip_or_none() -> None:
    ceilings = {"GF": 390, "GK": 470, "GM": 580, "GP": 580, "GV": 580}
    chips = yaml_load((Path(__file__).parent / "data/gpu_ids.yml").read_text())["chips"]
    wrong: list[Any] = []
    for device, chip in [(device, chip) for chip, devices in chips.items() for device in devices.split()]:
        gpu = catalog.gpu(device)
        newer = gpu is None and not catalog.is_older_than_turing(device)
        if chip in ceilings and (newer or (gpu and gpu.last_branch not in (ceilings[chip], 367, 304, 340))):
            wrong.append((device, chip))
        if chip not in ceilings and (gpu.last_branch is not None if gpu else not newer):
            wrong.append((device, chip))
    assert not wrong


# --- the releases of November 2026 -----------------------------------------------------------------------------------


def test_620_is_the_branch_with_the_longest_support_and_installs_where_nvidia_names_its_distributions() -> None:
    branch = catalog.branch(620)
    assert branch is not None and (branch.kind, branch.eol, branch.flavours) == ("lts", "2029-09", ("open",))
    for distro in (
        "el8",
        "el9",
        "el10",
        "amzn2023",
        "debian12",
        "debian13",
        "fedora44",
        "ubuntu2204",
        "ubuntu2404",
        "ubuntu2604",
    ):
        decided = decide(bare(T4, distro=distro), nvidia_driver_branch="620", nvidia_driver_source="cuda_repo")
        assert not decided.refusals, (distro, decided.refusals)
        assert (decided.choice.branch, decided.choice.flavour) == (620, "open")


def test_cudnn_9_28_1_is_for_both_cudas() -> None:
    """redistrib_9.28.1.json of 2026-11-06 has an archive for each."""
    found = {one.version: one.cuda for one in catalog.cudnns()}
    assert found["9.28.1.4"] == ("12", "13") == found["9.28.0.42"]


@pytest.mark.parametrize(
    ("device", "first"),
    [
        pytest.param("2bb5", 575, id="RTX PRO 6000 Blackwell Server Edition"),
        pytest.param("2d83", 575, id="RTX 5050"),
        pytest.param("2c3a", 580, id="RTX PRO 4500 Blackwell Server Edition"),
        pytest.param("2909", 595, id="B200 168GB"),
        pytest.param("31c3", 595, id="GB300"),
        pytest.param("2901", 570, id="B200"),
        pytest.param("2e12", 580, id="GB10"),
    ],
)
def test_the_first_branch_of_a_card_is_that_of_the_first_list_that_has_it(device: str, first: int) -> None:
    below = [one.number for one in catalog.branches() if one.number < first][-1]
    (refusal,) = decide(bare(device, distro="el9"), nvidia_driver_branch=str(below)).refusals
    assert refusal.code == "branch_below_minimum" and f"from branch {first} on" in refusal.message
    assert decide(bare(device, distro="el9")).choice.branch >= first


def test_a_rubin_gets_the_newest_branch_with_the_doubt_named_and_no_limit_of_toolkits() -> None:
    decided = decide(bare("3021", distro="el9"))
    assert (decided.choice.branch, decided.choice.flavour) == (catalog.newest_branch(), "open")
    assert "gpu_unverified" in {one.code for one in decided.warnings}
    assert cuda.supported_toolkits(bare("3021"), None) == [one.version for one in catalog.toolkits()]


@pytest.mark.parametrize(
    ("distro", "kernel", "given"),
    [
        ("ubuntu2404", "7.0.0-27-generic", {"nvidia_driver_branch": "590", "nvidia_driver_source": "cuda_repo"}),
        ("ubuntu2404", "6.17.0-40-generic", {"nvidia_driver_branch": "550", "nvidia_driver_source": "runfile"}),
        (
            "ubuntu2404",
            "6.17.0-40-generic",
            {
                "nvidia_driver_branch": "570",
                "nvidia_driver_source": "distro",
                "nvidia_driver_kernel_modules": "precompiled",
            },
        ),
    ],
)
def test_a_branch_that_does_not_build_for_the_kernel_is_refused(
    distro: str, kernel: str, given: dict[str, str]
) -> None:
    def host(release: str) -> Any:
        state = {"running": release, "installed": [release], "next_boot": release, "headers": {release: True}}
        return having(bare(T4, distro=distro), base={"kernel": state})

    (refusal,) = decide(host(kernel), **given).refusals
    assert refusal.code == "kernel_above_branch" and kernel in refusal.message
    assert not decide(host("6.8.0-88-generic"), **given).refusals


@pytest.mark.parametrize(
    ("kernel", "codes"),
    [("3.10.0-1160.119.1.el7.x86_64", ["kernel_below_branch"]), ("5.4.278-1.el7.elrepo.x86_64", [])],
)
def test_a_branch_that_needs_a_newer_kernel_is_refused_by_the_kernel_not_by_the_release(
    kernel: str, codes: list[str]
) -> None:
    state = {"running": kernel, "installed": [kernel], "next_boot": kernel, "headers": {kernel: True}}
    host = having(bare(T4, distro="centos7"), base={"kernel": state})
    file = "/srv/NVIDIA-Linux-x86_64-580.95.05.run"
    decided = decide(host, nvidia_driver_runfile=file)
    assert [one.code for one in decided.refusals] == codes


def test_what_an_archive_patches_builds_for_the_kernels_of_its_release() -> None:
    data = catalog.distro("ubuntu2404")
    assert driver_sources.builds_for(data, "distro", driver_sources.DKMS, 470, "7.0.0-27-generic")
    assert not driver_sources.builds_for(data, "runfile", driver_sources.DKMS, 470, "7.0.0-27-generic")
    assert driver_sources.builds_for(data, "runfile", driver_sources.DKMS, 470, "6.19.1-custom")


def test_an_installer_that_no_source_confirms_is_warned_of_with_its_address() -> None:
    decided = decide(bare(T4, distro="el9"), nvidia_driver_branch="620", nvidia_driver_source="runfile")
    (notice,) = [one for one in decided.warnings if one.code == "catalog_unverified"]
    assert f"{catalog.branch_rules(620).newest}.run" in notice.message and "nvidia_driver_runfile" in notice.remedy
