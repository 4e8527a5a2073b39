"""gpu-ready-check: readings, record and rules give a verdict; the program asks a real library and never waits for it."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.check import judge, program, reading, slurm, worker
from plugins.module_utils.gpu_ready.check.model import (
    CRITICAL,
    EXIT_STATUS,
    INFO,
    PASS,
    UNKNOWN,
    WARNING,
    Expected,
    Finding,
    GpuIdentity,
    GpuReading,
    HealthVerdict,
    NvmlReading,
    Readings,
    XidFacts,
)
from plugins.module_utils.gpu_ready.check.rules import make_rules
from plugins.module_utils.gpu_ready.facts import health as collector
from plugins.module_utils.gpu_ready.facts.model import Facts, HealthFacts, MonitoringFacts, VerifiedFacts
from plugins.module_utils.gpu_ready.system import check_files, monitoring_files
from plugins.plugin_utils.gpu_ready.plan import health, health_check
from plugins.plugin_utils.gpu_ready.settings import variables
from plugins.plugin_utils.gpu_ready.verdict import outcome
from tests.unit import hosts, real_programs
from tests.unit.recorded import RecordedHost

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "module_utils/gpu_ready"
MOCK = ROOT / "lab/gpu_ready_lab/data/nvml/nvml_mock.c"
FIRST, SECOND = "0000:3b:00.0", "0000:5e:00.0"
BOTH = [FIRST, SECOND]
VERIFIED_AT = 100.0
RULES = make_rules()


def identity(address: str = FIRST, **change: Any) -> GpuIdentity:
    known = GpuIdentity(address, "GPU-" + address[5:7], "S" + address[5:7], "90.00", 80 << 30, 16, 4, 18, 1, 0, True)
    return known._replace(**change)


def gpu(address: str = FIRST, identity_: "dict[str, Any] | None" = None, **change: Any) -> GpuReading:
    one = GpuReading(identity(address, **(identity_ or {})), BOTH.index(address), 40, 0, 1, 0, fabric_state=3)
    return one._replace(**change)


def healthy(**change: Any) -> Readings:
    now = Readings("b", BOTH, BOTH, [], "580.1", ["580.1"], BOTH, None, [], NvmlReading([gpu(FIRST), gpu(SECOND)]))
    return now._replace(**change)


def record(**change: Any) -> Expected:
    known = Expected(
        True, "b", "580.1", ["GPU-3b", "GPU-5e"], BOTH, VERIFIED_AT, 2, [identity(FIRST), identity(SECOND)]
    )
    return known._replace(**change)


def with_gpu(identity_: "dict[str, Any] | None" = None, **change: Any) -> Readings:
    """A host whose first GPU differs."""
    return healthy(nvml=NvmlReading([gpu(FIRST, identity_, **change), gpu(SECOND)]))


def nvml(**change: Any) -> Readings:
    return healthy(nvml=NvmlReading(**change))


def xid(number: int, moment: float = VERIFIED_AT + 1, **more: Any) -> Readings:
    return healthy(xids=[XidFacts(number, FIRST, moment, **more)])


def test_a_healthy_host_passes() -> None:
    verdict = judge.judge(healthy(), record(), RULES)
    assert (verdict.level, verdict.action, verdict.rows, verdict.status) == (PASS, "", [], 0)
    assert verdict.line() == "PASS: GPUs are healthy."


NO_REPLY = {"error": "no answer from NVML within 5 s", "silent": True}
CASES: list[tuple[str, Readings, "Expected | None", str, str, str, bool]] = [
    # what, host, record, check, level, action, whether the record is no longer valid
    ("off the bus", healthy(silent=[FIRST]), record(), "pci", CRITICAL, "restart_os", True),
    ("left the bus", healthy(served=[SECOND], present=[SECOND]), record(), "pci", CRITICAL, "restart_os", True),
    ("forgotten", healthy(driven=[SECOND]), record(), "gpus", CRITICAL, "restart_os", True),
    ("no node", healthy(nodes=["nvidiactl", "nvidia0"]), record(), "device_nodes", CRITICAL, "drain", True),
    ("libraries replaced", healthy(libraries=["580.2"]), record(), "driver", CRITICAL, "restart_os", False),
    ("not loaded", healthy(loaded=None, nvml=None), record(), "driver", CRITICAL, "restart_os", False),
    ("other driver", healthy(loaded="580.2", libraries=["580.2"]), record(), "driver", WARNING, "", False),
    ("hung, verified in this boot", nvml(**NO_REPLY), record(), "nvml", CRITICAL, "restart_os", True),
    ("hung, not to be ended", nvml(stuck=True, **NO_REPLY), None, "nvml", CRITICAL, "restart_os", True),
    ("hung, never verified", nvml(**NO_REPLY), None, "nvml", UNKNOWN, "", False),
    ("NVML fails", nvml(error="Unknown Error"), record(), "nvml", CRITICAL, "restart_os", True),
    ("lost", nvml(gpus=[gpu(SECOND)], lost={"0": "GPU is lost"}), record(), "nvml", CRITICAL, "restart_os", True),
    ("needs a reset", nvml(gpus=[gpu(SECOND)], lost={"0": "GPU requires reset"}), record(), "nvml", CRITICAL, "reset_gpu", True),
    ("not in NVML", nvml(gpus=[gpu(SECOND)]), record(), "gpus", CRITICAL, "restart_os", True),
    ("another card", with_gpu({"uuid": "GPU-x", "memory": 1 << 30}), record(), "identity", WARNING, "", True),
    ("another serial", with_gpu({"serial": "S0"}), record(), "identity", WARNING, "", True),
    ("another VBIOS", with_gpu({"vbios": "91.00"}), record(), "identity", WARNING, "", True),
    ("less memory", with_gpu({"memory": 79 << 30}), record(), "memory", CRITICAL, "reset_gpu", True),
    ("ECC off", with_gpu({"ecc": 0, "memory": 79 << 30}), record(), "ecc_mode", WARNING, "", True),
    ("MIG on", with_gpu({"mig": 1}), record(), "mig_mode", INFO, "", False),
    ("narrow link", with_gpu({"pcie_width": 8}), record(), "pcie_width", CRITICAL, "restart_os", True),
    ("slow slot", with_gpu({"pcie_generation": 3}), record(), "pcie_generation", WARNING, "", False),
    ("dead NVLink", with_gpu({"nvlinks": 17}), record(), "nvlinks", CRITICAL, "reset_gpu", True),
    ("not in the fabric", with_gpu(fabric_state=1), record(), "fabric", CRITICAL, "drain", True),
    ("route unhealthy", with_gpu(fabric_problems=["route_unhealthy"]), record(), "fabric", CRITICAL, "reset_gpu", True),
    ("less bandwidth", with_gpu(fabric_problems=["degraded_bandwidth"]), record(), "fabric", WARNING, "", False),
    ("reset required", with_gpu(recovery=1), record(), "recovery", CRITICAL, "reset_gpu", True),
    ("reboot required", with_gpu(recovery=2), record(), "recovery", CRITICAL, "restart_os", True),
    ("unknown action", with_gpu(recovery=77), record(), "recovery", CRITICAL, "drain", True),
    ("remapping failed", with_gpu(remap_failed=True, remap_pending=True), record(), "remapped_rows", CRITICAL, "service_required", True),
    ("remapping waits", with_gpu(remap_pending=True), record(), "remapped_rows", CRITICAL, "reset_gpu", True),
    ("uncorrected", with_gpu(ecc_uncorrected=1), record(), "ecc_errors", CRITICAL, "reset_gpu", True),
    ("hot", with_gpu(temperature=90), record(), "temperature", WARNING, "", False),
    ("thermal slowdown", with_gpu(clock_reasons=0x40 | 0x4), record(), "clocks", WARNING, "", False),
    ("persistence off", with_gpu(persistence=0), record(), "persistence", WARNING, "", False),
    ("Xid 48", xid(48), record(), "xid", CRITICAL, "reset_gpu", True),
    ("Xid 63", xid(63), record(), "xid", WARNING, "", True),
    ("Xid 64", xid(64), record(), "xid", CRITICAL, "service_required", True),
    ("Xid 79", xid(79), record(), "xid", CRITICAL, "restart_os", True),
    ("Xid 154 to reset", xid(154, action=1), record(), "xid", CRITICAL, "reset_gpu", True),
    ("Xid 154 to an unknown action", xid(154, action=99), record(), "xid", CRITICAL, "drain", True),
    ("SXid", xid(20034, switch=True), record(), "xid", CRITICAL, "reset_gpu", True),
    ("Xid 13, a program", xid(13), record(), "xid", INFO, "", False),
    ("Xid 31, a program", xid(31), record(), "xid", INFO, "", False),
    ("Xid 43, a program", xid(43), record(), "xid", INFO, "", False),
    ("Xid 45, a program", xid(45), record(), "xid", INFO, "", False),
    ("a number of tomorrow", xid(9999), record(), "xid", INFO, "", False),
    ("no kernel log", healthy(xids=None), record(), "kernel_log", UNKNOWN, "", False),
    ("never verified", healthy(), None, "verified", UNKNOWN, "", False),
    ("failed", healthy(), record(ok=False, reasons=["no container"]), "verified", WARNING, "", False),
    ("rebooted", healthy(), record(boot_id="a"), "verified", INFO, "", False),
    ("a GPU more", healthy(), record(addresses=[SECOND], hardware=[]), "verified", WARNING, "", True),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_each_fault_has_its_check_level_and_action(
    case: "tuple[str, Readings, Expected | None, str, str, str, bool]",
) -> None:
    _, now, expected, check, level, action, renews = case
    verdict = judge.judge(now, expected, RULES)
    found = [one for one in verdict.rows if one.name == check]
    assert [(one.level, one.renews) for one in found] == [(level, renews)]
    assert verdict.level == level, verdict.rows
    assert (verdict.action, found[0].action if level == CRITICAL else "") == (action, action)
    assert level == INFO or found[0].remedy
    off = judge.judge(now, expected, RULES._replace(off=[check]))
    assert check not in {one.name for one in off.rows}


def test_every_check_has_a_case() -> None:
    assert {case[3] for case in CASES} == set(judge.CHECKS)


HARMLESS: list[tuple[str, Readings, Expected]] = [
    ("an idle GPU lowers its link's generation, which is not compared", with_gpu({"pcie_generation": 4}), record()),
    ("a wider link", with_gpu({"pcie_width": 32}), record()),
    ("values that this driver does not have", with_gpu({"serial": None, "vbios": None, "memory": None, "pcie_width": None, "ecc": None, "mig": None}), record()),
    ("power cap", with_gpu(clock_reasons=0x4 | 0x1), record()),
    ("warm", with_gpu(temperature=89), record()),
    ("an Xid before the verification", xid(79, VERIFIED_AT), record()),
    ("a GPU that a virtual machine has", healthy(served=[SECOND], driven=[SECOND], nvml=NvmlReading([gpu(SECOND)])), record()),
    ("no fabric, and none verified", with_gpu({"fabric": False}, fabric_state=None), record(hardware=[identity(fabric=False)])),
    ("no persistence, and none verified", with_gpu(persistence=0), record(persistent=0)),
    ("no recovery", with_gpu(recovery=0), record()),
]  # fmt: skip


@pytest.mark.parametrize("case", HARMLESS, ids=[case[0] for case in HARMLESS])
def test_what_is_no_fault_passes(case: "tuple[str, Readings, Expected]") -> None:
    assert judge.judge(case[1], case[2], RULES).rows == []


def test_limits_are_the_sites() -> None:
    for check, now, limit in (
        ("temperature", with_gpu(temperature=92), 95),
        ("ecc_errors", with_gpu(ecc_uncorrected=2), 2),
        ("nvlinks", with_gpu({"nvlinks": 17}), 1),
    ):
        assert judge.judge(now, record(), RULES).level != PASS
        assert judge.judge(now, record(), RULES._replace(limits={check: limit})).level == PASS


def test_one_lost_gpu_is_reported_once_and_the_worst_comes_first() -> None:
    now = healthy(
        silent=[FIRST],
        xids=[XidFacts(79, FIRST, 101.0), XidFacts(31, SECOND, 102.0)],
        nvml=NvmlReading([gpu(SECOND, temperature=95)], lost={"0": "GPU is lost"}),
    )
    verdict = judge.judge(now, record(), RULES)
    assert [(one.name, one.level) for one in verdict.rows] == [
        ("pci", CRITICAL),
        ("temperature", WARNING),
        ("xid", INFO),
    ]
    assert verdict.line().startswith(f"CRITICAL: GPU 0 ({FIRST}) does not answer") and "restart_os" in verdict.line()


def test_the_worst_action_of_critical_findings_is_the_hosts() -> None:
    now = healthy(nvml=NvmlReading([gpu(FIRST, recovery=1), gpu(SECOND, remap_failed=True)]))
    assert judge.judge(now, record(), RULES).action == "service_required"


def test_without_a_record_nothing_is_compared() -> None:
    for case in CASES:
        known = judge.judge(case[1], None, RULES)
        compared = {"identity", "memory", "ecc_mode", "mig_mode", "pcie_width", "pcie_generation", "nvlinks"}
        assert not compared & {one.name for one in known.rows}


# ---- slurm ------------------------------------------------------------------------------------------------------------

BAD = HealthVerdict(CRITICAL, "reset_gpu", [Finding("xid", CRITICAL, "Xid 48 of GPU 0", renews=True)])
GOOD = HealthVerdict(PASS, "", [])
OURS = slurm.REASON + "Xid 48 of GPU 0; reset_gpu"
DRAIN, RESUME = ["State=DRAIN", "Reason=" + OURS], ["State=RESUME"]


@pytest.mark.parametrize(
    ("states", "reason", "verdict", "verified", "marked", "expected"),
    [
        ("IDLE", "", BAD, True, False, DRAIN),
        ("MIXED", "", BAD, False, False, DRAIN),
        ("IDLE+DRAIN", OURS, BAD, True, False, None),
        ("IDLE+DRAIN", "disk swap", BAD, True, True, None),
        ("IDLE+DRAIN", "Prolog error", BAD, True, True, DRAIN),
        ("IDLE+DRAIN", "Prolog error", BAD, True, False, None),
        ("IDLE", "", GOOD, True, False, None),
        ("IDLE+DRAIN", OURS, GOOD, True, False, RESUME),
        ("DOWN+DRAIN", OURS, GOOD, True, False, RESUME),
        ("IDLE+DRAIN", OURS, GOOD, False, False, None),
        ("IDLE+DRAIN", "gpu-ready: driver upgrade", GOOD, True, True, None),
        ("IDLE+DRAIN", "Prolog error", GOOD, True, True, RESUME),
        ("IDLE+DRAIN", "Prolog error", GOOD, True, False, None),
        ("DOWN+DRAIN", "Node unexpectedly rebooted", GOOD, True, True, RESUME),
        ("DOWN", "Not responding", GOOD, True, False, None),
        ("IDLE+DRAIN", OURS, HealthVerdict(WARNING, "", []), True, False, RESUME),
        ("IDLE+DRAIN", OURS, HealthVerdict(UNKNOWN, "", []), True, False, None),
        ("IDLE", "", HealthVerdict(UNKNOWN, "", []), True, False, None),
        ("IDLE", "", HealthVerdict(WARNING, "", []), True, False, None),
    ],
)
def test_a_node_is_drained_and_resumed_with_our_own_reason_only(
    states: str, reason: str, verdict: HealthVerdict, verified: bool, marked: bool, expected: "list[str] | None"
) -> None:
    node = slurm.SlurmNode("n1", frozenset(states.split("+")), reason)
    assert slurm.decide(node, verdict, verified, marked) == expected


def test_a_reason_is_one_short_line_without_quotes() -> None:
    wild = HealthVerdict(CRITICAL, "drain", [Finding("xid", CRITICAL, "a\n'b' \"c\" \x1b[31m" + "d" * 500)])
    reason = slurm.reason(wild)
    assert len(reason) <= slurm.LONGEST and not set(reason) & set("\n'\"\x1b\\")


@pytest.mark.host_io
def test_a_mark_is_kept_until_the_node_was_in_service_for_a_while(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    slurm.write_mark(BAD, str(mark))
    slurm.drop_mark(str(mark), slurm.STALE)
    assert mark.exists()
    slurm.drop_mark(str(mark), 0.0)
    assert not mark.exists()
    slurm.drop_mark(str(mark), 0.0)


@pytest.mark.host_io
def test_the_prolog_fails_for_a_critical_verdict_only_and_marks_that(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for level in EXIT_STATUS:
        assert slurm.prolog(HealthVerdict(level, "", []), str(mark)) == (1 if level == CRITICAL else 0)
        assert mark.exists() is (level == CRITICAL)
        mark.unlink(missing_ok=True)


# ---- the program, with a real library ---------------------------------------------------------------------------------

PYTHONS = sorted({sys.executable, *map(str, Path.home().glob(".pyenv/versions/3.6.*/bin/python3.6"))})
CONF = (
    "require_dev = 0\ndriver_version = 580.1\n[gpu]\nname = H100\necc = 1\nmemory_mib = 81920\nnvlinks = 18\narchitecture = 9\n"
    "serial = 123\nvbios = 96.00\npcie_width = 16\n"
)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directories with a library that answers, and one whose initialisation never returns."""
    real_programs.need_on_path("cc", "gcc")
    compiler = shutil.which("cc") or "cc"
    top = tmp_path_factory.mktemp("libraries")
    (top / "hung.c").write_text(
        "#include <unistd.h>\n#include <stdlib.h>\n#include <stdio.h>\n"
        "int nvmlInit_v2(void) {\n"
        '  FILE *f = fopen(getenv("GPU_TEST_FD"), "w");\n'
        '  char name[512]; ssize_t n = readlink("/proc/self/fd/1", name, sizeof name - 1);\n'
        '  if (f) { fprintf(f, "%d %.*s\\n", getpid(), (int)n, name); fclose(f); }\n'
        "  for (;;) pause();\n}\n"
    )
    for name, source in (("good", MOCK), ("hung", top / "hung.c")):
        (top / name).mkdir()
        library = str(top / name / "libnvidia-ml.so.1")
        argv = [compiler, "-shared", "-fPIC", "-fvisibility=default", "-w", "-o", library, str(source), "-ldl"]
        subprocess.run(argv, check=True, timeout=120)
    return top


