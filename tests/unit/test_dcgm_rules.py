"""deploy/monitoring/dcgm.rules.yml: both worlds of names give the same values, and every fault its alert and no other."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "deploy/monitoring/dcgm.rules.yml"
COUNTERS = ROOT / "roles/gpu_monitoring/files/gpu-ready-counters.csv"
GROUPS = yaml_load(RULES.read_text())["groups"]
GPU = 'job="dcgm",instance="gpu1:9400",gpu="0",UUID="GPU-1",modelName="Tesla T4"'
OLD = {"FB_USED": 512, "GPU_UTIL": 61, "GPU_TEMP": 40, "POWER_USAGE": 27.5, "SM_CLOCK": 1590, "XID_ERRORS": 31}
NEW = {"FB_USED_BYTES": 512 << 20, "GPU_UTIL_RATIO": 0.61, "GPU_TEMP_CELSIUS": 40, "BOARD_POWER_WATTS": 27.5,
       "SM_CLOCK_HERTZ": 1590e6, "XID_ERROR": 31}  # fmt: skip
ALIAS = OLD | {"GPU_UTIL_RATIO": 61}
"""In DCGM 4.6 the new name is another one of the old field, in percent."""
WORLDS: dict[str, dict[str, float]] = {"before 4.9": OLD, "since 4.9": NEW, "DCGM 4.6": ALIAS}
OURS = {
    'gpu_ready_gpu_memory_used_bytes{job="node",instance="gpu1:9100",gpu="0",uuid="GPU-1"}': "7x60",
    'gpu_ready_gpu_utilization_ratio{job="node",instance="gpu1:9100",gpu="0",uuid="GPU-1"}': "0.5x60",
}
VALUES = {
    "memory_used_bytes": 512 << 20, "utilization_ratio": 0.61, "temperature_celsius": 40, "power_watts": 27.5,
    "sm_clock_hertz": 1590e6,
}  # fmt: skip


def series(values: dict[str, Any], labels: str = GPU) -> dict[str, str]:
    """An hour of values, one a minute; a text is one of promtool's."""
    return {
        f"DCGM_FI_DEV_{name}{{{labels}}}": value if isinstance(value, str) else f"{value}x60"
        for name, value in values.items()
    }


HEALTHY = {f'up{{job="dcgm",instance="gpu1:9400"}}': "1x60"} | series(OLD)  # noqa: F541 - braces of the text
FAULTS: dict[str, tuple[dict[str, str], set[str]]] = {
    "healthy, with an old Xid": ({}, set()),
    "healthy, since 4.9": (series(dict.fromkeys(OLD, "_x60")) | series(NEW), set()),
    "another Xid": (series({"XID_ERRORS": "31x55 79x5"}), {"DcgmXid/warning"}),
    "another Xid, since 4.9": (
        series({"XID_ERRORS": "_x60"}) | series({"XID_ERROR": "31x55 79x5"}), {"DcgmXid/warning"}
    ),
    "an uncorrected error": (series({"ECC_DBE_AGG_TOTAL": "3x30 4x30"}), {"DcgmEccUncorrected/critical"}),
    "remapping failed": (series({"ROW_REMAP_FAILURE": 1}), {"DcgmRowRemapFailed/critical"}),
    "remapping failed, since 4.9": (series({"ROW_REMAP_FAILED": 1}), {"DcgmRowRemapFailed/critical"}),
    "remapping waits": (series({"ROW_REMAP_PENDING": 1}), {"DcgmRowRemapPending/warning"}),
    "a bad link": (series({"PCIE_REPLAY_COUNTER": "0+20x60"}), {"DcgmPcieReplays/warning"}),
    "a bad link, since 4.9": (series({"PCIE_REPLAY_TOTAL": "0+20x60"}), {"DcgmPcieReplays/warning"}),
    "a good link": (series({"PCIE_REPLAY_COUNTER": "0+2x60"}), set()),
    "the engine is lost": (series(dict.fromkeys(OLD, "_x60")), {"DcgmNamesUnknown/warning"}),
}  # fmt: skip


def check(tests: list[dict[str, Any]], tmp_path: Path) -> None:
    """Let Prometheus' own rule engine evaluate the cases."""
    path = tmp_path / "test.yml"
    path.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def case(name: str, given: dict[str, str], expected: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [{"series": key, "values": value} for key, value in given.items()]
    return {"name": name, "interval": "1m", "input_series": rows, "promql_expr_test": expected}


@pytest.mark.usefixtures("prometheus")
@pytest.mark.host_io
def test_both_worlds_of_names_give_the_same_values(tmp_path: Path) -> None:
    labels = 'instance="gpu1:9400",gpu="0",uuid="GPU-1"'
    expected = [
        {
            "expr": f"gpu:{name}",
            "eval_time": "30m",
            "exp_samples": [{"labels": f"gpu:{name}{{{labels}}}", "value": value}],
        }
        for name, value in VALUES.items()
    ]
    check([case(name, series(values), expected) for name, values in WORLDS.items()], tmp_path)


@pytest.mark.usefixtures("prometheus")
@pytest.mark.host_io
def test_a_gpu_that_both_exporters_know_counts_once(tmp_path: Path) -> None:
    labels = 'instance="gpu1:9100",gpu="0",uuid="GPU-1"'
    expected = [
        {
            "expr": f"gpu:{name}",
            "eval_time": "30m",
            "exp_samples": [{"labels": f"gpu:{name}{{{labels}}}", "value": value}],
        }
        for name, value in {"memory_used_bytes": 7, "utilization_ratio": 0.5}.items()
    ]
    check([case(name, series(values) | OURS, expected) for name, values in WORLDS.items()], tmp_path)


@pytest.mark.usefixtures("prometheus")
@pytest.mark.host_io
def test_every_fault_raises_its_alert_and_no_other(tmp_path: Path) -> None:
    query = 'count by (alertname, severity) (ALERTS{alertstate="firing"})'
    tests = []
    for name, (changes, raised) in FAULTS.items():
        alerts = ['{alertname="' + one.replace("/", '", severity="') + '"}' for one in sorted(raised)]
        samples = [{"labels": one, "value": 1} for one in alerts]
        tests.append(case(name, HEALTHY | changes, [{"expr": query, "eval_time": "1h", "exp_samples": samples}]))
    check(tests, tmp_path)


def test_every_alert_has_a_case() -> None:
    raised = {one.split("/")[0] for _, of in FAULTS.values() for one in of}
    assert raised == {rule["alert"] for group in GROUPS for rule in group["rules"] if "alert" in rule}


def test_the_old_names_of_the_rules_are_in_the_counters_file() -> None:
    """gpu-ready installs an exporter of before 4.9."""
    written = set(re.findall(r"(?m)^(DCGM_FI_\w+),", COUNTERS.read_text()))
    for group in GROUPS:
        for rule in group["rules"]:
            matchers = [re.compile(one) for one in re.findall(r'__name__=~"([^"]+)"', rule["expr"])]
            named = set(re.findall(r"DCGM_FI_DEV_\w+", rule["expr"]))
            found = {name for name in written if name in named or any(one.fullmatch(name) for one in matchers)}
            assert found, rule
