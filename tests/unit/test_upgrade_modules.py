"""Modules that are built once: which hosts are alike, what is accepted from another host, and the DKMS configuration."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from gpu_ready.base import manifest
from gpu_ready.base.host import Host, Result
from gpu_ready.upgrade import modules as upgrade_modules
from gpu_ready.upgrade import share as upgrade_share
from gpu_ready.upgrade.modules import ModuleArchive, ModulePaths, ModulesError
from recorded import RecordedHost

KERNEL, VERSION = "6.1.0-40-amd64", "595.91.07"
PACKAGE = f"nvidia-kernel-open-dkms={VERSION}-1"
ALIKE = {"package": PACKAGE, "system": "debian 12", "kernel": KERNEL, "architecture": "x86_64"}
SYSTEM = {"/etc/os-release": 'ID=debian\nVERSION_ID="12"\n', "/proc/sys/kernel/osrelease": KERNEL}


class Built(Host):
    """A host with a real disk, whose modinfo reports modules for one kernel."""

    def __init__(self, kernel: str = KERNEL, version: str = VERSION) -> None:
        self.kernel, self.version = kernel, version

    def uname(self) -> tuple[str, str]:
        return KERNEL, "x86_64"

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        assert argv[0] == "modinfo"
        return Result(0, f"version:        {self.version}\nvermagic:       {self.kernel} SMP mod_unload\n", "")


def archive(directory: Path, names: tuple[str, ...] = ("./nvidia.ko", "./sub/nvidia-uvm.ko")) -> str:
    directory.mkdir(exist_ok=True)
    with tarfile.open(directory / upgrade_modules.ARCHIVE, "w:gz") as file:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 3
            file.addfile(member, io.BytesIO(b"ELF"))
    return str(upgrade_modules.file_checksum(str(directory / upgrade_modules.ARCHIVE)))


def paths(tmp_path: Path) -> ModulePaths:
    return ModulePaths(str(tmp_path / "modules"), str(tmp_path / "dkms"), str(tmp_path / "manifest.json"))


def accepted(tmp_path: Path, host: Host, **change: Any) -> ModuleArchive:
    given = ModuleArchive(ALIKE, "nvidia", VERSION, archive(tmp_path / "modules"))
    return upgrade_modules.accept(host, given._replace(**change), ALIKE, paths(tmp_path))


@pytest.mark.parametrize(
    ("coming", "package"),
    [
        ([PACKAGE, "dkms=3.0", "libcuda1=595.91.07-1"], PACKAGE),
        (["kmod-nvidia-open-dkms=3:595.91.07-1.el9"], "kmod-nvidia-open-dkms=3:595.91.07-1.el9"),
        (["nvidia-dkms-595-open=595.91.07-0ubuntu1"], "nvidia-dkms-595-open=595.91.07-0ubuntu1"),
        (["nvidia-driver-pinning-595=1", "nvidia-dkms-open=595.91.07-1"], "nvidia-dkms-open=595.91.07-1"),
    ],
)
def test_hosts_with_the_same_package_system_and_kernel_are_alike(coming: list[str], package: str) -> None:
    host = RecordedHost(files=SYSTEM)
    found = upgrade_modules.shared_properties(host, coming, False)
    assert found == ALIKE | {"package": package}


@pytest.mark.parametrize(
    ("coming", "why"),
    [
        # Ubuntu's precompiled modules: the name of the second package says that it has no sources.
        (
            [
                "linux-modules-nvidia-595-server-open-6.8.0-1-generic=6.8.0-1.1",
                "nvidia-headless-no-dkms-595-server-open=595.91.07-1",
            ],
            "",
        ),
        (["nvidia-driver-cuda=3:595.91.07-1.el9", "kmod-nvidia-595.91.07-5.14.0-687=3:595.91.07-1.el9"], ""),
        ([], "no package of this driver compiles modules"),  # NVIDIA's installer
        (["nvidia-dkms-595=1", "nvidia-kernel-dkms=1"], "nvidia-dkms-595=1 and nvidia-kernel-dkms=1 compile modules"),
    ],
)
def test_where_nothing_is_compiled_there_is_nothing_to_share(coming: list[str], why: str) -> None:
    assert upgrade_modules.shared_properties(RecordedHost(files=SYSTEM), coming, False) == {"why": why}


def test_sources_in_a_separate_package_are_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Ubuntu's nvidia-dkms packages have dkms.conf alone.
    coming = ["nvidia-dkms-open=595.91.07-1ubuntu1", "nvidia-kernel-source-open=595.91.07-1ubuntu1", "dkms=3.2"]
    found = upgrade_modules.shared_properties(RecordedHost(files=SYSTEM), coming, False)
    assert (found["package"], found["source"]) == (coming[0], coming[1])
    unpacked: list[str] = []
    monkeypatch.setattr(upgrade_modules, "unpack_package", lambda host, package, root: unpacked.append(package))
    with pytest.raises(ModulesError, match="contains 0 dkms.conf files"):
        upgrade_modules.build(Built(), found, paths(tmp_path))
    assert unpacked == coming[:2]


def test_nothing_is_accepted_under_secure_boot_without_the_key() -> None:
    host = RecordedHost(files=SYSTEM)
    assert "not enrolled" in upgrade_modules.shared_properties(host, [PACKAGE], True)["why"]
    assert "why" not in upgrade_modules.shared_properties(host, [PACKAGE], False)


def test_dkms_uses_accepted_modules_and_is_restored(tmp_path: Path) -> None:
    where, host = paths(tmp_path), Built()
    assert not upgrade_modules.offer(host, where)
    accepted(tmp_path, host)
    assert upgrade_modules.offer(host, where) and upgrade_modules.offer(host, where)
    file = tmp_path / "dkms" / f"nvidia-{VERSION}-{KERNEL}-x86_64.conf"
    assert f'MAKE[0]="cp -r {tmp_path}/modules/files/. ."' in file.read_text()
    assert (tmp_path / "modules/files/sub/nvidia-uvm.ko").read_bytes() == b"ELF"
    assert str(file) in manifest.read(where.listing)["files"]
    assert upgrade_modules.withdraw(host, where) and not upgrade_modules.withdraw(host, where)
    assert not file.exists() and "files" not in manifest.read(where.listing)
    assert not (tmp_path / "modules/files").exists()


@pytest.mark.parametrize(
    ("host", "change", "words"),
    [
        (Built(), {"sha256": "0"}, "in place of 0"),
        (Built(), {"alike": ALIKE | {"kernel": "x"}}, "was built for"),
        (Built(kernel="6.1.0-41-amd64"), {}, "it is for the kernel 6.1.0-41-amd64"),
        (Built(version="580.95.05"), {}, "it is of version 580.95.05"),
    ],
)
def test_other_modules_are_not_accepted(tmp_path: Path, host: Host, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModulesError, match=words):
        accepted(tmp_path, host, **change)
    assert upgrade_modules.find_archive(host, ALIKE, paths(tmp_path)) is None


@pytest.mark.parametrize("name", ["../nvidia.ko", "/etc/nvidia.ko", "nvidia.sh", "./a/../../b.ko"])
def test_an_archive_with_anything_else_is_refused(tmp_path: Path, name: str) -> None:
    archive(tmp_path / "modules", ("./nvidia.ko", name))
    with pytest.raises(ModulesError, match="no kernel module"):
        upgrade_modules.unpack(str(tmp_path / "modules" / upgrade_modules.ARCHIVE), str(tmp_path / "out"))


def test_an_archive_that_changed_or_a_damaged_record_is_none(tmp_path: Path) -> None:
    where, host = paths(tmp_path), Built()
    accepted(tmp_path, host)
    assert upgrade_modules.find_archive(host, ALIKE, where) and not upgrade_modules.find_archive(
        host, ALIKE | {"kernel": "x"}, where
    )
    archive(tmp_path / "modules", ("./nvidia.ko",))
    assert upgrade_modules.find_archive(host, ALIKE, where) is None
    (tmp_path / "modules" / upgrade_modules.RECORD).write_text("{")
    assert upgrade_modules.find_archive(host, ALIKE, where) is None


def test_a_file_of_the_host_is_not_overwritten(tmp_path: Path) -> None:
    where, host = paths(tmp_path), Built()
    file = Path(upgrade_modules.override_path(accepted(tmp_path, host), where))
    file.parent.mkdir()
    file.write_text("theirs")
    with pytest.raises(ModulesError, match="not a file of gpu-ready"):
        upgrade_modules.offer(host, where)
    assert file.read_text() == "theirs" and not upgrade_modules.withdraw(host, where)
    assert not (tmp_path / "modules/files").exists()


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_the_build_keeps_its_modules(tmp_path: Path, quote: str) -> None:
    source = tmp_path / "usr/src/nvidia-595"
    source.mkdir(parents=True)
    (source / "dkms.conf").write_text(f"PACKAGE_NAME={quote}nvidia{quote}\nPACKAGE_VERSION={quote}{VERSION}{quote}\n")
    assert upgrade_modules.prepare_build(str(tmp_path), "/out") == ("nvidia", VERSION)
    assert (source / "dkms.conf").read_text().endswith("-exec cp --parents {} /out ';'\"\n")


# ---- who builds for whom


def test_the_first_of_those_that_are_alike_builds() -> None:
    other = ALIKE | {"kernel": "6.1.0-41-amd64"}
    known: dict[str, dict[str, Any]] = {"a": ALIKE, "b": other, "c": ALIKE, "d": {"why": "no package"}, "e": ALIKE}
    shares = upgrade_share.assign_builders(["c", "b", "a", "d", "e", "f"], known, {"e": False})
    assert shares.builders == {"c": "c", "b": "b", "a": "c"}
    words = upgrade_share.module_origins(["c", "b", "a", "d", "e", "f"], shares, {})
    assert (words["c"], words["a"]) == ("built beforehand", "built on c")
    assert "gpu_upgrade_build_once" in words["e"] and "no package" in words["d"] and "resumed run" in words["f"]
    ready = upgrade_share.assign_builders(["c", "g"], known | {"g": {"why": ""}}, {})
    words_of_ready = upgrade_share.module_origins(["c", "g"], ready, {})
    assert words_of_ready == {"c": "built beforehand", "g": ""}
    assert upgrade_share.origins_table(["c", "g"], words_of_ready) == "modules built beforehand: c"
    failed = upgrade_share.module_origins(["c", "b", "a"], shares, {"c": "the disk is full", "b": "no compiler"})
    assert failed == {
        "c": "not built beforehand (the disk is full)",
        "b": "not built beforehand (no compiler)",
        "a": "not built beforehand (c did not build them)",
    }
    assert upgrade_share.origins_table(["c", "b", "a"], words).splitlines() == ["modules built beforehand: c, b", "modules built on c: a"]  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [{"name": "../x"}, {"version": "1/2"}, {"sha256": 7}, {"schema": 2}, {"more": ""}, {"alike": {"kernel": ".."}}],
)
def test_a_record_of_another_form_is_refused(change: dict[str, Any]) -> None:
    value = upgrade_modules.to_json(ModuleArchive(ALIKE, "nvidia", VERSION, "0")) | change
    with pytest.raises(ModulesError, match="another form"):
        upgrade_modules.from_json(value)


def test_the_record_is_json_that_names_its_hosts(tmp_path: Path) -> None:
    accepted(tmp_path, Built())
    assert json.loads((tmp_path / "modules" / upgrade_modules.RECORD).read_text())["alike"] == ALIKE
