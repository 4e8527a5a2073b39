"""Every driver source over a driver's life: install, pin, upgrade, downgrade, hold, removal, conflict, flavour."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.packaging import manager as packages
from plugins.plugin_utils.gpu_ready.catalog import data as catalog_data
from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion.probes import make_probes
from plugins.plugin_utils.gpu_ready.plan import apt_repository, compose, dnf_repository
from plugins.plugin_utils.gpu_ready.plan.driver import steps as driver_steps
from plugins.plugin_utils.gpu_ready.plan.driver.candidates import pairs_of_gpu
from plugins.plugin_utils.gpu_ready.plan.driver.model import HeadersParams
from plugins.plugin_utils.gpu_ready.plan.model import RepositoryParams
from tests.grid import sampled
from tests.unit.goldens import decide
from tests.unit.hosts import (
    B200,
    ENROLLED,
    H100,
    K80,
    P40,
    SECURE,
    T4,
    V100,
    attributed,
    bare,
    carried_out,
    having,
    installed,
    package_version,
    rpm,
    with_packages,
    without_packages,
)
from tests.unit.plans import all_todo, chosen_driver

pytestmark = pytest.mark.usefixtures("catalog_of_2026")

NEW, OLD = catalog.branch_rules(580).newest, catalog.branch_rules(570).newest


def steps(decided: compose.Plan) -> dict[str, dict[str, Any]]:
    """Return the parameters of the driver's steps by their action."""
    assert not decided.refusals, decided.refusals
    return {step.action: records.to_json(step.params) for step in decided.steps if step.role == "nvidia_driver"}


def names(params: dict[str, Any]) -> dict[str, Any]:
    """The packages of a step with the versions that they must have."""
    return {package["name"]: package["version"] for package in params["packages"]}


def codes(decided: compose.Plan) -> list[str]:
    return [refusal.code for refusal in decided.refusals]


# --- NVIDIA's repository on Enterprise Linux 8 and 9, Amazon Linux: module streams ----------------------------------

MODULAR = [
    key for key in catalog.distros() if catalog.distro(key)["driver_sources"].get("cuda_repo", {}).get("streams")
]
OPEN_KMOD, OTHER_KMOD = "kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms"


@pytest.mark.parametrize("distro", MODULAR)
@pytest.mark.parametrize(("device", "stream", "module"), [(T4, "580-open", OPEN_KMOD), (P40, "580-dkms", OTHER_KMOD)])
def test_a_stream_pins_the_branch(distro: str, device: str, stream: str, module: str) -> None:
    install = steps(decide(bare(device, distro=distro)))["install"]
    assert install["streams"] == {"nvidia-driver": stream}
    assert names(install) == {"nvidia-driver-cuda": "580.*", module: "580.*"}


def test_an_exact_version_is_exact_within_its_stream() -> None:
    install = steps(decide(bare(T4, distro="el9"), nvidia_driver_version="580.95.05"))["install"]
    assert install["streams"] == {"nvidia-driver": "580-open"}
    assert set(names(install).values()) == {"580.95.05-*"}
    assert install["expect"]["version"] == "580.95.05"


@pytest.mark.parametrize(("have", "want", "stream"), [(OLD, "595", "595-open"), (NEW, "570", "570-open")])
def test_another_branch_is_another_stream_up_and_down(have: str, want: str, stream: str) -> None:
    host = installed("el9", T4, "cuda_repo", have, "open")
    host = having(host, packages={"held": ["nvidia-driver-cuda", OPEN_KMOD]})
    host = having(host, driver={"held": ["nvidia-driver-cuda", OPEN_KMOD]})
    todo = steps(decide(host, nvidia_driver_branch=want))
    assert todo["install"]["streams"] == {"nvidia-driver": stream}
    assert todo["install"]["unhold"] == ["kmod-nvidia-open-dkms", "nvidia-driver-cuda"]
    assert set(todo["hold"]["packages"]) == {"nvidia-driver-cuda", OPEN_KMOD}
    assert todo["activate"]["action"] == "reload"


def test_the_other_flavour_is_another_stream_and_the_old_module_is_removed() -> None:
    host = installed("el9", T4, "cuda_repo", NEW, "open")
    install = steps(decide(host, nvidia_driver_flavour="proprietary"))["install"]
    assert install["streams"] == {"nvidia-driver": "580-dkms"}
    assert install["remove"] == [OPEN_KMOD]


def test_a_module_package_of_the_other_flavour_is_removed() -> None:
    """A killed transaction can leave both: DKMS would build whichever comes last."""
    host = installed("el9", T4, "cuda_repo", NEW, "open")
    added = {OTHER_KMOD: f"3:{NEW}-1.el9"}
    host = having(with_packages(host, **added), driver={"packages": {**host.driver.packages, **added}})
    assert steps(decide(host))["install"]["remove"] == [OTHER_KMOD]
    (why,) = [step.why for step in decide(host).steps if step.action == "install" and step.role == "nvidia_driver"]
    assert why.endswith(f"is incomplete: {OTHER_KMOD} of another version is installed")


def test_a_package_that_somebody_removed_is_named() -> None:
    host = installed("el9", T4, "cuda_repo", NEW, "open")
    host = having(without_packages(host, "nvidia-driver-cuda"), driver={"missing_parts": ["nvidia-smi"]})
    (why,) = [step.why for step in decide(host).steps if step.action == "install" and step.role == "nvidia_driver"]
    assert why == f"nvidia-smi is missing beside driver {NEW}"


