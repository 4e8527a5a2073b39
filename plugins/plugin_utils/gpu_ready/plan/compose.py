"""The plan of one host: facts and settings in, ordered steps or refusals out. No I/O, no names of distributions.

Each planner returns a Decision from the facts, the settings and the choices of earlier planners. They are composed here
in the order in which the roles act.
"""

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from ....module_utils.gpu_ready.base import records, secret_values
from ....module_utils.gpu_ready.facts.model import BaseFacts, Facts
from ....module_utils.gpu_ready.verify.expectation import DriverTarget, VerifyExpectation
from ..catalog import model as catalog
from ..catalog.settings import POLICY, Settings
from ..completion.os_family import distribution_name
from ..report.layout import size_text
from . import (
    dcgm,
    health,
    health_check,
    hidden_packages,
    in_use,
    monitoring,
    nested_options,
    node_exporter,
    offered,
    parts,
    repository,
    security,
    verification,
)
from .apt_repository import contradiction_refusals
from .containers import docker, engines, kubernetes, runtime
from .cuda import choose as cuda
from .cuda import cudnn
from .driver import activation, parameters, services
from .driver import choose as driver
from .driver.refusals import managed_host, treat_as_warnings
from .model import Choices, Decision, DriverChoice, Notice, Refusal, Step, VerifyParams
from .open_upgrade import CODE as OPEN_UPGRADE
from .open_upgrade import open_upgrade

NO_CHOICES = Choices()


class Plan(NamedTuple):
    """Everything that is decided for one host. ``digest`` identifies the desired state; "" without a driver."""

    gpu_host: bool
    summary: str
    choices: Choices = NO_CHOICES
    steps: list[Step] = []
    refusals: list[Refusal] = []
    warnings: list[Notice] = []
    digest: str = ""

    @property
    def converged(self) -> bool:
        return not self.steps and not self.refusals


class ReportRow(NamedTuple):
    """A host's line of the report: what is requested, and what of it is present."""

    distribution: str
    gpus: str
    driver_desired: str | None
    driver_flavour: str | None
    driver_installed: str | None
    driver_loaded: str | None
    driver_userspace: str | None
    cuda: str | None
    cudnn: str | None
    docker_runtime: str | None
    verified: str | None
    why: str


def plan(
    facts: Facts,
    settings: Settings,
    drains: Sequence[str] = (),
    part: str = "",
    check: bool = False,
    release: str = "",
) -> Plan:
    """Plan one host. The same input gives the same plan; a whole host has the same one under --check (``check``).

    ``drains``: how the host is drained before the plan is carried out (values of gpu_upgrade_drain). ``part``: one of
    parts.PARTS, with the settings that parts.own_variables returns; "" for the whole host. ``release``: the point
    release to which an installed driver is moved (driver/point_release.py); "" to keep it.
    """
    settings = parts.part_settings(settings, facts, part)
    managed = managed_host(facts.base.managed_by, always=True)
    if managed and settings.nvidia_driver_source != "none":
        return Plan(True, managed.message, refusals=[managed])
    lost = health.refusals(facts) if part in ("", parts.DRIVER, parts.VERIFY) else []
    if not facts.base.served_gpus:
        return Plan(False, "; ".join(one.message for one in lost) or nothing_to_do(facts), refusals=lost)
    unknown_kubelet = kubernetes.unknown_kubelet(facts, settings)
    settings = kubernetes.resolve_engines(facts, settings)
    driven = driver.plan_driver(facts, settings, NO_CHOICES, release)
    choices = Choices(driver=driven.choice, parameters=parameters.requested(settings))
    decisions: list[Decision[object]] = [driven]
    if driven.choice is not None:  # the later planners need a driver to fit
        activated = activation.plan_activation(facts, settings, choices, drains)
        choices = choices._replace(activation=activated.choice)
        served = services.plan_services(facts, settings, choices)
        choices = choices._replace(services=served.choice)
        toolkits = cuda.plan_cuda(facts, settings, choices)
        choices = choices._replace(cuda=toolkits.choice)
        libraries = cudnn.plan_cudnn(facts, settings, choices)
        choices = choices._replace(cudnn=libraries.choice)
        engine = docker.plan_docker(facts, settings, choices)
        container = runtime.plan_runtime(facts, settings, choices)
        choices = choices._replace(runtime=container.choice)
        others = engines.plan_engines(facts, settings, choices)
        choices = choices._replace(engines=others.choice)
        found: list[tuple[str, Decision[object]]] = [
            (parts.DRIVER, driven),
            (parts.DRIVER, activated),
            (parts.DRIVER, served),
            (parts.CUDA, toolkits),
            (parts.CUDNN, libraries),
            (parts.DOCKER, engine),
            (parts.RUNTIME, container),
            (parts.RUNTIME, others),
        ]
        decisions = [parts.own_decision(planner, decision, part, check) for planner, decision in found]
    planned = [step for decision in decisions for step in decision.steps]
    decisions.append(in_use.check_running_work(facts, settings, planned, drains))
    watching: list[Decision[None]] = []
    if driven.choice is not None and part in ("", parts.MONITORING):
        watching = [
            node_exporter.plan_node_exporter(facts, settings, planned),
            monitoring.plan_monitoring(facts, settings),
            health_check.plan_check(facts, settings),
            node_exporter.decide_removal(facts, settings),
            dcgm.plan_dcgm(facts, settings, choices),
        ]
    refusals = lost + unknown_kubelet + verification.device_refusals(facts, settings, part)
    for refusal in (one for decision in decisions + [*watching] for one in decision.refusals):
        if refusal not in refusals:  # two engines may refuse the same
            refusals.append(refusal)
    warnings = catalog_age_warnings(facts)
    warnings += [] if part else open_upgrade_warnings(facts)
    warnings += treat_as_warnings(facts, settings.gpu_ready_treat_as)
    warnings += nested_options.unknown_names(facts, settings)
    warnings += [warning for decision in decisions for warning in decision.warnings]
    refusals += hidden_packages.refusals(facts, planned)
    contradictions: list[Refusal] = []
    if facts.apt.sources:
        contradictions = contradiction_refusals(facts)
    refusals += [] if refusals else offered.refusals(facts, choices, planned)
    warnings += offered.warnings(facts)
    if planned:
        refusals += contradictions
    else:
        warnings += [Notice(*one) for one in contradictions]
    steps = [] if refusals else (repair_steps(facts) if planned or not part else []) + planned
    digest = state_digest(settings, choices)
    if not refusals:
        warnings += in_progress_warnings(facts, steps)
        warnings += repository.outranking_warnings(facts, settings, driven.choice.source if driven.choice else None)
        steps += verify_steps(facts, choices, steps, digest) if part in ("", parts.VERIFY) else []
    if not refusals:
        steps += [step for decision in watching for step in decision.steps]
        warnings += [warning for decision in watching for warning in decision.warnings]
    if part in ("", parts.DRIVER, parts.RUNTIME):
        warnings += security.warnings(facts, choices, steps)
    summary = summarize(facts, choices, steps, refusals, part)
    return Plan(True, summary, choices, steps, refusals, warnings, digest)


