"""Hold what steps declare against what they did on lab hosts: facts before, with the declared changes, are the facts after."""

import fnmatch
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from plugins.module_utils.gpu_ready.facts.model import Facts, ModuleFacts
from plugins.module_utils.gpu_ready.packaging.version_match import version_matches
from plugins.plugin_utils.gpu_ready.execute.steps import EFFECTS
from plugins.plugin_utils.gpu_ready.explain import captures
from plugins.plugin_utils.gpu_ready.plan.changes import DROP, FactChange, apply_changes

UNDECLARED = {
    "another one each time": (
        "base.boot_id",
        "docker.pid",
        "docker.started",
        "verified.time",
        "verified.logged",
        "verified.gpus_option_with",
    ),
    "lines of a file of locks": ("yum.hiding*",),
    "free space": ("base.disk/*",),
    "which compiler dependencies bring": ("base.compiler",),
    "what docker's package has": ("docker.package", "docker.program", "docker.socket", "docker.flags*"),
    "what docker has by itself": ("docker.info.runtimes/io.containerd.*",),
    "Debian's docker in packages of the lab": ("docker.version", "docker.info.version", "docker.info.cdi_dirs*"),
    "what the package manager knows of repositories": ("driver.companions/*", "driver.repository"),
    "what a daemon that has just started says a moment later": ("driver.persistence.held", "monitoring.running"),
    "the version of a package": ("engines.containerd.version*",),
    "what k3s and RKE2 write": ("engines.kubernetes.files/*.text",),
    "what the loaded driver shows": ("health*",),
    "UUIDs of GPUs": ("runtime.specs/*.devices/GPU-*",),
    "what the toolkit's own service writes at any time": ("runtime.specs//var/run/cdi/nvidia.yaml.*",),
    "what the verification found": tuple(
        f"verified.{name}*"
        for name in ("checks", "companions", "evidence", "gpus", "hardware", "origin_of", "persistent", "sources")
    ),
}
"""Paths that are not compared, by the reason why no declaration can say their values."""
MORE = {
    "a dependency": (
        "driver.packages/*",
        "engines.containerd.*",
        "packages.installed/*",
        "runtime.manifest.packages/*",
    ),
    "files of packages": ("apt.pins/*", "apt.preferences/*", "driver.options/*"),
    "what scripts of packages build": ("driver.dkms/*",),
    "parameters that nobody set": ("driver.parameters/*",),
    "only beside the unit of Ubuntu": ("runtime.manifest.files/*/nvidia-persistenced.service.d/*",),
}
"""Paths at which what is not declared may be new or changed, by the reason."""


class Outcome:
    """A host before a step whose package manager decided what it has afterwards, within what was requested."""

    def __init__(self, facts: Facts, after: Facts) -> None:
        self.facts, self.after = facts, after

    def version(self, name: str, requested: str | None) -> str:
        others = {one.version: one.release or "" for one in self.after.cuda.toolkits}
        others["cudnn"] = max((one.recorded or "" for one in self.after.cudnn.values()), default="")
        found = {**others, **self.after.packages.installed}.get(name, "")
        assert not found or version_matches(requested, found), f"{name}: {found} instead of {requested}"
        return found

    def gives_up(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.after.packages.installed]

    def module(self, expect: Mapping[str, Any]) -> ModuleFacts:
        found = self.after.driver.on_disk
        assert found and found.flavour == expect["flavour"], (found, expect)
        assert found.version == (expect["version"] or found.version), (found, expect)
        return found

    def origin(self, packages: Mapping[str, str]) -> str:
        return self.after.driver.origin or ""


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all values of facts by path: items of a list are at their text or the first field of their record."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        for name in value._fields:
            yield from leaves(getattr(value, name), f"{path}.{name}".lstrip("."))
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from leaves(one, f"{path}/{name}")
    elif isinstance(value, list | tuple):
        for one in value:
            yield from leaves(one, f"{path}/{one[0] if isinstance(one, tuple) else one}")
    else:
        yield path, value


def differences(before: Facts, changes: list[FactChange], found: Facts) -> list[str]:
    """Return what a host has otherwise than declared, one line for each path."""
    was, expected, real = (dict(leaves(facts)) for facts in (before, apply_changes(before, changes), found))
    removed = {f"{one.path}/{name}" for one in changes if one.how == DROP for name in cast("list[str]", one.value)}
    return [
        f"{path}: {real.get(path, 'nothing')!r} instead of {expected.get(path, 'nothing')!r}"
        for path in sorted({*expected, *real})
        if real.get(path, ...) != expected.get(path, ...)
        and not is_in(path, UNDECLARED)
        and not (is_in(path, MORE) and path in {*real} - removed and expected.get(path) in (None, was.get(path)))
    ]


def is_in(path: str, patterns: Mapping[str, tuple[str, ...]]) -> bool:
    return any(fnmatch.fnmatchcase(path, one) for paths in patterns.values() for one in paths)


def check(directory: str) -> set[str]:
    """Hold all steps of a run; return their ids. Steps that wait for a reboot are held together, after it."""
    file = Path(directory, "steps")
    records = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    wrong = []
    for host, group in itertools.groupby(sorted(records, key=lambda one: str(one["host"])), lambda one: one["host"]):
        pending: list[Any] = []
        for one in group:
            if pending and pending[0]["step"].split(".")[0] != one["step"].split(".")[0]:
                wrong += compare(host, pending, one["before"])
                pending = []
            pending.append(one)
            if one["after"]:
                wrong += compare(host, pending, one["after"])
                pending = []
        assert not pending, f"{host}: no facts after {pending}"
    assert wrong == [], "\n".join(wrong)
    return {one["step"] for one in records}


def compare(host: str, steps: list[Any], after: str) -> list[str]:
    """Return what steps did otherwise than declared."""
    before, found = (captures.facts_of(captures.read(path)) for path in (steps[0]["before"], after))
    changes: list[FactChange] = []
    for one in steps:
        facts = apply_changes(before, changes)
        changes += EFFECTS[one["step"]](one["params"], Outcome(facts, found))
    names = ", ".join(one["step"] for one in steps)
    return [f"{host}, {names}: {line}" for line in differences(before, changes, found)]
