"""One check of a verification."""

from collections.abc import Sequence
from typing import NamedTuple

from ....module_utils.gpu_ready.base.records import Word

NOT_RUN = "not run"


class Check(NamedTuple):
    """``ok`` is None for a check that was not run. A failed one has a cause and a remedy."""

    name: Word
    ok: bool | None
    expected: str
    found: str
    cause: str = ""
    remedy: str = ""


def judge(name: str, ok: bool, expected: str, found: str, cause: str = "", remedy: str = "") -> Check:
    """Return a check that keeps cause and remedy only if it failed."""
    return Check(name, True, expected, found) if ok else Check(name, False, expected, found, cause, remedy)


_CONTAINER = ("gpus_in_", "gpu_in_", "uuids_in_", "compute_in_", "framework")
_GPU = ("gpus_on_host", "nvml_version", "compute", "persistence_mode") + _CONTAINER
_OF_DOCKER = tuple(name + "container" for name in _CONTAINER[:4])
_DRIVER = ("driver_version", "driver_flavour", "driver_on_disk", "driver_userspace")
_FOLLOWS = {
    "driver_at_boot": ("driver_module",),
    "driver_module": _DRIVER + ("nvidia_smi", "module_parameters") + _GPU,
    "driver_on_disk": ("driver_userspace", "driver_version", "driver_flavour") + _GPU,
    "driver_userspace": ("nvidia_smi",) + _GPU,
    "gpus_on_pci": _GPU,
    "xid": _GPU,
    "gpus_on_host": _GPU,
    "fabric_manager": ("compute", "framework"),
    "compute": ("compute_in_", "framework"),
    "docker": ("container_runtime", "image_requirement") + _OF_DOCKER,
    "container_runtime": _OF_DOCKER,
    "image_requirement": _CONTAINER,
}
"""What follows from a failed check, by the beginnings of the names of checks."""


def follows(name: str, cause: str) -> bool:
    """Return True if a failure of check ``name`` is a consequence of one of check ``cause``."""
    if name == cause:
        return False
    if cause in _FOLLOWS:
        return name.startswith(_FOLLOWS[cause])
    if cause.startswith("gpus_in_"):
        place = cause[len("gpus_in_") :]
        return name in ("gpu_in_" + place, "uuids_in_" + place, "compute_in_" + place)
    if cause.startswith(("cdi_for_", "runtime_for_")):
        return name.endswith("_in_%s_container" % cause.partition("_for_")[2])
    return name.endswith(("_for_" + cause, "_in_%s_container" % cause))


def describe_check(check: Check) -> str:
    """Return a failed check as "name: cause (expected and found)"."""
    compared = "expected %s, found: %s" % (check.expected, check.found.rstrip("."))
    text = "%s (%s)" % (check.cause, compared) if check.cause else compared
    return "%s: %s" % (check.name.replace("_", " "), text)


def failure_message(checks: list[Check]) -> str:
    """Return why a verification failed: each cause, the names of checks that failed as a consequence, the remedies."""
    failed = [check for check in checks if check.ok is False]
    names = list(dict.fromkeys(check.name for check in failed))
    roots = [name for name in names if not any(follows(name, other) for other in names)]
    causes = [check for check in failed if check.name in roots]
    if not causes:
        return ""
    text = "; ".join(describe_check(check) for check in causes) + "."
    consequences = [name.replace("_", " ") for name in names if name not in roots]
    if consequences:
        text += " Consequences: %s." % ", ".join(consequences)
    remedies = list(dict.fromkeys(check.remedy for check in causes if check.remedy))
    return text + (" Remedy: %s." % "; ".join(remedies) if remedies else "")


def gpu_count(gpus: Sequence[object]) -> str:
    return "%d GPU%s" % (len(gpus), "" if len(gpus) == 1 else "s")
