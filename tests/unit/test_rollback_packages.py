"""The packages of a rollback, with the real apt and dpkg in a root of their own and a repository on the disk."""

import shutil
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base import work_directories
from plugins.module_utils.gpu_ready.packaging import apt_state, archives
from plugins.module_utils.gpu_ready.packaging.apt import Apt
from plugins.module_utils.gpu_ready.packaging.install import parse_transaction
from plugins.module_utils.gpu_ready.packaging.manager import PackageChange, PackageError, PackageSpec
from plugins.module_utils.gpu_ready.upgrade import stage
from tests.unit.private_root import Deb, PrivateRoot, Repository
from tests.unit.recorded import RecordedHost

pytestmark = [pytest.mark.host_io, pytest.mark.skipif(not shutil.which("apt-get"), reason="there is no apt here")]
DRIVER, LIBRARY = "nvidia-headless-580", "libnvidia-compute-580"
OLD, NEW = "1:580.95.05-0ubuntu1", "1:580.105.08-0ubuntu1"


class DriverRepository(Repository):
    def driver(self, *versions: str) -> None:
        """Offer the driver and its library in these versions."""
        both = [Deb(DRIVER, version, f"{LIBRARY} (= {version})") for version in versions]
        self.publish(*both, *[Deb(LIBRARY, version) for version in versions])


@pytest.fixture(params=["file", "copy"])
def host(request: pytest.FixtureRequest, tmp_path: Path) -> PrivateRoot:
    root = PrivateRoot(tmp_path / "root")
    (root.root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] {request.param}:{tmp_path}/repository ./\n")
    return root


@pytest.fixture
def repository(tmp_path: Path) -> DriverRepository:
    return DriverRepository(tmp_path / "repository")


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
    transaction = parse_transaction({"names": [{"name": DRIVER, "version": NEW}]})
    staged = stage.stage_packages(manager(host), [transaction])
    stage.keep_for_rollback(manager(host), staged, [])
    return staged


def with_old_driver(host: PrivateRoot, repository: DriverRepository) -> None:
    repository.driver(OLD)
    manager(host).update()
    install(host, OLD)
    assert manager(host).run_change("emptying the cache", ["clean"]).rc == 0


def upgrade_and_forget(host: PrivateRoot, repository: DriverRepository) -> None:
    """Upgrade the driver; then the repository no longer has the old version, and the cache is empty."""
    with_old_driver(host, repository)
    repository.driver(OLD, NEW)
    prepare_upgrade(host)
    install(host, NEW)
    repository.driver(NEW)
    manager(host).update()
    manager(host).run_change("emptying the cache", ["clean"])


def test_an_upgrade_keeps_the_files_of_its_rollback(host: PrivateRoot, repository: DriverRepository) -> None:
    with_old_driver(host, repository)
    repository.driver(OLD, NEW)
    staged = prepare_upgrade(host)
    assert staged.coming == [f"{LIBRARY}={NEW}", f"{DRIVER}={NEW}"]
    assert staged.kept == [f"{LIBRARY}={OLD}", f"{DRIVER}={OLD}"]
    assert installed(host) == {DRIVER: OLD, LIBRARY: OLD}
    assert all(archives.find_kept(host, name, OLD, str(host.root / "packages")) for name in (DRIVER, LIBRARY))


def test_the_rollback_needs_no_source_that_still_has_the_version(
    host: PrivateRoot, repository: DriverRepository
) -> None:
    """The lists are read again between upgrade and rollback, as apt-daily does, and the cache is emptied."""
    upgrade_and_forget(host, repository)
    shutil.move(repository.directory, f"{repository.directory}.away")
    install(host, OLD)
    assert installed(host) == {DRIVER: OLD, LIBRARY: OLD}


