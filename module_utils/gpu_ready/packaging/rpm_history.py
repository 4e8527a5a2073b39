"""From which section of the .repo files an installed RPM came, as dnf and yum recorded it. Reads files only."""

import re
from typing import Dict, List

from ..base.host import Host

DNF_HISTORY = "/var/lib/dnf/history.sqlite"
DNF5_NEVRAS = "/usr/lib/sysimage/libdnf5/nevras.toml"
YUM_DATABASE = "/var/lib/yum/yumdb"
QUERY = (
    "SELECT rpm.name, repo.repoid FROM trans_item JOIN rpm ON rpm.item_id = trans_item.item_id "
    "JOIN repo ON repo.id = trans_item.repo_id WHERE rpm.name IN (%s) AND repo.repoid NOT LIKE '@%%' "
    "ORDER BY trans_item.id"
)
"""Tables of libdnf (libdnf/transaction/sql/create_tables.sql). Removals are recorded with the repository @System."""

NEVRA = re.compile(r'(?m)^(?:\[nevras\.)?"?([^"\s=\[\]]+)"?(?:\]|\s*=)\s*\{?\s*from_repo\s*=\s*"([^"]*)"')
"""An inline table, or a table of its own: both are the same TOML."""


def read_sections(host: Host, names: List[str]) -> Dict[str, str]:
    """Return the section that each of these packages was last installed from, as far as it is recorded."""
    found = read_yum_database(host, names)
    found.update(read_dnf_history(host, names))
    found.update(parse_nevras(host.read(DNF5_NEVRAS) or "", names))
    return found


def read_dnf_history(host: Host, names: List[str]) -> Dict[str, str]:
    """Return the sections that dnf 4 recorded. The database is opened as immutable, so nothing is written beside it."""
    if not names or not host.exists(DNF_HISTORY):
        return {}
    try:
        import sqlite3  # here, since only few hosts need it; some builds of Python are without it
    except ImportError:
        return {}
    query = QUERY % ", ".join("?" for _ in names)
    try:
        database = sqlite3.connect("file:%s?mode=ro&immutable=1" % host.realpath(DNF_HISTORY), uri=True)
        try:
            return {str(name): str(section) for name, section in database.execute(query, names)}
        finally:
            database.close()
    except sqlite3.Error:
        return {}  # a damaged history; the vendor of the packages is asked as well


def parse_nevras(text: str, names: List[str]) -> Dict[str, str]:
    """Parse nevras.toml of dnf5 (written by a program): a table for each name-epoch:version-release.arch."""
    found = {}
    for nevra, section in NEVRA.findall(text):
        name = nevra.rsplit("-", 2)[0]
        if name in names and section and not section.startswith("@"):
            found[name] = section
    return found


def read_yum_database(host: Host, names: List[str]) -> Dict[str, str]:
    """Return the sections that yum recorded: a directory CHECKSUM-NAME-VERSION-RELEASE-ARCH for each package."""
    found = {}
    for letter in sorted({name[0] for name in names}):
        for entry in host.listdir("%s/%s" % (YUM_DATABASE, letter)):
            name = entry.partition("-")[2].rsplit("-", 3)[0]
            section = host.read("%s/%s/%s/from_repo" % (YUM_DATABASE, letter, entry)) if name in names else None
            if section and section.strip():
                found[name] = section.strip()
    return found
