"""The golden plans: the plans for hosts of every distribution, as text that a person can review.

``.venv/bin/python -m tests.unit.goldens`` writes golden/plans.txt and docs/dev/driver_choices.md again;
their difference is what a change really changes.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT)]

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.facts.model import DkmsFacts, Facts, KernelFacts
from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.catalog.data import REPOSITORIES
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import choices_page, golden_file
from tests.unit.hosts import CARDS, ENROLLED, SECURE, bare, having, installed

PLANS = Path(__file__).parent / "golden/plans.txt"
KEY = "0123456789ABCDEF0123456789ABCDEF01234567"
"""A fingerprint for repositories whose key the catalog does not know: without one there is nothing to show but that."""
SETS = ["none", "K80", "P40", "V100", "T4", "A100", "H100 + 4 NVSwitches", "L4", "RTX 3090", "GH200", "B200", "GB10"]
SETS += ["V100 + H100", "V100 + B200", "unknown"]
FEW = ["K80", "P40", "T4", "B200", "V100 + H100"]
"""The sets that are shown with every source: one of each kind."""


def host(names: str, distro: str, **base: Any) -> Facts:
    """A bare host with GPUs as named in a title."""
    words = [word for word in names.split(" + ") if word != "none"]
    switches = sum(int(word.split()[0]) for word in words if word.endswith("NVSwitches"))
    return bare(
        *(CARDS[word] for word in words if not word.endswith("NVSwitches")), distro=distro, nvswitches=switches, **base
    )


def decide(facts: Facts, **given: Any) -> compose.Plan:
    """Return the plan for the operator's words; keys that are not in the catalog are given."""
    given.setdefault("gpu_ready_mirror_keys", dict.fromkeys(filter(keyless, repositories()), KEY))
    reading = variables.parse_settings(given)
    assert not reading.errors, reading.errors
    return compose.plan(facts, reading.settings)


def keyless(name: str) -> bool:
    """True if the catalog pins no key of a repository."""
    data = catalog.repository(name)
    return not data["fingerprint"] and not data.get("key_sha256")


def repositories() -> list[str]:
    """Return the repositories of the catalog."""
    return sorted(REPOSITORIES)


# --- text --------------------------------------------------------------------------------------------------------


def decision(decided: compose.Plan) -> str:
    """Return the driver that was chosen, or why there is none, in one line."""
    if decided.refusals:
        return "; ".join(f"REFUSED {one.code}: {one.message}" for one in decided.refusals)
    if not decided.gpu_host:
        return decided.summary
    chosen = decided.choices.driver
    assert chosen
    words = [chosen.source, chosen.version or chosen.branch, chosen.flavour, chosen.kind]
    stream = f" stream {chosen.stream}" if chosen.stream else ""
    warned = "".join(f" ({one.code})" for one in decided.warnings)
    return " ".join(str(word) for word in words) + stream + warned


def step(one: Any) -> list[str]:
    """A step with its relevant parameters."""
    skipped = ("why", "content", "files", "expect", "digest", "key", "manifest_url", "sha256", "fallback", "path")
    params = records.to_json(one.params)
    defaults = one.params._field_defaults
    lines = [
        f"{name}={value(name, it)}"
        for name, it in params.items()
        if name not in skipped and it not in NOTHING and not (name in defaults and it == defaults[name])
    ]
    mark = "" if one.disruption == "none" else f" [{one.disruption}]"
    return [f"  {one.id}{mark}"] + [f"      {line}" for line in lines]


NOTHING: tuple[Any, ...] = (None, [], {}, "")


def value(name: str, it: Any) -> str:
    """Return a parameter as text: a package with its version, a repository by its id, address and checks."""
    if name == "repositories":
        return ", ".join(f"{one['id']} {one['url']}" + checks(one) for one in it)
    if name == "packages":
        return " ".join(package(one) for one in it)
    if name == "installs":
        return ", ".join(f"{one['version']} into {one['cuda_path']}" for one in it)
    if name == "daemon_json":
        return json.dumps(it["set"])
    if isinstance(it, dict):
        return " ".join(f"{key}:{one}" for key, one in it.items())
    if isinstance(it, list) and not any(isinstance(one, (dict, list)) for one in it):
        return " ".join(str(one) for one in it)
    return str(it)


def package(one: Any) -> str:
    """Return a package with its version."""
    if isinstance(one, str):
        return one
    return str(one["name"]) + (f"={one['version']}" if one["version"] else "")


def checks(one: dict[str, Any]) -> str:
    """Special properties of a repository: a pin, or unsigned packages."""
    pin = f" (pin {one['pin']['priority']})" if one.get("pin") else ""
    return pin + (" (signed metadata, not packages)" if one.get("gpgcheck") is False else "")


