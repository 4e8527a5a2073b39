"""Draining a Kubernetes node: who owns a cordon, evictions, what kubectl prints, and an API server that is away."""

import json
import re
from functools import partial
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import TIMED_OUT, Result
from plugins.module_utils.gpu_ready.cluster.kubectl import TRIES, Kubectl, KubectlAccess
from plugins.module_utils.gpu_ready.drain import hook
from plugins.module_utils.gpu_ready.drain import kubernetes as drain_kubernetes
from plugins.module_utils.gpu_ready.drain.hook import one_line
from plugins.module_utils.gpu_ready.drain.journal import DrainError
from tests.unit.clock import Clock
from tests.unit.recorded import RecordedHost

REASON = "gpu-ready: driver upgrade"


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


@pytest.mark.parametrize("name", ["", "-n1", "N1", "n1,n2", "n1 n2", "n" * 254])
def test_what_is_no_name_of_a_node_is_refused(name: str) -> None:
    with pytest.raises(DrainError, match=r"gpu_drain_kubernetes_node: '.*' is not the name of a node\. Set it"):
        drain_kubernetes.KubernetesHook(Kubectl(RecordedHost(), KubectlAccess()), name)


@pytest.mark.parametrize("action", [hook.DRAIN, hook.UNDRAIN])
def test_a_node_that_the_cluster_does_not_have_is_named(action: str) -> None:
    with pytest.raises(DrainError, match=r"Kubernetes: it has no node n1\. Set gpu_drain_kubernetes_node"):
        restarting(action, ['Error from server (NotFound): nodes "n1" not found\n'])


class Contended(Restarting):
    """A node that something else changes before each of these patches."""

    def __init__(self, cordoned: bool, conflicts: int) -> None:
        super().__init__([], cordoned)
        self.conflicts = conflicts

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        if argv[1] == "patch" and self.conflicts:
            self.conflicts -= 1
            conflict = 'Error from server (Conflict): Operation cannot be fulfilled on nodes "n1": the object has been modified'
            return Result(1, "", conflict)
        return super().run(argv, timeout, env)


@pytest.mark.parametrize("action", [hook.DRAIN, hook.UNDRAIN])
def test_a_node_that_changed_since_it_was_read_is_read_again(action: str) -> None:
    params = {"reason": REASON, "recorded": False, "timeout": 1800, "deadline": 0.0}
    for conflicts in (0, 1, TRIES - 1, TRIES):
        host = Contended(action == hook.UNDRAIN, conflicts)
        node = drain_kubernetes.KubernetesHook(Kubectl(host, KubectlAccess()), "n1")
        hook.run_action(node, action, params, check=True)
        assert host.conflicts == conflicts and host.node.cordoned == (action == hook.UNDRAIN)
        if conflicts < TRIES:
            assert hook.run_action(node, action, params, check=False)["changed"]
            assert host.node.cordoned == (action == hook.DRAIN)
        else:
            with pytest.raises(DrainError, match=r"the node n1 changed during each of \d+ tries\. Run again"):
                hook.run_action(node, action, params, check=False)
