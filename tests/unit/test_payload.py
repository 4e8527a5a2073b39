"""What AnsiballZ sends to a host with gpu_node_plan: collectors and catalog, no code that plans, changes or explains."""

import json
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base import records
from tests.unit.hosts import T4, bare
from tools import payload

ROOT = Path(__file__).resolve().parents[2]
MODULE = "gpu_node_plan"
PACKAGES = {
    "answers", "base", "catalog", "containers", "cuda", "driver", "facts", "hardware", "lifecycle", "monitor", "packaging",
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
PACKED_LIMIT = 149_900
"""Bytes, deflated file by file. Lower it with every cut; raise it only with a reason in the commit."""

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


def test_the_module_stays_within_its_size(closure: dict[str, Path]) -> None:
    assert sum(len(zlib.compress(path.read_bytes())) for path in closure.values()) <= PACKED_LIMIT


@pytest.mark.parametrize("module", ["gpu_cdi_spec", "gpu_driver_volume", "gpu_drain_docker", "gpu_drain_slurm"])
def test_modules_that_decide_nothing_ship_no_catalog(module: str) -> None:
    assert "gpu_ready.catalog.data" not in payload.import_closure(module)


LARGE = 300_000
"""Bytes of source from which on a module has its imports compiled once."""


@pytest.mark.parametrize("path", sorted((ROOT / "library").glob("*.py")), ids=lambda path: path.stem)
def test_a_large_module_has_its_imports_compiled_once(path: Path) -> None:
    size = sum(one.stat().st_size for one in payload.import_closure(path.stem).values())
    _, call, after = path.read_text().partition("\ncompile_once()\n")
    assert call or size < LARGE
    assert not call or "module_utils" in after


NAME_IMPORTS = """
import sys
sys.path.insert(0, sys.argv[1])
import ansible.module_utils.basic
from importlib import import_module
import_module(sys.argv[2])
print(*(name.rpartition(".")[2] for name in sys.modules if ".gpu_ready." in name))
"""


@pytest.mark.host_io
def test_the_closure_is_what_ansible_ships(tmp_path: Path) -> None:
    names = zipfile.ZipFile(build_archive(MODULE, tmp_path)).namelist()
    prefix = f"{SHARED}/"
    shipped = {name[len(prefix) :] for name in names if name.startswith(prefix + "gpu_ready/")}
    expected = {str(path.relative_to(ROOT / "module_utils")) for path in payload.import_closure(MODULE).values()}
    assert shipped == expected


COUNT_COMPILED = """
import collections, sys
compiled = collections.Counter()
sys.addaudithook(lambda event, args: event == "compile" and compiled.update([str(args[1])]))
sys.path.insert(0, sys.argv[1])
import ansible.module_utils.basic
from importlib import import_module
module = import_module(sys.argv[2])
ours = {name: times for name, times in compiled.items() if "/gpu_ready/" in name}
assert len(ours) > 60, ours
print({name: times for name, times in ours.items() if times > 1 and not name.endswith(BEFORE)})
facts = sys.modules["ansible_collections.gpu_ready.nodes.plugins.module_utils.gpu_ready.facts"]
print(facts.__file__, facts.base.__file__)
"""


@pytest.mark.host_io
def test_a_host_compiles_each_file_once(tmp_path: Path) -> None:
    archive = build_archive(MODULE, tmp_path)
    # Imported before the call of compile_once(): the packages of the collection, which are empty, and the module.
    collection = [f"{name}/__init__.py" for name in ("gpu_ready", "nodes", "plugins", "modules", "module_utils")]
    before = (*collection, f"modules/{MODULE}.py", "base/__init__.py", "base/zip_import.py")
    argv = [
        sys.executable,
        "-c",
        COUNT_COMPILED.replace("BEFORE", repr(before)),
        str(archive),
        payload.entry(archive, MODULE),
    ]
    twice, names = subprocess.run(argv, check=True, capture_output=True, text=True, env={}).stdout.splitlines()
    package = f"{archive}/{SHARED}/gpu_ready/facts"
    assert (twice, names) == ("{}", f"{package}/__init__.py {package}/base.py")


NAME_IMPORTS_OF_A_PLAN = """
import json, sys
from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.settings import variables
from plugins.plugin_utils.gpu_ready.plan import compose
facts = records.from_json(Facts, json.load(sys.stdin))
assert compose.plan(facts, variables.parse_settings({}).settings).steps
print(*(name.rpartition(".")[2] for name in sys.modules if ".gpu_ready." in name))
"""


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("distro", "used", "unused"), [("ubuntu2404", "apt", ("dnf", "yum")), ("el9", "dnf", ("apt",))]
)
def test_a_plan_imports_only_the_code_of_the_hosts_own_package_manager(
    distro: str, used: str, unused: tuple[str, ...]
) -> None:
    facts = json.dumps(records.to_json(bare(T4, distro=distro)))
    argv = [sys.executable, "-c", NAME_IMPORTS_OF_A_PLAN]
    environment = {"PYTHONPATH": str(ROOT)}
    names = subprocess.run(
        argv, input=facts, check=True, capture_output=True, text=True, env=environment
    ).stdout.split()
    assert f"{used}_repository" in names
    assert not [name for name in names if name.startswith(unused)]