def installed(tmp_path: Path, gpus: int = 2) -> Path:
    """The program as gpu-ready writes it, and a configuration of the library."""
    package = tmp_path / "gpu_ready_node"
    if not package.exists():
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "check").symlink_to(SOURCES / "check")
        (tmp_path / "__main__.py").write_text(monitoring_files.START % (tmp_path / "settings.json"))
    rows = [f"[gpu {n}]\nuuid = GPU-{n}\nbus_id = 00000000:{0x10 + n:02X}:00.0\n" for n in range(gpus)]
    if not (tmp_path / "nvml.conf").exists():
        (tmp_path / "nvml.conf").write_text(CONF + "".join(rows))
    return tmp_path


def host_files(top: Path, gpus: int) -> Path:
    """Files of a host that was verified in this boot with these GPUs."""
    root = top / "root"
    addresses = [f"0000:{0x10 + number:02x}:00.0" for number in range(gpus)]
    known = {"ok": True, "boot_id": "b", "driver": "580.1", "userspace": ["580.1"], "addresses": addresses, "schema": 1}
    hardware = [{"address": one, "uuid": f"GPU-{number}", "nvlinks": 18} for number, one in enumerate(addresses)]
    files = {
        "sys/module/nvidia/version": "580.1\n",
        "proc/sys/kernel/random/boot_id": "b\n",
        "usr/lib64/libnvidia-ml.so.580.1": "",
        "usr/bin/nvidia-modprobe": "",
        "var/lib/gpu-ready/verified.json": json.dumps(known | {"hardware": hardware}),
    }
    for one in addresses:
        directory = f"sys/bus/pci/devices/{one}/"
        files |= {directory + "vendor": "0x10de\n", directory + "class": "0x030200\n", directory + "config": "x" * 64}
        files[f"proc/driver/nvidia/gpus/{one}/information"] = ""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


