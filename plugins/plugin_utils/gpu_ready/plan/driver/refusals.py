"""Warnings about the driver, and refusals of hosts that get none: each names the cause and the remedy."""

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.facts.model import Facts, GpuFacts
from ...catalog import driver_packages, driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import DKMS, FLAVOURS, PRECOMPILED
from ...catalog.model import Distribution
from ...completion import os_family
from ...report.layout import counted
from .. import repository
from ..model import DriverChoice, Notice, Refusal, VariableChange, notify, refuse
from .candidates import (
    OF_KERNEL,
    DriverRequest,
    fits_kernel,
    pairs_of_gpu,
    pairs_of_host,
    with_fabricmanager,
)
from .steps import is_held_by_us

TREE = "/var/lib/dkms/"


def machine_unsupported(facts: Facts) -> Refusal:
    return Refusal(
        "machine_unsupported",
        "this is a machine of kind %s, and gpu-ready knows the packages for %s only"
        % (facts.base.arch, catalog.MACHINE),
        "take the host out of the inventory of gpu-ready",
    )


def unknown_distribution(facts: Facts, treat_as: str = "") -> Refusal:
    """Refuse a system that the catalog does not have, and one that has other packages than what it is treated as."""
    system, served = facts.base.os, os_family.served_by_nvidia(facts.base.os)
    manager = facts.base.package_manager or (served["package_manager"] if served else None)
    fitting = os_family.similar(system, manager)
    foreign = manager if manager not in {catalog.distro(key)["package_manager"] for key in catalog.distros()} else None
    remedy = "set gpu_ready_treat_as to the one it is compatible with: %s" % ", ".join(fitting)
    if served or foreign:
        guide = " as NVIDIA's driver installation guide says" if served else ""
        remedy = "install the driver with %s%s, and set nvidia_driver_source to none to have it verified" % (
            manager,
            guide,
        )
    elif not fitting:
        remedy = (
            "take the host out of the inventory of gpu-ready, or describe its packages in gpu_ready_catalog_overlay "
            "(docs/catalog.md)"
        )
    name = "%s (ID=%s, VERSION_ID=%s in /etc/os-release)" % (
        system.pretty or "this system",
        system.id or "",
        system.version_id or "",
    )
    if not treat_as:
        cause = "%s is not a distribution that gpu-ready knows" % name
        cause += "; NVIDIA has a repository for it" if served else ""
        cause += "; its package manager is %s, which gpu-ready does not use" % foreign if foreign else ""
        return Refusal("unknown_distribution", cause, remedy)
    other = catalog.distro(treat_as)
    return Refusal(
        "treat_as_impossible",
        "gpu_ready_treat_as %s: %s has other packages (family %s%s) than %s (family %s, %s)"
        % (
            treat_as,
            name,
            system.family,
            ", %s" % manager if manager else "",
            other["pretty"],
            other["family"],
            other["package_manager"],
        ),
        remedy,
    )


def treat_as_warnings(facts: Facts, treat_as: str) -> list[Notice]:
    """Warn of gpu_ready_treat_as where it is used, and where it is not because the catalog has the system."""
    known, used = os_family.resolve(facts.base.os), facts.base.distro
    if not treat_as or used is None or known == treat_as:
        return []
    name = facts.base.os.pretty or facts.base.os.id or "this system"
    if known:
        message = "gpu_ready_treat_as %s is ignored: %s is known as %s" % (treat_as, name, known)
        return [notify("treat_as_ignored", message, VariableChange({}, ["gpu_ready_treat_as"], "for this host"))]
    return [
        Notice(
            "treated_as",
            "%s is unknown and treated as %s (gpu_ready_treat_as): its packages and repositories may be different"
            % (name, catalog.distro(used)["pretty"]),
            "try one host of this kind before the others",
        )
    ]


def nvswitches_text(facts: Facts) -> str:
    """Return the NVSwitches of a host in words: "1 NVSwitch", "4 NVSwitches"."""
    return counted(len(facts.base.nvswitches), "NVSwitch", "es")


