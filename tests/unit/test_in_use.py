"""The guard of running work: which disruption stops what, what permits it, and what the message names."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.disruptions import NONE
from plugins.module_utils.gpu_ready.containers.docker import EngineInfo
from plugins.module_utils.gpu_ready.facts.model import ContainerFacts, Facts, GpuProcess, WorkFacts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan import compose, in_use
from plugins.plugin_utils.gpu_ready.plan.containers.model import CleanupParams, DockerInstallParams
from plugins.plugin_utils.gpu_ready.plan.driver.model import ActivateParams
from plugins.plugin_utils.gpu_ready.plan.model import Decision, Step
from tests.unit.hosts import T4, bare, having, installed
from tests.unit.plans import settings

PYTHON = GpuProcess(4711, "python3")
DAEMON = GpuProcess(7, "nvidia-persiste", service=True)
TRAIN = ContainerFacts("docker", "a" * 64, "train", "GPU")
WEB = ContainerFacts("docker", "b" * 64, "web")
AGENT = ContainerFacts("docker", "c" * 64, "agent", "privileged")
POD = ContainerFacts("containerd", "d" * 64, "ml/train-0", "GPU", True)
JOB = WorkFacts(jobs=["614"])

RESTART = Step("docker_engine.configure", "daemon.json gets mtu", "docker_restart")
REPLACED = DockerInstallParams([], [], ["containerd.io"], [], [], "docker", "started")
REPLACES = Step("docker_engine.install", "docker is not installed", "containerd_restart", REPLACED)
REPLACES_BOTH = REPLACES._replace(disruption="docker_restart", params=REPLACED._replace(state="restarted"))
CONTAINERD = Step("nvidia_container_runtime.containerd", "containerd's configuration gets x", "containerd_restart")
INSTALL = Step("nvidia_driver.install", "driver 580 is installed; requested is 595", "driver_reload")
REBOOT = Step("nvidia_driver.activate", "nouveau drives the GPU", "reboot")
RELOAD = Step("docker_engine.configure", "daemon.json gets debug", "docker_reload")


def work(*containers: ContainerFacts, processes: tuple[GpuProcess, ...] = (), **more: Any) -> WorkFacts:
    return WorkFacts(list(processes), list(containers), **more)


def decide(
    found: WorkFacts,
    *steps: Step,
    drains: tuple[str, ...] = (),
    live_restore: bool = False,
    kept: bool = True,
    **given: Any,
) -> Decision[None]:
    info = EngineInfo("28.5.1", ["runc"], "runc", live_restore, (), len(found.containers))
    facts = having(bare(T4), docker={"info": info}, engines={"containerd": {"keeps_containers": kept}}, work=found)
    return in_use.check_running_work(facts, settings(**given), list(steps), drains)


ALL = work(TRAIN, WEB, POD, processes=(PYTHON, DAEMON), jobs=["614"])


@pytest.mark.parametrize(
    ("found", "step", "more", "message"),
    [
        (ALL, RELOAD, {}, None),
        (ALL, RELOAD._replace(disruption=NONE), {}, None),
        # docker: every container of docker, with or without a GPU
        (ALL, RESTART, {}, "docker would restart (daemon.json gets mtu), which stops container train (GPU), container web"),
        (work(WEB), RESTART, {}, "docker would restart (daemon.json gets mtu), which stops container web"),
        (ALL, RESTART, {"live_restore": True}, None),
        (work(POD, processes=(PYTHON,), jobs=["1"]), RESTART, {}, None),
        (work(unlisted=3), RESTART, {}, "docker would restart (daemon.json gets mtu), which stops running containers and 3 more"),
        # containerd: only where its unit ends all processes with it
        (ALL, CONTAINERD, {}, None),
        # A package of containerd that another one replaces leaves nothing running for sure.
        (ALL, REPLACES, {}, "containerd would restart (docker is not installed), which stops pod ml/train-0 (GPU), container train (GPU), container web"),
        (ALL, REPLACES_BOTH, {}, "docker would restart (docker is not installed), which stops pod ml/train-0 (GPU), container train (GPU), container web"),
        (ALL, CONTAINERD, {"kept": False}, "containerd would restart (containerd's configuration gets x), which stops pod ml/train-0 (GPU), container train (GPU), container web"),
        # the driver: what holds a GPU or can reach one
        (work(WEB, processes=(DAEMON,)), INSTALL, {}, None),
        (work(processes=(PYTHON,)), INSTALL, {}, "the driver would be replaced (driver 580 is installed; requested is 595) while it is used by process 4711 (python3)"),
        (work(WEB, AGENT), INSTALL, {}, "the driver would be replaced (driver 580 is installed; requested is 595) while it is used by container agent (privileged)"),
        (JOB, INSTALL, {}, "the driver would be replaced (driver 580 is installed; requested is 595) while it is used by Slurm job 614"),
        # a reboot: everything, if it is permitted at all
        (ALL, REBOOT, {}, None),
        (ALL, REBOOT, {"gpu_ready_reboot_ok": True}, "the host would reboot (nouveau drives the GPU), which stops process 4711 (python3), Slurm job 614, pod ml/train-0 (GPU), container train (GPU) and 1 more"),
        (work(processes=(DAEMON,)), REBOOT, {"gpu_ready_reboot_ok": True}, None),
    ],
)  # fmt: skip
def test_what_a_disruption_stops(found: WorkFacts, step: Step, more: dict[str, Any], message: str | None) -> None:
    refusals = decide(found, step, **more).refusals
    assert [(one.code, one.message) for one in refusals] == ([("host_in_use", message)] if message else [])


@pytest.mark.parametrize(
    ("found", "step", "given", "permitted"),
    [
        (work(WEB), RESTART, {"gpu_ready_disrupt": ["docker_restart"]}, True),
        (work(WEB), RESTART, {"gpu_ready_disrupt": ["reboot", "driver_reload", "containerd_restart"]}, False),
        (work(TRAIN), INSTALL, {"gpu_ready_disrupt": ["driver_reload"]}, True),
        (JOB, INSTALL, {"gpu_ready_disrupt": ["driver_reload"]}, True),
        # A held module cannot be reloaded, and packages are never replaced on the promise of a later reboot.
        (work(processes=(PYTHON,)), INSTALL, {"gpu_ready_disrupt": ["driver_reload"]}, False),
        (work(processes=(PYTHON,)), INSTALL, {"gpu_ready_disrupt": ["driver_reload", "reboot"]}, False),
        (ALL, REBOOT, {"gpu_ready_disrupt": ["reboot"], "gpu_ready_reboot_ok": True}, True),
        (ALL, REBOOT, {"gpu_ready_disrupt": ["docker_restart"], "gpu_ready_reboot_ok": True}, False),
    ],
)
def test_what_permits_it(found: WorkFacts, step: Step, given: dict[str, Any], permitted: bool) -> None:
    decision = decide(found, step, **given)
    assert (decision.refusals == []) is permitted
    assert [one.code for one in decision.warnings] == (["work_stopped"] if permitted else [])


def test_a_permitted_reboot_covers_what_it_stops_anyway() -> None:
    given: dict[str, Any] = {"gpu_ready_disrupt": ["reboot"], "gpu_ready_reboot_ok": True}
    decision = decide(ALL, INSTALL, REBOOT, RESTART, **given)
    assert decision.refusals == [] and len(decision.warnings) == 1
    (refusal,) = decide(ALL, INSTALL, REBOOT, RESTART, gpu_ready_reboot_ok=True).refusals
    assert "gpu_ready_disrupt: [reboot]" in refusal.remedy


@pytest.mark.parametrize(("activation", "words"), [("auto", "gpu_ready_disrupt: [reboot]"), ("reload", "run this again"), ("none", "run this again")])  # fmt: skip
def test_the_remedy_for_a_held_gpu(activation: str, words: str) -> None:
    (refusal,) = decide(work(processes=(PYTHON,)), INSTALL, gpu_ready_activation=activation).refusals
    assert words in refusal.remedy and "let it end" in refusal.remedy


def test_a_process_is_named_by_its_container_or_job() -> None:
    inside = PYTHON._replace(container="train")
    of_job = PYTHON._replace(pid=5, job="614")
    elsewhere = PYTHON._replace(container="0123456789ab")
    (refusal,) = decide(work(TRAIN, processes=(inside, of_job, elsewhere), jobs=["614"]), INSTALL).refusals
    assert refusal.message.endswith("used by container train (GPU), Slurm job 614, container 0123456789ab")
    exporter = DAEMON._replace(container="exporter")  # no unit of systemd: nothing stops it for the reload
    assert decide(work(processes=(exporter,)), INSTALL).refusals


def test_live_restore_does_not_save_what_a_step_stops_itself() -> None:
    replaced = DockerInstallParams([], [], ["docker.io"], [], [], "docker", "restarted")
    step = Step("docker_engine.install", "another docker", "docker_restart", replaced)
    assert decide(work(WEB), step, live_restore=True).refusals
    assert not decide(work(WEB), step._replace(params=replaced._replace(remove=[])), live_restore=True).refusals
    cleanup = Step(
        "nvidia_container_runtime.cleanup", "not needed", "docker_restart", CleanupParams([], ["train"], [], [])
    )
    (refusal,) = decide(work(WEB, TRAIN), cleanup, live_restore=True).refusals
    assert refusal.message.endswith("which stops container train (GPU)")


@pytest.mark.parametrize(
    ("found", "drains", "left"),
    [
        (work(processes=(PYTHON,)), (), ["process 4711 (python3)"]),
        (work(processes=(PYTHON,)), ("none",), []),
        (work(processes=(PYTHON,), jobs=["614"]), ("slurm",), []),
        (work(TRAIN, processes=(PYTHON,)), ("docker",), ["process 4711 (python3)"]),
        (work(TRAIN, processes=(PYTHON._replace(container="train"),)), ("docker",), []),
        (work(TRAIN, processes=(PYTHON,)), ("docker", "slurm"), []),
        (work(POD, processes=(PYTHON._replace(container="ml/train-0"),)), ("kubernetes",), []),
        (work(POD, TRAIN), ("kubernetes",), ["container train (GPU)"]),
        (work(TRAIN, POD, processes=(PYTHON,), jobs=["614"]), ("/srv/drain.yml",), []),
        # It holds nothing, and keeps running while the driver is replaced.
        (work(AGENT), ("docker",), []),
        (work(AGENT, processes=(PYTHON._replace(container="agent"),)), ("slurm",), ["container agent (privileged)"]),
    ],
)
def test_what_a_drain_leaves(found: WorkFacts, drains: tuple[str, ...], left: list[str]) -> None:
    refusals = decide(found, INSTALL, drains=drains).refusals
    assert [one.message.partition("used by ")[2] for one in refusals] == ([", ".join(left)] if left else [])


def test_a_reboot_for_the_sake_of_what_is_drained_becomes_a_live_reload() -> None:
    held = Step("nvidia_driver.activate", "held", "reboot", ActivateParams("reboot", ["nvidia"], "reboot", [], "held"))
    found = work(WEB, processes=(PYTHON,))
    assert decide(found, INSTALL, held, drains=("slurm",), gpu_ready_reboot_ok=True).refusals == []
    (refusal,) = decide(found, INSTALL, held, drains=("docker",), gpu_ready_reboot_ok=True).refusals
    assert refusal.message.endswith("which stops process 4711 (python3), container web")


def test_a_reboot_after_a_drain_still_stops_other_containers() -> None:
    (refusal,) = decide(work(TRAIN, WEB, AGENT), REBOOT, drains=("docker",), gpu_ready_reboot_ok=True).refusals
    assert refusal.message.endswith("which stops container agent, container web")


# ---- in the plan of a host -----------------------------------------------------------------------------------------


def host(found: WorkFacts) -> Facts:
    """A host with 580 loaded, as of U1."""
    branch = catalog.branch(580)
    assert branch
    return having(installed("debian12", T4, "cuda_repo", branch.newest, "open"), work=found)


def plan(found: WorkFacts, **given: Any) -> compose.Plan:
    return compose.plan(host(found), settings(nvidia_driver_source="cuda_repo", nvidia_driver_branch="595", **given))


def test_a_driver_is_not_replaced_under_a_process() -> None:
    refused = plan(work(processes=(PYTHON,)))
    assert [one.code for one in refused.refusals] == ["host_in_use"] and refused.steps == []
    assert "process 4711 (python3)" in refused.summary
    assert [one.code for one in plan(work(processes=(PYTHON,)), gpu_ready_reboot_ok=True).refusals] == ["host_in_use"]
    allowed = plan(work(processes=(PYTHON,)), gpu_ready_reboot_ok=True, gpu_ready_disrupt=["reboot"])
    assert allowed.refusals == []
    assert {step.id: step.disruption for step in allowed.steps}["nvidia_driver.activate"] == "reboot"
    assert "process 4711 (python3)" in [one.message for one in allowed.warnings if one.code == "work_stopped"][0]


def test_an_idle_host_needs_no_permission() -> None:
    assert plan(work(processes=(DAEMON,))).refusals == []
    assert plan(WorkFacts()).refusals == []


def test_permissions_are_no_part_of_the_desired_state() -> None:
    first, second = plan(WorkFacts()), plan(WorkFacts(), gpu_ready_disrupt=["docker_restart"])
    assert first.digest == second.digest
