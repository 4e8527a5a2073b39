"""Which driver is planned: the table of cards, the refusals, and what must hold for every host."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.facts.model import DkmsFacts, Facts, KernelFacts, OtherModule
from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan.driver import candidates, services
from plugins.plugin_utils.gpu_ready.plan.driver import choose as driver
from plugins.plugin_utils.gpu_ready.plan.driver.model import ModprobeParams
from plugins.plugin_utils.gpu_ready.plan.model import Choices, PackageTarget
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit.hosts import (
    A100,
    B200,
    ENROLLED,
    GB10,
    H100,
    K80,
    P40,
    SECURE,
    T4,
    UNKNOWN,
    V100,
    bare,
    card,
    having,
    with_driver,
)

pytestmark = pytest.mark.usefixtures("catalog_of_2026")

OLD_UNKNOWN = "1dff"
"""An id that no catalog has, among those of Volta."""


def decide(facts: Facts, **given_: Any) -> Any:
    reading = variables.parse_settings(given_)
    assert not reading.errors
    return driver.plan_driver(facts, reading.settings, Choices())


def codes(decision: Any) -> list[str]:
    return [refusal.code for refusal in decision.refusals]


@pytest.mark.parametrize(
    ("devices", "distro", "source", "branch", "flavour"),
    [
        ([P40], "debian12", "cuda_repo", 580, "proprietary"),
        ([P40, P40], "debian12", "cuda_repo", 580, "proprietary"),
        ([V100], "debian12", "cuda_repo", 580, "proprietary"),
        ([T4], "debian12", "cuda_repo", 580, "open"),
        ([A100], "debian12", "cuda_repo", 580, "open"),
        ([B200], "debian12", "cuda_repo", 580, "open"),
        ([GB10], "debian12", "cuda_repo", 580, "open"),
        ([V100, H100], "debian12", "cuda_repo", 580, "proprietary"),
        ([P40], "debian13", "cuda_repo", 580, "proprietary"),
        ([V100], "ubuntu2004", "distro", 535, "proprietary"),
        ([K80], "el8", "cuda_repo", 470, "proprietary"),
        ([H100, B200], "debian13", "cuda_repo", 580, "open"),
    ],
)
def test_the_catalog_decides_by_gpu(devices: list[str], distro: str, source: str, branch: int, flavour: str) -> None:
    chosen = decide(bare(*devices, distro=distro)).choice
    assert (chosen.source, chosen.branch, chosen.flavour) == (source, branch, flavour)


@pytest.mark.parametrize("distro", catalog.distros())
@pytest.mark.parametrize("device", [K80, P40, V100, T4, H100, B200])
def test_auto_takes_an_ended_branch_only_where_no_automatic_source_has_another(distro: str, device: str) -> None:
    data = catalog.distro(distro)
    decision = decide(bare(device, distro=distro))
    maintained = [
        (source, branch)
        for source in driver_sources.automatic_sources(data)
        for kind in driver_sources.module_kinds(data, source)
        for branch, flavour in driver_sources.branch_flavours(data, source, kind, "compute")
        if (branch, flavour) in candidates.pairs_of_gpu(device) and not catalog.has_ended(branch, "")
    ]
    if decision.choice is None:
        assert not maintained and codes(decision)
        return
    assert catalog.has_ended(decision.choice.branch, "") is not bool(maintained)
    warned = [warning.code for warning in decision.warnings]
    assert ("branch_ended" in warned) is not bool(maintained)


def test_an_installed_driver_of_an_ended_branch_is_kept_with_a_warning() -> None:
    decision = decide(with_driver(bare(V100), "535.309.01", "proprietary", "distro", ["nvidia-kernel-dkms"]))
    assert (decision.choice.source, decision.choice.branch) == ("distro", 535)
    (warning,) = decision.warnings
    assert warning.code == "branch_ended"
    assert warning.remedy == "plan a move to a maintained branch: nvidia_driver_source cuda_repo or runfile has one"


def test_an_older_point_release_stays_with_its_source() -> None:
    """The archive has moved on to 535: an upgrade inside the same source, not a driver of another origin."""
    decision = decide(with_driver(bare(V100), "525.147.05", "proprietary", "distro", ["nvidia-kernel-dkms"]))
    assert (decision.choice.source, decision.choice.branch) == ("distro", 535) and not decision.refusals


def test_an_ended_branch_without_alternative_says_so() -> None:
    (warning,) = [one for one in decide(bare(K80, distro="el8")).warnings if one.code == "branch_ended"]
    assert "end of life 2024-07" in warning.message
    assert warning.remedy.startswith("no source of ") and "plan a newer distribution or other GPUs" in warning.remedy


def test_an_nvswitch_host_gets_a_source_with_a_fabric_manager() -> None:
    chosen = decide(bare(H100, nvswitches=4)).choice
    assert (chosen.source, chosen.branch, chosen.flavour) == ("cuda_repo", 580, "open")


def test_v100_with_h100_is_580_proprietary_from_nvidia() -> None:
    chosen = decide(bare(V100, H100), nvidia_driver_source="cuda_repo").choice
    assert (chosen.branch, chosen.flavour) == (580, "proprietary")


def test_v100_with_b200_is_refused_naming_both() -> None:
    (refusal,) = decide(bare(V100, B200)).refusals
    assert refusal.code == "no_driver_for_mixed_gpus"
    for device in (V100, B200):
        assert card(device).name in refusal.message


def test_an_unknown_id_gets_the_newest_branch_and_a_warning_with_the_date() -> None:
    chosen = candidates.pairs_of_gpu(UNKNOWN)
    assert chosen == {(catalog.newest_branch(), "open")}
    (warning,) = decide(bare(UNKNOWN), nvidia_driver_branch="580", nvidia_driver_source="cuda_repo").warnings
    assert catalog.DATE in warning.message


def test_an_unknown_id_gets_no_kernel_module_that_the_asked_branch_does_not_have() -> None:
    asked = candidates.DriverRequest(None, 470, None, None, "compute")
    assert candidates.requested_pairs(UNKNOWN, asked) == {(470, "proprietary")}
    assert candidates.requested_pairs(UNKNOWN, asked._replace(flavour="open")) == set()
    assert candidates.requested_pairs(UNKNOWN, asked._replace(branch=580)) == {(580, "open")}


@pytest.mark.parametrize(
    ("device", "asked", "branch", "flavour", "driven"),
    [
        (UNKNOWN, None, 620, "open", True),
        (UNKNOWN, None, 620, "proprietary", False),
        (UNKNOWN, None, 619, "open", False),
        (UNKNOWN, 580, 580, "open", True),
        (UNKNOWN, 470, 470, "proprietary", True),
        (OLD_UNKNOWN, 470, 470, "proprietary", True),
        (OLD_UNKNOWN, 470, 470, "open", False),
        (OLD_UNKNOWN, None, 470, "proprietary", False),
        (P40, None, 580, "proprietary", True),
        (P40, None, 595, "proprietary", False),
        (P40, None, 580, "open", False),
        (B200, None, 570, "open", True),
        (B200, None, 550, "open", False),
    ],
)
def test_which_drivers_that_no_list_has_drive_a_gpu(
    device: str, asked: int | None, branch: int, flavour: str, driven: bool
) -> None:
    request = candidates.DriverRequest(None, asked, None, None, "compute")
    assert candidates.drives(bare(device).base.gpus[0], branch, flavour, request) is driven


@pytest.mark.parametrize(
    ("devices", "requested", "code", "words"),
    [
        ([P40], {"nvidia_driver_branch": "595"}, "branch_above_ceiling", "580"),
        ([P40], {"nvidia_driver_version": "595.91.07"}, "branch_above_ceiling", "580"),
        ([B200], {"nvidia_driver_branch": "550"}, "branch_below_minimum", "570"),
        ([P40], {"nvidia_driver_branch": "123"}, "branch_below_minimum", "580"),
        ([P40], {"nvidia_driver_flavour": "open"}, "flavour_impossible", "P40"),
        ([B200], {"nvidia_driver_flavour": "proprietary"}, "flavour_impossible", "proprietary"),
        ([B200], {"nvidia_driver_source": "distro"}, "source_impossible", "535"),
        ([P40], {"nvidia_driver_branch": "580", "nvidia_driver_source": "distro"}, "source_impossible", "535"),
        ([K80], {}, "branch_not_carried", "470"),
    ],
)
def test_an_impossible_request_is_refused(devices: list[str], requested: Any, code: str, words: str) -> None:
    decision = decide(bare(*devices), **requested)
    assert codes(decision) == [code]
    assert words in decision.refusals[0].message + decision.refusals[0].remedy
    assert decision.steps == []


def test_the_archive_is_refused_on_an_nvswitch_host() -> None:
    (refusal,) = decide(bare(H100, nvswitches=4), nvidia_driver_source="distro").refusals
    assert refusal.code == "source_impossible"
    assert "fabric manager" in refusal.message
    assert "cuda_repo" in refusal.remedy


def test_an_unknown_distribution_is_refused_with_the_known_ones() -> None:
    (refusal,) = decide(having(bare(P40), base={"distro": None, "os": {"family": "debian"}})).refusals
    assert refusal.code == "unknown_distribution"
    assert refusal.remedy.endswith(": debian12, debian13")


def test_secure_boot_without_an_enrolled_key_is_refused_before_anything_is_done() -> None:
    decision = decide(bare(P40, secure_boot=SECURE))
    assert codes(decision) == ["secure_boot_unsigned"]
    assert "mokutil --import /var/lib/dkms/mok.pub" in decision.refusals[0].remedy
    assert decide(bare(P40, secure_boot=ENROLLED)).refusals == []


@pytest.mark.parametrize(
    ("by", "message", "remedy"),
    [
        ("firmware", "Secure Boot is on, the module is built", "; or turn Secure Boot off"),
        ("kernel", "the kernel loads signed modules only (lockdown, ", "boot with efi=runtime if "),
        ("unknown", "whether Secure Boot is on cannot be read", "; or mount securityfs at /sys/kernel/security"),
    ],
)
def test_the_refusal_says_what_wants_signed_modules(by: str, message: str, remedy: str) -> None:
    (refusal,) = decide(bare(P40, secure_boot=SECURE._replace(by=by))).refusals
    assert refusal.code == "secure_boot_unsigned"
    assert message in refusal.message and remedy in refusal.remedy and "`mokutil --import" in refusal.remedy


@pytest.mark.parametrize(
    ("certificate", "made"),
    [
        ("/var/lib/dkms/mok.pub", "openssl req -new -x509"),
        ("/var/lib/shim-signed/mok/MOK.der", "update-secureboot-policy --new-key"),
        ("/etc/pki/site.der", "put it there"),
    ],
)
def test_a_missing_key_is_made_before_it_is_enrolled(certificate: str, made: str) -> None:
    """DKMS makes its key with the first module that it builds, which Secure Boot would reject: before, no key exists to enrol."""
    boot = {"on": True, "key": None, "certificate": certificate, "enrolled": False}
    (refusal,) = decide(bare(P40, secure_boot=boot)).refusals
    assert refusal.remedy.index(made) < refusal.remedy.index("mokutil --import " + certificate)


def test_a_virtual_gpu_gets_no_driver_of_a_repository() -> None:
    """A vGPU needs NVIDIA's guest driver, which no repository has; the card's own driver does not start on it."""
    guest = bare(T4)
    guest = having(guest, base={"gpus": [guest.base.gpus[0]._replace(vgpu="550.163.01")]})
    (refusal,) = decide(guest).refusals
    assert refusal.code == "vgpu_guest" and "550.163.01" in refusal.message
    assert "nvidia_driver_runfile" in refusal.remedy and "nvidia_driver_source" in refusal.remedy
    given = {"nvidia_driver_runfile": "https://files.example/NVIDIA-Linux-x86_64-550.163.01-grid.run"}
    assert decide(guest, **given).refusals == []
    present = with_driver(guest, "550.163.01", "proprietary", "runfile", [])
    present = having(present, driver={"runfile": "/usr/bin/nvidia-uninstall"})
    assert codes(decide(present, nvidia_driver_source="none")) == []


def test_no_packages_for_a_host_that_boots_an_image() -> None:
    """RHEL's image mode, RHEL AI: os-release names the system that the image was made of."""
    (refusal,) = decide(bare(H100, distro="el9", image=True, disk={"/usr": 1})).refusals
    assert refusal.code == "image_based" and "nvidia_driver_source" in refusal.remedy
    data = catalog.distro("el9")
    names = driver_sources.packages(data, "cuda_repo", 580, "compute", "open")
    whole = with_driver(bare(H100, distro="el9", image=True), "580.95.05", "open", "cuda_repo", names)
    assert decide(whole).refusals == []  # the image has it


