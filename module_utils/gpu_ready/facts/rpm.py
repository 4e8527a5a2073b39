"""Facts of a host with RPMs: packages, version locks, repositories, keys and module streams."""

from ..base.host import Host
from ..packaging import locks, rpm, yum_repos
from .model import PackageFacts, YumFacts


def rpm_packages(host: Host) -> PackageFacts:
    """Collect the installed packages with one call of rpm; of several versions the newest."""
    held = locks.held_pid_files(host, locks.TRANSACTION_PID_FILES) + locks.held_locks(host, locks.RPM_LOCKS)
    in_progress = locks.describe_holder(host, held)
    state = rpm.read_state(host)
    installed = {name: package.evr for name, package in rpm.newest(state.packages).items()}
    return PackageFacts(installed, state.held, [] if in_progress else state.broken, in_progress)


def yum_facts(host: Host) -> YumFacts:
    paths = [
        "%s/%s" % (yum_repos.DIRECTORY, name) for name in host.listdir(yum_repos.DIRECTORY) if name.endswith(".repo")
    ]
    texts = {path: host.read(path) for path in paths}
    return YumFacts(
        sources={path: text for path, text in texts.items() if text is not None},
        keyrings=host.listdir(yum_repos.KEYRINGS),
        streams=rpm.read_streams(host),
    )