PROGRAM = """
import json, sys
from gpu_ready_node.check import program, reading
reading.read_log = lambda: ""
options = program.parse(sys.argv[2:], "settings.json")._replace(root=sys.argv[1])
now, expected, verdict, answer = program.check(options)
print(json.dumps(program.to_json(now, verdict, answer)))
sys.exit(verdict.status)
"""


def run_check(
    python: str, directory: Path, library: Path, *words: str, gpus: int = 2, written: bool = True
) -> "tuple[int, dict[str, Any], float]":
    environment = {
        "LD_LIBRARY_PATH": str(library),
        "NVML_MOCK_CONF": str(directory / "nvml.conf"),
        "GPU_TEST_FD": str(directory / "fd"),
        "PATH": "/nowhere",
    }
    start = time.monotonic()
    root = host_files(directory, gpus) if written else directory / "root"
    argv = [python, "-s", "-B", "-c", PROGRAM, str(root), *words]
    done = subprocess.run(
        argv, cwd=installed(directory, gpus), env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout), time.monotonic() - start


def contents(top: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in top.rglob("*") if path.is_file() and path.name != "fd"}


@pytest.mark.host_io
@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: Path(path).name)
def test_the_program_reads_a_host_with_few_calls_and_writes_nothing(
    python: str, tmp_path: Path, libraries: Path
) -> None:
    """PATH is empty, so it can start no other program."""
    installed(tmp_path, 8)
    host_files(tmp_path, 8)
    before = contents(tmp_path)
    status, answer, _ = run_check(python, tmp_path, libraries / "good", "--no-write", gpus=8)
    assert (status, answer["level"], answer["rows"]) == (0, PASS, [])
    assert [one["uuid"] for one in answer["gpus"]] == [f"GPU-{number}" for number in range(8)]
    one = answer["gpus"][0]
    assert (one["address"], one["memory"], one["nvlinks"], one["ecc"]) == ("0000:10:00.0", 81920 << 20, 18, 1)
    assert answer["nvml_calls"] <= 8 * 40
    assert contents(tmp_path) == before


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("fault", "check", "level"),
    [
        ("error = 15", "nvml", CRITICAL),
        ("nvlinks = 17", "nvlinks", CRITICAL),
        ("ecc_uncorrected = 1", "ecc_errors", CRITICAL),
        ("recovery_action = 2", "recovery", CRITICAL),
        ("remapped_uncorrected = 1\nremap_failed = 1", "remapped_rows", CRITICAL),
        ("throttle = 0x40", "clocks", WARNING),
        ("temp = 95", "temperature", WARNING),
    ],
)
def test_a_fault_of_the_library_is_found(fault: str, check: str, level: str, tmp_path: Path, libraries: Path) -> None:
    (installed(tmp_path) / "nvml.conf").open("a").write(f"[gpu 0]\n{fault}\n")
    status, answer, _ = run_check(sys.executable, tmp_path, libraries / "good", "--no-write")
    assert [(row["name"], row["level"]) for row in answer["rows"]] == [(check, level)]
    assert status == EXIT_STATUS[level]


