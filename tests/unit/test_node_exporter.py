"""node_exporter of the distribution: when it is installed, what is recognised and kept, and that ours is removed."""

import re
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts import monitoring as facts_monitoring
from plugins.module_utils.gpu_ready.facts import work
from plugins.module_utils.gpu_ready.facts.model import Facts, ManifestFacts, MonitoringFacts
from plugins.module_utils.gpu_ready.system import monitoring_files as files
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion import complete
from plugins.plugin_utils.gpu_ready.plan import audit, compose
from plugins.plugin_utils.gpu_ready.plan.node_exporter import NodeExporterParams
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import hosts
from tests.unit.recorded import RecordedHost

PACKAGE = "prometheus-node-exporter"
INSTALL = {"gpu_monitoring": ["textfile"], "gpu_monitoring_node_exporter": "install"}
STEP, REMOVAL = "gpu_monitoring.node_exporter", "gpu_monitoring.remove_node_exporter"


def settings(**given: Any) -> Any:
    found, errors = variables.parse_settings(given)
    assert errors == []
    return found


def host(distro: str = "debian12", packages: tuple[str, ...] = (), ours: bool = False, **known: Any) -> Facts:
    """A host with the driver of NVIDIA's repository, and these packages and facts of node_exporter."""
    facts = hosts.with_driver(hosts.bare(hosts.T4, distro=distro), "580.95.05", "open", "cuda_repo", [])
    installed = dict(facts.packages.installed, **dict.fromkeys(packages, "1.9.1-1"))
    manifest = ManifestFacts(packages=list(packages) if ours else [])
    return facts._replace(
        packages=facts.packages._replace(installed=installed),
        runtime=facts.runtime._replace(manifest=manifest),
        monitoring=MonitoringFacts(python="/usr/bin/python3", **known),
    )


def plan(facts: Facts, **given: Any) -> compose.Plan:
    return compose.plan(facts, settings(**given))


def steps(facts: Facts, **given: Any) -> list[str]:
    return [step.id for step in plan(facts, **given).steps if "node_exporter" in step.id]


def test_it_is_installed_before_the_metrics_are_written_and_nothing_is_stopped_for_it() -> None:
    found = plan(host(), **INSTALL)
    assert [step.id for step in found.steps][-2:] == [STEP, "gpu_monitoring.textfile"]
    step = found.steps[-2]
    assert step.params == NodeExporterParams([PACKAGE], files.NODE_EXPORTER)
    assert (step.disruption, step.verify_after) == ("none", False)
    assert "metrics_not_read" not in {one.code for one in found.warnings}


@pytest.mark.parametrize("given", [{}, {"gpu_monitoring": ["textfile"]}, {**INSTALL, "gpu_monitoring": ["dcgm"]}])
def test_it_is_not_installed_unasked_or_without_metrics_to_read(given: dict[str, Any]) -> None:
    assert steps(host(), **given) == []


def test_one_that_runs_is_kept_whoever_runs_it() -> None:
    assert steps(host(exporter_runs=True), **INSTALL) == []
    assert steps(host(packages=(PACKAGE,), ours=True, exporter_runs=True), **INSTALL) == []


def test_ours_that_does_not_run_is_drift_and_is_started() -> None:
    facts = host(packages=(PACKAGE,), ours=True)
    found = plan(facts, **INSTALL)
    assert STEP in [step.id for step in found.steps]
    answer = audit.answer_json(facts, found)
    (check,) = [one for one in answer["checks"] if one["name"] == "monitoring"]  # type: ignore[attr-defined]
    assert check["ok"] is False and "node_exporter" in check["why"]


def test_ours_is_removed_with_the_metrics_and_that_of_others_is_not() -> None:
    ours = host(packages=(PACKAGE,), ours=True, exporter_runs=True)
    (removal,) = [step for step in plan(ours).steps if step.id == REMOVAL]
    assert removal.params == ([PACKAGE],) and removal.disruption == "none"
    written = ours._replace(monitoring=ours.monitoring._replace(files={files.UNIT: "[Unit]\n"}))
    assert [step.id for step in plan(written).steps][-2:] == ["gpu_monitoring.remove", REMOVAL]
    assert steps(host(packages=(PACKAGE,), exporter_runs=True)) == []
    assert steps(ours, gpu_monitoring=["textfile"]) == []


@pytest.mark.parametrize(
    ("distro", "package"),
    [("el8", "golang-github-prometheus-node-exporter"), ("el9", "node-exporter"), ("el10", "node-exporter")],
)
def test_on_enterprise_linux_it_comes_from_epel_where_the_host_has_it(distro: str, package: str) -> None:
    without = plan(host(distro), **INSTALL)
    (refusal,) = [one for one in without.refusals if one.code == "node_exporter_unavailable"]
    assert "epel" in refusal.message and "epel-release" in refusal.remedy and without.steps == []
    facts = host(distro)
    url = catalog.repository("epel-" + distro[2:])["url"]
    epel = {"/etc/yum.repos.d/epel.repo": f"[epel]\nname=EPEL\nbaseurl={url}\nenabled=1\ngpgcheck=1\n"}
    found = plan(facts._replace(yum=facts.yum._replace(sources={**facts.yum.sources, **epel})), **INSTALL)
    assert found.refusals == []
    (step,) = [step for step in found.steps if step.id == STEP]
    assert step.params.packages == [package]  # type: ignore[attr-defined]


