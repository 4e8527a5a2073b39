"""Checks of texts that become an argument, a line of a file or a URL; and masks for secrets.

Programs get their arguments as lists, never through a shell. What is refused here has a meaning for the program itself,
or for the file that it is written to: an option in place of a name, a second line.
"""

import re
from typing import Any, List

LONGEST = 4096
"""Most characters of one value: no path and no URL of a package server is longer (PATH_MAX)."""
HIDDEN = "***"
_CONTROL = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
USERINFO = (
    r"(\b[A-Za-z][A-Za-z0-9+.-]*://)(?:[^/\s\"'<>]*|[^/\s\"'<>:@]*:(?!\d*[/'])[^\s\"<>]{0,256})@"
    r"|(?<![\w@/.:%+-])[\w.%+-]+:(?!//)[^\s\"<>]{1,256}@(?=[\w.-]+:\d{1,5}(?!\w))"
)
"""User and password before a host; without a scheme, before a host with a port. A port is no password."""
_URL = r"https?://[A-Za-z0-9.\[\]:-]+(?:[/?][A-Za-z0-9._~:/?\[\]@!$&()*+,;=%-]*)?"
_BASE = r"https?://[A-Za-z0-9.\[\]:-]+(?:/[A-Za-z0-9._~+%/-]*)?"
SECRET = r"(?:passw(?:or)?d|passphrase|secret|token|credential|api[-_]?key)"
_SECRET_OPTION = r"(?i)passw|passphrase|\bpass\b|secret|token|credential|(?:api|access|private)[-_]?key"
_LOGIN = r"(?i)\b(authorization:\s*|bearer |basic )(?:bearer |basic )?\S+"
_SECRET_PAIR = r'(?i)("[^"\n]*%s[^"\n]*"\s*:\s*)"(?:[^"\\\n]|\\.)*"' % SECRET


def text_fault(text: str) -> str:
    """What makes a text unfit for an argument or a line of a file, "" where nothing does."""
    if len(text) > LONGEST:
        return "must have at most %d characters" % LONGEST
    if _CONTROL.search(text):
        return "must be one line without control characters"
    return ""


def name_fault(text: str) -> str:
    """What makes a text unfit as a name that a program is given: of an image, for instance."""
    return text_fault(text) or ("must not begin with a dash, which makes it an option" if text.startswith("-") else "")


def location_fault(text: str) -> str:
    """What makes a text unfit as an http(s) URL or a path on the control node, "" where nothing does."""
    fault = name_fault(text)
    if fault or "://" not in text:
        return fault
    return _url_fault(text, _URL, "must be a http or https URL of plain characters, or a path")


def base_fault(text: str) -> str:
    """What makes a text unfit as the base URL of a mirror: it becomes a part of files, commands and URLs."""
    words = "must be a base URL such as http://mirror.site/path, of letters, digits and ._~+%/-"
    return text_fault(text) or _url_fault(text, _BASE, words)


def fingerprint_fault(text: Any) -> str:
    """What makes a value unfit as the fingerprint of a key, "" where nothing does."""
    digits = "".join(text.split(" ")) if isinstance(text, str) else ""
    return (
        ""
        if re.fullmatch("[0-9A-Fa-f]{40}|[0-9A-Fa-f]{64}", digits)
        else "must be a fingerprint: 40 or 64 hexadecimal digits"
    )


def _url_fault(text: str, form: str, words: str) -> str:
    if re.search(USERINFO, text):
        return (
            "must name no user and no password: it is printed, and written to files that everyone may read; let the "
            "server know the hosts by their addresses, or give apt and dnf their credentials on the host "
            "(/etc/apt/auth.conf.d, username= in /etc/dnf/dnf.conf)"
        )
    return "" if re.fullmatch(form, text) else words


def mask_secrets(text: str) -> str:
    """Replace users and passwords of URLs, and values of secret keys in JSON."""
    return re.sub(
        _SECRET_PAIR, r'\1"%s"' % HIDDEN, re.sub(USERINFO, lambda match: (match.group(1) or "") + HIDDEN + "@", text)
    )


def mask_command(words: List[str]) -> List[str]:
    """Replace values of options that look secret, logins, and passwords of URLs."""
    found = []
    hide = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hide and not word.startswith("-"):
            word = HIDDEN
        elif equals and re.search(_SECRET_OPTION, word.rpartition("=")[0]):
            word = name + equals + HIDDEN
        hide = word.startswith("-") and not equals and bool(re.search(_SECRET_OPTION, word))
        found.append(re.sub(_LOGIN, r"\1%s" % HIDDEN, mask_secrets(word)))
    return found


def format_value(value: Any, most: int = 120) -> str:
    """A wrong value for an error: on one line, of limited length, without passwords."""
    text = mask_secrets(repr(value))
    return text if len(text) <= most else text[:most] + "..."
