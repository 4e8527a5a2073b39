"""What uses NVIDIA's modules, and which are missing; why a module does not load is in test_failure.py."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.driver import dkms, kernel_module
from tests.unit.recorded import RecordedHost

MODULES = {
    "/sys/module/nvidia/version": "580.95.05\n",
    "/sys/module/nvidia/refcnt": "1\n",
    "/sys/module/nvidia/holders/nvidia_uvm": "",
    "/sys/module/nvidia_uvm/refcnt": "0\n",
}


def test_loaded_modules_in_the_order_of_unloading() -> None:
    host = RecordedHost(files=MODULES)
    assert kernel_module.loaded_modules(host) == ["nvidia_uvm", "nvidia"]
    assert kernel_module.loaded_version(host) == "580.95.05"
    assert kernel_module.module_users(host, ["nvidia_uvm", "nvidia"]) == ""


def test_a_process_with_an_open_device_is_named() -> None:
    host = RecordedHost(
        files=dict(MODULES, **{"/proc/42/cmdline": "python3\0train.py\0", "/proc/42/fd/7": ""}),
        links={"/proc/42/fd/7": "/dev/nvidia0"},
    )
    assert kernel_module.module_users(host, ["nvidia_uvm", "nvidia"]) == "process 42 (python3 train.py)"


def test_a_process_is_named_without_its_secrets() -> None:
    host = RecordedHost(
        files=dict(MODULES, **{"/proc/42/cmdline": "serve\0--api_key\0abc\0", "/proc/42/fd/7": ""}),
        links={"/proc/42/fd/7": "/dev/nvidia0"},
    )
    assert kernel_module.module_users(host, ["nvidia_uvm", "nvidia"]) == "process 42 (serve --api_key ***)"


def test_a_module_of_others_is_named() -> None:
    host = RecordedHost(files=dict(MODULES, **{"/sys/module/nvidia/holders/strange": ""}))
    assert kernel_module.module_users(host, ["nvidia_uvm", "nvidia"]) == "the module strange"


def test_references_without_an_owner_count_as_use() -> None:
    host = RecordedHost(files=dict(MODULES, **{"/sys/module/nvidia/refcnt": "3\n"}))
    assert "nvidia (2 references" in kernel_module.module_users(host, ["nvidia_uvm", "nvidia"])


def test_device_nodes() -> None:
    host = RecordedHost(
        files={
            "/proc/devices": "Character devices:\n195 nvidia\n511 nvidia-uvm\n\nBlock devices:\n  8 sd\n",
            "/proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: \t\t Tesla P40\nDevice Minor: \t 3\n",
        }
    )
    assert kernel_module.device_nodes(host) == {
        "/dev/nvidiactl": (195, 255),
        "/dev/nvidia3": (195, 3),
        "/dev/nvidia-uvm": (511, 0),
        "/dev/nvidia-uvm-tools": (511, 1),
    }


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("nouveau/drivers/pci:nouveau/0000:01:00.0", "nouveau"),
        ("nova_core/drivers/pci:NovaCore/0000:01:00.0", "nova_core"),
        ("nouveau/drivers/pci:nouveau/bind", None),
        ("nvidia/drivers/pci:nvidia/0000:01:00.0", None),
    ],
)
def test_the_kernels_own_driver_that_has_a_gpu(path: str, expected: str | None) -> None:
    assert kernel_module.bound_kernel_driver(RecordedHost(files={"/sys/module/" + path: ""})) == expected


K = "5.14.0-570.el9.x86_64"


PARAMS = (
    "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 44\nDeviceFileMode: 432\n"
)


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (None, (0, 0, 0o666)),
        ("", (0, 0, 0o666)),
        (PARAMS, (0, 44, 0o660)),
        (PARAMS.replace("ModifyDeviceFiles: 1", "ModifyDeviceFiles: 0"), None),
        (PARAMS.replace("432", "garbage"), (0, 44, 0o666)),
    ],
)
def test_owner_of_device_nodes_follows_the_drivers_options(params: str | None, expected: Any) -> None:
    """options nvidia NVreg_DeviceFileGID=44 NVreg_DeviceFileMode=0660 keeps GPUs from the other users of a host."""
    host = RecordedHost(files={} if params is None else {"/proc/driver/nvidia/params": params})
    assert kernel_module.node_access(host) == expected


@pytest.mark.parametrize(
    ("status", "present", "expected"),
    [
        (f"nvidia/580.95.05, {K}, x86_64: installed (Differences between built and installed modules)", [], ["nvidia/580.95.05"]),
        (f"nvidia-open, 580.95.05, {K}, x86_64: installed (WARNING! Diff between built and installed module!)", ["x.ko"], ["nvidia-open/580.95.05"]),
        # Signed or compressed by others: present, and not to be changed.
        (f"nvidia/580.95.05, {K}, x86_64: installed (Differences between built and installed modules)", ["nvidia.ko.xz"], []),
        (f"nvidia/580.95.05, {K}, x86_64: installed", [], []),
        (f"nvidia/580.95.05, {K}, x86_64: built", [], []),
        ("nvidia/580.95.05, 6.1.0-1, x86_64: installed (Differences between built and installed modules)", [], []),
        (f"zfs/2.1, {K}, x86_64: installed (Differences between built and installed modules)", [], []),
        ("", [], []),
    ],
)  # fmt: skip
def test_modules_that_dkms_installed_and_that_are_missing(status: str, present: list[str], expected: list[str]) -> None:
    assert dkms.missing_modules(status + "\n", K, present) == expected


@pytest.mark.parametrize(
    ("status", "present", "expected"),
    [
        ("", [], ["nvidia-open/580.178.04"]),  # removed from DKMS by the %preun of a reinstalled package
        (f"zfs/2.1, {K}, x86_64: installed", [], ["nvidia-open/580.178.04"]),
        ("nvidia-open/580.178.04: added", [], []),  # dkms autoinstall builds what was added
        (f"nvidia-open, 580.178.04, {K}, x86_64: built", [], []),
        (f"nvidia-open/580.178.04, {K}, x86_64: installed", [], []),
        ("", ["nvidia.ko"], []),
    ],
)
def test_modules_that_dkms_does_not_list(status: str, present: list[str], expected: list[str]) -> None:
    host = RecordedHost(
        files={
            "/usr/src/nvidia-open-580.178.04/dkms.conf": "",
            "/usr/src/nvidia-fs-2.27.3/dkms.conf": "",
            "/usr/src/k/x": "",
        }
    )
    sources = dkms.module_sources(host)
    assert sources == ["nvidia-open/580.178.04"]
    assert dkms.missing_modules(status + "\n", K, present, sources) == expected
