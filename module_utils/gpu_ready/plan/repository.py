"""What a role needs to add a third-party package repository, and whether a host has it already."""

from typing import Any, Dict, List, Optional

from ..catalog import model as catalog
from ..packaging import apt_sources, yum_repos
from .model import Refusal

KEYRINGS = "/etc/apt/keyrings"
LISTS = "/etc/apt/sources.list.d"
PREFERENCES = "/etc/apt/preferences.d"
RPM_KEYRINGS = "/etc/pki/rpm-gpg"
RPM_LISTS = "/etc/yum.repos.d"
BEHIND = 100
"""Priority of a repository that only gives what no other source has (apt_preferences(5))."""


def mirrored(url: str, mirror: str) -> str:
    """Return an upstream URL as a site mirror serves it: https://HOST/PATH -> <mirror>/HOST/PATH."""
    return url if not mirror else mirror.rstrip("/") + "/" + url.partition("://")[2]


def params(identity: str, wanted: Dict[str, Any], choice: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
    """Return the parameters of one repository of the catalog, its URLs through the site's mirror if there is one.

    ``choice`` is what earlier rooms chose: a driver of the distribution must not be replaced by one of the same package
    name from NVIDIA's repository, so that repository then stands behind the distribution's.
    """
    data = catalog.repository(identity)
    mirror = wanted.get("gpu_ready_mirror") or ""
    keys = wanted.get("gpu_ready_mirror_keys") or {}
    name = "gpu-ready-" + identity
    if data.get("kind") == "rpm":
        return {
            "id": identity,
            "kind": "rpm",
            "url": mirrored(data["url"], mirror),
            "key_url": mirrored(data["key_url"], mirror),
            "fingerprint": keys.get(identity) or data["fingerprint"],
            "key_sha256": None if keys.get(identity) else data.get("key_sha256"),
            "gpgcheck": bool(data["gpgcheck"]),
            "repo_gpgcheck": bool(data["repo_gpgcheck"]),
            "keyring": "%s/RPM-GPG-KEY-%s" % (RPM_KEYRINGS, name),
            "list": "%s/%s.repo" % (RPM_LISTS, name),
        }
    pin = data.get("pin")
    if pin:
        behind = ((choice or {}).get("driver") or {}).get("source") == "distro"
        pin = {
            "package": pin.get("package") or pin["packages"],
            "pin": pin["pin"],
            "priority": BEHIND if behind else pin["priority"],
            "path": "%s/%s.pref" % (PREFERENCES, name),
        }
    return {
        "id": identity,
        "url": mirrored(data["url"], mirror),
        "suites": data["suites"],
        "components": data["components"],
        "key_url": mirrored(data["key_url"], mirror),
        "fingerprint": keys.get(identity) or data["fingerprint"],
        "keyring": "%s/%s.gpg" % (KEYRINGS, name),
        "list": "%s/%s.sources" % (LISTS, name),
        "pin": pin or None,
    }


def present(observed: Dict[str, Any], repository: Dict[str, Any]) -> bool:
    """Return whether our list with this URL, its keyring and its pin are on the host."""
    pin = repository.get("pin")
    there = observed.get("yum" if repository.get("kind") == "rpm" else "apt") or {}
    return (
        repository["url"] in there.get("sources", {}).get(repository["list"], "")
        and repository["keyring"].rpartition("/")[2] in there.get("keyrings", [])
        and (pin is None or pinned(there, pin))
    )


def lacking(observed: Dict[str, Any], wanted: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Return those repositories that a host lacks."""
    return [repository for repository in wanted if not present(observed, repository)]


def keyless(repositories: List[Dict[str, Any]]) -> List[Refusal]:
    """Refuse repositories whose key the catalog cannot pin: an unknown key would be trusted blindly."""
    return [
        Refusal(
            "repository_key_unknown",
            "the catalog of %s knows no fingerprint for the key of %s (%s), and nothing is installed on the word "
            "of an unknown key" % (catalog.DATE, one["id"], one["url"]),
            "give its fingerprint as gpu_ready_mirror_keys: {%s: FINGERPRINT}, or choose another source" % one["id"],
        )
        for one in repositories
        if not one["fingerprint"] and not one.get("key_sha256")
    ]


def to_enable(observed: Dict[str, Any], wanted: Optional[List[Any]]) -> List[str]:
    """Return the sections of the distribution's own repositories to switch on; of alternatives the one that is there.

    A section that is in no file is left out: the host takes these packages from elsewhere, or the installation tells.
    """
    known = sections(observed)
    found = []
    for names in wanted or []:
        alternatives = names if isinstance(names, (list, tuple)) else [names]
        there = [name for name in alternatives if name in known]
        if there and not any(known[name] for name in there):
            found.append(there[0])
    return found


def sections(observed: Dict[str, Any]) -> Dict[str, bool]:
    """Return the repository sections of a host's .repo files and whether they are switched on."""
    found: Dict[str, bool] = {}
    for text in ((observed.get("yum") or {}).get("sources") or {}).values():
        found.update(yum_repos.parse_sections(text))
    return found


def pinned(apt: Dict[str, Any], pin: Dict[str, Any]) -> bool:
    """Return whether a preferences file is there with the wanted priority (where its text is known)."""
    name = pin["path"].rpartition("/")[2]
    text = apt.get("pins", {}).get(name)
    return name in apt.get("preferences", []) and (text is None or "Pin-Priority: %s\n" % pin["priority"] in text)


def components_missing(observed: Dict[str, Any], components: Optional[List[str]], codename: str) -> bool:
    """Return whether no source of the distribution's own archive names one of these components.

    What third parties offer under such a name is something else. Where no source is known as the distribution's own,
    all of them count: a mirror may serve it under any path, and then nothing can be added to it either.
    """
    texts = ((observed.get("apt") or {}).get("sources") or {}).items()
    enabled = [entry for path, text in texts for entry in apt_sources.parse_entries(path, text) if entry.enabled]
    own = [entry for entry in enabled if apt_sources.is_distribution_entry(entry, codename)]
    offered = {name for entry in own or enabled for name in entry.components}
    return bool(set(components or ()) - offered)
