"""The steps to a chosen driver: headers, repositories, nouveau, the driver itself, its hold."""

import re

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.base.disruptions import DRIVER_RELOAD, NONE
from .....module_utils.gpu_ready.facts.model import Facts
from .....module_utils.gpu_ready.verify.expectation import DriverTarget
from ...catalog import driver_packages, driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import DKMS, PROFILES, RUNFILE, DriverSource
from ...catalog.model import Distribution
from ...catalog.settings import Settings
from .. import repository
from ..apt_repository import components_missing
from ..dnf_repository import sections_to_enable
from ..model import DriverChoice, FileDiff, PackageTarget, RepositoryParams, RepositoryRequest, Step, not_held_reason
from . import parameters
from .model import (
    DetectParams,
    DriverInstallParams,
    HeadersParams,
    HoldParams,
    ModprobeParams,
    NextKernelParams,
    RemovePackagesParams,
    RunfileParams,
)

FABRICMANAGER_PACKAGE = re.compile(r"nvidia-fabric-?manager(-\d{3})?$")
KERNEL_METAPACKAGE = re.compile(r"^linux-image-(?!unsigned-|extra-)([a-z][a-z0-9.+-]*)(?<!-dbg)$")
NOUVEAU_PATH = "/etc/modprobe.d/gpu-ready-blacklist-nouveau.conf"
NOUVEAU_CONTENT = (
    "# The NVIDIA driver needs the GPU for itself.\n"
    "blacklist nouveau\noptions nouveau modeset=0\n"
    "# The kernel's other driver, of newer releases.\n"
    "blacklist nova_core\n"
)


def driver_steps(facts: Facts, settings: Settings, driver: DriverChoice, data: Distribution) -> list[Step]:
    module_steps = parameters.parameter_steps(facts, settings, data)
    if driver.extends:
        third = repository_steps(facts, settings, driver, data, []) + module_steps
        return third + package_steps(facts, driver, data) + hold_steps(facts, settings, driver, data)
    if driver.satisfied:
        following = next_kernel_steps(facts)
        return (
            (headers_steps(facts, settings, driver, data) if following else [])
            + nouveau_steps(facts, data)
            + module_steps
            + following
            + hold_steps(facts, settings, driver, data)
        )
    build = build_repositories(facts, settings, driver, data)
    install = runfile_steps(facts, driver) if driver.source == RUNFILE else package_steps(facts, driver, data)
    return (
        headers_steps(facts, settings, driver, data)
        # What the build is made with may come from the repository of the driver itself (DKMS on Amazon Linux).
        + repository_steps(facts, settings, driver, data, [one.id for one in build])
        + nouveau_steps(facts, data)
        + module_steps
        + install
        + hold_steps(facts, settings, driver, data)
    )


def headers_steps(facts: Facts, settings: Settings, driver: DriverChoice, data: Distribution) -> list[Step]:
    """Return the steps that make a module build possible: repositories, headers of the kernels, a compiler.

    Only the running kernel and the next one to boot get their headers: DKMS builds for each kernel that has some, which
    takes minutes.
    """
    if driver.kind != DKMS:
        return []
    missing = kernels_without_headers(facts)
    installed = facts.packages.installed
    tools = missing_build_tools(facts, driver, data)
    matching = matching_packages(facts, data)
    following = missing_kernel_followers(facts)
    third = build_repositories(facts, settings, driver, data)
    sections: list[str] = []
    if data.get("build_enable"):
        sections = sections_to_enable(facts, data["build_enable"])
    found = []
    if third or sections:
        reason = "what the module is built with comes from %s" % " and ".join([one.id for one in third] + sections)
        found.append(Step("kernel_headers.repository", reason, params=RepositoryParams(third, enable=sections or None)))
    if missing or tools or matching or following:
        cause = "DKMS comes with the headers of an installed kernel"
        cause = "%s adds those of the next kernel" % " and ".join(following) if following else cause
        cause = "there is no compiler" if tools else cause
        cause = "the headers of kernel %s are missing" % " and ".join(missing) if missing else cause
        params = HeadersParams(
            packages=[package for name in missing for package in headers_packages(data, name, installed)] + tools,
            optional=matching + following,
            kernel=facts.base.kernel.running,
        )
        found.append(Step("kernel_headers.install", "the driver's module is built here, and %s" % cause, params=params))
    return found


