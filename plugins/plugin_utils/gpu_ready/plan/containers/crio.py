"""The changes that CRI-O's configuration needs."""

from typing import NamedTuple

from .....module_utils.gpu_ready.containers import crio, crio_edits
from .....module_utils.gpu_ready.containers.containerd import config
from .....module_utils.gpu_ready.facts.model import Facts
from ...catalog.settings import Settings
from ..model import FileDiff, Refusal, Step
from .model import CrioParams, SupportFile


class CrioDecision(NamedTuple):
    """The step for CRI-O's drop-in file, or why it cannot be written."""

    step: Step | None = None
    refusals: list[Refusal] = []


def plan_crio(facts: Facts, settings: Settings, used: bool) -> CrioDecision:
    engine = facts.engines.crio
    if not engine.installed:
        if not used:
            return CrioDecision()
        message = "CRI-O is not installed, and nvidia_container_runtime_engines names it"
        remedy = "install it, or remove crio from nvidia_container_runtime_engines"
        return CrioDecision(None, [Refusal("crio_missing", message, remedy)])
    before = next((file.text for file in engine.files if file.path == crio.DROP_IN), None)
    after = None
    if used:
        mode, default = settings.nvidia_container_runtime_mode, settings.nvidia_container_runtime_default
        try:
            after = crio_edits.drop_in_text(engine.files, mode, default)
        except config.ConfigError as error:
            return CrioDecision(None, [Refusal(error.code, error.problem, error.remedy)])
    elif crio.DROP_IN not in facts.runtime.manifest.files:
        return CrioDecision()
    if after == before and not engine.pending and (engine.active or not used):
        return CrioDecision()
    if after != before:
        why = "%s %s" % (crio.DROP_IN, "is written" if after else "is no longer needed")
    else:
        why = "an interrupted run did not restart it" if engine.pending else "CRI-O does not run"
    # Containers are children of conmon, in scopes of their own: a restart of CRI-O leaves them running.
    why += "; its restart leaves running containers alone" if engine.active else ""
    files = (
        [SupportFile(crio.DROP_IN, after or "", "0644", "present" if after else "absent")] if after != before else []
    )
    state = "restarted" if engine.active else "started" if used else ""
    diff = [FileDiff(crio.DROP_IN, before, after)] if after != before else []
    return CrioDecision(Step("nvidia_container_runtime.crio", why, params=CrioParams(files, state), diff=diff))
