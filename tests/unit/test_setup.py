"""tools/setup: a complete virtual environment is left alone, an incomplete or moved one is created again.

It gets only packages whose hashes are known, and the programs of this checkout.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Makes an environment whose programs do nothing (but name its packages, and record what pip installs), and counts the calls.
PYTHON = """#!/bin/sh
case "$1" in
    -m) for directory; do :; done
        echo made >>"$MADE"; mkdir -p "$directory/bin"
        for name in python pip ansible; do printf '#!/bin/sh\\n' >"$directory/bin/$name"; chmod 755 "$directory/bin/$name"; done
        echo "echo $PWD/$directory" >>"$directory/bin/python"; echo 'echo "$@" >>"$MADE.pip"' >>"$directory/bin/pip";;
    --version) echo Python 3.13.0;;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("tools/setup", "requirements/runtime.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "python").write_text(PYTHON)
    (tmp_path / "python").chmod(0o755)
    return tmp_path


def made(checkout: Path) -> int:
    """Run tools/setup and return how often an environment was made so far."""
    log = checkout / "made"
    more = {"PATH": "/usr/bin:/bin", "PYTHON": str(checkout / "python"), "MADE": str(log)}
    subprocess.run([str(checkout / "tools/setup"), "runtime"], env=more, check=True, timeout=60)
    return len(log.read_text().splitlines())


@pytest.mark.host_io
def test_a_complete_environment_is_made_once(checkout: Path) -> None:
    assert (made(checkout), made(checkout)) == (1, 1)


@pytest.mark.host_io
def test_an_environment_gets_named_packages_and_the_programs_of_this_checkout(checkout: Path) -> None:
    made(checkout)
    [installed] = (checkout / "made.pip").read_text().splitlines()
    assert "--require-hashes --only-binary :all: -r requirements/runtime.txt" in installed
    paths = (checkout / ".venv/gpu-ready.pth").read_text().splitlines()
    assert paths == [str(checkout), str(checkout / "lab")]
    for name, module in (
        ("gpu-explain", "plugins.plugin_utils.gpu_ready.explain.cli"),
        ("gpu-catalog", "plugins.plugin_utils.gpu_ready.vendors.cli"),
        ("gpu-ready-lab", "gpu_ready_lab.cli"),
    ):
        program = checkout / ".venv/bin" / name
        assert program.read_text().splitlines()[0] == f"#!{checkout}/.venv/bin/python"
        assert f"from {module} import main" in program.read_text()
        assert program.stat().st_mode & 0o111
        assert any((ROOT / part / (module.replace(".", "/") + ".py")).is_file() for part in (".", "lab"))


@pytest.mark.host_io
def test_an_environment_is_updated_with_its_requirements(checkout: Path) -> None:
    made(checkout)
    (checkout / "requirements/runtime.txt").write_text("other==1\n")
    made(checkout)
    assert len((checkout / "made.pip").read_text().splitlines()) == 2


@pytest.mark.host_io
def test_an_environment_without_pip_is_made_again(checkout: Path) -> None:
    made(checkout)
    (checkout / ".venv/bin/pip").unlink()
    assert (made(checkout), made(checkout)) == (2, 2)


@pytest.mark.host_io
def test_an_environment_of_a_moved_checkout_or_removed_python_is_made_again(checkout: Path) -> None:
    made(checkout)
    (checkout / ".venv/bin/pip").write_text("#!/elsewhere/.venv/bin/python\n")
    assert (made(checkout), made(checkout)) == (2, 2)


@pytest.mark.host_io
def test_a_named_python_that_cannot_be_used_is_refused(checkout: Path) -> None:
    done = subprocess.run(
        [str(checkout / "tools/setup"), "runtime"],
        env={"PATH": "/usr/bin:/bin", "PYTHON": "/bin/false"}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1 and "PYTHON=/bin/false is older than 3.11" in done.stderr
    assert not (checkout / ".venv").exists()