def kernel_unfit(facts: Facts, source: str, data: Distribution, remedy: VariableChange | str) -> Refusal:
    """Refuse a kernel that a source has no modules for, and one with PREEMPT_RT, for which NVIDIA's build stops.

    IGNORE_PREEMPT_RT_PRESENCE=1 in its environment skips that check. There is no variable for it: DKMS builds the
    module again with each kernel update, started by the package manager without it, and the host would lose its GPUs.
    """
    kernel = facts.base.kernel
    if not catalog.is_realtime(kernel.running):
        return refuse(
            "kernel_unfit",
            "nvidia_driver_source %s: its modules are for the standard kernels of %s, and this host runs %s"
            % (source, data["pretty"], kernel.running),
            remedy,
            "boot a standard kernel",
        )
    others = [release for release in kernel.installed if not catalog.is_realtime(release)]
    boot = "boot %s" % " or ".join(others[:2]) if others else "install and boot a kernel without it"
    return Refusal(
        "kernel_realtime",
        "kernel %s has PREEMPT_RT, for which NVIDIA's driver does not build (preempt_rt_sanity_check in conftest.sh)"
        % kernel.running,
        "%s, or build the driver yourself and set nvidia_driver_source to none" % boot,
    )


def driver_missing(facts: Facts) -> list[Refusal]:
    if facts.driver.on_disk or facts.driver.loaded:
        return []
    return [
        refuse(
            "driver_missing",
            "there is no NVIDIA driver for the running kernel, and nvidia_driver_source is none",
            VariableChange({"nvidia_driver_source": ["auto"]}),
            "install one yourself",
        )
    ]


def gpu_label(gpu: GpuFacts) -> str:
    return "%s [10de:%s] at %s" % (gpu.name, gpu.device, gpu.address)


def supported_drivers(device: str) -> str:
    pairs = pairs_of_gpu(device)
    if not pairs:
        gpu = catalog.gpu(device)
        return "no driver newer than %s" % gpu.last_branch if gpu else "a driver that the catalog does not know"
    numbers = sorted({branch for branch, _ in pairs})
    flavours = [flavour for flavour in FLAVOURS if any(pair[1] == flavour for pair in pairs)]
    span = "branch %d" % numbers[0] if len(numbers) == 1 else "branches %d to %d" % (numbers[0], numbers[-1])
    return "%s, %s module" % (span, " or ".join(flavours))


def unknown_warnings(gpus: list[GpuFacts]) -> list[Notice]:
    return [
        Notice(
            "gpu_unknown",
            "%s is not in the catalog of %s: taken for newer, so it gets the newest branch with the open module"
            % (gpu_label(gpu), catalog.DATE),
            "update gpu-ready, describe it in gpu_ready_catalog_overlay, or set nvidia_driver_branch and "
            "nvidia_driver_flavour",
        )
        for gpu in {gpu.device: gpu for gpu in gpus if catalog.gpu(gpu.device) is None}.values()
        if not catalog.is_older_than_turing(gpu.device)
    ]


def not_in_catalog_warnings(driver: DriverChoice, data: Distribution) -> list[Notice]:
    """Warn of a driver to install that is beyond the lists of the catalog: a branch, a source of it, a version."""
    branch = driver.branch or 0
    known = catalog.branch(branch)
    if known is None:
        before = max([one.number for one in catalog.branches() if one.number < branch] or [0])
        return [
            not_in_catalog(
                "driver branch %d" % branch, "its kernel modules and names are taken to be as of %d" % before
            )
        ]
    if branch not in driver_sources.branches(data, driver.source, driver.kind or DKMS):
        what = "branch %d of %s for %s" % (branch, driver.source, data["pretty"])
        return [not_in_catalog(what, "whether it builds for this kernel is not known")]
    if driver.version and versions.compare(driver.version, known.newest) > 0:
        what = "driver %s" % driver.version
        return [not_in_catalog(what, "the newest version of branch %d there is %s" % (branch, known.newest))]
    return []


def not_in_catalog(what: str, consequence: str) -> Notice:
    """Say that the plan is beyond the catalog: the same for a driver, a toolkit and cuDNN."""
    return Notice(
        "not_in_catalog",
        "the catalog of %s does not have %s: %s" % (catalog.DATE, what, consequence),
        "nothing is to be done where it installs; a row of it in gpu_ready_catalog_overlay ends this notice "
        "(`gpu-catalog update` writes it)",
    )


