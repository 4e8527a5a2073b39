"""Draining: who owns a drain, what is awaited, the journal, and the output of slurm, kubectl and docker."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from gpu_ready.base.host import TIMED_OUT, Host, Result
from gpu_ready.cluster.kubectl import Kubectl, KubectlAccess
from gpu_ready.drain import docker as drain_docker
from gpu_ready.drain import hook
from gpu_ready.drain import journal as drain
from gpu_ready.drain import kubernetes as drain_kubernetes
from gpu_ready.drain import slurm as drain_slurm
from gpu_ready.drain.hook import one_line
from gpu_ready.drain.journal import DrainError
from gpu_ready.lifecycle import uninstall
from gpu_ready.lifecycle.removal.context import Removal, UninstallError
from gpu_ready.upgrade.model import PHASES

from tests.unit.recorded import RecordedHost

REASON = "gpu-ready: driver upgrade"


class Clock:
    """A clock that only a sleep moves."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


# ---- slurm ----------------------------------------------------------------------------------------------------------

NEW = """NodeName=dr-node Arch=x86_64 CoresPerSocket=1
   NodeAddr=dr-node NodeHostName=dr-node Version=24.11.5
   OS=Linux 6.12.117+deb13-cloud-amd64 #1 SMP PREEMPT_DYNAMIC Debian
   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   CurrentWatts=0 AveWatts=0

   Reason=gpu-ready: driver upgrade [root@2026-11-21T12:55:10]

"""
OLD = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=16 CPUAlloc=32 CPUErr=0 CPUTot=64 CPULoad=31.92 Features=(null) "
    "Gres=gpu:4 NodeAddr=n1 NodeHostName=n1 Version=17.11 OS=Linux 3.10.0 RealMemory=1 State=MIXED*+DRAIN "
    "ThreadsPerCore=2 LowestJoules=n/a ConsumedJoules=n/a Reason=bad fan [see ticket] [root@2019-03-01T10:00:00] "
    "Comment=x\n"
)


@pytest.mark.parametrize(
    ("text", "states", "reason"),
    [
        (NEW, {"IDLE", "DRAIN"}, REASON),  # slurm 24.11 of Debian 13
        (OLD, {"MIXED", "DRAIN"}, "bad fan [see ticket]"),  # the form of -o, with a field after the reason
        ("NodeName=n1\n   State=DOWN* X=1\n   Reason=Not responding [slurm@2026-01-01T00:00:00]\n", {"DOWN"}, "Not responding"),
        ("NodeName=n1 State=IDLE@+RESERVED+PLANNED X=1\n", {"IDLE", "RESERVED", "PLANNED"}, ""),
        ("NodeName=n1 State=IDLE~+CLOUD+POWERED_DOWN X=1\n   Reason=old form\n", {"IDLE", "CLOUD", "POWERED_DOWN"}, "old form"),
    ],
)  # fmt: skip
def test_parse_slurm_node(text: str, states: set[str], reason: str) -> None:
    node = drain_slurm.parse_node(text)
    assert node and (set(node.states), node.reason) == (states, reason)
    assert node.answers == ("*" not in text)


@pytest.mark.parametrize("text", ["", "Node n1 not found\n", "NodeName=n1 ", "State=IDLE"])
def test_other_text_is_no_slurm_node(text: str) -> None:
    assert drain_slurm.parse_node(text) is None


def node(states: str, reason: str = "") -> drain_slurm.SlurmNode:
    return drain_slurm.SlurmNode("n1", frozenset(states.split("+")), reason)


@pytest.mark.parametrize(
    ("states", "reason", "recorded", "drained", "own"),
    [
        ("IDLE", "", False, True, True),
        ("MIXED+RESERVED", "", False, True, True),
        ("IDLE+MAINT+RESERVED", "", False, True, True),
        ("IDLE+DRAIN", "bad fan", False, False, False),
        ("IDLE+DRAIN", "bad fan", True, False, False),  # somebody set another reason since
        ("IDLE+DRAIN", REASON, True, False, True),
        ("IDLE+DRAIN", REASON, False, False, False),  # the same reason without a record
        ("DOWN+DRAIN", "Node unexpectedly rebooted", True, False, True),  # drained by gpu-ready
        ("DOWN", "Not responding", False, False, False),
        ("DOWN", "broken", False, False, False),
        ("IDLE", "", True, True, True),  # killed between the record and the drain
        ("ALLOCATED+FAIL", "flaky", False, False, False),
    ],
)
def test_owner_of_a_slurm_drain(states: str, reason: str, recorded: bool, drained: bool, own: bool) -> None:
    decided = drain_slurm.decide_drain(node(states, reason), REASON, recorded)
    assert (decided.act, decided.owned, bool(decided.kept)) == (drained, own, not own)
    assert own or (reason in decided.kept and "stays so" in decided.kept)


@pytest.mark.parametrize(
    ("states", "reason", "resumed", "left"),
    [
        ("IDLE+DRAIN", REASON, True, False),
        ("DOWN+DRAIN", "Node unexpectedly rebooted", True, False),
        ("IDLE+DRAIN", "bad fan", False, True),
        ("DOWN", "broken", False, True),
        ("IDLE", "", False, False),  # somebody resumed it
    ],
)
def test_only_own_drains_are_resumed(states: str, reason: str, resumed: bool, left: bool) -> None:
    decided = drain_slurm.decide_resume(node(states, reason), REASON)
    assert (decided.act, bool(decided.kept)) == (resumed, left)


