"""The kubelet's engine: how it is recognised, what k3s, RKE2 and CRI-O need, and what nobody reads."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.containers import crio, crio_edits
from plugins.module_utils.gpu_ready.containers.containerd import config as containerd_config
from plugins.module_utils.gpu_ready.containers.containerd import toml
from plugins.module_utils.gpu_ready.containers.containerd.config import ConfigFile
from plugins.module_utils.gpu_ready.facts import engines as engine_facts
from plugins.module_utils.gpu_ready.facts import public
from plugins.module_utils.gpu_ready.facts.model import ContainerFacts, CrioFacts, Facts, KubernetesFacts, WorkFacts
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.containers import kubernetes
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import hosts
from tests.unit.hosts import having
from tests.unit.plans import todo
from tests.unit.recorded import RecordedHost

K3S = "/var/lib/rancher/k3s/agent"
CONTAINERD_V2 = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
"""  # as k3s's template of containerd 1.7 has it (pkg/agent/templates/templates_linux.go)
NVIDIA_V2 = """
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes."nvidia"]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes."nvidia".options]
  BinaryName = "/usr/bin/nvidia-container-runtime"
"""
CONTAINERD_V3 = (
    "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\n  default_runtime_name = \"nvidia\"\n"
)
CRIO_PACKAGE = """[crio.image]
signature_policy = "/etc/crio/policy.json"

[crio.runtime]
default_runtime = "crun"

[crio.runtime.runtimes.crun]
runtime_path = "/usr/libexec/crio/crun"
runtime_root = "/run/crun"
allowed_annotations = ["io.containers.trace-syscall"]
monitor_path = "/usr/libexec/crio/conmon"
"""  # 10-crio.conf of the packages at pkgs.k8s.io (cri-o/packaging, templates/latest/cri-o)


def collect(files: Any, **more: Any) -> Any:
    return engine_facts.collect(RecordedHost(files, **more), {})


def rancher(kind: str, **more: Any) -> KubernetesFacts:
    files = [ConfigFile(f"/var/lib/rancher/{kind}/agent/etc/containerd/config.toml", CONTAINERD_V2)]
    unit = {"k3s": "k3s-agent", "rke2": "rke2-agent"}[kind]
    return KubernetesFacts(kind, kind, unit=unit, active=True, files=files)._replace(**more)


def node(kubelet: KubernetesFacts, toolkit: bool = True, **more: Any) -> Facts:
    """A host with a driver as desired, a kubelet and no docker."""
    host = having(hosts.bare(hosts.T4), engines={"kubernetes": kubelet, **more}, runtime={"toolkit": toolkit})
    return having(host, runtime={"programs": {"nvidia-container-runtime": "/usr/bin/nvidia-container-runtime"}})


def plan(host: Facts, **given: Any) -> compose.Plan:
    reading = variables.parse_settings(given)
    assert reading.errors == []
    return compose.plan(host, reading.settings)


def steps(decided: compose.Plan) -> list[str]:
    names = [step.id for step in decided.steps if step.role in ("docker_engine", "nvidia_container_runtime")]
    return [name.removeprefix("nvidia_container_runtime.") for name in names]


def codes(decided: compose.Plan) -> list[str]:
    return [refusal.code for refusal in decided.refusals]


# ---- facts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "kind", "engine"),
    [
        ({}, "", ""),
        ({"/var/lib/kubelet/config.yaml": 'containerRuntimeEndpoint: "unix:///var/run/crio/crio.sock"\n'}, "kubeadm", "crio"),
        ({"/var/lib/kubelet/kubeadm-flags.env":
          'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock --pod-infra=x"\n'},
         "kubeadm", "containerd"),
        ({"/var/lib/kubelet/config.yaml": 'containerRuntimeEndpoint: ""\n', "/usr/bin/containerd": ""}, "kubeadm", "containerd"),
        ({"/var/lib/kubelet/config.yaml": "", "/usr/bin/containerd": "", "/usr/bin/crio": ""}, "kubeadm", ""),
        ({"/etc/kubernetes/kubelet.env": 'KUBELET_ARGS="--container-runtime-endpoint=unix:///run/cri-dockerd.sock"\n'},
         "kubeadm", "docker"),
        ({"/var/snap/microk8s/current/args/containerd": ""}, "microk8s", ""),
        ({"/var/lib/k0s/kubelet/config.yaml": ""}, "k0s", ""),
    ],
)  # fmt: skip
def test_which_kubelet_uses_which_engine(files: dict[str, str], kind: str, engine: str) -> None:
    version = {("/usr/bin/containerd", "--version"): Result(0, "containerd x v2.1.4 75cb\n", "")}
    found = collect(files, programs=version).kubernetes
    assert (found.kind, found.engine) == (kind, engine)


