"""The .run installer: options by release, texts, what is missing, refused and downloaded."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base import files, manifest, manifest_notes
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.base.locks import LockError
from plugins.module_utils.gpu_ready.driver.runfile import fetch as runfile_fetch
from plugins.module_utils.gpu_ready.driver.runfile import install as runfile
from plugins.module_utils.gpu_ready.driver.runfile import installed_files
from plugins.module_utils.gpu_ready.driver.runfile import messages as runfile_messages
from plugins.module_utils.gpu_ready.driver.runfile import spec as runfile_spec
from plugins.module_utils.gpu_ready.driver.runfile import state as runfile_state
from plugins.module_utils.gpu_ready.driver.runfile.fetch import InstallerSource
from plugins.module_utils.gpu_ready.driver.runfile.spec import DriverSpec, RunfileError
from tests.unit import web_server
from tests.unit.explained import explained, raises_explained
from tests.unit.recorded import RecordedHost

KERNEL, NEWER = "6.1.0-40-amd64", "6.1.0-41-amd64"
SETTINGS = DriverSpec("580.178.04", "open", [KERNEL])
HEAD = '#!/bin/sh\nlabel="NVIDIA Accelerated Graphics Driver for Linux-x86_64 580.178.04"\n'
LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so."
LICENCES = {"open": "Dual MIT/GPL", "proprietary": "NVIDIA"}


def modinfo(version: str | None, flavour: str = "open", kernel: str = KERNEL) -> dict[tuple[str, ...], Result]:
    path = f"/lib/modules/{kernel}/updates/dkms/nvidia.ko"
    text = f"filename:       {path}\nversion:        {version}\nlicense:        {LICENCES[flavour]}\n"
    return {("modinfo", "-k", kernel, "nvidia"): Result(0, text, "") if version else Result(1, "", "not found")}


def with_driver(version: str = "580.178.04", flavour: str = "open", **more: object) -> RecordedHost:
    """A host with a driver that gpu-ready installed by a .run installer."""
    digits = version.replace(".", "")
    files = {
        installed_files.BACKUP_LOG: f"1.0-{digits} ({version})\nNVIDIA Accelerated Graphics Driver\n0: /usr/bin/nvidia-smi\n",
        LIBRARY + version: "",
        "/usr/bin/nvidia-uninstall": "",
        "/usr/bin/nvidia-smi": "",
        f"/usr/src/nvidia-{version}/dkms.conf": "",
        "/var/lib/dpkg/status": "",
    }
    return RecordedHost(files=files, programs=modinfo(version, flavour), **more)  # type: ignore[arg-type]


# ---- texts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "flavour", "has", "missing"),
    [
        ("470.256.02", "proprietary", ["--silent", "--dkms"],
         ["--kernel-module-type", "--kernel-module-build-directory", "--skip-module-load", "--allow-installation"]),
        ("535.309.01", "open", ["--kernel-module-build-directory=kernel-open"], ["--kernel-module-type", "--skip-module"]),
        ("550.163.01", "proprietary", ["--kernel-module-build-directory=kernel", "--skip-module-load"],
         ["--kernel-module-type"]),
        ("580.178.04", "proprietary", ["--kernel-module-type=proprietary", "--skip-module-load",
                                       "--allow-installation-with-running-driver", "--no-opengl-files"], ["-directory"]),
        ("595.91.07", "open", ["--kernel-module-type=open"], ["-directory"]),
    ],
)  # fmt: skip
def test_options_by_release(version: str, flavour: str, has: list[str], missing: list[str]) -> None:
    found = runfile_spec.installer_options(DriverSpec(version, flavour, [KERNEL]), KERNEL, "/var/tmp/x")
    assert set(has) <= set(found) and not [word for word in missing if any(word in one for one in found)]
    assert "--tmpdir=/var/tmp/x" in found and not any(word.startswith("--kernel-name") for word in found)


def test_options_for_another_kernel() -> None:
    found = runfile_spec.installer_options(SETTINGS._replace(kernels=[NEWER]), KERNEL, "/x")
    assert "--dkms" in found and f"--kernel-name={NEWER}" in found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (HEAD, ("x86_64", "580.178.04")),
        ('#!/bin/sh\ntargetdir="NVIDIA-Linux-aarch64-615.71.09"\n', ("aarch64", "615.71.09")),
        ("#!/bin/sh\necho hello\n", None),
        ("<html>NVIDIA-Linux-x86_64-580.178.04</html>", None),
        ("", None),
    ],
)
def test_architecture_and_version_in_the_head(text: str, found: tuple[str, str] | None) -> None:
    assert runfile_fetch.parse_head(text) == found


SUM = "ab" * 32


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{SUM}  NVIDIA.run\n", SUM),
        (f"{SUM.upper()} *./files/NVIDIA.run\n", SUM),
        (f"{SUM}\n", SUM),
        (f"{'cd' * 32}  other.run\n{SUM}  NVIDIA.run\n", SUM),
        (f"{SUM}  other.run\n", None),
        (f"{SUM}  NVIDIA.run\n{'cd' * 32}  NVIDIA.run\n", None),
        ("<html>not found</html>", None),
        ("", None),
    ],
)
def test_parse_checksum_file(text: str, found: str | None) -> None:
    assert runfile_fetch.parse_checksum(text, "NVIDIA.run") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1.0-5809505 (580.95.05)\nNVIDIA Accelerated Graphics Driver\n", "580.95.05"),
        ("580.95.05\nNVIDIA\n", "580.95.05"),
        ("1.0-9755\nold\n", None),
        ("garbage", None),
        ("", None),
    ],
)
def test_the_backup_log_names_the_version(text: str, found: str | None) -> None:
    assert installed_files.parse_backup_log(text) == found


def test_warnings_and_consequences_are_not_causes() -> None:
    log = (
        "WARNING: The Nouveau kernel driver is currently in use by your system.\n"
        "-> Proceeding with installation despite the presence of Nouveau.\n"
        "ERROR: Unable to find the kernel source tree for the currently running kernel.  Please make sure ...\n"
        "ERROR: Installation has failed.  Please see the file '/var/log/nvidia-installer.log' for details.\n"
    )
    message = explained(runfile_messages.describe_failure(log, ""))
    assert "headers of the kernel are missing" in message and "has failed" not in message


def test_an_unknown_failure_shows_the_output() -> None:
    assert "strange thing" in explained(runfile_messages.describe_failure("", "a strange thing\n"))
    assert "no output" in explained(runfile_messages.describe_failure("", ""))


# ---- what is missing ------------------------------------------------------------------------------------------------


def test_nothing_is_missing_in_the_desired_state() -> None:
    assert runfile_state.missing_parts(with_driver(), SETTINGS) == []


@pytest.mark.parametrize(
    ("host", "settings", "words"),
    [
        (RecordedHost(), SETTINGS, "the .run driver 580.178.04"),
        (with_driver("580.95.05"), SETTINGS, "580.178.04 in place of 580.95.05"),
        (with_driver(flavour="proprietary"), SETTINGS, "the open module in place of the proprietary one"),
        (with_driver(), SETTINGS._replace(kernels=[KERNEL, NEWER]), "the module for " + NEWER),
        (RecordedHost(files={installed_files.BACKUP_LOG: "580.178.04\n"}, programs=modinfo("580.178.04")), SETTINGS, "the libraries"),
        (RecordedHost(files=with_driver().files, programs=modinfo("570.1.1")), SETTINGS, "in place of 570.1.1"),
        (RecordedHost(files={**with_driver().files, "/var/lib/gpu-ready/runfile-pending": ""}, programs=modinfo("580.178.04")),
         SETTINGS, "interrupted"),
    ],
)  # fmt: skip
def test_missing_parts_are_named(host: RecordedHost, settings: DriverSpec, words: str) -> None:
    assert words in ", ".join(runfile_state.missing_parts(host, settings))


def test_a_further_kernel_needs_only_a_build() -> None:
    both = SETTINGS._replace(kernels=[KERNEL, NEWER])
    assert runfile_state.kernels_to_build(with_driver(), both) == [NEWER]
    assert runfile_state.kernels_to_build(with_driver(flavour="proprietary"), both) == []
    assert runfile_state.kernels_to_build(with_driver("580.95.05"), both) == []
    assert runfile_state.kernels_to_build(RecordedHost(), both) == []
    assert (
        runfile_state.kernels_to_build(with_driver(), SETTINGS._replace(kernels=[NEWER])) == []
    )  # the flavour is unknown


# ---- refusals -------------------------------------------------------------------------------------------------------


def owning(answer: str) -> RecordedHost:
    host = with_driver()
    argv = ("dpkg-query", "-S", "/lib/x86_64-linux-gnu/libnvidia-ml.so.580.178.04")
    real = [
        f"/lib/modules/{KERNEL}/updates/dkms/nvidia.ko", "/usr/bin/nvidia-smi", "/usr/bin/nvidia-uninstall",
        LIBRARY + "580.178.04", "/usr/src/nvidia-580.178.04/dkms.conf",
    ]  # fmt: skip
    host.programs[("dpkg-query", "-S", *real, argv[2])] = Result(1, answer, "dpkg-query: no path found\n")
    return host


def test_a_driver_of_packages_is_refused_with_their_names() -> None:
    host = owning("libnvidia-ml1:amd64: " + LIBRARY + "580.178.04\nnvidia-smi: /usr/bin/nvidia-smi\n")
    with pytest.raises(
        RunfileError, match=r"belongs to packages \(libnvidia-ml1, nvidia-smi; for example /usr/lib.*\)"
    ):
        runfile_state.refuse_packages(host, SETTINGS)


def test_a_driver_that_no_package_owns_is_not_refused() -> None:
    runfile_state.refuse_packages(owning(""), SETTINGS)
    runfile_state.refuse_packages(RecordedHost(), SETTINGS)


def test_package_owners_from_dpkg_and_rpm() -> None:
    text = "diversion by glx from: /usr/lib/a\na:amd64, b:i386: /usr/lib/a\n"
    assert runfile_state.parse_dpkg_owners(text) == {"a": "/usr/lib/a", "b": "/usr/lib/a"}
    output = "nvidia-driver-cuda\nfile /usr/lib64/x is not owned by any package\n"
    assert runfile_state.parse_rpm_owners(output, ["/usr/bin/nvidia-smi", "/usr/lib64/x"]) == {
        "nvidia-driver-cuda": "/usr/bin/nvidia-smi"
    }


def test_a_foreign_run_driver_is_refused_unless_allowed() -> None:
    with pytest.raises(RunfileError, match=r"580\.178\.04.*outside of gpu-ready.*nvidia_driver_replace_foreign"):
        runfile_state.refuse_foreign(with_driver(), ours=False, replace=False)
    for ours, replace in ((True, False), (False, True)):
        runfile_state.refuse_foreign(with_driver(), ours, replace)
    runfile_state.refuse_foreign(RecordedHost(), ours=False, replace=False)


def test_open_modules_of_a_release_without_them_are_refused() -> None:
    with pytest.raises(RunfileError, match=r"470\.256\.02 has no open kernel modules"):
        runfile_state.refuse_flavour(SETTINGS._replace(version="470.256.02"))
    runfile_state.refuse_flavour(SETTINGS)


def buildable(**more: object) -> RecordedHost:
    files = {f"/lib/modules/{KERNEL}/build/Makefile": "", **more.pop("files", {})}  # type: ignore[dict-item]
    programs = {(name,): Result(0, "", "") for name in ("cc", "make", "ld", "dkms")}
    return RecordedHost(files=files, programs=programs, **more)  # type: ignore[arg-type]


def test_missing_headers_and_tools_are_refused() -> None:
    runfile_state.refuse_unbuildable(buildable(), SETTINGS)
    with pytest.raises(RunfileError, match=r"headers of the kernel 6\.1\.0-41-amd64 are missing"):
        runfile_state.refuse_unbuildable(buildable(), SETTINGS._replace(kernels=[KERNEL, NEWER]))
    host = buildable()
    del host.programs[("dkms",)], host.programs[("cc",)]
    with pytest.raises(RunfileError, match="needs cc and dkms"):
        runfile_state.refuse_unbuildable(host, SETTINGS)


def test_installers_before_545_refuse_nouveau_and_users() -> None:
    old = SETTINGS._replace(version="470.256.02", flavour="proprietary")
    nouveau = {"/sys/bus/pci/drivers/nouveau/0000:01:00.0/class": "", "/sys/bus/pci/drivers/nouveau/bind": ""}
    with pytest.raises(RunfileError, match=r"nouveau drives the GPU 0000:01:00\.0.*Reboot"):
        runfile_state.refuse_unbuildable(buildable(files=nouveau), old)
    runfile_state.refuse_unbuildable(buildable(files=nouveau), SETTINGS)
    used = {"/sys/module/nvidia/refcnt": "1\n", "/proc/77/comm": "smi\n", "/proc/77/cmdline": "nvidia-persistenced\0"}
    host = buildable(files=used, links={"/proc/77/fd/3": "/dev/nvidia0"}, directories=["/sys/module/nvidia"])
    with pytest.raises(RunfileError, match=r"process 77 \(nvidia-persistenced\) uses the loaded NVIDIA driver"):
        runfile_state.refuse_unbuildable(host, old)
    runfile_state.refuse_unbuildable(host, SETTINGS)


# ---- the file -------------------------------------------------------------------------------------------------------

NAME = "NVIDIA-Linux-x86_64-580.178.04.run"
LIMITS = runfile_fetch.RunfileLimits(10.0, 30.0, 30.0)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A web server: its address, and the directory that it serves."""
    root = tmp_path / "served"
    root.mkdir()

    with web_server.serve_directory(root) as url:
        yield url, root


