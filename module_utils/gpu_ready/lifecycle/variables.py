"""The public variables: their types and choices, and the reading of what an operator gave for them.

Every wrong value is found in one pass and told in a sentence that names variable, value and what is possible.
"""

import re
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ..base import validation
from ..catalog import model as catalog

TRUE = ("true", "yes", "on", "1", "y", "t")
FALSE = ("false", "no", "off", "0", "n", "f")


class Variable(NamedTuple):
    """One public variable: its type, its choices, a pattern for its text with the words that say what it must be.

    ``fault`` says of a text that no pattern can describe what is wrong with it, "" where nothing is.
    """

    type: str
    choices: Tuple[str, ...] = ()
    pattern: str = ""
    words: str = ""
    fault: Callable[[Any], str] = validation.text_fault


KNOWN = "one of %s, or empty" % ", ".join(sorted(catalog.distros()))
VERSION = r"\d+(\.\d+)+"
SHA256 = r"[0-9a-fA-F]{64}"
DEVICE = r"all|\d+|(?:GPU|MIG)-[\w/-]+"
VARIABLES = {
    "nvidia_driver_source": Variable("str", ("auto", "distro", "cuda_repo", "elrepo", "runfile", "none")),
    "nvidia_driver_branch": Variable("str", (), r"\d{2,4}|auto", "a branch such as 580, or empty"),
    "nvidia_driver_version": Variable("str", (), r"\d{2,4}(\.\d+){1,2}", "a version such as 580.178.04, or empty"),
    "nvidia_driver_flavour": Variable("str", ("auto", "open", "proprietary")),
    "nvidia_driver_profile": Variable("str", ("compute", "full")),
    "nvidia_driver_kernel_modules": Variable("str", ("auto", "dkms", "precompiled")),
    "nvidia_driver_runfile": Variable("str", fault=validation.location_fault),
    "nvidia_driver_runfile_sha256": Variable("str", (), SHA256, "64 hexadecimal digits, or empty"),
    "nvidia_driver_hold": Variable("bool"),
    "nvidia_driver_replace_foreign": Variable("bool"),
    "cuda_toolkit_source": Variable("str", ("repo", "runfile", "none")),
    "cuda_toolkit_versions": Variable("list", (), r"\d+\.\d+(\.\d+)?|auto", "versions such as 12.9 or 12.9.1"),
    "cuda_toolkit_default": Variable("str", (), r"\d+\.\d+|auto", "a version such as 12.9, or empty"),
    "cuda_toolkit_profile": Variable("str", (), r"\d+\.\d+|default|none", "default, none or a version such as 12.9"),
    "cuda_toolkit_remove": Variable("list", (), r"\d+\.\d+", "versions such as 12.4"),
    "cuda_toolkit_runfiles": Variable("dict"),
    "cudnn_source": Variable("str", ("archive", "package", "none")),
    "cudnn_version": Variable("str", (), VERSION + "|auto", "a version such as 9.10.2.21, or empty"),
    "cudnn_toolkits": Variable("list", (), r"\d+\.\d+", "versions of CUDA such as 12.9"),
    "cudnn_archive": Variable("str", fault=validation.location_fault),
    "cudnn_archive_sha256": Variable("str", (), SHA256, "64 hexadecimal digits, or empty"),
    "docker_engine_source": Variable("str", ("auto", "distro", "docker_ce", "none")),
    "docker_engine_version": Variable("str", (), r"(\d+:)?\d+[\w.+~-]*", "a version such as 28.5 or 28.5.1, or empty"),
    "docker_engine_replace_conflicting": Variable("bool"),
    "docker_engine_log_driver": Variable("str", (), r"\w[\w./-]*(:[\w.-]+)?", "the name of a log driver, or empty"),
    "docker_engine_log_options": Variable("dict"),
    "docker_engine_cgroup_driver": Variable("str", (), r"systemd|cgroupfs", "systemd, cgroupfs or empty"),
    "docker_engine_daemon_options": Variable("dict"),
    "docker_engine_restart_ok": Variable("bool"),
    "nvidia_container_runtime_mode": Variable("str", ("toolkit", "cdi", "native")),
    "nvidia_container_runtime_default": Variable("bool"),
    "nvidia_container_runtime_engines": Variable("list", (), r"docker|podman|containerd", "docker, podman, containerd"),
    "nvidia_container_runtime_migrate": Variable("bool"),
    "gpu_verify_image": Variable("str", fault=validation.name_fault),
    "gpu_verify_devices": Variable("devices", (), DEVICE, "all, or indices and UUIDs of GPUs"),
    "gpu_verify_compute": Variable("bool"),
    "gpu_verify_framework": Variable("str", ("none", "tensorflow", "pytorch")),
    "gpu_verify_framework_image": Variable("str", fault=validation.name_fault),
    "gpu_ready_activation": Variable("str", ("auto", "reload", "reboot", "none")),
    "gpu_ready_reboot_ok": Variable("bool"),
    "gpu_ready_vault": Variable("bool"),
    "gpu_ready_mirror": Variable("str", fault=validation.base_fault),
    "gpu_ready_mirror_keys": Variable("dict", fault=validation.fingerprint_fault),
    "gpu_ready_treat_as": Variable("str", (), "|".join(sorted(catalog.distros())), KNOWN),
}


