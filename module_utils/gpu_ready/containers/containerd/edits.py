"""Edits of containerd's configuration that make its CRI plugin, which Kubernetes uses, offer the GPUs.

Which file gets our keys depends on how containerd merges files; tried with 1.6.20, 1.7.24 and 2.1.9. Up to 1.7 the last
file that has a table of a plugin replaces that table of all files before it
(https://github.com/containerd/containerd/issues/5837, not changed in 1.7: pull request 11066), so a drop-in would hide
the operator's whole CRI configuration: our keys are set in config.toml itself. From 2.0 on tables are merged, and our
keys get a file of their own. Also up to 1.7, naming one runtime removes the built-in runc, which stays the default: it
must be named as well.
"""

import posixpath
from typing import Any, Dict, List, Optional, Sequence, Tuple

from . import toml
from .config import (
    DROP_IN,
    ConfigError,
    ConfigFile,
    ContainerdChange,
    FileEdit,
    KeyValues,
    import_patterns,
    is_imported,
    matches_import,
)

RUNTIME = "/usr/bin/nvidia-container-runtime"
SHIM = "io.containerd.runc.v2"
CDI_DIRECTORY = "/etc/cdi"
IMPORTS = ("imports",)
EARLIER = "/etc/containerd/conf.d/*.toml"
"""What gpu-ready imported before DROP_IN."""
OLDEST = (1, 6)
FIRST_CDI = (1, 7)
FIRST_MERGE = (2, 0)
PLUGINS = {2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}
"""The CRI plugin's name in each version of the file format; format 4 of containerd 2.2 has the same as 3."""
_CRI = ("cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime")
REMOVED_ONLY = "no keys of gpu-ready any more"
_HEAD = "# Written by gpu-ready; playbooks/uninstall.yml removes it.\n"


def parse_file(file: ConfigFile) -> Dict[str, Any]:
    """Raises ConfigError with line and column for a file that is not valid TOML."""
    try:
        return toml.parse(file.text).value
    except toml.TomlError as error:
        raise ConfigError(
            "containerd_config_invalid",
            "%s is not valid TOML (%s)" % (file.path, error),
            "correct the file (test it with 'containerd config dump'); gpu-ready does not edit an invalid file",
        ) from None


def file_format(file: ConfigFile) -> int:
    found = parse_file(file).get("version", 1)
    return found if isinstance(found, int) else 1


def cri_table(file: ConfigFile) -> Optional[Dict[str, Any]]:
    """Return the table of the CRI plugin in a file, under the plugin's name in the format of that file."""
    plugins = parse_file(file).get("plugins")
    number = file_format(file)
    for name in _CRI if number < 2 else (PLUGINS[min(number, 3)],):
        found = plugins.get(name) if isinstance(plugins, dict) else None
        if isinstance(found, dict):
            return found
    return None


def effective_table(engine: Tuple[int, ...], files: List[ConfigFile]) -> Dict[str, Any]:
    """Return the CRI plugin's table as containerd merges it from the files, without its built-in defaults."""
    found = {}  # type: Dict[str, Any]
    for file in files:
        table = cri_table(file)
        if table is not None:
            found = merge_tables(found, table) if engine >= FIRST_MERGE else table
    return found


