"""The answer of gpu_node_plan by the facts of a host."""

from collections.abc import Callable, Sequence

from ....module_utils.gpu_ready.base import records
from ....module_utils.gpu_ready.facts.model import Facts
from ....module_utils.gpu_ready.packaging.index_record import PackageIndex
from ..catalog.settings import Settings
from . import compose
from . import upgrade as plan_upgrade
from .model import Refusal
from .offered import IndexRequest, index_request, unlisted_branch

Ask = Callable[[IndexRequest], PackageIndex]
"""Asks the package sources of the host, which is a call of its own."""


def plan_json(
    facts: Facts,
    settings: Settings,
    drains: Sequence[str] = (),
    part: str = "",
    check: bool = False,
    now: int = 0,
    release: str = "",
    ask: Ask | None = None,
) -> dict[str, object]:
    """Return the result of gpu_node_plan.

    ``now``: seconds since 1970 by the host's clock, ``drains``: how it is drained.

    ``part``: one of plan.parts.PARTS, "" for the whole host; ``check``: under --check. ``release``: as for
    compose.plan. ``ask``: for a plan that depends on what the sources of the host offer.
    """
    if plan_upgrade.was_just_upgraded(facts, now):
        release = ""  # a host that is done costs one call
    decided = compose.plan(facts, settings, drains, part, check, release)
    request = None
    if ask and decided.refusals:
        request = unlisted_branch(facts, settings, decided.refusals)
    elif ask:
        request = index_request(facts, settings, decided.choices, decided.steps, release, part)
    if ask and request:
        facts = facts._replace(offered=ask(request))
        decided = compose.plan(facts, settings, drains, part, check, release)
    status = plan_upgrade.upgrade_status(facts, decided, settings, now)
    return dict(answer_json(facts, decided), upgrade=records.to_json(status))


def refusal_json(refusals: list[Refusal]) -> dict[str, object]:
    """Return the result of gpu_node_plan for wrong settings, with which no host is asked for its facts."""
    decided = refused_plan(refusals)
    status = plan_upgrade.UpgradeStatus(
        state=plan_upgrade.UNASKED,
        opened=False,
        touched=False,
        staged=False,
        from_=None,
        to=None,
        way="none",
        why=decided.summary,
        refusal=refusal_text(decided),
        installed=None,
        journal=None,
        back=None,
    )
    shown = dict(texts_json(decided), verification=None, row={"why": decided.summary})
    return dict(shown, upgrade=records.to_json(status))


def plan_audited(facts: Facts, settings: Settings, refusals: list[Refusal]) -> compose.Plan:
    """Return the plan that an audit compares a host with: what site.yml would do if no work ran."""
    return refused_plan(refusals) if refusals else compose.plan(facts, settings, ["none"])


def refused_plan(refusals: list[Refusal]) -> compose.Plan:
    return compose.Plan(True, "; ".join(refusal.message for refusal in refusals), refusals=refusals)


def answer_json(facts: Facts, decided: compose.Plan) -> dict[str, object]:
    return dict(
        texts_json(decided),
        verification=records.to_json(compose.verify_params(facts, decided.choices, decided.digest)),
        row=records.to_json(compose.report_row(facts, decided)),
    )


def texts_json(decided: compose.Plan) -> dict[str, object]:
    """Return the plan, its parameters and its texts."""
    return {
        "plan": compose.plan_json(decided),
        "todo": compose.todo_json(decided),
        "diff": compose.diff_json(decided),
        "lines": plan_lines(decided),
        "refusal": refusal_text(decided),
    }


def refusal_text(decided: compose.Plan) -> str:
    return "\n".join("%s. Remedy: %s." % (one.message, one.remedy) for one in decided.refusals)


def plan_lines(decided: compose.Plan) -> list[str]:
    lines = [decided.summary]
    lines += [
        "%s: %s%s" % (step.id, step.why, "" if step.disruption == "none" else " [%s]" % step.disruption)
        for step in decided.steps
    ]
    return lines + ["warning: %s; %s" % (notice.message, notice.remedy) for notice in decided.warnings]
