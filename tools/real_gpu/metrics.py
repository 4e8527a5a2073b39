"""Part `metrics`: the metrics program beside a PyTorch load, compared with nvidia-smi in the same seconds."""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.monitor import kernel_log, service
from tools.real_gpu import compare, load, part
from tools.real_gpu.compare import DUTY, MEMORY, PROCESS_DUTY, PROCESS_MEMORY, Sample

COUNT, INTERVAL = 10, 6.0
"""Samples, and seconds between two of them: one minute beside the load."""
IDLE_COUNT, IDLE_INTERVAL = 3, 1.0
"""The same without a load: only so that the programs run once."""
MEMORY_PERCENT, DUTY_PERCENT = 40, 60
START_LIMIT = 60.0
"""Seconds until PyTorch computes: its import reads gigabytes of libraries."""
LOAD_SECONDS = COUNT * INTERVAL + 20
LOAD_OUTPUT = "load.jsonl"
SETTINGS = {"file": "", "interval": INTERVAL, "old_names": False, "branch_ends": {}}
LINE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
QUERY = ("--query-gpu=index,uuid,memory.total,memory.used,utilization.gpu", "--format=csv,noheader,nounits")
APPS = ("--query-compute-apps=gpu_uuid,used_gpu_memory", "--format=csv,noheader,nounits")
PMON = ("pmon", "-c", "1", "-s", "um")


class Smi(NamedTuple):
    """Standard output of nvidia-smi to QUERY, APPS and PMON."""

    gpus: str
    apps: str
    pmon: str


def number(text: str) -> float | None:
    """A number of nvidia-smi, None for `[N/A]`, `-` and the like."""
    return float(text) if re.fullmatch(r"\d+(\.\d+)?", text.strip()) else None


def read_metrics(text: str) -> list[tuple[str, dict[str, str], float]]:
    """Name, labels and value of each line of the metrics."""
    found = [LINE.fullmatch(line) for line in text.splitlines() if not line.startswith("#")]
    return [(one[1], dict(LABEL.findall(one[2] or "")), float(one[3])) for one in found if one]


def of_metrics(text: str) -> dict[tuple[int, str], float]:
    """Percent by GPU and quantity; processes of one GPU are added up."""
    found: dict[tuple[int, str], float] = {}
    rows = read_metrics(text)
    total = {labels["gpu"]: value for name, labels, value in rows if name == "gpu_ready_gpu_memory_total_bytes"}
    for name, labels, value in rows:
        gpu = labels.get("gpu", "")
        if name == "gpu_ready_gpu_memory_used_bytes" and total.get(gpu):
            found[int(gpu), MEMORY] = 100 * value / total[gpu]
        elif name == "gpu_ready_gpu_utilization_ratio":
            found[int(gpu), DUTY] = 100 * value
        elif name == "gpu_ready_container_memory_used_bytes" and total.get(gpu):
            key = (int(gpu), PROCESS_MEMORY)
            found[key] = found.get(key, 0.0) + 100 * value / total[gpu]
        elif name == "gpu_ready_container_duty_cycle_ratio":
            key = (int(gpu), PROCESS_DUTY)
            found[key] = min(100.0, found.get(key, 0.0) + 100 * value)
    return found


def of_smi(answer: Smi) -> dict[tuple[int, str], float]:
    """The same quantities, as nvidia-smi prints them."""
    found: dict[tuple[int, str], float] = {}
    indices: dict[str, int] = {}
    totals: dict[str, float] = {}
    for line in answer.gpus.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 5 or not cells[0].isdigit():
            continue
        gpu, total, used, duty = int(cells[0]), number(cells[2]), number(cells[3]), number(cells[4])
        indices[cells[1]] = gpu
        if total and used is not None:
            totals[cells[1]] = total
            found[gpu, MEMORY] = 100 * used / total
        if duty is not None:
            found[gpu, DUTY] = duty
    for line in answer.apps.splitlines():
        uuid, _, memory = (cell.strip() for cell in line.partition(","))
        value = number(memory)
        if value is not None and uuid in totals:
            key = (indices[uuid], PROCESS_MEMORY)
            found[key] = found.get(key, 0.0) + 100 * value / totals[uuid]
    found.update({(gpu, PROCESS_DUTY): value for gpu, value in of_pmon(answer.pmon).items()})
    return found


