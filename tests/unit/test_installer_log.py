"""Logs of nvidia-installer, DKMS, modprobe and dpkg in their releases, cut, wrapped and prefixed."""

import json
from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.diagnostics import installer_log, messages

CASES: list[tuple[str, dict[str, Any]]] = [
    (
        "Loading new nvidia-current-535.161.08 DKMS files...\nBuilding for 6.1.0-21-amd64\nBuilding initial module for 6.1.0-21-amd64\nError! Bad return status for module build on kernel: 6.1.0-21-amd64 (x86_64)\nConsult /var/lib/dkms/nvidia-current/535.161.08/build/make.log for more information.\ndpkg: error processing package nvidia-kernel-dkms (--configure):\n installed nvidia-kernel-dkms package post-installation script subprocess returned error exit status 10\n",
        {
            "installer_failed": True,
            "causes": ["dkms_build_failed"],
            "driver_version": "535.161.08",
            "kernel": "6.1.0-21-amd64",
            "package": "nvidia-kernel-dkms",
        },
    ),
    (
        "Building module(s)..................\n......(bad exit status: 2)\nFailed command:\nenv NV_VERBOSE=1 make -j8 modules KE\nRNEL_UNAME=6.17.1-surface-2\n\nError! Bad return status for module \nbuild on kernel: 6.17.1-surface-2 (x\n86_64)\nConsult /var/lib/dkms/nvidia-current\n/550.163.01/build/make.log for more \ninformation.\ndpkg: error processing package nvidi\na-kernel-dkms (--configure):",
        {
            "installer_failed": True,
            "causes": ["dkms_build_failed"],
            "driver_version": "550.163.01",
            "kernel": "6.17.1-surface-2",
            "package": "nvidia-kernel-dkms",
        },
    ),
    (
        "Building initial module for 6.17.9-76061709-generic\nERROR (dkms apport): kernel package linux-headers-6.17.9-76061709-generic is not supported\nError! Bad return status for module build on kernel: 6.17.9-76061709-generic (x86_64)\nConsult /var/lib/dkms/nvidia/580.119.02/build/make.log for more information.\ndpkg: error processing package nvidia-dkms-580-open (--configure):",
        {
            "causes": ["dkms_build_failed"],
            "kernel": "6.17.9-76061709-generic",
            "driver_version": "580.119.02",
            "package": "nvidia-dkms-580-open",
        },
    ),
    (
        "WARNING: The Nouveau kernel driver is currently in use by your system.  This driver is incompatible with the NVIDIA driver, and must be disabled before proceeding.\n-> nvidia-installer is not able to perform some of the sanity checks which detect potential installation problems while Nouveau is loaded. Would you like to continue installation without these sanity checks, or abort installation, confirm that Nouveau has been properly disabled, and attempt installation again later? (Answer: Abort installation)\nERROR: Installation has failed.  Please see",
        {"installer_failed": True, "causes": ["nouveau_in_use"]},
    ),
    (
        "WARNING: The Nouveau kernel driver is currently in use by your system.\n-> nvidia-installer is not able ... while Nouveau is loaded. Would you like (Answer: Continue installation)\n-> Proceeding with installation despite the presence of Nouveau. Kernel module load tests will be skipped.\nERROR: Unable to find the kernel source tree for the currently running kernel.\nERROR: Installation has failed.",
        {"causes": ["kernel_headers_missing"]},
    ),
    (
        "WARNING: An NVIDIA kernel module 'nvidia-drm' appears to be already loaded in your kernel.  This may be because it is in use (for example, by an X server, a CUDA program, or the NVIDIA Persistence Daemon), but\n-> Would you like to continue installation and skip the sanity checks? If not, please abort the installation, then close any programs (Answer: Abort installation)\nERROR: Installation has failed.  Please see the file",
        {"causes": ["module_in_use"], "installer_failed": True},
    ),
    (
        "ERROR: Unable to load the kernel module 'nvidia.ko'.  This happens most frequently when ... another driver, such as nouveau, is present\n-> Kernel module load error: Operation not permitted\n-> Kernel messages:\n[  20.1] Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7\nERROR: Installation has failed.",
        {"causes": ["secure_boot_key_rejected"]},
    ),
    (
        "ERROR: Unable to load the kernel module 'nvidia.ko'.  This happens most\nERROR: Installation has failed.",
        {"causes": ["module_load_failed"]},
    ),
    (
        "-> Kernel module load error: Invalid module format\n-> Kernel messages:\n[  20.1] nvidia: version magic '6.1.0-20-amd64 SMP preempt mod_unload modversions ' should be '6.1.0-21-amd64 SMP preempt mod_unload modversions '",
        {"causes": ["invalid_module_format"], "installer_failed": True},
    ),
    (
        "ERROR: The kernel header file '/lib/modules/5.14.0-427.el9.x86_64/build/include/linux/kernel.h' does not exist.  The most likely reason for this is that the kernel source path '/lib/modules/5.14.0-427.el9.x86_64/build' is incorrect.",
        {"causes": ["kernel_headers_missing"], "kernel": "5.14.0-427.el9.x86_64"},
    ),
    (
        "Verifying archive integrity... Error in MD5 checksums: 9a2b is different from 77aa\n",
        {"causes": ["archive_corrupt"], "installer_failed": True},
    ),
    (
        "Verifying archive integrity... Error in check sums 123 456",
        {"causes": ["archive_corrupt"], "installer_failed": True},
    ),
    (
        "Uncompressing NVIDIA Accelerated Graphics Driver for Linux-x86_64 580.95.05....xz: (stdout): Write error: No space left on device\nExtraction failed.\n",
        {"causes": ["no_space"], "installer_failed": True},
    ),
    ("\nERROR: nvidia-installer must be run as root\n", {"causes": ["not_root"], "installer_failed": True}),
    (
        "ERROR: The NVIDIA driver appears to have been installed previously using a different installer. To prevent potential conflicts, it is recommended either to update (Answer: Abort installation)\nERROR: The installation was canceled due to the availability or presence of an alternate driver installation.",
        {"causes": ["other_install_present"]},
    ),
    (
        "DKMS make.log for nvidia-550.163.01 for kernel 6.12.48+deb13-amd64 (x86_64)\nmake: Entering directory '/usr/src/linux-headers-6.12.48+deb13-amd64'\n  MODPOST /var/lib/dkms/nvidia/550.163.01/build/Module.symvers\nERROR: modpost: \"drm_fb\" [nvidia-drm.ko] undefined!\nmake[2]: *** [x] Error 1",
        {"causes": ["dkms_build_failed"], "driver_version": "550.163.01", "kernel": "6.12.48+deb13-amd64"},
    ),
    (
        "DKMS make.log for nvidia-550.163.01 for kernel 6.8.0-40-generic (x86_64)\n/bin/sh: 1: gcc-12: not found\nmake[3]: *** [scripts/Makefile.build:243: nv.o] Error 127",
        {"causes": ["build_tool_missing"], "kernel": "6.8.0-40-generic"},
    ),
    (
        "-> Installing NVIDIA driver version 580.95.05.\n-> Performing CC sanity check with CC=\"/usr/bin/cc\".\n-> Performing CC check.\n-> Kernel source path: '/lib/modules/6.1/build'\n-> Installation of the NVIDIA Accelerated Graphics Driver for Linux-x86_64 (version: 580.95.05) is now complete.",
        {"installer_failed": False, "causes": [], "driver_version": "580.95.05"},
    ),
    (
        "Oct 12 10:00:00 host dkms[812]: Error! Your kernel headers for kernel 5.15.0-1 cannot be found at /lib/modules\nOct 12 10:00:00 host dkms[812]: Please install the linux-headers-5.15.0-1 package",
        {"causes": ["kernel_headers_missing"], "kernel": "5.15.0-1", "installer_failed": True},
    ),
    (
        "modprobe: ERROR: could not insert 'nvidia': Required key not available",
        {"causes": ["secure_boot_key_rejected"], "installer_failed": True},
    ),
    (
        "ERROR: The CC version check failed:\n\nThe kernel was built with gcc version 11.4, but the current compiler version is cc (GCC) 13.\n(Answer: Abort installation)",
        {"causes": ["compiler_mismatch"]},
    ),
    (
        "ERROR: Unable to load the 'nvidia-drm' kernel module.\n-> Kernel module load error: No such device\nERROR: Installation has failed.",
        {"causes": ["no_such_device"]},
    ),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_reading(text: str, expected: dict[str, Any]) -> None:
    answer = installer_log.read(text)
    assert {key: answer.get(key) for key in expected} == expected


def test_a_warning_about_the_gpus_comes_after_the_failure() -> None:
    log = (
        "WARNING: You do not appear to have an NVIDIA GPU supported by the 595.84 NVIDIA Linux graphics driver\n"
        "ERROR: Unable to find the development tool `cc` in your path\n"
    )
    assert [found.code for found in messages.explain("installer-log", log)] == [
        "build_tool_missing",
        "no_supported_gpu",
    ]
    assert installer_log.read(log)["causes"] == ["no_supported_gpu", "build_tool_missing"]


@pytest.mark.parametrize("indent", [None, 4])
def test_a_log_in_json_as_ansible_prints_it(indent: int | None) -> None:
    lines = [
        "-> Installing NVIDIA driver version 580.95.05.",
        "WARNING: The Nouveau kernel driver is currently in use by your system.",
        "-> Proceeding with installation despite the presence of Nouveau.",
        "ERROR: Unable to find the development tool `make` in your path",
        "ERROR: Installation has failed.",
    ]
    text = json.dumps({"stdout": "\n".join(lines)}) if indent is None else json.dumps(lines, indent=indent)
    answer = installer_log.read(text)
    assert (answer["causes"], answer["driver_version"]) == (["build_tool_missing"], "580.95.05")


@pytest.mark.parametrize(
    ("code", "names", "log"),
    [
        ("wrong_architecture", "archive_corrupt", "bash: ./NVIDIA-Linux-aarch64-1.run: cannot execute binary file: Exec format error\n"),
        ("archive_corrupt", "archive_corrupt", "./NVIDIA.run: line 1: syntax error near unexpected token `<'\n"),
        ("other_install_present", "other_install_present", "Error! DKMS tree already contains: nvidia-580.95.05\nYou cannot add it again.\n"),
        ("other_install_present", "other_install_present", "dpkg: error processing archive /x.deb (--unpack):\n trying to overwrite '/usr/lib/libnvidia-ml.so.1', which is also in package libnvidia-ml1 1\n"),
        ("compiler_mismatch", "compiler_mismatch", " Failed to verify gcc version. See log at /var/log/cuda-installer.log for details.\n"),
        ("invalid_module_format", "invalid_module_format", "modprobe: ERROR: could not insert 'nvidia': Unknown symbol in module\n[ 1.0] nvidia: Unknown symbol drm_x (err -2)\n"),
        ("kernel_not_supported", "dkms_build_failed", "ERROR: The kernel you are installing for is a PREEMPT_RT kernel!\n"),
        ("package_manager_busy", "package_manager_busy", "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7\n"),
        ("packages_conflict", "packages_conflict", "The following packages have unmet dependencies:\n a : Depends: b\nE: Unable to correct problems, you have held broken packages.\n"),
        ("dkms_failed", "dkms_build_failed", "Error! One or more modules failed to install during autoinstall.\n"),
        ("dkms_failed", "dkms_build_failed", "Building and installing nvidia-kmod [FAILED]\nBuilding rpms failed; see the log\n"),
        ("module_not_built", "module_load_failed", "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.5.0\n"),
    ],
)  # fmt: skip
def test_other_causes_of_a_failed_installation(code: str, names: str, log: str) -> None:
    found = installer_log.read(log)
    assert (found["installer_failed"], found["causes"]) == (True, [names])
    assert messages.explain("installer-log", log)[0].code == code
