#!/usr/bin/python
"""Link the driver's files under a stable path, for containers of engines without CDI."""

DOCUMENTATION = r"""
module: gpu_driver_volume
short_description: Link the installed NVIDIA driver's files for containers under a stable path
description:
  - Creates C(/usr/local/nvidia-driver/VERSION) with the driver's libraries (C(lib64)) and programs (C(bin)), points
    C(/usr/local/nvidia-driver/current) to it and removes the directories of earlier drivers. Files are hard links if
    the file system allows, else copies.
options:
  path:
    description: The directory.
    type: path
    default: /usr/local/nvidia-driver
attributes:
  check_mode: {support: full, description: Reports whether the directory would change; writes nothing.}
  diff_mode: {support: full, description: "Shows why the directory changes, and its driver version afterwards."}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Create the volume, or update it for the installed driver
  gpu_ready.nodes.gpu_driver_volume:

- name: Check whether it matches the installed driver
  gpu_ready.nodes.gpu_driver_volume:
  check_mode: true
  register: volume

- name: Give a container a GPU by hand
  ansible.builtin.command: >-
    docker run --rm --device /dev/nvidiactl --device /dev/nvidia-uvm --device /dev/nvidia0
    --volume /usr/local/nvidia-driver/current:/usr/local/nvidia:ro
    nvidia/cuda:12.9.1-base-ubuntu24.04 nvidia-smi
  changed_when: false
"""

RETURN = r"""
version:
  description: Driver version of the volume.
  returned: always
  type: str
  sample: 580.95.05
files:
  description: Its files and links, by their path in the volume.
  returned: always
  type: list
  elements: str
  sample: [bin/nvidia-smi, lib64/libcuda.so.1, lib64/libcuda.so.580.95.05]
"""

from ..module_utils.gpu_ready.answers.containers import DriverVolumeAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..module_utils.gpu_ready.containers import driver_volume, driver_volume_files
from ..module_utils.gpu_ready.facts import docker as look

ANSWER = DriverVolumeAnswer
ARGUMENT_SPEC = {"path": {"type": "path", "default": driver_volume.ROOT}}


def run(host, params, check):
    path = params["path"]
    layout = driver_volume.plan_layout(look.driver_files(host))
    if layout is None:
        raise GpuReadyError(
            "%s cannot be created: libnvidia-ml.so.1 and libcuda.so.1 are missing. Install the driver first." % path
        )
    why = look.volume_stale(host, layout, path)
    if why and not check:
        driver_volume_files.create_volume(layout, path)
    return DriverVolumeAnswer(
        changed=bool(why),
        version=layout.version,
        files=sorted(list(layout.files) + list(layout.links)),
        diff={
            "before_header": path,
            "after_header": path,
            "before": "%s\n" % why if why else "",
            "after": "driver %s\n" % layout.version if why else "",
        },
    )


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
