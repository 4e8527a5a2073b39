"""What an upgrade downloads beforehand with dnf; with apt: test_rollback_packages.py."""

from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.packaging import archives, dnf
from plugins.module_utils.gpu_ready.packaging.manager import Installed, PackageError, Simulation
from plugins.module_utils.gpu_ready.upgrade import stage
from tests.unit.recorded import RecordedHost

OLD, NEW = "3:580.95.05-1.el9", "3:595.91.07-1.el9"
DRIVER = {"name": "cuda-drivers", "version": NEW}
OURS = "[ours]\nbaseurl=file://%s\nenabled=1\ngpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-ours\n"


class Dnf(dnf.Dnf):
    """dnf with the installed driver of ``OLD``; ``simulated``: what dnf would do. Downloads are files of a directory."""

    def __init__(self, directory: Path, simulated: Simulation, program: str = "/usr/bin/dnf-3") -> None:
        repository = {"/etc/yum.repos.d/local.repo": f"[local]\nbaseurl=file://{directory}\nenabled=1\n"}
        super().__init__(
            RecordedHost(files=repository, links={"/usr/bin/dnf": program}, programs={("dnf",): Result(0, "", "")})
        )
        self.directory = directory
        self.simulated = simulated
        self.lost: tuple[str, ...] = ()
        self.calls: list[list[str]] = []

    def installed(self) -> dict[str, Installed]:
        return {name: Installed(OLD, "installed", False) for name in ("cuda-drivers", "nvidia-driver", "tool")}

    def update(self) -> None:
        self.calls.append(["update"])

    def offers(self, names: list[str]) -> dict[str, list[str]]:
        return {name: [NEW, OLD] for name in names}

    def lowest_versions(self, packages: list[tuple[str, str]]) -> dict[str, str]:
        return {"nvidia-driver": NEW} if ("cuda-drivers", NEW) in packages else {}

    def simulate(self, what: str, argv: list[str]) -> Simulation:
        self.calls.append(["simulate", *argv])
        return self.simulated

    def run_change(self, what: str, argv: list[str], needed: str = "") -> Result:
        self.calls.append(argv)
        version = OLD if argv[0] == "reinstall" else NEW
        for name in [word.partition("-3:")[0] for word in argv if not word.startswith("-")][1:]:
            if name not in self.lost:
                (self.directory / f"{name}-{version[2:]}.x86_64.rpm").touch()
        return Result(0, "", "")


BOTH = Simulation({"cuda-drivers": (OLD, NEW), "nvidia-driver": (OLD, NEW), "new-library": (None, NEW)}, ["tool"])


@pytest.fixture(autouse=True)
def no_cache_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "RPM_CACHES", ())


def test_what_the_upgrade_and_its_rollback_install_is_downloaded(tmp_path: Path) -> None:
    manager = Dnf(tmp_path, BOTH)
    names: list[object] = [DRIVER | {"parts": "nvidia-driver$"}]
    request = stage.StageRequest(names=names, pins=["pin-595"], pins_removed=["tool"], streams={"nvidia": "595"})
    staged = stage.stage_packages(manager, request)
    assert staged.coming == [f"cuda-drivers={NEW}", f"new-library={NEW}", f"nvidia-driver={NEW}"]
    assert staged.kept == [f"cuda-drivers={OLD}", f"nvidia-driver={OLD}", f"tool={OLD}"]
    packages = ["pin-595", f"cuda-drivers-{NEW}", f"nvidia-driver-{NEW}"]
    assert manager.calls == [
        ["update"],
        ["simulate", "install", "--allowerasing", *packages],
        ["install", "--allowerasing", "--downloadonly", *packages],
        ["reinstall", "--downloadonly", "cuda-drivers", "nvidia-driver", "tool"],
    ]
    options = ["--disableplugin=versionlock", "--setopt=keepcache=1"]
    assert manager.extra_options == [*options, "--setopt=*.module_hotfixes=1"]
    stage.stage_packages(manager, request._replace(streams={}))
    assert manager.extra_options == options


