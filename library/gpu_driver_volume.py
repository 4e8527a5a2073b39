#!/usr/bin/python
"""Put the driver's files under a stable path, for containers of engines without CDI."""

DOCUMENTATION = r"""
module: gpu_driver_volume
short_description: Put the installed NVIDIA driver's files for containers under a stable path
description:
  - Makes C(/usr/local/nvidia-driver/VERSION) with the driver's libraries (C(lib64)) and programs (C(bin)), leads
    C(/usr/local/nvidia-driver/current) to it and removes the folders of earlier drivers. Files are hard links where
    the file system allows, else copies.
options:
  path:
    description: The folder.
    type: path
    default: /usr/local/nvidia-driver
attributes:
  check_mode: {support: full, description: Says whether the folder would change; writes nothing.}
  diff_mode: {support: full, description: Shows why the folder changes, and the driver it holds afterwards.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Make the volume, or bring it to the driver that is installed now
  gpu_driver_volume:

- name: See whether it is that of the installed driver
  gpu_driver_volume:
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
  description: Version of the driver that the volume holds.
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

from ansible.module_utils.gpu_ready.base.errors import GpuReadyError
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.containers import driver_volume, driver_volume_files
from ansible.module_utils.gpu_ready.facts import docker as look

ARGUMENT_SPEC = {"path": {"type": "path", "default": driver_volume.ROOT}}


def run(host, params, check):
    path = params["path"]
    layout = driver_volume.layout(look.driver_files(host))
    if layout is None:
        raise GpuReadyError(
            "%s cannot be filled: libnvidia-ml.so.1 and libcuda.so.1 are not on this host: install the driver." % path
        )
    why = look.volume_stale(host, layout, path)
    if why and not check:
        driver_volume_files.make(layout, path)
    return {
        "changed": bool(why),
        "version": layout.version,
        "files": sorted(list(layout.files) + list(layout.links)),
        "diff": {
            "before_header": path,
            "after_header": path,
            "before": "%s\n" % why if why else "",
            "after": "it holds driver %s\n" % layout.version if why else "",
        },
    }


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
