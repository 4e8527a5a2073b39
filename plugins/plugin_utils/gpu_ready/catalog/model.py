"""The catalog: what is known about GPUs, drivers, CUDA, cuDNN, distributions and repositories (data: catalog/*.yml)."""

import datetime
import functools
import re
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.base import versions
from . import data as catalog_data

DATE: str = catalog_data.DATE
MACHINE = "x86_64"
"""The architecture (uname -m) whose repositories, installers and archives the catalog has."""
NO_LIMIT = "9999"
"""A compute capability above all."""
Distribution = dict[str, Any]
"""The data of one distribution (catalog/distros)."""


class Gpu(NamedTuple):
    """A GPU by its PCI device id. ``last_branch`` is the ceiling (None: served by current drivers).

    ``verified``: a list of a driver has it; the others are in pci.ids only.
    """

    device_id: str
    name: str
    architecture: str
    last_branch: int | None
    first_branch: int | None
    flavours: tuple[str, ...]
    compute: str | None
    verified: bool = True


class Branch(NamedTuple):
    """A driver branch. ``eol`` is the month its support ends, ``cuda`` the version of its libcuda.

    ``since``: the day of its first release, "" where it does not matter any more. ``kernel_max``: the newest series of
    the kernel ("6.19") before one that its newest release does not build for, None where none is known.
    ``kernel_known``: the newest one for which a public source confirms that it builds, None where that does not matter.
    """

    number: int
    newest: str
    kind: str
    eol: str | None
    cuda: str
    flavours: tuple[str, ...]
    since: str = ""
    kernel_max: str | None = None
    kernel_known: str | None = None


class Toolkit(NamedTuple):
    """A CUDA toolkit: ``min_driver`` runs it (minor-version compatibility).

    ``compute``: the first and the last compute capability that it supports.
    """

    version: str
    min_driver: str
    compute: tuple[str, ...]


class CudaInstaller(NamedTuple):
    """NVIDIA's .run installer of a toolkit; ``sha256`` is "" where only the list at ``md5_url`` verifies it."""

    release: str
    url: str
    sha256: str
    md5_url: str


class Cudnn(NamedTuple):
    """A cuDNN release; ``archives`` by (machine, CUDA major): path below the redist directory, sha256 where known.

    ``compute``: the first and the last compute capability that it supports.
    """

    version: str
    cuda: tuple[str, ...]
    compute: tuple[str, ...]
    archives: dict[tuple[str, str], dict[str, str | None]]


class Bulletin(NamedTuple):
    """Published vulnerabilities of a component: ``fixed`` is the first version without them, by branch."""

    number: str
    date: str
    component: str
    cves: tuple[str, ...]
    fixed: tuple[str, ...]


def newest_branch() -> int:
    """Return what a GPU gets that is newer than the catalog."""
    return catalog_data.PUBLISHED[-1]


def gpus() -> dict[str, Gpu]:
    """Return every GPU by device id (four small letters), without the names of those that no known branch drives."""
    return _gpus_of(catalog_data.GENERATION)


@functools.cache
def _gpus_of(generation: int) -> dict[str, Gpu]:
    oldest = min(catalog_data.BRANCHES)
    found: dict[str, Gpu] = {}
    for group in catalog_data.GPU_GROUPS:
        last, compute, flavours = group["last_branch"], group["compute"], tuple(group["flavours"])
        first, architecture, verified = group["first_branch"], group["architecture"], bool(group["verified"])
        for device, name in sorted(group["ids"].items()):
            known = name if last is None or last >= oldest else "GPU of before 2007"
            found[device] = Gpu(device, known, architecture, last, first, flavours, compute, verified)
    return found


def gpu(device_id: str) -> Gpu | None:
    """Return a GPU by its device id ("1b38"), None for one that the catalog does not have."""
    return gpus().get(device_id.lower())


def is_older_than_turing(device_id: str) -> bool:
    """Return True if a device id is of a chip before Turing: one that the catalog does not have is no newer GPU."""
    return int(device_id, 16) < int(catalog_data.FIRST_OF_TURING, 16)


