"""gpu_packages: what is installed, recorded and held, and what a failure leaves."""

from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes
from plugins.module_utils.gpu_ready.packaging import install
from plugins.module_utils.gpu_ready.packaging.manager import (
    Installed,
    Manager,
    PackageChange,
    PackageError,
    PackageSpec,
    Simulation,
)
from tests.unit.recorded import RecordedHost


class Fake(Manager):
    """A package manager whose sources and database are dictionaries."""

    program = "fake"

    def __init__(self, sources: dict[str, list[str]], **database: str) -> None:
        super().__init__(RecordedHost(files={"/etc/group": "docker:x:999:\n"}))
        self.sources = sources
        self.database = {name: Installed(version, "installed", False) for name, version in database.items()}
        self.calls: list[str] = []
        self.errors: list[str] = []

    def installed(self) -> dict[str, Installed]:
        return dict(self.database)

    def find_interrupted(self) -> list[str]:
        return []

    def repair(self, ours: list[str] | None = None) -> list[str]:
        return []

    def update(self) -> None:
        self.calls.append("update")

    def offers(self, names: list[str]) -> dict[str, list[str]]:
        return {name: self.sources[name] for name in names if name in self.sources}

    def plan_change(self, what: str, change: PackageChange) -> tuple[list[list[str]], Simulation]:
        now = {name: one.version for name, one in self.database.items()}
        new = {spec.name: (now.get(spec.name), self.sources[spec.name][0]) for spec in change.install}
        return [["install"]], Simulation(new, change.remove)

    def apply_change(self, what: str, calls: list[list[str]], simulation: Simulation) -> None:
        self.calls.append("apply")
        if self.errors:
            raise PackageError(self.errors.pop(0))
        for name, (_, version) in simulation.install.items():
            self.database[name] = Installed(version, "installed", False)
        for name in simulation.remove:
            del self.database[name]

    def hold(self, names: list[str]) -> None:
        self.database.update({name: self.database[name]._replace(hold=True) for name in names})

    def unhold(self, names: list[str]) -> None:
        self.database.update({name: self.database[name]._replace(hold=False) for name in names})


@pytest.fixture(autouse=True)
def manifest_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "manifest.json")
    for function in (manifest.read, manifest_notes.note, manifest_notes.drop, manifest_notes.note_packages):
        monkeypatch.setattr(function, "__defaults__", (path,))
    monkeypatch.setattr(manifest_notes.forget_packages, "__defaults__", ((), path))


def converge(manager: Fake, check: bool = False, **values: Any) -> dict[str, Any]:
    names = values.pop("names", [])
    request = install.PackageRequest([], [], {}, {}, [], False, [], [], [], False, "docker")
    specs = [PackageSpec(*name.split("=")) for name in names]
    return install.converge(manager, request._replace(names=specs, **values), check)


def test_new_packages_are_recorded_with_what_their_removal_would_leave() -> None:
    manager = Fake({"docker.io": ["28.1"]}, tool="1")
    found = converge(manager, names=["docker.io", "tool"], hold=["docker.io"])
    assert found["installed"] == {"docker.io": "28.1"} and found["held"] == ["docker.io"] and found["changed"]
    assert found["versions"] == {"docker.io": "28.1", "tool": "1"}
    assert manifest.read() == {
        "packages": {"docker.io": {"manual": True}},
        "stays": {"docker": {}},
        "holds": {"docker.io": {}},
    }
    assert not converge(manager, names=["docker.io", "tool"], hold=["docker.io"])["changed"]


def test_a_package_that_is_requested_with_its_version_is_recorded_as_requested() -> None:
    """dnf marks it so, and uninstalling would take that mark for somebody else's."""
    manager = Fake({}, gcc="1")
    new = {
        "kernel-devel": "5.14.0-570.el9",
        "kernel-devel-matched": "5.14.0-570.el9",
        "tools": "0:1-1",
        "tools-13": "2-1",
    }
    requested = ["kernel-devel-5.14.0-570.el9", "kernel-devel-matched-5.14.0-570.el9.x86_64", "tools-13"]
    install.record_new_packages(manager, Simulation({name: (None, one) for name, one in new.items()}, []), requested)
    recorded = manifest.read()["packages"]
    assert {name for name in recorded if recorded[name]["manual"]} == {
        "kernel-devel",
        "kernel-devel-matched",
        "tools-13",
    }


def test_what_somebody_else_removed_is_no_longer_ours_and_the_rest_stays_ours() -> None:
    converge(Fake({"docker.io": ["28.1"], "tool": ["1"]}), names=["docker.io", "tool"])
    manager = Fake({}, tool="1")
    converge(manager, check=True, names=["tool"])
    assert set(manifest.owned_packages(manifest.read())) >= {"docker.io", "tool"}
    converge(manager, names=["tool"])
    # Docker's group stays to be removed.
    assert manifest.read()["packages"] == {"docker.io": {"manual": True, "removed": True}, "tool": {"manual": True}}


def test_a_check_changes_nothing() -> None:
    manager = Fake({"docker.io": ["28.1"]})
    found = converge(manager, check=True, names=["docker.io"], hold=["docker.io"])
    assert found["changed"] and found["diff"]["after"] == "docker.io 28.1\n" and found["held"] == ["docker.io"]
    assert (manager.calls, manager.database, manifest.read()) == ([], {}, {})


def test_an_optional_package_without_a_candidate_is_skipped() -> None:
    manager = Fake({"a": ["1"]})
    found = converge(manager, optional=[PackageSpec("a"), PackageSpec("b")])
    assert found["versions"] == {"a": "1"}


def test_lists_older_than_the_mirror_are_read_again_once() -> None:
    manager = Fake({"a": ["1"]})
    manager.errors = ["404 Not Found"]
    assert converge(manager, names=["a"])["changed"] and manager.calls == ["apply", "update", "apply"]
    manager = Fake({"a": ["1"]})
    manager.errors = ["404 Not Found", "404 Not Found"]
    with pytest.raises(PackageError):
        converge(manager, names=["a"])


def test_lists_without_the_version_are_read_first() -> None:
    manager = Fake({"a": ["1"]})
    manager.update = lambda: manager.sources.update(a=["2"])  # type: ignore[method-assign]
    assert converge(manager, names=["a=2*"], update_cache=True)["installed"] == {"a": "2"}


def test_a_failure_sets_the_released_holds_again() -> None:
    manager = Fake({"a": ["2"]}, a="1")
    manager.hold(["a"])
    manager.errors = ["the disk is full"]
    with pytest.raises(PackageError):
        converge(manager, names=["a=2"], unhold=["a"])
    assert manager.database["a"] == Installed("1", "installed", True)
