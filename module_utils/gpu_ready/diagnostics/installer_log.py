"""Logs of nvidia-installer, DKMS and the package managers that call it: did it fail, why, for which driver and kernel.

The installer lists many possible causes, its warnings and answered questions are no failures, and its last message
is a consequence. Therefore a log is parsed entry by entry.
"""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import message_table
from .message_table import INSTALLER, Explanation, Found

STARTS = re.compile(
    r"^(?:ERROR: |WARNING: |-> |Error! |Using built-in|DKMS |make(?:\[\d+\])?: |dpkg: |Building |Consult |# "
    r"|\[ *\d+\.\d+\])"
)
OUTER = re.compile(r"^[>\s|]*(?:\w{3} [ \d]\d [\d:]{8} \S+ [\w./-]+(?:\[\d+\])?: )?(?:\S+T[\d:.]+\S* )?(?=\S)")
CONTINUED = re.compile(
    r"\(Answer: '?(?:Continue|Yes|Install|Ignore)|Proceeding with installation despite", re.IGNORECASE
)
DESPITE = re.compile(
    r"(?:Proceeding with|Continuing) installation despite the presence of (?:a )?(Nouveau|loaded)", re.I
)
COMPLETE = message_table.prepared([r"\) is now complete", r"^DKMS: install completed"], re.MULTILINE)
FAILED = message_table.prepared(
    [
        r"Installation has failed",
        r"^ERROR: ",
        r"^Error! ",
        r"bad exit status",
        r"subprocess returned error",
        r"The installation was canceled",
        r"# exit code: [1-9]",
        r"\*\*\* .{0,300}Error \d",
        r"\*\*\* .{0,300}Stop\.",
        r"version check failed",
        r"Failed CC version check",
        r"Aborting installation",
        r"\(Answer: Abort",
        r"could not insert",
        r"Error in check ?sums",
        r"No space left on device",
        r"must be run as root",
        r"Sub-process \S{1,80} returned an error",
        r"^\[ERROR\]",
        r"^E: ",
        r"^dpkg: error ",
        r"\[FAILED\]",
        r"\.run: (?:line )?\d+: .{0,20}syntax error",
        r"cannot execute binary file",
        r"Failed to verify gcc version",
    ],
    re.MULTILINE,
)
VERSION = r"(\d{2,3}\.\d+(?:\.\d+)?)(?![\w.]*-generic)\b"
VERSIONS = message_table.prepared(
    [
        pattern % {"v": VERSION}
        for pattern in (
            r"installer version: %(v)s",
            r"NVIDIA driver version %(v)s",
            r"make\.log for nvidia[\w-]{0,40}?[-/]%(v)s for kernel",
            r"/var/lib/dkms/nvidia[\w-]{0,40}/%(v)s/",
            r"\bnvidia(?:-[a-z]+|-legacy-\d+xx|-tesla(?:-\d+)?){0,4}[-/ ]%(v)s",
            r"NVIDIA-Linux-\w+-%(v)s",
            r"\(version: %(v)s\)",
            r"by the (?:NVIDIA )?%(v)s (?:NVIDIA )?Linux graphics driver",
            r"-m nvidia[\w-]{0,40} -v %(v)s",
            r"nvidia[\w-]{0,40} \((?:\d+:)?%(v)s[-~+)]",
        )
    ]
)
RELEASE = r"([2-9]\.\d+[\w.+~-]*\w)"
KERNELS = message_table.prepared(
    [
        pattern % {"k": RELEASE}
        for pattern in (
            r"module build on kernel:? %(k)s",
            r"for kernel %(k)s",
            r"headers for (?:the )?(?:target )?kernel %(k)s",
            r"KERNEL_UNAME=%(k)s",
            r"--kernel-name=%(k)s",
            r"Building (?:initial )?module for %(k)s",
            r"Building for %(k)s",
            r"-k %(k)s",
            r"/lib/modules/%(k)s/",
            r"/usr/src/(?:linux-headers-|kernels/)%(k)s",
            r"kernel '%(k)s'",
            r"Linux kernel version %(k)s",
        )
    ]
)
PACKAGES = message_table.prepared(
    [
        pattern
        for pattern in (
            r"error processing package ([\w.+:-]+) \(--",
            r"scriptlet in rpm package ([\w.+-]+)",
            r"%(?:post|pre|trigger)\w*\(([\w.+-]+?)-\d",
            r"have the package '([\w.+-]+)' installed",
            r"Please install the ([\w.+-]+) package",
        )
    ]
)
WARNS = "no_supported_gpu"
"""The one cause that a mere warning names."""


