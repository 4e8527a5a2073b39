"""Third-party package repositories: the parameters of gpu_repository, and whether a host has one already."""

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

from ..catalog import model as catalog
from ..catalog.model import Distribution
from ..catalog.settings import Settings
from ..facts.model import AptFacts, Facts
from ..packaging import apt_entries, apt_sources, yum_repos
from ..packaging.locations import is_same_repository, url_location
from .model import Notice, PinRequest, Refusal, RepositoryRequest

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


class ForeignPin(NamedTuple):
    """A pin of others, by the path of its file."""

    path: str
    priority: int


class ServingEntry(NamedTuple):
    """An enabled entry of the host's own sources that serves a repository. ``name``: a section of dnf, or the path.

    ``problem``: why it cannot be used, "" where it can. ``key_trusted``: dnf takes the pinned key from a file.
    """

    path: str
    name: str
    problem: str = ""
    key_trusted: bool = True


def find_entry(facts: Facts, repository: RepositoryRequest) -> Optional[ServingEntry]:
    """Return the enabled entry of the host that serves a repository, others' first; None where there is none."""
    found = find_section(facts, repository) if repository.kind == "rpm" else find_apt_entry(facts, repository)
    return min(found, key=lambda entry: entry.path == repository.list, default=None)


def find_apt_entry(facts: Facts, repository: RepositoryRequest) -> List[ServingEntry]:
    """Return the entries of apt for a repository by the files that have one; a problem counts for all of a file."""
    suites = split_words(repository.suites)
    entries = [
        entry
        for entry in apt_entries.parse_sources(facts.apt.sources)
        if is_same_repository(entry.location, repository.id, repository.url)
        and ("/" if entry.suite == "./" else entry.suite) in suites
    ]
    binary = [entry for entry in entries if entry.serves_packages]
    offered = {(entry.suite, name) for entry in binary for name in entry.components or [""]}
    missing = [
        name
        for suite in suites
        for name in split_words(repository.components) or [""]
        if not {(suite, name), ("./", name)} & offered
    ]
    problem = "it does not offer %s" % (" ".join(filter(None, missing)) or "packages") if missing else ""
    return [
        ServingEntry(entry.path, entry.path, problem or signer_problem(facts.apt, entry, repository))
        for entry in entries
    ]


def signer_problem(apt: AptFacts, entry: apt_entries.AptEntry, repository: RepositoryRequest) -> str:
    """Return why the signatures of an entry are not those of the pinned key, "" where they are."""
    if entry.path == repository.list:
        return ""  # written with the pinned key; is_configured checks the keyring
    if entry.trusted:
        return "apt checks no signature of it (its option trusted)"
    signer = "its own key" if apt_entries.INLINE_KEY in entry.signed_by else entry.signed_by or "apt's common keyrings"
    keys = apt.signers.get(entry.signed_by, [])
    if pinned_fingerprint(repository) in keys:
        return ""
    return "it is signed by %s (%s), which is not the pinned key %s" % (
        signer,
        ", ".join(keys) or "no key can be read there",
        pinned_fingerprint(repository),
    )


def find_section(facts: Facts, repository: RepositoryRequest) -> List[ServingEntry]:
    """Return the sections of dnf for a repository, whatever their names."""
    release = facts.base.os.version_id or ""
    sections = [one for path, text in facts.yum.sources.items() for one in yum_repos.read_sections(path, text, release)]
    return [
        ServingEntry(one.path, one.name, *key_state(facts, one, repository))
        for one in sections
        if one.enabled and any(is_same_repository(url, repository.id, repository.url) for url in one.locations)
    ]


def key_state(facts: Facts, section: yum_repos.RepoSection, repository: RepositoryRequest) -> Tuple[str, bool]:
    """Return why a section's key is not the pinned one, "" where it is, and whether dnf has that key in a file.

    A key that dnf would download is replaced by the pinned one in gpu-ready's own calls; so is one that is not checked.
    """
    if section.path == repository.list:
        return "", True
    pinned = pinned_fingerprint(repository)
    known = [key for path in section.key_files for key in facts.yum.keys.get(path, [])]
    checked = section.gpgcheck is repository.gpgcheck or section.gpgcheck is None
    checked = checked and bool(section.repo_gpgcheck) == repository.repo_gpgcheck
    if pinned and pinned in known:
        return "", checked
    remote = [key for key in section.keys if key.startswith(("http://", "https://"))]
    if section.key_files or any(url_location(key) != url_location(repository.key_url) for key in remote):
        named = ", ".join(section.keys)
        return "its key is %s (%s), which is not the pinned key %s" % (
            named,
            ", ".join(known) or "not readable there",
            pinned or repository.key_url,
        ), False
    return "", False


def pinned_fingerprint(repository: RepositoryRequest) -> str:
    return "".join((repository.fingerprint or "").split()).upper()