class Reading(NamedTuple):
    """The wanted state with defaults filled in, and a sentence for every value that cannot be."""

    wanted: Dict[str, Any]
    wrong: List[str]


def read(given: Dict[str, Any]) -> Reading:
    """Read variables as they were given (None or absent: the default of the role)."""
    wanted: Dict[str, Any] = {}
    wrong: List[str] = ["%s is not a variable of gpu-ready" % name for name in sorted(set(given) - set(VARIABLES))]
    for name in sorted(VARIABLES):
        variable = VARIABLES[name]
        default = catalog.DEFAULTS.get(name, EMPTY[variable.type])
        value = given.get(name)
        value, fault = convert(variable, default if value is None else value)
        wanted[name] = default if fault else value
        if fault:
            wrong.append("%s is %s: %s" % (name, validation.shown(given.get(name)), fault))
    return Reading(wanted, wrong + contradictions(wanted))


EMPTY: Dict[str, Any] = {"str": "", "bool": False, "list": [], "dict": {}, "devices": "all"}


def convert(variable: Variable, value: Any) -> Tuple[Any, Optional[str]]:
    """Return the value in the variable's type and None, or anything and what the value must be."""
    if variable.type == "bool":
        return as_bool(value)
    if variable.type == "dict":
        return (value, dict_fault(variable, value) or None) if isinstance(value, dict) else (None, "must be a mapping")
    if variable.type == "list":
        items = as_list(value)
        wrong = items is None or [item for item in items if not fits(variable, item)]
        return items, "must be a list of %s" % variable.words if wrong else None
    if variable.type == "devices":
        items = as_list(value)
        words = None if items is None else [word for item in items for word in item.split() or [""]]
        if words is None or [word for word in words if not fits(variable, word)]:
            return None, "must be %s" % variable.words
        return (value if value in ("all", "") else items), None
    if isinstance(value, (dict, list, bool)):
        return None, "must be text"
    text = str(value).strip()
    if variable.choices and text not in variable.choices:
        return None, "choose one of %s" % ", ".join(variable.choices)
    if text and variable.pattern and not fits(variable, text):
        return None, "must be %s" % variable.words
    return text, (variable.fault(text) if text else "") or None


def fits(variable: Variable, text: str) -> bool:
    """Return whether a whole text has the variable's pattern; digits and letters are those of ASCII."""
    return len(text) <= validation.LONGEST and re.fullmatch(variable.pattern, text, re.ASCII) is not None


def dict_fault(variable: Variable, value: Dict[Any, Any]) -> str:
    """Return what is wrong with a mapping: with a name in it, or with a value that has a form of its own."""
    for name, one in value.items():
        fault = validation.text_fault(str(name))
        if not fault and variable.fault is not validation.text_fault:
            fault = variable.fault(one)
        if fault:
            return "%s %s" % (validation.shown(name), fault)
    return ""


def as_bool(value: Any) -> Tuple[Any, Optional[str]]:
    """Return a boolean as YAML and the command line (-e name=false) give it."""
    text = str(value).strip().lower()
    if isinstance(value, bool) or text in TRUE + FALSE:
        return text in TRUE, None
    return None, "must be true or false"


def as_list(value: Any) -> Optional[List[str]]:
    """Return a list of texts from a list or from text with commas; None for anything else."""
    if isinstance(value, (list, tuple)):
        return None if any(isinstance(item, (dict, list)) for item in value) else [str(item) for item in value]
    if isinstance(value, dict) or value is None:
        return None
    return [item.strip() for item in str(value).split(",") if item.strip()]


def contradictions(wanted: Dict[str, Any]) -> List[str]:
    """Return what two variables together cannot mean."""
    branch, version = wanted["nvidia_driver_branch"], wanted["nvidia_driver_version"]
    if branch not in ("", "auto") and version and version.split(".")[0] != branch:
        text = "nvidia_driver_version is %r and nvidia_driver_branch is %r: give one of them, or two that agree"
        return [text % (version, branch)]
    return []
