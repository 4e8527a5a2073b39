"""tools/real_gpu: the parts that need no GPU, and how a run treats parts that fail, hang or leave processes."""

import json
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import GRACE, Result
from tests.unit.recorded import RecordedHost
from tools.real_gpu import compare, explain, identifiers, load, metrics, outputs, plan, run, verify
from tools.real_gpu.compare import DUTY, MEMORY, PROCESS_DUTY, PROCESS_MEMORY, Sample
from tools.real_gpu.metrics import Smi
from tools.real_gpu.verify import Gpu

UUID = "8f8e1c2a-77b1-4f0e-9a51-3d1c5b9e0a11"
OTHER = "01234567-89ab-cdef-0123-456789abcdef"
FIRST, SECOND = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-{UUID})", f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-{FIRST})"),
        (f"{UUID} {OTHER} {UUID.upper()}", f"{FIRST} {SECOND} {FIRST}"),
        (f"MIG 1g.10gb Device 0: (UUID: MIG-{UUID})", f"MIG 1g.10gb Device 0: (UUID: MIG-{FIRST})"),
        ("ClusterUUID : 00000000-0000-0000-0000-000000000000", "ClusterUUID : 00000000-0000-0000-0000-000000000000"),
        ("    Serial Number                         : 1650923012345", "    Serial Number                         : 0000000000001"),
        ("    Chassis Serial Number : 3136434J5234567", "    Chassis Serial Number : 000000000000001"),
        ("    Serial Number                         : N/A", "    Serial Number                         : N/A"),
        ("    GPU PDI                               : 0x5a3b1c4d5e6f7081", "    GPU PDI                               : 0x0000000000000001"),
        ("<serial>1650923012345</serial>", "<serial>0000000000001</serial>"),
        ("<serial>N/A</serial>", "<serial>N/A</serial>"),
        ("Serial: 8250/16550 driver, 4 ports", "Serial: 8250/16550 driver, 4 ports"),
        ("GPU 00000000:3B:00.0", "GPU 00000000:3B:00.0"),
        ("pci 0000:00:05.0: [10de:2330] type 00", "pci 0000:00:05.0: [10de:2330] type 00"),
        ("VBIOS Version : 96.00.99.00.01", "VBIOS Version : 96.00.99.00.01"),
        ("Image Version : G520.0280.00.05", "Image Version : G520.0280.00.05"),
        ("Driver Version : 580.159.04", "Driver Version : 580.159.04"),
        ("link/ether 52:54:00:ab:cd:ef", "link/ether 02:00:00:00:00:01"),
        ("ip=10.1.2.3::10.1.2.1 127.0.0.1 0.0.0.0 10.1.2.3", "ip=192.0.2.1::192.0.2.2 127.0.0.1 0.0.0.0 192.0.2.1"),
        ("Linux version 6.18.44 (root@train-07) on train-07.site", "Linux version 6.18.44 (root@host) on host.site"),
        ("python train-070.py retrain-07.py", "python train-070.py retrain-07.py"),
        ("GSP Firmware 1.02.3.4", "GSP Firmware 1.02.3.4"),
        ("C  /home/alice/venv/bin/python", "C  /home/user/venv/bin/python"),
        ("0123456789abcdef0123456789abcdef", "0" * 31 + "1"),
        ("00000000000000000000000000000000", "0" * 32),
    ],
)  # fmt: skip
def test_identifiers_are_replaced_and_versions_and_addresses_of_the_bus_are_not(text: str, expected: str) -> None:
    assert identifiers.replace_identifiers({"x": text}, ["train-07", "localhost"]) == {"x": expected}


def test_one_identifier_is_the_same_in_all_texts() -> None:
    texts = {
        "q": f"    Serial Number : 1650923012345\n    GPU UUID : GPU-{UUID}\n",
        "dmesg": f"NVRM: Xid (PCI:0000:3b:00): 79, GPU serial number is 1650923012345, {UUID}.",
    }
    found = identifiers.replace_identifiers(texts, [])
    assert "1650923012345" not in found["dmesg"] and found["dmesg"].endswith(f"0000000000001, {FIRST}.")
    assert f"GPU-{FIRST}" in found["q"]


