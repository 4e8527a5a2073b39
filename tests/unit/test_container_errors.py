"""Failures of containers as engines and their versions wrap them: the cause inside all frames."""

import pytest

from plugins.plugin_utils.gpu_ready.diagnostics import container_errors, messages

CASES = [
    (
        "driver_too_old",
        "12.4",
        "docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running hook #0: error running hook: exit status 1, stdout: , stderr: Auto-detected mode as 'legacy'\r\nnvidia-container-cli: requirement error: unsatisfied condition: cuda >= 12.4, please update",
    ),
    ("driver_too_old", None, "nvidia-container-cli.real: requirement error: unsatisfied condition: brand = tesla"),
    ("cdi_spec_wrong", None, "Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=GPU-1234"),
    (
        "no_cdi_spec_or_no_gpu",
        None,
        "Error: setting up CDI devices: unresolvable CDI devices [nvidia.com/gpu=all](http://nvidia.com/gpu=all)",
    ),
    (
        "no_cdi_spec_or_no_gpu",
        None,
        "Emulate Docker CLI using podman. Create /etc/containers/nodocker to quiet msg.\nError: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all",
    ),
    (
        "cdi_spec_wrong",
        None,
        "docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices management.nvidia.com/gpu=all",
    ),
    ("cdi_spec_generation_failed", None, "unresolvable CDI devices runtime.nvidia.com/gpu=all: unknown"),
    (
        "cdi_not_nvidia",
        None,
        "docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices amd.com/gpu=all",
    ),
    (
        "cdi_spec_wrong",
        None,
        'could not inject: conflicting device "nvidia.com/gpu=0" (specs /etc/cdi/nvidia.yaml, /var/run/cdi/nvidia.yaml)',
    ),
    (
        "toolkit_missing",
        None,
        'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\nERRO[0000] error waiting for container: context canceled',
    ),
    (
        "toolkit_missing",
        None,
        "docker: Error response from daemon: could not select device driver with capabilities: [[gpu]].",
    ),
    (
        "toolkit_missing",
        None,
        "nvidia-docker: Error response from daemon: could not select device driver 'nvidia' with capabilities: [[gpu nvidia compute]]",
    ),
    (
        "cdi_not_enabled_in_docker",
        None,
        'Error response from daemon: could not select device driver \\"cdi\\" with capabilities: []',
    ),
    (
        "cdi_not_enabled_in_docker",
        None,
        'docker: Error response from daemon: error gathering device information while adding custom device "nvidia.com/gpu=all": no such file or directory.',
    ),
    (
        "runtime_not_configured",
        None,
        "docker: Error response from daemon: Unknown runtime specified nvidia.\nSee 'docker run --help'.",
    ),
    (
        "runtime_not_configured",
        None,
        '  Warning  FailedCreatePodSandBox  3s (x5 over 60s)  kubelet  Failed to create pod sandbox: rpc error: code = Unknown desc = failed to get sandbox runtime: no runtime for "nvidia" is configured',
    ),
    ("runtime_not_configured", None, 'Error: default OCI runtime "nvidia" not found: invalid argument'),
    (
        "runtime_binary_missing",
        None,
        'docker: Error response from daemon: OCI runtime create failed: unable to retrieve OCI runtime error (open /run/containerd/io.containerd.runtime.v1.linux/moby/abc/log.json: no such file or directory): exec: "nvidia-container-runtime": executable file not found in $PATH: : unknown.',
    ),
    (
        "runtime_binary_missing",
        None,
        "docker: Error response from daemon: OCI runtime create failed: runc create failed: unable to start container process: error during container init: error running prestart hook #0: fork/exec /usr/bin/nvidia-container-runtime-hook: no such file or directory: unknown.",
    ),
    (
        "runtime_binary_missing",
        None,
        "docker: Error response from daemon: failed to create task: OCI runtime create failed: runc create failed: error running createContainer hook #0: fork/exec /usr/bin/nvidia-cdi-hook: no such file or directory: unknown",
    ),
    (
        "cgroup_v2_old_toolkit",
        None,
        "docker: Error response from daemon: OCI runtime create failed: container_linux.go:367: starting container process caused: process_linux.go:495: container init caused: process_linux.go:458: running prestart hook 0 caused: error running hook: exit status 1, stdout: , stderr: nvidia-container-cli: container error: cgroup subsystem devices not found: unknown.",
    ),
    (
        "driver_userspace_missing",
        None,
        "stderr: nvidia-container-cli: initialization error: cannot open shared object file: no such file or directory: unknown.",
    ),
    (
        "driver_not_loaded",
        None,
        'stderr: nvidia-container-cli: initialization error: nvml error: driver not loaded\\\\n\\"": unknown.',
    ),
    (
        "driver_or_gpu_hung",
        None,
        "stderr: nvidia-container-cli: initialization error: driver rpc error: timed out: unknown.",
    ),
    (
        "driver_or_gpu_hung",
        None,
        'stderr: nvidia-container-cli: initialization error: driver error: failed to process request\\\\\\\\n\\\\\\"\\"": unknown.',
    ),
    (
        "ldconfig_failed",
        None,
        'stderr: nvidia-container-cli: ldcache error: process /sbin/ldconfig failed with error code: 1\\\\n\\"": unknown.',
    ),
    (
        "wsl_driver_missing",
        None,
        "nvidia-container-cli: mount error: stat failed: /usr/lib/wsl/lib/libcuda.so.1: no such file or directory: unknown",
    ),
    (
        "driver_libs_inside_image",
        None,
        "nvidia-container-cli: mount error: file creation failed: /var/lib/docker/overlay2/abc/merged/usr/bin/nvidia-smi: file exists: unknown",
    ),
    (
        "rootless_cgroups",
        None,
        "nvidia-container-cli: mount error: failed to add device rules: unable to find any existing device filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted: unknown.",
    ),
    ("unknown_device", None, "nvidia-container-cli: device error: GPU-aaaa-bbbb: unknown device: unknown"),
    ("selinux_denied", None, "Failed to initialize NVML: Insufficient Permissions"),
    (
        "gpus_flag_ignored",
        None,
        "Error: crun: executable file `nvidia-smi` not found in $PATH: No such file or directory: OCI runtime attempted to invoke a command that was not found",
    ),
    (
        "gpus_flag_ignored",
        None,
        'docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "nvidia-smi": executable file not found in $PATH: unknown.',
    ),
    (
        "daemon_config_invalid",
        None,
        "unable to configure the Docker daemon with file /etc/docker/daemon.json: the following directives don't match any configuration option: nvidia",
    ),
    (
        "not_gpu",
        None,
        "docker: Error response from daemon: manifest for nvidia/cuda:11.0-base not found: manifest unknown: manifest unknown.",
    ),
    (
        "not_gpu",
        None,
        "Unable to find image 'nvidia/cuda:latest' locally\ndocker: Error response from daemon: pull access denied for nvidia/cudaa, repository does not exist or may require 'docker login': denied",
    ),
    (
        "not_gpu",
        None,
        "docker: Error response from daemon: driver failed programming external connectivity on endpoint web: Bind for 0.0.0.0:80 failed: port is already allocated.",
    ),
    (
        "not_gpu",
        None,
        'docker: Error response from daemon: Conflict. The container name "/x" is already in use by container',
    ),
    (
        "not_gpu",
        None,
        "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    ),
    ("not_gpu", None, "exec /usr/local/bin/entrypoint.sh: exec format error"),
    (
        "not_gpu",
        None,
        'docker: Error response from daemon: failed to create task for container: OCI runtime create failed: runc create failed: unable to start container process: exec: "python3": executable file not found in $PATH: unknown',
    ),
    (
        "driver_library_mismatch",
        None,
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.183",
    ),
    (
        "cdi_spec_wrong",
        None,
        "Error: crun: cannot stat `/usr/lib64/libEGL_nvidia.so.535.129.03`: No such file or directory: OCI runtime attempted to invoke a command that was not found",
    ),
]


@pytest.mark.parametrize(("cause", "needs", "text"), CASES)
def test_cause_inside_the_frames(cause: str, needs: str | None, text: str) -> None:
    found = container_errors.read(text)
    assert (found["cause"], found["needs_cuda"]) == (cause, needs)


@pytest.mark.parametrize("text", ["", "all is well", "something about nvidia that nobody has ever seen"])
def test_an_unknown_text_has_no_cause(text: str) -> None:
    assert container_errors.read(text) == {"cause": None, "needs_cuda": None, "problems": []}


def test_only_a_known_message_shows_that_a_failure_is_not_about_gpus() -> None:
    head = "docker: Error response from daemon: "
    assert container_errors.read(head + "something strange failed")["cause"] is None
    assert container_errors.read(head + "Bind for 0.0.0.0:80 failed: port is already allocated")["cause"] == "not_gpu"
    assert container_errors.read("slurmd: error: connection refused (gres/gpu)")["cause"] is None


def test_the_cause_comes_first_among_several_problems() -> None:
    text = (
        "Failed to initialize NVML: Unknown Error\n"
        "nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown"
    )
    assert [found.code for found in messages.explain("container-error", text)] == [
        "driver_not_loaded",
        "gpu_access_lost",
    ]


def test_remedy_is_to_check_the_hardware_if_the_text_shows_other_cards() -> None:
    error = 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].\n'
    amd = "03:00.0 VGA compatible controller: Advanced Micro Devices, Inc. [AMD/ATI] Navi 31 [Radeon RX 7900 XTX]\n"
    nvidia = "04:00.0 3D controller: NVIDIA Corporation GP102GL [Tesla P40] (rev a1)\n"
    causes = [container_errors.read(error + cards)["cause"] for cards in ("", amd, amd + nvidia)]
    assert causes == ["toolkit_missing", "toolkit_missing_or_no_nvidia_gpu", "toolkit_missing"]


