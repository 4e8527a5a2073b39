"""The plan for docker, as a table: facts and settings in, steps or refusals out."""

import json
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts.model import DockerFacts, Facts, RuntimeFacts
from plugins.plugin_utils.gpu_ready.plan.containers import docker, docker_packages
from plugins.plugin_utils.gpu_ready.plan.model import Choices
from tests.unit.hosts import T4, bare, having
from tests.unit.plans import settings, todo

DAEMON_JSON = "/etc/docker/daemon.json"


def engine(version: "str | None" = "26.1.5+dfsg1", text: "str | None" = None, **more: Any) -> DockerFacts:
    """The running engine of a host (``version=None``: not installed)."""
    info = {
        "version": version, "runtimes": ["runc"], "default_runtime": "runc", "live_restore": False,
        "cdi_dirs": [], "running": 0,
    }  # fmt: skip
    info.update(more.pop("info", {}))
    part = having(
        DockerFacts(),
        installed=version is not None,
        version=version,
        active=version is not None,
        info=info if version else None,
        daemon_json={"exists": text is not None, "text": text, "error": more.pop("error", None)},
    )
    return having(part, **more)


def host(part: DockerFacts, runtime: RuntimeFacts = RuntimeFacts(), distro: str = "debian12", **packages: Any) -> Facts:  # noqa: B008
    facts = having(bare(T4, distro=distro), packages=packages)
    return facts._replace(docker=part, runtime=runtime)


def decide(part: DockerFacts, **given: Any) -> Any:
    return docker.plan_docker(host(part), settings(**given), Choices())


def test_a_missing_engine_is_installed_from_the_distribution() -> None:
    (step,) = decide(engine(None)).steps
    assert step.id == "docker_engine.install"
    assert {"name": "docker.io", "version": None} in todo(step)["packages"]


@pytest.mark.parametrize("part", [engine(None), engine(active=False, info={})])
def test_kernel_modules_for_docker_in_another_package_are_installed(part: DockerFacts) -> None:
    """Without xt_addrtype dockerd does not start, and Enterprise Linux 10 has it in kernel-modules-extra."""
    facts = host(part, distro="el10")
    facts = having(facts, base={"kernel": {"running": "6.12.0-124.el10.x86_64", "next_boot": "6.12.0-201.el10.x86_64"}})
    facts = having(facts, packages={"installed": {"docker-ce": "3:29.0.1-1"} if part.installed else {}})
    (step,) = [
        one for one in docker.plan_docker(facts, settings(), Choices()).steps if one.id == "docker_engine.install"
    ]
    assert todo(step)["optional"] == [
        "kernel-modules-extra-6.12.0-124.el10.x86_64",
        "kernel-modules-extra-6.12.0-201.el10.x86_64",
    ]


@pytest.mark.parametrize(
    "given_settings", [{}, {"docker_engine_source": "none"}, {"docker_engine_source": "docker_ce"}]
)
def test_a_second_engine_beside_that_of_a_snap_is_refused(given_settings: dict[str, Any]) -> None:
    """Both would take the socket, and the containers of the snap's engine would be invisible."""
    (refusal,) = decide(engine(None, active=True, snap="/snap/docker/current"), **given_settings).refusals
    assert refusal.code == "docker_is_a_snap" and "/snap/docker/current" in refusal.message
    assert "snap remove docker" in refusal.remedy
    # Beside a complete engine it is the operator's decision.
    assert decide(engine(snap="/snap/docker/current")).refusals == []
    # An installed engine that does not run cannot be started: the snap's has the socket.
    stopped = engine(snap="/snap/docker/current", active=False, package="docker.io")
    (refusal,) = decide(stopped, **given_settings).refusals
    assert refusal.code == "docker_is_a_snap" and "The docker of the package docker.io does not run" in refusal.message


def test_a_missing_engine_that_somebody_else_installs_is_refused() -> None:
    assert [refusal.code for refusal in decide(engine(None), docker_engine_source="none").refusals] == [
        "docker_missing"
    ]


