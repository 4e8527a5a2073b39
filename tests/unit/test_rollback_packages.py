"""The packages of a rollback, with the real apt and dpkg in a root of their own and a repository on the disk."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest
from gpu_ready.base.host import Host, Result
from gpu_ready.packaging import archives
from gpu_ready.packaging.apt import Apt
from gpu_ready.packaging.manager import PackageChange, PackageError, PackageSpec
from gpu_ready.upgrade import stage

from tests.unit.recorded import RecordedHost

pytestmark = [pytest.mark.host_io, pytest.mark.skipif(not shutil.which("apt-get"), reason="there is no apt here")]
CONFIGURATION = """
Dir "{root}/";
Dir::State::status "{root}/var/lib/dpkg/status";
Dir::Bin::dpkg "/usr/bin/dpkg";
APT::Sandbox::User "root";
DPkg::Options {{ "--root={root}"; "--force-not-root"; "--force-bad-path"; "--log={root}/dpkg.log"; }};
"""
DRIVER, LIBRARY = "nvidia-headless-580", "libnvidia-compute-580"
OLD, NEW = "1:580.95.05-0ubuntu1", "1:580.105.08-0ubuntu1"


class PrivateRoot(Host):
    """A host with packages of its own: its apt and dpkg know nothing of this machine."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        for name in ("etc/apt/sources.list.d", "var/lib/dpkg/info", "var/lib/apt/lists/partial", "var/log/apt"):
            (root / name).mkdir(parents=True)
        (root / "var/cache/apt/archives/partial").mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        (root / "apt.conf").write_text(CONFIGURATION.format(root=root))

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        own = {"APT_CONFIG": str(self.root / "apt.conf"), "DPKG_ADMINDIR": str(self.root / "var/lib/dpkg")}
        return super().run(argv, timeout, {**(env or {}), **own})

    def listdir(self, path: str) -> list[str]:
        return super().listdir(str(self.root) + path if path.startswith("/var/lib/apt/") else path)


