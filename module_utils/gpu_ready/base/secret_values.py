"""Secrets in plain values: masked where they are printed or kept, and found where they decide the mode of a file."""

import re
from typing import Any, List

from .validation import HIDDEN, SECRET, mask_secrets

_SECRET_KEY = "(?i)" + SECRET
_QUERY = r"(https?://[^\s\"'?]{1,500}\?)[^\s\"']+"


def mask_options(text: str) -> str:
    """Return Docker's options as text to print.

    Like :func:`mask_secrets`, and whole queries of URLs, which may hold a key.
    """
    return re.sub(_QUERY, r"\1" + HIDDEN, mask_secrets(text))


def mask_values(value: Any) -> Any:
    """Return plain values to print or keep: like :func:`mask_secrets`, and whole values under secret keys."""
    if isinstance(value, dict):
        return {
            key: HIDDEN
            if isinstance(key, str) and re.search(_SECRET_KEY, key) and isinstance(one, str)
            else mask_values(one)
            for key, one in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [mask_values(one) for one in value]
    return mask_secrets(value) if isinstance(value, str) else value


def find_secrets(value: Any) -> List[str]:
    """Return keys of plain values that hold a secret, or a URL with a password, as people name them."""
    found: List[str] = []
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if _is_list(value) else []:
        if isinstance(one, str) and (
            mask_secrets(one) != one or (isinstance(key, str) and one and re.search(_SECRET_KEY, key))
        ):
            found.append(str(key))
        found += find_secrets(one)
    return found


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))