def samples(quantity: str, ours: Any, theirs: Any, gpu: int = 0, count: int = 10) -> list[Sample]:
    return [Sample(gpu, quantity, ours, theirs)] * count


MEMORY_ALIKE = samples(MEMORY, 41.0, 40.0)
DUTY_ALIKE = samples(DUTY, 61.0, 60.0)


@pytest.mark.parametrize(
    ("given", "ok", "words"),
    [
        (MEMORY_ALIKE + DUTY_ALIKE, True, "memory 41.0 % and 40.0 %, duty cycle 61.0 % and 60.0 %"),
        (MEMORY_ALIKE + samples(DUTY, 65.0, 60.0), True, "within 5 points"),
        (
            MEMORY_ALIKE + samples(DUTY, 65.1, 60.0),
            False,
            "more than 5 points apart: GPU 0: duty cycle 65.1 % and 60.0",
        ),
        (MEMORY_ALIKE + samples(DUTY, 50.0, 60.0), False, "duty cycle 50.0 % and 60.0 %"),
        (samples(MEMORY, 30.0, 40.0) + DUTY_ALIKE, False, "memory 30.0 % and 40.0 %"),
        (MEMORY_ALIKE + DUTY_ALIKE + samples(DUTY, 50.0, 0.0, gpu=1), False, "GPU 1: duty cycle 50.0 % and 0.0 %"),
        (MEMORY_ALIKE + DUTY_ALIKE + samples(PROCESS_DUTY, 30.0, 60.0), False, "duty cycle of processes"),
        (MEMORY_ALIKE + DUTY_ALIKE + samples(PROCESS_DUTY, None, 60.0), True, "within 5 points"),
        (MEMORY_ALIKE, None, "duty cycle of GPU 0 is not known"),
        (MEMORY_ALIKE + samples(DUTY, None, 60.0), None, "duty cycle of GPU 0 is not known"),
        (samples(MEMORY, 41.0, 40.0, gpu=1) + DUTY_ALIKE, None, "memory of GPU 0 is not known"),
        (MEMORY_ALIKE + samples(DUTY, 61.0, 60.0, count=9), None, "9 samples of 10"),
        (MEMORY_ALIKE + samples(DUTY, 27.0, 29.9), None, "the load was 29.9 %"),
        (MEMORY_ALIKE + samples(DUTY, 90.0, 90.1), None, "the load was 90.1 %"),
        (MEMORY_ALIKE + samples(DUTY, 90.0, 90.0), True, "duty cycle 90.0 %"),
        ([], None, "memory of GPU 0 is not known"),
    ],
)
def test_the_verdict_of_the_comparison(given: list[Sample], ok: bool | None, words: str) -> None:
    verdict = compare.judge(given, 0)
    assert verdict.ok is ok and words in verdict.message, verdict


def test_means_are_of_the_samples_that_both_have() -> None:
    (row,) = compare.compare([Sample(0, DUTY, 50.0, 60.0), Sample(0, DUTY, 70.0, 62.0), Sample(0, DUTY, 0.0, None)])
    assert (row.samples, row.metrics, row.smi, row.ok) == (2, 60.0, 61.0, True)


PROMETHEUS = """\
# HELP gpu_ready_gpu_memory_total_bytes Memory of the GPU.
gpu_ready_gpu_memory_total_bytes{gpu="0",uuid="GPU-a"} 1000
gpu_ready_gpu_memory_used_bytes{gpu="0",uuid="GPU-a"} 400
gpu_ready_gpu_utilization_ratio{gpu="0",uuid="GPU-a"} 0.61
gpu_ready_container_memory_used_bytes{gpu="0",uuid="GPU-a",engine="host"} 100
gpu_ready_container_memory_used_bytes{gpu="0",uuid="GPU-a",engine="docker",container="a\\"} b"} 250
gpu_ready_container_duty_cycle_ratio{gpu="0",uuid="GPU-a",engine="host"} 0.4
gpu_ready_container_duty_cycle_ratio{gpu="0",uuid="GPU-a",engine="docker",id="x"} 0.7
gpu_ready_kernel_log_up 1
"""


def test_the_metrics_are_percentages_by_gpu() -> None:
    found = metrics.of_metrics(PROMETHEUS)
    assert found == {(0, MEMORY): 40.0, (0, DUTY): 61.0, (0, PROCESS_MEMORY): 35.0, (0, PROCESS_DUTY): 100.0}


