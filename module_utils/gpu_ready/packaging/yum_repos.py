"""Files of /etc/yum.repos.d: what they enable; sections switched on and off with every other byte kept."""

import re
from typing import Dict, List

FOLDER = "/etc/yum.repos.d"
KEYRINGS = "/etc/pki/rpm-gpg"
SUBSCRIPTIONS = FOLDER + "/redhat.repo"
"""Written by subscription-manager from its own state: what is switched here by hand is lost."""
TRUE = ("1", "yes", "true", "on")
ENABLED = re.compile(r"^enabled(\s*[=:]\s*)(\S*)(.*)$", re.DOTALL)


def lines_of(text: str) -> List[str]:
    """Return the lines with their ends."""
    return text.splitlines(True)


def parse_sections(text: str) -> Dict[str, bool]:
    """Return the repositories of a file and whether each is enabled; without a word it is (dnf.conf(5))."""
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
    """Return a file with these repositories switched on or off; the others and all other lines as they are."""
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
    """Return a file with these repositories switched on."""
    return switch_sections(text, names, True)


def disable_sections(text: str, names: List[str]) -> str:
    """Return a file with these repositories switched off again."""
    return switch_sections(text, names, False)
