"""Files of packages on this host: in a package manager's cache, in a local repository, and kept for a rollback.

A source may drop a version at any time: Ubuntu's and Debian's archives have one version of a package in each suite. So
the status of a download does not say that a file is on the host, and lists that are read later do not know it any more.
"""

import glob
import os
import re
import shutil
from typing import Dict, List, Optional, Tuple
from urllib.parse import unquote

from ..base import files, manifest
from ..base.files import write_json_file
from ..base.host import Host
from ..base.json_file import read_json_object
from . import yum_repos

STORE = manifest.DIRECTORY + "/packages"
"""Packages that a rollback installs. Their checksums are in its LISTING."""
LISTING = "checksums.json"
RPM_CACHES = ("/var/cache/dnf", "/var/cache/libdnf5", "/var/cache/yum")
LOCAL = re.compile(r"^'(?:file|copy):(/[^']*)' ")
BASE_URL = re.compile(r"(?m)^(?:baseurl\s*=|\s+)\s*file:/{0,2}(/\S*)")


def find_archive(host: Host, name: str, version: str) -> Optional[str]:
    """Return the file of a package in this version; None if it is not on the host."""
    return find_deb(host, name, version) or find_rpm(host, name, version)


def find_deb(host: Host, name: str, version: str) -> Optional[str]:
    """Return the file in apt's cache, whose names have the colon of an epoch as %3a; else in a repository on the disk.

    apt does not copy files of ``file:`` sources to its cache.
    """
    pattern = "%s/%s_%s_*.deb" % (cache_directory(host), glob.escape(name), glob.escape(version.replace(":", "%3a")))
    found = sorted(glob.glob(pattern))
    if not found:
        answer = host.run(["apt-get", "download", "--print-uris", "%s=%s" % (name, version)])
        found = [unquote(match.group(1)) for match in map(LOCAL.match, answer.out.splitlines()) if match]
    return next((path for path in found if host.exists(path)), None)


def cache_directory(host: Host) -> str:
    """Return the directory of the packages that apt downloads, which a site may have moved (Dir::Cache)."""
    answer = host.run(["apt-config", "shell", "FOUND", "Dir::Cache::archives/d"])
    match = re.match(r"FOUND='([^']+)'", answer.out)
    return match.group(1).rstrip("/") if match else "/var/cache/apt/archives"


def find_rpm(host: Host, name: str, version: str) -> Optional[str]:
    """Return the file in a cache of dnf or yum, or in a repository on the disk; file names have no epoch."""
    file = "%s-%s.*.rpm" % (glob.escape(name), glob.escape(version.rpartition(":")[2]))
    texts = [host.read("%s/%s" % (yum_repos.DIRECTORY, one)) or "" for one in host.listdir(yum_repos.DIRECTORY)]
    local = [path for text in texts for path in BASE_URL.findall(text)]
    for directory in list(RPM_CACHES) + local:
        found = sorted(glob.glob("%s/**/%s" % (glob.escape(directory), file), recursive=True))
        if found:
            return found[0]
    return None


# ---- kept for a rollback --------------------------------------------------------------------------------------------


def keep_archives(host: Host, paths: Dict[str, str], obsolete: List[str], store: str = STORE) -> None:
    """Keep copies of package files by ``name=version``, and delete the ``obsolete`` ones (changes the host)."""
    os.makedirs(store, mode=0o755, exist_ok=True)
    listed = read_listing(host, store)
    for package in obsolete:
        path = os.path.join(store, listed.pop(package, ("", ""))[0])
        if os.path.isfile(path):
            os.unlink(path)
    for package, source in paths.items():
        target = os.path.join(store, os.path.basename(source))
        if os.path.realpath(source) != os.path.realpath(target):
            shutil.copyfile(source, target)
        listed[package] = (os.path.basename(target), files.checksum(target))
    write_json_file(os.path.join(store, LISTING), {name: list(entry) for name, entry in listed.items()})


def read_listing(host: Host, store: str = STORE) -> Dict[str, Tuple[str, str]]:
    """Return the file name and SHA-256 checksum of kept packages by ``name=version``."""
    value = read_json_object(host, os.path.join(store, LISTING)) or {}
    return {
        str(package): (os.path.basename(str(entry[0])), str(entry[1]))
        for package, entry in value.items()
        if isinstance(entry, list) and len(entry) == 2
    }


def find_kept(host: Host, name: str, version: str, store: str = STORE) -> Optional[str]:
    """Return the kept file of a package; None if there is none, or its content has changed."""
    file, checksum = read_listing(host, store).get("%s=%s" % (name, version), ("", ""))
    path = os.path.join(store, file)
    return path if file and os.path.isfile(path) and files.checksum(path) == checksum else None
