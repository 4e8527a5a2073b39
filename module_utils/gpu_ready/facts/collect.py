"""Collect all facts of a host. Read-only; runs as few programs as possible."""

from typing import Optional, Tuple

from ..base import manifest
from ..base.host import Host
from ..packaging.family import uses_rpm
from ..upgrade import journal
from . import base, cuda, cudnn, docker, driver, engines, health, monitoring, verified, work
from .model import AptFacts, BaseFacts, Facts, PackageFacts, YumFacts


def collect(host: Host, treat_as: Optional[str] = None) -> Facts:
    system = base.collect(host, treat_as)
    packages, apt, yum = collect_packages(host, system)
    record = verified.collect(host)
    installed = packages.installed
    toolkits = cuda.collect(host, installed)
    libraries, library_packages = cudnn.collect(host, installed, toolkits.toolkits)
    engine, runtime = docker.collect(host)
    daemons = work.find_daemons(host)
    module = driver.collect(host, system, packages, yum, record, (apt or yum or AptFacts()).sources)
    return Facts(
        base=system,
        packages=packages,
        apt=apt or AptFacts(),
        yum=yum or YumFacts(),
        driver=module,
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
    )


def collect_packages(host: Host, system: BaseFacts) -> Tuple[PackageFacts, Optional[AptFacts], Optional[YumFacts]]:
    """Collect packages and their sources. Code for the other package manager is not loaded: that takes longer."""
    if uses_rpm(host, system.os.family):
        from . import rpm

        return rpm.rpm_packages(host), None, rpm.yum_facts(host, system.os.version_id or "")
    from . import apt

    return apt.dpkg_packages(host), apt.apt_facts(host), None