def merge_tables(old: Dict[str, Any], new: Dict[str, Any]) -> Dict[str, Any]:
    both = dict(old)
    for key, value in new.items():
        known = both.get(key)
        both[key] = merge_tables(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return both


def required_keys(engine: Tuple[int, ...], current: Dict[str, Any], mode: str, default: bool) -> KeyValues:
    """Return keys below the CRI plugin's table that a mode needs, given the current content of that table."""
    if mode != "toolkit":
        directories = current.get("cdi_spec_dirs")
        required = []  # type: KeyValues
        if engine < FIRST_MERGE or current.get("enable_cdi") is False:
            required.append((("enable_cdi",), True))  # the default since 2.0
        if isinstance(directories, list) and CDI_DIRECTORY not in directories:
            required.append((("cdi_spec_dirs",), directories + [CDI_DIRECTORY]))
        return required
    runtimes = toml.get_value(current, ("containerd", "runtimes"))
    runtimes = runtimes if isinstance(runtimes, dict) else {}
    base = ("containerd", "runtimes", "nvidia")
    program = str(toml.get_value(runtimes, ("nvidia", "options", "BinaryName")) or "")
    if posixpath.basename(program) != posixpath.basename(RUNTIME):
        program = RUNTIME  # else the same program in another directory, which stays
    required = [(base + ("runtime_type",), SHIM), (base + ("options", "BinaryName"), program)]
    cgroup = toml.get_value(runtimes, ("runc", "options", "SystemdCgroup"))
    if isinstance(cgroup, bool):
        # All pods of a node need the cgroup driver of the kubelet.
        required.append((base + ("options", "SystemdCgroup"), cgroup))
    if engine < FIRST_MERGE and set(runtimes) <= {"nvidia"}:
        required.append((("containerd", "runtimes", "runc", "runtime_type"), SHIM))
    if default:
        required.append((("containerd", "default_runtime_name"), "nvidia"))
    return required


def check_supported(engine: Tuple[int, ...], files: List[ConfigFile], mode: str) -> None:
    """Raise ConfigError if this containerd or its files cannot be configured."""
    main = files[0]
    if mode != "toolkit" and engine < FIRST_CDI:
        raise ConfigError(
            "engine_without_cdi",
            "containerd %s has no CDI, which nvidia_container_runtime_mode: %s needs (available since 1.7)"
            % (".".join(map(str, engine)), mode),
            "set nvidia_container_runtime_mode: toolkit (works with every containerd), or install containerd 1.7 or "
            "newer",
        )
    for file in files:
        off = parse_file(file).get("disabled_plugins")
        for name in off if isinstance(off, list) else []:
            if name in _CRI:
                raise ConfigError(
                    "containerd_cri_disabled",
                    "%s disables the plugin %s, without which Kubernetes cannot use this containerd"
                    % (file.path, name),
                    "remove it from disabled_plugins, or remove containerd from nvidia_container_runtime_engines",
                )
    for file in files:
        if (file.text or "").strip() and file_format(file) < 2 and (file is main or cri_table(file) is not None):
            raise ConfigError(
                "containerd_config_old",
                "%s has no version, or version 1, a format of the CRI plugin that containerd 2 no longer supports"
                % file.path,
                "convert it with 'containerd config migrate' (containerd 2), or set version = 2 and use the plugin's "
                "full name",
            )
    shadow = [file for file in files[1:] if cri_table(file) is not None]
    if engine < FIRST_MERGE and shadow:
        raise ConfigError(
            "containerd_import_shadows",
            "%s has a table of the CRI plugin, and containerd %s uses that table of the last file only"
            % (shadow[-1].path, ".".join(map(str, engine))),
            "move that table into %s, or update to containerd 2.0, which merges files" % main.path,
        )


def plan_edits(
    version: Optional[Sequence[int]], files: List[ConfigFile], mode: str, default: bool, recorded: KeyValues
) -> ContainerdChange:
    """Return edits that configure the CRI plugin for a mode; none if it is configured already. Raises ConfigError.

    ``version``: an unknown one counts as the oldest, whose configuration all versions understand.
    ``recorded``: keys of config.toml that gpu-ready set, with their previous value; the mode may no longer need all.
    """
    engine = tuple(version or OLDEST)
    check_supported(engine, files, mode)
    if engine < FIRST_MERGE:
        return _edit_main_file(engine, files, mode, default, recorded)
    return _edit_drop_in(engine, files, mode, default, recorded)


def _edit_main_file(
    engine: Tuple[int, ...], files: List[ConfigFile], mode: str, default: bool, recorded: KeyValues
) -> ContainerdChange:
    main = files[0]
    text = main.text or _HEAD + "version = 2\n"
    try:
        clean = ConfigFile(main.path, _restore_keys(text, recorded))
        required = required_keys(engine, effective_table(engine, [clean]), mode, default)
        plugin = ("plugins", PLUGINS[2])
        full = [(plugin + path, value) for path, value in required]
        needed = [path for path, _ in full]
        after = _restore_keys(text, [one for one in recorded if one[0] not in needed])
        after, record = _set_keys(ConfigFile(main.path, after), full)
    except toml.TomlError as error:
        raise _inline_table_error(main.path, error) from None
    if after == main.text or not required and main.text is None:
        return ContainerdChange([], [], [], required)
    names = [toml.dotted(path[2:]) for path, _ in record]
    return ContainerdChange([FileEdit(main.path, main.text, after)], names or [REMOVED_ONLY], record, required)


def _restore_keys(text: str, record: KeyValues) -> str:
    for path, old in record:
        text = toml.remove_key(text, path) if old is None else toml.set_value(text, path, old)
    return text


def _set_keys(file: ConfigFile, required: KeyValues) -> Tuple[str, KeyValues]:
    current, text = parse_file(file), file.text or ""
    record = []
    for path, value in required:
        if toml.get_value(current, path) != value:
            record.append((path, toml.get_value(current, path)))
        text = toml.set_value(text, path, value)
    return text, record


def _edit_drop_in(
    engine: Tuple[int, ...], files: List[ConfigFile], mode: str, default: bool, recorded: KeyValues
) -> ContainerdChange:
    """Return edits of the drop-in file, and of ``imports`` in config.toml if they do not include it."""
    main = files[0]
    drop_in = next((file.text for file in files if file.path == DROP_IN), None)
    others = [file for file in files if file.path != DROP_IN]
    current = effective_table(engine, others)
    required = required_keys(engine, current, mode, default)
    missing = [(path, value) for path, value in required if toml.get_value(current, path) != value]
    number = 3 if main.text is None else file_format(main)  # merging files of two formats loses tables
    text = None
    if missing:
        text = _HEAD + "version = %d\n" % number
        for path, value in missing:
            text = toml.set_value(text, ("plugins", PLUGINS[min(number, 3)]) + path, value)
    edits = [FileEdit(DROP_IN, drop_in, text)] if text != drop_in else []
    names = [toml.dotted(path) for path, _ in missing] if edits else []
    record = []  # type: KeyValues
    if not missing:
        edits += _revert_main_file(files, None, None, [one for one in recorded if one[0] == IMPORTS])
    elif not is_imported(main, DROP_IN):
        given = parse_file(main).get("imports")
        # Not conf.d/*.toml, which others may import: a file there that nobody reads must not come into effect.
        imports = (given if isinstance(given, list) else []) + [DROP_IN]
        record.append((IMPORTS, given))
        names.append("imports")
        try:
            after = toml.set_value(main.text or _HEAD + "version = 3\n", IMPORTS, imports)
        except toml.TomlError as error:
            raise _inline_table_error(main.path, error) from None
        edits.append(FileEdit(main.path, main.text, after))
    if missing:
        order = import_patterns(main) + [DROP_IN]

        def position(path: str) -> Tuple[int, str]:
            """Return when containerd reads a file.

            By the entry of ``imports``, then by name; imports of imports come last.
            """
            found = [number for number, pattern in enumerate(order) if matches_import(path, pattern)]
            return (found + [len(order)])[0], path

        last = [file for file in others if file is not main and position(file.path) > position(DROP_IN)]
        first = [file for file in others if file not in last]
        found = effective_table(engine, first + [ConfigFile(DROP_IN, text)] + last)
        overridden = [path for path, value in missing if toml.get_value(found, path) != value]
        if overridden:
            raise ConfigError(
                "containerd_import_shadows",
                "%s, read after %s, sets %s to another value" % (last[-1].path, DROP_IN, toml.dotted(overridden[0])),
                "remove it from that file, or leave containerd to the owner of that file: remove containerd from "
                "nvidia_container_runtime_engines",
            )
    return ContainerdChange(edits, names or ([REMOVED_ONLY] if edits else []), record, required)


def plan_removal(
    files: List[ConfigFile], before: Optional[str], after: Optional[str], recorded: KeyValues
) -> ContainerdChange:
    """Return edits that remove all our keys. Raises ConfigError.

    ``before`` and ``after``: config.toml before and after gpu-ready, as recorded in the manifest.
    """
    edits = [FileEdit(file.path, file.text, None) for file in files if file.path == DROP_IN and file.text is not None]
    names = [DROP_IN] if edits else []
    reverted = _revert_main_file(files, before, after, recorded)
    names += [toml.dotted(path[2:] or path) for path, _ in recorded] if reverted else []
    return ContainerdChange(edits + reverted, names, [], [])


def _revert_main_file(
    files: List[ConfigFile], before: Optional[str], after: Optional[str], recorded: KeyValues
) -> List[FileEdit]:
    """Return the edit that removes these keys from config.toml."""
    main = files[0] if files else None
    if main is None or main.text is None or not recorded:
        return []
    parse_file(main)
    try:
        text = revert_keys(main.text, before, after, recorded)
    except toml.TomlError as error:
        raise _inline_table_error(main.path, error) from None
    return [FileEdit(main.path, main.text, text)] if text != main.text else []


def _inline_table_error(path: str, error: toml.TomlError) -> ConfigError:
    return ConfigError(
        "containerd_config_inline",
        "%s, line %d, column %d: %s" % (path, error.line, error.column, error.problem),
        "write it as [tables], or add the runtime nvidia by hand",
    )


def revert_keys(text: str, before: Optional[str], after: Optional[str], record: KeyValues) -> Optional[str]:
    """config.toml without our keys: ``before`` if the file still is ``after``, else each key is reverted by itself."""
    if text == after:
        return before
    value = toml.parse(text).value
    changed = []
    for path, old in record:
        now = toml.get_value(value, path)
        if path == IMPORTS and isinstance(now, list):
            ours = EARLIER in (after or "") and EARLIER not in (old or [])
            own = [DROP_IN, EARLIER] if ours else [DROP_IN]
            old = [one for one in now if one not in own] or None
        if now is not None and now != old:
            changed.append((path, old))
    return _restore_keys(text, changed)
