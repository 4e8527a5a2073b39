"""Refusals and warnings about the driver: each names the GPU or the variable, the cause and the remedy."""

from typing import Dict, List, Optional, Set

from ...base import versions
from ...catalog import driver_packages, driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import DKMS, FLAVOURS, PRECOMPILED, Pair
from ...catalog.model import Distribution
from ...facts.model import Facts, GpuFacts, SecureBootFacts
from .. import repository
from ..model import DriverChoice, Notice, Refusal
from .candidates import (
    OF_KERNEL,
    Candidate,
    DriverRequest,
    can_manage_switches,
    fits_kernel,
    is_versioned_by_kernel,
    matching_pairs,
    pairs_of_gpu,
    pairs_of_host,
    requested_pairs,
)
from .steps import has_fabricmanager, is_held_by_us

NEEDED_BYTES = 3 * 1024**3
"""Free space under /usr and /var for a driver with its module build and its packages."""
MAKE_KEY = {
    "/var/lib/shim-signed/mok/MOK.der": "run `update-secureboot-policy --new-key`",
    # What DKMS does itself at the first build; its own command for it (generate_mok) is one of 3.1 and newer.
    "/var/lib/dkms/mok.pub": "install dkms, run `openssl req -new -x509 -nodes -days 36500 -newkey rsa:2048 -subj "
    "'/CN=DKMS module signing key' -outform DER -keyout /var/lib/dkms/mok.key -out /var/lib/dkms/mok.pub`",
}
"""Commands that create a signing key for DKMS, by the path of its certificate."""

SIGNATURES_REQUIRED = {
    "firmware": ("Secure Boot is on", "turn Secure Boot off"),
    "kernel": (
        "the kernel loads signed modules only (lockdown, module.sig_enforce)",
        "boot it without these, with Secure Boot off",
    ),
    "unknown": (
        "whether Secure Boot is on cannot be read (no EFI variables, no lockdown file), so it counts as on",
        "mount securityfs at /sys/kernel/security, where the kernel says whether it is locked down",
    ),
}
"""What says that the kernel loads signed modules only, and how that can end: by ``SecureBootFacts.by``."""


def machine_unsupported(facts: Facts) -> Refusal:
    return Refusal(
        "machine_unsupported",
        "this is a machine of kind %s, and gpu-ready knows the packages for %s only"
        % (facts.base.arch, catalog.MACHINE),
        "take the host out of the inventory of gpu-ready",
    )


def unknown_distribution(facts: Facts) -> Refusal:
    system = facts.base.os
    name = system.pretty or "this system"
    return Refusal(
        "unknown_distribution",
        "%s (ID=%s, VERSION_ID=%s in /etc/os-release) is not a distribution that gpu-ready knows"
        % (name, system.id or "", system.version_id or ""),
        "set gpu_ready_treat_as to the one it is compatible with: %s" % ", ".join(sorted(catalog.distros())),
    )


def image_based() -> Refusal:
    """Refuse a system that boots an image: packages cannot be installed into it, or are lost with the next image."""
    return Refusal(
        "image_based",
        "this host boots an image (ostree or bootc), whose /usr is read-only: no driver can be installed into it",
        "build the driver into the image, then set nvidia_driver_source to none",
    )


def driver_missing(facts: Facts) -> List[Refusal]:
    if facts.driver.on_disk or facts.driver.loaded:
        return []
    return [
        Refusal(
            "driver_missing",
            "there is no NVIDIA driver for the running kernel, and nvidia_driver_source is none",
            "install one, or set nvidia_driver_source to auto",
        )
    ]


def gpu_label(gpu: GpuFacts) -> str:
    return "%s [10de:%s] at %s" % (gpu.name, gpu.device, gpu.address)


def supported_drivers(device: str) -> str:
    pairs = pairs_of_gpu(device)
    if not pairs:
        gpu = catalog.gpu(device)
        return "no driver newer than %s" % (gpu.last_branch if gpu else "the catalog")
    numbers = sorted({branch for branch, _ in pairs})
    flavours = [flavour for flavour in FLAVOURS if any(pair[1] == flavour for pair in pairs)]
    return "branches %d to %d, %s module" % (numbers[0], numbers[-1], " or ".join(flavours))


