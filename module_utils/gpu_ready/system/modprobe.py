"""What keeps modprobe from loading NVIDIA's module, as libkmod decides it (libkmod-module.c, libkmod.c of kmod 34).

Only files are read: the answer is also needed for a module that is not installed yet, for which modprobe has none. What
``modprobe --show-depends --use-blacklist`` says of the same files is compared in tests/unit/test_modprobe.py.
"""

import fnmatch
import re
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

from .modprobe_files import DOES_NOTHING, Config, ModprobeLine, normalize

MAIN = r"nvidia(?:_current|_tesla_\d+|_legacy_\w+?)?(?:_open)?"
"""The main module. Debian's archive gives its file other names; the kernel knows it as nvidia all the same."""
UVM = MAIN + "_uvm"
COMPANIONS = MAIN + "_(?:uvm|modeset|drm|peermem)"
KEYWORDS = ("if", "then", "else", "elif", "fi", "!", "exec", "command", "do", "done")
OPTIONS = r"-([biqsv]+|-(ignore-install|use-blacklist|quiet|syslog|verbose))$"
IN_MODULE = ModprobeLine("", 0, "")
"""In place of the line of an alias that the module itself has (modules.alias)."""
DEEPEST = 5


class LoadResult(NamedTuple):
    """``line``: what prevents the loading, None where no line does."""

    loaded: bool
    line: Optional[ModprobeLine] = None


LOADED = LoadResult(True)


class Modules:
    """The modules of a kernel by modules.dep and modules.builtin. Where it has none of NVIDIA, all of them count."""

    def __init__(self, dep: str, builtin: str) -> None:
        self.dep = dep
        self.builtin = builtin
        self.known: Dict[str, Optional[List[str]]] = {}
        names = [base_name(name) for name, _ in find_files(dep, r"nvidia[\w-]*")]
        self.main = [name for name in names if is_module(name, MAIN)]
        self.installed = bool(self.main)
        self.main = self.main or ["nvidia"]

    def dependencies(self, module: str) -> Optional[List[str]]:
        """Return what a module needs, in order of loading; None if there is no such module."""
        if module not in self.known:
            found = find_files(self.dep, spellings(module))
            # libkmod turns the list round (kmod_module_parse_depline).
            self.known[module] = [base_name(path) for path in found[0][1].split()[::-1]] if found else None
            if not found and not self.installed and is_module(module, "%s|%s" % (MAIN, COMPANIONS)):
                self.known[module] = [module.rpartition("_")[0]] if is_module(module, COMPANIONS) else []
        return self.known[module]

    def exists(self, module: str) -> bool:
        return self.dependencies(module) is not None or bool(find_files(self.builtin, spellings(module), ""))