@pytest.mark.host_io
@pytest.mark.parametrize("python", PYTHONS, ids=lambda path: Path(path).name)
def test_a_driver_that_never_returns_does_not_hold_the_program_or_its_pipe(
    python: str, tmp_path: Path, libraries: Path
) -> None:
    """The library's own code waits. `subprocess.run` reads the pipe to its end, as slurmd does."""
    status, answer, seconds = run_check(python, tmp_path, libraries / "hung", "--no-write", "--limit", "1")
    assert seconds < 10 and status == 2
    (row,) = answer["rows"]
    assert row["name"] == "nvml" and "no answer from NVML within 1 s" in row["message"]
    pid, standard = (tmp_path / "fd").read_text().split()
    assert standard == "/dev/null" and not Path(f"/proc/{pid}").exists()


@pytest.mark.host_io
@pytest.mark.parametrize(("boot", "renewed"), [("a", True), ("b", False)])
def test_a_boot_extends_the_record_on_disk(boot: str, renewed: bool, tmp_path: Path, libraries: Path) -> None:
    path = host_files(tmp_path, 2) / "var/lib/gpu-ready/verified.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"boot_id": boot}))
    status, answer, _ = run_check(sys.executable, tmp_path, libraries / "good", "--renew", written=False)
    known = json.loads(path.read_text())
    assert (status, answer["level"], known["boot_id"]) == (0, PASS, "b")
    assert ("renewed" in known.get("checks", {})) is renewed