# nvidia-smi of 550.163.01 prints these columns; newer ones add some at the end.
PMON = """\
# gpu         pid   type     sm    mem    enc    dec    jpg    ofa     fb   ccpm    command
# Idx           #    C/G      %      %      %      %      %      %     MB     MB    name
    0       4242     C     58     21      -      -      -      -  32768      0    python3
    0       4243     C      3      0      -      -      -      -    100      0    python3
    1          -     -      -      -      -      -      -      -      -      -    -
"""


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            Smi("0, GPU-a, 81559, 32624, 60\n1, GPU-b, 81559, 0, [N/A]\n", "GPU-a, 8156\nGPU-a, 8156\n", PMON),
            {(0, MEMORY): 40.0, (0, DUTY): 60.0, (1, MEMORY): 0.0, (0, PROCESS_MEMORY): 20.0, (0, PROCESS_DUTY): 61.0},
        ),
        (Smi("0, GPU-a, [N/A], [N/A], 60\n", "GPU-a, [N/A]\n", ""), {(0, DUTY): 60.0}),
        (Smi("No devices were found\n", "", "# gpu pid type sm\n# Idx # C/G %\n"), {}),
        (Smi("", "[Insufficient Permissions]", "Failed to initialize NVML\n"), {}),
    ],
)
def test_the_answers_of_nvidia_smi_are_percentages_by_gpu(answer: Smi, expected: dict[Any, float]) -> None:
    found = metrics.of_smi(answer)
    assert {key: round(value, 1) for key, value in found.items()} == expected


def test_what_only_one_of_both_knows_stays_a_sample() -> None:
    paired = metrics.pair({(0, DUTY): 1.0}, {(0, DUTY): 2.0, (0, MEMORY): 3.0})
    assert paired == [Sample(0, DUTY, 1.0, 2.0), Sample(0, MEMORY, None, 3.0)]


def test_the_load_computes_for_the_requested_part_of_the_time() -> None:
    clock = [0.0]

    def spend(seconds: float) -> None:
        clock[0] += seconds

    share = load.alternate(lambda: spend(0.0007), 0.6, lambda: clock[0] < 2.0, lambda: clock[0], spend)
    assert share == pytest.approx(0.6, abs=0.005) and clock[0] == pytest.approx(2.0, abs=0.05)


REFUSAL = {"code": "docker_missing", "message": "docker is not installed", "remedy": "install docker"}


@pytest.mark.parametrize(
    ("decided", "loaded", "words"),
    [
        ({"steps": [{"id": "docker_engine.install"}], "refusals": []}, "580.1", []),
        ({"steps": [{"id": "nvidia_driver.hold"}, {"id": "nvidia_driver.persistenced"}]}, "580.1", []),
        ({"steps": [{"id": "nvidia_driver.install"}]}, "580.1", ["580.1 is not adopted (nvidia_driver.install)"]),
        ({"steps": [{"id": "nvidia_driver.runfile"}]}, "580.1", ["not adopted"]),
        ({"steps": [{"id": "nvidia_driver.install"}]}, None, []),
        ({"steps": [], "refusals": [REFUSAL]}, "580.1", []),
        ({"steps": [], "refusals": [dict(REFUSAL, remedy="")]}, None, ["docker_missing has no message or no remedy"]),
        ({"steps": [], "refusals": [dict(REFUSAL, message="")]}, None, ["docker_missing has no message or no remedy"]),
    ],
)
def test_what_is_wrong_with_a_plan(decided: dict[str, Any], loaded: str | None, words: list[str]) -> None:
    found = plan.judge({"default": decided}, loaded)
    assert len(found) == len(words) and all(word in one for word, one in zip(words, found, strict=True)), found


H100 = Gpu("GPU-a", "NVIDIA H100", "0000:00:05.0", "580.1")


