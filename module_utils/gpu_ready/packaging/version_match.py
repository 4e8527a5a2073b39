"""Requested package versions: exact ones, and prefixes that end in ``*``."""

from typing import Optional


def version_matches(requested: Optional[str], version: str) -> bool:
    """Return True if a package version fulfils a request (None: any version); the request may leave out the epoch.

    A number at the end of a prefix is complete: ``28.5*`` matches 28.5.1 and not 28.50.
    """
    if requested is None:
        return True
    forms = (version, version.partition(":")[2]) if ":" in version else (version,)
    if requested.endswith("*"):
        prefix = requested[:-1]
        suffixes = [form[len(prefix) :] for form in forms if form.startswith(prefix)]
        return any(not (prefix[-1:].isdigit() and suffix[:1].isdigit()) for suffix in suffixes)
    return requested in forms