class Repository:
    """A repository on the disk, which a host reads by ``file:`` (in place) or ``copy:`` (through its cache)."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()

    def publish(self, *packages: tuple[str, str, str]) -> None:
        """Offer exactly these packages: name, version, dependencies."""
        for path in self.directory.iterdir():
            path.unlink()
        index = ""
        for name, version, depends in packages:
            tree = self.directory.parent / "tree"
            (tree / "DEBIAN").mkdir(parents=True, exist_ok=True)
            fields = f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: Lab <lab@example>\n"
            fields += (f"Depends: {depends}\n" if depends else "") + f"Description: {name}\n"
            (tree / "DEBIAN/control").write_text(fields)
            file = self.directory / f"{name}_{version.rpartition(':')[2]}_all.deb"
            subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, file], check=True, capture_output=True)
            content = file.read_bytes()
            index += f"{fields}Filename: ./{file.name}\nSize: {len(content)}\n"
            index += f"SHA256: {hashlib.sha256(content).hexdigest()}\n\n"
        (self.directory / "Packages").write_text(index)

    def driver(self, *versions: str) -> None:
        """Offer the driver and its library in these versions."""
        both = [(DRIVER, version, f"{LIBRARY} (= {version})") for version in versions]
        self.publish(*both, *[(LIBRARY, version, "") for version in versions])


@pytest.fixture(params=["file", "copy"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> PrivateRoot:
    root = PrivateRoot(tmp_path / "root")
    (root.root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] {request.param}:{tmp_path}/repository ./\n")
    return root


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def manager(host: PrivateRoot) -> Apt:
    return Apt(host, locks=(), store=str(host.root / "packages"))


def install(host: PrivateRoot, version: str) -> None:
    """Install the driver in a version as gpu_packages does."""
    apt = manager(host)
    specs = [PackageSpec(name, version) for name in (DRIVER, LIBRARY)]
    calls, simulation = apt.plan_change("installing the driver", PackageChange(specs, [], []))
    apt.apply_change("installing the driver", calls, simulation)


def installed(host: PrivateRoot) -> dict[str, str]:
    return {name: package.version for name, package in manager(host).installed().items()}


def prepare_upgrade(host: PrivateRoot) -> stage.StagedPackages:
    """What gpu_upgrade_stage does for a plan that installs the new version."""
    request = stage.StageRequest(names=[{"name": DRIVER, "version": NEW}])
    staged = stage.stage_packages(manager(host), request)
    stage.keep_for_rollback(manager(host), staged, [])
    return staged


def with_old_driver(host: PrivateRoot, repository: Repository) -> None:
    repository.driver(OLD)
    manager(host).update()
    install(host, OLD)
    assert manager(host).run_change("emptying the cache", ["clean"]).rc == 0


def upgrade_and_forget(host: PrivateRoot, repository: Repository) -> None:
    """Upgrade the driver; then the repository no longer has the old version, and the cache is empty."""
    with_old_driver(host, repository)
    repository.driver(OLD, NEW)
    prepare_upgrade(host)
    install(host, NEW)
    repository.driver(NEW)
    manager(host).update()
    manager(host).run_change("emptying the cache", ["clean"])


def test_an_upgrade_keeps_the_files_of_its_rollback(host: PrivateRoot, repository: Repository) -> None:
    with_old_driver(host, repository)
    repository.driver(OLD, NEW)
    staged = prepare_upgrade(host)
    assert staged.coming == [f"{LIBRARY}={NEW}", f"{DRIVER}={NEW}"]
    assert staged.kept == [f"{LIBRARY}={OLD}", f"{DRIVER}={OLD}"]
    assert installed(host) == {DRIVER: OLD, LIBRARY: OLD}
    assert all(archives.find_kept(host, name, OLD, str(host.root / "packages")) for name in (DRIVER, LIBRARY))


def test_the_rollback_needs_no_source_that_still_has_the_version(host: PrivateRoot, repository: Repository) -> None:
    """The lists are read again between upgrade and rollback, as apt-daily does, and the cache is emptied."""
    upgrade_and_forget(host, repository)
    shutil.move(repository.directory, f"{repository.directory}.away")
    install(host, OLD)
    assert installed(host) == {DRIVER: OLD, LIBRARY: OLD}


def test_a_kept_file_that_was_changed_is_not_installed(host: PrivateRoot, repository: Repository) -> None:
    upgrade_and_forget(host, repository)
    path = archives.find_kept(host, LIBRARY, OLD, str(host.root / "packages"))
    assert path
    with Path(path).open("ab") as file:
        file.write(b"x")
    with pytest.raises(PackageError):
        install(host, OLD)
    assert installed(host) == {DRIVER: NEW, LIBRARY: NEW}


def test_a_version_that_left_its_source_is_refused_although_apt_succeeds(
    host: PrivateRoot, repository: Repository
) -> None:
    with_old_driver(host, repository)
    repository.driver(NEW)
    with pytest.raises(PackageError) as error:
        prepare_upgrade(host)
    message = str(error.value)
    assert f"no package source of this host has {LIBRARY} {OLD}, {DRIVER} {OLD} any more" in message
    assert "Enable a source that keeps old versions" in message
    assert installed(host) == {DRIVER: OLD, LIBRARY: OLD}


def test_a_second_upgrade_keeps_the_files_of_the_recorded_driver_only(
    host: PrivateRoot, repository: Repository
) -> None:
    with_old_driver(host, repository)
    repository.driver(OLD, NEW)
    prepare_upgrade(host)
    apt = manager(host)
    listed = archives.read_listing(host, apt.store)
    stage.keep_for_rollback(apt, stage.StagedPackages([], []), [f"{DRIVER}={OLD}"])
    assert list(archives.read_listing(host, apt.store)) == [f"{DRIVER}={OLD}"]
    files = {path.name for path in Path(apt.store).iterdir()}
    assert files == {archives.LISTING, listed[f"{DRIVER}={OLD}"][0]}


def test_files_of_rpms_are_found_in_caches_and_in_repositories_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, local = tmp_path / "cache/cuda-1/packages", tmp_path / "local"
    for directory in (cache, local):
        directory.mkdir(parents=True)
    (cache / "nvidia-driver-580.95.05-1.el9.x86_64.rpm").touch()
    (local / "nvidia-settings-580.95.05-1.el9.x86_64.rpm").touch()
    monkeypatch.setattr(archives, "RPM_CACHES", (str(tmp_path / "cache"),))
    host = RecordedHost(files={"/etc/yum.repos.d/local.repo": f"[local]\nbaseurl=file://{local}\nenabled=1\n"})
    assert archives.find_rpm(host, "nvidia-driver", "3:580.95.05-1.el9")
    assert archives.find_rpm(host, "nvidia-settings", "3:580.95.05-1.el9")
    assert archives.find_rpm(host, "nvidia-driver", "3:580.105.08-1.el9") is None
    assert archives.find_rpm(host, "nvidia", "3:580.95.05-1.el9") is None
