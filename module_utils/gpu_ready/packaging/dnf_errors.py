"""Messages with cause and remedy for failures of dnf 4, dnf5 and yum 3. Pure functions."""

import re
from typing import List, Optional

from ..base.download_errors import download_remedy, find_status
from ..base.host import TIMED_OUT, Result
from ..base.long_lines import cut_lines, find_line, line_of
from .locations import split_list
from .manager import (
    HEADERS,
    WRONG_SIGNATURE,
    describe_full_disk,
    describe_missing_headers,
    describe_stopped_call,
    find_dkms_failure,
)
from .signature_errors import signature_remedy


def join_lines(lines: List[str], count: int = 4) -> str:
    return "; ".join(" ".join(line.split()) for line in lines[:count])


def explain_failure(what: str, answer: Result) -> str:
    text = cut_lines(answer.out + "\n" + answer.err)
    dkms = find_dkms_failure(what, text)
    if dkms:
        return dkms
    found = find_explanation(text)
    if found:
        return "%s: %s" % (what, found)
    if answer.rc == TIMED_OUT or answer.rc < 0:
        return "%s: %s" % (what, describe_stopped_call(answer))
    lines = [line for one in (answer.err, answer.out) for line in cut_lines(one).splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"(?:Error|Failed|Fatal|Transaction failed)", line)]
    return "%s: exit status %d: %s" % (what, answer.rc, join_lines(errors or lines[-4:])[:400] or "nothing was printed")


def find_explanation(text: str) -> Optional[str]:
    """Return the cause and remedy of a text, None where it is not known."""
    found = (explain_cause(text) for explain_cause in EXPLAINERS)
    return next((one for one in found if one), None)


def explain_rights(text: str) -> Optional[str]:
    """A lock or the database cannot be written, although nobody else has it."""
    denied = [line for line in text.splitlines() if "Permission denied" in line or "Read-only file system" in line]
    line = next((one for one in denied if re.search(r"lock|rpmdb|using (?:db\d|sqlite|ndb)", one)), None)
    if line:
        return (
            "%s. Check that this runs as root (become), and that the disk is writable" % (" ".join(line.split())[:200])
        )
    if re.search(r"superuser privileges|You need to be root", text):
        return "root's rights are needed: run with become"
    return None


def explain_lock(text: str) -> Optional[str]:
    """Another package manager runs."""
    pid = re.search(r"(?:process with pid|running as pid|already locked by) (\d+)", text)
    if not pid and not re.search(
        r"Failed to obtain (?:the )?\w* ?lock|holding the yum lock|can't create \w+ lock", text
    ):
        return None
    return "another package manager runs%s. Wait until it ends, then run again" % (
        " (process %s)" % pid.group(1) if pid else ""
    )


def explain_database(text: str) -> Optional[str]:
    """Return the RPM database cannot be opened."""
    opened = re.search(r"(?i)rpmdb open failed", text)
    reported = find_line(text, r"(?i)rpmdb|db\d+ error|BDB\d+", r"(?i)error|fatal|panic|damaged")
    reported = reported or (line_of(opened) if opened else None)
    return reported and (
        "the RPM database cannot be read (%s). Run again: gpu-ready rebuilds it (rpm --rebuilddb)"
        % " ".join(reported.split())[:200]
    )


def find_causes(text: str) -> str:
    """Return what curl or the server reported, "" where nothing."""
    found = re.search(r"(Status code: \d+ for \S+)", text) or re.search(
        r"(Curl error \(\d+\): .*?)(?: - http\S+)?$", text, re.M
    )
    other = re.search(r"(\[Errno \d+\] [^\n]*|HTTP Error \d+[^\n]*)", text)
    match = found or other
    return " ".join(match.group(1).split())[:300] if match else ""


def find_url(text: str) -> str:
    """Return the first URL of a text, "" where there is none."""
    match = re.search(r"\b\w{1,30}://[^\s)\]]+", text)
    return match.group() if match else ""


