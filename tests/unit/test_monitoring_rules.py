"""deploy/monitoring: every fault raises its alert and no other, in the rule engine of Prometheus itself."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.yaml import yaml_load
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.fleet_report import metrics as report_metrics

from plugins.module_utils.gpu_ready.monitor import metrics

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/monitoring/gpu-ready.rules.yml"
GROUPS = yaml_load(RULES.read_text())["groups"]
ALERTS = [rule for group in GROUPS for rule in group["rules"] if "alert" in rule]
HOST = 'job="node",instance="gpu1:9100"'
GPU = HOST + ',gpu="0",uuid="GPU-1"'
SOUND = {
    f"up{{{HOST}}}": "1x120",
    f'gpu_ready_drift{{{HOST},check="gpus"}}': "0x120",
    f'gpu_ready_drift{{{HOST},check="files"}}': "0x120",
    'gpu_ready_host_drift{job="node",instance="control:9100",host="gpu1",playbook="audit"}': "0x120",
    f"gpu_ready_nvml_up{{{HOST}}}": "1x120",
    f"gpu_ready_gpus_expected{{{HOST}}}": "2x120",
    f"gpu_ready_gpu_info{{{GPU}}}": "1x120",
    f'gpu_ready_gpu_info{{{HOST},gpu="1",uuid="GPU-2"}}': "1x120",
    f'gpu_ready_gpu_ecc_errors_total{{{GPU},type="uncorrected"}}': "3x120",
    f"gpu_ready_gpu_row_remap_failure{{{GPU}}}": "0x120",
    f"gpu_ready_gpu_row_remap_pending{{{GPU}}}": "0x120",
    f"gpu_ready_gpu_recovery_action{{{GPU}}}": "0x120",
    f'gpu_ready_gpu_clock_event{{{GPU},reason="hw_thermal"}}': "0x120",
    f'gpu_ready_gpu_clock_event{{{GPU},reason="idle"}}': "1x120",
    f'gpu_ready_gpu_pcie_width{{{GPU},state="current"}}': "16x120",
    f'gpu_ready_gpu_pcie_width{{{GPU},state="max"}}': "16x120",
    f"gpu_ready_gpu_utilization_ratio{{{GPU}}}": "0.9x120",
    f'gpu_ready_gpu_nvlinks{{{GPU},state="active"}}': "18x120",
    f'gpu_ready_gpu_nvlinks{{{GPU},state="inactive"}}': "0x120",
    f'gpu_ready_gpu_nvlink_errors_total{{{GPU},type="crc"}}': "0+60x120",
    f"gpu_ready_gpu_fabric_state{{{GPU}}}": "3x120",
    f"gpu_ready_gpu_fabric_status{{{GPU}}}": "0x120",
    f'gpu_ready_gpu_fabric_problem{{{GPU},problem="route_unhealthy"}}': "0x120",
    f"gpu_ready_verified{{{HOST}}}": "1x120",
    f'gpu_ready_reboot_required{{{HOST},reason="driver"}}': "0x120",
    f'gpu_ready_driver_branch_ended{{{HOST},branch="580"}}': "0x120",
    f"gpu_ready_sample_timestamp_seconds{{{HOST}}}": "0+60x120",
    f"node_textfile_scrape_error{{{HOST}}}": "0x120",
    f'gpu_ready_xid_total{{{HOST},pci="0000:3b:00.0",xid="31"}}': "4x120",
    f'gpu_ready_xid_last_timestamp_seconds{{{HOST},pci="0000:3b:00.0",xid="31"}}': "60x120",
}
"""Two hours of a healthy node, a value a minute, with an old Xid in its log."""


def series(name: str, labels: str = HOST) -> str:
    return f"{name}{{{labels}}}"


def xid_series(number: int, counts: str, times: str) -> dict[str, str]:
    """The series of an Xid: how often it occurred, and when last."""
    labels = f'{HOST},pci="0000:3b:00.0",xid="{number}"'
    return {
        series("gpu_ready_xid_total", labels): counts,
        series("gpu_ready_xid_last_timestamp_seconds", labels): times,
    }


LATE = "0x60 1x60"
FAULTS: dict[str, tuple[dict[str, str], set[str]]] = {
    "healthy": ({}, set()),
    "a GPU is lost": ({series("gpu_ready_gpu_info", f'{HOST},gpu="1",uuid="GPU-2"'): "1x60 _x60"}, {"GpuMissing/critical"}),
    "all GPUs are lost": (
        {series("gpu_ready_gpu_info", GPU): "1x60 _x60",
         series("gpu_ready_gpu_info", f'{HOST},gpu="1",uuid="GPU-2"'): "1x60 _x60"},
        {"GpuMissing/critical"},
    ),
    "the driver does not answer": (
        {series("gpu_ready_nvml_up"): "1x60 0x60", series("gpu_ready_gpu_info", GPU): "1x60 _x60"},
        {"GpuDriverDown/critical"},
    ),
    "the driver is changed in three minutes": ({series("gpu_ready_nvml_up"): "1x112 0 0 0 1 1 1 1 1"}, set()),
    "uncorrected errors": (
        {series("gpu_ready_gpu_ecc_errors_total", GPU + ',type="uncorrected"'): "3x80 4x40"}, {"GpuEccUncorrected/critical"}
    ),
    "remapping failed": ({series("gpu_ready_gpu_row_remap_failure", GPU): LATE}, {"GpuRowRemapFailed/critical"}),
    "remapping waits": ({series("gpu_ready_gpu_row_remap_pending", GPU): LATE}, {"GpuRowRemapPending/warning"}),
    "a reset is required": ({series("gpu_ready_gpu_recovery_action", GPU): LATE}, {"GpuRecoveryRequired/warning"}),
    "too hot": ({series("gpu_ready_gpu_clock_event", GPU + ',reason="hw_thermal"'): LATE}, {"GpuThrottled/warning"}),
    "hot for a moment": ({series("gpu_ready_gpu_clock_event", GPU + ',reason="hw_thermal"'): "0x115 1x5"}, set()),
    "a narrow link": (
        {series("gpu_ready_gpu_pcie_width", GPU + ',state="current"'): "16x60 8x60"}, {"GpuPcieNarrow/warning"}
    ),
    "a narrow link of an idle GPU": (
        {series("gpu_ready_gpu_pcie_width", GPU + ',state="current"'): "8x120",
         series("gpu_ready_gpu_utilization_ratio", GPU): "0x120"}, set()
    ),
    "a GPU is lost, which its driver notices": (
        {series("gpu_ready_gpu_info", f'{HOST},gpu="1",uuid="GPU-2"'): "1x60 _x60", series("gpu_ready_verified"): "1x60 0x60",
         series("gpu_ready_drift", HOST + ',check="gpus"'): LATE},
        {"GpuMissing/critical"},
    ),
    "a GPU is another one": (
        {series("gpu_ready_drift", HOST + ',check="gpus"'): LATE, series("gpu_ready_verified"): "1x60 0x60"},
        {"GpuNodeDrift/warning"},
    ),
    "somebody edited a file": (
        {series("gpu_ready_drift", HOST + ',check="files"'): LATE}, {"GpuNodeDrift/warning"}
    ),
    "the audit found drift": (
        {series("gpu_ready_host_drift", 'job="node",instance="control:9100",host="gpu1",playbook="audit"'): LATE},
        {"GpuHostDrift/warning"},
    ),
    "the service is stopped": (
        {name: "0+60x60 _x60" for name in SOUND if name.startswith("gpu_ready_") and "_host_" not in name},
        {"GpuMetricsMissing/warning"},
    ),
    "the host is down": (
        {name: "1x60 _x60" if name != f"up{{{HOST}}}" else "1x60 0x60" for name in SOUND if "_host_" not in name}, set()
    ),
    "a link is down": (
        {series("gpu_ready_gpu_nvlinks", GPU + ',state="active"'): "18x60 17x60"}, {"GpuNvlinkDown/critical"}
    ),
    "links without bridges": (
        {series("gpu_ready_gpu_nvlinks", GPU + ',state="active"'): "0x120",
         series("gpu_ready_gpu_nvlinks", GPU + ',state="inactive"'): "18x120"}, set()
    ),
    "a bad cable": (
        {series("gpu_ready_gpu_nvlink_errors_total", GPU + ',type="crc"'): "0+9000x120"}, {"GpuNvlinkErrors/warning"}
    ),
    "the fabric manager does not run": (
        {series("gpu_ready_gpu_fabric_state", GPU): "1x120", series("gpu_ready_gpu_fabric_status", GPU): "_x120"},
        {"GpuFabricNotReady/critical"},
    ),
    "the fabric rejected the GPU": (
        {series("gpu_ready_gpu_fabric_status", GPU): "0x60 999x60"}, {"GpuFabricNotReady/critical"}
    ),
    "the fabric has a problem": (
        {series("gpu_ready_gpu_fabric_problem", GPU + ',problem="route_unhealthy"'): LATE}, {"GpuFabricUnhealthy/warning"}
    ),
    "not verified": ({series("gpu_ready_verified"): "1x60 0x60"}, {"GpuNodeNotVerified/warning"}),
    "reboot required": (
        {series("gpu_ready_reboot_required", HOST + ',reason="driver"'): LATE}, {"GpuNodeRebootRequired/warning"}
    ),
    "the branch has ended": (
        {series("gpu_ready_driver_branch_ended", HOST + ',branch="580"'): "1x120"}, {"GpuDriverBranchEnded/info"}
    ),
    "the service hangs": (
        {series("gpu_ready_sample_timestamp_seconds"): "0+60x60 3600x60"}, {"GpuMetricsOld/warning"}
    ),
    "another textfile is broken": ({series("node_textfile_scrape_error"): LATE}, {"GpuMetricsUnreadable/warning"}),
    "the first Xid 79": (xid_series(79, "_x115 1x5", "_x115 6900x5"), {"GpuXid/critical"}),
    "one more Xid 31": (xid_series(31, "4x115 5x5", "60x115 6960x5"), {"GpuXid/info"}),
    "Xid 43, which is only reported": (xid_series(43, "_x115 1x5", "_x115 6900x5"), set()),
    "an Xid of half an hour ago": (xid_series(79, "_x90 1x30", "_x90 5400x30"), {"GpuXid/critical"}),
    "an Xid of more than an hour ago": (xid_series(79, "_x55 1x65", "_x55 3300x65"), set()),
    "one more of the same Xid, 80 minutes later": (
        xid_series(79, "_x30 1x80 2x10", "_x30 1800x80 6600x10"), {"GpuXid/critical"}
    ),
    "an Xid, a reboot, and the same Xid again": (
        xid_series(79, "_x90 1x10 _x8 1x12", "_x90 5400x10 _x8 6480x12"), {"GpuXid/critical"}
    ),
    "an old Xid in the log of a node that is new": (xid_series(79, "_x115 1x5", "_x115 60x5"), set()),
    "metrics with an old Xid after two hours without any": (xid_series(79, "1x3 _x110 1x7", "60x3 _x110 60x7"), set()),
}  # fmt: skip


@pytest.mark.usefixtures("prometheus")
@pytest.mark.host_io
def test_every_fault_raises_its_alert_and_no_other(tmp_path: Path) -> None:
    tests = []
    for name, (changes, raised) in FAULTS.items():
        expected = [
            {"labels": '{alertname="' + one.replace("/", '", severity="') + '"}', "value": 1} for one in sorted(raised)
        ]
        query = 'count by (alertname, severity) (ALERTS{alertstate="firing"})'
        tests.append(
            {
                "name": name,
                "interval": "1m",
                "input_series": [{"series": key, "values": value} for key, value in (SOUND | changes).items()],
                "promql_expr_test": [{"expr": query, "eval_time": "2h", "exp_samples": expected}],
            }
        )
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.usefixtures("prometheus")
@pytest.mark.host_io
def test_the_sums_of_containers(tmp_path: Path) -> None:
    labels = 'job="node",instance="gpu1:9100",engine="docker",id="a1",container="train"'
    test = {
        "interval": "1m",
        "input_series": [
            {"series": f'gpu_ready_container_memory_used_bytes{{{labels},gpu="{gpu}",uuid="GPU-{gpu}"}}', "values": f"{gpu}x10"}
            for gpu in (1, 2)
        ],
        "promql_expr_test": [
            {
                "expr": "gpu_ready:container_memory_used_bytes:sum",
                "eval_time": "5m",
                "exp_samples": [{"labels": f"gpu_ready:container_memory_used_bytes:sum{{{labels}}}", "value": 3}],
            }
        ],
    }  # fmt: skip
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}))
    done = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case() -> None:
    raised = {one.split("/")[0] for _, of in FAULTS.values() for one in of}
    assert raised == {rule["alert"] for rule in ALERTS}


def test_every_metric_of_a_rule_is_written() -> None:
    known = {family.name for family in metrics.FAMILIES} | {name for name, _, _ in report_metrics.FLAGS}
    used = {
        name for group in GROUPS for rule in group["rules"] for name in re.findall(r"\bgpu_ready_\w+", rule["expr"])
    }
    assert used <= known


def test_each_class_of_xids_has_its_alert() -> None:
    severities = {"critical": "critical", "error": "warning", "warning": "info"}  # of an alert, by that of the catalog
    catalog = yaml_load((ROOT / "catalog/xids.yml").read_text())
    expected = {}
    for name, data in catalog["classes"].items():
        numbers = "|".join(str(number) for number, (of, _) in catalog["xids"].items() if of == name)
        if data["severity"] in severities and numbers:
            expression = f'gpu_ready:xid_age:seconds{{xid=~"{numbers}"}} < 3600'
            expected[name] = (
                severities[data["severity"]],
                expression,
                data["remedy"].replace("{gpu|ADDRESS}", "{{ $labels.pci }}"),
            )
    assert expected == {
        rule["labels"]["class"]: (rule["labels"]["severity"], rule["expr"], rule["annotations"]["remedy"])
        for rule in ALERTS
        if rule["alert"] == "GpuXid"
    }