def obtain(source: InstallerSource, directory: Path, settings: DriverSpec = SETTINGS) -> str:
    (directory / "work").mkdir(exist_ok=True)
    return runfile_fetch.fetch_driver_installer(source, settings, "x86_64", str(directory / "work"), LIMITS)


def test_a_file_is_downloaded_and_verified_by_its_checksum_file(server: tuple[str, Path], tmp_path: Path) -> None:
    url, root = server
    (root / NAME).write_text(HEAD)
    (root / f"{NAME}.sha256sum").write_text(f"{files.checksum(str(root / NAME))}  {NAME}\n")
    path = obtain(InstallerSource(f"{url}/{NAME}", "", f"{url}/{NAME}.sha256sum"), tmp_path)
    assert Path(path).read_text() == HEAD
    assert obtain(InstallerSource(f"{url}/{NAME}", files.checksum(path).upper()), tmp_path) == path


@pytest.mark.parametrize(
    ("content", "sha256", "sums", "words"),
    [
        (HEAD, "0" * 64, None, r"has sha256 [0-9a-f]{64}, expected 0000.*Nothing was changed"),
        (HEAD, "", None, "http://.* cannot be verified"),
        (HEAD, "", "<html>", "has no sha256 of NVIDIA-Linux"),
        (None, "0" * 64, None, r"the server answered 404"),
        ("<html>", "right", None, r"is not a \.run installer"),
        (HEAD.replace("580.178", "580.95"), "right", None, r"contains the driver 580\.95\.04 .* expected 580\.178\.04"),
        (HEAD.replace("x86_64", "aarch64"), "right", None, "for aarch64, expected"),
    ],
)
def test_a_wrong_file_is_refused(
    server: tuple[str, Path], tmp_path: Path, content: str | None, sha256: str, sums: str | None, words: str
) -> None:
    url, root = server
    if content is not None:
        (root / NAME).write_text(content)
        sha256 = files.checksum(str(root / NAME)) if sha256 == "right" else sha256
    if sums is not None:
        (root / "sums").write_text(sums)
    with pytest.raises(GpuReadyError, match=words):
        obtain(InstallerSource(f"{url}/{NAME}", sha256, f"{url}/sums" if sums is not None else ""), tmp_path)


