"""Playbooks with honest hosts: what each module of a run answers, computed by the product's own planner."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.facts import model
from plugins.module_utils.gpu_ready.facts.model import Facts, GpuProcess, ModuleFacts
from plugins.module_utils.gpu_ready.upgrade import journal
from plugins.plugin_utils.gpu_ready.plan import answer as decide
from plugins.plugin_utils.gpu_ready.plan import compose, upgrade
from plugins.plugin_utils.gpu_ready.plan.containers.model import CleanupParams, ContainerdParams, MigrationParams
from plugins.plugin_utils.gpu_ready.plan.cuda.model import ToolkitRemovalParams
from plugins.plugin_utils.gpu_ready.plan.driver.model import DetectParams, NextKernelParams
from plugins.plugin_utils.gpu_ready.plan.model import Step, ToolkitChoice
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit.hosts import KERNEL, T4, as_collected, bare, carried_out, having
from tests.unit.verify_answers import collected_verification

Answers = dict[str, dict[str, Any]]
OLD, NEW = "580.95.05", "595.91.07"
OPERATOR_FILES = ("driver.run", "cuda.run", "cudnn-linux-x86_64-9.10.2.21_cuda12-archive.tar.xz", "image.tar")
"""Files of the operator on the control node."""
DRIVER = {"version": OLD, "branch": "580", "flavour": "open", "source": "cuda_repo", "kernel_modules": "dkms"}
JOURNAL = {"phase": "done", "time": 100, "to": NEW, "seconds": 5, "from": {**DRIVER, "packages": []}}
DRAINS = {
    "docker": {"containers": {"0" * 64: {"name": "train", "paused": False}}},
    "slurm": {"node": "NODE", "controller": "NODE", "reason": "gpu-ready: driver upgrade"},
}
"""Entries of drain.json; NODE is the name of the host."""
WAITED = {"changed": True, "done": True, "waiting": "", "deadline": 0.0, "remaining_s": 0}
"""Of a drain that is complete."""


class Scene(NamedTuple):
    """A playbook, the operator's variables, and the honest answers of one host."""

    name: str
    playbook: str
    variables: Mapping[str, Any]
    answers: Answers
    modules: tuple[str, ...]
    """The modules whose answers the campaign attacks here."""
    before: tuple[dict[str, Any], ...] = ()
    """What the hostile host answers besides its attack, so that the run comes to the module."""
    steps: Mapping[str, tuple[str, ...]] = {}
    """By module, the steps of the hostile host's plan that use it; all hosts have those of "" in their plan."""
    good: str = "failed=0"
    """What the output or a report says of an honest host."""
    facts: bool = False
    """Whether hosts answer gpu_node_plan with facts, as the product has it; with the plan of their choice otherwise."""

    def answers_for(self, *modules: str) -> Answers:
        """Return the answers of a host whose plan has the steps that use these modules, so that the run comes to them soon."""
        requested = [step for module in ("", *modules) for step in self.steps.get(module, ())]
        answer = self.answers.get("gpu_node_plan")
        if answer is None or not self.steps:
            return self.answers
        missing = [step for step in requested if step not in answer["todo"]]
        assert not missing, f"{self.name}: the plan has no step {missing}"
        shown = [step for step in answer["plan"]["steps"] if step["id"] in requested]
        todo = {step: params for step, params in answer["todo"].items() if step in requested}
        return {**self.answers, "gpu_node_plan": {**answer, "plan": {**answer["plan"], "steps": shown}, "todo": todo}}


def plan(facts: Facts, given: Mapping[str, Any], drains: tuple[str, ...] = ()) -> tuple[compose.Plan, dict[str, Any]]:
    """Return the plan of a host, and the answer of gpu_node_plan with it."""
    reading = variables.parse_settings(dict(given))
    assert not reading.errors, reading.errors
    decided = compose.plan(facts, reading.settings, drains)
    assert not decided.refusals, decided.refusals
    status = records.to_json(upgrade.upgrade_status(facts, decided, reading.settings, 100))
    return decided, {"changed": False, **decide.answer_json(facts, decided), "upgrade": status, "lease": ""}


