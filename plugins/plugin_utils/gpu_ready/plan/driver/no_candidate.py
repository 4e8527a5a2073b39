"""Refusals where no source has a driver that fits: each names the GPU or the variable, the cause and the remedy."""

from .....module_utils.gpu_ready.base import versions
from .....module_utils.gpu_ready.facts.model import Facts, GpuFacts
from ...catalog import driver_sources
from ...catalog import model as catalog
from ...catalog.driver_sources import FLAVOURS, Pair
from ...catalog.model import Distribution
from ...catalog.settings import Settings
from ..model import Refusal, VariableChange, refuse
from . import alternatives
from .alternatives import Situation
from .candidates import (
    DriverRequest,
    can_manage_switches,
    drives,
    fits_kernel,
    has_flavour,
    is_versioned_by_kernel,
    matching_pairs,
    pairs_of_gpu,
    recorded_candidate,
    requested_pairs,
    source_pairs,
)
from .refusals import gpu_label, kernel_unfit, nvswitches_text, supported_drivers

LAST_BRANCHES = {"470": "Kepler", "580": "Maxwell, Pascal and Volta"}


def unknown_old_gpu(gpu: GpuFacts, situation: Situation) -> Refusal:
    """Refuse a GPU that the catalog does not have and that is not newer: no branch is known to drive it."""
    return refuse(
        "gpu_unknown",
        "%s is not in the catalog of %s, and its number is that of a chip before Turing: its last branch is not known"
        % (gpu_label(gpu), catalog.DATE),
        legacy_branches(situation) or alternatives.NO_DRIVER,
    )


def legacy_branches(situation: Situation) -> str:
    """Return which branch to request for which chips, with the variables that would exclude it; "" for none.

    Only who knows the chip can choose: these are words, no change.
    """
    auto = {
        name: [alternatives.AUTO]
        for name in (alternatives.FLAVOUR, alternatives.MODULES, alternatives.SOURCE)
        if getattr(situation.settings, name) != alternatives.AUTO
    }
    for changed in ({}, auto):
        settings = alternatives.with_values(situation.settings, {name: alternatives.AUTO for name in changed})
        fitting = alternatives.fitting_values(situation._replace(settings=settings), alternatives.BRANCH)
        known = ["%s for %s" % (branch, LAST_BRANCHES[branch]) for branch in fitting if branch in LAST_BRANCHES]
        if known:
            left_out = alternatives.dropped(situation.settings, [*changed, alternatives.BRANCH])
            others: dict[str, list[object]] = {name: [*values] for name, values in changed.items()}
            return VariableChange({**others, alternatives.BRANCH: [*known]}, left_out).text
    return ""


def no_common_driver(gpus: list[GpuFacts], request: DriverRequest, situation: Situation) -> Refusal:
    """Refuse a host with a GPU that no driver of the catalog drives, or with GPUs that no single driver drives."""
    undriven = [gpu for gpu in gpus if not requested_pairs(gpu.device, request)]
    if undriven and catalog.gpu(undriven[0].device) is None:
        return unknown_old_gpu(undriven[0], situation)
    if undriven:
        gpu = undriven[0]
        return refuse(
            "gpu_too_old",
            "%s takes %s: no driver branch of the catalog drives it" % (gpu_label(gpu), supported_drivers(gpu.device)),
            "take the card out, or set nvidia_driver_source to none and look after its driver yourself",
        )
    kinds: dict[str, GpuFacts] = {}
    for gpu in gpus:
        kinds.setdefault(gpu.device, gpu)
    # Two GPUs that exclude each other explain more than the whole list.
    for first in kinds.values():
        for second in kinds.values():
            if not pairs_of_gpu(first.device) & pairs_of_gpu(second.device):
                kinds = {first.device: first, second.device: second}
    limits = " and ".join("%s takes %s" % (gpu_label(gpu), supported_drivers(gpu.device)) for gpu in kinds.values())
    return refuse(
        "no_driver_for_mixed_gpus",
        "one host runs one driver, but " + limits,
        "move one kind of card to another host, or bind it to vfio-pci",
    )