def test_a_full_disk_is_refused() -> None:
    assert codes(decide(bare(P40, disk={"/usr": 1, "/var": 10**11}))) == ["disk_full"]


def foreign() -> Facts:
    facts = with_driver(bare(P40), "580.95.05", "proprietary", "runfile", [])
    facts = having(facts, driver={"runfile": "/usr/bin/nvidia-uninstall"})
    return facts


def test_a_driver_of_another_origin_is_refused_or_replaced() -> None:
    assert codes(decide(foreign(), nvidia_driver_source="distro")) == ["foreign_driver"]
    (install,) = [
        step
        for step in decide(foreign(), nvidia_driver_source="distro", nvidia_driver_replace_foreign=True).steps
        if step.id == "nvidia_driver.install"
    ]
    assert install.params.runfile == "/usr/bin/nvidia-uninstall"


def test_auto_keeps_a_fitting_driver_of_an_installer_until_it_may_be_replaced() -> None:
    """An installer is only taken when asked for, so the permission to replace it is the requested for packages."""
    kept = decide(foreign())
    assert (kept.choice.source, kept.choice.satisfied, kept.refusals) == ("runfile", True, [])
    assert decide(foreign(), nvidia_driver_replace_foreign=True).choice.source == "cuda_repo"


def test_a_driver_that_is_left_alone_gets_no_step() -> None:
    assert decide(foreign(), nvidia_driver_source="none").steps == []