OLD_FROM = 90
"""Days after which a plan says how old its catalog is."""


def catalog_age_warnings(facts: Facts) -> list[Notice]:
    age = catalog.age_in_days(catalog.DATE, facts.today)
    if age < OLD_FROM:
        return []
    return [
        Notice(
            "catalog_old",
            "the catalog is of %s, %d months ago: newer branches, toolkits and cards are not in it"
            % (catalog.DATE, age // 30),
            "update gpu-ready, or add what you need to gpu_ready_catalog_overlay",
        )
    ]


def nothing_to_do(facts: Facts) -> str:
    given = len(facts.base.gpus)
    if given:
        return "%s given to virtual machines: left alone" % ("its NVIDIA GPU is" if given == 1 else "its GPUs are")
    loaded = facts.driver.loaded
    if loaded:  # a container without /sys/bus/pci, or GPUs that fell off the bus
        return "no NVIDIA GPU on the PCI bus, although driver %s is loaded: left alone" % loaded.version
    return "no NVIDIA GPU: left alone"


def repair_steps(facts: Facts) -> list[Step]:
    broken = facts.packages.broken
    if not broken:
        return []
    names = ", ".join(broken[:3]) + (" and %d more" % (len(broken) - 3) if len(broken) > 3 else "")
    return [Step("gpu_plan.repair_packages", "an interrupted package run left %s half-configured" % names)]


def open_upgrade_warnings(facts: Facts) -> list[Notice]:
    """Warn of an upgrade that has not come to its end: site.yml neither resumes nor undoes it."""
    found = open_upgrade(facts)
    return [Notice(OPEN_UPGRADE, found.message, found.remedy)] if found else []


def in_progress_warnings(facts: Facts, steps: list[Step]) -> list[Notice]:
    """Warn of a package manager at work, for which the steps will wait (packaging/manager.py, LOCK_WAIT)."""
    if not facts.packages.in_progress or not steps:
        return []
    upgrade = open_upgrade(facts)
    who = "unattended upgrades, cloud-init, somebody's apt or dnf"
    return [
        Notice(
            "packages_in_progress",
            "%s works on the packages of this host (%s)"
            % (facts.packages.in_progress, "its upgrade" if upgrade and upgrade.interrupted else who),
            "nothing is to be done: steps that install packages wait for it, up to 10 minutes each",
        )
    ]


def state_digest(settings: Settings, choices: Choices) -> str:
    """Return the digest of the desired state. A variable that a later release adds with an empty default keeps it."""
    state: dict[str, object] = {
        name: value for name, value in settings._asdict().items() if name not in POLICY and is_set(value)
    }
    chosen = choices.driver
    version = chosen.version if chosen and not chosen.moved else None
    state["driver"] = [chosen.source, chosen.branch, version, chosen.flavour] if chosen else []
    for part, choice in (("cuda", choices.cuda), ("cudnn", choices.cudnn), ("runtime", choices.runtime)):
        state["chosen " + part] = records.to_json(choice)
    text = json.dumps(state, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def is_set(value: object) -> bool:
    return value not in ("", None, [], {}) and value is not False


def verify_steps(facts: Facts, choices: Choices, steps: list[Step], digest: str) -> list[Step]:
    """Return the verification that is due: after any change, and where the record is not of the present state."""
    changed = "the changes are verified in a container"
    reason = changed if any(step.verify_after for step in steps) else verification.reason_to_verify(facts, digest)
    params = verify_params(facts, choices, digest)
    if reason is None or params is None:
        return []
    return [Step("gpu_verify.verify", reason, params=params)]


def verify_params(facts: Facts, choices: Choices, digest: str) -> VerifyParams | None:
    """Return the parameters of gpu_verify.verify, also where none is due; None without a driver."""
    chosen = choices.driver
    if chosen is None:
        return None
    expect = VerifyExpectation(
        driver=DriverTarget(chosen.branch, chosen.version, chosen.flavour),
        gpus=[gpu.address for gpu in facts.base.served_gpus],
        runtime=choices.runtime,
        engines=choices.engines,
        parameters=choices.parameters,
        persistence=bool(choices.services and choices.services.persistence),
    )
    return VerifyParams(expect, digest)


# ---- texts ---------------------------------------------------------------------------------------------------------


def summarize(facts: Facts, choices: Choices, steps: list[Step], refusals: list[Refusal], part: str = "") -> str:
    if refusals:
        return "; ".join(refusal.message for refusal in refusals)
    if part and not steps:
        return "%s: as configured, nothing to do" % part
    chosen = choices.driver
    name = "driver %s %s" % (driver_name(chosen), (chosen.flavour if chosen else None) or "")
    what = "%s with %s" % (gpus_text(facts.base), " ".join(name.split()))
    if not steps:
        return "%s: ready and verified, nothing to do" % what
    size = facts.offered.download if facts.offered else 0
    downloads = ", %s of packages to download" % size_text(size) if size else ""
    return "%s: %d step%s to do%s" % (what, len(steps), "" if len(steps) == 1 else "s", downloads)


def driver_name(chosen: DriverChoice | None) -> str:
    """Return the version of a chosen driver, its branch where any version will do, "" where nothing is known."""
    return str(chosen.version or chosen.branch or "") if chosen else ""


def gpus_text(base: BaseFacts) -> str:
    """Return the GPUs by kind: ``2x Tesla P40, 1x Tesla T4``."""
    names = [gpu.name for gpu in base.gpus]
    return ", ".join("%dx %s" % (names.count(name), name) for name in sorted(set(names), key=names.index)) or "none"


def report_row(facts: Facts, decided: Plan) -> ReportRow:
    choices, state = decided.choices, facts.driver
    chosen, record = choices.driver, facts.verified
    container = choices.runtime or choices.engines
    current = record is not None and verification.reason_to_verify(facts, decided.digest) is None
    return ReportRow(
        distribution=distribution_name(facts.base),
        gpus=gpus_text(facts.base),
        driver_desired=driver_name(chosen) or None,
        driver_flavour=chosen.flavour if chosen else None,
        driver_installed=state.on_disk.version if state.on_disk else None,
        driver_loaded=state.loaded.version if state.loaded else None,
        driver_userspace=", ".join(state.userspace) or None,
        cuda=", ".join(toolkit.version for toolkit in facts.cuda.toolkits) or None,
        cudnn=facts.cudnn_versions,
        docker_runtime=container.mode if container else None,
        verified=record.time if record and current else None,
        why=decided.summary,
    )


# ---- JSON ----------------------------------------------------------------------------------------------------------


def plan_json(decided: Plan) -> dict[str, object]:
    """Return the plan as JSON, without the parameters of the steps (those are :func:`todo_json`)."""
    return {
        "gpu_host": decided.gpu_host,
        "converged": decided.converged,
        "summary": decided.summary,
        "choice": {name: records.to_json(choice) or {} for name, choice in decided.choices._asdict().items()},
        "refusals": records.to_json(decided.refusals),
        "warnings": records.to_json(decided.warnings),
        "steps": [
            {
                "id": step.id,
                "role": step.role,
                "action": step.action,
                "why": step.why,
                "disruption": step.disruption,
                "verify_after": step.verify_after,
            }
            for step in decided.steps
        ],
        "digest": decided.digest,
    }


def todo_json(decided: Plan) -> dict[str, object]:
    return {step.id: records.to_json(step.params) for step in decided.steps}


def diff_json(decided: Plan) -> list[dict[str, str]]:
    """Return what --diff shows: the steps as text, then each file that a step writes."""
    if not decided.steps:
        return []
    lines = "".join("%s: %s [%s]\n" % (step.id, step.why, step.disruption) for step in decided.steps)
    shown = [{"before_header": "steps", "after_header": "steps", "before": "", "after": lines}]
    for step in decided.steps:
        for change in step.diff:
            shown.append(
                {
                    "before_header": change.path,
                    "after_header": change.path,
                    "before": secret_values.mask_options(change.before or ""),
                    "after": secret_values.mask_options(change.after or ""),
                }
            )
    return shown
