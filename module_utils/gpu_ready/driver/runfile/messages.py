"""Texts of NVIDIA's .run installer: its head, its checksum file, its backup log, its log, its options by release.

What the options of each release are, and what silent mode answers by itself, is read in NVIDIA/nvidia-installer
(tags 470.256.02 to 590.48.01).
"""

import re
from typing import List, NamedTuple, Optional, Tuple

from ...base import versions
from ...base.errors import GpuReadyError
from ...diagnostics.message_table import Explanation, joined
from ...system import nvrm_version

OPEN_MODULES = (515,)
NO_DKMS = (520, 56)
RUNNING_DRIVER = (545, 23)
SKIP_LOAD = (550, 40)
MODULE_TYPE = (555, 42)
"""First releases with open modules, --no-dkms, --allow-installation-with-running-driver, --skip-module-load and
--kernel-module-type; an option that a release does not know ends its installer."""
LOG = "/var/log/nvidia-installer.log"
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
"""For installers, uninstallers and DKMS: they look for programs of the system and of administrators."""


class RunfileError(GpuReadyError):
    """What a .run installer brings cannot be installed or removed; one sentence with cause and remedy."""


class Wish(NamedTuple):
    """A driver that is wanted: its version and flavour, and the kernels that get its modules, the first one first."""

    version: str
    flavour: str
    kernels: List[str]
    dkms: bool = True
    opengl: bool = False


def before(version: str, release: Tuple[int, ...]) -> bool:
    """Return whether a driver is older than a release: "535.309.01" is, than (545, 23)."""
    return versions.parse(version) < release


def options(wish: Wish, running: str, folder: str) -> List[str]:
    """Return the arguments of a silent run; ``running`` is the running kernel, ``folder`` for temporary files.

    The module is not loaded and a driver in use not minded where the release can be told so: bringing a driver into
    use is a step of its own. nouveau is not minded either: our own blacklist keeps it away from the next boot on.
    """
    found = ["--silent", "--tmpdir=" + folder, "--no-nouveau-check"]
    if wish.kernels[0] != running:
        found.append("--kernel-name=" + wish.kernels[0])
    if wish.dkms:
        found.append("--dkms")
    elif not before(wish.version, NO_DKMS):
        found.append("--no-dkms")
    if not before(wish.version, MODULE_TYPE):
        found.append("--kernel-module-type=" + wish.flavour)
    elif not before(wish.version, OPEN_MODULES):
        part = "kernel-open" if wish.flavour == nvrm_version.OPEN else "kernel"
        found.append("--kernel-module-build-directory=" + part)
    if not before(wish.version, SKIP_LOAD):
        found.append("--skip-module-load")
    if not before(wish.version, RUNNING_DRIVER):
        found.append("--allow-installation-with-running-driver")
    without = ["--no-opengl-files", "--no-install-libglvnd", "--no-install-compat32-libs"]
    return found if wish.opengl else found + without


def further_options(wish: Wish, running: str, folder: str, kernel: str) -> List[str]:
    """Return the arguments that build the modules for one more kernel, for hosts without DKMS."""
    only = "--kernel-module-only" if before(wish.version, OPEN_MODULES) else "--kernel-modules-only"
    return options(wish._replace(kernels=[running]), running, folder) + [only, "--kernel-name=" + kernel]


def read_head(text: str) -> Optional[Tuple[str, str]]:
    """Return architecture and version that the script before the archive names, None where it is no such installer."""
    if not text.startswith("#!"):
        return None
    match = re.search(r"\bLinux-(x86_64|aarch64|x86)[ -](\d{2,4}\.\d+(?:\.\d+)?)\b", text)
    return (match.group(1), match.group(2)) if match else None


def read_checksum(text: str, name: str, digits: int = 64) -> Optional[str]:
    """Return the checksum of a file from a list of them: "HEX  NAME" in lines, or the number alone."""
    form = r"^([0-9a-fA-F]{%d})(?:\s+[*]?(\S+))?\s*$" % digits
    rows = [re.match(form, line.strip()) for line in text.splitlines()]
    named = [row.group(1).lower() for row in rows if row and (row.group(2) or name).rpartition("/")[2] == name]
    return named[0] if len(set(named)) == 1 else None


MATTERS = re.compile(r"^ERROR: |^\[ERROR\]|Kernel module load error|\berror:|Error \d+|\*\*\* |No space left|Error! ")
CONSEQUENCE = re.compile(r"Installation has failed|Please see the log entries|recipe for target|Leaving directory")
MOST = 220


def lines_that_matter(text: str, most: int = 4) -> List[str]:
    """Return the first lines of a log that tell of a failure, shortened; the installer's last word is none."""
    found = []
    for line in text.splitlines():
        if MATTERS.search(line) and not CONSEQUENCE.search(line):
            short = re.sub(r"^(?:\[?ERROR\]?: |-> )+", "", joined(line)).strip()
            short = short if len(short) <= MOST else short[: MOST - 3] + "..."
            if short and short not in found:
                found.append(short)
    return found[:most]


def explain(log: str, printed: str, causes: Optional[List[Tuple[str, str, str, str]]] = None) -> Explanation:
    """Return why a run failed, from its log and what it printed; ``detail`` holds the words that say so.

    The log is asked first: what was printed only repeats it, or takes its place where there is none. ``causes`` are
    those of another installer: (code, pattern, cause, remedy), causes before consequences.
    """
    from ...diagnostics import messages

    lines = lines_that_matter(log) or lines_that_matter(printed)
    quoted = " / ".join(lines)
    for text in (quoted, joined(log + "\n" + printed)):
        for code, pattern, cause, remedy in causes or []:
            if re.search(pattern, text):
                return Explanation(code, cause, remedy, quoted or None)
    for text in (log, printed) if causes is None else ():
        found = messages.explain("installer-log", text)
        if found:
            return found[0]._replace(detail=found[0].message)
    last = [line.strip() for line in (log + "\n" + printed).splitlines() if line.strip()][-3:]
    said = quoted or " / ".join(last)[-600:] or "it said nothing"
    return Explanation("unknown", "its reason is not known to gpu-ready", "read its log", said)


def sentence(found: Explanation) -> str:
    """Return an explanation in words: cause, the lines that say so, remedy."""
    return "%s%s; %s" % (found.cause, " (%s)" % found.detail if found.detail else "", found.remedy)
