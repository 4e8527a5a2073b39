"""Molecule runs the scenarios: create, converge, idempotence, verify, destroy."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.fleet import ROOT, VENV, environment

LIMIT = 1800  # seconds a scenario
IMAGE = "localhost/gpu-ready/debian:13"
PACKAGES = "python3,openssh-server,ca-certificates"


def run_scenario(scenario: str, **more: str) -> None:
    """Run the whole sequence of a scenario."""
    env = environment() | {"PATH": f"{VENV}:/usr/sbin:/usr/bin:/sbin:/bin", "NO_COLOR": "1"} | more
    done = subprocess.run(
        [str(VENV / "molecule"), "test", "-s", scenario],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, cwd=ROOT, env=env, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
    for action in ("create", "converge", "idempotence", "verify", "destroy"):
        assert action in done.stdout


@pytest.mark.lab
@pytest.mark.parametrize("scenario", ["no_gpu", pytest.param("default", marks=pytest.mark.long)])
def test_scenario(lab_machine: None, scenario: str) -> None:
    run_scenario(scenario)


@pytest.fixture
def podman(tmp_path: Path) -> dict[str, str]:
    """Settings with which podman starts containers where root may not raise limits, as in a container."""
    if not shutil.which("podman"):
        pytest.skip("podman is not installed")
    lines = ["[containers]", 'default_ulimits = ["nofile=1024:4096", "nproc=1000:1000"]']
    lines += ["[engine]", 'cgroup_manager = "cgroupfs"']
    if Path("/sys/fs/cgroup/unified").exists():  # crun: "cgroups in hybrid mode not supported"
        lines.append('runtime = "runc"')
    (tmp_path / "containers.conf").write_text("\n".join(lines) + "\n")
    return {"CONTAINERS_CONF": str(tmp_path / "containers.conf"), "MOLECULE_ENGINE": "podman", "MOLECULE_IMAGE": IMAGE}


@pytest.mark.long
def test_containers_with_an_image_made_here(podman: dict[str, str], tmp_path: Path) -> None:
    """The image has the contents that the scenario otherwise adds to Debian's image of a registry."""
    root = tmp_path / "debian.tar"
    make = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={PACKAGES}", "trixie", str(root)]
    subprocess.run(make, check=True, timeout=900)
    subprocess.run(
        ["podman", "import", "--quiet", str(root), IMAGE], check=True, timeout=300, env=environment() | podman
    )
    run_scenario("container", **podman)
