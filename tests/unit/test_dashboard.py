"""deploy/monitoring: dashboard and console ask only for metrics that exist, in queries that Prometheus can read."""

import json
import re
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.yaml import yaml_load

from plugins.module_utils.gpu_ready.monitor import metrics

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy/monitoring"
DASHBOARD = json.loads((DEPLOY / "gpu-ready-dashboard.json").read_text())
CONSOLE = (DEPLOY / "gpu-ready.html").read_text()
RULES = [
    rule
    for path in sorted(DEPLOY.glob("*.rules.yml"))
    for group in yaml_load(path.read_text())["groups"]
    for rule in group["rules"]
]
KNOWN = {family.name for family in metrics.FAMILIES} | {rule["record"] for rule in RULES if "record" in rule}
EXPRESSIONS = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
NAME = re.compile(r"\b(?:gpu_ready\w*|gpu)(?::\w+)+|\bgpu_ready_\w+")


@pytest.mark.parametrize("expression", [*EXPRESSIONS, *re.findall(r'query \(?(?:printf )?"(.+?)"(?: |\))', CONSOLE)])
def test_every_metric_of_a_query_exists(expression: str) -> None:
    names = set(NAME.findall(expression))
    assert names <= KNOWN and (names or "ALERTS" in expression)


def test_panels_fill_rows_without_overlap() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        taken = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells and all(x < 24 for x, _ in taken), panel["title"]
        cells |= taken
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    assert {panel["type"] for panel in DASHBOARD["panels"]} <= {
        "stat",
        "timeseries",
    }  # "graph" was removed in Grafana 11


def test_the_data_source_is_a_variable() -> None:
    text = json.dumps(DASHBOARD)
    assert set(re.findall(r'"uid": "([^"]*)"', text)) == {"gpu-ready", "$source"}


@pytest.mark.usefixtures("prometheus")
@pytest.mark.host_io
def test_prometheus_reads_every_query(tmp_path: Path) -> None:
    rules = [{"record": f"a:{n}", "expr": one.replace("$instance", ".*")} for n, one in enumerate(EXPRESSIONS)]
    path = tmp_path / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "a", "rules": rules}]}))
    done = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("prometheus")
@pytest.mark.host_io
def test_prometheus_renders_the_console(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    (tmp_path / "none").mkdir()
    (tmp_path / "prometheus.yml").write_text("global: {}\n")
    argv = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}",
            f"--web.console.templates={DEPLOY}", "--web.console.libraries=none"]  # fmt: skip
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            page, end = "", time.monotonic() + 60
            while not page:
                try:
                    with urllib.request.urlopen(f"http://{address}/consoles/gpu-ready.html", timeout=10) as answer:
                        page = answer.read().decode()
                except OSError:
                    assert time.monotonic() < end and server.poll() is None
                    time.sleep(0.2)
        finally:
            server.terminate()
    assert "no node reports" in page and page.count("<table>") == page.count("</table>") == 4