def find_failed_repositories(text: str) -> List[str]:
    """Return the repositories whose metadata could not be read, in the words of dnf 4, dnf5 and yum 3."""
    found = re.findall(r"Failed to download metadata (?:\([^)\n]{0,200}\) )?for repo(?:sitory)? ['\"](\S+?)['\"]", text)
    found += re.findall(r"(?:Cannot find a valid baseurl for repo: |failure: repodata/\S+ from )([^\s:/]+)", text)
    found += [name for line in re.findall(r"Ignoring repositories: ([^\n]*)", text) for name in split_list(line)]
    return sorted(set(found), key=found.index)


def explain_failed_repository(text: str, name: str) -> str:
    """Return why one repository could not be read, and the remedy."""
    block = re.search(r"for repository '%s':\n((?:  - [^\n]*\n)+)" % re.escape(name), text)
    cause = find_causes(block.group(1) if block else text) or "no cause was printed"
    return "the repository %s could not be read (%s). %s" % (name, cause, download_remedy(cause, find_url(cause)))


def find_hidden_names(text: str) -> List[str]:
    """Return the packages that dnf did not find, or that its filters hide, as it names them."""
    found = re.findall(r"(?:filtering|No match) for argument: (\S+)", text)
    found += re.findall(r"Argument '(\S+)' matches only", text)
    found += re.findall(
        r"(?m)package (\S+?)-[^-\s]+-[^-\s]+ (?:from \S+ )?is (?:filtered out by exclude|excluded)", text
    )
    found += [name for line in re.findall(r"Unable to find a match: ([^\n]+)", text) for name in line.split()]
    return sorted(set(found), key=found.index)


def explain_metadata(text: str) -> Optional[str]:
    """Return the metadata of a repository is not available; repositories that dnf may skip do not count."""
    ignored = {name for names in re.findall(r"Ignoring repositories: ([^\n]*)", text) for name in names.split(", ")}
    failed = re.findall(
        r"Failed to download metadata (?:\([^)\n]{0,200}\) )?for repo(?:sitory)? ['\"](\S+?)['\"]: ?([^\n]*)", text
    ) + re.findall(r"failure: repodata/\S+ from ([^\s:]+): ([^\n]*)", text)
    failed = [one for one in failed if one[0] not in ignored]
    if not failed:
        missing = re.search(
            r"(?:Unknown repo|No matching repositories for|Error getting repository data for)[: ]+'?([^\s',]+)", text
        )
        if missing:
            return "the repository %s is not configured on this host. Add it, then run again" % missing.group(1)
        if re.search(r"There are no enabled repo", text):
            return (
                "no package repository of this host is enabled. Enable the distribution's own, then run again; "
                "on Red Hat Enterprise Linux, register the host first"
            )
        return None
    name, cause = failed[-1]
    # dnf 4 lists the errors of each repository under its name; dnf5 as they come.
    block = re.search(r"for repository '%s':\n((?:  - [^\n]*\n)+)" % re.escape(name), text)
    text = block.group(1) if block else text
    if re.search(r"signature|GPG", cause) and "not available" not in cause:
        return "the signature of the repository %s is not valid (%s). %s" % (
            name,
            cause.strip()[:200],
            signature_remedy(cause),
        )
    if "not available" in cause and "GPG" in cause:
        return (
            "the repository %s has no signature (%s), but one is expected. Check that the mirror has repomd.xml.asc, "
            "and that it serves what its owner signed" % (name, find_causes(text) or cause.strip()[:200])
        )
    reported = find_causes(cause) or find_causes(text) or cause.strip()[:200]
    if find_status(reported) == "404" and not re.search(r"repomd\.xml|mirrorlist|metalink", reported):
        # The list of the repository was read, and names a file that is missing.
        return (
            "%s could not be fetched (%s). The mirror is being updated, or incomplete: run again later, or complete it"
            % (name, reported)
        )
    if re.search(r"checksum|Checksum", cause):
        return (
            "%s could not be fetched (%s). The mirror is being updated or damaged, or a proxy keeps an old file: run "
            "again later"
            % (
                name,
                cause[:200],
            )
        )
    return "%s could not be fetched (%s). %s" % (name, reported, download_remedy(reported, find_url(reported)))


