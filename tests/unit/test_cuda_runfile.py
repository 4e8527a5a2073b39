"""Toolkits by NVIDIA's installer: a small shell script in place of it, directories of the test in place of /usr/local."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import files, manifest, manifest_notes
from plugins.module_utils.gpu_ready.base.host import Host, Result
from plugins.module_utils.gpu_ready.cuda import default as cuda_default
from plugins.module_utils.gpu_ready.cuda import runfile as cuda_runfile
from plugins.module_utils.gpu_ready.cuda import toolkit as cuda
from plugins.module_utils.gpu_ready.cuda.cudnn import install as cudnn_install
from plugins.module_utils.gpu_ready.cuda.runfile import ToolkitInstaller, ToolkitPaths
from plugins.module_utils.gpu_ready.cuda.toolkit import installed_release
from plugins.module_utils.gpu_ready.driver.runfile import fetch as runfile_fetch
from plugins.module_utils.gpu_ready.driver.runfile.fetch import InstallerSource
from plugins.module_utils.gpu_ready.driver.runfile.spec import RunfileError
from tests.unit.explained import raises_explained
from tests.unit.recorded import RecordedHost

pytestmark = pytest.mark.host_io

LIMITS = runfile_fetch.RunfileLimits(5.0, 10.0, 10.0)
INSTALLER = """#!/bin/sh
# What NVIDIA's installer does to the directory of a toolkit.
for word; do case "$word" in --toolkitpath=*) to=${word#*=} ;; esac; done
echo "$@" >"@directory@/arguments"
@before@
mkdir -p "$to/bin" "$to/targets/lib" "$to/targets/include"
ln -sfn targets/lib "$to/lib64"; ln -sfn targets/include "$to/include"
echo '{"cuda": {"version": "@release@"}}' >"$to/version.json"
: >"$to/bin/nvcc"
printf '#!/bin/sh\nrm -rf %s/bin %s/version.json %s/lib64 %s/include; rmdir %s/targets/* %s/targets %s 2>/dev/null; rm -f @directory@/cuda\n' \
  "$to" "$to" "$to" "$to" "$to" "$to" "$to" >"$to/bin/cuda-uninstaller"
chmod 755 "$to/bin/cuda-uninstaller"
rm -f "@directory@/cuda"; ln -s "$to/" "@directory@/cuda"
"""


class Machine(Host):
    """This machine without a dynamic linker and without update-alternatives of its own."""

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        if argv[0] == "ldconfig":
            return Result(0, "", "")
        return Host.run(self, argv, timeout, env)


class Node:
    """Directories of a test: /usr/local, records, manifest, a place for installers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        default = cuda_default.DefaultPaths(
            str(directory / "cuda"), (str(directory / "group"),), (), str(directory / "manifest.json")
        )
        self.where = ToolkitPaths(str(directory / "records"), str(directory / "manifest.json"), default)
        self.host = Machine()

    def path(self, version: str = "12.9") -> str:
        return str(self.directory / f"cuda-{version}")

    def installer(self, holds: str = "12.9.1", before: str = "", **change: Any) -> ToolkitInstaller:
        """A spec with an installer that contains a release; ``before`` is the beginning of the installer's script."""
        file = self.directory / f"cuda_{holds}_575.57.08_linux.run"
        text = INSTALLER.replace("@directory@", str(self.directory)).replace("@release@", holds)
        file.write_text(text.replace("@before@", before))
        version = cuda.series(holds)
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
        return ToolkitInstaller(version, holds, self.path(version), InstallerSource(str(file), sha256))._replace(
            **change
        )

    def install(self, spec: ToolkitInstaller) -> str:
        return cuda_runfile.install(self.host, spec, LIMITS, self.where)

    def missing(self, spec: ToolkitInstaller) -> str:
        return cuda_runfile.missing_toolkit(self.host, spec, self.where)

    def remove(self, version: str = "12.9") -> list[str]:
        return cuda_runfile.remove_toolkit(self.host, version, self.path(version), self.where)

    def recorded(self) -> dict[str, Any]:
        return manifest.read(self.where.manifest)

    def record(self, version: str = "12.9") -> cuda.ToolkitRecord | None:
        return cuda_runfile.read_record(self.host, version, self.where)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    (tmp_path / "work").mkdir()
    monkeypatch.setattr(runfile_fetch, "WORK_DIRECTORIES", (str(tmp_path / "work"),))
    monkeypatch.setattr(cuda_runfile, "LOG", str(tmp_path / "installer.log"))
    monkeypatch.setattr(cuda_runfile, "UNINSTALL_LOG", str(tmp_path / "uninstaller.log"))
    monkeypatch.setattr(cudnn_install, "CudnnPaths", lambda **_: records(tmp_path))
    yield Node(tmp_path)
    assert list((tmp_path / "work").iterdir()) == []


def records(directory: Path) -> cudnn_install.CudnnPaths:
    return PATHS(records=str(directory / "cudnn"), manifest=str(directory / "manifest.json"))


PATHS = cudnn_install.CudnnPaths


def test_a_toolkit_is_installed_once_and_without_anything_else(node: Node) -> None:
    spec = node.installer()
    assert node.missing(spec) == "CUDA 12.9.1"
    assert node.install(spec) == "12.9.1"
    assert node.missing(spec) == ""
    output = (node.directory / "arguments").read_text().split()
    assert output[:2] == ["--silent", "--toolkit"] and f"--toolkitpath={node.path()}" in output
    assert "--no-man-page" in output and not [word for word in output if "driver" in word or "samples" in word]
    assert node.record() == cuda.ToolkitRecord("12.9.1", True)
    assert node.recorded() == {"cuda_runfile": {"12.9": {"before": None, "existed": False}}}
    assert not os.path.lexists(node.where.default.link)  # the installer does not set the default


@pytest.mark.parametrize("target", ["cuda-12.4", "/etc/alternatives/cuda"])
def test_the_link_of_the_default_toolkit_stays_as_it_was(node: Node, target: str) -> None:
    link = Path(node.where.default.link)
    link.symlink_to(target)
    node.install(node.installer())
    assert str(link.readlink()) == target


def test_another_release_replaces_the_installed_one(node: Node) -> None:
    node.install(node.installer("12.9.0"))
    spec = node.installer("12.9.1")
    assert node.missing(spec) == "CUDA 12.9.1 in place of 12.9.0"
    assert node.missing(spec._replace(release="")) == ""
    assert node.install(spec) == "12.9.1"
    assert node.record() == cuda.ToolkitRecord("12.9.1", True)


def test_a_release_that_only_the_installer_states(node: Node) -> None:
    assert node.install(node.installer("12.9.1", release="")) == "12.9.1"
    assert node.record() == cuda.ToolkitRecord("12.9.1", True)


def test_a_toolkit_that_states_a_date_is_identified_by_its_record(node: Node) -> None:
    spec = node.installer("11.4.20210728", release="11.4.1")
    assert node.install(spec) == "11.4.1"
    assert node.missing(spec) == ""
    assert node.missing(spec._replace(release="11.4.2")) == "CUDA 11.4.2 in place of 11.4.1"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"source": InstallerSource("/absent/cuda.run")}, "there is no installer /absent/cuda.run"),
        (
            {"source": InstallerSource("http://mirror.example/cuda.run")},
            "http://mirror.example/cuda.run cannot be verified",
        ),
    ],
)
def test_a_file_that_cannot_be_verified_changes_nothing(node: Node, change: dict[str, Any], words: str) -> None:
    with pytest.raises(RunfileError, match=words):
        node.install(node.installer(**change))
    assert (node.recorded(), node.record(), Path(node.path()).exists()) == ({}, None, False)


