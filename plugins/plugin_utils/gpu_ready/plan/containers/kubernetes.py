"""The engine of a host's kubelet: which one it is, and what k3s and RKE2 need.

k3s and RKE2 write the configuration of their containerd at each start. They add the runtime nvidia themselves where
they find nvidia-container-runtime then, in /usr/local/nvidia/toolkit or /usr/bin (pkg/agent/containerd/runtimes.go of
k3s, whose agent RKE2 runs too). So they get the toolkit and one restart.
"""

from typing import NamedTuple

from .....module_utils.gpu_ready.base.disruptions import KUBERNETES_RESTART, NONE
from .....module_utils.gpu_ready.containers import names
from .....module_utils.gpu_ready.containers.containerd import config, edits, toml
from .....module_utils.gpu_ready.facts.model import Facts, KubernetesFacts
from ...catalog.settings import Settings
from ..model import Notice, Refusal, Step, VariableChange, refuse
from .model import KubernetesParams

TOOLKIT = "toolkit"
FORMAT_WITH_CDI = 3
"""containerd 2.0, the first that reads this format, enables CDI by default (docs/cri/config.md)."""
OTHERS = {
    "microk8s": "its add-on does this (`microk8s enable nvidia`), with NVIDIA's GPU Operator",
    "k0s": "its containerd reads /etc/k0s/containerd.d: `nvidia-ctk runtime configure --runtime=containerd "
    "--config=/etc/k0s/containerd.d/nvidia.toml`, then `systemctl restart` of k0scontroller or k0sworker",
}


class KubernetesDecision(NamedTuple):
    """The step for k3s or RKE2, or why it cannot be done."""

    steps: list[Step]
    refusals: list[Refusal]


def resolve_engines(facts: Facts, settings: Settings) -> Settings:
    """Return the settings with the engines that an empty nvidia_container_runtime_engines means on this host.

    docker; on a host with a kubelet that kubelet's engine, and docker only where it is installed.
    """
    kubelet = facts.engines.kubernetes
    if settings.nvidia_container_runtime_engines:
        return settings
    found = [names.DOCKER] if facts.docker.installed or not kubelet.kind else []
    if kubelet.engine and kubelet.engine not in found:
        found.append(kubelet.engine)
    return settings._replace(nvidia_container_runtime_engines=found or [names.DOCKER])


def unknown_kubelet(facts: Facts, settings: Settings) -> list[Refusal]:
    kubelet = facts.engines.kubernetes
    if settings.nvidia_container_runtime_engines or not kubelet.kind or kubelet.engine:
        return []
    named = "name the engines that shall get GPUs with nvidia_container_runtime_engines (docker, if no pod shall)"
    if kubelet.kind in OTHERS:
        message = "this is a node of %s, whose containerd gpu-ready does not configure" % kubelet.kind
        return [Refusal("kubernetes_not_supported", message, "%s; or %s" % (OTHERS[kubelet.kind], named))]
    message = "the kubelet of this host names no engine, and not exactly one of containerd and CRI-O is installed"
    return [Refusal("kubernetes_engine_unknown", message, named)]


def unread_files(facts: Facts) -> list[Notice]:
    return [
        Notice(
            "drop_in_not_read",
            "%s names NVIDIA's runtime, but no engine of this host reads it" % path,
            "remove it: gpu-ready writes to files that are read (docs/kubernetes.md)",
        )
        for path in facts.engines.kubernetes.unread
    ]


def plan_kubernetes(facts: Facts, settings: Settings, name: str) -> KubernetesDecision:
    """Return the restart that k3s or RKE2 needs to find the toolkit, which earlier steps install; ``name``: which."""
    kubelet, mode = facts.engines.kubernetes, settings.nvidia_container_runtime_mode
    if kubelet.kind != name:
        message = "%s is not installed, and nvidia_container_runtime_engines names it" % name
        remedy = "install it, or remove %s from nvidia_container_runtime_engines" % name
        return KubernetesDecision([], [Refusal("kubernetes_missing", message, remedy)])
    try:
        newer = bool(kubelet.files[0].text) and edits.file_format(kubelet.files[0]) >= FORMAT_WITH_CDI
        table = edits.effective_table(edits.FIRST_MERGE if newer else edits.FIRST_CDI, kubelet.files)
    except config.ConfigError as error:
        return KubernetesDecision([], [Refusal(error.code, error.problem, error.remedy)])
    refusals = impossible(
        kubelet,
        settings,
        cdi_enabled=bool(table.get("enable_cdi", newer)),
        default_runtime=str(toml.get_value(table, ("containerd", "default_runtime_name"))),
    )
    program = str(toml.get_value(table, ("containerd", "runtimes", "nvidia", "options", "BinaryName")) or "")
    if mode != TOOLKIT or program.endswith("/nvidia-container-runtime") or refusals:
        return KubernetesDecision([], refusals)
    if kubelet.active:
        why = "%s looks for nvidia-container-runtime only when it starts; its restart leaves pods running" % name
    else:
        why = "%s does not run" % name
    params = KubernetesParams(kubelet.unit, kubelet.files[0].path, "restarted" if kubelet.active else "started")
    disruption = KUBERNETES_RESTART if kubelet.active else NONE
    return KubernetesDecision([Step("nvidia_container_runtime.kubernetes", why, disruption, params)], [])


def impossible(kubelet: KubernetesFacts, settings: Settings, cdi_enabled: bool, default_runtime: str) -> list[Refusal]:
    name, mode = kubelet.kind, settings.nvidia_container_runtime_mode
    directory = "/etc/rancher/" + name
    found = []
    if not kubelet.unit:
        message = "%s is installed, but has no unit of systemd (%s)" % (name, "k3s, k3s-agent, rke2-server, rke2-agent")
        remedy = "restart it by yourself after nvidia-container-toolkit is installed; name other engines here"
        found.append(Refusal("kubernetes_unit_missing", message, remedy))
    if mode != TOOLKIT and not cdi_enabled:
        message = "the containerd of %s has CDI disabled, which nvidia_container_runtime_mode: %s needs" % (name, mode)
        change = VariableChange({"nvidia_container_runtime_mode": ["toolkit"]})
        also = "update %s to a release with containerd 2" % name
        found.append(refuse("engine_without_cdi", message, change, also))
    default = settings.nvidia_container_runtime_default and mode == TOOLKIT
    if default and default_runtime != "nvidia":
        message = "nvidia_container_runtime_default is true, and %s selects its default runtime itself" % name
        off = VariableChange({"nvidia_container_runtime_default": [False]})
        also = "set default-runtime: nvidia in %s/config.yaml and restart it" % directory
        found.append(refuse("kubernetes_default_runtime", message, off, also))
    used = [file for file in kubelet.templates[:1] if mode == TOOLKIT]
    words = ('template "base"', ".ExtraRuntimes", "nvidia-container-runtime")
    for file in used:
        if not [word for word in words if word in (file.text or "")]:
            message = "%s, a template of somebody, has no place for runtimes that %s finds" % (file.path, name)
            remedy = 'begin it with {{ template "base" . }} and keep only what differs, then run this again'
            found.append(Refusal("kubernetes_template_fixed", message, remedy))
    return found
