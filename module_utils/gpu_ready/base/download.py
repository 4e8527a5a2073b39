"""The one function that downloads, through the proxy that this host's site uses.

The proxies of the environment come first. Many sites configure theirs for the package manager only: where the
environment names none for a URL's scheme, that one is tried, and then no proxy at all, since a proxy that caches
packages may refuse everything else.
"""

import contextlib
import hashlib
import http.client
import os
import re
import shutil
import signal
import socket
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Dict, Iterator, NamedTuple, Optional

from ansible.module_utils import urls

from .download_errors import download_remedy
from .errors import GpuReadyError
from .host import Host

APT = ["apt-config", "dump", "Acquire"]
DNF = ("/etc/dnf/dnf.conf", "/etc/yum.conf")
DIRECT = ("direct", "false", "none", "_none_")
PROXY = re.compile(r"(?:(?:([A-Za-z][A-Za-z0-9+.-]*):)?/+(?!/))?(?:(.*)@)?([^/@]+)")
LOOPBACK = re.compile(r"localhost$|127\.|::1$")
SERVER_ANSWERS = (401, 404, 410)
"""Statuses of the server itself, not of a proxy that refuses: another way would get the same answer."""
FAILURES = (OSError, http.client.HTTPException, ValueError, urls.ConnectionError)
"""What opening raises; HTTPError and URLError are OSErrors."""
CHUNK = 1 << 16
SUFFIX = ".part"
RESERVE = 64 << 20
"""Bytes that stay free on the disk, whatever a server sends."""


class DownloadError(GpuReadyError):
    """A file could not be downloaded, or is not the expected one. Nothing was changed."""


class DownloadLimits(NamedTuple):
    """Seconds without a byte, and seconds for one complete download."""

    silence: float = 60.0
    total: float = 3600.0


class Checksum(NamedTuple):
    """Name of a hashlib algorithm, and the digest in hexadecimal digits ("" where none is known)."""

    algorithm: str = "sha256"
    digest: str = ""


LIMITS = DownloadLimits()
UNKNOWN = Checksum()


class Proxy(NamedTuple):
    """A proxy: its URL as urllib needs it, and as messages show it, without user and password."""

    url: str
    shown: str


def download(
    url: str,
    path: str,
    limits: DownloadLimits = LIMITS,
    checksum: Checksum = UNKNOWN,
    size: int = 0,
    max_bytes: int = 0,
    unpacked: int = 0,
) -> str:
    """Download ``url`` to ``path`` and return its digest; DownloadError says why it failed.

    The file appears under its name when it is complete and has the digest and the ``size`` (where they are given).
    ``size`` or ``max_bytes`` bounds it, else the free space: RESERVE stays free, and ``unpacked`` times the size of the
    file for what is made of it. A server that announces more is not read.
    """
    temporary = path + SUFFIX
    try:
        digest = _fetch(url, temporary, limits, checksum, find_bound(url, path, size or max_bytes, unpacked))
        found = os.path.getsize(temporary)
        if size and found != size:
            raise DownloadError(
                describe_failed_download(url, "%d bytes came, %d are expected" % (found, size), DAMAGED)
            )
        if checksum.digest and digest != checksum.digest.lower():
            raise DownloadError(
                "%s has %s %s, expected %s. Nothing was changed. %s"
                % (url, checksum.algorithm, digest, checksum.digest.lower(), DAMAGED)
            )
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    return digest


DAMAGED = "Correct the checksum or repair the mirror: the file is damaged or not the intended one."


class SizeBound(NamedTuple):
    """The most bytes of a file, and the message for one that is longer."""

    most: int
    message: str

    def check(self, count: int) -> None:
        if count > self.most:
            raise DownloadError(self.message)


def find_bound(url: str, path: str, most: int, unpacked: int) -> SizeBound:
    """Return the bound of a download to ``path``; ``most``: 0 for a file of unknown size."""
    if most:
        text = (
            "%s is longer than %d bytes, so it is not the intended file. Nothing was changed. Correct its address or "
            "repair the mirror."
        )
        return SizeBound(most, text % (url, most))
    directory = os.path.dirname(os.path.dirname(path))  # the file's own directory is often a temporary one
    free = shutil.disk_usage(os.path.dirname(path)).free
    most = max(free - RESERVE, 0) // (1 + unpacked)
    text = (
        "%s has more than %d MiB, which do not fit in %s%s: %d MiB are free. Nothing was changed. Free disk space "
        "there or correct the address, then run again."
    )
    more = " with what is unpacked from them" if unpacked else ""
    return SizeBound(most, text % (url, most >> 20, directory, more, free >> 20))


