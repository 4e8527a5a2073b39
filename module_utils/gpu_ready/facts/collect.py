"""One look at a whole host: every reader is asked here, and nowhere else.

``look`` answers plain values (what JSON can hold), one key a part: ``base``, ``packages``, ``apt``, ``yum``,
``driver``, ``docker``, ``runtime``, ``cuda``, ``cudnn``, ``cudnn_packages``, ``verified``, ``upgrade``. It reads files
and starts next to no program.
"""

from typing import Any, Dict, Optional

from ..base.host import Host
from ..packaging import rpm as rpm_packages
from ..upgrade import journal as upgrade
from . import base, cuda, cudnn, docker, driver, engines, rpm, verified


def look(host: Host, treat_as: Optional[str] = None) -> Dict[str, Any]:
    """Return everything that is observed of a host."""
    observed: Dict[str, Any] = {"base": base.look(host, treat_as)}
    has_rpm = rpm_packages.uses_rpm(host, observed["base"]["os"]["family"])
    packages = rpm.packages(host) if has_rpm else base.packages(host)
    observed["packages"] = packages
    observed["apt"] = base.apt(host) if not has_rpm else dict(base.NO_APT)
    observed["yum"] = rpm.yum(host) if has_rpm else dict(rpm.NO_YUM)
    observed["driver"] = driver.look(host, observed["base"]["kernel"], packages, observed["base"]["distro"])
    if observed["base"]["nvswitches"]:
        observed["driver"]["fabricmanager"] = driver.fabricmanager(host)
    observed.update(cuda.look(host, packages["installed"]))
    observed.update(cudnn.look(host, packages["installed"], observed["cuda"]["toolkits"]))
    observed.update(docker.look(host))
    observed.update(engines.look(host, packages["installed"]))
    observed.update(verified.look(host))
    observed["upgrade"] = upgrade.read(host)
    return observed


def public(observed: Dict[str, Any]) -> Dict[str, Any]:
    """Return the look without what is large or private: all packages, texts of source lists."""
    shown = {name: part for name, part in observed.items() if name not in ("apt", "yum", "packages")}
    packages = observed["packages"]
    shown["packages"] = {"held": packages["held"], "broken": packages["broken"]}
    engine = dict(observed.get("docker") or {})
    if "daemon_json" in engine:
        # May hold proxies with passwords, registries, labels: the plan needs the text, nobody else does.
        engine["daemon_json"] = {name: value for name, value in engine["daemon_json"].items() if name != "text"}
        shown["docker"] = engine
    if "engines" in observed:
        shown["engines"] = engines.public(observed["engines"])
    return shown
