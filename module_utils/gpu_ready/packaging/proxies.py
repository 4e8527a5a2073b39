"""Which proxies a package manager uses, and where they are set, for messages of failed downloads."""

import re
from typing import Dict, List, Mapping

from ..base.validation import mask_secrets

NONE = ("", "direct", "false", "_none_", "none")
"""Values without a proxy (apt.conf(5): DIRECT and false; dnf.conf(5): _none_ and an empty one)."""
ENVIRONMENT = ("http_proxy", "https_proxy", "all_proxy")
"""Variables that apt, libcurl and urllib read; in capitals too, but HTTP_PROXY."""


def environment_proxies(values: Mapping[str, str]) -> List[str]:
    names = [name for lower in ENVIRONMENT for name in (lower, lower.upper()) if name != "HTTP_PROXY"]
    return ["%s (environment variable %s)" % (mask_secrets(values[name]), name) for name in names if values.get(name)]


def find_apt_proxies(dump: str, files: Mapping[str, str]) -> List[str]:
    """Return the proxies in the output of `apt-config dump`, with the lines of ``files`` that set them.

    A file may write the name in full, or in nested blocks (apt.conf(5)), so the value is searched for.
    """
    found: Dict[str, str] = {}
    for key, value in re.findall(r'(?mi)^(Acquire::(?:https?|socks5h)::Proxy(?:-Auto-Detect)?\S*) "(.*)";$', dump):
        if value.lower() in NONE or value in found:
            continue
        places = [place for path, text in sorted(files.items()) for place in find_lines(path, text, value)]
        found[value] = "%s (%s, %s)" % (mask_secrets(value), key, " and ".join(places[:2]) or "apt.conf")
    return list(found.values())


def find_dnf_proxies(files: Mapping[str, str]) -> List[str]:
    """Return the proxies that dnf.conf, yum.conf and .repo files set (dnf.conf(5)), with their lines."""
    found = []
    for path, text in files.items():
        for value in re.findall(r"(?m)^proxy[ \t]*[=:][ \t]*(\S*)", text):
            if value.lower() not in NONE:
                found.append("%s (%s)" % (mask_secrets(value), find_lines(path, text, value)[0]))
    return found


def find_lines(path: str, text: str, value: str) -> List[str]:
    lines = enumerate(text.splitlines(), 1)
    return [
        "%s line %d" % (path, number)
        for number, line in lines
        if value in line and not line.lstrip().startswith(("#", "//"))
    ]