def unverified_warnings(driver: DriverChoice, facts: Facts, data: Distribution) -> list[Notice]:
    """Warn of facts behind a driver to install that no public source confirms: its branch, the kernel, the GPU."""
    found, kernel = [], facts.base.kernel.running
    newest = driver_sources.newest_known_kernel(data, driver.source, driver.kind or DKMS, driver.branch or 0, kernel)
    if newest:
        message = (
            "no public source confirms that branch %s builds for kernel %s: %s is the newest series that one names"
        )
        found.append(
            Notice(
                "kernel_unverified",
                message % (driver.branch, kernel, newest),
                "try one host of this kind before the others, or boot an older kernel",
            )
        )
    if driver_sources.is_unverified(data, driver.source, "branches", driver.branch):
        what = "branch %s of %s" % (driver.branch, driver.source)
        file = driver.runfile
        found.append(
            unverified_installer(what, file.source)
            if file
            else repository.unverified_notice(data, what, driver.packages[0])
        )
    for gpu in {gpu.device: gpu for gpu in facts.base.served_gpus}.values():
        known = catalog.gpu(gpu.device)
        if known is not None and not known.verified:
            message = "%s is in no list of a driver; its chip takes %s" % (
                gpu_label(gpu),
                supported_drivers(gpu.device),
            )
            found.append(Notice("gpu_unverified", message, "gpu_verify shows whether the driver drives it"))
    return found


def unverified_installer(what: str, source: str) -> Notice:
    return Notice(
        "catalog_unverified",
        "no public source confirms %s: %s may not exist" % (what, source),
        "if it does not, download the file yourself and give it as nvidia_driver_runfile",
    )


def branch_warnings(facts: Facts, driver: DriverChoice, request: DriverRequest, data: Distribution) -> list[Notice]:
    """Warn of a branch that NVIDIA no longer maintains, and name the sources of this system that have another one."""
    branch = catalog.branch(driver.branch or 0)
    if branch is None or not catalog.has_ended(branch.number, facts.today):
        return []
    maintained = {
        pair for pair in pairs_of_host(facts.base.served_gpus, request) if not catalog.has_ended(pair[0], facts.today)
    }
    sources = [
        source
        for source in driver_sources.source_names(data)
        for kind in driver_sources.module_kinds(data, source)[:1]
        if fits_kernel(facts, data, source, kind)
        and with_fabricmanager(
            facts, data, source, maintained & driver_sources.branch_flavours(data, source, kind, request.profile)
        )
    ]
    remedy = (
        "plan a move to a maintained branch: nvidia_driver_source %s has one" % " or ".join(sources)
        if sources
        else "no source of %s has a maintained branch for these GPUs: plan a newer distribution or other GPUs"
        % data["pretty"]
    )
    message = "driver branch %d is no longer maintained by NVIDIA (end of life %s)" % (branch.number, branch.eol)
    return [Notice("branch_ended", message, remedy)]


def adoption_warnings(facts: Facts, driver: DriverChoice, hold: bool) -> list[Notice]:
    """Warn of what an adopted driver does not outlive: an unattended upgrade where nobody holds it, another kernel."""
    state = facts.driver
    if not driver.satisfied or state.on_disk is None or facts.base.managed_by:
        return []
    if driver.source == driver_sources.RUNFILE:
        if state.on_disk.version in [row.version for row in state.dkms]:
            return []
        return [
            notify(
                "module_for_one_kernel",
                "the .run installer built the module of driver %s for kernel %s only, without DKMS: another kernel has "
                "no GPU" % (state.on_disk.version, facts.base.kernel.running),
                VariableChange({"nvidia_driver_replace_foreign": [True]}, effect="to get a driver with DKMS"),
                "keep this kernel",
            )
        ]
    if is_held_by_us(facts, driver) or not hold or state.held:
        return []
    return [
        Notice(
            "driver_not_held",
            "driver %s of %s is adopted as it is and not held: an unattended upgrade could leave libraries and kernel "
            "module at different versions" % (state.on_disk.version, driver_packages.publisher_name(driver.source)),
            "hold its packages yourself, or leave them out of unattended upgrades",
        )
    ]