def test_dkms_comes_from_epel_and_the_developers_section() -> None:
    (repository,) = [one for one in decide(bare(T4, distro="el9")).steps if one.id == "kernel_headers.repository"]
    assert isinstance(repository.params, RepositoryParams)
    assert [one.id for one in repository.params.repositories] == ["epel-9"]
    assert repository.params.enable == ["crb"]


def test_precompiled_modules_need_neither_compiler_nor_headers() -> None:
    decided = decide(bare(V100, distro="el9"), nvidia_driver_kernel_modules="precompiled")
    assert steps(decided)["install"]["streams"] == {"nvidia-driver": "580"}
    assert not [step for step in decided.steps if step.role == "kernel_headers"]


def test_from_dkms_to_precompiled_is_a_change_although_all_its_packages_are_installed() -> None:
    host = installed("el9", V100, "cuda_repo", NEW, "proprietary")
    install = steps(decide(host, nvidia_driver_kernel_modules="precompiled"))["install"]
    assert (install["streams"], install["remove"]) == ({"nvidia-driver": "580"}, [OTHER_KMOD])


def test_precompiled_modules_of_nvidia_are_for_the_systems_they_are_built_for() -> None:
    host = bare(V100, distro="el9")
    host = having(host, base={"os": {"id": "rocky"}})
    decided = decide(host, nvidia_driver_kernel_modules="precompiled")
    assert codes(decided) and not decided.steps


# --- NVIDIA's repository without streams ---------------------------------------------------------------------------

FLAT = ["el10"]


@pytest.mark.parametrize("distro", [key for key in FLAT if key in catalog.distros()])
def test_without_streams_the_version_pins_the_branch(distro: str) -> None:
    install = steps(decide(bare(P40, distro=distro)))["install"]
    assert (install["streams"], names(install)) == ({}, {"nvidia-driver-cuda": "580.*", OTHER_KMOD: "580.*"})
    exact = steps(decide(bare(P40, distro=distro), nvidia_driver_version="580.95.05"))["install"]
    assert set(names(exact).values()) == {"580.95.05-*"}


@pytest.mark.parametrize(("distro", "device"), [("debian12", T4), ("debian13", P40)])
def test_a_source_with_one_branch_needs_no_version_of_its_packages(distro: str, device: str) -> None:
    install = steps(decide(bare(device, distro=distro), nvidia_driver_source="distro"))["install"]
    assert set(names(install).values()) == {None}


@pytest.mark.parametrize("distro", [key for key in FLAT if key in catalog.distros()])
@pytest.mark.parametrize(("have", "want"), [(NEW, "595"), ("595.91.07", "580"), ("590.48.01", "580")])
def test_without_streams_a_branch_is_reached_up_and_down(distro: str, have: str, want: str) -> None:
    host = installed(distro, T4, "cuda_repo", have, "open")
    todo = steps(decide(host, nvidia_driver_branch=want))
    assert set(names(todo["install"]).values()) == {want + ".*"}
    assert todo["hold"]["packages"] == list(names(todo["install"]))


@pytest.mark.parametrize("distro", [key for key in catalog.distros() if rpm(key)])
def test_a_hold_installs_its_tool_once(distro: str) -> None:
    tools = catalog.distro(distro)["hold_tools"]
    assert steps(decide(bare(T4, distro=distro)))["hold"]["tools"] == tools
    present = bare(T4, distro=distro)
    present = with_packages(present, **dict.fromkeys(tools, "1-1"))
    assert steps(decide(present))["hold"]["tools"] == []


# --- Ubuntu's archive and NVIDIA's repository for it ---------------------------------------------------------------

UBUNTU = "ubuntu2404"
KERNEL_UPDATES = {"linux-image-generic": "6.8.0-88.88"}


def modules(branch: int, flavour: str = "-open") -> str:
    return f"linux-modules-nvidia-{branch}-server{flavour}-{bare(distro=UBUNTU).base.kernel.running}"


def test_modules_signed_by_the_distribution_are_taken_where_secure_boot_rejects_others() -> None:
    decided = decide(bare(T4, distro=UBUNTU, secure_boot=SECURE))
    assert (chosen_driver(decided).source, chosen_driver(decided).kind) == ("distro", "precompiled")
    assert modules(580) in names(steps(decided)["install"])
    assert not [step for step in decided.steps if step.role == "kernel_headers"]


@pytest.mark.parametrize("boot", [{}, {"secure_boot": ENROLLED}])
def test_the_module_is_built_here_for_each_kernel_that_an_update_installs(boot: dict[str, Any]) -> None:
    """The libraries are held, and precompiled modules for the next kernel may need newer ones."""
    host = with_packages(bare(T4, distro=UBUNTU, **boot), **KERNEL_UPDATES)
    decided = decide(host)
    assert (chosen_driver(decided).source, chosen_driver(decided).kind) == ("distro", "dkms")
    (headers,) = [step for step in decided.steps if step.id == "kernel_headers.install"]
    assert isinstance(headers.params, HeadersParams) and headers.params.optional == ["linux-headers-generic"]
    after = with_packages(carried_out(host, decided), **{"linux-headers-generic": "6.8.0-88.88"})
    assert "next_kernel_uncovered" not in [one.code for one in decide(after).warnings]


