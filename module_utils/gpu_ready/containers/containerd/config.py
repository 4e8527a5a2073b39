"""containerd's configuration: what its CRI plugin (Kubernetes' door) has to know of GPUs, and the edits that say it.

Where our keys go depends on how containerd reads files together, which was tried with 1.6.20, 1.7.24 and 2.1.9. Up to
1.7 the last file that has a table of a plugin replaces that table of all files before it
(https://github.com/containerd/containerd/issues/5837, not changed in 1.7: pull request 11066), so a drop-in would take
the operator's whole CRI configuration away: our keys go into config.toml itself. From 2.0 on tables are merged, and
our keys get a file of their own. Also up to 1.7, naming one runtime drops the built-in runc, which stays the default:
runc has to be named beside it.
"""

import fnmatch
import posixpath
import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ...base.errors import GpuReadyError
from . import toml

MAIN = "/etc/containerd/config.toml"
FOLDER = "/etc/containerd/conf.d"
DROP_IN = FOLDER + "/99-gpu-ready.toml"
PATTERN = FOLDER + "/*.toml"
IMPORTS = ("imports",)
UNIT = "containerd.service"
SOCKET = "/run/containerd/containerd.sock"
RUNTIME = "/usr/bin/nvidia-container-runtime"
SHIM = "io.containerd.runc.v2"
CDI_FOLDERS = ["/etc/cdi", "/var/run/cdi"]
FIRST_CDI = (1, 7)
FIRST_MERGE = (2, 0)
PLUGINS = {2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}
"""The CRI plugin's name in each version of the file format; format 4 of containerd 2.2 kept that of 3."""
_CRI = ("cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime")
NONE = "none"
"""The mode of a containerd that is to know nothing of GPUs any more."""
UNNEEDED = "nothing of ours any more"
_HEAD = "# Written by gpu-ready; playbooks/uninstall.yml takes it away.\n"

Path = Tuple[str, ...]
Record = List[Tuple[Path, Any]]
"""Keys by their path, each with a value."""


class File(NamedTuple):
    """One file of the configuration in the order of reading, config.toml first; ``text`` None: it is not there."""

    path: str
    text: Optional[str]


class Edit(NamedTuple):
    """What becomes of one file; ``before`` or ``after`` None: it is not there."""

    path: str
    before: Optional[str]
    after: Optional[str]


class Change(NamedTuple):
    """The edits, the keys that they bring in words, and what they do in config.toml: path, value before (None: none).

    ``wanted``: what the engine has to know afterwards, below the table of the CRI plugin.
    """

    edits: List[Edit]
    keys: List[str]
    record: Record
    wanted: Record


class ConfigError(GpuReadyError, ValueError):
    """The configuration cannot carry our keys: a code, what stands in the way, and what to do."""

    def __init__(self, code: str, problem: str, remedy: str) -> None:
        super().__init__("%s: %s" % (problem, remedy))
        self.code = code
        self.problem = problem
        self.remedy = remedy


