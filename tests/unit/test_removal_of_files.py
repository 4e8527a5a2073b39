"""What uninstalling does to files that gpu-ready wrote and somebody changed."""

import json
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes
from plugins.module_utils.gpu_ready.base.files import write_atomic
from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.lifecycle.removal.context import Removal
from plugins.module_utils.gpu_ready.lifecycle.removal.drivers import find_installer_driver, is_own_installer_driver
from plugins.module_utils.gpu_ready.lifecycle.removal.written_files import SAVED, find_files, find_parents
from tests.unit.recorded import RecordedHost

MODIFIED = "somebody changed it after gpu-ready wrote it"
OPERATIONS = st.lists(
    st.sampled_from(["write", "write the same", "killed write", "delete", "edit", "remove", "protect", "uninstall"]),
    max_size=12,
)


class OneFile:
    """A file that gpu-ready and an administrator write; ``theirs`` is the newest content of the administrator."""

    def __init__(self, directory: Path, theirs: bytes | None) -> None:
        self.path, self.manifest = directory / "x.conf", directory / "state/manifest.json"
        self.theirs, self.count, self.protected = theirs, 0, False
        self.earlier = [theirs]
        if theirs is not None:
            self.path.write_bytes(theirs)

    def write(self, content: bytes | None, killed: bool = False) -> None:
        manifest_notes.note_files(Host(), {str(self.path): content}, str(self.manifest), mode=0o644)
        if not killed:
            self.protected = False
            if content is not None:
                write_atomic(str(self.path), content, 0o644)
            elif self.path.exists():
                self.path.unlink()

    def do(self, operation: str) -> None:
        self.count += 1
        ours = b"ours %d" % self.count
        if operation in ("write", "killed write"):
            self.write(ours, operation == "killed write")
        elif operation == "write the same" and self.path.exists():
            self.write(self.path.read_bytes())
        elif operation == "delete":
            self.write(None)
        elif operation == "edit":
            self.theirs = (self.path.read_bytes() if self.path.exists() else b"") + b"theirs %d\n" % self.count
            self.path.write_bytes(self.theirs)
            self.earlier.append(self.theirs)
        elif operation == "remove" and self.path.exists():
            self.path.unlink()
            self.theirs = None
        elif operation == "protect" and self.path.exists():
            self.path.chmod(0o600)
            self.protected = True
        elif operation == "uninstall":
            self.uninstall()
            self.theirs, self.protected = self.content, False  # gpu-ready knows nothing of what it kept
            self.earlier.append(self.theirs)

    def uninstall(self) -> list[str]:
        removal = Removal(Host(), str(self.manifest.parent))
        for action in find_files(removal):
            action.act()
        self.manifest.unlink(missing_ok=True)
        return removal.kept

    @property
    def content(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None


@given(st.sampled_from([None, b"before"]), OPERATIONS)
def test_the_newest_content_of_the_administrator_stays_and_ours_is_removed(
    theirs: bytes | None, operations: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        file = OneFile(Path(directory), theirs)
        for operation in operations:
            file.do(operation)
        before = file.content
        kept = file.uninstall()
        if file.protected and before != file.theirs and file.content is not None:
            assert file.content in (before, file.theirs) and stat.S_IMODE(file.path.stat().st_mode) == 0o600
        else:
            # An absent file is as an interrupted write after our deletion leaves it: it gets the earlier content.
            assert file.content == file.theirs or (file.theirs is None and file.content in file.earlier)
        assert all(one.startswith(str(file.path) + ": somebody ") for one in kept)


@pytest.mark.parametrize("theirs", [None, b"before"])
def test_a_generated_file_gets_what_was_there_before_and_no_version_in_between(
    tmp_path: Path, theirs: bytes | None
) -> None:
    """A CDI specification that the toolkit's service wrote for an earlier driver names files that are missing."""
    file = OneFile(tmp_path, theirs)
    for content in (b"ours 1", b"of the toolkit's service", b"ours 2"):
        if content.startswith(b"ours"):
            manifest_notes.note_files(Host(), {str(file.path): content}, str(file.manifest), generated=True)
        file.path.write_bytes(content)
    assert file.uninstall() == [] and file.content == theirs


def test_what_was_there_before_is_saved_where_the_present_file_is_kept(tmp_path: Path) -> None:
    file = OneFile(tmp_path, b"before")
    file.do("write")
    file.do("edit")
    assert file.uninstall() == [f"{file.path}: {MODIFIED}"]
    assert Path(str(file.path) + SAVED).read_bytes() == b"before"


@pytest.mark.parametrize("mode", [0o600, 0o755])
def test_a_file_whose_mode_somebody_changed_is_kept(tmp_path: Path, mode: int) -> None:
    file = OneFile(tmp_path, None)
    file.do("write")
    file.path.chmod(mode)
    assert file.uninstall() == [f"{file.path}: somebody changed its mode after gpu-ready wrote it"] and file.content


def recorded(directory: Path, files: dict[str, str]) -> str:
    """A manifest of files as gpu-ready wrote them, on a host that has them so."""
    states = {path: [[manifest.digest(content.encode()), 0o644, 0]] for path, content in files.items()}
    value = {"files": {path: {"before": None, "mode": None, "written": state} for path, state in states.items()}}
    (directory / "manifest.json").write_text(json.dumps(value))
    return str(directory)


LIST = "/etc/apt/sources.list.d/gpu-ready-cuda.sources"
KEYRING = "/etc/apt/keyrings/gpu-ready-cuda.gpg"


@pytest.mark.parametrize(
    ("edited", "words", "kept"),
    [
        ({}, ["delete " + KEYRING, "delete " + LIST], []),
        ({LIST: f"Signed-By: {KEYRING}\n# mine\n"}, [], [f"{LIST}: {MODIFIED}", f"{KEYRING}: {LIST} needs it"]),
        (
            {"/etc/apt/sources.list.d/own.list": f"deb [signed-by={KEYRING}] https://mirror.example /\n"},
            ["delete " + LIST],
            [f"{KEYRING}: /etc/apt/sources.list.d/own.list needs it"],
        ),
    ],
)
def test_a_key_is_kept_where_a_source_that_stays_needs_it(
    edited: dict[str, str], words: list[str], kept: list[str], tmp_path: Path
) -> None:
    files = {LIST: f"Signed-By: {KEYRING}\n", KEYRING: "key"}
    removal = Removal(RecordedHost(files={**files, **edited}), recorded(tmp_path, files))
    assert ([action.words for action in find_files(removal)], removal.kept) == (words, kept)


@pytest.mark.parametrize("others", [False, True])
def test_directories_made_for_a_file_are_removed_unless_somebody_uses_them(tmp_path: Path, others: bool) -> None:
    path = tmp_path / "etc/docker/conf.d/x"
    (tmp_path / "etc").mkdir()
    manifest_notes.make_parents(str(path), str(tmp_path / "manifest.json"))
    assert path.parent.is_dir()
    if others:
        (tmp_path / "etc/docker/key.json").touch()
    for action in find_parents(Removal(Host(), str(tmp_path))):
        action.act()
    left = ["etc", "etc/docker", "etc/docker/key.json", "manifest.json"] if others else ["etc", "manifest.json"]
    assert sorted(one.relative_to(tmp_path).as_posix() for one in tmp_path.rglob("*")) == left


@pytest.mark.parametrize(
    ("versions", "own"), [(["580.95.05"], True), (["570.1.1", "580.95.05"], True), (["570.1.1"], False)]
)
def test_a_later_installer_driver_of_the_operator_is_kept(versions: list[str], own: bool, tmp_path: Path) -> None:
    record = {"driver": {"before": None, "versions": versions}}
    (tmp_path / "manifest.json").write_text(json.dumps({"runfile": record}))
    files = {"/var/lib/nvidia/log": "1.0-5809505 (580.95.05)\n", "/usr/bin/nvidia-uninstall": ""}
    removal = Removal(RecordedHost(files=files), str(tmp_path))
    assert is_own_installer_driver(removal) == own
    assert bool(find_installer_driver(removal)) == own and bool(removal.kept) != own