def test_a_fitting_driver_of_nvidia_is_kept_although_the_archive_has_one() -> None:
    names = driver_sources.packages(catalog.distro("debian12"), "cuda_repo", 580, "compute", "proprietary")
    decision = decide(with_driver(bare(P40), "580.95.05", "proprietary", "cuda_repo", names))
    assert (decision.choice.source, decision.choice.branch, decision.choice.satisfied) == (
        "cuda_repo",
        580,
        True,
    )
    assert "nvidia_driver.install" not in [step.id for step in decision.steps]


def test_another_branch_is_one_install_step_that_says_from_and_to() -> None:
    names = driver_sources.packages(catalog.distro("debian12"), "cuda_repo", 580, "compute", "open")
    host = with_driver(bare(T4), "580.95.05", "open", "cuda_repo", names)
    (install,) = [s for s in decide(host, nvidia_driver_branch="595").steps if s.id == "nvidia_driver.install"]
    assert "580.95.05" in install.why
    assert "595" in install.why
    assert install.disruption == "driver_reload"
    flavour = decide(host, nvidia_driver_flavour="proprietary")
    (install,) = [s for s in flavour.steps if s.id == "nvidia_driver.install"]
    assert set(install.params.remove) <= set(names)
    assert install.params.remove


def test_a_loaded_module_whose_file_was_removed_is_named() -> None:
    host = having(bare(T4), driver={"loaded": {"version": "535.261.03", "flavour": "proprietary"}})
    (install,) = [step for step in decide(host).steps if step.id == "nvidia_driver.install"]
    assert install.why.startswith("535.261.03 is loaded, but there is no module for the running kernel; requested is")


