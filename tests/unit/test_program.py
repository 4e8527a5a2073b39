"""The programs of bin/ start with a Python that has PyYAML, or say which one to start them with."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = sorted(path.name for path in (ROOT / "bin").iterdir())

pytestmark = pytest.mark.host_io


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Copy what starts a program, as in an installed collection: no virtual environment is beside it."""
    shutil.copytree(ROOT / "bin", tmp_path / "bin")
    (tmp_path / "plugins/plugin_utils").mkdir(parents=True)
    shutil.copy(ROOT / "plugins/plugin_utils/program.py", tmp_path / "plugins/plugin_utils")
    return tmp_path


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_python_without_pyyaml_is_named_with_the_one_that_has_it(tree: Path, name: str) -> None:
    program = str(tree / "bin" / name)
    done = subprocess.run([sys.executable, "-I", "-S", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"{name}: {sys.executable} has no PyYAML" in done.stderr, done.stderr
    remedy = done.stderr.strip().partition("ansible-core: ")[2]
    found = subprocess.run(
        ["sh", "-c", remedy.replace(program, "-c 'import yaml'")], capture_output=True, text=True, check=False,
        env={"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
    )  # fmt: skip
    assert found.returncode == 0, found.stderr


def test_the_virtual_environment_of_a_checkout_is_used(tree: Path) -> None:
    python = tree / ".venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho started with $*\n")
    python.chmod(0o755)
    program = str(tree / "bin/gpu-explain")
    done = subprocess.run([sys.executable, "-I", "-S", program, "x"], capture_output=True, text=True, check=True)
    assert done.stdout == f"started with {program} x\n"
