"""Checks of texts that become an argument, a line of a file or a URL; and masks for secrets.

Programs get their arguments as lists, never through a shell. What is refused here has a meaning for the program itself,
or for the file that it is written to: an option in place of a name, a second line.
"""

import re
from typing import Any, List, Tuple

LONGEST = 4096
"""Most characters of one value: no path and no URL of a package server is longer (PATH_MAX)."""
HIDDEN = "***"
_CONTROL = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029]")
USERINFO = (
    r"(\b[A-Za-z][A-Za-z0-9+.-]{0,30}://)(?:(?:[^/\s\"'<>]*|[^/\s\"'<>:@]*:(?!\d*[/'])[^\s\"<>]{0,256})@"
    r"|[^/\s\"'<>:@]{1,64}:(?!\d{1,5}[\s/'\"])[^\s\"'<>/@][^\n\"'<>/@]{0,64}@(?=[\w\[]))"
    r"|(?<![\w@/.:%+-])[\w.%+-]+:(?!//)[^\s\"<>]{1,256}@(?=[\w.-]+:\d{1,5}(?!\w))"
    r"|(?<=[=\"'])[\w.%+-]+:(?!//)[^\s\"'<>/@]{1,256}@(?!sha\d{3}:)(?=[\w\[])"
)
"""User and password before a host, also with a blank in the password. Without a scheme, they stand before a host with a
port, or behind ``=`` or a quote (``proxy=user:password@host``). A port is no password, and a digest no host."""
_URL = r"https?://[A-Za-z0-9.\[\]:-]+(?:[/?][A-Za-z0-9._~:/?\[\]@!$&()*+,;=%-]*)?"
_BASE = r"https?://[A-Za-z0-9.\[\]:-]+(?:/[A-Za-z0-9._~+%/-]*)?"
SECRET = r"(?:passw(?:or)?d|passphrase|secret|token|credential|api[-_]?key)"
_SECRET_OPTION = r"(?i)passw|passphrase|\bpass\b|secret|token|credential|(?:api|access|private)[-_]?key"
SECRET_NAME = r"(?:%s|signature|\bsig|(?:access|account|private|shared)[-_]?key)(?:(?<!token)s)?" % SECRET
"""The end of a name that makes it one of a secret: ``libsecret-1-0=0.20`` is a package."""
_PAIR = r"(?i)(?<![\w.-])([\w.-]{0,120}%s=)(?:\"[^\"\n]{1,256}\"|'[^'\n]{1,256}'|[^\s\"'&<>]+)" % SECRET_NAME
"""A secret as ``NAME=value``."""
_SHORT = (
    ("-p", False, "mysql mysqladmin mysqldump mysqlimport mysqlcheck mysqlsh mariadb mariadb-admin mariadb-dump"),
    ("-p", True, "sshpass mongo mongosh mongodump mongorestore"),
    ("-a", True, "redis-cli"),
    ("-u", True, "curl"),
    ("-w", True, "ldapsearch ldapmodify ldapadd ldapdelete ldapwhoami"),
)
"""Short options with a password, whether it may be the next word, and the programs for which they mean that; for others
-p is a port or makes directories. mysql(1), sshpass(1), mongosh, redis-cli, curl(1), ldapsearch(1)."""
_LOGINS = "docker podman nerdctl buildah skopeo helm oras crane"
"""Programs whose command `login` has a password behind -p (docker-login(1))."""
_LOGIN = r"(?i)\b(authorization:\s*|bearer |basic )(?:bearer |basic )?\S+"
_SECRET_PAIR = r'(?i)("(?=[^"\n]*%s)[^"\n]*"\s{0,8}:\s{0,8})"(?:[^"\\\n]|\\.)*"' % SECRET


def text_fault(text: str) -> str:
    """Return what makes a text unfit for an argument or a line of a file, "" where nothing does."""
    if len(text) > LONGEST:
        return "must have at most %d characters" % LONGEST
    if _CONTROL.search(text):
        return "must be one line without control characters"
    return ""


def name_fault(text: str) -> str:
    """Return what makes a text unfit as a name that a program is given: of an image, for instance."""
    return text_fault(text) or ("must not begin with a dash, which makes it an option" if text.startswith("-") else "")


def location_fault(text: str) -> str:
    """Return what makes a text unfit as an http(s) URL or a path on the control node, "" where nothing does."""
    fault = name_fault(text)
    if fault or "://" not in text:
        return fault
    return _url_fault(text, _URL, "must be a http or https URL of plain characters, or a path")


def base_fault(text: str) -> str:
    """Return what makes a text unfit as the base URL of a mirror: it becomes a part of files, commands and URLs."""
    words = "must be a base URL such as http://mirror.site/path, of letters, digits and ._~+%/-"
    return text_fault(text) or _url_fault(text, _BASE, words)


def fingerprint_fault(text: Any) -> str:
    """Return what makes a value unfit as the fingerprint of a key, "" where nothing does."""
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
    """Replace users and passwords of URLs, values of secret keys in JSON, and of secret names before ``=``."""
    return re.sub(_PAIR, r"\1" + HIDDEN, mask_json_and_urls(text))


def mask_json_and_urls(text: str) -> str:
    """Replace users and passwords of URLs, and values of secret keys in JSON: strings of JSON stay strings."""
    text = re.sub(USERINFO, lambda match: (match.group(1) or "") + HIDDEN + "@", text)
    return re.sub(_SECRET_PAIR, r'\1"%s"' % HIDDEN, text)


def mask_command(words: List[str]) -> List[str]:
    """Replace values of options that look secret, logins, and passwords of URLs; also in a command that is one word."""
    found = []
    hide = False
    first, short, separate = _short_option(words)
    for place, word in enumerate(words):
        name, equals, _ = word.partition("=")
        is_short = place > first and bool(short) and word.startswith(short) and not word.startswith("--")
        if hide and not word.startswith("-"):
            word = HIDDEN
        elif is_short and word != short:
            word = short + HIDDEN
        elif equals and re.search(_SECRET_OPTION, word.rpartition("=")[0]):
            word = name + equals + HIDDEN
        elif " " in word and _short_option(word.split(" "))[1]:
            word = " ".join(mask_command(word.split(" ")))
        hide = (is_short and separate and word == short) or (
            word.startswith("-") and not equals and bool(re.search(_SECRET_OPTION, word))
        )
        found.append(re.sub(_LOGIN, r"\1%s" % HIDDEN, mask_secrets(word)))
    return found


def _short_option(words: List[str]) -> Tuple[int, str, bool]:
    """Return the position of a program of :data:`_SHORT`, its option, and whether the next word may be its value."""
    names = [word.rpartition("/")[2] for word in words]
    for place, name in enumerate(names):
        if name in _LOGINS.split() and "login" in names[place + 1 : place + 4]:
            return names.index("login", place), "-p", True
        for option, separate, programs in _SHORT:
            if name in programs.split():
                return place, option, separate
    return 0, "", False


def format_value(value: Any, most: int = 120) -> str:
    """Return a wrong value for an error: on one line, of limited length, without passwords."""
    text = mask_secrets(repr(value))
    return text if len(text) <= most else text[:most] + "..."
