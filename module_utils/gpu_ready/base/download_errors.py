"""Remedies for files that could not be fetched, by the message of a package manager, Python or a server."""

import re

MISSING = "The mirror does not have it: complete the mirror, or correct gpu_ready_mirror or the version"
UNFETCHED = (
    (
        r"(?i)certificate",
        "This host does not trust the server's certificate: install the package ca-certificates, or the certificate of "
        "your mirror's or proxy's own authority, and check the clock (`timedatectl`)",
    ),
    (r"\b4(?:04|10)\b", MISSING),
    (r"\b40[137]\b", "The mirror or a proxy refuses it: check its rules, and the user and password configured for it"),
    (
        r"\b5\d\d\b +\S|: 5\d\d\b|HTTP Error 5\d\d",
        "The mirror has an error of its own: see its log, or run again later",
    ),
    (
        r"(?i)resolv|name resolution|name or service not known|no address associated with hostname",
        "This host cannot resolve the name: check its DNS, proxy and gpu_ready_mirror",
    ),
    (
        r"Hash Sum mismatch|unexpected size",
        "The mirror serves another file than its own lists name: it is being updated, or a proxy keeps an old file. "
        "Run again later",
    ),
)
"""Remedies by pattern; the first that matches counts."""


def download_remedy(cause: str) -> str:
    found = (words for pattern, words in UNFETCHED if re.search(pattern, cause))
    return next(found, "The mirror does not answer: check network, proxy and gpu_ready_mirror")
