"""The steps to a chosen driver: headers, repositories, nouveau, the driver itself, its hold."""

import re
from typing import Any, Dict, List, Optional, Set

from ...base import versions
from ...catalog import driver_sources
from ...catalog.driver_sources import DKMS, PROFILES, RUNFILE
from .. import repository
from ..model import DRIVER_RELOAD, NONE, Step
from .candidates import served

NOUVEAU_PATH = "/etc/modprobe.d/gpu-ready-blacklist-nouveau.conf"
NOUVEAU_CONTENT = (
    "# The NVIDIA driver needs the GPU for itself.\n"
    "blacklist nouveau\noptions nouveau modeset=0\n"
    "# The kernel's other driver, of newer releases.\n"
    "blacklist nova_core\n"
)


def steps(observed: Dict[str, Any], wanted: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]) -> List[Step]:
    """Return the steps to the chosen driver, in order."""
    if driver["satisfied"]:
        following = next_kernel(observed, driver)
        return (
            (headers_steps(observed, wanted, driver, data) if following else [])
            + nouveau_steps(observed, driver, data)
            + following
            + hold_steps(observed, wanted, driver, data)
        )
    install = runfile_steps if driver["source"] == RUNFILE else package_steps
    headers = headers_steps(observed, wanted, driver, data)
    # What the build is made with may come from the repository of the driver itself (DKMS on Amazon Linux).
    there = [one["id"] for step in headers for one in step.params.get("repositories") or []]
    return (
        headers
        + repository_steps(observed, wanted, driver, data, there)
        + nouveau_steps(observed, driver, data)
        + install(observed, wanted, driver, data)
        + hold_steps(observed, wanted, driver, data)
    )


def headers_steps(
    observed: Dict[str, Any], wanted: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]
) -> List[Step]:
    """Return the steps that make a module build possible: repositories, headers of the kernels, a compiler.

    The running kernel and the one that boots next must have their headers; those of other installed kernels come where
    a source still has them, so that going back to an older kernel finds a module.
    """
    if driver["kind"] != DKMS:
        return []
    kernel = observed["base"]["kernel"]
    kernels = [kernel["running"]] + [name for name in (kernel["next_boot"],) if name != kernel["running"]]
    missing = [name for name in kernels if not kernel["headers"].get(name)]
    others = [name for name in kernel["installed"] if name not in kernels and not kernel["headers"].get(name)]
    there = observed["packages"]["installed"]
    tools = build_tools(observed, driver, data)
    fitting = matched(observed, data)
    third = build_repositories(observed, wanted, data, missing)
    sections = repository.to_enable(observed, data.get("build_enable"))
    found = []
    if third or sections:
        reason = "what the module is built with comes from %s" % " and ".join([one["id"] for one in third] + sections)
        params = {"repositories": third, "enable": sections or None}
        found.append(Step("kernel_headers.repository", reason, params=params))
    if missing or tools or fitting:
        cause = "DKMS comes with the headers of an installed kernel"
        cause = "there is no compiler" if tools else cause
        cause = "the headers of kernel %s are missing" % " and ".join(missing) if missing else cause
        params = {
            "packages": [package for name in missing for package in headers_of(data, name, there)] + tools,
            "optional": [package for name in others for package in headers_of(data, name, there)] + fitting,
            "kernel": kernel["running"],
        }
        reason = "the driver's module is built here, and %s" % cause
        found.append(Step("kernel_headers.install", reason, params=params))
    return found


def next_kernel(observed: Dict[str, Any], driver: Dict[str, Any]) -> List[Step]:
    """Return the step that builds the module for the kernel that boots next, where an upgrade brought only the kernel.

    DKMS builds by itself when a kernel comes with its headers; the headers of one kernel, which the driver was built
    with, bring no others.
    """
    kernel = observed["driver"]["kernel_without_module"]
    version = observed["driver"]["on_disk"]["version"]
    if kernel is None or version not in [row["version"] for row in observed["driver"]["dkms"]]:
        return []
    reason = "kernel %s boots next and has no NVIDIA module" % kernel
    return [Step("nvidia_driver.next_kernel", reason, params={"kernel": kernel})]