def explain_signature(text: str) -> Optional[str]:
    """A package is not signed by the expected key."""
    match = re.search(
        r"(Package \S+ is not signed|Public key for \S+ is not installed|"
        r"(?:Open)?PGP check for package [^\n]{1,300} has failed: [^\n]*|Failing package is: \S+|"
        r"Couldn't open file RPM-GPG-KEY\S*|The GPG keys listed for [^\n]*)",
        text,
    )
    wrong = re.search(r"BAD|NOKEY", text)
    without = re.search(r"do not have any GPG public keys installed", text)
    keyless = without and re.compile(r"Problem repository: \[?([^\]\s]+)").search(text, without.end())
    if keyless:
        return (
            "the repository %s requires signed packages, but names no key (gpgkey), and the RPM database has none. "
            "Set gpgkey in its .repo file, then run again" % keyless.group(1)
        )
    if not match and not wrong and not re.search(r"GPG check FAILED|Signature verification failed", text):
        return None
    if wrong and (not match or wrong.start() < match.start()):
        reported = line_of(wrong)
    else:
        reported = match.group(1) if match else "GPG check FAILED"
    reported = " ".join(reported.split())[:300]
    return "a signature is not valid (%s). %s" % (reported, signature_remedy(reported))


def explain_download(text: str) -> Optional[str]:
    """Return a package could not be fetched."""
    if not re.search(
        r"Error downloading packages|Failed to download packages|\[MIRROR\]|Error Downloading Packages", text
    ):
        return None
    wrong = re.search(r"Inconsistent server data|checksum doesn't match|Checksum", text)
    if wrong:
        reported = re.sub(r"^(?:\[MIRROR\]|>>>) ", "", line_of(wrong).strip())
        return (
            "a package is not what the repository's list says (%s). %s. Or the mirror is being updated, or a proxy "
            "keeps an old file: run again later" % (reported[:300], WRONG_SIGNATURE)
        )
    reported = find_causes(text) or "no cause was printed"
    return "a package could not be fetched (%s). %s" % (reported, download_remedy(reported, find_url(reported)))


def explain_unknown(text: str) -> Optional[str]:
    """A package, version or stream is in no source."""
    match = re.search(r"All matches were filtered out by (\w+) filtering for argument: (\S+)", text)
    other = re.search(r"Argument '(\S+)' matches only (?:excluded packages|packages excluded by (\w+))", text)
    if match or other:
        name, by = (
            (match.group(2), match.group(1)) if match else (other.group(1), other.group(2)) if other else ("", "")
        )
        remedies = {
            "modular": "enable the module stream that has it",
            None: "remove the module stream, version lock or `exclude=` of this host that hides it",
        }
        remedy = remedies.get(by, "remove the version lock or `exclude=` of this host that hides it")
        return "the package %s is in a package source of this host, but hidden by %sfiltering: %s" % (
            name,
            by + " " if by else "",
            remedy,
        )
    match = re.search(r"missing groups or modules: (\S+)|No match for argument: ([^\s:]+:\S+)$", text, re.M)
    if match:
        return (
            "the module stream %s is in no package source of this host. Enable the source that has it; a mirror needs "
            "modules.yaml too" % (match.group(1) or match.group(2))
        )
    names = re.findall(r"No match for argument: (\S+)", text) + re.findall(r"No package (\S+) available", text)
    names += [name for line in re.findall(r"Unable to find a match: ([^\n]+)", text) for name in line.split()]
    names = sorted(set(names))
    headers = [name for name in names if HEADERS.match(name)]
    if headers:
        return describe_missing_headers(headers[0])
    if names:
        return (
            "the package %s is in no package source of this host, or a filter hides it there (`exclude=`, a version "
            "lock, a module stream). Enable the source that has it, or change the filter" % ", ".join(names)
        )
    return None