def test_an_unreachable_server_is_named(tmp_path: Path) -> None:
    with pytest.raises(GpuReadyError, match=r"could not be fetched: .*check network and proxy"):
        obtain(InstallerSource(f"http://127.0.0.1:9/{NAME}", "0" * 64), tmp_path)


def test_a_path_on_the_host(tmp_path: Path) -> None:
    file = tmp_path / NAME
    with pytest.raises(RunfileError, match="there is no installer /"):
        obtain(InstallerSource(str(file)), tmp_path)
    file.write_text(HEAD)
    assert obtain(InstallerSource(str(file)), tmp_path) == str(file)
    with pytest.raises(RunfileError, match="expected 0000"):
        obtain(InstallerSource(str(file), "0" * 64), tmp_path)


def test_the_directory_for_programs_has_space(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runfile_fetch, "WORK_DIRECTORIES", (str(tmp_path / "absent"), str(tmp_path)))
    assert runfile_fetch.choose_work_directory(0) == str(tmp_path)
    with pytest.raises(RunfileError, match=r"MiB free"):
        runfile_fetch.choose_work_directory(1 << 60)


def test_temporary_directories_are_removed_also_those_of_a_killed_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runfile_fetch, "WORK_DIRECTORIES", (str(tmp_path),))
    left = tmp_path / (runfile_fetch.PREFIX + "left")
    (left / "unpacked").mkdir(parents=True)
    with runfile_fetch.work_directory() as directory:
        Path(directory, "file").write_text("x")
        assert not left.exists()
        with pytest.raises(LockError, match="another run"), runfile_fetch.work_directory():
            pass
    assert not list(tmp_path.iterdir())


