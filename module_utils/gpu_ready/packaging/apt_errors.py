"""Messages with cause and remedy for failures of apt and dpkg, and the package sources that failed. Pure functions."""

import re
from typing import Dict, List, NamedTuple, Sequence, Tuple

from ..base.download_errors import MIRRORED, download_remedy
from ..base.host import Result
from .apt_entries import AptEntry
from .locations import url_location
from .manager import RUN_LIMIT, WRONG_CLOCK, WRONG_SIGNATURE, find_dkms_failure

TERM_LOG = "/var/log/apt/term.log"
SIGNATURE = re.compile(
    r"signatures? (?:were|couldn't be|was) (?:invalid|verified)|NO_PUBKEY|EXPKEYSIG|BADSIG|is not signed|"
    r"Clearsigned file isn't valid|OpenPGP signature verification failed|not live until|Sub-process /usr/bin/sqv",
    re.IGNORECASE,
)


def explain_failure(what: str, answer: Result) -> str:
    """Message with cause and remedy for an apt-get or dpkg call that failed."""
    text = answer.out + "\n" + answer.err
    errors = [line[2:].strip() for line in text.splitlines() if re.match(r"[EW]: ", line)]
    short = "; ".join(errors[:3]) or "; ".join(line.strip() for line in text.splitlines() if line.strip())[-400:]
    match = re.search(r"Could not get lock (\S+?)\.? (?:It is held by process (\d+) \(([^)]*)\))?", text)
    if match and match.group(2):
        return "%s: %s is held by process %s (%s). Wait until it ends, then run again" % (
            what, match.group(1), match.group(2), match.group(3),
        )  # fmt: skip
    match = re.search(r"You don't have enough free space in (\S+?)\.?$", text, re.MULTILINE)
    if match:
        return "%s: not enough free space in %s. Free space there, then run again" % (what, match.group(1))
    if "No space left on device" in text:
        return "%s: the disk is full, no free space left (%s). Free space, then run again" % (what, short)
    dkms = find_dkms_failure(what, text)
    if dkms:
        return dkms
    timed = re.search(r"Release file for (\S+) is (?:not valid yet|(expired)) \(([^)]*)\)", text)
    if timed:
        return "%s: the lists of %s are %s (%s). %s%s" % (
            what, timed.group(1), "too old" if timed.group(2) else "from the future", timed.group(3), WRONG_CLOCK,
            ". If it is right, the mirror is no longer updated" if timed.group(2) else "",
        )  # fmt: skip
    if SIGNATURE.search(text) and re.search(r"(?i)not live until", text):
        return "%s: a signature is from the future (%s). %s" % (what, short[:500], WRONG_CLOCK)
    match = re.search(r"Failed to fetch (\S+)\s+(.*)", text)
    if match and SIGNATURE.search(match.group(2)):
        return "%s: the signature of %s is not valid (%s). %s" % (
            what, match.group(1), match.group(2).strip()[:300], WRONG_SIGNATURE,
        )  # fmt: skip
    without_release = re.search(r"The repository '(\S+).*' (?:does not have|no longer has) a Release file", text)
    if without_release:
        status = re.search(r"(?m)^Err:\d+ .*\n +(\d{3} .*|\D.*)$", text)
        cause = " ".join(status.group(1).split())[:200] if status else "no Release file"
        url = without_release.group(1) + "/"
        return "%s: %s could not be fetched (%s). %s" % (
            what, without_release.group(1), cause,
            ("%s does not have this repository" % ("The mirror" if MIRRORED.match(url) else "The server"))
            if not status or "404" in cause
            else download_remedy(cause, url),
        )  # fmt: skip
    if SIGNATURE.search(text):
        return "%s: a signature is not valid (%s). %s" % (what, short[:500], WRONG_SIGNATURE)
    if match:
        cause = match.group(2).strip()
        return "%s: %s could not be fetched (%s). %s" % (
            what,
            match.group(1),
            cause[:200],
            download_remedy(cause, match.group(1)),
        )
    match = re.search(r"Unable to locate package (\S+)|Package '?(\S+?)'? has no installation candidate", text)
    if match:
        return "%s: the package %s is in no package source of this host. Enable the source that has it" % (
            what, match.group(1) or match.group(2),
        )  # fmt: skip
    if "unmet dependencies" in text:
        lines = re.findall(r"(?m)^ +(\S+ : \S+: .*|(?:Depends|Conflicts|Breaks): .*)$", text)
        return "%s: the dependencies cannot be fulfilled (%s). Check pins, holds and third-party sources" % (
            what, "; ".join(lines[:4]) or short,
        )  # fmt: skip
    if answer.rc == 124:
        return "%s: no end within %d minutes. Run again: that repairs what is incomplete" % (
            what,
            RUN_LIMIT // 60,
        )
    script = re.search(r"(?s)dpkg: error processing (?:package|archive) (\S+) \(--.*?\):\s*([^\n]+)", text)
    if script:
        return "%s: the package %s could not be configured (%s). See what it printed before that in %s on this host" % (
            what, script.group(1), " ".join(script.group(2).split())[:200], TERM_LOG,
        )  # fmt: skip
    return "%s: exit status %d: %s" % (what, answer.rc, short or "nothing was printed")


# ---- package sources that failed -----------------------------------------------------------------------------------


class FailedSource(NamedTuple):
    """A package source whose lists could not be read; ``message`` begins with its file where that is known."""

    location: str
    message: str


FAILED = re.compile(
    r"^[EW]: .*?(?:Failed to fetch |error: |verification failed: |[Rr]epository '|Release file for )"
    r"(\w+:/+[^\s']+)([^']*)"
)
"""apt's lines about one source (apt-pkg/acquire-item.cc, acquire-worker.cc): a URL, and the rest of the line."""


def find_failed_sources(answer: Result, entries: Sequence[AptEntry]) -> List[FailedSource]:
    """The sources that `apt-get update` could not read. Its status is 0 for some of these failures, and 100 for others.

    A source that does not answer is a warning of apt, one without a valid Release file an error; both keep the lists
    that were read before (apt-get(8), and apt-secure(8) for the latter).
    """
    text = answer.out + "\n" + answer.err
    lines: Dict[Tuple[str, str], List[str]] = {}
    for line in text.splitlines():
        match = FAILED.match(line)
        if match:
            lines.setdefault(find_entry(entries, match.group(1), match.group(2)), []).append(line)
    causes = re.findall(r"(?m)^Err:\d+ (\S+)(.*)\n( +.*)$", text)
    found = []
    for key, reported in lines.items():
        blocks = [
            "Err:1 %s%s\n%s" % (url, rest, cause)
            for url, rest, cause in causes
            if find_entry(entries, url, rest) == key
        ]
        path, location = key
        message = explain_failure(path or location, Result(100, "\n".join(blocks), "\n".join(reported)))
        found.append(FailedSource(location, message))
    return found


def find_entry(entries: Sequence[AptEntry], url: str, rest: str) -> Tuple[str, str]:
    """File and location of the entry that a URL belongs to; ("", location of the URL) where there is none."""
    location = url_location(url)
    fitting = [entry for entry in entries if (location + "/").startswith(entry.location + "/")]
    suites = [entry for entry in fitting if "/dists/%s/" % entry.suite in url or entry.suite in rest.split()]
    best = max(suites or fitting, key=lambda entry: len(entry.location), default=None)
    return (best.path, best.location) if best else ("", location)