@pytest.mark.host_io
def test_the_directory_is_a_program(tmp_path: Path) -> None:
    argv = [sys.executable, "-E", "-s", "-B", str(installed(tmp_path)), "--list"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert {line.split()[0] for line in done.stdout.splitlines()} == set(judge.CHECKS)


@pytest.mark.host_io
def test_no_second_question_is_asked_while_one_waits(tmp_path: Path) -> None:
    waiting = subprocess.Popen(["sleep", "60"])
    try:
        mark = tmp_path / "check-waits"
        mark.write_text(f"{waiting.pid} {program.start_time(waiting.pid)}")
        assert program.ask(1.0, str(mark), False)["error"] == worker.WAITING
        mark.write_text(f"{waiting.pid} 1")
        assert not program.waits(str(mark))
    finally:
        waiting.kill()
        waiting.wait()
    mark.write_text(f"{waiting.pid} {program.start_time(waiting.pid)}")
    assert not program.waits(str(mark))


# ---- the record after a boot ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "expected", "renewed"),
    [
        (healthy(), record(boot_id="a"), True),
        (xid(31), record(boot_id="a"), True),
        (healthy(), record(), False),
        (healthy(), record(boot_id="a", ok=False), False),
        (healthy(), record(boot_id="a", hardware=[]), False),
        (healthy(), record(boot_id="a", addresses=[FIRST]), False),
        (healthy(xids=None), record(boot_id="a"), False),
        (with_gpu({"serial": "S0"}), record(boot_id="a"), False),
        (with_gpu({"nvlinks": 17}), record(boot_id="a"), False),
        (healthy(loaded="580.2", libraries=["580.2"]), record(boot_id="a"), False),
        (nvml(**NO_REPLY), record(boot_id="a"), False),
        (healthy(), None, False),
    ],
)
def test_a_verification_is_extended_to_a_boot_in_which_nothing_differs(
    now: Readings, expected: "Expected | None", renewed: bool
) -> None:
    assert program.may_renew(now, expected, judge.judge(now, expected, RULES)) is renewed


