"""Facts of a host with RPMs: packages, version locks, repositories, keys and module streams."""

from typing import Dict, List

from ..base.host import Host
from ..packaging import dnf_filters, locks, openpgp, rpm, rpm_history, yum_repos
from .model import HidingLine, PackageEvidence, PackageFacts, Place, YumFacts

VENDOR = "%{NAME}\\t%{VENDOR}\\t%{PACKAGER}\\n"


def rpm_packages(host: Host) -> PackageFacts:
    """Collect the installed packages with one call of rpm; of several versions the newest."""
    held = locks.held_pid_files(host, locks.TRANSACTION_PID_FILES) + locks.held_locks(host, locks.RPM_LOCKS)
    in_progress = locks.describe_holder(host, held)
    state = rpm.read_state(host)
    installed = {name: package.evr for name, package in rpm.newest(state.packages).items()}
    return PackageFacts(installed, state.held, [] if in_progress else state.broken, in_progress)


def yum_facts(host: Host, release: str) -> YumFacts:
    """``release``: VERSION_ID of os-release."""
    paths = [
        "%s/%s" % (yum_repos.DIRECTORY, name) for name in host.listdir(yum_repos.DIRECTORY) if name.endswith(".repo")
    ]
    texts = {path: host.read(path) for path in paths}
    sources = {path: text for path, text in texts.items() if text is not None}
    return YumFacts(
        sources=sources,
        keyrings=host.listdir(yum_repos.KEYRINGS),
        streams=rpm.read_streams(host),
        keys=key_fingerprints(host, sources, release),
        hiding=[
            HidingLine(path, number, text.strip(), patterns, path not in dnf_filters.MAIN_FILES)
            for path, number, text, patterns in dnf_filters.read_filters(host, [])
        ],
    )


def key_fingerprints(host: Host, sources: Dict[str, str], release: str) -> Dict[str, List[str]]:
    """Collect the keys in the files that enabled sections name, by path."""
    sections = [one for path, text in sources.items() for one in yum_repos.read_sections(path, text, release)]
    paths = {path for one in sections if one.enabled for path in one.key_files}
    return {path: openpgp.list_fingerprints(host.read_bytes(path) or b"") for path in sorted(paths)}


def origin_evidence(host: Host, versions: Dict[str, str], yum: YumFacts) -> List[PackageEvidence]:
    """Return vendor and packager by one call of rpm, and the sections that dnf or yum recorded."""
    answer = host.run(["rpm", "-q", "--qf", VENDOR] + sorted(versions), timeout=60.0)
    vendors = {}
    for line in answer.out.splitlines():
        words = line.split("\t")
        if len(words) == 3:
            vendors[words[0]] = " ".join(word for word in words[1:] if word != "(none)")
    sections = rpm_history.read_sections(host, sorted(versions))
    urls = {
        name: (values.get("baseurl") or values.get("mirrorlist") or values.get("metalink") or "").partition(" ")[0]
        for text in yum.sources.values()
        for name, values in yum_repos.parse_values(text).items()
    }
    return [
        PackageEvidence(
            name,
            version,
            [Place(urls.get(sections[name], ""), section=sections[name])] if name in sections else [],
            vendors.get(name, ""),
        )
        for name, version in sorted(versions.items())
    ]