class Controller(RecordedHost):
    """slurmctld, whose node answers from the third query on."""

    def __init__(self) -> None:
        super().__init__()
        self.verbs: list[str] = []

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        self.verbs.append(argv[1])
        mark = "*" if self.verbs.count("show") < 3 else ""
        return Result(0, f"NodeName=n1 State=IDLE{mark}+DRAIN X=1\n   Reason={REASON} [root@now]\n", "")


def test_a_node_is_resumed_once_its_slurmd_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resumed before, it would be set down after the reboot, and nobody would know that gpu-ready had drained it."""
    clock = Clock()
    monkeypatch.setattr(drain_slurm, "wait", partial(hook.wait, now=clock.now, sleep=clock.sleep))
    host = Controller()
    slurm = drain_slurm.SlurmHook(host, "n1", "/x")
    assert slurm.undrain(REASON, check=True) == {"changed": True, "kept": "", "done": True}
    answer = slurm.undrain(REASON, check=False)
    assert answer["done"] and answer["changed"] and host.verbs == ["show", "show", "show", "update"]


def test_a_slurmd_that_never_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(drain_slurm, "wait", partial(hook.wait, now=clock.now, sleep=clock.sleep))
    text = f"NodeName=n1 State=IDLE+DRAIN+NOT_RESPONDING X=1\n   Reason={REASON} [root@now]\n"
    slurm = drain_slurm.SlurmHook(
        RecordedHost(programs={("/x/scontrol", "show", "node", "n1"): Result(0, text, "")}), "n1", "/x"
    )
    first = slurm.undrain(REASON, check=False)
    assert not first["done"] and not first["changed"] and "does not answer slurmctld yet" in str(first["waiting"])
    assert isinstance(first["deadline"], float)
    clock.time = first["deadline"]
    with pytest.raises(
        DrainError,
        match=r"after 300 s it still waits for slurmd on slurm's node n1.*systemctl status slurmd.*then run again",
    ):
        slurm.undrain(REASON, check=False, deadline=first["deadline"])


def test_jobs_are_named_until_they_are_many() -> None:
    jobs = drain_slurm.parse_jobs("17|alice|RUNNING\n18_2|bob|SUSPENDED\n")
    assert drain_slurm.describe_work(node("MIXED+DRAIN"), jobs) == (
        "2 jobs on slurm's node n1: 17 of alice (running), 18_2 of bob (suspended)"
    )
    many = drain_slurm.parse_jobs("".join(f"{n}|a|RUNNING\n" for n in range(9)))
    assert drain_slurm.describe_work(node("MIXED+DRAIN"), many).endswith("4 of a (running) and 4 more")
    assert drain_slurm.describe_work(node("IDLE+COMPLETING+DRAIN"), []) == "slurm's node n1, which is COMPLETING"
    assert drain_slurm.describe_work(node("IDLE+DRAIN"), []) == ""


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Result(1, "Node n1 not found\n", ""), "slurm: it has no node n1. Set gpu_drain_slurm_node"),
        (Result(1, "", "slurm_load_node error: Unable to contact slurm controller"), "Check slurmctld, munge"),
        (Result(124, "", ""), "did not answer scontrol"),
    ],
)
def test_message_if_slurm_does_not_answer(answer: Result, message: str) -> None:
    host = RecordedHost(
        programs={("scontrol", "show", "node", "n1"): answer, ("/x/scontrol", "show", "node", "n1"): answer}
    )
    with pytest.raises(DrainError, match=message):
        drain_slurm.SlurmHook(host, "n1", "/x").show()


def test_message_if_slurm_is_not_installed() -> None:
    with pytest.raises(DrainError, match="scontrol: it is not on this host. Set gpu_drain_slurm_controller"):
        drain_slurm.SlurmHook(RecordedHost(), "n1").show()


@pytest.mark.parametrize("reason", ["", "two\nlines", 'a "quote"', "with [brackets]"])
def test_a_reason_that_slurm_would_not_return_is_refused(reason: str) -> None:
    with pytest.raises(DrainError, match="gpu_drain_reason"):
        drain_slurm.check_reason(reason)


# ---- kubernetes -----------------------------------------------------------------------------------------------------


def kube(cordoned: bool, note: str = "") -> drain_kubernetes.KubernetesNode:
    return drain_kubernetes.KubernetesNode("n1", cordoned, note, "7")


def test_parse_kubernetes_node() -> None:
    value: dict[str, Any] = {"kind": "Node", "metadata": {"name": "n1", "resourceVersion": "7"}, "spec": {}}
    assert drain_kubernetes.parse_node(json.dumps(value)) == kube(False)
    value["metadata"]["annotations"] = {drain_kubernetes.ANNOTATION: REASON}
    value["spec"]["unschedulable"] = True
    assert drain_kubernetes.parse_node(json.dumps(value)) == kube(True, REASON)
    assert drain_kubernetes.parse_node("no JSON") is None and drain_kubernetes.parse_node('{"kind": "List"}') is None


@pytest.mark.parametrize(
    ("present", "recorded", "cordon", "own"),
    [
        (kube(False), False, True, True),
        (kube(False), True, True, True),
        (kube(True), False, False, False),
        (kube(True), True, False, False),  # killed before the cordon, then cordoned by somebody else
        (kube(True, REASON), True, False, True),
        (kube(True, "gpu-ready: another upgrade"), True, False, False),
    ],
)
def test_owner_of_a_cordon(present: drain_kubernetes.KubernetesNode, recorded: bool, cordon: bool, own: bool) -> None:
    decided = drain_kubernetes.decide_cordon(present, REASON, recorded)
    assert (decided.act, decided.owned, bool(decided.kept)) == (cordon, own, not own)


@pytest.mark.parametrize(
    ("present", "give", "left"),
    [(kube(True, REASON), True, False), (kube(False), False, False), (kube(True), False, True), (kube(False, REASON), True, False)],
)  # fmt: skip
def test_only_own_cordons_are_removed(present: drain_kubernetes.KubernetesNode, give: bool, left: bool) -> None:
    decision = drain_kubernetes.decide_uncordon(present, REASON)
    assert (decision.act, bool(decision.kept)) == (give, left)


def test_record_and_cordon_are_one_write_to_one_version() -> None:
    value = json.loads(drain_kubernetes.build_patch(kube(False), REASON, True))
    assert value["spec"] == {"unschedulable": True} and value["metadata"]["resourceVersion"] == "7"
    assert value["metadata"]["annotations"] == {drain_kubernetes.ANNOTATION: REASON}
    back = json.loads(drain_kubernetes.build_patch(kube(True, REASON), REASON, False))
    assert back["spec"] == {"unschedulable": None} and back["metadata"]["annotations"] == {
        drain_kubernetes.ANNOTATION: None
    }


def test_pods_that_a_drain_skips_are_not_awaited() -> None:
    items: list[dict[str, Any]] = [
        {"metadata": {"name": "train", "namespace": "ml"}, "status": {"phase": "Running"}},
        {"metadata": {"name": "done", "namespace": "ml"}, "status": {"phase": "Succeeded"}},
        {"metadata": {"name": "agent", "ownerReferences": [{"kind": "DaemonSet"}]}},
        {"metadata": {"name": "static", "annotations": {"kubernetes.io/config.mirror": "x"}}},
    ]
    found = drain_kubernetes.parse_pods(json.dumps({"items": items}))
    assert found == ["ml/train"] and drain_kubernetes.parse_pods("") == []
    output = "Cannot evict pod as it would violate the pod's disruption budget."
    assert drain_kubernetes.describe_pods("n1", found, output) == (
        "1 pod on the Kubernetes node n1: ml/train, held by a disruption budget"
    )


def test_options_of_kubectl_drain() -> None:
    words = drain_kubernetes.drain_arguments("n1", drain_kubernetes.EvictionOptions(), 30)
    assert words == [
        "drain",
        "n1",
        "--ignore-daemonsets",
        "--timeout=30s",
        "--grace-period=-1",
        "--delete-emptydir-data",
    ]
    options = drain_kubernetes.EvictionOptions(5, False, True, True, "app!=logs")
    assert drain_kubernetes.drain_arguments("n1", options, 30)[4:] == [
        "--grace-period=5", "--force", "--disable-eviction", "--pod-selector=app!=logs",
    ]  # fmt: skip


OLD_KUBECTL = """error: unable to drain node "n1", aborting command...

