"""Installers stored on a host beforehand: downloaded and verified, used only unchanged, and no more than needed."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.driver.runfile import store as runfile_store
from plugins.module_utils.gpu_ready.driver.runfile.fetch import RunfileLimits
from plugins.module_utils.gpu_ready.driver.runfile.spec import RunfileError
from plugins.module_utils.gpu_ready.driver.runfile.store import StoredInstaller
from tests.unit import web_server

VERSION = "580.178.04"
BODY = f'#!/bin/sh\nlabel="NVIDIA Accelerated Graphics Driver for Linux-x86_64 {VERSION}"\n'.encode()
SHA = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    root = tmp_path / "served"
    root.mkdir()
    (root / "a.run").write_bytes(BODY)
    (root / "a.run.sha256sum").write_text(f"{SHA}  a.run\n")

    with web_server.serve_directory(root) as url:
        yield url


def store(directory: Path, installer: StoredInstaller) -> bool:
    return runfile_store.store_installer(installer, "x86_64", RunfileLimits(), str(directory))


def test_an_installer_is_downloaded_once_and_found_without_network(server: str, tmp_path: Path) -> None:
    installer = StoredInstaller(VERSION, server + "/a.run", sha256_url=server + "/a.run.sha256sum")
    assert store(tmp_path / "in", installer)
    assert not store(tmp_path / "in", installer._replace(source="http://127.0.0.1:1/a.run"))
    found = runfile_store.find_installer(VERSION, SHA, str(tmp_path / "in"))
    assert found and found.sha256 == SHA and Path(found.location).read_bytes() == BODY
    assert sorted(path.name for path in (tmp_path / "in").iterdir()) == [
        f"NVIDIA-driver-{VERSION}.run",
        f"NVIDIA-driver-{VERSION}.run.sha256",
    ]
    assert runfile_store.find_installer(VERSION, "0" * 64, str(tmp_path / "in")) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sha256": "0" * 64, "sha256_url": ""}, "has sha256"),
        ({"sha256_url": ""}, "cannot be verified"),
        ({"version": "595.91.07"}, "expected 595.91.07"),
    ],
)
def test_an_unverified_file_leaves_nothing(server: str, tmp_path: Path, change: dict[str, str], words: str) -> None:
    installer = StoredInstaller(VERSION, server + "/a.run", sha256_url=server + "/a.run.sha256sum")
    with pytest.raises(GpuReadyError, match=words):
        store(tmp_path / "in", installer._replace(**change))
    assert list((tmp_path / "in").iterdir()) == []
    assert runfile_store.find_installer(VERSION, store=str(tmp_path / "in")) is None


def test_a_file_of_the_control_node_is_verified_on_the_host(tmp_path: Path) -> None:
    installer = StoredInstaller(VERSION, "/srv/NVIDIA-Linux-x86_64-580.178.04.run")
    with pytest.raises(RunfileError, match="there is no installer"):
        store(tmp_path, installer)
    file = Path(runfile_store.installer_path(VERSION, str(tmp_path)))
    file.write_bytes(BODY)
    assert runfile_store.find_installer(VERSION, store=str(tmp_path)) is None
    assert store(tmp_path, installer) and runfile_store.find_installer(VERSION, SHA, str(tmp_path))
    file.write_bytes(BODY + b"changed")
    with pytest.raises(RunfileError, match="expected " + SHA):
        store(tmp_path, installer._replace(sha256=SHA))
    assert runfile_store.find_installer(VERSION, store=str(tmp_path)) is None


def test_installers_of_other_versions_are_removed(tmp_path: Path) -> None:
    for version in (VERSION, "470.256.02", "595.91.07"):
        file = Path(runfile_store.installer_path(version, str(tmp_path)))
        file.write_bytes(BODY)
        Path(str(file) + ".sha256").write_text("0\n")
    (tmp_path / "other").write_text("")
    assert runfile_store.delete_other_versions([VERSION, "595.91.07"], str(tmp_path)) == ["470.256.02"]
    assert len(list(tmp_path.iterdir())) == 5
    assert runfile_store.delete_other_versions([VERSION], str(tmp_path / "absent")) == []
