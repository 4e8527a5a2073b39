"""Packages on this host's disk, verified before anything of them is unpacked.

dnf 4 verifies signatures after a download, dnf5 only when it installs (rpm-software-management/dnf5 issue 1985). apt
compares what it downloads with its signed lists, but of a file that is in its cache already only the size
(apt-pkg/acquire-item.cc, pkgAcqArchive).
"""

import hashlib
import os
import re
import shutil
import tempfile
from typing import Dict, List, Mapping, NamedTuple, Optional

from ..base import files, manifest, work_directories
from ..base.host import Host
from . import openpgp, yum_repos
from .manager import PackageError

CHECK_LIMIT = 300.0
OWN = "gpu-ready-"
"""Beginning of the names of our .repo files."""
LEVEL = ["--define", "_pkgverify_level all"]
"""rpm 4.14.2 and newer: a package without a valid signature is an error (macros.in); older ones ignore it."""
VERIFIED = "digests signatures OK"
"""What `rpmkeys --checksig` prints after the path, from rpm 4.14 to 6 (rpmkeys(8), OUTPUT; lib/rpmchecksig): a class
that was not found is left out, and one that failed is in capitals. An unsigned package is only "digests OK", with the
exit status 0 where the level is not "all". rpm 4.11 of Enterprise Linux 7 prints other words, which count as a failure:
its yum cannot download packages beforehand."""
DATABASE = "/keys"
NAME = "%{NAME}=%|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE}\\n"
CACHED = re.compile(r"/var/cache/(?:dnf|libdnf5)/(.+)-[0-9a-f]{16}/packages/[^/]+\Z")
"""A file in the cache of dnf, in a directory with the name of its repository and a hash of its URL."""


class PinnedFile(NamedTuple):
    """A file of an RPM, and the file of the pinned key of its repository."""

    path: str
    key: str


# ---- RPM ------------------------------------------------------------------------------------------------------------


def find_pinned_key(host: Host, path: str) -> Optional[str]:
    """Return the file of the pinned key with which the RPM at ``path`` must be signed.

    None for files of repositories whose key gpu-ready does not pin, such as the distribution's.
    """
    sections = read_pinned_keys(host)
    cached = CACHED.match(path)
    if cached:
        return sections.get(cached.group(1))
    for section, directory in read_local_directories(host).items():
        if section in sections and path.startswith(directory + "/"):
            return sections[section]
    return None


def read_pinned_keys(host: Host) -> Dict[str, str]:
    """Return files of pinned keys by section.

    For our repositories and for third-party ones that we use with a pinned key.
    """
    found = {}
    for name in sorted(host.listdir(yum_repos.DIRECTORY)):
        if name.startswith(OWN) and name.endswith(".repo"):
            for section, values in yum_repos.parse_values(
                host.read("%s/%s" % (yum_repos.DIRECTORY, name)) or ""
            ).items():
                found[section] = re.sub("^file://", "", values.get("gpgkey", ""))
    adopted = manifest.collect(host).get("adopted", {})
    return dict(found, **{section: str(record["keyring"]) for section, record in adopted.items()})


def read_local_directories(host: Host) -> Dict[str, str]:
    """Return directories of local repositories by section. dnf does not copy their files to its cache."""
    found = {}
    for name in sorted(host.listdir(yum_repos.DIRECTORY)):
        text = host.read("%s/%s" % (yum_repos.DIRECTORY, name)) or "" if name.endswith(".repo") else ""
        for section, values in yum_repos.parse_values(text).items():
            match = re.match(r"file:/{0,2}(/\S*)", values.get("baseurl", ""))
            if match:
                found[section] = match.group(1).rstrip("/")
    return found


def verify_rpms(host: Host, packages: Mapping[str, PinnedFile]) -> None:
    """Verify RPMs, by ``name=version``, each with its pinned key alone; PackageError for the first that fails."""
    for key in sorted({one.key for one in packages.values()}):
        with_key = {package: one.path for package, one in packages.items() if one.key == key}
        directory = tempfile.mkdtemp(prefix="gpu-ready-keys-", dir=work_directories.SMALL_FILES)
        try:
            import_key(host, key, directory)
            for package, path in sorted(with_key.items()):
                verify_rpm(host, package, path, key, directory)
        finally:
            shutil.rmtree(directory)