def test_a_stopped_engine_is_started() -> None:
    (step,) = decide(engine(active=False, info={})).steps
    assert (step.id, todo(step)["packages"]) == ("docker_engine.install", [])


@pytest.mark.parametrize(
    ("text", "options", "activation", "disruption"),
    [
        (None, {}, None, None),
        ('{"mtu": 1400}', {"mtu": 1400}, None, None),
        ("{}", {"live-restore": True}, "reload", "docker_reload"),
        ("{}", {"log-driver": "journald"}, "restart", "docker_restart"),
    ],
)
def test_options_are_reloaded_if_that_suffices(text: Any, options: Any, activation: Any, disruption: Any) -> None:
    steps = decide(engine(text=text), docker_engine_daemon_options=options).steps
    assert [(todo(step)["activation"], step.disruption) for step in steps] == [(activation, disruption)][: len(steps)]
    assert bool(steps) == bool(activation)


def test_invalid_json_is_refused_with_its_place_only_if_something_would_be_written() -> None:
    broken = engine(error={"problem": "trailing comma before }", "line": 3, "column": 1})
    assert decide(broken).refusals == []
    (refusal,) = decide(broken, docker_engine_daemon_options={"mtu": 1}).refusals
    assert refusal.code == "daemon_json_invalid"
    assert refusal.message == f"{DAEMON_JSON}: line 3, column 1: trailing comma before }}"


def test_a_flag_of_the_same_name_is_refused_and_names_file_flag_and_key() -> None:
    flag = {"key": "log-driver", "flag": "--log-driver", "value": "syslog", "file": "/etc/default/docker"}
    decision = decide(engine(flags=[flag]), docker_engine_daemon_options={"log-driver": "journald"})
    (refusal,) = decision.refusals
    assert refusal.code == "daemon_json_flag_conflict"
    for part in (DAEMON_JSON, "--log-driver", "/etc/default/docker"):
        assert part in refusal.message


def test_an_outstanding_restart_of_a_killed_run_is_planned() -> None:
    (step,) = decide(engine(text='{"mtu": 1}', restart_pending=True), docker_engine_daemon_options={"mtu": 1}).steps
    assert todo(step)["activation"] == "restart"
    assert "interrupted" in step.why


# --- packages ----------------------------------------------------------------------------------------------------

CE = {
    "docker-ce": "5:28.5.1-1~debian.12~bookworm",
    "docker-ce-cli": "5:28.5.1-1~debian.12~bookworm",
    "containerd.io": "1.7.28-1~debian.12~bookworm",
}
IO = {"docker.io": "20.10.24+dfsg1-1+deb12u1", "containerd": "1.6.20~ds1-1", "runc": "1.1.5+ds1-1"}
EL7 = {"docker-ce": "3:26.1.4-1.el7", "docker-ce-cli": "1:26.1.4-1.el7", "containerd.io": "1.6.33-3.1.el7"}
PINNED = ["docker-ce", "docker-ce-cli"]


def packaged(
    installed: dict[str, str], held: "list[str] | None" = None, part: "DockerFacts | None" = None, **more: Any
) -> Any:
    """The plan for a host with these packages, whose engine runs if it is among them."""
    given_settings = {f"docker_engine_{name}": more.pop(name) for name in ("source", "version", "replace_conflicting", "restart_ok") if name in more}  # fmt: skip
    number = next((installed[name] for name in ("docker-ce", "docker.io") if name in installed), None)
    facts = host(part or engine(number), installed=installed, held=held or [], **more)
    return docker.plan_docker(facts, settings(**given_settings), Choices())


def installed_versions(decision: Any) -> dict[str, "str | None"]:
    """Version by name of the packages that a decision installs."""
    (step,) = [step for step in decision.steps if step.id == "docker_engine.install"]
    return {package["name"]: package["version"] for package in todo(step)["packages"]}