def block(decided: compose.Plan, roles: tuple[str, ...]) -> list[str]:
    """Return a plan: the decision, its steps and its warnings."""
    lines = [f"driver: {decision(decided)}"]
    lines += [f"  remedy: {one.remedy}" for one in decided.refusals]
    for one in decided.steps:
        if not roles or one.role in roles:
            lines += step(one)
    return lines


# --- the plans of a distribution ------------------------------------------------------------------------------------


def sections(distro: str) -> Iterator[golden_file.Section]:
    """Yield the golden plans of a distribution: which driver for which GPUs, then complete plans."""
    data = catalog.distro(distro)
    own = distribution_words(distro, data)
    yield golden_file.Section("which driver for which GPUs", own, table(distro, "auto", SETS))
    for source in driver_sources.source_names(data):
        yield golden_file.Section(f"which driver of {source}", own, table(distro, source, FEW))
    for title, decided, roles in plans(distro, data):
        between = branch_words(data) if title.split()[0] in BETWEEN_BRANCHES else {}
        yield golden_file.Section(title, own | between, block(decided, roles))


BETWEEN_BRANCHES = ("upgrade", "downgrade", "flavour")


def distribution_words(distro: str, data: dict[str, Any]) -> dict[str, str]:
    """Return what each distribution has its own word for."""
    repository = (data["driver_sources"].get("cuda_repo") or {}).get("repository")
    carried = {
        f"{source} list": f"{source} carries {', '.join(map(str, driver_sources.all_branches(data, source)))}"
        for source in driver_sources.source_names(data)
    }
    return carried | {
        "name": data["pretty"],
        "kernel": host("T4", distro).base.kernel.running,
        "cuda": f"{repository} {catalog.repository(repository)['url']}" if repository else "no repository of NVIDIA's",
    }


def branch_words(data: dict[str, Any]) -> dict[str, str]:
    """Return the words for the branches between which the driver is changed."""
    _, low, high = branch_range(data)
    return {"release": low.newest, "low": str(low.number), "high": str(high.number)}


def table(distro: str, source: str, sets: list[str]) -> list[str]:
    """One line for each set of GPUs with a source."""
    requested = {} if source == "auto" else {"nvidia_driver_source": source}
    return [f"{names + ':':20} {decision(decide(host(names, distro), **requested))}" for names in sets]


Row = tuple[str, compose.Plan, tuple[str, ...]]
DRIVER = ("kernel_headers", "nvidia_driver")
NO_STEPS = ("-",)


def plans(distro: str, data: dict[str, Any]) -> Iterator[Row]:
    """Yield the plans that are shown completely: everything for a T4, the driver of each source, the special cases."""
    yield "T4, everything", decide(host("T4", distro)), ()
    yield "H100 + 4 NVSwitches", decide(host("H100 + 4 NVSwitches", distro)), DRIVER
    for source in driver_sources.source_names(data):
        for names in ("P40", "T4"):
            shown = decide(host(names, distro), nvidia_driver_source=source)
            if shown.refusals or (names, source) != (
                "T4",
                driver_sources.automatic_sources(data)[0],
            ):  # shown above
                yield f"{names}, {source}", shown, DRIVER
    yield from special(distro, data)
    yield from changes(distro, data)


def special(distro: str, data: dict[str, Any]) -> Iterator[Row]:
    """Yield Secure Boot, precompiled modules, missing headers, vaults, nouveau and unknown keys."""
    yield "T4, Secure Boot without an enrolled key", decide(host("T4", distro, secure_boot=SECURE)), DRIVER
    yield "T4, Secure Boot with an enrolled key", decide(host("T4", distro, secure_boot=ENROLLED)), NO_STEPS
    modules = {"nvidia_driver_kernel_modules": "precompiled"}
    yield "V100, precompiled modules", decide(host("V100", distro), **modules), DRIVER
    if data.get("vault"):
        yield "V100, vault for the headers", decide(host("V100", distro), gpu_ready_vault=True), ("kernel_headers",)
    running = host("T4", distro).base.kernel.running
    two = {"running": running, "installed": [running, "9.9.9-1"], "next_boot": "9.9.9-1", "headers": {running: True}}
    shown = decide(host("T4", distro, kernel=two))
    steps = [one for one in shown.steps if one.action == "install" and one.role in DRIVER]
    yield "T4, another kernel at the next boot", shown._replace(steps=steps), DRIVER
    bound = {"loaded": True, "bound": ["0000:3b:00.0"], "blacklisted": False}
    shown = decide(host("T4", distro, nouveau=bound))
    steps = [one for one in shown.steps if one.action in ("blacklist_nouveau", "activate")]
    yield "T4 driven by nouveau", shown._replace(steps=steps), DRIVER
    if any(map(keyless, named(data))):
        yield "T4, keys unknown", decide(host("T4", distro), gpu_ready_mirror_keys={}), DRIVER


