"""The plans of captured hosts: each different capture is planned once, by as many processes as there are processors."""

import json
import multiprocessing
import os
from pathlib import Path
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.base.disruptions import DISRUPTIONS, REBOOT
from ....module_utils.gpu_ready.base.errors import GpuReadyError
from ....module_utils.gpu_ready.base.plain_text import plain_text
from ....module_utils.gpu_ready.facts.model import Facts
from ...process_limits import PLANNING, LimitExceeded, process_limits
from ..catalog import model as catalog
from ..completion.complete import today
from ..plan import answer as decide
from ..plan import apt_repository, compose, dnf_repository  # noqa: F401  before the processes begin
from ..report import layout
from ..settings import variables
from . import captures
from .host import other_rules

READY, PLANNED, REFUSED, NO_GPU = "ready", "planned", "refused", "no_gpu"
FEW = 8
"""Plans that one process makes sooner than several begin."""


class HostPlan(NamedTuple):
    """What a run of site.yml would do with a host. ``disruptions``: of its steps, least first.

    ``features``: what hosts of a kind usually have in common, in words, by what it is.
    """

    state: str
    distribution: str
    gpus: str
    installed: str
    desired: str
    summary: str
    steps: list[tuple[str, str, str]]
    disruptions: list[str]
    refusals: list[dict[str, str]]
    warnings: list[dict[str, str]]
    features: dict[str, str]

    @property
    def reboots(self) -> bool:
        return REBOOT in self.disruptions


class CapturedHost(NamedTuple):
    """A captured host and its plan. ``captured``: when."""

    name: str
    captured: str
    plan: HostPlan


class Planned(NamedTuple):
    """A directory of captures. ``unread``: why, by path; versions of gpu-ready in ``releases``."""

    hosts: list[CapturedHost]
    unread: dict[str, str]
    releases: list[str]


def plan_directory(directory: str, given: dict[str, Any]) -> Planned:
    """Return the plans of all captures, in which these variables override the inventory's. Raises OSError."""
    unread: dict[str, str] = {}
    named: dict[str, tuple[captures.Header, str]] = {}
    first: dict[str, str] = {}
    for path in captures.paths_in(directory):
        try:
            capture = captures.read(path)
        except (captures.CaptureError, OSError) as error:
            unread[path] = plain_text(str(error))
            continue
        host = layout.one_line(capture.header.host)
        if host in named:
            unread[path] = "%s: a second capture of %s. Remove one of them" % (path, host)
            continue
        named[host] = (capture.header, capture.digest)
        first.setdefault(capture.digest, path)
    found = plan_all([(path, given) for path in first.values()])
    plans = {digest: found[number] for number, digest in enumerate(first)}
    hosts = []
    for host, (header, digest) in sorted(named.items()):
        plan, fault = plans[digest]
        if plan is None:
            unread[str(Path(directory, captures.file_name(header.host)))] = fault
        else:
            hosts.append(CapturedHost(host, layout.one_line(header.captured), plan))
    releases = sorted({layout.one_line(header.gpu_ready) for header, _ in named.values()})
    return Planned(hosts, unread, releases)


Job = tuple[str, dict[str, Any]]
Outcome = tuple[HostPlan | None, str]


