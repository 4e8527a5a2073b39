"""Labels of verified GPUs, and the manifests that playbooks/kubernetes.yml writes, against the schemas of Kubernetes."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.verify import node_labels
from tests.grid import sampled
from tests.unit.lying_host import calls, make_liar, run_playbook
from tests.unit.recorded import RecordedHost

UUIDS = ["GPU-11111111-2222-3333-4444-555555555555", "GPU-11111111-2222-3333-4444-555555555556"]
ROW = "{}, 00000000:3B:00.0, 580.95.05, 15360 MiB, [N/A], 7.5, Tesla T4\n"
NONE = node_labels.Sharing("none", 2)
LABELS = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.product": "Tesla-T4",
    "nvidia.com/cuda.driver-version.full": "580.95.05",
}
BAD = {
    "node-role.kubernetes.io/control-plane": "",
    "nvidia.com/gpu.x": 'a"\n  - kind: Pod',
    'nvidia.com/gpu.y": z\n': "1",
    "nvidia.com/gpu.newline": "1\n",
    "nvidia.com/gpu.template": "{{ 7 * 7 }}",
}


class Node(RecordedHost):
    """A host with this answer of nvidia-smi; ``old``: its driver does not know the field compute_cap."""

    def __init__(self, rows: str, old: bool = False, **record: Any) -> None:
        super().__init__()
        self.rows, self.old = rows, old
        record = {"ok": True, "boot_id": "b", "gpus": UUIDS[: rows.count("GPU-")], "schema": 1, **record}
        self.files["/var/lib/gpu-ready/verified.json"] = json.dumps(record)
        self.files["/proc/sys/kernel/random/boot_id"] = "b\n"
        self.files["/sys/bus/pci/devices/0000:3b:00.0/class"] = "0x030200\n"
        self.files["/sys/class/dmi/id/product_name"] = "PowerEdge R750 (SKU=1)\n"

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        if argv == ["nvidia-smi"]:
            return Result(0, "| NVIDIA-SMI 580.95.05   Driver Version: 580.95.05   CUDA Version: 13.0  |\n", "")
        if self.old and "compute_cap" in argv[1]:
            return Result(2, 'Field "compute_cap" is not a valid field to query.\n', "")
        return Result(0, self.rows.replace(", 7.5,", ",") if self.old else self.rows, "")


def test_labels_have_the_names_and_values_of_gpu_feature_discovery() -> None:
    labels, gpus = node_labels.collect(Node(ROW.format(UUIDS[0]) + ROW.format(UUIDS[1])), NONE)
    assert gpus == UUIDS
    short = {name.removeprefix("nvidia.com/"): value for name, value in labels.items()}
    assert short == {
        "cuda.driver-version.full": "580.95.05", "cuda.driver-version.major": "580", "cuda.driver-version.minor": "95",
        "cuda.driver-version.revision": "05", "cuda.runtime-version.full": "13.0", "cuda.runtime-version.major": "13",
        "cuda.runtime-version.minor": "0", "gpu.compute.major": "7", "gpu.compute.minor": "5", "gpu.count": "2",
        "gpu.family": "turing", "gpu.machine": "PowerEdge-R750-SKU1", "gpu.memory": "15360", "gpu.mode": "compute",
        "gpu.present": "true", "gpu.product": "Tesla-T4", "gpu.replicas": "1", "gpu.sharing-strategy": "none",
        "mig.capable": "false", "mig.strategy": "none", "mps.capable": "false", "vgpu.present": "false",
    }  # fmt: skip


def test_shared_gpus_and_old_drivers() -> None:
    labels = node_labels.collect(Node(ROW.format(UUIDS[0]), old=True), node_labels.Sharing("time-slicing", 4)).labels
    assert labels["nvidia.com/gpu.product"] == "Tesla-T4-SHARED" and labels["nvidia.com/gpu.replicas"] == "4"
    assert "nvidia.com/gpu.family" not in labels


@pytest.mark.parametrize(
    ("record", "message"),
    [({"ok": False}, "not verified"), ({"boot_id": "x"}, "not verified"), ({"gpus": ["GPU-9"]}, "not those")],
)
def test_only_verified_gpus_have_labels(record: dict[str, Any], message: str) -> None:
    with pytest.raises(GpuReadyError, match=message):
        node_labels.collect(Node(ROW.format(UUIDS[0]), **record), NONE)


@pytest.mark.parametrize(
    ("compute", "family"),
    [((3, 7), "kepler"), ((6, 1), "pascal"), ((7, 0), "volta"), ((7, 5), "turing"), ((8, 6), "ampere"),
     ((8, 9), "ada-lovelace"), ((9, 0), "hopper"), ((10, 3), "blackwell"), ((11, 0), "undefined"), ((12, 0), "blackwell")],
)  # fmt: skip
def test_families(compute: tuple[int, int], family: str) -> None:
    assert node_labels.family(compute) == family


@pytest.mark.parametrize("text", ["NVIDIA H100 80GB HBM3", "  (x)  y ", "é/ü", "", "a" * 80, "..", "A-" * 40])
def test_any_name_is_a_valid_label(text: str) -> None:
    assert re.fullmatch(r"(?=.{0,63}\Z)([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?", node_labels.clean(text))


def rendered(tmp_path: Path, **variables: Any) -> dict[str, Any]:
    """The files by name, of a host with its labels and one that was not verified."""
    answers: dict[str, Any] = {"gpu_kubernetes_labels": {"changed": False, "labels": LABELS | BAD, "gpus": UUIDS}}
    failed = {"gpu_kubernetes_labels": {"failed": True, "msg": "not verified"}}
    hosts = {"n1": make_liar(tmp_path, "n1", answers), "n2": make_liar(tmp_path, "n2", failed)}
    hosts["n1"]["gpu_kubernetes_node"] = "node1.example.org"
    hosts["n1"]["gpu_kubernetes_taint"] = "NoSchedule"
    given = {"gpu_kubernetes": "render", "gpu_kubernetes_directory": str(tmp_path / "out"), **variables}
    done = run_playbook(tmp_path, "playbooks/kubernetes.yml", hosts, "-e", json.dumps(given))
    assert done.returncode == 2 and "not verified" in done.stdout, done.stdout + done.stderr
    assert "n1 failed" not in done.stdout, done.stdout
    assert "kubectl taint node node1.example.org nvidia.com/gpu=present:NoSchedule --overwrite" in done.stdout
    return {path.name: yaml_load(path.read_text()) for path in sorted((tmp_path / "out").iterdir())}


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("device_list", "sharing"),
    sampled(
        [("cdi-cri", "none"), ("envvar", "time-slicing"), ("volume-mounts", "mps"), ("cdi-annotations", "none")], 2
    ),
)
def test_the_manifests_are_valid(tmp_path: Path, device_list: str, sharing: str) -> None:
    files = rendered(tmp_path, gpu_kubernetes_device_list=device_list, gpu_kubernetes_sharing=sharing)
    assert ("device-plugin.yml" in files) == (sharing != "mps")
    (node,) = files["nodes.yml"]["items"]
    assert node["metadata"] == {"name": "node1.example.org", "labels": LABELS}
    config = yaml_load(files["device-plugin-config.yml"]["data"]["config.yaml"])
    key = {"none": None, "time-slicing": "timeSlicing", "mps": "mps"}[sharing]
    assert list(config.get("sharing", {})) == ([key] if key else [])
    if key:
        assert config["sharing"][key]["resources"] == [{"name": "nvidia.com/gpu", "replicas": 2}]
    assert config["flags"]["plugin"]["deviceListStrategy"] == [device_list]
    assert (
        files["gpu-operator-values.yml"]["driver"] == files["gpu-operator-values.yml"]["toolkit"] == {"enabled": False}
    )
    if importlib.util.find_spec("kubernetes_validate") is None:
        pytest.skip("the schemas (PyPI: kubernetes-validate) are not installed")
    import kubernetes_validate

    objects = [files[name] for name in files if name not in ("nodes.yml", "gpu-operator-values.yml")] + [node]
    for version in ("1.30", "1.37"):
        for one in objects:
            kubernetes_validate.validate(one, version, strict=True)


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"gpu_kubernetes": "helm"},
            "gpu_kubernetes is 'helm', but must be one of render, device_plugin, operator, none",
        ),
        ({"gpu_kubernetes": "device_plugin", "gpu_kubernetes_sharing": "mps"}, "mps needs a daemon of NVIDIA"),
        ({"gpu_kubernetes": "device_plugin"}, "no-kubectl: it is not on the host where it has to run. Install it"),
        *(
            pytest.param(
                {"gpu_kubernetes": way}, "no-kubectl: it is not on the host where it has to run", marks=pytest.mark.long
            )
            for way in ("operator", "none")
        ),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(
    tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    answers = {"gpu_kubernetes_labels": {"changed": False, "labels": LABELS, "gpus": UUIDS}}
    hosts = {"n1": make_liar(tmp_path, "n1", answers)}
    given |= {"gpu_kubernetes_directory": str(tmp_path / "out"), "gpu_kubernetes_kubectl": "no-kubectl"}
    done = run_playbook(tmp_path, "playbooks/kubernetes.yml", hosts, "-e", json.dumps(given))
    assert done.returncode != 0 and message in done.stdout + done.stderr, done.stdout + done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("verify", "state", "check"),
    [(True, "passed", False), (True, "failed", False), (True, "failed", True), (False, "", False)],
)
def test_test_pods_run_where_they_are_asked_for(tmp_path: Path, verify: bool, state: str, check: bool) -> None:
    """Under --check nothing was applied, so nothing that is found says anything of a node."""
    labels = {"gpu_kubernetes_labels": {"changed": False, "labels": LABELS, "gpus": UUIDS}}
    waits = {"changed": True, "nodes": {}, "done": False, "waiting": "1 pod", "deadline": 5.0, "remaining_s": 60}
    found = {"n1": {"state": state, "message": "2 GPUs computed"}}
    ends = {**waits, "nodes": found, "done": True, "waiting": ""}
    cluster = {
        "gpu_kubernetes_objects": {"changed": True, "objects": []},
        "gpu_kubernetes_verify": [waits, ends, {"changed": True}],
    }
    hosts = {"n1": make_liar(tmp_path, "n1", labels), "localhost": make_liar(tmp_path, "localhost", cluster)}
    given = {"gpu_kubernetes": "device_plugin", "gpu_kubernetes_verify": verify, "gpu_ready_hosts": "n1"}
    done = run_playbook(
        tmp_path,
        "playbooks/kubernetes.yml",
        hosts,
        "-e",
        json.dumps(given),
        *["--check"] * check,
        ANSIBLE_STDOUT_CALLBACK="default",
    )
    assert (done.returncode == 0) == (state != "failed" or check), done.stdout + done.stderr
    assert calls(tmp_path, "localhost") == ["gpu_kubernetes_objects", *["gpu_kubernetes_verify"] * 3 * verify]
    assert re.findall("waiting at most (.*)", done.stdout) == ["60 s more for 1 pod"] * verify
    assert ("2 GPUs computed" in done.stdout) == (verify and not check)


def use_cluster(directory: Path, way: str, **cluster: Any) -> str:
    """Run kubernetes.yml for two nodes with what the modules answer that run kubectl; return what it printed."""
    labels = {"gpu_kubernetes_labels": {"changed": False, "labels": LABELS, "gpus": UUIDS}}
    hosts = {name: make_liar(directory, name, labels) for name in ("n1", "n2")}
    hosts["n2"]["gpu_kubernetes_taint"] = "NoSchedule"
    hosts["localhost"] = make_liar(
        directory, "localhost", {f"gpu_kubernetes_{name}": one for name, one in cluster.items()}
    )
    given = {"gpu_kubernetes": way, "gpu_kubernetes_directory": str(directory / "out"), "gpu_ready_hosts": "n1,n2"}
    done = run_playbook(
        directory, "playbooks/kubernetes.yml", hosts, "-e", json.dumps(given), ANSIBLE_STDOUT_CALLBACK="default"
    )
    return done.stdout


@pytest.mark.host_io
def test_the_operator_refuses_the_nodes_whose_driver_is_too_old(tmp_path: Path) -> None:
    refused = {"n2": "its driver is too old"}
    shown = use_cluster(tmp_path, "operator", operator={"changed": False, "server": "v1.35.0", "refused": refused})
    assert re.findall(r"fatal: \[(\w+)\]", shown) == ["n2"] and "msg: its driver is too old" in shown, shown
    assert re.findall(r"(?m)^n[12] .* failed=(\d)", shown) == ["0", "1"], shown
    assert re.findall(r"kubectl taint node (\S+) (\S+)", shown) == [("n2", "nvidia.com/gpu=present:NoSchedule")]


@pytest.mark.host_io
@pytest.mark.parametrize("kept", [[], ["elsewhere", "there"]])
def test_a_removal_says_for_whom_objects_stay(tmp_path: Path, kept: list[str]) -> None:
    shown = use_cluster(tmp_path, "none", objects={"changed": True, "objects": [], "kept_for": kept})
    assert re.findall(r"(?m)^n[12] .* failed=(\d)", shown) == ["0", "0"], shown
    assert re.findall(r"stay for other nodes with its labels: ([^'\n]*)", shown) == [", ".join(kept)] * bool(kept), (
        shown
    )
