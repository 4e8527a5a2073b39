"""What a package transaction that fails leaves, with the real apt and dpkg in a root of their own."""

import shutil
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes
from plugins.module_utils.gpu_ready.packaging import install
from plugins.module_utils.gpu_ready.packaging.apt import Apt
from plugins.module_utils.gpu_ready.packaging.manager import Installed, PackageError, PackageSpec
from tests.unit.explained import explained
from tests.unit.private_root import Deb, PrivateRoot, Repository

pytestmark = [pytest.mark.host_io, pytest.mark.skipif(not shutil.which("apt-get"), reason="there is no apt here")]
HEADERS = "linux-headers-6.1.0-50-amd64"
EVDI = "/var/lib/dkms/evdi/1.9.1/build/make.log"
DKMS_FAILS = f"""printf '%s\\n' 'Error! Bad return status for module build on kernel: 6.1.0-50-amd64 (x86_64)' \\
  'Consult {EVDI} for more information.' >&2
exit 11"""
"""What DKMS 3 prints in the hook of the headers, and its exit status (`autoinstall` in dkms 3.0.10)."""
FOLLOWER = Deb("linux-headers-amd64", depends=HEADERS)
OLD, NEW = "1:580.95.05-1", "1:595.58.03-1"


@pytest.fixture(autouse=True)
def manifest_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "manifest.json")
    for function in (manifest.read, manifest_notes.note, manifest_notes.drop, manifest_notes.note_packages):
        monkeypatch.setattr(function, "__defaults__", (path,))
    monkeypatch.setattr(manifest_notes.forget_packages, "__defaults__", ((), path))


@pytest.fixture
def host(tmp_path: Path) -> PrivateRoot:
    root = PrivateRoot(tmp_path / "root")
    (root.root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] copy:{tmp_path}/repository ./\n")
    return root


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def manager(host: PrivateRoot) -> Apt:
    return Apt(host, locks=(), store=str(host.root / "packages"))


def converge(host: PrivateRoot, *names: str, remove: tuple[str, ...] = ()) -> None:
    """What gpu_packages does."""
    specs = [PackageSpec(*name.split("=")) for name in names]
    request = install.Transaction(specs, [], {}, {}, list(remove), False, [], [], list(remove), False, "packages")
    install.converge(manager(host), request, check=False)


def state(host: PrivateRoot) -> dict[str, Installed]:
    return {name: one for name, one in manager(host).installed().items() if one.state != "config-files"}


def works(host: PrivateRoot) -> bool:
    """True if dpkg has nothing to complain of, and a real installation succeeds."""
    audit = host.run(["dpkg", f"--root={host.root}", "--audit"])
    installed = host.run(["apt-get", "-y", "install", "hello"])
    removed = host.run(["apt-get", "-y", "remove", "hello"])
    return audit.out + audit.err == "" and (audit.rc, installed.rc, removed.rc) == (0, 0, 0)


def failing(text: str = DKMS_FAILS) -> dict[str, str]:
    return {"postinst": text}


def fail(host: PrivateRoot, *names: str, remove: tuple[str, ...] = ()) -> str:
    with pytest.raises(PackageError) as caught:
        converge(host, *names, remove=remove)
    return explained(str(caught.value))


def test_headers_whose_hook_fails_are_removed_in_the_same_step(host: PrivateRoot, repository: Repository) -> None:
    repository.publish(Deb(HEADERS, scripts=failing()), FOLLOWER, Deb("gcc"), Deb("hello"))
    manager(host).update()
    messages = {fail(host, HEADERS, FOLLOWER.name, "gcc") for _ in range(3)}
    assert len(messages) == 1, "each run says the same"
    message = messages.pop()
    assert "DKMS could not build evdi/1.9.1" in message and "`dkms remove evdi/1.9.1 --all`" in message
    assert message.endswith(f"Removed again, because they were left half configured: {HEADERS}, {FOLLOWER.name}")
    assert list(state(host)) == ["gcc"] and works(host)
    assert set(manifest.read()["packages"]) == {"gcc"}


def test_a_failed_replacement_restores_what_it_replaced(host: PrivateRoot, repository: Repository) -> None:
    """Also a dependency that nobody requested, with apt's mark of one."""
    old = [Deb("driver", OLD, "library"), Deb("library", OLD), Deb("tool", "1")]
    repository.publish(*old, Deb("hello"))
    manager(host).update()
    converge(host, "driver", "tool")
    manager(host).mark("auto", ["tool"])
    before, marked = state(host), manager(host).user_installed()
    other = Deb("driver-595", NEW, "library-595, tool (= 2)", "Conflicts: driver\n", failing())
    repository.publish(
        *old, other, Deb("library-595", NEW, more="Conflicts: library\n"), Deb("tool", "2"), Deb("hello")
    )
    manager(host).update()
    message = fail(host, "driver-595", remove=("driver", "library"))
    assert "installed before were installed again" in message
    assert state(host) == before and manager(host).user_installed() == marked and works(host)
    assert set(manifest.read()["packages"]) == {"driver", "library", "tool"}