def split_words(value: Union[str, Sequence[str]]) -> List[str]:
    return value.split() if isinstance(value, str) else list(value)


def is_configured(facts: Facts, repository: RepositoryRequest) -> bool:
    """Return whether our own entry is enabled, and its keyring and its pin are on the host."""
    manager = facts.yum if repository.kind == "rpm" else facts.apt
    return repository.keyring.rpartition("/")[2] in manager.keyrings and (
        repository.pin is None or is_pinned(facts.apt, repository.pin)
    )


def unverified_notice(data: Distribution, what: str, package: str) -> Notice:
    """Warn of a package that the plan installs by a fact of the catalog which no public source confirms."""
    look = "apt-cache policy" if data["package_manager"] == "apt" else data["package_manager"] + " list"
    return Notice(
        "catalog_unverified",
        "no public source confirms %s for %s: its packages may not be found" % (what, data["pretty"]),
        "if they are not, choose another one; `%s %s` shows them once the repository is added" % (look, package),
    )


def missing_repositories(facts: Facts, needed: Sequence[RepositoryRequest]) -> List[RepositoryRequest]:
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
    return repository.pin is None or is_pinned(facts.apt, repository.pin)


def source_refusals(facts: Facts, repositories: Sequence[RepositoryRequest]) -> List[Refusal]:
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


def contradiction_refusals(facts: Facts) -> List[Refusal]:
    """Refuse a host whose apt reads no source because two entries contradict each other."""
    pair = apt_entries.find_contradiction(apt_entries.parse_sources(facts.apt.sources))
    if pair is None:
        return []
    own = [entry.path for entry in pair if entry.path.startswith(LISTS + "/gpu-ready-")]
    what = "remove %s" % own[0] if own else "remove one of the two entries"
    return [
        Refusal(
            "package_sources_conflict",
            apt_entries.describe_contradiction(pair),
            what + ", check with `apt-get update`, then run again",
        )
    ]


def unknown_key_refusals(repositories: Sequence[RepositoryRequest]) -> List[Refusal]:
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
    found: Dict[str, bool] = {}
    for text in facts.yum.sources.values():
        found.update(yum_repos.parse_sections(text))
    return found


def is_pinned(apt: AptFacts, pin: PinRequest) -> bool:
    """Return whether a preferences file exists, with this priority where its text is known.

    A pin of others for the same packages counts where its file is read first: apt takes the first that matches.
    """
    own = pin.path.rpartition("/")[2]
    text = apt.pins.get(own)
    if own in apt.preferences and (text is None or "Pin-Priority: %s\n" % pin.priority in text):
        return True
    return bool(find_earlier_pin(apt, pin))


def find_earlier_pin(apt: AptFacts, pin: PinRequest) -> Optional[ForeignPin]:
    """Return the pin of others for the same packages in a file that apt reads before ours; None where there is none."""
    own = pin.path.rpartition("/")[2]
    for name in sorted(apt.preferences):
        read = name.rpartition(".")[1:] in (("", name), (".", "pref"))  # as apt_preferences(5) says
        for part in re.split(r"\n[ \t]*\n", apt.pins.get(name) or "") if read and name < own else []:
            fields = apt_entries.parse_fields(part)
            same = split_words(fields.get("package", "")) == split_words(pin.package)
            priority = fields.get("pin-priority", "")
            if same and split_words(fields.get("pin", "")) == split_words(pin.pin):
                return ForeignPin("%s/%s" % (PREFERENCES, name), int(priority) if re.match(r"-?\d+$", priority) else 0)
    return None


def outranking_warnings(facts: Facts, settings: Settings, source: Optional[str]) -> List[Notice]:
    """Warn where a pin of others prefers NVIDIA's repository to the distribution's, which the driver comes from."""
    entry = catalog.distro(facts.base.distro)["driver_sources"].get("cuda_repo") if facts.base.distro else None
    if source != "distro" or not entry:
        return []
    nvidia = parameters(entry["repository"], settings, behind_distribution=True)
    pin = find_earlier_pin(facts.apt, nvidia.pin) if nvidia.pin and find_entry(facts, nvidia) else None
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


def components_missing(facts: Facts, components: Sequence[str], codename: str) -> bool:
    """Return whether no source of the distribution's own archive names one of these components.

    Third parties' components of the same name are others. Where no source is known as the distribution's own, all of
    them count: a mirror may serve it under any path, and then no component can be added either.
    """
    entries = [entry for path, text in facts.apt.sources.items() for entry in apt_sources.parse_entries(path, text)]
    enabled = [entry for entry in entries if entry.enabled]
    own = apt_sources.distribution_entries(enabled, codename)
    offered = {name for entry in own or enabled for name in entry.components}
    return bool(set(components) - offered)
