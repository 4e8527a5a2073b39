"""What a text says beside the messages of its own kind: other programs' messages, status words, and what nobody knows.

A text is read in three layers: known messages (the readers of each kind, and the rows of other programs), status words
of programs, and lines with error words that remain unread. Nothing is concluded from what is not read.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from ..catalog import messages as data
from . import message_table, programs, smi, status_words
from .message_table import INFO, LIKELY, SERVICE, SEVERITIES, Entry, Explanation, Found, fill, gpu_argument
from .programs import PROGRAMS
from .status_words import StatusWord
from .text_lines import LONGEST, Line, flatten, lines_of

ERROR_WORD = re.compile(
    r"\b(?:err|errors?|errno|fail(?:s|ed|ures?|ing)?|fatal|panic|can ?not|can.t|could ?n.?t|could not|unable|denied"
    r"|refus(?:ed|ing)|reject(?:ed|ing)|invalid|no such|timed[ -]?out|timeout|abort(?:ed|ing)?|crash(?:ed)?"
    r"|not (?:found|available|supported|permitted|allowed|ready|installed|loaded|running|compatible|detected)"
    r"|unrecogni[sz]ed|mismatch(?:ed)?|missing|unexpected|unhealthy|exceeded|killed|segfault|oops|exception|traceback"
    r"|unresolvable|in use|busy|broken|corrupt(?:ed)?|lost|dumped|insufficient|unknown|degraded|unavailable"
    r"|(?:do|does|did|is|are|was|were|has|have|wo|could|would)n.t|unreachable|does(?: not|n.t) exist|incompatible"
    r"|violat\w+|stuck|hung)\b"
    r"|\blevel=(?:error|fatal|panic)|^[EF]\d{4} |\bNV_ERR_|\bBUG: "
    r"|Deadline ?Exceeded|Unhandled|Error:|(?:Exception|Error)\b",
    re.IGNORECASE,
)
HEALTHY = re.compile(
    r"\b(?:0|no|without|zero) (?:\w+ )?(?:errors?|failures?|problems?|faults?)\b"
    r"|\b(?:errors?|failures?|failed|lost)\W{1,4}(?:0|none|no)\b|\bif \S+ fails\b|\bfail-?(?:over|safe)\w*"
    r"|\berrors=\S+|\berror[_ ]?(?:recovery|handler|reporting|correction|detection)\w*|\bunknown flavour\b"
    r"|\b(?:error|errno|err|status|code|rc)[ =:]{1,3}0\b|\bnot found,? (?:using|skipping|ignor)|\berr(?:or)?=nil\b"
    r"|\bon-failure\b|timeout[ =:]\d+|--\S*(?:timeout|error|fail)\S*",
    re.IGNORECASE,
)
"""Words that are no errors though they contain the word."""
GPU_WORD = re.compile(r"nvidia|nvml|cuda|\bgpus?\b|nvlink|nvswitch|\bxid\b|imex|fabric|\bmig\b|dcgm", re.IGNORECASE)
STRONG = re.compile(r"level=(?:error|fatal)|\b(?:ERROR|FATAL|CRITICAL|panic)\b|^[EF]\d{4} |\bfailed\b|\bfatal\b")
MOST = 300
"""Lines with error words that are looked at; longer logs repeat themselves."""
SEARCHED = {
    "nvidia-smi": message_table.NVIDIA_SMI,
    "container-error": message_table.CONTAINER,
    "installer-log": message_table.INSTALLER,
    "dmesg": message_table.KERNEL,
}
"""The table of each kind of text."""
HARMLESS = message_table.prepared(data.MESSAGES["harmless"])  # type: ignore[arg-type]


class Unread(NamedTuple):
    """A line with error words that no message explains, and the key of its program."""

    line: Line
    program: str | None
    words: list[StatusWord]

    @property
    def weight(self) -> int:
        """How much the line says."""
        points = (STRONG, 2), (GPU_WORD, 2)
        return (
            sum(value for pattern, value in points if pattern.search(self.line.text))
            + 2 * bool(self.words)
            + bool(self.program)
        )


def suspicious(text: str) -> list[Line]:
    """Return the lines with error words, without those that say that there is none."""
    found = [line for line in lines_of(text) if ERROR_WORD.search(HEALTHY.sub("", line.text))]
    return found[:MOST]


def is_known(kind: str, text: str, program: str | None) -> bool:
    """Return True if a message of the table matches in a line, however it was judged.

    Beside an answer of nvidia-smi only messages about single GPUs are judged.
    """
    small = text.lower()
    other = PROGRAMS[program].kind if program else None
    tables = {SEARCHED[kind], SEARCHED.get(other or "", SERVICE), SERVICE}
    rows = [
        entry
        for name in tables
        for entry in message_table.table(name)
        if not is_general(entry)
        and entry.program in (None, program)
        and (kind != "nvidia-smi" or entry.code in smi.OF_ONE_GPU)
    ]
    return bool(message_table.matches(HARMLESS, text, small)) or any(
        message_table.matches(entry.patterns, text, small) for entry in rows
    )


def is_general(entry: Entry) -> bool:
    """Return True for rows that say of any program that its failure is not about GPUs."""
    return entry.code == "container_other"


def unread(kind: str, text: str, lines: list[Line] | None = None) -> list[Unread]:
    """Return the lines with error words that no message explains, in the order of the text.

    ``lines``: those of the text that are messages, where others are values and names.
    """
    given = {line.number for line in lines} if lines is not None else None
    marked = [line for line in suspicious(text) if given is None or line.number in given]
    if not marked:
        return []
    whole = {line.number: line.text for line in lines_of(text)}
    own = programs.programs_of(lines if lines is not None else lines_of(text), {line.number for line in marked})
    found = []
    for line in marked:
        program = own.get(line.number)
        # A message that a terminal or program broke is known with its other half.
        halves = " ".join((whole.get(line.number - 1, ""), line.text, whole.get(line.number + 1, "")))
        if not is_known(kind, line.text, program) and not (
            is_known(kind, halves, program) and is_broken(kind, halves, line, program)
        ):
            found.append(Unread(line, program, status_words.find(line.text, program)))
    return found


def left_over(kind: str, text: str, found: list[Explanation], lines: list[Line] | None = None) -> list[Unread]:
    """Return the unread lines that are worth a word beside the problems of a text.

    Those of a program of which a problem is known are its consequences.
    """
    left = unread(kind, text, lines)
    taken = {one.line for one in found}
    lines_found = {one.line for one in found if one.severity != INFO}
    explained = {family(programs.program_of(line.text)) for line in lines_of(text) if line.number in lines_found}
    return [
        one for one in left if one.line.number not in taken and not (one.program and family(one.program) in explained)
    ]


def family(program: str | None) -> str | None:
    """Return the kind of a program's texts, or the program: dpkg repeats a failure of DKMS."""
    return (PROGRAMS[program].kind or program) if program else None