def test_a_kernel_update_that_would_cost_the_gpu_is_a_warning() -> None:
    """Audits report it before the update. Hosts without a package that follows the kernels get none."""
    quiet = installed(UBUNTU, T4, "distro", NEW, "open", "precompiled")
    assert "next_kernel_uncovered" not in [one.code for one in decide(quiet).warnings]
    (warning,) = [one for one in decide(with_packages(quiet, **KERNEL_UPDATES)).warnings if "next" in one.code]
    assert warning.code == "next_kernel_uncovered" and "6.8.0-88-generic" in warning.message
    assert "nvidia_driver_kernel_modules to dkms" in warning.remedy
    planned = with_packages(bare(T4, distro=UBUNTU, secure_boot=SECURE), **KERNEL_UPDATES)
    assert [one.message for one in decide(planned).warnings if "next" in one.code] == [warning.message]
    built = with_packages(installed(UBUNTU, T4, "distro", NEW, "open"), **KERNEL_UPDATES)
    (warning,) = [one for one in decide(built).warnings if "next" in one.code]
    assert warning.message.startswith("linux-headers-generic is not installed")
    assert warning.remedy == "run 'apt-get install linux-headers-generic' on the host"


@pytest.mark.parametrize(
    ("package", "series"),
    [
        ("linux-image-generic", ["generic"]),
        ("linux-image-generic-hwe-24.04", ["generic-hwe-24.04"]),
        ("linux-image-aws", ["aws"]),
        ("linux-image-cloud-amd64", ["cloud-amd64"]),
        ("linux-image-6.8.0-88-generic", []),
        ("linux-image-unsigned-6.8.0-88-generic", []),
        ("linux-image-amd64-dbg", []),
        ("linux-image-extra-virtual", []),
        ("linux-headers-generic", []),
    ],
)
def test_packages_that_follow_the_kernels_of_a_series(package: str, series: list[str]) -> None:
    assert driver_steps.kernel_series(with_packages(bare(T4, distro=UBUNTU), **{package: "1"})) == series


def test_another_branch_keeps_the_kind_of_module() -> None:
    """The host may have no compiler; also after a reboot into a kernel without a module."""
    host = installed(UBUNTU, T4, "distro", NEW, "open", "precompiled")
    assert chosen_driver(decide(host, nvidia_driver_branch=595)).kind == "precompiled"
    newer = "6.8.0-99-generic"
    exact = decide(host, nvidia_driver_version="580.95.05")
    assert not exact.refusals and chosen_driver(exact).kind == "dkms"
    kernel = {"running": newer, "next_boot": newer, "installed": [newer]}
    rebooted = having(host, base={"kernel": kernel}, driver={"on_disk": None, "loaded": None})
    assert chosen_driver(decide(rebooted)).kind == "precompiled"


def test_modules_are_installed_also_for_the_kernel_that_boots_next() -> None:
    """A fresh image waits for a reboot into a newer kernel: without its modules the host has no GPUs after it."""
    host = bare(T4, distro=UBUNTU, secure_boot=SECURE)
    newer = "6.8.0-99-generic"
    host = having(host, base={"kernel": {"next_boot": newer}})
    asked = names(steps(decide(host))["install"])
    assert {modules(580), f"linux-modules-nvidia-580-server-open-{newer}"} <= set(asked)
    done = carried_out(host, decide(host))
    done = having(done, base={"kernel": {"running": newer}})
    done = having(done, base={"boot_id": "b9"})
    assert ids(decide(done)) == ["gpu_verify.verify"]


def test_a_newer_kernel_without_modules_is_a_warning_before_it_boots() -> None:
    """Unattended upgrades install kernels without their precompiled modules, so the GPUs would not work."""
    host = installed(UBUNTU, T4, "distro", NEW, "open", "precompiled")
    assert [one.code for one in decide(host).warnings if "kernel" in one.code] == []
    newer = "6.8.0-99-generic"
    host = having(host, base={"kernel": {"next_boot": newer}}, driver={"kernel_without_module": newer})
    (warning,) = [one for one in decide(host).warnings if "kernel" in one.code]
    assert (warning.code, newer in warning.message) == ("next_kernel_without_module", True)
    assert f"linux-modules-nvidia-580-server-open-{newer}" in warning.remedy and "dkms" in warning.remedy
    # With another driver, the modules of both kernels are installed at once.
    assert not [one for one in decide(host, nvidia_driver_branch=595).warnings if "kernel" in one.code]


def test_modules_of_a_kernel_are_removed_with_it_so_they_are_not_held() -> None:
    """Held, they would keep every old kernel forever; newer ones need a driver that the hold prevents."""
    todo = steps(decide(bare(T4, distro=UBUNTU, secure_boot=SECURE)))
    assert todo["hold"]["packages"] == ["nvidia-headless-no-dkms-580-server-open", "nvidia-utils-580-server"]
    assert modules(580) in names(todo["install"])


def test_a_point_release_of_the_archive_is_built_here_because_signed_modules_follow_the_kernel() -> None:
    """The modules' packages have the kernel's version: a driver version cannot be requested."""
    decided = decide(bare(T4, distro=UBUNTU), nvidia_driver_source="distro", nvidia_driver_version="580.95.05")
    assert chosen_driver(decided).kind == "dkms"
    assert set(names(steps(decided)["install"]).values()) == {"580.95.05-*"}
    asked = {"nvidia_driver_kernel_modules": "precompiled", "nvidia_driver_version": "580.95.05"}
    (refusal,) = decide(bare(T4, distro=UBUNTU), nvidia_driver_source="distro", **asked).refusals
    assert refusal.code == "kernel_modules_impossible"
    assert "580.95.05" in refusal.message and "nvidia_driver_branch" in refusal.remedy