def missing_kernel_followers(facts: Facts) -> list[str]:
    """Return the missing packages of Debian and Ubuntu that install the headers of each kernel that an update installs.

    linux-image-generic depends on the newest kernel, and linux-headers-generic on its headers.
    """
    headers = ["linux-headers-" + name for name in kernel_series(facts)]
    return [name for name in headers if name not in facts.packages.installed]


def kernel_series(facts: Facts) -> list[str]:
    """Return the series of kernels that updates install (generic, aws, amd64); [] where the kernel stays."""
    found = map(KERNEL_METAPACKAGE.match, sorted(facts.packages.installed))
    return [match.group(1) for match in found if match]


def kernels_without_headers(facts: Facts) -> list[str]:
    """Return the running kernel and the next one, if their headers are missing and a module can be built for them."""
    kernel = facts.base.kernel
    names = [kernel.running] + [name for name in (kernel.next_boot,) if name != kernel.running]
    return [name for name in names if not kernel.headers.get(name) and not catalog.is_realtime(name)]


def next_kernel_steps(facts: Facts) -> list[Step]:
    """Return the step that builds the module for the kernel that boots next, if it was installed without headers.

    DKMS builds by itself when a kernel is installed with its headers. The headers of one kernel, which the driver was
    built with, do not pull in the headers of other kernels.
    """
    kernel = facts.driver.kernel_without_module
    disk = facts.driver.on_disk
    if kernel is None or disk is None or disk.version not in [row.version for row in facts.driver.dkms]:
        return []
    if catalog.is_realtime(kernel):
        return []
    reason = "kernel %s boots next and has no NVIDIA module" % kernel
    return [Step("nvidia_driver.next_kernel", reason, params=NextKernelParams(kernel))]


def headers_packages(data: Distribution, kernel: str, installed: dict[str, str]) -> list[str]:
    """Return the packages with the headers of a kernel; some kernels have other names (UEK, debug).

    ``{release}`` is the kernel's name without its kind: 5.14.0-427.el9.x86_64+debug is of
    kernel-debug-5.14.0-427.el9.x86_64. ``{series}`` is its first two numbers: 6.12.
    """
    special = (data.get("headers_by_kernel") or {}).items()
    patterns = next((names for pattern, names in special if re.search(pattern, kernel)), data["headers"])
    if isinstance(patterns, dict):
        patterns = patterns[package_of_kernel(list(patterns), kernel, installed)]
    words = {
        "kernel": kernel,
        "release": kernel.rpartition("+")[0] or kernel,
        "series": ".".join(kernel.split(".")[:2]),
    }
    return [pattern.format(**words) for pattern in patterns]


def package_of_kernel(names: list[str], kernel: str, installed: dict[str, str]) -> str:
    """Return the package that a kernel is from: an installed one, preferably of its series (6.1)."""
    version_of = {name: installed.get(name + "-core") or installed.get(name) for name in names}
    found = [name for name in names if version_of[name]]
    series = [name for name in found if str(version_of[name]).split(".")[:2] == kernel.split(".")[:2]]
    return (series or found or names)[0]


def matching_packages(facts: Facts, data: Distribution) -> list[str]:
    """Return the packages with which DKMS, when it is installed, does not require a newer kernel than is installed."""
    installed = facts.packages.installed
    rules = {} if "dkms" in installed else data.get("matched") or {}
    # uname -r has the architecture of the kernel's package, which is another one in AlmaLinux 10 for x86_64_v2.
    found = re.search(r"\.(%s\w*)" % catalog.MACHINE, facts.base.kernel.running)
    architecture = found.group(1) if found else catalog.MACHINE
    names = [
        pattern.format(version=installed[kernel], arch=architecture)
        for kernel, pattern in sorted(rules.items())
        if kernel in installed
    ]
    return [name for name in names if re.sub(r"-\d.*", "", name) not in installed]


def missing_build_tools(facts: Facts, driver: DriverChoice, data: Distribution) -> list[str]:
    listed = list(data.get("build_tools") or [])
    if not facts.base.compiler:
        return listed
    needs_dkms = driver.source == RUNFILE and "dkms" not in facts.packages.installed
    return [name for name in listed if name == "dkms" and needs_dkms]


def build_repositories(
    facts: Facts, settings: Settings, driver: DriverChoice, data: Distribution
) -> list[RepositoryRequest]:
    """Return the missing repositories of a module build; archives of ended releases only if that is allowed."""
    if driver.kind != DKMS:
        return []
    listed = list(data.get("build_repositories") or [])
    if kernels_without_headers(facts) and settings.gpu_ready_vault:
        listed += list(data.get("vault") or [])
    return repository.missing_repositories(facts, [repository.parameters(identity, settings) for identity in listed])


