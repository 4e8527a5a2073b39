"""Remedies for files that could not be fetched, by the message of a package manager, Python or a server."""

import re

MIRRORED = re.compile(r"^\w+://[^/]+/(?:[^ ]*/)?(?:[\w-]+\.)+(?:com|org|io|net)/")
"""The URL of a site's mirror has the vendor's host in its path: gpu_ready_mirror/HOST/PATH."""
STATUS = re.compile(
    r"(?i)(?:^\W*|(?:status code|https? error|http code|returned error|response|http/[\d.]+|connection failed):? )"
    r"([45]\d\d)\b|\b([45]\d\d)(?= +(?:[a-z]+ )?(?:forbidden|authentication|unauthorized|not found|error|gateway))"
)
"""A status of HTTP as apt (at the beginning), dnf, yum, curl and Python print it. The number alone is not enough: curl
prints milliseconds ("after 404 ms"), and names of files have branches (410) in them."""
STATUSES = (
    (r"4(?:04|10)", "{server} does not have it: {missing}"),
    (
        r"40[137]",
        "{server} or a proxy refuses it: check its rules, and the user and password configured for it. Some servers "
        "answer 403 for a file that they do not have",
    ),
    (r"429", "{server} gets too many requests from here: run again later"),
    (r"4", "{server} or a proxy does not accept the request: see its log"),
    (r"5", "{server}, or a proxy before it, has an error of its own: see its log, or run again later"),
)
"""Remedies by status; the first that matches counts."""
NAME = re.compile(r"(?i)resolv(?:e|ing)(?: host| proxy)?:? '?([^'\s,)]{1,253})")
ADDRESS = re.compile(r"(?:[\d.]+|\[?[\da-fA-F]*:[\da-fA-F]*:[\da-fA-F:.]*\]?)(?::\w+)?$")
NO_ADDRESS = "This host cannot reach that address, for which no DNS is needed: check its network and routes{settings}"
UNFETCHED = (
    (
        # X509_V_ERR_CERT_NOT_YET_VALID and CERT_HAS_EXPIRED of OpenSSL, GnuTLS's words (apt), NSS's (curl of EL 7).
        r"(?i)certificate.{0,80}not yet (?:valid|activated)|not yet valid.{0,40}certificate",
        "The clock of this host is behind, or the certificate was made too early: compare `date -u` with another host, "
        "set the clock (`timedatectl set-ntp true`), then run again",
    ),
    (
        r"(?i)certificate.{0,80}(?:has )?expired",
        "The clock of this host is ahead, or the server's certificate has expired: compare `date -u` with another "
        "host, set the clock (`timedatectl set-ntp true`), then run again; else the server needs a new certificate",
    ),
    (
        r"(?i)certificate",
        "This host does not trust the server's certificate: install the package ca-certificates, or the certificate of "
        "your mirror's or proxy's own authority, and check the clock (`timedatectl`). If the message names the name or "
        "the dates of the certificate, these are wrong on the server",
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
    (
        r"(?i)Curl error \(23\)|failed writing|no space left|write error|read-only file system",
        "This host cannot write the file: check its free space and inodes (`df -h`, `df -i`), and that the disk is "
        "writable",
    ),
    (
        r"(?i)Curl error \(37\)|file not found|no such file|couldn't open file",
        "The file does not exist: check the path in the URL, and that its disk is mounted",
    ),
    (
        r"(?i)timed? ?out|no answer|refused|unreachable|no route|reset by peer|too slow|connection failed|"
        r"(?:could ?n[o']t|unable to|failed to|cannot) (?:initiate the )?connect|Curl error \((?:7|28|52|56)\)",
        "{server} does not answer: check network{settings}",
    ),
    (
        r"(?i)\bTLS|\bSSL|handshake",
        "{server} and this host agree on no encryption: check that https is spoken at this URL, also by a proxy before "
        "it, and in which versions",
    ),
    ("", "Check the network{settings}, and the log of the server"),
)
"""Remedies by pattern, where no status was answered; the first that matches counts."""


def find_status(cause: str) -> str:
    """Return the status of HTTP in a cause, "" where there is none."""
    match = STATUS.search(cause)
    return (match.group(1) or match.group(2)) if match else ""


def download_remedy(cause: str, url: str = "") -> str:
    """Return the remedy for a cause; gpu_ready_mirror is mentioned only where the URL is the mirror's."""
    rows, text = (STATUSES, find_status(cause)) if find_status(cause) else (UNFETCHED, cause)
    words = next(words for pattern, words in rows if re.search(pattern, text))
    name = NAME.search(cause)
    if name and ADDRESS.match(name.group(1)) and rows is UNFETCHED:
        words = NO_ADDRESS
    if MIRRORED.match(url):
        missing = "complete the mirror, or correct gpu_ready_mirror or the version"
        return words.format(server="The mirror", missing=missing, settings=", proxy and gpu_ready_mirror")
    missing = "its URL or the version is wrong, or it was removed there"
    return words.format(server="The server", missing=missing, settings=" and proxy")