def of_pmon(text: str) -> dict[int, float]:
    """Percent of the multiprocessors' time by GPU, of all its processes; columns are named in the first line."""
    found: dict[int, float] = {}
    header: list[str] = []
    for line in text.splitlines():
        words = line.lstrip("# ").split()
        if line.startswith("#"):
            header = header or words
        elif "sm" in header and len(words) >= len(header) and words[0].isdigit():
            value = number(words[header.index("sm")])
            if value is not None:
                found[int(words[0])] = min(100.0, found.get(int(words[0]), 0.0) + value)
    return found


def pair(metrics: dict[tuple[int, str], float], smi: dict[tuple[int, str], float]) -> list[Sample]:
    keys = dict.fromkeys([*metrics, *smi])
    return [Sample(gpu, what, metrics.get((gpu, what)), smi.get((gpu, what))) for gpu, what in keys]


def ask_smi(path: str) -> list["subprocess.Popen[str]"]:
    return [
        subprocess.Popen([path, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for words in (QUERY, APPS, PMON)
    ]


def take_samples(smi: str, directory: Path, count: int, interval: float) -> list[Sample]:
    monitor = service.Monitor(SETTINGS)
    # Its own record of the kernel's log: the one in /run belongs to the service of this host, if it has one.
    monitor.log = kernel_log.KernelLog(state=str(directory / "xids.json"))
    monitor.text()  # reads what the driver kept of the time before
    samples: list[Sample] = []
    with (directory / "samples.jsonl").open("w") as stream:
        for index in range(count):
            start = time.monotonic()
            asked = ask_smi(smi)
            text = monitor.text()
            answer = Smi(*(program.communicate(timeout=20)[0] for program in asked))
            taken = pair(of_metrics(text), of_smi(answer))
            samples += taken
            stream.write(json.dumps({"time": time.time(), "samples": taken, "smi": answer}) + "\n")
            stream.flush()
            if index == count - 1:
                (directory / "last.prom").write_text(text, encoding="utf-8")
            else:
                time.sleep(max(0.0, interval - (time.monotonic() - start)))
    return samples


def start_load(directory: Path) -> "subprocess.Popen[bytes]":
    """The load when it computes. NotRunError: without PyTorch; FailedError: it did not begin."""
    words = [str(MEMORY_PERCENT), str(DUTY_PERCENT), str(LOAD_SECONDS)]
    printed, errors = directory / LOAD_OUTPUT, directory / "load-errors.txt"
    with printed.open("wb") as out, errors.open("wb") as err:
        program = subprocess.Popen([sys.executable, load.__file__, *words], stdout=out, stderr=err)
    end = time.monotonic() + START_LIMIT
    while time.monotonic() < end:
        if printed.read_text():
            return program
        if program.poll() is not None:
            text = (errors.read_text().strip().splitlines() or [f"status {program.returncode}"])[-1]
            raise part.NotRunError(text) if program.returncode == load.NO_TORCH else part.FailedError(f"load: {text}")
        time.sleep(0.2)
    program.kill()
    raise part.FailedError(f"load: it did not compute within {START_LIMIT:g} s")


def end_load(program: "subprocess.Popen[bytes]", directory: Path) -> list[Any]:
    """What the load printed: its memory, and its own duty cycle."""
    program.terminate()
    try:
        program.wait(10)
    except subprocess.TimeoutExpired:
        program.kill()
    return [json.loads(line) for line in (directory / LOAD_OUTPUT).read_text().splitlines()]


def main() -> str:
    part.need_gpu(Host())
    smi = shutil.which("nvidia-smi")
    if smi is None:
        raise part.NotRunError("nvidia-smi is missing")
    directory = part.own_directory("metrics")
    try:
        program = start_load(directory)
    except part.NotRunError as error:
        rows = compare.compare(take_samples(smi, directory, IDLE_COUNT, IDLE_INTERVAL))
        shown = ", ".join(compare.describe(row) for row in rows if row.gpu == 0 and row.ok is not None)
        raise part.NotRunError(f"no load: {error}. {IDLE_COUNT} samples without one: {shown or 'none'}") from error
    try:
        samples = take_samples(smi, directory, COUNT, INTERVAL)
    finally:
        printed = end_load(program, directory)
    verdict = compare.judge(samples, 0)
    record = {"ok": verdict.ok, "message": verdict.message, "rows": [row._asdict() for row in verdict.rows]}
    (directory / "verdict.json").write_text(json.dumps(dict(record, load=printed), indent=1))
    if verdict.ok:
        return verdict.message
    raise part.FailedError(verdict.message)


if __name__ == "__main__":
    part.run(main)
