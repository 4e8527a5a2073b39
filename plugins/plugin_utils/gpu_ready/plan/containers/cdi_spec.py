"""The CDI specification of the GPUs: whether one fits the driver, who writes it, and the files that it needs."""

from typing import NamedTuple

from .....module_utils.gpu_ready.containers import cdi, driver_volume
from .....module_utils.gpu_ready.facts.model import CdiSpecFacts, Facts
from ...catalog.settings import Settings
from ..model import Choices, Refusal, VariableChange, refuse
from . import cdi_versions
from .model import CdiSpecParams, SupportFile

CDI = "cdi"
NATIVE = "native"


class SpecDecision(NamedTuple):
    """The specification to write (None: none), why, and refusals."""

    params: CdiSpecParams | None = None
    why: str = ""
    refusals: list[Refusal] = []


def plan_cdi_spec(
    facts: Facts, settings: Settings, choices: Choices, mode: str, files: list[SupportFile]
) -> SpecDecision:
    """Return the specification to write where none fits the driver that the host has when the plan is done.

    ``mode``: CDI or NATIVE. ``files``: the small files that our own specification needs beside it.
    """
    runtime = facts.runtime
    has_generator = mode == CDI and runtime.programs.get("nvidia-ctk") is not None
    ours = [spec for spec in runtime.specs if spec.ours]
    others = [spec for spec in runtime.specs if not spec.ours]
    changing = driver_changes(choices)
    old = cdi_versions.too_old(facts, settings)
    if has_generator:
        files = old_format_files(runtime.refresh, old)
    files_present = not missing_files(facts, files)
    fitting = [
        spec
        for spec in runtime.specs
        if spec.stale is None
        and (files_present or not (spec.ours or has_generator))
        and not (old and cdi_versions.is_new(spec))
    ]
    # The toolkit's service writes, or will write, another one.
    doubled = bool(ours) and has_generator and runtime.refresh
    if mode == CDI and len(runtime.specs) == 1 and fitting and not changing and not doubled:
        return SpecDecision()
    if (others and not has_generator) or len(others) > 1:
        return SpecDecision(refusals=[conflict(others[0], mode, old)])
    replaced = (others if has_generator else ours)[:1]
    if replaced and replaced[0] in fitting and not changing and not (has_generator and ours):
        return SpecDecision()
    path = cdi.NATIVE
    if has_generator:
        path = replaced[0].path if replaced else cdi.REFRESHED if runtime.refresh else cdi.GENERATED
    params = CdiSpecParams(
        path=path,
        generator="nvidia-ctk" if has_generator else "native",
        remove=[cdi.NATIVE] if has_generator and ours else [],
        files=files,
        feature_flags=list(cdi.OLD_FEATURES) if has_generator and old else [],
    )
    why = "containers need a CDI specification of the GPUs"
    if replaced:
        why = replacement_reason(facts, replaced[0], old, changing, ours, others, files)
    elif doubled:
        why = "%s and what nvidia-cdi-refresh writes describe the same devices, and engines refuse both" % ours[0].path
    return SpecDecision(params, why)


def mig_refusals(facts: Facts, mode: str) -> list[Refusal]:
    """Refuse MIG instances where containers would get our own specification or volume, which have whole GPUs only."""
    by_others = [spec for spec in facts.runtime.specs if not spec.ours]
    complete = mode == CDI and (facts.runtime.programs.get("nvidia-ctk") is not None or by_others)
    if mode not in (CDI, NATIVE) or complete or not facts.driver.mig_instances:
        return []
    return [
        refuse(
            "mig_impossible",
            "this host has %d MIG instances, which nvidia_container_runtime_mode: %s cannot give to containers%s"
            % (len(facts.driver.mig_instances), mode, " without nvidia-ctk" if mode == CDI else ""),
            VariableChange({"nvidia_container_runtime_mode": ["toolkit"]}),
            "install nvidia-container-toolkit" if mode == CDI else "to cdi with nvidia-container-toolkit",
        )
    ]


def replacement_reason(
    facts: Facts,
    spec: CdiSpecFacts,
    old: str | None,
    changing: bool,
    ours: list[CdiSpecFacts],
    others: list[CdiSpecFacts],
    files: list[SupportFile],
) -> str:
    if spec.stale:
        return "%s is out of date: %s" % (spec.path, spec.stale)
    if old and cdi_versions.is_new(spec):
        return "%s asks for CDI %s, which %s does not read" % (spec.path, spec.format, old)
    if changing:
        return "%s names files of the driver that is replaced" % spec.path
    if ours and others:
        return "%s and %s describe the same devices, and docker refuses both" % (ours[0].path, others[0].path)
    return missing_files_reason(facts, files, spec.path)


def driver_changes(choices: Choices) -> bool:
    return choices.driver is not None and not choices.driver.satisfied


def native_files(facts: Facts, mode: str) -> list[SupportFile]:
    files = [SupportFile(cdi.BOOT_NODES, cdi.format_boot_nodes(len(facts.base.served_gpus)), "0644")]
    if mode == NATIVE:
        files.append(SupportFile(driver_volume.HELPER, driver_volume.HELPER_TEXT, "0755"))
    return files


def old_format_files(refreshed: bool, old: str | None) -> list[SupportFile]:
    """Return the file that makes the toolkit's service write what an old engine reads too."""
    if not refreshed or not old:
        return []
    return [SupportFile(cdi.REFRESH_OLD, cdi.REFRESH_OLD_TEXT, "0644")]


def missing_files(facts: Facts, files: list[SupportFile]) -> list[str]:
    existing = {
        cdi.BOOT_NODES: facts.runtime.boot_nodes,
        driver_volume.HELPER: facts.runtime.helper,
        cdi.REFRESH_OLD: facts.runtime.refresh_old,
    }
    existing.update(facts.engines.nodes)
    return [file.path for file in files if existing.get(file.path) != file.content]


def missing_files_reason(facts: Facts, files: list[SupportFile], named: str) -> str:
    missing = missing_files(facts, files)
    if cdi.REFRESH_OLD in missing:
        return "nvidia-cdi-refresh may write %s in a version of CDI that an engine of this host does not read" % named
    if [path for path in missing if path != driver_volume.HELPER]:
        return "after a reboot containers may start before the device nodes exist that %s names" % named
    return "%s, which prints docker's arguments, is missing or was changed" % driver_volume.HELPER


def conflict(spec: CdiSpecFacts, mode: str, old: str | None = None) -> Refusal:
    but = spec.stale
    if old and not but and cdi_versions.is_new(spec):
        but = "for CDI %s, which %s does not read" % (spec.format, old)
    return refuse(
        "cdi_spec_conflict",
        "%s describes %s already%s, and two specifications of the same devices make docker refuse both"
        % (spec.path, cdi.KIND, " (but %s)" % but if but else ""),
        VariableChange({"nvidia_container_runtime_mode": [CDI]}, effect="to use it")
        if mode == NATIVE
        else "write it again with nvidia-ctk",
        "remove %s" % spec.path,
    )