def repository_steps(
    facts: Facts, settings: Settings, driver: DriverChoice, data: Distribution, added: list[str]
) -> list[Step]:
    """Return the step that adds the source of the driver packages; ``added``: repositories that earlier steps add."""
    components = driver_sources.source_entry(data, driver.source, driver.kind or DKMS).get("components") or []
    if components:
        components = components if components_missing(facts, components, data.get("codename") or "") else []
    third = repository.missing_repositories(facts, driver_repositories(settings, driver, data))
    third = [one for one in third if one.id not in added]
    if not components and not third:
        return []
    reason = (
        "the packages of branch %d come from %s" % (driver.branch or 0, third[0].url)
        if third
        else "the driver is in the components %s" % ", ".join(components)
    )
    params = RepositoryParams(third, components=list(components) or None)
    return [Step("nvidia_driver.repository", reason, params=params)]


def driver_repositories(settings: Settings, driver: DriverChoice, data: Distribution) -> list[RepositoryRequest]:
    """Return the repositories that the chosen driver comes from, and those with what it depends on."""
    entry = driver_sources.source_entry(data, driver.source, driver.kind or DKMS)
    names = [entry["repository"]] if entry.get("repository") else []
    names += list(entry.get("with_repositories") or [])
    behind = driver.source == "distro"
    return [repository.parameters(name, settings, behind) for name in names]


def nouveau_steps(facts: Facts, data: Distribution) -> list[Step]:
    nouveau = facts.base.nouveau
    if nouveau.blacklisted or facts.base.module_elsewhere:
        return []
    rebuild = None
    if (nouveau.loaded or nouveau.bound) and facts.base.initramfs:
        rebuild = list(data.get("initramfs") or []) or None
    reason = "%s would take the GPU before NVIDIA's module can" % (nouveau.name or "nouveau")
    params = ModprobeParams(NOUVEAU_PATH, NOUVEAU_CONTENT, rebuild)
    return [
        Step(
            "nvidia_driver.blacklist_nouveau",
            reason,
            params=params,
            diff=[FileDiff(NOUVEAU_PATH, "", NOUVEAU_CONTENT)],
        )
    ]


def package_steps(facts: Facts, driver: DriverChoice, data: Distribution) -> list[Step]:
    state = facts.driver
    if driver.extends:
        return [extension_step(facts, driver)]
    entry = driver_sources.source_entry(data, driver.source, driver.kind or DKMS)
    pinning = entry.get("pinning")
    own = set(driver.packages) | set(driver.exact or {})
    pins = [pinning.format(branch=driver.version or driver.branch)] if pinning else []
    other_pins = [name for name in installed_pins(facts, data) if name not in pins]
    removals = packages_to_remove(facts, driver, data)
    params = DriverInstallParams(
        packages=[
            PackageTarget(name, package_version(name, driver, data))
            for name in driver.packages
            + sorted(set(driver.exact or {}) - set(driver.packages))
            + packages_for_next_boot(facts, driver, data)
        ],
        pin_packages=pins,
        pin_remove=other_pins if pins else [],
        streams={"nvidia-driver": driver.stream} if driver.stream else {},
        remove=removals + ([] if pins else other_pins),
        allow_remove=sorted(set(state.packages) - own),
        # The version lock of a package that an interrupted run removed would block its successor.
        unhold=sorted(set(state.held) | (own & set(facts.packages.held))),
        runfile=state.runfile if is_foreign(facts, driver) else None,
        rebuild=rebuild(facts, driver),
        expect=DriverTarget(driver.branch, driver.version, driver.flavour),
    )
    disruption = DRIVER_RELOAD if state.loaded else NONE
    install = Step("nvidia_driver.install", install_reason(facts, driver, removals), disruption, params)
    return detect_steps(facts, driver, entry) + [install]


def extension_step(facts: Facts, driver: DriverChoice) -> Step:
    """Return the step that adds what is missing beside a sound driver, in exactly its version."""
    disk = facts.driver.on_disk
    assert disk
    missing = [name for name in driver.packages if name not in facts.packages.installed]
    tied = re.compile(driver_packages.driver_pattern())  # nvidia-modprobe has versions of its own
    params = DriverInstallParams(
        packages=[PackageTarget(name, disk.version + "-*" if tied.fullmatch(name) else None) for name in missing],
        pin_packages=[],
        pin_remove=[],
        streams={},
        remove=[],
        allow_remove=[],
        unhold=[],
        runfile=None,
        rebuild=None,
        expect=DriverTarget(driver.branch, driver.version, driver.flavour),
    )
    parts = " and ".join(facts.driver.missing_parts or missing)
    return Step("nvidia_driver.install", "%s is missing beside driver %s" % (parts, disk.version), params=params)


