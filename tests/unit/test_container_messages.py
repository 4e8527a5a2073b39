"""Container failures by the format strings of the programs that print them: cause, remedy, and nothing beside it."""

import pytest

from plugins.plugin_utils.gpu_ready.explain import cli as explain

HOOK = "OCI runtime create failed: runc create failed: unable to start container process: error during container init: "
CLI = HOOK + "error running prestart hook #0: exit status 1, stdout: , stderr: nvidia-container-cli: "
CRUN = "Error: crun: "
SANDBOX = (
    "Warning  FailedCreatePodSandBox  3s  kubelet  Failed to create pod sandbox: rpc error: code = Unknown desc = "
)
ADMISSION = "Warning  UnexpectedAdmissionError  9s  kubelet  Allocate failed due to "
PLUGIN = "E1121 08:12:10.123456       1 factory.go:113] "
RUNTIME = "docker: Error response from daemon: failed to create task for container: failed to create shim task: OCI runtime create failed: "
PRESTART = HOOK + "error running prestart hook #0: exit status 1, stdout: , stderr: "
CDI_HOOK = HOOK + "error running createContainer hook #1: exit status 1, stdout: , stderr: "
CTK = 'time="2026-02-11T10:22:03Z" level=error msg="'
AUTO = RUNTIME + 'failed to create the automatic CDI modifier: failed to generate CDI spec for mode "nvml": '
INJECT = "Error: setting up CDI devices: failed to inject devices: "
STARTING = PLUGIN + "error starting plugins: "

