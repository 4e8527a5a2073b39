"""Health now: what files and the kernel's log say of GPUs, and what plan, audit and gate make of it."""

from collections.abc import Callable
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.check import judge as check
from plugins.module_utils.gpu_ready.check import pci, xids
from plugins.module_utils.gpu_ready.check.model import XidFacts
from plugins.module_utils.gpu_ready.facts import collect
from plugins.module_utils.gpu_ready.facts import health as collector
from plugins.module_utils.gpu_ready.facts.model import Facts, HealthFacts, VerifiedFacts
from plugins.module_utils.gpu_ready.system import kernel_messages
from plugins.module_utils.gpu_ready.verify.collect import VerifyOptions
from plugins.module_utils.gpu_ready.verify.expectation import VerifyExpectation
from plugins.plugin_utils.gpu_ready.completion import complete
from plugins.plugin_utils.gpu_ready.diagnostics import xid
from plugins.plugin_utils.gpu_ready.plan import answer as decide
from plugins.plugin_utils.gpu_ready.plan import audit, compose, health, parts, verification
from plugins.plugin_utils.gpu_ready.verdict import judge, outcome
from plugins.plugin_utils.gpu_ready.verdict.evidence import logged_before
from tests.unit import goldens
from tests.unit.hosts import T4, bare, carried_out, having
from tests.unit.plans import settings
from tests.unit.recorded import RecordedHost

FIRST, SECOND = "0000:3b:00.0", "0000:3c:00.0"
BOTH = [FIRST, SECOND]
VERIFIED_AT = 100.0
Change = Callable[[Facts], Facts]


def ready() -> Facts:
    """Return a verified host with two GPUs, whose kernel's log was read up to VERIFIED_AT."""
    host = bare(T4, T4)
    host = carried_out(host, goldens.decide(host))
    host = having(host, driver={"persistence": {"running": True, "held": 2}})
    assert host.verified is not None
    record = having(host.verified, logged=VERIFIED_AT, persistent=2, gpus=["GPU-a", "GPU-b"])
    facts = host._replace(verified=record, health=HealthFacts(driven=BOTH, nodes=None, xids=[]))
    assert facts.verified is not None and facts.verified.addresses == BOTH
    return facts


def change(**fields: Any) -> Change:
    return lambda facts: having(facts, **fields)


def reported(number: int, time: float = VERIFIED_AT + 1, address: str = SECOND, **more: Any) -> Change:
    one = XidFacts(number, address, time, **more)
    return lambda facts: facts._replace(health=(facts.health or HealthFacts())._replace(xids=[one]))


def with_gpu(**fields: Any) -> Change:
    """Change the first GPU."""
    return lambda facts: having(facts, base={"gpus": [facts.base.gpus[0]._replace(**fields), *facts.base.gpus[1:]]})


def steps(facts: Facts) -> list[str]:
    return [step.id for step in goldens.decide(facts).steps]


def audited(facts: Facts) -> dict[str, Any]:
    """Return the audit of a host."""
    return audit.answer_json(facts, goldens.decide(facts))


def test_a_healthy_host_is_ready() -> None:
    facts = ready()
    assert health.findings(facts) == [] and goldens.decide(facts).converged
    assert (audited(facts)["state"], audited(facts)["why"]) == ("ok", [])
    assert compose.report_row(facts, goldens.decide(facts)).verified


LOST: list[tuple[str, Change, str]] = [
    ("silent", with_gpu(silent=True), f"GPU 0 ({FIRST}) does not answer"),
    ("silent, no driver", lambda facts: with_gpu(silent=True)(facts)._replace(health=None), "GPU 0"),
    ("left the bus", lambda facts: having(facts, base={"gpus": facts.base.gpus[1:]}), f"GPU 0 ({FIRST}) is no longer on"),
    ("Xid 79", reported(79), f"Xid 79 of GPU 1 ({SECOND}): the GPU has fallen off the bus"),
]  # fmt: skip