def from_facts(scene: Scene, facts: Facts, after: Facts) -> Scene:
    """Return a scene with hosts that answer gpu_node_plan with these facts, which is what the campaign attacks in it.

    ``after``: the facts when the host is verified.
    """
    collected = {"changed": False, "facts": model.to_json(as_collected(facts)), "lease": "", "time": 100}
    verified = {"gpu_verify": collected_verification(after), "gpu_verified": {"changed": True}}
    return scene._replace(
        name=f"{scene.name}_facts",
        answers={**scene.answers, "gpu_node_plan": collected, **verified},
        modules=("gpu_node_plan",),
        steps={},
        facts=True,
    )


def plain_answers() -> Answers:
    """Return what the modules of roles answer where nothing fails."""
    return {
        "stat": {"changed": False, "stat": {"exists": False}},
        "file": {"changed": True, "path": "/var/lib/gpu-ready", "state": "directory", "mode": "0755", "size": 0},
        "copy": {
            "changed": True,
            "dest": "/var/lib/gpu-ready/x",
            "checksum": "0" * 40,
            "mode": "0600",
            "state": "file",
        },
        "uri": {"changed": False, "status": 200, "msg": "OK", "json": {"Runtimes": {"nvidia": {}}}, "url": "http://x"},
        "command": {"changed": True, "rc": 0, "stdout": "ok", "stderr": "", "cmd": ["x"], "start": "", "end": ""},
        **dict.fromkeys(("gpu_service", "gpu_packages", "gpu_repository", "gpu_files"), {"changed": True}),
        "gpu_kernel_module": {
            "changed": True,
            "loaded_version": OLD,
            "modules": ["nvidia"],
            "held_by": "",
            "reboot_required": False,
            "services": [],
        },
        "gpu_driver_runfile": {"changed": True, "needs_file": True},
        "gpu_cuda_runfile": {"changed": True, "needs": ["12.9"]},
        "gpu_verify": {
            "changed": True,
            "verify": {
                "ok": True,
                "checks": [{"name": "loaded", "ok": True, "expected": OLD, "found": OLD}],
                "nvml": {},
                "container": None,
                "not_run": [],
            },
            "row": {"driver_loaded": OLD, "verified": "2026-11-21T02:12:00Z"},
        },
        "gpu_upgrade_journal": {"changed": True, "journal": JOURNAL},
        "gpu_upgrade_stage": {
            "changed": True,
            "coming": ["libcuda1=595.91.07-1"],
            "kept": ["libcuda1=580.95.05-1"],
            "installers": [],
            "files": {},
        },
        "gpu_drain_journal": {"changed": False, "journal": {}, "description": []},
        "gpu_lease": {"changed": False, "held_by": ""},
        "gpu_drain_docker": {"containers": ["train"], **WAITED},
        "gpu_drain_slurm": {"owned": True, "kept": "", **WAITED},
        "gpu_uninstall": {
            "changed": True,
            "actions": ["delete /etc/profile.d/cuda.sh"],
            "kept": [],
            "stops": [],
            "reboot_required": False,
            "held_by": "",
        },
    }


def scenes(files: Path) -> list[Scene]:
    """Return all scenes; ``files``: directory of the operator's installers on the control node."""
    return [
        provision(),
        provision_from_facts(),
        provision_files(files),
        provision_files_from_facts(files),
        optional_steps(),
        image_tarball(files),
        failed_service(),
        without_python(),
        audit("csv"),
        audit("json"),
        capture(),
        upgrade_drivers("upgrade_drivers.yml", "upgrade"),
        upgrade_drivers("rollback_drivers.yml", "rollback"),
        upgrade_from_facts("upgrade_drivers.yml", "upgrade"),
        upgrade_from_facts("rollback_drivers.yml", "rollback"),
        undrain(),
        Scene(
            "uninstall", "playbooks/uninstall.yml", {"gpu_ready_uninstall": True}, plain_answers(), ("gpu_uninstall",)
        ),
        kubernetes("render", "kubernetes"),
        kubernetes("device_plugin", "kubernetes_apply"),
    ]