@pytest.mark.parametrize(
    ("sources", "module", "words"),
    [
        ({"pynvml": [H100], "nvidia-smi": [H100]}, "580.1", []),
        ({"pynvml": [H100], "nvidia-smi": []}, "580.1", ["nvidia-smi reports no GPU, pynvml GPU-a"]),
        ({"pynvml": [], "nvidia-smi": [H100]}, "580.1", ["nvidia-smi reports GPU-a NVIDIA H100"]),
        ({"pynvml": [H100], "nvidia-smi": [H100._replace(name="H100")]}, "580.1", ["GPU-a H100 0000:00:05.0 580.1"]),
        ({"pynvml": [H100]}, "570.1", ["pynvml reports driver 580.1, the module is 570.1"]),
        ({"pynvml": [H100]}, None, ["the module is None"]),
    ],
)
def test_where_sources_disagree(sources: dict[str, list[Gpu]], module: str | None, words: list[str]) -> None:
    found = verify.differences(sources, module)
    assert len(found) == len(words) and all(word in one for word, one in zip(words, found, strict=True)), found


def test_the_limits_of_all_parts_fit_into_the_time_of_a_run() -> None:
    # A part that hangs in the driver is waited for twice: itself, and what it left.
    assert sum(part.limit + 2 * run.GRACE for part in run.PARTS) <= run.TOTAL_LIMIT
    beside_the_load = metrics.START_LIMIT + metrics.COUNT * metrics.INTERVAL
    assert beside_the_load < next(part.limit for part in run.PARTS if part.name == "metrics")
    assert len(plan.RUNS) * plan.LIMIT < next(part.limit for part in run.PARTS if part.name == "plan")
    assert metrics.LOAD_SECONDS > metrics.COUNT * metrics.INTERVAL
    assert compare.LEAST_LOAD < metrics.DUTY_PERCENT < compare.MOST_LOAD
    assert metrics.COUNT >= compare.LEAST_SAMPLES


def test_every_explained_output_is_a_collected_one() -> None:
    files = {outputs.names_of(path) for path in [*outputs.FILES, "/proc/driver/nvidia/version"]}
    assert set(explain.KINDS) <= {*outputs.PROGRAMS, *files}


def test_a_program_that_hangs_is_not_asked_again() -> None:
    answers = {
        ("x", "-L"): Result(124, "begun", ""),
        ("x", "-q"): Result(0, "", ""),
        ("y",): Result(3, "out ", "error"),
    }
    host, hanging = RecordedHost(programs=answers), set[str]()
    assert outputs.ask(host, hanging, ("x", "-q")) == ("", "it printed nothing")
    assert outputs.ask(host, hanging, ("x", "-L")) == ("begun", "no answer in 15 s")
    assert outputs.ask(host, hanging, ("x", "-q")) == (None, "x hangs")
    assert outputs.ask(host, hanging, ("y",)) == ("out error", "")
    assert outputs.ask(host, hanging, ("no-such-program-anywhere",))[1] == "no-such-program-anywhere is missing"
    assert next(part.limit for part in run.PARTS if part.name == "outputs") > outputs.LIMIT + GRACE


def test_nvidia_smi_is_only_asked() -> None:
    """No option that sets, resets or drains anything (nvidia-smi -h: the device modification options)."""
    asked = [argv[1:] for argv in outputs.PROGRAMS.values() if argv[0] == outputs.SMI]
    asked += [metrics.QUERY, metrics.APPS, metrics.PMON]
    known = {"-L", "-q", "-x", "topo", "-m", "nvlink", "-s", "pmon", "-c", "1", "um"}
    assert {word for words in asked for word in words if not word.startswith(("--query-", "--format="))} <= known


LEFT = "61.20261126"
SCRIPTS = {
    "good": "print('fine')",
    "bad": "print('line'); raise SystemExit('it broke')",
    "not_run": "print('not run: no such thing'); raise SystemExit(77)",
    "hangs": "print('begun', flush=True); import time; time.sleep(60)",
    "leaves": f"import subprocess; subprocess.Popen(['sleep', '{LEFT}'], start_new_session=True); print('left')",
    "writes": "import os, pathlib; pathlib.Path(os.environ['GPU_READY_RESULTS'], 'x.txt').write_text('result')",
    "computes": "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(10**7))'])",
}


STARTED = """
import sys
from tools.real_gpu import run
run.PARTS = tuple(run.Part(name, 2, (sys.executable, "-c", script)) for name, script in {scripts!r}.items())
run.PARTS += (run.Part("missing", 2, ("/no/such/program",)),)
sys.exit(run.main({arguments!r}))
"""