def version(text: str) -> Optional[Tuple[int, ...]]:
    """Return containerd's version out of a package's version or ``containerd --version``."""
    match = re.search(r"(?:^|[\s:v])(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in match.groups()) if match else None


# ----------------------------------------------------------------------------------------------------------- reading


def config_path(unit_texts: List[str]) -> str:
    """Return the file that the service reads: that of the last ExecStart with ``--config``, else the usual one."""
    found = MAIN
    for text in unit_texts:
        for line in re.findall(r"(?m)^\s*ExecStart\s*=(.*)$", text):
            match = re.search(r"\s(?:--config|-c)[= ]\s*(\S+)", line)
            found = match.group(1) if match else found if not line.strip() else MAIN
    return found


def keeps_containers(unit_texts: List[str]) -> bool:
    """Return whether containers outlive a restart of the service: it ends its main process only."""
    modes = [mode for text in unit_texts for mode in re.findall(r"(?m)^\s*KillMode\s*=\s*(\S+)", text)]
    return bool(modes) and modes[-1] in ("process", "mixed", "none")


def patterns(main: File) -> List[str]:
    """Return the ``imports`` of a file as absolute patterns; [] for one that is no TOML."""
    try:
        given = toml.read(main.text).value.get("imports")
    except toml.TomlError:
        return []
    folder = posixpath.dirname(main.path)
    names = given if isinstance(given, list) else []
    return [posixpath.normpath(posixpath.join(folder, name)) for name in names if isinstance(name, str)]


def covers(main: File, path: str) -> bool:
    """Return whether ``imports`` of a file take in a path."""
    return any(matches(path, pattern) for pattern in patterns(main))


def matches(path: str, pattern: str) -> bool:
    """Return whether a pattern of ``imports`` names a file: a star does not reach over folders."""
    same = posixpath.dirname(path) == posixpath.dirname(pattern)
    return same and fnmatch.fnmatchcase(posixpath.basename(path), posixpath.basename(pattern))


def read(file: File) -> Dict[str, Any]:
    """Return the values of a file; ConfigError with line and column where it is no TOML."""
    try:
        return toml.read(file.text).value
    except toml.TomlError as error:
        raise ConfigError(
            "containerd_config_invalid",
            "%s is no valid TOML (%s)" % (file.path, error),
            "correct the file (test it with 'containerd config dump'); gpu-ready does not edit what it cannot read",
        ) from None


def file_format(file: File) -> int:
    """Return the version of the format that a file says it has (1 where it says nothing)."""
    found = read(file).get("version", 1)
    return found if isinstance(found, int) else 1


def section(file: File) -> Optional[Dict[str, Any]]:
    """Return the table of the CRI plugin in a file, None where it has none."""
    plugins = read(file).get("plugins")
    number = file_format(file)
    for name in _CRI if number < 2 else (PLUGINS[min(number, 3)],):
        found = plugins.get(name) if isinstance(plugins, dict) else None
        if isinstance(found, dict):
            return found
    return None


def effective(engine: Tuple[int, ...], files: List[File]) -> Dict[str, Any]:
    """Return the CRI plugin's table as containerd puts it together from the files (without its built-in defaults)."""
    found = {}  # type: Dict[str, Any]
    for file in files:
        table = section(file)
        if table is not None:
            found = merged(found, table) if engine >= FIRST_MERGE else table
    return found


def merged(old: Dict[str, Any], new: Dict[str, Any]) -> Dict[str, Any]:
    """Return two tables merged key by key."""
    both = dict(old)
    for key, value in new.items():
        known = both.get(key)
        both[key] = merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return both


# ------------------------------------------------------------------------------------------------------- what we want


def keys(engine: Tuple[int, ...], there: Dict[str, Any], mode: str, default: bool) -> Record:
    """Return the keys, below the CRI plugin's table, that a mode needs beside what is there."""
    if mode != "toolkit":
        folders = there.get("cdi_spec_dirs")
        wanted = []  # type: Record
        if engine < FIRST_MERGE or there.get("enable_cdi") is False:
            wanted.append((("enable_cdi",), True))  # on by itself from 2.0 on
        if isinstance(folders, list) and CDI_FOLDERS[0] not in folders:
            wanted.append((("cdi_spec_dirs",), folders + CDI_FOLDERS[:1]))
        return wanted
    runtimes = toml.get(there, ("containerd", "runtimes"))
    runtimes = runtimes if isinstance(runtimes, dict) else {}
    base = ("containerd", "runtimes", "nvidia")
    wanted = [(base + ("runtime_type",), SHIM), (base + ("options", "BinaryName"), RUNTIME)]
    if path_of(runtimes, "nvidia") and posixpath.basename(path_of(runtimes, "nvidia")) == posixpath.basename(RUNTIME):
        wanted[1] = (wanted[1][0], path_of(runtimes, "nvidia"))  # somebody's other place of the same program
    cgroup = toml.get(runtimes, ("runc", "options", "SystemdCgroup"))
    if isinstance(cgroup, bool):
        # Pods of one node need one cgroup driver, that of the kubelet.
        wanted.append((base + ("options", "SystemdCgroup"), cgroup))
    if engine < FIRST_MERGE and set(runtimes) <= {"nvidia"}:
        wanted.append((("containerd", "runtimes", "runc", "runtime_type"), SHIM))
    if default:
        wanted.append((("containerd", "default_runtime_name"), "nvidia"))
    return wanted


def path_of(runtimes: Dict[str, Any], name: str) -> str:
    """Return the program of a runtime, empty where none is named."""
    return str(toml.get(runtimes, (name, "options", "BinaryName")) or "")


def refuse(engine: Tuple[int, ...], files: List[File], mode: str) -> None:
    """Raise ConfigError where this containerd or its files cannot carry our keys."""
    main = files[0]
    if mode != "toolkit" and engine < FIRST_CDI:
        raise ConfigError(
            "engine_without_cdi",
            "containerd %s has no CDI, which nvidia_container_runtime_mode: %s needs (1.7 is the first that has it)"
            % (".".join(map(str, engine)), mode),
            "set nvidia_container_runtime_mode: toolkit (works with every containerd), or install containerd 1.7 or "
            "newer",
        )
    for file in files:
        off = read(file).get("disabled_plugins")
        for name in off if isinstance(off, list) else []:
            if name in _CRI:
                raise ConfigError(
                    "containerd_cri_disabled",
                    "%s disables the plugin %s, without which Kubernetes cannot use this containerd"
                    % (file.path, name),
                    "take it out of disabled_plugins, or take containerd out of nvidia_container_runtime_engines",
                )
    for file in files:
        if (file.text or "").strip() and file_format(file) < 2 and (file is main or section(file) is not None):
            raise ConfigError(
                "containerd_config_old",
                "%s has no version, or version 1: containerd 2 no longer reads that format of the CRI plugin"
                % file.path,
                "rewrite it with 'containerd config migrate' (containerd 2) or give it version = 2 and the plugin's "
                "full name",
            )
    shadow = [file for file in files[1:] if section(file) is not None]
    if engine < FIRST_MERGE and shadow:
        raise ConfigError(
            "containerd_import_shadows",
            "%s has a table of the CRI plugin, and containerd %s takes that table from one file only, the last one"
            % (shadow[-1].path, ".".join(map(str, engine))),
            "move what it says of the plugin into %s, or update to containerd 2.0, which merges files" % main.path,
        )


# -------------------------------------------------------------------------------------------------------------- edits


def change(engine: Tuple[int, ...], files: List[File], mode: str, default: bool, noted: Record) -> Change:
    """Return the edits that make the CRI plugin know what a mode needs; none where it does already.

    ``noted``: keys of config.toml that are ours, with their value before us; the mode may no longer need all of them.
    Raises ConfigError.
    """
    refuse(engine, files, mode)
    if engine < FIRST_MERGE:
        return into_main(engine, files, mode, default, noted)
    return into_drop_in(engine, files, mode, default, noted)


def into_main(engine: Tuple[int, ...], files: List[File], mode: str, default: bool, noted: Record) -> Change:
    """Return the edit of config.toml itself."""
    main = files[0]
    text = main.text or _HEAD + "version = 2\n"
    try:
        clean = File(main.path, restored(text, noted))
        wanted = keys(engine, effective(engine, [clean]), mode, default)
        plugin = ("plugins", PLUGINS[2])
        full = [(plugin + path, value) for path, value in wanted]
        needed = [path for path, _ in full]
        after = restored(text, [one for one in noted if one[0] not in needed])
        after, record = put(File(main.path, after), full)
    except toml.TomlError as error:
        raise no_table(main.path, error) from None
    if after == main.text or not wanted and main.text is None:
        return Change([], [], [], wanted)
    names = [toml.dotted(path[2:]) for path, _ in record]
    return Change([Edit(main.path, main.text, after)], names or [UNNEEDED], record, wanted)


def restored(text: str, record: Record) -> str:
    """Return a text with keys as they were before us."""
    for path, old in record:
        text = toml.drop(text, path) if old is None else toml.put(text, path, old)
    return text


def put(file: File, wanted: Record) -> Tuple[str, Record]:
    """Return a file's text with the keys, and what each that changed was before."""
    was, text = read(file), file.text or ""
    record = []
    for path, value in wanted:
        if toml.get(was, path) != value:
            record.append((path, toml.get(was, path)))
        text = toml.put(text, path, value)
    return text, record


def into_drop_in(engine: Tuple[int, ...], files: List[File], mode: str, default: bool, noted: Record) -> Change:
    """Return the edits of our own file, and of ``imports`` in config.toml where they do not take it in."""
    main = files[0]
    mine = next((file.text for file in files if file.path == DROP_IN), None)
    others = [file for file in files if file.path != DROP_IN]
    there = effective(engine, others)
    wanted = keys(engine, there, mode, default)
    lacking = [(path, value) for path, value in wanted if toml.get(there, path) != value]
    number = 3 if main.text is None else file_format(main)  # files of two formats lose tables when they are merged
    text = None
    if lacking:
        text = _HEAD + "version = %d\n" % number
        for path, value in lacking:
            text = toml.put(text, ("plugins", PLUGINS[min(number, 3)]) + path, value)
    edits = [Edit(DROP_IN, mine, text)] if text != mine else []
    names = [toml.dotted(path) for path, _ in lacking] if edits else []
    record = []  # type: Record
    if not lacking:
        edits += main_back(files, None, None, [one for one in noted if one[0] == IMPORTS])
    elif not covers(main, DROP_IN):
        given = read(main).get("imports")
        imports = (given if isinstance(given, list) else []) + [PATTERN]
        record.append((IMPORTS, given))
        names.append("imports")
        try:
            after = toml.put(main.text or _HEAD + "version = 3\n", IMPORTS, imports)
        except toml.TomlError as error:
            raise no_table(main.path, error) from None
        edits.append(Edit(main.path, main.text, after))
    if lacking:
        last = [file for file in others if file.path > DROP_IN and file is not main]
        found = effective(engine, [file for file in others if file not in last] + [File(DROP_IN, text)] + last)
        lost = [path for path, value in lacking if toml.get(found, path) != value]
        if lost:
            raise ConfigError(
                "containerd_import_shadows",
                "%s, read after %s, sets %s to something else" % (last[-1].path, DROP_IN, toml.dotted(lost[0])),
                "take it out of that file, or give containerd to whoever wrote that file: take it out of "
                "nvidia_container_runtime_engines",
            )
    return Change(edits, names or ([UNNEEDED] if edits else []), record, wanted)


def leave(files: List[File], before: Optional[str], ours: Optional[str], noted: Record) -> Change:
    """Return the edits that take all of ours out of the files; ``before`` and ``ours``: what the manifest has of main.

    Raises ConfigError.
    """
    edits = [Edit(file.path, file.text, None) for file in files if file.path == DROP_IN and file.text is not None]
    names = [DROP_IN] if edits else []
    back = main_back(files, before, ours, noted)
    names += [toml.dotted(path[2:] or path) for path, _ in noted] if back else []
    return Change(edits + back, names, [], [])


def main_back(files: List[File], before: Optional[str], ours: Optional[str], noted: Record) -> List[Edit]:
    """Return the edit that takes these keys out of config.toml; ``imports`` stays where others came to live by it."""
    main = files[0]
    others = [file for file in files[1:] if file.path != DROP_IN and matches(file.path, PATTERN)]
    noted = [one for one in noted if one[0] != IMPORTS or not others]
    if main.text is None or not noted:
        return []
    read(main)
    try:
        after = taken_back(main.text, None if others else before, None if others else ours, noted)
    except toml.TomlError as error:
        raise no_table(main.path, error) from None
    return [Edit(main.path, main.text, after)] if after != main.text else []


def no_table(path: str, error: toml.TomlError) -> ConfigError:
    """Return the refusal to rewrite what an operator wrote in another way than as tables."""
    return ConfigError(
        "containerd_config_inline",
        "%s, line %d, column %d: %s" % (path, error.line, error.column, error.problem),
        "write it as tables, or add the runtime nvidia by hand",
    )


def taken_back(text: str, before: Optional[str], ours: Optional[str], record: Record) -> Optional[str]:
    """Return config.toml without our keys: as it was where nobody else wrote since, else each key by itself."""
    if text == ours:
        return before
    value = toml.read(text).value
    back = []
    for path, old in record:
        now = toml.get(value, path)
        if path == IMPORTS and isinstance(now, list):
            old = [one for one in now if one != PATTERN] or None
        if now is not None and now != old:
            back.append((path, old))
    return restored(text, back)


def given_back(text: Optional[str], noted: Record) -> List[List[str]]:
    """Return the noted keys that are as they were before us: should they come again, they are somebody else's."""
    value = toml.read(text).value
    return [list(path) for path, old in noted if toml.get(value, path) == old]


def lacks(dump: str, wanted: Record) -> List[str]:
    """Return which keys the engine did not take, by what ``containerd config dump`` prints."""
    found = section(File("the dump", dump)) or {}
    return [toml.dotted(path) for path, value in wanted if toml.get(found, path) != value]
