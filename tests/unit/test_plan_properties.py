"""What holds for every distribution, every set of cards, every request and every state of a host."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import yaml
from hypothesis import assume, example, given
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.facts.model import Facts, SecureBootFacts
from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.execute.steps import STEPS
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.model import Notice, Refusal, RepositoryParams
from tests.unit.goldens import decide, named
from tests.unit.hosts import (
    CARDS,
    ENROLLED,
    GEFORCE,
    SECURE,
    T4,
    V100,
    bare,
    carried_out,
    having,
    installed,
    without_packages,
)

ROOT = Path(__file__).resolve().parents[2]
OLD = ("older", "tesla", "fermi", "kepler", "maxwell", "pascal", "volta")
OPEN_ONLY = ("blackwell", "grace_hopper")
KERNEL = re.compile(r"^(kernel|kernel-core|kernel-modules.*|kernel-default|linux-image.*|linux-generic.*|linux-aws.*)$")

DISTROS = st.sampled_from(catalog.distros())
DEVICES = st.lists(st.sampled_from([*CARDS.values(), *sorted(catalog.gpus())[::37]]), min_size=1, max_size=3)
BRANCHES = st.sampled_from([""] + [str(branch.number) for branch in catalog.branches()] + ["123"])
VERSIONS = st.sampled_from([branch.newest for branch in catalog.branches() if "." in branch.newest])
REQUESTS = st.fixed_dictionaries(
    {},
    optional={
        "nvidia_driver_source": st.sampled_from(["auto", "distro", "cuda_repo", "elrepo", "runfile", "none"]),
        "nvidia_driver_flavour": st.sampled_from(["auto", "open", "proprietary"]),
        "nvidia_driver_kernel_modules": st.sampled_from(["auto", "dkms", "precompiled"]),
        "nvidia_driver_profile": st.sampled_from(["compute", "full"]),
        "nvidia_driver_hold": st.booleans(),
        "nvidia_driver_replace_foreign": st.booleans(),
        "gpu_ready_vault": st.booleans(),
        "gpu_ready_activation": st.sampled_from(["auto", "reload", "reboot"]),
        "cuda_toolkit_source": st.sampled_from(["repo", "runfile", "none"]),
        "cuda_toolkit_versions": st.lists(st.sampled_from(["11.8", "12.4", "12.9", "12.9.1", "13.0.2"]), max_size=2),
        "cuda_toolkit_remove": st.sampled_from([[], ["12.4"], ["12.9"]]),
        "cuda_toolkit_profile": st.sampled_from(["default", "none", "12.9"]),
        "nvidia_container_runtime_mode": st.sampled_from(["toolkit", "cdi", "native"]),
        "docker_engine_source": st.sampled_from(["auto", "distro", "docker_ce"]),
        "docker_engine_version": st.sampled_from(["28.5", "26.1.4"]),
        "docker_engine_replace_conflicting": st.booleans(),
        "docker_engine_log_driver": st.sampled_from(["local", "journald"]),
        "docker_engine_log_options": st.sampled_from([{}, {"max-size": "5m"}, {"tag": "x"}]),
        "docker_engine_cgroup_driver": st.sampled_from(["systemd", "cgroupfs"]),
    },
).flatmap(
    lambda requested: st.one_of(
        st.just(requested),
        BRANCHES.map(lambda branch: requested | {"nvidia_driver_branch": branch}),
        VERSIONS.map(lambda version: requested | {"nvidia_driver_version": version}),
    )
)
BOOTS = st.sampled_from([SecureBootFacts(), SECURE, ENROLLED])
NOUVEAU = st.sampled_from(
    [
        {"loaded": False, "bound": [], "blacklisted": True},
        {"loaded": False, "bound": [], "blacklisted": False},
        {"loaded": True, "bound": ["0000:3b:00.0"], "blacklisted": False},
    ]
)


@st.composite
def hosts(draw: Any) -> Facts:
    """A bare host: any distribution, cards, NVSwitches, Secure Boot, nouveau, headers, other kernels."""
    distro = draw(DISTROS)
    host = bare(
        *draw(DEVICES),
        distro=distro,
        nvswitches=draw(st.sampled_from([0, 0, 4])),
        secure_boot=draw(BOOTS),
        nouveau=draw(NOUVEAU),
        compiler=draw(st.sampled_from([None, "/usr/bin/gcc"])),
    )
    kernel = host.base.kernel
    if draw(st.booleans()):
        kernel = having(kernel, installed=[*kernel.installed, "9.9.9-1"])
        kernel = having(kernel, next_boot=draw(st.sampled_from([kernel.running, "9.9.9-1"])))
    kernel = having(kernel, headers={name: draw(st.booleans()) for name in kernel.installed})
    return having(host, base={"kernel": kernel, "os": {"id": draw(st.sampled_from(catalog.distro(distro)["ids"]))}})


@st.composite
def driven(draw: Any) -> Facts:
    """A host with one card and any driver that the catalog has for its distribution."""
    distro = draw(DISTROS)
    data = catalog.distro(distro)
    known = {(branch.number, flavour) for branch in catalog.branches() for flavour in branch.flavours}
    found = [
        (source, kind, branch, flavour)
        for source in driver_sources.source_names(data)
        for kind in driver_sources.module_kinds(data, source)
        for branch, flavour in sorted(driver_sources.branch_flavours(data, source, kind, "compute") & known)
    ]
    source, kind, branch, flavour = draw(st.sampled_from(found))
    version = getattr(catalog.branch(branch), "newest", "")
    version = version if "." in version else f"{branch}.10.01"
    host = installed(
        distro, draw(st.sampled_from([T4, V100, GEFORCE])), source, version, flavour, kind, draw(st.booleans())
    )
    if draw(st.booleans()):
        host = having(host, packages={"held": sorted(host.driver.packages)})
        host = having(host, driver={"held": sorted(host.driver.packages)})
    state = draw(st.sampled_from(["whole", "no module", "half", "other userspace", "foreign packages"]))
    if state == "no module":
        host = having(host, driver={"on_disk": None})
    if state == "other userspace":
        host = having(host, driver={"userspace": ["535.1.1"]})
    if state == "half" and len(host.driver.packages) > 1:
        name = sorted(host.driver.packages)[0]
        packages = {key: version for key, version in host.driver.packages.items() if key != name}
        host = having(without_packages(host, name), driver={"packages": packages}, packages={"broken": [name]})
    if state == "foreign packages":
        host = having(host, driver={"origin": "unknown"})
    return host


HOSTS = st.one_of(hosts(), driven())


def runs(host: Facts, requested: dict[str, Any]) -> bool:
    """True if a driver that gpu-ready leaves alone runs: otherwise it can never be verified."""
    disk, loaded = (module.version if module else None for module in (host.driver.on_disk, host.driver.loaded))
    return requested.get("nvidia_driver_source") != "none" or disk == loaded


@given(HOSTS, REQUESTS)
def test_no_plan_raises_and_all_of_it_is_plain_values(host: Facts, requested: dict[str, Any]) -> None:
    before = copy.deepcopy(host)
    decided = decide(host, **requested)
    assert host == before
    json.dumps([compose.plan_json(decided), compose.todo_json(decided), compose.diff_json(decided)])
    assert decided.summary


@given(HOSTS, REQUESTS)
def test_refused_or_chosen_and_every_refusal_has_cause_and_remedy(host: Any, requested: Any) -> None:
    decided = decide(host, **requested)
    assert decided.choices.driver or decided.refusals
    assert not (decided.refusals and decided.steps)
    reasons: list[Refusal | Notice] = [*decided.refusals, *decided.warnings]
    for one in reasons:
        assert re.fullmatch(r"[a-z_]+", one.code)
        assert len(one.message) > 20 and len(one.remedy) > 10, one
        assert "None" not in one.message + one.remedy and "[]" not in one.message + one.remedy, one
    for step in decided.steps:
        assert step.why and "None" not in step.why and "\n" not in step.why, step


@given(HOSTS, REQUESTS)
def test_the_branch_is_within_the_limits_of_the_gpus_and_the_flavour_fits(host: Any, requested: Any) -> None:
    decided = decide(host, **requested)
    chosen = decided.choices.driver
    if not chosen or chosen.source == "none":
        return
    assert chosen.branch
    for gpu in (catalog.gpu(card.device) for card in host.base.gpus):
        if gpu is None:
            assert chosen.branch == catalog.newest_branch() or requested.get("nvidia_driver_branch") or chosen.version
            continue
        assert gpu.last_branch is None or chosen.branch <= gpu.last_branch
        assert gpu.first_branch is None or chosen.branch >= gpu.first_branch
        assert chosen.flavour in gpu.flavours
        assert gpu.architecture not in OLD or chosen.flavour == "proprietary"
        assert gpu.architecture not in OPEN_ONLY or chosen.flavour == "open"
    known = catalog.branch(chosen.branch)
    assert known is None or chosen.flavour in known.flavours
    assert chosen.branch <= 550 or host.base.distro != "centos7"


@given(HOSTS, REQUESTS)
def test_the_choice_is_the_request(host: Any, requested: Any) -> None:
    chosen = decide(host, **requested).choices.driver
    if not chosen or chosen.source == "none":
        return
    assert requested.get("nvidia_driver_source", "auto") in ("auto", chosen.source)
    assert requested.get("nvidia_driver_flavour", "auto") in ("auto", chosen.flavour)
    assert requested.get("nvidia_driver_branch", "") in ("", str(chosen.branch))
    assert requested.get("nvidia_driver_version", chosen.version) == chosen.version
    assert requested.get("nvidia_driver_kernel_modules", "auto") in ("auto", chosen.kind)
    if chosen.source == host.driver.origin:
        return  # an adopted driver, also of a source that the catalog does not know
    entry = catalog.distro(host.base.distro)["driver_sources"][chosen.source]
    assert "nvidia_driver_source" in requested or not entry.get("only_when_asked")


@given(hosts(), REQUESTS, st.randoms(use_true_random=False))
def test_the_order_of_cards_and_of_variables_is_irrelevant(host: Any, requested: Any, random: Any) -> None:
    gpus = list(host.base.gpus)
    random.shuffle(gpus)
    other = having(host, base={"gpus": gpus})
    names = list(requested)
    random.shuffle(names)
    one, two = decide(host, **requested), decide(other, **{name: requested[name] for name in names})
    keys = ("source", "kind", "branch", "flavour", "version", "packages", "stream")
    drivers = [decided.choices.driver for decided in (one, two)]
    assert [getattr(drivers[0], key, None) for key in keys] == [getattr(drivers[1], key, None) for key in keys]
    assert [step.id for step in one.steps] == [step.id for step in two.steps]
    assert sorted({refusal.code for refusal in one.refusals}) == sorted({refusal.code for refusal in two.refusals})


@given(HOSTS, REQUESTS)
@example(installed("el9", T4, "cuda_repo", "570.211.01", "open"), {"nvidia_driver_branch": "580"})
def test_an_executed_plan_leaves_nothing_to_do(host: Facts, requested: dict[str, Any]) -> None:
    assume(runs(host, requested))
    decided = decide(host, **requested)
    after = carried_out(host, decided)
    assert records.from_json(Facts, records.to_json(after)) == after
    second = decide(after, **requested)
    assert [step.id for step in second.steps] == []
    assert [refusal.code for refusal in second.refusals] == [refusal.code for refusal in decided.refusals]
    chosen = decided.choices.driver
    if not decided.refusals and chosen and chosen.source != "none":
        assert after.driver.origin == chosen.source


@given(HOSTS, REQUESTS)
def test_a_run_killed_anywhere_ends_in_the_same_state(host: Facts, requested: dict[str, Any]) -> None:
    """After each step a new plan, which leaves nothing to do once executed."""
    assume(runs(host, requested))
    decided = decide(host, **requested)
    for count in range(1, len(decided.steps)):
        after = carried_out(host, decided._replace(steps=decided.steps[:count]))
        resumed = decide(after, **requested)
        assert not resumed.refusals, (count, decided.steps[count - 1].id)
        done = carried_out(after, resumed)
        assert [step.id for step in decide(done, **requested).steps] == [], (count, decided.steps[count - 1].id)


@given(HOSTS, REQUESTS)
def test_every_step_can_be_carried_out_by_its_role(host: Facts, requested: dict[str, Any]) -> None:
    for step in decide(host, **requested).steps:
        assert step.id in STEPS or step.id == "gpu_plan.repair_packages", step.id
        assert (ROOT / "roles" / step.role / "tasks").is_dir(), step.id


@given(HOSTS, REQUESTS)
def test_packages_are_those_of_the_catalog_and_never_a_kernel(host: Facts, requested: dict[str, Any]) -> None:
    decided = decide(host, **requested)
    assert host.base.distro
    data = catalog.distro(host.base.distro)
    known = packages_of(data, host.base.kernel.installed)
    # Modules of an installed kernel, which docker's network needs: they install no other kernel.
    extra = {f"kernel-modules-extra-{kernel}" for kernel in host.base.kernel.installed}
    for step in decided.steps:
        params = records.to_json(step.params)
        for name in packages_in(params):
            assert not KERNEL.match(name) or name in extra, (step.id, name)
            assert name in known or step.role in ("cuda_toolkit", "nvidia_container_runtime"), (step.id, name)
        for name in (*params.get("remove", []), *params.get("allow_remove", [])):
            assert name in host.packages.installed, (step.id, name)


def packages_in(params: dict[str, Any]) -> list[str]:
    """The names that a step would install."""
    listed = [*(params.get("packages") or []), *(params.get("optional") or []), *(params.get("tools") or [])]
    return [one if isinstance(one, str) else one["name"] for one in listed + (params.get("pin_packages") or [])]


def packages_of(data: dict[str, Any], kernels: list[str]) -> set[str]:
    """Return every package name of a distribution's file, with branches and kernels filled in, and NVLink 5's."""
    words = set(re.findall(r"[\w.{}+-]+", yaml.safe_dump({**data, "pretty": ""}, width=10**6)))
    branches = [branch.number for branch in catalog.branches()]
    versions = [branch.newest for branch in catalog.branches()]
    return {
        word.replace("{branch}", str(branch)).replace("{kernel}", kernel)
        for word in words
        for branch in (branches + versions if "{branch}" in word else [0])
        for kernel in (kernels if "{kernel}" in word else [""])
    } | {"nvlsm", "infiniband-diags"}


@given(HOSTS, REQUESTS)
def test_repositories_are_those_of_the_distribution_with_a_pinned_key(host: Facts, requested: dict[str, Any]) -> None:
    assert host.base.distro
    data = catalog.distro(host.base.distro)
    known = named(data) | set((data.get("vault") or []) if requested.get("gpu_ready_vault") else [])
    family = "rpm" if data["package_manager"] != "apt" else "deb"
    for step in decide(host, **requested).steps:
        for one in step.params.repositories if isinstance(step.params, RepositoryParams) else []:
            assert one.id in known
            assert one.kind == family
            assert re.fullmatch(r"[0-9A-F]{40}", one.fingerprint or (one.key_sha256 or "")[:40].upper())
            assert one.url.startswith("http")


@given(hosts(), REQUESTS)
def test_without_the_keys_nothing_is_installed_from_an_unpinned_repository(host: Any, requested: Any) -> None:
    decided = decide(host, **requested, gpu_ready_mirror_keys={})
    for step in decided.steps:
        for one in step.params.repositories if isinstance(step.params, RepositoryParams) else []:
            assert one.fingerprint or one.key_sha256, (step.id, one.id)


@given(hosts(), REQUESTS)
def test_with_a_mirror_every_address_is_the_mirrors(host: Any, requested: Any) -> None:
    decided = decide(host, **requested, gpu_ready_mirror="http://mirror.site/path")
    for address in re.findall(r'"(https?://[^"]+)"', json.dumps(compose.todo_json(decided))):
        assert address.startswith("http://mirror.site/path/"), address