@pytest.mark.parametrize("field", ["remove", "allowed", "pins_removed"])
def test_a_removal_that_nobody_asked_for_is_refused_before_the_download(tmp_path: Path, field: str) -> None:
    manager = Dnf(tmp_path, BOTH)
    with pytest.raises(PackageError, match="would remove tool, which was not requested"):
        stage.stage_packages(manager, stage.StageRequest(names=[DRIVER]))
    assert [one[0] for one in manager.calls] == ["update", "simulate"]
    asked: dict[str, Any] = {field: ["tool"]}
    stage.stage_packages(manager, stage.StageRequest(names=[DRIVER])._replace(**asked))


def test_a_version_that_no_repository_has_any_more_is_refused_although_dnf_succeeds(tmp_path: Path) -> None:
    manager = Dnf(tmp_path, BOTH)
    manager.lost = ("nvidia-driver",)
    with pytest.raises(PackageError, match=f"no package source of this host has nvidia-driver {OLD} any more"):
        stage.stage_packages(manager, stage.StageRequest(names=[DRIVER], remove=["tool"]))


def test_packages_that_an_installer_replaces_are_kept(tmp_path: Path) -> None:
    manager = Dnf(tmp_path, BOTH)
    assert stage.stage_packages(manager, stage.StageRequest(replaced=["tool", "absent"])) == ([], [f"tool={OLD}"])
    assert manager.calls == [["reinstall", "--downloadonly", "tool"]]
    assert stage.stage_packages(manager, stage.StageRequest()) == ([], []) and len(manager.calls) == 1


@pytest.mark.parametrize(
    "request_", [stage.StageRequest(names=[DRIVER], remove=["tool"]), stage.StageRequest(replaced=["tool"])]
)
def test_downloads_of_repositories_with_a_pinned_key_are_verified(tmp_path: Path, request_: stage.StageRequest) -> None:
    """Here the file of the key is empty, so nothing can be signed with it."""
    manager = Dnf(tmp_path, BOTH)
    assert isinstance(manager.host, RecordedHost)
    manager.host.files["/etc/yum.repos.d/gpu-ready-ours.repo"] = OURS % tmp_path
    with pytest.raises(PackageError, match="RPM-GPG-KEY-ours: it holds 0 keys in place of the pinned one"):
        stage.stage_packages(manager, request_)


def test_yum_cannot_download_beforehand(tmp_path: Path) -> None:
    manager = Dnf(tmp_path, BOTH, program="/usr/bin/yum")
    with pytest.raises(PackageError, match="yum 3: .*gpu_upgrade_exclude"):
        stage.stage_packages(manager, stage.StageRequest(names=[DRIVER]))
    assert manager.calls == []


def test_the_files_of_apt_are_found_where_the_site_keeps_its_cache(tmp_path: Path) -> None:
    """Dir::Cache moves it; file names have the colon of an epoch as %3a (apt-pkg/acquire-item.cc)."""
    asked = ("apt-config", "shell", "FOUND", "Dir::Cache::archives/d")
    (tmp_path / "nvidia-headless_1%3a580.95-1_amd64.deb").touch()
    moved = RecordedHost(
        files={str(path): "" for path in tmp_path.iterdir()}, programs={asked: Result(0, f"FOUND='{tmp_path}/'\n", "")}
    )
    assert archives.cache_directory(moved) == str(tmp_path)
    assert archives.cache_directory(RecordedHost()) == "/var/cache/apt/archives"
    assert archives.find_deb(moved, "nvidia-headless", "1:580.95-1") == str(
        tmp_path / "nvidia-headless_1%3a580.95-1_amd64.deb"
    )
    assert (
        archives.find_deb(moved, "nvidia-headless", "1:580.96-1")
        is archives.find_deb(moved, "nvidia", "1:580.95-1")
        is None
    )
