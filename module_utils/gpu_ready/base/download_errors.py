"""Remedies for files that could not be fetched, by the message of a package manager, Python or a server."""

import re

MIRRORED = re.compile(r"^\w+://[^/]+/(?:[^ ]*/)?(?:[\w-]+\.)+(?:com|org|io|net)/")
"""The URL of a site's mirror has the vendor's host in its path: gpu_ready_mirror/HOST/PATH."""
UNFETCHED = (
    (
        r"(?i)certificate",
        "This host does not trust the server's certificate: install the package ca-certificates, or the certificate of "
        "your mirror's or proxy's own authority, and check the clock (`timedatectl`)",
    ),
    (r"\b4(?:04|10)\b", "{server} does not have it: {missing}"),
    (r"\b40[137]\b", "{server} or a proxy refuses it: check its rules, and the user and password configured for it"),
    (
        r"\b5\d\d\b +\S|: 5\d\d\b|HTTP Error 5\d\d",
        "{server} has an error of its own: see its log, or run again later",
    ),
    (
        r"(?i)resolv|name resolution|name or service not known|no address associated with hostname",
        "This host cannot resolve the name: check its DNS{settings}",
    ),
    (
        r"Hash Sum mismatch|unexpected size",
        "{server} serves another file than its own lists name: it is being updated, or a proxy keeps an old file. "
        "Run again later",
    ),
    ("", "{server} does not answer: check network{settings}"),
)
"""Remedies by pattern; the first that matches counts."""


def download_remedy(cause: str, url: str = "") -> str:
    """The remedy for a cause; gpu_ready_mirror is mentioned only where the URL is the mirror's."""
    words = next(words for pattern, words in UNFETCHED if re.search(pattern, cause))
    if MIRRORED.match(url):
        missing = "complete the mirror, or correct gpu_ready_mirror or the version"
        return words.format(server="The mirror", missing=missing, settings=", proxy and gpu_ready_mirror")
    missing = "its URL or the version is wrong, or it was removed there"
    return words.format(server="The server", missing=missing, settings=" and proxy")
