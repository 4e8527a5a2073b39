"""Prometheus and Alertmanager of Debian on a lab host, with the rules of deploy/monitoring, as a site would run them."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from tests.integration.fleet import ROOT, Fleet

PACKAGES = "prometheus prometheus-node-exporter prometheus-alertmanager curl"
RULES = (ROOT / "deploy/monitoring/gpu-ready.rules.yml").read_text()
ALERTMANAGER = (ROOT / "deploy/monitoring/alertmanager.yml").read_text()
STEPS = (
    (r"(?m)^( +for:) .*$", r"\1 1s"),
    (r"\[10m\]|\[1h\]", "[30s]"),
    (r"< 3600'", "< 30'"),
)
"""What makes the rules fast enough for a test: times of minutes and hours become seconds, the rest stays."""
FIRING = "http://127.0.0.1:9093/api/v2/alerts?active=true&inhibited=false&silenced=false"
WAIT = 180.0


def shortened() -> str:
    """Return the rules with short times."""
    text = RULES
    for pattern, short in STEPS:
        text = re.sub(pattern, short, text)
    return text


def wait_for_value(read: Callable[[], object], expected: object) -> None:
    """Wait until what is read is what is expected: a new value comes with the next sample and the next scrape."""
    end = time.monotonic() + WAIT
    while (found := read()) != expected:
        assert time.monotonic() < end, f"after {WAIT:.0f} s {found} instead of {expected}"
        time.sleep(0.5)


def install(fleet: Fleet, host: str, packages: str) -> None:
    """Install packages of the distribution."""
    command = f"apt-get -qq -y --no-install-recommends install {packages} >/dev/null 2>&1"
    fleet.ssh(host, f"DEBIAN_FRONTEND=noninteractive {command}", limit=600)


@dataclass
class Server:
    """Prometheus and Alertmanager on one host of a fleet, which scrape the node_exporters of the others too."""

    fleet: Fleet
    host: str

    def start(self, *hosts: str) -> None:
        """Configure both with deploy/monitoring, let their own tools check that, and start them."""
        addresses = {name: address for address, name in self.fleet.addresses().items()}
        targets = [{"targets": [f"{addresses[name]}:9100"], "labels": {"instance": name}} for name in hosts]
        configuration = {
            "global": {"scrape_interval": "3s", "scrape_timeout": "3s", "evaluation_interval": "1s"},
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": ["127.0.0.1:9093"]}]}]},
            "rule_files": ["gpu-ready.rules.yml"],
            "scrape_configs": [{"job_name": "node", "static_configs": targets, "params": {"collect[]": ["textfile"]}}],
        }
        self.write("/etc/prometheus/gpu-ready.rules.yml", shortened())
        self.write("/etc/prometheus/prometheus.yml", yaml.safe_dump(configuration))
        self.write("/etc/prometheus/alertmanager.yml", ALERTMANAGER)
        self.fleet.ssh(self.host, "promtool check config /etc/prometheus/prometheus.yml")
        self.fleet.ssh(self.host, "amtool check-config /etc/prometheus/alertmanager.yml")
        self.fleet.ssh(self.host, "systemctl restart prometheus prometheus-alertmanager")
        up = "curl -sf http://127.0.0.1:9090/-/ready && curl -sf http://127.0.0.1:9093/-/ready"
        self.fleet.ssh(self.host, f"for _ in $(seq 60); do {up} && exit 0; sleep 0.5; done; exit 1")
        wait_for_value(lambda: {one["instance"] for one in self.query("gpu_ready_verified")} & set(hosts), set(hosts))

    def write(self, path: str, text: str) -> None:
        """Write a file on the host."""
        self.fleet.ssh(self.host, f"cat >{path} <<'END_OF_FILE'\n{text}\nEND_OF_FILE\n")

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the labels of each series that Prometheus has for an expression, with its value as `value`."""
        ask = f"curl -sf http://127.0.0.1:9090/api/v1/query --data-urlencode 'query={expression}'"
        found = json.loads(self.fleet.ssh(self.host, ask))["data"]["result"]
        return [one["metric"] | {"value": float(one["value"][1])} for one in found]

    def firing(self) -> set[str]:
        """Return the alerts that Alertmanager notifies about now: "GpuMissing/critical of HOST"."""
        found = json.loads(self.fleet.ssh(self.host, f"curl -sf '{FIRING}'"))
        labels = [one["labels"] for one in found]
        return {f"{one['alertname']}/{one['severity']} of {one.get('host', one['instance'])}" for one in labels}

    def wait_for(self, expected: set[str], steady: float = 0.0) -> None:
        """Wait until exactly these alerts are firing, and stay so for some seconds."""
        end = time.monotonic() + WAIT
        since: float | None = None
        while True:
            found, now = self.firing(), time.monotonic()
            since = (now if since is None else since) if found == expected else None
            if since is not None and now - since >= steady:
                return
            assert now < end, f"after {WAIT:.0f} s {sorted(found)} instead of {sorted(expected)}"
            time.sleep(0.5)
