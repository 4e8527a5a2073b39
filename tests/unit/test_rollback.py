"""The rollback of every driver that the catalog has: from the facts before an upgrade to the packages that come back."""

from collections.abc import Iterator

import pytest

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.facts.model import DkmsFacts, Facts
from plugins.module_utils.gpu_ready.upgrade import journal
from plugins.module_utils.gpu_ready.upgrade.model import DONE, UpgradeJournal
from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.catalog.driver_sources import DKMS, RUNFILE
from plugins.plugin_utils.gpu_ready.plan import compose, upgrade
from plugins.plugin_utils.gpu_ready.plan.driver.model import DriverInstallParams, RunfileParams
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.grid import sampled
from tests.unit.hosts import CARDS, SECURE, bare, carried_out, having, installed, with_driver, with_packages

SIGNED_FOR = {"nvidia": "rhel"}
"""Whose kernels modules are compiled for, by who signs them."""


def version_of(branch: int) -> str:
    """A version of a branch that is not its newest one."""
    return f"{branch}.10.05"


def cases() -> Iterator[tuple[str, str, str, int, str]]:
    for distro in sorted(catalog.distros()):
        data = catalog.distro(distro)
        for source in driver_sources.source_names(data):
            for kind in driver_sources.module_kinds(data, source):
                for branch, flavour in sorted(driver_sources.branch_flavours(data, source, kind, "compute")):
                    yield distro, source, kind, branch, flavour


def card_for(branch: int, flavour: str) -> str | None:
    """A card of the catalog that such a driver drives."""
    for name in ("T4", "H100", "V100", "P40", "M60", "K80", "B200"):
        gpu = catalog.gpu(CARDS[name])
        if (
            gpu
            and flavour in gpu.flavours
            and (gpu.first_branch or 0) <= branch <= (gpu.last_branch or branch)
            and driver_exists(branch, flavour)
        ):
            return CARDS[name]
    return None


def driver_exists(branch: int, flavour: str) -> bool:
    known = catalog.branch(branch)
    return known is not None and flavour in known.flavours


def host_with(distro: str, source: str, kind: str, branch: int, flavour: str, device: str) -> Facts:
    """A host with a complete driver and a library package that no list of the catalog names."""
    host = installed(distro, device, source, version_of(branch), flavour, kind)
    signer = driver_sources.source_entry(catalog.distro(distro), source, kind).get("signed_by")
    host = having(host, base={"os": {"id": SIGNED_FOR.get(str(signer), host.base.os.id)}})
    if source == RUNFILE:
        return host
    library = f"libnvidia-compute-{branch}"
    host = with_packages(host, **{library: f"{version_of(branch)}-1"})
    rows = [DkmsFacts("nvidia", version_of(branch), [host.base.kernel.running])] if kind == DKMS else []
    packages = {**host.driver.packages, library: f"{version_of(branch)}-1"}
    return having(host, driver={"packages": packages, "dkms": records.to_json(rows)})


def upgraded(before: Facts, device: str) -> Facts:
    """The host after an upgrade to another branch of its source, or another version of it, with its journal."""
    old = upgrade.installed_driver(before)
    assert old is not None and before.base.distro
    data = catalog.distro(before.base.distro)
    gpu = catalog.gpu(device)
    assert gpu is not None
    others = [
        (branch, flavour)
        for branch, flavour in sorted(driver_sources.branch_flavours(data, old.source, old.kernel_modules, "compute"))
        if branch != int(old.branch)
        and flavour in gpu.flavours
        and driver_exists(branch, flavour)
        and (gpu.first_branch or 0) <= branch <= (gpu.last_branch or branch)
    ]
    branch, flavour = others[-1] if others else (int(old.branch), old.flavour or "")
    version = f"{branch}.99.01"
    kernel = before.base.kernel.running
    names = driver_sources.packages(data, old.source, branch, "compute", flavour, old.kernel_modules, kernel)
    bare_host = bare(device, distro=before.base.distro)
    bare_host = bare_host._replace(apt=before.apt, yum=before.yum)
    bare_host = having(bare_host, base={"os": {"id": before.base.os.id}})
    after = with_driver(bare_host, version, flavour, old.source, names)
    after = having(after, driver={"runfile": before.driver.runfile, "packages": after.driver.packages})
    return after._replace(upgrade=UpgradeJournal(DONE, from_=old, to=version))


def rolled_back(host: Facts) -> compose.Plan:
    """The plan of the rollback, as rollback_drivers.yml asks for it."""
    assert host.upgrade is not None and host.upgrade.from_ is not None
    settings = upgrade.rollback_settings(host.upgrade.from_)
    parsed = variables.parse_settings(records.to_json(settings))
    assert not parsed.errors
    known = {f"cuda-{host.base.distro}": "A" * 40}  # the catalog does not pin the keys of all repositories
    given = parsed.settings._replace(cuda_toolkit_source="none", cudnn_source="none", gpu_ready_mirror_keys=known)
    return compose.plan(host, given)