def test_a_wrong_checksum_and_a_mirrors_error_page_change_nothing(node: Node) -> None:
    spec = node.installer()
    with pytest.raises(RunfileError, match=r"has sha256 [0-9a-f]{64}, expected 0000.*Nothing was changed"):
        node.install(spec._replace(source=spec.source._replace(sha256="0" * 64)))
    page = node.directory / "page.run"
    page.write_text("<html>")
    with pytest.raises(RunfileError, match=r"page\.run is not a \.run installer of a CUDA toolkit"):
        node.install(spec._replace(source=InstallerSource(str(page))))
    assert (node.recorded(), node.record(), Path(node.path()).exists()) == ({}, None, False)


@pytest.mark.parametrize(
    ("fails", "words"),
    [
        ("echo 'sh: error while loading shared libraries: libxml2.so.2: cannot open' >&2; exit 127", "libxml2"),
        (
            "echo '[ERROR]: Install failed: No space left on device' >@directory@/installer.log; exit 1",
            "a disk is full",
        ),
        ("echo 'Error in check sums 1 2' >&2; exit 1", "the archive is damaged"),
        ("echo './cuda-installer: Permission denied' >&2; exit 126", "mounted noexec"),
        ("echo 'Failed to verify gcc version.' >&2; exit 1", "does not support this host's compiler"),
        (
            "echo 'so long' >&2; exit 3",
            r"ended with 3: unknown cause \(so long\); the whole log is .*\. Remedy: read the log",
        ),
    ],
)
def test_a_failed_installer_is_reported_with_its_cause_and_leaves_no_record(node: Node, fails: str, words: str) -> None:
    spec = node.installer(before=fails.replace("@directory@", str(node.directory)))
    with raises_explained(RunfileError, match=words) as text:
        node.install(spec)
    assert "installer.log" in str(text.value)
    assert (node.recorded(), node.record()) == ({}, None)


