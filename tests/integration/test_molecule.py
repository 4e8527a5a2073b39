"""Molecule runs the scenarios against lab hosts: create, converge, idempotence, verify, destroy."""

import subprocess

import pytest
from fleet import ROOT, VENV, environment

pytestmark = pytest.mark.lab

LIMIT = 1800  # seconds a scenario


@pytest.mark.parametrize("scenario", ["no_gpu", pytest.param("default", marks=pytest.mark.long)])
def test_scenario(lab_machine: None, scenario: str) -> None:
    env = environment() | {"PATH": f"{VENV}:/usr/sbin:/usr/bin:/sbin:/bin", "NO_COLOR": "1"}
    done = subprocess.run(
        [str(VENV / "molecule"), "test", "-s", scenario],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT, cwd=ROOT, env=env, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-6000:]
    for action in ("create", "converge", "idempotence", "verify", "destroy"):
        assert action in done.stdout