def named(data: dict[str, Any]) -> set[str]:
    """Return every repository that a distribution names."""
    drivers, engines = data["driver_sources"].values(), (data.get("docker") or {}).values()
    found = {entry["repository"] for entry in [*drivers, *engines] if entry.get("repository")}
    return found | set(data.get("build_repositories") or []) | {data.get("container_toolkit") or "container-toolkit"}


def next_kernel(facts: Facts, branch: Any) -> Any:
    """Return the driver's build steps on a host where an upgrade installed a kernel without its headers."""
    running, disk = facts.base.kernel.running, facts.driver.on_disk
    assert disk
    kernel = KernelFacts(running, [running, "9.9.9-1"], "9.9.9-1", {running: True, "9.9.9-1": False})
    dkms = [DkmsFacts("nvidia", disk.version, [running])]
    host = having(facts, base={"kernel": kernel}, driver={"dkms": dkms, "kernel_without_module": "9.9.9-1"})
    shown = decide(host, nvidia_driver_branch=str(branch.number))
    steps = [one for one in shown.steps if one.id in ("kernel_headers.install", "nvidia_driver.next_kernel")]
    return shown._replace(steps=steps)


def main_source(data: dict[str, Any]) -> str:
    """Return NVIDIA's repository, and the archive of a distribution that it has none for."""
    return "cuda_repo" if "cuda_repo" in data["driver_sources"] else "distro"


def branch_range(data: dict[str, Any]) -> tuple[str, catalog.Branch, catalog.Branch]:
    """Return the flavour of the source of `main_source`, the open one of two, and its oldest and newest branch."""
    pairs = branch_flavours(data)
    flavours = [flavour for _, flavour in pairs]
    flavour = driver_sources.OPEN if driver_sources.OPEN in flavours else driver_sources.PROPRIETARY
    numbers = sorted(branch for branch, one in pairs if one == flavour)
    low, high = (catalog.branch(number) for number in (numbers[0], numbers[-1]))
    assert low and high
    return flavour, low, high


def branch_flavours(data: dict[str, Any]) -> list[driver_sources.Pair]:
    """Return the branches of `main_source`, with the flavours of each that exist."""
    found = driver_sources.branch_flavours(data, main_source(data), driver_sources.DKMS, "compute")
    every = {(branch.number, flavour) for branch in catalog.branches() for flavour in branch.flavours}
    return [pair for pair in found if pair in every]


def changes(distro: str, data: dict[str, Any]) -> Iterator[Row]:
    """Yield what happens to an installed driver: another branch, version, flavour, origin."""
    source = main_source(data)
    flavour, low, high = branch_range(data)
    below = installed(distro, CARDS["T4"], source, low.newest, flavour)
    yield "T4, a kernel without a module at the next boot", next_kernel(below, low), DRIVER
    above = installed(distro, CARDS["T4"], source, high.newest, flavour)
    requested = {"nvidia_driver_source": source, "nvidia_driver_flavour": flavour}
    upgraded = decide(below, nvidia_driver_branch=high.number, **requested)
    yield f"upgrade {source} {low.number} to {high.number}", upgraded, DRIVER
    downgraded = decide(above, nvidia_driver_version=low.newest, **requested)
    yield f"downgrade {source} {high.number} to {low.newest}", downgraded, DRIVER
    if (high.number, driver_sources.PROPRIETARY) in branch_flavours(data) and flavour == driver_sources.OPEN:
        other = {"nvidia_driver_source": source, "nvidia_driver_flavour": "proprietary"}
        yield f"flavour of {source} {high.number}", decide(above, **other), DRIVER
    foreign = installed(distro, CARDS["T4"], "runfile", low.newest, flavour)
    yield "T4 with the driver of an installer", decide(foreign), DRIVER
    yield "the same, to be replaced", decide(foreign, nvidia_driver_replace_foreign=True), DRIVER
    if "runfile" in driver_sources.source_names(data):
        replaced = {"nvidia_driver_source": "runfile", "nvidia_driver_replace_foreign": True}
        yield f"{source} to runfile", decide(below, **replaced), DRIVER


def document() -> str:
    """Return the golden plans of all distributions."""
    return golden_file.document({distro: list(sections(distro)) for distro in catalog.distros()})


def choices() -> str:
    """Return the page of the drivers that the GPUs get."""
    return choices_page.page(lambda names, distro: decide(host(names, distro)), SETS)


def main() -> None:
    """Write the golden plans and the page."""
    PLANS.write_text(document(), encoding="utf-8")
    choices_page.PAGE.write_text(choices(), encoding="utf-8")


if __name__ == "__main__":
    main()