CASES = [
    # moby: daemon/devices.go; container-device-interface: pkg/cdi/container-edits.go, cache.go.
    ("cdi_spec_wrong", "failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=3", "generate it again"),
    ("cdi_spec_wrong", "unresolvable CDI devices nvidia.com/gpu=0, nvidia.com/gpu=1, nvidia.com/gpu=2", "generate it"),
    ("cdi_spec_wrong", 'unresolvable CDI devices "nvidia.com/mig=0:1"', "generate it again"),
    ("cdi_spec_wrong", "CDI device injection failed: unresolvable CDI devices management.nvidia.com/gpu=all", "again"),
    ("cdi_spec_generation_failed", "unresolvable CDI devices runtime.nvidia.com/gpu=all: unknown", "run nvidia-smi"),
    ("no_cdi_spec_or_no_gpu", "unresolvable CDI devices nvidia.com/gpu=all", "nvidia-ctk cdi generate"),
    ("cdi_not_nvidia", "unresolvable CDI devices amd.com/gpu=all", "its vendor's"),
    ("cdi_not_enabled_in_docker", 'could not select device driver "cdi" with capabilities: [[gpu]]', "features"),
    ("toolkit_missing", 'could not select device driver "" with capabilities: [[gpu]].', "nvidia-container-toolkit"),
    ("cdi_spec_wrong", CRUN + "error executing hook `/usr/bin/nvidia-ctk` (exit code: 1)", "generate the specification"),
    ("cdi_spec_wrong", CRUN + "error executing hook `/usr/bin/nvidia-cdi-hook` (exit code: 2)", "by hand"),
    ("rootless_cgroups", CRUN + "error executing hook `/usr/bin/nvidia-container-runtime-hook` (exit code: 1)", "no-cgroups"),
    ("cdi_spec_wrong", CRUN + "error stat'ing file `/usr/lib64/libnvidia-ml.so.550.54.14`: No such file or directory", "again"),
    ("cdi_spec_wrong", CRUN + "cannot stat `/usr/lib64/libcuda.so.550.54.14`: No such file or directory", "again"),
    ("cdi_spec_generation_failed", "failed to create device: invalid device, empty device edits", "nvidia-modprobe"),
    # nvidia-container-toolkit: cmd/nvidia-ctk/cdi/generate, internal/oci.
    ("driver_userspace_missing", "failed to initalize NVML: ERROR_LIBRARY_NOT_FOUND", "name that root to the toolkit"),
    ("driver_userspace_missing", "failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND", "name that root to the toolkit"),
    ("driver_not_loaded", "failed to initialize NVML: ERROR_DRIVER_NOT_LOADED", "modprobe nvidia"),
    ("runtime_binary_missing", "error locating runtime: no runtime binary found from candidate list: [runc crun]", "install runc"),
    # libnvidia-container: src/cli/dsl.c, src/nvc*.c.
    ("requirement_invalid", CLI + "requirement error: invalid expression: unknown", "NVIDIA_DISABLE_REQUIRE=1"),
    ("driver_too_old", CLI + "requirement error: unsatisfied condition: cuda>=13.0, please update", "newer driver"),
    ("driver_library_mismatch", CLI + "initialization error: nvml error: driver/library version mismatch", "reboot the host"),
    ("driver_library_mismatch", "Failed to initialize NVML: Driver/library version mismatch", "a reboot cannot help"),
    ("unknown_device", CLI + "device error: 7: unknown device: unknown", "nvidia-smi -L"),
    # containerd: internal/cri; CRI-O: internal/oci; Kubernetes: pkg/kubelet.
    ("runtime_not_configured", SANDBOX + 'failed to get sandbox runtime: no runtime for "nvidia" is configured', "=containerd"),
    ("runtime_not_configured", SANDBOX + "failed to find runtime handler nvidia from runtime list map[runc:0xc0]", "=crio"),
    ("runtime_not_configured", SANDBOX + 'RuntimeHandler "nvidia" not supported', "=containerd' or '--runtime=crio'"),
    ("runtime_not_configured", SANDBOX + 'failed to get sandbox runtime: no runtime for "nvidia" is configured', "k3s and RKE2"),
    ("runtime_not_configured", SANDBOX + "failed to find runtime handler nvidia from runtime list map[crun:0xc0]", "/etc/crio/crio.conf.d"),
    ("runtime_not_configured", 'level=fatal msg="validating runtime config: default_runtime set to \\"nvidia\\", but no runtime entry table [crio.runtime.runtimes.nvidia] was found"', "=crio"),
    ("toolkit_missing", """level=warning msg="Runtime handler \\"nvidia\\" is being ignored due to: invalid runtime_path for runtime 'nvidia': stat /usr/bin/nvidia-container-runtime: no such file or directory\"""", "nvidia-container-toolkit"),
    ("not_gpu", 'E1121 kubelet.go] "Failed to run kubelet" err="failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \\"unix:///run/containerd/containerd.sock\\": rpc error: code = Unimplemented desc = unknown service runtime.v1.RuntimeService"', "disabled_plugins"),
    ("containerd_drop_in_newer", "containerd: failed to load TOML from /etc/containerd/config.toml: drop-in config version 4 higher than root config version 2", "version of config.toml"),
    ("not_gpu", "containerd: failed to load TOML: /var/lib/rancher/k3s/agent/etc/containerd/config.toml: toml: table runc already exists", "once"),
    ("runtime_not_configured", "unknown or invalid runtime name: nvidia", "--runtime=docker"),
    ("runtime_not_configured", 'pods "x" is forbidden: pod rejected: RuntimeClass "nvidia" not found', "create the RuntimeClass"),
    ("kubernetes_no_gpu", ADMISSION + "requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0, which is unexpected", "device plugin"),
    ("kubernetes_no_gpu", ADMISSION + "no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu", "Xid"),
    ("kubernetes_no_gpu", "0/4 nodes are available: 4 Insufficient nvidia.com/gpu.", "kubectl describe node"),
    ("kubernetes_no_gpu", "0/4 nodes are available: 4 node(s) had untolerated taint {nvidia.com/gpu: present}.", "toleration"),
    ("unknown_device", "spec.containers[0].resources.limits[nvidia.com/gpu]: Required value: Limit must be set for non overcommitable resources", "under limits"),
    # k8s-device-plugin: cmd/nvidia-device-plugin/main.go, internal/rm.
    ("kubernetes_no_gpu", "I1121 08:12 1 main.go:279] No devices found. Waiting indefinitely.", "default runtime"),
    ("kubernetes_no_gpu", PLUGIN + "Incompatible strategy detected auto\nIf this is a GPU node, did you configure the NVIDIA Container Toolkit?", "default runtime"),
    ("driver_userspace_missing", PLUGIN + "Failed to initialize NVML: could not load NVML library: libnvidia-ml.so.1: cannot open shared object file", "install the driver"),
    ("driver_or_gpu_hung", "I1121 08:12 1 server.go:256] 'nvidia.com/gpu' device marked unhealthy: GPU-1", "reset the GPU"),
    ("kubernetes_no_gpu", "W1121 08:12:10.123456       1 cdi.go:99] No valid resources detected, creating a null CDI handler", "runtimeClassName nvidia"),
    ("kubernetes_no_gpu", ADMISSION + "rpc error: code = Unknown desc = failed to get allocate response: unable to get CDI devices: cannot return a qualified CDI device name with the null CDI handler", "runtimeClassName nvidia"),
    ("kubernetes_no_gpu", "E1121 08:12:10.123460       1 factory.go:100] If this is a GPU node, did you set the docker default runtime to `nvidia`?", "runtimeClassName nvidia"),
    # enroot: conf/hooks/98-nvidia.sh; pyxis: pyxis_slurmstepd.c; Apptainer: --nv.
    ("runtime_binary_missing", "slurmstepd: error: pyxis:     [ERROR] Command not found: nvidia-container-cli, see https://github.com/NVIDIA/libnvidia-container", "nvidia-container-toolkit"),
    ("driver_not_loaded", "[WARN] Kernel module nvidia_uvm is not loaded. Make sure the NVIDIA device driver is installed and loaded.", "modprobe nvidia"),
    ("driver_userspace_missing", "slurmstepd: error: pyxis:     [ERROR] /etc/enroot/hooks.d/98-nvidia.sh exited with return code 1", "nvidia-container-cli info"),
    ("driver_userspace_missing", "INFO:    Could not find any nv files on this host!", "user-space libraries"),
    ("gpus_flag_ignored", 'FATAL:   "nvidia-smi": executable file not found in $PATH', "runtime"),
    ("selinux_denied", "open /dev/nvidiactl: permission denied", "/dev/nvidia*"),
    ("kubernetes_no_gpu", ADMISSION + "rpc error: code = Unknown desc = invalid allocation request for 'nvidia.com/gpu': unknown device: GPU-1", "restart the plugin"),
    ("kubernetes_no_gpu", ADMISSION + "rpc error: maximum request size for shared resources is 1; found 2", "failRequestsGreaterThanOne"),
    ("kubernetes_no_gpu", "unable to load resource managers: failed to construct NVML resource managers: unknown", "runtimeClassName"),
    ("driver_userspace_missing", "failed to construct NVML resource managers: NVML is not available: ERROR_LIBRARY_NOT_FOUND", "install the driver"),
    ("rootless_cgroups", "nvidia-container-cli: container error: file lookup failed: /proc/7/root/x/etc/debian_version: permission denied", "as root"),
    ("cdi_spec_wrong", "failed to generate spec: failed to apply OCI options: CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=GPU-1", "again"),
    ("gpus_flag_ignored", "python: error while loading shared libraries: libcuda.so.1: cannot open shared object file", "runtime"),
    # libnvidia-container: src/cli/configure.c, src/error.c, src/rpc.c, src/driver.c, src/xfuncs.h, src/utils.c.
    ("rootless_cgroups", CLI + "permission error: capability change failed: operation not permitted: unknown", "as root"),
    ("toolkit_config_invalid", CLI + "input error: parse user/group failed: no such file or directory", "config.toml"),
    ("requirement_invalid", CLI + "input error: too many requirements", "NVIDIA_DISABLE_REQUIRE=1"),
    ("driver_or_gpu_hung", CLI + "initialization error: driver rpc error: timed out: unknown", "dmesg"),
    ("driver_or_gpu_hung", CLI + "initialization error: rpc error: failed to perform handshake: unknown", "dmesg"),
    ("runtime_binary_missing", CLI + "initialization error: load library failed: libnvidia-container-go.so.1: cannot open shared object file: no such file or directory", "nvidia-container-toolkit"),
    ("driver_userspace_missing", CLI + "initialization error: load library failed: libnvidia-ml.so.1: file too short", "again, from packages"),
    ("driver_userspace_missing", CLI + "initialization error: load library failed: /lib64/libc.so.6: version `GLIBC_2.38' not found (required by /lib64/libnvidia-ml.so.1)", "again, from packages"),
    ("rootless_cgroups", CLI + "initialization error: open failed: /proc/sys/kernel/overflowuid: permission denied", "as root"),
    ("rootless_cgroups", CLI + "detection error: file lookup failed: /run/nvidia-fabricmanager/socket: permission denied", "as root"),
    ("ldconfig_failed", CLI + "detection error: open failed: /etc/ld.so.cache: no such file or directory", "'ldconfig' on the host"),
    ("ldconfig_failed", CLI + "detection error: unsupported file format: /etc/ld.so.cache", "'ldconfig' on the host"),
    ("ldconfig_failed", CLI + "ldcache error: process /sbin/ldconfig.real failed with error code: 1: unknown", "@/sbin/ldconfig"),
    ("ldconfig_failed", CLI + "ldcache error: process /sbin/ldconfig.real terminated with signal 9: unknown", "newer than 1.17.8"),
    ("image_paths_wrong", CLI + "mount error: path error: /usr/lib64/libcuda.so.1 resolves outside of /var/lib/docker/overlay2/a/merged", "image"),
    ("driver_not_loaded", CLI + "mount error: invalid device node: /dev/nvidia0: unknown", "remove the file"),
    ("container_full", CLI + "mount error: file creation failed: /var/lib/docker/overlay2/a/merged/usr/bin/nvidia-smi: no space left on device", "free space"),
    ("mount_failed", CLI + "mount error: file creation failed: /var/lib/docker/overlay2/a/merged/usr/bin/nvidia-smi: is a directory", "in the image"),
    ("mount_failed", CLI + "mount error: mount operation failed: /usr/bin/nvidia-smi: invalid argument: unknown", "in the image"),
    ("driver_userspace_missing", CLI + "mount error: mount operation failed: /a/merged/proc/driver/nvidia: no such file or directory", "restart nvidia-persistenced"),
    ("imex_channel_missing", CLI + "mount error: stat failed: /dev/nvidia-caps-imex-channels/channel0: no such file or directory", "NVreg_CreateImexChannel0"),
    # libnvidia-container: src/cgroup.c, src/cgroup_legacy.c, src/nvcgo/internal/cgroup.
    ("cgroup_v2_old_toolkit", CLI + "container error: cgroup subsystem devices not found: unknown", "update nvidia-container-toolkit"),
    ("cgroup_not_found", CLI + "container error: failed to get device cgroup mount path: no cgroup filesystem mounted for the devices subsytem in mountinfo file", "docker in docker"),
    ("cgroup_not_found", CLI + "container error: failed to get device cgroup mount path: relative path in mount prefix: /../../..", "docker in docker"),
    ("cgroup_not_found", CLI + "container error: failed to get device cgroup root path: no devices cgroup entries found", "mode cdi"),
    ("device_rules_failed", CLI + "mount error: failed to add device rules: unable to generate new device filter program from existing programs: unable to create new device filters program: load program: invalid argument: last insn is not an exit or jmp", "update nvidia-container-toolkit"),
    ("device_rules_failed", CLI + "mount error: open failed: /sys/fs/cgroup/devices/docker/7f/devices.allow: no such file or directory", "mode cdi"),
    ("rootless_cgroups", CLI + "mount error: failed to add device rules: unable to find any existing device filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not permitted", "no-cgroups"),
    # libnvidia-container: src/cli/common.c; nvidia-container-toolkit: cmd/nvidia-container-runtime-hook.
    ("mig_request_refused", CLI + "mig-config error: all: cannot enable mig-config with specific MIG devices selected", "CAP_SYS_ADMIN"),
    ("mig_request_refused", CLI + "mig-monitor error: 0: only 'all' devices are currently supported", "CAP_SYS_ADMIN"),
    ("mig_request_refused", PRESTART + "cannot set MIG_CONFIG_DEVICES in non privileged container: unknown", "CAP_SYS_ADMIN"),
    ("driver_capabilities_wrong", PRESTART + "unsupported capabilities found in 'compute,foo' (allowed 'compute,utility'): unknown", "NVIDIA_DRIVER_CAPABILITIES"),
    ("driver_capabilities_wrong", "[ERROR] Unknown NVIDIA driver capability: foo", "NVIDIA_DRIVER_CAPABILITIES"),
    ("toolkit_config_invalid", PRESTART + "error getting hook config: failed to load config: (3, 1): unexpected token: unknown", "nvidia-ctk config default"),
    ("toolkit_config_invalid", PRESTART + "couldn't open configuration file: (5, 2): was expecting token =", "config.toml"),
    ("toolkit_config_invalid", PRESTART + "Invalid value for config option 'SupportedDriverCapabilities'; foo (supported: compute)", "config.toml"),
    ("runtime_binary_missing", PRESTART + "exec failed: no such file or directory", "install nvidia-container-toolkit"),
    ("runtime_binary_missing", PRESTART + "exec failed: permission denied", "its permissions"),
    ("driver_or_gpu_hung", HOOK + "error running prestart hook #0: hook ran past specified timeout of 10.0s: unknown", "nvidia-smi on the host"),
    # nvidia-container-toolkit: internal/runtime, internal/oci, internal/modifier, internal/requirements, pkg/nvcdi.
    ("toolkit_config_invalid", RUNTIME + "error loading config: open /etc/nvidia-container-runtime/config.toml: permission denied: unknown", "config.toml"),
    ("toolkit_config_invalid", "/usr/bin/nvidia-container-runtime did not terminate successfully: exit status 1: failed to create NVIDIA Container Runtime: failed to construct OCI spec modifier: invalid runtime mode: foo: unknown", "config.toml"),
    ("runtime_binary_missing", RUNTIME + "could not exec '/usr/bin/runc': permission denied: unknown", "install runc"),
    ("driver_too_old", RUNTIME + "failed to create NVIDIA Container Runtime: failed to construct OCI spec modifier: requirements not met: unsatisfied condition: cuda>=12.2 (cuda=11.4): unknown", "newer driver"),
    ("unknown_device", AUTO + 'identifier is not a valid UUID or index: "foo": unknown', "nvidia-smi -L"),
    ("unknown_device", AUTO + "failed to construct device spec generators: failed to get device handle from UUID: Not Found: unknown", "nvidia-smi -L"),
    ("unknown_device", RUNTIME + "failed to construct OCI spec modifier: requesting a CDI device with vendor 'runtime.nvidia.com' is not supported when requesting other CDI devices", "nvidia-ctk cdi list"),
    ("imex_channel_missing", RUNTIME + 'failed to generate CDI spec for mode "imex": IMEX channel 0 not found at /dev/nvidia-caps-imex-channels/channel0: no such file or directory', "NVIDIA_IMEX_CHANNELS"),
    ("runtime_failed", RUNTIME + "could not apply required modification to OCI specification: error modifying OCI spec: failed to get required container edits: failed to discover mounts: x: unknown", "update nvidia-container-toolkit"),
    # nvidia-container-toolkit: cmd/nvidia-ctk, cmd/nvidia-cdi-hook, internal/ldconfig.
    ("driver_library_mismatch", CTK + 'failed to generate CDI spec: failed to create device CDI specs: failed to initialize NVML: Driver/library version mismatch"', "reboot the host, or stop"),
    ("driver_not_loaded", CTK + 'failed to generate CDI spec: no NVIDIA device nodes found"', "nvidia-modprobe"),
    ("driver_not_loaded", CTK + 'failed to load NVIDIA kernel modules: failed to load module nvidia: failed to run command /sbin/modprobe [nvidia]: exit status 1"', "modprobe nvidia"),
    ("rootless_cgroups", CTK + 'failed to create control device nodes: operation not permitted"', "as root"),
    ("cdi_spec_not_written", CTK + 'failed to write spec: failed to write CDI spec: open /etc/cdi/nvidia.yaml: permission denied"', "as root"),
    ("cdi_spec_not_written", CTK + 'failed to save CDI spec: failed to create Spec dir: mkdir /var/run/cdi: permission denied"', "as root"),
    ("engine_config_not_written", CTK + 'unable to flush config: unable to open /etc/docker/daemon.json for writing: open /etc/docker/daemon.json: permission denied"', "as root"),
    ("engine_config_not_written", CTK + "unable to load config for runtime docker: invalid character '}' looking for beginning of object key string\"", "syntax"),
    ("runtime_not_configured", CTK + "unrecognized runtime 'podman'\"", "--device nvidia.com/gpu=all"),
    ("cdi_spec_wrong", CDI_HOOK + CTK + 'failed to create link [libcuda.so.1 /usr/lib64/libcuda.so]: failed to create symlink: file exists": unknown', "by hand"),
    ("cdi_spec_wrong", CDI_HOOK + CTK + 'error running pivot_root: pivot_root .: invalid argument": unknown', "by hand"),
    ("cdi_spec_wrong", HOOK + "error running hook #1: error running hook: exit status 1, stdout: , stderr: Incorrect Usage: flag provided but not defined: -ldconfig-path", "update the toolkit"),
    # nvidia-container-toolkit: cmd/nvidia-ctk-installer; before 1.18 tools/container.
    ("engine_not_restarted", CTK + 'error running nvidia-toolkit: unable to setup runtime: unable to restart containerd: unable to dial: dial unix /runtime/sock-dir/containerd.sock: connect: connection refused"', "socket"),
    ("engine_not_restarted", CTK + 'unable to restart crio: error restarting crio using systemd: exit status 1"', "by hand"),
    ("engine_config_not_written", CTK + 'unable to configure docker: unable to flush config: unable to open /runtime/config-dir/daemon.json for writing: read-only file system"', "read-only /etc"),
    ("runtime_binary_missing", "failed to create shim: OCI runtime create failed: error creating runtime: error constructing NVIDIA Container Runtime: error constructing runc runtime: exec: runc: executable file not found in $PATH", "install runc"),
    # container-device-interface: pkg/cdi (cache.go, container-edits_unix.go, spec.go), pkg/parser, specs-go/version.go.
    ("driver_not_loaded", INJECT + 'failed to stat CDI host device "/dev/nvidia-uvm": no such file or directory', "nvidia-modprobe"),
    ("cdi_spec_wrong", INJECT + 'failed to stat CDI host device "/dev/nvidia3": no such file or directory', "generate it again"),
    ("cdi_spec_wrong", INJECT + 'CDI device ("/dev/nvidia0", "/dev/nvidia0"), host type mismatch (c, b)', "generate it again"),
    ("cdi_spec_wrong", 'failed to load CDI Spec invalid CDI Spec: invalid version "2.0.0"', "update the container engine"),
    ("cdi_spec_wrong", 'failed to load CDI Spec failed to parse CDI Spec "/etc/cdi/nvidia.yaml", no Spec data', "generate it again"),
    ("unknown_device", 'failed to apply OCI options: failed to parse CDI device annotations: invalid CDI device name "nvidia.com/gpu"', "nvidia.com/gpu=0"),
    ("unknown_device", 'Error: unqualified device "nvidia.com/gpu", missing device name', "nvidia.com/gpu=0"),
    # moby: daemon/devices_nvidia_linux.go, errors.go, runtime_unix.go, pkg/oci/devices_linux.go.
    ("cdi_not_enabled_in_docker", 'docker: Error response from daemon: no CDI device driver registered: could not select device driver "" with capabilities: [[gpu]]', "features"),
    ("toolkit_missing", 'docker: Error response from daemon: could not select device driver "nvidia.cdi" with capabilities: [[gpu]]', "nvidia-container-toolkit"),
    ("driver_not_loaded", 'docker: Error response from daemon: error gathering device information while adding custom device "/dev/nvidia0": not a device node', "nvidia-modprobe"),
    ("unknown_device", "Error response from daemon: unexpected count in CDI device request", "without a count"),
    ("cdi_registry_failed", 'level=fatal msg="Failed to run CRI service" error="failed to configure CDI registry"', "/etc/cdi"),
    ("device_not_allowed", "Error: CreateContainer failed: device /dev/nvidia0 is specified but is not in allowed_devices", "allowed_devices"),
    ("daemon_config_invalid", "failed to start daemon: runtime nvidia: either a runtimeType or a path must be configured", "correct"),
    # runc: libcontainer/rootfs_linux.go, before 1.1 and since; crun: src/libcrun/linux.c, utils.c.
    ("cdi_spec_wrong", 'container_linux.go:380: starting container process caused: process_linux.go:545: container init caused: rootfs_linux.go:75: mounting "/usr/bin/nvidia-smi" to rootfs at "/usr/bin/nvidia-smi" caused: stat /usr/bin/nvidia-smi: no such file or directory', "again"),
    ("cdi_spec_wrong", HOOK + 'error mounting "/run/nvidia-persistenced/socket" to rootfs at "/run/nvidia-persistenced/socket": mount src=/run/nvidia-persistenced/socket, dst=/run/nvidia-persistenced/socket, dstFd=/proc/thread-self/fd/11, flags=MS_NODEV|MS_BIND|MS_REC: no such file or directory', "again"),
    ("driver_not_loaded", HOOK + 'error mounting "/dev/nvidia0" to rootfs at "/dev/nvidia0": not a directory: unknown', "remove the file"),
    ("driver_not_loaded", HOOK + "error creating device nodes: mount src=/dev/nvidiactl, dst=/dev/nvidiactl: no such file or directory", "nvidia-modprobe"),
    ("rootless_cgroups", HOOK + "error creating device nodes: create device inode /dev/nvidia0: operation not permitted", "as root"),
    ("cdi_spec_wrong", CRUN + "stat `/usr/lib64/libnvidia-ml.so.565.77`: No such file or directory", "again"),
    ("cdi_spec_wrong", CRUN + "open_tree `/usr/lib64/libcuda.so.565.77`: No such file or directory", "again"),
    ("gpus_flag_ignored", HOOK + 'exec: "/usr/bin/nvidia-smi": stat /usr/bin/nvidia-smi: no such file or directory: unknown', "runtime"),
    ("rootless_cgroups", CRUN + "mknod `/dev/nvidia0`: Operation not permitted", "as root"),
    ("driver_not_loaded", CRUN + "open `/dev/nvidia0`: No such file or directory", "nvidia-modprobe"),
    # containerd: internal/cri/server, core/runtime/v2; CRI-O: internal/oci, pkg/config; podman: libpod.
    ("cdi_not_enabled_in_docker", "Error: CDI devices (nvidia.com/gpu=0) requested but CDI support is explicitly disabled", "enable_cdi"),
    ("runtime_not_configured", SANDBOX + 'failed to find runtime handler "nvidia"', "--runtime=containerd"),
    ("runtime_not_configured", "ctr: invalid runtime name nvidia, correct runtime name should be either format like `io.containerd.runc.v2` or a full path to the binary", "--gpus 0"),
    ("runtime_not_configured", 'failed to resolve runtime path: runtime "io.containerd.nvidia.v1" binary not installed "containerd-shim-nvidia-v1": file does not exist', "BinaryName"),
    ("runtime_not_configured", 'validating runtime config: runtime validation: "nvidia" not found in $PATH: exec: "nvidia": executable file not found in $PATH', "--runtime=crio"),
    ("runtime_not_configured", "Error: runtime nvidia is missing: OCI runtime attempted to invoke a command that was not found", "leave out --runtime"),
    ("runtime_not_configured", "Error: no valid executable found for OCI runtime nvidia: invalid argument", "leave out --runtime"),
    # Slurm: src/interfaces/gpu.c, gres.c; sinfo cuts the reason.
    ("slurm_without_nvml", "slurmd: fatal: We were configured to autodetect nvml functionality, but we weren't able to find that lib when Slurm was configured.", "gres.conf"),
    ("slurm_without_nvml", "slurmd: We were configured with nvml functionality, but that lib wasn't found on the system. Attempted loading libnvidia-ml.so", "gres.conf"),
    ("slurm_no_gpu", "Reason=gres/gpu count reported lower than configured (0 < 4)", "slurmd -G"),
    ("slurm_no_gpu", "gres/gpu count repor slurm     2026-04-14T06:39:53 slinky-0", "slurmd -G"),
    ("not_gpu", "Error: preparing container 3e41 for attach: crun: fsopen_mount `tmpfs`: Function not implemented: OCI runtime error", "runc"),
    # moby 29.3 and newer: daemon/devices_amd_linux.go.
    ("no_cdi_spec_or_no_gpu", "docker: Error response from daemon: failed to discover GPU vendor from CDI: no known GPU vendor found", "restart docker"),
    ("toolkit_missing", "docker: Error response from daemon: AMD CDI spec not found", "--device nvidia.com/gpu=all"),
    ("no_cdi_spec_or_no_gpu", "docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all", "nvidia-ctk cdi generate"),
    ("no_cdi_spec_or_no_gpu", "Error: converting GPU identifiers to CDI devices: no known GPU vendor found in CDI specs", "nvidia-ctk cdi generate"),
    # k8s-device-plugin: cmd/nvidia-device-plugin, cmd/config-manager, internal/plugin, internal/rm.
    ("kubernetes_no_gpu", STARTING + "error getting plugins: invalid MIG configuration: at least one device with migEnabled=true was not configured correctly: device 0 has no MIG devices configured", "mixed or none"),
    ("kubernetes_no_gpu", PLUGIN + "error building device map: error building device map from config.resources: invalid MIG configuration: more than one MIG device type present on node", "one size"),
    ("kubernetes_no_gpu", STARTING + "unable to load config: unable to finalize config: unable to parse config file: error parsing config file: unmarshal error: x", "ConfigMap"),
    ("kubernetes_no_gpu", STARTING + "CDI --device-list-strategy options are only supported on NVML-based systems", "flags"),
    ("kubernetes_no_gpu", PLUGIN + "Could not start device plugin for 'nvidia.com/gpu': error waiting for MPS daemon: error checking MPS daemon health: failed to send command to MPS daemon: exit status 1", "nvidia-mps-control-daemon"),
    ("kubernetes_no_gpu", STARTING + "error getting plugins: unable to create plugins: connection refused", "whole log"),
    ("kubernetes_no_gpu", PLUGIN + "GRPC server for 'nvidia.com/gpu' has repeatedly crashed recently. Quitting", "whole log"),
    ("runtime_failed", RUNTIME + "failed to create NVIDIA Container Runtime: error reading the bundle: permission denied: unknown", "nvidia-smi"),
    ("kubernetes_no_gpu", STARTING + "using --mig-strategy=mixed is not supported with MPS", "time-slicing"),
    ("kubernetes_no_gpu", PLUGIN + "Could not register device plugin: context deadline exceeded", "kubelet runs"),
    ("kubernetes_no_gpu", "2021/01/05 Could not contact Kubelet, retrying. Did you enable the device plugin feature gate?", "kubelet runs"),
    ("kubernetes_no_gpu", PLUGIN + "failed to create FS watcher for /var/lib/kubelet/device-plugins/: too many open files", "fs.inotify"),
    ("kubernetes_no_gpu", ADMISSION + "rpc error: code = Unknown desc = invalid allocation request: unknown device: GPU-1, which is unexpected", "restart the plugin"),
    ("driver_or_gpu_hung", "I0101 1 health.go:92] unable to get device handle from UUID: Not Found; marking it as unhealthy", "reset the GPU"),
    ("driver_or_gpu_hung", "W0101 1 health.go:82] Could not determine device placement for MIG-1: x; Marking it unhealthy.", "reset the GPU"),
    ("driver_or_gpu_hung", "I0101 1 health.go:92] Marking device GPU-1 as unhealthy: Unknown Error", "reset the GPU"),
    # kubernetes: pkg/kubelet/cm/devicemanager, pkg/kubelet/lifecycle/predicate.go; the validation of pods.
    ("kubernetes_no_gpu", ADMISSION + "can't allocate unregistered device nvidia.com/gpu, which is unexpected", "restart the plugin"),
    ("kubernetes_no_gpu", ADMISSION + "previously allocated devices are no longer healthy; cannot allocate unhealthy devices nvidia.com/gpu, which is unexpected", "Xid"),
    ("kubernetes_no_gpu", ADMISSION + "Unknown Device Plugin nvidia.com/gpu, which is unexpected", "restart the plugin"),
    ("kubernetes_no_gpu", "Warning  OutOfnvidia.com/gpu  5s  kubelet  Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 8, capacity: 8", "restart the plugin"),
    ("unknown_device", 'The Pod "x" is invalid: spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources', "under limits"),
    ("unknown_device", 'The Pod "x" is invalid: spec.containers[0].resources.limits[nvidia.com/gpu]: Invalid value: resource.Quantity{i:resource.int64Amount{value:5, scale:-1}, Format:"DecimalSI"}: must be an integer', "whole number"),
    # Apptainer: internal/pkg/runtime/engine/apptainer/prepare_linux.go, internal/pkg/runtime/launch, internal/pkg/util/gpu.
    ("nvccli_refused", "FATAL:   nvidia-container-cli not allowed in setuid mode", "--nv"),
    ("nvccli_refused", "FATAL:   --fakeroot does not support --nvccli in set-uid installations", "--userns"),
]  # fmt: skip

