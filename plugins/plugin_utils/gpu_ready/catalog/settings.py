"""The settings of the planner, generated from catalog/variables by `make catalog`; do not edit."""

import json
from typing import Any, NamedTuple

# fmt: off
# ruff: noqa: E501


class Settings(NamedTuple):
    """The value of each public variable that the planner reads (docs/variables.md)."""

    cuda_toolkit_default: str
    cuda_toolkit_profile: str
    cuda_toolkit_remove: list[str]
    cuda_toolkit_runfiles: dict[str, Any]
    cuda_toolkit_source: str
    cuda_toolkit_versions: list[str]
    cudnn_archive: str
    cudnn_archive_sha256: str
    cudnn_source: str
    cudnn_toolkits: list[str]
    cudnn_version: str
    docker_engine_cgroup_driver: str
    docker_engine_daemon_options: dict[str, Any]
    docker_engine_log_driver: str
    docker_engine_log_options: dict[str, Any]
    docker_engine_replace_conflicting: bool
    docker_engine_source: str
    docker_engine_version: str
    gpu_health_check: list[str]
    gpu_health_check_limits: dict[str, Any]
    gpu_health_check_off: list[str]
    gpu_monitoring: list[str]
    gpu_monitoring_directory: str
    gpu_monitoring_interval: int
    gpu_monitoring_node_exporter: str
    gpu_monitoring_old_names: bool
    gpu_ready_activation: str
    gpu_ready_branch_min_age: int
    gpu_ready_catalog_overlay: str
    gpu_ready_disrupt: list[str]
    gpu_ready_index: str
    gpu_ready_mirror: str
    gpu_ready_mirror_keys: dict[str, Any]
    gpu_ready_profile: str
    gpu_ready_reboot_ok: bool
    gpu_ready_treat_as: str
    gpu_ready_vault: bool
    gpu_verify_compute: bool
    gpu_verify_devices: str | list[str]
    gpu_verify_framework: str
    gpu_verify_framework_image: str
    gpu_verify_image: str
    nvidia_container_runtime_default: bool
    nvidia_container_runtime_engines: list[str]
    nvidia_container_runtime_migrate: bool
    nvidia_container_runtime_mode: str
    nvidia_container_toolkit_version: str
    nvidia_driver_branch: str
    nvidia_driver_flavour: str
    nvidia_driver_hold: bool
    nvidia_driver_kernel_modules: str
    nvidia_driver_module_parameters: dict[str, Any]
    nvidia_driver_packages: list[str]
    nvidia_driver_persistence: bool
    nvidia_driver_profile: str
    nvidia_driver_replace_foreign: bool
    nvidia_driver_runfile: str
    nvidia_driver_runfile_sha256: str
    nvidia_driver_source: str
    nvidia_driver_version: str