def headers_of(data: Dict[str, Any], kernel: str, there: Dict[str, str]) -> List[str]:
    """Return the packages with the headers of a kernel; some kernels have other names (UEK, real time, debug).

    ``{release}`` is the kernel's name without its kind: 5.14.0-427.el9.x86_64+rt is of kernel-rt-5.14.0-427.el9.x86_64.
    """
    special = (data.get("headers_by_kernel") or {}).items()
    patterns = next((names for pattern, names in special if re.search(pattern, kernel)), data["headers"])
    if isinstance(patterns, dict):
        patterns = patterns[package_of(list(patterns), kernel, there)]
    return [pattern.format(kernel=kernel, release=kernel.rpartition("+")[0] or kernel) for pattern in patterns]


def package_of(names: List[str], kernel: str, there: Dict[str, str]) -> str:
    """Return which of these packages a kernel is of: an installed one, of several that of its series (6.1)."""
    version_of = {name: there.get(name + "-core") or there.get(name) for name in names}
    installed = [name for name in names if version_of[name]]
    series = [name for name in installed if str(version_of[name]).split(".")[:2] == kernel.split(".")[:2]]
    return (series or installed or names)[0]


def matched(observed: Dict[str, Any], data: Dict[str, Any]) -> List[str]:
    """Return the packages that keep DKMS, which is still to come, from bringing a newer kernel than is installed."""
    there = observed["packages"]["installed"]
    rules = {} if "dkms" in there else data.get("matched") or {}
    names = [pattern.format(version=there[kernel]) for kernel, pattern in sorted(rules.items()) if kernel in there]
    return [name for name in names if re.sub(r"-\d.*", "", name) not in there]


def build_tools(observed: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]) -> List[str]:
    """Return the tools that a module build lacks; packages bring DKMS themselves, an installer does not."""
    there = observed["packages"]["installed"]
    listed = list(data.get("build_tools") or [])
    if not observed["base"]["compiler"]:
        return listed
    return [name for name in listed if name == "dkms" and name not in there and driver["source"] == RUNFILE]


def build_repositories(
    observed: Dict[str, Any], wanted: Dict[str, Any], data: Dict[str, Any], missing: List[str]
) -> List[Dict[str, Any]]:
    """Return the repositories that the build needs and the host lacks; vaults only when the operator asked for them."""
    listed = list(data.get("build_repositories") or [])
    if missing and wanted.get("gpu_ready_vault"):
        listed += list(data.get("vault") or [])
    return repository.lacking(observed, [repository.params(identity, wanted) for identity in listed])


def repository_steps(
    observed: Dict[str, Any], wanted: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any], there: List[str]
) -> List[Step]:
    """Return the step that opens the source of the driver packages; ``there``: repositories that earlier steps add."""
    entry = driver_sources.table(data, driver["source"], driver["kind"])
    components = entry.get("components")
    lacking = components and repository.components_missing(observed, components, data["codename"])
    wanting = components if lacking else None
    third = repository.lacking(observed, repositories(wanted, driver, data))
    third = [one for one in third if one["id"] not in there]
    if wanting is None and not third:
        return []
    reason = (
        "the packages of branch %d come from %s" % (driver["branch"], third[0]["url"])
        if third
        else "the driver is in the components %s" % ", ".join(wanting or [])
    )
    params = {"components": list(wanting) if wanting else None, "repositories": third}
    return [Step("nvidia_driver.repository", reason, params=params)]