@pytest.mark.parametrize(("have", "want"), [("570.211.01", 580), ("595.91.07", 580)])
def test_the_archives_branch_is_in_the_names(have: str, want: int) -> None:
    host = installed(UBUNTU, T4, "distro", have, "open", "precompiled")
    install = steps(decide(host, nvidia_driver_branch=want))["install"]
    assert names(install) == dict.fromkeys(
        [modules(want), f"nvidia-headless-no-dkms-{want}-server-open", f"nvidia-utils-{want}-server"]
    )
    assert install["remove"] == sorted(host.driver.packages)


def test_the_archives_other_flavour_and_kind_are_removed() -> None:
    host = installed(UBUNTU, T4, "distro", NEW, "open", "precompiled")
    install = steps(decide(host, nvidia_driver_flavour="proprietary"))["install"]
    assert modules(580) in install["remove"] and modules(580, "") in names(install)
    host = having(host, base={"kernel": {"installed": [*host.base.kernel.installed, "6.8.0-99-generic"]}})
    later = "linux-modules-nvidia-580-server-open-6.8.0-99-generic"
    host = having(host, driver={"packages": {**host.driver.packages, later: "6.8.0-99.99"}})
    host = with_packages(host, **{later: "6.8.0-99.99"})
    assert later in steps(decide(host, nvidia_driver_flavour="proprietary"))["install"]["remove"]
    host = having(host, driver={"packages": {k: v for k, v in host.driver.packages.items() if k != later}})
    install = steps(decide(host, nvidia_driver_kernel_modules="dkms"))["install"]
    assert install["remove"] == [modules(580)] and "nvidia-dkms-580-server-open" in names(install)


@pytest.mark.parametrize(
    ("branch", "packages"),
    [
        ("580", {"libnvidia-compute-580", "nvidia-utils-580", "nvidia-dkms-580-open"}),
        ("595", {"libnvidia-compute", "nvidia-dkms-open"}),
    ],
)
def test_nvidias_names_for_ubuntu_before_and_after_590(branch: str, packages: set[str]) -> None:
    decided = decide(bare(T4, distro=UBUNTU), nvidia_driver_source="cuda_repo", nvidia_driver_branch=branch)
    install = steps(decided)["install"]
    assert set(names(install)) == packages
    assert install["pin_packages"] == [f"nvidia-driver-pinning-{branch}"]


@pytest.mark.parametrize(("have", "want"), [(NEW, "595"), ("595.91.07", "580")])
def test_after_the_change_of_names_nothing_of_the_old_driver_stays(have: str, want: str) -> None:
    host = installed(UBUNTU, T4, "cuda_repo", have, "open")
    install = steps(decide(host, nvidia_driver_branch=want))["install"]
    assert install["remove"] == sorted(host.driver.packages)
    assert (install["pin_packages"], install["pin_remove"]) == (
        [f"nvidia-driver-pinning-{want}"], [f"nvidia-driver-pinning-{have[:3]}"],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("distro", "source"),
    [("el9", "cuda_repo"), ("el10", "cuda_repo"), (UBUNTU, "cuda_repo"), ("debian12", "cuda_repo")],
)
def test_a_request_for_the_other_flavour_keeps_the_branch(distro: str, source: str) -> None:
    """A request for another module is not a request for an older driver."""
    host = installed(distro, T4, source, "595.91.07", "open")
    chosen = chosen_driver(decide(host, nvidia_driver_flavour="proprietary"))
    assert (chosen.branch, chosen.flavour) == (595, "proprietary")


def test_an_exact_version_of_nvidias_apt_repository_is_a_pin() -> None:
    requested = {"nvidia_driver_source": "cuda_repo", "nvidia_driver_version": "580.95.05"}
    install = steps(decide(bare(T4, distro=UBUNTU), **requested))["install"]
    assert install["pin_packages"] == ["nvidia-driver-pinning-580.95.05"]
    assert install["expect"]["version"] == "580.95.05"


# --- ELRepo --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "packages"),
    [
        (T4, ["kmod-nvidia-open", "nvidia-x11-drv", "nvidia-x11-drv-libs"]),
        (B200, ["kmod-nvidia-open", "nvidia-x11-drv", "nvidia-x11-drv-libs"]),
        (P40, ["kmod-nvidia-580xx", "nvidia-x11-drv-580xx", "nvidia-x11-drv-580xx-libs"]),
        (K80, ["kmod-nvidia-470xx", "nvidia-x11-drv-470xx", "nvidia-x11-drv-470xx-libs"]),
    ],
)
def test_elrepos_names_contain_the_branch_and_its_detector_runs_first(device: str, packages: list[str]) -> None:
    decided = decide(bare(device, distro="el9"), nvidia_driver_source="elrepo")
    todo = steps(decided)
    assert list(names(todo["install"])) == packages
    assert todo["detect"]["packages"] == ["nvidia-detect"]
    assert packages[0] in todo["detect"]["expect"]
    assert [card[:9] for card in todo["detect"]["gpus"]] == ["10de:" + device]
    order = list(todo)
    assert order.index("repository") < order.index("detect") < order.index("install")


def test_elrepos_detector_ignores_the_request_so_its_answer_is_that_of_the_card() -> None:
    todo = steps(decide(bare(T4, distro="el9"), nvidia_driver_source="elrepo", nvidia_driver_branch="580"))
    assert list(names(todo["install"]))[0] == "kmod-nvidia-580xx"
    assert "kmod-nvidia-open" in todo["detect"]["expect"]


