"""The driver volume: what belongs into it, when it is out of date, and how it is created and removed on a real file system."""

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes
from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.containers import cdi, driver_volume, driver_volume_files
from plugins.module_utils.gpu_ready.facts import docker as docker_facts
from tests.unit.test_cdi import LIB, host_with_driver

ROOT = "/usr/local/nvidia-driver"


def test_layout_has_each_file_once_and_links_for_its_other_names() -> None:
    layout = driver_volume.plan_layout(docker_facts.driver_files(host_with_driver()))
    assert layout is not None and layout.version == "535.183.01"
    assert layout.files == {
        "bin/nvidia-smi": "/usr/lib/nvidia/current/nvidia-smi",
        "lib64/libcuda.so.535.183.01": f"{LIB}/nvidia/current/libcuda.so.535.183.01",
        "lib64/libnvidia-gpucomp.so.535.183.01": f"{LIB}/libnvidia-gpucomp.so.535.183.01",
        "lib64/libnvidia-ml.so.535.183.01": f"{LIB}/nvidia/current/libnvidia-ml.so.535.183.01",
    }
    assert layout.links == {
        "lib64/libcuda.so.1": "libcuda.so.535.183.01",
        "lib64/libnvidia-ml.so.1": "libnvidia-ml.so.535.183.01",
    }


def test_no_volume_for_a_host_without_a_driver() -> None:
    assert driver_volume.plan_layout(cdi.DriverFiles(None, (), {}, ())) is None


def host_with_volume(**more: str) -> Any:
    """A host whose volume is that of its driver."""
    host = host_with_driver(**more)
    layout = driver_volume.plan_layout(docker_facts.driver_files(host))
    assert layout is not None
    place = f"{ROOT}/{layout.version}"
    host.files.update({f"{place}/{name}": host.read(origin) or "" for name, origin in layout.files.items()})
    host.links.update({f"{place}/{name}": target for name, target in layout.links.items()})
    host.links[f"{ROOT}/current"] = layout.version
    return host


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda host: None, None),
        (lambda host: host.links.update({f"{ROOT}/current": "470.1.2"}), "it contains driver 470.1.2, the host has driver 535.183.01"),
        (lambda host: host.links.pop(f"{ROOT}/current"), "it contains nothing, the host has driver 535.183.01"),
        (lambda host: host.files.update({f"{ROOT}/470.1.2/bin/nvidia-smi": ""}), "it contains 470.1.2 of another driver"),
        (lambda host: host.links.pop(f"{ROOT}/535.183.01/lib64/libcuda.so.1"), "lib64/libcuda.so.1 is not in it"),
        (lambda host: host.files.pop(f"{ROOT}/535.183.01/bin/nvidia-smi"), "bin/nvidia-smi is not in it"),
        # the same version built again: another file under the same name
        (lambda host: host.files.update({"/usr/lib/nvidia/current/nvidia-smi": "new"}), "bin/nvidia-smi in it differs from the host's file"),
        (lambda host: host.files.update({f"{ROOT}/535.183.01/lib64/libold.so": ""}), "lib64/libold.so in it does not belong to this driver"),
    ],
)  # fmt: skip
def test_out_of_date(change: Any, why: "str | None") -> None:
    host = host_with_volume()
    change(host)
    _, runtime = docker_facts.collect(host)
    assert runtime.volume.stale == why


def driver(directory: Path, version: str) -> driver_volume.VolumeLayout:
    """Write the files of a driver."""
    files = {
        f"lib64/libcuda.so.{version}": directory / f"libcuda.so.{version}",
        "bin/nvidia-smi": directory / "nvidia-smi",
    }
    for path in files.values():
        path.write_text(version)
    links = {"lib64/libcuda.so.1": f"libcuda.so.{version}"}
    return driver_volume.VolumeLayout(version, {name: str(path) for name, path in files.items()}, links)


def stale(root: Path, layout: driver_volume.VolumeLayout) -> "str | None":
    return docker_facts.volume_stale(Host(), layout, str(root))


def test_created_replaced_and_repaired(tmp_path: Path) -> None:
    root, recorded = tmp_path / "volume", str(tmp_path / "manifest.json")
    old, new = driver(tmp_path, "470.1.2"), driver(tmp_path, "535.183.01")
    for layout in (old, new):
        driver_volume_files.create_volume(layout, str(root), recorded)
        assert stale(root, layout) is None
        assert (root / "current/lib64/libcuda.so.1").read_text() == layout.version
    assert sorted(path.name for path in root.iterdir()) == ["535.183.01", "current"]
    assert manifest.read(recorded)["directories"] == {str(root): {}}
    # what a killed run leaves, and a deleted file
    (root / ".new").mkdir()
    (root / "535.183.01/bin/nvidia-smi").unlink()
    assert stale(root, new) is not None
    driver_volume_files.create_volume(new, str(root), recorded)
    assert stale(root, new) is None


def test_the_files_are_the_drivers_own(tmp_path: Path) -> None:
    layout = driver(tmp_path, "535.183.01")
    driver_volume_files.create_volume(layout, str(tmp_path / "volume"), str(tmp_path / "manifest.json"))
    assert (tmp_path / "volume/current/bin/nvidia-smi").samefile(tmp_path / "nvidia-smi")


def test_the_helper_is_valid_for_sh() -> None:
    assert "@" not in driver_volume.HELPER_TEXT.replace('"$@"', "")
    assert f"volume={driver_volume.CURRENT}\n" in driver_volume.HELPER_TEXT
    assert f"specification={cdi.NATIVE}\n" in driver_volume.HELPER_TEXT


def test_restored_keys_are_forgotten_only_when_the_file_is_written(tmp_path: Path) -> None:
    path, config = str(tmp_path / "manifest.json"), "/etc/docker/daemon.json"
    ours = {
        "/runtimes/nvidia": {"after": {"path": "x"}, "made": ["/runtimes"]},
        "/default-runtime": {"after": "nvidia", "before": "crun"},
        "/mtu": {"after": 1400},
    }
    manifest_notes.note_keys(config, None, ours, path)
    back = {
        "/default-runtime": {"before": "nvidia", "after": "crun"},
        "/runtimes": {"before": {"nvidia": {"path": "x"}}},
    }
    manifest_notes.note_keys(config, None, back, path)
    assert manifest.read(path)["daemon_json"][config]["keys"] == ours
    manifest_notes.forget_keys(config, back, path)
    assert json.loads(Path(path).read_text())["daemon_json"][config]["keys"] == {"/mtu": {"after": 1400}}


def test_a_removed_key_of_others_is_recorded(tmp_path: Path) -> None:
    path, config = str(tmp_path / "manifest.json"), "/etc/docker/daemon.json"
    theirs = {"/runtimes/nvidia": {"before": {"path": "x"}}}
    manifest_notes.note_keys(config, "e30K", theirs, path)
    manifest_notes.forget_keys(config, theirs, path)
    assert manifest.read(path)["daemon_json"][config]["keys"] == theirs