def test_rke2_of_an_archive_has_both_units_and_the_enabled_one_counts() -> None:
    directory = "/var/lib/rancher/rke2/agent"
    files = {
        "/usr/local/lib/systemd/system/rke2-server.service": "[Service]\nKillMode=process\n",
        "/usr/local/lib/systemd/system/rke2-agent.service": "[Service]\nKillMode=process\n",
        "/etc/systemd/system/multi-user.target.wants/rke2-agent.service": "",
        directory + "/etc/containerd/config.toml": 'version = 3\nimports = ["config-v3.toml.d/*.toml"]\n',
        directory + "/etc/containerd/config-v3.toml.d/site.toml": "version = 3\n",
        directory + "/etc/containerd/config.toml.tmpl": "old",
        "/run/k3s/containerd/containerd.sock": "",
    }
    found = collect(files).kubernetes
    assert (found.kind, found.unit, found.active, found.keeps_containers) == ("rke2", "rke2-agent", True, True)
    assert [file.path.rpartition("/")[2] for file in found.files] == ["config.toml", "site.toml"]
    assert [file.path.rpartition("/")[2] for file in found.templates] == ["config.toml.tmpl"]
    shown = public.engines_json(collect(files))["kubernetes"]
    assert "imports" not in str(shown) and "old" not in str(shown)


OLD = "[x]\nBinaryName = '/usr/bin/nvidia-container-runtime'\n"


@pytest.mark.parametrize(
    ("files", "unread"),
    [
        ({"/usr/bin/crio": "", "/etc/crio/conf.d/99-nvidia.toml": OLD}, ["/etc/crio/conf.d/99-nvidia.toml"]),
        ({"/usr/bin/crio": "", "/etc/crio/crio.conf.d/99-nvidia.toml": OLD}, []),
        ({"/usr/bin/containerd": "", containerd_config.MAIN: "version = 2\n", "/etc/containerd/conf.d/99-nvidia.toml": OLD},
         ["/etc/containerd/conf.d/99-nvidia.toml"]),
        ({"/usr/bin/containerd": "", containerd_config.MAIN: 'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n',
          "/etc/containerd/conf.d/99-nvidia.toml": OLD}, []),
        ({"/usr/bin/containerd": "", "/etc/containerd/config.d/99-nvidia.toml": OLD,
          "/etc/containerd/conf.d/99-nvidia.toml": OLD},  # a daemon without a main file reads none, of 2.2 neither
         ["/etc/containerd/conf.d/99-nvidia.toml", "/etc/containerd/config.d/99-nvidia.toml"]),
        ({K3S + "/x": "", containerd_config.MAIN: OLD, "/etc/containerd/conf.d/99-nvidia.toml": OLD},
         [containerd_config.MAIN, "/etc/containerd/conf.d/99-nvidia.toml"]),
        ({"/usr/bin/containerd": "", "/etc/containerd/conf.d/site.toml": "version = 3\n"}, []),
    ],
)  # fmt: skip
def test_files_of_older_toolkits_that_nobody_reads(files: dict[str, str], unread: list[str]) -> None:
    version = {("/usr/bin/containerd", "--version"): Result(0, "containerd x v2.2.1 75cb\n", "")}
    found = collect(files, programs=version if "/usr/bin/containerd" in files else {})
    assert found.kubernetes.unread == unread
    host = having(hosts.bare(hosts.T4), engines={"kubernetes": found.kubernetes})
    warned = [notice.message for notice in plan(host, nvidia_container_runtime_engines=["docker"]).warnings]
    assert [text.partition(" ")[0] for text in warned if "no engine of this host reads" in text] == unread


# ---- the plan -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kubelet", "docker", "names"),
    [
        (KubernetesFacts(), False, ["docker"]),
        (KubernetesFacts("kubeadm", "containerd"), False, ["containerd"]),
        (KubernetesFacts("kubeadm", "containerd"), True, ["docker", "containerd"]),
        (KubernetesFacts("kubeadm", "docker"), True, ["docker"]),
        (rancher("k3s"), False, ["k3s"]),
    ],
)
def test_an_empty_list_means_the_engine_of_the_kubelet(
    kubelet: KubernetesFacts, docker: bool, names: list[str]
) -> None:
    host = having(node(kubelet), docker={"installed": docker})
    settings = variables.parse_settings({}).settings
    assert kubernetes.resolve_engines(host, settings).nvidia_container_runtime_engines == names
    named = settings._replace(nvidia_container_runtime_engines=["podman"])
    assert kubernetes.resolve_engines(host, named) == named


