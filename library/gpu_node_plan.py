#!/usr/bin/python
# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Look at a GPU host and decide what has to be done."""

DOCUMENTATION = r"""
module: gpu_node_plan
short_description: Look at a GPU host and decide what has to be done
description:
  - The look of M(gpu_node_facts) and a pure decision over it, in one call. Changes nothing.
  - An option that is not given has the default of the role that it belongs to.
  - Values are checked by the module itself, so that all wrong ones are named at once.
options:
  cuda_toolkit_default:
    description: "The toolkit that /usr/local/cuda points to; empty for the newest of them."
    type: str
  cuda_toolkit_profile:
    description: "What PATH and LD_LIBRARY_PATH of login shells lead to: V(default), a version, or V(none)."
    type: str
  cuda_toolkit_remove:
    description: "Toolkits to take away; the others stay as they are."
    type: list
    elements: str
  cuda_toolkit_runfiles:
    description: "Installers by version, URL or path on the control machine, or a mapping of file and sha256."
    type: dict
  cuda_toolkit_source:
    description: "Where CUDA toolkits come from; V(none) installs none."
    type: str
    choices: [repo, runfile, none]
  cuda_toolkit_versions:
    description: "CUDA toolkits to have side by side; empty for the newest that driver and GPUs allow."
    type: list
    elements: str
  cudnn_archive:
    description: "URL of an archive, or its path on the control machine; empty for NVIDIA's own server."
    type: str
  cudnn_archive_sha256:
    description: "Checksum of that archive."
    type: str
  cudnn_source:
    description: "Where cuDNN comes from; V(none) installs none."
    type: str
    choices: [archive, package, none]
  cudnn_toolkits:
    description: "Toolkits that get cuDNN; empty for all of them."
    type: list
    elements: str
  cudnn_version:
    description: "cuDNN version; empty for the newest that fits each toolkit."
    type: str
  docker_engine_cgroup_driver:
    description: "Cgroup driver, V(systemd) or V(cgroupfs); empty leaves it alone."
    type: str
  docker_engine_daemon_options:
    description: "Keys to merge into daemon.json."
    type: dict
  docker_engine_log_driver:
    description: "Log driver of containers; empty leaves it alone."
    type: str
  docker_engine_log_options:
    description: "Options of the log driver, merged."
    type: dict
  docker_engine_replace_conflicting:
    description: "Whether packages that conflict with the wanted ones may be removed."
    type: bool
  docker_engine_restart_ok:
    description: "Whether docker may be restarted while containers that use a GPU run."
    type: bool
  docker_engine_source:
    description: "Where the docker engine comes from; V(none) expects it to be there."
    type: str
    choices: [auto, distro, docker_ce, none]
  docker_engine_version:
    description: "Version of the engine, whole or its beginning; empty for the newest, and for whichever is there."
    type: str
  gpu_ready_activation:
    description: "How a new driver comes into use."
    type: str
    choices: [auto, reload, reboot, none]
  gpu_ready_mirror:
    description: "Base URL of a site mirror that replaces every upstream."
    type: str
  gpu_ready_mirror_keys:
    description: "Fingerprints by repository id, for a mirror that signs repositories anew."
    type: dict
  gpu_ready_reboot_ok:
    description: "Whether the playbook may reboot the host."
    type: bool
  gpu_ready_treat_as:
    description: "Name of the distribution of the catalog to treat the host as."
    type: str
  gpu_ready_vault:
    description: "Whether archives of ended releases may be used for kernel headers."
    type: bool
  gpu_verify_compute:
    description: "Whether every GPU has to run a small kernel, on the host and in the container."
    type: bool
  gpu_verify_devices:
    description: "GPUs that the proof uses, V(all) or a list of indices or UUIDs."
    type: raw
  gpu_verify_framework:
    description: "Framework that has to see the GPUs in a container of its own."
    type: str
    choices: [none, tensorflow, pytorch]
  gpu_verify_framework_image:
    description: "Image of that framework; empty for its own project's image."
    type: str
  gpu_verify_image:
    description: "Image, or path of an image archive, for the proof in a container."
    type: str
  nvidia_container_runtime_default:
    description: "Make nvidia docker's default runtime."
    type: bool
  nvidia_container_runtime_engines:
    description: "Engines that are given the GPUs - V(docker), V(podman), V(containerd)."
    type: list
    elements: str
  nvidia_container_runtime_migrate:
    description: "Whether nvidia-docker2 or nvidia-docker 1.0 may be replaced."
    type: bool
  nvidia_container_runtime_mode:
    description: "How containers get at the GPUs."
    type: str
    choices: [toolkit, cdi, native]
  nvidia_driver_branch:
    description: "Driver branch such as V(580); empty for the catalog's choice by GPU."
    type: str
  nvidia_driver_flavour:
    description: "Flavour of the kernel module."
    type: str
    choices: [auto, open, proprietary]
  nvidia_driver_hold:
    description: "Hold the driver's packages against unattended upgrades."
    type: bool
  nvidia_driver_kernel_modules:
    description: "Kernel modules compiled on the host, or packages for the running kernel."
    type: str
    choices: [auto, dkms, precompiled]
  nvidia_driver_profile:
    description: "Without or with the display parts of the driver."
    type: str
    choices: [compute, full]
  nvidia_driver_replace_foreign:
    description: "Replace a driver of another origin instead of refusing."
    type: bool
  nvidia_driver_runfile:
    description: "URL of NVIDIA's installer, or its path on the control machine; empty for NVIDIA's own server."
    type: str
  nvidia_driver_runfile_sha256:
    description: "Checksum of that file; empty for the one that NVIDIA publishes beside it."
    type: str
  nvidia_driver_source:
    description: "Where the driver comes from; V(none) leaves it alone."
    type: str
    choices: [auto, distro, cuda_repo, elrepo, runfile, none]
  nvidia_driver_version:
    description: "Exact driver version such as V(580.178.04); empty for the newest of the branch."
    type: str
attributes:
  check_mode:
    description: Gives the same plan; RV(changed) then says whether the real run would change something.
    support: full
  diff_mode:
    description: Shows the steps and the files they write.
    support: full
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Look and decide with everything left to the catalog
  gpu_node_plan:
  register: gpu_plan_result

- name: Stay on the long-term branch and on packages of NVIDIA's repository
  gpu_node_plan:
    nvidia_driver_source: cuda_repo
    nvidia_driver_branch: "580"
  register: gpu_plan_result

- name: Only ask whether this host is as it should be
  gpu_node_plan:
    nvidia_driver_source: none
  check_mode: true
  register: gpu_plan_result
"""