def next_boot_warnings(facts: Facts, names: list[str]) -> list[Notice]:
    """Warn of a kernel that boots next and has no module; ``names``: packages with a module for it.

    They are not installed automatically: they may need a newer driver than the held one.
    """
    kernel = facts.driver.kernel_without_module
    if kernel is None:
        return []
    if catalog.is_realtime(kernel):
        return [
            Notice(
                "next_kernel_without_module",
                "kernel %s boots next and has PREEMPT_RT, for which NVIDIA's driver does not build: after a reboot "
                "there would be no GPU" % kernel,
                "make another kernel the default of the boot loader",
            )
        ]
    first = "install %s before it boots" % " and ".join(names) if names else "install its module before it boots"
    return [
        Notice(
            "next_kernel_without_module",
            "kernel %s boots next and has no NVIDIA module: after a reboot there would be no GPU" % kernel,
            "%s, or run this again after the reboot; nvidia_driver_kernel_modules: dkms has modules built with each "
            "new kernel" % first,
        )
    ]


def find_other_builds(facts: Facts, kernels: list[str], data: Distribution) -> tuple[list[Refusal], list[Notice]]:
    """Refuse headers of ``kernels`` whose installation fails because of a DKMS module of others, or warn that it may.

    The packages of headers of Debian and Ubuntu run DKMS, which builds all modules of the host. Since dkms 3 a build
    that fails makes it end with 11 (`autoinstall`; 2.8 ended with 0), and dpkg leaves the headers half configured. RPMs
    of headers build nothing, and rpm only warns of a %post that fails (its tests/rpmscript.at).
    """
    version = versions.parse(facts.packages.installed.get("dkms", ""))
    if data["package_manager"] != "apt" or not version or version < (3,):
        return [], []
    refusals, warnings = [], []
    for module in facts.driver.other_modules:
        name = "%s/%s" % (module.name, module.version)
        remedy = "repair it, or remove it (`dkms remove %s --all`, or the package that has it)" % name
        if module.failed in kernels:
            refusals.append(
                Refusal(
                    "other_module_fails",
                    "the DKMS module %s, which is no part of the driver, did not build for kernel %s "
                    "(%s%s/build/make.log), and the headers of that kernel cannot be installed while it does not"
                    % (name, module.failed, TREE, name),
                    remedy + ", then run this again",
                )
            )
        elif kernels and not module.kernels:
            warnings.append(
                Notice(
                    "other_module_builds",
                    "the headers of kernel %s make DKMS build %s too, which is no part of the driver and was never "
                    "built here: if that fails, the headers are not installed, and this run ends there"
                    % (" and ".join(kernels), name),
                    "nothing is to be done where it builds; else " + remedy,
                )
            )
    return refusals, warnings


def kernel_update_warnings(facts: Facts, driver: DriverChoice, series: list[str]) -> list[Notice]:
    """Warn that a kernel update by apt will have no module; ``series``: the kernels that updates install.

    Ubuntu's metapackage linux-modules-nvidia-BRANCH-server-generic installs the modules of the next kernel. They are of
    the driver of that day (nvidia-kernel-common), which is not installed beside the held libraries of another version.
    """
    if not series:
        return []
    installed = facts.packages.installed
    missing = ["linux-headers-" + name for name in series if "linux-headers-" + name not in installed]
    install = "apt-get install %s" % " ".join(missing)
    if driver.kind == DKMS and missing and driver.satisfied:
        return [
            notify(
                "next_kernel_uncovered",
                "%s is not installed: a kernel that an update installs gets no headers, so DKMS builds no NVIDIA "
                "module for it, and after its reboot there would be no GPU" % " and ".join(missing),
                "run '%s' on the host" % install,
                run=install,
            )
        ]
    names = list(facts.driver.packages) if driver.satisfied else driver.packages
    if driver.kind == PRECOMPILED and any(OF_KERNEL.search(name) for name in names):
        return [
            Notice(
                "next_kernel_uncovered",
                "the NVIDIA module is a package for kernel %s: an update to another kernel may come without one, and "
                "after its reboot there would be no GPU" % facts.base.kernel.running,
                "run this after each kernel update and before the reboot, or set nvidia_driver_kernel_modules to dkms "
                "(with Secure Boot, after the key of DKMS was enrolled)",
            )
        ]
    return []


def managed_host(kind: str | None, replace: bool = False, always: bool = False) -> Refusal | None:
    """Refuse to change the driver of a host where somebody else has it; ``always``: only where nothing can be done."""
    row = catalog.managed_hosts().get(kind or "")
    if row is None or (always and row["refuse"] != "always") or (replace and row.get("may_replace")):
        return None
    return Refusal("managed_host", row["message"], row["remedy"])
