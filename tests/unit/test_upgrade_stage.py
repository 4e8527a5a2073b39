"""What an upgrade downloads beforehand with dnf; with apt: test_rollback_packages.py."""

from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.packaging import archives, dnf
from plugins.module_utils.gpu_ready.packaging.install import Transaction, parse_transaction
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
        self.simulated_change = simulated
        self.options_of: list[list[str]] = []
        self.lost: tuple[str, ...] = ()
        self.calls: list[list[str]] = []

    def installed(self) -> dict[str, Installed]:
        return {name: Installed(OLD, "installed", False) for name in ("cuda-drivers", "nvidia-driver", "tool")}

    def note(self, *words: str) -> None:
        self.calls.append([*words])
        self.options_of.append(self.extra_options)

    def update(self) -> None:
        self.note("update")

    def offers(self, names: list[str]) -> dict[str, list[str]]:
        return {name: [NEW, OLD] for name in names}

    def lowest_versions(self, packages: list[tuple[str, str]]) -> dict[str, str]:
        return {"nvidia-driver": NEW} if ("cuda-drivers", NEW) in packages else {}

    def simulate(self, what: str, argv: list[str]) -> Simulation:
        self.note("simulate", *argv)
        return self.simulated_change

    def run_change(self, what: str, argv: list[str], needed: str = "") -> Result:
        self.note(*argv)
        version = OLD if argv[0] == "reinstall" else NEW
        for name in [word.partition("-3:")[0] for word in argv if not word.startswith("-")][1:]:
            if name not in self.lost:
                (self.directory / f"{name}-{version[2:]}.x86_64.rpm").touch()
        return Result(0, "", "")


BOTH = Simulation({"cuda-drivers": (OLD, NEW), "nvidia-driver": (OLD, NEW), "new-library": (None, NEW)}, ["tool"])


@pytest.fixture(autouse=True)
def no_cache_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "RPM_CACHES", ())


def transaction(**options: Any) -> Transaction:
    return parse_transaction({"purpose": "NVIDIA driver", **options})


def test_what_the_upgrade_and_its_rollback_install_is_downloaded(tmp_path: Path) -> None:
    """dnf resolves the union of the transactions: it reads no state that one of them would leave."""
    manager = Dnf(tmp_path, BOTH)
    tools = transaction(names=["tool-of-locks"], hold=["cuda-drivers"])
    driver = transaction(
        names=[DRIVER | {"parts": "nvidia-driver$"}],
        streams={"nvidia": "595"},
        remove=["tool"],
        allow_remove=["tool"],
        unhold=["cuda-drivers"],
    )
    staged = stage.stage_packages(manager, [driver, tools])
    assert staged.coming == [f"cuda-drivers={NEW}", f"new-library={NEW}", f"nvidia-driver={NEW}"]
    assert staged.kept == [f"cuda-drivers={OLD}", f"nvidia-driver={OLD}", f"tool={OLD}"]
    packages = ["tool-of-locks", f"cuda-drivers-{NEW}", f"nvidia-driver-{NEW}"]
    assert manager.calls == [
        ["update"],
        ["simulate", "install", "--allowerasing", *packages],
        ["install", "--downloadonly", "--allowerasing", *packages],
        ["reinstall", "--downloadonly", "cuda-drivers", "nvidia-driver", "tool"],
    ]
    kept = ["--setopt=keepcache=1", "--setopt=*.module_hotfixes=1"]
    assert manager.extra_options == kept and manager.options_of[1:] == [[*kept, *dnf.WITHOUT_LOCKS]] * 2 + [kept]


@pytest.mark.parametrize("field", ["remove", "allow_remove"])
def test_a_removal_that_nobody_asked_for_is_refused_before_the_download(tmp_path: Path, field: str) -> None:
    manager = Dnf(tmp_path, BOTH)
    with pytest.raises(PackageError, match="would remove tool, which was not requested"):
        stage.stage_packages(manager, [transaction(names=[DRIVER])])
    assert [one[0] for one in manager.calls] == ["update", "simulate"]
    stage.stage_packages(manager, [transaction(names=[DRIVER], **{field: ["tool"]})])


def test_a_version_that_no_repository_has_any_more_is_refused_although_dnf_succeeds(tmp_path: Path) -> None:
    manager = Dnf(tmp_path, BOTH)
    manager.lost = ("nvidia-driver",)
    with pytest.raises(PackageError, match=f"no package source of this host has nvidia-driver {OLD} any more"):
        stage.stage_packages(manager, [transaction(names=[DRIVER], remove=["tool"])])


def test_packages_that_an_installer_replaces_are_kept(tmp_path: Path) -> None:
    manager = Dnf(tmp_path, BOTH)
    manager.simulated_change = Simulation({}, ["tool"])
    assert stage.stage_packages(manager, [transaction(remove=["tool", "absent"])]) == ([], [f"tool={OLD}"])
    assert manager.calls == [["simulate", "remove", "tool"], ["reinstall", "--downloadonly", "tool"]]
    assert stage.stage_packages(manager, []) == ([], []) and len(manager.calls) == 2


@pytest.mark.parametrize("names", [[DRIVER], []])
def test_downloads_of_repositories_with_a_pinned_key_are_verified(tmp_path: Path, names: list[object]) -> None:
    """Here the file of the key is empty, so nothing can be signed with it."""
    manager = Dnf(tmp_path, BOTH if names else Simulation({}, ["tool"]))
    assert isinstance(manager.host, RecordedHost)
    manager.host.files["/etc/yum.repos.d/gpu-ready-ours.repo"] = OURS % tmp_path
    with pytest.raises(PackageError, match="RPM-GPG-KEY-ours: it holds 0 keys in place of the pinned one"):
        stage.stage_packages(manager, [transaction(names=names, remove=["tool"])])


def test_yum_cannot_download_beforehand(tmp_path: Path) -> None:
    manager = Dnf(tmp_path, BOTH, program="/usr/bin/yum")
    with pytest.raises(PackageError, match="yum 3: .*gpu_upgrade_exclude"):
        stage.stage_packages(manager, [transaction(names=[DRIVER])])
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