def is_broken(kind: str, halves: str, line: Line, program: str | None) -> bool:
    """Return True if a message is known only together with the lines before and behind it."""
    before, _, behind = halves.partition(line.text)
    return not is_known(kind, before, program) and not is_known(kind, behind, program)


def of_services(text: str) -> list[Found]:
    """Return the known messages of programs beside the driver, each in a line of its program."""
    rows = message_table.possible(SERVICE, text.lower())
    if not rows:
        return []
    lines = lines_of(text)
    marked = {line.number for line in suspicious(text)}
    own = programs.programs_of(lines, marked)
    found: list[Found] = []
    seen: set[str] = set()
    for line, behind in zip(lines, [*lines[1:], Line(0, "")], strict=True):
        program = own.get(line.number)
        fitting = [row for row in rows if row.program == program and row.code not in seen]
        if line.number not in marked or not fitting:
            continue
        # A terminal or mailer may have broken the line.
        continued = own.get(behind.number) is None and not programs.LOGGED.search(behind.text)
        for flat in (flatten([line]), *([flatten([line, behind])] if continued and behind.text.strip() else [])):
            hits = message_table.find(SERVICE, flat, fitting)
            if hits:
                found += [row for row in hits if row.entry.code not in seen]
                seen |= {row.entry.code for row in hits}
                break
    causes = [row for row in found if not row.entry.consequence]
    return causes or found


def of_words(found: list[Unread], text: str) -> list[Explanation]:
    """Return what the status words of unread lines mean: the most informative line of each program."""
    best: dict[str | None, Unread] = {}
    for one in found:
        if one.words and is_relevant(one) and (one.program not in best or rank(one) < rank(best[one.program])):
            best[one.program] = one
    return [of_word(one, text) for one in best.values()]


SPECIAL = ("nv_status", "nvml", "cuda", "dcgm")
"""Vocabularies of NVIDIA's own programs."""
ABOUT_ALL = ("kernel", "systemd", "modprobe")
"""Programs whose messages are mostly about other things than GPUs."""