@pytest.mark.parametrize(
    ("source", "version", "distro", "expect"),
    [
        ("auto", "", "debian12", {"docker.io": None}),
        ("docker_ce", "", "debian12", {"docker-ce": None, "docker-ce-cli": None, "containerd.io": None}),
        ("docker_ce", "28.5", "debian12", {"docker-ce": "28.5*", "docker-ce-cli": "28.5*", "containerd.io": None}),
        ("auto", "28.5.1", "debian12", {"docker-ce": "28.5.1*", "docker-ce-cli": "28.5.1*", "containerd.io": None}),
        ("auto", "20.10", "debian12", {"docker.io": "20.10*"}),
        ("auto", "20.10.24+dfsg1-1", "debian12", {"docker.io": "20.10.24+dfsg1-1*"}),
        ("distro", "26.1", "debian13", {"docker.io": "26.1*", "docker-cli": "26.1*"}),
        ("docker_ce", "3:28.5.1-1.el9", "el9", {"docker-ce": "28.5.1-1.el9*", "docker-ce-cli": "28.5.1-1.el9*", "containerd.io": None, "python3-dnf-plugin-versionlock": None}),
        ("auto", "", "centos7", {"docker-ce": "26.1.4-1.el7", "docker-ce-cli": "26.1.4-1.el7", "containerd.io": "1.6.33-3.1.el7"}),
        ("auto", "20.10.24", "centos7", {"docker-ce": "20.10.24*", "docker-ce-cli": "20.10.24*", "containerd.io": "1.6.33-3.1.el7", "yum-plugin-versionlock": None}),
        ("auto", "", "amzn2023", {"docker": None}),
    ],
)  # fmt: skip
def test_a_missing_engine_is_installed_from_its_source_in_its_version(
    source: str, version: str, distro: str, expect: dict[str, Any]
) -> None:
    decision = packaged({}, source=source, version=version, distro=distro)
    assert installed_versions(decision) == expect
    params = todo(decision.steps[-1])
    engines = [name for name in expect if name.startswith("docker")] if version else []
    assert (params["hold"], params["state"], decision.steps[-1].disruption) == (engines, "started", "none")
    assert bool([step for step in decision.steps if step.id == "docker_engine.repository"]) == ("docker-ce" in expect)


@pytest.mark.parametrize(
    ("installed", "held", "more"),
    [
        (IO, [], {}),
        (CE, [], {}),
        (IO, [], {"source": "none"}),
        (IO, [], {"source": "distro"}),
        (IO, [], {"source": "none", "version": "20.10"}),
        (CE, PINNED, {"version": "28.5"}),
        (CE, PINNED, {"version": "28.5.1"}),
        (CE, PINNED, {"version": "5:28.5.1-1~debian.12~bookworm", "source": "docker_ce"}),
        (IO, ["docker.io"], {"version": "20.10"}),
        (EL7, PINNED, {"version": "26.1.4", "distro": "centos7"}),
        (EL7, [], {"distro": "centos7"}),
        (CE, PINNED, {}),  # somebody else holds them
        ({**CE, "podman": "4.3.1"}, [], {"replace_conflicting": True}),
        ({}, [], {"part": engine("28.5.1"), "version": "28.5"}),  # no package: built by the operator
    ],
)
def test_an_engine_as_requested_is_left_alone(installed: dict[str, str], held: list[str], more: dict[str, Any]) -> None:
    decision = packaged(installed, held, **more)
    assert (decision.steps, decision.refusals, decision.warnings) == ([], [], [])


@pytest.mark.parametrize("version", ["29", "20.10.24"], ids=["upgrade", "downgrade"])
def test_another_version_changes_engine_and_client_and_announces_the_restart(version: str) -> None:
    decision = packaged(CE, PINNED, version=version)
    (step,) = [step for step in decision.steps if step.id == "docker_engine.install"]
    assert installed_versions(decision) == {
        "docker-ce": f"{version}*",
        "docker-ce-cli": f"{version}*",
        "containerd.io": None,
    }
    assert step.disruption == "docker_restart"
    assert (todo(step)["unhold"], todo(step)["hold"], todo(step)["state"]) == (PINNED, PINNED, "restarted")
    assert step.why == f"docker-ce is {CE['docker-ce']}; requested is docker-ce {version}"