There are pending nodes to be drained:
 n1
error: cannot delete Pods not managed by Job, DaemonSet or StatefulSet (use --force to override): ml/bare
"""  # 1.20
NEW_KUBECTL = """error: unable to drain node "n1" due to error: [cannot delete Pods with local storage (use --delete-emptydir-data to override): ml/x], continuing command...
There are pending nodes to be drained:
 n1
cannot delete Pods with local storage (use --delete-emptydir-data to override): ml/x
"""  # 1.32
FORBIDDEN_1_20 = """error: unable to drain node "n1", aborting command...

There are pending nodes to be drained:
 n1
Error from server (Forbidden): pods is forbidden: User "system:serviceaccount:default:drainer" cannot list resource "pods" in API group "" at the cluster scope
"""
FORBIDDEN_FIRST = """Error from server (Forbidden): pods is forbidden: User "drainer" cannot list resource "pods" in API group "" at the cluster scope
error: unable to drain node "n1", aborting command...
"""
FORBIDDEN_EVICTION = """evicting pod default/train-1
There are pending pods in node "n1" when an error occurred: error when evicting pods/"train-1" -n "default": pods "train-1" is forbidden: User "drainer" cannot create resource "pods/eviction" in API group "" in the namespace "default"
pod/train-1
error: unable to drain node "n1", aborting command...

There are pending nodes to be drained:
 n1
error: error when evicting pods/"train-1" -n "default": pods "train-1" is forbidden: User "drainer" cannot create resource "pods/eviction" in API group "" in the namespace "default"
"""  # 1.20
FORBIDDEN_EVICTIONS = """There are pending pods in node "n1" when an error occurred: [error when evicting pods/"b" -n "x": pods "b" is forbidden: User "drainer" cannot create resource "pods/eviction" in API group "" in the namespace "x", error when evicting pods/"a" -n "x": pods "a" is forbidden: User "drainer" cannot create resource "pods/eviction" in API group "" in the namespace "x"]
pod/a
pod/b
error: unable to drain node "n1", aborting command...

There are pending nodes to be drained:
 n1