@pytest.mark.parametrize(("broken", "words"), [row[1:] for row in LOST], ids=[row[0] for row in LOST])
def test_a_lost_gpu_is_refused_by_site_yml_and_drift_in_the_audit(broken: Change, words: str) -> None:
    facts = broken(ready())
    decided = goldens.decide(facts)
    assert [one.code for one in decided.refusals] == [health.LOST] and decided.steps == []
    assert words in decided.refusals[0].message and "drain and reboot" in decided.refusals[0].remedy
    assert words in decide.refusal_text(decided) and "Remedy: drain and reboot" in decide.refusal_text(decided)
    answer = audited(facts)
    assert answer["state"] == "drift"
    assert any(words in why and "Remedy: drain and reboot" in why for why in answer["why"])
    assert compose.report_row(facts, decided).verified is None


def test_a_host_whose_gpus_all_left_the_bus_is_refused_until_it_was_rebooted() -> None:
    missing = having(ready(), base={"gpus": []})
    decided = goldens.decide(missing)
    assert [one.code for one in decided.refusals] == [health.LOST] * 2
    assert "no longer on the PCI bus" in decided.summary
    assert audited(missing)["state"] == "drift"
    rebooted = having(missing, base={"boot_id": "b1"})
    assert goldens.decide(rebooted).refusals == [] and audited(rebooted)["state"] == "drift"


@pytest.mark.parametrize(
    ("part", "refused"),
    [("", True), (parts.DRIVER, True), (parts.VERIFY, True), (parts.DOCKER, False), (parts.MONITORING, False)],
)
def test_a_lost_gpu_does_not_keep_a_site_from_other_parts(part: str, refused: bool) -> None:
    decided = compose.plan(with_gpu(silent=True)(ready()), settings(), part=part)
    assert (health.LOST in [one.code for one in decided.refusals]) is refused


AGAIN: list[tuple[str, Change, str]] = [
    ("forgotten by the driver", change(health={"driven": [SECOND]}), f"GPU 0 ({FIRST}) is no longer among"),
    ("a node is missing", change(health={"nodes": ["nvidia0", "nvidiactl"]}), "/dev/nvidia0, /dev/nvidiactl"),
    ("the control node is missing", change(health={"nodes": ["nvidia0", "nvidia1"]}), "nvidiactl need"),
    ("48", reported(48), "double-bit"),
    ("63", reported(63), "row remapped"),
    ("64", reported(64), "remapping failed"),
    ("74", reported(74), "NVLink"),
    ("92", reported(92), "single-bit"),
    ("94", reported(94), "contained"),
    ("95", reported(95), "uncontained"),
    ("119, critical in the catalog", reported(119), "Xid 119"),
    ("154, a reset is required", reported(154, action=1), "Xid 154"),
    ("154, unknown action", reported(154, action=99), "Xid 154"),
    ("a fatal SXid", reported(20034, address="0000:a9:00.0", switch=True), "SXid 20034 of 0000:a9:00.0"),
]


@pytest.mark.parametrize(("broken", "words"), [row[1:] for row in AGAIN], ids=[row[0] for row in AGAIN])
def test_what_a_verification_must_judge_makes_the_record_invalid(broken: Change, words: str) -> None:
    facts = broken(ready())
    assert steps(facts) == ["gpu_verify.verify"]
    assert words in str(verification.reason_to_verify(facts, str(facts.verified and facts.verified.digest)))
    answer = audited(facts)
    assert answer["state"] == "drift" and any(words in why and "Remedy: " in why for why in answer["why"])
    assert compose.report_row(facts, goldens.decide(facts)).verified is None


def test_the_remedy_is_the_catalogs() -> None:
    assert [one.remedy for one in health.findings(reported(48)(ready()))] == [xid.meaning(48, SECOND).remedy]
    (required,) = health.findings(reported(154, action=2)(ready()))
    assert "reboot the host" in required.remedy
    (remapped,) = health.findings(reported(63)(ready()))
    assert "reset the GPU when it is idle" in remapped.remedy and "run site.yml" in remapped.remedy


