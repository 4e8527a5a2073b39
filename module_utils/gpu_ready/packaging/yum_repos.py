"""Files of /etc/yum.repos.d: what they enable; sections switched on and off with every other byte kept."""

import re
from typing import Dict, List

DIRECTORY = "/etc/yum.repos.d"
KEYRINGS = "/etc/pki/rpm-gpg"
SUBSCRIPTIONS = DIRECTORY + "/redhat.repo"
"""Written by subscription-manager from its own state, which overwrites manual changes."""
TRUE = ("1", "yes", "true", "on")
ENABLED = re.compile(r"^enabled(\s*[=:]\s*)(\S*)(.*)$", re.DOTALL)


def lines_of(text: str) -> List[str]:
    return text.splitlines(True)


def parse_sections(text: str) -> Dict[str, bool]:
    """Sections of a file and whether each is enabled, which is the default (dnf.conf(5))."""
    found = {}  # type: Dict[str, bool]
    name = ""
    for line in lines_of(text):
        head = re.match(r"\[([^]]+)\]", line)
        value = ENABLED.match(line)
        if head:
            name = head.group(1)
            found[name] = True
        elif value and name:
            found[name] = value.group(2).lower() in TRUE
    return found


def switch_sections(text: str, names: List[str], on: bool) -> str:
    """The file with these sections enabled or disabled, and every other byte kept."""
    state = parse_sections(text)
    found = []
    name = ""
    for line in lines_of(text):
        head = re.match(r"\[([^]]+)\]", line)
        value = ENABLED.match(line)
        if head:
            name = head.group(1)
        elif value and name in names and state[name] != on:
            line = "enabled%s%s%s" % (value.group(1), "1" if on else "0", value.group(3))
        found.append(line)
    return "".join(found)


def enable_sections(text: str, names: List[str]) -> str:
    return switch_sections(text, names, True)


def disable_sections(text: str, names: List[str]) -> str:
    return switch_sections(text, names, False)
