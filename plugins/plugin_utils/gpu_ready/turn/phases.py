# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What each phase of a turn does. table.py decides what follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ....module_utils.gpu_ready.base import records
from ....module_utils.gpu_ready.upgrade.model import RecordedDriver
from ..execute import steps
from ..execute.model import INSTALL, Answer, Execution, StepFailed, fail
from ..execute.reboot import restart
from ..plan.driver.point_release import NEWEST
from ..plan.upgrade import rollback_settings
from . import drain, table
from .model import NOTE, STEP, LeasedHost, Piece, PieceResult, Turn, TurnHost, Unreachable

LASTS = 600
"""Seconds after which the lease of a host ends: its steps wait for no other host."""
PATIENCE, ATTEMPT, PLANNING = 900, 900, 900
"""Seconds in which the last step of a killed run has to end (DKMS, apt); of one attempt to take the lease; in which a
host has to answer with its facts, which take a few."""
DELAY = 10
"""Seconds between two attempts."""
REPAIR = "gpu_plan.repair_packages"
ONLY = {"cuda_toolkit_source": "none", "cudnn_source": "none", "gpu_ready_index": "none"}
"""An upgrade replaces the driver and what depends on its version. Toolkits and cuDNN wait for site.yml."""
NO_GPU = (
    "This host has no GPU to verify any more ({}). Check `lspci -d 10de:`, and reboot it so that its GPUs are on the "
    "PCI bus again"
)
NO_REBOOT = (
    "The driver needs a reboot: {}. Set gpu_ready_reboot_ok to true, or set gpu_upgrade_drain so that it ends what uses"
    " the GPUs."
)
NO_RECORD = "/var/lib/gpu-ready/upgrade.json: it names no driver to roll back to."
UNCLEAR = (
    "The driver of this host cannot be verified, because it is unclear which one is installed ({}). Run site.yml for "
    "it, or return it to service as it is with -e gpu_undrain_unverified=true."
)
WAYS = {"reboot": "reboot", "none": "none"}
"""How the new driver comes into use, by the action of the plan's step; else live."""


def take_lease(host: LeasedHost) -> tuple[bool, Answer]:
    """Take the lease of a host; return whether that waited for the last step of a killed run, and the answer.

    Raises StepFailed.
    """
    end, waited = host.now() + PATIENCE, False
    while True:
        try:
            return waited, host.run("gpu_ready.nodes.gpu_lease", {"state": "taken", **host.lease}, ATTEMPT)
        except StepFailed as error:
            if not error.result.get("last_step_running") or host.now() > end:
                raise
        waited = True
        host.show(NOTE, table.LEASE, "waiting for the last step of a run that was killed")
        host.sleep(DELAY)


def release_lease(host: LeasedHost) -> None:
    """Let other runs change the host; a lease that is not released ends by itself."""
    try:
        host.run("gpu_ready.nodes.gpu_lease", {"state": "released"})
    except (StepFailed, Unreachable) as error:
        host.warn(f"the lease of this host was not released: {error}")


def write_journal(turn: Turn, host: TurnHost, phase: str, **arguments: Any) -> Mapping[str, Any]:
    """Have the host record a phase of the upgrade, after the control node has; return its journal."""
    host.record(phase)
    given = {"phase": phase, "reason": turn.reason, **arguments}
    found: Mapping[str, Any] = host.run("gpu_ready.nodes.gpu_upgrade_journal", given)["journal"]
    return found


def ask_plan(host: TurnHost, drains: list[str], overrides: Mapping[str, Any], release: str = "") -> Answer:
    """Return the plan of a host for its driver, with its refusals. Raises StepFailed.

    ``release``: the point release to which a driver of the branch is moved, an option of gpu_node_plan. Only the first
    plan of a rollout asks for the newest one, and with it the package sources of the host: afterwards everything is
    downloaded, and the network may be away.
    """
    only = {name: value for name, value in ONLY.items() if release != NEWEST or name != "gpu_ready_index"}
    given = {"overrides": {**only, **overrides}, "drains": drains, **({"release": release} if release else {})}
    return host.run("gpu_ready.nodes.gpu_node_plan", given, PLANNING)


def refusals(plan: Answer) -> list[object]:
    """Return the refusals of a plan; a host without a plan is refused by its own message."""
    return list((plan.get("plan") or {}).get("refusals") or [])