HARMLESS: list[tuple[str, Change]] = [
    ("an Xid of a program", reported(31)),
    ("an Xid before the verification", reported(79, VERIFIED_AT)),
    ("an Xid of a GPU that a virtual machine has", lambda facts: with_gpu(driver="vfio-pci")(reported(79, address=FIRST)(facts))),
    ("an Xid of a GPU that is not here", reported(79, address="0000:99:00.0")),
    ("a silent GPU that a virtual machine has", with_gpu(driver="vfio-pci", silent=True)),
    ("a GPU that a virtual machine has", lambda facts: with_gpu(driver="vfio-pci")(change(health={"driven": [SECOND]})(facts))),
    ("no driver is loaded", lambda facts: facts._replace(health=None)),
    ("the kernel's log cannot be read", change(health={"xids": None})),
    ("no device node yet, nvidia-modprobe creates them", change(health={"nodes": None})),
    ("more nodes than GPUs", change(health={"nodes": ["nvidia0", "nvidia1", "nvidia2", "nvidiactl"]})),
    ("a GPU of which the driver shows another", change(health={"driven": [*BOTH, "0000:99:00.0"]})),
    ("a node for each of those that were verified", lambda facts: change(health={"nodes": ["nvidia0", "nvidiactl"]})(having(facts, verified={"gpus": ["GPU-a"]}))),
    ("a node for each of those that the driver has left", lambda facts: with_gpu(driver="vfio-pci")(change(health={"nodes": ["nvidia1", "nvidiactl"], "driven": [SECOND]})(facts))),
    ("another driver was loaded, which is verified anyway", change(health={"driven": []}, driver={"loaded": {"version": "595.1.1"}})),
    ("the daemon's files cannot be read", change(driver={"persistence": {"running": True, "held": None}})),
    ("more GPUs are open than were", change(driver={"persistence": {"running": True, "held": 3}})),
]  # fmt: skip


@pytest.mark.parametrize("state", [row[1] for row in HARMLESS], ids=[row[0] for row in HARMLESS])
def test_what_is_no_fault_is_no_finding(state: Change) -> None:
    facts = state(ready())
    assert health.findings(facts) == [] and health.persistence_released(facts) == ""


@pytest.mark.parametrize("record", [None, "failed", "another boot"])
def test_without_a_valid_record_only_what_is_wrong_in_itself_is_a_finding(record: str | None) -> None:
    """Its comparisons need one; a verification is due anyway."""
    facts = ready()
    known = facts.verified
    assert known is not None
    if record is None:
        facts = facts._replace(verified=None)
    elif record == "failed":
        facts = facts._replace(verified=known._replace(ok=False))
    else:
        facts = facts._replace(verified=known._replace(boot_id="before"))
    for broken in (
        change(health={"driven": [SECOND]}),
        change(health={"nodes": []}),
        change(driver={"persistence": {"running": True, "held": 0}}),
    ):
        assert health.findings(broken(facts)) == [] and health.persistence_released(broken(facts)) == ""
    assert [one.lost for one in health.findings(with_gpu(silent=True)(facts))] == [True]
    assert [one.lost for one in health.findings(reported(79)(facts))] == [True]
    assert len(health.findings(reported(79, 1.0)(facts))) == (0 if record == "failed" else 1)


def test_an_xid_that_a_good_verification_has_seen_does_not_return_with_a_failed_one() -> None:
    facts = ready()
    assert facts.verified is not None
    failed = facts._replace(verified=facts.verified._replace(ok=False, reasons=["xid: 48"]))
    assert health.findings(reported(63, VERIFIED_AT)(failed)) == []
    assert len(health.findings(reported(63)(failed))) == 1


def test_one_lost_gpu_is_reported_once() -> None:
    both = reported(79, address=FIRST)(with_gpu(silent=True)(ready()))
    assert [one.address for one in health.findings(both)] == [FIRST]
    forgotten = reported(79, address=FIRST)(change(health={"driven": [SECOND]})(ready()))
    assert [one.lost for one in health.findings(forgotten)] == [True, False]
    others = reported(79, address=SECOND)(with_gpu(silent=True)(ready()))
    assert [one.address for one in health.findings(others)] == BOTH


