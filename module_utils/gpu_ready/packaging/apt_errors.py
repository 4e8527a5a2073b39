"""Messages with cause and remedy for failures of apt and dpkg, and the package sources that failed. Pure functions."""

import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from ..base.download_errors import download_remedy
from ..base.host import TIMED_OUT, Result
from ..base.long_lines import cut_lines
from . import apt_policy
from .apt_entries import AptEntry
from .locations import url_location
from .manager import WRONG_CLOCK, describe_full_disk, describe_stopped_call, find_dkms_failure
from .signature_errors import signature_remedy

TERM_LOG = "/var/log/apt/term.log"
SIGNATURE = re.compile(
    r"signatures? (?:were|couldn't be|was) (?:invalid|verified)|NO_PUBKEY|EXPKEYSIG|BADSIG|is not signed|"
    r"Clearsigned file isn't valid|OpenPGP signature verification failed|not live until|Sub-process /usr/bin/sqv",
    re.IGNORECASE,
)


FROM_APT = re.compile(r"(?m)^(?:[EW]: |Err:\d+ |  )[^\n]*")
"""apt's own lines; scripts of packages print too, for example that a kernel module "is not signed"."""


def explain_failure(
    what: str,
    answer: Result,
    policies: Optional[Dict[str, apt_policy.Policy]] = None,
    pins: Sequence[apt_policy.Pin] = (),
) -> str:
    """Return the message with cause and remedy for an apt-get or dpkg call that failed.

    ``policies`` and ``pins`` are for the packages that :func:`apt_policy.find_names` returns. Without them, the message
    for a package without a candidate names all causes.
    """
    text = cut_lines(answer.out + "\n" + answer.err)
    errors = [line[2:].strip() for line in text.splitlines() if re.match(r"[EW]: ", line)]
    short = "; ".join(errors[:3]) or "; ".join(line.strip() for line in text.splitlines() if line.strip())[-400:]
    match = re.search(
        r"Could not get lock (\S{1,200}?)(?:\.? It is held by process (\d+) \(([^)\n]{0,80})\)|"
        r"\.? - open \(\d+: ([^)\n]{0,80})\))",
        text,
    )
    if match and match.group(2):
        return "%s: %s is held by process %s (%s). Wait until it ends, then run again" % (
            what, match.group(1), match.group(2), match.group(3),
        )  # fmt: skip
    if match:
        busy = "temporarily unavailable" in match.group(4)
        return "%s: %s cannot be locked (%s). %s" % (
            what, match.group(1), match.group(4),
            "Another package manager runs: wait until it ends, then run again" if busy
            else "Check that this runs as root (become), and that the disk is writable",
        )  # fmt: skip
    match = re.search(r"You don't have enough free space in (\S+?)\.?$", text, re.MULTILINE)
    if match:
        return "%s: not enough free space in %s. Free space there, then run again" % (what, match.group(1))
    full = describe_full_disk(text)
    if full:
        return "%s: %s" % (what, full)
    dkms = find_dkms_failure(what, text)
    if dkms:
        return dkms
    timed = re.search(r"Release file for (\S+) is (?:not valid yet|(expired)) \(([^)\n]{0,200})\)", text)
    if timed:
        return "%s: the lists of %s are %s (%s). %s. If it is right, %s" % (
            what, timed.group(1), "too old" if timed.group(2) else "from the future", timed.group(3), WRONG_CLOCK,
            "the mirror is no longer updated" if timed.group(2) else "the clock of the mirror's owner is wrong",
        )  # fmt: skip
    own = "\n".join(FROM_APT.findall(text))
    if SIGNATURE.search(own) and re.search(r"(?i)not live until", own):
        return "%s: a signature is from the future (%s). %s" % (what, short[:500], WRONG_CLOCK)
    match = re.search(r"Failed to fetch (\S+)\s+(.*)", text)
    if match and SIGNATURE.search(match.group(2)):
        return "%s: the signature of %s is not valid (%s). %s" % (
            what, match.group(1), match.group(2).strip()[:300], signature_remedy(match.group(2)),
        )  # fmt: skip
    without_release = re.search(
        r"The repository '([^\s']{1,1000})[^'\n]{0,200}' (?:does not have|no longer has) a Release file", text
    )
    if without_release:
        status = re.search(r"(?m)^Err:\d+ .*\n +(\d{3} .*|\D.*)$", text)
        cause = " ".join(status.group(1).split())[:200] if status else "no Release file"
        return "%s: %s could not be fetched (%s). %s" % (
            what, without_release.group(1), cause,
            download_remedy(cause if status else "404", without_release.group(1) + "/"),
        )  # fmt: skip
    if SIGNATURE.search(own):
        return "%s: a signature is not valid (%s). %s" % (what, short[:500], signature_remedy(own))
    if match:
        cause = match.group(2).strip()
        return "%s: %s could not be fetched (%s). %s" % (
            what,
            match.group(1),
            cause[:200],
            download_remedy(cause, match.group(1)),
        )
    return explain_packages(what, text, policies or {}, list(pins)) or explain_end(what, answer, short)