def test_an_installer_that_was_cut_off_is_repaired_by_the_next_run(node: Node) -> None:
    spec = node.installer(before='mkdir -p "$to/bin"; : >"$to/bin/nvcc"; sleep 60')
    with pytest.raises(RunfileError, match="ended with 124"):
        cuda_runfile.install(node.host, spec, runfile_fetch.RunfileLimits(5.0, 10.0, 2.0), node.where)
    assert node.record() == cuda.ToolkitRecord("12.9.1", False)
    second = node.installer()
    assert node.missing(second) == "the rest of an interrupted installation of CUDA 12.9"
    assert (node.install(second), node.missing(second)) == ("12.9.1", "")


def test_an_installer_of_another_version_is_reported(node: Node) -> None:
    spec = node.installer("12.8.1", version="12.9", release="12.9.1", path=node.path("12.9"))
    with pytest.raises(RunfileError, match=r"installed CUDA 12\.8\.1 in .*cuda-12\.9, expected 12\.9\.1"):
        node.install(spec)
    assert node.record() == cuda.ToolkitRecord("12.9.1", False)


def test_a_toolkit_is_removed_with_its_cudnn_and_leaves_nothing(node: Node) -> None:
    node.install(node.installer("12.9.1"))
    node.install(node.installer("12.8.1"))
    for name in ("lib64/libcudnn.so.9.1", "lib64/libcudnn_ops_static_v9.a", "include/cudnn_version.h"):
        Path(node.path(), name).write_text("x")
    Path(node.path(), "lib64/libcudnn.so.9").symlink_to("libcudnn.so.9.1")
    Path(node.path(), "lib64/libcudnn.so").symlink_to("libcudnn.so.9")
    assert node.remove() == ["CUDA 12.9", node.path()]
    assert not os.path.lexists(node.path())
    assert node.recorded() == {"cuda_runfile": {"12.8": {"before": None, "existed": False}}}
    assert not cuda_runfile.has_remains(node.host, "12.9", node.path(), node.where)
    assert node.missing(node.installer("12.8.1")) == ""


def test_an_incomplete_toolkit_without_an_uninstaller_is_removed(node: Node) -> None:
    spec = node.installer(before='mkdir -p "$to/bin"; : >"$to/bin/nvcc"; sleep 60')
    with pytest.raises(RunfileError, match="ended with 124"):
        cuda_runfile.install(node.host, spec, runfile_fetch.RunfileLimits(5.0, 10.0, 2.0), node.where)
    assert node.remove() == ["the incomplete CUDA 12.9"]
    assert (node.recorded(), node.record(), Path(node.path()).exists()) == ({}, None, False)


def test_an_incomplete_upgrade_with_other_files_is_not_deleted(node: Node) -> None:
    node.install(node.installer("12.9.0"))
    Path(node.path(), "targets/mine.so").write_text("x")
    spec = node.installer("12.9.1", before="sleep 60")
    with pytest.raises(RunfileError, match="ended with 124"):
        cuda_runfile.install(node.host, spec, runfile_fetch.RunfileLimits(5.0, 10.0, 2.0), node.where)
    with pytest.raises(RunfileError, match=r"still has .*mine\.so"):
        node.remove()
    assert node.install(node.installer("12.9.1")) == "12.9.1"
    assert Path(node.path(), "targets/mine.so").exists()