def unknown_old_gpu(gpu: GpuFacts) -> Refusal:
    """Refuse a GPU that the catalog does not have and that is not newer: no branch is known to drive it."""
    return Refusal(
        "gpu_unknown",
        "%s is not in the catalog of %s, and its number is that of a chip before Turing: its last branch is not known"
        % (gpu_label(gpu), catalog.DATE),
        "set nvidia_driver_branch: 470 for Kepler, 580 for Maxwell, Pascal and Volta (NVIDIA's list of legacy GPUs)",
    )


def no_common_driver(gpus: List[GpuFacts], request: DriverRequest) -> Refusal:
    """Refuse a host with a GPU that no driver of the catalog drives, or with GPUs that no single driver drives."""
    undriven = [gpu for gpu in gpus if not requested_pairs(gpu.device, request)]
    if undriven and catalog.gpu(undriven[0].device) is None:
        return unknown_old_gpu(undriven[0])
    if undriven:
        gpu = undriven[0]
        return Refusal(
            "gpu_too_old",
            "%s takes %s: no driver branch of the catalog drives it" % (gpu_label(gpu), supported_drivers(gpu.device)),
            "take the card out, or set nvidia_driver_source to none and look after its driver yourself",
        )
    kinds: Dict[str, GpuFacts] = {}
    for gpu in gpus:
        kinds.setdefault(gpu.device, gpu)
    # Two GPUs that exclude each other explain more than the whole list.
    for first in kinds.values():
        for second in kinds.values():
            if not pairs_of_gpu(first.device) & pairs_of_gpu(second.device):
                kinds = {first.device: first, second.device: second}
    limits = " and ".join("%s takes %s" % (gpu_label(gpu), supported_drivers(gpu.device)) for gpu in kinds.values())
    return Refusal(
        "no_driver_for_mixed_gpus",
        "one host runs one driver, but " + limits,
        "move one kind of card to another host, or bind it to vfio-pci",
    )


def explain_no_candidate(
    facts: Facts,
    request: DriverRequest,
    gpus: List[GpuFacts],
    data: Distribution,
    possible: Set[Pair],
) -> List[Refusal]:
    """Return why no source has a driver that drives all GPUs and fits the request."""
    if not possible:
        return [no_common_driver(gpus, request)]
    requested = matching_pairs(possible, request)
    if not requested:
        return branch_refusals(request, gpus, possible) + flavour_refusals(request, gpus, possible)
    return source_refusals(facts, request, data, requested)


def branch_refusals(request: DriverRequest, gpus: List[GpuFacts], possible: Set[Pair]) -> List[Refusal]:
    if request.branch is None or request.branch in {branch for branch, _ in possible}:
        return []
    numbers = [branch.number for branch in catalog.branches()]
    variable = "nvidia_driver_branch %d" % request.branch
    fitting = ", ".join(str(number) for number in sorted({branch for branch, _ in possible}))
    if request.branch not in numbers:
        return [
            Refusal(
                "branch_unknown",
                "%s is no driver branch of the catalog of %s" % (variable, catalog.DATE),
                "choose one that drives this host: %s" % fitting,
            )
        ]
    for gpu in gpus:
        known = catalog.gpu(gpu.device)
        if known and known.last_branch is not None and request.branch > known.last_branch:
            message = "%s: %s is supported up to branch %d" % (variable, gpu_label(gpu), known.last_branch)
            return [Refusal("branch_above_ceiling", message, "choose one of %s" % fitting)]
    for gpu in gpus:
        known = catalog.gpu(gpu.device)
        if known and known.first_branch is not None and request.branch < known.first_branch:
            message = "%s: %s is supported from branch %d on" % (variable, gpu_label(gpu), known.first_branch)
            return [Refusal("branch_below_minimum", message, "choose one of %s" % fitting)]
    return [
        Refusal("branch_impossible", "%s does not drive all GPUs of this host" % variable, "choose one of %s" % fitting)
    ]


def flavour_refusals(request: DriverRequest, gpus: List[GpuFacts], possible: Set[Pair]) -> List[Refusal]:
    if request.flavour is None:
        return []
    others = sorted({flavour for branch, flavour in possible if request.branch in (None, branch)} - {request.flavour})
    fitting = {branch for branch, flavour in possible if flavour == request.flavour}
    if not others or (request.branch is None and fitting) or request.branch in fitting:
        return []
    culprits = [gpu for gpu in gpus if request.flavour not in {f for _, f in requested_pairs(gpu.device, request)}]
    cause = (
        "%s has no %s kernel module" % (gpu_label(culprits[0]), request.flavour)
        if culprits
        else ("branch %s has no %s kernel module for these cards" % (request.branch, request.flavour))
    )
    remedy = "set nvidia_driver_flavour to auto or %s" % others[0]
    return [Refusal("flavour_impossible", "nvidia_driver_flavour %s: %s" % (request.flavour, cause), remedy)]


