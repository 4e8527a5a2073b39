"""The golden plans of all distributions as one text, in which a line that several of them have is written once.

A line without a mark is in the plan of every distribution of its section. Words in braces stand for what each
distribution has its own word for; the first section lists them. `rebuilt` reads the plans of one distribution from the
text again, so the text pins every line of them.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

Subject = TypeVar("Subject")
MARK = "   # "
WORDS = "words in braces"
HEAD = """\
# The plans for hosts of every distribution, written by `.venv/bin/python -m tests.unit.goldens`.
# A line without a mark is in the plan of every distribution that has the section. Others name theirs: ubuntu* for all
# releases of a system, ubuntu2204+ for those from one on.
"""
DISTROS = "# Distributions: "


class Section(NamedTuple):
    """A section of one distribution: its title, what it has its own words for, its lines."""

    title: str
    words: Mapping[str, str]
    lines: Sequence[str]


class Line(NamedTuple):
    """A line and the distributions that have it."""

    text: str
    distros: list[str]


def document(plans: Mapping[str, Sequence[Section]]) -> str:
    """Return the text of all sections, in the order in which the distributions have them."""
    distros = list(plans)
    lines = [f"{HEAD}{DISTROS}{' '.join(distros)}"]
    folded = {distro: dict(map(fold, sections)) for distro, sections in plans.items()}
    for distro, sections in plans.items():
        words = {name: word for section in sections for name, word in section.words.items()}
        folded[distro] = {WORDS: [f"{{{name}}}: {word}" for name, word in words.items()], **folded[distro]}
    for title, having in merged({distro: {title: title for title in folded[distro]} for distro in distros}):
        lines += ["", f"## {title}{mark(having, distros)}"]
        for line in merged({distro: by_subject(folded[distro][title]) for distro in having}):
            lines.append(line.text + mark(line.distros, having))
    return "\n".join(lines) + "\n"


def fold(section: Section) -> tuple[str, list[str]]:
    """Return title and lines of a section, with the names of its words instead of the words."""
    found = [section.title, *section.lines]
    for name, word in section.words.items():
        found = [line.replace(word, f"{{{name}}}") for line in found]
    return found[0], found[1:]


def by_subject(lines: Sequence[str]) -> dict[tuple[str, int], str]:
    """Return the lines by what they are about, and their number among several of one subject.

    A subject is a set of GPUs, the driver, a step, or a parameter of a step.
    """
    found: dict[tuple[str, int], str] = {}
    step = ""
    for line in lines:
        if line.startswith("      "):
            subject = step + line.partition("=")[0]
        elif line.startswith("  "):
            subject = step = line.split()[0]
        else:
            subject = line.partition(":")[0]
        number = 0
        while (subject, number) in found:
            number += 1
        found[subject, number] = line
    return found


def merged(plans: Mapping[str, Mapping[Subject, str]]) -> Iterator[Line]:
    """Yield the lines of all distributions, each one once; those about the same subject are neighbours."""
    order: list[Subject] = []
    for lines in plans.values():
        subjects = list(lines)
        changes = difflib.SequenceMatcher(None, order, subjects, autojunk=False).get_opcodes()
        for kind, _, last, begin, end in reversed(changes):
            if kind != "equal":
                order[last:last] = subjects[begin:end]
    for subject in order:
        found: dict[str, list[str]] = {}
        for distro, lines in plans.items():
            if subject in lines:
                found.setdefault(lines[subject], []).append(distro)
        yield from (Line(text, distros) for text, distros in found.items())


def mark(distros: Sequence[str], known: Sequence[str]) -> str:
    """Return who has a line, in the shorter of both ways; nothing if everybody has it."""
    others = [name for name in known if name not in distros]
    if not others:
        return ""
    only, without = f"{MARK}only {names(distros, known)}", f"{MARK}not {names(others, known)}"
    return only if len(only) <= len(without) else without


def names(distros: Sequence[str], known: Sequence[str]) -> str:
    """Return names of distributions: `ubuntu*` for all known releases of a system, `ubuntu2204+` for those from one on."""
    found = []
    for system in dict.fromkeys(map(system_of, distros)):
        releases = releases_of(system, known)
        listed = [name for name in releases if name in distros]
        if len(listed) > 1 and listed == releases[-len(listed) :]:
            listed = [f"{system}*"] if listed == releases else [f"{listed[0]}+"]
        found += listed
    return " ".join(found)


def system_of(distro: str) -> str:
    """Return the name of a distribution without its release."""
    return distro.rstrip("0123456789*+")


def releases_of(system: str, known: Sequence[str]) -> list[str]:
    """Return the known releases of a system, ascending."""
    return sorted((name for name in known if system_of(name) == system), key=lambda name: int(name[len(system) :]))


def marked(text: str, known: Sequence[str]) -> list[str]:
    """Undo `mark`."""
    if not text:
        return list(known)
    way, *words = text.split()
    listed = set()
    for word in words:
        releases = releases_of(system_of(word), known)
        if word.endswith("+"):
            listed.update(releases[releases.index(word[:-1]) :])
        else:
            listed.update(releases if word.endswith("*") else [word])
    return [name for name in known if (name in listed) == (way == "only")]


def rebuilt(text: str, distro: str) -> dict[str, list[str]]:
    """Return the sections of one distribution from the text of all, by title."""
    head, *lines = text.partition(DISTROS)[2].splitlines()
    known = having = head.split()
    words: dict[str, str] = {}
    sections: dict[str, list[str]] = {}
    title = ""
    for line in lines:
        content, _, who = line.partition(MARK)
        if content.startswith("## "):
            title, having = unfold(content[3:], words), marked(who, known)
            if distro in having:
                sections[title] = []
        elif content and distro in marked(who, having):
            if title == WORDS:
                name, _, word = content.partition(": ")
                words[name] = word
            else:
                sections[title].append(unfold(content, words))
    return {title: lines for title, lines in sections.items() if title != WORDS}


def unfold(line: str, words: Mapping[str, str]) -> str:
    """Undo `fold` for a line."""
    for name, word in words.items():
        line = line.replace(name, word)
    return line
