"""One host through all runtime modes in any order: each run does what it planned, the next finds nothing, and nothing is left behind."""

import itertools
import json
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.execute.containers import docker_reads
from plugins.plugin_utils.gpu_ready.plan.changes import apply_changes
from plugins.plugin_utils.gpu_ready.plan.containers import runtime
from tests.unit.hosts import carried_out
from tests.unit.plans import driver_choice, settings
from tests.unit.test_plan_docker import engine, host
from tests.unit.test_plan_runtime import manifest_facts, toolkit

MODES = ("toolkit", "default", "cdi", "native")
OTHERS = {"log-driver": "journald", "features": {"buildkit": True}, "runtimes": {"crun": {"path": "crun"}}}


def bare(version: str, text: str | None) -> Facts:
    """A host with docker and the driver, as it was before gpu-ready."""
    part = toolkit(False, boot_nodes=None, helper=None, manifest=manifest_facts())
    facts = host(engine(version, text=text), part)
    return apply_changes(facts, docker_reads(facts.docker, facts.runtime))


def decide(facts: Facts, mode: str) -> Any:
    given = settings(
        nvidia_container_runtime_mode="toolkit" if mode == "default" else mode,
        nvidia_container_runtime_default=mode == "default",
    )
    return runtime.plan_runtime(facts, given, driver_choice(satisfied=True))


@pytest.mark.parametrize("text", [None, json.dumps(OTHERS)], ids=["no file", "keys of others"])
@pytest.mark.parametrize("version", ["20.10.24", "26.1.5", "29.0.1"])
def test_any_order_of_modes_ends_where_the_last_one_alone_would(version: str, text: "str | None") -> None:
    modes = [mode for mode in MODES if mode != "cdi" or version != "20.10.24"]
    ends = {mode: carried_out(bare(version, text), decide(bare(version, text), mode)) for mode in modes}
    for order in itertools.permutations(modes):
        facts = bare(version, text)
        for mode in order:
            decision = decide(facts, mode)
            assert decision.refusals == []
            facts = carried_out(facts, decision)
            assert decide(facts, mode).steps == [], (order, mode)
            meaning = [daemon_json.parse(end.docker.daemon_json.text).value for end in (facts, ends[mode])]
            assert meaning[0] == meaning[1], (order, mode)
            assert traces(facts) == traces(ends[mode]), (order, mode)


def traces(facts: Facts) -> Any:
    """What gpu-ready added to the host."""
    part = facts.runtime
    return sorted(facts.packages.installed), part.specs, part.volume, part.helper, part.boot_nodes


@pytest.mark.parametrize("version", ["20.10.24", "26.1.5"])
def test_a_switch_that_is_killed_anywhere_is_finished_by_the_next_run(version: str) -> None:
    for first, second in itertools.permutations([mode for mode in MODES if mode != "cdi"], 2):
        before = carried_out(bare(version, None), decide(bare(version, None), first))
        whole = decide(before, second)
        for steps in range(len(whole.steps)):
            killed = carried_out(before, whole, steps)
            end = carried_out(killed, decide(killed, second))
            assert decide(end, second).steps == [], (first, second, steps)
            assert traces(end) == traces(carried_out(before, whole)), (first, second, steps)