error when evicting pods/"b" -n "x": pods "b" is forbidden: User "drainer" cannot create resource "pods/eviction" in API group "" in the namespace "x"
error when evicting pods/"a" -n "x": pods "a" is forbidden: User "drainer" cannot create resource "pods/eviction" in API group "" in the namespace "x"
"""  # 1.20


@pytest.mark.parametrize(
    ("output", "cause", "remedy"),
    [
        (OLD_KUBECTL, "cannot delete Pods not managed by .*: ml/bare", "Remove those pods, .*_force: true"),
        (NEW_KUBECTL, r"cannot delete Pods with local storage \(use .*\): ml/x", "_delete_emptydir_data: true"),
        (
            "Unable to connect to the server: EOF",
            "Unable to connect to the server: EOF",
            "Correct the cause, then run again",
        ),
        (FORBIDDEN_1_20, "pods is forbidden: User .* cannot list resource .*", "Give that user .*drain.md.*"),
        (
            FORBIDDEN_EVICTION,
            'error when evicting .*cannot create resource "pods/eviction" .*',
            "Give that user .*drain.md.*",
        ),
        (
            FORBIDDEN_EVICTIONS,
            'error when evicting .*cannot create resource "pods/eviction" .*',
            "Give that user .*drain.md.*",
        ),
        (FORBIDDEN_FIRST, "pods is forbidden: User .* cannot list resource .*", "Give that user .*drain.md.*"),
    ],
)
def test_refusals_of_kubectl_have_a_remedy(output: str, cause: str, remedy: str) -> None:
    message = drain_kubernetes.explain_refusal("n1", output)
    assert re.fullmatch(rf"kubectl: it cannot drain the node n1 \({cause}\)\. .*{remedy}\.", message), message


# ---- docker ---------------------------------------------------------------------------------------------------------


def container(**changes: Any) -> drain_docker.GpuContainer:
    return drain_docker.GpuContainer("a" * 64, "train", True, False, False, "", 10)._replace(**changes)


def test_parse_container() -> None:
    answer = {
        "Id": "a" * 64,
        "Name": "/train",
        "State": {"Running": True, "Paused": True},
        "Config": {"Labels": {"com.docker.swarm.service.id": "x"}, "StopTimeout": 3},
        "HostConfig": {"AutoRemove": True},
    }
    assert drain_docker.parse_container(answer) == container(paused=True, temporary=True, manager="swarm", grace=3)
    assert (
        drain_docker.parse_container({"Id": "a" * 64, "Name": "/train", "State": {"Restarting": True}}) == container()
    )


def test_containers_that_docker_would_delete_are_awaited_unless_allowed() -> None:
    brief = container(id="b" * 64, name="brief", temporary=True)
    assert drain_docker.split_work([container(), brief], False) == ([container()], [brief])
    assert drain_docker.split_work([container(), brief], True) == ([container(), brief], [])
    assert (
        "brief, which docker deletes" in drain_docker.describe_temporary([brief])
        and drain_docker.describe_temporary([]) == ""
    )


@pytest.mark.parametrize(
    ("manager", "remedy"), [("swarm", "docker node update"), ("kubernetes", "gpu_upgrade_drain: kubernetes")]
)
def test_containers_that_a_manager_would_restart_are_refused(manager: str, remedy: str) -> None:
    with pytest.raises(DrainError, match=remedy):
        drain_docker.split_work([container(manager=manager)], True)


# ---- the journal and the waits --------------------------------------------------------------------------------------


def test_the_journal_keeps_entries_and_is_removed_with_the_last(tmp_path: Path) -> None:
    path = str(tmp_path / "state/drain.json")
    host = Host()
    entries = drain.DrainJournal(slurm=drain.SlurmDrain("n1", "ctl", REASON))
    assert drain.read(host, path) == drain.DrainJournal() and not drain.remove_entries(host, ["slurm"], path)
    assert drain.record_entries(host, entries, path) and not drain.record_entries(host, entries, path)
    drain_docker.record_containers(host, [container(paused=True)], path)
    drain_docker.record_containers(host, [container(), container(id="b" * 64, name="other")], path)
    recorded = drain.read(host, path)
    assert recorded.docker and recorded.docker.containers["a" * 64] == ("train", True)  # the first record stays
    assert drain.describe(recorded) == ["docker's containers other, train are stopped", "slurm's node n1 is drained"]
    assert json.loads(Path(path).read_text())["schema"] == 1
    assert drain.remove_entries(host, ["slurm"], path) and drain.remove_entries(host, ["docker"], path)
    assert not Path(path).exists()


@pytest.mark.parametrize(
    "text", ["", "null", "{", "[]", '{"slurm": 1}', '{"slurm": {}}', '{"schema": 2}', '{"schema": 1, "x": {}}']
)
def test_a_damaged_or_newer_journal_is_refused(text: str) -> None:
    with pytest.raises(DrainError, match=r"drain\.json: it cannot be read.* by hand"):
        drain.read(RecordedHost(files={drain.PATH: text}))


@pytest.mark.parametrize("phase", [*PHASES, "of a newer release"])
def test_uninstall_refuses_while_an_upgrade_is_unfinished(tmp_path: Path, phase: str) -> None:
    text = json.dumps({"schema": 1, "phase": phase, "to": "595.91.07"})
    removal = Removal(RecordedHost(files={str(tmp_path / "upgrade.json"): text}), str(tmp_path))
    if phase in ("staged", "done", "untouched", "back"):
        uninstall.find_actions(removal)
        return
    with pytest.raises(
        UninstallError, match=r"upgrade to the driver 595\.91\.07.*rollback_drivers\.yml.*delete that file"
    ):
        uninstall.find_actions(removal)


def test_uninstall_refuses_while_a_host_is_drained(tmp_path: Path) -> None:
    note = '{"slurm": {"node": "n1", "controller": "n1", "reason": "r"}}'
    host = RecordedHost(files={str(tmp_path / "drain.json"): note})
    with pytest.raises(UninstallError, match=r"slurm's node n1 is drained.*playbooks/undrain\.yml"):
        uninstall.find_actions(Removal(host, str(tmp_path)))


def test_a_wait_reports_progress_and_ends() -> None:
    clock = Clock()
    first = hook.wait(lambda: "a job", 40, 0, clock.now, clock.sleep)
    assert (first.done, first.waiting, first.deadline, first.remaining) == (False, "a job", 1040.0, 25)
    second = hook.wait(lambda: "a job", 40, first.deadline, clock.now, clock.sleep)
    assert second.remaining == 10
    with pytest.raises(DrainError, match="after 40 s it still waits for a job. The host stays drained"):
        hook.wait(lambda: "a job", 40, first.deadline, clock.now, clock.sleep)
    assert clock.time == 1040.0
    assert hook.wait(lambda: "", 40, 0, clock.now, clock.sleep).done


def test_a_long_wait_needs_few_calls() -> None:
    assert hook.call_duration(86400, 0, 1000.0) * hook.MOST_CALLS >= 86400
    assert hook.call_duration(1800, 0, 1000.0) == 30 and hook.call_duration(10, 0, 1000.0) == 10


class Calls(RecordedHost):
    """A host that keeps the environment of what it runs."""

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        self.environment = dict(env or {})
        return super().run(argv, timeout, env)


def test_kubectl_and_its_login_helpers_are_found_on_the_users_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/home/alice/google-cloud-sdk/bin:/usr/bin")
    node = {"kind": "Node", "metadata": {"name": "n1", "resourceVersion": "7"}, "spec": {}}
    words = ("kubectl", "get", "node", "n1", "--output=json", "--request-timeout=30s")
    host = Calls(programs={words: Result(0, json.dumps(node), "")})
    assert drain_kubernetes.KubernetesHook(Kubectl(host, KubectlAccess()), "n1").get() == kube(False)
    assert host.environment["PATH"].startswith("/home/alice/google-cloud-sdk/bin:/usr/bin:")
    assert "/usr/local/bin" in host.environment["PATH"].split(":")


# Outputs of kubectl 1.20 whose API server was stopped, restarted, behind a proxy, or silent.
REFUSED = "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?\n"
REFUSED_EVICTION = """evicting pod default/train-1
Following errors occurred while getting the list of pods to delete:
Get "https://10.0.0.1:6443/api/v1/pods?fieldSelector=spec.nodeName%3Dn1": dial tcp 10.0.0.1:6443: connect: connection refused\
error: unable to drain node "n1", aborting command...

