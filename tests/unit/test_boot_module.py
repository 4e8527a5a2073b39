"""Hosts on which modprobe does not load NVIDIA's module: as facts, in the plan, the audit and the verification."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts.model import BlockedModule, Facts
from plugins.module_utils.gpu_ready.system.modprobe_files import COMMAND_LINE, ModprobeLine
from plugins.plugin_utils.fleet_report import audit_table
from plugins.plugin_utils.gpu_ready.completion import complete
from plugins.plugin_utils.gpu_ready.plan import audit, compose, verification
from plugins.plugin_utils.gpu_ready.settings import variables
from plugins.plugin_utils.gpu_ready.verdict import judge
from tests.unit.fleet_reports import report_of
from tests.unit.hosts import T4, bare, carried_out
from tests.unit.test_facts import KERNEL, function, p40
from tests.unit.test_modprobe import DEP, NVIDIA_CURRENT
from tests.unit.test_verify import sound

SETTINGS = variables.parse_settings({}).settings
NEXT = "6.1.0-51-amd64"
ADDRESSES = ("0000:3b:00.0", "0000:af:00.0")
ALIASES = {
    f"/sys/bus/pci/devices/{address}/modalias": "pci:v000010DEd00001B38sv000010DEsd000011D9bc03sc02i00\n"
    for address in ADDRESSES
}
CONF = "/etc/modprobe.d/x.conf"
PRIME = "blacklist nvidia\nblacklist nvidia-drm\nblacklist nvidia-modeset\nalias nvidia off\nalias nvidia-drm off\n"
"""As `prime-select intel` writes it (prime-select of nvidia-prime 0.8.17)."""
INSTALLED = {f"/lib/modules/{KERNEL}/modules.dep": DEP}
DOCKER = {"/etc/systemd/system/multi-user.target.wants/docker.service": "[Service]\nExecStart=/usr/bin/dockerd\n"}
NODES = "[Service]\nExecStartPre=-/usr/bin/nvidia-modprobe -c=255 -c=0\n"
TARGET = "/etc/systemd/system/multi-user.target.d/nodes.conf"


def blocked(files: dict[str, str], **more: Any) -> BlockedModule | None:
    return complete.collect_facts(p40(files={**ALIASES, **files}, **more)).driver.blocked


@pytest.mark.parametrize(
    ("files", "lines", "at_boot", "now"),
    [
        ({CONF: PRIME}, [(CONF, 1, "blacklist nvidia"), (CONF, 4, "alias nvidia off")], True, True),
        ({CONF: PRIME, **INSTALLED}, [(CONF, 1, "blacklist nvidia"), (CONF, 4, "alias nvidia off")], True, True),
        ({"/lib/modprobe.d/x.conf": "blacklist nvidia\n"}, [("/lib/modprobe.d/x.conf", 1, "blacklist nvidia")], True, False),
        ({CONF: "alias nvidia-uvm off\n"}, [(CONF, 1, "alias nvidia-uvm off")], False, True),
        ({CONF: "alias pci:v000010DEd00001B38* off\n"}, [(CONF, 1, "alias pci:v000010DEd00001B38* off")], True, False),
        ({CONF: "install nvidia /bin/false\n"}, [(CONF, 1, "install nvidia /bin/false")], True, True),
        ({CONF: "install n* /bin/false\n"}, [(CONF, 1, "install n* /bin/false")], True, True),
        ({CONF: "alias p* off\n"}, [(CONF, 1, "alias p* off")], True, False),
        ({CONF: "install drm /bin/false\n", **INSTALLED}, [(CONF, 1, "install drm /bin/false")], True, True),
        ({COMMAND_LINE: "module_blacklist=nvidia\n"}, [(COMMAND_LINE, 0, "module_blacklist=nvidia")], True, True),
        ({COMMAND_LINE: "a modprobe.blacklist=nvidia\n"}, [(COMMAND_LINE, 0, "modprobe.blacklist=nvidia")], True, False),
    ],
)  # fmt: skip
def test_every_line_that_has_to_go_is_named(
    files: dict[str, str], lines: list[tuple[str, int, str]], at_boot: bool, now: bool
) -> None:
    assert blocked(files) == BlockedModule([ModprobeLine(*line) for line in lines], at_boot, now)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {CONF: "blacklist nouveau\noptions nvidia NVreg_DeviceFileMode=0666\nblacklist nvidia-drm\n"},
        {CONF: "install cramfs /bin/false\ninstall usb-storage /bin/true\n"},  # as benchmarks for security want it
        {CONF: NVIDIA_CURRENT},  # what is left of a driver of Debian's, before one is installed again
        {CONF: "alias pci:v000010DEd00002330* off\n"},
        {CONF: "blacklist nvidia*\n"},  # of guides for virtual machines: a blacklist knows no wildcards
        {COMMAND_LINE: "rd.driver.blacklist=nvidia module_blacklist=nouveau\n"},
        # What loads the module in spite of the blacklist:
        {CONF: "blacklist nvidia\n", "/etc/modules-load.d/x.conf": "# x\nnvidia-uvm\n", **INSTALLED},
        {CONF: "blacklist nvidia\n", "/etc/modules": "nvidia-uvm\n"},
        {CONF: "blacklist nvidia\n", **DOCKER, "/etc/systemd/system/docker.service.d/x.conf": NODES},
        {CONF: "blacklist nvidia\n", TARGET: "[Unit]\nWants=x.service\n", "/etc/systemd/system/x.service": NODES},
        {CONF: "blacklist nvidia\n", "/etc/systemd/system/a.target.wants/b.service": "ExecStart=/sbin/modprobe nvidia"},
    ],
)
def test_what_does_not_keep_the_module_away(files: dict[str, str]) -> None:
    assert blocked(files) is None


@pytest.mark.parametrize(
    "files",
    [
        {"/etc/modules-load.d/x.conf": "nvidia\n"},  # systemd-modules-load respects the blacklist
        {"/etc/modules-load.d/x.conf": "# nvidia-uvm\n"},
        {"/etc/modules-load.d/x.bak": "nvidia-uvm\n"},
        {"/usr/lib/modules-load.d/x.conf": "nvidia-uvm\n", "/etc/modules-load.d/x.conf": ""},
        {"/etc/systemd/system/docker.service.d/x.conf": NODES},  # docker is not enabled
        {"/etc/systemd/system/a.target.wants/b.service": "ExecStop=/sbin/modprobe nvidia"},
        {"/etc/systemd/system/a.target.wants/b.service": "ExecStart=/sbin/modprobe -r nvidia"},
        DOCKER,
    ],
)
def test_what_does_not_outweigh_a_blacklist(files: dict[str, str]) -> None:
    assert blocked({CONF: "blacklist nvidia\n", **files}) == BlockedModule(
        [ModprobeLine(CONF, 1, "blacklist nvidia")], True, False
    )


def test_the_kernel_that_boots_next_decides_about_the_boot() -> None:
    """A softdep takes precedence over an install line, and modules have softdeps of their own."""
    files = {f"/boot/vmlinuz-{NEXT}": "", CONF: "install nvidia /bin/false\n", **INSTALLED}
    files |= {f"/lib/modules/{NEXT}/modules.dep": DEP}
    lines = [ModprobeLine(CONF, 1, "install nvidia /bin/false")]
    assert blocked(files) == BlockedModule(lines, True, True)
    assert blocked({**files, f"/lib/modules/{NEXT}/modules.softdep": "softdep nvidia pre: drm\n"}) == BlockedModule(
        lines, at_boot=False, now=True
    )


OF_DISTRIBUTIONS = (
    "blacklist nouveau",
    "blacklist nvidiafb",
    "alias net-pf-3 off",
    "alias pci:v00001814d* rt2800",
    "alias char-major-10-* misc",
    "install sound-slot-0 /sbin/modprobe snd-card-0",
    "options nvidia NVreg_DeviceFileMode=0666",
    "softdep nvidia post: nvidia-uvm",
)


@pytest.mark.parametrize("line", OF_DISTRIBUTIONS)
def test_a_host_without_such_a_line_has_no_list_of_modules_read(line: str) -> None:
    host = p40(files={**ALIASES, CONF: line + "\n", **INSTALLED})
    assert complete.collect_facts(host).driver.blocked is None
    assert f"/lib/modules/{KERNEL}/modules.softdep" not in host.opened and not {*ALIASES} & {*host.opened}


def test_each_kernel_has_its_own_dependencies() -> None:
    files = {f"/boot/vmlinuz-{NEXT}": "", CONF: "install drm /bin/false\n", f"/lib/modules/{NEXT}/modules.dep": DEP}
    files |= {f"/lib/modules/{KERNEL}/modules.dep": "nvidia.ko:\nnvidia-uvm.ko: nvidia.ko\n"}
    assert blocked(files) == BlockedModule([ModprobeLine(CONF, 1, "install drm /bin/false")], at_boot=True, now=False)


def test_a_unit_that_asks_for_the_name_does_not_help_where_the_name_is_off() -> None:
    files = {CONF: PRIME, "/etc/systemd/system/a.target.wants/b.service": "ExecStart=/sbin/modprobe nvidia"}
    found = blocked(files)
    assert found and found.at_boot and len(found.lines) == 2


def test_gpus_and_modules_of_others_do_not_count() -> None:
    files = {CONF: PRIME}
    links: dict[str, str] = {}
    for address in ADDRESSES:
        links |= function(address, "1b38", "030200", driver="../../../../bus/pci/drivers/vfio-pci")[1]
    assert blocked(files, links=links) is None
    assert blocked({**files, "/run/systemd/container": "lxc\n"}) is None


# --------------------------------------------------------------------------------------------- plan, audit, verification


def having_lines(facts: Facts, *lines: ModprobeLine, at_boot: bool = True, now: bool = True) -> Facts:
    return facts._replace(driver=facts.driver._replace(blocked=BlockedModule([*lines], at_boot, now)))


BLACKLIST = ModprobeLine(CONF, 1, "blacklist nvidia")
OFF = ModprobeLine("/lib/modprobe.d/y.conf", 4, "alias nvidia off")
FORBIDDEN = ModprobeLine(COMMAND_LINE, 0, "module_blacklist=nvidia")


def ready() -> Facts:
    return carried_out(bare(T4), compose.plan(bare(T4), SETTINGS))


@pytest.mark.parametrize("facts", [bare(T4), ready()], ids=["bare", "ready"])
@pytest.mark.parametrize("source", ["", "none"])
def test_nothing_is_done_to_such_a_host(facts: Facts, source: str) -> None:
    settings = SETTINGS._replace(nvidia_driver_source=source or SETTINGS.nvidia_driver_source)
    decided = compose.plan(having_lines(facts, BLACKLIST), settings)
    assert "module_blocked" in [one.code for one in decided.refusals] and not decided.steps


@pytest.mark.parametrize(
    ("lines", "kind", "message", "remedies"),
    [
        ([BLACKLIST], (True, False), "x.conf:1 `blacklist nvidia`: the driver is not loaded when this host boots", ["remove the line"]),
        ([BLACKLIST, OFF], (True, True), "/lib/modprobe.d/y.conf:4 `alias nvidia off`: modprobe does not load the driver, neither now",
         ["remove the line", "in /etc/modprobe.d"]),
        ([OFF], (False, True), "modprobe does not load the driver by its name", ["in /etc/modprobe.d"]),
        ([FORBIDDEN], (True, True), "module_blacklist=nvidia on the kernel's command line: ", ["off the kernel's command line"]),
        ([BLACKLIST] * 6, (True, True), " and 2 more: ", ["remove the line"]),
    ],
)  # fmt: skip
def test_the_refusal_names_line_effect_and_remedy(
    lines: list[ModprobeLine], kind: tuple[bool, bool], message: str, remedies: list[str]
) -> None:
    [refusal] = compose.plan(having_lines(bare(T4), *lines, at_boot=kind[0], now=kind[1]), SETTINGS).refusals
    assert message in refusal.message
    for part in ("remove the line", "in /etc/modprobe.d", "off the kernel's command line"):
        assert (part in refusal.remedy) is (part in remedies or (part == "remove the line" and lines != [FORBIDDEN]))


def test_the_audit_reports_it_and_such_a_host_is_not_called_verified() -> None:
    facts = ready()
    lost = having_lines(facts, BLACKLIST, now=False)
    for host, ok in ((facts, True), (lost, False)):
        decided = compose.plan(host, SETTINGS)
        answer: dict[str, Any] = audit.answer_json(host, decided)
        found = {one["name"]: one for one in answer["checks"]}
        assert answer["state"] == (audit.SOUND if ok else audit.REFUSED)
        assert found["next_boot"]["ok"] is found["verified"]["ok"] is ok
        assert bool(compose.report_row(host, decided).verified) is ok
        assert (verification.reason_to_verify(host, decided.digest) is None) is ok
    assert CONF in found["next_boot"]["why"]
    shown = report_of("audit", {"a": {"audit": answer}})
    assert "!no " in audit_table.table(shown, 150) and "no module" not in audit_table.table(shown, 150)


def test_a_verification_of_such_a_host_fails_with_the_line() -> None:
    evidence = sound()
    assert judge.judge_evidence(evidence).ok
    lost = evidence._replace(facts=having_lines(evidence.facts, BLACKLIST, now=False))
    [failed] = [one for one in judge.judge_evidence(lost).checks if one.ok is False]
    assert failed.name == "driver_at_boot" and f"{CONF}:1" in failed.cause and failed.remedy