def installed_parts(facts: Facts) -> list[str]:
    """Return the packages of the installed driver to hold: all but those for one kernel, which are removed with it."""
    kernels = [*facts.base.kernel.installed, facts.base.kernel.running]
    return sorted(
        name
        for name in facts.driver.packages
        if not name.startswith("linux-") and not any(kernel in name for kernel in kernels)
    )


def installed_fabricmanager(facts: Facts) -> str | None:
    return next((name for name in sorted(facts.packages.installed) if FABRICMANAGER_PACKAGE.match(name)), None)


def has_fabricmanager(facts: Facts, data: Distribution, origin: str, branch: int) -> bool:
    """Return True unless the host has NVSwitches and neither an installed fabric manager nor a source for one."""
    if not facts.base.nvswitches or facts.driver.fabricmanager:
        return True
    if facts.base.umad and not driver_sources.companion_package(data, origin, "subnet_manager", branch):
        return False
    installed = installed_fabricmanager(facts)
    return bool(installed or driver_sources.fabricmanager_package(data, origin, branch))


def packages_for_next_boot(facts: Facts, driver: DriverChoice, data: Distribution) -> list[str]:
    """Return the packages for the kernel that boots next, where each kernel has module packages of its own."""
    names = packages_of(driver, data, facts.base.kernel.next_boot)
    return [name for name in names if name not in driver.packages and name not in (driver.exact or {})]


def packages_of(driver: DriverChoice, data: Distribution, kernel: str) -> list[str]:
    return driver_sources.packages(
        data,
        driver.source,
        driver.branch or 0,
        driver.profile or PROFILES[0],
        driver.flavour or "",
        driver.kind or DKMS,
        kernel,
    )


def installed_pins(facts: Facts, data: Distribution) -> list[str]:
    """Return the installed packages that pin a version or branch of the driver. They exclude the packages of others."""
    starts = [entry["pinning"].split("{")[0] for entry in data["driver_sources"].values() if entry.get("pinning")]
    return sorted(name for name in facts.packages.installed if name.startswith(tuple(starts)))


def package_version(name: str, driver: DriverChoice, data: Distribution) -> str | None:
    """Return the version that a package must have, None for any.

    A pin or a module stream decides what is installed, but only a version also changes what is installed already. A
    name with the branch in it, and a source with a single branch, need none (some of their packages have other
    versions).
    """
    if driver.exact is not None:
        return driver.exact.get(name)
    if driver.version:
        return driver.version + "-*"
    single = driver_sources.branches(data, driver.source, driver.kind or DKMS) == [driver.branch]
    return None if single or str(driver.branch) in name else "%d.*" % (driver.branch or 0)


def detect_steps(facts: Facts, driver: DriverChoice, entry: DriverSource) -> list[Step]:
    tool = entry.get("detect")
    if not tool:
        return []
    gpus = ["10de:%s %s" % (gpu.device, gpu.name) for gpu in facts.base.served_gpus]
    params = DetectParams([tool], driver.detected or [], gpus)
    return [Step("nvidia_driver.detect", "%s must agree with the catalog" % tool, params=params)]


def runfile_steps(facts: Facts, driver: DriverChoice) -> list[Step]:
    """Return the steps of NVIDIA's installer; packages of another driver are removed before."""
    state = facts.driver
    kernel = facts.base.kernel
    disruption = DRIVER_RELOAD if state.loaded else NONE
    found = []
    if state.packages:
        params = RemovePackagesParams(sorted(state.packages), sorted(state.held))
        reason = "an installer is never used over packages"
        found.append(Step("nvidia_driver.remove_packages", reason, disruption, params))
    file = driver.runfile
    assert file is not None
    install = RunfileParams(
        version=file.version,
        source=file.source,
        sha256=file.sha256,
        sha256_url=file.sha256_url,
        flavour=driver.flavour or "",
        kernels=[kernel.running] + [name for name in (kernel.next_boot,) if name != kernel.running],
        uninstall=state.runfile,
    )
    return found + [Step("nvidia_driver.runfile", install_reason(facts, driver, []), disruption, install)]


def rebuild(facts: Facts, driver: DriverChoice) -> NextKernelParams | None:
    """Return the kernel to build the module for, where only the build is missing and all packages are installed."""
    complete = all(name in facts.driver.packages for name in driver.packages)
    if facts.driver.on_disk or not complete:
        return None
    return NextKernelParams(facts.base.kernel.running)


