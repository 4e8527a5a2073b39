"""Facts of a host with what the catalog says of them: the system, the names of GPUs, who published the driver."""

import time

from ....module_utils.gpu_ready.base.host import Host
from ....module_utils.gpu_ready.facts import collect
from ....module_utils.gpu_ready.facts.driver_origin import MIXED, RUNFILE, companion_names
from ....module_utils.gpu_ready.facts.model import BaseFacts, DriverFacts, Facts, GpuFacts, RawFacts
from ..catalog import model as catalog
from ..catalog.driver_packages import source_of_publisher
from . import os_family
from .driver_origin import companion_patterns, find_origin
from .probes import make_probes


def collect_facts(host: Host, treat_as: str | None = None, day: str = "") -> Facts:
    """Return the complete facts of a host that this process can read; the rest is as in :func:`complete`."""
    return complete(collect.collect(host, make_probes()), treat_as, day)


def today() -> str:
    """Return the day by the clock of the control node, in UTC: the only clock of a plan."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def complete(facts: Facts, treat_as: str | None = None, day: str = "") -> Facts:
    """Return facts as planners read them, of what a host answered.

    ``treat_as``: the operator's choice for a system that the catalog does not have. ``day``: of the plan, whatever
    the host says; "" for the day of the catalog.
    """
    system = complete_base(facts.base, facts.raw, treat_as)
    driver = complete_driver(facts.driver, facts.raw, catalog.distro(system.distro) if system.distro else None)
    return facts._replace(base=system, driver=driver, today=day, offered=None, raw=RawFacts())


def complete_base(system: BaseFacts, raw: RawFacts, treat_as: str | None) -> BaseFacts:
    release = os_family.read_os_release(raw.os_release)
    manager = None if os_family.resolve(release) else system.package_manager
    distro = os_family.resolve(release, treat_as, manager)
    tool = catalog.distro(distro).get("initramfs") if distro else None
    boot = system.secure_boot
    by_firmware = raw.firmware_key and release.family in catalog.families()["platform_keyring"]
    return system._replace(
        os=release,
        distro=distro,
        package_manager=manager,
        initramfs=bool(tool and tool[0] in raw.initramfs_tools),
        secure_boot=boot._replace(enrolled=boot.enrolled or by_firmware),
        gpus=[complete_gpu(gpu) for gpu in system.gpus],
    )


def complete_gpu(gpu: GpuFacts) -> GpuFacts:
    known = catalog.gpu(gpu.device)
    return gpu._replace(name=known.name) if known else gpu


def complete_driver(driver: DriverFacts, raw: RawFacts, data: catalog.Distribution | None) -> DriverFacts:
    if driver.origin in (RUNFILE, MIXED) or not driver.packages:
        return driver
    origin = find_origin(raw.driver, driver.packages, data)
    versions = {one.name: one.version for one in raw.driver}
    names = companion_names(companion_patterns(data), versions)
    return driver._replace(
        origin=source_of_publisher(origin.publisher) or None,
        repository=origin.place,
        companions={name: driver.companions[name] for name in names if name in driver.companions},
    )
