#!/usr/bin/python
"""Verify that a host is a GPU node, and record the outcome."""

DOCUMENTATION = r"""
---
module: gpu_verify
short_description: Verify that a host is a GPU node
description:
  - Collects facts again, and queries NVML on the host and in a container. The control node compares GPU by GPU.
  - Fails with one message for each failed check. The outcome is recorded in C(/var/lib/gpu-ready/verified.json).
options:
  expect:
    description: What the plan expects. The parameter C(expect) of its step C(gpu_verify.verify).
    type: dict
    default: {}
  digest:
    description: Digest of the desired state that a successful verification confirms.
    type: str
    default: ""
  image:
    description:
      - Image of the container that runs nvidia-smi. It needs no NVIDIA software.
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
    description: V(all), or indices and UUIDs of the GPUs for the container, separated by commas.
    type: str
    default: all
  compute:
    description:
      - Run a small CUDA test on every GPU, on the host and in the container.
      - In an image without C(python3) the test is skipped.
    type: bool
    default: true
  framework:
    description: Framework that must see the GPUs in a container of its own.
    type: str
    choices: [none, tensorflow, pytorch]
    default: none
  probes:
    description: What the host has to look for, given by the control node.
    type: dict
    default: {}
  framework_image:
    description: Image of that framework; empty for the project's own, which is several gigabytes large.
    type: str
    default: ""
  timeout:
    description: Seconds after which the container is removed, including the pull of its image.
    type: int
    default: 300
attributes:
  check_mode:
    description: Starts no container and writes nothing.
    support: full
  diff_mode:
    description: It changes nothing but its record.
    support: none
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Verify what the plan expects
  gpu_ready.nodes.gpu_verify:
    expect: "{{ gpu_plan_result.todo['gpu_verify.verify'].expect }}"
    digest: "{{ gpu_plan_result.todo['gpu_verify.verify'].digest }}"

- name: Verify with an image of the site
  gpu_ready.nodes.gpu_verify:
    image: registry.site/ubuntu:24.04
    timeout: 600

- name: Verify that PyTorch sees the first two GPUs, without the compute check
  gpu_ready.nodes.gpu_verify:
    devices: "0,1"
    compute: false
    framework: pytorch

- name: Verify with a tarball that is on the host already
  gpu_ready.nodes.gpu_verify:
    image: gpu-ready/verify:site
    archive: /srv/images/ubuntu.tar
"""

RETURN = r"""
verify:
  description: The checks and what they found.
  returned: always
  type: dict
  contains:
    ok:
      description: True if no check failed.
      type: bool
    checks:
      description: Every check; RV(verify.checks[].ok) is null for one that was not run.
      type: list
      elements: dict
    nvml:
      description: NVML's answer on the host.
      type: dict
    container:
      description: nvidia-smi's answer in the container, null if none was started.
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
  description: Columns of the report that the verification updates.
  returned: when not in check mode
  type: dict
  sample: {"driver_loaded": "580.178.04", "verified": "2026-11-21T02:12:00Z"}
"""

import os

from ..module_utils.gpu_ready.answers.verify import CollectedVerification
from ..module_utils.gpu_ready.base import records
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.check import reading, worker
from ..module_utils.gpu_ready.facts import collect as facts_collect
from ..module_utils.gpu_ready.facts import model
from ..module_utils.gpu_ready.facts.probes import Probes
from ..module_utils.gpu_ready.verify import collect, nvml
from ..module_utils.gpu_ready.verify import container as verify_container
from ..module_utils.gpu_ready.verify.expectation import VerifyExpectation

ANSWER = CollectedVerification
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
    "probes": {"type": "dict", "default": {}},
}


def run(host, params, check):
    image = verify_container.image_name(params["image"], params["archive"])
    expect = records.from_json(VerifyExpectation, params["expect"])
    if params["archive"]:
        for engine in expect.engine_names:
            verify_container.load_image(host, params["archive"], image, engine=engine)
        if params["remove_archive"] and os.path.exists(params["archive"]):
            os.unlink(params["archive"])
    names = ("devices", "timeout", "compute", "framework", "framework_image")
    options = collect.VerifyOptions(image, **{name: params[name] for name in names})
    facts = facts_collect.collect(host, records.from_json(Probes, params["probes"]))
    evidence = collect.collect(host, facts, expect, options)
    answer = worker.Worker(limit=nvml.TIMEOUT, metrics=False).sample()
    evidence = evidence._replace(health=reading.read_answer(answer))
    return CollectedVerification(model.to_json(facts), records.to_json(evidence), changed=True)


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
