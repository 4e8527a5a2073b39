"""Look at one host and decide: what gpu_node_plan answers, without Ansible."""

import time
from typing import Any, Dict, List, Tuple

from . import observe, plan, upgrade, wishes
from .host import Host
from .observe import driver
from .plan import driver as plan_driver
from .plan import sources
from .plan.steps import Refusal


def host(door: Host, given: Dict[str, Any]) -> Dict[str, Any]:
    """Return the answer of gpu_node_plan for a host and the variables as they were given."""
    observed, decided = both(door, given)
    wanted = wishes.read({name: value for name, value in given.items() if value is not None}).wanted
    found = upgrade.status(observed, decided, wanted, int(time.time()))
    if (found["installed"] or {}).get("source") == sources.RUNFILE:
        found["installer"] = plan_driver.earlier_installer(observed, wanted, found["installed"]["version"])
    return dict(answer(observed, decided), upgrade=found)


def both(door: Host, given: Dict[str, Any]) -> Tuple[Dict[str, Any], plan.Plan]:
    """Return what is observed of a host, and what is decided over it."""
    wanted, wrong = wishes.read({name: value for name, value in given.items() if value is not None})
    observed = observe.look(door, wanted["gpu_ready_treat_as"] or None)
    if wrong:
        return observed, refused(wrong)
    decided = plan.plan(observed, wanted)
    if observed["driver"]["busy"] and any(step.id == "nvidia_driver.activate" for step in decided.steps):
        # Who holds the device costs a walk through /proc, so it is asked only when the answer matters.
        observed["driver"]["clients"] = driver.clients(door)
        decided = plan.plan(observed, wanted)
    return observed, decided


def refused(wrong: List[str]) -> plan.Plan:
    """Return the plan for wishes that cannot be: all of them at once."""
    refusals = [Refusal("wrong_type", text, "correct the variable and run this again") for text in wrong]
    return plan.Plan(True, "; ".join(wrong), {}, [], refusals, [], "")


def answer(observed: Dict[str, Any], decided: plan.Plan) -> Dict[str, Any]:
    """Return plan, parameters, table row and the texts for people."""
    chosen = decided.choice.get("driver")
    return {
        "plan": plan.as_dict(decided),
        "todo": plan.todo(decided),
        "proof": plan.promised(observed, decided.choice, decided.digest) if chosen else None,
        "row": plan.row(observed, decided),
        "diff": plan.diff(decided),
        "lines": lines(decided),
        "refusal": "\n".join("%s. Remedy: %s." % (one.message, one.remedy) for one in decided.refusals),
    }


def lines(decided: plan.Plan) -> List[str]:
    """Return the plan for a person: the reason of the choice, each step, each warning."""
    told = [decided.summary]
    told += [
        "%s: %s%s" % (s.id, s.why, "" if s.disruption == "none" else " [%s]" % s.disruption) for s in decided.steps
    ]
    return told + ["warning: %s; %s" % (notice.message, notice.remedy) for notice in decided.warnings]