def test_elrepo_is_used_only_on_request_and_kept() -> None:
    assert chosen_driver(decide(bare(T4, distro="el9"))).source == "cuda_repo"
    host = installed("el9", P40, "elrepo", NEW, "proprietary", "precompiled")
    assert (chosen_driver(decide(host)).source, "install" in steps(decide(host))) == ("elrepo", False)


def test_elrepo_and_nvidias_repository_do_not_mix() -> None:
    host = installed("el9", P40, "elrepo", NEW, "proprietary", "precompiled")
    assert codes(decide(host, nvidia_driver_source="cuda_repo")) == ["foreign_driver"]
    todo = steps(decide(host, nvidia_driver_source="cuda_repo", nvidia_driver_replace_foreign=True))
    assert todo["install"]["remove"] == ["kmod-nvidia-580xx", "nvidia-x11-drv-580xx", "nvidia-x11-drv-580xx-libs"]
    after = steps(decide(installed("el9", P40, "cuda_repo", NEW, "proprietary"), nvidia_driver_source="cuda_repo"))
    assert "install" not in after


def test_elrepos_modules_are_signed_with_its_own_key() -> None:
    for boot in (SECURE, ENROLLED):
        host = bare(P40, distro="el9", secure_boot=boot)
        (refusal,) = decide(host, nvidia_driver_source="elrepo").refusals
        assert refusal.code == "secure_boot_unsigned" and "elrepo" in refusal.message


# --- NVIDIA's installer --------------------------------------------------------------------------------------------

RUNFILES = [key for key in catalog.distros() if "runfile" in driver_sources.source_names(catalog.distro(key))]


@pytest.mark.parametrize("distro", RUNFILES)
def test_the_installer_is_downloaded_with_its_checksum(distro: str) -> None:
    todo = steps(decide(bare(P40, distro=distro), nvidia_driver_source="runfile"))["runfile"]
    assert todo["source"].endswith(f"NVIDIA-Linux-x86_64-{todo['version']}.run")
    assert todo["sha256_url"].startswith(todo["source"])
    assert todo["kernels"] == [bare(distro=distro).base.kernel.running]
    assert (todo["uninstall"], todo["flavour"]) == (None, "proprietary")


def test_the_version_is_in_the_name_of_the_operators_file() -> None:
    file = "/srv/NVIDIA-Linux-x86_64-535.309.01.run"
    todo = steps(decide(bare(T4, distro="el9"), nvidia_driver_runfile=file, nvidia_driver_runfile_sha256="a" * 64))
    assert (todo["runfile"]["source"], todo["runfile"]["version"]) == (file, "535.309.01")
    assert (todo["runfile"]["sha256"], todo["runfile"]["sha256_url"]) == ("a" * 64, "")
    assert codes(decide(bare(T4, distro="el9"), nvidia_driver_runfile="/srv/driver.run")) == ["runfile_version_unknown"]


@pytest.mark.parametrize(("have", "want"), [(OLD, NEW), (NEW, OLD)])
def test_an_installer_replaces_its_own_driver_up_and_down(have: str, want: str) -> None:
    host = installed("el9", T4, "runfile", have, "open")
    todo = steps(decide(host, nvidia_driver_source="runfile", nvidia_driver_version=want))
    assert (todo["runfile"]["version"], todo["runfile"]["uninstall"]) == (want, "/usr/bin/nvidia-uninstall")
    flavour = steps(decide(host, nvidia_driver_source="runfile", nvidia_driver_flavour="proprietary"))
    assert flavour["runfile"]["flavour"] == "proprietary"


def test_packages_are_removed_before_an_installer_runs() -> None:
    host = installed("el9", T4, "cuda_repo", NEW, "open")
    host = having(host, packages={"held": ["nvidia-driver-cuda"]})
    host = having(host, driver={"held": ["nvidia-driver-cuda"]})
    assert codes(decide(host, nvidia_driver_source="runfile")) == ["foreign_driver"]
    todo = steps(decide(host, nvidia_driver_source="runfile", nvidia_driver_replace_foreign=True))
    assert list(todo).index("remove_packages") < list(todo).index("runfile")
    assert todo["remove_packages"] == {"packages": sorted(host.driver.packages), "unhold": ["nvidia-driver-cuda"]}


def test_an_installed_runfile_driver_has_nothing_to_hold() -> None:
    assert "hold" not in steps(decide(bare(T4, distro="el9"), nvidia_driver_source="runfile"))


# --- a driver that somebody else maintains -------------------------------------------------------------------------


@pytest.mark.parametrize("distro", catalog.distros())
def test_none_changes_no_driver_and_requires_one(distro: str) -> None:
    present = installed(distro, P40, "runfile", NEW, "proprietary")
    assert steps(decide(present, nvidia_driver_source="none")) == {}
    assert "driver_missing" in codes(decide(bare(P40, distro=distro), nvidia_driver_source="none"))


# --- what a plan needs beside the driver ---------------------------------------------------------------------------


def ids(decided: compose.Plan) -> list[str]:
    return [step.id for step in decided.steps]


def added_repositories(decided: compose.Plan) -> list[str]:
    """The repositories of headers and build tools."""
    todo = all_todo(decided).get("kernel_headers.repository") or {"repositories": []}
    return [one["id"] for one in todo["repositories"]]


def test_a_vault_is_added_only_if_requested_and_needed() -> None:
    host = bare(T4, distro="el8")
    assert "vault-centos8" not in added_repositories(decide(host))
    assert "vault-centos8" in added_repositories(decide(host, gpu_ready_vault=True))
    host = having(host, base={"kernel": {"headers": dict.fromkeys(host.base.kernel.installed, True)}})
    assert "vault-centos8" not in added_repositories(decide(host, gpu_ready_vault=True))