def test_the_repository_may_be_added_for_the_driver_in_the_same_run() -> None:
    """A module that DKMS builds needs EPEL too."""
    found = plan(hosts.bare(hosts.T4, distro="el9"), **INSTALL)
    ids = [step.id for step in found.steps]
    assert found.refusals == [] and ids.index("kernel_headers.repository") < ids.index(STEP)


def test_a_distribution_without_the_package_is_refused() -> None:
    (refusal,) = [one for one in plan(host("amzn2023"), **INSTALL).refusals if one.code == "node_exporter_unavailable"]
    assert "Amazon" in refusal.message and "gpu_monitoring_node_exporter" in refusal.remedy
    assert plan(host("amzn2023", exporter_runs=True), **INSTALL).refusals == []


def test_a_directory_that_the_package_does_not_read_is_a_warning() -> None:
    found = plan(host(), **INSTALL, gpu_monitoring_directory="/srv/metrics")
    (warning,) = [one for one in found.warnings if one.code == "metrics_not_read"]
    assert "/srv/metrics" in warning.message and files.NODE_EXPORTER_DIRECTORY in warning.message


def test_packages_of_the_catalog_have_known_repositories() -> None:
    named = [
        catalog.distro(key)["node_exporter"] for key in catalog.distros() if "node_exporter" in catalog.distro(key)
    ]
    assert len(named) >= 11
    assert all(catalog.repository(one["repository"]) for one in named if one.get("repository"))


# ---- facts ----------------------------------------------------------------------------------------------------------

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LISTENS = "   0: 00000000:238C 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1 0 100 0 0 10 0\n"
LISTENS_6 = f"   0: {'0' * 32}:238C {'0' * 32}:0000 0A 00000000:00000000 00:00000000 00000000 0 0 1 1 0 100 0 0 10 0\n"
CLIENT = "   1: 0100007F:A2C4 0100007F:238C 01 00000000:00000000 00:00000000 00000000 0 0 2 1 0 100 0 0 10 0\n"
LOCAL = "   2: 0100007F:238C 0100007F:A2C4 01 00000000:00000000 00:00000000 00000000 0 0 2 1 0 100 0 0 10 0\n"


ROOTS = {"/proc/77/status": "Uid:\t0\t0\t0\t0\n"}


def cgroup(path: str) -> dict[str, str]:
    """Return the files of a process of another user in this cgroup."""
    return {"/proc/77/status": "Uid:\t1000\t1000\t1000\t1000\n", "/proc/77/cgroup": f"0::{path}\n"}


@pytest.mark.parametrize(
    ("recorded", "runs"),
    [
        ({}, False),
        ({"/proc/77/comm": "node_exporter\n", **ROOTS}, True),
        ({"/proc/77/comm": "prometheus-node\n", **ROOTS}, True),  # cut by the kernel
        ({"/proc/77/comm": "prometheus\n", **ROOTS}, False),
        ({"/proc/77/comm": "prometheus-node\n", **cgroup("/system.slice/prometheus-node-exporter.service")}, True),
        ({"/proc/77/comm": "node_exporter\n", **cgroup("/system.slice/node_exporter.service")}, True),
        ({"/proc/77/comm": "node_exporter\n", **cgroup(f"/system.slice/docker-{'a' * 64}.scope")}, True),
        ({"/proc/77/comm": "node_exporter\n", **cgroup("/system.slice/cron.service")}, False),
        ({"/proc/77/comm": "node_exporter\n", **cgroup("/user.slice/user-9.slice/node_exporter.service")}, False),
        ({"/proc/77/comm": "node_exporter\n", **cgroup(f"/user.slice/user@9.service/libpod-{'a' * 64}.scope")}, False),
        ({"/proc/net/tcp": HEAD + LISTENS}, True),
        ({"/proc/net/tcp": HEAD, "/proc/net/tcp6": HEAD + LISTENS_6}, True),
        ({"/proc/net/tcp": HEAD + CLIENT + LOCAL}, False),
        ({"/proc/net/tcp": "garbage\n\x00 : : :\n"}, False),
    ],
)
def test_a_node_exporter_or_another_listener_on_its_port_is_recognised(recorded: dict[str, str], runs: bool) -> None:
    machine = RecordedHost(recorded)
    daemons = work.find_daemons(machine)
    assert facts_monitoring.collect(machine, daemons.exporters).exporter_runs is runs


def test_all_facts_of_a_host_have_it() -> None:
    assert complete.collect_facts(RecordedHost({"/proc/77/comm": "node_exporter\n", **ROOTS})).monitoring.exporter_runs


def test_the_directory_is_the_one_that_the_facts_find_after_the_installation() -> None:
    assert facts_monitoring.DEBIAN[1] == files.NODE_EXPORTER_DIRECTORY
    assert re.fullmatch(r"/usr/bin/" + files.NODE_EXPORTER, facts_monitoring.DEBIAN[0])
