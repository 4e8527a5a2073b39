"""The command lines of the engines: docker's unchanged, and names as podman and ctr expect them."""

import pytest

from plugins.module_utils.gpu_ready.containers import cdi, cdi_build, engine


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("ubuntu", "docker.io/library/ubuntu:latest"),
        ("ubuntu:24.04", "docker.io/library/ubuntu:24.04"),
        ("nvidia/cuda:13.0.0-base", "docker.io/nvidia/cuda:13.0.0-base"),
        ("nvcr.io/nvidia/cuda", "nvcr.io/nvidia/cuda:latest"),
        ("registry:5000/site/image", "registry:5000/site/image:latest"),
        ("localhost/mine:1", "localhost/mine:1"),
        ("site/image@sha256:" + 64 * "0", "docker.io/site/image@sha256:" + 64 * "0"),
    ],
)
def test_full_names(image: str, full: str) -> None:
    assert engine.full_name(image) == full
    assert engine.image_name("docker", image) == image


@pytest.mark.parametrize(
    ("which", "out", "name"),
    [
        ("docker", "Loaded image: site/image:1\n", "site/image:1"),
        ("docker", "Loaded image ID: sha256:abc\n", "sha256:abc"),
        ("podman", "Getting image source signatures\nLoaded image: docker.io/site/image:1\n", "docker.io/site/image:1"),
        ("podman", "Loaded image(s): localhost/image:1,localhost/image:2\n", "localhost/image:1"),
        ("containerd", "unpacking docker.io/site/image:1 (sha256:0f)...done\n", "docker.io/site/image:1"),
        ("containerd", "", None),
    ],
)
def test_the_name_of_a_loaded_image(which: str, out: str, name: str | None) -> None:
    assert engine.loaded_name(which, out) == name


def test_presence_of_an_image_in_the_output_of_ctr() -> None:
    assert [engine.has_image("containerd", 0, out) for out in ("", "docker.io/site/image:1\n")] == [False, True]
    assert [engine.has_image("podman", rc, "") for rc in (0, 125)] == [True, False]


def test_command_line_of_docker_is_unchanged() -> None:
    argv = engine.run_command("docker", "n", ["A=1"], ["--gpus", "all"], "ubuntu:24.04", ["nvidia-smi"])
    assert " ".join(argv) == "docker run --rm --name n --network none --env A=1 --gpus all ubuntu:24.04 nvidia-smi"
    assert engine.remove_commands("docker", "n") == [["docker", "rm", "--force", "n"]]


@pytest.mark.parametrize("mode", ["toolkit", "cdi", "native"])
def test_podman_uses_cdi_names_of_devices_in_every_mode(mode: str) -> None:
    args = engine.gpu_args("podman", mode)
    argv = engine.run_command("podman", "n", [], args, "ubuntu:24.04", ["true"])
    assert argv[-5:] == ["label=disable", "--device", "nvidia.com/gpu=all", "docker.io/library/ubuntu:24.04", "true"]


def test_ctr_runs_in_an_own_namespace() -> None:
    args = engine.gpu_args("containerd", "toolkit")
    argv = engine.run_command("containerd", "n", [], args, "ubuntu:24.04", ["true"])
    assert argv[:5] == ["ctr", "--namespace", "gpu-ready", "run", "--rm"]
    assert argv[-3:] == ["docker.io/library/ubuntu:24.04", "n", "true"]
    assert [call[3:5] for call in engine.remove_commands("containerd", "n")] == [
        ["tasks", "delete"],
        ["containers", "delete"],
    ]
    assert engine.pull_command("containerd", "ubuntu") is not None and engine.pull_command("podman", "ubuntu") is None


def test_own_specification_as_arguments_of_an_old_ctr() -> None:
    driver = cdi.DriverFiles(
        "580.1", (cdi.DriverLibrary("/lib/libcuda.so.580.1", ("libcuda.so.1",)),), {}, ("/dev/nvidiactl",)
    )
    text = cdi_build.build_spec(driver, [cdi.CdiGpu(0, "/dev/nvidia0", "GPU-a"), cdi.CdiGpu(1, "/dev/nvidia1", None)])
    args = engine.ctr_arguments(text, ["GPU-a"])
    assert args is not None
    assert args[:4] == ["--env", "NVIDIA_VISIBLE_DEVICES=void", "--device", "/dev/nvidiactl"]
    assert args[-2:] == ["--device", "/dev/nvidia0"] and "/dev/nvidia1" not in args
    assert "type=bind,src=/lib/libcuda.so.580.1,dst=/usr/lib64/libcuda.so.1,options=ro:nosuid:nodev:bind" in args
    assert "/dev/nvidia1" in (engine.ctr_arguments(text, ["all"]) or [])


@pytest.mark.parametrize("text", ["", "kind: nvidia.com/gpu", "[]", '{"devices": 1}', '{"devices": [{"name": "0"}]}'])
def test_an_invalid_specification_gives_no_arguments(text: str) -> None:
    assert engine.ctr_arguments(text, ["0"]) is None


def test_hooks_cannot_be_given_to_ctr() -> None:
    text = '{"devices": [{"name": "0", "containerEdits": {"hooks": [{"hookName": "createContainer"}]}}]}'
    assert engine.ctr_arguments(text, ["0"]) is None