def test_a_client_of_another_version_gets_that_of_the_engine() -> None:
    decision = packaged({**CE, "docker-ce-cli": "5:27.0.1-1~debian.12~bookworm"}, PINNED, version="28.5")
    assert decision.steps[-1].why.startswith("docker-ce-cli is 5:27.0.1")


def test_a_missing_hold_is_set_and_an_obsolete_one_released() -> None:
    (step,) = packaged(CE, [], version="28.5").steps
    assert (todo(step)["hold"], todo(step)["state"], step.disruption) == (PINNED, "started", "none")
    ours = engine("28.5.1", held_by_us=PINNED)
    (step,) = packaged(CE, PINNED, part=ours).steps
    assert (todo(step)["unhold"], todo(step)["packages"], step.disruption) == (PINNED, [], "none")


def test_a_daemon_that_runs_from_before_its_packages_changed_is_restarted() -> None:
    (step,) = packaged(CE, PINNED, part=engine("20.10.24", outdated=True), version="28.5").steps
    assert (todo(step)["state"], step.disruption) == ("restarted", "docker_restart")
    assert packaged(CE, PINNED, part=engine("20.10.24", outdated=True)).steps == []


@pytest.mark.parametrize(
    ("installed", "more", "leaving"),
    [
        ({"containerd": "1.6", "runc": "1.1"}, {"source": "docker_ce"}, ["containerd", "runc"]),
        ({"podman-docker": "4.3"}, {"source": "docker_ce"}, ["podman-docker"]),
        (IO, {"source": "docker_ce", "version": "28.5"}, ["containerd", "docker.io", "runc"]),
        (IO, {"version": "28.5"}, ["containerd", "docker.io", "runc"]),
        (CE, {"source": "distro", "version": "20.10"}, ["containerd.io", "docker-ce", "docker-ce-cli"]),
        ({"podman-docker": "4.9", "runc": "1.1"}, {"distro": "el9"}, ["podman-docker", "runc"]),
        ({"podman-docker": "4.3"}, {}, ["podman-docker"]),
        ({"podman-docker": "5.6"}, {"distro": "fedora44", "source": "distro"}, ["podman-docker"]),
    ],
)
def test_conflicting_packages_go_only_with_permission(
    installed: dict[str, str], more: dict[str, Any], leaving: list[str]
) -> None:
    (refusal,) = packaged(installed, **more).refusals
    assert refusal.code == "docker_conflicting_packages"
    assert refusal.message.startswith(", ".join(leaving))
    assert "docker_engine_replace_conflicting: true" in refusal.remedy
    decision = packaged(installed, list(leaving[:1]), replace_conflicting=True, **more)
    params = todo(decision.steps[-1])
    assert (params["remove"], params["unhold"]) == (leaving, leaving[:1])
    assert [warning.code for warning in decision.warnings] == ["docker_replaced"]


KUBEADM = {"kubernetes": {"kind": "kubeadm", "engine": "containerd"}, "containerd": {"active": True}}
CRIO = {"kubernetes": {"kind": "kubeadm", "engine": "crio"}, "containerd": {"active": False}}
ALONE = {"containerd": {"active": True}}
REMOVES = "docker_engine_replace_conflicting: true (this removes the containerd that runs %s)"