UNDRAINING = ("gpu_lease", "gpu_drain_journal", "gpu_drain_docker", "gpu_drain_slurm", "gpu_verify")
PROVISIONING = (
    "gpu_packages", "gpu_repository", "gpu_files", "gpu_kernel_module", "gpu_cuda_toolkit_default",
    "gpu_cudnn_archive", "gpu_service", "uri", "gpu_daemon_json", "gpu_verify",
)  # fmt: skip
COPYING = ("gpu_driver_runfile", "gpu_cuda_runfile", "file", "copy", "stat")
UPGRADING = (
    "gpu_upgrade_journal", "gpu_upgrade_stage", "gpu_drain_journal",
    "gpu_drain_docker", "gpu_drain_slurm", "gpu_kernel_module", "gpu_verify",
)  # fmt: skip


READY = '"state": "ready"'
VERIFIED: dict[str, tuple[str, ...]] = {"": ("gpu_verify.verify",)}
SITE_STEPS = {
    **VERIFIED,
    "gpu_packages": ("kernel_headers.install",),
    "gpu_repository": ("nvidia_driver.repository",),
    "gpu_files": ("nvidia_driver.blacklist_nouveau",),
    "gpu_kernel_module": ("nvidia_driver.activate",),
    "gpu_cuda_toolkit_default": ("cuda_toolkit.default",),
    "gpu_cudnn_archive": ("cudnn.install",),
    "gpu_service": ("nvidia_driver.persistenced",),
    "gpu_service_failure": ("docker_engine.install",),
    "uri": ("docker_engine.install",),
    "gpu_daemon_json": ("nvidia_container_runtime.configure",),
}
FILE_STEPS = {
    **VERIFIED,
    **dict.fromkeys(("gpu_driver_runfile", "file", "copy", "stat"), ("nvidia_driver.runfile",)),
    "gpu_cuda_runfile": ("cuda_toolkit.runfile",),
}
OPTIONAL_STEPS = {
    **VERIFIED,
    "gpu_monitoring": ("gpu_monitoring.textfile",),
    "gpu_driver_volume": ("nvidia_container_runtime.volume",),
    "gpu_cdi_spec": ("nvidia_container_runtime.cdi_spec",),
    "gpu_containerd_config": ("nvidia_container_runtime.containerd",),
    "systemd_service": ("nvidia_container_runtime.containerd",),
    "gpu_revert": ("nvidia_container_runtime.cleanup",),
    "gpu_dkms": ("nvidia_driver.next_kernel",),
    "gpu_nvidia_detect": ("nvidia_driver.detect",),
    "gpu_cuda_toolkit_absent": ("cuda_toolkit.remove",),
    "command": ("nvidia_container_runtime.migrate",),
    "stat": ("nvidia_container_runtime.migrate",),
}


def drained() -> dict[str, Any]:
    """Return the answer of gpu_drain_journal on a drained host."""
    return {"changed": False, "journal": DRAINS, "description": ["docker's container train is stopped"]}


def undrain() -> Scene:
    """Return undrain.yml for hosts that slurm and docker drain."""
    given = {"nvidia_driver_source": "cuda_repo", "nvidia_driver_version": OLD}
    decided, _ = plan(bare(T4), given)
    _, answer = plan(carried_out(bare(T4), decided), given)
    answers = {**plain_answers(), "gpu_node_plan": answer, "gpu_drain_journal": drained()}
    return Scene("undrain", "playbooks/undrain.yml", given, answers, UNDRAINING)


def provision() -> Scene:
    """Return site.yml with the defaults on a bare host."""
    _, answer = plan(bare(T4), {})
    return Scene(
        "site", "site.yml", {}, {**plain_answers(), "gpu_node_plan": answer}, PROVISIONING, (), SITE_STEPS, READY
    )


def provision_from_facts() -> Scene:
    """Return site.yml on a host that only has to be verified."""
    decided, _ = plan(bare(T4), {})
    facts = carried_out(bare(T4), decided)._replace(verified=None)
    return from_facts(provision(), facts, facts)._replace(modules=("gpu_node_plan", "gpu_verify", "gpu_verified"))


def provision_files_from_facts(files: Path) -> Scene:
    """Return site.yml with installers of the control node, on a bare host."""
    scene = provision_files(files)
    decided, _ = plan(bare(T4), scene.variables)
    return from_facts(scene, bare(T4), carried_out(bare(T4), decided))