def run_scripts(tmp_path: Path, *names: str) -> tuple[int, str, dict[str, Any]]:
    """Status, screen and summary of a run, in a process of its own: it ends all that its parts left."""
    text = STARTED.format(scripts=SCRIPTS, arguments=[str(tmp_path), *names])
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=run.ROOT, check=False)
    assert not done.stderr, done.stderr
    summary = json.loads((tmp_path / run.SUMMARY).read_text())
    return done.returncode, done.stdout, {part["name"]: part for part in summary["parts"]}


@pytest.mark.host_io
def test_each_part_ends_with_a_status_and_none_stops_the_others(tmp_path: Path) -> None:
    status, screen, parts = run_scripts(tmp_path)
    assert {name: (part["status"], part["message"]) for name, part in parts.items()} == {
        "good": ("ok", "fine"),
        "bad": ("failed", "it broke"),
        "not_run": ("not run", "not run: no such thing"),
        "hangs": ("timed out", "no end within 2 s; begun"),
        "leaves": ("ok", "left"),
        "writes": ("ok", ""),
        "computes": ("ok", ""),
        "missing": ("failed", "/no/such/program: No such file or directory"),
    }
    assert status == 1
    assert parts["computes"]["cpu"] > parts["good"]["cpu"] and parts["hangs"]["seconds"] >= 2
    with tarfile.open(tmp_path / run.ARCHIVE) as archive:
        names = archive.getnames()
        content = archive.extractfile("real-gpu/x.txt")
        assert content and content.read() == b"result"
    assert {f"real-gpu/logs/{name}.txt" for name in SCRIPTS} <= set(names) and "real-gpu/summary.json" in names
    assert not [name for name in names if "bytecode" in name or "/tmp" in name]
    assert sorted(path.name for path in tmp_path.iterdir()) == [run.ARCHIVE, run.SUMMARY]
    assert "hangs     timed out" in screen and "not_run   not run" in screen
    left = [path for path in Path("/proc").glob("[0-9]*/cmdline") if LEFT in read(path)]
    assert not left


def read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


@pytest.mark.host_io
def test_chosen_parts_alone_are_run(tmp_path: Path) -> None:
    status, _, parts = run_scripts(tmp_path, "good")
    assert status == 0 and list(parts) == ["good"]


def test_the_processes_below_another_one() -> None:
    assert run.descendants(10, {11: 10, 12: 11, 13: 12, 20: 1, 10: 1}) == {11, 12, 13}
    assert run.descendants(10, {20: 1}) == set()


@pytest.mark.parametrize("arguments", [[], ["--help"], ["results", "no_such_part"]])
def test_wrong_arguments_print_how_it_is_called(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(arguments) == 2
    assert "parts: outputs, explain, plan, verify, metrics" in capsys.readouterr().err


@pytest.mark.host_io
def test_the_commit_is_what_was_prepared_and_else_that_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine's copy came with the history of another day."""
    monkeypatch.setattr(run, "ROOT", tmp_path)
    assert run.commit() is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    assert re.fullmatch("[0-9a-f]{40}", run.commit() or "")
    (tmp_path / "build/real_gpu").mkdir(parents=True)
    (tmp_path / "build/real_gpu/commit").write_text("0123abc\n")
    assert run.commit() == "0123abc"


@pytest.mark.host_io
def test_prepare_asks_pip_for_what_the_lock_file_pins(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "tools/real_gpu").mkdir(parents=True)
    for name in ("requirements/runtime.txt", "tools/real_gpu/prepare"):
        shutil.copy(run.ROOT / name, tmp_path / name)
    pip = tmp_path / ".venv/bin/pip"
    pip.parent.mkdir(parents=True)
    pip.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >asked\n')
    pip.chmod(0o755)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    subprocess.run([tmp_path / "tools/real_gpu/prepare"], check=True, timeout=20, capture_output=True)
    asked = (tmp_path / "asked").read_text().splitlines()[-2:]
    assert [word.partition("==")[0] for word in asked] == ["ansible-core", "pyyaml"]
    assert all(re.fullmatch(r"[a-z-]+==\d+(\.\d+)+", word) for word in asked), asked
