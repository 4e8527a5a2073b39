"""Sections of files of /etc/yum.repos.d, enabled and disabled; every other byte is kept."""

from typing import List

from .yum_repos import DIRECTORY, parse_sections, walk_lines

SUBSCRIPTIONS = DIRECTORY + "/redhat.repo"
"""Written by subscription-manager from its own state, which overwrites manual changes."""


def switch_sections(text: str, names: List[str], on: bool) -> str:
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
