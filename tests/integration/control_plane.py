"""The lab's Kubernetes as tests use it: kubectl, service accounts with documented rights, playbooks, and a clean state."""

import base64
import json
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.yaml import yaml_load
from gpu_ready_lab import cluster, hosts, kubernetes

from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.cluster.kubectl import Kubectl, KubectlAccess
from plugins.module_utils.gpu_ready.drain.kubernetes import EvictionOptions, KubernetesHook
from tests.integration.fleet import DRIVER_ALONE, ROOT, Fleet, Run
from tests.integration.kubernetes_objects import POD

FIRST, SECOND = "kube-1", "kube-2"
NODES = (FIRST, SECOND)
OWNED = "--selector=app.kubernetes.io/managed-by=gpu-ready"
REASON = "gpu-ready: driver upgrade"
JOURNAL = "/var/lib/gpu-ready/drain.json"
SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")


def start() -> "Cluster":
    """Start the fleet and its cluster; both stay for the next test file."""
    if not kubernetes.is_built():
        pytest.skip(
            f"Kubernetes is not in the lab's cache: `{kubernetes.COMMAND}` or `make campaign PART=kubernetes_build` builds it; "
            "test_drain.py has a stand-in for the API server"
        )
    before = sysctls()
    fleet = Fleet("kubernetes")
    fleet.up()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda node: fleet.ssh(node, DRIVER_ALONE), NODES))
    made = fleet.play()
    assert made.rc == 0, made.screen[-3000:]
    found = {one.host: one for one in hosts.existing() if one.fleet == fleet.name}
    cluster.start([found[name] for name in NODES])
    assert sysctls() == before, "a kubelet has changed the settings of this machine's kernel"
    return Cluster(fleet)


def sysctls() -> list[str]:
    return [Path("/proc/sys", name).read_text() for name in SYSCTLS]