There are pending nodes to be drained:
 n1
error: error when evicting pods/"train-1" -n "default": Post "https://10.0.0.1:6443/api/v1/namespaces/default/pods/train-1/\
eviction": dial tcp 10.0.0.1:6443: connect: connection refused
"""
NO_BACKEND = "Error from server (ServiceUnavailable): the server is currently unable to handle the request\n"
CLOSED = 'Error from server (InternalError): an error on the server ("") has prevented the request from succeeding\n'


def kubernetes_hook(drained: Result, pods: Result) -> drain_kubernetes.KubernetesHook:
    """The hook of a node n1, on which kubectl prints these answers."""
    drain_words = ("kubectl", *drain_kubernetes.drain_arguments("n1", drain_kubernetes.EvictionOptions(), 30))
    asked = ("kubectl", "get", "pods", "--all-namespaces", "--field-selector=spec.nodeName=n1", "--output=json")
    host = RecordedHost(programs={drain_words: drained, (*asked, "--request-timeout=30s"): pods})
    return drain_kubernetes.KubernetesHook(Kubectl(host, KubectlAccess()), "n1", seconds=30)


@pytest.mark.parametrize(
    "output",
    [
        REFUSED,
        REFUSED_EVICTION,
        NO_BACKEND,
        CLOSED,
        "Unable to connect to the server: context deadline exceeded\n",
        "Unable to connect to the server: net/http: TLS handshake timeout\n",
        "Unable to connect to the server: dial tcp 10.0.0.1:6443: connect: no route to host\n",
        "Unable to connect to the server: read tcp 10.0.0.2:1->10.0.0.1:6443: read: connection reset by peer\n",
        "Unable to connect to the server: EOF\n",
    ],
)
def test_an_api_server_that_is_lost_during_the_drain_is_awaited(output: str) -> None:
    lost = Result(1, "", output)
    waiting = kubernetes_hook(lost, lost).pending_work()
    assert waiting.startswith("an answer of the API server about the node n1 (") and one_line(output)[-60:] in waiting
    pods = json.dumps({"items": [bare_pod(False)]})
    assert kubernetes_hook(lost, Result(0, pods, "")).pending_work() == "1 pod on the Kubernetes node n1: ml/bare"


def test_an_api_server_that_does_not_answer_in_time_is_awaited() -> None:
    silent = Result(TIMED_OUT, "", "")
    waiting = kubernetes_hook(silent, silent).pending_work()
    assert waiting.startswith(
        "an answer of the API server about the node n1 (kubectl drain n1: it did not end within 90 s."
    )


@pytest.mark.parametrize(
    "output",
    [
        "Unable to connect to the server: x509: certificate signed by unknown authority\n",
        "Unable to connect to the server: tls: first record does not look like a TLS handshake\n",
        "Unable to connect to the server: dial tcp: lookup api.example on 10.0.0.53:53: no such host\n",
        "error: You must be logged in to the server (Unauthorized)\n",
        'error: context "lab" does not exist\n',
        'Error from server (InternalError): Internal error occurred: failed calling webhook "x": dial tcp 10.0.0.9:443: connect: connection refused\n',
    ],
)
def test_other_errors_end_a_drain_at_once(output: str) -> None:
    refused = Result(1, "", output)
    with pytest.raises(DrainError, match="it cannot drain the node n1"):
        kubernetes_hook(refused, refused).pending_work()


# A server that has just started, until it has read the roles: kubectl with a service account's rights, and its /readyz then.
NO_TYPE = 'error: the server doesn\'t have a resource type "nodes"\n'
NOT_YET = 'Error from server (Forbidden): nodes "n1" is forbidden: User "drainer" cannot get resource "nodes"\n'
NO_EVICTION = """evicting pod ml/train-1
error when evicting pods/"train-1" -n "ml": pods "train-1" is forbidden: User "drainer" cannot create resource "pods/eviction"
"""
NOT_READY = (
    'Error from server (InternalError): an error on the server ("[+]ping ok\\n[+]log ok\\n[+]etcd ok\\n[-]poststarthook/rbac/'
    'bootstrap-roles failed: reason withheld\\nreadyz check failed") has prevented the request from succeeding\n'
)
NOT_ALLOWED = 'Error from server (Forbidden): forbidden: User "drainer" cannot get path "/readyz"\n'


class Starting(RecordedHost):
    """kubectl of a node n1 whose drain fails first, with this error, while /readyz answers so; then it succeeds."""

    def __init__(self, error: str, ready: Result) -> None:
        super().__init__()
        self.answers = [Result(1, "", error), Result(0, "", "")]
        self.ready = ready

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        if "--raw=/readyz" in argv:
            return self.ready
        assert argv[1] == "drain"
        return self.answers.pop(0)


@pytest.mark.parametrize("ready", [Result(1, "", NOT_READY), Result(1, "", NOT_ALLOWED)])
@pytest.mark.parametrize("error", [NO_TYPE, NOT_YET, NO_EVICTION])
def test_an_eviction_awaits_an_api_server_that_has_just_started(error: str, ready: Result) -> None:
    hook = drain_kubernetes.KubernetesHook(Kubectl(Starting(error, ready), KubectlAccess()), "n1")
    waiting = hook.pending_work()
    assert waiting.startswith("an answer of the API server about the node n1 (it is not ready: ")
    assert one_line(error)[-60:] in waiting
    assert hook.pending_work() == ""


def test_an_eviction_awaits_an_api_server_that_does_not_say_whether_it_is_ready() -> None:
    host = Starting(NOT_YET, Result(TIMED_OUT, "", ""))
    waiting = drain_kubernetes.KubernetesHook(Kubectl(host, KubectlAccess()), "n1").pending_work()
    assert "node n1 (kubectl get --raw=/readyz: it did not end within 60 s." in waiting


def test_an_eviction_is_repeated_where_the_api_server_became_ready_meanwhile() -> None:
    host = Starting(NO_TYPE, Result(0, "ok", ""))
    assert drain_kubernetes.KubernetesHook(Kubectl(host, KubectlAccess()), "n1").pending_work() == ""


@pytest.mark.parametrize("error", [NO_TYPE, NOT_YET, NO_EVICTION])
def test_the_same_answer_of_an_api_server_that_is_ready_ends_the_drain(error: str) -> None:
    host = Starting(error, Result(0, "ok", ""))
    host.answers = [Result(1, "", error)] * 2
    with pytest.raises(DrainError, match="it cannot drain the node n1"):
        drain_kubernetes.KubernetesHook(Kubectl(host, KubectlAccess()), "n1").pending_work()


def test_an_eviction_that_awaits_an_api_server_ends_at_its_limit_with_the_reason() -> None:
    host = Starting(NOT_YET, Result(1, "", NOT_READY))
    host.answers = [Result(1, "", NOT_YET)] * 99
    node, clock = drain_kubernetes.KubernetesHook(Kubectl(host, KubectlAccess()), "n1"), Clock()
    with pytest.raises(
        DrainError, match=r"after 40 s it still waits for .*node n1 \(it is not ready: .* cannot get resource"
    ):
        hook.wait(node.pending_work, 40, clock.time - 1, clock.now, clock.sleep)


class Restarting(RecordedHost):
    """kubectl of a node whose API server prints these errors, one for each call, before it answers."""

    def __init__(self, errors: list[str], cordoned: bool) -> None:
        super().__init__()
        self.errors = errors
        self.node = kube(cordoned, REASON if cordoned else "")

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        if "--raw=/readyz" in argv:
            return Result(1, "", NOT_READY)
        if self.errors:
            error = self.errors.pop(0)
            return Result(1, "", error) if error else Result(TIMED_OUT, "", "")
        if argv[1] == "patch":
            self.node = kube(json.loads(argv[5].partition("=")[2])["spec"]["unschedulable"] or False)
        metadata = {
            "name": "n1",
            "resourceVersion": "7",
            "annotations": {drain_kubernetes.ANNOTATION: self.node.annotation},
        }
        spec = {"unschedulable": True} if self.node.cordoned else {}
        return Result(0, json.dumps({"kind": "Node", "metadata": metadata, "spec": spec}), "")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of every wait."""
    made = Clock()
    monkeypatch.setattr(hook, "wait", partial(hook.wait, now=made.now, sleep=made.sleep))
    return made


