"""Texts that tell version and flavour of the NVIDIA module: /proc/driver/nvidia/version, modinfo, sysfs."""

import re
from typing import Dict, NamedTuple, Optional

OPEN, PROPRIETARY = "open", "proprietary"
VERSION = r"(?:1\.0-\d{4}|\d{1,4}\.\d{1,3}(?:\.\d{1,3})?)"
ARCH = r"x86_64|x86|i[3-6]86|aarch64|arm64|armv\w+|ARM|ppc64le|sbsa"
NVRM = re.compile(
    r"NVIDIA\s+(?:UNIX|Linux)\s+(?:(?P<open>Open\s+Kernel\s+Module)(?:\s+for\s+(?P<arch1>[\w-]+))?|"
    r"(?P<arch2>[\w-]+)\s+(?:NVIDIA\s+)?Kernel\s+Module)(?:\s+for\s+[\w-]+)?[\s,]+(?P<version>%s)(?![\w.])" % VERSION,
    re.IGNORECASE,
)
BARE = re.compile(r"^(?:[\w./-]+:\s*)?(%s)$" % VERSION)
FIELD = re.compile(r"(?:[\w.-]+:\s+)?([a-z_]+):\s*(\S.*)?$")
WRAPPING = " \t\r\"'>|,"
"""What surrounds a line of modinfo in quotes, tables and logs; stripped by hand, a pattern would go back and forth."""
LICENCE = re.compile(r"^[ \t\"'>]*(Dual [A-Z]+/[A-Z]+|NVIDIA)[ \t\r\"',]*$", re.MULTILINE)
ABSENT = re.compile(
    r"No such file or directory|not found|could not find|cannot (?:open|access)|not loaded|"
    r"(?:cat|grep|head|less|more|ls|bash|sh): .*/(?:proc/driver|sys/module)/nvidia/version\S*:",
    re.IGNORECASE,
)
FORBIDDEN = re.compile(
    r"Permission denied|Keine Berechtigung|Permission non accord|Permiso denegado|Operation not permitted", re.I
)
"""The file is there, whatever it says."""
TEGRA = range(20, 40)
"""Modules of Jetson boards carry the number of the L4T release (32 to 39), which is no desktop branch."""
TEGRA_BUILD = re.compile(r"\(\w+@mobile-|-tegra\b")
"""Marks of the builds for Jetson boards that carry a number like a desktop branch's (540.4.0)."""


class DriverVersion(NamedTuple):
    """Version, branch, flavour and machine of a module; ``tegra``: a Jetson module with an L4T number."""

    version: str
    major: int
    flavour: Optional[str]
    arch: Optional[str]
    tegra: bool


class ModuleInfo(NamedTuple):
    """What modinfo says of a module file; None for what it does not say."""

    version: Optional[str]
    flavour: Optional[str]
    signer: Optional[str]
    license: Optional[str]
    vermagic: Optional[str]


def read_proc_version(text: str) -> Optional[DriverVersion]:
    """Read /proc/driver/nvidia/version in any wrapping people paste it in; None where it names no module."""
    match = NVRM.search(text)
    if match is None:
        return None
    flavour = OPEN if match.group("open") else PROPRIETARY
    found = made(match.group("version"), flavour, match.group("arch1") or match.group("arch2"))
    return found._replace(tegra=True) if TEGRA_BUILD.search(text, match.end()) else found


def made(version: str, flavour: Optional[str], arch: Optional[str]) -> DriverVersion:
    """Return a version with what follows from it."""
    major = int(version.split(".")[0])
    return DriverVersion(version, major, flavour, arch, major in TEGRA)


def read_modinfo(text: str) -> ModuleInfo:
    """Read the output of modinfo for nvidia.ko; its licence tells the flavour."""
    fields: Dict[str, str] = {}
    for line in text.splitlines():
        match = FIELD.match(line.strip(WRAPPING))
        if match:
            fields.setdefault(match.group(1), (match.group(2) or "").strip())
    licence = fields.get("license")
    version = re.match(r"(%s)\b" % VERSION, fields.get("version", ""))
    return ModuleInfo(
        version.group(1) if version else None,
        flavour_of(licence),
        fields.get("signer") or None,
        licence,
        fields.get("vermagic"),
    )


def flavour_of(licence: Optional[str]) -> Optional[str]:
    """Return the flavour that a module's licence means."""
    if not licence:
        return None
    if re.search(r"\b(MIT|GPL|BSD)\b", licence):
        return OPEN
    return PROPRIETARY if "nvidia" in licence.lower() else None


def read(text: str) -> Optional[DriverVersion]:
    """Read any of the texts: /proc/driver/nvidia/version, modinfo, /sys/module/nvidia/version."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|[\ufeff\x00\u200b`]|\*\*", "", text).replace("\u00a0", " ")
    text = re.sub(r"\\[nt](?=\w+:|\\)", "\n", text)
    found = read_proc_version(text)
    if found is not None:
        return found
    info = read_modinfo(text)
    if info.version:
        found = made(info.version, info.flavour, None)
        return found._replace(tegra=True) if TEGRA_BUILD.search(info.vermagic or "") else found
    licence = LICENCE.search(text)
    for line in text.splitlines():
        match = BARE.match(line.strip().strip("\"',").strip())
        if match:
            return made(match.group(1), flavour_of(licence.group(1)) if licence else None, None)
    return None


def absent(text: str) -> bool:
    """Return whether the text says that the module is not loaded (the file does not exist)."""
    return bool(ABSENT.search(text)) and not FORBIDDEN.search(text)
