"""Version of NVIDIA's kernel module in text that somebody pasted, for gpu-explain."""

import re

from ....module_utils.gpu_ready.system import nvrm_version

BARE = re.compile(r"^(?:[\w./-]+:\s*)?(%s)$" % nvrm_version.VERSION)
LICENCE = re.compile(r"^[ \t\"'>]*(Dual [A-Z]+/[A-Z]+|NVIDIA)[ \t\r\"',]*$", re.MULTILINE)
ABSENT = re.compile(
    r"No such file or directory|not found|could not find|cannot (?:open|access)|not loaded|"
    r"(?:cat|grep|head|less|more|ls|bash|sh): .{0,80}/(?:proc/driver|sys/module)/nvidia/version\S{0,80}:",
    re.IGNORECASE,
)
FORBIDDEN = re.compile(
    r"Permission denied|Keine Berechtigung|Permission non accord|Permiso denegado|Operation not permitted", re.I
)
"""The file exists, but may not be read."""


def parse_pasted_version(text: str) -> nvrm_version.DriverVersion | None:
    """Parse /proc/driver/nvidia/version, the output of modinfo, or /sys/module/nvidia/version."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|[\ufeff\x00\u200b`]|\*\*", "", text).replace("\u00a0", " ")
    text = re.sub(r"\\[nt](?=\w+:|\\)", "\n", text)
    found = nvrm_version.read_proc_version(text)
    if found is not None:
        return found
    info = nvrm_version.read_modinfo(text)
    if info.version:
        found = nvrm_version.version_of(info.version, info.flavour, None)
        return found._replace(tegra=True) if nvrm_version.TEGRA_BUILD.search(info.vermagic or "") else found
    licence = LICENCE.search(text)
    for line in text.splitlines():
        match = BARE.match(line.strip().strip("\"',").strip())
        if match:
            return nvrm_version.version_of(
                match.group(1), nvrm_version.flavour_of(licence.group(1)) if licence else None, None
            )
    return None


def reports_absence(text: str) -> bool:
    """Return True if the text is the message that the file does not exist: the module is not loaded."""
    return bool(ABSENT.search(text)) and not FORBIDDEN.search(text)