@pytest.mark.parametrize("case", sampled(((case,) for case in cases()), 7), ids=lambda case: "-".join(map(str, case)))
def test_every_driver_of_the_catalog_can_be_restored(case: tuple[str, str, str, int, str]) -> None:
    distro, source, kind, branch, flavour = case
    device = card_for(branch, flavour)
    if device is None:
        # No card that is built into hosts of today: the branch is not offered for any.
        assert not driver_exists(branch, flavour) or not pairs_with(branch, flavour)
        return
    before = host_with(distro, source, kind, branch, flavour, device)
    recorded = upgrade.installed_driver(before)
    assert recorded is not None and recorded.source == source
    assert recorded.kernel_modules == kind or source == RUNFILE
    host = upgraded(before, device)
    host = host._replace(upgrade=journal.from_json(journal.to_json(host.upgrade)))  # type: ignore[arg-type]
    plan = rolled_back(host)
    assert [refusal.message for refusal in plan.refusals] == []
    if source == RUNFILE:
        (step,) = [step for step in plan.steps if step.id == "nvidia_driver.runfile"]
        assert isinstance(step.params, RunfileParams) and step.params.version == version_of(branch)
        return
    (step,) = [step for step in plan.steps if step.id == "nvidia_driver.install"]
    assert isinstance(step.params, DriverInstallParams)
    assert {package.name: package.version for package in step.params.packages} == before.driver.packages
    after = carried_out(host, plan)
    assert {name: after.packages.installed[name] for name in before.driver.packages} == before.driver.packages
    assert "nvidia_driver.install" not in [step.id for step in rolled_back(after._replace(upgrade=host.upgrade)).steps]


def pairs_with(branch: int, flavour: str) -> bool:
    return any(
        flavour in gpu.flavours and (gpu.first_branch or 0) <= branch <= (gpu.last_branch or branch)
        for gpu in catalog.gpus().values()
    )


def precompiled() -> Facts:
    """Ubuntu 24.04 with the driver that Ubuntu compiled for its kernel."""
    return host_with("ubuntu2404", "distro", "precompiled", 580, "open", CARDS["T4"])


def test_packages_for_a_kernel_that_was_removed_since_stay_removed() -> None:
    before = precompiled()
    kernel = "6.8.0-99-generic"
    after = having(
        upgraded(before, CARDS["T4"]), base={"kernel": {"running": kernel, "installed": [kernel], "next_boot": kernel}}
    )
    (step,) = [step for step in rolled_back(after).steps if step.id == "nvidia_driver.install"]
    assert isinstance(step.params, DriverInstallParams)
    versions = {package.name: package.version for package in step.params.packages}
    assert versions.pop(f"linux-modules-nvidia-580-server-open-{kernel}") is None
    assert versions == {name: one for name, one in before.driver.packages.items() if "6.8.0-88" not in name}


def test_an_upgrade_whose_rollback_does_not_plan_is_refused_with_the_cause() -> None:
    """The installer is replaced by packages. Secure Boot would reject what its rollback builds."""
    before = host_with("ubuntu2404", RUNFILE, DKMS, 580, "open", CARDS["T4"])
    before = having(before, driver={"runfile": "/usr/bin/nvidia-uninstall"})
    given = {"nvidia_driver_source": "distro", "nvidia_driver_branch": "595", "nvidia_driver_replace_foreign": True}
    settings = variables.parse_settings(given).settings
    plan = compose.plan(before, settings)
    status = upgrade.upgrade_status(before, plan, settings)
    assert not plan.refusals and (status.state, status.loaded) == (upgrade.DUE, "580.10.05")
    full = having(before, base={"secure_boot": SECURE})
    plan = compose.plan(full, settings)
    status = upgrade.upgrade_status(full, plan, settings)
    assert not plan.refusals and status.state == upgrade.REFUSED
    assert "The installed driver 580.10.05 could not be restored after a failure: Secure Boot is on" in status.refusal
    assert "Remedy: " in status.refusal and "gpu_upgrade_exclude" in status.refusal


def test_a_driver_of_unknown_origin_is_refused_by_its_own_message() -> None:
    before = having(precompiled(), driver={"origin": "unknown"})
    settings = variables.parse_settings({"nvidia_driver_replace_foreign": True}).settings
    status = upgrade.upgrade_status(before, compose.plan(before, settings), settings)
    assert status.state == upgrade.REFUSED
    assert "The installed driver is from an unknown source, so it could not be restored" in status.refusal
