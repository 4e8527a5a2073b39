"""Which packages uninstalling removes and keeps: the real apt and dpkg, in a private root with packages of this test."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.lifecycle.removal.package_plan import MARKED, PackagePlan, plan_packages
from plugins.module_utils.gpu_ready.packaging import apt, install
from plugins.module_utils.gpu_ready.packaging.manager import PackageError, PackageSpec
from tests.unit.apt_root import AptRoot, apt_is_here

pytestmark = pytest.mark.skipif(not apt_is_here(), reason="needs apt")
PACKAGES = {
    "driver": ("1.0-1", "dkms, libdriver"),
    "libdriver": ("1.0-1", ""),
    "dkms": ("3.0-1", "gcc, make"),
    "gcc": ("12-1", ""),
    "make": ("4-1", ""),
    "slurm": ("22-1", "libdriver"),
    "either": ("1-1", "gcc | make"),
    "vim": ("9-1", ""),
    "squatter": ("1-1", ""),
}
"""Version and dependencies by name."""
DRIVER = ["dkms", "driver", "gcc", "libdriver", "make"]


class InstallingRoot(AptRoot):
    """A private root in which packages are really installed, from a directory of packages without scripts."""

    def __init__(self, root: Path, archive: Path) -> None:
        super().__init__(root)
        for name in ("info", "updates", "triggers"):
            (root / "var/lib/dpkg" / name).mkdir()
        (root / "var/log/apt").mkdir(parents=True)
        self.archive = root / "archive"
        shutil.copytree(archive, self.archive)
        options = "".join(
            f'DPkg::Options:: "{option}";\n'
            for option in (f"--root={root}", "--force-not-root", "--force-script-chrootless", "--force-unsafe-io")
        )
        with (root / "apt.conf").open("a") as handle:
            handle.write(options + 'Dir::Bin::dpkg "/usr/bin/dpkg";\n')
        self.write("/etc/apt/sources.list", f"deb [trusted=yes] file:{self.archive} ./\n")
        self.good("apt-get", "update")

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        known = {"DPKG_ADMINDIR": str(self.root / "var/lib/dpkg")}
        return super().run(argv, timeout, {**known, **(env or {})})

    def good(self, *argv: str) -> str:
        answer = self.run([*argv])
        assert answer.rc == 0, answer
        return answer.out

    @property
    def names(self) -> list[str]:
        found = apt.parse_installed(self.good("dpkg-query", "-W", "-f", apt.QUERY))
        return sorted(name for name, one in found.items() if one.state == "installed")


class Apt(apt.Apt):
    """apt in the private root; the other file systems of this machine have nothing to do with it."""

    def check_disk(self, simulation: Any) -> None:
        """The test's packages are small."""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the packages and their index."""
    directory = tmp_path_factory.mktemp("packages")
    archive = directory / "archive"
    archive.mkdir()
    index = ""
    for name, (version, depends) in PACKAGES.items():
        tree = directory / "build" / name
        (tree / "DEBIAN").mkdir(parents=True)
        place = tree / "usr/share" / ("libdriver" if name == "squatter" else name)  # dpkg refuses the second of both
        place.mkdir(parents=True)
        (place / "file").write_text(name)
        control = f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: x <x@x.example>\n"
        control += (f"Depends: {depends}\n" if depends else "") + "Description: x\n"
        (tree / "DEBIAN/control").write_text(control)
        file = archive / f"{name}.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree, file], check=True, capture_output=True)
        digest = manifest.digest(file.read_bytes())
        index += control + f"Filename: ./{name}.deb\nSize: {file.stat().st_size}\nSHA256: {digest}\n\n"
    (archive / "Packages").write_text(index)
    return archive