def test_an_extended_record_keeps_what_it_does_not_know_and_says_so() -> None:
    known = program.renewed({"schema": 1, "digest": "d", "ok": True, "checks": {"c": "ok"}}, healthy(), 7.5)
    assert (known["digest"], known["boot_id"], known["logged"]) == ("d", "b", 7.5)
    assert known["checks"] == {"c": "ok", "renewed": program.RENEWED}


@pytest.mark.parametrize("value", [{}, {"hardware": [{"x": 1}]}, {"hardware": 3}, {"logged": "x"}])
def test_a_damaged_record_is_no_record(value: dict[str, Any]) -> None:
    assert reading.read_expected(value) is None


# ---- files ------------------------------------------------------------------------------------------------------------


def test_the_files_of_each_wiring() -> None:
    def names(*wirings: str) -> set[str]:
        return set(check_files.format_files(check_files.CheckParams("/usr/bin/python3", list(wirings))))

    base = names()
    assert {check_files.COMMAND, check_files.MAIN, check_files.SETTINGS, check_files.STARTED_AT_BOOT} <= base
    assert names("slurm") - base == {check_files.PROLOG, check_files.HEALTH_PROGRAM}
    assert names("systemd") - base == {check_files.UNITS + one for one in (check_files.SERVICE, check_files.TIMER)}
    assert names("npd") - base == {check_files.NPD, check_files.NPD_CONFIG}