@pytest.mark.parametrize("kind", ["k3s", "rke2"])
def test_k3s_and_rke2_get_the_toolkit_and_one_restart(kind: str) -> None:
    decided = plan(node(rancher(kind), toolkit=False))
    assert codes(decided) == [] and steps(decided) == ["repository", "install", "kubernetes"]
    (step,) = [step for step in decided.steps if step.action == "kubernetes"]
    assert step.disruption == "kubernetes_restart" and "leaves pods running" in step.why
    assert todo(step)["unit"] == f"{kind}-agent" and todo(step)["state"] == "restarted"
    done = [ConfigFile(todo(step)["file"], CONTAINERD_V2 + NVIDIA_V2)]
    assert steps(plan(node(rancher(kind, files=done)))) == []
    (verify,) = [step for step in decided.steps if step.id == "gpu_verify.verify"]
    assert todo(verify)["expect"]["engines"]["names"] == [kind]


@pytest.mark.parametrize(
    ("kubelet", "stopped"),
    [
        (rancher("k3s"), ""),
        (rancher("rke2", unit="rke2-server"), ""),  # its API server is a pod
        (rancher("k3s", unit="k3s"), "the API server of this k3s server"),
        (rancher("rke2", keeps_containers=False), "pod ml/train"),
    ],
)
def test_a_restart_that_stops_something_needs_a_permission(kubelet: KubernetesFacts, stopped: str) -> None:
    host = node(kubelet)._replace(work=WorkFacts(containers=[ContainerFacts("k3s", "1", "ml/train", "", True)]))
    refused = plan(host)
    assert codes(refused) == (["host_in_use"] if stopped else [])
    if stopped:
        assert stopped in refused.refusals[0].message
        assert "gpu_ready_disrupt: [kubernetes_restart]" in refused.refusals[0].remedy
    assert steps(plan(host, gpu_ready_disrupt=["kubernetes_restart"])) == ["kubernetes"]


V3 = [ConfigFile(K3S + "/etc/containerd/config.toml", CONTAINERD_V3)]


@pytest.mark.parametrize(
    ("kubelet", "given", "found"),
    [
        (rancher("k3s"), {"nvidia_container_runtime_mode": "cdi"}, ["engine_without_cdi"]),
        (rancher("k3s"), {"nvidia_container_runtime_default": True}, ["kubernetes_default_runtime"]),
        (rancher("k3s", files=V3), {"nvidia_container_runtime_default": True}, []),
        (rancher("k3s", unit=""), {}, ["kubernetes_unit_missing"]),
        (rancher("k3s"), {"nvidia_container_runtime_engines": ["rke2"]}, ["kubernetes_missing"]),
        (rancher("k3s", files=[ConfigFile("/g", "version = ")]), {}, ["containerd_config_invalid"]),
        (rancher("k3s", templates=[ConfigFile("/t", "version = 2")]), {}, ["kubernetes_template_fixed"]),
        (rancher("k3s", templates=[ConfigFile("/t", '{{ template "base" . }}'), ConfigFile("/u", "")]), {}, []),
        (rancher("k3s", files=[ConfigFile("/g", None)]), {}, []),  # installed and never started
        (KubernetesFacts("microk8s"), {}, ["kubernetes_not_supported"]),
        (KubernetesFacts("k0s"), {}, ["kubernetes_not_supported"]),
        (KubernetesFacts("kubeadm"), {}, ["kubernetes_engine_unknown"]),
        (KubernetesFacts("kubeadm", "crio"), {}, ["crio_missing"]),
    ],
)
def test_refusals(kubelet: KubernetesFacts, given: Any, found: list[str]) -> None:
    decided = plan(node(kubelet), **given)
    assert codes(decided) == found
    assert not any(refusal.remedy.endswith(".") for refusal in decided.refusals)


def test_the_template_that_is_used_decides() -> None:
    fixed = [
        ConfigFile("/config-v3.toml.tmpl", "version = 3"),
        ConfigFile("/config.toml.tmpl", '{{ template "base" . }}'),
    ]
    assert "config-v3" in plan(node(rancher("k3s", templates=fixed))).refusals[0].message


def test_cdi_of_containerd_2_needs_no_restart() -> None:
    host = having(node(rancher("k3s", files=V3)), runtime={"programs": {"nvidia-ctk": "/usr/bin/nvidia-ctk"}})
    assert steps(plan(host, nvidia_container_runtime_mode="cdi")) == ["cdi_spec"]


