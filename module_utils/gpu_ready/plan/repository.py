"""What a role needs to add a third-party package repository, and whether a host has it already."""

from typing import Any, Dict, List, Optional, Union

from .. import catalog

KEYRINGS = "/etc/apt/keyrings"
LISTS = "/etc/apt/sources.list.d"
PREFERENCES = "/etc/apt/preferences.d"
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
    apt = observed.get("apt") or {}
    pin = repository["pin"]
    return (
        repository["url"] in apt.get("sources", {}).get(repository["list"], "")
        and repository["keyring"].rpartition("/")[2] in apt.get("keyrings", [])
        and (pin is None or pinned(apt, pin))
    )


def pinned(apt: Dict[str, Any], pin: Dict[str, Any]) -> bool:
    """Return whether a preferences file is there with the wanted priority (where its text is known)."""
    name = pin["path"].rpartition("/")[2]
    text = apt.get("pins", {}).get(name)
    return name in apt.get("preferences", []) and (text is None or "Pin-Priority: %s\n" % pin["priority"] in text)


def components_missing(observed: Dict[str, Any], components: Optional[Union[List[str], "tuple[str, ...]"]]) -> bool:
    """Return whether a component of the distribution's own archive is named in no source list."""
    texts = (observed.get("apt") or {}).get("sources", {}).values()
    words = {
        word
        for text in texts
        for line in text.splitlines()
        if line.startswith(("deb ", "deb\t", "Components:"))
        for word in line.split()
    }
    return bool(set(components or ()) - words)
