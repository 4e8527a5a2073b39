"""What is decided about docker, as a table: observed and wanted in, steps or refusals out."""

from typing import Any

import pytest
from gpu_ready.plan import docker

DAEMON_JSON = "/etc/docker/daemon.json"


def engine(version: "str | None" = "26.1.5+dfsg1", text: "str | None" = None, **more: Any) -> dict[str, Any]:
    """The part "docker" of a host where the engine runs (``version=None``: where it is not installed)."""
    info = {
        "version": version, "runtimes": {"runc": {}}, "default_runtime": "runc", "live_restore": False,
        "cdi_dirs": [], "cgroup_driver": "systemd", "running": len(more.get("gpu_containers", ())),
    }  # fmt: skip
    info.update(more.pop("info", {}))
    return {
        "installed": version is not None, "version": version, "active": version is not None,
        "info": info if version else None, "flags": [], "gpu_containers": [], "restart_pending": False,
        "daemon_json": {"path": DAEMON_JSON, "exists": text is not None, "text": text, "error": more.pop("error", None)},
        **more,
    }  # fmt: skip


def host(docker_part: dict[str, Any], runtime_part: "dict[str, Any] | None" = None) -> dict[str, Any]:
    return {
        "base": {"distro": "debian12", "os": {"id": "debian"}, "gpus": [{"driver": None}]},
        "apt": {"sources": {}, "keyrings": [], "preferences": []},
        "packages": {"installed": {}},
        "docker": docker_part,
        "runtime": runtime_part or {},
        "engines": {"nodes": {}},
    }


def decide(part: dict[str, Any], **wanted: Any) -> Any:
    return docker.decide(host(part), wanted, {})


def test_a_missing_engine_is_installed_from_the_distribution() -> None:
    (step,) = decide(engine(None)).steps
    assert step.id == "docker_engine.install"
    assert {"name": "docker.io", "version": None} in step.params["packages"]


def test_a_missing_engine_that_somebody_else_installs_is_refused() -> None:
    assert [refusal.code for refusal in decide(engine(None), docker_engine_source="none").refusals] == [
        "docker_missing"
    ]


def test_a_stopped_engine_is_started() -> None:
    (step,) = decide(engine(active=False, info={})).steps
    assert (step.id, step.params["packages"]) == ("docker_engine.install", [])


@pytest.mark.parametrize(
    ("text", "options", "activation", "disruption"),
    [
        (None, {}, None, None),
        ('{"mtu": 1400}', {"mtu": 1400}, None, None),
        ("{}", {"live-restore": True}, "reload", "docker_reload"),
        ("{}", {"log-driver": "journald"}, "restart", "docker_restart"),
    ],
)
def test_options_reload_where_that_is_enough(text: Any, options: Any, activation: Any, disruption: Any) -> None:
    steps = decide(engine(text=text), docker_engine_daemon_options=options).steps
    assert [(step.params["activation"], step.disruption) for step in steps] == [(activation, disruption)][: len(steps)]
    assert bool(steps) == bool(activation)


def test_what_is_not_strict_json_is_refused_with_its_place_only_when_something_is_to_be_written() -> None:
    broken = engine(error={"problem": "trailing comma before }", "line": 3, "column": 1})
    assert decide(broken).refusals == []
    (refusal,) = decide(broken, docker_engine_daemon_options={"mtu": 1}).refusals
    assert refusal.code == "daemon_json_invalid"
    assert refusal.message == f"{DAEMON_JSON}, line 3, column 1: trailing comma before }}"


def test_a_flag_of_the_same_name_is_refused_and_names_file_flag_and_key() -> None:
    flag = {"key": "log-driver", "flag": "--log-driver", "value": "syslog", "file": "/etc/default/docker"}
    decision = decide(engine(flags=[flag]), docker_engine_daemon_options={"log-driver": "journald"})
    (refusal,) = decision.refusals
    assert refusal.code == "daemon_json_flag_conflict"
    for part in (DAEMON_JSON, "--log-driver", "/etc/default/docker"):
        assert part in refusal.message


@pytest.mark.parametrize(
    ("more", "allowed", "codes"),
    [
        ({}, False, []),
        ({"gpu_containers": ["train"]}, False, ["gpu_containers_running"]),
        ({"gpu_containers": ["train"]}, True, []),
        ({"gpu_containers": ["train"], "info": {"live_restore": True}}, False, []),
    ],
)
def test_a_restart_that_would_end_gpu_containers_needs_leave(more: Any, allowed: bool, codes: list[str]) -> None:
    decision = decide(
        engine(text="{}", **more), docker_engine_daemon_options={"mtu": 1}, docker_engine_restart_ok=allowed
    )
    assert [refusal.code for refusal in decision.refusals] == codes


def test_a_restart_that_a_killed_run_owes_is_made_up_for() -> None:
    (step,) = decide(engine(text='{"mtu": 1}', restart_pending=True), docker_engine_daemon_options={"mtu": 1}).steps
    assert step.params["activation"] == "restart"
    assert "interrupted" in step.why