def test_headers_are_installed_for_the_running_kernel_and_the_next_only() -> None:
    """DKMS builds for every kernel that has headers: minutes for each."""
    kernel = {"running": "5.14.0-1", "next_boot": "5.14.0-3", "installed": ["5.14.0-1", "5.14.0-2", "5.14.0-3"]}
    todo = all_todo(decide(bare(T4, distro="el9", kernel=kernel | {"headers": {}})))["kernel_headers.install"]
    assert todo["packages"][:2] == ["kernel-devel-5.14.0-1", "kernel-devel-5.14.0-3"]
    assert "5.14.0-2" not in str(todo)


@pytest.mark.parametrize(
    ("distro", "running", "package"),
    [
        ("el9", "5.15.0-300.el9uek.x86_64", "kernel-uek-devel-5.15.0-300.el9uek.x86_64"),
        ("el9", "5.15.0-300.el9uek.x86_64+debug", "kernel-uek-debug-devel-5.15.0-300.el9uek.x86_64"),
        ("el8", "4.18.0-553.el8_10.x86_64+debug", "kernel-debug-devel-4.18.0-553.el8_10.x86_64"),
        ("fedora44", "6.18.2-300.fc44.x86_64+debug", "kernel-debug-devel-6.18.2-300.fc44.x86_64"),
        ("ubuntu2404", "6.8.0-1035-aws", "linux-headers-6.8.0-1035-aws"),
        ("amzn2023", "6.1.158-178.288.amzn2023.x86_64", "kernel-devel-6.1.158-178.288.amzn2023.x86_64"),
        ("amzn2023", "6.12.58-82.121.amzn2023.x86_64", "kernel6.12-devel-6.12.58-82.121.amzn2023.x86_64"),
        ("amzn2023", "6.18.44-99.149.amzn2023.x86_64", "kernel6.18-devel-6.18.44-99.149.amzn2023.x86_64"),
        ("debian12", "6.1.0-50-cloud-amd64", "linux-headers-6.1.0-50-cloud-amd64"),
        ("debian12", "6.8.12-15-pve", "proxmox-headers-6.8.12-15-pve"),
        ("debian13", "6.14.11-4-pve", "proxmox-headers-6.14.11-4-pve"),
    ],
)
def test_some_kernels_have_headers_of_their_own_name(distro: str, running: str, package: str) -> None:
    assert headers(distro, running) == package
    assert packages.HEADERS.match(package)


def headers(distro: str, running: str, **present: str) -> str:
    """The first package that a module build on a kernel installs; ``there``: packages with their versions."""
    kernel = {"running": running, "next_boot": running, "headers": {}, "installed": [running]}
    host = bare(T4, distro=distro, kernel=kernel)
    host = with_packages(host, **{name.replace("_", "-"): version for name, version in present.items()})
    expected = {"nvidia_driver_kernel_modules": "dkms"}
    return str(all_todo(decide(host, **expected))["kernel_headers.install"]["packages"][0])


@pytest.mark.parametrize(
    ("present", "package"),
    [
        ({"kernel_lt_core": "6.1.110-1.el9.elrepo"}, "kernel-lt-devel"),
        ({"kernel_ml_core": "6.1.110-1.el9.elrepo"}, "kernel-ml-devel"),
        ({"kernel_ml": "6.1.110-1.el7.elrepo"}, "kernel-ml-devel"),
        # Of both, the kernel of this series runs, if not in the newest installed version.
        ({"kernel_lt_core": "6.1.112-1.el9.elrepo", "kernel_ml_core": "6.10.8-1.el9.elrepo"}, "kernel-lt-devel"),
        ({"kernel_lt_core": "5.15.9-1.el9.elrepo", "kernel_ml_core": "6.1.112-1.el9.elrepo"}, "kernel-ml-devel"),
        ({}, "kernel-lt-devel"),
    ],
)
def test_the_headers_of_elrepos_kernels_follow_the_installed_package(present: dict[str, str], package: str) -> None:
    """Their releases do not distinguish the long-term kernel (lt) from the newest one (ml)."""
    running = "6.1.110-1.el9.elrepo.x86_64"
    assert headers("el9", running, **present) == f"{package}-{running}"


@pytest.mark.parametrize("distro", ["el9", "el10", "fedora44"])
def test_dkms_installs_no_newer_kernel(distro: str) -> None:
    """It requires kernel-devel-matched beside kernel-core, and dnf installs the newest, which requires its own kernel."""
    host = bare(T4, distro=distro, compiler="/usr/bin/gcc")
    running = host.base.kernel.running
    host = having(host, base={"kernel": {"headers": {running: True}}})
    assert "kernel_headers.install" not in all_todo(decide(host))
    host = with_packages(host, **{"kernel-core": running.rpartition(".")[0]})
    todo = all_todo(decide(host))["kernel_headers.install"]
    assert (todo["packages"], todo["optional"]) == ([], [f"kernel-devel-matched-{running.rpartition('.')[0]}.x86_64"])
    assert packages.HEADERS.match(todo["optional"][0])
    both = with_packages(host, **{"kernel-debug-core": "1-2"})
    optional = all_todo(decide(both))["kernel_headers.install"]["optional"]
    assert optional == todo["optional"] + ["kernel-debug-devel-matched-1-2.x86_64"]
    for present in ("dkms", "kernel-devel-matched"):
        done = with_packages(host, **{present: "1-1"})
        assert "kernel_headers.install" not in all_todo(decide(done))