def plan_all(jobs: list[Job]) -> list[Outcome]:
    """Return the plans of captures in their order."""
    workers = min(os.cpu_count() or 1, len(jobs) // FEW)
    if workers < 2:
        return [plan_file(job) for job in jobs]
    catalog.gpus()  # parsed here, not in each process
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        return pool.map(plan_file, jobs, 4)


def plan_file(job: Job) -> Outcome:
    """Return the plan of a capture, or why there is none."""
    path, given = job
    try:
        with process_limits(seconds=PLANNING):
            capture = captures.read(path)
            facts = captures.facts_of(capture)._replace(today=today())
            return plan_facts(facts, dict(capture.header.settings, **given)), ""
    except (captures.CaptureError, OSError) as error:
        return None, plain_text(str(error))
    except GpuReadyError as error:
        return None, plain_text("%s: %s" % (path, error))
    except LimitExceeded as error:
        return None, plain_text("%s: no plan can be computed from these facts (%s)" % (path, error))
    except Exception as error:
        text = "%s: no plan can be computed from these facts (%s: %s). Capture the host again"
        return None, plain_text(text % (path, type(error).__name__, error))[:600]


def plan_facts(facts: Facts, given: dict[str, Any]) -> HostPlan:
    """Return what site.yml would do with a host of these facts and variables."""
    decided = plan_of(facts, given)
    row = compose.report_row(facts, decided)
    state = REFUSED if decided.refusals else NO_GPU if not decided.gpu_host else PLANNED if decided.steps else READY
    found = {step.disruption for step in decided.steps}
    return HostPlan(
        state=state,
        distribution=plain_text(row.distribution),
        gpus=plain_text(row.gpus),
        installed=plain_text(row.driver_installed or ""),
        desired=plain_text(row.driver_desired or ""),
        summary=plain_text(decided.summary),
        steps=[(step.id, plain_text(step.why), step.disruption) for step in decided.steps],
        disruptions=[name for name in DISRUPTIONS[1:] if name in found],
        refusals=[notice_json(one) for one in decided.refusals],
        warnings=[notice_json(one) for one in decided.warnings],
        features={name: plain_text(value) for name, value in features(facts).items()},
    )


def plan_of(facts: Facts, given: dict[str, Any]) -> compose.Plan:
    """Return the plan of site.yml for a host of these facts and variables."""
    rules = other_rules()
    others = {name: value for name, value in given.items() if name in rules}
    own = {name: value for name, value in given.items() if name not in others}
    settings, refusals = variables.settings_for_plan(own)
    refusals = refusals + variables.wrong_values(rules, others)
    return decide.refused_plan(refusals) if refusals else compose.plan(facts, settings)


def notice_json(notice: Any) -> dict[str, str]:
    return {"code": notice.code, "message": plain_text(notice.message), "remedy": plain_text(notice.remedy)}


def features(facts: Facts) -> dict[str, str]:
    """Return what hosts of one kind usually have in common."""
    base, driver, docker = facts.base, facts.driver, facts.docker
    engines = facts.engines
    present = {
        "docker": docker.installed,
        "podman": engines.podman.installed,
        "containerd": engines.containerd.installed,
        "CRI-O": engines.crio.installed,
        "kubelet": bool(engines.kubernetes.kind),
    }
    return {
        "system": base.os.pretty or base.os.id or "unknown",
        "kernel": base.kernel.running,
        "Secure Boot": "on" if base.secure_boot.on else "off",
        "installed driver": version_of(driver.on_disk),
        "loaded driver": version_of(driver.loaded),
        "driver libraries": ", ".join(driver.userspace) or "none",
        "driver from": " ".join(filter(None, (driver.origin, driver.repository))) or "nowhere",
        "held packages": "%d" % len(facts.packages.held),
        "CUDA": ", ".join(toolkit.version for toolkit in facts.cuda.toolkits) or "none",
        "cuDNN": facts.cudnn_versions or "none",
        "docker version": docker.version or "none",
        "engines": ", ".join(name for name, there in present.items() if there) or "none",
        "container toolkit": "installed" if facts.runtime.toolkit else "none",
        "verified": "no" if facts.verified is None else "yes" if facts.verified.ok else "failed",
    }


def version_of(module: Any) -> str:
    return " ".join(filter(None, (module.version, module.flavour))) if module is not None else "none"


def outcome(plan: HostPlan) -> str:
    """Return what a run would do, equal for plans that do the same."""
    steps = [(name, disruption) for name, _, disruption in plan.steps]
    return json.dumps([plan.state, plan.desired, steps, sorted(one["code"] for one in plan.refusals)])
