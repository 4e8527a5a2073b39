"""The files of reports: written at once, through no link, and no more runs than configured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.gpu_ready.nodes.plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.fleet_report import (
    store,
)

# ---- files -----------------------------------------------------------------------------------------------------------


CONTENTS = {"json": "{}", "html": "x", "prometheus": "m"}


def test_the_newest_runs_of_each_playbook_are_kept_and_nothing_else_is_removed(tmp_path: Path) -> None:
    foreign = [tmp_path / name for name in ("notes.json", "2026-11-21.json", "site-2026-01-01T00-00-00Z.json.bak")]
    for path in foreign:
        path.write_text("x")
    with store.opened(tmp_path, "gpu_report_directory") as directory:

        def write(kind: str, time: str, contents: dict[str, str]) -> None:
            name = store.free_name(directory.names(), store.base(kind, time))
            store.write_run(directory, kind, name, contents)

        for day in range(1, 6):
            for kind in ("site", "audit"):
                write(kind, f"2026-11-0{day}T00-00-00Z", CONTENTS)
        write("site", "2026-11-05T00-00-00Z", {"json": "{}"})
        removed = store.prune(directory, "site", 2)
        assert store.prune(directory, "audit", 0) == []
    names = {path.name for path in tmp_path.iterdir()}
    assert {path.name for path in foreign} <= names and len(removed) == 8
    assert {name for name in names if name.startswith("2026") and name != "2026-11-21.json"} == {
        "2026-11-05T00-00-00Z.json", "2026-11-05T00-00-00Z.html", "2026-11-05T00-00-00Z-2.json",
    }  # fmt: skip
    assert len([name for name in names if name.startswith("audit-")]) == 10
    assert {"latest.json", "latest.html", "latest.prom", "latest-audit.prom"} <= names
    assert not [name for name in names if name.startswith(".")]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o007])
def test_a_file_has_the_mode_of_the_umask_and_its_writer_as_owner(tmp_path: Path, mask: int) -> None:
    """Another operator's file is replaced, not written into: neither its mode nor its owner stays."""
    old = tmp_path / "latest.json"
    old.write_text("old")
    old.chmod(0o604)
    before = old.stat().st_ino
    given = os.umask(mask)
    try:
        with store.opened(tmp_path, "x") as directory:
            directory.write("latest.json", b"new")
    finally:
        os.umask(given)
    found = old.stat()
    assert (found.st_mode & 0o777, found.st_uid) == (0o644 & ~mask, os.geteuid())
    assert found.st_ino != before and old.read_text() == "new"


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    target = tmp_path / "bashrc"
    target.write_text("mine")
    (tmp_path / "latest.json").symlink_to(target)
    (tmp_path / "dangling.json").symlink_to(tmp_path / "new")
    with store.opened(tmp_path, "gpu_report_directory") as directory:
        for name in ("latest.json", "dangling.json"):
            with pytest.raises(GpuReadyError) as caught:
                directory.write(name, b"of a host")
            assert str(caught.value) == (
                f"{tmp_path}/{name}: it is a link, and reports are written through none. "
                "Remedy: remove it, or set gpu_report_directory to another path."
            )
        assert directory.read("latest.json") is None and "latest.json" not in directory.names()
    assert target.read_text() == "mine" and not (tmp_path / "new").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bashrc", "dangling.json", "latest.json"]


def test_a_directory_that_is_replaced_meanwhile_gets_nothing(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    (tmp_path / "other").mkdir()
    with store.opened(tmp_path / "reports", "x") as directory:
        (tmp_path / "reports").rename(tmp_path / "moved")
        (tmp_path / "reports").symlink_to(tmp_path / "other")
        directory.write("a.json", b"x")
    assert (tmp_path / "moved/a.json").exists() and not list((tmp_path / "other").iterdir())


def test_a_path_that_cannot_be_written_is_named_with_cause_and_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "latest.json").mkdir()
    with pytest.raises(GpuReadyError, match=r"file: it is no directory\. Remedy: set gpu_report_directory to a path"):
        store.opened(tmp_path / "file", "gpu_report_directory").__enter__()
    with pytest.raises(
        GpuReadyError, match=r"/latest.json: Is a directory\. Remedy: set gpu_audit_path to a path that"
    ):
        store.write_file(tmp_path / "latest.json", "x", "gpu_audit_path")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "latest.json"], "no temporary file is left"