def explain_no_candidate(
    facts: Facts,
    settings: Settings,
    request: DriverRequest,
    gpus: list[GpuFacts],
    data: Distribution,
    possible: set[Pair],
) -> list[Refusal]:
    """Return why no source has a driver that drives all GPUs and fits the request."""
    situation = Situation(facts, settings, data)
    if recorded_candidate(request, data):
        refused = flavour_refusals_of_named(request, gpus, situation)
        if refused:
            return refused
    if not possible:
        return [no_common_driver(gpus, request, situation)]
    requested = matching_pairs(possible, request)
    if not requested and request.policy:
        kinds = "no branch of this kind drives all GPUs of this host"
        message = "nvidia_driver_branch %s: %s" % (request.policy, kinds)
        return [refuse("branch_policy_impossible", message, alternatives.remedy(situation, alternatives.BRANCH))]
    if not requested:
        refusals = branch_refusals(request, gpus, possible, situation)
        return refusals + flavour_refusals(request, gpus, possible, situation)
    return source_refusals(request, requested, situation)


def branch_refusals(
    request: DriverRequest, gpus: list[GpuFacts], possible: set[Pair], situation: Situation
) -> list[Refusal]:
    if request.branch is None or request.branch in {branch for branch, _ in possible}:
        return []
    variable = "nvidia_driver_branch %d" % request.branch
    remedy = alternatives.remedy(situation, alternatives.BRANCH)
    for gpu in gpus:
        known = catalog.gpu(gpu.device)
        if known and known.last_branch is not None and request.branch > known.last_branch:
            message = "%s: %s is supported up to branch %d" % (variable, gpu_label(gpu), known.last_branch)
            return [refuse("branch_above_ceiling", message, remedy)]
    for gpu in gpus:
        known = catalog.gpu(gpu.device)
        if known and known.first_branch is not None and request.branch < known.first_branch:
            message = "%s: %s is supported from branch %d on" % (variable, gpu_label(gpu), known.first_branch)
            return [refuse("branch_below_minimum", message, remedy)]
    return [refuse("branch_impossible", "%s does not drive all GPUs of this host" % variable, remedy)]


def flavour_refusals(
    request: DriverRequest, gpus: list[GpuFacts], possible: set[Pair], situation: Situation
) -> list[Refusal]:
    if request.flavour is None:
        return []
    others = sorted({flavour for branch, flavour in possible if request.branch in (None, branch)} - {request.flavour})
    fitting = {branch for branch, flavour in possible if flavour == request.flavour}
    if not others or (request.branch is None and fitting) or request.branch in fitting:
        return []
    culprits = [gpu for gpu in gpus if request.flavour not in {f for _, f in requested_pairs(gpu.device, request)}]
    cause = (
        "%s has no %s kernel module" % (gpu_label(culprits[0]), request.flavour)
        if culprits
        else ("branch %s has no %s kernel module for these cards" % (request.branch, request.flavour))
    )
    remedy = alternatives.remedy(situation, alternatives.FLAVOUR)
    return [refuse("flavour_impossible", "nvidia_driver_flavour %s: %s" % (request.flavour, cause), remedy)]


def flavour_refusals_of_named(request: DriverRequest, gpus: list[GpuFacts], situation: Situation) -> list[Refusal]:
    """Refuse a completely named driver whose branch is within the limits of the GPUs, but not its flavour."""
    flavour, branch = request.flavour or "", request.branch or 0
    if not all(any(drives(gpu, branch, one, request) for one in FLAVOURS) for gpu in gpus):
        return []
    undriven = [gpu_label(gpu) for gpu in gpus if not drives(gpu, branch, flavour, request)]
    if not undriven and has_flavour(branch, flavour):
        return []
    return [
        refuse(
            "flavour_impossible",
            "nvidia_driver_flavour %s: %s has no %s kernel module"
            % (flavour, undriven[0] if undriven else "branch %d" % branch, flavour),
            alternatives.remedy(situation, alternatives.FLAVOUR),
        )
    ]