def test_a_card_passed_to_a_virtual_machine_does_not_count() -> None:
    host = bare(P40, B200)
    first, second = host.base.gpus
    host = having(host, base={"gpus": [first, second._replace(driver="vfio-pci")]})
    assert decide(host).choice.branch == 580


DEVICES = st.lists(st.sampled_from([K80, P40, V100, T4, A100, H100, B200, GB10, UNKNOWN]), min_size=1, max_size=4)
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "nvidia_driver_source": st.sampled_from(["auto", "distro", "cuda_repo"]),
        "nvidia_driver_branch": st.sampled_from([""] + [str(branch.number) for branch in catalog.branches()]),
        "nvidia_driver_flavour": st.sampled_from(["auto", "open", "proprietary"]),
    },
)


@given(DEVICES, REQUESTS, st.randoms())
def test_the_order_of_the_cards_is_irrelevant(devices: list[str], requested: Any, random: Any) -> None:
    shuffled = list(devices)
    random.shuffle(shuffled)
    one, two = decide(bare(*devices), **requested), decide(bare(*shuffled), **requested)
    keys = ("source", "branch", "flavour", "packages")
    assert [getattr(one.choice, key, None) for key in keys] == [getattr(two.choice, key, None) for key in keys]
    assert codes(one) == codes(two)


