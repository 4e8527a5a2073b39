"""The drop-in file that adds NVIDIA's runtime, or the directory of our CDI specification, to CRI-O.

The last value of a key counts. Read in cri-o f954a17 (after 1.36): docs/crio.conf.5.md, docs/crio.conf.d.5.md,
pkg/config/config.go.
"""

from typing import Any, Dict, List, Optional

from .containerd import toml
from .containerd.config import ConfigError, ConfigFile, KeyValues
from .containerd.edits import CDI_DIRECTORY, RUNTIME, merge_tables, parse_file
from .crio import DIRECTORY, DROP_IN

TABLE = ("crio", "runtime")
BUILT_IN = ("crun", "runc")
HEAD = "# Written by gpu-ready; playbooks/uninstall.yml removes it.\n"


def drop_in_text(files: List[ConfigFile], mode: str, default: bool) -> Optional[str]:
    """Return the content of our drop-in file, None where none is needed.

    Raises ConfigError for a file that is not valid.
    """
    current = effective_table([file for file in files if file.path != DROP_IN])
    text = None
    for path, value in toolkit_keys(current, default) if mode == "toolkit" else cdi_keys(current):
        text = toml.set_value(text or HEAD, TABLE + path, value)
    if text is not None:
        refuse_overridden(files, text)
    return text


def effective_table(files: List[ConfigFile]) -> Dict[str, Any]:
    found = {}  # type: Dict[str, Any]
    for file in files:
        table = toml.get_value(parse_file(file), TABLE)
        found = merge_tables(found, table) if isinstance(table, dict) else found
    return found


def toolkit_keys(current: Dict[str, Any], default: bool) -> KeyValues:
    """Return keys below [crio.runtime] for the runtime nvidia.

    It is a copy of the default runtime with another program, as nvidia-ctk makes it (pkg/config/engine/crio/crio.go):
    CRI-O does not start where a runtime names no monitor_path and conmon is not in PATH.
    """
    given = current.get("runtimes")
    runtimes = given if isinstance(given, dict) else {}  # type: Dict[str, Any]
    known = runtimes.get("nvidia")
    keys = []  # type: KeyValues
    if default and current.get("default_runtime") != "nvidia":
        keys.append((("default_runtime",), "nvidia"))
    if isinstance(known, dict) and str(known.get("runtime_path", "")).endswith("/nvidia-container-runtime"):
        return keys
    names = [str(current.get("default_runtime") or "")] + list(BUILT_IN)
    models = [runtimes[name] for name in names if isinstance(runtimes.get(name), dict)]
    options = dict(models[0] if models else {}, runtime_path=RUNTIME, runtime_type="oci")
    for key in sorted(options):
        if not isinstance(options[key], dict):
            keys.append((("runtimes", "nvidia", key), options[key]))
    return keys


def cdi_keys(current: Dict[str, Any]) -> KeyValues:
    """CDI is always on; only its directories can be others."""
    directories = current.get("cdi_spec_dirs")
    if isinstance(directories, list) and CDI_DIRECTORY not in directories:
        return [(("cdi_spec_dirs",), directories + [CDI_DIRECTORY])]
    return []


def refuse_overridden(files: List[ConfigFile], text: str) -> None:
    """Raise ConfigError where a file that is read after ours has another value."""
    ours = effective_table([ConfigFile(DROP_IN, text)])
    for file in files:
        later = effective_table([file]) if file.path > DROP_IN and file.path.startswith(DIRECTORY) else {}
        if merge_tables(ours, {key: value for key, value in later.items() if key in ours}) != ours:
            raise ConfigError(
                "crio_drop_in_overridden",
                "%s, read after %s, sets the same keys" % (file.path, DROP_IN),
                "remove them from that file, or remove crio from nvidia_container_runtime_engines",
            )
