"""The message of a failed verification: the cause first, what follows from it folded, then the remedy."""

import pytest

from plugins.plugin_utils.gpu_ready.verdict.checks import Check, failure_message, judge


def failed(name: str, cause: str = "", expected: str = "x", found: str = "y") -> Check:
    return judge(name, False, expected, found, cause or f"cause of {name}", f"remedy of {name}")


@pytest.mark.parametrize(
    ("names", "roots"),
    [
        (["gpus_on_host", "gpus_in_container", "compute", "compute_in_container"], ["gpus_on_host"]),
        (["gpus_on_host", "gpus_in_container", "xid"], ["xid"]),
        (["driver_module", "driver_at_boot", "gpus_on_host"], ["driver_at_boot"]),
        (["driver_at_boot", "gpus_on_host"], ["driver_at_boot", "gpus_on_host"]),
        (["driver_module", "gpus_on_host", "gpus_in_container", "compute"], ["driver_module"]),
        (["driver_on_disk", "driver_userspace", "gpus_on_host", "gpus_in_container"], ["driver_on_disk"]),
        (["driver_userspace", "nvidia_smi", "gpus_on_host", "compute"], ["driver_userspace"]),
        (["docker", "container_runtime", "gpus_in_container", "compute_in_container"], ["docker"]),
        (["container_runtime", "gpus_in_container"], ["container_runtime"]),
        (["fabric_manager", "compute"], ["fabric_manager"]),
        (["compute", "compute_in_container", "framework"], ["compute"]),
        (["image_requirement", "gpus_in_container"], ["image_requirement"]),
        (["containerd", "cdi_for_containerd", "gpus_in_containerd_container"], ["containerd"]),
        (["gpus_in_podman_container", "uuids_in_podman_container"], ["gpus_in_podman_container"]),
        (["gpus_on_host", "docker", "gpus_in_container"], ["gpus_on_host", "docker"]),
        (["persistence_mode", "fabric_manager"], ["persistence_mode", "fabric_manager"]),
        (["gpus_in_container"], ["gpus_in_container"]),
        (["uuids_in_container"], ["uuids_in_container"]),
        (["docker", "gpus_in_podman_container"], ["docker", "gpus_in_podman_container"]),
        (["module_parameters", "gpus_on_host"], ["module_parameters", "gpus_on_host"]),
    ],
)
def test_only_causes_are_worded(names: list[str], roots: list[str]) -> None:
    message = failure_message([judge("other", True, "a", "b"), *(failed(name) for name in names)])
    text, _, remedy = message.partition(" Remedy: ")
    assert [name for name in names if f"cause of {name} (" in text] == [name for name in names if name in roots]
    assert remedy.rstrip(".").split("; ") == [f"remedy of {name}" for name in roots]
    consequences = [name.replace("_", " ") for name in names if name not in roots]
    assert ("Consequences: " in text) == bool(consequences)
    assert text.endswith(f"Consequences: {', '.join(consequences)}." if consequences else ").")


def test_the_cause_comes_before_what_was_compared() -> None:
    lost = "Unable to determine the device handle for GPU0: GPU is lost."
    check = judge("gpus_on_host", False, "4 GPUs", lost, "a GPU does not respond on the PCI bus", "reboot; check power")
    assert failure_message([check]) == (
        "gpus on host: a GPU does not respond on the PCI bus (expected 4 GPUs, found: Unable to determine the device "
        "handle for GPU0: GPU is lost). Remedy: reboot; check power."
    )
    assert failure_message([Check("gpus_in_container", False, "1 GPU", "0 GPUs")]) == (
        "gpus in container: expected 1 GPU, found: 0 GPUs."
    )
    assert failure_message([judge("x", True, "a", "b")]) == ""


NAMES = [
    "driver_module",
    "driver_at_boot",
    "driver_on_disk",
    "driver_userspace",
    "driver_version",
    "gpus_on_pci",
    "gpus_on_host",
    "nvml_version",
    "xid",
    "docker",
    "container_runtime",
    "gpus_in_container",
    "uuids_in_container",
    "compute",
    "compute_in_container",
    "framework",
    "fabric_manager",
    "podman",
    "cdi_for_containerd",
    "containerd",
    "gpus_in_containerd_container",
    "image_requirement",
    "persistence_mode",
    "nvidia_smi",
]


def test_whatever_fails_has_a_cause() -> None:
    for one in NAMES:
        for other in NAMES:
            assert failure_message([failed(one), failed(other)]), (one, other)
