"""Hosts as facts, and their facts after a plan was carried out."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.facts.model import (
    AptFacts,
    BaseFacts,
    Facts,
    FunctionFacts,
    GpuFacts,
    KernelFacts,
    ModuleFacts,
    PackageEvidence,
    Place,
    RawFacts,
    RuntimeFacts,
    SecureBootFacts,
    YumFacts,
)
from plugins.module_utils.gpu_ready.system.model import OsRelease
from plugins.plugin_utils.gpu_ready.catalog import driver_packages, driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion import driver_origin
from plugins.plugin_utils.gpu_ready.completion.probes import make_probes
from plugins.plugin_utils.gpu_ready.execute.steps import EFFECTS
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.changes import apply_changes
from plugins.plugin_utils.gpu_ready.plan.model import Choices, Decision

KERNEL = "6.1.0-50-amd64"
KERNELS = {"debian12": KERNEL, "debian13": "6.12.48+deb13-amd64"}
KERNELS |= {"el8": "4.18.0-553.144.1.el8_10.x86_64", "el9": "5.14.0-687.5.1.el9_8.x86_64"}
KERNELS |= {"el10": "6.12.0-124.8.1.el10_1.x86_64", "centos7": "3.10.0-1160.119.1.el7.x86_64"}
KERNELS |= {"amzn2023": "6.1.158-178.288.amzn2023.x86_64", "fedora43": "6.17.4-300.fc43.x86_64"}
KERNELS |= {"ubuntu2004": "5.15.0-139-generic", "ubuntu2204": "6.8.0-60-generic", "ubuntu2404": "6.8.0-88-generic"}
CARDS = {
    "K80": "102d",
    "M60": "13f2",
    "P40": "1b38",
    "V100": "1db1",
    "T4": "1eb8",
    "A100": "20b2",
    "H100": "2330",
}
CARDS |= {"L4": "27b8", "GH200": "2342", "B200": "2901", "GB10": "2e12", "RTX 3090": "2204", "unknown": "3fff"}
K80, P40, V100, T4, A100, H100, B200, GB10 = "102d", "1b38", "1db1", "1eb8", "20b2", "2330", "2901", "2e12"
GEFORCE = "2204"
NVSWITCH, UNKNOWN = "22a3", "3fff"
SECURE = SecureBootFacts(on=True, key="/var/lib/dkms/mok.pub", certificate="/var/lib/dkms/mok.pub")
ENROLLED = SECURE._replace(enrolled=True)


def card(device: str, position: int = 0, driver: str | None = None) -> GpuFacts:
    known = catalog.gpu(device)
    name = known.name if known else f"NVIDIA device 10de:{device}"
    return GpuFacts(f"0000:{0x3B + position:02x}:00.0", device, driver, name)


R = TypeVar("R", bound=tuple[Any, ...])


def having(record: R, **changes: Any) -> R:
    """Return a record with changed fields.

    A dictionary changes the fields of a record in it (``driver={"loaded": None}``), or makes the record where there is
    none. Everything else, also a dictionary for a field that is one, replaces the field. Values are validated.
    """
    fields = {}
    names: Any = record
    for key, value in changes.items():
        name = key if key in names._fields else key + "_"
        current = getattr(record, name)
        if isinstance(value, dict) and hasattr(current, "_fields"):
            fields[name] = having(current, **value)
        else:
            fields[name] = records._convert(type(record).__annotations__[name], records.to_json(value), name)
    return names._replace(**fields)  # type: ignore[no-any-return]


def with_packages(facts: Facts, **versions_by_name: str) -> Facts:
    """Return the host with further installed packages; of names with dashes pass ``**{name: version}``."""
    return having(facts, packages={"installed": {**facts.packages.installed, **versions_by_name}})


def without_packages(facts: Facts, *names: str) -> Facts:
    installed = {name: version for name, version in facts.packages.installed.items() if name not in names}
    return having(facts, packages={"installed": installed})


def rpm(distro: str) -> bool:
    """True if a distribution has RPM packages."""
    return bool(catalog.distro(distro)["package_manager"] != "apt")


def own_repositories(data: dict[str, Any]) -> str:
    """A .repo file of a distribution whose optional sections are disabled."""
    optional = [names if isinstance(names, str) else names[0] for names in data.get("build_enable") or []]
    return "[baseos]\nenabled=1\n" + "".join(f"[{name}]\nenabled=0\n" for name in optional)


def bare(*devices: str, distro: str = "debian12", nvswitches: int = 0, **base: Any) -> Facts:
    """Return a freshly installed host with these GPUs; ``base``: changes of its BaseFacts, as for ``having``."""
    data = catalog.distro(distro)
    kernel = KERNELS.get(distro, "6.14.0-1-generic")
    apt = {"/etc/apt/sources.list": f"deb http://mirror.example/{data['ids'][0]} {data.get('codename')} main\n"}
    yum = {"/etc/yum.repos.d/base.repo": own_repositories(data)}
    system = BaseFacts(
        os=OsRelease(
            id=data["ids"][0],
            version_id=data["versions"][0],
            major=None,
            id_like=[],
            family="",
            version_codename=None,
            variant_id=None,
            base=None,
            pretty=data["pretty"],
            platform_id=None,
        ),
        distro=distro,
        python="3.11.2",
        boot_id="b0",
        kernel=KernelFacts(kernel, [kernel], kernel, {kernel: False}),
        gpus=[card(device, position) for position, device in enumerate(devices)],
        nvswitches=[FunctionFacts(f"0000:0{n}:00.0", NVSWITCH, None) for n in range(nvswitches)],
        disk={"/": 10**11, "/usr": 10**11, "/var": 10**11, "/boot": 10**9},
    )
    return Facts(
        having(system, **base),
        apt=AptFacts(sources={} if rpm(distro) else apt),
        yum=YumFacts(sources=yum if rpm(distro) else {}),
        runtime=RuntimeFacts(programs={"nvidia-ctk": None}, hook_known=False),
    )


def package_version(facts: Facts, name: str, version: str) -> str:
    """Return the version of a driver package as the package manager writes it."""
    kernel = facts.base.kernel.running
    if kernel in name:
        return kernel.rpartition("-")[0] + ".88+1"  # modules for one kernel carry the kernel's version
    return f"3:{version}-1.dist" if rpm(facts.base.distro or "debian12") else f"{version}-1"


def with_driver(facts: Facts, version: str, flavour: str, source: str, names: list[str], loaded: bool = True) -> Facts:
    """Return the host with a complete driver of a source."""
    packages = {name: package_version(facts, name, version) for name in names}
    after = having(
        facts,
        driver={
            "on_disk": ModuleFacts(version, flavour, "/lib/modules/x/nvidia.ko"),
            "userspace": [version],
            "packages": packages,
            "origin": source,
            "runfile": None,
        },
    )
    if loaded:
        after = having(after, driver={"loaded": ModuleFacts(version, flavour)})
    return with_packages(after, **packages)


def installed(
    distro: str,
    device: str,
    source: str,
    version: str,
    flavour: str,
    kind: str = driver_sources.DKMS,
    loaded: bool = True,
) -> Facts:
    """Return a host of a distribution with the packages that the catalog names for a driver."""
    host = bare(device, distro=distro)
    data, branch = catalog.distro(distro), int(version.split(".")[0])
    if source == driver_sources.RUNFILE:
        after = with_driver(host, version, flavour, source, [], loaded)
        built = [{"name": "nvidia", "version": version, "kernels": [host.base.kernel.running]}]
        return having(after, driver={"runfile": "/usr/bin/nvidia-uninstall", "dkms": built})
    names = driver_sources.packages(data, source, branch, "compute", flavour, kind, host.base.kernel.running)
    assert names, (distro, source, branch, flavour, kind)
    after = with_driver(host, version, flavour, source, names, loaded)
    pinning = driver_sources.source_entry(data, source, kind).get("pinning")
    if pinning:
        after = with_packages(after, **{pinning.format(branch=branch): "1.0-1"})
    stream = driver_sources.module_stream(data, source, branch, flavour, kind)
    return having(after, yum={"streams": {"nvidia-driver": stream} if stream else {}})


class Manager:
    """A package manager that installs what is newest in the catalog, and removes all that it may remove."""

    def __init__(self, facts: Facts, choices: Choices) -> None:
        self.facts, self.choices = facts, choices

    def version(self, name: str, requested: str | None) -> str:
        if requested and not requested.endswith("*"):
            return requested
        disk = self.facts.driver.on_disk
        if disk and re.search("fabric|imex|persistenced", name):
            return package_version(self.facts, name, disk.version)
        if self.choices.driver and make_probes().driver_packages({name: ""}):
            return package_version(self.facts, name, self.module(self.choices.driver._asdict()).version)
        if requested:
            return requested[:-1] + ("-1" if requested[-2].isalnum() else "1")
        docker = catalog.distro(self.facts.base.distro or "")["docker"].values()
        engines = [entry for entry in docker if entry and name in entry.get("engine", [])]
        others = "1.99.0-1" if name.startswith("nvidia-container-toolkit") else "1.0-1"
        return (engines[0].get("version") or "29.0.1-1") if engines else others

    def gives_up(self, names: Iterable[str]) -> list[str]:
        return list(names)

    def module(self, expect: Mapping[str, Any]) -> ModuleFacts:
        branch = expect.get("branch")
        known = catalog.branch(branch) if branch else None
        newest = known.newest if known and known.newest.count(".") else f"{branch}.100.01"
        return ModuleFacts(expect["version"] or newest, expect["flavour"], "/lib/modules/x/nvidia.ko")

    def origin(self, packages: Mapping[str, str]) -> str:
        assert self.choices.driver and self.facts.base.distro
        return attributed(dict(packages), self.facts.base.distro, self.choices.driver.source)


Decided = compose.Plan | Decision[Any]


def carried_out(facts: Facts, decided: Decided, steps: int | None = None) -> Facts:
    """Return the host after so many steps of a plan, or all, as they declare it; the verification passes."""
    for step in decided.steps[:steps]:
        facts = after_step(facts, decided, step.id)
    return facts


def after_step(facts: Facts, decided: Decided, name: str) -> Facts:
    """Return the host after a step of its plan."""
    choices = decided.choices if isinstance(decided, compose.Plan) else Choices()
    params = next(records.to_json(step.params) for step in decided.steps if step.id == name)
    return apply_changes(facts, EFFECTS[name](params, Manager(facts, choices)))


def evidence_of(packages: dict[str, str], distro: str, source: str) -> list[PackageEvidence]:
    """Return what a package manager says of driver packages that a source of the catalog has in its repository."""
    data = catalog.distro(distro)
    entry = driver_sources.source_entry(data, source)
    if entry.get("repository"):
        place = Place(catalog.repository(entry["repository"])["url"])
    else:
        place = Place("http://mirror.example/os", data["codename"] + "-updates", entry["components"][0])
    deciding = make_probes().deciding_packages(packages) or sorted(packages)
    return [PackageEvidence(name, packages[name], [place]) for name in deciding]


def attributed(packages: dict[str, str], distro: str, source: str) -> str:
    """Return the origin of driver packages that a source of the catalog has in its repository."""
    found = evidence_of(packages, distro, source)
    data = catalog.distro(distro)
    return driver_packages.source_of_publisher(driver_origin.find_origin(found, packages, data).publisher)


def as_collected(facts: Facts) -> Facts:
    """Return what a host with these facts answers, from which completion makes them again."""
    system, driver, distro = facts.base.os, facts.driver, facts.base.distro
    values = {
        "ID": system.id, "VERSION_ID": system.version_id, "ID_LIKE": " ".join(system.id_like), "PRETTY_NAME": system.pretty,
        "VERSION_CODENAME": system.version_codename, "VARIANT_ID": system.variant_id, "PLATFORM_ID": system.platform_id,
    }  # fmt: skip
    tools = ["update-initramfs", "dracut"] if facts.base.initramfs else []
    known = distro and driver.packages and driver.origin in catalog.distro(distro)["driver_sources"]
    by_packages = known and driver.origin != driver_sources.RUNFILE
    return facts._replace(
        driver=driver._replace(origin=None if by_packages else driver.origin),
        raw=RawFacts(
            os_release="".join(f'{name}="{value}"\n' for name, value in values.items() if value),
            initramfs_tools=tools,
            driver=evidence_of(driver.packages, distro or "", driver.origin or "") if by_packages else [],
        ),
    )
