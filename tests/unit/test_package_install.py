"""gpu_packages: what is installed, recorded and held, and what a failure leaves."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes
from plugins.module_utils.gpu_ready.base.host import Result
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
        self.enabled: dict[str, str] = {}
        self.stale = self.removes_alone = False
        self.interrupted: list[str] = []

    def installed(self) -> dict[str, Installed]:
        return dict(self.database)

    def find_interrupted(self) -> list[str]:
        return self.interrupted

    def repair(self, ours: list[str] | None = None) -> list[str]:
        self.calls += ["repair"] if self.interrupted else []
        return self.interrupted

    def update(self) -> None:
        self.calls.append("update")
        self.stale = False

    def lists_are_stale(self) -> bool:
        return self.stale

    def lowest_versions(self, packages: list[tuple[str, str]]) -> dict[str, str]:
        return {f"{name}-part": version for name, version in packages if name == "meta"}

    def streams(self) -> dict[str, str]:
        return dict(self.enabled)

    def enable_streams(self, streams: dict[str, str]) -> None:
        self.calls.append("enable")
        self.enabled.update(streams)

    def restore_streams(self, before: dict[str, str | None]) -> None:
        self.enabled = {name: stream for name, stream in (self.enabled | before).items() if stream}

    def removal_command(self, names: list[str]) -> list[str]:
        return ["purge", *names]

    def run_change(self, what: str, argv: list[str]) -> Result:
        self.calls.append(f"{what}: {' '.join(argv)}")
        return Result(0, "", "")

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
        for name in simulation.remove:
            self.database[name] = Installed(self.database[name].version, "config-files", False)
        if not (self.removes_alone and simulation.remove):
            for name, (_, version) in simulation.install.items():
                self.database[name] = Installed(version, "installed", False)

    @contextlib.contextmanager
    def simulated(self) -> Iterator[None]:
        before = dict(self.database)
        try:
            yield
        finally:
            self.database = before

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
    request = install.Transaction([], [], {}, {}, [], False, [], [], [], False, "docker")
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


@pytest.mark.parametrize("stale", [False, True])
@pytest.mark.parametrize("update_cache", [False, True])
def test_an_optional_package_without_a_candidate_is_skipped(stale: bool, update_cache: bool) -> None:
    """Lists that were never read offer nothing, so they are read before; where all are installed, they need not be."""
    manager = Fake({"a": ["1"]})
    manager.stale = stale
    optional = [PackageSpec("a"), PackageSpec("b")]
    assert converge(manager, check=True, optional=optional, update_cache=update_cache)["installed"] == {"a": "1"}
    assert manager.calls == []
    found = converge(manager, optional=optional, update_cache=update_cache)
    assert found["versions"] == {"a": "1"}
    assert manager.calls == ["update"] * (stale and update_cache) + ["apply"]
    manager.stale, manager.calls = True, []
    assert not converge(manager, optional=optional[:1], update_cache=update_cache)["changed"] and not manager.calls


def test_the_parts_of_an_exact_metapackage_are_chosen_from_fresh_lists() -> None:
    """A metapackage requires its parts in its version or a newer one: alone it would install the newest."""
    manager = Fake({"other": ["1"]})
    fresh, update = {"meta": ["1-1", "2-1"], "meta-part": ["1-1", "2-1"]}, manager.update

    def read() -> None:
        update()
        manager.sources.update(fresh)

    manager.update = read  # type: ignore[method-assign]
    given: dict[str, Any] = {"names": ["meta=1-1", "other"], "parts": {"meta": "part$"}, "update_cache": True}
    manager.stale = True
    assert converge(manager, **given)["versions"] == {"meta": "1-1", "meta-part": "1-1", "other": "1"}
    assert manager.calls == ["update", "apply"]
    manager.stale, manager.calls = True, []
    assert not converge(manager, **given)["changed"] and not manager.calls


def test_a_purge_removes_what_removed_packages_left() -> None:
    manager = Fake({}, old="1", older="1")
    found = converge(manager, remove=["old", "absent"])
    assert (found["removed"], found["diff"]["before"], manager.calls) == (["old"], "old 1\n", ["apply"])
    converge(manager, check=True, remove=["old", "absent"], purge=True)
    assert manager.calls == ["apply"]
    converge(manager, remove=["old", "absent"], purge=True)
    assert manager.calls == ["apply", "purging old: purge old"]


def test_a_manager_that_removes_first_installs_in_a_second_call() -> None:
    """yum 3 cannot replace packages in one transaction."""
    for removes_alone, calls in ((False, ["apply"]), (True, ["apply", "apply"])):
        manager = Fake({"new": ["2"]}, old="1")
        manager.removes_alone = removes_alone
        found = converge(manager, names=["new"], remove=["old"])
        assert (found["versions"], found["removed"], manager.calls) == ({"new": "2"}, ["old"], calls)


def test_a_success_of_the_manager_without_the_package_is_an_error() -> None:
    manager = Fake({"a": ["1"]})
    manager.apply_change = lambda what, calls, simulation: None  # type: ignore[method-assign]
    with pytest.raises(PackageError, match="installing docker: fake succeeded, but a is not installed"):
        converge(manager, names=["a"])


def test_a_module_stream_is_enabled_before_the_packages_and_recorded_with_the_one_before() -> None:
    manager = Fake({"driver": ["595"]}, old="1", kept="1")
    manager.enabled = {"nvidia": "580"}
    given: dict[str, Any] = {"names": ["driver", "kept"], "streams": {"nvidia": "595"}, "remove": ["old", "absent"]}
    found = converge(manager, check=True, **given)
    # Only an enabled stream shows its packages, so a check simulates nothing.
    assert (found["streams"], found["installed"], found["removed"]) == ({"nvidia": "595"}, {"driver": "any"}, ["old"])
    assert (manager.calls, manager.enabled, manifest.read()) == ([], {"nvidia": "580"}, {})
    assert converge(manager, **given)["streams"] == {"nvidia": "595"}
    assert manager.calls == ["enable", "apply"] and manifest.read()["streams"] == {"nvidia": {"before": "580"}}
    found = converge(manager, **given)
    assert not found["changed"] and found["streams"] == {} and manager.calls == ["enable", "apply"]


@pytest.mark.parametrize("changed", [False, True])
def test_a_failure_restores_the_module_streams_unless_packages_changed(changed: bool) -> None:
    manager = Fake({"driver": ["595"]}, tool="1")

    def fail(what: str, calls: list[list[str]], simulation: Simulation) -> None:
        if changed:
            manager.database["tool"] = Installed("2", "installed", False)
        raise PackageError("the disk is full")

    manager.apply_change = fail  # type: ignore[method-assign]
    with pytest.raises(PackageError):
        converge(manager, names=["driver"], streams={"nvidia": "595"})
    assert manager.enabled == ({"nvidia": "595"} if changed else {})


def test_interrupted_packages_are_repaired_or_in_a_check_only_named() -> None:
    manager = Fake({}, a="1")
    manager.interrupted = ["a"]
    assert converge(manager, check=True)["repaired"] == ["a"] and manager.calls == []
    found = converge(manager)
    assert found["repaired"] == ["a"] and found["changed"] and manager.calls == ["repair"]


def test_a_hold_is_set_once_and_of_what_is_installed() -> None:
    manager = Fake({}, a="1", b="1")
    assert converge(manager, hold=["a", "absent"])["held"] == ["a"]
    assert converge(manager, hold=["a", "b"])["held"] == ["b"]
    found = converge(manager, hold=["a"], unhold=["a", "b", "absent"])
    assert (found["unheld"], found["held"], manager.held()) == (["a", "b"], ["a"], ["a"])
    assert manifest.read()["holds"] == {"a": {}}


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