@pytest.fixture
def root(tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> InstallingRoot:
    path = str(tmp_path / "state/manifest.json")
    for function in (manifest.read, manifest_notes.note, manifest_notes.drop, manifest_notes.note_packages):
        monkeypatch.setattr(function, "__defaults__", (path,))
    monkeypatch.setattr(manifest_notes.forget_packages, "__defaults__", ((), path))
    return InstallingRoot(tmp_path / "root", archive)


def converge(root: InstallingRoot, *names: str, **values: Any) -> None:
    request = install.Transaction([], [], {}, {}, [], False, [], [], [], False, "the driver")
    request = request._replace(names=[PackageSpec(name) for name in names], **values)
    install.converge(Apt(root, locks=()), request, False)


def plan(root: InstallingRoot) -> PackagePlan:
    return plan_packages(Apt(root, locks=()), manifest.read())


def uninstall(root: InstallingRoot) -> None:
    manager = Apt(root, locks=())
    manager.run_change("purging", manager.removal_command(plan(root).remove))


def test_what_was_installed_is_removed_and_nothing_else(root: InstallingRoot) -> None:
    root.good("apt-get", "install", "-y", "vim")
    converge(root, "driver")
    assert root.names == [*DRIVER, "vim"] and plan(root) == PackagePlan(DRIVER, {})
    uninstall(root)
    assert root.names == ["vim"]


def test_packages_of_a_transaction_that_failed_are_not_ours(root: InstallingRoot) -> None:
    """The mirror lost a file; the administrator then installs the compiler by hand."""
    (root.archive / "libdriver.deb").unlink()
    with pytest.raises(PackageError):
        converge(root, "driver")
    assert manifest.read().get("packages", {}) == {}
    root.good("apt-get", "install", "-y", "dkms")
    assert plan(root) == PackagePlan([], {})


def test_a_transaction_that_failed_halfway_leaves_no_package_and_no_record(root: InstallingRoot) -> None:
    """It is undone: test_failed_transaction.py. What it did install completely stays, and stays recorded."""
    root.good("apt-get", "install", "-y", "squatter")
    with pytest.raises(PackageError):
        converge(root, "driver")
    assert not set(Apt(root, locks=()).installed()) & set(DRIVER)
    assert manifest.owned_packages(manifest.read()) == []


def test_a_package_that_somebody_removed_and_installed_again_is_theirs(root: InstallingRoot) -> None:
    converge(root, "driver")
    root.good("apt-get", "purge", "-y", "driver", "dkms")
    converge(root, "libdriver")
    assert sorted(manifest.owned_packages(manifest.read())) == ["gcc", "libdriver", "make"]
    root.good("apt-get", "install", "-y", "dkms")
    assert plan(root) == PackagePlan(["libdriver"], {"gcc": "dkms needs it", "make": "dkms needs it"})


def test_a_package_that_somebody_marked_is_kept_with_what_it_needs(root: InstallingRoot) -> None:
    converge(root, "driver")
    root.good("apt-mark", "hold", "driver")  # as gpu-ready does: apt removes what depends on a package, but no hold
    root.good("apt-mark", "manual", "dkms")
    kept = {"dkms": MARKED, "gcc": "dkms needs it", "make": "dkms needs it"}
    assert plan(root) == PackagePlan(["driver", "libdriver"], kept)
    uninstall(root)
    assert root.names == ["dkms", "gcc", "make"]


def test_a_package_that_another_one_needs_now_is_kept_and_the_others_are_removed(root: InstallingRoot) -> None:
    converge(root, "driver")
    root.good("apt-get", "install", "-y", "slurm")
    assert plan(root) == PackagePlan(["dkms", "driver", "gcc", "make"], {"libdriver": "slurm needs it"})
    uninstall(root)
    assert root.names == ["libdriver", "slurm"]


def test_of_two_packages_that_satisfy_another_one_only_one_is_kept(root: InstallingRoot) -> None:
    converge(root, "driver")
    root.good("apt-get", "install", "-y", "either")
    found = plan(root)
    assert found.kept == {"make": "either needs it"} and found.remove == ["dkms", "driver", "gcc", "libdriver"]


def test_what_gpu_ready_itself_requests_later_is_no_mark_of_somebody(root: InstallingRoot) -> None:
    """apt marks a dependency as manual when it is requested by name, as an upgrade with exact versions does."""
    converge(root, "driver")
    root.good("apt-get", "remove", "-y", "driver", "dkms")
    converge(root, "driver", "dkms")
    assert "dkms" in Apt(root, locks=()).user_installed() and plan(root) == PackagePlan(DRIVER, {})


def test_halves_are_asked_about_although_packages_outside_of_them_are_held(root: InstallingRoot) -> None:
    converge(root, "driver")
    root.good("apt-mark", "hold", "driver")
    root.good("apt-get", "install", "-y", "slurm", "either")
    assert plan(root) == PackagePlan(
        ["dkms", "driver", "gcc"], {"libdriver": "slurm needs it", "make": "either needs it"}
    )
