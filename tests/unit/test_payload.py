"""What AnsiballZ sends to a host with gpu_node_plan: collectors, no code that plans, changes or explains."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tools import payload

ROOT = Path(__file__).resolve().parents[2]
MODULE = "gpu_node_plan"
PACKAGES = {
    "answers", "base", "containers", "cuda", "driver", "facts", "hardware", "lifecycle", "monitor", "packaging",
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
        "dpkg_status",
        "family",
        "locations",
        "locks",
        "openpgp",
        "rpm",
        "rpm_history",
        "version_match",
        "yum_repos",
    },
    "monitor": {"kmsg"},
    "upgrade": {"journal", "model"},
    "lifecycle": {"options"},
}
"""Packages of which gpu_node_plan may reach some modules only."""
SHARED = payload.NAMESPACE.rstrip(".").replace(".", "/")


def build_archive(module: str, directory: Path) -> Path:
    """Have Ansible pack a module, in a process of its own: its finder of collections stays in the process."""
    program = [sys.executable, "-m", "tools.payload", module, "--archives", str(directory)]
    subprocess.run(program, cwd=ROOT, check=True, capture_output=True, timeout=300)
    return directory / f"{module}.zip"


@pytest.fixture(scope="module")
def closure() -> dict[str, Path]:
    return payload.import_closure(MODULE)


def test_no_code_is_sent_that_plans_changes_or_explains(closure: dict[str, Path]) -> None:
    parts = [name.split(".", 2)[1:] for name in closure if name.count(".")]
    assert {part[0] for part in parts} <= PACKAGES
    for package, allowed in MODULES.items():
        assert {part[1] for part in parts if part[0] == package and len(part) > 1} <= allowed


@pytest.mark.host_io
def test_the_closure_is_what_ansible_ships(tmp_path: Path) -> None:
    names = zipfile.ZipFile(build_archive(MODULE, tmp_path)).namelist()
    prefix = f"{SHARED}/"
    shipped = {name[len(prefix) :] for name in names if name.startswith(prefix + "gpu_ready/")}
    expected = {str(path.relative_to(ROOT / "module_utils")) for path in payload.import_closure(MODULE).values()}
    assert shipped == expected
