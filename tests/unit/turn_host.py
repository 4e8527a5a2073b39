"""A host in memory for the turns of a rollout: its journals are those of the product, its driver is one text.

What a real module answers is in the form of its record; what it does is one line. Failures and kills are given by the
calls at which they happen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.drain import journal as drains
from plugins.module_utils.gpu_ready.upgrade import journal as upgrades
from plugins.module_utils.gpu_ready.upgrade import model, phases
from plugins.plugin_utils.gpu_ready.execute.model import StepFailed
from plugins.plugin_utils.gpu_ready.turn import run, table
from plugins.plugin_utils.gpu_ready.turn.model import Elsewhere, Turn, TurnSettings, Unreachable

OLD, NEW = "580.95.05", "595.91.07"
DRIVER = {
    "version": OLD, "branch": "580", "flavour": "open", "source": "cuda_repo", "kernel_modules": "dkms", "packages": [],
}  # fmt: skip
BACK = {"nvidia_driver_version": OLD}
DEFAULTS = {
    "gpu_drain_docker_grace": -1, "gpu_drain_docker_stop_temporary": False, "gpu_drain_slurm_become": True,
    "gpu_drain_slurm_bin": "", "gpu_drain_kubernetes_become": False, "gpu_drain_kubernetes_kubectl": "kubectl",
    "gpu_drain_kubernetes_grace_period": -1, "gpu_drain_kubernetes_delete_emptydir_data": True,
    "gpu_drain_kubernetes_force": False, "gpu_drain_kubernetes_disable_eviction": False,
    "gpu_drain_kubernetes_pod_selector": "", "gpu_ready_reboot_timeout": 1200, "gpu_ready_reboot_ok": False,
    "gpu_ready_disrupt": [], "gpu_verify_image": "ubuntu:24.04", "gpu_verify_devices": "all", "gpu_verify_compute": True,
    "gpu_verify_framework": "", "gpu_verify_framework_image": "", "gpu_verify_timeout": 300, "nvidia_driver_runfile": "",
}  # fmt: skip


class Killed(BaseException):
    """The run ends here, as by SIGKILL."""


class Disk:
    """What survives a killed run: the journals, the driver, what is drained, whether it holds a lease."""

    def __init__(self) -> None:
        self.upgrade: model.UpgradeJournal | None = None
        self.drains = drains.DrainJournal()
        self.driver = self.loaded = OLD
        self.drained: dict[str, str] = {}
        """Who drained what elsewhere: the reason by hook."""
        self.leased = False
        self.serving: list[str] = []
        """The driver that was verified last where the host was undrained, for each time."""
        self.verified = OLD
        self.time = 1000
        self.writes: list[str] = []


class MemoryHost:
    """A host in its turn."""

    check = False

    def __init__(
        self,
        disk: Disk,
        hooks: tuple[str, ...] = (),
        soak: int = 60,
        action: str = "reload",
        fails: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.disk, self.action, self.fails = disk, action, dict(fails or {})
        self.variables = {**DEFAULTS, **settings}
        self.lease: Mapping[str, Any] = {"lasts": 600}
        self.todo: Mapping[str, Any] = {}
        self.driver: Any = None
        self.calls: list[tuple[str, Mapping[str, Any], int]] = []
        self.events: list[tuple[str, str, str]] = []
        self.phases: list[str] = []
        self.kill_after = 0
        """The write of the journal after which the run is killed; 0: none."""
        planned = {"installed": DRIVER, "from": OLD, "to": NEW, "back": BACK, "touched": False}
        self.settings = TurnSettings(hooks, hooks, 1800, soak, planned, 7, bool(settings.get("gpu_undrain_unverified")))

    # ---- what a turn asks of its host

    def setting(self, name: str) -> Any:
        return self.variables[name]

    def now(self) -> float:
        return float(self.disk.time)

    def sleep(self, seconds: float) -> None:
        self.disk.time += int(seconds)

    def warn(self, text: str) -> None:
        self.events.append(("warning", "", text))

    def show(self, kind: str, phase: str, text: str) -> None:
        self.events.append((kind, phase, text))

    def record(self, phase: str) -> None:
        self.phases.append(phase)

    def node(self, hook: str) -> dict[str, Any]:
        node = {"node": "n1", "reason": "gpu-ready: driver upgrade"}
        return node | (
            {"controller": "ctl"} if hook == "slurm" else {"host": "localhost", "kubeconfig": "", "context": ""}
        )

    def run(
        self, module: str, arguments: Mapping[str, Any], seconds: int = 1800, check: bool = False
    ) -> dict[str, Any]:
        self.disk.time += 1
        self.calls.append((module, arguments, seconds))
        assert len(self.calls) < 1000, "the turn does not end"
        name = module.rpartition(".")[2]
        for key in (
            name,
            f"{name} {arguments.get('phase') or arguments.get('state') or arguments.get('purpose') or ''}",
        ):
            if key in self.fails:
                failure = self.fails[key]
                if isinstance(failure, list):
                    failure = failure.pop(0) if failure else None
                if isinstance(failure, BaseException):
                    raise failure
                if failure is not None:
                    raise StepFailed({"failed": True, "msg": "it fails", **failure})
        answer: dict[str, Any] = getattr(self, "answer_" + name)(arguments)
        return answer

    # ---- modules

    def answer_gpu_lease(self, given: Mapping[str, Any]) -> dict[str, Any]:
        self.disk.leased = given["state"] != "released"
        return {}

    def answer_gpu_upgrade_journal(self, given: Mapping[str, Any]) -> dict[str, Any]:
        driver = records.from_json(model.RecordedDriver, given["driver"]) if given.get("driver") else None
        self.disk.upgrade = phases.advance(
            self.disk.upgrade, given["phase"], self.disk.time, driver, given.get("target", ""), given.get("reason", ""),
            given.get("rollout", 0),
        )  # fmt: skip
        self.wrote(given["phase"])
        return {"journal": upgrades.to_json(self.disk.upgrade)}

    def answer_gpu_drain_journal(self, given: Mapping[str, Any]) -> dict[str, Any]:
        before = self.disk.drains
        kept = drains.without(before, list(given.get("remove", [])))
        self.disk.drains = drains.merge(kept, drains.from_json(dict(given.get("record", {}))))
        if self.disk.drains != before:
            self.wrote("drains")
        return {"journal": drains.to_json(self.disk.drains)}

    def wrote(self, what: str) -> None:
        self.disk.writes.append(what)
        if self.kill_after and len(self.disk.writes) == self.kill_after:
            raise Killed

    def answer_gpu_drain_docker(self, given: Mapping[str, Any]) -> dict[str, Any]:
        if given["state"] == "drained":
            record = {"docker": {"containers": {"1": {"name": "train", "paused": False}}}}
            self.answer_gpu_drain_journal({"record": record})
            self.disk.drained["docker"] = "gpu-ready"
        else:
            self.disk.drained.pop("docker", None)
            self.serve()
            self.answer_gpu_drain_journal({"remove": ["docker"]})
        return {"done": True}

    def serve(self) -> None:
        self.disk.serving.append(self.disk.verified if self.disk.verified == self.disk.loaded else "unverified")

    def answer_gpu_node_plan(self, given: Mapping[str, Any]) -> dict[str, Any]:
        requested = given["overrides"].get("nvidia_driver_version", NEW)
        todo: dict[str, Any] = {}
        if {self.disk.loaded, self.disk.driver} != {requested}:
            todo["nvidia_driver.install"] = {
                "runfile": None, "pin_packages": [], "streams": {}, "unhold": [], "allow_remove": [], "remove": [],
                "packages": [requested], "rebuild": None,
            }  # fmt: skip
            activate = {"action": self.action, "why": "the module is in use", "modules": [], "later": []}
            todo["nvidia_driver.activate"] = {**activate, "force": False, "kubelet": False}
        installed = {**DRIVER, "version": self.disk.driver, "branch": self.disk.driver.partition(".")[0]}
        recorded = self.disk.upgrade.from_ if self.disk.upgrade else None
        return {
            "plan": {"refusals": [], "gpu_host": True, "summary": "a GPU"},
            "todo": todo,
            "lines": [f"driver {requested}"],
            "refusal": "",
            "verification": {"expect": {"engines": {"names": []}}, "digest": requested},
            "upgrade": {
                "installed": installed,
                "back": BACK if recorded else None,
                "journal": upgrades.to_json(self.disk.upgrade) if self.disk.upgrade else None,
            },
        }

    def answer_gpu_upgrade_stage(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"files": {}}

    def answer_gpu_packages(self, given: Mapping[str, Any]) -> dict[str, Any]:
        self.disk.driver = given["names"][0]
        return {}

    def answer_gpu_kernel_module(self, given: Mapping[str, Any]) -> dict[str, Any]:
        self.disk.loaded = self.disk.driver
        return {"reboot_required": False, "held_by": ""}

    def answer_reboot(self, given: Mapping[str, Any]) -> dict[str, Any]:
        self.disk.loaded = self.disk.driver
        return {"rebooted": True}

    def answer_gpu_verify(self, given: Mapping[str, Any]) -> dict[str, Any]:
        if self.disk.loaded != given["digest"]:
            raise StepFailed({"failed": True, "msg": "Not verified"})
        self.disk.verified = self.disk.loaded
        return {"row": {"driver_loaded": self.disk.loaded}, "verify": {"ok": True}}

    # ---- elsewhere

    def elsewhere(self, call: Elsewhere) -> dict[str, Any]:
        """Do what Ansible does between two parts of a turn."""
        self.calls.append((call.module or call.path, {**call.arguments, "action": call.action}, call.seconds))
        key = call.path or f"{call.module} {call.arguments.get('state')}"
        if key in self.fails:
            return {"failure": "it fails"}
        if call.tasks == "task_file.yml":
            if call.action == "undrain":
                self.serve()
            return {}
        hook, state, reason = call.module.rpartition("_")[2], call.arguments["state"], call.arguments.get("reason", "")
        if state in ("undrained", "uncordoned"):
            self.disk.drained.pop(hook, None)
            self.serve()
            return {}
        other = self.disk.drained.get(hook, reason) != reason
        if state in ("drained", "cordoned") and not call.check and not other:
            self.disk.drained[hook] = reason
        return {"owned": not other, "kept": "drained by somebody else" if other else ""}


def take_turn(
    host: MemoryHost, kind: str = table.UPGRADE, touched: bool = False, watch: Callable[[Turn], None] | None = None
) -> Turn:
    """Carry out a whole turn, as roles/gpu_drain does."""
    turn, answer = Turn(kind=kind, touched=touched), None
    while True:
        turn, call = run.carry_out(turn, host, answer)
        turn = Turn(**turn._asdict())
        if watch:
            watch(turn)
        if not call:
            return turn
        answer = host.elsewhere(call)


def unreachable() -> Unreachable:
    """Return what a host raises that does not answer."""
    return Unreachable("ssh: connect to host port 22: No route to host")
