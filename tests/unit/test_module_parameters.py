"""Parameters of the kernel module: what is set, by whom, and whether the loaded module has it."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.driver import module_parameters
from plugins.module_utils.gpu_ready.facts import driver as driver_facts
from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.module_utils.gpu_ready.system import nvrm_version
from plugins.plugin_utils.gpu_ready.plan import audit, compose, upgrade
from plugins.plugin_utils.gpu_ready.plan.driver import parameters
from plugins.plugin_utils.gpu_ready.settings import variables
from plugins.plugin_utils.gpu_ready.verdict import judge
from plugins.plugin_utils.gpu_ready.verdict.checks import describe_check
from tests.unit import goldens
from tests.unit.hosts import T4, bare, carried_out, having
from tests.unit.recorded import RecordedHost
from tests.unit.test_verify import sound

ADMIN = "/etc/modprobe.d/nvidia-local.conf"
PACKAGE = "/usr/lib/modprobe.d/nvidia-graphics-drivers.conf"
PROFILING = {"NVreg_RestrictProfilingToAdminUsers": 0}
DEFAULTS = {"RestrictProfilingToAdminUsers": "1", "DeviceFileMode": "438", "RegistryDwords": '""'}
KNOWN = {
    "RestrictProfilingToAdminUsers": "int",
    "DeviceFileMode": "int",
    "EnableStreamMemOPs": "int",
    "RegistryDwords": "charp",
    "RmNvlinkBandwidth": "charp",
}


def ready(distro: str = "ubuntu2404", **given: Any) -> Facts:
    """Return a host in the desired state whose module has the defaults."""
    host = bare(T4, distro=distro)
    host = carried_out(host, goldens.decide(host, **given))
    disk = having(host.driver.on_disk, parameters=KNOWN) if host.driver.on_disk else None
    return having(host, driver={"parameters": {**DEFAULTS, **host.driver.parameters}, "on_disk": disk})


def with_options(host: Facts, path: str, text: str) -> Facts:
    return having(host, driver={"options": {**host.driver.options, path: text}})


def decide(host: Facts, given: dict[str, Any], **others: Any) -> compose.Plan:
    return goldens.decide(host, nvidia_driver_module_parameters=given, **others)


def steps(decided: compose.Plan) -> dict[str, Any]:
    return {step.id: step for step in decided.steps}


# ---- hosts whose parameters somebody else has set -------------------------------------------------------------------


@pytest.mark.parametrize("path", [ADMIN, "/run/modprobe.d/a.conf", "/usr/lib/modprobe.d/zzz.conf"])
def test_a_value_that_an_administrator_has_set_is_named_by_file_and_line_and_kept(path: str) -> None:
    text = "# for the profilers' sake\nblacklist nouveau\noptions nvidia NVreg_RestrictProfilingToAdminUsers=1\n"
    decided = decide(with_options(ready(), path, text), PROFILING)
    (refusal,) = decided.refusals
    assert (refusal.code, decided.steps) == ("module_parameter_conflict", [])
    assert refusal.message.startswith(path + ":3 sets NVreg_RestrictProfilingToAdminUsers to 1")


def test_the_kernels_command_line_comes_last_and_is_named() -> None:
    host = RecordedHost(files={"/proc/cmdline": "ro quiet nvidia.NVreg_EnableStreamMemOPs=1 nvidia-drm.modeset=1\n"})
    options = driver_facts.parameter_options(host)
    assert options == {"/proc/cmdline": "options nvidia NVreg_EnableStreamMemOPs=1\n"}
    (refusal,) = decide(having(ready(), driver={"options": options}), {"EnableStreamMemOPs": 0}).refusals
    assert refusal.message.startswith("/proc/cmdline sets NVreg_EnableStreamMemOPs to 1")


def test_the_same_value_in_another_notation_is_no_conflict() -> None:
    host = with_options(
        ready(), ADMIN, "options nvidia_current NVreg_EnableStreamMemOPs=1 NVreg_DeviceFileMode=0x1a4\n"
    )
    assert not decide(host, {"DeviceFileMode": "0644"}).refusals


def test_other_parameters_of_an_administrator_are_nobodys_concern() -> None:
    host = with_options(ready(), ADMIN, "options nvidia NVreg_PreserveVideoMemoryAllocations=1\n")
    decided = decide(host, PROFILING)
    assert "Preserve" not in steps(decided)["nvidia_driver.parameters"].params.content
    assert goldens.decide(host).converged


def test_ours_replaces_the_default_of_a_package() -> None:
    host = with_options(ready(), PACKAGE, "options nvidia NVreg_DeviceFileMode=0666\n")
    decided = decide(host, {"DeviceFileMode": "0660"})
    after = carried_out(host, decided)
    assert not decided.refusals
    assert module_parameters.is_same("0660", after.driver.parameters["DeviceFileMode"])


# ---- what is written, and how it comes into use ---------------------------------------------------------------------


def test_a_change_is_written_and_comes_into_use_by_a_live_reload_once() -> None:
    host = ready()
    decided = decide(host, PROFILING)
    found = steps(decided)
    assert list(found) == ["nvidia_driver.parameters", "nvidia_driver.activate", "gpu_verify.verify"]
    written = found["nvidia_driver.parameters"]
    assert "\noptions nvidia NVreg_RestrictProfilingToAdminUsers=0\n" in written.params.content
    assert written.params.rebuild == ["update-initramfs", "-u", "-k", "all"]
    assert [one.path for one in written.diff] == [parameters.PATH]
    activate = found["nvidia_driver.activate"]
    assert (activate.disruption, activate.params.action, activate.params.force) == ("driver_reload", "reload", True)
    assert "NVreg_RestrictProfilingToAdminUsers is 1, requested is 0" in activate.why
    assert decide(carried_out(host, decided), PROFILING).converged


def test_a_new_host_gets_the_file_before_its_driver() -> None:
    host = bare(T4, distro="ubuntu2404")
    found = list(steps(decide(host, PROFILING)))
    assert found.index("nvidia_driver.parameters") < found.index("nvidia_driver.install")
    assert decide(carried_out(host, decide(host, PROFILING)), PROFILING).converged


@pytest.mark.parametrize(("mode", "action"), [("reboot", "reboot"), ("none", None), ("reload", "reload")])
def test_a_change_follows_the_setting_for_new_drivers(mode: str, action: str | None) -> None:
    decided = decide(ready(), PROFILING, gpu_ready_activation=mode)
    step = steps(decided).get("nvidia_driver.activate")
    assert (step.params.action if step else None) == action
    assert any("gpu_ready_activation is none" in one.message for one in decided.warnings) is (mode == "none")


def test_a_module_in_use_is_not_reloaded() -> None:
    host = having(ready(), work={"processes": [{"pid": 42, "name": "python3"}]})
    step = steps(decide(host, PROFILING))["nvidia_driver.activate"]
    assert (step.params.action, step.disruption) == ("reboot", "reboot")
    refused = decide(host, PROFILING, gpu_ready_reboot_ok=True)
    assert [one.code for one in refused.refusals] == ["host_in_use"]


def test_a_parameter_that_is_no_longer_requested_is_removed() -> None:
    host = ready(nvidia_driver_module_parameters=PROFILING)
    found = steps(goldens.decide(host))
    assert found["nvidia_driver.parameters"].params.content == ""
    assert "NVreg_RestrictProfilingToAdminUsers=0 is no longer requested" in found["nvidia_driver.activate"].why


def test_the_module_of_somebody_else_is_left_alone() -> None:
    host = having(ready(), base={"managed_by": "lxc"})
    assert [one.code for one in decide(host, PROFILING).refusals] == ["managed_host"]
    assert not goldens.decide(host).refusals


def test_a_fleet_gets_a_change_by_an_upgrade_with_its_drains() -> None:
    host = ready()
    reading = variables.parse_settings({"nvidia_driver_module_parameters": PROFILING})
    status = upgrade.upgrade_status(host, decide(host, PROFILING), reading.settings)
    assert (status.state, status.way, status.from_) == (
        upgrade.DUE,
        "live",
        host.driver.on_disk and host.driver.on_disk.version,
    )


def test_debians_own_module_gets_them_under_its_name() -> None:
    host = ready("debian13", nvidia_driver_source="distro", nvidia_driver_branch="550")
    decided = decide(host, PROFILING, nvidia_driver_source="distro", nvidia_driver_branch="550")
    lines = steps(decided)["nvidia_driver.parameters"].params.content.splitlines()[1:]
    assert [line.split()[1] for line in lines] == ["nvidia", "nvidia-current"]


def test_what_the_driver_does_not_show_is_judged_by_our_file() -> None:
    given = {"RmNvlinkBandwidth": "MIN"}
    host = ready()
    decided = decide(host, given)
    assert "NVreg_RmNvlinkBandwidth is not set, requested is MIN" in steps(decided)["nvidia_driver.activate"].why
    after = carried_out(host, decided)
    shown = {name: value for name, value in after.driver.parameters.items() if name != "RmNvlinkBandwidth"}
    assert decide(having(after, driver={"parameters": shown}), given).converged


def test_a_semicolon_is_quoted_for_the_shell_of_debians_install_command() -> None:
    content = steps(decide(ready(), {"RegistryDwords": "A=1;B=0x2"}))["nvidia_driver.parameters"].params.content
    assert 'NVreg_RegistryDwords="A=1;B=0x2"\n' in content
    assert {one.value for one in parameters.assignments(content)} == {"A=1;B=0x2"}


# ---- what the driver does not take -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words", "remedy"),
    [
        ({"NVreg_Colour": 0}, "has no NVreg_Colour", "leave it out: `modinfo -p nvidia` lists what this driver takes"),
        ({"DeviceFileMode": "rw"}, "takes numbers only as NVreg_DeviceFileMode, not rw", "write a number"),
        ({"DeviceFileMode": "08"}, "takes numbers only as NVreg_DeviceFileMode, not 08", "write a number"),
    ],
)
def test_what_the_installed_driver_does_not_take_is_refused_before_any_change(
    given: Any, words: str, remedy: str
) -> None:
    (refusal,) = decide(ready(), given).refusals
    assert (refusal.code, refusal.remedy) == ("module_parameter_unknown", remedy)
    assert words in refusal.message


@pytest.mark.parametrize(
    "given",
    [
        {"NVreg_A": "1 options"},
        {"NVreg_A": "1\noptions evil x=1"},
        {"NVreg_A": '"1'},
        {"NVreg_A": "$(id)"},
        {"NVreg_A": "a\\"},
        {"NVreg_A": ""},
        {"NVreg_A": None},
        {"NVreg_A": {"b": 1}},
        {"NVreg_A": "x" * 1025},
        {"NVreg_A B": 1},
        {"modeset": 1},
        {"nvidia_drm.modeset": 1},
        {"NVreg_NVreg_A": 1},
        {"NVreg_A": 1, "A": 0},
    ],
)
def test_what_could_break_the_line_or_is_no_parameter_is_refused(given: Any) -> None:
    (error,) = variables.parse_settings({"nvidia_driver_module_parameters": given}).errors
    assert "nvidia_driver_module_parameters" in error


@pytest.mark.parametrize(
    "given", [True, 1, "0x1b6", "GPU-00000000-1111,GPU-2", "pci=0000:3b:00.0;A=1", "/var/tmp", "numa", "-1"]
)
def test_values_of_the_field_are_taken(given: Any) -> None:
    reading = variables.parse_settings({"nvidia_driver_module_parameters": {"NVreg_A": given, "B": 1}})
    assert not reading.errors
    assert parameters.requested(reading.settings) == {"A": "1" if given is True else str(given), "B": "1"}


# ---- facts -----------------------------------------------------------------------------------------------------------


def test_what_the_driver_shows_has_the_names_of_its_parameters() -> None:
    text = 'DeviceFileMode: 438\nRmProfilingAdminOnly: 1\nRegistryDwords: "A=1;B=2"\n'
    shown = driver_facts.loaded_parameters(RecordedHost(files={driver_facts.PARAMETERS: text}))
    assert shown == {"DeviceFileMode": "438", "RestrictProfilingToAdminUsers": "1", "RegistryDwords": '"A=1;B=2"'}


def test_files_of_one_name_hide_each_other_as_for_modprobe() -> None:
    line = "options nvidia NVreg_A=%d\n"
    files = {"/etc/modprobe.d/x.conf": line % 1, "/usr/lib/modprobe.d/x.conf": line % 2, "/etc/modprobe.d/y": line % 3}
    assert driver_facts.parameter_options(RecordedHost(files=files)) == {"/etc/modprobe.d/x.conf": line % 1}


def test_modinfo_names_the_types() -> None:
    text = "version:        580.95.05\nparm:           NVreg_A:int\nparm:           NVreg_B:what it does (charp)\n"
    assert nvrm_version.read_modinfo(text).parameters == {"A": "int", "B": "charp"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("options nvidia NVreg_A=1 NVreg_B=2\n", [("A", "1", 1), ("B", "2", 1)]),
        ("#options nvidia NVreg_A=1\n\n  options\tnvidia-current  NVreg_A=1\n", [("A", "1", 3)]),
        ('options nvidia NVreg_A="x y" NVreg_B=2\n', [("A", "x y", 1), ("B", "2", 1)]),
        ("options nvidia \\\n  NVreg_A=1 \\\n  NVreg_B=0\n", [("A", "1", 1), ("B", "0", 1)]),
        ("options nvidia-drm modeset=1\noptions nvidia_uvm NVreg_A=1\n", []),
    ],
)
def test_lines_of_modprobe_files(text: str, found: Any) -> None:
    assert [tuple(one) for one in parameters.assignments(text)] == found


@pytest.mark.parametrize(
    ("value", "shown", "same"),
    [
        ("0660", "432", True),
        ("0x1b0", "432", True),
        ("-1", "4294967295", True),
        ("1", "0", False),
        ("A=1;B=2", '"A=1;B=2"', True),
        ("A", '""', False),
        ("08", "8", False),
    ],
)
def test_values_are_compared_as_the_kernel_reads_them(value: str, shown: str, same: bool) -> None:
    assert module_parameters.is_same(value, shown) is same


# ---- audit -----------------------------------------------------------------------------------------------------------


def audited(host: Facts, given: dict[str, Any]) -> dict[str, Any]:
    checks = audit.answer_json(host, decide(host, given))["checks"]
    assert isinstance(checks, list)
    return {one["name"]: one for one in checks}


def test_drift_of_the_loaded_module_and_of_the_file_are_reported() -> None:
    host = ready(nvidia_driver_module_parameters=PROFILING)
    assert audited(host, PROFILING)["parameters"]["ok"] is True
    loaded = having(host, driver={"parameters": DEFAULTS})
    assert "is 1, requested is 0" in audited(loaded, PROFILING)["parameters"]["why"]
    file = having(host, driver={"options": {}})
    assert audited(file, PROFILING)["parameters"]["ok"] is False
    assert "parameters" not in audited(ready(), {})


def test_facts_with_parameters_survive_json() -> None:
    host = with_options(ready(), ADMIN, "options nvidia NVreg_A=1\n")
    assert records.from_json(Facts, records.to_json(host)) == host


# ---- the verification ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "given", "ok", "words"),
    [
        ({"A": "432"}, {"A": "0660"}, True, ""),
        ({"A": "0"}, {"A": "1"}, False, "expected NVreg_A is 1, found: 0"),
        ({}, {"B": "x"}, False, "does not know this parameter"),
        ({}, {"C": "MIN"}, None, ""),
    ],
)
def test_the_verification_compares_with_what_the_driver_shows(
    shown: dict[str, str], given: dict[str, str], ok: bool | None, words: str
) -> None:
    evidence = sound()
    facts = having(evidence.facts, driver={"parameters": shown, "on_disk": {"parameters": {"A": "int", "C": "charp"}}})
    evidence = evidence._replace(facts=facts, expect=evidence.expect._replace(parameters=given))
    (check,) = judge.check_parameters(evidence)
    assert (check.ok, words in describe_check(check)) == (ok, True)


def test_a_driver_of_somebody_else_is_only_verified() -> None:
    decided = decide(ready(), {"DeviceFileMode": "0660"}, nvidia_driver_source="none")
    assert not [step for step in decided.steps if step.role == "nvidia_driver"]
    expected = compose.verify_params(ready(), decided.choices, decided.digest)
    assert expected is not None and expected.expect.parameters == {"DeviceFileMode": "0660"}
