#!/usr/bin/python
# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Collect the facts of a GPU host; the action plugin of the same name plans it on the control node."""

DOCUMENTATION = r"""
module: gpu_node_plan
short_description: Collect the facts of a GPU host and plan it
description:
  - Collects the facts of M(gpu_node_facts) in one call, and computes the plan on the control node. Changes nothing.
  - An option that is not set has the value of the host's variable of this name.
  - All values are validated before the host is asked, and all wrong values are reported at once.
options:
  # BEGIN variables: generated from catalog/variables by `make catalog`
  cuda_toolkit_default:
    description: "The toolkit that V(/usr/local/cuda) points to. Empty: the newest of V(cuda_toolkit_versions)."
    type: str
    default: ""
  cuda_toolkit_profile:
    description: >-
      The toolkit in PATH and LD_LIBRARY_PATH of login shells: V(default) (follows V(/usr/local/cuda)), a version,
      or V(none) for no V(/etc/profile.d/cuda.sh).
    type: str
    default: default
  cuda_toolkit_remove:
    description: Toolkits to remove, also with source V(none). Other toolkits are kept.
    type: list
    elements: str
    default: []
  cuda_toolkit_runfiles:
    description: >-
      Installers for source V(runfile) by version: a URL, a path on the control node, or a mapping of V(file) and
      V(sha256). A version without an entry is downloaded from NVIDIA's server and checked against NVIDIA's
      checksum.
    type: dict
    default: {}
  cuda_toolkit_source:
    description: Where CUDA toolkits come from.
    type: str
    default: repo
    choices: [repo, runfile, none]
  cuda_toolkit_versions:
    description: >-
      CUDA toolkits to install side by side. V(12.9) is any release of 12.9, V(12.9.1) exactly that one. Empty:
      the newest toolkit that the driver and the oldest GPU of the host support.
    type: list
    elements: str
    default: []
  cudnn_archive:
    description: >-
      URL of a cuDNN archive, or its path on the control node (V(.tar.xz), or V(.tgz) for old releases). Empty:
      NVIDIA's own server.
    type: str
    default: ""
  cudnn_archive_sha256:
    description: SHA-256 checksum of that archive. Required for a URL.
    type: str
    default: ""
  cudnn_source:
    description: Where cuDNN comes from. A cuDNN that gpu-ready installed from the other source is removed.
    type: str
    default: archive
    choices: [archive, package, none]
  cudnn_toolkits:
    description: >-
      CUDA toolkits that get cuDNN; it is removed from the others where gpu-ready installed it. Empty: all
      toolkits of the host, also those that were installed before.
    type: list
    elements: str
    default: []
  cudnn_version:
    description: >-
      The cuDNN version; V(9.10.2) is the build of it that the catalog has. Empty: the newest that toolkit and
      GPUs support.
    type: str
    default: ""
  docker_engine_cgroup_driver:
    description: >-
      Cgroup driver (V(native.cgroupdriver) in exec-opts; other entries are kept). Empty: not changed.
    type: str
    default: ""
    choices: ["", cgroupfs, systemd]
  docker_engine_daemon_options:
    description: Keys to merge into V(/etc/docker/daemon.json). All other keys of the file are kept.
    type: dict
    default: {}
  docker_engine_log_driver:
    description: "Log driver of new containers. Empty: not changed."
    type: str
    default: ""
  docker_engine_log_options:
    description: Options of the log driver, merged key by key. They apply to containers created afterwards.
    type: dict
    default: {}
  docker_engine_replace_conflicting:
    description: >-
      Allow the removal of packages that conflict with the configured ones (docker.io, podman-docker, runc, ...).
      Without permission such a host is refused. Images and volumes in V(/var/lib/docker) are kept. Where this
      removes the containerd that runs pods, the plan says so.
    type: bool
    default: false
  docker_engine_source:
    description: >-
      Where docker comes from if it is missing. An installed docker is kept, whatever its source, unless
      V(docker_engine_version) or V(docker_engine_replace_conflicting) asks for another one.
    type: str
    default: auto
    choices: [auto, distro, docker_ce, none]
  docker_engine_version:
    description: >-
      Version of Docker Engine and CLI. Upgrades or downgrades, then holds the packages. V(28.5) is the newest
      28.5. Empty: the newest version if docker is missing, otherwise the installed one.
    type: str
    default: ""
  gpu_health_check:
    description: >-
      Installs V(gpu-ready-check), which says whether the GPUs of the host are healthy, and what it is wired to.
      With an empty list gpu-ready installs nothing, and removes what it installed before. See
      [health.md](health.md).
    type: list
    elements: str
    default: []
  gpu_health_check_limits:
    description: >-
      Limits of checks that have one, by name: V(temperature) (90 degrees Celsius), V(ecc_errors) (0 uncorrected
      errors) and V(nvlinks) (0 missing links).
    type: dict
    default: {}
  gpu_health_check_off:
    description: Checks that V(gpu-ready-check) leaves out.
    type: list
    elements: str
    default: []
  gpu_monitoring:
    description: >-
      How Prometheus gets the metrics of the GPUs. With an empty list gpu-ready sets up nothing, and removes what
      it set up before.
    type: list
    elements: str
    default: []
  gpu_monitoring_directory:
    description: >-
      The directory that node_exporter reads (its option V(--collector.textfile.directory)). Empty: the one in its
      unit or options, else V(/var/lib/prometheus/node-exporter).
    type: str
    default: ""
  gpu_monitoring_interval:
    description: Seconds between two samples.
    type: int
    default: 30
  gpu_monitoring_node_exporter:
    description: >-
      Who provides the node_exporter that reads the metrics of V(textfile). A package that gpu-ready installed is
      removed when V(gpu_monitoring) no longer names V(textfile), and by V(uninstall.yml).
    type: str
    default: keep
    choices: [keep, install]
  gpu_monitoring_old_names:
    description: >-
      Write the metrics of containers also as V(container_accelerator_memory_total_bytes), V(_memory_used_bytes)
      and V(_duty_cycle), as the kubelet did before Kubernetes 1.25.
    type: bool
    default: false
  gpu_ready_activation:
    description: How a new driver replaces the loaded one.
    type: str
    default: auto
    choices: [auto, reload, reboot, none]
  gpu_ready_branch_min_age:
    description: >-
      Days since the first release of a driver branch before it is chosen without being asked for. Younger ones
      wait, where there is another.
    type: int
    default: 90
  gpu_ready_catalog_overlay:
    description: >-
      A YAML file on the control node with your own rows of the catalog: driver branches, CUDA toolkits and their
      installers, cuDNN, GPUs, distributions and repositories, in the form of the files of V(catalog/)
      (docs/catalog.md). Empty: the catalog as it is.
    type: str
    default: ""
  gpu_ready_disrupt:
    description: >-
      Disruptions that may stop running work. Without permission a host on which work would be stopped is refused
      before any change, and the message names that work. An idle host needs none of them.
    type: list
    elements: str
    default: []
  gpu_ready_index:
    description: >-
      Whether the package sources of a host are asked what they offer, in a private place that leaves its package
      lists as they are. What they do not offer is refused before any change.
    type: str
    default: auto
    choices: [auto, none]
  gpu_ready_mirror:
    description: >-
      Base URL of a site mirror that replaces every upstream server. A file of V(https://HOST/PATH) is then
      downloaded from V(MIRROR/HOST/PATH). Empty: the vendors' own servers.
    type: str
    default: ""
  gpu_ready_mirror_keys:
    description: >-
      Fingerprints of the signing keys by repository id, for repositories that the mirror signs with its own key.
      Empty: the vendors' keys.
    type: dict
    default: {}
  gpu_ready_profile:
    description: >-
      What a whole host gets. What is installed already stays. A role that a playbook of a site names, such as
      V(gpu_ready.nodes.cuda_toolkit), is set up with any profile.
    type: str
    default: full
    choices: [full, containers]
  gpu_ready_reboot_ok:
    description: >-
      Allow the playbook to reboot an idle host that needs it. Without permission the host fails with a message
      that says why a reboot is required. Where work runs, V(gpu_ready_disrupt) must name V(reboot) too.
    type: bool
    default: false
  gpu_ready_treat_as:
    description: >-
      Treat an unknown distribution like this one, a file name in V(catalog/distros) such as V(debian12). Only one
      with packages of the same family is possible; known distributions are treated as themselves, with a warning.
      Empty: unknown distributions are refused.
    type: str
    default: ""
    choices:
      - ""
      - amzn2023
      - centos7
      - debian12
      - debian13
      - el10
      - el8
      - el9
      - fedora42
      - fedora43
      - fedora44
      - ubuntu2004
      - ubuntu2204
      - ubuntu2404
      - ubuntu2604
      - ubuntu2610
  gpu_ready_vault:
    description: >-
      Use the archives of ended releases (CentOS 7, Enterprise Linux 8) for kernel headers that the mirrors no
      longer have, and for Python 3 on hosts without one.
    type: bool
    default: false
  gpu_verify_compute:
    description: >-
      Run a small CUDA test on every GPU: on the host and, if the image has python3, in the container.
    type: bool
    default: true
  gpu_verify_devices:
    description: "GPUs for the test container: V(all), or a list of indices and UUIDs."
    type: raw
    default: all
  gpu_verify_framework:
    description: A framework that must see all GPUs in a container of its own. Its image has several gigabytes.
    type: str
    default: none
    choices: [none, tensorflow, pytorch]
  gpu_verify_framework_image:
    description: "Image of that framework. Empty: the official image of its project."
    type: str
    default: ""
  gpu_verify_image:
    description: >-
      Image of the test container; it needs no NVIDIA software. An image name that the host can pull, or an
      archive made with V(docker save) (V(.tar), V(.tar.gz), V(.tar.xz)) on the control node or on the host.
    type: str
    default: ubuntu:24.04
  nvidia_container_runtime_default:
    description: >-
      Make V(nvidia) the default runtime of the engines, so that containers see the GPUs in NVIDIA_VISIBLE_DEVICES
      without any option. Mode V(toolkit) only.
    type: bool
    default: false
  nvidia_container_runtime_engines:
    description: >-
      Engines that get the GPUs. Empty: docker; where a kubelet is found, that kubelet's engine, and docker too if
      it is installed. docker is installed if it is missing (V(docker_engine_source)), the others must be
      installed. V(k3s) and V(rke2) are the containerd that these include.
    type: list
    elements: str
    default: []
  nvidia_container_runtime_migrate:
    description: >-
      Replace nvidia-docker2 and nvidia-docker 1.0. Without permission nvidia-docker2 stays, and a host with
      nvidia-docker 1.0 is refused.
    type: bool
    default: false
  nvidia_container_runtime_mode:
    description: How containers get the GPUs.
    type: str
    default: toolkit
    choices: [toolkit, cdi, native]
  nvidia_container_toolkit_version:
    description: >-
      Version of NVIDIA's container toolkit: upgrades or downgrades its packages. V(1.19) is the newest 1.19.
      Empty: the newest version if the toolkit is missing, otherwise the installed one; a plan and an audit warn
      of one with published vulnerabilities.
    type: str
    default: ""
  nvidia_driver_branch:
    description: >-
      The driver branch. Empty or V(auto): of the branches that support every GPU of the host, the maintained one
      with the longest support that came out at least V(gpu_ready_branch_min_age) days ago. V(lts): the newest
      long-term branch; V(production): the newest one of these and the production branches; V(newest): the newest
      one of all. An installed driver of such a kind stays.
    type: str
    default: ""
  nvidia_driver_flavour:
    description: Flavour of the kernel modules.
    type: str
    default: auto
    choices: [auto, open, proprietary]
  nvidia_driver_hold:
    description: >-
      Hold the driver's packages, so that unattended upgrades do not replace the driver of running programs.
    type: bool
    default: true
  nvidia_driver_kernel_modules:
    description: Whether the kernel modules are compiled on the host.
    type: str
    default: auto
    choices: [auto, dkms, precompiled]
  nvidia_driver_module_parameters:
    description: >-
      Parameters of the kernel module V(nvidia), by their names with or without V(NVreg_). They come into use as a
      new driver does, by a live reload or a reboot.
    type: dict
    default: {}
  nvidia_driver_packages:
    description: >-
      The exact packages of the driver, each as V(NAME=VERSION), for a driver whose source, version, flavour and
      kind of kernel modules are set too. A rollback sets it to the recorded packages. Empty: those that the
      catalog names.
    type: list
    elements: str
    default: []
  nvidia_driver_persistence:
    description: >-
      Run the driver's persistence daemon with persistence mode on, so that GPUs stay initialized without a
      program that uses them. Without it, gpu-ready leaves daemon and mode as they are.
    type: bool
    default: true
  nvidia_driver_profile:
    description: Which parts of the driver are installed.
    type: str
    default: compute
    choices: [compute, full]
  nvidia_driver_replace_foreign:
    description: >-
      Remove a driver of another origin (a V(.run) installer, another repository) and install the configured one.
      Without permission such a host is refused.
    type: bool
    default: false
  nvidia_driver_runfile:
    description: >-
      For source V(runfile): URL of NVIDIA's installer, or its path on the control node. Empty: NVIDIA's own
      server.
    type: str
    default: ""
  nvidia_driver_runfile_sha256:
    description: >-
      SHA-256 checksum of that installer. Empty: the checksum that NVIDIA publishes, for a file from NVIDIA's
      server.
    type: str
    default: ""
  nvidia_driver_source:
    description: Where the driver comes from.
    type: str
    default: auto
    choices: [auto, distro, cuda_repo, elrepo, runfile, none]
  nvidia_driver_version:
    description: "The exact driver version. Empty: the newest version of the branch that the source offers."
    type: str
    default: ""
  # END variables
  overrides:
    description:
      - Values in place of variables, by name, which an upgrade or a rollback sets for its own plan. They have
        precedence over variables given with C(-e). Only variables of the driver, the sources of CUDA toolkits and
        cuDNN, and V(gpu_ready_index) can be replaced.
    type: dict
    default: {}
  drains:
    description:
      - How the host is drained before the plan is carried out, as in V(gpu_upgrade_drain). Work that a drain moves away
        is no reason to refuse the host. V(daemon_sets) says that Kubernetes has evicted its pods, and that those that
        still hold a GPU may be restarted for a live reload.
    type: list
    elements: str
    default: []
  release:
    description:
      - The point release to which an installed driver of the requested branch is moved, where no version is requested.
        V(newest) is the newest one that its source offers, another value what an earlier plan of the same upgrade
        chose, such as V(620-open) for a branch that only the package sources of the host have.
      - "Empty: it is kept."
    type: str
    default: ""
  part:
    description:
      - The role whose part of the host is planned, with its own variables and those of V(gpu_ready_*) only. The other
        parts count as they are on the host.
      - "Empty: the whole host."
    type: str
    default: ""
    choices:
      - ""
      - kernel_headers
      - nvidia_driver
      - cuda_toolkit
      - cudnn
      - docker_engine
      - nvidia_container_runtime
      - gpu_verify
      - gpu_monitoring
attributes:
  check_mode:
    description: Computes the same plan; RV(changed) is true if the real run would change something.
    support: full
  diff_mode:
    description: Shows the steps and the files they write.
    support: full
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Plan with the default settings
  gpu_ready.nodes.gpu_node_plan:
  register: gpu_plan_result

- name: Stay on the long-term branch and on packages of NVIDIA's repository
  gpu_ready.nodes.gpu_node_plan:
    nvidia_driver_source: cuda_repo
    nvidia_driver_branch: "580"
  register: gpu_plan_result

- name: Check a host whose driver somebody else installs
  gpu_ready.nodes.gpu_node_plan:
    nvidia_driver_source: none
  check_mode: true
  register: gpu_plan_result
"""