def restarting(action: str, errors: list[str], timeout: int = 1800, deadline: float = 0.0) -> tuple[Any, Restarting]:
    """What a cordon or uncordon returns whose API server comes back after these errors, and its host."""
    host = Restarting(errors, cordoned=action == hook.UNDRAIN)
    node = drain_kubernetes.KubernetesHook(Kubectl(host, KubectlAccess()), "n1")
    params = {"reason": REASON, "recorded": False, "timeout": timeout, "deadline": deadline}
    return hook.run_action(node, action, params, check=False), host


@pytest.mark.parametrize("errors", [[REFUSED], [NO_BACKEND, CLOSED], ["", REFUSED], [""], [NO_TYPE, NOT_YET]])
@pytest.mark.parametrize("action", [hook.DRAIN, hook.UNDRAIN])
def test_a_cordon_waits_for_an_api_server_that_is_away(clock: Clock, action: str, errors: list[str]) -> None:
    seconds = 1000 + hook.POLL * len(errors)
    values, host = restarting(action, errors)
    assert values["done"] and values["changed"] and host.errors == [] and clock.time == seconds
    assert host.node.cordoned == (action == hook.DRAIN)


@pytest.mark.parametrize("action", [hook.DRAIN, hook.UNDRAIN])
def test_a_cordon_shows_what_it_waits_for_and_ends_at_its_limit(clock: Clock, action: str) -> None:
    values, host = restarting(action, [REFUSED] * 99, timeout=600)
    assert not values["done"] and not values["changed"] and host.node.cordoned == (action == hook.UNDRAIN)
    assert values["waiting"].startswith("an answer of the API server about the node n1 (The connection to the server")
    assert values["remaining_s"] == 600 - hook.SHORTEST
    message = r"after 600 s it still waits for an answer of the API server about the node n1 \(.*See that it answers, or raise"
    with pytest.raises(DrainError, match=message):
        restarting(action, [REFUSED] * 99, timeout=600, deadline=clock.time - 1)


