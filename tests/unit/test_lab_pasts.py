"""Pasts of lab hosts: each names its page, and the error for an unknown one lists the known ones."""

import re
import subprocess

import pytest
from gpu_ready_lab import fleet, pasts
from gpu_ready_lab.say import LabError

NAMES = sorted(pasts.described())


@pytest.mark.parametrize("name", NAMES)
def test_a_past_says_what_it_is_and_where_that_was_published(name: str) -> None:
    lines = (pasts.SCRIPTS / f"{name}.sh").read_text().splitlines()
    assert re.match(r"# [A-J]\d+[a-z]?: \S", lines[0])
    assert re.match(r"# Page: https://\S+", lines[1])


@pytest.mark.host_io
@pytest.mark.parametrize("name", NAMES)
def test_a_past_is_a_script_that_a_posix_shell_can_read(name: str) -> None:
    text = pasts.FUNCTIONS.read_text() + (pasts.SCRIPTS / f"{name}.sh").read_text()
    done = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_host_has_its_pasts_in_order() -> None:
    (host,) = fleet.parse("{name: x, hosts: {a: {distribution: debian12, past: [docker-list, toolkit-list]}}}").hosts
    assert host.past == ("docker-list", "toolkit-list")


def test_an_unknown_past_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(LabError, match=r"hosts\.a\.past\.0: 'docker' is none of .*cuda-keyring, ") as error:
        fleet.parse("{name: x, hosts: {a: {distribution: debian12, past: [docker]}}}")
    assert all(name in str(error.value) for name in NAMES)
