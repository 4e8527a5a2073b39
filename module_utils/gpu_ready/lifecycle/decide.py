"""Look at one host and decide: what gpu_node_plan answers, without Ansible."""

import time
from typing import Any, Dict, List, Tuple

from ..base.host import Host
from ..catalog import driver_sources
from ..facts import collect, driver
from ..plan import compose
from ..plan.driver import choose as plan_driver
from ..plan.model import Refusal
from ..upgrade import journal as upgrade
from . import variables


def host(door: Host, given: Dict[str, Any]) -> Dict[str, Any]:
    """Return the answer of gpu_node_plan for a host and the variables as they were given."""
    observed, decided = both(door, given)
    wanted = variables.parse_settings(given).settings._asdict()
    found = upgrade.status(observed, decided, wanted, int(time.time()))
    if (found["installed"] or {}).get("source") == driver_sources.RUNFILE:
        found["installer"] = plan_driver.earlier_installer(observed, wanted, found["installed"]["version"])
    return dict(answer(observed, decided), upgrade=found)


def both(door: Host, given: Dict[str, Any]) -> Tuple[Dict[str, Any], compose.Plan]:
    """Return what is observed of a host, and what is decided over it."""
    settings, errors = variables.parse_settings(given)
    wanted = settings._asdict()
    observed = collect.look(door, wanted["gpu_ready_treat_as"] or None)
    if errors:
        return observed, refused(errors)
    decided = compose.plan(observed, wanted)
    if observed["driver"]["busy"] and any(step.id == "nvidia_driver.activate" for step in decided.steps):
        # Who holds the device costs a walk through /proc, so it is asked only when the answer matters.
        observed["driver"]["clients"] = driver.clients(door)
        decided = compose.plan(observed, wanted)
    return observed, decided


def refused(errors: List[str]) -> compose.Plan:
    """Return the plan for wrong settings, with a refusal for each."""
    refusals = [Refusal("wrong_type", text, "correct the variable and run this again") for text in errors]
    return compose.Plan(True, "; ".join(errors), {}, [], refusals, [], "")


def answer(observed: Dict[str, Any], decided: compose.Plan) -> Dict[str, Any]:
    """Return plan, parameters, table row and the texts for people."""
    chosen = decided.choice.get("driver")
    return {
        "plan": compose.as_dict(decided),
        "todo": compose.todo(decided),
        "proof": compose.promised(observed, decided.choice, decided.digest) if chosen else None,
        "row": compose.row(observed, decided),
        "diff": compose.diff(decided),
        "lines": lines(decided),
        "refusal": "\n".join("%s. Remedy: %s." % (one.message, one.remedy) for one in decided.refusals),
    }


def lines(decided: compose.Plan) -> List[str]:
    """Return the plan for a person: the reason of the choice, each step, each warning."""
    told = [decided.summary]
    told += [
        "%s: %s%s" % (s.id, s.why, "" if s.disruption == "none" else " [%s]" % s.disruption) for s in decided.steps
    ]
    return told + ["warning: %s; %s" % (notice.message, notice.remedy) for notice in decided.warnings]