@pytest.mark.parametrize(
    "output",
    [
        "Unable to connect to the server: x509: certificate signed by unknown authority\n",
        'error: context "lab" does not exist\n',
        "error: You must be logged in to the server (Unauthorized)\n",
    ],
)
@pytest.mark.parametrize("action", [hook.DRAIN, hook.UNDRAIN])
def test_other_errors_end_a_cordon_at_once(action: str, output: str) -> None:
    with pytest.raises(DrainError, match=r"kubectl: `get node n1` failed \("):
        restarting(action, [output])


def test_a_node_that_may_not_be_written_has_the_remedy() -> None:
    output = 'Error from server (Forbidden): nodes "n1" is forbidden: User "drainer" cannot patch resource "nodes"\n'
    words = (
        "patch",
        "node",
        "n1",
        "--type=merge",
        "--patch=" + drain_kubernetes.build_patch(kube(False), REASON, True),
    )
    answers = {
        ("kubectl", *words, "--request-timeout=30s"): Result(1, "", output),
        ("kubectl", "get", "--raw=/readyz", "--request-timeout=30s"): Result(0, "ok", ""),
    }
    host = RecordedHost(programs=answers)
    hook = drain_kubernetes.KubernetesHook(Kubectl(host, KubectlAccess()), "n1")
    remedy = r"Give that user the permission to patch nodes, then run again\."
    with pytest.raises(DrainError, match=rf"Kubernetes: it did not cordon the node n1 \(.*{remedy}"):
        hook.patch(kube(False), REASON, cordon=True)


def bare_pod(terminating: bool, **metadata: Any) -> dict[str, Any]:
    stamps = {"deletionTimestamp": "2026-11-22T10:00:00Z"} if terminating else {}
    return {"metadata": {"name": "bare", "namespace": "ml", **stamps, **metadata}, "status": {"phase": "Running"}}


NO_CONTROLLER = "cannot delete Pods that declare no controller (use --force to override): ml/bare"
LOCAL_STORAGE = "cannot delete Pods with local storage (use --delete-emptydir-data to override): ml/x"


@pytest.mark.parametrize(
    ("refused", "pods", "waits"),
    [
        (NO_CONTROLLER, [bare_pod(True)], True),
        (NO_CONTROLLER, [bare_pod(True), bare_pod(False, ownerReferences=[{"kind": "Job", "controller": True}])], True),
        (NO_CONTROLLER, [bare_pod(False)], False),
        (NO_CONTROLLER, [bare_pod(True), bare_pod(False)], False),
        (NO_CONTROLLER, [], True),  # it ended between kubectl's two answers: the next drain finds nothing to refuse
        (f"[{NO_CONTROLLER}, {LOCAL_STORAGE}]", [bare_pod(True)], False),
    ],
)  # fmt: skip
def test_a_bare_pod_that_is_already_terminating_is_awaited(refused: str, pods: list[Any], waits: bool) -> None:
    error = f'error: unable to drain node "n1" due to error: {refused}, continuing command...\n'
    drained = Result(1, "node/n1 cordoned\n", error)
    hook = kubernetes_hook(drained, Result(0, json.dumps({"items": pods}), ""))
    if waits:
        assert "on the Kubernetes node n1" in hook.pending_work()
    else:
        with pytest.raises(DrainError, match="it cannot drain the node n1"):
            hook.pending_work()


class Docker(drain_docker.DockerEngine):
    """A simulated engine; ``reborn``: containers that somebody starts again, ``needs``: what has to run before."""

    def __init__(
        self,
        running: dict[str, bool],
        reborn: tuple[str, ...] = (),
        needs: dict[str, str] | None = None,
        temporary: bool = False,
    ):
        super().__init__(RecordedHost(), "/run/docker.sock")
        self.temporary = temporary
        self.running = running
        self.reborn = reborn
        self.needs = needs or {}

    def ask(self, method: str, url: str, timeout: float = 60.0) -> tuple[int, Any]:
        _, _, name, verb = [*url.partition("?")[0].split("/"), ""][:4]
        if name == "json":
            return 200, [{"Id": one} for one, present in self.running.items() if present]
        if verb == "json":
            state = {"Running": self.running[name]}
            settings = {"DeviceRequests": [{"Capabilities": [["gpu"]]}], "AutoRemove": self.temporary}
            return 200, {"Id": name, "Name": "/" + name, "State": state, "Config": {}, "HostConfig": settings}
        if verb == "start" and not self.running.get(self.needs.get(name, name), True) and name in self.needs:
            return 409, {"message": "cannot join network of a non running container"}
        self.running[name] = verb == "start" or name in self.reborn
        return 204, None


