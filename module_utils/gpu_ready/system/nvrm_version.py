"""Version and flavour of NVIDIA's kernel module: parsers of /proc/driver/nvidia/version and modinfo."""

import re
from typing import Dict, NamedTuple, Optional

OPEN, PROPRIETARY = "open", "proprietary"
VERSION = r"(?:1\.0-\d{4}|\d{1,4}\.\d{1,3}(?:\.\d{1,3})?)"
NVRM = re.compile(
    r"NVIDIA\s+(?:UNIX|Linux)\s+(?:(?P<open>Open\s+Kernel\s+Module)(?:\s+for\s+(?P<arch1>[\w-]+))?|"
    r"(?P<arch2>[\w-]+)\s+(?:NVIDIA\s+)?Kernel\s+Module)(?:\s+for\s+[\w-]+)?[\s,]+(?P<version>%s)(?![\w.])" % VERSION,
    re.IGNORECASE,
)
FIELD = re.compile(r"(?:[\w.-]+:\s+)?([a-z_]+):\s*(\S.*)?$")
WRAPPING = " \t\r\"'>|,"
"""Characters around a line of modinfo in quotes, tables and logs."""
TEGRA = range(20, 40)
"""Modules of Jetson boards carry the number of the L4T release (32 to 39), which is no desktop branch."""
TEGRA_BUILD = re.compile(r"\(\w+@mobile-|-tegra\b")
"""Marks of the builds for Jetson boards that carry a number like a desktop branch's (540.4.0)."""


class DriverVersion(NamedTuple):
    """``tegra``: the module of a Jetson board, whose number is its L4T release."""

    version: str
    major: int
    flavour: Optional[str]
    arch: Optional[str]
    tegra: bool


class ModuleInfo(NamedTuple):
    """Fields of modinfo; None where it does not print one. ``parameters``: types by names without NVreg_."""

    version: Optional[str]
    flavour: Optional[str]
    signer: Optional[str]
    vermagic: Optional[str]
    parameters: Dict[str, str]


def read_proc_version(text: str) -> Optional[DriverVersion]:
    """Parse /proc/driver/nvidia/version, however it was wrapped when somebody pasted it; None if it names no module."""
    match = NVRM.search(text)
    if match is None:
        return None
    flavour = OPEN if match.group("open") else PROPRIETARY
    found = version_of(match.group("version"), flavour, match.group("arch1") or match.group("arch2"))
    return found._replace(tegra=True) if TEGRA_BUILD.search(text, match.end()) else found


def version_of(version: str, flavour: Optional[str], arch: Optional[str]) -> DriverVersion:
    major = int(version.split(".")[0])
    return DriverVersion(version, major, flavour, arch, major in TEGRA)


def read_modinfo(text: str) -> ModuleInfo:
    """Parse `modinfo nvidia`; the licence gives the flavour."""
    fields: Dict[str, str] = {}
    for line in text.splitlines():
        match = FIELD.match(line.strip(WRAPPING))
        if match:
            fields.setdefault(match.group(1), (match.group(2) or "").strip())
    version = re.match(r"(%s)\b" % VERSION, fields.get("version", ""))
    return ModuleInfo(
        version.group(1) if version else None,
        flavour_of(fields.get("license")),
        fields.get("signer") or None,
        fields.get("vermagic"),
        dict(re.findall(r"(?m)^parm:\s+NVreg_(\w+):.*\b(\w+)\)?$", text)),
    )


def flavour_of(licence: Optional[str]) -> Optional[str]:
    if not licence:
        return None
    if re.search(r"\b(MIT|GPL|BSD)\b", licence):
        return OPEN
    return PROPRIETARY if "nvidia" in licence.lower() else None
