"""Logs of nvidia-installer, DKMS and the package managers that call it: did it fail, why, for which driver and kernel.

The installer lists many possible causes, its warnings and answered questions are no failures, and its last message
is a consequence. Therefore a log is parsed entry by entry.
"""

import re
from typing import Any, NamedTuple

from . import message_table, text_lines
from .message_table import INSTALLER, Entry, Explanation, Found
from .text_lines import Line, flatten, glued, lines_of

STARTS = re.compile(
    r"^(?:ERROR: |WARNING: |-> |Error! |Using built-in|DKMS |make(?:\[\d+\])?: |dpkg: |Building |Consult |# "
    r"|\[ *\d+\.\d+\])"
)
OUTER = re.compile(
    r"^[>\s|]*(?:\d{4}/\d\d/\d\d [\d:]{8} akmods\w*: )?(?:\w{3} [ \d]\d [\d:]{8} \S+ [\w./-]+(?:\[\d+\])?: )?"
    r"(?:\S+T[\d:.]+\S* )?(?=\S)"
)
"""What akmods, syslog and journald write before a line."""
CONTINUED = re.compile(
    r"\(Answer: '?(?:Continue|Yes|Install|Ignore)|Proceeding with installation despite", re.IGNORECASE
)
DESPITE = re.compile(
    r"(?:Proceeding with|Continuing) installation despite the presence of (?:a )?(Nouveau|loaded)", re.I
)
COMPLETE = message_table.prepared(
    [
        r"\) is now complete",  # nvidia-installer: install-from-cwd.c
        r"^DKMS: install completed",  # DKMS before 3
        r"^depmod\.{3,9}$",  # DKMS 3: a failure would follow on this line
        r"^Complete!$",  # dnf, yum
        r"^Building and installing nvidia\S{0,40} ?\[  OK  \]",  # akmods
        r"^# exit code: 0$",  # DKMS 3: make.log
    ],
    re.MULTILINE,
)
"""Ends of a successful run. A log without one that shows no failure may be cut off."""
SCRIPTLET = re.compile(r"Error in (?:PRE|POST)\w{2,5} scriptlet in rpm package \S{0,60}nvidia", re.IGNORECASE)
"""Such a package is installed all the same, and dnf ends with "Complete!", but nobody built the module."""
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
        r"\*\*\* \[[^\]]{0,300}\] \S{1,20} \d",
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
        r"^E: (?!Can not write log)",  # apt without /dev/pts: it installs all the same
        r"^dpkg: error ",
        r"\[ ?FAILED ?\]",
        r"^error: Failed build dependencies",
        r"^Error: (?:Transaction|Failed|Unable|\n Problem)",
        r"^Problem(?: \d+)?: ",
        r"\.run: (?:line )?\d+: .{0,20}syntax error",
        r"cannot execute binary file",
        r"Failed to verify gcc version",
        SCRIPTLET.pattern,
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
            # Names of packages of dpkg, rpm (NAME-EPOCH:VERSION-RELEASE) and Nix (nvidia-x11-VERSION-KERNEL).
            r"\b(?:nvidia|cuda-drivers)(?:-legacy-\d+xx|-tesla(?:-\d+)?|-[a-z][a-z0-9]*|-\d{3}){0,6}(?::\w+)?"
            r"(?:[-/ =]|-\d+:)%(v)s",
            r"(?:nvidia|cuda-drivers|libcuda)[\w.+:-]{0,60} \([<>=]{1,2} (?:\d+:)?%(v)s",
            r"(?:nvidia|cuda-drivers)[\w.+-]{0,60} (?:[<>=]{1,2} )?(?:\d+:)?%(v)s-",
            r"nvidia[\w/.+-]{0,80}/%(v)s-\d+-for-",
            r"NVIDIA-Linux-\w+-%(v)s",
            r"\(version: %(v)s\)",
            r"by the (?:NVIDIA )?%(v)s (?:NVIDIA )?Linux graphics driver",
            r"-m nvidia[\w-]{0,40} -v %(v)s",
            r"(?:nvidia|cuda-drivers)[\w-]{0,40} \((?:\d+:)?%(v)s[-~+)]",
        )
    ]
)
RELEASE = r"([2-9]\.\d+[\w.+~-]*\w)"
KERNELS = message_table.prepared(
    [
        pattern % {"k": RELEASE}
        for pattern in (
            # The second magic belongs to the running kernel.
            r"version magic '[^']{0,200}' should be '%(k)s ",
            r"/proc/version string: \"?Linux version %(k)s",
            r"-for-%(k)s\.failed\.log",
            r"\bon kernel:? %(k)s",
            r"/var/lib/dkms/[\w-]{1,60}/[\w.]{1,40}/%(k)s/",
            r"for kernel[ -]%(k)s",
            r"headers for (?:the )?(?:target )?kernel %(k)s",
            r"KERNEL_UNAME=%(k)s",
            r"--kernel-name=%(k)s",
            r"Building (?:initial )?module for %(k)s",
            r"Building for %(k)s",
            r"-k %(k)s",
            r"/lib/modules/%(k)s",
            # Debian's package "-common" has what all kinds of its kernels share.
            r"/usr/src/(?:linux-headers-(?!\S{1,60}-common\b)|kernels/)%(k)s",
            r"kernel '%(k)s'",
            r"Linux kernel version %(k)s",
            r"nvidia-x11-\d+\.[\d.]+-(\d+\.\d+(?:\.\d+)?(?:-\w+)?)",
            r"compile modules for %(k)s",
            r"kmods exist for %(k)s",
            r"rebuilding \S{1,120} for kernel\(s\) %(k)s",
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
BUILD = "dkms_build_failed"
WARNS = "no_supported_gpu"
"""The one cause that a mere warning names."""


class Part(NamedTuple):
    """One entry of a log: its lines, its text, whether it is a warning or a question answered with yes."""

    lines: list[Line]
    text: str
    warning: bool
    continued: bool


def parts(text: str) -> list[Part]:
    """Return the entries of a log: a line without a beginning of its own continues the entry before it."""
    blocks: list[list[Line]] = [[]]
    for number, line in lines_of(text):
        line = line[OUTER.match(line).end() :] if OUTER.match(line) else line  # type: ignore[union-attr]
        if STARTS.match(line):
            blocks.append([])
        blocks[-1].append(Line(number, line))
    found = []
    for block in blocks:
        text = "\n".join(line.text for line in block)
        found.append(Part(block, text, text.startswith("WARNING: "), bool(CONTINUED.search(flatten(block).text))))
    return found


def matches(part: Part, rows: list[Entry]) -> list[Found]:
    """Return the causes that an entry names, also where a narrow terminal broke its words."""
    causes = message_table.find(INSTALLER, flatten(part.lines), rows)
    if not causes and len(part.lines) > 1:
        causes = message_table.find(INSTALLER, flatten(part.lines, ""), rows)
    return sorted(causes, key=lambda row: row.position)


def failed(entries: list[Part]) -> bool:
    """Return True if a log reports a failure and does not end with success."""
    lines = "\n".join(part.text for part in entries if not part.continued)
    for spelled in (lines, glued(lines).text):
        if message_table.matches(FAILED, spelled, spelled.lower()):
            return not complete(lines)
    return False


def complete(lines: str) -> bool:
    """Return True if a log ends with a finished installation."""
    if SCRIPTLET.search(lines):
        return False
    ends = [match.end() for match in message_table.matches(COMPLETE, lines, lines.lower())]
    return bool(ends) and "Installation has failed" not in lines[max(ends) :]


def causes(text: str) -> tuple[bool, list[Found]]:
    """Return True if the log reports a failure, and the causes in the order of the log.

    Consequences count if there is nothing else, warnings if there is no error.
    """
    entries = parts(text)
    spelled = [flatten(part.lines, separator).text for part in entries for separator in (" ", "")]
    rows = message_table.possible(INSTALLER, "\n".join(spelled).lower())  # a long log has few of them
    certain = [cause for part in entries if not part.warning and not part.continued for cause in matches(part, rows)]
    warned = [cause for part in entries if part.warning for cause in matches(part, rows)]
    hints = [cause for cause in warned if cause.entry.code == WARNS]
    marked = failed(entries)
    wrong = marked or (any(not is_hint(cause) for cause in certain) and not complete(text))
    if not wrong:
        certain = [cause for cause in certain if is_hint(cause)]
    elif all(cause.entry.consequence for cause in certain):
        despite = {word.lower() for word in DESPITE.findall(text_lines.joined(text))}
        past = {"nouveau": "nouveau_in_use", "loaded": "module_in_use"}
        done = {past[word] for word in despite}
        certain += [cause for cause in warned if not is_hint(cause) and cause.entry.code not in done]
    found = sorted(certain + hints, key=lambda cause: cause.line or 0)
    if any(not cause.entry.consequence and not is_hint(cause) for cause in found):
        found = [cause for cause in found if not cause.entry.consequence]
    kept: dict[str, Found] = {}
    for cause in found:
        first = kept.setdefault(cause.entry.code, cause)
        kept[cause.entry.code] = first._replace(values={**cause.values, **first.values})  # a later line names the log
    if any(cause.entry.names == BUILD for cause in kept.values()):
        kept.pop("packages_conflict", None)  # the package manager says so of a package whose module was not built
    return wrong, list(kept.values())


def is_hint(cause: Found) -> bool:
    """Return True if a cause is but a warning, with which an installation may well succeed."""
    return cause.entry.code == WARNS


def problems(text: str) -> list[Explanation]:
    """Return the explanations of a log's causes."""
    return explanations(causes(text)[1])


def explanations(found: list[Found]) -> list[Explanation]:
    """Return the explanations with mere warnings last."""
    return [message_table.explanation(cause) for cause in sorted(found, key=is_hint)]


def named(patterns: message_table.Patterns, text: str) -> str | None:
    """Return what the first pattern that matches names, as the lines stand or with broken words."""
    for spelled in (text_lines.joined(text), glued(text).text):
        found = message_table.matches(patterns, spelled, spelled.lower())
        if found:
            return found[0].group(1)
    return None


def read(text: str) -> dict[str, Any]:
    """Read a log: did the installation fail, the causes, problems, and the driver, kernel and package that it names.

    ``installer_failed`` is None if the log shows neither a failure nor the end of a successful installation; a warning
    that names a cause is a report without a failure. ``complete``: the log shows the end of a successful installation.
    """
    wrong, found = causes(text)
    done = not wrong and complete(text_lines.plain(text))
    return {
        "installer_failed": wrong or (False if done or found else None),
        "complete": done,
        "causes": [cause.entry.names for cause in found],
        "driver_version": named(VERSIONS, text),
        "kernel": named(KERNELS, text),
        "package": named(PACKAGES, text),
        "problems": explanations(found),
    }
