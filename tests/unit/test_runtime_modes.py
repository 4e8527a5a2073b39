"""One host through all runtime modes in any order: each run does what it planned, the next finds nothing, and nothing is left behind."""

import copy
import itertools
import json
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import manifest_notes, records
from plugins.module_utils.gpu_ready.containers import cdi, docker, driver_volume
from plugins.module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.plan.containers import runtime, runtime_cleanup
from tests.unit.plans import driver_choice, settings, todo
from tests.unit.test_plan_docker import engine, host
from tests.unit.test_plan_runtime import manifest_facts, toolkit

MODES = ("toolkit", "default", "cdi", "native")
OTHERS = {"log-driver": "journald", "features": {"buildkit": True}, "runtimes": {"crun": {"path": "crun"}}}


Json = dict[str, Any]
"""Facts as JSON, which the simulated steps change; the planner gets them as records."""


def bare(version: str, text: "str | None") -> Json:
    """A host with docker and the driver, as it was before gpu-ready."""
    part = toolkit(False, boot_nodes=None, helper=None, manifest=manifest_facts())
    facts: Json = records.to_json(host(engine(version, text=text), part))
    restart(facts)
    return facts


def decide(facts: Json, mode: str) -> Any:
    given = settings(
        nvidia_container_runtime_mode="toolkit" if mode == "default" else mode,
        nvidia_container_runtime_default=mode == "default",
    )
    return runtime.plan_runtime(records.from_json(Facts, copy.deepcopy(facts)), given, driver_choice(satisfied=True))


def restart(facts: Json) -> None:
    """Let docker read its configuration again, as after a start."""
    value = daemon_json.parse(facts["docker"]["daemon_json"]["text"]).value
    by_default = docker.capabilities(facts["docker"]["version"]).cdi == "default"
    facts["docker"]["info"].update(
        runtimes=["runc", *value.get("runtimes", {})],
        default_runtime=value.get("default-runtime", "runc"),
        cdi_dirs=["/etc/cdi"] if by_default or value.get("features", {}).get("cdi") else [],
    )


def install(after: Json, params: dict[str, Any]) -> None:
    names = runtime_cleanup.TOOLKIT_PACKAGES
    after["packages"]["installed"].update(dict.fromkeys(names, "1.20.0-1"))
    after["runtime"]["manifest"]["packages"] = sorted({*after["runtime"]["manifest"]["packages"], *names})
    after["runtime"].update(toolkit=True, hook_known=True, refresh=True, programs={"nvidia-ctk": "/usr/bin/nvidia-ctk"})


def write(after: Json, files: list[dict[str, str]]) -> None:
    for file in files:
        after["runtime"]["boot_nodes" if file["path"] == cdi.BOOT_NODES else "helper"] = file["content"]
        after["runtime"]["manifest"]["files"].append(file["path"])


def specification(after: Json, params: dict[str, Any]) -> None:
    spec = {
        "path": params["path"],
        "ours": params["path"] == cdi.NATIVE,
        "devices": ["0", "all"],
        "format": None,
        "stale": None,
    }
    after["runtime"]["specs"] = [spec]
    after["runtime"]["manifest"]["files"].append(params["path"])
    write(after, params["files"])


def volume(after: Json, params: dict[str, Any]) -> None:
    after["runtime"]["volume"] = {"exists": True, "version": "580.95.05", "stale": None}
    after["runtime"]["manifest"]["directories"].append(driver_volume.ROOT)
    write(after, params["files"])


def cleanup(after: Json, params: dict[str, Any]) -> None:
    for name in params["packages"]:
        del after["packages"]["installed"][name]
    removed = {*params["paths"], *params["remains"]}
    facts = runtime_cleanup.facts_after(records.from_json(Facts, after), removed, bool(params["packages"]))
    after["runtime"] = records.to_json(facts.runtime)
    for section in ("files", "directories"):
        after["runtime"]["manifest"][section] = [
            path for path in after["runtime"]["manifest"][section] if path not in removed
        ]


def configure(after: Json, params: dict[str, Any]) -> None:
    found, given = after["docker"]["daemon_json"], params["daemon_json"]
    change = daemon_json.merge(found["text"], given["set"], given["unset"])
    found["text"] = change.after
    known = after["runtime"]["manifest"]["keys"]
    for name, state in change.record.items():
        back = manifest_notes.keys_restored_by(known, name, state)
        for one in back:
            del known[one]
        if not back:
            known.setdefault(name, state).update({key: state[key] for key in ("after",) if key in state})
    restart(after)


ACTIONS = {"install": install, "cdi_spec": specification, "volume": volume, "cleanup": cleanup, "configure": configure}


def carry_out(facts: Json, decision: Any, steps: "int | None" = None) -> Json:
    after = copy.deepcopy(facts)
    for step in decision.steps[:steps]:
        if step.action != "repository":
            ACTIONS[step.action](after, copy.deepcopy(todo(step)))
    return after


@pytest.mark.parametrize("text", [None, json.dumps(OTHERS)], ids=["no file", "keys of others"])
@pytest.mark.parametrize("version", ["20.10.24", "26.1.5", "29.0.1"])
def test_any_order_of_modes_ends_where_the_last_one_alone_would(version: str, text: "str | None") -> None:
    modes = [mode for mode in MODES if mode != "cdi" or version != "20.10.24"]
    ends = {mode: carry_out(bare(version, text), decide(bare(version, text), mode)) for mode in modes}
    for order in itertools.permutations(modes):
        facts = bare(version, text)
        for mode in order:
            decision = decide(facts, mode)
            assert decision.refusals == []
            facts = carry_out(facts, decision)
            assert decide(facts, mode).steps == [], (order, mode)
            meaning = [daemon_json.parse(end["docker"]["daemon_json"]["text"]).value for end in (facts, ends[mode])]
            assert meaning[0] == meaning[1], (order, mode)
            assert traces(facts) == traces(ends[mode]), (order, mode)


def traces(facts: Json) -> Any:
    """What gpu-ready added to the host."""
    part = facts["runtime"]
    return sorted(facts["packages"]["installed"]), part["specs"], part["volume"], part["helper"], part["boot_nodes"]


@pytest.mark.parametrize("version", ["20.10.24", "26.1.5"])
def test_a_switch_that_is_killed_anywhere_is_finished_by_the_next_run(version: str) -> None:
    for first, second in itertools.permutations([mode for mode in MODES if mode != "cdi"], 2):
        before = carry_out(bare(version, None), decide(bare(version, None), first))
        whole = decide(before, second)
        for steps in range(len(whole.steps)):
            killed = carry_out(before, whole, steps)
            end = carry_out(killed, decide(killed, second))
            assert decide(end, second).steps == [], (first, second, steps)
            assert traces(end) == traces(carry_out(before, whole)), (first, second, steps)
