"""Modules that are built once: which hosts are alike, what is accepted from another host, and the DKMS configuration."""

import gzip
import hashlib
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
from gpu_ready.upgrade.fleet.model import FleetError
from gpu_ready.upgrade.modules import ModuleArchive, ModulePaths, ModulesError

from tests.unit.recorded import RecordedHost

KERNEL, VERSION = "6.1.0-40-amd64", "595.91.07"
PACKAGE = f"nvidia-kernel-open-dkms={VERSION}-1"
ALIKE = {"package": PACKAGE, "system": "debian 12", "kernel": KERNEL, "architecture": "x86_64"}
DKMS_CONF = f"""\
PACKAGE_NAME="nvidia"
PACKAGE_VERSION="{VERSION}"
BUILT_MODULE_NAME[0]="nvidia"
DEST_MODULE_LOCATION[0]="/updates/dkms"
BUILT_MODULE_NAME[1]="nvidia-uvm"
"""
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
    return pack(directory, [(tarfile.TarInfo(name), b"ELF") for name in names])


def pack(directory: Path, members: list[tuple[tarfile.TarInfo, bytes]], **options: Any) -> str:
    """Write an archive of modules; its checksum."""
    directory.mkdir(exist_ok=True)
    with tarfile.open(directory / upgrade_modules.ARCHIVE, "w:gz", **options) as file:
        for member, data in members:
            member.size = len(data)
            file.addfile(member, io.BytesIO(data))
    return str(upgrade_modules.file_checksum(str(directory / upgrade_modules.ARCHIVE)))


def paths(tmp_path: Path) -> ModulePaths:
    return ModulePaths(str(tmp_path / "modules"), str(tmp_path / "dkms"), str(tmp_path / "manifest.json"))


def recorded(tmp_path: Path, checksum: str, **change: Any) -> ModuleArchive:
    """What a builder answers of the archive in the directory."""
    size = (tmp_path / "modules" / upgrade_modules.ARCHIVE).stat().st_size
    return ModuleArchive(ALIKE, "nvidia", VERSION, checksum, size, True)._replace(**change)


def accepted(tmp_path: Path, host: Host, **change: Any) -> ModuleArchive:
    given = recorded(tmp_path, archive(tmp_path / "modules"), **change)
    return upgrade_modules.accept(host, given, ALIKE, paths(tmp_path))


@pytest.fixture(autouse=True)
def own_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the host its own package, already verified (test_signatures): its dkms.conf alone."""

    def unpack(host: Host, package: str, root: str) -> None:
        assert package == PACKAGE
        source = Path(root) / f"usr/src/nvidia-{VERSION}"
        source.mkdir(parents=True)
        (source / "dkms.conf").write_text(DKMS_CONF)

    monkeypatch.setattr(upgrade_modules, "unpack_package", unpack)


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
    assert not upgrade_modules.offer(host, ALIKE, where)
    accepted(tmp_path, host)
    assert not upgrade_modules.offer(host, ALIKE | {"package": "other=1"}, where)
    assert upgrade_modules.offer(host, ALIKE, where) and upgrade_modules.offer(host, ALIKE, where)
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
        (Built(), {"sha256": "0" * 64}, "another archive than the builder recorded"),
        (Built(), {"size": 1}, "another archive than the builder recorded"),
        (Built(), {"alike": ALIKE | {"kernel": "x"}}, "was built for"),
        (Built(), {"name": "zfs"}, f"is of zfs {VERSION}, and {PACKAGE} builds nvidia {VERSION}"),
        (Built(), {"version": "580.95.05"}, "is of nvidia 580.95.05"),
        (Built(kernel="6.1.0-41-amd64"), {}, "it is for the kernel 6.1.0-41-amd64"),
        (Built(version="580.95.05"), {}, "it is of version 580.95.05"),
    ],
)
def test_other_modules_are_not_accepted(tmp_path: Path, host: Host, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ModulesError, match=words):
        accepted(tmp_path, host, **change)
    assert upgrade_modules.find_archive(host, ALIKE, paths(tmp_path)) is None
    assert list((tmp_path / "modules").iterdir()) == []


def refused(tmp_path: Path, checksum: str, words: str) -> None:
    """Expect that an archive of a builder is refused and that nothing of it stays."""
    with pytest.raises(ModulesError, match=words):
        upgrade_modules.accept(Built(), recorded(tmp_path, checksum), ALIKE, paths(tmp_path))
    assert list((tmp_path / "modules").iterdir()) == []


def test_a_module_that_the_own_package_does_not_build_is_refused(tmp_path: Path) -> None:
    checksum = archive(tmp_path / "modules", ("./nvidia.ko", "./kernel/evil.ko"))
    refused(tmp_path, checksum, f"evil.ko: it is no module of nvidia {VERSION}")


def test_an_archive_that_unpacks_to_much_is_refused_before_it_fills_the_disk(tmp_path: Path) -> None:
    checksum = pack(tmp_path / "modules", [(tarfile.TarInfo("./nvidia.ko"), bytes(300 * 1024 * 1024))], compresslevel=1)
    assert (tmp_path / "modules" / upgrade_modules.ARCHIVE).stat().st_size < 4 * 1024 * 1024
    refused(tmp_path, checksum, "more than 268435456 bytes")


def test_headers_of_tar_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read to memory."""
    monkeypatch.setattr(upgrade_modules, "UNPACKED_LIMIT", 1024 * 1024)
    member = tarfile.TarInfo("./nvidia.ko")
    member.pax_headers = {"comment": "x" * (2 * 1024 * 1024)}
    checksum = pack(tmp_path / "modules", [(member, b"ELF")], format=tarfile.PAX_FORMAT)
    refused(tmp_path, checksum, "more than 1048576 bytes")