@pytest.mark.parametrize(("tool", "rebuild"), [(True, ["update-initramfs", "-u", "-k", "all"]), (False, None)])
def test_the_initial_ram_disk_is_rebuilt_if_it_exists(tool: bool, rebuild: list[str] | None) -> None:
    """A host without initramfs-tools has no initial RAM disk that could carry nouveau."""
    facts = bare(P40, initramfs=tool, nouveau={"loaded": True, "bound": ["0000:3b:00.0"], "blacklisted": False})
    settings = variables.parse_settings({}).settings
    steps = {step.id: step.params for step in driver.plan_driver(facts, settings, Choices()).steps}
    blacklist = steps["nvidia_driver.blacklist_nouveau"]
    assert isinstance(blacklist, ModprobeParams) and blacklist.rebuild == rebuild


@pytest.mark.parametrize(("managed", "written"), [("lxc", False), ("kernel_outside", False), ("dgx", True)])
def test_nouveau_is_disabled_where_files_of_this_system_say_what_is_loaded(managed: str, written: bool) -> None:
    """Seen in a microVM with an H100: its kernel and modules are files of the machine that starts it."""
    adopted = with_driver(bare(T4), "580.95.05", "open", "distro", ["nvidia-driver-580-server-open"])
    base = {"managed_by": managed, "nouveau": {"loaded": False, "bound": [], "blacklisted": False}}
    decided = decide(having(adopted, base=base))
    assert not decided.refusals
    assert ("nvidia_driver.blacklist_nouveau" in [step.id for step in decided.steps]) is written


def test_auto_prefers_a_source_with_the_open_module_over_one_without() -> None:
    """Debian 13's own open module does not compile for its kernel; NVIDIA's repository has one that does."""
    chosen = decide(bare(T4, distro="debian13")).choice
    assert (chosen.source, chosen.branch, chosen.flavour) == ("cuda_repo", 580, "open")


def test_auto_leaves_a_fitting_driver_where_it_came_from() -> None:
    facts = with_driver(bare(T4, distro="debian13"), "550.163.01", "proprietary", "distro", ["nvidia-kernel-dkms"])
    assert decide(facts).choice.source == "distro"


def test_an_unknown_distribution_is_named_by_its_id() -> None:
    facts = bare(P40)
    facts = having(facts, base={"distro": None})
    facts = having(facts, base={"os": {"id": "plan9", "version_id": "4", "pretty": "Plan 9"}})
    (refusal,) = decide(facts).refusals
    assert "ID=plan9" in refusal.message and "gpu_ready_catalog_overlay" in refusal.remedy
    assert "gpu_ready_treat_as" not in refusal.remedy


def named(**changes: str | list[str]) -> dict[str, Any]:
    """Variables that name a driver completely, as a rollback does."""
    return {
        "nvidia_driver_source": "cuda_repo",
        "nvidia_driver_branch": "620",
        "nvidia_driver_version": "620.70.06",
        "nvidia_driver_flavour": "open",
        "nvidia_driver_kernel_modules": "dkms",
        "nvidia_driver_packages": ["nvidia-kernel-open-dkms=620.70.06-1"],
        **changes,
    }


def of_branch(branch: int, flavour: str) -> dict[str, Any]:
    return named(nvidia_driver_branch=str(branch), nvidia_driver_version=f"{branch}.1", nvidia_driver_flavour=flavour)


@pytest.mark.parametrize(
    ("device", "branch", "flavour", "code", "parts"),
    [
        (V100, 620, "open", "branch_above_ceiling", ["V100", "580", "nvidia_driver_branch 620"]),
        (V100, 625, "proprietary", "branch_above_ceiling", ["V100", "580"]),
        (V100, 580, "open", "flavour_impossible", ["V100", "no open kernel module"]),
        (P40, 595, "proprietary", "branch_above_ceiling", ["P40", "580"]),
        (B200, 550, "open", "branch_below_minimum", ["B200", "570"]),
        (B200, 580, "proprietary", "flavour_impossible", ["B200", "no proprietary kernel module"]),
        (T4, 620, "proprietary", "flavour_impossible", ["620", "no proprietary kernel module"]),
        (T4, 625, "proprietary", "flavour_impossible", ["625", "no proprietary kernel module"]),
        (OLD_UNKNOWN, 625, "open", "flavour_impossible", [OLD_UNKNOWN, "no open kernel module"]),
    ],
)
def test_a_driver_that_is_named_completely_has_to_drive_every_gpu(
    device: str, branch: int, flavour: str, code: str, parts: list[str]
) -> None:
    for gpus in ([device], [T4, device]):
        decision = decide(bare(*gpus), **of_branch(branch, flavour))
        assert codes(decision) == [code] and not decision.steps
        assert all(part in decision.refusals[0].message for part in parts), decision.refusals[0].message


