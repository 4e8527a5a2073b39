"""Hosts that the first release provisioned: its files below /var/lib/gpu-ready are read, none as nothing to do.

state/first_release was written by the code of commit 562375b.
"""

import shutil
from pathlib import Path

import pytest
from gpu_ready.base import manifest, manifest_notes
from gpu_ready.base.host import Host
from gpu_ready.cuda import runfile as cuda_runfile
from gpu_ready.cuda import toolkit
from gpu_ready.cuda.cudnn import model as cudnn
from gpu_ready.drain import journal as drain
from gpu_ready.facts import docker, verified
from gpu_ready.lifecycle import uninstall
from gpu_ready.lifecycle.removal import written_files
from gpu_ready.lifecycle.removal.context import Removal, UninstallError
from gpu_ready.upgrade import journal as upgrade
from gpu_ready.upgrade import phases
from gpu_ready.upgrade.model import Fetched, RecordedDriver

from tests.unit.recorded import RecordedHost

STATE = Path(__file__).parent / "state/first_release"
VOLUME = "/usr/local/nvidia-driver"


def text(name: str) -> str:
    return (STATE / name).read_text()


def test_the_manifest() -> None:
    found = manifest.read(str(STATE / "manifest.json"))
    assert found["directories"] == {VOLUME: {}} and set(found) <= set(manifest.SECTIONS)
    assert found["cuda_runfile"] == {
        "12.8": {"before": "12.8.0", "existed": True},
        "12.9": {"before": None, "existed": False},
    }
    facts = docker.read_manifest(RecordedHost(files={manifest.PATH: text("manifest.json")}), "/etc/docker/daemon.json")
    assert facts.directories == [VOLUME] and list(facts.keys) == ["runtimes.nvidia"]


def test_the_first_change_keeps_its_records(tmp_path: Path) -> None:
    path = str(tmp_path / "manifest.json")
    shutil.copy(STATE / "manifest.json", path)
    before = manifest.read(path)
    manifest_notes.note("directories", {"/opt/new": {}}, path)
    assert manifest.read(path) == {**before, "directories": {VOLUME: {}, "/opt/new": {}}}


def test_uninstall_removes_its_directories(tmp_path: Path) -> None:
    shutil.copy(STATE / "manifest.json", tmp_path)
    work = Removal(RecordedHost(directories=[VOLUME]), str(tmp_path))
    assert [action.words for action in written_files.find_directories(work)] == ["delete " + VOLUME]


def test_an_interrupted_toolkit_in_its_own_directory_is_removable(tmp_path: Path) -> None:
    shutil.copy(STATE / "manifest.json", tmp_path)
    (tmp_path / "12.9.json").write_text(toolkit.format_record(toolkit.ToolkitRecord("12.9.1", False)))
    (tmp_path / "12.8.json").write_text(toolkit.format_record(toolkit.ToolkitRecord("12.8.1", False)))
    paths = cuda_runfile.ToolkitPaths(str(tmp_path), str(tmp_path / "manifest.json"))
    assert cuda_runfile.is_incomplete(Host(), "12.9", str(tmp_path), paths)
    assert not cuda_runfile.is_incomplete(Host(), "12.8", str(tmp_path), paths)


def test_the_drain_journal_is_described_and_keeps_uninstall_away(tmp_path: Path) -> None:
    found = drain.read(Host(), str(STATE / "drain.json"))
    assert found.docker and found.docker.containers == {"a" * 64: drain.StoppedContainer("train", True)}
    assert found.slurm == drain.SlurmDrain("gpu1", "ctl", "gpu-ready: driver upgrade")
    assert found.kubernetes and found.kubernetes.kubeconfig == "/etc/kubernetes/admin.conf"
    assert found.tasks == drain.TasksDrain([drain.hook_marker("/srv/drain.yml")])
    host = RecordedHost(files={str(tmp_path / "drain.json"): text("drain.json")})
    with pytest.raises(UninstallError, match="train are stopped; slurm's node gpu1 is drained"):
        uninstall.find_actions(Removal(host, str(tmp_path)))


def test_undraining_removes_its_entries(tmp_path: Path) -> None:
    path = tmp_path / "drain.json"
    shutil.copy(STATE / "drain.json", path)
    assert drain.remove_entries(Host(), ["docker", "slurm"], str(path))
    assert drain.describe(drain.read(Host(), str(path))) == [
        "the Kubernetes node gpu1 is cordoned",
        "task files of gpu_upgrade_drain drained it: 1",
    ]
    assert drain.remove_entries(Host(), ["kubernetes", "tasks"], str(path)) and not path.exists()


def test_an_interrupted_upgrade_is_resumed() -> None:
    found = upgrade.read(Host(), str(STATE / "upgrade.json"))
    assert found and (found.phase, found.to, found.since, found.rollout) == ("switching", "595.91.07", 1002, 77)
    assert found.from_ == RecordedDriver("580.95.05", "580", "open", "cuda_repo", "dkms")
    assert isinstance(found.fetched, Fetched)
    assert phases.advance(found, "draining", 2000, None, "595.91.07", "").from_ == found.from_


def test_the_last_verification_still_names_its_gpus() -> None:
    """A host that lost all its GPUs since then is not taken for one without GPU."""
    found = verified.collect(RecordedHost(files={verified.PATH: text("verified.json")}))
    assert found and found.addresses == ["0000:01:00.0"] and found.xids == {"0000:01:00.0 79": 1}


def test_records_of_toolkits_and_cudnn() -> None:
    assert toolkit.parse_record(text("cuda/12.9.json")) == toolkit.ToolkitRecord("12.9.1", True)
    record = cudnn.parse_record(text("cudnn/12.9.json"))
    assert record and record.complete and list(record.files) == ["/usr/local/cuda-12.9/include/cudnn_version.h"]
