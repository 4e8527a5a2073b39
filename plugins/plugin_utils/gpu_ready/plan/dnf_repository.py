"""Third-party repositories on a host with dnf or yum: its sections for one, the distribution's own ones to enable."""

from collections.abc import Sequence

from ....module_utils.gpu_ready.facts.model import Facts
from ....module_utils.gpu_ready.packaging import yum_repos
from ....module_utils.gpu_ready.packaging.locations import url_location
from .model import RepositoryRequest, ServingEntry
from .same_repository import is_same_repository


def find_entries(facts: Facts, repository: RepositoryRequest) -> list[ServingEntry]:
    """Return the sections of dnf for a repository, whatever their names."""
    release = facts.base.os.version_id or ""
    sections = [one for path, text in facts.yum.sources.items() for one in yum_repos.read_sections(path, text, release)]
    return [
        ServingEntry(one.path, one.name, *key_state(facts, one, repository))
        for one in sections
        if one.enabled and any(is_same_repository(url, repository.id, repository.url) for url in one.locations)
    ]


def key_state(facts: Facts, section: yum_repos.RepoSection, repository: RepositoryRequest) -> tuple[str, bool]:
    """Return why a section's key is not the pinned one, "" where it is, and whether dnf has that key in a file.

    A key that dnf would download is replaced by the pinned one in gpu-ready's own calls; so is one that is not checked.
    """
    if section.path == repository.list:
        return "", True
    pinned = repository.pinned_fingerprint
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


def sections_to_enable(facts: Facts, sections: Sequence[str | Sequence[str]]) -> list[str]:
    """Return the disabled sections of the distribution's own repositories to enable; of alternatives the existing one.

    A section that is in no file is left out: the host has these packages from elsewhere, or the installation fails.
    """
    known: dict[str, bool] = {}
    for text in facts.yum.sources.values():
        known.update(yum_repos.parse_sections(text))
    found = []
    for names in sections:
        alternatives = [names] if isinstance(names, str) else names
        existing = [name for name in alternatives if name in known]
        if existing and not any(known[name] for name in existing):
            found.append(existing[0])
    return found
