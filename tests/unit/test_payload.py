"""What AnsiballZ sends to a host with gpu_node_plan: collectors, no code that plans, changes or explains."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE = "gpu_node_plan"
PACKAGES = {
    "answers", "base", "check", "containers", "cuda", "driver", "facts", "hardware", "lifecycle", "packaging",
    "system", "upgrade",
}  # fmt: skip
MODULES = {
    "driver": {
        "gpu_processes",
        "gpu_services",
        "libraries",
        "persistence_state",
        "runfile",
        "runfile.installed_files",
        "stopped_services",
    },
    "packaging": {
        "apt_entries",
        "apt_sources",
        "dnf_filters",
        "dpkg_status",
        "family",
        "index_record",
        "locations",
        "locks",
        "openpgp",
        "rpm",
        "rpm_history",
        "version_match",
        "yum_repos",
    },
    "check": {"kmsg", "model", "pci", "xids"},
    "upgrade": {"journal", "model"},
    "lifecycle": {"options"},
}
"""Packages of which gpu_node_plan may reach some modules only."""
SHARED = "ansible_collections/gpu_ready/nodes/plugins/module_utils/gpu_ready/"


@pytest.mark.host_io
def test_no_code_is_sent_that_plans_changes_or_explains(tmp_path: Path) -> None:
    # In a process of its own: Ansible's finder of collections stays in the process.
    program = [sys.executable, "-m", "tools.payload", MODULE, "--archives", str(tmp_path)]
    subprocess.run(program, cwd=ROOT, check=True, capture_output=True, timeout=300)
    sent = zipfile.ZipFile(tmp_path / f"{MODULE}.zip").namelist()
    names = [name.removeprefix(SHARED).removesuffix(".py").removesuffix("/__init__") for name in sent if SHARED in name]
    parts = [name.split("/", 1) for name in names if name != "__init__"]
    assert "facts" in {part[0] for part in parts}
    assert {part[0] for part in parts} <= PACKAGES
    for package, allowed in MODULES.items():
        reached = {part[1].replace("/", ".") for part in parts if part[0] == package and len(part) > 1}
        assert reached <= allowed, package
