"""Logs of nvidia-installer, DKMS and the package managers that call it: did it fail, why, for which driver and kernel.

The installer's long sentences name every cause it can think of, its warnings and answered questions are no failures,
and what it says last is a consequence. So a log is read entry by entry.
"""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Pattern

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
COMPLETE = re.compile(r"\) is now complete|^DKMS: install completed|\binstallation finished\b", re.MULTILINE)
FAILED = re.compile(
    r"Installation has failed|^ERROR: |^Error! |bad exit status|subprocess returned error|The installation was canceled"
    r"|# exit code: [1-9]|\*\*\* .{0,300}(?:Error \d|Stop\.)|version check failed|Failed CC version check"
    r"|Aborting installation|\(Answer: Abort|could not insert|Error in check ?sums|No space left on device"
    r"|must be run as root|Sub-process \S+ returned an error",
    re.MULTILINE | re.IGNORECASE,
)
VERSION = r"(\d{2,3}\.\d+(?:\.\d+)?)(?![\w.]*-generic)\b"
VERSIONS = [
    re.compile(pattern % {"v": VERSION}, re.IGNORECASE)
    for pattern in (
        r"installer version: %(v)s",
        r"Installing NVIDIA driver version %(v)s",
        r"make\.log for nvidia[\w-]*?[-/]%(v)s for kernel",
        r"/var/lib/dkms/nvidia[\w-]*/%(v)s/",
        r"\bnvidia(?:-[a-z]+|-legacy-\d+xx|-tesla(?:-\d+)?)*[-/ ]%(v)s",
        r"NVIDIA-Linux-\w+-%(v)s",
        r"\(version: %(v)s\)",
        r"by the (?:NVIDIA )?%(v)s (?:NVIDIA )?Linux graphics driver",
        r"-m nvidia[\w-]* -v %(v)s",
        r"nvidia[\w-]* \((?:\d+:)?%(v)s[-~+)]",
    )
]
RELEASE = r"([2-9]\.\d+[\w.+~-]*\w)"
KERNELS = [
    re.compile(pattern % {"k": RELEASE})
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
    )
]
PACKAGES = [
    re.compile(pattern)
    for pattern in (
        r"error processing package ([\w.+:-]+)",
        r"scriptlet in rpm package ([\w.+-]+)",
        r"%(?:post|pre|trigger)\w*\(([\w.+-]+?)-\d",
        r"have the package '([\w.+-]+)' installed",
        r"Please install the ([\w.+-]+) package",
    )
]
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
    """Return the entries of a log: a line that begins like none goes on with the one before it."""
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
    """Return the causes that an entry names, also where a narrow terminal broke its words."""
    causes = message_table.find(INSTALLER, message_table.joined(part.text))
    if not causes and "\n" in part.text:
        causes = message_table.find(INSTALLER, message_table.glued(part.text))
    return [Cause(part.position, found) for found in sorted(causes, key=lambda row: row.position)]


def failed(text: str) -> bool:
    """Return whether a log tells of a failure."""
    lines = "\n".join(part.text for part in parts(text) if not part.continued)
    complete = list(COMPLETE.finditer(lines))
    for spelled in (lines, message_table.joined(lines), message_table.glued(lines)):
        if FAILED.search(spelled):
            return not complete or "Installation has failed" in lines[complete[-1].end() :]
    return False


def causes(text: str) -> List[Cause]:
    """Return the real causes in the order of the log; consequences only where nothing else is named."""
    entries = parts(text)
    certain = [cause for part in entries if not part.warning and not part.continued for cause in matches(part)]
    warned = [cause for part in entries if part.warning for cause in matches(part)]
    hints = [cause for cause in warned if cause.found.entry.code == WARNS]
    wrong = failed(text) or any(cause.found.entry.code != WARNS for cause in certain)
    if not wrong or (not failed(text) and COMPLETE.search(text)):
        certain = [cause for cause in certain if cause.found.entry.code == WARNS]
    elif not any(not cause.found.entry.consequence for cause in certain):
        despite = {word.lower() for word in DESPITE.findall(message_table.joined(text))}
        past = {"nouveau_in_use"} if "nouveau" in despite else set()
        past |= {"module_in_use"} if "loaded" in despite else set()
        certain += [cause for cause in warned if cause not in hints and cause.found.entry.code not in past]
    found = sorted(certain + hints, key=lambda cause: cause.position)
    roots = [cause for cause in found if not cause.found.entry.consequence]
    kept: Dict[str, Cause] = {}
    for cause in roots if any(cause.found.entry.code != WARNS for cause in roots) or not found else found:
        kept.setdefault(cause.found.entry.code, cause)
    return list(kept.values())


def problems(text: str) -> List[Explanation]:
    """Return the explanations of a log's causes; what was but a warning comes last."""
    found = sorted(causes(text), key=lambda cause: cause.found.entry.code == WARNS)
    return [message_table.explanation(cause.found) for cause in found]


def named(patterns: List[Pattern[str]], text: str) -> Optional[str]:
    """Return what the first pattern that matches names, as the lines stand or with broken words."""
    for spelled in (message_table.joined(text), message_table.glued(text)):
        for pattern in patterns:
            match = pattern.search(spelled)
            if match:
                return match.group(1)
    return None


def read(text: str) -> Dict[str, Any]:
    """Read a log: did the installation fail, the causes, and the driver, kernel and package that it names."""
    found = [cause.found.entry.names for cause in causes(text)]
    wrong = failed(text) or any(code != WARNS for code in found)
    return {
        "installer_failed": wrong,
        "causes": found,
        "driver_version": named(VERSIONS, text),
        "kernel": named(KERNELS, text),
        "package": named(PACKAGES, text),
    }