def import_key(host: Host, key: str, root: str) -> None:
    """Make a database below ``root`` that holds one pinned key and nothing else."""
    found = openpgp.list_fingerprints(host.read_bytes(key) or b"")
    if len(found) != 1:
        raise PackageError(
            "%s: it holds %d keys in place of the pinned one. Run site.yml, which repairs it" % (key, len(found))
        )
    answer = host.run(["rpmkeys"] + database(root + DATABASE) + ["--import", key], CHECK_LIMIT)
    if answer.rc != 0:
        raise PackageError(
            "%s: `rpmkeys --import` cannot read it (%s). Run site.yml, which repairs it"
            % (key, answer.err.strip()[-300:])
        )


def database(path: str) -> List[str]:
    """Return options of rpm's programs for a database, also where keys are files beside it (rpm 6)."""
    return ["--dbpath", path, "--define", "_keyringpath %s/pubkeys/" % path] + LEVEL


def verify_rpm(host: Host, package: str, path: str, key: str, root: str) -> None:
    """Verify one RPM with the database below ``root``, and that it is this package (``name=version``)."""
    answer = host.run(["rpmkeys"] + database(root + DATABASE) + ["--checksig", path], CHECK_LIMIT)
    printed = answer.out.strip()
    if answer.rc != 0 or printed != "%s: %s" % (path, VERIFIED):
        reported = (printed or answer.err.strip())[-300:]
        raise PackageError(
            "%s: it is not signed with the pinned key %s (rpmkeys: %s). Delete it from the cache (`dnf clean "
            "packages`), check the mirror, then run again" % (path, key, reported.rpartition(": ")[2])
        )
    named = host.run(["rpm"] + database(root + DATABASE) + ["-qp", "--qf", NAME, path], CHECK_LIMIT).out.strip()
    if named.replace("=0:", "=") != package.replace("=0:", "="):
        raise PackageError(
            "%s: the package in this file is %s, not %s. Delete it from the cache (`dnf clean packages`), check the "
            "mirror, then run again" % (path, named[:200], package)
        )


# ---- .deb -----------------------------------------------------------------------------------------------------------


def verify_deb(host: Host, name: str, version: str, path: str) -> None:
    """Verify a .deb by the checksum in apt's lists, which apt verified by their signature."""
    answer = host.run(["apt-get", "download", "--print-uris", "%s=%s" % (name, version)], CHECK_LIMIT)
    found = re.search(r" (SHA256|SHA512):([0-9a-f]{64,128})\s*$", answer.out, re.MULTILINE)
    if not found:
        raise PackageError(
            "%s: apt's lists have no checksum of %s %s. Run apt-get update, then run again" % (path, name, version)
        )
    if files.checksum(path, hashlib.new(found.group(1).lower())) != found.group(2):
        raise PackageError(
            "%s: it is not the file of apt's signed lists. Delete it (`apt-get clean`), then run again" % path
        )


def unpack_deb(host: Host, package: str, path: str, root: str) -> None:
    """Verify a .deb (``name=version``) and unpack it below ``root``, without running its scripts."""
    name, _, version = package.partition("=")
    directory = tempfile.mkdtemp(prefix="deb-", dir=os.path.dirname(root))
    try:
        # A repository on the disk may belong to somebody else: what is verified must be what is unpacked.
        copy = shutil.copyfile(path, os.path.join(directory, "package.deb"))
        verify_deb(host, name, version, copy)
        answer = host.run(["dpkg-deb", "-x", copy, root], CHECK_LIMIT)
    finally:
        shutil.rmtree(directory)
    if answer.rc != 0:
        raise PackageError(
            "%s: it cannot be unpacked (%s). Run `apt-get clean`, then run again" % (path, answer.err[-300:].strip())
        )