def repositories(wanted: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Return the repositories that the chosen driver comes from, and those with what it depends on."""
    entry = driver_sources.table(data, driver["source"], driver["kind"])
    names = [entry["repository"]] if entry.get("repository") else []
    names += list(entry.get("with_repositories") or [])
    return [repository.params(name, wanted, {"driver": driver}) for name in names]


def nouveau_steps(observed: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]) -> List[Step]:
    """Return the step that keeps nouveau away where nothing does and no NVIDIA driver took its place yet."""
    nouveau = observed["base"]["nouveau"]
    if nouveau["blacklisted"]:
        return []
    params: Dict[str, Any] = {"path": NOUVEAU_PATH, "content": NOUVEAU_CONTENT, "rebuild": None}
    if (nouveau["loaded"] or nouveau["bound"]) and observed["base"]["initramfs"]:
        params["rebuild"] = list(data.get("initramfs") or []) or None
    diff = {"path": NOUVEAU_PATH, "before": "", "after": NOUVEAU_CONTENT}
    reason = "%s would take the GPU before NVIDIA's module can" % (nouveau.get("name") or "nouveau")
    return [Step("nvidia_driver.blacklist_nouveau", reason, params=params, diff=diff)]


def package_steps(
    observed: Dict[str, Any], wanted: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]
) -> List[Step]:
    """Return the steps that install, upgrade, downgrade or change the flavour of a driver of packages."""
    state = observed["driver"]
    entry = driver_sources.table(data, driver["source"], driver["kind"])
    pinning = entry.get("pinning")
    stream = driver["stream"]
    own = set(driver["packages"])
    pin = [pinning.format(branch=driver["version"] or driver["branch"])] if pinning else []
    other_pins = [name for name in pins(observed, data) if name not in pin]
    params = {
        "packages": [
            {"name": name, "version": exact(name, driver, data)}
            for name in driver["packages"] + for_next_boot(observed, driver, data)
        ],
        "pin_packages": pin,
        "pin_remove": other_pins if pin else [],
        "streams": {"nvidia-driver": stream} if stream else {},
        "remove": removals(observed, driver, data) + ([] if pin else other_pins),
        "allow_remove": sorted(set(state["packages"]) - own),
        # The lock of a package that a killed run took away would keep its successor out.
        "unhold": sorted(set(state["held"]) | (own & set(observed["packages"]["held"]))),
        "runfile": state["runfile"] if foreign(observed, driver) else None,
        "rebuild": rebuild(observed, driver),
        "expect": {"branch": driver["branch"], "version": driver["version"], "flavour": driver["flavour"]},
    }
    disruption = DRIVER_RELOAD if state["loaded"] else NONE
    reason = install_reason(observed, driver, removals(observed, driver, data))
    install = Step("nvidia_driver.install", reason, disruption, params)
    return detect_steps(observed, driver, entry) + [install]


def for_next_boot(observed: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]) -> List[str]:
    """Return the packages of the kernel that boots next, where each kernel has modules of its own."""
    names = driver_sources.packages(
        data, driver["source"], driver["branch"], driver["profile"], driver["flavour"], driver["kind"],
        observed["base"]["kernel"]["next_boot"],
    )  # fmt: skip
    return [name for name in names if name not in driver["packages"]]


def pins(observed: Dict[str, Any], data: Dict[str, Any]) -> List[str]:
    """Return the installed packages that keep a driver on a version or branch: of another version they exclude ours."""
    starts = [entry["pinning"].split("{")[0] for entry in data["driver_sources"].values() if entry.get("pinning")]
    return sorted(name for name in observed["packages"]["installed"] if name.startswith(tuple(starts)))


def exact(name: str, driver: Dict[str, Any], data: Dict[str, Any]) -> Optional[str]:
    """Return the version that a package must have, None where any will do.

    A pin or a module stream decides what comes; only a version also moves what is there already. A name with the branch
    in it, and a source with one branch, leave no choice (there, some packages of a driver have versions of their own).
    """
    if driver["version"]:
        return str(driver["version"]) + "-*"
    one = len(driver_sources.branches(data, driver["source"], driver["kind"])) == 1
    return None if one or str(driver["branch"]) in name else "%d.*" % driver["branch"]


def detect_steps(observed: Dict[str, Any], driver: Dict[str, Any], entry: Dict[str, Any]) -> List[Step]:
    """Return the step that asks the source's own detector for its verdict, where it has one."""
    tool = entry.get("detect")
    if not tool:
        return []
    cards = ["10de:%s %s" % (card["device"], card["name"]) for card in served(observed)]
    params = {"packages": [tool], "expect": driver["detected"], "gpus": cards}
    return [Step("nvidia_driver.detect", "%s must agree with the catalog" % tool, params=params)]


def runfile_steps(
    observed: Dict[str, Any], wanted: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]
) -> List[Step]:
    """Return the steps of NVIDIA's installer: packages of another driver first make way."""
    state = observed["driver"]
    kernel = observed["base"]["kernel"]
    found = []
    if state["packages"]:
        reason = "an installer never goes over packages"
        params = {"packages": sorted(state["packages"]), "unhold": sorted(state["held"])}
        found.append(Step("nvidia_driver.remove_packages", reason, DRIVER_RELOAD if state["loaded"] else NONE, params))
    kernels = [kernel["running"]] + [name for name in (kernel["next_boot"],) if name != kernel["running"]]
    params = dict(driver["runfile"], flavour=driver["flavour"], kernels=kernels, uninstall=state["runfile"])
    disruption = DRIVER_RELOAD if state["loaded"] else NONE
    return found + [Step("nvidia_driver.runfile", install_reason(observed, driver, []), disruption, params)]


