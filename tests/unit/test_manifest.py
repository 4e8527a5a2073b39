"""The manifest when two runs work on one host at once: no record is lost, and every wait has a limit."""

import threading
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes
from tests.unit.recorded import RecordedHost


def test_records_of_two_simultaneous_runs_are_all_kept(tmp_path: Path) -> None:
    path = str(tmp_path / "gpu-ready/manifest.json")

    def note(run: int) -> None:
        for number in range(25):
            manifest_notes.note("packages", {f"run{run}-{number}": {}}, path)

    runs = [threading.Thread(target=note, args=(run,)) for run in range(4)]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert len(manifest.read(path)["packages"]) == 100
    assert [each.name for each in (tmp_path / "gpu-ready").iterdir()] == ["manifest.json"]


def test_removing_a_record_creates_no_directory(tmp_path: Path) -> None:
    path = str(tmp_path / "gpu-ready/manifest.json")
    manifest_notes.drop("packages", ["tree"], path)
    manifest_notes.forget_keys("/etc/docker/daemon.json", {}, path)
    assert not (tmp_path / "gpu-ready").exists()


DAMAGED = [
    b"",
    b"[]",
    b"null",
    b'"x"',
    b"{",
    b"\xff\xfe\xfd",
    b'{"packages": {"a\xff": {}}}',
    b'{"packages": ["tree"]}',
    b'{"packages": {"tree": 1}}',
    b'{"files": {"/etc/a": {"before": null}}}',
    b'{"files": {"/etc/a": {"before": 7, "written": []}}}',
    b'{"files": {"/etc/a": {"before": "?", "written": []}}}',
    b'{"runfile": {"driver": {"before": null}}}',
    b'{"daemon_json": {"/etc/docker/daemon.json": {"before": null}}}',
    b'{"containerd": {"/etc/containerd/config.toml": {"before": null, "record": 1}}}',
    b'{"containerd": {"/etc/containerd/config.toml": {"before": null, "record": [1]}}}',
    b'{"cuda_runfile": {"12.9": []}}',
]


@pytest.mark.parametrize("data", DAMAGED)
def test_a_damaged_manifest_is_named_with_a_remedy(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_bytes(data)
    expected = r"^%s is .*or move it away"
    with pytest.raises(manifest.ManifestError, match=expected % path):
        manifest.read(str(path))
    with pytest.raises(manifest.ManifestError, match=expected % manifest.PATH):
        manifest.collect(RecordedHost(files={manifest.PATH: data}))


def test_a_manifest_of_a_newer_release_is_refused() -> None:
    with pytest.raises(manifest.ManifestError, match="has the section volumes.* Use the release that wrote it"):
        manifest.parse('{"volumes": {}}')
