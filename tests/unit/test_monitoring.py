"""The service that writes metrics: when it is planned, what it leaves on a host, and that an uninstallation removes it."""

import functools
import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes
from plugins.module_utils.gpu_ready.base.host import Host, Result
from plugins.module_utils.gpu_ready.driver import gpu_services
from plugins.module_utils.gpu_ready.facts import monitoring as facts_monitoring
from plugins.module_utils.gpu_ready.facts.model import ContainerFacts, Facts, MonitoringFacts, WorkFacts
from plugins.module_utils.gpu_ready.lifecycle import monitoring, uninstall
from plugins.module_utils.gpu_ready.lifecycle.removal import recorded_files
from plugins.module_utils.gpu_ready.lifecycle.removal.context import Removal
from plugins.module_utils.gpu_ready.system import monitoring_files as files
from plugins.plugin_utils.gpu_ready.catalog import data as catalog_data
from plugins.plugin_utils.gpu_ready.plan import audit, compose
from plugins.plugin_utils.gpu_ready.plan.monitoring import plan_monitoring
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import hosts
from tests.unit.recorded import RecordedHost

PYTHON = "/usr/bin/python3"


def settings(**given: Any) -> Any:
    found, errors = variables.parse_settings(given)
    assert errors == []
    return found


def ready(**monitoring_facts: Any) -> Facts:
    host = hosts.with_driver(hosts.bare(hosts.T4), "580.95.05", "open", "cuda_repo", [])
    return host._replace(monitoring=MonitoringFacts(python=PYTHON, **monitoring_facts))


def decide(host: Facts, **given: Any) -> Any:
    return plan_monitoring(host, settings(**{"gpu_monitoring": ["textfile"], **given}))


def installed(host: Facts, **given: Any) -> Facts:
    return hosts.carried_out(host, decide(host, **given))


def test_nothing_is_planned_unless_it_is_asked_for() -> None:
    assert plan_monitoring(ready(), settings()).steps == []


def test_the_step_comes_last_needs_no_verification_and_is_done_once() -> None:
    before = compose.plan(ready(), settings())
    after = compose.plan(ready(), settings(gpu_monitoring=["textfile"]))
    assert [step.id for step in after.steps] == [step.id for step in before.steps] + ["gpu_monitoring.textfile"]
    assert after.digest == before.digest and after.steps[-1].disruption == "none"
    assert decide(installed(ready())).steps == []


@pytest.mark.parametrize("change", [
    {"running": False}, {"program": "other"}, {"files": {files.UNIT: "[Service]\n"}}, {"files": {}},
])  # fmt: skip
def test_what_differs_is_planned_again_and_drift(change: dict[str, Any]) -> None:
    host = installed(ready())
    host = host._replace(monitoring=host.monitoring._replace(**change))
    assert [step.id for step in decide(host).steps] == ["gpu_monitoring.textfile"]
    asked = settings(gpu_monitoring=["textfile"])
    answer = audit.answer_json(host, compose.plan(host, asked))
    (check,) = [one for one in answer["checks"] if one["name"] == "monitoring"]  # type: ignore[attr-defined]
    assert check["ok"] is False and "metrics of the GPUs" in check["why"]


def test_another_setting_changes_the_files() -> None:
    host = installed(ready())
    for change in ({"gpu_monitoring_interval": 15}, {"gpu_monitoring_old_names": True}):
        assert [one.path for one in decide(host, **change).steps[0].diff] == [files.SETTINGS]
        assert not decide(host, **change).steps[0].params.reload
    (step,) = decide(host, gpu_monitoring_directory="/srv/metrics").steps
    assert step.params.reload and "ReadWritePaths=/srv/metrics\n" in step.diff[0].after


def test_systemd_reads_no_units_while_containers_have_gpus() -> None:
    host = installed(ready())._replace(work=WorkFacts(containers=[ContainerFacts("docker", "1" * 64, "train", "GPU")]))
    (step,) = decide(host, gpu_monitoring_directory="/srv/metrics").steps
    assert not step.params.reload


def test_without_the_setting_the_service_is_removed() -> None:
    steps = plan_monitoring(installed(ready()), settings()).steps
    assert [step.id for step in steps] == ["gpu_monitoring.remove"]


def test_a_host_without_node_exporter_is_warned() -> None:
    assert [one.code for one in decide(ready()).warnings] == ["metrics_not_read"]
    assert decide(ready(exporter="/srv/metrics")).warnings == []
    assert decide(ready(exporter="/srv/metrics")).steps[0].params.directory == "/srv/metrics"
    assert decide(ready(exporter="/a"), gpu_monitoring_directory="/b").steps[0].params.directory == "/b"


@pytest.mark.parametrize("wrong", ["relative", "/a b", "/x\nExecStart=/bin/sh", "/%n", "/../etc/"])
def test_a_directory_is_a_plain_path(wrong: str) -> None:
    errors = variables.parse_settings({"gpu_monitoring_directory": wrong}).errors
    assert len(errors) == 1 and "gpu_monitoring_directory" in errors[0]


@pytest.mark.parametrize("wrong", [["node_exporter"], ["textfile", "x"], "none"])
def test_other_ways_are_refused(wrong: object) -> None:
    errors = variables.parse_settings({"gpu_monitoring": wrong}).errors
    assert len(errors) == 1 and "gpu_monitoring" in errors[0]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("/etc/default/prometheus-node-exporter", 'ARGS="--collector.textfile.directory=/srv/a --web"\n', "/srv/a"),
        ("/etc/systemd/system/node_exporter.service", "ExecStart=/x \\\n '--collector.textfile.directory=/srv/b'", "/srv/b"),
        ("/etc/default/prometheus-node-exporter", 'ARGS=""\n', ""),
        ("/usr/bin/prometheus-node-exporter", "", "/var/lib/prometheus/node-exporter"),
        ("/etc/hosts", "", ""),
    ],
)  # fmt: skip
def test_the_directory_of_node_exporter(path: str, text: str, expected: str) -> None:
    host = RecordedHost()
    host.files[path] = text
    assert facts_monitoring.collect(host).exporter == expected