UNKNOWN = [
    "docker: Error response from daemon: a message of a later release",
    "Error: crun: a message of a later release",
    "Error: setting up CDI devices: a message of a later release",
    SANDBOX + "a message of a later release",
    ADMISSION + "a message of a later release, which is unexpected",
    "0/4 nodes are available: a reason of a later release.",
]


@pytest.mark.parametrize("text", UNKNOWN)
@pytest.mark.parametrize("kind", ["dmesg", "installer-log", "nvidia-smi"])
def test_an_unknown_message_of_an_engine_is_not_read_as_another_output(kind: str, text: str) -> None:
    form = explain.KINDS[kind].read(text.encode()).get("form")
    assert form == "a container engine or NVIDIA's container programs"


# libnvidia-container prints nvmlErrorString (nvml.h) after "nvml error: ".
STATUSES = {
    "driver not loaded": "driver_not_loaded",
    "driver/library version mismatch": "driver_library_mismatch",
    "insufficient permissions": "selinux_denied",
    "function not found": "driver_too_old",
    "argument version mismatch": "driver_too_old",
    "gpu is lost": "driver_or_gpu_hung",
    "gpu requires reset": "driver_or_gpu_hung",
    "timeout": "driver_or_gpu_hung",
    "unknown error": "driver_or_gpu_hung",
    "insufficient external power": "gpu_power_cable",
    "gpu access blocked by the operating system": "gpu_access_blocked",
    "uninitialized": "nvml_failed",
    "invalid argument": "nvml_failed",
    "not supported": "nvml_failed",
    "already initialized": "nvml_failed",
    "not found": "nvml_failed",
    "insufficient size": "nvml_failed",
    "interrupt request issue": "nvml_failed",
    "corrupted inforom": "nvml_failed",
    "in use by another client": "nvml_failed",
    "insufficient memory": "nvml_failed",
    "no data": "nvml_failed",
}