RETURN = r"""
plan:
  description: The decision - summary, choice, steps with reason and disruption, refusals, warnings.
  returned: always
  type: dict
  sample: {"gpu_host": true, "converged": true, "summary": "2x Tesla P40: ready and verified", "steps": []}
todo:
  description: The parameters of each step by its id; empty when nothing is to be done or may be done.
  returned: always
  type: dict
  sample: {"kernel_headers.install": {"packages": ["linux-headers-6.1.0-50-amd64"], "kernel": "6.1.0-50-amd64"}}
proof:
  description: The parameters of C(gpu_verify.verify), also where no proof is due; null where no driver is wanted.
  returned: always
  type: dict
  sample: {"expect": {"driver": {"branch": 595}, "gpus": ["0000:01:00.0"]}, "digest": "e3b0c442"}
row:
  description: The host's line of the report.
  returned: always
  type: dict
  sample: {"gpus": "2x Tesla P40", "driver_wanted": "535", "driver_loaded": "535.261.03"}
lines:
  description: The plan for a person, one line a step or warning.
  returned: always
  type: list
  elements: str
  sample: ["nvidia_driver.activate: no NVIDIA module is loaded"]
upgrade:
  description: What an upgrade of the driver would do with this host - state, versions, live or reboot, way back.
  returned: always
  type: dict
  sample: {"state": "due", "from": "580.95.05", "to": "595", "way": "live"}
refusal:
  description: All refusals with their remedies as one text, empty when there is none.
  returned: always
  type: str
  sample: ""
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.gpu_ready.base.host import Host
from ansible.module_utils.gpu_ready.lifecycle import decide, variables

ARGUMENT_SPEC = {name: {"type": "raw"} for name in variables.VARIABLES}


def main():
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    answer = decide.host(Host(), module.params)
    module.exit_json(changed=module.check_mode and bool(answer["todo"]), **answer)


if __name__ == "__main__":
    main()