def nvswitch(device_id: str) -> str | None:
    """Return the name of an NVSwitch by its device id, None for anything else."""
    name = catalog_data.NVSWITCHES.get(device_id.lower())
    return None if name is None else str(name)


def branches() -> list[Branch]:
    """Return driver branches, ascending."""
    return [
        Branch(
            number,
            data["newest"],
            data["kind"],
            data["eol"],
            data["cuda"],
            tuple(data["flavours"]),
            data.get("since", ""),
            data.get("kernel_max"),
            data.get("kernel_known"),
        )
        for number, data in sorted(catalog_data.BRANCHES.items())
    ]


def branch(number: int) -> Branch | None:
    return next((entry for entry in branches() if entry.number == int(number)), None)


def kernel_min(branch: int) -> str | None:
    """Return the oldest series of the kernel ("4.15") that a branch builds for; None where none is known."""
    fitting = [
        oldest for limits, oldest in catalog_data.KERNEL_MIN.items() if versions.is_branch_within(branch, limits)
    ]
    return fitting[0] if fitting else None


def branch_rules(number: int) -> Branch:
    """Return a branch; one that the catalog does not have has the flavours of the known one before it."""
    before = [entry for entry in branches() if entry.number <= int(number)] or branches()[:1]
    known = before[-1]
    if known.number == number:
        return known
    return Branch(number, "", "unknown", None, "", known.flavours)


def has_ended(number: int, today: str) -> bool:
    """Return True if NVIDIA no longer maintains a branch on a day; "" for the day of the catalog."""
    known = branch(number)
    return bool(known and known.eol and known.eol[:7] < (today or DATE)[:7])


def support_order(number: int, today: str, min_age: int) -> tuple[bool, bool, str, int]:
    """Return by what branches are preferred, the best one last: maintained, old enough, its end, its number.

    ``min_age``: days since its first release. A branch without a known end is a new feature branch, which ends first.
    """
    known = branch_rules(number)
    aged = not known.since or age_in_days(known.since, today) >= min_age
    return (not has_ended(number, today), aged, known.eol or "", number)


def age_in_days(day: str, today: str) -> int:
    return (datetime.date.fromisoformat(today or DATE) - datetime.date.fromisoformat(day)).days


def age_text(today: str, date: str = "") -> str:
    """Return the date of the catalog and its age on a day, for reports; ``date``: of another catalog."""
    days = max(0, age_in_days(date or DATE, today))
    return "catalog of %s, %s" % (date or DATE, "1 day old" if days == 1 else "%d days old" % days)


def recommended_branch(today: str, min_age: int) -> int:
    """Return the branch that is preferred where nothing of a host excludes it."""
    return max((one.number for one in branches()), key=lambda number: support_order(number, today, min_age))


def toolkits() -> list[Toolkit]:
    """Return CUDA toolkits, ascending."""
    return [
        Toolkit(version, data["min_driver"], tuple(data["compute"]))
        for version, data in sorted(catalog_data.TOOLKITS.items(), key=lambda item: versions.key(item[0]))
    ]


def toolkit_rules(version: str) -> Toolkit | None:
    """Return a toolkit; an unknown one has the limits of the last known one of its major version, and None without.

    What it compiles for besides is not known: a major version drops cards with its first release only.
    """
    known = toolkits()
    exact = [one for one in known if one.version == version]
    same = [one for one in known if versions.key(one.version)[:1] == versions.key(version)[:1]]
    if exact or not same:
        return exact[0] if exact else None
    return same[-1]._replace(version=version, compute=(same[-1].compute[0], NO_LIMIT))


def cuda_installers() -> list[CudaInstaller]:
    return [
        cuda_installer(release, entry)
        for release, entry in sorted(catalog_data.CUDA_INSTALLERS.items(), key=lambda item: versions.key(item[0]))
    ]


def cuda_installer(release: str, entry: dict[str, str]) -> CudaInstaller:
    """Return NVIDIA's installer of a release; ``entry``: the driver in its name and its checksum, where it has them."""
    data = catalog_data.CUDA_INSTALLER
    words = {"root": data["root"], "release": release, "driver": entry.get("driver")}
    form = data["file" if entry.get("driver") else "file_without_driver"]
    return CudaInstaller(release, form.format(**words), entry.get("sha256", ""), data["md5"].format(**words))