@pytest.mark.parametrize(
    ("engines", "installed", "more", "words"),
    [
        (KUBEADM, {"containerd.io": "1.7"}, {}, REMOVES % "the pods of this Kubernetes node"),
        (KUBEADM, {"containerd": "1.7"}, {"source": "docker_ce"}, REMOVES % "the pods of this Kubernetes node"),
        (KUBEADM, CE, {"source": "distro", "version": "20.10"}, REMOVES % "the pods of this Kubernetes node"),
        (ALONE, {"containerd.io": "1.7"}, {}, REMOVES % "containers without docker"),
        (ALONE, CE, {"source": "distro", "version": "20.10"}, "(images and volumes in /var/lib/docker stay)"),
        (CRIO, {"containerd.io": "1.7"}, {}, "(images and volumes in /var/lib/docker stay)"),
        (KUBEADM, {"podman-docker": "4.3"}, {"source": "docker_ce"}, "(images and volumes in /var/lib/docker stay)"),
    ],
)
def test_no_remedy_removes_the_containerd_of_others_without_saying_so(
    engines: dict[str, Any], installed: dict[str, str], more: dict[str, Any], words: str
) -> None:
    facts = having(host(engine(None if CE is not installed else "28.5.1"), installed=installed), engines=engines)
    given = {f"docker_engine_{name}": value for name, value in more.items()}
    (refusal,) = docker.plan_docker(facts, settings(**given), Choices()).refusals
    assert words in refusal.remedy
    users = "removes the containerd" in words
    assert ("nvidia_container_runtime_engines: [containerd]" in refusal.remedy) is users
    allowed = docker.plan_docker(facts, settings(**given, docker_engine_replace_conflicting=True), Choices())
    (notice,) = [one for one in allowed.warnings if one.code == "docker_replaced"]
    assert ("the containerd that runs" in notice.message) is users
    expected = "docker_restart" if facts.docker.active else "containerd_restart" if users else "none"
    assert allowed.steps[-1].disruption == expected


@pytest.mark.parametrize(
    ("installed", "more", "kept"),
    [
        ({"containerd.io": "1.7"}, {}, "docker_ce"),
        ({"containerd": "1.7"}, {"docker_engine_source": "docker_ce"}, "distro"),
        ({"containerd": "1.7"}, {"docker_engine_source": "docker_ce", "docker_engine_version": "28.5"}, None),
        ({"containerd": "1.7", "containerd.io": "1.7"}, {}, None),
    ],
)
def test_the_remedy_names_the_source_that_removes_nothing_and_works_as_typed(
    installed: dict[str, str], more: dict[str, str], kept: str | None
) -> None:
    facts = having(host(engine(None), installed=installed), engines=KUBEADM)
    (refusal,) = docker.plan_docker(facts, settings(**more), Choices()).refusals
    assert ("to keep" in refusal.remedy) is bool(kept) and "docker_engine_version empty" not in refusal.remedy
    if kept:
        assert refusal.remedy.startswith(f"set docker_engine_source to {kept} to keep it, or ")
        decision = docker.plan_docker(facts, settings(**{**more, "docker_engine_source": kept}), Choices())
        assert not decision.refusals and todo(decision.steps[-1])["remove"] == []
    # The other way: docker is not planned at all.
    other = settings(**more, nvidia_container_runtime_engines=["containerd"])
    assert docker.plan_docker(facts, other, Choices()).refusals == []


def test_the_remedy_keeps_an_installed_engine_and_works_as_typed() -> None:
    (refusal,) = packaged(IO, version="28.5").refusals
    assert "leave docker_engine_version empty, which keeps docker 20.10.24" in refusal.remedy
    assert packaged(IO).refusals == []


def test_with_permission_the_named_source_replaces_the_engine_that_is_there_without_it_a_notice() -> None:
    decision = packaged(IO, source="docker_ce")
    assert (decision.steps, [one.code for one in decision.warnings]) == ([], ["docker_from_elsewhere"])
    assert decision.warnings[0].remedy.endswith("images and volumes stay")
    step = packaged(IO, source="docker_ce", replace_conflicting=True).steps[-1]
    assert step.why == "docker.io 20.10.24+dfsg1-1+deb12u1 is installed; requested is docker-ce"
    assert todo(step)["remove"] == ["containerd", "docker.io", "runc"]


