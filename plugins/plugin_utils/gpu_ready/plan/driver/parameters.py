"""Parameters of the kernel module (NVreg_*): the file of modprobe.d with them, and whether the loaded module has them.

modprobe joins the options of its files in the order of the files' names, then the kernel's command line
(libkmod-config.c of kmod: conf_files_insert_sorted, kmod_config_parse_kcmdline). Of a parameter that is given twice,
the kernel keeps the last value (kernel/params.c: parse_args). So our file has a name behind all others.
"""

import re
from typing import NamedTuple

from .....module_utils.gpu_ready.base.nearest import nearest
from .....module_utils.gpu_ready.driver.module_parameters import is_same, to_number
from .....module_utils.gpu_ready.facts.model import Facts
from ...catalog.model import Distribution
from ...catalog.settings import Settings
from ..model import DriverChoice, FileDiff, Refusal, Step
from .model import ModprobeParams

PATH = "/etc/modprobe.d/zz-gpu-ready-nvidia.conf"
PACKAGED = ("/usr/", "/lib/")
"""Packages install files below these directories; the administrator's files are in /etc and /run."""
LINE = r"(?m)^[ \t]*options[ \t]+nvidia(?:[-_](?:current|tesla|legacy)[\w-]*)?[ \t]+((?:\\\n|.)*)"
"""Of Debian's modules with names of their own too. A backslash at its end continues a line."""
SETTING = r"(?<!\S)NVreg_(\w+)=(\"[^\"\n]*\"|\S*)"


class Assignment(NamedTuple):
    """A parameter that a file sets; ``name`` without NVreg_, ``line`` from 1."""

    name: str
    value: str
    line: int


def requested(settings: Settings) -> dict[str, str]:
    """Return the requested values by names without NVreg_, as the module takes them."""
    given = settings.nvidia_driver_module_parameters.items()
    values = {name: str(int(value) if isinstance(value, bool) else value) for name, value in given}
    return dict(sorted((re.sub("^NVreg_", "", name), value) for name, value in values.items()))


def assignments(text: str) -> list[Assignment]:
    return [
        Assignment(name, value.strip('"'), text.count("\n", 0, line.start()) + 1)
        for line in re.finditer(LINE, text)
        for name, value in re.findall(SETTING, line.group(1))
    ]


def file_content(facts: Facts, desired: dict[str, str]) -> str:
    """Return our file of modprobe.d, "" for none.

    It names the module also as Debian does: its archive renames the file, and its `install nvidia` runs modprobe for
    that one (/etc/nvidia/current/nvidia-modprobe.conf). modprobe ignores options of modules that do not exist.
    """
    files = [re.sub(r".*/|\.ko.*", "", path) for path in facts.driver.module_files]
    values = " ".join("NVreg_%s=%s" % (name, '"%s"' % one if ";" in one else one) for name, one in desired.items())
    lines = ["options %s %s\n" % (name, values) for name in sorted({"nvidia", "nvidia-current", *files})]
    return "".join(["# Written by gpu-ready: nvidia_driver_module_parameters\n"] + lines) if desired else ""


def parameter_steps(facts: Facts, settings: Settings, data: Distribution) -> list[Step]:
    desired = requested(settings)
    before, after = facts.driver.options.get(PATH, ""), file_content(facts, desired)
    if before == after:
        return []
    values = ", ".join("NVreg_%s=%s" % item for item in desired.items())
    reason = "the module gets %s when it is loaded" % values if desired else "no parameter is requested any more"
    rebuild = list(data.get("initramfs") or []) if facts.base.initramfs and not facts.base.image else []
    params = ModprobeParams(PATH, after, rebuild or None)
    return [Step("nvidia_driver.parameters", reason, params=params, diff=[FileDiff(PATH, before, after)])]


def outdated(facts: Facts, desired: dict[str, str]) -> list[str]:
    """Return in what the loaded module differs from the request, for messages.

    The driver shows all numbers and some strings. Whether it has another string is known by our file alone.
    """
    shown = facts.driver.parameters
    ours = {one.name: one.value for one in assignments(facts.driver.options.get(PATH, ""))}
    found = [
        "NVreg_%s is %s, requested is %s" % (name, shown.get(name, ours.get(name, "not set")), value)
        for name, value in desired.items()
        if not is_same(value, shown.get(name, ours.get(name, "")))
    ]
    return found + [
        "NVreg_%s=%s is no longer requested" % item
        for item in ours.items()
        if item[0] not in desired and is_same(item[1], shown.get(*item))
    ]


def parameter_refusals(facts: Facts, settings: Settings, driver: DriverChoice) -> list[Refusal]:
    desired = requested(settings)
    found = [
        Refusal(
            "module_parameter_conflict",
            "%s sets NVreg_%s to %s, and nvidia_driver_module_parameters to %s"
            % (path if path.startswith("/proc") else "%s:%d" % (path, line), name, value, desired[name]),
            "take it out of one of them, or give it the same value in both",
        )
        for path, text in facts.driver.options.items()
        for name, value, line in assignments(text)
        if path != PATH and name in desired and not is_same(desired[name], value) and outranks(path)
    ]
    disk = facts.driver.on_disk if driver.satisfied or driver.extends else None
    known = disk.parameters if disk else {}
    for name, value in desired.items() if known else ():
        kind = known.get(name)
        if kind is None or (kind != "charp" and to_number(value) is None):
            what = "takes numbers only as NVreg_%s, not %s" % (name, value) if kind else "has no NVreg_%s" % name
            text = "driver %s %s" % (disk.version if disk else "", what)
            guess = None if kind else nearest(name, known)
            remedy = "write a number" if kind else "leave it out: `modinfo -p nvidia` lists what this driver takes"
            remedy = "write NVreg_%s in its place" % guess if guess else remedy
            found.append(Refusal("module_parameter_unknown", text, remedy))
    return found


def outranks(path: str) -> bool:
    """Return True if a file is the administrator's, or modprobe reads it after ours.

    Ours replaces the values of packages.
    """
    return not path.startswith(PACKAGED) or path.rpartition("/")[2] > PATH.rpartition("/")[2]