def test_files_of_others_in_a_toolkit_are_named_and_kept(node: Node) -> None:
    node.install(node.installer())
    Path(node.path(), "samples").mkdir()
    Path(node.path(), "samples/mine.cu").write_text("x")
    with pytest.raises(RunfileError, match=r"still has .*samples/mine\.cu.*Move or delete"):
        node.remove()
    assert Path(node.path(), "samples/mine.cu").exists() and not Path(node.path(), "bin").exists()
    shutil.rmtree(Path(node.path(), "samples"))
    assert node.remove() == [node.path()]
    assert node.recorded() == {}


def test_a_link_to_the_toolkit_is_removed_and_recorded(node: Node) -> None:
    node.install(node.installer())
    Path(node.where.default.link).symlink_to(node.path())
    assert node.remove() == ["CUDA 12.9", node.where.default.link]
    assert not os.path.lexists(node.where.default.link)
    entry = {"before": node.path(), "mode": "link", "link": node.where.default.link}
    assert node.recorded() == {"alternatives": {"cuda": entry}}
    assert node.remove() == []


def test_a_link_to_another_toolkit_stays(node: Node) -> None:
    node.install(node.installer("12.9.1"))
    node.install(node.installer("12.8.1"))
    Path(node.where.default.link).symlink_to(node.path("12.8"))
    node.remove()
    assert str(Path(node.where.default.link).readlink()) == node.path("12.8")


def test_an_uninstaller_that_leaves_the_toolkit_is_reported(node: Node) -> None:
    node.install(node.installer())
    Path(node.path(), "bin/cuda-uninstaller").write_text("#!/bin/sh\necho nothing done\n")
    with pytest.raises(RunfileError, match=r"did not remove CUDA 12\.9 \(it ended with 0\).*nothing done"):
        node.remove()


def test_a_full_disk_is_reported_before_anything_is_changed(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil._ntuple_diskusage(10, 10, 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(RunfileError, match=r"CUDA 12\.9\.1 needs \d+ MiB in .*0 MiB are free"):
        node.install(node.installer())
    assert (node.recorded(), Path(node.path()).exists()) == ({}, False)


def test_missing_toolkits_are_found_without_starting_anything() -> None:
    host = RecordedHost(
        files={
            "/usr/local/cuda-12.9/version.json": json.dumps({"cuda": {"version": "12.9.0"}}),
            "/usr/local/cuda-12.9/bin/nvcc": "",
        }
    )
    spec = ToolkitInstaller("12.9", "12.9.1", "/usr/local/cuda-12.9", InstallerSource("/x"))
    assert cuda_runfile.missing_toolkit(host, spec, ToolkitPaths()) == "CUDA 12.9.1 in place of 12.9.0"
    assert cuda_runfile.missing_toolkit(host, spec._replace(release=""), ToolkitPaths()) == ""
    assert cuda_runfile.missing_toolkit(
        host, spec._replace(version="12.8", path="/usr/local/cuda-12.8"), ToolkitPaths()
    )
    assert host.asked == []


def test_removal_of_a_name_keeps_the_toolkit_that_it_links_to(node: Node) -> None:
    node.install(node.installer())
    (node.directory / "cuda-12.4").symlink_to("cuda-12.9")
    with pytest.raises(RunfileError, match=r"cuda-12.4 contains CUDA 12.9.1.*Delete the link"):
        node.remove("12.4")
    assert (Path(node.path()) / "bin/nvcc").exists()
    with pytest.raises(RunfileError, match=r"cuda-12.4 contains CUDA 12.9.1.*Delete the link"):
        node.install(node.installer("12.4.1"))
    assert installed_release(node.host, node.path()) == "12.9.1"


def test_the_copy_of_an_installer_is_removed_before_the_step_counts_as_done(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest_notes, "DIRECTORY", str(node.directory))
    spec = node.installer()
    copy = Path(spec.source.location)
    write, seen = files.write_atomic, []

    def watched(path: str, data: bytes, mode: int | None = None) -> None:
        seen.append((b'"complete": true' in data, copy.exists()))
        write(path, data, mode)

    monkeypatch.setattr(files, "write_atomic", watched)
    node.install(spec)
    assert seen == [(False, True), (False, True), (True, False)]


def test_an_operators_installer_on_the_host_stays(node: Node) -> None:
    spec = node.installer()
    node.install(spec)
    assert Path(spec.source.location).exists()