@pytest.mark.parametrize(
    ("installed", "more", "code", "words"),
    [
        (IO, {"source": "none", "version": "28.5"}, "docker_version_impossible", "docker_engine_source is none"),
        ({}, {"part": engine("1.2.3"), "version": "28"}, "docker_version_impossible", "no package that the catalog knows"),
        (EL7, {"source": "distro", "version": "20.10", "distro": "centos7"}, "docker_source_impossible", "does not exist for centos7"),
        ({}, {"source": "distro", "distro": "el9"}, "docker_source_impossible", "does not exist for el9"),
    ],
)  # fmt: skip
def test_an_unavailable_version_is_refused(installed: Any, more: Any, code: str, words: str) -> None:
    (refusal,) = packaged(installed, **more).refusals
    assert (refusal.code, words in refusal.message) == (code, True), refusal


def test_docker_of_a_distribution_that_the_catalog_does_not_know_is_left_to_the_operator() -> None:
    facts = having(host(engine(None)), base={"distro": None, "os": {"id": "void"}})
    (refusal,) = docker.plan_docker(facts, settings(), Choices()).refusals
    assert refusal.code == "unknown_distribution" and refusal.message.endswith("for this distribution (void)")
    present = having(host(engine("28.0.4")), base={"distro": None, "os": {"id": "void"}})
    assert docker.plan_docker(present, settings(), Choices()).refusals == []


@pytest.mark.parametrize(
    ("installed", "more", "version"),
    [({}, {"docker_engine_version": "28.5"}, "28.5"), (CE, {"docker_engine_version": "5:24.0.9-1"}, "24.0.9"),
     (CE, {}, CE["docker-ce"]), ({}, {}, "20.10.24"), ({}, {"docker_engine_source": "docker_ce"}, None)],
)  # fmt: skip
def test_the_version_after_the_plan_is_known_to_later_planners(installed: Any, more: Any, version: Any) -> None:
    part = engine(CE["docker-ce"] if installed else None)
    assert docker_packages.engine_version(host(part, installed=installed), settings(**more)) == version


# --- options -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "given_settings", "written"),
    [
        (None, {"log_driver": "local"}, {"log-driver": "local"}),
        ('{"log-opts": {"tag": "x", "max-size": "1m"}}', {"log_options": {"max-size": "5m", "max-file": 3}},
         {"log-opts": {"tag": "x", "max-size": "5m", "max-file": "3"}}),
        (None, {"log_options": {"compress": True}, "daemon_options": {"log-opts": {"max-file": "2"}}},
         {"log-opts": {"max-file": "2", "compress": "true"}}),
        (None, {"cgroup_driver": "systemd"}, {"exec-opts": ["native.cgroupdriver=systemd"]}),
        ('{"exec-opts": ["native.cgroupdriver=cgroupfs", "isolation=process"]}', {"cgroup_driver": "systemd"},
         {"exec-opts": ["isolation=process", "native.cgroupdriver=systemd"]}),
        ('{"exec-opts": ["native.cgroupdriver=systemd", "isolation=process"]}', {"cgroup_driver": "systemd"}, None),
        (None, {"daemon_options": {"exec-opts": ["a=b"]}, "cgroup_driver": "cgroupfs"},
         {"exec-opts": ["a=b", "native.cgroupdriver=cgroupfs"]}),
        ('{"log-driver": "local"}', {"log_driver": "local"}, None),
        (None, {"log_driver": "fluentd", "log_options": {"fluentd-address": "h:1"}},
         {"log-driver": "fluentd", "log-opts": {"fluentd-address": "h:1"}}),
    ],
)  # fmt: skip
def test_log_and_cgroup_options_go_into_daemon_json(text: Any, given_settings: dict[str, Any], written: Any) -> None:
    decision = decide(engine(text=text), **{f"docker_engine_{name}": value for name, value in given_settings.items()})
    assert decision.refusals == []
    after = [json.loads(step.diff[0].after) for step in decision.steps]
    assert after == ([written] if written else [])