CLI = "docker: Error response from daemon: OCI runtime create failed: error running hook: exit status 1, stdout: , stderr: nvidia-container-cli: "
MORE = [
    ("not_gpu", None, 'docker: Error response from daemon: AppArmor enabled on system but the docker-default profile could not be'
     ' loaded: running `apparmor_parser apparmor_parser -Kr /var/lib/docker/tmp/docker-default1` failed with output: \nerror: exec:'
     ' "apparmor_parser": executable file not found in $PATH.'),
    ("rootless_cgroups", None, CLI + "mount error: mount operation failed: /srv/store/merged/proc/driver/nvidia: permission denied: unknown."),
    ("rootless_cgroups", None, CLI + "mount error: write error: /sys/fs/cgroup/devices/docker/ab/devices.allow: operation not permitted"),
    ("rootless_cgroups", None, CLI + "permission error: capability change failed: operation not permitted"),
    ("rootless_cgroups", None, "Error: OCI runtime error: crun: error executing hook `/usr/bin/nvidia-container-toolkit` (exit code: 1)"),
    ("runtime_binary_missing", None, "failed to create shim: fork/exec /usr/bin/nvidia-container-runtime: permission denied: unknown"),
    ("runtime_binary_missing", None, "nvidia-container-cli: relocation error: /usr/lib64/libnvidia-container.so.1: symbol nvc_x not defined"),
    ("runtime_binary_missing", None, "nvidia-container-runtime: error constructing low-level runtime: no runc binary found"),
    ("runtime_not_configured", None, "invoking the NVIDIA Container Runtime Hook directly (such as by --gpus) is not supported: unknown"),
    ("runtime_not_configured", None, 'Error: default OCI runtime "nvidia-container-runtime" not found: invalid argument'),
    ("driver_userspace_missing", None, CLI + "initialization error: open failed: /run/nvidia/driver/proc/sys/kernel/x: no such file or directory"),
    ("driver_userspace_missing", None, "Failed to initialize NVML: could not load NVML library. Is the default runtime nvidia?"),
    ("driver_userspace_missing", None, CLI + "mount error: file creation failed: /m/run/nvidia-persistenced/socket: no such device or address"),
    ("driver_not_loaded", None, CLI + "mount error: stat failed: /dev/nvidia-modeset: no such file or directory"),
    ("driver_not_loaded", None, CLI + "detection error: open failed: /proc/driver/nvidia/gpus: no such file or directory"),
    ("cgroup_v2_old_toolkit", None, CLI + "container error: open failed: /sys/fs/cgroup/devices/x.scope/devices.allow: no such file or directory"),
    ("driver_or_gpu_hung", None, "RuntimeError: CUDA error: system not yet initialized"),
    ("driver_or_gpu_hung", None, "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost"),
    ("driver_too_old", "9.0", "nvidia-docker: Error: unsupported CUDA version: driver 8.0 < image 9.0.176"),
    ("driver_too_old", None, "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)."),
    ("toolkit_missing", None, "create nvidia_driver_396.26: Error looking up volume plugin nvidia-docker: plugin not found."),
    ("cdi_not_nvidia", None, 'docker: Error response from daemon: could not select device driver "amd" with capabilities: [[gpu]].'),
    ("cdi_spec_generation_failed", None, "failed to create device CDI specs: failed to initialize NVML: ERROR_UNKNOWN"),
    ("ldconfig_failed", None, 'createContainer hook #1: exit status 1, stderr: level=error msg="failed to update ldcache"'),
    ("gpus_flag_ignored", None, "WARNING: The NVIDIA Driver was not detected.  GPU functionality will not be available."),
    ("unknown_device", None, 'invalid argument "device=0,1" for "--gpus" flag: unexpected key \'1\' in \'1\''),
    ("engine_too_old", None, "unknown flag: --gpus\nSee 'docker run --help'."),
    ("cuda_no_device", None, "RuntimeError: No CUDA GPUs are available"),
    ("runtime_binary_missing", None, "OCI runtime create failed: nvidia-container-runtime did not terminate successfully: exit status 2: unknown."),
    ("driver_not_loaded", None, 'error gathering device information while adding custom device "/dev/nvidiactl": no such file or directory.'),
    ("driver_or_gpu_hung", None, "ERROR: The NVIDIA Driver is present, but CUDA failed to initialize."),
    ("driver_too_old", None, "ERROR: No supported GPU(s) detected to run this container"),
    ("rootless_cgroups", None, CLI + "mount error: file creation failed: /m/proc/driver/nvidia: read-only file system"),
    ("kubernetes_no_gpu", None, "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "needs", "text"), MORE)
def test_cause_of_other_messages_of_engines_toolkit_and_cuda(cause: str, needs: str | None, text: str) -> None:
    found = container_errors.read(text)
    assert (found["cause"], found["needs_cuda"]) == (cause, needs)
    assert messages.explain("container-error", text)[0].remedy


def test_remedy_of_selinux_denials_permits_every_container() -> None:
    """docker applies SELinux only with selinux-enabled in daemon.json; an option of one run does not help the others."""
    found = messages.explain_container(4, "Failed to initialize NVML: Insufficient Permissions")
    assert found.code == "selinux_denied" and "selinux-enabled" in found.cause
    assert "setsebool -P container_use_xserver_devices on" in found.remedy
    assert "container_use_devices" in found.remedy and "label=disable" in found.remedy
