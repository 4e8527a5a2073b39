"""Secrets in plain values: masked where they are printed or kept, and found where they decide the mode of a file."""

import re
from typing import Any, List, Match

from .validation import HIDDEN, SECRET, SECRET_NAME, mask_json_and_urls, mask_secrets

_SECRET_KEY = "(?i)" + SECRET
_SECRET_SETTING = (
    r"(?i)(?<![\w.-])([\w.-]{0,120}%s[\"']?|[\"']?\bauth(?:orization)?[\"']?)([ \t]{0,8}[=:][ \t]{0,8})"
    r"(?:(\"{3}|'{3})(?:(?!\3)[\s\S]){0,4096}\3|\"(?:[^\"\\\n]|\\.){0,4096}\"|'[^'\n]{0,4096}'"
    r"|(?<=[ \t])[^\s\"'{\[][^\n]*|[^\s\"',;{}\[\]#&<>]+)"
) % SECRET_NAME
"""A secret as configuration files have it: ``password = x`` of dnf, ``auth = "x"`` of containerd, ``token: x``.

Where a blank is before it, it is the rest of the line."""
_SECRET_WORD = r"(?i)((?<!\S)--?[\w.-]{0,120}%s[ \t]{1,8})(?![-\s])[^\s\"']+" % SECRET_NAME
"""A secret behind an option: ``--token x``."""
_BOOT_PASSWORD = r"(?m)^([ \t]{0,64}password(?:_pbkdf2)?[ \t]{1,8}[^\s=:]+[ \t]{1,8})\S.*$"
"""GRUB's ``password root x``."""
_QUERY = r"(https?://[^\s\"'?]{1,500}\?)[^\s\"']+"


def mask_options(text: str) -> str:
    """Return Docker's options as text to print.

    Like :func:`mask_secrets`, and whole queries of URLs, which may hold a key.
    """
    return re.sub(_QUERY, r"\1" + HIDDEN, mask_secrets(text))


def mask_text(text: str) -> str:
    """Return a text of a configuration file to keep: like :func:`mask_options`, and the values of secret settings.

    What was a string in the file is one afterwards.
    """
    text = re.sub(_BOOT_PASSWORD, r"\1" + HIDDEN, mask_json_and_urls(re.sub(_QUERY, r"\1" + HIDDEN, text)))
    return re.sub(_SECRET_SETTING, _hidden_setting, re.sub(_SECRET_WORD, r"\1" + HIDDEN, text))


def _hidden_setting(match: Match[str]) -> str:
    quote = match.group()[len(match.group(1) + match.group(2)) :][:1]
    quote = quote if quote in "\"'" else ""
    return match.group(1) + match.group(2) + quote + HIDDEN + quote


def mask_texts(value: Any) -> Any:
    """Return plain values with every text in them masked as :func:`mask_text` does; names stay."""
    if isinstance(value, dict):
        return {key: mask_texts(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [mask_texts(one) for one in value]
    return mask_text(value) if isinstance(value, str) else value


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
