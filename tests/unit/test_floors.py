"""The floors of docs/dev/architecture.md: a room imports from its own floor or from below, never from above."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "module_utils/gpu_ready"
FLOORS = {
    0: "versions catalog catalog_data messages_data host files manifest guard",
    1: "pci pci_words pci_reading pci_kernel lspci platform driver nvidia_detect compute_program nvml xid messages cuda cudnn daemon_json daemon_json_edit daemon_json_text docker cdi driver_volume apt_sources apt_lists grub openpgp profile_d runfile_text rpm "
    "container_engine toml containerd_config "
    "yum_repos message_table smi_text container_errors installer_log kernel_log failure",
    2: "packages apt dkms dnf dnf_text dnf_errors package_manager kernel_module service cuda_default cuda_runfile cudnn_fetch cudnn_install download daemon_json_file driver_volume_files rebuild containerd_files runfile runfile_fetch runfile_state runfile_store upgrade upgrade_stage upgrade_modules drain drain_slurm drain_kubernetes",
    3: "wishes plan",
    4: "observe upgrade_fleet upgrade_share verify verdict verify_container verify_devices compute frameworks requirement checks report decide audit audit_report drain_docker uninstall bootstrap",
    5: "explain explain_host explain_messages",
}
FLOOR = {room: floor for floor, rooms in FLOORS.items() for room in rooms.split()}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def imported(path: Path) -> set[str]:
    """Return the rooms that a file imports, by the first name below the package."""
    inside = path.parent != ROOT
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            if node.level == (2 if inside else 1):
                names = [node.module] if node.module else [alias.name for alias in node.names]
                found |= {name.split(".")[0] for name in names}
            elif inside:
                found.add(path.parent.name)
    return found


def room(path: Path) -> str:
    return path.parent.name if path.parent != ROOT else path.stem


def test_every_room_has_a_floor() -> None:
    assert {room(path) for path in FILES} == set(FLOOR)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_nothing_from_above(path: Path) -> None:
    above = {name for name in imported(path) if FLOOR[name] > FLOOR[room(path)]}
    assert not above


def test_the_decision_sees_no_host() -> None:
    for path in (ROOT / "plan").glob("*.py"):
        assert not imported(path) & {"host", "files", "manifest", "observe"}, path.name


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_shipped_imports_only_the_standard_library_and_itself(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        assert all(name.split(".")[0] in sys.stdlib_module_names for name in names), (path.name, names)
