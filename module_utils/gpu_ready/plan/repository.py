"""What a role needs to add a third-party package repository, and whether a host has it already."""

from typing import Any, Dict, List, Optional, Union

from .. import catalog

KEYRINGS = "/etc/apt/keyrings"
LISTS = "/etc/apt/sources.list.d"
PREFERENCES = "/etc/apt/preferences.d"


def mirrored(url: str, mirror: str) -> str:
    """Return an upstream URL as a site mirror serves it: https://HOST/PATH -> <mirror>/HOST/PATH."""
    return url if not mirror else mirror.rstrip("/") + "/" + url.partition("://")[2]


def params(identity: str, wanted: Dict[str, Any]) -> Dict[str, Any]:
    """Return the parameters of one repository of the catalog, its URLs through the site's mirror if there is one."""
    data = catalog.repository(identity)
    mirror = wanted.get("gpu_ready_mirror") or ""
    keys = wanted.get("gpu_ready_mirror_keys") or {}
    name = "gpu-ready-" + identity
    pin = data.get("pin")
    return {
        "id": identity,
        "url": mirrored(data["url"], mirror),
        "suites": data["suites"],
        "components": data["components"],
        "key_url": mirrored(data["key_url"], mirror),
        "fingerprint": keys.get(identity) or data["fingerprint"],
        "keyring": "%s/%s.gpg" % (KEYRINGS, name),
        "list": "%s/%s.sources" % (LISTS, name),
        "pin": dict(pin, path="%s/%s.pref" % (PREFERENCES, name)) if pin else None,
    }


def present(observed: Dict[str, Any], repository: Dict[str, Any]) -> bool:
    """Return whether our list with this URL, its keyring and its pin are on the host."""
    apt = observed.get("apt") or {}
    pin = repository["pin"]
    return (
        repository["url"] in apt.get("sources", {}).get(repository["list"], "")
        and repository["keyring"].rpartition("/")[2] in apt.get("keyrings", [])
        and (pin is None or pin["path"].rpartition("/")[2] in apt.get("preferences", []))
    )


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
