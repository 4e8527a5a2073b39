"""From bare hosts to the report: what the README promises of a run, with a test per promise.

`make test` uses the fleet sample.yml, with one driver, which compiles in seconds; `make campaign` the fleet of `make demo`.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pynvml
import pytest
from ansible.module_utils.common.yaml import yaml_load

from tests.grid import CAMPAIGN
from tests.integration.fleet import ROOT, Fleet, Run, lab, requests

pytestmark = pytest.mark.lab

NAME = "demo" if CAMPAIGN else "sample"
FLEET = yaml_load((ROOT / f"lab/fleets/{NAME}.yml").read_text())
RESULTS = {name: host["expect"]["result"] for name, host in FLEET["hosts"].items()}
READY = [name for name, result in RESULTS.items() if result == "ready"]
NOT_READY = [name for name, result in RESULTS.items() if result == "refused"]
NVSWITCHES = "h100"
WITHOUT_GPU = [name for name, result in RESULTS.items() if result == "no_gpu"]

# What the operating system itself writes while nobody changes anything.
NOISE = r"^/(run|proc|sys|dev|tmp)/|^/var/log/|^/var/lib/systemd/|^/var/tmp/systemd|^/root/\.ansible/tmp$"


def written_since(fleet: Fleet, host: str, marker: str) -> list[str]:
    """Return the files on a host that changed after the marker file."""
    found = fleet.ssh(host, f"find / -xdev -newercm {marker} -not -type d 2>/dev/null || true").splitlines()
    return [path for path in found if not re.search(NOISE, path)]


def unit_times(fleet: Fleet, host: str) -> str:
    """Return what changes when a service restarts or `systemctl daemon-reload` runs."""
    return fleet.ssh(
        host,
        "systemctl show docker ssh nvidia-fabricmanager nvidia-persistenced -p Id -p ExecMainStartTimestampMonotonic -p NRestarts;"
        "systemctl show -p UnitsLoadFinishTimestampMonotonic",
    )


@pytest.fixture(scope="module")
def demo(lab_machine: None) -> Fleet:
    lab("down", NAME)
    fleet = Fleet(NAME)
    fleet.up()
    return fleet


@pytest.fixture(scope="module")
def checked(demo: Fleet) -> Iterator[tuple[Run, dict[str, list[str]]]]:
    """`--check --diff` on the bare hosts, and what it left on them."""
    for host in RESULTS:
        demo.ssh(host, "touch /run/before-check; sleep 1")
    run = demo.play("--check", "--diff")
    yield run, {host: written_since(demo, host, "/run/before-check") for host in RESULTS}


@pytest.fixture(scope="module")
def first(demo: Fleet, checked: Any) -> Run:
    """The first real run on the bare hosts."""
    return demo.play()


@pytest.fixture(scope="module")
def report(demo: Fleet, first: Run) -> dict[str, Any]:
    return dict(json.loads((demo.reports / "latest.json").read_text()))


@pytest.fixture(scope="module")
def second(demo: Fleet, first: Run) -> tuple[Run, dict[str, str], dict[str, str], dict[str, list[str]], str]:
    """The second run, with unit times before and after, files written, and the requests to mirror and proxy."""
    for host in READY:
        demo.ssh(host, "touch /run/before-second; sleep 1")
    before = {host: unit_times(demo, host) for host in READY}
    asked = requests(demo)
    run = demo.play()
    return (
        run,
        before,
        {host: unit_times(demo, host) for host in READY},
        {host: written_since(demo, host, "/run/before-second") for host in READY},
        requests(demo)[len(asked) :],
    )


def test_check_on_bare_hosts_does_not_fail_for_hosts_that_can_be_made_ready(checked: Any) -> None:
    run, _ = checked
    for host in READY + WITHOUT_GPU:
        recap = run.recap(host)
        assert (recap["failed"], recap["unreachable"]) == (0, 0), run.failures(host)


@pytest.mark.parametrize("host", list(RESULTS))
def test_check_writes_nothing(checked: Any, host: str) -> None:
    _, written = checked
    assert written[host] == []


@pytest.mark.parametrize("host", READY)
def test_check_lists_exactly_the_steps_that_the_real_run_does(checked: Any, first: Run, host: str) -> None:
    listed = checked[0].steps(host)
    assert listed, "a bare host needs work"
    assert listed == first.steps(host)
    done = [step for step in first.changed_steps(host) if not step.startswith("gpu_plan.collect_facts")]
    assert done == listed


def test_every_host_is_as_the_fleet_file_expects(demo: Fleet, report: Any) -> None:
    assert "as expected" in lab("check", f"lab/fleets/{NAME}.yml", str(demo.reports / "latest.json"))


def test_a_refused_host_fails_the_command_but_not_the_others(first: Run) -> None:
    assert first.rc != 0
    for host in NOT_READY:
        assert first.recap(host)["failed"] == 1
        assert first.changed(host) == []
    for host in READY:
        assert first.recap(host)["failed"] == 0


def test_refusal_names_both_cards_and_a_remedy(first: Run) -> None:
    (host,) = NOT_READY
    message = first.failures(host)
    assert "V100" in message and "B200" in message
    assert "remedy" in message.lower() or "move" in message.lower()


@pytest.mark.parametrize("host", WITHOUT_GPU)
def test_a_host_without_gpu_is_left_alone_and_reported(demo: Fleet, first: Run, report: Any, host: str) -> None:
    assert first.changed(host) == []
    assert "no NVIDIA GPU" in json.dumps(report["hosts"][host])
    assert demo.ssh(host, "ls /var/lib/gpu-ready 2>/dev/null || true") == ""


def test_the_table_shows_every_host(first: Run) -> None:
    for host in RESULTS:
        assert re.search(rf"^\s*{re.escape(host)}\s", first.screen, re.MULTILINE)


def test_the_module_was_compiled_for_the_simulated_kernel(demo: Fleet, first: Run) -> None:
    for host in READY:
        status = demo.ssh(host, "dkms status; uname -r")
        kernel = status.splitlines()[-1]
        assert re.search(rf"nvidia\S*, {re.escape(kernel)}, x86_64: installed", status), status


@pytest.mark.parametrize("host", READY)
def test_second_run_changes_nothing(second: Any, host: str) -> None:
    run, _, _, written, _ = second
    assert run.recap(host)["changed"] == 0
    assert run.steps(host) == []
    assert written[host] == []


@pytest.mark.parametrize("host", READY)
def test_second_run_costs_one_remote_call(second: Any, host: str) -> None:
    run = second[0]
    assert run.calls[host] == 1


@pytest.mark.parametrize("host", READY)
def test_second_run_restarts_and_reloads_nothing(second: Any, host: str) -> None:
    _, before, after, _, _ = second
    assert "UnitsLoadFinishTimestampMonotonic=" in before[host]
    assert before[host] == after[host]


def test_second_run_uses_no_network(second: Any) -> None:
    assert second[4] == ""


def test_container_sees_the_gpus_of_the_host_one_by_one(demo: Fleet, first: Run, report: Any) -> None:
    for host in READY:
        verify = report["hosts"][host]["seen"]
        count = sum(gpu.get("count", 1) for gpu in FLEET["hosts"][host]["gpus"])
        assert len(verify["container"]["gpus"]) == count
        assert verify["container"]["gpus"] == verify["nvml"]["gpus"]


@pytest.fixture(scope="module")
def broken(demo: Fleet, second: Any) -> Iterator[Run]:
    """A run on the host with NVSwitches while one of its GPUs is lost; the GPU comes back at the end."""
    faults = "/etc/gpu-ready-lab/nvml-faults.conf"
    demo.ssh(NVSWITCHES, f"rm /var/lib/gpu-ready/verified.json; printf '[gpu 3]\\nerror = 15\\n' >{faults}")
    yield demo.play("--limit", NVSWITCHES)
    demo.ssh(NVSWITCHES, f"rm -f {faults}")


@pytest.fixture(scope="module")
def repaired(demo: Fleet, broken: Run) -> Run:
    """The run after it: the GPU is back, NVIDIA's Python bindings came, and somebody has stopped the fabric manager."""
    demo.ssh(NVSWITCHES, "rm /etc/gpu-ready-lab/nvml-faults.conf; systemctl stop nvidia-fabricmanager")
    directory = demo.ssh(NVSWITCHES, "python3 -c 'import sys; print(sys.path[-1])'").strip()
    copy = ["scp", "-q", "-F", str(demo.directory / "ssh_config"), str(pynvml.__file__), f"{NVSWITCHES}:{directory}/pynvml.py"]  # fmt: skip
    subprocess.run(copy, check=True, timeout=300)
    return demo.play("--limit", NVSWITCHES)