def explain_unsolvable(text: str) -> Optional[str]:
    """Dependencies cannot be fulfilled: dnf's "Problem", yum's "Requires"."""
    protected = re.search(r"removing the following protected packages: ([^\n]+)", text)
    if protected:
        return "it would remove %s, which this host protects. Choose another source" % protected.group(1).strip()
    problems = re.findall(r"(?m)^[ \t]*Problem(?: \d+)?: [^\n]*(?:\n[ \t]+- [^\n]*)*", text)
    if not problems:
        problems = re.findall(r"(?m)^Error: Package: [^\n]*\n[ \t]+(?:Requires|Conflicts): [^\n]*", text)
    if not problems:
        problems = re.findall(r"(?m)^Error: \S+ conflicts with \S+", text)
    if not problems:
        return None
    lines = [line for problem in problems for line in problem.splitlines()]
    reported = join_lines([re.sub(r"^\s*(?:Problem(?: \d+)?:|- |Error: )\s*", "", line) for line in lines], 6)[:700]
    if "nothing provides" in reported or "Requires:" in reported:
        remedy = "Enable the source that has what is missing (EPEL, CRB, optional), or check excludes and version locks"
    elif re.search(r"conflicts with|cannot install both|obsoletes", reported):
        remedy = "Remove one of the packages that exclude each other, or check version locks and third-party sources"
    else:
        remedy = "Check version locks, excludes and third-party sources"
    return "the dependencies cannot be fulfilled (%s). %s" % (reported, remedy)


def explain_disk(text: str) -> Optional[str]:
    """The disk is full."""
    match = re.search(r"At least (\S+) more space needed on the (\S+) filesystem", text) or re.search(
        r"needs (\S+) (?:more space )?on the (\S+) filesystem", text
    )
    if match:
        return "not enough free space: %s more are needed in %s. Free space there, then run again" % match.groups()
    match = re.search("Not enough free space", text)
    if match:
        return (
            "the disk is full, no free space left (%s). Free space, then run again"
            % (" ".join(line_of(match).split())[:300])
        )
    return describe_full_disk(text)


def explain_transaction(text: str) -> Optional[str]:
    """Return the rpm program refused the transaction or stopped in it."""
    conflicts = re.findall(r"(?m)^[ \t]*file \S+ (?:from install of|conflicts between) [^\n]*", text)
    if conflicts:
        return (
            "files of packages conflict (%s). Remove the other package, then run again"
            % (join_lines(conflicts, 2)[:400])
        )
    if re.search(r"No such command:? '?versionlock|Unknown argument \"versionlock\"", text):
        return (
            "the versionlock plugin is not installed (python3-dnf-plugin-versionlock, yum-plugin-versionlock for yum) "
            "or switched off (plugins=0 in dnf.conf, enabled=0 in plugins/versionlock.conf), and without it no version "
            "can be held: install it or switch it on, or do not ask for a hold"
        )
    match = re.search(r"%(\w{1,30})\((\S{1,200})\) scriptlet failed, exit status (\d+)", text)
    if match:
        return (
            "the script %%%s of the package %s failed with %s: see /var/log/dnf.rpm.log, with dnf5 /var/log/dnf5.log, "
            "with yum /var/log/yum.log" % match.groups()
        )
    return None


EXPLAINERS = (
    explain_rights,
    explain_lock,
    explain_disk,
    explain_database,
    explain_metadata,
    explain_signature,
    explain_download,
    explain_unknown,
    explain_unsolvable,
    explain_transaction,
)
"""In this order: the first that recognises a text explains it."""