class Part(NamedTuple):
    """One entry of a log: where it begins, its text, whether it is a warning or a question answered with yes."""

    position: int
    text: str
    warning: bool
    continued: bool


class Cause(NamedTuple):
    """A cause that a log names, and where."""

    position: int
    found: Found


def parts(text: str) -> List[Part]:
    """The entries of a log: a line without a beginning of its own continues the entry before it."""
    blocks: List[List[str]] = [[]]
    for line in message_table.plain(text).splitlines():
        line = line[OUTER.match(line).end() :] if OUTER.match(line) else line  # type: ignore[union-attr]
        if STARTS.match(line):
            blocks.append([])
        blocks[-1].append(line)
    found = []
    for number, block in enumerate(blocks):
        flat = "\n".join(block)
        found.append(
            Part(number, flat, flat.startswith("WARNING: "), bool(CONTINUED.search(message_table.joined(flat))))
        )
    return found


def matches(part: Part) -> List[Cause]:
    """The causes that an entry names, also where a narrow terminal broke its words."""
    causes = message_table.find(INSTALLER, message_table.joined(part.text))
    if not causes and "\n" in part.text:
        causes = message_table.find(INSTALLER, message_table.glued(part.text))
    return [Cause(part.position, found) for found in sorted(causes, key=lambda row: row.position)]


def failed(entries: List[Part]) -> bool:
    """True if a log reports a failure."""
    lines = "\n".join(part.text for part in entries if not part.continued)
    for spelled in (lines, message_table.glued(lines)):
        if message_table.matches(FAILED, spelled, spelled.lower()):
            return not complete(lines)
    return False


def complete(lines: str) -> bool:
    """True if a log ends with a finished installation."""
    ends = [match.end() for match in message_table.matches(COMPLETE, lines, lines.lower())]
    return bool(ends) and "Installation has failed" not in lines[max(ends) :]


def causes(text: str) -> Tuple[bool, List[Cause]]:
    """True if the log reports a failure, and the causes in the order of the log.

    Consequences count if there is nothing else, warnings if there is no error.
    """
    entries = parts(text)
    certain = [cause for part in entries if not part.warning and not part.continued for cause in matches(part)]
    warned = [cause for part in entries if part.warning for cause in matches(part)]
    hints = [cause for cause in warned if cause.found.entry.code == WARNS]
    marked = failed(entries)
    wrong = marked or (any(not is_hint(cause) for cause in certain) and not complete(text))
    if not wrong:
        certain = [cause for cause in certain if is_hint(cause)]
    elif all(cause.found.entry.consequence for cause in certain):
        despite = {word.lower() for word in DESPITE.findall(message_table.joined(text))}
        past = {"nouveau": "nouveau_in_use", "loaded": "module_in_use"}
        done = {past[word] for word in despite}
        certain += [cause for cause in warned if not is_hint(cause) and cause.found.entry.code not in done]
    found = sorted(certain + hints, key=lambda cause: cause.position)
    if any(not cause.found.entry.consequence and not is_hint(cause) for cause in found):
        found = [cause for cause in found if not cause.found.entry.consequence]
    kept: Dict[str, Cause] = {}
    for cause in found:
        kept.setdefault(cause.found.entry.code, cause)
    return wrong, list(kept.values())


def is_hint(cause: Cause) -> bool:
    """True if a cause is but a warning, with which an installation may well succeed."""
    return cause.found.entry.code == WARNS


def problems(text: str) -> List[Explanation]:
    """The explanations of a log's causes; what was but a warning comes last."""
    found = sorted(causes(text)[1], key=is_hint)
    return [message_table.explanation(cause.found) for cause in found]


def named(patterns: message_table.Patterns, text: str) -> Optional[str]:
    """What the first pattern that matches names, as the lines stand or with broken words."""
    for spelled in (message_table.joined(text), message_table.glued(text)):
        found = message_table.matches(patterns, spelled, spelled.lower())
        if found:
            return found[0].group(1)
    return None


def read(text: str) -> Dict[str, Any]:
    """Read a log: did the installation fail, the causes, and the driver, kernel and package that it names."""
    wrong, found = causes(text)
    return {
        "installer_failed": wrong,
        "causes": [cause.found.entry.names for cause in found],
        "driver_version": named(VERSIONS, text),
        "kernel": named(KERNELS, text),
        "package": named(PACKAGES, text),
    }
