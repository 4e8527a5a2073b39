"""CDI specifications: ours and those of nvidia-ctk."""

import json

import pytest

from plugins.module_utils.gpu_ready.containers import cdi, cdi_build
from plugins.module_utils.gpu_ready.facts import docker as docker_facts
from plugins.module_utils.gpu_ready.facts.model import CdiSpecFacts
from tests.unit.recorded import RecordedHost

LIB = "/usr/lib/x86_64-linux-gnu"
BLOCK = """---
cdiVersion: 0.5.0
containerEdits:
  deviceNodes:
  - path: /dev/nvidiactl
  hooks:
  - args: [nvidia-cdi-hook, create-symlinks]
    hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
  mounts:
  - containerPath: /lib/x86_64-linux-gnu/libcuda.so.535.183.01
    hostPath: /lib/x86_64-linux-gnu/libcuda.so.535.183.01
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: "0"
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
      hostPath: /dev/nvidia0
  name: all
kind: nvidia.com/gpu
"""
FLOW = """cdiVersion: "0.5.0"
kind: "nvidia.com/gpu"
devices:
    - name: "0"
      containerEdits: {deviceNodes: [{path: /dev/nvidia0}]}
    - name: GPU-11111111-aaaa-bbbb-cccc-222222222222
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
containerEdits:
    mounts:
        - hostPath: /usr/lib64/libcuda.so.580.95.05
"""


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        (BLOCK, ("nvidia.com/gpu", ("0", "all"), ("/dev/nvidiactl", "/dev/nvidia0"),
                 ("/lib/x86_64-linux-gnu/libcuda.so.535.183.01", "/dev/nvidia0"), ("535.183.01",), "0.5.0")),
        (FLOW, ("nvidia.com/gpu", ("0", "GPU-11111111-aaaa-bbbb-cccc-222222222222"), ("/dev/nvidia0",),
                ("/usr/lib64/libcuda.so.580.95.05",), ("580.95.05",), "0.5.0")),
        ("", None), ("garbage: {", None), ('{"kind": 1}', None), ("kind: vendor.com/x\n", ("vendor.com/x", (), (), (), (), None)),
    ],
)  # fmt: skip
def test_read(text: str, spec: "tuple[object, ...] | None") -> None:
    assert cdi.parse_spec(text) == spec


def host_with_driver(version: str = "535.183.01", **more: str) -> RecordedHost:
    """A Debian host: the driver's libraries behind two alternatives."""
    current = f"{LIB}/nvidia/current"
    files = {
        f"{current}/libcuda.so.{version}": "", f"{current}/libnvidia-ml.so.{version}": "",
        f"{current}/libnvidia-eglcore.so.{version}": "", f"{LIB}/libnvidia-gpucomp.so.{version}": "",
        f"{LIB}/libcuda.so.470.1.2": "", "/usr/lib/nvidia/current/nvidia-smi": "", "/dev/nvidia0": "", "/dev/nvidia1": "",
        "/dev/nvidiactl": "", "/dev/nvidia-uvm": "",
        "/proc/driver/nvidia/gpus/0000:81:00.0/information": "Device Minor: \t 0\nGPU UUID: \t GPU-????????-????\n",
        "/proc/driver/nvidia/gpus/0000:03:00.0/information": "GPU UUID: \t GPU-00aa11bb-0000-1111-2222-333344445555\nDevice Minor: 1\n",
        **more,
    }  # fmt: skip
    links = {
        f"{current}/libcuda.so.1": f"libcuda.so.{version}", f"{LIB}/libcuda.so.1": "/etc/alternatives/glx--libcuda.so.1",
        "/etc/alternatives/glx--libcuda.so.1": f"{current}/libcuda.so.1",
        f"{LIB}/libnvidia-ml.so.1": f"{current}/libnvidia-ml.so.{version}",
        "/usr/bin/nvidia-smi": "/etc/alternatives/nvidia--nvidia-smi",
        "/etc/alternatives/nvidia--nvidia-smi": "/usr/lib/nvidia/current/nvidia-smi",
    }  # fmt: skip
    return RecordedHost(files=files, links=links)


def test_our_own_specification_mounts_each_file_under_every_name_a_program_asks_for() -> None:
    host = host_with_driver()
    spec = json.loads(cdi_build.build_spec(docker_facts.driver_files(host), docker_facts.gpu_list(host)))
    mounts = {mount["containerPath"]: mount["hostPath"] for mount in spec["containerEdits"]["mounts"]}
    assert mounts == {
        "/usr/bin/nvidia-smi": "/usr/lib/nvidia/current/nvidia-smi",
        **{
            f"{directory}/{name}": f"{LIB}/{place}{real}.535.183.01"
            for directory in (LIB, "/usr/lib64")
            for name, place, real in (
                ("libcuda.so.1", "nvidia/current/", "libcuda.so"),
                ("libcuda.so.535.183.01", "nvidia/current/", "libcuda.so"),
                ("libnvidia-ml.so.1", "nvidia/current/", "libnvidia-ml.so"),
                ("libnvidia-ml.so.535.183.01", "nvidia/current/", "libnvidia-ml.so"),
                ("libnvidia-gpucomp.so.535.183.01", "", "libnvidia-gpucomp.so"),
            )
        },
    }
    nodes = {device["name"]: [n["path"] for n in device["containerEdits"]["deviceNodes"]] for device in spec["devices"]}
    assert nodes == {
        "0": ["/dev/nvidia1"],
        "GPU-00aa11bb-0000-1111-2222-333344445555": ["/dev/nvidia1"],
        "1": ["/dev/nvidia0"],
        "all": ["/dev/nvidia1", "/dev/nvidia0"],
    }
    assert [node["path"] for node in spec["containerEdits"]["deviceNodes"]] == ["/dev/nvidiactl", "/dev/nvidia-uvm"]


def specifications(host: RecordedHost) -> list[CdiSpecFacts]:
    _, runtime = docker_facts.collect(host)
    return runtime.specs


def test_our_own_specification_fits_the_host_it_was_made_on() -> None:
    host = host_with_driver()
    host.files[cdi.NATIVE] = cdi_build.build_spec(docker_facts.driver_files(host), docker_facts.gpu_list(host))
    (found,) = specifications(host)
    assert (found.ours, found.stale) == (True, None)
    host.files["/dev/nvidia2"] = ""
    assert specifications(host)[0].stale == "/dev/nvidia2 is not in it"


def test_a_specification_of_another_driver_is_stale() -> None:
    host = host_with_driver("580.95.05", **{"/etc/cdi/nvidia.yaml": BLOCK})
    (found,) = specifications(host)
    assert found.stale == "it is for driver 535.183.01, the host has 580.95.05"


def test_an_empty_host_has_nothing_to_build_from() -> None:
    assert docker_facts.driver_files(RecordedHost()) == (None, (), {}, ())
    assert docker_facts.gpu_list(RecordedHost()) == []