def source_refusals(facts: Facts, request: DriverRequest, data: Distribution, requested: Set[Pair]) -> List[Refusal]:
    pretty = data["pretty"]
    known = driver_sources.source_names(data)
    if request.source is not None and request.source not in known:
        return [
            Refusal(
                "source_impossible",
                "nvidia_driver_source %s does not exist for %s" % (request.source, pretty),
                "choose auto, %s or none" % ", ".join(known),
            )
        ]
    limit = data.get("max_branch")
    if limit is not None and not any(branch <= limit for branch, _ in requested):
        return [
            Refusal(
                "branch_above_kernel",
                "branch %d is needed, but the kernel of %s takes drivers up to branch %d"
                % (min(requested)[0], pretty, limit),
                "upgrade the host to a newer distribution",
            )
        ]
    requested_sources = [request.source] if request.source else known
    if request.source and not any(
        can_manage_switches(facts, data, request.source, branch)
        for branch in driver_sources.all_branches(data, request.source)
    ):
        return [
            Refusal(
                "source_impossible",
                "nvidia_driver_source %s: this host has %d NVSwitches, and %s carries no fabric manager%s there"
                % (request.source, len(facts.base.nvswitches), pretty, " with nvlsm" if facts.base.umad else ""),
                "set nvidia_driver_source to auto or cuda_repo",
            )
        ]
    if request.modules and not any(
        request.modules in driver_sources.module_kinds(data, source)
        and fits_kernel(facts, data, source, request.modules)
        for source in requested_sources
    ):
        return [
            Refusal(
                "kernel_modules_impossible",
                "nvidia_driver_kernel_modules %s: no such driver comes from %s on %s"
                % (request.modules, " or ".join(requested_sources), pretty),
                "set nvidia_driver_kernel_modules to auto",
            )
        ]
    if (
        request.modules
        and request.version
        and all(is_versioned_by_kernel(data, source, request.modules) for source in requested_sources)
    ):
        return [
            Refusal(
                "kernel_modules_impossible",
                "nvidia_driver_version %s: %s modules of %s come with the kernel, in the version of the day"
                % (request.version, request.modules, " and ".join(requested_sources)),
                "give nvidia_driver_branch instead, or set nvidia_driver_kernel_modules to dkms",
            )
        ]
    carried = "; ".join(
        "%s carries %s"
        % (source, ", ".join(str(branch) for branch in driver_sources.all_branches(data, source)) or "none")
        for source in requested_sources
    )
    needed = ", ".join(sorted({"%d %s" % pair for pair in requested}))
    code = "source_impossible" if request.source else "branch_not_carried"
    message = "no source of %s has a driver that fits (%s): %s" % (pretty, needed, carried)
    remedy = "choose another nvidia_driver_branch or nvidia_driver_source, or auto for both"
    explicit_only = [
        source
        for source in known
        if not request.source and source not in driver_sources.automatic_sources(data)
        for kind in driver_sources.module_kinds(data, source)
        if requested & driver_sources.branch_flavours(data, source, kind, request.profile)
    ]
    if explicit_only:
        remedy = "set nvidia_driver_source to %s, which is taken only when asked for" % " or ".join(explicit_only)
    return [Refusal(code, message, remedy)]


def unknown_warnings(gpus: List[GpuFacts]) -> List[Notice]:
    return [
        Notice(
            "gpu_unknown",
            "%s is not in the catalog of %s: taken for newer, so it gets the newest branch with the open module"
            % (gpu_label(gpu), catalog.DATE),
            "update gpu-ready, or set nvidia_driver_branch and nvidia_driver_flavour",
        )
        for gpu in {gpu.device: gpu for gpu in gpus if catalog.gpu(gpu.device) is None}.values()
        if not catalog.is_older_than_turing(gpu.device)
    ]


