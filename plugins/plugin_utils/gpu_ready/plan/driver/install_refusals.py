"""Refusals to install the chosen driver: each names the GPU or the variable, the cause and the remedy."""

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.facts.model import Facts, GpuFacts
from ...catalog import driver_packages, driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import PRECOMPILED
from ...catalog.model import Distribution
from ...catalog.settings import Settings
from .. import repository
from ..model import DriverChoice, Refusal, RepositoryRequest, VariableChange, refuse
from . import alternatives, candidates
from .alternatives import Situation
from .candidates import Candidate
from .parts import is_foreign
from .refusals import gpu_label, kernel_unfit, managed_host, nvswitches_text
from .steps import driver_repositories, has_fabricmanager

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


REPLACE = VariableChange({"nvidia_driver_replace_foreign": [True]}, effect="to have it replaced")


def install_refusals(
    facts: Facts, settings: Settings, driver: DriverChoice, picked: Candidate | None, data: Distribution
) -> list[Refusal]:
    managed = managed_host(facts.base.managed_by, settings.nvidia_driver_replace_foreign)
    if managed:
        return [managed]
    if facts.base.image:
        return [image_based()]
    refusals = []
    if picked and not has_module_for_kernel(facts, picked, data):
        remedy = alternatives.remedy(Situation(facts, settings, data), alternatives.SOURCE)
        refusals.append(kernel_unfit(facts, picked.source, data, remedy))
    if is_foreign(facts, driver) and not settings.nvidia_driver_replace_foreign:
        refusals.append(foreign_driver(facts, driver, data))
    if driver.runfile and not driver.runfile.version:
        refusals.append(version_unknown())
    virtual = [gpu for gpu in facts.base.served_gpus if gpu.vgpu is not None]
    if virtual and not settings.nvidia_driver_runfile:
        refusals.append(vgpu_guest(virtual[0]))
    if picked and not candidates.is_trusted(facts, data, picked):
        refusals.append(secure_boot_unsigned(Situation(facts, settings, data), picked))
    missing = repository.missing_repositories(facts, needed_repositories(settings, driver, data))
    refusals += repository.source_refusals(facts, missing)
    return refusals + disk_full(facts)


def needed_repositories(settings: Settings, driver: DriverChoice, data: Distribution) -> list[RepositoryRequest]:
    build: list[str] = list(data.get("build_repositories") or []) if driver.kind == driver_sources.DKMS else []
    return driver_repositories(settings, driver, data) + [repository.parameters(name, settings) for name in build]


def has_module_for_kernel(facts: Facts, picked: Candidate, data: Distribution) -> bool:
    """Return True if a module can be had for the running kernel.

    For PREEMPT_RT only one that its source has compiled.
    """
    kernel = facts.base.kernel.running
    compiled = driver_sources.has_modules_for(data, picked.source, picked.kind, kernel)
    return not catalog.is_realtime(kernel) if compiled is None else compiled


def image_based() -> Refusal:
    """Refuse a system that boots an image: packages cannot be installed into it, or are lost with the next image."""
    return Refusal(
        "image_based",
        "this host boots an image (ostree or bootc), whose /usr is read-only: no driver can be installed into it",
        "build the driver into the image, then set nvidia_driver_source to none",
    )


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
        without_manager = ", which has no fabric manager for %s of this host" % nvswitches_text(facts)
    origin = origins.get(state.origin or "", named)
    if version and state.userspace not in ([], [version]):
        return refuse(
            "foreign_driver",
            "the driver of this host, from %s, is inconsistent: its kernel module is %s, its libraries are %s"
            % (origin, version, " and ".join(state.userspace)),
            REPLACE,
            "complete it with the program that installed it",
        )
    return refuse(
        "foreign_driver",
        "the driver%s of this host is from %s%s, and two drivers of different origin break each other; requested "
        "is %s" % (" " + version if version else "", origin, without_manager, driver.source),
        REPLACE,
        "nvidia_driver_source to none to keep it",
    )


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


def signed_modules(situation: Situation) -> VariableChange | None:
    """Return how to get modules that the distribution has signed, None if the host cannot have them."""
    facts, data = situation.facts, situation.data
    for source in driver_sources.source_names(data):
        for kinds in ({}, {alternatives.MODULES: alternatives.AUTO}):
            values = {alternatives.SOURCE: source, **kinds}
            request = candidates.parse_request(alternatives.with_values(situation.settings, values))
            found = candidates.find_candidates(facts, request, facts.base.served_gpus, data)
            if found and candidates.is_trusted(facts, data, found[0]):
                left_out = alternatives.dropped(situation.settings, list(values))
                chosen: dict[str, list[object]] = {name: [value] for name, value in values.items()}
                return VariableChange(chosen, left_out)
    return None


def secure_boot_unsigned(situation: Situation, candidate: Candidate) -> Refusal:
    boot, data = situation.facts.base.secure_boot, situation.data
    signed = signed_modules(situation)
    instead = "%s, for modules that are signed; or " % signed.text if signed else ""
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
            signed,
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
        signed,
        "mokutil --import %s" % boot.certificate if key else "",
    )


def disk_full(facts: Facts) -> list[Refusal]:
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