def test_packages_that_match_the_kernel_have_its_architecture() -> None:
    version, running = "6.12.0-211.8.1.el10_2", "6.12.0-211.8.1.el10_2.x86_64_v2"
    state = {"running": running, "installed": [running], "next_boot": running, "headers": {running: True}}
    host = having(bare(T4, distro="el10", compiler="/usr/bin/gcc"), base={"kernel": state})
    todo = all_todo(decide(with_packages(host, **{"kernel-core": version})))["kernel_headers.install"]
    assert todo["optional"] == [f"kernel-devel-matched-{running}"]


RHUI = [
    "codeready-builder-for-rhel-9-rhui-rpms",  # Amazon
    "codeready-builder-for-rhel-9-x86_64-rhui-rpms",  # Microsoft
    "rhui-codeready-builder-for-rhel-9-x86_64-rhui-rpms",  # Google
]


def test_an_enabled_or_unknown_section_is_left_alone() -> None:
    """RHEL and Oracle Linux have other names for the developers' repository; a mirror may have merged it into another."""
    listed = catalog.distro("el9")["build_enable"]
    for text, expected in (
        ("[crb]\nenabled=0\n", ["crb"]),
        ("[crb]\nenabled = 1\n", []),
        ("[crb]\nname=without a word it is on\n", []),
        ("[ol9_codeready_builder]\nenabled=0\n", ["ol9_codeready_builder"]),
        *((f"[{name}]\nenabled=0\n", [name]) for name in RHUI),
        ("[site]\nenabled=1\n", []),
    ):
        host = having(bare(T4, distro="el9"), yum={"sources": {"/etc/yum.repos.d/a.repo": text}})
        assert dnf_repository.sections_to_enable(host, listed) == expected, text


@pytest.mark.parametrize(
    ("lines", "missing"),
    [
        pytest.param("deb http://a.example/debian bookworm main contrib non-free", False, id="own"),
        pytest.param("deb http://a.example/debian bookworm main", True, id="own without it"),
        pytest.param(
            "deb http://a.example/debian bookworm main\n"
            "deb [signed-by=/etc/apt/keyrings/vendor.gpg] http://vendor.example/debian bookworm main contrib non-free",
            True,
            id="only a third party's, with a key of its own",
        ),
        pytest.param(
            "deb http://a.example/debian bookworm main\ndeb http://tools.example/apt stable contrib non-free",
            True,
            id="only a third party's, under another path",
        ),
        pytest.param("deb http://a.example/apt-proxy bookworm main contrib non-free", False, id="a mirror's own path"),
        pytest.param("deb http://a.example/apt-proxy bookworm main", True, id="a mirror's own path, without it"),
        pytest.param("#deb http://a.example/debian bookworm main contrib non-free", True, id="commented out"),
        pytest.param(
            "deb [arch=amd64] http://a.example/debian bookworm main\n"
            "deb http://a.example/debian bookworm-backports main contrib non-free",
            False,
            id="another suite of it",
        ),
        pytest.param(
            "deb http://a.example/debian bookworm main\ndeb http://a.example/debian bookworm contrib non-free",
            False,
            id="an entry of its own",
        ),
    ],
)
def test_a_component_exists_if_the_distributions_own_archive_names_it(lines: str, missing: bool) -> None:
    host = having(bare(T4), apt={"sources": {"/etc/apt/sources.list": lines + "\n"}})
    assert apt_repository.components_missing(host, ["contrib", "non-free"], "bookworm") == missing


def test_a_disabled_source_of_a_component_does_not_count() -> None:
    stanza = "Types: deb\nURIs: http://a.example/ubuntu\nSuites: noble\nComponents: main restricted\n"
    for text, missing in ((stanza, False), ("Enabled: no\n" + stanza, True)):
        host = having(bare(T4), apt={"sources": {"/etc/apt/sources.list.d/ubuntu.sources": text}})
        assert apt_repository.components_missing(host, ["restricted"], "noble") == missing


@pytest.mark.parametrize("name", ["epel-9", "cuda-rhel9", "docker-ce-el9"])
def test_every_repository_of_a_plan_has_a_pinned_key(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog_data.REPOSITORIES[name], "fingerprint", None)
    (refusal,) = decide(bare(T4, distro="el9"), gpu_ready_mirror_keys={}).refusals
    assert refusal.code == "repository_key_unknown" and name in refusal.message
    given = decide(bare(T4, distro="el9"), gpu_ready_mirror_keys={name: "AB" * 20})
    params = [step.params for step in given.steps if isinstance(step.params, RepositoryParams)]
    assert [one.fingerprint for added in params for one in added.repositories if one.id == name] == ["AB" * 20]


def test_a_toolkits_repository_needs_a_pinned_key_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(catalog_data.REPOSITORIES["cuda-rhel9"], "fingerprint", None)
    decided = decide(bare(T4, distro="el9"), nvidia_driver_source="runfile", gpu_ready_mirror_keys={})
    assert codes(decided) == ["repository_key_unknown"]


def test_libraries_of_another_version_are_replaced() -> None:
    host = installed("el9", T4, "cuda_repo", NEW, "open")
    host = having(host, driver={"userspace": ["580.95.05"]})
    (why,) = [step.why for step in decide(host).steps if step.id == "nvidia_driver.install"]
    assert "580.95.05" in why


