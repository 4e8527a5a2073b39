"""URLs of repositories, in the form in which two of the same repository are equal."""

import re
from typing import List


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