def warnings(plan: Answer) -> list[str]:
    """Return what a plan warns of, each with its remedy."""
    found = (plan.get("plan") or {}).get("warnings") or []
    return ["; ".join(text for text in (one["message"], one["remedy"]) if text) for one in found]


def refuse(plan: Answer, step: str = "") -> Answer:
    """Return a plan that can be carried out. Raises StepFailed for one with refusals."""
    if refusals(plan):
        raise fail(str(plan["refusal"]), step)
    return plan


def repair_packages(host: LeasedHost, plan: Answer) -> bool:
    """Finish the package operations of an interrupted run; return whether that has made the plan outdated.

    It may have removed packages that could not be configured, or replaced versions.
    """
    if REPAIR not in plan["todo"] or host.check:
        return False
    host.show(STEP, "plan", REPAIR)
    repair = {"purpose": "the interrupted packages"}
    return bool(host.run("gpu_ready.nodes.gpu_packages", repair, INSTALL).get("repaired"))


def plan_repaired(host: TurnHost, drains: list[str], overrides: Mapping[str, Any], release: str = "") -> Answer:
    """Return the plan of a host after the package operations of an interrupted run were repaired."""
    plan = refuse(ask_plan(host, drains, overrides, release))
    return refuse(ask_plan(host, drains, overrides, release)) if repair_packages(host, plan) else plan


def drains_of(turn: Turn, host: TurnHost) -> list[str]:
    """Return what the plan need not refuse the host for.

    Work that a drain moves away is no reason. After it that is only what stays by its nature, pods of DaemonSets, which
    may be restarted then (not where a selector kept other pods too). For a rollback nothing counts: the host is out of
    service already.
    """
    hooks = list(host.settings.drains)
    restarted = []
    if drain.KUBERNETES in hooks and not host.setting("gpu_drain_kubernetes_pod_selector"):
        restarted = ["daemon_sets"]
    if turn.phase == table.PLAN_BACK:
        return ["none", *restarted]
    if turn.drained:
        return [hook for hook in hooks if hook in ("none", drain.KUBERNETES)] + restarted
    return hooks


# ---- parts of phases -------------------------------------------------------------------------------------------------