@pytest.mark.parametrize(
    ("text", "given_settings", "code", "words"),
    [
        (None, {"log_driver": "local", "daemon_options": {"log-driver": "journald"}}, "daemon_options_contradict", "log-driver"),
        (None, {"log_options": {"max-size": "1m"}, "daemon_options": {"log-opts": {"max-size": "2m"}}}, "daemon_options_contradict", "log-opts.max-size"),
        (None, {"cgroup_driver": "systemd", "daemon_options": {"exec-opts": ["native.cgroupdriver=cgroupfs"]}}, "daemon_options_contradict", "exec-opts"),
        ('{"log-opts": {"max-size": "1m"}}', {"log_driver": "journald"}, "log_options_unfit", "max-size"),
        (None, {"log_options": {"fluentd-address": "x"}}, "log_options_unfit", "json-file"),
    ],
)  # fmt: skip
def test_options_that_contradict_each_other_are_refused(text: Any, given_settings: Any, code: str, words: str) -> None:
    decision = decide(engine(text=text), **{f"docker_engine_{name}": value for name, value in given_settings.items()})
    assert [refusal.code for refusal in decision.refusals] == [code]
    assert words in decision.refusals[0].message
    assert decision.steps == []


@pytest.mark.parametrize(
    ("flag", "key", "given_settings"),
    [
        ("--log-opt", "log-opts", {"docker_engine_log_options": {"max-size": "1m"}}),
        ("--exec-opt", "exec-opts", {"docker_engine_cgroup_driver": "systemd"}),
        ("--log-driver", "log-driver", {"docker_engine_log_driver": "local"}),
    ],
)
def test_a_flag_of_the_unit_for_the_same_key_is_refused(flag: str, key: str, given_settings: dict[str, Any]) -> None:
    given = {"key": key, "flag": flag, "value": "x", "file": "/etc/systemd/system/docker.service.d/x.conf"}
    (refusal,) = decide(engine(flags=[given]), **given_settings).refusals
    assert (refusal.code, flag in refusal.message) == ("daemon_json_flag_conflict", True)


def test_options_of_a_file_that_may_not_be_edited_are_refused_with_its_place() -> None:
    broken = engine(error={"problem": "trailing comma before }", "line": 3, "column": 1})
    (refusal,) = decide(broken, docker_engine_cgroup_driver="systemd").refusals
    assert refusal.code == "daemon_json_invalid"


def test_all_refusals_are_reported_at_once() -> None:
    part = engine("28.5.1", flags=[{"key": "log-driver", "flag": "--log-driver", "value": "x", "file": "/f"}])  # fmt: skip
    given_settings = {
        "docker_engine_version": "29",
        "docker_engine_log_driver": "local",
        "docker_engine_daemon_options": {"log-driver": "journald"},
    }
    decision = docker.plan_docker(host(part, installed=CE), settings(**given_settings), Choices())
    assert [refusal.code for refusal in decision.refusals] == [
        "daemon_options_contradict", "daemon_json_flag_conflict",
    ]  # fmt: skip
    assert (decision.steps, decision.warnings) == ([], [])


def test_a_stopped_engine_is_started_and_held_in_one_step() -> None:
    (step,) = packaged(CE, [], part=engine("28.5.1", active=False, info={}), version="28.5").steps
    assert "does not answer" in step.why and "unattended upgrade" in step.why
    assert (todo(step)["hold"], todo(step)["state"], step.disruption) == (PINNED, "started", "none")
    (step,) = packaged(CE, PINNED, part=engine("28.5.1", active=False, info={}, held_by_us=PINNED)).steps
    assert (todo(step)["unhold"], todo(step)["state"]) == (PINNED, "started")


def test_a_flag_added_after_the_key_is_refused_although_nothing_would_be_written() -> None:
    part = engine(text='{"log-driver": "local"}', flags=[{"key": "log-driver", "flag": "--log-driver", "value": "x", "file": "/f"}])  # fmt: skip
    assert [one.code for one in decide(part, docker_engine_log_driver="local").refusals] == [
        "daemon_json_flag_conflict"
    ]
    assert decide(part).refusals == []  # not requested, so it is not checked