@pytest.mark.parametrize("step", ["initialization", "detection"])
@pytest.mark.parametrize(("status", "cause"), STATUSES.items())
def test_every_status_of_nvml_is_read_behind_the_toolkit(status: str, cause: str, step: str) -> None:
    answer = explain.KINDS["container-error"].read(f"{CLI}{step} error: nvml error: {status}: unknown".encode())
    assert len(answer["problems"]) == 1 and answer["cause"] == cause


def test_an_unknown_failure_of_a_hook_is_not_called_unrelated_to_gpus() -> None:
    answer = explain.KINDS["container-error"].read((PRESTART + "could not decode container state: EOF").encode())
    assert answer["problems"] == [] and answer["cause"] is None


@pytest.mark.parametrize(("cause", "text", "remedy"), CASES)
def test_a_message_has_one_cause_and_its_remedy(cause: str, text: str, remedy: str) -> None:
    answer = explain.KINDS["container-error"].read(text.encode())
    assert len(answer["problems"]) == 1 and answer["cause"] == cause
    assert remedy in answer["problems"][0]["remedy"]


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-device-plugin: something nobody knows was not recognized",
        "nvidia-container-cli: an error of a later release",
        "kubelet: no devices found in the pool of another vendor",
    ],
)
def test_an_unknown_message_of_a_known_program_stays_unknown(text: str) -> None:
    answer = explain.KINDS["container-error"].read(text.encode())
    assert answer["problems"] == [] and answer["cause"] != "no_devices"


def test_the_same_words_are_explained_once_and_others_too() -> None:
    text = "unresolvable CDI devices nvidia.com/gpu=9\nunresolvable CDI devices amd.com/gpu=0\n"
    answer = explain.KINDS["container-error"].read(text.encode())
    assert [(row["code"], row["line"]) for row in answer["problems"]] == [("cdi_spec_wrong", 1), ("cdi_not_nvidia", 2)]