def rebuild(observed: Dict[str, Any], driver: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return the kernel to build the module for where the packages are there and only its build is missing."""
    state = observed["driver"]
    complete = all(name in state["packages"] for name in driver["packages"])
    if state["on_disk"] or not complete:
        return None
    return {"kernel": observed["base"]["kernel"]["running"]}


def removals(observed: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]) -> List[str]:
    """Return the packages that make way: all of a foreign driver, else those of another branch, flavour or kind.

    Not all of them exclude each other, and two modules for one kernel, or two branches of libraries, serve nobody.
    """
    present = observed["driver"]["packages"]
    if foreign(observed, driver):
        return sorted(present)
    source, kernels = driver["source"], observed["base"]["kernel"]["installed"]
    ours = (driver["kind"], driver["branch"], driver["flavour"])
    own: Set[str] = set(driver["packages"])
    others: Set[str] = set()
    for kind in driver_sources.kinds(data, source):
        for branch in driver_sources.branches(data, source, kind):
            for flavour in driver_sources.FLAVOURS:
                for names in (
                    driver_sources.packages(data, source, branch, profile, flavour, kind, kernel)
                    for profile in PROFILES
                    for kernel in kernels
                ):
                    (own if (kind, branch, flavour) == ours else others).update(names)
    return sorted((others - own) & set(present))


def foreign(observed: Dict[str, Any], driver: Dict[str, Any]) -> bool:
    """Return whether a driver of another origin is in the way; parts without any module are what a killed run left."""
    state = observed["driver"]
    if state["origin"] == "unknown" and not state["on_disk"] and not state["loaded"]:
        return False
    return state["origin"] not in (None, driver["source"])


def fits(version: str, driver: Dict[str, Any]) -> bool:
    """Return whether a version is the one asked for, or of the branch where only that matters."""
    if driver["version"]:
        return bool(version == driver["version"])
    return bool(versions.branch(version) == driver["branch"])


def install_reason(observed: Dict[str, Any], driver: Dict[str, Any], others: List[str]) -> str:
    """Return why the driver step is there; ``others`` are packages of another driver."""
    state = observed["driver"]
    disk = state["on_disk"]
    target = "driver %s (%s)" % (driver["version"] or "branch %d" % driver["branch"], driver["flavour"])
    if not disk:
        lack = "no module for the running kernel" if state["packages"] else "no NVIDIA driver"
        return "there is %s; wanted is %s" % (lack, target)
    if foreign(observed, driver):
        return "the driver came from %s; wanted is %s from %s" % (state["origin"], target, driver["source"])
    if state.get("interrupted"):
        return "an installation was cut off; wanted is %s" % target
    if fits(disk["version"], driver) and disk["flavour"] == driver["flavour"]:
        missing = [name for name in driver["packages"] if name not in observed["packages"]["installed"]]
        if state["userspace"] == [disk["version"]]:
            lack = "%s is missing" % ", ".join(missing) if missing else "%s of another is there" % ", ".join(others)
            return "%s is not whole: %s" % (target, lack)
        return "%s is not whole: userspace %s" % (target, ", ".join(state["userspace"]) or "is missing")
    return "driver %s (%s) is installed; wanted is %s" % (disk["version"], disk["flavour"], target)


def hold_steps(
    observed: Dict[str, Any], wanted: Dict[str, Any], driver: Dict[str, Any], data: Dict[str, Any]
) -> List[Step]:
    """Return the step that keeps unattended upgrades off the driver; a change of it takes the hold off before.

    Modules of one kernel are not held: they need exactly the driver that is held, and must go with their kernel.
    """
    held = set() if not driver["satisfied"] else set(observed["packages"]["held"])
    kernel = observed["base"]["kernel"]["running"]
    names = [name for name in driver["packages"] if kernel not in name]
    if not wanted.get("nvidia_driver_hold") or set(names) <= held:
        return []
    reason = "an unattended upgrade would part the driver's userspace from the loaded module"
    tools = [name for name in data.get("hold_tools") or [] if name not in observed["packages"]["installed"]]
    return [Step("nvidia_driver.hold", reason, params={"packages": names, "tools": tools})]