def source_refusals(request: DriverRequest, requested: set[Pair], situation: Situation) -> list[Refusal]:
    facts, data = situation.facts, situation.data
    pretty = data["pretty"]
    known = driver_sources.source_names(data)
    if request.source is not None and request.source not in known:
        return [
            refuse(
                "source_impossible",
                "nvidia_driver_source %s does not exist for %s" % (request.source, pretty),
                alternatives.remedy(situation, alternatives.SOURCE),
            )
        ]
    requested_sources = [request.source] if request.source else known
    if request.source and not any(
        can_manage_switches(facts, data, request.source, branch)
        for branch in driver_sources.all_branches(data, request.source)
    ):
        return [
            refuse(
                "source_impossible",
                "nvidia_driver_source %s: this host has %s, and %s carries no fabric manager%s there"
                % (request.source, nvswitches_text(facts), pretty, " with nvlsm" if facts.base.umad else ""),
                alternatives.remedy(situation, alternatives.SOURCE),
            )
        ]
    if not any(
        fits_kernel(facts, data, source, kind)
        for source in requested_sources
        for kind in driver_sources.module_kinds(data, source)
    ):
        remedy = alternatives.remedy(situation, alternatives.SOURCE)
        return [kernel_unfit(facts, requested_sources[0], data, remedy)]
    if request.modules and not any(
        request.modules in driver_sources.module_kinds(data, source)
        and fits_kernel(facts, data, source, request.modules)
        for source in requested_sources
    ):
        return [
            refuse(
                "kernel_modules_impossible",
                "nvidia_driver_kernel_modules %s: no such driver comes from %s on %s"
                % (request.modules, " or ".join(requested_sources), pretty),
                alternatives.remedy(situation, alternatives.MODULES),
            )
        ]
    if (
        request.modules
        and request.version
        and all(is_versioned_by_kernel(data, source, request.modules) for source in requested_sources)
    ):
        remedy = alternatives.remedy(situation, alternatives.MODULES)
        others: list[str] = []
        same_branch = {alternatives.BRANCH: str(request.branch)}
        if alternatives.is_accepted(situation, same_branch):
            named: dict[str, list[object]] = {name: [value] for name, value in same_branch.items()}
            others = [remedy.text if isinstance(remedy, VariableChange) else remedy]
            remedy = VariableChange(named, alternatives.dropped(situation.settings, [alternatives.BRANCH]))
        return [
            refuse(
                "kernel_modules_impossible",
                "nvidia_driver_version %s: %s modules of %s come with the kernel, in the version of the day"
                % (request.version, request.modules, " and ".join(requested_sources)),
                remedy,
                *others,
            )
        ]
    unbuilt = kernel_outside_branch(request, requested, requested_sources, situation)
    if unbuilt:
        return [unbuilt]
    carried = "; ".join(
        "%s carries %s"
        % (source, ", ".join(str(branch) for branch in driver_sources.all_branches(data, source)) or "none")
        for source in requested_sources
    )
    needed = ", ".join(sorted({"%d %s" % pair for pair in requested}))
    code = "source_impossible" if request.source else "branch_not_carried"
    message = "no source of %s has a driver that fits (%s): %s" % (pretty, needed, carried)
    first = alternatives.SOURCE if request.branch is None or request.source else alternatives.BRANCH
    remedy = alternatives.remedy(situation, first)
    return [refuse(code, message, remedy)]


def kernel_outside_branch(
    request: DriverRequest, requested: set[Pair], sources: list[str], situation: Situation
) -> Refusal | None:
    """Refuse a branch that a source has, but not for the running kernel; None where no source has one."""
    facts, data = situation.facts, situation.data
    running = facts.base.kernel.running
    for source in sources:
        for kind in driver_sources.module_kinds(data, source):
            for branch, _ in sorted(requested & source_pairs(data, source, kind, request)):
                newest, oldest = driver_sources.kernel_max(data, source, kind, branch), catalog.kernel_min(branch)
                remedy = alternatives.remedy(situation, alternatives.BRANCH)
                if oldest and versions.compare(running, oldest) < 0:
                    message = "branch %d builds for kernels from %s on, and this host runs %s"
                    text = message % (branch, oldest, running)
                    return refuse("kernel_below_branch", text, remedy, "boot a newer kernel")
                if not driver_sources.builds_for(data, source, kind, branch, running):
                    text = "branch %d of %s has modules for kernels up to %s, and this host runs %s"
                    text = text % (branch, source, newest, running)
                    return refuse("kernel_above_branch", text, remedy, "boot an older kernel")
    return None