def _fetch(url: str, path: str, limits: DownloadLimits, checksum: Checksum, bound: SizeBound) -> str:
    total, count = new_hash(checksum.algorithm), 0
    try:
        with _time_limit(limits.total), open(path, "wb") as handle:
            for block in _receive(url, limits.silence, bound):
                count += len(block)
                bound.check(count)
                handle.write(block)
                total.update(block)
    except _TimeLimitExceeded:
        cause = "only %d bytes came in %g s" % (count, limits.total)
        raise DownloadError(describe_failed_download(url, cause, "Use a nearer mirror (gpu_ready_mirror).")) from None
    except OSError as error:
        error.filename = error.filename or path  # a full disk names none
        raise
    return str(total.hexdigest())


def _receive(url: str, silence: float, bound: SizeBound) -> Iterator[bytes]:
    """Yield the blocks of a file. Every failure of network and server is a DownloadError."""
    count = 0
    try:
        with open_url(url, silence) as answer:
            announced = answer.headers.get("Content-Length") or ""
            bound.check(int(announced) if announced.isdigit() else 0)
            for block in iter(lambda: answer.read(CHUNK), b""):
                count += len(block)
                yield block
    except urllib.error.HTTPError as error:
        cause = "the server answered %d (%s)" % (error.code, error.reason)
        raise DownloadError(
            describe_failed_download(url, cause, download_remedy("%d %s" % (error.code, error.reason), url))
        ) from error
    except socket.timeout as error:
        raise DownloadError(describe_failed_download(url, "no answer in %g s" % silence)) from error
    except (urllib.error.URLError, urls.ConnectionError) as error:
        raise DownloadError(describe_failed_download(url, _cause(error))) from error
    except (http.client.HTTPException, OSError, ValueError) as error:
        cause = "%s after %d bytes" % (str(error) or type(error).__name__, count)
        raise DownloadError(describe_failed_download(url, cause)) from error
    if announced.isdigit() and int(announced) != count:
        raise DownloadError(
            describe_failed_download(url, "the connection ended after %d of %s bytes" % (count, announced))
        )


class _TimeLimitExceeded(Exception):
    """Raised in the midst of a download by the timer."""


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise _TimeLimitExceeded after ``seconds``, also in a read to which a server sends single bytes.

    A socket's timeout bounds one system call; http.client repeats them until it has a line or a block. Signals reach
    the main thread only, on which modules run.
    """

    def stop(_number: int, _frame: Any) -> None:
        raise _TimeLimitExceeded

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def new_hash(algorithm: str) -> Any:
    """Return an empty sum of hashlib.

    DownloadError where this host's Python refuses it, as one in FIPS mode does md5.
    """
    try:
        return hashlib.new(algorithm)
    except ValueError as error:
        raise DownloadError(
            "this host calculates no %s (%s), so the file cannot be verified. Give its sha256." % (algorithm, error)
        ) from error


def describe_failed_download(url: str, cause: str, remedy: str = "") -> str:
    """Return the message for a file that could not be downloaded completely.

    The remedy follows from the cause by default.
    """
    remedy = remedy or download_remedy(cause, url)
    return "%s could not be fetched: %s. Nothing was changed. %s." % (
        url, cause, remedy.rstrip("."),
    )  # fmt: skip


def parse_proxy(text: str, port: str = "", login: str = "") -> Optional[Proxy]:
    """Return proxy that a text names, None where there is none.

    ``port`` is added where the text has none ("": none is added); ``login`` is a user and a password,
    quoted. Characters that urllib would take for the end of a password are quoted, so its messages show none.
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


def environment_proxies() -> Dict[str, Proxy]:
    """Return proxies that the environment names, by scheme."""
    named = urllib.request.getproxies()
    return _by_scheme(parse_proxy(named.get("http", "")), parse_proxy(named.get("https", "")))