def test_only_directories_of_a_killed_run_are_deleted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    own, kept = tmp_path / "own", tmp_path / "kept"
    for directory in (own, kept):
        directory.mkdir()
    (kept / "file").write_text("of an administrator")
    (own / (runfile_fetch.PREFIX + "file")).write_text("")
    (own / (runfile_fetch.PREFIX + "link")).symlink_to(kept)
    (own / (runfile_fetch.PREFIX + "ours")).mkdir()
    (own / (runfile_fetch.PREFIX + "ours") / "link").symlink_to(kept)
    theirs = own / (runfile_fetch.PREFIX + "theirs")
    theirs.mkdir()
    if os.geteuid() == 0:
        os.chown(theirs, 65534, 65534)
    monkeypatch.setattr(runfile_fetch, "WORK_DIRECTORIES", (str(own),))
    with runfile_fetch.work_directory() as made:
        assert Path(made).parent == own
        assert Path(made).stat().st_mode & 0o777 == 0o700
    left = sorted(path.name.rpartition("-")[2] for path in own.iterdir())
    assert left == ["file", "link", *(["theirs"] if os.geteuid() == 0 else [])]
    assert (kept / "file").read_text() == "of an administrator"


@pytest.mark.parametrize("path", runfile_fetch.WORK_DIRECTORIES)
def test_installers_work_where_only_root_writes(path: str) -> None:
    assert not path.startswith(("/tmp", "/var/tmp", "/dev/shm", "/home"))