def test_a_lost_gpu_turns_the_verification_red(broken: Run) -> None:
    assert broken.rc != 0
    assert broken.recap(NVSWITCHES)["failed"] == 1
    assert "lost" in broken.failures(NVSWITCHES).lower()


@pytest.mark.long
def test_a_red_host_stays_red_until_the_cause_is_removed(
    demo: Fleet, broken: Run, request: pytest.FixtureRequest
) -> None:
    assert demo.play("--limit", NVSWITCHES).rc != 0
    assert request.getfixturevalue("repaired").rc == 0


def test_a_stopped_fabric_manager_is_started_again(demo: Fleet, repaired: Run) -> None:
    assert repaired.steps(NVSWITCHES) == ["nvidia_driver.fabricmanager", "gpu_verify.verify"]
    assert demo.ssh(NVSWITCHES, "systemctl is-active nvidia-fabricmanager").strip() == "active"


def test_pynvml_and_nvidia_smi_see_the_same(demo: Fleet, report: Any, repaired: Run) -> None:
    before = report["hosts"][NVSWITCHES]["seen"]["nvml"]
    seen = json.loads((demo.reports / "latest.json").read_text())["hosts"][NVSWITCHES]["seen"]["nvml"]
    assert (before["how"], seen["how"]) == ("nvidia-smi", "pynvml")
    assert seen["gpus"] == before["gpus"]