def test_every_engine_of_kubernetes_warns_of_nvidia_as_the_default_runtime() -> None:
    decided = plan(node(rancher("k3s", files=V3)), nvidia_container_runtime_default=True)
    (notice,) = [notice for notice in decided.warnings if notice.code == "default_runtime_exposes_gpus"]
    assert "of k3s" in notice.message


# ---- CRI-O ----------------------------------------------------------------------------------------------------------


def with_crio(files: list[ConfigFile], **more: Any) -> Facts:
    return node(KubernetesFacts("kubeadm", "crio"), crio=CrioFacts(True, True, files)._replace(**more))


PACKAGED = [ConfigFile(crio.DIRECTORY + "/10-crio.conf", CRIO_PACKAGE)]


def test_the_runtime_of_crio_is_a_copy_of_its_default_runtime() -> None:
    decided = plan(with_crio(PACKAGED))
    assert steps(decided) == ["crio"] and codes(decided) == []
    (step,) = [step for step in decided.steps if step.action == "crio"]
    (file,) = todo(step)["files"]
    assert (file["path"], file["state"], todo(step)["state"]) == (crio.DROP_IN, "present", "restarted")
    runtime = toml.parse(file["content"]).value["crio"]["runtime"]
    assert runtime == {
        "runtimes": {
            "nvidia": {
                "runtime_path": "/usr/bin/nvidia-container-runtime",
                "runtime_type": "oci",
                "runtime_root": "/run/crun",
                "allowed_annotations": ["io.containers.trace-syscall"],
                "monitor_path": "/usr/libexec/crio/conmon",
            }
        }
    }
    ours = ConfigFile(crio.DROP_IN, file["content"])
    assert steps(plan(with_crio([*PACKAGED, ours]))) == []
    assert steps(plan(with_crio([*PACKAGED, ours], pending=True))) == ["crio"]
    assert steps(plan(with_crio([*PACKAGED, ours], active=False))) == ["crio"]


def test_crio_with_nvidia_as_default_with_cdi_and_without_gpus() -> None:
    decided = plan(with_crio(PACKAGED), nvidia_container_runtime_default=True)
    (step,) = [step for step in decided.steps if step.action == "crio"]
    assert 'default_runtime = "nvidia"' in todo(step)["files"][0]["content"]
    ctk = {"programs": {"nvidia-ctk": "/usr/bin/nvidia-ctk"}}
    cdi = having(with_crio(PACKAGED), runtime=ctk)
    assert steps(plan(cdi, nvidia_container_runtime_mode="cdi")) == ["cdi_spec"]
    own = [ConfigFile(crio.MAIN, '[crio.runtime]\ncdi_spec_dirs = ["/srv/cdi"]\n')]
    cdi = having(with_crio(own), runtime=ctk)
    decided = plan(cdi, nvidia_container_runtime_mode="cdi")
    (step,) = [step for step in decided.steps if step.action == "crio"]
    assert 'cdi_spec_dirs = ["/srv/cdi", "/etc/cdi"]' in todo(step)["files"][0]["content"]


def test_a_runtime_of_others_stays() -> None:
    others = ConfigFile(
        crio.DIRECTORY + "/99-nvidia.toml",
        '[crio.runtime.runtimes.nvidia]\nruntime_path = "/usr/local/nvidia/toolkit/nvidia-container-runtime"\n',
    )
    assert steps(plan(with_crio([*PACKAGED, others]))) == []


def test_a_file_that_is_read_later_may_not_have_the_same_keys() -> None:
    later = ConfigFile(crio.DIRECTORY + "/99-site.conf", '[crio.runtime]\ndefault_runtime = "crun"\n')
    decided = plan(with_crio([*PACKAGED, later]), nvidia_container_runtime_default=True)
    assert codes(decided) == ["crio_drop_in_overridden"]
    assert codes(plan(with_crio([*PACKAGED, later]))) == []
    broken = ConfigFile(crio.DIRECTORY + "/00.conf", "[crio.runtime\n")
    assert codes(plan(with_crio([broken]))) == ["containerd_config_invalid"]


def test_our_file_is_removed_where_crio_is_no_longer_an_engine() -> None:
    text = crio_edits.drop_in_text(PACKAGED, "toolkit", False)
    host = with_crio([*PACKAGED, ConfigFile(crio.DROP_IN, text)])
    assert steps(plan(host, nvidia_container_runtime_engines=["podman"])) == []  # somebody else's
    host = having(host, runtime={"manifest": {"files": [crio.DROP_IN]}}, engines={"podman": {"installed": True}})
    decided = plan(host, nvidia_container_runtime_engines=["podman"])
    (step,) = [step for step in decided.steps if step.action == "crio"]
    assert [file["state"] for file in todo(step)["files"]] == ["absent"] and todo(step)["state"] == "restarted"