def test_a_fabric_manager_of_another_version_or_without_its_hold_is_a_step_again() -> None:
    host = bare(H100, distro="el9", nvswitches=4)
    done = carried_out(host, decide(host))
    assert ids(decide(done)) == []
    lost = having(done, packages={"held": [name for name in done.packages.held if name != "nvidia-fabricmanager"]})
    assert ids(decide(lost)) == ["nvidia_driver.fabricmanager", "gpu_verify.verify"]
    other = with_packages(done, **{"nvidia-fabricmanager": "3:580.95.05-1.el9"})
    assert ids(decide(other)) == ["nvidia_driver.fabricmanager", "gpu_verify.verify"]
    todo = all_todo(decide(other))["nvidia_driver.fabricmanager"]
    assert todo["packages"] == [{"name": "nvidia-fabricmanager", "version": f"{NEW}-*"}]


@pytest.mark.parametrize(
    ("distro", "expected", "present", "member", "package", "start"),
    [
        pytest.param("el9", {}, None, False, None, False, id="nobody asked for it"),
        pytest.param("el9", {}, None, True, "nvidia-imex", True, id="a node of a domain"),
        pytest.param("ubuntu2404", {}, None, True, "nvidia-imex", True, id="a node of a domain, deb"),
        pytest.param("el9", {"nvidia_driver_branch": "570"}, None, True, "nvidia-imex-570", True, id="rpm below 580"),
        pytest.param("amzn2023", {"nvidia_driver_branch": "575"}, None, True, "nvidia-imex-575", True, id="Amazon"),
        pytest.param(
            "el9", {}, "3:570.1-1", False, "nvidia-imex", False, id="installed, no domain: follows the driver"
        ),
        pytest.param("el9", {"nvidia_driver_branch": "535"}, None, True, None, False, id="a branch without it"),
        pytest.param("el9", {"nvidia_driver_source": "elrepo"}, None, True, None, False, id="a source without it"),
    ],
)
def test_imex_is_installed_on_request_and_follows_the_driver(
    distro: str, expected: dict[str, Any], present: str | None, member: bool, package: str | None, start: bool
) -> None:
    expected = {"nvidia_driver_source": "cuda_repo", **expected}
    host = bare(T4, distro=distro)
    host = having(host, driver={"imex": {"member": member}})
    if present:
        host = with_packages(host, **{"nvidia-imex": present})
    decided = decide(host, **expected)
    params = all_todo(decided).get("nvidia_driver.imex")
    assert (params["packages"][0]["name"] if params else None) == package
    assert params is None or (params["start"], params["service"]) == (start, "nvidia-imex")
    assert [warning.code for warning in decided.warnings if "imex" in warning.code] == (
        ["no_imex"] if member and not package else []
    )
    done = carried_out(host, decided)
    assert ids(decide(done, **expected)) == []
    if not package:
        return
    order = ids(decided)
    assert order.index("nvidia_driver.activate") < order.index("nvidia_driver.imex")
    held = [name for name in done.packages.held if name != package]
    for other, reason in (
        (with_packages(done, **{package: "3:470.1-1"}), "exactly its own version"),
        (having(done, packages={"held": held}), "an unattended upgrade"),
        (having(done, driver={"imex": {"running": False}}), "does not run"),
    ):
        whys = [step.why for step in decide(other, **expected).steps if step.id == "nvidia_driver.imex"]
        assert [reason in why for why in whys] == ([True] if start or reason != "does not run" else [])


# --- every source of every distribution ----------------------------------------------------------------------------

EVERY = [(key, name) for key in catalog.distros() for name in driver_sources.source_names(catalog.distro(key))]


@pytest.mark.parametrize(("distro", "source"), EVERY)
def test_installed_packages_are_attributed_to_their_source(distro: str, source: str) -> None:
    """Every branch, flavour, kind and profile; else the next run would refuse gpu-ready's own driver as foreign."""
    data = catalog.distro(distro)
    host = bare(T4, distro=distro)
    kernel = host.base.kernel.running
    for kind in driver_sources.module_kinds(data, source) if source != "runfile" else []:
        for profile in driver_sources.PROFILES:
            for branch, flavour in driver_sources.branch_flavours(data, source, kind, profile):
                listed = driver_sources.packages(data, source, branch, profile, flavour, kind, kernel)
                present = {name: package_version(host, name, f"{branch}.10.01") for name in listed}
                ours = make_probes().driver_packages(present)
                assert ours, (branch, flavour, kind, profile)
                assert attributed(ours, distro, source) == source, (kind, branch, listed)


@pytest.mark.parametrize(("distro", "source"), sampled(EVERY, 3))
def test_installed_held_upgraded_and_rolled_back(distro: str, source: str) -> None:
    """Each branch after the other, up and down again; each time the next plan is empty."""
    data = catalog.distro(distro)
    known = {(branch.number, flavour) for branch in catalog.branches() for flavour in branch.flavours}
    carried = {
        pair
        for kind in driver_sources.module_kinds(data, source)
        for pair in driver_sources.branch_flavours(data, source, kind, "compute")
    }
    branches = sorted({branch for branch, _ in carried & known & pairs_of_gpu(T4)})
    host = bare(T4, distro=distro)
    for branch in branches + branches[::-1][1:]:
        requested = {"nvidia_driver_source": source, "nvidia_driver_branch": str(branch)}
        decided = decide(host, **requested)
        assert steps(decided), (branch, decided.summary)
        host = carried_out(host, decided)
        assert decide(host, **requested).converged, (branch, decide(host, **requested).steps)
        if source != "runfile":
            kernel = host.base.kernel.running
            held = {name for name in chosen_driver(decided).packages if kernel not in name}
            assert held and held <= set(host.packages.held)