def test_a_kept_file_that_was_changed_is_not_installed(host: PrivateRoot, repository: DriverRepository) -> None:
    upgrade_and_forget(host, repository)
    path = archives.find_kept(host, LIBRARY, OLD, str(host.root / "packages"))
    assert path
    with Path(path).open("ab") as file:
        file.write(b"x")
    with pytest.raises(PackageError):
        install(host, OLD)
    assert installed(host) == {DRIVER: NEW, LIBRARY: NEW}


def test_a_version_that_left_its_source_is_refused_although_apt_succeeds(
    host: PrivateRoot, repository: DriverRepository
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
    host: PrivateRoot, repository: DriverRepository
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


def test_a_disk_that_is_too_small_is_named_before_the_download(host: PrivateRoot, repository: DriverRepository) -> None:
    with_old_driver(host, repository)
    repository.driver(OLD, NEW)
    host.free = lambda path: 1000  # type: ignore[method-assign]
    with pytest.raises(PackageError, match="2 packages need .* but only 0 MB are free"):
        prepare_upgrade(host)
    assert archives.read_listing(host, manager(host).store) == {}


def pin(name: str, version: str) -> str:
    return f"Package: {name}\nPin: version {version}\nPin-Priority: 1001\n"


def test_the_driver_is_chosen_with_the_pins_as_they_will_be(
    host: PrivateRoot, repository: DriverRepository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The present pin package is removed, the next one counts, and so does what the owner pins; nothing of it is left."""
    newest, preferences, work = "1:580.200-0ubuntu1", host.root / "etc/apt/preferences.d", tmp_path / "work"
    monkeypatch.setattr(apt_state, "PREFERENCES", str(preferences))
    monkeypatch.setattr(work_directories, "SMALL_FILES", str(work))
    work.mkdir()
    preferences.mkdir()
    repository.driver(OLD)
    manager(host).update()
    calls, simulation = manager(host).plan_change("library", PackageChange([PackageSpec(LIBRARY)], [], []))
    manager(host).apply_change("library", calls, simulation)
    pins = [
        Deb(f"pin-{name}", files={f"{preferences}/pin-{name}": pin(DRIVER, of)})
        for name, of in (("old", OLD), ("new", NEW))
    ]
    both = [Deb(DRIVER, version, f"{LIBRARY} (= {version})") for version in (OLD, NEW, newest)]
    repository.publish(*pins, *both, *[Deb(LIBRARY, version) for version in (OLD, NEW, newest)])
    manager(host).update()
    apt = manager(host)
    calls, simulation = apt.plan_change("pins", PackageChange([PackageSpec("pin-old")], [], []))
    apt.apply_change("pins", calls, simulation)
    (preferences / "pin-old").write_text(pin(DRIVER, OLD))
    (preferences / "owner").write_text(pin(LIBRARY, NEW))
    driver = parse_transaction({"names": [DRIVER]})
    staged = stage.stage_packages(
        manager(host), [parse_transaction({"names": ["pin-new"], "remove": ["pin-old"]}), driver]
    )
    assert staged.coming == [f"{LIBRARY}={NEW}", f"{DRIVER}={NEW}", "pin-new=1"]
    assert staged.kept == [f"{LIBRARY}={OLD}", "pin-old=1"]
    assert all(archives.find_deb(host, *package.split("=")) for package in staged.coming + staged.kept)
    assert set(installed(host)) == {LIBRARY, "pin-old"} and list(work.iterdir()) == []
    # Without another pin the present one decides.
    assert stage.stage_packages(manager(host), [driver]).coming == [f"{DRIVER}={OLD}"]


def test_packages_that_an_installer_replaces_are_kept(host: PrivateRoot, repository: DriverRepository) -> None:
    with_old_driver(host, repository)
    removal = parse_transaction({"remove": [LIBRARY, "absent"], "allow_remove": [DRIVER]})
    staged = stage.stage_packages(manager(host), [removal])
    assert staged == ([], [f"{LIBRARY}={OLD}", f"{DRIVER}={OLD}"])
    assert stage.stage_packages(manager(host), []) == ([], [])


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
