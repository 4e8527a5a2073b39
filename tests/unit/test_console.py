"""deploy/monitoring/gpu-ready.html, rendered by a real Prometheus with the rules and made-up nodes, in a real browser."""

import datetime
import http.server
import json
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit import chromium

DEPLOY = Path(__file__).resolve().parents[2] / "deploy/monitoring"
LONG = "registry.example/team/" + "training-" * 12 + "job"
GPUS: dict[str, list[tuple[str, str, float, int, float, int]]] = {
    "node": [("0", "H100 80GB HBM3", 0.97, 79 << 30, 640, 71), ("1", "H100 80GB HBM3", 0.0, 0, 70, 31)],
    "lost": [("0", "Tesla T4", 0.5, 12 << 30, 63.5, 88)],
}
CONTAINERS: dict[str, list[tuple[str, str, str]]] = {
    "node": [("docker", "train", ""), ("cri", "<b>x</b>", "ml"), ("docker", LONG, "")],
    "lost": [],
}
INTERVAL = 1
WAIT = 90


def exposition(name: str, time_of_xid: int) -> str:
    """Return what the exporter of a node serves: `node` is sound, `lost` has a GPU less than expected and an Xid."""
    sound = name == "node"
    lines = [
        f"gpu_ready_verified {int(sound)}",
        "gpu_ready_gpus_expected 2",
        "gpu_ready_nvml_up 1",
        f'gpu_ready_reboot_required{{reason="driver"}} {int(not sound)}',
        f'gpu_ready_drift{{check="gpus"}} {int(not sound)}',
        'gpu_ready_drift{check="files"} 0',
    ]
    for gpu, model, ratio, memory, watts, celsius in GPUS[name]:
        labels = f'gpu="{gpu}",uuid="GPU-{name}-{gpu}"'
        lines += [
            f'gpu_ready_gpu_info{{{labels},name="{model}"}} 1',
            f"gpu_ready_gpu_utilization_ratio{{{labels}}} {ratio}",
            f"gpu_ready_gpu_memory_used_bytes{{{labels}}} {memory}",
            f"gpu_ready_gpu_power_watts{{{labels}}} {watts}",
            f"gpu_ready_gpu_temperature_celsius{{{labels}}} {celsius}",
        ]
    for engine, container, namespace in CONTAINERS[name]:
        labels = f'gpu="0",uuid="GPU-{name}-0",engine="{engine}",container="{container}",namespace="{namespace}"'
        pod = f',pod="{container}-0"' if namespace else ""
        lines.append(f"gpu_ready_container_memory_used_bytes{{{labels}{pod}}} {8 << 30}")
    if not sound:
        lines.append(f'gpu_ready_xid_last_timestamp_seconds{{pci="0000:3b:00.0",xid="79"}} {time_of_xid}')
    return "\n".join(lines) + "\n"


class Exporter(http.server.BaseHTTPRequestHandler):
    """Serves /NAME as the metrics of a node."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(exposition(self.path.strip("/"), int(time.time())).encode())

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


def ask(address: str, path: str) -> Any:
    """Return what the HTTP API of a Prometheus answers, or None where it does not listen yet."""
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/{path}", timeout=10) as answer:
            return json.load(answer)["data"]
    except OSError:
        return None


def wait_for_rules(address: str, server: subprocess.Popen[bytes]) -> None:
    """Wait until each group of rules was evaluated after the first scrape of each node.

    Prometheus spreads scrapes and groups over their interval by hashes of names and paths, so any of them may be the last.
    """
    end = time.monotonic() + WAIT
    scraped = None
    while True:
        assert time.monotonic() < end and server.poll() is None, "not every rule was evaluated on both nodes"
        time.sleep(0.2)
        targets = (ask(address, "targets") or {"activeTargets": []})["activeTargets"]
        if scraped is None and [target["health"] for target in targets] == ["up"] * len(GPUS):
            scraped = time.time()
        groups = (ask(address, "rules") or {"groups": []})["groups"]
        evaluated = [datetime.datetime.fromisoformat(group["lastEvaluation"]).timestamp() for group in groups]
        # A group looks up samples at the time when it was due, which is at most one interval before its evaluation.
        if scraped is not None and evaluated and min(evaluated) > scraped + INTERVAL:
            return


@pytest.fixture(scope="module")
def console(prometheus: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the console, once Prometheus has evaluated its rules on two nodes."""
    directory = tmp_path_factory.mktemp("prometheus")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    exporter = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Exporter)
    threading.Thread(target=exporter.serve_forever, daemon=True).start()
    target = f"127.0.0.1:{exporter.server_port}"
    jobs = [
        {"job_name": name, "metrics_path": f"/{name}", "static_configs": [{"targets": [target], "labels": {"instance": name}}]}
        for name in GPUS
    ]  # fmt: skip
    configuration = {
        "global": {
            "scrape_interval": f"{INTERVAL}s",
            "scrape_timeout": f"{INTERVAL}s",
            "evaluation_interval": f"{INTERVAL}s",
        },
        "rule_files": [str(path) for path in DEPLOY.glob("*.rules.yml")],
        "scrape_configs": jobs,
    }
    (directory / "prometheus.yml").write_text(yaml.safe_dump(configuration))
    (directory / "none").mkdir()
    argv = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}",
            f"--web.console.templates={DEPLOY}", "--web.console.libraries=none"]  # fmt: skip
    url = f"http://{address}/consoles/gpu-ready.html"
    with subprocess.Popen(argv, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            wait_for_rules(address, server)
            yield url
        finally:
            server.terminate()
            exporter.shutdown()


@pytest.mark.host_io
@pytest.mark.usefixtures("browser")
def test_the_console_in_a_browser(console: str, tmp_path: Path) -> None:
    rows = "[...document.querySelectorAll('table')].map((t) => [...t.rows].slice(1).map((r) => [...r.cells].map((c) => c.innerText.trim())))"
    with chromium.Browser(tmp_path / "profile") as browser:
        browser.size(1400, 1000)
        browser.open_url(console)
        alerts, nodes, gpus, containers = browser.evaluate(rows)
        assert alerts == [["GpuXid", "critical", "lost", "0000:3b:00.0", "Xid 79"]]
        assert nodes == [["lost", "no", "1", "driver", "gpus"], ["node", "yes", "0", "", ""]]
        assert [row[:3] for row in gpus] == [
            ["lost", "0", "Tesla T4"], ["node", "0", "H100 80GB HBM3"], ["node", "1", "H100 80GB HBM3"]
        ]  # fmt: skip
        assert gpus[0][3:] == ["50%", "12 GiB", "63.5 W", "88 °C"] and gpus[2][3:] == ["0%", "0 B", "70 W", "31 °C"]
        assert [row[2:5] for row in containers] == [
            ["cri", "<b>x</b>", "ml/<b>x</b>-0"], ["docker", LONG, ""], ["docker", "train", ""]
        ]  # fmt: skip
        assert browser.console == [] and set(browser.requests) <= {
            console,
            console.replace("consoles/gpu-ready.html", "favicon.ico"),
        }
        for width in (1400, 400):
            browser.size(width, 1000)
            assert browser.evaluate(f"document.documentElement.scrollWidth <= {width}"), f"too wide for {width} pixels"
            browser.screenshot(tmp_path / f"{width}.png")
