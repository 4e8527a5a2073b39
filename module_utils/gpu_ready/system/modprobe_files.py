"""Reader of modprobe.d(5) and of what the kernel's command line says about modules."""

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from ..base.host import Host

COMMAND_LINE = "/proc/cmdline"
DIRECTORIES = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
"""Of files with one name, the first counts (modprobe.d(5); default_config_paths in libkmod.c)."""
LONGEST = 120
DOES_NOTHING = ("true", "false", ":", "exit", "echo", "printf", "logger", "test", "[", "return")
"""Commands of an `install` line that load no module. What any other program does is unknown: it may load it."""


class ModprobeLine(NamedTuple):
    """The beginning of a command and where it is.

    ``number``: of the last line of a command that is continued; 0 on the kernel's command line.
    """

    path: str
    number: int
    text: str


class Config(NamedTuple):
    """Commands of modprobe.d in reading order. ``softdeps``: of a module, the modules to load before and after it.

    ``forbidden``: modules that the kernel itself refuses to load.
    """

    aliases: List[Tuple[str, str, ModprobeLine]]
    blacklist: List[Tuple[str, ModprobeLine]]
    installs: List[Tuple[str, str, ModprobeLine]]
    softdeps: List[Tuple[str, List[str]]]
    forbidden: List[Tuple[str, ModprobeLine]]

    def without(self, line: ModprobeLine) -> "Config":
        """Return the configuration without the commands of one line."""
        return Config(
            [entry for entry in self.aliases if entry[2] != line],
            [entry for entry in self.blacklist if entry[1] != line],
            [entry for entry in self.installs if entry[2] != line],
            self.softdeps,
            [entry for entry in self.forbidden if entry[1] != line],
        )


def read_files(host: Host) -> Dict[str, str]:
    """Return the texts of modprobe.d by path, in the order in which modprobe reads them."""
    found: Dict[str, str] = {}
    for directory in DIRECTORIES:
        for name in host.listdir(directory + "/modprobe.d"):
            path = "%s/modprobe.d/%s" % (directory, name)
            # A link to nothing or a directory hides no file of that name (conf_files_filter_out in libkmod-config.c).
            if name.endswith(".conf") and name[0] != "." and name not in found and is_file(host, path):
                found[name] = path
    return {path: host.read(path) or "" for _, path in sorted(found.items())}


def is_file(host: Host, path: str) -> bool:
    return host.exists(path) and not host.isdir(path)


def read_config(host: Host) -> Config:
    return parse(read_files(host), host.read(COMMAND_LINE) or "")


def parse(files: Dict[str, str], command_line: str = "") -> Config:
    """Return the commands of files, which are read in the order of their names whatever their directories are.

    As kmod_config_parse in libkmod-config.c does: words end at blanks and tabs, what follows the last word is ignored,
    and a comment begins with its line.
    """
    config = Config([], [], [], [], [])
    for path in sorted(files, key=lambda path: path.rpartition("/")[2]):
        for number, text in split_lines(files[path]):
            words = re.split("[\t ]+", text.strip("\t "), maxsplit=2)
            name = normalize(words[1]) if len(words) > 1 else None
            if name is None:
                continue
            rest, line = words[2:], ModprobeLine(path, number, " ".join(text.split())[:LONGEST])
            if words[0] == "blacklist":
                config.blacklist.append((name, line))
            elif words[0] == "alias" and rest:
                module = normalize(re.split("[\t ]", rest[0])[0])
                if module is not None:
                    config.aliases.append((name, module, line))
            elif words[0] == "install" and rest:
                config.installs.append((name, rest[0], line))
            elif words[0] == "softdep" and rest:
                config.softdeps.append((name, softdep_modules(rest[0])))
    words = command_line.split()
    for text in words:
        # kmod reads this one too, and takes the names as they are (kcmdline_parse_result).
        if text.startswith("modprobe.blacklist="):
            line = ModprobeLine(COMMAND_LINE, 0, text[:LONGEST])
            config.blacklist.extend((name, line) for name in text.partition("=")[2].split(","))
    # The kernel keeps the last value, and compares names as they are (blacklisted in kernel/module/main.c).
    for text in [word for word in words if re.match("module[-_]blacklist=", word)][-1:]:
        line = ModprobeLine(COMMAND_LINE, 0, text[:LONGEST])
        config.forbidden.extend((name, line) for name in text.partition("=")[2].split(","))
    return config


def split_lines(text: str) -> List[Tuple[int, str]]:
    """Return commands with their line numbers. A backslash continues a line; before anything else it is dropped."""
    found, number = [], 0
    for raw in re.findall(r"(?:[^\\\n]|\\[\s\S]|\\$)*\n?", text):
        number += raw.count("\n") or 1
        line = re.sub(r"\\([\s\S]?)", lambda match: match.group(1).strip("\n"), raw).rstrip("\n")
        if line:
            found.append((number, line))
    return found


def normalize(name: str) -> Optional[str]:
    """Return a name with underscores, except between brackets; None where brackets do not match."""
    outside = re.sub(r"\[[^]]{0,200}\]", "", name)
    if "[" in outside or "]" in outside:
        return None
    return re.sub(r"\[[^]]{0,200}\]|-", lambda match: "_" if match.group() == "-" else match.group(), name)


def softdep_modules(text: str) -> List[str]:
    """Return the modules of a softdep: what is behind "pre:" or "post:"."""
    words = text.split()
    first = min([words.index(word) for word in ("pre:", "post:") if word in words] or [len(words)])
    return [word for word in words[first:] if word not in ("pre:", "post:")]