# ---- plan and facts ---------------------------------------------------------------------------------------------------


def settings(**given: Any) -> Any:
    found, errors = variables.parse_settings(given)
    assert errors == []
    return found


def ready() -> Facts:
    host = hosts.with_driver(hosts.bare(hosts.T4), "580.95.05", "open", "cuda_repo", [])
    return host._replace(monitoring=MonitoringFacts(python="/usr/bin/python3"))


def decide(host: Facts, *wirings: str, **given: Any) -> Any:
    return health_check.plan_check(host, settings(gpu_health_check=list(wirings), **given))


def carried(host: Facts, *wirings: str) -> Facts:
    return hosts.carried_out(host, decide(host, *wirings))


def test_the_check_is_installed_once_and_only_where_it_is_asked_for() -> None:
    assert decide(ready()).steps == []
    (step,) = decide(ready(), "slurm", "systemd").steps
    assert (step.id, step.disruption, step.params.leftovers) == ("gpu_monitoring.check", "none", [])
    after = carried(ready(), "slurm", "systemd")
    assert decide(after, "systemd", "slurm").steps == []
    assert check_files.DIRECTORY in after.runtime.manifest.directories


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"check_running": False}, "the timer of gpu-ready-check does not run"),
        ({"check": {check_files.SETTINGS: "x"}}, "gpu-ready-check is not as configured"),
        ({"check": {}}, "gpu-ready-check is not installed"),
    ],
)
def test_what_differs_from_the_check_is_planned_again(change: dict[str, Any], why: str) -> None:
    host = carried(ready(), "systemd")
    host = host._replace(monitoring=host.monitoring._replace(**change))
    assert [step.why for step in decide(host, "systemd").steps] == [why]


