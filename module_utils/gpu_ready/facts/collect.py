"""Collect all facts of a host. Read-only; runs as few programs as possible."""

from typing import Optional, Tuple

from ..base import manifest
from ..base.host import Host
from ..packaging.family import uses_rpm
from ..system import os_release
from ..upgrade import journal
from . import base, cuda, cudnn, docker, driver, driver_origin, engines, health, monitoring, verified, work
from .model import AptFacts, BaseFacts, Facts, PackageFacts, RawFacts, YumFacts
from .probes import Probes


def collect(host: Host, probes: Probes) -> Facts:
    """Return the facts of a host as it knows them; completion/complete.py adds what the catalog says."""
    release = os_release.read_text(host)
    system = base.collect(host, os_release.parse_release(os_release.parse_values(release)), probes.managed)
    packages, apt, yum = collect_packages(host, system)
    record = verified.collect(host)
    installed = packages.installed
    toolkits = cuda.collect(host, installed)
    libraries, library_packages = cudnn.collect(host, installed, toolkits.toolkits)
    engine, runtime = docker.collect(host)
    daemons = work.find_daemons(host)
    parts = probes.driver_packages(installed)
    module = driver.collect(host, system, packages, parts)
    sources = (apt or yum or AptFacts()).sources
    origin = driver_origin.collect(host, probes, parts, module.runfile, yum, record, sources)
    return Facts(
        base=system,
        packages=packages,
        apt=apt or AptFacts(),
        yum=yum or YumFacts(),
        driver=module._replace(origin=origin.kind or None, companions=origin.companions),
        cuda=toolkits,
        cudnn=libraries,
        cudnn_packages=library_packages,
        docker=engine,
        runtime=runtime,
        engines=engines.collect(host, installed),
        monitoring=monitoring.collect(host, daemons.exporters),
        work=work.collect(host, engine, daemons),
        verified=record,
        upgrade=journal.read(host),
        drained=host.exists(manifest.DRAIN),
        health=health.collect(host, system, module),
        raw=RawFacts(release, base.initramfs_tools(host), base.has_firmware_key(host, system), origin.evidence),
    )


def collect_packages(host: Host, system: BaseFacts) -> Tuple[PackageFacts, Optional[AptFacts], Optional[YumFacts]]:
    """Collect packages and their sources. Code for the other package manager is not loaded: that takes longer."""
    if uses_rpm(host):
        from . import rpm

        return rpm.rpm_packages(host), None, rpm.yum_facts(host, system.os.version_id or "")
    from . import apt

    return apt.dpkg_packages(host), apt.apt_facts(host), None