# ---- change ---------------------------------------------------------------------------------------------------------


class Installing(RecordedHost):
    """A host on which the installer works, or fails with a log; its programs change the host."""

    def __init__(self, log: str = "", rc: int = 0, before: RecordedHost | None = None) -> None:
        files = {f"/lib/modules/{kernel}/build/Makefile": "" for kernel in (KERNEL, NEWER)}
        tools: dict[tuple[str, ...], Result] = {(name,): Result(0, "", "") for name in ("cc", "make", "ld", "dkms")}
        before = before or RecordedHost()
        super().__init__(files={**files, **before.files}, programs={**tools, **before.programs})
        self.log, self.rc = log, rc

    def uname(self) -> tuple[str, str]:
        return KERNEL, "x86_64"

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        self.asked.append(tuple(argv))
        if argv[0] == "sh" and "--check" in argv:
            return Result(0, "OK", "")
        if argv[0] == "sh":
            self.files[runfile_messages.LOG] = self.log
            if self.rc == 0:
                self.files.update(with_driver().files)
                self.programs.update(modinfo("580.178.04"))
            return Result(self.rc, "", "")
        if argv[:2] == ["dkms", "install"]:
            self.programs.update(modinfo("580.178.04", kernel=argv[-1]))
            return Result(0, "", "")
        return super().run(argv, timeout, env)


@pytest.fixture
def installer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> InstallerSource:
    monkeypatch.setattr(runfile_fetch, "WORK_DIRECTORIES", (str(tmp_path),))
    (tmp_path / NAME).write_text(HEAD)
    return InstallerSource(str(tmp_path / NAME))


def test_one_run_of_the_installer_and_one_build_for_each_further_kernel(
    installer: InstallerSource, tmp_path: Path
) -> None:
    host = Installing()
    runfile.install(host, SETTINGS._replace(kernels=[KERNEL, NEWER]), installer, LIMITS, str(tmp_path))
    ran = [argv for argv in host.asked if argv[0] in ("sh", "dkms")]
    assert [argv[2] for argv in ran[:2]] == ["--check", "--silent"]
    assert ran[2:] == [("dkms", "install", "-m", "nvidia", "-v", "580.178.04", "-k", NEWER)]
    assert manifest.read(str(tmp_path / "manifest.json")) == {
        "runfile": {"driver": {"before": None, "versions": ["580.178.04"]}}
    }
    assert not (tmp_path / installed_files.PENDING).exists()


def test_a_further_kernel_is_built_without_the_installer(installer: InstallerSource, tmp_path: Path) -> None:
    host = Installing(before=with_driver())
    runfile.install(host, SETTINGS._replace(kernels=[KERNEL, NEWER]), InstallerSource("/absent"), LIMITS, str(tmp_path))
    assert not [argv for argv in host.asked if argv[0] == "sh"]