def upgrade_from_facts(playbook: str, name: str) -> Scene:
    """Return an upgrade of hosts with the old driver, or a rollback of hosts with the new one."""
    version = OLD if name == "upgrade" else NEW
    decided, _ = plan(bare(T4), {"nvidia_driver_source": "cuda_repo", "nvidia_driver_version": version})
    facts = carried_out(bare(T4), decided)
    if name == "rollback":
        facts = facts._replace(upgrade=journal.from_json({**JOURNAL, "schema": 1, "rollout": 1700000000}))
    other, _ = plan(
        facts, {"nvidia_driver_source": "cuda_repo", "nvidia_driver_version": OLD if version == NEW else NEW}
    )
    return from_facts(upgrade_drivers(playbook, name), facts, carried_out(facts, other))


def provision_files(files: Path) -> Scene:
    """Return site.yml with installers of the control node."""
    given: dict[str, Any] = {
        "nvidia_driver_source": "runfile",
        "nvidia_driver_version": OLD,
        "nvidia_driver_runfile": str(files / "driver.run"),
        "nvidia_driver_runfile_sha256": "0" * 64,
        "cuda_toolkit_source": "runfile",
        "cuda_toolkit_versions": ["12.9.1"],
        "cuda_toolkit_runfiles": {"12.9.1": {"file": str(files / "cuda.run"), "sha256": "0" * 64}},
        "cudnn_archive": str(files / "cudnn-linux-x86_64-9.10.2.21_cuda12-archive.tar.xz"),
        "cudnn_version": "9.10.2",
    }
    _, answer = plan(bare(T4), given)
    return Scene(
        "site_files", "site.yml", given, {**plain_answers(), "gpu_node_plan": answer}, COPYING, (), FILE_STEPS, READY
    )


def optional_steps() -> Scene:
    """Return site.yml with the steps that a bare host does not need, or that only a variable asks for."""
    _, answer = plan(bare(T4), {"gpu_monitoring": ["textfile"], "nvidia_container_runtime_mode": "native"})
    decided, _ = plan(bare(T4, distro="debian13"), {"nvidia_container_runtime_mode": "cdi"})
    steps = [step for step in decided.steps if step.id == "nvidia_container_runtime.cdi_spec"]
    daemon = "/etc/docker/daemon.json"
    params: dict[str, Any] = {
        "nvidia_driver.next_kernel": NextKernelParams(KERNEL),
        "nvidia_driver.detect": DetectParams(["nvidia-detect"], ["nvidia-driver"], ["Tesla T4"]),
        "cuda_toolkit.remove": ToolkitRemovalParams([], [ToolkitChoice("12.8", "/usr/local/cuda-12.8")]),
        "nvidia_container_runtime.cleanup": CleanupParams(["nvidia-container-toolkit"], [], [], []),
        "nvidia_container_runtime.containerd": ContainerdParams("toolkit", False, "restarted"),
        "nvidia_container_runtime.migrate": MigrationParams([], ["train"], [], [], [], ["libnvidia"], daemon),
    }
    steps += [Step(name, "an earlier configuration", params=one) for name, one in params.items()]
    shown = compose.plan_json(decided._replace(steps=steps))["steps"]
    plan_json = {**answer["plan"], "steps": answer["plan"]["steps"] + shown}
    todo = {**answer["todo"], **{step.id: records.to_json(step.params) for step in steps}}
    answers = {**plain_answers(), "gpu_node_plan": {**answer, "plan": plan_json, "todo": todo}}
    modules = tuple(name for name in OPTIONAL_STEPS if name)
    return Scene("site_optional", "site.yml", {}, answers, modules, (), OPTIONAL_STEPS, READY)


def image_tarball(files: Path) -> Scene:
    """Return site.yml with the image of the verification as a file: `command` asks whether the host has it already."""
    given = {"gpu_verify_image": str(files / "image.tar")}
    return provision()._replace(name="site_tarball", variables=given, modules=("command",))