def test_the_driver_is_changed_without_the_service() -> None:
    assert gpu_services.UNITS[0] == files.NAME + ".service"


# ---- on a host ------------------------------------------------------------------------------------------------------


class Systemd(Host):
    """Knows which units run."""

    def __init__(self) -> None:
        self.active: set[str] = set()
        self.asked: list[str] = []

    def run(self, argv: list[str], timeout: float = 30.0, env: "dict[str, str] | None" = None) -> Result:
        if argv[:2] == ["systemctl", "is-active"]:
            return Result(0 if argv[-1] in self.active else 3, "", "")
        if argv[0] == "systemctl" and argv[1] not in ("is-enabled", "show"):
            self.asked.append(" ".join(argv[1:]))
            if argv[1] in ("start", "restart"):
                self.active.add(argv[-1])
            elif argv[1] == "stop":
                self.active.discard(argv[-1])
        return Result(0, "", "")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in place of /; the manifest is in it too."""
    for name in ("UNIT", "AT_BOOT", "DIRECTORY", "PROGRAM", "SETTINGS", "MAIN", "PID_FILE"):
        monkeypatch.setattr(files, name, str(tmp_path) + getattr(files, name))
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    path = str(tmp_path / "var/lib/gpu-ready/manifest.json")
    note, drop, read = manifest_notes.note, manifest_notes.drop, manifest.read
    monkeypatch.setattr(manifest_notes, "note", lambda section, entries, *_: note(section, entries, path))
    monkeypatch.setattr(manifest_notes, "drop", lambda section, keys, *_: drop(section, keys, path))
    monkeypatch.setattr(manifest, "read", lambda *_: read(path))
    for name in ("note_files", "make_parents"):
        monkeypatch.setattr(manifest_notes, name, functools.partial(getattr(manifest_notes, name), path=path))
    directories = (*recorded_files.DIRECTORIES, str(tmp_path / "etc/systemd/system/multi-user.target.d"))
    monkeypatch.setattr(recorded_files, "DIRECTORIES", directories)
    return tmp_path


def request(place: Path, **changes: Any) -> files.MonitoringParams:
    params = files.MonitoringParams(PYTHON, f"{place}/metrics", 30, False, {"580": "2028-06"})
    return params._replace(**changes)


def everything(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()}


@pytest.mark.host_io
def test_the_service_is_installed_updated_and_found_again(place: Path) -> None:
    host = Systemd()
    assert monitoring.install(host, request(place), check=True)["changed"] and everything(place) == set()
    assert monitoring.install(host, request(place), check=False)["changed"]
    assert host.asked == ["restart gpu-ready-monitoring"] and (place / "metrics").is_dir()
    known = facts_monitoring.collect(host)
    assert known.program == catalog_data.MONITOR and known.python == PYTHON
    assert set(known.files) == {files.UNIT, files.AT_BOOT, files.SETTINGS, files.MAIN}
    assert not monitoring.install(host, request(place), check=False)["changed"]
    (Path(files.PROGRAM) / "nvml.py").write_text("x")
    (Path(files.PROGRAM) / "older.py").write_text("x")
    assert monitoring.install(host, request(place, interval=5, reload=True), check=False)["changed"]
    assert host.asked[1:] == ["daemon-reload", "restart gpu-ready-monitoring"]
    assert facts_monitoring.collect(host).program == catalog_data.MONITOR
    assert json.loads(Path(files.SETTINGS).read_text())["interval"] == 5


@pytest.mark.host_io
def test_the_service_is_removed_where_it_is_not_asked_for_any_more(place: Path) -> None:
    host = Systemd()
    monitoring.install(host, request(place), check=False)
    assert monitoring.remove(host, check=True)["changed"]
    assert host.active == {"gpu-ready-monitoring"}
    assert monitoring.remove(host, check=False)["changed"]
    assert host.active == set() and everything(place) == {"var/lib/gpu-ready/manifest.json"}
    assert not monitoring.remove(host, check=False)["changed"]


@pytest.mark.host_io
def test_a_service_that_systemd_starts_again_and_again_is_stopped_for_its_removal(place: Path) -> None:
    """Between two starts it is "activating", not active."""
    host = Systemd()
    monitoring.install(host, request(place), check=False)
    host.active.clear()
    monitoring.remove(host, check=False)
    assert "stop gpu-ready-monitoring" in host.asked


@pytest.mark.host_io
def test_uninstalling_stops_the_service_and_leaves_nothing(place: Path) -> None:
    host = Systemd()
    monitoring.install(host, request(place), check=False)
    removal = Removal(host, str(place / "var/lib/gpu-ready"))
    subjects = ("find_services", "find_directories", "find_files", "find_parents")
    for find in [one for one in uninstall.SUBJECTS if one.__name__ in subjects]:
        for action in find(removal):
            action.act()
    assert host.active == set() and "stop gpu-ready-monitoring" in host.asked
    assert everything(place) == {"var/lib/gpu-ready/manifest.json"}
    assert not (place / "usr/local/lib/gpu-ready").exists() and not (place / "metrics").exists()
