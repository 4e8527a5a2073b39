"""Which repository a URL is: the comparison of what a host has with what the catalog names."""

import re
from typing import List

from ..catalog import model as catalog


def url_location(url: str) -> str:
    """Return host and path of a URL.

    What makes two URLs the same repository, whatever their scheme, user or slashes.
    """
    rest = url.partition("://")[2] or url
    host, _, path = rest.partition("/")
    host = re.sub(r":(80|443)$", "", host.rpartition("@")[2]).lower()
    return "/".join([host] + [part for part in path.split("/") if part])


def split_list(text: str) -> List[str]:
    """Return the words of a list with spaces or commas, as both package managers write them."""
    return [one for one in re.split(r"[\s,]+", text) if one]


def is_same_repository(location: str, identity: str, url: str) -> bool:
    """Return True if a location is a repository's URL (perhaps a mirror's) or one of the vendor's mirror lists.

    Mirror lists have more parameters than the catalog names (``also``).
    """
    also = catalog.repository(identity).get("also") or []
    return location == url_location(url) or any(location.startswith(url_location(one)) for one in also)


def is_catalog_repository(location: str) -> bool:
    """Return True if a location belongs to a repository of the catalog, at its vendor or below the URL of a mirror."""
    return any(
        location == vendor or location.endswith("/" + vendor) or is_same_repository(location, identity, data["url"])
        for identity, data in catalog.repositories().items()
        for vendor in [url_location(data["url"])]
    )
