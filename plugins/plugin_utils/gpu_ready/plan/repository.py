"""Third-party package repositories: the parameters of gpu_repository, and whether a host has one already."""

from collections.abc import Sequence

from ....module_utils.gpu_ready.facts.model import Facts
from ..catalog import model as catalog
from ..catalog.model import Distribution
from ..catalog.settings import Settings
from . import apt_repository, dnf_repository
from .model import Notice, PinRequest, Refusal, RepositoryRequest, ServingEntry

KEYRINGS = "/etc/apt/keyrings"
LISTS = "/etc/apt/sources.list.d"
PREFERENCES = "/etc/apt/preferences.d"
RPM_KEYRINGS = "/etc/pki/rpm-gpg"
RPM_LISTS = "/etc/yum.repos.d"
DEFAULT_PRIORITY = 500
BEHIND = 100
"""Priority of a repository that only serves what no other source has (apt_preferences(5))."""


def mirrored(url: str, mirror: str) -> str:
    """Return an upstream URL as a site mirror serves it: https://HOST/PATH -> <mirror>/HOST/PATH."""
    return url if not mirror else mirror.rstrip("/") + "/" + url.partition("://")[2]


def parameters(identity: str, settings: Settings, behind_distribution: bool = False) -> RepositoryRequest:
    """Return a repository of the catalog, its URLs through the site's mirror if there is one.

    ``behind_distribution``: the host has the driver of its distribution, which a package of the same name from NVIDIA's
    repository must not replace, so apt prefers every other source to this one.
    """
    data = catalog.repository(identity)
    mirror = settings.gpu_ready_mirror
    own_fingerprint = settings.gpu_ready_mirror_keys.get(identity)
    name = "gpu-ready-" + identity
    url, key_url = mirrored(data["url"], mirror), mirrored(data["key_url"], mirror)
    fingerprint = own_fingerprint or data["fingerprint"]
    if data.get("kind") == "rpm":
        return RepositoryRequest(
            id=identity,
            kind="rpm",
            url=url,
            key_url=key_url,
            fingerprint=fingerprint,
            key_sha256=None if own_fingerprint else data.get("key_sha256"),
            gpgcheck=bool(data["gpgcheck"]),
            repo_gpgcheck=bool(data["repo_gpgcheck"]),
            keyring="%s/RPM-GPG-KEY-%s" % (RPM_KEYRINGS, name),
            list="%s/%s.repo" % (RPM_LISTS, name),
        )
    pin = data.get("pin")
    return RepositoryRequest(
        id=identity,
        kind="deb",
        url=url,
        suites=data["suites"],
        components=data["components"],
        key_url=key_url,
        fingerprint=fingerprint,
        keyring="%s/%s.gpg" % (KEYRINGS, name),
        list="%s/%s.sources" % (LISTS, name),
        pin=PinRequest(
            pin.get("package") or pin["packages"],
            pin["pin"],
            BEHIND if behind_distribution else pin["priority"],
            "%s/%s.pref" % (PREFERENCES, name),
        )
        if pin
        else None,
    )


def find_entry(facts: Facts, repository: RepositoryRequest) -> ServingEntry | None:
    """Return the enabled entry of the host that serves a repository, others' first; None where there is none."""
    find_entries = dnf_repository.find_entries if repository.kind == "rpm" else apt_repository.find_entries
    return min(find_entries(facts, repository), key=lambda entry: entry.path == repository.list, default=None)


def is_configured(facts: Facts, repository: RepositoryRequest) -> bool:
    """Return whether our own entry is enabled, and its keyring and its pin are on the host."""
    manager = facts.yum if repository.kind == "rpm" else facts.apt
    return repository.keyring.rpartition("/")[2] in manager.keyrings and has_pin(facts, repository)


def has_pin(facts: Facts, repository: RepositoryRequest) -> bool:
    """Return whether the host has the pin of a repository; True where it needs none."""
    if repository.pin is None:
        return True
    return apt_repository.is_pinned(facts.apt, repository.pin)