@pytest.mark.parametrize(
    ("phase", "refused"),
    [("switching", False), ("going_back", False), ("stuck", False), ("back", True), ("done", True), ("draining", True)],
)
def test_an_upgrade_in_its_middle_is_rolled_back_in_spite_of_a_lost_gpu(phase: str, refused: bool) -> None:
    """The new driver may have lost it."""
    facts = having(with_gpu(silent=True)(ready()), upgrade={"phase": phase, "to": "580", "since": 1})
    decided = goldens.decide(facts)
    assert ([one.code for one in decided.refusals] == [health.LOST]) is refused
    assert refused or [step.id for step in decided.steps] == ["gpu_verify.verify"]


def test_no_more_than_the_newest_xids_are_reported() -> None:
    many = [XidFacts(48, SECOND, VERIFIED_AT + number) for number in range(1, 1000)]
    facts = ready()._replace(health=HealthFacts(BOTH, None, many))
    assert len(health.findings(facts)) == check.MOST_XIDS
    last = XidFacts(79, FIRST, VERIFIED_AT + 5000)
    assert health.findings(facts._replace(health=HealthFacts(BOTH, None, [*many, last])))[0].address == FIRST


def test_other_refusals_are_still_refusals_of_the_audit() -> None:
    facts = with_gpu(silent=True)(ready())
    decided = compose.plan(facts, settings(nvidia_driver_branch="390"))
    answer: dict[str, Any] = audit.answer_json(facts, decided)
    assert answer["state"] == "refused" and all("does not answer" not in why for why in answer["why"])


# ---- persistence mode -----------------------------------------------------------------------------------------------


def released(held: int = 0, **given: Any) -> Facts:
    return having(ready(), driver={"persistence": {"running": True, "held": held, **given}})


@pytest.mark.parametrize("held", [0, 1])
def test_persistence_mode_that_somebody_turned_off_is_turned_on_again(held: int) -> None:
    facts = released(held)
    step, after = goldens.decide(facts).steps
    assert (step.id, after.id) == ("nvidia_driver.persistenced", "gpu_verify.verify")
    assert step.why == f"somebody turned persistence mode off: the daemon keeps {held} of 2 GPUs initialized"
    answer = audited(facts)
    assert answer["state"] == "drift" and answer["why"] == ["services: " + step.why]


def test_it_is_left_off_where_the_site_or_the_administrator_decided() -> None:
    facts = released()
    assert compose.plan(facts, settings(nvidia_driver_persistence=False)).steps[:-1] == []  # it is verified so
    assert "nvidia_driver.persistenced" not in steps(released(own=True))


def test_a_gpu_that_went_to_a_virtual_machine_is_closed_with_reason() -> None:
    facts = with_gpu(driver="vfio-pci")(released(1))
    assert health.persistence_released(having(facts, health={"driven": [SECOND]})) == ""


# ---- what is read ---------------------------------------------------------------------------------------------------

CONFIG = bytes.fromhex("de10b81e06041000a1000203") + b"\0\0\0\0" + bytes(240)


@pytest.mark.parametrize(
    ("space", "silent"),
    [
        (b"\xff" * 256, True),
        (b"\xff" * 64, True),
        (CONFIG, False),
        (b"\xff\xff\xff\xff" + CONFIG[4:], False),  # an SR-IOV virtual function
        (b"\xff" * 32, False),
        (b"", False),
    ],
)
def test_a_function_is_silent_if_its_whole_header_reads_as_ones(space: bytes, silent: bool) -> None:
    assert pci.is_silent(space) is silent