def test_what_cannot_be_restored_is_named(host: PrivateRoot, repository: Repository) -> None:
    repository.publish(Deb("driver", OLD), Deb("hello"))
    manager(host).update()
    converge(host, "driver")
    manager(host).run_change("emptying the cache", ["clean"])
    repository.publish(Deb("driver-595", NEW, more="Conflicts: driver\n", scripts=failing("exit 1")), Deb("hello"))
    manager(host).update()
    message = fail(host, "driver-595", remove=("driver",))
    assert f"driver {OLD}" in message and "no package source of this host" in message
    assert state(host) == {} and works(host)


def test_what_cannot_be_configured_again_is_not_left_half_configured(host: PrivateRoot, repository: Repository) -> None:
    """A compiler that is broken builds the earlier module as little as the new one."""
    broken = host.root / "broken"
    builds = {"postinst": f"test ! -e {broken}"}
    old, new = Deb("dkms-580", OLD, scripts=builds), Deb("dkms-595", NEW, more="Conflicts: dkms-580\n", scripts=builds)
    repository.publish(old, new, Deb("hello"))
    manager(host).update()
    converge(host, "dkms-580")
    broken.touch()
    message = fail(host, "dkms-595", remove=("dkms-580",))
    assert f"No longer installed: dkms-580 {OLD}" in message and message.startswith(
        "installing packages: the package dkms-595"
    )
    assert state(host) == {} and works(host)
    broken.unlink()
    converge(host, "dkms-580")


@pytest.mark.parametrize("ours", [True, False])
def test_a_new_version_that_fails_as_the_earlier_one_does_is_removed_if_it_is_ours(
    host: PrivateRoot, repository: Repository, ours: bool
) -> None:
    """A package of the owner is named with the command instead."""
    broken = host.root / "broken"
    builds = {"postinst": f"test ! -e {broken}"}
    old = Deb("dkms-driver", OLD, scripts=builds)
    repository.publish(old, Deb("hello"))
    manager(host).update()
    if ours:
        converge(host, "dkms-driver")
    else:
        assert host.run(["apt-get", "-y", "install", "dkms-driver"]).rc == 0
    repository.publish(old, Deb("dkms-driver", NEW, scripts=builds), Deb("hello"))
    manager(host).update()
    broken.touch()
    message = fail(host, f"dkms-driver={NEW}")
    if ours:
        assert f"No longer installed: dkms-driver {OLD}" in message and state(host) == {} and works(host)
    else:
        assert "Left half configured: dkms-driver" in message and "`dpkg --configure -a`" in message


@pytest.mark.parametrize(("kept", "version"), [(True, "1"), (False, "2")], ids=["restored", "completed"])
def test_packages_of_others_are_restored_or_completed_not_removed(
    host: PrivateRoot, repository: Repository, kept: bool, version: str
) -> None:
    """A transaction upgrades a package of the owner, and fails before that is configured."""
    repository.publish(Deb("libc", "1"), Deb("hello"))
    manager(host).update()
    assert host.run(["apt-get", "-y", "install", "libc"]).rc == 0
    repository.publish(Deb("libc", "2"), Deb("driver", NEW, "libc (= 2)", scripts={"preinst": "exit 1"}), Deb("hello"))
    manager(host).update()
    fail(host, "driver")
    assert set(state(host)) == {"libc"} and works(host)


def test_a_failure_that_changed_nothing_is_only_reported(host: PrivateRoot, repository: Repository) -> None:
    repository.publish(Deb("driver"), Deb("hello"))
    manager(host).update()
    (repository.directory / "driver_1_all.deb").unlink()
    message = fail(host, "driver")
    assert "again" not in message.partition("driver_1_all.deb")[2].replace("run again", "")
    assert works(host) and not manifest.read().get("packages")


def test_what_stays_half_configured_is_named_with_the_command(host: PrivateRoot, repository: Repository) -> None:
    """Its removal fails too."""
    repository.publish(Deb("driver", scripts={"postinst": "exit 1", "prerm": "exit 1"}), Deb("hello"))
    manager(host).update()
    message = fail(host, "driver")
    assert "Left half configured: driver" in message and "`dpkg --configure -a`" in message


def test_the_log_of_a_build_outlives_the_package(host: PrivateRoot, repository: Repository) -> None:
    """Removing the package of a DKMS module removes its tree with the compiler's log."""
    log = "/var/lib/dkms/nvidia/580.95.05/build/make.log"
    path = Path(str(host.root) + log)
    write = f"mkdir -p {path.parent}; echo 'nv.c:7:5: error: implicit declaration of function x' >{path}\n"
    scripts = {"postinst": write + DKMS_FAILS.replace(EVDI, log), "prerm": f"rm -r {path.parent}"}
    repository.publish(Deb("nvidia-dkms", scripts=scripts), Deb("hello"))
    manager(host).update()
    message = fail(host, "nvidia-dkms")
    kept = host.root / "dkms-make.log"
    assert f"the whole log is {kept} on the host" in message and "implicit declaration" in kept.read_text()
    assert not path.exists() and state(host) == {} and works(host)
