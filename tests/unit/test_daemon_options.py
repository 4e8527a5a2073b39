"""Every variable for a key of daemon.json: what it asks for, and that another value of the key is refused."""

from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.catalog.settings import DEFAULTS, RULES, Settings
from plugins.plugin_utils.gpu_ready.plan.containers import docker_options
from tests.unit.hosts import T4, bare

FREE = "docker_engine_daemon_options"
ASKED: dict[str, tuple[Any, dict[str, Any]]] = {
    "docker_engine_cgroup_driver": ("systemd", {"exec-opts": ["native.cgroupdriver=systemd"]}),
    "docker_engine_log_driver": ("json-file", {"log-driver": "json-file"}),
    "docker_engine_log_options": (
        {"max-size": "100m", "max-file": 3},
        {"log-opts": {"max-size": "100m", "max-file": "3"}},
    ),
}
"""A value of each variable, and what docker is asked for then."""


def sample(variable: str) -> Any:
    """Return a value that is not the default: the last choice, the example in the catalog, the other bool."""
    kind, choices, *_, last = RULES[variable]
    if kind == "bool":
        return not DEFAULTS[variable]
    assert choices or last != "text", f"{variable}: give it an example in catalog/variables/docker.yml"
    return choices[-1] if choices else last


def requested(**given: Any) -> dict[str, Any]:
    """Return the keys of daemon.json that variables ask for on a host without one."""
    return dict(docker_options.requested_options(bare(T4), Settings(**DEFAULTS | given)))


def other(value: Any) -> Any:
    """Return another value of the same form."""
    if isinstance(value, dict):
        return {key: other(one) for key, one in value.items()}
    if isinstance(value, list):
        return [other(one) for one in value]
    return (not value) if isinstance(value, bool) else value + 1 if isinstance(value, int) else f"{value}x"


OPTIONS = [
    name
    for name in RULES
    if name.startswith("docker_engine_") and name != FREE and requested(**{name: sample(name)}) != {}
]


def test_every_option_has_a_row_above() -> None:
    assert sorted(OPTIONS) == sorted(ASKED)


@pytest.mark.parametrize("variable", ASKED)
def test_an_option_asks_for_its_key(variable: str) -> None:
    value, asked = ASKED[variable]
    assert requested(**{variable: value}) == asked
    assert requested(**{variable: DEFAULTS[variable]}) == {}


@pytest.mark.parametrize("variable", OPTIONS)
def test_another_value_of_its_key_is_refused(variable: str) -> None:
    given = {variable: sample(variable)}
    asked = requested(**given)
    contradictory = Settings(**DEFAULTS | given | {FREE: other(asked)})
    refusals = docker_options.contradictions(contradictory)
    assert refusals and {refusal.code for refusal in refusals} == {"daemon_options_contradict"}
    assert all(variable in refusal.message for refusal in refusals)
    assert docker_options.contradictions(Settings(**DEFAULTS | given | {FREE: asked})) == []
