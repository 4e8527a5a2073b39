"""What the plan asks of a host with RPMs: packages, version locks, repositories, keys and module streams."""

from typing import Any, Dict

from ..base.host import Host
from ..packaging import rpm, yum_repos

NO_YUM: Dict[str, Any] = {"sources": {}, "keyrings": [], "streams": {}}


def packages(host: Host) -> Dict[str, Any]:
    """Return ``installed`` {name: version of the newest}, ``held`` and ``broken`` names: one question to rpm."""
    state = rpm.read_state(host)
    installed = {name: package.evr for name, package in rpm.newest(state.packages).items()}
    return {"installed": installed, "held": state.held, "broken": state.broken}


def yum(host: Host) -> Dict[str, Any]:
    """Return the .repo files (path: text), the names of the key files and the enabled module streams."""
    paths = [
        "%s/%s" % (yum_repos.DIRECTORY, name) for name in host.listdir(yum_repos.DIRECTORY) if name.endswith(".repo")
    ]
    texts = {path: host.read(path) for path in paths}
    return {
        "sources": {path: text for path, text in texts.items() if text is not None},
        "keyrings": host.listdir(yum_repos.KEYRINGS),
        "streams": rpm.read_streams(host),
    }