def kubernetes(mode: str, name: str) -> Scene:
    """Return kubernetes.yml, which writes the labels of all hosts to one file, or applies them to nodes."""
    labels = {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.count": "1"}
    answers = {**plain_answers(), "gpu_kubernetes_labels": {"changed": False, "labels": labels, "gpus": ["GPU-1"]}}
    given = {"gpu_kubernetes": mode, "gpu_kubernetes_verify": False}
    return Scene(name, "playbooks/kubernetes.yml", given, answers, ("gpu_kubernetes_labels",), good="Tesla-T4")


def failed_service() -> Scene:
    """Return site.yml where services do not start, so that the host is asked why."""
    fails = {"module": "gpu_service", "do": "merge", "value": {"failed": True, "msg": "it does not start"}}
    return provision()._replace(name="site_service", modules=("gpu_service_failure",), before=(fails,))


def without_python() -> Scene:
    """Return site.yml on a host whose Python does not start, so that a shell is asked."""
    text = "L2Jpbi9zaDogL3Vzci9iaW4vcHl0aG9uMzogbm90IGZvdW5kCg=="  # /bin/sh: /usr/bin/python3: not found
    fails = {"module": "gpu_node_plan", "do": "print", "value": text}
    return provision()._replace(name="site_python", modules=("raw",), before=(fails,))


def audit(form: str) -> Scene:
    """Return audit.yml in a format."""
    decided, _ = plan(bare(T4), {})
    facts = carried_out(bare(T4), decided)
    facts = having(facts, driver={"loaded": ModuleFacts("570.10.01", "open")})
    facts = having(facts, work={"processes": [GpuProcess(7, "python3", "python3 train.py")]})
    collected = {"changed": False, "facts": model.to_json(as_collected(facts)), "lease": "", "time": 100}
    return Scene(
        f"audit_{form}",
        "playbooks/audit.yml",
        {"gpu_audit_format": form},
        {**plain_answers(), "gpu_audit": collected},
        ("gpu_audit",),
        good='"state": "drift"' if form == "json" else "drift,loaded",
        facts=True,
    )


def capture() -> Scene:
    """Return capture.yml, of which the tests of captures read the files."""
    answer = {
        "changed": False,
        "facts": model.to_json(as_collected(bare(T4))),
        "raw": {"files": {}, "programs": [], "cut": {}},
    }
    given = {"gpu_capture_directory": "reports/captures"}
    answers = {**plain_answers(), "gpu_capture": answer}
    return Scene("capture", "playbooks/capture.yml", given, answers, ("gpu_capture",), facts=True)


def upgrade_drivers(playbook: str, name: str) -> Scene:
    """Return an upgrade or a rollback of a fleet, with hosts drained by slurm and docker."""
    given: dict[str, Any] = {"nvidia_driver_source": "cuda_repo", "nvidia_driver_version": OLD}
    decided, _ = plan(bare(T4), given)
    facts = carried_out(bare(T4), decided)
    changed = {**given, "nvidia_driver_version": NEW, "cuda_toolkit_source": "none", "cudnn_source": "none"}
    _, answer = plan(facts, changed, ("slurm", "docker"))
    if name == "rollback":
        answer["upgrade"]["journal"] = {**JOURNAL, "rollout": 1700000000, "touched": True, "reason": "", "since": None}
        answer["upgrade"]["back"] = {
            "nvidia_driver_source": "cuda_repo",
            "nvidia_driver_version": OLD,
            "nvidia_driver_packages": [],
            "nvidia_driver_branch": "580",
            "nvidia_driver_flavour": "open",
            "nvidia_driver_kernel_modules": "dkms",
            "nvidia_driver_runfile": "",
            "nvidia_driver_runfile_sha256": "",
        }
    operator = {
        **changed,
        **({"gpu_upgrade_rollout": 1700000000} if name == "rollback" else {}),
        "gpu_upgrade_drain": ["slurm", "docker"],
        "gpu_upgrade_soak": 0,
        "gpu_upgrade_batches": ["100%"],
        "gpu_upgrade_max_failures": 1000,
        "gpu_upgrade_leave_out": True,
        "gpu_drain_slurm_node": "{{ inventory_hostname }}",
    }
    answers = {**plain_answers(), "gpu_node_plan": answer, "gpu_drain_journal": drained()}
    modules = UPGRADING if name == "upgrade" else ("gpu_upgrade_journal",)
    good = "rolled back" if name == "rollback" else "upgraded"
    return Scene(name, f"playbooks/{playbook}", operator, answers, modules, good=good)