def begin_lease(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Refuse a host on which another run works, or that another run changed."""
    take_lease(host)
    return PieceResult(turn)


def begin(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Record the begin of the phase in the host's journal."""
    more: dict[str, Any] = {}
    if turn.phase == table.DRAIN and turn.kind == table.UPGRADE:
        more = {"rollout": host.settings.rollout}
        more |= {"driver": host.settings.planned["installed"]} if host.settings.planned.get("installed") else {}
    found = write_journal(turn, host, table.WRITES[turn.phase], **more)
    if turn.phase == table.RESTORED:
        restored = (found.get("from") or {}).get("version") or ""
        turn = turn._replace(seconds=found.get("seconds"), restored=restored, closed=True)
    return PieceResult(turn._replace(touched=turn.touched or turn.phase == table.SWITCH))


def close(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Record in the host's journal that it is in service again."""
    found = write_journal(turn, host, table.CLOSES[turn.phase], target=turn.loaded)
    return PieceResult(turn._replace(seconds=found.get("seconds"), closed=True))


def make_plan(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Plan again after the drain, for the new driver or for the recorded one."""
    drains, back = drains_of(turn, host), turn.phase == table.PLAN_BACK
    overrides = (host.settings.planned.get("back") or {}) if turn.kind == table.ROLLBACK else {}
    release = str(host.settings.planned.get("release") or "") if turn.kind == table.UPGRADE and not back else ""
    if back:
        overrides = refuse(ask_plan(host, drains, {}))["upgrade"]["back"]
        if overrides is None:
            raise fail(NO_RECORD)
        host.show(NOTE, turn.phase, f"rolling back to {overrides.get('nvidia_driver_version') or 'the driver before'}")
    answer = plan_repaired(host, drains, overrides, release)
    if not answer["plan"]["gpu_host"]:
        raise fail(NO_GPU.format(answer["plan"]["summary"]))
    activate = answer["todo"].get("nvidia_driver.activate") or {"action": "none"}
    if activate["action"] == "reboot" and not boolean(host.setting("gpu_ready_reboot_ok"), strict=False):
        raise fail(NO_REBOOT.format(activate["why"]))
    host.todo = answer["todo"]
    way = WAYS.get(activate["action"], "live")
    return PieceResult(turn._replace(way=way, verification=answer["verification"]))


def execute(part: str, turn: Turn, host: TurnHost, todo: Mapping[str, Any] | None = None) -> Execution:
    """Carry out the steps of one role. Raises StepFailed."""
    return steps.execute(
        part,
        host.todo if todo is None else todo,
        host,
        lambda step: host.show(STEP, turn.phase, step),
        turn.drained,
    )


def replace_driver(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Install the headers of the kernel and the driver, and activate it."""
    execute("kernel_headers", turn, host)
    host.driver = execute("nvidia_driver", turn, host)
    return PieceResult(turn._replace(way="reboot" if host.driver.reboot_required else turn.way))


def reboot(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Restart the host if the driver needs that, and wait for it."""
    restart(host.driver, lambda step: host.show(STEP, turn.phase, step))
    return PieceResult(turn)


def configure_containers(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Configure the container runtime."""
    execute("nvidia_container_runtime", turn, host)
    return PieceResult(turn)


def verify(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Verify the driver, also where an earlier run has: nothing returns to service unverified."""
    verified = execute("gpu_verify", turn, host, {"gpu_verify.verify": turn.verification}).verified
    return PieceResult(turn._replace(loaded=str((verified.get("row") or {}).get("driver_loaded") or "")))


def soak(turn: Turn, host: TurnHost, _: Answer) -> PieceResult:
    """Keep the host for the soak time."""
    host.run("gpu_ready.nodes.gpu_lease", {"state": "extended", "lasts": host.settings.soak + LASTS})
    host.sleep(host.settings.soak)
    return PieceResult(turn)


def verify_installed(turn: Turn, host: TurnHost, answer: Answer) -> PieceResult:
    """Verify the driver that a host has, whichever the variables ask for."""
    if host.settings.unverified:
        return PieceResult(turn)
    plan = ask_plan(host, ["none"], {})
    installed = (plan.get("upgrade") or {}).get("installed")
    if not installed:
        raise fail(UNCLEAR.format(plan["plan"].get("summary") or plan.get("refusal")))
    overrides = records.to_json(rollback_settings(records.from_json(RecordedDriver, installed)))
    found = refuse(ask_plan(host, ["none"], overrides))
    return verify(turn._replace(verification=found["verification"]), host, answer)


def verify_drained(turn: Turn, host: TurnHost, answer: Answer) -> PieceResult:
    """Verify a host that is drained, before it is undrained."""
    return verify_installed(turn, host, answer) if turn.recorded and not host.check else PieceResult(turn)


def when_drained(piece: Piece) -> Piece:
    """Return a part that is left out where the drain has failed: the host stays drained."""

    def run(turn: Turn, host: TurnHost, answer: Answer) -> PieceResult:
        return piece(turn, host, answer) if turn.drained else PieceResult(turn)

    return run


def pieces_of(phase: str, host: TurnHost) -> list[Piece]:
    """Return the parts of a phase in their order."""
    undrain, drains = drain.undrain_pieces, drain.drain_pieces
    switch = [replace_driver, reboot, configure_containers]
    found: dict[str, Callable[[], list[Piece]]] = {
        table.LEASE: lambda: [begin_lease],
        table.DRAIN: lambda: [begin, *drains(host)],
        table.PLAN: lambda: [make_plan],
        table.SWITCH: lambda: [begin, *switch],
        table.VERIFY: lambda: [verify],
        table.RETURN: lambda: [begin, *undrain(host), close],
        table.SOAK: lambda: [soak, verify],
        table.LEAVE: lambda: [when_drained(piece) for piece in (verify_installed, *undrain(host), close)],
        table.DRAIN_BACK: lambda: [begin, *drains(host)],
        table.PLAN_BACK: lambda: [make_plan],
        table.SWITCH_BACK: lambda: [*switch],
        table.VERIFY_BACK: lambda: [verify],
        table.RESTORED: lambda: [begin],
        table.STUCK: lambda: [begin],
        table.DRAIN_ALONE: lambda: drains(host),
        table.RETURN_ALONE: lambda: [drain.begin_undrain, verify_drained, *undrain(host)[1:]],
    }
    return found[phase]()