def packages_to_remove(facts: Facts, driver: DriverChoice, data: Distribution) -> list[str]:
    """Return the packages to remove: a foreign driver's all, else what belongs to another branch, flavour or kind.

    Not all of them conflict by their package metadata, but two modules for one kernel, or two branches of libraries,
    do not work.
    """
    present = facts.driver.packages
    if is_foreign(facts, driver):
        return sorted(present)
    source, kernels = driver.source, facts.base.kernel.installed
    ours = (driver.kind, driver.branch, driver.flavour)
    own: set[str] = set(driver.packages) | set(driver.exact or {})
    others: set[str] = set()
    installed = versions.branch(facts.driver.on_disk.version) if facts.driver.on_disk else 0
    for kind in driver_sources.module_kinds(data, source):
        for branch in {installed, *driver_sources.branches(data, source, kind)}:
            for flavour in driver_sources.FLAVOURS:
                for names in (
                    driver_sources.packages(data, source, branch, profile, flavour, kind, kernel)
                    for profile in PROFILES
                    for kernel in kernels
                ):
                    (own if (kind, branch, flavour) == ours else others).update(names)
    return sorted((others - own) & set(present))


def is_foreign(facts: Facts, driver: DriverChoice) -> bool:
    """Return True if a driver of another origin is installed.

    What an interrupted run of gpu-ready left is in its manifest.
    """
    state = facts.driver
    if state.origin == "unknown" and set(state.packages) <= set(facts.runtime.manifest.packages):
        return False
    return state.origin not in (None, driver.source)


def matches_choice(version: str, driver: DriverChoice) -> bool:
    """Return True if a version is the chosen one, or of the chosen branch where every version of it will do."""
    if driver.version:
        return version == driver.version
    return versions.branch(version) == driver.branch


def install_reason(facts: Facts, driver: DriverChoice, others: list[str]) -> str:
    state = facts.driver
    disk = state.on_disk
    target = "driver %s (%s)" % (driver.version or "branch %d" % (driver.branch or 0), driver.flavour)
    if not disk:
        absent = "no module for the running kernel" if state.packages or state.loaded else "no NVIDIA driver"
        loaded = "%s is loaded, but " % state.loaded.version if state.loaded else ""
        return "%sthere is %s; requested is %s" % (loaded, absent, target)
    if is_foreign(facts, driver):
        return "the driver is from %s; requested is %s from %s" % (
            driver_packages.publisher_name(state.origin or ""), target, driver.source,
        )  # fmt: skip
    if state.interrupted:
        return "an installation was interrupted; requested is %s" % target
    if matches_choice(disk.version, driver) and disk.flavour == driver.flavour:
        missing = [name for name in driver.packages if name not in facts.packages.installed]
        if state.userspace == [disk.version]:
            fault = (
                "%s is missing" % ", ".join(missing)
                if missing
                else "%s of another version is installed" % ", ".join(others)
            )
            return "%s is incomplete: %s" % (target, fault)
        return "%s is incomplete: user space %s" % (target, ", ".join(state.userspace) or "is missing")
    return "driver %s (%s) is installed; requested is %s" % (disk.version, disk.flavour, target)


def is_held_by_us(facts: Facts, driver: DriverChoice) -> bool:
    """Return True for a driver of a known source or of the distribution: others are upgraded by whoever set them up."""
    return not facts.base.managed_by and (
        driver.source in driver_sources.source_names(catalog.distro(facts.base.distro or ""))
        or driver_packages.is_archive_publisher(driver.source)
    )


def hold_steps(facts: Facts, settings: Settings, driver: DriverChoice, data: Distribution) -> list[Step]:
    """Return the step that protects the driver from unattended upgrades; a change of it releases the hold before.

    Modules for one kernel are not held: they need exactly the driver that is held, and must be removed with their
    kernel.
    """
    if not is_held_by_us(facts, driver):
        return []
    held = set(facts.packages.held) if driver.satisfied or driver.extends else set()
    names = [name for name in driver.packages if facts.base.kernel.running not in name]
    if not settings.nvidia_driver_hold or set(names) <= held:
        return []
    reason = not_held_reason(sorted(set(names) - held), "user-space libraries and kernel module")
    tools = [name for name in data.get("hold_tools") or [] if name not in facts.packages.installed]
    return [Step("nvidia_driver.hold", reason, params=HoldParams(names, tools))]
