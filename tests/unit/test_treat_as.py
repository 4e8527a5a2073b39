"""gpu_ready_treat_as: only for systems that the catalog does not have, and only as one with packages of the same family."""

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion import complete, os_family
from plugins.plugin_utils.gpu_ready.plan import compose
from tests.unit.hosts import T4, bare, having
from tests.unit.plans import settings
from tests.unit.recorded import RecordedHost

CLOUDLINUX = 'ID=cloudlinux\nVERSION_ID=9.6\nID_LIKE="rhel fedora centos"\nPRETTY_NAME="CloudLinux 9.6"'
UBUNTU_OF_2099 = "ID=ubuntu\nVERSION_ID=99.10\nID_LIKE=debian\nPRETTY_NAME='Ubuntu 99.10'"
UNFIT = [
    (UBUNTU_OF_2099, "el9"),
    (UBUNTU_OF_2099, "debian13"),
    (CLOUDLINUX, "ubuntu2404"),
    (CLOUDLINUX, "fedora44"),
    ("ID=amzn\nVERSION_ID=2", "el8"),
    ("ID=fedora\nVERSION_ID=99", "el10"),
    ("ID=sles\nVERSION_ID=15.7", "el9"),
    ("ID=sles\nVERSION_ID=15.7", "ubuntu2404"),
    ("ID=arch", "ubuntu2404"),
    ("ID=kylin\nVERSION_ID=V10", "el8"),
    ("ID=openEuler\nVERSION_ID=24.03", "el9"),
    ("ID=tencentos\nVERSION_ID=4.2", "el9"),
    ("ID=fedora\nVERSION_ID=44\nVARIANT_ID=silverblue", "fedora44"),
    ("", "debian12"),
]


def treated(text: str, treat_as: str, manager: str | None = None) -> compose.Plan:
    """Return the plan of a machine with this os-release and this gpu_ready_treat_as."""
    system = os_family.read_os_release(text)
    key = os_family.resolve(system, treat_as, manager)
    facts = having(bare(T4, distro=key or "debian12"), base={"distro": key, "package_manager": manager})
    facts = facts._replace(base=facts.base._replace(os=system))
    return compose.plan(facts, settings(gpu_ready_treat_as=treat_as))


@pytest.mark.parametrize(("text", "treat_as"), UNFIT)
def test_a_system_is_not_treated_as_one_with_other_packages(text: str, treat_as: str) -> None:
    (refusal,) = treated(text, treat_as).refusals
    assert refusal.code == "treat_as_impossible"
    assert treat_as in refusal.message and catalog.distro(treat_as)["pretty"] in refusal.message
    proposed = [word.strip(",") for word in refusal.remedy.split() if word.strip(",") in catalog.distros()]
    assert treat_as not in proposed
    for other in proposed:
        assert treated(text, other).choices.driver or "key" in treated(text, other).summary


@pytest.mark.parametrize(("text", "treat_as", "manager"), [("ID=amzn\nVERSION_ID=2", "amzn2023", "yum")])
def test_a_system_with_another_package_manager_is_refused(text: str, treat_as: str, manager: str) -> None:
    (refusal,) = treated(text, treat_as, manager).refusals
    assert refusal.code == "treat_as_impossible" and ", yum)" in refusal.message and ", dnf)" in refusal.message


@pytest.mark.parametrize(
    ("text", "treat_as"),
    [(UBUNTU_OF_2099, "ubuntu2604"), (CLOUDLINUX, "el9"), ("ID=fedora\nVERSION_ID=99", "fedora44")],
)
def test_an_unknown_system_of_the_same_family_is_planned_with_a_warning_that_names_both(
    text: str, treat_as: str
) -> None:
    decided = treated(text, treat_as)
    (warning,) = [one for one in decided.warnings if one.code == "treated_as"]
    assert not decided.refusals and decided.steps
    assert catalog.distro(treat_as)["pretty"] in warning.message
    assert (os_family.read_os_release(text).pretty or "fedora") in warning.message


@pytest.mark.parametrize("key", catalog.distros())
@pytest.mark.parametrize("treat_as", ["el9", "ubuntu2404", "fedora44"])
def test_a_group_variable_does_not_change_what_a_known_system_gets(key: str, treat_as: str) -> None:
    facts = bare(T4, distro=key)
    plain = compose.plan(facts, settings())
    same = compose.plan(facts, settings(gpu_ready_treat_as=treat_as))
    assert compose.todo_json(same) == compose.todo_json(plain) and same.refusals == plain.refusals
    codes = [one.code for one in same.warnings if one.code.startswith("treat")]
    assert codes == ([] if key == treat_as else ["treat_as_ignored"])


NO_OTHER_PARTS = {"cuda_toolkit_source": "none", "cudnn_source": "none", "docker_engine_source": "none"}


@pytest.mark.parametrize(
    ("monitoring", "codes"),
    [([], []), (["textfile"], ["node_exporter_unavailable"]), (["dcgm"], ["dcgm_without_source"])],
)
def test_a_system_that_the_catalog_does_not_have_is_planned_without_a_driver_source(
    monitoring: list[str], codes: list[str]
) -> None:
    system = os_family.read_os_release('ID=sles\nVERSION_ID=15.7\nPRETTY_NAME="SLES 15"')
    facts = having(bare(T4), base={"distro": None, "package_manager": "zypper", "os": system})
    given = {"nvidia_driver_source": "none", "gpu_monitoring_node_exporter": "install", **NO_OTHER_PARTS}
    decided = compose.plan(facts, settings(gpu_monitoring=monitoring, **given))
    assert {"driver_missing", *codes} <= {one.code for one in decided.refusals}
    assert all("SLES 15" in one.message for one in decided.refusals if one.code in codes)


@pytest.mark.parametrize(("manager", "named"), [("zypper", True), (None, True), ("dnf", False)])
def test_the_package_manager_that_is_not_used_is_named_with_what_can_be_done(manager: str | None, named: bool) -> None:
    system = os_family.read_os_release("ID=sles\nVERSION_ID=15.7")
    facts = having(bare(T4), base={"distro": None, "package_manager": manager, "os": system})
    (refusal,) = compose.plan(facts, settings()).refusals
    assert ("its package manager is zypper" in refusal.message) is named
    assert "NVIDIA has a repository for it" in refusal.message
    assert refusal.remedy.startswith("install the driver with %s as NVIDIA's" % (manager or "zypper"))


def test_the_package_manager_of_an_unknown_system_is_among_the_facts() -> None:
    host = RecordedHost({"/etc/os-release": "ID=amzn\nVERSION_ID=2\n"}, programs={("yum",): Result(0, "", "")})
    assert (
        complete.collect_facts(host, "amzn2023").base.distro,
        complete.collect_facts(host).base.package_manager,
    ) == (None, "yum")