def test_an_archive_with_many_members_is_refused(tmp_path: Path) -> None:
    checksum = archive(tmp_path / "modules", tuple(f"./d{number}/nvidia.ko" for number in range(65)))
    refused(tmp_path, checksum, "more than 64 members")


@pytest.mark.parametrize(
    "data",
    [b"", b"no gzip", gzip.compress(b"no tar" * 99, mtime=0), gzip.compress(bytes(4096), mtime=0)[:-9]],
    ids=["empty", "text", "no tar", "cut"],
)
def test_a_damaged_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / upgrade_modules.ARCHIVE).write_bytes(data)
    refused(tmp_path, hashlib.sha256(data).hexdigest(), "damaged")


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(tmp_path: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("./nvidia.ko")
    member.type, member.linkname = kind, "/etc/shadow"
    refused(tmp_path, pack(tmp_path / "modules", [(member, b"")]), "no kernel module")


@pytest.mark.parametrize(
    "name",
    ["../nvidia.ko", "/etc/nvidia.ko", "nvidia.sh", "./a/../../b.ko", "./nvidia.ko\n", "./" + "a/" * 20 + "b.ko"],
)
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
        upgrade_modules.offer(host, ALIKE, where)
    assert file.read_text() == "theirs" and not upgrade_modules.withdraw(host, where)
    assert not (tmp_path / "modules/files").exists()


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_the_build_keeps_its_modules(tmp_path: Path, quote: str) -> None:
    source = tmp_path / "usr/src/nvidia-595"
    source.mkdir(parents=True)
    values = {"PACKAGE_NAME": "nvidia", "PACKAGE_VERSION": VERSION, "BUILT_MODULE_NAME[0]": "nvidia"}
    lines = [f"{name}={quote}{value}{quote}\n" for name, value in values.items()]
    (source / "dkms.conf").write_text("".join(lines))
    assert upgrade_modules.prepare_build(str(tmp_path), "/out") == ("nvidia", VERSION, ["nvidia"])
    assert (source / "dkms.conf").read_text().endswith("-exec cp --parents {} /out ';'\"\n")


# ---- who builds for whom


def assigned(
    alike: dict[str, Any], named: dict[str, Any], groups: dict[str, list[str]] | None = None
) -> upgrade_share.ModuleShares:
    hosts = list(alike)
    known = {"all": [*hosts, "elsewhere"]} | (groups or {})
    return upgrade_share.assign_builders(hosts, alike, upgrade_share.resolve_builders(hosts, named, known))


def test_nobody_builds_for_others_until_the_operator_names_builders() -> None:
    shares = assigned({"a": ALIKE, "b": ALIKE}, {"b": []})
    assert shares.builders == {}
    origins = upgrade_share.module_origins(["a", "b"], shares, {})
    assert origins == {"a": "", "b": ""} and upgrade_share.origins_table(["a", "b"], origins) == ""


def test_hosts_take_from_the_first_named_builder_that_is_alike() -> None:
    other = ALIKE | {"kernel": "6.1.0-41-amd64"}
    known: dict[str, Any] = {"c": ALIKE, "b": other, "a": ALIKE, "d": {"why": "no package"}, "e": ALIKE, "f": None}
    everyone = dict.fromkeys(known, ["builders", "e"])
    shares = assigned(known, everyone, {"builders": ["c", "d"]})
    assert shares.builders == {"c": "c", "a": "c", "e": "e"}  # a builder takes from nobody
    words = upgrade_share.module_origins(list(known), shares, {})
    assert (words["c"], words["a"], words["e"]) == ("built beforehand", "built on c", "built beforehand")
    assert "no host of gpu_upgrade_builders" in words["b"] and "no package" in words["d"] and "resumed" in words["f"]
    failed = upgrade_share.module_origins(["c", "a", "e"], shares, {"c": "the disk\nis full", "e": "no compiler"})
    assert failed == {
        "c": "not built beforehand (the disk is full)",
        "a": "not built beforehand (c did not build them)",
        "e": "not built beforehand (no compiler)",
    }
    assert upgrade_share.origins_table(["c", "e", "a"], words).splitlines() == ["modules built beforehand: c, e", "modules built on c: a"]  # fmt: skip
    ready = assigned({"c": ALIKE, "g": {"why": ""}}, {"c": "c", "g": "c"})
    assert upgrade_share.module_origins(["c", "g"], ready, {}) == {"c": "built beforehand", "g": ""}


def test_a_host_gives_modules_to_nobody_whose_variable_does_not_name_it() -> None:
    """A host may answer what it likes, and its own facts may even replace its own variables."""
    alike = {"evil": ALIKE, "good": ALIKE, "victim": ALIKE}
    named = {"evil": ["evil", "victim"], "good": ["good"], "victim": ["good"]}
    assert assigned(alike, named).builders == {"evil": "evil", "good": "good", "victim": "good"}
    assert assigned(alike, named | {"victim": []}).builders == {"evil": "evil", "good": "good"}
    # Nor does a host make another one compile.
    assert assigned(alike, {"evil": ["victim"], "victim": []}).builders == {}


@pytest.mark.parametrize(
    "answer",
    [[], "x", 7, {"kernel": 7}, {"kernel": "x" * 201}, {str(number): "" for number in range(9)}, {"why": ["x"]}],
)
def test_an_answer_of_another_form_concerns_its_host_alone(answer: object) -> None:
    shares = assigned({"evil": answer, "b": ALIKE}, dict.fromkeys(("evil", "b"), ["all"]))
    assert shares.builders == {"b": "b"} and list(shares.alone) == ["evil"]


@pytest.mark.parametrize(
    ("value", "words"), [(["nobody"], "nobody is neither a host nor a group"), ({"a": 1}, "list"), ([7], "list")]
)
def test_wrong_builders_are_a_message(value: object, words: str) -> None:
    with pytest.raises(FleetError, match=f"gpu_upgrade_builders: .*{words}"):
        assigned({"a": ALIKE}, {"a": value})


def test_a_builder_that_takes_no_part_in_the_rollout_builds_nothing() -> None:
    assert assigned({"a": ALIKE}, {"a": ["elsewhere"]}).builders == {}


@pytest.mark.parametrize(
    "change",
    [
        {"name": "../ld.so.conf.d/evil"},
        {"name": "nvidia\n"},
        {"version": "1/2"},
        {"alike": {"kernel": ".."}},
        {"sha256": 7},
        {"sha256": "../x"},
        {"size": 0},
        {"size": 10**15},
        {"size": "1"},
        {"built_here": 1},
        {"schema": 2},
        {"more": ""},
    ],
)
def test_a_record_of_another_form_is_refused(change: dict[str, Any]) -> None:
    value = upgrade_modules.to_json(ModuleArchive(ALIKE, "nvidia", VERSION, "0" * 64, 1, True)) | change
    with pytest.raises(ModulesError, match="another form"):
        upgrade_modules.from_json(value)


def test_the_record_is_json_that_names_its_hosts(tmp_path: Path) -> None:
    accepted(tmp_path, Built())
    assert json.loads((tmp_path / "modules" / upgrade_modules.RECORD).read_text())["alike"] == ALIKE