def parse_apt_proxies(text: str, name: str) -> Dict[str, Proxy]:
    """Return proxies for the server ``name``, by scheme, from ``apt-config dump``.

    As in apt: a setting for one server comes before one for all; https uses its own setting, else the one for http.
    """
    lines = re.findall(r'(?m)^(acquire::https?::proxy\S*) "(.*)";$', text, re.IGNORECASE)
    settings = {key.lower(): value for key, value in lines if value}
    found = []
    for scheme in ("http", "https"):
        keys = ["acquire::%s::proxy%s" % (kind, end) for end in ("::" + name.lower(), "") for kind in (scheme, "http")]
        found.append(parse_proxy(next((settings[key] for key in keys if key in settings), ""), "80"))
    return _by_scheme(*found)


def parse_dnf_proxies(text: str) -> Dict[str, Proxy]:
    """Return proxies that dnf.conf or yum.conf names, by scheme."""
    main = re.search(r"(?ms)^\[main\][^\n]*$(.*?)(?=^\[|\Z)", text)
    settings = dict(re.findall(r"(?m)^(proxy\w*)[ \t]*[=:][ \t]*(.*?)[ \t\r]*$", main.group(1) if main else ""))
    words = [urllib.parse.quote(settings.get("proxy_" + key, ""), safe="") for key in ("username", "password")]
    one = parse_proxy(settings.get("proxy", ""), "1080", ":".join(words) if words[0] else "")
    return _by_scheme(one, one)


def package_manager_proxies(host: Host, name: str) -> Dict[str, Proxy]:
    """Return proxies by which this host's package manager would reach the server ``name``, by scheme."""
    answer = host.run(APT)
    if answer.rc == 0:
        return parse_apt_proxies(answer.out, name)
    return next((found for found in (parse_dnf_proxies(host.read(path) or "") for path in DNF) if found), {})


def open_url(url: str, timeout: float, host: Optional[Host] = None) -> Any:
    """Open answer to ``GET url``, and raise what urlopen raises; ``timeout`` in seconds without a byte.

    Where two ways failed, the error's reason names both causes.
    """
    own = environment_proxies()
    address = urllib.parse.urlsplit(url)
    name = address.hostname or ""
    if address.scheme in own or LOOPBACK.match(name) or urllib.request.proxy_bypass(address.netloc):
        return _open(url, timeout, own)
    found = package_manager_proxies(host or Host(), name)
    if address.scheme not in found:
        return _open(url, timeout, own)
    proxy = found[address.scheme].shown
    try:
        return _open(url, timeout, dict(found, **own))
    except urllib.error.HTTPError as error:
        if error.code in SERVER_ANSWERS:
            error.msg = "%s, through the package manager's proxy %s" % (error.reason, proxy)
            raise
        first = "%d %s" % (error.code, error.reason)
        error.close()
    except FAILURES as error:
        first = _cause(error)
    further = "without a proxy, and %s through the package manager's, %s" % (first, proxy)
    try:
        return _open(url, timeout, own)
    except urllib.error.HTTPError as error:
        error.msg = "%s %s" % (error.reason, further)
        raise
    except FAILURES as error:
        raise urllib.error.URLError("%s %s" % (_cause(error), further)) from error


def _by_scheme(plain: Optional[Proxy], tls: Optional[Proxy]) -> Dict[str, Proxy]:
    return {scheme: proxy for scheme, proxy in (("http", plain), ("https", tls)) if proxy}


def _open(url: str, timeout: float, proxies: Dict[str, Proxy]) -> Any:
    with _environment({scheme + "_proxy": proxy.url for scheme, proxy in proxies.items()}):
        return urls.open_url(url, timeout=timeout, http_agent="gpu-ready", use_netrc=False, decompress=False)


@contextlib.contextmanager
def _environment(values: Dict[str, str]) -> Iterator[None]:
    """Set the variables by which open_url knows its proxies, and no others, while it opens a URL."""
    names = [one + "_proxy" for one in ("http", "https")]
    before = {name: os.environ.pop(name) for each in names for name in (each, each.upper()) if name in os.environ}
    os.environ.update(values)
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)
        os.environ.update(before)


def _cause(error: Exception) -> str:
    return str(getattr(error, "reason", "") or error) or type(error).__name__