def test_limits_and_switches_are_in_the_settings_file() -> None:
    host = carried(ready(), "systemd")
    (step,) = decide(
        host, "systemd", gpu_health_check_off=["clocks"], gpu_health_check_limits={"temperature": 95}
    ).steps
    text = check_files.format_files(check_files.CheckParams(*step.params[:4]))[check_files.SETTINGS]
    known = make_rules(json.loads(text))
    assert (known.off, known.limits) == (["clocks"], {"temperature": 95})


@pytest.mark.parametrize(
    "wrong",
    [{"gpu_health_check": ["kubernetes"]}, {"gpu_health_check_off": ["x"]}, {"gpu_health_check_limits": {"x": 1}}],
)
def test_other_wirings_checks_and_limits_are_refused(wrong: dict[str, Any]) -> None:
    assert len(variables.parse_settings(wrong).errors) == 1


def test_a_wiring_that_is_withdrawn_is_removed_and_its_timer_stopped() -> None:
    host = carried(ready(), "slurm", "systemd")
    (step,) = decide(host, "slurm").steps
    assert step.params.timer and step.params.leftovers == sorted(
        check_files.UNITS + one for one in (check_files.SERVICE, check_files.TIMER)
    )
    (removal,) = decide(host).steps
    assert (removal.id, removal.params.timer) == ("gpu_monitoring.remove_check", True)
    assert check_files.DIRECTORY in removal.params.paths and check_files.COMMAND in removal.params.paths
    assert carried(host).monitoring.check == {}


def test_playbooks_ask_the_check_where_it_is_installed_and_have_it_write_nothing() -> None:
    row = Finding("nvlinks", CRITICAL, "GPU 0 has 17 active NVLinks", "reset", "reset_gpu", FIRST, renews=True)
    words = (sys.executable, "-E", "-s", "-B", check_files.DIRECTORY, "--no-write", "--json")
    printed = json.dumps({"rows": [row._asdict()]})
    host = RecordedHost(files={check_files.MAIN: ""}, programs={words: Result(2, printed, "")})
    assert collector.ask_check(host) == [row]
    facts = ready()._replace(health=HealthFacts(driven=[], nodes=[], xids=None, check=[row]))
    assert health.findings(facts) == [row]
    assert health.findings(facts._replace(health=HealthFacts(check=[row._replace(renews=False)]))) == []


@pytest.mark.parametrize("printed", ["", "[]", '{"rows": [{"x": 1}]}', '{"rows": 3}', "null"])
def test_an_answer_of_another_form_is_none(printed: str) -> None:
    words = (sys.executable, "-E", "-s", "-B", check_files.DIRECTORY, "--no-write", "--json")
    host = RecordedHost(files={check_files.MAIN: ""}, programs={words: Result(0, printed, "")})
    assert collector.ask_check(host) is None
    assert collector.ask_check(RecordedHost()) is None


# ---- verification -----------------------------------------------------------------------------------------------------


def test_a_link_that_became_narrow_does_not_become_the_expectation() -> None:
    before = VerifiedFacts(True, hardware=[identity(FIRST)])
    narrow = identity(FIRST, pcie_width=8, nvlinks=17, vbios="91.00")
    (kept,) = outcome.best_of(NvmlReading([GpuReading(narrow)]), before)
    assert (kept.pcie_width, kept.nvlinks, kept.vbios) == (16, 18, "91.00")
    other = narrow._replace(address=SECOND)
    assert outcome.best_of(NvmlReading([GpuReading(other)]), before) == [other]
    assert outcome.best_of(None, before) == [identity(FIRST)]
    assert outcome.best_of(NvmlReading([GpuReading(narrow)]), None) == [narrow]
