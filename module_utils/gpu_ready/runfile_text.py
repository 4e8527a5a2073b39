"""Texts of NVIDIA's .run installer: its head, its checksum file, its backup log, its log, and its options by release.

What the options of each release are, and what silent mode answers by itself, is read in NVIDIA/nvidia-installer
(tags 470.256.02 to 590.48.01).
"""

import re
from typing import List, NamedTuple, Optional, Tuple

from . import driver, messages, versions

OPEN_MODULES = (515,)
NO_DKMS = (520, 56)
RUNNING_DRIVER = (545, 23)
SKIP_LOAD = (550, 40)
MODULE_TYPE = (555, 42)
"""First releases with open modules, --no-dkms, --allow-installation-with-running-driver, --skip-module-load and
--kernel-module-type; an option that a release does not know ends its installer."""
LOG = "/var/log/nvidia-installer.log"


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
        part = "kernel-open" if wish.flavour == driver.OPEN else "kernel"
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


def read_backup_log(text: str) -> Optional[str]:
    """Return the version that the installer's backup log names: "1.0-5809505 (580.95.05)" or the version alone."""
    first = text.splitlines()[0].strip() if text.strip() else ""
    match = re.match(r"^(?:1\.0-\d+ \()?(\d{2,4}\.\d+(?:\.\d+)?)\)?$", first)
    return match.group(1) if match else None


CAUSES: List[Tuple[str, str, str, str]] = [
    (
        "secure_boot_key_rejected",
        r"not signed by a key that is trusted|Key was rejected by service|Required key not available",
        "Secure Boot accepts only modules that are signed with an enrolled key",
        "enrol the key that DKMS signs with (mokutil --import, then confirm it at the console)",
    ),
    (
        "nouveau_in_use",
        r"while Nouveau is loaded|Nouveau kernel driver is currently in use",
        "nouveau drives a GPU",
        "reboot the host so that its blacklist takes effect, then run again",
    ),
    (
        "module_in_use",
        r"NVIDIA kernel module '[^']+' appears to (?:be already|already be) loaded"
        r"|Kernel module load error: File exists",
        "the loaded NVIDIA driver is in use",
        "stop what uses the GPUs (persistence daemon, containers, X) or reboot the host",
    ),
    (
        "other_install_present",
        r"installed previously using a different installer|presence of an alternate driver installation",
        "packages of a driver are installed",
        "remove them, or set nvidia_driver_source to a package source",
    ),
    (
        "x_server_running",
        r"appear to be running an X server",
        "an X server is running",
        "stop the display manager (systemctl isolate multi-user.target), then run again",
    ),
    (
        "build_tool_missing",
        r"Unable to find the development tool|do not appear to have libc header files",
        "a tool for building kernel modules is missing",
        "install gcc, make and the C library's headers",
    ),
    (
        "kernel_headers_missing",
        r"Unable to find the kernel source tree|kernel header file '[^']*' does not exist"
        r"|kernel output path '[^']*' does not exist|kernel headers for kernel \S+ cannot be found",
        "the headers of the kernel are missing",
        "install the headers of exactly this kernel",
    ),
    (
        "compiler_mismatch",
        r"[Cc]ompiler version check failed|CC version check|was not found in the /proc/version string"
        r"|unrecognized command[- ]line option",
        "the compiler is another one than the kernel was built with",
        "install the kernel's compiler as gcc",
    ),
    ("no_space", r"No space left on device", "a disk is full", "make room under /usr, /lib/modules and /var/lib/dkms"),
    (
        "no_place_for_programs",
        r"Permission denied|Unable to execute programs in the temporary directory",
        "the temporary folder cannot hold programs (mounted noexec)",
        "give the host a /var/tmp without noexec",
    ),
    (
        "no_such_device",
        r"Kernel module load error: No such device",
        "the driver finds no GPU that it can drive",
        "choose the branch and flavour of this host's GPUs, and see whether vfio-pci or nouveau has them",
    ),
    (
        "invalid_module_format",
        r"version magic|Exec format error|Invalid module format",
        "the module was built for another kernel",
        "install the headers of exactly the running kernel",
    ),
    (
        "dkms_build_failed",
        r"implicit declaration of function|has no member named|too (?:few|many) arguments to function"
        r"|incompatible pointer",
        "this driver does not know this kernel's interfaces",
        "choose a newer driver branch, or boot an older kernel",
    ),
    (
        "dkms_build_failed",
        r"through DKMS|Failed to run `\S*dkms|Bad return status for module build",
        "DKMS could not build or register the modules",
        "read /var/lib/dkms/nvidia/*/build/make.log on the host",
    ),
    (
        "option_unknown",
        r"Invalid commandline|unrecognized option",
        "the installer does not know an option",
        "choose a release between 470 and the newest of the catalog",
    ),
    (
        "flavour_not_packaged",
        r"is not present in this installer package|not a valid kernel module type",
        "it has no modules of this flavour",
        "choose the other nvidia_driver_flavour",
    ),
    ("archive_corrupt", r"[Ee]rror in check ?sums|Error in MD5", "the archive is damaged", "fetch it again"),
    ("not_root", r"must be run as root", "it did not run as root", "let Ansible become root"),
]
"""(code, pattern, cause, remedy) of a failed run, causes before consequences."""

MATTERS = re.compile(r"^ERROR: |^\[ERROR\]|Kernel module load error|\berror:|Error \d+|\*\*\* |No space left|Error! ")
CONSEQUENCE = re.compile(r"Installation has failed|Please see the log entries|recipe for target|Leaving directory")
MOST = 220


def lines_that_matter(text: str, most: int = 4) -> List[str]:
    """Return the first lines of a log that tell of a failure, shortened; the installer's last word is none."""
    found = []
    for line in text.splitlines():
        if MATTERS.search(line) and not CONSEQUENCE.search(line):
            short = re.sub(r"^(?:\[?ERROR\]?: |-> )+", "", messages.joined(line)).strip()
            short = short if len(short) <= MOST else short[: MOST - 3] + "..."
            if short and short not in found:
                found.append(short)
    return found[:most]


def explain(log: str, printed: str, causes: List[Tuple[str, str, str, str]] = CAUSES) -> messages.Explanation:
    """Return why a run failed, from its log and what it printed; ``detail`` holds the lines that matter.

    Warnings and answered questions of a log are no failures, so its errors are asked first, the whole only then.
    """
    lines = lines_that_matter(log) or lines_that_matter(printed)
    quoted = " / ".join(lines)
    for text in (quoted, messages.joined(log + "\n" + printed)):
        for code, pattern, cause, remedy in causes:
            if re.search(pattern, text):
                return messages.Explanation(code, cause, remedy, quoted or None)
    last = [line.strip() for line in (log + "\n" + printed).splitlines() if line.strip()][-3:]
    said = quoted or " / ".join(last)[-600:] or "it said nothing"
    return messages.Explanation("unknown", "its reason is not known to gpu-ready", "read its log", said)


def sentence(found: messages.Explanation) -> str:
    """Return an explanation in words: cause, the lines that say so, remedy."""
    return "%s%s; %s" % (found.cause, " (%s)" % found.detail if found.detail else "", found.remedy)