def explain_packages(
    what: str, text: str, policies: Dict[str, apt_policy.Policy], pins: List[apt_policy.Pin]
) -> Optional[str]:
    """Return what apt's solver or dpkg reported about single packages."""
    match = re.search(r"Unable to locate package (\S+)", text)
    if match:
        return (
            "%s: the package %s is in no package source of this host for its architecture. Enable the source that has "
            "it" % (what, match.group(1))
        )
    reasons = [
        apt_policy.describe_missing_candidate(name, policies.get(name), pins, apt_policy.find_providers(text, name))
        for name in apt_policy.find_names(text)[:2]
    ]
    if "unmet dependencies" in text:
        lines = re.findall(r"(?m)^ +(\S+ : \S+: .*|(?:Depends|Conflicts|Breaks): .*)$", text)
        against = all(re.search(r"(?:^|: )(?:Conflicts|Breaks): ", line) for line in lines)
        return "%s: the dependencies cannot be fulfilled (%s). %s" % (
            what, "; ".join(lines[:4]) or "apt names none",
            "; ".join(reasons)
            or (
                "Remove one of the packages that exclude each other" if lines and against
                else "Check pins, holds, packages in a newer version than the sources have, and third-party sources"
            ),
        )  # fmt: skip
    if reasons:
        return "%s: %s" % (what, "; ".join(reasons))
    match = re.search(r"Version '([^'\n]{0,200})' for '([^'\n]{1,200})' was not found", text)
    if match:
        return "%s: no package source of this host has %s %s (any more). Run again, which reads the lists again" % (
            what, match.group(2), match.group(1),
        )  # fmt: skip
    match = re.search(r"trying to overwrite '([^'\n]{1,400})', which is also in package (\S+)", text)
    if match:
        return "%s: %s belongs to the package %s already. Remove one of the two packages, then run again" % (
            what, match.group(1), match.group(2),
        )  # fmt: skip
    found = re.findall(r"dpkg: error processing (?:package|archive) (\S+) \(--([\w-]{1,40})\):\s{0,200}([^\n]+)", text)
    # Packages that need another one which failed are only its consequence.
    found = [one for one in found if not one[2].startswith("dependency problems")] or found
    if not found:
        return None
    name, verb, cause = found[0]
    verbs = {"unpack": "unpacked", "install": "unpacked", "remove": "removed", "purge": "removed"}
    return "%s: the package %s could not be %s (%s). See what it printed before that in %s on this host" % (
        what, name, verbs.get(verb, "configured"), " ".join(cause.split())[:200], TERM_LOG,
    )  # fmt: skip


def explain_end(what: str, answer: Result, short: str) -> str:
    """Return how a call ended whose text explains nothing."""
    if answer.rc == TIMED_OUT or answer.rc < 0:
        return "%s: %s" % (what, describe_stopped_call(answer))
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
    """Return the sources that `apt-get update` could not read. Its status is 0 for some failures, 100 for others.

    A source that does not answer is a warning of apt, one without a valid Release file an error; both keep the lists
    that were read before (apt-get(8), and apt-secure(8) for the latter).
    """
    text = cut_lines(answer.out + "\n" + answer.err)
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
    """Return file and location of the entry that a URL belongs to; ("", location of the URL) where there is none."""
    location = url_location(url)
    fitting = [entry for entry in entries if (location + "/").startswith(entry.location + "/")]
    suites = [entry for entry in fitting if "/dists/%s/" % entry.suite in url or entry.suite in rest.split()]
    best = max(suites or fitting, key=lambda entry: len(entry.location), default=None)
    return (best.path, best.location) if best else ("", location)
