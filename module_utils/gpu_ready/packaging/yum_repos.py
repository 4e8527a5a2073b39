"""Files of /etc/yum.repos.d: their sections, and what these enable."""

import re
from typing import Dict, Iterator, List, NamedTuple, Optional, Tuple

from .locations import split_list, url_location

DIRECTORY = "/etc/yum.repos.d"
MACHINE = "x86_64"
"""$basearch of the repositories that are compared."""
KEYRINGS = "/etc/pki/rpm-gpg"
TRUE = ("1", "yes", "true", "on")
ENABLED = r"(?s)^enabled(\s*[=:]\s*)(\S*)(.*)$"


def walk_lines(text: str) -> "Iterator[Tuple[str, str, Optional[re.Match[str]]]]":
    """Yield each line with its end, its section, and the match where it sets ``enabled``."""
    section = ""
    for line in text.splitlines(True):
        head = re.match(r"\[([^]]+)\]", line)
        section = head.group(1) if head else section
        yield line, section, re.match(ENABLED, line)


def parse_sections(text: str) -> Dict[str, bool]:
    """Return sections of a file and whether each is enabled, which is the default (dnf.conf(5))."""
    found: Dict[str, bool] = {}
    for _, section, setting in walk_lines(text):
        if section:
            found.setdefault(section, True)
        if setting and section:
            found[section] = setting.group(2).lower() in TRUE
    return found


class RepoSection(NamedTuple):
    """A section of a .repo file: where its packages come from, and the keys that it names (URLs and paths)."""

    path: str
    name: str
    enabled: bool
    urls: List[str]
    keys: List[str] = []
    gpgcheck: Optional[bool] = None
    repo_gpgcheck: Optional[bool] = None

    @property
    def locations(self) -> List[str]:
        return [url_location(url) for url in self.urls]

    @property
    def key_files(self) -> List[str]:
        return [re.sub("^file://", "", key) for key in self.keys if key.startswith(("file:///", "/"))]


def read_sections(path: str, text: str, release: str) -> List[RepoSection]:
    """Return the sections of a file with dnf's variables expanded (dnf.conf(5)); ``release``: VERSION_ID of os-release.

    $releasever is the major version on Enterprise Linux and its minor one on a few clones: both are tried.
    """
    found = []
    for name, values in parse_values(text).items():
        keys = expand(values.get("gpgkey", ""), release)
        urls = [values[key] for key in ("baseurl", "mirrorlist", "metalink") if values.get(key)]
        found.append(
            RepoSection(
                path=path,
                name=name,
                enabled=values.get("enabled", "1").lower() in TRUE,
                urls=[url for text in urls for url in expand(text, release)],
                keys=keys,
                gpgcheck=values["gpgcheck"].lower() in TRUE if "gpgcheck" in values else None,
                repo_gpgcheck=values["repo_gpgcheck"].lower() in TRUE if "repo_gpgcheck" in values else None,
            )
        )
    return found


def parse_values(text: str) -> Dict[str, Dict[str, str]]:
    """Return values by section and name; indented lines continue the value before them."""
    found: Dict[str, Dict[str, str]] = {}
    section, name = "", ""
    for line in text.splitlines():
        head = re.match(r"\[([^]]+)\]", line)
        setting = re.match(r"([\w.-]+)\s*[=:]\s*(.*)$", line)
        if head:
            section, name = head.group(1), ""
            found.setdefault(section, {})
        elif setting and section:
            name = setting.group(1)
            found[section][name] = setting.group(2).strip()
        elif line[:1] in (" ", "\t") and name:
            found[section][name] += " " + line.strip()
    return found


def expand(text: str, release: str) -> List[str]:
    """Return the words of a value for both forms of $releasever."""
    found = []
    for version in (release.partition(".")[0], release):
        values = {"basearch": MACHINE, "arch": MACHINE, "releasever": version}
        values["releasever_major"], _, values["releasever_minor"] = release.partition(".")
        found += [word for word in split_list(substitute(text, values)) if word not in found]
    return found


def substitute(text: str, values: Dict[str, str]) -> str:
    """Replace $name, ${name} and ${name:+text}, which is the text where the variable has a value."""
    text = re.sub(
        r"\$\{(\w+):\+([^}]{0,200})\}", lambda match: match.group(2) if values.get(match.group(1)) else "", text
    )
    pattern = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
    return pattern.sub(lambda match: values.get(match.group(1) or match.group(2), match.group()), text)