class Cluster:
    """The fleet with its API server."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.kubeconfig = cluster.kubeconfig(fleet.name)
        self.users = {name: self.user(name) for name in ("kubernetes", "drain")}
        found = self.owned() + [name for node in NODES for name in self.labels(node)]
        self.applied: tuple[str, dict[str, Any]] | None = None if found else ("none", {})
        """Mode and variables of the last run on all nodes that changed the cluster; None if something else changed it since."""

    def user(self, page: str) -> Path:
        """Return the kubeconfig of a service account with exactly the rights that a page of docs/ names."""
        text = (ROOT / f"docs/{page}.md").read_text()
        roles = re.findall(r"^```yaml\n(apiVersion: rbac.*?)^```", text, re.M | re.S)
        assert roles, page
        self.kubectl("create", "namespace", page, check=False)
        for role in map(yaml_load, roles):
            self.kubectl("apply", "--filename=-", stdin=json.dumps(role))
            kind, where = role["kind"], role["metadata"].get("namespace")
            binding = {
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": f"{kind}Binding",
                "metadata": {"name": role["metadata"]["name"], **({"namespace": where} if where else {})},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role["metadata"]["name"]},
                "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": page}],
            }  # fmt: skip
            self.kubectl("apply", "--filename=-", stdin=json.dumps(binding))
        self.wait("default", "default-token", "get", "serviceaccount", "--namespace", page, "--output=yaml")
        name = self.get("serviceaccount", "default", "--namespace", page)["secrets"][0]["name"]
        token = base64.b64decode(self.get("secret", name, "--namespace", page)["data"]["token"]).decode()
        config = yaml_load(self.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token}
        path = self.fleet.directory / f"kubeconfig-{page}"
        path.write_text(yaml.safe_dump(config))
        return path

    def call(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        argv = [str(cluster.kubectl()), f"--kubeconfig={self.kubeconfig}", *words]
        return subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=200, check=False)

    def kubectl(self, *words: str, stdin: str = "", check: bool = True) -> str:
        """Return what kubectl prints."""
        done = self.call(*words, stdin=stdin)
        assert not check or done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout + ("" if check else done.stderr)

    def get(self, *words: str, limit: int = 120) -> Any:
        """Return objects. The API server of a loaded machine does not always answer at once."""
        end = time.monotonic() + limit
        while (done := self.call("get", *words, "--output=json")).returncode != 0:
            assert time.monotonic() < end, f"get {words}: {done.stderr}"
            time.sleep(1)
        return json.loads(done.stdout)

    def labels(self, node: str) -> dict[str, str]:
        """Return the labels of NVIDIA's names that a node has."""
        found = self.get("node", node)["metadata"]["labels"]
        return {name: value for name, value in found.items() if name.startswith("nvidia.com/")}

    def taints(self, node: str) -> list[str]:
        """Return the taints of a node as kubectl writes them."""
        found = self.get("node", node)["spec"].get("taints") or []
        return [f"{one['key']}={one.get('value', '')}:{one['effect']}" for one in found]

    def allocatable(self, node: str) -> int:
        return int(self.get("node", node)["status"]["allocatable"].get("nvidia.com/gpu", 0))

    def play(self, mode: str, *arguments: str, **variables: Any) -> Run:
        extra = {
            "gpu_kubernetes": mode,
            "gpu_kubernetes_kubectl": str(cluster.kubectl()),
            "gpu_kubernetes_kubeconfig": str(self.users["kubernetes"]),
            "gpu_kubernetes_device_list": "envvar",
            "gpu_kubernetes_plugin_image": f"docker.io/{cluster.PLUGIN_IMAGE}",
            "gpu_kubernetes_verify_image": "docker.io/gpu-ready-lab/verify:1",
            "gpu_kubernetes_directory": str(self.fleet.directory / "manifests"),
            **variables,
        }
        if mode in ("device_plugin", "none") and "--check" not in arguments:
            self.applied = None if arguments else (mode, variables)
        return self.fleet.play(*arguments, playbook="playbooks/kubernetes.yml", extra=extra)

    def set_up(self, mode: str) -> None:
        """Let all nodes have what a mode applies with the tests' variables, whatever ran before."""
        if self.applied != (mode, {}):
            run = self.play(mode, gpu_kubernetes_verify=False)
            assert run.rc == 0, run.screen[-3000:]
            self.applied = (mode, {})
        if mode == "device_plugin":
            self.await_plugin()
            self.await_gpus()

    def await_plugin(self, limit: int = 120) -> None:
        """Wait until each node runs one pod of the applied plugin: a pod is replaced while the one before it still ends."""
        place = ("--namespace=kube-system", "--selector=app.kubernetes.io/name=gpu-ready-device-plugin")
        self.kubectl("rollout", "status", "daemonset/gpu-ready-device-plugin", place[0], f"--timeout={limit}s")
        end = time.monotonic() + limit
        while len(pods := self.get("pods", *place)["items"]) != len(NODES):
            assert time.monotonic() < end, [(one["metadata"]["name"], one["status"]["phase"]) for one in pods]
            time.sleep(1)

    def await_gpus(self) -> None:
        """Wait until each node offers its four GPUs."""
        for node in NODES:
            self.wait(node, '"nvidia.com/gpu":"4"', "get", "node", "--output=jsonpath={.status.allocatable}")

    def clean(self) -> None:
        """Remove what a test left in the cluster besides the objects of gpu-ready.

        In the foreground: a ReplicaSet that outlives its Deployment makes a new pod for each that is deleted
        (kubernetes.io/docs/concepts/architecture/garbage-collection).
        """
        place = ("--all", "--namespace=default", "--wait=true")
        self.kubectl("delete", "deployments,daemonsets,jobs,poddisruptionbudgets", *place, "--cascade=foreground")
        self.kubectl("delete", "pods", *place)
        for node in self.get("nodes")["items"]:
            if node["spec"].get("unschedulable"):
                name = node["metadata"]["name"]
                self.kubectl("uncordon", name)
                self.kubectl("annotate", "node", name, "gpu-ready/drained-")
                self.fleet.ssh(name, f"rm -f {JOURNAL}")

    def drain(self, entry: str, **variables: Any) -> Run:
        """Drain the second node, or undrain it."""
        return self.service("tests/integration/drain.yml", "--limit", SECOND, entry=entry, **variables)

    def service(self, playbook: str, *arguments: str, **variables: Any) -> Run:
        """Run a playbook that drains nodes, with the rights that docs/drain.md names."""
        extra = {
            "gpu_upgrade_drain": "kubernetes",
            "gpu_upgrade_drain_timeout": 120,
            "gpu_drain_kubernetes_kubectl": str(cluster.kubectl()),
            "gpu_drain_kubernetes_kubeconfig": str(self.users["drain"]),
            **variables,
        }
        return self.fleet.play(*arguments, playbook=playbook, extra=extra)

    def cordoned(self) -> list[str]:
        """Names of the nodes that get no pods."""
        return [one["metadata"]["name"] for one in self.get("nodes")["items"] if one["spec"].get("unschedulable")]

    def pod(self, name: str, product: str, gpus: int = 1) -> None:
        self.kubectl("apply", "--filename=-", stdin=POD % (name, product, gpus))

    def wait(self, name: str, text: str, *words: str, limit: int = 120) -> str:
        """Wait until kubectl prints a text about a pod."""
        end = time.monotonic() + limit
        while text not in (found := self.kubectl(*words, name, check=False)):
            assert time.monotonic() < end, f"{name}: no {text!r} in {found}"
            time.sleep(1)
        return found

    def wait_until_deleted(self, *words: str, limit: int = 120) -> None:
        """Wait until no such object exists; `kubectl wait --for=delete` of 1.20 fails if it does not exist any more."""
        end = time.monotonic() + limit
        while found := self.kubectl("get", *words, "--ignore-not-found", "--output=name"):
            assert time.monotonic() < end, found
            time.sleep(1)

    def owned(self) -> list[str]:
        """Return kind and name of what has the label of gpu-ready."""
        kinds = "daemonsets,configmaps,runtimeclasses,pods"
        return [f"{one['kind']} {one['metadata']['name']}" for one in self.get(kinds, "-A", OWNED)["items"]]