def unverified_warnings(driver: DriverChoice, gpus: List[GpuFacts], data: Distribution) -> List[Notice]:
    """Warn of facts behind a driver to install that no public source confirms: its branch, the GPU."""
    found = []
    if driver_sources.is_unverified(data, driver.source, "branches", driver.branch):
        what = "branch %s of %s" % (driver.branch, driver.source)
        found.append(repository.unverified_notice(data, what, driver.packages[0]))
    for gpu in {gpu.device: gpu for gpu in gpus}.values():
        known = catalog.gpu(gpu.device)
        if known is not None and not known.verified:
            message = "%s is in no list of a driver; its chip takes %s" % (
                gpu_label(gpu),
                supported_drivers(gpu.device),
            )
            found.append(Notice("gpu_unverified", message, "gpu_verify shows whether the driver drives it"))
    return found


def branch_warnings(
    driver: DriverChoice, gpus: List[GpuFacts], request: DriverRequest, data: Distribution
) -> List[Notice]:
    """Warn of a branch that NVIDIA no longer maintains, and name the sources of this system that have another one."""
    branch = catalog.branch(driver.branch or 0)
    if branch is None or not catalog.has_ended(branch.number):
        return []
    maintained = {pair for pair in pairs_of_host(gpus, request) if not catalog.has_ended(pair[0])}
    sources = [
        source
        for source in driver_sources.source_names(data)
        if any(
            maintained & driver_sources.branch_flavours(data, source, kind, request.profile)
            for kind in driver_sources.module_kinds(data, source)
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


def adoption_warnings(facts: Facts, driver: DriverChoice, hold: bool) -> List[Notice]:
    """Warn of what an adopted driver does not outlive: an unattended upgrade where nobody holds it, another kernel."""
    state = facts.driver
    if not driver.satisfied or state.on_disk is None or facts.base.managed_by:
        return []
    if driver.source == driver_sources.RUNFILE:
        if state.on_disk.version in [row.version for row in state.dkms]:
            return []
        return [
            Notice(
                "module_for_one_kernel",
                "the .run installer built the module of driver %s for kernel %s only, without DKMS: another kernel has "
                "no GPU" % (state.on_disk.version, facts.base.kernel.running),
                "keep this kernel, or set nvidia_driver_replace_foreign to true to have a driver with DKMS installed",
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


def next_boot_warnings(facts: Facts, names: List[str]) -> List[Notice]:
    """Warn of a kernel that boots next and has no module; ``names``: packages with a module for it.

    They are not installed automatically: they may need a newer driver than the held one.
    """
    kernel = facts.driver.kernel_without_module
    if kernel is None:
        return []
    first = "install %s before it boots" % " and ".join(names) if names else "install its module before it boots"
    return [
        Notice(
            "next_kernel_without_module",
            "kernel %s boots next and has no NVIDIA module: after a reboot there would be no GPU" % kernel,
            "%s, or run this again after the reboot; nvidia_driver_kernel_modules: dkms has modules built with each "
            "new kernel" % first,
        )
    ]


def kernel_update_warnings(facts: Facts, driver: DriverChoice, series: List[str]) -> List[Notice]:
    """Warn that a kernel update by apt will have no module; ``series``: the kernels that updates install.

    Ubuntu's metapackage linux-modules-nvidia-BRANCH-server-generic installs the modules of the next kernel. They are of
    the driver of that day (nvidia-kernel-common), which is not installed beside the held libraries of another version.
    """
    if not series:
        return []
    installed = facts.packages.installed
    missing = ["linux-headers-" + name for name in series if "linux-headers-" + name not in installed]
    if driver.kind == DKMS and missing and driver.satisfied:
        return [
            Notice(
                "next_kernel_uncovered",
                "%s is not installed: a kernel that an update installs gets no headers, so DKMS builds no NVIDIA "
                "module for it, and after its reboot there would be no GPU" % " and ".join(missing),
                "install %s with apt-get" % " and ".join(missing),
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


def foreign_driver(facts: Facts, driver: DriverChoice, data: Distribution) -> Refusal:
    state = facts.driver
    origins = {
        "runfile": "a .run installer (%s)" % state.runfile,
        "mixed": "packages and a .run installer at once",
        driver_packages.UNKNOWN: "a source that the package manager does not name",
    }
    publisher = driver_packages.publisher_name(state.origin or "")
    named = "%s (%s)" % (publisher, state.repository) if state.repository else publisher
    version = state.on_disk.version if state.on_disk else ""
    without_manager = ""
    if not has_fabricmanager(facts, data, state.origin or "", versions.branch(version) if version else 0):
        without_manager = ", which has no fabric manager for the %d NVSwitches of this host" % len(
            facts.base.nvswitches
        )
    origin = origins.get(state.origin or "", named)
    if version and state.userspace not in ([], [version]):
        return Refusal(
            "foreign_driver",
            "the driver of this host, from %s, is inconsistent: its kernel module is %s, its libraries are %s"
            % (origin, version, " and ".join(state.userspace)),
            "complete it with the program that installed it, or set nvidia_driver_replace_foreign to true to have it "
            "replaced by the driver of %s" % driver_packages.publisher_name(driver.source),
        )
    return Refusal(
        "foreign_driver",
        "the driver %s of this host is from %s%s, and two drivers of different origin break each other; requested "
        "is %s" % (version or "files", origin, without_manager, driver.source),
        "set nvidia_driver_replace_foreign to true to have it replaced, or nvidia_driver_source to none to keep it",
    )


def managed_host(kind: Optional[str], replace: bool = False, always: bool = False) -> Optional[Refusal]:
    """Refuse to change the driver of a host where somebody else has it; ``always``: only where nothing can be done."""
    row = catalog.managed_hosts().get(kind or "")
    if row is None or (always and row["refuse"] != "always") or (replace and row.get("may_replace")):
        return None
    return Refusal("managed_host", row["message"], row["remedy"])


def vgpu_guest(gpu: GpuFacts) -> Refusal:
    """Refuse to install the driver of the physical GPU for a virtual one: it does not work with it."""
    behind = " (the driver on its machine is %s)" % gpu.vgpu if gpu.vgpu else ""
    return Refusal(
        "vgpu_guest",
        "%s is a virtual GPU%s: it takes NVIDIA's vGPU guest driver only, which no repository carries"
        % (gpu_label(gpu), behind),
        "give the guest driver's installer (NVIDIA-Linux-x86_64-VERSION-grid.run) as nvidia_driver_runfile, or install "
        "it yourself and set nvidia_driver_source to none",
    )


def secure_boot_unsigned(boot: SecureBootFacts, candidate: Candidate, data: Distribution) -> Refusal:
    signed = [
        source
        for source in driver_sources.source_names(data)
        for kind in driver_sources.module_kinds(data, source)
        if kind == PRECOMPILED and driver_sources.source_entry(data, source, kind).get("signed_by") == "distribution"
    ]
    instead = "set nvidia_driver_source to %s, whose modules are signed; or " % signed[0] if signed else ""
    state, off = SIGNATURES_REQUIRED.get(boot.by, SIGNATURES_REQUIRED["unknown"])
    if candidate.kind == PRECOMPILED:
        signer = (
            driver_sources.source_entry(data, candidate.source, candidate.kind).get("signed_by") or candidate.source
        )
        return Refusal(
            "secure_boot_unsigned",
            "%s, and the modules of %s are signed with a key of %s that gpu-ready cannot find enrolled: the kernel "
            "would reject them" % (state, candidate.source, signer),
            "%schoose modules that DKMS signs with an enrolled key of yours; or %s" % (instead, off),
        )
    key = boot.key
    cause = "its key %s is not enrolled" % key if key else "there is no key to sign it with yet"
    make = "" if key else MAKE_KEY.get(boot.certificate or "", "put it there") + ", then "
    # mokutil writes an EFI variable.
    runtime = "" if boot.by == "firmware" else "boot with efi=runtime if /sys/firmware/efi/efivars is empty, "
    enrol = make + runtime + "run `mokutil --import %s`" % boot.certificate
    return Refusal(
        "secure_boot_unsigned",
        "%s, the module is built on this host, and %s: the kernel would reject it" % (state, cause),
        "%s%s, confirm at the console during a reboot, and run this again; or %s" % (instead, enrol, off),
    )


def disk_full(facts: Facts) -> List[Refusal]:
    free = [(path, facts.base.disk.get(path)) for path in ("/usr", "/var")]
    return [
        Refusal(
            "disk_full",
            "%s has %d MiB free, the driver with its module build needs %d"
            % (path, size // 1024**2, NEEDED_BYTES // 1024**2),
            "free some space there and run this again",
        )
        for path, size in free
        if size is not None and size < NEEDED_BYTES
    ]


def version_unknown() -> Refusal:
    return Refusal(
        "runfile_version_unknown",
        "nvidia_driver_runfile names a file whose name contains no driver version",
        "set nvidia_driver_version to the version that it installs, or keep NVIDIA's file name",
    )