@pytest.mark.parametrize(
    ("device", "branch", "flavour"),
    [
        (T4, 620, "open"),
        (T4, 625, "open"),
        (V100, 580, "proprietary"),
        (UNKNOWN, 625, "open"),
        (K80, 470, "proprietary"),
    ],
)
def test_a_driver_that_is_named_completely_needs_no_catalog(device: str, branch: int, flavour: str) -> None:
    chosen = decide(bare(device), **of_branch(branch, flavour)).choice
    assert (chosen.branch, chosen.flavour) == (branch, flavour)


def nvlink5_host(distro: str, **umad: bool) -> Facts:
    """Return a bare host with an NVLink 5 switch; ``umad``: the state of the module ib_umad."""
    bridge = {"address": "mlx5_4", "device": "1021", "driver": "mlx5_core", "what": "nvlink5"}
    return having(bare(B200, distro=distro), base={"nvswitches": [bridge], "umad": {"present": True, **umad}})


def service_steps(host: Facts) -> list[Any]:
    choices = Choices(driver=decide(host).choice)
    return services.plan_services(host, variables.parse_settings({}).settings, choices).steps


def test_nvlink_5_hosts_get_what_the_script_of_the_fabric_manager_starts_and_calls() -> None:
    (step,) = [s for s in service_steps(nvlink5_host("debian12")) if s.id == "nvidia_driver.fabricmanager"]
    assert [package.name for package in step.params.packages] == ["nvidia-fabricmanager", "nvlsm", "infiniband-diags"]


def test_nvlink_5_hosts_load_the_modules_of_the_fabric_manager_before_it() -> None:
    steps = {step.id: step for step in service_steps(nvlink5_host("debian12"))}
    assert list(steps)[:2] == ["nvidia_driver.umad", "nvidia_driver.fabricmanager"]
    params = steps["nvidia_driver.umad"].params
    assert (params.modules, params.packages) == (["mlx5_ib", "ib_umad"], [])
    assert params.path.startswith("/etc/modules-load.d/") and params.content.endswith("\nmlx5_ib\nib_umad\n")


@pytest.mark.parametrize(
    ("umad", "expected"),
    [({"loaded": True}, "are not loaded at boot"), ({"at_boot": True}, "are not loaded"), ({"loaded": True, "at_boot": True}, "")],
)  # fmt: skip
def test_the_modules_of_the_fabric_manager_are_loaded_now_and_at_boot(umad: dict[str, bool], expected: str) -> None:
    steps = [step for step in service_steps(nvlink5_host("debian12", **umad)) if step.id == "nvidia_driver.umad"]
    assert [step.why.rpartition("which ")[2] for step in steps] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("distro", "package"),
    [
        ("ubuntu2404", "linux-modules-extra-"),
        ("el9", "kernel-modules-extra-"),
        ("amzn2023", "kernel-modules-extra-"),
    ],
)
def test_a_kernel_that_splits_off_the_module_gets_its_package(distro: str, package: str) -> None:
    host = nvlink5_host(distro, present=False)
    (step,) = [step for step in service_steps(host) if step.id == "nvidia_driver.umad"]
    assert step.params.packages == [package + host.base.kernel.running]


def test_a_driver_without_a_subnet_manager_for_nvlink_5_is_not_adopted() -> None:
    host = with_driver(nvlink5_host("ubuntu2404"), "580.95.05", "open", "distro", [])
    decided = decide(host)
    (refusal,) = decided.refusals
    assert refusal.code == "foreign_driver" and "which has no fabric manager" in refusal.message


def test_ubuntus_archive_has_no_subnet_manager_for_nvlink_5() -> None:
    host = nvlink5_host("ubuntu2404")
    assert decide(host).choice.source == "cuda_repo"
    (refusal,) = decide(host, nvidia_driver_source="distro").refusals
    assert refusal.code == "source_impossible" and "nvlsm" in refusal.message and "cuda_repo" in refusal.remedy


