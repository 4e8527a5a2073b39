#!/usr/bin/python
"""Prove that a host is a GPU node, and keep the record."""

DOCUMENTATION = r"""
---
module: gpu_verify
short_description: Prove that a host is a GPU node
description:
  - Looks at the host again, asks NVML and a container, and compares GPU by GPU.
  - Fails with one sentence for each thing that is wrong. The outcome is kept in C(/var/lib/gpu-ready/verified.json).
options:
  expect:
    description: What the plan promised. The parameters of its step C(gpu_verify.verify).
    type: dict
    default: {}
  digest:
    description: Fingerprint of the wanted state that this verification proves.
    type: str
    default: ""
  image:
    description:
      - Image of the container that asks nvidia-smi. It needs no NVIDIA software inside.
      - Empty means C(ubuntu:24.04), or with O(archive) a name made of its checksum.
    type: str
    default: ""
  archive:
    description: Image tarball on this host, loaded into each engine as O(image) where that is missing.
    type: path
    default: ""
  remove_archive:
    description: Remove O(archive) once it is loaded.
    type: bool
    default: false
  devices:
    description: V(all), or indices and UUIDs of the GPUs that the container is given, separated by commas.
    type: str
    default: all
  compute:
    description:
      - Whether every GPU has to run a small kernel through libcuda, on the host and in the container.
      - The container's image needs C(python3) for it; without, the check says that it was skipped.
    type: bool
    default: true
  framework:
    description: Framework that has to see the GPUs in a container of its own.
    type: str
    choices: [none, tensorflow, pytorch]
    default: none
  framework_image:
    description: Image of that framework; empty for the one of its own project, which is gigabytes large.
    type: str
    default: ""
  timeout:
    description: Seconds after which the container is given up and removed; pulling the image may be part of it.
    type: int
    default: 300
attributes:
  check_mode:
    description: Starts no container and writes nothing; says what it would do.
    support: full
  diff_mode:
    description: Nothing to show.
    support: none
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Prove what the plan promised
  gpu_verify:
    expect: "{{ gpu_plan_result.todo['gpu_verify.verify'].expect }}"
    digest: "{{ gpu_plan_result.todo['gpu_verify.verify'].digest }}"

- name: Prove with an image of the site
  gpu_verify:
    image: registry.site/ubuntu:24.04
    timeout: 600

- name: Prove that PyTorch sees the first two GPUs, without the compute check
  gpu_verify:
    devices: "0,1"
    compute: false
    framework: pytorch

- name: Prove with a tarball that is on the host already
  gpu_verify:
    image: gpu-ready/verify:site
    archive: /srv/images/ubuntu.tar
"""

RETURN = r"""
verify:
  description: What was seen and judged.
  returned: always
  type: dict
  contains:
    ok:
      description: Whether nothing is red.
      type: bool
    checks:
      description: Every check with RV(verify.checks[].ok) true, false, or null where it was not run.
      type: list
      elements: dict
    nvml:
      description: What NVML said on the host.
      type: dict
    container:
      description: What nvidia-smi said in the container, null where none was started.
      type: dict
    not_run:
      description: Names of the checks that were not run.
      type: list
      elements: str
  sample:
    ok: true
    checks: [{"name": "gpus_in_container", "ok": true, "expected": "2 GPUs", "found": "2 GPUs"}]
    not_run: [compute_in_container]
row:
  description: Columns of the report that are known better now than when the plan was made.
  returned: when not in check mode
  type: dict
  sample: {"driver_loaded": "580.178.04", "verified": "2026-11-21T02:12:00Z"}
"""

import json
import os

from ansible.module_utils.gpu_ready.base.errors import GpuReadyError
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.verify import container as verify_container
from ansible.module_utils.gpu_ready.verify import devices as verify_devices
from ansible.module_utils.gpu_ready.verify import run as verify

ARGUMENT_SPEC = {
    "expect": {"type": "dict", "default": {}},
    "digest": {"type": "str", "default": ""},
    "image": {"type": "str", "default": ""},
    "archive": {"type": "path", "default": ""},
    "remove_archive": {"type": "bool", "default": False},
    "devices": {"type": "str", "default": "all"},
    "compute": {"type": "bool", "default": True},
    "framework": {"type": "str", "default": "none", "choices": ["none", "tensorflow", "pytorch"]},
    "framework_image": {"type": "str", "default": ""},
    "timeout": {"type": "int", "default": 300},
}


def run(host, params, check):
    if check:
        source = params["image"] or params["archive"] or verify_container.IMAGE
        message = "would start a container of %s, compare its GPUs with the host's and keep the record" % source
        return {"changed": True, "msg": message, "verify": {"ok": None, "checks": [], "not_run": ["all"]}}
    image = verify_container.image_name(params["image"], params["archive"])
    if params["archive"]:
        for engine in verify_devices.engine_names(params["expect"]):
            verify_container.load_image(host, params["archive"], image, engine=engine)
        if params["remove_archive"] and os.path.exists(params["archive"]):
            os.unlink(params["archive"])
    ways = ("devices", "timeout", "compute", "framework", "framework_image")
    how = verify.Wish(image, **{name: params[name] for name in ways})
    proof = verify.prove(host, params["expect"], params["digest"], how)
    verify.keep(proof.record)
    answer = json.loads(json.dumps({"verify": verify.summary(proof), "row": verify.row(proof)}))
    if not proof.verdict.ok:
        reasons = " ".join(s + "." for s in proof.record["reasons"])
        raise GpuReadyError("Not verified. " + reasons, changed=True, **answer)
    return dict(answer, changed=True, msg="verified")


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
