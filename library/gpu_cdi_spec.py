#!/usr/bin/python
"""Write a CDI specification of the host's NVIDIA GPUs."""

DOCUMENTATION = r"""
module: gpu_cdi_spec
short_description: Write a CDI specification of the host's NVIDIA GPUs
description:
  - With O(generator=native) it is built from the host's device nodes and driver files; no NVIDIA program is needed when
    a container starts. Devices are named by index, by UUID if known, and V(all).
  - With O(generator=nvidia-ctk), C(nvidia-ctk cdi generate) of the NVIDIA container toolkit writes it.
options:
  path:
    description: The file.
    type: path
    required: true
  unrefreshed:
    description:
      - File used instead of O(path) if no C(nvidia-cdi-refresh) service writes O(path) at boot, since C(/var/run) does
        not survive a reboot. Empty if that is known already.
    type: path
    default: ""
  generator:
    description: What generates it.
    type: str
    choices: [native, nvidia-ctk]
    default: native
  feature_flags:
    description:
      - Feature flags of C(nvidia-ctk cdi generate), such as V(no-additional-gids-for-device-nodes) for engines without
        CDI 0.7.0. Versions that do not support a flag ignore it.
    type: list
    elements: str
    default: []
  remove:
    description: Specifications of the same devices to remove; docker refuses devices that two files define.
    type: list
    elements: path
    default: []
attributes:
  check_mode: {support: full, description: Reports whether the file would change; writes nothing.}
  diff_mode: {support: full, description: Shows the file before and after.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Write a specification from device nodes and driver files
  gpu_ready.nodes.gpu_cdi_spec:
    path: /etc/cdi/gpu-ready.json

- name: Write a specification with the toolkit
  gpu_ready.nodes.gpu_cdi_spec:
    path: /etc/cdi/nvidia.yaml
    generator: nvidia-ctk
    remove: [/etc/cdi/gpu-ready.json]

- name: Show what would change after a driver update
  gpu_ready.nodes.gpu_cdi_spec:
    path: /etc/cdi/gpu-ready.json
  check_mode: true
  diff: true
"""

RETURN = r"""
devices:
  description: Names of the devices in the specification.
  returned: always
  type: list
  elements: str
  sample: ["0", "GPU-6ab8d1bc-2c1a-4f0e-9d0f-9a86b5a3a2f1", all]
"""

import os
import re
import tempfile

from ..module_utils.gpu_ready.answers.containers import CdiSpecAnswer
from ..module_utils.gpu_ready.base import files, manifest_notes, work_directories
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..module_utils.gpu_ready.containers import cdi, cdi_build
from ..module_utils.gpu_ready.driver.libraries import multiarch_directory
from ..module_utils.gpu_ready.facts import docker as look

ANSWER = CdiSpecAnswer
ARGUMENT_SPEC = {
    "path": {"type": "path", "required": True},
    "unrefreshed": {"type": "path", "default": ""},
    "generator": {"type": "str", "choices": ["native", "nvidia-ctk"], "default": "native"},
    "feature_flags": {"type": "list", "elements": "str", "default": []},
    "remove": {"type": "list", "elements": "path", "default": []},
}


class CdiSpecError(GpuReadyError):
    """There is no GPU or no driver, or the generator failed."""

    def __init__(self, text):
        super().__init__("the CDI specification cannot be written: %s" % text)


def build_native(host, create_nodes):
    """Build our own specification; ``create_nodes``: create missing device nodes first, with nvidia-modprobe."""
    if create_nodes and not host.exists("/dev/nvidia-uvm") and host.which("nvidia-modprobe"):
        # CUDA needs this node, and the kernel does not create it.
        host.run([host.which("nvidia-modprobe"), "-c", "0", "-u"], timeout=60.0)
    driver = look.driver_files(host)
    if driver.version is None:
        raise CdiSpecError("libnvidia-ml.so.1 and libcuda.so.1 are missing. Install the driver first")
    gpus = look.gpu_list(host)
    if not gpus:
        raise CdiSpecError("/dev/nvidia0 does not exist. Load the driver first (modprobe nvidia; nvidia-smi)")
    if any(gpu.uuid is None for gpu in gpus) and host.which("nvidia-smi"):
        # /proc/driver/nvidia shows question marks until a program opens the GPU.
        names = parse_uuids(host.run([host.which("nvidia-smi"), "-L"], timeout=60.0).out)
        gpus = [gpu._replace(uuid=gpu.uuid or names.get(gpu.number)) for gpu in gpus]
    return cdi_build.build_spec(driver, gpus, multiarch_directory(host.uname()[1]))


def parse_uuids(text):
    """UUIDs by index in the output of ``nvidia-smi -L``."""
    return {
        int(number): uuid
        for number, uuid in re.findall(r"^GPU (\d+):.*\(UUID: (GPU-[0-9a-fA-F-]+)\)", text, re.MULTILINE)
    }


def run_nvidia_ctk(host, flags):
    program = host.which("nvidia-ctk")
    if program is None:
        raise CdiSpecError("nvidia-ctk is not installed. Install nvidia-container-toolkit, or use mode native")
    # The variable, not the option: versions before 1.17 fail on an unknown option.
    env = {cdi.FEATURES: ",".join(flags)} if flags else None
    directory = tempfile.mkdtemp(prefix="gpu-ready-cdi-", dir=work_directories.SMALL_FILES)
    path = os.path.join(directory, "nvidia.yaml")
    try:
        answer = host.run([program, "cdi", "generate", "--output=" + path], timeout=120.0, env=env)
        text = host.read(path)
    finally:
        if os.path.exists(path):
            os.unlink(path)
        os.rmdir(directory)
    if answer.rc != 0 or not text:
        raise CdiSpecError(
            "nvidia-ctk cdi generate failed: %s" % ((answer.err or answer.out).strip()[-400:] or answer.rc)
        )
    return text


def run(host, params, check):
    path = params["path"]
    if params["unrefreshed"] and not look.has_refresh_service(host):
        path = params["unrefreshed"]
    before = host.read_bytes(path)
    removed = [name for name in params["remove"] if name != path and os.path.lexists(name)]
    if params["generator"] == "native":
        after = build_native(host, not check)
    else:
        after = run_nvidia_ctk(host, params["feature_flags"])
    changed = before != after.encode("utf-8") or bool(removed)
    if changed and not check:
        contents = {path: after.encode("utf-8")}
        contents.update(dict.fromkeys(removed))
        manifest_notes.note_files(host, contents, generated=True)
        manifest_notes.make_parents(path)
        files.write_atomic(path, after.encode("utf-8"))
        for name in removed:
            os.unlink(name)
    spec = cdi.parse_spec(after)
    old = "" if before is None else before.decode("utf-8", "replace")
    return CdiSpecAnswer(
        changed=changed,
        devices=list(spec.devices) if spec else [],
        diff={"before_header": path, "after_header": path, "before": old, "after": after},
    )


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
