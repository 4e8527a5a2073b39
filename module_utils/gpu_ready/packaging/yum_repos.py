"""Files of /etc/yum.repos.d: what they enable; sections switched on and off with every other byte kept."""

import re
from typing import Dict, Iterator, List, Optional, Tuple

DIRECTORY = "/etc/yum.repos.d"
KEYRINGS = "/etc/pki/rpm-gpg"
SUBSCRIPTIONS = DIRECTORY + "/redhat.repo"
"""Written by subscription-manager from its own state, which overwrites manual changes."""
TRUE = ("1", "yes", "true", "on")
ENABLED = re.compile(r"^enabled(\s*[=:]\s*)(\S*)(.*)$", re.DOTALL)


def walk_lines(text: str) -> "Iterator[Tuple[str, str, Optional[re.Match[str]]]]":
    """Each line with its end, its section, and the match where it sets ``enabled``."""
    section = ""
    for line in text.splitlines(True):
        head = re.match(r"\[([^]]+)\]", line)
        section = head.group(1) if head else section
        yield line, section, ENABLED.match(line)


def parse_sections(text: str) -> Dict[str, bool]:
    """Sections of a file and whether each is enabled, which is the default (dnf.conf(5))."""
    found: Dict[str, bool] = {}
    for _, section, setting in walk_lines(text):
        if section:
            found.setdefault(section, True)
        if setting and section:
            found[section] = setting.group(2).lower() in TRUE
    return found


def switch_sections(text: str, names: List[str], on: bool) -> str:
    """The file with these sections enabled or disabled, and every other byte kept."""
    state = parse_sections(text)
    lines = []
    for line, section, setting in walk_lines(text):
        if setting and section in names and state[section] != on:
            line = "enabled%s%s%s" % (setting.group(1), "1" if on else "0", setting.group(3))
        lines.append(line)
    return "".join(lines)


def enable_sections(text: str, names: List[str]) -> str:
    return switch_sections(text, names, True)


def disable_sections(text: str, names: List[str]) -> str:
    return switch_sections(text, names, False)