RETURN = r"""
plan:
  description: The plan - summary, choice, steps with reason and disruption, refusals, warnings.
  returned: always
  type: dict
  sample: {"gpu_host": true, "converged": true, "summary": "2x Tesla P40: ready and verified", "steps": []}
todo:
  description: The parameters of each step by its id; empty if there is nothing to do, or if the host is refused.
  returned: always
  type: dict
  sample: {"kernel_headers.install": {"packages": ["linux-headers-6.1.0-50-amd64"], "kernel": "6.1.0-50-amd64"}}
verification:
  description: The parameters of C(gpu_verify.verify), also if no verification is due; null if no driver is requested.
  returned: always
  type: dict
  sample: {"expect": {"driver": {"branch": 595}, "gpus": ["0000:01:00.0"]}, "digest": "e3b0c442"}
row:
  description: The host's row of the report.
  returned: always
  type: dict
  sample: {"gpus": "2x Tesla P40", "driver_desired": "535", "driver_loaded": "535.261.03"}
lines:
  description: The plan as text, one line per step or warning.
  returned: always
  type: list
  elements: str
  sample: ["nvidia_driver.activate: no NVIDIA module is loaded"]
upgrade:
  description: What an upgrade of the driver would do with this host - state, versions, live reload or reboot, rollback.
  returned: always
  type: dict
  sample: {"state": "due", "from": "580.95.05", "to": "595", "way": "live"}
lease:
  description: Mark of the lease of the host when its facts were collected, empty without one; see M(gpu_lease).
  returned: always
  type: str
  sample: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
refusal:
  description: All refusals with their remedies as one text, empty if there are none.
  returned: always
  type: str
  sample: ""
"""

import gc

gc.disable()  # the process ends before there is much to collect
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.facts.collected import CollectedFacts, collect_answer

ANSWER = CollectedFacts
ARGUMENT_SPEC = {"probes": {"type": "dict", "required": True}}


def run(host, params, check):
    return collect_answer(host, params["probes"])


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