def later_cuda_installer(release: str) -> CudaInstaller | None:
    """Return the installer of a release after all known ones, whose name has a pattern; None for an older one."""
    newest = cuda_installers()[-1].release
    return cuda_installer(release, {}) if versions.compare(release, newest) > 0 else None


def cuda_installer_needs() -> list[str]:
    """Return packages that the program inside such an installer needs on the host."""
    return list(catalog_data.CUDA_INSTALLER["needs"])


def cudnns() -> list[Cudnn]:
    return [
        Cudnn(
            version,
            tuple(data["cuda"]),
            tuple(data["compute"]),
            {
                ("x86_64", major): {
                    "path": catalog_data.CUDNN_PATH.format(version=version, cuda=major),
                    "sha256": (data.get("sha256") or {}).get(major),
                }
                for major in data["cuda"]
            },
        )
        for version, data in sorted(catalog_data.CUDNNS.items(), key=lambda item: versions.key(item[0]))
    ]


def cudnn_packages(major: str, kind: str) -> dict[str, Any] | None:
    """Return packages of a major version of cuDNN for a format ("deb", "rpm"), None where the catalog has none.

    A major version after all known ones has the names of the last known one, with its own number.

    ``names`` and ``version`` are patterns, ``any`` is what every release of it matches (None: only exact ones are
    possible), and ``side_by_side`` says whether packages for two CUDA majors can be installed together.
    """
    known = catalog_data.CUDNN_PACKAGES
    line = known.get(min(int(major), max(known))) or {}
    entry = line.get(kind)
    if not entry:
        return None
    words = {"line": major, "cuda": "{cuda}", "version": "{version}"}
    named = {key: value.format(**words) for key, value in entry.items() if key != "names"}
    return {"side_by_side": line["side_by_side"], "any": None, **named} | {
        "names": [name.format(**words) for name in entry["names"]]
    }


def distro(key: str) -> Distribution:
    """Return the data of a distribution by its key ("debian12"); KeyError for an unknown one."""
    data: dict[str, Any] = catalog_data.DISTROS[key]
    return dict(data, key=key)


def distro_or_none(key: str | None) -> Distribution:
    """Return the data of a distribution, {} of a system that the catalog does not have."""
    return distro(key) if key else {}


def distros() -> list[str]:
    return sorted(catalog_data.DISTROS)


def families() -> dict[str, Any]:
    data: dict[str, Any] = catalog_data.FAMILIES
    return data


def is_realtime(kernel: str) -> bool:
    """Return True if a kernel has PREEMPT_RT, by its release: no module of NVIDIA builds for it."""
    return bool(re.search(families()["realtime_kernels"], kernel))


def bulletins() -> list[Bulletin]:
    """Return the bulletins about vulnerabilities, the oldest first (catalog/security.yml)."""
    found = [
        Bulletin(number, row["date"], row["component"], tuple(row["cves"]), tuple(row["fixed"]))
        for number, row in catalog_data.BULLETINS.items()
    ]
    return sorted(found, key=lambda one: one.date)


def sources_of_every_release() -> list[str]:
    """Return the sources of a driver in which its fixed version can be had, whatever came after it."""
    return catalog_data.EVERY_RELEASE


def repositories() -> dict[str, dict[str, Any]]:
    data: dict[str, dict[str, Any]] = catalog_data.REPOSITORIES
    return data


def dcgm() -> dict[str, Any]:
    """Return packages and versions of DCGM and its exporter, and digests of our files (catalog/monitoring.yml)."""
    data: dict[str, Any] = catalog_data.DCGM
    return data


def managed_hosts() -> dict[str, dict[str, Any]]:
    """Return kinds of hosts whose driver is somebody else's (catalog/managed_hosts.yml), in the order of tests."""
    data: dict[str, dict[str, Any]] = catalog_data.MANAGED_HOSTS
    return data


def repository(identity: str) -> dict[str, Any]:
    data: dict[str, Any] = catalog_data.REPOSITORIES[identity]
    return data