class OneContainer(Docker):
    """An engine with one container, which requested no GPU and whose first process is 100; process 4711 holds a GPU."""

    def __init__(self, main: str, holder: str, pid: int = 100):
        super().__init__({"a" * 64: True})
        files = {"/proc/100/cgroup": main, "/proc/4711/cgroup": holder}
        self.host = RecordedHost(files, links={"/proc/4711/fd/3": "/dev/nvidia0"})
        self.pid = pid

    def ask(self, method: str, url: str, timeout: float = 60.0) -> tuple[int, Any]:
        status, value = super().ask(method, url, timeout)
        if isinstance(value, dict):
            value = value | {"HostConfig": {}, "State": {"Running": True, "Pid": self.pid}}
        return status, value


SCOPE = f"0::/system.slice/docker-{'a' * 64}.scope"


@pytest.mark.parametrize(
    ("main", "holder"),
    [
        (SCOPE, SCOPE),
        (SCOPE + "/init.scope", SCOPE + "/system.slice/train.service"),
        (SCOPE, f"{SCOPE}/docker/{'b' * 64}"),
        (f"0::/own.parent/{'a' * 64}", f"0::/own.parent/{'a' * 64}"),
        (f"2:cpu:/docker/{'a' * 64}\n1:name=systemd:/docker/{'a' * 64}", f"2:cpu:/docker/{'a' * 64}\n"),
    ],
)
def test_a_container_in_whose_cgroup_a_gpu_is_held_is_drained(main: str, holder: str) -> None:
    assert [one.id for one in OneContainer(main + "\n", holder + "\n").gpu_containers()] == ["a" * 64]


@pytest.mark.parametrize(
    "holder",
    [
        f"0::/user.slice/user-1000.slice/user@1000.service/docker-{'a' * 64}.scope",
        f"0::/user.slice/user-1000.slice/user@1000.service{SCOPE[3:]}",
        f"0::/system.slice/notebook-alice.service/docker-{'a' * 64}.scope",
        f"0::/system.slice/docker-{'b' * 64}.scope/docker-{'a' * 64}.scope",
        "0::/",
    ],
)
def test_a_user_who_names_a_cgroup_like_a_container_does_not_stop_it(holder: str) -> None:
    """Below a unit with Delegate= its user makes cgroups of any name (systemd.resource-control(5))."""
    assert OneContainer(SCOPE + "\n", holder + "\n").gpu_containers() == []


def test_a_container_without_a_process_holds_no_gpu() -> None:
    assert OneContainer(SCOPE + "\n", SCOPE + "\n", pid=0).gpu_containers() == []


def test_records_of_containers_that_docker_deletes_are_removed(tmp_path: Path) -> None:
    path, engine = str(tmp_path / "drain.json"), Docker({"a": True}, temporary=True)
    assert drain_docker.stop_all(Host(), engine, True, -1, False, path) == ["a"]
    assert not drain_docker.start_all(Host(), engine, False, path)["changed"] and not Path(path).exists()


def test_a_container_that_needs_another_one_is_started_after_it(tmp_path: Path) -> None:
    path, engine = str(tmp_path / "drain.json"), Docker({"a": True, "b": True}, needs={"a": "b"})
    assert drain_docker.stop_all(Host(), engine, False, -1, False, path) == ["a", "b"]
    assert drain_docker.start_all(Host(), engine, False, path)["containers"] == ["a", "b"]
    assert engine.running == {"a": True, "b": True} and not Path(path).exists()


def test_a_container_that_never_starts_is_named_and_stays_recorded(tmp_path: Path) -> None:
    path, engine = str(tmp_path / "drain.json"), Docker({"a": True, "b": True}, needs={"a": "stopped"})
    drain_docker.stop_all(Host(), engine, False, -1, False, path)
    engine.running["stopped"] = False
    with pytest.raises(DrainError, match="a does not start .*non running container"):
        drain_docker.start_all(Host(), engine, False, path)
    kept = drain.read(Host(), path).docker
    assert kept and list(kept.containers) == ["a"] and engine.running["b"]


@pytest.mark.parametrize(("names", "killed"), [(-1, "never"), (90000, "only after 90000 s")])
def test_a_container_with_a_longer_stop_timeout_than_the_drain_is_named_in_time(
    tmp_path: Path, names: int, killed: str
) -> None:
    waits: list[float] = []

    class Stubborn(Docker):
        def ask(self, method: str, url: str, timeout: float = 60.0) -> tuple[int, Any]:
            if "/stop" in url:
                waits.append(timeout)
                raise DrainError("docker does not answer at /run/docker.sock (timed out): see ...")
            status, value = super().ask(method, url, timeout)
            if url.endswith("/json") and isinstance(value, dict):
                value["Config"] = {"StopTimeout": names}
            return status, value

    engine = Stubborn({"a": True})
    engine.limit = 300.0
    with pytest.raises(
        DrainError, match=f"a did not end within 360 s, and docker kills it {killed}.*gpu_drain_docker_grace"
    ):
        drain_docker.stop_all(Host(), engine, False, -1, False, str(tmp_path / "drain.json"))
    assert waits == [360.0]


def test_a_container_that_somebody_restarts_is_awaited_and_named(tmp_path: Path) -> None:
    path, engine = str(tmp_path / "drain.json"), Docker({"a": True, "b": True}, reborn=("a",))
    assert drain_docker.stop_all(Host(), engine, False, -1, False, path) == ["a", "b"]
    assert re.search("a, which .* started", engine.pending_work(False))
    engine.reborn = ()
    drain_docker.stop_all(Host(), engine, False, -1, False, path)
    assert engine.pending_work(False) == ""