XID = "NVRM: Xid (PCI:%s): %s"
LOG = [
    ("1.0", XID % ("0000:3b:00", "79, pid='<unknown>', GPU has fallen off the bus.")),
    ("2.0", "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05"),
]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], []),
        ([("3.5", XID % ("0000:3b:00", "48, pid=1, DBE"))], [XidFacts(48, FIRST, 3.5)]),
        ([("3.0", "NVRM: Xid (0000:3b:00): 48, DBE"), ("4.0", XID % ("0000:3b:00 GPU-I:05", "48, DBE"))], [XidFacts(48, FIRST, 4.0)]),
        ([("3.0", XID % ("0000:3b:00", "48, DBE")), ("4.0", LOG[1][1])], []),
        ([("3.0", "NVRM: Xid (3b:00.0): 48, DBE"), ("4.0", "NVRM: Xid (PCI:00000001:3b:00): 48, DBE")], [XidFacts(48, FIRST, 3.0), XidFacts(48, "0001:3b:00.0", 4.0)]),
        (
            [
                ("3.0", XID % ("0000:3b:00", "94, Contained")),
                ("3.5", XID % ("0000:3c:00", "94, Contained")),
                ("4.0", XID % ("0000:3b:00", "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")),
            ],
            [XidFacts(94, SECOND, 3.5)],
        ),
        (
            [("4.0", XID % ("0000:3b:00", "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"))],
            [XidFacts(154, FIRST, 4.0, action=2)],
        ),
        ([("3.0", XID % ("0000:3b:00", "149, NETIR_BER_EVENT Nonfatal XC0 i0 Link 03"))], []),
        ([("3.0", "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 22013, Non-fatal, Link 44")], []),
        ([("3.0", "nvidia-nvswitch0: SXid (PCI:0000:a9:00.0): 20034, Fatal, Link 30")], [XidFacts(20034, "0000:a9:00.0", 3.0, switch=True)]),
        ([("3.0", "usb 1-1: new device Xids (1): 79")], []),
    ],
)  # fmt: skip
def test_xids_stand_until_the_driver_is_loaded_or_the_gpu_reset(
    messages: list[tuple[str, str]], expected: list[XidFacts]
) -> None:
    text = "\n".join(f"[{float(time):12.6f}] {message}" for time, message in LOG + messages)
    assert xids.standing_xids(text) == expected
    critical = {48, 79, 94, 20034}  # the verification judges the same messages
    found = {one.number for one in xid.serious_xids(xid.parse_xids(text))}
    assert found & critical == {one.number for one in expected} & critical


def test_the_number_of_xids_that_are_kept_has_a_limit() -> None:
    lines = ["[1.0] " + XID % (f"0000:{number % 256:02x}:00", f"{number // 256}, x") for number in range(600)]
    assert len(xids.standing_xids("\n".join(lines))) == xids.MOST


def test_a_verification_counts_only_what_was_logged_after_the_last_good_one() -> None:
    text = "[1.0] " + XID % ("0000:3b:00", "48, a") + "\n[100.0] " + XID % ("0000:3b:00", "79, b")
    assert [one.number for one in xid.parse_xids(text)] == [48, 79]
    assert [one.number for one in xid.parse_xids(text, 1.0)] == [79]
    assert xid.parse_xids(text, 100.0) == []


@pytest.mark.parametrize(
    ("text", "newest"), [("", 0.0), ("no stamp", 0.0), ("<6>[    1.500000] a\n[2.25] b\nnone", 2.25)]
)
def test_the_newest_message_of_a_log(text: str, newest: float) -> None:
    assert xids.newest(text) == newest


GPU = "/sys/bus/pci/devices/" + FIRST
FILES = {
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  x\n",
    f"/proc/driver/nvidia/gpus/{FIRST}/information": "Model: x\n",
    "/dev/nvidia0": "", "/dev/nvidiactl": "", "/dev/nvidia-uvm": "", "/dev/null": "",
}  # fmt: skip
RECORD = "3,7,2500000,-;NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE\n SUBSYSTEM=pci\n"


def collected(host: RecordedHost, facts: Facts | None = None) -> HealthFacts | None:
    facts = facts or ready()
    return collector.collect(host, facts.base, facts.driver)