def test_a_failure_names_the_cause_and_leaves_no_trace(installer: InstallerSource, tmp_path: Path) -> None:
    host = Installing("ERROR: Unable to find the development tool `cc` in your path\n", rc=1)
    with raises_explained(
        RunfileError, match=r"ended with 1, and no driver was installed: a tool for building.*installer\.log.*Remedy: "
    ):
        runfile.install(host, SETTINGS, installer, LIMITS, str(tmp_path))
    assert manifest.read(str(tmp_path / "manifest.json")) == {}
    assert not (tmp_path / installed_files.PENDING).exists()


def test_message_of_a_failed_upgrade_names_the_previous_driver(installer: InstallerSource, tmp_path: Path) -> None:
    host = Installing("ERROR: No space left on device\n", rc=1, before=with_driver("580.95.05"))
    with raises_explained(RunfileError, match=r"580\.95\.05 is still installed: a disk is full"):
        runfile.install(host, SETTINGS, installer, LIMITS, str(tmp_path))


class HalfDone(Installing):
    """The installer fails after it has begun to install."""

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        answer = super().run(argv, timeout, env)
        if argv[0] == "sh" and "--check" not in argv:
            self.files.update(with_driver().files)
        return answer


def test_an_interrupted_run_is_marked_until_the_next(installer: InstallerSource, tmp_path: Path) -> None:
    with pytest.raises(RunfileError, match="the driver is incomplete"):
        runfile.install(HalfDone("ERROR: No space left on device\n", rc=1), SETTINGS, installer, LIMITS, str(tmp_path))
    assert (tmp_path / installed_files.PENDING).exists()
    assert "runfile" in manifest.read(str(tmp_path / "manifest.json"))


def test_an_installer_that_did_nothing_is_an_error(installer: InstallerSource, tmp_path: Path) -> None:
    host = Installing()
    with pytest.raises(RunfileError, match="succeeded, but"):
        runfile.install(host, SETTINGS._replace(flavour="proprietary"), installer, LIMITS, str(tmp_path))


class Removing(RecordedHost):
    """A host whose uninstaller ends with 0, and does its work or not."""

    works = True

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        self.asked.append(tuple(argv))
        if argv[0] == "/usr/bin/nvidia-uninstall" and self.works:
            self.files = {path: text for path, text in self.files.items() if path.startswith("/var/lib/dkms")}
        return Result(0, "", "")


def removing(works: bool = True) -> Removing:
    host = Removing(files={**with_driver().files, "/var/lib/dkms/nvidia/580.178.04/source/x": ""})
    host.works = works
    return host


def test_a_driver_is_removed_by_its_own_uninstaller_and_from_dkms(tmp_path: Path) -> None:
    host = removing()
    manifest_notes.note(
        "runfile", {"driver": {"before": None, "versions": ["580.178.04"]}}, str(tmp_path / "manifest.json")
    )
    assert runfile.remove(host, str(tmp_path)) == ["the driver 580.178.04", "its modules in DKMS"]
    assert host.asked[0] == ("/usr/bin/nvidia-uninstall", "--silent")
    assert host.asked[1] == ("dkms", "remove", "-m", "nvidia", "-v", "580.178.04", "--all")
    assert manifest.read(str(tmp_path / "manifest.json")) == {}


def test_an_uninstaller_that_ends_with_0_and_did_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunfileError, match="did not remove the driver 580.178.04"):
        runfile.remove(removing(works=False), str(tmp_path))


def test_a_driver_without_its_uninstaller_is_an_error_and_none_at_all_is_not(tmp_path: Path) -> None:
    host = RecordedHost(files={installed_files.BACKUP_LOG: "580.95.05\n"})
    with pytest.raises(RunfileError, match="its uninstaller is missing"):
        runfile.remove(host, str(tmp_path))
    assert runfile.remove(RecordedHost(), str(tmp_path)) == []


def test_the_copy_of_the_installer_is_removed_and_an_operators_file_stays(
    installer: InstallerSource, tmp_path: Path
) -> None:
    (tmp_path / "state").mkdir()
    runfile.install(Installing(), SETTINGS, installer, LIMITS, str(tmp_path / "state"))
    assert Path(installer.location).exists()
    with pytest.raises(RunfileError):
        runfile.install(Installing(rc=1), SETTINGS, installer, LIMITS, str(tmp_path))
    assert Path(installer.location).exists()
    runfile.install(Installing(), SETTINGS, installer, LIMITS, str(tmp_path))
    assert not Path(installer.location).exists()
