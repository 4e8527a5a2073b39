"""gpu_verify on lab hosts: what it verifies, what it reports as skipped, and every red result with its remedy.

After the first run the module itself is called, as the role does, for one host and one case at a time. `make test` has each
check green and red once; further errors of CUDA, selections, frameworks and hosts are of the campaign.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.fleet import ROOT, VENV, Fleet, Run, environment, lab

pytestmark = pytest.mark.lab

TOOLKIT, CDI = "ver-debian12", "ver-debian13"
HOSTS = (TOOLKIT, CDI)
PYTHON_IMAGE, LESS_IMAGE, NEWER_IMAGE = "gpu-ready-lab/python:1", "gpu-ready-lab/python:less", "gpu-ready-lab/newer:1"
FAULTS = "/etc/gpu-ready-lab/cuda-faults.conf"
# The verification image with the host's Python, and frameworks that count GPUs through NVML.
MAKE_IMAGES = r"""
set -e
image=$(docker images --quiet gpu-ready/verify | head -1)
docker tag $image gpu-ready/verify:lab
python=$(readlink -f /usr/bin/python3); version=${python##*/}
work=$(mktemp -d); mkdir -p $work/usr/lib/$version $work/usr/bin $work/usr/lib/x86_64-linux-gnu
cp $python $work/usr/bin/python3
cp -a /usr/lib/$version/. $work/usr/lib/$version/
for library in $(ldd $python /usr/lib/$version/lib-dynload/_ctypes.*.so | awk '/=> \//{print $3}' | grep -Ev 'lib[cm]\.so' | sort -u); do
  cp -L $library $work/usr/lib/x86_64-linux-gnu/
done
cat >$work/usr/lib/$version/lab_gpus.py <<'END'
import ctypes, os
def count():
    library, found = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_uint()
    assert library.nvmlInit_v2() == 0 and library.nvmlDeviceGetCount_v2(ctypes.byref(found)) == 0
    return found.value - int(os.environ.get("LAB_LESS", "0"))
END
cat >$work/usr/lib/$version/torch.py <<'END'
import lab_gpus
__version__ = "2.9.0+lab"
class version: cuda = "13.0"
class cuda:
    is_available = staticmethod(lambda: lab_gpus.count() > 0)
    device_count = staticmethod(lab_gpus.count)
END
cat >$work/usr/lib/$version/tensorflow.py <<'END'
import lab_gpus, sys
__version__ = "2.20.0-lab"
sys.stderr.write("I tensorflow: a line of noise\n")
class config: list_physical_devices = staticmethod(lambda kind: [kind] * lab_gpus.count())
END
id=$(docker create $image true)
tar -C $work -c . | docker cp - $id:/
docker commit $id gpu-ready-lab/python:1 >/dev/null
docker commit --change 'ENV LAB_LESS=1' $id gpu-ready-lab/python:less >/dev/null
docker commit --change 'ENV NVIDIA_REQUIRE_CUDA="cuda>=99.0 brand=lab,driver>=999"' $id gpu-ready-lab/newer:1 >/dev/null
docker rm $id >/dev/null; rm -r $work
"""


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("verify")
    fleet.up()
    assert fleet.play("--limit", CDI).rc == 0  # the other one was verified in this mode before its state was kept
    for host in HOSTS:
        fleet.ssh(host, MAKE_IMAGES)
    return fleet


@pytest.fixture
def cuda_ends(fleet: Fleet) -> Iterator[Any]:
    """Make cuInit of both hosts fail with an error of CUDA until the end of the test."""
    yield lambda code: [fleet.ssh(host, f"echo 'cuInit = {code}' >{FAULTS}") for host in HOSTS]
    for host in HOSTS:
        fleet.ssh(host, f"rm -f {FAULTS}")


def verify(fleet: Fleet, host: str, **settings: Any) -> dict[str, Any]:
    """Verify a host again, with the expectations of its last plan and other settings; return the module's result."""
    kept = json.loads(fleet.ssh(host, "cat /var/lib/gpu-ready/verified.json"))
    runtime = {"default": False} | (
        {"mode": "toolkit", "args": ["--gpus", "all"]}
        if host == TOOLKIT
        else {"mode": "cdi", "args": ["--device", "nvidia.com/gpu=all"]}
    )
    arguments = {
        "image": "gpu-ready/verify:lab",
        "expect": {"runtime": runtime, "gpus": kept["addresses"]},
    } | settings
    done = subprocess.run(
        [str(VENV / "ansible"), "-i", str(fleet.inventory), host, "-m", "gpu_ready.nodes.gpu_verify", "-a", json.dumps(arguments)],
        capture_output=True, text=True, timeout=900, cwd=ROOT, check=False, stdin=subprocess.DEVNULL,
        env=environment() | {"ANSIBLE_CALLBACK_RESULT_FORMAT": "json", "ANSIBLE_NOCOLOR": "1"},
    )  # fmt: skip
    found = re.search(rf"^{host} \| (\w+)!? => (\{{.*^\}})", done.stdout, re.MULTILINE | re.DOTALL)
    assert found, done.stdout + done.stderr
    return dict(json.loads(found[2]), failed=found[1] == "FAILED")


def check(answer: dict[str, Any], name: str) -> dict[str, Any]:
    return next(dict(one) for one in answer["verify"]["checks"] if one["name"] == name)


def seen(answer: dict[str, Any]) -> list[str]:
    return [gpu["uuid"] for gpu in answer["verify"]["container"]["gpus"]]


def test_a_stub_of_libcuda_is_skipped_and_the_record_has_the_reason(fleet: Fleet) -> None:
    for host in HOSTS:
        kept = json.loads(fleet.ssh(host, "cat /var/lib/gpu-ready/verified.json"))
        assert kept["ok"] and kept["checks"]["gpus_in_container"] == "ok"
        assert "stub" in kept["checks"]["compute"]
        assert "python3" in kept["checks"]["compute_in_container"]


@pytest.mark.parametrize("host", [TOOLKIT, pytest.param(CDI, marks=pytest.mark.long)])
def test_the_container_computes_where_its_image_has_python(fleet: Fleet, host: str) -> None:
    answer = verify(fleet, host, image=PYTHON_IMAGE)
    found = check(answer, "compute_in_container")
    assert found["ok"] is None and "stub" in found["found"], found
    assert not answer["failed"], answer["msg"]


@pytest.mark.parametrize(
    ("code", "name", "remedy"),
    [
        pytest.param(46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "nvidia-smi -c 0", marks=pytest.mark.long),
        pytest.param(100, "CUDA_ERROR_NO_DEVICE", "nvidia-modprobe", marks=pytest.mark.long),
        (802, "CUDA_ERROR_SYSTEM_NOT_READY", "nvidia-fabricmanager"),
        pytest.param(803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "reboot", marks=pytest.mark.long),
        pytest.param(999, "CUDA_ERROR_UNKNOWN", "nvidia-uvm", marks=pytest.mark.long),
    ],
)
def test_cuda_that_does_not_start_is_red(fleet: Fleet, cuda_ends: Any, code: int, name: str, remedy: str) -> None:
    cuda_ends(code)
    answer = verify(fleet, CDI, compute=True)
    assert answer["failed"] and name in answer["msg"] and remedy.lower() in answer["msg"].lower()
    red = [one["name"] for one in answer["verify"]["checks"] if one["ok"] is False]
    assert red == ["compute"]


def test_without_the_compute_check_cuda_is_not_called(fleet: Fleet, cuda_ends: Any) -> None:
    cuda_ends(999)
    assert not verify(fleet, CDI, compute=False)["failed"]


# The framework below has a selection on the other host.
@pytest.mark.parametrize("host", [TOOLKIT, pytest.param(CDI, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("devices", "expected"), [pytest.param("0,2", [0, 2], marks=pytest.mark.long), ("1,{uuids[2]}", [1, 2])]
)
def test_chosen_devices_are_exactly_what_the_container_sees(
    fleet: Fleet, host: str, devices: str, expected: list[int]
) -> None:
    uuids = re.findall(r"GPU-[0-9a-f-]+", fleet.ssh(host, "nvidia-smi -L"))
    assert len(uuids) == 4
    answer = verify(fleet, host, devices=devices.format(uuids=uuids), compute=False)
    assert not answer["failed"], answer["msg"]
    assert sorted(seen(answer)) == sorted(uuids[index] for index in expected)


@pytest.mark.parametrize(
    "devices", ["0,7", pytest.param("GPU-00000000-0000-0000-0000-000000000000", marks=pytest.mark.long)]
)
def test_an_unknown_device_is_named(fleet: Fleet, devices: str) -> None:
    answer = verify(fleet, TOOLKIT, devices=devices, compute=False)
    assert answer["failed"] and f"GPU {devices.split(',')[-1]}, found: missing" in answer["msg"]
    assert "gpu_verify_devices" in answer["msg"]
    assert answer["verify"]["container"] is None


@pytest.mark.parametrize(
    ("host", "framework", "devices", "count"),
    [pytest.param(TOOLKIT, "tensorflow", "all", 4, marks=pytest.mark.long), (CDI, "pytorch", "0,2", 2)],
)
def test_a_framework_sees_the_selected_gpus(fleet: Fleet, host: str, framework: str, devices: str, count: int) -> None:
    answer = verify(fleet, host, devices=devices, framework=framework, framework_image=PYTHON_IMAGE, compute=False)
    found = check(answer, "framework")
    assert found["ok"] and found["found"].startswith(f"{count} in {framework} 2."), answer["msg"]


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (LESS_IMAGE, ["pytorch sees 4 GPUs, found: 3 in pytorch", "misses GPUs"]),
        pytest.param("gpu-ready/verify:lab", ["has no python3", "gpu_verify_framework_image"], marks=pytest.mark.long),
        pytest.param(
            "registry.example.com/none:1", ["could not be pulled", "gpu_verify_framework_image"], marks=pytest.mark.long
        ),
    ],
)
def test_a_framework_that_does_not_is_red(fleet: Fleet, image: str, words: list[str]) -> None:
    answer = verify(fleet, TOOLKIT, framework="pytorch", framework_image=image, compute=False)
    assert answer["failed"]
    assert all(word in answer["msg"] for word in words), answer["msg"]


def test_an_image_for_a_newer_driver_is_refused_by_the_toolkit(fleet: Fleet) -> None:
    red = verify(fleet, TOOLKIT, image=NEWER_IMAGE, compute=False)
    assert red["failed"] and "cuda>=99.0" in red["msg"] and "NVIDIA_DISABLE_REQUIRE" in red["msg"]


def test_an_image_for_a_newer_driver_is_reported_where_cdi_starts_it(fleet: Fleet) -> None:
    output = verify(fleet, CDI, image=NEWER_IMAGE, compute=False)
    assert not output["failed"] and "may fail" in check(output, "image_requirement")["found"]


def test_the_output_of_a_container_is_explained(fleet: Fleet) -> None:
    answer = verify(fleet, TOOLKIT, image="registry.example.com/none:1", compute=False)
    found = check(answer, "gpus_in_container")
    assert found["ok"] is False and found["cause"] and found["remedy"]
    assert found["found"].rstrip(".") in answer["msg"] and f"Remedy: {found['remedy']}." in answer["msg"]


def test_a_red_verification_is_repeated_and_turns_green(fleet: Fleet) -> None:
    """The cases above left a red record; the playbook verifies the hosts again and then has nothing to do."""
    run = fleet.play()
    assert run.rc == 0
    assert run.steps(TOOLKIT) == ["gpu_verify.verify"]
    second = fleet.play()
    assert [second.recap(host)["changed"] for host in HOSTS] == [0, 0]


# ---- what happens after the verification -------------------------------------------------------------------------------

GPU = "0000:1b:00.0"


def audit(fleet: Fleet) -> Run:
    return fleet.play("--limit", TOOLKIT, playbook="playbooks/audit.yml")


def wait_for_held(fleet: Fleet, count: int) -> None:
    """Wait until the persistence daemon has so many GPUs open: nvidia-smi only asks it to."""
    held = "ls -l /proc/$(cat /run/nvidia-persistenced/nvidia-persistenced.pid)/fd | grep -c '/dev/nvidia[0-9]'"
    fleet.wait(TOOLKIT, f"test $({held}) = {count}", 60)


def test_a_gpu_that_is_lost_after_its_verification_is_drift_and_stops_site_yml(fleet: Fleet) -> None:
    before = fleet.ssh(TOOLKIT, "systemctl show -p ActiveEnterTimestampMonotonic docker nvidia-persistenced")
    lab("fault", TOOLKIT, "gpu-off-bus")
    try:
        drift = audit(fleet)
        assert drift.rc == 2 and "drift" in drift.row(TOOLKIT), drift.screen[-3000:]
        shown = " ".join(drift.screen.split())
        assert f"GPU 0 ({GPU}) does not answer" in shown and "Remedy: drain and reboot the host" in shown
        for arguments in ([], ["--check"]):
            run = fleet.play("--limit", TOOLKIT, *arguments)
            assert run.rc == 2 and run.changed(TOOLKIT) == [] and run.calls[TOOLKIT] == 1
            assert [one["code"] for one in run.plan(TOOLKIT)["refusals"]] == ["gpu_lost"]
            assert f"GPU 0 ({GPU}) does not answer" in run.failures(TOOLKIT) and "reboot" in run.failures(TOOLKIT)
    finally:
        lab("heal", TOOLKIT, "gpu-off-bus")
    assert fleet.ssh(TOOLKIT, "systemctl show -p ActiveEnterTimestampMonotonic docker nvidia-persistenced") == before
    assert audit(fleet).rc == 0
    run = fleet.play("--limit", TOOLKIT)
    assert run.rc == 0 and run.steps(TOOLKIT) == []


def test_persistence_mode_that_somebody_turns_off_is_drift_and_turned_on_again(fleet: Fleet) -> None:
    fleet.ssh(TOOLKIT, "nvidia-smi -pm 0")
    wait_for_held(fleet, 0)
    drift = audit(fleet)
    assert drift.rc == 2 and "somebody turned persistence mode off" in " ".join(drift.screen.split())
    run = fleet.play("--limit", TOOLKIT)
    assert run.rc == 0 and run.steps(TOOLKIT) == ["nvidia_driver.persistenced", "gpu_verify.verify"]
    wait_for_held(fleet, 4)
    assert "Disabled" not in fleet.ssh(TOOLKIT, "nvidia-smi -q | grep 'Persistence Mode'")
    assert audit(fleet).rc == 0


def test_an_xid_after_the_verification_is_drift_until_it_is_verified_again_or_the_gpu_was_reset(fleet: Fleet) -> None:
    lab("fault", TOOLKIT, "xid", "63", GPU)
    drift = audit(fleet)
    assert drift.rc == 2 and f"Xid 63 of GPU 0 ({GPU})" in " ".join(drift.screen.split())
    run = fleet.play("--limit", TOOLKIT)
    assert run.rc == 0 and run.steps(TOOLKIT) == ["gpu_verify.verify"]
    assert audit(fleet).rc == 0
    lab("fault", TOOLKIT, "xid", "48", GPU)
    assert audit(fleet).rc == 2
    failed = fleet.play("--limit", TOOLKIT)
    assert failed.rc == 2 and "Xid 48" in failed.failures(TOOLKIT)
    assert "Xid 63" not in audit(fleet).screen
    required = "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
    lab("fault", TOOLKIT, "xid", "154", GPU, required)
    assert fleet.play("--limit", TOOLKIT).rc == 0
    assert audit(fleet).rc == 0