def unverified_notice(data: Distribution, what: str, package: str) -> Notice:
    """Warn of a package that the plan installs by a fact of the catalog which no public source confirms."""
    look = "apt-cache policy" if data["package_manager"] == "apt" else data["package_manager"] + " list"
    return Notice(
        "catalog_unverified",
        "no public source confirms %s for %s: its packages may not be found" % (what, data["pretty"]),
        "if they are not, choose another one; `%s %s` shows them once the repository is added" % (look, package),
    )


def missing_repositories(facts: Facts, needed: Sequence[RepositoryRequest]) -> list[RepositoryRequest]:
    """Return those repositories that the host does not have, with what is missing beside an entry of the host's own.

    :func:`source_refusals` refuses those whose entry cannot be used: a second one of the same URL would stop apt.
    """
    found = []
    for repository in needed:
        entry = find_entry(facts, repository)
        if entry is None or entry.path == repository.list:
            if entry is None or not is_configured(facts, repository):
                found.append(repository)
        elif entry.problem or not is_adopted(facts, repository, entry):
            found.append(repository._replace(adopted=entry.name))
    return found


def is_adopted(facts: Facts, repository: RepositoryRequest, entry: ServingEntry) -> bool:
    """Return whether the host has what is added to an entry of others: apt's pin, the key for our calls of dnf."""
    if repository.kind == "rpm":
        return entry.key_trusted or repository.keyring.rpartition("/")[2] in facts.yum.keyrings
    return has_pin(facts, repository)


def source_refusals(facts: Facts, repositories: Sequence[RepositoryRequest]) -> list[Refusal]:
    """Refuse repositories that the host has with another key, and those whose key is not pinned at all."""
    found = []
    for one in repositories:
        entry = find_entry(facts, one)
        if entry is not None and entry.problem:
            found.append(
                Refusal(
                    "repository_differs",
                    "%s: this host has the repository %s already, but %s. A second entry of the same URL would break "
                    "the package manager" % (entry.path, one.url, entry.problem),
                    "remove the entry from %s (gpu-ready then adds its own), or correct it, then run again"
                    % entry.path,
                )
            )
    return found + unknown_key_refusals(repositories)


def unknown_key_refusals(repositories: Sequence[RepositoryRequest]) -> list[Refusal]:
    return [
        Refusal(
            "repository_key_unknown",
            "the catalog of %s knows no fingerprint for the key of %s (%s), and gpu-ready trusts no unknown "
            "key" % (catalog.DATE, one.id, one.url),
            "set its fingerprint in gpu_ready_mirror_keys: {%s: FINGERPRINT}, or choose another source" % one.id,
        )
        for one in repositories
        if not one.fingerprint and not one.key_sha256
    ]


def outranking_warnings(facts: Facts, settings: Settings, source: str | None) -> list[Notice]:
    """Warn where a pin of others prefers NVIDIA's repository to the distribution's, which the driver comes from."""
    entry = catalog.distro(facts.base.distro)["driver_sources"].get("cuda_repo") if facts.base.distro else None
    if source != "distro" or not entry:
        return []
    nvidia = parameters(entry["repository"], settings, behind_distribution=True)
    if nvidia.pin is None or not find_entry(facts, nvidia):
        return []
    pin = apt_repository.find_earlier_pin(facts.apt, nvidia.pin)
    if pin is None or pin.priority <= DEFAULT_PRIORITY:
        return []
    return [
        Notice(
            "repository_outranks",
            "%s prefers NVIDIA's repository to the distribution's for all packages, and the driver comes from the "
            "distribution: an upgrade without its hold would replace it" % pin.path,
            "keep nvidia_driver_hold, set nvidia_driver_source: cuda_repo, or lower the priority there to %d" % BEHIND,
        )
    ]