class Loader:
    """Answers whether a request loads a module whose name is ``goal``, a regular expression.

    ``own``: the aliases that NVIDIA's main module has in its file, of those that udev asks for ("pci:...").
    """

    def __init__(self, config: Config, modules: Modules, goal: str, own: Sequence[str] = ()) -> None:
        self.config = config
        self.modules = modules
        self.goal = goal
        self.own = own

    def request(self, name: str, blacklist: bool, ignore: bool = False, depth: int = 0) -> LoadResult:
        """Return what `modprobe NAME` does.

        ``blacklist``: with -b, as udev and systemd-modules-load do (module_load_and_warn in systemd's module-util.c).
        ``ignore``: with -i.
        """
        first: Optional[LoadResult] = None
        for module, alias in self.resolve(normalize(name) or ""):
            result = self.probe(module, alias, blacklist, ignore, depth)
            if result.loaded:
                return result
            first = first or result
        return first or LoadResult(False)

    def resolve(self, name: str) -> List[Tuple[str, Optional[ModprobeLine]]]:
        """Return the modules of a name, each with the alias that led to it."""
        aliases = [(module, line) for pattern, module, line in self.config.aliases if matches(name, pattern)]
        if aliases:
            return [(module, line) for module, line in aliases]
        if self.modules.dependencies(name) is not None or any(name == entry[0] for entry in self.config.installs):
            return [(name, None)]
        return [(module, IN_MODULE) for module in self.modules.main if name in self.own]

    def probe(
        self, module: str, alias: Optional[ModprobeLine], blacklist: bool, ignore: bool, depth: int
    ) -> LoadResult:
        for name, line in self.config.blacklist:
            if name == module and (alias is not None or blacklist):
                return LoadResult(False, line)
        needs = self.modules.dependencies(module)
        for name in (needs or []) + [module]:
            for forbidden, line in self.config.forbidden:
                if forbidden == name or (forbidden == "nvidia" and is_module(name, MAIN)):
                    return LoadResult(False, line)
            command = None if ignore and name == module else self.install_command(name)
            is_goal = is_module(name, self.goal)
            if command:
                goal = self.goal if is_goal or name == module else MAIN if is_module(name, MAIN) else re.escape(name)
                result = Loader(self.config, self.modules, goal, self.own).run(command, depth)
                if is_goal or name == module or not result.loaded:
                    return result
            elif is_goal and needs is not None:
                return LOADED
        return LoadResult(False, alias if needs is None and alias is not IN_MODULE else None)

    def install_command(self, module: str) -> Optional[Tuple[str, ModprobeLine]]:
        """Return what is run instead of loading a module. A softdep of an existing module has precedence over it."""
        for pattern, names in self.config.softdeps:
            if matches(module, pattern):
                known = [normalize(name) or "" for name in names]
                if any(self.resolve(name) or self.modules.exists(name) for name in known):
                    return None
                break
        return next(((text, line) for pattern, text, line in self.config.installs if matches(module, pattern)), None)

    def run(self, command: Tuple[str, ModprobeLine], depth: int) -> LoadResult:
        """Return what the command of an `install` line does, if only programs with a known effect are in it."""
        text, line = command
        first: Optional[ModprobeLine] = None
        for part in re.split(r"[;&|{}()\n]+", text):
            words = part.split()
            while words and (words[0] in KEYWORDS or re.match(r"\w+=", words[0])):
                del words[0]
            program = words[0].rpartition("/")[2] if words else ":"
            if program in DOES_NOTHING:
                continue
            options = [word for word in words[1:] if word.startswith("-")]
            names = [word for word in words[1:] if not word.startswith("-")]
            known = bool(names) and "$" not in names[0] and all(re.match(OPTIONS, one) for one in options)
            if program != "modprobe" or not known or depth >= DEEPEST:
                return LOADED
            blacklist = any(re.match("-(-use|[^-]*b)", one) for one in options)
            ignore = any(re.match("-(-ignore|[^-]*i)", one) for one in options)
            result = self.request(names[0], blacklist, ignore, depth + 1)
            if result.loaded:
                return result
            first = first or result.line
        return LoadResult(False, first or line)


def matches(name: str, pattern: str) -> bool:
    return name == pattern or fnmatch.fnmatchcase(name, pattern)


def is_module(name: str, form: str) -> bool:
    return bool(re.match("(?:%s)$" % form, name))


def find_files(text: str, form: str, after: str = ":(.*)") -> List[Tuple[str, str]]:
    """Return the files of modules with such a name, each with what follows it in its line.

    The pattern begins with what is searched for: 600 kB take 0.3 ms then, 3 ms if it began with the slash.
    """
    found = re.finditer(r"(%s)\.ko[.\w]{0,8}%s" % (form, after or "()"), text)
    return [
        (match.group(1), match.group(2))
        for match in found
        if text[match.start() - 1 : match.start()] in ("", "/", "\n")
    ]


def base_name(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0].replace("-", "_")


def spellings(module: str) -> str:
    """Return a pattern for the file of a module, whose name may have dashes."""
    return "[-_]".join(re.escape(part) for part in module.split("_"))