@pytest.mark.host_io
def test_the_log_is_read_from_its_device() -> None:
    host = RecordedHost(files=FILES, devices={"/dev/kmsg": ["6,6,1000000,-;hello\n", "broken", RECORD]})
    found = collected(host)
    assert found == HealthFacts([FIRST], ["nvidia0", "nvidiactl"], [XidFacts(48, FIRST, 2.5)])
    assert host.asked == [] and not any("information" in path for path in host.opened)


@pytest.mark.host_io
@pytest.mark.parametrize("devices", [{}, {"/dev/kmsg": []}])
def test_where_the_device_is_absent_or_empty_a_program_prints_the_log(devices: dict[str, list[str]]) -> None:
    text = "[    2.500000] NVRM: Xid (PCI:0000:3b:00): 48, pid=1, DBE\n"
    host = RecordedHost(files=FILES, devices=devices, programs={("dmesg",): Result(0, text, "")})
    found = collected(host)
    assert found is not None and found.xids == [XidFacts(48, FIRST, 2.5)]
    journal = RecordedHost(files=FILES, programs={tuple(kernel_messages.PROGRAMS[1]): Result(0, text, "")})
    assert collected(journal) == found
    refused = RecordedHost(files=FILES, programs={("dmesg",): Result(1, "", "Operation not permitted")})
    silent = collected(refused)
    assert silent is not None and silent.xids is None


def test_nothing_is_read_where_no_driver_has_gpus() -> None:
    facts = ready()
    host = RecordedHost(files=FILES)
    assert collected(host, having(facts, driver={"loaded": None})) is None
    assert collected(host, having(facts, base={"gpus": []})) is None
    assert collected(RecordedHost(), facts) is None
    assert host.asked == []


def test_nodes_do_not_count_where_nvidia_modprobe_creates_them() -> None:
    found = collected(RecordedHost(files={**FILES, "/usr/bin/nvidia-modprobe": ""}))
    assert found is not None and found.nodes is None


def test_the_record_of_a_verification_without_these_fields_is_read() -> None:
    record = VerifiedFacts(ok=True)
    assert (record.logged, record.persistent) == (0.0, None)


@pytest.mark.parametrize(("space", "silent"), [(b"\xff" * 256, True), (CONFIG, False)])
def test_whether_a_gpu_answers_is_a_fact_of_it(space: bytes, silent: bool) -> None:
    texts: dict[str, str | bytes] = {"vendor": "0x10de\n", "device": "0x1eb8\n", "class": "0x030200\n", "config": space}
    host = RecordedHost(files={f"{GPU}/{name}": text for name, text in texts.items()})
    (gpu,) = complete.collect_facts(host).base.gpus
    assert (gpu.address, gpu.silent) == (FIRST, silent)


@pytest.mark.parametrize(
    ("log", "before", "ok", "after"),
    [
        ("[   50.0] a\n", 0.0, True, 50.0),
        ("[   50.0] a\n", 10.0, False, 10.0),
        ("", 10.0, True, 10.0),
    ],
)
def test_a_good_verification_records_up_to_where_it_has_read_the_log(
    monkeypatch: pytest.MonkeyPatch, log: str, before: float, ok: bool, after: float
) -> None:
    facts = ready()
    assert facts.verified is not None
    facts = facts._replace(verified=facts.verified._replace(logged=before))
    monkeypatch.setattr(collect, "collect", lambda host, probes: facts)
    monkeypatch.setattr(outcome, "judge_evidence", lambda evidence: judge.Verdict(ok, []))
    host = RecordedHost(programs={("dmesg",): Result(0, log, "")})
    done = outcome.verify(host, VerifyExpectation(), "digest", VerifyOptions("image", compute=False))
    assert (done.record.logged, done.record.persistent) == (after, 2)
    rebooted = having(facts, base={"boot_id": "b1"})
    assert logged_before(rebooted.verified, rebooted.base.boot_id) == 0.0
