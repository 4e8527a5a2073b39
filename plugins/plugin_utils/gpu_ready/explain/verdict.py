"""What to do about a text, why, and which of its lines show it: `gpu-explain read` for kinds with failures."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..diagnostics import layers, messages, programs
from ..diagnostics.message_table import ACTIONS, CERTAIN, ERROR, FIX, INFO, SEVERITIES, Explanation
from ..diagnostics.text_lines import Line
from .located import at, capitalized

LONGEST = 12
"""Lines of an answer at most."""
QUOTES = 3
"""Lines of the text that an answer quotes at most."""
REMEDIES = 3
"""Different things to do in one answer at most."""
ADDRESS = re.compile(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?$", re.IGNORECASE)
TIMES = re.compile(r", \d+ times$")


def complete(kind: str, text: str, answer: dict[str, Any], lines: list[Line] | None = None) -> dict[str, Any]:
    """Return an answer with all problems of its text as rows for JSON, the actions, and the lines that nobody knows.

    ``lines``: those of the text that are messages.
    """
    found = messages.complete(kind, text, answer["problems"])
    left = layers.left_over(kind, text, found, lines)
    return dict(
        answer,
        problems=[row(problem) for problem in found],
        actions=actions(found),
        unread=[
            {
                "line": one.line.number,
                "program": one.program,
                "tag": programs.tag_of(one.line.text),
                "text": layers.quote(one.line),
                "weight": one.weight,
            }
            for one in left
        ],
    )


def row(problem: Explanation) -> dict[str, Any]:
    """Return a problem as JSON has it."""
    names = ("code", "severity", "confidence", "line", "message", "cause", "remedy", "action", "detail")
    return {name: getattr(problem, name) for name in names}


def target_of(problem: Explanation) -> str | None:
    """Return the GPU that a problem is about, None for the host and its switches."""
    if problem.code == "sxid":
        return None
    detail = (problem.detail or "").lower()
    return re.sub(r"\.0$", "", detail)[-10:] if ADDRESS.match(detail) else None


def strength(problem: Explanation) -> tuple[int, int]:
    """Return how serious a problem is and how much it asks for; the smallest is the strongest."""
    return SEVERITIES.index(problem.severity), -ACTIONS.index(problem.action)


def actions(found: list[Explanation]) -> list[dict[str, Any]]:
    """Return one action for each GPU and for the host, the strongest first; GPUs with the same one together.

    What concerns no certain GPU is of the only GPU that the text names, if there is one.
    """
    targets = {target_of(one) for one in found} - {None}
    only = next(iter(targets)) if len(targets) == 1 else None
    groups: dict[str | None, list[Explanation]] = {}
    for one in found:
        groups.setdefault(target_of(one) or only, []).append(one)
    chosen: dict[str, tuple[Explanation, list[str]]] = {}
    for target, group in groups.items():
        best = min(group, key=strength)
        if target is None and len(groups) > 1 and best.severity == INFO:
            continue
        address = best.detail if target_of(best) else None
        key = best.remedy.replace(place(address), "\0") if address else best.remedy
        chosen.setdefault(key, (best, []))[1].extend([address] if address else [])
    ordered = sorted(chosen.items(), key=lambda item: strength(item[1][0]))
    return [
        {"remedy": key.replace("\0", ",".join(place(one) for one in gpus)), "gpus": gpus, "action": best.action}
        for key, (best, gpus) in ordered
    ]


def place(address: str) -> str:
    """Return an address as a remedy names it."""
    return address if "." in address else address + ".0"


def quoted(text: str) -> str:
    """Return a part of the text in quotes, in brackets where it contains quotes."""
    return '"%s"' % text if '"' not in text else "(%s)" % text


class Quotes:
    """The quotes of one answer, of which there are a few only."""

    def __init__(self) -> None:
        self.left = QUOTES

    def add(self, message: str, text: str | None) -> str:
        """Return a message with the part of the text that shows it, while quotes are left."""
        if not text or self.left == 0:
            return message + "."
        self.left -= 1
        return "%s: %s" % (message, quoted(text))


def describe(answer: dict[str, Any], kind: str, facts: Sequence[str] = (), clear: Sequence[str] = ()) -> list[str]:
    """Return what to do now, then causes with their evidence, then facts.

    ``clear``: what the text shows to be in order; the first line where there is no problem.
    """
    quotes = Quotes()
    serious = [one for one in answer["problems"] if one["severity"] != INFO]
    left = sorted(answer["unread"], key=lambda one: -one["weight"])
    foreign = [one for one in left if one["program"] != "kernel"]
    if not answer["problems"]:
        if clear and not foreign:
            return limited([*clear, *facts, *mention(left, quotes)])
        if clear:
            part = "Read in part: %s with error words %s not known." % (
                lines_of(len(left)),
                "is" if len(left) == 1 else "are",
            )
            return limited([part, *unknown_lines(left, quotes), *clear, *facts])
        return limited([*unknown(left, quotes), *facts]) if left else [*facts, *nothing(kind)]
    lines = what_to_do(answer["actions"])
    causes = grouped(answer["problems"])
    for problem in causes:
        usual = {"severity": ERROR, "confidence": CERTAIN}
        marks = [problem[key] for key, value in usual.items() if problem[key] != value]
        lines.append(at(problem["line"], quotes.add(problem["cause"], problem["message"]), *marks))
    shown = {one["remedy"] for one in answer["actions"]}
    others = (
        []
        if kind == "dmesg"
        else [one["remedy"] for one in answer["problems"] if one["action"] == FIX and one["remedy"] not in shown]
    )
    lines += [
        "Then: %s." % remedy for remedy in list(dict.fromkeys(others))[: max(0, REMEDIES - len(answer["actions"]))]
    ]
    unread = mention(left, quotes)
    cleared = [] if serious else [line for line in clear if line not in facts]
    return limited([*lines, *facts, *cleared], unread)


def what_to_do(found: list[dict[str, Any]]) -> list[str]:
    """Return the lines with what to do now, the strongest first."""
    lines: list[str] = []
    for one in found[:REMEDIES]:
        which = " for GPU %s" % ", ".join(one["gpus"]) if one["gpus"] and len(found) > 1 or len(one["gpus"]) > 1 else ""
        lines.append("%s%s: %s." % ("Do now" if not lines else "Also", which, one["remedy"]))
    if len(found) > REMEDIES:
        lines.append("Also: what --json shows for %d more." % (len(found) - REMEDIES))
    return lines


def grouped(problems: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return problems with equal causes of several GPUs as one."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in problems:
        detail = one["detail"] or ""
        cause = TIMES.sub("", one["cause"].replace(detail, "\0") if detail else one["cause"])
        groups.setdefault((one["code"], cause), []).append(one)
    found = []
    for (_, cause), members in groups.items():
        names = list(dict.fromkeys(one["detail"] for one in members if one["detail"]))
        if len(members) > 1 and names:
            found.append(dict(members[0], cause=cause.replace("\0", ", ".join(names))))
        else:
            found.append(members[0])
    return found


def limited(lines: list[str], last: Iterable[str] = ()) -> list[str]:
    """Return the lines of an answer, cut to what people read; ``last`` is kept."""
    kept = list(last)
    space = LONGEST - len(kept)
    if len(lines) > space:
        lines = [*lines[: space - 1], "%d more lines are in --json." % (len(lines) - space + 1)]
    return lines + kept


def lines_of(number: int) -> str:
    return "1 line" if number == 1 else "%d lines" % number


def mention(left: list[dict[str, Any]], quotes: Quotes) -> list[str]:
    """Return one line about lines with error words that nobody knows."""
    if not left:
        return []
    first = list({name_of(one): one for one in reversed(left)}.items())[::-1]
    places = ["line %d of %s" % (one["line"], name) for name, one in first[:QUOTES]]
    what = "Not read: %s with error words, %s" % (lines_of(len(left)), " and ".join(places))
    return [quotes.add(what, left[0]["text"])]


def name_of(one: dict[str, Any]) -> str:
    """Return the program of a line as people call it."""
    known = programs.PROGRAMS.get(one["program"] or "")
    return known.short if known else str(one["tag"] or "an unknown program")


def unknown_lines(left: list[dict[str, Any]], quotes: Quotes) -> list[str]:
    """Return the most informative lines, in the order of the text."""
    best = sorted(left[:QUOTES], key=lambda one: int(one["line"]))
    return [quotes.add("Line %d, of %s" % (one["line"], name_of(one)), one["text"]) for one in best]


def unknown(left: list[dict[str, Any]], quotes: Quotes) -> list[str]:
    """Return the most informative lines of a text of which only the program is known, and where its log is."""
    known = next((programs.PROGRAMS[one["program"]] for one in left if one["program"]), None)
    if known is None:
        lines = ["Do now: read the lines below and the log of the program that wrote them."]
        return [
            *lines,
            "This text has errors of a program whose messages gpu-ready does not know.",
            *unknown_lines(left, quotes),
        ]
    if known.key == "kernel":
        lines = [
            "Do now: read the whole log from the boot on ('journalctl -k -b'), above all what is before these lines."
        ]
        return [*lines, "No message of NVIDIA's driver that gpu-ready knows is here.", *unknown_lines(left, quotes)]
    check = "%s; then %s" % (known.log, known.check) if known.check else known.log
    about = ", which concerns %s" % known.about if known.about else ""
    lines = ["Do now: read its own log, %s." % check]
    return [
        *lines,
        "%s reports an error that gpu-ready does not know%s." % (capitalized(known.name), about),
        *unknown_lines(left, quotes),
    ]


SEARCHED = {
    "nvidia-smi": (
        "the table, -L, csv, -q, -q -x, --version, topo -m, mig and vgpu of nvidia-smi",
        "give the whole output of nvidia-smi, error stream included",
    ),
    "container-error": (
        "the errors of container engines, Kubernetes, Slurm, NVIDIA's container programs and nvidia-smi",
        "give the whole error of the program, its own log included",
    ),
    "installer-log": (
        "the errors of nvidia-installer, DKMS, modprobe and package managers",
        "give the whole /var/log/nvidia-installer.log or make.log; package managers are read in English (LC_ALL=C)",
    ),
    "dmesg": (
        "the kernel's lines about NVRM, Xid, SXid, nouveau and module signatures, and NVIDIA's services",
        "give the log from the boot on, unfiltered ('journalctl -k -b')",
    ),
}
"""What each kind of text is searched for, and what to give when there is no line with an error in it."""


def nothing(kind: str) -> list[str]:
    """Return what to say of a text without any known message or error word."""
    what, remedy = SEARCHED[kind]
    return [
        "Nothing known is in this text, and no line with an error; it was searched for %s." % what,
        "Remedy: %s." % remedy,
    ]