def test_nvswitches_of_the_pci_bus_need_no_module_of_the_kernel() -> None:
    switch = {"address": "0000:05:00.0", "device": "22a3", "driver": None, "what": "nvswitch"}
    steps = service_steps(having(bare("2330"), base={"nvswitches": [switch]}))
    assert "nvidia_driver.umad" not in [step.id for step in steps]


@pytest.mark.parametrize(
    ("requested", "pin", "removed"),
    [
        ({"nvidia_driver_version": "580.178.04"}, "nvidia-driver-pinning-580.178.04", "pin_remove"),
        ({"nvidia_driver_branch": "595"}, "nvidia-driver-pinning-595", "pin_remove"),
        ({"nvidia_driver_source": "distro", "nvidia_driver_replace_foreign": True}, None, "remove"),
    ],
)
def test_the_pin_of_another_version_is_removed(requested: Any, pin: str | None, removed: str) -> None:
    names = ["nvidia-kernel-open-dkms", "nvidia-driver-cuda"]
    facts = with_driver(bare(T4), "580.95.05", "open", "cuda_repo", names)
    facts = having(
        facts,
        packages={"installed": {**facts.packages.installed, "nvidia-driver-pinning-580.95.05": "580.95.05-1"}},
    )
    decision = decide(facts, **requested)
    (install,) = [step.params for step in decision.steps if step.id == "nvidia_driver.install"]
    assert install.pin_packages == ([pin] if pin else [])
    assert "nvidia-driver-pinning-580.95.05" in getattr(install, removed)


@pytest.mark.parametrize(
    ("requested", "version"),
    [({"nvidia_driver_version": "580.178.04"}, "580.178.04-*"), ({"nvidia_driver_branch": "595"}, "595.*")],
)
def test_installed_packages_get_a_version_to_change_to(requested: Any, version: str) -> None:
    names = ["nvidia-kernel-open-dkms", "nvidia-driver-cuda"]
    decision = decide(with_driver(bare(T4), "580.95.05", "open", "cuda_repo", names), **requested)
    (install,) = [step.params for step in decision.steps if step.id == "nvidia_driver.install"]
    assert install.packages == [PackageTarget(name, version) for name in names]


def test_the_hold_of_a_package_that_an_interrupted_run_removed_is_released() -> None:
    host = bare(T4, distro="el9")
    host = having(host, packages={"held": ["nvidia-driver-cuda", "tree"]})
    (install,) = [step for step in decide(host).steps if step.id == "nvidia_driver.install"]
    assert install.params.unhold == ["nvidia-driver-cuda"]


def test_an_interrupted_installer_is_run_again_although_its_files_exist() -> None:
    host = with_driver(bare(T4), "580.178.04", "open", "runfile", [])
    host = having(host, driver={"runfile": "/usr/bin/nvidia-uninstall"})
    requested = {"nvidia_driver_source": "runfile", "nvidia_driver_branch": "580"}
    assert "nvidia_driver.runfile" not in [step.id for step in decide(host, **requested).steps]
    host = having(host, driver={"interrupted": True})
    (step,) = [step for step in decide(host, **requested).steps if step.id == "nvidia_driver.runfile"]
    assert "interrupted" in step.why


def test_a_source_that_auto_does_not_use_is_named_as_a_remedy() -> None:
    (refusal,) = decide(bare(K80, distro="debian12")).refusals
    assert "nvidia_driver_source to runfile" in refusal.remedy


def test_leftovers_of_a_killed_run_are_recognised_by_the_manifest() -> None:
    host = bare(T4, distro="ubuntu2404")
    host = having(
        host, driver={"origin": "unknown", "packages": {"libnvidia-cfg1": "580.95.05"}, "userspace": ["580.95.05"]}
    )
    ours = having(host, runtime={"manifest": {"packages": ["libnvidia-cfg1"]}})
    decision = decide(ours, nvidia_driver_source="cuda_repo")
    assert decision.refusals == []
    assert "nvidia_driver.install" in [step.id for step in decision.steps]
    assert [refusal.code for refusal in decide(host, nvidia_driver_source="cuda_repo").refusals] == ["foreign_driver"]


NEXT = "6.1.0-99-amd64"


