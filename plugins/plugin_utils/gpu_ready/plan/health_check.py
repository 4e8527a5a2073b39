"""gpu-ready-check on the host and its wirings."""

from typing import NamedTuple

from ....module_utils.gpu_ready.facts.model import Facts
from ....module_utils.gpu_ready.system import check_files as files
from ....module_utils.gpu_ready.system.monitoring_files import short_digest
from ..catalog import data as catalog_data
from ..catalog.settings import Settings
from .model import Decision, Step


class CheckRemoval(NamedTuple):
    """gpu_monitoring.remove_check, and files that an update leaves behind. ``timer``: it has to be stopped."""

    paths: list[str]
    timer: bool


class CheckStep(NamedTuple):
    """gpu_monitoring.check."""

    python: str
    wirings: list[str]
    off: list[str]
    limits: dict[str, int]
    leftovers: list[str]
    timer: bool


def plan_check(facts: Facts, settings: Settings) -> Decision[None]:
    """Return the step that installs or updates the check, or removes what an earlier run installed."""
    known = facts.monitoring
    timer = files.UNITS + files.TIMER in known.check
    if not settings.gpu_health_check:
        single = [path for path in sorted(known.check) if not path.startswith(files.PACKAGE + "/")]
        removal = CheckRemoval([*single, files.DIRECTORY], timer)
        why = "gpu_health_check is empty"
        found = [Step("gpu_monitoring.remove_check", why, params=removal, verify_after=False)] if known.check else []
        return Decision(None, found)
    wirings, limits = sorted(settings.gpu_health_check), settings.gpu_health_check_limits
    given = files.CheckParams(
        known.python, wirings, sorted(settings.gpu_health_check_off), {k: int(v) for k, v in limits.items()}
    )
    desired = digests(given)
    leftovers = [path for path in sorted(known.check) if path not in desired]
    stale = [path for path, digest in sorted(desired.items()) if known.check.get(path) != digest]
    if not known.check:
        why = "gpu-ready-check is not installed"
    elif stale or leftovers:
        why = "gpu-ready-check is not as configured"
    elif files.SYSTEMD in wirings and not known.check_running:
        why = "the timer of gpu-ready-check does not run"
    else:
        return Decision()
    others = [path for path in leftovers if not path.startswith(files.PACKAGE + "/")]
    params = CheckStep(*given, others, timer and files.UNITS + files.TIMER not in desired)
    return Decision(None, [Step("gpu_monitoring.check", why, params=params, verify_after=False)])


def contents(params: files.CheckParams) -> dict[str, str]:
    """Return every file of the check by path."""
    program = {files.PACKAGE + "/" + name: data.decode("utf-8") for name, data in catalog_data.CHECK.items()}
    return program | files.format_files(params)


def digests(params: files.CheckParams) -> dict[str, str]:
    """Return the files as MonitoringFacts.check has them."""
    return {path: short_digest(text.encode("utf-8")) for path, text in contents(params).items()}