class Drained:
    """The second node, cordoned by the code of the drain hook alone, which is faster than a playbook."""

    def __init__(self, kube: Cluster) -> None:
        self.kube = kube
        assert self.hook().drain(REASON, recorded=False, check=False).owned

    def hook(self, user: str = "drain", node: str = SECOND, **options: Any) -> KubernetesHook:
        """The hook with the rights of a service account."""
        access = KubectlAccess(str(cluster.kubectl()), str(self.kube.users[user]))
        return KubernetesHook(Kubectl(Host(), access), node, EvictionOptions(**options), seconds=5)

    def pod(self, name: str, **spec: Any) -> None:
        """Run a pod without a controller there, which needs to be killed."""
        script = "trap : TERM; while true; do sleep 1; done"
        image = {"name": "c", "image": "docker.io/gpu-ready-lab/verify:1", "command": ["sh", "-c", script]}
        made = {"terminationGracePeriodSeconds": 0, "nodeName": SECOND, "containers": [image], **spec}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": made}
        self.kube.kubectl("apply", "--filename=-", stdin=json.dumps(pod))
        self.kube.kubectl("wait", "--for=condition=Ready", f"pod/{name}", "--timeout=60s")

    def evict(self, limit: int = 120, **options: Any) -> None:
        """Evict the pods, in as many calls as it takes."""
        end = time.monotonic() + limit
        while waiting := self.hook(**options).pending_work():
            assert time.monotonic() < end, waiting

    def pods(self) -> list[str]:
        """Names of the pods that are left on the node, without those of system namespaces."""
        found = self.kube.get("pods", f"--field-selector=spec.nodeName={SECOND}")["items"]
        return [one["metadata"]["name"] for one in found]