def upgraded_kernel(headers: bool, dkms: bool = True) -> Facts:
    """A host with a driver in use on which an upgrade installed a kernel without a module."""
    host = with_driver(bare(P40), "535.261.03", "proprietary", "distro", driver_sources.packages(
        catalog.distro("debian12"), "distro", 535, "compute", "proprietary"))  # fmt: skip
    running = host.base.kernel.running
    kernel = KernelFacts(running, [running, NEXT], NEXT, {running: True, NEXT: headers})
    built = DkmsFacts("nvidia-current", "535.261.03", [running])
    return having(
        host,
        base={"kernel": kernel, "compiler": "/usr/bin/gcc", "nouveau": {"blacklisted": True}},
        driver={"dkms": [built] if dkms else [], "kernel_without_module": NEXT},
    )


@pytest.mark.parametrize("headers", [True, False])
def test_the_module_of_the_next_kernel_is_built_before_it_boots(headers: bool) -> None:
    steps = decide(upgraded_kernel(headers), nvidia_driver_hold=False).steps
    ids = [step.id for step in steps]
    assert ids == ([] if headers else ["kernel_headers.install"]) + ["nvidia_driver.next_kernel"]
    assert steps[-1].params.kernel == NEXT and steps[-1].disruption == "none"
    if not headers:
        assert steps[0].params.packages == [f"linux-headers-{NEXT}"]


def test_a_module_that_dkms_did_not_build_is_not_built_for_the_next_kernel() -> None:
    assert decide(upgraded_kernel(True, dkms=False), nvidia_driver_hold=False).steps == []


DEBIAN_KERNEL = bare(T4, distro="debian12").base.kernel.running


def beside(module: OtherModule, dkms: str, distro: str = "debian12", headers: bool = False) -> Any:
    """What is decided for a host with a DKMS module of others, and this version of dkms."""
    host = bare(T4, distro=distro)
    host = having(host, driver={"other_modules": [module]}, packages={"installed": {"dkms": dkms} if dkms else {}})
    if headers:
        kernel = host.base.kernel
        host = having(host, base={"kernel": {"headers": {kernel.running: True}}})
    return decide(host)


@pytest.mark.parametrize(
    ("module", "dkms", "more", "refused", "warned"),
    [
        (OtherModule("evdi", "1.9.1", [], DEBIAN_KERNEL), "3.0.10-8+deb12u1", {}, True, False),
        (OtherModule("evdi", "1.9.1", [], "6.1.0-1-amd64"), "3.0.10-8+deb12u1", {}, False, True),
        (OtherModule("evdi", "1.9.1"), "3.0.10-8+deb12u1", {}, False, True),
        (OtherModule("zfs", "2.1.11", ["6.1.0-1-amd64"]), "3.0.10-8+deb12u1", {}, False, False),
        (OtherModule("evdi", "1.9.1", [], DEBIAN_KERNEL), "2.8.7-2ubuntu2.2", {}, False, False),
        (OtherModule("evdi", "1.9.1", [], DEBIAN_KERNEL), "", {}, False, False),
        (OtherModule("evdi", "1.9.1", [], DEBIAN_KERNEL), "3.0.10-8", {"headers": True}, False, False),
    ],
    ids=["failed", "for another kernel", "never built", "built before", "dkms 2.8", "no dkms", "headers are installed"],
)
def test_headers_that_a_module_of_others_would_break(
    module: OtherModule, dkms: str, more: dict[str, Any], refused: bool, warned: bool
) -> None:
    """Only where the package of headers runs a dkms that fails with it: dpkg would leave the headers half configured."""
    decision = beside(module, dkms, **more)
    assert codes(decision) == (["other_module_fails"] if refused else [])
    assert [one.code for one in decision.warnings if one.code.startswith("other_")] == (
        ["other_module_builds"] if warned else []
    )
    for one in [*decision.refusals, *decision.warnings]:
        assert not one.code.startswith("other_") or "`dkms remove evdi/1.9.1 --all`" in one.remedy
    assert not refused or decision.steps == []


def test_headers_in_rpms_build_nothing() -> None:
    kernel = bare(T4, distro="el9").base.kernel.running
    decision = beside(OtherModule("evdi", "1.9.1", [], kernel), "3.2.2-1.el9", distro="el9")
    assert (decision.refusals, [one for one in decision.warnings if one.code.startswith("other_")]) == ([], [])
    assert "kernel_headers.install" in [step.id for step in decision.steps]