POLICY = ('docker_engine_replace_conflicting', 'gpu_health_check', 'gpu_health_check_limits', 'gpu_health_check_off', 'gpu_monitoring', 'gpu_monitoring_directory', 'gpu_monitoring_interval', 'gpu_monitoring_node_exporter', 'gpu_monitoring_old_names', 'gpu_ready_activation', 'gpu_ready_branch_min_age', 'gpu_ready_catalog_overlay', 'gpu_ready_disrupt', 'gpu_ready_index', 'gpu_ready_mirror', 'gpu_ready_mirror_keys', 'gpu_ready_profile', 'gpu_ready_reboot_ok', 'gpu_ready_treat_as', 'gpu_ready_vault', 'nvidia_container_runtime_migrate', 'nvidia_driver_hold', 'nvidia_driver_persistence', 'nvidia_driver_replace_foreign')
"""Variables that say how a host gets to the desired state; they are not part of it."""
_ROWS = json.loads(r'''{
"cuda_toolkit_default":["","str",[],"\\d+\\.\\d+|auto","a version such as 12.9, or empty","text","12.4"],
"cuda_toolkit_profile":["default","str",[],"\\d+\\.\\d+|default|none","default, none or a version such as 12.9","text","12.4"],
"cuda_toolkit_remove":[[],"list",[],"\\d+\\.\\d+","versions such as 12.4","text",["11.8"]],
"cuda_toolkit_runfiles":[{},"dict",[],"","","text",{"12.4":{"file":"/srv/cuda_12.4.1_550.54.15_linux.run","sha256":"367d..."}}],
"cuda_toolkit_source":["repo","str",["repo","runfile","none"],"","","text"],
"cuda_toolkit_versions":[[],"list",[],"\\d+\\.\\d+(\\.\\d+)?|auto","versions such as 12.9 or 12.9.1","text",["12.4","12.9.1"]],
"cudnn_archive":["","str",[],"","","location","/srv/cudnn-8.0-linux-x64-v6.0.tgz"],
"cudnn_archive_sha256":["","str",[],"[0-9a-fA-F]{64}","64 hexadecimal digits, or empty","text"],
"cudnn_source":["archive","str",["archive","package","none"],"","","text"],
"cudnn_toolkits":[[],"list",[],"\\d+\\.\\d+","versions of CUDA such as 12.9","text",["12.9"]],
"cudnn_version":["","str",[],"\\d+(\\.\\d+)+|auto","a version such as 9.10.2.21, or empty","text","9.10.2.21"],
"docker_engine_cgroup_driver":["","str",["","cgroupfs","systemd"],"","","text"],
"docker_engine_daemon_options":[{},"dict",[],"","","text",{"live-restore":true}],
"docker_engine_log_driver":["","str",[],"\\w[\\w./-]*(:[\\w.-]+)?","the name of a log driver, or empty","text","json-file"],
"docker_engine_log_options":[{},"dict",[],"","","text",{"max-size":"100m","max-file":3}],
"docker_engine_replace_conflicting":[false,"bool",[],"","","text"],
"docker_engine_source":["auto","str",["auto","distro","docker_ce","none"],"","","text"],
"docker_engine_version":["","str",[],"(\\d+:)?\\d+[\\w.+~-]*","a version such as 28.5 or 28.5.1, or empty","text","28.5.1"],
"gpu_health_check":[[],"list",["systemd","slurm","npd"],"","","text",["systemd","slurm"]],
"gpu_health_check_limits":[{},"dict",[],"(temperature|ecc_errors|nvlinks)=\\d{1,3}","limits of temperature, ecc_errors and nvlinks, each a number","text",{"temperature":95}],
"gpu_health_check_off":[[],"list",["pci","gpus","driver","device_nodes","nvml","identity","memory","ecc_mode","mig_mode","pcie_width","pcie_generation","nvlinks","fabric","recovery","remapped_rows","ecc_errors","temperature","clocks","persistence","xid","kernel_log","verified"],"","","text",["temperature"]],
"gpu_monitoring":[[],"list",["textfile","dcgm"],"","","text",["textfile","dcgm"]],
"gpu_monitoring_directory":["","str",[],"(/[A-Za-z0-9._+-]+)+","an absolute path of letters, digits and ._+-","text","/var/lib/node_exporter"],
"gpu_monitoring_interval":[30,"int",[],"1..9999","a number of seconds from 1 to 9999","text"],
"gpu_monitoring_node_exporter":["keep","str",["keep","install"],"","","text"],
"gpu_monitoring_old_names":[false,"bool",[],"","","text"],
"gpu_ready_activation":["auto","str",["auto","reload","reboot","none"],"","","text"],
"gpu_ready_branch_min_age":[90,"int",[],"0..3650","a number from 0 to 3650","text"],
"gpu_ready_catalog_overlay":["","str",[],"/.+","an absolute path on the control node, or empty","text","/etc/gpu-ready/catalog.yml"],
"gpu_ready_disrupt":[[],"list",["docker_restart","containerd_restart","kubernetes_restart","driver_reload","reboot"],"","","text",["docker_restart"]],
"gpu_ready_index":["auto","str",["auto","none"],"","","text"],
"gpu_ready_mirror":["","str",[],"","","mirror","https://mirror.example.org/gpu"],
"gpu_ready_mirror_keys":[{},"dict",[],"","","fingerprint",{"cuda-debian12":"0123456789ABCDEF0123456789ABCDEF01234567"}],
"gpu_ready_profile":["full","str",["full","containers"],"","","text"],
"gpu_ready_reboot_ok":[false,"bool",[],"","","text"],
"gpu_ready_treat_as":["","str",["","amzn2023","centos7","debian12","debian13","el10","el8","el9","fedora42","fedora43","fedora44","ubuntu2004","ubuntu2204","ubuntu2404","ubuntu2604","ubuntu2610"],"","","text"],
"gpu_ready_vault":[false,"bool",[],"","","text"],
"gpu_verify_compute":[true,"bool",[],"","","text"],
"gpu_verify_devices":["all","devices",[],"all|\\d+|(?:GPU|MIG)-[\\w/-]+","all, or indices and UUIDs of GPUs","text",[0,1]],
"gpu_verify_framework":["none","str",["none","tensorflow","pytorch"],"","","text"],
"gpu_verify_framework_image":["","str",[],"","","name"],
"gpu_verify_image":["ubuntu:24.04","str",[],"","","name","/srv/images/ubuntu.tar.xz"],
"nvidia_container_runtime_default":[false,"bool",[],"","","text"],
"nvidia_container_runtime_engines":[[],"list",["docker","podman","containerd","crio","k3s","rke2"],"","","text",["containerd"]],
"nvidia_container_runtime_migrate":[false,"bool",[],"","","text"],
"nvidia_container_runtime_mode":["toolkit","str",["toolkit","cdi","native"],"","","text"],
"nvidia_container_toolkit_version":["","str",[],"\\d+(\\.\\d+){1,2}","a version such as 1.19 or 1.19.1, or empty","text","1.19.1"],
"nvidia_driver_branch":["","str",[],"\\d{2,4}|auto|lts|production|newest","a branch such as 580, lts, production, newest, or empty","text","580"],
"nvidia_driver_flavour":["auto","str",["auto","open","proprietary"],"","","text"],
"nvidia_driver_hold":[true,"bool",[],"","","text"],
"nvidia_driver_kernel_modules":["auto","str",["auto","dkms","precompiled"],"","","text"],
"nvidia_driver_module_parameters":[{},"dict",[],"(?!NVreg_NVreg_)(NVreg_)?[A-Z]\\w*=(?!None$)[\\w.,:;=/+-]{1,1024}","parameters such as NVreg_EnableStreamMemOPs, each with a value without spaces and quotes","text",{"NVreg_RestrictProfilingToAdminUsers":0}],
"nvidia_driver_packages":[[],"list",[],"[A-Za-z0-9][A-Za-z0-9.+_-]*(:[a-z0-9]+)?=[A-Za-z0-9.+~:^_-]+","packages such as nvidia-utils-580-server=580.95.05-0ubuntu1","text"],
"nvidia_driver_persistence":[true,"bool",[],"","","text"],
"nvidia_driver_profile":["compute","str",["compute","full"],"","","text"],
"nvidia_driver_replace_foreign":[false,"bool",[],"","","text"],
"nvidia_driver_runfile":["","str",[],"","","location","/srv/NVIDIA-Linux-x86_64-580.178.04.run"],
"nvidia_driver_runfile_sha256":["","str",[],"[0-9a-fA-F]{64}","64 hexadecimal digits, or empty","text"],
"nvidia_driver_source":["auto","str",["auto","distro","cuda_repo","elrepo","runfile","none"],"","","text"],
"nvidia_driver_version":["","str",[],"\\d{2,4}(\\.\\d+){1,2}","a version such as 580.178.04, or empty","text","580.178.04"]}''')  # JSON is read faster than literals are compiled
DEFAULTS: dict[str, Any] = {name: row[0] for name, row in _ROWS.items()}
RULES: dict[str, list[Any]] = {name: row[1:] for name, row in _ROWS.items()}
"""For each variable: type, choices, pattern of the text or range, what it must be, validator, example."""
