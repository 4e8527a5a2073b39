"""Third-party package repositories: the parameters of gpu_repository, and whether a host has one already."""

from typing import Dict, List, Sequence, Union

from ..catalog import model as catalog
from ..catalog.settings import Settings
from ..facts.model import AptFacts, Facts
from ..packaging import apt_sources, yum_repos
from .model import PinRequest, Refusal, RepositoryRequest

KEYRINGS = "/etc/apt/keyrings"
LISTS = "/etc/apt/sources.list.d"
PREFERENCES = "/etc/apt/preferences.d"
RPM_KEYRINGS = "/etc/pki/rpm-gpg"
RPM_LISTS = "/etc/yum.repos.d"
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


def is_configured(facts: Facts, repository: RepositoryRequest) -> bool:
    """Return whether our list with this URL, its keyring and its pin are on the host."""
    manager = facts.yum if repository.kind == "rpm" else facts.apt
    return (
        repository.url in manager.sources.get(repository.list, "")
        and repository.keyring.rpartition("/")[2] in manager.keyrings
        and (repository.pin is None or is_pinned(facts.apt, repository.pin))
    )


def missing_repositories(facts: Facts, needed: Sequence[RepositoryRequest]) -> List[RepositoryRequest]:
    """Return those repositories that the host does not have."""
    return [repository for repository in needed if not is_configured(facts, repository)]


def unknown_key_refusals(repositories: Sequence[RepositoryRequest]) -> List[Refusal]:
    """Refuse repositories whose key the catalog does not pin: any key would be trusted."""
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


def sections_to_enable(facts: Facts, sections: Sequence[Union[str, Sequence[str]]]) -> List[str]:
    """Return the disabled sections of the distribution's own repositories to enable; of alternatives the existing one.

    A section that is in no file is left out: the host has these packages from elsewhere, or the installation fails.
    """
    known = repository_sections(facts)
    found = []
    for names in sections:
        alternatives = [names] if isinstance(names, str) else names
        existing = [name for name in alternatives if name in known]
        if existing and not any(known[name] for name in existing):
            found.append(existing[0])
    return found


def repository_sections(facts: Facts) -> Dict[str, bool]:
    """Return whether each section of the host's .repo files is enabled."""
    found: Dict[str, bool] = {}
    for text in facts.yum.sources.values():
        found.update(yum_repos.parse_sections(text))
    return found


def is_pinned(apt: AptFacts, pin: PinRequest) -> bool:
    """Return whether a preferences file exists, with this priority where its text is known."""
    name = pin.path.rpartition("/")[2]
    text = apt.pins.get(name)
    return name in apt.preferences and (text is None or "Pin-Priority: %s\n" % pin.priority in text)


def components_missing(facts: Facts, components: Sequence[str], codename: str) -> bool:
    """Return whether no source of the distribution's own archive names one of these components.

    Third parties' components of the same name are others. Where no source is known as the distribution's own, all of
    them count: a mirror may serve it under any path, and then no component can be added either.
    """
    entries = [entry for path, text in facts.apt.sources.items() for entry in apt_sources.parse_entries(path, text)]
    enabled = [entry for entry in entries if entry.enabled]
    own = [entry for entry in enabled if apt_sources.is_distribution_entry(entry, codename)]
    offered = {name for entry in own or enabled for name in entry.components}
    return bool(set(components) - offered)
