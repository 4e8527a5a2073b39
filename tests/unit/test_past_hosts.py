"""Hosts that somebody else set up: the facts that are collected from them, and the plan that follows."""

import json

import pytest

from plugins.module_utils.gpu_ready.facts import collect, driver_origin, verified
from plugins.module_utils.gpu_ready.facts.model import KERNEL_OUTSIDE, Facts, PackageEvidence, VerifiedFacts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion import complete
from plugins.plugin_utils.gpu_ready.completion.probes import make_probes
from plugins.plugin_utils.gpu_ready.plan.driver.model import DriverInstallParams, RemovePackagesParams
from tests.unit import past_hosts
from tests.unit.goldens import decide
from tests.unit.past_hosts import DIRECTORY, PASTS

pytestmark = pytest.mark.usefixtures("catalog_of_2026")

each = pytest.mark.parametrize("name", PASTS)


@each
def test_the_plan_of_a_past_is_its_golden_file(name: str) -> None:
    """`.venv/bin/python -m tests.unit.past_hosts` writes them again; read the difference."""
    assert past_hosts.text(name) == (DIRECTORY / f"{name}.txt").read_text()


def test_every_golden_file_is_of_a_past() -> None:
    assert sorted(path.stem for path in DIRECTORY.iterdir()) == sorted(PASTS)


@each
def test_only_packages_of_the_driver_are_removed_whatever_is_asked(name: str) -> None:
    past = PASTS[name]
    facts = complete.collect_facts(past_hosts.recorded(past))
    requests = [{"nvidia_driver_source": source} for source in ("auto", "distro", "cuda_repo", "runfile")]
    for request in [*requests, *past.requests]:
        for step in decide(facts, **request, nvidia_driver_replace_foreign=True).steps:
            params = step.params
            if isinstance(params, DriverInstallParams):
                assert {*params.remove, *params.allow_remove} - {*params.pin_remove} <= {*past.packages} | PINS
            if isinstance(params, RemovePackagesParams):
                assert {*params.packages} <= {*past.packages}


PINS = {"nvidia-driver-pinning-580"}


@each
def test_an_adopted_driver_is_neither_installed_nor_reloaded(name: str) -> None:
    facts = complete.collect_facts(past_hosts.recorded(PASTS[name]))
    decided = decide(facts)
    chosen, state = decided.choices.driver, facts.driver
    if decided.refusals or chosen is None or not chosen.satisfied or state.loaded != state.on_disk:
        return
    actions = {step.action for step in decided.steps if step.role == "nvidia_driver"}
    assert not actions & {"install", "runfile", "remove_packages", "repository", "activate"}


def test_a_host_without_driver_packages_is_not_asked_for_their_origin() -> None:
    for name in ("bare-ubuntu", "base-command-manager"):
        host = past_hosts.recorded(PASTS[name])
        complete.collect_facts(host)
        assert not [argv for argv in host.asked if argv[0] == "apt-cache" or argv[:2] == ("rpm", "-q")]


def test_a_host_with_a_driver_is_asked_once() -> None:
    host = past_hosts.recorded(PASTS["ubuntu-drivers-desktop"])
    complete.collect_facts(host)
    (argv,) = [argv for argv in host.asked if argv[0] == "apt-cache"]
    assert argv[:3] == ("apt-cache", "policy", "libnvidia-compute-580")
    assert {"nvidia-persistenced", "nvidia-compute-utils-580-server", "nvidia-fabricmanager-580"} <= {*argv[3:]}


def verified_with(raw: Facts) -> VerifiedFacts:
    """Return the record of a verification that found these facts."""
    return VerifiedFacts(
        True, evidence=raw.raw.driver, companions=raw.driver.companions,
        origin_of=driver_origin.deciding_versions(make_probes(), raw.driver.packages),
        sources=driver_origin.sources_digest(raw.apt.sources or raw.yum.sources),
    )  # fmt: skip


def test_evidence_that_names_no_publisher_is_asked_for_again() -> None:
    """Its repository was removed, or apt's lists were empty."""
    host = past_hosts.recorded(PASTS["cuda-repository-removed"])
    facts = collect.collect(host, make_probes())
    host.files[verified.PATH] = json.dumps(verified.to_json(verified_with(facts)))
    host.asked.clear()
    assert collect.collect(host, make_probes()).raw.driver == facts.raw.driver
    assert [argv for argv in host.asked if argv[0] == "apt-cache"]


@pytest.mark.parametrize("name", ["ubuntu-drivers-desktop", "rpmfusion", "cuda-local-repository"])
def test_a_verified_host_is_not_asked_again_until_its_packages_change(name: str) -> None:
    """A host in the desired state pays nothing: apt-cache takes seconds where its cache is switched off."""
    host = past_hosts.recorded(PASTS[name])
    raw, first = collect.collect(host, make_probes()), complete.collect_facts(host).driver
    record = verified_with(raw)
    host.files[verified.PATH] = json.dumps(verified.to_json(record))
    host.asked.clear()
    assert complete.collect_facts(host).driver == first
    assert not [argv for argv in host.asked if argv[0] == "apt-cache" or argv[:2] == ("rpm", "-q")]
    wrong = [PackageEvidence("nvidia-x11-drv-libs", "1", vendor="elrepo")]
    packages = record._replace(origin_of={one: "1" for one in record.origin_of}, evidence=wrong)
    sources = record._replace(sources="0123456789abcdef", evidence=wrong)
    for other in (packages, sources):
        host.files[verified.PATH] = json.dumps(verified.to_json(other))
        assert complete.collect_facts(host).driver == first


def test_a_verified_host_is_asked_again_after_a_repository_was_enabled() -> None:
    """That is the remedy of a service that no source offered."""
    host = past_hosts.recorded(PASTS["ubuntu-drivers-desktop"])
    facts = complete.collect_facts(host)
    host.files[verified.PATH] = json.dumps(verified.to_json(verified_with(collect.collect(host, make_probes()))))
    host.asked.clear()
    assert complete.collect_facts(host).driver == facts.driver and not [
        one for one in host.asked if one[0] == "apt-cache"
    ]
    host.files["/etc/apt/sources.list.d/cuda.list"] = "deb http://mirror.example/cuda /\n"
    complete.collect_facts(host)
    assert [one for one in host.asked if one[0] == "apt-cache"]


@pytest.mark.parametrize("key", catalog.managed_hosts())
def test_managed_hosts_are_rows_of_the_catalog(key: str) -> None:
    row = catalog.managed_hosts()[key]
    assert row["refuse"] in ("always", "change")
    assert row.get("paths") or row.get("texts") or key == KERNEL_OUTSIDE
    assert not row["message"].endswith(".") and not row["remedy"].endswith(".") and not row["remedy"][0].isupper()
