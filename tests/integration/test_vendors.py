"""The vendors' own names, as in a run with defaults: faults of their servers, then a host provisioned from them.

`make test` has one server that is not trusted; `make campaign` provisions both hosts from all of them. Other files provision by these names, too.
"""

import re

import pytest
from ansible.module_utils.common.yaml import yaml_load
from gpu_ready_lab import faults, hosts

from tests.integration.fleet import Fleet, requests

pytestmark = pytest.mark.lab

DEBIAN, ROCKY = "ven-deb", "ven-rpm"
CUDA, EPEL = "developer.download.nvidia.com/*", "dl.fedoraproject.org/*"
CERTIFICATE = ["does not trust the server's certificate", "ca-certificates", "timedatectl"]
SOURCES = "cat /etc/apt/sources.list.d/gpu-ready-* /etc/yum.repos.d/gpu-ready-* 2>/dev/null || true"
RAW = re.compile(r"Traceback|MODULE FAILURE|non-zero return code")


@pytest.fixture(scope="module")
def vendors(lab_machine: None) -> Fleet:
    """Bare hosts of both package managers."""
    fleet = Fleet("vendors")
    fleet.up()
    return fleet


@pytest.mark.parametrize(
    ("host", "fault", "glob", "words"),
    [
        (DEBIAN, "mirror-certificate", CUDA, ["https://developer.download.nvidia.com/", *CERTIFICATE]),
        pytest.param(
            ROCKY, "mirror-certificate", EPEL, ["https://dl.fedoraproject.org/", *CERTIFICATE],
            marks=pytest.mark.long,
        ),
        pytest.param(
            DEBIAN, "mirror-down", CUDA, ["https://developer.download.nvidia.com/", "does not answer", "proxy"],
            marks=pytest.mark.long,
        ),
    ],
)  # fmt: skip
def test_a_server_without_a_trusted_certificate_or_answer_is_named_with_the_remedy(
    vendors: Fleet, host: str, fault: str, glob: str, words: list[str]
) -> None:
    running = hosts.find(f"vendors/{host}")
    faults.inject(running, fault, [glob])
    try:
        run = vendors.play("--limit", host)
    finally:
        faults.heal(running, fault)
    message = run.failures(host)
    assert run.rc != 0
    assert not RAW.search(message)
    assert [word for word in words if word not in message] == [], message
    assert vendors.ssh(host, SOURCES) == ""


@pytest.mark.long
def test_a_run_with_defaults_uses_the_vendors_own_servers(vendors: Fleet) -> None:
    variables = yaml_load((vendors.inventory.parent / "group_vars/gpu_hosts.yml").read_text())
    assert "gpu_ready_mirror" not in variables
    first = vendors.play()
    assert first.rc == 0, first.failures(DEBIAN) + first.failures(ROCKY)
    for host, manager in ((DEBIAN, "apt-get -qq update"), (ROCKY, "dnf -q makecache")):
        assert "nvidia_driver.install" in first.changed_steps(host)
        addresses = re.findall(r"(?i)^(?:uris|baseurl)\s*[:=]\s*(\S+)", vendors.ssh(host, SOURCES), re.MULTILINE)
        assert addresses
        assert [url for url in addresses if not re.match(r"https://(\w+\.)+\w+/", url) or "10.199" in url] == []
        vendors.ssh(host, manager)
    asked = requests(vendors)
    for file in ("developer.download.nvidia.com/compute/cuda/repos", "nvidia.github.io/libnvidia-container"):
        assert f" {file}" in asked
    second = vendors.play()
    assert second.rc == 0
    assert [second.changed(host) for host in (DEBIAN, ROCKY)] == [[], []]
