"""Open what is downloaded, by the proxy that this host's site wants.

The proxies of the environment come first. Many sites set theirs for the package manager only: where the environment
names none for a URL's scheme, that one is tried, and then no proxy at all, since a proxy that keeps packages may refuse
all else.
"""

import http.client
import re
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, NamedTuple, Optional

from .download_errors import download_remedy
from .host import Host

APT = ["apt-config", "dump", "Acquire"]
DNF = ("/etc/dnf/dnf.conf", "/etc/yum.conf")
DIRECT = ("direct", "false", "none", "_none_")
PROXY = re.compile(r"(?:(?:([A-Za-z][A-Za-z0-9+.-]*):)?/+)?(?:(.*)@)?([^/@]+)")
LOOPBACK = re.compile(r"localhost$|127\.|::1$")
SERVERS = (401, 404, 410)
"""What the server answers, not a proxy that refuses: nothing else would come without the proxy."""
FAILURES = (OSError, http.client.HTTPException, ValueError)
"""What opening raises; an answer that is an error (HTTPError) and URLError are OSErrors."""


class Proxy(NamedTuple):
    """A proxy: its URL as urllib needs it, and as messages show it, without user and password."""

    url: str
    said: str


def read_proxy(text: str, port: str = "", login: str = "") -> Optional[Proxy]:
    """Return the proxy that a text names, None where there is none.

    ``port`` is the one that counts where the text has none ("": none is added); ``login`` is a user and a password,
    quoted. What urllib would take for the end of a password is quoted: its messages then show nothing of one.
    """
    match = None if text.strip().lower() in DIRECT else PROXY.match(text.strip())
    if not match:
        return None
    kind, place = (match.group(1) or "http").lower(), match.group(3)
    if port and not re.search(r":[^\]:]*$", place):
        place += ":" + ("443" if kind == "https" else port)
    words = (match.group(2) or "").split(":", 1)
    login = login or ":".join(urllib.parse.quote(word, safe="%") for word in words)
    return Proxy("%s://%s%s" % (kind, login + "@" if login else "", place), "%s://%s" % (kind, place))


def of_environment() -> Dict[str, Proxy]:
    """Return the proxies that the environment names, by scheme."""
    named = urllib.request.getproxies()
    return _by_scheme(read_proxy(named.get("http", "")), read_proxy(named.get("https", "")))


def of_apt(text: str, name: str) -> Dict[str, Proxy]:
    """Return the proxies for the server ``name``, by scheme, from ``apt-config dump``.

    As apt has it: a word about one server before one about all; for https what is said of https, else of http.
    """
    lines = re.findall(r'(?m)^(acquire::https?::proxy\S*) "(.*)";$', text, re.IGNORECASE)
    said = {key.lower(): value for key, value in lines if value}
    found = []
    for scheme in ("http", "https"):
        keys = ["acquire::%s::proxy%s" % (kind, end) for end in ("::" + name.lower(), "") for kind in (scheme, "http")]
        found.append(read_proxy(next((said[key] for key in keys if key in said), ""), "80"))
    return _by_scheme(*found)


def of_dnf(text: str) -> Dict[str, Proxy]:
    """Return the proxies that dnf.conf or yum.conf names, by scheme."""
    main = re.search(r"(?ms)^\[main\][^\n]*$(.*?)(?=^\[|\Z)", text)
    said = dict(re.findall(r"(?m)^(proxy\w*)[ \t]*[=:][ \t]*(.*?)[ \t\r]*$", main.group(1) if main else ""))
    words = [urllib.parse.quote(said.get("proxy_" + key, ""), safe="") for key in ("username", "password")]
    one = read_proxy(said.get("proxy", ""), "1080", ":".join(words) if words[0] else "")
    return _by_scheme(one, one)


def of_package_manager(host: Host, name: str) -> Dict[str, Proxy]:
    """Return the proxies by which this host's package manager would reach the server ``name``, by scheme."""
    answer = host.run(APT)
    if answer.rc == 0:
        return of_apt(answer.out, name)
    return next((found for found in (of_dnf(host.read(path) or "") for path in DNF) if found), {})


def open_url(url: str, timeout: float, host: Optional[Host] = None) -> Any:
    """Return the open answer to ``GET url``, and raise what urlopen raises; ``timeout`` in seconds without a byte.

    Where two ways failed, the error's reason tells both causes.
    """
    own = of_environment()
    address = urllib.parse.urlsplit(url)
    name = address.hostname or ""
    if address.scheme in own or LOOPBACK.match(name) or urllib.request.proxy_bypass(address.netloc):
        return _open(url, timeout, own)
    found = of_package_manager(host or Host(), name)
    if address.scheme not in found:
        return _open(url, timeout, own)
    said = found[address.scheme].said
    try:
        return _open(url, timeout, dict(found, **own))
    except urllib.error.HTTPError as error:
        if error.code in SERVERS:
            error.msg = "%s, through the package manager's proxy %s" % (error.reason, said)
            raise
        first = "%d %s" % (error.code, error.reason)
        error.close()
    except FAILURES as error:
        first = _cause(error)
    further = "without a proxy, and %s through the package manager's, %s" % (first, said)
    try:
        return _open(url, timeout, own)
    except urllib.error.HTTPError as error:
        error.msg = "%s %s" % (error.reason, further)
        raise
    except FAILURES as error:
        raise urllib.error.URLError("%s %s" % (_cause(error), further)) from error


def unfetched(url: str, cause: str) -> str:
    """Return the sentence for a file that did not come, or not as a whole."""
    return "%s could not be fetched: %s; nothing was changed; %s" % (url, cause, download_remedy(cause))


def _by_scheme(plain: Optional[Proxy], tls: Optional[Proxy]) -> Dict[str, Proxy]:
    return {scheme: proxy for scheme, proxy in (("http", plain), ("https", tls)) if proxy}


def _open(url: str, timeout: float, proxies: Dict[str, Proxy]) -> Any:
    handler = urllib.request.ProxyHandler({scheme: proxy.url for scheme, proxy in proxies.items()})
    return urllib.request.build_opener(handler).open(url, timeout=timeout)


def _cause(error: Exception) -> str:
    return str(getattr(error, "reason", "") or error) or type(error).__name__