def is_relevant(one: Unread) -> bool:
    """Return True if a status concerns GPUs: by its vocabulary, its program or the words beside it."""
    named = one.program is not None and one.program not in ABOUT_ALL
    return named or one.words[0].vocabulary in SPECIAL or GPU_WORD.search(one.line.text) is not None


def rank(one: Unread) -> tuple[int, int]:
    """Return how special the first status word of a line is, the most special one first, and the line's weight."""
    names = [vocabulary.name for vocabulary in status_words.VOCABULARIES]
    return names.index(one.words[0].vocabulary), -one.weight


UNIT = re.compile(r"\b([\w@.-]{1,60})\.service\b")


def of_word(one: Unread, text: str) -> Explanation:
    """Return the status of a program as an explanation; its remedy says where the program's own log is."""
    word, program = one.words[0], PROGRAMS.get(one.program or "")
    row = data.STATUS_WORDS["actions"][word.action]
    unit = UNIT.search(one.line.text) or UNIT.search(text)
    remedy = fill(
        row["remedy"], {"unit": unit.group(1) if unit else None, "gpu": gpu_argument(address_in(one.line.text))}
    )
    name = program.name if program else "a program"
    cause = "%s: %s (%s)" % (name, word.means, word.shown)
    if program and program.check:
        remedy = "%s; then %s" % (remedy, program.check)
    code = "status_" + word.word.lower().replace("-", "_")
    return Explanation(
        code,
        cause,
        remedy,
        address_in(one.line.text),
        quote(one.line),
        one.line.number,
        row["severity"],
        LIKELY,
        row["asks"],
    )


ADDRESS = re.compile(r"\b((?:[0-9a-fA-F]{4,8}:)[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)\b")


def address_in(text: str) -> str | None:
    """Return the address of a PCI device in a line."""
    match = ADDRESS.search(text)
    return match.group(1) if match else None


def quote(line: Line) -> str:
    """Return a line as a quote; of a long one the message with the error word."""
    flat = flatten([line])
    if len(flat.text) <= LONGEST:
        return flat.text
    match = ERROR_WORD.search(flat.text)
    return flat.quote(match.start(), match.end()) if match else flat.text[:160]


Reader = Callable[[str], list[Explanation]]


def of_other_kinds(kind: str, text: str, readers: dict[str, Reader], known: bool) -> list[Explanation]:
    """Return problems that lines of other kinds report: the kernel's always, others where nothing is known yet."""
    lines = text.split("\n")
    if len(lines) > programs.SHORT and (kind == "dmesg" or not PROGRAMS["kernel"].lines[0].search(text)):
        return []
    kinds = [PROGRAMS[key].kind if key else None for key in map(programs.program_of, lines)]
    found: list[Explanation] = []
    for other in dict.fromkeys(kinds):
        if other and other != kind and (other == "dmesg" or not known):
            part = "\n".join(line if of == other else "" for line, of in zip(lines, kinds, strict=True))
            found += [one for one in readers[other](part) if one.severity != INFO and one.code not in EFFECTS]
    return found


EFFECTS = tuple(entry.code for entry in message_table.table(message_table.KERNEL) if entry.consequence)
"""What the kernel says of a failure whose reason it does not name."""
CONSEQUENCES = (
    "no_such_device",
    "module_load_failed",
    "dkms_failed",
    "invalid_module_format",
    "no_devices",
    "container_other",
    "nvml_failed",
)
"""What other programs say when the kernel's own words name the reason."""


def complete(kind: str, text: str, known: list[Explanation], readers: dict[str, Reader]) -> list[Explanation]:
    """Return the problems of a text with those that other programs' messages and status words show.

    ``known``: what the reader of the kind found. ``readers``: of all kinds.
    """
    found = list(known)
    reasons = of_other_kinds(kind, text, readers, bool(known))
    if reasons:
        found = reasons + [one for one in found if one.code not in CONSEQUENCES]
    rows = [
        row for row in of_services(text) if not (row.entry.consequence and any(one.severity != INFO for one in found))
    ]
    if rows:
        caller, lines = programs.caller(text), {row.line for row in rows}
        # A row of the program says more than one that any program's words match.
        services = [message_table.explanation(row, None, caller) for row in rows]
        found = services + [one for one in found if one.line not in lines or kind != "container-error"]
        found = sorted(found, key=lambda one: SEVERITIES.index(one.severity))
    if not any(one.severity != INFO and one.code not in EFFECTS for one in found):
        found = [one for one in of_words(unread(kind, text), text) if one.severity != INFO] + found
    return found
